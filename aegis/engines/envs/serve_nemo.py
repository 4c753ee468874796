"""NeMo's Sortformer (diarization) and Canary (recognition)."""

from __future__ import annotations

import inspect
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from serve import Refused


def check(options: dict[str, Any]) -> dict[str, Any]:
    """Both methods take the keywords that are used."""
    from importlib import metadata

    from nemo.collections.asr.models import EncDecMultiTaskModel, SortformerEncLabelModel
    from serve import Unavailable

    wanted = (
        (SortformerEncLabelModel.diarize, {"audio", "batch_size", "verbose"}),
        (EncDecMultiTaskModel.transcribe, {"audio", "batch_size", "timestamps", "verbose"}),
    )
    for method, names in wanted:
        if not names <= set(inspect.signature(method).parameters):
            raise Unavailable(f"{method.__qualname__} lacks one of {sorted(names)}")
    return {"nemo_toolkit": metadata.version("nemo_toolkit")}


def load(options: dict[str, Any]) -> dict[str, Any]:
    """``options``: device, model (``sortformer`` or ``canary``), checkpoint (a .nemo file)."""
    from nemo.collections.asr.models import ASRModel, SortformerEncLabelModel

    kind = SortformerEncLabelModel if options["model"] == "sortformer" else ASRModel
    model = kind.restore_from(options["checkpoint"], map_location=options["device"])
    return {"model": model.eval()}


def handle(
    state: dict[str, Any], call: str, values: dict[str, Any], arrays: dict[str, np.ndarray]
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """``diarize`` or ``transcribe`` the array ``samples`` at 16 kHz.

    One file a call: results are keyed by stems, and times need single files.
    """
    import soundfile

    if arrays["samples"].size < 1600:
        raise Refused("unsupported: less than 0.1 s")
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "recording.wav")
        soundfile.write(path, arrays["samples"], 16000)
        if call == "diarize":
            (lines,) = state["model"].diarize(audio=[path], batch_size=1, verbose=False)
            return {"lines": [str(line) for line in lines]}, {}
        (found,) = state["model"].transcribe(
            audio=[path], batch_size=1, timestamps=True, verbose=False,
            source_lang=values["language"], target_lang=values["language"], pnc="yes",
        )  # fmt: skip
    times = getattr(found, "timestamp", None) or {}
    words = [[w["word"], float(w["start"]), float(w["end"])] for w in times.get("word", [])]
    segments = [
        [s["segment"], float(s["start"]), float(s["end"])] for s in times.get("segment", [])
    ]
    return {"text": found.text, "words": words, "segments": segments}, {}
