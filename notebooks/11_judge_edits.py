# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Was each edit made, and is the original gone? {#sec-edits-judged}
#
# For each focused intention the judge sees the transcript of the source turn and of the edited
# turn, where the edit lies, and where the original occurs elsewhere. It says whether the source
# holds the original, whether the replacement is realised and whether the original is retained;
# uncertain is an answer. The paper's judge finds 453/601 (75.37 %) and 535/601 (89.02 %) realised,
# 21 and 28 retained, of which the planned text itself still held the original in 12 and 12.
# The embedded judge is the literal search of the retranscription stage: rules.

# %% tags=["parameters"]
run_name: str = "demo"  # the run whose tables are read and written
judge: str = "rules"  # rules (embedded) or chat
model: str = ""  # chat model of the capability table, for judge = chat
two_orders: bool = False  # judge also with the edited turn first
max_cost: float = 50.0  # US dollars at which a hosted campaign stops

# %%
import pandas as pd
import seaborn.objects as so

from aegis import report
from aegis.accounting import account
from aegis.clinical_contrasts import edit_bounds
from aegis.engines.judging import ORDERS
from aegis.engines.qualification import require_qualified
from aegis.stage import open_stage
from aegis.work.clinical import load_engine
from aegis.work.judge_edits import edit_items, edit_tables, judge_intentions

stage = open_stage("11_judge_edits", globals())
report.style()
names = ["turns", "edits", "transcripts", "lexical_matches"]
tables = {name: stage.read(name) for name in names}

# %%
orders = list(ORDERS) if two_orders else [ORDERS[0]]
settings = {"judge": judge, "model": model, "orders": orders, "max_cost": max_cost}
engine = load_engine("judge", settings, stage.run)
require_qualified(engine)
items = edit_items(tables)
results = stage.map(judge_intentions, items, settings)
made = edit_tables(tables, items, results, engine.info.name)
verdicts = stage.write("edit_verdicts", made["edit_verdicts"])
stage.write("edit_evidence", made["edit_evidence"])
report.table(account(verdicts, ["condition", "order"], "intentions"))

# %% [markdown]
# ## Outcomes
#
# A generation failure has no verdict and stays in the denominator, as unknown.

# %%
first = verdicts[verdicts["order"] == ORDERS[0]]
wanted = {
    "source_present": "yes",
    "replacement_status": "realised",
    "original_status": "retained",
}
rates = [
    {
        "rate": f"{value}: {column}, {condition}",
        "numerator": int((own[column] == value).sum()),
        "denominator": len(own),
        "unknown": int(own[column].isna().sum() + (own[column] == "uncertain").sum()),
    }
    for condition, own in first.groupby("condition")
    for column, value in wanted.items()
]
report.rates(pd.DataFrame(rates))

# %%
#| label: fig-edit-verdicts
#| fig-cap: Judged outcome of each focused edit, by renderer.
#| fig-alt: Stacked bars of edits, one bar a renderer, one colour an outcome.
counts = first.groupby(["condition", "replacement_status"]).size().rename("edits").reset_index()
plot = so.Plot(counts, x="condition", y="edits", color="replacement_status")
report.figure(counts, lambda: plot.add(so.Bar(), so.Stack()).label(x=""))

# %% [markdown]
# Renderer b minus a in points, with uncertain and invalid verdicts at both extremes. These bounds
# are no confidence intervals; intervals are in @sec-contrasts. Identical text has one verdict
# from rules, in any order, by construction.

# %%
report.table(edit_bounds(verdicts), 2)

# %% [markdown]
# ## Retained originals
#
# Where the original is retained, does the planned text still hold it? The denominator is not
# corrected for it.

# %%
kept = first[first["original_status"] == "retained"]
planned = kept.groupby(["condition", "planned_text_holds_original"]).size().rename("retained")
report.table(planned.reset_index())

# %% [markdown]
# ## What this shows

# %%
lines = [
    f"in {condition} {report.share(own, 'replacement_status', 'realised')} are realised and"
    f" {report.share(own, 'original_status', 'retained')} retained"
    for condition, own in first.groupby("condition")
]
report.say(f"""
Of {first["intention_id"].nunique()} focused intentions, {"; ".join(lines)}. The judge is
{engine.info.name}; neither a realised replacement nor an absent original proves that nothing
identifying is left in the conversation.
""")

# %%
stage.done()
