"""Tables of the linkage study: who is eligible, which trials, which error rates.

Four protocols share one form. ``final`` enrols the original recording and tests a
reconstruction of it; ``shared`` enrols every original profile and tests every profile's
converted turns. Beside each stands the same set of trials with original speech on both
sides (``final_original``, ``shared_original``): one half of a profile's windows enrols,
the other half is tested, so no sample is on both sides. For edited regions the other
turns enrol. An anonymised error rate means nothing without that one.

Enrolment is all of a profile's original speech in both region kinds (ours; the paper
says "assigned original speech"). ``target_voice`` rows hold, for each profile, the
cosine of its converted turns with its assigned voice, under the profile's own name: the
table is public and must not tell which voice that is.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

import numpy as np
import pandas as pd

from aegis.error_rates import ORIENTATIONS
from aegis.stats import Estimate, Floats
from aegis.tables import CONDITIONS, SCHEMAS
from aegis.trials import (
    N_DRAWS,
    Costs,
    Trials,
    bootstrap_eer,
    build_final_trials,
    build_shared_trials,
    held_out_costs,
    keep_profiles,
)
from aegis.windows import (
    ASSIGNED_VOICE,
    CONVERTED_TURNS,
    REGION_KINDS,
    SAMPLE_RATE_HZ,
    Sample,
    judge_eligibility,
    split_windows,
)

ByProfile = dict[str, Floats]
Embed = Callable[[str, str, str], ByProfile]
"""Profile vectors by (backend, condition, region kind)."""
SHARED_PROTOCOLS = ("shared", "shared_original")
SIDES = {
    "all_turns": ("enrol_half", "test_half"),
    "edited_region": ("unedited", "edited_region"),
}
"""Which original speech enrols and tests in the original-original reference."""


def split_samples(
    samples: Mapping[str, Sample],
) -> tuple[dict[str, Sample], dict[str, Sample]]:
    """Enrolment and test halves of each profile's windows; too little speech has no test half."""
    halves: tuple[dict[str, Sample], dict[str, Sample]] = ({}, {})
    for profile, sample in samples.items():
        parts = split_windows(sample.windows)
        if not parts[1]:
            continue
        for half, windows in zip(halves, parts, strict=True):
            usable = sum(end - start for window in windows for start, end in window)
            half[profile] = Sample(sample.channel, tuple(windows), usable)
    return halves


def build_eligibility(
    profiles: pd.DataFrame,
    samples: Mapping[tuple[str, str], Mapping[str, Sample]],
    heard: set[tuple[str, str]],
    embed: Embed,
    backends: Sequence[str],
) -> pd.DataFrame:
    """One row a profile, condition, region kind and backend: is there speech to compare?

    Parameters
    ----------
    samples
        Sampled windows by (condition, region kind) and profile.
    heard
        Which (condition, recording) has a waveform.
    """
    conditions = [name for name in CONDITIONS if any(place == name for place, _ in heard)]
    rows = []
    for backend, condition, kind in itertools.product(backends, conditions, REGION_KINDS):
        labels = {"condition": condition, "region_kind": kind, "backend": backend}
        vectors, sampled = embed(backend, condition, kind), samples.get((condition, kind), {})
        for row in profiles.to_dict("records"):
            in_sound = (condition, row["recording_id"]) in heard
            fate = _fate(row, sampled.get(row["profile_id"]), in_sound, vectors)
            rows.append({key: row[key] for key in ("profile_id", "recording_id")} | labels | fate)
    return pd.DataFrame(rows, columns=list(SCHEMAS["eligibility"].columns))


def _fate(
    profile: Mapping[str, Any], sample: Sample | None, heard: bool, vectors: Mapping[str, Floats]
) -> dict[str, Any]:
    usable = sample.usable if sample else 0
    status, reason = judge_eligibility(usable, sample is not None, heard)
    if profile["status"] != "ok" and sample is None:
        status, reason = "unknown", f"no profile: {profile['reason']}"
    if status == "ok" and profile["profile_id"] not in vectors:
        status, reason = "unknown", "the windows could not be embedded"
    n_windows = len(sample.windows) if sample else 0
    return {
        "usable_s": usable / SAMPLE_RATE_HZ, "n_windows": n_windows, "status": status,
        "reason": reason,
    }  # fmt: skip


