"""Leakage measures by hand; what the papers print is in ``test_published_leakage``."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis import leakage


def test_eps_hat_at_its_edges():
    assert leakage.eps_hat(0.5, 0.5) == 0.0
    assert leakage.eps_hat(0.1, 0.0) == np.inf
    assert leakage.eps_hat(1.0, 0.5) == np.inf
    assert np.isnan(leakage.eps_hat(float("nan"), 0.1))


@given(st.floats(0.001, 0.999), st.floats(0.001, 0.999))
def test_eps_hat_is_the_same_for_the_complementary_test(tpr, fpr):
    assert leakage.eps_hat(tpr, fpr) == pytest.approx(
        max(np.log(tpr / fpr), np.log((1 - fpr) / (1 - tpr)))
    )


def test_clopper_pearson_matches_scipy_and_bounds_eps():
    from scipy.stats import binomtest

    low, high = leakage.clopper_pearson(7, 50)
    exact = binomtest(7, 50).proportion_ci(confidence_level=0.95, method="exact")
    assert (low, high) == pytest.approx((exact.low, exact.high))
    assert leakage.clopper_pearson(0, 0) == (0.0, 1.0)
    assert leakage.eps_hat_lower(50, 100, 1, 1000) < leakage.eps_hat(0.5, 0.001)
    assert leakage.eps_hat_lower(0, 100, 1000, 1000) == -np.inf


def test_attribute_privacy_by_hand():
    assert leakage.attribute_privacy([1.0, 0.5]) == 0.5
    assert leakage.attribute_privacy([0.2]) == 1.0


def test_absent_classes_are_left_out():
    aucs = leakage.class_aucs(["a", "a", "b"], {"a": [2, 1, 0], "b": [0, 0, 1], "c": [1, 1, 1]})
    assert aucs == {"a": 1.0, "b": 1.0}
    assert leakage.class_aucs(["a", "a"], {"a": [1, 2]}) == {}


def test_association_is_one_for_a_copy_and_for_a_fixed_swap():
    truth = ["m", "f", "m", "f"]
    swap = ["f", "m", "f", "m"]
    assert leakage.association(truth, truth, 2) == pytest.approx(1.0)
    assert leakage.association(truth, swap, 2) == pytest.approx(1.0)
    assert leakage.association(truth, ["m"] * 4, 2) == pytest.approx(0.0)
    with pytest.raises(ValueError, match="at least two classes"):
        leakage.association(truth, truth, 1)


def test_subgroups_by_hand():
    counts = leakage.fully_predicted(
        {"sex": ["f", "f", "m"], "age": ["y", "y", "a"]},
        {"sex": ["f", "m", "m"], "age": ["y", "y", "a"]},
    )
    assert counts == {"f y": (1, 2), "m a": (1, 1)}
    assert leakage.subgroup_privacy({"g": 0.2, "h": 0.6}) == pytest.approx(0.7 * 0.4 + 0.3 * 0.5)
    assert leakage.subgroup_privacy({"g": 1.0}) == pytest.approx(0.3)
    assert np.isnan(leakage.subgroup_privacy({}))


def test_permuted_cmc_meets_its_closed_form():
    """Three rows a speaker among 30: the hypergeometric chance of meeting one of them in five."""
    rng = np.random.default_rng(0)
    held = np.repeat(np.arange(10), 3)
    nearest = np.stack([rng.permutation(30)[:5] for _ in range(40)])
    found = leakage.permuted_cmc(nearest, held, rng.integers(0, 10, 40), (1, 5), rng, 400)
    for (mean, low, high), k in zip(found, (1, 5), strict=True):
        assert mean == pytest.approx(leakage.chance_cmc(3, 30, k), abs=0.02)
        assert low <= mean <= high
    assert leakage.chance_cmc(1, 20, 5) == pytest.approx(5 / 20)
    assert leakage.chance_cmc(1, 3, 5) == 1.0


def _pairs(n, d, noise, rng):
    x = rng.standard_normal((n, d))
    rotation, _ = np.linalg.qr(rng.standard_normal((d, d)))
    return x, x @ rotation + noise * rng.standard_normal((n, d))


def test_linear_map_is_found_and_independence_is_not():
    rng = np.random.default_rng(1)
    train = np.arange(400) < 320
    x, y = _pairs(400, 16, 0.0, rng)
    assert leakage.canonical_correlation(x, y, train).held_out == pytest.approx(1.0, abs=1e-6)
    assert leakage.procrustes(x, y, train).held_out == pytest.approx(1.0, abs=1e-6)
    z = rng.standard_normal((400, 16))
    assert abs(leakage.canonical_correlation(x, z, train).held_out) < 0.15
    assert abs(leakage.procrustes(x, z, train).held_out) < 0.15


def test_in_sample_values_are_inflated_for_random_pairs():
    """The warning behind NIST's random baseline of 0.734: fitting alone correlates noise."""
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal((300, 64)), rng.standard_normal((300, 64))
    train = np.arange(300) < 240
    cca, rotation = leakage.canonical_correlation(x, y, train), leakage.procrustes(x, y, train)
    assert cca.in_sample > 0.7 > 0.2 > abs(cca.held_out)
    assert rotation.in_sample > 0.3 > abs(rotation.held_out)
    assert (cca.n_train, cca.n_test, cca.dimension) == (240, 60, 64)


