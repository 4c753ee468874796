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


# --- kinds of mentions: (language, turns, expected (turn, category, text)) ---------------------

KINDS = {
    "a word as a name: called out, subject, several relatives": (
        "en",
        [
            "Grace, could you bring the chart? I say grace before meals.",
            "Heather is my neighbour. My brothers frank and Max may visit. It may rain.",
            "Hello, this is Will. Will you take the dose, Ivy?",
        ],
        [(0, "NAME", "Grace"), (1, "NAME", "Heather"), (1, "NAME", "frank"), (1, "NAME", "Max"),
         (2, "NAME", "Will"), (2, "NAME", "Ivy")],
    ),
    "French names that are words, after an elision too": (
        "fr",
        [
            "Bonjour, je suis madame blanc.",
            "Rose est née ici. C'est la sœur d'Olivia, ma voisine. Une rose rouge.",
        ],
        [(0, "NAME", "blanc"), (1, "NAME", "Rose"), (1, "NAME", "Olivia")],
    ),
    "a street name broken by a pause": (
        "en",
        ["We moved to Copper, Mill Road last year."],
        [(0, "LOCATION", "Copper, Mill Road")],
    ),
    "a street name without capitals or number": (
        "en",
        ["i live on copper mill road now and i walk a lot"],
        [(0, "LOCATION", "copper mill road")],
    ),
    "French street with number, heard in small letters": (
        "fr",
        ["Il habite douze impasses du lavoir, à Limoges."],
        [(0, "LOCATION", "douze impasses du lavoir"), (0, "LOCATION", "Limoges")],
    ),
    "a town that a pause follows a zip code": (
        "en",
        ["And the zip code?", "604-11, that's in Amber Springs."],
        [(1, "LOCATION", "604-11"), (1, "LOCATION", "Amber Springs")],
    ),
    "a code of letters and digits": (
        "en",
        ["The wristband says K-58-03, and L4-5 is fine."],
        [(0, "UNIQUE_ID", "K-58-03")],
    ),
    "a question heard without its mark": (
        "en",
        ["And the driving licence.", "77124K. Hello."],
        [(1, "LICENSE", "77124K")],
    ),
    "French telephone number in two turns": (
        "fr",
        ["Et votre portable.", "Attendez, 0712-45.", "Oui, ensuite.", "88-03, et voilà tout."],
        [(1, "PHONE", "0712-45"), (3, "PHONE", "88-03")],
    ),
    "both days of a range": (
        "fr",
        ["Elle était là du 3 au 8 juin."],
        [(0, "DATE", "3 au 8 juin")],
    ),
    "both days of an English range": (
        "en",
        ["I was away from the third to the ninth of June."],
        [(0, "DATE", "third to the ninth of June")],
    ),
    "the sex digit of a French social security number": (
        "fr",
        ["Votre numéro de sécurité sociale ?", "Un 58 03 69 0 0 817."],
        [(1, "SSN", "Un 58 03 69 0 0 817")],
    ),
    "a network address at the end of a sentence": (
        "en",
        ["How do I send the pump data?", "Type 198.51.100.7."],
        [(1, "IP", "198.51.100.7")],
    ),
    "a unit of a hospital": (
        "en",
        ["She was born at the St. Brendan maternity unit."],
        [(0, "LOCATION", "St. Brendan maternity unit")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_kind_of_mention(kind: str) -> None:
    language, turns, expected = KINDS[kind]
    assert found(turns, language) == expected


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        (
            ["johanna is fine", "hello, my name is johanna marlowe", "thank you, ms marlowe"],
            [(0, "NAME", "johanna"), (1, "NAME", "johanna marlowe"), (2, "NAME", "marlowe")],
        ),
        (
            ["Katie rang first.", "My name is Katherine Okonjo.", "Mrs Okonjo, or Okonju?"],
            [(0, "NAME", "Katie"), (1, "NAME", "Katherine Okonjo"), (2, "NAME", "Okonjo"),
             (2, "NAME", "Okonju")],
        ),
        (
            ["the clinic called ivy today", "my daughter ivy is nine", "thank you, ivy."],
            [(0, "NAME", "ivy"), (1, "NAME", "ivy"), (2, "NAME", "ivy")],
        ),
        (
            ["i was seen at amber hollow clinic", "the pain clinic and the walk-in clinic"],
            [(0, "LOCATION", "amber hollow clinic")],
        ),
    ],
)  # fmt: skip
def test_what_is_known_is_found_everywhere(
    turns: list[str], expected: list[tuple[int, str, str]]
) -> None:
    assert found(turns) == expected


@pytest.mark.parametrize(
    "text",
    [
        "I hope it will pass, and I may need a mark on the arm.",
        "So you're on 100, 1,000 milligrams a day.",
        "i have a b- a cuff at home and a se- surgery was planned",
        "Daisy chains in the hall, and roses in the garden.",
        "<INAUDIBLE_SPEECH/> and then the pain came back.",
    ],
)
def test_ordinary_words_and_broken_speech_stay(text: str) -> None:
    assert found(["How are you?", text]) == []


def test_french_ordinary_words_stay() -> None:
    assert (
        found(["Ça va ?", "La pierre est petite, et je vois une rose. Prenez 2 comprimés."], "fr")
        == []
    )
