"""Error rates, costs and search at the papers' sizes; ratios within one run.

``measure(run_name)`` needs no run: scores and vectors are drawn. Shared stage: 809 x 809
scores and 2,000 resamples of source profiles against a plain loop that sorts again for
every draw (timed on a few draws). NIST Test 4: 1.25 million trials of 76 speakers, four
backends. Search: 22,000 embeddings against as many with FAISS, in blocks.
"""

from __future__ import annotations

import json
import resource
import time

import numpy as np
from numpy.typing import NDArray

from aegis import leakage
from aegis.error_rates import crossing, error_curve
from aegis.nearest import faiss_search
from aegis.stats import draw_counts
from aegis.trials import Trials, bootstrap_eer, held_out_costs, weighted_eer

N_PLAIN = 5


def drawn_trials(n_speakers: int, n_nontarget: int, n_target: int, seed: int) -> Trials:
    """Normal scores, targets 1.5 higher; every trial has an enrolled speaker."""
    rng = np.random.default_rng(seed)
    n = n_target + n_nontarget
    target = np.arange(n) < n_target
    names = np.array([f"s{i:04d}" for i in range(n_speakers)], dtype=object)
    cluster = names[np.arange(n) % n_speakers]
    score = rng.standard_normal(n) + 1.5 * target
    return Trials(cluster, cluster, cluster, target, score, tuple(names))


def plain_eer(trials: Trials, counts: NDArray[np.float64]) -> list[float]:
    """One draw after the other: repeat the trials by their weight and sort again."""
    at = {name: i for i, name in enumerate(trials.groups)}
    position = np.array([at[name] for name in trials.cluster])
    rates = []
    for row in counts:
        weight = row[position].astype(int)
        score, target = (np.repeat(x, weight) for x in (trials.score, trials.target))
        false_alarm, miss = error_curve(score, target)
        rates.append(float(crossing(false_alarm[None], miss[None])[0]))
    return rates


def shared_stage() -> dict[str, float]:
    """809 profiles against each other: seconds, speed-up over the plain loop, largest error."""
    trials = drawn_trials(809, 809 * 808, 809, 1)
    counts = np.concatenate(draw_counts(809, 2_000, np.random.default_rng(0)))
    began = time.perf_counter()
    rates = weighted_eer(trials, counts, "higher")
    ours = time.perf_counter() - began
    began = time.perf_counter()
    plain = plain_eer(trials, counts[:N_PLAIN])
    one = (time.perf_counter() - began) / N_PLAIN
    return {
        "shared_stage_s": ours,
        "shared_stage_speedup": one * len(counts) / ours,
        "shared_stage_error": float(np.abs(rates[:N_PLAIN] - plain).max()),
    }


def million_trials(n_backends: int = 4) -> dict[str, float]:
    """NIST Test 4: EER with 1,000 draws and held-out Cllr of 1.24 million trials a backend."""
    began = time.perf_counter()
    for seed in range(n_backends):
        trials = drawn_trials(76, 1_166_580, 77_434, seed)
        bootstrap_eer(trials, np.random.default_rng(seed), "higher", 1_000)
        held_out_costs(trials, np.random.default_rng(seed))
    return {"million_trials_s": time.perf_counter() - began}


def large_search(n: int = 22_000, dimension: int = 192) -> dict[str, float]:
    """CMC@20 of ``n`` probes in a gallery of ``n``: seconds, and memory beyond the vectors."""
    rng = np.random.default_rng(0)
    gallery, probes = (rng.standard_normal((n, dimension)) for _ in range(2))
    speakers = np.arange(n) % 500
    before = _peak_gib()
    began = time.perf_counter()
    nearest = faiss_search(gallery, probes, 20)
    leakage.permuted_cmc(nearest, speakers, speakers, (1, 5, 10, 20), rng, 50)
    return {"search_s": time.perf_counter() - began, "search_added_gib": _peak_gib() - before}


def _peak_gib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2


def measure(run_name: str) -> dict[str, float]:
    """All of it, the search first: its memory is what the peak grows by."""
    values = large_search()
    values |= shared_stage() | {"shared_stage_gib": _peak_gib()}
    return values | million_trials()


if __name__ == "__main__":
    print(json.dumps(measure("")))
