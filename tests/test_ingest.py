"""Ingest of files of every kind; signals are tones and noise whose answers are known."""

from __future__ import annotations

import subprocess
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import soundfile as sf

from aegis import ingest
from aegis.audio import read_wav
from aegis.errors import AudioError, ManifestError
from aegis.ingest import Ingested, ingest_file, plan_ids
from aegis.tables import PROJECT

READERS = PROJECT.parent / "shared" / "data" / "audio_librispeech" / "test-clean"
RATE = 16_000


def tone(hz: float, seconds: float, rate: int = RATE, level: float = 0.3) -> np.ndarray:
    return level * np.sin(2 * np.pi * hz * np.arange(round(seconds * rate)) / rate)


def talk(seconds: float, active: list[tuple[float, float]], seed: int) -> np.ndarray:
    """Noise bursts of one speaker over a faint floor of its own."""
    generator = np.random.default_rng(seed)
    signal = 1e-4 * generator.standard_normal(round(seconds * RATE))
    for start, end in active:
        part = slice(round(start * RATE), round(end * RATE))
        signal[part] += 0.1 * generator.standard_normal(part.stop - part.start)
    return signal


def ingested(tmp_path: Path, source: Path) -> tuple[Ingested, np.ndarray]:
    target = tmp_path / "out" / "a.wav"
    found = ingest_file(source, target)
    return found, read_wav(target) if found.status == "ok" else np.zeros(0)


def written(path: Path, samples: np.ndarray, rate: int = RATE, subtype: str = "PCM_16") -> Path:
    sf.write(path, samples.T if samples.ndim > 1 else samples, rate, subtype=subtype)
    return path


@pytest.mark.parametrize(
    ("name", "rate", "subtype", "tolerance"),
    [
        ("a.wav", 16_000, "PCM_16", 1e-4),
        ("a.wav", 16_000, "PCM_U8", 0.01),
        ("a.wav", 44_100, "PCM_24", 1e-3),
        ("a.wav", 48_000, "FLOAT", 1e-3),
        ("a.wav", 8_000, "ULAW", 0.02),
        ("a.wav", 11_025, "PCM_32", 1e-3),
        ("a.flac", 22_050, "PCM_16", 1e-3),
        ("a.ogg", 44_100, "VORBIS", 0.03),
    ],
)
def test_any_rate_and_depth(
    tmp_path: Path, name: str, rate: int, subtype: str, tolerance: float
) -> None:
    source = written(tmp_path / name, tone(440, 2.0, rate), rate, subtype)
    found, signal = ingested(tmp_path, source)
    assert (found.status, found.layout, found.source_rate_hz) == ("ok", "mono", rate)
    assert found.n_samples == signal.size == pytest.approx(32_000, abs=1)
    middle = slice(4_000, 28_000)
    assert np.abs(signal[middle] - tone(440, 2.0)[middle]).max() < tolerance


@pytest.mark.parametrize("suffix", ["mp3", "m4a", "opus", "webm"])
def test_compressed_formats_keep_their_clock(tmp_path: Path, suffix: str) -> None:
    click = np.zeros(48_000 * 2)
    click[48_000 : 48_000 + 480] = tone(1_000, 0.01, 48_000, 0.9)
    wav = written(tmp_path / "a.wav", click, 48_000)
    source = tmp_path / f"b.{suffix}"
    command = ["ffmpeg", "-loglevel", "error", "-i", str(wav), "-b:a", "128k", str(source)]
    subprocess.run(command, check=True)
    found, signal = ingested(tmp_path, source)
    assert found.status == "ok"
    assert found.n_samples == pytest.approx(32_000, abs=1_000)
    assert int(np.abs(signal).argmax()) == pytest.approx(16_080, abs=160)


def test_a_speaker_per_channel(tmp_path: Path) -> None:
    left, right = talk(8, [(0, 3), (6, 8)], 1), talk(8, [(3.2, 6.2)], 2)
    bleed = np.stack([left + 0.05 * right, right + 0.05 * left])
    found, signal = ingested(tmp_path, written(tmp_path / "a.wav", bleed))
    assert (found.layout, found.n_channels, signal.shape) == (
        "speaker_per_channel",
        2,
        (2, 128_000),
    )
    assert np.abs(signal - bleed).max() < 1e-4


