"""Work of ``10_judge_facts`` on one recording in one condition, and of the second judge.

Unit of an item: one recording in one condition. A target transcript is one text a source
turn, in source order, from ``turn_transcripts``: the fresh words at the turn's place. The
arm ``source_text`` is the saved source transcript itself (self-consistency).

Functions: :func:`judge_items`, :func:`judge_recording`, :func:`verdict_tables`,
:func:`second_table`, :func:`compare_saved`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd

from aegis import engines
from aegis.engines.judging import ORDERS, Claim, Judge, JudgeCase, Judgement, Said
from aegis.errors import ItemError
from aegis.tables import Run, content_id
from aegis.work.clinical import (
    Item,
    Tables,
    by_recording,
    frame,
    heard_turns,
    language_of,
    load_engine,
    rows_by,
)

ARMS = ("source_text", "original", "converted", "renderer_a", "renderer_b", "redacted")


def judge_items(tables: Tables, arms: Sequence[str] = ARMS) -> list[Item]:
    """One item a recording and arm that has both an inventory and a target transcript.

    ``tables``: ``turns facts actions chronology turn_transcripts``.
    """
    said = by_recording(tables["turns"])
    heard = heard_turns(tables["turn_transcripts"])
    own = {name: rows_by(tables[name]) for name in ("facts", "actions", "chronology")}
    claims = {
        name: _claims({table: rows.get(name, []) for table, rows in own.items()}) for name in said
    }
    items = []
    for name, turns in said.items():
        if not claims[name]:
            continue
        for arm in arms:
            texts = heard.get((name, arm))
            if arm == "source_text":
                texts = {row["turn_id"]: row["text"] for row in turns}
            if texts is None:
                continue
            items.append(
                {
                    "id": f"{name}:{arm}", "recording_id": name, "condition": arm,
                    "language": language_of(turns[0]["language"]),
                    "source": [[row["speaker"], row["text"]] for row in turns],
                    "target": [[row["speaker"], texts.get(row["turn_id"], "")] for row in turns],
                    "claims": claims[name], "cost": len(turns),
                }
            )  # fmt: skip
    return items


def _claims(own: Mapping[str, Sequence[Item]]) -> dict[str, list[list[Any]]]:
    """kind -> [id, text, evidence, turn index, answers a question], of one recording's rows."""
    facts = [
        [r["fact_id"], r["text"], *_where(r), bool(pd.notna(r["question_turn_id"]))]
        for r in own["facts"]
    ]
    actions = [
        [r["action_id"], f"{r['actor']}: {r['action']} ({r['state']})", *_where(r), None]
        for r in own["actions"]
    ]
    relations = [
        (r["relation"], [r["relation_id"], _said(r), *_where(r), None]) for r in own["chronology"]
    ]
    final = [row for relation, row in relations if relation == "final_state"]
    order = [row for relation, row in relations if relation != "final_state"]
    found = {"facts": facts, "actions": actions, "roles": actions, "chronology": order}
    found["final_state"] = final
    return {kind: rows for kind, rows in found.items() if rows}


def _said(row: Item) -> str:
    return f"{row['first']} {row['relation']} {row['second']}"


def _where(row: Item) -> list[Any]:
    return [row["evidence"], int(row["turn_index"])]


def judge_recording(item: Item, settings: Item, run: Run) -> Item:
    """Verdicts of all claims of one recording in one arm, in the orders asked for."""
    judge: Judge = load_engine("judge", settings, run)
    source, target = (tuple(Said(*turn) for turn in item[side]) for side in ("source", "target"))
    if not any(turn.text for turn in target):
        raise ItemError("the target transcript is empty")
    verdicts: list[Item] = []
    extra: list[Item] = []
    with engines.engine_time():
        for order in settings.get("orders", ORDERS[:1]):
            cases = [
                JudgeCase(
                    f"{item['id']}:{kind}", item["language"], source, target,
                    tuple(Claim(*row) for row in rows), kind,
                )
                for kind, rows in item["claims"].items()
            ]  # fmt: skip
            for case, judgement in zip(cases, judge.judge(cases, order), strict=True):
                verdicts += _verdict_rows(case, judgement, order)
                extra += [{"order": order, "text": text} for text in judgement.unsupported]
    return {"verdicts": verdicts, "unsupported": extra, "judge": judge.info.name}


def _verdict_rows(case: JudgeCase, judgement: Judgement, order: str) -> list[Item]:
    return [
        asdict(verdict) | {"kind": case.kind, "order": order} for verdict in judgement.verdicts
    ]


