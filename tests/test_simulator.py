"""The simulator's draws agree with its exact distribution; learned attackers undo a known map."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta

from aegis import attackers, simulator
from aegis.error_rates import equal_error_rate
from aegis.segments import ORIGINAL, Segments
from aegis.simulator import Anonymiser, World

WORLD = World(n_speakers=150, n_sessions=2, n_utterances=2, dimension=32, speaker=0.4)


def cosines(left: Segments, right: Segments) -> tuple[np.ndarray, np.ndarray]:
    """Scores and targets of all pairs from different sessions."""
    scores = left.vectors["simulated"] @ right.vectors["simulated"].T
    a, b = (side.table["speaker"].to_numpy()[:, None] for side in (left, right))
    apart = left.table["session"].to_numpy()[:, None] != right.table["session"].to_numpy()
    return scores[apart], (a == b.T)[apart]


def test_cosine_of_independent_vectors_is_a_beta():
    """Without correlation the squared cosine is Beta(1/2, (d - 1)/2)."""
    grid, probability = simulator.cosine_cdf(0.0, 16)
    exact = 0.5 + 0.5 * np.sign(grid) * beta.cdf(grid**2, 0.5, 7.5)
    assert np.abs(probability - exact).max() < 1e-5


@pytest.mark.parametrize("strength", [0.0, 0.5, 0.9])
def test_error_rates_are_the_known_ones(strength):
    anonymiser = Anonymiser("x", strength)
    made = simulator.simulate(WORLD, [anonymiser], np.random.default_rng(1), n_profiles=1)
    score, target = cosines(made.of(ORIGINAL), made.of("x"))
    known = simulator.known_eer(*simulator.correlations(WORLD, anonymiser)["oaoa"], 32)
    # 600 targets of 150 speakers: three standard errors at EER 0.3 are about 0.05.
    assert equal_error_rate(score, target) == pytest.approx(known, abs=0.05)
    known_tpr = simulator.known_tpr(*simulator.correlations(WORLD, anonymiser)["oaoa"], 32, 0.01)
    threshold = np.quantile(score[~target], 0.99)
    assert (score[target] > threshold).mean() == pytest.approx(known_tpr, abs=0.08)


def test_full_strength_is_chance_and_identity_is_the_original():
    full, none = Anonymiser("full", 1.0), Anonymiser("none", 0.0)
    assert simulator.known_eer(*simulator.correlations(WORLD, full)["oaoa"], 32) == pytest.approx(
        0.5, abs=1e-3
    )
    known = simulator.correlations(WORLD, none)
    assert known["oaoa"] == known["oo"]


def test_what_is_not_known_is_refused():
    with pytest.raises(ValueError, match="nothing is known"):
        simulator.correlations(WORLD, Anonymiser("x", 0.5, compression=0.2))


def test_sex_auc_is_the_known_one():
    made = simulator.simulate(
        World(2000, 1, 1, 16, 0.5), [], np.random.default_rng(3), n_profiles=0
    )
    raw = made.vectors["simulated"][:, 0]
    male = (made.table["sex"] == "male").to_numpy()
    auc = (raw[male][:, None] > raw[~male][None, :]).mean()
    assert auc == pytest.approx(simulator.known_auc(np.sqrt(0.5)), abs=0.03)
    assert simulator.known_auc(0.0) == 0.5
    assert simulator.known_auc(1.0) == pytest.approx(1.0)


def test_inverse_attack_recovers_a_known_rotation():
    """Half the speakers teach the map; on the others the rotation is undone."""
    world = World(n_speakers=60, n_sessions=2, n_utterances=10, dimension=16, speaker=0.6)
    turned = Anonymiser("turned", 0.05, rotated=True)
    made = simulator.simulate(world, [turned], np.random.default_rng(5), n_profiles=1)
    train, test = attackers.split_speakers(made, np.random.default_rng(0))
    assert not set(train.table["speaker"]) & set(test.table["speaker"])
    found = attackers.fit_attacker("inverse", train, "turned", "simulated", 0)
    assert (found.n_speakers, found.n_rows) == (30, 1200)
    rotation = np.linalg.lstsq(
        made.of("turned").vectors["simulated"], made.of(ORIGINAL).vectors["simulated"], rcond=None
    )[0]
    cosine = (attackers.recovered_map(found, 16) * attackers.normalise_rows(rotation)).sum(axis=1)
    assert cosine.min() > 0.98
    original, changed = test.of(ORIGINAL), test.of("turned")
    before = equal_error_rate(*cosines(original, changed))
    mapped = Segments(changed.table, {"simulated": found.anonymised(changed.vectors["simulated"])})
    after = equal_error_rate(*cosines(original, mapped))
    reference = equal_error_rate(*cosines(original, original))
    assert before > 0.35
    assert after == pytest.approx(reference, abs=0.02)


@pytest.mark.parametrize("learner", ["lda", "plda", "head"])
def test_learners_beat_raw_embeddings_under_a_shared_noise_direction(learner):
    """Noise in a few known directions: a learner finds the directions, raw cosines do not."""
    rng = np.random.default_rng(7)
    made = simulator.simulate(World(80, 1, 8, 20, 0.5), [], rng, n_profiles=0)
    noisy = made.vectors["simulated"] + 0.8 * rng.standard_normal((640, 3)) @ np.eye(3, 20)
    made = Segments.build(made.table, {"simulated": noisy})
    train, test = attackers.split_speakers(made, np.random.default_rng(0))
    taught = attackers.fit_attacker(learner, train, "none", "simulated", 0)
    raw, mapped = test.vectors["simulated"], taught.original(test.vectors["simulated"])
    upper = np.triu_indices(len(raw), 1)
    same = np.equal.outer(test.codes("speaker"), test.codes("speaker"))[upper]
    before, after = (equal_error_rate((v @ v.T)[upper], same) for v in (raw, mapped))
    assert after < before - 0.05


def test_too_few_speakers_or_rows_teach_nothing():
    made = simulator.simulate(World(6, 1, 1, 8), [], np.random.default_rng(0), n_profiles=0)
    with pytest.raises(ValueError, match="6 speakers; a learned attack needs 8"):
        attackers.split_speakers(made, np.random.default_rng(0))
    with pytest.raises(ValueError, match="nothing to learn"):
        attackers.fit_attacker("lda", made, "x", "simulated", 0)
    more = simulator.simulate(World(6, 1, 2, 8), [], np.random.default_rng(0), n_profiles=0)
    with pytest.raises(ValueError, match="known: lda"):
        attackers.fit_attacker("oracle", more, "x", "simulated", 0)


def test_anonymity_sets_by_hand():
    """Unit 0 ranks first for profiles 0 and 1, second for profile 2, and 3 may not have it."""
    score = np.array([[3.0, 2, 1], [3, 1, 2], [2, 3, 1], [9, 1, 1]])
    allowed = np.array([[1, 1, 1], [1, 1, 1], [1, 1, 1], [0, 1, 1]], dtype=bool)
    sets = attackers.anonymity_sets(score, allowed, np.array([0, 2, 0, -1]))
    assert sets["n_possible"].tolist()[:3] == [3, 4, 3]
    assert sets["n_as_good"].tolist()[:3] == [2, 2, 3]
    assert sets["rank"].tolist()[:3] == [1, 2, 2]
    assert sets.iloc[3].isna().all()


def test_segments_refuse_repeats_and_bad_vectors():
    made = simulator.simulate(World(3, 1, 1, 8), [], np.random.default_rng(0), n_profiles=0)
    with pytest.raises(ValueError, match="1 repeat"):
        Segments.build(made.table.iloc[[0, 0, 1]], {})
    with pytest.raises(ValueError, match="1 vectors are zero"):
        Segments.build(made.table, {"b": np.array([[0.0], [1.0], [2.0]])})
    with pytest.raises(ValueError, match="2 vectors of b for 3"):
        Segments.build(made.table, {"b": np.ones((2, 4))})