def run_protocols(
    embed: Embed,
    backends: Sequence[str],
    conditions: Sequence[str],
    recording_of: Mapping[str, str],
    seed: int,
    n_draws: int = N_DRAWS,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows of the tables ``trials`` and ``linkage`` for every protocol.

    Every error rate draws from the same seed, so rates of one population share their draws.
    """
    frames: list[pd.DataFrame] = []
    rates: list[dict[str, Any]] = []

    def add(protocol: str, labels: dict[str, str], built: Trials) -> None:
        labels = {"protocol": protocol, **labels}
        frames.append(trials_frame(built, recording_of, labels))
        rates.extend(linkage_rows(built, labels, seed, n_draws))

    for backend in backends:
        own = embed(backend, "original", "all_turns")
        places = [("final", condition, kind) for condition in conditions for kind in REGION_KINDS]
        for protocol, condition, kind in [*places, ("shared", "converted", "all_turns")]:
            labels = {"condition": condition, "region_kind": kind, "backend": backend}
            sound = CONVERTED_TURNS if protocol == "shared" else condition
            tested = build_protocol(protocol, own, embed(backend, sound, kind), recording_of)
            add(protocol, labels, tested)
            enrol, test = (embed(backend, "original", side) for side in SIDES[kind])
            reference = build_protocol(protocol, enrol, test, recording_of)
            add(f"{protocol}_original", labels, keep_same_trials(reference, tested))
        frames.append(_target_voice(embed, backend, recording_of))
    return pd.concat(frames, ignore_index=True), pd.DataFrame(rates)


def _target_voice(embed: Embed, backend: str, recording_of: Mapping[str, str]) -> pd.DataFrame:
    """How near each profile's converted turns are to its own assigned voice."""
    voices = embed(backend, ASSIGNED_VOICE, "all_turns")
    converted = embed(backend, CONVERTED_TURNS, "all_turns")
    pairs = build_shared_trials(voices, converted)
    own = keep_profiles(pairs, set(pairs.enrol), {(name, name) for name in pairs.enrol})
    labels = {"condition": "converted", "region_kind": "all_turns", "backend": backend}
    return trials_frame(own, recording_of, {"protocol": "target_voice", **labels})


def build_protocol(
    protocol: str, enrol: ByProfile, test: ByProfile, recording_of: Mapping[str, str]
) -> Trials:
    """The trials of a protocol from unit vectors by profile."""
    if protocol in SHARED_PROTOCOLS:
        return build_shared_trials(enrol, test)
    return build_final_trials(enrol, test, recording_of)


def keep_same_trials(reference: Trials, wanted: Trials) -> Trials:
    """The trials of ``reference`` whose pair of profiles also occurs in ``wanted``."""
    pairs = set(zip(wanted.enrol, wanted.test, strict=True))
    return keep_profiles(reference, {name for pair in pairs for name in pair}, pairs)


def trials_frame(
    trials: Trials, recording_of: Mapping[str, str], labels: Mapping[str, str]
) -> pd.DataFrame:
    """Rows of the ``trials`` table; the recording is that of the enrolment profile."""
    return pd.DataFrame({
        **labels, "enrol": trials.enrol, "test": trials.test,
        "recording_id": [recording_of[name] for name in trials.enrol],
        "target": trials.target, "score": trials.score,
    })  # fmt: skip


def read_trials(frame: pd.DataFrame) -> Trials:
    """Trials again from rows of one protocol, condition, region kind and backend."""
    shared = bool(frame["protocol"].isin(SHARED_PROTOCOLS).all())
    cluster = frame["enrol" if shared else "recording_id"].to_numpy(dtype=object)
    return Trials(
        frame["enrol"].to_numpy(dtype=object), frame["test"].to_numpy(dtype=object), cluster,
        frame["target"].to_numpy(dtype=bool), frame["score"].to_numpy(dtype=np.float64),
        tuple(sorted(set(cluster))),
    )  # fmt: skip


def linkage_rows(
    trials: Trials, labels: Mapping[str, str], seed: int, n_draws: int = N_DRAWS
) -> list[dict[str, Any]]:
    """Rows of the ``linkage`` table, one an orientation; a missing class is said in the row."""
    rows = []
    n_target = int(trials.target.sum())
    for orientation in ORIENTATIONS:
        try:
            estimate = bootstrap_eer(trials, np.random.default_rng(seed), orientation, n_draws)
        except ValueError as error:
            estimate = Estimate(
                math.nan, n_clusters=len(trials.groups), status="not_applicable", reason=str(error)
            )
        rows.append({
            **labels, "orientation": orientation, "eer": estimate.value,
            "ci_low": estimate.ci_low, "ci_high": estimate.ci_high, "n_target": n_target,
            "n_nontarget": len(trials.target) - n_target, "n_clusters": estimate.n_clusters,
            "n_draws": estimate.n_draws, "n_dropped": estimate.n_dropped,
            "status": estimate.status, "reason": estimate.reason,
        })  # fmt: skip
    return rows


def summarise_costs(trials: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Calibrated Cllr, minCllr, linkability and ZEBRA of each set of de-identified trials."""
    keys = ["protocol", "condition", "region_kind", "backend"]
    rows = []
    for names, own in trials[trials["protocol"].isin(["final", "shared"])].groupby(
        keys, sort=True
    ):
        built = read_trials(own)
        if built.target.all() or not built.target.any():
            costs = Costs(
                math.nan, math.nan, math.nan, math.nan, math.nan, None, "a class is empty"
            )
        else:
            costs = held_out_costs(built, np.random.default_rng(seed))
        rows.append(dict(zip(keys, names, strict=True)) | asdict(costs))
    names = [field.name for field in fields(Costs)]
    return pd.DataFrame(rows, columns=[*keys, *names])


def beside_original(linkage: pd.DataFrame, orientation: str = "attacker") -> pd.DataFrame:
    """Each anonymised error rate beside the original-original one of the same trials."""
    keys = ["condition", "region_kind", "backend"]
    chosen = linkage[linkage["orientation"] == orientation]
    reference = chosen[chosen["protocol"].str.endswith("_original")]
    reference = reference.assign(protocol=reference["protocol"].str.removesuffix("_original"))
    tested = chosen[~chosen["protocol"].str.endswith("_original")]
    columns = ["protocol", *keys]
    merged = tested.merge(
        reference[[*columns, "eer"]].rename(columns={"eer": "eer_original"}),
        on=columns,
        how="left",
    )
    shown: Sequence[str] = [*columns, "eer", "ci_low", "ci_high", "eer_original", "above_original"]
    merged["above_original"] = merged["eer"] - merged["eer_original"]
    return merged[[*shown, "n_target", "n_nontarget", "n_clusters"]]
