"""What the channels of a recording are: one signal, one speaker each, or microphones.

Unit: one recording at 16 kHz. Signals have shape (channels, n); levels are dB relative
to full scale in frames of 50 ms. Everything is decided from sums, so a recording of
any length needs one pass.

- ``speaker_per_channel``: channels are kept, each is one speaker;
- ``mono``: one channel, or copies of one (averaged), or the only one that is alive;
- ``downmix``: several microphones of one scene, averaged.

Functions: :class:`Statistics`, :func:`choose_layout`, :func:`speakers_apart`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aegis.audio import SAMPLE_RATE_HZ, Signal

DEAD_BELOW_DB = 50.0
INVERTED_CORRELATION = -0.5
COPY_CORRELATION = 0.95
SPEAKER_CORRELATION = 0.5
DOMINANCE_DB = 6.0
DOMINATED_SHARE = 0.6
OWN_SHARE = 0.05
ACTIVE_BELOW_DB = 30.0

_FRAME = SAMPLE_RATE_HZ // 20


class Statistics:
    """Sums over a signal that arrives in blocks of shape (channels, n), at 16 kHz."""

    def __init__(self, n_channels: int) -> None:
        self.n = 0
        self.total = np.zeros(n_channels)
        self.products = np.zeros((n_channels, n_channels))
        self.frames: list[NDArray[np.float64]] = []
        self._rest = np.zeros((n_channels, 0), dtype=np.float32)

    def add(self, block: Signal) -> None:
        wide = block.astype(np.float64)
        self.n += block.shape[1]
        self.total += wide.sum(axis=1)
        self.products += wide @ wide.T
        held = np.concatenate([self._rest, block], axis=1)
        whole = held.shape[1] // _FRAME * _FRAME
        framed = held[:, :whole].reshape(len(held), -1, _FRAME).astype(np.float64)
        # Power about the frame's own mean, so that an offset does not look like sound.
        self.frames.append(framed.var(axis=2))
        self._rest = held[:, whole:]

    def close(self) -> None:
        """Count what is left as a last, shorter frame."""
        if self._rest.shape[1]:
            self.frames.append(self._rest.astype(np.float64).var(axis=1, keepdims=True))

    @property
    def mean(self) -> NDArray[np.float64]:
        return self.total / self.n

    @property
    def covariance(self) -> NDArray[np.float64]:
        return self.products / self.n - np.outer(self.mean, self.mean)

    @property
    def levels_db(self) -> NDArray[np.float64]:
        """Level of each channel and frame, shape (channels, frames)."""
        return 10.0 * np.log10(np.concatenate(self.frames, axis=1) + 1e-20)


@dataclass(frozen=True)
class Layout:
    """``weights`` (kept channels, source channels) makes the recording's channels."""

    name: str
    weights: NDArray[np.float32]
    notes: tuple[str, ...]


def choose_layout(levels_db: NDArray[np.float64], covariance: NDArray[np.float64]) -> Layout:
    """Decide what a recording's channels are.

    Parameters
    ----------
    levels_db
        Frame levels, shape (channels, frames).
    covariance
        Between channels, shape (channels, channels).

    Rules
    -----
    A channel more than 50 dB below the loudest is dead and dropped. Correlation below
    -0.5 with the loudest: polarity inverted. All above 0.95: copies of one signal. Channels are
    speakers when in at least 60 % of the frames with speech one channel is at least 6 dB
    above the others, every channel leads so in at least 5 % of them, and no two correlate
    above 0.5.
    """
    n_channels = len(levels_db)
    loudness = np.percentile(levels_db, 95, axis=1)
    best = int(np.argmax(loudness))
    alive = [c for c in range(n_channels) if loudness[c] > loudness[best] - DEAD_BELOW_DB]
    notes = (
        []
        if len(alive) == n_channels
        else [f"{n_channels - len(alive)} of {n_channels} channels dead"]
    )
    weights = np.eye(n_channels, dtype=np.float32)
    if len(alive) == 1:
        return Layout("mono", weights[alive], tuple(notes))
    scale = np.sqrt(np.diag(covariance))
    correlation = covariance / np.maximum(np.outer(scale, scale), 1e-20)
    inverted = [c for c in alive if correlation[best, c] < INVERTED_CORRELATION]
    if inverted:
        notes.append(
            f"{len(inverted)} of {n_channels} channels had inverted polarity, turned round"
        )
        weights[inverted] *= -1.0
        correlation = correlation * np.outer(np.diag(weights), np.diag(weights))
    others = [abs(correlation[a, b]) for a in alive for b in alive if a < b]
    if max(others) < SPEAKER_CORRELATION and speakers_apart(levels_db[alive]):
        return Layout("speaker_per_channel", weights[alive], tuple(notes))
    mean = weights[alive].mean(axis=0, keepdims=True)
    if all(correlation[best, c] > COPY_CORRELATION for c in alive):
        return Layout("mono", mean, (*notes, f"{len(alive)} channels hold one signal"))
    # Averaging must not cancel what the loudest channel holds.
    power = float((mean @ covariance @ mean.T).item())
    if power < covariance[best, best] * 0.01:
        return Layout(
            "downmix", weights[[best]], (*notes, "averaging would cancel; loudest channel kept")
        )
    return Layout("downmix", mean, (*notes, f"{len(alive)} channels averaged"))


def speakers_apart(levels_db: NDArray[np.float64]) -> bool:
    """Does each channel hold a speaker of its own (see :func:`choose_layout`)?"""
    ordered = np.sort(levels_db, axis=0)
    active = ordered[-1] > np.percentile(levels_db, 95) - ACTIVE_BELOW_DB
    if not active.any():
        return False
    leads = active & (ordered[-1] - ordered[-2] >= DOMINANCE_DB)
    leader = np.argmax(levels_db, axis=0)[leads]
    own = np.bincount(leader, minlength=len(levels_db)) / active.sum()
    return bool(leads.sum() >= DOMINATED_SHARE * active.sum() and own.min() >= OWN_SHARE)
