"""Commands that take a run elsewhere: ``release``, ``push``, ``pull``, ``render``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aegis.command import RunName, command_of, open_named

if TYPE_CHECKING:
    from aegis.store import Moved

app = typer.Typer()


@command_of(app)
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

    opened, conditions = open_named(run), tuple(condition or RELEASABLE)
    with locked(opened):
        for blocker in find_blockers(opened, conditions):
            typer.echo(str(blocker))
        archive = build_release(opened, out, conditions, with_audio, accept, card)
    typer.echo(f"released: {archive}")


@command_of(app)
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


@command_of(app)
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


@command_of(app)
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

    opened = open_named(run)
    if check:
        if not site_is_current(output or PROJECT / "_site", opened):
            raise SiteError(f"the site does not show run {opened.root.name} as it is now")
        typer.echo(f"the site shows run {opened.root.name} as it is now")
        return
    site = render_site(opened.root.name, output, with_originals)
    typer.echo(f"{site.n_pages} pages by {site.renderer}: {site.index}")
