# ruff: noqa: E501
"""Numbers with what they count: doses, durations, frequencies, readings.

Unit: one run of canonical words. ``10 mg`` and ``0.01 g`` are the same dose; ``2 times a
day``, ``twice a day`` and ``twice daily`` the same frequency; ``3 days`` and ``3 months``
differ. A quantity's group is ``dose``, ``duration``, ``frequency``, ``reading`` (a pressure,
a bare number) or ``date``.

Functions: :func:`merge_quantities`. Data: :data:`WEIGHTS`, what a token counts in a match.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

WEIGHTS = {
    "drug": 3.0, "dose": 2.0, "symptom": 2.0, "test": 1.5, "site": 1.5, "duration": 1.5,
    "frequency": 1.5, "reading": 1.5, "date": 1.0, "side": 1.0, "word": 1.0, "family": 1.0,
    "staff": 0.5, "person": 0.1, "doubt": 0.2, "order": 0.5,
}  # fmt: skip

Item = tuple[int, int, str, str]
"""First word, number of words, group, value; an empty group is left to the caller."""

_MASS = {"g": 1000.0, "mg": 1.0, "mcg": 0.001, "kg": 1_000_000.0}
_VOLUME = {"ml": 1.0, "l": 1000.0, "litres": 1000.0, "litre": 1000.0}
_TIME = {
    "minute": "min", "minutes": "min", "hour": "h", "hours": "h", "day": "d", "days": "d", "week": "w",
    "weeks": "w", "month": "mo", "months": "mo", "year": "y", "years": "y", "heure": "h", "heures": "h",
    "jour": "d", "jours": "d", "semaine": "w", "semaines": "w", "mois": "mo", "an": "y", "ans": "y",
    "année": "y", "années": "y",
}  # fmt: skip
_COUNTED = {
    "tablet": "tablet", "tablets": "tablet", "pill": "tablet", "pills": "tablet", "capsule": "capsule",
    "capsules": "capsule", "puff": "puff", "puffs": "puff", "unit": "unit", "units": "unit", "drop": "drop",
    "drops": "drop", "comprimé": "tablet", "comprimés": "tablet", "cachet": "tablet", "cachets": "tablet",
    "gélule": "capsule", "gélules": "capsule", "goutte": "drop", "gouttes": "drop", "unité": "unit",
    "unités": "unit", "bouffée": "puff", "bouffées": "puff", "dose": "dose", "doses": "dose",
    "spoonful": "spoon", "spoonfuls": "spoon", "cuillère": "spoon", "sachet": "sachet", "sachets": "sachet",
    "%": "percent", "degrees": "degree", "degrés": "degree", "pounds": "pound", "stone": "stone",
    "cm": "cm", "kilos": "kg", "cycles": "cycle", "cycle": "cycle",
}  # fmt: skip
_TIMES = {"times", "time", "fois"}
_PER = {"a", "per", "par", "each", "every", "chaque", "the", "in", "an"}
_WORD_TIMES = {"once": "1", "twice": "2", "thrice": "3"}
_DAILY = {"daily": "d", "weekly": "w", "monthly": "mo", "hourly": "h", "quotidien": "d"}
_EVERY = {"every", "each", "chaque"}
_NUMBER = re.compile(r"\d+(?:\.\d+)?$")
_PRESSURE = re.compile(r"\d{2,3}/\d{1,3}$")
_DATE = re.compile(r"(?:\d{4}|xx)-\d\d(?:-\d\d)?$|\d\d:\d\d$")


def merge_quantities(words: Sequence[str], language: str) -> list[Item]:
    """Words as items: quantities joined and named, everything else one by one."""
    items, i = [], 0
    while i < len(words):
        item = _quantity(words, i, language) or (i, 1, "", words[i])
        items.append(item)
        i += item[1]
    return items


def _at(words: Sequence[str], i: int) -> str:
    return words[i] if i < len(words) else ""


def _quantity(words: Sequence[str], i: int, language: str) -> Item | None:
    word = words[i]
    if word in _WORD_TIMES:
        return _frequency(words, i, i + 1, _WORD_TIMES[word])
    if word in _DAILY:
        return i, 1, "frequency", f"1/{_DAILY[word]}"
    if word in _EVERY or (word in ("toutes", "tous") and _at(words, i + 1) == "les"):
        return _interval(words, i, i + 1 + (word in ("toutes", "tous")))
    if _PRESSURE.match(word):
        return i, 1, "reading", word
    if _DATE.match(word):
        return i, 1, "date", word
    if word in ("a", "an", "one", "une", "un") and _at(words, i + 1) in _TIME:
        return _duration(words, i, 2, "1", _TIME[words[i + 1]])
    if not _NUMBER.match(word):
        return None
    return _counted(words, i, language)


def _counted(words: Sequence[str], i: int, language: str) -> Item:
    """A number and what follows it."""
    value, after = _plain_number(words[i]), _at(words, i + 1)
    if after in _MASS:
        return _with_rate(words, i, 2, "dose", f"{float(value) * _MASS[after]:g} mg")
    if after in _VOLUME:
        return i, 2, "dose", f"{float(value) * _VOLUME[after]:g} ml"
    if after in _TIMES:
        return _frequency(words, i, i + 2, value)
    if after in _TIME:
        return _duration(words, i, 2, value, _TIME[after])
    if after in _COUNTED:
        return _with_rate(words, i, 2, "dose", f"{value} {_COUNTED[after]}")
    if after in ("over", "sur", "out") and _NUMBER.match(_at(words, i + 2 + (after == "out"))):
        width = 3 + (after == "out")
        return i, width, "reading", f"{value}/{_plain_number(words[i + width - 1])}"
    if after in ("a", "per", "par") and _at(words, i + 2) in _TIME:
        return _frequency(words, i, i + 1, value)
    return i, 1, "reading", value


def _with_rate(words: Sequence[str], i: int, width: int, group: str, value: str) -> Item:
    return i, width, group, value


def _duration(words: Sequence[str], i: int, width: int, value: str, unit: str) -> Item:
    if _at(words, i + width) in ("old",):
        return i, width + 1, "reading", f"{value} {unit}"
    return i, width, "duration", f"{value} {unit}"


def _frequency(words: Sequence[str], i: int, j: int, value: str) -> Item:
    """``value`` times; ``j`` is the word after it: ``a day``, ``daily``, ``par jour``."""
    if _at(words, j) in _DAILY:
        return i, j + 1 - i, "frequency", f"{value}/{_DAILY[words[j]]}"
    if _at(words, j) in _PER and _at(words, j + 1) in _TIME:
        return i, j + 2 - i, "frequency", f"{value}/{_TIME[words[j + 1]]}"
    return i, j - i, "frequency", f"{value} times"


def _interval(words: Sequence[str], i: int, j: int) -> Item | None:
    """``every 4 hours``, ``every day``, ``toutes les 4 heures``; every morning stays a time of day."""
    if _NUMBER.match(_at(words, j)) and _at(words, j + 1) in _TIME:
        return i, j + 2 - i, "frequency", f"each {_plain_number(words[j])} {_TIME[words[j + 1]]}"
    if _at(words, j) in _TIME:
        return i, j + 1 - i, "frequency", f"1/{_TIME[words[j]]}"
    return None


@lru_cache(maxsize=4096)
def _plain_number(text: str) -> str:
    return f"{float(text):g}"
