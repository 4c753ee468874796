"""Slow and plain versions of statistics, for comparison in tests."""

from __future__ import annotations

import itertools

import numpy as np


def brute_eer(score: np.ndarray, target: np.ndarray, weight: np.ndarray) -> float:
    """Every threshold by counting, then the crossing of the two broken lines."""
    points = [(1.0, 0.0)]
    for threshold in sorted(set(score)):
        passed = weight[~target & (score > threshold)].sum() / weight[~target].sum()
        missed = weight[target & (score <= threshold)].sum() / weight[target].sum()
        points.append((passed, missed))
    for (fa0, m0), (fa1, m1) in itertools.pairwise(points):
        if fa1 <= m1:
            share = (fa0 - m0) / ((fa0 - m0) + (m1 - fa1))
            return float(m0 + share * (m1 - m0))
    raise AssertionError


def standard_error(values: np.ndarray, clusters: object) -> float:
    """Cluster-robust standard error of an item-weighted mean, by its textbook formula."""
    values, names = np.asarray(values, float), np.asarray(clusters)
    groups = [values[names == name] - values.mean() for name in np.unique(names)]
    k = len(groups)
    return float(np.sqrt(k / (k - 1) * sum(g.sum() ** 2 for g in groups)) / len(values))
