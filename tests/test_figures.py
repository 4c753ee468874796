"""Figures show the values of their tables, and can be told apart without colour."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from aegis import figures

mpl.use("Agg")

RATES = pd.DataFrame({
    "condition": ["original", "converted", "original", "converted"],
    "series": ["items", "items", "conversations", "conversations"],
    "value": [0.9, 0.5, 0.8, 0.4], "ci_low": [0.8, np.nan, 0.7, 0.3],
    "ci_high": [0.95, np.nan, 0.9, 0.6],
})  # fmt: skip


@pytest.fixture(autouse=True)
def _close():
    yield
    mpl.pyplot.close("all")


def test_rates_are_drawn_in_percent_with_whiskers_where_known() -> None:
    axes = figures.draw_rates(RATES)
    first = axes.containers[0]
    assert first.lines[0].get_ydata().tolist() == [90, 50]
    ends = [segment[:, 1].tolist() for segment in first.lines[2][0].get_segments()]
    assert ends[0] == pytest.approx([80, 95])
    assert ends[1] == pytest.approx([50, 50])
    markers = {c.lines[0].get_marker() for c in axes.containers}
    assert len(markers) == 2


def test_a_partition_fills_every_bar_with_hatches_apart() -> None:
    counts = pd.DataFrame({"condition": ["a", "b"], "good": [3, 0], "bad": [1, 0]})
    axes = figures.draw_partition(counts, ["good", "bad"])
    widths = [[bar.get_width() for bar in bars] for bars in axes.containers]
    assert widths == [[75, 0], [25, 0]]
    assert len({bars[0].get_hatch() for bars in axes.containers}) == 2


def test_changes_are_sorted_and_sized_by_items() -> None:
    changes = pd.DataFrame({"endpoint": "x", "change": [0.2, -0.1], "n_items": [1, 4]})
    axes = figures.draw_changes(changes)
    (cloud,) = axes.collections
    assert cloud.get_offsets()[:, 1].tolist() == pytest.approx([-10, 20])
    assert cloud.get_sizes()[0] > cloud.get_sizes()[1]


def test_realised_against_retained() -> None:
    row = {"condition": "renderer_a", "realised": 0.5, "realised_low": 0.4, "realised_high": 0.6,
           "retained": 0.1, "retained_low": np.nan, "retained_high": np.nan}  # fmt: skip
    axes = figures.draw_realised(pd.DataFrame([row]))
    line = axes.containers[0].lines[0]
    assert (line.get_xdata()[0], line.get_ydata()[0]) == (50, 10)


def test_error_rates_have_chance_and_a_marker_a_condition() -> None:
    rates = pd.DataFrame({
        "place": ["all turns", "edited"] * 2, "condition": ["original"] * 2 + ["converted"] * 2,
        "eer": [0.1, 0.2, 0.4, 0.3], "ci_low": np.nan, "ci_high": np.nan,
    })  # fmt: skip
    axes = figures.draw_error_rates(rates)
    assert [t.get_text() for t in axes.get_legend().get_texts()] == ["original", "converted only"]
    assert axes.containers[1].lines[0].get_ydata().tolist() == [40, 30]


def test_a_tradeoff_names_its_points() -> None:
    points = pd.DataFrame({"condition": ["redacted"], "x": [0.2], "y": [0.45]})
    axes = figures.draw_tradeoff(points, "x", "y")
    assert axes.texts[0].get_text() == "redacted"


def test_calibration_counts_unobserved_labels() -> None:
    cases = pd.DataFrame({"expected": ["m", "m", "p"], "label": ["m", None, "p"]})
    axes = figures.draw_calibration(cases)
    assert sorted(t.get_text() for t in axes.texts) == ["0", "0", "0", "1", "1", "1"]
    assert [t.get_text() for t in axes.get_xticklabels()] == ["m", "p", "unobserved"]


def test_contrasts_that_cross_zero_are_hollow() -> None:
    rows = pd.DataFrame({
        "contrast_id": ["a", "b"], "estimate": [0.1, 0.0], "ci_low": [0.05, -0.1],
        "ci_high": [0.2, 0.1],
    })  # fmt: skip
    axes = figures.draw_contrasts(rows)
    fills = [line.get_markerfacecolor() for line in axes.lines if line.get_marker() == "o"]
    assert fills == [figures.GREYS[0], "white"]


def test_greys_differ_in_lightness() -> None:
    light = [sum(to_rgb(grey)) for grey in figures.GREYS]
    assert min(np.diff(light)) > 0.2
