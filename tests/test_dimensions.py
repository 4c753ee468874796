"""Five dimensions: trials counted by hand, vectorised measures equal the plain ones."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from aegis import dimensions, leakage, simulator
from aegis.error_rates import equal_error_rate
from aegis.segments import Segments
from aegis.simulator import Anonymiser, World


@pytest.fixture(scope="module")
def made() -> Segments:
    anonymisers = [Anonymiser("weak", 0.4), Anonymiser("strong", 0.95)]
    world = World(n_speakers=40, n_sessions=2, n_utterances=3, dimension=24, speaker=0.5)
    return simulator.simulate(world, anonymisers, np.random.default_rng(2))


def built(made: Segments, kind: str, system: str = "weak", profile: int = 1):
    rng = np.random.default_rng(0)
    return dimensions.build_trials(made, kind, system, profile, "simulated", rng)


@pytest.mark.parametrize(
    ("kind", "n_target", "n_nontarget"),
    [
        # 40 speakers, 6 sources in 2 sessions; 15 pairs of sources, 6 of them in one session.
        ("oo", 40 * 15, 40 * 39 // 2 * 36),
        ("oaoa", 40 * 30, 40 * 39 * 36),
        ("oaoo", 40 * 30, 40 * 39 // 2 * 36),
        ("oaaa", 40 * 30, 40 * 39 // 2 * 36),
        ("aaaa", 40 * 6, 40 * 39 // 2 * 36),
        ("cross_profile", 40 * 6, 40 * 30),
        ("lazy", 40 * 30, 40 * 39 * 36),
        ("releases", 40 * 6, 40 * 39 * 36),
        ("auxiliary", 40 * 18, 40 * 39 * 36),
    ],
)
def test_trials_are_the_ones_counted_by_hand(made, kind, n_target, n_nontarget):
    trials = built(made, kind)
    assert int(trials.target.sum()) == n_target
    assert int((~trials.target).sum()) == n_nontarget
    if kind != "cross_profile":
        same = trials.enrol == trials.test
        assert (same == trials.target).all()


@pytest.mark.parametrize("kind", ["oaoa", "aaaa", "cross_profile"])
def test_simulated_error_rates_are_the_known_ones(made, kind):
    world = World(n_speakers=40, n_sessions=2, n_utterances=3, dimension=24, speaker=0.5)
    row = dimensions.measure_trials(built(made, kind), seed=0, n_draws=200)
    known = simulator.known_eer(
        *simulator.correlations(world, Anonymiser("weak", 0.4))[kind], world.dimension
    )
    assert row["eer"] == pytest.approx(known, abs=0.06)
    assert row["ci_low"] <= row["eer"] <= row["ci_high"]


def test_a_single_pseudo_profile_has_no_second_one(made):
    single = made.where(made.table["pseudo_profile"] < 2)
    for kind in ("cross_profile", "lazy", "releases"):
        row = dimensions.measure_trials(built(single, kind), 0, 10)
        assert row["status"] == "not_applicable"
        assert row["reason"].startswith("no")
    with pytest.raises(ValueError, match="known: oo"):
        built(made, "nonsense")


def test_costs_are_given_when_asked_for(made):
    row = dimensions.measure_trials(built(made, "oaoa"), 0, 20, costs=True)
    assert 0 < row["min_cllr"] <= row["cllr"] < 1
    assert row["zebra_tag"] in "ABCDEF"


def test_mean_rates_by_hand():
    rates = pd.DataFrame({
        "system": ["x", "x", "x"], "trial_type": ["oaoa"] * 3, "eer": [0.2, 0.4, np.nan],
    })  # fmt: skip
    (row,) = dimensions.mean_rates(rates, 0, 500).to_dict("records")
    assert (row["mean_eer"], row["n_conditions"]) == (pytest.approx(0.3), 2)
    # Means of two draws from {0.2, 0.4} lie on 0.2, 0.3, 0.4.
    assert row["half_width"] == pytest.approx(0.1)


def test_ranks_of_a_search_by_hand():
    table = pd.DataFrame(
        [
            (f"{who}{n}", who, system)
            for system in ("original", "weak")
            for who in "abc"
            for n in (1, 2)
        ],
        columns=["source", "speaker", "system"],
    )
    table["pseudo_profile"] = (table["system"] == "weak").astype(int)
    own = np.repeat(np.eye(3), 2, axis=0)
    # Second sources are sought among first originals: a is found at once, b second, c third.
    moved = own.copy()
    moved[[3, 5]] = [1.0, 0.5, 0.0], [0.9, 1.0, 0.8]
    segments = Segments.build(table, {"simulated": np.concatenate([own, moved])})
    found = dimensions.search_identities(segments, "weak", 1, "simulated", 0, at=(1, 2, 3))
    assert found["value"].tolist() == pytest.approx([1 / 3, 2 / 3, 1.0])
    assert set(found["n_gallery"]) == set(found["n_probes"]) == {3}


def test_search_falls_with_strength_and_meets_chance(made):
    rows = {
        system: dimensions.search_identities(made, system, 1, "simulated", 0).set_index("k")
        for system in ("weak", "strong")
    }
    assert rows["weak"].loc[1, "value"] > 0.3 > rows["strong"].loc[1, "value"]
    # Three gallery rows a speaker among 120.
    assert rows["weak"].loc[20, "chance"] == pytest.approx(
        leakage.chance_cmc(3, 120, 20), abs=0.03
    )
    assert rows["weak"].loc[1, "n_probes"] == 120


def test_spaces_align_when_the_anonymiser_is_weak(made):
    rows = {
        system: dimensions.align_spaces(made, system, 1, "simulated", 0).set_index("method")
        for system in ("weak", "strong")
    }
    for method in ("cca", "procrustes"):
        weak = rows["weak"].loc[method]
        assert weak["held_out"] > weak["chance"] + 0.2
        assert rows["strong"].loc[method, "held_out"] < weak["held_out"]
    few = made.where(made.table["speaker"].isin(["s0000", "s0001"]))
    assert set(dimensions.align_spaces(few, "weak", 1, "simulated", 0)["status"]) == {
        "not_applicable"
    }


def test_rank_disagreement_by_hand():
    ranks = dimensions.rank_systems({
        "eer": {"a": 0.3, "b": 0.2, "c": 0.1}, "tpr": {"a": 0.5, "b": 0.9, "c": 0.1},
        "flat": {"a": 1.0, "b": 1.0, "c": 1.0},
    })  # fmt: skip
    assert ranks["eer"].to_dict() == {"a": 1.0, "b": 2.0, "c": 3.0}
    agreement = dimensions.rank_agreement(ranks).set_index(["metric", "other"])
    assert agreement.loc[("eer", "tpr"), "pairs"] == "a / b"
    assert agreement.loc[("eer", "tpr"), "kendall_tau"] == pytest.approx(1 / 3)
    assert np.isnan(agreement.loc[("eer", "flat"), "kendall_tau"])


def test_trial_eer_equals_scikit_learn_where_the_curve_crosses(made):
    from sklearn.metrics import roc_curve

    trials = built(made, "oaoa", "strong")
    fpr, tpr, _ = roc_curve(trials.target, trials.score, drop_intermediate=False)
    at = np.argmin(np.abs(fpr - (1 - tpr)))
    theirs = (fpr[at] + 1 - tpr[at]) / 2
    assert equal_error_rate(trials.score, trials.target) == pytest.approx(theirs, abs=1e-3)
