"""Statistics against hand values, the published arithmetic, statsmodels and brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest
from brute import standard_error
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest
from statsmodels.stats.inter_rater import cohens_kappa
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from aegis import stats


def rng() -> np.random.Generator:
    return np.random.default_rng(20261005)


ITEMS = [
    ("c1", 1.0), ("c1", 0.0), ("c2", 1.0), ("c2", 1.0), ("c2", 1.0), ("c3", 0.0), ("c4", 0.0),
    ("c4", 1.0), ("c5", 1.0),
]  # fmt: skip


def columns(items: list[tuple[str, float]]) -> tuple[list[str], list[float]]:
    return [name for name, _ in items], [value for _, value in items]


# --- published arithmetic (methods 6) ---


@pytest.mark.parametrize(("successes", "low", "high"), [(421, 66.3, 73.6), (486, 77.5, 83.8)])
def test_wilson_intervals_of_the_published_judge(successes: int, low: float, high: float) -> None:
    estimate = stats.wilson(successes, 601)
    assert round(100 * estimate.ci_low, 1) == low
    assert round(100 * estimate.ci_high, 1) == high


def test_published_holm_family_of_two() -> None:
    adjusted = stats.holm({"contradiction": 0.00085, "retained": 0.272}, family_size=2)
    assert adjusted == pytest.approx({"contradiction": 0.0017, "retained": 0.272})


def test_published_sign_flip_p_is_a_count_of_20000_draws() -> None:
    """p = 0.000850 with the add-one rule means 16 draws of 20,000."""
    assert [k for k in range(100) if round((1 + k) / 20_001, 6) == 0.00085] == [16]


def test_published_bounds_fix_the_uncertain_labels() -> None:
    """The four bounds over 25,778 CAPs hold for one pair of uncertain counts only."""
    n = 25_778
    preserved_a, preserved_b = 19_954, 19_929
    preservation = stats.difference_bounds((preserved_a, 423), (preserved_b, 279), n)
    contradiction = stats.difference_bounds((237 + 154, 423), (237 + 242, 279), n)
    assert round(100 * preservation.low, 3) == -1.738
    assert round(100 * preservation.high, 3) == 0.985
    assert round(100 * contradiction.low, 3) == -1.300
    assert round(100 * contradiction.high, 3) == 1.424
    fitting_a = [u for u in range(1000) if round(100 * (-25 - u) / n, 3) == -1.738]
    fitting_b = [u for u in range(1000) if round(100 * (-25 + u) / n, 3) == 0.985]
    assert (fitting_a, fitting_b) == ([423], [279])
    assert round(100 * preserved_a / n, 2) == 77.41
    assert round(100 * preserved_b / n, 2) == 77.31


def test_published_realisation_gain() -> None:
    assert round(100 * (535 - 453) / 601, 2) == 13.64


# --- rates and bootstrap ---


def test_item_weighted_and_equal_conversation_rates_by_hand() -> None:
    clusters, outcome = columns(ITEMS)
    assert stats.rate(outcome, clusters, rng()).value == pytest.approx(6 / 9)
    equal = stats.equal_conversation_rate(outcome, np.ones(9), clusters, rng())
    assert equal.value == pytest.approx((0.5 + 1 + 0 + 0.5 + 1) / 5)
    assert equal.n_clusters == 5


def brute_force(items: list[tuple[str, float]], n_draws: int) -> np.ndarray:
    """Copy rows of drawn conversations, with the same counts."""
    names = sorted({name for name, _ in items})
    counts = np.concatenate(stats.draw_counts(len(names), n_draws, rng())).astype(int)
    rates = []
    for draw in counts:
        rows = [
            value
            for name, times in zip(names, draw, strict=True)
            for value in times * [v for n, v in items if n == name]
        ]
        rates.append(sum(rows) / len(rows))
    return np.array(rates)


def test_bootstrap_equals_copying_the_rows_of_drawn_conversations() -> None:
    clusters, outcome = columns(ITEMS)
    estimate = stats.rate(outcome, clusters, rng(), n_draws=500)
    low, high = np.percentile(brute_force(ITEMS, 500), [2.5, 97.5])
    assert (estimate.ci_low, estimate.ci_high) == pytest.approx((low, high))
    assert (estimate.n_items, estimate.n_clusters, estimate.n_draws) == (9, 5, 500)


@settings(deadline=None, max_examples=30)
@given(
    st.lists(
        st.tuples(st.sampled_from("abcde"), st.floats(-3, 3, width=32)), min_size=2, max_size=30
    ),
    st.randoms(use_true_random=False),
)
def test_result_does_not_depend_on_row_order(items: list[tuple[str, float]], random) -> None:
    shuffled = items.copy()
    random.shuffle(shuffled)
    first = stats.rate(*reversed(columns(items)), rng(), n_draws=50)
    second = stats.rate(*reversed(columns(shuffled)), rng(), n_draws=50)
    assert repr(first) == repr(second)
    flips = [
        stats.sign_flip(*reversed(columns(rows)), rng(), n_draws=50) for rows in (items, shuffled)
    ]
    assert repr(flips[0]) == repr(flips[1])


def test_blocks_of_draws_do_not_change_the_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = np.concatenate(stats.draw_counts(7, 100, rng()))
    monkeypatch.setattr(stats, "_BLOCK_CELLS", 70)
    blocks = stats.draw_counts(7, 100, rng())
    assert len(blocks) == 10
    assert (np.concatenate(blocks) == whole).all()


def test_draws_are_multinomial() -> None:
    """Each draw has as many conversations; counts have the multinomial mean and covariance."""
    counts = np.concatenate(stats.draw_counts(6, 40_000, rng()))
    assert (counts.sum(axis=1) == 6).all()
    expected = 6 * (np.eye(6) / 6 - np.full((6, 6), 1 / 36))
    assert counts.mean(axis=0) == pytest.approx(np.ones(6), abs=0.02)
    assert np.cov(counts.T) == pytest.approx(expected, abs=0.03)


def test_interval_matches_the_normal_approximation_with_many_clusters() -> None:
    source = np.random.default_rng(1)
    clusters = np.repeat(np.arange(300), 5)
    outcome = source.random(1500) < np.repeat(source.beta(4, 2, 300), 5)
    estimate = stats.rate(outcome, clusters, rng(), n_draws=4000)
    half = 1.96 * standard_error(outcome, clusters)
    assert estimate.ci_high - estimate.ci_low == pytest.approx(2 * half, rel=0.06)
    assert estimate.se == pytest.approx(half / 1.96, rel=0.04)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.sampled_from("abcd"), st.booleans()), min_size=1, max_size=40))
def test_rate_lies_in_its_range_and_is_the_pooled_count(items: list[tuple[str, bool]]) -> None:
    clusters, outcome = columns(items)
    estimate = stats.rate(outcome, clusters, rng(), n_draws=60)
    assert estimate.value == pytest.approx(sum(outcome) / len(outcome))
    if estimate.status == "ok":
        assert 0 <= estimate.ci_low <= estimate.ci_high <= 1


def test_one_cluster_keeps_its_value_and_has_no_interval() -> None:
    estimate = stats.rate([1, 0], ["c1", "c1"], rng())
    assert estimate.value == 0.5
    assert math.isnan(estimate.ci_low)
    assert (estimate.status, estimate.reason) == (
        "unknown",
        "one cluster: interval not estimable",
    )


def test_no_items_is_not_applicable_and_never_zero() -> None:
    estimate = stats.rate([], [], rng())
    assert math.isnan(estimate.value)
    assert (estimate.status, estimate.reason) == ("not_applicable", "no items")


def test_empty_denominator_is_said_and_undefined_draws_are_counted() -> None:
    empty = stats.ratio_rate([0, 0], [0, 0], ["c1", "c2"], rng())
    assert (empty.status, empty.reason) == ("not_applicable", "empty denominator")
    partly = stats.ratio_rate([1, 0], [2, 0], ["c1", "c2"], rng(), n_draws=400)
    # A draw is undefined when c2 is drawn twice: one in four.
    assert partly.value == 0.5
    assert partly.n_dropped == pytest.approx(100, abs=30)


def test_unresolved_values_are_refused() -> None:
    with pytest.raises(ValueError, match="1 rows hold NaN"):
        stats.rate([1.0, math.nan], ["a", "b"], rng())


def test_paired_and_ratio_differences() -> None:
    clusters = ["c1", "c1", "c2", "c3"]
    a, b = [1, 0, 0, 1], [1, 1, 1, 1]
    paired = stats.paired_difference(a, b, clusters, rng())
    assert paired.value == pytest.approx(0.5)
    words = stats.ratio_difference(([1, 2], [10, 10]), ([3, 2], [10, 30]), ["c1", "c2"], rng())
    assert words.value == pytest.approx(5 / 40 - 3 / 20)


def test_stratified_rate_by_hand_and_dropped_draws() -> None:
    estimate = stats.stratified_rate(
        [1, 0, 1, 1], ["minor", "minor", "major", "major"], {"minor": 90, "major": 10},
        ["c1", "c2", "c3", "c4"], rng(), n_draws=300,
    )  # fmt: skip
    assert estimate.value == pytest.approx(0.9 * 0.5 + 0.1 * 1.0)
    # A stratum is missed when all four draws fall on the other one: 2 in 16.
    assert estimate.n_dropped == pytest.approx(300 / 8, abs=20)
    with pytest.raises(ValueError, match="no population size for strata"):
        stats.stratified_rate([1], ["x"], {"y": 1}, ["c1"], rng())


def test_stratified_rate_with_proportional_sampling_is_the_plain_rate() -> None:
    clusters, outcome = columns(ITEMS)
    strata = ["x"] * 3 + ["y"] * 6
    weighted = stats.stratified_rate(outcome, strata, {"x": 30, "y": 60}, clusters, rng())
    assert weighted.value == pytest.approx(stats.rate(outcome, clusters, rng()).value)


def test_f1_over_queries_by_hand() -> None:
    estimate = stats.f1_rate([3, 1], [1, 0], [0, 1], ["q1", "q2"], rng())
    assert estimate.value == pytest.approx(8 / 10)


# --- tests ---


def test_sign_flip_against_full_enumeration() -> None:
    sums = np.array([3.0, 1.0, -1.0, 2.0, 2.0, 4.0])
    signs = np.array(np.meshgrid(*[[-1, 1]] * 6)).reshape(6, -1).T
    exact = (np.abs(signs @ sums) >= abs(sums.sum())).mean()
    result = stats.sign_flip(sums, range(6), rng(), n_draws=20_000)
    assert result.p == pytest.approx(exact, abs=0.01)
    assert result.statistic == 11.0


def test_sign_flip_works_on_cluster_sums() -> None:
    """Ten items of one conversation are one flip."""
    one = stats.sign_flip([5, 3], ["a", "b"], rng(), n_draws=1000)
    many = stats.sign_flip([1] * 5 + [3], ["a"] * 5 + ["b"], rng(), n_draws=1000)
    assert one == many


def test_sign_flip_degenerate() -> None:
    assert stats.sign_flip([0, 0, 0], ["a", "b", "c"], rng(), n_draws=99).p == 1.0
    single = stats.sign_flip([1, 1], ["a", "a"], rng())
    assert math.isnan(single.p)
    assert single.reason == "one cluster: no test"
    assert stats.sign_flip([], [], rng()).reason == "no items"


def test_sign_flip_counts_ties_in_spite_of_rounding() -> None:
    values = [0.1, 0.2, 0.3]
    result = stats.sign_flip(values, ["a", "b", "c"], rng(), n_draws=8000)
    assert result.p == pytest.approx(0.25, abs=0.02)


@settings(deadline=None, max_examples=25)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_equals_statsmodels(p_values: list[float]) -> None:
    named = {f"t{index}": p for index, p in enumerate(p_values)}
    expected = multipletests(p_values, method="holm")[1]
    adjusted = stats.holm(named, len(p_values))
    assert [adjusted[name] for name in named] == pytest.approx(list(expected))


def test_holm_with_a_missing_p_keeps_the_declared_family() -> None:
    adjusted = stats.holm({"a": 0.01, "b": math.nan}, family_size=3)
    assert adjusted["a"] == pytest.approx(0.03)
    assert math.isnan(adjusted["b"])
    with pytest.raises(ValueError, match="2 tests in a family declared as 1"):
        stats.holm({"a": 0.1, "b": 0.2}, 1)
    with pytest.raises(ValueError, match=r"outside \[0, 1\]"):
        stats.holm({"a": 1.2}, 1)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 800).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_single_proportions_equal_other_libraries(pair: tuple[int, int]) -> None:
    successes, n = pair
    ours = stats.wilson(successes, n)
    assert (ours.ci_low, ours.ci_high) == pytest.approx(
        proportion_confint(successes, n, method="wilson"), abs=1e-9
    )
    exact = binomtest(successes, n).proportion_ci(method="exact")
    cp = stats.clopper_pearson(successes, n)
    assert (cp.ci_low, cp.ci_high) == pytest.approx((exact.low, exact.high), abs=1e-9)


@pytest.mark.parametrize("interval", [stats.wilson, stats.clopper_pearson])
def test_proportions_refuse_impossible_counts_and_say_when_empty(interval) -> None:
    assert interval(0, 0).status == "not_applicable"
    with pytest.raises(ValueError, match="3 successes of 2 items"):
        interval(3, 2)


def test_kappa_equals_statsmodels_and_shows_marginals() -> None:
    a = ["preserved"] * 6 + ["missing"] * 3 + ["uncertain"]
    b = ["preserved"] * 5 + ["missing"] * 4 + ["uncertain"]
    table = np.array([[3, 0, 0], [1, 5, 0], [0, 0, 1]])
    result = stats.cohen_kappa(a, b)
    assert result.kappa == pytest.approx(cohens_kappa(table).kappa)
    assert result.agreement == 0.9
    assert result.marginals_a == {"missing": 3, "preserved": 6, "uncertain": 1}


def test_kappa_with_one_label_is_undefined_not_one() -> None:
    result = stats.cohen_kappa(["x", "x"], ["x", "x"])
    assert math.isnan(result.kappa)
    assert result.agreement == 1.0
    assert result.reason is not None
    assert "only ever say" in result.reason
    assert stats.cohen_kappa([], []).status == "not_applicable"


def test_bounds_and_matching() -> None:
    bounds = stats.identification_bounds(3, 2, 10)
    assert (bounds.low, bounds.high, bounds.n_unresolved) == (0.3, 0.5, 2)
    with pytest.raises(ValueError, match="12 successes of 10 items"):
        stats.identification_bounds(10, 2, 10)
    first, second = stats.match_items(["b", "a", "c"], ["c", "b", "d"])
    assert (first.tolist(), second.tolist()) == ([0, 2], [1, 0])
    with pytest.raises(ValueError, match="1 repeated ids in b"):
        stats.match_items(["a"], ["b", "b"])


def test_detectable_difference_is_2_8_standard_errors() -> None:
    assert stats.detectable(0.01) == pytest.approx((1.959964 + 0.841621) * 0.01, rel=1e-6)
    assert stats.detectable(0.01, alpha=0.1, power=0.9) == pytest.approx(
        (1.644854 + 1.281552) * 0.01, rel=1e-6
    )
    assert math.isnan(stats.detectable(0.0))
    assert math.isnan(stats.detectable(math.nan))


def test_a_difference_of_that_size_is_found_four_times_in_five() -> None:
    """Normal changes of conversations, shifted by the detectable difference: by simulation."""
    source = np.random.default_rng(2)
    se = 1 / math.sqrt(60)
    found = 0
    for _ in range(300):
        changes = source.normal(stats.detectable(se), 1.0, 60)
        estimate = stats.rate(changes, range(60), rng(), n_draws=300)
        found += estimate.ci_low > 0
    assert 0.72 < found / 300 < 0.88
