# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # I. Where does every outcome go? {#sec-outcomes}
#
# The full partition of fact labels, contradictions pair by pair, retained originals beside the
# planned text, the original-audio control and the two edit populations. The paper has 237 facts
# contradicted under both renderers, 242 under the second only, 154 under the first only and
# 25,145 under neither.

# %% tags=["parameters"]
run_name: str = "demo"  # the run whose tables are read

# %%
import pandas as pd

from aegis import receipts, report
from aegis.clinical_contrasts import contradiction_table, effect_table, partition
from aegis.contrasts import RENDERERS
from aegis.stage import open_stage
from aegis.work.judge import compare_saved

stage = open_stage("I_outcomes", globals())
report.style()
verdicts, edits = stage.read("fact_verdicts"), stage.read("edit_verdicts")

# %%
outcomes = partition(verdicts)
report.table(outcomes)

# %%
strata = [
    partition(own).assign(importance=importance)
    for importance, own in verdicts.groupby("importance")
]
report.table(pd.concat(strata) if strata else outcomes)

# %% [markdown]
# ## Contradictions, pair by pair

# %%
pairs = contradiction_table(verdicts)
report.table(pairs)

# %% [markdown]
# ## Bounds and null control
#
# Differences in percentage points; `noise floor` is what hearing and judging the original a second
# time changes (appendix I.1). The bounds set uncertain and unobserved labels to both
# extremes and are no confidence intervals. The null control counts facts whose turn, neighbours
# and question read word for word the same in both arms, and how many of them have another label
# all the same: what a judge adds of its own. For rules presentation order and repetition cannot
# matter, by construction; other words elsewhere in the conversation still can.

# %%
facts, heard = stage.read("facts"), stage.read("turn_transcripts")
compared_arms = (RENDERERS, *(("original", name) for name in ("converted", *RENDERERS)))
noise = stage.read("noise_floor") if stage.has("noise_floor") else None
report.table(effect_table(verdicts, facts, heard, compared_arms, noise))

# %% [markdown]
# ## I.1 The original audio, heard again
#
# Fresh transcripts are compared with the saved ones; equal text neither proves nor disproves that
# a transcript was computed anew, the receipt does.

# %%
same = compare_saved(stage.read("turns"), stage.read("transcripts"))
made = receipts.read_receipt(stage.run, "09_retranscribe") or {}
control = pd.DataFrame(
    [
        ["recordings heard again", len(same)],
        ["text equal to the saved one", int(same.sum())],
        ["text different", int((~same).sum())],
        ["seconds of recognition in the receipt", round(float(made.get("engine_s", 0.0)), 1)],
    ],
    columns=["quantity", "value"],
)
report.table(control)

# %% [markdown]
# ## Self-consistency
#
# `source_text` is the saved source against itself; what is not preserved there is the judge's
# own error.

# %%
itself = outcomes[outcomes["condition"] == "source_text"]
report.table(itself)

# %% [markdown]
# ## I.3 Two populations of edits
#
# Focused intentions are rendered one by one; composed regions are whole affected turns in the
# reconstruction. Neither count stands in for the other.

# %%
rendered = stage.read("rendered")
report.table(
    rendered.groupby(["kind", "renderer", "status"]).size().rename("renderings").reset_index()
)

# %%
kept = edits[edits["original_status"] == "retained"]
retained = kept.groupby("condition")["planned_text_holds_original"].agg(["size", "sum"])
report.table(retained.reset_index().rename(columns={"size": "retained", "sum": "in planned text"}))

# %% [markdown]
# ## What this shows

# %%
count = pairs.set_index("contradicted in")["facts"]
report.say(f"""
{int(outcomes["scheduled"].max()) if len(outcomes) else 0} facts are scheduled in each condition.
Contradicted in both renderers: {count["both"]}; in renderer B only: {count["renderer_b only"]};
in renderer A only: {count["renderer_a only"]}. Of {len(same)} originals heard again,
{int(same.sum())} have the saved text.
""")

# %%
compared = pd.DataFrame(
    [
        [
            "facts",
            "25,778",
            str(int(outcomes["scheduled"].max()) if len(outcomes) else 0),
            "own corpus",
        ],
        ["contradicted in both", "237", str(count["both"]), "own corpus, rules"],
        ["second renderer only", "242", str(count["renderer_b only"]), "own corpus, rules"],
        ["first renderer only", "154", str(count["renderer_a only"]), "own corpus, rules"],
        [
            "fresh transcripts equal / different",
            "55 / 335",
            f"{int(same.sum())} / {int((~same).sum())}",
            "other recogniser",
        ],
        ["composed regions", "545", str(len(stage.read("regions"))), "own corpus"],
    ],
    columns=["quantity", "paper", "this run", "comparable?"],
)
report.table(compared)

# %%
stage.done()
