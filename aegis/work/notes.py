"""Notes written from transcripts alone, their judgement, and acoustic measures.

Units: one note a recording and condition; one fact in a pair of notes; one measure of one
recording in one condition. The writer sees the condition's transcript and an id that says
only the dataset; facts reach the judge only. A note that stays invalid is unobserved, never
an empty note. What needs weights that are not at hand is ``not_applicable`` with the reason.

Functions: :func:`note_items`, :func:`write_note`, :func:`note_table`, :func:`pair_items`,
:func:`judge_pair`, :func:`note_verdict_table`, :func:`spectrum_items`,
:func:`compare_spectra`, :func:`acoustic_table`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aegis import engines
from aegis.audio import SAMPLE_RATE_HZ, read_wav
from aegis.engines.judging import Claim, Judge, Said
from aegis.engines.notes import NoteCase, NoteWriter, judge_notes
from aegis.statements import read_sentences
from aegis.tables import Run, content_id
from aegis.work.clinical import Item, Tables, frame, heard_turns, load_engine, rows_by
from aegis.work.judge import judge_items

NOTE_ARMS = ("source_text", "converted", "renderer_a", "renderer_b")


# --- notes -----------------------------------------------------------------------------


def note_items(tables: Tables) -> list[Item]:
    """One item a recording and arm: turns and an id prefixed by the dataset, nothing else."""
    items = []
    for entry in judge_items(tables, NOTE_ARMS):
        name, arm = entry["recording_id"], entry["condition"]
        dataset = str(name).split("/")[0]
        items.append(
            {
                "id": entry["id"], "recording_id": name, "condition": arm,
                "record": f"{dataset}/{content_id('n', name, arm)}",
                "language": entry["language"], "turns": entry["target"],
            }
        )  # fmt: skip
    return items


def write_note(item: Item, settings: Item, run: Run) -> Item:
    """Write one note: its lines, or the reason why there is none."""
    writer: NoteWriter = load_engine("note_writer", settings, run)
    with engines.engine_time():
        turns = [Said(*turn) for turn in item["turns"]]
        note = writer.write(item["record"], turns, item["language"])
    status = "ok" if note.lines else "failed"
    lines = list(note.lines or ())
    return {"lines": lines, "attempts": note.attempts, "status": status, "reason": note.reason}


def note_table(items: Sequence[Item], results: Iterable[Any], writer: str) -> pd.DataFrame:
    """The secret table of notes; those without a valid text keep their reason."""
    rows = []
    for item, result in zip(items, results, strict=True):
        value = result.value or {"status": "failed", "reason": result.reason, "attempts": 0}
        rows.append(
            {
                "recording_id": item["recording_id"], "condition": item["condition"],
                "writer": writer, "note_id": item["record"],
                "text": "\n".join(value.get("lines", ())) or None, "attempts": value["attempts"],
                "status": value["status"], "reason": value["reason"],
            }
        )  # fmt: skip
    return frame("notes", rows)


def pair_items(tables: Tables, notes: pd.DataFrame) -> list[Item]:
    """One item a recording and condition whose note and source note are both valid."""
    valid = notes[notes["status"] == "ok"]
    text = {(r["recording_id"], r["condition"]): r["text"] for r in valid.to_dict("records")}
    items = []
    for entry in judge_items(tables, NOTE_ARMS[:1]):
        name = entry["recording_id"]
        for arm in NOTE_ARMS[1:]:
            if (name, "source_text") not in text or (name, arm) not in text:
                continue
            items.append(
                {
                    "id": f"{name}:{arm}", "recording_id": name, "condition": arm,
                    "language": entry["language"], "source": entry["source"],
                    "notes": [text[name, "source_text"].split("\n"), text[name, arm].split("\n")],
                    "claims": entry["claims"].get("facts", []),
                }
            )  # fmt: skip
    return items


def judge_pair(item: Item, settings: Item, run: Run) -> Item:
    """Judge all facts of one recording in one pair of notes."""
    judge: Judge = load_engine("judge", settings, run)
    source_note, target_note = (tuple(lines) for lines in item["notes"])
    case = NoteCase(
        item["id"], item["language"], tuple(Said(*turn) for turn in item["source"]),
        source_note, target_note, tuple(Claim(*row) for row in item["claims"]),
    )  # fmt: skip
    with engines.engine_time():
        found = judge_notes(judge, case)
    rows = [[v.id, v.included, v.label, v.status, v.reason] for v in found.verdicts]
    return {"verdicts": rows, "n_unsupported": len(found.unsupported)}


def note_verdict_table(
    facts: pd.DataFrame, items: Sequence[Item], results: Iterable[Any], judge: str
) -> pd.DataFrame:
    """Every fact in every condition: judged, or unobserved with its reason."""
    made: dict[tuple[str, str], tuple[list[Any], int]] = {}
    lost: dict[tuple[str, str], str] = {}
    for item, result in zip(items, results, strict=True):
        if result.value is None:
            lost[item["recording_id"], item["condition"]] = str(result.reason)
            continue
        for row in result.value["verdicts"]:
            made[row[0], item["condition"]] = (row, result.value["n_unsupported"])
    rows = []
    for fact in facts.to_dict("records"):
        for arm in NOTE_ARMS[1:]:
            reason = lost.get((fact["recording_id"], arm), "no valid pair of notes")
            blank = [fact["fact_id"], None, None, "failed", reason]
            row, extra = made.get((fact["fact_id"], arm), (blank, None))
            rows.append(
                {
                    "fact_id": fact["fact_id"], "condition": arm, "judge": judge,
                    "recording_id": fact["recording_id"], "importance": fact["importance"],
                    "source_included": row[1], "label": row[2], "n_unsupported": extra,
                    "status": row[3], "reason": row[4],
                }
            )  # fmt: skip
    return frame("note_verdicts", rows)


# --- acoustics -------------------------------------------------------------------------

BANDS = 40
"""Bands of the long-term spectrum, equally wide on the mel scale up to 8 kHz."""


def spectrum_items(
    recordings: pd.DataFrame, reconstructions: pd.DataFrame, run: Run
) -> list[Item]:
    """One item a reconstruction that exists, with its original."""
    known = recordings[recordings["status"] == "ok"].set_index("recording_id")["sha256"].to_dict()
    made = reconstructions[reconstructions["status"] == "ok"]
    return [
        {
            "id": f"{row['recording_id']}:{row['condition']}",
            "recording_id": row["recording_id"], "condition": row["condition"],
            "original": run.relative(run.original_path(row["recording_id"])), "file": row["file"],
            "sha256": [known[row["recording_id"]], row["sha256"]],
        }
        for row in made.to_dict("records")
        if row["recording_id"] in known
    ]  # fmt: skip


def compare_spectra(item: Item, settings: Item, run: Run) -> Item:
    """Correlation of long-term spectra (dB in mel bands) of a reconstruction and its original.

    ``settings``: ``acoustic``, encoders whose cosine is taken as well (none when absent).
    """
    sounds = [read_wav(run.root / item[name]) for name in ("original", "file")]
    a, b = (long_term_spectrum(sound) for sound in sounds)
    value: Item = {"correlation": float(np.corrcoef(a, b)[0, 1])}
    for name in settings.get("acoustic", ()):
        encoder = engines.load("acoustic", name)
        with engines.engine_time():
            mono = (sound if sound.ndim == 1 else sound.mean(axis=0) for sound in sounds)
            first, second = (encoder.embed(sound) for sound in mono)
        value[name] = float(first @ second)
    return value


def long_term_spectrum(samples: NDArray[np.float32], window: int = 1024) -> NDArray[np.float64]:
    """Mean power of a signal in mel bands, in dB, without frames 40 dB below the loudest."""
    mono = samples if samples.ndim == 1 else samples.mean(axis=0)
    frames = mono[: mono.size // window * window].reshape(-1, window).astype(np.float64)
    power = np.abs(np.fft.rfft(frames * np.hanning(window), axis=1)) ** 2
    energy = power.sum(axis=1)
    power = power[energy > energy.max() * 1e-4] if energy.size and energy.max() > 0 else power
    hertz = np.fft.rfftfreq(window, 1 / SAMPLE_RATE_HZ)
    mel = 2595 * np.log10(1 + hertz / 700)
    edges = np.linspace(0, mel[-1], BANDS + 1)
    band = np.clip(np.digitize(mel, edges) - 1, 0, BANDS - 1)
    mean = power.mean(axis=0)
    levels = np.array(
        [mean[band == i].mean() if (band == i).any() else np.nan for i in range(BANDS)]
    )
    known = ~np.isnan(levels)
    filled = np.interp(np.arange(BANDS), np.flatnonzero(known), levels[known])
    spectrum: NDArray[np.float64] = 10 * np.log10(filled + 1e-12)
    return spectrum


_EVENTS = {
    "numbers kept": ("dose", "duration", "frequency", "reading", "date"),
    "drug names kept": ("drug",),
}
LEARNED = {"CLAP similarity": "clap", "HeAR similarity": "hear"}
"""Measures by learned representations, and the encoder of each."""


def acoustic_table(tables: Tables, items: Sequence[Item], results: Sequence[Any]) -> pd.DataFrame:
    """Timing, events and acoustic similarity of every recording and condition.

    ``tables``: ``recordings turns turn_transcripts reconstructions timeline``.
    """
    rows: list[Item] = []

    def add(
        place: tuple[str, str], measure: str, value: float | None, unit: str, why: str = ""
    ) -> None:
        status = "ok" if value is not None else "not_applicable"
        rows.append(
            {"recording_id": place[0], "condition": place[1], "measure": measure, "value": value,
             "unit": unit, "status": status, "reason": None if value is not None else why}
        )  # fmt: skip

    lengths = tables["recordings"].set_index("recording_id")["duration_s"].to_dict()
    shifts = _largest_shifts(tables["timeline"])
    said = rows_by(tables["turns"])
    fresh = heard_turns(tables["turn_transcripts"])
    for row in tables["reconstructions"].to_dict("records"):
        place = (row["recording_id"], row["condition"])
        made = row["status"] == "ok"
        why = str(row["reason"])
        ratio = float(row["duration_s"]) / float(lengths[place[0]]) if made else None
        add(place, "duration ratio", ratio, "ratio", why)
        inserted = float(row["inserted_s"]) if made and pd.notna(row["inserted_s"]) else None
        add(place, "inserted speech", inserted, "s", why)
        add(place, "largest start shift", shifts.get(place), "s", why)
        for measure, value in _kept_events(said.get(place[0], []), fresh.get(place, {})).items():
            add(place, measure, value, "share", "nothing of the kind in the source")
    for item, result in zip(items, results, strict=True):
        place = (item["recording_id"], item["condition"])
        value = None if result.value is None else result.value["correlation"]
        add(place, "long-term spectrum", value, "correlation", str(result.reason))
    heard = {
        (item["recording_id"], item["condition"]): result
        for item, result in zip(items, results, strict=True)
    }
    for row in tables["reconstructions"].to_dict("records"):
        place = (row["recording_id"], row["condition"])
        result = heard.get(place)
        known = (result.value if result is not None else None) or {}
        why = "not asked for, or its sound failed (parameter acoustic)"
        for measure, name in LEARNED.items():
            add(place, measure, known.get(name), "cosine", why)
    return frame("acoustics", rows)


def _largest_shifts(timeline: pd.DataFrame) -> dict[tuple[str, str], float]:
    """(recording, condition) -> how far a turn's start moved at most, in seconds."""
    turns = timeline[timeline["kind"] == "turn"]
    shift = (turns["out_start"].astype(float) - turns["source_start"].astype(float)).abs()
    largest = shift.groupby([turns["recording_id"], turns["condition"]]).max() / SAMPLE_RATE_HZ
    found: dict[tuple[str, str], float] = largest.to_dict()
    return found


def _kept_events(turns: Sequence[Item], heard: Mapping[str, str]) -> dict[str, float | None]:
    """Share of the source's numbers, drug names and negated things that a turn still says.

    ``heard``: turn -> its fresh transcript in one condition.
    """
    hit = dict.fromkeys([*_EVENTS, "negations kept"], 0)
    total = dict(hit)
    for row in turns:
        if row["turn_id"] not in heard:
            continue
        language = row["language"] if row["language"] in ("en", "fr") else "en"
        source, target = (
            [t for s in read_sentences(text, language) for t in s.tokens]
            for text in (row["text"], heard[row["turn_id"]])
        )
        said = {(t.group, t.value) for t in target}
        denied = {(t.group, t.value) for t in target if t.negated}
        for token in source:
            key = (token.group, token.value)
            for measure, groups in _EVENTS.items():
                if token.group in groups:
                    total[measure] += 1
                    hit[measure] += key in said
            if token.negated and token.group in ("symptom", "drug", "test", "site"):
                total["negations kept"] += 1
                hit["negations kept"] += key in denied
    return {name: hit[name] / total[name] if total[name] else None for name in hit}
