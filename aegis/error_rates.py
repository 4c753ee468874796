"""Error rates of verification scores: one value from scores and labels.

A score belongs to a trial; ``target`` is true where both sides are the same speaker. An
error rate is a share in [0, 1]. A higher score speaks for the same speaker in orientation
``higher``, against it in ``lower``; ``attacker`` is the smaller error rate of the two.
An empty class or a NaN score is an error that names it; a statistic that the scores leave
undefined is NaN.

Functions: :func:`equal_error_rate`, :func:`attacker_orientation`, :func:`error_curve`,
:func:`hull_error_rate`, :func:`tpr_at_fpr`, :func:`log_likelihood_ratio_cost`,
:func:`minimum_cost`, :func:`calibrate`, :func:`linkability`, :func:`zebra`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.isotonic import isotonic_regression
from sklearn.linear_model import LogisticRegression

from aegis.stats import NAN, Floats

ORIENTATIONS = ("higher", "lower", "attacker")
MIN_TAIL = 10
MIN_PER_BIN = 10

Bools = NDArray[np.bool_]


def check_scores(score: ArrayLike, target: ArrayLike) -> tuple[Floats, Bools]:
    scores, targets = np.asarray(score, dtype=np.float64), np.asarray(target, dtype=bool)
    if scores.shape != targets.shape or scores.ndim != 1:
        raise ValueError(f"{scores.shape} scores against {targets.shape} labels")
    if np.isnan(scores).any():
        raise ValueError(f"{int(np.isnan(scores).sum())} of {len(scores)} scores are NaN")
    missing = [
        name for name, held in (("target", targets), ("non-target", ~targets)) if not held.any()
    ]
    if missing:
        raise ValueError(f"no {' and no '.join(missing)} trials")
    return scores, targets


def equal_error_rate(score: ArrayLike, target: ArrayLike, orientation: str = "higher") -> float:
    """Equal error rate of a step ROC with equal scores grouped.

    The false-acceptance and false-rejection rates are interpolated linearly between the
    two steps around their crossing. O(n log n).

    Returns
    -------
    float
        Share in [0, 1]; NaN when all scores are equal: a constant tells nothing.

    Raises
    ------
    ValueError
        A class is empty or a score is NaN; the message names them.
    """
    scores, targets = check_scores(score, target)
    if orientation == "attacker":
        return min(equal_error_rate(scores, targets, side) for side in ("higher", "lower"))
    if orientation not in ORIENTATIONS:
        raise ValueError(f"orientation {orientation!r}; known: {', '.join(ORIENTATIONS)}")
    if scores.min() == scores.max():
        return NAN
    false_alarm, miss = error_curve(scores if orientation == "higher" else -scores, targets)
    return float(crossing(false_alarm[None], miss[None])[0])


def attacker_orientation(score: ArrayLike, target: ArrayLike) -> str:
    """``higher`` or ``lower``, whichever links better on the full sample."""
    higher = equal_error_rate(score, target, "higher")
    return "lower" if equal_error_rate(score, target, "lower") < higher else "higher"


def error_curve(scores: Floats, targets: Bools) -> tuple[Floats, Floats]:
    """False-acceptance and miss rates at every distinct threshold, accepting all first."""
    order = np.argsort(scores, kind="stable")
    ends = group_ends(scores[order])
    miss = np.concatenate([[0.0], np.cumsum(targets[order])[ends] / targets.sum()])
    passed = np.cumsum(~targets[order])[ends] / (~targets).sum()
    return 1.0 - np.concatenate([[0.0], passed]), miss


def group_ends(ordered: Floats) -> NDArray[np.intp]:
    """Index of the last of each run of equal scores."""
    return np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True))


def crossing(false_alarm: Floats, miss: Floats) -> Floats:
    """Where two monotone curves of shape (draws, points) cross, interpolated; NaN if undefined."""
    gap = false_alarm - miss
    after = np.argmax(gap <= 0, axis=1)
    row = np.arange(len(gap))
    before = np.maximum(after - 1, 0)
    high, low = gap[row, before], gap[row, after]
    share = np.divide(high, high - low, out=np.zeros_like(high), where=high > low)
    rate: Floats = miss[row, before] + share * (miss[row, after] - miss[row, before])
    return rate


def hull_error_rate(score: ArrayLike, target: ArrayLike) -> float:
    """Equal error rate on the convex hull of the ROC (a lower envelope; diagnostic)."""
    scores, targets = check_scores(score, target)
    false_alarm, miss = error_curve(scores, targets)
    hull: list[tuple[float, float]] = []
    for x, y in zip(false_alarm[::-1], miss[::-1], strict=True):
        while len(hull) > 1 and _turns_up(hull[-2], hull[-1], (x, y)):
            hull.pop()
        hull.append((float(x), float(y)))
    points = np.array(hull[::-1])
    return float(crossing(points[None, :, 0], points[None, :, 1])[0])


def _turns_up(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    return (b[0] - a[0]) * (c[1] - a[1]) <= (b[1] - a[1]) * (c[0] - a[0])


@dataclass(frozen=True)
class TailRate:
    """True-positive rate at a false-positive rate, with the support behind it."""

    tpr: float
    fpr: float
    threshold: float
    n_tail: int
    """Non-target trials that the asked rate allows: ``floor(fpr * n)``."""
    resolvable: bool
    reason: str | None = None


def tpr_at_fpr(score: ArrayLike, target: ArrayLike, fpr: float) -> TailRate:
    """Largest true-positive rate whose false-positive rate does not exceed ``fpr``.

    Fewer than ten non-target trials in the tail: the value is given and flagged.
    """
    scores, targets = check_scores(score, target)
    if not 0 < fpr < 1:
        raise ValueError(f"fpr is {fpr}, expected a share between 0 and 1")
    non_target = np.sort(scores[~targets])[::-1]
    n_tail = math.floor(fpr * len(non_target) + 1e-9)
    # All scores above the first non-target that may not pass are accepted.
    threshold = float(non_target[n_tail])
    reason = None if n_tail >= MIN_TAIL else f"not resolvable: {n_tail} non-targets in the tail"
    reached = float((non_target > threshold).mean())
    tpr = float((scores[targets] > threshold).mean())
    return TailRate(tpr, reached, threshold, n_tail, reason is None, reason)


def log_likelihood_ratio_cost(llr: ArrayLike, target: ArrayLike) -> float:
    """Cllr in bits of natural-log likelihood ratios: 0 is perfect, 1 says nothing."""
    scores, targets = check_scores(llr, target)
    loss = np.logaddexp(0.0, np.where(targets, -scores, scores)) / math.log(2)
    return float((loss[targets].mean() + loss[~targets].mean()) / 2)


def minimum_cost(score: ArrayLike, target: ArrayLike) -> float:
    """minCllr: Cllr of the best monotone recalibration (pool adjacent violators)."""
    llr, n_target, n_nontarget = monotone_ratios(score, target)
    miss, alarm = np.logaddexp(0.0, -llr), np.logaddexp(0.0, llr)
    miss, alarm = (
        np.where(n > 0, loss, 0.0) @ n / n.sum()
        for n, loss in ((n_target, miss), (n_nontarget, alarm))
    )
    return float((miss + alarm) / (2 * math.log(2)))


def monotone_ratios(score: ArrayLike, target: ArrayLike) -> tuple[Floats, Floats, Floats]:
    """Log-likelihood ratios of the best monotone recalibration, one an equal score, ascending.

    Returns
    -------
    (llr, n_target, n_nontarget)
        ``llr`` is infinite where only one class has scores.
    """
    scores, targets = check_scores(score, target)
    order = np.argsort(scores, kind="stable")
    ends = group_ends(scores[order])
    n_target = np.diff(np.cumsum(targets[order])[ends], prepend=0).astype(float)
    n_group = np.diff(ends, prepend=-1).astype(float)
    share = np.clip(isotonic_regression(n_target / n_group, sample_weight=n_group), 0.0, 1.0)
    with np.errstate(divide="ignore"):
        llr = np.log(share) - np.log1p(-share) - math.log(targets.sum() / (~targets).sum())
    return llr, n_target, n_group - n_target


ZEBRA_TAGS = (("A", 1.0), ("B", 2.0), ("C", 4.0), ("D", 5.0), ("E", 6.0), ("F", math.inf))
"""Category of a worst case below so many powers of ten; no evidence at all is ``0``."""


@dataclass(frozen=True)
class Disclosure:
    """ZEBRA (Nautsch et al. 2020) of calibrated scores.

    ``population_bits`` is the mean information gain over all prior odds: 0 is perfect
    privacy, ``1 / (2 ln 2)`` = 0.72 full disclosure. ``individual_log10`` is the strongest
    evidence against one person as a power of ten, ``tag`` its category.
    """

    population_bits: float
    individual_log10: float
    tag: str


def zebra(score: ArrayLike, target: ArrayLike, n_priors: int = 200) -> Disclosure:
    """Expected and worst-case disclosure of the best monotone recalibration of the scores."""
    llr, n_target, n_nontarget = monotone_ratios(score, target)
    llr, level = np.unique(llr, return_inverse=True)
    n_target = np.bincount(level, n_target).astype(np.float64)
    n_nontarget = np.bincount(level, n_nontarget).astype(np.float64)
    nodes, weights = np.polynomial.legendre.leggauss(n_priors)
    prior, weights = 0.5 * (nodes + 1.0), 0.5 * weights
    gain = 0.0
    for p, weight in zip(prior, weights, strict=True):
        odds = llr + math.log(p / (1.0 - p))
        miss = np.where(n_target > 0, np.logaddexp(0.0, -odds), 0.0) @ n_target / n_target.sum()
        alarm = np.where(n_nontarget > 0, np.logaddexp(0.0, odds), 0.0) @ n_nontarget
        default = -p * math.log(p) - (1.0 - p) * math.log1p(-p)
        gain += weight * (default - p * miss - (1.0 - p) * alarm / n_nontarget.sum())
    worst = float(llr[n_target > 0].max() / math.log(10.0))
    tag = "0" if worst < 1e-6 else next(name for name, top in ZEBRA_TAGS if worst <= top)
    return Disclosure(max(0.0, float(gain / math.log(2.0))), worst, tag)


def calibrate(score: ArrayLike, target: ArrayLike, other: ArrayLike) -> Floats:
    """Log-likelihood ratios for ``other`` scores, from an affine map fitted on labelled ones.

    Logistic regression on standardised scores with both classes weighted alike, so that
    the fitted log odds are log-likelihood ratios; a weak penalty keeps them finite where
    the classes do not overlap. A cost is only fair on scores that the map has not seen.
    """
    scores, targets = check_scores(score, target)
    centre, spread = float(scores.mean()), float(scores.std()) or 1.0
    model = LogisticRegression(C=10.0, class_weight="balanced", max_iter=1_000)
    model.fit((scores[:, None] - centre) / spread, targets)
    fitted = model.decision_function((np.asarray(other, float)[:, None] - centre) / spread)
    return np.asarray(fitted, dtype=np.float64)


def linkability(score: ArrayLike, target: ArrayLike, prior_ratio: float = 1.0) -> float:
    """Global linkability D_sys of Gomez-Barrero et al. (2018): 0 unlinkable, 1 fully linkable.

    Score densities are histograms over the joint range, with one bin for ten mated
    (target) scores, at most 100.

    Returns
    -------
    float
        NaN with fewer than 20 mated scores: two bins would already be a guess.
    """
    scores, targets = check_scores(score, target)
    n_bins = min(100, int(targets.sum()) // MIN_PER_BIN)
    if n_bins < 2 or scores.min() == scores.max():
        return NAN
    edges = np.linspace(scores.min(), scores.max(), n_bins + 1)
    mated, non_mated = (
        np.histogram(scores[held], edges)[0] / held.sum() for held in (targets, ~targets)
    )
    # 2 w m / (w m + n) - 1 is the posterior of "mated" stretched to [0, 1]; below even odds 0.
    weight = prior_ratio * mated
    local = np.divide(
        2 * weight, weight + non_mated, out=np.ones_like(weight), where=weight + non_mated > 0
    )
    return float(np.maximum(local - 1, 0) @ mated)
