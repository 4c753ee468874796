"""Reading clinical speech: sentences, and the slots of what they say.

Unit: one sentence of one turn. Its words, in canonical form (numbers, doses, dates by
value), become tokens of a *group* and a *value*: drugs, doses, durations, frequencies,
sides, body sites, times of day, actions, persons, order words and plain words. Each token
knows whether a negation reaches it; a question and its answer are read together, over two
turns. Values of one group exclude each other, which is what makes a changed dose a
contradiction and a lost one an omission. Characters are ``[start, end)`` of the turn's text.

Rules and term lists only: no model, no network. Languages are ``en`` and ``fr``.

Functions: :func:`read_sentences`, :func:`read_tokens`, :func:`answer_polarity`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from aegis import clinical_terms as terms
from aegis.canonical import canonical
from aegis.lexicon import is_drug, straight
from aegis.phrases import WEIGHTS, merge_quantities

SCOPE = 9
"""A negation reaches at most this many words ahead."""


@dataclass(frozen=True)
class Token:
    """One meaningful word: its group, its value, whether it is denied, and its place."""

    group: str
    value: str
    negated: bool
    position: int

    @property
    def weight(self) -> float:
        return WEIGHTS.get(self.group, 1.0)


@dataclass(frozen=True)
class Sentence:
    """One sentence; ``question`` where it asks; ``polarity`` of an answer: yes, no or empty."""

    start: int
    end: int
    tokens: tuple[Token, ...]
    question: bool
    polarity: str


_SENTENCE = re.compile(r"[^.?!…]+(?:[.](?=\d)[^.?!…]*)*[.?!…]*")
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


@lru_cache(maxsize=200_000)
def read_sentences(text: str, language: str) -> tuple[Sentence, ...]:
    """The sentences of a turn with their tokens."""
    found = []
    for match in _SENTENCE.finditer(text):
        raw = match.group()
        if not raw.strip() or not any(map(str.isalnum, raw)):
            continue
        lead = len(raw) - len(raw.lstrip())
        words = _words(raw, language)
        found.append(
            Sentence(
                match.start() + lead,
                match.start() + len(raw.rstrip()),
                _tokens(words, language),
                _asks(raw, words, language),
                _polarity(words, language),
            )
        )
    return tuple(found)


@lru_cache(maxsize=200_000)
def read_tokens(text: str, language: str) -> tuple[Token, ...]:
    """The tokens of a stretch of text, taken as one sentence."""
    return _tokens(_words(text, language), language)


def answer_polarity(text: str, language: str) -> str:
    """``yes``, ``no`` or empty: how a stretch of text answers a question."""
    return _polarity(_words(text, language), language)


# --- words -----------------------------------------------------------------------------


def _words(text: str, language: str) -> list[str]:
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
        own = _canonical_words(segment, language)
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


def _canonical_words(segment: str, language: str) -> list[str]:
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


def _asks(raw: str, words: Sequence[str], language: str) -> bool:
    if "?" in raw:
        return True
    first = " ".join(words[:2])
    return _ASKING[language].match(first) is not None


_ASKING = {
    "en": re.compile(
        r"(?:do|does|did|have|has|are|is|was|were|any|can|could|how|what|when|where|which)"
        r" (?:you|he|she|they|it|the|there|your|any|many|long|much|about|often|is|are|was|other"
        r"|pain|fever|allergies)\b|any \w+$"
    ),
    "fr": re.compile(
        r"(?:avez|prenez|êtes|fumez|buvez|pouvez) vous|est-ce|est ce|depuis quand|combien"
        r"|quels?|quelles?"
    ),
}


def _polarity(words: Sequence[str], language: str) -> str:
    """How a sentence answers, judged by its yes and no words at the edge of a segment."""
    yes, no = terms.YES[language], terms.NO[language]
    for segment in _segments(words):
        first, short = segment[0], len(segment) <= 2
        if first in _PLAIN_YES or (first in yes and short):
            return "yes"
        if first in ("no", "non", "nope") and _is_particle(segment, language):
            return "no"
        if first in no and first != "no" and len(segment) <= 3:
            return "no"
        if len(segment) in (2, 3) and segment[-1] in _ECHOES:
            return "yes"
    bare = not any(_classify_alone(word, language)[0] in _THINGS for word in words)
    if bare and any(word in terms.NEGATIONS[language] for word in words):
        return "no"
    return ""


_PLAIN_YES = frozenset(("yes", "yeah", "yep", "oui", "ouais"))
_THINGS = frozenset(("drug", "symptom", "test", "site", "colour", "dose", "word", "act"))
_ECHOES = frozenset(
    ("was", "is", "do", "did", "does", "have", "has", "am", "are", "can", "could", "will")
)


def _is_particle(segment: Sequence[str], language: str) -> bool:
    """``no i have not``: the first word answers; ``no chest pain``: it denies what follows."""
    after = segment[1] if len(segment) > 1 else ""
    return (
        not after or after in terms.BREAKS[language] or after in ("it", "not", "that", "ça", "c'")
    )


def _segments(words: Sequence[str]) -> list[list[str]]:
    segments: list[list[str]] = [[]]
    for word in words:
        if word == ",":
            segments.append([])
        else:
            segments[-1].append(word)
    return [segment for segment in segments if segment]


# --- tokens ----------------------------------------------------------------------------


def _tokens(words: Sequence[str], language: str) -> tuple[Token, ...]:
    """Group, value and negation of each meaningful word."""
    denied = _denied(words, language)
    items = merge_quantities(words, language)
    tokens: list[Token] = []
    for position, (first, width, group, value) in enumerate(items):
        word = words[first]
        if not group:
            group, value = _classify(
                word, _at(words, first - 1), _at(words, first + width), language
            )
        if group == "reading" and value == "1" and _at(words, first - 1) in _POINTERS:
            group = ""  # "the left one" counts nothing
        if group == "family" and tokens and tokens[-1].group == "person":
            tokens.pop()  # "my mother" is about the mother
        if group:
            tokens.append(Token(group, value, denied[first], position))
    return tuple(tokens)


def _at(words: Sequence[str], index: int) -> str:
    return words[index] if 0 <= index < len(words) else ""


_POINTERS = frozenset(
    ["the", "this", "that", "left", "right", "other", "which", "brown", "blue", "white", "red"]
)
_BACK = frozenset(
    [
        "come",
        "came",
        "comes",
        "coming",
        "go",
        "went",
        "going",
        "get",
        "got",
        "call",
        "ring",
        "be",
        "is",
        "are",
        "was",
        "came",
        "bring",
        "get",
    ]
)
_LEFT = frozenset(["has", "have", "had", "he", "she", "i", "they", "you", "we", "ve", "just"])


def _classify(word: str, before: str, after: str, language: str) -> tuple[str, str]:
    """The group and value of one word; an empty group says that it carries nothing."""
    if word == "back" and before in _BACK:
        return "", ""
    if word == "left" and before in _LEFT:
        return "word", "leave"
    group, value = _classify_alone(word, language)
    if value == "short" and after not in ("of", "breath"):
        return "word", value
    return group, value


@lru_cache(maxsize=100_000)
def _classify_alone(word: str, language: str) -> tuple[str, str]:
    if word == "," or word in ("ne", "n'"):
        return "", ""
    for group, values in terms.GROUPS[language].items():
        if word in values:
            return group, values[word]
    for group, table in (
        ("family", terms.FAMILY),
        ("staff", terms.STAFF),
        ("person", terms.PERSONS),
        ("site", terms.SITES),
    ):
        if word in table[language]:
            return group, table[language][word]
    if word in terms.SUSPECTED[language]:
        return "doubt", "suspected"
    spelled = terms.SYNONYMS[language].get(word, word)
    if spelled in terms.SYMPTOMS[language] or _plain_spelling(spelled) in terms.SYMPTOMS[language]:
        return "symptom", stem(spelled, language)
    if spelled in terms.TESTS[language]:
        return "test", stem(spelled, language)
    if word in terms.STOP[language] or word in terms.NEGATIONS[language] or len(word) < 2:
        return "", ""
    if word in terms.DRUGS or (len(word) > 4 and is_drug(word)):
        return "drug", unicodedata.normalize("NFC", word.casefold())
    return "word", stem(spelled, language)


def _plain_spelling(word: str) -> str:
    """American spelling of a British one: diarrhoea, anaemia, tumour."""
    return word.replace("oe", "e").replace("ae", "e").replace("our", "or")


_ENDINGS = {
    "en": ("ingly", "edly", "ings", "ing", "ies", "ied", "ed", "es", "ly", "s", "e", "y"),
    "fr": (
        "ements",
        "ement",
        "ations",
        "ation",
        "issez",
        "aient",
        "ées",
        "ée",
        "és",
        "er",
        "ez",
        "ait",
        "ent",
        "es",
        "é",
        "e",
        "s",
        "x",
        "ir",
        "it",
        "i",
    ),
}


@lru_cache(maxsize=100_000)
def stem(word: str, language: str) -> str:
    """A word without its ending and accents, so that forms of one word meet."""
    word = _plain_spelling(word) if language == "en" else word
    for ending in _ENDINGS[language]:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    if len(word) > 3 and word[-1] == word[-2]:
        word = word[:-1]
    parts = unicodedata.normalize("NFD", word.replace("œ", "oe"))
    return "".join(c for c in parts if not unicodedata.combining(c))


# --- negation --------------------------------------------------------------------------


def _denied(words: Sequence[str], language: str) -> list[bool]:
    """Which words a negation reaches: ahead up to a break, and its subject in the same segment.

    ``no fever`` denies what follows; ``the pulse is not 88`` denies the whole predicate.
    """
    denied = [False] * len(words)
    for i, word in enumerate(words):
        if not _denies(words, i, language):
            continue
        reach = _ahead(words, i, language)
        verbal = (
            word in _VERBAL
            and i > 0
            and words[i - 1] not in (",", "or", "and", "but", "et", "mais")
        )
        if verbal or not any(_carries(words[j], language) for j in reach):
            reach = [*reach, *_behind(words, i, language)]
        for j in reach:
            denied[j] = True
    return denied


_VERBAL = frozenset(("not", "never", "pas", "jamais", "plus", "deny", "denies"))


def _denies(words: Sequence[str], i: int, language: str) -> bool:
    word = words[i]
    if word in ("no", "non"):
        segment = []
        for other in words[i:]:
            if other == ",":
                break
            segment.append(other)
        first = i == 0 or words[i - 1] == ","
        return not (first and _is_particle(segment, language)) and word == "no"
    if word in ("out", "écarter", "écarte") and (
        word != "out" or _at(words, i - 1)[:4] in ("rule", "ruli")
    ):
        return True
    if word in ("plus", "que"):
        earlier = words[max(0, i - 4) : i]
        return word == "plus" and any(w in ("ne", "n'") for w in earlier)
    if word == "pas" and _at(words, i - 1) == "n'est-ce":
        return False
    if word == "not" and _at(words, i + 1) == "only":
        return False
    return word in terms.NEGATIONS[language]


def _ahead(words: Sequence[str], i: int, language: str) -> list[int]:
    reach = []
    start = i + 1
    if language == "fr":  # "ne saigne pas", "n'ai pas": the verb stands inside
        inside = [j for j in range(max(0, i - 4), i) if words[j] in ("ne", "n'")]
        start = inside[-1] + 1 if inside else start
    for j in range(start, min(len(words), i + 1 + SCOPE)):
        if j > i and (words[j] in terms.BREAKS[language] or words[j] in _SUBJECTS):
            break
        if j > i and words[i] == "no" and _other_person(words[j], language):
            break
        if words[j] in (",", "and", "et") and _new_start(words, j + 1, language):
            break
        reach.append(j)
    return reach


_SUBJECTS = frozenset(
    ["i", "he", "she", "we", "they", "it", "je", "j'", "il", "elle", "on", "ils", "elles"]
)


def _new_start(words: Sequence[str], i: int, language: str) -> bool:
    """Does another statement begin here: a person, an article, a yes or no, a break?"""
    word = _at(words, i)
    edge = terms.BREAKS[language] | terms.YES[language] | terms.NO[language] | _ARTICLES
    return not word or word in edge or _other_person(word, language)


_ARTICLES = frozenset(
    (
        "some",
        "a",
        "an",
        "the",
        "this",
        "mild",
        "slight",
        "un",
        "une",
        "des",
        "du",
        "le",
        "la",
        "les",
    )
)


def _other_person(word: str, language: str) -> bool:
    return word in terms.PERSONS[language] or word in terms.FAMILY[language]


def _behind(words: Sequence[str], i: int, language: str) -> list[int]:
    reach: list[int] = []
    for j in range(i - 1, -1, -1):
        full = any(_carries(words[k], language) for k in reach)
        if words[j] in _TURNS or (words[j] == "," and full):
            break
        reach.append(j)
    return reach


_TURNS = frozenset(
    [
        "but",
        "although",
        "because",
        "when",
        "if",
        "so",
        "and",
        "mais",
        "parce",
        "quand",
        "si",
        "car",
        "et",
    ]
)


def _carries(word: str, language: str) -> bool:
    return _classify_alone(word, language)[0] not in ("", "person", "family", "staff")
