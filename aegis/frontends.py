"""A front end's own errors: words, words with their speaker, speaker time.

Unit: one recording heard by one front end (a recogniser with a diarizer). Reference words
and speakers are the script's. Words carry no times here, so a front end without any is
scored like the others. Counts are summed over recordings, never averaged.

What follows a front end needs word times: without any, no edit has a place and everything
downstream is not applicable, however good the words are.

Functions: :func:`score_recordings`, :func:`count_speaker_errors`, :func:`cell_measures`,
:func:`complete_cells`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment

from aegis.measures import COLUMNS
from aegis.speaker_scores import score_diarization
from aegis.text import count_errors, normalise

ENGLISH_ONLY = "English only"
NO_TIMES = "no word has times: no edit can be localised"

Row = dict[str, Any]


def errors_of(reference: str, hypothesis: str) -> int:
    """Word errors of two normalised texts."""
    counts = count_errors(reference, hypothesis)
    return counts.substitutions + counts.deletions + counts.insertions


def count_speaker_errors(reference: Mapping[str, str], heard: Mapping[str, str]) -> int:
    """Least word errors over all ways to pair speakers, each side's leftovers in full.

    With the reference words as denominator this is the cpWER: texts of one speaker are
    joined in order, and words given to the wrong speaker count as errors.
    """
    truth, found = list(reference.values()), list(heard.values())
    size = max(len(truth), len(found))
    truth += [""] * (size - len(truth))
    found += [""] * (size - len(found))
    cost = np.array([[errors_of(a, b) for b in found] for a in truth]).reshape(size, size)
    rows, columns = linear_sum_assignment(cost)
    return int(cost[rows, columns].sum())


def score_recordings(
    tables: Mapping[str, pd.DataFrame], gold_turns: pd.DataFrame, gold_speech: pd.DataFrame
) -> pd.DataFrame:
    """One row a recording of ``screening``: what this front end got wrong.

    Parameters
    ----------
    tables
        ``screening words diarization`` as the front end wrote them.

    Returns
    -------
    DataFrame
        ``recording_id n_reference word_errors speaker_word_errors scored_s
        diarization_error_s n_words n_untimed speech_s covered_s downstream
        downstream_reason status reason``. A language that a recogniser does not know is not
        applicable, and so is the downstream of words of which none has times; without a
        script errors are NA.
    """
    speech = score_diarization(
        tables["diarization"][tables["diarization"]["mode"] == "used"], gold_speech
    ).set_index("recording_id")
    words = dict(list(tables["words"].sort_values("word_index").groupby("recording_id")))
    truth = dict(list(gold_turns.sort_values("start_s").groupby("recording_id")))
    rows = []
    for row in tables["screening"].to_dict("records"):
        name, reason = row["recording_id"], row["reason"]
        foreign = row["status"] == "failed" and ENGLISH_ONLY in str(reason)
        kept = ("n_words", "n_untimed", "speech_s", "covered_s")
        out = {"recording_id": name, "reason": None if pd.isna(reason) else reason}
        out |= {column: row[column] for column in kept}
        out["status"] = "not_applicable" if foreign else row["status"]
        out["downstream"], out["downstream_reason"] = _downstream(out)
        if row["status"] == "ok" and name in truth:
            out |= _errors(truth[name], words.get(name), row["language"])
        if row["status"] == "ok" and name in speech.index:
            times = speech.loc[name]
            out["scored_s"] = times["scored_s"]
            out["diarization_error_s"] = times[["missed_s", "false_alarm_s", "confusion_s"]].sum()
        rows.append(out)
    columns = [
        "recording_id", "n_reference", "word_errors", "speaker_word_errors", "scored_s",
        "diarization_error_s", "n_words", "n_untimed", "speech_s", "covered_s", "downstream",
        "downstream_reason", "status", "reason",
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def _downstream(row: Row) -> tuple[str, str | None]:
    """Status and reason of all that follows one heard recording."""
    if row["status"] == "ok" and 0 < row["n_words"] == row["n_untimed"]:
        return "not_applicable", NO_TIMES
    return row["status"], row["reason"]


def _errors(truth: pd.DataFrame, words: pd.DataFrame | None, language: str) -> Row:
    said = {k: " ".join(own["text"]) for k, own in truth.groupby("speaker")}
    heard: dict[str, str] = {}
    if words is not None:
        named = words.assign(speaker=words["speaker"].fillna("nobody"))
        heard = {k: " ".join(own["text"]) for k, own in named.groupby("speaker")}
    plain = [{k: normalise(v, language) for k, v in side.items()} for side in (said, heard)]
    reference = normalise(" ".join(truth["text"]), language)
    spoken = normalise(" ".join(words["text"]) if words is not None else "", language)
    return {
        "n_reference": len(reference.split()), "word_errors": errors_of(reference, spoken),
        "speaker_word_errors": count_speaker_errors(*plain),
    }  # fmt: skip


def cell_measures(scores: pd.DataFrame) -> pd.DataFrame:
    """A front end's own measures in the form of :func:`aegis.measures.read_measures`."""
    own = scores[scores["status"] == "ok"]
    pairs = {
        "word errors": ("word_errors", "n_reference"),
        "word errors with the right speaker (cpWER)": ("speaker_word_errors", "n_reference"),
        "diarization error": ("diarization_error_s", "scored_s"),
    }
    rows = []
    for measure, (hits, whole) in pairs.items():
        known = own.dropna(subset=[hits, whole])
        top, bottom = float(known[hits].sum()), float(known[whole].sum())
        rows.append({
            "measure": measure, "condition": "front end", "numerator": top, "denominator": bottom,
            "unknown": len(own) - len(known), "value": top / bottom if bottom else np.nan,
        })  # fmt: skip
    return pd.DataFrame(rows, columns=COLUMNS)


def complete_cells(measured: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
    """Every pair with every measure that any pair has; what it lacks is NA with its reason.

    Parameters
    ----------
    measured
        ``asr diarizer`` and the columns of :func:`aegis.measures.read_measures`.
    cells
        :func:`score_recordings` of all pairs, with ``asr diarizer``.

    Returns
    -------
    DataFrame
        Table ``frontend_measures``.
    """
    pair, measure = ["asr", "diarizer"], ["measure", "condition"]
    asked = measured[measure].drop_duplicates()
    untimed = cells.groupby(pair)["downstream_reason"].agg(lambda own: NO_TIMES in set(own))
    every = untimed.rename("untimed").reset_index().merge(asked, how="cross")
    out = every.merge(measured, how="left", on=[*pair, *measure])
    known = out["value"].notna()
    reason = out["untimed"].map({True: NO_TIMES, False: "no item of this measure"})
    out["unknown"] = out["unknown"].fillna(0).astype(int)
    status = known.map({True: "ok", False: "not_applicable"})
    return out[[*pair, *COLUMNS]].assign(status=status, reason=reason.mask(known, None))
