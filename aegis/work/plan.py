"""Detection and plan of one recording: its mentions, replacements, edits and regions.

Unit: one recording. The item holds the recording's turns and words; the result holds
rows for the tables that ``05_plan_edits`` owns. Detection sees the whole conversation
at once. Nothing is written but the result, which is secret.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from aegis import engines
from aegis.canonical import canonical
from aegis.edits import (
    Edit,
    Entity,
    Located,
    Replacement,
    TimedWord,
    apply_edits,
    build_edits,
    build_inventory,
    check_target,
    choose_replacements,
    refusals,
    span_times,
)
from aegis.engines import TurnText
from aegis.engines.planning import ChatDetector
from aegis.lexicon import straight
from aegis.phi import unlocated
from aegis.plan import locate_plan
from aegis.recognise_numbers import NUMBERS, is_continued
from aegis.recognisers import Found, View
from aegis.tables import Run, content_id, empty_table

Rows = list[dict[str, Any]]
TABLES = ("mentions", "substitutions", "edits", "regions", "plan_summary")


def plan_items(
    turns: pd.DataFrame, words: pd.DataFrame, recordings: pd.DataFrame
) -> list[dict[str, Any]]:
    """One item per usable recording: its turns in order, with the words of each."""
    items = []
    by_turn = {key: frame.sort_values("word_index") for key, frame in words.groupby("turn_id")}
    usable = recordings[recordings["status"] == "ok"]
    ordered = turns[turns["status"] == "ok"].sort_values(["recording_id", "turn_index"])
    said: dict[str, list[Any]] = {}
    for turn in ordered.itertuples():
        said.setdefault(turn.recording_id, []).append(turn)
    for recording_id in sorted(usable["recording_id"]):
        mine = said.get(recording_id, [])
        rows = [_turn_item(turn, by_turn.get(turn.turn_id)) for turn in mine]
        items.append({"id": recording_id, "turns": rows})
    return items


def _turn_item(turn: Any, words: pd.DataFrame | None) -> dict[str, Any]:
    timed = [] if words is None else [
        [w.text, float(w.start_s) if w.timed else None, float(w.end_s) if w.timed else None]
        for w in words.itertuples()
    ]  # fmt: skip
    return {
        "turn_id": turn.turn_id,
        "speaker": turn.speaker,
        "text": turn.text,
        "language": turn.language,
        "words": timed,
    }


def plan_recording(item: dict[str, Any], settings: dict[str, Any], run: Run) -> dict[str, Any]:
    """Detect and plan one recording.

    ``settings``: ``detector`` (engine name), ``seed``; ``model`` and ``max_cost`` for the
    detector ``chat``, whose reply also groups the entities and chooses their replacements. The
    result has one list of rows per table of :data:`TABLES`, except for ``plan_summary``, which
    is counted from them.

    Raises
    ------
    ReplyError
        The model's plan stays invalid: the recording has no plan.
    """
    turns = item["turns"]
    if not turns:
        return {name: [] for name in TABLES}
    recording_id, language = item["id"], _language(turns)
    texts = {turn["turn_id"]: turn["text"] for turn in turns}
    detector = load_detector(settings, run)
    said = [TurnText(t["turn_id"], t["speaker"], t["text"]) for t in turns]
    if isinstance(detector, ChatDetector):
        with engines.engine_time():
            plan = locate_plan(detector.plan(said, language), recording_id, texts, language)
        mentions, good = [*plan.mentions, *plan.unlocated], list(plan.mentions)
        entities, chosen, edits = list(plan.entities), plan.chosen, list(plan.edits)
        scores = {(m.turn_id, m.start): ("chat", 1.0) for m in mentions}
    else:
        with engines.engine_time():
            found = detector.detect(said, language)
        mentions = [_located(recording_id, m, texts) for m in found]
        good = [m for m in mentions if not unlocated(texts[m.turn_id], m.text, m.start, m.end)]
        continued = _continued(good, turns)
        entities = build_inventory(good, texts, recording_id, language, continued)
        chosen = choose_replacements(entities, recording_id, language, int(settings["seed"]))
        edits = build_edits(entities, chosen, texts, language)
        scores = {(m.turn_id, m.char_start): (m.source, m.score) for m in found}
    refused = _refused(edits, texts, language)
    times = _times(edits, mentions, turns)
    rows = {
        "mentions": _mention_rows(recording_id, mentions, entities, good, scores, times, language),
        "substitutions": _substitution_rows(recording_id, entities, chosen, language),
        "edits": _edit_rows(recording_id, edits, refused, times),
        "regions": _region_rows(recording_id, edits, refused, texts),
    }
    rows["plan_summary"] = _summary_rows(recording_id, rows)
    return rows


def load_detector(settings: Mapping[str, Any], run: Run) -> engines.Detector:
    """The detector of the settings; replies of a chat model are kept below ``secret/``."""
    options: dict[str, Any] = {}
    if settings["detector"] == "chat":
        options = {name: settings[name] for name in ("model", "max_cost")}
        options["cache"] = str(run.secret / "replies")
    detector: engines.Detector = engines.load("detector", settings["detector"], **options)
    return detector


def _language(turns: Sequence[Mapping[str, Any]]) -> str:
    """The language of most of the conversation's characters."""
    counts: dict[str, int] = {}
    for turn in turns:
        counts[turn["language"]] = counts.get(turn["language"], 0) + len(turn["text"])
    return max(sorted(counts), key=lambda name: counts[name])


