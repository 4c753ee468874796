# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Q. What failed, and where is it counted? {#sec-failures}
#
# Every scheduled item has exactly one fate in every stage: ok, failed, excluded, not applicable
# or unknown, with a reason unless it is ok. Nothing disappears from a denominator because an
# engine refused it. This page is the registry.

# %% tags=["parameters"]
run_name: str = "demo"  # the run whose tables are read

# %%
import matplotlib.pyplot as plt
import pandas as pd

from aegis import checks, explain, ledger, report
from aegis.stage import open_stage

stage = open_stage("Q_failures", globals())
report.style()

# %% [markdown]
# ## Fates by table

# %%
fates = ledger.item_fates(stage.run)
report.table(fates)

# %%
#| label: fig-fates
#| fig-cap: Fates of everything scheduled, as shares of its rows.
#| fig-alt: Stacked horizontal bars, one a table, one colour a status.
kinds = [c for c in fates.columns if c not in ("table", "unit", "scheduled")]
shares = fates.set_index("table")[kinds].div(fates.set_index("table")["scheduled"], axis=0)
axes = shares.plot.barh(stacked=True, figsize=(7, 0.32 * len(shares) + 1), edgecolor="white")
axes.set(xlabel="share of scheduled rows", ylabel="", xlim=(0, 1))
axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
plt.show()

# %% [markdown]
# ## Reasons
#
# Reasons are typed: they name the rule, never a word of a recording.

# %%
registry = explain.failure_registry(stage.run)
report.table(registry.sort_values(["table", "rows"], ascending=[True, False]))

# %% [markdown]
# ## Does the run hold together?
#
# Population, durations, hashes and references between tables of the stages before this one are
# checked as `aegis verify` does.

# %%
problems = checks.verify_run(stage.run, before=stage.name)
report.table(pd.DataFrame({"problem": problems or ["none found"]}))

# %% [markdown]
# ## Paper and this run

# %%
rendered = stage.read("rendered")


def failed(renderer: str, kind: str) -> str:
    own = rendered[(rendered["renderer"] == renderer) & (rendered["kind"] == kind)]
    return report.percent(int((own["status"] == "failed").sum()), len(own))


rows = [
    ("focused intentions, VoiceCraft's role", "1/601", failed("renderer_a", "intention")),
    ("focused intentions, F5-TTS's role", "0/601", failed("renderer_b", "intention")),
    ("composed regions, VoiceCraft's role", "16/545", failed("renderer_a", "region")),
    ("composed regions, F5-TTS's role", "0/545", failed("renderer_b", "region")),
]
table = pd.DataFrame(rows, columns=["generation failures", "paper", "this run"])
report.table(table.assign(comparable="no: other engines and recordings"))

# %% [markdown]
# ## What this shows

# %%
scheduled, ok = int(fates["scheduled"].sum()), int(fates["ok"].sum())
report.say(f"""
Of {scheduled:,} scheduled rows {ok:,} are ok; the other {scheduled - ok:,} stand above with their
reasons and remain in the denominators of every rate that they belong to.
""")

# %%
stage.done()
