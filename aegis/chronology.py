"""Chronology of a conversation by rules: orders of events, revisions, final states.

Unit: one relation with its literal sentence as evidence. *Order*: ``first`` happened before,
after or during ``second``; both sides must name an event, so "since 2015" and "for two weeks"
are durations of a fact and no relation. *Revision*: a clinician takes back or changes what
held so far. *Final state*: what a clinician decides last of a treatment, or that a finding is
gone. Questions relate nothing, nor does what only somebody's history says of a drug.

Functions: :func:`find_relations`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from aegis import clinical_terms as terms
from aegis.inventory import Action, Relation, SourceTurn
from aegis.statements import Token, read_sentences, read_tokens

Said = tuple[int, str, str]
"""Turn index, one sentence that is no question, and the sentence before it."""

_ORDERS = {
    "before": "before", "until": "before", "after": "after", "since": "after", "once": "after",
    "during": "during", "while": "during", "avant": "before", "jusqu'à": "before",
    "après": "after", "depuis": "after", "une fois": "after", "pendant": "during",
}  # fmt: skip
_LINK = {
    "en": re.compile(r"\b(before|until|after|since|during|while)\s+", re.I),
    "fr": re.compile(
        r"(?<!\w)(avant|jusqu'à|après|depuis|pendant)\s+(?:que\s|qu'|de\s|d')?", re.I
    ),
}
_BACKWARD = {
    "en": re.compile(r"(?:that|then|this)\b[\s,]*", re.I),
    "fr": re.compile(r"(?:ça|cela|ce moment)(?!\w)[\s,]*", re.I),
}
_SEQUENCE = {
    "en": re.compile(r"^(?:first,?\s+)?(.+?),?\s+(?:and\s+)?then\s+(.+)$", re.I),
    "fr": re.compile(r"^(?:d'abord,?\s+)?(.+?),?\s+(?:et\s+)?(?:puis|ensuite)\s+(.+)$", re.I),
}
_FIRST = {"en": re.compile(r"\bfirst\b", re.I), "fr": re.compile(r"\bd'abord\b", re.I)}
_WAITS = {
    "en": re.compile(r"\bwait(?:ing)? for\s+(.+)", re.I),
    "fr": re.compile(r"\battend(?:re|ons|ez)\s+(.+)", re.I),
}
_NOW = {
    "en": re.compile(r"\b(?:but now|now|today|these days)\b", re.I),
    "fr": re.compile(r"\b(?:mais maintenant|maintenant|aujourd'hui)\b", re.I),
}
_EARLIER = {
    "en": re.compile(
        r"\b(?:last (?:week|month|year|night)|yesterday|ago|used to|on day \w+|(?:he|she|it|they)"
        r" had|I had|before)\b",
        re.I,
    ),
    "fr": re.compile(r"\b(?:hier|la semaine dernière|il y a|avant|au début|le jour)\b", re.I),
}
_REVISES = {
    "en": re.compile(
        r"\b(?:actually,? (?:no|let's|we)|instead|well,? no|in that case|let's (?:say|lower|raise"
        r"|increase|reduce|change|switch)|restart|(?:re)?increase it|reduce it|lower it|change it"
        r"|switch (?:you|to)|scratch that|rather than)\b",
        re.I,
    ),
    "fr": re.compile(
        r"\b(?:en fait,? (?:non|on)|finalement|plutôt|à la place|dans ce cas|on (?:baisse|augmente"
        r"|diminue|change|reprend)|au lieu de)\b",
        re.I,
    ),
}
_TIMES = frozenset(
    ("duration", "date", "month", "day", "daytime", "reading", "frequency", "rank", "often")
)
_AMOUNTS = frozenset(("dose", "duration", "frequency", "reading"))
_DECIDED = frozenset(("planned", "stopped", "ongoing", "advised"))
_SUBJECT = re.compile(
    r"\s(?=(?:I|you|he|she|it|we|they|there|his|her|my|your|je|j'|tu|vous|il|elle|on|nous)\b)"
)


def find_relations(
    turns: Sequence[SourceTurn],
    actions: Sequence[Action],
    roles: Mapping[str, str],
    language: str,
) -> list[Relation]:
    """Orders and revisions in order of speech, then the final states.

    ``actions`` are those of the same conversation; ``roles``: speaker to role.
    """
    found: list[Relation] = []
    for turn, sentence, before in _statements(turns, language):
        found += _orders(turn, sentence, before, language)
        decides = roles.get(turns[turn].speaker) != "patient"
        if decides and _REVISES[language].search(sentence) and _tells(sentence, language):
            earlier = before or "what was said before"
            found.append(Relation(turn, "revises", earlier, sentence, sentence))
    return found + _final_states(turns, actions, found, language)


def _statements(turns: Sequence[SourceTurn], language: str) -> Iterator[Said]:
    for index, turn in enumerate(turns):
        before = ""
        for sentence in read_sentences(turn.text, language):
            text = turn.text[sentence.start : sentence.end].rstrip(" .!")
            if not sentence.question:
                yield index, text, before
            before = text


def _tells(text: str, language: str) -> bool:
    return any(t.group not in ("person", "family", "staff") for t in read_tokens(text, language))


# --- orders ----------------------------------------------------------------------------


def _orders(turn: int, sentence: str, before: str, language: str) -> list[Relation]:
    """At most one order of events a sentence: by a link, a sequence, a wait or a contrast."""
    for rule in (_linked, _in_sequence, _contrasted):
        pair = rule(sentence, before, language)
        if pair is not None:
            name, first, second = pair
            return [Relation(turn, name, first, second, sentence)]
    return []


Pair = tuple[str, str, str]


def _linked(sentence: str, before: str, language: str) -> Pair | None:
    """``A after B``, ``after B, A``, ``after that A``: relation, A, B."""
    for match in _LINK[language].finditer(sentence):
        name = _ORDERS[match.group(1).casefold()]
        ahead, rest = sentence[: match.start()].strip(" ,"), sentence[match.end() :]
        back = _BACKWARD[language].match(rest)
        if back is not None:
            first, second = ahead or rest[back.end() :], before
            if match.group(1).casefold() in ("until", "jusqu'à"):
                continue
        elif _says(ahead, language):
            first, second = ahead, rest.split(",")[0]
        else:
            second, first = _fronted(rest)
        first, second = first.strip(" ,"), second.strip(" ,")
        implied = back is None and not _says(ahead, language) and name == "after"
        happens = _is_event(second, language) or (
            implied and match.group(1).casefold() != "depuis" and _lasts(second, language)
        )
        if _says(first, language) and happens and _clinical(f"{first} {second}", language):
            return name, first, second
    waits = _WAITS[language].search(sentence)
    if waits is not None and _is_event(waits.group(1), language):
        return "before", waits.group(1), "the decision"
    return None


def _fronted(rest: str) -> tuple[str, str]:
    """``the winter he fell`` or ``the winter, he fell`` -> ``the winter``, ``he fell``."""
    if "," in rest:
        own, _, other = rest.partition(",")
        return own, other
    cut = _SUBJECT.search(rest)
    return (rest[: cut.start()], rest[cut.start() :]) if cut else (rest, "")


def _in_sequence(sentence: str, before: str, language: str) -> Pair | None:
    if re.match(r"(?:if|when|si|quand)\b", sentence, re.I):
        return None
    match = _SEQUENCE[language].match(sentence)
    if match is not None and all(_is_event(part, language) for part in match.groups()):
        clinical = _clinical(sentence, language)
        return ("before", match.group(1), match.group(2)) if clinical else None
    first = _FIRST[language].search(sentence)
    if first is not None and _tail_or_head(first, sentence) and _acts(sentence, language):
        return "before", sentence, "everything else"
    return None


def _tail_or_head(match: re.Match[str], sentence: str) -> bool:
    return match.end() == len(sentence) or match.start() == 0


def _contrasted(sentence: str, before: str, language: str) -> Pair | None:
    """What was once, and what is now: ``I cried last week, but now I feel better``."""
    now = _NOW[language].search(sentence)
    if now is None:
        return None
    earlier = sentence[: now.start()].strip(" ,") or before
    later = sentence[now.start() :]
    if not (_EARLIER[language].search(earlier) and _says(earlier, language)):
        return None
    return ("before", earlier, later) if _clinical(f"{earlier} {later}", language) else None


def _says(text: str, language: str) -> bool:
    """Does a stretch say more than a yes, a no or a filler?"""
    return any(t.group not in ("person",) for t in read_tokens(text, language))


def _is_event(text: str, language: str) -> bool:
    """Something that happens, not only a date, an amount or a person."""
    tokens = read_tokens(text, language)
    return any(t.group not in (*_TIMES, "person", "family", "staff") for t in tokens)


def _lasts(text: str, language: str) -> bool:
    return any(t.group == "duration" for t in read_tokens(text, language))


def _clinical(text: str, language: str) -> bool:
    groups = {t.group for t in read_tokens(text, language)}
    return bool(groups & {"drug", "symptom", "test", "dose", "act", "site", "trend"})


def _acts(text: str, language: str) -> bool:
    words = set(re.findall(r"[^\W\d_]+", text.casefold()))
    groups = {t.group for t in read_tokens(text, language)}
    return bool(words & terms.PLANS[language] or groups & {"drug", "test"})


# --- final states ----------------------------------------------------------------------


def _final_states(
    turns: Sequence[SourceTurn],
    actions: Sequence[Action],
    found: Sequence[Relation],
    language: str,
) -> list[Relation]:
    """The last decision on each treatment, and findings that are said to be gone now."""
    last: dict[str, Relation] = {}
    for action in actions:
        if action.plan and action.state in _DECIDED:
            tokens = read_tokens(action.evidence, language)
            settled = action.state in ("stopped", "ongoing") or _amounts(tokens)
            for token in tokens:
                if token.group == "drug" and settled:
                    last[token.value] = _state(action.turn_index, token.value, action.evidence)
    for relation in found:
        tokens = read_tokens(relation.evidence, language)
        if relation.relation == "revises" and _amounts(tokens):
            subject = _subject(turns, relation, language)
            last[subject] = _state(relation.turn_index, subject, relation.evidence)
    gone = _gone(turns, language)
    return sorted((*last.values(), *gone.values()), key=lambda r: (r.turn_index, r.first))


def _gone(turns: Sequence[SourceTurn], language: str) -> dict[str, Relation]:
    """Findings that were spoken of before, and of which somebody says: not now."""
    found: dict[str, Relation] = {}
    spoken: set[str] = set()
    for index, turn in enumerate(turns):
        for sentence in read_sentences(turn.text, language):
            text = turn.text[sentence.start : sentence.end].rstrip(" .!")
            for token in sentence.tokens:
                denied = token.group == "symptom" and token.negated and token.value in spoken
                if denied and not sentence.question and _NOW[language].search(text):
                    found[token.value] = _state(index, token.value, text)
        tokens = read_tokens(turn.text, language)
        spoken |= {t.value for t in tokens if t.group == "symptom" and not t.negated}
    return found


def _state(turn: int, subject: str, evidence: str) -> Relation:
    return Relation(turn, "final_state", subject, evidence, evidence)


def _amounts(tokens: Sequence[Token]) -> bool:
    return any(t.group in _AMOUNTS for t in tokens)


def _subject(turns: Sequence[SourceTurn], relation: Relation, language: str) -> str:
    """What a revision is about: the drug or test named in it, or last before it."""
    texts = [relation.evidence]
    texts += [turn.text for turn in reversed(turns[max(0, relation.turn_index - 4) :][:5])]
    for text in texts:
        named = [t.value for t in read_tokens(text, language) if t.group in ("drug", "test")]
        if named:
            return named[-1]
    return "the plan"
