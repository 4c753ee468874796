"""Where an engine runs: a graphics card by default, the CPU only where that is asked for.

``AEGIS_DEVICE`` is ``cuda`` (the default of engines that need a card) or ``cpu``. The device
stands in the engine's info and so in every receipt; nothing moves to the CPU silently.
"""

from __future__ import annotations

import os

from aegis.errors import EngineUnavailable, ParamError


def choose_device(name: str, needs_card: bool) -> str:
    """``cuda`` or ``cpu``.

    Raises
    ------
    ParamError
        ``AEGIS_DEVICE`` is something else.
    EngineUnavailable
        A card is needed or asked for, and there is none.
    """
    import torch

    wanted = os.environ.get("AEGIS_DEVICE", "")
    if wanted not in ("", "cuda", "cpu"):
        raise ParamError(f"AEGIS_DEVICE={wanted}: expected cuda or cpu")
    there = torch.cuda.is_available()
    if wanted == "cpu" or (not wanted and not needs_card and not there):
        return "cpu"
    if not there:
        raise EngineUnavailable(
            f"{name}: no CUDA device; AEGIS_DEVICE=cpu runs it on the CPU, slowly"
        )
    return "cuda"
