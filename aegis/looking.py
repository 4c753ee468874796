"""Looking into a run by hand: hear a turn, read it, ask why, follow an intention.

Unit: one turn, profile or intention of one run. Every function returns a :class:`Shown`:
HTML in a notebook, text on a terminal. Original words, original sound and both mappings
appear only in an interactive session (:func:`is_interactive`): a notebook that papermill,
nbconvert or `aegis run` executes shows them as ``hidden``, because its outputs become
pages.

Functions: :func:`listen`, :func:`compare`, :func:`spectrogram`, :func:`why`,
:func:`trace`, :func:`failures`.
"""

from __future__ import annotations

import base64
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

import pandas as pd

from aegis import explain, listening
from aegis.pipeline import newest_run
from aegis.tables import SCHEMAS, Run, open_run
from aegis.turn_display import (
    CONDITION_LABELS,
    pieces_html,
    shown_conditions,
    turn_html,
    turn_text,
)

HIDDEN = "hidden"
_OPEN_COLUMNS = (
    "condition", "scope", "kind", "category", "status", "reason", "located", "timed", "judge",
    "order", "language", "flagged", "planned_text_holds_original",
)  # fmt: skip
_STYLE = (
    "<style>.shown table{border-collapse:collapse;font-size:0.9em}.shown td,.shown th"
    "{text-align:left;padding:0.2em 0.6em;border-bottom:1px solid #8886}"
    ".players{display:grid;grid-template-columns:repeat(auto-fill,minmax(15em,1fr));gap:1em}"
    ".player{margin:0}.player img{width:100%;height:5em;background:#fff}.player audio{width:100%}"
    ".d-realised{background:#2f8f5b40}.d-retained{background:#c0392b40;font-weight:600}"
    ".d-changed{background:#c98b2b40}.d-planned{background:transparent;border-bottom:2px dotted}"
    "mark{color:inherit}</style>"
)


@dataclass(frozen=True)
class Shown:
    """Something to look at: rich in a notebook, plain on a terminal."""

    html: str
    text: str

    def _repr_html_(self) -> str:
        return f'{_STYLE}<div class="shown">{self.html}</div>'

    def __repr__(self) -> str:
        return self.text


def is_interactive() -> bool:
    """Whether a person is typing: an IPython or Python prompt, or a kernel that may ask back.

    Executors (papermill, nbconvert) forbid their kernels to ask for input; a front end
    such as JupyterLab allows it.
    """
    if os.environ.get("AEGIS_TOKEN") or os.environ.get("AEGIS_LOCKED"):
        return False
    try:
        from IPython.core.getipython import get_ipython
    except ImportError:
        return hasattr(sys, "ps1")
    shell = get_ipython()  # type: ignore[no-untyped-call]
    if shell is None:
        return hasattr(sys, "ps1")
    kernel = getattr(shell, "kernel", None)
    return True if kernel is None else bool(getattr(kernel, "_allow_stdin", False))


def _run(run: Run | str | None) -> Run:
    return run if isinstance(run, Run) else open_run(run or newest_run())


def listen(
    turn_id: str, conditions: Iterable[str] | None = None, run: Run | str | None = None
) -> Shown:
    """Players and spectrograms of a turn in several conditions, with what was heard.

    Parameters
    ----------
    turn_id
        From ``turn_times``.
    conditions
        Default: all that may be played here.
    run
        A run or its name; default the newest one.

    Raises
    ------
    TableError
        No such run or turn.
    """
    material, originals = listening.load_material(_run(run)), is_interactive()
    view = listening.view_turn(material, turn_id)
    wanted = set(conditions or CONDITION_LABELS)
    media = {}
    for name in shown_conditions(view, originals):
        samples = listening.turn_sound(material, view, name) if name in wanted else None
        if samples is not None:
            image = listening.encode_png(listening.spectrogram(samples))
            media[name] = (
                _data("audio/mpeg", listening.encode_mp3(samples)),
                _data("image/png", image),
            )
    text = (
        turn_text(view, originals) + f"\n  sound: {', '.join(media) or 'none may be played here'}"
    )
    return Shown(turn_html(view, media, originals), text)


