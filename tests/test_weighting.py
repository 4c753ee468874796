"""Weightings by hand: a long conversation against a short one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from aegis import weighting


def draws() -> np.random.Generator:
    return np.random.default_rng(20261005)


def matches(rows: list[tuple[str, str, str, str]]) -> pd.DataFrame:
    table = pd.DataFrame(
        rows, columns=["intention_id", "recording_id", "condition", "replacement_status"]
    )
    return table.assign(scope="focused", original_status="absent")


HAND = matches([
    ("i1", "long", "renderer_a", "not_realised"), ("i1", "long", "renderer_b", "realised"),
    ("i2", "long", "renderer_a", "realised"), ("i2", "long", "renderer_b", "realised"),
    ("i3", "long", "renderer_a", "failed"), ("i3", "long", "renderer_b", "realised"),
    ("i4", "short", "renderer_a", "realised"), ("i4", "short", "renderer_b", "uncertain"),
    ("i5", "short", "renderer_a", "realised"),
])  # fmt: skip


def test_items_are_paired_and_the_rest_is_counted() -> None:
    tables = weighting.observed(HAND, None)
    counts = weighting.count_pairs(tables).set_index("endpoint")
    assert counts.loc["realised"].tolist() == [5, 4, 4, 1]
    pairs = weighting.paired_items(tables)
    own = pairs[pairs["endpoint"] == "realised"]
    assert own["change"].tolist() == [1, 0, 1, -1]


def test_weightings_by_hand() -> None:
    pairs = weighting.paired_items(weighting.observed(HAND, None))
    table = weighting.weightings(pairs, draws, 200).set_index("endpoint")
    row = table.loc["realised"]
    assert row["item_weighted"] == pytest.approx(1 / 4)
    assert row["equal"] == pytest.approx((2 / 3 - 1) / 2)
    assert (row["least"], row["most"]) == (-1.0, pytest.approx(2 / 3))
    assert row["moved_by"] == "long"
    assert (row["items"], row["conversations"]) == (4, 2)
    changes = weighting.by_conversation(pairs)
    assert changes.loc[changes["endpoint"] == "realised", "change"].tolist() == [
        pytest.approx(2 / 3), -1.0,
    ]  # fmt: skip


def test_only_labels_on_which_both_orders_agree_are_observed() -> None:
    rows = [
        ("f1", "renderer_a", "first", "preserved"), ("f1", "renderer_a", "second", "preserved"),
        ("f1", "renderer_b", "first", "contradicted"),
        ("f1", "renderer_b", "second", "contradicted"),
        ("f2", "renderer_a", "first", "preserved"), ("f2", "renderer_a", "second", "missing"),
        ("f2", "renderer_b", "first", "preserved"), ("f2", "renderer_b", "second", "preserved"),
    ]  # fmt: skip
    verdicts = pd.DataFrame(rows, columns=["fact_id", "condition", "order", "label"])
    verdicts = verdicts.assign(recording_id="r", status="ok")
    pairs = weighting.paired_items(weighting.observed(HAND, verdicts)).set_index("endpoint")
    assert pairs.loc[["fact preserved"], "change"].tolist() == [-1]
    assert pairs.loc[["fact contradicted"], "change"].tolist() == [1]


def test_one_conversation_cannot_be_left_out() -> None:
    pairs = weighting.paired_items(weighting.observed(HAND.iloc[:2], None))
    row = weighting.weightings(pairs, draws, 50).iloc[0]
    assert np.isnan(row["least"])
    assert np.isnan(row["item_low"])
    assert row["moved_by"] is None
    empty = weighting.paired_items(weighting.observed(HAND.iloc[:0], None))
    assert weighting.weightings(empty, draws, 50).empty


def test_strata_and_both_weightings_by_hand() -> None:
    tables = weighting.observed(HAND, None)
    strata = weighting.strata_rates(tables, pd.Series({"long": "en"}), draws, 50)
    own = strata[(strata["endpoint"] == "realised") & (strata["condition"] == "renderer_a")]
    assert own[["stratum", "numerator", "denominator", "n_clusters"]].to_numpy().tolist() == [
        ["en", 1, 3, 1]
    ]
    both = weighting.both_weightings(tables, draws, 50)
    own = both[(both["endpoint"] == "realised") & (both["condition"] == "renderer_a")]
    assert own["value"].tolist() == pytest.approx([3 / 5, (1 / 3 + 1) / 2])
