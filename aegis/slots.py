"""Slot by slot: what of a statement is not as it was in the words that should say it.

Unit: one slot (a token's group and value) of one statement against the tokens of a window of
the target. A value with another of its group in its place is *changed*, one without is *lost*.

Functions: :func:`compare_tokens`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache

from aegis.conversations import CORE, Key, Statement
from aegis.lexicon import drugs
from aegis.matching import sound_key
from aegis.statements import Token

DENIED = 0.2
"""A negation gained or lost on this share of what is said turns the statement round."""
UNCLEAR = 0.6
"""A word that shares this much of a drug's letters may be it: uncertain."""
NEAR = 6
"""A changed value stands at most this many tokens from where the old one is expected."""
LEADS = frozenset(("person", "family", "staff"))
_WORDS = frozenset(("word", "symptom", "test", "drug", "site"))
_HEADS = {"dose": ("drug",), "frequency": ("drug",), "daytime": ("drug",), "side": ("site",)}


@dataclass(frozen=True)
class Finding:
    """One slot that is not as it was: ``changed``, ``denied``, ``lost``, ``order``, ``answer``."""

    kind: str
    group: str
    source: str
    target: str = ""


def compare_tokens(statement: Statement, said: Sequence[Token]) -> tuple[list[Finding], float]:
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
        if token.group in LEADS and token.group != "family":
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
    lead = next((t for t in wanted[:2] if t.group in LEADS), None)
    if lead is None:
        return []
    after = [i for i in sorted(matched) if i > lead.position and wanted[i].group not in LEADS]
    place = matched[after[0]].position if after else len(said)
    gap = after[0] - lead.position if after else 1
    before = [t for t in said if place - 1 - gap <= t.position < place and t.group in LEADS]
    if not before or any(t.value == lead.value for t in before):
        return []
    return [Finding("changed", "person", lead.value, before[-1].value)]
