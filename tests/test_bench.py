"""The arithmetic of the benchmark on made-up receipts; no times are tested."""

from __future__ import annotations

import importlib.util
import json
import math
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pytest

from aegis.receipts import write_receipt
from aegis.tables import PROJECT, Run


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_run", PROJECT / "bench" / "run.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def receipt(stage: str, wall_s: float, engine_s: float, reused: int = 0) -> dict[str, Any]:
    return {
        "stage": stage, "counts": {"planned": 4, "failed": 1}, "reused": reused,
        "wall_s": wall_s - 2, "item_s": engine_s + 2, "engine_s": engine_s,
        "executed": {"wall_s": wall_s, "peak_memory_mb": 100 * wall_s},
    }  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> Run:
    run = Run(tmp_path / "toy")
    for name, wall_s, engine_s, reused in [
        ("00_corpora", 10.0, 16.0, 0), ("01_transcribe", 20.0, 32.0, 0),
        ("03_assign_voices", 6.0, 0.0, 0), ("04_convert", 1.0, 40.0, 4),
    ]:  # fmt: skip
        write_receipt(run, receipt(name, wall_s, engine_s, reused))
    write_receipt(run, {"stage": "05_plan_edits", "counts": {}, "reused": 0})
    return run


def test_ratios_by_hand(bench: ModuleType, run: Run) -> None:
    """36 s of wall time for 48 engine seconds on two cores; the reused stage is left out."""
    costs = bench.compare(bench.read_costs(run), cores=2)
    assert costs["stage"].tolist() == [
        "00_corpora", "01_transcribe", "03_assign_voices", "04_convert",
    ]  # fmt: skip
    assert costs["wall_over_bare"].tolist()[:2] == [1.25, 1.25]
    assert math.isnan(costs["wall_over_bare"][2])
    values = bench.summarise(costs, cores=2)
    assert values["wall_over_bare_engines"] == pytest.approx(36 / 24)
    assert values["items_over_engines"] == pytest.approx((48 + 6) / 48)
    assert values["share_outside_stages"] == pytest.approx(6 / 36)
    assert values["stages_left_out"] == 1
    assert values["peak_memory_gib"] == pytest.approx(2000 / 1024)


def test_values_stand_beside_their_aims(bench: ModuleType, run: Run) -> None:
    table = bench.judge({"wall_over_bare_engines": 1.2, "peak_memory_gib": 7.0})
    met = dict(zip(table["measure"], table["met"], strict=True))
    assert met["wall_over_bare_engines"]
    assert not met["peak_memory_gib"]
    assert met["assignment_s"] is None


def test_results_are_json_without_nan(bench: ModuleType, run: Run, tmp_path: Path) -> None:
    costs = bench.compare(bench.read_costs(run), cores=2)
    bench.write_results(tmp_path / "results" / "toy.json", costs, {"a": math.nan, "b": 1.0}, {})
    content = json.loads((tmp_path / "results" / "toy.json").read_text())
    assert content["values"] == {"a": None, "b": 1.0}
    assert content["stages"][2]["wall_over_bare"] is None


def test_a_bench_that_fails_is_named(
    bench: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bench_asr.py").write_text(
        "def measure(run_name):\n    raise OSError('no file')\n"
    )
    (tmp_path / "bench_assignment.py").write_text(
        'def main():\n    print(\'{"bench": "assignment", "seconds": 3}\')\n'
    )
    monkeypatch.setattr(bench, "HERE", tmp_path)
    values, absent = bench.run_extras("toy")
    assert values == {"assignment_s": 3.0}
    others = set(bench.EXTRAS) - {"bench_asr", "bench_assignment"}
    assert absent == {"bench_asr": "OSError: no file"} | dict.fromkeys(others, "not there")


def test_a_run_without_stages_is_said(
    bench: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setenv("AEGIS_RUNS", str(tmp_path))
    (tmp_path / "empty").mkdir()
    assert bench.main(["--run", "empty"]) == 1
    assert "no executed stage" in capsys.readouterr().out
    assert isinstance(bench.read_costs(Run(tmp_path / "empty")), pd.DataFrame)


def test_what_moved_by_more_than_a_fifth_is_named(bench: ModuleType, tmp_path: Path) -> None:
    last = {"a": 1.0, "b": 1.0, "c": 1.0, "gone": 1.0, "unmeasured": None, "zero": 0.0}
    now = {"a": 1.19, "b": 1.21, "c": 0.79, "new": 5.0, "unmeasured": 2.0, "zero": 0.1}
    table = bench.moved(last, now | {"gone": math.nan})
    assert table["measure"].tolist() == ["b", "c", "zero"]
    assert table["change"].tolist() == pytest.approx([0.21, -0.21, math.inf])
    assert "b" in bench.say_moves(table)
    assert (
        bench.say_moves(table.iloc[:0]) == "nothing moved by more than 20% since the last record"
    )
    assert bench.read_values(tmp_path / "absent.json") == {}
    bench.write_results(tmp_path / "r.json", pd.DataFrame(), now, {})
    assert bench.moved(bench.read_values(tmp_path / "r.json"), now).empty


def test_a_second_bench_says_what_moved(
    bench: ModuleType,
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """``make bench`` three times: no record, the same again, one stage 40 % slower."""
    monkeypatch.setenv("AEGIS_RUNS", str(tmp_path))
    monkeypatch.setattr(bench, "HERE", tmp_path / "bench")
    monkeypatch.setattr(bench, "run_extras", lambda name: ({"worker_overhead_ms": 2.0}, {}))
    (tmp_path / "bench").mkdir()
    for expected in ("no record yet", "nothing moved by more than 20%"):
        assert bench.main(["--run", "toy"]) == 0
        assert expected in capsys.readouterr().out.splitlines()[-1]
    write_receipt(run, receipt("01_transcribe", 34.4, 32.0))
    assert bench.main(["--run", "toy"]) == 0
    said = capsys.readouterr().out.split("moved by more than 20%:")[1]
    # 36 s of wall time became 50.4 s, over the same engines; overhead of workers stayed.
    assert re.search(r"wall_over_bare_engines +1\.5\d* +2\.1\d* +0\.4", said)
    assert "worker_overhead_ms" not in said
    assert json.loads((tmp_path / "bench/results/toy.json").read_text())["values"]
