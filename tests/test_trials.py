"""Trials and error rates against hand examples, published score files and brute force."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_curve

from aegis import trials as tr
from aegis.stats import draw_counts
from aegis.tables import PROJECT
from aegis.windows import profile_vector

DATA = PROJECT.parent / "shared" / "data"
FVCAUS = DATA / "metrics_fvcaus_llr" / "fvcaus_plda"
ASVSPOOF = DATA / "metrics_asvspoof_demo_scores" / "scores"
needs_fvcaus = pytest.mark.skipif(not FVCAUS.exists(), reason=f"no {FVCAUS}")
needs_asvspoof = pytest.mark.skipif(not ASVSPOOF.exists(), reason=f"no {ASVSPOOF}")


def rng() -> np.random.Generator:
    return np.random.default_rng(20261005)


# --- published score files ---


def fvcaus() -> tuple[np.ndarray, np.ndarray]:
    scores, target = np.load(FVCAUS / "scores.npy"), np.load(FVCAUS / "targets.npy")
    return scores[:, 1].astype(float) - scores[:, 0], target.astype(bool)


def asvspoof(name: str, positive: str, negatives: set[str]) -> tuple[np.ndarray, np.ndarray]:
    rows = [line.split() for line in (ASVSPOOF / name).read_text().splitlines()]
    kept = [row for row in rows if {positive, *negatives} & set(row[1:3])]
    score = np.array([float(row[-1]) for row in kept])
    return score, np.array([positive in row[1:3] for row in kept])


@needs_fvcaus
def test_reference_values_of_fvcaus() -> None:
    score, target = fvcaus()
    assert round(100 * tr.equal_error_rate(score, target), 3) == 0.120
    assert round(100 * tr.hull_error_rate(score, target), 3) == 0.098
    assert round(tr.log_likelihood_ratio_cost(score, target), 4) == 0.1256
    assert round(tr.minimum_cost(score, target), 4) == 0.0026


@needs_fvcaus
@pytest.mark.parametrize(("fpr", "tpr"), [(1e-2, 1.0), (1e-3, 0.998), (1e-4, 0.9919)])
def test_reference_tail_rates_of_fvcaus(fpr: float, tpr: float) -> None:
    rate = tr.tpr_at_fpr(*fvcaus(), fpr)
    assert rate.tpr == pytest.approx(tpr, abs=5e-5)
    assert rate.resolvable
    assert rate.fpr <= fpr


@needs_asvspoof
def test_reference_values_of_asvspoof() -> None:
    score, target = asvspoof("asv_dev.txt", "target", {"nontarget"})
    assert (target.sum(), (~target).sum()) == (924, 4536)
    assert round(100 * tr.equal_error_rate(score, target), 3) == 4.437
    assert round(100 * tr.hull_error_rate(score, target), 3) == 4.360
    assert round(tr.log_likelihood_ratio_cost(score, target), 4) == 0.1613
    assert round(tr.minimum_cost(score, target), 4) == 0.1529
    score, target = asvspoof("cm_dev.txt", "bonafide", {"spoof"})
    assert round(100 * tr.equal_error_rate(score, target), 3) == 4.670


# --- error rates by hand ---


def test_eer_by_hand() -> None:
    """Targets 3 2, non-targets 1 2.5: between thresholds both rates are one half."""
    assert tr.equal_error_rate([3, 2, 1, 2.5], [1, 1, 0, 0]) == pytest.approx(0.5)
    assert tr.equal_error_rate([3, 2, 1, 0], [1, 1, 0, 0]) == 0.0
    assert tr.equal_error_rate([3, 2, 1, 0], [1, 1, 0, 0], "lower") == 1.0


def test_eer_groups_equal_scores_and_interpolates() -> None:
    """Two targets 1, 0 and two non-targets 1, 0: one tied step from (1, 0) to (0.5, 0.5)."""
    assert tr.equal_error_rate([1, 0, 1, 0], [1, 1, 0, 0]) == pytest.approx(0.5)
    # Targets 2 2 1, non-targets 1 0: points (1,0) (.5,0) (0,1/3); crossing on the last piece.
    assert tr.equal_error_rate([2, 2, 1, 1, 0], [1, 1, 1, 0, 0]) == pytest.approx(0.2)


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


SCORED = st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=2, max_size=40).filter(
    lambda rows: len({label for _, label in rows}) == 2 and len({score for score, _ in rows}) > 1
)


@settings(deadline=None, max_examples=80)
@given(SCORED)
def test_eer_equals_brute_force_and_orientations_mirror(rows: list[tuple[int, bool]]) -> None:
    score = np.array([row[0] for row in rows], float)
    target = np.array([row[1] for row in rows])
    higher = tr.equal_error_rate(score, target)
    assert higher == pytest.approx(brute_eer(score, target, np.ones(len(rows))))
    assert tr.equal_error_rate(score, target, "lower") == pytest.approx(1 - higher)
    assert tr.equal_error_rate(score, target, "attacker") == pytest.approx(min(higher, 1 - higher))
    assert tr.hull_error_rate(score, target) <= higher + 1e-12
    assert tr.equal_error_rate(np.exp(score), target) == pytest.approx(higher)


def test_eer_lies_on_the_curve_of_scikit_learn() -> None:
    source = np.random.default_rng(3)
    target = source.random(500) < 0.3
    score = source.normal(size=500) + target
    fpr, tpr, _ = roc_curve(target, score, drop_intermediate=False)
    rate = tr.equal_error_rate(score, target)
    assert np.interp(rate, fpr, 1 - tpr) == pytest.approx(rate, abs=2e-2)


def test_refused_and_undefined_scores() -> None:
    with pytest.raises(ValueError, match="no non-target trials"):
        tr.equal_error_rate([1, 2], [1, 1])
    with pytest.raises(ValueError, match="no target and no non-target trials"):
        tr.equal_error_rate([], [])
    with pytest.raises(ValueError, match="1 of 2 scores are NaN"):
        tr.equal_error_rate([1, math.nan], [1, 0])
    with pytest.raises(ValueError, match="known: higher, lower, attacker"):
        tr.equal_error_rate([1, 0], [1, 0], "best")
    assert math.isnan(tr.equal_error_rate([1, 1, 1], [1, 0, 0]))


def test_tail_rate_by_hand_and_its_support_guard() -> None:
    score = np.array([5.0, 3.5, 0.5, *range(5)])
    target = np.array([True] * 3 + [False] * 5)
    rate = tr.tpr_at_fpr(score, target, 0.2)
    # One of five non-targets may pass (4.0): targets above 3.0 are 5.0 and 3.5.
    assert (rate.tpr, rate.fpr, rate.n_tail) == (pytest.approx(2 / 3), pytest.approx(0.2), 1)
    assert not rate.resolvable
    assert rate.reason == "not resolvable: 1 non-targets in the tail"
    with pytest.raises(ValueError, match="expected a share"):
        tr.tpr_at_fpr(score, target, 0)


def test_cost_by_hand() -> None:
    assert tr.log_likelihood_ratio_cost([0, 0], [1, 0]) == pytest.approx(1.0)
    three = math.log(3)  # posterior 3/4 at even priors
    assert tr.log_likelihood_ratio_cost([three, -three], [1, 0]) == pytest.approx(math.log2(4 / 3))
    assert tr.minimum_cost([2, 1], [1, 0]) == pytest.approx(0.0)
    assert tr.minimum_cost([1, 2], [1, 0]) == pytest.approx(1.0)


@settings(deadline=None, max_examples=40)
@given(SCORED)
def test_minimum_cost_bounds_the_cost(rows: list[tuple[int, bool]]) -> None:
    score = np.array([row[0] for row in rows], float)
    target = np.array([row[1] for row in rows])
    lowest = tr.minimum_cost(score, target)
    assert -1e-9 <= lowest <= 1 + 1e-9
    assert lowest <= tr.log_likelihood_ratio_cost(score, target) + 1e-9
    assert tr.minimum_cost(3 * score - 7, target) == pytest.approx(lowest)


# --- trials ---

RECORDING = {"r1/a": "r1", "r1/b": "r1", "r1/c": "r1", "r2/a": "r2"}


def vectors(seed: int, names: list[str]) -> dict[str, np.ndarray]:
    source = np.random.default_rng(seed)
    return {name: profile_vector([source.normal(size=8)]) for name in names}


def test_final_trials_are_ordered_pairs_within_a_conversation() -> None:
    names = list(RECORDING)
    built = tr.build_final_trials(vectors(0, names), vectors(1, names), RECORDING)
    pairs = list(zip(built.enrol, built.test, strict=True))
    assert built.target.sum() == 4
    assert (~built.target).sum() == 6
    assert ("r1/a", "r1/b") in pairs
    assert ("r1/b", "r1/a") in pairs
    assert ("r1/a", "r2/a") not in pairs
    # r2 has no negatives and stays a cluster.
    assert built.groups == ("r1", "r2")
    at = pairs.index(("r1/a", "r1/b"))
    assert built.score[at] == pytest.approx(vectors(0, names)["r1/a"] @ vectors(1, names)["r1/b"])


def test_published_numbers_of_trials() -> None:
    """809 profiles: 809 x 808 negatives; 916 ordered pairs need not be even conversations."""
    names = [f"p{index:03d}" for index in range(809)]
    one = np.array([1.0])
    built = tr.build_shared_trials(dict.fromkeys(names, one), dict.fromkeys(names, one))
    assert built.target.sum() == 809
    assert (~built.target).sum() == 653_672


def random_trials(n_recordings: int, seed: int, shift: float = 1.0) -> tr.Trials:
    """Two profiles a conversation, the first conversation with one; scores on a coarse grid."""
    source = np.random.default_rng(seed)
    rows = []
    for index in range(n_recordings):
        names = [f"r{index:02d}/a", f"r{index:02d}/b"][: 1 if index == 0 else 2]
        rows += [(a, b, f"r{index:02d}") for a in names for b in names]
    target = np.array([a == b for a, b, _ in rows])
    score = np.round(source.normal(size=len(rows)) + shift * target, 1)
    enrol, test, cluster = (np.array(column, object) for column in zip(*rows, strict=True))
    return tr.Trials(enrol, test, cluster, target, score, tuple(sorted(set(cluster))))


@pytest.mark.parametrize("block", [1, 3, 7, 1024])
@pytest.mark.parametrize("orientation", ["higher", "lower"])
def test_weighted_rate_equals_brute_force(
    block: int, orientation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tr, "_BLOCK_TRIALS", block)
    built = random_trials(9, seed=block)
    counts = np.concatenate(draw_counts(9, 60, rng()))
    ours = tr.weighted_eer(built, counts, orientation)
    sign = 1 if orientation == "higher" else -1
    for row, value in zip(counts, ours, strict=True):
        weight = np.array([row[built.groups.index(name)] for name in built.cluster])
        assert value == pytest.approx(brute_eer(sign * built.score, built.target, weight))


def test_weighted_rate_with_equal_counts_is_the_plain_rate() -> None:
    built = random_trials(30, seed=1)
    value = tr.weighted_eer(built, np.ones((1, 30)), "higher")[0]
    assert value == pytest.approx(tr.equal_error_rate(built.score, built.target))


def test_draws_without_a_class_are_dropped_and_counted() -> None:
    built = random_trials(2, seed=5)
    estimate = tr.bootstrap_eer(built, rng(), "higher", n_draws=400)
    # Both draws fall on the conversation without negatives in one of four.
    assert estimate.n_dropped == pytest.approx(100, abs=30)
    assert estimate.n_clusters == 2


def test_draws_of_one_score_are_undefined() -> None:
    built = replace(random_trials(2, seed=5), score=np.array([0.5, 1.0, 1.0, 1.0, 1.0]))
    values = tr.weighted_eer(built, np.array([[0.0, 2.0], [1.0, 1.0]]), "higher")
    assert math.isnan(values[0])
    assert np.isfinite(values[1])


def test_bootstrap_fixes_the_attackers_orientation_on_the_full_sample() -> None:
    built = random_trials(25, seed=2, shift=-1.0)
    attacker = tr.bootstrap_eer(built, rng(), "attacker", n_draws=200)
    lower = tr.bootstrap_eer(built, rng(), "lower", n_draws=200)
    assert attacker == lower
    assert attacker.value < 0.5
    assert attacker.ci_low <= attacker.value <= attacker.ci_high


def test_bootstrap_says_what_it_cannot_do() -> None:
    one = random_trials(1, seed=0)
    with pytest.raises(ValueError, match="no non-target trials"):
        tr.bootstrap_eer(one, rng())
    flat = replace(random_trials(4, seed=0), score=np.zeros(13))
    estimate = tr.bootstrap_eer(flat, rng())
    assert math.isnan(estimate.value)
    assert estimate.reason == "all scores are equal"


def test_bootstrap_ignores_the_order_of_trials() -> None:
    built = random_trials(12, seed=4)
    order = np.random.default_rng(9).permutation(len(built.score))
    turned = tr.Trials(
        built.enrol[order], built.test[order], built.cluster[order], built.target[order],
        built.score[order], built.groups,
    )  # fmt: skip
    assert tr.bootstrap_eer(built, rng(), n_draws=100) == tr.bootstrap_eer(
        turned, rng(), n_draws=100
    )


def test_contrast_uses_profiles_eligible_in_both_and_the_same_draws() -> None:
    a, b = random_trials(20, seed=6), random_trials(20, seed=7, shift=2.0)
    some = {name for name in b.enrol if name < "r15"}
    contrast = tr.eer_difference(a, tr.keep_profiles(b, some), rng(), "higher", n_draws=200)
    assert contrast.n_items == len(some)
    assert contrast.n_clusters == 15
    matched_a, matched_b = tr.keep_profiles(a, some), tr.keep_profiles(b, some)
    assert contrast.value == pytest.approx(
        tr.equal_error_rate(matched_b.score, matched_b.target)
        - tr.equal_error_rate(matched_a.score, matched_a.target)
    )
    same = tr.eer_difference(a, a, rng(), n_draws=100)
    assert (same.value, same.ci_low, same.ci_high) == (0.0, 0.0, 0.0)


def test_contrast_without_matched_profiles_is_not_applicable() -> None:
    a = random_trials(4, seed=0)
    none = tr.keep_profiles(a, set())
    contrast = tr.eer_difference(a, none, rng())
    assert (contrast.status, contrast.reason) == ("not_applicable", "no matched profiles")
    alone = tr.keep_profiles(a, {"r01/a", "r02/a"})
    assert tr.eer_difference(a, alone, rng()).reason == "no matched non-target trials"
