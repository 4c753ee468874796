"""What a worker does to one recording under one stressor, and what a variant then starts from.

Unit: one recording and one stressor. Stressed originals lie below ``secret/stressed/``;
:func:`stressed_inputs` puts them in the place of a variant's originals, with the truth moved
to the new clock. The inventory of clinical facts stays that of the original recording.

Functions: :func:`stress_items`, :func:`stress_recording`, :func:`stressed_table`,
:func:`stressed_inputs`, :func:`aligned_transcripts`.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd

from aegis import engines
from aegis.audio import SAMPLE_RATE_HZ, Signal, read_wav, rms_db, write_wav
from aegis.inventory import SourceTurn
from aegis.stressors import (
    ACOUSTIC_WITH_NULL,
    ADMINISTRATIVE,
    STRENGTHS,
    Clock,
    Insertion,
    Said,
    align,
    check_plan,
    insert_turns,
    places,
    plan_insertions,
    stress,
)
from aegis.tables import SCHEMAS, Run, content_id, empty_table

Item = dict[str, Any]
Tables = Mapping[str, pd.DataFrame]
GOLD = (
    "gold_turns", "gold_words", "gold_speech", "gold_mentions", "gold_facts", "gold_actions",
    "gold_chronology",
)  # fmt: skip


def choose_recordings(recordings: pd.DataFrame, turns: pd.DataFrame, n: int) -> list[str]:
    """Usable conversations of two speakers or more, ``n`` of them (0: all), languages in turn."""
    speakers = turns.groupby("recording_id")["profile_id"].nunique()
    talks = set(speakers[speakers > 1].index)
    ok = recordings[(recordings["status"] == "ok") & recordings["recording_id"].isin(talks)]
    queues = [list(own["recording_id"]) for _, own in ok.groupby("language", dropna=False)]
    chosen: list[str] = []
    while any(queues) and (not n or len(chosen) < n):
        queue = queues.pop(0)
        chosen += queue[:1]
        queues.append(queue[1:])
    return sorted(chosen)


def stress_items(
    recordings: pd.DataFrame, gold_turns: pd.DataFrame, chosen: Sequence[str], stressor: str
) -> list[Item]:
    """One item a chosen recording; an administrative stressor needs the script's turns."""
    items = []
    for row in recordings[recordings["recording_id"].isin(chosen)].to_dict("records"):
        item = {"id": row["recording_id"], "sha256": row["sha256"], "layout": row["layout"]}
        if stressor in ADMINISTRATIVE:
            own = gold_turns[gold_turns["recording_id"] == row["recording_id"]]
            columns = ["speaker", "role", "text", "start_s", "end_s", "voice", "language"]
            item["turns"] = own.sort_values("turn_index")[columns].to_dict("records")
        items.append(item)
    return items


def stress_recording(item: Item, settings: Item, run: Run) -> Item:
    """Make one stressed original; ``settings``: ``stressor``, ``seed``."""
    name = settings["stressor"]
    samples = read_wav(run.original_path(item["id"]))
    rng = np.random.default_rng(int(content_id("", settings["seed"], item["id"], name), 16))
    inserted: list[Item] = []
    if name in ADMINISTRATIVE:
        said = _planned(item, name, rng)
        if isinstance(said, str):
            return {"status": "not_applicable", "reason": said}
        stressed, clock, inserted = _speak_plan(item, *said, samples)
    else:
        stressed, clock = stress(samples, name, rng)
    path = run.secret / "stressed" / name / f"{item['id']}.wav"
    written = write_wav(path, stressed, private=True)
    file = run.relative(path)
    return {
        "status": "ok", "file": file, "sha256": written.sha256, "n_samples": written.n_samples,
        "clock": asdict(clock), "inserted": inserted, "files": {file: written.sha256},
    }  # fmt: skip


def _planned(
    item: Item, kind: str, rng: np.random.Generator
) -> tuple[list[Said], list[Insertion]] | str:
    """The conversation and a plan that passed, or why there is none."""
    if not item["turns"]:
        return "no script: nobody's voice can speak an inserted turn"
    keys = ("speaker", "role", "text", "start_s", "end_s")
    turns = [Said(*(row[key] for key in keys)) for row in item["turns"]]
    language = item["turns"][0]["language"]
    plan = plan_insertions(turns, kind, language, rng)
    if not plan:
        return "no plan: no wording, no second side, or no boundary between complete turns"
    refused = check_plan(turns, plan, language, clinical_items)
    return f"plan rejected: {'; '.join(refused)}" if refused else (turns, plan)


