"""Spoken and written forms of one value meet in a canonical string.

Unit: one stretch of text (a mention, a turn). Two texts that say the same thing
have the same canonical string: ``"third of May nineteen sixty two"`` and ``"3rd
of May, 1962"``; ``"oh seven seven double zero"`` and ``"07700"``; ``"zéro six,
douze"`` and ``"06 12"``; ``"j dot doe at mail dot com"`` and ``"j.doe@mail.com"``.
The transcript itself is never rewritten: canonical strings are for matching.

Conventions: languages are ``en`` and ``fr``; tokens are parted by one space; dates
are ``YYYY-MM-DD``, ``xx-MM-DD`` without a year, ``YYYY-MM`` without a day; times are
``HH:MM``; a blood pressure is ``120/80``; a dose keeps its value (``0.25 mg``).

The steps are in ``spoken_tokens``, ``spoken_numbers``, ``spoken_dates``, ``spoken_joins``.

Functions: :func:`canonical`, :func:`heard`, :func:`written_value`.
"""

from __future__ import annotations

import re
from functools import lru_cache

from aegis.spoken_dates import read_dates, read_times
from aegis.spoken_joins import merge_groups, read_addresses
from aegis.spoken_numbers import join_spelling, read_decimals, read_numbers
from aegis.spoken_tokens import cut_tokens, plain


@lru_cache(maxsize=65536)
def canonical(text: str, language: str) -> str:
    """The canonical string of a text in ``en`` or ``fr`` (see the module docstring)."""
    items = cut_tokens(plain(text), language)
    for step in (
        join_spelling,
        read_numbers,
        read_decimals,
        read_dates,
        read_times,
        merge_groups,
        read_addresses,
    ):
        items = step(items, language)
    return " ".join(item.text for item in items if item.kind != "mark")


def heard(mention: str, text: str, language: str) -> bool:
    """Whether a mention's canonical value occurs in a text, at token boundaries.

    Identifiers (four digits, or two digits among six characters) and addresses with an
    ``@`` may also be grouped in another way: they are then compared without spaces.
    """
    wanted, found = canonical(mention, language), canonical(text, language)
    if not wanted:
        return False
    if f" {wanted} " in f" {found} ":
        return True
    compact = re.sub(r"[\s.,-]", "", wanted)
    digits = sum(c.isdigit() for c in compact)
    if digits < 4 and not (digits >= 2 and len(compact) >= 6) and "@" not in compact:
        return False
    return (
        re.search(rf"(?<!\d){re.escape(compact)}(?!\d)", re.sub(r"[\s.,-]", "", found)) is not None
    )


def written_value(text: str, language: str) -> str:
    """The value of a written date or time (``03/05/1962``, ``15h30``), as in :func:`canonical`."""
    return cut_tokens(plain(text), language)[0].text
