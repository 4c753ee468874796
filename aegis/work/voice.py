"""What a worker does to a profile, to a unit of the reference pool, and to a speaker's turns.

Units: a *profile* item is one speaker of one recording (windows embedded by every
backend, pitch); a *base* item is one base voice or one recorded unit of the pool (all its
variants); a *conversion* item is one profile with all its turns, so that the speaker's
and the reference's statistics are made once. Embeddings are voiceprints: they stay in the
items' results below ``secret/``.

Functions: :func:`profile_items`, :func:`describe_profile`, :func:`base_items`,
:func:`build_base`, :func:`conversion_items`, :func:`convert_profile`; tables from results:
:func:`profile_tables`, :func:`voice_tables`, :func:`converted_table`.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aegis import engines
from aegis.audio import (
    SAMPLE_RATE_HZ,
    Signal,
    check_generated,
    check_not_source,
    open_channel,
    read_wav,
    resample,
    write_wav,
)
from aegis.engines import Voice
from aegis.engines.conversion import apply_variant, estimate_f0
from aegis.errors import AudioError, ItemError
from aegis.pool import RATIOS, PoolManifest, Unit, judge_unit, measure_quality, trim
from aegis.tables import SCHEMAS, Run, content_id
from aegis.voices import read_traits
from aegis.windows import (
    cut_intervals,
    place_windows,
    profile_vector,
    usable_intervals,
    usable_samples,
    window_signal,
)
from aegis.work import ItemResult

Item = dict[str, Any]
Rows = list[dict[str, Any]]
CONTEXT = 30 * SAMPLE_RATE_HZ
"""Samples of a speaker's speech that describe the voice."""
MIN_SPEECH_S = 1.0


# --- profiles -------------------------------------------------------------------------------


def profile_items(turns: pd.DataFrame, recordings: pd.DataFrame) -> list[Item]:
    """One item a profile: its usable windows and intervals, in samples of the original."""
    digest = dict(zip(recordings["recording_id"], recordings["sha256"], strict=True))
    items = []
    for profile_id, own in turns.sort_values(["profile_id", "start_s"]).groupby("profile_id"):
        usable = usable_intervals(_spans(own))
        items.append({
            "id": profile_id, "recording_id": own["recording_id"].iloc[0],
            "sha256": digest[own["recording_id"].iloc[0]],
            "channel": int(own["channel"].iloc[0]), "intervals": usable,
            "windows": place_windows(usable), "cost": usable_samples(usable),
        })  # fmt: skip
    return items


def _spans(turns: pd.DataFrame) -> list[tuple[int, int]]:
    bounds = (turns[["start_s", "end_s"]].astype(float) * SAMPLE_RATE_HZ).round().astype(int)
    return list(bounds.itertuples(index=False, name=None))


def describe_profile(item: Item, settings: Item, run: Run) -> Item:
    """Embed a profile's windows with every backend of ``settings`` and find its pitch.

    Raises
    ------
    AudioError
        Less than one second of usable speech, or an embedding that is not finite.
    """
    usable_s = sum(end - start for start, end in item["intervals"]) / SAMPLE_RATE_HZ
    if usable_s < MIN_SPEECH_S:
        raise AudioError(f"too little speech: {usable_s:.2f} s, a profile needs {MIN_SPEECH_S} s")
    channel = open_channel(run.original_path(item["recording_id"]), item["channel"])
    windows = [window_signal(channel, tuple(map(tuple, window))) for window in item["windows"]]
    speech = window_signal(channel, cut_intervals(item["intervals"], 0, CONTEXT))
    return {
        "vectors": {name: embed(name, windows, item["id"]) for name in settings["backends"]},
        "f0_median_hz": find_f0_median(speech),
    }


def embed(backend: str, windows: Sequence[Signal], name: str) -> list[str]:
    """Raw window embeddings, each as base64 of float32."""
    encoder = engines.load("encoder", backend)
    with engines.engine_time():
        vectors = np.asarray(encoder.embed(windows), dtype="<f4")
    if not np.isfinite(vectors).all() or not (np.linalg.norm(vectors, axis=1) > 0).all():
        raise AudioError(f"{name}: an embedding by {backend} is zero or not finite")
    return [base64.b64encode(row.tobytes()).decode("ascii") for row in vectors]


def decode(rows: Sequence[str]) -> NDArray[np.float64]:
    """The vectors of :func:`embed`, shape (windows, dimension)."""
    flat = [np.frombuffer(base64.b64decode(row), dtype="<f4") for row in rows]
    return np.stack(flat).astype(np.float64)


