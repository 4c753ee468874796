"""One notebook executed: a kernel of its own, a receipt of this very execution, no paths.

Unit: one notebook of one run. The copy that is being executed lies among the secrets until
it has ended well; messages repeat nothing that a notebook may have read.

Functions: :func:`execute_notebook`, :func:`kernels`, :func:`environment`.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aegis import errors, receipts
from aegis.audio import write_bytes
from aegis.cluster import stop_when_full
from aegis.errors import StageFailed
from aegis.monitor import Monitor
from aegis.params import Value, read_declarations
from aegis.tables import PROJECT, Run

if TYPE_CHECKING:
    import papermill

_START_TIMEOUT_S = 300
"""How long a kernel may take to answer, on a machine that has other work."""


@contextmanager
def environment(**values: str) -> Iterator[None]:
    """Set environment variables for the kernels started inside the block."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def execute_notebook(
    run: Run,
    name: str,
    notebook: Path,
    values: Mapping[str, Value],
    scheduler: str,
    monitor: Monitor,
) -> None:
    """Run one notebook through papermill and require the receipt of this very execution.

    The copy being executed lies in ``secret/failed/``, since a traceback may quote anything,
    and moves to ``notebooks/`` in the end.

    Raises
    ------
    StageFailed
        An error in a cell, a dead kernel, or no receipt that carries this execution's token.
    """
    import jupytext
    import papermill

    _check_kernel()
    defaults = {key: item.default for key, item in read_declarations(notebook).items()}
    changed = {key: value for key, value in values.items() if value != defaults[key]}
    token, began = secrets.token_hex(16), time.perf_counter()
    failed = run.secret / "failed" / f"{name}.ipynb"
    failed.parent.mkdir(exist_ok=True)
    surroundings = {
        "AEGIS_SCHEDULER": scheduler,
        "AEGIS_TOKEN": token,
        "AEGIS_LOCKED": str(run.root / ".lock"),
        "AEGIS_RUNS": str(run.root.parent.resolve()),
        "JUPYTER_PREFER_ENV_PATH": "1",
    }
    # papermill's own check of parameters does not understand `str | None`; ours is in params.
    logging.getLogger("papermill").setLevel(logging.ERROR)
    problem = ""
    with environment(**surroundings), kernels() as manager_class:
        try:
            papermill.execute_notebook(
                jupytext.read(notebook),
                str(failed),
                parameters=changed,
                kernel_name="python3",
                language="python",
                cwd=str(PROJECT),
                progress_bar=False,
                start_timeout=_START_TIMEOUT_S,
                kernel_manager_class=manager_class,
                extra_arguments=["--IPKernelApp.log_level=CRITICAL"],
            )
        except papermill.PapermillExecutionError as error:
            stop_when_full(Exception(error.evalue), run.root)
            problem = _said(error)
        except RuntimeError as error:  # nbclient's DeadKernelError and start-up failures
            problem = f"the kernel died ({error})"
        except ValueError as error:  # jupyter_client: another kernel took over a port
            problem = f"the kernel's connection was disturbed ({type(error).__name__}), run again"
    receipt = receipts.read_receipt(run, name) or {}
    if not problem and receipt.get("token") != token:
        problem = "it ended without its receipt"
    _tidy(failed, values)
    if problem:
        where = failed.relative_to(run.root.parent).as_posix()
        raise StageFailed(f"{name}: {problem}; the executed copy is {where}")
    final = run.root / "notebooks" / failed.name
    final.parent.mkdir(exist_ok=True)
    os.replace(failed, final)
    receipt["notebook_sha256"] = receipts.file_sha256(final)
    receipt["executed"] = {
        "file": run.relative(final),
        "sha256": receipt["notebook_sha256"],
        "wall_s": time.perf_counter() - began,
        "peak_memory_mb": monitor.peak_mb,
    }
    receipts.write_receipt(run, receipt)


@contextmanager
def kernels() -> Iterator[type]:
    """A class of kernels behind socket files in a folder that no other kernel uses.

    A free port may be gone before a kernel binds it, and so may a file's name in a folder
    that several runs share. Kernels that were stopped while they started are ended here.
    """
    from jupyter_client.manager import AsyncKernelManager

    started: list[Any] = []
    with tempfile.TemporaryDirectory(prefix="aegis-") as sockets:

        class SocketKernelManager(AsyncKernelManager):  # type: ignore[misc]
            transport = "ipc"
            ip = os.path.join(sockets, "kernel")

            def __init__(self, **options: Any) -> None:
                super().__init__(**options)
                started.append(self)

        try:
            yield SocketKernelManager
        finally:
            for manager in started:
                process = getattr(manager.provisioner, "process", None)
                if process is not None and process.poll() is None:
                    process.kill()
                    process.wait()


def _said(error: papermill.PapermillExecutionError) -> str:
    """What ended a notebook. Only this package's own messages are known to quote no secret."""
    own = {cls.__name__ for cls in vars(errors).values() if isinstance(cls, type)}
    if error.ename in own:
        return f"{error.ename}: {error.evalue}"
    return f"{error.ename} in cell {error.exec_count}, its message is in the executed copy"


def _check_kernel() -> None:
    """Make sure that ``python3`` is this environment's kernel and no user's own."""
    from jupyter_client.kernelspec import KernelSpecManager

    program = KernelSpecManager().get_kernel_spec("python3").argv[0]
    here = Path(sys.executable).parent
    if os.path.isabs(program) and Path(program).parent != here:
        raise StageFailed(f"the kernelspec python3 starts {program}, not the Python of {here}")


def _tidy(notebook: Path, values: Mapping[str, Value]) -> None:
    """Take out of an executed notebook what tells of the machine or its users: paths."""
    if not notebook.exists():
        return
    content = json.loads(notebook.read_text("utf-8"))
    said = content["metadata"].get("papermill", {})
    kept = ("version", "start_time", "end_time", "duration")
    content["metadata"]["papermill"] = {key: said[key] for key in kept if key in said}
    text = json.dumps(content, indent=1, ensure_ascii=False)
    given = [
        v for value in values.values() for v in (value if isinstance(value, list) else [value])
    ]
    for value in given:
        if not isinstance(value, str) or len(value) < 2 or not receipts.is_private_path(value):
            continue
        for ascii_only in (True, False):
            inner = json.dumps(value, ensure_ascii=ascii_only)
            # A single name may be a word of the page, so only the parameter itself goes.
            inner = inner[1:-1] if "/" in value else inner
            named = json.dumps(inner, ensure_ascii=ascii_only)[1:-1]
            text = text.replace(named, "path withheld" if "/" in value else '\\"path withheld\\"')
    write_bytes(notebook, text.encode())
