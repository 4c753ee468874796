# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # C. Which models, from where, under which licence? {#sec-models}
#
# Weights are data: each model has a card with its canonical source, its revision, the package
# that carries a copy, SHA-256 of every file, and its licence. What a run used stands in its
# receipts; this page puts the two together.

# %% tags=["parameters"]
run_name: str = "demo"  # the run whose receipts are read

# %%
import pandas as pd

from aegis import ledger, report
from aegis.stage import open_stage
from aegis.weights import card_names, read_card

stage = open_stage("C_models", globals())

# %% [markdown]
# ## Cards
#
# *Embedded* models come with packages; the others have to be brought here under their licences,
# some after accepting conditions (*gated*). A revision is known in full, in short, as a tag or
# not at all; a size is missing where nobody here could read the file.

# %%
cards = [read_card(name) for name in card_names()]
rows = [
    {
        "model": card.name,
        "role": card.role,
        "source": card.source.get("repository", card.source.get("hub", "")),
        "revision": str(card.source.get("revision", ""))[:12],
        "known as": card.revision_kind,
        "licence": card.licence,
        "gated": card.gated,
        "embedded": card.embedded,
        "files": len(card.files),
        "megabytes": card.size / 1e6 if all(file.size for file in card.files) else None,
    }
    for card in cards
]
models = pd.DataFrame(rows)
report.table(models, 1)

# %% [markdown]
# ## Engines of this run

# %%
engines = ledger.engines_used(stage.run)
report.table(engines[["role", "name", "revision", "licence", "device", "stages"]])

# %% [markdown]
# ## Paper and this run
#
# The paper's engines stand behind the same Protocols; an embedded engine takes each role here.

# %%
paper = [
    ("transcriber", "faster-whisper large-v3, float16, beam 1"),
    ("diarizer", "pyannote 3.1"),
    ("encoder", "SpeechBrain ECAPA-TDNN, revision 0f99f2d0"),
    ("converter", "Seed-VC"),
    ("renderer_a", "VoiceCraft 330M"),
    ("renderer_b", "F5-TTS"),
    ("detector", "GPT-5.4 under a Safe Harbor contract"),
    ("judge", "GPT-5.4; Qwen3-32B, revision 9216db57"),
]
used = engines.groupby("role")["name"].agg(", ".join).to_dict()
used |= {"renderer_a": "infill", "renderer_b": "whole-turn"} if "renderer" in used else {}
table = pd.DataFrame(paper, columns=["role", "paper"])
table["this run"] = table["role"].map(used).fillna("not run")
report.table(table.assign(comparable="no: another engine"))

# %% [markdown]
# ## What this shows

# %%
embedded, carried = int(engines["embedded"].sum()), models[models["embedded"]]
report.say(f"""
{embedded} of {len(engines)} engines of this run are embedded: they need no hub, no key and no GPU.
Their weights take {carried["megabytes"].sum():.0f} MB in {carried["files"].sum()} checked files.
{(~models["embedded"]).sum()} cards describe models of the paper that no package carries; of these
{(models["known as"][~models["embedded"]] == "full").sum()} have a full revision.
Results made with them describe them, not the paper's engines.
""")

# %%
stage.done()
