"""One turn in every condition: its sound, its words, its identifiers, its facts.

Unit: one turn. The sound of a condition is the turn's place in that condition's
reconstruction (``timeline``); the original's is its place in the recording. A
:class:`TurnView` holds original words: what may be shown of it is decided by
:mod:`aegis.turn_display`.

Functions: :func:`load_material`, :func:`view_turn`, :func:`turn_sound`,
:func:`spectrogram`, :func:`encode_mp3`, :func:`encode_png`, :func:`may_show_originals`.
"""

from __future__ import annotations

import functools
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from aegis.audio import SAMPLE_RATE_HZ, Signal, cut, read_wav
from aegis.differences import Piece, Span, difference, planned_words
from aegis.errors import ManifestError, TableError
from aegis.manifests import read_card
from aegis.tables import CONDITIONS, Run, empty_table

_FRAME, _HOP = 400, 160  # 25 ms and 10 ms
_TOP_HZ = 5000
_RANGE_DB = 60.0
_TABLES = (
    "edits", "timeline", "turn_transcripts", "lexical_matches", "facts", "fact_verdicts",
)  # fmt: skip


@dataclass(frozen=True)
class FactLine:
    """A clinical fact of a turn and its label by condition (None where not observed)."""

    text: str
    importance: str
    labels: Mapping[str, str | None]


@dataclass(frozen=True)
class EditLine:
    """An edit of a turn; ``outcomes`` maps a condition to (replacement, original) status."""

    intention_id: str
    category: str
    original: str
    replacement: str
    outcomes: Mapping[str, tuple[str, str]]


@dataclass(frozen=True)
class TurnView:
    """All that is known of one turn. Holds original words."""

    turn_id: str
    recording_id: str
    index: int
    speaker: str
    channel: int
    language: str
    start_s: float
    end_s: float
    plan: tuple[Piece, ...]
    source: str
    heard: Mapping[str, tuple[Piece, ...]]
    edits: tuple[EditLine, ...]
    facts: tuple[FactLine, ...]

    @property
    def conditions(self) -> tuple[str, ...]:
        """Conditions with a transcript of this turn, in the study's order."""
        return tuple(name for name in CONDITIONS if name in self.heard)


@dataclass(frozen=True)
class Material:
    """The tables behind turn views, grouped by turn."""

    run: Run
    turns: pd.DataFrame
    rows: Mapping[str, Mapping[str, list[dict[str, Any]]]]


def load_material(run: Run) -> Material:
    """Read what turn views need; tables of stages that have not run count as empty."""
    tables = {name: _optional(run, name) for name in _TABLES}
    turns = _optional(run, "turns").set_index("turn_id", drop=False).rename_axis(None)
    of_edit = dict(zip(tables["edits"]["intention_id"], tables["edits"]["turn_id"], strict=True))
    of_fact = dict(zip(tables["facts"]["fact_id"], tables["facts"]["turn_id"], strict=True))
    tables["lexical_matches"] = tables["lexical_matches"].assign(
        turn_id=tables["lexical_matches"]["intention_id"].map(of_edit)
    )
    tables["fact_verdicts"] = tables["fact_verdicts"].assign(
        turn_id=tables["fact_verdicts"]["fact_id"].map(of_fact)
    )
    return Material(run, turns, {name: _by_turn(table) for name, table in tables.items()})


def _optional(run: Run, name: str) -> pd.DataFrame:
    return run.read(name) if run.has(name) else empty_table(name)


def _by_turn(table: pd.DataFrame) -> dict[str, list[dict[str, Any]]]:
    grouped: dict[str, list[dict[str, Any]]] = {}
    for row in table[table["turn_id"].notna()].to_dict("records"):
        grouped.setdefault(str(row["turn_id"]), []).append({str(k): v for k, v in row.items()})
    return grouped


def affected_turns(material: Material) -> list[str]:
    """Turns with an edit, by recording and time."""
    wanted = set(material.rows["edits"])
    turns = material.turns[material.turns["turn_id"].isin(wanted)]
    ordered = turns.sort_values(["recording_id", "start_s", "turn_id"])
    return [str(turn) for turn in ordered["turn_id"]]


def view_turn(material: Material, turn_id: str) -> TurnView:
    """Collect one turn.

    Raises
    ------
    TableError
        No such turn.
    """
    if turn_id not in material.turns.index:
        raise TableError(f"turns: no turn {turn_id!r} in run {material.run.root.name}")
    turn = material.turns.loc[turn_id]
    own = {name: groups.get(turn_id, []) for name, groups in material.rows.items()}
    edits = [row for row in own["edits"] if row["status"] == "ok"]
    spans = [
        Span(int(e["char_start"]), int(e["char_end"]), e["original"], e["replacement"])
        for e in edits
    ]
    source = str(turn["text"])
    plan = planned_words(source, spans)
    unchanged = planned_words(source, [])
    heard = {}
    for row in own["turn_transcripts"]:
        planned = row["condition"] in ("renderer_a", "renderer_b", "redacted")
        originals = [str(edit["original"]) for edit in edits] if planned else []
        expected = plan if planned else unchanged
        if row["condition"] == "redacted":  # replacements are not spoken there
            expected = [piece for piece in plan if piece.kind == "same"]
        pieces = difference(expected, str(row["text"]), originals)
        heard[str(row["condition"])] = tuple(pieces)
    return TurnView(
        turn_id, str(turn["recording_id"]), int(turn["turn_index"]), str(turn["speaker"]),
        int(turn["channel"]), str(turn["language"]), float(turn["start_s"]),
        float(turn["end_s"]), tuple(plan), source, heard,
        tuple(_edit_line(edit, own["lexical_matches"]) for edit in edits),
        tuple(_fact_line(fact, own["fact_verdicts"]) for fact in own["facts"]),
    )  # fmt: skip


