"""What each prompt's reply must look like: pydantic models, strict, no extra fields.

Unit: one reply. Labels are closed sets; evidence is literal text of the transcript named in
the prompt, checked afterwards in :mod:`aegis.engines.asking`. Models are named by the
prompt files under ``aegis/prompts``.

Data: :data:`SCHEMAS`, name -> model.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

FactLabel = Literal["preserved", "partial", "missing", "contradicted", "uncertain"]
ItemLabel = Literal["preserved", "partial", "omission", "role_change", "contradicted", "uncertain"]
Importance = Literal["critical", "major", "minor"]
Polarity = Literal["affirmed", "negated"]
Temporality = Literal["past", "current", "future"]
Certainty = Literal["stated", "suspected", "confirmed"]
State = Literal["done", "ongoing", "planned", "advised", "conditional", "stopped", "declined"]
RelationName = Literal["before", "after", "during", "revises", "final_state"]


class PlannedEntity(BaseModel):
    entity: str
    category: str
    replacement: str


class PlannedEdit(BaseModel):
    turn: int
    entity: str
    original: str
    replacement: str


class Plan(BaseModel):
    """Entity inventory and ordered edits."""

    entities: list[PlannedEntity]
    edits: list[PlannedEdit]


class Modifier(BaseModel):
    name: str
    value: str


class ExtractedFact(BaseModel):
    turn: int
    fact: str
    evidence: str
    importance: Importance
    polarity: Polarity
    temporality: Temporality
    certainty: Certainty
    actor: str
    modifiers: list[Modifier]
    question_turn: int | None


class FactExtraction(BaseModel):
    facts: list[ExtractedFact]


class ExtractedAction(BaseModel):
    turn: int
    actor: str
    action: str
    state: State
    timing: str
    plan: bool
    evidence: str


class ActionExtraction(BaseModel):
    actions: list[ExtractedAction]


class ExtractedRelation(BaseModel):
    turn: int
    relation: RelationName
    first: str
    second: str
    evidence: str


class ChronologyExtraction(BaseModel):
    relations: list[ExtractedRelation]


class FactItem(BaseModel):
    id: str
    label: FactLabel
    evidence: str


class FactAdjudication(BaseModel):
    """One label a fact; ``unsupported``: literal clinical assertions of the target alone."""

    items: list[FactItem]
    unsupported: list[str]


class EndpointItem(BaseModel):
    id: str
    label: ItemLabel
    evidence: str


class EndpointAdjudication(BaseModel):
    items: list[EndpointItem]
    unsupported: list[str]


class EditItem(BaseModel):
    id: str
    source_present: Literal["yes", "no", "uncertain"]
    replacement_status: Literal["realised", "not_realised", "uncertain"]
    original_status: Literal["retained", "absent", "uncertain"]
    replacement_evidence: str
    original_evidence: str


class EditAdjudication(BaseModel):
    items: list[EditItem]


class NoteLine(BaseModel):
    section: Literal["subjective", "objective", "assessment", "plan"]
    statement: str
    evidence: str


class Note(BaseModel):
    lines: list[NoteLine]


class NoteItem(BaseModel):
    id: str
    source_included: bool
    label: FactLabel
    evidence: str


class NoteAdjudication(BaseModel):
    items: list[NoteItem]
    unsupported: list[str]


class Stressor(BaseModel):
    after_turn: int
    speaker: str
    text: str


class Stressors(BaseModel):
    stressors: list[Stressor]


SCHEMAS: dict[str, type[BaseModel]] = {
    model.__name__: model
    for model in (
        Plan, FactExtraction, ActionExtraction, ChronologyExtraction, FactAdjudication,
        EndpointAdjudication, EditAdjudication, Note, NoteAdjudication, Stressors,
    )
}  # fmt: skip
