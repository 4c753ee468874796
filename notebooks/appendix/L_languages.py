# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # L. Do results differ by language? {#sec-languages}
#
# Each endpoint by language, beside what else differs between the languages. In the paper French is
# one corpus of emergency calls and English two of consultations; in the demo they differ in
# number, scripts, voices and recognition. A difference here is a difference between sets of
# recordings, not an effect of a language.

# %% tags=["parameters"]
run_name: str = "demo"  # the run whose tables are read
n_draws: int = 10000  # bootstrap draws of conversations
seed: int = 20261005  # seed of the draws

# %%
import numpy as np
import pandas as pd

from aegis import figures, report, weighting
from aegis.stage import open_stage

stage = open_stage("L_languages", globals())
report.style()
recordings = stage.read("recordings")
recordings = recordings[recordings["status"] == "ok"]
language = recordings.set_index("recording_id")["language"].fillna("unknown")
matches, verdicts = stage.read("lexical_matches"), stage.read("fact_verdicts")
verdicts = verdicts[verdicts["judge"] == verdicts["judge"].min()]


def draws() -> np.random.Generator:
    return np.random.default_rng(seed)


# %% [markdown]
# ## What else differs
#
# Confounded with language: every row of this table. With one dataset a language, dataset and
# language cannot be told apart at all.

# %%
screened = stage.read("screening").set_index("recording_id")
planned = stage.read("plan_summary").groupby("recording_id")["n_edits"].sum()
facts = stage.read("inventory_summary").set_index("recording_id")["n_facts"]
each = pd.DataFrame(
    {
        "language": language,
        "dataset": recordings.set_index("recording_id")["dataset"],
        "minutes": recordings.set_index("recording_id")["duration_s"].astype(float) / 60,
        "turns": screened["n_turns"],
        "speakers": screened["n_speakers"],
        "edits": planned,
        "facts": facts,
    }
).dropna(subset=["language"])
each[["edits", "facts"]] = each[["edits", "facts"]].fillna(0)
report.table(
    each.groupby("language").agg(
        recordings=("minutes", "size"),
        datasets=("dataset", "nunique"),
        minutes_median=("minutes", "median"),
        turns_median=("turns", "median"),
        speakers=("speakers", "sum"),
        edits=("edits", "sum"),
        facts=("facts", "sum"),
    ).reset_index(),
    1,
)  # fmt: skip

# %% [markdown]
# ## Endpoints by language
#
# Item-weighted, with intervals over conversations. One conversation has no interval.

# %%
tables = weighting.observed(matches, verdicts)
strata = weighting.strata_rates(tables, language, draws, n_draws)
report.rates(
    strata[["endpoint", "condition", "stratum", "numerator", "denominator", "n_clusters",
            "ci_low", "ci_high"]]
)  # fmt: skip

# %%
#| label: fig-preserved-languages
#| fig-cap: "Facts preserved by condition and language, with 95 % intervals."
#| fig-alt: "Points with whiskers at each condition, one marker a language."
shown = strata[strata["endpoint"] == "fact preserved"].rename(columns={"stratum": "series"})
report.figure(shown, lambda: figures.draw_rates(shown, "facts preserved, percent"))

# %% [markdown]
# ## Words
#
# Corpus word error rates from summed counts, against the saved source transcript.

# %%
scores = stage.read("transcript_scores")
own = scores[(scores["reference"] == "source") & (scores["status"] == "ok")]
own = own.assign(language=own["recording_id"].map(language))
words = own.groupby(["condition", "language"])[
    ["n_reference", "substitutions", "deletions", "insertions"]
].sum()
words["numerator"] = words[["substitutions", "deletions", "insertions"]].sum(axis=1)
words = words[["numerator", "n_reference"]].rename(columns={"n_reference": "denominator"})
report.rates(words.reset_index())

# %% [markdown]
# ## Renderer contrast within each language

# %%
pairs = weighting.paired_items(tables)
inner = [
    weighting.weightings(part, draws, n_draws).assign(language=name)
    for name, part in pairs.groupby(pairs["recording_id"].map(language))
]
inner = pd.concat(inner) if inner else pd.DataFrame()
columns = ["language", "endpoint", "items", "conversations"]
points = ["item_weighted", "item_low", "item_high", "detectable"]
if len(inner):
    inner = inner.assign(**{name: 100 * inner[name].astype(float) for name in points})
report.table(inner[[*columns, *points]] if len(inner) else inner, 1)

# %% [markdown]
# ## Paper and this run

# %%
count = language.value_counts()
report.table(
    pd.DataFrame(
        [
            ["English recordings", "329 (PriMock57 57, Fareez 272)", str(count.get("en", 0))],
            ["French recordings", "61 (SIMSAMU)", str(count.get("fr", 0))],
            ["language and corpus", "one corpus in French", "one scripted corpus in both"
             if len(set(recordings["dataset"])) == 1 else "several corpora"],
            ["causal effect of language", "not identified", "not identified"],
        ],
        columns=["quantity", "paper", "this run"],
    ).assign(**{"comparable?": "no: other recordings; the confounding is the same in kind"})
)  # fmt: skip

# %% [markdown]
# ## What this shows

# %%
said = [
    f"{r.stratum} {report.percent(r.numerator, r.denominator)} in {r.n_clusters} conversations"
    for r in strata[
        (strata["endpoint"] == "fact preserved") & (strata["condition"] == "renderer_b")
    ].itertuples()
]
report.say(f"""
Facts preserved by renderer B: {"; ".join(said) or "not measured"}. The languages also differ in
recordings, length, voices and recogniser accuracy, so nothing here is an effect of language; with
so few conversations in a stratum its interval, where there is one, is itself uncertain.
""")

# %%
stage.done()
