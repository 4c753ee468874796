# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # G. How much depends on the judge? {#sec-second-judge}
#
# A judge must answer 45 cases (36 harmful, 9 benign) in two presentation orders before it sees a
# study case; a second judge then labels a sample stratified by importance, in both orders, without
# seeing the first one's labels. The paper's Qwen3-32B reaches 44/45 covered, 35/36 and 9/9, and
# kappa 0.253 to 0.340 with GPT-5.4 on 600 facts. With rules on both sides kappa is 1 by
# construction and no order can disagree: then only the suite itself says something.

# %% tags=["parameters"]
run_name: str = "demo"  # the run whose tables are read and written
second_judge: str = "rules"  # rules (embedded) or chat
model: str = ""  # chat model of the capability table, for second_judge = chat
n_sample: int = 600  # facts in the sample, spread over importance strata; all if fewer
n_draws: int = 10000  # bootstrap draws of conversations
max_cost: float = 50.0  # US dollars at which a hosted campaign stops
seed: int = 20261005  # seed of sample and draws

# %%
import numpy as np
import pandas as pd

from aegis import report
from aegis.accounting import account
from aegis.engines.judging import ORDERS, RulesJudge
from aegis.engines.qualification import (
    BLIND,
    BlindJudge,
    default_suites,
    qualify,
    read_suite,
    require_qualified,
)
from aegis.second_judge import consensus, kappas, sample_facts, second_items, weighted_rows
from aegis.stage import open_stage
from aegis.work.clinical import load_engine
from aegis.work.judge import judge_recording, second_table

stage = open_stage("G_second_judge", globals())
report.style()
names = ["turns", "facts", "actions", "chronology", "turn_transcripts", "fact_verdicts"]
tables = {name: stage.read(name) for name in names}

# %% [markdown]
# ## Qualification
#
# `right` counts the 40 seeded cases from sentence templates, which only rules have to answer too.

# %%
settings = {"judge": second_judge, "model": model, "max_cost": max_cost, "orders": list(ORDERS)}
engine = load_engine("judge", settings, stage.run)
qualified = [qualify(engine, suite) for suite in default_suites(engine)]
blind = [qualify(BlindJudge(RulesJudge(), n, cue), read_suite()) for n, cue in BLIND.items()]
rows = [row for result in (*qualified, *blind) for row in result.rows]
cases = stage.write("qualification", pd.DataFrame(rows))
require_qualified(engine)
gates = cases[cases["case_id"].str.startswith("gate:")]
report.table(gates[["judge", "suite", "case_id", "label", "expected", "passed"]])

# %% [markdown]
# Three judges with a blindness on purpose show that the suite can fail: each must be refused.

# %%
own = cases[(cases["judge"] == engine.info.name) & (cases["order"] == "consensus")]
by_kind = own.dropna(subset=["perturbation"]).groupby(["suite", "harmful", "perturbation"])[
    "passed"
]
report.rates(
    by_kind.agg(numerator="sum", denominator="size").astype(int).reset_index(),
)

# %% [markdown]
# ## The sample in two orders
#
# A label counts only if both orders agree. Failures and disagreements are unobserved.

# %%
sample = sample_facts(tables["facts"], n_sample, seed)
strata = pd.DataFrame(
    {
        "facts": tables["facts"]["importance"].value_counts(),
        "sample": sample["importance"].value_counts(),
    }
)
report.table(strata.rename_axis("importance").reset_index())

# %%
items = second_items(tables, sample)
results = stage.map(judge_recording, items, settings)
second = stage.write("second_verdicts", second_table(tables, items, results, engine.info.name))
labels = consensus(second)
report.table(account(second, ["condition", "order"]))

# %%
report.table(
    labels.groupby("condition")["label"].value_counts(dropna=False).rename("facts").reset_index()
)

# %%
split = second.dropna(subset=["label"]).groupby(["fact_id", "condition"])["label"].nunique()
rules = "For rules this is zero by construction." if second_judge == "rules" else ""
report.say(f"""
{int((split > 1).sum())} of {len(split)} facts and conditions have another label in the other
order and are left out of kappa. {rules}
""")

# %%
agreement = kappas(labels, tables["fact_verdicts"])
report.table(agreement, 3)

# %% [markdown]
# ## Strict preservation, weighted to all facts
#
# Each importance stratum counts by its share of all facts; whole conversations are resampled.

# %%
population = tables["facts"]["importance"].value_counts().to_dict()
weighted = pd.DataFrame(
    weighted_rows(labels, population, lambda: np.random.default_rng(seed), n_draws)
)
report.table(weighted, 3)

# %% [markdown]
# ## What this shows

# %%
reached = ", ".join(
    f"{r.case_id[5:]} {r.label}" for r in gates[gates["judge"] == engine.info.name].itertuples()
)
refused = gates[~gates["passed"].astype(bool)]["judge"].nunique()
same = set(tables["fact_verdicts"]["judge"]) == {engine.info.name}
report.say(f"""
The judge {engine.info.name} reaches {reached}; {refused} of {len(BLIND)} blind judges are refused.
{len(sample)} facts were judged in two orders and {labels["condition"].nunique()} conditions.
{"Both judges are the same rules: agreement is complete by construction." if same else ""}
""")

# %%
kappa = agreement["kappa"].astype(float)
span = f"{kappa.min():.3f} to {kappa.max():.3f}" if kappa.notna().any() else "not defined"
compared = pd.DataFrame(
    [
        ["covered by both orders", "44/45", reached, "same gates; own cases, not the paper's"],
        ["sampled facts", "600", str(len(sample)), "other inventory"],
        ["kappa", "0.253 to 0.340", span, "other judges"],
        [
            "valid of scheduled",
            "3,526/3,600",
            report.percent(int((second["status"] == "ok").sum()), len(second)),
            "rules never fail",
        ],
    ],
    columns=["quantity", "paper", "this run", "comparable?"],
)
report.table(compared)

# %%
stage.done()
