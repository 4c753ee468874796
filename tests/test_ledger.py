"""The ledger of a made-up run: costs, engines, fates and units."""

import json

import pytest
from fabricate import fabricate_run

from aegis import ledger, receipts

INFO = {"role": "r", "revision": "1", "licence": "MIT", "device": "cpu", "embedded": True}


@pytest.fixture
def run(tmp_path):
    run = fabricate_run(tmp_path / "toy")
    for stage, engine in (("00_corpora", "kokoro"), ("09_retranscribe", "whisper-base")):
        receipt = {
            "stage": stage,
            "counts": {"planned": 3, "observed": 2, "failed": 1, "not_applicable": 0},
            "reused": 1,
            "engine_s": 4.0,
            "wall_s": 2.5,
            "cpu_s": 4.5,
            "item_s": 5.0,
            "usage": {"requests": 2, "input_tokens": 30} if engine == "kokoro" else {},
            "peak_memory_mb": {"driver": 100.0, "workers": 900.0},
            "engines": [INFO | {"name": engine}, INFO | {"name": "silero"}],
        }
        path = receipts.receipt_path(run, stage)
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(receipt))
    return run


def test_costs_have_a_row_for_each_receipt(run):
    costs = ledger.stage_costs(run)
    assert costs["stage"].tolist() == ["00_corpora", "09_retranscribe"]
    assert costs["peak_memory_mb"].tolist() == [1000.0, 1000.0]
    assert (
        costs["planned"] == costs["observed"] + costs["failed"] + costs["not_applicable"]
    ).all()


def test_the_profile_has_shares_and_tokens(run):
    profile = ledger.profile(run).set_index("stage")
    assert profile["share_of_wall"].tolist() == [0.5, 0.5]
    assert profile["share_in_engines"].tolist() == [0.8, 0.8]
    assert profile.loc["00_corpora", ["requests", "input_tokens", "output_tokens"]].tolist() == [
        2, 30, 0,
    ]  # fmt: skip
    assert profile["cost_usd"].tolist() == [0, 0]


def test_an_engine_stands_once_with_all_its_stages(run):
    engines = ledger.engines_used(run).set_index("name")
    assert engines.loc["silero", "stages"] == "00_corpora, 09_retranscribe"
    assert engines.loc["kokoro", "stages"] == "00_corpora"


def test_a_receipt_of_a_notebook_run_by_hand_is_checked_without_a_page(run):
    receipt = receipts.read_receipt(run, "00_corpora") | {"tables": {}, "files": {}}
    assert receipts.output_reasons(run, receipt) == []
    damaged = receipt | {"tables": {"recordings": "0" * 64}}
    found = receipts.output_reasons(run, damaged)
    assert found == ["output tables/recordings.parquet is not what was written"]


def test_fates_add_up(run):
    fates = ledger.item_fates(run)
    kinds = [c for c in fates.columns if c not in ("table", "unit", "scheduled")]
    assert (fates[kinds].sum(axis=1) == fates["scheduled"]).all()
    rendered = run.read("rendered")
    row = fates.set_index("table").loc["rendered"]
    assert row["scheduled"] == len(rendered)
    assert row["ok"] == (rendered["status"] == "ok").sum()


def test_units_are_counted_or_said_to_be_absent(run):
    counted = ledger.units(run).set_index("unit")["this run"]
    assert counted["recordings (conversations, clusters)"] == 6
    assert counted["conversation-speaker profiles"] == 12
    assert counted["edit intentions (focused)"] == (run.read("edits")["status"] == "ok").sum()
    run.table_path("profiles").unlink()
    assert ledger.units(run).set_index("unit")["this run"].isna()["conversation-speaker profiles"]
