"""The site of a run, and how soon a notebook shows something.

``site_wall_s`` and ``site_cpu_s`` (this process and its children) are one render with
originals and without sounds of an earlier one, ``site_mb`` its size. ``first_table_s`` is the
slowest notebook that writes no table: from its kernel's start, through "run all", until the
first table stands there.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import jupytext
from jupyter_client.manager import start_new_kernel

from aegis import site
from aegis.pipeline import STAGES, find_notebooks
from aegis.tables import PROJECT, Run, open_run


def measure(run_name: str) -> dict[str, float]:
    """Seconds, megabytes (10^6 bytes) and the slowest first table of a run."""
    run = open_run(run_name)
    shutil.rmtree(run.root / "pages", ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        wall, used = time.perf_counter(), os.times()
        site.render(run_name, Path(folder) / "site", originals=True)
        wall, now = time.perf_counter() - wall, os.times()
        size = sum(p.stat().st_size for p in Path(folder).rglob("*") if p.is_file())
    return {
        "site_wall_s": wall,
        "site_cpu_s": sum(now[:4]) - sum(used[:4]),
        "site_mb": size / 1e6,
        "first_table_s": max(first_tables(run).values()),
    }


def first_tables(run: Run) -> dict[str, float]:
    """Seconds to the first table of each notebook that writes none and was executed."""
    readers = [name for name, wiring in STAGES.items() if not wiring.writes]
    there = [name for name in readers if (run.root / "notebooks" / f"{name}.ipynb").exists()]
    return {name: first_table_s(find_notebooks()[name], run.root.name) for name in there}


def first_table_s(source: Path, run_name: str) -> float:
    """Seconds from the kernel's start until a cell of the notebook has shown a table."""
    began = time.perf_counter()
    manager, client = start_new_kernel(kernel_name="python3", cwd=str(PROJECT))
    shown: list[float] = []

    def look(message: dict) -> None:
        if "<table" in str(message["content"].get("data", {}).get("text/html", "")):
            shown.append(time.perf_counter() - began)

    try:
        for cell in jupytext.read(source).cells:
            if cell.cell_type != "code":
                continue
            code = cell.source
            if "parameters" in cell.metadata.get("tags", []):
                code += f"\nrun_name = {run_name!r}"
            reply = client.execute_interactive(code, output_hook=look, timeout=120)
            if reply["content"]["status"] != "ok":
                raise RuntimeError(f"{source.stem}: {reply['content'].get('evalue')}")
            if shown:
                return shown[0]
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    return float("nan")


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1] if len(sys.argv) > 1 else "demo"), indent=1))
