# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # B. Which recordings, from where? {#sec-corpora-cards}
#
# The paper uses PriMock57, respiratory interviews (Fareez et al.) and SIMSAMU: 390 public
# simulated conversations, no sample of real encounters. Each corpus has a card with licence,
# revision, access and counts, and a list of checksums. A run says which of them it used; here is
# what it holds.

# %% tags=["parameters"]
run_name: str = "demo"  # the run whose tables are read

# %%
import pandas as pd

from aegis import published, report
from aegis.corpora import expected_files
from aegis.manifests import read_card
from aegis.stage import open_stage

stage = open_stage("B_corpora", globals())
report.style()
recordings = stage.read("recordings")
CARDS = ("primock57", "fareez", "simsamu", "asq_phi", "demo")

# %% [markdown]
# ## Cards

# %%
cards = {name: read_card(name) for name in CARDS}
rows = [
    {
        "corpus": card.title,
        "licence": card.licence,
        "revision": card.revision,
        "access": card.access,
        "languages": ", ".join(card.languages),
        "content": card.content,
        "counts": ", ".join(f"{count:,} {what}" for what, count in card.counts.items()),
    }
    for card in cards.values()
]
report.table(pd.DataFrame(rows))

# %%
report.table(
    pd.DataFrame(
        [{"corpus": name, "files with a digest": sum(bool(f.sha256) for f in files),
          "files listed": len(files)}
         for name in CARDS[:4]
         for files in [expected_files(name)]],
        columns=["corpus", "files with a digest", "files listed"],
    )
)  # fmt: skip

# %% [markdown]
# ## This run's recordings
#
# Every scheduled file has one fate. Durations are those of the ingested sound at 16 kHz.

# %%
own = recordings.assign(minutes=recordings["duration_s"].astype(float) / 60)
groups = own.groupby(["dataset", "language", "status"], dropna=False)
report.table(
    groups.agg(
        recordings=("recording_id", "size"),
        minutes=("minutes", "sum"),
        shortest=("minutes", "min"),
        longest=("minutes", "max"),
    ).reset_index(),
    1,
)

# %%
sources = recordings.groupby(["layout", "n_channels", "source_rate_hz"], dropna=False)
report.table(sources.size().rename("recordings").reset_index())

# %%
failed = recordings[recordings["status"] != "ok"]
report.table(failed.groupby(["status", "reason"]).size().rename("recordings").reset_index())

# %% [markdown]
# ## Paper and this run
#
# The three cards add up to the paper's population: it used every recording.

# %%
done = recordings[recordings["status"] == "ok"]
held = done["dataset"].value_counts()
ours = {
    "n_primock": int(held.get("primock57", 0)),
    "n_fareez": int(held.get("fareez", 0)),
    "n_simsamu": int(held.get("simsamu", 0)),
    "n_conversations": len(done),
    "n_asq": "appendix H",
    "n_units": int((stage.read("voices")["status"] == "ok").sum()),
}
both = published.beside(published.read_numbers("aegisvox"), ours)
same = {"primock57", "fareez", "simsamu"} & set(held.index)
report.table(
    both.assign(**{"comparable?": "yes, where read" if same else "no: none of these was read"})
)

# %% [markdown]
# ## What this shows

# %%
content = ", ".join(
    f"{n} of {name} ({cards[name].content if name in cards else 'private'})"
    for name, n in held.items()
)
report.say(f"""
This run read {content or "no recording"}: {len(done)} of {len(recordings)} scheduled recordings,
{own.loc[done.index, "minutes"].sum():.0f} minutes. Results describe these recordings. Scripted or
simulated speech says little of real care: people there interrupt, hesitate and name others.
""")

# %%
stage.done()
