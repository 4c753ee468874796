"""Validators of recognised words: impossible times, loops, text without speech."""

from __future__ import annotations

import pytest

from aegis.engines import Segment, Transcript, Word
from aegis.words import (
    covered_seconds,
    fit_to_speech,
    flag_hallucinations,
    read_words,
    repeated_words,
)


def transcript(*segments: Segment, speech: tuple[tuple[float, float], ...] = ()) -> Transcript:
    return Transcript("en", 1.0, segments, speech)


def segment(start: float, end: float, *words: tuple[str, float | None, float | None]) -> Segment:
    made = tuple(Word(text, a, b, 0.9) for text, a, b in words)
    return Segment(start, end, " ".join(word.text for word in made), made)


@pytest.mark.parametrize(
    ("times", "timed"),
    [
        ((1.0, 1.4), True),
        ((1.0, 1.0), False),  # no length
        ((1.4, 1.0), False),  # reversed
        ((None, 1.0), False),
        ((0.2, 0.8), False),  # before its segment
        ((1.9, 2.6), False),  # after its segment
        ((float("nan"), 1.0), False),
    ],
)
def test_impossible_times_make_a_word_untimed(
    times: tuple[float | None, float | None], timed: bool
) -> None:
    found = read_words(transcript(segment(1.0, 2.0, ("word", *times))), 10.0)
    assert [word.timed for word in found] == [timed]
    assert found[0].text == "word"


def test_a_word_before_its_predecessor_is_untimed() -> None:
    both = segment(0.0, 3.0, ("late", 2.0, 2.4), ("early", 1.0, 1.4), ("next", 2.5, 2.9))
    assert [word.timed for word in read_words(transcript(both), 10.0)] == [True, False, True]


def test_times_just_after_the_end_are_clamped_and_later_ones_untimed() -> None:
    both = segment(8.0, 10.5, ("a", 9.0, 9.5), ("b", 9.6, 10.05), ("c", 10.2, 10.5))
    found = read_words(transcript(both), 10.0)
    assert [(word.start_s, word.end_s) for word in found] == [
        (9.0, 9.5),
        (9.6, 10.0),
        (None, None),
    ]


def test_a_segment_without_word_times_gives_untimed_words() -> None:
    found = read_words(transcript(Segment(0.0, 1.0, "two words")), 10.0)
    assert [(word.text, word.timed) for word in found] == [("two", False), ("words", False)]
    assert {word.place for word in found} == {(0.0, 1.0)}
    # Words of a segment that times some of them are placed by their order alone.
    broken = Segment(0.0, 1.0, "a b", (Word("a", 0.0, 0.5, 0.9), Word("b", None, None, 0.9)))
    places = [word.place for word in read_words(transcript(broken), 10.0)]
    assert places == [(0.0, 0.5), None]


def test_a_word_that_was_stretched_over_a_pause_is_cut_to_the_speech() -> None:
    # 0.08 s of edge on both sides of the voice activity.
    assert fit_to_speech((0.0, 1.2), [(1.0, 3.0)]) == pytest.approx((0.92, 1.2))
    assert fit_to_speech((2.8, 4.0), [(1.0, 3.0), (3.9, 5.0)]) == pytest.approx((2.8, 3.08))
    assert fit_to_speech((1.5, 1.9), [(1.0, 3.0)]) == (1.5, 1.9)
    assert fit_to_speech((7.0, 7.5), [(1.0, 3.0)]) == (7.0, 7.5)


@pytest.mark.parametrize(
    ("text", "repeats"),
    [
        ("I'm sorry. " * 6, set(range(2, 12))),
        ("no no no no I said", set()),
        ("0 0 0 0 0 0 0 0 0 0", set()),
        ("no " * 12, set(range(1, 12))),
        ("take one a day take one a day and that is it", set()),
    ],
)
def test_loops_are_found_but_not_emphasis_or_spoken_digits(text: str, repeats: set[int]) -> None:
    assert repeated_words(text.split()) == repeats


def test_a_loop_with_high_confidence_is_flagged_but_kept() -> None:
    words = [("thank", 0.3 * k, 0.3 * k + 0.1) for k in range(10)]
    found = read_words(transcript(segment(0, 3, *words), speech=((0.0, 3.0),)), 10.0)
    assert len(found) == 10
    assert [word.flagged for word in found] == [False] + [True] * 9


def test_a_loop_over_many_segments_is_found() -> None:
    segments = [Segment(3.0 * k, 3.0 * k + 2, "Thank you.") for k in range(5)]
    flags = flag_hallucinations(segments, [(0.0, 15.0)])
    assert flags == [frozenset(), *[frozenset({0, 1})] * 4]


def test_text_faster_than_speech_or_without_speech_is_flagged() -> None:
    fast = Segment(0.0, 1.0, "x" * 40)
    brief = Segment(0.0, 0.2, "x" * 10)  # too short to judge
    silent = Segment(5.0, 7.0, "thank you for watching")
    speech = [(0.0, 1.0), (6.8, 7.0)]
    flags = flag_hallucinations([fast, brief, silent], speech)
    assert flags == [frozenset({0}), frozenset(), frozenset({0, 1, 2, 3})]


def test_covered_seconds_counts_overlaps_once() -> None:
    assert covered_seconds([(0, 2), (1, 3)], [(0.5, 2.5), (2.0, 4.0)]) == pytest.approx(2.5)
    assert covered_seconds([], [(0, 1)]) == 0.0
