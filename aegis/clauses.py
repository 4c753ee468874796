"""Cutting speech into clauses that each say one thing.

Unit: one clause, characters ``[start, end)`` of a turn's text, cut at commas and before
"and", "but", "et", "mais" where what follows can stand alone. A clause that only answers
(``No.``, ``Yes, dry.``) keeps its answer word. Conditions and reasons stay with what they
condition.

Functions: :func:`read_clauses`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from aegis import clinical_terms as terms
from aegis.statements import Token, answer_polarity, read_sentences, read_tokens

HEADS = frozenset(("drug", "symptom", "test", "act", "trend"))
_CUT = re.compile(
    r"[,;:]\s+|\s+(?=(?:and|but|et|mais|or|then|puis)\s)|(?<=\w)\s+(?=(?:because|parce que)\s)"
)
_JOINERS = re.compile(r"^(?:and|but|et|mais|so|also|then|well|actually|donc|alors)\b[,\s]*", re.I)
_CONDITION = re.compile(
    r"^(?:and |et )?(?:if|when|until|unless|after|before|once|si|quand|après|avant)\b", re.I
)
_REASON = re.compile(
    r"^(?:because|since|especially|surtout|parce|car|as|which|qui|or|ou|so that)\b", re.I
)


@dataclass(frozen=True)
class Clause:
    """One clause with its tokens; ``sentence`` numbers the sentence in its turn."""

    start: int
    end: int
    tokens: tuple[Token, ...]
    sentence: int
    question: bool

    def text(self, turn: str) -> str:
        return turn[self.start : self.end]


@lru_cache(maxsize=100_000)
def read_clauses(text: str, language: str) -> tuple[Clause, ...]:
    """The clauses of a turn."""
    found: list[Clause] = []
    for number, sentence in enumerate(read_sentences(text, language)):
        pieces = _pieces(text, sentence.start, sentence.end)
        for start, end in _joined(text, pieces, language):
            start, end = _trimmed(text, start, end)
            if end > start:
                tokens = _in_sentence(read_tokens(text[start:end], language), sentence.tokens)
                found.append(Clause(start, end, tokens, number, sentence.question))
    return tuple(found)


def _pieces(text: str, start: int, end: int) -> list[tuple[int, int]]:
    cuts = [match.span() for match in _CUT.finditer(text, start, end)]
    starts = [start, *(stop for _, stop in cuts)]
    ends = [*(begin for begin, _ in cuts), end]
    return [(a, b) for a, b in zip(starts, ends, strict=True) if b > a]


def _joined(text: str, pieces: Sequence[tuple[int, int]], language: str) -> list[tuple[int, int]]:
    """Pieces put together again unless the next one stands alone beside a full clause."""
    out: list[tuple[int, int]] = []
    for start, end in pieces:
        if out and not _stands_alone(text[out[-1][0] : out[-1][1]], text[start:end], language):
            out[-1] = (out[-1][0], end)
        else:
            out.append((start, end))
    return out


def _stands_alone(before: str, piece: str, language: str) -> bool:
    body = _JOINERS.sub("", piece)
    if _CONDITION.match(before) and not _has_head_after_condition(before, language):
        return False
    if _PREDICATE[language].match(body) or _REASON.match(body) or _CONDITION.match(body):
        return False
    own = {t.group for t in read_tokens(body, language)}
    past = {t.group for t in read_tokens(before, language)}
    if not past & HEADS:
        # A bare answer word and a sentence with its own subject are two statements.
        return (
            bool(answer_polarity(before, language))
            and _starts_new(body, language)
            and bool(own & HEADS)
        )
    if not own & (HEADS | {"site"}):
        return _JOINERS.match(piece) is not None and _starts_new(body, language)
    joined = _JOINERS.match(piece) is not None
    return _starts_new(body, language) or not joined or "drug" in own


def _has_head_after_condition(before: str, language: str) -> bool:
    return "," in before


_PREDICATE = {
    "en": re.compile(
        r"(?:did|does|do|is|was|were|are|has|have|had|can|could|would|will)(?:n't)?\b", re.I
    ),
    "fr": re.compile(r"(?:est|était|a|avait|ne|n'|sera)(?!\w)", re.I),
}
_STARTS = {
    "en": re.compile(
        r"(?:no|not|there|it|this|that|now|today|the|never|don't|please|let's)\b", re.I
    ),
    "fr": re.compile(
        r"(?:pas|aucune?|il y a|c'est|ça|le|la|les|ne|n'|jamais|maintenant)(?!\w)", re.I
    ),
}


def _starts_new(body: str, language: str) -> bool:
    first = re.match(r"[^\W\d_]+'?", body)
    word = first.group().casefold() if first else ""
    persons = terms.PERSONS[language], terms.FAMILY[language], terms.GROUPS[language]["act"]
    return any(word in table or word.rstrip("'") in table for table in persons) or bool(
        _STARTS[language].match(body)
    )


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """Without joining words in front and marks at both ends (a lone answer keeps its stop)."""
    match = _JOINERS.match(text[start:end])
    if match and match.end() < end - start:
        start += match.end()
    while start < end and not text[start].isalnum():
        start += 1
    while end > start and not (text[end - 1].isalnum() or text[end - 1] in "%)"):
        end -= 1
    return start, end


def _in_sentence(tokens: Sequence[Token], around: Sequence[Token]) -> tuple[Token, ...]:
    """Tokens of a clause with the negation that the whole sentence gives them."""
    denied: dict[tuple[str, str], list[bool]] = {}
    for token in around:
        denied.setdefault((token.group, token.value), []).append(token.negated)
    return tuple(
        Token(t.group, t.value, t.negated or all(denied.get((t.group, t.value), [False])), i)
        for i, t in enumerate(tokens)
    )
