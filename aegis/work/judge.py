# ruff: noqa: E501
"""Work of the clinical stages on one recording: extract, judge, judge edits, write notes.

Unit of an item: one recording (extraction), one recording in one condition (judging, notes),
one recording's intentions in one renderer (edits). A target transcript is one text a source
turn, in source order, from ``turn_transcripts``: the fresh words at the turn's place. The
arm ``source_text`` is the saved source transcript itself (self-consistency).

Functions: :func:`inventory_items`, :func:`extract_recording`, :func:`inventory_tables`,
:func:`judge_items`, :func:`judge_recording`, :func:`verdict_tables`, :func:`edit_items`,
:func:`judge_intentions`, :func:`edit_tables`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd

from aegis import engines
from aegis.engines.extraction import FactExtractor
from aegis.engines.judging import (
    ORDERS,
    Claim,
    EditCase,
    EditVerdict,
    Judge,
    JudgeCase,
    Judgement,
    Said,
)
from aegis.errors import ItemError
from aegis.facts import Inventory, SourceTurn, as_modifiers, fact_id, inventory_sha256, row_of
from aegis.tables import SCHEMAS, Run, content_id, empty_table
from aegis.work.relisten import replace_span

Item = dict[str, Any]
Tables = Mapping[str, pd.DataFrame]

ARMS = ("source_text", "original", "converted", "renderer_a", "renderer_b", "redacted")
RENDERERS = ("renderer_a", "renderer_b")
ENDPOINTS = ("actions", "roles", "chronology", "final_state")
LANGUAGES = ("en", "fr")


def load_engine(role: str, settings: Mapping[str, Any], run: Run) -> Any:
    """The engine that the settings name; chat engines keep their replies below ``secret/``.

    ``settings``: the engine's name under the role's last word (``judge``, ``extractor``,
    ``writer``), and for ``chat`` also ``model`` and, if wanted, ``max_cost``.
    """
    name = str(settings[role.rsplit("_", 1)[-1]])
    if name != "chat":
        return engines.load(role, name)
    options = {"max_cost": float(settings["max_cost"])} if "max_cost" in settings else {}
    cache = str(run.secret / "replies")
    return engines.load(role, name, model=str(settings.get("model", "")), cache=cache, **options)


def _language(value: Any) -> str:
    return str(value) if value in LANGUAGES else "en"


def _by_recording(turns: pd.DataFrame) -> dict[str, list[Item]]:
    found: dict[str, list[Item]] = {}
    for row in turns.sort_values(["recording_id", "turn_index"]).to_dict("records"):
        found.setdefault(row["recording_id"], []).append(row)
    return found


# --- 08: extraction --------------------------------------------------------------------


def inventory_items(recordings: pd.DataFrame, turns: pd.DataFrame) -> list[Item]:
    """One item a usable recording; a recording without turns has none and is reported."""
    said = _by_recording(turns)
    return [
        {
            "id": name,
            "language": _language(said[name][0]["language"]),
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
    frames = {name: _frame(name, found) for name, found in rows.items()}
    return frames | {"inventory_summary": _frame("inventory_summary", summaries)}


def _fate(record: Item, result: Any) -> tuple[str, str]:
    if result is not None:
        return "failed", str(result.reason)
    if record["status"] != "ok":
        return record["status"], str(record["reason"])
    return "not_applicable", "no turns: nothing was said or heard"


def _frame(name: str, rows: Sequence[Item]) -> pd.DataFrame:
    columns = list(SCHEMAS[name].columns)
    return pd.DataFrame(rows, columns=columns) if len(rows) else empty_table(name)


# --- 10: facts and endpoints -----------------------------------------------------------


def judge_items(tables: Tables, arms: Sequence[str] = ARMS) -> list[Item]:
    """One item a recording and arm that has both an inventory and a target transcript.

    ``tables``: ``turns facts actions chronology turn_transcripts``.
    """
    said = _by_recording(tables["turns"])
    fresh = tables["turn_transcripts"]
    heard: dict[tuple[str, str], dict[str, str]] = {}
    for row in fresh.to_dict("records"):
        heard.setdefault((row["recording_id"], row["condition"]), {})[row["turn_id"]] = row["text"]
    claims = {name: _claims(tables, name) for name in said}
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
                    "language": _language(turns[0]["language"]),
                    "source": [[row["speaker"], row["text"]] for row in turns],
                    "target": [[row["speaker"], texts.get(row["turn_id"], "")] for row in turns],
                    "claims": claims[name], "cost": len(turns),
                }
            )  # fmt: skip
    return items


def _claims(tables: Tables, recording_id: str) -> dict[str, list[list[Any]]]:
    """kind -> [id, text, evidence, turn index, answers a question]."""

    def own(name: str) -> list[Item]:
        table = tables[name]
        rows: list[Item] = table[table["recording_id"] == recording_id].to_dict("records")
        return rows

    facts = [
        [r["fact_id"], r["text"], *_where(r), bool(pd.notna(r["question_turn_id"]))]
        for r in own("facts")
    ]
    actions = [
        [r["action_id"], f"{r['actor']}: {r['action']} ({r['state']})", *_where(r), None]
        for r in own("actions")
    ]
    relations = [
        (r["relation"], [r["relation_id"], f"{r['first']} {r['relation']} {r['second']}", *_where(r), None])
        for r in own("chronology")
    ]  # fmt: skip
    final = [row for relation, row in relations if relation == "final_state"]
    order = [row for relation, row in relations if relation != "final_state"]
    found = {"facts": facts, "actions": actions, "roles": actions, "chronology": order}
    found["final_state"] = final
    return {kind: rows for kind, rows in found.items() if rows}


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
                endpoints.append(
                    place | {"item_id": row["id"], "kind": row["kind"], "label": row["label"], "n_items": 1}
                )  # fmt: skip
            evidence.append(
                key | {"item_id": row["id"], "kind": row["kind"], "order": row["order"]}
                | {"evidence": row["evidence"] or None, "note": row["note"] or None}
            )  # fmt: skip
        endpoints += _additions(key, result.value, evidence)
        endpoints += _conversation_rows(key, result.value)
    facts += _unobserved(tables["facts"], done, judge, arms)
    return {
        "fact_verdicts": _frame("fact_verdicts", facts),
        "endpoint_verdicts": _frame("endpoint_verdicts", endpoints),
        "verdict_evidence": _frame("verdict_evidence", evidence),
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


# --- 11: edits -------------------------------------------------------------------------


def edit_items(tables: Tables) -> list[Item]:
    """One item a recording and renderer: its intentions that could be heard.

    ``tables``: ``turns edits transcripts``.
    """
    turns = {row["turn_id"]: row for row in tables["turns"].to_dict("records")}
    focused = tables["transcripts"]
    focused = focused[(focused["kind"] == "focused") & (focused["status"] == "ok")]
    heard = {(r["item_id"], r["condition"]): r["text"] for r in focused.to_dict("records")}
    groups: dict[tuple[str, str], list[Item]] = {}
    edits = tables["edits"][tables["edits"]["status"] == "ok"]
    for edit in edits.to_dict("records"):
        turn = turns[edit["turn_id"]]
        for renderer in RENDERERS:
            text = heard.get((edit["intention_id"], renderer))
            if text is None:
                continue
            groups.setdefault((edit["recording_id"], renderer), []).append(
                {
                    "id": edit["intention_id"], "language": _language(turn["language"]),
                    "source": turn["text"], "heard": text, "planned": replace_span(turn["text"], edit),
                    "original": edit["original"], "replacement": edit["replacement"],
                    "start_s": _since(edit["start_s"], turn["start_s"]),
                    "end_s": _since(edit["end_s"], turn["start_s"]),
                    "elsewhere": _elsewhere(edit, turns),
                }
            )  # fmt: skip
    return [
        {"id": f"{name}:{renderer}", "recording_id": name, "condition": renderer, "cases": cases}
        for (name, renderer), cases in groups.items()
    ]


def _since(time_s: Any, start_s: float) -> float | None:
    return None if pd.isna(time_s) else round(float(time_s) - float(start_s), 3)


def _elsewhere(edit: Item, turns: Mapping[str, Item], most: int = 5) -> list[str]:
    """Other turns of the conversation that hold the original: global candidates."""
    found = [
        row["text"]
        for row in turns.values()
        if row["recording_id"] == edit["recording_id"]
        and row["turn_id"] != edit["turn_id"]
        and edit["original"].casefold() in row["text"].casefold()
    ]
    return found[:most]


def judge_intentions(item: Item, settings: Item, run: Run) -> Item:
    """Verdicts of the intentions of one recording in one renderer."""
    judge: Judge = load_engine("judge", settings, run)
    cases = [EditCase(**{**case, "elsewhere": tuple(case["elsewhere"])}) for case in item["cases"]]
    rows: list[Item] = []
    with engines.engine_time():
        for order in settings.get("orders", ORDERS[:1]):
            rows += [asdict(v) | {"order": order} for v in judge.judge_edits(cases, order)]
    return {"verdicts": rows, "judge": judge.info.name}


def edit_tables(
    tables: Tables, items: Sequence[Item], results: Iterable[Any], judge: str
) -> dict[str, pd.DataFrame]:
    """``edit_verdicts edit_evidence``: every intention in both renderers, failures included.

    ``tables``: ``edits lexical_matches``.
    """
    made: dict[tuple[str, str], list[Item]] = {}
    lost: dict[tuple[str, str], str] = {}
    for item, result in zip(items, results, strict=True):
        if result.value is None:
            for case in item["cases"]:
                lost[case["id"], item["condition"]] = str(result.reason)
            continue
        for row in result.value["verdicts"]:
            made.setdefault((row["id"], item["condition"]), []).append(row)
    focused = tables["lexical_matches"]
    focused = focused[focused["scope"] == "focused"].set_index(["intention_id", "condition"])
    verdicts: list[Item] = []
    evidence: list[Item] = []
    for edit in tables["edits"].to_dict("records"):
        for renderer in RENDERERS:
            place = (edit["intention_id"], renderer)
            match = focused.loc[place]
            planned = bool(match["planned_text_holds_original"])
            reason = lost.get(place) or (
                match["reason"] if pd.notna(match["reason"]) else "not heard"
            )
            for row in made.get(place) or [_no_verdict(edit["intention_id"], str(reason))]:
                key = {
                    "intention_id": place[0],
                    "condition": renderer,
                    "judge": judge,
                    "order": row["order"],
                }
                keep = {"recording_id": edit["recording_id"], "category": edit["category"]}
                verdicts.append(row | key | keep | {"planned_text_holds_original": planned})
                evidence.append(row | key)
    return {
        "edit_verdicts": _frame("edit_verdicts", verdicts),
        "edit_evidence": _frame("edit_evidence", evidence),
    }


def _no_verdict(intention_id: str, reason: str) -> Item:
    empty = EditVerdict(intention_id, None, None, None, "", "", "failed", reason, 0)
    return asdict(empty) | {"order": ORDERS[0]}


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
    return _frame("second_verdicts", rows)


def compare_saved(turns: pd.DataFrame, transcripts: pd.DataFrame) -> pd.Series:
    """Recording -> has the fresh transcript of the original the saved words (in any order)?"""
    saved = {
        name: " ".join(str(row["text"]) for row in rows).split()
        for name, rows in _by_recording(turns).items()
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
