"""The paper's speaker encoders and its converter behind the study's Protocols.

Encoders (unit: a window, mono at 16 kHz): SpeechBrain's ECAPA-TDNN and x-vector, built here from
the library's own layers with the published sizes, so that only the embedding network's weights
are read and nothing of a hub is executed; and WavLM with its x-vector head. Windows of one
length are computed together and others apart: padding would change the vectors. Vectors are
made unit-norm. Converter (unit: a turn): Seed-VC 1 and 2, in a worker.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aegis.audio import SAMPLE_RATE_HZ, Signal, resample
from aegis.engines import EngineInfo, Needs, Vectors, Voice, register
from aegis.engines.devices import choose_device
from aegis.engines.embedding import batch_by_length, check_window
from aegis.engines.redirects import drop_redirects
from aegis.engines.worker import Worker
from aegis.errors import AudioError, EngineUnavailable
from aegis.weights import model_dir, read_card

BATCH = 32
LENGTH_TOLERANCE = 0.05
"""A converted turn may differ from its source by this share before it is cut or padded."""


def embed_batched(
    windows: Sequence[Signal], dimension: int, forward: Any, largest: int = BATCH
) -> Vectors:
    """Unit-norm rows in the windows' order; ``forward`` maps (n, samples) to (n, dimension)."""
    checked = [check_window(window) for window in windows]
    out = np.zeros((len(checked), dimension), dtype=np.float32)
    for rows in batch_by_length([window.size for window in checked], largest):
        out[rows] = forward(np.stack([checked[row] for row in rows]))
    norms = np.linalg.norm(out, axis=1, keepdims=True)
    if not np.isfinite(out).all() or not (norms > 0).all():
        raise AudioError("encoder: an embedding is zero or not finite")
    return np.asarray(out / norms, dtype=np.float32)


ECAPA: dict[str, Any] = {
    "channels": [1024, 1024, 1024, 1024, 3072], "kernel_sizes": [5, 3, 3, 3, 1],
    "dilations": [1, 2, 3, 4, 1], "attention_channels": 128, "lin_neurons": 192,
}  # fmt: skip
XVECTOR: dict[str, Any] = {
    "tdnn_blocks": 5, "tdnn_channels": [512, 512, 512, 512, 1500],
    "tdnn_kernel_sizes": [5, 3, 3, 1, 1], "tdnn_dilations": [1, 2, 3, 1, 1], "lin_neurons": 512,
}  # fmt: skip


