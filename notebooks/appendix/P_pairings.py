# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # P. Do pairing and weighting change the result? {#sec-pairings}
#
# Main rates count each item once, so long conversations weigh more. This page counts each
# conversation once instead, leaves conversations out one by one, shows the change in each, and
# says for each primary contrast the smallest difference that this run could have resolved. The
# paper reports equal-conversation weighting as a sensitivity; neither weighting is the right one.

# %% tags=["parameters"]
run_name: str = "demo"  # the run whose tables are read
n_draws: int = 10000  # bootstrap draws of conversations
seed: int = 20261005  # seed of the draws

# %%
import numpy as np
import pandas as pd

from aegis import figures, published, report, weighting
from aegis.clinical_contrasts import LABELS, partition
from aegis.contrasts import noise_floors
from aegis.stage import open_stage

stage = open_stage("P_pairings", globals())
report.style()
matches, verdicts = stage.read("lexical_matches"), stage.read("fact_verdicts")
verdicts = verdicts[verdicts["judge"] == verdicts["judge"].min()]
contrasts = stage.read("contrasts")


def draws() -> np.random.Generator:
    return np.random.default_rng(seed)


# %% [markdown]
# ## Pairing
#
# A contrast uses items observed under both renderers. Failed renderings are observed (as neither
# realised nor retained); judgements without a valid label are not.

# %%
tables = weighting.observed(matches, verdicts)
pairs = weighting.paired_items(tables)
report.table(weighting.count_pairs(tables))

# %% [markdown]
# ## Weighting
#
# In points, renderer b minus a. `least` and `most`: the item-weighted value when each conversation
# in turn is left out.

# %%
weighted = weighting.weightings(pairs, draws, n_draws)
points = ["item_weighted", "item_low", "item_high", "equal", "equal_low", "equal_high", "least",
          "most", "detectable"]  # fmt: skip
shown = weighted.assign(**{name: 100 * weighted[name].astype(float) for name in points})
report.table(shown[["endpoint", "items", "conversations", *points[:-1]]], 2)

# %%
#| label: fig-changes
#| fig-cap: "Change from renderer A to B in each conversation."
#| fig-alt: "Sorted points around a line at zero, one marker an endpoint, larger for more items."
changes = weighting.by_conversation(pairs)
report.figure(changes, lambda: figures.draw_changes(changes))

# %% [markdown]
# ## Preservation both ways

# %%
#| label: fig-preserved-weightings
#| fig-cap: "Facts preserved by condition under both weightings, with 95 % intervals."
#| fig-alt: "Pairs of points with whiskers at each condition, one pair by item and conversation."
everything = weighting.both_weightings(tables, draws, n_draws)
kept = everything[everything["endpoint"] == "fact preserved"]
report.figure(kept, lambda: figures.draw_rates(kept, "facts preserved, percent"))

# %%
#| label: fig-partition
#| fig-cap: "All scheduled facts by condition and label."
#| fig-alt: "One stacked bar a condition, hatched by label, from preserved to unobserved."
outcomes = partition(verdicts)
labels = [*LABELS, "unobserved"]
report.figure(outcomes, lambda: figures.draw_partition(outcomes, labels))

# %% [markdown]
# ## What this run could have resolved
#
# The smallest true difference that a run with this spread finds four times in five (5 % two-sided,
# 2.8 standard errors of the draws), beside the observed one, the noise of hearing and judging the
# original twice (appendix I.1), and the paper's. `conversations
# needed` is how many of the same kind would resolve the paper's difference. These are plans, no
# evidence of equivalence.

# %%
numbers = published.read_numbers("aegisvox").set_index("id")["value"]
of_paper = {
    "realised": numbers["realised_gain"],
    "retained": 100 * (numbers["b_retained"] - numbers["a_retained"]) / numbers["n_intentions"],
    "fact preserved": numbers["preserved_change"],
    "fact contradicted": numbers["contradicted_change"],
}
main = contrasts[
    (contrasts["condition_a"] == "renderer_a")
    & (contrasts["condition_b"] == "renderer_b")
    & (contrasts["status"] != "not_applicable")
]
noise = stage.read("noise_floor") if stage.has("noise_floor") else None
power = pd.DataFrame(
    {
        "endpoint": main["endpoint"],
        "observed": 100 * main["estimate"].astype(float),
        "noise floor": 100 * np.array(noise_floors(main["endpoint"], noise)),
        "smallest resolved": 100 * main["detectable"].astype(float),
        "paper": main["endpoint"].map(of_paper),
        "conversations": main["n_clusters"],
    }
)
ratio = power["smallest resolved"] / power["paper"].abs()
power["conversations needed"] = np.ceil(power["conversations"].astype(float) * ratio**2)
report.table(power, 2)

# %% [markdown]
# ## Paper and this run

# %%
value = weighted.set_index("endpoint")["item_weighted"]
ours = {
    "realised_gain": value.get("realised"),
    "preserved_change": value.get("fact preserved"),
    "contradicted_change": value.get("fact contradicted"),
}
both = published.beside(
    published.read_numbers("aegisvox"), {k: report.points(v) for k, v in ours.items()}
)
report.table(both.assign(**{"comparable?": "no: other recordings, engines and judge"}))

# %% [markdown]
# ## What this shows

# %%
known = weighted.dropna(subset=["item_weighted", "equal"])
turned = known[known["item_weighted"] * known["equal"] < 0]["endpoint"].tolist()
blind = power[power["smallest resolved"] > power["paper"].abs()]["endpoint"].tolist()
report.say(f"""
Of {len(known)} contrasts {len(turned)} change sign between the two weightings
({", ".join(turned) or "none"}). This run could not have resolved the paper's difference in
{", ".join(blind) or "none of the endpoints"}: an interval that holds zero there says nothing about
the paper's finding.
""")

# %%
stage.done()
