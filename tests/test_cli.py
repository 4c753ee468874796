from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import Toy
from fabricate import fabricate_run
from stage_faults import damage
from typer.testing import CliRunner, Result

from aegis import checks, doctor, explain, pipeline, receipts
from aegis.cli import app
from aegis.params import StudyParams
from aegis.tables import PROJECT, Run

COMMANDS = (
    "run", "status", "table", "verify", "render", "fetch", "lab", "doctor", "clean", "engine",
    "export",
)  # fmt: skip


def aegis(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def test_help_names_all_commands() -> None:
    shown = aegis("--help").stdout
    assert all(f" {command} " in shown for command in COMMANDS)


def test_the_package_is_light() -> None:
    code = (
        "import sys, aegis, aegis.cli;"
        " print([m for m in ('torch', 'pandas', 'numpy', 'distributed') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "nowhere.yaml"], "nowhere.yaml: no such parameter file"),
        (["run", "{toy}", "-p", "00_corpora.n_item=3"], "did you mean 'n_items'?"),
        (["run", "{toy}", "-p", "n_items=3"], "expected NOTEBOOK.NAME=VALUE"),
        (["run", "{toy}", "--only", "07"], "07: 0 stages have that name"),
        (["run", "{toy}", "--only", "00", "--from", "01"], "exclude each other"),
        (["status"], "no run in"),
        (["status", "--run", "zzz"], "run 'zzz': no folder"),
        (["table", "recordings", "--format", "xml"], "expected csv, json or md"),
        (["doctor", "{toy}", "-p", "00_corpora.n_items=x"], "expected int, got 'x'"),
    ],
)
def test_an_error_is_one_line_and_exit_code_1(
    toy_folder: Path, arguments: list[str], message: str
) -> None:
    done = aegis(*[text.format(toy=toy_folder / "toy.yaml") for text in arguments])
    assert done.exit_code == 1
    assert message in done.stderr
    assert done.stderr.startswith("aegis: ")
    assert done.stderr.count("\n") == 1
    assert not (toy_folder.parent / "runs").exists()


def test_a_study_from_the_command_line(done: Toy) -> None:
    shown = aegis("run", str(done.params), "--cluster", done.scheduler)
    assert shown.exit_code == 0
    assert "All 3 stages are up to date." in shown.stdout
    shown = aegis("run", str(done.params), "--cluster", done.scheduler, "--only", "13", "--force")
    assert shown.exit_code == 0
    head, line, total = [text.split() for text in shown.stdout.splitlines()]
    assert head == ["stage", "state", "wall_s", "planned", "observed", "failed", "not_applicable"]
    assert line[:2] == ["13_contrasts", "run"]
    assert line[3:] == ["1", "1", "0", "0"]
    assert total[:3] == ["all", "1", "run"]


def test_status(done: Toy) -> None:
    run = done.open()
    assert "01_transcribe      up to date" in aegis("status").stdout
    path = run.table_path("recordings")
    path.write_bytes(path.read_bytes() + b"x")
    assert "00_corpora         output tables/recordings.parquet is not" in aegis("status").stdout
    content = json.loads(aegis("status", "--run", "toy", "--json").stdout)
    assert content["run"] == "toy"
    assert content["stages"]["01_transcribe"] == ["input recordings changed"]
    assert content["stages"]["00_corpora"] == [
        "output tables/recordings.parquet is not what was written"
    ]


@pytest.mark.parametrize("form", ["csv", "json", "md"])
def test_a_table_in_three_forms(done: Toy, form: str) -> None:
    shown = aegis("table", "recordings", "--format", form).stdout
    if form == "json":
        rows = json.loads(shown)
        assert [row["recording_id"] for row in rows] == [f"toy/r{i}" for i in range(4)]
        assert rows[0]["reason"] is None
    else:
        lines = shown.splitlines()
        assert len(lines) == 5 + (form == "md")
        assert lines[0].strip("| ").startswith("recording_id")
        assert "toy/r3" in lines[-1]


def test_a_secret_table_needs_a_word(done: Toy) -> None:
    refused = aegis("table", "file_map")
    assert refused.exit_code == 1
    assert "file_map is secret" in refused.stderr
    assert refused.stdout == ""
    assert aegis("table", "file_map", "--secret", "--format", "csv").stdout.startswith("recording")
    assert "no such table" in aegis("table", "recording").stderr
    assert "not in run toy" in aegis("table", "mentions", "--secret").stderr


