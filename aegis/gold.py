"""Clinical truth of a script: facts, actions, chronology.

Unit: one checkable statement with literal evidence in one turn (turns count from 0).
Facts stand under their turn; actions and chronology under the script, where the
evidence finds its turn (``turn:`` is needed only if several turns hold it).

Functions: :func:`parse_fact`, :func:`parse_action`, :func:`parse_relation`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from aegis.errors import ManifestError
from aegis.fields import check_known, check_needed, check_texts, one_of
from aegis.inventory import Action, Relation, Statement

ROLES = ("clinician", "nurse", "patient", "relative", "pharmacist", "receptionist", "reader")
IMPORTANCE = ("critical", "major", "minor")
POLARITY = ("affirmed", "negated")
TEMPORALITY = ("past", "current", "future")
CERTAINTY = ("stated", "suspected", "confirmed")
STATES = ("done", "ongoing", "planned", "advised", "conditional", "stopped", "declined")
RELATIONS = ("before", "after", "during", "revises", "final_state")


@dataclass(frozen=True)
class GoldFact(Statement):
    """A statement of a script, with the name of the action that it is about."""

    action: str | None = None
    question_turn: int | None = None
    """The turn that asked, where the evidence is an answer that means nothing alone."""


@dataclass(frozen=True)
class GoldAction(Action):
    """An action with the name by which the script's facts link to it."""

    action_id: str


_FACT_KEYS = (
    "fact evidence importance polarity temporality certainty actor modifiers action"
    " answers_previous"
)


def parse_fact(entry: Any, turn_index: int, text: str) -> GoldFact:
    """One fact of a turn's list; its evidence must be literal in the turn's text."""
    check_known(entry, _FACT_KEYS, "fact")
    check_needed(entry, "fact evidence importance", "fact")
    check_texts(entry, "fact evidence action", "fact")
    if entry["evidence"] not in text:
        raise ManifestError(f"evidence {entry['evidence']!r} is not in the spoken text")
    answers = entry.get("answers_previous", False)
    if answers is not False and (answers is not True or turn_index == 0):
        raise ManifestError("answers_previous must be true or absent, and needs a turn before")
    modifiers = entry.get("modifiers", {})
    if not all(isinstance(v, str) for pair in modifiers.items() for v in pair):
        raise ManifestError(f"modifiers must map text to text: {modifiers}")
    return GoldFact(
        turn_index,
        entry["fact"],
        entry["evidence"],
        one_of(entry["importance"], IMPORTANCE, "importance"),
        one_of(entry.get("polarity", "affirmed"), POLARITY, "polarity"),
        one_of(entry.get("temporality", "current"), TEMPORALITY, "temporality"),
        one_of(entry.get("certainty", "stated"), CERTAINTY, "certainty"),
        one_of(entry.get("actor", "patient"), (*ROLES, "family"), "actor"),
        modifiers,
        entry.get("action"),
        turn_index - 1 if answers else None,
    )


def _evidence_turn(entry: dict[str, Any], texts: Sequence[str], what: str) -> int:
    """The turn that holds the evidence: as declared, or the only one that has it."""
    holding = [i for i, text in enumerate(texts) if entry["evidence"] in text]
    declared = entry.get("turn")
    if declared is not None and declared in holding:
        return int(declared)
    if declared is None and len(holding) == 1:
        return holding[0]
    raise ManifestError(
        f"{what}: evidence {entry['evidence']!r} is in turns {holding}; declared turn {declared}"
    )


def parse_action(entry: Any, texts: Sequence[str]) -> GoldAction:
    """One action of the conversation; ``texts`` are its turns."""
    check_known(entry, "id turn actor action state timing plan evidence", "action")
    check_needed(entry, "id actor action state evidence", "action")
    check_texts(entry, "id action timing evidence", "action")
    what = f"action {entry['id']}"
    return GoldAction(
        _evidence_turn(entry, texts, what),
        one_of(entry["actor"], (*ROLES, "family"), f"{what}: actor"),
        entry["action"],
        one_of(entry["state"], STATES, f"{what}: state"),
        entry.get("timing", ""),
        bool(entry.get("plan", False)),
        entry["evidence"],
        entry["id"],
    )


def parse_relation(entry: Any, texts: Sequence[str]) -> Relation:
    """``first <relation> second``, or a final state (subject, state); ``texts`` are the turns."""
    check_known(entry, "turn relation first second evidence", "chronology")
    check_needed(entry, "relation first second evidence", "chronology")
    check_texts(entry, "first second evidence", "chronology")
    return Relation(
        _evidence_turn(entry, texts, "chronology"),
        one_of(entry["relation"], RELATIONS, "relation"),
        entry["first"],
        entry["second"],
        entry["evidence"],
    )
