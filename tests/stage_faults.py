"""Seeded trials: in every stage of a profile, its files are damaged and its work is disturbed.

    .venv/bin/python tests/stage_faults.py --params params/smoke.yaml --reference runs/smoke \\
        --out tests/data/faults/stage_faults.csv

Every trial starts from a copy of an undisturbed run. *At rest*, one file of each kind that a
stage has is damaged in a seeded way, `aegis verify` must name each, first while the receipt can
be read, and the study is run again. *In flight*, the stage was never reached, and at a seeded
moment of it one fault happens; the study is run until it ends. Tables are compared with those of
the undisturbed run. Rows are written as trials end; those that the file holds are not tried again.

Pages that read the receipts of all stages are left out of the trials of other stages: any of them
makes these pages stale, and they have trials of their own.

Disks are images of their own, mounted for one trial: without the right to mount, their trials
are left out. A disk turns read-only as one does that met an error, with files open on it.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import yaml
from trial_runs import Study, compare, items_of, new_problems, real_study, write_rows

from aegis.cluster import load_record, local_cluster
from aegis.pipeline import STAGES, find_notebooks
from aegis.receipts import RECEIPT, read_receipt, receipt_path
from aegis.tables import Run

KERNEL, CTRL_C, FULL = "the kernel killed", "Ctrl-C", "a full disk"
READ_ONLY, CLOCK = "a disk that turns read-only", "the clock set back and forth"
WORKER, SECOND = "a worker killed", "a second run"
FAULTS = (KERNEL, CTRL_C, FULL, READ_ONLY, CLOCK, WORKER, SECOND)
OWN_WORKERS = (CTRL_C, CLOCK, WORKER)
"""Faults of the processes of a command; others leave its workers alone, which may be shared."""
WAYS = ("truncated", "one bit", "emptied", "gone")
AT_REST = "files damaged"
COLUMNS = ["seed", "stage", "fault", "moment", "named", "commands", "plain", "equal", "lost",
           "twice", "problems", "survived", "seconds", "said"]  # fmt: skip
MOST_COMMANDS, TIMEOUT_S, DISK_MB = 4, 900, 256
CLOCK_MODULE = """
import os
import time

_real, _flag = time.time, os.environ["TRIAL_CLOCK"]


def _jumping():
    try:
        with open(_flag) as handle:
            return _real() + float(handle.read() or 0)
    except FileNotFoundError:
        return _real()


