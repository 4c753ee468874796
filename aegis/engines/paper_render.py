"""The paper's renderers, F5-TTS and VoiceCraft, behind the ``Renderer`` protocol.

Unit: one edited turn. Times are seconds from the start of the converted turn. Both run in
workers of their own; what is decided here, without them, is what they are asked: F5-TTS gets a
reference cut from the converted turn at word boundaries together with exactly its words, free
of every planned span; VoiceCraft gets masks in codec frames. What they do not support is a
``RenderError`` that starts with ``unsupported:``, never a silent fallback.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aegis.audio import SAMPLE_RATE_HZ, Signal, check_generated, resample
from aegis.engines import EditRequest, EngineInfo, Needs, Word, register
from aegis.engines.devices import choose_device
from aegis.engines.masks import place_words, words_of_span
from aegis.engines.rendering import spoken_text
from aegis.engines.worker import Worker
from aegis.errors import AudioError, ItemError, RenderError
from aegis.weights import model_dir, read_card

# --- F5-TTS: a reference with its text -------------------------------------------------------

LONGEST_REFERENCE_S = 11.0
SHORTEST_REFERENCE_S = 1.0
LONGEST_TOTAL_S = 30.0
"""Reference and speech together; beyond it the model was not trained."""
TAIL_S = 0.05
F5_LANGUAGES = ("en", "zh")


@dataclass(frozen=True)
class Reference:
    """A stretch of the converted turn and the words spoken in it."""

    samples: Signal
    text: str

    @property
    def seconds(self) -> float:
        return self.samples.size / SAMPLE_RATE_HZ


def cut_reference(request: EditRequest) -> Reference:
    """The longest stretch of timed words without any planned span, at most 11 s.

    A stretch begins halfway between its first word and the one before and ends halfway to the
    one after it (at most 0.1 s from the words), so that no other word is heard in it. Among
    stretches of equal length the earlier one is taken.

    Raises
    ------
    RenderError
        No stretch of at least one second.
    """
    places, words = place_words(request.text, request.words)
    planned: set[int] = set()
    for span in request.spans:
        first, last = words_of_span(places, span)
        planned |= set(range(first, last + 1))
    best: tuple[float, int, int] | None = None
    for first, last in _free_runs(words, planned):
        start_s, end_s = _bounds(words, first, last, request.converted.size)
        if best is None or end_s - start_s > best[0] + 1e-6:
            best = (end_s - start_s, first, last)
    if best is None or best[0] < SHORTEST_REFERENCE_S:
        longest = 0.0 if best is None else best[0]
        raise RenderError(
            f"unsupported: {longest:.1f} s of the turn are free of edits, the reference needs"
            f" {SHORTEST_REFERENCE_S:g} s"
        )
    _, first, last = best
    start_s, end_s = _bounds(words, first, last, request.converted.size)
    cut = request.converted[round(start_s * SAMPLE_RATE_HZ) : round(end_s * SAMPLE_RATE_HZ)]
    silence = np.zeros(round(TAIL_S * SAMPLE_RATE_HZ), dtype=np.float32)
    text = request.text[places[first][0] : places[last][1]]
    return Reference(np.concatenate([cut, silence]), text)


def _free_runs(words: Sequence[Word], planned: set[int]) -> list[tuple[int, int]]:
    """For each first word its longest run of timed, unplanned, ordered words within 11 s."""
    runs = []
    for first in range(len(words)):
        last = first - 1
        while last + 1 < len(words) and _usable(words, last + 1, first, planned):
            last += 1
        if last >= first:
            runs.append((first, last))
    return runs


def _usable(words: Sequence[Word], index: int, first: int, planned: set[int]) -> bool:
    word, begin = words[index], words[first].start_s
    if index in planned or word.start_s is None or word.end_s is None or begin is None:
        return False
    before = words[index - 1].end_s if index > first else word.start_s
    in_order = before is not None and word.end_s > word.start_s >= before - 1e-6
    return in_order and word.end_s - begin <= LONGEST_REFERENCE_S - 0.2


def _bounds(words: Sequence[Word], first: int, last: int, n_samples: int) -> tuple[float, float]:
    start_s, end_s = words[first].start_s or 0.0, words[last].end_s or 0.0
    earlier = [w.end_s for w in words[:first] if w.end_s is not None]
    later = [w.start_s for w in words[last + 1 :] if w.start_s is not None]
    left = (max(earlier) + start_s) / 2 if earlier else 0.0
    right = (min(later) + end_s) / 2 if later else n_samples / SAMPLE_RATE_HZ
    return max(start_s - 0.1, min(left, start_s)), min(end_s + 0.1, max(right, end_s))


def estimate_seconds(text: str, reference: Reference) -> float:
    """How long a text takes at the reference's pace, by letters; at least 0.6 s."""
    letters = sum(char.isalnum() for char in text)
    spoken = max(sum(char.isalnum() for char in reference.text), 1)
    return max(0.6, letters / spoken * reference.seconds)