def find_f0_median(samples: Signal) -> float | None:
    """Median pitch of the voiced frames in Hz, None when there are fewer than ten."""
    if samples.size < SAMPLE_RATE_HZ // 10:
        return None
    with engines.engine_time():
        f0, _ = estimate_f0(samples)
    return float(np.median(f0[f0 > 0])) if (f0 > 0).sum() >= 10 else None


def profile_tables(
    turns: pd.DataFrame,
    items: Sequence[Item],
    results: Sequence[ItemResult],
    centres: Mapping[str, NDArray[np.float64]],
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Tables ``profiles`` and ``profile_embeddings`` (centred, unit-norm)."""
    by_profile = turns.groupby("profile_id")
    rows, vectors = [], []
    for item, result in zip(items, results, strict=True):
        own, value = by_profile.get_group(item["id"]), result.value or {}
        rows.append({
            "profile_id": item["id"], "recording_id": item["recording_id"],
            "speaker": own["speaker"].iloc[0], "language": _majority(own["language"]),
            "n_turns": len(own), "speech_s": usable_samples(item["intervals"]) / SAMPLE_RATE_HZ,
            "n_windows": len(item["windows"]), "f0_median_hz": value.get("f0_median_hz"),
            "status": result.status, "reason": result.reason,
        })  # fmt: skip
        for backend, encoded in value.get("vectors", {}).items():
            vector = profile_vector(decode(encoded), centres[backend])
            vectors.append(
                {"profile_id": item["id"], "backend": backend, "vector": vector.tolist()}
            )
    return _frame("profiles", rows), _frame("profile_embeddings", vectors)


def _majority(values: pd.Series) -> str | None:
    known = values.dropna()
    return str(known.mode().iloc[0]) if len(known) else None


def _frame(name: str, rows: Rows) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(SCHEMAS[name].columns))


# --- the reference pool ---------------------------------------------------------------------


def base_items(pool: PoolManifest) -> list[Item]:
    """One item a base voice and language with its variants, or one a recorded unit."""
    groups: dict[str, list[Unit]] = {}
    for unit in pool.units:
        name = f"{unit.language}.{unit.base_voice}" if pool.synthesiser else unit.voice_id
        groups.setdefault(name, []).append(unit)
    items = []
    for name, units in sorted(groups.items()):
        first = units[0]
        source = (
            {"text": pool.texts[first.language]}
            if pool.synthesiser
            else {"path": str((pool.folder / str(first.path)).resolve()), "sha256": first.sha256}
        )
        variants = [[unit.voice_id, dict(unit.variant), unit.child_like] for unit in units]
        items.append({
            "id": name, "base_voice": first.base_voice, "language": first.language,
            "synthesiser": pool.synthesiser, "variants": variants, **source,
            "limits": [pool.min_duration_s, pool.child_f0_hz, pool.child_formant_ratio],
            "cost": len(variants),
        })  # fmt: skip
    return items


def build_base(item: Item, settings: Item, run: Run) -> Item:
    """Make, check, write and embed all units of a base voice; a unit may fail alone."""
    spoken = _base_speech(item)
    units: dict[str, Item] = {}
    for voice_id, variant, child_like in item["variants"]:
        try:
            units[voice_id] = _build_unit(
                item, voice_id, variant, child_like, spoken, settings, run
            )
        except ItemError as error:
            units[voice_id] = {"status": "failed", "reason": str(error)}
    files = {unit["file"]: unit["sha256"] for unit in units.values() if "file" in unit}
    return {"units": units, "files": files}


def _base_speech(item: Item) -> Signal:
    """The base voice's speech: synthesised, or read and checked against its hash."""
    if item["synthesiser"]:
        speaker = engines.load("synthesiser", item["synthesiser"])
        with engines.engine_time():
            spoken: Signal = speaker.speak(item["text"], item["base_voice"], item["language"])
        return spoken
    from aegis.audio import read_audio

    path = Path(item["path"])
    if not path.exists():
        raise AudioError(f"{item['id']}: no file {path.name}")
    if hashlib.sha256(path.read_bytes()).hexdigest() != item["sha256"]:
        raise AudioError(f"{item['id']}: sha256 of {path.name} differs from the manifest")
    recording = read_audio(path)
    mono = recording.samples.mean(axis=0)
    return resample(mono.astype(np.float32), recording.sample_rate_hz)


def _build_unit(
    item: Item,
    voice_id: str,
    variant: Mapping[str, float],
    child_like: bool,
    spoken: Signal,
    settings: Item,
    run: Run,
) -> Item:
    with engines.engine_time():
        samples = trim(apply_variant(spoken, variant))
    min_duration_s, child_f0_hz, child_formant_ratio = item["limits"]
    written = write_wav(run.voice_path(voice_id), samples)
    f0 = find_f0_median(samples)
    high = f0 is not None and f0 >= child_f0_hz
    child = child_like or (high and variant.get("formant_ratio", 1.0) >= child_formant_ratio)
    quality = measure_quality(samples)
    reason = judge_unit(quality, f0, child, min_duration_s)
    windows = [
        window_signal(samples, w) for w in place_windows(usable_intervals([(0, samples.size)]))
    ]
    if not windows:
        raise AudioError(f"{voice_id}: less than one second of speech")
    return {
        "file": run.relative(run.voice_path(voice_id)), "sha256": written.sha256,
        "duration_s": quality["duration_s"], "snr_db": quality["snr_db"], "f0_median_hz": f0,
        "child_like": child, "eligible": reason is None,
        "status": "ok" if reason is None else "excluded", "reason": reason,
        "vectors": {name: embed(name, windows, voice_id) for name in settings["backends"]},
    }  # fmt: skip


def voice_tables(
    pool: PoolManifest,
    results: Sequence[ItemResult],
    centres: Mapping[str, NDArray[np.float64]],
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Tables ``voices`` and ``voice_embeddings`` (centred, unit-norm); failed units stay rows.

    A unit whose audio repeats an earlier unit's is not eligible.
    """
    made: dict[str, Item] = {}
    for result in results:
        made |= (result.value or {}).get("units", {})
    failed = {result.id: result.reason for result in results if result.status != "ok"}
    rows: Rows = []
    vectors: Rows = []
    seen: dict[str, str] = {}
    for unit in pool.units:
        name = f"{unit.language}.{unit.base_voice}" if pool.synthesiser else unit.voice_id
        value = made.get(unit.voice_id, {"status": "failed", "reason": failed.get(name)})
        first = seen.setdefault(str(value.get("sha256")), unit.voice_id)
        if value["status"] == "ok" and first != unit.voice_id:
            value = value | {
                "status": "excluded",
                "reason": f"same audio as {first}",
                "eligible": False,
            }
        rows.append(_voice_row(unit, pool, value))
        for backend, encoded in value.get("vectors", {}).items():
            vector = profile_vector(decode(encoded), centres[backend])
            vectors.append(
                {"voice_id": unit.voice_id, "backend": backend, "vector": vector.tolist()}
            )
    return _frame("voices", rows), _frame("voice_embeddings", vectors)


_MEASURED = ("duration_s", "snr_db", "f0_median_hz", "sha256", "status", "reason")


def _voice_row(unit: Unit, pool: PoolManifest, value: Item) -> Item:
    traits = unit.traits if unit.quality == "unknown" else f"{unit.traits};quality={unit.quality}"
    return {
        "voice_id": unit.voice_id, "base_voice": unit.base_voice, "synthesiser": pool.synthesiser,
        "language": unit.language, "accent": unit.accent, "native_english": unit.native_english,
        "gender_presentation": unit.gender_presentation,
        "child_like": bool(value.get("child_like", unit.child_like)), "traits": traits.strip(";"),
        "licence": unit.licence, "provenance": unit.provenance,
        "eligible": bool(value.get("eligible", False)),
        **{key: value.get(key) for key in _MEASURED},
    }  # fmt: skip


def load_voice(row: Mapping[str, Any], run: Run) -> Voice:
    """A pseudo-voice from its row of ``voices``, with its reference signal."""
    traits = read_traits(row["traits"])
    ratios = {str(key): float(traits[key]) for key in RATIOS.split() if key in traits}
    return Voice(
        voice_id=row["voice_id"],
        reference=read_wav(run.voice_path(row["voice_id"])),
        base_voice=row["base_voice"],
        language=row["language"],
        variant=ratios,
    )


# --- conversion -----------------------------------------------------------------------------

_VOICE_KEYS = ("voice_id", "base_voice", "language", "traits", "sha256")


def conversion_items(
    turns: pd.DataFrame,
    recordings: pd.DataFrame,
    assignments: pd.DataFrame,
    voices: pd.DataFrame,
    pseudo_profile: int = 1,
) -> tuple[list[Item], dict[str, str]]:
    """One item a profile that has a pseudo-voice; and, by profile, why another has none.

    The context is the profile's longest turns, at most 30 s together, in time order.
    """
    digest = dict(zip(recordings["recording_id"], recordings["sha256"], strict=True))
    chosen = assignments[assignments["pseudo_profile"] == pseudo_profile].set_index("profile_id")
    units = voices.set_index("voice_id", drop=False)
    items: list[Item] = []
    refused: dict[str, str] = {}
    for profile_id, own in turns.sort_values(["profile_id", "turn_index"]).groupby("profile_id"):
        name = str(profile_id)
        if name not in chosen.index or chosen.loc[name, "status"] != "ok":
            why = chosen.loc[name, "reason"] if name in chosen.index else "not in assignments"
            refused[name] = f"no pseudo-voice: {why}"
            continue
        spans = _spans(own)
        unit = units.loc[chosen.loc[name, "voice_id"]]
        items.append({
            "id": name, "recording_id": own["recording_id"].iloc[0],
            "sha256": digest[own["recording_id"].iloc[0]], "channel": int(own["channel"].iloc[0]),
            "turns": [[t, *span] for t, span in zip(own["turn_id"], spans, strict=True)],
            "context": context_intervals(spans),
            "voice": {key: None if pd.isna(unit[key]) else unit[key] for key in _VOICE_KEYS},
            "pseudo_profile": pseudo_profile, "cost": sum(end - start for start, end in spans),
        })  # fmt: skip
    return items, refused


def context_intervals(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest intervals, at most 30 s together (the last one cut), in time order."""
    left, kept = CONTEXT, []
    for start, end in sorted(spans, key=lambda span: (span[0] - span[1], span)):
        if left > 0 and end > start:
            kept.append((start, min(end, start + left)))
            left -= kept[-1][1] - start
    return sorted(kept)


def convert_profile(item: Item, settings: Item, run: Run) -> Item:
    """Convert all turns of a profile; a turn may fail alone. ``settings``: converter, seed."""
    converter = engines.load("converter", settings["converter"])
    channel = open_channel(run.original_path(item["recording_id"]), item["channel"])
    voice = load_voice(item["voice"], run)
    context = window_signal(channel, tuple(map(tuple, item["context"])))
    condition = (
        "converted" if item["pseudo_profile"] == 1 else f"converted_{item['pseudo_profile']}"
    )
    seed = int(content_id("", settings["seed"], item["id"], item["pseudo_profile"]), 16) % 2**32
    rows: Rows = []
    for turn_id, start, end in item["turns"]:
        try:
            source = channel[start:end]
            if not source.size:
                raise AudioError("the turn lies outside the recording")
            with engines.engine_time():
                samples = converter.convert(source, voice, context, seed)
            check_generated(samples, source.size / SAMPLE_RATE_HZ, settings["converter"])
            check_not_source(samples, source, settings["converter"])
            path = run.turn_path(condition, item["recording_id"], turn_id)
            written = write_wav(path, samples)
        except ItemError as error:
            rows.append({"turn_id": turn_id, "status": "failed", "reason": str(error)})
            continue
        rows.append({
            "turn_id": turn_id, "file": run.relative(path), "sha256": written.sha256,
            "n_samples": written.n_samples, "gain_db": written.gain_db, "status": "ok",
        })  # fmt: skip
    return {"turns": rows, "files": {row["file"]: row["sha256"] for row in rows if "file" in row}}


def converted_table(
    turns: pd.DataFrame,
    results: Sequence[ItemResult],
    refused: Mapping[str, str],
    converter: str,
) -> pd.DataFrame:
    """Table ``converted``: every turn once; one without a pseudo-voice is failed."""
    made = {
        row["turn_id"]: row for result in results for row in (result.value or {}).get("turns", [])
    }
    whole = {result.id: result.reason for result in results if result.status != "ok"} | dict(
        refused
    )
    rows = []
    for turn in turns.to_dict("records"):
        reason = whole.get(turn["profile_id"], "no conversion was planned")
        row = made.get(turn["turn_id"], {"status": "failed", "reason": reason})
        rows.append({
            "turn_id": turn["turn_id"], "recording_id": turn["recording_id"],
            "profile_id": turn["profile_id"], "converter": converter, **row,
        })  # fmt: skip
    return _frame("converted", rows)
