# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # V. Who is found when false alarms must be rare? {#sec-low-fpr}
#
# An attacker who needs certainty works at false-positive rates of 1 % to 0.01 %, far from the
# equal error rate. VoxGuard (arXiv:2509.18413) reads privacy as a membership game: are two
# anonymised utterances from one speaker, do two speakers share an attribute? Its review asked for
# thresholds calibrated on other data, intervals, and a table of attributes. This page follows it.
#
# `PT` takes embeddings as they come, `FT` is adapted on anonymised speech of other people; `Avg`
# and `Max` combine the cosines with `L` enrolment utterances. Systems named `sim:` are simulated.

# %% tags=["parameters"]
run_name: str = "demo"  # the run whose tables are read and written
lengths: list[int] = [1, 3, 10, 30, 60, 200]  # L (paper: 1, 30, 60, 200; 3 and 10 are ours)
n_trials: int = 20000  # balanced trials a cell of speech (paper: 100,000)
n_splits: int = 200  # speaker splits of calibration and test
sim_trials: int = 1000000  # trials of the simulated test at FPR 0.01 %
sim_splits: int = 40  # speaker splits there
seed: int = 20261005  # of draws and splits

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns

from aegis import leakage_tables, low_fpr, report, simulator
from aegis import published_leakage as printed
from aegis.simulator import Anonymiser, World
from aegis.stage import open_stage
from aegis.tables import as_table
from aegis.work import leakage as work

stage = open_stage("V_low_fpr", globals())
report.style()
people, segments = stage.read("leak_people"), stage.read("leak_segments")
rate = int(segments["rate_hz"].max()) if len(segments) else 16000
conditions = work.read_conditions(segments, people, [5], [rate])

# %% [markdown]
# ## What the paper prints against itself

# %%
report.table(printed.disagreements("low_fpr"), 3)

# %% [markdown]
# ## The demo
#
# An utterance is a piece of 5 s (relaxed: own words) or a sentence of the parallel text (strict:
# the same words). Cells without enough utterances are n/a; with fewer than ten negatives in the
# tail the value is given and called not resolvable.

# %%
small = leakage_tables.Settings(
    seed, n_trials=n_trials, n_splits=n_splits, lengths=tuple(lengths)
)
wanted = ("users", "values")
measured = [
    leakage_tables.measure_condition(own, name, small, wanted=wanted)
    for name, own in conditions.items()
]

# %% [markdown]
# ## Simulation at sizes that no demo has
#
# Two systems: one hides all utterances alike, the other hides better but passes 8 % of them as
# they are. The first call gives every length, the second resolves a false-positive rate of 0.01 %.

# %%
bed = simulator.simulate(
    World(n_speakers=120, n_sessions=1, n_utterances=62, dimension=48, speaker=0.8),
    [Anonymiser("sim: even", 0.9, 0.0), Anonymiser("sim: leaky", 0.98, 0.0, leak_share=0.08)],
    np.random.default_rng(seed), n_profiles=1,
)  # fmt: skip
measured.append(leakage_tables.measure_condition(bed, "simulation", small, wanted=wanted))
fine = [
    low_fpr.user_privacy(
        bed, system, "simulated", seed, [60], ["relaxed"], sim_trials, sim_splits
    ).assign(condition="simulation, large")
    for system in bed.systems
]
tables = leakage_tables.stack_all(measured)
users = pd.concat([tables["users"], *fine], ignore_index=True)
users = stage.write("leak_users", as_table("leak_users", users))
values = stage.write("leak_values", as_table("leak_values", tables["values"]))

# %%
fates = users.assign(cell=users["reason"].fillna("resolvable").str.replace(r":.*", "", regex=True))
fates = fates.groupby(["condition", "regime", "length", "cell"]).size()
report.table(fates.rename("cells").reset_index())

# %% [markdown]
# ## User privacy

# %%
columns = ["condition", "backend", "system", "regime", "attacker", "scoring", "length", "fpr"]
facts = ["eer", "tpr", "ci_low", "ci_high", "eps_hat", "eps_lower", "n_tail", "n_speakers_hit"]
solid = users[users["status"] == "ok"]
strongest = solid.sort_values("tpr", ascending=False).groupby(["condition", "system", "fpr"])
report.table(strongest.head(1).sort_values(["condition", "fpr", "system"])[[*columns, *facts]], 4)

