# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # I.1 The same original twice: how much of an effect is noise? {#sec-repeat}
#
# The original recordings are transcribed a second time and judged a second time, against the same
# frozen facts. What changes then is no effect of any condition. A recogniser that decodes greedily
# and a judge made of rules must change nothing: for them this floor is zero by construction, and
# it is measured here once all the same. The paper's control transcribes all 390 originals afresh:
# 335 transcripts differ from the saved source text, and 24,998 of 25,778 facts are preserved.
#
# The floor stands beside every effect on words, facts and conversations: in chapter 13 and in
# appendices D, I, N and P.

# %% tags=["parameters"]
run_name: str = "demo"  # the run whose tables are read and written
asr: str = "whisper-base"  # the transcriber of chapter 09
judge: str = "rules"  # the judge of chapter 10
model: str = ""  # chat model of the capability table, for judge = chat
n_recordings: int = 6  # originals heard twice, 0 for all
exact: list[str] = ["whisper-base", "whisper-tiny.en", "rules"]  # engines that repeat themselves

# %%
import pandas as pd

from aegis import report
from aegis.contrasts import show
from aegis.stage import open_stage
from aegis.work import repeat
from aegis.work.judge import judge_items, judge_recording, verdict_tables
from aegis.work.relisten import listen, reference_texts

stage = open_stage("I1_repeat", globals())
names = ["recordings", "screening", "turns", "edits", "rendered", "reconstructions", "timeline"]
names += ["facts", "actions", "chronology", "transcripts", "turn_transcripts", "fact_verdicts"]
names += ["endpoint_verdicts"]
tables = {name: stage.read(name) for name in names}

# %% [markdown]
# ## Heard again

# %%
items = repeat.repeat_items(tables, stage.run, n_recordings)
results = stage.map(listen, items, {"asr": asr})
whole, turns = repeat.repeat_transcripts(tables, items, results)
first = tables["transcripts"]
first = first[(first["kind"] == "conversation") & (first["condition"] == "original")]
both = whole.merge(first, on="recording_id", suffixes=("", "_first"))
differ = int((both["text"] != both["text_first"]).fillna(False).sum())  # failed: unobserved
fresh = sum(not result.cached for result in results)
report.table(
    pd.DataFrame([{"heard twice": len(whole), "computed now": fresh, "texts that differ": differ}])
)

# %% [markdown]
# ## Judged again

# %%
heard = tables | {"turn_transcripts": turns}
cases = judge_items(heard, [repeat.ARM])
settings = {"judge": judge, "model": model, "orders": ["source_first"]}
settings["replies"] = "replies_second"  # else a chat judge would repeat its saved replies
judged = stage.map(judge_recording, cases, settings)
chosen = set(whole["recording_id"])
own = {name: table[table["recording_id"].isin(chosen)] for name, table in tables.items()}
verdicts = verdict_tables(own, cases, judged, judge, [repeat.ARM])
labels = verdicts["fact_verdicts"]["label"]
report.table(labels.value_counts(dropna=False).rename("facts").reset_index())

# %% [markdown]
# ## The floor of each endpoint
#
# `n_differing` counts items that changed either way, `estimate` the change of the rate, repeat
# minus first, which may be zero although items changed.

# %%
references = {"source": reference_texts(tables["turns"], "turn_index")}
if stage.has("gold_turns"):
    references["gold"] = reference_texts(stage.read("gold_turns"), "start_s")
exactly = {asr, judge} <= set(exact)
matches = repeat.repeat_matches(tables, turns)
noise = repeat.noise_table(tables, whole, matches, verdicts, references, exactly)
noise = stage.write("noise_floor", noise)
report.table(noise, 4)

# %% [markdown]
# ## What this shows

# %%
known = noise[noise["status"] == "ok"]
largest = known["estimate"].abs().max()
moved = int((known["n_differing"] > 0).sum())
report.say(f"""
{len(whole)} originals were heard and judged twice; {differ} transcripts differ and {moved} of
{len(known)} endpoints have items that changed. The largest floor is {show(largest, digits=2)}
points. {"Both engines repeat themselves: the floor is zero by construction." if exactly else ""}
{"The measurement contradicts that." if exactly and moved else ""}
""")

# %%
compared = pd.DataFrame(
    [
        ["originals heard afresh", "390", str(len(whole)), "own corpus"],
        ["transcripts that differ from the first", "335 of 390", f"{differ} of {len(whole)}",
         "the paper compares with its saved source text, here a repeat with the first"],
        ["noise of the judge", "not measured", "zero by construction" if exactly else "measured",
         "rules"],
    ],
    columns=["quantity", "paper", "this run", "comparable?"],
)  # fmt: skip
report.table(compared)

# %%
stage.done()
