# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # K. How was linkage measured? {#sec-linkage-details}
#
# The details behind the page on linkage: which profiles are eligible where, what each trial set
# holds, and what the choice of orientation does. An attacker who may pick the better of two score
# directions on evaluation labels gains by chance alone; the paper calls that a sensitivity result.

# %% tags=["parameters"]
run_name: str = "demo"  # the run whose tables are read

# %%
import pandas as pd

from aegis import figures, published, report
from aegis.stage import open_stage

stage = open_stage("K_linkage", globals())
report.style()
eligible, trials, linkage = (stage.read(name) for name in ("eligibility", "trials", "linkage"))
contrasts = stage.read("contrasts")
keys = ["protocol", "condition", "region_kind", "backend"]

# %% [markdown]
# ## Who is eligible
#
# At most ten windows of three seconds over a profile's intervals, 50 ms trimmed at their edges, at
# least one second in all. Too little speech is *unknown*; a profile without an edit is *not
# applicable* in edited regions. Neither counts as protected.

# %%
fates = pd.crosstab([eligible[k] for k in keys[1:]], eligible["status"]).reset_index()
report.table(fates)

# %%
usable = eligible[eligible["status"] == "ok"].groupby(["condition", "region_kind"])
report.table(
    usable[["usable_s", "n_windows"]].agg(["median", "min"]).pipe(
        lambda t: t.set_axis([" ".join(c) for c in t.columns], axis=1)
    ).reset_index(),
    1,
)  # fmt: skip

# %% [markdown]
# ## Trials
#
# Negatives are *ordered* pairs of different profiles of one conversation, so a conversation of two
# gives two and a conversation of one gives none.

# %%
sizes = trials.groupby(keys)["target"].agg(target="sum", trials="size").reset_index()
sizes["non-target"] = sizes["trials"] - sizes["target"]
report.table(sizes.drop(columns="trials"))

# %% [markdown]
# ## Three orientations
#
# `higher`: a higher score means the same speaker. `lower`: the opposite. `attacker`: the better of
# the two on the full sample, fixed before the draws. The two directions add up to 100 % except for
# ties and interpolation.

# %%
wide = linkage.assign(percent=100 * linkage["eer"].astype(float)).pivot_table(
    index=keys, columns="orientation", values="percent", sort=False
)
report.table(wide.reset_index(), 1)

# %% [markdown]
# ## Error rates by region
#
# Beside each condition, where it exists, the same trials with original speech on both sides: what
# the attacker's encoder can do at all. The dashed line is chance.

# %%
#| label: fig-eer-regions
#| fig-cap: "Equal error rates by region and encoder, with 95 % intervals; dashed: chance."
#| fig-alt: "Points with whiskers by region and encoder, one marker a condition, dashed at 50."
shown = linkage[(linkage["orientation"] == "attacker") & linkage["eer"].notna()]
shown = shown[shown["protocol"].isin(["final", "final_original"])].copy()
shown["place"] = [
    f"{kind.replace('_', ' ')}\n{name}"
    for kind, name in zip(shown["region_kind"], shown["backend"], strict=True)
]
reference = (shown["protocol"] == "final_original") & (shown["condition"] == "converted")
shown.loc[reference, "condition"] = "original"
shown = shown[(shown["protocol"] == "final") | reference]
report.figure(shown, lambda: figures.draw_error_rates(shown))

# %% [markdown]
# ## Matched contrasts
#
# Renderer b minus a on profiles eligible in both. The two groups' own error rates rest on other
# profiles and must not be subtracted.

# %%
own = contrasts[contrasts["endpoint"].str.startswith("eer ")]
points = ["estimate", "ci_low", "ci_high", "detectable"]
report.table(
    own.assign(**{name: 100 * own[name].astype(float) for name in points})[
        ["endpoint", *points, "n_items", "n_clusters", "status", "reason"]
    ],
    1,
)

# %% [markdown]
# ## Paper and this run

# %%
first = min(linkage["backend"], default="")
found = {
    (r.protocol, r.condition, r.region_kind): 100 * r.eer
    for r in linkage[linkage["orientation"] == "attacker"].itertuples()
    if r.backend == first and pd.notna(r.eer)
}
counts = sizes[(sizes["backend"] == first) & (sizes["condition"] == "renderer_b")]
counts = counts[counts["protocol"] == "final"].set_index("region_kind")
place = {"eer_converted": "converted", "eer_a": "renderer_a", "eer_b": "renderer_b"}
ours = {
    "n_positive": counts["target"].get("all_turns"),
    "n_negative": counts["non-target"].get("all_turns"),
    "b_eligible": counts["target"].get("edited_region"),
}
ours |= {name: found.get(("final", c, "all_turns")) for name, c in place.items()}
ours |= {f"eer_edited_{s}": found.get(("final", f"renderer_{s}", "edited_region")) for s in "ab"}
ours |= {"eer_shared_ecapa": found.get(("shared", "converted", "all_turns"))}
ours = {k: f"{v:.3g}" + (" %" if k.startswith("eer") else "") if v is not None else None
        for k, v in ours.items()}  # fmt: skip
both = published.beside(published.read_numbers("aegisvox"), ours)
report.table(both.assign(**{"comparable?": "no: other encoder, voices and recordings"}))

# %% [markdown]
# ## What this shows

# %%
final = shown[shown["protocol"] == "final"]
low = (100 * final["eer"].astype(float)).min() if len(final) else float("nan")
none = int((eligible["status"] == "not_applicable").sum())
unknown = int((eligible["status"] == "unknown").sum())
report.say(f"""
The lowest error rate of a de-identified condition is {report.points(low / 100, 1)} %, with the
attacker's choice of direction. {none} rows of profile, condition, region and backend are not
applicable and {unknown} unknown; they are in no error rate. A person may recur as several
profiles, so pairs across recordings are not known to be different people.
""")

# %%
stage.done()
