"""Anonymisers to compare with, in the spirit of published ones, behind the converter role.

Unit: one turn, mono float32 at 16 kHz; the length is kept. ``knn`` answers every frame with
the mean of the nearest frames of the reference voice (the idea of kNN-VC and of NIST's
baseline) on WORLD cepstra; ``knn-vc`` is that system itself, WavLM and HiFiGAN, from a
local checkout. ``latent-noise`` puts bounded Laplace noise on what describes the speaker
(mean cepstra and pitch) and frames, VOXLET's idea without its learned space; its parameters
stand in the revision. ``cascade`` writes the words down and has the pseudo-voice say them
(the idea of VoicePrivacy's B3): nothing of the voice passes, errors of the recogniser do.

:func:`undo_world` is the informed attack on ``world``: whoever holds the statistics of both
speakers and knows the converter (:func:`find_world_key`) inverts the map.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from aegis.audio import Signal
from aegis.engines import EditRequest, EngineInfo, Voice, load, register
from aegis.engines.conversion import (
    F0_RANGE_HZ,
    Array,
    Speaker,
    WorldConverter,
    add_cepstra,
    aim_of,
    analyse,
    change_rate,
    describe_speaker,
    limit_peak,
    match_level,
    pitch_ratio,
    speech_frames,
    synthesise,
    to_cepstra,
    transport,
)
from aegis.errors import AudioError, EngineUnavailable

N_NEIGHBOURS = 4
SMOOTHING_FRAMES = 5


def smooth(rows: Array, width: int = SMOOTHING_FRAMES) -> Array:
    """Moving mean over time of (frames, coefficients); the ends repeat."""
    if len(rows) < width:
        return rows
    padded = np.pad(rows, ((width // 2, width - 1 - width // 2), (0, 0)), mode="edge")
    sums = np.cumsum(np.vstack([np.zeros(rows.shape[1]), padded]), axis=0)
    return np.asarray((sums[width:] - sums[:-width]) / width)


class KnnConverter(WorldConverter):
    """Frames regressed on the reference's: both are compared after their speaker's mean and
    spread are taken off, and the mean of four neighbours' own cepstra is spoken."""

    info = EngineInfo("converter", "knn", f"world-cepstra-k{N_NEIGHBOURS}", "Apache-2.0")

    def __init__(self) -> None:
        super().__init__()
        self._frames: dict[str, Array] = {}

    def convert(self, source: Signal, voice: Voice, context: Signal, seed: int) -> Signal:
        """Convert one turn; the reference's frames are the matching set."""
        analysis = analyse(source)
        here, there = self._describe(context), self._describe(voice.reference)
        cepstra = to_cepstra(analysis.envelope)
        held = self._reference_frames(there, voice.reference)
        near = _nearest(_whiten(cepstra, here), _whiten(held, there), N_NEIGHBOURS)
        moved = smooth(held[near].mean(axis=1))
        envelope = add_cepstra(analysis.envelope, moved - cepstra)
        pitch = self._move_pitch(analysis.f0, here, there)
        return match_level(synthesise(replace(analysis, f0=pitch, envelope=envelope)), source)

    def _reference_frames(self, there: Speaker, reference: Signal) -> Array:
        if there.key not in self._frames:
            envelope = analyse(reference).envelope
            level = np.log(envelope.sum(axis=1))
            loud = level > np.percentile(level, 95) - 5 * np.log(10)
            self._frames = {**dict(list(self._frames.items())[-15:]),
                            there.key: to_cepstra(envelope[loud])}  # fmt: skip
        return self._frames[there.key]


def _whiten(cepstra: Array, speaker: Speaker) -> Array:
    spread = np.sqrt(np.diag(speaker.covariance))
    rows = (cepstra - speaker.mean) / np.maximum(spread, 1e-6)
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9))


def _nearest(rows: Array, held: Array, k: int) -> Any:
    k = min(k, len(held))
    return np.argpartition(-(rows @ held.T), k - 1, axis=1)[:, :k]


