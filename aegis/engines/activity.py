"""Voice activity: where in a recording there is speech (silero, inside faster-whisper).

Intervals are (start_s, end_s) pairs in seconds, in order and apart. The recogniser and
the diarizers share these functions, so both see the same speech.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from aegis.audio import SAMPLE_RATE_HZ, AnySignal
from aegis.errors import EngineUnavailable

Interval = tuple[float, float]

VAD_STEP = 512
"""Samples of one voice-activity decision (32 ms)."""
BLOCK_S = 600.0
"""Longest piece of a recording that is held as features at one time."""


def voice_probabilities(samples: AnySignal) -> NDArray[np.float32]:
    """Probability of speech in each 32-ms step, shape (ceil(n / 512),); ten minutes at a time."""
    try:
        from faster_whisper.vad import get_vad_model
    except ImportError as error:
        raise EngineUnavailable("silero: install faster-whisper") from error
    model, block = get_vad_model(), int(BLOCK_S) * SAMPLE_RATE_HZ // VAD_STEP * VAD_STEP
    parts = []
    for first in range(0, samples.size, block):
        piece = samples[first : first + block]
        parts.append(model(np.pad(piece, (0, -piece.size % VAD_STEP))).reshape(-1))
    return np.concatenate(parts).astype(np.float32) if parts else np.zeros(0, np.float32)


def find_speech(
    probabilities: NDArray[np.float32],
    duration_s: float,
    onset: float = 0.5,
    offset: float = 0.35,
    min_silence_s: float = 0.2,
    min_speech_s: float = 0.1,
) -> list[Interval]:
    """Intervals of speech: begun at ``onset``, ended below ``offset``, short pauses bridged.

    Returns
    -------
    list of (start_s, end_s)
        In order, apart, inside ``[0, duration_s]``; no padding.
    """
    step_s = VAD_STEP / SAMPLE_RATE_HZ
    found: list[Interval] = []
    begun: int | None = None
    for i, probability in enumerate([*probabilities.tolist(), 0.0]):
        if begun is None and probability >= onset:
            begun = i
        elif begun is not None and probability < offset:
            found.append((begun * step_s, min(i * step_s, duration_s)))
            begun = None
    joined = join_intervals(found, min_silence_s)
    return [(start, end) for start, end in joined if end - start >= min_speech_s]


def join_intervals(intervals: Iterable[Interval], gap_s: float) -> list[Interval]:
    """Unite intervals (sorted by start) whose gap is shorter than ``gap_s``."""
    joined: list[Interval] = []
    for start, end in intervals:
        if joined and start - joined[-1][1] < gap_s:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def split_blocks(speech: Sequence[Interval], longest_s: float = BLOCK_S) -> list[list[Interval]]:
    """Group intervals into blocks that span at most ``longest_s``, cut at wide pauses.

    A block that is full ends before the widest pause of its last third; one interval
    that is too long by itself is cut hard.
    """
    pieces = [
        (start + k * longest_s, min(end, start + (k + 1) * longest_s))
        for start, end in speech
        for k in range(max(1, int(np.ceil((end - start) / longest_s))))
    ]
    blocks: list[list[Interval]] = []
    current: list[Interval] = []
    for piece in pieces:
        while current and piece[1] - current[0][0] > longest_s:
            extended = [*current, piece]
            late = [
                k
                for k in range(1, len(extended))
                if extended[k][0] - current[0][0] >= longest_s * 2 / 3
            ]
            at = max(late or [len(current)], key=lambda k: extended[k][0] - extended[k - 1][1])
            blocks.append(current[:at])
            current = current[at:]
        current.append(piece)
    return [*blocks, current] if current else blocks


def pad_chunks(
    speech: Sequence[Interval], bounds: Interval, gap_s: float = 2.0, pad_s: float = 0.4
) -> list[Interval]:
    """What the recogniser hears: pauses under ``gap_s`` kept, ``pad_s`` added on both sides."""
    chunks = join_intervals(speech, gap_s)
    padded = [
        (max(start - pad_s, bounds[0]), min(end + pad_s, bounds[1])) for start, end in chunks
    ]
    return join_intervals(padded, 0.0)