def test_clean_asks_first(done: Toy) -> None:
    asked = CliRunner().invoke(app, ["clean", "--run", "toy"], input="n\n")
    assert asked.exit_code == 1
    assert done.open().root.exists()
    assert aegis("clean", "--run", "toy", "--yes").exit_code == 0
    assert not (done.folder.parent / "runs" / "toy").exists()


# --- verify -----------------------------------------------------------------------------


@pytest.fixture
def made_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("AEGIS_RUNS", str(tmp_path))
    return fabricate_run(tmp_path / "made-up", audio=True)


def without_receipts(run: Run) -> list[str]:
    return [
        problem for problem in checks.verify_run(run) if "no stage has a receipt" not in problem
    ]


def rewrite(run: Run, name: str, table: pd.DataFrame) -> None:
    table.to_parquet(run.table_path(name), index=False)


def test_a_finished_toy_study_verifies_up_to_its_empty_tables(done: Toy) -> None:
    problems = checks.verify_run(done.open())
    assert [problem.split(":")[0] for problem in problems] == ["screening"]
    shown = aegis("verify")
    assert shown.exit_code == 1
    assert "problem: screening: 4 of 4 recordings have no fate" in shown.stdout


def test_a_lost_recording_is_found(made_up: Run) -> None:
    before = without_receipts(made_up)
    assert not [p for p in before if p.startswith(("screening", "reconstructions"))]
    table = made_up.read("screening")
    rewrite(made_up, "screening", table[table["recording_id"] != table["recording_id"].iloc[0]])
    (found,) = [p for p in without_receipts(made_up) if p.startswith("screening")]
    assert found.startswith("screening: 1 of 6 recordings have no fate, e.g. toy/c0")


def test_a_recording_that_was_never_scheduled_is_found(made_up: Run) -> None:
    table = made_up.read("turns")
    rewrite(made_up, "turns", table.assign(recording_id="toy/ghost"))
    assert "turns: 1 unknown recordings, e.g. ['toy/ghost']" in without_receipts(made_up)


def test_a_file_of_another_length_is_found(made_up: Run) -> None:
    table = made_up.read("recordings")
    table.loc[0, "n_samples"] += 16
    rewrite(made_up, "recordings", table)
    (found,) = [p for p in without_receipts(made_up) if p.startswith("recordings")]
    assert found.endswith("samples on disk")


def test_a_stage_that_read_an_older_table_is_found(done: Toy) -> None:
    done.run("00_corpora.n_items=2", only="00")
    problems = checks.verify_run(done.open())
    assert "01_transcribe: read a recordings that 00_corpora has since written anew" in problems


@pytest.mark.parametrize("way", ["truncated", "one bit", "emptied", "gone"])
def test_verify_names_what_is_damaged_and_goes_on(done: Toy, way: str) -> None:
    run = done.open()
    (item, *_) = sorted((run.secret / "items" / "00_corpora").glob("*.json"))
    tables = [run.table_path(name) for name in ("recordings", "turn_times")]
    sound = run.original_path("toy/r1")
    receipt = run.root / "receipts" / "13_contrasts.json"
    for path in (*tables, sound, receipt, item):
        damage(path, way, np.random.default_rng(2))
    problems = checks.verify_run(run)
    shown = aegis("verify")
    assert shown.exit_code == 1 and not isinstance(shown.exception, ValueError | OSError)
    for path in (*tables, sound, receipt, *([] if way == "gone" else [item])):
        (found,) = [problem for problem in problems if run.relative(path) in problem]
        assert "`aegis run`" in found
        assert f"problem: {found}" in shown.stdout
    assert done.run() == ["00_corpora", "01_transcribe", "13_contrasts"]
    assert len(checks.verify_run(run)) == 1  # the toy fills no screening


def test_a_damaged_receipt_spoils_no_other_check(done: Toy) -> None:
    run = done.open()
    run.table_path("turn_times").write_bytes(b"PAR1")
    (run.root / "receipts" / "01_transcribe.json").write_bytes(b"{")
    problems = checks.verify_run(run)
    assert "01_transcribe: receipts/01_transcribe.json is not what was written" in problems[0]
    (run.root / "receipts" / "13_contrasts.json").unlink()
    (run.root / "notebooks" / "13_contrasts.ipynb").unlink()
    assert "13_contrasts: receipts/13_contrasts.json is missing" in checks.verify_run(run)[1]
    for table in pipeline.STAGES["13_contrasts"].writes:
        run.table_path(table).unlink()
    assert not any("13_contrasts" in problem for problem in checks.verify_run(run))
    receipt = receipts.read_receipt(run, "00_corpora")
    assert receipt is not None
    receipt["inputs"]["receipt:13_contrasts"] = "0"  # as of a page that reads all receipts
    receipts.write_receipt(run, receipt)
    assert "13_contrasts: receipts/13_contrasts.json is missing" in checks.verify_run(run)[1]
    assert checks.verify_run(run, before="01_transcribe") == []


