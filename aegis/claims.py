"""The numbers that prose may use, each with what it rests on.

A claim has a value, its numerator and denominator, how many items are unknown and to how
many it does not apply, and an interval where one can be estimated. Text, index page and
README take numbers from the table ``claims`` and from nowhere else.

Functions: :func:`lexical_claims`, :func:`word_error_claims`, :func:`linkage_claims`,
:func:`contrast_claims`, :func:`population_claims`, :func:`realised_retained`,
:func:`tradeoff`.
"""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from aegis import stats
from aegis.contrasts import LEXICAL, RENDERERS, UNRESOLVED, Draws, Row, word_errors
from aegis.stats import Estimate
from aegis.tables import CONDITIONS


def claim_row(
    claim_id: str,
    label: str,
    estimate: Estimate,
    numerator: float = math.nan,
    denominator: float = math.nan,
    unknown: int = 0,
    not_applicable: int = 0,
    unit: str = "share",
) -> Row:
    """One row of ``claims``."""
    return {
        "claim_id": claim_id, "label": label, "value": estimate.value, "unit": unit,
        "numerator": numerator, "denominator": denominator, "unknown": unknown,
        "not_applicable": not_applicable, "ci_low": estimate.ci_low, "ci_high": estimate.ci_high,
        "status": estimate.status, "reason": estimate.reason,
    }  # fmt: skip


def count_row(claim_id: str, label: str, value: float, unit: str) -> Row:
    """A plain count or amount."""
    return claim_row(claim_id, label, Estimate(float(value)), numerator=float(value), unit=unit)


def lexical_claims(matches: pd.DataFrame, draws: Draws, n_draws: int) -> list[Row]:
    """Realised, retained and uncertain by scope and condition; failures count as unknown.

    Ids of the focused scope are ``realised_renderer_a``; those of whole conversations
    ``realised_conversation_renderer_a``. Beside retained cases stands how often the
    planned text itself still holds the original; the denominator is never corrected.
    """
    outcomes = {**LEXICAL, "uncertain": ("original_status", "uncertain")}
    rows = []
    for (scope, condition), own in matches.groupby(["scope", "condition"], sort=True):
        place = condition if scope == "focused" else f"{scope}_{condition}"
        for endpoint, (column, value) in outcomes.items():
            asked = own[own[column] != "not_applicable"]
            hit = (asked[column] == value).to_numpy(dtype=bool)
            open_ = UNRESOLVED if endpoint != "uncertain" else ("failed",)
            unknown, absent = int(asked[column].isin(open_).sum()), len(own) - len(asked)
            estimate = stats.rate(hit, asked["recording_id"].tolist(), draws(), n_draws)
            label = f"{endpoint}, {scope}, {condition}"
            counts = (int(hit.sum()), len(asked), unknown, absent)
            rows.append(claim_row(f"{endpoint}_{place}", label, estimate, *counts))
        kept = own[own["original_status"] == "retained"]
        planned = kept["planned_text_holds_original"].to_numpy(dtype=bool)
        estimate = stats.rate(planned, kept["recording_id"].tolist(), draws(), n_draws)
        label = f"retained and in the planned text, {scope}, {condition}"
        name = f"retained_planned_{place}"
        rows.append(claim_row(name, label, estimate, int(planned.sum()), len(kept)))
    return rows


def word_error_claims(scores: pd.DataFrame, draws: Draws, n_draws: int) -> list[Row]:
    """Corpus WER by condition and reference; recordings without a score are unknown."""
    rows = []
    for (condition, reference), own in scores.groupby(["condition", "reference"], sort=True):
        done = word_errors(own)
        names = done["recording_id"].tolist()
        errors, words = done["errors"].to_numpy(), done["words"].to_numpy()
        estimate = stats.ratio_rate(errors, words, names, draws(), n_draws)
        unknown = int(own["status"].isin(["failed", "unknown"]).sum())
        absent = len(own) - len(done) - unknown
        name, label = (
            f"wer_{condition}_{reference}",
            f"word error rate, {condition}, against {reference}",
        )
        total = (float(errors.sum()), float(words.sum()))
        rows.append(claim_row(name, label, estimate, *total, unknown, absent))
    return rows


