"""What a worker does to one recording of the corpus: synthesise it, ingest it.

Synthesis makes a recording from a script: turns spoken one by one, levelled,
placed with their pauses and overlaps, and rendered (noise, channels, sample rate)
into a file like a user's, under ``secret/sources/``. Ingest treats that file like
any other. Times are seconds on the recording's clock; the truth is sample-exact at
16 kHz because it is the placement itself.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import soundfile as sf
from numpy.typing import NDArray

from aegis import engines, ingest
from aegis.audio import SAMPLE_RATE_HZ, Signal, resample, rms_db, write_bytes
from aegis.engines.synthesis import speech_intervals
from aegis.errors import AudioError
from aegis.scripts import Script
from aegis.tables import Run

LEVEL_DBFS = -23.0
LEVEL_SPREAD_DB = 2.0
EDGE_S = 0.5
ROOM_DBFS = -70.0
FORMATS: dict[str, tuple[str, str, str]] = {
    "flac": (".flac", "FLAC", "PCM_16"),
    "mp3": (".mp3", "MP3", "MPEG_LAYER_III"),
    "wav": (".wav", "WAV", "PCM_16"),
    "wav24": (".wav", "WAV", "PCM_24"),
    "mulaw": (".wav", "WAV", "ULAW"),
}


def script_items(scripts: Sequence[Script]) -> list[dict[str, Any]]:
    """Items of :func:`synthesise_recording`; each holds all that its audio depends on."""
    return [
        {
            "id": script.recording_id,
            "cost": sum(len(turn.text) for turn in script.turns),
            **asdict(script.rendering),
            "turns": [
                {"speaker": turn.speaker, "voice": turn.voice, "language": turn.language,
                 "text": turn.text, "pause_s": turn.pause_s, "overlap_s": turn.overlap_s}
                for turn in script.turns
            ],
        }
        for script in scripts
    ]  # fmt: skip


def synthesise_recording(
    item: dict[str, Any], settings: dict[str, Any], run: Run
) -> dict[str, Any]:
    """Make one scripted recording.

    Parameters
    ----------
    item
        One of :func:`script_items`.
    settings
        ``seed``: of levels and noise.

    Returns
    -------
    ``file`` (relative to the run) and ``files``, ``sha256``; ``turn_times`` in seconds;
    ``speech``: turn index, start, end of each stretch without a pause over 0.2 s; ``snr_db``.
    """
    speakers = sorted({turn["speaker"] for turn in item["turns"]})
    levels = {s: _level_dbfs(settings["seed"], item["id"], s) for s in speakers}
    spoken = [_speak(turn, levels[turn["speaker"]]) for turn in item["turns"]]
    starts = place_turns([s.size for s in spoken], item["turns"])
    channels = [speakers.index(turn["speaker"]) for turn in item["turns"]]
    if item["layout"] != "speaker_per_channel":
        channels = [0] * len(spoken)
    clean, speaking = mix_turns(spoken, starts, channels)
    noise = pink_noise(clean.shape, np.random.default_rng(_seed(settings["seed"], item["id"])))
    noise *= noise_gain(clean[speaking], item["noise_snr_db"])
    path, content = _encode(run, item, clean + noise)
    write_bytes(path, content)
    path.chmod(0o600)
    digest, file = sha256(content).hexdigest(), run.relative(path)
    intervals = [
        [index, _seconds(start + first), _seconds(start + last)]
        for index, (start, signal) in enumerate(zip(starts, spoken, strict=True))
        for first, last in speech_intervals(signal)
    ]
    return {
        "file": file,
        "sha256": digest,
        "files": {file: digest},
        "turn_times": [
            [_seconds(a), _seconds(a + s.size)] for a, s in zip(starts, spoken, strict=True)
        ],
        "speech": intervals,
        "snr_db": item["noise_snr_db"],
    }


def _seconds(sample: int) -> float:
    return sample / SAMPLE_RATE_HZ


def _seed(*parts: object) -> int:
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(sha256(text.encode()).digest()[:8], "big")


def _level_dbfs(seed: int, recording_id: str, speaker: str) -> float:
    generator = np.random.default_rng(_seed(seed, recording_id, speaker))
    return LEVEL_DBFS + float(generator.uniform(-LEVEL_SPREAD_DB, LEVEL_SPREAD_DB))


def _speak(turn: dict[str, Any], level_dbfs: float) -> Signal:
    """One turn at its speaker's level (root mean square over the whole turn)."""
    name, _, base_voice = turn["voice"].partition(":")
    engine = engines.load("synthesiser", name)
    with engines.engine_time():
        signal: Signal = engine.speak(turn["text"], base_voice, turn["language"])
    return np.asarray(signal * 10.0 ** ((level_dbfs - rms_db(signal)) / 20.0), dtype=np.float32)


