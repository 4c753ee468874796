"""What workers do to listen: channels, tables, planned texts, lexical rows."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from aegis import engines
from aegis.audio import SAMPLE_RATE_HZ, Signal, write_wav
from aegis.engines import EngineInfo, Segment, SpeakerTurn, Transcript, Word
from aegis.tables import Run, check_table
from aegis.work import relisten, speech

SETTINGS = {"asr": "fake", "diarizer": "fake", "longest_turn_s": 11.0, "turn_pause_s": 1.5}


def said(text: str, start: float) -> Segment:
    """Words of 0.4 s in a row."""
    words = tuple(
        Word(token, start + 0.4 * k, start + 0.4 * (k + 1), 0.9)
        for k, token in enumerate(text.split())
    )
    return Segment(start, words[-1].end_s or 0.0, text, words)


class FakeTranscriber:
    info = EngineInfo("transcriber", "fake", "1", "none")

    def __init__(self, *scripts: tuple[Segment, ...]) -> None:
        self._scripts = list(scripts)

    def transcribe(self, samples: Signal, language: str | None) -> Transcript:
        segments = self._scripts.pop(0)
        heard = tuple((segment.start_s, segment.end_s) for segment in segments)
        return Transcript(language or "en", 0.9, segments, heard)


class FakeDiarizer:
    info = EngineInfo("diarizer", "fake", "1", "none")

    def __init__(self, turns: list[SpeakerTurn]) -> None:
        self._turns = turns

    def diarize(self, samples: Signal, n_speakers: int | None) -> list[SpeakerTurn]:
        return self._turns if n_speakers else self._turns[:1]


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Any:
    def install(**roles: Any) -> None:
        monkeypatch.setattr(engines, "load", lambda role, name: roles[role])

    return install


def record(tmp_path: Path, samples: Signal) -> Run:
    run = Run(tmp_path)
    write_wav(run.original_path("d/a"), samples)
    return run


def item(layout: str = "mono", n_speakers: int | None = 2) -> dict[str, Any]:
    return {
        "id": "d/a",
        "sha256": "f00d",
        "layout": layout,
        "language": None,
        "n_speakers": n_speakers,
    }


def tables_of(value: dict[str, Any]) -> dict[str, pd.DataFrame]:
    result = SimpleNamespace(id="d/a", status="ok", reason=None, value=value)
    made = speech.transcription_tables([result], SETTINGS)
    return {name: check_table(name, table) for name, table in made.items()}


def noise(seconds: float, level: float = 0.05) -> Signal:
    rng = np.random.default_rng(3)
    return rng.normal(0, level, round(seconds * SAMPLE_RATE_HZ)).astype(np.float32)


def test_a_segment_across_two_speakers_becomes_two_turns(tmp_path: Path, use: Any) -> None:
    stretches = [SpeakerTurn(1.0, 2.2, "x"), SpeakerTurn(2.2, 3.4, "y")]
    use(
        transcriber=FakeTranscriber((said("how are you? I am fine.", 1.0),)),
        diarizer=FakeDiarizer(stretches),
    )
    made = tables_of(speech.transcribe_recording(item(), SETTINGS, record(tmp_path, noise(5))))
    turns = made["turns"].sort_values("turn_index")
    assert turns["text"].tolist() == ["how are you?", "I am fine."]
    assert turns["profile_id"].tolist() == ["d/a/S1", "d/a/S2"]
    assert set(made["words"]["turn_id"]) == set(turns["turn_id"])
    row = made["screening"].iloc[0]
    assert (row["n_speakers"], row["n_speakers_found"], row["n_words"]) == (2, 1, 6)
    assert row["uncovered_s"] == pytest.approx(0.0, abs=0.01)
    assert set(made["diarization"]["mode"]) == {"used", "automatic"}


def test_each_channel_is_a_speaker_and_overlap_stays(tmp_path: Path, use: Any) -> None:
    use(
        transcriber=FakeTranscriber(
            (said("good morning doctor", 1.0),), (said("hello there", 0.6), said("yes", 4.0))
        )
    )
    run = record(tmp_path, np.stack([noise(6), noise(6)]))
    made = tables_of(speech.transcribe_recording(item("speaker_per_channel"), SETTINGS, run))
    turns = made["turns"].sort_values("turn_index")
    assert turns["channel"].tolist() == [1, 0, 1]
    assert turns["speaker"].tolist() == ["S1", "S2", "S1"]
    first, second = turns["end_s"].iloc[0], turns["start_s"].iloc[1]
    assert first > second
    in_time = ["hello", "good", "there", "morning", "doctor", "yes"]
    assert made["words"]["text"].tolist() == in_time
    assert made["screening"]["overlap_s"].iloc[0] == pytest.approx(0.4, abs=1e-6)


def test_channels_without_word_times_are_merged_by_their_segments(
    tmp_path: Path, use: Any
) -> None:
    first = Segment(0.5, 1.5, "any fever?"), Segment(3.0, 4.0, "good")
    use(transcriber=FakeTranscriber(first, (Segment(2.0, 2.8, "no fever"),)))
    run = record(tmp_path, np.stack([noise(6), noise(6)]))
    made = tables_of(speech.transcribe_recording(item("speaker_per_channel"), SETTINGS, run))
    assert made["words"]["text"].tolist() == ["any", "fever?", "no", "fever", "good"]
    assert made["words"]["speaker"].tolist() == ["S1", "S1", "S2", "S2", "S1"]
    assert not made["words"]["timed"].any() and len(made["turns"]) == 0


def test_no_speech_is_a_row_with_a_reason_and_no_turns(tmp_path: Path, use: Any) -> None:
    use(transcriber=FakeTranscriber(()), diarizer=FakeDiarizer([]))
    made = tables_of(speech.transcribe_recording(item(), SETTINGS, record(tmp_path, noise(2))))
    assert [len(made[name]) for name in ("words", "turns", "turn_times")] == [0, 0, 0]
    row = made["screening"].iloc[0]
    assert (row["status"], row["reason"]) == ("not_applicable", "no speech found")


def test_a_failed_recording_stays_a_row() -> None:
    failed = SimpleNamespace(id="d/a", status="failed", reason="broken", value=None)
    made = speech.transcription_tables([failed], SETTINGS)
    screening = check_table("screening", made["screening"]).iloc[0]
    assert (screening["status"], screening["reason"]) == ("failed", "broken")
    assert len(made["turns"]) == 0


def test_bleed_of_the_louder_channel_is_muted() -> None:
    voice = noise(2)
    left = np.concatenate([voice, np.zeros_like(voice)])
    right = np.concatenate([0.1 * voice, voice])  # 20 dB below, then alone
    muted = speech.mute_bleed(np.stack([left, right]))
    clean = np.asarray(muted)
    for first, last in ((0, 1), (799, 801), (12_345, 54_321)):
        assert np.array_equal(muted[..., first:last], clean[:, first:last])
    half, edge = voice.size, 2000
    assert np.abs(clean[1, : half - edge]).max() == 0.0
    assert np.array_equal(clean[0, : half - edge], left[: half - edge])
    assert np.array_equal(clean[1, half + edge :], right[half + edge :])


def test_words_in_a_place_are_chosen_by_their_middle() -> None:
    words = [["a", 0.0, 1.0], ["b", 1.0, 2.0], ["c", None, None], ["d", 2.0, 3.0]]
    assert relisten.words_between(words, 1.0, 2.0) == "b c"
    assert relisten.words_between(words, 5.0, 6.0) == ""


def study() -> dict[str, pd.DataFrame]:
    """One turn with two edits, `Doris` and `Leeds`, and one turn without."""
    turn = {"recording_id": "d/a", "profile_id": "d/a/S1", "language": "en"}
    text = "Doris lives in Leeds."
    edit = {"recording_id": "d/a", "turn_id": "t1", "status": "ok", "reason": None}
    return {
        "turns": pd.DataFrame(
            [
                turn | {"turn_id": "t1", "turn_index": 0, "start_s": 0.0, "end_s": 2.0,
                        "text": text},
                turn | {"turn_id": "t2", "turn_index": 1, "start_s": 2.0, "end_s": 3.0,
                        "text": "Thank you."},
            ]
        ),
        "edits": pd.DataFrame(
            [
                edit | {"intention_id": "i1", "category": "NAME", "char_start": 0,
                        "char_end": 5, "original": "Doris", "replacement": "Marjorie"},
                edit | {"intention_id": "i2", "category": "CITY", "char_start": 15,
                        "char_end": 20, "original": "Leeds", "replacement": "Norwich"},
            ]
        ),
        "regions": pd.DataFrame(
            [{"turn_id": "t1", "target_text": "Marjorie lives in Norwich.", "status": "ok"}]
        ),
        "timeline": pd.DataFrame(
            [
                {"recording_id": "d/a", "condition": "renderer_b", "kind": "turn",
                 "turn_id": "t1", "profile_id": "d/a/S1", "out_start": 0, "out_end": 48000},
            ]
        ),
    }  # fmt: skip


def test_the_planned_conversation_of_each_condition() -> None:
    planned = relisten.planned_conversations(study())
    assert planned["d/a", "original"] == "Doris lives in Leeds. Thank you."
    assert planned["d/a", "renderer_a"] == "Marjorie lives in Norwich. Thank you."
    assert "Doris" not in planned["d/a", "redacted"] and "Leeds" not in planned["d/a", "redacted"]


def test_lexical_rows_of_focused_turns_and_of_whole_conversations() -> None:
    transcripts = pd.DataFrame(
        [
            {"item_id": "i1", "kind": "focused", "condition": "renderer_b", "status": "ok",
             "text": "Marjorie lives in Leeds.", "reason": None},
            {"item_id": "i1", "kind": "focused", "condition": "renderer_a", "status": "failed",
             "text": None, "reason": "no audio: x"},
        ]
    )  # fmt: skip
    fresh = [["Marjorie", 0.0, 0.5], ["lives", 0.5, 1.0], ["in", 1.0, 1.2], ["Leeds.", 1.2, 2.0]]
    words = {("d/a", "renderer_b"): fresh}
    made = check_table("lexical_matches", relisten.lexical_table(study(), transcripts, words))
    rows = made.set_index(["intention_id", "scope", "condition"])

    done = rows.loc[("i1", "focused", "renderer_b")]
    assert (done["replacement_status"], done["original_status"]) == ("realised", "absent")
    failed = rows.loc[("i1", "focused", "renderer_a")]
    assert (failed["status"], failed["replacement_status"]) == ("failed", "failed")
    assert failed["reason"] == "no audio: x"
    assert rows.loc[("i2", "focused", "renderer_b"), "reason"] == "not rendered"
    left = rows.loc[("i2", "conversation", "renderer_b")]
    assert (left["replacement_status"], left["original_status"]) == ("not_realised", "retained")
    assert not left["planned_text_holds_original"]
    assert rows.loc[("i2", "conversation", "original"), "reason"] == "no transcript"
