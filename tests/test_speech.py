"""Voice activity, the joined clock, and the embedded recogniser on real speech."""

from __future__ import annotations

import csv
from types import SimpleNamespace

import numpy as np
import pytest

from aegis import engines
from aegis.audio import SAMPLE_RATE_HZ, Signal, read_audio, resample
from aegis.engines.activity import find_speech, join_intervals, pad_chunks, split_blocks
from aegis.engines.speech import NO_REPEAT, JoinedClock, Whisper, _segment, looped_windows
from aegis.errors import ItemError
from aegis.tables import PROJECT
from aegis.text import count_errors, normalise, pooled_error_rate
from aegis.weights import MODELS
from aegis.words import read_words

DATA = PROJECT.parent / "shared" / "data"
STEP_S = 512 / SAMPLE_RATE_HZ

needs_weights = pytest.mark.skipif(
    not (MODELS / "whisper-base").exists(), reason="no weights; run `aegis fetch`"
)
needs_data = pytest.mark.skipif(not DATA.exists(), reason="no shared data")


def probabilities(*runs: tuple[float, int]) -> np.ndarray:
    return np.concatenate([np.full(n, value, dtype=np.float32) for value, n in runs])


def test_speech_begins_at_the_onset_and_ends_below_the_offset() -> None:
    # 10 steps silent, 20 voiced, 5 between the thresholds (still speech), 30 silent.
    found = find_speech(probabilities((0.1, 10), (0.9, 20), (0.4, 5), (0.1, 30)), 65 * STEP_S)
    assert found == [pytest.approx((10 * STEP_S, 35 * STEP_S))]


def test_short_pauses_are_bridged_and_blips_dropped() -> None:
    blip = probabilities((0.9, 20), (0.0, 5), (0.9, 20), (0.0, 40), (0.9, 2), (0.0, 10))
    found = find_speech(blip, blip.size * STEP_S)
    assert found == [pytest.approx((0.0, 45 * STEP_S))]


def test_speech_up_to_the_end_stays_inside_the_recording() -> None:
    assert find_speech(probabilities((0.9, 10)), 0.3)[0][1] == pytest.approx(0.3)
    assert find_speech(np.zeros(0, dtype=np.float32), 0.0) == []


def test_chunks_keep_short_pauses_and_padding_does_not_overlap() -> None:
    speech = [(1.0, 2.0), (3.5, 4.0), (6.5, 7.0), (10.0, 11.0)]
    # 1.5 s is kept; 2.5 s leaves 1.7 s between the padded chunks.
    chunks = pad_chunks(speech, (0.8, 11.2))
    assert chunks == [
        pytest.approx((0.8, 4.4)),
        pytest.approx((6.1, 7.4)),
        pytest.approx((9.6, 11.2)),
    ]


def test_blocks_are_cut_at_the_widest_pause_of_their_last_third() -> None:
    speech = [(0, 10), (11, 20), (21, 50), (55, 70), (71, 95), (96, 130)]
    blocks = split_blocks([(float(a), float(b)) for a, b in speech], longest_s=100.0)
    # Pauses begin a late piece at 71 and 96, each 1 s wide; the first is taken.
    assert [len(block) for block in blocks] == [4, 2]
    assert [piece for block in blocks for piece in block] == speech


def test_one_endless_stretch_is_cut_hard() -> None:
    blocks = split_blocks([(0.0, 250.0)], longest_s=100.0)
    assert blocks == [[(0.0, 100.0)], [(100.0, 200.0)], [(200.0, 250.0)]]


def test_joining_keeps_what_touches_together() -> None:
    assert join_intervals([(0, 1), (1.1, 2), (1.5, 1.8), (3, 4)], 0.2) == [(0, 2), (3, 4)]


def test_times_go_back_to_the_chunk_that_holds_the_middle() -> None:
    clock = JoinedClock(((1.0, 3.0), (10.0, 12.0)))
    assert clock.to_recording(0.5, 1.0) == pytest.approx((1.5, 2.0))
    assert clock.to_recording(2.5, 3.0) == pytest.approx((10.5, 11.0))
    # A word over the seam stays in the chunk of its middle.
    assert clock.to_recording(1.6, 2.2) == pytest.approx((2.6, 3.0))
    assert clock.to_recording(3.9, 4.5) == pytest.approx((11.9, 12.0))


def test_parts_of_one_written_word_are_joined() -> None:
    parts = [(" take", 0.0, 0.3), (" 0", 0.3, 0.5), (".25", 0.5, 0.9), (" mg.", 0.9, 1.2)]
    words = [SimpleNamespace(word=w, start=a, end=b, probability=0.9) for w, a, b in parts]
    raw = SimpleNamespace(words=words, text=" take 0.25 mg.", start=0.0, end=1.2)
    found = _segment(raw, JoinedClock(((5.0, 9.0),)))
    assert [word.text for word in found.words] == ["take", "0.25", "mg."]
    assert (found.words[1].start_s, found.words[1].end_s) == (5.3, 5.9)


def test_windows_whose_text_loops_are_named_with_their_times() -> None:
    def heard(seek: int, start: float, text: str) -> SimpleNamespace:
        return SimpleNamespace(seek=seek, start=start, text=text)

    fine, loop = heard(0, 0.2, "no chest pain"), [heard(2500, 25.0, " ah, ah, ah,")] * 4
    after = heard(5200, 52.0, "it hurts")
    assert looped_windows([fine, *loop, after]) == [(25.0, 52.0)]
    assert looped_windows([fine, *loop]) == [(25.0, 55.0)]
    assert looped_windows([fine, after]) == []


