"""Where the words of a turn lie, and which stretch of it an edit replaces.

Unit: one turn with one edit or all its edits; positions are characters of its text or
samples of its converted sound. The margins of :func:`plan_masks` keep the original out
of what is rendered.

Functions: :func:`place_words`, :func:`words_of_span`, :func:`replaced_text`,
:func:`fill_times`, :func:`plan_masks`, :func:`mask_share`; :class:`Cutter` finds the cuts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from aegis.audio import SAMPLE_RATE_HZ, Signal
from aegis.engines import EditRequest, Span, Word
from aegis.engines.speech_levels import FRAME, find_pauses, frame_levels
from aegis.errors import RenderError

SURE_PAUSE_S, NEAR_S, SURE_NEAR_S = 0.12, 0.15, 0.06
REACH_WORDS = 3


@dataclass(frozen=True)
class Mask:
    """Samples ``[start, end)`` of the converted turn to replace, and what is spoken there.

    ``lead`` and ``tail`` are the samples of silence kept on both sides of the speech.
    """

    start: int
    end: int
    text: str
    lead: int = 0
    tail: int = 0


def place_words(
    text: str, words: Sequence[Word]
) -> tuple[list[tuple[int, int]], tuple[Word, ...]]:
    """Characters ``[start, end)`` of each word in the turn's text, and those words.

    Words are looked for in order; one that is not in the text is left out.
    """
    places: list[tuple[int, int]] = []
    kept: list[Word] = []
    at = 0
    for word in words:
        bare = word.text.strip()
        start = text.find(bare, at) if bare else -1
        if start >= 0:
            at = start + len(bare)
            places.append((start, at))
            kept.append(word)
    return places, tuple(kept)


def words_of_span(places: Sequence[tuple[int, int]], span: Span) -> tuple[int, int]:
    """First and last word (inclusive) that share a character with the span."""
    hit = [i for i, (a, b) in enumerate(places) if a < span.char_end and b > span.char_start]
    if not hit:
        raise RenderError("unsupported: no word lies in the span")
    return hit[0], hit[-1]


def replaced_text(text: str, start: int, end: int, spans: Sequence[Span]) -> str:
    """``text[start:end]`` with the replacements of the spans inside it, in one pass."""
    out, at = [], start
    for span in sorted(spans, key=lambda span: span.char_start):
        if span.char_start < start or span.char_end > end:
            continue
        out += [text[at : span.char_start], span.replacement]
        at = span.char_end
    return "".join([*out, text[at:end]])


@dataclass(frozen=True)
class Cut:
    """A place to cut: at sample ``at``, with ``silence`` samples up to the next sound.

    ``clean`` cuts lie in a pause; the others at the lowest level between two words.
    """

    at: int
    silence: int
    clean: bool
    level_db: float


def fill_times(words: Sequence[Word], n_samples: int) -> tuple[Word, ...]:
    """Words without times share the time between their timed neighbours evenly."""
    edges: list[float | None] = [time for word in words for time in (word.start_s, word.end_s)]
    known = [i for i, time in enumerate(edges) if time is not None]
    at = [-1, *known, len(edges)]
    times = [0.0, *(float(edges[i] or 0.0) for i in known), n_samples / SAMPLE_RATE_HZ]
    filled = np.interp(np.arange(len(edges)), at, np.maximum.accumulate(times))
    pairs = filled.reshape(-1, 2).tolist()
    return tuple(replace(w, start_s=a, end_s=b) for w, (a, b) in zip(words, pairs, strict=True))


class Cutter:
    """Cut places of one turn; boundary ``i`` lies before word ``i`` (``n`` = after the last).

    Word times of an attention-aligned recogniser are off by up to 0.1 s, and it counts
    a pause to either neighbour. Each pause therefore goes to the one boundary that it fits
    best on both sides, and has to fit well on one; a short pause, which may be a stop
    inside a word, has to fit closely.
    """

    def __init__(self, samples: Signal, words: Sequence[Word]) -> None:
        self._size = samples.size
        self._levels = frame_levels(samples)
        self._words = words
        ends = [0.0, *(_time(word.end_s) for word in words)]
        starts = [*(_time(word.start_s) for word in words), samples.size / SAMPLE_RATE_HZ]
        self._ends, self._starts = np.array(ends), np.array(starts)
        self._pause: dict[int, tuple[int, int]] = {}
        for start, end in find_pauses(samples):
            self._assign(start, end)

    def _assign(self, start: int, end: int) -> None:
        before = np.abs(self._ends - start / SAMPLE_RATE_HZ)
        after = np.abs(self._starts - end / SAMPLE_RATE_HZ)
        off = np.minimum(before, after)
        boundary = int(np.argmin(before + after))
        known = self._pause.get(boundary, (0, 0))
        allowed = NEAR_S if end - start >= SURE_PAUSE_S * SAMPLE_RATE_HZ else SURE_NEAR_S
        if off[boundary] <= allowed and end - start > known[1] - known[0]:
            self._pause[boundary] = (start, end)

    def cut(self, boundary: int, before: bool) -> Cut:
        """The cut at a boundary; ``before`` keeps what lies before it (a mask's left side)."""
        pause = self._pause.get(boundary)
        if boundary == 0 or boundary == len(self._words):
            silence = min(pause[1] - pause[0], SAMPLE_RATE_HZ // 5) if pause else 0
            return Cut(self._size if boundary else 0, silence, True, -100.0)
        if pause is None:
            return self._dip(boundary)
        start, end = pause
        kept = min((end - start) // 2, SAMPLE_RATE_HZ // 10)
        at = start + kept if before else end - kept
        return Cut(at, end - start - kept, True, float(self._levels[start // FRAME]))

    def _dip(self, boundary: int) -> Cut:
        """The lowest level around a boundary, not past the middle of either neighbour."""
        left, right = self._words[boundary - 1], self._words[boundary]
        left_end, right_start = _time(left.end_s), _time(right.start_s)
        first, last = min(left_end, right_start), max(left_end, right_start)
        low = min(max(first - 0.1, (_time(left.start_s) + left_end) / 2), first)
        high = max(min(last + 0.1, (right_start + _time(right.end_s)) / 2), last)
        frames = np.clip([low * 100, high * 100 + 1], 0, self._levels.size - 1).astype(int)
        inside = self._levels[frames[0] : frames[1] + 1]
        frame = int(frames[0]) + int(np.argmin(inside))
        return Cut(min((frame + 1) * FRAME, self._size), 0, False, float(inside.min()))


def _time(value: float | None) -> float:
    if value is None:
        raise RenderError("unsupported: no word times")
    return value


def plan_masks(request: EditRequest, reach: int = REACH_WORDS) -> list[Mask]:
    """What the infill replaces: each span, widened to cuts that leave nothing of it.

    A mask starts and ends in a pause next to the span, or else at least one whole word
    away from it: up to ``reach`` words on each side are spoken again, until a pause is
    found or at the deepest dip among them. Masks that meet become one.

    Raises
    ------
    RenderError
        A span has no word times, or no word lies in it.
    """
    places, words = place_words(request.text, request.words)
    for span in request.spans:
        first, last = words_of_span(places, span)
        edges = [(word.start_s, word.end_s) for word in words[first : last + 1]]
        for time in (span.start_s, span.end_s, *(time for edge in edges for time in edge)):
            _time(time)
    cutter = Cutter(request.converted, fill_times(words, request.converted.size))
    ranges: list[tuple[int, int]] = []
    for span in sorted(request.spans, key=lambda span: span.char_start):
        first, last = words_of_span(places, span)
        left = _widened(cutter, first, [first - k for k in range(reach + 1)], True)
        right = _widened(
            cutter, last + 1, [last + 1 + k for k in range(reach + 1)], False, len(places)
        )
        if ranges and left < ranges[-1][1]:
            ranges[-1] = (ranges[-1][0], max(right, ranges[-1][1]))
        else:
            ranges.append((left, right))
    return [_mask(request, places, cutter, *bounds) for bounds in ranges]


def mask_share(request: EditRequest) -> float:
    """Share of the turn's word time that lies in words of the spans."""
    places, words = place_words(request.text, request.words)
    words = fill_times(words, request.converted.size)
    lengths = np.array([_time(word.end_s) - _time(word.start_s) for word in words])
    inside = np.zeros(lengths.size, dtype=bool)
    for span in request.spans:
        first, last = words_of_span(places, span)
        inside[first : last + 1] = True
    total = float(lengths.sum())
    return float(lengths[inside].sum()) / total if total > 0 else 1.0


def _widened(
    cutter: Cutter, nearest: int, candidates: Sequence[int], before: bool, n_words: int = 10**9
) -> int:
    """The boundary to cut at: the nearest in a pause, else the deepest dip a word away."""
    cuts = []
    for boundary in candidates:
        if not 0 <= boundary <= n_words:
            break
        cut = cutter.cut(boundary, before)
        if cut.clean:
            return boundary
        cuts.append((boundary, cut))
    away = [item for item in cuts if item[0] != nearest]
    return min(away, key=lambda item: item[1].level_db)[0] if away else nearest


def _mask(
    request: EditRequest, places: Sequence[tuple[int, int]], cutter: Cutter, left: int, right: int
) -> Mask:
    start, end = cutter.cut(left, True), cutter.cut(right, False)
    text = replaced_text(request.text, places[left][0], places[right - 1][1], request.spans)
    return Mask(start.at, max(end.at, start.at), text, start.silence, end.silence)
