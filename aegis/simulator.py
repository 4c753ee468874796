"""Made-up speaker embeddings whose error rates are known: a test bed, never a result.

Unit: an utterance of a speaker in a session, as a vector. Every coordinate of an original
vector is ``speaker + session + noise`` with Gaussian parts of total variance 1, so that
two utterances of one speaker have one correlation in all coordinates and their cosine is
the (uncentred) correlation of as many normal pairs as there are coordinates. Its exact
density (Hotelling 1953) gives EER and TPR without drawing anything. Attributes are read
off the speaker part: sex is the sign of its first coordinate, age and accent the thirds
of the next two, so what leaks of them is known as well.

The anonymiser of ``strength`` a keeps ``sqrt(1 - a)`` of the original vector and puts a
pseudo-voice (one a speaker and pseudo-profile) plus noise in place of the rest.
``compression`` gives all pseudo-voices a common part, ``leak_share`` is the share of
utterances that stay as they are, and ``rotated`` turns all anonymised vectors by one
orthogonal map (which a learned attacker must find).

Functions: :func:`simulate`, :func:`correlations`, :func:`cosine_cdf`, :func:`known_eer`,
:func:`known_tpr`, :func:`known_auc`, :func:`random_rotation`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aegis.segments import ORIGINAL, Segments
from aegis.stats import Floats

SEXES = ("female", "male")
AGES = ("Young", "Adult", "Senior")
ACCENTS = ("North America", "Romance", "South Asia")


@dataclass(frozen=True)
class World:
    """How many speakers, and how alike two utterances of one of them are.

    ``speaker`` and ``session`` are shares of the variance of an original coordinate; what
    is left is noise of the utterance.
    """

    n_speakers: int = 100
    n_sessions: int = 2
    n_utterances: int = 5
    dimension: int = 64
    speaker: float = 0.6
    session: float = 0.0


@dataclass(frozen=True)
class Anonymiser:
    """``voice`` is the pseudo-voice's share of what replaces the original; the rest is noise."""

    name: str
    strength: float
    voice: float = 0.8
    compression: float = 0.0
    leak_share: float = 0.0
    rotated: bool = False


def simulate(
    world: World, anonymisers: Sequence[Anonymiser], rng: np.random.Generator, n_profiles: int = 2
) -> Segments:
    """Original utterances, and those of every anonymiser and pseudo-profile.

    The first session's utterances come first; ``source`` names the utterance, so that a
    version of it is recognised as the same words.
    """
    speakers = rng.standard_normal((world.n_speakers, world.dimension))
    per_speaker = world.n_sessions * world.n_utterances
    who = np.repeat(np.arange(world.n_speakers), per_speaker)
    session = np.tile(np.repeat(np.arange(world.n_sessions), world.n_utterances), world.n_speakers)
    rooms = rng.standard_normal((world.n_speakers, world.n_sessions, world.dimension))
    rest = 1.0 - world.speaker - world.session
    vectors = (
        math.sqrt(world.speaker) * speakers[who]
        + math.sqrt(world.session) * rooms[who, session]
        + math.sqrt(rest) * rng.standard_normal((len(who), world.dimension))
    )
    table = _describe(world, speakers, who, session)
    parts = [(table.assign(system=ORIGINAL, pseudo_profile=0), vectors)]
    for anonymiser in anonymisers:
        rotation = random_rotation(world.dimension, rng) if anonymiser.rotated else None
        for profile in range(1, n_profiles + 1):
            changed = _anonymise(vectors, who, world.n_speakers, anonymiser, rng)
            changed = changed if rotation is None else changed @ rotation
            labels = table.assign(system=anonymiser.name, pseudo_profile=profile)
            parts.append((labels, changed))
    return Segments.build(
        pd.concat([labels for labels, _ in parts], ignore_index=True),
        {"simulated": np.concatenate([values for _, values in parts])},
    )


TEST_BED = World(n_speakers=48, n_sessions=2, n_utterances=3, dimension=32, speaker=0.5)
TEST_SYSTEMS = (
    Anonymiser("sim: weak", 0.5),
    Anonymiser("sim: strong", 0.95),
    Anonymiser("sim: strong, 8 % leak", 0.95, leak_share=0.08),
    Anonymiser("sim: one voice for all", 0.95, compression=0.6),
    Anonymiser("sim: rotated only", 0.05, rotated=True),
)
"""What the pages of both leakage studies show: kinds of protection that metrics tell apart."""


def _describe(
    world: World, speakers: Floats, who: NDArray[np.int64], session: NDArray[np.int64]
) -> pd.DataFrame:
    third = np.array([-0.430727, 0.430727])  # quantiles of the normal distribution
    sex = np.where(speakers[:, 0] < 0, *SEXES)
    age = np.array(AGES)[np.searchsorted(third, speakers[:, 1])]
    accent = np.array(ACCENTS)[np.searchsorted(third, speakers[:, 2])]
    number = np.arange(len(who)) % (world.n_sessions * world.n_utterances)
    return pd.DataFrame({
        "source": [f"s{a:04d}u{b:03d}" for a, b in zip(who, number, strict=True)],
        "speaker": [f"s{a:04d}" for a in who], "session": [f"session {b}" for b in session],
        "sex": sex[who], "age": age[who], "accent": accent[who],
        "text": [f"text {b:03d}" for b in number],
    })  # fmt: skip


