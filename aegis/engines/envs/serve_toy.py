"""An engine that does nothing useful: for tests and for measuring the protocol itself."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import numpy as np
from serve import Refused, Unavailable


def check(options: dict[str, Any]) -> dict[str, Any]:
    return {"numpy": np.__version__}


def load(options: dict[str, Any]) -> dict[str, Any]:
    if options.get("unavailable"):
        raise Unavailable("no weights for the toy")
    return {"calls": 0, "options": options}


def handle(
    state: dict[str, Any], call: str, values: dict[str, Any], arrays: dict[str, np.ndarray]
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    state["calls"] += 1
    if call == "echo":
        return {"calls": state["calls"], **values}, arrays
    if call == "say":
        print(values["text"], flush=True)
        os.write(1, values["text"].encode())
        print(values["text"], file=sys.stderr, flush=True)
        return {}, {}
    if call == "refuse":
        raise Refused("unsupported: the toy does not like it")
    if call == "fail":
        raise ValueError(values["text"])
    if call == "die":
        flag = values.get("once")
        if flag is None or not os.path.exists(flag):
            if flag is not None:
                open(flag, "w").close()
            os._exit(9)
        return {"calls": state["calls"]}, {}
    if call == "sleep":
        time.sleep(values["seconds"])
        return {}, {}
    if call == "freeze":
        # Stopped as a whole, beats included, as by a driver that hangs.
        os.kill(os.getpid(), 19)
    raise ValueError(f"no call {call}")
