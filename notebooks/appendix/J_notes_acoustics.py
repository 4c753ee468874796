# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # J. Notes from transcripts alone, and the sound {#sec-notes}
#
# A note is written from one condition's transcript and an id that says only the dataset; the
# facts reach the judge, never the writer. Invalid notes are unobserved, not empty. The paper has
# 1,440 valid of 1,560 notes and 999 valid of 1,170 judgements; on 314 conversations and 20,316
# facts its second renderer minus the first is -0.37 points (CI -1.30 to 0.56). Embedded notes are
# the transcript's own clinical clauses: rules.

# %% tags=["parameters"]
run_name: str = "demo"  # the run whose tables are read and written
writer: str = "rules"  # note writer: rules (embedded) or chat
judge: str = "rules"  # judge of notes: rules (embedded) or chat
model: str = ""  # chat model of the capability table
max_cost: float = 100.0  # US dollars at which a hosted campaign stops
acoustic: list[str] = []  # clap, hear: cosine by learned encoders; needs their weights
n_draws: int = 10000  # bootstrap draws of conversations
seed: int = 20261005  # seed of the draws

# %%
import numpy as np
import pandas as pd

from aegis import report
from aegis.accounting import account
from aegis.contrasts import show
from aegis.engines.asking import ATTEMPTS
from aegis.engines.qualification import require_qualified
from aegis.note_contrasts import note_contrast, source_disagreement
from aegis.stage import open_stage
from aegis.work.clinical import load_engine
from aegis.work.notes import (
    acoustic_table,
    compare_spectra,
    judge_pair,
    note_items,
    note_table,
    note_verdict_table,
    pair_items,
    spectrum_items,
    write_note,
)

stage = open_stage("J_notes_acoustics", globals())
report.style()
names = ["recordings", "turns", "facts", "actions", "chronology", "turn_transcripts"]
tables = {name: stage.read(name) for name in [*names, "reconstructions", "timeline"]}
settings = {"writer": writer, "judge": judge, "model": model, "max_cost": max_cost}

# %%
jobs = note_items(tables)
notes = stage.write("notes", note_table(jobs, stage.map(write_note, jobs, settings), writer))
report.table(account(notes, ["condition"], "notes"))

# %%
engine = load_engine("judge", settings, stage.run)
require_qualified(engine)
pairs = pair_items(tables, notes)
judged = stage.map(judge_pair, pairs, settings)
verdicts = note_verdict_table(tables["facts"], pairs, judged, engine.info.name)
verdicts = stage.write("note_verdicts", verdicts)
report.table(account(verdicts, ["condition"], "judgements"))

# %% [markdown]
# An invalid reply is asked again until the attempt limit. One that lists the same unsupported
# assertion twice is quarantined: like any other invalid reply its facts stay unobserved.

# %%
quarantined = verdicts["reason"].astype(str).str.contains("quarantined")
report.say(f"""
Attempt limit {ATTEMPTS}; most attempts for a note {int(notes["attempts"].max())}; fact judgements
in quarantine {int(quarantined.sum())} of {len(verdicts)}.
""")

# %%
report.table(
    verdicts.groupby("condition")["label"].value_counts(dropna=False).rename("facts").reset_index()
)

# %% [markdown]
# ## Renderer contrast on the matched valid subset
#
# Bounds set uncertain and unobserved facts of the full population to both extremes; the
# conditional contrast keeps only facts that both source-note assessments include.

# %%
contrast = pd.DataFrame(note_contrast(verdicts, lambda: np.random.default_rng(seed), n_draws))
report.table(contrast, 3)

# %% [markdown]
# ## The sound
#
# Word errors are in their own stage and pooled here. Similarity of learned representations needs
# weights; without them it is not applicable. None of these says that a statement is right.

# %%
found = spectrum_items(tables["recordings"], tables["reconstructions"], stage.run)
sounds = stage.map(compare_spectra, found, {"acoustic": acoustic} if acoustic else {})
acoustics = stage.write("acoustics", acoustic_table(tables, found, sounds))
spread = acoustics.groupby(["measure", "unit", "condition"])["value"]
report.table(spread.agg(["median", "min", "max", "count"]).reset_index())

# %%
scores = stage.read("transcript_scores")
errors = ["substitutions", "deletions", "insertions"]
own = scores[(scores["status"] == "ok") & (scores["reference"] == "source")]
pooled = own.groupby("condition")[["n_reference", *errors]].sum()
pooled["word_error"] = pooled[errors].sum(axis=1) / pooled["n_reference"]
report.table(pooled.reset_index(), 3)

# %% [markdown]
# ## What this shows

# %%
valid = int((notes["status"] == "ok").sum())
seen = verdicts["label"].notna()
disagree = source_disagreement(verdicts)
main = contrast.iloc[0]
same = " (one rule reads the source note: zero by construction)" if judge == "rules" else ""
report.say(f"""
{report.percent(valid, len(notes))} notes and {report.percent(int(seen.sum()), len(verdicts))} fact
judgements are valid. Renderer B minus A: {show(main["estimate"])} points of strict
preservation on {int(main["facts"])} matched facts. The two source assessments differ in
{disagree} facts{same}.
""")

# %%
compared = pd.DataFrame(
    [
        ["valid notes", "1,440/1,560", report.percent(valid, len(notes)), "rules do not fail"],
        ["matched facts", "20,316", str(int(main["facts"])), "own corpus"],
        ["preserved, b - a, points", "-0.374", show(main["estimate"]), "own corpus, rules"],
        [
            "source assessments differ",
            "307",
            str(disagree),
            "by construction" if judge == "rules" else "yes",
        ],
        [
            "CLAP, HeAR",
            "reported",
            ", ".join(acoustic) or "not applicable",
            "own corpus" if acoustic else "weights not asked for",
        ],
    ],
    columns=["quantity", "paper", "this run", "comparable?"],
)
report.table(compared)

# %%
stage.done()
