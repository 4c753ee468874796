# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Which clinical facts does the conversation hold? {#sec-facts}
#
# A fact is one checkable statement with its modifiers and its literal evidence in one turn. Facts,
# actions (who does what, how far it is) and chronology (relations, revisions, final states) are
# extracted once, from the source transcript, and frozen: every condition is judged against the
# same inventory. The paper's GPT-5.4 extracts 25,778 facts from 390 recordings. The embedded
# extractor is rules, not a model; what neither the recogniser nor the extractor saw is in no
# later number.

# %% tags=["parameters"]
run_name: str = "demo"  # the run whose tables are read and written
extractor: str = "rules"  # rules (embedded) or chat
model: str = ""  # chat model of the capability table, for extractor = chat
max_cost: float = 50.0  # US dollars at which a hosted extraction stops

# %%
import pandas as pd
import seaborn.objects as so

from aegis import report
from aegis.accounting import account
from aegis.clinical_truth import extraction_table, plan_table
from aegis.stage import open_stage
from aegis.work.inventory import extract_recording, inventory_items, inventory_tables

stage = open_stage("08_extract_facts", globals())
report.style()
recordings, turns = stage.read("recordings"), stage.read("turns")

# %%
items = inventory_items(recordings, turns)
settings = {"extractor": extractor, "model": model, "max_cost": max_cost}
results = stage.map(extract_recording, items, settings)
made = inventory_tables(recordings, results, extractor)
for name in ("facts", "actions", "chronology"):
    stage.write(name, made[name])
summary = stage.write("inventory_summary", made["inventory_summary"])
counts = ["n_facts", "n_critical", "n_major", "n_minor", "n_negated", "n_actions", "n_relations"]
report.table(summary.groupby(["language", "status"], dropna=False)[counts].sum().reset_index())

# %%
report.table(account(summary, ["language"], "recordings"))

# %% [markdown]
# ## What kind of facts
#
# Importance is how much a wrong statement could matter: drugs, doses and red flags are critical.
# It describes the source fact, not the severity of a later error.

# %%
#| label: fig-facts
#| fig-cap: Clinical facts of the frozen inventory, by importance and polarity.
#| fig-alt: Stacked bars of facts, one bar an importance, one colour a polarity.
facts = made["facts"]
kinds = facts.groupby(["importance", "polarity"]).size().rename("facts").reset_index()
plot = so.Plot(kinds, x="importance", y="facts", color="polarity").add(so.Bar(), so.Stack())
report.figure(kinds, lambda: plot.label(x=""))

# %%
linked = pd.DataFrame(
    {
        "rate": ["fact with its question", "fact linked to an action"],
        "numerator": [
            int(facts["question_turn_id"].notna().sum()),
            int(facts["action_id"].notna().sum()),
        ],
        "denominator": len(facts),
    }
)
report.rates(linked)

# %% [markdown]
# ## Against the script
#
# Where a recording was made from a script, its facts are known. An extracted fact is right when
# it lies in the same turn, has the same polarity and shares at least half of its words.

# %%
truth = None
if stage.has("gold_facts"):
    gold_facts, gold_turns = stage.read("gold_facts"), stage.read("gold_turns")
    truth = extraction_table(facts, turns, gold_facts, gold_turns)
shown = report.rates(truth) if truth is not None and len(truth) else report.say("No script.")
shown

# %% [markdown]
# Actions and chronology are scored in the same way. An order of events has to be of the same
# kind (before, after, during); of matched actions the share with the right state is shown. The
# scripts list what a reader found worth listing, so what is found beyond them is not always
# wrong, and the author of the rules had read these scripts.

# %%
planned = None
names = ("gold_turns", "gold_actions", "gold_chronology")
if all(stage.has(name) for name in names):
    gold = {name: stage.read(name) for name in names}
    planned = plan_table(made["actions"], made["chronology"], turns, gold)
shown = report.rates(planned) if planned is not None and len(planned) else report.say("No script.")
shown

# %% [markdown]
# ## What this shows

# %%
frozen = summary[summary["status"] == "ok"]
sentence = ""
if truth is not None and len(truth):
    more = [] if planned is None else [planned[planned["measure"] != "state"]]
    rates = pd.concat([truth[truth["group"] == "all"].assign(group="fact"), *more])
    sentence = "Against the scripts: " + ", ".join(
        f"{row.group} {row.measure} ({row.language}) "
        f"{report.percent(row.numerator, row.denominator)}"
        for row in rates.itertuples()
    )
report.say(f"""
{len(facts)} facts, {len(made["actions"])} actions and {len(made["chronology"])} relations of
{len(frozen)} recordings are frozen, each inventory under its hash. {sentence}. Recordings without
an inventory: {len(summary) - len(frozen)}, each with its reason.
""")

# %%
stage.done()
