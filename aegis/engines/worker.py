"""Engines that need an environment of their own, as resident worker processes.

Unit: one request, arrays in and arrays out. Each engine is ``envs/serve_NAME.py``, run by the
interpreter of ``envs/NAME/`` (made by ``aegis engine install NAME`` from ``envs/NAME.txt``), so
that conflicting pins and GPL or non-commercial code stay outside this package. The process
loads its model once. A process that dies or falls silent is replaced and the request tried
once more; if that one is lost too, the item fails. After three items in a row the engine is
given up, so that the stage stops with its finished items kept.

``AEGIS_ENVS`` names another folder of environments, ``AEGIS_PYTHON_<NAME>`` an interpreter.

Classes and functions: :class:`Worker`, :func:`read_recipe`, :func:`install`, :func:`check`.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import struct
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aegis.errors import AegisError, EngineUnavailable, ItemError
from aegis.tables import PROJECT

Array = NDArray[Any]
Arrays = Mapping[str, Array]

ENVS = Path(__file__).resolve().parent / "envs"
ATTEMPTS = 2
"""Processes that may be lost on one item."""
MOST_LOST = 3
"""Items in a row that may be lost before the engine is given up."""
SILENCE_S = 60.0
"""A worker sends beats every two seconds; after this long without any it is dead."""
_PIPE_BYTES = 1 << 20


class _LostError(Exception):
    """The process died or fell silent."""


@dataclass(frozen=True)
class Recipe:
    """How an environment is made: ``NAME.txt`` with ``#:`` lines before pip's own lines."""

    name: str
    python: str
    clone: str
    commit: str
    licence: str
    packages: tuple[str, ...]


def environment_names() -> list[str]:
    """Environments that have a recipe."""
    return sorted(path.stem for path in ENVS.glob("*.txt"))


def read_recipe(name: str) -> Recipe:
    """Read ``envs/NAME.txt``.

    Raises
    ------
    EngineUnavailable
        There is none.
    """
    path = ENVS / f"{name}.txt"
    if not path.exists():
        known = ", ".join(environment_names())
        raise EngineUnavailable(f"no environment {name!r}; known: {known}")
    lines = path.read_text("utf-8").splitlines()
    said = dict(line[2:].strip().split(" ", 1) for line in lines if line.startswith("#:"))
    clone, _, commit = said.get("clone", "").partition(" ")
    packages = tuple(line for line in lines if line.strip() and not line.startswith("#"))
    return Recipe(name, said["python"], clone, commit, said["licence"], packages)


def environment_folder(name: str) -> Path:
    """Where an environment lies."""
    return Path(os.environ.get("AEGIS_ENVS", PROJECT / "envs")) / name


def find_python(name: str) -> Path | None:
    """The interpreter of an environment, None when it is not installed."""
    if given := os.environ.get(f"AEGIS_PYTHON_{name.upper().replace('-', '_')}"):
        return Path(given)
    path = environment_folder(name) / "bin" / "python"
    return path if path.exists() else None


Run = Callable[..., Any]


