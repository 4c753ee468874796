"""Notes: writers and judges of note pairs, by rules or through the chat engine.

Units: one note of one transcript; one fact in a pair of notes. A writer sees a transcript
and an id that says nothing else. An invalid note or judgement is unobserved, never empty.

Role ``note_writer`` with the names ``rules`` and ``chat``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from aegis.comparison import compare
from aegis.conversations import read_conversation, read_statement
from aegis.engines import EngineInfo, register
from aegis.engines.asking import (
    ATTEMPTS,
    chat_client,
    check_evidence,
    check_unsupported,
    converse,
    transcript_text,
)
from aegis.engines.chat import ChatClient, ChatRequest
from aegis.engines.judging import RULES_REVISION, Claim, Judge, Said, unsupported
from aegis.engines.judging_chat import ChatJudge
from aegis.errors import ReplyError
from aegis.facts import extract_inventory
from aegis.inventory import SourceTurn
from aegis.prompting import fill, read_prompt


@dataclass(frozen=True)
class NoteCase:
    """Claims of a conversation against the notes of its source and of one condition."""

    id: str
    language: str
    source: tuple[Said, ...]
    source_note: tuple[str, ...]
    target_note: tuple[str, ...]
    claims: tuple[Claim, ...]


@dataclass(frozen=True)
class NoteVerdict:
    """``included``: does the source note state the claim; ``label``: does the target note."""

    id: str
    included: bool | None
    label: str | None
    status: str = "ok"
    reason: str | None = None


@dataclass(frozen=True)
class NoteJudgement:
    verdicts: tuple[NoteVerdict, ...]
    unsupported: tuple[str, ...] = ()


def judge_notes_by_rules(case: NoteCase) -> NoteJudgement:
    """Each claim is compared with both notes, line by line, near its place in the talk."""
    source = read_conversation(tuple(turn.text for turn in case.source), case.language)
    notes = [
        read_conversation(lines, case.language) for lines in (case.source_note, case.target_note)
    ]
    verdicts = []
    for claim in case.claims:
        statement = read_statement(source, claim.turn, claim.evidence, claim.asks)
        place = claim.turn / max(1, len(case.source) - 1)
        found = [compare(statement, n, round(place * (len(n.texts) - 1))).label for n in notes]
        verdicts.append(NoteVerdict(claim.id, found[0] in ("preserved", "partial"), found[1]))
    return NoteJudgement(tuple(verdicts), unsupported(notes[0], notes[1]))


def judge_notes_by_chat(judge: ChatJudge, case: NoteCase) -> NoteJudgement:
    """The model compares the pair; an invalid reply leaves every claim unobserved."""
    prompt = read_prompt("judge_notes")
    values = {
        "language": case.language,
        "source_note": "\n".join(case.source_note),
        "target_note": "\n".join(case.target_note),
        "facts": "\n".join(f"{claim.id}: {claim.text}" for claim in case.claims),
    }
    ids = tuple(claim.id for claim in case.claims)
    request = ChatRequest(case.id, prompt.system, fill(prompt, values), prompt.schema, 16384, ids)

    def check(value: dict[str, Any]) -> None:
        check_evidence(value["items"], case.target_note)
        check_unsupported(value["unsupported"], case.target_note)

    reply, problem = converse(judge.client, [request], [check], judge.attempts)[0]
    if problem is not None or reply.value is None:
        reason = f"invalid: {problem}"
        return NoteJudgement(tuple(NoteVerdict(i, None, None, "failed", reason) for i in ids))
    items = {item["id"]: item for item in reply.value["items"]}
    made = [NoteVerdict(i, items[i]["source_included"], items[i]["label"]) for i in ids]
    return NoteJudgement(tuple(made), tuple(reply.value["unsupported"]))


def judge_notes(judge: Judge, case: NoteCase) -> NoteJudgement:
    """Judge one pair of notes with the judge's own means."""
    if isinstance(judge, ChatJudge):
        return judge_notes_by_chat(judge, case)
    return judge_notes_by_rules(case)


@dataclass(frozen=True)
class WrittenNote:
    """A note of one transcript, one statement a line; None where none is valid."""

    lines: tuple[str, ...] | None
    reason: str | None = None
    attempts: int = 1


class NoteWriter(Protocol):
    info: EngineInfo

    def write(self, record: str, turns: Sequence[Said], language: str) -> WrittenNote:
        """A note from the transcript alone; ``record`` is an id that says nothing else."""
        ...


class RulesNoteWriter:
    """The transcript's own clinical clauses, each answer with its question."""

    info = EngineInfo("note_writer", "rules", RULES_REVISION, "Apache-2.0")

    def write(self, record: str, turns: Sequence[Said], language: str) -> WrittenNote:
        source = [SourceTurn(str(i), turn.speaker, turn.text) for i, turn in enumerate(turns)]
        lines = []
        for fact in extract_inventory(source, language).facts:
            match = re.match(r"(.*) \(asked: (.*)\)$", fact.text, re.S)
            lines.append(f"{match[2]} {match[1]}." if match else f"{fact.evidence}.")
        if not lines:
            return WrittenNote(None, "no clinical statement in the transcript")
        return WrittenNote(tuple(lines))


@dataclass
class ChatNoteWriter:
    client: ChatClient
    attempts: int = ATTEMPTS

    @property
    def info(self) -> EngineInfo:
        return replace(self.client.model.info, role="note_writer")

    def write(self, record: str, turns: Sequence[Said], language: str) -> WrittenNote:
        prompt = read_prompt("write_note")
        user = fill(
            prompt,
            {
                "record": record,
                "transcript": transcript_text((turn.speaker, turn.text) for turn in turns),
            },
        )
        request = ChatRequest(record, prompt.system, user, prompt.schema, 8192)
        texts = [turn.text for turn in turns]

        def check(value: dict[str, Any]) -> None:
            for line in value["lines"]:
                if not any(line["evidence"] and line["evidence"] in text for text in texts):
                    raise ReplyError("evidence: a note's line has none in the transcript")

        reply, problem = converse(self.client, [request], [check], self.attempts)[0]
        if problem is not None or reply.value is None:
            return WrittenNote(None, f"invalid: {problem}", reply.attempts)
        lines = tuple(line["statement"] for line in reply.value["lines"])
        return WrittenNote(lines or None, None if lines else "an empty note", reply.attempts)


@register("note_writer", "rules")
def _rules_writer(**_options: Any) -> RulesNoteWriter:
    return RulesNoteWriter()


@register("note_writer", "chat")
def _chat_writer(model: str = "", cache: str = "", **options: Any) -> ChatNoteWriter:
    return ChatNoteWriter(chat_client(model, cache, options))
