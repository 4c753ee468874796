"""What a worker does to one edited turn, and to one recording that is put together.

A *rendering request* is one turn with a set of its edits. A focused intention asks
for one edit, a composed region for all edits of its turn; where a turn has a single
edit both ask for the same sound, which is made once and belongs to two rows of the
``rendered`` table. Items hold words and are kept below ``secret/`` only.

Functions: :func:`build_requests`, :func:`render_request`, :func:`rendered_table`,
:func:`reconstruction_items`, :func:`reconstruct`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, fields
from typing import Any

import numpy as np
import pandas as pd

from aegis import engines
from aegis.audio import SAMPLE_RATE_HZ, Signal, open_wav, read_wav, write_wav
from aegis.engines import EditRequest, Span, Voice, Word
from aegis.engines.masks import replaced_text
from aegis.errors import RenderError
from aegis.numbers import speakable
from aegis.stitch import (
    Segment,
    assemble,
    check_segments,
    choose_sound,
    count_segments,
    plan_segments,
    replay_steps,
)
from aegis.tables import SCHEMAS, Run, content_id

Item = dict[str, Any]
Rows = list[dict[str, Any]]
_ASKED = ("item_id", "kind", "recording_id", "turn_id", "n_edits", "request_id", "reason")


# --- rendering ------------------------------------------------------------------------------


def build_requests(tables: Mapping[str, pd.DataFrame]) -> tuple[list[Item], pd.DataFrame]:
    """Rendering requests, and the intentions and regions that ask for them.

    Parameters
    ----------
    tables
        ``edits regions turns words converted assignments voices``.

    Returns
    -------
    (items, asked)
        One item a distinct request, in turn order so that neighbours share their
        sentences; ``asked`` has one row an intention or region with its
        ``request_id``, or with the reason why there is none.
    """
    turns = {row["turn_id"]: row for row in _records(tables["turns"])}
    parts = _parts(tables)
    items: dict[str, Item] = {}
    asked: Rows = []
    edits = _records(tables["edits"].sort_values(["recording_id", "turn_id", "char_start"]))
    planned: dict[str, Rows] = {}
    for edit in edits:
        if edit["status"] == "ok":
            planned.setdefault(edit["turn_id"], []).append(edit)
    wanted = [(edit, "intention", edit["intention_id"], [edit]) for edit in edits]
    for region in _records(tables["regions"]):
        inside = planned.get(region["turn_id"], [])
        wanted.append((region, "region", region["region_id"], inside))
    for row, kind, item_id, inside in wanted:
        entry = {
            "item_id": item_id,
            "kind": kind,
            "recording_id": row["recording_id"],
            "turn_id": row["turn_id"],
            "n_edits": len(inside),
            "request_id": None,
            "reason": None,
        }
        if row["status"] != "ok" or not inside:
            entry["reason"] = f"failed: the edit was not planned ({row['reason']})"
        elif row["turn_id"] not in parts["converted"]:
            entry["reason"] = "failed: no converted turn"
        else:
            item = _request(turns[row["turn_id"]], inside, parts)
            items.setdefault(item["id"], item)
            entry["request_id"] = item["id"]
        asked.append(entry)
    order = {turn_id: i for i, turn_id in enumerate(turns)}
    in_order = sorted(items.values(), key=lambda item: order[item["turn_id"]])
    return in_order, pd.DataFrame(asked, columns=list(_ASKED))


def _records(table: pd.DataFrame) -> Rows:
    """Rows as dicts with plain values; a missing value is None."""
    plain = table.astype(object).where(table.notna(), None)
    rows: Rows = plain.to_dict("records")
    return rows


def _frame(name: str, rows: Rows) -> pd.DataFrame:
    """Rows as a table with all its columns, also when there is none."""
    return pd.DataFrame(rows, columns=list(SCHEMAS[name].columns))


def _parts(tables: Mapping[str, pd.DataFrame]) -> dict[str, dict[str, Any]]:
    """What a request needs, by key: words and converted sound by turn, voice by profile."""
    words: dict[str, Rows] = {}
    for word in _records(tables["words"].sort_values(["recording_id", "word_index"])):
        words.setdefault(word["turn_id"], []).append(word)
    voices = {row["voice_id"]: row for row in _records(tables["voices"])}
    assigned = tables["assignments"]
    first = assigned[assigned["pseudo_profile"] == assigned["pseudo_profile"].min()]
    return {
        "words": words,
        "converted": {
            row["turn_id"]: row for row in _records(tables["converted"]) if row["status"] == "ok"
        },
        "voice": {
            row["profile_id"]: voices[row["voice_id"]]
            for row in _records(first)
            if row["voice_id"] in voices
        },
    }


def _request(turn: Item, edits: Rows, parts: Mapping[str, dict[str, Any]]) -> Item:
    """One JSON-able item: all that the rendering depends on, sound by its hash."""
    start = turn["start_s"]
    voice = parts["voice"].get(turn["profile_id"])
    converted = parts["converted"][turn["turn_id"]]
    return {
        "id": content_id("q", turn["turn_id"], *(edit["intention_id"] for edit in edits)),
        "recording_id": turn["recording_id"],
        "turn_id": turn["turn_id"],
        "language": turn["language"],
        "text": turn["text"],
        "words": [
            [word["text"], _since(word["start_s"], start), _since(word["end_s"], start)]
            if word["timed"]
            else [word["text"], None, None]
            for word in parts["words"].get(turn["turn_id"], [])
        ],
        "spans": [_span(edit, turn, start) for edit in edits],
        "converted": {key: converted[key] for key in ("file", "sha256")},
        "voice": voice and {key: voice[key] for key in _VOICE_KEYS},
        "cost": float(turn["end_s"] - start),
    }


_VOICE_KEYS = ("voice_id", "base_voice", "synthesiser", "language", "traits", "sha256")


def _since(time_s: float | None, start_s: float) -> float | None:
    return None if time_s is None else round(max(float(time_s) - start_s, 0.0), 4)


def _span(edit: Item, turn: Item, start_s: float) -> Item:
    """The replacement in the form in which it is to be spoken."""
    spoken = speakable(edit["replacement"], edit["category"], turn["language"])
    times = (_since(edit["start_s"], start_s), _since(edit["end_s"], start_s))
    return {
        "char_start": edit["char_start"],
        "char_end": edit["char_end"],
        "replacement": spoken,
        "start_s": times[0],
        "end_s": times[1],
    }


def render_request(item: Item, settings: Item, run: Run) -> Item:
    """Render one request and write the edited turn.

    ``settings``: ``condition``, ``engine`` (renderer's name), ``options`` for it, ``seed``.

    Raises
    ------
    RenderError
        The renderer refuses or fails; or it speaks and the profile has no pseudo-voice.
    """
    renderer = engines.load("renderer", settings["engine"], **settings["options"])
    request = edit_request(item, settings, run)
    with engines.engine_time():
        samples = renderer.render(request)
    path = run.turn_path(settings["condition"], item["recording_id"], item["id"])
    written = write_wav(path, samples)
    file = run.relative(path)
    return {
        "file": file,
        "sha256": written.sha256,
        "n_samples": written.n_samples,
        "gain_db": written.gain_db,
        "note": renderer.note(request),
        "files": {file: written.sha256},
    }


def edit_request(item: Item, settings: Item, run: Run) -> EditRequest:
    """The request of an item, with its sound read."""
    spans = tuple(Span(**span) for span in item["spans"])
    seed = int(content_id("", settings["seed"], item["id"]), 16) % 2**32
    return EditRequest(
        converted=read_wav(run.root / item["converted"]["file"]),
        text=item["text"],
        target_text=replaced_text(item["text"], 0, len(item["text"]), spans),
        spans=spans,
        words=tuple(Word(*word) for word in item["words"]),
        voice=_voice(item["voice"], settings, run),
        language=item["language"],
        seed=seed,
    )


def _voice(row: Item | None, settings: Item, run: Run) -> Voice:
    if settings["condition"] == "redacted":
        return Voice("none", np.zeros(1, dtype=np.float32), "none", "none")
    if row is None:
        raise RenderError("failed: the profile has no pseudo-voice")
    synthesiser = settings["options"].get("synthesiser")
    if synthesiser and row["synthesiser"] != synthesiser:
        made_by = row["synthesiser"] or "a recording"
        raise RenderError(f"unsupported: the pseudo-voice is {made_by}, not {synthesiser}")
    return Voice(
        voice_id=row["voice_id"],
        reference=read_wav(run.voice_path(row["voice_id"])),
        base_voice=row["base_voice"],
        language=row["language"],
        variant=read_variant(row["traits"]),
    )


def read_variant(traits: str | None) -> dict[str, float]:
    """The declared variant in a unit's traits, e.g. ``f0_ratio=0.9;formant_ratio=1.1``."""
    variant = {}
    for part in (traits or "").replace(";", " ").split():
        key, _, value = part.partition("=")
        if key in ("f0_ratio", "formant_ratio", "rate"):
            variant[key] = float(value)
    return variant


def rendered_table(asked: pd.DataFrame, results: Iterable[Any], condition: str) -> pd.DataFrame:
    """The ``rendered`` table of one condition: a row an intention or region, failures too."""
    by_request = {result.id: result for result in results}
    rows = []
    for entry in _records(asked):
        row = {key: entry[key] for key in _ASKED[:5]}
        result = by_request.get(entry["request_id"])
        value = (result.value if result else None) or {}
        failed = result is None or result.status != "ok"
        reason = (result.reason if result else entry["reason"]) if failed else value["note"]
        rows.append(
            {
                **row,
                "renderer": condition,
                **{key: value.get(key) for key in ("file", "sha256", "n_samples", "gain_db")},
                "status": "failed" if failed else "ok",
                "reason": reason,
            }
        )
    return _frame("rendered", rows)


# --- reconstruction -------------------------------------------------------------------------


def reconstruction_items(
    tables: Mapping[str, pd.DataFrame], conditions: Sequence[str]
) -> list[Item]:
    """One item a recording and condition: the turns and what can stand in their place.

    ``tables``: ``recordings turns converted regions plans rendered``.
    """
    planned = set(tables["plans"].query("status == 'ok'")["recording_id"])
    converted = {row["turn_id"]: row for row in _records(tables["converted"])}
    composed = tables["rendered"].query("kind == 'region'")
    rendered = {(row["turn_id"], row["renderer"]): row for row in _records(composed)}
    n_edits = dict(zip(tables["regions"]["turn_id"], tables["regions"]["n_edits"], strict=True))
    turns: dict[str, Rows] = {}
    for turn in _records(tables["turns"]):
        turns.setdefault(turn["recording_id"], []).append(turn)
    return [
        {
            "id": f"{recording['recording_id']}:{condition}",
            "recording_id": recording["recording_id"],
            "condition": condition,
            "layout": recording["layout"],
            "n_samples": int(recording["n_samples"]),
            "planned": recording["recording_id"] in planned,
            "turns": [
                {
                    "turn_id": turn["turn_id"],
                    "profile_id": turn["profile_id"],
                    "channel": int(turn["channel"]),
                    "start": round(turn["start_s"] * SAMPLE_RATE_HZ),
                    "end": round(turn["end_s"] * SAMPLE_RATE_HZ),
                    "n_edits": int(n_edits.get(turn["turn_id"], 0)),
                    "converted": _sound(converted.get(turn["turn_id"])),
                    "rendered": _sound(rendered.get((turn["turn_id"], condition))),
                }
                for turn in turns.get(recording["recording_id"], [])
            ],
        }
        for recording in _records(tables["recordings"])
        if recording["status"] == "ok"
        for condition in conditions
    ]


def _sound(row: Item | None) -> Item | None:
    return row and {key: row[key] for key in ("status", "file", "n_samples", "sha256")}


def reconstruct(item: Item, settings: Item, run: Run) -> Item:
    """Put one recording together in one condition, and replay it from its segment table.

    ``settings``: ``join_fade_s`` (0 in the primary conditions).

    Raises
    ------
    RenderError
        Nobody knows what to edit: without a plan only the converted condition is made.
    """
    condition = item["condition"]
    if condition != "converted" and not item["planned"]:
        raise RenderError("failed: the recording has no edit plan, so its identifiers would stay")
    turns = [
        choose_sound(turn, turn["converted"], turn["rendered"], condition)
        for turn in item["turns"]
    ]
    segments = plan_segments(turns, item["n_samples"], item["layout"])
    check_segments(segments, item["n_samples"])

    def read(file: str) -> Signal:
        return read_wav(run.root / file)

    fade_s = float(settings["join_fade_s"])
    path = run.conversation_path(condition, item["recording_id"])
    written = write_wav(path, assemble(segments, read, fade_s))
    steps = replay_steps(segments, read, open_wav(path), written.gain_db, fade_s)
    file = run.relative(path)
    return {
        **asdict(count_segments(segments, turns)),
        "file": file,
        "sha256": written.sha256,
        "gain_db": written.gain_db,
        "replay_max_steps": steps,
        "segments": [astuple(segment) for segment in segments],
        "files": {file: written.sha256},
    }


def reconstruction_tables(
    results: Iterable[Any], items: Sequence[Item]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tables ``reconstructions`` and ``timeline``; a failed recording keeps its row."""
    rows: Rows = []
    timeline: Rows = []
    names = [field.name for field in fields(Segment)]
    for item, result in zip(items, results, strict=True):
        key = {name: item[name] for name in ("recording_id", "condition")}
        if result.status != "ok":
            rows.append({**key, **_NOTHING, "status": "failed", "reason": result.reason})
            continue
        value = result.value
        for index, segment in enumerate(value["segments"]):
            timeline.append(
                {**key, "segment_index": index, **dict(zip(names, segment, strict=True))}
            )
        shown = {name: value[name] for name in _NOTHING if name != "duration_s"}
        rows.append(
            {
                **key,
                **shown,
                "duration_s": value["n_samples"] / SAMPLE_RATE_HZ,
                "status": "ok",
                "reason": _clipped_reason(value),
            }
        )
    return _frame("reconstructions", rows), _frame("timeline", timeline)


_NOTHING: Item = {
    "file": None, "sha256": None, "n_samples": None, "duration_s": None, "n_segments": 0,
    "n_rendered": 0, "n_retained": 0, "n_failed": 0, "clipped_s": 0.0, "inserted_s": None,
    "replay_max_steps": None, "gain_db": None,
}  # fmt: skip


def _clipped_reason(value: Item) -> str | None:
    if not value["n_clipped_turns"]:
        return None
    return f"{value['n_clipped_turns']} turns fully clipped, with {value['n_clipped_edits']} edits"
