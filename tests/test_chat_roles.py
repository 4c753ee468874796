"""Planner, extractor and note writer against the server that misbehaves: checked, then used."""

from __future__ import annotations

import json
from typing import Any

import pytest
from chat_server import completion

from aegis.engines import TurnText
from aegis.engines.extraction import ChatExtractor
from aegis.engines.judging import Said
from aegis.engines.notes import ChatNoteWriter
from aegis.engines.planning import ChatDetector
from aegis.errors import ReplyError
from aegis.inventory import SourceTurn
from aegis.manifests import read_contract

TALK = [
    ("D", "Good morning, Doris. Any chest pain?"),
    ("P", "No. I take ramipril, five milligrams."),
    ("D", "Thank you, Doris. Stop it before the scan."),
]
PLAN = {
    "entities": [{"entity": "patient", "category": "NAME", "replacement": "Nina"}],
    "edits": [{"turn": 0, "entity": "patient", "original": "Doris", "replacement": "Nina"}],
}
FACT = {
    "turn": 1, "fact": "takes ramipril 5 mg", "evidence": "I take ramipril, five milligrams",
    "importance": "critical", "polarity": "affirmed", "temporality": "current",
    "certainty": "stated", "actor": "patient",
    "modifiers": [{"name": "dose", "value": "5 mg"}], "question_turn": None,
}  # fmt: skip
ACTION = {
    "turn": 2, "actor": "patient", "action": "stop ramipril", "state": "planned", "timing": "",
    "plan": True, "evidence": "Stop it before the scan",
}  # fmt: skip
RELATION = {
    "turn": 2, "relation": "before", "first": "stop", "second": "scan",
    "evidence": "Stop it before the scan",
}  # fmt: skip
INVENTORY = [{"facts": [FACT]}, {"actions": [ACTION]}, {"relations": [RELATION]}]
NOTE = {
    "lines": [
        {"section": "subjective", "statement": "Takes ramipril.", "evidence": "I take ramipril"}
    ]
}
NO_VERDICT = [
    (completion("```json\n{}\n```"), "malformed"),
    (completion("{}", finish="length"), "truncated"),
    (completion(None, refusal="I cannot"), "refused"),
    (completion("", finish="content_filter"), "filtered"),
    (completion("{}"), "malformed"),
    ((422, {"error": {"message": "no", "code": None}}), "failed"),
]


def said(value: Any) -> Any:
    return completion(json.dumps(value))


def plan(client: Any) -> Any:
    turns = [TurnText(str(i), who, text) for i, (who, text) in enumerate(TALK)]
    return ChatDetector(client).plan(turns, "en")


def extract(client: Any) -> Any:
    turns = [SourceTurn(str(i), who, text) for i, (who, text) in enumerate(TALK)]
    return ChatExtractor(client).extract(turns, "en")


def test_the_planner_sends_the_contract_and_the_whole_transcript(serve, client) -> None:
    server = serve(said(PLAN))
    assert plan(client(server)) == PLAN
    user = server.bodies[0]["messages"][1]["content"]
    assert all(text in user for _, text in TALK)
    assert "LANGUAGE: en" in user
    assert all(f"{family.category}: include" in user for family in read_contract().families)


@pytest.mark.parametrize(("step", "outcome"), NO_VERDICT)
def test_a_reply_that_is_no_plan_is_never_an_empty_plan(serve, client, step, outcome) -> None:
    with pytest.raises(ReplyError, match=f"plan: invalid: {outcome}"):
        plan(client(serve(step)))


def test_a_plan_that_breaks_a_rule_is_asked_again_with_the_rule(serve, client) -> None:
    bad = {"entities": [], "edits": PLAN["edits"]}
    server = serve(said(bad), said(PLAN))
    assert plan(client(server)) == PLAN
    assert "that of edit 0 is not in the inventory" in server.bodies[1]["messages"][1]["content"]
    with pytest.raises(ReplyError, match="plan: invalid: entity"):
        plan(client(serve(said(bad)), timeout_s=2))


def test_the_extractor_takes_three_replies_with_literal_evidence(serve, client) -> None:
    found = extract(client(serve(*map(said, INVENTORY)), concurrency=1))
    assert found.facts[0].modifiers == {"dose": "5 mg"}
    assert (found.actions[0].state, found.relations[0].relation) == ("planned", "before")


@pytest.mark.parametrize(("step", "outcome"), NO_VERDICT)
def test_an_inventory_is_whole_or_failed(serve, client, step, outcome) -> None:
    server = serve(said(INVENTORY[0]), said(INVENTORY[1]), step)
    with pytest.raises(ReplyError, match=f"extract_chronology: invalid: {outcome}"):
        extract(client(server, concurrency=1))


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"evidence": "I take ramipril, 5 mg"}, "evidence: that of facts 0 is not in turn 1"),
        ({"turn": 7}, "evidence: that of facts 0 is not in turn 7"),
        ({"question_turn": 1}, "question_turn: 1 is not before turn 1"),
    ],
)
def test_invented_evidence_is_refused(serve, client, change, rule) -> None:
    bad = {"facts": [FACT | change]}
    server = serve(said(bad), *map(said, INVENTORY[1:]), said(bad))
    with pytest.raises(ReplyError, match=rule):
        extract(client(server, concurrency=1))


def note(client: Any) -> Any:
    return ChatNoteWriter(client, 2).write("demo/n1", [Said(*turn) for turn in TALK], "en")


def test_a_note_is_written_from_the_transcript_alone(serve, client) -> None:
    server = serve(said(NOTE))
    assert note(client(server)).lines == ("Takes ramipril.",)
    assert "demo/n1" in server.bodies[0]["messages"][1]["content"]


@pytest.mark.parametrize(("step", "outcome"), NO_VERDICT)
def test_an_invalid_note_is_unobserved_not_empty(serve, client, step, outcome) -> None:
    found = note(client(serve(step)))
    assert found.lines is None and f"invalid: {outcome}" in str(found.reason)


def test_a_note_with_invented_evidence_uses_its_attempts(serve, client) -> None:
    bad = {"lines": [NOTE["lines"][0] | {"evidence": "I take aspirin"}]}
    server = serve(said(bad))
    found = note(client(server))
    assert (found.lines, found.attempts, len(server.bodies)) == (None, 2, 2)
    empty = note(client(serve(said({"lines": []}))))
    assert (empty.lines, empty.reason) == (None, "an empty note")
