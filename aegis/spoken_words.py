"""Words of clinical speech in one form: contractions, fillers, numbers, restarts.

Unit: one stretch of text as a list of canonical words (numbers, doses and dates by value, in
the way of :mod:`aegis.canonical`); ``,`` marks the end of a segment. Languages ``en``, ``fr``.

Functions: :func:`spoken_words`, :func:`canonical_words`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from aegis import clinical_terms as terms
from aegis.canonical import canonical
from aegis.lexicon import straight

_SEGMENT = re.compile(r"[,;:](?=\s|$)")
_CONTRACTIONS = (
    (re.compile(r"\bcan'?t\b|\bcannot\b", re.I), "can not"),
    (re.compile(r"\bwon't\b", re.I), "will not"),
    (re.compile(r"n't\b", re.I), " not"),
    (re.compile(r"'(?:ve|m|re|ll|d)\b", re.I), " "),
    (re.compile(r"\b(?:you know|i mean|i think|i guess|i'd say|sort of|kind of)\b,?", re.I), " "),
)
_PHRASES = {
    "en": (
        (re.compile(r"\b(?:pass(?:ed|es|ing)?|black(?:ed|s|ing)?) out\b", re.I), "fainted"),
        (re.compile(r"\b(?:throw(?:s|ing|n)?|threw) up\b", re.I), "vomiting"),
        (re.compile(r"\bshort of breath\b", re.I), "breathless"),
        (re.compile(r"\bshortness of breath\b", re.I), "breathless"),
        (re.compile(r"\bE C G\b", re.I), "ecg"),
    ),
    "fr": (
        (re.compile(r"\bsans doute\b", re.I), "probablement"),
        (re.compile(r"\bdes deux côtés\b", re.I), "bilatéral"),
        (re.compile(r"\bE C G\b", re.I), "ecg"),
    ),
}


_FILLER = {
    language: re.compile(r"(?<![\w'])(?:" + "|".join(sorted(words)) + r")(?![\w'])\s*,?", re.I)
    for language, words in terms.FILLERS.items()
}


def spoken_words(text: str, language: str) -> list[str]:
    """Canonical words; ``,`` marks the end of a segment, fillers are gone."""
    text = straight(text)
    if language == "en":
        for pattern, plain in _CONTRACTIONS:
            text = pattern.sub(plain, text)
    for pattern, plain in _PHRASES[language]:
        text = pattern.sub(plain, text)
    text = _FILLER[language].sub(" ", text)
    words: list[str] = []
    for segment in _SEGMENT.split(text):
        own = canonical_words(segment, language)
        words += [*own, ","] if own else []
    return _without_repeats(words[:-1])


_WORD = re.compile(r"[^\W\d_]+'(?!s\b)|[^\W\d_]+|'s\b|%")
_DIGIT_OR_MARK = re.compile(r"[\d@/\-]")
_VALUES = frozenset(
    [
        "zero",
        "nought",
        "oh",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "thirteen",
        "fourteen",
        "fifteen",
        "sixteen",
        "seventeen",
        "eighteen",
        "nineteen",
        "twenty",
        "thirty",
        "forty",
        "fourty",
        "fifty",
        "sixty",
        "seventy",
        "eighty",
        "ninety",
        "hundred",
        "thousand",
        "million",
        "first",
        "second",
        "third",
        "fourth",
        "fifth",
        "sixth",
        "seventh",
        "eighth",
        "ninth",
        "tenth",
        "eleventh",
        "twelfth",
        "thirteenth",
        "fourteenth",
        "fifteenth",
        "sixteenth",
        "seventeenth",
        "eighteenth",
        "nineteenth",
        "twentieth",
        "thirtieth",
        "half",
        "quarter",
        "point",
        "dot",
        "double",
        "triple",
        "naught",
        "milligram",
        "milligrams",
        "mgs",
        "microgram",
        "micrograms",
        "gram",
        "grams",
        "kilogram",
        "kilograms",
        "kilo",
        "kilos",
        "milliliter",
        "milliliters",
        "millilitre",
        "millilitres",
        "mls",
        "percent",
        "centimeters",
        "centimetres",
        "ug",
        "mg",
        "dr",
        "mr",
        "mrs",
        "rd",
        "ave",
        "blvd",
        "underscore",
        "dash",
        "hyphen",
        "noon",
        "midnight",
    ]
)
"""English words that take part in a value; a segment without them is its own canonical form."""
_LETTERS = frozenset(["a", "i", "s", "t", "d", "m", "o"])


def canonical_words(segment: str, language: str) -> list[str]:
    """``canonical(segment).split()``, the short way where no value can be in it."""
    if language == "en" and not _DIGIT_OR_MARK.search(segment):
        words = _WORD.findall(segment.casefold())
        if _VALUES.isdisjoint(words) and all(len(w) > 1 or w in _LETTERS for w in words):
            return words
    return canonical(segment, language).split()


def _without_repeats(words: Sequence[str]) -> list[str]:
    """``i have , i have had`` -> ``i have had``: a restart says nothing new."""
    kept = list(words)
    for size in (3, 2, 1):
        i = 0
        while i + size <= len(kept):
            j = i + size
            after = j + (j < len(kept) and kept[j] == ",")
            if kept[i:j] == kept[after : after + size] and not any(map(_has_digit, kept[i:j])):
                del kept[i:after]
            else:
                i += 1
    return kept


def _has_digit(word: str) -> bool:
    return any(c.isdigit() for c in word)
