"""Words that a synthesiser can read for written values, and the other way round.

Unit: one value (a mention or its replacement) or one turn. :func:`speakable` goes
from writing to words, :func:`aegis.canonical.canonical` from either to one string;
speaking a value keeps its canonical string. Languages are ``en`` and ``fr``.

Functions: :func:`speakable`.
"""

from __future__ import annotations

import re
import unicodedata

from aegis.canonical import written_value
from aegis.spoken_numbers import DIGITS_EN, SMALL_FR
from aegis.spoken_tokens import MONTH_NAMES, months, words


def speakable(text: str, category: str | None, language: str) -> str:
    """Words that a synthesiser can read for a value or, with ``category=None``, for a turn.

    Identifiers are read as people say them: telephone and record numbers digit by
    digit (French numbers by pairs where they are written so), letters one by one,
    dates with ordinals, addresses with "dot" and "at". Words stay as they are.

    Examples
    --------
    >>> speakable("07709", "PHONE", "en")
    'oh seven seven zero nine'
    """
    text = re.sub(r"[\u00a0\u202f\u2009]", " ", unicodedata.normalize("NFC", text)).strip()
    if category in ("EMAIL", "URL", "IP"):
        return _say_address(text, language)
    if category in _SPELLED:
        return _say_code(text, language)
    if category == "LOCATION":
        text = _POSTCODE.sub(lambda m: _say_code(m[0], language), text)
    return _say_text(text, language)


_SPELLED = frozenset(
    words("PHONE FAX SSN MRN HEALTH_PLAN ACCOUNT LICENSE VEHICLE DEVICE UNIQUE_ID BIOMETRIC")
)
_POSTCODE = re.compile(r"\b[A-Z]{1,2}\d[A-Z\d]? ?\d[A-Z]{2}\b|\b\d{5}-\d{4}\b")
_SAID_UNITS = {
    "en": {"mg": "milligrams", "mcg": "micrograms", "ml": "millilitres", "kg": "kilograms",
           "%": "percent"},
    "fr": {"mg": "milligrammes", "mcg": "microgrammes", "ml": "millilitres", "kg": "kilos",
           "%": "pour cent"},
}  # fmt: skip
_PIECES = re.compile(
    r"(?P<address>[\w.+-]+@[\w-]+(?:\.[\w-]+)+|(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])"
    r"|\b(?:www\.)?[A-Za-z][\w-]*(?:\.[\w-]+)*\.(?:com|org|net|fr|uk)\b(?:/[\w/-]+)?)"
    r"|(?P<date>\b\d{4}-\d{2}-\d{2}\b|\b\d{1,2}([/.-])\d{1,2}\3\d{4}\b)"
    r"|(?P<clock>\b\d{1,2}(?::\d{2}|\s?h\s?\d{2})\b)"
    r"|(?P<pressure>\b\d{2,3}/\d{1,3}\b)"
    r"|(?P<ordinal>\b\d{1,2}(?:st|nd|rd|th|er)\b)"
    r"|(?P<long>(?<![\w.,])(?:\+?\d{2,}|\+?\d|\(\d+\))(?:[ -]\d{2,}){2,}(?![\w])"
    r"|\b0\d+\b|\b\d{5,}\b)"
    r"|(?P<thousands>(?<![\d,])\d{1,3}(?:,\d{3})+(?![\d,]))"
    r"|(?P<decimal>\d+[.,]\d+)"
    r"|(?P<year>\b(?:1[89]\d\d|20\d\d)\b)"
    r"|(?P<number>\d+)(?P<tight>(?:mg|mcg|ml|kg|g)\b)?"
    r"|(?P<unit>(?<=\d )(?:mg|mcg|ml|kg)\b|%)"
    r"|(?P<code>\b(?=[A-Z]*\d)[A-Z\d]{2,}\b)"
)


def _cardinal(value: str, language: str) -> str:
    from num2words import num2words

    number = float(value) if "." in value else int(value)
    return str(num2words(number, lang=language)).replace(",", "").replace("-", " ")


def _say_digits(digits: str, language: str) -> str:
    """Digit by digit; in English a leading zero is "oh"."""
    words = [DIGITS_EN[int(d)] if language == "en" else SMALL_FR[int(d)] for d in digits]
    if language == "en" and digits[0] == "0" and len(digits) > 1:
        words[0] = "oh"
    return " ".join(words)


def _say_pair(pair: str, language: str) -> str:
    if pair[0] == "0":
        return _say_digits(pair, language)
    return _cardinal(pair, language)


def _say_code(text: str, language: str) -> str:
    """Groups of digits and letters, parted by commas where the writing parts them."""
    said = []
    for group in re.findall(r"[^\W_]+", text):
        parts = []
        for run in re.findall(r"\d+|[^\W\d_]+", group):
            if not run.isdigit():
                parts.append(run if len(run) > 3 and not run.isupper() else " ".join(run.upper()))
            elif language == "fr" and len(run) == 2:
                parts.append(_say_pair(run, language))
            else:
                parts.append(_say_digits(run, language))
        said.append(" ".join(parts))
    return ", ".join(said)


