"""Dates moved by days, each in the form in which it was said or written.

Unit: one date. "third of May nineteen sixty two", "03/05/1962" and "3rd May" keep order,
marks, ordinals and the way the year is said; only day, month and year change. In a range
("the fifth to the ninth of October") both days move alike; a day whose month is not said
moves round a month of 28 days.

Functions: :func:`moved_date`, :func:`hyphen_like`.
"""

from __future__ import annotations

import datetime
import re
from functools import lru_cache

from aegis.canonical import canonical
from aegis.numbers import speakable
from aegis.spoken_tokens import MONTH_NAMES, months, plain

_DATE = re.compile(r"(\d{4}|xx)-(\d{2})(?:-(\d{2}))?")
"""Year (``xx`` where none is said), month and day of a canonical date."""
_TO = {
    "en": r"\s+(?:to|until|till|and|or|through)\s+(?:the\s+)?",
    "fr": r"\s+(?:au|et le|ou le|et(?=\s+\d))\s+",  # not the "et" of "vingt et un"
}


def hyphen_like(said: str, original: str) -> str:
    """Spoken tens get the hyphen that the original has."""
    return said.replace(" ", "-") if "-" in original and said.count(" ") in (1, 2, 3) else said


def moved_date(original: str, language: str, days: int) -> str | None:
    """A date moved by days in its own form; None where its value cannot be read."""
    value = canonical(original, language)
    match = _DATE.search(value)
    if not match:
        moved = _moved_month(original, language, days)
        return moved or _moved_day(original, language, days)
    between = re.search(_TO[language], original, re.I)
    if between and match[3]:
        return _moved_range(original, between, language, days)
    year = 2001 if match[1] == "xx" else int(match[1])
    try:
        before = datetime.date(year, int(match[2]), int(match[3] or 15))
    except ValueError:
        return None
    after = before + datetime.timedelta(days=days if match[3] else (31 if days > 0 else -31))
    if match[1] == "xx" and after.year != before.year:
        after = after.replace(year=before.year) if (after.month, after.day) != (2, 29) else after
    return _rewritten(original, before, after, language)


def _moved_month(original: str, language: str, days: int) -> str | None:
    names = months(language)
    word = plain(original)
    if word not in names:
        return None
    full = MONTH_NAMES[language].split()
    new = full[(names[word] - 1 + (1 if days > 0 else -1)) % 12]
    if len(word) == 3 and language == "en":
        new = new[:3]
    return new.capitalize() if original[:1].isupper() else new


def _moved_range(original: str, between: re.Match[str], language: str, days: int) -> str | None:
    """``5 au 9 octobre``: the first day moves with the last; its month is said if it differs."""
    first = _day_said(original[: between.start()], language)
    last = moved_date(original[between.end() :], language, days)
    end = _DATE.search(canonical(original[between.end() :], language))
    if first is None or last is None or end is None or not end[3]:
        return None
    year, month = 2001 if end[1] == "xx" else int(end[1]), int(end[2])
    if first > int(end[3]):  # "the 28th to the 3rd of May" began in April
        year, month = (year, month - 1) if month > 1 else (year - 1, 12)
    try:
        after = datetime.date(year, month, first) + datetime.timedelta(days=days)
    except ValueError:
        return None
    lead = _day_like(original[: between.start()], first, after.day, language)
    moved_end = _DATE.search(canonical(last, language))
    if moved_end and int(moved_end[2]) != after.month:
        name = MONTH_NAMES[language].split()[after.month - 1]
        lead += f" of {name.capitalize()}" if language == "en" else f" {name}"
    return lead + between.group() + last


def _moved_day(original: str, language: str, days: int) -> str | None:
    """``Friday the 5th``, ``the third of the tenth``: days without the name of a month."""
    of = re.search(r"\s+of\s+the\s+", original)
    lead, tail = (original[: of.start()], original[of.end() :]) if of else (original, "")
    day, month = _day_said(lead, language), _day_said(tail, language)
    if day is None:
        return None
    if of is None or month is None:
        return _day_like(original, day, (day - 1 + days) % 28 + 1, language)
    if month > 12:
        return None
    after = datetime.date(2001, month, min(day, 28)) + datetime.timedelta(days=days)
    return (
        _day_like(lead, day, after.day, language)
        + of.group()
        + _day_like(tail, month, after.month, language)
    )


@lru_cache(maxsize=2)
def _day_words(language: str) -> dict[str, int]:
    """Every word for a day of a month in a language: ``fifth``, ``twenty-first``, ``cinq``."""
    found = {"premier": 1} if language == "fr" else {}
    for day in range(1, 32):
        found[speakable(str(day), None, language).replace("-", " ")] = day
        if language == "en":
            ordinal = speakable(f"{day} of May", "DATE", language).removesuffix(" of May")
            found[ordinal.replace("-", " ")] = day
    return found


def _day_said(text: str, language: str) -> int | None:
    """The day that a text without a month ends in; None where it ends in none."""
    digits = re.search(r"(?<!\d)(\d{1,2})(?:st|nd|rd|th|er)?\s*$", text, re.I)
    if digits:
        return int(digits[1]) if 1 <= int(digits[1]) <= 31 else None
    said = plain(text).replace("-", " ").split()
    known = _day_words(language)
    return next((known[w] for n in (3, 2, 1) if (w := " ".join(said[-n:])) in known), None)


