"""Why a speaker has its voice, what became of an intention, and what failed.

Unit: one profile, one intention, one run. Everything is read from the tables of a run;
nothing is computed anew except the ranking of candidates, which is deterministic.

Functions: :func:`explain_assignment`, :func:`trace_intention`, :func:`failure_registry`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from aegis import receipts
from aegis.errors import TableError
from aegis.tables import SCHEMAS, Run
from aegis.voices import TOLERANCE, Pool, Rules, find_candidates, prepare, vectors_of

ASSIGNMENT_STAGE = "03_assign_voices"
_STEPS = (
    ("05_plan_edits", "mentions", "mention_id"),
    ("05_plan_edits", "substitutions", "entity_id"),
    ("05_plan_edits", "edits", "intention_id"),
    ("05_plan_edits", "regions", "turn_id"),
    ("04_convert", "converted", "turn_id"),
    ("06_render_edits", "rendered", "item_id"),
    ("07_stitch", "timeline", "turn_id"),
    ("09_retranscribe", "transcripts", "item_id"),
    ("09_retranscribe", "turn_transcripts", "turn_id"),
    ("09_retranscribe", "lexical_matches", "intention_id"),
    ("11_judge_edits", "edit_verdicts", "intention_id"),
    ("11_judge_edits", "edit_evidence", "intention_id"),
)
"""(notebook, table, column) of each step of an intention, in the order of the method."""


@dataclass(frozen=True)
class Assignment:
    """The candidates of one profile in rank order, and what decided about each."""

    profile_id: str
    rules: Rules
    outcome: dict[str, Any]
    candidates: pd.DataFrame


def explain_assignment(run: Run, profile_id: str, pseudo_profile: int = 1) -> Assignment:
    """Rank a profile's candidates again and say what decided about each.

    Returns
    -------
    Assignment
        ``candidates`` has the columns ``rank voice_id distance traits score decision``:
        ``chosen``; ``used by S1``; ``too near to the voice of S1 (0.61)``; ``passed over``
        (backtracking needed another one); ``after the chosen one``.

    Raises
    ------
    TableError
        The run has no such profile, or its stage has no receipt.
    """
    receipt = receipts.read_receipt(run, ASSIGNMENT_STAGE)
    if receipt is None:
        raise TableError(f"{ASSIGNMENT_STAGE} has not run in {run.root.name}")
    given = receipt["parameters"]
    names = ("k", "min_source_distance", "min_target_distance", "distance_weight", "node_budget")
    rules = Rules(**{name: given[name] for name in names})
    pool = _pool(run, str(given["backend"]), rules)
    assignments = run.read("assignments")
    own = assignments[
        (assignments["profile_id"] == profile_id)
        & (assignments["pseudo_profile"] == pseudo_profile)
    ]
    if own.empty:
        raise TableError(f"assignments: no profile {profile_id!r} in run {run.root.name}")
    outcome = {str(key): value for key, value in own.iloc[0].to_dict().items()}
    before = _decided_before(assignments, outcome)
    return Assignment(profile_id, rules, outcome, _candidates(pool, rules, outcome, before))


def _pool(run: Run, backend: str, rules: Rules) -> Pool:
    return prepare(
        run.read("profiles"),
        run.read("voices"),
        vectors_of(run.read("profile_embeddings"), "profile_id", backend),
        vectors_of(run.read("voice_embeddings"), "voice_id", backend),
        rules,
    )


def _decided_before(assignments: pd.DataFrame, outcome: dict[str, Any]) -> dict[str, str]:
    """Voice -> speaker of those that the search had placed before this profile."""
    same = assignments[
        (assignments["recording_id"] == outcome["recording_id"]) & assignments["voice_id"].notna()
    ]
    earlier = same[
        (same["pseudo_profile"] < outcome["pseudo_profile"])
        | (
            (same["pseudo_profile"] == outcome["pseudo_profile"])
            & (same["profile_id"] < outcome["profile_id"])
        )
    ]
    return dict(zip(earlier["voice_id"], earlier["speaker"], strict=True))


def _candidates(
    pool: Pool, rules: Rules, outcome: dict[str, Any], before: dict[str, str]
) -> pd.DataFrame:
    row = pool.profiles.index[pool.profiles["profile_id"] == outcome["profile_id"]][0]
    units, distances, scores = find_candidates(pool, rules)[row]
    place = {str(voice): i for i, voice in enumerate(pool.units["voice_id"])}
    rows: list[dict[str, Any]] = []
    chosen_seen = False
    for rank, (unit, distance, score) in enumerate(zip(units, distances, scores, strict=True), 1):
        voice = str(pool.units.loc[unit, "voice_id"])
        decision = "after the chosen one" if chosen_seen else "passed over"
        if voice in before:
            decision = f"used by {before[voice]}"
        else:
            for other, speaker in before.items():
                apart = 1.0 - float(pool.unit_vectors[unit] @ pool.unit_vectors[place[other]])
                if apart < rules.min_target_distance - TOLERANCE:
                    decision = f"too near to the voice of {speaker} ({apart:.2f})"
                    break
        if voice == outcome["voice_id"]:
            decision, chosen_seen = "chosen", True
        rows.append(
            {
                "rank": rank,
                "voice_id": voice,
                "distance": float(distance),
                "traits": float(pool.traits[row][unit]),
                "score": float(score),
                "decision": decision,
            }
        )
    columns = ["rank", "voice_id", "distance", "traits", "score", "decision"]
    return pd.DataFrame(rows, columns=columns)


def trace_intention(run: Run, intention_id: str) -> list[tuple[str, str, pd.DataFrame]]:
    """(notebook, table, rows) of one intention through every stage that has run.

    Raises
    ------
    TableError
        The run has no such intention.
    """
    edits = run.read("edits")
    own = edits[edits["intention_id"] == intention_id]
    if own.empty:
        raise TableError(f"edits: no intention {intention_id!r} in run {run.root.name}")
    edit = own.iloc[0]
    ids = {name: {edit[name]} for name in ("mention_id", "entity_id", "intention_id", "turn_id")}
    regions = run.read("regions") if run.has("regions") else pd.DataFrame({"turn_id": []})
    region = regions[regions["turn_id"] == edit["turn_id"]]
    ids["item_id"] = {intention_id, *region.get("region_id", [])}
    steps = []
    for stage, table, column in _STEPS:
        if not run.has(table):
            continue
        frame = run.read(table)
        rows = frame[frame[column].isin(ids[column])]
        steps.append((stage, table, rows.reset_index(drop=True)))
    return steps


def failure_registry(run: Run) -> pd.DataFrame:
    """All rows that are not ok: table, status, reason, count."""
    found = []
    for name, schema in SCHEMAS.items():
        if "status" not in schema.columns or not run.has(name):
            continue
        table = run.read(name)
        bad = table[table["status"] != "ok"]
        counted = bad.groupby(["status", "reason"], dropna=False).size()
        found += [
            {"table": name, "status": status, "reason": reason, "rows": int(count)}
            for (status, reason), count in counted.items()
        ]
    return pd.DataFrame(found, columns=["table", "status", "reason", "rows"])
