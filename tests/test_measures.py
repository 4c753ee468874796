"""Rates of a run, counted by hand."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from aegis.measures import pair_measures, read_measures
from aegis.tables import Run, empty_table


def match(number: int, condition: str, replacement: str, original: str, scope: str) -> dict:
    return {
        "intention_id": f"i{number}", "condition": condition, "scope": scope,
        "recording_id": f"r{number % 2}", "category": "NAME", "replacement_status": replacement,
        "original_status": original, "planned_text_holds_original": False,
        "replacement_evidence": None, "original_evidence": None, "status": "ok", "reason": None,
    }  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> Run:
    made = Run(tmp_path / "run")
    matches = [
        match(0, "renderer_a", "realised", "absent", "focused"),
        match(1, "renderer_a", "uncertain", "retained", "focused"),
        match(2, "renderer_a", "not_realised", "retained", "focused"),
        match(3, "renderer_a", "failed", "failed", "focused"),
        match(0, "converted", "not_applicable", "retained", "conversation"),
    ]
    made.write("lexical_matches", pd.DataFrame(matches))
    scores = {
        "recording_id": ["r0", "r1"], "condition": "converted", "reference": "gold",
        "n_reference": [20, 30], "substitutions": [1, 2], "deletions": [0, 3],
        "insertions": [1, 1], "status": "ok", "reason": None,
    }  # fmt: skip
    made.write("transcript_scores", pd.DataFrame(scores))
    made.write("fact_verdicts", empty_table("fact_verdicts"))
    return made


def of(table: pd.DataFrame, measure: str) -> dict:
    (row,) = table[table["measure"] == measure].to_dict("records")
    return row


def test_rates_have_their_counts(run: Run) -> None:
    table = read_measures(run)
    realised = of(table, "replacement realised")
    assert (realised["numerator"], realised["denominator"], realised["unknown"]) == (1, 4, 2)
    assert of(table, "original retained")["value"] == 0.5
    assert of(table, "original retained in the conversation")["condition"] == "converted"
    assert not table["measure"].str.contains("replacement realised in").any()
    words = of(table, "word errors against gold")
    assert (words["numerator"], words["denominator"]) == (8, 50)  # pooled, not a mean of rates
    assert not table["measure"].str.startswith("facts").any()


def test_some_recordings_alone(run: Run) -> None:
    table = read_measures(run, {"r1"})
    assert of(table, "word errors against gold")["value"] == pytest.approx(6 / 30)
    assert of(table, "replacement realised")["denominator"] == 2


def test_two_runs_side_by_side(run: Run) -> None:
    both = pair_measures(read_measures(run), read_measures(run, {"r1"}))
    change = of(both, "word errors against gold")["difference"]
    assert change == pytest.approx(6 / 30 - 8 / 50)
    assert pd.isna(of(both, "original retained in the conversation")["difference"])
