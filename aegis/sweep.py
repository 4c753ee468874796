"""Variants of a run: the same study with some parameters changed.

Unit: one *setting*, a list of parameter values. Its variant is a run of its own below
the parent, ``runs/<run>/variants/<study>/<setting>/<run>``, which bears the parent's name
so that receipts hold in it. Files of the parent are shared by hard links; a stage that a
change reaches is run again, item by item, and only items that are new are computed. All
writing in this project replaces files, so a variant never changes its parent.

:func:`run_grid` is behind ``aegis sweep``; appendices D, M and N use :func:`run_variant`.

Functions: :func:`parse_axes`, :func:`grid`, :func:`variant_run`, :func:`share`,
:func:`run_variant`, :func:`run_grid`, :func:`plot_results`, :func:`computed_s`,
:func:`run_cost_s`.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from aegis import receipts
from aegis.audio import write_bytes
from aegis.cluster import load_record, local_cluster
from aegis.errors import ParamError, StageFailed
from aegis.execution import environment
from aegis.measures import read_measures
from aegis.params import StudyParams, Value, parse_override, read_declarations
from aegis.pipeline import (
    STAGES,
    find_notebooks,
    find_stage,
    load_study,
    n_cores,
    run_study,
    stage_order,
    study_of,
)
from aegis.tables import Run, content_id

LAST = "13_contrasts"
"""The last stage of a sweep unless another is named."""
_SHARED = ("tables", "receipts", "notebooks", "wav", "secret")
_OWN = frozenset({"workers.log", "study.json"})
"""What every run writes for itself, the log in place."""
_MARKS = "shared.json"

Mark = list[int]
"""Size and time of change of a file as it was shared."""


@dataclass(frozen=True)
class Axis:
    """One parameter and the values that it takes."""

    notebook: str
    name: str
    values: tuple[Value, ...]

    @property
    def label(self) -> str:
        return f"{self.notebook}.{self.name}"


@dataclass(frozen=True)
class Setting:
    """One point of a grid: its folder's name, and parameters as ``NOTEBOOK.NAME=VALUE``."""

    name: str
    overrides: tuple[str, ...]


@dataclass(frozen=True)
class Variant:
    """What one setting gave: its run, the stages executed and their wall time."""

    setting: Setting
    run: Run
    executed: tuple[str, ...]
    wall_s: float


def parse_axes(texts: Sequence[str]) -> list[Axis]:
    """Read ``NOTEBOOK.NAME=V1,V2``; a notebook may be named by its beginning.

    Values of a list parameter, or text that holds commas, are separated by ``;``.

    Raises
    ------
    ParamError
        The notebook or parameter is unknown, a value has another type, a value is given
        twice, or a parameter is named twice.
    """
    notebooks = find_notebooks()
    declared = {name: read_declarations(path) for name, path in notebooks.items()}
    axes = []
    for text in texts:
        target, equals, given = text.partition("=")
        section, dot, name = target.strip().rpartition(".")
        if not equals or not dot or not given.strip():
            raise ParamError(f"{text}: expected NOTEBOOK.NAME=VALUE,VALUE")
        stage = find_stage(section, list(notebooks))
        declaration = declared[stage].get(name)
        listed = declaration is not None and declaration.annotation.startswith("list")
        separator = ";" if listed or ";" in given else ","
        parts = [part.strip() for part in given.split(separator)]
        values = tuple(parse_override(f"{stage}.{name}={part}", declared)[2] for part in parts)
        if len({json.dumps(value) for value in values}) < len(values):
            raise ParamError(f"{text}: a value is given twice")
        axes.append(Axis(stage, name, values))
    labels = [axis.label for axis in axes]
    if not axes or len(set(labels)) < len(labels):
        raise ParamError("a sweep needs at least one parameter, each named once")
    return axes


def grid(axes: Sequence[Axis]) -> list[tuple[Setting, dict[str, Value]]]:
    """All combinations, the last axis fastest, with the value of each parameter."""
    points = []
    for values in itertools.product(*(axis.values for axis in axes)):
        chosen = {axis.label: value for axis, value in zip(axes, values, strict=True)}
        points.append((make_setting(chosen), chosen))
    return points


def make_setting(values: dict[str, Value], name: str | None = None) -> Setting:
    """A setting from ``{"03_assign_voices.k": 50}``; its name says the values."""
    overrides = tuple(f"{label}={_written(value)}" for label, value in values.items())
    said = "-".join(f"{label.rpartition('.')[2]}-{_written(v)}" for label, v in values.items())
    plain = re.sub(r"[^A-Za-z0-9.]+", "-", name or said).strip("-.")[:60]
    return Setting(f"{plain}-{content_id('', *overrides)[:6]}", overrides)


