"""Attacks at low false-positive rates (VoxGuard, appendix V), with the review's corrections.

Unit: one trial of a membership game. *User privacy*: are two anonymised utterances from
one speaker? A trial compares a probe with ``L`` other utterances of the same speaker
(target) or of another one. *Attribute privacy*: have two speakers the same value of an
attribute? Regime ``strict``: both speakers' utterances say identical texts (needs parallel
text); ``relaxed``: each speaker says own words.

Attackers: ``PT`` (embeddings as they come) and ``FT`` (adapted on anonymised speech of
disjoint training speakers), score ``Avg`` or ``Max`` of the cosines over the enrolment;
both are measured on the same test speakers. Attribute attackers: ``cosine``, and
``logistic`` (posteriors of a regression trained on other speakers).

A threshold is calibrated on one half of the speakers and measured on the other, over many
splits; with fewer than ten negatives in the tail the cell is flagged, not hidden.
``eps_hat`` describes an attack and certifies nothing.

Functions: :func:`draw_user_trials`, :func:`draw_attribute_trials`, :func:`measure_cell`,
:func:`user_privacy`, :func:`attribute_privacy`, :func:`judge_claim`,
:func:`compare_rankings`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aegis import leakage
from aegis.attackers import PRETRAINED, Attacker, fit_attacker, split_speakers
from aegis.attributes import attack_attributes
from aegis.dimensions import rank_agreement, rank_systems
from aegis.error_rates import equal_error_rate
from aegis.segments import ATTRIBUTES, Segments
from aegis.stats import NAN, Floats

FPRS = (1e-2, 1e-3, 1e-4)
LENGTHS = (1, 3, 10, 30, 60, 200)
REGIMES = ("strict", "relaxed")
UNRESOLVED = "not resolvable"
"""Begins the reason of a cell with fewer than ten negatives in the tail."""
N_TRIALS = 100_000
MIN_TRIALS = 40
_BLOCK_CELLS = 4_000_000
_TABLE_ROWS = 5_000

Ints = NDArray[np.integer[Any]]
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Game:
    """Trials as row numbers: ``probe`` (n,), ``enrol`` (n, L); speakers' codes of both."""

    probe: Ints
    enrol: Ints
    target: NDArray[np.bool_]
    enrolled: Ints
    tested: Ints


# --- user privacy ---------------------------------------------------------------------------


