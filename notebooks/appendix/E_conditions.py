# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # E. The conditions, and what redaction leaks {#sec-conditions}
#
# Five conditions share recordings, front end, voices, conversion and planned edits; they differ
# in what is done with an affected turn. Localised redaction covers the edit and speaks nothing in
# its place. It is a deletion boundary: it removes most and pretends least. It still tells where
# something was removed and for how long, and what is left at its edges.

# %% tags=["parameters"]
run_name: str = "demo"  # the run whose tables are read and written
kinds: list[str] = []  # covers to attack: silence, tone (a bleep), noise; none: not run
margin_s: float = 0.1  # widening of a cover on both sides, seconds
asr: str = "whisper-base"  # transcriber of the covered turns
seed: int = 20261005  # of the noise

# %%
import pandas as pd
import seaborn.objects as so

from aegis import report
from aegis.redaction import leak_summary
from aegis.stage import open_stage
from aegis.tables import empty_table
from aegis.work.redact import probe_redaction, redaction_items, redaction_table

stage = open_stage("E_conditions", globals())
report.style()
reconstructions = stage.read("reconstructions")

# %% [markdown]
# ## Who gets what

# %%
definitions = pd.DataFrame(
    [
        ["original", "nothing", "as recorded", "control of recognition and judging"],
        ["converted", "every turn converted", "converted", "voice alone; identifiers are spoken"],
        ["renderer_a", "every turn converted", "edits spliced in (VoiceCraft's role)", "main"],
        ["renderer_b", "every turn converted", "spoken anew as a whole (F5-TTS's role)", "main"],
        ["redacted", "every turn converted", "edits covered", "deletion boundary"],
    ],
    columns=["condition", "voice", "affected turns", "what for"],
)
own = reconstructions.groupby("condition").agg(
    recordings=("recording_id", "nunique"), rendered_turns=("n_rendered", "sum"),
    retained_turns=("n_retained", "sum"), inserted_s=("inserted_s", "sum"),
)  # fmt: skip
report.table(definitions.merge(own, on="condition", how="left"))

# %% [markdown]
# Only `redacted` keeps every turn at its length; a rendered turn shifts what follows. A renderer
# that fails leaves the converted turn, identifiers included, and is counted as retained.
#
# ## Three covers under attack
#
# Every affected turn is covered in each way. A finder that knows neither the plan nor the kind of
# cover looks for stretches that no speech makes: position leaks where it finds one. Duration
# leaks as far as the covered time follows the length of what was said. Fresh recognition then
# looks for the original. An edge less than 10 dB below the rest of the turn cuts through speech.

# %%
names = ("edits", "regions", "turns", "words", "converted", "assignments", "voices")
items = redaction_items({name: stage.read(name) for name in names})
settings = {"margin_s": margin_s, "asr": asr, "seed": seed}
parts = [
    redaction_table(items, stage.map(probe_redaction, items, settings | {"kind": kind}), kind)
    for kind in kinds
]
redactions = stage.write("redactions", pd.concat(parts) if parts else empty_table("redactions"))
summary = leak_summary(redactions)
report.table(summary) if kinds else report.say("Not run in this profile.")

# %%
failed = redactions[redactions["status"] != "ok"].groupby(["kind", "reason"]).size()
report.table(failed.rename("regions").reset_index())

# %%
#| label: fig-covered
#| fig-cap: How long a cover lasts, by the length of what it hides.
#| fig-alt: Scatter of covered seconds against characters, one panel a kind of cover.
ok = redactions[redactions["status"] == "ok"].astype({"covered_s": float, "n_characters": float})
plot = so.Plot(ok, x="n_characters", y="covered_s").add(so.Dot(alpha=0.4), so.Jitter(0.4))
plot = plot.label(x="characters of what was covered", y="covered seconds")
report.figure(ok, lambda: plot.facet("kind"))

# %% [markdown]
# ## What this shows

# %%
lines = [
    f"`{row.kind}`: position found in {report.percent(row.position_found, row.covered)}, original"
    f" heard in {report.percent(row.original_heard, row.covered)} and uncertain in"
    f" {row.original_uncertain}; rank correlation of duration with length"
    f" {row.duration_rank_correlation:.2f}."
    for row in summary.itertuples()
]
report.say(
    " ".join(lines) + " A cover hides the word, never that a word was there, nor how long it was."
    if lines
    else "No cover was attacked in this profile; `make experiments` does."
)

# %%
compared = pd.DataFrame(
    [
        ["conditions", "original, SeedVC, VoiceCraft, F5-TTS, redaction",
         ", ".join(definitions["condition"]), "same roles, own engines"],
        ["what redaction leaks", "not reported", f"{len(summary)} covers measured", "ours"],
    ],
    columns=["quantity", "paper", "this run", "comparable?"],
)  # fmt: skip
report.table(compared)

# %%
stage.done()