def _written(value: Value) -> str:
    return json.dumps(value) if isinstance(value, (list, bool)) else str(value)


def variant_run(parent: Run, study: str, setting: Setting) -> Run:
    """Where the variant of a setting lies; nothing is made."""
    return Run(parent.root / "variants" / study / setting.name / parent.root.name)


def share(parent: Run, variant: Run, stages: Sequence[str]) -> int:
    """Share the parent's files with a variant; returns how many were linked now.

    A file that the variant has written itself stays. One that it shares follows the parent.

    Parameters
    ----------
    stages
        Stages whose tables, receipts and pages the variant may hold; those of others are
        removed, since nothing in the variant would keep them true.

    Raises
    ------
    StageFailed
        What was shared before cannot be read.
    """
    variant.root.mkdir(parents=True, exist_ok=True)
    variant.secret.mkdir(mode=0o700, exist_ok=True)
    variant.secret.chmod(0o700)
    book = variant.root / _MARKS
    try:
        marks: dict[str, Mark] = json.loads(book.read_text()) if book.exists() else {}
    except ValueError as error:
        # Without it, what was shared cannot be told from what the variant wrote itself.
        raise StageFailed(
            f"{_MARKS} of {variant.root.name} cannot be read: delete this variant's folder"
            " and sweep again"
        ) from error
    foreign = _files_of(parent, set(STAGES) - set(stages))
    linked = 0
    for path in _shared_files(parent):
        name = parent.relative(path)
        if name in foreign:
            continue
        target, mark = variant.root / name, _mark(path)
        if target.exists() and (_mark(target) != marks.get(name) or marks.get(name) == mark):
            continue
        _link(path, target)
        marks[name] = mark
        linked += 1
    for name in foreign:
        (variant.root / name).unlink(missing_ok=True)
    write_bytes(book, json.dumps(marks).encode())
    return linked


def _shared_files(run: Run) -> Iterator[Path]:
    for folder in _SHARED:
        for base, _, names in os.walk(run.root / folder):
            own = (name for name in names if not name.startswith(".") and name not in _OWN)
            yield from (Path(base) / name for name in own)


def _files_of(run: Run, stages: set[str]) -> set[str]:
    """Tables, receipts and executed pages of stages, relative to the run."""
    files = {f"receipts/{name}.json" for name in stages}
    files |= {f"notebooks/{name}.ipynb" for name in stages}
    owned = {table for name in stages for table in STAGES[name].writes}
    return files | {run.relative(run.table_path(table)) for table in owned}


def _mark(path: Path) -> Mark:
    found = path.stat()
    return [found.st_size, found.st_mtime_ns]


