"""The ASR stage's recognition against bare ``WhisperModel.transcribe`` on a run's own files.

Both sides take the same resident model, the same decoding options, one thread, and hear
each file in turn, so that a busy machine slows both alike. The stage's side is what its
worker does per recording up to validated words: reading, voice activity, recognition.
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd

from aegis import engines
from aegis.audio import SAMPLE_RATE_HZ, Signal, read_wav
from aegis.tables import Run, open_run
from aegis.words import read_words

MOST_SECONDS = 600.0


def recordings_to_hear(run: Run) -> pd.DataFrame:
    """Usable one-channel recordings, ten minutes at most."""
    table = run.read("recordings")
    mono = table[(table["status"] == "ok") & (table["layout"] != "speaker_per_channel")]
    return mono[mono["duration_s"].astype(float).cumsum() <= MOST_SECONDS]


def hear_bare(model: object, samples: Signal, language: str | None) -> int:
    """faster-whisper alone, with its own voice-activity filter; returns the number of words."""
    segments, _ = model.transcribe(  # type: ignore[attr-defined]
        samples, language=language, beam_size=1, temperature=0.0, word_timestamps=True,
        condition_on_previous_text=False, vad_filter=True,
    )  # fmt: skip
    return sum(len(segment.words or ()) for segment in segments)


def measure(run_name: str, asr: str = "whisper-base") -> dict[str, float]:
    """Stage time over bare time, and both as shares of real time."""
    run = open_run(run_name)
    chosen = recordings_to_hear(run)
    transcriber = engines.load("transcriber", asr)
    model = transcriber._model  # the bare model inside the adapter: the very same weights
    hear_bare(model, np.zeros(SAMPLE_RATE_HZ, dtype=np.float32), "en")
    stage_s = bare_s = audio_s = 0.0
    for row in chosen.itertuples():
        path = run.original_path(row.recording_id)
        language = None if pd.isna(row.language) else row.language
        began = time.perf_counter()
        samples = read_wav(path)
        read_words(transcriber.transcribe(samples, language), samples.size / SAMPLE_RATE_HZ)
        middle = time.perf_counter()
        hear_bare(model, samples, language)
        stage_s, bare_s = stage_s + middle - began, bare_s + time.perf_counter() - middle
        audio_s += samples.size / SAMPLE_RATE_HZ
    return {
        "asr_over_bare": stage_s / bare_s,
        "asr_realtime_factor": stage_s / audio_s,
        "asr_bare_realtime_factor": bare_s / audio_s,
    }