def draw_user_trials(
    segments: Segments,
    length: int,
    regime: str,
    rng: np.random.Generator,
    n_trials: int = N_TRIALS,
) -> Game:
    """Balanced trials: each probe once against its own speaker, once against another one.

    ``segments`` are versions of one system and pseudo-profile. In the strict regime the
    other speaker's enrolment has the very texts of the own one, and the probe's text is
    in neither.

    Raises
    ------
    ValueError
        No speaker has ``length + 1`` usable utterances, or no other one matches.
    """
    if regime not in REGIMES:
        raise ValueError(f"regime {regime!r}; known: {', '.join(REGIMES)}")
    strict = regime == "strict"
    grid = _grid(segments, strict)
    counts = (grid >= 0).sum(axis=1)
    able = np.flatnonzero(counts > length)
    if not able.size or len(grid) < 2:
        reason = f"{able.size} of {len(grid)} speakers have {length + 1} usable utterances"
        raise ValueError(reason + (" of a parallel text" if strict else ""))
    n = max(1, n_trials // 2)
    who = rng.choice(able, n)
    other = (who + rng.integers(1, len(grid), n)) % len(grid)
    own, probe_column = _pick_own(grid, who, length, rng, grid[other] if strict else None)
    columns = own if strict else _pick(grid[other] >= 0, length, rng)
    fine = (own >= 0).all(axis=1) & (columns >= 0).all(axis=1) & (probe_column >= 0)
    if not fine.any():
        raise ValueError(f"no two speakers share {length} utterances beside a probe")
    who, other, own, columns = who[fine], other[fine], own[fine], columns[fine]
    probe = grid[who, probe_column[fine]]
    enrol = np.concatenate([grid[who[:, None], own], grid[other[:, None], columns]])
    return Game(
        np.tile(probe, 2), enrol, np.repeat([True, False], len(probe)),
        np.concatenate([who, other]), np.tile(who, 2),
    )  # fmt: skip


def _grid(segments: Segments, strict: bool) -> Ints:
    """Row numbers by speaker and text (strict) or running number; -1 where there is none."""
    table = segments.table.assign(
        row=np.arange(len(segments.table)), who=segments.codes("speaker")
    )
    if strict:
        table = table[segments.known("text")].drop_duplicates(["who", "text"])
        column = pd.factorize(table["text"].astype(str), sort=True)[0]
    else:
        column = table.groupby("who").cumcount().to_numpy()
    names, who = np.unique(table["who"].to_numpy(), return_inverse=True)
    grid = np.full((len(names), int(column.max(initial=-1)) + 1), -1, dtype=np.int32)
    grid[who, column] = table["row"].to_numpy()
    return grid


def _pick_own(
    grid: Ints, who: Ints, length: int, rng: np.random.Generator, other: Ints | None
) -> tuple[Ints, Ints]:
    """Columns of a speaker's enrolment and probe; ``other`` must have spoken the former too."""
    probe = _pick(grid[who] >= 0, 1, rng)[:, 0]
    usable = grid[who] >= 0
    if other is not None:
        usable &= other >= 0
    usable[np.arange(len(who)), probe] = False
    return _pick(usable, length, rng), probe


def _pick(usable: NDArray[np.bool_], n: int, rng: np.random.Generator) -> Ints:
    """``n`` different usable columns of each row at random; -1 where there are fewer."""
    if n > usable.shape[1]:
        return np.full((len(usable), n), -1, dtype=np.int32)
    out = np.empty((len(usable), n), dtype=np.int32)
    block = max(1, _BLOCK_CELLS // max(1, usable.shape[1]))
    for start in range(0, len(usable), block):
        part = usable[start : start + block]
        keys = np.where(part, rng.random(part.shape), np.inf)
        order = np.argpartition(keys, n - 1, axis=1)[:, :n]
        found = np.take_along_axis(keys, order, axis=1)
        out[start : start + block] = np.where(np.isfinite(found), order, -1)
    return out


def score_game(game: Game, rows: Floats, scoring: str) -> Floats:
    """``Avg``: mean cosine of the probe with the enrolment; ``Max``: the largest one."""
    scores = np.empty(len(game.probe))
    # A table of all cosines is cheaper than a product a trial where it fits.
    table = rows @ rows.T if len(rows) <= _TABLE_ROWS else None
    width = game.enrol.shape[1] * (1 if table is not None else rows.shape[1])
    for start in range(0, len(scores), max(1, _BLOCK_CELLS // width)):
        part = slice(start, start + max(1, _BLOCK_CELLS // width))
        probe, enrol = game.probe[part], game.enrol[part]
        if table is not None:
            cosine = table[probe[:, None], enrol]
        else:
            cosine = np.einsum("nd,nld->nl", rows[probe], rows[enrol])
        scores[part] = cosine.max(axis=1) if scoring == "Max" else cosine.mean(axis=1)
    return scores


def measure_cell(
    scores: Floats,
    target: NDArray[np.bool_],
    enrolled: Ints,
    tested: Ints,
    rng: np.random.Generator,
    fprs: Sequence[float] = FPRS,
    n_splits: int = 200,
) -> Rows:
    """EER and the held-out TPR at each FPR, one row an FPR, with what it rests on."""
    base = {
        "eer": equal_error_rate(scores, target), "n_target": int(target.sum()),
        "n_nontarget": int((~target).sum()), "n_speakers": len({*enrolled, *tested}),
    }  # fmt: skip
    try:
        names = [str(code) for code in enrolled], [str(code) for code in tested]
        rates = leakage.calibrated_tpr(scores, target, *names, fprs, rng, n_splits)
    except ValueError as error:
        return [
            {"fpr": fpr, **base, "tpr": NAN, "status": "not_applicable", "reason": str(error)}
            for fpr in fprs
        ]
    return [
        {
            "fpr": rate.nominal_fpr, **base, "tpr": rate.tpr, "ci_low": rate.ci_low,
            "ci_high": rate.ci_high, "realised_fpr": rate.realised_fpr, "eps_hat": rate.eps,
            "eps_lower": rate.eps_lower, "n_tail": rate.n_tail,
            "n_speakers_hit": rate.n_speakers_hit, "n_splits": rate.n_splits,
            "status": "ok" if rate.resolvable else "unknown",
            "reason": None if rate.resolvable else f"{UNRESOLVED}: {rate.n_tail:.2g} in the tail",
        }
        for rate in rates
    ]  # fmt: skip


USER_COLUMNS = [
    "system", "pseudo_profile", "backend", "regime", "attacker", "scoring", "length", "fpr", "eer",
    "tpr", "ci_low", "ci_high", "realised_fpr", "eps_hat", "eps_lower", "n_tail",
    "n_speakers_hit", "n_splits", "n_target", "n_nontarget", "n_speakers", "n_train_speakers",
    "status", "reason",
]  # fmt: skip


def user_privacy(
    segments: Segments,
    system: str,
    backend: str,
    seed: int,
    lengths: Sequence[int] = LENGTHS,
    regimes: Sequence[str] = REGIMES,
    n_trials: int = N_TRIALS,
    n_splits: int = 200,
    fprs: Sequence[float] = FPRS,
    learner: str = "lda",
    pseudo_profile: int = 1,
) -> pd.DataFrame:
    """All cells PT/FT x Avg/Max x length x regime of one system.

    FT learns from the originals and all pseudo-profiles of half of the speakers; every
    cell is measured on the other half.
    """
    rng = np.random.default_rng(seed)
    rows: Rows = []
    labels = {"system": system, "pseudo_profile": pseudo_profile, "backend": backend}
    try:
        train, test = split_speakers(segments, rng)
        adapted = fit_attacker(learner, train, system, backend, seed)
        attackers, refused = {"PT": PRETRAINED, "FT": adapted}, None
    except ValueError as error:
        test, attackers, refused = segments, {"PT": PRETRAINED}, str(error)
    tested = test.of(system, pseudo_profile)
    for regime in regimes:
        for length in lengths:
            cell = {**labels, "regime": regime, "length": length}
            rows += _cells(tested, attackers, cell, rng, n_trials, n_splits, fprs, backend)
            if refused:
                missing = {"attacker": "FT", "status": "not_applicable", "reason": refused}
                rows += [
                    {**cell, "scoring": scoring, "fpr": fpr, **missing}
                    for scoring in ("Avg", "Max") for fpr in fprs
                ]  # fmt: skip
    return pd.DataFrame(rows, columns=USER_COLUMNS)


def _cells(
    tested: Segments,
    attackers: dict[str, Attacker],
    cell: dict[str, Any],
    rng: np.random.Generator,
    n_trials: int,
    n_splits: int,
    fprs: Sequence[float],
    backend: str,
) -> Rows:
    """The cells of one length and regime; one draw of trials serves all attackers."""
    try:
        game = draw_user_trials(tested, cell["length"], cell["regime"], rng, n_trials)
        problem = None
    except ValueError as error:
        game, problem = None, str(error)
    rows: Rows = []
    for name, attacker in attackers.items():
        mapped = attacker.anonymised(tested.vectors[backend]) if game is not None else None
        for scoring in ("Avg", "Max"):
            labels = {
                **cell, "attacker": name, "scoring": scoring,
                "n_train_speakers": attacker.n_speakers,
            }  # fmt: skip
            if game is None or mapped is None:
                missing = {"status": "not_applicable", "reason": problem}
                rows += [{**labels, "fpr": fpr, **missing} for fpr in fprs]
                continue
            scores = score_game(game, mapped, scoring)
            measured = measure_cell(
                scores, game.target, game.enrolled, game.tested, rng, fprs, n_splits
            )
            rows += [{**labels, **row} for row in measured]
    return rows


# --- attribute privacy ----------------------------------------------------------------------


def draw_attribute_trials(
    segments: Segments, attribute: str, regime: str, rng: np.random.Generator, n_trials: int
) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """Balanced pairs of utterances of two speakers; target: same value of the attribute.

    Raises
    ------
    ValueError
        Fewer than two values, or too few pairs of a kind.
    """
    value, who = segments.codes(attribute), segments.codes("speaker")
    text = segments.codes("text")
    usable = np.flatnonzero((value >= 0) & ((text >= 0) | (regime == "relaxed")))
    if len(set(value[usable])) < 2:
        raise ValueError(f"{len(set(value[usable]))} known values of {attribute}")
    halves = []
    for same in (True, False):
        left, right = rng.choice(usable, (2, 8 * n_trials))
        fine = (who[left] != who[right]) & ((value[left] == value[right]) == same)
        if regime == "strict":
            fine &= text[left] == text[right]
        found = np.unique(np.stack([left, right], axis=1)[fine], axis=0)
        halves.append(rng.permutation(found)[: n_trials // 2])
    n = min(map(len, halves))
    if n < MIN_TRIALS // 2:
        raise ValueError(f"{n} pairs with the same or with another {attribute}")
    pairs = np.concatenate([half[:n] for half in halves])
    return pairs[:, 0], pairs[:, 1], np.repeat([True, False], n)


ATTRIBUTE_COLUMNS = [
    "system", "pseudo_profile", "backend", "attribute", "regime", "attacker", "fpr", "accuracy",
    "auc", "eer", "tpr", "ci_low", "ci_high", "realised_fpr", "eps_hat", "eps_lower", "n_tail",
    "n_speakers_hit", "n_splits", "n_target", "n_nontarget", "n_speakers", "status", "reason",
]  # fmt: skip


def attribute_privacy(
    segments: Segments,
    system: str,
    backend: str,
    seed: int,
    attributes: Sequence[str] = ATTRIBUTES,
    regimes: Sequence[str] = REGIMES,
    n_trials: int = 20_000,
    n_splits: int = 200,
    fprs: Sequence[float] = FPRS,
    pseudo_profile: int = 1,
) -> pd.DataFrame:
    """The attribute table: cosine and logistic attackers, both regimes, one row an FPR.

    ``accuracy`` is ``1 - EER`` of the balanced trials, the accuracy at the threshold where
    both errors are equal; ``auc`` is the area under the ROC.
    """
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(seed)
    tested = segments.of(system, pseudo_profile)
    who = tested.codes("speaker")
    rows: Rows = []
    for attribute in attributes:
        soft = attack_attributes(tested, tested, backend, [attribute])
        for regime in regimes:
            cell = {
                "system": system, "pseudo_profile": pseudo_profile, "backend": backend,
                "attribute": attribute, "regime": regime,
            }  # fmt: skip
            try:
                left, right, target = draw_attribute_trials(
                    tested, attribute, regime, rng, n_trials
                )
            except ValueError as error:
                missing = {"status": "not_applicable", "reason": str(error)}
                rows += [
                    {**cell, "attacker": name, "fpr": fpr, **missing}
                    for name in ("cosine", "logistic") for fpr in fprs
                ]  # fmt: skip
                continue
            vectors = tested.vectors[backend]
            scored = {"cosine": np.einsum("ij,ij->i", vectors[left], vectors[right])}
            if attribute in soft.scores:
                posterior = soft.scores[attribute]
                scored["logistic"] = np.einsum("ij,ij->i", posterior[left], posterior[right])
            else:
                missing = {"status": "not_applicable", "reason": soft.skipped[attribute]}
                rows += [{**cell, "attacker": "logistic", "fpr": fpr, **missing} for fpr in fprs]
            for name, scores in scored.items():
                cells = measure_cell(scores, target, who[left], who[right], rng, fprs, n_splits)
                auc = float(roc_auc_score(target, scores))
                rows += [
                    {**cell, "attacker": name, "auc": auc, "accuracy": 1.0 - row["eer"], **row}
                    for row in cells
                ]
    return pd.DataFrame(rows, columns=ATTRIBUTE_COLUMNS)


# --- what follows ---------------------------------------------------------------------------


def judge_claim(cells: pd.DataFrame, fpr: float = 1e-4, floor: float = 0.05) -> dict[str, Any]:
    """The review's test on two cells of one system and length, FT-Max against FT-Avg.

    ``supported``: FT-Max's held-out TPR stays above ``floor`` and its interval lies above
    FT-Avg's. ``not resolvable`` where a cell is absent or has too few tail negatives.
    """
    at = cells[(cells["attacker"] == "FT") & np.isclose(cells["fpr"].astype(float), fpr)]
    picked = {name: own.iloc[0] for name, own in at.groupby("scoring") if name in ("Avg", "Max")}
    if len(picked) < 2 or any(cell["status"] != "ok" for cell in picked.values()):
        counts = [f"FT-{n}: {c['reason'] or 'ok'}" for n, c in picked.items()]
        return {"verdict": "not resolvable", "because": "; ".join(counts) or "no such cells"}
    top, mean = picked["Max"], picked["Avg"]
    fine = top["ci_low"] > floor and top["ci_low"] > mean["ci_high"]
    because = (
        f"FT-Max {100 * top['tpr']:.2f} % ({100 * top['ci_low']:.2f} to"
        f" {100 * top['ci_high']:.2f}), FT-Avg {100 * mean['tpr']:.2f} %"
        f" ({100 * mean['ci_low']:.2f} to {100 * mean['ci_high']:.2f}); EER"
        f" {100 * top['eer']:.1f} and {100 * mean['eer']:.1f} %"
    )
    return {"verdict": "supported" if fine else "not supported", "because": because}


def compare_rankings(cells: pd.DataFrame, fpr: float) -> tuple[pd.DataFrame, str]:
    """Do EER and TPR at an FPR rank the systems differently? Ranks, and a sentence.

    A system's EER and TPR are means over the resolvable cells (condition, backend, regime,
    attacker, scoring, length) that all systems have: its strongest cells are at the ceiling.
    """
    at = cells[np.isclose(cells["fpr"].astype(float), fpr) & (cells["status"] == "ok")]
    keys = ["condition", "backend", "regime", "attacker", "scoring", "length"]
    wide = at.pivot_table(index=keys, columns="system", values=["eer", "tpr"]).dropna()
    n_cells, n_systems = len(wide), at["system"].nunique()
    if n_systems < 2 or not n_cells:
        sentence = (
            f"At FPR {fpr:g} {n_systems} of {cells['system'].nunique()} systems have a resolvable"
            f" cell and {n_cells} cells are common to them, so whether EER and TPR rank them"
            " differently cannot be said."
        )
        return pd.DataFrame(columns=["eer", "tpr"]), sentence
    mean = wide.mean()
    ranks = rank_systems({"eer": mean["eer"].to_dict(), "tpr": (-mean["tpr"]).to_dict()})
    found = rank_agreement(ranks).iloc[0]
    n_pairs = math.comb(n_systems, 2)
    how = "differently" if found["ordered_differently"] else "alike"
    sentence = (
        f"At FPR {fpr:g} EER and TPR, means over {n_cells} common cells, rank {n_systems} systems"
        f" {how}: {found['ordered_differently']} of {n_pairs} pairs change places"
        + (f" ({found['pairs']})." if found["ordered_differently"] else ".")
    )
    return ranks, sentence
