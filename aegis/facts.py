"""The clinical inventory of a conversation: facts, actions, chronology.

Unit: one fact (a clinical atomic proposition, CAP): one checkable statement with literal
evidence in one source turn, its polarity, time, certainty, actor, modifiers, linked action
and importance. Facts are extracted once from the source transcript and frozen: the hash of
an inventory covers every field. Rules only: clauses that name something clinical, answers
to clinical questions, and plans. Ids come from content.

Functions: :func:`guess_roles`, :func:`extract_inventory`, :func:`inventory_sha256`,
:func:`score_extraction`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from aegis import clinical_terms as terms
from aegis.clauses import Clause, read_clauses
from aegis.statements import Token, answer_polarity, read_sentences
from aegis.tables import content_id


@dataclass(frozen=True)
class SourceTurn:
    """One turn as the extractor sees it."""

    turn_id: str
    speaker: str
    text: str


@dataclass(frozen=True)
class Fact:
    """One fact; ``question`` is the turn index of the question that it answers."""

    turn_index: int
    text: str
    evidence: str
    importance: str
    polarity: str
    temporality: str
    certainty: str
    actor: str
    role: str
    modifiers: dict[str, str] = field(default_factory=dict)
    question: int | None = None
    action: int | None = None


@dataclass(frozen=True)
class Action:
    turn_index: int
    actor: str
    action: str
    state: str
    timing: str
    plan: bool
    evidence: str


@dataclass(frozen=True)
class Relation:
    turn_index: int
    relation: str
    first: str
    second: str
    evidence: str


@dataclass(frozen=True)
class Inventory:
    facts: tuple[Fact, ...]
    actions: tuple[Action, ...]
    relations: tuple[Relation, ...]


_CLINICAL = frozenset(("drug", "symptom", "dose"))
_TIMES = frozenset(("duration", "frequency", "daytime", "day", "date", "rank"))
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
            action = _action(turn, index, clause, fact, roles[turn.speaker], language)
            if action is not None:
                actions.append(action)
                fact = Fact(**{**asdict(fact), "action": len(actions) - 1})
            facts.append(fact)
    return Inventory(tuple(facts), tuple(actions), tuple(_relations(turns, facts, language)))


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
        role,
        _modifiers(tokens),
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
    timed = any(t.group in _TIMES for t in clause.tokens)
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


# --- actions ---------------------------------------------------------------------------

_IF = {
    "en": re.compile(r"\b(?:if|when|unless)\b", re.I),
    "fr": re.compile(r"\b(?:si|quand)\b|\ben cas\b", re.I),
}
_ONGOING = ("keep", "continuer")
_STOPS = ("stop", "arrêter")
_CLINICIAN_DOES = {
    "en": re.compile(
        r"\b(?:I'll|we'll|I'd like|I will|we will|I'm going|I am|let's wait|we)\b", re.I
    ),
    "fr": re.compile(r"\b(?:j'|je |nous |on va|il faudra)", re.I),
}


def _action(
    turn: SourceTurn, index: int, clause: Clause, fact: Fact, role: str, language: str
) -> Action | None:
    """An action: something is started, stopped, taken, ordered or advised."""
    acts = [t.value for t in clause.tokens if t.group == "act"]
    treats = any(t.group in ("drug", "dose") for t in clause.tokens)
    words = set(re.findall(r"[^\W\d_]+", fact.evidence.casefold()))
    plans = role == "clinician" and (
        fact.temporality == "future" or bool(words & terms.PLANS[language])
    )
    if not (acts or (role == "clinician" and treats) or plans):
        return None
    if role != "clinician" and not any(a in _STOPS for a in acts):
        return None
    state = _state(fact, acts, role, language)
    clinician = role == "clinician" and _CLINICIAN_DOES[language].search(fact.evidence) is not None
    timing = ", ".join(t.value for t in clause.tokens if t.group in _TIMES)
    return Action(
        index,
        "clinician" if clinician else "patient",
        fact.evidence,
        state,
        timing,
        role == "clinician",
        fact.evidence,
    )


def _state(fact: Fact, acts: Sequence[str], role: str, language: str) -> str:
    if any(a in _STOPS for a in acts):
        return "stopped"
    if _IF[language].search(fact.evidence):
        return "conditional"
    if any(a in _ONGOING for a in acts):
        return "ongoing"
    if fact.temporality == "past":
        return "done"
    return "advised" if fact.polarity == "negated" else "planned"


# --- chronology ------------------------------------------------------------------------

_RELATION = {
    "en": re.compile(r"\b(before|after|during|until|since|then)\b", re.I),
    "fr": re.compile(r"\b(avant|après|pendant|jusqu'à|depuis|puis|ensuite)\b", re.I),
}
_NAMES = {
    "before": "before",
    "until": "before",
    "then": "before",
    "after": "after",
    "since": "after",
    "during": "during",
    "avant": "before",
    "jusqu'à": "before",
    "puis": "before",
    "ensuite": "before",
    "après": "after",
    "depuis": "after",
    "pendant": "during",
}
_REVISES = {
    "en": re.compile(
        r"\b(?:actually|instead|well, no|in that case|let's say|let's lower|restart|change it)\b",
        re.I,
    ),
    "fr": re.compile(r"\b(?:en fait|finalement|plutôt|à la place|dans ce cas)\b", re.I),
}


def _relations(
    turns: Sequence[SourceTurn], facts: Sequence[Fact], language: str
) -> list[Relation]:
    found: list[Relation] = []
    for fact in facts:
        match = _RELATION[language].search(fact.evidence)
        if match and match.start() > 0:
            first, second = fact.evidence[: match.start()], fact.evidence[match.end() :]
            if first.strip(" ,") and second.strip(" ,"):
                name = _NAMES[match.group(1).casefold()]
                found.append(
                    Relation(
                        fact.turn_index, name, first.strip(" ,"), second.strip(" ,"), fact.evidence
                    )
                )
    for index, turn in enumerate(turns):
        for sentence in read_sentences(turn.text, language):
            text = turn.text[sentence.start : sentence.end]
            match = _REVISES[language].search(text)
            if match and sentence.tokens and not sentence.question:
                found.append(Relation(index, "revises", "what was said before", text, text))
    return found + _final_states(facts, language)


def _final_states(facts: Sequence[Fact], language: str) -> list[Relation]:
    """What is said last of each drug: its dose, or that it is stopped."""
    from aegis.statements import read_tokens

    last: dict[str, Fact] = {}
    for fact in facts:
        tokens = read_tokens(fact.evidence, language)
        if any(t.group in ("dose", "act", "frequency") for t in tokens):
            for token in tokens:
                if token.group == "drug":
                    last[token.value] = fact
    return [
        Relation(f.turn_index, "final_state", drug, f.evidence, f.evidence)
        for drug, f in sorted(last.items())
    ]


# --- tables and scores -----------------------------------------------------------------


def inventory_sha256(inventory: Inventory) -> str:
    """The hash that freezes an inventory."""
    text = json.dumps(asdict(inventory), sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def fact_id(recording_id: str, turn_id: str, index: int, evidence: str) -> str:
    return content_id("f", recording_id, turn_id, index, evidence)


Span = tuple[int, str, str]
"""Turn index, literal evidence, polarity (empty where it does not matter)."""


def score_extraction(found: Sequence[Span], gold: Sequence[Span]) -> tuple[int, int, int]:
    """Matched pairs, number found, number in truth; one to one, greedily by overlap.

    Two spans match when they lie in one turn, agree in polarity, and one's words are at
    least half the other's shorter list of words.
    """
    pairs = []
    for i, (turn, evidence, polarity) in enumerate(found):
        own = set(re.findall(r"\w+", evidence.casefold()))
        for j, (gold_turn, gold_evidence, gold_polarity) in enumerate(gold):
            if turn != gold_turn or polarity != gold_polarity:
                continue
            other = set(re.findall(r"\w+", gold_evidence.casefold()))
            shared = len(own & other) / max(1, min(len(own), len(other)))
            if shared >= 0.5:
                pairs.append((-shared, -len(own & other), i, j))
    used_found: set[int] = set()
    used_gold: set[int] = set()
    for _, _, i, j in sorted(pairs):
        if i not in used_found and j not in used_gold:
            used_found.add(i)
            used_gold.add(j)
    return len(used_found), len(found), len(gold)


def as_modifiers(fact: Fact) -> str:
    """Modifiers as stored: JSON with sorted keys."""
    return json.dumps(fact.modifiers, sort_keys=True, ensure_ascii=False)


def row_of(fact: Fact) -> dict[str, Any]:
    """The columns of ``facts`` that come from the fact alone."""
    return {
        "turn_index": fact.turn_index,
        "role": fact.role,
        "text": fact.text,
        "evidence": fact.evidence,
        "importance": fact.importance,
        "polarity": fact.polarity,
        "temporality": fact.temporality,
        "certainty": fact.certainty,
        "actor": fact.actor,
        "modifiers": as_modifiers(fact),
    }