NOISE_SCALE, NOISE_BOUND = 1.0, 3.0
FRAME_SCALE = 0.3
PITCH_SCALE, PITCH_BOUND = 3.0, 8.0
"""Noise on the speaker's cepstral mean (in spreads of each coefficient), on frames, and on
pitch in semitones: scale of the Laplace distribution and where it is cut."""


def bounded_laplace(
    rng: np.random.Generator, scale: float, bound: float, size: tuple[int, ...]
) -> Array:
    """Laplace noise within ``[-bound, bound]``, by inverting its distribution between them."""
    edge = 0.5 * np.exp(-bound / scale)
    centred = rng.uniform(edge, 1.0 - edge, size) - 0.5
    return np.asarray(-scale * np.sign(centred) * np.log1p(-2.0 * np.abs(centred)))


class LatentNoiseConverter(WorldConverter):
    """The same noise for all turns of one seed, and a little on every frame; no reference."""

    info = EngineInfo(
        "converter", "latent-noise",
        f"laplace-{NOISE_SCALE:g}-bound-{NOISE_BOUND:g}-pitch-{PITCH_SCALE:g}-{PITCH_BOUND:g}",
        "Apache-2.0",
    )  # fmt: skip

    def convert(self, source: Signal, voice: Voice, context: Signal, seed: int) -> Signal:
        """Convert one turn; give all turns of a pseudo-profile one seed."""
        analysis = analyse(source)
        here = self._describe(context)
        spread = np.sqrt(np.diag(here.covariance))
        rng = np.random.default_rng(seed)
        shift = bounded_laplace(rng, NOISE_SCALE, NOISE_BOUND, spread.shape) * spread
        semitones = float(bounded_laplace(rng, PITCH_SCALE, PITCH_BOUND, (1,))[0])
        frames = bounded_laplace(rng, FRAME_SCALE, NOISE_BOUND, (len(analysis.f0), spread.size))
        change = shift + smooth(frames, 9) * spread
        moved = np.clip(analysis.f0 * 2.0 ** (semitones / 12.0), *F0_RANGE_HZ)
        envelope = add_cepstra(analysis.envelope, change)
        pitch = np.where(analysis.f0 > 0, moved, 0.0)
        return match_level(synthesise(replace(analysis, f0=pitch, envelope=envelope)), source)


class CascadeConverter:
    """Recognise, speak the words in the pseudo-voice, fit the turn's length."""

    info = EngineInfo("converter", "cascade", "whisper-base-kokoro", "Apache-2.0")

    def __init__(self, asr: str = "whisper-base", renderer: str = "whole-turn") -> None:
        self._asr, self._renderer = load("transcriber", asr), load("renderer", renderer)

    def convert(self, source: Signal, voice: Voice, context: Signal, seed: int) -> Signal:
        """Convert one turn; a turn without recognised words is refused.

        Raises
        ------
        AudioError
            Nothing was recognised.
        """
        heard = self._asr.transcribe(source, voice.language)
        text = " ".join(segment.text.strip() for segment in heard.segments).strip()
        if not any(char.isalnum() for char in text):
            raise AudioError("cascade: no words were recognised")
        request = EditRequest(source, text, text, (), (), voice, voice.language, seed)
        return fit_length(self._renderer.render(request), source.size)


def fit_length(samples: Signal, n_samples: int) -> Signal:
    """Speech of another rate: exactly ``n_samples``, at most twice or half as fast; a shorter
    rest is silence, a longer one is cut."""
    rate = float(np.clip(samples.size / n_samples, 0.5, 2.0))
    spoken = synthesise(change_rate(analyse(samples), rate)) if abs(rate - 1) > 0.02 else samples
    spoken = match_level(spoken, samples)[:n_samples]
    return limit_peak(np.pad(spoken, (0, n_samples - spoken.size)).astype(np.float32))


