"""Soft biometrics: what an attribute attacker still reads off anonymised speech (SBLS).

Unit: a row is one version of an utterance, a cluster one speaker. The attacker gives a
score for every class of every attribute (sex, age, accent). Privacy values lie in [0, 1],
1 = nothing leaks; classes that a set lacks are left out, attributes that cannot be
attacked are named with the counts. All parts are computed for many resamples of speakers
at once: a draw is a vector of counts over speakers.

Functions: :func:`attack_attributes`, :func:`soft_leakage`, :func:`subgroup_table`,
:func:`aligned_auc`, :func:`weighted_aucs`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aegis import leakage
from aegis.segments import ATTRIBUTES, Segments
from aegis.stats import NAN, Floats, draw_counts

SUBGROUP_WEIGHTS = (0.3, 0.5, 0.7, 0.9)
MIN_CLASS_SPEAKERS = 2

COLUMNS = [
    "set", "quantity", "value", "ci_low", "ci_high", "n_rows", "n_speakers", "attributes",
]  # fmt: skip

Codes = NDArray[np.int64]
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class SoftScores:
    """An attribute attacker's output: classes, true class codes (-1 unknown) and scores.

    ``cluster`` is the speaker of each row. ``skipped`` says why an attribute is absent.
    """

    cluster: Codes
    classes: dict[str, list[str]]
    truth: dict[str, Codes]
    scores: dict[str, Floats]
    skipped: dict[str, str]

    def predictions(self, attribute: str) -> Codes:
        return np.asarray(self.scores[attribute].argmax(axis=1), dtype=np.int64)


def attack_attributes(
    train: Segments, test: Segments, backend: str, attributes: Sequence[str] = ATTRIBUTES
) -> SoftScores:
    """Logistic regression on embeddings of speakers that the tested row does not belong to.

    Speakers that occur on both sides are dealt to five folds: a row is scored by the
    model of the other folds. A class needs two speakers in training and one in the test.
    """
    classes, truth, scores, skipped = {}, {}, {}, {}
    for attribute in attributes:
        known, tested = train.known(attribute), test.known(attribute)
        names = sorted(
            name for name, own in train.table[known].groupby(attribute)
            if own["speaker"].nunique() >= MIN_CLASS_SPEAKERS
        )  # fmt: skip
        present = sorted(set(test.table.loc[tested, attribute]) & set(names))
        if len(present) < 2:
            skipped[attribute] = (
                f"{int(known.sum())} labelled rows with {len(names)} classes to learn from,"
                f" {int(tested.sum())} with {len(present)} of them to attack"
            )
            continue
        usable = known & train.table[attribute].isin(names).to_numpy()
        classes[attribute] = names
        truth[attribute] = np.array(
            [names.index(value) if value in names else -1 for value in test.table[attribute]]
        )
        scores[attribute] = _cross_fitted(train.where(usable), test, backend, attribute, names)
    return SoftScores(test.codes("speaker"), classes, truth, scores, skipped)


def _cross_fitted(
    train: Segments, test: Segments, backend: str, attribute: str, names: list[str]
) -> Floats:
    shared = sorted(set(train.table["speaker"]) & set(test.table["speaker"]))
    fold_of = {name: index % 5 for index, name in enumerate(_by_class(train, attribute, shared))}
    held = test.table["speaker"].map(fold_of).fillna(-1).to_numpy(dtype=int)
    taught = train.table["speaker"].map(fold_of).fillna(-1).to_numpy(dtype=int)
    out = np.zeros((len(test.table), len(names)))
    labels = train.table[attribute].to_numpy(dtype=object)
    for fold in sorted(set(held)):
        use = (taught != fold) | (taught == -1)
        out[held == fold] = _posteriors(
            train.vectors[backend][use], labels[use], test.vectors[backend][held == fold], names
        )
    return out


def _by_class(train: Segments, attribute: str, speakers: list[str]) -> list[str]:
    """Speakers ordered by their class, so that folds hold all classes alike."""
    first = train.table.drop_duplicates("speaker").set_index("speaker")[attribute]
    return sorted(speakers, key=lambda name: (str(first[name]), name))


def _posteriors(rows: Floats, labels: NDArray[Any], tested: Floats, names: list[str]) -> Floats:
    """Class probabilities; a class that the fold's training lacks has probability 0."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    out = np.zeros((len(tested), len(names)))
    known = sorted(set(labels))
    if len(known) < 2:
        out[:, names.index(known[0])] = 1.0
        return out
    logistic = LogisticRegression(C=0.1, class_weight="balanced", max_iter=2_000)
    model = make_pipeline(StandardScaler(), logistic).fit(rows, labels)
    out[:, [names.index(name) for name in model.classes_]] = model.predict_proba(tested)
    return out


