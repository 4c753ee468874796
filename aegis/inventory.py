"""The clinical inventory of a conversation: facts, actions, chronology, as values.

Unit: one fact (a clinical atomic proposition, CAP): one checkable statement with literal
evidence in one source turn, its polarity, time, certainty, actor, modifiers, linked action
and importance. An inventory is made once and frozen: its hash covers every field. Ids come
from content; turns count from 0.

Functions: :func:`inventory_sha256`, :func:`fact_id`, :func:`as_modifiers`, :func:`row_of`.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any

from aegis.tables import content_id


@dataclass(frozen=True)
class SourceTurn:
    """One turn as the extractor sees it."""

    turn_id: str
    speaker: str
    text: str


@dataclass(frozen=True)
class Statement:
    """One checkable clinical statement with literal evidence in its turn."""

    turn_index: int
    text: str
    evidence: str
    importance: str
    polarity: str
    temporality: str
    certainty: str
    actor: str
    modifiers: dict[str, str]


@dataclass(frozen=True)
class Fact(Statement):
    """An extracted statement; ``question`` is the turn index of the question that it answers."""

    role: str
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


def inventory_sha256(inventory: Inventory) -> str:
    """The hash that freezes an inventory."""
    text = json.dumps(asdict(inventory), sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def fact_id(recording_id: str, turn_id: str, index: int, evidence: str) -> str:
    return content_id("f", recording_id, turn_id, index, evidence)


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
