"""What a notebook sees of the run: read, map, write, done.

``stage = open_stage("03_assign_voices", globals())`` checks the parameters against
the notebook's own declaration, takes the run folder's lock and binds the notebook
to its line in ``pipeline.STAGES``: other tables can be neither read nor written.
A stage is done by its receipt, which :meth:`Stage.done` writes last.
"""

from __future__ import annotations

import json
import os
import resource
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import filelock
import pandas as pd

from aegis import engines, receipts
from aegis.closure import closure_hashes, run_hash
from aegis.cluster import Record, WorkFunction, load_record, map_items, run_item
from aegis.errors import ParamError, RunLocked, StageFailed, TableError
from aegis.fields import repeated
from aegis.params import check_value, read_declarations
from aegis.pipeline import STAGES, Wiring, find_notebooks
from aegis.tables import PROJECT, SCHEMAS, Run, open_run
from aegis.work import ItemResult

_locks: dict[Path, filelock.FileLock] = {}


@dataclass
class Stage:
    """One notebook's hold on a run."""

    wiring: Wiring
    run: Run
    parameters: dict[str, Any]
    notebook: Path
    started_s: float = field(default_factory=time.time)
    _began_s: float = field(default_factory=time.monotonic)
    _written: dict[str, pd.DataFrame] = field(default_factory=dict)
    _files: dict[str, str] = field(default_factory=dict)
    _records: list[Record] = field(default_factory=list)
    _outside: dict[str, str | None] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.wiring.name

    def read(self, name: str) -> pd.DataFrame:
        """Read a table that this notebook is wired to read.

        Raises
        ------
        TableError
            It is not, or the table is absent or unreadable.
        """
        if name not in self.wiring.reads:
            raise TableError(f"{self.name} does not read {name}; it reads {self.wiring.reads}")
        if name in SCHEMAS and not self.run.has(name):
            owner = next((stage for stage, w in STAGES.items() if name in w.writes), None)
            raise TableError(
                f"{self.name} reads {name}, which run {self.run.root.name} does not have yet: run"
                f" the notebook {owner} first, or `aegis run`"
            )
        return self.run.read(name)

    def has(self, name: str) -> bool:
        """Is there a row in this table of another notebook (for tables that may be absent)?

        A corpus without a script has truth tables without rows.
        """
        if name not in self.wiring.reads:
            raise TableError(f"{self.name} does not read {name}; it reads {self.wiring.reads}")
        return name in SCHEMAS and self.run.has(name) and len(self.read(name)) > 0

    def uses(self, path: Path) -> Path:
        """Note a file or folder outside the run that the results depend on; returns it.

        What a parameter names by a path with a ``/`` is noted without this.
        """
        key = str(receipts.recorded({"path": os.path.relpath(str(path), str(PROJECT))})["path"])
        self._outside[key] = receipts.fingerprint(path)
        return path

    def map(
        self,
        function: WorkFunction,
        items: Sequence[Mapping[str, Any]],
        settings: Mapping[str, Any] | None = None,
    ) -> list[ItemResult]:
        """Run ``function(item, settings, run)`` on each item; results in the items' order.

        A result is reused when item, settings, code, model cards and engine packages are
        the same and the files that it names under ``"files"`` are unchanged. Whatever else
        the function reads must be named in the item by its hash. ``item["cost"]``, when
        given, only orders the work (dear ones first).

        Raises
        ------
        ParamError
            Two items have one id.
        EngineUnavailable, StageFailed
            No item can run, or the disk is full.
        """
        plain_settings = json.loads(json.dumps(dict(settings or {}), default=receipts.plain))
        work = [json.loads(json.dumps(dict(item), default=receipts.plain)) for item in items]
        costs = [float(item.pop("cost", 0.0)) for item in work]
        _check_ids(self.name, work)
        paths = self._record_paths(function, work, plain_settings)
        records = self._reusable(paths)
        todo = sorted((i for i in range(len(work)) if records[i] is None), key=lambda i: -costs[i])
        progress = _Progress(self, planned=len(work), done=len(work) - len(todo))
        fresh = set(todo)
        for index, record in self._run(function, work, plain_settings, paths, todo):
            records[index] = record
            progress.advance(record)
        progress.close()
        complete = [record for record in records if record is not None]
        for index, record in enumerate(complete):
            self._files |= (record["value"] or {}).get("files", {})
            self._records.append(record | {"cached": index not in fresh})
        return [_result(record, i not in fresh) for i, record in enumerate(complete)]

    def _run(
        self,
        function: WorkFunction,
        work: list[dict[str, Any]],
        settings: dict[str, Any],
        paths: list[Path],
        todo: list[int],
    ) -> Iterator[tuple[int, Record]]:
        if not todo:
            return
        address, root = os.environ.get("AEGIS_SCHEDULER"), self.run.root
        if address:
            yield from map_items(address, self.name, function, work, settings, root, paths, todo)
            return
        for index in todo:
            yield index, run_item(function, work[index], settings, root, paths[index])

    def _record_paths(
        self, function: WorkFunction, work: list[dict[str, Any]], settings: dict[str, Any]
    ) -> list[Path]:
        source = Path(function.__code__.co_filename)
        if function.__qualname__ != function.__name__ or not source.exists():
            raise ParamError(f"{self.name}: {function.__qualname__} is no module-level function")
        code = closure_hashes(source, function.__name__)
        base = [
            function.__name__,
            code,
            run_hash(),
            receipts.cards(code),
            receipts.packages(),
            settings,
        ]
        common = receipts.digest(base)
        folder = self.run.secret / "items" / self.name
        return [folder / f"{receipts.digest([common, item])}.json" for item in work]

    def _reusable(self, paths: list[Path]) -> list[Record | None]:
        with ThreadPoolExecutor(max_workers=4) as pool:
            return list(pool.map(self._saved, paths))

    def _saved(self, path: Path) -> Record | None:
        record = load_record(path)
        if record is None:
            return None
        files: dict[str, str] = (record["value"] or {}).get("files", {})
        same = all(receipts.file_sha256(self.run.root / f) == sha for f, sha in files.items())
        if not same:
            path.unlink()
        return record if same else None

    def write(self, name: str, table: pd.DataFrame) -> pd.DataFrame:
        """Check and write a table that this notebook owns; returns it as written.

        Raises
        ------
        TableError
            Another notebook owns it, or it breaks its schema.
        """
        if name not in self.wiring.writes:
            raise TableError(f"{self.name} does not own {name}; it owns {self.wiring.writes}")
        path = self.run.write(name, table)
        if SCHEMAS[name].visibility == "secret":
            path.chmod(0o600)
        self._written[name] = self.run.read(name)
        return self._written[name]

    def add_files(self, files: Mapping[str, str]) -> None:
        """Note files written outside :meth:`map`: path relative to the run -> SHA-256."""
        self._files |= files

    def done(self) -> pd.DataFrame:
        """Write the receipt and give the run folder free; returns a one-row summary.

        Raises
        ------
        StageFailed
            A table that this notebook owns was not written.
        """
        unwritten = set(self.wiring.writes) - set(self._written) - self.wiring.optional
        if unwritten:
            raise StageFailed(f"{self.name}: owned tables not written: {sorted(unwritten)}")
        self._drop_orphans()
        for name in set(self.wiring.writes) - set(self._written):
            if name in SCHEMAS:
                self.run.table_path(name).unlink(missing_ok=True)
        receipt = self._receipt()
        receipts.write_receipt(self.run, receipt)
        _unlock(self.run)
        shown = receipt["counts"] | {k: round(receipt[k], 2) for k in ("engine_s", "wall_s")}
        return pd.DataFrame([{"stage": self.name, **shown}])

    def _drop_orphans(self) -> None:
        """Remove files that this stage's last receipt lists and this execution did not make."""
        last = receipts.read_receipt(self.run, self.name) or {}
        for file in set(last.get("files", {})) - set(self._files):
            (self.run.root / file).unlink(missing_ok=True)

    def _receipt(self) -> dict[str, Any]:
        code = closure_hashes(self.notebook)
        usage = resource.getrusage(resource.RUSAGE_SELF)
        fresh = [record for record in self._records if not record["cached"]]
        workers: dict[int, float] = {}
        for record in fresh:
            workers[record["pid"]] = max(workers.get(record["pid"], 0.0), record["rss_mb"])
        workers.pop(os.getpid(), None)
        used = [info for record in self._records for info in record["engines"]]
        used += [asdict(info) for info in engines.resident()]
        return {
            "format": 1,
            "stage": self.name,
            "run": self.run.root.name,
            "token": os.environ.get("AEGIS_TOKEN"),
            "started": datetime.fromtimestamp(self.started_s, UTC).isoformat(timespec="seconds"),
            "notebook": receipts.file_sha256(self.notebook),
            "code": code,
            "schemas": receipts.schemas([*self.wiring.reads, *self.wiring.writes]),
            "parameters": receipts.recorded(self.parameters),
            "seeds": {k: v for k, v in self.parameters.items() if "seed" in k},
            "outside": receipts.outside_inputs(self.parameters),
            "used": self._outside,
            "inputs": receipts.hash_inputs(self.run, self.wiring.reads),
            "tables": receipts.hash_inputs(self.run, self._written),
            "files": dict(sorted(self._files.items())),
            "engines": _distinct(used),
            "cards": receipts.cards(code),
            "packages": receipts.packages(),
            "machine": receipts.machine(),
            "counts": self._counts(),
            "reused": len(self._records) - len(fresh),
            "unexpected": sum(bool(record.get("unexpected")) for record in self._records),
            "engine_s": sum(record["engine_s"] for record in self._records),
            "usage": _total(record.get("usage", {}) for record in self._records),
            "fresh_engine_s": sum(record["engine_s"] for record in fresh),
            "item_s": sum(record["wall_s"] for record in self._records),
            "wall_s": time.monotonic() - self._began_s,
            "cpu_s": time.process_time()
            + sum(r["cpu_s"] for r in fresh if r["pid"] != os.getpid()),
            "peak_memory_mb": {
                "driver": usage.ru_maxrss / 1024,
                "workers": sum(workers.values()),
            },
        }

    def _counts(self) -> dict[str, int]:
        """planned = observed + failed + not_applicable, over items or else over rows."""
        if self._records:
            inner = [(r["value"] or {}).get("status", r["status"]) for r in self._records]
        else:
            tables = [t for t in self._written.values() if "status" in t.columns]
            inner = [str(status) for t in tables[:1] for status in t["status"]]
        observed, failed = inner.count("ok"), inner.count("failed")
        return {
            "planned": len(inner),
            "observed": observed,
            "failed": failed,
            "not_applicable": len(inner) - observed - failed,
        }


