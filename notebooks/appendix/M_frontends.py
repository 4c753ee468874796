# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # M. What of the result is the front end's? {#sec-frontends}
#
# Each recogniser is crossed with each diarizer, and each pair goes through the whole downstream
# with fixed settings: profiles, assignment, conversion, planning, rendering, reconstruction,
# fresh recognition by the one evaluator, and judging. The paper crosses four recognisers with two
# diarizers on 390 recordings (3,120 recording-cells); strict preservation ranges from 0.771 to
# 0.807 and no pair leads in everything. One recogniser with competitive word errors gives no times
# that edits could be placed by: 2 of 481 and 3 of 596 intentions are realised with it. A
# transcript can be good and its timing interface unusable.
#
# `whisper-base-segments` reproduces that case: the same model as `whisper-base`, behind an
# interface that times segments but no words. A segment says roughly where its words belong and
# whose they are, which is too coarse for an edit. Where nothing can be localised, everything
# downstream is not applicable, not zero.

# %% tags=["parameters"]
run_name: str = "demo"  # the run whose tables are read and written
recognisers: list[str] = []  # recognisers crossed, none: not run in this profile
diarizers: list[str] = ["pyannote-segmentation", "window-clustering"]  # diarizers crossed
primary: list[str] = ["whisper-base", "pyannote-segmentation"]  # the pair of the main run

# %%
import itertools

import pandas as pd
import seaborn.objects as so

from aegis import report
from aegis.engines.speech import WITHOUT_WORD_TIMES
from aegis.frontends import NO_TIMES, cell_measures, complete_cells, score_recordings
from aegis.measures import read_measures
from aegis.stage import open_stage
from aegis.sweep import computed_s, make_setting, run_cost_s, run_variant
from aegis.tables import empty_table

stage = open_stage("M_frontends", globals())
report.style()
gold = [
    stage.read(name) if stage.has(name) else empty_table(name)
    for name in ("gold_turns", "gold_speech")
]

# %% [markdown]
# ## Every pair through everything
#
# The main run's own pair is not computed again. A pair whose recogniser declares that it times
# no word is heard and scored, and goes no further.

# %%
scored, measured, cost_s = [], [], {}
for asr, diarizer in itertools.product(recognisers, diarizers):
    cell, cost_s[asr, diarizer] = stage.run, 0.0
    untimed = asr in WITHOUT_WORD_TIMES
    if [asr, diarizer] != primary:
        values = {"01_transcribe.asr": asr, "01_transcribe.diarizer": diarizer}
        until = "01_transcribe" if untimed else "10_judge_facts"
        made = run_variant(stage.run, "M_frontends", make_setting(values), until)
        cell, cost_s[asr, diarizer] = made.run, computed_s(stage.run, made.run)
    tables = {name: cell.read(name) for name in ("screening", "words", "diarization")}
    names = {"asr": asr, "diarizer": diarizer}
    own = score_recordings(tables, *gold)
    scored.append(own.assign(**names))
    heard = set(own.loc[own["status"] == "ok", "recording_id"])
    parts = [cell_measures(own), read_measures(cell, heard)]
    measured.append(pd.concat(parts).assign(**names))

# %%
columns = ["asr", "diarizer"]
cells = pd.concat(scored) if scored else empty_table("frontend_recordings")
cells = stage.write("frontend_recordings", cells)
fates = cells.assign(reason=cells["downstream_reason"].fillna(""))
fates = fates.groupby([*columns, "status", "downstream", "reason"])
report.table(fates.size().rename("recordings").reset_index())

# %%
empty = empty_table("frontend_measures")
table = complete_cells(pd.concat(measured), cells) if measured else empty
table = stage.write("frontend_measures", table)
chosen = {
    "word errors": "front end",
    "word errors with the right speaker (cpWER)": "front end",
    "diarization error": "front end",
    "speech inside turns": "all",
    "words with times": "all",
    "edits with times": "all",
    "replacement realised": "renderer_b",
    "facts preserved": "renderer_b",
}
own = table[(table["measure"].map(chosen) == table["condition"]).fillna(False)]
wide = own.pivot_table("value", columns, "measure", dropna=False).reindex(columns=list(chosen))
shown = wide.map(lambda value: "not applicable" if pd.isna(value) else f"{value:.3f}")
report.table(shown.reset_index()) if measured else report.say("Not run in this profile.")

# %% [markdown]
# The facts of each pair are those of its own transcript, since its downstream starts there;
# denominators therefore differ between pairs. The table below has them, and the reason where a
# measure is not applicable.

# %%
kept = own.drop(columns=["value", "status"]).reset_index(drop=True)
report.rates(kept) if measured else report.say("Not run in this profile.")

# %%
#| label: fig-frontends
#| fig-cap: Facts preserved with each pair of recogniser and diarizer.
#| fig-alt: Points of preserved facts by condition, one colour a front end.
own = table[(table["measure"] == "facts preserved") & table["condition"].ne("source_text")]
own = own.assign(pair=own["asr"] + " + " + own["diarizer"]).astype({"value": float})
plot = so.Plot(own, x="condition", y="value", color="pair").add(so.Dot(), so.Dodge())
report.figure(own, lambda: plot.label(x="", y="facts preserved"))

# %% [markdown]
# ## What this shows

# %%
cost = sum(cost_s.values()) / run_cost_s(stage.run)
strict = wide["facts preserved"].dropna().astype(float)
words = wide["word errors"].astype(float)
lines = ""
untimed = [pair for pair in wide.index if pd.isna(wide.loc[pair, "edits with times"])]
if len(strict):
    lines = f"""Strict preservation in `renderer_b` ranges from {strict.min():.3f} to
    {strict.max():.3f}, best for {" with ".join(strict.idxmax())}; the least word errors
    ({words.min():.3f}) are those of {" with ".join(words.idxmin())}."""
if untimed:
    lines += f""" {" with ".join(untimed[0])} has {words[untimed[0]]:.3f} word errors and times
    for none of its words: a useful transcript whose edits have no place."""
report.say(f"""
{len(wide)} pairs, {len(cells)} recording-cells. {(cells["status"] == "not_applicable").sum()} are
in a language that the recogniser does not know, {(cells["downstream_reason"] == NO_TIMES).sum()}
more have words but no times: not applicable downstream. {lines}
""" if measured else "No pair was run in this profile; `make experiments` does.")

# %%
spread = f"{strict.min():.3f} to {strict.max():.3f}" if len(strict) else "not run"
compared = pd.DataFrame(
    [
        ["recording-cells", "3,120", str(len(cells)) if measured else "not run", "own corpus"],
        ["strict preservation by pair", "0.771 to 0.807", spread, "own inventories of each pair"],
        ["realised without usable times", "2/481 and 3/596",
         "not applicable" if untimed else "not run", "same kind of interface, other model"],
        ["processor time of the matrix over that of the chapters", "not reported",
         f"{cost:.2f}" if measured else "not run", "only what a pair changes is computed"],
    ],
    columns=["quantity", "paper", "this run", "comparable?"],
)  # fmt: skip
report.table(compared)

# %%
stage.done()
