"""Judges of what a condition still says: by rules (embedded) or through the chat engine.

Units: a claim (a fact, action, role, relation or final state of the source inventory) in one
target transcript; an edit intention in one rendered turn; a fact in a pair of notes. A
verdict is an observation only while its status is ``ok``: a reply that breaks its contract
(evidence that is not literally in the target, an id missing or twice, an unsupported
assertion twice) is asked again up to ``attempts`` times and is then failed, its label
absent. Judges see both presentation orders, ``source_first`` and ``target_first``; for rules
the order cannot matter, nor can a repeat or an identical text: zero by construction.

Roles: ``judge`` with the names ``rules`` and ``chat``; ``note_writer`` likewise.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from aegis.clauses import read_clauses
from aegis.comparison import Comparison, Conversation, compare, read_conversation, read_statement
from aegis.engines import EngineInfo, register
from aegis.engines.chat import ChatClient, ChatRequest, Reply, read_models
from aegis.errors import ParamError, ReplyError
from aegis.facts import SourceTurn, extract_inventory
from aegis.matching import find_surface, match_intention
from aegis.prompting import fill, read_prompt

ORDERS = ("source_first", "target_first")
SILENT = frozenset(("missing", "omission", "uncertain"))
"""Labels that need no evidence."""
PROMPTS = {
    "facts": "judge_facts", "actions": "judge_actions", "roles": "judge_roles",
    "chronology": "judge_chronology", "final_state": "judge_final_state",
}  # fmt: skip
RULES_REVISION = "3"


@dataclass(frozen=True)
class Said:
    """One turn as a judge sees it."""

    speaker: str
    text: str


@dataclass(frozen=True)
class Claim:
    """One item of the inventory; ``asks``: whether it answers a question (None: not known)."""

    id: str
    text: str
    evidence: str
    turn: int
    asks: bool | None = None


@dataclass(frozen=True)
class JudgeCase:
    """Claims of one conversation against one target; ``kind`` is a key of :data:`PROMPTS`."""

    id: str
    language: str
    source: tuple[Said, ...]
    target: tuple[Said, ...]
    claims: tuple[Claim, ...]
    kind: str = "facts"


@dataclass(frozen=True)
class Verdict:
    """One label with its literal evidence; the label is None unless ``status`` is ``ok``."""

    id: str
    label: str | None
    evidence: str = ""
    note: str = ""
    status: str = "ok"
    reason: str | None = None
    attempts: int = 1
    prompt_sha256: str | None = None
    request_sha256: str | None = None
    reply_sha256: str | None = None


@dataclass(frozen=True)
class Judgement:
    """The verdicts of a case and the target's unsupported assertions."""

    id: str
    verdicts: tuple[Verdict, ...]
    unsupported: tuple[str, ...] = ()


@dataclass(frozen=True)
class EditCase:
    """One focused intention: aligned source and edited-turn text, where, and what else is near."""

    id: str
    language: str
    source: str
    heard: str
    planned: str
    original: str
    replacement: str
    start_s: float | None = None
    end_s: float | None = None
    elsewhere: tuple[str, ...] = ()


@dataclass(frozen=True)
class EditVerdict:
    id: str
    source_present: str | None
    replacement_status: str | None
    original_status: str | None
    replacement_evidence: str = ""
    original_evidence: str = ""
    status: str = "ok"
    reason: str | None = None
    attempts: int = 1
    prompt_sha256: str | None = None
    request_sha256: str | None = None
    reply_sha256: str | None = None


class Judge(Protocol):
    """What a judge can do; every claim of a case comes back exactly once."""

    info: EngineInfo

    def judge(self, cases: Sequence[JudgeCase], order: str) -> list[Judgement]: ...

    def judge_edits(self, cases: Sequence[EditCase], order: str) -> list[EditVerdict]: ...


# --- rules -----------------------------------------------------------------------------


