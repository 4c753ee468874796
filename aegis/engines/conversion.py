"""Voice conversion: another voice for a turn, same words, same length.

Unit: one turn, mono float32 at 16 kHz; frames are 5 ms apart. ``world`` moves a turn
towards its reference voice with the WORLD vocoder: the pitch distribution, the formant
scale, and the distribution of the cepstral envelope (mean and covariance, a Gaussian
optimal-transport map); energy, voicing and timing stay. ``mcadams`` is baseline B2 of
the VoicePrivacy Challenge: it bends the angles of the linear-prediction poles and knows
no reference. Both are signal processing: an informed attacker can undo much of it.

Functions: :func:`analyse`, :func:`synthesise`, :func:`apply_variant`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from aegis.audio import SAMPLE_RATE_HZ, Signal
from aegis.engines import EngineInfo, Voice, register
from aegis.errors import AudioError, EngineUnavailable

Array = NDArray[np.float64]
Key = TypeVar("Key")
Value = TypeVar("Value")

FRAME_MS = 5.0
SHORTEST = SAMPLE_RATE_HZ // 10
"""WORLD needs about 0.1 s; shorter turns are padded with zeros for the analysis."""
F0_RANGE_HZ = (60.0, 500.0)


@dataclass(frozen=True)
class Analysis:
    """WORLD parameters: ``f0`` (frames,) in Hz, 0 where unvoiced; the power envelope and
    the aperiodicity, both (frames, bins); ``n_samples`` of the signal."""

    f0: Array
    envelope: Array
    aperiodicity: Array
    n_samples: int

    @property
    def voiced(self) -> NDArray[np.bool_]:
        return self.f0 > 0


def _world() -> Any:
    try:
        import pyworld
    except ImportError as error:
        raise EngineUnavailable(f"world: pip install pyworld ({error})") from error
    return pyworld


def estimate_f0(samples: Signal) -> tuple[Array, Array]:
    """Pitch and frame times (DIO, refined by StoneMask), both of shape (frames,)."""
    world = _world()
    signal = samples.astype(np.float64)
    low, high = F0_RANGE_HZ
    # Wider steps between frames and finer bands than DIO's defaults keep speech voiced that
    # a recogniser needs; Harvest gains little more for ten times the time.
    rough, times = world.dio(
        signal, SAMPLE_RATE_HZ, f0_floor=low, f0_ceil=high, frame_period=FRAME_MS,
        channels_in_octave=8.0, allowed_range=0.2,
    )  # fmt: skip
    return world.stonemask(signal, rough, times, SAMPLE_RATE_HZ), times


def analyse(samples: Signal) -> Analysis:
    """Decompose a signal; refuses what is not mono or not finite.

    The last analyses are kept by content, about a minute of sound: several converters and
    pseudo-voices ask for the same turns one after the other.
    """
    if samples.ndim != 1 or samples.size == 0 or not np.isfinite(samples).all():
        raise AudioError(f"world: source of shape {samples.shape} is empty or not finite")
    key = hashlib.sha256(samples.tobytes()).hexdigest()
    found = _kept.pop(key, None) or _decompose(samples)
    _kept[key] = found
    while len(_kept) > 1 and sum(analysis.f0.size for analysis in _kept.values()) > KEPT_FRAMES:
        _kept.pop(next(iter(_kept)))
    return found


KEPT_FRAMES = 12_000
_kept: dict[str, Analysis] = {}


def _decompose(samples: Signal) -> Analysis:
    world = _world()
    padded = np.pad(samples, (0, max(0, SHORTEST - samples.size)))
    f0, times = estimate_f0(padded)
    signal = padded.astype(np.float64)
    envelope = world.cheaptrick(signal, f0, times, SAMPLE_RATE_HZ)
    aperiodicity = world.d4c(signal, f0, times, SAMPLE_RATE_HZ, threshold=0.0)
    return Analysis(f0, envelope, aperiodicity, samples.size)


def synthesise(analysis: Analysis) -> Signal:
    """The signal of a decomposition, cut or padded to ``n_samples``."""
    signal = _world().synthesize(
        np.ascontiguousarray(analysis.f0),
        np.ascontiguousarray(analysis.envelope),
        np.ascontiguousarray(analysis.aperiodicity),
        SAMPLE_RATE_HZ,
        FRAME_MS,
    )
    fitted = np.pad(signal, (0, max(0, analysis.n_samples - signal.size)))
    return np.asarray(fitted[: analysis.n_samples], dtype=np.float32)


def stretch_axis(values: Array, ratio: float, axis: int) -> Array:
    """Read ``values`` at positions ``i / ratio`` on one axis (linear; the last value repeats)."""
    moved = np.moveaxis(values, axis, -1)
    last = moved.shape[-1] - 1
    at = np.minimum(np.arange(last + 1) / ratio, last)
    low = np.floor(at).astype(int)
    high, share = np.minimum(low + 1, last), at - low
    return np.moveaxis(moved[..., low] * (1 - share) + moved[..., high] * share, -1, axis)


def warp_formants(analysis: Analysis, ratio: float) -> Analysis:
    """Scale the frequency axis of the envelope: formants move to ``ratio`` times their place."""
    if ratio == 1.0:
        return analysis
    envelope = np.exp(stretch_axis(np.log(analysis.envelope), ratio, 1))
    aperiodicity = stretch_axis(analysis.aperiodicity, ratio, 1)
    return replace(analysis, envelope=envelope, aperiodicity=aperiodicity)


def change_rate(analysis: Analysis, rate: float) -> Analysis:
    """Speak ``rate`` times as fast: frames are picked from the nearest place in time."""
    if rate == 1.0:
        return analysis
    n_frames = max(1, round(analysis.f0.size / rate))
    at = np.minimum(np.round(np.arange(n_frames) * rate).astype(int), analysis.f0.size - 1)
    return Analysis(
        analysis.f0[at],
        analysis.envelope[at],
        analysis.aperiodicity[at],
        round(analysis.n_samples / rate),
    )


def apply_variant(samples: Signal, variant: Mapping[str, float]) -> Signal:
    """Turn a base voice's speech into a declared variant of it.

    Parameters
    ----------
    variant
        ``f0_ratio``, ``formant_ratio`` and ``rate``; absent ones are 1. Without any
        change the samples come back as they are.
    """
    unknown = set(variant) - {"f0_ratio", "formant_ratio", "rate"}
    if unknown:
        raise AudioError(f"variant: unknown keys {sorted(unknown)}")
    f0_ratio, formant_ratio, rate = (
        float(variant.get(key, 1.0)) for key in ("f0_ratio", "formant_ratio", "rate")
    )
    if f0_ratio == formant_ratio == rate == 1.0:
        return samples
    analysis = warp_formants(analyse(samples), formant_ratio)
    analysis = change_rate(replace(analysis, f0=analysis.f0 * f0_ratio), rate)
    return limit_peak(match_level(synthesise(analysis), samples))


def limit_peak(samples: Signal, peak: float = 0.95) -> Signal:
    """Turn a signal down where it would leave full scale."""
    highest = float(np.abs(samples).max(initial=0.0))
    return samples if highest <= peak else (samples * (peak / highest)).astype(np.float32)


def match_level(samples: Signal, like: Signal) -> Signal:
    """Give a signal the root mean square of another one."""
    have, want = (float(np.sqrt(np.mean(np.square(x, dtype=np.float64)))) for x in (samples, like))
    return samples if have == 0.0 else (samples * (want / have)).astype(np.float32)


# --- towards a reference --------------------------------------------------------------------

N_MEL, N_CEPSTRA = 128, 40
SHRINKAGE = 0.1
"""Share of the diagonal in both covariances: a few seconds of speech estimate the rest badly."""


OVERSHOOT = 0.6
"""How far past the reference the mean envelope goes, as a share of the way there (ours).

