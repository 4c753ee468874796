"""Cost per item of what knows nothing of a recording's length, at 100 to 10,000 recordings.

    .venv/bin/python bench/bench_scale.py [--sizes 100,1000,10000] [--out FILE.json]

Recordings are tones of 0.6 s and made-up turns. *ingest*: ids, decoding, writing, tables.
*planning*: items, tables and their checks, without the detector, whose cost a recording is that
of `bench_detection`. *assignment*: two profiles a recording against 500 units. *statistics*: a
paired contrast with its resamples. Prints processor seconds per recording and their ratio to the
first size; a first round of 20 takes what is computed once.

Functions: :func:`measure_size`, :func:`main`.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import psutil
import soundfile as sf

from aegis import contrasts, sources
from aegis.cluster import run_item
from aegis.tables import Run, check_table, content_id
from aegis.voices import Rules, assign_profiles, prepare, unit_norm
from aegis.work import ItemResult, corpus, plan

N_UNITS, DIMENSION, N_DRAWS = 500, 64, 2000
SENTENCES = ("My name is Grace Hopper and I live in Springfield.",
             "The pain started two days ago, doctor.", "I take five milligrams every morning.",
             "Please call me on the fourth of June.")  # fmt: skip


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    began = time.process_time()
    made = function()
    return time.process_time() - began, made


def measure_size(n: int, folder: Path) -> dict[str, float]:
    """Processor seconds per recording of each part at ``n`` recordings, and memory."""
    rng = np.random.default_rng(7)
    run = Run(folder / f"run{n}")
    place = folder / f"in{n}"
    place.mkdir(parents=True)
    tone = np.sin(np.arange(9600) * 0.1)
    for i in range(n):
        sf.write(place / f"f{i:06d}.wav", 0.2 * tone + 1e-3 * rng.standard_normal(9600), 16_000)
    seconds = {"ingest": timed(lambda: ingest(run, place))[0]}
    recordings = [f"own/{i:06d}" for i in range(n)]
    turns, words = made_up_turns(recordings)
    table = pd.DataFrame({"recording_id": recordings, "status": "ok"})
    seconds["planning"] = timed(lambda: planning(turns, words, table, run))[0]
    seconds["assignment"] = timed(lambda: assignment(recordings, rng))[0]
    matches = made_up_matches(recordings, rng)
    draws = lambda: np.random.default_rng(1)  # noqa: E731 - a fresh generator each time
    seconds["statistics"] = timed(lambda: contrasts.lexical_contrasts(matches, draws, N_DRAWS))[0]
    per_item = {name: value / n for name, value in seconds.items()}
    return per_item | {"memory_mb": psutil.Process().memory_info().rss / 2**20}


def ingest(run: Run, place: Path) -> pd.DataFrame:
    files = sources.folder_sources(place)
    records = run.secret / "items" / "00_corpora"
    results = [
        result_of(run_item(corpus.ingest_recording, item, {}, run.root, records / f"{k}.json"))
        for k, item in enumerate(sources.ingest_items(files))
    ]
    return check_table("recordings", sources.recordings_frame(files, results))


def result_of(record: dict[str, Any]) -> ItemResult:
    names = ("id", "status", "reason", "value", "engine_s", "wall_s")
    return ItemResult(**{name: record[name] for name in names}, cached=False)


def made_up_turns(recordings: list[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    rows = [
        {"turn_id": f"{name}#{k}", "recording_id": name, "turn_index": k, "speaker": f"S{k % 2}",
         "text": text, "language": "en", "status": "ok"}
        for name in recordings for k, text in enumerate(SENTENCES)
    ]  # fmt: skip
    words = [
        {"recording_id": row["recording_id"], "turn_id": row["turn_id"], "word_index": w,
         "text": word, "start_s": 0.3 * w, "end_s": 0.3 * w + 0.2, "timed": True}
        for row in rows for w, word in enumerate(row["text"].split())
    ]  # fmt: skip
    return pd.DataFrame(rows), pd.DataFrame(words)


def planning(turns: pd.DataFrame, words: pd.DataFrame, table: pd.DataFrame, run: Run) -> Any:
    """Items of all recordings, and tables of plans with one edit each."""
    items = plan.plan_items(turns, words, table)
    results = [SimpleNamespace(status="ok", reason=None, value=made_up_plan(i)) for i in items]
    tables = plan.plan_tables(items, results)
    return [run.write(name, frame) for name, frame in tables.items()]


def made_up_plan(item: dict[str, Any]) -> dict[str, Any]:
    name, turn = item["id"], item["turns"][0]["turn_id"]
    entity, mention = content_id("e", name), content_id("m", name)
    where = {"recording_id": name, "category": "NAME"}
    edit = {"intention_id": content_id("i", name), "turn_id": turn, "mention_id": mention,
            "entity_id": entity, "char_start": 11, "char_end": 23, "original": "Grace Hopper",
            "replacement": "Vera Low", "start_s": 0.9, "end_s": 1.4, "status": "ok",
            "reason": None}  # fmt: skip
    return {
        "mentions": [where | {
            "mention_id": mention, "turn_id": turn, "entity_id": entity, "char_start": 11,
            "char_end": 23, "text": "Grace Hopper", "canonical": "grace hopper", "source": "x",
            "score": 1.0, "start_s": 0.9, "end_s": 1.4, "located": True, "timed": True}],
        "substitutions": [where | {
            "entity_id": entity, "language": "en", "original": "Grace Hopper",
            "replacement": "Vera Low", "n_mentions": 1, "status": "ok", "reason": None}],
        "edits": [where | edit],
        "regions": [{
            "region_id": content_id("q", name), "recording_id": name, "turn_id": turn,
            "n_edits": 1, "source_text": SENTENCES[0], "target_text": SENTENCES[1],
            "status": "ok", "reason": None}],
        "plan_summary": [where | {
            "n_mentions": 1, "n_entities": 1, "n_edits": 1, "n_unlocated": 0, "n_untimed": 0,
            "n_refused": 0}],
    }  # fmt: skip


def assignment(recordings: list[str], rng: np.random.Generator) -> Any:
    names = [f"{name}/S{k}" for name in recordings for k in (1, 2)]
    profiles = pd.DataFrame({
        "profile_id": names, "recording_id": np.repeat(recordings, 2), "speaker": "S",
        "language": "en", "status": "ok", "reason": None,
    })  # fmt: skip
    units = pd.DataFrame({
        "voice_id": [f"v{i:04d}" for i in range(N_UNITS)], "eligible": True, "traits": None,
        "language": "en", "native_english": True, "accent": "unknown",
        "gender_presentation": "female",
    })  # fmt: skip
    own = dict(zip(names, unit_norm(rng.normal(size=(len(names), DIMENSION))), strict=True))
    pool = dict(
        zip(units["voice_id"], unit_norm(rng.normal(size=(N_UNITS, DIMENSION))), strict=True)
    )
    rules = Rules()
    return assign_profiles(prepare(profiles, units, own, pool, rules), rules)


def made_up_matches(recordings: list[str], rng: np.random.Generator) -> pd.DataFrame:
    frames = []
    for condition in ("renderer_a", "renderer_b"):
        frames.append(pd.DataFrame({
            "intention_id": [f"{name}!{k}" for name in recordings for k in range(2)],
            "condition": condition, "scope": "focused",
            "recording_id": np.repeat(recordings, 2), "category": "NAME",
            "replacement_status": rng.choice(["realised", "not_realised"], 2 * len(recordings)),
            "original_status": rng.choice(["absent", "retained"], 2 * len(recordings)),
            "status": "ok",
        }))  # fmt: skip
    return pd.concat(frames, ignore_index=True)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="100,1000,10000")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        measure_size(20, Path(folder))
    for n in (int(text) for text in options.sizes.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            rows[n] = measure_size(n, Path(folder))
        shown = {key: round(value, 6) for key, value in rows[n].items()}
        print(n, json.dumps(shown), flush=True)
    table = pd.DataFrame(rows).T
    print((table / table.iloc[0]).round(2).to_string())
    if options.out:
        options.out.write_text(table.to_json(orient="index", indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
