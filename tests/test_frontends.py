"""Errors of a front end, counted by hand and by trying every pairing."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from aegis.frontends import cell_measures, count_speaker_errors, errors_of, score_recordings


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
    assert second["status"] == "not_applicable"
    assert pd.isna(second["n_reference"])


def test_counts_are_pooled_over_what_applies(scores: pd.DataFrame) -> None:
    table = cell_measures(scores).set_index("measure")
    assert table.loc["word errors", "value"] == pytest.approx(2 / 3)
    assert table.loc["diarization error", "denominator"] == 1.5
    gone = cell_measures(scores[scores["status"] != "ok"])
    assert gone["value"].isna().all()
