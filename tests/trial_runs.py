"""Studies that trials run in processes of their own, and how their tables are compared."""

from __future__ import annotations

import csv
import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from toy_study import write_toy

from aegis import checks, receipts
from aegis.pipeline import STAGES
from aegis.tables import PROJECT, SCHEMAS, Run

N_ITEMS = 12
TOY = {"00_corpora": N_ITEMS, "01_transcribe": N_ITEMS}
"""Stage -> items, of the toy study."""
IN_PLACE = shutil.ignore_patterns(".*", "workers.log", "failed")
"""What a run writes without replacing the file, or only while it works."""


@dataclass
class Study:
    """What is run, and where."""

    params: Path
    options: list[str]
    environment: dict[str, str]
    runs: Path
    stages: dict[str, int]
    pause_s: float
    reference: Run | None = None
    """The undisturbed run that trials start from; None: from nothing."""

    def command(self, name: str, address: str | None = None) -> list[str]:
        where = ["--cluster", address] if address else []
        return [
            sys.executable, "-m", "aegis.cli", "run", str(self.params), "--run", name, *where,
            *self.options,
        ]  # fmt: skip

    def start(self, name: str, address: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self.command(name, address), env=self.environment, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def done(self, name: str, stage: str) -> list[Path]:
        """Finished items of a stage, the newest last."""
        return sorted(items_of(Run(self.runs / name), stage), key=lambda p: p.stat().st_mtime)

    def copy(self) -> Run:
        """A copy of the undisturbed run, by hard links where the file system has them.

        The project replaces files and never writes into one, so the original is safe; what
        damages a file must do the same.
        """
        assert self.reference is not None
        run = Run(self.runs / self.reference.root.name)
        shutil.rmtree(run.root, ignore_errors=True)
        shutil.copytree(self.reference.root, run.root, ignore=IN_PLACE, copy_function=_link)
        return run

    def rewind(self, stage: str) -> Run:
        """Make the run of a trial: the undisturbed one before it came to the stage."""
        run = self.copy()
        receipt = receipts.read_receipt(run, stage)
        assert receipt is not None
        for file in [*receipt["files"], receipt["executed"]["file"]]:
            (run.root / file).unlink(missing_ok=True)
        for table in STAGES[stage].writes:
            run.table_path(table).unlink(missing_ok=True)
        shutil.rmtree(run.secret / "items" / stage, ignore_errors=True)
        receipts.receipt_path(run, stage).unlink()
        return run


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another disk
        shutil.copy2(source, target)


def items_of(run: Run, stage: str) -> list[Path]:
    """The saved items of a stage."""
    return sorted((run.secret / "items" / stage).glob("*.json"))


def toy_study(folder: Path) -> Study:
    write_toy(folder / "study")
    path = os.pathsep.join([str(folder / "study"), str(PROJECT)])
    environment = {
        **os.environ, "PYTHONPATH": path, "AEGIS_RUNS": str(folder / "runs"),
        "AEGIS_NOTEBOOKS": str(folder / "study" / "notebooks"), "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    given = {
        "00_corpora.n_items": N_ITEMS,
        "00_corpora.sleep_s": 0.3,
        "01_transcribe.sleep_s": 0.3,
    }
    options = [text for key, value in given.items() for text in ("-p", f"{key}={value}")]
    return Study(folder / "study" / "toy.yaml", options, environment, folder / "runs", TOY, 0.3)


def real_study(folder: Path, params: Path, reference: Run) -> Study:
    """A profile with engines; its items a stage are those of the undisturbed run."""
    environment = {**os.environ, "AEGIS_RUNS": str(folder / "runs"), "OMP_NUM_THREADS": "1"}
    items = reference.secret / "items"
    stages = {path.name: len(items_of(reference, path.name)) for path in sorted(items.iterdir())}
    stages = {name: n for name, n in stages.items() if n > 1 and name in STAGES}
    return Study(params, [], environment, folder / "runs", stages, 1.0, reference)


def compare(
    run: Run, reference: Run, names: Collection[str] = tuple(SCHEMAS)
) -> tuple[bool, int, int]:
    """(all tables equal, rows lost, rows twice) against the undisturbed run."""
    lost = twice = 0
    equal = True
    for name in names:
        if not reference.has(name):
            continue
        schema = SCHEMAS[name]
        hashes = receipts.hash_files([reference.table_path(name), run.table_path(name)])
        if hashes[0] == hashes[1]:
            continue
        expected = reference.read(name)
        found = run.read(name) if run.has(name) else expected.iloc[:0]
        keys = [
            set(map(tuple, t[list(schema.key)].astype(str).to_numpy())) for t in (expected, found)
        ]
        lost += len(keys[0] - keys[1])
        twice += len(found) - len(keys[1])
        equal = equal and expected.equals(found)
    return equal, lost, twice


@functools.cache
def _known_problems(reference: Run) -> frozenset[str]:
    """What `aegis verify` says of the undisturbed run; nothing of a real profile."""
    return frozenset(checks.verify_run(reference))


def new_problems(run: Run, reference: Run) -> list[str]:
    """What `aegis verify` says of a run and not of the undisturbed one."""
    return sorted(set(checks.verify_run(run)) - _known_problems(reference))


def write_rows(path: Path, columns: Sequence[str], rows: Sequence[Mapping[str, object]]) -> None:
    """Write all rows of the trials that have ended."""
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, columns)
        writer.writeheader()
        writer.writerows(rows)
