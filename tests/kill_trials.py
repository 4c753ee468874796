"""Seeded trials: a worker, the scheduler or the driver is killed while a study runs.

    .venv/bin/python tests/kill_trials.py --trials 20 --out tests/data/faults/kill_trials.csv
    .venv/bin/python tests/kill_trials.py --out tests/data/faults/kill_trials_smoke.csv \\
        --params params/smoke.yaml --reference runs/smoke

A scheduler and three workers on loopback run the toy study; at a seeded moment inside a stage
one process gets SIGKILL. What died is started again, the study is run until it ends, and its
tables are compared with those of an undisturbed run. One line a trial is written as it ends:
stage and items done at the kill, the last of them by name, runs needed, what differs.

A profile with engines starts each trial from a copy of its undisturbed run in which the stage
of the kill was never reached: its items, sounds, tables and receipt are gone. All stages from
there on are run again as far as they are not up to date.
"""

from __future__ import annotations

import argparse
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from trial_runs import Study, compare, new_problems, real_study, toy_study, write_rows

from aegis.cluster import load_record
from aegis.tables import Run

VICTIMS = ("worker", "scheduler", "driver")
N_WORKERS = 3
COLUMNS = ["seed", "victim", "stage", "done_at_kill", "item", "planned", "runs", "equal", "lost",
           "twice", "problems", "seconds"]  # fmt: skip


@dataclass
class Cluster:
    """A scheduler and workers as processes of their own."""

    environment: dict[str, str]
    port: int
    log: Path
    scheduler: subprocess.Popen[bytes] | None = None
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"tcp://127.0.0.1:{self.port}"

    def _start(self, *arguments: str) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", *arguments], env=self.environment, stdout=log, stderr=log
            )

    def heal(self) -> None:
        """Start what is not alive; workers of a dead scheduler are stopped first."""
        if self.scheduler is None or self.scheduler.poll() is not None:
            self.stop()
            self.scheduler = self._start(
                "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(self.port),
                "--no-dashboard",
            )  # fmt: skip
        self.workers = [worker for worker in self.workers if worker.poll() is None]
        while len(self.workers) < N_WORKERS:
            self.workers.append(self._start(
                "distributed.cli.dask_worker", self.address, "--no-nanny", "--nthreads", "1",
                "--memory-limit", "0", "--no-dashboard", "--local-directory",
                str(self.log.parent / "dask"),
            ))  # fmt: skip

    def stop(self) -> None:
        for process in [*self.workers, self.scheduler]:
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()
        self.workers, self.scheduler = [], None


def free_port() -> int:
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return int(opened.getsockname()[1])


@contextmanager
def cluster_of(study: Study) -> Iterator[Cluster]:
    cluster = Cluster(study.environment, free_port(), study.runs.parent / "cluster.log")
    try:
        cluster.heal()
        yield cluster
    finally:
        cluster.stop()


def one_trial(
    study: Study, cluster: Cluster, seed: int, reference: Run, victims: tuple[str, ...] = VICTIMS
) -> dict[str, object]:
    """Kill once, finish, compare."""
    rng = np.random.default_rng(seed)
    victim = str(rng.choice(victims))
    stage = str(rng.choice(list(study.stages)))
    wanted = int(rng.integers(1, study.stages[stage]))
    pause_s = float(rng.uniform(0.0, study.pause_s))
    # A run's name is a parameter of every notebook, so a copy keeps it.
    name = study.reference.root.name if study.reference else f"trial{seed}"
    began = time.monotonic()
    if study.reference:
        study.rewind(stage)
    cluster.heal()
    driver = study.start(name, cluster.address)
    while len(study.done(name, stage)) < wanted and driver.poll() is None:
        time.sleep(0.02)
    time.sleep(pause_s)
    done = study.done(name, stage)
    item = (load_record(done[-1]) or {}).get("id", "") if done else ""
    targets = {"worker": cluster.workers[int(rng.integers(N_WORKERS))],
               "scheduler": cluster.scheduler, "driver": driver}  # fmt: skip
    target = targets[victim]
    assert target is not None
    target.send_signal(signal.SIGKILL)
    target.wait()
    runs, code = 1, driver.wait(timeout=1200)
    while code != 0 and runs < 5:
        cluster.heal()
        runs, code = runs + 1, study.start(name, cluster.address).wait(timeout=1200)
    run = Run(study.runs / name)
    equal, lost, twice = compare(run, reference)
    return {
        "seed": seed, "victim": victim, "stage": stage, "done_at_kill": len(done), "item": item,
        "planned": study.stages[stage], "runs": runs, "equal": equal and code == 0, "lost": lost,
        "twice": twice,
        "problems": len(new_problems(run, reference)),
        "seconds": round(time.monotonic() - began, 1),
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--params", type=Path, help="a profile with engines; default: the toy")
    parser.add_argument("--reference", type=Path, help="its undisturbed run")
    parser.add_argument("--victims", default=",".join(VICTIMS), help="who may be killed")
    options = parser.parse_args()
    victims = tuple(options.victims.split(","))
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        if options.params:
            study = real_study(folder, options.params.resolve(), Run(options.reference))
            reference = Run(options.reference)
        else:
            study, reference = toy_study(folder), Run(folder / "runs" / "undisturbed")
        with cluster_of(study) as cluster:
            if not options.params:
                assert study.start("undisturbed", cluster.address).wait(timeout=1200) == 0
            for seed in range(options.seed, options.seed + options.trials):
                rows.append(one_trial(study, cluster, seed, reference, victims))
                write_rows(options.out, COLUMNS, rows)
    table = pd.DataFrame(rows)
    return int(not table["equal"].all())


if __name__ == "__main__":
    sys.exit(main())
