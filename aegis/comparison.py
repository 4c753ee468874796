"""Is a source fact still said in another transcript of the conversation?

Unit: one statement (literal evidence in one source turn, with the question it answers)
against one target transcript. The statement's slots are looked for where the target says
most of them, near the same turn; a slot value with another value of its group in its place
is *changed*, one without is *lost*. Labels follow from what was found:

- ``contradicted``: a changed slot (dose, drug, side, site, time, action, person ...), a
  negation gained or lost, an answer turned round, an order of events reversed;
- ``missing``: less than ``LEAST`` of the statement's weight is said;
- ``partial``: a modifier is lost, or less than ``ENOUGH`` of the weight is said;
- ``uncertain``: a word may be the drug, garbled;
- ``preserved``: otherwise.

Weights are in :mod:`aegis.phrases`. The evidence of a label is literal in its target turn.

Transcripts and statements are read in :mod:`aegis.conversations`, slots compared in
:mod:`aegis.slots`. Functions: :func:`compare`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from aegis.conversations import CORE, Conversation, Key, Statement, signature
from aegis.slots import LEADS, Finding, compare_tokens
from aegis.statements import Token

LABELS = ("preserved", "partial", "missing", "contradicted", "uncertain")
LEAST, ENOUGH = 0.4, 0.75
MODIFIERS = frozenset(
    (
        "dose",
        "duration",
        "frequency",
        "reading",
        "date",
        "side",
        "daytime",
        "day",
        "month",
        "order",
        "severity",
        "level",
        "quality",
        "colour",
        "often",
        "ingest",
        "doubt",
        "rank",
        "kind",
        "portion",
    )
)


@dataclass(frozen=True)
class Comparison:
    """The label of one statement, the literal target evidence and its turn, and why."""

    label: str
    evidence: str = ""
    turn: int | None = None
    findings: tuple[Finding, ...] = field(default=())


@dataclass(frozen=True)
class _Window:
    """Consecutive sentences of one target turn in which a statement may be said."""

    first: int
    last: int
    coverage: float
    asked: float


def compare(statement: Statement, target: Conversation, turn: int | None = None) -> Comparison:
    """Judge a statement against a target transcript.

    ``turn``: where the statement is expected; its own turn number by default.
    """
    expected = statement.turn if turn is None else turn
    window = _best_window(statement, target, expected)
    if window is None:
        return Comparison("missing")
    said = _number(
        [t for p in target.places[window.first : window.last + 1] for t in p.sentence.tokens]
    )
    findings, share = compare_tokens(statement, said)
    findings += _answer_findings(statement, target, window, said)
    label = _label(statement, window, findings, share)
    if label != "preserved" and _explained(statement, target, window.first, window.last):
        label = "missing"  # these words are another statement of the source
    if label == "missing":
        return Comparison("missing", findings=tuple(findings))
    evidence, at = _literal(target, window)
    return Comparison(label, evidence, at, tuple(findings))


def _explained(statement: Statement, target: Conversation, first: int, last: int) -> bool:
    """Does the source say all of these sentences, as they are, somewhere else?"""
    return all(
        signature(target.places[i].sentence.tokens) in statement.others
        for i in range(first, last + 1)
    )


def _number(tokens: Iterable[Token]) -> list[Token]:
    return [Token(t.group, t.value, t.negated, i) for i, t in enumerate(tokens)]


def _literal(target: Conversation, window: _Window) -> tuple[str, int]:
    turn = target.places[window.first].turn
    start, end = (
        target.places[window.first].sentence.start,
        target.places[window.last].sentence.end,
    )
    return target.texts[turn][start:end], turn


def _best_window(statement: Statement, target: Conversation, expected: int) -> _Window | None:
    """The run of at most three sentences that says most of it, near the expected turn."""
    wanted = {(t.group, t.value): t.weight for t in statement.tokens}
    asked = {(t.group, t.value): t.weight for t in statement.asked if t.group in CORE}
    total = sum(wanted.values())
    named = any(t.group in CORE for t in statement.tokens)
    weight = 0.15 if named else 0.4
    best, best_score = None, 0.0
    for first in _candidates(statement, target, expected):
        turn = target.places[first].turn
        if not named and abs(turn - expected) > 2:
            continue  # "in two weeks" alone could be anybody's
        question = _asked_share(asked, target, first) if asked else 0.0
        near = 1.0 / (1.0 + abs(turn - expected))
        said: set[Key] = set()
        for last in range(first, min(first + 3, target.first[turn + 1])):
            said |= {(t.group, t.value) for t in target.places[last].sentence.tokens}
            covered = sum(weight for key, weight in wanted.items() if key in said)
            share = covered / total if total else 0.0
            if asked and target.places[first].sentence.question:
                share *= 0.5  # the question itself is not its answer
            score = share + 0.6 * question + weight * near - 0.03 * (last - first)
            taken = _explained(statement, target, first, last)
            score -= (0.5 + 0.3 * bool(asked)) * taken
            possible = share > 0 or question >= 0.5 or (turn == expected and not taken)
            if possible and score > best_score:
                best, best_score = _Window(first, last, share, question), score
    return best


def _candidates(statement: Statement, target: Conversation, expected: int) -> list[int]:
    """Sentences worth looking at: those with the rarest values, and after a like question."""
    hits: dict[int, float] = {}
    for token in statement.tokens:
        found = target.index.get((token.group, token.value), ())
        for i in found:
            hits[i] = hits.get(i, 0.0) + token.weight / (1.0 + len(found)) ** 0.5
    places: dict[int, float] = {}
    for i, score in sorted(hits.items(), key=lambda item: (-item[1], item[0]))[:8]:
        places[i] = score
        if i > 0 and target.places[i - 1].turn == target.places[i].turn:
            places.setdefault(i - 1, score)
    for i in _after_questions(statement.asked, target):
        places.setdefault(i, 0.0)
    if expected < len(target.texts):
        for i in range(target.first[expected], target.first[expected + 1]):
            places.setdefault(i, 0.0)
    return list(places)


def _after_questions(asked: Sequence[Token], target: Conversation) -> list[int]:
    found: dict[int, float] = {}
    for token in asked:
        if token.group in CORE:
            for i in target.index.get((token.group, token.value), ())[:50]:
                if target.places[i].sentence.question:
                    found[i] = found.get(i, 0.0) + token.weight
    best = sorted(found, key=lambda i: (-found[i], i))[:4]
    return [j for i in best for j in range(i + 1, min(i + 3, len(target.places)))]


def _asked_share(asked: dict[Key, float], target: Conversation, sentence: int) -> float:
    """How much of the question stands in the questions just before a sentence."""
    said: set[Key] = set()
    for i in range(sentence - 1, max(-1, sentence - 4), -1):
        place = target.places[i]
        if place.turn < target.places[sentence].turn - 2:
            break
        if place.sentence.question:
            said |= {(t.group, t.value) for t in place.sentence.tokens}
    return sum(w for key, w in asked.items() if key in said) / sum(asked.values())


def _answer_findings(
    statement: Statement, target: Conversation, window: _Window, said: Sequence[Token]
) -> list[Finding]:
    """An answer that turned round, or that cannot be read."""
    if not statement.polarity:
        return []
    heard = ""
    start = window.first
    while start > target.first[target.places[start].turn]:
        if target.places[start - 1].sentence.tokens:
            break
        start -= 1  # a bare yes or no before what was found
    for place in target.places[start : window.last + 1]:
        heard = heard or place.sentence.polarity
    if not heard:
        asked = {(t.group, t.value) for t in statement.asked if t.group in CORE}
        repeated = [t for t in said if (t.group, t.value) in asked]
        if repeated:
            heard = "no" if repeated[0].negated else "yes"
    if heard and heard != statement.polarity:
        return [Finding("answer", "polarity", statement.polarity, heard)]
    core = [t for t in statement.tokens if t.group in CORE]
    return [] if heard or core else [Finding("unread", "polarity", statement.polarity)]


def _label(
    statement: Statement, window: _Window, findings: Sequence[Finding], share: float
) -> str:
    kinds = {finding.kind for finding in findings}
    bare = not any(t.group not in LEADS for t in statement.tokens)
    if statement.asked and window.asked < 0.5 and share < 0.6:
        return "missing"
    if "answer" in kinds:
        return "contradicted"
    if bare:
        return "missing" if "unread" in kinds else "preserved"
    changed = kinds & {"changed", "denied", "order"}
    if changed and (share >= LEAST or window.asked >= 0.5):
        return "contradicted"
    if "unclear" in kinds:
        return "uncertain"
    if share < LEAST:
        return "missing"
    lost = any(f.kind == "lost" and f.group in MODIFIERS for f in findings)
    return "partial" if lost or share < ENOUGH else "preserved"
