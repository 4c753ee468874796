# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Rendering the edits {#sec-render}
#
# How many planned edits does each renderer turn into sound, and what does it refuse?
# Every intention is rendered alone in its turn (*focused*); all edits of a turn are
# rendered together for the reconstruction (*region*). Each renderer has one attempt, and
# a failure stays a failure: nothing is listened to and no other renderer steps in.
#
# `renderer_a` speaks only a mask around each edit and splices it into the converted turn;
# `renderer_b` speaks the whole turn in the pseudo-voice; `redacted` covers the edit. The
# paper's engines for the two roles are VoiceCraft and F5-TTS.

# %% tags=["parameters"]
run_name: str = "demo"  # the run whose tables are read and written
renderer_a: str = "infill"  # engine of condition renderer_a (paper: VoiceCraft 330M)
renderer_b: str = "whole-turn"  # engine of condition renderer_b (paper: F5-TTS)
synthesiser: str = "kokoro"  # speech synthesiser behind both embedded renderers
max_mask_share: float = 1.0  # infill refuses edits that take more of the turn's word time
redaction: str = "tone"  # tone, noise or silence over a redacted edit
margin_s: float = 0.1  # widening of a redaction on both sides, seconds
seed: int = 20261005  # of engines that draw

# %%
import pandas as pd
import seaborn.objects as so
from IPython.display import display

from aegis import report
from aegis.stage import open_stage
from aegis.work.render import build_requests, render_request, rendered_table

stage = open_stage("06_render_edits", globals())

# %% [markdown]
# ## Requests
#
# A turn with a single edit asks for the same sound twice, focused and composed. It is
# rendered once; both rows point to it.

# %%
names = ("edits", "regions", "turns", "words", "converted", "assignments", "voices")
tables = {name: stage.read(name) for name in names}
items, asked = build_requests(tables)
asked.groupby("kind").agg(
    asked=("item_id", "size"),
    distinct_requests=("request_id", "nunique"),
    edits=("n_edits", "sum"),
)

# %% [markdown]
# ## Rendering

# %%
engines = {
    "renderer_a": (renderer_a, {"synthesiser": synthesiser, "max_mask_share": max_mask_share}),
    "renderer_b": (renderer_b, {"synthesiser": synthesiser}),
    "redacted": ("bleep", {"kind": redaction, "margin_s": margin_s}),
}
parts, costs = [], []
for condition, (engine, options) in engines.items():
    settings = {"condition": condition, "engine": engine, "options": options, "seed": seed}
    results = stage.map(render_request, items, settings)
    parts.append(rendered_table(asked, results, condition))
    costs.append({"condition": condition, "engine": engine, "requests": len(results),
                  "engine_s": sum(result.engine_s for result in results)})  # fmt: skip
rendered = stage.write("rendered", pd.concat(parts))
pd.DataFrame(costs).round(1)

# %% [markdown]
# ## What became of them
#
# Intentions and regions have different denominators and are never added up.

# %%
counts = (
    rendered.assign(failed=rendered["status"] != "ok")
    .groupby(["renderer", "kind"])
    .agg(planned=("item_id", "size"), failed=("failed", "sum"), edits=("n_edits", "sum"))
)
counts["rendered"] = counts["planned"] - counts["failed"]
report.table(counts.reset_index())

# %%
reasons = rendered.dropna(subset="reason").groupby(["renderer", "status", "kind", "reason"])
display(report.table(reasons.size().rename("n").reset_index()))

# %% [markdown]
# ## Length of the edited turns

# %%
#| label: fig-length
#| fig-cap: Length of each rendered region beside its converted turn, in seconds.
#| fig-alt: Scatter of rendered against converted duration, one panel a renderer.
report.style()
source_s = tables["converted"].set_index("turn_id")["n_samples"] / 16_000
regions = rendered[(rendered["kind"] == "region") & (rendered["status"] == "ok")].copy()
regions["converted_s"] = regions["turn_id"].map(source_s).astype(float)
regions["rendered_s"] = regions["n_samples"].astype(float) / 16_000
plot = so.Plot(regions, x="converted_s", y="rendered_s").add(so.Dot(alpha=0.5))
plot = plot.limit(x=(0, None), y=(0, None))
plot.facet("renderer") if len(regions) else "nothing was rendered"

# %% [markdown]
# ## What this shows

# %%
region_counts = counts.xs("region", level="kind")
longer = (regions["rendered_s"] / regions["converted_s"]).groupby(regions["renderer"]).median()
report.say(
    " ".join(
        f"`{name}` rendered {row.rendered} of {row.planned} regions"
        f" (median length {longer.get(name, float('nan')):.2f} of the converted turn)."
        for name, row in region_counts.iterrows()
    )
    + " Whether a rendering says the replacement and no longer the original is measured by"
    " fresh recognition in chapter 09."
)

# %%
stage.done()
