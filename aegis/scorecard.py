"""What the embedded engines reach on material whose truth is known, beside the aims.

A row is one aim: a value with the numerator and denominator it comes from, the aim and its
direction (``>=`` or ``<=``). A row without truth, or whose stage has not run, is absent
from the results but kept with its reason and no value. Counts are pooled over recordings,
never averaged ratios.

Every function returns rows for the table ``scorecard``; none reads a file.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import pandas as pd

from aegis.contrasts import LEXICAL, RENDERERS, focused, word_errors
from aegis.linkage import beside_original
from aegis.scripts import Script

Row = dict[str, Any]

AIMS: dict[str, tuple[str, float]] = {
    "asr_wer_en_clean": ("<=", 0.07),
    "asr_wer_fr": ("<=", 0.15),
    "diarization_error_given": ("<=", 0.07),
    "n_speakers_right": (">=", 0.75),
    "words_right_speaker": (">=", 0.95),
    "covered_heard_en": (">=", 0.98),
    "covered_heard_fr": (">=", 0.95),
    "covered_spoken_en": (">=", 0.90),
    "covered_spoken_fr": (">=", 0.60),
    "typed_right": (">=", 0.95),
    "clinical_terms_touched": ("<=", 0.01),
    "realised_better_renderer": (">=", 0.90),
    "retained_better_renderer": ("<=", 0.02),
    "uncertain_better_renderer": ("<=", 0.10),
    "profiles_assigned": (">=", 1.0),
    "nearer_to_target": (">=", 0.80),
    "eer_above_original": (">=", 0.10),
}
"""The aims of the demo; other metrics are reported without one."""


def card_row(
    metric: str,
    numerator: float,
    denominator: float,
    note: str | None = None,
    value: float | None = None,
) -> Row:
    """One row; the value is the ratio unless it is given, and an empty denominator has none."""
    if value is None:
        value = numerator / denominator if denominator else math.nan
    direction, aim = AIMS.get(metric, ("", math.nan))
    met = None
    if direction and not math.isnan(value):
        # A share such as 49/50 must meet an aim of 0.98 in spite of rounding.
        gap = value - aim if direction == ">=" else aim - value
        met = gap >= -1e-12
    return {
        "metric": metric, "value": value, "numerator": float(numerator),
        "denominator": float(denominator), "aim": aim, "direction": direction, "met": met,
        "note": note,
    }  # fmt: skip


def absent_rows(metrics: Iterable[str], reason: str) -> list[Row]:
    """Aims that this run cannot speak to, with the reason."""
    return [card_row(metric, math.nan, math.nan, reason, math.nan) for metric in metrics]


def complete(rows: Iterable[Row]) -> list[Row]:
    """The rows, and every aim that none of them covers as absent."""
    found = list(rows)
    lacking = [metric for metric in AIMS if metric not in {row["metric"] for row in found}]
    return found + absent_rows(lacking, "no truth, or its stage has not run")


def hard_recordings(scripts: Iterable[Script]) -> set[str]:
    """Scripted recordings with declared noise, overlap, telephone rate or separate channels."""
    return {
        script.recording_id
        for script in scripts
        if script.rendering.noise_snr_db is not None
        or script.rendering.layout != "mono"
        or script.rendering.sample_rate_hz < 16_000
        or any(turn.overlap_s > 0 for turn in script.turns)
    }


def word_error_rows(
    scores: pd.DataFrame, language_of: Mapping[str, str], clean: Collection[str]
) -> list[Row]:
    """WER of the original's transcript against the script, by language; clean ones apart.

    The aim holds for the plain normal form; numbers compared by value stand beside it.
    """
    rows = []
    for reference, ending in (("gold", ""), ("gold_by_value", "_by_value")):
        own = scores[(scores["condition"] == "original") & (scores["reference"] == reference)]
        done = word_errors(own)
        language = done["recording_id"].map(language_of)
        is_clean = done["recording_id"].isin(set(clean))
        groups = {
            "asr_wer_en_clean": (language == "en") & is_clean,
            "asr_wer_en_hard": (language == "en") & ~is_clean,
            "asr_wer_fr": language == "fr",
        }
        for metric, held in groups.items():
            if held.any():
                errors, words = (float(done.loc[held, name].sum()) for name in ("errors", "words"))
                note = f"{int(held.sum())} recordings"
                rows.append(card_row(metric + ending, errors, words, note))
    return rows


def speaker_count_rows(screening: pd.DataFrame, true_counts: Mapping[str, int]) -> list[Row]:
    """Recordings of two or more speakers whose number the diarizer found by itself."""
    known = screening[screening["recording_id"].map(true_counts).fillna(0) > 1]
    known = known[known["n_speakers_found"].notna()]
    if known.empty:
        return []
    right = known["n_speakers_found"].astype(int) == known["recording_id"].map(true_counts)
    return [card_row("n_speakers_right", int(right.sum()), len(known), "found automatically")]


def diarization_rows(scores: Mapping[str, pd.DataFrame], two_clean: Collection[str]) -> list[Row]:
    """Pooled diarization error by mode: ``given`` and ``automatic`` number of speakers.

    Parameters
    ----------
    scores
        Seconds a recording, from ``speaker_scores.score_diarization``, by mode.
    two_clean
        Clean recordings of two speakers, for which the aim holds; the others stand beside.
    """
    rows = []
    for mode, own in scores.items():
        clean = own["recording_id"].isin(set(two_clean))
        for metric, held in (("", clean), ("_hard", ~clean)):
            if held.any():
                parts = own.loc[held, ["missed_s", "false_alarm_s", "confusion_s"]]
                wrong, total = (
                    float(parts.to_numpy().sum()),
                    float(own.loc[held, "scored_s"].sum()),
                )
                note = f"{int(held.sum())} recordings, seconds"
                rows.append(card_row(f"diarization_error_{mode}{metric}", wrong, total, note))
    return rows


def attribution_rows(scores: pd.DataFrame) -> list[Row]:
    """Recognised words given to the speaker who said them, from ``score_attribution``."""
    if not len(scores):
        return []
    right, words = float(scores["n_right"].sum()), float(scores["n_words"].sum())
    return [card_row("words_right_speaker", right, words, f"{len(scores)} recordings")]


def detection_rows(scores: pd.DataFrame, touched: int, clinical_terms: int) -> list[Row]:
    """Coverage of scripted identifiers; a partly covered one is a leak.

    Parameters
    ----------
    scores
        One row a scripted mention, from ``phi.score_detection``.
    touched, clinical_terms
        Protected clinical terms that a mention touches, of all that were recognised.
    """
    rows = []
    for language, own in scores.groupby("language", sort=True):
        exact = own[own["heard"].astype(bool)]
        if len(exact):
            note = f"{len(exact)} of {len(own)} spoken mentions heard exactly"
            rows.append(_share(f"covered_heard_{language}", exact["covered"], note))
        note = "garbled ones count when nothing of them stands outside the detected spans"
        rows.append(_share(f"covered_spoken_{language}", own["covered_any"], note))
    found = scores[(scores["heard"] & scores["covered"]).astype(bool)]
    if len(found):
        rows.append(_share("typed_right", found["typed"], "mentions heard exactly and covered"))
    if clinical_terms:
        rows.append(card_row("clinical_terms_touched", touched, clinical_terms))
    return rows


def _share(metric: str, held: pd.Series, note: str) -> Row:
    return card_row(metric, int(held.astype(bool).sum()), len(held), note)


def lexical_rows(matches: pd.DataFrame) -> list[Row]:
    """Realised, retained and uncertain by renderer; the aims hold for the better one."""
    own = focused(matches)
    counts = {name: _lexical_counts(own[own["condition"] == name]) for name in RENDERERS}
    counts = {name: found for name, found in counts.items() if found["n"]}
    if not counts:
        return []
    best = max(counts, key=lambda name: counts[name]["realised"] / counts[name]["n"])
    rows = []
    for endpoint in ("realised", "retained", "uncertain"):
        for name, found in counts.items():
            rows.append(card_row(f"{endpoint}_{name}", found[endpoint], found["n"]))
        chosen = counts[best]
        rows.append(card_row(f"{endpoint}_better_renderer", chosen[endpoint], chosen["n"], best))
    for name, found in counts.items():
        note = "not counted: the planned text itself holds the original word elsewhere"
        rows.append(card_row(f"retained_beyond_plan_{name}", found["unplanned"], found["n"], note))
    return rows


def _lexical_counts(own: pd.DataFrame) -> dict[str, int]:
    counts = {name: int((own[column] == value).sum()) for name, (column, value) in LEXICAL.items()}
    uncertain = int((own["original_status"] == "uncertain").sum())
    kept = (own["original_status"] == "retained") & ~own["planned_text_holds_original"]
    return {**counts, "uncertain": uncertain, "unplanned": int(kept.sum()), "n": len(own)}


def assignment_rows(assignments: pd.DataFrame, profiles: pd.DataFrame) -> list[Row]:
    """Profiles with a pseudo-voice."""
    done = assignments[(assignments["status"] == "ok") & (assignments["pseudo_profile"] == 1)]
    held = profiles["profile_id"].isin(set(done["profile_id"]))
    return [card_row("profiles_assigned", int(held.sum()), len(profiles))] if len(profiles) else []


def nearer_rows(trials: pd.DataFrame) -> list[Row]:
    """Converted profiles nearer to their assigned voice than to their source, by backend."""
    keys = ["backend", "enrol"]
    shared = trials[trials["target"] & (trials["protocol"] == "shared")]
    voice = trials[trials["protocol"] == "target_voice"]
    both = shared.merge(voice, on=keys, suffixes=("_source", "_voice"))
    rows = []
    for backend, own in both.groupby("backend", sort=True):
        near = int((own["score_voice"] > own["score_source"]).sum())
        rows.append(card_row(f"nearer_to_target_{backend}", near, len(own)))
    return [*rows, *_worst("nearer_to_target", rows)]


def _worst(metric: str, rows: list[Row]) -> list[Row]:
    """The aim itself is judged on the backend that fares worst."""
    known = [row for row in rows if not math.isnan(row["value"])]
    if not known:
        return []
    lowest = min(known, key=lambda row: row["value"])
    note = f"lowest of {len(known)}: {lowest['metric']}"
    return [card_row(metric, lowest["numerator"], lowest["denominator"], note, lowest["value"])]


def linkage_rows(linkage: pd.DataFrame) -> list[Row]:
    """Attacker-optimal EER minus the original-original EER of the same trials, all turns."""
    beside = beside_original(linkage)
    own = beside[(beside["region_kind"] == "all_turns") & (beside["condition"] != "redacted")]
    rows = []
    for row in own.to_dict("records"):
        if pd.isna(row["above_original"]):
            continue
        name = f"eer_above_original_{row['protocol']}_{row['condition']}_{row['backend']}"
        note = f"{100 * row['eer']:.1f} % against {100 * row['eer_original']:.1f} %"
        gap = float(row["above_original"])
        rows.append(card_row(name, row["n_target"], row["n_nontarget"], note, gap))
    return [*rows, *_worst("eer_above_original", rows)]