# %%
large = users[users["condition"] == "simulation, large"]
report.table(large[[*columns[2:], *facts, "status"]], 4)

# %%
#| label: fig-enrolment
#| fig-cap: Simulated true-positive rate at a false-positive rate of 1 % by enrolment utterances.
#| fig-alt: Rising lines for four attacks, one panel a simulated system.
curve = users[(users["condition"] == "simulation") & (users["fpr"] == 0.01)].dropna(subset=["tpr"])
if len(curve):
    curve = curve.astype({"tpr": float, "length": int})
    curve["attack"] = curve["attacker"] + "-" + curve["scoring"]
    sns.relplot(
        curve[curve["regime"] == "relaxed"], x="length", y="tpr", hue="attack", col="system",
        kind="line", marker="o", height=2.8,
    ).set(xscale="log").set_axis_labels("enrolment utterances", "TPR at FPR 1 %")  # fmt: skip
    plt.show()

# %% [markdown]
# ## Attribute privacy: the table that the review found missing
#
# Do two speakers share a value? `cosine` compares embeddings, `logistic` the posteriors of a
# regression on other people. Accuracy is taken where both errors are equal.

# %%
one = values[values["fpr"] == values["fpr"].max()]
one = one.sort_values(["condition", "attribute", "regime", "attacker", "system"])
columns = ["condition", "backend", "system", "attribute", "regime", "attacker", "accuracy", "auc"]
done = one[one["auc"].notna()]
report.table(done[[*columns, "tpr", "ci_low", "ci_high", "n_tail", "status"]], 3)

# %%
gone = values[values["auc"].isna()].groupby(["condition", "attribute", "regime", "reason"]).size()
report.table(gone.rename("cells n/a").reset_index())

# %% [markdown]
# ## The review's test
#
# Does FT-Max's held-out TPR at a false-positive rate of 0.01 % stay above 5 % and clear of
# FT-Avg's interval, at L = 60?

# %%
verdicts = [
    {"condition": name[0], "backend": name[1], "system": name[2],
     **low_fpr.judge_claim(cells[cells["length"] == 60])}
    for name, cells in users[users["regime"] == "relaxed"].groupby(
        ["condition", "backend", "system"]
    )
]  # fmt: skip
verdicts = pd.DataFrame(verdicts)
report.table(verdicts)

# %% [markdown]
# ## Paper and this run

# %%
at = large[(large["attacker"] == "FT") & (large["fpr"] == 1e-4)].set_index(["system", "scoring"])
report.table(
    pd.DataFrame([
        {"quantity": f"TPR at FPR 1e-4, FT-{scoring}, L = 60, %", "paper": paper,
         "this run (sim: leaky)": 100 * at["tpr"].get(("sim: leaky", scoring), float("nan")),
         "comparable?": "no: simulated vectors, made to show the mechanism"}
        for scoring, paper in (("Avg", 0.40), ("Max", 27.97))
    ]), 2,
)  # fmt: skip

# %% [markdown]
# ## What this shows

# %%
speech = users[~users["condition"].str.startswith("simulation") & (users["system"] != "original")]
ranks, sentence = low_fpr.compare_rankings(speech, 1e-2)
_, simulated = low_fpr.compare_rankings(large, 1e-4)
report.table(ranks.rename_axis("rank of").reset_index(), 1)

# %%
counts = verdicts["verdict"].value_counts()
report.say(
    f"Speech: {sentence} Simulation: {simulated} The review's claim is supported in"
    f" {counts.get('supported', 0)}, not supported in {counts.get('not supported', 0)} and not"
    f" resolvable in {counts.get('not resolvable', 0)} of {len(verdicts)} conditions, backends and"
    f" systems. {int((users['status'] == 'not_applicable').sum())} of {len(users)} cells are n/a."
    " `eps_hat` describes these attacks and certifies nothing."
)

# %%
stage.done()
