"""The command line: ``aegis run params/demo.yaml`` and what belongs to it.

Errors that the package raises on purpose are one line on stderr and exit code 1.
Modules are imported inside the commands, so that help and completion are quick.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aegis.errors import AegisError, EngineUnavailable, ParamError, TableError

if TYPE_CHECKING:
    import pandas as pd

    from aegis.pipeline import StageOutcome
    from aegis.store import Moved
    from aegis.tables import Run

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="De-identify long clinical conversations, and measure what was kept and what leaked.",
)

RunName = Annotated[
    str | None, typer.Option("--run", help="Name of the run; default: the newest one.")
]
ParamsPath = Annotated[Path, typer.Argument(help="Profile, e.g. params/demo.yaml.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("-p", "--param", metavar="NOTEBOOK.NAME=VALUE", help="Change one parameter."),
]


def _command(function: Callable[..., None]) -> Callable[..., None]:
    """Register a command; its AegisError becomes one line and exit code 1."""
    return _command_of(app)(function)


def _command_of(parent: typer.Typer) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return lambda function: parent.command()(_guarded(function))


def _guarded(function: Callable[..., None]) -> Callable[..., None]:
    @wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> None:
        try:
            function(*args, **kwargs)
        except AegisError as error:
            typer.echo(f"aegis: {' '.join(str(error).split())}", err=True)
            raise typer.Exit(1) from None
        except OSError as error:
            # What a user can mend; the path may be a name and is not repeated.
            if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC):
                raise
            typer.echo(f"aegis: {error.strerror}: a file of the run or its output", err=True)
            raise typer.Exit(1) from None
        except KeyboardInterrupt:
            typer.echo("aegis: stopped; finished items are kept, run again to go on", err=True)
            raise typer.Exit(130) from None

    return guarded


@_command
def run(
    params: ParamsPath,
    run: Annotated[str | None, typer.Option("--run", help="Default: the file's stem.")] = None,
    only: Annotated[str | None, typer.Option(help="Run this stage alone, e.g. 03.")] = None,
    start: Annotated[str | None, typer.Option("--from", help="Start at this stage.")] = None,
    force: Annotated[bool, typer.Option(help="Run even what is up to date.")] = False,
    param: Overrides = None,
    cluster: Annotated[
        str | None, typer.Option(help="A running Dask scheduler, tcp://host:port.")
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Default: one a core.")] = None,
    turns: Annotated[
        Path | None,
        typer.Option(help="RTTM, TextGrid, SRT or WebVTT: a file, or a folder of them."),
    ] = None,
) -> None:
    """Run the stages of a profile that are not up to date."""
    from aegis import pipeline

    if only and start:
        raise ParamError("--only and --from exclude each other")
    given = [f"01_transcribe.given_turns={turns.resolve()}"] if turns else []
    study = pipeline.load_study(params, [*given, *(param or [])])
    outcomes = pipeline.run_study(study, run, only, start, force, cluster, workers)
    _summarise(outcomes)


@_command
def sweep(
    params: ParamsPath,
    axes: Annotated[
        list[str],
        typer.Argument(metavar="NOTEBOOK.NAME=V1,V2 ...", help="Parameters and their values."),
    ],
    run: Annotated[str | None, typer.Option("--run", help="Default: the file's stem.")] = None,
    until: Annotated[str, typer.Option(help="Last stage of each setting.")] = "13_contrasts",
    param: Overrides = None,
    cluster: Annotated[
        str | None, typer.Option(help="A running Dask scheduler, tcp://host:port.")
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Default: one a core.")] = None,
) -> None:
    """Run a finished run's stages again over a grid of parameters, only what they reach."""
    from aegis import pipeline
    from aegis.sweep import parse_axes, run_grid
    from aegis.tables import open_run

    study = pipeline.load_study(params, param or [])
    parent = open_run(run or study.run_name)
    with pipeline.locked(parent):
        table, folder = run_grid(
            parent, study, parse_axes(axes), until, cluster, workers, typer.echo
        )
    typer.echo(
        f"{table['setting'].nunique()} settings, {len(table)} rows: {folder / 'results.csv'}"
    )


