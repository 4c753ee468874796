"""Reconstruction: exact sample accounting on hand-made signals."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aegis.audio import PCM16_STEP, Signal, open_wav, read_wav, write_wav
from aegis.errors import ItemError
from aegis.stitch import (
    Segment,
    TurnSound,
    assemble,
    check_segments,
    choose_sound,
    count_segments,
    plan_segments,
    replay_steps,
)


def sound(
    turn_id: str,
    start: int,
    end: int,
    n_samples: int | None = None,
    channel: int = 0,
    source: str = "converted",
    n_edits: int = 0,
) -> TurnSound:
    length = end - start if n_samples is None else n_samples
    file = None if source == "silence" else f"{turn_id}.wav"
    return TurnSound(turn_id, "r/S1", channel, start, end, source, file, length, n_edits)


def intervals(rows: list[Segment]) -> list[tuple[str, int, int, int, int]]:
    return [(r.kind, r.source_start, r.source_end, r.out_start, r.out_end) for r in rows]


def test_gaps_keep_their_length_and_an_insertion_shifts_what_follows() -> None:
    turns = [sound("b", 30, 50, n_samples=35, source="rendered"), sound("a", 5, 20)]
    rows = plan_segments([*turns, sound("c", 60, 70)], 100, "mono")
    assert intervals(rows) == [
        ("gap", 0, 5, 0, 5),
        ("turn", 5, 20, 5, 20),
        ("gap", 20, 30, 20, 30),
        ("turn", 30, 50, 30, 65),
        ("gap", 50, 60, 65, 75),
        ("turn", 60, 70, 75, 85),
        ("gap", 70, 100, 85, 115),
    ]
    counts = count_segments(rows, [*turns, sound("c", 60, 70)])
    assert (counts.n_samples, counts.n_rendered, counts.n_failed) == (115, 1, 0)
    assert counts.inserted_s == pytest.approx(15 / 16_000)
    assert counts.clipped_s == 0.0


def test_an_overlap_belongs_to_the_turn_that_started_first() -> None:
    rows = plan_segments([sound("b", 8, 20), sound("a", 0, 10)], 20, "mono")
    assert intervals(rows) == [("turn", 0, 10, 0, 10), ("turn", 10, 20, 10, 20)]
    assert rows[1].file_start == 2
    assert count_segments(rows, [sound("a", 0, 10), sound("b", 8, 20)]).clipped_s == 2 / 16_000


def test_a_clipped_rendered_turn_loses_the_same_share_of_its_own_clock() -> None:
    rows = plan_segments([sound("a", 0, 10), sound("b", 5, 15, 20, source="rendered")], 15, "mono")
    assert rows[1].file_start == 10
    assert intervals(rows)[1] == ("turn", 10, 15, 10, 20)


def test_a_fully_clipped_turn_is_a_failure_with_its_edits() -> None:
    turns = [sound("a", 0, 50), sound("b", 10, 20, n_edits=2), sound("c", 50, 60)]
    rows = plan_segments(turns, 60, "mono")
    assert intervals(rows)[1] == ("clipped", 10, 20, 50, 50)
    counts = count_segments(rows, turns)
    assert (counts.n_failed, counts.n_clipped_turns, counts.n_clipped_edits) == (1, 1, 2)
    assert counts.clipped_s == 10 / 16_000


def test_turns_past_the_end_are_clamped_and_reversed_ones_refused() -> None:
    assert intervals(plan_segments([sound("a", 90, 103)], 100, "mono"))[-1] == (
        "turn", 90, 100, 90, 103,
    )  # fmt: skip
    with pytest.raises(ItemError, match="turn a"):
        plan_segments([sound("a", 120, 130)], 100, "mono")


def test_no_turns_is_one_silent_gap() -> None:
    rows = plan_segments([], 40, "mono")
    assert intervals(rows) == [("gap", 0, 40, 0, 40)]
    assert not np.asarray(assemble(rows, lambda name: np.ones(1, np.float32))).any()


def test_channels_are_mixed_and_share_one_clock() -> None:
    turns = [
        sound("a", 10, 30, 26, channel=0, source="rendered"),
        sound("b", 20, 40, channel=1),
        sound("c", 50, 60, channel=1),
        sound("d", 70, 80, channel=0),
    ]
    rows = plan_segments(turns, 100, "speaker_per_channel")
    placed = {row.turn_id: (row.out_start, row.out_end) for row in rows if row.turn_id}
    # b began before a ended, so it stays; c and d move by the 6 samples that a gained.
    assert placed == {"a": (10, 36), "b": (20, 40), "c": (56, 66), "d": (76, 86)}
    assert max(row.out_end for row in rows) == 106
    check_segments(rows, 100)
    mixed = np.asarray(assemble(rows, lambda name: np.full(100, 0.25, np.float32)))
    assert mixed[15] == 0.25 and mixed[25] == 0.5 and mixed[45] == 0.0


def test_a_shortened_turn_never_pulls_speech_of_one_channel_over_itself() -> None:
    turns = [
        sound("a", 0, 30, 5, channel=0, source="rendered"),
        sound("b", 20, 60, channel=1),
        sound("c", 60, 70, channel=1),
    ]
    rows = plan_segments(turns, 80, "speaker_per_channel")
    check_segments(rows, 80)
    placed = {row.turn_id: row.out_start for row in rows if row.turn_id}
    assert placed["c"] == placed["b"] + 40


@pytest.mark.parametrize(
    ("converted", "rendered", "condition", "source"),
    [
        ("ok", None, "renderer_a", "converted"),
        ("ok", "ok", "renderer_b", "rendered"),
        ("ok", "failed", "renderer_a", "retained_converted"),
        ("ok", "failed", "redacted", "silence"),
        ("failed", None, "converted", "silence"),
        ("failed", "failed", "renderer_b", "silence"),
        (None, None, "converted", "silence"),
    ],
)
def test_what_stands_for_a_turn(
    converted: str | None, rendered: str | None, condition: str, source: str
) -> None:
    turn = {"turn_id": "a", "profile_id": "r/S1", "channel": 0, "start": 0, "end": 10}
    rows = [
        None if status is None else {"status": status, "file": name, "n_samples": n}
        for status, name, n in ((converted, "c.wav", 10), (rendered, "r.wav", 13))
    ]
    chosen = choose_sound(turn, rows[0], rows[1], condition)
    assert chosen.source == source
    assert (chosen.file is None) == (source == "silence")
    assert chosen.n_samples == (13 if source == "rendered" else 10)


LENGTHS = st.tuples(
    st.integers(0, 400), st.integers(1, 120), st.integers(-100, 100), st.integers(0, 1)
)


@settings(max_examples=150, deadline=None)
@given(st.lists(LENGTHS, max_size=30), st.sampled_from(["mono", "speaker_per_channel"]))
def test_every_sample_is_used_once(drawn: list[tuple[int, int, int, int]], layout: str) -> None:
    turns = [
        sound(f"t{i}", start, start + length, max(length + change, 0), channel, "rendered")
        for i, (start, length, change, channel) in enumerate(drawn)
    ]
    rows = plan_segments(turns, 600, layout)
    check_segments(rows, 600)
    counts = count_segments(rows, turns)
    spoken = [row for row in rows if row.kind == "turn"]
    lost = [row for row in rows if row.kind == "clipped"]
    assert len(spoken) + len(lost) == len(turns)
    heard = sum(row.source_end - row.source_start for row in spoken)
    total = sum(turn.end - turn.start for turn in turns)
    assert heard + round(counts.clipped_s * 16_000) == total
    if layout == "mono":
        assert counts.n_samples == 600 + round(counts.inserted_s * 16_000)


def test_240_turns_without_drift(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Replay from files: the place of each turn is the running sum of what was inserted."""
    folder = tmp_path_factory.mktemp("wav")
    rng = np.random.default_rng(20261005)
    turns, expected, at, shift = [], [], 0, 0
    for i in range(240):
        start = at + int(rng.integers(0, 900))
        length, change = int(rng.integers(200, 1500)), int(rng.integers(-150, 300))
        tone = rng.uniform(-0.5, 0.5, length + change).astype(np.float32)
        write_wav(folder / f"t{i:03d}.wav", tone)
        turns.append(sound(f"t{i:03d}", start, start + length, length + change, source="rendered"))
        expected.append(start + shift)
        at, shift = start + length, shift + change
    rows = plan_segments(turns, at + 500, "mono")
    assert [row.out_start for row in rows if row.kind == "turn"] == expected
    assert rows[-1].out_end == at + 500 + shift

    def read(name: str) -> Signal:
        return read_wav(folder / name)

    written = write_wav(folder / "all.wav", assemble(rows, read))
    saved = read_wav(folder / "all.wav")
    assert replay_steps(rows, read, saved, written.gain_db) == 0.0
    saved[1234] += 3 * PCM16_STEP
    assert replay_steps(rows, read, saved, written.gain_db) == pytest.approx(3.0)
    assert replay_steps(rows, read, saved[:-1], written.gain_db) == float("inf")


