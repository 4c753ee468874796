"""Outcome partitions, bounds and claims of the judged clinical outcomes.

Unit: one fact in one condition (its first presentation order), paired by fact id. Strict
preservation counts ``preserved`` only; contradiction is an endpoint of its own. A fact
without a valid verdict is unobserved: counted, and set to both extremes in the bounds (so
are uncertain labels). The paired contrasts themselves are in :mod:`aegis.contrasts`.

Functions: :func:`pair_labels`, :func:`fact_bounds`, :func:`null_control`,
:func:`effect_table`, :func:`edit_bounds`, :func:`contradiction_table`, :func:`partition`,
:func:`fact_claims`, :func:`edit_claims`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from aegis import stats
from aegis.claims import claim_row
from aegis.contrasts import LEXICAL, RENDERERS, Draws, Row, noise_floors
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


def unchanged_facts(
    facts: pd.DataFrame, transcripts: pd.DataFrame, pair: Sequence[str]
) -> pd.Index:
    """Facts for which both arms read the same: their turn, its neighbours and their question.

    ``transcripts``: ``turn_transcripts``; ``facts``: ``fact_id recording_id turn_index
    turn_id question_turn_id``. The order of turns is that of the recording.
    """
    sides = []
    for name in pair:
        own = transcripts[transcripts["condition"] == name].sort_values("out_start_s")
        sides.append(own.set_index("turn_id")["text"].fillna("").astype(str))
    heard = transcripts.drop_duplicates("turn_id").sort_values(["recording_id", "out_start_s"])
    order = {name: list(own["turn_id"]) for name, own in heard.groupby("recording_id")}
    places = {name: {t: i for i, t in enumerate(own)} for name, own in order.items()}
    same = []
    for fact in facts.to_dict("records"):
        name, turns = fact["recording_id"], order.get(fact["recording_id"], [])
        at = places.get(name, {}).get(fact["turn_id"])
        if at is None:
            continue
        near = set(turns[max(0, at - 1) : at + 2]) | {fact["question_turn_id"]} - {None}
        near = {turn for turn in near if pd.notna(turn)}
        if all(
            turn in sides[0].index and turn in sides[1].index and sides[0][turn] == sides[1][turn]
            for turn in near
        ):
            same.append(fact["fact_id"])
    return pd.Index(same)


def null_control(
    verdicts: pd.DataFrame, facts: pd.DataFrame, transcripts: pd.DataFrame, pair: Sequence[str]
) -> dict[str, int]:
    """Labels that differ although both arms say the same there, and how many could."""
    pairs = pair_labels(verdicts, pair)
    own = pairs.loc[pairs.index.intersection(unchanged_facts(facts, transcripts, pair))]
    seen = own.dropna(subset=["label_a", "label_b"])
    return {
        "same text": len(seen),
        "labels differ": int((seen["label_a"] != seen["label_b"]).sum()),
    }


def effect_table(
    verdicts: pd.DataFrame,
    facts: pd.DataFrame,
    transcripts: pd.DataFrame,
    pairs: Sequence[Sequence[str]],
    noise: pd.DataFrame | None,
) -> pd.DataFrame:
    """Each contrast in points; beside it its noise floor, bounds and null control."""
    floors = noise_floors(ENDPOINTS, noise)
    rows = []
    for pair in pairs:
        control = null_control(verdicts, facts, transcripts, pair)
        labels = pair_labels(verdicts, pair)
        for label, floor in zip(ENDPOINTS.values(), floors, strict=True):
            a, b, _ = _outcomes(labels, label)
            limits = fact_bounds(verdicts, pair, label)
            rows.append(
                {
                    "contrast": f"{pair[1]} - {pair[0]}", "label": label, "facts": len(a),
                    "points": 100 * float((b - a).mean()) if len(a) else float("nan"),
                    "noise floor": 100 * floor,
                    "bound low": 100 * limits.low, "bound high": 100 * limits.high,
                    "unresolved": limits.n_unresolved, **control,
                }
            )  # fmt: skip
    return pd.DataFrame(rows)


def edit_bounds(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Judged outcomes of edits, renderer b minus a in points, with unresolved at both extremes.

    An edit that was never rendered has failed, as everywhere; it is neither realised nor
    retained and not unresolved. Uncertain and invalid verdicts are.
    """
    sides = []
    for name in RENDERERS:
        own = verdicts[verdicts["condition"] == name].sort_values(["intention_id", "order"])
        sides.append(own.drop_duplicates("intention_id").set_index("intention_id"))
    shared = sides[0].index.intersection(sides[1].index)
    rows = []
    for endpoint, (column, value) in LEXICAL.items():
        counts = []
        for side in (own.loc[shared] for own in sides):
            unrendered = (side["status"] != "ok") & (side["attempts"] == 0)
            unresolved = (side[column].isna() & ~unrendered) | (side[column] == "uncertain")
            counts.append((int((side[column] == value).sum()), int(unresolved.sum())))
        limits = stats.difference_bounds(counts[0], counts[1], len(shared))
        points = 100 * (counts[1][0] - counts[0][0]) / len(shared) if len(shared) else float("nan")
        rows.append(
            {
                "endpoint": endpoint, "edits": len(shared), "points": points,
                "bound low": 100 * limits.low, "bound high": 100 * limits.high,
                "unresolved": limits.n_unresolved,
            }
        )  # fmt: skip
    return pd.DataFrame(rows)


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
