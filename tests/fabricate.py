"""A made-up run: small, consistent tables for tests of what comes after the engines.

Six conversations of two speakers, eight turns each, half a second between turns,
two of three conversations in English. Every third turn names somebody, so every
profile of most conversations has edits and some profiles have none. Every speaker has a
second pseudo-voice, but for those of French conversations: none was feasible.
All numbers follow from ``seed``; nothing here is a result. With ``audio=True`` tones are written
for originals, converted turns, reconstructions and pool voices, one pitch a speaker and
condition. ``contrasts``, ``claims`` and ``scorecard`` stay empty.

Use :func:`fabricate_run`; ``gold=False`` leaves the gold tables empty, and
``without`` names tables not to write.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from aegis.audio import SAMPLE_RATE_HZ, write_wav
from aegis.linkage import run_protocols
from aegis.tables import SCHEMAS, Run, content_id
from aegis.windows import REGION_KINDS

N_TURNS = 8
TURN_S = 4.0
GAP_S = 0.5
RENDERED_EXTRA_S = 0.25
NAMES = ("Ruth", "Colin", "Nadia", "Basil", "Odile", "Hugo")
SURROGATES = ("Vera", "Dylan", "Paula", "Simon", "Clara", "Louis")
TEXT = "the pain started two days ago and i take five milligrams every morning"
INFEASIBLE = "target-target distance >= 0.65: no combination satisfies it"
DERIVED = ("converted", "renderer_a", "renderer_b", "redacted")

Rows = dict[str, list[dict[str, Any]]]


def fabricate_run(
    root: Path,
    n_recordings: int = 6,
    seed: int = 0,
    gold: bool = True,
    audio: bool = False,
    without: Iterable[str] = (),
) -> Run:
    """Write every table of a small made-up run below ``root`` and return the run."""
    run = Run(root)
    root.mkdir(parents=True, exist_ok=True)
    run.secret.mkdir(mode=0o700, exist_ok=True)
    rng = np.random.default_rng(seed)
    rows: Rows = {name: [] for name in SCHEMAS}
    for index in range(n_recordings):
        _conversation(rows, f"toy/c{index:02d}", "fr" if index % 3 == 2 else "en", rng)
    _pool(rows, rng)
    _linkage(rows, rng)
    for name, lines in rows.items():
        if name in without or (name.startswith("gold_") and not gold):
            lines = []
        run.write(name, pd.DataFrame(lines, columns=list(SCHEMAS[name].columns)))
    if audio:
        _tones(run, rows)
    return run


def turn_row(recording: str, index: int, name: str | None, language: str) -> dict[str, Any]:
    """Turn ``index`` of a recording; speakers alternate, ``name`` is spoken first if given."""
    speaker = f"S{index % 2 + 1}"
    start = index * (TURN_S + GAP_S)
    said = ([name] if name else []) + TEXT.split()
    return {
        "turn_id": content_id("t", recording, index), "recording_id": recording,
        "turn_index": index, "profile_id": f"{recording}/{speaker}", "speaker": speaker,
        "channel": 0, "start_s": start, "end_s": start + TURN_S, "text": " ".join(said),
        "language": language, "n_words": len(said), "flagged": False, "status": "ok",
        "reason": None,
    }  # fmt: skip


def _conversation(rows: Rows, recording: str, language: str, rng: np.random.Generator) -> None:
    number = int(recording[-2:])
    named = {index: NAMES[(number + index) % 6] for index in range(0, N_TURNS, 3)}
    turns = [turn_row(recording, i, named.get(i), language) for i in range(N_TURNS)]
    duration = turns[-1]["end_s"] + GAP_S
    rows["recordings"].append({
        "recording_id": recording, "dataset": "toy", "language": language, "layout": "mono",
        "n_channels": 1, "source_rate_hz": SAMPLE_RATE_HZ, "duration_s": duration,
        "n_samples": round(duration * SAMPLE_RATE_HZ), "gain_db": 0.0,
        "sha256": content_id("", recording), "n_speakers_declared": 2, "status": "ok",
        "reason": None,
    })  # fmt: skip
    rows["file_map"].append({
        "recording_id": recording, "file": f"visit {number} of Mrs X.wav",
        "source_sha256": content_id("", recording), "role": "audio",
    })  # fmt: skip
    rows["turns"] += turns
    shared = SCHEMAS["turn_times"].columns
    rows["turn_times"] += [{key: turn[key] for key in shared} for turn in turns]
    _words(rows, turns)
    _gold(rows, turns, named)
    speech_s = N_TURNS * TURN_S
    rows["screening"].append({
        "recording_id": recording, "language": language, "language_probability": 0.99,
        "n_speakers": 2, "n_words": sum(t["n_words"] for t in turns), "n_turns": N_TURNS,
        "n_flagged": 0, "n_untimed": 0, "speech_s": speech_s, "covered_s": speech_s,
        "uncovered_s": 0.0, "overlap_s": 0.0, "n_speakers_found": 2, "asr": "toy",
        "diarizer": "toy", "status": "ok", "reason": None,
    })  # fmt: skip
    _profiles(rows, recording, language, rng)
    _edits(rows, turns, named, rng)
    for condition in DERIVED:
        _reconstruction(rows, recording, turns, set(named), condition)
    _transcripts(rows, recording, turns, named, rng)


def _words(rows: Rows, turns: list[dict[str, Any]]) -> None:
    index = 0
    for turn in turns:
        said = turn["text"].split()
        step = TURN_S / len(said)
        for place, word in enumerate(said):
            start = turn["start_s"] + place * step
            rows["words"].append({
                "recording_id": turn["recording_id"], "word_index": index,
                "turn_id": turn["turn_id"], "speaker": turn["speaker"], "channel": 0,
                "start_s": start, "end_s": start + step, "text": word, "probability": 0.9,
                "timed": True, "flagged": False,
            })  # fmt: skip
            rows["gold_words"].append({
                "recording_id": turn["recording_id"], "word_index": index,
                "turn_index": turn["turn_index"], "speaker": "AB"[turn["turn_index"] % 2],
                "text": word, "start_s": start, "end_s": start + step,
            })  # fmt: skip
            index += 1


def _gold(rows: Rows, turns: list[dict[str, Any]], named: dict[int, str]) -> None:
    for turn in turns:
        index = turn["turn_index"]
        rows["gold_turns"].append({
            "recording_id": turn["recording_id"], "turn_index": index,
            "speaker": "AB"[index % 2], "role": ("doctor", "patient")[index % 2],
            "voice": f"voice{index % 2}", "start_s": turn["start_s"], "end_s": turn["end_s"],
            "text": turn["text"], "language": turn["language"],
        })  # fmt: skip
        rows["gold_speech"].append({
            "recording_id": turn["recording_id"], "speaker": "AB"[index % 2], "turn_index": index,
            "start_s": turn["start_s"], "end_s": turn["end_s"],
        })  # fmt: skip
        rows["diarization"] += [
            {
                "recording_id": turn["recording_id"], "mode": mode, "segment_index": index,
                "speaker": f"S{index % 2 + 1}", "start_s": turn["start_s"] + 0.1,
                "end_s": turn["end_s"],
            }
            for mode in ("used", "automatic")
        ]  # fmt: skip
    for index, name in named.items():
        rows["gold_mentions"].append({
            "recording_id": turns[0]["recording_id"], "turn_index": index, "char_start": 0,
            "char_end": len(name), "text": name, "category": "NAME", "entity": f"name_{name}",
        })  # fmt: skip
    rows["gold_facts"].append({
        "recording_id": turns[0]["recording_id"], "fact_index": 0, "turn_index": 0,
        "text": "pain for two days", "evidence": "the pain started two days ago",
        "importance": "major", "polarity": "affirmed", "temporality": "current",
        "modifiers": None,
    })  # fmt: skip
    here = {"recording_id": turns[0]["recording_id"], "turn_index": 0}
    rows["gold_actions"].append(here | {
        "action_index": 0, "action_id": "rest", "actor": "patient", "action": "rest",
        "state": "advised", "timing": "", "plan": True, "evidence": "the pain started",
    })  # fmt: skip
    rows["gold_chronology"].append(here | {
        "relation_index": 0, "relation": "before", "first": "pain", "second": "visit",
        "evidence": "the pain started two days ago",
    })  # fmt: skip


def _vector(rng: np.random.Generator) -> list[float]:
    vector = rng.normal(size=16)
    return [float(x) for x in vector / np.linalg.norm(vector)]


def _profiles(rows: Rows, recording: str, language: str, rng: np.random.Generator) -> None:
    for speaker in ("S1", "S2"):
        profile = f"{recording}/{speaker}"
        rows["profiles"].append({
            "profile_id": profile, "recording_id": recording, "speaker": speaker,
            "language": language, "n_turns": N_TURNS // 2, "speech_s": N_TURNS / 2 * TURN_S,
            "n_windows": 5, "f0_median_hz": 120.0, "status": "ok", "reason": None,
        })  # fmt: skip
        for number, voice in ((1, f"v{speaker}"), (2, "v3" if speaker == "S1" else "v4")):
            found = number == 1 or language == "en"
            rows["assignments"].append({
                "profile_id": profile, "pseudo_profile": number, "recording_id": recording,
                "speaker": speaker, "voice_id": voice if found else None,
                "distance": 0.9 if found else None, "score": 0.7 if found else None,
                "rank": 1 if found else None, "n_candidates": 4, "n_eligible": 4,
                "status": "ok" if found else "failed", "reason": None if found else INFEASIBLE,
            })  # fmt: skip
        for backend in ("ge2e", "dvector"):
            row = {"profile_id": profile, "backend": backend, "vector": _vector(rng)}
            rows["profile_embeddings"].append(row)
    for number in (1, 2):
        found = number == 1 or language == "en"
        rows["assignment_summary"].append({
            "recording_id": recording, "pseudo_profile": number, "n_profiles": 2,
            "n_assigned": 2 if found else 0, "n_nodes": 2,
            "min_source_distance": 0.9 if found else None,
            "min_target_distance": 0.8 if found else None,
            "status": "ok" if found else "failed", "reason": None if found else INFEASIBLE,
        })  # fmt: skip


def _pool(rows: Rows, rng: np.random.Generator) -> None:
    for voice in ("vS1", "vS2", "v3", "v4"):
        rows["voices"].append({
            "voice_id": voice, "base_voice": voice, "synthesiser": "toy", "language": "en",
            "accent": "us", "native_english": True, "gender_presentation": "female",
            "child_like": False, "traits": None, "duration_s": 5.0, "snr_db": 30.0,
            "f0_median_hz": 200.0, "sha256": content_id("", voice), "licence": "CC0-1.0",
            "provenance": "not stated", "eligible": True, "status": "ok", "reason": None,
        })  # fmt: skip
        for backend in ("ge2e", "dvector"):
            row = {"voice_id": voice, "backend": backend, "vector": _vector(rng)}
            rows["voice_embeddings"].append(row)
    for backend in ("ge2e", "dvector"):
        rows["backend_distances"].append({
            "backend": backend, "n_pairs": 6, "share_over_070": 0.9, "share_over_065": 0.95,
            "median_distance": 0.9, "cohort": "toy", "n_cohort": 4,
        })  # fmt: skip


def _edits(
    rows: Rows, turns: list[dict[str, Any]], named: dict[int, str], rng: np.random.Generator
) -> None:
    recording = turns[0]["recording_id"]
    for turn in turns:
        rows["converted"].append({
            "turn_id": turn["turn_id"], "recording_id": recording,
            "profile_id": turn["profile_id"], "converter": "toy",
            "file": f"wav/turns/converted/{recording}/{turn['turn_id']}.wav",
            "sha256": content_id("", turn["turn_id"]),
            "n_samples": round(TURN_S * SAMPLE_RATE_HZ), "gain_db": 0.0, "status": "ok",
            "reason": None,
        })  # fmt: skip
    for index, name in named.items():
        turn, surrogate = turns[index], SURROGATES[NAMES.index(name)]
        entity = content_id("e", recording, name)
        mention = content_id("m", turn["turn_id"], 0, len(name))
        intention = content_id("i", mention)
        region = content_id("r", turn["turn_id"])
        span = {"char_start": 0, "char_end": len(name)}
        times = {"start_s": turn["start_s"], "end_s": turn["start_s"] + 0.3}
        base = {"recording_id": recording, "turn_id": turn["turn_id"]}
        rows["mentions"].append({
            **base, **span, **times, "mention_id": mention, "entity_id": entity,
            "category": "NAME", "text": name, "canonical": name.lower(), "source": "toy",
            "score": 1.0, "located": True, "timed": True,
        })  # fmt: skip
        rows["edits"].append({
            **base, **span, **times, "intention_id": intention, "mention_id": mention,
            "entity_id": entity, "category": "NAME", "original": name,
            "replacement": surrogate, "status": "ok", "reason": None,
        })  # fmt: skip
        rows["regions"].append({
            **base, "region_id": region, "n_edits": 1, "source_text": turn["text"],
            "target_text": turn["text"].replace(name, surrogate, 1), "status": "ok",
            "reason": None,
        })  # fmt: skip
        for renderer in ("renderer_a", "renderer_b", "redacted"):
            for item, kind in ((intention, "intention"), (region, "region")):
                failed = renderer == "renderer_a" and rng.random() < 0.15
                rows["rendered"].append({
                    **base, "item_id": item, "kind": kind, "renderer": renderer, "n_edits": 1,
                    "file": None if failed else f"wav/turns/{renderer}/{recording}/{item}.wav",
                    "sha256": None if failed else content_id("", item, renderer),
                    "n_samples": None if failed else _rendered_samples(renderer),
                    "gain_db": None if failed else 0.0,
                    "status": "failed" if failed else "ok",
                    "reason": "unsupported: toy" if failed else None,
                })  # fmt: skip
    for name in sorted(set(named.values())):
        rows["substitutions"].append({
            "entity_id": content_id("e", recording, name), "recording_id": recording,
            "category": "NAME", "language": turns[0]["language"], "original": name,
            "replacement": SURROGATES[NAMES.index(name)],
            "n_mentions": list(named.values()).count(name), "status": "ok", "reason": None,
        })  # fmt: skip
    rows["plans"].append({
        "recording_id": recording, "n_turns": len(turns), "n_mentions": len(named),
        "n_edits": len(named), "status": "ok", "reason": None,
    })  # fmt: skip
    rows["plan_summary"].append({
        "recording_id": recording, "category": "NAME", "n_mentions": len(named),
        "n_entities": len(set(named.values())), "n_edits": len(named), "n_unlocated": 0,
        "n_untimed": 0,
        "n_refused": 0,
    })  # fmt: skip


def _rendered_samples(renderer: str) -> int:
    extra = RENDERED_EXTRA_S if renderer == "renderer_b" else 0.0
    return round((TURN_S + extra) * SAMPLE_RATE_HZ)


def _reconstruction(
    rows: Rows, recording: str, turns: list[dict[str, Any]], affected: set[int], condition: str
) -> None:
    failed = {
        row["turn_id"] for row in rows["rendered"]
        if (row["renderer"], row["kind"], row["status"]) == (condition, "region", "failed")
    }  # fmt: skip
    out, source_at, index, counts = 0, 0, 0, {"rendered": 0, "retained_converted": 0}

    def place(kind: str, source: str, start: int, end: int, length: int, turn: Any) -> None:
        nonlocal out, index
        turn_id = turn["turn_id"] if turn else None
        rows["timeline"].append({
            "recording_id": recording, "condition": condition, "segment_index": index,
            "kind": kind, "turn_id": turn_id, "profile_id": turn["profile_id"] if turn else None,
            "source": source, "file": f"wav/turns/{source}/{recording}/{turn_id}.wav" if turn else
            None, "file_start": 0 if turn else None, "source_start": start, "source_end": end,
            "out_start": out, "out_end": out + length, "channel": 0,
        })  # fmt: skip
        out, index = out + length, index + 1

    for turn in turns:
        start, end = (round(turn[key] * SAMPLE_RATE_HZ) for key in ("start_s", "end_s"))
        if start > source_at:
            place("gap", "silence", source_at, start, start - source_at, None)
        source, length = "converted", end - start
        if condition != "converted" and turn["turn_index"] in affected:
            source = "retained_converted" if turn["turn_id"] in failed else "rendered"
            length = _rendered_samples(condition) if source == "rendered" else length
            counts[source] += 1
        place("turn", source, start, end, length, turn)
        source_at = end
    tail = round(GAP_S * SAMPLE_RATE_HZ)
    place("gap", "silence", source_at, source_at + tail, tail, None)
    rows["reconstructions"].append({
        "recording_id": recording, "condition": condition,
        "file": f"wav/conversations/{condition}/{recording}.wav",
        "sha256": content_id("", recording, condition), "n_samples": out,
        "duration_s": out / SAMPLE_RATE_HZ, "n_segments": index,
        "n_rendered": counts["rendered"], "n_retained": counts["retained_converted"],
        "n_failed": 0, "clipped_s": 0.0, "inserted_s": (out - source_at - tail) / SAMPLE_RATE_HZ,
        "replay_max_steps": 1.0, "gain_db": 0.0, "status": "ok", "reason": None,
    })  # fmt: skip


def _transcripts(
    rows: Rows,
    recording: str,
    turns: list[dict[str, Any]],
    named: dict[int, str],
    rng: np.random.Generator,
) -> None:
    text = " ".join(turn["text"] for turn in turns)
    n_words = len(text.split())
    for condition in ("original", *DERIVED):
        rows["transcripts"].append({
            "item_id": recording, "kind": "conversation", "recording_id": recording,
            "condition": condition, "text": text, "language": turns[0]["language"],
            "n_words": n_words, "flagged": False, "status": "ok", "reason": None,
        })  # fmt: skip
        for reference in ("source", "gold"):
            rows["transcript_scores"].append({
                "recording_id": recording, "condition": condition, "reference": reference,
                "n_reference": n_words, "substitutions": int(rng.integers(0, 5)),
                "deletions": int(rng.integers(0, 3)), "insertions": int(rng.integers(0, 3)),
                "status": "ok", "reason": None,
            })  # fmt: skip
        rows["turn_transcripts"] += [
            {
                "turn_id": turn["turn_id"], "condition": condition, "recording_id": recording,
                "profile_id": turn["profile_id"], "text": turn["text"],
                "out_start_s": turn["start_s"], "out_end_s": turn["end_s"],
            }
            for turn in turns
        ]  # fmt: skip
    for row in [row for row in rows["rendered"] if row["recording_id"] == recording]:
        if row["kind"] == "intention" and row["renderer"] != "redacted":
            _match(rows, row, rng)


def _match(rows: Rows, rendered: dict[str, Any], rng: np.random.Generator) -> None:
    """Literal search for one intention; a failed rendering keeps its row."""
    failed = rendered["status"] == "failed"
    share = 0.9 if rendered["renderer"] == "renderer_b" else 0.7
    realised = "realised" if rng.random() < share else "not_realised"
    original = str(rng.choice(["absent", "retained", "uncertain"], p=[0.9, 0.05, 0.05]))
    base = {
        "intention_id": rendered["item_id"], "condition": rendered["renderer"],
        "recording_id": rendered["recording_id"], "category": "NAME",
        "planned_text_holds_original": False, "replacement_evidence": None,
        "original_evidence": None,
    }  # fmt: skip
    rows["lexical_matches"].append({
        **base, "scope": "focused", "replacement_status": "failed" if failed else realised,
        "original_status": "failed" if failed else original, "status": rendered["status"],
        "reason": rendered["reason"],
    })  # fmt: skip
    rows["lexical_matches"].append({
        **base, "scope": "conversation", "replacement_status": realised,
        "original_status": original, "status": "ok", "reason": None,
    })  # fmt: skip


def _linkage(rows: Rows, rng: np.random.Generator) -> None:
    """Trials of made-up vectors: the more a condition is processed, the less of the source."""
    recording_of = {row["profile_id"]: row["recording_id"] for row in rows["profiles"]}
    own = {name: rng.normal(size=32) for name in recording_of}
    share = {"original": 3.0, "converted": 0.6, "renderer_a": 0.5, "renderer_b": 0.3}
    made: dict[tuple[str, ...], dict[str, np.ndarray[Any, np.dtype[np.float64]]]] = {}

    def embed(backend: str, condition: str, kind: str) -> Any:
        key = (backend, condition, kind)
        if key not in made:
            weight = share.get(condition.removesuffix("_turns"), 0.0)
            vectors = {n: weight * v + rng.normal(size=32) for n, v in own.items()}
            made[key] = {n: v / np.linalg.norm(v) for n, v in vectors.items()}
        return made[key]

    backends = ("ge2e", "dvector")
    trials, rates = run_protocols(embed, backends, DERIVED, recording_of, seed=0, n_draws=50)
    rows["trials"], rows["linkage"] = trials.to_dict("records"), rates.to_dict("records")
    for backend, condition, kind, name in itertools.product(
        backends, ("original", *DERIVED), REGION_KINDS, recording_of
    ):
        rows["eligibility"].append({
            "profile_id": name, "recording_id": recording_of[name], "condition": condition,
            "region_kind": kind, "backend": backend, "usable_s": 15.6, "n_windows": 5,
            "status": "ok", "reason": None,
        })  # fmt: skip


def _tones(run: Run, rows: Rows) -> None:
    """One pitch a profile and condition, silence elsewhere; originals below ``secret/``."""
    for turn in rows["converted"]:
        spans = [(0.0, TURN_S, turn["profile_id"][-2:])]
        write_wav(run.root / turn["file"], _tone_track(spans, turn["n_samples"], 180.0))
    for place, voice in enumerate(rows["voices"]):
        track = _tone_track([(0.0, 5.0, "S1")], 5 * SAMPLE_RATE_HZ, 170.0 + 20 * place)
        write_wav(run.voice_path(voice["voice_id"]), track)
    for recording in rows["recordings"]:
        name = recording["recording_id"]
        own = [t for t in rows["turns"] if t["recording_id"] == name]
        spans = [(t["start_s"], t["end_s"], t["speaker"]) for t in own]
        write_wav(run.original_path(name), _tone_track(spans, recording["n_samples"], 110.0))
        for shift, condition in enumerate(DERIVED):
            own = [
                s for s in rows["timeline"]
                if (s["recording_id"], s["condition"]) == (name, condition)
            ]  # fmt: skip
            spans = [
                (
                    s["out_start"] / SAMPLE_RATE_HZ,
                    s["out_end"] / SAMPLE_RATE_HZ,
                    s["profile_id"][-2:],
                )
                for s in own
                if s["profile_id"]
            ]
            track = _tone_track(spans, max(s["out_end"] for s in own), 180.0 + 30.0 * shift)
            write_wav(run.conversation_path(condition, name), track)


def _tone_track(
    spans: list[tuple[float, float, str]], n_samples: int, base_hz: float
) -> np.ndarray[Any, np.dtype[np.float32]]:
    track = np.zeros(n_samples, dtype=np.float32)
    for start_s, end_s, speaker in spans:
        first, last = round(start_s * SAMPLE_RATE_HZ), round(end_s * SAMPLE_RATE_HZ)
        time = np.arange(last - first) / SAMPLE_RATE_HZ
        pitch = base_hz * (1.0 if speaker == "S1" else 1.5)
        track[first:last] = 0.2 * np.sin(2 * np.pi * pitch * time)
    return track
