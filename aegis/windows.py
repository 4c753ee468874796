"""Which speech stands for a profile: intervals, windows, profile vectors, eligibility.

The unit is one profile in one condition and region kind. Positions are samples at
16 kHz on the clock of the file, intervals are half open. The paper's rule (methods,
speaker verification): at most ten equispaced 3-s windows over the time-ordered assigned
intervals, 50 ms trimmed at interval edges, at least one second usable; window embeddings
normalised, averaged, normalised.

Region kinds: ``all_turns``; ``edited_region``, the turns with a planned edit, which
includes converted speech kept after a failed rendering; ``unedited``, the other turns,
which only serve as enrolment for the original-original reference of edited regions.

Functions: :func:`source_intervals`, :func:`timeline_intervals`, :func:`sample_profiles`,
:func:`place_windows`, :func:`split_windows`, :func:`profile_vector`,
:func:`judge_eligibility`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from aegis.audio import AnySignal
from aegis.stats import Floats

SAMPLE_RATE_HZ = 16_000
N_WINDOWS = 10
WINDOW = 3 * SAMPLE_RATE_HZ
EDGE = SAMPLE_RATE_HZ // 20
MIN_USABLE = SAMPLE_RATE_HZ
REGION_KINDS = ("all_turns", "edited_region")
CONVERTED_TURNS = "converted_turns"
"""The shared stage: converted turns before any reconstruction."""
ASSIGNED_VOICE = "assigned_voice"
"""The reference of a profile's pseudo-voice."""
INTERVAL_COLUMNS = ["recording_id", "profile_id", "condition", "channel", "start", "end", "edited"]

Interval = tuple[int, int]
Window = tuple[Interval, ...]


@dataclass(frozen=True)
class Sample:
    """The windows that stand for one profile, and the usable speech behind them."""

    channel: int
    windows: tuple[Window, ...]
    usable: int


def source_intervals(turns: pd.DataFrame, affected: Iterable[str]) -> pd.DataFrame:
    """Where each profile speaks in the original, from the ``turns`` or ``turn_times`` table."""
    out = turns[["recording_id", "profile_id", "turn_id"]].copy()
    out["channel"] = turns.get("channel", 0)
    for side in ("start", "end"):
        out[side] = (turns[f"{side}_s"].astype(float) * SAMPLE_RATE_HZ).round().astype(int)
    return _marked(out.assign(condition="original"), affected)


def timeline_intervals(timeline: pd.DataFrame, affected: Iterable[str]) -> pd.DataFrame:
    """Where each profile speaks in the reconstructions; silent stand-ins are no speech."""
    spoken = timeline[(timeline["kind"] == "turn") & (timeline["source"] != "silence")]
    names = {"out_start": "start", "out_end": "end"}
    # A reconstruction is one channel, whatever the source's layout.
    return _marked(spoken.rename(columns=names).assign(channel=0), affected)


def _marked(intervals: pd.DataFrame, affected: Iterable[str]) -> pd.DataFrame:
    marked = intervals.assign(edited=intervals["turn_id"].isin(set(affected)).astype(bool))
    return marked[INTERVAL_COLUMNS].astype({"start": int, "end": int, "channel": int})


def select_intervals(intervals: pd.DataFrame, region_kind: str) -> pd.DataFrame:
    """The intervals of one region kind."""
    if region_kind == "all_turns":
        return intervals
    if region_kind not in ("edited_region", "unedited"):
        raise ValueError(
            f"region kind {region_kind!r}; known: {', '.join(REGION_KINDS)}, unedited"
        )
    return intervals[intervals["edited"] == (region_kind == "edited_region")]


def sample_regions(intervals: pd.DataFrame) -> dict[tuple[str, str], dict[str, Sample]]:
    """Samples by (condition, region kind) and profile; ``unedited`` for the original only."""
    return {
        (condition, kind): sample_profiles(
            select_intervals(intervals[intervals["condition"] == condition], kind)
        )
        for condition in sorted({"original", *intervals["condition"]})
        for kind in (*REGION_KINDS, "unedited")
        if kind != "unedited" or condition == "original"
    }


def sample_profiles(intervals: pd.DataFrame) -> dict[str, Sample]:
    """Windows by profile over the intervals of one condition and region kind."""
    samples = {}
    for profile, own in intervals.groupby("profile_id", sort=True):
        spans = list(zip(own["start"].tolist(), own["end"].tolist(), strict=True))
        usable = usable_intervals(spans)
        windows = tuple(place_windows(usable))
        samples[str(profile)] = Sample(
            int(own["channel"].iloc[0]), windows, usable_samples(usable)
        )
    return samples


