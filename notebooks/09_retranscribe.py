# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # What does a listener hear in the end? {#sec-retranscribe}
#
# Everything is transcribed afresh: the originals (a control for the recogniser's own noise),
# each condition's whole conversations, and each rendered turn that holds one edit alone. In
# these transcripts code searches literally, on canonical forms, for the replacement and for the
# original. The paper, with a language model as judge, counts 453 of 601 replacements realised
# (75.37 %) and 21 originals retained for VoiceCraft, 535 (89.02 %) and 28 for F5-TTS.

# %% tags=["parameters"]
run_name: str = "demo"  # the run whose tables are read and written
asr: str = "whisper-base"  # transcriber of every condition, the originals included

# %%
import pandas as pd
import seaborn.objects as so

from aegis import report
from aegis.stage import open_stage
from aegis.text import score_transcripts
from aegis.work.relisten import (
    lexical_table,
    listen,
    listening_items,
    reference_texts,
    transcript_tables,
)

stage = open_stage("09_retranscribe", globals())
report.style()
names = ["recordings", "screening", "turns", "edits", "regions"]
names += ["rendered", "reconstructions", "timeline"]
tables = {name: stage.read(name) for name in names}

# %%
items = listening_items(tables, stage.run)
results = stage.map(listen, items, {"asr": asr})
made, words = transcript_tables(items, results, tables)
transcripts = stage.write("transcripts", made["transcripts"])
stage.write("turn_transcripts", made["turn_transcripts"])
sounds = transcripts.groupby(["kind", "condition", "status"]).size()
report.table(sounds.rename("transcripts").reset_index())

# %% [markdown]
# ## Word errors
#
# Against the saved transcript of the original (`source`) and, where there is a script, against
# what was really said (`gold`). Edited conditions differ from both where words were replaced on
# purpose. `by_value` compares numbers, doses and dates as quantities.

# %%
whole = transcripts[transcripts["kind"] == "conversation"]
languages = tables["turns"].groupby("recording_id")["language"].first().to_dict()
scores = [
    score_transcripts(whole, reference_texts(tables["turns"], "turn_index"), languages, "source")
]
if stage.has("gold_turns"):
    gold = reference_texts(stage.read("gold_turns"), "start_s")
    scores.append(score_transcripts(whole, gold, languages, "gold"))
scores = stage.write("transcript_scores", pd.concat(scores, ignore_index=True))

# %%
kinds = ["substitutions", "deletions", "insertions"]
ok = scores[scores["status"] == "ok"]
pooled = ok.groupby(["reference", "condition"])[["n_reference", *kinds]].sum().reset_index()
pooled["word_error"] = pooled[kinds].sum(axis=1) / pooled["n_reference"]
report.table(pooled, 3)

# %% [markdown]
# ## Replacement heard, original heard
#
# A spelling variant counts when it sounds the same and most letters agree; what is merely
# similar is uncertain. A failed rendering stays in the denominator as unknown.

# %%
matches = stage.write("lexical_matches", lexical_table(tables, transcripts, words))
focused = matches[matches["scope"] == "focused"]
rates = []
for condition, own in focused.groupby("condition"):
    for column, value in {"replacement_status": "realised", "original_status": "retained"}.items():
        rates.append(
            {
                "rate": f"{value}, {condition}",
                "numerator": int((own[column] == value).sum()),
                "denominator": len(own),
                "unknown": int(own[column].isin(["uncertain", "failed"]).sum()),
                "not_applicable": 0,
            }
        )
report.rates(pd.DataFrame(rates))

# %%
kept = matches[(matches["original_status"] == "retained") & (matches["scope"] == "focused")]
by_plan = kept.groupby(["condition", "planned_text_holds_original"]).size()
report.table(by_plan.rename("retained").reset_index())

# %%
#| label: fig-originals-heard
#| fig-cap: Edits whose original is retained, absent or uncertain in the whole conversation.
#| fig-alt: Stacked bars of edits, one bar a condition, one colour a status.
conversations = matches[matches["scope"] == "conversation"]
status = conversations.groupby(["condition", "original_status"]).size().rename("edits")
status = status.reset_index()
plot = so.Plot(status, x="condition", y="edits", color="original_status")
plot = plot.add(so.Bar(), so.Stack()).label(x="", y="edits", color="original is")
report.figure(status, lambda: plot)

# %% [markdown]
# ## What this shows

# %%
lines = [
    f"In {condition} the replacement is heard in"
    f" {report.share(own, 'replacement_status', 'realised')} and the original still heard in"
    f" {report.share(own, 'original_status', 'retained')} edits."
    for condition, own in focused.groupby("condition")
]
own = ok[(ok["condition"] == "original") & (ok["reference"] == "source")]
noise = report.percent(float(own[kinds].sum().sum()), float(own["n_reference"].sum()))
report.say(f"""
{len(transcripts)} transcripts were made or are rows with a reason. A repeat transcription of
the originals differs from the saved one in {noise} of its words. {" ".join(lines)}
""")

# %%
stage.done()
