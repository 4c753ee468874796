"""Speech recognition: words with times, and where there is voice at all.

Unit: one mono recording at 16 kHz. Voice activity is decoded once (silero); the same
intervals select what the recogniser hears and stand in the transcript as ``speech``.
Whisper hears the stretches of speech joined together, as faster-whisper's own filter
does, in blocks of at most ten minutes, so that memory does not grow with length.
Decoding is greedy at temperature 0 and without the previous text as a prompt: a repeat
run gives the same words, and a loop cannot spread. The only fallback is for a window
whose text loops; it is decoded once more under a rule against repetition, which the
engine's revision names.

Engines: ``whisper-base`` (multilingual), ``whisper-tiny.en``, and ``whisper-base-segments``,
the first one behind an interface that gives times of segments only. Diarizers are in
:mod:`aegis.engines.diarization`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import numpy as np

from aegis.audio import SAMPLE_RATE_HZ, AnySignal, Signal
from aegis.engines import (  # diarization: its engines register on import
    EngineInfo,
    Segment,
    Transcript,
    Word,
    diarization,
    register,
)
from aegis.engines.activity import (
    Interval,
    find_speech,
    pad_chunks,
    split_blocks,
    voice_probabilities,
)
from aegis.errors import EngineUnavailable, ItemError
from aegis.words import repeated_words

WINDOW_S = 30.0
WITHOUT_WORD_TIMES = frozenset({"whisper-base-segments", "canary-as-paper"})
"""Transcribers whose interface times no word: nothing can be edited at its place."""
NO_REPEAT = 5
"""Where a window's text loops it is decoded again, and no five tokens may come twice."""


@dataclass(frozen=True)
class JoinedClock:
    """Maps times in the joined chunks back to the recording's clock."""

    chunks: tuple[Interval, ...]

    def to_recording(self, start_s: float, end_s: float) -> Interval:
        """Both ends are taken to the chunk that holds the middle, and stay inside it."""
        lengths = np.array([end - start for start, end in self.chunks])
        ends = np.cumsum(lengths)
        k = min(int(np.searchsorted(ends, (start_s + end_s) / 2, side="right")), ends.size - 1)
        shift = self.chunks[k][0] - (ends[k] - lengths[k])
        low, high = self.chunks[k]
        start = min(max(start_s + shift, low), high)
        return start, min(max(end_s + shift, start), high)


class Whisper:
    """A CTranslate2 Whisper model behind the :class:`~aegis.engines.Transcriber` protocol."""

    beam_size, reads_parts = 1, True
    _word_times = True

    def __init__(
        self, name: str, english_only: bool, compute_type: str = "int8", model: str | None = None
    ) -> None:
        from aegis.weights import model_dir, read_card

        try:
            from faster_whisper import WhisperModel
        except ImportError as error:
            raise EngineUnavailable(f"{name}: install faster-whisper") from error
        model = model or name
        card, self._english_only = read_card(model), english_only
        self._word_times = name not in WITHOUT_WORD_TIMES
        version = metadata.version("faster-whisper")
        revision = f"{card.revision} faster-whisper-{version} {compute_type} beam{self.beam_size}"
        revision += f" loop-retry{NO_REPEAT}" + ("" if self._word_times else " segments-only")
        self.info = EngineInfo("transcriber", name, revision, card.licence)
        self._model = WhisperModel(
            str(model_dir(model)), device="cpu", compute_type=compute_type, cpu_threads=1
        )

    def transcribe(self, samples: AnySignal, language: str | None) -> Transcript:
        """Words of one recording; ``language`` None lets the first block decide.

        Raises
        ------
        ItemError
            The model knows English only and another language is asked for.
        """
        if self._english_only:
            if language not in (None, "en"):
                raise ItemError(f"{self.info.name}: English only, asked for {language!r}")
            language = "en"
        duration_s = samples.size / SAMPLE_RATE_HZ
        speech = find_speech(voice_probabilities(samples), duration_s)
        segments: list[Segment] = []
        probability = 1.0 if language else 0.0
        for block, bounds in _bounded(split_blocks(speech), duration_s):
            chunks = pad_chunks(block, bounds)
            found, info = self._decode(samples, chunks, language)
            segments += found
            if language is None:
                language, probability = info.language, float(info.language_probability)
        return Transcript(language or "und", probability, tuple(segments), tuple(speech))

    def _decode(
        self, samples: AnySignal, chunks: Sequence[Interval], language: str | None
    ) -> tuple[list[Segment], Any]:
        """Segments of the joined chunks; a window that loops is decoded again, once."""
        rate = SAMPLE_RATE_HZ
        heard = np.concatenate([samples[round(a * rate) : round(b * rate)] for a, b in chunks])
        raw, info = self._hear(heard, language)
        for start_s, end_s in looped_windows(raw):
            piece = heard[round(start_s * rate) : round(end_s * rate)]
            again, _ = self._hear(piece, info.language, no_repeat_ngram_size=NO_REPEAT)
            before = [segment for segment in raw if segment.start < start_s]
            after = [segment for segment in raw if segment.start >= end_s]
            raw = [*before, *(_moved(segment, start_s) for segment in again), *after]
        clock = JoinedClock(tuple(chunks))
        return [_segment(segment, clock) for segment in raw], info

    def _hear(
        self, heard: Signal, language: str | None, no_repeat_ngram_size: int = 0
    ) -> tuple[list[Any], Any]:
        segments, info = self._model.transcribe(
            heard,
            language=language,
            beam_size=self.beam_size,
            temperature=0.0,
            word_timestamps=self._word_times,
            condition_on_previous_text=False,
            vad_filter=False,
            no_speech_threshold=None,  # voice activity has decided: nothing is skipped unseen
            no_repeat_ngram_size=no_repeat_ngram_size,
            language_detection_segments=4,
        )
        return list(segments), info


