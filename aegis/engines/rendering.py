"""Renderers: from a converted turn and a planned text to the edited turn.

The unit is one turn with one edit (focused) or all its edits (composed). Two embedded
renderers stand here behind the ``Renderer`` protocol, ``bleep`` in ``bleeping``:

- ``whole-turn`` speaks the complete target text in the pseudo-voice (the role of F5-TTS);
- ``infill`` speaks only a mask around each edit and splices it into the converted
  turn (the role of VoiceCraft).

Times in a request are seconds from the start of the converted turn. A renderer
makes one attempt; what it cannot do is a ``RenderError`` that starts with
``unsupported:`` or ``failed:``. Nothing is listened to and nothing is chosen: what
keeps the original out of the result are the margins of :func:`plan_masks`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from aegis.audio import SAMPLE_RATE_HZ, Signal, check_generated
from aegis.engines import EditRequest, EngineInfo, Voice, load, register
from aegis.engines.conversion import apply_variant, estimate_f0
from aegis.engines.masks import Mask, mask_share, plan_masks
from aegis.engines.speech_levels import (
    FADE_S,
    LETTERS_PER_S,
    bounded_rate,
    fade_edges,
    match_active_level,
    speaking_rate,
)
from aegis.errors import AudioError, RenderError
from aegis.numbers import speakable

JOIN_PAUSE_S = 0.2
PHRASE_RATE = 1.1
"""A phrase spoken alone is slower than inside its sentence (measured: 10 to 40 %)."""
F0_RANGE = (0.8, 1.25)


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
        out += [fade_edges(samples[at : mask.start], at > 0, True, fade_s)]
        lead = np.zeros(mask.lead, dtype=np.float32)
        tail = np.zeros(mask.tail, dtype=np.float32)
        out += [lead, fade_edges(piece, True, True, fade_s), tail]
        at = mask.end
    out.append(fade_edges(samples[at:], at > 0, False, fade_s))
    return np.concatenate(out).astype(np.float32)


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


@register("renderer", "whole-turn")
def _whole_turn(synthesiser: str = "kokoro") -> WholeTurn:
    return WholeTurn(synthesiser)


@register("renderer", "infill")
def _infill(synthesiser: str = "kokoro", max_mask_share: float = 1.0) -> Infill:
    return Infill(synthesiser, max_mask_share)