def compare(turn_id: str, run: Run | str | None = None) -> Shown:
    """What was planned and what was heard in each condition, without the sound."""
    view = listening.view_turn(listening.load_material(_run(run)), turn_id)
    originals = is_interactive()
    rows = ""
    if originals:
        lines = [("plan", view.plan), *((name, view.heard[name]) for name in view.conditions)]
        rows = "".join(
            f'<tr><th scope="row">{escape(CONDITION_LABELS.get(name, name))}</th>'
            f"<td>{pieces_html(pieces, view.language)}</td></tr>"
            for name, pieces in lines
        )
    html = turn_html(view, {}, originals) + (f"<table>{rows}</table>" if rows else "")
    return Shown(html, turn_text(view, originals))


def spectrogram(
    turn_id: str, condition: str = "renderer_b", run: Run | str | None = None
) -> Shown:
    """The spectrogram of a turn in one condition (0 to 5 kHz, 60 dB)."""
    material = listening.load_material(_run(run))
    view = listening.view_turn(material, turn_id)
    said = f"{CONDITION_LABELS.get(condition, condition)}, turn {view.index}"
    if condition not in shown_conditions(view, is_interactive()):
        return Shown(f"<p>{escape(said)}: {HIDDEN}</p>", f"{said}: {HIDDEN}")
    samples = listening.turn_sound(material, view, condition)
    if samples is None:
        return Shown(f"<p>{escape(said)}: no sound</p>", f"{said}: no sound")
    levels = listening.spectrogram(samples)
    image = _data("image/png", listening.encode_png(levels, 900))
    html = f'<figure><img src="{image}" alt="Spectrogram, {escape(said)}"></figure>'
    seconds = levels.shape[1] / 100
    return Shown(html, f"{said}: {seconds:.1f} s, {levels.shape[0]} bands to 5 kHz")


def _data(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def why(
    profile_id: str, pseudo_profile: int = 1, run: Run | str | None = None, n_shown: int = 12
) -> Shown:
    """Why a speaker has its pseudo-voice: candidates in rank order and what decided on each."""
    told = explain.explain_assignment(_run(run), profile_id, pseudo_profile)
    outcome, rules, found = told.outcome, told.rules, told.candidates
    chosen = found.index[found["decision"] == "chosen"]
    last = max(n_shown, int(chosen[0]) + 1 if len(chosen) else 0)
    shown = found.head(last).round({"distance": 3, "traits": 3, "score": 3})
    if not is_interactive():
        shown = shown.assign(voice_id=HIDDEN)
    fate = f"rank {outcome['rank']}" if outcome["status"] == "ok" else str(outcome["reason"])
    said = (
        f"{profile_id}: {fate}; {outcome['n_candidates']} candidates of"
        f" {outcome['n_eligible']} eligible units at least {rules.min_source_distance:.2f} away;"
        f" voices of one conversation at least {rules.min_target_distance:.2f} apart;"
        f" score {rules.distance_weight:g} d / 2 + {1 - rules.distance_weight:g} T"
    )
    return Shown(f"<p>{escape(said)}</p>{_html(shown)}", f"{said}\n{shown.to_string(index=False)}")


def trace(intention_id: str, run: Run | str | None = None) -> Shown:
    """An intention from its mention to its verdicts, through every stage that has run."""
    opened, interactive = _run(run), is_interactive()
    html, text = [], [f"intention {intention_id}"]
    for stage, table, rows in explain.trace_intention(opened, intention_id):
        shown = rows if interactive else hide_secrets(table, rows)
        shown = shown.dropna(axis="columns", how="all")
        html.append(f"<h4>{stage}: {table}</h4>{_html(shown)}")
        body = shown.to_string(index=False) if len(shown) else "no rows"
        text.append(f"{stage}: {table}\n{body}")
    return Shown("".join(html), "\n\n".join(text))


def hide_secrets(table: str, rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of a secret table with every column that could hold words replaced by ``hidden``."""
    if SCHEMAS[table].visibility == "public":
        return rows
    closed = [
        column
        for column in rows.columns
        if not (
            column in _OPEN_COLUMNS
            or column.endswith(("_id", "_status"))
            or column.startswith(("n_", "char_"))
        )
    ]
    return rows.assign(**dict.fromkeys(closed, HIDDEN))


def failures(run: Run | str | None = None) -> Shown:
    """Everything that is not ok in a run, by table, status and reason."""
    found = explain.failure_registry(_run(run)).sort_values("rows", ascending=False)
    said = f"{int(found['rows'].sum())} rows are not ok" if len(found) else "every row is ok"
    return Shown(f"<p>{said}</p>{_html(found)}", f"{said}\n{found.to_string(index=False)}")


def _html(frame: pd.DataFrame) -> str:
    shown: str = frame.to_html(index=False, na_rep="–", border=0)
    return shown
