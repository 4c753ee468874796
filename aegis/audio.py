"""Reading, writing and checking sound.

Inside the study a signal is a float32 array of shape ``(n,)`` (mono) or
``(channels, n)``, in [-1, 1], at 16 kHz. A recording may last hours: :func:`open_wav` gives
it as a :class:`LongSignal`, of which only what is sliced is in memory. All files are
written by :func:`write_wav` and by nothing else, as PCM16, because libsndfile clips and
turns NaN into full scale without a word.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import soundfile as sf
from numpy.typing import NDArray

from aegis.errors import AudioError

SAMPLE_RATE_HZ = 16_000
PCM16_STEP = 1.0 / 32768.0

Signal = NDArray[np.float32]
BLOCK = 1 << 17
"""Samples a channel (8 s) that are held at a time where a whole signal is gone through."""


class LongSignal:
    """A signal whose samples are made where it is sliced.

    Parameters
    ----------
    shape
        ``(n,)`` or ``(channels, n)``.
    read
        Gives the samples ``[first, last)`` of the last axis, float32.

    ``signal[a:b]``, ``signal[..., a:b]`` and ``np.asarray(signal)`` are arrays; a row of two
    dimensions is a LongSignal.
    """

    def __init__(self, shape: tuple[int, ...], read: Callable[[int, int], Signal]) -> None:
        self.shape, self._read = shape, read

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, int) and self.ndim == 2:
            row = range(self.shape[0])[key]
            return LongSignal(self.shape[1:], lambda first, last: self._read(first, last)[row])
        place = key[1] if isinstance(key, tuple) and key[0] is Ellipsis else key
        if not isinstance(place, slice) or (place is key and self.ndim != 1):
            raise TypeError(f"a LongSignal is sliced on its last axis, not by {key!r}")
        first, last, _ = place.indices(self.shape[-1])
        return self._read(first, max(first, last))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self._read(0, self.shape[-1]), dtype=dtype)


AnySignal = Signal | LongSignal


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
            stream = audio_stream(container)
            resampler = av.AudioResampler(format="fltp", rate=stream.rate)
            frames = [
                out for frame in container.decode(stream) for out in resampler.resample(frame)
            ]
            blocks = [frame.to_ndarray() for frame in frames]
            rate = int(stream.rate)
            joined = np.concatenate(blocks, axis=1) if blocks else None
    except (av.FFmpegError, ValueError) as error:  # ValueError: frames of another form midway
        raise AudioError(f"cannot be decoded ({getattr(error, 'strerror', error)})") from error
    if joined is None:
        raise AudioError("a header without samples")
    return joined.astype(np.float32), rate


def audio_stream(container: Any) -> Any:
    """The first sound in an open PyAV container.

    Raises
    ------
    AudioError
        There is none, or no decoder knows it (such a stream has no rate to ask for).
    """
    if not container.streams.audio:
        raise AudioError("no audio stream")
    stream = container.streams.audio[0]
    if stream.codec_context is None or not stream.rate or not stream.channels:
        raise AudioError("cannot be decoded: no decoder knows its audio, or its header is damaged")
    return stream


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


def open_wav(path: Path) -> LongSignal:
    """A 16-kHz file of this study, read where it is sliced: shape (n,), else (channels, n).

    Raises
    ------
    AudioError
        The file is empty, cannot be decoded, or has another rate.
    """
    if path.stat().st_size == 0:
        raise AudioError("the file has 0 bytes")
    try:
        info = sf.info(path)
    except sf.LibsndfileError as error:
        raise AudioError("cannot be decoded") from error
    if info.frames == 0:
        raise AudioError("a header without samples")
    if info.samplerate != SAMPLE_RATE_HZ:
        raise AudioError(f"{info.samplerate} Hz, expected {SAMPLE_RATE_HZ}")

    def read(first: int, last: int) -> Signal:
        part = sf.read(path, last - first, first, dtype="float32", always_2d=True)[0].T
        return part[0] if info.channels == 1 else np.ascontiguousarray(part)

    shape = (info.frames,) if info.channels == 1 else (info.channels, info.frames)
    return LongSignal(shape, read)


def open_channel(path: Path, number: int) -> AnySignal:
    """One channel of a file as :func:`open_wav` gives it; the last where there are fewer."""
    sound = open_wav(path)
    channel: AnySignal = sound if sound.ndim == 1 else sound[min(number, len(sound) - 1)]
    return channel


def mono_of(samples: AnySignal) -> AnySignal:
    """The mean of the channels; a mono signal as it is."""
    if samples.ndim == 1:
        return samples

    def read(first: int, last: int) -> Signal:
        mean: Signal = samples[..., first:last].mean(axis=0, dtype=np.float32)
        return mean

    return LongSignal(samples.shape[1:], read)


def join_signals(parts: Sequence[AnySignal]) -> LongSignal:
    """Mono signals one after the other."""
    ends = np.cumsum([part.size for part in parts]).tolist()

    def read(first: int, last: int) -> Signal:
        pieces = [
            part[max(0, first - end + part.size) : max(0, last - end + part.size)]
            for part, end in zip(parts, ends, strict=True)
            if first < end and last > end - part.size
        ]
        return np.concatenate([np.zeros(0, np.float32), *pieces])

    return LongSignal((ends[-1] if ends else 0,), read)


def rows_of(samples: AnySignal) -> list[AnySignal]:
    """The channels of a signal, each of shape (n,)."""
    return [samples] if samples.ndim == 1 else [samples[k] for k in range(samples.shape[0])]


def blocks_of(samples: AnySignal) -> Iterator[Signal]:
    """The signal in order, :data:`BLOCK` samples of the last axis at a time."""
    for first in range(0, samples.shape[-1], BLOCK):
        yield samples[..., first : first + BLOCK]


@dataclass(frozen=True)
class Written:
    """What :func:`write_wav` did: the file's SHA-256, samples a channel, gain in dB."""

    sha256: str
    n_samples: int
    gain_db: float


