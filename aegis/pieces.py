"""Speech cut to segments of several lengths and sampling rates, embedded only once.

Unit: a piece of five seconds of one file. An encoder's embedding of a longer stretch is the
mean of its pieces' embeddings, so segments of 30 and 60 s, and the whole file, are means
of consecutive pieces. A condition is a sampling rate and a length (NIST section 3.1).

Functions: :func:`cut_pieces`, :func:`narrow`, :func:`join_pieces`, :func:`condition_name`.
"""

from __future__ import annotations

import numpy as np

from aegis.audio import SAMPLE_RATE_HZ, Signal, resample
from aegis.errors import AudioError
from aegis.segments import normalise_rows
from aegis.stats import Floats

PIECE_S = 5
LENGTHS_S = (0, 10, 30, 60)
"""0 stands for the whole file."""
RATES_HZ = (16_000, 8_000)
MIN_S = 1.0
SKIP_S = 60


def cut_pieces(samples: Signal, skip_s: float = 0.0) -> list[Signal]:
    """Consecutive pieces of five seconds; a rest of at least one second is the last one.

    ``skip_s`` seconds at the beginning are left out where as much remains after them.

    Raises
    ------
    AudioError
        Less than one second of sound.
    """
    skipped = round(skip_s * SAMPLE_RATE_HZ)
    kept = samples[skipped:] if samples.size >= 2 * skipped else samples
    size = PIECE_S * SAMPLE_RATE_HZ
    pieces = [kept[start : start + size] for start in range(0, kept.size, size)]
    long_enough = [piece for piece in pieces if piece.size >= MIN_S * SAMPLE_RATE_HZ]
    if not long_enough:
        raise AudioError(f"{samples.size / SAMPLE_RATE_HZ:.2f} s of sound; {MIN_S:g} s are needed")
    return long_enough


def narrow(samples: Signal, rate_hz: int) -> Signal:
    """What is left of a 16-kHz signal after a telephone-like channel of ``rate_hz``."""
    if rate_hz == SAMPLE_RATE_HZ:
        return samples
    back = resample(resample(samples, SAMPLE_RATE_HZ, rate_hz), rate_hz, SAMPLE_RATE_HZ)
    fitted = np.pad(back, (0, max(0, samples.size - back.size)))
    return np.ascontiguousarray(fitted[: samples.size], dtype=np.float32)


def join_pieces(vectors: Floats, seconds: Floats, length_s: int) -> Floats:
    """Unit vectors of the segments of a length, shape (segments, dimension).

    ``length_s`` 0 is the whole file, its pieces weighted by their seconds; otherwise only
    full pieces count and a rest shorter than the length is left out.
    """
    if length_s == 0:
        return normalise_rows((seconds[:, None] * vectors).sum(axis=0, keepdims=True))
    full = vectors[seconds >= PIECE_S - 1e-6]
    per = length_s // PIECE_S
    groups = full[: len(full) // per * per].reshape(-1, per, vectors.shape[1])
    return normalise_rows(groups.mean(axis=1)) if len(groups) else groups[:, 0]


def condition_name(rate_hz: int, length_s: int) -> str:
    """``"16 kHz, 30 s"``, ``"8 kHz, whole"``."""
    return f"{rate_hz // 1000} kHz, {f'{length_s} s' if length_s else 'whole'}"
