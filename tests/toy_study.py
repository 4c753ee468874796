"""A study of three notebooks that takes seconds: tones, their halves, one claim.

The notebooks bear names of the real wiring, own the same tables and fill those that
they have no use for with no rows.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from aegis.tables import SCHEMAS, Run

WORK = """
import os
import resource
import time

import numpy as np
import psutil

from aegis import engines
from aegis.audio import read_wav, write_wav
from aegis.errors import AudioError, EngineUnavailable


def make_tone(item, settings, run):
    if item["id"] == settings.get("silent"):
        raise AudioError("silent: nothing was heard")
    if item["id"] == settings.get("odd"):
        raise ValueError("a secret word")
    if item["id"] == settings.get("deadly"):
        os._exit(9)
    if item["id"] == settings.get("greedy"):
        most = psutil.Process().memory_info().vms + (1 << 26)
        resource.setrlimit(resource.RLIMIT_AS, (most, -1))
        try:
            bytearray(1 << 40)
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
    if settings.get("engine_missing"):
        raise EngineUnavailable("no such engine; put it somewhere")
    with engines.engine_time():
        time.sleep(settings.get("sleep_s", 0.0))
    path = run.original_path(item["id"])
    wave = np.sin(np.arange(1600) * item["pitch"] / 16000 * 2 * np.pi)
    written = write_wav(path, (0.5 * wave).astype(np.float32))
    files = {run.relative(path): written.sha256}
    return {"n": written.n_samples, "sha256": written.sha256, "files": files}


def halve(item, settings, run):
    time.sleep(settings.get("sleep_s", 0.0))
    sound = read_wav(run.original_path(item["id"]))[::2]
    path = run.turn_path("converted", item["id"], "whole")
    written = write_wav(path, sound)
    return {"n": written.n_samples, "files": {run.relative(path): written.sha256}}
"""

HEAD = """# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Toy {#sec-toy}

"""

CORPORA = (
    HEAD
    + """# %% tags=["parameters"]
run_name: str = "toy"  # the run
n_items: int = 4  # tones to make
silent: str | None = None  # recording that holds nothing
odd: str | None = None  # recording that meets a fault
deadly: str | None = None  # recording that kills the worker
greedy: str | None = None  # recording that wants more memory than there is
sleep_s: float = 0.0  # time that a tone takes
folder: str = ""  # outside input

# %%
import pandas as pd
import toy_work

from aegis.stage import open_stage
from aegis.tables import empty_table

stage = open_stage("00_corpora", globals())

# %%
items = [{"id": f"toy/r{i}", "pitch": 100 + i, "cost": i} for i in range(n_items)]
settings = {"silent": silent, "odd": odd, "deadly": deadly, "greedy": greedy, "sleep_s": sleep_s}
results = stage.map(toy_work.make_tone, items, settings)
values = [r.value or {} for r in results]

# %%
recordings = pd.DataFrame({
    "recording_id": [r.id for r in results], "dataset": "toy", "language": "en",
    "layout": "mixed", "n_channels": 1, "source_rate_hz": 16000,
    "duration_s": [v.get("n", 0) / 16000 for v in values],
    "n_samples": [v.get("n") for v in values], "gain_db": 0.0,
    "sha256": [v.get("sha256") for v in values], "n_speakers_declared": 1,
    "status": [r.status for r in results], "reason": [r.reason for r in results],
})
stage.write("recordings", recordings)
for name in set(stage.wiring.writes) - {"recordings"}:
    stage.write(name, empty_table(name))

# %%
stage.done()
"""
)

TRANSCRIBE = (
    HEAD
    + """# %% tags=["parameters"]
run_name: str = "toy"  # the run
ending: str = "well"  # how the notebook ends: well, dead, exit, error, early
sleep_s: float = 0.0  # time that a half takes

# %%
import os
import sys

import pandas as pd
import toy_work

from aegis.stage import open_stage
from aegis.tables import empty_table

stage = open_stage("01_transcribe", globals())
recordings = stage.read("recordings").query("status == 'ok'")

# %%
if ending == "dead":
    os.kill(os.getpid(), 9)
if ending == "exit":
    sys.exit(0)
if ending == "error":
    raise ValueError("on purpose")

# %%
items = [{"id": r.recording_id, "sha256": r.sha256} for r in recordings.itertuples()]
results = stage.map(toy_work.halve, items, {"sleep_s": sleep_s})
times = pd.DataFrame({
    "turn_id": ["t" + r.id[5:] for r in results], "recording_id": [r.id for r in results],
    "turn_index": 0, "profile_id": [r.id + "/S1" for r in results], "speaker": "S1",
    "start_s": 0.0, "end_s": [r.value["n"] / 16000 for r in results], "n_words": 0,
    "flagged": False,
})
if len(times):
    stage.write("turn_times", times)
for name in set(stage.wiring.writes) - {"turn_times"}:
    stage.write(name, empty_table(name))

# %%
if ending != "early":
    stage.done()
"""
)

CONTRASTS = (
    HEAD
    + """# %% tags=["parameters"]
run_name: str = "toy"  # the run

# %%
import pandas as pd

from aegis.stage import open_stage
from aegis.tables import empty_table

stage = open_stage("13_contrasts", globals())

# %%
total_s = stage.read("turn_times")["end_s"].sum()
claims = pd.DataFrame([{
    "claim_id": "total_s", "label": "seconds", "value": total_s, "unit": "s", "numerator": None,
    "denominator": None, "unknown": 0, "not_applicable": 0, "ci_low": None, "ci_high": None,
    "status": "ok", "reason": None,
}])
stage.write("claims", claims)
for name in set(stage.wiring.writes) - {"claims"}:
    stage.write(name, empty_table(name))

# %%
stage.done()
"""
)

PARAMS = """title: A toy study
00_corpora:
  n_items: 4
"""


def write_toy(folder: Path) -> None:
    """Write notebooks, work functions and a profile file."""
    (folder / "notebooks").mkdir(parents=True)
    (folder / "toy_work.py").write_text(WORK)
    (folder / "toy.yaml").write_text(PARAMS)
    notebooks = {"00_corpora": CORPORA, "01_transcribe": TRANSCRIBE, "13_contrasts": CONTRASTS}
    for name, text in notebooks.items():
        (folder / "notebooks" / f"{name}.py").write_text(text)


def tables_of(run: Run) -> dict[str, pd.DataFrame]:
    """All tables of a run."""
    return {name: run.read(name) for name in SCHEMAS if run.has(name)}


def assert_same_tables(first: Run, second: Run) -> None:
    a, b = tables_of(first), tables_of(second)
    assert a.keys() == b.keys()
    for name, table in a.items():
        pd.testing.assert_frame_equal(table, b[name])
