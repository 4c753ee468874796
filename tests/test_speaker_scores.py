"""Diarization and attribution scores: hand-made cases and published values."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest

from aegis.errors import ManifestError
from aegis.speaker_scores import read_rttm, score_attribution, score_diarization
from aegis.tables import PROJECT

DATA = PROJECT.parent / "shared" / "data"


def stretches(*rows: tuple[str, float, float], recording: str = "a/b") -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=["speaker", "start_s", "end_s"])
    return table.assign(recording_id=recording)


def words(text: str, speakers: str, recording: str = "a/b") -> pd.DataFrame:
    rows = list(zip(text.split(), speakers.split(), strict=True))
    table = pd.DataFrame(rows, columns=["text", "speaker"]).replace({"-": None})
    return table.assign(recording_id=recording, word_index=range(len(rows)))


def test_each_kind_of_error_is_counted_in_seconds() -> None:
    gold = stretches(("A", 0, 4), ("B", 5, 9))
    # 0.5 s of A missed, 1 s of B called A, 0.5 s after B found for nothing.
    found = stretches(("x", 0.5, 4), ("x", 5, 6), ("y", 6, 9.5))
    scores = score_diarization(found, gold).iloc[0]
    assert scores["scored_s"] == pytest.approx(8.0)
    assert scores["missed_s"] == pytest.approx(0.5)
    assert scores["confusion_s"] == pytest.approx(1.0)
    assert scores["false_alarm_s"] == pytest.approx(0.5)


def test_short_pauses_of_the_reference_are_closed_and_long_ones_cut_out() -> None:
    gold = stretches(("A", 0, 1), ("A", 1.15, 2), ("A", 3, 4))
    scores = score_diarization(stretches(("x", 0, 4)), gold).iloc[0]
    assert scores["scored_s"] == pytest.approx(3.0)
    assert scores["false_alarm_s"] == pytest.approx(1.0)


def test_a_recording_without_any_hypothesis_is_all_missed() -> None:
    gold = stretches(("A", 0, 1), recording="a/c")
    scores = score_diarization(stretches(("x", 0, 1)), gold)
    assert scores["recording_id"].tolist() == ["a/c"]
    assert scores["missed_s"].tolist() == pytest.approx([1.0])


def test_words_without_times_are_left_out_of_the_reference() -> None:
    gold = pd.concat([stretches(("A", 0, 1)), stretches(("A", None, None))])
    assert score_diarization(stretches(("x", 0, 1)), gold)["scored_s"].tolist() == [1.0]


def test_attribution_aligns_by_text_and_names_speakers_one_to_one() -> None:
    truth = words("hello doctor how are you today", "A A B B B B")
    # "today" is given to the wrong speaker, "um" has no true one, "doctor" is misheard.
    heard = words("hello docked her um how are you today", "S1 S1 S1 S1 S2 S2 S2 S1")
    scores = score_attribution(heard, truth).iloc[0]
    assert (scores["n_words"], scores["n_right"]) == (6, 5)


def test_a_word_of_unknown_speaker_is_never_right() -> None:
    scores = score_attribution(words("yes no", "S1 -"), words("yes no", "A A")).iloc[0]
    assert (scores["n_words"], scores["n_right"]) == (2, 1)


def test_attribution_of_an_empty_transcript_counts_no_words() -> None:
    scores = score_attribution(words("", ""), words("yes", "A")).iloc[0]
    assert (scores["n_words"], scores["n_right"]) == (0, 0)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("SPEAKER a 1 0.0 1.0", "line 2: not an RTTM line"),
        ("SPEAKER a 1 x 1.0 <NA> <NA> S <NA> <NA>", "line 2: not an RTTM line"),
        ("SPEAKER a 1 1.0 0.0 <NA> <NA> S <NA> <NA>", "line 2: start 1.0, length 0.0"),
        ("SPEAKER a 1 1.0 -2 <NA> <NA> S <NA> <NA>", "line 2: start 1.0, length -2.0"),
    ],
)
def test_a_wrong_rttm_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "x.rttm"
    path.write_text(f"SPEAKER a 1 0.0 1.0 <NA> <NA> S <NA> <NA>\n{line}\n")
    with pytest.raises(ManifestError, match=message):
        read_rttm(path)


@pytest.mark.skipif(not (DATA / "vbx_ami_es2005a").exists(), reason="no shared data")
def test_published_error_of_vbx() -> None:
    folder = DATA / "vbx_ami_es2005a"
    gold = read_rttm(folder / "example" / "rttm" / "ES2005a.rttm")
    found = read_rttm(folder / "exp" / "ES2005a.rttm")
    scores = score_diarization(found, gold, collar_s=0.5, skip_overlap=True, pause_s=-math.inf)
    assert error_percent(scores) == pytest.approx(7.063, abs=0.005)


@pytest.mark.skipif(not (DATA / "diarization_refs").exists(), reason="no shared data")
def test_published_error_of_a_system_on_ami() -> None:
    folder = DATA / "diarization_refs" / "egs" / "ami"
    gold, found = (read_rttm(folder / n) for n in ("ref_rttm_test", "rttm_test_vb"))
    scores = score_diarization(found, gold, pause_s=0.0)
    assert len(scores) == 16
    assert error_percent(scores) == pytest.approx(21.50, abs=0.005)


def error_percent(scores: pd.DataFrame) -> float:
    errors = scores[["missed_s", "false_alarm_s", "confusion_s"]].to_numpy().sum()
    return float(100 * errors / scores["scored_s"].sum())
