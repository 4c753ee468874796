"""What a worker does to one item: ``function(item, settings, run) -> result``.

Unit of analysis: one item (a recording, a turn, an intention, ...). Item, settings and
result are JSON-able; sound is written below the run's folder and returned as a
relative path with its SHA-256 under ``"files"``. A typed refusal is an ``ItemError``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ItemResult:
    """What became of one item; ``value`` is None unless ``status`` is ``"ok"``."""

    id: str
    status: str
    reason: str | None
    value: dict[str, Any] | None
    engine_s: float
    wall_s: float
    cached: bool
