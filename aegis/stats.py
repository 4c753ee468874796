"""Rates, paired effects and their uncertainty.

The unit of dependence is the conversation (one recording = one cluster). A rate
is a ratio of sums over items; a bootstrap draw keeps all items of a drawn
conversation, so it is a vector of multinomial counts over conversations and the
statistic is the ratio of count-weighted sums: exact, with no row copied. Rows may
come in any order: clusters are sorted by name and summed in a fixed order, so the
same data and generator give the same interval. Rates are in [0, 1]. What cannot be
computed is NaN with a status and a reason, never 0. Bounds say what unresolved
outcomes could do; they are not confidence intervals.

Only NumPy and SciPy are imported. Randomness is a ``numpy.random.Generator``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

Floats = NDArray[np.float64]
Statistic = Callable[[Floats], Floats]

NAN = float("nan")
N_DRAWS = 10_000
N_FLIPS = 20_000
_BLOCK_CELLS = 4_000_000


@dataclass(frozen=True)
class Estimate:
    """A point value with its percentile interval.

    ``status`` is ``ok``; ``unknown`` when the value stands and its interval cannot be
    estimated; ``not_applicable`` when there is nothing to compute. ``n_dropped`` counts
    draws in which the statistic was undefined; ``se`` is the standard deviation of the others.
    """

    value: float
    ci_low: float = NAN
    ci_high: float = NAN
    n_items: int = 0
    n_clusters: int = 0
    n_draws: int = 0
    n_dropped: int = 0
    status: str = "ok"
    reason: str | None = None
    se: float = NAN


@dataclass(frozen=True)
class SignFlip:
    """A two-sided paired sign-flip test at the level of conversations."""

    p: float
    statistic: float
    n_clusters: int
    n_draws: int
    status: str = "ok"
    reason: str | None = None


@dataclass(frozen=True)
class Bounds:
    """Identification bounds: the values at both extremes of the unresolved outcomes."""

    low: float
    high: float
    n_items: int
    n_unresolved: int
    reason: str | None = None


@dataclass(frozen=True)
class Kappa:
    """Cohen's unweighted kappa beside what it hides: raw agreement and both marginals."""

    kappa: float
    agreement: float
    n_items: int
    marginals_a: dict[Any, int]
    marginals_b: dict[Any, int]
    status: str = "ok"
    reason: str | None = None


def cluster_sums(columns: ArrayLike, clusters: Sequence[Hashable] | NDArray[Any]) -> Floats:
    """Sum the columns of shape (n,) or (n, m) within each cluster: shape (k, m), by sorted name.

    Raises
    ------
    ValueError
        A value is not finite, or the numbers of rows and of clusters differ.
    """
    table = np.asarray(columns, dtype=np.float64)
    table = table[:, None] if table.ndim == 1 else table
    names = np.asarray(clusters)
    if len(table) != len(names):
        raise ValueError(f"{len(table)} rows but {len(names)} cluster names")
    if not np.isfinite(table).all():
        bad = int((~np.isfinite(table)).any(axis=1).sum())
        raise ValueError(f"{bad} rows hold NaN or infinity; leave unresolved items out and say so")
    if not len(table):
        return np.zeros((0, table.shape[1]))
    _, position = np.unique(names, return_inverse=True)
    # Rows are ordered by value inside a cluster: floating sums then ignore the input order.
    order = np.lexsort((*table.T[::-1], position))
    starts = np.flatnonzero(np.diff(position[order], prepend=-1))
    return np.add.reduceat(table[order], starts, axis=0)


def bootstrap_sums(
    sums: Floats,
    statistic: Statistic,
    rng: np.random.Generator,
    n_items: int,
    n_draws: int = N_DRAWS,
    level: float = 0.95,
) -> Estimate:
    """Percentile interval of a function of cluster sums under resampled clusters.

    Parameters
    ----------
    sums
        Shape (k, m): one row a cluster.
    statistic
        Maps weighted sums of shape (draws, m) to values of shape (draws,); NaN = undefined.
    n_items
        Number of items behind the sums, for the record.
    """
    n_clusters = len(sums)
    if n_clusters == 0:
        return Estimate(NAN, status="not_applicable", reason="no items")
    value = float(_quiet(statistic, sums.sum(axis=0, keepdims=True))[0])
    base = Estimate(value, n_items=n_items, n_clusters=n_clusters)
    if math.isnan(value):
        return replace(base, status="not_applicable", reason="empty denominator")
    if n_clusters == 1:
        return replace(base, status="unknown", reason="one cluster: interval not estimable")
    drawn = np.concatenate(
        [_quiet(statistic, counts @ sums) for counts in draw_counts(n_clusters, n_draws, rng)]
    )
    return with_interval(base, drawn, level)


