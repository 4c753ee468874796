"""Errors of a front end, counted by hand and by trying every pairing."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from aegis.frontends import (
    NO_TIMES,
    cell_measures,
    complete_cells,
    count_speaker_errors,
    errors_of,
    score_recordings,
)
from aegis.tables import check_table


def test_words_of_the_wrong_speaker_are_errors() -> None:
    truth = {"A": "good morning doctor", "B": "hello"}
    assert count_speaker_errors(truth, {"1": "hello", "0": "good morning doctor"}) == 0
    # "doctor" went to the other speaker: missing there, too much here.
    assert count_speaker_errors(truth, {"0": "good morning", "1": "doctor hello"}) == 2
    assert count_speaker_errors(truth, {"0": "good morning doctor hello"}) == 2
    assert count_speaker_errors(truth, {}) == 4
    assert count_speaker_errors({}, {"0": "noise"}) == 1
    assert count_speaker_errors({}, {}) == 0


def test_the_pairing_is_the_best_of_all() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        texts = [" ".join(rng.choice(list("abcd"), rng.integers(1, 6))) for _ in range(6)]
        truth, heard = dict(enumerate(texts[:3])), dict(enumerate(texts[3:]))
        every = [
            sum(errors_of(a, b) for a, b in zip(texts[:3], order, strict=True))
            for order in itertools.permutations(texts[3:])
        ]
        assert count_speaker_errors(truth, heard) == min(every)


@pytest.fixture
def scores() -> pd.DataFrame:
    screening = pd.DataFrame({
        "recording_id": ["d/en", "d/fr"], "language": ["en", None], "n_words": [4, 0],
        "n_untimed": [4, 0], "speech_s": [2.0, None], "covered_s": [0.0, None],
        "status": ["ok", "failed"], "reason": [None, "tiny: English only, asked for 'fr'"],
    })  # fmt: skip
    words = pd.DataFrame({
        "recording_id": "d/en", "word_index": range(4), "speaker": ["S1", "S1", None, "S2"],
        "text": ["Good", "morning", "Dr.", "hullo"],
    })  # fmt: skip
    stretches = pd.DataFrame(
        [("d/en", "used", "S1", 0.0, 1.0), ("d/en", "automatic", "S1", 0.0, 9.0)],
        columns=["recording_id", "mode", "speaker", "start_s", "end_s"],
    )
    turns = pd.DataFrame({
        "recording_id": ["d/en", "d/en", "d/fr"], "speaker": ["A", "B", "A"],
        "start_s": [0.0, 1.5, 0.0], "text": ["Good morning.", "Hello.", "Bonjour."],
    })  # fmt: skip
    speech = pd.DataFrame({
        "recording_id": "d/en", "speaker": ["A", "B"], "start_s": [0.0, 1.5], "end_s": [1.0, 2.0],
    })  # fmt: skip
    tables = {"screening": screening, "words": words, "diarization": stretches}
    return score_recordings(tables, turns, speech)


def test_each_recording_has_its_fate_and_its_errors(scores: pd.DataFrame) -> None:
    first, second = scores.to_dict("records")
    assert (first["n_reference"], first["word_errors"]) == (3, 2)  # one inserted, one replaced
    assert first["speaker_word_errors"] == 2  # a word of nobody, and hullo
    assert (first["scored_s"], first["diarization_error_s"]) == (1.5, 0.5)  # B was missed
    # No word of the first has times: its errors count, and nothing can follow.
    assert (first["status"], first["downstream"]) == ("ok", "not_applicable")
    assert first["downstream_reason"] == NO_TIMES
    assert second["status"] == second["downstream"] == "not_applicable"
    assert pd.isna(second["n_reference"])
    assert "English only" in second["downstream_reason"]


def test_counts_are_pooled_over_what_applies(scores: pd.DataFrame) -> None:
    table = cell_measures(scores).set_index("measure")
    assert table.loc["word errors", "value"] == pytest.approx(2 / 3)
    assert table.loc["diarization error", "denominator"] == 1.5
    gone = cell_measures(scores[scores["status"] != "ok"])
    assert gone["value"].isna().all()


def test_a_cell_without_times_has_every_measure_with_its_reason(scores: pd.DataFrame) -> None:
    timed = scores.assign(n_untimed=0, downstream="ok", downstream_reason=None)
    cells = pd.concat([scores.assign(asr="a"), timed.assign(asr="b")]).assign(diarizer="d")
    edits = {"measure": "edits with times", "condition": "all", "numerator": 3.0,
             "denominator": 4.0, "unknown": 0, "value": 0.75}  # fmt: skip
    parts = [cell_measures(scores).assign(asr="a"), cell_measures(timed).assign(asr="b")]
    measured = pd.concat([*parts, pd.DataFrame([edits | {"asr": "b"}])]).assign(diarizer="d")
    table = check_table("frontend_measures", complete_cells(measured, cells))
    table = table.set_index(["asr", "measure"])
    gone = table.loc[("a", "edits with times")]
    assert (gone["status"], gone["reason"]) == ("not_applicable", NO_TIMES)
    assert pd.isna(gone["value"]) and pd.isna(gone["denominator"])
    assert table.loc[("b", "edits with times"), "value"] == 0.75
    kept = table.drop(("a", "edits with times"))
    assert (kept["status"] == "ok").all() and kept["reason"].isna().all()
    assert len(table) == 8
