"""Pairings and weightings of the primary contrasts (paper, appendix P).

The unit is an item observed under both renderers: an edit intention or a clinical fact, in its
conversation. ``change`` is the outcome under renderer b minus that under a: -1, 0 or 1. The
item-weighted contrast counts each item once, the equal-conversation contrast each conversation
once; they differ where the effect depends on how much a conversation holds.

Functions: :func:`paired_items`, :func:`count_pairs`, :func:`by_conversation`,
:func:`weightings`, :func:`strata_rates`, :func:`both_weightings`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd

from aegis import stats
from aegis.contrasts import LEXICAL, RENDERERS, Draws, agreed_labels, focused

COLUMNS = ["endpoint", "item", "recording_id", "a", "b", "change"]
FACTS = {"fact preserved": "preserved", "fact contradicted": "contradicted"}


def observed(matches: pd.DataFrame, verdicts: pd.DataFrame | None) -> dict[str, pd.DataFrame]:
    """Endpoint -> item, condition, recording_id, hit of every observed outcome.

    ``verdicts`` are those of one judge; an invalid or disagreeing label is not observed.
    """
    tables = {}
    own = focused(matches)
    for endpoint, (column, value) in LEXICAL.items():
        hit = (own[column] == value).fillna(False).astype(float)
        names = {"intention_id": "item"}
        kept = own[["intention_id", "condition", "recording_id"]].rename(columns=names)
        tables[endpoint] = kept.assign(hit=hit)
    if verdicts is not None and len(verdicts):
        labels = agreed_labels(verdicts, "fact_id", ["label"]).dropna(subset=["label"])
        kept = labels[["fact_id", "condition", "recording_id"]].rename(columns={"fact_id": "item"})
        for endpoint, value in FACTS.items():
            tables[endpoint] = kept.assign(hit=(labels["label"] == value).astype(float))
    return tables


def paired_items(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Items observed under both renderers, with their outcomes; see :func:`observed`."""
    parts = []
    for endpoint, own in tables.items():
        a, b = (own[own["condition"] == name].set_index("item") for name in RENDERERS)
        shared = a.index.intersection(b.index).sort_values()
        part = pd.DataFrame({
            "endpoint": endpoint, "item": shared,
            "recording_id": a.loc[shared, "recording_id"].to_numpy(),
            "a": a.loc[shared, "hit"].to_numpy(float), "b": b.loc[shared, "hit"].to_numpy(float),
        })  # fmt: skip
        parts.append(part.assign(change=part["b"] - part["a"]))
    return pd.concat(parts) if parts else pd.DataFrame(columns=COLUMNS)


def count_pairs(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Items observed under a, under b and under both, by endpoint."""
    rows = []
    for endpoint, own in tables.items():
        a, b = (set(own.loc[own["condition"] == name, "item"]) for name in RENDERERS)
        rows.append(
            {"endpoint": endpoint, "a": len(a), "b": len(b), "both": len(a & b),
             "one only": len(a ^ b)}
        )  # fmt: skip
    return pd.DataFrame(rows, columns=["endpoint", "a", "b", "both", "one only"])


def by_conversation(pairs: pd.DataFrame) -> pd.DataFrame:
    """Mean change and number of items of each conversation and endpoint."""
    groups = pairs.groupby(["endpoint", "recording_id"], sort=True)["change"]
    return groups.agg(change="mean", n_items="size").reset_index()


def weightings(pairs: pd.DataFrame, draws: Draws, n_draws: int) -> pd.DataFrame:
    """Each contrast weighted by item and by conversation, and without one conversation.

    ``least`` and ``most`` are the item-weighted values when each conversation in turn is left
    out; ``moved_by`` is the conversation whose absence moves it most.
    """
    rows = []
    for endpoint, own in pairs.groupby("endpoint", sort=True):
        names, change = own["recording_id"].tolist(), own["change"].to_numpy(float)
        item = stats.rate(change, names, draws(), n_draws)
        equal = stats.equal_conversation_rate(change, np.ones_like(change), names, draws(),
                                              n_draws)  # fmt: skip
        without = leave_one_out(own)
        rows.append({
            "endpoint": endpoint, "items": item.n_items, "conversations": item.n_clusters,
            "item_weighted": item.value, "item_low": item.ci_low, "item_high": item.ci_high,
            "equal": equal.value, "equal_low": equal.ci_low, "equal_high": equal.ci_high,
            "least": without.min() if len(without) else math.nan,
            "most": without.max() if len(without) else math.nan,
            "moved_by": (without - item.value).abs().idxmax() if len(without) else None,
            "detectable": stats.detectable(item.se),
        })  # fmt: skip
    return pd.DataFrame(rows)


def leave_one_out(pairs: pd.DataFrame) -> pd.Series:
    """Item-weighted change without each conversation; none when there is one conversation."""
    sums = pairs.groupby("recording_id", sort=True)["change"].agg(["sum", "size"])
    if len(sums) < 2:
        return pd.Series(dtype=float)
    rest: pd.Series = (sums["sum"].sum() - sums["sum"]) / (sums["size"].sum() - sums["size"])
    return rest


def strata_rates(
    tables: Mapping[str, pd.DataFrame], stratum: pd.Series, draws: Draws, n_draws: int
) -> pd.DataFrame:
    """Item-weighted rate of each endpoint, condition and stratum of conversations.

    ``stratum`` maps a recording id to its stratum; recordings without one are left out.
    """
    rows = []
    for endpoint, own in tables.items():
        own = own.assign(stratum=own["recording_id"].map(stratum)).dropna(subset=["stratum"])
        for (condition, name), part in own.groupby(["condition", "stratum"], sort=True):
            rate = stats.rate(part["hit"], part["recording_id"].tolist(), draws(), n_draws)
            rows.append({
                "endpoint": endpoint, "condition": condition, "stratum": name,
                "numerator": int(part["hit"].sum()), "denominator": len(part),
                "value": rate.value, "ci_low": rate.ci_low, "ci_high": rate.ci_high,
                "n_clusters": rate.n_clusters,
            })  # fmt: skip
    columns = ["endpoint", "condition", "stratum", "numerator", "denominator", "value", "ci_low",
               "ci_high", "n_clusters"]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def both_weightings(
    tables: Mapping[str, pd.DataFrame], draws: Draws, n_draws: int
) -> pd.DataFrame:
    """Rate of each endpoint and condition, by item and by conversation (``series``)."""
    rows = []
    for endpoint, own in tables.items():
        for condition, part in own.groupby("condition", sort=False):
            hit, names = part["hit"].to_numpy(float), part["recording_id"].tolist()
            found = {
                "each item once": stats.rate(hit, names, draws(), n_draws),
                "each conversation once": stats.equal_conversation_rate(
                    hit, np.ones_like(hit), names, draws(), n_draws
                ),
            }
            rows += [
                {"endpoint": endpoint, "condition": condition, "series": series,
                 "value": rate.value, "ci_low": rate.ci_low, "ci_high": rate.ci_high}
                for series, rate in found.items()
            ]  # fmt: skip
    columns = ["endpoint", "condition", "series", "value", "ci_low", "ci_high"]
    return pd.DataFrame(rows, columns=columns)
