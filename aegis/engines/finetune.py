"""An attacker's encoder: ECAPA or x-vector trained further on anonymised speech.

Unit: one utterance of a training speaker. The network learns to tell the training speakers
apart over random crops (additive angular margin, as in the encoders' own training), and is
then an encoder like any other. Meant for a graphics card; ``AEGIS_DEVICE=cpu`` runs it
slowly. Nothing is written: an adapted network belongs to one anonymiser and one split.

Functions: :func:`adapt_encoder`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from aegis.audio import SAMPLE_RATE_HZ, Signal
from aegis.engines.embedding import check_window
from aegis.engines.paper_voice import SpeechBrainEncoder
from aegis.errors import ParamError


@dataclass(frozen=True)
class Recipe:
    """How long and how carefully: the margin's loss on crops, Adam with one learning rate."""

    n_steps: int = 2_000
    batch: int = 32
    crop_s: float = 3.0
    learning_rate: float = 1e-4
    margin: float = 0.2
    scale: float = 30.0
    seed: int = 20261005


def adapt_encoder(
    encoder: SpeechBrainEncoder,
    utterances: Sequence[Signal],
    speakers: Sequence[str],
    recipe: Recipe | None = None,
) -> list[float]:
    """Train the encoder in place; returns the loss of every step.

    Raises
    ------
    ParamError
        Fewer than two speakers.
    """
    import torch
    from speechbrain.nnet.losses import AdditiveAngularMargin, LogSoftmaxWrapper

    recipe = recipe or Recipe()
    names = sorted(set(speakers))
    if len(names) < 2:
        raise ParamError(f"{len(names)} training speakers: nothing to tell apart")
    torch.manual_seed(recipe.seed)
    rng = np.random.default_rng(recipe.seed)
    model, device = encoder.network, encoder.device
    label = torch.tensor([names.index(name) for name in speakers], device=device)
    sounds = [check_window(sound) for sound in utterances]
    directions = torch.nn.Parameter(torch.randn(len(names), encoder.dimension, device=device))
    loss_of = LogSoftmaxWrapper(AdditiveAngularMargin(recipe.margin, recipe.scale))
    optimiser = torch.optim.Adam([*model.parameters(), directions], lr=recipe.learning_rate)
    losses = []
    model.train()
    for _ in range(recipe.n_steps):
        rows = rng.integers(0, len(sounds), recipe.batch)
        batch = np.stack([_crop(sounds[row], recipe.crop_s, rng) for row in rows])
        vectors = encoder.vectors_of(torch.from_numpy(batch).to(device))
        cosine = (
            torch.nn.functional.normalize(vectors, dim=1)
            @ torch.nn.functional.normalize(directions, dim=1).T
        )
        loss = loss_of(cosine[:, None], label[torch.from_numpy(rows).to(device)][:, None])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    model.eval()
    return losses


def _crop(sound: Signal, seconds: float, rng: np.random.Generator) -> Signal:
    """A random stretch; a shorter sound is repeated."""
    length = round(seconds * SAMPLE_RATE_HZ)
    repeated = np.tile(sound, -(-length // sound.size)) if sound.size < length else sound
    start = int(rng.integers(0, repeated.size - length + 1))
    return repeated[start : start + length]
