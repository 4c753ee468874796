"""What the monitor shows is what was told last, by the stage or by a variant that it runs."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from aegis.monitor import Monitor
from aegis.tables import Run


def tell(folder: Path, stage: str, done: int, seconds_ago: float = 0.0) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    state = {"stage": stage, "planned": 9, "done": done, "failed": 0, "reused": 0, "started": 0}
    path = folder / ".progress.json"
    path.write_text(json.dumps(state))
    os.utime(path, (time.time() - seconds_ago,) * 2)


def test_the_stage_or_the_variant_that_told_last_is_shown(tmp_path: Path) -> None:
    run, variant = tmp_path / "demo", tmp_path / "demo/variants/D/k-50/demo"
    with Monitor(Run(run), quiet=True) as monitor:
        tell(variant, "04_convert", 1, seconds_ago=60)
        monitor.begin("D", ["forced"])
        assert monitor._told() is None  # left by an earlier run
        tell(run, "C", 9)
        assert monitor._told() is None  # the stage before
        tell(run, "D", 2, seconds_ago=-1)
        label, state = monitor._told() or ("", {})
        assert (label, state["done"]) == ("D", 2)
        tell(variant, "04_convert", 3, seconds_ago=-2)
        label, state = monitor._told() or ("", {})
        assert (label, state["done"]) == ("D, k-50, 04_convert", 3)