def test_canonical_correlation_equals_scikit_learn_in_sample():
    from sklearn.cross_decomposition import CCA

    rng = np.random.default_rng(3)
    x, y = _pairs(200, 5, 1.0, rng)
    train = np.ones(200, dtype=bool)
    train[-2:] = False
    ours = leakage.canonical_correlation(x, y, train, n_top=3).in_sample
    a, b = CCA(n_components=3, max_iter=5000).fit_transform(x[train], y[train])
    theirs = np.mean([np.corrcoef(a[:, i], b[:, i])[0, 1] for i in range(3)])
    assert ours == pytest.approx(theirs, abs=1e-3)


def test_split_never_shares_a_speaker():
    speakers = [f"s{i % 9}" for i in range(90)]
    half = leakage.speaker_split(speakers, 0.5, np.random.default_rng(0))
    assert not set(np.array(speakers)[half]) & set(np.array(speakers)[~half])


def test_calibrated_tpr_of_known_normals():
    """Targets N(2,1), non-targets N(0,1): TPR at FPR 1e-2 is 1 - Phi(2.326 - 2) = 0.372."""
    rng = np.random.default_rng(4)
    n = 40_000
    target = np.arange(2 * n) < n
    scores = rng.standard_normal(2 * n) + 2.0 * target
    speakers = [f"s{i % 50}" for i in range(2 * n)]
    found, tiny = leakage.calibrated_tpr(
        scores, target, speakers, speakers, (1e-2, 1e-4), rng, n_splits=40
    )
    assert found.tpr == pytest.approx(0.372, abs=0.02)
    assert found.realised_fpr == pytest.approx(0.01, abs=0.002)
    assert found.resolvable
    assert found.ci_low <= found.tpr <= found.ci_high
    assert found.n_speakers_hit == 25
    assert found.eps == pytest.approx(np.log(found.tpr / 0.01))
    assert 0 < found.eps_lower < found.eps
    assert tiny.n_tail == pytest.approx(2.0, abs=0.2)
    assert not tiny.resolvable


def test_calibration_uses_no_trial_across_the_halves():
    """Two enrolled speakers, each tested by itself and by the other: no half has non-targets."""
    speakers, others = ["a", "a", "b", "b"], ["a", "b", "b", "a"]
    target = np.array([True, False, True, False])
    with pytest.raises(ValueError, match="no split"):
        leakage.calibrated_tpr(
            np.arange(4.0), target, speakers, others, [0.1], np.random.default_rng(0)
        )


def test_calibration_refuses_what_it_cannot_split():
    scores, target = np.arange(4.0), np.array([True, True, False, False])
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="at least two speakers"):
        leakage.calibrated_tpr(scores, target, ["s"] * 4, ["s"] * 4, [0.1], rng)
    with pytest.raises(ValueError, match="needs targets"):
        leakage.calibrated_tpr(scores, target | True, list("abcd"), list("abcd"), [0.1], rng)
