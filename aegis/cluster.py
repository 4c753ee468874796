"""How items are run: one function call an item, here or in Dask workers.

:func:`run_item` is what happens to one item wherever it runs. Its result is on
disk before anybody hears of it, so a killed run loses at most the items that were
being worked on.
"""

from __future__ import annotations

import ctypes
import errno
import gc
import hashlib
import importlib
import itertools
import json
import logging
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

import psutil

from aegis import engines
from aegis.audio import write_bytes
from aegis.errors import EngineUnavailable, ItemError, ParamError, StageFailed
from aegis.receipts import plain
from aegis.tables import Run

WorkFunction = Callable[[dict[str, Any], dict[str, Any], Run], dict[str, Any]]
Record = dict[str, Any]


def run_item(
    function: WorkFunction,
    item: dict[str, Any],
    settings: dict[str, Any],
    root: Path,
    record_path: Path,
) -> Record:
    """Run one item and save its record (mode 0600), unless the failure was unexpected.

    Raises
    ------
    EngineUnavailable, ParamError
        No item of the stage can run.
    StageFailed
        The disk is full.
    """
    run = Run(root)
    began, began_cpu = time.perf_counter(), time.process_time()
    unexpected = False
    value: dict[str, Any] | None = None
    reason: str | None = None
    with (
        engines.collect_engine_time() as engine_s,
        engines.collect_engines() as used,
        engines.collect_usage() as usage,
    ):
        try:
            value = function(dict(item), dict(settings), run)
        except ItemError as error:
            reason = f"{error}"
        except (EngineUnavailable, ParamError):
            raise
        except ImportError as error:
            raise EngineUnavailable(
                f"cannot import {error.name}: {error}; run scripts/setup_venv.sh"
            ) from error
        except Exception as error:  # noqa: BLE001 - one item must not end the batch
            stop_when_full(error, root)
            unexpected = True
            # The message may quote what was said, so it stays in the secret traceback.
            reason = f"unexpected: {type(error).__name__} at {_place(error)}"
            _keep_traceback(run, record_path)
    record = {
        "id": item["id"],
        "status": "ok" if reason is None else "failed",
        "reason": reason,
        "unexpected": unexpected,
        "value": value,
        "engine_s": sum(engine_s),
        "wall_s": time.perf_counter() - began,
        "cpu_s": time.process_time() - began_cpu,
        "engines": [asdict(info) for info in used],
        "usage": usage,
        "pid": os.getpid(),
        "rss_mb": psutil.Process().memory_info().rss / 2**20,
    }
    text = json.dumps(record, default=plain, ensure_ascii=False)
    if not unexpected:
        save_record(record_path, text, root)
    return json.loads(text)  # type: ignore[no-any-return]


def save_record(path: Path, text: str, root: Path) -> None:
    """Write a record for its owner's eyes only, under a line with its SHA-256."""
    try:
        write_bytes(path, f"{hashlib.sha256(text.encode()).hexdigest()}\n{text}".encode())
        path.chmod(0o600)
    except OSError as error:
        stop_when_full(error, root)
        raise


def load_record(path: Path) -> Record | None:
    """A saved record, or None when there is none or it is not what was saved."""
    try:
        digest, text = path.read_bytes().split(b"\n", 1)
    except (FileNotFoundError, ValueError):
        return None
    if hashlib.sha256(text).hexdigest().encode() != digest:
        return None
    record: Record = json.loads(text)
    return record


def damaged_records(run: Run, stage: str) -> list[Path]:
    """Saved items of a stage that are not what was saved."""
    saved = sorted((run.secret / "items" / stage).glob("*.json"))
    return [path for path in saved if load_record(path) is None]


def stop_when_full(error: BaseException, root: Path) -> None:
    """Raise StageFailed when an error says that the disk is full or takes nothing."""
    read_only = isinstance(error, OSError) and error.errno == errno.EROFS
    if read_only or "Read-only file system" in str(error):
        raise StageFailed(
            f"the disk that holds run {root.name} is read-only; make it writable and run again,"
            " finished items are kept"
        ) from error
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    if full or "No space left on device" in str(error):
        raise StageFailed(
            f"no space left on the disk that holds run {root.name}; free some and run again,"
            " finished items are kept"
        ) from error


def _place(error: BaseException) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(frame.filename).name}:{frame.lineno}"


def _keep_traceback(run: Run, record_path: Path) -> None:
    folder = run.secret / "failed" / record_path.parent.name
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{record_path.stem}.txt"
    path.write_text(traceback.format_exc(), "utf-8")
    path.chmod(0o600)


# --- Dask -------------------------------------------------------------------------------

ATTEMPTS = 3
"""How often an item is tried whose worker dies."""
_OUTSTANDING_PER_WORKER = 4
WORKER_ENVIRONMENT = dict.fromkeys(
    ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TORCH_NUM_THREADS"), "1"
) | {"MALLOC_MMAP_THRESHOLD_": str(4 << 20), "MALLOC_TRIM_THRESHOLD_": str(32 << 20)}
"""What a worker starts with: one thread, and a C library that gives large arrays back (by
default glibc keeps up to hundreds of MB of them after a long recording)."""
_current_stage = ""


