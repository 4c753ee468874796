# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Are the facts still said? {#sec-facts-judged}
#
# Each frozen fact is looked for in the fresh transcript of each condition: preserved, partial,
# missing, contradicted or uncertain, with literal evidence. The paper finds 96.97 % preserved in
# a fresh transcription of the original, 77.93 % after conversion, 77.41 % and 77.31 % after its
# two renderers, and more contradictions in the second (479 against 391 of 25,778). The embedded
# judge is rules: it compares slots (drug, dose as a quantity, side, time, person, negation), so
# presentation order, repetition and identical text change nothing, by construction. No judge sees
# a study case before it qualified.

# %% tags=["parameters"]
run_name: str = "demo"  # the run whose tables are read and written
judge: str = "rules"  # rules (embedded) or chat
model: str = ""  # chat model of the capability table, for judge = chat
two_orders: bool = False  # judge also with the target first
max_cost: float = 200.0  # US dollars at which a hosted campaign stops
seed: int = 20261005  # seed of the changes made to scripts

# %%
import pandas as pd
import seaborn.objects as so

from aegis import report
from aegis.accounting import account
from aegis.clinical_contrasts import LABELS, contradiction_table, partition
from aegis.clinical_truth import agreement_table, perturbed_cases
from aegis.engines.anchors import compare_passages, judge_anchors
from aegis.engines.judging import ORDERS
from aegis.engines.qualification import require_qualified
from aegis.stage import open_stage
from aegis.work.clinical import load_engine
from aegis.work.judge import ARMS, judge_items, judge_recording, verdict_tables

stage = open_stage("10_judge_facts", globals())
report.style()
names = ["recordings", "turns", "facts", "actions", "chronology", "turn_transcripts"]
tables = {name: stage.read(name) for name in names}

# %% [markdown]
# ## The judge qualifies first
#
# 36 harmful and 9 benign cases in both orders; rules also answer 40 seeded cases from templates.
# The author of the rules had read the 45 cases, so the seeded ones say more. A judge that misses
# a gate is refused here.

# %%
orders = list(ORDERS) if two_orders else [ORDERS[0]]
settings = {"judge": judge, "model": model, "orders": orders, "max_cost": max_cost}
engine = load_engine("judge", settings, stage.run)
gates = [
    {
        "suite": result.suite,
        "gate": gate,
        "numerator": reached,
        "denominator": total,
        "needed": need,
    }
    for result in require_qualified(engine)
    for gate, (reached, need, total) in result.counts.items()
]
report.rates(pd.DataFrame(gates))

# %%
items = judge_items(tables)
anchors = judge_anchors(engine, "start")
results = stage.map(judge_recording, items, settings)
anchors = stage.write("anchors", pd.DataFrame([*anchors, *judge_anchors(engine, "end")]))
made = verdict_tables(tables, items, results, engine.info.name, ARMS)
verdicts = stage.write("fact_verdicts", made["fact_verdicts"])
endpoints = stage.write("endpoint_verdicts", made["endpoint_verdicts"])
stage.write("verdict_evidence", made["verdict_evidence"])
outcomes = partition(verdicts)
report.table(outcomes)

# %%
report.table(account(verdicts, ["condition", "order"]))

# %%
drift = compare_passages(anchors)
rules = "The judge is rules: no drift, by construction." if judge == "rules" else ""
report.say(f"""
{drift["changed"]} of {drift["cases"]} anchor cases have another label at the end of the campaign
than at its start; {drift["unobserved"]} have no valid label in both. {rules}
""")

# %% [markdown]
# `source_text` is the saved source transcript judged against itself (self-consistency); `original`
# is a fresh transcription of the original audio. Scheduled = the five labels + unobserved.

# %%
#| label: fig-fact-verdicts
#| fig-cap: Verdicts on the facts in each condition; what was not observed stays in the bar.
#| fig-alt: Stacked bars of facts, one bar a condition, one colour a verdict.
long = outcomes.melt("condition", [*LABELS, "unobserved"], "label", "facts")
plot = so.Plot(long, x="condition", y="facts", color="label").add(so.Bar(), so.Stack())
report.figure(long, lambda: plot.label(x=""))

# %%
report.table(contradiction_table(verdicts))

# %% [markdown]
# ## Actions, roles, chronology, final states
#
# Omission, change of role and unsupported addition are kept apart. A conversation meets an
# endpoint only if all of its items are preserved.

# %%
inner = endpoints[~endpoints["kind"].str.startswith("conversation")]
report.table(
    inner.groupby(["kind", "condition"])["label"].value_counts().rename("items").reset_index()
)

# %%
report.table(account(inner, ["kind", "condition"]))

# %%
whole = endpoints[endpoints["kind"].str.startswith("conversation")]
met = whole.groupby(["kind", "condition"])["label"].agg(
    numerator=lambda x: int((x == "met").sum()),
    denominator="size",
    unknown=lambda x: int(x.isna().sum()),
)
report.rates(met.reset_index())

# %% [markdown]
# ## Against known changes
#
# Scripted facts were changed on purpose, in text: doses, negation, sides, drugs, persons, order,
# omissions, and formats that change nothing. The label that a change warrants is known; each
# kind of change is shown with the labels that were right.

# %%
known = stage.read("gold_facts") if stage.has("gold_facts") else pd.DataFrame()
cases, agreed = [], None
if len(known):
    cases = perturbed_cases(stage.read("gold_turns"), known, seed)
    judged = engine.judge([entry.case for entry in cases], ORDERS[0])
    agreed = agreement_table(cases, judged, ["language", "kind"])
report.rates(agreed) if agreed is not None else report.say("No script.")

# %%
report.rates(agreement_table(cases, judged, ["importance"])) if cases else None

# %% [markdown]
# ## What this shows

# %%
shares = [
    f"{row.condition} {report.percent(row.preserved, row.scheduled - row.unobserved)}"
    for row in outcomes.itertuples()
]
right = (
    report.percent(float(agreed["numerator"].sum()), float(agreed["denominator"].sum()))
    if agreed is not None
    else "not measured"
)
report.say(f"""
Of {tables["facts"]["fact_id"].nunique()} frozen facts the judge {engine.info.name} labels as
preserved: {", ".join(shares)}. Agreement with known changes: {right}. Labels compare transcripts:
recognition errors, conversion and rendering all show in them, and none is a clinician's finding.
""")

# %%
stage.done()
