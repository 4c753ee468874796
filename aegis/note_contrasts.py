"""Contrasts of notes: the matched valid subset, its bounds, and the conditional contrast.

Unit: one fact judged in the notes of both renderers. Invalid and uncertain judgements are
unobserved: out of the paired estimate, at both extremes in the bounds of the full
population, which are no confidence intervals. The conditional contrast keeps facts that
both source-note assessments include, one denominator for both sides.

Functions: :func:`note_contrast`, :func:`source_disagreement`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from aegis import stats
from aegis.contrasts import RENDERERS, Draws


def _sides(verdicts: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    a, b = (
        verdicts[verdicts["condition"] == name].set_index("fact_id").sort_index()
        for name in RENDERERS
    )
    shared = a.index.intersection(b.index)
    return a.loc[shared], b.loc[shared]


def note_contrast(verdicts: pd.DataFrame, draws: Draws, n_draws: int) -> list[dict[str, Any]]:
    """Preserved and contradicted, renderer b minus a, matched and conditional on inclusion."""
    a, b = _sides(verdicts)
    valid = (a["label"].notna() & b["label"].notna()).to_numpy(bool)
    included = (
        a["source_included"].fillna(False).astype(bool)
        & b["source_included"].fillna(False).astype(bool)
    ).to_numpy(bool)
    rows = []
    for subset, mask in (("matched", valid), ("both sources include", valid & included)):
        for label in ("preserved", "contradicted"):
            x, y = ((side["label"] == label).fillna(False).to_numpy(float) for side in (a, b))
            names = a["recording_id"].astype(str).to_numpy()[mask]
            found = stats.paired_difference(x[mask], y[mask], names, draws(), n_draws)
            row: dict[str, Any] = {
                "subset": subset, "label": label, "estimate": found.value, "ci_low": found.ci_low,
                "ci_high": found.ci_high, "facts": int(mask.sum()),
                "conversations": len(np.unique(names)),
            }  # fmt: skip
            rows.append(row | _bounds(a, b, label, subset))
    return rows


def _bounds(a: pd.DataFrame, b: pd.DataFrame, label: str, subset: str) -> dict[str, float]:
    if subset != "matched":
        return {"bound_low": float("nan"), "bound_high": float("nan")}
    counts = []
    for side in (a, b):
        open_ = int(side["label"].isna().sum() + (side["label"] == "uncertain").sum())
        counts.append((int((side["label"] == label).sum()), open_))
    found = stats.difference_bounds(counts[0], counts[1], len(a))
    return {"bound_low": found.low, "bound_high": found.high}


def source_disagreement(verdicts: pd.DataFrame) -> int:
    """Matched facts whose two source-note assessments differ."""
    a, b = _sides(verdicts)
    known = a["source_included"].notna() & b["source_included"].notna()
    return int((a["source_included"][known] != b["source_included"][known]).sum())