def weighted_aucs(scores: Floats, positive: NDArray[np.bool_], weights: Floats) -> Floats:
    """AUC under each row of weights (draws, n), ties counted half; NaN without both classes."""
    order = np.argsort(scores, kind="stable")
    starts = np.flatnonzero(np.diff(scores[order], prepend=-np.inf) != 0)
    hits, others = (
        np.add.reduceat(weights[:, order] * held[order], starts, axis=1)
        for held in (positive.astype(float), (~positive).astype(float))
    )
    below = np.cumsum(others, axis=1) - others
    pairs = hits.sum(axis=1) * others.sum(axis=1)
    wins = (hits * (below + 0.5 * others)).sum(axis=1)
    out: Floats = np.full(len(weights), NAN)
    np.divide(wins, pairs, out=out, where=pairs > 0)
    return out


def _attribute_terms(soft: SoftScores, attribute: str, counts: Floats) -> tuple[Floats, Floats]:
    """Mean one-vs-rest AUC and normalised mutual information in each draw."""
    truth, scores = soft.truth[attribute], soft.scores[attribute]
    kept = truth >= 0
    weights = counts[:, soft.cluster[kept]]
    aucs = [
        weighted_aucs(scores[kept, k], truth[kept] == k, weights)
        for k in range(scores.shape[1]) if (truth == k).any()
    ]  # fmt: skip
    n = scores.shape[1]
    cell = truth[kept] * n + soft.predictions(attribute)[kept]
    flat = np.bincount(
        soft.cluster[kept] * n * n + cell, minlength=counts.shape[1] * n * n
    ).reshape(counts.shape[1], n * n)
    joint = (counts @ flat.astype(float)).reshape(-1, n, n)
    joint = joint / np.maximum(joint.sum(axis=(1, 2), keepdims=True), 1e-300)
    outer = joint.sum(axis=2, keepdims=True) * joint.sum(axis=1, keepdims=True)
    ratio = np.divide(joint, outer, out=np.ones_like(joint), where=joint > 0)
    present = len(set(truth[kept]))
    information = (joint * np.log(ratio)).sum(axis=(1, 2)) / math.log(present)
    return _known_mean(np.stack(aucs)), information


def _known_mean(rows: Floats) -> Floats:
    """Mean over axis 0 of what is not NaN; NaN where nothing is."""
    known = np.isfinite(rows)
    n = known.sum(axis=0)
    out: Floats = np.full(rows.shape[1], NAN)
    np.divide(np.where(known, rows, 0.0).sum(axis=0), n, out=out, where=n > 0)
    return out


def _groups(soft: SoftScores, attributes: Sequence[str]) -> tuple[list[str], Codes, Codes]:
    """Subgroup names, the subgroup of each row (-1 unknown), whether all is predicted right."""
    kept = np.all([soft.truth[name] >= 0 for name in attributes], axis=0)
    right = np.all([soft.predictions(n) == soft.truth[n] for n in attributes], axis=0)
    labels = np.array([
        " ".join(soft.classes[n][soft.truth[n][i]] for n in attributes) if kept[i] else ""
        for i in range(len(kept))
    ])  # fmt: skip
    names = sorted(set(labels) - {""})
    at = {name: index for index, name in enumerate(names)}
    return names, np.array([at.get(label, -1) for label in labels]), right.astype(np.int64)


def _subgroup_rates(soft: SoftScores, attributes: Sequence[str], counts: Floats) -> Floats:
    """Leakage of each subgroup in each draw, shape (draws, groups); NaN where not drawn."""
    names, group, right = _groups(soft, attributes)
    kept = group >= 0
    n_clusters, k = counts.shape[1], len(names)
    place = soft.cluster[kept] * k + group[kept]
    total = np.bincount(place, minlength=n_clusters * k).reshape(n_clusters, k)
    hit = np.bincount(place, right[kept], minlength=n_clusters * k).reshape(n_clusters, k)
    drawn = counts @ total.astype(float)
    out: Floats = np.full(drawn.shape, NAN)
    np.divide(counts @ hit, drawn, out=out, where=drawn > 0)
    return out


def _subgroup_privacy(rates: Floats, weight: float) -> Floats:
    kept = 1.0 - rates
    low, high = np.nanmin(kept, axis=1), np.nanmax(kept, axis=1)
    evenness = np.divide(low, high, out=np.ones_like(low), where=high > 0)
    return np.asarray(weight * low + (1.0 - weight) * evenness)


