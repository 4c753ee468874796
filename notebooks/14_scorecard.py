# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # How the embedded engines do {#sec-scorecard}
#
# The demo's recordings are spoken from scripts, so what was said, by whom and when, and which
# words identify somebody is known. Here every engine is held against that truth and against the
# aims of this project. The engines are small models that run without a hub: none is the paper's,
# and a corpus made by a synthesiser related to the renderers flatters them.

# %% tags=["parameters"]
run_name: str = "demo"  # the run whose tables are read and written
tolerance_s: float = 1.0  # a scripted mention is looked for in turns that lie this near to it

# %%
import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns

from aegis import phi, report, scorecard, speaker_scores
from aegis.scripts import MANIFESTS, read_scripts
from aegis.stage import open_stage

stage = open_stage("14_scorecard", globals())
report.style()
recordings, turns, words = (stage.read(name) for name in ("recordings", "turns", "words"))
truth = {name: stage.read(f"gold_{name}") for name in ("turns", "words", "mentions", "speech")}
known = set(truth["turns"]["recording_id"])
language_of = truth["turns"].groupby("recording_id")["language"].first().to_dict()
true_counts = truth["turns"].groupby("recording_id")["speaker"].nunique().to_dict()

# %% [markdown]
# ## Clean and hard recordings
#
# Hard means declared noise, overlap, telephone rate or a channel for each speaker. Aims for
# recognition and diarization hold for clean recordings; hard ones stand beside them.

# %%
clean = known - scorecard.hard_recordings(read_scripts(stage.uses(MANIFESTS / "demo")))
two_clean = {name for name in clean if true_counts[name] == 2}
report.table(
    pd.DataFrame([{"known truth": len(known), "clean": len(clean), "two": len(two_clean)}])
)

# %% [markdown]
# ## Words and speakers

# %%
rows = scorecard.word_error_rows(stage.read("transcript_scores"), language_of, clean)
diarization, screening = stage.read("diarization"), stage.read("screening")
declared = set(recordings.loc[recordings["n_speakers_declared"].notna(), "recording_id"])
modes = {"given": ("used", declared & known), "automatic": ("automatic", known)}
if known:
    rows += scorecard.diarization_rows(
        {
            name: speaker_scores.score_diarization(
                diarization[diarization["mode"] == mode], truth["speech"], sorted(chosen)
            )
            for name, (mode, chosen) in modes.items()
            if chosen
        },
        two_clean,
    )
    rows += scorecard.speaker_count_rows(screening, true_counts)
    spoken = truth["words"][truth["words"]["recording_id"].map(true_counts) > 1]
    rows += scorecard.attribution_rows(speaker_scores.score_attribution(words, spoken))

# %% [markdown]
# ## Identifiers
#
# A mention is heard exactly when its canonical value stands in the recognised turn. It is covered
# when nothing of it stays outside the detected spans; partly covered is a leak. Where the script
# also says the same word in ordinary use ("I hope" beside the name Hope), that use may stay.

# %%
mentions, shown = stage.read("mentions"), pd.DataFrame()
if len(truth["mentions"]):
    found = phi.score_detection(mentions, turns, truth["mentions"], truth["turns"], tolerance_s)
    touched = phi.protected_touched(mentions, turns)
    rows += scorecard.detection_rows(found, touched.numerator, touched.denominator)
    shown = found.groupby(["language", "category"])[["heard", "covered", "covered_any"]].agg("sum")
    shown = shown.assign(spoken=found.groupby(["language", "category"]).size()).reset_index()
report.table(shown)

# %% [markdown]
# ## Voices, edits, linkage

# %%
rows += scorecard.assignment_rows(stage.read("assignments"), stage.read("profiles"))
rows += scorecard.lexical_rows(stage.read("lexical_matches"))
rows += scorecard.nearer_rows(stage.read("trials"))
rows += scorecard.linkage_rows(stage.read("linkage"))
card = stage.write("scorecard", pd.DataFrame(scorecard.complete(rows)))
aims = card[card["direction"] != ""]
report.table(
    aims[["metric", "value", "numerator", "denominator", "direction", "aim", "met", "note"]], 3
)

# %%
report.table(
    card.loc[card["direction"] == "", ["metric", "value", "numerator", "denominator", "note"]], 3
)

# %%
#| label: fig-aims
#| fig-cap: How far each measure is on the good or the bad side of its aim, in points.
#| fig-alt: Horizontal bars around zero, one a measure, coloured by whether the aim is met.
gaps = aims.dropna(subset=["value"]).astype({"value": float, "aim": float})
distance = 100 * (gaps["value"] - gaps["aim"])
gaps["margin"] = distance.where(gaps["direction"] == ">=", -distance)
if len(gaps):
    axes = sns.barplot(gaps.sort_values("margin"), x="margin", y="metric", hue="met")
    axes.set(xlabel="points on the good side of the aim", ylabel="")
    plt.show()

# %% [markdown]
# ## What this shows

# %%
judged = aims.dropna(subset=["met"])
missed = judged.loc[~judged["met"].astype(bool), "metric"].tolist()
report.say(
    f"{len(judged) - len(missed)} of {len(aims)} aims are met, {len(missed)} are missed"
    f" ({', '.join(missed) or 'none'}) and {len(aims) - len(judged)} cannot be judged in this run."
    " Small denominators stand beside every value: a share of 1.0 of ten cases is compatible with"
    " one failure in four."
)

# %%
stage.done()
