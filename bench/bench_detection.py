"""How long the embedded detector takes for a thousand words of a run's own transcripts."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pandas as pd

from aegis import engines
from aegis.engines import TurnText
from aegis.tables import open_run

N_REPEATS = 2


def conversations(turns: pd.DataFrame) -> Iterator[tuple[str, list[TurnText]]]:
    """Language and turns of each conversation."""
    for _, own in turns.sort_values("turn_index").groupby("recording_id", sort=True):
        texts = [TurnText(row.turn_id, row.speaker, row.text) for row in own.itertuples()]
        yield str(own["language"].iloc[0]), texts


def measure(run_name: str) -> dict[str, float]:
    """Seconds a thousand words, after one warm-up conversation a language."""
    turns = open_run(run_name).read("turns")
    cases = list(conversations(turns[turns["status"] == "ok"]))
    detector = engines.load("detector", "rules")
    for language, texts in dict(cases).items():
        detector.detect(texts, language)
    n_words = sum(len(turn.text.split()) for _, texts in cases for turn in texts)
    began = time.perf_counter()
    for _ in range(N_REPEATS):
        for language, texts in cases:
            detector.detect(texts, language)
    took_s = time.perf_counter() - began
    return {"detector_s_per_1000_words": 1000 * took_s / (N_REPEATS * n_words)}
