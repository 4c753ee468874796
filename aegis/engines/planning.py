"""Detector ``chat``: the paper's planner, a language model under the frozen contract.

Unit: one conversation. The model gets the whole contract and the whole transcript in one prompt
and replies with entities and edits. Code checks the reply: every original stands literally in
the turn named, every entity has a category of the contract. A reply that breaks this is asked
again, and after the last attempt the recording fails: a refusal is never "nothing found". The
model's own replacements are not used: code chooses them for every detector by the same rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from aegis.engines import EngineInfo, Mention, TurnText, register
from aegis.engines.asking import chat_client, converse, transcript_text
from aegis.engines.chat import ChatClient, ChatRequest
from aegis.errors import ReplyError
from aegis.manifests import Contract, read_contract
from aegis.phi import CATEGORIES, occurrences
from aegis.prompting import fill, read_prompt


def contract_text(contract: Contract) -> str:
    """The contract as the prompt shows it: general rules, then one family a paragraph."""
    parts = [contract.title, *(f"- {rule}" for rule in contract.general)]
    for family in contract.families:
        lines = [f"{family.category}: {family.include}.", f"Not: {family.exclude}."]
        parts.append(" ".join([*lines, *(f"Example: {example}" for example in family.examples)]))
    return "\n".join(parts)


class ChatDetector:
    """Asks once a conversation; see the module for what is checked."""

    def __init__(self, client: ChatClient, attempts: int = 3) -> None:
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
        (found,) = self.ask([turns], [language])
        if found is None:
            raise ReplyError("plan: the reply stays invalid or the model refuses")
        return found

    def ask(
        self, conversations: Sequence[Sequence[TurnText]], languages: Sequence[str]
    ) -> list[list[Mention] | None]:
        """Mentions of many conversations, asked together; None where no reply was valid."""
        requests = [
            self._request(str(i), turns, language)
            for i, (turns, language) in enumerate(zip(conversations, languages, strict=True))
        ]
        checks = [_check_of(turns) for turns in conversations]
        outcomes = converse(self.client, requests, checks, self.attempts)
        return [
            None
            if problem is not None or reply.value is None
            else plan_mentions(reply.value, turns)
            for (reply, problem), turns in zip(outcomes, conversations, strict=True)
        ]

    def _request(self, name: str, turns: Sequence[TurnText], language: str) -> ChatRequest:
        prompt = read_prompt("plan")
        said = transcript_text((turn.speaker, turn.text) for turn in turns)
        fields = {
            "contract": contract_text(self._contract), "language": language,
            "entities": "none", "transcript": said,
        }  # fmt: skip
        return ChatRequest(name, prompt.system, fill(prompt, fields), prompt.schema, 16384)


def _check_of(turns: Sequence[TurnText]) -> Callable[[dict[str, Any]], None]:
    return lambda value: check_plan(value, turns)


def check_plan(value: dict[str, Any], turns: Sequence[TurnText]) -> None:
    """Originals are literal in their turns; entities have known categories.

    Raises
    ------
    ReplyError
        The message names places, never what was said.
    """
    category = {entity["entity"]: entity["category"] for entity in value["entities"]}
    unknown = sorted(set(category.values()) - set(CATEGORIES))
    if unknown:
        raise ReplyError(f"category: {unknown[:3]} are not in the contract")
    for number, edit in enumerate(value["edits"]):
        if edit["entity"] not in category:
            raise ReplyError(f"edit {number}: its entity is not in the inventory")
        if not 0 <= edit["turn"] < len(turns):
            raise ReplyError(f"edit {number}: there is no turn {edit['turn']}")
        if not occurrences(edit["original"], turns[edit["turn"]].text):
            raise ReplyError(f"edit {number}: its original is not in turn {edit['turn']}")


def plan_mentions(value: dict[str, Any], turns: Sequence[TurnText]) -> list[Mention]:
    """All occurrences of the planned originals in their turns, longest first, without overlap."""
    category = {entity["entity"]: entity["category"] for entity in value["entities"]}
    spans: dict[int, set[tuple[int, int, str]]] = {}
    for edit in value["edits"]:
        for start, end in occurrences(edit["original"], turns[edit["turn"]].text):
            kind = category[edit["entity"]]
            spans.setdefault(edit["turn"], set()).add((start, end, kind))
    found = []
    for index in sorted(spans):
        taken: list[tuple[int, int, str]] = []
        for span in sorted(spans[index], key=lambda s: (s[0] - s[1], s)):
            if all(span[1] <= other[0] or span[0] >= other[1] for other in taken):
                taken.append(span)
        found += [
            Mention(turns[index].turn_id, start, end, kind, "chat")
            for start, end, kind in sorted(taken)
        ]
    return found


@register("detector", "chat")
def _chat(model: str = "", cache: str = "", **options: Any) -> ChatDetector:
    return ChatDetector(chat_client(model, cache, options))
