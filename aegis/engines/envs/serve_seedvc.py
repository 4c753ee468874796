"""Seed-VC, version 1 and 2, through its own command-line functions, models kept resident.

The code is GPL-3.0 and stays a separate program: its ``main`` is called unchanged, with its
loading function answering from memory. It has no seed, so every generator is seeded here.
"""

from __future__ import annotations

import argparse
import importlib
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from serve import Refused, Unavailable
from signatures import check_arguments, check_fields

REFERENCE_S = 25.0
FIXED = {
    1: {
        "length_adjust": 1.0, "f0_condition": False, "auto_f0_adjust": False,
        "semi_tone_shift": 0, "diffusion_steps": 30, "inference_cfg_rate": 0.7,
    },
    2: {
        "length_adjust": 1.0, "diffusion_steps": 30, "intelligibility_cfg_rate": 0.7,
        "similarity_cfg_rate": 0.7, "top_p": 0.9, "temperature": 1.0, "repetition_penalty": 1.0,
        "convert_style": False, "anonymization_only": False, "compile": False,
    },
}  # fmt: skip
FILES = {1: ("checkpoint", "config", "fp16"), 2: ("ar_checkpoint_path", "cfm_checkpoint_path")}
SCRIPTS = {1: "inference", 2: "inference_v2"}
USED = {1: ["load_models", "main"], 2: ["load_v2_models", "convert_voice_v2", "main"]}


def check(options: dict[str, Any]) -> dict[str, Any]:
    """Compare the signatures of both versions; needs the clone, not the weights."""
    for version, script in SCRIPTS.items():
        path = Path.cwd() / f"{script}.py"
        given = {*FIXED[version], *FILES[version], "source", "target", "output"}
        check_arguments(path, USED[version][0], ["args"])
        check_fields(path, USED[version], given)
    check_arguments(Path.cwd() / "inference.py", "main", ["args"])
    return {"signatures": "inference.main, inference_v2.main as expected"}


def load(options: dict[str, Any]) -> dict[str, Any]:
    """Load one version. ``options``: version, device and the paths of its files."""
    check(options)
    sys.path.insert(0, str(Path.cwd()))
    import torch

    version = int(options["version"])
    if options["device"] == "cuda" and not torch.cuda.is_available():
        raise Unavailable("no CUDA device; its content encoder runs in half precision only there")
    module = importlib.import_module(SCRIPTS[version])
    fields = {**FIXED[version], **{name: options.get(name) for name in FILES[version]}}
    arguments = argparse.Namespace(**fields, source="", target="", output="")
    if version == 1:
        loaded = module.load_models(arguments)
        module.load_models = lambda _args: loaded
    else:
        module.vc_wrapper_v2 = module.load_v2_models(arguments)
    return {"module": module, "arguments": fields, "torch": torch}


def handle(
    state: dict[str, Any], call: str, values: dict[str, Any], arrays: dict[str, np.ndarray]
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """``convert``: arrays ``source`` and ``reference`` at 16 kHz; values ``seed``."""
    import soundfile

    reference = arrays["reference"][: round(REFERENCE_S * 16000)]
    if arrays["source"].size == 0 or reference.size == 0:
        raise Refused("unsupported: an empty source or reference")
    seed = int(values["seed"]) % 2**32
    random.seed(seed)
    np.random.seed(seed)
    state["torch"].manual_seed(seed)
    if state["torch"].cuda.is_available():
        state["torch"].cuda.manual_seed_all(seed)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        # No dots in the stems: the program cuts its output's name at the first one.
        soundfile.write(place / "source.wav", arrays["source"], 16000)
        soundfile.write(place / "reference.wav", reference, 16000)
        arguments = argparse.Namespace(
            **state["arguments"], source=str(place / "source.wav"),
            target=str(place / "reference.wav"), output=str(place / "out"),
        )  # fmt: skip
        state["module"].main(arguments)
        (written,) = (place / "out").glob("*.wav")
        samples, rate = soundfile.read(written, dtype="float32")
    return {"rate_hz": int(rate)}, {"samples": np.asarray(samples, np.float32).reshape(-1)}
