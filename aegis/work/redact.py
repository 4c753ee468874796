"""What a worker does to one affected turn under one kind of cover: redact it, then attack it.

Unit: one composed region (a turn with all its edits) and one kind of cover. Items hold
original words and stay below ``secret/``.

Functions: :func:`redaction_items`, :func:`probe_redaction`, :func:`redaction_table`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from aegis import engines
from aegis.audio import SAMPLE_RATE_HZ, write_wav
from aegis.engines.bleeping import bleep_intervals
from aegis.matching import match_intention
from aegis.redaction import edge_levels, find_covered, match_stretches
from aegis.tables import SCHEMAS, Run
from aegis.words import read_words
from aegis.work.render import build_requests, edit_request

Item = dict[str, Any]


def redaction_items(tables: Mapping[str, pd.DataFrame]) -> list[Item]:
    """One item a rendered region; ``tables`` are those of ``render.build_requests``."""
    requests, asked = build_requests(tables)
    regions = asked[(asked["kind"] == "region") & asked["request_id"].notna()]
    by_request = dict(zip(regions["request_id"], regions["item_id"], strict=True))
    edits = tables["edits"][tables["edits"]["status"] == "ok"]
    said = {
        turn_id: own[["original", "replacement", "start_s", "end_s"]].to_dict("records")
        for turn_id, own in edits.sort_values("char_start").groupby("turn_id")
    }
    starts = tables["turns"].set_index("turn_id")["start_s"].to_dict()
    return [
        item | {
            "id": by_request[item["id"]], "edits": said[item["turn_id"]],
            "turn_start_s": float(starts[item["turn_id"]]),
        }
        for item in requests
        if item["id"] in by_request
    ]  # fmt: skip


def probe_redaction(item: Item, settings: Item, run: Run) -> Item:
    """Cover the turn's edits, then look for them; ``settings``: ``kind margin_s asr seed``."""
    kind, margin_s = settings["kind"], settings["margin_s"]
    engine = engines.load("renderer", "bleep", kind=kind, margin_s=margin_s)
    request = edit_request(item, settings | {"condition": "redacted", "options": {}}, run)
    with engines.engine_time():
        covered = engine.render(request)
    path = run.turn_path(f"redacted_{kind}", item["recording_id"], item["id"])
    written = write_wav(path, covered)
    heard = _listen(covered, item["language"], settings["asr"])
    stretches = bleep_intervals(request, margin_s)
    whole = stretches is None
    stretches = stretches or [(0, covered.size)]
    guesses = match_stretches(stretches, find_covered(covered))
    planned = _without_edits(item)
    rows = []
    for stretch, guess in zip(stretches, guesses, strict=True):
        own = item["edits"] if whole else [e for e in item["edits"] if _inside(e, item, stretch)]
        kept = [_kept(edit, planned, heard, item["language"]) for edit in own]
        rows.append({
            "start": stretch[0], "covered_s": (stretch[1] - stretch[0]) / SAMPLE_RATE_HZ,
            "found": guess.found, "start_error_s": guess.start_error_s,
            "end_error_s": guess.end_error_s, "n_edits": len(own),
            "n_characters": sum(len(edit["original"]) for edit in own),
            "original_status": _worst(kept),
            "edge_db": float(np.maximum(edge_levels(covered, stretch), -120.0)),
        })  # fmt: skip
    file = run.relative(path)
    return {"stretches": rows, "files": {file: written.sha256}}


def _listen(samples: Any, language: str, asr: str) -> str:
    transcriber = engines.load("transcriber", asr)
    with engines.engine_time():
        transcript = transcriber.transcribe(samples, language)
    words = read_words(transcript, samples.size / SAMPLE_RATE_HZ)
    return " ".join(word.text for word in words)


def _without_edits(item: Item) -> str:
    text = item["text"]
    for span in sorted(item["spans"], key=lambda span: -span["char_start"]):
        text = f"{text[: span['char_start']]} {text[span['char_end'] :]}"
    return str(text)


def _inside(edit: Item, item: Item, stretch: tuple[int, int]) -> bool:
    """Does the middle of the edit lie in the stretch?"""
    middle = (edit["start_s"] + edit["end_s"]) / 2 - item["turn_start_s"]
    return bool(stretch[0] <= middle * SAMPLE_RATE_HZ < stretch[1])


def _kept(edit: Item, planned: str, heard: str, language: str) -> str:
    match = match_intention(edit["original"], edit["replacement"], planned, heard, heard, language)
    return match.original_status


def _worst(statuses: Sequence[str]) -> str:
    for status in ("retained", "uncertain"):
        if status in statuses:
            return status
    return "absent"


def redaction_table(items: Sequence[Item], results: Sequence[Any], kind: str) -> pd.DataFrame:
    """The ``redactions`` rows of one kind; a region that failed is one row with its reason."""
    rows = []
    for item, result in zip(items, results, strict=True):
        shared = {"region_id": item["id"], "recording_id": item["recording_id"], "kind": kind}
        shared |= {"status": result.status, "reason": result.reason}
        stretches = (result.value or {}).get("stretches", [{"start": 0}])
        rows += [shared | stretch for stretch in stretches]
    return pd.DataFrame(rows, columns=list(SCHEMAS["redactions"].columns))
