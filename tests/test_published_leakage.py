"""This study's measures give the tables that the leakage papers print."""

from __future__ import annotations

import pytest

from aegis import leakage
from aegis import published_leakage as checks
from aegis.published import check_numbers, read_numbers


def test_scores_components_and_differences_follow():
    table = checks.check_soft()
    assert table.groupby("quantity")["agrees"].agg(["sum", "size"]).to_numpy().tolist() == [
        [6, 6], [6, 6], [6, 6],
    ]  # fmt: skip


def test_all_42_ranks_follow():
    table = checks.check_ranks()
    assert len(table) == 42
    assert table["agrees"].all()


def test_mean_word_errors_are_weighted_by_segments():
    checked = check_numbers(read_numbers("leakage")).set_index("id")
    own = checked.loc[[f"{s}_wer" for s in ("voxlet", "rasp", "shadow", "phortress")]]
    assert set(own["verdict"]) == {"agrees"}
    # VOXLET by hand: 1058 segments twice, 2983, 2778, 3355 of them.
    by_hand = (1058 * (0.26 + 0.23) + 2983 * 0.22 + 2778 * 0.27 + 3355 * 0.24) / 11_232
    assert own.loc["voxlet_wer", "computed"] == pytest.approx(by_hand)


@pytest.mark.parametrize(
    ("tpr", "value"),
    [
        (0.1883, 7.541), (0.0018, 2.890), (0.0040, 3.689), (0.2797, 7.936), (0.587, 8.678),
        (0.0028, 3.332),
    ],
)  # fmt: skip
def test_attack_statistics_are_the_hand_values(tpr, value):
    assert leakage.eps_hat(tpr, 1e-4) == pytest.approx(value, abs=5e-4)


def test_perfect_rank_correlation_rests_on_a_tie():
    table = checks.component_table().set_index(["component", "other"])
    pair = table.loc[("p_attr", "p_assoc")]
    assert not pair["decidable"]
    assert 0.9 < pair["spearman"] < 1.0
    assert (table["pearson"] > 0.8).all()


def test_alignment_of_classes_would_change_a_printed_score():
    assert leakage.attribute_privacy([0.464, 0.496]) == 1.0
    assert leakage.attribute_privacy([1 - 0.464, 1 - 0.496]) == pytest.approx(0.960)
    assert leakage.attribute_privacy([1 - 0.464, 0.496]) == pytest.approx(0.964)


def test_disagreements_are_listed():
    assert "female speakers in Test 3" in set(checks.disagreements("leakage")["label"])
    said = " ".join(checks.disagreements("low_fpr")["label"])
    assert "FT-Avg, L = 60" in said
    assert "FT-Avg, L = 200" in said