def test_copies_and_inverted_polarity_and_microphones(tmp_path: Path) -> None:
    voice = talk(4, [(0.5, 3)], 3)
    found, signal = ingested(tmp_path, written(tmp_path / "a.wav", np.stack([voice, voice])))
    assert found.layout == "mono"
    assert np.abs(signal - voice).max() < 1e-4
    found, signal = ingested(tmp_path, written(tmp_path / "b.wav", np.stack([voice, -voice])))
    assert found.layout == "mono"
    assert found.reason is not None
    assert "inverted polarity" in found.reason
    assert np.abs(np.abs(signal) - np.abs(voice)).max() < 1e-4
    room = np.stack([voice + 0.03 * talk(4, [(0, 4)], 4), np.roll(voice, 40)])
    found, signal = ingested(tmp_path, written(tmp_path / "c.wav", room))
    assert found.layout == "downmix"
    assert np.abs(signal - room.mean(axis=0)).max() < 1e-4


def test_a_dead_channel_is_left_out(tmp_path: Path) -> None:
    voice = talk(4, [(0.5, 3)], 3)
    found, signal = ingested(tmp_path, written(tmp_path / "a.wav", np.stack([0 * voice, voice])))
    assert (found.layout, found.n_channels) == ("mono", 1)
    assert found.reason == "1 of 2 channels dead"
    assert np.abs(signal - voice).max() < 1e-4


def test_unusable_files_are_refused_with_their_reason(tmp_path: Path) -> None:
    (tmp_path / "empty.wav").touch()
    written(tmp_path / "header.wav", np.zeros(0))
    (tmp_path / "text.mp3").write_text("no sound here, only words " * 50)
    (tmp_path / "noise.m4a").write_bytes(np.random.default_rng(0).bytes(4_000))
    bad = tone(440, 2).astype(np.float32)
    bad[20_000:20_003] = [np.nan, np.inf, -np.inf]
    written(tmp_path / "nan.wav", bad, subtype="FLOAT")
    for name, rule in {
        "empty.wav": "0 bytes",
        "header.wav": "header without samples",
        "text.mp3": "cannot be decoded",
        "noise.m4a": "cannot be decoded",
        "nan.wav": "3 samples are NaN or infinite",
    }.items():
        with pytest.raises(AudioError, match=rule) as caught:
            ingest_file(tmp_path / name, tmp_path / "out.wav")
        assert name not in str(caught.value)
    assert not (tmp_path / "out.wav").exists()
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize(
    ("samples", "reason"),
    [
        (np.zeros(RATE * 2), "constant signal"),
        (np.full(RATE * 2, 0.25), "constant signal"),
        (2e-4 * np.random.default_rng(1).standard_normal(RATE * 2), "silent"),
        (tone(440, 0.2), "only 0.20 s long"),
    ],
)
def test_nothing_to_hear_is_excluded(tmp_path: Path, samples: np.ndarray, reason: str) -> None:
    found, _ = ingested(tmp_path, written(tmp_path / "a.wav", samples, subtype="FLOAT"))
    assert found.status == "excluded"
    assert found.reason is not None
    assert reason in found.reason
    assert not (tmp_path / "out" / "a.wav").exists()


def test_offset_and_full_scale(tmp_path: Path) -> None:
    found, signal = ingested(tmp_path, written(tmp_path / "a.wav", tone(440, 2) + 0.1))
    assert found.reason == "offset of 0.100 removed"
    assert abs(float(signal.mean())) < 1e-4
    loud = written(tmp_path / "b.wav", tone(440, 2, level=2.0), subtype="FLOAT")
    found, signal = ingested(tmp_path, loud)
    assert found.gain_db == pytest.approx(-6.02, abs=0.01)
    assert np.abs(signal).max() == pytest.approx(1.0, abs=1e-3)


