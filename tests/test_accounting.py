"""Every scheduled judgement has one fate, a fixed set shows drift, and no effect stands alone."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pandas as pd
import pytest
from chat_server import completion

from aegis.accounting import account, failure_class
from aegis.clinical_contrasts import edit_bounds, effect_table, null_control, unchanged_facts
from aegis.engines import EngineInfo
from aegis.engines.anchors import compare_passages, judge_anchors
from aegis.engines.judging import JudgeCase, Judgement, RulesJudge, Verdict
from aegis.engines.judging_chat import ChatJudge
from aegis.engines.qualification import Suite, read_suite


@pytest.mark.parametrize(
    ("status", "reason", "name"),
    [
        ("failed", "no transcript of this condition", "no transcript"),
        ("failed", "no audio: unsupported: first word", "not rendered"),
        ("failed", "not planned: refused: overlap", "not rendered"),
        ("failed", "invalid: truncated: truncated: its length limit", "truncated"),
        ("failed", "invalid: refused: refused: the model declined", "refused"),
        ("failed", "invalid: failed: failed: HTTP 500", "request failed"),
        ("failed", "invalid: quarantined: an assertion twice", "quarantined"),
        ("failed", "invalid: evidence: that of f1 is not literal", "contract broken"),
        ("failed", None, "other failure"),
        ("not_applicable", "no turns", "not applicable"),
    ],
)
def test_each_failure_has_one_class(status: str, reason: str | None, name: str) -> None:
    assert failure_class(status, reason) == name


def test_scheduled_is_valid_and_each_class() -> None:
    table = pd.DataFrame(
        {
            "arm": ["a", "a", "a", "b"],
            "status": ["ok", "failed", "failed", "ok"],
            "reason": [None, "invalid: refused: x", "invalid: refused: y", None],
        }
    )
    found = account(table, ["arm"]).set_index("arm")
    assert found.loc["a"].to_dict() == {"scheduled": 3, "valid": 1, "refused": 2}
    assert found.loc["b"].to_dict() == {"scheduled": 1, "valid": 1, "refused": 0}
    assert account(table.iloc[:0], ["arm"]).empty


FACTS = pd.DataFrame(
    {
        "fact_id": ["f0", "f1", "f2"], "recording_id": "r", "turn_index": [0, 1, 3],
        "turn_id": ["t0", "t1", "t3"], "question_turn_id": [None, "t0", None],
        "importance": "major",
    }
)  # fmt: skip


def heard(condition: str, texts: Sequence[str]) -> pd.DataFrame:
    rows = [
        {"turn_id": f"t{i}", "condition": condition, "recording_id": "r", "text": text}
        | {"out_start_s": float(i)}
        for i, text in enumerate(texts)
    ]
    return pd.DataFrame(rows)


def labelled(condition: str, labels: Sequence[str | None]) -> pd.DataFrame:
    own = FACTS[["fact_id", "recording_id", "importance"]]
    return own.assign(condition=condition, order="source_first", label=list(labels))


TEXTS = pd.concat([heard("x", ["a", "b", "c", "d"]), heard("y", ["a", "b", "c", "e"])])


def test_null_control_counts_labels_that_differ_on_the_same_words() -> None:
    # t3 differs, and t2 is its neighbour: only f0 and f1 read the same in both arms.
    assert list(unchanged_facts(FACTS, TEXTS, ("x", "y"))) == ["f0", "f1"]
    verdicts = pd.concat(
        [
            labelled("x", ["preserved", "preserved", "preserved"]),
            labelled("y", ["preserved", "missing", "missing"]),
        ]
    )
    assert null_control(verdicts, FACTS, TEXTS, ("x", "y")) == {
        "same text": 2, "labels differ": 1,
    }  # fmt: skip


def test_an_effect_stands_beside_its_bounds_and_null_control() -> None:
    verdicts = pd.concat(
        [
            labelled("x", ["preserved", "preserved", "missing"]),
            labelled("y", ["preserved", None, "preserved"]),
        ]
    )
    noise = pd.DataFrame({"endpoint": ["fact preserved"], "estimate": [-0.02]})
    row = effect_table(verdicts, FACTS, TEXTS, [("x", "y")], noise).iloc[0]
    # Two facts observed in both: preserved 2 against 1. The unobserved one is at both extremes.
    assert row["facts"] == 2 and row["points"] == pytest.approx(50.0)
    assert row["noise floor"] == pytest.approx(-2.0)
    assert row["bound low"] == pytest.approx(0.0) and row["bound high"] == pytest.approx(100 / 3)
    assert (row["same text"], row["labels differ"]) == (1, 0)


def test_rules_do_not_drift_and_a_judge_that_does_is_seen() -> None:
    class Drifting(RulesJudge):
        info = EngineInfo("judge", "drifting", "test", "Apache-2.0")

        def judge(self, cases: Sequence[JudgeCase], order: str) -> list[Judgement]:
            found = super().judge(cases, order)
            for i in (0, 1) if getattr(self, "asked", False) else ():
                found[i] = Judgement(found[i].id, (Verdict(cases[i].claims[0].id, None),))
            if getattr(self, "asked", False):
                label = "missing" if found[2].verdicts[0].label != "missing" else "partial"
                found[2] = Judgement(found[2].id, (Verdict(cases[2].claims[0].id, label),))
            self.asked = True
            return found

    for judge, expected in (
        (RulesJudge(), {"cases": 45, "unobserved": 0, "changed": 0}),
        (Drifting(), {"cases": 45, "unobserved": 2, "changed": 1}),
    ):
        rows = judge_anchors(judge, "start") + judge_anchors(judge, "end")
        assert compare_passages(pd.DataFrame(rows)) == expected


def test_each_passage_asks_a_hosted_judge_anew_and_is_kept(serve, client) -> None:
    whole = read_suite()
    suite = Suite("one", whole.cases[:1], {})
    target = suite.cases[0].case.target[0].text

    def reply(label: str, evidence: str) -> object:
        item = {"id": suite.cases[0].case.claims[0].id, "label": label, "evidence": evidence}
        return completion(json.dumps({"items": [item], "unsupported": []}))

    server = serve(reply("preserved", target), reply("missing", ""))
    judge = ChatJudge(client(server, concurrency=1))
    rows = judge_anchors(judge, "start", suite) + judge_anchors(judge, "end", suite)
    assert compare_passages(pd.DataFrame(rows)) == {"cases": 1, "unobserved": 0, "changed": 1}
    assert len(server.bodies) == 2
    again = judge_anchors(judge, "start", suite)
    assert again[0]["label"] == "preserved" and len(server.bodies) == 2


def test_bounds_of_edits_leave_generation_failures_failed() -> None:
    def side(condition: str, *outcomes: tuple[str | None, str, int]) -> pd.DataFrame:
        return pd.DataFrame(
            [
                {"intention_id": f"i{i}", "condition": condition, "order": "source_first"}
                | {"replacement_status": label, "original_status": "absent"}
                | {"status": status, "attempts": attempts}
                for i, (label, status, attempts) in enumerate(outcomes)
            ]
        )

    never, invalid = (None, "failed", 0), (None, "failed", 3)
    realised, uncertain = ("realised", "ok", 1), ("uncertain", "ok", 1)
    verdicts = pd.concat(
        [
            side("renderer_a", realised, realised, never, uncertain),
            side("renderer_b", realised, invalid, realised, realised),
        ]
    )
    # a: 2 of 4 and 1 unresolved (50 to 75 %); b: 3 of 4 and 1 unresolved (75 to 100 %).
    row = edit_bounds(verdicts).iloc[0]
    assert (row["edits"], row["unresolved"]) == (4, 2)
    assert (row["points"], row["bound low"], row["bound high"]) == (25.0, 0.0, 50.0)
