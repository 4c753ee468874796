"""A second judge on a sample: draw it, take both orders together, compare with the first.

Unit: one sampled fact in one condition. The sample is stratified by the fact's importance,
equal shares where the strata allow it, and drawn from a seed. A label counts only if both
presentation orders give it; kappa is unweighted on facts that both judges labelled,
uncertain being a class of its own. Weighted rates give each stratum its share of all facts.

Functions: :func:`sample_facts`, :func:`second_items`, :func:`consensus`, :func:`kappas`,
:func:`weighted_rows`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from aegis import stats
from aegis.clinical_contrasts import primary
from aegis.contrasts import RENDERERS, Draws
from aegis.work.judge import judge_items

CONDITIONS = ("converted", *RENDERERS)


def sample_facts(facts: pd.DataFrame, n: int, seed: int) -> pd.DataFrame:
    """``n`` facts, strata of equal size as far as they reach; all facts if there are fewer."""
    if len(facts) <= n:
        return facts
    rng = np.random.default_rng(seed)
    groups = {name: own.sort_values("fact_id") for name, own in facts.groupby("importance")}
    take, left = {}, n
    for i, name in enumerate(sorted(groups, key=lambda g: (len(groups[g]), g))):
        take[name] = min(len(groups[name]), left // (len(groups) - i))
        left -= take[name]
    parts = [
        own.iloc[np.sort(rng.choice(len(own), take[name], replace=False))]
        for name, own in groups.items()
    ]
    return pd.concat(parts).sort_values("fact_id")


def second_items(tables: Mapping[str, pd.DataFrame], sample: pd.DataFrame) -> list[dict[str, Any]]:
    """Items of judging that hold the sampled facts only, in three conditions."""
    wanted = set(sample["fact_id"])
    items = []
    for item in judge_items(tables, CONDITIONS):
        claims = [row for row in item["claims"].get("facts", []) if row[0] in wanted]
        if claims:
            items.append(item | {"claims": {"facts": claims}})
    return items


def consensus(verdicts: pd.DataFrame) -> pd.DataFrame:
    """One row a fact and condition; the label is NA unless all orders are valid and agree."""
    rows = []
    for (fact_id, condition), own in verdicts.groupby(["fact_id", "condition"], sort=True):
        labels = set(own["label"].tolist())
        agreed = own["label"].notna().all() and len(labels) == 1
        rows.append(
            {
                "fact_id": fact_id, "condition": condition,
                "recording_id": own["recording_id"].iloc[0],
                "importance": own["importance"].iloc[0],
                "label": own["label"].iloc[0] if agreed else None,
            }
        )  # fmt: skip
    columns = ["fact_id", "condition", "recording_id", "importance", "label"]
    return pd.DataFrame(rows, columns=columns)


def kappas(labels: pd.DataFrame, first: pd.DataFrame) -> pd.DataFrame:
    """Agreement of the two judges by condition, with the reason where kappa is undefined."""
    rows = []
    for condition, own in labels.groupby("condition"):
        other = primary(first, str(condition)).set_index("fact_id")["label"]
        pairs = own.set_index("fact_id")["label"].dropna()
        shared = [i for i in pairs.index if i in other.index and pd.notna(other[i])]
        found = stats.cohen_kappa([str(other[i]) for i in shared], [str(pairs[i]) for i in shared])
        rows.append(
            {
                "condition": condition, "kappa": found.kappa, "agreement": found.agreement,
                "facts": found.n_items, "unobserved": len(own) - len(shared),
                "note": found.reason or "",
            }
        )  # fmt: skip
    return pd.DataFrame(
        rows, columns=["condition", "kappa", "agreement", "facts", "unobserved", "note"]
    )


def weighted_rows(
    labels: pd.DataFrame, population: Mapping[str, int], draws: Draws, n_draws: int
) -> list[dict[str, Any]]:
    """Weighted strict preservation by condition; renderer b minus a, over all and by stratum."""
    seen = labels.dropna(subset=["label"])
    rows = []

    def add(name: str, stratum: str, values: pd.Series, own: pd.DataFrame) -> None:
        strata = own["importance"].astype(str).to_numpy()
        known = {k: n for k, n in population.items() if k in set(strata)}
        clusters = own["recording_id"].astype(str).to_numpy()
        found = stats.stratified_rate(
            values.to_numpy(float), strata, known, clusters, draws(), n_draws
        )
        rows.append(
            {"quantity": name, "stratum": stratum, "estimate": found.value, "ci_low": found.ci_low,
             "ci_high": found.ci_high, "facts": found.n_items, "note": found.reason or ""}
        )  # fmt: skip

    for condition, own in seen.groupby("condition"):
        add(f"preserved, {condition}", "all", (own["label"] == "preserved").astype(float), own)
    sides = [seen[seen["condition"] == name].set_index("fact_id") for name in RENDERERS]
    shared = sides[0].index.intersection(sides[1].index)
    if len(shared):
        a, b = (side.loc[shared] for side in sides)
        gap = (b["label"] == "preserved").astype(float) - (a["label"] == "preserved").astype(float)
        add("renderer b - a", "all", gap, a)
        for stratum, own in a.groupby("importance"):
            add("renderer b - a", str(stratum), gap.loc[own.index], own)
    return rows
