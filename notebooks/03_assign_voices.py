# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Assigning pseudo-voices {#sec-assign}
#
# Which reference voice speaks for whom? Each speaker takes the best unused unit that lies at
# least 0.70 from the speaker and 0.65 from every voice already assigned in the
# conversation. The search is depth first in speaker order with a bounded number of
# placements; what cannot be satisfied is a failure that names its constraint, and
# thresholds never change silently.
#
# Candidates are ranked by `w d / 2 + (1 - w) T`: the distance, and the share `T` of traits
# known of both that agree (the paper states the terms; the formula is ours).

# %% tags=["parameters"]
run_name: str = "demo"  # the run whose tables are read and written
backend: str = "ge2e"  # encoder of the distances (paper: ECAPA-TDNN)
k: int = 75  # nearest eligible units retrieved for a speaker
min_source_distance: float = 0.70  # least distance of a speaker from the assigned voice
min_target_distance: float = 0.65  # least distance between voices of one conversation
distance_weight: float = 0.5  # w: distance against traits in the ranking (ours)
node_budget: int = 10000  # placements tried for a conversation before giving up
n_pseudo_profiles: int = 1  # voices a speaker; a second one is needed for leakage trials

# %%
import seaborn.objects as so

from aegis import report
from aegis.stage import open_stage
from aegis.voices import Rules, assign_profiles, prepare, vectors_of

stage = open_stage("03_assign_voices", globals())
profiles, voices = stage.read("profiles"), stage.read("voices")
rules = Rules(k, min_source_distance, min_target_distance, distance_weight, node_budget)
pool = prepare(
    profiles,
    voices,
    vectors_of(stage.read("profile_embeddings"), "profile_id", backend),
    vectors_of(stage.read("voice_embeddings"), "voice_id", backend),
    rules,
)

# %% [markdown]
# ## Who may speak for whom
#
# A unit must speak the profile's language. Where a language has fewer than `k` native units,
# units of non-native speakers are admitted and counted here.

# %%
admitted = profiles.groupby("language").size().rename("profiles").reset_index()
admitted["non_native_units_admitted"] = admitted["language"].map(pool.admitted)
admitted["eligible_units"] = [
    int(pool.allowed[(pool.profiles["language"] == name).to_numpy()].sum(axis=1).max())
    for name in admitted["language"]
]
report.table(admitted)

# %% [markdown]
# ## Assignment

# %%
assignments, summary = assign_profiles(pool, rules, n_pseudo_profiles)
assignments = stage.write("assignments", assignments)
summary = stage.write("assignment_summary", summary)
report.table(summary.round(3))

# %%
#| label: fig-assigned
#| fig-cap: Candidates of each profile, and the distance of the voice that it was given.
#| fig-alt: Scatter of number of eligible units against assigned distance.
report.style()
done = assignments[assignments["status"] == "ok"].astype({"distance": float})
plot = so.Plot(done, x="n_eligible", y="distance", marker="pseudo_profile").add(so.Dot(alpha=0.6))
plot = plot.scale(marker=so.Nominal())
plot = plot.label(x="eligible units", y="distance of the assigned voice", marker="pseudo-profile")
report.figure(done, lambda: plot)

# %% [markdown]
# ## What this shows

# %%
report.say(
    f"{len(done)} of {len(assignments)} pseudo-profiles have a voice, at a median distance of"
    f" {done['distance'].median():.2f} from the speaker. How much the two thresholds decide is"
    " the subject of appendix D."
)

# %%
stage.done()