def _link(path: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = target.with_name(f".{target.name}.part")
    scratch.unlink(missing_ok=True)
    try:
        os.link(path, scratch)
    except OSError:  # another disk, or a file system without links
        shutil.copy2(path, scratch)
    os.replace(scratch, target)


def run_variant(
    parent: Run,
    study: str,
    setting: Setting,
    until: str,
    start: str | None = None,
    params: StudyParams | None = None,
    scheduler: str | None = None,
    prepare: Callable[[Run], None] | None = None,
) -> Variant:
    """Bring the variant of a setting up to date.

    Parameters
    ----------
    study
        The folder below ``variants/``.
    until, start
        Last and first stage to look at; by default the first stage that the setting names.
        Earlier stages are taken from the parent as they are.
    params
        The profile that the setting's values go over; by default the one with which the
        parent was last started.
    scheduler
        Address of a Dask scheduler; by default the one of the stage that calls this.
    prepare
        Changes the variant's inputs before its first stage runs (a stressed recording).

    Raises
    ------
    StageFailed
        The parent lacks an earlier stage, or a stage failed.
    """
    params, notebooks = params or study_of(parent), find_notebooks()
    scheduler = scheduler or os.environ.get("AEGIS_SCHEDULER")
    order = stage_order(params, notebooks)
    named = [find_stage(text.partition(".")[0], order) for text in setting.overrides]
    first = find_stage(start, order) if start else min(named, key=order.index)
    last = order.index(find_stage(until, order))
    if order.index(first) > last:
        raise ParamError(f"{setting.name}: {first} comes after the last stage, {until}")
    for name in order[: order.index(first)]:
        if receipts.read_receipt(parent, name) is None:
            raise StageFailed(f"run {parent.root.name!r} lacks {name}; run the profile first")
    variant = variant_run(parent, study, setting)
    share(parent, variant, order[: last + 1])
    if prepare is not None:
        prepare(variant)
    changed = load_study(params.path, [*params.overrides, *setting.overrides])
    with environment(AEGIS_RUNS=str(variant.root.parent.resolve())):
        outcomes = run_study(
            changed, variant.root.name, start=first, until=until, scheduler=scheduler, quiet=True
        )
    executed = tuple(outcome.stage for outcome in outcomes if outcome.executed)
    return Variant(setting, variant, executed, sum(outcome.wall_s for outcome in outcomes))


def computed_s(parent: Run, variant: Run) -> float:
    """Processor seconds of the variant's own items, those of the parent left out."""
    known = _records(parent)
    return _processor_s(path for name, path in _records(variant).items() if name not in known)


def run_cost_s(run: Run) -> float:
    """Processor seconds of all items of the chapters, those of appendices left out."""
    return _processor_s(path for name, path in _records(run).items() if name[0].isdigit())


def _processor_s(paths: Iterable[Path]) -> float:
    return sum(float((load_record(path) or {}).get("cpu_s", 0.0)) for path in paths)


def _records(run: Run) -> dict[str, Path]:
    folder = run.secret / "items"
    return {path.relative_to(folder).as_posix(): path for path in folder.glob("*/*.json")}


def run_grid(
    parent: Run,
    params: StudyParams,
    axes: Sequence[Axis],
    until: str = LAST,
    scheduler: str | None = None,
    workers: int | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> tuple[pd.DataFrame, Path]:
    """Run every point of a grid; returns the tidy table and the folder of its files.

    The table has a row a setting, measure and condition: a column for each parameter,
    ``measure condition numerator denominator unknown value``, the stages executed and
    their wall time. It is saved as ``results.csv`` and drawn as ``results.svg`` below
    ``runs/<run>/sweeps/``.
    """
    points = grid(axes)
    study = content_id("-".join(axis.name for axis in axes)[:40] + "-", *map(str, axes), until)
    parts = []
    with ExitStack() as stack:
        if scheduler is None:
            log = parent.secret / "workers.log"
            scheduler = stack.enter_context(local_cluster(workers or n_cores(), log))
        for number, (setting, chosen) in enumerate(points, start=1):
            made = run_variant(parent, study, setting, until, None, params, scheduler)
            ran = ", ".join(made.executed) or "nothing"
            say(f"{number}/{len(points)} {setting.name}: {ran} run in {made.wall_s:.1f} s")
            parts.append(_rows(made, chosen))
    table = pd.concat(parts, ignore_index=True)
    folder = parent.root / "sweeps" / study
    write_bytes(folder / "results.csv", table.to_csv(index=False).encode())
    plot_results(table, [axis.label for axis in axes], folder / "results.svg")
    return table, folder


def _rows(made: Variant, chosen: dict[str, Value]) -> pd.DataFrame:
    table = read_measures(made.run)
    for place, (label, value) in enumerate(chosen.items()):
        column = _written(value) if isinstance(value, list) else value
        table.insert(place, label, [column] * len(table))
    table.insert(0, "setting", made.setting.name)
    return table.assign(executed=" ".join(made.executed), wall_s=round(made.wall_s, 2))


def plot_results(table: pd.DataFrame, labels: Sequence[str], path: Path) -> None:
    """One panel a measure that differs between settings, over the first parameter."""
    import matplotlib.pyplot as plt
    import seaborn as sns

    shown = table.dropna(subset="value")
    spread = shown.groupby(["measure", "condition"])["value"].transform("nunique")
    shown = shown[spread > 1] if (spread > 1).any() else shown
    path.parent.mkdir(parents=True, exist_ok=True)
    if shown.empty:
        figure = plt.figure()
        figure.text(0.1, 0.5, "no measure is known at these settings")
    else:
        others = shown[list(labels[1:])].astype(str).agg(", ".join, axis=1) if labels[1:] else ""
        shown = shown.assign(**{"other parameters": others})
        plot = sns.relplot(
            shown, x=labels[0], y="value", hue="condition", col="measure", col_wrap=3,
            style="other parameters" if labels[1:] else None, kind="line", marker="o",
            height=2.8, facet_kws={"sharey": False}, errorbar=None,
        )  # fmt: skip
        plot.set_titles("{col_name}")
        figure = plot.figure
    figure.savefig(path)
    plt.close(figure)
