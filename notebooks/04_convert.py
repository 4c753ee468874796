# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Voice conversion {#sec-convert}
#
# Every turn is converted towards the voice assigned to its speaker, whether or not it holds
# an identifier. The paper used Seed-VC. `world` moves pitch and the distribution of the
# spectral envelope with a vocoder; `mcadams` is the signal-processing baseline B2 of the
# VoicePrivacy Challenge and ignores the reference. Both keep words, timing and length.
#
# A turn whose speaker has no pseudo-voice, or whose conversion fails, is a failed row. It
# becomes silence later, never original audio.

# %% tags=["parameters"]
run_name: str = "demo"  # the run whose tables are read and written
converter: str = "world"  # paper: seed-vc; or mcadams, knn, latent-noise, cascade
n_pseudo_profiles: int = 1  # further ones become a second release, in converted_more
seed: int = 20261005  # of engines that draw

# %%
import pandas as pd
import seaborn.objects as so

from aegis import report
from aegis.stage import open_stage
from aegis.work.voice import conversion_items, convert_profile, converted_table

stage = open_stage("04_convert", globals())
turns, recordings = stage.read("turns"), stage.read("recordings")
profiles, voices = stage.read("profiles"), stage.read("voices")

# %% [markdown]
# ## Conversion
#
# One item is one profile with all its turns: the speaker's statistics come from at most 30 s
# of the longest turns, the voice's from its reference.

# %%
items, refused = conversion_items(turns, recordings, stage.read("assignments"), voices)
results = stage.map(convert_profile, items, {"converter": converter, "seed": seed})
converted = stage.write("converted", converted_table(turns, results, refused, converter))
more = []
for number in range(2, n_pseudo_profiles + 1):
    other = conversion_items(turns, recordings, stage.read("assignments"), voices, number)
    made = stage.map(convert_profile, other[0], {"converter": converter, "seed": seed})
    more.append(converted_table(turns, made, other[1], converter).assign(pseudo_profile=number))
if more:
    stage.write("converted_more", pd.concat(more, ignore_index=True))
by_status = converted.groupby(["status", "reason"], dropna=False)
report.table(by_status.agg(turns=("turn_id", "size")).reset_index())

# %% [markdown]
# ## Speech converted
#
# A gain below 0 dB means that a turn was turned down to fit the file format.

# %%
lengths = converted.merge(turns[["turn_id", "start_s", "end_s", "language"]], on="turn_id")
lengths["source_s"] = (lengths["end_s"] - lengths["start_s"]).astype(float)
lengths["converted_s"] = lengths["n_samples"].astype(float) / 16_000
report.table(
    lengths.groupby("language")
    .agg(
        turns=("turn_id", "size"),
        failed=("status", lambda status: (status != "ok").sum()),
        source_s=("source_s", "sum"),
        converted_s=("converted_s", "sum"),
        lowest_gain_db=("gain_db", "min"),
    )
    .round(2)
    .reset_index()
)

# %%
#| label: fig-pitch
#| fig-cap: Median pitch of each speaker and of the voice assigned to it, in Hz.
#| fig-alt: Scatter of speaker pitch against assigned voice pitch.
report.style()
pitch = profiles[["profile_id", "f0_median_hz"]].copy()
voice_of = {item["id"]: item["voice"]["voice_id"] for item in items}
reference_hz = dict(zip(voices["voice_id"], voices["f0_median_hz"], strict=True))
pitch["assigned_hz"] = pitch["profile_id"].map(voice_of).map(reference_hz).astype(float)
pitch["speaker_hz"] = pitch["f0_median_hz"].astype(float)
plot = so.Plot(pitch, x="speaker_hz", y="assigned_hz").add(so.Dot(alpha=0.6))
report.figure(pitch, lambda: plot)

# %% [markdown]
# ## What this shows

# %%
n_ok, wanted = int((converted["status"] == "ok").sum()), float(lengths["source_s"].sum())
report.say(
    f"`{converter}` converted {n_ok} of {len(converted)} turns"
    f" ({lengths['converted_s'].sum():.0f} of {wanted:.0f} s of speech);"
    f" {len(converted) - n_ok} failed and will be silent. Whether the words and the speaker"
    " can still be recognised is measured in chapters 09 and 12."
)

# %%
stage.done()