time.time = _jumping
"""

RECEIPTS_OF_ALL = {RECEIPT + next(iter(STAGES))}
"""What only a page about the run itself reads."""

Row = dict[str, object]


# --- at rest --------------------------------------------------------------------------------


def damage(path: Path, way: str, rng: np.random.Generator) -> None:
    """Change a file into one of its own: another run may share its content by a hard link."""
    content = bytearray(path.read_bytes())
    path.unlink()
    if way == "gone":
        return
    if way == "one bit":
        content[int(rng.integers(len(content)))] ^= 1 << int(rng.integers(8))
    else:
        del content[0 if way == "emptied" else int(rng.integers(1, len(content))) :]
    path.write_bytes(content)


def files_of(run: Run, stage: str) -> dict[str, list[Path]]:
    """Kind -> files of a stage that is done; the receipt is apart."""
    receipt = read_receipt(run, stage) or {}
    sounds = [run.root / name for name in receipt["files"] if name.endswith(".wav")]
    return {
        "table": [run.table_path(name) for name in receipt["tables"]],
        "item": items_of(run, stage),
        "sound": sounds,
        "page": [run.root / receipt["executed"]["file"]],
    }


def unnamed(run: Run, damaged: dict[Path, str], lines: Collection[str]) -> list[Path]:
    """Damaged files that no line of `aegis verify` names.

    An item that is gone is no damage: nothing reads it but a stage that runs again.
    """
    text = "\n".join(lines)
    free = {path for path, way in damaged.items() if way == "gone" and "items" in path.parts}
    return [p for p in damaged if p not in free and run.relative(p) not in text]


def at_rest(study: Study, stage: str, seed: int, address: str | None = None) -> Row:
    """Damage one file of each kind, then the receipt, and run again."""
    assert study.reference is not None
    rng = np.random.default_rng([seed, list(STAGES).index(stage)])
    run, began = study.copy(), time.monotonic()
    chosen = {k: found[int(rng.integers(len(found)))]
              for k, found in files_of(run, stage).items() if found}  # fmt: skip
    receipt = {"receipt": receipt_path(run, stage)}
    missed, tried = 0, []
    for group in (chosen, receipt):
        damaged = {path: str(rng.choice(WAYS)) for path in group.values()}
        tried += [f"{kind} {damaged[path]}" for kind, path in group.items()]
        for path, way in damaged.items():
            damage(path, way, rng)
        told = new_problems(run, study.reference)
        missed += len(unnamed(run, damaged, told))
    ending = Command(study, run.root.name, address).finish()
    whole = all(load_record(path) for path in chosen.values() if "items" in path.parts)
    return judged(
        study, run, began,
        seed=seed, stage=stage, fault=AT_REST, moment="; ".join(tried),
        named=f"{len(tried) - missed} of {len(tried)}", commands=1, plain=ending.plain,
        good=ending.code == 0 and ending.plain and whole and not missed,
        said=ending.said if ending.code else next(iter(told), ""),
    )  # fmt: skip


# --- in flight ------------------------------------------------------------------------------


@dataclass
class Ending:
    """How a command ended: its code, its last line, and whether that was said in its own words."""

    code: int
    said: str
    plain: bool


class Command:
    """`aegis run` in a process group of its own, as a terminal starts it."""

    def __init__(self, study: Study, name: str, address: str | None = None) -> None:
        self.log = study.runs.parent / f"said{time.monotonic_ns()}.txt"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                study.command(name, address), env=study.environment, stdout=subprocess.DEVNULL,
                stderr=log, start_new_session=True,
            )  # fmt: skip
        self.family: set[psutil.Process] = set()

    def below(self, word: str) -> list[psutil.Process]:
        """Processes below the command with a word in their command line, the oldest first."""
        found = []
        with suppress(psutil.Error):
            for process in psutil.Process(self.process.pid).children(recursive=True):
                self.family.add(process)
                with suppress(psutil.Error):
                    if any(word in text for text in process.cmdline()):
                        found.append(process)
        return sorted(found, key=lambda process: process.pid)

    def wait_until(self, ready: Callable[[], object]) -> None:
        """Wait until something holds or the command has ended."""
        began = time.monotonic()
        while not ready() and self.process.poll() is None:
            assert time.monotonic() - began < TIMEOUT_S, "nothing happened"
            time.sleep(0.02)

    def finish(self) -> Ending:
        """Wait for the end; whatever it left running is ended, and counts as badly said."""
        code = self.process.wait(timeout=TIMEOUT_S)
        _, left = psutil.wait_procs(list(self.family), timeout=40)
        for process in left:
            process.kill()
        text = self.log.read_text("utf-8", "replace")
        lines = [line for line in text.splitlines() if line.strip()] or [""]
        # An error that nobody foresaw is told by its name and cell only.
        foreseen = lines[-1].startswith("aegis: ") and " in cell " not in lines[-1]
        plain = foreseen and "Traceback" not in text and not left
        if left:
            lines.append(f"{len(left)} processes were left behind")
        return Ending(code, lines[-1].strip(), (code == 0 and not left) or plain)


@dataclass
class Disturbance:
    """One fault, done to a running command, and what undoes it."""

    study: Study
    command: Command
    rng: np.random.Generator
    place: Path
    """Where the runs lie, a disk of their own for faults of disks."""
    undo: list[Callable[[], object]] = field(default_factory=list)
    second: Ending | None = None

    def strike(self, fault: str) -> None:
        if fault == KERNEL:
            for process in self.command.below("ipykernel_launcher"):
                process.kill()
        elif fault == CTRL_C:
            self.command.below("")
            os.killpg(self.command.process.pid, signal.SIGINT)
        elif fault == WORKER:
            workers = self.command.below("spawn_main")
            if workers:
                workers[int(self.rng.integers(len(workers)))].kill()
        elif fault == FULL:
            fill(self.place / "ballast")
            self.undo.append((self.place / "ballast").unlink)
        elif fault == READ_ONLY:
            break_disk(self.place)
            self.undo.append(lambda: mend_disk(self.place))
        elif fault == CLOCK:
            flag = Path(self.study.environment["TRIAL_CLOCK"])
            for jump_s in (-86_400, 86_400):
                flag.write_text(str(jump_s))
                time.sleep(0.5)
        elif fault == SECOND:
            self.second = Command(self.study, self.study.reference.root.name).finish()


def in_flight(study: Study, stage: str, fault: str, seed: int, address: str | None = None) -> Row:
    """Let one fault happen in a stage, then run until the study has ended."""
    rng = np.random.default_rng([seed, 1, list(STAGES).index(stage)])
    assert study.reference is not None
    name = study.reference.root.name
    with surroundings(study, fault):
        run, began = study.rewind(stage), time.monotonic()
        call("sync", "-f", str(study.runs))  # what stages wrote long before the fault is safe
        command = Command(study, name, None if fault in OWN_WORKERS else address)
        moment = wait_for_moment(study, command, run, stage, rng)
        disturbance = Disturbance(study, command, rng, study.runs)
        if receipt_path(run, stage).exists():
            moment = f"just after it ({moment})"
        disturbance.strike(fault)
        ending = command.finish()
        commands, last = 1, ending.code
        for undo in disturbance.undo:
            undo()
        while last != 0 and commands < MOST_COMMANDS:
            commands, last = commands + 1, Command(study, name, address).finish().code
        told = [ending] if ending.code or not ending.plain else []
        refused = True
        if disturbance.second is not None:
            told.append(disturbance.second)
            refused = "another process" in disturbance.second.said
        plain = all(each.plain for each in told) and refused
        return judged(
            study, run, began,
            seed=seed, stage=stage, fault=fault, moment=moment, named="", commands=commands,
            plain=plain, good=plain and last == 0, said=told[0].said if told else "",
        )  # fmt: skip


def wait_for_moment(
    study: Study, command: Command, run: Run, stage: str, rng: np.random.Generator
) -> str:
    """Wait for a seeded moment of a stage: after some items, or a share of its time.

    A stage that is over in less than a second is met at its start: its kernel runs.
    """
    receipt = read_receipt(study.reference, stage) or {}
    n_items = len(items_of(study.reference, stage))
    command.wait_until(lambda: command.below("ipykernel_launcher"))
    if n_items > 1:
        wanted = int(rng.integers(n_items))
        opened = run.root / ".stage.lock"
        command.wait_until(lambda: opened.exists() and len(items_of(run, stage)) >= wanted)
        return f"{len(items_of(run, stage))} of {n_items} items"
    if receipt["wall_s"] < 1.0:
        return "its start"
    share = float(rng.uniform(0.0, 0.8))
    command.wait_until((run.root / ".stage.lock").exists)
    time.sleep(share * receipt["wall_s"])
    return f"{share:.0%} of its time"


# --- disks and clocks -------------------------------------------------------------------------


@contextmanager
def surroundings(study: Study, fault: str) -> Iterator[None]:
    """What a fault needs: a small disk under the runs, or a clock that can be set."""
    study.runs.mkdir(parents=True, exist_ok=True)
    if fault == CLOCK:
        before = dict(study.environment)
        module = study.runs.parent / "clock" / "sitecustomize.py"
        module.parent.mkdir(exist_ok=True)
        module.write_text(CLOCK_MODULE)
        flag = module.with_name("offset.txt")
        flag.unlink(missing_ok=True)
        path = [str(module.parent), *filter(None, [before.get("PYTHONPATH")])]
        study.environment |= {"PYTHONPATH": os.pathsep.join(path), "TRIAL_CLOCK": str(flag)}
        try:
            yield
        finally:
            study.environment = before
    elif fault in (FULL, READ_ONLY):
        image = study.runs.parent / "disk.img"
        with image.open("wb") as handle:
            handle.truncate(DISK_MB << 20)
        call("mkfs.ext4", "-q", "-m", "0", str(image))
        mount(study.runs)
        try:
            yield
        finally:
            call("umount", str(study.runs))
            image.unlink()
    else:
        yield


def call(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def mount(place: Path) -> None:
    options = "loop,errors=remount-ro"
    call("mount", "-o", options, str(place.parent / "disk.img"), str(place))


def can_mount() -> bool:
    """May this process make a disk of its own?"""
    with tempfile.TemporaryDirectory() as folder:
        try:
            with surroundings(Study(Path(), [], {}, Path(folder) / "runs", {}, 0.0), FULL):
                return True
        except (OSError, subprocess.CalledProcessError):
            return False


def fill(path: Path) -> None:
    """Write until nothing more fits."""
    with path.open("wb", buffering=0) as handle:
        most = max(0, shutil.disk_usage(path.parent).free - (1 << 20))
        with suppress(OSError):
            os.posix_fallocate(handle.fileno(), 0, most)
            handle.seek(most)
        for size in (1 << 20, 1 << 12):
            with suppress(OSError):
                while True:
                    handle.write(bytes(size))


def break_disk(place: Path) -> None:
    """Let the file system meet an error of its own; it then takes no more writes."""
    device = Path(call("findmnt", "-no", "SOURCE", str(place))).name
    Path(f"/sys/fs/ext4/{device}/trigger_fs_error").write_text("1")


def mend_disk(place: Path) -> None:
    """What a person does: unmount, check, mount again."""
    call("umount", str(place))
    repaired = ["e2fsck", "-fy", str(place.parent / "disk.img")]
    subprocess.run(repaired, check=False, capture_output=True)
    mount(place)


# --- rows -------------------------------------------------------------------------------------


def judged(study: Study, run: Run, began: float, *, good: bool, said: str, **row: object) -> Row:
    """A row with what became of the tables."""
    assert study.reference is not None
    equal, lost, twice = compare(run, study.reference)
    problems = new_problems(run, study.reference)
    found: Row = {
        **row, "equal": equal, "lost": lost, "twice": twice, "problems": len(problems),
        "survived": bool(good and equal and not problems),
        "seconds": round(time.monotonic() - began, 1), "said": without_paths(said)[:100],
    }  # fmt: skip
    return {name: found[name] for name in COLUMNS}


def without_paths(text: str) -> str:
    """A line without the folders of this machine."""
    return re.sub(r"(?<![\w.])/(?:[\w.+-]+/)+", "", text)


def planned(study: Study, seed: int) -> list[tuple[str, str]]:
    """(stage, fault) of all trials: each stage at rest and with one fault of a shuffled deck."""
    stages = [name for name in STAGES if read_receipt(study.reference, name) is not None]
    rng = np.random.default_rng(seed)
    deck = [str(f) for _ in range(-(-len(stages) // len(FAULTS))) for f in rng.permutation(FAULTS)]
    pairs = zip(stages, deck, strict=False)
    return [(stage, fault) for stage, drawn in pairs for fault in (AT_REST, drawn)]


def place_of(row: Row) -> tuple[int, int, bool]:
    """Where a row stands: by seed and stage, at rest before in flight."""
    return int(str(row["seed"])), list(STAGES).index(str(row["stage"])), row["fault"] != AT_REST


def without_pages(params: Path, stage: str, folder: Path) -> Path:
    """A profile without the pages about the run itself, unless the stage is one of them."""
    if RECEIPTS_OF_ALL & set(STAGES[stage].reads):
        return params
    content = yaml.safe_load(params.read_text("utf-8"))
    kept = content.get("notebooks", list(find_notebooks()))
    content["notebooks"] = [n for n in kept if not RECEIPTS_OF_ALL & set(STAGES[n].reads)]
    shorter = folder / params.name
    shorter.write_text(
        yaml.safe_dump(
            {k: v for k, v in content.items() if k not in STAGES or k in content["notebooks"]}
        )
    )
    return shorter


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--params", type=Path, required=True)
    parser.add_argument("--reference", type=Path, required=True, help="its undisturbed run")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--stages", default="", help="only these, by commas")
    parser.add_argument("--faults", default="", help="only these, by commas")
    options = parser.parse_args()
    # A shell starts what runs in the background deaf to Ctrl-C, and children take that over.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    rows: list[Row] = []
    if options.out.exists():
        rows = pd.read_csv(options.out, keep_default_na=False).to_dict("records")
    held = {(row["seed"], row["stage"], row["fault"]) for row in rows}
    with (
        tempfile.TemporaryDirectory() as place,
        local_cluster(2, Path(place) / "workers.log") as address,
    ):
        folder = Path(place)
        study = real_study(folder, options.params.resolve(), Run(options.reference.resolve()))
        left_out = () if can_mount() else (FULL, READ_ONLY)
        for stage, fault in planned(study, options.seed):
            unwanted = [options.stages and stage not in options.stages.split(","),
                        options.faults and fault not in options.faults.split(",")]  # fmt: skip
            if any(unwanted) or fault in left_out or (options.seed, stage, fault) in held:
                continue
            study.params = without_pages(options.params.resolve(), stage, folder)
            if fault == AT_REST:
                rows.append(at_rest(study, stage, options.seed, address))
            else:
                rows.append(in_flight(study, stage, fault, options.seed, address))
            rows.sort(key=place_of)
            write_rows(options.out, COLUMNS, rows)
    return int(not all(str(row["survived"]) == "True" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
