"""Attribution of words to speakers, and the turns that are built from them."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aegis.errors import ItemError
from aegis.turns import (
    Stretch,
    attribute,
    build_turns,
    check_stretches,
    overlap_seconds,
    rename_speakers,
    snap_changes,
)
from aegis.words import HeardWord


def word(
    text: str, start: float | None, end: float | None, speaker: str | None = None
) -> HeardWord:
    return HeardWord(text, start, end, 0.9, speaker=speaker)


def run_of(text: str, start: float = 0.0, speaker: str | None = None) -> list[HeardWord]:
    """Words of 0.3 s with pauses of 0.1 s."""
    return [
        word(token, start + 0.4 * k, start + 0.4 * k + 0.3, speaker)
        for k, token in enumerate(text.split())
    ]


def speakers(words: list[HeardWord]) -> str:
    return "".join(w.speaker or "-" for w in words)


# -- stretches ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (Stretch(3.0, 3.0, "A"), "stretch 2 .* no positive length"),
        (Stretch(4.0, 3.0, "A"), "stretch 2 .* no positive length"),
        (Stretch(-1.0, 3.0, "B"), "stretch 2 .* outside the recording"),
        (Stretch(9.0, 11.0, "B"), "stretch 2 .* outside the recording"),
        (Stretch(0.5, 1.5, "A"), "stretch 2 .* inside another stretch"),
    ],
)
def test_impossible_stretches_are_refused_with_their_number(second: Stretch, message: str) -> None:
    with pytest.raises(ItemError, match=message):
        check_stretches([Stretch(0.0, 2.0, "A"), second], 10.0)


def test_an_end_just_after_the_file_is_clamped_and_overlap_of_two_speakers_stays() -> None:
    given_turns = [Stretch(0.0, 5.0, "A"), Stretch(1.0, 10.05, "B")]
    checked = check_stretches(given_turns, 10.0)
    assert checked == [Stretch(0.0, 5.0, "A"), Stretch(1.0, 10.0, "B")]
    assert overlap_seconds(checked) == pytest.approx(4.0)


# -- attribution -------------------------------------------------------------------------


def test_a_segment_across_a_change_is_split_by_words() -> None:
    words = run_of("how are you fine thanks")
    stretches = [Stretch(0.0, 1.15, "A"), Stretch(1.15, 2.5, "B")]
    assert speakers(attribute(words, stretches)) == "AAABB"


def test_in_full_overlap_the_speaker_goes_on() -> None:
    words = run_of("one two three four")
    stretches = [Stretch(0.0, 1.15, "A"), Stretch(0.35, 2.0, "B")]
    assert speakers(attribute(words, stretches)) == "AAAB"


def test_a_word_outside_goes_to_the_nearest_or_stays_unknown() -> None:
    words = [word("near", 2.5, 2.8), word("far", 8.0, 8.3)]
    found = attribute(words, [Stretch(0.0, 2.0, "A")], reach_s=1.0)
    assert speakers(found) == "A-"


def test_untimed_words_follow_the_word_before_and_at_the_start_the_word_after() -> None:
    words = [word("a", None, None), *run_of("b c", 1.0), word("d", None, None)]
    assert speakers(attribute(words, [Stretch(0.9, 3.0, "B")])) == "BBBB"


def test_words_of_an_untimed_segment_go_with_who_speaks_most_of_it() -> None:
    stretches = [Stretch(0.0, 2.0, "A"), Stretch(2.0, 5.0, "B")]
    held = [(text, (a, b)) for text, a, b in [("x", 0.0, 2.5), ("y", 1.5, 4.0), ("z", 9.0, 9.5)]]
    words = [HeardWord(text, None, None, None, within=within) for text, within in held]
    assert speakers(snap_changes(attribute(words, stretches))) == "AB-"


@pytest.mark.parametrize(
    ("given_speakers", "wanted"),
    [
        ("AAABBB", "AAABBB"),  # already at the end of the sentence
        ("AABBBB", "AAABBB"),  # one word too early
        ("AAAABB", "AAABBB"),  # one word too late
        ("ABBBBB", "AAABBB"),  # two words too early
    ],
)
def test_a_change_moves_to_the_end_of_a_sentence_nearby(given_speakers: str, wanted: str) -> None:
    words = run_of("how are you? fine thanks doctor.")
    heard = [word(w.text, *w.span(), s) for w, s in zip(words, given_speakers, strict=True)]
    assert speakers(snap_changes(heard)) == wanted


def test_a_title_is_no_sentence_end() -> None:
    words = run_of("thank you Dr. Smith I")
    heard = [word(w.text, *w.span(), s) for w, s in zip(words, "AAAAB", strict=True)]
    assert speakers(snap_changes(heard)) == "AAAAB"


def test_a_change_without_a_sentence_end_nearby_stays() -> None:
    words = run_of("one two three four five six seven. eight")
    heard = [word(w.text, *w.span(), s) for w, s in zip(words, "AABBBBBB", strict=True)]
    assert speakers(snap_changes(heard)) == "AABBBBBB"


# -- turns -------------------------------------------------------------------------------


def test_turns_end_at_a_change_and_at_a_long_pause() -> None:
    words = [*run_of("a b", 0.5, "A"), *run_of("c d", 1.5, "B"), *run_of("e", 6.0, "B")]
    turns = build_turns(words, [], [], 10.0)
    assert [(turn.speaker, turn.words) for turn in turns] == [
        ("A", (0, 1)),
        ("B", (2, 3)),
        ("B", (4,)),
    ]


def test_bounds_keep_a_margin_and_stop_halfway_to_the_neighbour() -> None:
    words = [word("a", 1.0, 1.5, "A"), word("b", 1.7, 2.0, "B")]
    first, second = build_turns(words, [], [], 2.1, margin_s=0.25)
    assert (first.start_s, first.end_s) == pytest.approx((0.75, 1.6))
    assert (second.start_s, second.end_s) == pytest.approx((1.6, 2.1))


def test_bounds_reach_the_edge_of_the_speakers_stretch_but_not_far() -> None:
    words = [word("a", 3.0, 3.5, "A")]
    [turn] = build_turns(words, [Stretch(2.6, 8.0, "A")], [(2.9, 3.9)], 10.0)
    assert (turn.start_s, turn.end_s) == pytest.approx((2.6, 3.9))


def test_long_turns_are_divided_at_sentence_ends() -> None:
    text = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen. "
    turns = build_turns(run_of(text * 3, 0.0, "A"), [], [], 20.0, longest_s=11.0)
    assert (
        [len(turn.words) for turn in turns] == [14, 28]
        or [len(turn.words) for turn in turns] == [28, 14]
        or [len(turn.words) for turn in turns] == [14, 14, 14]
    )
    assert all(turn.end_s - turn.start_s <= 11.5 for turn in turns)


def test_words_of_unknown_speaker_are_in_no_turn() -> None:
    assert build_turns(run_of("who is it", 0.0, None), [], [], 5.0) == []
    assert build_turns([], [], [], 5.0) == []


def test_a_turn_of_untimed_words_only_is_not_made() -> None:
    assert build_turns([word("x", None, None, "A")], [], [], 5.0) == []


def test_names_follow_first_appearance() -> None:
    words = [*run_of("x", 0.0, "7"), *run_of("y", 2.0, "2")]
    turns = build_turns(words, [], [], 5.0)
    stretches = [Stretch(0.0, 0.1, "9")]
    assert rename_speakers(turns, stretches) == {"7": "S1", "2": "S2", "9": "S3"}


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(0.0, 3.0), st.floats(0.05, 1.0), st.sampled_from("AB"), st.booleans()),
        max_size=40,
    )
)
def test_turns_are_apart_hold_their_words_and_lose_none(
    steps: list[tuple[float, float, str, bool]],
) -> None:
    clock, words = 0.0, []
    for gap, length, speaker, timed in steps:
        start, end = clock + gap, clock + gap + length
        words.append(word("w.", start, end, speaker) if timed else word("w", None, None, speaker))
        clock = end if timed else clock
    duration = clock + 0.5
    turns = build_turns(words, [], [], duration)
    for turn in turns:
        for k in turn.words:
            if words[k].timed:
                start, end = words[k].span()
                assert turn.start_s <= start + 1e-9 and end <= turn.end_s + 1e-9
            assert words[k].speaker == turn.speaker
    assert all(a.end_s <= b.start_s + 1e-9 for a, b in pairwise(turns))
    assert all(0 <= turn.start_s < turn.end_s <= duration for turn in turns)
    held = [k for turn in turns for k in turn.words]
    assert sorted(held) == sorted(set(held))
    assert {k for k, w in enumerate(words) if w.timed} <= set(held)
