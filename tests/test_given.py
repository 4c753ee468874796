"""Turns that people bring along, and turns for other tools, against files written by hand."""

import json

import numpy as np
import pandas as pd
import pytest
from fabricate import fabricate_run
from typer.testing import CliRunner

from aegis import cli, exports
from aegis.errors import ItemError, ManifestError, TableError
from aegis.exports import OutRecording, OutTurn
from aegis.given import GivenTurn, match_given, read_given
from aegis.readers import read_rttm, read_textgrid

SRT = """1
00:00:01,500 --> 00:00:03,000
Dr Lee: Any pain?

2
00:00:03,250 --> 01:00:05,000
<i>No.</i>
None at all.
"""
VTT = (
    "WEBVTT\n\n00:01.000 --> 00:02.000 align:left\n<v Ann>Hello there\n\n"
    "00:02.5 --> 00:03.000\nbye\n"
)
TURNS = (
    OutTurn(0.5, 2.0, "S1", "en", 0, 'say "a & b"'),
    OutTurn(1.75, 3.0, "S2", "en", 1, "yes <ok>"),
    OutTurn(2.25, 4.0, "S1", "en", 0, "fine"),
)
RECORDING = OutRecording("own/ab", 5.0, "ab.wav", TURNS)


def test_srt_names_speakers_and_joins_lines(tmp_path):
    (tmp_path / "a.srt").write_text(SRT)
    assert read_given(tmp_path / "a.srt") == [
        GivenTurn(1.5, 3.0, "Dr Lee", "Any pain?"),
        GivenTurn(3.25, 3605.0, "Dr Lee", "No. None at all."),
    ]


