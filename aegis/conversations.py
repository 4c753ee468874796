"""A transcript ready for look-ups, and what a fact in it says.

Units: one conversation, one text a turn; one statement, the tokens of a fact's literal
evidence with the question that it answers. Turns and sentences count from 0.

Functions: :func:`read_conversation`, :func:`read_statement`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from aegis.statements import Sentence, Token, answer_polarity, read_sentences, read_tokens

CORE = frozenset(("drug", "symptom", "test", "site", "word", "act", "family"))

Key = tuple[str, str]
Signature = tuple[tuple[str, str, bool], ...]


@dataclass(frozen=True)
class Place:
    """One sentence of a conversation: its turn and what it says."""

    turn: int
    sentence: Sentence


@dataclass(frozen=True)
class Conversation:
    """A transcript ready for look-ups: turns, sentences in order, value -> sentences."""

    texts: tuple[str, ...]
    language: str
    places: tuple[Place, ...]
    index: dict[Key, list[int]]
    first: tuple[int, ...]
    """Index of the first sentence of each turn, and one past the last."""
    says: frozenset[Signature]
    """What each of its sentences says: groups, values, negations."""


@dataclass(frozen=True)
class Statement:
    """What a fact says, and the question that it answers (``asked``), if its words need one."""

    tokens: tuple[Token, ...]
    asked: tuple[Token, ...]
    polarity: str
    turn: int
    context: tuple[tuple[Key, int], ...] = ()
    """What the same sentences say beside the evidence, and how often; it explains itself."""
    others: frozenset[Signature] = frozenset()
    """What the other sentences of the source say."""


@lru_cache(maxsize=64)
def read_conversation(texts: tuple[str, ...], language: str) -> Conversation:
    """Read a transcript, one text a turn."""
    places: list[Place] = []
    index: dict[Key, list[int]] = {}
    first = []
    for turn, text in enumerate(texts):
        first.append(len(places))
        for sentence in read_sentences(text, language):
            for token in sentence.tokens:
                found = index.setdefault((token.group, token.value), [])
                if not found or found[-1] != len(places):
                    found.append(len(places))
            places.append(Place(turn, sentence))
    says = frozenset(signature(place.sentence.tokens) for place in places)
    return Conversation(texts, language, tuple(places), index, (*first, len(places)), says)


def signature(tokens: Sequence[Token]) -> Signature:
    return tuple((t.group, t.value, t.negated) for t in tokens)


def read_statement(
    conversation: Conversation, turn: int, evidence: str, needs_question: bool | None = None
) -> Statement:
    """What the evidence in a turn says.

    ``needs_question``: whether the evidence means nothing without the question before it;
    None lets the rules decide (an answer that names less than one clinical thing).
    """
    text, language = conversation.texts[turn], conversation.language
    start = max(text.find(evidence), 0)
    own = range(conversation.first[turn], conversation.first[turn + 1])
    inside = [
        i
        for i in own
        if conversation.places[i].sentence.start < start + len(evidence)
        and conversation.places[i].sentence.end > start
    ]
    around = [t for i in inside for t in conversation.places[i].sentence.tokens]
    tokens = _flagged(read_tokens(evidence, language), around)
    asked: tuple[Token, ...] = ()
    answers = _elliptical(tokens) or bool(answer_polarity(evidence, language))
    if inside and (needs_question or (needs_question is None and answers)):
        asked = _question_before(conversation, inside[0])
    polarity = answer_polarity(evidence, language) if asked else ""
    beside = Counter((t.group, t.value) for t in around)
    beside.subtract((t.group, t.value) for t in tokens)
    context = tuple((key, n) for key, n in beside.items() if n > 0)
    mine = {signature(conversation.places[i].sentence.tokens) for i in inside}
    return Statement(tokens, asked, polarity, turn, context, conversation.says - mine - {()})


def _flagged(tokens: Sequence[Token], around: Sequence[Token]) -> tuple[Token, ...]:
    """Tokens with the negation that reaches them in the whole sentence, numbered in order."""
    found, at = [], 0
    for number, token in enumerate(tokens):
        negated = token.negated
        for i in range(at, len(around)):
            if (around[i].group, around[i].value) == (token.group, token.value):
                negated, at = around[i].negated, i + 1
                break
        found.append(Token(token.group, token.value, negated, number))
    return tuple(found)


def _elliptical(tokens: Sequence[Token]) -> bool:
    return sum(token.weight for token in tokens if token.group in CORE) < 2.0


def _question_before(conversation: Conversation, sentence: int) -> tuple[Token, ...]:
    """The last question at most three sentences back, with its neighbours of the same turn."""
    for i in range(sentence - 1, max(-1, sentence - 4), -1):
        if conversation.places[i].sentence.question:
            return conversation.places[i].sentence.tokens
    return ()
