"""Fresh recognition of every sound of the study, and what is looked for in it.

Items: a whole conversation in one condition, or a focused intention's rendered turn in
one renderer. Items that are the same sound (equal hash) are heard once.

Functions: :func:`listening_items`, :func:`listen`, :func:`transcript_tables`,
:func:`lexical_table`, :func:`reference_texts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from aegis import engines
from aegis.audio import SAMPLE_RATE_HZ, mono_of, open_wav
from aegis.matching import Match, match_intention
from aegis.tables import SCHEMAS, Run, empty_table
from aegis.words import read_words

Item = dict[str, Any]
Tables = Mapping[str, pd.DataFrame]

RENDERERS = ("renderer_a", "renderer_b")
AROUND_S = 1.0
"""Words this far outside a turn's place still belong to the search at the place."""


def listening_items(tables: Tables, run: Run) -> list[Item]:
    """One item a sound; ``members`` name the rows that it stands for.

    ``tables``: ``recordings screening reconstructions rendered``.
    """
    heard = tables["screening"].set_index("recording_id")["language"]
    items: dict[tuple[str, str], Item] = {}

    def add(kind: str, row: Item, condition: str, file: str, sha256: str) -> None:
        language = heard.get(row["recording_id"])
        language = None if language is None or pd.isna(language) else str(language)
        new: Item = {"sha256": sha256, "language": language, "file": file, "members": []}
        item = items.setdefault((sha256, language or ""), new)
        item["members"].append([kind, row["item_id"], row["recording_id"], condition])
        item["cost"] = max(item.get("cost", 0.0), float(row["n_samples"]))

    for row in _ok(tables["recordings"]):
        row["item_id"] = row["recording_id"]
        path = run.relative(run.original_path(row["recording_id"]))
        add("conversation", row, "original", path, row["sha256"])
    for row in _ok(tables["reconstructions"]):
        row["item_id"] = row["recording_id"]
        add("conversation", row, row["condition"], row["file"], row["sha256"])
    for row in _ok(tables["rendered"]):
        if row["kind"] == "intention" and row["renderer"] in RENDERERS:
            add("focused", row, row["renderer"], row["file"], row["sha256"])
    return [{"id": f"{sha}:{language}"} | item for (sha, language), item in items.items()]


def _ok(table: pd.DataFrame) -> list[Item]:
    rows: list[Item] = table[table["status"] == "ok"].to_dict("records")
    return rows


def listen(item: Item, settings: Item, run: Run) -> Item:
    """Transcribe one sound: ``text``, ``language``, ``flagged`` and ``words`` with times."""
    mono = mono_of(open_wav(run.root / item["file"]))
    transcriber = engines.load("transcriber", settings["asr"])
    with engines.engine_time():
        transcript = transcriber.transcribe(engines.heard_by(transcriber, mono), item["language"])
    words = read_words(transcript, mono.size / SAMPLE_RATE_HZ)
    return {
        "text": " ".join(word.text for word in words),
        "language": transcript.language,
        "flagged": any(word.flagged for word in words),
        "words": [[word.text, word.start_s, word.end_s] for word in words],
    }


def transcript_tables(
    items: Sequence[Item], results: Iterable[Any], tables: Tables
) -> tuple[dict[str, pd.DataFrame], dict[tuple[str, str], list[list[Any]]]]:
    """``transcripts`` and ``turn_transcripts``, and each conversation's fresh words.

    ``tables``: ``turns timeline rendered reconstructions``. Conversations and renderings
    that do not exist are rows with the reason.
    """
    rows, words = [], {}
    for item, result in zip(items, results, strict=True):
        value = result.value or {}
        for kind, item_id, recording_id, condition in item["members"]:
            if kind == "conversation" and value:
                words[recording_id, condition] = value["words"]
            rows.append(
                {
                    "item_id": item_id,
                    "kind": kind,
                    "recording_id": recording_id,
                    "condition": condition,
                    "text": value.get("text"),
                    "language": value.get("language"),
                    "n_words": len(value["words"]) if value else None,
                    "flagged": value.get("flagged"),
                    "status": result.status,
                    "reason": result.reason,
                }
            )
    rows += _unheard(tables)
    places = turn_places(tables["turns"], tables["timeline"])
    turns = [
        place | {"text": words_between(words[key], place["out_start_s"], place["out_end_s"])}
        for place in places
        if (key := (place["recording_id"], place["condition"])) in words
    ]
    made = {"transcripts": _frame("transcripts", rows)}
    return made | {"turn_transcripts": _frame("turn_transcripts", turns)}, words


