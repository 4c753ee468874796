"""``docs/faults.md`` from what the fault suite and the kill trials wrote.

export AEGIS_FAULTS=tests/data/faults/suite.csv
.venv/bin/python -m pytest tests/test_faults.py tests/test_chat.py
.venv/bin/python tests/kill_trials.py --trials 20 --out tests/data/faults/kill_trials.csv
.venv/bin/python tests/fault_page.py
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

FOLDER = Path(__file__).resolve().parent / "data" / "faults"
PAGE = Path(__file__).resolve().parent.parent / "docs" / "faults.md"

TEXT = """# Faults tried {{.unnumbered}}

This page is written by the test suite (`tests/fault_page.py`). Faults are injected into a study
of three notebooks that takes seconds and runs through the same runner, workers, receipts and
tables as the full one. *Survived* means: the fault was said plainly or cost its item only, the
next run went on with every finished item, and its tables are those of an undisturbed run.

## One fault at a time

{suite}
{tried} faults tried, {survived} survived.

## Processes killed at seeded moments

A scheduler and three workers on loopback; one process gets SIGKILL inside a stage, what died is
started again, and the study is run until it ends. *Lost* and *twice* count table rows against an
undisturbed run.

{kills}
{equal} of {trials} trials ended with equal tables; {lost} rows lost, {twice} rows twice. The
moments are in `tests/data/faults/kill_trials.csv`: stage, finished items at the kill, runs needed.

## Limits

A power cut is not tried: files are flushed before they are renamed, the folder entry is not.
Shared file systems that break the promise of an atomic rename are not tried either.
"""


def as_table(frame: pd.DataFrame) -> str:
    rows = [list(frame.columns), ["---"] * frame.shape[1], *frame.astype(str).to_numpy().tolist()]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def page() -> str:
    """The page's text."""
    suite = pd.read_csv(FOLDER / "suite.csv")
    trials = pd.read_csv(FOLDER / "kill_trials.csv")
    kills = trials.groupby(["victim", "stage"], as_index=False).agg(
        tried=("seed", "size"), survived=("equal", "sum"), lost=("lost", "sum"),
        twice=("twice", "sum"),
    )  # fmt: skip
    return TEXT.format(
        suite=as_table(suite), tried=suite["tried"].sum(), survived=suite["survived"].sum(),
        kills=as_table(kills), equal=trials["equal"].sum(), trials=len(trials),
        lost=trials["lost"].sum(), twice=trials["twice"].sum(),
    )  # fmt: skip


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
