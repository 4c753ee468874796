"""Attackers that learn from an anonymiser's output before they attack it.

Unit: a vector of one utterance, or one assignment. An attacker is a map of both sides of
a trial to vectors whose cosine is the score; :func:`fit_attacker` learns it on *training
speakers*, which the test never holds (:func:`split_speakers` prints as numbers how many).
What an attacker knows follows the VoicePrivacy challenges:

``ignorant``
    Original enrolment, embeddings as they come.
``lazy_informed``
    Enrolment anonymised by the same system with another pseudo-profile; embeddings as
    they come.
``semi_informed``
    The same enrolment or an original one, and a map learnt on anonymised speech.

Learners (scikit-learn, CPU): ``lda`` (linear discriminants of the training speakers),
``plda`` (two-covariance model on them), ``head`` (a small network that tells training
speakers apart; its hidden layer is the new embedding), ``inverse`` (ridge regression from
anonymised to original vectors, the attack on an invertible conversion).

The pool-aware attacker knows the reference pool and the ranking rule:
:func:`anonymity_sets`.

Functions: :func:`split_speakers`, :func:`fit_attacker`, :func:`recovered_map`,
:func:`anonymity_sets`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aegis.segments import ORIGINAL, Segments, normalise_rows
from aegis.stats import Floats

LEARNERS = ("lda", "plda", "head", "inverse")
MIN_TRAIN_SPEAKERS = 4

Map = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Attacker:
    """Maps of original and of anonymised vectors into one space; scores are cosines there."""

    name: str
    original: Map
    anonymised: Map
    n_speakers: int
    n_rows: int


def _as_it_comes(rows: Floats) -> Floats:
    return rows


PRETRAINED = Attacker("pretrained", _as_it_comes, _as_it_comes, 0, 0)


def split_speakers(
    segments: Segments, rng: np.random.Generator, share: float = 0.5
) -> tuple[Segments, Segments]:
    """Training and test halves with no speaker in common.

    Raises
    ------
    ValueError
        Fewer than eight speakers: neither half could teach or test anything.
    """
    names = np.array(sorted(set(segments.table["speaker"])), dtype=object)
    if len(names) < 2 * MIN_TRAIN_SPEAKERS:
        raise ValueError(
            f"{len(names)} speakers; a learned attack needs {2 * MIN_TRAIN_SPEAKERS}"
            f" ({MIN_TRAIN_SPEAKERS} to learn from, as many to attack)"
        )
    chosen = set(rng.permutation(names)[: round(share * len(names))])
    taught = segments.table["speaker"].isin(chosen)
    return segments.where(taught), segments.where(~taught)


def fit_attacker(learner: str, train: Segments, system: str, backend: str, seed: int) -> Attacker:
    """Learn on the training speakers' original and anonymised vectors of one system.

    Raises
    ------
    ValueError
        An unknown learner, or training data without two rows for two speakers.
    """
    kept = train.where(train.table["system"].isin([ORIGINAL, system]))
    rows, speaker = kept.vectors[backend], kept.codes("speaker")
    if len(set(speaker)) < 2 or len(rows) <= len(set(speaker)):
        raise ValueError(f"{len(rows)} rows of {len(set(speaker))} speakers: nothing to learn")
    anonymised = (kept.table["system"] == system).to_numpy()
    original, changed = _learn(learner, kept, rows, speaker, anonymised, seed)
    return Attacker(learner, original, changed, len(set(speaker)), len(rows))


def _learn(
    learner: str,
    kept: Segments,
    rows: Floats,
    speaker: NDArray[np.int64],
    anonymised: NDArray[np.bool_],
    seed: int,
) -> tuple[Map, Map]:
    if learner == "inverse":
        return _as_it_comes, _ridge(*_paired(kept, rows, anonymised))
    # Every domain is centred by its own mean: what an anonymiser adds to all is no identity.
    means = [
        rows[side].mean(axis=0) if side.any() else np.zeros(rows.shape[1])
        for side in (~anonymised, anonymised)
    ]
    centred = rows - np.where(anonymised[:, None], means[1], means[0])
    makers = {"lda": _lda, "plda": _plda, "head": _head}
    if learner not in makers:
        raise ValueError(f"learner {learner!r}; known: {', '.join(LEARNERS)}")
    project = makers[learner](centred, speaker, seed)

    def centre(mean: Floats) -> Map:
        return lambda values: normalise_rows(project(values - mean))

    return centre(means[0]), centre(means[1])


def _paired(kept: Segments, rows: Floats, anonymised: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Anonymised rows and the original row of the same source."""
    source = kept.table["source"].to_numpy(dtype=object)
    at = {name: index for index, name in enumerate(source) if not anonymised[index]}
    pairs = [(i, at[source[i]]) for i in np.flatnonzero(anonymised) if source[i] in at]
    if len(pairs) < 2:
        raise ValueError(f"{len(pairs)} anonymised rows have their original: nothing to learn")
    left, right = np.array(pairs).T
    return rows[left], rows[right]


