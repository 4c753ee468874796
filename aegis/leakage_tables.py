"""All tables of both leakage studies for any set of utterances and systems.

Unit of each table: the row that its function names. A *condition* is what the segments of
one call have in common (sampling rate and length of a folder's segments, "simulation");
within it everything is measured by system, pseudo-profile, backend and test set, and on
all test sets together (``all``) where there are several. Accent is attacked on the latter
only, as in the paper. The originals go through the same attacks as a control.

Functions: :class:`Settings`, :func:`measure_condition`, :func:`measure_all`,
:func:`stack_all`, :func:`of_condition`, :func:`summarise_systems`, :func:`component_correlations`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from aegis import attributes, dimensions, leakage, low_fpr
from aegis.attackers import LEARNERS, PRETRAINED, Attacker, fit_attacker, split_speakers
from aegis.segments import ATTRIBUTES, ORIGINAL, Segments
from aegis.stats import NAN
from aegis.trials import Trials, eer_difference

ALL = "all"
TABLES = (
    "rates", "attacks", "soft", "subgroups", "search", "structure", "users", "values",
)  # fmt: skip

Rows = list[dict[str, Any]]
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Settings:
    """Sizes of the studies; the papers' values are the defaults where they give one."""

    seed: int = 20261005
    n_draws: int = 2_000
    n_draws_soft: int = 1_000
    n_trials: int = 20_000
    n_splits: int = 200
    lengths: tuple[int, ...] = low_fpr.LENGTHS
    learners: tuple[str, ...] = LEARNERS
    fprs: tuple[float, ...] = low_fpr.FPRS


def measure_condition(
    segments: Segments,
    condition: str,
    settings: Settings,
    search: leakage.Search = leakage.exact_search,
    pool: Segments | None = None,
    tell: Tell = lambda _: None,
    wanted: Sequence[str] = TABLES,
    split: bool = True,
) -> dict[str, pd.DataFrame]:
    """The ``wanted`` tables of one condition, by test set if ``split``.

    ``pool`` are labelled voices for the attribute attacker, disjoint from the tested
    speakers; without it the other speakers' originals teach it.
    """
    found: dict[str, list[pd.DataFrame]] = {name: [] for name in TABLES}
    for test_set, own in _test_sets(segments, split):
        for backend in own.vectors:
            tell(f"{condition}, {test_set}, {backend}")
            place = {"condition": condition, "test_set": test_set, "backend": backend}
            if "rates" in wanted:
                found["rates"].append(_rates(own, place, settings))
            if "attacks" in wanted and test_set == ALL:
                found["attacks"].append(_attacks(own, place, settings))
            if "soft" in wanted:
                for name, table in _soft(own, place, settings, pool).items():
                    found[name].append(table)
            if "search" in wanted:
                look = partial(dimensions.search_identities, search=search)
                found["search"].append(_each(own, place, look, settings.seed))
            if "structure" in wanted:
                found["structure"].append(
                    _each(own, place, dimensions.align_spaces, settings.seed)
                )
    for backend in segments.vectors:
        tell(f"{condition}, low false-positive rates, {backend}")
        play = partial(low_fpr.user_privacy, lengths=settings.lengths)
        for name, game in (("users", play), ("values", low_fpr.attribute_privacy)):
            if name in wanted:
                found[name].append(_low(segments, backend, condition, settings, game))
    return {name: _stack(tables) for name, tables in found.items()}


def measure_all(
    conditions: Mapping[str, Segments],
    settings: Settings,
    search: leakage.Search = leakage.exact_search,
    pool: Segments | None = None,
    tell: Tell = lambda _: None,
) -> dict[str, pd.DataFrame]:
    """The tables of several conditions, one below the other."""
    return stack_all([
        measure_condition(segments, name, settings, search, pool, tell)
        for name, segments in conditions.items() if len(segments.table)
    ])  # fmt: skip


def stack_all(parts: Sequence[Mapping[str, pd.DataFrame]]) -> dict[str, pd.DataFrame]:
    """The tables of several conditions, one below the other."""
    return {name: _stack([part[name] for part in parts]) for name in TABLES}


