# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Looking into a run {#sec-explore}
#
# Not a stage: nothing here is written, and the cells may run in any order after the first two.
# Original words, original voices and both mappings appear only while a person works in this
# notebook; executed by a program it shows `hidden` in their place.

# %% tags=["parameters"]
run_name: str = "demo"  # the run to look into

# %%
from aegis import report
from aegis.tables import SCHEMAS, open_run

run = open_run(run_name)
turns, summary = run.read("turn_times"), run.read("plan_summary")
counts = ["n_mentions", "n_entities", "n_edits"]
report.table(summary.groupby("category")[counts].sum().reset_index())

# %% [markdown]
# ## Tables of this run
#
# `run.read(name)` returns any of them as a pandas frame; the files below `runs/` open in polars
# and DuckDB too.

# %%
{name: schema.unit for name, schema in SCHEMAS.items() if run.has(name)}

# %% [markdown]
# ## A turn: hear it, read it, see it

# %%
edited = run.read("edits")
turn = edited["turn_id"].iloc[0] if len(edited) else turns["turn_id"].iloc[0]
report.listen(turn, run=run)

# %%
report.compare(turn, run=run)

# %%
report.spectrogram(turn, "renderer_b", run=run)

# %% [markdown]
# ## An intention, from mention to verdicts

# %%
report.trace(edited["intention_id"].iloc[0], run=run) if len(edited) else "no edits in this run"

# %% [markdown]
# ## A speaker: why this voice?

# %%
report.why(turns["profile_id"].iloc[0], run=run)

# %% [markdown]
# ## What did not work

# %%
report.failures(run=run)
