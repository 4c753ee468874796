"""A whole study on a scheduler and three workers, compared with the same study run as usual.

    .venv/bin/python tests/loopback_study.py --params params/demo.yaml --reference runs/demo \\
        --out tests/data/faults/loopback.csv

All processes are started here, on loopback; the run begins with nothing and goes into a folder
of its own. One row a stage: its items, what the workers' processes did of them, its tables, and
whether each equals that of the reference.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from kill_trials import cluster_of
from trial_runs import Study, compare, items_of, new_problems, real_study, write_rows

from aegis.cluster import load_record
from aegis.pipeline import STAGES
from aegis.receipts import read_receipt
from aegis.tables import Run

COLUMNS = ["stage", "items", "by_worker", "tables", "equal", "lost", "twice", "wall_s"]


def stage_row(run: Run, reference: Run, stage: str) -> dict[str, object]:
    """What one stage did and how its tables compare."""
    receipt = read_receipt(run, stage)
    assert receipt is not None
    records = [load_record(path) or {} for path in items_of(run, stage)]
    workers = Counter(str(record.get("pid")) for record in records)
    tables = [name for name in STAGES[stage].writes if reference.has(name)]
    equal, lost, twice = compare(run, reference, tables)
    return {
        "stage": stage, "items": len(records), "tables": len(tables), "equal": equal,
        "by_worker": ", ".join(str(n) for n in sorted(workers.values(), reverse=True)),
        "lost": lost, "twice": twice, "wall_s": round(receipt["wall_s"]),
    }  # fmt: skip


def run_on_workers(study: Study, reference: Run) -> tuple[list[dict[str, object]], list[str]]:
    """The study on processes of its own: a row a stage, and what is wrong with the
    run but not with the reference."""
    name = reference.root.name
    study.runs.mkdir(parents=True, exist_ok=True)
    with cluster_of(study) as cluster:
        command = study.command(name, cluster.address)
        code = subprocess.run(command, env=study.environment).returncode
    run = Run(study.runs / name)
    stages = [stage for stage in STAGES if read_receipt(run, stage)]
    rows = [stage_row(run, reference, stage) for stage in stages]
    return rows, new_problems(run, reference) + ([f"exit status {code}"] if code else [])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--params", type=Path, required=True)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    reference = Run(options.reference.resolve())
    with tempfile.TemporaryDirectory() as place:
        study = real_study(Path(place), options.params.resolve(), reference)
        rows, problems = run_on_workers(study, reference)
    write_rows(options.out, COLUMNS, rows)
    for problem in problems:
        sys.stderr.write(f"{problem}\n")
    return int(bool(problems) or not all(row["equal"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
