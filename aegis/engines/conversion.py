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
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aegis.audio import SAMPLE_RATE_HZ, Signal
from aegis.engines import EngineInfo, Voice, register
from aegis.errors import AudioError, EngineUnavailable

Array = NDArray[np.float64]

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
    rough, times = world.dio(
        signal, SAMPLE_RATE_HZ, f0_floor=low, f0_ceil=high, frame_period=FRAME_MS
    )
    return world.stonemask(signal, rough, times, SAMPLE_RATE_HZ), times


def analyse(samples: Signal) -> Analysis:
    """Decompose a signal; refuses what is not mono or not finite."""
    if samples.ndim != 1 or samples.size == 0 or not np.isfinite(samples).all():
        raise AudioError(f"world: source of shape {samples.shape} is empty or not finite")
    world = _world()
    padded = np.pad(samples, (0, max(0, SHORTEST - samples.size)))
    f0, times = estimate_f0(padded)
    signal = padded.astype(np.float64)
    envelope = world.cheaptrick(signal, f0, times, SAMPLE_RATE_HZ)
    aperiodicity = world.d4c(signal, f0, times, SAMPLE_RATE_HZ)
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
    return match_level(synthesise(analysis), samples)


def match_level(samples: Signal, like: Signal) -> Signal:
    """Give a signal the root mean square of another one."""
    have, want = (float(np.sqrt(np.mean(np.square(x, dtype=np.float64)))) for x in (samples, like))
    return samples if have == 0.0 else (samples * (want / have)).astype(np.float32)
