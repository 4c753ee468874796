"""What the commands of the command line share: options, errors in one line, tables as text.

Functions: :func:`command_of`, :func:`open_named`, :func:`formatted`, :func:`aligned`,
:func:`left_aligned`.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aegis.errors import AegisError

if TYPE_CHECKING:
    import pandas as pd

    from aegis.tables import Run

RunName = Annotated[
    str | None, typer.Option("--run", help="Name of the run; default: the newest one.")
]
ParamsPath = Annotated[Path, typer.Argument(help="Profile, e.g. params/demo.yaml.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("-p", "--param", metavar="NOTEBOOK.NAME=VALUE", help="Change one parameter."),
]


_WAYS_OUT = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space",
    errno.EROFS: "make it writable",
    errno.EACCES: "make it yours to write",
    errno.EPERM: "make it yours to write",
    errno.EIO: "look after the disk",
}
"""What a user can mend, by the number of the error."""


def command_of(parent: typer.Typer) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a command; its AegisError becomes one line and exit code 1."""
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
            if error.errno not in _WAYS_OUT:
                raise
            # The path may be a name and is not repeated.
            way_out = _WAYS_OUT[error.errno]
            said = f"{error.strerror}: a file of the run or its output; {way_out} and run again"
            typer.echo(f"aegis: {said}", err=True)
            raise typer.Exit(1) from None
        except KeyboardInterrupt:
            typer.echo("aegis: stopped; finished items are kept, run again to go on", err=True)
            raise typer.Exit(130) from None

    return guarded


def aligned(rows: list[list[str]]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        first, *others = [
            cell.ljust(width) if i < 2 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join([first, *others]).rstrip())
    return "\n".join(lines)


def formatted(frame: pd.DataFrame, format: str) -> str:
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


def left_aligned(rows: list[list[str]]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    lines = [
        "  ".join([*(c.ljust(w) for c, w in zip(row, widths, strict=False)), row[-1]])
        for row in rows
    ]
    return "\n".join(lines)


def open_named(name: str | None) -> Run:
    """The named run, or the one in which a stage ended last."""
    from aegis.pipeline import newest_run
    from aegis.tables import open_run

    return open_run(name or newest_run())
