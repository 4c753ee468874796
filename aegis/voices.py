"""Which pseudo-voice each profile gets (pi): vectors, retrieval, ranking, assignment.

Units: a *profile* is one speaker of one recording, a *unit* one reference voice of the
pool. Vectors are rows, unit-norm, centred on the mean of a cohort that is disjoint from
corpus and pool; ``d(x, y) = 1 - <x, y>``. Profiles and units are handled in the order of
their ids, so equal scores are decided by ``voice_id``. Distances may fall short of a
threshold by ``TOLERANCE`` (rounding of single precision), by no more.

Functions: :func:`unit_norm`, :func:`centre`, :func:`cohort_centre`,
:func:`describe_backends`, :func:`match_traits`, :func:`speakable_units`,
:func:`retrieve`, :func:`rank`, :func:`assign`, :func:`assign_profiles`,
:func:`compare_settings`.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from aegis.errors import ManifestError
from aegis.tables import PROJECT

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

COHORT = PROJECT / "data_manifests" / "cohort"
GRID_SOURCE = (0.60, 0.65, 0.70, 0.75)
GRID_TARGET = (0.55, 0.60, 0.65, 0.70)
TOLERANCE = 1e-6
TRAIT_WEIGHTS = {"language": 1.0, "native_english": 1.0, "accent": 1.0, "gender_presentation": 1.0}
"""Traits that may be known of both a speaker and a unit, and their weights (ours)."""


@dataclass(frozen=True)
class Rules:
    """Thresholds of the assignment; the defaults are the paper's, ``distance_weight`` ours."""

    k: int = 75
    min_source_distance: float = 0.70
    min_target_distance: float = 0.65
    distance_weight: float = 0.5
    node_budget: int = 10_000


@dataclass(frozen=True)
class Outcome:
    """A conversation's assignment: a unit for each speaker, or why there is none."""

    units: tuple[int, ...] | None
    n_nodes: int
    reason: str | None = None


# --- vectors --------------------------------------------------------------------------------


def unit_norm(vectors: ArrayLike) -> Floats:
    """Rows of length 1; a row that is zero, NaN or infinite becomes NaN."""
    rows = np.asarray(vectors, dtype=np.float64)
    length = np.linalg.norm(rows, axis=-1, keepdims=True)
    usable = np.isfinite(length) & (length > 0)
    return np.where(usable, rows / np.where(usable, length, 1.0), np.nan)


def centre(vectors: ArrayLike, cohort_mean: ArrayLike) -> Floats:
    """Normalise, take the cohort's mean off, normalise again."""
    return unit_norm(unit_norm(vectors) - np.asarray(cohort_mean, dtype=np.float64))


@lru_cache(maxsize=8)
def read_cohort(backend: str, folder: Path = COHORT) -> dict[str, Any]:
    """The cohort file of a backend: ``mean``, ``cohort``, ``n_voices``, provenance.

    Raises
    ------
    ManifestError
        There is none, or its mean is not finite.
    """
    path = folder / f"{backend}.json"
    if not path.exists():
        raise ManifestError(f"{path}: no cohort for {backend!r}; scripts/build_cohort.py makes it")
    content: dict[str, Any] = json.loads(path.read_text("utf-8"))
    if not np.isfinite(np.asarray(content.get("mean", [np.nan]), dtype=float)).all():
        raise ManifestError(f"{path}: mean is absent or not finite")
    return content


def cohort_centre(backend: str) -> Floats:
    """Mean of the cohort's unit-norm window embeddings for a backend."""
    return np.asarray(read_cohort(backend)["mean"], dtype=np.float64)


