"""Embed the windows of one recording in one condition with one backend.

An item is (backend, condition, recording): the windows are listed in the item, as
intervals in samples of the file, so the work is only reading, cutting and embedding.
Condition ``converted_turns`` is the shared stage: the converted turns of one recording
joined end to end, before any reconstruction. Condition ``assigned_voice`` is a unit of
the pool; its place is taken by the recording id. Vectors are voiceprints, so they stay
in the item's result below ``secret/``.

Functions: :func:`turn_file_intervals`, :func:`sample_voices`, :func:`list_sounds`,
:func:`build_items`, :func:`embed_windows` (the work on one item), :func:`read_vectors`,
:func:`embed_profiles`.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from aegis import engines
from aegis.audio import AnySignal, Signal, join_signals, open_channel, open_wav
from aegis.errors import AudioError
from aegis.stats import Floats
from aegis.tables import Run
from aegis.windows import (
    ASSIGNED_VOICE,
    CONVERTED_TURNS,
    INTERVAL_COLUMNS,
    SAMPLE_RATE_HZ,
    Sample,
    Window,
    place_windows,
    profile_vector,
    usable_intervals,
    usable_samples,
    window_signal,
)

Key = tuple[str, str]
"""A condition and a region kind."""
WindowKey = tuple[int, Window]
Vectors = dict[tuple[str, str, str], dict[WindowKey, Floats]]
"""Window embeddings by (backend, condition, recording)."""


def turn_file_intervals(converted: pd.DataFrame, turns: pd.DataFrame) -> pd.DataFrame:
    """Where each converted turn lies when a recording's turn files are joined in turn order."""
    ordered = _joined(converted, turns)
    end = ordered.groupby("recording_id")["n_samples"].cumsum().astype(int)
    placed = ordered.assign(start=end - ordered["n_samples"].astype(int), end=end)
    return placed.assign(condition=CONVERTED_TURNS, channel=0, edited=False)[INTERVAL_COLUMNS]


def _joined(converted: pd.DataFrame, turns: pd.DataFrame) -> pd.DataFrame:
    done = converted[converted["status"] == "ok"]
    merged = done.merge(turns[["turn_id", "turn_index"]], on="turn_id")
    return merged.sort_values(["recording_id", "turn_index"])


def sample_voices(
    assignments: pd.DataFrame, voices: pd.DataFrame
) -> tuple[dict[str, Sample], dict[str, str]]:
    """Windows over the reference of each profile's (first) voice, and the voice by profile."""
    assigned = assignments[(assignments["status"] == "ok") & (assignments["pseudo_profile"] == 1)]
    known = voices[["voice_id", "duration_s"]].dropna()
    merged = assigned.merge(known, on="voice_id")
    samples, voice_of = {}, {}
    for row in merged.itertuples():
        usable = usable_intervals([(0, int(row.duration_s * SAMPLE_RATE_HZ))])
        windows = tuple(place_windows(usable))
        samples[row.profile_id] = Sample(0, windows, usable_samples(usable))
        voice_of[row.profile_id] = row.voice_id
    return samples, voice_of


def list_sounds(
    recordings: pd.DataFrame,
    reconstructions: pd.DataFrame,
    converted: pd.DataFrame,
    turns: pd.DataFrame,
    voices: pd.DataFrame,
) -> dict[tuple[str, str], dict[str, Any]]:
    """What to read for a (condition, recording): file hash, and the files of a joined sound."""
    ok = recordings[recordings["status"] == "ok"]
    sounds: dict[tuple[str, str], dict[str, Any]] = {
        ("original", row.recording_id): {"sha256": row.sha256} for row in ok.itertuples()
    }
    for row in reconstructions[reconstructions["status"] == "ok"].itertuples():
        sounds[row.condition, row.recording_id] = {"sha256": row.sha256}
    for row in voices[voices["status"] == "ok"].itertuples():
        sounds[ASSIGNED_VOICE, row.voice_id] = {"sha256": row.sha256}
    for recording, own in _joined(converted, turns).groupby("recording_id"):
        sounds[CONVERTED_TURNS, str(recording)] = {
            "turn_files": own["file"].tolist(), "sha256": own["sha256"].tolist(),
        }  # fmt: skip
    return sounds


