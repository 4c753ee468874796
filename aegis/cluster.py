"""How items are run: one function call an item, here or in Dask workers.

:func:`run_item` is what happens to one item wherever it runs. Its result is on
disk before anybody hears of it, so a killed run loses at most the items that were
being worked on.
"""

from __future__ import annotations

import errno
import json
import os
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict
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
    with engines.collect_engine_time() as engine_s, engines.collect_engines() as used:
        try:
            value = function(dict(item), dict(settings), run)
        except ItemError as error:
            reason = f"{error}"
        except (EngineUnavailable, ParamError):
            raise
        except Exception as error:  # noqa: BLE001 - one item must not end the batch
            _stop_when_full(error, root)
            unexpected = True
            # The message may quote what was said, so it stays in the secret traceback.
            reason = f"unexpected: {type(error).__name__} at {_place(error)}"
            _keep_traceback(run, record_path)
    record = {
        "id": item["id"],
        "status": "ok" if reason is None else "failed",
        "reason": reason,
        "value": value,
        "engine_s": sum(engine_s),
        "wall_s": time.perf_counter() - began,
        "cpu_s": time.process_time() - began_cpu,
        "engines": [asdict(info) for info in used],
        "pid": os.getpid(),
        "rss_mb": psutil.Process().memory_info().rss / 2**20,
    }
    text = json.dumps(record, default=plain, ensure_ascii=False)
    if not unexpected:
        save_record(record_path, text, root)
    return json.loads(text)  # type: ignore[no-any-return]


def save_record(path: Path, text: str, root: Path) -> None:
    """Write a record for its owner's eyes only."""
    try:
        write_bytes(path, text.encode())
        path.chmod(0o600)
    except OSError as error:
        _stop_when_full(error, root)
        raise


def _stop_when_full(error: BaseException, root: Path) -> None:
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
