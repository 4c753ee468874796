"""Statistics at the paper's size: 25,778 facts in 390 conversations.

Outcomes are drawn; the time does not depend on what they mean. ``bootstrap_s`` is 10,000
conversation draws with their interval, ``sign_flip_s`` 20,000 flips, ``pages_s`` the last
executions of the pages that run no engine (from a run's receipts).
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

import numpy as np
import pandas as pd

from aegis import stats
from aegis.receipts import read_receipt
from aegis.tables import Run, open_run

N_FACTS, N_CONVERSATIONS, N_LOOP = 25_778, 390, 20
PAGES = (
    "A_risks", "B_corpora", "C_models", "F_units", "I_outcomes", "K_linkage", "L_languages",
    "P_pairings", "Q_failures", "R_receipts", "S_specifications", "T_prompts",
    "W_published_arithmetic",
)  # fmt: skip


def group_by_loop(values: np.ndarray, names: np.ndarray, n_draws: int) -> np.ndarray:
    """The usual way: copy the rows of the drawn conversations, draw by draw, with pandas."""
    rng = np.random.default_rng(1)
    groups = dict(list(pd.DataFrame({"name": names, "value": values}).groupby("name")))
    keys = list(groups)
    return np.array([
        pd.concat([groups[keys[i]] for i in rng.integers(0, len(keys), len(keys))])["value"].mean()
        for _ in range(n_draws)
    ])  # fmt: skip


def _fastest(work: Callable[[], object], repeats: int = 3) -> float:
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


def measure(run_name: str) -> dict[str, float]:
    """Seconds of each, and the share of the loop's time that our draws take."""
    rng = np.random.default_rng(20261005)
    names = np.array([f"c/{i:03d}" for i in rng.integers(0, N_CONVERSATIONS, N_FACTS)], object)
    values = (rng.random(N_FACTS) < 0.78).astype(float)
    bootstrap = _fastest(lambda: stats.rate(values, names, np.random.default_rng(1)))
    flips = _fastest(lambda: stats.sign_flip(values - 0.78, names, np.random.default_rng(1)))
    loop = _fastest(lambda: group_by_loop(values, names, N_LOOP), 1) * stats.N_DRAWS / N_LOOP
    found = {
        "bootstrap_s": bootstrap,
        "sign_flip_s": flips,
        "bootstrap_over_group_by": bootstrap / loop,
    }
    pages = page_seconds(open_run(run_name))
    return found | ({"pages_s": sum(pages.values())} if set(pages) == set(PAGES) else {})


def page_seconds(run: Run) -> dict[str, float]:
    """Wall time of each page's last execution, where it was executed."""
    receipts = {name: read_receipt(run, name) for name in PAGES}
    return {
        name: float(receipt["executed"]["wall_s"])
        for name, receipt in receipts.items()
        if receipt and "executed" in receipt
    }


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1] if len(sys.argv) > 1 else "demo")))
