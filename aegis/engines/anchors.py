"""A fixed set of cases judged at the start and at the end of a campaign: did the judge drift?

Unit: one anchor case in one passage. Anchors are the qualification cases, whose labels are
known and never part of the study. A hosted model can change under its name, so each passage
asks anew: replies of one passage answer neither the other nor a study case. For rules a drift
is zero by construction.

Functions: :func:`judge_anchors`, :func:`compare_passages`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd

from aegis.engines.judging import ORDERS, Judge
from aegis.engines.judging_chat import ChatJudge
from aegis.engines.qualification import Suite, read_suite

PASSAGES = ("start", "end")


def judge_anchors(judge: Judge, passage: str, suite: Suite | None = None) -> list[dict[str, Any]]:
    """Rows of the table ``anchors``: every case of the suite in the first order."""
    suite = suite or read_suite()
    fresh = _passage_judge(judge, passage)
    judged = fresh.judge([entry.case for entry in suite.cases], ORDERS[0])
    return [
        {
            "judge": judge.info.name, "passage": passage, "case_id": entry.case.id,
            "expected": entry.expected, "label": found.verdicts[0].label,
            "status": found.verdicts[0].status, "reason": found.verdicts[0].reason,
        }
        for entry, found in zip(suite.cases, judged, strict=True)
    ]  # fmt: skip


def _passage_judge(judge: Judge, passage: str) -> Judge:
    """The same judge with kept replies of its own; what it spent so far counts."""
    if not isinstance(judge, ChatJudge):
        return judge
    client = judge.client
    own = replace(
        client,
        cache=client.cache / f"anchors_{passage}",
        max_cost=max(client.max_cost - client.cost, 0.0),
    )
    return replace(judge, client=own)


def compare_passages(anchors: pd.DataFrame) -> dict[str, int]:
    """Cases, those without a valid label in both passages, and labels that changed."""
    start, end = (
        anchors[anchors["passage"] == name].set_index("case_id")["label"] for name in PASSAGES
    )
    both = pd.concat([start.rename("start"), end.rename("end")], axis=1)
    seen = both.dropna()
    changed = int((seen["start"] != seen["end"]).sum())
    return {"cases": len(both), "unobserved": len(both) - len(seen), "changed": changed}
