# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Who said which words, and how much of it was heard? {#sec-transcribe}
#
# Each recording is transcribed with word times and divided among its speakers. Words are
# attributed to speakers one by one, so a recogniser's segment across a change of speaker is
# split. Speech that voice activity finds and no turn covers has not been screened for
# identifiers; its seconds are counted. Recordings with a speaker in each channel need no
# diarization. The paper transcribes with faster-whisper large-v3 and diarizes with pyannote 3.1.
#
# Who has transcripts can bring them along: turns with words (TextGrid, SRT, WebVTT) replace
# recognition, turns without (RTTM) diarization. Given words have no times of their own, so the
# infill renderer, which needs them, refuses such edits.

# %% tags=["parameters"]
run_name: str = "demo"  # the run whose tables are read and written
asr: str = "whisper-base"  # transcriber (paper: faster-whisper large-v3)
diarizer: str = "pyannote-segmentation"  # or "window-clustering"
known_speakers: bool = True  # use the declared number of speakers where there is one
longest_turn_s: float = 11.0  # longer turns are divided at sentence ends
turn_pause_s: float = 1.5  # a pause that ends a turn
max_uncovered_share: float = 0.1  # of the speech; above it a recording is not screened
given_turns: str = ""  # file or folder of turns that replace recognition, by the files' names

# %%
import pandas as pd
import seaborn.objects as so

from aegis import report
from aegis.given import match_given
from aegis.speaker_scores import score_diarization
from aegis.stage import open_stage
from aegis.tables import PROJECT
from aegis.work.speech import transcribe_recording, transcription_items, transcription_tables

stage = open_stage("01_transcribe", globals())
report.style()

# %%
settings = {
    "asr": asr,
    "diarizer": diarizer,
    "longest_turn_s": longest_turn_s,
    "turn_pause_s": turn_pause_s,
}
recordings, given = stage.read("recordings"), None
if given_turns:
    names = stage.read("file_map")[["recording_id", "file"]].itertuples(index=False)
    given = match_given(PROJECT / given_turns, names)
items = transcription_items(recordings, known_speakers, given)
results = stage.map(transcribe_recording, items, settings)
tables = {
    name: stage.write(name, table)
    for name, table in transcription_tables(results, settings).items()
}
screening, turn_times = tables["screening"], tables["turn_times"]

# %% [markdown]
# ## What was heard
#
# `n_flagged` words stand in loops, in text too fast to be spoken, or where there is no voice;
# `n_untimed` words have no possible time. Neither is dropped.

# %%
columns = ["language", "n_speakers", "n_speakers_found", "n_words", "n_turns"]
columns += ["n_flagged", "n_untimed", "speech_s", "uncovered_s", "overlap_s", "status"]
report.table(screening[["recording_id", *columns]])

# %%
speech, uncovered = (screening[name].fillna(0.0) for name in ("speech_s", "uncovered_s"))
unscreened = screening[(speech > 0) & (uncovered > max_uncovered_share * speech)]
coverage = pd.DataFrame(
    [
        {
            "rate": "speech inside turns",
            "numerator": float(speech.sum() - uncovered.sum()),
            "denominator": float(speech.sum()),
            "unknown": 0,
            "not_applicable": int((screening["status"] != "ok").sum()),
        }
    ]
)
report.rates(coverage)

# %% [markdown]
# ## Turns
#
# A turn is the unit of conversion and editing: one speaker, at most about eleven seconds.

# %%
#| label: fig-turn-lengths
#| fig-cap: Length of the turns, in bins of one second.
#| fig-alt: Histogram of turn lengths in seconds.
lengths = turn_times.assign(seconds=(turn_times["end_s"] - turn_times["start_s"]).astype(float))
plot = so.Plot(lengths, x="seconds").add(so.Bars(), so.Hist(binwidth=1))
report.figure(lengths, lambda: plot.label(x="length of a turn in seconds", y="turns"))

# %% [markdown]
# ## Against the truth, where it is known
#
# Seconds missed, wrongly found and given to the wrong speaker; reference pauses over 0.2 s cut
# out, no collar, overlap included. `used` had the declared number of speakers if the parameter
# says so, `automatic` never had.

# %%
errors = pd.DataFrame()
if stage.has("gold_speech"):
    stretches, gold = tables["diarization"], stage.read("gold_speech")
    scored = {
        mode: score_diarization(own, gold).sum(numeric_only=True)
        for mode, own in stretches.groupby("mode")
    }
    errors = pd.DataFrame(scored).T.rename_axis("mode").reset_index()
    parts = ["missed_s", "false_alarm_s", "confusion_s"]
    errors["error"] = errors[parts].sum(axis=1) / errors["scored_s"]
report.table(errors)

# %% [markdown]
# ## What this shows

# %%
ok = screening[screening["status"] == "ok"]
covered, truth = float(speech.sum() - uncovered.sum()), ""
if len(errors):
    shown = [f"{report.points(row.error, 1)} % ({row.mode})" for row in errors.itertuples()]
    truth = f"Against the truth the diarization error is {' and '.join(shown)}."
report.say(f"""
{len(ok)} of {len(screening)} recordings hold speech: {ok["n_words"].sum()} words in
{len(turn_times)} turns of {turn_times["profile_id"].nunique()} conversation-speaker profiles.
Turns cover {report.percent(round(covered, 1), round(float(speech.sum()), 1))} seconds of
speech; in {len(unscreened)} recordings more than {report.points(max_uncovered_share, 0)} % of it
is unscreened.
{ok["n_flagged"].sum()} words are flagged as hallucinated and {ok["n_untimed"].sum()} have no
usable time. {truth}
""")

# %%
stage.done()
