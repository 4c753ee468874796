# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # R. How was it computed, and what did it cost? {#sec-receipts}
#
# Each stage is done by a receipt, written last: source and parameters, hashes of what it read and
# wrote, engines with their revisions, counts, time and memory. A stage whose receipt does not
# match is run again. The paper could not fully verify its historical checkpoints; receipts are
# how this study avoids that.

# %% tags=["parameters"]
run_name: str = "demo"  # the run whose receipts are read

# %%
import matplotlib.pyplot as plt
import pandas as pd

from aegis import ledger, report
from aegis.stage import open_stage

stage = open_stage("R_receipts", globals())
report.style()

# %% [markdown]
# ## Stages
#
# `engine_s` is the bare time inside engines, over all items; `wall_s` is the last execution, in
# which reused items cost nothing. Memory is the kernel's peak plus that of its workers. This page
# follows the receipts of all stages before it: when one of them runs again, so does this page.

# %%
costs = ledger.stage_costs(stage.run)
costs = costs[costs["stage"] != stage.name]
report.table(costs, 1)

# %%
#| label: fig-costs
#| fig-cap: Engine and wall seconds of each stage.
#| fig-alt: Horizontal bars in seconds, one pair a stage.
shown = costs.set_index("stage")[["engine_s", "wall_s"]]
axes = shown.plot.barh(figsize=(7, 0.36 * len(shown) + 1))
axes.set(xlabel="seconds", ylabel="")
axes.invert_yaxis()
plt.show()

# %%
#| label: fig-memory
#| fig-cap: Largest memory of kernel and workers, and processor seconds, of each stage.
#| fig-alt: Two panels of horizontal bars, one bar a stage.
axes = costs.set_index("stage")[["peak_memory_mb", "cpu_s"]].plot.barh(
    subplots=True, layout=(1, 2), sharey=True, legend=False, figsize=(7, 0.3 * len(costs) + 1)
)
for one in axes.flat:
    one.set(ylabel="")
axes.flat[0].invert_yaxis()
plt.show()

# %% [markdown]
# ## Engines

# %%
engines = ledger.engines_used(stage.run)
report.table(engines)

# %% [markdown]
# ## Money and tokens
#
# Embedded engines cost neither. A chat engine counts its tokens and stops at `max_cost`; replies
# that it takes from its cache cost nothing again.

# %%
report.table(costs[costs["requests"] > 0][["stage", *ledger.USAGE]])

# %% [markdown]
# ## Paper and this run

# %%
recordings = stage.read("recordings")
minutes = recordings.loc[recordings["status"] == "ok", "duration_s"].sum() / 60
rows = [
    ("recordings", "390", f"{(recordings['status'] == 'ok').sum()}", "no: other corpus"),
    (
        "exact checkpoints recorded",
        "not fully verified",
        f"{len(engines)} of {len(engines)}",
        "yes",
    ),
    (
        "bare engine time per minute of sound",
        "not reported",
        f"{costs['engine_s'].sum() / max(minutes, 1e-9):.1f} s",
        "no",
    ),
]
report.table(pd.DataFrame(rows, columns=["quantity", "paper", "this run", "comparable?"]))

# %% [markdown]
# ## What this shows

# %%
report.say(f"""
{len(costs)} stages left receipts. They spent {costs["engine_s"].sum() / 60:.1f} minutes inside
engines for {minutes:.1f} minutes of sound; the largest peak of memory is
{costs["peak_memory_mb"].max() / 1024:.1f} GiB.
""")

# %%
stage.done()
