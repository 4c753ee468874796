"""Recognised words and what of them can be trusted.

Unit: one word as a recogniser reports it. Word times that cannot be true make the word
untimed; text whose form betrays that nobody spoke it is flagged, not removed. Times are
seconds on the recording's own clock, intervals half open.

Functions: :func:`read_words`, :func:`flag_hallucinations`, :func:`repeated_words`,
:func:`covered_seconds`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from aegis.errors import ItemError

Interval = tuple[float, float]

SPEECH_EDGE_S = 0.08
"""A word may reach this far out of the voice activity."""
LATE_S = 0.1
"""Times up to this far beyond the end of the file are clamped, later ones untimed."""
FASTEST_CHARACTERS_PER_S = 30.0
LEAST_SPEECH_RATIO = 0.2
LONGEST_GRAM = 8


class SpokenWord(Protocol):
    """A word as a recogniser gives it (``engines.Word``)."""

    @property
    def text(self) -> str: ...
    @property
    def start_s(self) -> float | None: ...
    @property
    def end_s(self) -> float | None: ...
    @property
    def probability(self) -> float | None: ...


class SpokenSegment(Protocol):
    """A recogniser's segment (``engines.Segment``)."""

    @property
    def start_s(self) -> float: ...
    @property
    def end_s(self) -> float: ...
    @property
    def text(self) -> str: ...
    @property
    def words(self) -> Sequence[SpokenWord]: ...


class SpokenTranscript(Protocol):
    """A recogniser's result (``engines.Transcript``)."""

    @property
    def segments(self) -> Sequence[SpokenSegment]: ...
    @property
    def speech(self) -> Sequence[Interval]: ...


@dataclass(frozen=True)
class HeardWord:
    """One word of a recording.

    ``within`` are the times of what holds it, a segment or a given turn, where none of the
    words in there has times of its own. A word with neither is placed by its order only.
    """

    text: str
    start_s: float | None
    end_s: float | None
    probability: float | None
    channel: int = 0
    flagged: bool = False
    speaker: str | None = None
    within: Interval | None = None

    @property
    def timed(self) -> bool:
        return self.start_s is not None and self.end_s is not None

    @property
    def place(self) -> Interval | None:
        """Its own times, or those of what holds it."""
        return self.span() if self.timed else self.within

    def span(self) -> Interval:
        """The times of a timed word."""
        if self.start_s is None or self.end_s is None:
            raise ItemError(f"word {self.text!r} has no times")
        return self.start_s, self.end_s


def read_words(
    transcript: SpokenTranscript, duration_s: float, channel: int = 0
) -> list[HeardWord]:
    """Words of a transcript in order, with impossible times taken away and loops flagged.

    A word is untimed when its time is absent, not positive in length, before the word
    that precedes it, outside its segment, or beyond the end of the file. A segment
    without words gives its text as untimed words within its own times. Recognisers stretch
    words over the pause beside them: what lies outside the voice activity is cut off.
    """
    words: list[HeardWord] = []
    latest = 0.0
    flags = flag_hallucinations(transcript.segments, transcript.speech)
    for number, segment in enumerate(transcript.segments):
        heard = [(w.text, w.start_s, w.end_s, w.probability) for w in segment.words]
        within = None if heard else (segment.start_s, segment.end_s)
        heard = heard or [(text, None, None, None) for text in segment.text.split()]
        flagged = flags[number]
        for k, (text, start, end, probability) in enumerate(heard):
            times = _possible(start, end, latest, segment, duration_s)
            times = times and fit_to_speech(times, transcript.speech)
            latest = times[0] if times else latest
            start_s, end_s = times or (None, None)
            loop = k in flagged
            words.append(
                HeardWord(text, start_s, end_s, probability, channel, loop, within=within)
            )
    return words


def _possible(
    start: float | None,
    end: float | None,
    latest: float,
    segment: SpokenSegment,
    duration_s: float,
) -> Interval | None:
    if start is None or end is None or not np.isfinite([start, end]).all():
        return None
    if end > duration_s + LATE_S or start < max(0.0, latest):
        return None
    end = min(end, duration_s)
    inside = segment.start_s - 0.01 <= start and end <= segment.end_s + 0.01
    return (start, end) if inside and end - start > 1e-6 else None


def fit_to_speech(span: Interval, speech: Sequence[Interval]) -> Interval:
    """The part of a word inside the stretch of speech that holds most of it, edges included."""
    wide = [(start - SPEECH_EDGE_S, end + SPEECH_EDGE_S) for start, end in speech]
    shared = [(min(span[1], end) - max(span[0], start), start, end) for start, end in wide]
    most = max(shared, default=(0.0, 0.0, 0.0))
    return (max(span[0], most[1]), min(span[1], most[2])) if most[0] > 0.02 else span


def flag_hallucinations(
    segments: Sequence[SpokenSegment], speech: Sequence[Interval]
) -> list[frozenset[int]]:
    """Indices of the words, segment by segment, whose form says that nobody spoke them.

    Three signs, none of them the recogniser's confidence, which loops have in plenty:
    a group of 1-8 words repeated in a row, over the bounds of segments too (four times,
    single words eight times, digits aside); over 30 characters a second for a second or
    more; less than a fifth of the segment inside voice activity. The first of a repeated
    group is kept.
    """
    texts = [[w.text for w in segment.words] or segment.text.split() for segment in segments]
    loops = repeated_words([text for own in texts for text in own])
    found, first = [], 0
    for segment, own in zip(segments, texts, strict=True):
        repeats = {k for k in range(len(own)) if first + k in loops}
        first += len(own)
        length_s = segment.end_s - segment.start_s
        fast = length_s >= 1.0 and len(segment.text) / length_s > FASTEST_CHARACTERS_PER_S
        voiced = covered_seconds([(segment.start_s, segment.end_s)], speech)
        silent = length_s > 0 and voiced / length_s < LEAST_SPEECH_RATIO
        everything = range(len(own)) if fast or silent else ()
        found.append(frozenset(repeats) | frozenset(everything))
    return found


def repeated_words(texts: Sequence[str]) -> set[int]:
    """Indices of the second and later copies of groups of words repeated in a row."""
    plain = [re.sub(r"\W", "", text).casefold() for text in texts]
    repeats: set[int] = set()
    for size in range(1, LONGEST_GRAM + 1):
        least = 8 if size == 1 else 4
        for first in range(len(plain) - size * least + 1):
            gram = plain[first : first + size]
            if not any(gram) or all(re.fullmatch(r"\d*", word) for word in gram):
                continue
            last = first + size
            while plain[last : last + size] == gram:
                last += size
            if last - first >= size * least:
                repeats.update(range(first + size, last))
    return repeats


def covered_seconds(spans: Iterable[Interval], speech: Iterable[Interval]) -> float:
    """Seconds of ``speech`` that lie inside the union of ``spans``."""
    merged = _union(spans)
    total = 0.0
    for start, end in _union(speech):
        total += sum(max(0.0, min(end, b) - max(start, a)) for a, b in merged)
    return total


def _union(spans: Iterable[Interval]) -> list[Interval]:
    merged: list[Interval] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        elif end > start:
            merged.append((start, end))
    return merged
