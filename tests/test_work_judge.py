"""Items of the judging stages, worked out by hand: two conversations in interleaved rows."""

from __future__ import annotations

import pandas as pd
import pytest

from aegis.work import ItemResult
from aegis.work.judge import judge_items
from aegis.work.judge_edits import edit_items, edit_tables
from aegis.work.notes import acoustic_table


@pytest.fixture
def tables() -> dict[str, pd.DataFrame]:
    said = [
        ("b1", "b", 1, "In leeds.", 5.0), ("a0", "a", 0, "I live in Leeds.", 0.0),
        ("b0", "b", 0, "Where?", 2.0), ("a1", "a", 1, "Leeds? I take 50 mg.", 3.0),
    ]  # fmt: skip
    turns = pd.DataFrame(
        said, columns=["turn_id", "recording_id", "turn_index", "text", "start_s"]
    )
    turns[["speaker", "language"]] = "S1", "en"
    facts = pd.DataFrame(
        [("f2", "a", "dose", 1), ("g1", "b", "place", 1), ("f1", "a", "home", 0)],
        columns=["fact_id", "recording_id", "text", "turn_index"],
    )
    facts[["evidence", "question_turn_id"]] = "x", None
    none = pd.DataFrame(columns=["recording_id"])
    fresh = pd.DataFrame(
        [("b", "converted", "b1", "in bath"), ("a", "converted", "a1", "50 mg")],
        columns=["recording_id", "condition", "turn_id", "text"],
    )
    edits = pd.DataFrame(
        [("i1", "a", "a0", 10, 15, 0.5, 1.0), ("j1", "b", "b1", 3, 8, None, None)],
        columns=["intention_id", "recording_id", "turn_id", "char_start", "char_end",
                 "start_s", "end_s"],
    )  # fmt: skip
    edits[["original", "replacement", "status", "category"]] = "Leeds", "York", "ok", "place"
    heard = pd.DataFrame([("i1", "renderer_a")], columns=["item_id", "condition"])
    heard[["kind", "status", "text"]] = "focused", "ok", "I live in York."
    matches = pd.DataFrame(
        [("j1", "renderer_a", True, None), ("i1", "renderer_b", False, "no sound"),
         ("i1", "renderer_a", False, None), ("j1", "renderer_b", True, "lost")],
        columns=["intention_id", "condition", "planned_text_holds_original", "reason"],
    )  # fmt: skip
    matches["scope"] = "focused"
    return {
        "turns": turns, "facts": facts, "actions": none, "chronology": none,
        "turn_transcripts": fresh, "edits": edits, "transcripts": heard,
        "lexical_matches": matches,
    }  # fmt: skip


def test_every_recording_is_judged_on_its_own_rows(tables: dict[str, pd.DataFrame]) -> None:
    items = judge_items(tables, ["original", "converted"])
    assert [item["id"] for item in items] == ["a:converted", "b:converted"]
    first, second = items
    assert [row[0] for row in first["claims"]["facts"]] == ["f2", "f1"]
    assert [row[0] for row in second["claims"]["facts"]] == ["g1"]
    assert first["target"] == [["S1", ""], ["S1", "50 mg"]]
    assert second["source"] == [["S1", "Where?"], ["S1", "In leeds."]]


def test_an_original_is_looked_for_in_its_own_conversation(
    tables: dict[str, pd.DataFrame],
) -> None:
    (item,) = edit_items(tables)
    (case,) = item["cases"]
    assert (item["id"], case["planned"]) == ("a:renderer_a", "I live in York.")
    assert case["elsewhere"] == ["Leeds? I take 50 mg."]


def test_every_intention_has_a_row_a_renderer(tables: dict[str, pd.DataFrame]) -> None:
    items = edit_items(tables)
    lost = ItemResult("a:renderer_a", "failed", "no judge", None, 0.0, 0.0, False)
    made = edit_tables(tables, items, [lost], "rules")["edit_verdicts"]
    rows = made.set_index(["intention_id", "condition"])
    assert rows["reason"].to_dict() == {
        ("i1", "renderer_a"): "no judge", ("i1", "renderer_b"): "no sound",
        ("j1", "renderer_a"): "not heard", ("j1", "renderer_b"): "lost",
    }  # fmt: skip
    assert rows["planned_text_holds_original"].tolist() == [False, False, True, True]


def test_acoustics_are_those_of_the_own_condition(tables: dict[str, pd.DataFrame]) -> None:
    timeline = pd.DataFrame(
        [("a", "converted", "turn", 16000, 16000), ("b", "converted", "turn", 0, 16000),
         ("a", "converted", "turn", 48000, 40000), ("a", "converted", "gap", 90000, 0)],
        columns=["recording_id", "condition", "kind", "out_start", "source_start"],
    )  # fmt: skip
    made = pd.DataFrame(
        [(name, "converted") for name in "ba"], columns=["recording_id", "condition"]
    )
    made[["status", "reason", "duration_s", "inserted_s"]] = "ok", None, 2.0, 0.0
    lengths = pd.DataFrame({"recording_id": ["a", "b"], "duration_s": [2.0, 4.0]})
    more = {"timeline": timeline, "reconstructions": made, "recordings": lengths}
    values = acoustic_table({**tables, **more}, [], []).set_index(["recording_id", "measure"])
    found = values["value"].to_dict()
    assert found["a", "largest start shift"] == 0.5 and found["b", "largest start shift"] == 1.0
    assert found["a", "numbers kept"] == 1.0  # the dose, in the turn that was heard
    assert pd.isna(found["b", "numbers kept"])