def test_webvtt_voices_and_settings(tmp_path):
    (tmp_path / "a.vtt").write_text(VTT)
    assert read_given(tmp_path / "a.vtt") == [
        GivenTurn(1.0, 2.0, "Ann", "Hello there"),
        GivenTurn(2.5, 3.0, "Ann", "bye"),
    ]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.srt", "00:00:02,000 --> 00:00:01,000\nx\n", "line 1: the cue has no length"),
        ("a.srt", "1\nsoon --> later\nx\n", "line 2: 'soon --> later' is no pair of times"),
        ("a.srt", "", "holds no turn"),
        ("a.txt", "x", "turns are read from"),
        ("a.jsonl", '{"start": 1}\n', "line 1: no supervision"),
    ],
)
def test_broken_files_name_the_line(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(ManifestError, match=message):
        read_given(tmp_path / name)


def test_rttm_of_several_recordings_is_divided_by_name(tmp_path):
    line = "SPEAKER {} 1 {} 1.0 <NA> <NA> A <NA> <NA>\n"
    (tmp_path / "all.rttm").write_text(line.format("one", 0.5) + line.format("two", 2.5))
    assert read_given(tmp_path / "all.rttm", "two") == [GivenTurn(2.5, 3.5, "A", None)]


def test_files_are_matched_by_the_recordings_file_name(tmp_path):
    for name in ("visit 1.srt", "b.TextGrid", "b.rttm", "other.srt"):
        (tmp_path / name).touch()
    found = match_given(tmp_path, [("own/11", "visit 1.wav"), ("own/33", "none.mp3")])
    assert found == {"own/11": (tmp_path / "visit 1.srt", "visit 1")}
    with pytest.raises(
        ManifestError, match=r"own/22: several files of turns \(\.TextGrid, \.rttm\)"
    ):
        match_given(tmp_path, [("own/22", "b.flac")])
    with pytest.raises(ManifestError, match="no such file or folder"):
        match_given(tmp_path / "gone", [])


# --- exports ------------------------------------------------------------------------------


def test_rttm_is_read_back(tmp_path):
    (tmp_path / "a.rttm").write_text(exports.rttm(RECORDING))
    read = read_rttm(tmp_path / "a.rttm")
    assert [(t.file_id, t.start_s, t.end_s, t.speaker) for t in read] == [
        ("own_ab", 0.5, 2.0, "S1"), ("own_ab", 1.75, 3.0, "S2"), ("own_ab", 2.25, 4.0, "S1"),
    ]  # fmt: skip


def test_textgrid_tiers_cover_the_recording_and_are_read_back(tmp_path):
    (tmp_path / "a.TextGrid").write_text(exports.textgrid(RECORDING))
    first, second = read_textgrid(tmp_path / "a.TextGrid")
    assert [(i.start_s, i.end_s, i.text) for i in first.intervals] == [
        (0.0, 0.5, ""), (0.5, 2.0, 'say "a & b"'), (2.0, 2.25, ""), (2.25, 4.0, "fine"),
        (4.0, 5.0, ""),
    ]  # fmt: skip
    assert (second.name, second.end_s) == ("S2", 5.0)
    again = read_given(tmp_path / "a.TextGrid")
    assert [(t.speaker, t.text) for t in again] == [
        ("S1", 'say "a & b"'), ("S2", "yes <ok>"), ("S1", "fine"),
    ]  # fmt: skip


def test_webvtt_and_stm_as_written_by_hand(tmp_path):
    text = exports.webvtt(RECORDING)
    assert text.startswith('WEBVTT\n\n00:00:00.500 --> 00:00:02.000\n<v S1>say "a &amp; b"\n\n')
    assert exports.stm(RECORDING).splitlines()[1] == "own_ab 2 S2 1.750 3.000 <o,en> yes <ok>"
    assert exports._clock(3661.0625) == "01:01:01.062"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return fabricate_run(tmp_path_factory.mktemp("runs") / "made_up", n_recordings=2)


def test_words_are_written_only_when_asked_for(run, tmp_path, monkeypatch):
    monkeypatch.setenv("AEGIS_RUNS", str(run.root.parent))
    given = ["--run", "made_up"]
    refused = CliRunner().invoke(cli.app, ["export", "stm", str(tmp_path), *given])
    assert "holds words, which are secret" in refused.stderr
    done = CliRunner().invoke(cli.app, ["export", "rttm", str(tmp_path), *given])
    assert done.output.startswith("2 files in")
    turns = read_rttm(tmp_path / "toy_c00.rttm")
    times = run.read("turn_times").query("recording_id == 'toy/c00'").sort_values("start_s")
    assert [t.start_s for t in turns] == pytest.approx(times["start_s"].tolist())
    with pytest.raises(TableError, match="webvtt holds words"):
        exports.export_turns(run, "webvtt", tmp_path)


def test_a_condition_has_its_own_clock_and_words(run, tmp_path):
    (first, _) = exports.export_turns(run, "stm", tmp_path, "renderer_b", secret=True)
    heard = run.read("turn_transcripts").query(
        "condition == 'renderer_b' and recording_id == 'toy/c00'"
    )
    rows = [line.split(" ", 6) for line in first.read_text().splitlines()]
    assert sorted(row[6] for row in rows) == sorted(heard["text"])
    assert sorted(float(r[3]) for r in rows) == pytest.approx(
        sorted(heard["out_start_s"]), abs=1e-3
    )


def test_lhotse_manifests_come_back_as_given_turns(run, tmp_path):
    recordings, supervisions = exports.export_turns(run, "lhotse", tmp_path, secret=True)
    sounds = [json.loads(line) for line in recordings.read_text().splitlines()]
    assert [s["id"] for s in sounds] == ["toy/c00", "toy/c01"]
    assert sounds[0]["num_samples"] == round(sounds[0]["duration"] * 16_000)
    back = read_given(supervisions, "c01")
    own = run.read("turns").query("recording_id == 'toy/c01'").sort_values("start_s")
    assert [t.text for t in back] == own["text"].tolist()
    assert back[0].speaker == "toy/c01/S1"


# --- as a frontend --------------------------------------------------------------------------


def work(tmp_path, text, layout="mono", language="en", name="a.srt"):
    from aegis.audio import write_wav
    from aegis.tables import Run
    from aegis.work.speech import transcribe_recording, transcription_items

    run = Run(tmp_path / "run")
    tone = 0.2 * np.sin(np.arange(5 * 16_000) / 9).astype(np.float32)
    quiet = np.where(np.arange(tone.size) < 40_000, tone, 0.01 * tone).astype(np.float32)
    loud = np.stack([quiet, 0.2 * tone]) if layout == "speaker_per_channel" else tone
    write_wav(run.original_path("own/11"), loud)
    (tmp_path / name).write_text(text)
    recordings = pd.DataFrame(
        [{"recording_id": "own/11", "sha256": "ab", "layout": layout, "language": language,
          "n_speakers_declared": None, "duration_s": 5.0, "status": "ok"}]
    )  # fmt: skip
    files = match_given(tmp_path / name, [("own/11", "a.wav")])
    (item,) = transcription_items(recordings, True, files)
    return transcribe_recording(item, {"longest_turn_s": 11.0, "turn_pause_s": 1.5}, run)


CUES = (
    "1\n00:00:00,500 --> 00:00:02,000\nAnn: Any pain at all?\n\n"
    "2\n00:00:03,000 --> 00:00:04,500\nBea: None.\n"
)


@pytest.mark.engine
def test_given_words_replace_recognition_and_have_no_times(tmp_path):
    made = work(tmp_path, CUES)
    assert [(t["text"], t["start_s"], t["end_s"]) for t in made["turns"]] == [
        ("Any pain at all?", 0.5, 2.0), ("None.", 3.0, 4.5),
    ]  # fmt: skip
    assert made["turns"][0]["profile_id"] != made["turns"][1]["profile_id"]
    assert [w["timed"] for w in made["words"]] == [False] * 5
    assert made["screening"]["n_untimed"] == 5
    assert (made["asr"], made["diarizer"]) == ("given", "given")


@pytest.mark.engine
def test_given_turns_take_their_loudest_channel(tmp_path):
    made = work(tmp_path, CUES, layout="speaker_per_channel")
    assert [t["channel"] for t in made["turns"]] == [0, 1]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (CUES, {"language": None}, "need the parameter language"),
        (CUES.replace("00:00:04,500", "00:09:00,000"), {}, "outside the recording of 5.000 s"),
        ("soon --> later\n", {}, "turns, line 1"),
        ("SPEAKER a 1 0 1 <NA> <NA> A <NA> <NA>\n",
         {"name": "a.rttm", "layout": "speaker_per_channel"}, "says nothing more"),
    ],
)  # fmt: skip
def test_given_turns_that_cannot_be_are_failures_of_the_item(tmp_path, text, options, message):
    with pytest.raises(ItemError, match=message):
        work(tmp_path, text, **options)


def test_a_recording_without_a_file_fails():
    from aegis.work.speech import _read_turns

    with pytest.raises(ItemError, match="no file of turns has the name"):
        _read_turns({"given": {"path": "", "name": "", "sha256": ""}})