class F5:
    """F5-TTS: speaks the complete target text in the voice of the converted turn."""

    def __init__(self, worker: Worker | None = None) -> None:
        card = read_card("f5-tts")
        device = "cuda" if worker is not None else choose_device("f5-tts", needs_card=True)
        self.info = EngineInfo("renderer", "f5-tts", card.revision, card.licence, device, False)
        self._worker = worker or Worker("f5", f5_options(device))

    def note(self, request: EditRequest) -> str | None:
        return None

    def render(self, request: EditRequest) -> Signal:
        """The edited turn; one chunk, so the seed fixes it.

        Raises
        ------
        RenderError
        """
        language = request.language[:2].lower()
        if language not in F5_LANGUAGES:
            raise RenderError(f"unsupported: language {language!r}, spoken are en, zh")
        if not any(char.isalnum() for char in request.target_text):
            raise RenderError("unsupported: the target text has nothing to speak")
        reference = cut_reference(request)
        text = spoken_text(request.target_text, language)
        wanted_s = estimate_seconds(text, reference)
        if reference.seconds + wanted_s > LONGEST_TOTAL_S:
            raise RenderError(
                f"unsupported: {reference.seconds + wanted_s:.0f} s with the reference, at most"
                f" {LONGEST_TOTAL_S:.0f} s"
            )
        values = {
            "reference_text": _sentence(spoken_text(reference.text, language)),
            "text": _sentence(text),
            "total_s": reference.seconds + wanted_s,
            "seed": request.seed,
        }
        return _ask(self._worker, values, {"reference": reference.samples}, wanted_s, "f5-tts")


def f5_options(device: str) -> dict[str, Any]:
    """What the worker loads, from the folders of the cards ``f5-tts`` and ``vocos``."""
    folder = model_dir("f5-tts")
    return {
        "device": device,
        "checkpoint": str(folder / "model_1250000.safetensors"),
        "vocabulary": str(folder / "vocab.txt"),
        "vocoder": str(model_dir("vocos")),
    }


def _sentence(text: str) -> str:
    """Text that ends as the program expects it: a mark and a space."""
    text = " ".join(text.split())
    return f"{text} " if text[-1:] in ".!?…" else f"{text.rstrip(',;: ')}. "


def _ask(
    worker: Worker, values: dict[str, Any], arrays: dict[str, Any], expected_s: float, name: str
) -> Signal:
    try:
        value, out = worker.call("render", values, arrays)
        samples = resample(out["samples"].astype(np.float32), value["rate_hz"])
        check_generated(samples, expected_s, name, length_ratio=(0.3, 3.5))
    except AudioError as error:
        raise RenderError(f"failed: {error}") from error
    except ItemError as error:
        raise RenderError(str(error)) from error
    return samples


# --- VoiceCraft: masks in codec frames -------------------------------------------------------

FRAMES_PER_S = 50
MARGIN_S = 0.08
MOST_SPANS = 3
LONGEST_MASK_FRAMES = 600
MOST_MASKED = 0.7
SHORTEST_TURN_S, LONGEST_TURN_S = 2.0, 20.0
"""Bounds of the audio that the model was trained on."""