def usable_intervals(intervals: Sequence[Interval], edge: int = EDGE) -> list[Interval]:
    """Merge overlapping intervals in time order, then take ``edge`` samples off both ends."""
    merged: list[list[int]] = []
    for start, end in sorted(intervals):
        if end < start:
            raise ValueError(f"interval [{start}, {end}) ends before it starts")
        if merged and start < merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return [(start + edge, end - edge) for start, end in merged if end - start > 2 * edge]


def usable_samples(intervals: Sequence[Interval]) -> int:
    """How many samples the intervals hold."""
    return sum(end - start for start, end in intervals)


def place_windows(
    intervals: Sequence[Interval],
    n_windows: int = N_WINDOWS,
    length: int = WINDOW,
    min_usable: int = MIN_USABLE,
) -> list[Window]:
    """At most ``n_windows`` equispaced windows over usable intervals laid end to end.

    Windows do not overlap (ours): there are as many as fit whole, the first at the start
    and the last at the end; a single one lies in the middle. Less speech than a window
    gives one shorter window, less than ``min_usable`` samples none. A window that runs
    over an interval's end continues in the next interval, so it is a tuple of intervals.
    """
    total = usable_samples(intervals)
    if total < min_usable:
        return []
    length = min(length, total)
    count = max(1, min(n_windows, total // length))
    starts = np.linspace(0, total - length, count) if count > 1 else [(total - length) / 2]
    return [cut_intervals(intervals, round(start), length) for start in starts]


def cut_intervals(intervals: Sequence[Interval], start: int, length: int) -> Window:
    """The samples ``[start, start + length)`` of the concatenated intervals."""
    pieces, at = [], 0
    for first, last in intervals:
        low, high = max(start, at), min(start + length, at + last - first)
        if low < high:
            pieces.append((first + low - at, first + high - at))
        at += last - first
    return tuple(pieces)


def split_windows(windows: Sequence[Window]) -> tuple[list[Window], list[Window]]:
    """Two disjoint halves of a sample: every other window, or a single one cut in the middle.

    The second half is empty where there is too little to cut: each half of a single window
    must hold a second.
    """
    if len(windows) > 1:
        return list(windows[::2]), list(windows[1::2])
    total = usable_samples(windows[0]) if windows else 0
    if total < 2 * MIN_USABLE:
        return list(windows), []
    cut = total // 2
    return [cut_intervals(windows[0], 0, cut)], [cut_intervals(windows[0], cut, total - cut)]


def window_signal(samples: AnySignal, window: Window) -> NDArray[np.float32]:
    """The sound of one window, its intervals joined."""
    return np.concatenate([samples[start:end] for start, end in window])


def profile_vector(windows: ArrayLike, centre: ArrayLike | None = None) -> Floats:
    """Window embeddings of shape (n, d), each normalised, averaged, normalised again.

    ``centre`` is a cohort mean of normalised vectors; it is taken off each normalised
    window, which is then normalised again.

    Raises
    ------
    ValueError
        No window, a value that is not finite, or a vector of length 0.
    """
    vectors = np.asarray(windows, dtype=np.float64)
    if vectors.ndim != 2 or not len(vectors):
        raise ValueError(f"window embeddings have shape {vectors.shape}, expected (n, d), n > 0")
    vectors = _unit(vectors)
    if centre is not None:
        vectors = _unit(vectors - np.asarray(centre, dtype=np.float64))
    mean: Floats = _unit(vectors.mean(axis=0, keepdims=True))[0]
    return mean


def _unit(vectors: Floats) -> Floats:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not (np.isfinite(lengths) & (lengths > 0)).all():
        raise ValueError("an embedding is zero, NaN or infinite")
    unit: Floats = vectors / lengths
    return unit


def judge_eligibility(
    usable: int, has_interval: bool, heard: bool = True
) -> tuple[str, str | None]:
    """Status and reason of a profile in one condition and region kind.

    ``not_applicable``: it has no interval of this kind; ``unknown``: it has, and the
    sound is missing or shorter than a second.
    """
    if not has_interval:
        return "not_applicable", "no interval of this kind"
    if not heard:
        return "unknown", "no waveform in this condition"
    if usable < MIN_USABLE:
        return "unknown", "less than one second of usable speech"
    return "ok", None