Chosen on 24 sentences of eight synthetic voices: a vocoder stops short of the reference.
0 keeps more of the source, 1 costs more words.
"""


@lru_cache(maxsize=4)
def mel_maps(n_bins: int) -> tuple[Array, Array]:
    """Linear interpolation from ``n_bins`` frequencies to N_MEL mel points, and back."""
    mel = 1127.0 * np.log1p(np.linspace(0, SAMPLE_RATE_HZ / 2, n_bins) / 700.0)
    grid = np.linspace(0.0, mel[-1], N_MEL)
    return _interpolation(grid, mel), _interpolation(mel, grid)


def _interpolation(wanted: Array, known: Array) -> Array:
    """Matrix that reads values at ``known`` places at the ``wanted`` ones."""
    low = np.clip(np.searchsorted(known, wanted) - 1, 0, known.size - 2)
    share = (wanted - known[low]) / (known[low + 1] - known[low])
    matrix = np.zeros((wanted.size, known.size))
    matrix[np.arange(wanted.size), low] = 1 - share
    matrix[np.arange(wanted.size), low + 1] = share
    return matrix


def to_cepstra(envelope: Array) -> Array:
    """Mel cepstra 1 .. N_CEPSTRA - 1 of a power envelope, shape (frames, N_CEPSTRA - 1).

    The zeroth, the level, is left out.
    """
    from scipy.fft import dct

    on_mel = np.log(envelope) @ mel_maps(envelope.shape[1])[0].T
    return np.asarray(dct(on_mel, norm="ortho", axis=1)[:, 1:N_CEPSTRA])


def add_cepstra(envelope: Array, change: Array) -> Array:
    """Change an envelope by a difference of cepstra; each frame keeps its energy."""
    from scipy.fft import idct

    padded = np.zeros((len(change), N_MEL))
    padded[:, 1:N_CEPSTRA] = change
    factor = np.exp(idct(padded, norm="ortho", axis=1) @ mel_maps(envelope.shape[1])[1].T)
    changed = envelope * factor
    return np.asarray(changed * (envelope.sum(axis=1) / changed.sum(axis=1))[:, None])


@dataclass(frozen=True)
class Speaker:
    """Statistics of a voice: log-F0 median and spread, cepstral mean and covariance."""

    key: str
    f0_median: float
    f0_spread: float
    mean: Array
    covariance: Array


def describe_speaker(samples: Signal, key: str) -> Speaker:
    """Statistics over the frames within 40 dB of the loud ones; ``key`` names the signal.

    Raises
    ------
    AudioError
        Fewer than 100 such frames (half a second), or none of them voiced.
    """
    analysis = analyse(samples)
    speech = speech_frames(analysis)
    if speech.sum() < 100 or not analysis.voiced.any():
        raise AudioError("world: too little voiced speech to describe the speaker")
    pitch = np.log(analysis.f0[analysis.voiced])
    cepstra = to_cepstra(analysis.envelope[speech])
    covariance = np.cov(cepstra.T)
    diagonal = np.diag(np.diag(covariance))
    return Speaker(
        key,
        float(np.median(pitch)),
        float(np.std(pitch)),
        cepstra.mean(axis=0),
        (1 - SHRINKAGE) * covariance + SHRINKAGE * diagonal,
    )


def speech_frames(analysis: Analysis) -> NDArray[np.bool_]:
    """The frames within 40 dB of the loud ones."""
    level = np.log(analysis.envelope.sum(axis=1))
    return np.asarray(level > np.percentile(level, 95) - 4 * np.log(10))


def transport(source: Array, target: Array) -> Array:
    """The symmetric matrix ``A`` with ``A source A = target`` (Gaussian optimal transport)."""
    root, inverse = _power(source, 0.5), _power(source, -0.5)
    return inverse @ _power(root @ target @ root, 0.5) @ inverse


def _power(matrix: Array, exponent: float) -> Array:
    values, vectors = np.linalg.eigh(matrix)
    floor = max(float(values[-1]) * 1e-10, 1e-12)
    return np.asarray((vectors * np.maximum(values, floor) ** exponent) @ vectors.T)


def _remember(known: dict[Key, Value], key: Key, make: Callable[[], Value]) -> Value:
    """A kept value, or a fresh one; the oldest of 256 is forgotten."""
    if key not in known:
        if len(known) >= 256:
            known.pop(next(iter(known)))
        known[key] = make()
    return known[key]


def aim_of(here: Speaker, there: Speaker) -> Array:
    """The mean that converted cepstra are given."""
    return there.mean + OVERSHOOT * (there.mean - here.mean)


def pitch_ratio(here: Speaker, there: Speaker) -> float:
    """By how much converted pitch spreads more around its median, between 0.7 and 1.4."""
    return float(np.clip(there.f0_spread / max(here.f0_spread, 1e-3), 0.7, 1.4))


class WorldConverter:
    """Pitch and cepstral distribution moved to the reference's; statistics are kept."""

    info = EngineInfo("converter", "world", "pyworld-0.3.5", "MIT")

    def __init__(self) -> None:
        self._speakers: dict[str, Speaker] = {}
        self._maps: dict[tuple[str, str], Array] = {}

    def convert(self, source: Signal, voice: Voice, context: Signal, seed: int) -> Signal:
        """Convert one turn; ``context`` (up to 30 s of the same speaker) gives its statistics."""
        analysis = analyse(source)
        here, there = self._describe(context), self._describe(voice.reference)
        cepstra = to_cepstra(analysis.envelope)
        moved = (cepstra - here.mean) @ self._map(here, there) + aim_of(here, there)
        envelope = add_cepstra(analysis.envelope, moved - cepstra)
        pitch = self._move_pitch(analysis.f0, here, there)
        return match_level(synthesise(replace(analysis, f0=pitch, envelope=envelope)), source)

    def _describe(self, samples: Signal) -> Speaker:
        key = hashlib.sha256(samples.tobytes()).hexdigest()
        return _remember(self._speakers, key, lambda: describe_speaker(samples, key))

    def _map(self, here: Speaker, there: Speaker) -> Array:
        return _remember(
            self._maps,
            (here.key, there.key),
            lambda: transport(here.covariance, there.covariance),
        )

    @staticmethod
    def _move_pitch(f0: Array, here: Speaker, there: Speaker) -> Array:
        spread = pitch_ratio(here, there)
        with np.errstate(divide="ignore"):
            moved = np.exp(there.f0_median + spread * (np.log(f0) - here.f0_median))
        return np.where(f0 > 0, np.clip(moved, *F0_RANGE_HZ), 0.0)


