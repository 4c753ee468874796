"""Paired contrasts between conditions, and the numbers that prose may use.

The unit is the item of each endpoint: an edit intention for lexical outcomes, a recording
for word errors, a profile for linkage; the cluster is the recording, everywhere. Failures
and uncertain outcomes stay in the denominator and count neither as success nor as absence;
what they could change is shown by bounds. Differences are ``condition_b`` minus
``condition_a``. Families of the Holm adjustment and their sizes are declared in
:data:`FAMILIES`; a test that did not run still takes its place.

Functions: :func:`lexical_contrasts`, :func:`word_error_contrasts`,
:func:`linkage_contrasts`, :func:`absent_contrasts`, :func:`adjust_families`;
:func:`lexical_claims`, :func:`word_error_claims`, :func:`linkage_claims`,
:func:`contrast_claims`, :func:`population_claims`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from aegis import stats
from aegis.linkage import read_trials
from aegis.stats import Bounds, Estimate, Floats
from aegis.trials import N_DRAWS as N_DRAWS_EER
from aegis.trials import eer_difference

FAMILIES = {"retention and contradiction": 2, "original control": 6}
"""Declared sizes: two secondary endpoints; two endpoints by three transformed conditions."""
RENDERERS = ("renderer_a", "renderer_b")
LEXICAL = {
    "realised": ("replacement_status", "realised"),
    "retained": ("original_status", "retained"),
}
"""Endpoint -> the column of ``lexical_matches`` and the value that counts."""
UNRESOLVED = ("uncertain", "failed")

Row = dict[str, Any]
Draws = Callable[[], np.random.Generator]


# --- contrasts -------------------------------------------------------------------------


def contrast_row(
    endpoint: str,
    conditions: Sequence[str],
    estimate: Estimate,
    equal: Estimate | None = None,
    p: float = math.nan,
    family: str | None = None,
) -> Row:
    """One row of ``contrasts``; the id is the endpoint with its two conditions."""
    a, b = conditions
    return {
        "contrast_id": f"{endpoint}: {b} - {a}", "endpoint": endpoint, "condition_a": a,
        "condition_b": b, "estimate": estimate.value, "ci_low": estimate.ci_low,
        "ci_high": estimate.ci_high, "equal_conversation": equal.value if equal else math.nan,
        "n_items": estimate.n_items, "n_clusters": estimate.n_clusters, "p": p,
        "p_holm": math.nan, "family": family, "status": estimate.status,
        "reason": estimate.reason,
    }  # fmt: skip


def focused(matches: pd.DataFrame) -> pd.DataFrame:
    """The generated-turn benchmark: one substitution alone in its turn."""
    return matches[matches["scope"] == "focused"]


def pair_outcomes(
    matches: pd.DataFrame, endpoint: str, conditions: Sequence[str]
) -> tuple[Floats, Floats, list[str]]:
    """0/1 outcomes of the intentions present in both conditions, and their recordings.

    Raises
    ------
    ValueError
        An intention occurs twice in one condition.
    """
    column, value = LEXICAL[endpoint]
    sides = [matches[matches["condition"] == name] for name in conditions]
    places = stats.match_items(*(side["intention_id"].tolist() for side in sides))
    a, b = (
        (side[column].to_numpy(dtype=object)[place] == value).astype(np.float64)
        for side, place in zip(sides, places, strict=True)
    )
    recordings = sides[0]["recording_id"].to_numpy(dtype=object)[places[0]]
    return a, b, [str(name) for name in recordings]


def lexical_contrasts(matches: pd.DataFrame, draws: Draws, n_draws: int) -> list[Row]:
    """Realised and retained, renderer b minus a; the sign-flip test is for retained."""
    rows = []
    for endpoint in LEXICAL:
        a, b, recordings = pair_outcomes(focused(matches), endpoint, RENDERERS)
        difference = stats.paired_difference(a, b, recordings, draws(), n_draws)
        equal = stats.equal_conversation_rate(b - a, np.ones_like(a), recordings, draws(), n_draws)
        if endpoint == "retained":
            flip = stats.sign_flip(b - a, recordings, draws())
            family = "retention and contradiction"
            rows.append(contrast_row(endpoint, RENDERERS, difference, equal, flip.p, family))
        else:
            rows.append(contrast_row(endpoint, RENDERERS, difference, equal))
    return rows


def word_errors(scores: pd.DataFrame) -> pd.DataFrame:
    """Scored recordings with their summed errors."""
    done = scores[scores["status"] == "ok"]
    total = done[["substitutions", "deletions", "insertions"]].sum(axis=1)
    return done.assign(errors=total.astype(float), words=done["n_reference"].astype(float))


def word_error_contrasts(
    scores: pd.DataFrame,
    pairs: Iterable[Sequence[str]],
    reference: str,
    draws: Draws,
    n_draws: int,
) -> list[Row]:
    """Corpus WER of ``b`` minus ``a`` on the recordings scored in both, from summed counts."""
    done = word_errors(scores[scores["reference"] == reference])
    rows = []
    for pair in pairs:
        sides = [done[done["condition"] == name] for name in pair]
        places = stats.match_items(*(side["recording_id"].tolist() for side in sides))
        a, b = (side.iloc[place] for side, place in zip(sides, places, strict=True))
        names = a["recording_id"].tolist()
        counts = [(side["errors"].to_numpy(), side["words"].to_numpy()) for side in (a, b)]
        difference = stats.ratio_difference(counts[0], counts[1], names, draws(), n_draws)
        rates = [errors / np.where(words > 0, words, np.nan) for errors, words in counts]
        gap = rates[1] - rates[0]
        known = ~np.isnan(gap)
        equal = stats.rate(gap[known], np.array(names, object)[known], draws(), n_draws)
        rows.append(contrast_row(f"wer against {reference}", pair, difference, equal))
    return rows


def linkage_contrasts(
    trials: pd.DataFrame, draws: Draws, n_draws: int = N_DRAWS_EER, orientation: str = "attacker"
) -> list[Row]:
    """EER of renderer b minus a, by backend and region kind, on profiles eligible in both."""
    final = trials[trials["protocol"] == "final"]
    rows = []
    for (kind, backend), own in final.groupby(["region_kind", "backend"], sort=True):
        sides = [own[own["condition"] == name] for name in RENDERERS]
        endpoint = f"eer {kind} ({backend}, {orientation})"
        if any(side.empty for side in sides):
            reason = "no trials in one of the conditions"
            absent = Estimate(math.nan, status="not_applicable", reason=reason)
            rows.append(contrast_row(endpoint, RENDERERS, absent))
            continue
        a, b = (read_trials(side) for side in sides)
        estimate = eer_difference(a, b, draws(), orientation, n_draws)
        rows.append(contrast_row(endpoint, RENDERERS, estimate))
    return rows


def absent_contrasts(missing: Sequence[str]) -> list[Row]:
    """What the fact and judge stages would add, said as not run."""
    reason = f"not run: {', '.join(missing)}"
    absent = Estimate(math.nan, status="not_applicable", reason=reason)
    second = "retention and contradiction"
    rows = [
        contrast_row("fact preserved", RENDERERS, absent),
        contrast_row("fact contradicted", RENDERERS, absent, family=second),
        contrast_row("realised (judge)", RENDERERS, absent),
    ]
    for condition in ("converted", *RENDERERS):
        for endpoint in ("fact preserved", "fact contradicted"):
            pair = ("original", condition)
            rows.append(contrast_row(endpoint, pair, absent, family="original control"))
    return rows


def adjust_families(rows: Sequence[Row]) -> list[Row]:
    """Fill ``p_holm`` within each declared family; no claim joins two families."""
    adjusted: dict[str, float] = {}
    for family, size in FAMILIES.items():
        tests = {row["contrast_id"]: row["p"] for row in rows if row["family"] == family}
        adjusted |= stats.holm(tests, size)
    return [{**row, "p_holm": adjusted.get(row["contrast_id"], math.nan)} for row in rows]


# --- claims ------------------------------------------------------------------------------


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


def count_outcomes(matches: pd.DataFrame) -> pd.DataFrame:
    """Hits and items of each endpoint and condition."""
    rows = [
        {"endpoint": endpoint, "condition": condition, "hits": int((own[column] == value).sum()),
         "items": len(own)}
        for condition, own in focused(matches).groupby("condition", sort=True)
        for endpoint, (column, value) in LEXICAL.items()
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=["endpoint", "condition", "hits", "items"])


def lexical_bounds(matches: pd.DataFrame, endpoint: str) -> Bounds:
    """What the unresolved outcomes of both renderers could do to the contrast."""
    column, value = LEXICAL[endpoint]
    own = focused(matches)
    sides = [own[own["condition"] == name] for name in RENDERERS]
    shared = set(sides[0]["intention_id"]) & set(sides[1]["intention_id"])
    a, b = (
        (int((side[column] == value).sum()), int(side[column].isin(UNRESOLVED).sum()))
        for side in (side[side["intention_id"].isin(shared)] for side in sides)
    )
    return stats.difference_bounds(a, b, len(shared))


def describe_limits(matches: pd.DataFrame, endpoint: str) -> Row:
    """Bounds of a renderer contrast, and the difference that a study of this size would find."""
    bounds = lexical_bounds(matches, endpoint)
    a, b, recordings = pair_outcomes(focused(matches), endpoint, RENDERERS)
    least = stats.minimal_detectable_difference(b - a, recordings) if len(a) else math.nan
    return {
        "endpoint": endpoint, "items": bounds.n_items, "unresolved": bounds.n_unresolved,
        "bound_low": bounds.low, "bound_high": bounds.high, "detectable": least,
    }  # fmt: skip


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


def show(value: Any, scale: float = 100.0, digits: int = 1) -> str:
    """A number for a sentence, in points unless ``scale`` says otherwise."""
    return "not estimable" if pd.isna(value) else f"{scale * float(value):.{digits}f}"


def _number(value: Any) -> float:
    return math.nan if pd.isna(value) else float(value)
