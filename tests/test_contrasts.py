"""Contrasts and claims by hand and on a made-up run."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fabricate import fabricate_run

from aegis import claims, contrasts
from aegis.tables import Run, check_table
from aegis.trials import equal_error_rate


def draws() -> np.random.Generator:
    return np.random.default_rng(20261005)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return fabricate_run(tmp_path_factory.mktemp("runs") / "toy")


def matches(rows: list[tuple[str, str, str, str, str]]) -> pd.DataFrame:
    """(intention, recording, condition, replacement, original) in the focused scope."""
    names = ["intention_id", "recording_id", "condition", "replacement_status", "original_status"]
    table = pd.DataFrame(rows, columns=names)
    return table.assign(scope="focused", planned_text_holds_original=False)


A, B = "renderer_a", "renderer_b"
LATER = {"fact_verdicts": "10_judge_facts", "edit_verdicts": "11_judge_edits"}
HAND = matches([
    ("i1", "c1", A, "realised", "absent"), ("i1", "c1", B, "realised", "retained"),
    ("i2", "c1", A, "failed", "failed"), ("i2", "c1", B, "realised", "absent"),
    ("i3", "c2", A, "not_realised", "retained"), ("i3", "c2", B, "realised", "absent"),
    ("i4", "c3", A, "realised", "absent"), ("i4", "c3", B, "uncertain", "uncertain"),
])  # fmt: skip


def test_lexical_contrasts_by_hand() -> None:
    """Realised 2/4 against 3/4; per conversation +1/2, +1, -1."""
    rows = {row["endpoint"]: row for row in contrasts.lexical_contrasts(HAND, draws, 300)}
    assert rows["realised"]["estimate"] == pytest.approx(0.25)
    assert rows["realised"]["equal_conversation"] == pytest.approx((0.5 + 1 - 1) / 3)
    assert (rows["realised"]["n_items"], rows["realised"]["n_clusters"]) == (4, 3)
    assert math.isnan(rows["realised"]["p"])
    # Every set of three conversations: (sum of changes) / (sum of items), 27 equal draws.
    changes, items = {"c1": 1, "c2": 1, "c3": -1}, {"c1": 2, "c2": 1, "c3": 1}
    drawn = [
        sum(changes[c] for c in names) / sum(items[c] for c in names)
        for names in itertools.product(changes, repeat=3)
    ]
    assert rows["realised"]["detectable"] == pytest.approx(2.8016 * np.std(drawn), rel=0.1)
    assert rows["retained"]["estimate"] == 0.0
    assert 0 < rows["retained"]["p"] <= 1
    assert rows["retained"]["family"] == "retention and contradiction"


def test_failures_stay_in_the_denominator_as_unknown() -> None:
    rows = {row["claim_id"]: row for row in claims.lexical_claims(HAND, draws, 100)}
    realised = rows["realised_renderer_a"]
    assert (realised["numerator"], realised["denominator"], realised["unknown"]) == (2, 4, 1)
    assert rows["uncertain_renderer_b"]["numerator"] == 1
    limits = contrasts.describe_limits(HAND, "realised")
    assert (limits["items"], limits["unresolved"]) == (4, 2)
    bounds = contrasts.lexical_bounds(HAND, "realised")
    # a: 2 realised, 1 open; b: 3 realised, 1 open.
    assert (bounds.low, bounds.high) == (pytest.approx(0.0), pytest.approx(0.5))


def test_retained_cases_stand_beside_their_plan() -> None:
    planned = HAND.assign(planned_text_holds_original=HAND["condition"] == B)
    whole = planned.assign(scope="conversation")
    rows = {
        r["claim_id"]: r for r in claims.lexical_claims(pd.concat([planned, whole]), draws, 50)
    }
    assert rows["retained_planned_renderer_a"]["numerator"] == 0
    assert rows["retained_planned_renderer_b"]["numerator"] == 1
    kept = rows["retained_planned_conversation_renderer_b"]
    assert (kept["numerator"], kept["denominator"]) == (1, 1)
    assert rows["retained_renderer_b"]["denominator"] == 4


def test_outcomes_that_do_not_apply_leave_the_denominator() -> None:
    own = HAND[HAND["condition"] == A].assign(condition="redacted", scope="conversation")
    own["replacement_status"] = "not_applicable"
    rows = {row["claim_id"]: row for row in claims.lexical_claims(own, draws, 50)}
    realised = rows["realised_conversation_redacted"]
    assert (realised["denominator"], realised["not_applicable"]) == (0, 4)
    assert realised["status"] == "not_applicable"
    assert rows["retained_conversation_redacted"]["denominator"] == 4


def test_only_intentions_of_both_renderers_are_paired() -> None:
    some = HAND[~((HAND["intention_id"] == "i4") & (HAND["condition"] == "renderer_a"))]
    rows = contrasts.lexical_contrasts(some, draws, 100)
    assert rows[0]["n_items"] == 3
    with pytest.raises(ValueError, match="1 repeated ids in a"):
        contrasts.lexical_contrasts(pd.concat([HAND, HAND.iloc[:1]]), draws, 100)


def test_other_scopes_take_no_part() -> None:
    whole = pd.concat([HAND, HAND.assign(scope="conversation")])
    assert contrasts.lexical_contrasts(whole, draws, 100) == contrasts.lexical_contrasts(
        HAND, draws, 100
    )


def test_an_empty_benchmark_is_not_applicable() -> None:
    rows = contrasts.lexical_contrasts(HAND.iloc[:0], draws, 100)
    assert [row["status"] for row in rows] == ["not_applicable"] * 2
    assert rows[0]["reason"] == "no items"


def scores(counts: dict[str, list[tuple[int, int]]], status: str = "ok") -> pd.DataFrame:
    return pd.DataFrame([
        {"recording_id": f"c{i}", "condition": condition, "reference": "source",
         "n_reference": words, "substitutions": errors, "deletions": 0, "insertions": 0,
         "status": status, "reason": None}
        for condition, own in counts.items() for i, (errors, words) in enumerate(own)
    ])  # fmt: skip


def test_word_errors_are_pooled_and_paired() -> None:
    table = scores({"original": [(1, 10), (0, 90)], "converted": [(3, 10), (9, 90)]})
    row = contrasts.word_error_contrasts(table, [("original", "converted")], "source", draws, 100)[
        0
    ]
    assert row["estimate"] == pytest.approx(12 / 100 - 1 / 100)
    assert row["equal_conversation"] == pytest.approx((0.2 + 0.1) / 2)
    found = {row["claim_id"]: row for row in claims.word_error_claims(table, draws, 100)}
    assert found["wer_converted_source"]["value"] == pytest.approx(0.12)


def test_recordings_without_a_score_are_unknown() -> None:
    failed = scores({"converted": [(0, 0)]}, "failed").assign(recording_id="c9")
    table = pd.concat([scores({"converted": [(1, 10)]}), failed])
    claim = claims.word_error_claims(table, draws, 100)[0]
    assert (claim["unknown"], claim["denominator"]) == (1, 10)


def test_linkage_contrast_is_matched(run: Run) -> None:
    trials = run.read("trials")
    rows = {row["endpoint"]: row for row in contrasts.linkage_contrasts(trials, draws, 60)}
    row = rows["eer edited_region (ge2e, attacker)"]
    own = trials[(trials["protocol"] == "final") & (trials["region_kind"] == "edited_region")
                 & (trials["backend"] == "ge2e")]  # fmt: skip
    rate = {
        name: equal_error_rate(side["score"], side["target"], "attacker")
        for name, side in own.groupby("condition")
    }
    assert row["estimate"] == pytest.approx(rate["renderer_b"] - rate["renderer_a"])
    assert row["n_items"] == 12
    some = trials[trials["condition"] != "renderer_b"]
    absent = contrasts.linkage_contrasts(some, draws, 60)[0]
    assert absent["reason"] == "no trials in one of the conditions"


def test_holm_keeps_the_place_of_a_test_that_did_not_run() -> None:
    rows = contrasts.lexical_contrasts(HAND, draws, 100)
    rows += contrasts.absent_contrasts(LATER)
    adjusted = {row["contrast_id"]: row for row in contrasts.adjust_families(rows)}
    retained = adjusted["retained: renderer_b - renderer_a"]
    assert retained["p_holm"] == pytest.approx(min(1.0, 2 * retained["p"]))
    facts = adjusted["fact preserved: converted - original"]
    assert facts["reason"] == "not run: 10_judge_facts"
    assert math.isnan(facts["p_holm"])
    control = [row for row in adjusted.values() if row["family"] == "original control"]
    assert len(control) == contrasts.FAMILIES["original control"]


def verdicts(rows: list[tuple[str, str, str, str, str | None]]) -> pd.DataFrame:
    """(fact, recording, condition, order, label); no label is an invalid verdict."""
    table = pd.DataFrame(rows, columns=["fact_id", "recording_id", "condition", "order", "label"])
    return table.assign(status=["ok" if label else "unknown" for label in table["label"]])


def test_a_label_counts_only_if_both_orders_agree() -> None:
    table = verdicts([
        ("f1", "c1", A, "source", "preserved"), ("f1", "c1", A, "target", "preserved"),
        ("f2", "c1", A, "source", "preserved"), ("f2", "c1", A, "target", "partial"),
        ("f3", "c1", A, "source", "preserved"), ("f3", "c1", A, "target", None),
    ])  # fmt: skip
    labels = contrasts.agreed_labels(table, "fact_id", ["label"]).set_index("fact_id")["label"]
    assert labels["f1"] == "preserved"
    assert labels[["f2", "f3"]].isna().all()


def test_fact_contrasts_use_the_facts_observed_in_both_by_hand() -> None:
    """Preserved a: 1 1 0, b: 1 0 1; f4 is unobserved in b and takes no part."""
    table = verdicts([
        ("f1", "c1", A, "one", "preserved"), ("f1", "c1", B, "one", "preserved"),
        ("f2", "c1", A, "one", "preserved"), ("f2", "c1", B, "one", "contradicted"),
        ("f3", "c2", A, "one", "missing"), ("f3", "c2", B, "one", "preserved"),
        ("f4", "c3", A, "one", "preserved"), ("f4", "c3", B, "one", None),
        ("f1", "c1", "original", "one", "preserved"), ("f3", "c2", "original", "one", "preserved"),
    ])  # fmt: skip
    rows = {row["contrast_id"]: row for row in contrasts.fact_contrasts(table, draws, 100)}
    kept = rows["fact preserved: renderer_b - renderer_a"]
    assert (kept["estimate"], kept["n_items"], kept["n_clusters"]) == (0.0, 3, 2)
    assert kept["equal_conversation"] == pytest.approx((-0.5 + 1) / 2)
    wrong = rows["fact contradicted: renderer_b - renderer_a"]
    assert wrong["estimate"] == pytest.approx(1 / 3)
    assert wrong["family"] == "retention and contradiction"
    assert 0 < wrong["p"] <= 1
    control = rows["fact preserved: renderer_a - original"]
    assert (control["estimate"], control["n_items"]) == (-0.5, 2)
    assert rows["fact preserved: converted - original"]["status"] == "not_applicable"
    families = [row["family"] for row in rows.values()]
    assert families.count("original control") == contrasts.FAMILIES["original control"]


def test_judged_edits_stand_beside_the_literal_search() -> None:
    table = HAND.assign(status="ok", order="one", attempts=1)
    rows = contrasts.edit_contrasts(table, draws, 100)
    assert [row["endpoint"] for row in rows] == ["realised (judge)", "retained (judge)"]
    assert rows[0]["estimate"] == pytest.approx(0.25)


def test_an_edit_never_rendered_counts_as_not_realised_and_an_invalid_verdict_not_at_all() -> None:
    """a: realised, never rendered; b: realised twice: +1/2 over two. Invalid: one item left."""
    edits = [("i1", A), ("i2", A), ("i1", B), ("i2", B)]
    table = pd.DataFrame(edits, columns=["intention_id", "condition"]).assign(
        recording_id=["c1", "c2"] * 2, order="one", replacement_status="realised",
        original_status="absent", status="ok", attempts=1,
    )  # fmt: skip
    lost = (table["intention_id"] == "i2") & (table["condition"] == A)
    columns = ["replacement_status", "original_status"]
    failed = table.assign(status=table["status"].mask(lost, "failed"))
    failed.loc[lost, columns] = None
    unrendered = failed.assign(attempts=failed["attempts"].mask(lost, 0))
    row = contrasts.edit_contrasts(unrendered, draws, 100)[0]
    assert (row["estimate"], row["n_items"]) == (0.5, 2)
    row = contrasts.edit_contrasts(failed, draws, 100)[0]
    assert (row["estimate"], row["n_items"]) == (0.0, 1)


def test_figures_take_their_points_from_claims() -> None:
    rows = pd.DataFrame({
        "claim_id": ["realised_renderer_a", "retained_renderer_a", "realised_renderer_b",
                     "eer_final_redacted_all_turns_y", "eer_final_redacted_all_turns_x",
                     "eer_final_original_converted_all_turns_x", "wer_redacted_gold",
                     "wer_original_gold", "wer_converted_gold"],
        "value": [0.7, 0.1, 0.8, 0.3, 0.4, 0.05, 0.2, 0.15, 0.18],
        "ci_low": 0.0, "ci_high": 1.0,
    })  # fmt: skip
    both = claims.realised_retained(rows)
    assert both["condition"].tolist() == ["renderer_a"]
    assert both[["realised", "retained"]].to_numpy().tolist() == [[0.7, 0.1]]
    points = claims.tradeoff(rows, "gold")
    assert points.to_numpy().tolist() == [["original", 0.15, 0.05], ["redacted", 0.2, 0.4]]


def test_all_rows_pass_their_schemas(run: Run) -> None:
    rows: list[dict[str, Any]] = contrasts.lexical_contrasts(
        run.read("lexical_matches"), draws, 50
    )
    rows += contrasts.word_error_contrasts(
        run.read("transcript_scores"), [("original", "converted")], "gold", draws, 50
    )
    rows += contrasts.linkage_contrasts(run.read("trials"), draws, 50)
    rows += contrasts.absent_contrasts(LATER)
    table = check_table("contrasts", pd.DataFrame(contrasts.adjust_families(rows)))
    found = claims.contrast_claims(table)
    assert len(found) == len(rows)
    found += claims.lexical_claims(run.read("lexical_matches"), draws, 50)
    found += claims.word_error_claims(run.read("transcript_scores"), draws, 50)
    found += claims.linkage_claims(run.read("linkage"), run.read("eligibility"))
    names = ("recordings", "profiles", "turns", "edits", "regions", "reconstructions")
    found += claims.population_claims(*map(run.read, names))
    table = check_table("claims", pd.DataFrame(found)).set_index("claim_id")
    assert table.loc["n_profiles", "value"] == 12
    assert table.loc["minutes", "value"] == pytest.approx(6 * 36 / 60)
    kept = run.read("timeline").query("source == 'retained_converted'")
    assert table.loc["retained_regions_renderer_a", "numerator"] == len(kept)