def _unheard(tables: Tables) -> list[Item]:
    """Rows of ``transcripts`` for sounds that were never made."""
    rendered, whole = tables["rendered"], tables["reconstructions"]
    lost = rendered[
        (rendered["status"] != "ok")
        & (rendered["kind"] == "intention")
        & rendered["renderer"].isin(RENDERERS)
    ]
    whole = whole[whole["status"] != "ok"]
    named = [("focused", lost, "item_id", "renderer")]
    named += [("conversation", whole, "recording_id", "condition")]
    return [
        {
            "item_id": row[key],
            "kind": kind,
            "recording_id": row["recording_id"],
            "condition": row[condition],
            "status": "failed",
            "reason": f"no audio: {row['reason']}",
        }
        for kind, table, key, condition in named
        for row in table.to_dict("records")
    ]


def turn_places(turns: pd.DataFrame, timeline: pd.DataFrame) -> list[Item]:
    """Where each turn lies in the original and in each reconstruction, in seconds."""
    places = [
        {
            "turn_id": row["turn_id"],
            "condition": "original",
            "recording_id": row["recording_id"],
            "profile_id": row["profile_id"],
            "out_start_s": float(row["start_s"]),
            "out_end_s": float(row["end_s"]),
        }
        for row in turns.to_dict("records")
    ]
    spoken = timeline[timeline["kind"] == "turn"]
    keys = ["turn_id", "condition", "recording_id", "profile_id"]
    spans = spoken.groupby(keys, as_index=False).agg(
        out_start=("out_start", "min"), out_end=("out_end", "max")
    )
    for row in spans.to_dict("records"):
        start, end = (int(row.pop(name)) / SAMPLE_RATE_HZ for name in ("out_start", "out_end"))
        places.append(row | {"out_start_s": start, "out_end_s": end})
    return places


def words_between(words: Sequence[Sequence[Any]], start_s: float, end_s: float) -> str:
    """Text of the words whose middle lies in ``[start_s, end_s)``; untimed ones follow suit."""
    inside, kept = False, []
    for text, start, end in words:
        if start is not None:
            inside = start_s <= (start + end) / 2 < end_s
        if inside:
            kept.append(text)
    return " ".join(kept)


def lexical_table(
    tables: Tables, transcripts: pd.DataFrame, words: Mapping[tuple[str, str], list[list[Any]]]
) -> pd.DataFrame:
    """The ``lexical_matches`` table: each intention alone, and in each whole condition.

    ``tables``: ``turns timeline edits regions rendered reconstructions``. A failed
    rendering stays a row: neither status is known, so both are ``failed``.
    """
    turns = {row["turn_id"]: row for row in tables["turns"].to_dict("records")}
    focused = transcripts[transcripts["kind"] == "focused"]
    by_item = {(row["item_id"], row["condition"]): row for row in focused.to_dict("records")}
    places = {
        (place["turn_id"], place["condition"]): place
        for place in turn_places(tables["turns"], tables["timeline"])
    }
    planned = planned_conversations(tables)
    fresh = {key: " ".join(word[0] for word in heard) for key, heard in words.items()}
    rows = []
    for edit in tables["edits"].to_dict("records"):
        turn = turns[edit["turn_id"]]
        for renderer in RENDERERS:
            found = by_item.get((edit["intention_id"], renderer))
            rows.append(_focused_row(edit, turn, renderer, found))
        for condition in ("original", "converted", *RENDERERS, "redacted"):
            key = (edit["recording_id"], condition)
            place = places.get((edit["turn_id"], condition))
            if key not in words or place is None:
                reason = "no transcript" if key not in words else "the turn has no place in it"
                rows.append(_match_row(edit, "conversation", condition, None, reason))
                continue
            start, end = place["out_start_s"] - AROUND_S, place["out_end_s"] + AROUND_S
            at_place = words_between(words[key], start, end)
            match = match_intention(
                edit["original"],
                edit["replacement"],
                planned[key],
                at_place,
                fresh[key],
                turn["language"],
            )
            rows.append(_match_row(edit, "conversation", condition, match, None))
    return _frame("lexical_matches", rows)


