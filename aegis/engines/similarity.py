"""Learned similarity of sounds: CLAP and HeAR.

Unit: a signal of any length at 16 kHz. The loaders of these models crop long sounds at random
and repeat short ones; here every signal is cut into windows of the model's own length, one
after the other without overlap, the last one padded with silence, and the unit vectors of the
windows are averaged: the same sound gives the same vector. Neither model measures accent,
naturalness or clinical correctness.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aegis.audio import SAMPLE_RATE_HZ, Signal, resample
from aegis.engines import EngineInfo, Needs, Vectors, register
from aegis.engines.devices import choose_device
from aegis.engines.embedding import pool
from aegis.engines.worker import Worker
from aegis.errors import AudioError
from aegis.weights import model_dir, read_card


def fixed_windows(samples: Signal, length: int, shortest: float = 0.25) -> NDArray[np.float32]:
    """Windows without overlap, shape (n, length); a last piece under ``shortest`` is left out.

    Raises
    ------
    AudioError
        An empty signal.
    """
    if samples.size == 0:
        raise AudioError("an empty signal has no acoustic embedding")
    n = max(1, int(np.ceil(samples.size / length - shortest)))
    padded = np.pad(samples[: n * length], (0, max(0, n * length - samples.size)))
    return padded.reshape(n, length).astype(np.float32)


class Clap:
    """LAION's CLAP: 10-s windows at 48 kHz, 512-d."""

    rate_hz, window_s = 48_000, 10.0

    def __init__(self, folder: Path, device: str) -> None:
        import torch
        from transformers import ClapFeatureExtractor, ClapModel

        torch.set_num_threads(1)
        self._torch, self._device = torch, device
        card = read_card("clap")
        self.info = EngineInfo("acoustic", "clap", card.revision, card.licence, device, False)
        self._features = ClapFeatureExtractor.from_pretrained(folder, local_files_only=True)  # nosec B615 # a local folder
        model: Any = ClapModel.from_pretrained(folder, local_files_only=True)  # nosec B615 # a local folder
        self._model = model.eval().to(device)
        self.dimension = int(model.config.projection_dim)

    def embed(self, samples: Signal) -> Vectors:
        """One unit-norm vector."""
        higher = resample(samples, SAMPLE_RATE_HZ, self.rate_hz)
        windows = fixed_windows(higher, round(self.window_s * self.rate_hz))
        features = self._features(
            list(windows), sampling_rate=self.rate_hz, return_tensors="pt"
        ).to(self._device)
        with self._torch.inference_mode():
            found = self._model.get_audio_features(input_features=features["input_features"])
        # A tensor up to version 4 of transformers, an object with the tensor since.
        vectors = getattr(found, "pooler_output", found)
        return pool(vectors.float().cpu().numpy())


class Hear:
    """Google's HeAR: 2-s windows at 16 kHz, 512-d, in a worker with Google's front end."""

    window = 2 * SAMPLE_RATE_HZ
    dimension = 512

    def __init__(self, worker: Worker | None = None) -> None:
        card = read_card("hear")
        device = "cpu" if worker is not None else choose_device("hear", needs_card=False)
        self.info = EngineInfo("acoustic", "hear", card.revision, card.licence, device, False)
        options = {"device": device} if worker is not None else {
            "device": device, "folder": str(model_dir("hear")),
        }  # fmt: skip
        self._worker = worker or Worker("hear", options)

    def embed(self, samples: Signal) -> Vectors:
        """One unit-norm vector."""
        windows = fixed_windows(samples, self.window)
        _, out = self._worker.call("embed", {}, {"windows": windows})
        vectors = out["vectors"].astype(np.float32)
        if vectors.shape != (len(windows), self.dimension) or not np.isfinite(vectors).all():
            raise AudioError(f"hear: vectors of shape {vectors.shape}")
        return pool(vectors)


@register("acoustic", "clap", Needs(weights=("clap",)))
def _clap() -> Clap:
    return Clap(model_dir("clap"), choose_device("clap", needs_card=False))


@register("acoustic", "hear", Needs(("hear",), "hear"))
def _hear() -> Hear:
    return Hear()