def _anonymise(
    vectors: Floats,
    who: NDArray[np.int64],
    n_speakers: int,
    anonymiser: Anonymiser,
    rng: np.random.Generator,
) -> Floats:
    dimension, a = vectors.shape[1], anonymiser.strength
    common = rng.standard_normal(dimension)
    own = rng.standard_normal((n_speakers, dimension))
    shared = anonymiser.compression
    voices: Floats = math.sqrt(shared) * common + math.sqrt(1.0 - shared) * own
    noise = rng.standard_normal(vectors.shape)
    replaced = (
        math.sqrt(anonymiser.voice) * voices[who] + math.sqrt(1.0 - anonymiser.voice) * noise
    )
    changed = math.sqrt(1.0 - a) * vectors + math.sqrt(a) * replaced
    leaks = rng.random(len(vectors)) < anonymiser.leak_share
    kept: Floats = np.where(leaks[:, None], vectors, changed)
    return kept


def random_rotation(dimension: int, rng: np.random.Generator) -> Floats:
    """An orthogonal matrix, uniform over all of them."""
    q, r = np.linalg.qr(rng.standard_normal((dimension, dimension)))
    return np.asarray(q * np.sign(np.diag(r)))


# --- what is known of it --------------------------------------------------------------------


def correlations(world: World, anonymiser: Anonymiser) -> dict[str, tuple[float, float]]:
    """Correlation of a target and of a non-target pair by trial type.

    Both sides of ``aaaa`` and ``cross_profile`` come from one session, others from two.

    Known without leaks, rotation and compression only (those change the distribution).

    Raises
    ------
    ValueError
        The anonymiser has one of them.
    """
    if anonymiser.leak_share or anonymiser.compression or anonymiser.rotated:
        raise ValueError(f"{anonymiser.name}: leaks, compression or rotation; nothing is known")
    a, voice, speaker = anonymiser.strength, anonymiser.voice, world.speaker
    crossed = math.sqrt(1.0 - a) * speaker
    room = (1.0 - a) * (speaker + world.session)
    inside = room + a * voice
    return {
        "oo": (speaker, 0.0), "oaoa": (crossed, 0.0), "oaoo": (crossed, 0.0),
        "oaaa": (crossed, 0.0), "aaaa": (inside, 0.0),
        "cross_profile": (inside, room),
    }  # fmt: skip


def cosine_cdf(
    correlation: float, dimension: int, n_points: int = 40_001
) -> tuple[Floats, Floats]:
    """Distribution of the cosine of two vectors whose coordinates are correlated normal pairs.

    Returns
    -------
    (grid, probability)
        Cosines from -1 to 1 and the probability of not exceeding each.
    """
    from scipy.special import gammaln, hyp2f1

    r = np.linspace(-1.0, 1.0, n_points)[1:-1]
    d = float(dimension)
    log_density = (
        math.log(d - 1) + gammaln(d) - 0.5 * math.log(2 * math.pi) - gammaln(d + 0.5)
        + 0.5 * d * math.log1p(-(correlation**2)) + 0.5 * (d - 3) * np.log1p(-(r**2))
        - (d - 0.5) * np.log1p(-correlation * r)
    )  # fmt: skip
    density = np.exp(log_density) * hyp2f1(0.5, 0.5, d + 0.5, 0.5 * (1 + correlation * r))
    steps = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]) * (r[1] - r[0]))])
    return r, np.asarray(steps / steps[-1])


def known_eer(target: float, non_target: float, dimension: int) -> float:
    """Equal error rate of the cosine for two correlations (never flipped)."""
    _, miss = cosine_cdf(target, dimension)
    _, below = cosine_cdf(non_target, dimension)
    at = int(np.argmin(np.abs(miss - (1.0 - below))))
    return float(0.5 * (miss[at] + 1.0 - below[at]))


def known_tpr(target: float, non_target: float, dimension: int, fpr: float) -> float:
    """True-positive rate of the cosine at a false-positive rate."""
    grid, miss = cosine_cdf(target, dimension)
    _, below = cosine_cdf(non_target, dimension)
    threshold = float(np.interp(1.0 - fpr, below, grid))
    return float(1.0 - np.interp(threshold, grid, miss))


def known_auc(correlation: float) -> float:
    """AUC for the sign of a normal variable, read off another one of that correlation.

    The probability that two pairs of opposite sign are ordered right is an orthant
    probability of three normals: ``1/2 + 2/pi asin(r / sqrt 2)``.
    """
    return 0.5 + 2.0 / math.pi * math.asin(correlation / math.sqrt(2.0))