def test_failures_are_registered(made_up: Run) -> None:
    found = explain.failure_registry(made_up)
    counted = found.groupby("table")["rows"].sum()
    assert counted["rendered"] == (made_up.read("rendered")["status"] != "ok").sum() > 0
    assert "recordings" not in counted


# --- doctor -----------------------------------------------------------------------------


def test_engines_are_found_by_the_names_of_parameters() -> None:
    values = {
        "01": {"asr": "whisper-base", "diarizer": "a", "n_draws": 5, "title": "x"},
        "02": {"backends": ["ge2e", "dvector"], "renderer_a": "infill", "converter": ""},
    }
    assert doctor.engines_named(values) == {
        ("transcriber", "whisper-base"),
        ("diarizer", "a"),
        ("encoder", "ge2e"),
        ("encoder", "dvector"),
        ("renderer", "infill"),
    }


def test_doctor_says_what_is_missing_and_the_way_out(toy_folder: Path) -> None:
    notebook = toy_folder / "notebooks" / "00_corpora.py"
    line = 'asr: str = "whisper-enormous"  # transcriber\n'
    notebook.write_text(notebook.read_text().replace("n_items: int", line + "n_items: int", 1))
    shown = aegis("doctor", str(toy_folder / "toy.yaml"), "-p", "00_corpora.folder=/no/such")
    assert shown.exit_code == 1
    lines = shown.stdout.splitlines()
    (engine,) = [text for text in lines if "transcriber whisper-enormous" in text]
    assert engine.split()[:2] == ["PROBLEM", "engine"]
    assert "no transcriber called" in engine
    (data,) = [text for text in lines if "data 00_corpora.folder" in text]
    assert data.split()[:2] == ["PROBLEM", "data"]
    assert data.endswith("-> set -p 00_corpora.folder=PATH")
    assert [text for text in lines if text.split()[:3] == ["OK", "machine", "cores"]]


PAPER = PROJECT / "params" / "paper.yaml"


def test_the_papers_profile_is_examined_without_computing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every missing weight, key, licence, corpus, environment and card is a row of its own."""
    monkeypatch.setenv("AEGIS_ENVS", str(tmp_path / "envs"))
    monkeypatch.setenv("AEGIS_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setattr(doctor.engines, "load", lambda *named: pytest.fail("loaded"))
    began = time.perf_counter()
    shown = aegis("doctor", str(PAPER))
    assert time.perf_counter() - began < 30
    assert shown.exit_code == 1
    assert "secret" not in shown.stdout + shown.stderr
    rows = [line.split() for line in shown.stdout.splitlines()]
    problems = {(row[1], row[2]) for row in rows if row[0] == "PROBLEM"}
    assert {
        ("environment", "f5"), ("environment", "seedvc"), ("environment", "voicecraft"),
        ("corpus", "primock57"), ("corpus", "fareez"), ("corpus", "simsamu"),
    } <= problems  # fmt: skip
    assert ["OK", "key", "chat", "gpt-5.4"] in [row[:4] for row in rows]
    named = [row[2] for row in rows if row[1] == "weights"]
    assert {"whisper-large-v3", "ecapa", "xvector", "seed-vc", "f5-tts", "voicecraft"} <= set(
        named
    )
    assert len(named) == len(set(named))


def test_the_papers_profile_states_what_the_paper_states() -> None:
    from aegis import pipeline

    values = pipeline.load_study(PAPER).values
    assert values["01_transcribe"]["asr"] == "whisper-large-v3"
    assert values["03_assign_voices"] == {
        "backend": "ecapa", "k": 75, "min_source_distance": 0.70, "min_target_distance": 0.65,
    }  # fmt: skip
    assert (values["13_contrasts"]["n_draws"], values["12_linkage"]["n_draws"]) == (10000, 2000)
    seeds = {v["seed"] for v in values.values() if "seed" in v}
    assert seeds == {20261005}


def test_doctor_finds_a_full_disk(toy_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_FREE_GIB", 1e9)
    study = StudyParams(Path("toy.yaml"), "t", "p", ())
    (disk,) = [finding for finding in doctor.examine(study) if finding.subject == "disk"]
    assert not disk.ok
