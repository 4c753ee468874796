"""The machinery of ``stage_faults.py`` and ``loopback_study.py``, on the toy study."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import stage_faults
from conftest import Toy
from kill_trials import N_WORKERS
from loopback_study import run_on_workers
from trial_runs import Study, compare

from aegis.tables import Run


@pytest.fixture
def study(toy: Toy, finished: Path, tmp_path: Path) -> Study:
    """The toy study in trials that start from the session's finished run."""
    runs = tmp_path / "trials" / "runs"
    environment = {**os.environ, "AEGIS_RUNS": str(runs)}
    return Study(toy.params, [], environment, runs, {}, 0.0, Run(finished / "toy"))


def test_damage_is_named_and_made_whole(study: Study, toy: Toy) -> None:
    row = stage_faults.at_rest(study, "01_transcribe", 3, toy.scheduler)
    assert row["survived"], row
    assert (row["named"], row["lost"], row["twice"]) == ("5 of 5", 0, 0)


def test_a_killed_kernel_is_said_and_made_up_for(study: Study, toy: Toy) -> None:
    fault = stage_faults.KERNEL
    row = stage_faults.in_flight(study, "01_transcribe", fault, 1, toy.scheduler)
    assert row["survived"], row
    assert row["commands"] == 2
    assert str(row["said"]).startswith("aegis: 01_transcribe: the kernel died")


def test_ctrl_c_in_a_stage_without_items_is_one_line(study: Study) -> None:
    row = stage_faults.in_flight(study, "13_contrasts", stage_faults.CTRL_C, 1)
    assert row["survived"], row
    assert row["said"] == "aegis: stopped; finished items are kept, run again to go on"


def test_damage_never_reaches_the_undisturbed_run(study: Study) -> None:
    assert study.reference is not None
    before = study.reference.table_path("claims").read_bytes()
    run = study.copy()
    path = run.table_path("claims")
    assert path.samefile(study.reference.table_path("claims"))
    for way, size in (("one bit", len(before)), ("emptied", 0)):
        stage_faults.damage(path, way, np.random.default_rng(1))
        assert path.stat().st_size == size
        run.table_path("claims").write_bytes(before)
    stage_faults.damage(path, "gone", np.random.default_rng(1))
    assert not path.exists()
    assert study.reference.table_path("claims").read_bytes() == before


def test_rows_lost_and_rows_twice_are_counted(study: Study) -> None:
    assert study.reference is not None
    run = study.copy()
    table = study.reference.read("recordings")
    run.table_path("recordings").unlink()
    table.iloc[[0, 1, 1]].to_parquet(run.table_path("recordings"))
    assert compare(run, study.reference) == (False, len(table) - 2, 1)


def test_a_study_on_three_workers_has_the_tables_of_the_local_cluster(study: Study) -> None:
    assert study.reference is not None
    rows, problems = run_on_workers(study, study.reference)
    assert not problems
    assert [row["stage"] for row in rows] == ["00_corpora", "01_transcribe", "13_contrasts"]
    assert all(row["equal"] and row["lost"] == row["twice"] == 0 for row in rows)
    shares = [int(n) for n in str(rows[0]["by_worker"]).split(", ")]
    assert sum(shares) == rows[0]["items"] == 4 and len(shares) <= N_WORKERS


def test_every_stage_gets_both_trials(study: Study) -> None:
    trials = stage_faults.planned(study, 1)
    assert [stage for stage, _ in trials[::2]] == ["00_corpora", "01_transcribe", "13_contrasts"]
    assert {fault for _, fault in trials[::2]} == {stage_faults.AT_REST}
    drawn = [fault for _, fault in trials[1::2]]
    assert len(set(drawn)) == 3 and set(drawn) <= set(stage_faults.FAULTS)
    assert trials == stage_faults.planned(study, 1) != stage_faults.planned(study, 2)
