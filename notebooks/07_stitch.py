# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Reconstructed conversations {#sec-stitch}
#
# What does a listener get, and can every sample of it be accounted for? Each conversation
# is put together once a condition: in start order, the rendered turn where there is one,
# else the converted turn. Primary joins have no cross-fade, as in the paper. Gaps keep
# their length and hold silence, which is our choice; the paper keeps the surrounding
# converted samples. Where turns overlap the later one is clipped; recordings with a
# speaker per channel are mixed instead.

# %% tags=["parameters"]
run_name: str = "demo"  # the run whose tables are read and written
join_fade_s: float = 0.0  # fade at both ends of each turn, seconds (paper: none)
max_replay_steps: float = 2.0  # largest difference of a replay, PCM16 steps (paper: 2)

# %%
import seaborn.objects as so
from IPython.display import display

from aegis import report
from aegis.stage import open_stage
from aegis.tables import CONDITIONS
from aegis.work.render import reconstruct, reconstruction_items, reconstruction_tables

stage = open_stage("07_stitch", globals())

# %%
names = ("recordings", "turns", "converted", "regions", "plans", "rendered")
tables = {name: stage.read(name) for name in names}
items = reconstruction_items(tables, CONDITIONS[1:])
results = stage.map(reconstruct, items, {"join_fade_s": join_fade_s})
made, segments = reconstruction_tables(results, items)
reconstructions = stage.write("reconstructions", made)
timeline = stage.write("timeline", segments)

# %% [markdown]
# ## Counts
#
# `n_retained` turns keep their converted speech, identifiers included, because their
# rendering failed. `n_failed` turns are silent or clipped away. Each saved file is read
# again and compared with a replay of its segment table.

# %%
columns = ["n_segments", "n_rendered", "n_retained", "n_failed", "clipped_s", "inserted_s"]
summary = reconstructions.groupby("condition")[columns].sum()
summary["recordings"] = reconstructions.groupby("condition").size()
summary["replay_max_steps"] = reconstructions.groupby("condition")["replay_max_steps"].max()
report.table(summary.reset_index())

# %%
unfaithful = reconstructions[reconstructions["replay_max_steps"] > max_replay_steps]
if len(unfaithful):
    raise ValueError(
        f"{len(unfaithful)} reconstructions do not replay, e.g. {unfaithful.iloc[0, :2]}"
    )
report.table(reconstructions.drop(columns=["file", "sha256"]))

# %% [markdown]
# ## How the clock moves
#
# A rendered turn may be longer or shorter than its source and shifts what follows.

# %%
#| label: fig-shift
#| fig-cap: Shift of each turn's start against the source, in seconds, by source time.
#| fig-alt: One line a conversation, one panel a condition; the converted lines lie at zero.
report.style()
turns = timeline[timeline["kind"] == "turn"].copy()
turns["source time in s"] = turns["source_start"].astype(float) / 16_000
turns["shift in s"] = (turns["out_start"] - turns["source_start"]).astype(float) / 16_000
plot = so.Plot(turns, x="source time in s", y="shift in s", color="recording_id")
plot = plot.add(so.Line(linewidth=1.2))
plot.facet("condition", wrap=2) if len(turns) else "no recording holds a turn"

# %% [markdown]
# ## Listen
#
# The first seconds of one conversation in each de-identified condition.

# %%
ok = reconstructions[reconstructions["status"] == "ok"]
example = ok.sort_values("recording_id")["recording_id"].iloc[0] if len(ok) else None
for row in ok[ok["recording_id"] == example].itertuples():
    display(report.say(f"`{row.condition}`, {row.recording_id}"))
    display(report.player(stage.run.root / row.file))

# %% [markdown]
# ## What this shows

# %%
total = summary.loc[["renderer_a", "renderer_b"]]
report.say(
    " ".join(
        f"`{name}` holds {row.n_rendered:.0f} rendered and {row.n_retained:.0f} retained converted"
        f" turns in {row.recordings:.0f} recordings and is {row.inserted_s:+.1f} s longer in all."
        for name, row in total.iterrows()
    )
    + f" {summary['clipped_s'].iloc[0]:.1f} s of overlapping speech were clipped a condition."
    f" The largest replay difference is {summary['replay_max_steps'].max():.1f} PCM16 steps."
)

# %%
stage.done()
