"""Chronology by rules, and its score against a script; all expected relations are by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from aegis.clinical_truth import plan_table
from aegis.facts import extract_inventory
from aegis.inventory import SourceTurn

ROLES = {"D": "clinician", "P": "patient"}


def relations(*said: str, language: str = "en") -> list[tuple[str, str, str]]:
    turns = [SourceTurn(str(i), text[0], text[3:]) for i, text in enumerate(said)]
    found = extract_inventory(turns, language, ROLES).relations
    return [(r.relation, r.first, r.second) for r in found]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("P: The rash came after the antibiotic.", ("after", "The rash came", "the antibiotic")),
        (
            "P: Since the operation I have had a cough.",
            ("after", "I have had a cough", "the operation"),
        ),
        ("D: First a scan, then we treat the ulcer.", ("before", "a scan", "we treat the ulcer")),
        ("D: Let's wait for the biopsy.", ("before", "the biopsy", "the decision")),
        (
            "P: I vomited yesterday, but now the nausea is less.",
            ("before", "I vomited yesterday", "but now the nausea is less"),
        ),
    ],
)
def test_orders_of_events(said: str, expected: tuple[str, str, str]) -> None:
    assert relations(said) == [expected]


@pytest.mark.parametrize(
    "said",
    [
        "P: I have had a cough since twenty fifteen.",
        "P: I have had a cough for two weeks.",
        "D: Did the rash come after the antibiotic?",
        "P: Then we went home.",
        "P: I take warfarin, five milligrams.",
    ],
)
def test_durations_questions_and_history_relate_nothing(said: str) -> None:
    assert relations(said) == []


def test_order_in_french() -> None:
    found = relations("D: On fait une radio, puis une opération.", language="fr")
    assert found == [("before", "On fait une radio", "une opération")]


def test_a_revision_names_what_it_replaces_and_the_state_it_leaves() -> None:
    found = relations(
        "D: Take ramipril, five milligrams. Actually, no, let's lower it to two milligrams.",
        "P: All right.",
    )
    assert found[0][:2] == ("revises", "Take ramipril, five milligrams")
    assert [(r, f) for r, f, _ in found[1:]] == [("final_state", "ramipril")]
    assert "two milligrams" in found[1][2]


def test_only_a_finding_that_was_there_is_gone() -> None:
    before, after = "P: I had a rash and a fever.", "D: There is no rash today, and no cough."
    found = relations(before, after)
    assert [(r, f) for r, f, _ in found] == [("final_state", "rash")]


def test_actions_and_relations_are_scored_by_turn_label_and_words() -> None:
    turns = pd.DataFrame({"turn_id": ["a", "b"], "start_s": [0.0, 5.0], "end_s": [5.0, 9.0]})
    place = {"recording_id": "r"}
    gold = {
        "gold_turns": pd.DataFrame(
            [
                place
                | {"turn_index": i, "text": text, "language": "en"}
                | {"start_s": 5.0 * i, "end_s": 5.0 * i + 4}
                for i, text in enumerate(["stop the heparin now", "a scan before the walk"])
            ]
        ),
        "gold_actions": pd.DataFrame(
            [place | {"turn_index": 0, "evidence": "stop the heparin", "state": "stopped"}]
        ),
        "gold_chronology": pd.DataFrame(
            [place | {"turn_index": 1, "evidence": "before the walk", "relation": "before"}]
        ),
    }
    actions = pd.DataFrame(
        [
            place | {"turn_id": "a", "evidence": "stop the heparin now", "state": "planned"},
            place | {"turn_id": "b", "evidence": "a scan", "state": "planned"},
        ]
    )
    said = pd.DataFrame(
        [
            place | {"turn_id": "b", "evidence": "a scan before the walk", "relation": name}
            for name in ("before", "final_state")
        ]
    )
    rates = {
        (row.group, row.measure): (row.numerator, row.denominator)
        for row in plan_table(actions, said, turns, gold).itertuples()
    }
    assert rates["action", "precision"] == (1, 2) and rates["action", "recall"] == (1, 1)
    assert rates["action", "state"] == (0, 1)
    assert rates["order", "precision"] == rates["order", "recall"] == (1, 1)
    assert rates["final state", "precision"] == (0, 1)
    assert rates["revision", "recall"] == (0, 0)
