"""Reading, writing and checking sound.

Inside the study a signal is a float32 array of shape ``(n,)`` (mono) or
``(channels, n)``, in [-1, 1], at 16 kHz. All files are written by
:func:`write_wav` and by nothing else, as PCM16, because libsndfile clips and
turns NaN into full scale without a word.
"""

from __future__ import annotations

import hashlib
import io
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile as sf
from numpy.typing import NDArray

from aegis.errors import AudioError

SAMPLE_RATE_HZ = 16_000
PCM16_STEP = 1.0 / 32768.0

Signal = NDArray[np.float32]


@dataclass(frozen=True)
class Recording:
    """A decoded file: ``samples`` of shape (channels, n), float32, at its own rate."""

    samples: Signal
    sample_rate_hz: int

    @property
    def duration_s(self) -> float:
        return float(self.samples.shape[1] / self.sample_rate_hz)


def read_audio(path: Path) -> Recording:
    """Decode a WAV, FLAC, OGG, MP3 or M4A file of any rate, depth and channel count.

    Raises
    ------
    AudioError
        The file is empty, holds no audio, cannot be decoded, or holds NaN or infinity.
    """
    if path.stat().st_size == 0:
        raise AudioError("the file has 0 bytes")
    try:
        samples, rate = sf.read(path, dtype="float32", always_2d=True)
        samples = samples.T
    except sf.LibsndfileError:
        samples, rate = _read_with_ffmpeg(path)
    if samples.size == 0:
        raise AudioError("a header without samples")
    if rate <= 0:
        raise AudioError(f"a header of {rate} Hz")
    if not np.isfinite(samples).all():
        bad = int((~np.isfinite(samples)).sum())
        raise AudioError(f"{bad} samples are NaN or infinite")
    return Recording(np.ascontiguousarray(samples, dtype=np.float32), int(rate))


def _read_with_ffmpeg(path: Path) -> tuple[Signal, int]:
    """Decode through PyAV (the FFmpeg libraries that faster-whisper carries)."""
    import av

    try:
        with av.open(str(path)) as container:
            if not container.streams.audio:
                raise AudioError("no audio stream")
            stream = container.streams.audio[0]
            resampler = av.AudioResampler(format="fltp", rate=stream.rate)
            frames = [
                out for frame in container.decode(stream) for out in resampler.resample(frame)
            ]
            blocks = [frame.to_ndarray() for frame in frames]
            rate = int(stream.rate)
    except av.FFmpegError as error:
        raise AudioError(f"cannot be decoded ({error.strerror})") from error
    if not blocks:
        raise AudioError("a header without samples")
    return np.concatenate(blocks, axis=1).astype(np.float32), rate


def resample(samples: Signal, from_hz: int, to_hz: int = SAMPLE_RATE_HZ) -> Signal:
    """Resample the last axis (soxr, high quality); a no-op when the rates are equal."""
    if from_hz == to_hz:
        return samples
    import soxr

    return np.ascontiguousarray(soxr.resample(samples.T, from_hz, to_hz).T, dtype=np.float32)


def read_wav(path: Path) -> Signal:
    """Read a 16-kHz file of this study: shape (n,) when mono, else (channels, n)."""
    recording = read_audio(path)
    if recording.sample_rate_hz != SAMPLE_RATE_HZ:
        raise AudioError(f"{recording.sample_rate_hz} Hz, expected {SAMPLE_RATE_HZ}")
    return recording.samples[0] if recording.samples.shape[0] == 1 else recording.samples


@dataclass(frozen=True)
class Written:
    """What :func:`write_wav` did: the file's SHA-256, samples a channel, gain in dB."""

    sha256: str
    n_samples: int
    gain_db: float


def write_wav(path: Path, samples: Signal, sample_rate_hz: int = SAMPLE_RATE_HZ) -> Written:
    """Write PCM16 atomically; a signal above full scale is turned down and the gain reported.

    Raises
    ------
    AudioError
        The signal is empty or not finite.
    """
    samples = np.asarray(samples, dtype=np.float32)
    if samples.size == 0:
        raise AudioError(f"{path.name}: refused to write an empty signal")
    if not np.isfinite(samples).all():
        raise AudioError(f"{path.name}: refused to write NaN or infinity")
    # PCM16 reaches from -1 to just below 1; -1 itself is in range.
    over = max(float(samples.max()) / (1.0 - PCM16_STEP), -float(samples.min()))
    gain = 1.0 / max(over, 1.0)
    # Without over-range samples the signal is stored as it is, so a replay is exact.
    quantised = np.rint(samples * gain * 32768.0).clip(-32768, 32767).astype(np.int16)
    buffer = io.BytesIO()
    sf.write(buffer, quantised.T, sample_rate_hz, format="WAV", subtype="PCM_16")
    write_bytes(path, buffer.getvalue())
    digest = hashlib.sha256(buffer.getvalue()).hexdigest()
    return Written(digest, int(samples.shape[-1]), 20.0 * float(np.log10(gain)))


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file in one step: a reader sees the old content or the new, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(scratch, "wb") as handle:
            handle.write(content)
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(scratch, path)
    finally:
        scratch.unlink(missing_ok=True)


def cut(samples: Signal, start_s: float, end_s: float) -> Signal:
    """The samples of ``[start_s, end_s)`` on the last axis, clamped to the signal."""
    first, last = round(start_s * SAMPLE_RATE_HZ), round(end_s * SAMPLE_RATE_HZ)
    return samples[..., max(first, 0) : max(last, 0)]


def rms_db(samples: Signal) -> float:
    """Root mean square in dB relative to full scale; ``-inf`` for silence."""
    power = float(np.mean(np.square(samples, dtype=np.float64))) if samples.size else 0.0
    return 10.0 * float(np.log10(power)) if power > 0 else float("-inf")


def check_not_source(samples: Signal, source: Signal, name: str) -> None:
    """Refuse generated sound that is its source, at any level and shift.

    Raises
    ------
    AudioError
        The largest normalised cross-correlation of the two reaches 0.95.
    """
    n = 1 << (samples.size + source.size - 1).bit_length()
    spectrum = np.fft.rfft(samples, n) * np.conj(np.fft.rfft(source, n))
    largest = float(np.abs(np.fft.irfft(spectrum, n)).max())
    energy = float(np.linalg.norm(samples)) * float(np.linalg.norm(source))
    if energy > 0 and largest >= 0.95 * energy:
        raise AudioError(f"{name}: returned the original sound")


def check_generated(
    samples: Signal, expected_s: float, name: str, length_ratio: tuple[float, float] = (0.95, 1.05)
) -> None:
    """Refuse what a generating engine must not return.

    Parameters
    ----------
    samples
        Mono signal from a converter or renderer.
    expected_s
        Duration that it should have, in seconds.
    length_ratio
        Allowed range of actual over expected duration.

    Raises
    ------
    AudioError
        Not finite, quieter than -70 dBFS, or out of the length range.
    """
    if samples.ndim != 1 or samples.size == 0:
        raise AudioError(f"{name}: returned shape {samples.shape}, expected (n,) with n > 0")
    if not np.isfinite(samples).all():
        raise AudioError(f"{name}: returned NaN or infinity")
    level = rms_db(samples)
    if level < -70.0:
        raise AudioError(f"{name}: returned silence ({level:.0f} dBFS)")
    ratio = samples.size / SAMPLE_RATE_HZ / expected_s
    if not length_ratio[0] <= ratio <= length_ratio[1]:
        low, high = length_ratio
        raise AudioError(f"{name}: length ratio {ratio:.2f} outside [{low}, {high}]")
