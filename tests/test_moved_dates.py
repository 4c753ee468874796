"""Dates moved by days keep the form in which they were said."""

from __future__ import annotations

import pytest

from aegis.moved_dates import moved_date


@pytest.mark.parametrize(
    ("original", "language", "days", "moved"),
    [  # worked out on a calendar of 2001 where no year is said
        ("third of May", "en", 16, "nineteenth of May"),
        ("fifth to the ninth of June", "en", -30, "sixth to the tenth of May"),
        ("5th to the 9th of October 1987", "en", -39, "27th to the 31st of August 1987"),
        ("28th to the 3rd of May", "en", 16, "14th to the 19th of May"),
        ("28th to the 3rd of May", "en", -7, "21st to the 26th of April"),
        ("20th to the 25th of May", "en", 9, "29th of May to the 3rd of June"),
        ("5 au 9 octobre", "fr", -39, "27 au 31 août"),
        ("premier au cinq mars", "fr", -3, "vingt six février au deux mars"),
        ("vingt et un et le vingt-trois juin", "fr", 10, "premier et le trois juillet"),
        ("Friday the 5th", "en", 16, "Friday the 21st"),
        ("fifth", "en", 16, "twenty first"),
        ("25", "fr", 10, "7"),
        ("third of the 10th", "en", 30, "second of the 11th"),
        ("third of the 20th", "en", 30, None),
        ("tomorrow", "en", 30, None),
    ],
)
def test_a_date_moves_in_its_own_form(
    original: str, language: str, days: int, moved: str | None
) -> None:
    assert moved_date(original, language, days) == moved
