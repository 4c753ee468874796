"""Views of the notebooks for JupyterLab, which cannot overwrite their sources by accident.

Unit: one notebook. The source stays ``notebooks/<name>.py``; its view is
``lab/<name>.ipynb``, git-ignored, and remembers which source it was made from. A view that
somebody changed is never written over: when its source changed too, it is kept beside
the new view as ``<name>.mine-<hash>.ipynb``. Only :func:`accept_view` writes a source, and
only while the source is still the one that the view was made from.

Functions: :func:`write_views`, :func:`accept_view`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aegis.audio import write_bytes
from aegis.errors import ParamError
from aegis.params import Value
from aegis.pipeline import find_notebooks, notebooks_folder

INJECTED = "injected-parameters"
_FIRST_CELL = "# %%"


def lab_sources() -> dict[str, Path]:
    """The notebooks that JupyterLab shows: all stages, and those that are for people only."""
    extra = notebooks_folder() / "explore.py"
    return {**find_notebooks(), **({"explore": extra} if extra.exists() else {})}


def write_views(
    folder: Path, given: Mapping[str, Mapping[str, Value]] | None = None
) -> dict[str, str]:
    """Make or refresh the view of every notebook.

    Parameters
    ----------
    folder
        Where the views lie.
    given
        Notebook -> parameters that differ from its defaults; they stand in a cell of their
        own, which :func:`accept_view` leaves out.

    Returns
    -------
    dict
        Notebook -> ``made``, ``kept`` (somebody works in it), ``refreshed`` or
        ``set aside`` (changed on both sides).
    """
    folder.mkdir(parents=True, exist_ok=True)
    return {
        name: _write_view(folder / f"{name}.ipynb", source, dict((given or {}).get(name, {})))
        for name, source in lab_sources().items()
    }


def _write_view(view: Path, source: Path, given: dict[str, Value]) -> str:
    import jupytext

    text = source.read_text(encoding="utf-8")
    fresh = jupytext.reads(text, fmt="py:percent")
    if given:
        _inject(fresh, given)
    fresh.metadata["aegis"] = {"source": _hash(text), "view": _hash(_cells_text(fresh))}
    state = "made"
    if view.exists():
        old = jupytext.read(view)
        known = old.metadata.get("aegis", {})
        edited = known.get("view") != _hash(_cells_text(old))
        if edited and known.get("source") == _hash(text):
            return "kept"
        if edited:
            view.rename(view.with_name(f"{view.stem}.mine-{str(known.get('source'))[:8]}.ipynb"))
        state = "set aside" if edited else "refreshed"
        if not edited and known == fresh.metadata["aegis"]:
            return "kept"  # with the outputs that it has
    write_bytes(view, jupytext.writes(fresh, fmt="ipynb").encode())
    return state


def _inject(notebook: Any, given: dict[str, Value]) -> None:
    """Add a cell after the parameters, as papermill does."""
    from nbformat import v4

    lines = ["# Parameters", *(f"{name} = {value!r}" for name, value in given.items())]
    cell = v4.new_code_cell("\n".join(lines), metadata={"tags": [INJECTED]})  # type: ignore[no-untyped-call]
    tags = [cell.metadata.get("tags", []) for cell in notebook.cells]
    at = next((i + 1 for i, own in enumerate(tags) if "parameters" in own), 0)
    notebook.cells.insert(at, cell)


def _cells_text(notebook: Any) -> str:
    """The cells of a notebook as py:percent text, without its header and injected cells."""
    import jupytext

    plain = jupytext.reads(jupytext.writes(notebook, fmt="ipynb"), fmt="ipynb")
    plain.cells = [c for c in plain.cells if INJECTED not in c.metadata.get("tags", [])]
    text: str = jupytext.writes(plain, fmt="py:percent")
    return text[text.index(_FIRST_CELL) :] if _FIRST_CELL in text else ""


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def accept_view(folder: Path, name: str) -> str:
    """Write a view's cells to its source; returns the new text.

    Raises
    ------
    ParamError
        There is no such view, or its source changed since the view was made.
    """
    import jupytext

    sources = lab_sources()
    view = folder / f"{name}.ipynb"
    if name not in sources or not view.exists():
        raise ParamError(f"{name}: no view in {folder.name}/; known: {', '.join(sources)}")
    source, notebook = sources[name], jupytext.read(view)
    text = source.read_text(encoding="utf-8")
    if notebook.metadata.get("aegis", {}).get("source") != _hash(text):
        raise ParamError(
            f"{name}: {source.name} changed since this view was made; `aegis lab` sets the view"
            " aside and makes a new one, into which you can copy your cells"
        )
    new = text[: text.index(_FIRST_CELL)] + _cells_text(notebook)
    write_bytes(source, new.encode())
    notebook.metadata["aegis"] = {"source": _hash(new), "view": _hash(_cells_text(notebook))}
    write_bytes(view, jupytext.writes(notebook, fmt="ipynb").encode())
    return new
