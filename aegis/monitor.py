"""What a person sees while a study runs: stage, items, time left; and peak memory.

Progress bars on a terminal, plain lines elsewhere. The running notebook tells its
progress through ``.progress.json`` in the run folder. A stage that brings variants of the
run up to date is shown by what the notebook of the variant tells.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
from rich import progress
from rich.console import Console

from aegis.tables import Run


class Monitor:
    """Progress on the terminal (plain lines elsewhere) and peak memory, once every half second."""

    def __init__(self, run: Run, quiet: bool = False) -> None:
        self.path = run.root / ".progress.json"
        self.console = Console(stderr=True, quiet=quiet)
        self.peak_mb = 0.0
        self._stage, self._began = "", 0.0
        self._task: Any = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Monitor:
        self._bars = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TextColumn("{task.fields[failed]}"),
            progress.TimeElapsedColumn(),
            progress.TimeRemainingColumn(),
            console=self.console,
            disable=not self.console.is_terminal,
        )
        self._bars.start()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._bars.stop()
        self.path.unlink(missing_ok=True)

    def say(self, text: str) -> None:
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)

    def begin(self, stage: str, reasons: Sequence[str]) -> None:
        self.path.unlink(missing_ok=True)
        self._stage, self._began, self.peak_mb = stage, time.time(), 0.0
        more = f" and {len(reasons) - 3} more reasons" if len(reasons) > 3 else ""
        self.say(f"{stage}: {'; '.join(reasons[:3]) or 'forced'}{more}")
        self._task = self._bars.add_task(stage, total=None, failed="")

    def end(self, wall_s: float, counts: Mapping[str, int]) -> None:
        if self._task is not None:
            self._bars.remove_task(self._task)
        self._task = None
        self.say(
            f"{self._stage}: done in {wall_s:.1f} s, {counts.get('planned', 0)} planned,"
            f" {counts.get('failed', 0)} failed"
        )

    def _watch(self) -> None:
        shown_s = time.monotonic()
        while not self._stop.wait(0.5):
            self.peak_mb = max(self.peak_mb, _family_rss_mb())
            told = self._told()
            if told is None or self._task is None:
                continue
            label, state = told
            failed = f"{state['failed']} failed" if state["failed"] else ""
            self._bars.update(
                self._task, total=state["planned"], completed=state["done"], failed=failed,
                description=label,
            )  # fmt: skip
            if not self.console.is_terminal and time.monotonic() - shown_s > 30:
                shown_s = time.monotonic()
                self.say(f"{label}: {state['done']} of {state['planned']} {_eta(state)}")

    def _told(self) -> tuple[str, dict[str, Any]] | None:
        """Who told last, and what: the stage itself, or a variant that it runs."""
        variants = self.path.parent.glob(f"variants/*/*/*/{self.path.name}")
        newest = max([self.path, *variants], key=_changed)
        state = _read_progress(newest)
        if newest == self.path:
            return (self._stage, state) if state.get("stage") == self._stage else None
        if not state or _changed(newest) < self._began:
            return None
        return f"{self._stage}, {newest.parts[-3]}, {state['stage']}", state


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _read_progress(path: Path) -> dict[str, Any]:
    try:
        state: dict[str, Any] = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return {}
    return state


def _eta(state: Mapping[str, Any]) -> str:
    fresh = state["done"] - state["reused"]
    if fresh <= 0:
        return ""
    each_s = (time.time() - state["started"]) / fresh
    return f"(about {each_s * (state['planned'] - state['done']):.0f} s left)"


def _family_rss_mb() -> float:
    """Resident memory of this process and all below it; shared pages count in each."""
    total, here = 0, psutil.Process()
    for process in [here, *here.children(recursive=True)]:
        with suppress(psutil.Error):
            total += process.memory_info().rss
    return total / 2**20
