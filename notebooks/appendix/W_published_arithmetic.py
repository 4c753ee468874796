# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # W. Do the printed numbers follow from the printed counts? {#sec-published}
#
# No recording is needed to check a paper's arithmetic. Every count, rate, interval, p value and
# constant of three documents (the paper, the five-dimension leakage study, the review of the
# low-false-positive study) stands in a register with its place and unit. Where a number follows
# from others, a formula says how, and this page computes it again: it agrees when unrounded
# inputs exist that give the printed value.

# %% tags=["parameters"]
run_name: str = "demo"  # the run whose claims stand beside the paper's

# %%
import pandas as pd

from aegis import published, report
from aegis.stage import open_stage

stage = open_stage("W_published_arithmetic", globals())
claims = stage.read("claims").set_index("claim_id")["value"]
contrasts = stage.read("contrasts").set_index("contrast_id")["estimate"]
numbers = {name: published.read_numbers(name) for name in published.DOCUMENTS}
checked = pd.concat(
    [published.check_numbers(own).assign(document=name) for name, own in numbers.items()]
)
checked["printed value"] = [published.value_of(row) for row in checked.to_dict("records")]

# %% [markdown]
# ## The register
#
# *Basis*: printed (or known from the corpus) and used to compute others. *Computed*: ours, from
# printed numbers. *Not derivable*: needs the items, above all intervals over conversations, error
# rates and judgements.

# %%
report.table(pd.crosstab([checked["document"], checked["kind"]], checked["verdict"]).reset_index())

# %% [markdown]
# ## What does not agree

# %%
shown = ["document", "place", "label", "printed value", "computed", "formula"]
wrong = checked[checked["verdict"] == "differs"]
report.table(wrong[shown], 3)

# %% [markdown]
# The leakage study's 22,000 segments come about only when both sampling rates of Test 1 and two
# pseudo-profiles are counted; its 3.4 million trials count Test 1 once. The review names the
# mismatches of the third document itself.
#
# ## What agrees

# %%
first = checked[checked["document"] == "aegisvox"]
report.table(first.loc[first["verdict"] == "agrees", shown[1:]], 3)

# %%
other = checked[(checked["document"] != "aegisvox") & (checked["verdict"] == "agrees")]
report.table(other[["place", "label", "printed value", "computed"]], 3)

# %% [markdown]
# ## Contradictions, both renderers together

# %%
of = numbers["aegisvox"].set_index("id")["value"]
pairs = pd.DataFrame(
    {
        "VoiceCraft": ["contradicted", "not contradicted", "all"],
        "F5-TTS contradicted": [of["contradicted_both"], of["contradicted_b_only"], 0],
        "F5-TTS not contradicted": [of["contradicted_a_only"], of["contradicted_neither"], 0],
    }
)
inner = list(pairs.columns[1:])
pairs.loc[2, inner] = pairs[inner].sum()
report.table(pairs.assign(all=pairs[inner].sum(axis=1)))

# %% [markdown]
# ## What the bounds give away
#
# Bounds are `difference - uncertain(a)` and `difference + uncertain(b)` over all facts. Both pairs
# of printed bounds allow one pair of counts only: the uncertain labels, which are not printed.

# %%
found = {
    end: published.unresolved_from_bounds(
        int(difference), int(of["n_facts"]), of[f"bound_{end}_low"], of[f"bound_{end}_high"], 3
    )
    for end, difference in (
        ("preserved", -25),
        ("contradicted", of["b_contradicted"] - of["a_contradicted"]),
    )
}
report.table(
    pd.DataFrame([[end, *each] for end, each in found.items()], columns=["bounds of", "a", "b"])
)

# %% [markdown]
# ## Are the 916 negatives ordered pairs?
#
# 809 profiles in 390 conversations allow a range of unordered pairs that grows with the largest
# number of profiles in one conversation.

# %%
n = [int(of[name]) for name in ("n_conversations", "n_profiles", "n_negative")]
reach = pd.DataFrame(
    [(most, *published.pair_range(*n[:2], most)) for most in range(3, 7)],
    columns=["profiles a conversation, at most", "fewest", "most"],
)
reach["916 unordered"] = reach["most"] >= n[2]
reach["458 unordered, 916 ordered"] = (reach["fewest"] <= n[2] / 2) & (reach["most"] >= n[2] / 2)
report.table(reach)

# %% [markdown]
# ## Computed, but not printed

# %%
own = checked[(checked["verdict"] == "computed") & ~checked["id"].str.contains("_sbls_")]
report.table(own[["document", "label", "computed", "formula"]], 3)

# %% [markdown]
# ## What cannot be derived from the text

# %%
out = checked[checked["verdict"] == "not derivable"]
report.table(out[["document", "place", "label", "printed value"]])

# %% [markdown]
# ## Paper and this run

# %%
ours = {
    "original_rate_main": claims.get("fact_preserved_original"),
    "converted_rate": claims.get("fact_preserved_converted"),
    "a_realised_rate": claims.get("realised_renderer_a"),
    "b_realised_rate": claims.get("realised_renderer_b"),
    "realised_gain": contrasts.get("realised: renderer_b - renderer_a"),
    "preserved_change": contrasts.get("fact preserved: renderer_b - renderer_a"),
    "contradicted_change_main": contrasts.get("fact contradicted: renderer_b - renderer_a"),
}
both = published.beside(numbers["aegisvox"], {k: report.points(v) for k, v in ours.items()})
report.table(both.assign(**{"comparable?": "no: other recordings, embedded engines and judge"}))

# %% [markdown]
# ## What this shows

# %%
counts = checked["verdict"].value_counts()
exact = all(len(a) == len(b) == 1 for a, b in found.values())
least = int(reach.loc[reach["916 unordered"], "profiles a conversation, at most"].min())
report.say(
    f"{counts['agrees']} of {counts['agrees'] + counts['differs']} numbers that follow from others"
    f" agree, {counts['differs']} do not; {counts['not derivable']} cannot be derived. The bounds"
    f" {'fix' if exact else 'do not fix'} the uncertain labels at {found['preserved'][0][0]} for"
    f" VoiceCraft and {found['preserved'][1][0]} for F5-TTS. 916 unordered pairs would need a"
    f" conversation of at least {least} profiles; as ordered pairs three are enough. Nothing here"
    " says that a printed number is right, only that it fits the others."
)

# %%
stage.done()