def place_turns(lengths: Sequence[int], turns: Sequence[dict[str, Any]]) -> list[int]:
    """First sample of each turn: after a pause behind all earlier ones, or overlapping.

    Raises
    ------
    AudioError
        A turn would start before the one that it overlaps.
    """
    starts: list[int] = []
    ends = [round(EDGE_S * SAMPLE_RATE_HZ)]
    for index, (length, turn) in enumerate(zip(lengths, turns, strict=True)):
        if turn["overlap_s"]:
            start = ends[-1] - round(turn["overlap_s"] * SAMPLE_RATE_HZ)
            if start <= starts[-1]:
                raise AudioError(f"script: turn {index} overlaps more than the turn before it")
        else:
            pause_s = turn["pause_s"] if index else 0.0
            start = max(ends) + round(pause_s * SAMPLE_RATE_HZ)
        starts.append(start)
        ends.append(start + length)
    return starts


def mix_turns(
    spoken: Sequence[Signal], starts: Sequence[int], channels: Sequence[int]
) -> tuple[Signal, NDArray[np.bool_]]:
    """Sum the turns into shape ``(channels, n)``, half a second of silence at the end.

    The second array, of the same shape, says where a turn is.
    """
    last = max(start + signal.size for start, signal in zip(starts, spoken, strict=True))
    shape = max(channels) + 1, last + round(EDGE_S * SAMPLE_RATE_HZ)
    mixed, speaking = np.zeros(shape, dtype=np.float32), np.zeros(shape, dtype=np.bool_)
    for signal, start, channel in zip(spoken, starts, channels, strict=True):
        mixed[channel, start : start + signal.size] += signal
        speaking[channel, start : start + signal.size] = True
    return mixed, speaking


def pink_noise(shape: tuple[int, ...], generator: np.random.Generator) -> Signal:
    """Noise with 3 dB less per octave above 50 Hz (like a room's), root mean square 1."""
    spectrum = np.fft.rfft(generator.standard_normal(shape, dtype=np.float32), axis=-1)
    frequency = np.fft.rfftfreq(shape[-1], 1.0 / SAMPLE_RATE_HZ)
    spectrum /= np.sqrt(np.maximum(frequency, 50.0))
    spectrum[..., 0] = 0.0
    noise = np.fft.irfft(spectrum, shape[-1], axis=-1)
    return np.asarray(noise / np.sqrt(np.mean(noise**2)), dtype=np.float32)


def noise_gain(speech: Signal, snr_db: float | None) -> float:
    """Level of noise for ``snr_db`` below the mean power inside turns; None: a quiet room."""
    noise_dbfs = ROOM_DBFS if snr_db is None else rms_db(speech) - snr_db
    return float(10.0 ** (noise_dbfs / 20.0))


def _encode(run: Run, item: dict[str, Any], samples: Signal) -> tuple[Path, bytes]:
    """The file's path and bytes; turned down where it would clip."""
    suffix, container, subtype = FORMATS[item["format"]]
    rate = int(item["sample_rate_hz"])
    samples = resample(samples, SAMPLE_RATE_HZ, rate)
    samples = samples / max(1.0, float(np.abs(samples).max()) / 0.99)
    buffer = io.BytesIO()
    sf.write(buffer, samples.T, rate, format=container, subtype=subtype)
    path = run.secret / "sources" / f"{item['id']}{suffix}"
    return path, buffer.getvalue()


def ingest_recording(item: dict[str, Any], settings: dict[str, Any], run: Run) -> dict[str, Any]:
    """Bring one file to the study's form: a 16-kHz WAV under ``secret/wav/original/``.

    Parameters
    ----------
    item
        ``id`` (the recording id), ``path`` (absolute, or relative to the run) and
        ``source_sha256``; ``parts`` and ``mixed`` for a recording with a file a speaker.

    Returns
    -------
    The columns of ``recordings`` that come from the sound, and ``files``. ``status`` is
    ``excluded`` when there is nothing to listen to.
    """
    target = run.original_path(item["id"])
    if item.get("parts"):
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=target.parent, suffix=".wav") as scratch:
            parts = [Path(part) for part in item["parts"]]
            ingest.join_files(parts, Path(scratch.name), mixed=item["mixed"])
            found = ingest.ingest_file(Path(scratch.name), target)
    else:
        found = ingest.ingest_file(run.root / item["path"], target)
    row = found.row()
    if found.status == "ok":
        row["files"] = {run.relative(target): found.sha256}
    return row
