"""F5-TTS: one chunk a call, so that a seed fixes the result.

The public entry point prints both texts, cuts long references without their text and may fetch
a recogniser; its inner function, called with one chunk, does none of that.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from serve import Refused, Unavailable

ARCHITECTURE = {
    "dim": 1024, "depth": 22, "heads": 16, "ff_mult": 2, "text_dim": 512, "conv_layers": 4,
}  # fmt: skip
"""F5TTS_v1_Base; ``options["architecture"]`` replaces it (other checkpoints, tests)."""
NAMED = ("progress", "nfe_step", "cfg_strength", "sway_sampling_coef", "fix_duration", "device")


def check(options: dict[str, Any]) -> dict[str, Any]:
    """The inner function has the arguments that are used, in their places."""
    from importlib import metadata

    from f5_tts.infer.utils_infer import infer_batch_process

    found = list(inspect.signature(infer_batch_process).parameters)
    wanted = ["ref_audio", "ref_text", "gen_text_batches", "model_obj", "vocoder"]
    if found[:5] != wanted or not set(NAMED) <= set(found):
        raise Unavailable(f"infer_batch_process has other arguments: {found}")
    return {"f5-tts": metadata.version("f5-tts")}


def load(options: dict[str, Any]) -> dict[str, Any]:
    """``options``: device, checkpoint, vocabulary, vocoder (a folder), architecture."""
    check(options)
    from f5_tts.infer import utils_infer
    from f5_tts.model import DiT

    device = options["device"]
    model = utils_infer.load_model(
        DiT, options.get("architecture") or ARCHITECTURE, options["checkpoint"],
        vocab_file=options["vocabulary"], device=device,
    )  # fmt: skip
    vocoder = utils_infer.load_vocoder(is_local=True, local_path=options["vocoder"], device=device)
    return {
        "infer": utils_infer.infer_batch_process, "model": model, "vocoder": vocoder,
        "device": device, "steps": int(options.get("steps", 32)),
    }  # fmt: skip


def handle(
    state: dict[str, Any], call: str, values: dict[str, Any], arrays: dict[str, np.ndarray]
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """``render``: array ``reference`` at 16 kHz; values reference_text, text, total_s, seed."""
    import torch

    if not values["reference_text"].strip():
        raise Refused("unsupported: a reference without text")
    torch.manual_seed(int(values["seed"]))
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(int(values["seed"]))
    reference = torch.from_numpy(arrays["reference"].copy())[None]
    generated = state["infer"](
        (reference, 16000), values["reference_text"], [values["text"]], state["model"],
        state["vocoder"], progress=None, nfe_step=state["steps"], cfg_strength=2.0,
        sway_sampling_coef=-1, fix_duration=float(values["total_s"]), device=state["device"],
    )  # fmt: skip
    samples, rate, _ = next(generated)
    if samples is None:
        raise Refused("failed: nothing was generated")
    return {"rate_hz": int(rate)}, {"samples": np.asarray(samples, np.float32).reshape(-1)}
