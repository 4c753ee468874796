"""Judges: labels worked out by hand, the reply contract, and gates that can fail."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from aegis.engines import EngineInfo, load
from aegis.engines.asking import check_evidence, check_unsupported
from aegis.engines.chat import ChatRequest, Reply
from aegis.engines.judging import (
    ORDERS,
    Claim,
    EditCase,
    JudgeCase,
    Judgement,
    RulesJudge,
    Said,
    Verdict,
)
from aegis.engines.judging_chat import ChatJudge
from aegis.engines.qualification import (
    BLIND,
    BlindJudge,
    qualify,
    read_suite,
    require_qualified,
    seeded_suite,
)
from aegis.errors import ParamError, ReplyError, StageFailed
from aegis.prompting import fill, read_prompt, read_prompts
from aegis.replies import SCHEMAS


def case(source: Sequence[str], target: Sequence[str], evidence: str, **more: Any) -> JudgeCase:
    turns = [
        tuple(Said("DP"[i % 2], text) for i, text in enumerate(side)) for side in (source, target)
    ]
    turn = next(i for i, text in enumerate(source) if evidence in text)
    return JudgeCase(
        "c", more.pop("language", "en"), *turns, (Claim("f1", evidence, evidence, turn),), **more
    )


def test_rules_pass_both_suites() -> None:
    suite, seeded = require_qualified(load("judge", "rules"))
    assert suite.counts["harmful"][0] >= 33 and suite.counts["benign"] == (9, 9, 9)
    assert suite.counts["coverage"][0] == 45
    assert seeded.counts["right"][0] >= 36
    assert len(suite.rows) == 45 * 3 + 3  # two orders and the consensus, and three gates


@pytest.mark.parametrize("name", list(BLIND))
def test_blind_judges_are_refused(name: str) -> None:
    judge = BlindJudge(RulesJudge(), name, BLIND[name])
    with pytest.raises(StageFailed, match=rf"judge {name} is not qualified: .*harmful"):
        require_qualified(judge, [read_suite()])


def test_a_judge_that_sees_only_harm_fails_the_benign_gate() -> None:
    class Gloomy(RulesJudge):
        info = EngineInfo("judge", "gloomy", "test", "Apache-2.0")

        def judge(self, cases: Sequence[JudgeCase], order: str) -> list[Judgement]:
            return [
                Judgement(c.id, tuple(Verdict(k.id, "missing") for k in c.claims)) for c in cases
            ]

    with pytest.raises(StageFailed, match="benign 0/9"):
        require_qualified(Gloomy(), [read_suite()])


def test_orders_that_disagree_are_not_covered() -> None:
    class Fickle(RulesJudge):
        info = EngineInfo("judge", "fickle", "test", "Apache-2.0")

        def judge(self, cases: Sequence[JudgeCase], order: str) -> list[Judgement]:
            label = "missing" if order == ORDERS[0] else "partial"
            return [Judgement(c.id, tuple(Verdict(k.id, label) for k in c.claims)) for c in cases]

    result = qualify(Fickle(), read_suite())
    assert result.counts["coverage"][0] == 0 and not result.passed
    consensus = [row for row in result.rows if row["order"] == "consensus" and row["language"]]
    assert {row["status"] for row in consensus} == {"failed"}


def test_seeded_suite_is_drawn_from_its_seed() -> None:
    assert seeded_suite(3) == seeded_suite(3) != seeded_suite(4)


@pytest.mark.parametrize(
    ("target", "label"),
    [
        ("I take digoxin, 0.25 mg, every morning.", "preserved"),
        ("I take digoxin, two point five milligrams, every morning.", "contradicted"),
        ("I take digoxin, two hundred and fifty micrograms, every morning.", "preserved"),
        ("I take digoxin every morning.", "partial"),
        ("I take digoxin, 0.25 mg, every evening.", "contradicted"),
        ("Nice weather today.", "missing"),
    ],
)
def test_doses_are_quantities(target: str, label: str) -> None:
    said = "I take digoxin, zero point two five milligrams, every morning."
    found = RulesJudge().judge(
        [case(["And?", said], ["And?", target], said.rstrip("."))], ORDERS[0]
    )
    assert found[0].verdicts[0].label == label


def test_swapped_doses_contradict() -> None:
    said = "Losartan, fifty milligrams, and simvastatin, twenty milligrams."
    swapped = "Losartan, twenty milligrams, and simvastatin, fifty milligrams."
    found = RulesJudge().judge([case([said], [swapped], "Losartan, fifty milligrams")], ORDERS[0])
    assert found[0].verdicts[0].label == "contradicted"


def test_an_omission_is_not_blamed_on_its_neighbour() -> None:
    source = ["My left knee is swollen. My right knee is fine."]
    found = RulesJudge().judge(
        [case(source, ["My right knee is fine."], "My left knee is swollen")], ORDERS[0]
    )
    assert found[0].verdicts[0].label == "missing"


def test_question_and_answer_are_read_over_two_turns() -> None:
    source = ["Do you have any allergies?", "No."]
    judge = RulesJudge()
    for answer, label in (
        ("No, none.", "preserved"),
        ("Yes.", "contradicted"),
        ("Nope.", "preserved"),
    ):
        found = judge.judge([case(source, [source[0], answer], "No.")], ORDERS[0])
        assert found[0].verdicts[0].label == label


def test_endpoints_name_omission_and_role_change() -> None:
    source = ["The midwife will remove the drain on Monday."]
    judge = RulesJudge()
    for target, label in (
        ("You will remove the drain on Monday.", "role_change"),
        ("Goodbye then.", "omission"),
        (source[0], "preserved"),
    ):
        found = judge.judge([case(source, [target], source[0], kind="actions")], ORDERS[0])
        assert found[0].verdicts[0].label == label


def test_unsupported_assertions_are_literal() -> None:
    source, target = (
        ["I have a cough."],
        ["I have a cough. I also take warfarin, five milligrams."],
    )
    found = RulesJudge().judge([case(source, target, "I have a cough")], ORDERS[0])
    assert found[0].unsupported == ("I also take warfarin, five milligrams",)


def test_evidence_is_literal_in_the_target() -> None:
    source = ["Any pain?", "In my left hip, for two weeks."]
    target = ["Any pain?", "Um, in my left hip, for 2 weeks, yes."]
    verdict = (
        RulesJudge()
        .judge([case(source, target, "In my left hip, for two weeks")], ORDERS[0])[0]
        .verdicts[0]
    )
    assert verdict.label == "preserved" and verdict.evidence in target[1]


def test_edit_verdicts() -> None:
    edit = EditCase("i", "en", "I'm Doris.", "I'm Nina, so Doris.", "I'm Nina.", "Doris", "Nina")
    verdict = RulesJudge().judge_edits([edit], ORDERS[0])[0]
    assert (verdict.source_present, verdict.replacement_status, verdict.original_status) == (
        "yes", "realised", "retained",
    )  # fmt: skip


def test_unknown_order_is_refused() -> None:
    with pytest.raises(ParamError, match="order 'sideways'"):
        RulesJudge().judge([], "sideways")


# --- the reply contract of the chat judge ------------------------------------------------


class FakeClient:
    """Answers with prepared values, one list of values a call."""

    def __init__(self, answers: list[list[dict[str, Any] | None]]) -> None:
        self.answers, self.asked = answers, []  # type: ignore[var-annotated]
        self.model = type("M", (), {"info": EngineInfo("chat", "fake", "1", "none")})()

    def ask(self, requests: Sequence[ChatRequest]) -> list[Reply]:
        self.asked.append(list(requests))
        values = self.answers.pop(0)
        return [
            Reply(r.id, "valid" if v is not None else "refused", v, None, 1, 0, 0, 0.0, "q", "r")
            for r, v in zip(requests, values, strict=True)
        ]


def reply(label: str, evidence: str, unsupported: Sequence[str] = ()) -> dict[str, Any]:
    items = [{"id": "f1", "label": label, "evidence": evidence}]
    return {"items": items, "unsupported": list(unsupported)}


def judged(answers: list[list[dict[str, Any] | None]]) -> tuple[Verdict, FakeClient]:
    client = FakeClient(answers)
    one = case(["I have a cough."], ["I had a cough."], "I have a cough")
    return ChatJudge(client, attempts=2).judge([one], ORDERS[1])[0].verdicts[0], client  # type: ignore[arg-type]


def test_a_reply_with_evidence_from_elsewhere_is_asked_again() -> None:
    verdict, client = judged(
        [[reply("preserved", "I have a cough")], [reply("preserved", "a cough")]]
    )
    assert verdict.label == "preserved" and verdict.attempts == 2
    assert "not literally in the target" in client.asked[1][0].user
    assert client.asked[0][0].user.index("TARGET TRANSCRIPT") < client.asked[0][0].user.index(
        "SOURCE TRANSCRIPT"
    )


def test_an_invalid_reply_is_unobserved_not_missing() -> None:
    verdict, _ = judged([[reply("preserved", "x")], [reply("missing", "a cough")]])
    assert verdict.label is None and verdict.status == "failed"
    assert str(verdict.reason).startswith("invalid: evidence: f1 is missing and gives evidence")


def test_a_refusal_is_not_asked_again() -> None:
    verdict, client = judged([[None]])
    assert verdict.label is None and len(client.asked) == 1


def test_repeated_unsupported_assertions_quarantine_the_reply() -> None:
    twice = reply("preserved", "a cough", ["I had", "I had"])
    verdict, _ = judged([[twice], [twice]])
    assert "quarantined" in str(verdict.reason)


def test_checks_name_the_rule() -> None:
    with pytest.raises(ReplyError, match="that of f9"):
        check_evidence([{"id": "f9", "label": "partial", "evidence": ""}], ["text"])
    with pytest.raises(ReplyError, match="not literally"):
        check_unsupported(["other"], ["text"])


# --- prompts ---------------------------------------------------------------------------


def test_prompts_are_complete() -> None:
    names = {prompt.name for prompt in read_prompts()}
    assert names >= {
        "plan", "extract_facts", "judge_facts", "judge_edits", "judge_chronology", "judge_actions",
        "judge_roles", "judge_final_state", "write_note", "judge_notes", "stressors",
    }  # fmt: skip
    assert {prompt.schema_name for prompt in read_prompts()} <= set(SCHEMAS)


def test_a_prompts_hash_follows_its_text() -> None:
    prompt = read_prompt("judge_facts")
    assert replace(prompt, system=prompt.system + ".").sha256 != prompt.sha256
    with pytest.raises(Exception, match="fields"):
        fill(prompt, {"language": "en"})
    filled = fill(prompt, {"language": "en", "transcripts": json.dumps({"a": 1}), "facts": "f"})
    assert '{"a": 1}' in filled
