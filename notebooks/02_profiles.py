# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Speaker profiles and the reference pool {#sec-profiles}
#
# Who speaks, as a vector, and which reference voices may stand in for them? A *profile* is
# one speaker within one recording; a *unit* is one reference voice. The paper used
# ECAPA-TDNN and 4,062 OpenSwara units; the embedded study uses other encoders and a pool
# of synthetic voices that the corpus does not speak.
#
# Vectors are centred on the mean of a cohort disjoint from corpus and pool, per encoder,
# and normalised again (ours). Without that, embeddings that are never negative put no two
# people 0.65 apart, and the paper's thresholds would admit nobody.

# %% tags=["parameters"]
run_name: str = "demo"  # the run whose tables are read and written
backends: list[str] = ["ge2e", "dvector"]  # speaker encoders (paper: ECAPA-TDNN)
pool: str = "data_manifests/pool.yaml"  # declaration of the reference pool
corpus: str = "demo"  # card whose voices may not be in the pool

# %%
import seaborn.objects as so

from aegis import report
from aegis.manifests import reserved_voices
from aegis.pool import read_pool
from aegis.stage import open_stage
from aegis.tables import PROJECT
from aegis.voices import COHORT, cohort_centre, describe_backends
from aegis.work.voice import (
    base_items,
    build_base,
    describe_profile,
    profile_items,
    profile_tables,
    voice_tables,
)

stage = open_stage("02_profiles", globals())
turns, recordings = stage.read("turns"), stage.read("recordings")
centres = {name: cohort_centre(name) for name in backends}
for name in backends:
    stage.uses(COHORT / f"{name}.json")
settings = {"backends": backends}

# %% [markdown]
# ## Profiles
#
# At most ten equispaced 3-s windows over the speaker's turns, 50 ms trimmed at their edges;
# each window's embedding is centred and normalised, the mean is normalised again. Less than
# one second of speech gives no profile, and its turns are then not released.

# %%
items = profile_items(turns, recordings)
results = stage.map(describe_profile, items, settings)
profiles, vectors = profile_tables(turns, items, results, centres)
profiles = stage.write("profiles", profiles)
vectors = stage.write("profile_embeddings", vectors)
report.table(
    profiles.groupby(["language", "status"], dropna=False)
    .agg(
        profiles=("profile_id", "size"),
        speech_s=("speech_s", "sum"),
        windows=("n_windows", "sum"),
        f0_median_hz=("f0_median_hz", "median"),
    )
    .round(1)
    .reset_index()
)

# %% [markdown]
# ## Reference pool
#
# Each base voice speaks one text; its variants change pitch, formant scale and rate. A unit
# needs 4.5 s after trimming, and passes checks of level, clipping, noise and voicing;
# child-like variants are excluded. Metadata are the publisher's.

# %%
declared = read_pool(stage.uses(PROJECT / pool), reserved_voices(corpus))
made = stage.map(build_base, base_items(declared), settings)
voices, unit_vectors = voice_tables(declared, made, centres)
voices = stage.write("voices", voices)
unit_vectors = stage.write("voice_embeddings", unit_vectors)
report.table(
    voices.groupby(["provenance", "language", "accent", "gender_presentation"])
    .agg(
        units=("voice_id", "size"),
        base_voices=("base_voice", "nunique"),
        eligible=("eligible", "sum"),
        shortest_s=("duration_s", "min"),
    )
    .round(2)
    .reset_index()
)

# %%
report.table(
    voices.loc[~voices["eligible"]].groupby(["status", "reason"]).size().rename("n").reset_index()
)

# %% [markdown]
# ## How far apart people are
#
# Pairs of a profile and a pool unit are different people by construction. The paper demands
# 0.70 between a speaker and the assigned voice and 0.65 between two assigned voices; the
# shares say how much room these thresholds leave for an encoder.

# %%
distances, pairs = describe_backends(vectors, unit_vectors)
stage.write("backend_distances", distances)
report.table(distances.round(3))

# %%
#| label: fig-distances
#| fig-cap: Distance between profiles and pool units, by encoder; lines at 0.65 and 0.70.
#| fig-alt: Histograms of centred cosine distances, one panel an encoder.
report.style()
plot = so.Plot(pairs, x="distance").facet("backend")
plot = plot.add(so.Bars(), so.Hist(stat="proportion", bins=30, common_norm=False))
report.figure(pairs, lambda: plot)

# %% [markdown]
# ## What this shows

# %%
first = distances.set_index("backend").loc[backends[0]]
n_ok, n_eligible = int((profiles["status"] == "ok").sum()), int(voices["eligible"].sum())
report.say(
    f"{n_ok} of {len(profiles)} profiles have an embedding; {n_eligible} of {len(voices)} pool"
    f" units are eligible. With `{backends[0]}`, centred on {first['n_cohort']} voices,"
    f" {report.points(first['share_over_070'], 1)} % of {first['n_pairs']} pairs of different"
    " people reach a distance of 0.70 and"
    f" {report.points(first['share_over_065'], 1)} % reach 0.65."
)

# %%
stage.done()
