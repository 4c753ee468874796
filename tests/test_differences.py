"""The transcript difference, against alignments written out by hand."""

import pytest

from aegis.differences import Piece, Span, as_text, difference, planned_words

SOURCE = "Good morning Ruth Webber, take five milligrams."
SPANS = [Span(13, 24, "Ruth Webber", "Vera Holm")]


def kinds(pieces):
    return [(piece.kind, piece.text) for piece in pieces]


def test_planned_words_mark_the_replacement_only():
    words = planned_words(SOURCE, SPANS)
    assert " ".join(w.text for w in words) == "Good morning Vera Holm, take five milligrams."
    assert [w.text for w in words if w.kind == "planned"] == ["Vera", "Holm,"]


def test_two_spans_shift_each_other():
    spans = [Span(0, 3, "Ann", "Beatrice"), Span(8, 11, "Ann", "Beatrice")]
    words = planned_words("Ann and Ann go", spans)
    assert kinds(words) == [
        ("planned", "Beatrice"), ("same", "and"), ("planned", "Beatrice"), ("same", "go"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("heard", "expected"),
    [
        (
            "good morning Vera Holm take five milligrams",
            [
                ("same", "good morning"),
                ("realised", "Vera Holm"),
                ("same", "take five milligrams"),
            ],
        ),
        (
            "Good morning Ruth Webber, take nine milligrams.",
            [
                ("same", "Good morning"),
                ("missing", "Vera Holm,"),
                ("retained", "Ruth Webber,"),
                ("same", "take"),
                ("missing", "five"),
                ("changed", "nine"),
                ("same", "milligrams."),
            ],
        ),
        ("", [("missing", "Good morning Vera Holm, take five milligrams.")]),
    ],
)
def test_difference(heard, expected):
    pieces = difference(planned_words(SOURCE, SPANS), heard, ["Ruth Webber"])
    assert kinds(pieces) == expected


def test_part_of_an_original_is_a_change_and_not_retained():
    pieces = difference(planned_words(SOURCE, SPANS), "Good morning Ruth take", ["Ruth Webber"])
    assert ("changed", "Ruth") in kinds(pieces)


def test_plain_text_marks():
    pieces = [Piece("same", "a"), Piece("realised", "b"), Piece("retained", "c")]
    assert as_text([*pieces, Piece("changed", "d"), Piece("missing", "e")]) == "a <b> !c! ~d~ -e-"
