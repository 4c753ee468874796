"""Speaker-verification trials, and intervals over conversations for their error rates.

A trial compares an enrolment profile with a test profile; a target trial has the
same speaker on both sides. Two protocols (methods, speaker verification):

``final``
    Original speech against the reconstructed waveform of the same recording.
    Targets: the same profile. Non-targets: ordered pairs of different profiles of one
    conversation; some conversations have none. Intervals resample conversations.
``shared``
    Every original profile against every converted profile of the corpus. Intervals
    resample source profiles (the enrolment side; the test side is not reweighted).

Profiles are unit vectors (:mod:`aegis.windows` makes them), error rates and orientations
those of :mod:`aegis.error_rates`. The attacker's orientation is fixed on the full sample
and kept in every draw.

Functions: :func:`build_final_trials`, :func:`build_shared_trials`, :func:`keep_profiles`,
:func:`bootstrap_eer`, :func:`eer_difference`, :func:`weighted_eer`,
:func:`held_out_costs`. Only NumPy and scikit-learn are imported.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aegis.error_rates import (
    Bools,
    attacker_orientation,
    calibrate,
    crossing,
    equal_error_rate,
    group_ends,
    linkability,
    log_likelihood_ratio_cost,
    minimum_cost,
    zebra,
)
from aegis.stats import NAN, Estimate, Floats, draw_counts, with_interval

N_DRAWS = 2_000
MIN_SUPPORT = 10
_BLOCK_TRIALS = 1024


# --- trials ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trials:
    """Trials as columns of one length; ``cluster`` is what a bootstrap draw resamples.

    ``groups`` names every cluster of the population, with trials or without.
    """

    enrol: NDArray[Any]
    test: NDArray[Any]
    cluster: NDArray[Any]
    target: Bools
    score: Floats
    groups: tuple[str, ...]


def build_final_trials(
    enrol: Mapping[str, Floats], test: Mapping[str, Floats], recording: Mapping[str, str]
) -> Trials:
    """Trials within each conversation, from unit vectors by profile.

    ``recording`` gives the conversation of every profile; profiles that lack one side
    take no part on that side.
    """
    pairs = [(a, b) for a in sorted(enrol) for b in sorted(test) if recording[a] == recording[b]]
    groups = tuple(sorted({recording[name] for name in {*enrol, *test}}))
    return _trials(enrol, test, pairs, [recording[a] for a, _ in pairs], groups)


def build_shared_trials(enrol: Mapping[str, Floats], test: Mapping[str, Floats]) -> Trials:
    """Every enrolment profile against every test profile; clusters are source profiles."""
    names = sorted(enrol.keys() & test.keys())
    pairs = [(a, b) for a in names for b in names]
    return _trials(enrol, test, pairs, [a for a, _ in pairs], tuple(names))


def _trials(
    enrol: Mapping[str, Floats],
    test: Mapping[str, Floats],
    pairs: Sequence[tuple[str, str]],
    clusters: Sequence[str],
    groups: tuple[str, ...],
) -> Trials:
    a_names, b_names = sorted(enrol), sorted(test)
    first, second = (np.array([pair[side] for pair in pairs], dtype=object) for side in (0, 1))
    if not pairs:
        return Trials(first, second, first, np.zeros(0, bool), np.zeros(0), groups)
    cosine = np.stack([enrol[n] for n in a_names]) @ np.stack([test[n] for n in b_names]).T
    at_a, at_b = ({name: i for i, name in enumerate(names)} for names in (a_names, b_names))
    score = cosine[[at_a[name] for name in first], [at_b[name] for name in second]]
    return Trials(first, second, np.array(clusters, object), first == second, score, groups)


def keep_profiles(
    trials: Trials, profiles: set[str], pairs: set[tuple[str, str]] | None = None
) -> Trials:
    """The trials whose two profiles both belong to ``profiles``; the clusters stay.

    ``pairs`` asks in addition for the very same trials.
    """
    kept = np.array(
        [
            a in profiles and b in profiles and (pairs is None or (a, b) in pairs)
            for a, b in zip(trials.enrol, trials.test, strict=True)
        ],
        dtype=bool,
    )
    return Trials(
        trials.enrol[kept], trials.test[kept], trials.cluster[kept], trials.target[kept],
        trials.score[kept], trials.groups,
    )  # fmt: skip


# --- intervals -----------------------------------------------------------------------------


def bootstrap_eer(
    trials: Trials, rng: np.random.Generator, orientation: str = "attacker", n_draws: int = N_DRAWS
) -> Estimate:
    """EER with its interval; a draw weights each trial by its cluster's count.

    A draw in which one class has no weight is dropped and counted.
    """
    value, side = _oriented(trials, orientation)
    base = Estimate(value, n_items=len(trials.score), n_clusters=len(trials.groups))
    if math.isnan(value):
        return replace(base, status="not_applicable", reason="all scores are equal")
    if len(trials.groups) < 2:
        return replace(base, status="unknown", reason="one cluster: interval not estimable")
    counts = np.concatenate(draw_counts(len(trials.groups), n_draws, rng))
    return with_interval(base, weighted_eer(trials, counts, side))


def eer_difference(
    a: Trials,
    b: Trials,
    rng: np.random.Generator,
    orientation: str = "attacker",
    n_draws: int = N_DRAWS,
) -> Estimate:
    """EER of ``b`` minus EER of ``a`` on the profiles that have a target trial in both.

    Both sides take the same draw. Values of unmatched groups are never subtracted.
    """
    matched = set(a.enrol[a.target]) & set(b.enrol[b.target])
    first, second = keep_profiles(a, matched), keep_profiles(b, matched)
    groups = tuple(sorted(set(first.cluster) | set(second.cluster)))
    first, second = (replace(side, groups=groups) for side in (first, second))
    lacking = [side for side in (first, second) if side.target.all() or not side.target.any()]
    if lacking:
        reason = "no matched profiles" if not matched else "no matched non-target trials"
        return Estimate(NAN, n_items=len(matched), status="not_applicable", reason=reason)
    (value_a, side_a), (value_b, side_b) = (
        _oriented(side, orientation) for side in (first, second)
    )
    base = Estimate(value_b - value_a, n_items=len(matched), n_clusters=len(groups))
    if math.isnan(base.value):
        return replace(base, status="not_applicable", reason="all scores are equal")
    if len(groups) < 2:
        return replace(base, status="unknown", reason="one cluster: interval not estimable")
    counts = np.concatenate(draw_counts(len(groups), n_draws, rng))
    drawn = weighted_eer(second, counts, side_b) - weighted_eer(first, counts, side_a)
    return with_interval(base, drawn)


@dataclass(frozen=True)
class Costs:
    """``cllr`` on scores calibrated on the other half of the clusters, the others on raw ones.

    ``zebra_bits``, ``zebra_log10`` and ``zebra_tag`` are those of
    :class:`aegis.error_rates.Disclosure`.
    """

    cllr: float
    min_cllr: float
    d_sys: float
    zebra_bits: float
    zebra_log10: float
    zebra_tag: str | None
    reason: str | None = None


def held_out_costs(trials: Trials, rng: np.random.Generator) -> Costs:
    """Costs and linkability; each half of the clusters is calibrated on the other one."""
    disclosed = zebra(trials.score, trials.target)
    raw = (
        minimum_cost(trials.score, trials.target), linkability(trials.score, trials.target),
        disclosed.population_bits, disclosed.individual_log10, disclosed.tag,
    )  # fmt: skip
    first = set(rng.permutation(np.array(trials.groups, object))[: len(trials.groups) // 2])
    side = np.array([name in first for name in trials.cluster], dtype=bool)
    support = [int((trials.target[half] == of).sum()) for half in (side, ~side) for of in (0, 1)]
    if min(support) < MIN_SUPPORT:
        reason = f"not resolvable: {min(support)} trials of a class in a half of the clusters"
        return Costs(NAN, *raw, reason)
    llr = np.empty_like(trials.score)
    for half in (side, ~side):
        fitted = calibrate(trials.score[~half], trials.target[~half], trials.score[half])
        llr[half] = fitted
    return Costs(log_likelihood_ratio_cost(llr, trials.target), *raw)


def _oriented(trials: Trials, orientation: str) -> tuple[float, str]:
    """The point value, and the side that every draw uses."""
    side = orientation
    if orientation == "attacker":
        side = attacker_orientation(trials.score, trials.target)
    return equal_error_rate(trials.score, trials.target, side), side


def weighted_eer(trials: Trials, counts: Floats, orientation: str) -> Floats:
    """EER under each row of cluster counts (shape (draws, clusters), in order of ``groups``).

    Trials are sorted once and cut into blocks at ends of equal scores; weighted errors at
    block edges come from one matrix product, and only the block of the crossing is summed
    trial by trial. NaN where a class has no weight or one score holds all of it.
    """
    sign = 1.0 if orientation == "higher" else -1.0
    order = np.argsort(sign * trials.score, kind="stable")
    scores, targets = sign * trials.score[order], trials.target[order]
    cluster = _positions(trials)[order]
    edges = _block_edges(scores)
    # Counts are whole numbers, so sums are exact and block edges agree with trial sums.
    miss, passed = (_reached(held, cluster, edges, counts) for held in (targets, ~targets))
    valid = (miss[:, -1] > 0) & (passed[:, -1] > 0)
    total_miss, total_passed = (
        np.where(valid, side[:, -1], 1.0)[:, None] for side in (miss, passed)
    )
    gap = (1.0 - passed / total_passed) - miss / total_miss
    chosen = np.argmax(gap <= 0, axis=1) - 1
    rates = np.full(len(counts), NAN)
    for block in np.unique(chosen[valid]):
        rows = np.flatnonzero(valid & (chosen == block))
        part = slice(edges[block], edges[block + 1])
        ends, weight = group_ends(scores[part]), counts[np.ix_(rows, cluster[part])]
        missed = _continued(miss[rows, block], weight * targets[part], ends) / total_miss[rows]
        gone = _continued(passed[rows, block], weight * ~targets[part], ends) / total_passed[rows]
        rates[rows] = crossing(1.0 - gone, missed)
    rates[valid] = np.where(_one_score(trials, counts[valid]), NAN, rates[valid])
    return rates


def _positions(trials: Trials) -> NDArray[np.intp]:
    """The place of each trial's cluster in ``groups``."""
    at = {name: index for index, name in enumerate(trials.groups)}
    return np.array([at[name] for name in trials.cluster], dtype=np.intp)


