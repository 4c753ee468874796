"""The study's figures: one style, readable in black and white.

Each function draws one tidy table and returns the axes. Kinds are told apart by marker, line
or hatch as well as by grey level, never by hue alone. Rates come as shares in [0, 1] and are
drawn in percent; a missing interval is a marker without whiskers. An empty table is the
caller's concern (:func:`aegis.report.figure`).

Functions: :func:`draw_rates`, :func:`draw_partition`, :func:`draw_changes`,
:func:`draw_realised`, :func:`draw_error_rates`, :func:`draw_tradeoff`,
:func:`draw_calibration`, :func:`draw_contrasts`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from aegis.report import CONDITION_LABELS

MARKERS = ("o", "s", "^", "D", "v", "P", "X")
HATCHES = ("", "//", "..", "xx", "--", "++")
GREYS = ("#1a1a1a", "#4d4d4d", "#808080", "#b3b3b3", "#d9d9d9", "#f2f2f2")


def label_of(condition: str) -> str:
    """A condition's name in a figure."""
    return CONDITION_LABELS.get(condition, condition)


def _axes(height: float, width: float = 7.0) -> Any:
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, height))[1]


def _whiskers(axes: Any, x: Sequence[float], own: pd.DataFrame, y: str, **how: Any) -> None:
    """Points of column ``y`` with whiskers from ``ci_low`` to ``ci_high``, in percent."""
    middle = 100 * own[y].astype(float).to_numpy()
    low, high = (100 * own[end].astype(float).to_numpy() for end in ("ci_low", "ci_high"))
    spread = np.nan_to_num(np.clip(np.vstack([middle - low, high - middle]), 0, None))
    axes.errorbar(x, middle, yerr=spread, linestyle="none", capsize=3, **how)


def draw_rates(rates: pd.DataFrame, ylabel: str = "percent") -> Any:
    """Rates with intervals; columns ``condition``, ``series``, ``value``, ``ci_low``, ``ci_high``.

    One place a condition, one marker a series.
    """
    axes = _axes(3.6)
    places = {name: i for i, name in enumerate(rates["condition"].drop_duplicates())}
    series = list(rates["series"].drop_duplicates())
    for i, name in enumerate(series):
        own = rates[rates["series"] == name]
        shift = 0.14 * (i - (len(series) - 1) / 2)
        x = [places[c] + shift for c in own["condition"]]
        fill = GREYS[0] if i % 2 == 0 else "white"
        _whiskers(axes, x, own, "value", marker=MARKERS[i % len(MARKERS)], color=GREYS[0],
                  markerfacecolor=fill, label=name)  # fmt: skip
    axes.set_xticks(range(len(places)), [label_of(name) for name in places])
    axes.set(ylabel=ylabel)
    if len(series) > 1:
        axes.legend(frameon=False)
    return axes


def draw_partition(outcomes: pd.DataFrame, labels: Sequence[str]) -> Any:
    """Stacked shares of all scheduled items, one bar a row of ``condition`` and label counts."""
    axes = _axes(0.45 * len(outcomes) + 1.4)
    whole = outcomes[list(labels)].sum(axis=1).astype(float)
    left = np.zeros(len(outcomes))
    names = [label_of(str(name)) for name in outcomes["condition"]]
    for i, label in enumerate(labels):
        share = 100 * (outcomes[label] / whole.where(whole > 0)).fillna(0).to_numpy(float)
        axes.barh(names, share, left=left, label=label, color=GREYS[-1 - i % len(GREYS)],
                  hatch=HATCHES[i % len(HATCHES)], edgecolor="black", linewidth=0.6)  # fmt: skip
        left += share
    axes.set(xlabel="percent of scheduled", xlim=(0, 100))
    axes.invert_yaxis()
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    return axes


def draw_changes(changes: pd.DataFrame) -> Any:
    """Change of each conversation, sorted; ``endpoint``, ``change`` (share) and ``n_items``."""
    axes = _axes(3.6)
    for i, (endpoint, own) in enumerate(changes.groupby("endpoint", sort=True)):
        own = own.sort_values("change")
        size = 12 + 60 * own["n_items"] / max(1, changes["n_items"].max())
        axes.scatter(np.linspace(0, 1, len(own) + 2)[1:-1], 100 * own["change"], s=size,
                     marker=MARKERS[i % len(MARKERS)], facecolor=GREYS[i % 4],
                     edgecolor="black", linewidth=0.5, label=str(endpoint))  # fmt: skip
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set(xlabel="conversations, from the lowest change to the highest (size: items)",
             ylabel="renderer B minus A, points", xticks=[])  # fmt: skip
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    return axes


