"""What became of a run, as rates with their counts: one tidy table for comparisons.

Unit: one measure of one run in one condition. A rate is a numerator over a denominator of
its own unit (recordings, seconds, words, edits, facts); nothing is averaged. ``unknown``
counts items of the denominator whose outcome is uncertain or failed. An error rate that is
no ratio of counts (EER) has a value only. A measure whose table is absent has no row.

Functions: :func:`read_measures`, :func:`pair_measures`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd

from aegis.tables import Run

COLUMNS = ["measure", "condition", "numerator", "denominator", "unknown", "value"]
NO_CONDITION = "all"

Row = dict[str, Any]


def _row(
    measure: str, numerator: float, denominator: float, condition: str = "", unknown: int = 0
) -> Row:
    value = numerator / denominator if denominator else math.nan
    return {
        "measure": measure, "condition": condition or NO_CONDITION, "numerator": numerator,
        "denominator": denominator, "unknown": unknown, "value": value,
    }  # fmt: skip


def read_measures(run: Run, recordings: set[str] | None = None) -> pd.DataFrame:
    """All measures whose tables a run holds.

    Parameters
    ----------
    recordings
        Count these only; linkage, which is of all of them, is left out then.
    """
    rows: list[Row] = []
    for tables, measure in _MEASURES:
        if not all(run.has(name) for name in tables):
            continue
        read = [run.read(name) for name in tables]
        if recordings is not None:
            read = [table[table["recording_id"].isin(recordings)] for table in read]
        rows += measure(*read)
    if recordings is None and run.has("linkage"):
        rows += _linkage(run.read("linkage"))
    return pd.DataFrame(rows, columns=COLUMNS)


def _screening(screening: pd.DataFrame) -> Iterator[Row]:
    ok = screening[screening["status"] == "ok"]
    yield _row("recordings heard", len(ok), len(screening))
    yield _row("speech inside turns", ok["covered_s"].sum(), ok["speech_s"].sum())
    n_words = int(ok["n_words"].sum())
    yield _row("words with times", n_words - int(ok["n_untimed"].sum()), n_words)


def _assignments(assignments: pd.DataFrame) -> Iterator[Row]:
    own = assignments[assignments["pseudo_profile"] == 1]
    yield _row("profiles with a voice", int((own["status"] == "ok").sum()), len(own))


def _converted(converted: pd.DataFrame) -> Iterator[Row]:
    yield _row("turns converted", int((converted["status"] == "ok").sum()), len(converted))


def _edits(edits: pd.DataFrame) -> Iterator[Row]:
    timed = (edits["status"] == "ok") & edits["start_s"].notna() & edits["end_s"].notna()
    yield _row("edits with times", int(timed.sum()), len(edits))


def _rendered(rendered: pd.DataFrame) -> Iterator[Row]:
    for condition, own in rendered[rendered["kind"] == "region"].groupby("renderer"):
        yield _row("regions rendered", int((own["status"] == "ok").sum()), len(own), condition)


def _words(scores: pd.DataFrame) -> Iterator[Row]:
    ok = scores[scores["status"] == "ok"]
    for (reference, condition), own in ok.groupby(["reference", "condition"]):
        errors = own[["substitutions", "deletions", "insertions"]].sum().sum()
        yield _row(f"word errors against {reference}", errors, own["n_reference"].sum(), condition)


def _lexical(matches: pd.DataFrame) -> Iterator[Row]:
    endpoints = {"realised": "replacement_status", "retained": "original_status"}
    wanted = {"focused": "", "conversation": " in the conversation"}
    for (scope, condition), own in matches.groupby(["scope", "condition"]):
        for value, column in endpoints.items():
            if (own[column] == "not_applicable").all():
                continue
            unknown = int(own[column].isin(["uncertain", "failed"]).sum())
            name = f"{'replacement' if value == 'realised' else 'original'} {value}"
            hits = int((own[column] == value).sum())
            yield _row(name + wanted[str(scope)], hits, len(own), condition, unknown)


def _facts(verdicts: pd.DataFrame) -> Iterator[Row]:
    first = verdicts[verdicts["order"] == verdicts["order"].min()]
    for condition, own in first.groupby("condition"):
        seen = own[own["label"].notna()]
        unknown = int((seen["label"] == "uncertain").sum())
        for label in ("preserved", "contradicted"):
            hits = int((seen["label"] == label).sum())
            yield _row(f"facts {label}", hits, len(seen), condition, unknown)


def _endpoints(verdicts: pd.DataFrame) -> Iterator[Row]:
    whole = verdicts[verdicts["kind"].str.startswith("conversation ")]
    whole = whole[whole["order"] == whole["order"].min()]
    for (kind, condition), own in whole.groupby(["kind", "condition"]):
        seen = own[own["label"].notna()]
        yield _row(f"{kind} met", int((seen["label"] == "met").sum()), len(seen), condition)


def _linkage(linkage: pd.DataFrame) -> Iterator[Row]:
    own = linkage[(linkage["orientation"] == "attacker") & (linkage["protocol"] == "final")]
    for row in own.to_dict("records"):
        measure = f"equal error rate, {row['region_kind']} ({row['backend']})"
        eer = math.nan if pd.isna(row["eer"]) else float(row["eer"])
        yield _row(measure, math.nan, math.nan, row["condition"]) | {"value": eer}


_MEASURES: list[tuple[tuple[str, ...], Callable[..., Iterator[Row]]]] = [
    (("screening",), _screening),
    (("assignments",), _assignments),
    (("converted",), _converted),
    (("edits",), _edits),
    (("rendered",), _rendered),
    (("transcript_scores",), _words),
    (("lexical_matches",), _lexical),
    (("fact_verdicts",), _facts),
    (("endpoint_verdicts",), _endpoints),
]


def pair_measures(first: pd.DataFrame, other: pd.DataFrame) -> pd.DataFrame:
    """Two runs side by side: rows of both, with ``difference`` of the values (other - first)."""
    keys = ["measure", "condition"]
    both = first.merge(other, on=keys, how="outer", suffixes=("_first", "_other"), sort=False)
    return both.assign(difference=both["value_other"] - both["value_first"])
