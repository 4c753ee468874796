"""Assignment at the paper's size: 809 profiles, 4,062 units, 16 threshold settings.

Vectors are drawn; the time does not depend on whose they are. Prints one JSON line:
seconds for retrieval, ranking and search of all settings, and the aim.
"""

from __future__ import annotations

import itertools
import json
import time

import numpy as np
import pandas as pd

from aegis.voices import Rules, compare_settings, prepare, unit_norm

N_PROFILES, N_UNITS, DIMENSION, AIM_S = 809, 4062, 192, 10.0


def tables(rng: np.random.Generator) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Conversations of two or three speakers, and units in two languages."""
    recordings = np.repeat(np.arange(N_PROFILES), rng.integers(2, 4, N_PROFILES))[:N_PROFILES]
    ids = [f"bench/{r:04d}" for r in recordings]
    speakers = [f"S{n + 1}" for n in pd.Series(ids).groupby(ids).cumcount()]
    profiles = pd.DataFrame({
        "profile_id": [f"{r}/{s}" for r, s in zip(ids, speakers, strict=True)],
        "recording_id": ids, "speaker": speakers, "status": "ok", "reason": None,
        "language": np.where(recordings % 5 == 0, "fr", "en"),
    })  # fmt: skip
    units = pd.DataFrame({
        "voice_id": [f"v{i:05d}" for i in range(N_UNITS)], "eligible": True, "traits": None,
        "language": rng.choice(["en", "fr"], N_UNITS, p=[0.8, 0.2]), "native_english": True,
        "accent": "unknown", "gender_presentation": rng.choice(["female", "male"], N_UNITS),
    })  # fmt: skip
    return profiles, units


def main() -> None:
    """Time preparation and the sixteen settings together."""
    rng = np.random.default_rng(20261005)
    profiles, units = tables(rng)
    # A few shared directions make near and far pairs, as voices do.
    base = rng.normal(size=(40, DIMENSION))
    p, u = (
        unit_norm(base[rng.integers(0, 40, n)] + rng.normal(size=(n, DIMENSION)))
        for n in (N_PROFILES, N_UNITS)
    )
    by_profile = dict(zip(profiles["profile_id"], p, strict=True))
    by_unit = dict(zip(units["voice_id"], u, strict=True))
    grid = itertools.product((0.70, 0.60, 0.65, 0.75), (0.65, 0.55, 0.60, 0.70))
    settings = [Rules(min_source_distance=s, min_target_distance=t) for s, t in grid]
    began = time.perf_counter()
    pool = prepare(profiles, units, by_profile, by_unit, settings[0])
    table = compare_settings(pool, settings)
    elapsed_s = time.perf_counter() - began
    print(
        json.dumps({
            "bench": "assignment", "seconds": round(elapsed_s, 2), "aim_s": AIM_S,
            "ratio": round(elapsed_s / AIM_S, 3), "n_settings": len(table),
            "n_assigned": table["n_assigned"].tolist(),
        })
    )  # fmt: skip


if __name__ == "__main__":
    main()