class RulesJudge:
    """Slot comparison (:mod:`aegis.comparison`) and literal search (:mod:`aegis.matching`)."""

    info = EngineInfo("judge", "rules", RULES_REVISION, "Apache-2.0")

    def judge(self, cases: Sequence[JudgeCase], order: str) -> list[Judgement]:
        """Judge cases; ``order`` is accepted and cannot matter."""
        _check_order(order)
        return [self._case(case) for case in cases]

    def _case(self, case: JudgeCase) -> Judgement:
        source = read_conversation(tuple(t.text for t in case.source), case.language)
        target = read_conversation(tuple(t.text for t in case.target), case.language)
        verdicts = []
        for claim in case.claims:
            statement = read_statement(source, claim.turn, claim.evidence, claim.asks)
            found = compare(statement, target)
            verdicts.append(self._verdict(case, claim, found))
        extra = unsupported(source, target) if case.kind == "facts" else ()
        return Judgement(case.id, tuple(verdicts), extra)

    def _verdict(self, case: JudgeCase, claim: Claim, found: Comparison) -> Verdict:
        note = "; ".join(f"{f.kind} {f.group} {f.source}>{f.target}" for f in found.findings)
        label = found.label if case.kind == "facts" else _endpoint_label(case, claim, found)
        return Verdict(claim.id, label, "" if label in SILENT else found.evidence, note)

    def judge_edits(self, cases: Sequence[EditCase], order: str) -> list[EditVerdict]:
        _check_order(order)
        verdicts = []
        for case in cases:
            match = match_intention(
                case.original,
                case.replacement,
                case.planned,
                case.heard,
                case.heard,
                case.language,
            )
            there = find_surface(case.original, case.source, "", case.language).how
            verdicts.append(
                EditVerdict(
                    case.id,
                    {"none": "no", "near": "uncertain"}.get(there, "yes"),
                    match.replacement_status,
                    match.original_status,
                    match.replacement_evidence or "",
                    match.original_evidence or "",
                )
            )
        return verdicts


def _check_order(order: str) -> None:
    if order not in ORDERS:
        raise ParamError(f"order {order!r}: must be {' or '.join(ORDERS)}")


def _endpoint_label(case: JudgeCase, claim: Claim, found: Comparison) -> str:
    """Omission and role change are named apart from other contradictions."""
    persons = any(
        f.kind == "changed" and f.group in ("person", "family", "staff") for f in found.findings
    )
    moved = (
        found.turn is not None
        and claim.turn < len(case.source)
        and case.target[found.turn].speaker != case.source[claim.turn].speaker
    )
    if case.kind == "roles":
        if found.label == "missing":
            return "omission"
        return "role_change" if persons or moved else "preserved"
    if found.label == "missing":
        return "omission"
    return "role_change" if found.label == "contradicted" and persons else found.label


_TOLD = frozenset(("drug", "dose", "symptom"))


def unsupported(source: Conversation, target: Conversation) -> tuple[str, ...]:
    """Clinical clauses of the target with a drug, dose or symptom that the source never names."""
    found: list[str] = []
    same = set(source.texts)
    for turn, text in enumerate(target.texts):
        if text in same:
            continue
        for clause in read_clauses(text, target.language):
            new = [
                t for t in clause.tokens
                if t.group in _TOLD and (t.group, t.value) not in source.index
            ]  # fmt: skip
            if not new or clause.question:
                continue
            statement = read_statement(target, turn, clause.text(text), None)
            if compare(statement, source).label == "missing" and clause.text(text) not in found:
                found.append(clause.text(text))
    return tuple(found)


@register("judge", "rules")
def _rules(**_options: Any) -> RulesJudge:
    return RulesJudge()


# --- chat ------------------------------------------------------------------------------


@dataclass
class ChatJudge:
    """Verdicts of a language model under the reply contract."""

    client: ChatClient
    attempts: int = 3
    claims_a_request: int = 40

    @property
    def info(self) -> EngineInfo:
        return replace(self.client.model.info, role="judge")

    def judge(self, cases: Sequence[JudgeCase], order: str) -> list[Judgement]:
        """Judge cases, claims in portions; a portion that stays invalid is failed as a whole."""
        _check_order(order)
        parts = [part for case in cases for part in _portions(case, self.claims_a_request)]
        outcomes = self.converse(
            [_fact_request(part, order) for part in parts],
            [_adjudication_check(part) for part in parts],
        )
        made: dict[str, list[tuple[JudgeCase, Reply, str | None]]] = {}
        for part, (reply, problem) in zip(parts, outcomes, strict=True):
            made.setdefault(part.id.rsplit("#", 1)[0], []).append((part, reply, problem))
        return [_judgement(case, made.get(case.id, [])) for case in cases]

    def judge_edits(self, cases: Sequence[EditCase], order: str) -> list[EditVerdict]:
        _check_order(order)
        outcomes = self.converse(
            [_edit_request(case, order) for case in cases], [_edit_check(case) for case in cases]
        )
        return [_edit_verdict(c, r, p) for c, (r, p) in zip(cases, outcomes, strict=True)]

    def converse(
        self, requests: Sequence[ChatRequest], checks: Sequence[Callable[[dict[str, Any]], None]]
    ) -> list[tuple[Reply, str | None]]:
        """Ask; ask again, with the broken rule, what breaks its contract."""
        current = dict(enumerate(requests))
        done: dict[int, tuple[Reply, str | None]] = {}
        for attempt in range(1, self.attempts + 1):
            order = sorted(current)
            for index, reply in zip(
                order, self.client.ask([current[i] for i in order]), strict=True
            ):
                problem = _problem(reply, checks[index])
                done[index] = (replace(reply, attempts=attempt), problem)
                if problem is None or reply.outcome != "valid":
                    del current[index]
                else:
                    said = f"\n\nYour last reply broke a rule: {problem}. Reply again, complete."
                    current[index] = replace(requests[index], user=requests[index].user + said)
            if not current:
                break
        return [done[i] for i in range(len(requests))]


