"""Commands of the listening panel: ``panel build`` and ``panel read``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aegis.command import RunName, command_of, formatted, open_named

panel = typer.Typer(no_args_is_help=True, help="A blinded listening panel: build it, read it.")


@command_of(panel)
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

    made = build_panel(open_named(run), reviewers, items, seed, not beside, force)
    for (kind, condition), count in sorted(made.counts.items()):
        typer.echo(f"{kind}, {condition}: {count} items")
    typer.echo(f"{made.n_reviewers} pages in {made.folder}; who hears what is in secret/panel")


@command_of(panel)
def read(
    files: Annotated[list[Path], typer.Argument(help="Files that the pages saved.")],
    run: RunName = None,
) -> None:
    """Check and merge saved answers; appendix O shows them after the next `aegis run`."""
    from aegis.panel import accept, describe, item_agreement

    ratings = accept(open_named(run), files)
    typer.echo(formatted(describe(ratings), "md"), nl=False)
    agreement = item_agreement(ratings).groupby("kind")["agreement"].mean().reset_index()
    typer.echo(formatted(agreement, "md"), nl=False)
    answered = int((ratings["status"] == "ok").sum())
    typer.echo(f"{answered} of {len(ratings)} planned ratings are there")
