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
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from aegis import clinical_terms as terms
from aegis.negation import denied_words, is_particle, word_at
from aegis.phrases import WEIGHTS, merge_quantities
from aegis.spoken_words import spoken_words
from aegis.word_groups import classify, classify_alone


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


@lru_cache(maxsize=200_000)
def read_sentences(text: str, language: str) -> tuple[Sentence, ...]:
    """The sentences of a turn with their tokens."""
    found = []
    for match in _SENTENCE.finditer(text):
        raw = match.group()
        if not raw.strip() or not any(map(str.isalnum, raw)):
            continue
        lead = len(raw) - len(raw.lstrip())
        words = spoken_words(raw, language)
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
    return _tokens(spoken_words(text, language), language)


def answer_polarity(text: str, language: str) -> str:
    """``yes``, ``no`` or empty: how a stretch of text answers a question."""
    return _polarity(spoken_words(text, language), language)


# --- questions and answers -------------------------------------------------------------


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
        if first in ("no", "non", "nope") and is_particle(segment, language):
            return "no"
        if first in no and first != "no" and len(segment) <= 3:
            return "no"
        if len(segment) in (2, 3) and segment[-1] in _ECHOES:
            return "yes"
    bare = not any(classify_alone(word, language)[0] in _THINGS for word in words)
    if bare and any(word in terms.NEGATIONS[language] for word in words):
        return "no"
    return ""


_PLAIN_YES = frozenset(("yes", "yeah", "yep", "oui", "ouais"))
_THINGS = frozenset(("drug", "symptom", "test", "site", "colour", "dose", "word", "act"))
_ECHOES = frozenset(
    ("was", "is", "do", "did", "does", "have", "has", "am", "are", "can", "could", "will")
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
    denied = denied_words(words, language)
    items = merge_quantities(words, language)
    tokens: list[Token] = []
    for position, (first, width, group, value) in enumerate(items):
        word = words[first]
        if not group:
            group, value = classify(
                word, word_at(words, first - 1), word_at(words, first + width), language
            )
        if group == "reading" and value == "1" and word_at(words, first - 1) in _POINTERS:
            group = ""  # "the left one" counts nothing
        if group == "family" and tokens and tokens[-1].group == "person":
            tokens.pop()  # "my mother" is about the mother
        if group:
            tokens.append(Token(group, value, denied[first], position))
    return tuple(tokens)


_POINTERS = frozenset(
    ["the", "this", "that", "left", "right", "other", "which", "brown", "blue", "white", "red"]
)