def describe_backends(
    profile_vectors: pd.DataFrame, unit_vectors: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """How far people lie apart, by encoder, over all pairs of a profile and a unit.

    Parameters
    ----------
    profile_vectors, unit_vectors
        Tables ``profile_embeddings`` and ``voice_embeddings``. No unit is spoken by a
        person of the corpus, so each pair is a pair of different people.

    Returns
    -------
    (backend_distances, pairs)
        The table, and one row a pair with ``backend`` and ``distance``.
    """
    rows, pairs = [], []
    for backend in sorted(set(unit_vectors["backend"]) | set(profile_vectors["backend"])):
        left, right = (
            np.array(table.loc[table["backend"] == backend, "vector"].tolist(), dtype=float)
            for table in (profile_vectors, unit_vectors)
        )
        distances = (1.0 - left @ right.T).ravel() if left.size and right.size else np.zeros(0)
        cohort = read_cohort(backend)
        rows.append({
            "backend": backend, "n_pairs": distances.size,
            "share_over_070": _share(distances, 0.70), "share_over_065": _share(distances, 0.65),
            "median_distance": float(np.median(distances)) if distances.size else None,
            "cohort": cohort["cohort"], "n_cohort": cohort["n_voices"],
        })  # fmt: skip
        pairs.append(pd.DataFrame({"backend": backend, "distance": distances}))
    return pd.DataFrame(rows), pd.concat(pairs, ignore_index=True)


def _share(distances: Floats, threshold: float) -> float | None:
    return float((distances >= threshold - TOLERANCE).mean()) if distances.size else None


# --- eligibility and ranking ----------------------------------------------------------------


def speakable_units(
    languages: Sequence[str | None],
    units: pd.DataFrame,
    min_native: int,
    native_english: Sequence[bool | None] | None = None,
) -> tuple[Mask, dict[str, int]]:
    """Which eligible units speak a profile's language: mask (profiles, units).

    Native speakers of the language only; where there are fewer than ``min_native`` of
    them, units flagged ``native=no`` in ``traits`` are admitted too. A source known to be
    a native or non-native speaker of English takes units of its kind.

    Returns
    -------
    (mask, admitted)
        ``admitted`` counts the non-native units by language, 0 where none were needed.
    """
    eligible = units["eligible"].fillna(False).to_numpy(bool)
    native = np.array([read_traits(text).get("native") != "no" for text in units["traits"]], bool)
    spoken = units["language"].to_numpy(object)
    english = units["native_english"].astype("boolean")
    masks, admitted = {}, {}
    for language in sorted({str(name) for name in languages if isinstance(name, str)}):
        speaks = eligible & (spoken == language)
        short = int((speaks & native).sum()) < min_native
        masks[language] = speaks if short else speaks & native
        admitted[language] = int((speaks & ~native).sum()) if short else 0
    nobody = np.zeros(len(units), dtype=bool)
    rows = [masks.get(str(name), nobody) for name in languages]
    mask = np.stack(rows) if rows else np.zeros((0, len(units)), dtype=bool)
    for row, known in enumerate(native_english or []):
        if languages[row] == "en" and isinstance(known, bool | np.bool_):
            mask[row] &= (english == known).fillna(False).to_numpy(bool)
    return mask, admitted


def read_traits(text: object) -> dict[str, str]:
    """Parse ``"native=no;f0_ratio=0.9"``; a missing value has no traits."""
    parts = text.split(";") if isinstance(text, str) else []
    return {
        key.strip(): value.strip() for key, _, value in (p.partition("=") for p in parts) if key
    }


def match_traits(
    profiles: pd.DataFrame, units: pd.DataFrame, weights: Mapping[str, float] | None = None
) -> Floats:
    """T: weighted share of equal traits among those known of both; none in common gives 0.

    A trait is a column; missing values and ``"unknown"`` are not known. Shape
    (profiles, units), values in [0, 1].
    """
    weights = TRAIT_WEIGHTS if weights is None else weights
    matched = np.zeros((len(profiles), len(units)))
    known = np.zeros_like(matched)
    for trait, weight in weights.items():
        if trait not in profiles.columns or trait not in units.columns:
            continue
        codes = pd.factorize(pd.concat([profiles[trait], units[trait]]).astype(object))[0]
        values = pd.concat([profiles[trait], units[trait]]).astype(object)
        codes = np.where(values.isin(["unknown", ""]).to_numpy(), -1, codes)
        left, right = codes[: len(profiles), None], codes[None, len(profiles) :]
        both = (left >= 0) & (right >= 0)
        known += weight * both
        matched += weight * (both & (left == right))
    return np.divide(matched, known, out=np.zeros_like(matched), where=known > 0)


def retrieve(
    profiles: Floats, units: Floats, allowed: Mask, k: int, min_distance: float
) -> list[tuple[Ints, Floats]]:
    """FAISS inner-product retrieval of each profile's ``k`` nearest eligible units.

    Parameters
    ----------
    profiles, units
        Centred unit-norm rows; a NaN row is never found and finds nothing.
    allowed
        Mask (profiles, units) of what quality and language admit.
    min_distance
        Least ``d(s, v)``.

    Returns
    -------
    list
        For each profile, unit positions and their distances, nearest first.
    """
    import faiss

    known = np.flatnonzero(np.isfinite(units).all(axis=1) & allowed.any(axis=0))
    index = faiss.IndexFlatIP(units.shape[1])
    index.add(np.ascontiguousarray(units[known], dtype=np.float32))
    nothing = (np.zeros(0, dtype=np.int64), np.zeros(0))
    found = [nothing] * len(profiles)
    todo = np.flatnonzero(np.isfinite(profiles).all(axis=1)) if known.size else np.zeros(0, int)
    width = min(4 * k, known.size)
    while todo.size:
        queries = np.ascontiguousarray(profiles[todo], dtype=np.float32)
        similarities, positions = index.search(queries, width)
        unfinished = []
        for row, similarity, position in zip(todo, similarities, positions, strict=True):
            # FAISS pads with -1, which would pick the last unit of the pool.
            real = position >= 0
            unit, distance = known[position[real]], 1.0 - similarity[real].astype(np.float64)
            keep = allowed[row, unit] & (distance >= min_distance - TOLERANCE)
            order = np.lexsort((unit[keep], distance[keep]))[:k]
            unit, kept = unit[keep][order], distance[keep][order]
            cut_inside_a_tie = len(kept) == k and distance[-1] <= kept[-1]
            if width < known.size and (len(kept) < k or cut_inside_a_tie):
                unfinished.append(row)
            found[row] = (unit.astype(np.int64), kept)
        todo, width = np.array(unfinished, dtype=int), min(4 * width, known.size)
    return found


def rank(
    units: Ints, distances: Floats, traits: Floats, distance_weight: float
) -> tuple[Ints, Floats]:
    """Order candidates by ``w d / 2 + (1 - w) T``, best first; ties by position (voice_id).

    ``traits`` is the profile's row of :func:`match_traits`.
    """
    score = distance_weight * distances / 2 + (1 - distance_weight) * traits[units]
    order = np.lexsort((units, -np.round(score, 9)))
    return units[order], score[order]


# --- assignment -----------------------------------------------------------------------------


def assign(
    candidates: Sequence[Ints],
    vectors: Floats,
    min_target_distance: float,
    node_budget: int,
    taken: Sequence[int] = (),
) -> Outcome:
    """Give each speaker its best unused unit, depth first, with backtracking.

    Parameters
    ----------
    candidates
        One ranked list of units a speaker, in speaker order.
    vectors
        Unit vectors by position.
    node_budget
        How many placements may be tried.
    taken
        Units that the conversation already uses: neither reused nor approached.

    Returns
    -------
    Outcome
        The first feasible combination in ranked order; otherwise the binding constraint.
    """
    used, n_nodes = list(taken), 0
    queues = [_free(candidates[0], used, vectors, min_target_distance)] if candidates else []
    while len(used) - len(taken) < len(candidates):
        if not queues[-1]:
            queues.pop()
            if not queues:
                return Outcome(None, n_nodes, _binding(candidates, min_target_distance, taken))
            used.pop()
            continue
        if n_nodes == node_budget:
            return Outcome(None, n_nodes, f"node budget of {node_budget} placements exhausted")
        used.append(queues[-1].pop(0))
        n_nodes += 1
        if len(used) - len(taken) < len(candidates):
            following = candidates[len(used) - len(taken)]
            queues.append(_free(following, used, vectors, min_target_distance))
    return Outcome(tuple(used[len(taken) :]), n_nodes)


def _free(units: Ints, used: Sequence[int], vectors: Floats, min_distance: float) -> list[int]:
    """Candidates that are unused and far enough from all used ones, in their order."""
    if not used:
        return [int(unit) for unit in units]
    near = vectors[units] @ vectors[list(used)].T
    ok = (1.0 - near >= min_distance - TOLERANCE).all(axis=1) & ~np.isin(units, used)
    return [int(unit) for unit in units[ok]]


def _binding(candidates: Sequence[Ints], min_target_distance: float, taken: Sequence[int]) -> str:
    """Reuse binds if even without distances the speakers outnumber their units (Hall)."""
    owner: dict[int, int] = {}

    def place(speaker: int, seen: set[int]) -> bool:
        for unit in map(int, candidates[speaker]):
            if unit in seen or unit in taken:
                continue
            seen.add(unit)
            if unit not in owner or place(owner[unit], seen):
                owner[unit] = speaker
                return True
        return False

    if all(place(speaker, set()) for speaker in range(len(candidates))):
        return f"target-target distance >= {min_target_distance:.2f}: no combination satisfies it"
    return "no reuse within a conversation: too few eligible units for its speakers"


@dataclass(frozen=True)
class Pool:
    """What an assignment reads, in the order of profile_id and voice_id.

    ``allowed`` and ``traits`` have shape (profiles, units); ``profiles`` has the columns
    profile_id, recording_id, speaker, language, status, reason.
    """

    profiles: pd.DataFrame
    units: pd.DataFrame
    profile_vectors: Floats
    unit_vectors: Floats
    allowed: Mask
    traits: Floats
    admitted: Mapping[str, int]


def prepare(
    profiles: pd.DataFrame,
    units: pd.DataFrame,
    profile_vectors: Mapping[str, ArrayLike],
    unit_vectors: Mapping[str, ArrayLike],
    rules: Rules,
) -> Pool:
    """Put tables and vectors (by id) in order, and judge what a profile may take.

    A profile or unit without a vector keeps its row; its vector is NaN.
    """
    profiles = profiles.sort_values("profile_id").reset_index(drop=True)
    units = units.sort_values("voice_id").reset_index(drop=True)
    width = next((len(np.asarray(v)) for v in [*unit_vectors.values()]), 1)
    gone = np.full(width, np.nan)
    known_of = ((profile_vectors, profiles["profile_id"]), (unit_vectors, units["voice_id"]))
    rows = [
        np.array([unit_norm(table.get(name, gone)) for name in names]).reshape(-1, width)
        for table, names in known_of
    ]
    known = profiles["native_english"].tolist() if "native_english" in profiles else None
    languages = [name if isinstance(name, str) else None for name in profiles["language"]]
    allowed, admitted = speakable_units(languages, units, rules.k, known)
    traits = match_traits(profiles, units)
    return Pool(profiles, units, rows[0], rows[1], allowed, traits, admitted)


def vectors_of(table: pd.DataFrame, key: str, backend: str) -> dict[str, Floats]:
    """Vectors of one backend by ``profile_id`` or ``voice_id``, from an embeddings table."""
    own = table[table["backend"] == backend]
    return {
        str(name): np.asarray(vector, dtype=np.float64)
        for name, vector in zip(own[key], own["vector"], strict=True)
    }


def find_candidates(pool: Pool, rules: Rules) -> list[tuple[Ints, Floats, Floats]]:
    """Each profile's ranked candidates: unit positions, distances, scores."""
    found = retrieve(
        pool.profile_vectors, pool.unit_vectors, pool.allowed, rules.k, rules.min_source_distance
    )
    out = []
    for row, (units, distances) in enumerate(found):
        ranked, score = rank(units, distances, pool.traits[row], rules.distance_weight)
        place = dict(zip(units.tolist(), distances.tolist(), strict=True))
        out.append((ranked, np.array([place[unit] for unit in ranked.tolist()]), score))
    return out


def assign_profiles(
    pool: Pool, rules: Rules, n_pseudo_profiles: int = 1
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Tables ``assignments`` and ``assignment_summary``.

    A second pseudo-profile is assigned after the first, which it does not change, and
    takes no unit of it. A profile that cannot have a voice fails alone; where the
    speakers together cannot be served, all of them fail.
    """
    candidates = find_candidates(pool, rules)
    rows: list[dict[str, Any]] = []
    summary: list[dict[str, Any]] = []
    for recording, members in pool.profiles.groupby("recording_id", sort=True).groups.items():
        taken: list[int] = []
        for turn in range(1, n_pseudo_profiles + 1):
            able = [row for row in members if len(candidates[row][0])]
            lists = [candidates[row][0] for row in able]
            outcome = assign(
                lists, pool.unit_vectors, rules.min_target_distance, rules.node_budget, taken
            )
            chosen = dict(zip(able, outcome.units or (), strict=False))
            new = [
                _assigned(pool, rules, candidates, row, turn, chosen, outcome) for row in members
            ]
            rows += new
            summary.append(_summarise(pool, str(recording), turn, new, outcome, chosen))
            taken += list(chosen.values())
    return pd.DataFrame(rows), pd.DataFrame(summary)


def _assigned(
    pool: Pool,
    rules: Rules,
    candidates: Sequence[tuple[Ints, Floats, Floats]],
    row: int,
    pseudo_profile: int,
    chosen: Mapping[int, int],
    outcome: Outcome,
) -> dict[str, Any]:
    profile = pool.profiles.loc[row]
    ranked, distances, scores = candidates[row]
    near = pool.unit_vectors @ pool.profile_vectors[row]
    far = (1.0 - near >= rules.min_source_distance - TOLERANCE) & pool.allowed[row]
    out: dict[str, Any] = {
        "profile_id": profile["profile_id"], "pseudo_profile": pseudo_profile,
        "recording_id": profile["recording_id"], "speaker": profile["speaker"],
        "voice_id": None, "distance": None, "score": None, "rank": None,
        "n_candidates": len(ranked), "n_eligible": int(far.sum()),
        "status": "failed", "reason": None,
    }  # fmt: skip
    if row in chosen:
        at = int(np.flatnonzero(ranked == chosen[row])[0])
        return out | {
            "voice_id": pool.units.loc[chosen[row], "voice_id"], "distance": float(distances[at]),
            "score": float(scores[at]), "rank": at + 1, "status": "ok",
        }  # fmt: skip
    out["reason"] = outcome.reason if len(ranked) else _no_candidate(pool, rules, row)
    return out


def _no_candidate(pool: Pool, rules: Rules, row: int) -> str:
    """Why a profile has no candidate at all."""
    profile = pool.profiles.loc[row]
    if profile["status"] != "ok" or not np.isfinite(pool.profile_vectors[row]).all():
        return f"no profile embedding ({profile['reason']})"
    if not pool.units["eligible"].fillna(False).any():
        return "unit quality: no unit of the pool is eligible"
    if not pool.allowed[row].any():
        return f"language {profile['language']!r}: no eligible unit of the pool speaks it"
    n = int(pool.allowed[row].sum())
    return f"source distance >= {rules.min_source_distance:.2f}: none of {n} eligible units has it"


def _summarise(
    pool: Pool,
    recording: str,
    pseudo_profile: int,
    rows: Sequence[Mapping[str, Any]],
    outcome: Outcome,
    chosen: Mapping[int, int],
) -> dict[str, Any]:
    units = pool.unit_vectors[list(chosen.values())]
    apart = (1.0 - units @ units.T)[np.triu_indices(len(units), 1)]
    done = [row for row in rows if row["status"] == "ok"]
    reasons = sorted({str(row["reason"]) for row in rows if row["status"] != "ok"})
    return {
        "recording_id": recording, "pseudo_profile": pseudo_profile, "n_profiles": len(rows),
        "n_assigned": len(done), "n_nodes": outcome.n_nodes,
        "min_source_distance": min((row["distance"] for row in done), default=None),
        "min_target_distance": float(apart.min()) if apart.size else None,
        "status": "ok" if not reasons else "failed", "reason": "; ".join(reasons) or None,
    }  # fmt: skip


def compare_settings(pool: Pool, settings: Sequence[Rules]) -> pd.DataFrame:
    """What each setting admits and decides, beside the first one's decisions.

    Retrieval and ranking are shared by settings with the same source distance.

    Returns
    -------
    DataFrame
        One row a setting: ``n_admissible`` units of the median profile and
        ``least_admissible`` of the poorest, ``n_assigned`` profiles, ``n_infeasible``
        profiles without a voice, ``binding`` the constraints that caused it, and
        ``n_changed`` profiles whose voice is not that of the first setting.
    """
    ranked: dict[Rules, list[tuple[Ints, Floats, Floats]]] = {}
    groups = [
        list(rows) for _, rows in sorted(pool.profiles.groupby("recording_id").groups.items())
    ]
    distances = 1.0 - pool.profile_vectors @ pool.unit_vectors.T
    rows, primary = [], None
    for rules in settings:
        key = replace(rules, min_target_distance=0.0, node_budget=0)
        if key not in ranked:
            ranked[key] = find_candidates(pool, rules)
        units = np.full(len(pool.profiles), -1)
        reasons: set[str] = set()
        for members in groups:
            able = [row for row in members if len(ranked[key][row][0])]
            reasons |= {_no_candidate(pool, rules, row) for row in set(members) - set(able)}
            lists = [ranked[key][row][0] for row in able]
            outcome = assign(
                lists, pool.unit_vectors, rules.min_target_distance, rules.node_budget
            )
            if outcome.units is not None:
                units[able] = outcome.units
            else:
                reasons.add(str(outcome.reason))
        far = (distances >= rules.min_source_distance - TOLERANCE) & pool.allowed
        admissible = far.sum(axis=1) if len(far) else np.zeros(1)
        primary = units if primary is None else primary
        rows.append({
            "min_source_distance": rules.min_source_distance,
            "min_target_distance": rules.min_target_distance,
            "n_profiles": len(units), "n_admissible": float(np.median(admissible)),
            "least_admissible": int(admissible.min()), "n_assigned": int((units >= 0).sum()),
            "n_infeasible": int((units < 0).sum()), "binding": "; ".join(sorted(reasons)) or None,
            "n_changed": int((units != primary).sum()),
        })  # fmt: skip
    return pd.DataFrame(rows)


def setting_grid(primary: Rules) -> list[Rules]:
    """Sixteen settings, the primary first (a 4 x 4 grid of the two distances: ours).

    A primary off the grid stands in front of all sixteen.
    """
    pairs = itertools.product(GRID_SOURCE, GRID_TARGET)
    others = [replace(primary, min_source_distance=a, min_target_distance=b) for a, b in pairs]
    return [primary] + [rules for rules in others if rules != primary]
