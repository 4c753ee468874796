"""The five dimensions of leakage (NIST, appendix U) on utterances of any origin.

Unit: a condition, that is one system, pseudo-profile, backend and test set. Pairs of two
versions of one recording are never trials (both sides would hold the same words), an error
rate is never flipped, and a cell without enough data is a row with status
``not_applicable`` and the counts. Privacy values lie in [0, 1], 1 = nothing leaks.

Trials (NIST section 3.2), target against non-target: ``oaoa`` original-anonymised of one
speaker / of two; ``oaoo`` the same targets / two originals; ``oaaa`` the same targets / two
anonymised; ``aaaa`` two anonymised of one speaker, session and pseudo-profile / of two
speakers; ``cross_profile`` one speaker's first pseudo-profile against itself / against the
second one (ours: the same speaker on both sides). Beside them ``oo`` (the reference on
originals), ``lazy`` (enrolment is another pseudo-profile of the same system), ``releases``
(two pseudo-profiles of one and the same recording are linked) and ``auxiliary`` (``oaoa``
with the enrolment from another session).

Functions: :func:`build_trials`, :func:`measure_trials`, :func:`mean_rates`,
:func:`search_identities`, :func:`align_spaces`, :func:`rank_systems`,
:func:`rank_agreement`; the second dimension is :mod:`aegis.attributes`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aegis import leakage
from aegis.attackers import PRETRAINED, Attacker
from aegis.segments import ORIGINAL, Segments
from aegis.stats import NAN, Floats
from aegis.trials import Trials, bootstrap_eer, held_out_costs

IDEAL_EER = {"oaoa": 0.5, "oaoo": 0.5, "oaaa": 0.5, "aaaa": 0.0, "cross_profile": 0.0}
TRIAL_TYPES = tuple(IDEAL_EER)
OTHER_TYPES = ("lazy", "releases", "auxiliary")
MAX_NONTARGETS = 2_000_000
MIN_PAIRS = 20

Codes = NDArray[np.int64]
Rows = list[dict[str, Any]]


# --- verification ------------------------------------------------------------------------


@dataclass(frozen=True)
class _Side:
    rows: Floats
    speaker: Codes
    source: Codes
    recording: Codes
    session: Codes


def build_trials(
    segments: Segments,
    trial_type: str,
    system: str,
    pseudo_profile: int,
    backend: str,
    rng: np.random.Generator,
    attacker: Attacker = PRETRAINED,
) -> Trials:
    """The trials of one type; clusters are the speakers of the enrolment side.

    At most two million non-targets are kept, drawn at random.

    Raises
    ------
    ValueError
        An unknown trial type.
    """
    speakers = tuple(sorted(set(segments.table["speaker"])))
    sides = {
        name: _side(segments, picked, profile, backend, use)
        for name, picked, profile, use in [
            ("o", ORIGINAL, 0, attacker.original),
            ("a", system, pseudo_profile, attacker.anonymised),
            ("b", system, _other_profile(segments, system, pseudo_profile), attacker.anonymised),
        ]
    }
    o, a, b = sides["o"], sides["a"], sides["b"]
    plans = {
        "oo": ((o, o, "target"), (o, o, "other")),
        "oaoa": ((o, a, "target"), (o, a, "other")),
        "oaoo": ((o, a, "target"), (o, o, "other")),
        "oaaa": ((o, a, "target"), (a, a, "other")),
        "aaaa": ((a, a, "inside"), (a, a, "other")),
        "cross_profile": ((a, a, "inside"), (a, b, "target")),
        "lazy": ((b, a, "target"), (b, a, "other")),
        "releases": ((b, a, "recording"), (b, a, "other")),
        "auxiliary": ((o, a, "apart"), (o, a, "other")),
    }
    if trial_type not in plans:
        raise ValueError(f"trial type {trial_type!r}; known: {', '.join(plans)}")
    (left, left_who), (right, right_who) = (_pairs(*plan, rng) for plan in plans[trial_type])
    target = np.concatenate([np.ones(len(left), bool), np.zeros(len(right), bool)])
    names = np.array(speakers, dtype=object)
    who = np.concatenate([left_who, right_who])
    enrol, test = names[who[:, 0]], names[who[:, 1]]
    return Trials(enrol, test, enrol, target, np.concatenate([left, right]), speakers)


def _other_profile(segments: Segments, system: str, pseudo_profile: int) -> int:
    known = segments.table.loc[segments.table["system"] == system, "pseudo_profile"]
    others = sorted(set(map(int, known)) - {pseudo_profile})
    return others[0] if others else -1


def _side(segments: Segments, system: str, profile: int, backend: str, use: Any) -> _Side:
    mask = (segments.table["system"] == system) & (segments.table["pseudo_profile"] == profile)
    at = np.flatnonzero(mask.to_numpy())
    rows = segments.vectors[backend][at]
    codes = [segments.codes(c)[at] for c in ("speaker", "source", "recording", "session")]
    return _Side(use(rows) if len(rows) else rows, *codes)


def _pairs(left: _Side, right: _Side, kind: str, rng: np.random.Generator) -> tuple[Floats, Codes]:
    """Scores and speakers of the pairs of one kind, shapes (n,) and (n, 2)."""
    same = left.speaker[:, None] == right.speaker[None, :]
    apart = left.recording[:, None] != right.recording[None, :]
    mask = {
        "target": same & apart,
        "other": ~same,
        "recording": same & (left.source[:, None] == right.source[None, :]),
        "inside": same & apart & (left.session[:, None] == right.session[None, :]),
        "apart": same & (left.session[:, None] != right.session[None, :])
        & (left.session[:, None] >= 0) & (right.session[None, :] >= 0),
    }[kind]  # fmt: skip
    if left is right:
        mask &= np.triu(np.ones(mask.shape, dtype=bool), 1)
    first, second = np.nonzero(mask)
    if kind == "other" and len(first) > MAX_NONTARGETS:
        kept = np.sort(rng.choice(len(first), MAX_NONTARGETS, replace=False))
        first, second = first[kept], second[kept]
    scores = np.empty(len(first))
    for start in range(0, len(first), 500_000):
        part = slice(start, start + 500_000)
        scores[part] = np.einsum("ij,ij->i", left.rows[first[part]], right.rows[second[part]])
    return scores, np.stack([left.speaker[first], right.speaker[second]], axis=1)


def measure_trials(trials: Trials, seed: int, n_draws: int, costs: bool = False) -> dict[str, Any]:
    """EER with a speaker-clustered interval; with ``costs`` also Cllr, linkability, ZEBRA."""
    n_target = int(trials.target.sum())
    row: dict[str, Any] = {
        "n_target": n_target, "n_nontarget": len(trials.target) - n_target,
        "n_speakers": len(set(trials.enrol)), "eer": NAN, "ci_low": NAN, "ci_high": NAN,
        "status": "not_applicable",
    }  # fmt: skip
    missing = [
        name for name, n in (("target", n_target), ("non-target", row["n_nontarget"])) if not n
    ]
    if missing:
        return row | {"reason": f"no {' and no '.join(missing)} trials"}
    estimate = bootstrap_eer(trials, np.random.default_rng(seed), "higher", n_draws)
    row |= {
        "eer": estimate.value, "ci_low": estimate.ci_low, "ci_high": estimate.ci_high,
        "status": estimate.status, "reason": estimate.reason,
    }  # fmt: skip
    if costs:
        held_out = held_out_costs(trials, np.random.default_rng(seed))
        row |= {name: value for name, value in asdict(held_out).items() if name != "reason"}
    return row


def mean_rates(rates: pd.DataFrame, seed: int, n_draws: int = 10_000) -> pd.DataFrame:
    """Mean EER over conditions by system and trial type (NIST Table 4): an IID bootstrap
    over per-condition EERs, half the width of its 95 % interval."""
    rows: Rows = []
    kept = rates.dropna(subset=["eer"])
    for (system, kind), own in kept.groupby(["system", "trial_type"], sort=False):
        values = own["eer"].to_numpy(dtype=float)
        rng = np.random.default_rng(seed)
        drawn = values[rng.integers(0, len(values), (n_draws, len(values)))].mean(axis=1)
        low, high = np.percentile(drawn, [2.5, 97.5])
        rows.append({
            "system": system, "trial_type": kind, "mean_eer": values.mean(),
            "half_width": (high - low) / 2 if len(values) > 1 else NAN,
            "n_conditions": len(values),
        })  # fmt: skip
    columns = ["system", "trial_type", "mean_eer", "half_width", "n_conditions"]
    return pd.DataFrame(rows, columns=columns)


# --- search ------------------------------------------------------------------------------


def search_identities(
    segments: Segments,
    system: str,
    pseudo_profile: int,
    backend: str,
    seed: int,
    at: Sequence[int] = (1, 5, 10, 20),
    search: leakage.Search = leakage.exact_search,
    n_permutations: int = 200,
) -> pd.DataFrame:
    """CMC@k with the permutation baseline, one row a k.

    The gallery is the first half of each speaker's original sources, probes are the
    anonymised versions of the other half. Speakers with one source are in the gallery only.
    """
    gallery, probes = _halves(segments, system, pseudo_profile)
    shape = {"n_gallery": len(gallery.table), "n_probes": len(probes.table)}
    if not len(probes.table) or gallery.table["speaker"].nunique() < 2:
        reason = "no probes with another source in the gallery, or fewer than two speakers"
        missing = {"value": NAN, "chance": NAN, "chance_low": NAN, "chance_high": NAN}
        status = {"status": "not_applicable", "reason": reason}
        return pd.DataFrame([{"k": k, **missing, **shape, **status} for k in at])
    deepest = min(max(at), len(gallery.table))
    nearest = search(gallery.vectors[backend], probes.vectors[backend], deepest)
    who = (gallery.table["speaker"].to_numpy(object), probes.table["speaker"].to_numpy(object))
    names = {name: index for index, name in enumerate(sorted(set(who[0]) | set(who[1])))}
    held, asked = (np.array([names[name] for name in side]) for side in who)
    rng = np.random.default_rng(seed)
    chance = leakage.permuted_cmc(nearest, held, asked, at, rng, n_permutations)
    hits = held[nearest] == asked[:, None]
    return pd.DataFrame([
        {
            "k": k, "value": float(hits[:, :k].any(axis=1).mean()), "chance": mean,
            "chance_low": low, "chance_high": high, **shape, "status": "ok", "reason": None,
        }
        for k, (mean, low, high) in zip(at, chance, strict=True)
    ])  # fmt: skip


def _halves(segments: Segments, system: str, profile: int) -> tuple[Segments, Segments]:
    original, changed = segments.of(ORIGINAL), segments.of(system, profile)
    tests: set[str] = set()
    for _, own in original.table.groupby("speaker"):
        sources = sorted(set(own["source"]))
        tests |= set(sources[(len(sources) + 1) // 2 :])
    in_test = changed.table["source"].isin(tests)
    return original.where(~original.table["source"].isin(tests)), changed.where(in_test)


# --- structure ---------------------------------------------------------------------------


def align_spaces(
    segments: Segments,
    system: str,
    pseudo_profile: int,
    backend: str,
    seed: int,
    n_permutations: int = 20,
) -> pd.DataFrame:
    """CCA (top 10) and Procrustes between original and anonymised vectors of one source.

    80 % of the speakers fit, the others measure. Spaces are first cut to their leading
    directions, at most a tenth of the fitting pairs (ours: with as many directions as
    pairs every pairing is aligned). ``chance`` breaks the pairing.
    """
    left, right, speakers = _matched(segments, system, pseudo_profile, backend)
    rows: Rows = []
    shape = {"n_pairs": len(left), "n_speakers": len(set(speakers))}
    if len(left) < MIN_PAIRS or shape["n_speakers"] < 5:
        reason = f"{len(left)} pairs of {shape['n_speakers']} speakers; {MIN_PAIRS} and 5 needed"
        missing = {"held_out": NAN, "in_sample": NAN, "chance": NAN, "chance_in_sample": NAN}
        return pd.DataFrame([
            {"method": m, **missing, "dimension": 0, **shape, "status": "not_applicable",
             "reason": reason}
            for m in ("cca", "procrustes")
        ])  # fmt: skip
    rng = np.random.default_rng(seed)
    train = leakage.speaker_split(speakers, 0.8, rng)
    n = int(min(left.shape[1], max(2, train.sum() // 10)))
    left, right = (_cut(side, train, n) for side in (left, right))
    shuffles = [rng.permutation(len(right)) for _ in range(n_permutations)]
    measures = {"cca": leakage.canonical_correlation, "procrustes": leakage.procrustes}
    for method, measure in measures.items():
        found = measure(left, right, train)
        broken = [measure(left, right[order], train) for order in shuffles]
        rows.append({
            "method": method, "held_out": found.held_out, "in_sample": found.in_sample,
            "chance": float(np.mean([b.held_out for b in broken])),
            "chance_in_sample": float(np.mean([b.in_sample for b in broken])),
            "dimension": n, **shape, "status": "ok", "reason": None,
        })  # fmt: skip
    return pd.DataFrame(rows)


def _matched(
    segments: Segments, system: str, profile: int, backend: str
) -> tuple[Floats, Floats, list[str]]:
    original, changed = segments.of(ORIGINAL), segments.of(system, profile)
    at = {source: index for index, source in enumerate(original.table["source"])}
    pairs = [(at[s], i) for i, s in enumerate(changed.table["source"]) if s in at]
    a, b = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    speakers = [str(changed.table["speaker"].iloc[i]) for i in b]
    return original.vectors[backend][a], changed.vectors[backend][b], speakers


def _cut(rows: Floats, train: NDArray[np.bool_], n: int) -> Floats:
    """Coordinates on the ``n`` leading directions of the fitting rows."""
    mean = rows[train].mean(axis=0)
    _, _, axes = np.linalg.svd(rows[train] - mean, full_matrices=False)
    return np.asarray((rows - mean) @ axes[:n].T)


# --- do the metrics agree? ------------------------------------------------------------------


def rank_systems(privacy: Mapping[str, Mapping[str, float]]) -> pd.DataFrame:
    """Ranks of the systems (1 = most private; ties share the mean) by each metric.

    ``privacy`` maps a metric to the value of each system, higher = more private; a system
    without a value in some metric is left out of that metric.
    """
    table = pd.DataFrame({metric: pd.Series(values) for metric, values in privacy.items()})
    return table.rank(ascending=False, method="average")


def rank_agreement(ranks: pd.DataFrame) -> pd.DataFrame:
    """Kendall's tau of each pair of metrics, and the pairs of systems that they order differently.

    NaN with fewer than three systems, or where one metric ranks all alike.
    """
    from scipy.stats import kendalltau

    rows: Rows = []
    for a, b in itertools.combinations(ranks.columns, 2):
        both = ranks[[a, b]].dropna()
        swapped = [
            f"{x} / {y}" for x, y in itertools.combinations(both.index, 2)
            if (both.loc[x, a] - both.loc[y, a]) * (both.loc[x, b] - both.loc[y, b]) < 0
        ]  # fmt: skip
        flat = both[a].nunique() < 2 or both[b].nunique() < 2
        tau = NAN if len(both) < 3 or flat else float(kendalltau(both[a], both[b]).statistic)
        rows.append({
            "metric": a, "other": b, "n_systems": len(both), "kendall_tau": tau,
            "ordered_differently": len(swapped), "pairs": "; ".join(swapped),
        })  # fmt: skip
    columns = ["metric", "other", "n_systems", "kendall_tau", "ordered_differently", "pairs"]
    return pd.DataFrame(rows, columns=columns)