def linkage_claims(linkage: pd.DataFrame, eligibility: pd.DataFrame) -> list[Row]:
    """Attacker-optimal error rates, with profiles that are unknown or not applicable."""
    rows = []
    for row in linkage[linkage["orientation"] == "attacker"].to_dict("records"):
        place = ["condition", "region_kind", "backend"]
        own = eligibility[(eligibility[place] == [row[key] for key in place]).all(axis=1)]
        fate = own["status"].value_counts()
        estimate = Estimate(
            _number(row["eer"]), _number(row["ci_low"]), _number(row["ci_high"]),
            status=row["status"], reason=None if pd.isna(row["reason"]) else row["reason"],
        )  # fmt: skip
        name = "_".join(row[key] for key in ("protocol", *place))
        label = f"equal error rate, {row['protocol']}, {', '.join(row[key] for key in place)}"
        counts = (int(fate.get("unknown", 0)), int(fate.get("not_applicable", 0)))
        rows.append(claim_row(
            f"eer_{name}", label, estimate, math.nan, row["n_target"] + row["n_nontarget"],
            *counts,
        ))  # fmt: skip
    return rows


def contrast_claims(contrasts: pd.DataFrame) -> list[Row]:
    """Each contrast as a claim under its own id; the value is a difference of shares."""
    rows = []
    for row in contrasts.to_dict("records"):
        estimate = Estimate(
            _number(row["estimate"]), _number(row["ci_low"]), _number(row["ci_high"]),
            status=row["status"], reason=None if pd.isna(row["reason"]) else row["reason"],
        )  # fmt: skip
        label = f"{row['endpoint']}, {row['condition_b']} minus {row['condition_a']}"
        items = float(row["n_items"])
        rows.append(
            claim_row(row["contrast_id"], label, estimate, math.nan, items, unit="difference")
        )
    return rows


def realised_retained(claims: pd.DataFrame) -> pd.DataFrame:
    """One row a renderer: realised and retained with intervals, focused scope."""
    known = claims.set_index("claim_id")
    rows = []
    for condition in RENDERERS:
        names = {end: f"{end}_{condition}" for end in LEXICAL}
        if not all(name in known.index for name in names.values()):
            continue
        row: Row = {"condition": condition}
        for end, name in names.items():
            row[end] = known.loc[name, "value"]
            row[f"{end}_low"], row[f"{end}_high"] = known.loc[name, ["ci_low", "ci_high"]]
        if not any(pd.isna(row[end]) for end in names):
            rows.append(row)
    return pd.DataFrame(rows)


def tradeoff(claims: pd.DataFrame, reference: str) -> pd.DataFrame:
    """Word error rate (``x``) and final-waveform EER over all turns (``y``) by condition.

    Of several backends the first by name. Original speech is tested against originals, on the
    trials of the converted condition. Conditions without both numbers are left out.
    """
    known = claims.dropna(subset=["value"]).set_index("claim_id")["value"]
    rows = []
    for condition in CONDITIONS:
        place = "original_converted" if condition == "original" else condition
        beginning = f"eer_final_{place}_all_turns_"
        found = [name for name in known.index if str(name).startswith(beginning)]
        words = f"wer_{condition}_{reference}"
        if found and words in known.index:
            rows.append({
                "condition": condition, "x": float(known[words]),
                "y": float(known[sorted(found)[0]]),
            })  # fmt: skip
    return pd.DataFrame(rows, columns=["condition", "x", "y"])


def population_claims(
    recordings: pd.DataFrame,
    profiles: pd.DataFrame,
    turns: pd.DataFrame,
    edits: pd.DataFrame,
    regions: pd.DataFrame,
    reconstructions: pd.DataFrame,
) -> list[Row]:
    """How much there is: recordings, minutes, profiles, turns, edits, regions, retained."""
    done = recordings[recordings["status"] == "ok"]
    rows = [
        count_row("n_recordings", "recordings", len(done), "recordings"),
        count_row("n_recordings_failed", "recordings not usable", len(recordings) - len(done),
                  "recordings"),
        count_row("minutes", "duration", float(done["duration_s"].sum()) / 60, "minutes"),
        count_row("n_profiles", "conversation-speaker profiles", len(profiles), "profiles"),
        count_row("n_turns", "turns", len(turns), "turns"),
        count_row("n_intentions", "focused edit intentions", len(edits), "intentions"),
        count_row("n_regions", "composed regions (affected turns)", len(regions), "regions"),
    ]  # fmt: skip
    for condition, own in reconstructions.groupby("condition", sort=True):
        kept = int(own["n_retained"].sum())
        label = f"regions that keep converted speech, {condition}"
        share = Estimate(kept / len(regions) if len(regions) else math.nan)
        rows.append(claim_row(f"retained_regions_{condition}", label, share, kept, len(regions)))
    return rows


def _number(value: Any) -> float:
    return math.nan if pd.isna(value) else float(value)
