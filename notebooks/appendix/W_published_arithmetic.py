# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Do the printed numbers follow from the printed counts? {#sec-published}
#
# No recording is needed to check a paper's arithmetic. Every rate, difference, sum and interval
# that the text gives with its counts is computed again; a value agrees when it rounds to the
# printed one. Bounds even give away counts that the text does not print.

# %% tags=["parameters"]
run_name: str = "demo"  # the run whose claims stand beside the paper's

# %%
import pandas as pd

from aegis import published, report
from aegis.stage import open_stage

stage = open_stage("W_published_arithmetic", globals())
claims = stage.read("claims").set_index("claim_id")
contrasts = stage.read("contrasts").set_index("contrast_id")

# %% [markdown]
# ## Rates and single proportions
#
# The two Wilson intervals of the independent judge are the only ones that counts alone determine.

# %%
rates = published.check_rates(published.read_published("aegisvox_rates"))
report.table(rates[["label", "numerator", "denominator", "percent", "computed", "agrees"]], 3)

# %%
judge = rates[rates["interval"] == "wilson"]
report.table(judge[["label", "low", "computed_low", "high", "computed_high", "agrees"]], 2)

# %% [markdown]
# ## Differences and sums

# %%
differences = published.check_differences(published.read_published("aegisvox_differences"))
report.table(differences[["label", "a", "b", "denominator", "points", "computed", "agrees"]], 3)

# %%
sums = published.check_sums(published.read_published("aegisvox_sums"))
report.table(sums[["label", "parts", "total", "agrees"]])

# %% [markdown]
# ## Tests
#
# The paper's smaller p value is 16 of 20,000 sign flips under the rule that adds one to both.

# %%
tests = published.check_tests(published.read_published("aegisvox_tests"))
report.table(tests[["id", "p", "extreme_draws", "p_adjusted", "computed", "agrees"]], 6)

# %% [markdown]
# ## What the bounds give away
#
# Bounds are `difference - uncertain(a)` and `difference + uncertain(b)` over all facts. Both pairs
# of printed bounds allow one pair of counts only: the uncertain labels, which are not printed.

# %%
bounds = published.read_published("aegisvox_bounds")
found = [
    published.unresolved_from_bounds(r.difference, r.denominator, r.low, r.high, r.decimals)
    for r in bounds.itertuples()
]
bounds = bounds.assign(uncertain_a=[a for a, _ in found], uncertain_b=[b for _, b in found])
report.table(bounds[["id", "difference", "low", "high", "uncertain_a", "uncertain_b"]], 3)

# %% [markdown]
# ## The trials of the leakage paper
#
# Its "3.4 million trials" count Test 1 once; "more than 22,000 segments" only come about when both
# sampling rates of Test 1 and two pseudo-profiles are counted. "73 % female" in Test 3 is not what
# its table gives.

# %%
trials = published.read_published("nist_trials")
once = trials[trials["test"] != "Test 1 (8k)"]
third = trials[trials["test"] == "Test 3 (16k)"].iloc[0]
report.table(
    pd.DataFrame(
        [
            {
                "quantity": "trials, Test 1 once",
                "computed": once["total"].sum(),
                "printed": "over 3.4 million",
            },
            {
                "quantity": "segments, all tests, two profiles",
                "computed": 2 * trials["segments"].sum(),
                "printed": "more than 22,000",
            },
            {
                "quantity": "percent female in Test 3",
                "computed": 100 * third["female"] / third["speakers"],
                "printed": "73",
            },
        ]
    ),
    1,
)

# %% [markdown]
# ## Paper and this run

# %%
why_not = "no: other recordings, embedded engines, literal search instead of a judge"
pairs = [("a_realised", "realised_renderer_a"), ("b_realised", "realised_renderer_b")]
printed = rates.set_index("id")
rows = [
    {
        "quantity": printed.loc[paper, "label"],
        "paper": printed.loc[paper, "percent"],
        "this run": 100 * claims.loc[ours, "value"] if ours in claims.index else pd.NA,
    }
    for paper, ours in pairs
]
ours = "realised: renderer_b - renderer_a"
gain = differences.set_index("id").loc["b_a_realised"]
value = 100 * contrasts.loc[ours, "estimate"] if ours in contrasts.index else pd.NA
rows.append({"quantity": gain["label"], "paper": gain["points"], "this run": value})
report.table(pd.DataFrame(rows).assign(comparable=why_not))

# %% [markdown]
# ## What this shows

# %%
checked = [rates, differences, sums, tests]
total, fine = (sum(f(table) for table in checked) for f in (len, lambda t: int(t["agrees"].sum())))
exact = all(len(a) == len(b) == 1 for a, b in found)
report.say(
    f"{fine} of {total} printed rates, differences, sums and adjusted p values follow from the"
    f" printed counts. The bounds {'fix' if exact else 'do not fix'} the uncertain labels at"
    f" {found[0][0][0]} for VoiceCraft and {found[0][1][0]} for F5-TTS. Cluster-bootstrap"
    " intervals and error rates cannot be checked this way: they need the items."
)

# %%
stage.done()
