# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # F. What is counted, and out of what? {#sec-units}
#
# A rate is only as honest as its denominator. The study counts in several units that must not be
# mixed: an intention (one edit rendered alone in its turn) is not a region (all edits of a turn
# together), a profile (one speaker in one recording) is not a person, and a recording is the
# cluster over which all intervals are drawn.

# %% tags=["parameters"]
run_name: str = "demo"  # the run whose tables are read

# %%
import pandas as pd

from aegis import ledger, published, report
from aegis.stage import open_stage
from aegis.tables import SCHEMAS

stage = open_stage("F_units", globals())

# %% [markdown]
# ## The tables and their units
#
# Every table says its unit, its key and who may see it. Secret tables hold words, file names or
# the two mappings and never reach a page.

# %%
tables = [
    {
        "table": name,
        "one row is": schema.unit,
        "key": ", ".join(schema.key),
        "visibility": schema.visibility,
        "rows": len(stage.run.read(name)) if stage.run.has(name) else None,
    }
    for name, schema in SCHEMAS.items()
]
report.table(pd.DataFrame(tables))

# %% [markdown]
# ## Denominators of this run
#
# Failed and uncertain cases stay in their denominator. Cases to which a measure does not apply
# are counted apart and get no zero.

# %%
counted = ledger.units(stage.run)
report.table(counted)

# %%
claims = stage.read("claims")
shown = ["label", "numerator", "denominator", "unknown", "not_applicable", "status"]
report.table(claims.loc[claims["denominator"].notna(), shown])

# %% [markdown]
# ## Paper and this run

# %%
units = {
    "recordings (conversations, clusters)": "n_conversations",
    "conversation-speaker profiles": "n_profiles",
    "pool units": "n_units",
    "edit intentions (focused)": "n_intentions",
    "composed regions (affected turns)": "n_regions",
    "clinical facts": "n_facts",
    "same-profile trials of the final waveform": "n_positive",
    "other-speaker trials of the final waveform": "n_negative",
}
own = counted.set_index("unit")["this run"]
paper = published.read_numbers("aegisvox")
both = published.beside(paper, {name: own.get(unit) for unit, name in units.items()})
report.table(both.assign(**{"comparable?": "the unit, yes; the number, no: other recordings"}))

# %% [markdown]
# ## What this shows

# %%
rated = claims[claims["denominator"].notna()]
unknown = int((rated["unknown"] > 0).sum())
report.say(f"""
{len(rated)} claims of this run are rates with a stated denominator; {unknown} of them have unknown
cases, which count neither as success nor as verified absence. The paper's 601 intentions and 545
regions are two populations in the same way as this run's.
""")

# %%
stage.done()