def _components(soft: SoftScores, attributes: Sequence[str], counts: Floats) -> dict[str, Floats]:
    terms = {name: _attribute_terms(soft, name, counts) for name in attributes}
    demographic = [name for name in attributes if name != "accent"]
    parts = [group for group in (demographic, ["accent"] * ("accent" in attributes)) if group]
    rates = [_subgroup_rates(soft, group, counts) for group in parts]
    excess = [np.maximum(0.0, auc - 0.5) / 0.5 for auc, _ in terms.values()]
    out = {f"auc_{name}": auc for name, (auc, _) in terms.items()}
    out["p_attr"] = 1.0 - np.mean(excess, axis=0)
    out["p_assoc"] = 1.0 - np.mean([shared for _, shared in terms.values()], axis=0)
    out["max_reident"] = np.nanmax(np.hstack(rates), axis=1)
    for weight in SUBGROUP_WEIGHTS:
        privacy = np.mean([_subgroup_privacy(rate, weight) for rate in rates], axis=0)
        out["p_subgroup" if weight == 0.7 else f"p_subgroup_{weight}"] = privacy
    for name, weighting in leakage.WEIGHTINGS.items():
        terms_of = np.stack([out["p_attr"], out["p_assoc"], out["p_subgroup"]])
        out["sbls" if name == "default" else f"sbls_{name}"] = np.asarray(weighting) @ terms_of
    for weight in SUBGROUP_WEIGHTS:
        if weight != 0.7:
            terms_of = np.stack([out["p_attr"], out["p_assoc"], out[f"p_subgroup_{weight}"]])
            out[f"sbls_w{weight}"] = np.asarray(leakage.WEIGHTINGS["default"]) @ terms_of
    return out


def soft_leakage(soft: SoftScores, seed: int, n_draws: int = 1_000) -> pd.DataFrame:
    """SBLS and all its parts with speaker-clustered intervals, one row a quantity.

    Without accent, with accent (``set`` = ``accent``), and the difference of both SBLS on
    the same resamples (``quantity`` = ``accent_difference``).
    """
    base = [name for name in soft.classes if name != "accent"]
    n_clusters = int(soft.cluster.max(initial=-1)) + 1
    if not soft.classes or n_clusters < 2:
        return pd.DataFrame(columns=COLUMNS)
    rng = np.random.default_rng(seed)
    counts = np.concatenate([np.ones((1, n_clusters)), *draw_counts(n_clusters, n_draws, rng)])
    rows: Rows = []
    sbls: dict[str, Floats] = {}
    sets = {"base": base, "accent": [*base, "accent"] if "accent" in soft.classes else []}
    for label, attributes in sets.items():
        if not attributes:
            continue
        values = _components(soft, attributes, counts)
        sbls[label] = values["sbls"]
        kept = np.any([soft.truth[name] >= 0 for name in attributes], axis=0)
        shape = {
            "n_rows": int(kept.sum()), "n_speakers": len(set(soft.cluster[kept])),
            "attributes": " ".join(attributes),
        }  # fmt: skip
        rows += [{"set": label, "quantity": q, **_spread(v), **shape} for q, v in values.items()]
    if len(sbls) == 2:
        row = {"set": "accent", "quantity": "accent_difference", **shape}
        rows.append(row | _spread(sbls["accent"] - sbls["base"]))
    return pd.DataFrame(rows, columns=COLUMNS)


def _spread(values: Floats) -> dict[str, float]:
    """The point value (first draw: everybody once) and the percentiles of the others."""
    drawn = values[1:][np.isfinite(values[1:])]
    low, high = np.percentile(drawn, [2.5, 97.5]) if len(drawn) else (NAN, NAN)
    return {"value": float(values[0]), "ci_low": float(low), "ci_high": float(high)}


def subgroup_table(soft: SoftScores) -> pd.DataFrame:
    """Rows and fully predicted rows of each subgroup (sex x age, and accent)."""
    rows: Rows = []
    base = [name for name in soft.classes if name != "accent"]
    for attributes in (base, ["accent"] * ("accent" in soft.classes)):
        if not attributes:
            continue
        names, group, right = _groups(soft, attributes)
        for index, name in enumerate(names):
            own = group == index
            rows.append({
                "attributes": " ".join(attributes), "subgroup": name,
                "numerator": int(right[own].sum()), "denominator": int(own.sum()),
                "n_speakers": len(set(soft.cluster[own])),
            })  # fmt: skip
    columns = ["attributes", "subgroup", "numerator", "denominator", "n_speakers"]
    return pd.DataFrame(rows, columns=columns)


def aligned_auc(soft: SoftScores, attribute: str) -> tuple[float, float]:
    """Mean AUC as it comes, and after the best renaming of the classes (NIST's text)."""
    truth, scores = soft.truth[attribute], soft.scores[attribute]
    kept, ones = truth >= 0, np.ones((1, int((truth >= 0).sum())))
    means = []
    for order in itertools.permutations(range(scores.shape[1])):
        aucs = [
            weighted_aucs(scores[kept, order[k]], truth[kept] == k, ones)[0]
            for k in sorted(set(truth[kept]))
        ]
        means.append(float(np.mean(aucs)))
    return means[0], max(means)
