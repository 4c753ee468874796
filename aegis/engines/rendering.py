"""Renderers: from a converted turn and a planned text to the edited turn.

The unit is one turn with one edit (focused) or all its edits (composed). Three
embedded renderers stand behind the ``Renderer`` protocol:

- ``whole-turn`` speaks the complete target text in the pseudo-voice (the role of F5-TTS);
- ``infill`` speaks only a mask around each edit and splices it into the converted
  turn (the role of VoiceCraft);
- ``bleep`` covers each edit with a tone, noise or silence (the deletion boundary).

Times in a request are seconds from the start of the converted turn. A renderer
makes one attempt; what it cannot do is a ``RenderError`` that starts with
``unsupported:`` or ``failed:``. Nothing is listened to and nothing is chosen: what
keeps the original out of the result are the margins of :func:`plan_masks`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from aegis.audio import SAMPLE_RATE_HZ, Signal, check_generated
from aegis.engines import EditRequest, EngineInfo, Span, Voice, Word, load, register
from aegis.engines.conversion import apply_variant, estimate_f0
from aegis.errors import AudioError, RenderError
from aegis.numbers import speakable

FRAME = SAMPLE_RATE_HZ // 100
"""10 ms: the step of all level measurements here."""
LETTERS_PER_S = {"en": 15.0, "fr": 17.0}
"""Letters a second of speech at rate 1 (measured on the embedded synthesiser)."""
SLOWEST, FASTEST = 0.8, {"en": 1.15, "fr": 0.95}
"""Bounds of the rate. The synthesiser's voices are not French, and Whisper base mishears a
third to a half more of their French words at rate 1 than at 0.9."""
JOIN_PAUSE_S = 0.2
PAUSE_S = 0.06
SURE_PAUSE_S, NEAR_S, SURE_NEAR_S = 0.12, 0.15, 0.06
REACH_WORDS = 3
PHRASE_RATE = 1.1
"""A phrase spoken alone is slower than inside its sentence (measured: 10 to 40 %)."""
FADE_S = 0.01
F0_RANGE = (0.8, 1.25)


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


# --- levels, pauses, rate -----------------------------------------------------------------


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


def split_sentences(text: str, shortest: int = 12, longest: int = 300) -> list[str]:
    """Pieces to speak one by one: sentences, short ones joined, long ones cut at commas.

    Joined by single spaces the pieces give the text back (inner white space collapsed).
    """
    text = " ".join(text.split())
    pieces: list[str] = []
    for sentence in re.split(r"(?<=[.!?…])\s+", text):
        if pieces and min(len(pieces[-1]), len(sentence)) < shortest:
            pieces[-1] = f"{pieces[-1]} {sentence}"
        else:
            pieces.append(sentence)
    return [part for piece in pieces for part in _cut_long(piece, longest)]


def _cut_long(text: str, longest: int) -> list[str]:
    if len(text) <= longest:
        return [text]
    for mark in (", ", "; ", " "):
        at = text.rfind(mark, 1, longest)
        if at > 0:
            head = at + len(mark) - 1
            return [text[:head], *_cut_long(text[head + 1 :], longest)]
    return [text[:longest], *_cut_long(text[longest:], longest)]


# --- speaking in the pseudo-voice -----------------------------------------------------------


class PseudoVoice:
    """Speaks text as a pool unit: the base voice's synthesiser, then the unit's variant."""

    def __init__(self, synthesiser: str) -> None:
        self.engine = load("synthesiser", synthesiser)
        self._spoken = lru_cache(maxsize=64)(self._speak)

    def speak(
        self, text: str, voice: Voice, language: str, rate: float, f0_ratio: float = 1.0
    ) -> Signal:
        """One piece of text; ``f0_ratio`` moves the pitch beside the variant's own.

        The unit's own rate is left out: a rendered turn keeps the rate of its turn.
        """
        raw = self._spoken(text, voice.base_voice, language, round(rate, 3))
        variant = {key: value for key, value in voice.variant.items() if key != "rate"}
        variant["f0_ratio"] = variant.get("f0_ratio", 1.0) * f0_ratio
        return apply_variant(raw, variant)

    def _speak(self, text: str, base_voice: str, language: str, rate: float) -> Signal:
        if language[:2].lower() not in LETTERS_PER_S:
            known = ", ".join(LETTERS_PER_S)
            raise RenderError(f"unsupported: language {language!r}, spoken are {known}")
        try:
            spoken: Signal = self.engine.speak(text, base_voice, language, rate)
        except AudioError as error:
            raise RenderError(f"failed: {error}") from error
        return spoken


def spoken_text(text: str, language: str) -> str:
    """A turn's text as it is spoken: numbers in words, word pieces joined again."""
    text = re.sub(r"\s+(?=['’-]\w)", "", text)
    # A replacement that ends in a full stop ("J.") may stand before another one.
    return speakable(re.sub(r"(?<!\.)\.\s?\.(?!\s?\.)", ".", text), None, language)


