"""Render and stitch items on a made-up run: one sound a request, rows for every failure."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fabricate import fabricate_run

from aegis.audio import SAMPLE_RATE_HZ, read_wav, write_wav
from aegis.cluster import run_item
from aegis.tables import CONDITIONS, Run, check_table
from aegis.work.render import (
    build_requests,
    read_variant,
    reconstruct,
    reconstruction_items,
    reconstruction_tables,
    render_request,
    rendered_table,
)

NAMES = (
    "edits", "regions", "plans", "turns", "words", "converted", "assignments", "voices",
    "recordings",
)  # fmt: skip
SETTINGS = {
    "condition": "redacted",
    "engine": "bleep",
    "options": {"kind": "silence", "margin_s": 0.1},
    "seed": 1,
}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    made = fabricate_run(tmp_path / "run", n_recordings=2)
    rng = np.random.default_rng(3)
    for row in made.read("converted").itertuples():
        noise = rng.normal(0, 0.1, int(row.n_samples)).astype(np.float32)
        write_wav(made.root / row.file, noise)
    return made


def tables(run: Run) -> dict[str, pd.DataFrame]:
    return {name: run.read(name) for name in NAMES}


def work(function: Any, items: list[Any], settings: Any, run: Run, folder: Path) -> list[Any]:
    records = [
        run_item(function, item, settings, run.root, folder / f"{i}.json")
        for i, item in enumerate(items)
    ]
    return [
        SimpleNamespace(**{k: r[k] for k in ("id", "status", "reason", "value")}) for r in records
    ]


def test_one_edit_in_a_turn_is_rendered_once_for_intention_and_region(run: Run) -> None:
    items, asked = build_requests(tables(run))
    n_edits = len(run.read("edits"))
    assert len(items) == n_edits
    assert asked["kind"].value_counts().to_dict() == {"intention": n_edits, "region": n_edits}
    assert asked.groupby("request_id").size().eq(2).all()
    assert asked["reason"].isna().all()


def test_two_edits_in_a_turn_are_three_requests(run: Run) -> None:
    given = tables(run)
    second = (
        given["edits"]
        .iloc[[0]]
        .assign(intention_id="i2", char_start=9, char_end=13, replacement="Nora")
    )
    given["edits"] = pd.concat([given["edits"], second])
    items, asked = build_requests(given)
    turn = second["turn_id"].iloc[0]
    here = asked[asked["turn_id"] == turn]
    assert here["n_edits"].tolist() == [1, 1, 2]
    assert here["request_id"].nunique() == 3
    (both,) = [i for i in items if i["turn_id"] == turn and len(i["spans"]) == 2]
    assert [span["char_start"] for span in both["spans"]] == [0, 9]


def test_times_are_on_the_turns_clock(run: Run) -> None:
    items, _ = build_requests(tables(run))
    for item in items:
        assert item["words"][0][1] == pytest.approx(0.0)
        assert item["spans"][0]["start_s"] == pytest.approx(0.0)
        assert item["words"][-1][2] == pytest.approx(4.0)


def test_failures_keep_their_rows(run: Run, tmp_path: Path) -> None:
    given = tables(run)
    given["edits"].loc[0, ["status", "reason"]] = ["failed", "unlocated"]
    first, second = given["edits"]["turn_id"].iloc[[0, 1]]
    given["converted"].loc[given["converted"]["turn_id"] == second, "status"] = "failed"
    items, asked = build_requests(given)
    results = work(render_request, items, SETTINGS, run, tmp_path)
    rows = check_table("rendered", rendered_table(asked, results, "redacted"))
    assert len(rows) == len(given["edits"]) + len(given["regions"])
    reasons = rows[rows["status"] == "failed"].groupby("turn_id")["reason"].unique()
    assert "not planned (unlocated)" in reasons[first][0]
    assert list(reasons[second]) == ["failed: no converted turn"]
    assert set(reasons.index) == {first, second}


def test_a_speaking_renderer_needs_a_voice(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = tables(run)
    given["assignments"] = given["assignments"].iloc[:0]
    items, asked = build_requests(given)
    monkeypatch.setattr("aegis.engines.load", lambda role, name, **options: None)
    settings = {"condition": "renderer_b", "engine": "whole-turn", "options": {}, "seed": 1}
    results = work(render_request, items, settings, run, tmp_path)
    rows = rendered_table(asked, results, "renderer_b")
    assert set(rows["reason"]) == {"failed: the profile has no pseudo-voice"}
    items, asked = build_requests(tables(run))
    settings["options"] = {"synthesiser": "kokoro"}
    results = work(render_request, items[:1], settings, run, tmp_path)
    assert results[0].reason == "unsupported: the pseudo-voice is toy, not kokoro"


def test_redacted_conversations_hold_no_sound_of_the_edit(run: Run, tmp_path: Path) -> None:
    given = tables(run)
    items, asked = build_requests(given)
    results = work(render_request, items, SETTINGS, run, tmp_path)
    given["rendered"] = rendered_table(asked, results, "redacted")
    plans = reconstruction_items(given, CONDITIONS[1:])
    assert len(plans) == 2 * 4
    made = work(reconstruct, plans, {"join_fade_s": 0.0}, run, tmp_path)
    reconstructions, timeline = reconstruction_tables(made, plans)
    check_table("timeline", timeline)
    rows = check_table("reconstructions", reconstructions).set_index(["condition", "recording_id"])
    assert (rows["replay_max_steps"] == 0.0).all()
    recording, edit = given["recordings"].iloc[0], given["edits"].iloc[0]
    row = rows.loc[("redacted", recording["recording_id"])]
    assert row["n_samples"] == recording["n_samples"]
    assert row["n_rendered"] == (given["regions"]["recording_id"] == row.name[1]).sum()
    sound = read_wav(run.root / row["file"])
    start, end = (round(edit[key] * SAMPLE_RATE_HZ) for key in ("start_s", "end_s"))
    assert not sound[start:end].any()
    plain = read_wav(run.conversation_path("converted", recording["recording_id"]))
    assert plain[start:end].any()
    # No renderer ran for renderer_a, so its conversations hold converted turns only.
    assert (rows.loc["renderer_a", "n_rendered"] == 0).all()


def test_without_a_plan_only_the_converted_condition_is_made(run: Run, tmp_path: Path) -> None:
    given = tables(run)
    given["rendered"] = run.read("rendered").iloc[:0]
    unplanned = given["recordings"]["recording_id"].iloc[0]
    given["plans"].loc[given["plans"]["recording_id"] == unplanned, "status"] = "failed"
    items = reconstruction_items(given, CONDITIONS[1:])
    made = work(reconstruct, items, {"join_fade_s": 0.0}, run, tmp_path)
    rows, _ = reconstruction_tables(made, items)
    failed = rows[rows["status"] == "failed"]
    assert set(failed["recording_id"]) == {unplanned}
    assert set(failed["condition"]) == set(CONDITIONS[2:])
    assert failed["reason"].str.contains("no edit plan").all()


def test_a_missing_turn_file_fails_its_recording_only(run: Run, tmp_path: Path) -> None:
    given = tables(run) | {"rendered": run.read("rendered").iloc[:0]}
    (run.root / given["converted"]["file"].iloc[0]).unlink()
    plans = reconstruction_items(given, ["converted"])
    made = work(reconstruct, plans, {"join_fade_s": 0.0}, run, tmp_path)
    reconstructions, timeline = reconstruction_tables(made, plans)
    assert sorted(check_table("reconstructions", reconstructions)["status"]) == ["failed", "ok"]
    assert len(set(timeline["recording_id"])) == 1


def test_no_edits_and_no_turns_are_empty_tables(run: Run, tmp_path: Path) -> None:
    given = tables(run)
    empty = {name: table.iloc[:0] for name, table in given.items() if name != "recordings"}
    items, asked = build_requests(empty)
    assert items == []
    rendered = rendered_table(asked, [], "redacted")
    check_table("rendered", rendered)
    plans = reconstruction_items({**given, **empty, "rendered": rendered}, ["converted"])
    made = work(reconstruct, plans, {"join_fade_s": 0.0}, run, tmp_path)
    reconstructions, timeline = reconstruction_tables(made, plans)
    assert (reconstructions["n_segments"] == 1).all()
    assert set(check_table("timeline", timeline)["kind"]) == {"gap"}


@pytest.mark.parametrize(
    ("traits", "variant"),
    [
        ("f0_ratio=0.9;formant_ratio=1.1", {"f0_ratio": 0.9, "formant_ratio": 1.1}),
        ("calm rate=1.05", {"rate": 1.05}),
        (None, {}),
    ],
)
def test_variants_are_read_from_traits(traits: str | None, variant: dict[str, float]) -> None:
    assert read_variant(traits) == variant