def _rewritten(
    original: str, before: datetime.date, after: datetime.date, language: str
) -> str | None:
    """The new date in the original's form: numeric in its order, or with a month's name."""
    numeric = re.fullmatch(r"(\d{1,4})([-/.])(\d{1,2})\2(\d{2,4})", original)
    if numeric:
        return _numeric(numeric, before, after)
    names = "|".join(sorted(months(language), key=len, reverse=True))
    match = re.search(rf"(?<!\w)({names})(?!\w)", original, re.I)
    if not match:
        return None
    lead, tail = original[: match.start()], original[match.end() :]
    month = _month_like(match[1], after.month, language)
    year_in_tail = re.search(
        r"\d{4}|'\d\d|\b(?:nineteen|twenty|two thousand|mille|deux mille|dix[- ]neuf)\b.*",
        tail,
        re.I,
    )
    day_in_lead = re.search(r"\w", lead) is not None
    if day_in_lead:
        lead = _day_like(lead, before.day, after.day, language)
        tail = _year_like(tail, before.year, after.year, language)
    elif year_in_tail and canonical(tail[: year_in_tail.start()], language) == "":
        tail = _year_like(tail, before.year, after.year, language)
    else:
        cut = year_in_tail.start() if year_in_tail else len(tail)
        rest = tail[cut:]
        if not year_in_tail:
            comma = tail.find(",", 1)
            cut = comma if comma > 0 else len(tail)
            rest = tail[cut:]
        tail = _day_like(tail[:cut], before.day, after.day, language) + _year_like(
            rest, before.year, after.year, language
        )
    return lead + month + tail


def _numeric(match: re.Match[str], before: datetime.date, after: datetime.date) -> str:
    first, mark, second, third = match.groups()
    if len(first) == 4:
        return mark.join(
            [str(after.year), f"{after.month:0{len(second)}d}", f"{after.day:0{len(third)}d}"]
        )
    year = str(after.year) if len(third) == 4 else f"{after.year % 100:02d}"
    month_first = int(first) == before.month and int(second) == before.day
    one, two = (after.month, after.day) if month_first else (after.day, after.month)
    width = [2 if len(x) == 2 else 1 for x in (first, second)]
    return mark.join([f"{one:0{width[0]}d}", f"{two:0{width[1]}d}", year])


def _month_like(word: str, month: int, language: str) -> str:
    name = MONTH_NAMES[language].split()[month - 1]
    if language == "en" and len(word) == 3 and word.casefold() != "may":
        name = name[:3]
    return name.capitalize() if word[:1].isupper() else name


def _day_like(text: str, old: int, new: int, language: str) -> str:
    """The day inside a text exchanged, in digits, ordinals or words as it was."""
    if language == "fr":
        text = re.sub(
            r"^(\s*)1er\b|^(\s*)premier\b",
            lambda m: (m[1] or m[2] or "") + ("1" if m[1] is not None and "1" in m[0] else "un"),
            text,
        )
    digits = re.search(r"\d{1,2}(st|nd|rd|th|er)?", text)
    if digits:
        suffix = (
            _suffix(new)
            if digits[1] and language == "en"
            else ("er" if language == "fr" and new == 1 else "")
        )
        width = 2 if digits.group()[0] == "0" else 1
        return text[: digits.start()] + f"{new:0{width}d}{suffix}" + text[digits.end() :]
    words = re.search(
        r"[^\W\d_](?:[\w-]|\s(?!of\b))*\w(?=\s|$|,)|[^\W\d_]+", text.replace("the ", "    ")
    )
    if not words:
        return text
    ordinal = language == "en" and re.search(r"(?:st|nd|rd|th)\b", words.group()) is not None
    month = "of May" if language == "en" else "mai"
    said = speakable(
        f"{new} {month}" if ordinal else str(new), "DATE" if ordinal else None, language
    )
    if ordinal:
        said = said.removesuffix(" of May")
    if language == "fr" and new == 1:
        said = "premier"
    return text[: words.start()] + hyphen_like(said, words.group()) + text[words.end() :]


def _suffix(day: int) -> str:
    return "th" if 10 <= day % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")


def _year_like(text: str, old: int, new: int, language: str) -> str:
    if old == new or not text.strip(" ,."):
        return text
    written = re.search(r"\d{4}", text)
    if written:
        return text[: written.start()] + str(new) + text[written.end() :]
    short = re.search(r"'?\d\d", text)
    if short:
        return (
            text[: short.start()]
            + short.group().replace(f"{old % 100:02d}", f"{new % 100:02d}")
            + text[short.end() :]
        )
    words = re.search(r"[^\W\d_].*[^\W\d_]", text, re.S)
    if not words:
        return text
    said = speakable(str(new), None, language)
    if "-" in words.group():
        said = re.sub(r"(\w+ty) (\w+)$", r"\1-\2", said)
    return text[: words.start()] + said + text[words.end() :]