def _result(record: Record, cached: bool) -> ItemResult:
    names = ("id", "status", "reason", "value", "engine_s", "wall_s")
    return ItemResult(**{name: record[name] for name in names}, cached=cached)


def _total(amounts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for amount in amounts:
        for name, value in amount.items():
            total[name] = total.get(name, 0.0) + value
    return total


def _check_ids(stage: str, work: list[dict[str, Any]]) -> None:
    ids = [item.get("id") for item in work]
    twice = repeated(map(str, ids))[:3]
    if None in ids or twice:
        raise ParamError(f"{stage}: every item needs its own id; missing or repeated: {twice}")


def _distinct(infos: list[dict[str, Any]]) -> list[dict[str, Any]]:
    seen = {receipts.digest(info): info for info in infos}
    return sorted(seen.values(), key=lambda info: (info["role"], info["name"]))


class _Progress:
    """Tells the pipeline how far a map is, through a small file, at most twice a second."""

    def __init__(self, stage: Stage, planned: int, done: int) -> None:
        self.path = stage.run.root / ".progress.json"
        self.state: dict[str, Any] = {
            "stage": stage.name, "planned": planned, "done": done, "failed": 0,
            "reused": done, "started": time.time(),
        }  # fmt: skip
        self.last = 0.0
        self._write()

    def advance(self, record: Record) -> None:
        self.state["done"] += 1
        self.state["failed"] += record["status"] == "failed"
        if time.monotonic() - self.last > 0.5:
            self._write()

    def close(self) -> None:
        self._write()

    def _write(self) -> None:
        self.last = time.monotonic()
        self.path.write_text(json.dumps(self.state))


def open_stage(name: str, namespace: Mapping[str, Any]) -> Stage:
    """Bind the running notebook to its run.

    Parameters
    ----------
    name
        The notebook's name in ``pipeline.STAGES``.
    namespace
        Its ``globals()``: the effective parameters are taken from there.

    Raises
    ------
    ParamError
        Unknown notebook, or a parameter is unknown, missing or mistyped.
    RunLocked
        Another process works on the run.
    """
    notebooks = find_notebooks()
    if name not in STAGES or name not in notebooks:
        raise ParamError(f"{name}: no such notebook; known: {', '.join(notebooks)}")
    declared = read_declarations(notebooks[name])
    _check_injected(name, namespace.get("In", ()), set(declared))
    parameters = {}
    for key, declaration in declared.items():
        if key not in namespace:
            raise ParamError(f"{name}: parameter {key} is not set; run the parameters cell first")
        check_value(f"{name}.{key}", declaration.annotation, namespace[key])
        parameters[key] = namespace[key]
    run = open_run(str(parameters.get("run_name", "demo")), create=True)
    _lock(run)
    return Stage(STAGES[name], run, parameters, notebooks[name])


def _check_injected(name: str, sources: Sequence[str], declared: set[str]) -> None:
    """Refuse what papermill injected and the notebook does not declare."""
    for source in sources:
        if not source.startswith("# Parameters\n"):
            continue
        given = {line.split("=")[0].strip() for line in source.splitlines()[1:] if " = " in line}
        unknown = sorted(given - declared)
        if unknown:
            raise ParamError(f"{name}: unknown parameters {unknown}; declared: {sorted(declared)}")


def lock_path(run: Run) -> Path:
    return run.root / ".lock"


def _lock(run: Run) -> None:
    """Lock the run folder for this process.

    Below ``aegis run``, which holds the folder's lock, the notebook takes a second one,
    so that a kernel left over from a killed run and a new one never write together.
    """
    path, wait_s = lock_path(run), 0.0
    if os.environ.get("AEGIS_LOCKED") == str(path):
        path, wait_s = path.with_name(".stage.lock"), 30.0
    if path in _locks:
        return
    lock = filelock.FileLock(path)
    try:
        lock.acquire(timeout=wait_s)
    except filelock.Timeout as error:
        raise RunLocked(f"run {run.root.name!r}: another process is working on it") from error
    _locks[path] = lock


def _unlock(run: Run) -> None:
    for path in [path for path in _locks if path.parent == run.root]:
        _locks.pop(path).release()
