"""The embedded detector on small conversations, in three casings, and on real transcripts."""

from collections.abc import Sequence

import pytest

from aegis import engines
from aegis.engines import TurnText
from aegis.errors import EngineUnavailable
from aegis.tables import PROJECT

pytestmark = pytest.mark.engine
REAL = PROJECT.parent / "shared" / "data"


def found(turns: Sequence[str], language: str = "en") -> list[tuple[int, str, str]]:
    """(turn, category, text) of all mentions; speakers alternate."""
    detector = engines.load("detector", "rules")
    given = [TurnText(str(k), "AB"[k % 2], text) for k, text in enumerate(turns)]
    mentions = detector.detect(given, language)
    return [
        (int(m.turn_id), m.category, turns[int(m.turn_id)][m.char_start : m.char_end])
        for m in mentions
    ]


ENGLISH = [
    "Hi, I'm Doctor Patel. Can I have your date of birth?",
    "Oh three, oh five, sixty two.",
    "And your phone number?",
    "Oh seven seven double zero, nine hundred",
    "Yes, go on.",
    "one two three.",
    "Your record number is A4471-22, and your pressure is one twenty over eighty.",
    "I live at 14 Larch Close in Harrogate. My email is j dot smith at gmail dot com. I'm 92.",
]
ENGLISH_GOLD = [
    (0, "NAME", "Patel"),
    (1, "DATE", "Oh three, oh five, sixty two"),
    (3, "PHONE", "Oh seven seven double zero, nine hundred"),
    (5, "PHONE", "one two three"),
    (6, "MRN", "A4471-22"),
    (7, "LOCATION", "14 Larch Close"),
    (7, "LOCATION", "Harrogate"),
    (7, "EMAIL", "j dot smith at gmail dot com"),
    (7, "AGE", "92"),
]


def test_english_spoken_forms_with_context() -> None:
    assert found(ENGLISH) == ENGLISH_GOLD


@pytest.mark.parametrize("case", [str.lower, str.upper])
def test_case_does_not_matter_here(case) -> None:  # type: ignore[no-untyped-def]
    expected = [(turn, category, case(text)) for turn, category, text in ENGLISH_GOLD]
    assert found([case(text) for text in ENGLISH]) == expected


def test_french_spoken_forms_with_context() -> None:
    turns = [
        "Bonjour Madame Petit, votre date de naissance ?",
        "Le trois mai mille neuf cent soixante-deux, je m'appelle Amélie Petit,"
        " 12 rue des Lilas à Tours.",
        "Votre numéro de téléphone ?",
        "C'est le zéro six, douze, trente-quatre, cinquante-six, soixante-dix-huit."
        " J'ai quatre-vingt-douze ans.",
        "La tension est à douze sur huit, deux comprimés pendant deux semaines.",
    ]
    assert found(turns, "fr") == [
        (0, "NAME", "Petit"),
        (1, "DATE", "trois mai mille neuf cent soixante-deux"),
        (1, "NAME", "Amélie Petit"),
        (1, "LOCATION", "12 rue des Lilas"),
        (1, "LOCATION", "Tours"),
        (3, "PHONE", "zéro six, douze, trente-quatre, cinquante-six, soixante-dix-huit"),
        (3, "AGE", "quatre-vingt-douze"),
    ]


def test_clinical_words_stay() -> None:
    turns = [
        "She has Parkinson's and Lyme disease, and Addison's, for two weeks, aged 72.",
        "Take 500 milligrams twice a day since 2019, the pressure is 120 over 80.",
        "Come back on Monday.",
        "I may feel better in the summer, I hope it will.",
    ]
    assert found(turns) == []


def test_names_that_are_words_and_every_occurrence() -> None:
    turns = [
        "Your name?",
        "Doris.",
        "Doris, OK. So Doris, this is Dr Parkinson.",
        "Thanks, he knows my Parkinson's.",
    ]
    names = [(turn, text) for turn, category, text in found(turns) if category == "NAME"]
    assert names == [(1, "Doris"), (2, "Doris"), (2, "Doris"), (2, "Parkinson")]


def test_decomposed_and_curly_text_keeps_its_offsets() -> None:
    turns = ["Bonjour, je m’appelle Ame\u0301lie Dubois."]
    assert found(turns, "fr") == [(0, "NAME", "Ame\u0301lie Dubois")]


def test_same_input_same_mentions() -> None:
    assert found(ENGLISH) == found(ENGLISH)


def test_no_turns_and_empty_turns() -> None:
    assert found([]) == []
    assert found(["", "  ", "..."]) == []


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(EngineUnavailable, match="en and fr"):
        found(["Hallo"], "de")


@pytest.mark.skipif(not REAL.exists(), reason="the real transcripts are not at hand")
def test_few_spans_on_real_consultations() -> None:
    """These consultations hold almost no identifiers: at most one mention in 1,000 words."""
    from aegis.readers import read_fareez

    files = sorted((REAL / "fareez_transcripts" / "MedData" / "Clean Transcripts").glob("*.txt"))[
        :12
    ]
    words = spans = 0
    for file in files:
        turns = [utterance.text for utterance in read_fareez(file)]
        words += sum(len(text.split()) for text in turns)
        spans += len(found(turns))
    assert words > 5000 and spans <= words / 1000