def verdict_tables(
    tables: Tables, items: Sequence[Item], results: Iterable[Any], judge: str, arms: Sequence[str]
) -> dict[str, pd.DataFrame]:
    """``fact_verdicts endpoint_verdicts verdict_evidence``; arms without a transcript fail.

    Every fact has one row an arm: scheduled = valid + each failure class.
    """
    facts: list[Item] = []
    endpoints: list[Item] = []
    evidence: list[Item] = []
    known = tables["facts"].set_index("fact_id")[["importance", "polarity"]].to_dict("index")
    done: dict[tuple[str, str], str | None] = {}
    for item, result in zip(items, results, strict=True):
        key = {
            "recording_id": item["recording_id"],
            "condition": item["condition"],
            "judge": judge,
        }
        done[item["recording_id"], item["condition"]] = result.reason
        if result.value is None:
            continue
        done[item["recording_id"], item["condition"]] = None
        for row in result.value["verdicts"]:
            place = key | {"order": row["order"], "status": row["status"], "reason": row["reason"]}
            if row["kind"] == "facts":
                facts.append(row | place | known[row["id"]] | {"fact_id": row["id"]})
            else:
                own = {"item_id": row["id"], "kind": row["kind"], "label": row["label"]}
                endpoints.append(place | own | {"n_items": 1})
            evidence.append(
                key | {"item_id": row["id"], "kind": row["kind"], "order": row["order"]}
                | {"evidence": row["evidence"] or None, "note": row["note"] or None}
            )  # fmt: skip
        endpoints += _additions(key, result.value, evidence)
        endpoints += _conversation_rows(key, result.value)
    facts += _unobserved(tables["facts"], done, judge, arms)
    return {
        "fact_verdicts": frame("fact_verdicts", facts),
        "endpoint_verdicts": frame("endpoint_verdicts", endpoints),
        "verdict_evidence": frame("verdict_evidence", evidence),
    }


def _additions(key: Item, value: Item, evidence: list[Item]) -> list[Item]:
    """Unsupported assertions of the target, each a row of its own."""
    rows = []
    for extra in value["unsupported"]:
        item_id = content_id("u", key["recording_id"], key["condition"], extra["text"])
        place = key | {"item_id": item_id, "kind": "unsupported", "order": extra["order"]}
        rows.append(
            place | {"label": "unsupported_addition", "n_items": 1, "status": "ok", "reason": None}
        )
        evidence.append(place | {"evidence": extra["text"], "note": None})
    return rows


def _conversation_rows(key: Item, value: Item) -> list[Item]:
    """Endpoints of a conversation: met only if all of its items are preserved (ours)."""
    rows = []
    groups: dict[tuple[str, str], list[Item]] = {}
    for row in value["verdicts"]:
        groups.setdefault((row["kind"], row["order"]), []).append(row)
    for (kind, order), own in groups.items():
        labels = [row["label"] for row in own]
        known = None not in labels
        met = all(label == "preserved" for label in labels)
        rows.append(
            key
            | {"item_id": key["recording_id"], "kind": f"conversation {kind}", "order": order}
            | {"label": ("met" if met else "not met") if known else None, "n_items": len(own)}
            | {"status": "ok" if known else "failed"}
            | {"reason": None if known else "an item of the conversation has no valid verdict"}
        )
    return rows


def _unobserved(
    facts: pd.DataFrame,
    done: Mapping[tuple[str, str], str | None],
    judge: str,
    arms: Sequence[str],
) -> list[Item]:
    rows = []
    for fact in facts.to_dict("records"):
        for arm in arms:
            place = (fact["recording_id"], arm)
            if place in done and done[place] is None:
                continue
            reason = done.get(place) or "no transcript of this condition"
            keep = {
                name: fact[name] for name in ("fact_id", "recording_id", "importance", "polarity")
            }
            rows.append(
                keep | {"condition": arm, "judge": judge, "order": ORDERS[0], "label": None}
                | {"attempts": 0, "status": "failed", "reason": str(reason)}
            )  # fmt: skip
    return rows


# --- appendices ------------------------------------------------------------------------


def second_table(
    tables: Tables, items: Sequence[Item], results: Iterable[Any], judge: str
) -> pd.DataFrame:
    """``second_verdicts``: every sampled fact in every order, failures included."""
    known = tables["facts"].set_index("fact_id")["importance"].to_dict()
    rows: list[Item] = []
    for item, result in zip(items, results, strict=True):
        verdicts = (
            result.value["verdicts"]
            if result.value
            else [
                {"id": row[0], "label": None, "order": order, "attempts": 0, "status": "failed",
                 "reason": str(result.reason)}
                for row in item["claims"]["facts"]
                for order in ORDERS
            ]
        )  # fmt: skip
        key = {
            "recording_id": item["recording_id"],
            "condition": item["condition"],
            "judge": judge,
        }
        rows += [
            row | key | {"fact_id": row["id"], "importance": known[row["id"]]} for row in verdicts
        ]
    return frame("second_verdicts", rows)


def compare_saved(turns: pd.DataFrame, transcripts: pd.DataFrame) -> pd.Series:
    """Recording -> has the fresh transcript of the original the saved words (in any order)?"""
    saved = {
        name: " ".join(str(row["text"]) for row in rows).split()
        for name, rows in by_recording(turns).items()
    }
    fresh = transcripts[
        (transcripts["kind"] == "conversation")
        & (transcripts["condition"] == "original")
        & (transcripts["status"] == "ok")
    ]
    same = {
        row["recording_id"]: sorted(str(row["text"]).split()) == sorted(saved[row["recording_id"]])
        for row in fresh.to_dict("records")
        if row["recording_id"] in saved
    }
    return pd.Series(same, dtype=bool)
