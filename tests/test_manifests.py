"""Scripts, gold tables, cards, checksum lists, the contract, fates of records."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from aegis import manifests, scripts
from aegis.errors import ManifestError

SMALL = """
recording_id: toy/one
language: en
title: A toy
speakers:
  S1: {role: nurse, voice: "flite:slt", gender: female}
  S2: {role: patient, voice: "flite:rms", gender: male}
turns:
  - S1: "Hello {NAME:p|Ann}. Any pain?"
    pause_s: 0.5
  - S2: "No."
    facts:
      - fact: no pain
        evidence: "No."
        importance: major
        polarity: negated
        answers_previous: true
  - S1: "Take {DEVICE:d/1|one two}, two tablets."
    overlap_s: 0.3
    facts:
      - fact: take two tablets
        evidence: two tablets
        importance: critical
        modifiers: {dose: two}
        action: a1
actions:
  - {id: a1, actor: patient, action: take, state: planned, evidence: two tablets, plan: true}
chronology:
  - {relation: final_state, first: tablets, second: two, evidence: two tablets}
rendering: {noise_snr_db: 12}
"""


def write(folder: Path, text: str, name: str = "one.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def small(tmp_path: Path) -> scripts.Script:
    return manifests.read_script(write(tmp_path, SMALL))


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("noise_snr_db: 12", "flac"),
        ("sample_rate_hz: 8000", "mulaw"),
        ("layout: speaker_per_channel", "wav"),
        ("sample_rate_hz: 8000, format: mp3", "mp3"),
    ],
)
def test_a_script_says_the_format_of_its_file(tmp_path: Path, said: str, expected: str) -> None:
    script = manifests.read_script(write(tmp_path, SMALL.replace("noise_snr_db: 12", said)))
    assert script.rendering.format == expected


def test_markup_becomes_text_and_spans() -> None:
    text, mentions = scripts.parse_markup("d'{NAME:a|Amélie}, {PHONE:n/2|oh two}.")
    assert text == "d'Amélie, oh two."
    assert [(m.char_start, m.char_end, m.category, m.entity, m.part) for m in mentions] == [
        (2, 8, "NAME", "a", None),
        (10, 16, "PHONE", "n", 2),
    ]


@pytest.mark.parametrize(
    ("marked", "rule"),
    [
        ("{NOM:a|Ann}", "unknown category 'NOM'"),
        ("{NAME:a|Ann}ette", "lies inside a longer word"),
        ("x{NAME:a|Ann}", "lies inside a longer word"),
        ("{NAME:a| Ann}", "begins or ends with a blank"),
        ("{NAME:a}", "stray brace or bar"),
        ("a | b", "stray brace or bar"),
    ],
)
def test_bad_markup_names_the_rule(marked: str, rule: str) -> None:
    with pytest.raises(ManifestError, match=re.escape(rule)):
        scripts.parse_markup(marked)


def test_small_script_is_read_in_full(small: scripts.Script) -> None:
    assert [turn.text for turn in small.turns] == [
        "Hello Ann. Any pain?",
        "No.",
        "Take one two, two tablets.",
    ]
    assert [turn.role for turn in small.turns] == ["nurse", "patient", "nurse"]
    assert small.turns[0].pause_s == 0.5
    assert (small.turns[2].pause_s, small.turns[2].overlap_s) == (0.0, 0.3)
    assert small.turns[2].mentions[0].part == 1
    assert [fact.question_turn for fact in small.facts] == [0, None]
    assert small.actions[0].turn_index == small.chronology[0].turn_index == 2
    assert small.rendering == scripts.Rendering(noise_snr_db=12)
    assert small.n_words == 4 + 1 + 5


def test_pauses_are_drawn_from_the_content(small: scripts.Script) -> None:
    low, high = scripts.PAUSE_RANGE_S
    assert low <= small.turns[1].pause_s <= high
    assert small.turns[1].pause_s != scripts._pause_s("toy/two", 1)


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ('S1: "Hello', 'S2: "Hello', "speakers by first turn are"),
        ('S1: "Hello', 'S3: "Hello', "turn 0: needs exactly one speaker of S1, S2"),
        ("pause_s: 0.5", "pause_s: 9", "turn 0: pause_s 9.0"),
        ("pause_s: 0.5", "overlap_s: 0.5", "turn 0: overlap_s excludes"),
        ("pause_s: 0.5", "pausing: 0.5", "turn 0: turn: unknown keys ['pausing']"),
        ('evidence: "No."', 'evidence: "Nope"', "turn 1: evidence 'Nope' is not in"),
        ("importance: major", "importance: high", "turn 1: importance 'high'"),
        ("modifiers: {dose: two}", "modifiers: {dose: 2}", "turn 2: modifiers must map text"),
        ("action: a1\n", "action: a7\n", "turn 2: fact links unknown action 'a7'"),
        ("state: planned", "state: perhaps", "action a1: state 'perhaps'"),
        (
            "evidence: two tablets, plan",
            "evidence: three, plan",
            "evidence 'three' is in turns []",
        ),
        ('S2: "No."', "S2: No", "turn 1: turn: S2 must be text, is False; quote it"),
        ("first: tablets", "first: 2", "chronology: first must be text"),
        ("Any pain?", "Any pain, Ann?", "turn 0: 'Ann' stands unmarked"),
        ("DEVICE:d/1", "DEVICE:p", "turn 2: entity p is DEVICE here and NAME before"),
        ("flite:rms", "flite:slt", "two speakers share a voice"),
        ("flite:rms", "rms", "voice 'rms' must be synthesiser:voice"),
        ("language: en", "language: de", "language 'de'"),
        ("toy/one", "toy one", "must be ASCII dataset/stem"),
        ("noise_snr_db", "noise_db", "rendering: unknown keys ['noise_db']"),
        ("noise_snr_db: 12", "format: aiff", "rendering: format 'aiff': must be one of"),
        ("title: A toy", "title: A toy\ntitle: Two", "key 'title' twice, line"),
        ("title: A toy", "title: [", "line"),
    ],
)
def test_broken_scripts_name_file_turn_and_rule(
    tmp_path: Path, old: str, new: str, rule: str
) -> None:
    assert old in SMALL
    path = write(tmp_path, SMALL.replace(old, new, 1))
    with pytest.raises(ManifestError, match=re.escape(rule)) as caught:
        manifests.read_script(path)
    assert str(caught.value).startswith("one.yaml: ")


def test_homographs_may_stand_unmarked(tmp_path: Path) -> None:
    text = SMALL.replace("Any pain?", "Any pain, Ann?") + "homographs: [Ann]\n"
    assert len(manifests.read_script(write(tmp_path, text)).turns[0].mentions) == 1


def test_readers_of_one_passage_become_recordings(tmp_path: Path) -> None:
    write(
        tmp_path,
        "recording_id: toy/par\nlanguage: en\ntitle: Par\npassage: [One two., Three.]\n"
        'readers:\n  - {voice: "flite:slt", gender: female}\n'
        '  - {voice: "flite:rms", gender: male}\n',
    )
    found = manifests.read_scripts(tmp_path)
    assert [s.recording_id for s in found] == ["toy/par_flite_rms", "toy/par_flite_slt"]
    assert [turn.text for turn in found[0].turns] == ["One two.", "Three."]


def test_two_files_with_one_id_are_refused(tmp_path: Path) -> None:
    write(tmp_path, SMALL)
    write(tmp_path, SMALL, "two.yaml")
    with pytest.raises(ManifestError, match="recording_id twice: toy/one"):
        manifests.read_scripts(tmp_path)


def test_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="no scripts"):
        manifests.read_scripts(tmp_path)


def test_gold_tables_hold_the_truth(small: scripts.Script) -> None:
    times = [(0.5, 2.0), (2.5, 3.0), (2.7, 5.0)]
    words = [None, [(2.6, 2.9)], None]
    gold = manifests.gold_tables(small, times, words)
    assert gold["gold_turns"]["start_s"].tolist() == [0.5, 2.5, 2.7]
    assert gold["gold_words"]["text"].tolist()[:5] == ["Hello", "Ann.", "Any", "pain?", "No."]
    assert gold["gold_words"]["word_index"].tolist() == list(range(10))
    assert gold["gold_words"]["start_s"].isna().sum() == 9
    assert gold["gold_words"].loc[4, "end_s"] == 2.9
    mentions = gold["gold_mentions"]
    assert mentions["text"].tolist() == ["Ann", "one two"]
    assert mentions["char_start"].tolist() == [6, 5]
    modifiers = [json.loads(text) for text in gold["gold_facts"]["modifiers"]]
    assert modifiers[0] == {"actor": "patient", "certainty": "stated", "question_turn": 0}
    assert modifiers[1]["linked_action"] == "a1"
    assert modifiers[1]["dose"] == "two"


def test_gold_tables_without_mentions_are_empty_not_absent(tmp_path: Path) -> None:
    script = scripts._script(
        {
            "recording_id": "toy/x",
            "language": "fr",
            "title": "x",
            "speakers": {"S1": {"role": "reader"}},
            "turns": [{"S1": "Ça va ?"}],
        }
    )
    gold = manifests.gold_tables(script, [(0.0, 1.0)])
    assert gold["gold_mentions"].empty
    assert gold["gold_words"]["text"].tolist() == ["Ça", "va"]


@pytest.mark.parametrize(
    ("turns", "words", "rule"),
    [
        ([(0.0, 1.0)], None, "3 turns, 1 turn times"),
        ([(0.0, 1.0)] * 3, [None, [(0.0, 1.0), None], None], "turn 1 has 1 words, 2 word times"),
    ],
)
def test_gold_tables_refuse_other_counts(
    small: scripts.Script, turns: list, words: list, rule: str
) -> None:
    with pytest.raises(ManifestError, match=rule):
        manifests.gold_tables(small, turns, words)


CARD = """
name: toy
title: Toy
licence: CC0-1.0
source: here
revision: "1"
access: open
languages: [en]
content: synthetic
stems_public: true
voices: ["flite:slt"]
"""


def test_card_is_read(tmp_path: Path) -> None:
    write(tmp_path, CARD, "toy.yaml")
    card = manifests.read_card("toy", tmp_path)
    assert (card.languages, card.revision_full, card.may_show_originals) == (("en",), True, True)
    assert manifests.reserved_voices("toy", tmp_path) == frozenset({"flite:slt"})


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("licence:", "license:", "unknown fields ['license'], missing fields ['licence']"),
        ('revision: "1"', "revision: 1", "revision must be str, is 1"),
        ("content: synthetic", "content: secret", "content 'secret' must be one of"),
        ("[en]", "en", "languages must be list"),
        ("name: toy", "name: toys", "name 'toys' must be 'toy'"),
    ],
)
def test_broken_cards_name_the_field(tmp_path: Path, old: str, new: str, rule: str) -> None:
    write(tmp_path, CARD.replace(old, new), "toy.yaml")
    with pytest.raises(ManifestError, match=re.escape(rule)):
        manifests.read_card("toy", tmp_path)


def test_missing_card_is_named(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match=r"none\.yaml: no such card"):
        manifests.read_card("none", tmp_path)


@pytest.mark.parametrize(
    "name",
    ["demo", "primock57", "fareez", "simsamu", "asq_phi", "openswara", "mixer", "paraspeechcaps"],
)
def test_cards_of_the_study_are_complete(name: str) -> None:
    card = manifests.read_card(name)
    assert card.licence
    assert card.revision
    if name in ("primock57", "asq_phi"):
        assert re.fullmatch(r"[0-9a-f]{40}", card.revision)
    if not card.revision_full and card.revision != "not stated":
        assert re.fullmatch(r"[0-9a-f]{12}", card.revision)


@pytest.mark.parametrize(
    ("name", "records", "audio"),
    [("primock57", 57, 114), ("fareez", 272, 272), ("simsamu", 61, 61)],
)
def test_checksum_lists_schedule_the_papers_390_recordings(
    name: str, records: int, audio: int
) -> None:
    files = manifests.read_checksums(manifests.MANIFESTS / f"{name}.csv")
    assert len({f.record_id for f in files}) == records
    assert sum(f.role == "audio" for f in files) == audio


@pytest.mark.parametrize(
    ("row", "rule"),
    [
        ("r,audio,a.wav,zz,1", "line 2: sha256 'zz'"),
        ("r,audio,a.wav,,x", "line 2: bytes 'x'"),
        ("r,audio,a.wav", "line 2: 3 fields"),
        ("r,audio,a.wav,,1\nr,audio,a.wav,,1", r"line 3: a.wav is listed twice"),
    ],
)
def test_broken_checksum_lists_name_the_line(tmp_path: Path, row: str, rule: str) -> None:
    path = write(tmp_path, f"record_id,role,path,sha256,bytes\n{row}\n", "c.csv")
    with pytest.raises(ManifestError, match=rule):
        manifests.read_checksums(path)


def test_every_record_has_one_fate() -> None:
    fates = manifests.match_records(
        ["a", "b", "c", "d", "e", "f"],
        {"a": 10.0, "c": 10.0, "d": None, "e": 10.0, "f": 10.0, "x": 3.0},
        {"a": 10.4, "b": 4.0, "e": 12.5, "f": None, "y": 1.0, "x": None},
        {"f": "withdrawn"},
    )
    expected = [
        ("a", "ok", None),
        ("b", "failed", "audio missing"),
        ("c", "failed", "transcript missing"),
        ("d", "failed", "audio unreadable"),
        ("e", "failed", "transcript ends 2.50 s after the audio"),
        ("f", "excluded", "withdrawn"),
        ("x", "excluded", "not scheduled: extra audio and transcript"),
        ("y", "excluded", "not scheduled: extra transcript"),
    ]
    rows = fates.astype(object).where(fates.notna(), None).itertuples(index=False, name=None)
    assert list(rows) == expected


def test_reconciliation_refuses_double_and_stray_records() -> None:
    with pytest.raises(ManifestError, match=r"1 records scheduled twice, e\.g\. a"):
        manifests.match_records(["a", "a"], {}, {})
    with pytest.raises(ManifestError, match="excluded but not scheduled: z"):
        manifests.match_records(["a"], {}, {}, {"z": "why"})


def test_contract_is_frozen_and_its_examples_parse() -> None:
    contract = manifests.read_contract()
    letters = [family.letter for family in contract.families]
    assert sorted(set(letters)) == list("ABCDEFGHIJKLMNOPQR")
    for family in contract.families:
        found = {m.category for e in family.examples for m in scripts.parse_markup(e)[1]}
        assert found == ({family.category} if family.examples else set())
    assert set(contract.benchmark_types.values()) <= set(scripts.CATEGORIES)


def test_changed_contract_is_refused(tmp_path: Path) -> None:
    source = manifests.MANIFESTS / "phi_contract.yaml"
    path = write(tmp_path, source.read_text(encoding="utf-8") + "# more\n", "phi_contract.yaml")
    frozen = source.with_suffix(".sha256").read_text(encoding="utf-8")
    write(tmp_path, frozen, "phi_contract.sha256")
    with pytest.raises(ManifestError, match="is not the frozen"):
        manifests.read_contract(path)


def test_fates_are_a_table() -> None:
    assert isinstance(manifests.match_records([], {}, {}), pd.DataFrame)
