"""Paired endpoints between two runs of one study: what a changed setting did.

Unit: the item of each endpoint as in :mod:`aegis.contrasts` (an edit intention, a fact, a
conversation, a recording's words); the cluster is the recording. Items are paired by id, so
both runs must have planned the same items; what only one of them has is left out on both
sides and shown by ``n_items``. Differences are the changed run minus the first.

Functions: :func:`verdict_effect`, :func:`endpoint_effect`, :func:`lexical_effect`,
:func:`word_error_effect`, :func:`effects`, :func:`absent_effect`, :func:`show_effects`,
:func:`crosses_zero`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pandas as pd

from aegis.contrasts import (
    LEXICAL,
    Draws,
    Row,
    agreed_labels,
    contrast_row,
    focused,
    noise_floors,
    verdict_contrast,
    word_error_contrasts,
)
from aegis.stats import Estimate
from aegis.tables import Run

FIRST = "primary"


def _both(first: pd.DataFrame, other: pd.DataFrame, condition: str, name: str) -> pd.DataFrame:
    """Rows of one condition of both runs, the run's name in place of the condition."""
    sides = [(first, FIRST), (other, name)]
    return pd.concat(
        [side[side["condition"] == condition].assign(condition=label) for side, label in sides]
    )


def verdict_effect(
    first: pd.DataFrame, other: pd.DataFrame, label: str, condition: str, name: str,
    draws: Draws, n_draws: int, family: str | None = None,
) -> Row:  # fmt: skip
    """Strict share of facts with a label; tables are ``fact_verdicts`` of one judge."""
    labels = agreed_labels(_both(first, other, condition, name), "fact_id", ["label"])
    return verdict_contrast(
        labels, "fact_id", "label", label, f"facts {label}, {condition}", (FIRST, name), draws,
        n_draws, family,
    )  # fmt: skip


def endpoint_effect(
    first: pd.DataFrame, other: pd.DataFrame, kind: str, condition: str, name: str,
    draws: Draws, n_draws: int, family: str | None = None,
) -> Row:  # fmt: skip
    """Share of conversations that meet an endpoint; tables are ``endpoint_verdicts``."""
    both = _both(first, other, condition, name)
    own = both[both["kind"] == f"conversation {kind}"]
    labels = agreed_labels(own, "item_id", ["label"])
    endpoint = f"conversation {kind} met, {condition}"
    return verdict_contrast(
        labels, "item_id", "label", "met", endpoint, (FIRST, name), draws, n_draws, family
    )


def lexical_effect(
    first: pd.DataFrame, other: pd.DataFrame, endpoint: str, condition: str, name: str,
    draws: Draws, n_draws: int,
) -> Row:  # fmt: skip
    """Replacements realised or originals retained; tables are ``lexical_matches``."""
    column, value = LEXICAL[endpoint]
    both = _both(focused(first), focused(other), condition, name)
    seen = both.assign(label=both[column].mask(both[column].isna(), "failed"))
    return verdict_contrast(
        seen, "intention_id", "label", value, f"{endpoint}, {condition}", (FIRST, name), draws,
        n_draws,
    )  # fmt: skip


def word_error_effect(
    first: pd.DataFrame, other: pd.DataFrame, reference: str, condition: str, name: str,
    draws: Draws, n_draws: int,
) -> Row:  # fmt: skip
    """Corpus word error rate; tables are ``transcript_scores``."""
    both = _both(first, other, condition, name)
    (row,) = word_error_contrasts(both, [(FIRST, name)], reference, draws, n_draws)
    endpoint = f"word errors against {reference}, {condition}"
    return row | {"endpoint": endpoint, "contrast_id": f"{endpoint}: {name} - {FIRST}"}


def effects(
    first: Run, other: Run, condition: str, name: str, draws: Draws, n_draws: int
) -> list[Row]:
    """All endpoints that both runs hold, of one condition."""
    rows: list[Row] = []
    have = [table for table in _EFFECTS if first.has(table) and other.has(table)]
    for table in have:
        a, b = first.read(table), other.read(table)
        for endpoint, effect in _EFFECTS[table]:
            rows.append(effect(a, b, endpoint, condition, name, draws, n_draws))
    return rows


_EFFECTS: dict[str, list[tuple[str, Callable[..., Row]]]] = {
    "lexical_matches": [("realised", lexical_effect), ("retained", lexical_effect)],
    "fact_verdicts": [("preserved", verdict_effect), ("contradicted", verdict_effect)],
    "endpoint_verdicts": [("chronology", endpoint_effect), ("actions", endpoint_effect)],
    "transcript_scores": [("source", word_error_effect)],
}


def absent_effect(endpoint: str, name: str, reason: str, family: str | None = None) -> Row:
    """An effect that does not exist, with its reason; it keeps its place in its family."""
    gone = Estimate(math.nan, status="not_applicable", reason=reason)
    return contrast_row(endpoint, (FIRST, name), gone, family=family)


def show_effects(rows: pd.DataFrame, noise: pd.DataFrame | None) -> pd.DataFrame:
    """Columns for a page: points, intervals and the floor of ``noise_floor`` beside them."""
    out = rows[["condition_b", "endpoint", "n_items", "n_clusters"]].copy()
    out = out.rename(columns={"condition_b": "setting"})
    for column in ("estimate", "ci_low", "ci_high"):
        out[f"{column}_points"] = 100 * rows[column].astype(float)
    floors = [100 * floor for floor in noise_floors(rows["endpoint"], noise)]
    out.insert(5, "noise_floor", floors)
    return out.assign(p=rows["p"], p_holm=rows["p_holm"], reason=rows["reason"])


def crosses_zero(rows: pd.DataFrame) -> pd.Series:
    """Is zero inside the interval? NA where there is no interval."""
    low, high = rows["ci_low"].astype(float), rows["ci_high"].astype(float)
    inside = (low <= 0) & (high >= 0)
    return inside.astype("boolean").mask(low.isna() | high.isna())
