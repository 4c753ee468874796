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
from aegis.receipts import read_receipt
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
# The paper's engines stand behind the same Protocols as the embedded ones; what each role was
# filled with follows from the receipts. The same name means the same adapter and revision, not
# the paper's machine.

# %%
paper = [
    ("transcriber", "whisper-large-v3", "faster-whisper large-v3, float16, beam 1"),
    ("diarizer", "pyannote-3.1", "pyannote 3.1"),
    ("encoder", "ecapa", "SpeechBrain ECAPA-TDNN, revision 0f99f2d0"),
    ("converter", "seed-vc", "Seed-VC"),
    ("renderer_a", "voicecraft", "VoiceCraft 330M"),
    ("renderer_b", "f5-tts", "F5-TTS"),
    ("detector", "gpt-5.4", "GPT-5.4 under a Safe Harbor contract"),
    ("judge", "gpt-5.4", "GPT-5.4; Qwen3-32B, revision 9216db57"),
]
used = engines.groupby("role")["name"].agg(list).to_dict()
rendering = (read_receipt(stage.run, "06_render_edits") or {}).get("parameters", {})
used |= {role: [rendering[role]] for role in ("renderer_a", "renderer_b") if role in rendering}
table = pd.DataFrame(paper, columns=["role", "name", "paper"])
table["this run"] = [", ".join(used.get(role, ["not run"])) for role in table["role"]]
same = [name in used.get(role, []) for role, name, _ in paper]
table["comparable"] = ["same adapter" if yes else "no: another engine" for yes in same]
report.table(table.drop(columns="name"))

# %% [markdown]
# ## What this shows

# %%
embedded, carried = int(engines["embedded"].sum()), models[models["embedded"]]
report.say(f"""
{embedded} of {len(engines)} engines of this run are embedded: they need no hub, no key and no GPU.
Their weights take {carried["megabytes"].sum():.0f} MB in {carried["files"].sum()} checked files.
{(~models["embedded"]).sum()} cards describe models of the paper that no package carries; of these
{(models["known as"][~models["embedded"]] == "full").sum()} have a full revision.
Results made with them describe them, not the paper's engines: {sum(same)} of {len(paper)} roles
are filled with the paper's.
""")

# %%
stage.done()