def _reached(
    held: Bools, cluster: NDArray[np.intp], edges: NDArray[np.intp], counts: Floats
) -> Floats:
    """Weighted number of the trials ``held`` below each block edge: shape (draws, blocks + 1)."""
    n_blocks, n_clusters = len(edges) - 1, counts.shape[1]
    block = np.searchsorted(edges, np.flatnonzero(held), side="right") - 1
    flat = np.bincount(cluster[held] * n_blocks + block, minlength=n_clusters * n_blocks)
    sums = counts @ flat.reshape(n_clusters, n_blocks).astype(np.float64)
    return np.hstack([np.zeros((len(counts), 1)), np.cumsum(sums, axis=1)])


def _continued(start: Floats, weight: Floats, ends: NDArray[np.intp]) -> Floats:
    """Running sums from ``start`` on, at the start and at each end of equal scores."""
    return np.column_stack([start, start[:, None] + np.cumsum(weight, axis=1)[:, ends]])


def _block_edges(ordered: Floats) -> NDArray[np.intp]:
    """Cut sorted scores into blocks of at least ``_BLOCK_TRIALS``, never inside equal scores."""
    ends = group_ends(ordered) + 1
    wanted = np.arange(_BLOCK_TRIALS, len(ordered), _BLOCK_TRIALS)
    inner = np.unique(ends[np.searchsorted(ends, wanted)]) if len(wanted) else wanted
    return np.concatenate([[0], inner[inner < len(ordered)], [len(ordered)]]).astype(np.intp)


def _one_score(trials: Trials, counts: Floats) -> Bools:
    """Draws in which all weighted trials have one and the same score."""
    low = np.full(len(trials.groups), np.inf)
    high = np.full(len(trials.groups), -np.inf)
    where = _positions(trials)
    np.minimum.at(low, where, trials.score)
    np.maximum.at(high, where, trials.score)
    drawn = counts > 0
    lowest = np.where(drawn, low, np.inf).min(axis=1)
    same: Bools = lowest == np.where(drawn, high, -np.inf).max(axis=1)
    return same