# --- without a reference --------------------------------------------------------------------

LPC_ORDER = 20
FRAME, STEP = SAMPLE_RATE_HZ // 50, SAMPLE_RATE_HZ // 100


def mcadams(samples: Signal, coefficient: float) -> Signal:
    """Raise the angle of each complex pole to the power ``coefficient``; same length.

    Frames of 20 ms every 10 ms, linear prediction of order 20 by autocorrelation, overlap
    and add of the resynthesised frames (Patino et al., 2021; VoicePrivacy baseline B2).
    """
    from scipy.signal import lfilter

    window = np.hanning(FRAME + 1)[:-1]
    n_frames = 1 + max(0, -(-(samples.size - STEP) // STEP))
    padded = np.pad(samples.astype(np.float64), (STEP, (n_frames + 1) * STEP + FRAME))
    frames = np.lib.stride_tricks.sliding_window_view(padded, FRAME)[::STEP][: n_frames + 1]
    frames = frames * np.sqrt(window)
    poles, bent = _bend_poles(_predict(frames), coefficient)
    out = np.zeros_like(padded)
    for index, (frame, old, new) in enumerate(zip(frames, poles, bent, strict=True)):
        changed = lfilter([1.0], new, lfilter(old, [1.0], frame))
        out[index * STEP : index * STEP + FRAME] += changed * np.sqrt(window)
    return np.asarray(out[STEP : STEP + samples.size], dtype=np.float32)


def _predict(frames: Array) -> Array:
    """Prediction polynomials of windowed frames, shape (frames, LPC_ORDER + 1)."""
    spectrum = np.abs(np.fft.rfft(frames, 2 * FRAME, axis=1)) ** 2
    correlation = np.fft.irfft(spectrum, axis=1)[:, : LPC_ORDER + 1]
    correlation[:, 0] = correlation[:, 0] * (1 + 1e-6) + 1e-9
    lags = np.abs(np.subtract.outer(np.arange(LPC_ORDER), np.arange(LPC_ORDER)))
    weights = np.linalg.solve(correlation[:, lags], correlation[:, 1:, None])[..., 0]
    return np.concatenate([np.ones((len(frames), 1)), -weights], axis=1)


def _bend_poles(polynomials: Array, coefficient: float) -> tuple[Array, Array]:
    """The polynomials, and those with the angles of complex roots bent."""
    companion = np.zeros((len(polynomials), LPC_ORDER, LPC_ORDER))
    companion[:, 0, :] = -polynomials[:, 1:]
    companion[:, np.arange(1, LPC_ORDER), np.arange(LPC_ORDER - 1)] = 1.0
    roots = np.linalg.eigvals(companion).astype(complex)
    angle = np.abs(np.angle(roots))
    bent_angle = np.where(roots.imag == 0, angle, np.minimum(angle**coefficient, np.pi))
    radius = np.minimum(np.abs(roots), 0.999)
    bent = radius * np.exp(1j * np.where(roots.imag < 0, -bent_angle, bent_angle))
    new = np.ones((len(polynomials), 1), dtype=complex)
    for root in bent.T:
        new = np.pad(new, ((0, 0), (0, 1))) - np.pad(new * root[:, None], ((0, 0), (1, 0)))
    return polynomials, new.real


class McAdamsConverter:
    """One coefficient a seed, drawn from U(0.5, 0.9); the voice and the context are unused."""

    info = EngineInfo("converter", "mcadams", "voiceprivacy-b2", "Apache-2.0")

    def convert(self, source: Signal, voice: Voice, context: Signal, seed: int) -> Signal:
        """Convert one turn; give all turns of a profile one seed."""
        if source.ndim != 1 or source.size == 0 or not np.isfinite(source).all():
            raise AudioError(f"mcadams: source of shape {source.shape} is empty or not finite")
        coefficient = float(np.random.default_rng(seed).uniform(0.5, 0.9))
        return match_level(mcadams(source, coefficient), source)


@register("converter", "world")
def load_world() -> WorldConverter:
    """The WORLD-based converter."""
    _world()
    return WorldConverter()


@register("converter", "mcadams")
def load_mcadams() -> McAdamsConverter:
    """The McAdams-coefficient converter."""
    return McAdamsConverter()
