"""The page of ``aegis leakage``: tables and one figure in a file that loads nothing.

Functions: :func:`build_page`.
"""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Mapping

import numpy as np
import pandas as pd

from aegis import low_fpr
from aegis.leakage_tables import ALL
from aegis.segments import ORIGINAL

EXPLAINED = {
    "files": "What became of every file and of every META row that has none.",
    "score_file": "Error rates and costs of the given scores.",
    "rates": "Trial types: oaoa is the attack on identity (ideal 50 %), aaaa the consistency of"
    " a pseudo-voice (ideal 0 %); oo is the reference on originals. Never flipped.",
    "mean_rates": "Mean EER over conditions, half-width of an IID bootstrap over conditions.",
    "attacks": "Attackers by what they know, on speakers that none of them learnt from.",
    "soft": "Soft biometrics: SBLS and its parts (1 = nothing leaks), all seven weightings"
    " and subgroup weights. The originals are the control.",
    "subgroups": "Rows of a subgroup whose attributes are all predicted right.",
    "search": "Cumulative match: how often the original speaker is among the first k.",
    "structure": "How well one embedding space follows from the other, held out.",
    "users": "Membership game at low false-positive rates. PT: embeddings as they come, FT:"
    " adapted on disjoint speakers. unknown: fewer than ten negatives in the tail.",
    "values": "The attribute table: do two speakers share a value?",
    "component_correlations": "Correlations of SBLS components over systems.",
    "systems": "One column a metric, higher = more private.",
    "utility": "Word error rate and likeness of transcripts (n-grams, not meaning).",
}


def build_page(tables: Mapping[str, pd.DataFrame], system: str) -> str:
    """The report as one HTML file."""
    parts = [f"<p>{html.escape(line)}</p>" for line in _summary(tables)]
    if "rates" in tables:
        parts.append(_figure(tables["rates"]))
    for name, table in tables.items():
        parts.append(f"<h2 id='{name}'>{name.replace('_', ' ')}</h2>")
        parts.append(f"<p>{html.escape(EXPLAINED[name])} ({len(table)} rows, {name}.csv)</p>")
        shown = table.head(400).dropna(axis=1, how="all")
        parts.append(
            "<div class='wide'>"
            + shown.to_html(index=False, border=0, na_rep="n/a", float_format=_number)
            + "</div>"
        )
        if len(table) > len(shown):
            parts.append(f"<p>The first {len(shown)} of {len(table)} rows.</p>")
    links = " · ".join(f"<a href='#{n}'>{n.replace('_', ' ')}</a>" for n in tables)
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        f"<title>Leakage of {html.escape(system)}</title><style>{_STYLE}</style></head>"
        f"<body><h1>What leaks: {html.escape(system)}</h1><nav>{links}</nav>{''.join(parts)}"
        "</body></html>"
    )


_STYLE = (
    "body{font:15px/1.5 sans-serif;margin:2em auto;max-width:70em;padding:0 1em}"
    "table{border-collapse:collapse;font-size:13px}td,th{padding:.2em .6em;text-align:right;"
    "border-bottom:1px solid #ddd}.wide{overflow-x:auto;max-height:36em}th{background:#f4f4f4}"
)


def _number(value: float) -> str:
    return f"{value:.4g}"


def _summary(tables: Mapping[str, pd.DataFrame]) -> list[str]:
    lines = [
        "Attack results, no proof of anonymity: an attack that fails here may succeed elsewhere."
    ]
    if "files" in tables:
        counted = tables["files"].groupby(["set", "status"]).size()
        lines.append("Files: " + ", ".join(f"{s} {w} {n}" for (s, w), n in counted.items()) + ".")
    rates = tables.get("rates", pd.DataFrame())
    if len(rates):
        main = rates[(rates["trial_type"].isin(["oo", "oaoa"])) & (rates["test_set"] == ALL)]
        for row in main.to_dict("records"):
            what = "original against original" if row["trial_type"] == "oo" else (
                f"original against anonymised {row['pseudo_profile']}"
            )  # fmt: skip
            place = f"{row['condition']}, {row['backend']}, {what}"
            counts = f"{row['n_target']} target and {row['n_nontarget']} non-target trials"
            if np.isfinite(row["eer"]):
                lines.append(
                    f"{place}: EER {100 * row['eer']:.1f} % ({100 * row['ci_low']:.1f} to"
                    f" {100 * row['ci_high']:.1f}), {counts}."
                )
            else:
                lines.append(f"{place}: n/a ({row['reason']}; {counts}).")
    users = tables.get("users", pd.DataFrame())
    if len(users):
        anonymised = users[users["system"] != ORIGINAL]
        for names, cells in anonymised[anonymised["length"] == 60].groupby(
            ["condition", "backend", "regime"]
        ):
            found = low_fpr.judge_claim(cells)
            lines.append(
                f"{', '.join(map(str, names))}: FT-Max above FT-Avg at FPR 1e-4 with 60 enrolment"
                f" utterances: {found['verdict']} ({found['because']})."
            )
        lines.append(low_fpr.compare_rankings(anonymised, 1e-2)[1])
    return lines


def _figure(rates: pd.DataFrame) -> str:
    """Privacy against consistency, one point a condition, backend and system."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    keys = ["condition", "backend", "system"]
    own = rates[rates["test_set"] == ALL].dropna(subset=["eer"])
    wide = own.pivot_table("eer", keys, "trial_type")
    if not {"oaoa", "aaaa"} <= set(wide.columns):
        return "<p>No condition has both oaoa and aaaa trials, so there is no figure.</p>"
    wide = wide.dropna(subset=["oaoa", "aaaa"]).reset_index()
    fig, axes = plt.subplots(figsize=(6, 4))
    for (backend, system), points in wide.groupby(["backend", "system"]):
        axes.plot(100 * points["aaaa"], 100 * points["oaoa"], "o", label=f"{system}, {backend}")
    axes.axhline(50, color="grey", lw=0.8)
    axes.set(xlabel="EER of aaaa, % (consistent: 0)", ylabel="EER of oaoa, % (private: 50)")
    axes.legend(fontsize=8)
    buffer = io.BytesIO()
    fig.savefig(buffer, format="png", dpi=110, bbox_inches="tight")
    plt.close(fig)
    data = base64.b64encode(buffer.getvalue()).decode()
    return f"<img alt='Privacy against consistency' src='data:image/png;base64,{data}'>"
