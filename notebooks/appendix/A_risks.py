# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # A. Which risks remain, and what may a release hold? {#sec-risks}
#
# Neither mapping proves anything of the other: a spoken substitute does not remove its source, and
# a converted voice does not remove a spoken name. This page sets each risk that the paper names
# beside what this run measured of it, and each safeguard beside where it is enforced. No number
# here shows that a recording is anonymous or that a legal standard is met.

# %% tags=["parameters"]
run_name: str = "demo"  # the run whose tables are read

# %%
import pandas as pd

from aegis import published, report
from aegis.manifests import MANIFESTS, read_card
from aegis.stage import open_stage
from aegis.tables import SCHEMAS

stage = open_stage("A_risks", globals())
claims = stage.read("claims").set_index("claim_id")
screening, planned = stage.read("screening"), stage.read("plan_summary")
made = stage.read("reconstructions")


def measured(claim_id: str) -> str:
    """A claim as the text of a cell."""
    if claim_id not in claims.index or pd.isna(claims.loc[claim_id, "value"]):
        return "not measured"
    row = claims.loc[claim_id]
    if pd.isna(row["numerator"]):
        return f"{report.points(row['value'], 1)} %"
    return report.percent(row["numerator"], row["denominator"])


# %% [markdown]
# ## Risks, and what was seen of them
#
# An identifier that recognition never heard is in no transcript, so no detector can find it:
# seconds of speech without words are the size of that hole.

# %%
heard, uncovered = (float(screening[name].sum()) for name in ("speech_s", "uncovered_s"))
beginning = "eer_final_renderer_b_all_turns_"
final = [name for name in claims.index if name.startswith(beginning)]
attacker = "; ".join(f"{name.rsplit('_', 1)[1]} {measured(name)}" for name in sorted(final))
risks = pd.DataFrame(
    [
        ["original still heard, infill", "one substitution alone",
         measured("retained_renderer_a")],
        ["original still heard, whole turn", "one substitution alone",
         measured("retained_renderer_b")],
        ["original uncertain, infill", "neither verified absent nor present",
         measured("uncertain_renderer_a")],
        ["original uncertain, whole turn", "neither verified absent nor present",
         measured("uncertain_renderer_b")],
        ["replacement in words, not in sound", "regions that keep converted speech, infill",
         measured("retained_regions_renderer_a")],
        ["speech that was not screened", "seconds without words of all seconds of speech",
         report.percent(round(uncovered, 1), round(heard, 1))],
        ["mentions without a place in the text", "counted, never edited",
         report.percent(int(planned["n_unlocated"].sum()), int(planned["n_mentions"].sum()))],
        ["edits refused by the plan validator", "the turn is converted as it is",
         report.percent(int(planned["n_refused"].sum()), int(planned["n_mentions"].sum()))],
        ["the voice still links to its source", "EER of an untrained attacker, whole turn",
         attacker],
        ["stronger attackers", "adapted to conversion, other recordings, repeated releases",
         "appendices U and V"],
        ["matched language and traits narrow a search", "attributes of a pseudo-voice",
         "not measured"],
    ],
    columns=["risk", "what is counted", "this run"],
)  # fmt: skip
report.table(risks)

# %% [markdown]
# ## Safeguards
#
# The paper names restricted access, inspection of uncertain edits and purpose-limited release as
# possible safeguards, not as deployments that it validated. The same holds here.

# %%
safeguards = pd.DataFrame(
    [
        ["both mappings and original words lie in a folder of mode 0700", "enforced"],
        ["a public table has no column for them, by schema", "enforced"],
        ["a page with an original, a machine path or a key is not published", "enforced"],
        ["originals are played on request alone, of public or synthetic corpora", "enforced"],
        ["what cannot be screened or rendered keeps its reason", "enforced"],
        ["uncertain edits are listed for inspection", "listed; a person must look"],
        ["restricted access, agreements, a limited purpose", "outside this software"],
        ["recipients do not repeat a release with other voices", "outside this software"],
    ],
    columns=["safeguard", "here"],
)
report.table(safeguards)

# %% [markdown]
# ## What a release may hold

# %%
visible = pd.Series({name: schema.visibility for name, schema in SCHEMAS.items()})
names = sorted(stage.read("recordings")["dataset"].unique())
cards = {name: read_card(name) for name in names if (MANIFESTS / f"{name}.yaml").exists()}
sound = [
    {"corpus": name, "licence": card.licence, "content": card.content,
     "de-identified sound may be handed on": card.release_audio}
    for name, card in cards.items()
]  # fmt: skip
report.table(
    pd.DataFrame(
        sound, columns=["corpus", "licence", "content", "de-identified sound may be handed on"]
    )
)

# %%
report.table(
    pd.DataFrame(
        [
            ["manifests, identifiers, revisions, hashes, code", "yes"],
            [f"{(visible == 'public').sum()} public tables (counts, times, verdicts)", "yes"],
            [f"{(visible == 'secret').sum()} secret tables (words, names, both mappings)", "no"],
            ["original sound", "no; from its source, under its terms"],
            ["de-identified sound", "only where the card says so, and after inspection"],
        ],
        columns=["part", "in a release"],
    )
)

# %% [markdown]
# ## Paper and this run

# %%
shown = ["a_retained", "b_retained", "a_original_uncertain", "b_original_uncertain"]
ids = [f"{end}_renderer_{side}" for end in ("retained", "uncertain") for side in "ab"]
ours = {name: measured(claim) for name, claim in zip(shown, ids, strict=True)}
both = published.beside(published.read_numbers("aegisvox"), ours)
report.table(both.assign(**{"comparable?": "no: other recordings and engines, literal search"}))

# %% [markdown]
# ## What this shows

# %%
held = made[made["condition"].isin(["renderer_a", "renderer_b"])]
report.say(f"""
Originals are still heard in {ours["a_retained"]} and {ours["b_retained"]} of the intentions and
uncertain in {ours["a_original_uncertain"]} and {ours["b_original_uncertain"]}: these cases need a
person before any release. {int((held["status"] == "ok").sum())} of {len(held)} reconstructions
({held["recording_id"].nunique()} recordings, two renderers) were put together. Attackers who learn
or know the pool are the subject of appendix U; one who holds other recordings of these people was
not measured, so the true risk can only be higher than what stands here.
""")

# %%
stage.done()
