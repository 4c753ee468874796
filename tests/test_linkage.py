"""Linkage tables and the embedding of windows, on a made-up run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fabricate import fabricate_run

from aegis import engines, linkage, windows
from aegis.audio import read_audio
from aegis.error_rates import equal_error_rate
from aegis.errors import AudioError
from aegis.tables import PROJECT, Run
from aegis.work import linkage as work


class PitchEncoder:
    """Twelve bands of the mean spectrum: tones of different pitch point different ways."""

    dimension = 12

    def embed(self, signals: Sequence[np.ndarray]) -> np.ndarray:
        rows = [np.abs(np.fft.rfft(signal, 8_000))[20:260] for signal in signals]
        return np.array([row.reshape(12, 20).sum(axis=1) for row in rows], dtype=np.float32)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return fabricate_run(tmp_path_factory.mktemp("runs") / "toy", n_recordings=3, audio=True)


@pytest.fixture
def encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "load", lambda role, name: PitchEncoder())


def plan(run: Run) -> tuple[dict[Any, Any], dict[str, str], dict[Any, Any]]:
    turns, affected = run.read("turns"), run.read("regions")["turn_id"]
    intervals = pd.concat([
        windows.source_intervals(turns, affected),
        windows.timeline_intervals(run.read("timeline"), affected),
        work.turn_file_intervals(run.read("converted"), turns),
    ])  # fmt: skip
    profiles = run.read("profiles")
    recording_of = dict(zip(profiles["profile_id"], profiles["recording_id"], strict=True))
    names = ("recordings", "reconstructions", "converted", "turns", "voices")
    return windows.sample_regions(intervals), recording_of, work.list_sounds(*map(run.read, names))


def test_items_hold_each_window_once_and_name_what_they_read(run: Run) -> None:
    samples, recording_of, sounds = plan(run)
    halves = linkage.split_samples(samples["original", "all_turns"])
    samples["original", "enrol_half"], samples["original", "test_half"] = halves
    items = work.build_items(samples, recording_of, sounds, ["ge2e"])
    assert len({item["id"] for item in items}) == len(items) == 3 * 6
    original = next(item for item in items if item["condition"] == "original")
    assert len(set(original["windows"])) == len(original["windows"])
    assert all(item["sha256"] for item in items)
    shared = next(item for item in items if item["condition"] == "converted_turns")
    assert len(shared["turn_files"]) == 8


def test_joined_turns_follow_each_other_without_gap(run: Run) -> None:
    joined = work.turn_file_intervals(run.read("converted"), run.read("turns"))
    first = joined[joined["recording_id"] == "toy/c00"]
    assert first["start"].tolist() == [64_000 * index for index in range(8)]
    assert first["end"].tolist() == [64_000 * (index + 1) for index in range(8)]
    assert first["profile_id"].str[-2:].tolist() == ["S1", "S2"] * 4


def test_embedded_profiles_tell_the_two_speakers_apart(run: Run, encoder: None) -> None:
    samples, recording_of, sounds = plan(run)
    items = work.build_items(samples, recording_of, sounds, ["toy"])
    values = [work.embed_windows(item, {}, run) for item in items]
    vectors = work.read_vectors(items, values)
    own = work.embed_profiles(
        vectors, samples["original", "all_turns"], recording_of, "toy", "original"
    )
    assert set(own) == set(recording_of)
    assert np.linalg.norm(own["toy/c00/S1"]) == pytest.approx(1.0)
    assert own["toy/c00/S1"] @ own["toy/c01/S1"] == pytest.approx(1.0, abs=1e-6)
    assert own["toy/c00/S1"] @ own["toy/c00/S2"] < 0.9


def test_a_failed_item_leaves_its_profiles_out(run: Run, encoder: None) -> None:
    samples, recording_of, sounds = plan(run)
    items = work.build_items(samples, recording_of, sounds, ["toy"])
    values = [
        None if item["id"] == "toy/original/toy/c01" else work.embed_windows(item, {}, run)
        for item in items
    ]
    vectors = work.read_vectors(items, values)
    chosen = samples["original", "all_turns"]
    own = work.embed_profiles(vectors, chosen, recording_of, "toy", "original")
    assert {name.rsplit("/", 1)[0] for name in own} == {"toy/c00", "toy/c02"}

    def embed(backend: str, condition: str, kind: str) -> Any:
        return own

    table = linkage.build_eligibility(
        run.read("profiles"), samples, set(sounds), embed, ["toy"]
    ).set_index(["profile_id", "condition", "region_kind"])
    row = table.loc[("toy/c01/S1", "original", "all_turns")]
    assert (row["status"], row["reason"]) == ("unknown", "the windows could not be embedded")
    assert table.loc[("toy/c00/S1", "original", "all_turns"), "status"] == "ok"


def test_a_window_outside_the_file_is_refused(run: Run, encoder: None) -> None:
    item = {
        "id": "toy/original/toy/c00", "backend": "toy", "condition": "original",
        "recording_id": "toy/c00", "windows": [[0, [[10_000_000, 10_048_000]]]],
    }  # fmt: skip
    with pytest.raises(AudioError, match="48000 samples outside the file"):
        work.embed_windows(item, {}, run)


def test_voices_are_sampled_under_the_profiles_name(run: Run) -> None:
    samples, voice_of = work.sample_voices(run.read("assignments"), run.read("voices"))
    assert set(samples) == set(run.read("profiles")["profile_id"])
    assert voice_of["toy/c00/S2"] == "vS2"
    # 5 s less 100 ms hold one whole window.
    assert len(samples["toy/c00/S1"].windows) == 1


# --- tables ---


def test_the_reference_uses_the_same_trials(run: Run) -> None:
    trials = run.read("trials")
    keys = ["condition", "region_kind", "backend"]
    for _, own in trials[trials["protocol"].str.startswith("final")].groupby(keys):
        pairs = [
            set(zip(side["enrol"], side["test"], strict=True))
            for _, side in own.groupby("protocol")
        ]
        assert len(pairs) == 2
        assert pairs[0] == pairs[1]


def test_kept_trials_are_pairs_not_profiles() -> None:
    vectors = {name: np.array([1.0]) for name in ("r/a", "r/b")}
    recording = {"r/a": "r", "r/b": "r"}
    full = linkage.build_protocol("final", vectors, vectors, recording)
    part = linkage.build_protocol("final", {"r/a": vectors["r/a"]}, vectors, recording)
    kept = linkage.keep_same_trials(full, part)
    assert list(zip(kept.enrol, kept.test, strict=True)) == [("r/a", "r/a"), ("r/a", "r/b")]


def test_rates_of_the_table_follow_from_its_trials(run: Run) -> None:
    trials, rates = run.read("trials"), run.read("linkage")
    keys = ["protocol", "condition", "region_kind", "backend"]
    for row in rates[rates["orientation"] == "higher"].to_dict("records"):
        own = trials[(trials[keys] == [row[key] for key in keys]).all(axis=1)]
        built = linkage.read_trials(own)
        again = linkage.linkage_rows(built, {key: row[key] for key in keys}, seed=0, n_draws=50)[0]
        assert again["eer"] == pytest.approx(row["eer"])
        assert again["ci_low"] == pytest.approx(row["ci_low"])
        assert (
            again["n_clusters"] == row["n_clusters"] == (6 if "shared" in row["protocol"] else 3)
        )


def test_voice_rows_do_not_name_the_voice(run: Run) -> None:
    rows = run.read("trials").query("protocol == 'target_voice'")
    assert (rows["enrol"] == rows["test"]).all()
    assert not rows["enrol"].isin(run.read("voices")["voice_id"]).any()


def test_a_missing_class_is_said_in_the_row() -> None:
    built = linkage.build_protocol("final", {"r/a": np.ones(1)}, {"r/a": np.ones(1)}, {"r/a": "r"})
    rows = linkage.linkage_rows(built, {"protocol": "final"}, seed=0)
    assert [row["status"] for row in rows] == ["not_applicable"] * 3
    assert rows[0]["reason"] == "no non-target trials"
    assert math.isnan(rows[0]["eer"])


def test_error_rates_stand_beside_the_original_ones(run: Run) -> None:
    beside = linkage.beside_original(run.read("linkage"))
    assert len(beside) == 2 * (4 * 2 + 1)
    assert beside["eer_original"].notna().all()
    gap = beside["eer"] - beside["eer_original"]
    assert beside["above_original"].tolist() == pytest.approx(gap.tolist())


def test_a_made_up_run_without_gold_still_has_its_tables(tmp_path: Path) -> None:
    run = fabricate_run(tmp_path / "toy", n_recordings=1, gold=False)
    assert run.read("gold_turns").empty
    assert len(run.read("turns")) == 8


POOL = PROJECT.parent / "shared" / "data" / "audio_librispeech" / "pool-train-clean-100"


@pytest.mark.engine
@pytest.mark.skipif(not POOL.exists(), reason=f"no {POOL}")
@pytest.mark.parametrize("backend", ["ge2e", "dvector"])
def test_real_voices_are_linked_to_themselves(backend: str) -> None:
    """Split halves of twenty real voices: nearly no error; with the halves moved on, chance."""
    encoder = engines.load("encoder", backend)
    halves: tuple[dict[str, np.ndarray], dict[str, np.ndarray]] = ({}, {})
    for path in sorted(POOL.glob("*.flac"))[:20]:
        samples = read_audio(path).samples[0]
        usable = windows.usable_intervals([(0, samples.size)])
        parts = windows.split_windows(windows.place_windows(usable))
        for half, part in zip(halves, parts, strict=True):
            signals = [windows.window_signal(samples, window) for window in part]
            half[path.stem] = windows.profile_vector(encoder.embed(signals))
    built = linkage.build_protocol("shared", *halves, {})
    assert equal_error_rate(built.score, built.target, "attacker") < 0.05
    names = sorted(halves[1])
    moved = dict(zip(names, [halves[1][name] for name in names[7:] + names[:7]], strict=True))
    wrong = linkage.build_protocol("shared", halves[0], moved, {})
    assert 0.25 < equal_error_rate(wrong.score, wrong.target) < 0.75