def _problem(reply: Reply, check: Callable[[dict[str, Any]], None]) -> str | None:
    if reply.value is None:
        return f"{reply.outcome}: {reply.reason}"
    try:
        check(reply.value)
    except ReplyError as error:
        return str(error)
    return None


def _portions(case: JudgeCase, size: int) -> list[JudgeCase]:
    return [
        replace(case, id=f"{case.id}#{i}", claims=case.claims[i : i + size])
        for i in range(0, len(case.claims), size)
    ]


def _transcript(turns: Sequence[Said]) -> str:
    return "\n".join(f"{i} {turn.speaker}: {turn.text}" for i, turn in enumerate(turns))


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


def check_evidence(items: Iterable[Mapping[str, Any]], texts: Sequence[str]) -> None:
    """Evidence is literal in one turn, and absent just where a label needs none.

    Raises
    ------
    ReplyError
        With the id and the rule.
    """
    for item in items:
        evidence = item["evidence"]
        if item["label"] in SILENT:
            if evidence:
                raise ReplyError(f"evidence: {item['id']} is {item['label']} and gives evidence")
        elif not evidence or not any(evidence in text for text in texts):
            raise ReplyError(f"evidence: that of {item['id']} is not literally in the target")


def check_unsupported(found: Sequence[str], texts: Sequence[str]) -> None:
    """Unsupported assertions are literal and listed once; a repeat quarantines the reply.

    Raises
    ------
    ReplyError
    """
    if len(set(found)) != len(found):
        raise ReplyError("quarantined: an unsupported assertion is listed twice")
    for text in found:
        if not text or not any(text in turn for turn in texts):
            raise ReplyError("evidence: an unsupported assertion is not literally in the target")


def _adjudication_check(case: JudgeCase) -> Callable[[dict[str, Any]], None]:
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
        hashes = (reply.attempts, prompt, reply.request_sha256, reply.reply_sha256)
        if problem is not None:
            reason = f"invalid: {problem}"
            verdicts += [
                Verdict(c.id, None, "", "", "failed", reason, *hashes) for c in part.claims
            ]
            continue
        value = reply.value or {}
        by_id = {item["id"]: item for item in value["items"]}
        for claim in part.claims:
            item = by_id[claim.id]
            verdicts.append(
                Verdict(claim.id, item["label"], item["evidence"], "", "ok", None, *hashes)
            )
        extra += [text for text in value["unsupported"] if text not in extra]
    return Judgement(case.id, tuple(verdicts), tuple(extra))


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


def _edit_check(case: EditCase) -> Callable[[dict[str, Any]], None]:
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
    hashes = (
        reply.attempts,
        read_prompt("judge_edits").sha256,
        reply.request_sha256,
        reply.reply_sha256,
    )
    if problem is not None or reply.value is None:
        return EditVerdict(
            case.id, None, None, None, "", "", "failed", f"invalid: {problem}", *hashes
        )
    item = reply.value["items"][0]
    return EditVerdict(
        case.id,
        item["source_present"],
        item["replacement_status"],
        item["original_status"],
        item["replacement_evidence"],
        item["original_evidence"],
        "ok",
        None,
        *hashes,
    )


def chat_client(model: str, cache: str, options: Mapping[str, Any]) -> ChatClient:
    models = read_models()
    if model not in models:
        raise ParamError(f"no chat model called {model!r}; known: {', '.join(models)}")
    return ChatClient(models[model], Path(cache), **options)


@register("judge", "chat")
def _chat(model: str = "", cache: str = "", **options: Any) -> ChatJudge:
    return ChatJudge(chat_client(model, cache, options))


# --- notes -----------------------------------------------------------------------------


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

    reply, problem = judge.converse([request], [check])[0]
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
    attempts: int = 3

    @property
    def info(self) -> EngineInfo:
        return replace(self.client.model.info, role="note_writer")

    def write(self, record: str, turns: Sequence[Said], language: str) -> WrittenNote:
        prompt = read_prompt("write_note")
        user = fill(prompt, {"record": record, "transcript": _transcript(turns)})
        request = ChatRequest(record, prompt.system, user, prompt.schema, 8192)
        texts = [turn.text for turn in turns]

        def check(value: dict[str, Any]) -> None:
            for line in value["lines"]:
                if not any(line["evidence"] and line["evidence"] in text for text in texts):
                    raise ReplyError("evidence: a note's line has none in the transcript")

        reply, problem = ChatJudge(self.client, self.attempts).converse([request], [check])[0]
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
