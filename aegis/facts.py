"""Extracting the clinical inventory of a conversation by rules.

Unit: one fact of one clause: clauses that name something clinical, answers to clinical
questions, and plans. Actions and relations follow from the same reading
(:mod:`aegis.actions`, :mod:`aegis.chronology`). What is extracted is judged later: nothing
here looks at any other transcript than the source.

Functions: :func:`guess_roles`, :func:`extract_inventory`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from aegis import clinical_terms as terms
from aegis.actions import TIMES, read_action
from aegis.chronology import find_relations
from aegis.clauses import Clause, read_clauses
from aegis.inventory import Action, Fact, Inventory, SourceTurn
from aegis.statements import Token, answer_polarity, read_sentences

_CLINICAL = frozenset(("drug", "symptom", "dose"))
_SHOWN = frozenset(
    (
        "dose",
        "duration",
        "frequency",
        "reading",
        "date",
        "side",
        "site",
        "daytime",
        "day",
        "severity",
        "quality",
        "colour",
        "often",
        "ingest",
        "order",
    )
)
_WEAK = frozenset(
    (
        "hospit",
        "ward",
        "appointment",
        "clin",
        "rate",
        "rest",
        "wat",
        "drink",
        "sleep",
        "cut",
        "fit",
        "sample",
        "sampl",
        "number",
        "consult",
        "repo",
        "eau",
        "cas",
        "point",
        "prise",
        "mal",
        "condit",
        "ray",
    )
)
"""Stems that are clinical only beside something else."""


_INTRODUCES = {
    "en": re.compile(
        r"\bI'?m (?:Doctor|Dr|the (?:nurse|health))|your \w+ nurse|me, Doctor|Pharmacy, this is"
    ),
    "fr": re.compile(r"(?:je suis|ici) le docteur|, docteur [A-Z]"),
}
_YOURS = {
    "en": re.compile(r"\b(?:you|your)\b", re.I),
    "fr": re.compile(r"\b(?:vous|votre|vos)\b", re.I),
}
_MINE = {
    "en": re.compile(r"\b(?:I|my|me)\b", re.I),
    "fr": re.compile(r"\b(?:je|mon|ma|mes)\b|\bj'", re.I),
}

# --- roles -----------------------------------------------------------------------------


def guess_roles(turns: Sequence[SourceTurn], language: str) -> dict[str, str]:
    """Speaker -> clinician or patient: by questions, "your" against "my", and
    a clinician's introduction of himself.

    A third speaker is a relative. With one speaker there is only a patient.
    """
    asked: dict[str, float] = {}
    for turn in turns:
        n = float(sum(sentence.question for sentence in read_sentences(turn.text, language)))
        n += 8.0 * (_INTRODUCES[language].search(turn.text) is not None)
        n += 0.3 * len(_YOURS[language].findall(turn.text))
        n -= 0.3 * len(_MINE[language].findall(turn.text))
        asked[turn.speaker] = asked.get(turn.speaker, 0.0) + n
    order = sorted(asked, key=lambda name: (-asked[name], name))
    roles = dict.fromkeys(order, "relative")
    if len(order) > 1:
        roles[order[0]] = "clinician"
        talk = {
            s: sum(len(_MINE[language].findall(t.text)) for t in turns if t.speaker == s)
            for s in order[1:]
        }
        roles[max(talk, key=lambda s: (talk[s], s))] = "patient"
    else:
        roles = dict.fromkeys(order, "patient")
    return roles


# --- extraction ------------------------------------------------------------------------


def extract_inventory(
    turns: Sequence[SourceTurn], language: str, roles: Mapping[str, str] | None = None
) -> Inventory:
    """Extract facts, actions and chronology of one conversation, in order of speech."""
    roles = roles or guess_roles(turns, language)
    facts: list[Fact] = []
    actions: list[Action] = []
    for index, turn in enumerate(turns):
        asked = _question_before(turns, index, language)
        for clause in read_clauses(turn.text, language):
            fact = _fact(turn, index, clause, asked, roles[turn.speaker], language)
            if fact is None:
                continue
            action = read_action(index, clause, fact, roles[turn.speaker], language)
            if action is not None:
                actions.append(action)
                fact = replace(fact, action=len(actions) - 1)
            facts.append(fact)
    relations = find_relations(turns, actions, roles, language)
    return Inventory(tuple(facts), tuple(actions), tuple(relations))


def _question_before(
    turns: Sequence[SourceTurn], index: int, language: str
) -> tuple[int, str, tuple[Token, ...]] | None:
    """The last question of the previous turn: turn index, text, tokens."""
    if index == 0 or turns[index - 1].speaker == turns[index].speaker:
        return None
    text = turns[index - 1].text
    questions = [s for s in read_sentences(text, language) if s.question]
    if not questions:
        return None
    last = questions[-1]
    return index - 1, text[last.start : last.end], last.tokens


def _fact(
    turn: SourceTurn,
    index: int,
    clause: Clause,
    asked: tuple[int, str, tuple[Token, ...]] | None,
    role: str,
    language: str,
) -> Fact | None:
    evidence = clause.text(turn.text)
    if clause.question or _INVITES.match(evidence):
        return None
    answers = (
        asked is not None and clause.sentence == 0 and _needs_question(clause, evidence, language)
    )
    topic = asked[2] if asked is not None and answers else ()
    if not (
        _is_clinical(clause.tokens)
        or (answers and _is_answer(clause, evidence, topic, language))
        or _is_plan(clause, evidence, role, language)
    ):
        return None
    tokens = clause.tokens
    words = evidence.casefold()
    negated = _negated(tokens, evidence, answers, language)
    future = _temporality(words, role, tokens, language)
    said = f"{evidence} (asked: {asked[1]})" if asked is not None and answers else evidence
    return Fact(
        index,
        said,
        evidence,
        _importance([*tokens, *topic], language),
        "negated" if negated else "affirmed",
        future,
        _certainty(words, tokens, language),
        _actor(tokens, role, future),
        _modifiers(tokens),
        role,
        asked[0] if asked is not None and answers else None,
    )


_INVITES = re.compile(r"(?:tell me|describe|read me|dites|décrivez|parlez)\b", re.I)


def _is_clinical(tokens: Sequence[Token]) -> bool:
    """Names a drug, a symptom or a dose, or two weaker things together."""
    if any(
        t.group in ("drug", "dose") or (t.group == "symptom" and t.value not in _WEAK)
        for t in tokens
    ):
        return True
    groups = {t.group for t in tokens}
    if "site" in groups and groups & {"side", "symptom"}:
        return True
    weak = sum(
        t.group in ("test", "site", "symptom", "act", "trend") and t.value not in _WEAK
        for t in tokens
    )
    counted = any(
        t.group in ("reading", "frequency", "duration", "level", "severity", "daytime", "rank")
        for t in tokens
    )
    return weak >= 2 or (weak >= 1 and (counted or any(t.negated for t in tokens)))


def _needs_question(clause: Clause, evidence: str, language: str) -> bool:
    core = [t for t in clause.tokens if t.group in ("drug", "symptom", "test")]
    return not core or (bool(answer_polarity(evidence, language)) and len(evidence.split()) <= 8)


_TOPIC = frozenset(("symptom", "drug", "test", "site", "side"))


def _is_answer(clause: Clause, evidence: str, topic: Sequence[Token], language: str) -> bool:
    """A yes, a no or an amount, in answer to a question about something clinical."""
    if not any(t.group in _TOPIC and t.value not in _WEAK for t in topic):
        return False
    told = any(t.group not in ("person", "word") for t in clause.tokens)
    return bool(answer_polarity(evidence, language)) or told or len(evidence.split()) <= 4


def _is_plan(clause: Clause, evidence: str, role: str, language: str) -> bool:
    """The clinician says what will be done, and when, or what must not be done."""
    if role != "clinician":
        return False
    words = set(re.findall(r"[^\W\d_]+", evidence.casefold()))
    verbs = words & terms.PLANS[language]
    timed = any(t.group in TIMES for t in clause.tokens)
    conditional = bool(
        words & {"if", "si", "first", "don", "not", "pas", "straight", "back", "tout"}
    )
    clinical = any(t.group in ("test", "symptom", "act") for t in clause.tokens)
    if words & {"first", "abord"} and clinical:
        return True
    return bool(verbs) and (timed or conditional or clinical) and len(words) > 2


_VERBAL = {
    "en": re.compile(r"n['’]t\b|\bnot\b|\bnever\b|\bcannot\b", re.I),
    "fr": re.compile(r"\b(?:ne|n')(?=\W|\w).{1,40}\b(?:pas|jamais|plus|rien|aucun)\b", re.I),
}


def _negated(tokens: Sequence[Token], evidence: str, answers: bool, language: str) -> bool:
    core = [
        t for t in tokens if t.group in ("symptom", "drug", "test", "word", "site", "act", "side")
    ]
    strong = [t for t in core if t.group != "word"] or core
    if strong and _VERBAL[language].search(evidence):
        return any(t.negated for t in strong)
    if strong:
        return 2 * sum(t.negated for t in strong) > len(strong)
    return answers and answer_polarity(evidence, language) == "no"


def _has(words: str, cues: frozenset[str]) -> bool:
    return any(
        re.search(rf"(?<!\w){re.escape(cue)}(?!\w)", words) for cue in cues if cue[0] in words
    )


def _temporality(words: str, role: str, tokens: Sequence[Token], language: str) -> str:
    planned = _has(words, terms.FUTURE[language]) or any(
        t.value in ("tomorrow", "demain", "next", "prochain") for t in tokens
    )
    ordered = any(t.group in ("drug", "act", "dose") for t in tokens) and _has_rate(tokens)
    if role == "clinician" and (planned or ordered):
        return "future"
    if (
        any(t.group == "act" and t.value in ("stop", "arrêter") for t in tokens)
        and role != "clinician"
    ):
        return "past"
    return "past" if _has(words, terms.PAST[language]) else "current"


def _has_rate(tokens: Sequence[Token]) -> bool:
    return any(t.group in ("frequency", "daytime", "duration", "dose") for t in tokens)


def _certainty(words: str, tokens: Sequence[Token], language: str) -> str:
    if _has(words, terms.SUSPECTED[language]):
        return "suspected"
    measured = any(t.group == "reading" for t in tokens) and any(t.group == "test" for t in tokens)
    return "confirmed" if measured or _has(words, terms.CONFIRMED[language]) else "stated"


def _actor(tokens: Sequence[Token], role: str, temporality: str) -> str:
    if any(t.group == "family" for t in tokens):
        return "family"
    return "clinician" if role == "clinician" and temporality == "future" else "patient"


def _modifiers(tokens: Sequence[Token]) -> dict[str, str]:
    found: dict[str, str] = {}
    for token in tokens:
        if token.group in _SHOWN:
            found[token.group] = (
                f"{found[token.group]}, {token.value}" if token.group in found else token.value
            )
    return found


def _importance(tokens: Sequence[Token], language: str) -> str:
    """Drugs, doses and red flags are critical; other findings major; the rest minor."""
    flags = terms.RED_FLAGS[language]
    if any(t.group in ("drug", "dose") for t in tokens):
        return "critical"
    if any(
        t.value == flag[: len(t.value)] and len(t.value) >= 4 for t in tokens for flag in flags
    ):
        return "critical"
    return (
        "major" if any(t.group in ("symptom", "site", "test", "act") for t in tokens) else "minor"
    )
