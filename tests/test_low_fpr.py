"""Membership games: trials are what they say, cells meet what the simulator knows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from aegis import low_fpr, simulator
from aegis.segments import Segments
from aegis.simulator import Anonymiser, World


@pytest.fixture(scope="module")
def made() -> Segments:
    world = World(n_speakers=40, n_sessions=1, n_utterances=8, dimension=16, speaker=0.4)
    systems = [Anonymiser("even", 0.7, voice=0.3), Anonymiser("leaky", 0.9, 0.1, leak_share=0.1)]
    return simulator.simulate(world, systems, np.random.default_rng(1))


@pytest.mark.parametrize("regime", ["strict", "relaxed"])
def test_trials_are_a_membership_game(made, regime):
    tested = made.of("even", 1)
    game = low_fpr.draw_user_trials(tested, 3, regime, np.random.default_rng(0), 400)
    who, text = tested.codes("speaker"), tested.codes("text")
    assert game.target.sum() == (~game.target).sum() == 200
    assert (who[game.enrol] == game.enrolled[:, None]).all()
    assert (who[game.probe] == game.tested).all()
    assert ((game.enrolled == game.tested) == game.target).all()
    assert not (game.enrol == game.probe[:, None]).any()
    assert (np.sort(game.enrol)[:, 1:] != np.sort(game.enrol)[:, :-1]).all()
    if regime == "strict":
        own, other = game.enrol[game.target], game.enrol[~game.target]
        assert (text[own] == text[other]).all()
        assert not (text[game.enrol] == text[game.probe][:, None]).any()


def test_too_little_speech_is_said(made):
    tested = made.of("even", 1)
    with pytest.raises(ValueError, match="0 of 40 speakers have 9 usable utterances"):
        low_fpr.draw_user_trials(tested, 8, "relaxed", np.random.default_rng(0), 100)
    mute = Segments(tested.table.assign(text=None), tested.vectors)
    with pytest.raises(ValueError, match="of a parallel text"):
        low_fpr.draw_user_trials(mute, 1, "strict", np.random.default_rng(0), 100)


def test_scores_by_hand():
    game = low_fpr.Game(
        np.array([0]), np.array([[1, 2]]), np.array([True]), np.array([0]), np.array([0])
    )
    rows = np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]])
    assert low_fpr.score_game(game, rows, "Avg") == pytest.approx([0.3])
    assert low_fpr.score_game(game, rows, "Max") == pytest.approx([0.6])


def test_large_sets_are_scored_without_a_table_alike(made, monkeypatch):
    tested = made.of("even", 1)
    game = low_fpr.draw_user_trials(tested, 3, "relaxed", np.random.default_rng(0), 200)
    rows = tested.vectors["simulated"]
    quick = [low_fpr.score_game(game, rows, scoring) for scoring in ("Avg", "Max")]
    monkeypatch.setattr(low_fpr, "_TABLE_ROWS", 0)
    plain = [low_fpr.score_game(game, rows, scoring) for scoring in ("Avg", "Max")]
    assert np.allclose(quick, plain)


def test_single_enrolment_meets_the_known_rate(made):
    """One enrolment utterance: the trial is aaaa, whose EER and TPR are known."""
    world = World(n_speakers=40, n_sessions=1, n_utterances=8, dimension=16, speaker=0.4)
    known = simulator.correlations(world, Anonymiser("even", 0.7, voice=0.3))["aaaa"]
    cells = low_fpr.user_privacy(
        made, "even", "simulated", 0, [1], ["relaxed"], n_trials=8000, n_splits=30, fprs=(0.01,)
    )
    plain = cells[(cells["attacker"] == "PT") & (cells["scoring"] == "Avg")].iloc[0]
    assert plain["eer"] == pytest.approx(simulator.known_eer(*known, 16), abs=0.06)
    assert plain["tpr"] == pytest.approx(simulator.known_tpr(*known, 16, 0.01), abs=0.08)
    both = cells[cells["attacker"] == "PT"].set_index("scoring")["eer"]
    assert both["Avg"] == both["Max"]
    assert set(cells["n_train_speakers"]) == {0, 20}
    assert set(cells["n_speakers"]) == {20}


def test_longer_enrolment_helps_and_absent_cells_stay_rows(made):
    cells = low_fpr.user_privacy(
        made, "even", "simulated", 0, [1, 5, 60], n_trials=2000, n_splits=10
    )
    assert len(cells) == 2 * 3 * 2 * 2 * 3
    eer = cells[(cells["attacker"] == "PT") & (cells["scoring"] == "Avg")].drop_duplicates(
        ["regime", "length"]
    ).set_index(["regime", "length"])["eer"]  # fmt: skip
    assert eer["relaxed", 5] < eer["relaxed", 1]
    gone = cells[cells["length"] == 60]
    assert set(gone["status"]) == {"not_applicable"}
    assert gone["reason"].str.contains("speakers have 61").all()
    tail = cells[(cells["fpr"] == 1e-4) & (cells["length"] == 1)]
    assert set(tail["status"]) == {"unknown"}
    assert tail["reason"].str.startswith("not resolvable").all()


def test_attribute_table_finds_sex_by_regression():
    world = World(n_speakers=80, n_sessions=1, n_utterances=6, dimension=8, speaker=0.8)
    made = simulator.simulate(world, [Anonymiser("weak", 0.2)], np.random.default_rng(4))
    table = low_fpr.attribute_privacy(
        made, "weak", "simulated", 0, ["sex"], n_trials=2000, n_splits=20, fprs=(0.1,)
    )
    relaxed = table[table["regime"] == "relaxed"].set_index("attacker")
    assert relaxed.loc["logistic", "auc"] > relaxed.loc["cosine", "auc"]
    assert (relaxed["accuracy"] == 1 - relaxed["eer"]).all()
    assert set(table["status"]) == {"ok"}
    none = Segments(made.table.assign(sex="female"), made.vectors)
    gone = low_fpr.attribute_privacy(none, "weak", "simulated", 0, ["sex"], n_trials=100)
    assert set(gone["status"]) == {"not_applicable"}
    assert gone["reason"].str.contains("1 known values of sex").all()


def cell(scoring: str, tpr: float, low: float, high: float, status: str = "ok"):
    return {
        "system": "x", "attacker": "FT", "scoring": scoring, "fpr": 1e-4, "eer": 0.35, "tpr": tpr,
        "ci_low": low, "ci_high": high, "status": status, "reason": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("top", "verdict"),
    [
        (cell("Max", 0.19, 0.12, 0.25), "supported"),
        (cell("Max", 0.19, 0.04, 0.25), "not supported"),
        (cell("Max", 0.19, 0.12, 0.25, "unknown"), "not resolvable"),
    ],
)
def test_verdict(top, verdict):
    table = pd.DataFrame([top, cell("Avg", 0.004, 0.001, 0.05)])
    assert low_fpr.judge_claim(table)["verdict"] == verdict
    overlapping = pd.DataFrame([top, cell("Avg", 0.1, 0.0, 0.2)])
    assert low_fpr.judge_claim(overlapping)["verdict"] != "supported"


def test_rankings_are_compared_over_the_cells_that_all_systems_have():
    same = {"condition": "c", "backend": "b", "regime": "relaxed", "attacker": "PT",
            "scoring": "Avg", "fpr": 0.01, "status": "ok"}  # fmt: skip
    rows = pd.DataFrame([
        same | {"system": "a", "length": 1, "eer": 0.3, "tpr": 0.5},
        same | {"system": "b", "length": 1, "eer": 0.2, "tpr": 0.1},
        same | {"system": "b", "length": 3, "eer": 0.9, "tpr": 0.9},
    ])  # fmt: skip
    ranks, sentence = low_fpr.compare_rankings(rows, 0.01)
    assert ranks.loc["a"].tolist() == [1.0, 2.0]
    assert "1 common cells" in sentence
    assert "differently: 1 of 1 pairs" in sentence
    alone = rows.assign(length=[1, 3, 3])
    assert "0 cells are common" in low_fpr.compare_rankings(alone, 0.01)[1]
    _, sentence = low_fpr.compare_rankings(rows.assign(status="unknown"), 0.01)
    assert "cannot be said" in sentence