def test_a_mix_above_full_scale_replays_with_its_gain(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("wav")
    turns = [sound("a", 0, 100, channel=0), sound("b", 0, 100, channel=1)]
    rows = plan_segments(turns, 100, "speaker_per_channel")

    def read(name: str) -> Signal:
        return np.linspace(-0.9, 0.9, 100, dtype=np.float32)

    written = write_wav(folder / "mix.wav", assemble(rows, read))
    assert written.gain_db < -5.0
    assert replay_steps(rows, read, read_wav(folder / "mix.wav"), written.gain_db) <= 2.0


def test_a_file_that_is_too_short_is_refused() -> None:
    rows = plan_segments([sound("a", 0, 10)], 10, "mono")
    with pytest.raises(ItemError, match=r"a\.wav: 4 samples left"):
        np.asarray(assemble(rows, lambda name: np.ones(4, np.float32)))


def test_faded_joins_move_no_sample() -> None:
    rows = plan_segments([sound("a", 0, 400), sound("b", 400, 410)], 410, "mono")
    faded = np.asarray(assemble(rows, lambda name: np.ones(400, np.float32), join_fade_s=0.01))
    assert faded.size == 410
    assert faded[0] == 0.0 and faded[399] == pytest.approx(0.0, abs=1e-6)
    # A fade is at most half of its segment: 5 of the 10 samples.
    assert faded[405] == pytest.approx(1.0) and faded[200] == 1.0


def test_memory_of_a_reconstruction_does_not_grow_with_its_length(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Half an hour is 115 MB as float32; it is put together, saved and replayed in 16 MB."""
    folder, turn = tmp_path_factory.mktemp("wav"), 30 * 16_000
    turns = [sound(f"t{k}", k * turn, (k + 1) * turn) for k in range(60)]
    rows = plan_segments(turns, 60 * turn, "mono")

    def read(name: str) -> Signal:
        return np.full(turn, 0.25, dtype=np.float32)

    tracemalloc.start()
    written = write_wav(folder / "all.wav", assemble(rows, read))
    assert replay_steps(rows, read, open_wav(folder / "all.wav"), written.gain_db) == 0.0
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert written.n_samples == 60 * turn
    assert peak < 16e6
