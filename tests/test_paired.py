"""Effects of a changed setting on items that both runs planned, counted by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from aegis import paired
from aegis.contrasts import FAMILIES, adjust_families
from aegis.stressors import ACOUSTIC, ADMINISTRATIVE
from aegis.tables import Run, check_table

FATE = {"status": "ok", "reason": None}


def facts(labels: dict[str, str | None], condition: str = "renderer_b") -> pd.DataFrame:
    return pd.DataFrame([
        {"fact_id": fact, "condition": condition, "judge": "rules", "order": "source_first",
         "recording_id": f"d/{fact[0]}", "importance": "major", "polarity": "affirmed",
         "label": label, "attempts": 1, "status": "ok" if label else "failed",
         "reason": None if label else "no reply", "prompt_sha256": None, "request_sha256": None,
         "reply_sha256": None}
        for fact, label in labels.items()
    ])  # fmt: skip


def draws() -> np.random.Generator:
    return np.random.default_rng(1)


def test_facts_are_paired_by_id_and_unobserved_ones_left_out() -> None:
    first = facts({"a1": "preserved", "a2": "preserved", "b1": "missing", "b2": "preserved"})
    other = facts(
        {"a1": "missing", "a2": "preserved", "b1": "missing", "b2": None, "c1": "preserved"}
    )
    row = paired.verdict_effect(
        first, other, "preserved", "renderer_b", "noise", draws, 200, "acoustic stressors"
    )
    assert (row["n_items"], row["n_clusters"]) == (3, 2)
    assert row["estimate"] == pytest.approx(-1 / 3)
    assert row["contrast_id"] == "facts preserved, renderer_b: noise - primary"
    assert not np.isnan(row["p"])
    none = paired.verdict_effect(first, other, "preserved", "redacted", "noise", draws, 200)
    assert none["n_items"] == 0 and none["status"] != "ok"


def run_of(path: Path, errors: int, statuses: list[str]) -> Run:
    run = Run(path)
    scores = [
        {"recording_id": name, "condition": condition, "reference": "source", "n_reference": 10,
         "substitutions": errors, "deletions": 0, "insertions": 0} | FATE
        for name in ("d/a", "d/b") for condition in ("converted", "renderer_b")
    ]  # fmt: skip
    run.write("transcript_scores", pd.DataFrame(scores))
    matches = [
        {"intention_id": f"i{k}", "condition": "renderer_b", "scope": "focused",
         "recording_id": f"d/{'ab'[k % 2]}", "category": "NAME", "replacement_status": status,
         "original_status": "absent", "planned_text_holds_original": False,
         "replacement_evidence": None, "original_evidence": None} | FATE
        for k, status in enumerate(statuses)
    ]  # fmt: skip
    run.write("lexical_matches", pd.DataFrame(matches))
    run.write("fact_verdicts", facts({"a1": "preserved", "b1": "preserved"}))
    return run


def test_all_endpoints_of_two_runs_have_keys_of_their_own(tmp_path: Path) -> None:
    first = run_of(tmp_path / "first", 1, ["realised", "realised", "failed", "not_realised"])
    other = run_of(tmp_path / "other", 3, ["realised", "uncertain", "realised", "realised"])
    rows = [
        row
        for condition in ("converted", "renderer_b")
        for row in paired.effects(first, other, condition, "0.75/0.70", draws, 100)
    ]
    table = check_table("operating_effects", pd.DataFrame(rows)).set_index("endpoint")
    words = table.loc["word errors against source, renderer_b"]
    assert (words["estimate"], words["n_items"]) == (pytest.approx(0.2), 2)
    assert table.loc["realised, renderer_b", "estimate"] == pytest.approx((3 - 2) / 4)
    assert table.loc["facts preserved, renderer_b", "estimate"] == 0
    crossing = paired.crosses_zero(table)
    assert not crossing["word errors against source, renderer_b"]
    assert crossing["facts preserved, renderer_b"]
    assert pd.isna(crossing["realised, converted"])
    noise = pd.DataFrame({"endpoint": ["wer against source"], "estimate": [0.01]})
    shown = paired.show_effects(table.reset_index(), noise)
    assert shown["estimate_points"].max() == pytest.approx(25)
    floors = shown.set_index("endpoint")["noise_floor"]
    assert floors["word errors against source, renderer_b"] == pytest.approx(1.0)
    assert floors.drop(["word errors against source, renderer_b",
                        "word errors against source, converted"]).isna().all()  # fmt: skip


def test_declared_families_hold_all_their_tests() -> None:
    """Three endpoints by every stressor; those that did not run keep their place."""
    for family, members in {"acoustic": ACOUSTIC, "administrative": ADMINISTRATIVE}.items():
        rows = [
            paired.absent_effect(endpoint, name, "not run", f"{family} stressors")
            for name in members for endpoint in ("facts", "chronology", "actions")
        ]  # fmt: skip
        assert len(rows) == FAMILIES[f"{family} stressors"]
        rows[0] |= {"p": 0.001}
        adjusted = adjust_families(rows)
        assert adjusted[0]["p_holm"] == pytest.approx(0.001 * len(rows))
        assert all(pd.isna(row["p_holm"]) for row in adjusted[1:])