def install(name: str, run: Run = subprocess.run) -> Path:
    """Make an environment: a venv of its Python, its packages, and its code where cloned.

    Raises
    ------
    EngineUnavailable
        The Python version is not on this machine, or a step fails.
    """
    recipe, folder = read_recipe(name), environment_folder(name)
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    python = sys.executable if recipe.python == own else shutil.which(f"python{recipe.python}")
    if python is None:
        raise EngineUnavailable(
            f"{name}: needs python{recipe.python}; install it (conda, uv or pyenv), or set"
            f" AEGIS_PYTHON_{name.upper().replace('-', '_')} to an interpreter that has it all"
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    steps = [
        [python, "-m", "venv", str(folder)],
        [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", *recipe.packages],
    ]
    if recipe.clone:
        source = str(folder / "src")
        if not (folder / "src").exists():
            steps.append(["git", "clone", "--quiet", recipe.clone, source])
        steps.append(["git", "-C", source, "checkout", "--quiet", recipe.commit])
    for step in steps:
        done = run(step, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            said = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
            raise EngineUnavailable(f"{name}: {' '.join(step[:4])} failed: {said[-1][:300]}")
    return folder


def check(name: str, options: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Start an environment's process and let it look at its packages and signatures.

    Raises
    ------
    EngineUnavailable
        It is not installed, cannot import its packages, or a signature differs.
    """
    with Worker(name, options or {}, loads=False) as worker:
        value, _ = worker.call("check", dict(options or {}), {})
    return value


class Worker:
    """One resident process of an environment; restarted when it is lost.

    Parameters
    ----------
    name
        Environment, and module ``serve_NAME``.
    options
        Given to ``load``: weights, device. They must be plain values.
    loads
        False where only ``check`` is asked.
    """

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any],
        silence_s: float = SILENCE_S,
        loads: bool = True,
    ) -> None:
        self.name, self._options, self._loads = name, dict(options), loads
        self._silence_s = silence_s
        self._process: subprocess.Popen[bytes] | None = None
        self._finalizer: weakref.finalize[Any, Any] | None = None
        self._n_lost = self._n_calls = 0
        self.n_starts = 0

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def call(
        self, call: str, values: Mapping[str, Any], arrays: Arrays
    ) -> tuple[dict[str, Any], dict[str, Array]]:
        """One request.

        Raises
        ------
        ItemError
            ``unsupported: ...`` or ``failed: ...``: this item only.
        EngineUnavailable
            The environment or its weights are missing, or three items in a row were lost.
        """
        reason = ""
        for _ in range(ATTEMPTS):
            try:
                if self._process is None:
                    self._start()
                reply = self._ask(call, values, arrays)
            except _LostError as error:
                self.close()
                reason = str(error)
                continue
            self._n_lost = 0
            return _opened(self.name, *reply)
        self._n_lost += 1
        if self._n_lost >= MOST_LOST:
            raise EngineUnavailable(
                f"{self.name}: lost on {self._n_lost} items in a row, last: {reason}"
            )
        raise ItemError(f"failed: the engine process was lost {ATTEMPTS} times ({reason})")

    def close(self) -> None:
        """End the process."""
        if self._finalizer is not None:
            self._finalizer()
        self._process = self._finalizer = None

    def _start(self) -> None:
        python = find_python(self.name)
        if python is None:
            raise EngineUnavailable(
                f"{self.name}: no environment; run `aegis engine install {self.name}`"
            )
        folder = environment_folder(self.name)
        source = folder / "src"
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
        offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "PYTHONUNBUFFERED": "1"}
        log = os.environ.get("AEGIS_WORKER_LOG", os.devnull)
        with open(log, "ab") as errors:
            self._process = subprocess.Popen(  # nosec B603 # no shell
                [str(python), "-s", str(ENVS / "serve.py"), self.name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=source if source.is_dir() else None,
                env=environment | offline,
                bufsize=0,
            )
        self._finalizer = weakref.finalize(self, _stop, self._process)
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            os.set_blocking(stream.fileno(), False)
            if hasattr(fcntl, "F_SETPIPE_SZ"):
                fcntl.fcntl(stream, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        self.n_starts += 1
        if self._loads:
            _opened(self.name, *self._ask("load", self._options, {}))

    def _ask(
        self, call: str, values: Mapping[str, Any], arrays: Arrays
    ) -> tuple[dict[str, Any], dict[str, Array]]:
        self._n_calls += 1
        whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        listed = [[name, array.dtype.str, array.shape] for name, array in whole.items()]
        header = {"id": self._n_calls, "call": call, "values": dict(values), "arrays": listed}
        text = json.dumps(header).encode()
        self._write(struct.pack("<I", len(text)) + text)
        for array in whole.values():
            if array.size:
                self._write(array.view(np.uint8).reshape(-1).data)
        while True:
            (length,) = struct.unpack("<I", self._read(4))
            reply = json.loads(self._read(length))
            out = {n: self._read_array(dtype, shape) for n, dtype, shape in reply.pop("arrays")}
            if reply.get("id") == self._n_calls:
                return reply, out

    def _write(self, content: bytes | memoryview) -> None:
        assert self._process is not None and self._process.stdin is not None
        view, stream = memoryview(content), self._process.stdin.fileno()
        while view:
            if not select.select([], [stream], [], self._silence_s)[1]:
                raise _LostError(f"took nothing for {self._silence_s:g} s")
            try:
                view = view[os.write(stream, view) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise _LostError(self._ending()) from error

    def _read(self, n_bytes: int) -> bytearray:
        assert self._process is not None and self._process.stdout is not None
        content, stream = bytearray(n_bytes), self._process.stdout.fileno()
        view = memoryview(content)
        while view:
            if not select.select([stream], [], [], self._silence_s)[0]:
                raise _LostError(f"no sign of life for {self._silence_s:g} s")
            n = os.readv(stream, [view])
            if n == 0:
                raise _LostError(self._ending())
            view = view[n:]
        return content

    def _read_array(self, dtype: str, shape: Sequence[int]) -> Array:
        n_bytes = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        return np.frombuffer(self._read(n_bytes), dtype=dtype).reshape(shape)

    def _ending(self) -> str:
        assert self._process is not None
        try:
            code = self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return "it closed its end"
        return f"it ended by signal {-code}" if code < 0 else f"it ended with code {code}"


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Close the pipes, wait briefly, then kill; run once for a process."""
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
    deadline = time.monotonic() + 2.0
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    if process.poll() is None:
        process.kill()
    process.wait()


def _opened(
    name: str, reply: dict[str, Any], arrays: dict[str, Array]
) -> tuple[dict[str, Any], dict[str, Array]]:
    """The value of a reply, or the error that it is."""
    if reply["ok"]:
        value: dict[str, Any] = reply["value"]
        return value, arrays
    kind, message = reply["kind"], reply["message"]
    errors: dict[str, AegisError] = {
        "refused": ItemError(message),
        "failed": ItemError(f"failed: {name}: {message}"),
        "unavailable": EngineUnavailable(f"{name}: {message}"),
    }
    raise errors[kind]
