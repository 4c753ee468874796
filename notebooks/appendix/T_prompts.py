# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # T. Every prompt, in full {#sec-prompts}
#
# Prompts are versioned files with a system text, a user template and a reply schema. Braced fields
# are filled at run time; transcripts and inventories are never cut. The hash covers all parts and
# stands with every verdict. They are our own text: the paper's prompts are not at hand. The
# embedded engines are rules and read none of them.

# %% tags=["parameters"]
run_name: str = "demo"  # the run on whose site the prompts stand

# %%
import pandas as pd
from IPython.display import Markdown

from aegis import report
from aegis.manifests import read_contract
from aegis.prompting import read_prompts, show_prompt
from aegis.stage import open_stage

stage = open_stage("T_prompts", globals())
prompts = read_prompts()

# %%
listed = [[p.name, p.version, p.schema_name, p.sha256] for p in prompts]
report.table(pd.DataFrame(listed, columns=["prompt", "version", "reply", "sha256"]))

# %%
Markdown("\n\n".join(show_prompt(prompt) for prompt in prompts))

# %% [markdown]
# ## The contract that the planner is given

# %%
contract = read_contract()
report.table(
    pd.DataFrame(
        [[f.category, f.include, f.exclude] for f in contract.families],
        columns=["category", "include", "exclude"],
    )
)

# %% [markdown]
# ## What this shows

# %%
used = list(stage.read("inventory_summary")["extractor"].unique())
unread = ", which read no prompt" if used == ["rules"] else ""
report.say(f"""
{len(prompts)} prompts under hashes; the contract is {contract.sha256[:12]}. This run's inventory
was made by {", ".join(used)}{unread}.
""")

# %%
compared = pd.DataFrame(
    [["prompts", "printed verbatim", f"{len(prompts)} files", "no: own text, same roles"]],
    columns=["quantity", "paper", "this run", "comparable?"],
)
report.table(compared)

# %%
stage.done()
