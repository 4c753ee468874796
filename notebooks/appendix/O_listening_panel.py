# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # O. What do people hear? {#sec-panel}
#
# In the paper five reviewers rated 25 clinical and 25 perceptual items in a blinded panel, 125
# ratings each; only seven clinical and four perceptual items were of the F5-TTS renderer. Such
# uneven coverage supports descriptions and no ranking. Here the conditions are balanced by
# construction.
#
# `aegis panel build` writes a page for each reviewer: excerpts in an order of their own, no word
# about conditions, answers by keyboard, progress kept in the browser. `aegis panel read FILES`
# checks what they saved against the secret key and merges it. This page then describes it; it
# tests nothing. Five reviewers hear the same items, so that agreement is per item.

# %% tags=["parameters"]
run_name: str = "demo"  # the run whose tables are read and written
least_ratings: int = 2  # ratings an item needs to enter the agreement

# %%
import pandas as pd
import seaborn.objects as so

from aegis import report
from aegis.panel import accepted, answers_folder, describe, item_agreement, key_path, read_key
from aegis.stage import open_stage
from aegis.tables import empty_table

stage = open_stage("O_listening_panel", globals())
report.style()
stage.uses(answers_folder(stage.run))
stage.uses(key_path(stage.run))
found = accepted(stage.run)
ratings = stage.write("panel_ratings", empty_table("panel_ratings") if found is None else found)

# %% [markdown]
# ## What was built

# %%
built = key_path(stage.run).exists()
items = pd.DataFrame(read_key(stage.run)["items"] if built else [], columns=["kind", "condition"])
planned = items.groupby(["kind", "condition"]).size().rename("items").reset_index()
report.table(planned) if built else report.say("No panel was built for this run.")

# %% [markdown]
# A clinical excerpt holds the turn of a fact, its neighbours and the question that it answers, at
# least one of them with a rendered edit. A perceptual excerpt is one turn. `converted` takes turns
# without any edit, since others would speak the identifiers.
#
# ## What was heard
#
# Good is a fact heard as stated, or naturalness 4 and 5. Ratings that are missing stay in the
# denominator.

# %%
summary = describe(ratings)
report.rates(summary) if found is not None else report.say("Nobody has answered yet.")

# %%
#| label: fig-ratings
#| fig-cap: Answers of the listeners, by kind of question and condition.
#| fig-alt: Bars of ratings by answer, one panel a kind, one colour a condition.
answered = ratings.dropna(subset="answer").astype({"answer": str})
counted = answered.groupby(["kind", "condition", "answer"]).size().rename("ratings").reset_index()
plot = so.Plot(counted, x="answer", y="ratings", color="condition").add(so.Bar(), so.Dodge())
report.figure(counted, lambda: plot.facet("kind").share(x=False))

# %%
agreement = item_agreement(ratings)
enough = agreement[agreement["n_ratings"] >= least_ratings]
by_kind = enough.groupby("kind")["agreement"].agg(["size", "mean", "min", "max"]).reset_index()
report.table(by_kind)

# %%
coverage = ratings.assign(given=ratings["answer"].notna()).groupby("reviewer")["given"]
report.table(coverage.agg(planned="size", given="sum").astype(int).reset_index())

# %% [markdown]
# ## What this shows

# %%
given = len(answered)
shares = [
    f"{row.kind}, `{row.condition}`: {report.percent(row.numerator, row.denominator)}"
    for row in summary.itertuples()
]
report.say(f"""
{given} of {len(ratings)} planned ratings are there. {"; ".join(shares)}. These describe what a few
people heard in a few excerpts; they rank no renderer.
""" if found is not None else "Nobody has listened for this run, so nothing is known about it.")

# %%
per_kind = items.groupby("kind").size()
spread = items.groupby(["kind", "condition"]).size()
even = f"{spread.min()} to {spread.max()}" if len(spread) else "not built"
compared = pd.DataFrame(
    [
        ["reviewers", "5", str(answered["reviewer"].nunique()), "as many as took part"],
        ["items, clinical and perceptual", "25 and 25",
         " and ".join(str(n) for n in per_kind) or "not built", "same design"],
        ["items of a condition", "7 and 4 for one renderer", even, "balanced here"],
        ["ratings", "125 and 125", str(given), "descriptive in both"],
    ],
    columns=["quantity", "paper", "this run", "comparable?"],
)  # fmt: skip
report.table(compared)

# %%
stage.done()
