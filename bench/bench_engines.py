"""Resident workers, batches and the embedding of a pool, as JSON.

Run as ``python bench/bench_engines.py``. The worker's overhead is the wall time of a request
that does nothing with ten seconds of sound. Batches and the pool use ECAPA of the published
size with random weights: speed does not depend on what the weights are. The pool is timed on
``N_UNITS`` of the paper's 4,062 units, as the study's code against the bare network on the same
batches, and its index on all 4,062.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

N_UNITS, POOL, DIMENSION = 24, 4062, 192


def worker_overhead_ms() -> float:
    from aegis.engines.worker import Worker

    os.environ.setdefault("AEGIS_PYTHON_TOY", sys.executable)
    samples = np.zeros(160_000, np.float32)
    times = []
    with Worker("toy", {}) as worker:
        worker.call("echo", {}, {"a": samples})
        for _ in range(50):
            began = time.perf_counter()
            worker.call("echo", {}, {"a": samples})
            times.append(time.perf_counter() - began)
    return 1000 * float(np.median(times))


def random_encoder(device: str = "cpu") -> Any:
    """ECAPA of the published size with random weights."""
    import torch
    from speechbrain.lobes.models.ECAPA_TDNN import ECAPA_TDNN

    from aegis.engines.paper_voice import ECAPA, SpeechBrainEncoder

    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "embedding_model.ckpt"
        torch.save(ECAPA_TDNN(80, **ECAPA).state_dict(), path)
        return SpeechBrainEncoder("ecapa", path, device)


def pool_over_bare(encoder: Any) -> dict[str, float]:
    """Wall time of the adapter over the bare network's, in turns, so that load hits both."""
    import torch

    rng = np.random.default_rng(0)
    windows = [rng.normal(0, 0.1, 48_000).astype(np.float32) for _ in range(N_UNITS)]
    batch = torch.from_numpy(np.stack(windows))
    whole = torch.ones(N_UNITS)

    def bare() -> None:
        with torch.inference_mode():
            features = encoder._normalise(encoder._features(batch), whole)
            encoder._model(features, whole)

    ratios, seconds = [], []
    encoder.embed(windows[:2])
    for _ in range(3):
        times = []
        for call in (bare, lambda: encoder.embed(windows)):
            began = time.process_time()
            call()
            times.append(time.process_time() - began)
        ratios.append(times[1] / times[0])
        seconds.append(times[1])
    together = encoder.embed(windows[:4])
    alone = np.concatenate([encoder.embed([window]) for window in windows[:4]])
    return {
        "embedding_over_bare": float(np.median(ratios)),
        "embedding_cpu_s_per_unit": float(np.median(seconds)) / N_UNITS,
        "batch_to_single_cosine": float(np.sum(together * alone, axis=1).min()),
    }


def index_s() -> float:
    """Building the index of the paper's pool and asking it for 809 profiles."""
    import faiss

    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(POOL, DIMENSION)).astype(np.float32)
    faiss.normalize_L2(vectors)
    began = time.perf_counter()
    index = faiss.IndexFlatIP(DIMENSION)
    index.add(vectors)
    index.search(vectors[:809], 75)
    return time.perf_counter() - began


def measure(run_name: str = "") -> dict[str, float]:
    """All of it, as a flat dict of numbers."""
    values = {"worker_overhead_ms": worker_overhead_ms(), "pool_index_s": index_s()}
    return values | pool_over_bare(random_encoder())


def main() -> None:
    print(json.dumps({name: round(value, 6) for name, value in measure().items()}))


if __name__ == "__main__":
    main()