def clinical_items(turns: Sequence[Said], language: str) -> list[tuple[int, str]]:
    """What the rule extractor finds: (turn index, evidence and what is said of it)."""
    extractor = engines.load("fact_extractor", "rules")
    source = [SourceTurn(str(i), turn.speaker, turn.text) for i, turn in enumerate(turns)]
    with engines.engine_time():
        found = extractor.extract(source, language)
    items = [(f.turn_index, f"fact {f.evidence} {f.polarity} {f.actor}") for f in found.facts]
    items += [(a.turn_index, f"action {a.evidence} {a.actor} {a.state}") for a in found.actions]
    items += [(r.turn_index, f"{r.relation} {r.first} {r.second}") for r in found.relations]
    return items


def _speak_plan(
    item: Item, turns: list[Said], plan: Sequence[Insertion], samples: Signal
) -> tuple[Signal, Clock, list[Item]]:
    """Each inserted turn in its speaker's own voice and at that speaker's level."""
    shaped = np.atleast_2d(samples)
    speakers = sorted({turn.speaker for turn in turns})
    voices = {row["speaker"]: row for row in item["turns"]}
    spoken = []
    for insertion in plan:
        own = []
        for said in insertion.turns:
            channel = speakers.index(said.speaker) if len(shaped) > 1 else 0
            level = _level(shaped[channel], [t for t in turns if t.speaker == said.speaker])
            own.append((channel, _voiced(said.text, voices[said.speaker], level)))
        spoken.append(own)
    stressed, clock, times = insert_turns(shaped, places(turns, plan), spoken)
    inserted = [
        {
            "after": insertion.after, "speaker": said.speaker, "role": said.role,
            "text": said.text, "start_s": start, "end_s": end,
            "voice": voices[said.speaker]["voice"], "language": voices[said.speaker]["language"],
        }
        for insertion, own in zip(plan, times, strict=True)
        for said, (start, end) in zip(insertion.turns, own, strict=True)
    ]  # fmt: skip
    return stressed[0] if samples.ndim == 1 else stressed, clock, inserted


def _level(channel: Signal, turns: Sequence[Said]) -> float:
    spans = [
        channel[round(t.start_s * SAMPLE_RATE_HZ) : round(t.end_s * SAMPLE_RATE_HZ)] for t in turns
    ]
    return rms_db(np.concatenate(spans))


def _voiced(text: str, row: Item, level_db: float) -> Signal:
    name, _, base_voice = row["voice"].partition(":")
    speaker = engines.load("synthesiser", name)
    with engines.engine_time():
        sound: Signal = speaker.speak(text, base_voice, row["language"])
    return np.asarray(sound * 10 ** ((level_db - rms_db(sound)) / 20), dtype=np.float32)


def stressed_table(results: Sequence[Any], stressor: str) -> pd.DataFrame:
    """Rows of ``stressed``: the fate of each recording under one stressor."""
    rows = []
    for result in results:
        value = result.value or {"status": result.status, "reason": result.reason}
        samples = value.get("n_samples")
        rows.append({
            "recording_id": result.id, "stressor": stressor,
            "family": "administrative" if stressor in ADMINISTRATIVE else "acoustic",
            "strength": (
                STRENGTHS.get(stressor) or ACOUSTIC_WITH_NULL[stressor].strength
            ),
            "duration_s": samples / SAMPLE_RATE_HZ if samples else None,
            "n_inserted": len(value.get("inserted", [])),
            "status": value["status"], "reason": value.get("reason"),
        })  # fmt: skip
    return pd.DataFrame(rows, columns=list(SCHEMAS["stressed"].columns))


def stressed_inputs(parent: Run, tables: Tables, results: Sequence[Any]) -> Callable[[Run], None]:
    """What puts the stressed originals in place in a variant (see ``sweep.run_variant``).

    ``tables``: ``recordings`` and those of :data:`GOLD` that exist, of the parent.
    """
    made = {r.id: r.value for r in results if r.value and r.value["status"] == "ok"}

    def prepare(variant: Run) -> None:
        for name, value in made.items():
            target = variant.original_path(name)
            target.unlink(missing_ok=True)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(parent.root / value["file"], target)
        variant.write("recordings", stressed_recordings(tables["recordings"], made))
        for name in set(GOLD) & set(tables):
            variant.write(name, moved_truth(name, tables[name], made))

    return prepare


