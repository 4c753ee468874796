"""Detector ``chat``: the paper's planner, a language model under the frozen contract.

Unit: one conversation. The model gets the whole contract and the whole transcript in one prompt
and replies with an inventory of entities and ordered edits, which :func:`aegis.plan.check_plan`
checks. A reply that breaks a rule is asked again, and after the last attempt the recording
fails: a refusal is never "nothing found". :meth:`ChatDetector.plan` gives the reply itself, with
the model's entities and replacements; :meth:`ChatDetector.detect` its mentions alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aegis.engines import EngineInfo, Mention, TurnText, register
from aegis.engines.asking import ATTEMPTS, Check, chat_client, converse, transcript_text
from aegis.engines.chat import ChatClient, ChatRequest, Reply
from aegis.errors import ReplyError
from aegis.manifests import read_contract
from aegis.plan import check_plan, contract_text, locate_plan
from aegis.prompting import fill, read_prompt


class ChatDetector:
    """Asks once a conversation; see the module for what is checked."""

    def __init__(self, client: ChatClient, attempts: int = ATTEMPTS) -> None:
        self.client, self.attempts = client, attempts
        self._contract = read_contract()
        info, prompt = client.model.info, read_prompt("plan")
        revision = f"{info.revision} contract-{self._contract.sha256[:12]} {prompt.sha256[:12]}"
        self.info = EngineInfo(
            "detector", info.name, revision, info.licence, info.device, embedded=False
        )

    def detect(self, turns: Sequence[TurnText], language: str) -> list[Mention]:
        """Mentions in turn order.

        Raises
        ------
        ReplyError
            The reply stays invalid, or the model refuses.
        """
        return _mentions(self.plan(turns, language), turns, language)

    def plan(self, turns: Sequence[TurnText], language: str) -> dict[str, Any]:
        """The reply: ``entities`` with replacements and ordered ``edits``.

        Raises
        ------
        ReplyError
            The reply stays invalid, or the model refuses.
        """
        reply, problem = self._converse([turns], [language])[0]
        if problem is not None or reply.value is None:
            raise ReplyError(f"plan: invalid: {problem}")
        return reply.value

    def ask(
        self, conversations: Sequence[Sequence[TurnText]], languages: Sequence[str]
    ) -> list[list[Mention] | None]:
        """Mentions of many conversations, asked together; None where no reply was valid."""
        outcomes = self._converse(conversations, languages)
        return [
            None
            if problem is not None or reply.value is None
            else _mentions(reply.value, turns, language)
            for (reply, problem), turns, language in zip(
                outcomes, conversations, languages, strict=True
            )
        ]

    def _converse(
        self, conversations: Sequence[Sequence[TurnText]], languages: Sequence[str]
    ) -> list[tuple[Reply, str | None]]:
        pairs = list(zip(conversations, languages, strict=True))
        requests = [self._request(str(i), *pair) for i, pair in enumerate(pairs)]
        return converse(self.client, requests, [_check_of(*p) for p in pairs], self.attempts)

    def _request(self, name: str, turns: Sequence[TurnText], language: str) -> ChatRequest:
        prompt = read_prompt("plan")
        said = transcript_text((turn.speaker, turn.text) for turn in turns)
        fields = {
            "contract": contract_text(self._contract), "language": language,
            "entities": "none", "transcript": said,
        }  # fmt: skip
        return ChatRequest(name, prompt.system, fill(prompt, fields), prompt.schema, 16384)


def _check_of(turns: Sequence[TurnText], language: str) -> Check:
    texts = [turn.text for turn in turns]
    return lambda value: check_plan(value, texts, language)


def _mentions(value: dict[str, Any], turns: Sequence[TurnText], language: str) -> list[Mention]:
    """Where code finds the planned originals, in turn order."""
    texts = {turn.turn_id: turn.text for turn in turns}
    order = {turn_id: place for place, turn_id in enumerate(texts)}
    found = [
        Mention(m.turn_id, m.start, m.end, m.category, "chat")
        for m in locate_plan(value, "", texts, language).mentions
    ]
    return sorted(found, key=lambda m: (order[m.turn_id], m.char_start))


@register("detector", "chat")
def _chat(model: str = "", cache: str = "", **options: Any) -> ChatDetector:
    return ChatDetector(chat_client(model, cache, options))
