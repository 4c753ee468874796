"""The front page's abstract, written from the table ``claims`` and from nothing else.

A difference is *supported* when its interval excludes zero, *not settled* when the interval
holds zero (that is never an equivalence), and *not measured* when it has no value. Every
sentence names the items that it rests on.

Functions: :func:`write_abstract`, :func:`summarise`, :func:`list_claims`, :func:`sentence`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pandas as pd

Claim = dict[str, Any]

HEADINGS = {
    "The population": ("n_recordings", "minutes", "n_profiles", "n_turns", "n_intentions"),
    "Identifiers spoken anew": (
        "realised_renderer_", "retained_renderer_", "realised: ", "retained: ",
    ),
    "Words": ("wer_original_source", "wer against source: "),
    "Clinical facts, judged": (
        "fact_preserved_", "fact_contradicted_", "fact preserved: ", "fact contradicted: ",
    ),
    "Linkage, original enrolment against transformed test": (
        "eer_final_original_converted_all_turns_", "eer_final_converted_all_turns_",
        "eer_final_renderer_a_all_turns_", "eer_final_renderer_b_all_turns_",
        "eer edited_region ",
    ),
}  # fmt: skip
"""What the front page lists: a heading and the ids (or their beginnings) of its claims."""
PRIMARY = (
    "realised: ", "retained: ", "fact preserved: ", "fact contradicted: ", "wer against source: ",
    "eer all_turns ", "eer edited_region ",
)  # fmt: skip
"""Beginnings of the ids of the contrasts that the summary sorts."""
_UNITS = {"share": (100, "%"), "difference": (100, "percentage points")}


def write_abstract(claims: pd.DataFrame | None) -> str:
    """Markdown: the summary, then the listed claims with their counts."""
    if claims is None:
        return "This run has not reached its contrasts yet, so there is nothing to claim.\n"
    if claims.empty:
        return "This run makes no claims.\n"
    return summarise(claims) + "\n" + list_claims(claims)


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
        _population(rows),
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
    names = [n for n in HEADINGS["The population"] if n in known]
    amounts = [f"{known[n]['value']:,.0f} {known[n]['unit']}" for n in names]
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
    text = f"{claim['label']}: {scale * claim['value']:.3g} {unit}"
    inside = []
    if not pd.isna(claim["ci_low"]):
        inside.append(f"{scale * claim['ci_low']:.3g} to {scale * claim['ci_high']:.3g}")
    if not pd.isna(claim["denominator"]):
        inside.append(f"{claim['denominator']:g} items")
    return text + (f" ({', '.join(inside)})" if inside else "")


def list_claims(claims: pd.DataFrame) -> str:
    """The listed claims under their headings, one entry each."""
    rows, parts = claims.to_dict("records"), []
    for heading, beginnings in HEADINGS.items():
        own = [c for b in beginnings for c in rows if str(c["claim_id"]).startswith(b)]
        own = [c for c in own if not str(c["claim_id"]).endswith("_by_value")]
        if own:
            parts.append(f"### {heading}\n\n" + "\n".join(f"- {sentence(c)}" for c in own) + "\n")
    return "\n".join(parts)


def sentence(claim: Claim) -> str:
    """A claim in words; an interval that crosses zero is never called an equality."""
    label = f"**{claim['label']}**"
    if pd.isna(claim["value"]):
        return f"{label}: n/a ({claim['reason']})."
    scale, unit = _UNITS.get(claim["unit"], (1, claim["unit"]))
    text = f"{label}: {scale * claim['value']:.3g} {unit}"
    counts = []
    if not pd.isna(claim["denominator"]):
        of = "" if pd.isna(claim["numerator"]) else f"{claim['numerator']:g} "
        counts = [f"{of}of {claim['denominator']:g}" if of else f"{claim['denominator']:g} items"]
        unknown, outside = int(claim["unknown"]), int(claim["not_applicable"])
        counts.append(f"{unknown} unknown, {outside} not applicable")
    if counts:
        text += f" ({'; '.join(counts)})"
    if not pd.isna(claim["ci_low"]):
        low, high = scale * claim["ci_low"], scale * claim["ci_high"]
        text += f", 95 % interval {low:.3g} to {high:.3g}"
        if claim["unit"] == "difference" and claim["ci_low"] <= 0 <= claim["ci_high"]:
            text += " (holds zero: neither a difference nor equivalence is shown)"
    return text + "."
