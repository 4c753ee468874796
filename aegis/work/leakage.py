"""Versions of each profile's speech by every compared system, embedded and heard again.

Unit: an item is one profile: up to 20 s of its turns, converted by every system towards
each of its pseudo-voices, the same turns cut out of the study's own conditions, and the
attack that undoes ``world``; every version is embedded in pieces of five seconds by every
encoder at every sampling rate. An item of a *parallel text* (several speakers read the
same) is made of its scripted turns instead, so that versions have identical texts; those
are transcribed as well. Converted sound is not kept.

A person is a scripted voice where there is a script (one voice speaks in several
recordings), else a profile.

Functions: :func:`speech_items`, :func:`passage_items`, :func:`make_versions` (the work on
one item), :func:`segment_tables`, :func:`describe_people`, :func:`read_conditions`,
:func:`count_conditions`, :func:`pool_segments`, :func:`summarise_anonymity`,
:func:`assignment_rules`, :func:`heard_texts`.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from aegis import engines
from aegis.attackers import anonymity_sets
from aegis.audio import SAMPLE_RATE_HZ, Signal, check_generated, open_channel
from aegis.engines.systems import find_world_key, undo_world
from aegis.errors import ItemError
from aegis.fields import repeated
from aegis.pieces import condition_name, join_pieces
from aegis.segments import ORIGINAL, Segments
from aegis.stats import Floats
from aegis.tables import CONDITIONS, SCHEMAS, Run, content_id
from aegis.voices import Pool, Rules, find_candidates
from aegis.windows import window_signal
from aegis.work import ItemResult
from aegis.work.sounds import embed_signal
from aegis.work.voice import Item, conversion_items, load_voice

MAX_SPEECH_S = 20.0
ONE_VOICE = ("cascade",)
"""Dear systems speak with the first pseudo-voice only; what needs a second one is n/a."""
UNDONE = "world, undone with the key"
SPEECH, PASSAGE = "speech", "parallel text"
SEGMENT_COLUMNS = list(SCHEMAS["leak_segments"].columns)

Rows = list[dict[str, Any]]


# --- items ----------------------------------------------------------------------------------


def speech_items(
    turns: pd.DataFrame,
    recordings: pd.DataFrame,
    assignments: pd.DataFrame,
    voices: pd.DataFrame,
    timeline: pd.DataFrame,
    reconstructions: pd.DataFrame,
    max_speech_s: float = MAX_SPEECH_S,
) -> list[Item]:
    """One item a profile with a first pseudo-voice."""
    items = _with_voices(turns, recordings, assignments, voices)
    sound = {
        (row.recording_id, row.condition): row.sha256
        for row in reconstructions[reconstructions["status"] == "ok"].itertuples()
    }
    spoken = timeline[(timeline["kind"] == "turn") & (timeline["source"] != "silence")]
    places = dict(list(spoken.groupby(["recording_id", "condition"])))
    for item in items:
        item["turns"] = _first_turns(item["turns"], max_speech_s)
        ids = {turn[0] for turn in item["turns"]}
        item["conditions"] = {}
        for condition in CONDITIONS[1:]:
            key = (item["recording_id"], condition)
            if key in sound and key in places:
                own = places[key][places[key]["turn_id"].isin(ids)].sort_values("out_start")
                spans = own[["out_start", "out_end"]].astype(int).to_numpy().tolist()
                item["conditions"][condition] = [sound[key], spans]
        item["cost"] = sum(end - start for _, start, end in item["turns"])
    return items


def _with_voices(
    turns: pd.DataFrame, recordings: pd.DataFrame, assignments: pd.DataFrame, voices: pd.DataFrame
) -> list[Item]:
    """Conversion items of the first pseudo-profile, with the voices of all."""
    made: dict[str, Item] = {}
    for number in sorted(set(assignments["pseudo_profile"])):
        items, _ = conversion_items(turns, recordings, assignments, voices, int(number))
        for item in items:
            first = made.setdefault(item["id"], {**item, "voices": {}})
            first["voices"][str(number)] = item["voice"]
    out = [item for item in made.values() if "1" in item["voices"]]
    for item in out:
        del item["voice"], item["pseudo_profile"]
    return out


def _first_turns(turns: Sequence[Sequence[Any]], max_speech_s: float) -> list[list[Any]]:
    """Turns in time order until there is enough speech; the last one is cut."""
    left, kept = round(max_speech_s * SAMPLE_RATE_HZ), []
    for turn_id, start, end in turns:
        if left > 0 and end > start:
            kept.append([turn_id, start, min(end, start + left)])
            left -= kept[-1][2] - start
    return kept


def passage_items(
    items: Sequence[Item], gold_turns: pd.DataFrame, recordings: pd.DataFrame
) -> list[Item]:
    """Items of the recordings whose script other recordings share word for word.

    Each scripted turn is a turn of the item; recordings of several speakers take no part.
    """
    scripts: dict[str, str] = {}
    for recording, own in gold_turns.groupby("recording_id"):
        if len(set(own["speaker"])) == 1:
            scripts[str(recording)] = "\n".join(own.sort_values("turn_index")["text"])
    shared = set(repeated(scripts.values()))
    by_recording = {item["recording_id"]: item for item in items}
    out = []
    for recording, script in scripts.items():
        if script not in shared or recording not in by_recording:
            continue
        own = gold_turns[gold_turns["recording_id"] == recording].sort_values("turn_index")
        spans = (own[["start_s", "end_s"]].astype(float) * SAMPLE_RATE_HZ).round().astype(int)
        base = by_recording[recording]
        out.append({
            **base, "id": f"passage/{base['id']}", "profile_id": base["id"], "conditions": {},
            "turns": [
                [f"text {content_id('', text)}", start, end]
                for text, (start, end) in zip(own["text"], spans.to_numpy().tolist(), strict=True)
            ],
            "language": str(own["language"].iloc[0]),
        })  # fmt: skip
    return out


# --- the work on one item -------------------------------------------------------------------


def make_versions(item: Item, settings: Item, run: Run) -> Item:
    """Convert, embed, and transcribe (passages) all versions of one profile's speech.

    A turn that fails is listed under ``failed`` with its reason; the others go on.
    """
    passage = "profile_id" in item
    vectors: Rows = []
    heard: Rows = []
    failed: Rows = []
    for system, profile, sounds in _versions(item, settings, run, failed):
        label = {"system": system, "pseudo_profile": profile}
        parts = {str(index): sound for index, sound in sounds.items()}
        whole = parts if passage else {"": np.concatenate(list(sounds.values()))}
        for name, sound in whole.items():
            try:
                vectors += [{**label, "part": name, **row} for row in _embed(sound, settings)]
            except ItemError as error:
                failed.append({**label, "reason": str(error)})
        if passage and profile < 2:
            heard += [{**label, **row} for row in _hear(item, sounds, settings)]
    return {"vectors": vectors, "heard": heard, "failed": failed}


def _versions(
    item: Item, settings: Item, run: Run, failed: Rows
) -> Iterator[tuple[str, int, dict[int, Signal]]]:
    """(system, pseudo-profile, its turns by number), the original first."""
    channel = open_channel(run.original_path(item["recording_id"]), item["channel"])
    turns = {i: channel[start:end] for i, (_, start, end) in enumerate(item["turns"])}
    yield ORIGINAL, 0, turns
    context = window_signal(channel, tuple(map(tuple, item["context"])))
    for system in settings["systems"]:
        for number, row in item["voices"].items():
            if system in ONE_VOICE and number != "1":
                continue
            voice = load_voice(row, run)
            seed = int(content_id("", settings["seed"], item["id"], number), 16) % 2**32
            made: dict[int, Signal] = {}
            for index, turn in turns.items():
                try:
                    made[index] = _convert(system, turn, voice, context, seed)
                except ItemError as error:
                    label = {"system": system, "pseudo_profile": int(number)}
                    failed.append({**label, "reason": str(error)})
            if not made:
                continue
            yield system, int(number), made
            if system == "world":
                key = find_world_key(context, voice)
                undone = {index: undo_world(turn, key) for index, turn in made.items()}
                yield UNDONE, int(number), undone
    for condition, (_, spans) in item["conditions"].items():
        rebuilt = open_channel(run.conversation_path(condition, item["recording_id"]), 0)
        cut = {i: rebuilt[start:end] for i, (start, end) in enumerate(spans) if end > start}
        if cut:
            yield f"study: {condition}", 1, cut


def _convert(system: str, turn: Signal, voice: Any, context: Signal, seed: int) -> Signal:
    converter = engines.load("converter", system)
    with engines.engine_time():
        made: Signal = converter.convert(turn, voice, context, seed)
    check_generated(made, turn.size / SAMPLE_RATE_HZ, system)
    return made


def _embed(sound: Signal, settings: Item) -> Rows:
    rows: Rows = []
    for rate in settings["rates_hz"]:
        for backend in settings["backends"]:
            vectors, seconds = embed_signal(sound, backend, rate, 0.0)
            rows.append({
                "rate_hz": rate, "backend": backend, "seconds": seconds.tolist(),
                "vectors": base64.b64encode(vectors.astype("<f4").tobytes()).decode("ascii"),
            })  # fmt: skip
    return rows


def _hear(item: Item, sounds: Mapping[int, Signal], settings: Item) -> Rows:
    rows: Rows = []
    for asr in settings["asr"]:
        if asr.endswith(".en") and item["language"] != "en":
            continue
        transcriber = engines.load("transcriber", asr)
        for index, sound in sounds.items():
            with engines.engine_time():
                transcript = transcriber.transcribe(sound, item["language"])
            text = " ".join(segment.text.strip() for segment in transcript.segments)
            rows.append({"asr": asr, "text_id": item["turns"][index][0], "text": text})
    return rows


# --- tables ---------------------------------------------------------------------------------


def segment_tables(
    items: Sequence[Item], results: Sequence[ItemResult]
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """``leak_segments``, what was heard of the passages, and the turns that failed."""
    segments: Rows = []
    heard: Rows = []
    failed: Rows = []
    for item, result in zip(items, results, strict=True):
        profile, value = item.get("profile_id", item["id"]), result.value or {}
        kind = PASSAGE if "profile_id" in item else SPEECH
        if result.status != "ok":
            failed.append({"system": "all", "pseudo_profile": 0, "reason": result.reason})
        failed += value.get("failed", [])
        heard += [{"profile_id": profile, **row} for row in value.get("heard", [])]
        for row in value.get("vectors", []):
            pieces = np.frombuffer(base64.b64decode(row["vectors"]), dtype="<f4")
            pieces = pieces.reshape(len(row["seconds"]), -1)
            segments += [
                {
                    "kind": kind, "system": row["system"], "profile_id": profile,
                    "pseudo_profile": row["pseudo_profile"], "rate_hz": row["rate_hz"],
                    "backend": row["backend"], "part": int(row["part"] or 0), "piece": index,
                    "text_id": item["turns"][int(row["part"])][0] if row["part"] else None,
                    "seconds": seconds, "vector": vector.tolist(),
                }
                for index, (seconds, vector) in enumerate(
                    zip(row["seconds"], pieces, strict=True)
                )
            ]  # fmt: skip
    shape = pd.DataFrame(segments, columns=SEGMENT_COLUMNS)
    return shape, pd.DataFrame(heard), pd.DataFrame(
        failed, columns=["system", "pseudo_profile", "reason"]
    )  # fmt: skip


def describe_people(
    turns: pd.DataFrame, gold_turns: pd.DataFrame | None, traits: pd.DataFrame
) -> pd.DataFrame:
    """Table ``leak_people``: who a profile is, and what is known of that person.

    Parameters
    ----------
    turns
        Table ``turns``.
    gold_turns
        The script, or None. A profile is the scripted voice that overlaps most with it.
    traits
        Columns voice, sex, age, accent; what is not known is empty.
    """
    known = traits.set_index("voice")
    rows: Rows = []
    for profile, own in turns.groupby("profile_id", sort=True):
        voice = _scripted_voice(own, gold_turns)
        rows.append({
            "profile_id": profile, "recording_id": own["recording_id"].iloc[0],
            "person": voice or profile, "language": own["language"].mode().iloc[0],
            **{
                name: known.loc[voice, name] if voice in known.index else None
                for name in ("sex", "age", "accent")
            },
        })  # fmt: skip
    return pd.DataFrame(rows, columns=list(SCHEMAS["leak_people"].columns))


def _scripted_voice(turns: pd.DataFrame, gold: pd.DataFrame | None) -> str | None:
    if gold is None:
        return None
    own = gold[gold["recording_id"] == turns["recording_id"].iloc[0]]
    shared: dict[str, float] = {}
    for turn in turns.itertuples():
        overlap = np.minimum(own["end_s"].astype(float), turn.end_s) - np.maximum(
            own["start_s"].astype(float), turn.start_s
        )
        for voice, seconds in zip(own["voice"], overlap, strict=True):
            shared[voice] = shared.get(voice, 0.0) + max(0.0, float(seconds))
    best = max(shared, key=lambda name: (shared[name], name), default=None)
    return best if best is not None and shared[best] > 0 else None


ACCENT_FAMILIES = {
    "us": "North America", "gb": "Britain", "es": "Romance", "it": "Romance", "pt": "Romance",
    "fr": "Romance",
}  # fmt: skip


def pool_segments(voices: pd.DataFrame, voice_embeddings: pd.DataFrame) -> Segments:
    """The reference pool with its published traits: what the attribute attacker learns from.

    A speaker is a base voice; its variants are utterances.
    """
    usable = voices[voices["status"] == "ok"].set_index("voice_id")
    table = voice_embeddings[voice_embeddings["voice_id"].isin(usable.index)]
    wide = table.pivot_table("vector", "voice_id", "backend", aggfunc="first").dropna()
    own = usable.loc[wide.index]
    rows = pd.DataFrame({
        "source": wide.index, "system": ORIGINAL, "pseudo_profile": 0,
        "speaker": own["base_voice"].to_numpy(), "sex": own["gender_presentation"].to_numpy(),
        "accent": own["accent"].map(ACCENT_FAMILIES).to_numpy(),
    })  # fmt: skip
    return Segments.build(
        rows, {backend: np.array(wide[backend].tolist(), dtype=float) for backend in wide}
    )


def summarise_anonymity(
    pool: Pool, rules: Rules, assignments: pd.DataFrame, languages: Mapping[str, str]
) -> pd.DataFrame:
    """Table ``leak_anonymity``: how many profiles an attacker who knows the pool is left with."""
    score = np.full(pool.allowed.shape, -np.inf)
    for row, (ranked, _, values) in enumerate(find_candidates(pool, rules)):
        score[row, ranked] = values
    unit_at = {name: index for index, name in enumerate(pool.units["voice_id"])}
    rows: Rows = []
    for number, own in assignments.groupby("pseudo_profile"):
        voice = dict(zip(own["profile_id"], own["voice_id"], strict=True))
        units = [unit_at.get(voice.get(name), -1) for name in pool.profiles["profile_id"]]
        sets = anonymity_sets(score, np.isfinite(score), np.array(units))
        sets["language"] = [languages.get(name, "unknown") for name in pool.profiles["profile_id"]]
        for language, part in [("all", sets), *sets.groupby("language")]:
            rows.append({
                "language": language, "pseudo_profile": int(number), "n_profiles": len(part),
                "n_assigned": int(part["rank"].notna().sum()),
                "possible_median": part["n_possible"].median(),
                "as_good_median": part["n_as_good"].median(),
                "n_found_out": int((part["n_as_good"] == 1).sum()),
            })  # fmt: skip
    return pd.DataFrame(rows)


def heard_texts(
    heard: pd.DataFrame, items: Sequence[Item], gold_turns: pd.DataFrame
) -> pd.DataFrame:
    """What was heard of each passage beside what was to be said."""
    if not len(heard):
        return pd.DataFrame()
    said = {f"text {content_id('', text)}": text for text in gold_turns["text"]}
    language = {item["profile_id"]: item["language"] for item in items if "profile_id" in item}
    return heard.assign(
        reference=heard["text_id"].map(said), language=heard["profile_id"].map(language),
        test_set=heard["profile_id"].map(language),
    )  # fmt: skip


def read_conditions(
    segments: pd.DataFrame,
    people: pd.DataFrame,
    lengths_s: Sequence[int],
    rates_hz: Sequence[int],
) -> dict[str, Segments]:
    """Segments by condition from the secret tables: every rate and length, and the passages."""
    known = people.set_index("profile_id").to_dict("index")
    conditions: dict[str, Segments] = {}
    for rate in rates_hz:
        at_rate = segments[segments["rate_hz"] == rate]
        plan = [(SPEECH, length) for length in lengths_s] + [(PASSAGE, 0)]
        for kind, length in plan:
            name = condition_name(rate, length)
            name = name if kind == SPEECH else f"{rate // 1000} kHz, parallel text"
            made = _condition(at_rate[at_rate["kind"] == kind], known, length)
            if made is not None and (made.table["system"] == ORIGINAL).any():
                conditions[name] = made
    return conditions


def count_conditions(
    conditions: Mapping[str, Segments], lengths_s: Sequence[int], rates_hz: Sequence[int]
) -> pd.DataFrame:
    """Table ``leak_conditions``: what each planned condition holds, also where it is empty."""
    planned = [
        name for rate in rates_hz
        for name in (
            *(condition_name(rate, length) for length in lengths_s),
            f"{rate // 1000} kHz, parallel text",
        )
    ]  # fmt: skip
    rows: Rows = []
    for name in planned:
        row: dict[str, Any] = {"condition": name, "n_segments": 0, "n_people": 0, "n_systems": 0}
        if name in conditions:
            original = conditions[name].of(ORIGINAL).table
            row |= {
                "n_segments": len(original), "n_people": len(set(original["speaker"])),
                "n_systems": len(conditions[name].systems),
            }  # fmt: skip
        fine = row["n_segments"] > 0
        why = None if fine else "no profile's original speech is so long"
        rows.append(row | {"status": "ok" if fine else "not_applicable", "reason": why})
    return pd.DataFrame(rows)


def assignment_rules(receipt: Mapping[str, Any] | None) -> dict[str, Any]:
    """Thresholds of the assignment that made the voices; the paper's without a receipt."""
    names = ("k", "min_source_distance", "min_target_distance", "distance_weight", "node_budget")
    held = (receipt or {}).get("parameters", {})
    return {name: held[name] for name in names if name in held}


