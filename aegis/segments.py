"""Utterances with their speakers, attributes and embeddings: what both leakage studies read.

Unit: one version of an utterance. ``system`` is ``original`` or the anonymiser's name;
``source`` names the utterance that a version was made from, so all versions of one
recording share it (``recording`` is the file where a source is a piece of one, else the
source itself); ``pseudo_profile`` is 0 for originals and counts an anonymiser's
pseudo-profiles from 1. What is not known is NA: session, sex, age, accent, language,
text, test_set. Embeddings are unit-norm rows by backend.

A demo run, a folder of recordings and the simulator all end in this form.

Functions: :class:`Segments` and :func:`normalise_rows`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aegis.stats import Floats

ORIGINAL = "original"
ATTRIBUTES = ("sex", "age", "accent")
KEY = ["source", "system", "pseudo_profile"]
OPTIONAL = ("session", *ATTRIBUTES, "language", "text", "test_set")


@dataclass(frozen=True)
class Segments:
    """``table`` (one row a version, columns KEY, speaker and OPTIONAL) and its vectors."""

    table: pd.DataFrame
    vectors: dict[str, Floats]

    @classmethod
    def build(cls, table: pd.DataFrame, vectors: Mapping[str, Floats]) -> Segments:
        """Complete the columns, check the key, normalise the vectors.

        Raises
        ------
        ValueError
            A version occurs twice, numbers of rows differ, or a vector is zero or not finite.
        """
        full = table.reset_index(drop=True)
        for name in OPTIONAL:
            if name not in full:
                full[name] = None
        full = full.astype(dict.fromkeys(OPTIONAL, object))
        full = full.where(full.notna(), None)
        full["recording"] = full["source"] if "recording" not in full else full["recording"]
        if full.duplicated(KEY).any():
            first = full.loc[full.duplicated(KEY), KEY].iloc[0].tolist()
            raise ValueError(f"segments: {int(full.duplicated(KEY).sum())} repeat, e.g. {first}")
        for backend, rows in vectors.items():
            if len(rows) != len(full):
                raise ValueError(f"segments: {len(rows)} vectors of {backend} for {len(full)}")
        return cls(full, {name: normalise_rows(rows, name) for name, rows in vectors.items()})

    def where(self, mask: pd.Series | NDArray[np.bool_]) -> Segments:
        """The versions for which ``mask`` holds."""
        kept = np.flatnonzero(np.asarray(mask, dtype=bool))
        table = self.table.iloc[kept].reset_index(drop=True)
        return Segments(table, {name: rows[kept] for name, rows in self.vectors.items()})

    def of(self, system: str, pseudo_profile: int | None = None) -> Segments:
        """One system's versions, of one pseudo-profile or of all."""
        mask = self.table["system"] == system
        if pseudo_profile is not None:
            mask &= self.table["pseudo_profile"] == pseudo_profile
        return self.where(mask)

    @property
    def systems(self) -> list[str]:
        """The anonymisers, by name."""
        return sorted(set(self.table["system"]) - {ORIGINAL})

    @property
    def profiles(self) -> list[int]:
        """The pseudo-profiles of the anonymised versions."""
        return sorted({int(p) for p in self.table["pseudo_profile"]} - {0})

    def codes(self, column: str) -> NDArray[np.int64]:
        """Whole numbers for the values of a column, by sorted name; -1 where it is NA."""
        found, _ = pd.factorize(self.table[column].to_numpy(dtype=object), sort=True)
        return np.asarray(found, dtype=np.int64)

    def known(self, column: str) -> NDArray[np.bool_]:
        """Where a column has a value."""
        return np.asarray(self.table[column].notna().to_numpy(), dtype=bool)


def normalise_rows(rows: Floats, name: str = "vectors") -> Floats:
    """Rows of length 1.

    Raises
    ------
    ValueError
        A row is zero or not finite.
    """
    values = np.asarray(rows, dtype=np.float64)
    length = np.linalg.norm(values, axis=1, keepdims=True)
    if not (np.isfinite(length) & (length > 0)).all():
        bad = int((~(np.isfinite(length) & (length > 0))).sum())
        raise ValueError(f"{name}: {bad} vectors are zero or not finite")
    return np.asarray(values / length)
