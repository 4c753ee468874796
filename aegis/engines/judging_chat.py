"""The judge through the chat engine: prompts, portions of claims, the reply contract.

Unit: one request, at most ``claims_a_request`` claims of one case in one presentation order.
A portion whose reply stays invalid is failed as a whole: its labels are unobserved.

Classes: :class:`ChatJudge`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from aegis.engines import EngineInfo, register
from aegis.engines.asking import (
    ATTEMPTS,
    Check,
    chat_client,
    check_evidence,
    check_unsupported,
    converse,
    transcript_text,
)
from aegis.engines.chat import ChatClient, ChatRequest, Reply
from aegis.engines.judging import (
    EditCase,
    EditVerdict,
    JudgeCase,
    Judgement,
    Said,
    Verdict,
    check_order,
)
from aegis.errors import ReplyError
from aegis.prompting import fill, read_prompt

PROMPTS = {
    "facts": "judge_facts", "actions": "judge_actions", "roles": "judge_roles",
    "chronology": "judge_chronology", "final_state": "judge_final_state",
}  # fmt: skip


@dataclass
class ChatJudge:
    """Verdicts of a language model under the reply contract."""

    client: ChatClient
    attempts: int = ATTEMPTS
    claims_a_request: int = 40

    @property
    def info(self) -> EngineInfo:
        return replace(self.client.model.info, role="judge")

    def judge(self, cases: Sequence[JudgeCase], order: str) -> list[Judgement]:
        """Judge cases, claims in portions; a portion that stays invalid is failed as a whole."""
        check_order(order)
        parts = [part for case in cases for part in _portions(case, self.claims_a_request)]
        outcomes = converse(
            self.client,
            [_fact_request(part, order) for part in parts],
            [_adjudication_check(part) for part in parts],
            self.attempts,
        )
        made: dict[str, list[tuple[JudgeCase, Reply, str | None]]] = {}
        for part, (reply, problem) in zip(parts, outcomes, strict=True):
            made.setdefault(part.id.rsplit("#", 1)[0], []).append((part, reply, problem))
        return [_judgement(case, made.get(case.id, [])) for case in cases]

    def judge_edits(self, cases: Sequence[EditCase], order: str) -> list[EditVerdict]:
        check_order(order)
        outcomes = converse(
            self.client,
            [_edit_request(case, order) for case in cases],
            [_edit_check(case) for case in cases],
            self.attempts,
        )
        return [_edit_verdict(c, r, p) for c, (r, p) in zip(cases, outcomes, strict=True)]


def _portions(case: JudgeCase, size: int) -> list[JudgeCase]:
    return [
        replace(case, id=f"{case.id}#{i}", claims=case.claims[i : i + size])
        for i in range(0, len(case.claims), size)
    ]


def _transcript(turns: Sequence[Said]) -> str:
    return transcript_text((turn.speaker, turn.text) for turn in turns)


def _fact_request(case: JudgeCase, order: str) -> ChatRequest:
    prompt = read_prompt(PROMPTS[case.kind])
    blocks = [
        f"SOURCE TRANSCRIPT\n{_transcript(case.source)}",
        f"TARGET TRANSCRIPT\n{_transcript(case.target)}",
    ]
    blocks = blocks if order == "source_first" else blocks[::-1]
    listed = "\n".join(f"{c.id}: {c.text} [turn {c.turn}: {c.evidence}]" for c in case.claims)
    user = fill(
        prompt, {"language": case.language, "transcripts": "\n\n".join(blocks), "facts": listed}
    )
    return ChatRequest(
        case.id, prompt.system, user, prompt.schema, 16384, tuple(c.id for c in case.claims)
    )


def _adjudication_check(case: JudgeCase) -> Check:
    texts = [turn.text for turn in case.target]

    def check(value: dict[str, Any]) -> None:
        check_evidence(value["items"], texts)
        check_unsupported(value["unsupported"], texts)

    return check


def _judgement(case: JudgeCase, parts: Sequence[tuple[JudgeCase, Reply, str | None]]) -> Judgement:
    verdicts: list[Verdict] = []
    extra: list[str] = []
    prompt = read_prompt(PROMPTS[case.kind]).sha256
    for part, reply, problem in parts:
        answer = _answer(prompt, reply, problem)
        if problem is not None:
            verdicts += [Verdict(claim.id, None, **answer) for claim in part.claims]
            continue
        value = reply.value or {}
        by_id = {item["id"]: item for item in value["items"]}
        for claim in part.claims:
            item = by_id[claim.id]
            verdicts.append(Verdict(claim.id, item["label"], item["evidence"], **answer))
        extra += [text for text in value["unsupported"] if text not in extra]
    return Judgement(case.id, tuple(verdicts), tuple(extra))


def _answer(prompt_sha256: str, reply: Reply, problem: str | None) -> dict[str, Any]:
    """The fields of :class:`Answer`."""
    return {
        "status": "ok" if problem is None else "failed",
        "reason": None if problem is None else f"invalid: {problem}",
        "attempts": reply.attempts, "prompt_sha256": prompt_sha256,
        "request_sha256": reply.request_sha256, "reply_sha256": reply.reply_sha256,
    }  # fmt: skip


def _edit_request(case: EditCase, order: str) -> ChatRequest:
    prompt = read_prompt("judge_edits")
    when = "unknown" if case.start_s is None else f"{case.start_s:.2f} to {case.end_s or 0:.2f} s"
    pair = [f"source turn: {case.source}", f"edited turn: {case.heard}"]
    pair = pair if order == "source_first" else pair[::-1]
    lines = [
        f"id {case.id}", f"original: {case.original}", f"replacement: {case.replacement}",
        f"time in the edited turn: {when}", *pair,
        f"similar words elsewhere: {'; '.join(case.elsewhere) or 'none'}",
    ]  # fmt: skip
    user = fill(prompt, {"language": case.language, "edits": "\n".join(lines)})
    return ChatRequest(case.id, prompt.system, user, prompt.schema, 2048, (case.id,))


def _edit_check(case: EditCase) -> Check:
    def check(value: dict[str, Any]) -> None:
        item = value["items"][0]
        for name, status in (("replacement", "realised"), ("original", "retained")):
            evidence = item[f"{name}_evidence"]
            if evidence and evidence not in case.heard:
                raise ReplyError(
                    f"evidence: that of the {name} is not literally in the edited turn"
                )
            if item[f"{name}_status"] == status and not evidence:
                raise ReplyError(f"evidence: {status} without evidence")

    return check


def _edit_verdict(case: EditCase, reply: Reply, problem: str | None) -> EditVerdict:
    answer = _answer(read_prompt("judge_edits").sha256, reply, problem)
    if problem is not None or reply.value is None:
        return EditVerdict(case.id, None, None, None, **answer | {"status": "failed"})
    item = reply.value["items"][0]
    return EditVerdict(
        case.id,
        item["source_present"],
        item["replacement_status"],
        item["original_status"],
        item["replacement_evidence"],
        item["original_evidence"],
        **answer,
    )


@register("judge", "chat")
def _chat(model: str = "", cache: str = "", **options: Any) -> ChatJudge:
    return ChatJudge(chat_client(model, cache, options))