def _located(recording_id: str, mention: engines.Mention, texts: Mapping[str, str]) -> Located:
    text = texts[mention.turn_id][mention.char_start : mention.char_end]
    identity = content_id(
        "m", recording_id, mention.turn_id, mention.char_start, mention.char_end, mention.category
    )
    return Located(
        identity, mention.turn_id, mention.category, mention.char_start, mention.char_end, text
    )


def _continued(mentions: Sequence[Located], turns: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Numbers that go on in a later turn: mention -> the mention before it."""
    place = {turn["turn_id"]: k for k, turn in enumerate(turns)}
    views = [View(k, turn["speaker"], straight(turn["text"])) for k, turn in enumerate(turns)]
    numbers = sorted(
        (m for m in mentions if m.category in NUMBERS), key=lambda m: (place[m.turn_id], m.start)
    )
    spans = [Found(place[m.turn_id], m.start, m.end, m.category, "plan") for m in numbers]
    return {
        numbers[k].mention_id: numbers[k - 1].mention_id
        for k in range(1, len(numbers))
        if is_continued(views, spans[k - 1], spans[k])
    }


def _refused(edits: Sequence[Edit], texts: Mapping[str, str], language: str) -> dict[str, str]:
    """Reasons of refused edits; the edited text of every turn is checked as a whole."""
    refused: dict[str, str] = {}
    for turn_id, text in texts.items():
        mine = [e for e in edits if e.turn_id == turn_id]
        bad = refusals(text, mine, language)
        refused |= bad
        kept = [e for e in mine if e.mention_id not in bad]
        if kept:
            check_target(text, apply_edits(text, kept), kept)
    return refused


Times = dict[str, tuple[float | None, float | None]]


def _times(
    edits: Sequence[Edit], mentions: Sequence[Located], turns: Sequence[Mapping[str, Any]]
) -> Times:
    by_turn = {t["turn_id"]: t for t in turns}
    spans = {m.mention_id: (m.turn_id, m.start, m.end) for m in mentions}
    spans |= {e.mention_id: (e.turn_id, e.start, e.end) for e in edits}
    times = {}
    for mention_id, (turn_id, start, end) in spans.items():
        words = [TimedWord(*word) for word in by_turn[turn_id]["words"]]
        times[mention_id] = span_times(by_turn[turn_id]["text"], start, end, words)
    return times


def _mention_rows(
    recording_id: str,
    mentions: Sequence[Located],
    entities: Sequence[Entity],
    good: Sequence[Located],
    found: Mapping[tuple[str, int], tuple[str, float]],
    times: Times,
    language: str,
) -> Rows:
    entity_of = {m.mention_id: e.entity_id for e in entities for m in e.mentions}
    located = {m.mention_id for m in good}
    return [
        {
            "mention_id": m.mention_id,
            "recording_id": recording_id,
            "turn_id": m.turn_id,
            "entity_id": entity_of.get(m.mention_id),
            "category": m.category,
            "char_start": m.start,
            "char_end": m.end,
            "text": m.text,
            "canonical": canonical(m.text, language),
            "source": found[m.turn_id, m.start][0],
            "score": found[m.turn_id, m.start][1],
            "start_s": times[m.mention_id][0],
            "end_s": times[m.mention_id][1],
            "located": m.mention_id in located,
            "timed": times[m.mention_id][0] is not None,
        }
        for m in mentions
    ]


def _substitution_rows(
    recording_id: str, entities: Sequence[Entity], chosen: Mapping[str, Replacement], language: str
) -> Rows:
    return [
        {
            "entity_id": e.entity_id,
            "recording_id": recording_id,
            "category": e.category,
            "language": language,
            "original": e.original,
            "replacement": chosen[e.entity_id].text,
            "n_mentions": len(e.mentions),
            "status": "ok" if chosen[e.entity_id].text else "failed",
            "reason": chosen[e.entity_id].reason,
        }
        for e in entities
    ]


def _edit_rows(
    recording_id: str, edits: Sequence[Edit], refused: Mapping[str, str], times: Times
) -> Rows:
    return [
        {
            "intention_id": content_id("i", recording_id, e.mention_id),
            "recording_id": recording_id,
            "turn_id": e.turn_id,
            "mention_id": e.mention_id,
            "entity_id": e.entity_id,
            "category": e.category,
            "char_start": e.start,
            "char_end": e.end,
            "original": e.original,
            "replacement": e.replacement,
            "start_s": times[e.mention_id][0],
            "end_s": times[e.mention_id][1],
            "status": "failed" if e.mention_id in refused else "ok",
            "reason": f"refused: {refused[e.mention_id]}" if e.mention_id in refused else None,
        }
        for e in edits
    ]


def _region_rows(
    recording_id: str, edits: Sequence[Edit], refused: Mapping[str, str], texts: Mapping[str, str]
) -> Rows:
    rows = []
    for turn_id, text in texts.items():
        kept = [e for e in edits if e.turn_id == turn_id and e.mention_id not in refused]
        if kept:
            rows.append(
                {
                    "region_id": content_id("r", recording_id, turn_id),
                    "recording_id": recording_id,
                    "turn_id": turn_id,
                    "n_edits": len(kept),
                    "source_text": text,
                    "target_text": apply_edits(text, kept),
                    "status": "ok",
                    "reason": None,
                }
            )
    return rows


def _summary_rows(recording_id: str, rows: Mapping[str, Rows]) -> Rows:
    out = []
    for category in sorted({row["category"] for row in rows["mentions"]}):
        mentions = [row for row in rows["mentions"] if row["category"] == category]
        edits = [row for row in rows["edits"] if row["category"] == category]
        out.append(
            {
                "recording_id": recording_id,
                "category": category,
                "n_mentions": len(mentions),
                "n_entities": sum(row["category"] == category for row in rows["substitutions"]),
                "n_edits": sum(row["status"] == "ok" for row in edits),
                "n_unlocated": sum(not row["located"] for row in mentions),
                "n_untimed": sum(not row["timed"] for row in mentions),
                "n_refused": sum(row["status"] == "failed" for row in edits),
            }
        )
    return out


def plan_tables(
    items: Sequence[Mapping[str, Any]], results: Sequence[Any]
) -> dict[str, pd.DataFrame]:
    """The rows of all recordings as tables; a table without rows keeps its columns.

    ``plans`` has a row for each recording, also for one without a plan.
    """
    fates = [_plan_row(item, result) for item, result in zip(items, results, strict=True)]
    tables = {"plans": pd.DataFrame(fates) if fates else empty_table("plans")}
    for name in TABLES:
        rows = [row for result in results if result.value for row in result.value[name]]
        tables[name] = pd.DataFrame(rows) if rows else empty_table(name)
    return tables


def _plan_row(item: Mapping[str, Any], result: Any) -> dict[str, Any]:
    made = result.value or {}
    return {
        "recording_id": item["id"],
        "n_turns": len(item["turns"]),
        "n_mentions": len(made.get("mentions", ())),
        "n_edits": len(made.get("edits", ())),
        "status": result.status,
        "reason": result.reason,
    }