class SpeechBrainEncoder:
    """A SpeechBrain embedding network over its filter banks, normalised by utterance."""

    def __init__(
        self, name: str, checkpoint: Path, device: str, sizes: dict[str, Any] | None = None
    ) -> None:
        import torch
        from speechbrain.lobes.features import Fbank
        from speechbrain.lobes.models.ECAPA_TDNN import ECAPA_TDNN
        from speechbrain.lobes.models.Xvector import Xvector
        from speechbrain.processing.features import InputNormalization

        drop_redirects()
        torch.set_num_threads(1)
        self._torch, self._device = torch, device
        card = read_card(name)
        self.info = EngineInfo("encoder", name, card.revision, card.licence, device, False)
        n_mels = 80 if name == "ecapa" else 24
        if name == "ecapa":
            sizes = sizes or ECAPA
            self._model: Any = ECAPA_TDNN(n_mels, device=device, **sizes)
        else:
            sizes = sizes or XVECTOR
            self._model = Xvector(
                device=device, activation=torch.nn.LeakyReLU, in_channels=n_mels, **sizes
            )
        self.dimension = int(sizes["lin_neurons"])
        state = torch.load(checkpoint, map_location=device, weights_only=True)
        self._model.load_state_dict(state)
        self._model.eval().to(device)
        _quiet_pooling(self._model)
        self._features = Fbank(sample_rate=SAMPLE_RATE_HZ, n_mels=n_mels).eval().to(device)
        self._normalise = InputNormalization(norm_type="sentence", std_norm=False).eval()

    def embed(self, windows: Sequence[Signal]) -> Vectors:
        """Unit-norm embeddings, shape (len(windows), dimension)."""
        return embed_batched(windows, self.dimension, self._forward)

    @property
    def network(self) -> Any:
        """The embedding network, for training it further."""
        return self._model

    @property
    def device(self) -> str:
        return self._device

    def vectors_of(self, samples: Any) -> Any:
        """Raw embeddings of a batch on the device, shapes (n, samples) and (n, dimension)."""
        whole = self._torch.ones(len(samples), device=self._device)
        features = self._normalise(self._features(samples), whole)
        return self._model(features, whole)[:, 0]

    def _forward(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        torch = self._torch
        with torch.inference_mode():
            samples = torch.from_numpy(batch).to(self._device)
            vectors: NDArray[np.float32] = self.vectors_of(samples).float().cpu().numpy()
        return vectors


def _quiet_pooling(model: Any) -> None:
    """Take the draw out of the library's pooling of x-vectors.

    It adds Gaussian noise between 1 and 9 times ``eps`` (1e-5) to each mean, also when it only
    infers, so that no vector comes back twice; the middle of that range stands in its place.
    """
    import torch
    from speechbrain.nnet.pooling import StatisticsPooling

    for module in model.modules():
        if isinstance(module, StatisticsPooling):
            level = 5.0 * float(module.eps)
            module._get_gauss_noise = lambda shape, device="cpu", level=level: torch.full(
                shape, level, device=device
            )


class WavlmEncoder:
    """WavLM base plus with its x-vector head, 512-d."""

    def __init__(self, folder: Path, device: str) -> None:
        import torch
        from transformers import WavLMForXVector

        torch.set_num_threads(1)
        self._torch, self._device = torch, device
        card = read_card("wavlm-sv")
        self.info = EngineInfo("encoder", "wavlm-sv", card.revision, card.licence, device, False)
        model: Any = WavLMForXVector.from_pretrained(folder, local_files_only=True)  # nosec B615 # a local folder
        self._model = model.eval().to(device)
        self.dimension = int(model.config.xvector_output_dim)

    def embed(self, windows: Sequence[Signal]) -> Vectors:
        """Unit-norm embeddings, shape (len(windows), dimension)."""
        return embed_batched(windows, self.dimension, self._forward, largest=8)

    def _forward(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        with self._torch.inference_mode():
            samples = self._torch.from_numpy(batch).to(self._device)
            found = self._model(samples).embeddings
        vectors: NDArray[np.float32] = found.float().cpu().numpy()
        return vectors


# --- Seed-VC ---------------------------------------------------------------------------------


def fit_length(samples: Signal, n_samples: int, name: str) -> Signal:
    """Cut or pad a converted turn to its source's length.

    Raises
    ------
    AudioError
        The lengths differ by more than ``LENGTH_TOLERANCE`` and a tenth of a second.
    """
    difference = abs(samples.size - n_samples)
    if difference > max(LENGTH_TOLERANCE * n_samples, SAMPLE_RATE_HZ // 10):
        ratio = samples.size / max(n_samples, 1)
        raise AudioError(f"{name}: {ratio:.2f} times the length of the source")
    if samples.size >= n_samples:
        return samples[:n_samples]
    return np.pad(samples, (0, n_samples - samples.size)).astype(np.float32)


class SeedVc:
    """Seed-VC towards the reference voice's first 25 s; the context is unused."""

    def __init__(self, version: int, worker: Worker | None = None) -> None:
        name = "seed-vc" if version == 1 else "seed-vc-v2"
        card = read_card(name)
        device = "cuda" if worker is not None else choose_device(name, needs_card=True)
        self.info = EngineInfo("converter", name, card.revision, card.licence, device, False)
        self._worker = worker or Worker("seedvc", seed_vc_options(version, model_dir(name)))

    def convert(self, source: Signal, voice: Voice, context: Signal, seed: int) -> Signal:
        """One turn with the length of ``source``; the same seed gives the same samples.

        Raises
        ------
        ItemError
            The program fails on this turn, or gives another length.
        """
        arrays = {"source": source, "reference": voice.reference}
        value, out = self._worker.call("convert", {"seed": seed}, arrays)
        samples = resample(out["samples"].astype(np.float32), value["rate_hz"])
        return fit_length(samples, source.size, self.info.name)


def seed_vc_options(version: int, folder: Path) -> dict[str, Any]:
    """What the worker loads; ``folder`` holds the files of the model's card."""
    if version == 1:
        stem = "DiT_seed_v2_uvit_whisper_small_wavenet_bigvgan_pruned.pth"
        config = "config_dit_mel_seed_uvit_whisper_small_wavenet.yml"
        files = {"checkpoint": str(folder / stem), "config": str(folder / config), "fp16": True}
    else:
        files = {
            "ar_checkpoint_path": str(folder / "ar_base.pth"),
            "cfm_checkpoint_path": str(folder / "cfm_small.pth"),
        }
    return {"version": version, "device": "cuda", **files}


# --- registration ----------------------------------------------------------------------------


def _speechbrain(name: str) -> SpeechBrainEncoder:
    try:
        device = choose_device(name, needs_card=False)
        return SpeechBrainEncoder(name, model_dir(name) / "embedding_model.ckpt", device)
    except ImportError as error:
        raise EngineUnavailable(f"{name}: install speechbrain ({error})") from error


@register("encoder", "ecapa", Needs(weights=("ecapa",)))
def _ecapa() -> SpeechBrainEncoder:
    return _speechbrain("ecapa")


@register("encoder", "xvector", Needs(weights=("xvector",)))
def _xvector() -> SpeechBrainEncoder:
    return _speechbrain("xvector")


@register("encoder", "wavlm-sv", Needs(weights=("wavlm-sv",)))
def _wavlm() -> WavlmEncoder:
    return WavlmEncoder(model_dir("wavlm-sv"), choose_device("wavlm-sv", needs_card=False))


@register("converter", "seed-vc", Needs(("seed-vc",), "seedvc", card=True))
def _seed_vc() -> SeedVc:
    return SeedVc(1)


@register("converter", "seed-vc-v2", Needs(("seed-vc-v2",), "seedvc", card=True))
def _seed_vc_v2() -> SeedVc:
    return SeedVc(2)
