"""``docs/faults.md`` from what the fault suite and the kill trials wrote.

export AEGIS_FAULTS=tests/data/faults/suite.csv
.venv/bin/python -m pytest tests/test_faults.py tests/test_chat.py
.venv/bin/python tests/kill_trials.py --trials 20 --out tests/data/faults/kill_trials.csv
.venv/bin/python tests/kill_trials.py --trials 20 --out tests/data/faults/kill_trials_smoke.csv \\
    --params params/smoke.yaml --reference runs/smoke
.venv/bin/python tests/stage_faults.py --params params/smoke.yaml --reference runs/smoke \\
    --out tests/data/faults/stage_faults.csv
.venv/bin/python tests/loopback_study.py --params params/demo.yaml --reference runs/demo \\
    --out tests/data/faults/loopback.csv
.venv/bin/python tests/fault_page.py
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from stage_faults import AT_REST

FOLDER = Path(__file__).resolve().parent / "data" / "faults"
PAGE = Path(__file__).resolve().parent.parent / "docs" / "faults.md"

HASH = r"([0-9a-f]{12})[0-9a-f]{52}"
"""A SHA-256, of which twelve digits are enough on a page."""

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
{toy_sum} The
moments are in `tests/data/faults/kill_trials.csv`: stage, finished items at the kill, runs needed.

## The same with the engines

The smoke profile (two cut conversations, all embedded engines). A trial starts from an undisturbed
run in which the stage of the kill was never reached; what follows that stage is run as far as it
is not up to date.

{smoke}
{smoke_sum}

## Every stage of the same

Two trials a stage, each from a copy of the undisturbed run. *At rest*: one table, saved item,
sound and executed notebook of the stage are truncated, emptied, deleted or changed in one bit;
`aegis verify` must name each; then the receipt too; and one `aegis run` must make all whole. *In
flight*: the stage was never reached, and at a seeded moment of it one fault happens. Where it has
no items the moment is a share of its time, and where it takes less than a second its start. A
clock is set for what asks Python for the time of day. *Survived* asks for more than equal tables:
what failed was said in one line of the command's own, nothing was left running, and verify finds
nothing wrong.

{stages}
{stage_sum} What failed at first was mended
(`CHANGELOG.md`) and then tried again with the same seed; rows show the last outcome.

{kinds}
What was damaged, and the last line of each failed command, are in
`tests/data/faults/stage_faults.csv`. A saved item that is gone is not named: nothing reads it but
its own stage when that runs again, so it counts as named.

## The demo on three workers

The chapters of the demo study and the appendices below, from nothing on a scheduler and three
worker processes on loopback; their tables beside those of a run on the local cluster. *By worker*
are the items that each process did.

{loopback}
{loopback_sum}

## Limits

A power cut is not tried: files are flushed before they are renamed, the folder entry is not.
Shared file systems that break the promise of an atomic rename are not tried either.
"""


def as_table(frame: pd.DataFrame) -> str:
    shown = frame.astype(object).where(frame.notna(), "").astype(str)
    rows = [list(frame.columns), ["---"] * frame.shape[1], *shown.to_numpy().tolist()]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def summary(trials: pd.DataFrame) -> str:
    """How many trials ended as they should, in a sentence."""
    return (
        f"{trials['equal'].sum()} of {len(trials)} trials ended with equal tables;"
        f" {trials['lost'].sum()} rows lost, {trials['twice'].sum()} rows twice."
    )


def mark(survived: pd.Series) -> pd.Series:
    return survived.map({True: "yes", False: "no"})


def stage_table(trials: pd.DataFrame) -> pd.DataFrame:
    """Stage x (at rest, in flight)."""
    resting = trials["fault"] == AT_REST
    rest = trials[resting].set_index("stage")
    flight = trials[~resting].set_index("stage").reindex(rest.index)
    return pd.DataFrame({
        "stage": rest.index,
        "damage named": rest["named"].to_numpy(), "survived": mark(rest["survived"]).to_numpy(),
        "in flight": flight["fault"].to_numpy(), "moment": flight["moment"].to_numpy(),
        "commands": flight["commands"].map("{:.0f}".format, na_action="ignore").to_numpy(),
        "survived ": mark(flight["survived"]).to_numpy(),
    })  # fmt: skip


def page() -> str:
    """The page's text."""
    stages = pd.read_csv(FOLDER / "stage_faults.csv")
    faults = stages.groupby("fault", as_index=False).agg(
        tried=("seed", "size"), survived=("survived", "sum"), lost=("lost", "sum"),
        twice=("twice", "sum"),
    )  # fmt: skip
    suite = pd.read_csv(FOLDER / "suite.csv")
    trials = pd.read_csv(FOLDER / "kill_trials.csv")
    smoke = pd.read_csv(FOLDER / "kill_trials_smoke.csv")
    loopback = pd.read_csv(FOLDER / "loopback.csv").query("tables > 0")
    kills = trials.groupby(["victim", "stage"], as_index=False).agg(
        tried=("seed", "size"), survived=("equal", "sum"), lost=("lost", "sum"),
        twice=("twice", "sum"),
    )  # fmt: skip
    shown = pd.DataFrame({
        "victim": smoke["victim"], "stage": smoke["stage"],
        "items done": smoke["done_at_kill"].astype(str) + " of " + smoke["planned"].astype(str),
        "last one": smoke["item"].fillna("none").str.replace(HASH, r"\1", regex=True),
        "commands needed": smoke["runs"],
        "equal": smoke["equal"].map({True: "yes", False: "no"}), "lost": smoke["lost"],
        "twice": smoke["twice"],
    })  # fmt: skip
    return TEXT.format(
        suite=as_table(suite), tried=suite["tried"].sum(), survived=suite["survived"].sum(),
        kills=as_table(kills), toy_sum=summary(trials), smoke=as_table(shown),
        smoke_sum=summary(smoke), stages=as_table(stage_table(stages)), kinds=as_table(faults),
        stage_sum=f"{stages['survived'].sum()} of {len(stages)} trials survived;"
        f" {stages['lost'].sum()} rows lost, {stages['twice'].sum()} rows twice.",
        loopback=as_table(
            loopback.assign(equal=mark(loopback["equal"])).drop(columns="wall_s")
            .rename(columns={"by_worker": "by worker"})
        ),
        loopback_sum=f"{loopback['items'].sum()} items in {len(loopback)} stages,"
        f" {loopback['tables'].sum()} tables; {loopback['equal'].sum()} of {len(loopback)} stages"
        f" have equal ones; {loopback['lost'].sum()} rows lost, {loopback['twice'].sum()} twice.",
    )  # fmt: skip


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
