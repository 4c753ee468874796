"""The process behind a resident engine: loads once, then answers requests over pipes.

Run by the interpreter of an engine's own environment as ``python serve.py NAME``; needs that
environment's numpy and nothing of this project. ``serve_NAME.py`` beside this file has
``load(options)``, ``handle(state, call, values, arrays)`` and ``check(options)``. A message is
a 4-byte length, a JSON header, and the bytes of its arrays in order. While a request is worked
on, beats are sent, so that the other side can tell slow from dead. Nothing that a library
prints reaches the channel: file descriptor 1 leads to nowhere.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import struct
import sys
import threading
import traceback
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

BEAT_S = 2.0


class Refused(Exception):
    """This item is not supported; the message says why and quotes nothing that was said."""


class Unavailable(Exception):
    """The engine cannot run here at all; the message says what is missing."""


def read_message(stream: BinaryIO) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
    """The next message, or None at the end of the stream."""
    head = stream.read(4)
    if len(head) < 4:
        return None
    header = json.loads(stream.read(struct.unpack("<I", head)[0]))
    arrays = {}
    for name, dtype, shape in header.pop("arrays"):
        n_bytes = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        arrays[name] = np.frombuffer(stream.read(n_bytes), dtype=dtype).reshape(shape)
    return header, arrays


def pack(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> list[bytes]:
    """A message as pieces of bytes."""
    whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    listed = [[name, array.dtype.str, list(array.shape)] for name, array in whole.items()]
    text = json.dumps({**header, "arrays": listed}).encode()
    return [struct.pack("<I", len(text)) + text, *(array.tobytes() for array in whole.values())]


class Channel:
    """Writes whole messages; beats come from another thread."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self._lock, self._busy = stream, threading.Lock(), threading.Event()
        threading.Thread(target=self._beat, daemon=True).start()

    def send(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        with self._lock:
            for piece in pack(header, arrays):
                self._stream.write(piece)
            self._stream.flush()

    @contextlib.contextmanager
    def working(self) -> Any:
        self._busy.set()
        try:
            yield
        finally:
            self._busy.clear()

    def _beat(self) -> None:
        pause = threading.Event()
        while True:
            self._busy.wait()
            pause.wait(BEAT_S)
            if self._busy.is_set():
                with contextlib.suppress(OSError, ValueError):
                    self.send({"beat": True}, {})


def answer(module: Any, state: dict[str, Any], request: dict[str, Any], arrays: Any) -> Any:
    """Work on one request; returns (header, arrays)."""
    call, values = request["call"], request["values"]
    try:
        if call == "load":
            state["engine"] = module.load(values)
            return {"ok": True, "value": {}}, {}
        if call == "check":
            return {"ok": True, "value": module.check(values)}, {}
        value, out = module.handle(state["engine"], call, values, arrays)
        return {"ok": True, "value": value}, out
    except Refused as error:
        return {"ok": False, "kind": "refused", "message": str(error)}, {}
    except Unavailable as error:
        return {"ok": False, "kind": "unavailable", "message": str(error)}, {}
    except ImportError as error:
        return {"ok": False, "kind": "unavailable", "message": f"cannot import {error.name}"}, {}
    except Exception as error:
        # What the error says may quote a transcript: only its type and place leave the process.
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{type(error).__name__} at {os.path.basename(frame.filename)}:{frame.lineno}"
        traceback.print_exc()
        return {"ok": False, "kind": "failed", "message": place}, {}


def main(name: str) -> None:
    """Serve until the other side closes its end."""
    channel = Channel(os.fdopen(os.dup(1), "wb"))
    requests = os.fdopen(os.dup(0), "rb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    # The functions of this file, for the module that imports it by name.
    sys.modules["serve"] = sys.modules["__main__"]
    module, state = importlib.import_module(f"serve_{name}"), {}
    while (message := read_message(requests)) is not None:
        request, arrays = message
        with channel.working():
            header, out = answer(module, state, request, arrays)
        channel.send({"id": request["id"], **header}, out)


if __name__ == "__main__":
    main(sys.argv[1])
