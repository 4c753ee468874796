"""Paired contrasts between conditions.

The unit is the item of each endpoint: an edit intention for lexical outcomes, a recording
for word errors, a profile for linkage; the cluster is the recording, everywhere. Failures
and uncertain outcomes stay in the denominator and count neither as success nor as absence;
what they could change is shown by bounds. Differences are ``condition_b`` minus
``condition_a``. Families of the Holm adjustment and their sizes are declared in
:data:`FAMILIES`; a test that did not run still takes its place.

Functions: :func:`lexical_contrasts`, :func:`word_error_contrasts`,
:func:`linkage_contrasts`, :func:`fact_contrasts`, :func:`edit_contrasts`,
:func:`absent_contrasts`, :func:`adjust_families`, :func:`lexical_bounds`,
:func:`describe_limits`, :func:`noise_floors`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from aegis import stats
from aegis.linkage import read_trials
from aegis.stats import Bounds, Estimate, Floats
from aegis.trials import N_DRAWS as N_DRAWS_EER
from aegis.trials import eer_difference

FAMILIES = {
    "retention and contradiction": 2,
    "original control": 6,
    "acoustic stressors": 18,
    "administrative stressors": 9,
}
"""Declared sizes: two secondary endpoints; two endpoints by three transformed conditions;
three endpoints by six acoustic, and by three administrative stressors."""
RENDERERS = ("renderer_a", "renderer_b")
LEXICAL = {
    "realised": ("replacement_status", "realised"),
    "retained": ("original_status", "retained"),
}
"""Endpoint -> the column of ``lexical_matches`` and the value that counts."""
UNRESOLVED = ("uncertain", "failed")

Row = dict[str, Any]
Draws = Callable[[], np.random.Generator]


# --- contrasts -------------------------------------------------------------------------


def contrast_row(
    endpoint: str,
    conditions: Sequence[str],
    estimate: Estimate,
    equal: Estimate | None = None,
    p: float = math.nan,
    family: str | None = None,
) -> Row:
    """One row of ``contrasts``; the id is the endpoint with its two conditions."""
    a, b = conditions
    return {
        "contrast_id": f"{endpoint}: {b} - {a}", "endpoint": endpoint, "condition_a": a,
        "condition_b": b, "estimate": estimate.value, "ci_low": estimate.ci_low,
        "ci_high": estimate.ci_high, "detectable": stats.detectable(estimate.se),
        "equal_conversation": equal.value if equal else math.nan,
        "n_items": estimate.n_items, "n_clusters": estimate.n_clusters, "p": p,
        "p_holm": math.nan, "family": family, "status": estimate.status,
        "reason": estimate.reason,
    }  # fmt: skip


def focused(matches: pd.DataFrame) -> pd.DataFrame:
    """The generated-turn benchmark: one substitution alone in its turn."""
    return matches[matches["scope"] == "focused"]


def pair_outcomes(
    matches: pd.DataFrame, endpoint: str, conditions: Sequence[str]
) -> tuple[Floats, Floats, list[str]]:
    """0/1 outcomes of the intentions present in both conditions, and their recordings.

    Raises
    ------
    ValueError
        An intention occurs twice in one condition.
    """
    column, value = LEXICAL[endpoint]
    sides = [matches[matches["condition"] == name] for name in conditions]
    places = stats.match_items(*(side["intention_id"].tolist() for side in sides))
    a, b = (
        (side[column].to_numpy(dtype=object)[place] == value).astype(np.float64)
        for side, place in zip(sides, places, strict=True)
    )
    recordings = sides[0]["recording_id"].to_numpy(dtype=object)[places[0]]
    return a, b, [str(name) for name in recordings]


def lexical_contrasts(matches: pd.DataFrame, draws: Draws, n_draws: int) -> list[Row]:
    """Realised and retained, renderer b minus a; the sign-flip test is for retained."""
    rows = []
    for endpoint in LEXICAL:
        a, b, recordings = pair_outcomes(focused(matches), endpoint, RENDERERS)
        difference = stats.paired_difference(a, b, recordings, draws(), n_draws)
        equal = stats.equal_conversation_rate(b - a, np.ones_like(a), recordings, draws(), n_draws)
        if endpoint == "retained":
            flip = stats.sign_flip(b - a, recordings, draws())
            family = "retention and contradiction"
            rows.append(contrast_row(endpoint, RENDERERS, difference, equal, flip.p, family))
        else:
            rows.append(contrast_row(endpoint, RENDERERS, difference, equal))
    return rows


def word_errors(scores: pd.DataFrame) -> pd.DataFrame:
    """Scored recordings with their summed errors."""
    done = scores[scores["status"] == "ok"]
    total = done[["substitutions", "deletions", "insertions"]].sum(axis=1)
    return done.assign(errors=total.astype(float), words=done["n_reference"].astype(float))


def word_error_contrasts(
    scores: pd.DataFrame,
    pairs: Iterable[Sequence[str]],
    reference: str,
    draws: Draws,
    n_draws: int,
) -> list[Row]:
    """Corpus WER of ``b`` minus ``a`` on the recordings scored in both, from summed counts."""
    done = word_errors(scores[scores["reference"] == reference])
    rows = []
    for pair in pairs:
        sides = [done[done["condition"] == name] for name in pair]
        places = stats.match_items(*(side["recording_id"].tolist() for side in sides))
        a, b = (side.iloc[place] for side, place in zip(sides, places, strict=True))
        names = a["recording_id"].tolist()
        counts = [(side["errors"].to_numpy(), side["words"].to_numpy()) for side in (a, b)]
        difference = stats.ratio_difference(counts[0], counts[1], names, draws(), n_draws)
        rates = [errors / np.where(words > 0, words, np.nan) for errors, words in counts]
        gap = rates[1] - rates[0]
        known = ~np.isnan(gap)
        equal = stats.rate(gap[known], np.array(names, object)[known], draws(), n_draws)
        rows.append(contrast_row(f"wer against {reference}", pair, difference, equal))
    return rows


def linkage_contrasts(
    trials: pd.DataFrame, draws: Draws, n_draws: int = N_DRAWS_EER, orientation: str = "attacker"
) -> list[Row]:
    """EER of renderer b minus a, by backend and region kind, on profiles eligible in both."""
    final = trials[trials["protocol"] == "final"]
    rows = []
    for (kind, backend), own in final.groupby(["region_kind", "backend"], sort=True):
        sides = [own[own["condition"] == name] for name in RENDERERS]
        endpoint = f"eer {kind} ({backend}, {orientation})"
        if any(side.empty for side in sides):
            reason = "no trials in one of the conditions"
            absent = Estimate(math.nan, status="not_applicable", reason=reason)
            rows.append(contrast_row(endpoint, RENDERERS, absent))
            continue
        a, b = (read_trials(side) for side in sides)
        estimate = eer_difference(a, b, draws(), orientation, n_draws)
        rows.append(contrast_row(endpoint, RENDERERS, estimate))
    return rows


def agreed_labels(verdicts: pd.DataFrame, item: str, columns: Sequence[str]) -> pd.DataFrame:
    """One row an item and condition: labels on which all presentation orders agree.

    Parameters
    ----------
    verdicts
        Rows of one judge, one an order. An invalid verdict or a disagreement leaves NA in
        the columns: unobserved, never a failure of the item.
    item
        The item's id column; ``columns`` are the label columns.
    """
    keys = [item, "condition", "recording_id"]
    seen = verdicts[[*keys, *columns]].copy()
    seen.loc[(verdicts["status"] != "ok").to_numpy(dtype=bool), list(columns)] = pd.NA
    groups = seen.groupby(keys, sort=True)[list(columns)]
    agreed = groups.nunique(dropna=False).eq(1)
    return groups.first().where(agreed).reset_index()


def verdict_contrast(
    labels: pd.DataFrame,
    item: str,
    column: str,
    value: str,
    endpoint: str,
    conditions: Sequence[str],
    draws: Draws,
    n_draws: int,
    family: str | None = None,
) -> Row:
    """A judged endpoint in two conditions, on the items observed in both.

    Any other label, uncertain included, counts as not ``value``; unobserved items are left
    out on both sides. The sign flip is run where the endpoint belongs to a family.
    """
    seen = labels[labels[column].notna()]
    sides = [seen[seen["condition"] == name] for name in conditions]
    places = stats.match_items(*(side[item].tolist() for side in sides))
    a, b = (
        (side[column].to_numpy(dtype=object)[place] == value).astype(np.float64)
        for side, place in zip(sides, places, strict=True)
    )
    names = [str(n) for n in sides[0]["recording_id"].to_numpy(dtype=object)[places[0]]]
    difference = stats.paired_difference(a, b, names, draws(), n_draws)
    equal = stats.equal_conversation_rate(b - a, np.ones_like(a), names, draws(), n_draws)
    p = stats.sign_flip(b - a, names, draws()).p if family else math.nan
    return contrast_row(endpoint, conditions, difference, equal, p, family)


def fact_contrasts(verdicts: pd.DataFrame, draws: Draws, n_draws: int) -> list[Row]:
    """Preserved and contradicted: renderer b minus a, and every condition minus the original.

    ``verdicts`` are those of one judge. The original control is a family of six tests.
    """
    labels = agreed_labels(verdicts, "fact_id", ["label"])
    pairs: list[tuple[Sequence[str], dict[str, str | None]]] = [
        (RENDERERS, {"preserved": None, "contradicted": "retention and contradiction"})
    ]
    control: dict[str, str | None] = dict.fromkeys(
        ("preserved", "contradicted"), "original control"
    )
    pairs += [(("original", name), control) for name in ("converted", *RENDERERS)]
    return [
        verdict_contrast(labels, "fact_id", "label", value, f"fact {value}", pair, draws, n_draws,
                         family)
        for pair, families in pairs
        for value, family in families.items()
    ]  # fmt: skip


def edit_contrasts(verdicts: pd.DataFrame, draws: Draws, n_draws: int) -> list[Row]:
    """Judged realisation and retention, renderer b minus a; beside the literal search.

    An edit that was never rendered has no verdict (0 attempts) and stays in the denominator:
    neither realised nor retained. An invalid verdict is unobserved and left out.
    """
    columns = [column for column, _ in LEXICAL.values()]
    unrendered = (verdicts["status"] == "failed") & (verdicts["attempts"] == 0)
    kept = {column: verdicts[column].mask(unrendered, "failed") for column in columns}
    kept["status"] = verdicts["status"].mask(unrendered, "ok")
    labels = agreed_labels(verdicts.assign(**kept), "intention_id", columns)
    return [
        verdict_contrast(labels, "intention_id", column, value, f"{endpoint} (judge)", RENDERERS,
                         draws, n_draws)
        for endpoint, (column, value) in LEXICAL.items()
    ]  # fmt: skip


def absent_contrasts(missing: Mapping[str, str]) -> list[Row]:
    """What absent tables would add, said as not run; ``missing`` maps a table to its notebook."""
    second = "retention and contradiction"
    rows = []
    if "fact_verdicts" in missing:
        absent = _not_run(missing["fact_verdicts"])
        rows += [
            contrast_row("fact preserved", RENDERERS, absent),
            contrast_row("fact contradicted", RENDERERS, absent, family=second),
        ]
        for condition in ("converted", *RENDERERS):
            for endpoint in ("fact preserved", "fact contradicted"):
                pair = ("original", condition)
                rows.append(contrast_row(endpoint, pair, absent, family="original control"))
    if "edit_verdicts" in missing:
        absent = _not_run(missing["edit_verdicts"])
        rows += [contrast_row(f"{name} (judge)", RENDERERS, absent) for name in LEXICAL]
    return rows


def _not_run(notebook: str) -> Estimate:
    return Estimate(math.nan, status="not_applicable", reason=f"not run: {notebook}")


def adjust_families(rows: Sequence[Row]) -> list[Row]:
    """Fill ``p_holm`` within each declared family; no claim joins two families."""
    adjusted: dict[str, float] = {}
    for family, size in FAMILIES.items():
        tests = {row["contrast_id"]: row["p"] for row in rows if row["family"] == family}
        adjusted |= stats.holm(tests, size)
    return [{**row, "p_holm": adjusted.get(row["contrast_id"], math.nan)} for row in rows]


def count_outcomes(matches: pd.DataFrame) -> pd.DataFrame:
    """Hits and items of each endpoint and condition."""
    rows = [
        {"endpoint": endpoint, "condition": condition, "hits": int((own[column] == value).sum()),
         "items": len(own)}
        for condition, own in focused(matches).groupby("condition", sort=True)
        for endpoint, (column, value) in LEXICAL.items()
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=["endpoint", "condition", "hits", "items"])


def lexical_bounds(matches: pd.DataFrame, endpoint: str) -> Bounds:
    """What the unresolved outcomes of both renderers could do to the contrast."""
    column, value = LEXICAL[endpoint]
    own = focused(matches)
    sides = [own[own["condition"] == name] for name in RENDERERS]
    shared = set(sides[0]["intention_id"]) & set(sides[1]["intention_id"])
    a, b = (
        (int((side[column] == value).sum()), int(side[column].isin(UNRESOLVED).sum()))
        for side in (side[side["intention_id"].isin(shared)] for side in sides)
    )
    return stats.difference_bounds(a, b, len(shared))


def describe_limits(matches: pd.DataFrame, endpoint: str) -> Row:
    """Bounds of a renderer contrast."""
    bounds = lexical_bounds(matches, endpoint)
    return {
        "endpoint": endpoint, "items": bounds.n_items, "unresolved": bounds.n_unresolved,
        "bound_low": bounds.low, "bound_high": bounds.high,
    }  # fmt: skip


# --- the noise under them --------------------------------------------------------------

_FLOOR_OF = {
    "realised": "retained",
    "realised (judge)": "retained",
    "retained (judge)": "retained",
    "facts preserved": "fact preserved",
    "facts contradicted": "fact contradicted",
    "word errors against source": "wer against source",
    "word errors against gold": "wer against gold",
}


def noise_floors(endpoints: Iterable[str], noise: pd.DataFrame | None) -> list[float]:
    """What each endpoint changes by when the original is heard and judged a second time.

    Judged endpoints have the floor of their own label, both literal endpoints that of the
    literal search, word errors that of their reference (counted by value or not).

    Parameters
    ----------
    endpoints
        Names as in ``contrasts``, or as in :mod:`aegis.paired` with their condition behind.
    noise
        Table ``noise_floor``, None where the run has none.

    Returns
    -------
    list of float
        Repeat minus first, as a rate; NaN where repeating says nothing of the endpoint.
    """
    known = {} if noise is None else noise.set_index("endpoint")["estimate"].to_dict()
    names = [name.partition(",")[0].removesuffix("_by_value") for name in endpoints]
    return [float(known.get(_FLOOR_OF.get(name, name), math.nan)) for name in names]


def show(value: Any, scale: float = 100.0, digits: int = 1) -> str:
    """A number for a sentence, in points unless ``scale`` says otherwise."""
    return "not estimable" if pd.isna(value) else f"{scale * float(value):.{digits}f}"
