"""HeAR: 2-s windows at 16 kHz; the front end is Google's own file, read from a clone."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
from serve import Refused, Unavailable
from signatures import function_of

WINDOW = 32_000
FRONT_END = Path("python") / "data_processing" / "audio_utils.py"


def _front_end() -> Path:
    return Path.cwd() / FRONT_END


def check(options: dict[str, Any]) -> dict[str, Any]:
    """``preprocess_audio`` exists and takes one positional argument."""
    arguments = function_of(_front_end(), "preprocess_audio").args
    needed = len(arguments.args) - len(arguments.defaults)
    if needed != 1:
        raise Unavailable(f"preprocess_audio needs {needed} arguments, expected 1")
    return {"signatures": "preprocess_audio as expected"}


def load(options: dict[str, Any]) -> dict[str, Any]:
    """``options``: device, folder (of the weights)."""
    check(options)
    import torch
    from transformers import AutoModel

    spec = importlib.util.spec_from_file_location("hear_audio_utils", _front_end())
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    model = AutoModel.from_pretrained(options["folder"], local_files_only=True)  # nosec B615 # a local folder
    model = model.eval().to(options["device"])
    return {"torch": torch, "front": module.preprocess_audio, "model": model}


def handle(
    state: dict[str, Any], call: str, values: dict[str, Any], arrays: dict[str, np.ndarray]
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """``embed`` the array ``windows`` (n, 32000); returns ``vectors`` (n, 512)."""
    windows = arrays["windows"]
    if windows.ndim != 2 or windows.shape[1] != WINDOW:
        raise Refused(f"unsupported: windows of shape {windows.shape}, expected (n, {WINDOW})")
    torch = state["torch"]
    with torch.inference_mode():
        spectra = state["front"](torch.from_numpy(windows.copy()))
        device = next(state["model"].parameters()).device
        pooled = state["model"](spectra.to(device)).pooler_output
    return {}, {"vectors": pooled.float().cpu().numpy()}
