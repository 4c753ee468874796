"""ASQ-PHI scoring against counts made by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from aegis import asq_phi
from aegis.asq_phi import Span
from aegis.readers import PhiQuery, read_asq_phi
from aegis.tables import PROJECT, check_table
from aegis.work.asq import PORTION, query_items, read_spans

REAL = PROJECT.parent / "shared" / "data" / "asq_phi" / "data" / "synthetic_clinical_queries.txt"


def query(text: str, *phi: tuple[str, str]) -> PhiQuery:
    return PhiQuery(1, text, phi)


@pytest.mark.parametrize(
    ("text", "phi", "spans", "missing"),
    [
        ("Anna saw Ann.", [("NAME", "Ann")], [(9, 12)], 0),
        ("id 12 of 4012", [("DATE", "12"), ("MRN", "4012")], [(3, 5), (9, 13)], 0),
        ("mrn 4012 only", [("DATE", "12"), ("MRN", "4012")], [(4, 8)], 1),
        ("O’Neil came", [("NAME", "O'Neil")], [(0, 6)], 0),
        ("May and May", [("NAME", "May"), ("DATE", "May")], [(0, 3), (8, 11)], 0),
        ("nobody", [("NAME", "Ann")], [], 1),
    ],
)
def test_values_are_located_once_each(
    text: str, phi: list[tuple[str, str]], spans: list[tuple[int, int]], missing: int
) -> None:
    found, lost = asq_phi.locate(query(text, *phi))
    assert [(span.start, span.end) for span in found] == spans
    assert lost == missing


TEXT = "x" * 60
GOLD = [Span(0, 4, "NAME"), Span(10, 16, "DATE"), Span(20, 25, "GEO"), Span(30, 33, "MRN")]


@pytest.mark.parametrize(
    ("predicted", "kind"),
    [
        ([], ("missed", "NAME", "none")),
        ([Span(0, 4, "GEO")], ("wrong type", "NAME", "GEO")),
        ([Span(0, 7, "NAME")], ("wrong bounds", "NAME", "NAME")),
        ([Span(1, 3, "NAME")], ("partly covered", "NAME", "NAME")),
        ([Span(0, 2, "NAME"), Span(2, 4, "NAME")], ("wrong bounds", "NAME", "NAME")),
    ],
)
def test_each_error_has_one_kind(predicted: list[Span], kind: tuple[str, str, str]) -> None:
    assert asq_phi.score_query(GOLD[:1], predicted, TEXT).residue == (kind,)


def test_what_meets_no_identifier_is_spurious_or_a_false_alarm() -> None:
    alone = [Span(40, 44, "DATE")]
    assert asq_phi.score_query(GOLD[:1], [*GOLD[:1], *alone], TEXT).residue == (
        ("spurious", "none", "DATE"),
    )
    assert asq_phi.score_query([], alone, TEXT).residue == (("false alarm", "none", "DATE"),)


def test_counts_and_characters_by_hand() -> None:
    """One exact, one too long, one half covered, one missed, one beside: 1 tp, 3 fp, 3 fn."""
    predicted = [Span(0, 4, "NAME"), Span(9, 16, "DATE"), Span(20, 23, "GEO"), Span(50, 51, "IP")]
    scored = asq_phi.score_query(GOLD, predicted, TEXT)
    total = {k: sum(own[k] for own in scored.counts.values()) for k in ("tp", "fp", "fn")}
    assert total == {"tp": 1, "fp": 3, "fn": 3}
    assert (scored.gold_chars, scored.covered_chars) == (4 + 6 + 5 + 3, 4 + 6 + 3)
    assert sum(own["covered"] for own in scored.counts.values()) == 2


QUERIES = [
    query("Anna in Rome", ("NAME", "Anna"), ("GEO", "Rome")),
    query("Bert in Oslo", ("NAME", "Bert"), ("GEO", "Oslo")),
    query("no one here"),
    query("nothing at all"),
    query("Carl", ("NAME", "Carl")),
]
FOUND = [
    [Span(0, 4, "NAME"), Span(8, 12, "GEO")],
    [Span(0, 4, "NAME")],
    [Span(0, 2, "NAME")],
    [],
    None,
]


@pytest.mark.parametrize(
    ("text", "covered", "left"),
    [
        ("Dr. Weber", (4, 9), ""),
        ("Boston, MA", (0, 6), ""),
        ("Mercy Clinic in Ohio", (0, 12), ""),
        ("Anna Weber", (0, 4), "Weber"),
        ("Dr. Anna Weber", (4, 8), "Weber"),
        ("12/03/2023", (0, 5), "/2023"),
    ],
)
def test_titles_states_and_joints_are_outside_the_contract(
    text: str, covered: tuple[int, int], left: str
) -> None:
    span = Span(0, len(text), "NAME")
    assert asq_phi.left_over(span, set(range(*covered)), text) == left
    scored = asq_phi.score_query([span], [Span(*covered, "NAME")], text)
    assert scored.n_covered_contract == (not left)
    assert scored.residue[0][0] == ("partly covered" if left else asq_phi.KINDS[4])


def test_tables_and_scores_by_hand() -> None:
    table = check_table("asq_queries", asq_phi.query_table(QUERIES, FOUND, ["GEO"]))
    assert table["split"].tolist() == ["tuning", "untouched", "tuning", "untouched", "tuning"]
    assert table["status"].tolist() == ["ok"] * 4 + ["failed"]
    # Full: tp 3, fp 1, fn 2. Without GEO: tp 2, fp 1, fn 1. A refusal counts as missed.
    scores = check_table("asq_scores", asq_phi.score_table(table, 200, 1))
    value = scores.set_index(["split", "measure"])["value"]
    assert value["all", "f1_full"] == pytest.approx(6 / 9)
    assert value["all", "f1_shared"] == pytest.approx(4 / 6)
    assert value["all", "fully_covered"] == pytest.approx(3 / 5)
    assert value["all", "leaked_characters"] == pytest.approx(8 / 20)
    assert value["all", "hard_negatives"] == pytest.approx(1 / 2)
    assert value["untouched", "f1_full"] == pytest.approx(2 / 3)
    assert value["untouched", "hard_negatives"] == 0.0
    interval = scores.set_index(["split", "measure"]).loc[("all", "f1_full")]
    assert interval["ci_low"] <= 6 / 9 <= interval["ci_high"]


def test_types_and_residue_by_hand() -> None:
    types = check_table("asq_types", asq_phi.type_table(QUERIES, FOUND))
    rows = types.set_index(["split", "type"])
    assert rows.loc[("tuning", "NAME"), ["tp", "fp", "fn"]].tolist() == [1, 1, 1]
    assert rows.loc[("untouched", "GEO"), "recall"] == 0.0
    assert pd.isna(rows.loc[("untouched", "GEO"), "precision"])
    residue = check_table("asq_residue", asq_phi.residue_table(QUERIES, FOUND))
    assert set(residue["kind"]) <= set(asq_phi.KINDS)
    assert residue.groupby("kind")["n"].sum().to_dict() == {"missed": 2, "false alarm": 1}


def test_f1_intervals_cover_the_truth_about_as_often_as_they_say() -> None:
    rng = np.random.default_rng(5)
    covered = 0
    for _ in range(60):
        hits = rng.random(300) < 0.8
        found = [[Span(0, 4, "NAME")] if hit else [] for hit in hits]
        queries = [query("Anna", ("NAME", "Anna"))] * 300
        scores = asq_phi.score_table(asq_phi.query_table(queries, found, []), 300, 1)
        row = scores.set_index(["split", "measure"]).loc[("all", "f1_full")]
        covered += row["ci_low"] <= 2 * 0.8 / (1 + 0.8) <= row["ci_high"]
    assert covered >= 50


def test_a_failed_portion_counts_as_missed() -> None:
    class Result:
        value = None

    items = query_items([query("x")] * (PORTION + 3))
    assert [len(item["texts"]) for item in items] == [PORTION, 3]
    assert read_spans(items, [Result(), Result()]) == [None] * (PORTION + 3)


def test_categories_get_the_benchmarks_names() -> None:
    assert asq_phi.benchmark_type("LOCATION", {"GEO": "LOCATION"}) == "GEO"
    assert asq_phi.benchmark_type("VEHICLE", {"GEO": "LOCATION"}) == "VEHICLE"


@pytest.mark.skipif(not REAL.exists(), reason="the benchmark is not here")
def test_every_value_of_the_benchmark_is_located() -> None:
    """Apostrophes met halfway, every published value stands in its query, without overlap."""
    queries = read_asq_phi(REAL)
    located = [asq_phi.locate(query) for query in queries]
    assert sum(missing for _, missing in located) == 0
    assert sum(len(spans) for spans, _ in located) == 2973
    for spans, _ in located:
        assert all(a.end <= b.start for a, b in itertools.pairwise(spans))
