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

Functions: :func:`read_conversation`, :func:`read_statement`, :func:`compare`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import lru_cache

from aegis.lexicon import drugs
from aegis.matching import sound_key
from aegis.statements import Sentence, Token, answer_polarity, read_sentences, read_tokens

LABELS = ("preserved", "partial", "missing", "contradicted", "uncertain")
LEAST, ENOUGH = 0.4, 0.75
DENIED = 0.2
"""A negation gained or lost on this share of what is said turns the statement round."""
UNCLEAR = 0.6
"""A word that shares this much of a drug's letters may be it: uncertain."""
NEAR = 6
"""A changed value stands at most this many tokens from where the old one is expected."""
CORE = frozenset(("drug", "symptom", "test", "site", "word", "act", "family"))
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
_WORDS = frozenset(("word", "symptom", "test", "drug", "site"))
_LEADS = frozenset(("person", "family", "staff"))
_HEADS = {"dose": ("drug",), "frequency": ("drug",), "daytime": ("drug",), "side": ("site",)}

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


@dataclass(frozen=True)
class Finding:
    """One slot that is not as it was: ``changed``, ``denied``, ``lost``, ``order``, ``answer``."""

    kind: str
    group: str
    source: str
    target: str = ""


@dataclass(frozen=True)
class Comparison:
    """The label of one statement, the literal target evidence and its turn, and why."""

    label: str
    evidence: str = ""
    turn: int | None = None
    findings: tuple[Finding, ...] = field(default=())


# --- reading ---------------------------------------------------------------------------


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
    says = frozenset(_signature(place.sentence.tokens) for place in places)
    return Conversation(texts, language, tuple(places), index, (*first, len(places)), says)


def _signature(tokens: Sequence[Token]) -> Signature:
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
    mine = {_signature(conversation.places[i].sentence.tokens) for i in inside}
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


# --- comparing -------------------------------------------------------------------------


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
    findings, share = _compare_tokens(statement, said)
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
        _signature(target.places[i].sentence.tokens) in statement.others
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


def _compare_tokens(statement: Statement, said: Sequence[Token]) -> tuple[list[Finding], float]:
    """What is not as it was, and the share of the weight that is said (changed values too)."""
    wanted = statement.tokens
    places: dict[Key, list[Token]] = {}
    for token in said:
        places.setdefault((token.group, token.value), []).append(token)
    own = {(t.group, t.value) for t in wanted}
    own |= {key for key, n in statement.context if len(places.get(key, ())) <= n}
    matched: dict[int, Token] = {}
    for token in wanted:
        found = places.get((token.group, token.value))
        if found:
            matched[token.position] = _closest(found, token, matched)
    findings: list[Finding] = []
    total = heard = denied = weighed = 0.0
    for token in wanted:
        if token.group in _LEADS and token.group != "family":
            continue
        total += token.weight
        match = matched.get(token.position)
        if match is not None:
            heard += token.weight
            weighed += token.weight
            denied += token.weight * (match.negated != token.negated)
            continue
        other = _substitute(token, own, said, matched)
        if other is None:
            garbled = _garbled(token, wanted, said)
            kind = "unclear" if garbled else "lost"
            findings.append(Finding(kind, token.group, token.value, garbled))
            continue
        heard += token.weight
        if other.value != token.value and not _same(token, other):
            findings.append(Finding("changed", token.group, token.value, other.value))
        elif token.group in CORE:
            weighed += token.weight
            denied += token.weight * (other.negated != token.negated)
    if weighed and denied / weighed >= DENIED:
        findings.append(Finding("denied", "polarity", "", ""))
    findings += _detached(wanted, said, matched)
    findings += _reversed(wanted, matched, said)
    findings += _lead(wanted, said, matched)
    return findings, heard / total if total else 0.0


def _closest(found: Sequence[Token], token: Token, matched: dict[int, Token]) -> Token:
    """Among equal words the one with the same negation, then nearest to the last match."""
    last = matched[max(matched)].position if matched else -1
    return min(
        found,
        key=lambda t: (t.negated != token.negated, t.position < last, abs(t.position - last - 1)),
    )


def _substitute(
    token: Token, own: set[Key], said: Sequence[Token], matched: dict[int, Token]
) -> Token | None:
    """What stands in the place of an absent value: a spelling of it or another of its group."""
    free = [t for t in said if (t.group, t.value) not in own]
    alike = [t for t in free if t.group in _WORDS and token.group in _WORDS and _same(token, t)]
    if alike:
        return alike[0]
    if token.group in ("word", "symptom", "test", "order") and token.group != "order":
        return None
    group = {token.group} | (
        {"reading"} if token.group in ("dose", "frequency", "duration") else set()
    )
    if token.group == "reading":
        group |= {"dose", "date"}
    rivals = [
        t for t in free if t.group in group and abs(t.position - _expected(token, matched)) <= NEAR
    ]
    return min(rivals, key=lambda t: abs(t.position - _expected(token, matched)), default=None)


