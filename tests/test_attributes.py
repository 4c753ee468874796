"""Soft biometric leakage: the vectorised measures equal the plain ones of ``leakage``."""

from __future__ import annotations

import numpy as np
import pytest

from aegis import attributes, leakage, simulator
from aegis.attributes import SoftScores
from aegis.segments import ORIGINAL, Segments
from aegis.simulator import Anonymiser, World


@pytest.fixture(scope="module")
def made() -> Segments:
    anonymisers = [Anonymiser("weak", 0.4), Anonymiser("strong", 0.95)]
    world = World(n_speakers=40, n_sessions=2, n_utterances=3, dimension=24, speaker=0.5)
    return simulator.simulate(world, anonymisers, np.random.default_rng(2))


def _soft(rng: np.random.Generator, n: int = 200) -> SoftScores:
    cluster = np.arange(n) % 20
    truth = {"sex": rng.integers(0, 2, n), "age": rng.integers(0, 3, n)}
    classes = {"sex": ["f", "m"], "age": ["a", "b", "c"]}
    scores = {
        name: np.round(np.eye(len(classes[name]))[codes] + rng.random((n, len(classes[name]))), 1)
        for name, codes in truth.items()
    }
    return SoftScores(cluster, classes, truth, scores, {})


def test_vectorised_score_equals_the_plain_one():
    soft = _soft(np.random.default_rng(0))
    values = attributes.soft_leakage(soft, 0, 50).set_index("quantity")["value"]
    labels = {n: [soft.classes[n][i] for i in soft.truth[n]] for n in soft.truth}
    guesses = {n: [soft.classes[n][i] for i in soft.predictions(n)] for n in soft.truth}
    means = [
        np.mean(list(leakage.class_aucs(
            labels[n], dict(zip(soft.classes[n], soft.scores[n].T, strict=True))
        ).values()))
        for n in ("sex", "age")
    ]  # fmt: skip
    assert values["p_attr"] == pytest.approx(leakage.attribute_privacy(means))
    shared = [leakage.association(labels[n], guesses[n], k) for n, k in (("sex", 2), ("age", 3))]
    assert values["p_assoc"] == pytest.approx(1 - np.mean(shared))
    groups = leakage.fully_predicted(labels, guesses)
    rates = {name: hit / total for name, (hit, total) in groups.items()}
    assert values["p_subgroup"] == pytest.approx(leakage.subgroup_privacy(rates))
    assert values["p_subgroup_0.3"] == pytest.approx(leakage.subgroup_privacy(rates, 0.3))
    assert values["max_reident"] == pytest.approx(max(rates.values()))
    assert values["sbls"] == pytest.approx(
        leakage.sbls(values["p_attr"], values["p_assoc"], values["p_subgroup"])
    )
    table = attributes.subgroup_table(soft)
    counted = table[["numerator", "denominator"]].itertuples(index=False, name=None)
    assert dict(zip(table["subgroup"], counted, strict=True)) == groups


def test_weighted_auc_equals_repeated_rows():
    rng = np.random.default_rng(1)
    scores, positive = rng.integers(0, 5, 40).astype(float), rng.random(40) < 0.4
    weights = rng.integers(0, 3, (3, 40)).astype(float)
    from sklearn.metrics import roc_auc_score

    for row, value in zip(
        weights, attributes.weighted_aucs(scores, positive, weights), strict=True
    ):
        rows = np.repeat(np.arange(40), row.astype(int))
        assert value == pytest.approx(roc_auc_score(positive[rows], scores[rows]))


def test_accent_difference_is_paired_and_skips_are_named(made):
    train, test = made.of(ORIGINAL), made.of("weak", 1)
    soft = attributes.attack_attributes(train, test, "simulated")
    table = attributes.soft_leakage(soft, 0, 100)
    sbls = table[table["quantity"] == "sbls"].set_index("set")["value"]
    (difference,) = table[table["quantity"] == "accent_difference"].to_dict("records")
    assert difference["value"] == pytest.approx(sbls["accent"] - sbls["base"])
    width = lambda row: row["ci_high"] - row["ci_low"]  # noqa: E731
    alone = table[(table["quantity"] == "sbls") & (table["set"] == "accent")].iloc[0]
    assert width(difference) < 2 * width(alone)
    bare = test.table.assign(age=None, accent=None)
    soft = attributes.attack_attributes(train, Segments(bare, test.vectors), "simulated")
    assert list(soft.classes) == ["sex"]
    assert "0 with 0 of them to attack" in soft.skipped["age"]


def test_attack_on_originals_finds_sex_and_on_strong_anonymisation_does_not(made):
    """Sex is a sign of one coordinate: the known AUC bounds what a learner may reach."""
    train = made.of(ORIGINAL)
    found = {}
    for system, profile in ((ORIGINAL, 0), ("strong", 1)):
        soft = attributes.attack_attributes(train, made.of(system, profile), "simulated", ["sex"])
        found[system] = attributes.aligned_auc(soft, "sex")
    assert found[ORIGINAL][0] > 0.65
    assert found[ORIGINAL][0] < simulator.known_auc(np.sqrt(0.5)) + 0.1
    assert abs(found["strong"][0] - 0.5) < 0.15
    assert found["strong"][1] == pytest.approx(max(found["strong"][0], 1 - found["strong"][0]))
