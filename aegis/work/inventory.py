"""Work of ``08_extract_facts``: the clinical inventory of one recording as rows.

Unit of an item: one recording with its saved source turns. Functions:
:func:`inventory_items`, :func:`extract_recording`, :func:`inventory_tables`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import pandas as pd

from aegis import engines
from aegis.engines.extraction import FactExtractor
from aegis.inventory import Inventory, SourceTurn, as_modifiers, fact_id, inventory_sha256, row_of
from aegis.tables import SCHEMAS, Run, content_id
from aegis.work.clinical import Item, by_recording, frame, language_of, load_engine


def inventory_items(recordings: pd.DataFrame, turns: pd.DataFrame) -> list[Item]:
    """One item a usable recording; a recording without turns has none and is reported."""
    said = by_recording(turns)
    return [
        {
            "id": name,
            "language": language_of(said[name][0]["language"]),
            "turns": [[row["turn_id"], row["speaker"], row["text"]] for row in said[name]],
        }
        for name in recordings.loc[recordings["status"] == "ok", "recording_id"]
        if name in said
    ]


def extract_recording(item: Item, settings: Item, run: Run) -> Item:
    """The inventory of one recording as rows."""
    extractor: FactExtractor = load_engine("fact_extractor", settings, run)
    turns = [SourceTurn(*turn) for turn in item["turns"]]
    with engines.engine_time():
        found = extractor.extract(turns, item["language"])
    return _inventory_rows(item, found, extractor.info.name)


def _inventory_rows(item: Item, found: Inventory, extractor: str) -> Item:
    name, turns = item["id"], item["turns"]
    actions = [
        asdict(action)
        | {
            "action_id": content_id("k", name, i, action.evidence),
            "recording_id": name,
            "turn_id": turns[action.turn_index][0],
        }
        for i, action in enumerate(found.actions)
    ]
    facts = []
    for i, fact in enumerate(found.facts):
        turn_id = turns[fact.turn_index][0]
        facts.append(
            row_of(fact)
            | {
                "fact_id": fact_id(name, turn_id, i, fact.evidence),
                "recording_id": name,
                "fact_index": i,
                "turn_id": turn_id,
                "question_turn_id": None if fact.question is None else turns[fact.question][0],
                "language": item["language"],
                "modifiers": as_modifiers(fact),
                "action_id": None if fact.action is None else actions[fact.action]["action_id"],
            }
        )
    relations = [
        asdict(relation)
        | {
            "relation_id": content_id("c", name, i, relation.relation, relation.evidence),
            "recording_id": name,
            "turn_id": turns[relation.turn_index][0],
        }
        for i, relation in enumerate(found.relations)
    ]
    importance = [fact.importance for fact in found.facts]
    summary = {
        "recording_id": name, "language": item["language"], "extractor": extractor,
        "n_facts": len(facts), "n_critical": importance.count("critical"),
        "n_major": importance.count("major"), "n_minor": importance.count("minor"),
        "n_negated": sum(fact.polarity == "negated" for fact in found.facts),
        "n_actions": len(actions), "n_relations": len(relations),
        "inventory_sha256": inventory_sha256(found), "status": "ok", "reason": None,
    }  # fmt: skip
    return {"facts": facts, "actions": actions, "chronology": relations, "summary": summary}


def inventory_tables(
    recordings: pd.DataFrame, results: Iterable[Any], extractor: str
) -> dict[str, pd.DataFrame]:
    """``facts actions chronology inventory_summary``; every recording has its fate."""
    made = {result.id: result for result in results}
    rows: dict[str, list[Item]] = {"facts": [], "actions": [], "chronology": []}
    summaries = []
    for record in recordings.to_dict("records"):
        name = record["recording_id"]
        result = made.get(name)
        if result is not None and result.value is not None:
            for table in rows:
                rows[table] += result.value[table]
            summaries.append(result.value["summary"])
            continue
        counts = [c for c in SCHEMAS["inventory_summary"].columns if c.startswith("n_")]
        status, reason = _fate(record, result)
        summaries.append(
            dict.fromkeys(counts, 0)
            | {"recording_id": name, "language": record["language"], "extractor": extractor}
            | {"inventory_sha256": None, "status": status, "reason": reason}
        )
    frames = {name: frame(name, found) for name, found in rows.items()}
    return frames | {"inventory_summary": frame("inventory_summary", summaries)}


def _fate(record: Item, result: Any) -> tuple[str, str]:
    if result is not None:
        return "failed", str(result.reason)
    if record["status"] != "ok":
        return record["status"], str(record["reason"])
    return "not_applicable", "no turns: nothing was said or heard"
