"""Versions of each profile's speech: who is who, what is cut, and what becomes of failures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import StandIn
from fabricate import fabricate_run

from aegis import leakage_tables
from aegis.engines import EngineInfo
from aegis.errors import AudioError
from aegis.segments import ORIGINAL
from aegis.tables import SCHEMAS, Run, as_table, check_table
from aegis.voices import Rules, prepare, vectors_of
from aegis.work import ItemResult
from aegis.work import leakage as work

SETTINGS = {
    "systems": ["mirror"], "backends": ["bands"], "rates_hz": [16_000], "asr": ["ears"], "seed": 1,
}  # fmt: skip


class Mirror:
    """Plays a turn backwards; refuses turns under half a second."""

    info = EngineInfo("converter", "mirror", "1", "none")

    def convert(self, source, voice, context, seed):
        if source.size < 8_000:
            raise AudioError("mirror: too short")
        return source[::-1].copy()


class Bands:
    info = EngineInfo("encoder", "bands", "1", "none")
    dimension = 4

    def embed(self, windows):
        parts = [np.array_split(np.abs(w) + 1e-3, 4) for w in windows]
        return np.array([[p.mean() for p in row] for row in parts], dtype=np.float32)


class Ears:
    info = EngineInfo("transcriber", "ears", "1", "none")

    def transcribe(self, samples, language):
        segment = type("S", (), {"text": f" {samples.size} "})()
        return type("T", (), {"segments": (segment,)})()


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stand_in: StandIn) -> Run:
    stand_ins = {"converter mirror": Mirror, "encoder bands": Bands, "transcriber ears": Ears}
    for key, made in stand_ins.items():
        stand_in(*key.split(), made)
    monkeypatch.setattr("aegis.work.sounds.cohort_centre", lambda name: np.zeros(4))
    return fabricate_run(tmp_path / "run", n_recordings=3, audio=True)


def items_of(run: Run) -> list[work.Item]:
    names = ("turns", "recordings", "assignments", "voices", "timeline", "reconstructions")
    return work.speech_items(*(run.read(name) for name in names))


def results_of(items: list[work.Item], run: Run) -> list[ItemResult]:
    made = [(item["id"], work.make_versions(item, SETTINGS, run)) for item in items]
    return [ItemResult(name, "ok", None, value, 0.0, 0.0, cached=False) for name, value in made]


def test_items_hold_twenty_seconds_in_every_condition(run):
    items = items_of(run)
    assert len(items) == len(run.read("profiles"))
    for item in items:
        seconds = sum(end - start for _, start, end in item["turns"]) / 16_000
        assert seconds == pytest.approx(16.0, abs=0.1)  # four turns of four seconds
        assert set(item["conditions"]) == {"converted", "renderer_a", "renderer_b", "redacted"}
        infeasible = item["recording_id"] == "toy/c02"
        assert set(item["voices"]) == ({"1"} if infeasible else {"1", "2"})
    assert work._first_turns([["a", 0, 100_000], ["b", 100_000, 500_000]], 10.0) == [
        ["a", 0, 100_000], ["b", 100_000, 160_000],
    ]  # fmt: skip


def test_versions_become_tables_that_keep_their_schema(run):
    items = items_of(run)[:2]
    segments, heard, failed = work.segment_tables(items, results_of(items, run))
    check_table("leak_segments", segments)
    assert not len(failed)
    assert not len(heard)
    systems = {ORIGINAL, "mirror", *(f"study: {c}" for c in items[0]["conditions"])}
    assert set(segments["system"]) == systems
    own = segments[(segments["profile_id"] == items[0]["id"]) & (segments["system"] == "mirror")]
    assert own["seconds"].tolist()[:3] == [5.0, 5.0, 5.0]


def test_a_turn_that_fails_is_listed_and_the_others_go_on(run):
    (item, *_) = items_of(run)
    item["turns"][0][2] = item["turns"][0][1] + 4_000
    value = work.make_versions(item, SETTINGS, run)
    assert value["failed"] == [
        {"system": "mirror", "pseudo_profile": number, "reason": "mirror: too short"}
        for number in (1, 2)
    ]
    mirrored = next(v for v in value["vectors"] if v["system"] == "mirror")
    assert sum(mirrored["seconds"]) == pytest.approx(12.0, abs=1.1)


def parallel(run: Run) -> pd.DataFrame:
    """A script in which the first two recordings are read by one speaker each, the same words."""
    gold = run.read("gold_turns")
    names = sorted(set(gold["recording_id"]))
    first = gold[gold["speaker"] == gold["speaker"].iloc[0]]
    shared = first[first["recording_id"].isin(names[:2])].copy()
    shared["text"] = [f"sentence {i}" for i in shared.groupby("recording_id").cumcount()]
    return pd.concat([shared, gold[gold["recording_id"] == names[2]]])


def test_passages_are_readings_of_one_text_by_several_people(run):
    items = items_of(run)
    passages = work.passage_items(items, parallel(run), run.read("recordings"))
    assert len(passages) == 2
    assert [t[0] for t in passages[0]["turns"]] == [t[0] for t in passages[1]["turns"]]
    results = results_of(passages, run)
    segments, heard, _ = work.segment_tables(passages, results)
    assert set(segments["kind"]) == {work.PASSAGE}
    assert segments["text_id"].notna().all()
    texts = work.heard_texts(heard, passages, parallel(run))
    assert texts["reference"].str.startswith("sentence").all()
    assert set(heard["system"]) == {ORIGINAL, "mirror"}
    people = work.describe_people(run.read("turns"), None, pd.DataFrame(columns=["voice"]))
    conditions = work.read_conditions(segments, people, (5,), (16_000,))
    made = conditions["16 kHz, parallel text"]
    assert made.known("text").all()
    assert len(made.of(ORIGINAL).table) == len(passages) * len(passages[0]["turns"])


def test_people_are_scripted_voices_where_there_is_a_script(run):
    turns, gold = run.read("turns"), run.read("gold_turns")
    traits = pd.DataFrame({
        "voice": sorted(set(gold["voice"]))[:1], "sex": ["female"], "age": [None],
        "accent": ["Britain"],
    })  # fmt: skip
    people = check_table("leak_people", work.describe_people(turns, gold, traits))
    assert set(people["person"]) <= set(gold["voice"])
    known = people[people["person"] == traits["voice"][0]]
    assert set(known["sex"]) == {"female"}
    assert known["age"].isna().all()
    alone = work.describe_people(turns, None, traits)
    assert alone["person"].tolist() == alone["profile_id"].tolist()


def test_conditions_say_what_they_lack(run):
    items = items_of(run)
    segments, _, _ = work.segment_tables(items, results_of(items, run))
    people = work.describe_people(run.read("turns"), None, pd.DataFrame(columns=["voice"]))
    conditions = work.read_conditions(segments, people, (5, 60), (16_000,))
    assert list(conditions) == ["16 kHz, 5 s"]
    counted = work.count_conditions(conditions, (5, 60), (16_000,))
    check_table("leak_conditions", counted)
    assert dict(zip(counted["condition"], counted["status"], strict=True)) == {
        "16 kHz, 5 s": "ok", "16 kHz, 60 s": "not_applicable",
        "16 kHz, parallel text": "not_applicable",
    }  # fmt: skip


def test_pool_and_anonymity(run):
    voices, vectors = run.read("voices"), run.read("voice_embeddings")
    pool = work.pool_segments(voices, vectors)
    assert set(pool.table["sex"]) <= set(voices["gender_presentation"])
    backend = str(vectors["backend"].iloc[0])
    rules = Rules(min_source_distance=0.0, min_target_distance=0.0)
    candidates = prepare(
        run.read("profiles"), voices,
        vectors_of(run.read("profile_embeddings"), "profile_id", backend),
        vectors_of(vectors, "voice_id", backend), rules,
    )  # fmt: skip
    table = work.summarise_anonymity(candidates, rules, run.read("assignments"), {})
    checked = check_table("leak_anonymity", as_table("leak_anonymity", table))
    everybody = checked[checked["language"] == "all"].iloc[0]
    assert everybody["n_profiles"] == len(run.read("profiles"))
    assert everybody["n_found_out"] <= everybody["n_assigned"]
    # The speakers of the French conversation have no second pseudo-voice.
    counts = checked[checked["language"] == "all"].set_index("pseudo_profile")
    assert counts["n_profiles"].to_dict() == {1: 6, 2: 6}
    assert counts["n_assigned"].to_dict() == {1: 6, 2: 4}


def test_a_second_pseudo_voice_that_nobody_has_is_missing_and_no_zero(run):
    """Trials between pseudo-profiles, and all tables of appendix U, where one has no second."""
    items = items_of(run)
    segments, _, failed = work.segment_tables(items, results_of(items, run))
    assert not len(failed)
    own = segments[segments["system"] == "mirror"]
    voices = own.groupby("pseudo_profile")["profile_id"].agg(set)
    assert voices[1] - voices[2] == {"toy/c02/S1", "toy/c02/S2"} and voices[2] < voices[1]
    turns = run.read("turns")
    people = work.describe_people(turns, None, pd.DataFrame(columns=["voice"]))
    (made,) = work.read_conditions(segments, people, (5,), (16_000,)).values()
    settings = leakage_tables.Settings(1, 50, 50)
    tables = leakage_tables.measure_condition(
        made, "16 kHz, 5 s", settings, wanted=("rates", "soft", "search", "structure", "attacks")
    )
    for name in ("rates", "soft", "search", "structure", "attacks"):
        check_table(f"leak_{name}", as_table(f"leak_{name}", tables[name]))
    rates = tables["rates"]
    rows = rates[(rates["system"] == "mirror") & (rates["test_set"] == "all")]
    n = rows.set_index(["trial_type", "pseudo_profile"])[["n_target", "n_nontarget"]].T.to_dict(
        "list"
    )
    # Three pieces of 5 s a speaker: six speakers, and four with a second pseudo-voice.
    assert n["oaoa", 1] == [6 * 6, 18 * 15] and n["oaoa", 2] == [4 * 6, 12 * 15]
    assert n["aaaa", 1] == [6 * 3, 18 * 15 // 2] and n["aaaa", 2] == [4 * 3, 12 * 9 // 2]
    assert n["releases", 1] == n["releases", 2] == [4 * 3, 12 * 15]
    # The gap is taken on the people of both sides: on four of the six with the second voice.
    own = rows.set_index(["trial_type", "pseudo_profile"])
    for number in (1, 2):
        several = set(made.of("mirror", number).table["speaker"])
        fewer = made.where(made.table["speaker"].isin(several))
        reference = leakage_tables.measure_condition(fewer, "few", settings, wanted=("rates",))
        plain = reference["rates"].query("trial_type == 'oo' and test_set == 'all'")["eer"].iloc[0]
        row = own.loc[("oaoa", number)]
        assert row["gap_to_original"] == pytest.approx(row["eer"] - plain)
        assert row["gap_low"] <= row["gap_to_original"] <= row["gap_high"]
    assert own.loc["aaaa", "gap_to_original"].isna().all()
    summary = leakage_tables.summarise_systems(tables)
    direct = rows.loc[rows["trial_type"] == "oaoa", "eer"]
    assert summary.loc["mirror", "eer_oaoa"] == pytest.approx(direct.mean())


def test_rules_come_from_the_receipt_of_the_assignment():
    receipt = {"parameters": {"k": 40, "min_source_distance": 0.6, "run_name": "x"}}
    assert work.assignment_rules(receipt) == {"k": 40, "min_source_distance": 0.6}
    assert work.assignment_rules(None) == {}


def test_schemas_of_public_tables_hold_no_vectors():
    for name in ("leak_rates", "leak_users", "leak_anonymity", "leak_conditions"):
        assert SCHEMAS[name].visibility == "public"
        assert "list" not in SCHEMAS[name].columns.values()
    assert SCHEMAS["leak_segments"].visibility == SCHEMAS["leak_people"].visibility == "secret"
