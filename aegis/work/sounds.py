"""Embed and transcribe one file of anyone's folder; results are kept by content.

Unit: one file at one sampling rate with one encoder (five-second pieces), or one file with
one ASR system. A result lies under the file's SHA-256 and the engine's name and revision,
so a second run, or a run after a kill, computes only what is missing.

Functions: :func:`embed_file`, :func:`transcribe_file`, :func:`read_mono`.
"""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from aegis import engines
from aegis.audio import Signal, read_audio, resample, write_bytes
from aegis.engines import Vectors
from aegis.errors import ItemError
from aegis.pieces import cut_pieces, narrow
from aegis.stats import Floats
from aegis.voices import centre, cohort_centre


def read_mono(path: Path) -> Signal:
    """A file as mono float32 at 16 kHz."""
    recording = read_audio(path)
    mono = recording.samples.mean(axis=0, dtype=np.float32)
    return resample(mono, recording.sample_rate_hz)


def embed_signal(
    samples: Signal, backend: str, rate_hz: int, skip_s: float
) -> tuple[Floats, Floats]:
    """Centred unit vectors of a signal's pieces, and their seconds."""
    pieces = cut_pieces(narrow(samples, rate_hz), skip_s)
    encoder = engines.load("encoder", backend)
    with engines.engine_time():
        raw: Vectors = encoder.embed(pieces)
    seconds = np.array([piece.size / 16_000 for piece in pieces])
    return centre(raw, cohort_centre(backend)), seconds


def embed_file(
    path: Path, kept: Path, backend: str, rate_hz: int, skip_s: float
) -> dict[str, Any]:
    """``vectors`` and ``seconds`` of a file's pieces, or ``reason`` why there are none."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    place = kept / f"{backend}-{rate_hz}-{skip_s:g}" / f"{digest}.npz"
    if place.exists():
        with np.load(place, allow_pickle=False) as held:
            return {"vectors": held["vectors"], "seconds": held["seconds"], "reused": True}
    try:
        vectors, seconds = embed_signal(read_mono(path), backend, rate_hz, skip_s)
    except ItemError as error:
        return {"reason": str(error)}
    buffer = io.BytesIO()
    np.savez(buffer, vectors=vectors, seconds=seconds)
    place.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(place, buffer.getvalue())
    return {"vectors": vectors, "seconds": seconds, "reused": False}


def transcribe_file(path: Path, kept: Path, asr: str, language: str | None) -> dict[str, Any]:
    """``text`` of a file, or ``reason`` why there is none."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    place = kept / f"{asr}-{language or 'any'}" / f"{digest}.json"
    if place.exists():
        return {**json.loads(place.read_text("utf-8")), "reused": True}
    try:
        transcriber = engines.load("transcriber", asr)
        with engines.engine_time():
            transcript = transcriber.transcribe(read_mono(path), language)
    except ItemError as error:
        return {"reason": str(error)}
    text = " ".join(segment.text.strip() for segment in transcript.segments)
    place.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(place, json.dumps({"text": text}, ensure_ascii=False).encode())
    return {"text": text, "reused": False}