def _edit_line(edit: Mapping[str, Any], matches: list[dict[str, Any]]) -> EditLine:
    outcomes = {
        str(row["condition"]): (str(row["replacement_status"]), str(row["original_status"]))
        for row in matches
        if row["intention_id"] == edit["intention_id"] and row["scope"] == "conversation"
    }
    return EditLine(
        str(edit["intention_id"]), str(edit["category"]), str(edit["original"]),
        str(edit["replacement"]), outcomes,
    )  # fmt: skip


def _fact_line(fact: Mapping[str, Any], verdicts: list[dict[str, Any]]) -> FactLine:
    own = [row for row in verdicts if row["fact_id"] == fact["fact_id"]]
    judge = min((str(row["judge"]) for row in own), default="")
    labels = {
        str(row["condition"]): None if pd.isna(row["label"]) else str(row["label"])
        for row in own
        if row["judge"] == judge and row["order"] == "source_first"
    }
    return FactLine(str(fact["text"]), str(fact["importance"]), labels)


@functools.lru_cache(maxsize=6)
def _conversation(path: Path) -> Signal:
    return read_wav(path)


def turn_sound(material: Material, view: TurnView, condition: str) -> Signal | None:
    """A turn's samples in one condition, shape (n,); None where that condition has none."""
    path = material.run.conversation_path(condition, view.recording_id)
    if not path.exists():
        return None
    if condition == "original":
        start_s, end_s = view.start_s, view.end_s
    else:
        rows = [
            row
            for row in material.rows["timeline"].get(view.turn_id, [])
            if row["condition"] == condition and row["kind"] == "turn"
        ]
        if not rows:
            return None
        start_s = min(int(row["out_start"]) for row in rows) / SAMPLE_RATE_HZ
        end_s = max(int(row["out_end"]) for row in rows) / SAMPLE_RATE_HZ
    samples = _conversation(path)
    own = samples if samples.ndim == 1 else samples[min(view.channel, len(samples) - 1)]
    clip = cut(own, start_s, end_s)
    return clip if clip.size else None


def may_show_originals(run: Run) -> set[str]:
    """Recordings whose corpus card says public or synthetic; all others are private."""
    recordings = run.read("recordings")
    allowed = set()
    for dataset in recordings["dataset"].unique():
        try:
            shown = read_card(str(dataset)).may_show_originals
        except ManifestError:  # no card: somebody's own recordings
            shown = False
        if shown:
            own = recordings.loc[recordings["dataset"] == dataset, "recording_id"]
            allowed |= {str(name) for name in own}
    return allowed


def spectrogram(samples: Signal) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Power by frequency (rows, 0 to 5 kHz upwards) and time (columns, 10 ms).

    0 is silence or 60 dB below the loudest point, 255 the loudest point.
    """
    padded = np.pad(np.asarray(samples, dtype=np.float32), (0, max(0, _FRAME - samples.size)))
    frames = np.lib.stride_tricks.sliding_window_view(padded, _FRAME)[::_HOP]
    power = np.abs(np.fft.rfft(frames * np.hanning(_FRAME).astype(np.float32), 512)) ** 2
    kept = power[:, : 512 * _TOP_HZ // SAMPLE_RATE_HZ].T
    loudest = float(kept.max())
    if loudest <= 0.0:
        return np.zeros(kept.shape, dtype=np.uint8)
    level = 10.0 * np.log10(np.maximum(kept, 1e-12 * loudest) / loudest)
    scaled = 255.0 * (np.maximum(level, -_RANGE_DB) + _RANGE_DB) / _RANGE_DB
    return np.asarray(np.rint(scaled), dtype=np.uint8)


def encode_png(levels: np.ndarray[Any, np.dtype[np.uint8]], width: int = 360) -> bytes:
    """A spectrogram as a grey PNG, loud parts dark, at most ``width`` pixels wide."""
    from PIL import Image

    image = Image.fromarray(255 - levels[::-1])
    image = image.resize((min(width, max(image.width, 1)), 96), Image.Resampling.BILINEAR)
    buffer = io.BytesIO()
    image.quantize(24).save(buffer, format="PNG", optimize=True)
    return buffer.getvalue()


def encode_mp3(samples: Signal) -> bytes:
    """Speech as MP3 (about 30 kbit/s), which every browser plays."""
    import soundfile as sf

    buffer = io.BytesIO()
    sf.write(
        buffer, samples.T, SAMPLE_RATE_HZ, format="MP3", subtype="MPEG_LAYER_III",
        compression_level=0.6,
    )  # fmt: skip
    return buffer.getvalue()
