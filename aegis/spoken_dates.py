"""Dates and times of day, said in any order, become one value.

Unit: the tokens of one text, whose numbers are read (:mod:`aegis.spoken_numbers`).

Functions: :func:`read_dates`, :func:`read_times`.
"""

from __future__ import annotations

import re

from aegis.spoken_tokens import UNITS, Item, full_year, months


def _is_day(item: Item) -> bool:
    return item.kind in ("number", "ordinal") and 1 <= int(item.text) <= 31 and len(item.text) <= 2


def read_dates(items: list[Item], language: str) -> list[Item]:
    """Day, month and year in any order and form become one value; ordinals left over are words."""
    names, out, i = months(language), [], 0
    while i < len(items):
        found = _day_month(items, i, names, language) or _month_day(items, i, names, language)
        if found:
            out.append(Item("value", found[0]))
            i = found[1]
        else:
            item = items[i]
            out.append(Item("word", item.raw) if item.kind == "ordinal" else item)
            i += 1
    return out


def _day_month(
    items: list[Item], i: int, names: dict[str, int], language: str
) -> tuple[str, int] | None:
    if not _is_day(items[i]):
        return None
    j = i + 1
    if j < len(items) and items[j].text in ("of", "-"):
        j += 1
    if j >= len(items) or items[j].text not in names:
        return None
    year, after = _year(items, j + 1)
    return f"{year or 'xx'}-{names[items[j].text]:02d}-{int(items[i].text):02d}", after


def _month_day(
    items: list[Item], i: int, names: dict[str, int], language: str
) -> tuple[str, int] | None:
    if items[i].text not in names or items[i].kind != "word":
        return None
    month, j = names[items[i].text], i + 1
    while j < len(items) and items[j].text in (".", "the", "of", ","):
        j += 1
    year, after = _year(items, j, short=False)
    if year:
        return f"{year}-{month:02d}", after
    if language == "fr" or j >= len(items) or not _is_day(items[j]):
        return None
    unit = j + 1 < len(items) and items[j + 1].text in UNITS and items[j].kind == "number"
    if unit:  # "you may 3 times"
        return None
    year, after = _year(items, j + 1)
    return f"{year or 'xx'}-{month:02d}-{int(items[j].text):02d}", after


def _year(items: list[Item], i: int, short: bool = True) -> tuple[str, int]:
    """A year from item ``i``: ``1962``, ``19 62``, ``20 0 5``; ``62`` after day and month."""
    before, j = i, i
    while j < len(items) and items[j].text in (",", ".", "-", "in", "of", "'", "'s"):
        j += 1
    numbers = [x.text for x in items[j : j + 3] if x.kind == "number"]
    gap = [x.kind for x in items[j : j + 3]]
    if not numbers or gap[0] != "number":
        return "", before
    if re.fullmatch(r"1[89]\d\d|20\d\d", numbers[0]):
        return numbers[0], j + 1
    follows = len(gap) > 1 and gap[1] == "number" and len(numbers) > 1
    if numbers[0] in ("18", "19", "20") and follows:
        if len(numbers[1]) == 2:
            return numbers[0] + numbers[1], j + 2
        if numbers[1] == "0" and len(numbers) == 3 and len(numbers[2]) == 1:
            return f"{numbers[0]}0{numbers[2]}", j + 3
    unit = j + 1 < len(items) and items[j + 1].text in UNITS
    if short and re.fullmatch(r"\d\d", numbers[0]) and not follows and not unit:
        return full_year(numbers[0]), j + 1
    return "", before


def read_times(items: list[Item], language: str) -> list[Item]:
    """Times of day: ``3:30 pm``, ``three thirty p m``, ``quinze heures trente``."""
    out: list[Item] = []
    i = 0
    while i < len(items):
        found = _time(items, i, language)
        if found:
            out.append(Item("value", found[0]))
            i = found[1]
        else:
            out.append(items[i])
            i += 1
    return out


def _time(items: list[Item], i: int, language: str) -> tuple[str, int] | None:
    texts = [x.text for x in items[i : i + 6]] + [""] * 6
    item = items[i]
    if texts[:2] == ["half", "past"] and i + 2 < len(items) and _hour(items[i + 2]):
        return _half_day(int(texts[2]), "30", items, i + 3)
    if item.kind == "clock":
        hour, minute = item.text.split(":")
        return _half_day(int(hour), minute, items, i + 1)
    if not _hour(item):
        return None
    if language == "fr" and texts[1] in ("heure", "heures"):
        minute = texts[2] if i + 2 < len(items) and re.fullmatch(r"[0-5]\d", texts[2]) else ""
        if texts[2:4] == ["et", "demie"]:
            return f"{int(item.text):02d}:30", i + 4
        return (f"{int(item.text):02d}:{minute}", i + 3) if minute else None
    j, minute = i + 1, "00"
    if j < len(items) and items[j].kind == "number" and re.fullmatch(r"[0-5]\d", items[j].text):
        j, minute = j + 1, items[j].text
    if j < len(items) and items[j].text in ("o'", "o'clock"):
        j += 2 if items[j].text == "o'" else 1
        return _half_day(int(item.text), minute, items, j)
    return _half_day(int(item.text), minute, items, j, needed=True)


def _hour(item: Item) -> bool:
    return item.kind == "number" and len(item.text) <= 2 and int(item.text) <= 24


def _half_day(
    hour: int, minute: str, items: list[Item], j: int, needed: bool = False
) -> tuple[str, int] | None:
    texts = [x.text for x in items[j : j + 4] if x.text != "."]
    half = texts[0] if texts and texts[0] in ("am", "pm") else "".join(texts[:2])
    if half in ("am", "pm") and 1 <= hour <= 12:
        marks = sum(x.text == "." for x in items[j : j + 4])
        after = j + (1 if texts[0] in ("am", "pm") else 2 + min(marks, 2))
        return f"{hour % 12 + (12 if half == 'pm' else 0):02d}:{minute}", min(after, len(items))
    return None if needed else (f"{hour:02d}:{minute}", j)