def looped_windows(raw: Sequence[Any]) -> list[Interval]:
    """Times of the recogniser's 30-s windows whose text repeats itself, in order.

    Segments with one ``seek`` come from one window; it reaches to the next one's start.
    """
    found = []
    seeks = sorted({segment.seek for segment in raw})
    for seek, following in zip(seeks, [*seeks[1:], None], strict=True):
        own = [segment for segment in raw if segment.seek == seek]
        if repeated_words([token for segment in own for token in segment.text.split()]):
            later = [segment.start for segment in raw if segment.seek == following]
            found.append((own[0].start, min(later, default=own[0].start + WINDOW_S)))
    return found


def _moved(segment: Any, by_s: float) -> Any:
    """A segment of a piece on the clock of the whole (changed in place)."""
    segment.start += by_s
    segment.end += by_s
    for word in segment.words or ():
        word.start += by_s
        word.end += by_s
    return segment


def _bounded(
    blocks: Sequence[Sequence[Interval]], duration_s: float
) -> Iterator[tuple[Sequence[Interval], Interval]]:
    """Each block with the bounds that its padding may reach: halfway to its neighbours."""
    for k, block in enumerate(blocks):
        low = (blocks[k - 1][-1][1] + block[0][0]) / 2 if k else 0.0
        high = (block[-1][1] + blocks[k + 1][0][0]) / 2 if k + 1 < len(blocks) else duration_s
        yield block, (low, high)


def _segment(raw: Any, clock: JoinedClock) -> Segment:
    """One segment of the model on the recording's clock."""
    words: list[Word] = []
    for word in raw.words or ():
        start, end = _rounded(clock.to_recording(word.start, word.end))
        text, joined = word.word.strip(), bool(words) and not word.word.startswith(" ")
        if text and joined:  # "0" + ".25", "est" + "-ce": parts of one written word
            last = words.pop()
            sure = min(last.probability or 0.0, word.probability)
            words.append(Word(last.text + text, last.start_s, max(end, last.end_s or end), sure))
        elif text:
            words.append(Word(text, start, end, word.probability))
    if words:
        start, end = words[0].start_s or 0.0, words[-1].end_s or 0.0
    else:
        start, end = _rounded(clock.to_recording(raw.start, raw.end))
    return Segment(start, max(start, end), raw.text.strip(), tuple(words))


def _rounded(times: Interval) -> Interval:
    return round(times[0], 3), round(times[1], 3)


@register("transcriber", "whisper-base")
def _whisper_base(compute_type: str = "int8") -> Whisper:
    return Whisper("whisper-base", english_only=False, compute_type=compute_type)


@register("transcriber", "whisper-base-segments")
def _whisper_base_segments(compute_type: str = "int8") -> Whisper:
    return Whisper("whisper-base-segments", False, compute_type, model="whisper-base")


@register("transcriber", "whisper-tiny.en")
def _whisper_tiny(compute_type: str = "int8") -> Whisper:
    return Whisper("whisper-tiny.en", english_only=True, compute_type=compute_type)


DIARIZERS = (diarization.SegmentationDiarizer, diarization.WindowDiarizer)
