"""Speed and memory of a run against its bare engines, as ratios within that run.

    .venv/bin/python bench/run.py [--run NAME] [--params FILE] [--fresh]

Everything but the extra benches comes from the receipts of one run, so the ratios compare
times of the same machine and hour. A stage that reused finished items says nothing about
speed and is left out; ``--fresh`` executes the study anew into ``runs/bench``. Results go
to ``bench/results/<run>.json``, after a comparison with what was there. Nothing here is a
test: machines differ, ratios are for reading.

Functions: :func:`read_costs`, :func:`summarise`, :func:`judge`, :func:`moved`.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import json
import math
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd

from aegis import pipeline
from aegis.receipts import read_receipt
from aegis.tables import PROJECT, Run, open_run

HERE = Path(__file__).resolve().parent
EXTRAS = (
    "bench_asr",
    "bench_assignment",
    "bench_chat",
    "bench_detection",
    "bench_engines",
    "bench_linkage",
    "bench_site",
    "bench_statistics",
)
"""Modules beside this file: ``measure(run_name)`` returns a flat dict of numbers, or
``main()`` prints one JSON line with ``bench`` and ``seconds``."""
AIMS = {
    "wall_over_bare_engines": 1.25,
    "share_outside_stages": 0.10,
    "peak_memory_gib": 6.0,
    "wall_minutes": 25.0,
    "asr_over_bare": 1.15,
    "assignment_s": 10.0,
    "chat_memory_growth_mb": 20.0,
    "detector_s_per_1000_words": 1.0,
    "worker_overhead_ms": 5.0,
    "embedding_over_bare": 1.10,
    "bootstrap_s": 0.3,
    "bootstrap_over_group_by": 0.01,
    "sign_flip_s": 0.3,
    "pages_s": 90.0,
    "site_wall_s": 60.0,
    "site_mb": 40.0,
    "first_table_s": 5.0,
    "shared_stage_gib": 2.0,
    "shared_stage_error": 1e-6,
    "million_trials_s": 60.0,
}
"""Each value should be at most this."""
COLUMNS = ["stage", "planned", "failed", "reused", "wall_s", "inside_s", "item_s", "engine_s",
           "peak_mb"]  # fmt: skip


def read_costs(run: Run) -> pd.DataFrame:
    """What each finished stage cost.

    ``wall_s`` is the whole execution as ``aegis run`` sees it; ``inside_s`` runs from the
    notebook's start on the run to its receipt; ``item_s`` and ``engine_s`` are sums over
    items, the bare engine calls among them.
    """
    rows = []
    for name in pipeline.STAGES:
        receipt = read_receipt(run, name)
        if receipt is None or "executed" not in receipt:
            continue
        rows.append({
            "stage": name, "planned": receipt["counts"]["planned"],
            "failed": receipt["counts"]["failed"], "reused": receipt["reused"],
            "wall_s": receipt["executed"]["wall_s"], "inside_s": receipt["wall_s"],
            "item_s": receipt["item_s"], "engine_s": receipt["engine_s"],
            "peak_mb": receipt["executed"].get("peak_memory_mb") or math.nan,
        })  # fmt: skip
    return pd.DataFrame(rows, columns=COLUMNS)


def compare(costs: pd.DataFrame, cores: int) -> pd.DataFrame:
    """Wall time of each stage over its bare engine time on all cores; NaN without engines."""
    bare = costs["engine_s"] / cores
    return costs.assign(wall_over_bare=(costs["wall_s"] / bare).where(bare > 0))


def summarise(costs: pd.DataFrame, cores: int) -> dict[str, float]:
    """Ratios over the stages that computed all of their items in this execution."""
    whole = costs[costs["reused"] == 0]
    wall, bare = float(whole["wall_s"].sum()), float(whole["engine_s"].sum()) / cores
    items = float(whole["item_s"].sum()) / cores
    outside = float((whole["wall_s"] - whole["inside_s"]).sum())
    return {
        "cores": float(cores),
        "stages": float(len(whole)),
        "stages_left_out": float(len(costs) - len(whole)),
        "wall_minutes": wall / 60,
        "wall_over_bare_engines": _ratio(wall, bare),
        "items_over_engines": _ratio(items, bare),
        "share_outside_stages": _ratio(outside, wall),
        "share_outside_items": _ratio(wall - items, wall),
        "peak_memory_gib": float(costs["peak_mb"].max()) / 1024 if len(costs) else math.nan,
    }


def _ratio(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator > 0 else math.nan


def judge(values: dict[str, float]) -> pd.DataFrame:
    """Each measured value beside its aim; NaN where it was not measured."""
    rows = []
    for name, aim in AIMS.items():
        value = values.get(name, math.nan)
        met = None if math.isnan(value) else value <= aim
        rows.append({"measure": name, "value": value, "at_most": aim, "met": met})
    return pd.DataFrame(rows)


def run_extras(run_name: str) -> tuple[dict[str, float], dict[str, str]]:
    """The other benches of this folder; what cannot run is said."""
    values: dict[str, float] = {}
    absent: dict[str, str] = {}
    for name in EXTRAS:
        path = HERE / f"{name}.py"
        if not path.exists():
            absent[name] = "not there"
            continue
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        try:
            values |= measure_module(module, run_name)
        except Exception as error:  # noqa: BLE001 - one bench must not hide the others
            absent[name] = f"{type(error).__name__}: {error}"
    return values, absent


def measure_module(module: ModuleType, run_name: str) -> dict[str, float]:
    """What one bench measured, by name."""
    if hasattr(module, "measure"):
        return {key: float(value) for key, value in module.measure(run_name).items()}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        module.main()
    line = json.loads(printed.getvalue())
    return {f"{line['bench']}_s": float(line["seconds"])}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", default="demo", help="run whose receipts are read")
    parser.add_argument("--params", default="params/demo.yaml", help="profile for --fresh")
    parser.add_argument("--fresh", action="store_true", help="execute the study into runs/bench")
    options = parser.parse_args(arguments)
    name = "bench" if options.fresh else options.run
    if options.fresh:
        run = open_run(name, create=True)
        shutil.rmtree(run.root)
        pipeline.run_study(pipeline.load_study(PROJECT / options.params), run_name=name)
    run, cores = open_run(name), pipeline.n_cores()
    costs = compare(read_costs(run), cores)
    if costs.empty:
        print(f"run {name!r} has no executed stage; start it with `aegis run {options.params}`")
        return 1
    extras, absent = run_extras(name)
    values = summarise(costs, cores) | extras
    print(costs.round(2).to_string(index=False), end="\n\n")
    print(judge(values).round(3).to_string(index=False))
    for bench, reason in absent.items():
        print(f"{bench}: not measured ({reason})")
    target = HERE / "results" / f"{name}.json"
    last = read_values(target)
    print("\n" + (say_moves(moved(last, values)) if last else "no record yet to compare with"))
    write_results(target, costs, values, absent)
    return 0


MOVE = 0.20
"""A value that moved by more than this share since the last record is named."""


def read_values(path: Path) -> dict[str, float | None]:
    """The values that the last bench recorded; none where there is no record to read."""
    try:
        found: dict[str, float | None] = json.loads(path.read_text("utf-8"))["values"]
    except (FileNotFoundError, ValueError, KeyError):
        return {}
    return found


def moved(last: Mapping[str, float | None], now: Mapping[str, float]) -> pd.DataFrame:
    """Values that moved by more than :data:`MOVE` of the last one; NaN and new ones do not."""
    rows = []
    for name, value in now.items():
        before = last.get(name)
        if before is None or math.isnan(value) or before == value:
            continue
        change = (value - before) / abs(before) if before else math.inf
        if abs(change) > MOVE:
            rows.append({"measure": name, "last": before, "now": value, "change": change})
    return pd.DataFrame(rows, columns=["measure", "last", "now", "change"])


def say_moves(table: pd.DataFrame) -> str:
    if table.empty:
        return f"nothing moved by more than {MOVE:.0%} since the last record"
    return f"moved by more than {MOVE:.0%}:\n{table.round(3).to_string(index=False)}"


def write_results(
    path: Path, costs: pd.DataFrame, values: dict[str, float], absent: dict[str, str]
) -> None:
    """Write the ratios as JSON; NaN becomes null."""
    content: dict[str, Any] = {
        "values": {key: None if math.isnan(value) else value for key, value in values.items()},
        "aims_at_most": AIMS,
        "not_measured": absent,
        "stages": json.loads(costs.to_json(orient="records")),
    }
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n", "utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
