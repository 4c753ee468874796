"""A model's plan: its contract, every occurrence found by code, and the stage's tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from chat_server import completion

from aegis import engines
from aegis.engines.planning import ChatDetector
from aegis.errors import ReplyError
from aegis.plan import check_plan, locate_plan
from aegis.tables import Run
from aegis.work.plan import plan_recording

TEXTS = {
    "t0": "I'm Doris Hale. Anna will see Ann.",
    "t1": "Doris, Rose rose at six. Doris's knee.",
    "t2": "Ramipril, five milligrams.",
}


def entity(name: str, new: str, category: str = "NAME") -> dict[str, str]:
    return {"entity": name, "category": category, "replacement": new}


def edit(turn: int, name: str, original: str, new: str) -> dict[str, Any]:
    return {"turn": turn, "entity": name, "original": original, "replacement": new}


GOOD = {
    "entities": [entity("patient", "Nina Wood"), entity("friend", "Kate"), entity("aunt", "Iris")],
    "edits": [
        edit(0, "patient", "Doris Hale", "Nina Wood"),
        edit(0, "friend", "Ann", "Kate"),
        edit(1, "patient", "Doris", "Nina"),
        edit(1, "aunt", "Rose", "Iris"),
    ],
}


def changed(**more: Any) -> dict[str, Any]:
    return {**GOOD, **more}


@pytest.mark.parametrize(
    ("reply", "rule"),
    [
        (changed(entities=[*GOOD["entities"], GOOD["entities"][0]]), "entities: one is listed"),
        (changed(entities=[entity("patient", "Nina Wood", "SHOE")]), "category: that of entity 0"),
        (changed(edits=GOOD["edits"][::-1]), "turn: edits must follow"),
        (changed(edits=[edit(3, "friend", "Ann", "Kate")]), "turn: edits must follow"),
        (changed(edits=[edit(0, "uncle", "Ann", "Kate")]), "entity: that of edit 0"),
        (changed(edits=[edit(0, "friend", "Ann", " ")]), "edit 0 is empty"),
        (changed(edits=[edit(0, "friend", "Ann", "Anna")]), "edit 0 is no part"),
        (
            changed(
                entities=[entity("friend", "Doris"), GOOD["entities"][0]],
                edits=[edit(0, "friend", "Ann", "Doris"), GOOD["edits"][2]],
            ),
            "edit 0 is an original of the conversation",
        ),
        (
            changed(
                entities=[entity("friend", "Ramipril")],
                edits=[edit(0, "friend", "Ann", "Ramipril")],
            ),
            "edit 0 names a drug",
        ),
        (
            changed(edits=[*GOOD["edits"], edit(2, "patient", "Doris", "Wood")]),
            "edit 4 is not constant",
        ),
        (
            changed(entities=[*GOOD["entities"], entity("other", "nina wood")]),
            "entity 3 shares its own",
        ),
    ],
)
def test_rules_of_a_plan(reply: dict[str, Any], rule: str) -> None:
    check_plan(GOOD, list(TEXTS.values()), "en")
    with pytest.raises(ReplyError, match=rule) as caught:
        check_plan(reply, list(TEXTS.values()), "en")
    assert "Doris" not in str(caught.value) and "Ann" not in str(caught.value)


def test_code_finds_every_occurrence_and_only_whole_names() -> None:
    plan = locate_plan(GOOD, "r", TEXTS, "en")
    found = [(e.turn_id, e.start, e.original, e.replacement) for e in plan.edits]
    assert found == [
        ("t0", 4, "Doris Hale", "Nina Wood"), ("t0", 30, "Ann", "Kate"),
        ("t1", 0, "Doris", "Nina"), ("t1", 7, "Rose", "Iris"), ("t1", 25, "Doris", "Nina"),
    ]  # fmt: skip
    assert not plan.unlocated


def test_an_ordinary_word_is_a_name_only_where_the_model_says_so() -> None:
    texts = {"a": "Will is here.", "b": "Will you come? Doris!", "c": "Doris?"}
    reply = {
        "entities": [entity("w", "Hugo"), entity("d", "Nina")],
        "edits": [edit(0, "w", "Will", "Hugo"), edit(1, "d", "Doris", "Nina")],
    }
    found = {(e.turn_id, e.original) for e in locate_plan(reply, "r", texts, "en").edits}
    assert found == {("a", "Will"), ("b", "Doris"), ("c", "Doris")}


def test_an_original_that_its_turn_does_not_hold_is_unlocated() -> None:
    reply = {"entities": [entity("d", "Nina")], "edits": [edit(2, "d", "Doriss", "Nina")]}
    plan = locate_plan(reply, "r", TEXTS, "en")
    assert [m.text for m in plan.unlocated] == ["Doriss"]
    assert not plan.edits and not plan.entities


def test_two_people_of_one_name_are_told_apart_by_their_turns() -> None:
    texts = {"a": "Smith called.", "b": "Smith fell."}
    reply = {
        "entities": [entity("x", "Reed"), entity("y", "Wood")],
        "edits": [edit(0, "x", "Smith", "Reed"), edit(1, "y", "Smith", "Wood")],
    }
    made = {e.turn_id: e.replacement for e in locate_plan(reply, "r", texts, "en").edits}
    assert made == {"a": "Reed", "b": "Wood"}


def test_elision_follows_the_replacement() -> None:
    reply = {"entities": [entity("f", "Nina")], "edits": [edit(0, "f", "Amélie", "Nina")]}
    plan = locate_plan(reply, "r", {"a": "La fille d'Amélie."}, "fr")
    assert [(e.original, e.replacement) for e in plan.edits] == [("d'Amélie", "de Nina")]


def test_a_models_plan_passes_the_same_validator(serve, client, monkeypatch, tmp_path) -> None:
    drug = changed(
        entities=[*GOOD["entities"], entity("d", "Xy", "UNIQUE_ID")],
        edits=[*GOOD["edits"], edit(2, "d", "Ramipril", "Xy")],
    )
    planner = ChatDetector(client(serve(completion(json.dumps(drug)))))
    monkeypatch.setattr(engines, "load", lambda *_a, **_k: planner)
    turns = [
        {"turn_id": key, "speaker": "D", "text": text, "language": "en", "words": []}
        for key, text in TEXTS.items()
    ]
    settings = {"detector": "chat", "model": "toy", "max_cost": 1.0, "seed": 1}
    rows = plan_recording({"id": "r", "turns": turns}, settings, Run(Path(tmp_path)))
    refused = [row for row in rows["edits"] if row["status"] == "failed"]
    assert [row["original"] for row in refused] == ["Ramipril"]
    assert refused[0]["reason"].startswith("refused: clinical")
    assert {r["target_text"] for r in rows["regions"]} == {
        "I'm Nina Wood. Anna will see Kate.", "Nina, Iris rose at six. Nina's knee.",
    }  # fmt: skip
    assert {row["source"] for row in rows["mentions"]} == {"chat"}
    people = {row["original"]: row["n_mentions"] for row in rows["substitutions"]}
    assert people == {"Doris Hale": 3, "Ann": 1, "Rose": 1, "Ramipril": 1}