class KnnVc:
    """kNN-VC (Baas et al. 2023): WavLM layer 6, four neighbours, HiFiGAN."""

    info = EngineInfo("converter", "knn-vc", "bshall-knn-vc", "MIT", embedded=False)

    def __init__(self, folder: Path) -> None:
        import torch

        self._torch = torch
        hub: Any = torch.hub
        self._system: Any = hub.load(
            str(folder), "knn_vc", source="local", prematched=True, pretrained=True, device="cpu"
        )

    def convert(self, source: Signal, voice: Voice, context: Signal, seed: int) -> Signal:
        """Convert one turn; the whole reference is the matching set."""
        query, held = (
            self._system.get_features(self._torch.from_numpy(x)[None])
            for x in (source, voice.reference)
        )
        spoken = self._system.match(query, held, topk=N_NEIGHBOURS).numpy().astype(np.float32)
        fitted = np.pad(spoken, (0, max(0, source.size - spoken.size)))[: source.size]
        return match_level(fitted, source)


@dataclass(frozen=True)
class WorldKey:
    """What an informed attacker holds of one use of ``world``.

    ``centre`` is the mean of the released cepstra, ``inverse`` takes their deviations from it
    back to those of the source: rows times a matrix.
    """

    source: Speaker
    pseudo: Speaker
    centre: Array
    inverse: Array


def find_world_key(context: Signal, voice: Voice) -> WorldKey:
    """The key of a profile, from the speech that the converter takes its statistics from.

    A vocoder does not speak quite what it is told. The attacker converts the context as well
    and compares what comes out with what was asked for: its mean corrects the centre, its
    covariance makes the inverse the best linear estimate (Wiener) instead of an exact one,
    which would enlarge the error.
    """
    source, pseudo = (
        describe_speaker(context, "source"),
        describe_speaker(voice.reference, "pseudo"),
    )
    forward, aim = transport(source.covariance, pseudo.covariance), aim_of(source, pseudo)
    before = analyse(context)
    spoken = analyse(WorldConverter().convert(context, voice, context, 0))
    asked = (to_cepstra(before.envelope) - source.mean) @ forward + aim
    error = (to_cepstra(spoken.envelope) - asked)[speech_frames(before)]
    heard = pseudo.covariance + np.cov(error.T)
    inverse = np.asarray(np.linalg.solve(heard, forward @ source.covariance), dtype=np.float64)
    return WorldKey(source, pseudo, aim + error.mean(axis=0), inverse)


def undo_world(converted: Signal, key: WorldKey) -> Signal:
    """Invert ``world``: pitch and envelope go back.

    The attacker tries every candidate's key; for the right one the result is the original
    voice, up to what the vocoder lost twice.
    """
    source, pseudo = key.source, key.pseudo
    analysis = analyse(converted)
    cepstra = to_cepstra(analysis.envelope)
    back = (cepstra - key.centre) @ key.inverse + source.mean
    envelope = add_cepstra(analysis.envelope, back - cepstra)
    spread = pitch_ratio(source, pseudo)
    with np.errstate(divide="ignore"):
        moved = np.exp(source.f0_median + (np.log(analysis.f0) - pseudo.f0_median) / spread)
    pitch = np.where(analysis.f0 > 0, np.clip(moved, *F0_RANGE_HZ), 0.0)
    return match_level(synthesise(replace(analysis, f0=pitch, envelope=envelope)), converted)


@register("converter", "knn")
def load_knn() -> KnnConverter:
    """Nearest-neighbour regression of WORLD cepstra."""
    return KnnConverter()


@register("converter", "latent-noise")
def load_latent_noise() -> LatentNoiseConverter:
    """Bounded noise on the speaker's description."""
    return LatentNoiseConverter()


@register("converter", "cascade")
def load_cascade() -> CascadeConverter:
    """ASR and re-synthesis."""
    return CascadeConverter()


@register("converter", "knn-vc")
def load_knn_vc() -> KnnVc:
    """A checkout of bshall/knn-vc; its weights where torch.hub keeps them."""
    from aegis.weights import MODELS

    folder = MODELS / "knn-vc"
    if not (folder / "hubconf.py").exists():
        raise EngineUnavailable("knn-vc: put a checkout of bshall/knn-vc in models/knn-vc")
    return KnnVc(folder)