def _focused_row(edit: Item, turn: Item, renderer: str, found: Item | None) -> Item:
    if edit["status"] != "ok" or found is None or found["status"] != "ok":
        reason = "not rendered" if found is None else found["reason"]
        reason = f"not planned: {edit['reason']}" if edit["status"] != "ok" else reason
        return _match_row(edit, "focused", renderer, None, reason)
    planned = replace_span(turn["text"], edit)
    text = found["text"]
    match = match_intention(
        edit["original"], edit["replacement"], planned, text, text, turn["language"]
    )
    return _match_row(edit, "focused", renderer, match, None)


def _match_row(
    edit: Item, scope: str, condition: str, match: Match | None, reason: str | None
) -> Item:
    row = {
        "intention_id": edit["intention_id"],
        "condition": condition,
        "scope": scope,
        "recording_id": edit["recording_id"],
        "category": edit["category"],
        "replacement_status": match.replacement_status if match else "failed",
        "original_status": match.original_status if match else "failed",
        "planned_text_holds_original": bool(match and match.planned_text_holds_original),
        "replacement_evidence": match.replacement_evidence if match else None,
        "original_evidence": match.original_evidence if match else None,
        "status": "ok" if match else "failed",
        "reason": reason,
    }
    if match and condition in ("original", "converted", "redacted"):
        row["replacement_status"] = "not_applicable"
    return row


def replace_span(text: str, edit: Item) -> str:
    """A turn's text with one edit applied."""
    start, end = int(edit["char_start"]), int(edit["char_end"])
    return text[:start] + str(edit["replacement"]) + text[end:]


def planned_conversations(tables: Tables) -> dict[tuple[str, str], str]:
    """What each conversation should say in each condition, turns in order."""
    target = {
        row["turn_id"]: row["target_text"]
        for row in tables["regions"].to_dict("records")
        if row["status"] == "ok"
    }
    cut: dict[str, list[Item]] = {}
    for edit in _ok(tables["edits"]):
        cut.setdefault(edit["turn_id"], []).append(edit)
    planned: dict[tuple[str, str], str] = {}
    ordered = tables["turns"].sort_values(["recording_id", "turn_index"])
    for recording_id, own in ordered.groupby("recording_id", sort=True):
        rows = own.to_dict("records")
        source = " ".join(row["text"] for row in rows)
        edited = " ".join(target.get(row["turn_id"], row["text"]) for row in rows)
        deleted = " ".join(_without(row["text"], cut.get(row["turn_id"], [])) for row in rows)
        by_condition = dict.fromkeys(("original", "converted"), source)
        by_condition |= dict.fromkeys(RENDERERS, edited) | {"redacted": deleted}
        planned |= {(str(recording_id), name): text for name, text in by_condition.items()}
    return planned


def _without(text: str, edits: Sequence[Item]) -> str:
    for edit in sorted(edits, key=lambda e: -int(e["char_start"])):
        text = replace_span(text, edit | {"replacement": " "})
    return text


def reference_texts(turns: pd.DataFrame, order: str) -> dict[str, str]:
    """Text of each recording, its turns in the order of a column."""
    ordered = turns.sort_values(["recording_id", order], kind="stable")
    return {
        str(recording_id): " ".join(own["text"])
        for recording_id, own in ordered.groupby("recording_id", sort=True)
    }


def _frame(name: str, rows: list[Item]) -> pd.DataFrame:
    columns = list(SCHEMAS[name].columns)
    return pd.DataFrame(rows, columns=columns) if rows else empty_table(name)