def _closed(text: str) -> str:
    """Text with a final mark: without one a short text is spoken indistinctly."""
    text = text.strip()
    return text if text[-1:] in ".!?…" else f"{text.rstrip(',;: ')}."


class WholeTurn:
    """Speaks the complete target text; nothing of the converted turn's sound remains.

    The converted turn gives level and speaking rate. A turn of one word is spoken like
    any other, as one closed sentence at rate 1.
    """

    def __init__(self, synthesiser: str = "kokoro") -> None:
        self._voice = PseudoVoice(synthesiser)
        spoken = self._voice.engine.info
        self.info = EngineInfo(
            "renderer", "whole-turn", f"1+{spoken.name}@{spoken.revision}", spoken.licence
        )

    def note(self, request: EditRequest) -> str | None:
        return None

    def render(self, request: EditRequest) -> Signal:
        if not any(char.isalnum() for char in request.target_text):
            raise RenderError("unsupported: the target text has nothing to speak")
        text = spoken_text(request.target_text, request.language)
        rate = turn_rate(request)
        pause = np.zeros(round(JOIN_PAUSE_S * SAMPLE_RATE_HZ), dtype=np.float32)
        parts: list[Signal] = []
        for piece in split_sentences(text):
            spoken = self._voice.speak(_closed(piece), request.voice, request.language, rate)
            parts += [spoken, pause]
        samples = match_active_level(np.concatenate(parts[:-1]), request.converted)
        return _checked(samples, text, rate, "whole-turn")


def turn_rate(request: EditRequest) -> float:
    """Rate at which the turn's replacement is spoken: the converted turn's own."""
    text = spoken_text(request.text, request.language)
    return speaking_rate(text, request.converted, request.language)


def _checked(samples: Signal, text: str, rate: float, name: str) -> Signal:
    """Refuse speech of an absurd length for its text (a loop, or words left out)."""
    expected_s = max(sum(char.isalnum() for char in text) / 15.0 / rate, 0.3)
    try:
        check_generated(samples, expected_s, name, length_ratio=(0.4, 3.5))
    except AudioError as error:
        raise RenderError(f"failed: {error}") from error
    return samples


# --- where the words and the cuts are -------------------------------------------------------


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


# --- infill ---------------------------------------------------------------------------------


def splice(
    samples: Signal, pieces: Sequence[tuple[Mask, Signal]], fade_s: float = FADE_S
) -> Signal:
    """Put a piece in place of each mask (in order, apart), with short fades at the cuts.

    What is kept fades out before a cut and in after it, over ``fade_s``, inside the kept
    samples; the piece fades in and out likewise. Nothing of a mask's samples is used.
    """
    out: list[Signal] = []
    at = 0
    for mask, piece in pieces:
        out += [_edges(samples[at : mask.start], at > 0, True, fade_s)]
        lead = np.zeros(mask.lead, dtype=np.float32)
        tail = np.zeros(mask.tail, dtype=np.float32)
        out += [lead, _edges(piece, True, True, fade_s), tail]
        at = mask.end
    out.append(_edges(samples[at:], at > 0, False, fade_s))
    return np.concatenate(out).astype(np.float32)


def _edges(samples: Signal, fade_in: bool, fade_out: bool, fade_s: float) -> Signal:
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


class Infill:
    """Word-level infill: speaks only the masks and splices them into the converted turn.

    ``max_mask_share`` is the largest share of the turn's word time that the edits may
    take: engines that learn the voice from the rest of the turn need some rest. This one
    knows its voice, so at the default of 1 a turn that is all identifier is spoken anew.
    """

    def __init__(self, synthesiser: str = "kokoro", max_mask_share: float = 1.0) -> None:
        self._voice = PseudoVoice(synthesiser)
        self._max_mask_share = max_mask_share
        spoken = self._voice.engine.info
        self.info = EngineInfo(
            "renderer", "infill", f"1+{spoken.name}@{spoken.revision}", spoken.licence
        )

    def note(self, request: EditRequest) -> str | None:
        return None

    def render(self, request: EditRequest) -> Signal:
        masks = plan_masks(request)
        share = mask_share(request)
        if share > self._max_mask_share:
            raise RenderError(
                f"unsupported: mask of {share:.0%} of the words, limit {self._max_mask_share:.0%}"
            )
        rate = bounded_rate(turn_rate(request) * PHRASE_RATE, request.language)
        f0_hz = median_f0(request.converted)
        pieces = [(mask, self._speak(mask.text, request, rate, f0_hz)) for mask in masks]
        return _spoken_check(splice(request.converted, pieces), request.converted)

    def _speak(self, text: str, request: EditRequest, rate: float, f0_hz: float) -> Signal:
        if not any(char.isalnum() for char in text):
            return np.zeros(0, dtype=np.float32)
        text = _closed(spoken_text(text, request.language))
        plain = self._voice.speak(text, request.voice, request.language, rate)
        ratio = f0_hz / median_f0(plain) if f0_hz > 0 and median_f0(plain) > 0 else 1.0
        if abs(ratio - 1.0) > 0.06:
            ratio = float(np.clip(ratio, *F0_RANGE))
            plain = self._voice.speak(text, request.voice, request.language, rate, ratio)
        return match_active_level(plain, request.converted)