def stressed_recordings(recordings: pd.DataFrame, made: Mapping[str, Item]) -> pd.DataFrame:
    """The recordings that were stressed, with what the new sound is."""
    own = recordings[recordings["recording_id"].isin(made)].copy()
    values = [made[name] for name in own["recording_id"]]
    own["sha256"] = [value["sha256"] for value in values]
    own["n_samples"] = [value["n_samples"] for value in values]
    own["duration_s"] = [value["n_samples"] / SAMPLE_RATE_HZ for value in values]
    return own


def moved_truth(name: str, table: pd.DataFrame, made: Mapping[str, Item]) -> pd.DataFrame:
    """A truth table on the stressed clock, turns counted with those inserted."""
    parts = [empty_table(name)]
    for recording_id, own in table[table["recording_id"].isin(made)].groupby("recording_id"):
        value, own = made[str(recording_id)], own.copy()
        clock = clock_of(value)
        before = np.array([entry["after"] for entry in value["inserted"]], dtype=int)
        for column in {"start_s", "end_s"} & set(own.columns):
            own[column] = [None if pd.isna(t) else clock.forward(float(t)) for t in own[column]]
        own["turn_index"] = [int(i + (before < i).sum()) for i in own["turn_index"]]
        parts += [own, _inserted_rows(name, str(recording_id), value["inserted"])]
    moved = pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)
    return _renumbered(moved) if name == "gold_words" else moved


def clock_of(value: Item) -> Clock:
    """The clock of a result."""
    saved = value["clock"]
    return Clock(saved["scale"], tuple((float(a), float(b)) for a, b in saved["insertions"]))


def _inserted_rows(name: str, recording_id: str, inserted: Sequence[Item]) -> pd.DataFrame:
    """Truth of the inserted turns: times and words; they hold no identifier and no fact."""
    rows: list[Item] = []
    for place, entry in enumerate(inserted):
        row = entry | {"recording_id": recording_id, "turn_index": entry["after"] + 1 + place}
        if name in ("gold_turns", "gold_speech"):
            rows.append(row)
        elif name == "gold_words":
            untimed = {"start_s": None, "end_s": None, "word_index": -1}
            rows += [row | untimed | {"text": word} for word in entry["text"].split()]
    return pd.DataFrame(rows, columns=list(SCHEMAS[name].columns))


def _renumbered(words: pd.DataFrame) -> pd.DataFrame:
    ordered = words.sort_values(["recording_id", "turn_index", "word_index"], kind="stable")
    numbers = ordered.groupby("recording_id").cumcount()
    return ordered.assign(word_index=numbers)


def aligned_transcripts(
    parent_turns: pd.DataFrame, variant: Run, results: Sequence[Any], conditions: Sequence[str]
) -> pd.DataFrame:
    """``turn_transcripts`` of a variant in the turns of the original recording."""
    turns = variant.read("turns").set_index("turn_id")[["start_s", "end_s"]]
    heard = variant.read("turn_transcripts").join(turns, on="turn_id")
    rows: list[Item] = []
    for result in results:
        if not result.value or result.value["status"] != "ok":
            continue
        own = parent_turns[parent_turns["recording_id"] == result.id].sort_values("turn_index")
        source = list(zip(own["start_s"], own["end_s"], strict=True))
        for condition in conditions:
            said = heard[(heard["recording_id"] == result.id) & (heard["condition"] == condition)]
            said = said.sort_values("start_s")
            spoken = list(said[["start_s", "end_s", "text"]].itertuples(index=False, name=None))
            texts = align(source, spoken, clock_of(result.value))
            for turn, text in zip(own.to_dict("records"), texts, strict=True):
                rows.append({
                    "turn_id": turn["turn_id"], "condition": condition, "text": text,
                    "recording_id": result.id, "profile_id": turn["profile_id"],
                    "out_start_s": turn["start_s"], "out_end_s": turn["end_s"],
                })  # fmt: skip
    return pd.DataFrame(rows, columns=list(SCHEMAS["turn_transcripts"].columns))
