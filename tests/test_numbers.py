"""Golden values of canonical forms, and that speaking a value keeps it."""

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.canonical import canonical, heard
from aegis.numbers import speakable

GOLDEN = Path(__file__).parent / "golden"


def golden_rows() -> list[tuple[str, str, str]]:
    rows = []
    for language in ("en", "fr"):
        with (GOLDEN / f"numbers_{language}.csv").open(encoding="utf-8", newline="") as file:
            rows += [(language, row["text"], row["canonical"]) for row in csv.DictReader(file)]
    return rows


@pytest.mark.parametrize(("language", "text", "expected"), golden_rows())
def test_canonical_golden(language: str, text: str, expected: str) -> None:
    assert canonical(text, language) == expected


@pytest.mark.parametrize(("language", "text", "expected"), golden_rows())
def test_canonical_ignores_case_and_composition(language: str, text: str, expected: str) -> None:
    import unicodedata

    shouted = unicodedata.normalize("NFD", text.upper())
    assert canonical(shouted, language) == expected


@pytest.mark.parametrize(
    ("text", "category", "language", "expected"),
    [
        ("07709", "PHONE", "en", "oh seven seven zero nine"),
        ("06 12 34 56", "PHONE", "fr", "zéro six, douze, trente quatre, cinquante six"),
        ("3 May 1962", "DATE", "en", "third of May nineteen sixty two"),
        ("May 3, 1962", "DATE", "en", "May third, nineteen sixty two"),
        ("1er mai 1962", "DATE", "fr", "premier mai mille neuf cent soixante deux"),
        ("j.doe@mail.com", "EMAIL", "en", "j dot doe at mail dot com"),
        ("A4471-22", "MRN", "en", "A four four seven one, two two"),
        ("93", "AGE", "en", "ninety three"),
        ("93 ans", "AGE", "fr", "quatre vingt treize ans"),
        ("42 Elm Street", "LOCATION", "en", "forty two Elm Street"),
        ("192.168.1.10", "IP", "en", "one nine two dot one six eight dot one dot one zero"),
        ("0.25 mg at 3:30", None, "en", "zero point two five milligrams at three thirty"),
        ("Tension 12/8", None, "fr", "Tension douze sur huit"),
    ],
)  # fmt: skip
def test_speakable(text: str, category: str | None, language: str, expected: str) -> None:
    assert speakable(text, category, language) == expected


@given(st.text("0123456789", min_size=4, max_size=11))
def test_spoken_digits_come_back(digits: str) -> None:
    assert canonical(speakable(digits, "PHONE", "en"), "en") == digits
    assert canonical(speakable(digits, "PHONE", "fr"), "fr") == digits


@given(st.integers(1, 28), st.integers(1, 12), st.integers(1900, 2029))
def test_spoken_dates_come_back(day: int, month: int, year: int) -> None:
    value = f"{year}-{month:02d}-{day:02d}"
    for language in ("en", "fr"):
        assert canonical(speakable(value, "DATE", language), language) == value


@given(st.integers(0, 999_999))
def test_spoken_cardinals_come_back(value: int) -> None:
    from num2words import num2words

    for language in ("en", "fr"):
        assert canonical(str(num2words(value, lang=language)), language).replace(" ", "") == str(
            value
        )


def test_heard_at_token_boundaries_only() -> None:
    assert heard("Ann", "I saw Ann's scan", "en")
    assert not heard("Ann", "I saw Anna", "en")
    assert heard("oh seven seven double zero", "it is 07700.", "en")
    assert not heard("07700", "it is 077001", "en")
    assert heard("07700 900 123", "so 07700... 900123", "en")
    assert not heard("45", "it is 345", "en")
    assert heard("LK53 XBT", "my plate is L K five three X B T", "en")


@pytest.mark.parametrize("text", ["", "   ", "...", "—"])
def test_nothing_is_nothing(text: str) -> None:
    assert canonical(text, "en") == ""
    assert not heard(text, "some words", "en")
