"""What a notebook shows: tables with their denominators, figures in one style, players.

Notebook outputs become public pages. So only public tables and numbers
computed from them are shown, and players hold de-identified speech.

Functions: :func:`style`, :func:`rates`, :func:`table`, :func:`say`, :func:`percent`,
:func:`share`, :func:`points`, :func:`figure`, :func:`player`.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from aegis.audio import cut, read_wav
from aegis.listening import encode_mp3
from aegis.looking import compare, failures, listen, spectrogram, trace, why
from aegis.turn_display import CONDITION_LABELS

__all__ = [
    "CONDITION_LABELS",
    "PALETTE",
    "compare",
    "failures",
    "figure",
    "listen",
    "percent",
    "player",
    "rates",
    "say",
    "spectrogram",
    "style",
    "table",
    "trace",
    "why",
]

# Grey levels and hatches differ as well as hues, so figures survive black and white.
PALETTE = ["#1b3a57", "#4f8a8b", "#c98b2b", "#b7b7b7", "#7a3b3b", "#8fa3bf"]


def style() -> None:
    """Set the one figure style of the study."""
    import matplotlib.pyplot as plt
    import seaborn as sns
    from seaborn.objects import Plot

    sns.set_theme(context="notebook", style="whitegrid", palette=PALETTE, font_scale=0.9)
    plt.rcParams.update(
        {
            "figure.figsize": (7.0, 3.6),
            "figure.dpi": 110,
            "savefig.bbox": "tight",
            "axes.spines.top": False,
            "axes.spines.right": False,
        }
    )
    theme = Plot.config.theme  # seaborn's objects do not follow matplotlib's settings
    theme.update({name: plt.rcParams[name] for name in theme})


def percent(numerator: float, denominator: float, digits: int = 1) -> str:
    """``"12/40 (30.0 %)"``; an empty denominator is said, not divided by."""
    if not denominator:
        return f"{numerator:g}/0 (not defined)"
    return f"{numerator:g}/{denominator:g} ({100 * numerator / denominator:.{digits}f} %)"


def share(table: pd.DataFrame, column: str, value: Any) -> str:
    """How many rows of a table have a value: ``"3/40 (7.5 %)"``."""
    return percent(int((table[column] == value).sum()), len(table))


def points(value: Any, digits: int = 2) -> str:
    """A share (or a difference of shares) in percent; absent is said."""
    return "not measured" if pd.isna(value) else f"{100 * float(value):.{digits}f}"


def rates(frame: pd.DataFrame, digits: int = 1) -> Any:
    """Show rates with what they rest on.

    Parameters
    ----------
    frame
        Columns ``numerator`` and ``denominator``; ``unknown`` and ``not_applicable``
        counts where they exist (0 is assumed where the table has no such column);
        ``ci_low`` and ``ci_high`` in [0, 1] if there is an interval. Other columns are
        labels and stay in front.
    """
    out = frame.copy()
    for column in ("unknown", "not_applicable"):
        if column not in out:
            out[column] = 0
    whole = out["denominator"].astype(float)
    out["rate_percent"] = 100 * out["numerator"].astype(float) / whole.where(whole > 0)
    if {"ci_low", "ci_high"} <= set(out.columns):
        low, high = out.pop("ci_low") * 100, out.pop("ci_high") * 100
        out["interval_95"] = [
            "not estimable" if pd.isna(a) or pd.isna(b) else f"{a:.{digits}f} to {b:.{digits}f}"
            for a, b in zip(low, high, strict=True)
        ]
    return table(out, digits)


def table(frame: pd.DataFrame, digits: int = 2) -> Any:
    """Show a table without its index, missing values as a dash; say so where it has no rows."""
    if frame.empty:
        columns = ", ".join(str(name).replace("_", " ") for name in frame)
        return say(f"*No rows.* (The table would list: {columns}.)")
    floats = frame.select_dtypes(include="number").columns
    formats = {
        column: (lambda value: f"{value:.{digits}f}")
        for column in floats
        if not _whole(frame[column])
    }
    whole = {column: (lambda value: f"{value:,.0f}") for column in floats if _whole(frame[column])}
    return frame.style.format({**formats, **whole}, na_rep="–").hide(axis="index")


def figure(frame: pd.DataFrame, plot: Callable[[], Any]) -> Any:
    """Draw ``plot()``, or say that ``frame`` has no rows (plotting libraries fail on that)."""
    if frame.empty:
        return say("There is nothing to draw: the table has no rows.")
    from seaborn.objects import Plot

    drawn = plot()
    # Axes are shown as an image at the end of the cell, and are no text of a page; a seaborn
    # object is drawn only where it is shown.
    return drawn if isinstance(drawn, Plot) else None


def _whole(column: pd.Series) -> bool:
    values = column.dropna().astype(float)
    return bool((values == values.round()).all())


def say(text: str) -> Any:
    """Show Markdown made in code, so that numbers in prose come from tables."""
    from IPython.display import Markdown

    return Markdown(" ".join(text.split()))  # type: ignore[no-untyped-call]


def player(path: Path, seconds: float | None = 20.0) -> Any:
    """A player for a de-identified file: its first ``seconds``, as MP3 inside the page.

    Raises
    ------
    ValueError
        The file lies below a ``secret`` folder.
    """
    from IPython.display import HTML

    if "secret" in path.parts:
        raise ValueError(f"{path.name}: originals are never shown")
    samples = read_wav(path)
    if seconds is not None:
        samples = cut(samples, 0.0, seconds)
    encoded = base64.b64encode(encode_mp3(samples)).decode()
    return HTML(  # type: ignore[no-untyped-call]
        f'<audio controls preload="none" aria-label="{path.stem}" '
        f'src="data:audio/mpeg;base64,{encoded}"></audio>'
    )