def _ridge(anonymised: Floats, original: Floats) -> Map:
    """Least squares from anonymised to original; the penalty is chosen by leave-one-out."""
    from sklearn.linear_model import RidgeCV

    model = RidgeCV(alphas=np.logspace(-6, 3, 10)).fit(anonymised, original)

    def apply(rows: Floats) -> Floats:
        return normalise_rows(model.predict(rows))

    return apply


def recovered_map(attacker: Attacker, dimension: int) -> Floats:
    """The matrix of an ``inverse`` attacker without its offset, rows of length 1.

    Row ``i`` is where the ``i``-th unit vector goes.
    """
    offset = attacker.anonymised(np.full((1, dimension), 1e-9))
    steps = attacker.anonymised(np.eye(dimension) * 1e3)
    return normalise_rows(steps - 1e-3 * offset)


def _lda(rows: Floats, speaker: NDArray[np.int64], seed: int) -> Map:
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    model = LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto").fit(rows, speaker)
    return lambda values: np.asarray(model.transform(values))


def _plda(rows: Floats, speaker: NDArray[np.int64], seed: int) -> Map:
    """Two-covariance model; its axes are scaled by the reliability of each.

    In the space where the within-speaker covariance is the identity and the between one
    is diagonal, an axis of between variance ``b`` tells speaker as ``b / (b + 1)``; scaling
    by its root makes the inner product the posterior mean's, the cosine its length-free form.
    """
    from scipy.linalg import eigh
    from sklearn.covariance import ledoit_wolf

    names = np.unique(speaker)
    means = np.stack([rows[speaker == name].mean(axis=0) for name in names])
    within, _ = ledoit_wolf(rows - means[np.searchsorted(names, speaker)], assume_centered=True)
    between, _ = ledoit_wolf(means)
    spread, axes = eigh(between, within)
    spread = np.maximum(spread, 0.0)
    weighted = axes * np.sqrt(spread / (spread + 1.0))
    return lambda values: np.asarray(values @ weighted)


def _head(rows: Floats, speaker: NDArray[np.int64], seed: int) -> Map:
    from sklearn.neural_network import MLPClassifier

    model = MLPClassifier((64,), "tanh", alpha=1e-2, max_iter=300, random_state=seed)
    scale = float(rows.std()) or 1.0
    # Few rows end before the loss is flat; a bounded number of steps is part of the attack.
    import warnings

    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(rows / scale, speaker)
    weights, offset = model.coefs_[0], model.intercepts_[0]
    return lambda values: np.tanh(values / scale @ weights + offset)


# --- the attacker who knows the pool --------------------------------------------------------


def anonymity_sets(
    score: Floats, allowed: NDArray[np.bool_], assigned: NDArray[np.int64]
) -> pd.DataFrame:
    """Who could be behind each assignment, for an attacker who knows pool and ranking.

    The attacker recognises the pool voice in the output and asks which candidate would
    have been given it.

    Parameters
    ----------
    score
        The rule's score of every candidate profile and unit, shape (profiles, units).
    allowed
        Whether the rule may assign the unit to the profile.
    assigned
        The unit of each profile; -1: none.

    Returns
    -------
    DataFrame
        One row a profile: ``n_possible`` (candidates to whom the rule may give the unit),
        ``n_as_good`` (those who rank it at least as high as the true one does: the
        anonymity set; 1 means found out), ``rank`` (of the unit for the true profile).
    """
    masked = np.where(allowed, score, -np.inf)
    order = np.argsort(-masked, axis=1, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(score.shape[1])[None, :], axis=1)
    rows: list[dict[str, int | None]] = []
    for profile, unit in enumerate(assigned):
        if unit < 0:
            rows.append({"n_possible": None, "n_as_good": None, "rank": None})
            continue
        possible = allowed[:, unit]
        as_good = possible & (rank[:, unit] <= rank[profile, unit])
        rows.append({
            "n_possible": int(possible.sum()), "n_as_good": int(as_good.sum()),
            "rank": int(rank[profile, unit]) + 1,
        })  # fmt: skip
    return pd.DataFrame(rows, columns=["n_possible", "n_as_good", "rank"]).astype("Int64")
