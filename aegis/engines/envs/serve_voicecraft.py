"""VoiceCraft's editing function; masks come with the request, no forced aligner is needed."""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from checkpoint import load_checkpoint
from serve import Refused, Unavailable
from signatures import check_arguments

SCRIPT = "inference_speech_editing_scale"
ARGUMENTS = [
    "model", "model_args", "phn2num", "text_tokenizer", "audio_tokenizer", "audio_fn",
    "target_text", "mask_interval", "device", "decode_config",
]  # fmt: skip
DECODING = {
    "top_k": 40, "top_p": 1.0, "temperature": 1.0, "stop_repetition": -1, "kvcache": 1,
    "codec_audio_sr": 16000, "codec_sr": 50, "silence_tokens": [1388, 1898, 131],
}  # fmt: skip
"""The author's editing advice of March 2025."""


def check(options: dict[str, Any]) -> dict[str, Any]:
    """The editing function takes the arguments that are given to it, in their order."""
    check_arguments(Path.cwd() / f"{SCRIPT}.py", "inference_one_sample", ARGUMENTS)
    return {"signatures": "inference_one_sample as expected"}


def load(options: dict[str, Any]) -> dict[str, Any]:
    """``options``: device, checkpoint, codec."""
    check(options)
    sys.path.insert(0, str(Path.cwd()))
    import importlib

    import torch

    device = options["device"]
    if device == "cuda" and not torch.cuda.is_available():
        raise Unavailable("no CUDA device")
    module = importlib.import_module(SCRIPT)
    kept = load_checkpoint(options["checkpoint"])
    model = module.voicecraft.VoiceCraft(kept["config"])
    model.load_state_dict(kept["model"])
    model.to(device).eval()
    return {
        "edit": module.inference_one_sample, "model": model, "config": kept["config"],
        "phonemes": kept["phn2num"], "device": device, "torch": torch,
        "text": module.TextTokenizer(backend="espeak"),
        "audio": module.AudioTokenizer(device=device, signature=options["codec"]),
    }  # fmt: skip


def handle(
    state: dict[str, Any], call: str, values: dict[str, Any], arrays: dict[str, np.ndarray]
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """``render``: arrays ``source`` (16 kHz) and ``masks`` (n, 2) in codec frames."""
    import soundfile

    masks = arrays["masks"]
    if masks.ndim != 2 or masks.shape[1] != 2 or not len(masks):
        raise Refused("unsupported: no mask")
    torch, seed = state["torch"], int(values["seed"]) % 2**32
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(seed)
    with tempfile.NamedTemporaryFile(suffix=".wav") as file:
        soundfile.write(file.name, arrays["source"], 16000)
        _, edited = state["edit"](
            state["model"], state["config"], state["phonemes"], state["text"], state["audio"],
            file.name, values["text"], torch.from_numpy(masks.astype(np.int64)), state["device"],
            DECODING,
        )  # fmt: skip
    samples = edited[0].detach().cpu().numpy().reshape(-1)
    return {"rate_hz": 16000}, {"samples": samples.astype(np.float32)}
