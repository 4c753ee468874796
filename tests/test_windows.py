"""Sampling speech: intervals, windows, halves, eligibility; against hand examples."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from fabricate import fabricate_run
from hypothesis import given, settings
from hypothesis import strategies as st

from aegis import windows as win


def test_intervals_are_merged_and_trimmed() -> None:
    assert win.usable_intervals([(0, 10), (100, 200), (150, 300)], edge=4) == [(4, 6), (104, 296)]
    assert win.usable_intervals([(0, 8)], edge=4) == []
    with pytest.raises(ValueError, match="ends before it starts"):
        win.usable_intervals([(5, 4)])


def test_windows_by_hand() -> None:
    windows = win.place_windows([(0, 50), (100, 160)], n_windows=10, length=30, min_usable=10)
    # 110 samples hold three windows, at 0, 40 and 80 of the joined speech.
    assert windows == [((0, 30),), ((40, 50), (100, 120)), ((130, 160),)]
    assert win.place_windows([(0, 50)], length=30, min_usable=10) == [((10, 40),)]
    assert win.place_windows([(0, 12)], length=30, min_usable=10) == [((0, 12),)]
    assert win.place_windows([(0, 9)], length=30, min_usable=10) == []


INTERVALS = st.lists(st.tuples(st.integers(0, 500), st.integers(1, 90)), min_size=1, max_size=8)


@settings(deadline=None, max_examples=60)
@given(INTERVALS)
def test_windows_lie_inside_the_speech_and_do_not_overlap(raw: list[tuple[int, int]]) -> None:
    usable = win.usable_intervals([(a, a + n) for a, n in raw], edge=3)
    windows = win.place_windows(usable, n_windows=4, length=30, min_usable=10)
    total = win.usable_samples(usable)
    assert len(windows) == (0 if total < 10 else max(1, min(4, total // 30)))
    inside = {i for a, b in usable for i in range(a, b)}
    taken = [i for window in windows for a, b in window for i in range(a, b)]
    assert len(set(taken)) == len(taken)
    assert set(taken) <= inside
    assert all(win.usable_samples(window) == min(30, total) for window in windows)


def test_halves_of_a_sample_share_nothing() -> None:
    windows = [((i, i + 1),) for i in range(5)]
    assert win.split_windows(windows) == (windows[::2], windows[1::2])
    second = win.SAMPLE_RATE_HZ
    single: list[win.Window] = [((0, second), (5 * second, 6 * second + 2))]
    assert win.split_windows(single) == (
        [((0, second), (5 * second, 5 * second + 1))],
        [((5 * second + 1, 6 * second + 2),)],
    )
    short: list[win.Window] = [((0, second + 5),)]
    assert win.split_windows(short) == (short, [])
    assert win.split_windows([]) == ([], [])


def test_window_signal_joins_intervals() -> None:
    samples = np.arange(10, dtype=np.float32)
    assert win.window_signal(samples, ((1, 3), (7, 8))).tolist() == [1, 2, 7]


def test_profile_vector_normalises_averages_normalises() -> None:
    vector = win.profile_vector([[3.0, 0.0], [0.0, 5.0]])
    assert vector == pytest.approx([math.sqrt(0.5)] * 2)
    centred = win.profile_vector([[3.0, 0.0]], centre=[0.0, 1.0])
    assert centred == pytest.approx([math.sqrt(0.5), -math.sqrt(0.5)])
    with pytest.raises(ValueError, match="zero, NaN or infinite"):
        win.profile_vector([[0.0, 0.0]])
    with pytest.raises(ValueError, match=r"shape \(0, 4\)"):
        win.profile_vector(np.zeros((0, 4)))


def test_eligibility_tells_absent_from_unknown() -> None:
    second = win.SAMPLE_RATE_HZ
    assert win.judge_eligibility(second, True) == ("ok", None)
    assert win.judge_eligibility(0, False)[0] == "not_applicable"
    assert win.judge_eligibility(second - 1, True)[0] == "unknown"
    assert win.judge_eligibility(5 * second, True, heard=False)[0] == "unknown"


# --- from tables ---


def test_intervals_of_a_made_up_run(tmp_path: Path) -> None:
    """Turns 0, 3 and 6 of eight are edited: S1 speaks 0 2 4 6, S2 speaks 1 3 5 7."""
    run = fabricate_run(tmp_path / "toy", n_recordings=1)
    affected = run.read("regions")["turn_id"]
    source = win.source_intervals(run.read("turns"), affected)
    assert source["edited"].tolist().count(True) == 3
    assert source["start"].min() == 0
    placed = win.timeline_intervals(run.read("timeline"), affected)
    assert set(placed["condition"]) == {"converted", "renderer_a", "renderer_b", "redacted"}
    b = placed[placed["condition"] == "renderer_b"]
    first = b.sort_values("start").iloc[0]
    # The rendered first turn is a quarter of a second longer than its 4 s.
    assert (first["start"], first["end"]) == (0, 68_000)
    samples = win.sample_profiles(win.select_intervals(b, "edited_region"))
    # S1: two edited turns of 4.25 s, less 100 ms each, hold two whole windows.
    assert samples["toy/c00/S1"].usable == 2 * (68_000 - 1_600)
    assert len(samples["toy/c00/S1"].windows) == 2
    assert len(samples["toy/c00/S2"].windows) == 1
    assert len(win.select_intervals(b, "unedited")) == 5
    with pytest.raises(ValueError, match="region kind 'edited'"):
        win.select_intervals(b, "edited")


def test_silent_stand_ins_are_no_speech(tmp_path: Path) -> None:
    run = fabricate_run(tmp_path / "toy", n_recordings=1)
    timeline = run.read("timeline")
    timeline.loc[timeline["turn_id"].notna(), "source"] = "silence"
    assert not len(win.timeline_intervals(timeline, []))
