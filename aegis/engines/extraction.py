"""Extractors of the clinical inventory: by rules (embedded) or through the chat engine.

Unit: one conversation. Role ``fact_extractor`` with the names ``rules`` and ``chat``. What a
model returns is checked as code checks a script: evidence literally in the turn named, and a
question turn before it; a reply that breaks this is asked again, then the recording failed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from aegis.engines import EngineInfo, register
from aegis.engines.asking import ATTEMPTS, chat_client, converse, transcript_text
from aegis.engines.chat import ChatClient, ChatRequest
from aegis.engines.judging import RULES_REVISION
from aegis.errors import ReplyError
from aegis.facts import extract_inventory
from aegis.inventory import Action, Fact, Inventory, Relation, SourceTurn
from aegis.prompting import fill, read_prompt

_PROMPTS = ("extract_facts", "extract_actions", "extract_chronology")
_LISTS = ("facts", "actions", "relations")


class FactExtractor(Protocol):
    info: EngineInfo

    def extract(self, turns: Sequence[SourceTurn], language: str) -> Inventory:
        """The inventory of one conversation.

        Raises
        ------
        ReplyError
            A reply stays invalid after all attempts.
        """
        ...


class RulesExtractor:
    info = EngineInfo("fact_extractor", "rules", RULES_REVISION, "Apache-2.0")

    def extract(self, turns: Sequence[SourceTurn], language: str) -> Inventory:
        return extract_inventory(turns, language)


class ChatExtractor:
    """Three prompts a conversation: facts, actions, chronology."""

    def __init__(self, client: ChatClient, attempts: int = ATTEMPTS) -> None:
        self.client, self.attempts = client, attempts
        info = client.model.info
        self.info = EngineInfo(
            "fact_extractor", info.name, info.revision, info.licence, info.device, embedded=False
        )

    def extract(self, turns: Sequence[SourceTurn], language: str) -> Inventory:
        said = transcript_text((turn.speaker, turn.text) for turn in turns)
        requests = []
        for name in _PROMPTS:
            prompt = read_prompt(name)
            user = fill(prompt, {"language": language, "transcript": said})
            requests.append(ChatRequest(name, prompt.system, user, prompt.schema, 16384))

        def check(value: dict[str, Any]) -> None:
            check_extraction(value, turns)

        found: dict[str, list[dict[str, Any]]] = {}
        outcomes = converse(self.client, requests, [check] * len(requests), self.attempts)
        for request, (reply, problem) in zip(requests, outcomes, strict=True):
            if problem is not None or reply.value is None:
                raise ReplyError(f"{request.id}: invalid: {problem}")
            found |= reply.value
        return _inventory(found)


def check_extraction(value: dict[str, Any], turns: Sequence[SourceTurn]) -> None:
    """Evidence is literal in its turn; the question comes before the answer.

    Messages name places, never what was said: they stand in public tables.

    Raises
    ------
    ReplyError
    """
    for name in set(_LISTS) & set(value):
        for number, entry in enumerate(value[name]):
            turn = entry["turn"]
            there = 0 <= turn < len(turns) and entry["evidence"] in turns[turn].text
            if not there or not entry["evidence"]:
                raise ReplyError(f"evidence: that of {name} {number} is not in turn {turn}")
            question = entry.get("question_turn")
            if question is not None and not 0 <= question < turn:
                raise ReplyError(f"question_turn: {question} is not before turn {turn}")


def _inventory(found: dict[str, list[dict[str, Any]]]) -> Inventory:
    facts = tuple(
        Fact(
            e["turn"], e["fact"], e["evidence"], e["importance"], e["polarity"], e["temporality"],
            e["certainty"], e["actor"], {m["name"]: m["value"] for m in e["modifiers"]}, "unknown",
            e["question_turn"],
        )
        for e in found["facts"]
    )  # fmt: skip
    act = ("turn", "actor", "action", "state", "timing", "plan", "evidence")
    actions = tuple(Action(*(e[name] for name in act)) for e in found["actions"])
    relation = ("turn", "relation", "first", "second", "evidence")
    relations = tuple(Relation(*(e[name] for name in relation)) for e in found["relations"])
    return Inventory(facts, actions, relations)


@register("fact_extractor", "rules")
def _rules(**_options: Any) -> RulesExtractor:
    return RulesExtractor()


@register("fact_extractor", "chat")
def _chat(model: str = "", cache: str = "", **options: Any) -> ChatExtractor:
    return ChatExtractor(chat_client(model, cache, options))
