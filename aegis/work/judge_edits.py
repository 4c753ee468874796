"""Work of ``11_judge_edits``: verdicts on focused intentions.

Unit of an item: the intentions of one recording in one renderer, each with the source turn,
the fresh transcript of the edited turn, local times and other places of the original.
Functions: :func:`edit_items`, :func:`judge_intentions`, :func:`edit_tables`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd

from aegis import engines
from aegis.contrasts import RENDERERS
from aegis.engines.judging import ORDERS, EditCase, EditVerdict, Judge
from aegis.tables import Run
from aegis.work.clinical import Item, Tables, frame, language_of, load_engine, rows_by
from aegis.work.relisten import replace_span


def edit_items(tables: Tables) -> list[Item]:
    """One item a recording and renderer: its intentions that could be heard.

    ``tables``: ``turns edits transcripts``.
    """
    said = rows_by(tables["turns"])
    turns = {row["turn_id"]: row for rows in said.values() for row in rows}
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
                    "id": edit["intention_id"], "language": language_of(turn["language"]),
                    "source": turn["text"], "heard": text,
                    "planned": replace_span(turn["text"], edit),
                    "original": edit["original"], "replacement": edit["replacement"],
                    "start_s": _since(edit["start_s"], turn["start_s"]),
                    "end_s": _since(edit["end_s"], turn["start_s"]),
                    "elsewhere": _elsewhere(edit, said[edit["recording_id"]]),
                }
            )  # fmt: skip
    return [
        {"id": f"{name}:{renderer}", "recording_id": name, "condition": renderer, "cases": cases}
        for (name, renderer), cases in groups.items()
    ]


def _since(time_s: Any, start_s: float) -> float | None:
    return None if pd.isna(time_s) else round(float(time_s) - float(start_s), 3)


def _elsewhere(edit: Item, turns: Sequence[Item], most: int = 5) -> list[str]:
    """Other turns of the conversation that hold the original: global candidates."""
    found = [
        row["text"]
        for row in turns
        if row["turn_id"] != edit["turn_id"]
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
    focused = focused[focused["scope"] == "focused"]
    matches = {(r["intention_id"], r["condition"]): r for r in focused.to_dict("records")}
    verdicts: list[Item] = []
    evidence: list[Item] = []
    for edit in tables["edits"].to_dict("records"):
        for renderer in RENDERERS:
            place = (edit["intention_id"], renderer)
            match = matches[place]
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
        "edit_verdicts": frame("edit_verdicts", verdicts),
        "edit_evidence": frame("edit_evidence", evidence),
    }


def _no_verdict(intention_id: str, reason: str) -> Item:
    empty = EditVerdict(intention_id, None, None, None, status="failed", reason=reason, attempts=0)
    return asdict(empty) | {"order": ORDERS[0]}
