"""The front page's results, written from the table ``claims`` and from nothing else.

Unit: one claim. A difference is *supported* when its interval excludes zero, *not settled*
when the interval holds zero (that is never an equivalence), and *not measured* when it has
no value. Every number stands with its interval and with what it is counted out of.

Functions: :func:`write_abstract`, :func:`main_results`, :func:`summarise`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

import pandas as pd

from aegis.tables import CONDITIONS

Claim = dict[str, Any]

POPULATION = ("n_recordings", "minutes", "n_profiles", "n_turns", "n_intentions")
PRIMARY = (
    "realised: ", "retained: ", "fact preserved: ", "fact contradicted: ", "wer against source: ",
    "eer all_turns ", "eer edited_region ",
)  # fmt: skip
"""Beginnings of the ids of the contrasts that the summary sorts."""
_BETWEEN = "renderer_b - renderer_a"
_UNITS = {"share": (100, "%"), "difference": (100, "percentage points")}
_WORDS = {
    "renderer_a": "renderer A", "renderer_b": "renderer B", "all_turns": "over all turns",
    "edited_region": "in edited regions", "eer": "attacker's equal error rate",
    "wer against source": "word error rate against the source",
    "fact preserved": "facts preserved", "fact contradicted": "facts contradicted",
    "realised": "replacement heard", "retained": "original still heard",
}  # fmt: skip


@dataclass(frozen=True)
class Measure:
    """A line of the main results: its words and the ids of its claims.

    ``{c}`` in ``claim`` is a condition; ``{b}`` in all three is a speaker backend, and such a
    measure has one line a backend. ``original`` is the claim of the originals where its id
    follows another form; ``contrast`` is empty where no contrast belongs to it.
    """

    words: str
    claim: str
    contrast: str = ""
    original: str = ""


MAIN = {
    "Can a speaker be linked to the original?": (
        Measure("attacker's equal error rate, all turns ({b}; chance is 50 %)",
                "eer_final_{c}_all_turns_{b}",
                "eer all_turns ({b}, attacker): " + _BETWEEN,
                "eer_final_original_converted_all_turns_{b}"),
        Measure("the same, edited regions only ({b})",
                "eer_final_{c}_edited_region_{b}",
                "eer edited_region ({b}, attacker): " + _BETWEEN,
                "eer_final_original_converted_edited_region_{b}"),
    ),
    "Is each replacement heard, and is the original gone?": (
        Measure("replacement heard, one at a time", "realised_{c}", "realised: " + _BETWEEN),
        Measure("original still heard, one at a time", "retained_{c}", "retained: " + _BETWEEN),
        Measure("original still heard in the conversation", "retained_conversation_{c}"),
    ),
    "Are the clinical facts still said?": (
        Measure("facts preserved", "fact_preserved_{c}", "fact preserved: " + _BETWEEN),
        Measure("facts contradicted", "fact_contradicted_{c}", "fact contradicted: " + _BETWEEN),
    ),
    "Are the words still said?": (
        Measure("word error rate against the source transcript", "wer_{c}_source",
                "wer against source: " + _BETWEEN),
    ),
}  # fmt: skip
"""The four questions of the front page and what answers each."""


def write_abstract(claims: pd.DataFrame | None, address: str = "") -> str:
    """Markdown: how much there is, the main results, and what they support.

    Parameters
    ----------
    address
        Of the page that lists all claims; empty for no link.
    """
    if claims is None:
        return "This run has not reached its contrasts yet, so there is nothing to claim.\n"
    if claims.empty:
        return "This run makes no claims.\n"
    rows = claims.to_dict("records")
    parts = [_population(rows), main_results(rows), summarise(claims)]
    if address:
        said = (
            f'All {len(claims)} numbers with their counts: <a href="{escape(address)}">claims</a>.'
        )
        parts.append(f"```{{=html}}\n<p>{said}</p>\n```\n")
    return "\n\n".join(part for part in parts if part)


# --- the main results -----------------------------------------------------------------------


def main_results(rows: Iterable[Claim]) -> str:
    """A numbered table of the four results by condition; empty when no claim belongs there."""
    known = {str(row["claim_id"]): row for row in rows}
    bodies = [_group(question, measures, known) for question, measures in MAIN.items()]
    if not any(bodies):
        return ""
    names = [_readable(name) for name in CONDITIONS]
    head = "".join(f'<th scope="col">{c}</th>' for c in ("measure", *names, "B minus A"))
    table = f"<table><thead><tr>{head}</tr></thead>{''.join(bodies)}</table>"
    return f"""::: {{#tbl-main}}
```{{=html}}
{table}
```

The four results by condition, with 95 % intervals over conversations and counts. A dash: not
measured in that condition. A difference is supported when its interval excludes zero.
:::
"""


def _group(question: str, measures: Iterable[Measure], known: Mapping[str, Claim]) -> str:
    lines = "".join(_line(m, b, known) for m in measures for b in _backends(m, known))
    width = len(CONDITIONS) + 2
    head = f'<tr><th scope="rowgroup" colspan="{width}">{escape(question)}</th></tr>'
    return f"<tbody>{head}{lines}</tbody>" if lines else ""


def _backends(measure: Measure, known: Mapping[str, Claim]) -> list[str]:
    """The speaker backends that have this measure; one without a name where it knows none."""
    if "{b}" not in measure.claim:
        return [""]
    pattern = re.escape(measure.claim).replace(r"\{c\}", "converted").replace(r"\{b\}", "(.+)")
    return sorted({found[1] for name in known if (found := re.fullmatch(pattern, name))})


def _line(measure: Measure, backend: str, known: Mapping[str, Claim]) -> str:
    cells = []
    for condition in CONDITIONS:
        name = measure.claim
        if condition == "original" and measure.original:
            name = measure.original
        cells.append(_value(known.get(name.format(c=condition, b=backend))))
    if set(cells) == {"–"}:
        return ""
    cells.append(_difference(known.get(measure.contrast.format(b=backend))))
    words = escape(measure.words.format(b=backend))
    shown = "".join(f"<td>{cell}</td>" for cell in cells)
    return f'<tr><th scope="row">{words}</th>{shown}</tr>'


def _value(claim: Claim | None) -> str:
    """A value, its interval and its counts, each on a line of its own."""
    if claim is None or pd.isna(claim["value"]):
        return "–"
    lines = [f"{100 * claim['value']:.1f} %"]
    if not pd.isna(claim["ci_low"]):
        lines.append(f"{100 * claim['ci_low']:.1f} to {100 * claim['ci_high']:.1f}")
    if not pd.isna(claim["denominator"]):
        of = "" if pd.isna(claim["numerator"]) else f"{claim['numerator']:g} of "
        lines.append(f"{of or 'n = '}{claim['denominator']:g}")
        lines += [f"{claim['unknown']:g} unknown"] if claim["unknown"] else []
    return _stacked(lines)


def _stacked(lines: list[str]) -> str:
    """A value above what qualifies it, in small print."""
    return "<br>".join([lines[0], *(f"<small>{line}</small>" for line in lines[1:])])


def _difference(claim: Claim | None) -> str:
    if claim is None or pd.isna(claim["value"]):
        return "–"
    lines = [f"{100 * claim['value']:+.1f} points"]
    if not pd.isna(claim["ci_low"]):
        lines.append(f"{100 * claim['ci_low']:+.1f} to {100 * claim['ci_high']:+.1f}")
        lines.append("supported" if _excludes_zero(claim) else "not settled")
    return _stacked(lines)


# --- what they support ------------------------------------------------------------------------


def summarise(claims: pd.DataFrame) -> str:
    """What the run supports, what it leaves open, and what it did not measure."""
    rows = claims.to_dict("records")
    contrasts = [c for c in rows if str(c["claim_id"]).startswith(PRIMARY)]
    valued = [c for c in contrasts if not pd.isna(c["value"])]
    resolved = [c for c in valued if _excludes_zero(c)]
    holding = [c for c in valued if not pd.isna(c["ci_low"]) and not _excludes_zero(c)]
    bare = [c for c in valued if pd.isna(c["ci_low"])]
    absent = [c for c in contrasts if pd.isna(c["value"])]
    none = "- No contrast has an interval that excludes zero."
    parts = [
        "**Supported by this run: the interval excludes zero.**",
        _listed(resolved, _resolved) or none,
    ]
    if holding:
        parts.append(
            "**Not settled: the interval holds zero, so neither a difference nor equivalence is"
            " shown.**"
        )
        parts.append(_listed(holding, _short))
    if bare:
        parts += ["**Without an interval.**", _listed(bare, _short)]
    if absent:
        reasons = pd.Series([str(c["reason"]) for c in absent]).value_counts(sort=False)
        said = [f"- {n} contrast{'s' * (n > 1)}: {reason}" for reason, n in reasons.items()]
        parts += ["**Not measured.**", "\n".join(said)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _population(rows: Iterable[Claim]) -> str:
    """One sentence of how much there is."""
    known = {str(c["claim_id"]): c for c in rows}
    amounts = [f"{known[n]['value']:,.0f} {known[n]['unit']}" for n in POPULATION if n in known]
    return f"The run holds {', '.join(amounts)}." if amounts else ""


def _excludes_zero(claim: Claim) -> bool:
    return bool(claim["ci_low"] > 0 or claim["ci_high"] < 0)


def _listed(claims: Iterable[Claim], say: Callable[[Claim], str]) -> str:
    return "\n".join(f"- {say(claim)}" for claim in claims)


def _resolved(claim: Claim) -> str:
    word = "higher" if claim["value"] > 0 else "lower"
    return f"{_short(claim)}: {word}"


def _short(claim: Claim) -> str:
    scale, unit = _UNITS.get(claim["unit"], (1, claim["unit"]))
    text = f"{_readable(claim['label'])}: {scale * claim['value']:.1f} {unit}"
    inside = []
    if not pd.isna(claim["ci_low"]):
        inside.append(f"{scale * claim['ci_low']:.1f} to {scale * claim['ci_high']:.1f}")
    if not pd.isna(claim["denominator"]):
        unknown = f", {claim['unknown']:g} unknown" if claim["unknown"] else ""
        inside.append(f"{claim['denominator']:g} items{unknown}")
    return text + (f" ({'; '.join(inside)})" if inside else "")


def _readable(label: str) -> str:
    """A claim's label in the words of the page."""
    label = label.replace(", attacker)", ")")
    for name, words in _WORDS.items():
        label = re.sub(rf"(?<![\w']){re.escape(name)}(?!\w)", words, label)
    return label