def of_condition(tables: Mapping[str, pd.DataFrame], condition: str) -> dict[str, pd.DataFrame]:
    """The rows of one condition; tables that were not measured are empty."""
    held = {name: tables.get(name, pd.DataFrame()) for name in TABLES}
    return {
        name: table[table["condition"] == condition] if len(table) else table
        for name, table in held.items()
    }


def _stack(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    filled = [table for table in tables if len(table)]
    return pd.concat(filled, ignore_index=True) if filled else pd.DataFrame()


def _test_sets(segments: Segments, split: bool) -> Iterator[tuple[str, Segments]]:
    """All together, and each set where there are several."""
    yield ALL, segments
    names = sorted(set(segments.table["test_set"].dropna()))
    if split and len(names) > 1:
        for name in names:
            yield str(name), segments.where(segments.table["test_set"] == name)


def _versions(segments: Segments) -> list[tuple[str, int]]:
    """Every (system, pseudo-profile) of the anonymised versions."""
    changed = segments.table[segments.table["system"] != ORIGINAL]
    return sorted({(str(a), int(b)) for a, b in zip(
        changed["system"], changed["pseudo_profile"], strict=True
    )})  # fmt: skip


def _rates(segments: Segments, place: dict[str, Any], settings: Settings) -> pd.DataFrame:
    """Five trial types, two releases and another session; the reference on originals first.

    ``gap_to_original`` is the EER of ``oaoa`` minus the one of originals on the same people.
    """
    originals = _trials(segments, "oo", ORIGINAL, 0, place, settings)
    plan = [(ORIGINAL, 0, "oo")] + [
        (*version, kind)
        for version in _versions(segments)
        for kind in (*dimensions.TRIAL_TYPES, *dimensions.OTHER_TYPES)
    ]
    rows: Rows = []
    for system, profile, kind in plan:
        trials = originals
        if kind != "oo":
            trials = _trials(segments, kind, system, profile, place, settings)
        measured = dimensions.measure_trials(
            trials, settings.seed, settings.n_draws, costs=kind in ("oo", "oaoa")
        )
        if kind == "oaoa":
            measured |= _gap(originals, trials, settings)
        rows.append({
            **place, "system": system, "pseudo_profile": profile, "trial_type": kind, **measured,
            "ideal_eer": dimensions.IDEAL_EER.get(kind, NAN),
        })  # fmt: skip
    return pd.DataFrame(rows)


def _trials(
    segments: Segments, kind: str, system: str, profile: int, place: dict[str, Any],
    settings: Settings,
) -> Trials:  # fmt: skip
    rng = np.random.default_rng(settings.seed)
    return dimensions.build_trials(segments, kind, system, profile, place["backend"], rng)


def _gap(originals: Trials, trials: Trials, settings: Settings) -> dict[str, float]:
    rng = np.random.default_rng(settings.seed)
    gap = eer_difference(originals, trials, rng, "higher", settings.n_draws)
    return {"gap_to_original": gap.value, "gap_low": gap.ci_low, "gap_high": gap.ci_high}


def _attacks(segments: Segments, place: dict[str, Any], settings: Settings) -> pd.DataFrame:
    """What attackers of growing knowledge reach on speakers that none of them learnt from.

    ``gap_to_original`` is the EER minus the one of originals on the same test speakers.
    """
    backend = place["backend"]
    rows: Rows = []
    try:
        train, test = split_speakers(segments, np.random.default_rng(settings.seed))
    except ValueError as error:
        refused = {
            "level": "all", "enrolment": "none", "attacker": "none", "n_target": 0,
            "n_nontarget": 0, "n_speakers": 0, "status": "not_applicable", "reason": str(error),
        }  # fmt: skip
        return pd.DataFrame([
            {**place, "system": a, "pseudo_profile": b, **refused}
            for a, b in _versions(segments)
        ])  # fmt: skip

    def measure(kind: str, system: str, profile: int, attacker: Attacker) -> dict[str, Any]:
        rng = np.random.default_rng(settings.seed)
        trials = dimensions.build_trials(test, kind, system, profile, backend, rng, attacker)
        return dimensions.measure_trials(trials, settings.seed, settings.n_draws, costs=True)

    original = measure("oo", ORIGINAL, 0, PRETRAINED)
    for system, profile in _versions(segments):
        known: list[tuple[str, str, str, Attacker | str]] = [
            ("ignorant", "oaoa", "pretrained", PRETRAINED),
            ("lazy_informed", "lazy", "pretrained", PRETRAINED),
        ]
        for learner in settings.learners:
            fitted = _fit(learner, train, system, backend, settings.seed)
            known.append(("semi_informed", "oaoa", learner, fitted))
            if learner != "inverse":
                known.append(("semi_informed", "lazy", learner, fitted))
        for level, kind, name, attacker in known:
            labels = {
                **place, "system": system, "pseudo_profile": profile, "level": level,
                "enrolment": "original" if kind == "oaoa" else "anonymised", "attacker": name,
            }  # fmt: skip
            if isinstance(attacker, str):
                rows.append({
                    **labels, "n_target": 0, "n_nontarget": 0, "n_speakers": 0,
                    "status": "not_applicable", "reason": attacker,
                })  # fmt: skip
                continue
            row = measure(kind, system, profile, attacker)
            rows.append({
                **labels, "n_train_speakers": attacker.n_speakers,
                "n_train_rows": attacker.n_rows, **row, "eer_original": original["eer"],
                "gap_to_original": row["eer"] - original["eer"],
            })  # fmt: skip
    return pd.DataFrame(rows)


def _fit(learner: str, train: Segments, system: str, backend: str, seed: int) -> Attacker | str:
    try:
        return fit_attacker(learner, train, system, backend, seed)
    except ValueError as error:
        return f"{learner}: {error}"


def _soft(
    segments: Segments, place: dict[str, Any], settings: Settings, pool: Segments | None
) -> dict[str, pd.DataFrame]:
    names = [a for a in ATTRIBUTES if a != "accent" or place["test_set"] == ALL]
    train = pool if pool is not None else segments.of(ORIGINAL)
    found: dict[str, Rows] = {"soft": [], "subgroups": []}
    for system, profile in [(ORIGINAL, 0), *_versions(segments)]:
        labels = {**place, "system": system, "pseudo_profile": profile}
        soft = attributes.attack_attributes(
            train, segments.of(system, profile), place["backend"], names
        )
        table = attributes.soft_leakage(soft, settings.seed, settings.n_draws_soft)
        found["soft"] += [
            {**labels, **row, "status": "ok", "reason": None} for row in table.to_dict("records")
        ]
        found["soft"] += [
            {
                **labels, "set": "accent" if name == "accent" else "base",
                "quantity": f"auc_{name}", "attributes": name, "status": "not_applicable",
                "reason": why,
            }
            for name, why in soft.skipped.items()
        ]  # fmt: skip
        groups = attributes.subgroup_table(soft)
        found["subgroups"] += [{**labels, **row} for row in groups.to_dict("records")]
        found["soft"] += [
            {
                **labels, "set": "accent" if name == "accent" else "base",
                "quantity": f"aligned_auc_{name}",
                "value": attributes.aligned_auc(soft, name)[1], "attributes": name, "status": "ok",
            }
            for name in soft.classes
        ]  # fmt: skip
    return {name: pd.DataFrame(rows) for name, rows in found.items()}


def _each(
    segments: Segments,
    place: dict[str, Any],
    measure: Callable[..., pd.DataFrame],
    *arguments: Any,
) -> pd.DataFrame:
    """One measure for every system and pseudo-profile, its rows labelled."""
    tables = []
    for system, profile in _versions(segments):
        table = measure(segments, system, profile, place["backend"], *arguments)
        labels = {**place, "system": system, "pseudo_profile": profile}
        tables.append(table.assign(**labels)[[*labels, *table.columns]])
    return _stack(tables)


def _low(
    segments: Segments,
    backend: str,
    condition: str,
    settings: Settings,
    measure: Callable[..., pd.DataFrame],
) -> pd.DataFrame:
    tables = [
        measure(
            segments, system, backend, settings.seed, n_trials=settings.n_trials,
            n_splits=settings.n_splits, fprs=settings.fprs, pseudo_profile=profile,
        )
        for system, profile in [(ORIGINAL, 0), *_versions(segments)] if profile < 2
    ]  # fmt: skip
    stacked = _stack(tables)
    return stacked.assign(condition=condition)[["condition", *stacked.columns]]


# --- across systems -------------------------------------------------------------------------


def summarise_systems(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """One row a system, one column a metric, higher = more private; means over all cells.

    Metrics: EER of ``oaoa``, of the strongest learned attack, SBLS, one minus CMC@1, one
    minus the held-out CCA, one minus the strongest TPR at FPR 1 %. ``consistency`` is one
    minus the EER of ``aaaa`` (1 = a pseudo-voice is always recognised).
    """
    rates, attacks = tables["rates"], tables["attacks"]
    columns: dict[str, pd.Series] = {}
    if len(rates):
        whole = rates[rates["test_set"] == ALL].dropna(subset=["eer"])
        by = whole.pivot_table("eer", "system", "trial_type")
        for name, kind in (("eer_oaoa", "oaoa"), ("eer_aaaa", "aaaa")):
            if kind in by:
                columns[name] = by[kind]
        if "eer_aaaa" in columns:
            columns["consistency"] = 1.0 - columns.pop("eer_aaaa")
    if "eer" in attacks:
        learned = attacks[(attacks["level"] == "semi_informed") & (attacks["test_set"] == ALL)]
        columns["eer_learned"] = learned.dropna(subset=["eer"]).groupby("system")["eer"].min()
    columns |= _privacy_columns(tables)
    table = pd.DataFrame(columns)
    return table.drop(index=[ORIGINAL], errors="ignore").dropna(how="all")


def _privacy_columns(tables: Mapping[str, pd.DataFrame]) -> dict[str, pd.Series]:
    columns: dict[str, pd.Series] = {}
    soft, search, structure, users = (
        tables[name] for name in ("soft", "search", "structure", "users")
    )
    if len(soft) and "value" in soft:
        own = soft[(soft["quantity"] == "sbls") & (soft["set"] == "base")]
        columns["sbls"] = own[own["test_set"] == ALL].groupby("system")["value"].mean()
    if len(search):
        own = search[(search["k"] == 1) & (search["test_set"] == ALL)].dropna(subset=["value"])
        columns["not_found_at_1"] = 1.0 - own.groupby("system")["value"].mean()
    if len(structure):
        own = structure[(structure["method"] == "cca") & (structure["test_set"] == ALL)]
        own = own.dropna(subset=["held_out"])
        columns["cca_not_aligned"] = 1.0 - own.groupby("system")["held_out"].mean()
    if len(users):
        own = users[np.isclose(users["fpr"].astype(float), 1e-2) & (users["status"] == "ok")]
        columns["tpr_1e-2_missed"] = 1.0 - own.groupby("system")["tpr"].max()
    return columns


def component_correlations(soft: pd.DataFrame, with_accent: bool = False) -> pd.DataFrame:
    """Pearson and Spearman of the SBLS components over systems (originals among them).

    ``decidable`` is false for a rank correlation where a component has ties: any order of
    the tied systems would do.
    """
    from scipy.stats import pearsonr, spearmanr

    columns = ["component", "other", "n_systems", "pearson", "spearman", "decidable"]
    if not len(soft) or "value" not in soft:
        return pd.DataFrame(columns=columns)
    own = soft[(soft["set"] == ("accent" if with_accent else "base")) & (soft["test_set"] == ALL)]
    table = own.pivot_table("value", "system", "quantity")
    rows: Rows = []
    names = [n for n in ("p_attr", "p_assoc", "p_subgroup") if n in table]
    for index, a in enumerate(names):
        for b in names[index + 1 :]:
            both = table[[a, b]].dropna()
            varied = all(len(set(both[name])) > 1 for name in (a, b))
            enough = len(both) > 2 and varied
            rows.append({
                "component": a, "other": b, "n_systems": len(both),
                "pearson": float(pearsonr(both[a], both[b]).statistic) if enough else NAN,
                "spearman": float(spearmanr(both[a], both[b]).statistic) if enough else NAN,
                "decidable": bool(both[a].is_unique and both[b].is_unique),
            })  # fmt: skip
    return pd.DataFrame(rows, columns=columns)
