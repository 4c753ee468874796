"""Assignment at the paper's size: 809 profiles, 4,062 units, 16 threshold settings.

Vectors are random unit vectors: distances between them are wide, so every profile has
candidates, as in the paper. The machine's time counts, not the result.
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd

from aegis.voices import Rules, compare_settings, prepare

N_PROFILES, N_RECORDINGS, N_UNITS, DIMENSION = 809, 390, 4_062, 192
SOURCE, TARGET = (0.60, 0.65, 0.70, 0.75), (0.55, 0.60, 0.65, 0.70)


def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Profiles, two or three a recording, and units of the pool."""
    recording = [f"r{index % N_RECORDINGS:03d}" for index in range(N_PROFILES)]
    speaker = [f"S{index // N_RECORDINGS + 1}" for index in range(N_PROFILES)]
    profiles = pd.DataFrame({"recording_id": recording, "speaker": speaker, "language": "en"})
    profiles["profile_id"] = profiles["recording_id"] + "/" + profiles["speaker"]
    units = pd.DataFrame({"voice_id": [f"v{index:04d}" for index in range(N_UNITS)]})
    units = units.assign(
        base_voice=units["voice_id"], language="en", accent="us", native_english=True,
        gender_presentation="female", child_like=False, traits=None, eligible=True,
    )  # fmt: skip
    return profiles.assign(status="ok", reason=None), units.assign(status="ok", reason=None)


def measure(run_name: str) -> dict[str, float]:
    """Seconds from tables and vectors to the 16 assignments; the run plays no part."""
    profiles, units = tables()
    rng = np.random.default_rng(20261005)
    of_profiles = dict(
        zip(profiles["profile_id"], rng.normal(size=(N_PROFILES, DIMENSION)), strict=True)
    )
    of_units = dict(zip(units["voice_id"], rng.normal(size=(N_UNITS, DIMENSION)), strict=True))
    settings = [
        Rules(min_source_distance=s, min_target_distance=t) for s in SOURCE for t in TARGET
    ]
    began = time.perf_counter()
    pool = prepare(profiles, units, of_profiles, of_units, settings[0])
    result = compare_settings(pool, settings)
    return {"assignment_s": time.perf_counter() - began, "assignment_settings": float(len(result))}
