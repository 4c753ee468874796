# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # S. What exactly is specified? {#sec-specifications}
#
# Definitions that code enforces, printed from the code: schemas of tables, wiring of stages, the
# identifier contract, labels and gates of judges, families of tests. If this page and a text
# disagree, this page is what ran.

# %% tags=["parameters"]
run_name: str = "demo"  # the run whose qualification is shown

# %%
import pandas as pd

from aegis import clinical_contrasts, contrasts, figures, published, report, stats
from aegis.manifests import read_contract
from aegis.pipeline import STAGES
from aegis.receipts import RECEIPT
from aegis.stage import open_stage
from aegis.tables import CONDITIONS, SCHEMAS, STATUSES

stage = open_stage("S_specifications", globals())
report.style()
cases = stage.read("qualification")

# %% [markdown]
# ## Tables
#
# `?` marks a value that may be absent. A write that breaks a schema stops its stage.

# %%
report.table(
    pd.DataFrame(
        [
            {
                "table": name,
                "one row is": schema.unit,
                "visibility": schema.visibility,
                "key": " ".join(schema.key),
                "columns": " ".join(f"{column}:{kind}" for column, kind in schema.columns.items()),
            }
            for name, schema in SCHEMAS.items()
        ]
    )
)

# %% [markdown]
# ## Stages
#
# Each table has one owner; a stage may read only what stands in its line.

# %%
report.table(
    pd.DataFrame(
        [
            {
                "stage": name,
                "reads": " ".join(n for n in wiring.reads if not n.startswith(RECEIPT)),
                "writes": " ".join(wiring.writes),
                "follows receipts": any(n.startswith(RECEIPT) for n in wiring.reads),
            }
            for name, wiring in STAGES.items()
        ]
    )
)

# %% [markdown]
# ## The identifier contract

# %%
contract = read_contract()
report.table(
    pd.DataFrame(
        [[f.category, f.letter, f.include, f.exclude] for f in contract.families],
        columns=["category", "letter", "include", "exclude"],
    )
)

# %% [markdown]
# ## Conditions, labels, families

# %%
rules = [
    ["conditions", ", ".join(CONDITIONS)],
    ["fates of an item", ", ".join(STATUSES)],
    ["labels of a fact", ", ".join(clinical_contrasts.LABELS)],
    ["strict preservation counts", "preserved"],
    ["renderer contrasts", f"{contrasts.RENDERERS[1]} minus {contrasts.RENDERERS[0]}"],
    ["draws of conversations", f"{stats.N_DRAWS:,}"],
    ["sign flips", f"{stats.N_FLIPS:,}, p = (1 + extreme) / (1 + draws)"],
    *[[f"Holm family: {name}", f"{size} tests"] for name, size in contrasts.FAMILIES.items()],
    ["sha256 of the contract", contract.sha256],
]
report.table(pd.DataFrame(rules, columns=["rule", "value"]))

# %% [markdown]
# ## Judges against known labels
#
# The qualification cases, in the label that both orders agree on: what the change warrants against
# what was given. Off the diagonal a judge errs, although it may still pass its gates.

# %%
#| label: fig-calibration
#| fig-cap: "Labels given by the judges against labels warranted, qualification cases."
#| fig-alt: "Grid of counts: warranted labels down, given labels across, darker for more cases."
known = cases[(cases["order"] == "consensus") & cases["expected"].notna()]
known = known[~known["case_id"].str.startswith("gate:")]
blind = known["judge"].str.startswith("blind")
report.figure(known[~blind], lambda: figures.draw_calibration(known[~blind]))

# %%
answered = known.groupby("judge").agg(
    numerator=("passed", lambda p: int(p.fillna(False).sum())), denominator=("passed", "size"),
    unknown=("label", lambda s: int(s.isna().sum())),
)  # fmt: skip
report.rates(answered.reset_index())

# %% [markdown]
# ## Paper and this run

# %%
ours = {
    "n_draws": f"{stats.N_DRAWS:,}",
    "n_flips": f"{stats.N_FLIPS:,}",
    "family_secondary": contrasts.FAMILIES["retention and contradiction"],
    "family_original": contrasts.FAMILIES["original control"],
    "suite": cases.loc[~cases["case_id"].str.startswith("gate:"), "case_id"].nunique(),
}
both = published.beside(published.read_numbers("aegisvox"), ours)
report.table(
    both.assign(**{"comparable?": ["yes"] * 4 + ["own cases, and seeded ones for rules"]})
)

# %% [markdown]
# ## What this shows

# %%
public = sum(schema.visibility == "public" for schema in SCHEMAS.values())
report.say(f"""
{len(SCHEMAS)} tables ({public} public) have schemas, {len(STAGES)} stages one line of wiring each,
and {len(contract.families)} families make the contract. What a test cannot check stays outside:
that a rule is the right one.
""")

# %%
stage.done()
