"""The front page says what the claims say, and no more."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree

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
    supported, open_ = parts["Supported by this run"], parts["Not settled"]
    assert (
        "- replacement heard, b minus a: 15.0 percentage points (8.0 to 22.0; 40 items, 2"
        in supported
    )
    assert "- facts preserved, b minus a: -4.0 percentage points (-6.0 to -1.0; 40 items, 2" in (
        supported
    )
    assert supported.count("unknown): lower") == supported.count("unknown): higher") == 1
    assert supported.count("\n- ") == 2
    assert [name in open_ for name in ("original still heard", "facts contradicted")] == [True] * 2
    assert "- attacker's equal error rate over all turns (x)" in parts["Without an interval"]
    assert parts["Not measured"].strip() == "- 1 contrast: no trials"
    assert "other" not in text


@pytest.mark.parametrize("low", [-0.3, -0.0001, 0.0])
def test_an_interval_that_holds_zero_is_never_an_equivalence(low: float) -> None:
    text = abstract.write_abstract(pd.DataFrame([claim("retained", 0.0, low, 0.001)]))
    assert "neither a difference nor equivalence" in text
    assert not re.search(r"no difference|equivalent|the same|unchanged|equal", text)


def share(name: str, value: float, low: float, high: float, of: int):
    return claim(name, value, low, high, claim_id=name, unit="share", denominator=of) | {
        "numerator": value * of
    }


def test_the_main_results_stand_with_interval_and_counts() -> None:
    rows = [
        ROWS[0], ROWS[1], share("realised_renderer_a", 0.5, 0.25, 0.75, 40),
        share("realised_renderer_b", 0.65, 0.4, 0.9, 40),
        share("eer_final_converted_all_turns_x", 0.4, 0.3, 0.5, 60),
        share("eer_final_original_converted_all_turns_x", 0.0, 0.0, 0.1, 60), ROWS[5], ROWS[6],
    ]  # fmt: skip
    text = abstract.write_abstract(pd.DataFrame(rows), "t.html")
    assert text.startswith("The run holds 18 recordings.\n\n::: {#tbl-main}")
    assert '8 numbers with their counts: <a href="t.html">' in text
    (table,) = re.findall(r"<table>.*</table>", text.replace("<br>", " "))
    cells = [
        ["".join(c.itertext()) for c in row] for row in ElementTree.fromstring(table).iter("tr")
    ]
    assert cells[1] == ["Can a speaker be linked to the original?"]
    lines = {row[0]: row[1:] for row in cells}
    assert lines["replacement heard, one at a time"] == [
        "–", "–", "50.0 % 25.0 to 75.0 20 of 40 2 unknown",
        "65.0 % 40.0 to 90.0 26 of 40 2 unknown", "–", "+15.0 points +8.0 to +22.0 supported",
    ]  # fmt: skip
    linked = lines["attacker's equal error rate, all turns (x; chance is 50 %)"]
    assert linked[0].startswith("0.0 % 0.0 to 10.0 0 of 60")
    assert linked[1].startswith("40.0 % 30.0 to 50.0")
    assert linked[5] == "+5.0 points"  # no interval, so nothing is said of it
    assert "the same, edited regions only (x)" not in lines
    assert "Are the words still said?" not in lines


def test_an_interval_that_touches_zero_does_not_support() -> None:
    assert abstract._difference(claim("x", 0.1, 0.0, 0.2)).endswith("<small>not settled</small>")


def test_nothing_to_claim_is_said() -> None:
    assert "not reached its contrasts" in abstract.write_abstract(None)
    assert "makes no claims" in abstract.write_abstract(pd.DataFrame(ROWS).iloc[:0])
    assert "No contrast has an interval" in abstract.summarise(pd.DataFrame(ROWS[:1]))