def _condition(
    segments: pd.DataFrame, known: Mapping[str, Mapping[str, Any]], length_s: int
) -> Segments | None:
    rows: dict[tuple[str, str, int], dict[str, Any]] = {}
    vectors: dict[tuple[tuple[str, str, int], str], Floats] = {}
    keys = ["profile_id", "part", "system", "pseudo_profile", "backend"]
    for (profile, part, system, number, backend), own in segments.groupby(keys, sort=True):
        own = own.sort_values("piece")
        pieces = np.array(own["vector"].tolist(), dtype=np.float64)
        joined = join_pieces(pieces, own["seconds"].to_numpy(dtype=float), length_s)
        person = known[profile]
        text = own["text_id"].iloc[0]
        for index, vector in enumerate(joined):
            key = (f"{profile}#{part}.{index}", system, int(number))
            rows[key] = {
                "source": key[0], "system": system, "pseudo_profile": int(number),
                "speaker": person["person"], "session": person["recording_id"],
                "text": None if pd.isna(text) else text, "language": person["language"],
                "test_set": person["language"],
                **{name: person[name] for name in ("sex", "age", "accent")},
            }  # fmt: skip
            vectors[key, backend] = vector
    backends = sorted(set(segments["backend"]))
    whole = [key for key in rows if all((key, backend) in vectors for backend in backends)]
    if not whole:
        return None
    return Segments.build(
        pd.DataFrame([rows[key] for key in whole]),
        {b: np.stack([vectors[key, b] for key in whole]) for b in backends},
    )