def _summarise(outcomes: list[StageOutcome]) -> None:
    names = ("planned", "observed", "failed", "not_applicable")
    executed = [outcome for outcome in outcomes if outcome.executed]
    if not executed:
        typer.echo(f"All {len(outcomes)} stages are up to date.")
        return
    rows = [
        [o.stage, "run" if o.executed else "up to date", f"{o.wall_s:.1f}"]
        + [str(o.counts.get(name, 0)) for name in names]
        for o in outcomes
    ]
    total_s = sum(outcome.wall_s for outcome in executed)
    rows.append(["all", f"{len(executed)} run", f"{total_s:.1f}", *[""] * len(names)])
    typer.echo(_aligned([["stage", "state", "wall_s", *names], *rows]))


def _aligned(rows: list[list[str]]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        first, *others = [
            cell.ljust(width) if i < 2 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join([first, *others]).rstrip())
    return "\n".join(lines)


@_command
def status(
    run: RunName = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Say for each stage whether it is up to date, and why not."""
    from aegis import pipeline

    opened = _open(run)
    stages = pipeline.status(pipeline.study_of(opened), opened)
    if as_json:
        content = {"run": opened.root.name, "stages": stages}
        typer.echo(json.dumps(content, indent=1, ensure_ascii=False))
        return
    typer.echo(f"run {opened.root.name}")
    for name, reasons in stages.items():
        more = f" and {len(reasons) - 5} more" if len(reasons) > 5 else ""
        typer.echo(f"  {name:<18} {'; '.join(reasons[:5]) or 'up to date'}{more}")


@_command
def table(
    name: str,
    run: RunName = None,
    format: Annotated[str, typer.Option(help="csv, json or md.")] = "md",
    secret: Annotated[bool, typer.Option(help="Allow a secret table.")] = False,
) -> None:
    """Print a table of a run."""
    from aegis.tables import SCHEMAS

    if format not in ("csv", "json", "md"):
        raise ParamError(f"--format {format}: expected csv, json or md")
    opened = _open(run)
    path = opened.table_path(name)  # also refuses an unknown name
    if SCHEMAS[name].visibility == "secret" and not secret:
        raise TableError(f"{name} is secret: it can re-identify people; --secret prints it")
    if not path.exists():
        raise TableError(f"{name}: not in run {opened.root.name}; run the stage that owns it")
    typer.echo(_formatted(opened.read(name), format), nl=False)


def _formatted(frame: pd.DataFrame, format: str) -> str:
    if format == "csv":
        return str(frame.to_csv(index=False))
    if format == "json":
        return f"{frame.to_json(orient='records', indent=1, force_ascii=False)}\n"
    cells = [[str(c) for c in frame.columns], ["---"] * len(frame.columns)]
    for row in frame.itertuples(index=False):
        cells.append([_cell(value) for value in row])
    return "".join(f"| {' | '.join(row)} |\n" for row in cells)


def _cell(value: Any) -> str:
    if value is None or str(value) in ("<NA>", "nan"):
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value).replace("|", "\\|").replace("\n", " ")


@_command
def export(
    format: Annotated[str, typer.Argument(help="rttm, textgrid, webvtt, stm or lhotse.")],
    output: Annotated[Path, typer.Argument(help="Folder to write to.")],
    run: RunName = None,
    condition: Annotated[str, typer.Option(help="original, converted, renderer_a, ...")] = (
        "original"
    ),
    secret: Annotated[bool, typer.Option(help="Allow a format that holds words.")] = False,
) -> None:
    """Write the turns of a run for other tools."""
    from aegis.exports import export_turns

    written = export_turns(_open(run), format, output, condition, secret)
    typer.echo(f"{len(written)} files in {output}")


@_command
def verify(run: RunName = None) -> None:
    """Check a run: fates of everything scheduled, durations, hashes, failures."""
    from aegis.checks import verify_run
    from aegis.explain import failure_registry

    opened = _open(run)
    problems, failures = verify_run(opened), failure_registry(opened)
    for line in problems:
        typer.echo(f"problem: {line}")
    if len(failures):
        typer.echo(_formatted(failures, "md"), nl=False)
    typer.echo(
        f"run {opened.root.name}: {len(problems)} problems,"
        f" {int(failures['rows'].sum())} rows that are not ok (registered, not problems)"
    )
    if problems:
        raise typer.Exit(1)


@_command
def profile(
    run: RunName = None,
    format: Annotated[str, typer.Option(help="csv, json or md.")] = "md",
) -> None:
    """Time, processor, memory and tokens of each stage, from the receipts."""
    from aegis import ledger

    if format not in ("csv", "json", "md"):
        raise ParamError(f"--format {format}: expected csv, json or md")
    typer.echo(_formatted(ledger.profile(_open(run)), format), nl=False)


@_command
def release(
    run: Annotated[str, typer.Argument(help="Name of the run.")],
    out: Annotated[Path, typer.Option(help="Folder for the archive and its datasheet.")],
    with_audio: Annotated[bool, typer.Option(help="Add de-identified sound.")] = False,
    condition: Annotated[
        list[str] | None, typer.Option(help="Only this condition; may be repeated.")
    ] = None,
    card: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="Card of your own recordings.")
    ] = None,
    accept: Annotated[
        str | None, typer.Option(metavar="REASON", help="Release in spite of the findings.")
    ] = None,
) -> None:
    """Pack a run's evidence, and with --with-audio its de-identified sound."""
    from aegis.pipeline import locked
    from aegis.release import RELEASABLE, build_release, find_blockers

    opened, conditions = _open(run), tuple(condition or RELEASABLE)
    with locked(opened):
        for blocker in find_blockers(opened, conditions):
            typer.echo(str(blocker))
        archive = build_release(opened, out, conditions, with_audio, accept, card)
    typer.echo(f"released: {archive}")


@_command
def push(
    run: Annotated[str, typer.Argument(help="Name of the run.")],
    url: Annotated[str, typer.Argument(help="Where to: file://, s3://, gs://, az://, ...")],
    with_secret: Annotated[
        bool, typer.Option("--with-secret", help="Originals, voices and all sound go along.")
    ] = False,
) -> None:
    """Bring a store to the state of a run; only contents that are not there are sent."""
    from aegis.pipeline import locked
    from aegis.store import push as push_run
    from aegis.tables import open_run

    opened = open_run(run)
    with locked(opened):
        moved = push_run(opened, url, with_secret)
    typer.echo(f"pushed {_told(moved)}")


@_command
def pull(
    url: Annotated[str, typer.Argument(help="Where `aegis push` brought it.")],
    run: Annotated[str, typer.Argument(help="Name of the run here.")],
    replace: Annotated[
        bool, typer.Option("--replace", help="Overwrite and remove what differs here.")
    ] = False,
) -> None:
    """Bring a run to the state of a store; only files that differ are fetched."""
    from aegis.pipeline import locked
    from aegis.store import pull as pull_run
    from aegis.tables import open_run

    opened = open_run(run, create=True)
    with locked(opened):
        moved = pull_run(url, opened, replace)
    typer.echo(f"pulled {_told(moved)}")


def _told(moved: Moved) -> str:
    return (
        f"{moved.n_files} files: {moved.n_copied} copied"
        f" ({moved.n_bytes / 1e6:.1f} MB), {moved.n_removed} removed"
    )


@_command
def render(
    run: RunName = None,
    output: Annotated[Path | None, typer.Option(help="Default: _site.")] = None,
    with_originals: Annotated[
        bool,
        typer.Option(
            "--with-originals",
            help="Show originals of corpora whose card says public or synthetic.",
        ),
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Build nothing; fail unless the site shows this run.")
    ] = False,
) -> None:
    """Build the site from the executed notebooks."""
    from aegis.site import render as render_site
    from aegis.site import site_is_current
    from aegis.site_checks import SiteError
    from aegis.tables import PROJECT

    opened = _open(run)
    if check:
        if not site_is_current(output or PROJECT / "_site", opened):
            raise SiteError(f"the site does not show run {opened.root.name} as it is now")
        typer.echo(f"the site shows run {opened.root.name} as it is now")
        return
    site = render_site(opened.root.name, output, with_originals)
    typer.echo(f"{site.n_pages} pages by {site.renderer}: {site.index}")


@_command
def fetch(
    what: Annotated[
        str | None,
        typer.Argument(help="A profile (its weights), or a corpus such as primock57 or asq-phi."),
    ] = None,
    source: Annotated[
        Path | None, typer.Option("--from", help="Take a corpus from a copy in this folder.")
    ] = None,
    model: Annotated[list[str] | None, typer.Option(help="Weights of this card only.")] = None,
) -> None:
    """Bring model weights, or a published corpus, to this machine and check every hash."""
    from aegis import pipeline, weights
    from aegis.doctor import cards_of

    if what is not None and not what.endswith(".yaml"):
        _fetch_corpus(what.replace("-", "_"), source)
        return
    names: list[str] | None = list(model) if model else None
    if what is not None:
        needed = cards_of(pipeline.load_study(Path(what)))
        names = names or [*needed, *weights.carried()]
    failed = 0
    for name in dict.fromkeys(weights.carried() if names is None else names):
        try:
            (fetched,) = weights.fetch([name])
            typer.echo(f"{fetched.name}: {fetched.origin}")
        except EngineUnavailable as error:
            failed += 1
            typer.echo(f"{name}: {error}", err=True)
    if failed:
        raise typer.Exit(1)


def _fetch_corpus(name: str, source: Path | None) -> None:
    from aegis import corpora
    from aegis.manifests import read_card

    card = read_card(name)
    if source is not None:
        typer.echo(f"{name}: {corpora.take_copy(name, source)} files linked")
    else:
        for path, problem in corpora.fetch_corpus(name).items():
            typer.echo(f"{path}: {problem}", err=True)
    fates = corpora.verify_corpus(name)
    counted = fates.groupby(["status", fates["reason"].fillna("")]).size()
    for (status, reason), n in counted.items():
        typer.echo(f"{n} records {status} {reason}".rstrip())
    typer.echo(f"licence {card.licence}, revision {card.revision}")
    if (fates["status"] == "ok").sum() < len(corpora.records(name)):
        raise typer.Exit(1)
    for key, found in corpora.count_corpus(name).items():
        typer.echo(f"{key}: {found} (card: {card.counts.get(key, 'not stated')})")


Folder = Annotated[Path | None, typer.Option(exists=True, file_okay=False)]
File = Annotated[Path | None, typer.Option(exists=True, dir_okay=False)]


@_command
def leakage(
    out: Annotated[Path, typer.Option(help="Where report.html and the CSV files go.")],
    original: Folder = None,
    anonymised: Folder = None,
    anonymised2: Folder = None,
    meta: File = None,
    embeddings: File = None,
    trials: File = None,
    name: Annotated[str, typer.Option(help="The system's name in the report.")] = "anonymised",
    backends: Annotated[str, typer.Option(help="Encoders, by commas.")] = "ge2e,dvector",
    asr: Annotated[
        str, typer.Option(help="ASR systems by commas, or none; used where META has texts.")
    ] = "whisper-base,whisper-tiny.en",
    rates_hz: Annotated[str, typer.Option(help="Sampling rates attacked.")] = "16000,8000",
    lengths_s: Annotated[
        str, typer.Option(help="Segment lengths; 0 is the whole file.")
    ] = "0,10,30,60",
    n_draws: Annotated[int, typer.Option(min=10, help="Resamples of an interval.")] = 2000,
    n_trials: Annotated[int, typer.Option(min=100, help="Trials of a membership game.")] = 20_000,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
    finetune: Annotated[
        str, typer.Option(help="Also attack with ecapa or xvector trained on this folder.")
    ] = "",
) -> None:
    """Measure what leaks from recordings that any system anonymised.

    META.csv needs the columns path and speaker; sex, age, accent, language, session,
    pseudo_profile, text and test_set are used where given. Kaldi data folders need no META.
    A second call goes on where the first one stopped.
    """
    from aegis.leakage_report import Options, run_report
    from aegis.leakage_tables import Settings

    try:
        lengths, rates = ([int(v) for v in text.split(",")] for text in (lengths_s, rates_hz))
    except ValueError as error:
        raise ParamError(f"--lengths-s and --rates-hz take whole numbers ({error})") from None
    options = Options(
        out, original, anonymised, anonymised2, meta, embeddings, trials, name,
        tuple(backends.split(",")), () if asr == "none" else tuple(asr.split(",")),
        tuple(rates), tuple(lengths), workers, finetune,
        Settings(n_draws=n_draws, n_draws_soft=min(1000, n_draws), n_trials=n_trials),
    )  # fmt: skip
    page = run_report(options, lambda line: typer.echo(line, err=True))
    typer.echo(f"report: {page}")


@_command
def lab(
    run: RunName = None,
    accept: Annotated[
        str | None, typer.Option(help="Write the view of this notebook back to its source.")
    ] = None,
    no_open: Annotated[
        bool, typer.Option("--no-open", help="Make the views, do not start JupyterLab.")
    ] = False,
) -> None:
    """Open views of the notebooks in JupyterLab; the sources stay as they are."""
    import subprocess

    from aegis import lab as views
    from aegis.pipeline import find_stage
    from aegis.tables import PROJECT

    folder = PROJECT / "lab"
    if accept:
        name = find_stage(accept, list(views.lab_sources()))
        views.accept_view(folder, name)
        typer.echo(f"{name}: the source is what the view was")
        return
    states = views.write_views(folder, _parameters_of(run))
    for name, state in states.items():
        if state == "set aside":
            typer.echo(f"{name}: changed on both sides; your view is kept as {name}.mine-*.ipynb")
    if no_open:
        typer.echo(f"{len(states)} views in {folder.name}/")
        return
    command = [sys.executable, "-m", "jupyterlab", "--notebook-dir", str(folder)]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--allow-root")
    path = os.pathsep.join(filter(None, [str(PROJECT), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path}
    status = subprocess.call(command, cwd=PROJECT, env=environment)  # nosec B603 # no shell
    raise typer.Exit(status)


def _parameters_of(run: str | None) -> dict[str, dict[str, Any]]:
    """What the views of a named run set; without a name they hold the notebooks' defaults."""
    if run is None:
        return {}
    from aegis import pipeline
    from aegis.params import read_declarations

    opened = _open(run)
    study, given = pipeline.study_of(opened), {}
    for name, path in pipeline.find_notebooks().items():
        values = pipeline.effective_parameters(study, name, path, opened)
        declared = read_declarations(path)
        given[name] = {k: v for k, v in values.items() if v != declared[k].default}
    return given | {"explore": {"run_name": opened.root.name}}


@_command
def doctor(params: ParamsPath, param: Overrides = None) -> None:
    """Check all that a profile needs before anything runs."""
    from aegis import pipeline
    from aegis.doctor import examine

    findings = examine(pipeline.load_study(params, param or []))
    rows = [["state", "kind", "what", "found"]]
    for finding in findings:
        way_out = "" if finding.ok or not finding.way_out else f" -> {finding.way_out}"
        state = "OK" if finding.ok else "PROBLEM"
        rows.append([state, finding.kind, finding.subject, f"{finding.detail}{way_out}"])
    typer.echo(_left_aligned(rows))
    n = sum(not finding.ok for finding in findings)
    typer.echo(f"{len(findings)} looked at, {n} problems")
    if n:
        raise typer.Exit(1)


def _left_aligned(rows: list[list[str]]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    lines = [
        "  ".join([*(c.ljust(w) for c, w in zip(row, widths, strict=False)), row[-1]])
        for row in rows
    ]
    return "\n".join(lines)


engine_app = typer.Typer(no_args_is_help=True, help="Environments of the paper's engines.")
app.add_typer(engine_app, name="engine")
EngineName = Annotated[str, typer.Argument(help="f5, hear, nemo, seedvc or voicecraft.")]


@_command_of(engine_app)
def install(name: EngineName) -> None:
    """Make the environment of an engine whose pins conflict with this one's."""
    from aegis.engines import worker

    recipe = worker.read_recipe(name)
    typer.echo(f"{name}: licence {recipe.licence}")
    folder = worker.install(name)
    typer.echo(f"{name}: installed in {folder.name}; `aegis engine check {name}` looks at it")


@_command_of(engine_app)
def check(name: EngineName) -> None:
    """Start an engine's process: its packages import and its calls have the expected form."""
    from aegis.engines import worker

    for what, found in worker.check(name).items():
        typer.echo(f"{name}: {what} {found}")


@_command
def clean(
    run: RunName = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete a run with all that it holds."""
    import shutil

    from aegis.pipeline import locked

    opened = _open(run)
    if not yes:
        typer.confirm(f"Delete run {opened.root.name} ({opened.root})?", abort=True)
    with locked(opened):
        shutil.rmtree(opened.root)
    typer.echo(f"run {opened.root.name} is deleted")


panel = typer.Typer(no_args_is_help=True, help="A blinded listening panel: build it, read it.")
app.add_typer(panel, name="panel")


@_command_of(panel)
def build(
    run: RunName = None,
    reviewers: Annotated[int, typer.Option(min=1, help="One page each.")] = 5,
    items: Annotated[int, typer.Option(min=1, help="Items of each of both kinds.")] = 25,
    seed: Annotated[int, typer.Option(help="Of choice and order.")] = 20261005,
    beside: Annotated[bool, typer.Option("--beside", help="Sound in files, not inside.")] = False,
    force: Annotated[bool, typer.Option(help="Replace a panel and lose its key.")] = False,
) -> None:
    """Write one web page a reviewer; the key stays secret."""
    from aegis.panel import build_panel

    made = build_panel(_open(run), reviewers, items, seed, not beside, force)
    for (kind, condition), count in sorted(made.counts.items()):
        typer.echo(f"{kind}, {condition}: {count} items")
    typer.echo(f"{made.n_reviewers} pages in {made.folder}; who hears what is in secret/panel")


@_command_of(panel)
def read(
    files: Annotated[list[Path], typer.Argument(help="Files that the pages saved.")],
    run: RunName = None,
) -> None:
    """Check and merge saved answers; appendix O shows them after the next `aegis run`."""
    from aegis.panel import accept, describe, item_agreement

    ratings = accept(_open(run), files)
    typer.echo(_formatted(describe(ratings), "md"), nl=False)
    agreement = item_agreement(ratings).groupby("kind")["agreement"].mean().reset_index()
    typer.echo(_formatted(agreement, "md"), nl=False)
    answered = int((ratings["status"] == "ok").sum())
    typer.echo(f"{answered} of {len(ratings)} planned ratings are there")


def _open(name: str | None) -> Run:
    """The named run, or the one in which a stage ended last."""
    from aegis.pipeline import newest_run
    from aegis.tables import open_run

    return open_run(name or newest_run())


if __name__ == "__main__":
    app()
