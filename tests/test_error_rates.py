"""Error rates against hand examples, published score files and brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest
from brute import brute_eer
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_curve

from aegis import error_rates as er
from aegis.tables import PROJECT

DATA = PROJECT.parent / "shared" / "data"
FVCAUS = DATA / "metrics_fvcaus_llr" / "fvcaus_plda"
ASVSPOOF = DATA / "metrics_asvspoof_demo_scores" / "scores"
needs_fvcaus = pytest.mark.skipif(not FVCAUS.exists(), reason=f"no {FVCAUS}")
needs_asvspoof = pytest.mark.skipif(not ASVSPOOF.exists(), reason=f"no {ASVSPOOF}")


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
    assert round(100 * er.equal_error_rate(score, target), 3) == 0.120
    assert round(100 * er.hull_error_rate(score, target), 3) == 0.098
    assert round(er.log_likelihood_ratio_cost(score, target), 4) == 0.1256
    assert round(er.minimum_cost(score, target), 4) == 0.0026


@needs_fvcaus
@pytest.mark.parametrize(("fpr", "tpr"), [(1e-2, 1.0), (1e-3, 0.998), (1e-4, 0.9919)])
def test_reference_tail_rates_of_fvcaus(fpr: float, tpr: float) -> None:
    rate = er.tpr_at_fpr(*fvcaus(), fpr)
    assert rate.tpr == pytest.approx(tpr, abs=5e-5)
    assert rate.resolvable
    assert rate.fpr <= fpr


@needs_asvspoof
def test_reference_values_of_asvspoof() -> None:
    score, target = asvspoof("asv_dev.txt", "target", {"nontarget"})
    assert (target.sum(), (~target).sum()) == (924, 4536)
    assert round(100 * er.equal_error_rate(score, target), 3) == 4.437
    assert round(100 * er.hull_error_rate(score, target), 3) == 4.360
    assert round(er.log_likelihood_ratio_cost(score, target), 4) == 0.1613
    assert round(er.minimum_cost(score, target), 4) == 0.1529
    score, target = asvspoof("cm_dev.txt", "bonafide", {"spoof"})
    assert round(100 * er.equal_error_rate(score, target), 3) == 4.670


# --- error rates by hand ---


def test_eer_by_hand() -> None:
    """Targets 3 2, non-targets 1 2.5: between thresholds both rates are one half."""
    assert er.equal_error_rate([3, 2, 1, 2.5], [1, 1, 0, 0]) == pytest.approx(0.5)
    assert er.equal_error_rate([3, 2, 1, 0], [1, 1, 0, 0]) == 0.0
    assert er.equal_error_rate([3, 2, 1, 0], [1, 1, 0, 0], "lower") == 1.0


def test_eer_groups_equal_scores_and_interpolates() -> None:
    """Two targets 1, 0 and two non-targets 1, 0: one tied step from (1, 0) to (0.5, 0.5)."""
    assert er.equal_error_rate([1, 0, 1, 0], [1, 1, 0, 0]) == pytest.approx(0.5)
    # Targets 2 2 1, non-targets 1 0: points (1,0) (.5,0) (0,1/3); crossing on the last piece.
    assert er.equal_error_rate([2, 2, 1, 1, 0], [1, 1, 1, 0, 0]) == pytest.approx(0.2)


SCORED = st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=2, max_size=40).filter(
    lambda rows: len({label for _, label in rows}) == 2 and len({score for score, _ in rows}) > 1
)


@settings(deadline=None, max_examples=80)
@given(SCORED)
def test_eer_equals_brute_force_and_orientations_mirror(rows: list[tuple[int, bool]]) -> None:
    score = np.array([row[0] for row in rows], float)
    target = np.array([row[1] for row in rows])
    higher = er.equal_error_rate(score, target)
    assert higher == pytest.approx(brute_eer(score, target, np.ones(len(rows))))
    assert er.equal_error_rate(score, target, "lower") == pytest.approx(1 - higher)
    assert er.equal_error_rate(score, target, "attacker") == pytest.approx(min(higher, 1 - higher))
    assert er.hull_error_rate(score, target) <= higher + 1e-12
    assert er.equal_error_rate(np.exp(score), target) == pytest.approx(higher)


def test_eer_lies_on_the_curve_of_scikit_learn() -> None:
    source = np.random.default_rng(3)
    target = source.random(500) < 0.3
    score = source.normal(size=500) + target
    fpr, tpr, _ = roc_curve(target, score, drop_intermediate=False)
    rate = er.equal_error_rate(score, target)
    assert np.interp(rate, fpr, 1 - tpr) == pytest.approx(rate, abs=2e-2)


def test_refused_and_undefined_scores() -> None:
    with pytest.raises(ValueError, match="no non-target trials"):
        er.equal_error_rate([1, 2], [1, 1])
    with pytest.raises(ValueError, match="no target and no non-target trials"):
        er.equal_error_rate([], [])
    with pytest.raises(ValueError, match="1 of 2 scores are NaN"):
        er.equal_error_rate([1, math.nan], [1, 0])
    with pytest.raises(ValueError, match="known: higher, lower, attacker"):
        er.equal_error_rate([1, 0], [1, 0], "best")
    assert math.isnan(er.equal_error_rate([1, 1, 1], [1, 0, 0]))


def test_tail_rate_by_hand_and_its_support_guard() -> None:
    score = np.array([5.0, 3.5, 0.5, *range(5)])
    target = np.array([True] * 3 + [False] * 5)
    rate = er.tpr_at_fpr(score, target, 0.2)
    # One of five non-targets may pass (4.0): targets above 3.0 are 5.0 and 3.5.
    assert (rate.tpr, rate.fpr, rate.n_tail) == (pytest.approx(2 / 3), pytest.approx(0.2), 1)
    assert not rate.resolvable
    assert rate.reason == "not resolvable: 1 non-targets in the tail"
    with pytest.raises(ValueError, match="expected a share"):
        er.tpr_at_fpr(score, target, 0)


def test_cost_by_hand() -> None:
    assert er.log_likelihood_ratio_cost([0, 0], [1, 0]) == pytest.approx(1.0)
    three = math.log(3)  # posterior 3/4 at even priors
    assert er.log_likelihood_ratio_cost([three, -three], [1, 0]) == pytest.approx(math.log2(4 / 3))
    assert er.minimum_cost([2, 1], [1, 0]) == pytest.approx(0.0)
    assert er.minimum_cost([1, 2], [1, 0]) == pytest.approx(1.0)


@settings(deadline=None, max_examples=40)
@given(SCORED)
def test_minimum_cost_bounds_the_cost(rows: list[tuple[int, bool]]) -> None:
    score = np.array([row[0] for row in rows], float)
    target = np.array([row[1] for row in rows])
    lowest = er.minimum_cost(score, target)
    assert -1e-9 <= lowest <= 1 + 1e-9
    assert lowest <= er.log_likelihood_ratio_cost(score, target) + 1e-9
    assert er.minimum_cost(3 * score - 7, target) == pytest.approx(lowest)


def test_calibration_gives_log_likelihood_ratios() -> None:
    """Two unit normals at 1 and -1: the log-likelihood ratio of a score s is 2 s."""
    source = np.random.default_rng(11)
    target = np.repeat([True, False], [4000, 8000])
    score = source.normal(size=12_000) + np.where(target, 1.0, -1.0)
    fitted = er.calibrate(3 * score + 5, target, np.array([5.0, 8.0]))
    assert fitted == pytest.approx([0.0, 2.0], abs=0.1)


def test_linkability_of_apart_same_and_half_overlapping_scores() -> None:
    target = np.repeat([True, False], 400)
    apart = np.concatenate([np.linspace(2, 3, 400), np.linspace(0, 1, 400)])
    assert er.linkability(apart, target) == pytest.approx(1.0)
    same = np.tile(np.linspace(0, 1, 400), 2)
    assert er.linkability(same, target) == pytest.approx(0.0)
    # Mated uniform on [0, 2], non-mated on [0, 1]: half of the mated are beyond doubt, for
    # the others the likelihood ratio is below one.
    half = np.concatenate([np.linspace(0, 2, 400), np.linspace(0, 1, 400)])
    assert er.linkability(half, target) == pytest.approx(0.5, abs=0.03)


def test_linkability_needs_twenty_mated_scores() -> None:
    target = np.repeat([True, False], [19, 100])
    assert math.isnan(er.linkability(np.arange(119.0), target))


def test_zebra_by_hand() -> None:
    """Perfect separation discloses the whole prior entropy: its mean over priors is 1/(2 ln 2)."""
    full = er.zebra([3, 2, 1, 0], [1, 1, 0, 0])
    assert full.population_bits == pytest.approx(1 / (2 * np.log(2)), abs=1e-4)
    assert (full.individual_log10, full.tag) == (np.inf, "F")
    none = er.zebra([1, 1, 1, 1], [1, 1, 0, 0])
    assert none.population_bits == pytest.approx(0.0, abs=1e-9)
    assert none.tag == "0"
    # One target in two above one non-target in four: the ratio of the upper group is 2.
    some = er.zebra([2, 1, 2, 1, 1, 1], [1, 1, 0, 0, 0, 0])
    assert some.individual_log10 == pytest.approx(np.log10(2))
    assert some.tag == "A"


def test_zebra_is_the_mean_over_priors_of_the_gained_entropy() -> None:
    rng = np.random.default_rng(0)
    target = np.repeat([True, False], 200)
    score = rng.integers(0, 6, 400) + 2 * target
    rates = {s: ((score[target] == s).mean(), (score[~target] == s).mean()) for s in set(score)}
    llr, n_target, n_nontarget = er.monotone_ratios(score, target)
    assert n_target.sum() == n_nontarget.sum() == 200
    assert len(llr) == len(rates)
    assert (llr[1:] >= llr[:-1]).all()
    priors = np.linspace(0, 1, 2001)[1:-1]
    posterior = [
        sum(
            -p * a * np.log2(p / (p + (1 - p) * np.exp(-x)))
            - (1 - p) * b * np.log2((1 - p) / ((1 - p) + p * np.exp(x)))
            for x, a, b in zip(llr, n_target / 200, n_nontarget / 200, strict=True)
            if np.isfinite(x)
        )
        for p in priors
    ]
    entropy = -priors * np.log2(priors) - (1 - priors) * np.log2(1 - priors)
    assert er.zebra(score, target).population_bits == pytest.approx(
        float((entropy - posterior).mean()), abs=2e-3
    )