def with_interval(base: Estimate, drawn: Floats, level: float = 0.95) -> Estimate:
    """Give a point estimate the percentile interval of its draws; NaN draws are counted out."""
    kept = drawn[np.isfinite(drawn)]
    base = replace(base, n_draws=len(drawn), n_dropped=len(drawn) - len(kept))
    if not len(kept):
        return replace(base, status="unknown", reason="every draw was undefined")
    tail = 50.0 * (1.0 - level)
    low, high = np.percentile(kept, [tail, 100.0 - tail])
    se = float(np.std(kept, ddof=1)) if len(kept) > 1 else NAN
    return replace(base, ci_low=float(low), ci_high=float(high), se=se)


def draw_counts(n_clusters: int, n_draws: int, rng: np.random.Generator) -> list[Floats]:
    """Bootstrap draws as counts a cluster, in blocks of shape (block, n_clusters)."""
    block = max(1, _BLOCK_CELLS // max(1, n_clusters))
    sizes = [min(block, n_draws - done) for done in range(0, n_draws, block)]
    return [_count_drawn(n_clusters, size, rng) for size in sizes]


def _count_drawn(n_clusters: int, n_draws: int, rng: np.random.Generator) -> Floats:
    """How often each cluster is drawn; counting drawn positions is faster than a multinomial."""
    drawn = rng.integers(0, n_clusters, size=(n_draws, n_clusters))
    drawn += n_clusters * np.arange(n_draws)[:, None]
    counts = np.bincount(drawn.ravel(), minlength=n_draws * n_clusters)
    return counts.reshape(n_draws, n_clusters).astype(np.float64)


def ratio_rate(
    numerator: ArrayLike,
    denominator: ArrayLike,
    clusters: Sequence[Hashable] | NDArray[Any],
    rng: np.random.Generator,
    n_draws: int = N_DRAWS,
) -> Estimate:
    """Ratio of sums (for example word errors over reference words) with its interval."""
    sums = cluster_sums(np.column_stack([numerator, denominator]), clusters)
    return bootstrap_sums(sums, _ratio, rng, len(np.asarray(numerator)), n_draws)


def rate(
    outcome: ArrayLike,
    clusters: Sequence[Hashable] | NDArray[Any],
    rng: np.random.Generator,
    n_draws: int = N_DRAWS,
) -> Estimate:
    """Item-weighted rate: pooled count over items. ``outcome`` is 0/1 (or any number) an item."""
    values = np.asarray(outcome, dtype=np.float64)
    return ratio_rate(values, np.ones_like(values), clusters, rng, n_draws)


def equal_conversation_rate(
    numerator: ArrayLike,
    denominator: ArrayLike,
    clusters: Sequence[Hashable] | NDArray[Any],
    rng: np.random.Generator,
    n_draws: int = N_DRAWS,
) -> Estimate:
    """Mean of the within-conversation rates; conversations with an empty denominator are out."""
    sums = cluster_sums(np.column_stack([numerator, denominator]), clusters)
    filled = sums[sums[:, 1] > 0]
    rates = np.column_stack([filled[:, 0] / filled[:, 1], np.ones(len(filled))])
    return bootstrap_sums(rates, _ratio, rng, len(np.asarray(numerator)), n_draws)


def paired_difference(
    a: ArrayLike,
    b: ArrayLike,
    clusters: Sequence[Hashable] | NDArray[Any],
    rng: np.random.Generator,
    n_draws: int = N_DRAWS,
) -> Estimate:
    """Item-weighted rate of ``b`` minus that of ``a`` on the same items, in the same order."""
    return rate(np.asarray(b, float) - np.asarray(a, float), clusters, rng, n_draws)


def ratio_difference(
    a: tuple[ArrayLike, ArrayLike],
    b: tuple[ArrayLike, ArrayLike],
    clusters: Sequence[Hashable] | NDArray[Any],
    rng: np.random.Generator,
    n_draws: int = N_DRAWS,
) -> Estimate:
    """Ratio of sums in ``b`` minus that in ``a``, each ``(numerator, denominator)``."""
    sums = cluster_sums(np.column_stack([*a, *b]), clusters)
    return bootstrap_sums(
        sums, lambda s: _ratio(s[:, 2:]) - _ratio(s[:, :2]), rng, len(np.asarray(a[0])), n_draws
    )


def stratified_rate(
    outcome: ArrayLike,
    strata: Sequence[Hashable] | NDArray[Any],
    population: Mapping[Any, int],
    clusters: Sequence[Hashable] | NDArray[Any],
    rng: np.random.Generator,
    n_draws: int = N_DRAWS,
) -> Estimate:
    """Population-weighted rate of a stratified sample, ``p_w = sum_h N_h / N p_h``.

    Clusters are resampled within the sample; a draw that misses a stratum is dropped and
    counted. Give ``b - a`` as the outcome for a weighted paired difference.

    Raises
    ------
    ValueError
        An item lies in a stratum without a population size.
    """
    names, values = sorted(population), np.asarray(outcome, dtype=np.float64)
    unknown = sorted(set(np.asarray(strata).tolist()) - set(names))
    if unknown:
        raise ValueError(f"no population size for strata {unknown[:3]}")
    member = np.column_stack([np.asarray(strata) == name for name in names]).astype(np.float64)
    shares = np.array([population[name] for name in names], float) / sum(population.values())
    sums = cluster_sums(np.hstack([member * values[:, None], member]), clusters)
    width = len(names)
    return bootstrap_sums(
        sums, lambda s: (s[:, :width] / s[:, width:]) @ shares, rng, len(values), n_draws
    )


def f1_rate(
    true_positive: ArrayLike,
    false_positive: ArrayLike,
    false_negative: ArrayLike,
    queries: Sequence[Hashable] | NDArray[Any],
    rng: np.random.Generator,
    n_draws: int = 2_000,
) -> Estimate:
    """Pooled F1 with queries resampled: ``2 tp / (2 tp + fp + fn)``."""
    columns = np.column_stack([true_positive, false_positive, false_negative])
    return bootstrap_sums(
        cluster_sums(columns, queries),
        lambda s: 2 * s[:, 0] / (2 * s[:, 0] + s[:, 1] + s[:, 2]),
        rng,
        len(columns),
        n_draws,
    )


def sign_flip(
    differences: ArrayLike,
    clusters: Sequence[Hashable] | NDArray[Any],
    rng: np.random.Generator,
    n_draws: int = N_FLIPS,
) -> SignFlip:
    """Flip the sign of each conversation's paired sum; ``p = (1 + #{|T*| >= |T|}) / (1 + R)``."""
    sums = cluster_sums(differences, clusters)[:, 0]
    if not len(sums):
        return SignFlip(NAN, NAN, 0, 0, "not_applicable", "no items")
    total = float(sums.sum())
    if len(sums) == 1:
        return SignFlip(NAN, total, 1, 0, "not_applicable", "one cluster: no test")
    # Equal totals may differ by rounding; without the slack ties would be lost.
    limit = abs(total) - 1e-12 * float(np.abs(sums).sum())
    block = max(1, _BLOCK_CELLS // len(sums))
    sizes = [min(block, n_draws - done) for done in range(0, n_draws, block)]
    flips = (2.0 * rng.integers(0, 2, size=(size, len(sums))) - 1.0 for size in sizes)
    extreme = sum(int((np.abs(signs @ sums) >= limit).sum()) for signs in flips)
    return SignFlip((1 + extreme) / (1 + n_draws), total, len(sums), n_draws)


def holm(p_values: Mapping[str, float], family_size: int) -> dict[str, float]:
    """Holm-adjusted p values within a declared family; a missing p (NaN) still takes its place.

    Raises
    ------
    ValueError
        More tests than the declared family, or a p outside [0, 1].
    """
    if len(p_values) > family_size:
        raise ValueError(f"{len(p_values)} tests in a family declared as {family_size}")
    known = {name: p for name, p in p_values.items() if not math.isnan(p)}
    if any(not 0.0 <= p <= 1.0 for p in known.values()):
        raise ValueError("a p value lies outside [0, 1]")
    adjusted, running = dict.fromkeys(p_values, NAN), 0.0
    for rank, name in enumerate(sorted(known, key=lambda name: (known[name], name))):
        running = max(running, min(1.0, (family_size - rank) * known[name]))
        adjusted[name] = running
    return adjusted


def wilson(successes: int, n: int, level: float = 0.95) -> Estimate:
    """A single proportion with its Wilson score interval."""
    _check_count(successes, n)
    if n == 0:
        return Estimate(NAN, status="not_applicable", reason="no items")
    z, p = float(special.ndtri(0.5 + level / 2)), successes / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    low = 0.0 if successes == 0 else centre - half
    high = 1.0 if successes == n else centre + half
    return Estimate(p, low, high, n_items=n)


def clopper_pearson(successes: int, n: int, level: float = 0.95) -> Estimate:
    """A single proportion with its exact binomial interval."""
    _check_count(successes, n)
    if n == 0:
        return Estimate(NAN, status="not_applicable", reason="no items")
    tail, rest = (1 - level) / 2, n - successes
    low = float(special.betaincinv(successes, rest + 1, tail)) if successes else 0.0
    high = float(special.betaincinv(successes + 1, rest, 1 - tail)) if rest else 1.0
    return Estimate(successes / n, low, high, n_items=n)


def cohen_kappa(a: Sequence[Hashable], b: Sequence[Hashable]) -> Kappa:
    """Unweighted agreement of two label lists, item by item; uncertain is a class of its own."""
    if len(a) != len(b):
        raise ValueError(f"{len(a)} labels against {len(b)}")
    names = sorted({*a, *b}, key=str)
    counts_a = {name: sum(label == name for label in a) for name in names}
    counts_b = {name: sum(label == name for label in b) for name in names}
    if not len(a):
        return Kappa(NAN, NAN, 0, {}, {}, "not_applicable", "no items")
    agreement = sum(x == y for x, y in zip(a, b, strict=True)) / len(a)
    chance = sum(counts_a[name] * counts_b[name] for name in names) / len(a) ** 2
    if len(names) == 1:
        reason = f"both raters only ever say {names[0]!r}"
        return Kappa(NAN, agreement, len(a), counts_a, counts_b, "not_applicable", reason)
    return Kappa((agreement - chance) / (1 - chance), agreement, len(a), counts_a, counts_b)


def identification_bounds(positive: int, unresolved: int, n: int) -> Bounds:
    """Bounds of a rate: every unresolved outcome negative, then every one positive."""
    _check_count(positive + unresolved, n)
    if n == 0:
        return Bounds(NAN, NAN, 0, 0, "no items")
    return Bounds(positive / n, (positive + unresolved) / n, n, unresolved)


def difference_bounds(a: tuple[int, int], b: tuple[int, int], n: int) -> Bounds:
    """Bounds of the rate in ``b`` minus ``a``, each ``(positive, unresolved)`` of ``n`` items."""
    first, second = identification_bounds(*a, n), identification_bounds(*b, n)
    reason = "no items" if n == 0 else None
    return Bounds(second.low - first.high, second.high - first.low, n, a[1] + b[1], reason)


def match_items(
    a: Sequence[Hashable], b: Sequence[Hashable]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Positions in ``a`` and ``b`` of the ids that both hold, in sorted order of id.

    Raises
    ------
    ValueError
        An id repeats within one of the lists.
    """
    for name, ids in (("a", a), ("b", b)):
        if len(set(ids)) != len(ids):
            raise ValueError(f"{len(ids) - len(set(ids))} repeated ids in {name}")
    at_a = {item: index for index, item in enumerate(a)}
    at_b = {item: index for index, item in enumerate(b)}
    shared = sorted(at_a.keys() & at_b.keys(), key=str)
    first = np.array([at_a[item] for item in shared], dtype=np.intp)
    return first, np.array([at_b[item] for item in shared], dtype=np.intp)


def detectable(se: float, alpha: float = 0.05, power: float = 0.8) -> float:
    """The smallest true difference that a two-sided test finds with ``power``.

    ``se`` is the standard error of the observed paired difference; without spread (0 or NaN)
    nothing can be said. A plan, not evidence of equivalence.
    """
    if not se > 0:
        return NAN
    return float(special.ndtri(1 - alpha / 2) + special.ndtri(power)) * se


def _ratio(sums: Floats) -> Floats:
    """Column 0 over column 1; an empty denominator gives NaN."""
    ratio: Floats = np.where(sums[:, 1] > 0, sums[:, 0] / sums[:, 1], np.nan)
    return ratio


def _quiet(statistic: Statistic, sums: Floats) -> Floats:
    """Evaluate a statistic whose undefined values are NaN by design."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return statistic(sums)


def _check_count(successes: int, n: int) -> None:
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n} items")
