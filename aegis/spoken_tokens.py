"""Tokens of a text: words, numbers, letters, and values that are written out.

Unit: one stretch of text (a mention, a turn). Text is first made plain (:func:`plain`);
written dates, times, addresses and pressures are values as soon as it is cut.

Functions: :func:`cut_tokens`, :func:`plain`, :func:`months`, :func:`words`, :func:`full_year`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass


def words(text: str) -> list[str]:
    return text.split()


MONTH_NAMES = {
    "en": "january february march april may june july august september october november december",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
}
_MONTH_SHORT = {
    "en": {"jan": 1, "feb": 2, "mar": 3, "apr": 4, "jun": 6, "jul": 7, "aug": 8, "sep": 9,
           "sept": 9, "oct": 10, "nov": 11, "dec": 12},
    "fr": {"janv": 1, "févr": 2, "fevrier": 2, "avr": 4, "juil": 7, "aout": 8, "sept": 9,
           "oct": 10, "nov": 11, "déc": 12, "decembre": 12},
}  # fmt: skip
_UNIT_NAMES = {
    "milligram": "mg", "milligrams": "mg", "milligramme": "mg", "milligrammes": "mg", "mgs": "mg",
    "microgram": "mcg", "micrograms": "mcg", "microgramme": "mcg", "microgrammes": "mcg",
    "µg": "mcg", "ug": "mcg", "gram": "g", "grams": "g", "gramme": "g", "grammes": "g",
    "kilogram": "kg", "kilograms": "kg", "kilo": "kg", "kilos": "kg",
    "kilogramme": "kg", "kilogrammes": "kg", "milliliter": "ml", "milliliters": "ml",
    "millilitre": "ml", "millilitres": "ml", "mls": "ml",
    "percent": "%", "centimeters": "cm", "centimetres": "cm", "centimètres": "cm",
}  # fmt: skip
UNITS = set(_UNIT_NAMES.values()) | set(
    words(
        "g day days week weeks month months year years hour hours minute minutes times time "
        "tablets tablet pills pill puffs units unit doses dose degrees jour jours semaine "
        "semaines mois an ans heure heures fois comprimé comprimés gouttes gélules unités "
        "degrés pounds stone feet inches l litres bpm beats mmhg mmol"
    )
)
_TITLES = {
    "dr": "doctor", "mr": "mister", "mrs": "missus", "mme": "madame", "mlle": "mademoiselle",
    "docteur": "docteur", "rd": "road", "ave": "avenue", "blvd": "boulevard", "bd": "boulevard",
}  # fmt: skip
_TOKEN = re.compile(
    r"(?P<email>[\w.+-]+@[\w-]+(?:\.[\w-]+)+)"
    r"|(?P<ip>(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d]|\.\d))"
    r"|(?P<url>(?:https?://)?(?:[a-z][\w-]*\.)+(?:com|org|net|edu|gov"
    r"|uk|fr|io|health|be|ch|ca|info|eu"
    r"|us|de|ie|app)\b(?:/[\w/.%~-]*\w)?)"
    r"|(?P<isodate>(?<!\d)\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?!\d))"
    r"|(?P<date>(?<![\d/.-])\d{1,2}(?P<sep>[-/.])\d{1,2}(?P=sep)(?:\d{4}|\d{2})(?![\d]|[-.]\d))"
    r"|(?P<clock>(?<!\d)\d{1,2}(?::\d{2}|\s?h\s?\d{2}|h)(?![\d:\w]))"
    r"|(?P<pressure>(?<![\d/])\d{2,3}\s?/\s?\d{1,3}(?![\d/]))"
    r"|(?P<ordinal>(?<!\d)\d{1,2}(?:st|nd|rd|th|er|ère|ème|e)\b)"
    r"|(?P<thousands>(?<![\d,])[1-9]\d{0,2}(?:,\d{3})+(?![\d,]))"
    r"|(?P<decimal>(?<![\d.,])\d+[.,]\d+(?![\d]|[.,]\d))"
    r"|(?P<code>(?=[a-z]*\d)(?=\d*[a-z])[a-z\d]{2,}(?![^\W_]))"
    r"|(?P<digits>\d+)"
    r"|(?P<word>[^\W\d_]+'(?!s\b)|[^\W\d_]+|'s\b|%)"
    r"|(?P<mark>[^\w\s])"
)


@dataclass(frozen=True)
class Item:
    """One token: kind ``word|number|letter|ordinal|value|mark``, and its text."""

    kind: str
    text: str
    raw: str = ""


def plain(text: str) -> str:
    """NFC, case-folded, one kind of apostrophe, hyphen and space."""
    text = unicodedata.normalize("NFC", text).casefold()
    text = re.sub(r"[’‘ʼ´`＇]", "'", text)
    text = re.sub(r"[‐‑‒–—−]", "-", text)
    return unicodedata.normalize("NFC", re.sub(r"\s+", " ", text))


def months(language: str) -> dict[str, int]:
    """Month names and common short forms (case-folded) with their numbers."""
    names = {name: i + 1 for i, name in enumerate(MONTH_NAMES[language].split())}
    return names | _MONTH_SHORT[language]


def cut_tokens(text: str, language: str) -> list[Item]:
    """Cut a plain text into items; written dates, times and addresses are values at once."""
    items: list[Item] = []
    for match in _TOKEN.finditer(text):
        kind, raw = str(match.lastgroup), match.group()
        if match.group("date"):
            kind = "date"
        items.extend(_READERS[kind](raw, language) if kind in _READERS else _read_word(raw))
    return items


def _read_word(raw: str) -> list[Item]:
    word = _UNIT_NAMES.get(raw, _TITLES.get(raw, raw))
    kind = "letter" if len(raw) == 1 and raw.isalpha() and raw not in "àôé" else "word"
    return [Item(kind, word, raw)]


def _read_number(raw: str, language: str) -> list[Item]:
    return [Item("number", raw.replace(",", ""), raw)]


def _read_decimal(raw: str, language: str) -> list[Item]:
    return [Item("value", raw.replace(",", "."), raw)]


def _read_date(raw: str, language: str) -> list[Item]:
    first, second, year = re.split(r"[-/.]", raw)
    month_first = (language == "en" and int(first) <= 12) or int(second) > 12
    month, day = (first, second) if month_first else (second, first)
    if not 1 <= int(month) <= 12 or not 1 <= int(day) <= 31:
        return [Item("number", first + second + year, raw)]
    return [Item("value", f"{full_year(year)}-{int(month):02d}-{int(day):02d}", raw)]


def _read_iso(raw: str, language: str) -> list[Item]:
    year, month, day = re.split(r"[-/.]", raw)
    if not 1 <= int(month) <= 12 or not 1 <= int(day) <= 31:
        return [Item("number", year + month + day, raw)]
    return [Item("value", f"{year}-{int(month):02d}-{int(day):02d}", raw)]


def _read_clock(raw: str, language: str) -> list[Item]:
    hour, _, minute = re.sub(r"\s", "", raw).replace("h", ":").partition(":")
    return [Item("clock", f"{int(hour):02d}:{minute or '00'}", raw)]


def _read_code(raw: str, language: str) -> list[Item]:
    """``sw1a`` is a code; ``500mg`` is a number and its unit."""
    dose = re.fullmatch(r"(\d+)([a-z]+)", raw)
    if dose and _UNIT_NAMES.get(dose[2], dose[2]) in UNITS:
        return [Item("number", dose[1], dose[1]), *_read_word(dose[2])]
    return [Item("letter", raw, raw)]


def _read_ordinal(raw: str, language: str) -> list[Item]:
    return [Item("ordinal", re.sub(r"\D", "", raw), raw)]


def _read_url(raw: str, language: str) -> list[Item]:
    return [Item("value", re.sub(r"^https?://", "", raw), raw)]


def _read_ip(raw: str, language: str) -> list[Item]:
    groups = raw.split(".")
    if any(len(group) > 1 and group[0] == "0" for group in groups):  # a dotted phone number
        return [Item("number", "".join(groups), raw)]
    return [Item("value", raw, raw)]


_READERS: dict[str, Callable[[str, str], list[Item]]] = {
    "email": lambda raw, language: [Item("value", raw, raw)],
    "ip": _read_ip,
    "url": _read_url,
    "isodate": _read_iso,
    "date": _read_date,
    "clock": _read_clock,
    "pressure": lambda raw, language: [Item("value", re.sub(r"\s", "", raw), raw)],
    "ordinal": _read_ordinal,
    "thousands": _read_number,
    "decimal": _read_decimal,
    "code": _read_code,
    "digits": _read_number,
    "mark": lambda raw, language: [Item("mark", raw, raw)],
}


def full_year(year: str) -> str:
    if len(year) == 4:
        return year
    return f"{'19' if int(year) > 30 else '20'}{int(year):02d}"