def test_a_truncated_file_keeps_what_is_there_and_says_so(tmp_path: Path) -> None:
    for name in ("a.wav", "a.flac"):
        noise = 0.1 * np.random.default_rng(2).standard_normal(RATE * 8)
        content = written(tmp_path / name, noise).read_bytes()
        (tmp_path / name).write_bytes(content[: len(content) // 2])
        found, signal = ingested(tmp_path, tmp_path / name)
        assert found.status == "ok"
        assert found.reason is not None
        assert "truncated" in found.reason or "damaged" in found.reason
        assert signal.size == pytest.approx(4 * RATE, rel=0.1)


def test_a_folder_gives_every_file_one_fate(tmp_path: Path) -> None:
    written(tmp_path / "entretien numéro #1 100%.wav", tone(440, 2))
    written(tmp_path / "a b.wav", tone(550, 2))
    (tmp_path / "zz copy.wav").write_bytes((tmp_path / "a b.wav").read_bytes())
    (tmp_path / "notes.txt").write_text("not a recording")
    (tmp_path / ".hidden.wav").write_bytes((tmp_path / "a b.wav").read_bytes())
    (tmp_path / "no suffix").write_bytes(written(tmp_path / "c.flac", tone(660, 2)).read_bytes())
    (tmp_path / "below").mkdir()
    (tmp_path / "c.flac").rename(tmp_path / "below" / "c.flac")
    planned = plan_ids(tmp_path)
    ids = {file.name: file.recording_id for file in planned}
    fates = {file.name: file.excluded for file in planned}
    assert len(planned) == len({file.recording_id for file in planned}) == 7
    assert all(i.isascii() and i.startswith("own/") for i in ids.values())
    assert fates["entretien numéro #1 100%.wav"] is None
    assert fates["a b.wav"] is None
    assert fates["below/c.flac"] is None
    assert fates["zz copy.wav"] == f"the same file as {ids['a b.wav']}"
    assert fates["no suffix"] == f"the same file as {ids['below/c.flac']}"
    assert fates["notes.txt"] == "not an audio file (.txt)"
    assert fates[".hidden.wav"] == "not an audio file (hidden)"
    assert plan_ids(tmp_path) == planned


def test_public_stems_and_empty_folders(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="empty; put recordings there"):
        plan_ids(tmp_path)
    with pytest.raises(ManifestError, match="no such folder"):
        plan_ids(tmp_path / "absent")
    written(tmp_path / "visite é 1.wav", tone(440, 1))
    ids = [file.recording_id for file in plan_ids(tmp_path, "simsamu", stems_are_public=True)]
    assert ids == ["simsamu/visite___1"]


def test_a_file_that_cannot_be_read_does_not_end_the_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path / "a.wav", tone(440, 1))
    written(tmp_path / "b.wav", tone(550, 1))
    read = ingest.file_sha256

    def refuse(path: Path) -> str:
        if path.name == "a.wav":
            raise PermissionError(13, "Permission denied")
        return read(path)

    monkeypatch.setattr(ingest, "file_sha256", refuse)
    first, second = plan_ids(tmp_path)
    assert (first.recording_id, first.excluded) == (
        "own/unreadable",
        "cannot be read (Permission denied)",
    )
    assert second.excluded is None


def test_equal_sound_in_two_formats_is_found() -> None:
    rows = [("own/a", "x"), ("own/b", None), ("own/c", "x"), ("own/d", None), ("own/e", "y")]
    assert ingest.same_sound(rows) == {"own/c": "own/a"}


def test_memory_does_not_grow_with_duration(tmp_path: Path) -> None:
    block = (0.1 * np.random.default_rng(3).standard_normal((60 * 8_000, 2))).astype(np.float32)
    peaks = []
    for minutes in (1, 8):
        source = tmp_path / f"{minutes}.wav"
        with sf.SoundFile(source, "w", 8_000, 2, "PCM_16") as handle:
            for _ in range(minutes):
                handle.write(block)
        tracemalloc.start()
        found = ingest_file(source, tmp_path / "out.wav")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert found.n_samples == minutes * 60 * RATE
    assert peaks[1] < 1.1 * peaks[0]


@pytest.mark.skipif(not READERS.exists(), reason="shared data are not here")
def test_two_real_readers_on_two_channels(tmp_path: Path) -> None:
    """Readers take turns; each channel hears the other 26 dB softer, over its own noise."""
    (a, b), second = (
        [sf.read(path)[0] for path in sorted((READERS / reader).glob("*.flac"))[:2]]
        for reader in ("1089", "1995")
    )
    c = second[0]
    left = np.concatenate([a, np.zeros(c.size), b])
    right = np.concatenate([np.zeros(a.size), c, np.zeros(b.size)])
    hiss = 1e-3 * np.random.default_rng(4).standard_normal((2, left.size))
    both = np.stack([left + 0.05 * right, right + 0.05 * left]) + hiss
    found, _ = ingested(tmp_path, written(tmp_path / "both.wav", both))
    assert found.layout == "speaker_per_channel"
    panned = np.stack([left + 0.6 * right, right + 0.6 * left]) + hiss
    found, _ = ingested(tmp_path, written(tmp_path / "panned.wav", panned))
    assert found.layout == "downmix"
