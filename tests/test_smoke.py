"""The smoke profile, once through real papermill: two cut conversations, all stages."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from aegis import checks, pipeline, receipts
from aegis.tables import PROJECT, SCHEMAS, Run

pytestmark = [pytest.mark.smoke, pytest.mark.engine]

PARAMS = PROJECT / "params" / "smoke.yaml"
DERIVED = ("converted", "renderer_a", "renderer_b", "redacted")


def test_every_stage_has_its_receipt_and_notebook(smoke: Run) -> None:
    study = pipeline.load_study(PARAMS)
    order = pipeline.stage_order(study, pipeline.find_notebooks())
    assert len(order) >= 12
    for name in order:
        receipt = receipts.read_receipt(smoke, name)
        assert receipt is not None
        assert receipt["unexpected"] == 0, name
        counts = receipt["counts"]
        fates = counts["observed"] + counts["failed"] + counts["not_applicable"]
        assert counts["planned"] == fates
        assert (smoke.root / "notebooks" / f"{name}.ipynb").exists()


def test_it_is_up_to_date_and_verified(smoke: Run) -> None:
    study = pipeline.load_study(PARAMS)
    assert not any(pipeline.status(study, smoke).values())
    assert checks.verify_run(smoke) == []


def test_every_owned_table_is_there(smoke: Run) -> None:
    for name, wiring in pipeline.STAGES.items():
        if receipts.read_receipt(smoke, name) is None:
            continue
        for table in set(wiring.writes) - wiring.optional:
            assert smoke.has(table), table


def test_every_figure_is_on_its_page_or_said_to_be_empty(smoke: Run) -> None:
    drawn = 0
    for path in sorted((smoke.root / "notebooks").glob("*.ipynb")):
        for cell in json.loads(path.read_text("utf-8"))["cells"]:
            label = re.search(r"^#\| label: (fig-\S+)", "".join(cell["source"]))
            if label is None:
                continue
            shown = {form for output in cell["outputs"] for form in output.get("data", {})}
            assert shown & {"image/png", "text/markdown"}, f"{path.stem}: {label[1]}"
            drawn += "image/png" in shown
    assert drawn >= 10


def test_both_recordings_go_all_the_way(smoke: Run) -> None:
    recordings = smoke.read("recordings")
    assert recordings["status"].tolist() == ["ok", "ok"]
    assert set(recordings["language"]) == {"en", "fr"}
    made = smoke.read("reconstructions")
    ok = made[made["status"] == "ok"]
    for recording in recordings["recording_id"]:
        assert set(ok.loc[ok["recording_id"] == recording, "condition"]) == set(DERIVED)
    assert (ok["replay_max_steps"] <= 2).all()


def test_every_turn_is_converted_at_its_length(smoke: Run) -> None:
    turns = smoke.read("turns").set_index("turn_id")
    converted = smoke.read("converted").set_index("turn_id")
    assert set(turns.index) == set(converted.index)
    ok = converted[converted["status"] == "ok"]
    expected = (turns["end_s"] - turns["start_s"]).loc[ok.index] * 16000
    assert ((ok["n_samples"] - expected).abs() <= 1).all()


def test_profiles_of_a_conversation_have_different_voices(smoke: Run) -> None:
    assignments = smoke.read("assignments").query("status == 'ok'")
    assert len(assignments) > 0
    for _, group in assignments.groupby(["recording_id", "pseudo_profile"]):
        assert group["voice_id"].is_unique


def test_every_edit_is_asked_of_every_renderer(smoke: Run) -> None:
    edits = smoke.read("edits")
    rendered = smoke.read("rendered").query("kind == 'intention'")
    assert len(edits) > 0
    for renderer in ("renderer_a", "renderer_b", "redacted"):
        asked = rendered.loc[rendered["renderer"] == renderer, "item_id"]
        assert set(asked) == set(edits.loc[edits["status"] == "ok", "intention_id"])


def test_no_other_output_quotes_the_secret_tables(smoke: Run) -> None:
    """Originals stay out of public tables, receipts and executed notebooks."""
    originals = set(smoke.read("substitutions")["original"].str.lower())
    long = [text for text in originals if len(text) >= 6 and not text.isdigit()]
    assert long
    places = [*(smoke.root / "receipts").glob("*.json"), *(smoke.root / "notebooks").glob("*")]
    for path in places:
        content = path.read_text("utf-8").lower()
        found = [text for text in long if re.search(rf"\b{re.escape(text)}\b", content)]
        assert not found, path.name
    for name, schema in SCHEMAS.items():
        if schema.visibility == "public" and smoke.has(name):
            text = smoke.read(name).to_csv().lower()
            assert not [t for t in long if re.search(rf"\b{re.escape(t)}\b", text)], name


def test_receipts_hold_no_home_or_machine_path(smoke: Run) -> None:
    for path in (smoke.root / "receipts").glob("*.json"):
        assert str(Path.home()) + "/" not in path.read_text()
        assert str(PROJECT) not in path.read_text()


def test_engines_are_named_with_revisions(smoke: Run) -> None:
    receipt = receipts.read_receipt(smoke, "01_transcribe")
    assert receipt is not None
    roles = {engine["role"] for engine in receipt["engines"]}
    assert {"transcriber", "diarizer"} <= roles
    assert all(engine["revision"] and engine["licence"] for engine in receipt["engines"])
    assert json.dumps(receipt["parameters"])


def test_claims_say_what_they_are_of(smoke: Run) -> None:
    claims = smoke.read("claims")
    counted = claims["numerator"].notna() & claims["denominator"].notna()
    rates = claims[(claims["status"] == "ok") & counted & claims["unit"].isin(["share", "rate"])]
    assert len(rates) > 0
    ratio = rates["numerator"] / rates["denominator"]
    pd.testing.assert_series_equal(
        rates["value"], ratio, check_names=False, check_exact=False, rtol=1e-6
    )
