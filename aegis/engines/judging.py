"""Judges of what a condition still says: cases, verdicts, and the embedded judge by rules.

Units: a claim (a fact, action, role, relation or final state of the source inventory) in one
target transcript; an edit intention in one rendered turn; a fact in a pair of notes. A
verdict is an observation only while its status is ``ok``: a reply that breaks its contract
(evidence that is not literally in the target, an id missing or twice, an unsupported
assertion twice) is asked again a bounded number of times and is then failed, its label
absent. Judges see both presentation orders, ``source_first`` and ``target_first``; for rules
the order cannot matter, nor can a repeat or an identical text: zero by construction.

Role ``judge``: ``rules`` here, ``chat`` in :mod:`aegis.engines.judging_chat`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from aegis.clauses import read_clauses
from aegis.comparison import Comparison, compare
from aegis.conversations import Conversation, read_conversation, read_statement
from aegis.engines import EngineInfo, register
from aegis.engines.asking import SILENT
from aegis.errors import ParamError
from aegis.matching import find_surface, match_intention

ORDERS = ("source_first", "target_first")
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
    """Claims of one conversation against one target; ``kind`` is facts or an endpoint."""

    id: str
    language: str
    source: tuple[Said, ...]
    target: tuple[Said, ...]
    claims: tuple[Claim, ...]
    kind: str = "facts"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What became of a question to a judge, and the hashes of what was asked and said."""

    status: str = "ok"
    reason: str | None = None
    attempts: int = 1
    prompt_sha256: str | None = None
    request_sha256: str | None = None
    reply_sha256: str | None = None


@dataclass(frozen=True)
class Verdict(Answer):
    """One label with its literal evidence; the label is None unless ``status`` is ``ok``."""

    id: str
    label: str | None
    evidence: str = ""
    note: str = ""


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
class EditVerdict(Answer):
    """What was found of one intention; each status is None unless ``status`` is ``ok``."""

    id: str
    source_present: str | None
    replacement_status: str | None
    original_status: str | None
    replacement_evidence: str = ""
    original_evidence: str = ""


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
        check_order(order)
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
        check_order(order)
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


def check_order(order: str) -> None:
    """Raise ``ParamError`` for what is no presentation order."""
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
