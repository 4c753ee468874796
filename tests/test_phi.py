"""The contract: occurrences, protected terms, scores on hand-made tables."""

import pandas as pd
import pytest

from aegis.lexicon import is_drug, protected_spans
from aegis.phi import mask, occurrences, protected_touched, rate, score_detection, unlocated


@pytest.mark.parametrize(
    ("term", "text", "expected"),
    [
        ("Doris", "Doris. So Doris, what", [(0, 5), (10, 15)]),
        ("Ann", "Anna and Ann, not Joann", [(9, 12)]),
        ("Ann", "Ann's scan", [(0, 3)]),
        ("Amélie", "le dossier d'Amélie", [(13, 19)]),
        ("O'Neill", "Mr O’Neill", [(3, 10)]),
        ("Anna Smith", "ANNA  SMITH", [(0, 11)]),
        ("Jean", "Jean-Pierre et Jean", [(15, 19)]),
        ("", "anything", []),
    ],
)
def test_occurrences(term: str, text: str, expected: list[tuple[int, int]]) -> None:
    assert occurrences(term, text) == expected


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("He has Parkinson's and Addison's disease.", "en", ["Parkinson's", "Addison's"]),
        ("Dr Parkinson saw me.", "en", []),
        ("Hello Mr Murphy, Murphy's sign is negative.", "en", ["Murphy's sign"]),
        ("maladie de Parkinson", "fr", ["maladie de Parkinson"]),
        ("She has Lyme and takes lisinopril.", "en", ["Lyme", "lisinopril"]),
        ("I live in Glasgow.", "en", []),
    ],
)
def test_protected_spans(text: str, language: str, expected: list[str]) -> None:
    assert [text[a:b] for a, b in protected_spans(text, language)] == expected


def test_drug_stems_spare_names_and_words() -> None:
    assert is_drug("amoxicillin") and is_drug("Metropolol") and is_drug("candesartan")
    assert not any(is_drug(word) for word in ("machine", "Catherine", "medicine", "routine"))


def test_unlocated_compares_composed_text() -> None:
    assert not unlocated("Ame\u0301lie", "Am\u00e9lie", 0, 7)
    assert unlocated("Anna", "Ann", 0, 4)
    assert unlocated("Anna", "Anna", 4, 8)


def test_mask_keeps_length() -> None:
    assert mask("call Ann now", [(5, 8)]) == "call □□□ now"


def tables() -> dict[str, pd.DataFrame]:
    gold_turns = pd.DataFrame(
        {
            "recording_id": "d/a",
            "turn_index": [0, 1],
            "start_s": [0.0, 5.0],
            "end_s": [4.0, 9.0],
            "text": [
                "John Smith here, it's oh seven seven double zero.",
                "third of May nineteen sixty two, I was born in Harrogate.",
            ],
            "language": "en",
        }
    )
    gold = pd.DataFrame(
        [
            ("d/a", 0, 0, "John Smith", "NAME"),
            ("d/a", 0, 20, "oh seven seven double zero", "PHONE"),
            ("d/a", 1, 0, "third of May nineteen sixty two", "DATE"),
            ("d/a", 1, 40, "Harrogate", "LOCATION"),
        ],
        columns=["recording_id", "turn_index", "char_start", "text", "category"],
    )
    turns = pd.DataFrame(
        {
            "turn_id": ["t1", "t2"],
            "recording_id": "d/a",
            "start_s": [0.1, 5.1],
            "end_s": [4.1, 9.1],
            "text": ["John Smith here, 07700.", "Born 3rd of May 1962, in Harris Gate."],
            "language": "en",
        }
    )
    mentions = pd.DataFrame(
        [("t1", 0, 4, "NAME"), ("t1", 17, 22, "MRN"), ("t2", 5, 20, "DATE")],
        columns=["turn_id", "char_start", "char_end", "category"],
    )
    return {"mentions": mentions, "turns": turns, "gold_mentions": gold, "gold_turns": gold_turns}


def test_scores_count_partial_coverage_as_a_leak() -> None:
    scores = score_detection(**tables()).set_index("text")
    assert scores["heard"].to_dict() == {
        "John Smith": True,
        "oh seven seven double zero": True,
        "third of May nineteen sixty two": True,
        "Harrogate": False,
    }
    assert not scores.loc["John Smith", "covered"]
    assert scores.loc["oh seven seven double zero", "covered"]
    assert not scores.loc["oh seven seven double zero", "typed"]
    assert scores.loc["third of May nineteen sixty two", "typed"]
    found = rate(scores.reset_index(), "covered", among="heard")
    assert (found.numerator, found.denominator) == (2, 3)


def test_rate_of_nothing_is_undefined() -> None:
    scores = score_detection(**tables())
    assert rate(scores.iloc[:0], "covered").value is None


def test_protected_terms_touched() -> None:
    turns = pd.DataFrame(
        {"turn_id": ["t"], "text": ["Parkinson's and lisinopril"], "language": ["en"]}
    )
    mentions = pd.DataFrame({"turn_id": ["t"], "char_start": [0], "char_end": [9]})
    touched = protected_touched(mentions, turns)
    assert (touched.numerator, touched.denominator) == (1, 2)


def homograph(covered: list[tuple[int, int]]) -> bool:
    """Whether the name Hope counts as covered beside "I hope" with these spans covered."""
    script = "Hope is here. I hope so."
    times = {"recording_id": "d/b", "start_s": [0.0], "end_s": [4.0], "text": [script]}
    gold_turns = pd.DataFrame({**times, "turn_index": [0], "language": ["en"]})
    turns = pd.DataFrame({**times, "turn_id": ["t"], "language": ["en"]})
    gold = pd.DataFrame(
        [("d/b", 0, 0, "Hope", "NAME")],
        columns=["recording_id", "turn_index", "char_start", "text", "category"],
    )
    mentions = pd.DataFrame(
        [("t", a, b, "NAME") for a, b in covered],
        columns=["turn_id", "char_start", "char_end", "category"],
    )
    return bool(score_detection(mentions, turns, gold, gold_turns)["covered"].iloc[0])


def test_an_ordinary_use_of_a_name_that_is_a_word_is_no_leak() -> None:
    assert homograph([(0, 4)])
    assert homograph([(0, 4), (16, 20)])
    assert not homograph([])
