"""Scripted recordings: placement by hand, noise by measurement, bytes by repetition."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import soundfile as sf

from aegis import engines, sources
from aegis.audio import SAMPLE_RATE_HZ as RATE
from aegis.audio import read_wav, rms_db
from aegis.engines import EngineInfo
from aegis.errors import AudioError, ManifestError, ParamError
from aegis.scripts import MANIFESTS, Script, read_script, read_scripts
from aegis.tables import Run, check_table
from aegis.work import corpus

SETTINGS = {"seed": 5}


class Tones:
    """A synthesiser whose every character lasts 50 ms; the voice is the pitch."""

    info = EngineInfo("synthesiser", "tones", "1", "none")

    def speak(self, text: str, base_voice: str, language: str, rate: float = 1.0) -> np.ndarray:
        t = np.arange(len(text) * RATE // 20) / RATE
        return (0.5 * np.sin(2 * np.pi * float(base_voice) * t)).astype(np.float32)


@pytest.fixture(autouse=True)
def tones(monkeypatch: pytest.MonkeyPatch) -> None:
    load = engines.load
    fake = Tones()
    monkeypatch.setattr(
        engines, "load", lambda role, name, **o: fake if name == "tones" else load(role, name, **o)
    )


def turn(speaker: str, text: str, pause_s: float = 0.0, overlap_s: float = 0.0) -> dict[str, Any]:
    voice = {"S1": "tones:200", "S2": "tones:330"}[speaker]
    return {"speaker": speaker, "voice": voice, "language": "en", "text": text,
            "pause_s": pause_s, "overlap_s": overlap_s}  # fmt: skip


def item(*turns: dict[str, Any], **changes: Any) -> dict[str, Any]:
    base = {"id": "toy/a", "format": "wav", "sample_rate_hz": RATE, "layout": "mono",
            "noise_snr_db": None, "turns": list(turns)}  # fmt: skip
    return base | changes


TURNS = (
    turn("S1", "a" * 20), turn("S2", "b" * 40, pause_s=0.3), turn("S1", "c" * 10, overlap_s=0.4),
    turn("S2", "d" * 20, pause_s=0.25),
)  # fmt: skip


def made(tmp_path: Path, what: dict[str, Any]) -> tuple[dict[str, Any], np.ndarray, int]:
    run = Run(tmp_path)
    value = corpus.synthesise_recording(what, SETTINGS, run)
    samples, rate = sf.read(run.root / value["file"], always_2d=True)
    return value, samples.T, rate


def test_pauses_and_overlaps_are_placed_to_the_sample(tmp_path: Path) -> None:
    value, samples, _ = made(tmp_path, item(*TURNS))
    # 1.0 s, pause 0.3, 2.0 s, back 0.4, 0.5 s, then a pause after the later end.
    expected = [[0.5, 1.5], [1.8, 3.8], [3.4, 3.9], [4.15, 5.15]]
    assert value["turn_times"] == [[pytest.approx(t) for t in times] for times in expected]
    assert samples.shape == (1, round(5.65 * RATE))
    speech = [(i, a, b) for i, a, b in value["speech"]]
    assert speech == [(i, *map(pytest.approx, times)) for i, times in enumerate(expected)]


def test_the_mixture_is_the_sum_of_the_placed_turns() -> None:
    a, b = np.full(4, 0.5, dtype=np.float32), np.full(3, 0.25, dtype=np.float32)
    mixed, speaking = corpus.mix_turns([a, b], [2, 4], [0, 0])
    assert mixed[0, :9].tolist() == [0, 0, 0.5, 0.5, 0.75, 0.75, 0.25, 0, 0]
    assert speaking[0, :9].tolist() == [False] * 2 + [True] * 5 + [False] * 2
    mixed, _ = corpus.mix_turns([a, b], [2, 4], [0, 1])
    assert mixed[:, 4].tolist() == [0.5, 0.25]


def test_an_overlap_longer_than_the_turn_before_is_refused() -> None:
    with pytest.raises(AudioError, match="turn 1 overlaps"):
        corpus.place_turns([800, 800], [turn("S1", "a"), turn("S2", "b", overlap_s=0.2)])


def test_each_speaker_keeps_one_level_near_the_nominal(tmp_path: Path) -> None:
    value, samples, _ = made(tmp_path, item(*TURNS))
    levels = []
    for start, end in (value["turn_times"][0], value["turn_times"][1], value["turn_times"][3]):
        cut = samples[0, round((start + 0.1) * RATE) : round((end - 0.5) * RATE)]
        levels.append(rms_db(cut.astype(np.float32)))
    assert all(abs(level - corpus.LEVEL_DBFS) < corpus.LEVEL_SPREAD_DB + 0.1 for level in levels)
    assert levels[1] == pytest.approx(levels[2], abs=0.1)
    assert levels[0] != pytest.approx(levels[1], abs=0.1)


def test_noise_is_twelve_db_below_the_speech(tmp_path: Path) -> None:
    turns = (turn("S1", "a" * 60), turn("S2", "b" * 60, pause_s=1.0))
    value, samples, _ = made(tmp_path, item(*turns, noise_snr_db=12.0, format="wav24"))
    inside = np.zeros(samples.shape[1], dtype=bool)
    for start, end in value["turn_times"]:
        inside[round(start * RATE) : round(end * RATE)] = True
    # Noise power is measured where nobody speaks and taken off the sum where somebody does.
    noise = np.mean(samples[0, ~inside] ** 2)
    speech = np.mean(samples[0, inside] ** 2) - noise
    assert 10 * np.log10(speech / noise) == pytest.approx(12.0, abs=0.5)


def test_pink_noise_loses_three_db_an_octave() -> None:
    noise = corpus.pink_noise((RATE * 20,), np.random.default_rng(0))
    assert np.sqrt(np.mean(noise**2)) == pytest.approx(1.0, abs=1e-4)
    power = np.abs(np.fft.rfft(noise)) ** 2
    bands = [power[round(f * 20) : round(f * 1.2 * 20)].mean() for f in (250, 500, 1000, 2000)]
    steps = 10 * np.log10(np.array(bands[1:]) / bands[:-1])
    assert steps == pytest.approx([-3.01] * 3, abs=0.7)


def test_renderings_become_files_of_their_kind(tmp_path: Path) -> None:
    stereo = item(*TURNS, layout="speaker_per_channel")
    _, samples, rate = made(tmp_path, stereo)
    assert (samples.shape[0], rate) == (2, RATE)
    found = corpus.ingest_recording(
        {"id": "toy/a", "path": "secret/sources/toy/a.wav"}, {}, Run(tmp_path)
    )
    assert (found["status"], found["layout"], found["n_channels"]) == (
        "ok",
        "speaker_per_channel",
        2,
    )
    value, _, rate = made(tmp_path, item(*TURNS, id="toy/b", sample_rate_hz=8000, format="mulaw"))
    info = sf.info(tmp_path / value["file"])
    assert (rate, info.subtype) == (8000, "ULAW")
    found = corpus.ingest_recording({"id": "toy/b", "path": value["file"]}, {}, Run(tmp_path))
    assert (found["source_rate_hz"], found["duration_s"]) == (8000, pytest.approx(5.65, abs=1e-3))


@pytest.mark.parametrize("kind", sorted(corpus.FORMATS))
def test_two_syntheses_give_the_same_bytes_and_clock(tmp_path: Path, kind: str) -> None:
    runs = [tmp_path / "one", tmp_path / "two"]
    values = [made(root, item(*TURNS, format=kind))[0] for root in runs]
    assert values[0] == values[1]
    signals = []
    for root, value in zip(runs, values, strict=True):
        corpus.ingest_recording({"id": "toy/a", "path": value["file"]}, {}, Run(root))
        signals.append(read_wav(Run(root).original_path("toy/a")))
    assert np.array_equal(signals[0], signals[1])
    # The first turn's first frames are where the truth says, in every format.
    loud = np.flatnonzero(np.abs(signals[0]) > 0.02)
    assert loud[0] / RATE == pytest.approx(values[0]["turn_times"][0][0], abs=0.015)


def test_items_depend_on_the_script_alone() -> None:
    items = corpus.script_items(read_scripts())
    assert len({one["id"] for one in items}) == len(items)
    kinds = {one["id"]: one["format"] for one in items}
    assert {"flac", "mp3", "wav24", "wav", "mulaw"} == set(kinds.values())
    assert all(one["format"] == "mulaw" for one in items if one["sample_rate_hz"] == 8000)
    for script, item in zip(read_scripts(), items, strict=True):
        assert corpus.script_items([script]) == [item]


def ok(recording_id: str, value: dict[str, Any] | None, reason: str | None = None) -> Any:
    status = "ok" if reason is None else "failed"
    return SimpleNamespace(id=recording_id, status=status, reason=reason, value=value)


def first_script() -> Script:
    return read_script(sorted((MANIFESTS / "demo").glob("en_*.yaml"))[0])


def test_a_shortened_script_keeps_its_truth_consistent() -> None:
    whole = first_script()
    assert sources.shorten_script(whole, 0) is whole
    short = sources.shorten_script(whole, 4)
    assert len(short.turns) == 4
    assert short.facts == tuple(f for f in whole.facts if f.turn_index < 4)
    assert all(part.turn_index < 4 for part in (*short.actions, *short.chronology))


def test_gold_tables_hold_the_placement(tmp_path: Path) -> None:
    script = sources.shorten_script(first_script(), 2)
    times = [[0.5, 2.0], [2.4, 5.0]]
    value = {"turn_times": times, "speech": [[0, 0.5, 2.0], [1, 2.4, 3.0], [1, 3.3, 5.0]]}
    frames = sources.gold_frames([script], [ok(script.recording_id, value)], [script.recording_id])
    tables = {name: check_table(name, frame) for name, frame in frames.items()}
    assert tables["gold_turns"][["start_s", "end_s"]].to_numpy().tolist() == times
    speech = tables["gold_speech"]
    assert sorted(speech["start_s"]) == [0.5, 2.4, 3.3]
    assert set(speech["speaker"]) == {t.speaker for t in script.turns}
    empty = sources.gold_frames([script], [ok(script.recording_id, value)], [])
    assert all(len(check_table(name, frame)) == 0 for name, frame in empty.items())


def test_every_file_of_a_folder_is_one_row(tmp_path: Path) -> None:
    folder, run = tmp_path / "in", Run(tmp_path / "run")
    folder.mkdir()
    tone = np.rint(9000 * np.sin(np.arange(RATE * 2) / 10)).astype(np.int16)
    sf.write(folder / "Mme Lefèvre #3.wav", tone, RATE)
    sf.write(folder / "same sound.flac", tone, RATE)
    sf.write(folder / "silent.wav", np.zeros(RATE), RATE)
    (folder / "none.mp3").touch()
    (folder / "notes.txt").write_text("x")
    files = sources.folder_sources(folder)
    results = []
    for one in sources.ingest_items(files):
        try:
            results.append(ok(one["id"], corpus.ingest_recording(one, {}, run)))
        except AudioError as error:
            results.append(ok(one["id"], None, str(error)))
    table = check_table("recordings", sources.recordings_frame(files, results))
    assert sorted(table["status"]) == ["excluded", "excluded", "excluded", "failed", "ok"]
    names = dict(
        zip(*sources.file_map_frame(files)[["file", "recording_id"]].T.to_numpy(), strict=True)
    )
    reasons = table.set_index("recording_id")["reason"]
    assert reasons[names["silent.wav"]] == "a constant signal"
    assert reasons[names["none.mp3"]] == "the file has 0 bytes"
    assert reasons[names["same sound.flac"]] == f"the same sound as {names['Mme Lefèvre #3.wav']}"
    assert "Lef" not in table.to_csv()
    chosen = sources.folder_sources(folder, [names["silent.wav"]])
    assert [file.file for file in chosen] == ["silent.wav"]
    with pytest.raises(ParamError, match="no own/absent"):
        sources.folder_sources(folder, ["own/absent"])
    with pytest.raises(ManifestError, match="no such folder"):
        sources.folder_sources(folder / "absent")


@pytest.mark.engine
def test_a_script_is_spoken_the_same_twice(tmp_path: Path) -> None:
    script = sources.shorten_script(first_script(), 1)
    (what,) = corpus.script_items([script])
    values = [made(tmp_path / name, what)[0] for name in ("one", "two")]
    assert values[0] == values[1]
    ((start, end),) = values[0]["turn_times"]
    assert (start, values[0]["speech"][0][1]) == (0.5, pytest.approx(0.5, abs=0.05))
    assert values[0]["speech"][-1][2] == pytest.approx(end, abs=0.05)