@contextmanager
def local_cluster(workers: int, log: Path) -> Iterator[str]:
    """Start workers of one thread each on this machine; yields the scheduler's address.

    Two threads that fight over a core are slower than one, so the cores are used by
    workers. Engines stay resident in them. What libraries say on stderr goes to ``log``,
    which may quote what was said and therefore lies below ``secret/``.
    """
    import dask
    from distributed import LocalCluster

    environment = {**WORKER_ENVIRONMENT, "AEGIS_WORKER_LOG": str(log)}
    settings = {
        "distributed.scheduler.allowed-failures": ATTEMPTS - 1,
        # One task a worker: a dying worker then counts against the item that killed it only.
        "distributed.scheduler.worker-saturation": 1.0,
        "distributed.scheduler.work-stealing": False,
        "distributed.nanny.environ": environment,
        "distributed.nanny.pre-spawn-environ": environment,
        "distributed.admin.tick.limit": "1h",
    }
    with dask.config.set(settings):
        with _deaf_children():
            cluster = LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                memory_limit=0,
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.ERROR,
            )
        with cluster:
            yield str(cluster.scheduler_address)


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Threads and processes started inside take no Ctrl-C: who starts them ends them.

    A terminal sends it to all processes of a command, and every worker would answer with a
    traceback. Here it waits until the block is left.
    """
    resource_tracker.ensure_running()  # it would let signals through as it starts
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def map_items(
    address: str,
    stage: str,
    function: WorkFunction,
    work: Sequence[dict[str, Any]],
    settings: dict[str, Any],
    root: Path,
    record_paths: Sequence[Path],
    order: Sequence[int],
) -> Iterator[tuple[int, Record]]:
    """Run the items of ``order`` on a running scheduler; yields (index, record) as they end.

    At most four items a worker are handed out at a time. An item whose worker died
    three times becomes a failed record; it is not saved and tried again next time.

    Raises
    ------
    StageFailed
        The scheduler cannot be reached, is lost, or has no workers.
    """
    from distributed import Client, as_completed

    logging.getLogger("distributed").setLevel(logging.ERROR)
    client = _connect(Client, address)
    with client:
        # A worker that dies meanwhile is made up for; it must not end the stage.
        client.run(_begin_stage, stage, on_error="ignore")
        resources = _resources(client, settings)
        waiting, running = iter(order), {}
        ended = as_completed(loop=client.loop)

        def submit(index: int) -> None:
            future = client.submit(
                _run_named,
                (function.__module__, function.__name__),
                stage,
                work[index],
                settings,
                root,
                record_paths[index],
                pure=False,
                resources=resources,
            )
            running[future.key] = index
            ended.add(future)

        # There may be no worker for a moment, while one that died is replaced.
        n_workers = max(1, len(client.nthreads()))
        for index in itertools.islice(waiting, _OUTSTANDING_PER_WORKER * n_workers):
            submit(index)
        for future in ended:
            index = running.pop(future.key)
            yield index, _outcome(future, work[index])
            following = next(waiting, None)
            if following is not None:
                submit(following)


def _resources(client: Any, settings: dict[str, Any]) -> dict[str, float] | None:
    """``{"GPU": 1}`` for work on an engine that needs a card, where workers declare one.

    Workers declare it with ``dask worker --resources GPU=1``; work of other engines goes to
    any worker.
    """
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    declared = any(worker.get("resources", {}).get("GPU", 0) >= 1 for worker in workers)
    named = (value for value in settings.values() if isinstance(value, str))
    return {"GPU": 1} if declared and engines.wants_card(named) else None


def _connect(client_class: Any, address: str) -> Any:
    try:
        client = client_class(address, set_as_default=False, timeout=30)
    except (OSError, TimeoutError) as error:
        raise StageFailed(f"no Dask scheduler answers at {address}") from error
    try:
        client.wait_for_workers(1, timeout=60)
    except TimeoutError as error:
        client.close()
        raise StageFailed(f"the Dask scheduler at {address} has no workers") from error

    def can_import() -> bool:  # a local function travels as code, so it arrives anywhere
        import importlib.util

        return importlib.util.find_spec("aegis") is not None

    # A worker that dies meanwhile gives no answer.
    if not all(client.run(can_import, on_error="ignore").values()):
        client.close()
        raise StageFailed(f"workers of the Dask scheduler at {address} lack this package")
    return client


def _run_named(
    function: tuple[str, str],
    stage: str,
    item: dict[str, Any],
    settings: dict[str, Any],
    root: Path,
    record_path: Path,
) -> Record:
    """:func:`run_item` with a function by name.

    A function that a worker cannot import would end the worker's connection, not the item.
    """
    if not _current_stage:  # this worker took the place of one that died
        _begin_stage(stage)
    module, name = function
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise StageFailed(f"workers cannot import {module}.{name} ({error})") from error
    # A worker may have died after this item was done, and Dask asks for its result once more.
    return load_record(record_path) or run_item(found, item, settings, root, record_path)


def _begin_stage(stage: str) -> None:
    """In a worker: forget the engines of the stage before, so that memory stays bounded."""
    global _current_stage
    if stage == _current_stage:
        return
    log = os.environ.get("AEGIS_WORKER_LOG")
    if log and not _current_stage:
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(descriptor, 2)
        os.close(descriptor)
    _current_stage = stage
    engines.release()
    gc.collect()
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)


def _outcome(future: Any, item: dict[str, Any]) -> Record:
    from distributed.client import FutureCancelledError
    from distributed.scheduler import KilledWorker

    try:
        record: Record = future.result()
        return record
    except FutureCancelledError as error:
        lost = "the Dask scheduler was lost; run again, finished items are kept"
        raise StageFailed(lost) from error
    except KilledWorker as error:
        # A scheduler of somebody else's counts by its own setting, allowed-failures.
        deaths = getattr(error, "allowed_failures", ATTEMPTS - 1) + 1
    return {
        "id": item["id"],
        "status": "failed",
        "reason": f"unexpected: the worker died {deaths} times",
        "unexpected": True,
        "value": None,
        "engine_s": 0.0,
        "wall_s": 0.0,
        "cpu_s": 0.0,
        "engines": [],
        "usage": {},
        "pid": 0,
        "rss_mb": 0.0,
    }