def draw_realised(claims: pd.DataFrame) -> Any:
    """Realised against retained; ``condition``, ``realised``, ``retained`` and their intervals."""
    axes = _axes(4.0, 5.0)
    for i, row in enumerate(claims.to_dict("records")):
        x, y = 100 * row["realised"], 100 * row["retained"]
        spans = {}
        for name, key, at in (("xerr", "realised", x), ("yerr", "retained", y)):
            ends = [100 * row[f"{key}_low"], 100 * row[f"{key}_high"]]
            known = not any(pd.isna(end) for end in ends)
            spans[name] = [[at - ends[0]], [ends[1] - at]] if known else None
        axes.errorbar([x], [y], **spans, marker=MARKERS[i % len(MARKERS)], color=GREYS[0],
                      markerfacecolor="white" if i % 2 else GREYS[0], capsize=3,
                      linestyle="none", label=label_of(row["condition"]))  # fmt: skip
    axes.set(xlabel="replacement realised, percent", ylabel="original still heard, percent")
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    axes.legend(frameon=False)
    return axes


def draw_error_rates(rates: pd.DataFrame) -> Any:
    """Equal error rates; ``place`` on the axis, ``condition`` by marker, 50 % dashed."""
    axes = draw_rates(
        rates.rename(columns={"place": "condition", "condition": "series", "eer": "value"}).assign(
            series=lambda t: [label_of(str(name)) for name in t["series"]]
        ),
        "equal error rate, percent",
    )
    axes.axhline(50, color="black", linewidth=0.8, linestyle="--")
    axes.tick_params(axis="x", labelsize=8)
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    return axes


def draw_tradeoff(points: pd.DataFrame, xlabel: str, ylabel: str) -> Any:
    """Privacy and utility together: one marker a condition at ``x``, ``y`` (shares)."""
    axes = _axes(4.0, 5.5)
    for i, row in enumerate(points.to_dict("records")):
        axes.plot(100 * row["x"], 100 * row["y"], MARKERS[i % len(MARKERS)], color=GREYS[0],
                  markerfacecolor="white" if i % 2 else GREYS[0], markersize=9)  # fmt: skip
        axes.annotate(label_of(row["condition"]), (100 * row["x"], 100 * row["y"]),
                      xytext=(8, 5), textcoords="offset points", fontsize=8)  # fmt: skip
    axes.margins(0.2)
    axes.set(xlabel=xlabel, ylabel=ylabel)
    return axes


def draw_calibration(cases: pd.DataFrame, expected: str = "expected", given: str = "label") -> Any:
    """Counts of known labels against given ones; the counts stand in the cells."""
    import seaborn as sns

    given_labels = cases[given].astype(object).where(cases[given].notna(), "unobserved")
    counts = pd.crosstab(cases[expected].astype(object), given_labels)
    axes = _axes(0.5 * len(counts) + 1.4, 1.1 * counts.shape[1] + 2.0)
    sns.heatmap(counts, annot=True, fmt="d", cmap="Greys", cbar=False, linewidths=0.5,
                linecolor="black", ax=axes)  # fmt: skip
    axes.set(xlabel="label given", ylabel="label warranted")
    return axes


def draw_contrasts(rows: pd.DataFrame) -> Any:
    """Differences with intervals, one row each; white markers where the interval holds zero."""
    axes = _axes(0.32 * len(rows) + 1)
    for i, row in enumerate(rows.to_dict("records")):
        value, low, high = (100 * float(row[k]) for k in ("estimate", "ci_low", "ci_high"))
        axes.plot([low, high], [i, i], color=GREYS[0], linewidth=1.2)
        fill = "white" if low <= 0 <= high else GREYS[0]
        axes.plot(value, i, "o", color=GREYS[0], markerfacecolor=fill)
    axes.set_yticks(range(len(rows)), rows["contrast_id"])
    axes.axvline(0, color="black", linewidth=0.8)
    axes.invert_yaxis()
    axes.set(xlabel="difference in points, with its 95 % interval")
    return axes
