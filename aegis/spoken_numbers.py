"""Numbers in words become digits, in English and French.

Unit: the tokens of one text, in order; each step returns them with fewer words.

Functions: :func:`join_spelling`, :func:`read_numbers`, :func:`read_decimals`.
"""

from __future__ import annotations

from collections.abc import Callable

from aegis.spoken_tokens import Item, words

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
DOTS = {"dot", "point"}


def join_spelling(items: list[Item], language: str) -> list[Item]:
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


def read_numbers(items: list[Item], language: str) -> list[Item]:
    """Number words become numbers, ordinal words ordinals; ``double x`` is written out."""
    out: list[Item] = []
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
            out.append(Item("number", value, raw))
            i = after
        else:
            out.append(items[i])
            i += 1
    return _ohs(out, language)


def _repeated(items: list[Item], i: int, language: str) -> list[Item]:
    times = {"double": 2, "triple": 3, "treble": 3}.get(items[i].text, 0)
    if not times or i + 1 >= len(items):
        return []
    following = items[i + 1]
    if following.text == "u" and times == 2:
        return [Item("letter", "w")]
    if following.kind == "letter":
        zero = following.text == "o"
        return [Item("number", "0" * times)] if zero else [Item("letter", following.text)] * times
    if following.text == "oh":
        return [Item("number", "0" * times)]
    digit = following.text if following.kind == "number" else _digit(following.text, language)
    return [Item("number", digit * times)] if digit and len(digit) == 1 else []


def _digit(word: str, language: str) -> str:
    value = _SMALL[language].get(word)
    return str(value) if value is not None and value < 10 else ""


def _ordinal_words(items: list[Item], i: int, language: str) -> tuple[Item, int] | None:
    """``third``, ``twenty first``, ``premier``: ordinals until the dates are read."""
    text = items[i].text
    if language == "fr":
        ordinal = text in ("premier", "première")
        return (Item("ordinal", "1", text), i + 1) if ordinal else None
    if text in _ORDINALS_EN:
        return Item("ordinal", str(_ORDINALS_EN.index(text) + 1), text), i + 1
    if text == "thirtieth":
        return Item("ordinal", "30", text), i + 1
    if text in ("twenty", "thirty"):
        j = _past_hyphen(items, i + 1)
        if j < len(items) and items[j].text in _ORDINALS_EN[:9]:
            value = _TENS["en"][text] + _ORDINALS_EN.index(items[j].text) + 1
            return Item("ordinal", str(value), f"{text} {items[j].text}"), j + 1
    return None


def _past_hyphen(items: list[Item], i: int) -> int:
    return i + 1 if i < len(items) and items[i].text == "-" else i


def _number_words(items: list[Item], i: int, language: str) -> tuple[str | None, int]:
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


Reader = Callable[[list[Item], int, str], tuple[int | None, int]]


def _skip(items: list[Item], j: int, words: set[str]) -> bool:
    j = _past_hyphen(items, j)
    return j < len(items) and items[j].text in words


def _after_scale(items: list[Item], j: int, language: str, read: Reader) -> tuple[int, int]:
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


def _below_thousand(items: list[Item], i: int, language: str) -> tuple[int | None, int]:
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


def _below_hundred(items: list[Item], i: int, language: str) -> tuple[int | None, int]:
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


def _below_hundred_fr(items: list[Item], i: int) -> tuple[int | None, int]:
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


def _tens_fr(items: list[Item], base: int, i: int, most: int) -> tuple[int, int]:
    j = _past_hyphen(items, i)
    joined = j < len(items) and items[j].text == "et"
    j = _past_hyphen(items, j + 1) if joined else j
    if j < len(items) and items[j].text in _TENS_FR:
        return base, i
    value, after = _below_hundred_fr(items, j) if j < len(items) else (None, i)
    if value is None or value > most or (joined and value not in (1, 11)):
        return base, i
    return base + value, after


def _ohs(items: list[Item], language: str) -> list[Item]:
    """``oh`` and ``o`` beside a number are zeros, from the left and from the right."""
    out = list(items)
    for order in (range(len(out)), range(len(out) - 1, -1, -1)):
        for i in order:
            if out[i].text not in ("oh", "o") or language != "en":
                continue
            near = [out[k] for k in (i - 1, i + 1) if 0 <= k < len(out)]
            if any(x.kind == "number" for x in near):
                out[i] = Item("number", "0", out[i].raw)
    return out


def read_decimals(items: list[Item], language: str) -> list[Item]:
    """``zero point two five`` -> 0.25; ``192 dot 168 dot 1 dot 10`` -> an address."""
    point = {"en": ("point",), "fr": ("virgule",)}[language]
    out: list[Item] = []
    i = 0
    while i < len(items):
        dotted, j = [], i + 1
        if items[i].kind == "number":
            j, digits = _digit_run(items, i)
            dotted = [digits] if j < len(items) and items[j].text in (*DOTS, *point) else []
        address, after = list(dotted), j
        while dotted and _follows_point(items, after, tuple(DOTS)):
            after, digits = _digit_run(items, after + 1)
            address.append(digits)
        if len(address) == 4:
            out.append(Item("value", ".".join(address)))
            i = after
        elif dotted and _follows_point(items, j, point):
            i, digits = _digit_run(items, j + 1)
            out.append(Item("value", f"{dotted[0]}.{digits}"))
        else:
            out.append(items[i])
            i += 1
    return out


def _follows_point(items: list[Item], j: int, point: tuple[str, ...]) -> bool:
    return j + 1 < len(items) and items[j].text in point and items[j + 1].kind == "number"


def _digit_run(items: list[Item], i: int) -> tuple[int, str]:
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
