"""What leaks besides verification: attributes, search, structure, low false-positive attacks.

Follows two papers. The five dimensions (NIST, appendix U): soft biometric leakage
score, cumulative match characteristic, canonical correlation and Procrustes
alignment; EER lives in ``trials``. The low false-positive attacks (VoxGuard,
appendix V): TPR at a calibrated threshold and the attack statistic eps_hat. All
privacy values lie in [0, 1], 1 = nothing leaks. Embeddings are rows; speakers are
labels; a resample draws speakers, never segments.

Imports numpy, scipy and scikit-learn only; nearest-neighbour search is passed in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# (alpha, beta, gamma) of attribute, association and subgroup privacy; NIST section 5.2.3.
WEIGHTINGS: dict[str, tuple[float, float, float]] = {
    "default": (0.4, 0.4, 0.2),
    "equal": (0.33, 0.33, 0.34),
    "alpha_heavy": (0.6, 0.2, 0.2),
    "beta_heavy": (0.2, 0.6, 0.2),
    "gamma_heavy": (0.2, 0.2, 0.6),
    "no_subgroup": (0.5, 0.5, 0.0),
    "minimal_subgroup": (0.45, 0.45, 0.1),
}


def sbls(
    attribute: float,
    association: float,
    subgroup: float,
    weighting: tuple[float, float, float] = WEIGHTINGS["default"],
) -> float:
    """Soft biometric leakage score (NIST eq. 1): 1 means that nothing leaks."""
    return float(np.dot(weighting, (attribute, association, subgroup)))


def class_aucs(labels: Sequence[str], scores: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """One-vs-rest AUC of each class that occurs among ``labels`` and is not the only one.

    Parameters
    ----------
    labels
        True class of each segment, shape (n,).
    scores
        Class -> the attacker's score of each segment, shape (n,).
    """
    from sklearn.metrics import roc_auc_score

    truth = np.asarray(labels)
    present = [name for name in scores if 0 < int((truth == name).sum()) < truth.size]
    return {name: float(roc_auc_score(truth == name, scores[name])) for name in present}


def attribute_privacy(mean_aucs: Sequence[float]) -> float:
    """``P_attr`` (NIST eq. 2) from the mean one-vs-rest AUC of each attribute.

    An AUC below chance counts as chance. No classes are permuted: NIST's text asks for
    aligned permutations, but its Table 5 follows only without.
    """
    excess = np.maximum(0.0, np.asarray(mean_aucs, dtype=float) - 0.5) / 0.5
    return float(1.0 - excess.mean()) if excess.size else float("nan")


def association(labels: Sequence[str], predictions: Sequence[str], n_classes: int) -> float:
    """Mutual information of truth and prediction over ``log n_classes`` (NIST eq. 3), in [0, 1].

    Raises
    ------
    ValueError
        Fewer than two classes: the ratio is undefined.
    """
    from sklearn.metrics import mutual_info_score

    if n_classes < 2:
        raise ValueError("association needs at least two classes")
    return float(mutual_info_score(labels, predictions) / np.log(n_classes))


def subgroup_privacy(leakage: Mapping[str, float], weight: float = 0.7) -> float:
    """``P_subgroup`` (NIST eq. 4): the worst group, and how even the groups are.

    ``leakage`` maps a subgroup to the share of its segments whose attributes are all
    predicted right. Where every group leaks fully the evenness is 1 (all are equal).
    """
    kept = 1.0 - np.array(list(leakage.values()), dtype=float)
    if kept.size == 0:
        return float("nan")
    evenness = float(kept.min() / kept.max()) if kept.max() > 0 else 1.0
    return float(weight * kept.min() + (1.0 - weight) * evenness)


def fully_predicted(
    truth: Mapping[str, Sequence[str]], predictions: Mapping[str, Sequence[str]]
) -> dict[str, tuple[int, int]]:
    """Subgroup (all attributes' values joined) -> (segments all predicted right, segments)."""
    names = list(truth)
    columns = np.array([list(truth[name]) for name in names], dtype=object)
    guessed = np.array([list(predictions[name]) for name in names], dtype=object)
    groups = np.array([" ".join(column) for column in columns.T])
    right = (columns == guessed).all(axis=0)
    return {
        str(group): (int(right[groups == group].sum()), int((groups == group).sum()))
        for group in np.unique(groups)
    }


Search = Callable[[Floats, Floats, int], NDArray[np.int64]]


def exact_search(gallery: Floats, probes: Floats, k: int) -> NDArray[np.int64]:
    """Indices of the ``k`` nearest gallery rows by inner product, ties by index."""
    return np.argsort(-(probes @ gallery.T), axis=1, kind="stable")[:, :k]


def chance_cmc(n_relevant: int, n_gallery: int, k: int) -> float:
    """CMC@k of a gallery in random order that holds ``n_relevant`` rows of the speaker."""
    from scipy.stats import hypergeom

    return float(1.0 - hypergeom.pmf(0, n_gallery, n_relevant, min(k, n_gallery)))


def permuted_cmc(
    nearest: NDArray[np.int64],
    gallery_speakers: NDArray[np.int64],
    probe_speakers: NDArray[np.int64],
    at: Sequence[int],
    rng: np.random.Generator,
    n_permutations: int = 200,
) -> list[tuple[float, float, float]]:
    """Mean and central 95 % of CMC@k when the gallery's names are dealt anew.

    ``nearest`` are the gallery rows found for each probe, shape (probes, at least max k).
    """
    shares = np.empty((n_permutations, len(at)))
    for row in shares:
        renamed = rng.permutation(gallery_speakers)
        hits = renamed[nearest] == probe_speakers[:, None]
        row[:] = [hits[:, :k].any(axis=1).mean() for k in at]
    low, high = np.percentile(shares, [2.5, 97.5], axis=0)
    return [
        (float(m), float(a), float(b))
        for m, a, b in zip(shares.mean(axis=0), low, high, strict=True)
    ]


@dataclass(frozen=True)
class Alignment:
    """How well one embedding space follows from another, held out and in sample."""

    held_out: float
    in_sample: float
    n_train: int
    n_test: int
    dimension: int


def canonical_correlation(
    original: Floats, anonymised: Floats, train: NDArray[np.bool_], n_top: int = 10
) -> Alignment:
    """Mean of the top canonical correlations, fitted on ``train`` rows, measured on both sides.

    In sample it tends to 1 as rows approach dimensions whatever the pairing, so only the
    held-out value measures leakage. Solved by QR and SVD, exact and not iterative.
    """
    x, y = original[train], anonymised[train]
    mean_x, mean_y = x.mean(axis=0), y.mean(axis=0)
    whiten_x, whiten_y = _whitening(x - mean_x), _whitening(y - mean_y)
    u, _, vt = np.linalg.svd(((x - mean_x) @ whiten_x).T @ ((y - mean_y) @ whiten_y))
    n = min(n_top, u.shape[1], vt.shape[0])
    a, b = whiten_x @ u[:, :n], whiten_y @ vt[:n].T

    def mean_correlation(rows: NDArray[np.bool_]) -> float:
        left, right = (original[rows] - mean_x) @ a, (anonymised[rows] - mean_y) @ b
        left, right = left - left.mean(axis=0), right - right.mean(axis=0)
        norm = np.linalg.norm(left, axis=0) * np.linalg.norm(right, axis=0)
        return float(np.mean((left * right).sum(axis=0) / np.where(norm > 0, norm, np.inf)))

    counts = int(train.sum()), int((~train).sum())
    return Alignment(mean_correlation(~train), mean_correlation(train), *counts, original.shape[1])


def _whitening(centred: Floats) -> Floats:
    """Maps centred rows to uncorrelated unit-norm columns; directions without variance are cut."""
    _, singular, vt = np.linalg.svd(centred, full_matrices=False)
    keep = singular > singular[0] * 1e-10
    return np.asarray(vt[keep].T / singular[keep])


def procrustes(original: Floats, anonymised: Floats, train: NDArray[np.bool_]) -> Alignment:
    """Mean cosine after the best rotation from original to anonymised, fitted on ``train``."""
    from scipy.linalg import orthogonal_procrustes

    rotation, _ = orthogonal_procrustes(original[train], anonymised[train])

    def mean_cosine(rows: NDArray[np.bool_]) -> float:
        turned, target = original[rows] @ rotation, anonymised[rows]
        norm = np.linalg.norm(turned, axis=1) * np.linalg.norm(target, axis=1)
        return float(np.mean((turned * target).sum(axis=1) / np.where(norm > 0, norm, np.inf)))

    counts = int(train.sum()), int((~train).sum())
    return Alignment(mean_cosine(~train), mean_cosine(train), *counts, original.shape[1])


def speaker_split(
    speakers: Sequence[str], share: float, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """True for rows of about ``share`` of the speakers; no speaker is on both sides."""
    names = np.unique(np.asarray(speakers))
    n_train = min(max(1, round(share * names.size)), names.size - 1)
    return np.isin(np.asarray(speakers), rng.permutation(names)[:n_train])


def eps_hat(tpr: float, fpr: float) -> float:
    """Empirical attack statistic ``max(ln(TPR/FPR), ln((1-FPR)/(1-TPR)))`` (VoxGuard).

    It describes one attack and is no differential-privacy guarantee. Infinite where the
    attack makes no false positives, or misses nothing; NaN where a rate is NaN.
    """
    if np.isnan(tpr) or np.isnan(fpr):
        return float("nan")
    hit = np.inf if fpr == 0 and tpr > 0 else (np.log(tpr / fpr) if tpr > 0 else -np.inf)
    miss = (
        np.inf if tpr == 1 and fpr < 1 else (np.log((1 - fpr) / (1 - tpr)) if fpr < 1 else -np.inf)
    )
    return float(max(hit, miss))


def clopper_pearson(hits: int, n: int, level: float = 0.975) -> tuple[float, float]:
    """One-sided exact limits of a proportion, each at ``level``; (0, 1) when ``n`` is 0."""
    from scipy.stats import beta

    if n == 0:
        return 0.0, 1.0
    low = float(beta.ppf(1 - level, hits, n - hits + 1)) if hits > 0 else 0.0
    high = float(beta.ppf(level, hits + 1, n - hits)) if hits < n else 1.0
    return low, high


def eps_hat_lower(hits: int, n_target: int, false_hits: int, n_nontarget: int) -> float:
    """The value that the data support: ``eps_hat`` from Clopper-Pearson limits.

    Optimistic where several trials share a speaker, since the limits assume
    independent trials.
    """
    tpr_low, _ = clopper_pearson(hits, n_target)
    _, fpr_high = clopper_pearson(false_hits, n_nontarget)
    if fpr_high >= 1.0:
        return float("-inf")
    hit = np.log(tpr_low / fpr_high) if tpr_low > 0 else -np.inf
    miss = np.log((1 - fpr_high) / (1 - tpr_low)) if tpr_low < 1 else np.inf
    return float(max(hit, miss))


@dataclass(frozen=True)
class CalibratedRate:
    """TPR at a held-out threshold for one nominal FPR, over speaker splits.

    ``n_tail`` is the number of negatives that the nominal FPR leaves in the calibration
    half (median over splits); below 10 the cell is not resolvable. ``hits`` to
    ``n_nontarget`` are mean counts of a test half.
    """

    nominal_fpr: float
    tpr: float
    ci_low: float
    ci_high: float
    realised_fpr: float
    n_tail: float
    n_speakers_hit: float
    n_splits: int
    hits: float
    n_target: float
    false_hits: float
    n_nontarget: float

    @property
    def resolvable(self) -> bool:
        return self.n_tail >= 10

    @property
    def eps(self) -> float:
        return eps_hat(self.tpr, self.nominal_fpr)

    @property
    def eps_lower(self) -> float:
        """From exact limits of a test half's rounded counts."""
        counts = (self.hits, self.n_target, self.false_hits, self.n_nontarget)
        return eps_hat_lower(*(round(value) for value in counts))


def calibrated_tpr(
    scores: Floats,
    target: NDArray[np.bool_],
    speakers: Sequence[str],
    others: Sequence[str],
    nominal_fprs: Sequence[float],
    rng: np.random.Generator,
    n_splits: int = 200,
) -> list[CalibratedRate]:
    """Threshold from one half of the speakers, TPR and FPR on the other (methods of appendix V).

    Parameters
    ----------
    scores, target
        Score and truth of each trial, shape (n,); higher means same.
    speakers, others
        The enrolled and the tested speaker of each trial. A split uses the trials whose
        two speakers fall into one half.
    nominal_fprs
        The false-positive rates that the threshold aims at.

    Raises
    ------
    ValueError
        A class is empty, there are fewer than two speakers, or no split has both classes
        on both sides.
    """
    names, code = np.unique(np.asarray([*speakers, *others]), return_inverse=True)
    first, second = code[: len(scores)], code[len(scores) :]
    if target.all() or not target.any() or names.size < 2:
        raise ValueError("calibration needs targets, non-targets and at least two speakers")
    ranked = np.argsort(scores, kind="stable")[::-1]
    scores, target, first, second = scores[ranked], target[ranked], first[ranked], second[ranked]
    draws: list[NDArray[np.float64]] = []
    for _ in range(n_splits):
        chosen = np.zeros(names.size, dtype=bool)
        chosen[rng.permutation(names.size)[: names.size // 2]] = True
        a, b = chosen[first], chosen[second]
        taught, tested = a & b, ~a & ~b
        negatives, held = scores[taught & ~target], scores[tested]
        truth, who = target[tested], first[tested]
        if not negatives.size or not truth.any() or truth.all():
            continue
        rows = [_held_out(negatives, held, truth, who, fpr) for fpr in nominal_fprs]
        draws.append(np.array(rows))
    if not draws:
        raise ValueError("no split has targets and non-targets on both sides")
    return [_summary(np.stack(draws)[:, i], fpr) for i, fpr in enumerate(nominal_fprs)]


def _held_out(
    negatives: Floats,
    held: Floats,
    truth: NDArray[np.bool_],
    who: NDArray[np.int64],
    nominal_fpr: float,
) -> tuple[float, ...]:
    """One split, scores descending: hits, targets, false hits, non-targets, tail, speakers."""
    allowed = int(np.floor(nominal_fpr * negatives.size + 1e-9))
    threshold = negatives[allowed] if allowed < negatives.size else -np.inf
    passed = held > threshold
    hits = passed & truth
    n_target = int(truth.sum())
    return (
        int(hits.sum()), n_target, int(passed.sum() - hits.sum()), truth.size - n_target,
        nominal_fpr * negatives.size, np.unique(who[hits]).size,
    )  # fmt: skip


def _summary(table: NDArray[np.float64], nominal_fpr: float) -> CalibratedRate:
    hits, n_target, false_hits, n_nontarget, tail, speakers = table.T
    rate = hits / n_target
    low, high = np.percentile(rate, [2.5, 97.5])
    return CalibratedRate(
        nominal_fpr,
        tpr=float(rate.mean()),
        ci_low=float(low),
        ci_high=float(high),
        realised_fpr=float((false_hits / n_nontarget).mean()),
        n_tail=float(np.median(tail)),
        n_speakers_hit=float(np.median(speakers)),
        n_splits=len(table),
        hits=float(hits.mean()),
        n_target=float(n_target.mean()),
        false_hits=float(false_hits.mean()),
        n_nontarget=float(n_nontarget.mean()),
    )
