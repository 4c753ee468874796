"""The front page says what the claims say, and no more."""

from __future__ import annotations

import math
import re

import pandas as pd
import pytest

from aegis import abstract


def claim(name: str, value: float, low: float = math.nan, high: float = math.nan, **other):
    row = {
        "claim_id": f"{name}: renderer_b - renderer_a", "label": f"{name}, b minus a",
        "value": value, "unit": "difference", "numerator": math.nan, "denominator": 40.0,
        "unknown": 2, "not_applicable": 0, "ci_low": low, "ci_high": high, "status": "ok",
        "reason": None,
    }  # fmt: skip
    return row | other


ROWS = [
    claim("n", 18, claim_id="n_recordings", unit="recordings", label="recordings"),
    claim("realised", 0.15, 0.08, 0.22),
    claim("retained", -0.02, -0.05, 0.01),
    claim("fact preserved", -0.04, -0.06, -0.01),
    claim("fact contradicted", 0.0, 0.0, 0.02),
    claim("eer all_turns (x, attacker)", 0.05),
    claim("eer edited_region (x, attacker)", math.nan, reason="no trials"),
    claim("other", 0.5, 0.4, 0.6),
]


def test_contrasts_are_sorted_by_what_their_interval_says() -> None:
    text = abstract.summarise(pd.DataFrame(ROWS))
    parts = re.split(r"\*\*([^*:.]+)[^*]*\*\*", text)
    parts = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert text.startswith("The run holds 18 recordings.")
    supported, open_ = parts["Supported by this run"], parts["Not settled"]
    assert "- realised, b minus a: 15 percentage points (8 to 22, 40 items): higher" in supported
    assert "- fact preserved, b minus a: -4 percentage points (-6 to -1, 40 items): lower" in (
        supported
    )
    assert supported.count("\n- ") == 2
    assert [name in open_ for name in ("retained", "fact contradicted")] == [True, True]
    assert "- eer all_turns" in parts["Without an interval"]
    assert parts["Not measured"].strip() == "- 1 contrast: no trials"
    assert "other" not in text


@pytest.mark.parametrize("low", [-0.3, -0.0001, 0.0])
def test_an_interval_that_holds_zero_is_never_an_equivalence(low: float) -> None:
    text = abstract.write_abstract(pd.DataFrame([claim("retained", 0.0, low, 0.001)]))
    assert "neither a difference nor equivalence" in text
    assert not re.search(r"no difference|equivalent|the same|unchanged|equal", text)


def test_a_claim_stands_with_its_counts() -> None:
    text = abstract.sentence(ROWS[2] | {"numerator": 1.0, "denominator": 9.0})
    assert "-2 percentage points (1 of 9; 2 unknown, 0 not applicable)" in text
    assert "95 % interval -5 to 1 (holds zero: neither" in text
    assert "(40 items; 2 unknown" in abstract.sentence(ROWS[1])
    assert abstract.sentence(ROWS[6]).endswith("n/a (no trials).")


def test_a_share_with_zero_in_its_interval_is_no_contrast() -> None:
    text = abstract.sentence(claim("x", 0.0, 0.0, 0.1, unit="share"))
    assert "zero" not in text


def test_nothing_to_claim_is_said() -> None:
    assert "not reached its contrasts" in abstract.write_abstract(None)
    assert "makes no claims" in abstract.write_abstract(pd.DataFrame(ROWS).iloc[:0])
    assert "No contrast has an interval" in abstract.summarise(pd.DataFrame(ROWS[:1]))
