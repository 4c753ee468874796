"""What the paper prints follows from the counts that it prints; wrong numbers would be seen."""

from __future__ import annotations

import pandas as pd
import pytest

from aegis import published
from aegis.errors import ManifestError


@pytest.mark.parametrize(
    ("name", "check"),
    [
        ("aegisvox_rates", published.check_rates),
        ("aegisvox_differences", published.check_differences),
        ("aegisvox_sums", published.check_sums),
        ("aegisvox_tests", published.check_tests),
    ],
)
def test_every_printed_number_agrees(name: str, check) -> None:
    table = check(published.read_published(name))
    assert len(table) > 0
    assert table["agrees"].all(), table.loc[~table["agrees"], "id"].tolist()


def test_a_wrong_digit_is_found() -> None:
    rates = published.read_published("aegisvox_rates")
    rates.loc[rates["id"] == "b_realised", "percent"] = 89.12
    rates.loc[rates["id"] == "a_realised_qwen", "high"] = 73.7
    checked = published.check_rates(rates)
    assert checked.loc[~checked["agrees"], "id"].tolist() == ["b_realised", "a_realised_qwen"]


def test_bounds_tell_the_uncertain_labels_exactly() -> None:
    for row in published.read_published("aegisvox_bounds").itertuples():
        found = published.unresolved_from_bounds(
            row.difference, row.denominator, row.low, row.high, row.decimals
        )
        assert found == ([423], [279])


def test_the_add_one_rule_explains_the_printed_p() -> None:
    tests = published.check_tests(published.read_published("aegisvox_tests")).set_index("id")
    assert tests.loc["contradicted", "extreme_draws"] == 16


def test_trials_of_the_second_paper_add_up() -> None:
    trials = published.read_published("nist_trials")
    assert (trials["target"] + trials["nontarget"] == trials["total"]).all()
    assert (trials["male"] + trials["female"] == trials["speakers"]).all()
    once = trials[trials["test"] != "Test 1 (8k)"]
    assert once["total"].sum() == pytest.approx(3.4e6, rel=0.02)
    # 22,000 segments only come about with Test 1 twice and both pseudo-profiles.
    assert 2 * trials["segments"].sum() == pytest.approx(22_000, rel=0.03)


def test_refused_input(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ManifestError, match="known: aegisvox_bounds"):
        published.read_published("nothing")
    with pytest.raises(ManifestError, match="expected whole numbers"):
        published.evaluate("1 - 2")
    with pytest.raises(ManifestError, match="expected whole numbers"):
        published.evaluate("len('a')")
    pd.DataFrame({"id": ["x", "x"]}).to_csv(tmp_path / "twice.csv", index=False)
    monkeypatch.setattr(published, "PUBLISHED", tmp_path)
    with pytest.raises(ManifestError, match="an id repeats"):
        published.read_published("twice")
