"""Spoken and written forms of one value meet in a canonical string.

Unit: one stretch of text (a mention, a turn). Two texts that say the same thing
have the same canonical string: ``"third of May nineteen sixty two"`` and ``"3rd
of May, 1962"``; ``"oh seven seven double zero"`` and ``"07700"``; ``"zéro six,
douze"`` and ``"06 12"``; ``"j dot doe at mail dot com"`` and ``"j.doe@mail.com"``.
The transcript itself is never rewritten: canonical strings are for matching.

Conventions: languages are ``en`` and ``fr``; tokens are parted by one space; dates
are ``YYYY-MM-DD``, ``xx-MM-DD`` without a year, ``YYYY-MM`` without a day; times are
``HH:MM``; a blood pressure is ``120/80``; a dose keeps its value (``0.25 mg``).

Functions: :func:`canonical`, :func:`heard`, :func:`months`, :func:`written_value`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache


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
_ORDINALS_EN = words(
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth "
    "thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth "
    "twentieth"
)
DIGITS_EN = words("zero one two three four five six seven eight nine")
_TEENS_EN = words(
    "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
)
_TENS_EN = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
SMALL_FR = words(
    "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize"
)
_TENS_FR = {
    "vingt": 20, "trente": 30, "quarante": 40, "cinquante": 50, "soixante": 60,
    "septante": 70, "huitante": 80, "octante": 80, "nonante": 90,
}  # fmt: skip
_SMALL = {
    "en": {w: i for i, w in enumerate(DIGITS_EN + _TEENS_EN)} | {"nought": 0, "naught": 0},
    "fr": {w: i for i, w in enumerate(SMALL_FR)} | {"zero": 0, "une": 1},
}
_TENS = {
    "en": {w: 20 + 10 * i for i, w in enumerate(_TENS_EN)} | {"fourty": 40},
    "fr": _TENS_FR,
}
_HUNDRED = {"en": {"hundred"}, "fr": {"cent", "cents"}}
_THOUSAND = {"en": {"thousand"}, "fr": {"mille"}}
_ROUND = {"hundred", "thousand"}
_UNIT_NAMES = {
    "milligram": "mg", "milligrams": "mg", "milligramme": "mg", "milligrammes": "mg", "mgs": "mg",
    "microgram": "mcg", "micrograms": "mcg", "microgramme": "mcg", "microgrammes": "mcg",
    "µg": "mcg", "ug": "mcg", "gram": "g", "grams": "g", "gramme": "g", "grammes": "g",
    "kilogram": "kg", "kilograms": "kg", "kilo": "kg", "kilos": "kg",
    "kilogramme": "kg", "kilogrammes": "kg", "milliliter": "ml", "milliliters": "ml",
    "millilitre": "ml", "millilitres": "ml", "mls": "ml",
    "percent": "%", "centimeters": "cm", "centimetres": "cm", "centimètres": "cm",
}  # fmt: skip
_UNITS = set(_UNIT_NAMES.values()) | set(
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
_TLDS = set(words("com org net edu gov uk co fr io health be ch ca info eu us nhs ie de ai app"))
_DOT = {"dot", "point"}
_JOINS = {
    "dot": ".",
    "point": ".",
    "underscore": "_",
    "dash": "-",
    "hyphen": "-",
    "tiret": "-",
}
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
class _Item:
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


@lru_cache(maxsize=65536)
def canonical(text: str, language: str) -> str:
    """The canonical string of a text in ``en`` or ``fr`` (see the module docstring)."""
    items = _tokens(plain(text), language)
    for step in (
        _spelling,
        _words_to_numbers,
        _decimals,
        _dates,
        _clock,
        _merge,
        _symbols,
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


def _tokens(text: str, language: str) -> list[_Item]:
    """Cut a plain text into items; written dates, times and addresses are values at once."""
    items: list[_Item] = []
    for match in _TOKEN.finditer(text):
        kind, raw = str(match.lastgroup), match.group()
        if match.group("date"):
            kind = "date"
        items.extend(_READERS[kind](raw, language) if kind in _READERS else _read_word(raw))
    return items


def _read_word(raw: str) -> list[_Item]:
    word = _UNIT_NAMES.get(raw, _TITLES.get(raw, raw))
    kind = "letter" if len(raw) == 1 and raw.isalpha() and raw not in "àôé" else "word"
    return [_Item(kind, word, raw)]


def _read_number(raw: str, language: str) -> list[_Item]:
    return [_Item("number", raw.replace(",", ""), raw)]


def _read_decimal(raw: str, language: str) -> list[_Item]:
    return [_Item("value", raw.replace(",", "."), raw)]


def _read_date(raw: str, language: str) -> list[_Item]:
    first, second, year = re.split(r"[-/.]", raw)
    month_first = (language == "en" and int(first) <= 12) or int(second) > 12
    month, day = (first, second) if month_first else (second, first)
    if not 1 <= int(month) <= 12 or not 1 <= int(day) <= 31:
        return [_Item("number", first + second + year, raw)]
    return [_Item("value", f"{_full_year(year)}-{int(month):02d}-{int(day):02d}", raw)]


def _read_iso(raw: str, language: str) -> list[_Item]:
    year, month, day = re.split(r"[-/.]", raw)
    if not 1 <= int(month) <= 12 or not 1 <= int(day) <= 31:
        return [_Item("number", year + month + day, raw)]
    return [_Item("value", f"{year}-{int(month):02d}-{int(day):02d}", raw)]


def _read_clock(raw: str, language: str) -> list[_Item]:
    hour, _, minute = re.sub(r"\s", "", raw).replace("h", ":").partition(":")
    return [_Item("clock", f"{int(hour):02d}:{minute or '00'}", raw)]


def _read_code(raw: str, language: str) -> list[_Item]:
    """``sw1a`` is a code; ``500mg`` is a number and its unit."""
    dose = re.fullmatch(r"(\d+)([a-z]+)", raw)
    if dose and _UNIT_NAMES.get(dose[2], dose[2]) in _UNITS:
        return [_Item("number", dose[1], dose[1]), *_read_word(dose[2])]
    return [_Item("letter", raw, raw)]


def _read_ordinal(raw: str, language: str) -> list[_Item]:
    return [_Item("ordinal", re.sub(r"\D", "", raw), raw)]


def _read_url(raw: str, language: str) -> list[_Item]:
    return [_Item("value", re.sub(r"^https?://", "", raw), raw)]


def _read_ip(raw: str, language: str) -> list[_Item]:
    groups = raw.split(".")
    if any(len(group) > 1 and group[0] == "0" for group in groups):  # a dotted phone number
        return [_Item("number", "".join(groups), raw)]
    return [_Item("value", raw, raw)]


_READERS: dict[str, Callable[[str, str], list[_Item]]] = {
    "email": lambda raw, language: [_Item("value", raw, raw)],
    "ip": _read_ip,
    "url": _read_url,
    "isodate": _read_iso,
    "date": _read_date,
    "clock": _read_clock,
    "pressure": lambda raw, language: [_Item("value", re.sub(r"\s", "", raw), raw)],
    "ordinal": _read_ordinal,
    "thousands": _read_number,
    "decimal": _read_decimal,
    "code": _read_code,
    "digits": _read_number,
    "mark": lambda raw, language: [_Item("mark", raw, raw)],
}


def _spelling(items: list[_Item], language: str) -> list[_Item]:
    """``v as in victor``, ``v for victor``, ``v comme victor`` -> the letter alone."""
    out, i = [], 0
    while i < len(items):
        item, skip = items[i], 0
        if item.kind == "letter":
            words = [x.text for x in items[i + 1 : i + 4]]
            for lead in (["as", "in"], ["for"], ["like"], ["comme"]):
                rest = words[len(lead) :]
                if words[: len(lead)] == lead and rest and rest[0].startswith(item.text):
                    skip = len(lead) + 1 if len(rest[0]) > 2 else 0
                    break
        out.append(item)
        i += 1 + skip
    return out


def _words_to_numbers(items: list[_Item], language: str) -> list[_Item]:
    """Number words become numbers, ordinal words ordinals; ``double x`` is written out."""
    out: list[_Item] = []
    i = 0
    while i < len(items):
        repeated = _repeated(items, i, language)
        ordinal = _ordinal_words(items, i, language)
        value, after = _number_words(items, i, language)
        if repeated:
            out.extend(repeated)
            i += 2
        elif ordinal:
            out.append(ordinal[0])
            i = ordinal[1]
        elif value is not None:
            raw = " ".join(x.raw for x in items[i:after])
            out.append(_Item("number", value, raw))
            i = after
        else:
            out.append(items[i])
            i += 1
    return _ohs(out, language)


def _repeated(items: list[_Item], i: int, language: str) -> list[_Item]:
    times = {"double": 2, "triple": 3, "treble": 3}.get(items[i].text, 0)
    if not times or i + 1 >= len(items):
        return []
    following = items[i + 1]
    if following.text == "u" and times == 2:
        return [_Item("letter", "w")]
    if following.kind == "letter":
        zero = following.text == "o"
        return (
            [_Item("number", "0" * times)] if zero else [_Item("letter", following.text)] * times
        )
    if following.text == "oh":
        return [_Item("number", "0" * times)]
    digit = following.text if following.kind == "number" else _digit(following.text, language)
    return [_Item("number", digit * times)] if digit and len(digit) == 1 else []


def _digit(word: str, language: str) -> str:
    value = _SMALL[language].get(word)
    return str(value) if value is not None and value < 10 else ""


def _ordinal_words(items: list[_Item], i: int, language: str) -> tuple[_Item, int] | None:
    """``third``, ``twenty first``, ``premier``: ordinals until the dates are read."""
    text = items[i].text
    if language == "fr":
        ordinal = text in ("premier", "première")
        return (_Item("ordinal", "1", text), i + 1) if ordinal else None
    if text in _ORDINALS_EN:
        return _Item("ordinal", str(_ORDINALS_EN.index(text) + 1), text), i + 1
    if text == "thirtieth":
        return _Item("ordinal", "30", text), i + 1
    if text in ("twenty", "thirty"):
        j = _past_hyphen(items, i + 1)
        if j < len(items) and items[j].text in _ORDINALS_EN[:9]:
            value = _TENS["en"][text] + _ORDINALS_EN.index(items[j].text) + 1
            return _Item("ordinal", str(value), f"{text} {items[j].text}"), j + 1
    return None


def _past_hyphen(items: list[_Item], i: int) -> int:
    return i + 1 if i < len(items) and items[i].text == "-" else i


def _number_words(items: list[_Item], i: int, language: str) -> tuple[str | None, int]:
    """A cardinal in words from item ``i``: its digits and the index after it, or None."""
    word = items[i].text
    if _SMALL[language].get(word) == 0 and items[i].kind == "word":
        return "0", i + 1
    value, j = _below_thousand(items, i, language)
    lone = items[i].kind == "word" and word in _THOUSAND[language] and language == "fr"
    if value is None and not lone:
        return None, i
    j = j if value is not None else i
    if j < len(items) and _skip(items, j, _THOUSAND[language]):
        j = _past_hyphen(items, j) + 1
        rest, after = _after_scale(items, j, language, _below_thousand)
        return str((value or 1) * 1000 + rest), after
    return str(value), j


Reader = Callable[[list[_Item], int, str], tuple[int | None, int]]


def _skip(items: list[_Item], j: int, words: set[str]) -> bool:
    j = _past_hyphen(items, j)
    return j < len(items) and items[j].text in words


def _after_scale(items: list[_Item], j: int, language: str, read: Reader) -> tuple[int, int]:
    """What follows "hundred"/"thousand": ``and twelve``, ``twelve``, or nothing (0)."""
    k = _past_hyphen(items, j)
    if k < len(items) and items[k].text == "," and read is _below_thousand:
        value, after = read(items, k + 1, language)
        return (value, after) if value is not None and value >= 100 else (0, j)
    if k < len(items) and items[k].text == "and" and language == "en":
        value, after = read(items, k + 1, language)
        return (value, after) if value is not None else (0, j)
    value, after = read(items, k, language)
    if value is None:
        return 0, j
    one_digit = after == k + 1 and value < 10
    if one_digit and after < len(items) and _digit(items[after].text, language):
        return 0, j  # "nine hundred, one two three" goes on digit by digit
    return value, after


def _below_thousand(items: list[_Item], i: int, language: str) -> tuple[int | None, int]:
    if i >= len(items) or items[i].kind not in ("word", "letter"):
        return None, i
    value, j = _below_hundred(items, i, language)
    if value is None and language == "fr" and items[i].text in _HUNDRED["fr"]:
        value, j = 1, i
    if language == "en" and items[i].text == "a" and _skip(items, i + 1, _ROUND):
        value, j = 1, i + 1
    if value is None:
        return None, i
    if 0 < value < 100 and _skip(items, j, _HUNDRED[language]):
        j = _past_hyphen(items, j) + 1
        rest, after = _after_scale(items, j, language, _below_hundred)
        return value * 100 + rest, after
    return value, j


def _below_hundred(items: list[_Item], i: int, language: str) -> tuple[int | None, int]:
    if i >= len(items) or items[i].kind != "word":
        return None, i
    small, tens = _SMALL[language], _TENS[language]
    word = items[i].text
    j = _past_hyphen(items, i + 1)
    following = items[j].text if j < len(items) else ""
    if language == "fr":
        return _below_hundred_fr(items, i)
    if word in tens:
        unit = small.get(following, 0)
        return (tens[word] + unit, j + 1) if 1 <= unit <= 9 else (tens[word], i + 1)
    return (small[word], i + 1) if small.get(word, 0) > 0 else (None, i)


def _below_hundred_fr(items: list[_Item], i: int) -> tuple[int | None, int]:
    small, word = _SMALL["fr"], items[i].text
    j = _past_hyphen(items, i + 1)
    following = items[j].text if j < len(items) else ""
    if word == "quatre" and following in ("vingt", "vingts"):
        return _tens_fr(items, 80, j + 1, 19)
    if word in _TENS_FR:
        return _tens_fr(items, _TENS_FR[word], i + 1, 19 if word == "soixante" else 9)
    if word == "dix" and following in ("sept", "huit", "neuf"):
        return 10 + small[following], j + 1
    return (small[word], i + 1) if small.get(word, 0) > 0 else (None, i)


def _tens_fr(items: list[_Item], base: int, i: int, most: int) -> tuple[int, int]:
    j = _past_hyphen(items, i)
    joined = j < len(items) and items[j].text == "et"
    j = _past_hyphen(items, j + 1) if joined else j
    if j < len(items) and items[j].text in _TENS_FR:
        return base, i
    value, after = _below_hundred_fr(items, j) if j < len(items) else (None, i)
    if value is None or value > most or (joined and value not in (1, 11)):
        return base, i
    return base + value, after


def _ohs(items: list[_Item], language: str) -> list[_Item]:
    """``oh`` and ``o`` beside a number are zeros, from the left and from the right."""
    out = list(items)
    for order in (range(len(out)), range(len(out) - 1, -1, -1)):
        for i in order:
            if out[i].text not in ("oh", "o") or language != "en":
                continue
            near = [out[k] for k in (i - 1, i + 1) if 0 <= k < len(out)]
            if any(x.kind == "number" for x in near):
                out[i] = _Item("number", "0", out[i].raw)
    return out


def _decimals(items: list[_Item], language: str) -> list[_Item]:
    """``zero point two five`` -> 0.25; ``192 dot 168 dot 1 dot 10`` -> an address."""
    point = {"en": ("point",), "fr": ("virgule",)}[language]
    out: list[_Item] = []
    i = 0
    while i < len(items):
        dotted, j = [], i + 1
        if items[i].kind == "number":
            j, digits = _digit_run(items, i)
            dotted = [digits] if j < len(items) and items[j].text in (*_DOT, *point) else []
        address, after = list(dotted), j
        while dotted and _follows_point(items, after, tuple(_DOT)):
            after, digits = _digit_run(items, after + 1)
            address.append(digits)
        if len(address) == 4:
            out.append(_Item("value", ".".join(address)))
            i = after
        elif dotted and _follows_point(items, j, point):
            i, digits = _digit_run(items, j + 1)
            out.append(_Item("value", f"{dotted[0]}.{digits}"))
        else:
            out.append(items[i])
            i += 1
    return out


def _follows_point(items: list[_Item], j: int, point: tuple[str, ...]) -> bool:
    return j + 1 < len(items) and items[j].text in point and items[j + 1].kind == "number"


def _digit_run(items: list[_Item], i: int) -> tuple[int, str]:
    """The digits said one by one (or as one number) from item ``i``."""
    digits, j = items[i].text, i + 1
    while (
        j < len(items)
        and items[j].kind == "number"
        and len(items[j].text) == 1 == len(items[j - 1].text)
    ):
        digits += items[j].text
        j += 1
    return j, digits


def _full_year(year: str) -> str:
    if len(year) == 4:
        return year
    return f"{'19' if int(year) > 30 else '20'}{int(year):02d}"


def _is_day(item: _Item) -> bool:
    return item.kind in ("number", "ordinal") and 1 <= int(item.text) <= 31 and len(item.text) <= 2


def _dates(items: list[_Item], language: str) -> list[_Item]:
    """Day, month and year in any order and form become one value; ordinals left over are words."""
    names, out, i = months(language), [], 0
    while i < len(items):
        found = _day_month(items, i, names, language) or _month_day(items, i, names, language)
        if found:
            out.append(_Item("value", found[0]))
            i = found[1]
        else:
            item = items[i]
            out.append(_Item("word", item.raw) if item.kind == "ordinal" else item)
            i += 1
    return out


def _day_month(
    items: list[_Item], i: int, names: dict[str, int], language: str
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
    items: list[_Item], i: int, names: dict[str, int], language: str
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
    unit = j + 1 < len(items) and items[j + 1].text in _UNITS and items[j].kind == "number"
    if unit:  # "you may 3 times"
        return None
    year, after = _year(items, j + 1)
    return f"{year or 'xx'}-{month:02d}-{int(items[j].text):02d}", after


def _year(items: list[_Item], i: int, short: bool = True) -> tuple[str, int]:
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
    unit = j + 1 < len(items) and items[j + 1].text in _UNITS
    if short and re.fullmatch(r"\d\d", numbers[0]) and not follows and not unit:
        return _full_year(numbers[0]), j + 1
    return "", before


def _clock(items: list[_Item], language: str) -> list[_Item]:
    """Times of day: ``3:30 pm``, ``three thirty p m``, ``quinze heures trente``."""
    out: list[_Item] = []
    i = 0
    while i < len(items):
        found = _time(items, i, language)
        if found:
            out.append(_Item("value", found[0]))
            i = found[1]
        else:
            out.append(items[i])
            i += 1
    return out


def _time(items: list[_Item], i: int, language: str) -> tuple[str, int] | None:
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


def _hour(item: _Item) -> bool:
    return item.kind == "number" and len(item.text) <= 2 and int(item.text) <= 24


def _half_day(
    hour: int, minute: str, items: list[_Item], j: int, needed: bool = False
) -> tuple[str, int] | None:
    texts = [x.text for x in items[j : j + 4] if x.text != "."]
    half = texts[0] if texts and texts[0] in ("am", "pm") else "".join(texts[:2])
    if half in ("am", "pm") and 1 <= hour <= 12:
        marks = sum(x.text == "." for x in items[j : j + 4])
        after = j + (1 if texts[0] in ("am", "pm") else 2 + min(marks, 2))
        return f"{hour % 12 + (12 if half == 'pm' else 0):02d}:{minute}", min(after, len(items))
    return None if needed else (f"{hour:02d}:{minute}", j)


def _merge(items: list[_Item], language: str) -> list[_Item]:
    """Numbers and single letters that stand together become one string, doses excepted."""
    out: list[_Item] = []
    i = 0
    while i < len(items):
        if items[i].kind not in ("number", "letter"):
            out.append(items[i])
            i += 1
            continue
        run, j = [i], i + 1
        while j < len(items):
            k = j
            while k < len(items) and items[k].text in (",", "-", ".", "(", ")", "..."):
                k += 1
            if k >= len(items) or items[k].kind not in ("number", "letter"):
                break
            run.append(k)
            j = k + 1
        out.extend(_run(items, run))
        i = run[-1] + 1
    return _pressures(out)


def _run(items: list[_Item], run: list[int]) -> list[_Item]:
    """Decide what of one run (indices of numbers and letters) is one string."""
    last = run[-1]
    unit = last + 1 < len(items) and items[last + 1].text in _UNITS
    tail = [last] if unit and items[last].kind == "number" and len(run) > 1 else []
    head = run[: len(run) - len(tail)]
    if len(head) > 1 and _article(items, head):
        return [items[head[0]], *_run(items, head[1:] + tail)]
    groups = [items[k].text for k in head]
    letters = sum(items[k].kind == "letter" for k in head)
    marks = {x.text for x in items[head[0] : head[-1]] if x.kind == "mark"}
    digits = sum(len(g) for k, g in zip(head, groups, strict=True) if items[k].kind == "number")
    zero = any((len(g) > 1 and g[0] == "0") or g == "0" for g in groups)
    merged = len(head) == 1 or not _separate(len(groups), letters, digits, marks, zero, groups)
    joined = [_Item("number", "".join(groups))] if merged else [items[k] for k in head]
    return joined + [items[k] for k in tail]


def _article(items: list[_Item], head: list[int]) -> bool:
    """``a 5``, ``I 2``: the word; before three single digits, ``a 4 4 7``, a spelled letter."""
    digits = [items[k].text for k in head[1:4] if items[k].kind == "number"]
    said_singly = len(digits) == 3 and all(len(d) == 1 for d in digits)
    return (
        items[head[0]].text in ("a", "i", "y")
        and items[head[1]].kind == "number"
        and not said_singly
    )


def _separate(
    n: int, letters: int, digits: int, marks: set[str], zero: bool, groups: list[str]
) -> bool:
    if letters == n:
        codes = sum(len(group) > 1 for group in groups)
        return n < 3 and codes < 2 and not (n == 2 and marks)
    if letters:
        return n == 2 and digits < 2 and not marks & {"-"}
    if not marks:
        return False
    if marks == {"-"}:
        return not (digits >= 7 or n >= 3 or zero)
    return not (digits >= 7 or zero or (n >= 3 and all(len(g) == 1 for g in groups)))


def _pressures(items: list[_Item]) -> list[_Item]:
    """``120 over 80``, ``12 sur 8`` -> ``120/80``."""
    out: list[_Item] = []
    i = 0
    while i < len(items):
        three = items[i : i + 3]
        if (
            len(three) == 3
            and three[1].text in ("over", "sur")
            and three[0].kind == three[2].kind == "number"
        ):
            out.append(_Item("value", f"{three[0].text}/{three[2].text}"))
            i += 3
        else:
            out.append(items[i])
            i += 1
    return out


def _symbols(items: list[_Item], language: str) -> list[_Item]:
    """Spoken addresses: ``j dot doe at mail dot com``, ``w w w dot clinic dot org slash help``."""
    out = [x for x in items if x.kind != "mark" or x.text in ("@", "/")]
    i = 0
    while i < len(out):
        domain, after = _domain(out, i)
        if domain:
            start, local = _local(out, i)
            out[start:after] = [_Item("value", local + domain)]
            i = start
        i += 1
    return out


def _domain(items: list[_Item], i: int) -> tuple[str, int]:
    """``clinic dot org`` from item ``i`` with its path, or an empty string."""
    if items[i].kind == "mark" or items[i].text in _DOT:
        return "", i
    name, j = items[i].text, i + 1
    if "@" in name:
        return "", i
    while j + 1 < len(items) and items[j].text in _JOINS:
        name += _JOINS[items[j].text] + items[j + 1].text
        j += 2
    written = i > 0 and items[i - 1].text in ("at", "arobase", "@")
    if j < len(items) and len(name.rpartition(".")[2]) == 1:  # "dot f r"
        name, j = name + items[j].text, j + 1
    if "." not in name or name.rpartition(".")[2] not in _TLDS or (j == i + 1 and not written):
        return "", i
    while j + 1 < len(items) and items[j].text == "slash":
        name += "/" + items[j + 1].text
        j += 2
    return name, j


def _local(items: list[_Item], i: int) -> tuple[int, str]:
    """The part before ``at``: its first item and ``"name@"``; without one, ``(i, "")``."""
    if i < 2 or items[i - 1].text not in ("at", "arobase", "@"):
        return i, ""
    start, text = i - 2, items[i - 2].text
    if text.isdigit() and start >= 2 and items[start - 2].text in _JOINS:  # "j dot doe 22 at"
        start, text = start - 1, items[start - 1].text + text
    while start >= 2 and items[start - 1].text in _JOINS:
        text = items[start - 2].text + _JOINS[items[start - 1].text] + text
        start -= 2
    return start, text + "@"


def written_value(text: str, language: str) -> str:
    """The value of a written date or time (``03/05/1962``, ``15h30``), as in :func:`canonical`."""
    return _tokens(plain(text), language)[0].text