class ScriptedModel:
    """Stands for the Whisper model: loops in its second window unless told not to."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, int]] = []

    def transcribe(self, heard: Signal, **options: object) -> tuple[list[SimpleNamespace], object]:
        rule = int(str(options["no_repeat_ngram_size"]))
        self.calls.append((heard.size, rule))
        info = SimpleNamespace(language="en", language_probability=1.0)
        if rule:
            return [self._said(0, 1.0, "no fever")], info
        loop = [self._said(2500, 25.0 + 2 * k, "ah, " * 4) for k in range(4)]
        return [self._said(0, 0.5, "any fever?"), *loop, self._said(5200, 52.0, "good")], info

    def _said(self, seek: int, start: float, text: str) -> SimpleNamespace:
        words = [
            SimpleNamespace(word=f" {token}", start=start + 0.4 * k, end=start + 0.4 * (k + 1),
                            probability=0.9)
            for k, token in enumerate(text.split())
        ]  # fmt: skip
        end = words[-1].end
        return SimpleNamespace(seek=seek, start=start, end=end, text=text, words=words)


def test_only_the_looping_window_is_decoded_again_and_keeps_its_place() -> None:
    whisper = Whisper.__new__(Whisper)
    whisper._model = model = ScriptedModel()
    samples = np.zeros(60 * SAMPLE_RATE_HZ, dtype=np.float32)
    segments, _ = whisper._decode(samples, [(0.0, 60.0)], "en")
    assert [segment.text for segment in segments] == ["any fever?", "no fever", "good"]
    assert [segment.start_s for segment in segments] == pytest.approx([0.5, 26.0, 52.0])
    # The whole block once, then the 27 s from the loop's start to the next window.
    assert model.calls == [(60 * SAMPLE_RATE_HZ, 0), (27 * SAMPLE_RATE_HZ, NO_REPEAT)]


def librispeech(reader: str, n: int) -> tuple[Signal, str]:
    """Some utterances of one reader, half a second apart, and their text."""
    parts, texts = [], []
    with open(DATA / "audio_librispeech" / "manifest.csv", encoding="utf-8") as handle:
        rows = [row for row in csv.DictReader(handle) if f"test-other/{reader}/" in row["path"]]
    for row in rows[:n]:
        parts += [read_audio(DATA / row["path"]).samples[0], np.zeros(8000, dtype=np.float32)]
        texts.append(row["text"])
    return np.concatenate(parts), " ".join(texts)


@pytest.mark.engine
@needs_weights
@needs_data
@pytest.mark.parametrize(("name", "most"), [("whisper-base", 0.12), ("whisper-tiny.en", 0.20)])
def test_read_english_is_recognised_with_times(name: str, most: float) -> None:
    samples, text = librispeech("1688", 3)
    found = engines.load("transcriber", name).transcribe(samples, "en")
    heard = " ".join(segment.text for segment in found.segments)
    counts = count_errors(normalise(text, "en"), normalise(heard, "en"))
    assert counts.errors / counts.n_reference <= most
    words = [word for segment in found.segments for word in segment.words]
    starts = [word.start_s for word in words if word.start_s is not None]
    assert len(starts) == len(words) and starts == sorted(starts)
    assert starts[0] >= 0.0 and (words[-1].end_s or 0.0) <= samples.size / SAMPLE_RATE_HZ
    assert found.speech


@pytest.mark.engine
@needs_weights
@needs_data
def test_the_language_is_found_and_french_is_recognised() -> None:
    transcriber, counts = engines.load("transcriber", "whisper-base"), []
    for path in sorted((DATA / "fleurs_en_fr").glob("fleurs-fr-*.ogg"))[:3]:
        recording = read_audio(path)
        samples = resample(recording.samples[0], recording.sample_rate_hz)
        found = transcriber.transcribe(samples, None)
        assert found.language == "fr"
        heard = " ".join(segment.text for segment in found.segments)
        text = path.with_suffix(".txt").read_text(encoding="utf-8")
        counts.append(count_errors(normalise(text, "fr"), normalise(heard, "fr")))
    # Read news sentences full of names: Whisper base makes about three errors in ten words.
    assert pooled_error_rate(counts) <= 0.45


@pytest.mark.engine
@needs_weights
@pytest.mark.parametrize("level", [0.0, 0.001])
def test_a_recording_without_speech_gives_no_words(level: float) -> None:
    samples = np.random.default_rng(7).normal(0, level or 1e-9, 48_000).astype(np.float32)
    found = engines.load("transcriber", "whisper-base").transcribe(samples, None)
    assert (found.segments, found.speech, found.language) == ((), (), "und")


@pytest.mark.engine
@needs_weights
def test_the_english_model_refuses_another_language() -> None:
    samples = np.zeros(16_000, dtype=np.float32)
    with pytest.raises(ItemError, match="English only, asked for 'fr'"):
        engines.load("transcriber", "whisper-tiny.en").transcribe(samples, "fr")


@pytest.mark.engine
@needs_weights
@needs_data
def test_an_interface_without_word_times_hears_as_well_and_times_nothing() -> None:
    samples, text = librispeech("1688", 2)
    found = engines.load("transcriber", "whisper-base-segments").transcribe(samples, "en")
    assert found.segments and not any(segment.words for segment in found.segments)
    words = read_words(found, samples.size / SAMPLE_RATE_HZ)
    assert words and not any(word.timed for word in words)
    heard = normalise(" ".join(word.text for word in words), "en")
    counts = count_errors(normalise(text, "en"), heard)
    assert counts.errors / counts.n_reference <= 0.12