def median_f0(samples: Signal) -> float:
    """Median pitch of the voiced frames in Hz; 0 when nothing is voiced."""
    f0, _ = estimate_f0(samples)
    voiced = f0[f0 > 0]
    return float(np.median(voiced)) if voiced.size else 0.0


def _spoken_check(samples: Signal, converted: Signal) -> Signal:
    try:
        check_generated(samples, converted.size / SAMPLE_RATE_HZ, "infill", (0.2, 6.0))
    except AudioError as error:
        raise RenderError(f"failed: {error}") from error
    return samples


# --- bleep ----------------------------------------------------------------------------------


def bleep_intervals(request: EditRequest, margin_s: float) -> list[tuple[int, int]] | None:
    """Samples to cover: each span's words, ``margin_s`` wider, then on to a quieter place.

    The margin covers what a recogniser's word times are off by; within another margin
    the edge moves out to the lowest level, so that it cuts no neighbour in two where that
    can be helped. None when a span has no word times.
    """
    size, levels = request.converted.size, frame_levels(request.converted)
    reach = max(round(margin_s * 100), 1)
    spans: list[tuple[int, int]] = []
    for span in request.spans:
        if span.start_s is None or span.end_s is None:
            return None
        first = max(round((span.start_s - margin_s) * 100), 0)
        last = min(round((span.end_s + margin_s) * 100), levels.size - 1)
        before = levels[max(first - reach, 0) : first + 1]
        after = levels[last : last + reach + 1]
        start = first - (before.size - 1) + int(np.argmin(before)) if before.size else 0
        end = last + int(np.argmin(after)) if after.size else last
        spans.append((start * FRAME, min((end + 1) * FRAME, size)))
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


class Bleep:
    """Covers every edit in the converted turn; the turn keeps its length.

    ``kind`` is ``tone`` (1 kHz), ``noise`` or ``silence``. Without word times the whole
    turn is covered and :meth:`note` says so.
    """

    KINDS = ("tone", "noise", "silence")
    TONE_HZ = 1000.0

    def __init__(self, kind: str = "tone", margin_s: float = 0.1) -> None:
        if kind not in self.KINDS:
            raise RenderError(f"unsupported: redaction kind {kind!r}, known: {self.KINDS}")
        self._kind, self._margin_s = kind, margin_s
        self.info = EngineInfo("renderer", "bleep", f"1 {kind}", "Apache-2.0")

    def note(self, request: EditRequest) -> str | None:
        untimed = bleep_intervals(request, self._margin_s) is None
        return "no word times: the whole turn is covered" if untimed else None

    def render(self, request: EditRequest) -> Signal:
        intervals = bleep_intervals(request, self._margin_s)
        out = request.converted.copy()
        level = min(active_rms(request.converted), 0.3)
        for start, end in [(0, out.size)] if intervals is None else intervals:
            out[start:end] = self._cover(end - start, level, request.seed + start)
        return out

    def _cover(self, n_samples: int, level: float, seed: int) -> Signal:
        if self._kind == "silence":
            return np.zeros(n_samples, dtype=np.float32)
        if self._kind == "noise":
            noise = np.random.default_rng(seed).normal(0.0, level / 2.0, n_samples)
            return np.clip(noise, -0.9, 0.9).astype(np.float32)
        time = np.arange(n_samples) / SAMPLE_RATE_HZ
        tone = level * np.sin(2.0 * np.pi * self.TONE_HZ * time)
        return _edges(tone.astype(np.float32), True, True, FADE_S)


@register("renderer", "whole-turn")
def _whole_turn(synthesiser: str = "kokoro") -> WholeTurn:
    return WholeTurn(synthesiser)


@register("renderer", "infill")
def _infill(synthesiser: str = "kokoro", max_mask_share: float = 1.0) -> Infill:
    return Infill(synthesiser, max_mask_share)


@register("renderer", "bleep")
def _bleep(kind: str = "tone", margin_s: float = 0.1) -> Bleep:
    return Bleep(kind, margin_s)
