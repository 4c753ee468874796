# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Detecting identifiers and planning their replacement {#sec-plan}
#
# Which words of the conversations identify somebody, and what may stand in their place?
# The detector reads one complete speaker-attributed transcript at a time and follows a
# frozen contract over the Safe Harbor families. All mentions of one person, place or
# number form an *entity* with one replacement (rho) in the language of the source; each
# mention is one *edit intention*; all edits of a turn together are one *region*.
#
# The paper's planner is GPT-5.4: with `detector = chat` a model replies with an inventory, its
# replacements and ordered edits; code finds every occurrence, and the validator below is the
# same. The embedded detector combines recognisers for spoken and written forms, a tagger, and
# spaCy under presidio; what is surely a name anywhere is looked up in every turn, and a number
# said over several turns is one entity with a replacement in pieces. What it misses, or what
# the recogniser never wrote down, is not edited; the scorecard measures both.

# %% tags=["parameters"]
run_name: str = "demo"  # the run whose tables are read and written
detector: str = "rules"  # rules (embedded) or chat (paper: GPT-5.4 under the frozen contract)
model: str = ""  # chat model of the capability table, for detector = chat
max_cost: float = 50.0  # US dollars at which a hosted detection stops
seed: int = 20260101  # draws of replacements; the same seed gives the same map

# %%
import pandas as pd
import seaborn.objects as so
from IPython.display import display

from aegis import report
from aegis.manifests import read_contract
from aegis.phi import CATEGORIES
from aegis.stage import open_stage
from aegis.work.plan import plan_items, plan_recording, plan_tables

stage = open_stage("05_plan_edits", globals())

# %% [markdown]
# ## The contract
#
# Where Safe Harbor is silent the decisions are ours, and stand in the rules below: days
# and months are identifiers but bare years, lone weekdays and durations are not; ages
# count from 90; places count below state level; titles stay outside the span.

# %%
report.say(
    f"The contract is a frozen file, sha256 `{read_contract().sha256}`, of"
    f" {len(CATEGORIES)} categories."
)
pd.DataFrame(CATEGORIES.items(), columns=["category", "what counts"])

# %% [markdown]
# ## Detection and plan, one recording at a time
#
# Every mention must stand literally in its turn. An edit is refused where its span
# overlaps another, lies inside a longer word, or holds a drug name; the edited turn must
# equal the source outside the spans, and so must its doses, negations and times.

# %%
turns, words, recordings = (stage.read(name) for name in ("turns", "words", "recordings"))
items = plan_items(turns, words, recordings)
settings = {"detector": detector, "seed": seed}
settings |= {"model": model, "max_cost": max_cost} if detector == "chat" else {}
results = stage.map(plan_recording, items, settings)
tables = plan_tables(items, results)
failed = [result for result in results if result.status != "ok"]
report.table(
    pd.DataFrame(
        [["planned", len(results) - len(failed)], *([result.reason, 1] for result in failed)],
        columns=["fate", "recordings"],
    )
)

# %% [markdown]
# ## What was found
#
# Originals and replacements are secret: only counts are shown.

# %%
counts = [
    "n_mentions", "n_entities", "n_edits", "n_unlocated", "n_untimed", "n_refused",
]  # fmt: skip
summary = tables["plan_summary"]
by_category = summary.groupby("category")[counts].sum().sort_values("n_mentions", ascending=False)
by_category

# %%
#| label: fig-mentions
#| fig-cap: Detected mentions of identifiers, by category.
#| fig-alt: Horizontal bars, one a category, of the number of mentions.
shown = by_category.reset_index()
report.style()
plot = so.Plot(shown, x="n_mentions", y="category").add(so.Bar())
plot = plot.label(x="mentions", y="", title="Detected mentions by category")
report.figure(shown, lambda: plot)

# %%
per_recording = summary.groupby("recording_id")[counts].sum()
per_recording["regions"] = tables["regions"].groupby("recording_id").size()
display(per_recording.fillna(0).astype(int))

# %% [markdown]
# ## Tables

# %%
for name, table in tables.items():
    stage.write(name, table)

# %% [markdown]
# ## What this shows

# %%
total = by_category.sum() if len(by_category) else pd.Series(dict.fromkeys(counts, 0))
report.say(
    f"{len(results) - len(failed)} of {len(results)} recordings were planned. "
    f"{int(total['n_mentions'])} mentions of {int(total['n_entities'])} entities gave "
    f"{int(total['n_edits'])} edits in {len(tables['regions'])} turns; "
    f"{int(total['n_unlocated'])} mentions were not located "
    f"and {int(total['n_refused'])} edits refused. "
    f"{int(total['n_untimed'])} mentions have no usable word times: "
    "for those only a whole turn can be rendered."
)

# %%
stage.done()
