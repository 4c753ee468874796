"""A judge must qualify before it sees a study case.

Unit: one case of a suite in one presentation order. A harmful case is caught by any label
other than preserved and uncertain; a benign one passes as preserved. A label counts only if
both orders agree (consensus); a case without consensus is not covered. Gates of the suite
``data_manifests/qualification.yaml``: at least 33 of 36 harmful caught, 9 of 9 benign
passed, 44 of 45 covered. For judges made of rules there is a second suite, 40 seeded cases
from templates (:func:`aegis.perturb.template_cases`), at least 36 of them right.

Functions: :func:`read_suite`, :func:`seeded_suite`, :func:`qualify`, :func:`require_qualified`.
Class: :class:`BlindJudge`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from aegis.engines.judging import (
    ORDERS,
    Claim,
    EditCase,
    EditVerdict,
    Judge,
    JudgeCase,
    Judgement,
    Said,
    Verdict,
)
from aegis.errors import ManifestError, StageFailed
from aegis.fields import read_yaml
from aegis.perturb import template_cases
from aegis.tables import PROJECT

SUITE = PROJECT / "data_manifests" / "qualification.yaml"
SEED = 20261005


@dataclass(frozen=True)
class SuiteCase:
    """One case with the label that its change warrants."""

    case: JudgeCase
    perturbation: str
    harmful: bool
    expected: str


@dataclass(frozen=True)
class Suite:
    """Cases and gates: the least number harmful caught, benign passed, covered, right in all."""

    name: str
    cases: tuple[SuiteCase, ...]
    gates: dict[str, int]


@dataclass(frozen=True)
class Qualification:
    """What came of a suite: rows of the table ``qualification``, gates, and whether all hold."""

    suite: str
    rows: tuple[dict[str, Any], ...]
    counts: dict[str, tuple[int, int, int]]
    """Gate -> reached, needed, out of."""

    @property
    def passed(self) -> bool:
        return all(reached >= needed for reached, needed, _ in self.counts.values())


def read_suite(path: Path = SUITE) -> Suite:
    """The qualification suite.

    Raises
    ------
    ManifestError
        A case's evidence is not literally in its source.
    """
    content = read_yaml(path)
    return Suite("qualification", tuple(map(_suite_case, content["cases"])), content["gates"])


def _suite_case(entry: dict[str, Any]) -> SuiteCase:
    source, target = (tuple(map(_said, entry[side])) for side in ("source", "target"))
    fact = entry["fact"]
    turns = [i for i, turn in enumerate(source) if fact["evidence"] in turn.text]
    if not turns:
        raise ManifestError(f"{entry['id']}: evidence {fact['evidence']!r} is not in the source")
    claim = Claim(entry["id"], fact["text"], fact["evidence"], turns[-1])
    case = JudgeCase(entry["id"], entry["language"], source, target, (claim,))
    return SuiteCase(case, entry["perturbation"], entry["harmful"], entry["expected"])


def _said(line: str) -> Said:
    speaker, _, text = line.partition(": ")
    return Said(speaker, text)


def seeded_suite(seed: int = SEED, n: int = 40) -> Suite:
    """Seeded cases from sentence templates."""
    cases = []
    for drawn in template_cases(np.random.default_rng(seed), n):
        source, target = (
            tuple(Said("DP"[i % 2], text) for i, text in enumerate(side))
            for side in (drawn.source, drawn.target)
        )
        claim = Claim(drawn.id, drawn.evidence, drawn.evidence, drawn.turn)
        case = JudgeCase(drawn.id, drawn.language, source, target, (claim,))
        cases.append(SuiteCase(case, drawn.kind, drawn.harmful, drawn.expected))
    return Suite(f"seeded {seed}", tuple(cases), {"right": round(0.9 * n)})


def qualify(judge: Judge, suite: Suite) -> Qualification:
    """Put every case to a judge in both orders and apply the gates."""
    cases = [entry.case for entry in suite.cases]
    said = {order: judge.judge(cases, order) for order in ORDERS}
    rows: list[dict[str, Any]] = []
    right = {"harmful": 0, "benign": 0}
    covered = 0
    for i, entry in enumerate(suite.cases):
        verdicts = {order: said[order][i].verdicts[0] for order in ORDERS}
        labels = {order: verdict.label for order, verdict in verdicts.items()}
        agreed = len(set(labels.values())) == 1 and labels[ORDERS[0]] is not None
        labels["consensus"] = labels[ORDERS[0]] if agreed else None
        covered += agreed
        right["harmful" if entry.harmful else "benign"] += _passes(entry, labels["consensus"])
        for order, label in labels.items():
            status, reason = "ok", None
            if label is None:
                given = verdicts[order].reason if order in verdicts else None
                status, reason = "failed", given or "the two orders do not agree"
            rows.append(
                _row(judge, suite, entry.case.id, order, status, reason)
                | {
                    "language": entry.case.language, "perturbation": entry.perturbation,
                    "harmful": entry.harmful, "expected": entry.expected, "label": label,
                    "passed": _passes(entry, label),
                }
            )  # fmt: skip
    n_harmful = sum(entry.harmful for entry in suite.cases)
    totals = {
        "harmful": (right["harmful"], n_harmful),
        "benign": (right["benign"], len(cases) - n_harmful),
        "coverage": (covered, len(cases)),
        "right": (sum(right.values()), len(cases)),
    }
    counts = {name: (totals[name][0], need, totals[name][1]) for name, need in suite.gates.items()}
    for name, (reached, needed, total) in counts.items():
        rows.append(
            _row(judge, suite, f"gate:{name}", "consensus", "ok", None)
            | {
                "label": f"{reached}/{total}",
                "expected": f">= {needed}",
                "passed": reached >= needed,
            }
        )
    return Qualification(suite.name, tuple(rows), counts)


def _passes(entry: SuiteCase, label: str | None) -> bool:
    if label is None:
        return False
    return label not in ("preserved", "uncertain") if entry.harmful else label == "preserved"


def _row(
    judge: Judge, suite: Suite, case_id: str, order: str, status: str, reason: str | None
) -> dict[str, Any]:
    empty = dict.fromkeys(("language", "perturbation", "harmful", "expected", "label", "passed"))
    return {
        "judge": judge.info.name, "suite": suite.name, "case_id": case_id, "order": order,
        **empty, "status": status, "reason": reason,
    }  # fmt: skip


def require_qualified(judge: Judge, suites: Sequence[Suite] | None = None) -> list[Qualification]:
    """Qualify a judge; refuse it where a gate is missed.

    Raises
    ------
    StageFailed
        Names the judge, the gate, what was reached and what is needed.
    """
    done = [qualify(judge, suite) for suite in (suites or default_suites(judge))]
    for result in done:
        for gate, (reached, needed, total) in result.counts.items():
            if reached < needed:
                raise StageFailed(
                    f"judge {judge.info.name} is not qualified: {result.suite},"
                    f" {gate} {reached}/{total}, needed {needed}; no study case was judged"
                )
    return done


class BlindJudge:
    """A judge with one blindness: where its note matches ``blind``, it says preserved.

    It shows that the suite can fail. An empty pattern says preserved to everything.
    """

    def __init__(self, judge: Judge, name: str, blind: str) -> None:
        self.judge_behind, self.blind = judge, re.compile(blind)
        self.info = replace(judge.info, name=name)

    def judge(self, cases: Sequence[JudgeCase], order: str) -> list[Judgement]:
        return [
            replace(found, verdicts=tuple(map(self._blinded, found.verdicts)))
            for found in self.judge_behind.judge(cases, order)
        ]

    def _blinded(self, verdict: Verdict) -> Verdict:
        return replace(verdict, label="preserved") if self.blind.search(verdict.note) else verdict

    def judge_edits(self, cases: Sequence[EditCase], order: str) -> list[EditVerdict]:
        return self.judge_behind.judge_edits(cases, order)


BLIND = {
    "always preserved": "",
    "ignores negation": r"denied|answer",
    "ignores doses": r"(?:changed|lost) (?:dose|frequency|duration|reading)",
}


def default_suites(judge: Judge) -> list[Suite]:
    """The suite of 45; for rules also the seeded cases."""
    return [read_suite(), seeded_suite()] if judge.info.name == "rules" else [read_suite()]
