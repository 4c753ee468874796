"""Trials, weighted error rates and contrasts against hand examples and brute force."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from brute import brute_eer

from aegis import trials as tr
from aegis.error_rates import equal_error_rate
from aegis.stats import draw_counts
from aegis.windows import profile_vector


def rng() -> np.random.Generator:
    return np.random.default_rng(20261005)


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
    assert value == pytest.approx(equal_error_rate(built.score, built.target))


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
        equal_error_rate(matched_b.score, matched_b.target)
        - equal_error_rate(matched_a.score, matched_a.target)
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


def test_held_out_costs_by_half() -> None:
    built = random_trials(60, seed=3, shift=2.0)
    costs = tr.held_out_costs(built, rng())
    assert costs.reason is None
    assert costs.min_cllr < costs.cllr < 1.0
    assert 0 < costs.d_sys < 1
    noise = tr.held_out_costs(random_trials(60, seed=3, shift=0.0), rng())
    assert noise.cllr == pytest.approx(1.0, abs=0.1)
    # Of two conversations, the first has no negatives: its half cannot calibrate.
    few = tr.held_out_costs(random_trials(2, seed=5), rng())
    assert few.reason == "not resolvable: 0 trials of a class in a half of the clusters"
    assert math.isnan(few.cllr)