def mask_frames(request: EditRequest) -> NDArray[np.int64]:
    """Masks ``[start, end)`` in codec frames, shape (n, 2), sorted and apart.

    From the first to the last word of each span, 0.08 s wider on both sides, never before the
    first frame or after the end; masks that meet become one.

    Raises
    ------
    RenderError
        ``unsupported:`` with what the model does not do: language, length, untimed words, an
        empty replacement, more than three masks, or a mask that is too long or too large.
    """
    seconds = request.converted.size / SAMPLE_RATE_HZ
    _check_turn(request, seconds)
    places, words = place_words(request.text, request.words)
    spans: list[tuple[float, float]] = []
    for span in request.spans:
        first, last = words_of_span(places, span)
        start_s, end_s = words[first].start_s, words[last].end_s
        if start_s is None or end_s is None or end_s <= start_s:
            raise RenderError("unsupported: no word times in a span")
        start = max(start_s - MARGIN_S, 1 / FRAMES_PER_S)
        spans.append((start, min(end_s + MARGIN_S, seconds)))
    masks: list[list[int]] = []
    for start, end in sorted(spans):
        frames = [round(start * FRAMES_PER_S), round(end * FRAMES_PER_S)]
        if masks and frames[0] <= masks[-1][1]:
            masks[-1][1] = max(masks[-1][1], frames[1])
        else:
            masks.append(frames)
    _check_masks(masks, seconds)
    return np.array(masks, dtype=np.int64)


def _check_turn(request: EditRequest, seconds: float) -> None:
    language = request.language[:2].lower()
    if language != "en":
        raise RenderError(f"unsupported: language {language!r}, English only")
    if not SHORTEST_TURN_S <= seconds <= LONGEST_TURN_S:
        raise RenderError(
            f"unsupported: a turn of {seconds:.1f} s, trained on {SHORTEST_TURN_S:g} to"
            f" {LONGEST_TURN_S:g} s"
        )
    if not all(any(c.isalnum() for c in span.replacement) for span in request.spans):
        raise RenderError("unsupported: a deletion")


def _check_masks(masks: Sequence[Sequence[int]], seconds: float) -> None:
    if not 1 <= len(masks) <= MOST_SPANS:
        raise RenderError(f"unsupported: {len(masks)} separate edits, at most {MOST_SPANS}")
    lengths = [end - start for start, end in masks]
    if min(lengths) < 1 or max(lengths) > LONGEST_MASK_FRAMES:
        raise RenderError(
            f"unsupported: a mask of {max(lengths) / FRAMES_PER_S:.1f} s, at most"
            f" {LONGEST_MASK_FRAMES / FRAMES_PER_S:.0f} s"
        )
    share = sum(lengths) / (seconds * FRAMES_PER_S)
    if share > MOST_MASKED:
        raise RenderError(f"unsupported: {share:.0%} of the turn masked, at most 70%")


class VoiceCraft:
    """VoiceCraft 330M: speaks the masks anew inside the converted turn."""

    def __init__(self, worker: Worker | None = None) -> None:
        card = read_card("voicecraft")
        device = "cuda" if worker is not None else choose_device("voicecraft", needs_card=True)
        self.info = EngineInfo(
            "renderer", "voicecraft", card.revision, card.licence, device, False
        )
        self._worker = worker or Worker(
            "voicecraft", voicecraft_options(model_dir("voicecraft"), device)
        )

    def note(self, request: EditRequest) -> str | None:
        return None

    def render(self, request: EditRequest) -> Signal:
        """The edited turn; unedited words pass through the codec as well."""
        masks = mask_frames(request)
        text = spoken_text(request.target_text, request.language).strip()
        arrays = {"source": request.converted, "masks": masks}
        values = {"text": text, "seed": request.seed}
        seconds = request.converted.size / SAMPLE_RATE_HZ
        return _ask(self._worker, values, arrays, seconds, "voicecraft")


def voicecraft_options(folder: Path, device: str) -> dict[str, Any]:
    """What the worker loads, from the folder of the card ``voicecraft``."""
    return {
        "device": device,
        "checkpoint": str(folder / "giga330M.pth"),
        "codec": str(folder / "encodec_4cb2048_giga.th"),
    }


# The notebook gives every renderer the options of the embedded ones; these have no use for them.


@register("renderer", "f5-tts", Needs(("f5-tts", "vocos"), "f5", card=True))
def _f5(synthesiser: str = "", max_mask_share: float = 1.0) -> F5:
    return F5()


@register("renderer", "voicecraft", Needs(("voicecraft",), "voicecraft", card=True))
def _voicecraft(synthesiser: str = "", max_mask_share: float = 1.0) -> VoiceCraft:
    return VoiceCraft()
