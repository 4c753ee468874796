"""Factors of a graphics card over one CPU core, as JSON; nothing depends on them.

Run as ``python bench/bench_gpu.py`` where there is a card: Whisper base (real weights) on a
minute of noise-like speech, and ECAPA of the published size with random weights on 64 windows.
Without a card it says so and measures nothing.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import numpy as np
from bench_engines import random_encoder


def seconds(call: Callable[[], object]) -> float:
    """Wall time of the second of two calls (the first one warms up)."""
    call()
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def whisper_s(device: str) -> float:
    from aegis.engines.paper_speech import PaperWhisper
    from aegis.weights import model_dir

    rng = np.random.default_rng(0)
    envelope = np.repeat(rng.random(60 * 8), 2000)
    samples = (envelope * rng.normal(0, 0.1, 60 * 16_000)).astype(np.float32)
    engine = PaperWhisper("whisper-base", model_dir("whisper-base"), device)
    # The segments are lazy: the work happens while they are listed.
    return seconds(lambda: list(engine._model.transcribe(samples, beam_size=1, language="en")[0]))


def embedding_s(device: str) -> float:
    encoder = random_encoder(device)
    rng = np.random.default_rng(0)
    windows = [rng.normal(0, 0.1, 48_000).astype(np.float32) for _ in range(64)]
    return seconds(lambda: encoder.embed(windows))


def main() -> None:
    import torch

    if not torch.cuda.is_available():
        print(json.dumps({"gpu": "no graphics card: nothing measured"}))
        return
    found: dict[str, object] = {"card": torch.cuda.get_device_name(0)}
    for name, measure in (("whisper", whisper_s), ("embedding", embedding_s)):
        cpu, card = measure("cpu"), measure("cuda")
        found[name] = {"cpu_s": cpu, "card_s": card, "factor": cpu / card}
    print(json.dumps({"gpu": found}))


if __name__ == "__main__":
    main()