def _expected(token: Token, matched: dict[int, Token]) -> int:
    """Where a token should stand, judged by its nearest matched neighbour."""
    if not matched:
        return token.position
    near = min(matched, key=lambda i: abs(i - token.position))
    return matched[near].position + token.position - near


@lru_cache(maxsize=100_000)
def _alike(a: str, b: str) -> bool:
    """One word in two spellings: it sounds the same or nearly all letters agree."""
    if a == b:
        return True
    if min(len(a), len(b)) < 4 or a[0] != b[0] or abs(len(a) - len(b)) > 3:
        return False
    ratio = SequenceMatcher(None, a, b, autojunk=False).ratio()
    return ratio >= 0.86 or (ratio >= 0.75 and sound_key(a) == sound_key(b))


def _garbled(token: Token, wanted: Sequence[Token], said: Sequence[Token]) -> str:
    """A word that may be the drug that was not found: most letters agree, but not enough."""
    if token.group != "drug":
        return ""
    own = {t.value for t in wanted}
    for other in said:
        if other.group != "word" or other.value in own or other.value[0] != token.value[0]:
            continue
        if SequenceMatcher(None, token.value, other.value, autojunk=False).ratio() >= UNCLEAR:
            return other.value
    return ""


def _same(token: Token, other: Token) -> bool:
    """The same value in another writing; two known drugs are never one."""
    if token.group in ("dose", "frequency", "duration", "reading") and other.group == "reading":
        return token.value.split()[0] == other.value  # the unit was not heard
    if token.group == "reading" and other.group == "dose":
        return token.value == other.value.split()[0]
    if token.group == "site" or other.group == "site":
        return token.value == other.value
    if token.group == "drug" and other.group == "drug" and {token.value, other.value} <= drugs():
        return False
    return token.group in _WORDS and other.group in _WORDS and _alike(token.value, other.value)


def _detached(
    wanted: Sequence[Token], said: Sequence[Token], matched: dict[int, Token]
) -> list[Finding]:
    """A dose that is said, but of another drug; a side, but of another site."""
    findings = []
    for token in wanted:
        heads = _HEADS.get(token.group)
        if heads is None or token.position not in matched:
            continue
        head = _head(token, wanted, heads)
        if head is None or head.position not in matched:
            continue
        place = matched[head.position]
        if len({t.value for t in said if t.group in heads}) < 2:
            continue
        mine = [t for t in said if t.group == token.group and _head(t, said, heads) == place]
        if mine and all(t.value != token.value for t in mine):
            findings.append(Finding("changed", token.group, token.value, mine[0].value))
    return findings


def _head(token: Token, tokens: Sequence[Token], heads: Sequence[str]) -> Token | None:
    """The drug or site that a modifier belongs to: a side the next one, a dose the last one."""
    places = [t for t in tokens if t.group in heads]
    if token.group == "side":
        return min(
            (t for t in places if t.position > token.position),
            key=lambda t: t.position,
            default=None,
        )
    before = [t for t in places if t.position < token.position]
    after = [t for t in places if t.position > token.position]
    return max(before, key=lambda t: t.position) if before else (after[0] if after else None)


def _reversed(
    wanted: Sequence[Token], matched: dict[int, Token], said: Sequence[Token]
) -> list[Finding]:
    """Two events in the other order around the same order word (or after ``first``)."""
    ordered = any(t.group == "order" or t.value in _FIRST for t in wanted)
    if not ordered or not any(t.group == "order" or t.value in _FIRST for t in said):
        return []
    events = [
        t
        for t in wanted
        if t.group in ("symptom", "drug", "test", "word")
        and t.position in matched
        and t.value not in _FIRST
    ]
    pairs = [
        (matched[a.position].position, matched[b.position].position)
        for i, a in enumerate(events)
        for b in events[i + 1 :]
        if a.value != b.value
    ]
    turned = sum(x > y for x, y in pairs)
    return [Finding("order", "order", "", "")] if pairs and turned * 2 >= len(pairs) else []


_FIRST = frozenset(("1st", "first", "firs", "premier", "abord", "then", "puis", "ensuite"))


def _lead(
    wanted: Sequence[Token], said: Sequence[Token], matched: dict[int, Token]
) -> list[Finding]:
    """Another person just before the first thing that is said of somebody."""
    lead = next((t for t in wanted[:2] if t.group in _LEADS), None)
    if lead is None:
        return []
    after = [i for i in sorted(matched) if i > lead.position and wanted[i].group not in _LEADS]
    place = matched[after[0]].position if after else len(said)
    gap = after[0] - lead.position if after else 1
    before = [t for t in said if place - 1 - gap <= t.position < place and t.group in _LEADS]
    if not before or any(t.value == lead.value for t in before):
        return []
    return [Finding("changed", "person", lead.value, before[-1].value)]


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
    bare = not any(t.group not in _LEADS for t in statement.tokens)
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
