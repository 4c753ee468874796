"""Statements, extraction, perturbation: slots and labels worked out by hand."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from aegis.clauses import read_clauses
from aegis.clinical_contrasts import contradiction_table, fact_bounds, partition
from aegis.clinical_truth import (
    agreement_table,
    extraction_table,
    perturbed_cases,
    score_extraction,
)
from aegis.engines.judging import ORDERS, RulesJudge
from aegis.facts import extract_inventory, guess_roles
from aegis.inventory import SourceTurn, inventory_sha256
from aegis.manifests import read_scripts
from aegis.note_contrasts import note_contrast, source_disagreement
from aegis.perturb import KINDS, perturb, perturb_fact, template_cases
from aegis.second_judge import consensus, sample_facts
from aegis.statements import answer_polarity, read_sentences, read_tokens


def slots(text: str, language: str = "en") -> set[tuple[str, str, bool]]:
    return {(t.group, t.value, t.negated) for t in read_tokens(text, language)}


def test_quantities_are_read_by_value() -> None:
    assert ("dose", "250 mg", False) in slots("a quarter, two hundred and fifty milligrams")
    assert ("dose", "0.25 mg", False) in slots("250 mcg") and ("dose", "0.25 mg", False) in slots(
        "0.25 mg"
    )
    assert ("frequency", "2/d", False) in slots("twice a day")
    assert ("frequency", "2/d", False) in slots("two times per day") & slots(
        "deux fois par jour", "fr"
    )
    assert ("frequency", "each 4 h", False) in slots("every four hours")
    assert ("duration", "3 w", False) in slots("for three weeks") & slots(
        "depuis trois semaines", "fr"
    )
    assert ("reading", "120/80", False) in slots("pressure one twenty over eighty")


@pytest.mark.parametrize(
    ("text", "language", "denied", "affirmed"),
    [
        ("no fever, but a cough", "en", {"fev"}, {"cough"}),
        ("I do not have any chest pain", "en", {"chest", "pain"}, set()),
        ("the scan rules out a fracture", "en", {"fractur"}, set()),
        ("the wheeze is not back", "en", {"wheez"}, set()),
        ("no pain and some swelling", "en", {"pain"}, {"swel"}),
        ("I never fainted because I sat down", "en", {"faint"}, set()),
        ("je n'ai pas de fièvre mais je tousse", "fr", {"fievr"}, {"tous"}),
        ("il ne saigne plus", "fr", {"saign"}, set()),
        ("sans doute une fracture", "fr", set(), {"fractur"}),
    ],
)
def test_negation_reaches_as_far_as_it_should(
    text: str, language: str, denied: set[str], affirmed: set[str]
) -> None:
    tokens = read_tokens(text, language)
    found = {
        t.value[: len(d)] for t in tokens if t.negated for d in denied if t.value.startswith(d)
    }
    kept = {a for t in tokens if not t.negated for a in affirmed if t.value.startswith(a)}
    assert found == denied and kept == affirmed


@pytest.mark.parametrize(
    ("text", "language", "said"),
    [
        ("No.", "en", "no"), ("No, I haven't.", "en", "no"), ("Yeah, about ten", "en", "yes"),
        ("None.", "en", "no"), ("It was.", "en", "yes"), ("I could not", "en", "no"),
        ("No chest pain", "en", ""), ("Non.", "fr", "no"), ("Oui, depuis hier", "fr", "yes"),
        ("Penicillin.", "en", ""),
    ],
)  # fmt: skip
def test_answers(text: str, language: str, said: str) -> None:
    assert answer_polarity(text, language) == said


def test_restarts_and_fillers_say_nothing_new() -> None:
    assert read_tokens("Um, I've, I've had a, a cough, you know", "en") == read_tokens(
        "I've had a cough", "en"
    )


def test_short_way_to_canonical_words_is_the_long_one() -> None:
    from aegis.canonical import canonical
    from aegis.spoken_words import canonical_words

    for text in ("I don't think so", "what's your name", "aren't you", "O'Brien's knee hurts"):
        assert canonical_words(text, "en") == canonical(text, "en").split()


def test_clauses_keep_conditions_and_split_statements() -> None:
    text = "No blood, but I have a fever. If it hurts, call me."
    text += " Aspirin, ten milligrams, and insulin, two units."
    found = [clause.text(text) for clause in read_clauses(text, "en")]
    assert found == [
        "No blood", "I have a fever", "If it hurts, call me", "Aspirin, ten milligrams",
        "insulin, two units",
    ]  # fmt: skip


def turns(*said: tuple[str, str]) -> list[SourceTurn]:
    return [SourceTurn(f"t{i}", speaker, text) for i, (speaker, text) in enumerate(said)]


TALK = turns(
    ("S1", "Do you have any allergies?"),
    ("S2", "Yes, amoxicillin."),
    ("S1", "Any chest pain?"),
    ("S2", "No. My mother had a stroke."),
    ("S1", "Start ramipril, five milligrams every morning, for two weeks."),
    ("S2", "Thank you, goodbye."),
)


def test_extraction_reads_questions_with_answers() -> None:
    found = extract_inventory(TALK, "en").facts
    by_evidence = {fact.evidence: fact for fact in found}
    assert set(by_evidence) == {
        "Yes, amoxicillin", "No", "My mother had a stroke",
        "Start ramipril, five milligrams every morning, for two weeks",
    }  # fmt: skip
    assert by_evidence["No"].polarity == "negated" and by_evidence["No"].question == 2
    assert by_evidence["My mother had a stroke"].actor == "family"
    start = by_evidence["Start ramipril, five milligrams every morning, for two weeks"]
    assert (start.temporality, start.actor, start.importance) == (
        "future",
        "clinician",
        "critical",
    )
    assert start.modifiers["dose"] == "5 mg" and start.modifiers["duration"] == "2 w"


def test_actions_and_final_states() -> None:
    found = extract_inventory(TALK, "en")
    assert [(a.actor, a.state, a.plan) for a in found.actions] == [("patient", "planned", True)]
    final = [r for r in found.relations if r.relation == "final_state"]
    assert [r.first for r in final] == ["ramipril"]


def test_inventory_hash_covers_its_facts() -> None:
    one, other = extract_inventory(TALK, "en"), extract_inventory(TALK[:-2], "en")
    assert inventory_sha256(one) == inventory_sha256(extract_inventory(TALK, "en"))
    assert inventory_sha256(one) != inventory_sha256(other)


def test_roles_by_questions() -> None:
    assert guess_roles(TALK, "en") == {"S1": "clinician", "S2": "patient"}
    assert guess_roles(turns(("S1", "I am fine.")), "en") == {"S1": "patient"}


def test_evidence_is_always_literal() -> None:
    for script in read_scripts():
        said = [SourceTurn(str(t.turn_index), t.speaker, t.text) for t in script.turns]
        for fact in extract_inventory(said, script.language).facts:
            assert fact.evidence in said[fact.turn_index].text


def test_scripted_facts_are_found() -> None:
    """The aim of the demo: both at least 0.75 in both languages."""
    counts: dict[str, list[int]] = {}
    for script in read_scripts():
        said = [SourceTurn(str(t.turn_index), t.speaker, t.text) for t in script.turns]
        found = [
            (f.turn_index, f.evidence, f.polarity)
            for f in extract_inventory(said, script.language).facts
        ]
        gold = [(f.turn_index, f.evidence, f.polarity) for f in script.facts]
        if gold:
            entry = counts.setdefault(script.language, [0, 0, 0])
            counts[script.language] = [
                x + y for x, y in zip(entry, score_extraction(found, gold), strict=True)
            ]
    for hit, n_found, n_gold in counts.values():
        assert hit / n_found >= 0.75 and hit / n_gold >= 0.75


def test_extraction_scores_by_hand() -> None:
    found = [(0, "no fever", "negated"), (1, "a cough", "affirmed"), (2, "pain", "affirmed")]
    gold = [
        (0, "no fever at all", "negated"),
        (1, "a dry cough", "negated"),
        (3, "pain", "affirmed"),
    ]
    assert score_extraction(found, gold) == (1, 3, 3)


# --- perturbation ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "evidence", "pattern"),
    [
        ("dose", "ramipril, ten milligrams a day", r"ramipril, (?!ten).* milligrams a day"),
        ("duration", "a cough for two weeks", r"a cough for (?!two).* weeks"),
        ("laterality", "my left hip", "my right hip"),
        ("negation", "I have a cough", "I do not have a cough"),
        ("frequency", "once a day", "three times a day"),
        ("actor", "My mother had asthma", "I had asthma"),
        ("chronology", "before the meal", "after the meal"),
        ("digits", "ten milligrams", "10 milligrams"),
        ("format", "Aspirin, ten milligrams", "aspirin ten milligrams"),
    ],
)
def test_changes(kind: str, evidence: str, pattern: str) -> None:
    changed = perturb(evidence, kind, "en", np.random.default_rng(1))
    assert changed is not None and re.fullmatch(pattern, changed)


def test_a_change_that_does_not_apply_is_none() -> None:
    rng = np.random.default_rng(1)
    assert perturb("I feel well", "dose", "en", rng) is None
    assert perturb_fact(["I feel well."], 0, "I feel well", "laterality", "en", rng) is None


def test_omission_leaves_the_rest_of_the_turn() -> None:
    done = perturb_fact(
        ["A cough. And fever."], 0, "A cough", "omission", "en", np.random.default_rng(1)
    )
    assert done is not None and done.texts == ("And fever.",) and done.expected == "missing"


def test_templates_cover_languages_and_both_outcomes() -> None:
    cases = template_cases(np.random.default_rng(7))
    assert len(cases) == 40 and {c.language for c in cases} == {"en", "fr"}
    assert {c.harmful for c in cases} == {True, False} and {c.kind for c in cases} <= set(KINDS)


def frames() -> tuple[pd.DataFrame, pd.DataFrame]:
    from aegis.manifests import gold_tables

    made = [
        gold_tables(s, [(float(i), i + 0.9) for i in range(len(s.turns))])
        for s in read_scripts()
        if s.facts
    ]
    return tuple(pd.concat([m[name] for m in made]) for name in ("gold_turns", "gold_facts"))  # type: ignore[return-value]


def test_verdicts_agree_with_known_changes() -> None:
    gold_turns, gold_facts = frames()
    cases = perturbed_cases(gold_turns, gold_facts, 20261005)
    table = agreement_table(
        cases, RulesJudge().judge([c.case for c in cases], ORDERS[0]), ["language"]
    )
    shares = table["numerator"] / table["denominator"]
    assert len(cases) > 700 and (shares >= 0.85).all()


def test_extraction_table_places_turns_by_time() -> None:
    gold_turns, gold_facts = frames()
    heard = gold_turns.assign(turn_id=[f"t{i}" for i in range(len(gold_turns))])
    ids = heard.set_index(["recording_id", "turn_index"])["turn_id"]
    facts = gold_facts.assign(
        turn_id=[
            ids[r, t]
            for r, t in zip(gold_facts["recording_id"], gold_facts["turn_index"], strict=True)
        ]
    )
    table = extraction_table(facts, heard, gold_facts, gold_turns)
    assert (table["numerator"] == table["denominator"]).all()


# --- outcome tables --------------------------------------------------------------------


def verdicts() -> pd.DataFrame:
    labels = {
        "renderer_a": ["preserved", "contradicted", "uncertain", None, "contradicted"],
        "renderer_b": ["contradicted", "contradicted", "preserved", "missing", "preserved"],
    }
    rows = [
        {"fact_id": f"f{i}", "condition": c, "order": "source_first", "label": label,
         "recording_id": "r/1", "importance": "major",
         "source_included": i != 2 or c == "renderer_a"}
        for c, own in labels.items() for i, label in enumerate(own)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_contradictions_pair_by_pair() -> None:
    counts = contradiction_table(verdicts()).set_index("contradicted in")["facts"]
    # f0: b only; f1: both; f2: neither; f3: unobserved in a; f4: a only
    assert counts.to_dict() == {
        "renderer_b only": 1, "renderer_a only": 1, "both": 1, "neither": 1,
        "unobserved in one of them": 1,
    }  # fmt: skip


def test_bounds_take_unobserved_and_uncertain_to_both_ends() -> None:
    # a: 1 preserved and 2 unresolved of 5; b: 2 preserved and none unresolved
    found = fact_bounds(verdicts(), ("renderer_a", "renderer_b"), "preserved")
    assert (found.low, found.high) == pytest.approx((2 / 5 - 3 / 5, 2 / 5 - 1 / 5))


def test_partition_of_no_verdicts_keeps_its_columns() -> None:
    table = partition(verdicts().iloc[:0])
    assert len(table) == 0
    assert {"condition", "scheduled", "preserved", "unobserved"} <= set(table.columns)


def test_partition_adds_up() -> None:
    table = partition(verdicts())
    rest = table[["preserved", "partial", "missing", "contradicted", "uncertain", "unobserved"]]
    assert (rest.sum(axis=1) == table["scheduled"]).all()


def test_notes_compare_matched_facts_only() -> None:
    rows = note_contrast(verdicts(), lambda: np.random.default_rng(1), 10)
    # matched: f0 f1 f2 f4; preserved a: f0, b: f2 f4
    assert rows[0]["facts"] == 4 and rows[0]["estimate"] == pytest.approx(1 / 4)
    assert rows[2]["facts"] == 3 and source_disagreement(verdicts()) == 1


def test_consensus_needs_all_orders() -> None:
    two = pd.concat([verdicts(), verdicts().assign(order="target_first")])
    two.loc[(two["fact_id"] == "f0") & (two["order"] == "target_first"), "label"] = "missing"
    agreed = consensus(two).set_index(["fact_id", "condition"])["label"]
    assert pd.isna(agreed["f0", "renderer_a"]) and agreed["f1", "renderer_a"] == "contradicted"


def test_sample_takes_equal_strata() -> None:
    facts = pd.DataFrame(
        {
            "fact_id": [f"f{i:03d}" for i in range(100)],
            "importance": ["critical"] * 10 + ["major"] * 40 + ["minor"] * 50,
        }
    )
    counts = sample_facts(facts, 50, 1)["importance"].value_counts().to_dict()
    assert counts == {"critical": 10, "major": 20, "minor": 20}


def test_sentences_cover_the_text() -> None:
    text = "Is it 0.5 mg? Yes. It hurts… a lot"
    assert [text[s.start : s.end] for s in read_sentences(text, "en")] == [
        "Is it 0.5 mg?",
        "Yes.",
        "It hurts…",
        "a lot",
    ]