def _say_address(text: str, language: str) -> str:
    english = {".": "dot", "@": "at", "_": "underscore", "-": "dash", "/": "slash"}
    names = english if language == "en" else english | {".": "point", "@": "arobase", "-": "tiret"}
    said = []
    for part in re.findall(r"[^\W\d_]+|\d+|[^\w\s]|_", re.sub(r"^https?://", "", text)):
        if part.isdigit():
            said.append(_say_digits(part, language).replace("oh ", "zero ", 1))
        elif part.isalpha():
            said.append(" ".join(part) if len(part) < 3 or part.lower() == "www" else part)
        else:
            said.append(names.get(part, ""))
    return " ".join(word for word in said if word)


def _say_text(text: str, language: str) -> str:
    parts, position = [], 0
    for match in _PIECES.finditer(text):
        said = _say_piece(match, text, language)
        parts += [text[position : match.start()], said]
        position = match.end()
    return "".join([*parts, text[position:]])


def _say_piece(match: re.Match[str], text: str, language: str) -> str:
    raw = match.group()
    if match["address"]:
        return _say_address(raw, language)
    if match["date"] or match["clock"]:
        value = written_value(raw, language)
        return _say_date(value, language) if match["date"] else _say_clock(value, language)
    if match["pressure"]:
        return f" {'over' if language == 'en' else 'sur'} ".join(
            _cardinal(x, language) for x in raw.split("/")
        )
    if match["ordinal"]:
        return _say_ordinal(int(re.sub(r"\D", "", raw)), language)
    if match["long"]:
        if language == "fr" and len(raw) == 5 and raw[0] != "0":
            return _cardinal(raw, language)
        return _say_code(raw, language)
    if match["year"] and not re.match(r"\s*(?:mg|ml|mcg|g)\b", text[match.end() :]):
        return _say_year(raw, language)
    if match["code"]:
        return _say_code(raw, language)
    if match["unit"]:
        return (" " if raw == "%" else "") + _SAID_UNITS[language].get(raw, raw)
    if match["decimal"]:
        whole, _, part = raw.replace(",", ".").partition(".")
        point = "point" if language == "en" else "virgule"
        said = _say_digits(part, language).replace("oh", "zero")
        return f"{_cardinal(whole, language)} {point} {said}"
    if match["thousands"]:
        return _cardinal(raw.replace(",", ""), language)
    return _say_number(match, text, language)


def _say_number(match: re.Match[str], text: str, language: str) -> str:
    """A plain number; beside an English month it is a day, and said as an ordinal."""
    raw = match["number"] or match["year"]
    names = "|".join(sorted(months(language), key=len, reverse=True))
    month_before = re.search(rf"\b(?:{names})\.?\s+$", text[: match.start()], re.I)
    month_after = re.match(rf"\s+(?:of )?(?:{names})\b", text[match.end() :], re.I)
    if language == "en" and len(raw) <= 2 and (month_before or month_after) and 0 < int(raw) < 32:
        of = " of" if month_after and not re.match(r"\s+of\b", text[match.end() :], re.I) else ""
        return _say_ordinal(int(raw), language) + of
    tight = match["tight"]
    return _cardinal(raw, language) + (
        f" {_SAID_UNITS[language].get(tight, tight)}" if tight else ""
    )


def _say_ordinal(value: int, language: str) -> str:
    from num2words import num2words

    if language == "fr":
        return "premier" if value == 1 else _cardinal(str(value), language)
    return str(num2words(value, to="ordinal", lang="en")).replace("-", " ")


def _say_year(year: str, language: str) -> str:
    if language == "fr" or year[:3] == "200":
        return _cardinal(year, language)
    if year[2:] == "00":
        return f"{_cardinal(year[:2], 'en')} hundred"
    low = f"oh {DIGITS_EN[int(year[3])]}" if year[2] == "0" else _cardinal(year[2:], "en")
    return f"{_cardinal(year[:2], 'en')} {low}"


def _say_date(value: str, language: str) -> str:
    """``1962-05-03`` -> "third of May nineteen sixty two"."""
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", value):
        return _say_code(value, language)
    year, month, day = value.split("-")
    name = MONTH_NAMES[language].split()[int(month) - 1]
    if language == "fr":
        return f"{_say_ordinal(int(day), 'fr')} {name} {_say_year(year, 'fr')}"
    return f"{_say_ordinal(int(day), 'en')} of {name.capitalize()} {_say_year(year, 'en')}"


def _say_clock(value: str, language: str) -> str:
    hour, minute = value.split(":")
    if language == "fr":
        return f"{_cardinal(hour, 'fr')} heures" + (
            "" if minute == "00" else f" {_say_pair(minute, 'fr')}"
        )
    said = "o'clock" if minute == "00" else _say_pair(minute, "en")
    return f"{_cardinal(hour, 'en')} {said}"