def write_wav(path: Path, samples: AnySignal, private: bool = False) -> Written:
    """Write PCM16 atomically; a signal above full scale is turned down and the gain reported.

    The signal is gone through twice, block by block. ``private``: only the owner may read it.

    Raises
    ------
    AudioError
        The signal is empty or not finite.
    """
    if not isinstance(samples, LongSignal):
        samples = np.asarray(samples, dtype=np.float32)
    if samples.size == 0:
        raise AudioError(f"{path.name}: refused to write an empty signal")
    # PCM16 reaches from -1 to just below 1; -1 itself is in range.
    over = 1.0
    for block in blocks_of(samples):
        if not np.isfinite(block).all():
            raise AudioError(f"{path.name}: refused to write NaN or infinity")
        over = max(over, float(block.max()) / (1.0 - PCM16_STEP), -float(block.min()))
    gain, n_channels = 1.0 / over, 1 if samples.ndim == 1 else samples.shape[0]
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with sf.SoundFile(scratch, "w", SAMPLE_RATE_HZ, n_channels, "PCM_16", format="WAV") as out:
            for block in blocks_of(samples):
                # Without over-range samples the signal is stored as it is: a replay is exact.
                steps = np.rint(block * gain * 32768.0).clip(-32768, 32767)
                out.write(steps.astype(np.int16).T)
        with open(scratch, "rb+") as handle:
            os.fsync(handle.fileno())
            digest = hashlib.file_digest(handle, "sha256").hexdigest()
        if private:
            scratch.chmod(0o600)
        os.replace(scratch, path)
    finally:
        scratch.unlink(missing_ok=True)
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


def cut(samples: AnySignal, start_s: float, end_s: float) -> Signal:
    """The samples of ``[start_s, end_s)`` on the last axis, clamped to the signal."""
    first, last = round(start_s * SAMPLE_RATE_HZ), round(end_s * SAMPLE_RATE_HZ)
    part: Signal = samples[..., max(first, 0) : max(last, 0)]
    return part


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
