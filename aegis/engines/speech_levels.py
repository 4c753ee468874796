"""How loud and how fast a turn is spoken, where it pauses, and its faded ends.

Unit: one mono signal at 16 kHz. Levels are measured in frames of 10 ms; a pause is a
stretch of frames under a threshold that follows from the signal's own levels.

Functions: :func:`frame_levels`, :func:`pause_threshold_db`, :func:`find_pauses`,
:func:`active_rms`, :func:`match_active_level`, :func:`letters_per_s`, :func:`bounded_rate`,
:func:`speaking_rate`, :func:`fade_edges`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from aegis.audio import SAMPLE_RATE_HZ, Signal

FRAME = SAMPLE_RATE_HZ // 100
"""10 ms: the step of all level measurements here."""
LETTERS_PER_S = {"en": 15.0, "fr": 17.0}
"""Letters a second of speech at rate 1 (measured on the embedded synthesiser)."""
SLOWEST, FASTEST = 0.8, {"en": 1.15, "fr": 0.95}
"""Bounds of the rate. The synthesiser's voices are not French, and Whisper base mishears a
third to a half more of their French words at rate 1 than at 0.9."""
PAUSE_S = 0.06
FADE_S = 0.01


def frame_levels(samples: Signal) -> NDArray[np.float64]:
    """Level in dB of each 10-ms frame, smoothed over 20 ms, floored at -100."""
    frames = -(-samples.size // FRAME)
    padded = np.zeros((frames + 1) * FRAME, dtype=np.float64)
    padded[: samples.size] = samples
    power = np.square(padded).reshape(-1, FRAME).mean(axis=1)
    smooth = np.maximum((power[:-1] + power[1:]) / 2.0, 1e-10)
    return np.asarray(10.0 * np.log10(smooth), dtype=np.float64)


def pause_threshold_db(levels: NDArray[np.float64]) -> float:
    """Level below which a frame is a pause: well under the speech, just over the floor.

    In noisy or pauseless speech the bound stays 15 dB under the speech level, so that
    a weak consonant is not taken for a pause.
    """
    speech, floor = np.percentile(levels, 95), np.percentile(levels, 2)
    return float(min(max(speech - 35.0, floor + 5.0), speech - 15.0))


def find_pauses(samples: Signal, shortest_s: float = PAUSE_S) -> list[tuple[int, int]]:
    """Pauses of at least ``shortest_s``, as sample intervals in order."""
    levels = frame_levels(samples)
    quiet = np.concatenate([[False], levels < pause_threshold_db(levels), [False]])
    edges = np.flatnonzero(np.diff(quiet.astype(np.int8))).reshape(-1, 2)
    least = round(shortest_s * SAMPLE_RATE_HZ)
    spans = [(int(a) * FRAME, min(int(b) * FRAME, samples.size)) for a, b in edges]
    return [(a, b) for a, b in spans if b - a >= least]


def active_rms(samples: Signal) -> float:
    """Root mean square of the frames within 30 dB of the speech level."""
    levels = frame_levels(samples)
    power = 10.0 ** (levels[levels >= np.percentile(levels, 95) - 30.0] / 10.0)
    return float(np.sqrt(power.mean()))


def match_active_level(samples: Signal, like: Signal) -> Signal:
    """Give speech the active level of other speech, without passing full scale."""
    gain = active_rms(like) / max(active_rms(samples), 1e-5)
    peak = float(np.abs(samples).max())
    return (samples * min(gain, 0.99 / max(peak, 1e-5))).astype(np.float32)


def letters_per_s(language: str) -> float:
    """The synthesiser's own pace; languages that were not measured take the English one."""
    return LETTERS_PER_S.get(language[:2].lower(), LETTERS_PER_S["en"])


def bounded_rate(rate: float, language: str) -> float:
    """A rate between ``SLOWEST`` and the language's fastest."""
    return float(np.clip(rate, SLOWEST, FASTEST.get(language[:2].lower(), FASTEST["en"])))


def speaking_rate(text: str, samples: Signal, language: str) -> float:
    """Rate of a turn relative to the synthesiser's own, kept within bounds.

    Letters of the text over the seconds of speech (pauses over 0.2 s left out); with
    fewer than 20 letters the measure is too coarse and the rate is 1.
    """
    letters = sum(char.isalnum() for char in text)
    if letters < 20:
        return bounded_rate(1.0, language)
    silent = sum(end - start for start, end in find_pauses(samples, 0.2))
    speech_s = max(samples.size - silent, FRAME) / SAMPLE_RATE_HZ
    return bounded_rate(letters / speech_s / letters_per_s(language), language)


def fade_edges(samples: Signal, fade_in: bool, fade_out: bool, fade_s: float) -> Signal:
    n = min(round(fade_s * SAMPLE_RATE_HZ), samples.size // 2)
    if n == 0:
        return samples
    ramp = np.linspace(0.0, 1.0, n, dtype=np.float32)
    out = samples.copy()
    if fade_in:
        out[:n] *= ramp
    if fade_out:
        out[-n:] *= ramp[::-1]
    return out
