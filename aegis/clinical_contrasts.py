"""Outcome partitions, bounds and claims of the judged clinical outcomes.

Unit: one fact in one condition (its first presentation order), paired by fact id. Strict
preservation counts ``preserved`` only; contradiction is an endpoint of its own. A fact
without a valid verdict is unobserved: counted, and set to both extremes in the bounds (so
are uncertain labels). The paired contrasts themselves are in :mod:`aegis.contrasts`.

Functions: :func:`pair_labels`, :func:`fact_bounds`, :func:`contradiction_table`,
:func:`partition`, :func:`fact_claims`, :func:`edit_claims`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from aegis import stats
from aegis.claims import claim_row
from aegis.contrasts import RENDERERS, Draws, Row
from aegis.stats import Bounds, Estimate, Floats

LABELS = ("preserved", "partial", "missing", "contradicted", "uncertain")
ENDPOINTS = {"fact preserved": "preserved", "fact contradicted": "contradicted"}


def primary(verdicts: pd.DataFrame, condition: str) -> pd.DataFrame:
    """One row a fact of a condition: the first presentation order."""
    own = verdicts[verdicts["condition"] == condition]
    return own.sort_values(["fact_id", "order"]).drop_duplicates("fact_id")


def pair_labels(verdicts: pd.DataFrame, pair: Sequence[str]) -> pd.DataFrame:
    """Facts scheduled in both: recording_id, importance, label_a, label_b (NA unobserved)."""
    a, b = (primary(verdicts, name).set_index("fact_id") for name in pair)
    shared = a.index.intersection(b.index).sort_values()
    return pd.DataFrame(
        {
            "recording_id": a.loc[shared, "recording_id"],
            "importance": a.loc[shared, "importance"],
            "label_a": a.loc[shared, "label"],
            "label_b": b.loc[shared, "label"],
        }
    )


def _outcomes(pairs: pd.DataFrame, label: str) -> tuple[Floats, Floats, list[str]]:
    """0/1 outcomes of the pairs observed on both sides, and their recordings."""
    seen = pairs.dropna(subset=["label_a", "label_b"])
    a, b = (
        (seen[column].to_numpy(dtype=object) == label).astype(np.float64)
        for column in ("label_a", "label_b")
    )
    return a, b, seen["recording_id"].astype(str).tolist()


def fact_bounds(verdicts: pd.DataFrame, pair: Sequence[str], label: str) -> Bounds:
    """What uncertain and unobserved labels could do to a contrast, side by side."""
    pairs = pair_labels(verdicts, pair)
    counts = []
    for column in ("label_a", "label_b"):
        own = pairs[column]
        unresolved = int(own.isna().sum() + (own == "uncertain").sum())
        counts.append((int((own == label).sum()), unresolved))
    return stats.difference_bounds(counts[0], counts[1], len(pairs))


def contradiction_table(verdicts: pd.DataFrame, pair: Sequence[str] = RENDERERS) -> pd.DataFrame:
    """Contradicted in both, in one only, in neither, unobserved: counts of paired facts."""
    pairs = pair_labels(verdicts, pair)
    a, b, _ = _outcomes(pairs, "contradicted")
    names = [f"{pair[1]} only", f"{pair[0]} only", "both", "neither"]
    counts = [int(((b == 1) & (a == 0)).sum()), int(((a == 1) & (b == 0)).sum())]
    counts += [int(((a == 1) & (b == 1)).sum()), int(((a == 0) & (b == 0)).sum())]
    rows = list(zip(names, counts, strict=True))
    rows.append(("unobserved in one of them", len(pairs) - len(a)))
    return pd.DataFrame(rows, columns=["contradicted in", "facts"])


def partition(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Every scheduled fact by condition and outcome: five labels and ``unobserved``."""
    rows = []
    for condition in verdicts["condition"].drop_duplicates():
        own = primary(verdicts, str(condition))
        counts = own["label"].value_counts().to_dict()
        row = {"condition": condition, "scheduled": len(own)}
        row |= {label: int(counts.get(label, 0)) for label in LABELS}
        rows.append(row | {"unobserved": int(own["label"].isna().sum())})
    columns = ["condition", "scheduled", *LABELS, "unobserved"]
    return pd.DataFrame(rows, columns=columns)


def fact_claims(verdicts: pd.DataFrame, draws: Draws, n_draws: int) -> list[Row]:
    """Strict preservation and contradiction of each condition."""
    rows = []
    for condition in verdicts["condition"].drop_duplicates():
        own = primary(verdicts, str(condition))
        seen = own.dropna(subset=["label"])
        for endpoint, label in ENDPOINTS.items():
            hit = (seen["label"].to_numpy(dtype=object) == label).astype(np.float64)
            estimate = stats.rate(hit, seen["recording_id"].astype(str).tolist(), draws(), n_draws)
            unknown = len(own) - len(seen) + int((seen["label"] == "uncertain").sum())
            name = f"{endpoint.replace(' ', '_')}_{condition}"
            counts = (int(hit.sum()), len(seen), unknown)
            rows.append(claim_row(name, f"{endpoint}, {condition}", estimate, *counts))
    return rows


def edit_claims(verdicts: pd.DataFrame) -> list[Row]:
    """Judged realisation and retention by renderer, with Wilson intervals."""
    rows = []
    for condition in RENDERERS:
        own = verdicts[verdicts["condition"] == condition].drop_duplicates("intention_id")
        for column, value in (("replacement_status", "realised"), ("original_status", "retained")):
            hit = int((own[column] == value).sum())
            unknown = int(own[column].isna().sum() + (own[column] == "uncertain").sum())
            estimate: Estimate = stats.wilson(hit, len(own))
            label = f"{value} (judge), {condition}"
            name = f"{value}_judge_{condition}"
            rows.append(claim_row(name, label, estimate, hit, len(own), unknown))
    return rows