def build_items(
    samples: Mapping[Key, Mapping[str, Sample]],
    recording_of: Mapping[str, str],
    sounds: Mapping[tuple[str, str], dict[str, Any]],
    backends: Sequence[str],
) -> list[dict[str, Any]]:
    """One item a backend, condition and recording, with each window once.

    Windows whose sound is absent give no item: their profiles have no vector.
    """
    wanted: dict[tuple[str, str], set[WindowKey]] = {}
    for (condition, _), by_profile in samples.items():
        for profile, sample in by_profile.items():
            place = (condition, recording_of[profile])
            if place in sounds and sample.windows:
                keys = {(sample.channel, window) for window in sample.windows}
                wanted.setdefault(place, set()).update(keys)
    return [
        {
            "id": f"{backend}/{condition}/{recording}", "backend": backend,
            "condition": condition, "recording_id": recording,
            "windows": sorted(wanted[condition, recording]),
            "cost": len(wanted[condition, recording]), **sounds[condition, recording],
        }
        for backend in backends
        for condition, recording in sorted(wanted)
    ]  # fmt: skip


def embed_windows(item: dict[str, Any], settings: dict[str, Any], run: Run) -> dict[str, Any]:
    """Embed an item's windows; ``vectors`` is base64 of float32, shape (windows, dimension).

    Raises
    ------
    AudioError
        A window lies outside the file, or a vector is zero or not finite.
    """
    rows = {c: _open_sound(item, c, run) for c in {channel for channel, _ in item["windows"]}}
    signals = [_cut(rows[channel], pieces, item["id"]) for channel, pieces in item["windows"]]
    encoder = engines.load("encoder", item["backend"])
    with engines.engine_time():
        vectors = np.asarray(encoder.embed(signals), dtype=np.float32)
    lengths = np.linalg.norm(vectors, axis=1)
    if not (np.isfinite(lengths) & (lengths > 0)).all():
        raise AudioError(f"{item['id']}: an embedding is zero or not finite")
    encoded = base64.b64encode(vectors.astype("<f4").tobytes()).decode("ascii")
    return {"vectors": encoded, "dimension": int(vectors.shape[1])}


def _open_sound(item: dict[str, Any], channel: int, run: Run) -> AnySignal:
    """The channel that a window lies in; the first where there is no such channel."""
    if item["condition"] == CONVERTED_TURNS:
        return join_signals([open_channel(run.root / file, 0) for file in item["turn_files"]])
    path = run.conversation_path(item["condition"], item["recording_id"])
    if item["condition"] == ASSIGNED_VOICE:
        path = run.voice_path(item["recording_id"])
    sound = open_wav(path)
    known = sound.ndim == 2 and channel < len(sound)
    return open_channel(path, channel if known else 0)


def _cut(row: AnySignal, pieces: Sequence[Sequence[int]], name: str) -> Signal:
    signal = window_signal(row, tuple((start, end) for start, end in pieces))
    missing = sum(end - start for start, end in pieces) - signal.size
    # A turn may end a few ms after the last sample; more than that is a wrong file.
    if missing > 1_600 or not signal.size:
        raise AudioError(f"{name}: a window lies {missing} samples outside the file")
    return signal


def read_vectors(items: Sequence[Mapping[str, Any]], values: Iterable[Any]) -> Vectors:
    """Decode the results of :func:`embed_windows`, in the items' order; None = failed."""
    decoded: Vectors = {}
    for item, value in zip(items, values, strict=True):
        if value is None:
            continue
        flat = np.frombuffer(base64.b64decode(value["vectors"]), dtype="<f4")
        rows = flat.reshape(-1, value["dimension"]).astype(np.float64)
        keys = [(channel, tuple(map(tuple, window))) for channel, window in item["windows"]]
        place = (item["backend"], item["condition"], item["recording_id"])
        decoded[place] = dict(zip(keys, rows, strict=True))
    return decoded


def embed_profiles(
    vectors: Vectors,
    samples: Mapping[str, Sample],
    recording_of: Mapping[str, str],
    backend: str,
    condition: str,
    centre: Floats | None = None,
) -> dict[str, Floats]:
    """One unit vector by profile; profiles without windows or with a failed item are left out.

    ``recording_of`` gives the sound's name: the voice for :data:`ASSIGNED_VOICE`.
    """
    out = {}
    for profile, sample in samples.items():
        known = vectors.get((backend, condition, recording_of[profile]))
        if known is not None and sample.windows:
            rows = [known[sample.channel, window] for window in sample.windows]
            out[profile] = profile_vector(np.stack(rows), centre)
    return out
