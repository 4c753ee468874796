"""The command line: ``aegis run params/demo.yaml`` and what belongs to it.

Errors that the package raises on purpose are one line on stderr and exit code 1.
Modules are imported inside the commands, so that help and completion are quick.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aegis import cli_panel, cli_setup, cli_share
from aegis.command import (
    Overrides,
    ParamsPath,
    RunName,
    aligned,
    command_of,
    formatted,
    open_named,
)
from aegis.errors import ParamError, TableError

if TYPE_CHECKING:
    from aegis.pipeline import StageOutcome

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="De-identify long clinical conversations, and measure what was kept and what leaked.",
)


@command_of(app)
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


@command_of(app)
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
    typer.echo(aligned([["stage", "state", "wall_s", *names], *rows]))


@command_of(app)
def status(
    run: RunName = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Say for each stage whether it is up to date, and why not."""
    from aegis import pipeline

    opened = open_named(run)
    stages = pipeline.status(pipeline.study_of(opened), opened)
    if as_json:
        content = {"run": opened.root.name, "stages": stages}
        typer.echo(json.dumps(content, indent=1, ensure_ascii=False))
        return
    typer.echo(f"run {opened.root.name}")
    for name, reasons in stages.items():
        more = f" and {len(reasons) - 5} more" if len(reasons) > 5 else ""
        typer.echo(f"  {name:<18} {'; '.join(reasons[:5]) or 'up to date'}{more}")


@command_of(app)
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
    opened = open_named(run)
    path = opened.table_path(name)  # also refuses an unknown name
    if SCHEMAS[name].visibility == "secret" and not secret:
        raise TableError(f"{name} is secret: it can re-identify people; --secret prints it")
    if not path.exists():
        raise TableError(f"{name}: not in run {opened.root.name}; run the stage that owns it")
    typer.echo(formatted(opened.read(name), format), nl=False)


@command_of(app)
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

    written = export_turns(open_named(run), format, output, condition, secret)
    typer.echo(f"{len(written)} files in {output}")


@command_of(app)
def verify(run: RunName = None) -> None:
    """Check a run: fates of everything scheduled, durations, hashes, failures."""
    from aegis.checks import verify_run
    from aegis.explain import failure_registry

    opened = open_named(run)
    problems = verify_run(opened)
    for line in problems:
        typer.echo(f"problem: {line}")
    failures = failure_registry(opened)
    if len(failures):
        typer.echo(formatted(failures, "md"), nl=False)
    typer.echo(
        f"run {opened.root.name}: {len(problems)} problems,"
        f" {int(failures['rows'].sum())} rows that are not ok (registered, not problems)"
    )
    if problems:
        raise typer.Exit(1)


@command_of(app)
def profile(
    run: RunName = None,
    format: Annotated[str, typer.Option(help="csv, json or md.")] = "md",
) -> None:
    """Time, processor, memory and tokens of each stage, from the receipts."""
    from aegis import ledger

    if format not in ("csv", "json", "md"):
        raise ParamError(f"--format {format}: expected csv, json or md")
    typer.echo(formatted(ledger.profile(open_named(run)), format), nl=False)


Folder = Annotated[Path | None, typer.Option(exists=True, file_okay=False)]
File = Annotated[Path | None, typer.Option(exists=True, dir_okay=False)]


@command_of(app)
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


@command_of(app)
def clean(
    run: RunName = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete a run with all that it holds."""
    import shutil

    from aegis.pipeline import locked

    opened = open_named(run)
    if not yes:
        typer.confirm(f"Delete run {opened.root.name} ({opened.root})?", abort=True)
    with locked(opened):
        shutil.rmtree(opened.root)
    typer.echo(f"run {opened.root.name} is deleted")


app.add_typer(cli_share.app)
app.add_typer(cli_setup.app)
app.add_typer(cli_panel.panel, name="panel")

if __name__ == "__main__":
    app()
