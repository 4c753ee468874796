# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Which recordings does the study rest on? {#sec-corpora}
#
# A recording is one conversation and one statistical cluster. The paper uses 390 recordings of
# PriMock57, Fareez and SIMSAMU, which `aegis fetch` brings here and verifies where it may; else
# stands the embedded demo corpus, synthesised from scripts whose turns, identifiers and clinical
# facts are known, or a folder of your own recordings.
# Every file has exactly one fate: ok, excluded or failed. File names stay secret, since they may
# identify people themselves; ids are made from content.

# %% tags=["parameters"]
run_name: str = "demo"  # the run whose tables are written
corpus: str = "demo"  # demo (scripts), folder (your own), or primock57-mixed+fareez+simsamu
folder: str = ""  # where the recordings or the fetched corpora lie (project: relative paths)
recordings: list[str] = []  # recording ids to take, empty for all
max_turns: int = 0  # turns taken from each script, 0 for all (demo)
language: str = ""  # for "folder": "en" or "fr" when known, empty to detect
n_speakers_declared: int = 0  # for "folder": speakers a recording, 0 when unknown
seed: int = 20261005  # of levels and noise (demo)

# %%
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns

from aegis import report, sources
from aegis.errors import ParamError
from aegis.scripts import MANIFESTS, read_scripts
from aegis.stage import open_stage
from aegis.tables import PROJECT
from aegis.work import corpus as work

stage = open_stage("00_corpora", globals())
report.style()
if (corpus == "demo" and folder) or (corpus == "folder" and not folder):
    raise ParamError('corpus "folder" needs the parameter folder, corpus "demo" has none')

# %% [markdown]
# ## Scripted recordings
#
# Each turn is spoken by a text-to-speech voice that the reference pool does not use, trimmed,
# set to its speaker's level (-23 dBFS, 2 dB either way) and placed with its pause or overlap.
# The truth is this placement. Some recordings get noise, telephone rate or a channel for each
# speaker; all become files of different formats.

# %%
scripts, made = [], []
if corpus == "demo":
    found = read_scripts(stage.uses(MANIFESTS / "demo"))
    chosen = sources.select([script.recording_id for script in found], recordings)
    scripts = [sources.shorten_script(s, max_turns) for s in found if s.recording_id in chosen]
    made = stage.map(work.synthesise_recording, work.script_items(scripts), {"seed": seed})

# %% [markdown]
# ## Ingest
#
# Decoded once, resampled to 16 kHz, never held in memory as a whole. Channels are kept only
# where each holds a speaker of its own; inverted polarity is turned round before averaging.
# Published corpora are verified first: each record of the checksum list has one fate.

# %%
if corpus == "demo":
    files = sources.scripted_sources(scripts, made)
elif corpus == "folder":
    place = stage.uses(PROJECT / Path(folder).expanduser())
    files = sources.folder_sources(place, recordings, language, n_speakers_declared)
else:
    place = PROJECT / Path(folder).expanduser() if folder else None
    files = sources.published_sources(corpus, place, recordings)
results = stage.map(work.ingest_recording, sources.ingest_items(files))
table = stage.write("recordings", sources.recordings_frame(files, results))
stage.write("file_map", sources.file_map_frame(files))
usable = table[table["status"] == "ok"]
gold = sources.gold_frames(scripts, made, set(usable["recording_id"]))
for name, frame in gold.items():
    stage.write(name, frame)

# %% [markdown]
# ## Fates

# %%
fates = table.assign(reason=table["reason"].fillna("")).groupby(["status", "reason"]).size()
report.table(fates.rename("recordings").reset_index())

# %%
groups = ["dataset", "language", "layout", "source_rate_hz"]
summary = (
    usable.assign(language=usable["language"].fillna("not known yet"))
    .groupby(groups, dropna=False)
    .agg(recordings=("recording_id", "size"), minutes=("duration_s", lambda s: s.sum() / 60))
    .reset_index()
)
report.table(summary)

# %%
counts = pd.Series({name: len(frame) for name, frame in gold.items()}, name="rows")
report.table(counts.rename_axis("truth").reset_index())

# %%
#| label: fig-durations
#| fig-cap: Length of the usable recordings, by layout of their channels.
#| fig-alt: Stacked histogram of durations in seconds, one colour a layout.
shown = usable.astype({"layout": str, "duration_s": float})
figure, axes = plt.subplots()
if len(shown):
    sns.histplot(shown, x="duration_s", hue="layout", multiple="stack", bins=12, ax=axes)
axes.set(xlabel="duration in seconds", ylabel="recordings")
plt.show()

# %% [markdown]
# ## What this shows

# %%
out = table["status"].value_counts()
minutes = usable["duration_s"].astype(float).sum() / 60
report.say(f"""
Of {len(table)} files {len(usable)} are usable, {out.get("excluded", 0)} are excluded and
{out.get("failed", 0)} failed. The usable ones last {minutes:.1f} minutes together;
with a channel for each speaker: {(usable["layout"] == "speaker_per_channel").sum()}.
{len(gold["gold_mentions"])} spoken identifiers and {len(gold["gold_facts"])} clinical facts are
known as truth.
""")

# %%
stage.done()
