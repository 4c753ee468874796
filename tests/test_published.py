"""What the papers print follows from what they print; wrong numbers would be seen."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement

import pandas as pd
import pytest

from aegis import published
from aegis.errors import ManifestError


@pytest.fixture(scope="module")
def checked() -> dict[str, pd.DataFrame]:
    return {
        name: published.check_numbers(published.read_numbers(name)).set_index("id")
        for name in published.DOCUMENTS
    }


def test_the_paper_agrees_with_itself(checked: dict[str, pd.DataFrame]) -> None:
    verdicts = checked["aegisvox"]["verdict"].value_counts()
    assert verdicts["agrees"] > 75
    assert "differs" not in verdicts


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("leakage", ["segments_over", "female_test3", "young_table_from"]),
        ("low_fpr", ["tpr_ft_avg_60_text", "tpr_ft_max_60_text", "tpr_ft_avg_200_text"]),
    ],
)
def test_known_inconsistencies_are_found_and_no_others(
    checked: dict[str, pd.DataFrame], name: str, known: list[str]
) -> None:
    table = checked[name]
    assert table.index[table["verdict"] == "differs"].tolist() == known


def test_all_42_ranks_and_all_trial_counts_follow(checked: dict[str, pd.DataFrame]) -> None:
    table = checked["leakage"]
    ranks = table[table.index.str.contains("_rank_")]
    assert len(ranks) == 42
    assert (ranks["verdict"] == "agrees").all()
    trials = table[table.index.str.endswith("_trials") & table["formula"].notna()]
    assert trials["verdict"].tolist() == ["agrees"] * 5


def test_hand_values(checked: dict[str, pd.DataFrame]) -> None:
    paper, third = checked["aegisvox"]["computed"], checked["low_fpr"]["computed"]
    assert (paper["a_preserved"], paper["b_preserved"]) == (19_954, 19_929)
    assert (paper["a_uncertain"], paper["b_uncertain"]) == (423, 279)
    assert paper["contradicted_neither"] == 25_145
    assert paper["contradicted_extreme"] == 16
    assert paper["n_pairs"] == 458
    assert third["epsilon_ft_max_60_first"] == pytest.approx(7.541, abs=5e-4)
    assert third["epsilon_ft_avg_200"] == pytest.approx(3.332, abs=5e-4)


def test_every_number_has_its_source() -> None:
    for name in published.DOCUMENTS:
        table = published.read_numbers(name)
        assert table[["seed", "place", "unit", "kind", "label"]].notna().all().all()
        assert len(set(table["seed"])) == 1
        open_ = table["value"].isna()
        assert (table.loc[open_, "kind"] == "derived").all()
        assert table.loc[open_, "formula"].notna().all()
        interval = table.dropna(subset=["low"])
        assert (interval["low"] <= interval["value"]).all()
        assert (interval["value"] <= interval["high"]).all()


@pytest.mark.parametrize(
    ("name", "value", "also"),
    [
        ("b_realised_rate", 89.12, []),
        ("qwen_a_high", 73.7, []),
        ("contradicted_a_only", 155, ["contradicted_neither", "a_contradicted"]),
    ],
)
def test_a_wrong_digit_is_found(name: str, value: float, also: list[str]) -> None:
    numbers = published.read_numbers("aegisvox")
    numbers.loc[numbers["id"] == name, "value"] = value
    checked = published.check_numbers(numbers)
    wrong = checked.loc[checked["verdict"] == "differs", "id"].tolist()
    assert wrong == (also or [name])


def number(name: str, value: float, decimals: float = math.nan, formula: str | None = None):
    return {"id": name, "value": value, "decimals": decimals, "formula": formula,
            "kind": "printed", "relation": "="}  # fmt: skip


def test_rounded_inputs_give_room_and_exact_ones_none() -> None:
    rounded = [number("x", 0.5, 1), number("y", 1.09, 2, "2 * x")]
    exact = [number("x", 0.5), number("y", 1.09, 2, "2 * x"), number("z", 7)]
    # x may be 0.45 to 0.55, so 2 x reaches 1.09; an exact half does not.
    verdicts = [
        published.check_numbers(pd.DataFrame(rows))["verdict"].tolist()
        for rows in (rounded, exact)
    ]
    assert verdicts == [["basis", "agrees"], ["basis", "differs", "not derivable"]]


def test_bounds_tell_the_uncertain_labels_exactly() -> None:
    of = published.read_numbers("aegisvox").set_index("id")["value"]
    for end, difference in (("preserved", -25), ("contradicted", 88)):
        low, high = of[f"bound_{end}_low"], of[f"bound_{end}_high"]
        found = published.unresolved_from_bounds(difference, 25_778, low, high, 3)
        assert found == ([423], [279])


def test_pair_range_equals_enumeration() -> None:
    for n_conversations, n_profiles, most in [(3, 7, 4), (4, 9, 3), (2, 2, 5), (5, 11, 6)]:
        sums = [
            sum(math.comb(k, 2) for k in sizes)
            for sizes in combinations_with_replacement(range(1, most + 1), n_conversations)
            if sum(sizes) == n_profiles
        ]
        expected = (min(sums), max(sums))
        assert published.pair_range(n_conversations, n_profiles, most) == expected


def test_the_published_negatives_need_ordered_pairs_unless_five_speak() -> None:
    ranges = {most: published.pair_range(390, 809, most) for most in (3, 4, 5)}
    assert [high >= 916 for _, high in ranges.values()] == [False, False, True]
    assert ranges[3][0] <= 458 <= ranges[3][1]


def test_numbers_stand_beside_this_run() -> None:
    numbers = published.read_numbers("aegisvox")
    both = published.beside(numbers, {"n_facts": 237.0, "realised_gain": None})
    assert both["paper"].tolist() == ["25,778", "13.64 points (9.69 to 17.59)"]
    assert both["this run"].tolist() == [237.0, "not measured"]
    with pytest.raises(ManifestError, match="no printed numbers"):
        published.beside(numbers, {"nothing": 1.0})


def test_refused_input(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ManifestError, match="known: aegisvox, leakage, low_fpr"):
        published.read_numbers("nothing")
    for formula in ("2 ** 3", "len('a')", "x.y", "unknown + 1", "True"):
        with pytest.raises(ManifestError, match="expected numbers"):
            published.evaluate(formula, {"x": 1.0})
    with pytest.raises(ManifestError, match="2 counts of 1000"):
        published.count_of(0.15, 1000, 1)
    with pytest.raises(ManifestError, match="uses other"):
        published.check_numbers(pd.DataFrame([number("x", math.nan, formula="other + 1")]))
    monkeypatch.setattr(published, "PUBLISHED", tmp_path)
    row = "id,value,low,high,decimals,unit,kind,seed,place,label,formula,relation\n"
    line = "x,1,,,,count,{},000,p,l,,=\n"
    (tmp_path / "twice.csv").write_text(row + 2 * line.format("printed"))
    with pytest.raises(ManifestError, match="an id repeats"):
        published.read_numbers("twice")
    (tmp_path / "odd.csv").write_text(row + line.format("guessed"))
    with pytest.raises(ManifestError, match="a kind is none of"):
        published.read_numbers("odd")
