"""Commands that make a machine ready: ``fetch``, ``doctor``, ``lab``, ``engine``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from aegis.command import Overrides, ParamsPath, RunName, command_of, left_aligned, open_named
from aegis.errors import EngineUnavailable

app = typer.Typer()


@command_of(app)
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


@command_of(app)
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

    opened = open_named(run)
    study, given = pipeline.study_of(opened), {}
    for name, path in pipeline.find_notebooks().items():
        values = pipeline.effective_parameters(study, name, path, opened)
        declared = read_declarations(path)
        given[name] = {k: v for k, v in values.items() if v != declared[k].default}
    return given | {"explore": {"run_name": opened.root.name}}


@command_of(app)
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
    typer.echo(left_aligned(rows))
    n = sum(not finding.ok for finding in findings)
    typer.echo(f"{len(findings)} looked at, {n} problems")
    if n:
        raise typer.Exit(1)


engine_app = typer.Typer(no_args_is_help=True, help="Environments of the paper's engines.")
app.add_typer(engine_app, name="engine")
EngineName = Annotated[str, typer.Argument(help="f5, hear, nemo, seedvc or voicecraft.")]


@command_of(engine_app)
def install(name: EngineName) -> None:
    """Make the environment of an engine whose pins conflict with this one's."""
    from aegis.engines import worker

    recipe = worker.read_recipe(name)
    typer.echo(f"{name}: licence {recipe.licence}")
    folder = worker.install(name)
    typer.echo(f"{name}: installed in {folder.name}; `aegis engine check {name}` looks at it")


@command_of(engine_app)
def check(name: EngineName) -> None:
    """Start an engine's process: its packages import and its calls have the expected form."""
    from aegis.engines import worker

    for what, found in worker.check(name).items():
        typer.echo(f"{name}: {what} {found}")
