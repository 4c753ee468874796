"""The demo corpus as text: what it must contain, and that its gold is literal."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from aegis import gold, manifests, scripts
from aegis.engines.synthesis import MIXTURES
from aegis.pool import read_pool
from aegis.tables import PROJECT
from aegis.weights import model_dir

SPOKEN_FAMILIES = set(scripts.CATEGORIES) - {"BIOMETRIC", "PHOTO"}
EPONYMS = ("Parkinson", "Alzheimer", "Addison", "Hodgkin", "Graves", "Crohn", "Lyme", "Colles")
WORDS_PER_S = 2.6


@pytest.fixture(scope="module")
def demo() -> list[scripts.Script]:
    return manifests.read_scripts()


@pytest.fixture(scope="module")
def talks(demo: list[scripts.Script]) -> list[scripts.Script]:
    return [script for script in demo if "/parallel" not in script.recording_id]


def mentions(demo: list[scripts.Script]) -> list[scripts.GoldMention]:
    return [m for script in demo for turn in script.turns for m in turn.mentions]


def test_numbers_of_the_card(demo: list[scripts.Script], talks: list[scripts.Script]) -> None:
    counts = manifests.read_card("demo").counts
    languages = Counter(script.language for script in talks)
    assert counts["conversations"] == len(talks) >= 8
    assert counts["english"] == languages["en"] >= 6
    assert counts["french"] == languages["fr"] >= 2
    assert counts["parallel_readings"] == len(demo) - len(talks) >= 6


def test_length_of_conversations(talks: list[scripts.Script]) -> None:
    for script in talks:
        assert 60 < script.n_words / WORDS_PER_S < 150, script.recording_id
        assert len(script.speakers) in (2, 3)
    assert sum(script.n_words for script in talks) / WORDS_PER_S > 12 * 60
    assert sum(len(script.speakers) == 3 for script in talks) >= 2


def test_turns_are_short_enough_to_render(talks: list[scripts.Script]) -> None:
    lengths = [len(turn.words) for script in talks for turn in script.turns]
    assert max(lengths) <= 12 * WORDS_PER_S
    assert sum(n > 10 * WORDS_PER_S for n in lengths) <= 0.05 * len(lengths)


def test_spans_are_literal(demo: list[scripts.Script]) -> None:
    for script in demo:
        for turn in script.turns:
            for mention in turn.mentions:
                assert turn.text[mention.char_start : mention.char_end] == mention.text
            ends = [0, *(m.char_end for m in turn.mentions)]
            assert all(m.char_start >= end for m, end in zip(turn.mentions, ends, strict=False))


def test_every_spoken_family_appears(demo: list[scripts.Script]) -> None:
    assert {m.category for m in mentions(demo)} == SPOKEN_FAMILIES


def test_hard_forms_appear(talks: list[scripts.Script]) -> None:
    found = mentions(talks)
    surfaces = {m.text for m in found}
    assert {"John Smith", "Smith", "Johnny"} <= surfaces  # aliases of one person
    assert {"Will", "May", "Rose", "Grace", "Hope"} <= surfaces  # ordinary words
    assert {"ninety-three", "ninety-one", "quatre-vingt-quatorze"} <= surfaces  # ages over 89
    text = " ".join(turn.text for script in talks for turn in script.turns)
    assert re.search(r"\bd'Amélie\b", text)
    assert re.search(r"\brose at six\b", text)
    assert "double zero nine hundred" in text.replace(",", "") or "double oh, nine hundred" in text


def test_a_name_twice_in_one_turn_and_a_number_over_two(talks: list[scripts.Script]) -> None:
    twice, split = 0, set()
    for script in talks:
        for turn in script.turns:
            counts = Counter((m.category, m.text) for m in turn.mentions)
            twice += any(n > 1 and category == "NAME" for (category, _), n in counts.items())
        for entity in {m.entity for t in script.turns for m in t.mentions if m.part}:
            turns = {t.turn_index for t in script.turns for m in t.mentions if m.entity == entity}
            assert len(turns) > 1
            split.add((script.language, entity))
    assert twice >= 1
    assert {language for language, _ in split} == {"en", "fr"}


def test_titles_stay_outside_spans(demo: list[scripts.Script]) -> None:
    titles = {"dr", "mr", "mrs", "ms", "miss", "doctor", "monsieur", "madame", "docteur"}
    for mention in mentions(demo):
        assert mention.text.split()[0].lower().strip(".") not in titles


def test_eponyms_are_spoken_and_never_marked(talks: list[scripts.Script]) -> None:
    text = " ".join(turn.text for script in talks for turn in script.turns)
    marked = {word for m in mentions(talks) for word in re.findall(r"\w+", m.text)}
    for eponym in EPONYMS:
        assert eponym in text
        assert eponym not in marked


def test_facts_cover_importance_polarity_and_answers(talks: list[scripts.Script]) -> None:
    for script in talks:
        assert len(script.facts) >= 10
        assert {fact.polarity for fact in script.facts} == {"affirmed", "negated"}
        assert script.actions
        assert len({relation.relation for relation in script.chronology}) >= 2
        assert any(relation.relation == "final_state" for relation in script.chronology)
    facts = [fact for script in talks for fact in script.facts]
    assert {fact.importance for fact in facts} == set(gold.IMPORTANCE)
    answers = [f for f in facts if f.question_turn is not None and f.polarity == "negated"]
    assert len(answers) >= 10
    for script in talks:
        for fact in script.facts:
            if fact.question_turn is not None:
                assert "?" in script.turns[fact.question_turn].text
                speakers = [script.turns[i].speaker for i in (fact.question_turn, fact.turn_index)]
                assert speakers[0] != speakers[1]


def test_facts_hold_no_identifier(talks: list[scripts.Script]) -> None:
    for script in talks:
        surfaces = {m.text for turn in script.turns for m in turn.mentions}
        for fact in script.facts:
            for surface in surfaces:
                assert not re.search(rf"\b{re.escape(surface)}\b", fact.text)
                assert not re.search(rf"\b{re.escape(surface)}\b", fact.evidence)


def test_recording_conditions(talks: list[scripts.Script]) -> None:
    renderings = [script.rendering for script in talks]
    assert sum(r.noise_snr_db == 12 for r in renderings) == 1
    assert sum(r.sample_rate_hz == 8000 for r in renderings) == 1
    assert sum(r.layout == "speaker_per_channel" for r in renderings) == 1
    overlapping = [s for s in talks if any(turn.overlap_s > 0 for turn in s.turns)]
    assert len(overlapping) == 1
    clean = [
        s
        for s in talks
        if replace(s.rendering, format="flac") == scripts.Rendering()
        and s not in overlapping
        and s.language == "en"
    ]
    assert sum(len(script.speakers) == 2 for script in clean) >= 4


def test_stereo_has_a_speaker_a_channel(talks: list[scripts.Script]) -> None:
    for script in talks:
        if script.rendering.layout == "speaker_per_channel":
            assert len(script.speakers) == 2


def test_voices_are_reserved(demo: list[scripts.Script]) -> None:
    spoken = {speaker.voice for script in demo for speaker in script.speakers}
    reserved = manifests.reserved_voices()
    assert spoken <= reserved
    # The same person as festival:kal, a part of the mixture fm_alex, the person of that part.
    assert reserved - spoken <= {"flite:kal16", "kokoro:em_alex", "kokoro:pm_alex"}
    assert {voice.split(":")[0] for voice in spoken} == {"kokoro", "flite", "festival", "piper"}


@pytest.mark.parametrize("name", ["pool", "pool_smoke"])
def test_the_pool_has_french_voices_of_nobody_in_the_corpus(name: str) -> None:
    """A mixture is nearest to the voice that it has two parts of: that one is free."""
    pool = read_pool(PROJECT / "data_manifests" / f"{name}.yaml")
    bases = {unit.base_voice for unit in pool.units if unit.language == "fr"}
    assert len(bases) >= 3
    parts = {base: MIXTURES[base].split("+") for base in bases}
    main = {f"kokoro:{Counter(found).most_common(1)[0][0]}" for found in parts.values()}
    assert not main & manifests.reserved_voices()


@pytest.mark.engine
def test_a_free_voice_is_nobody_in_the_corpus() -> None:
    """One person has several voices in Kokoro: their style rows lie within 0.05."""
    folder = model_dir("kokoro-voices") / "voices"
    rows = {p.stem: np.fromfile(p, "<f4").reshape(510, 256)[100] for p in folder.glob("*.bin")}
    unit = {name: row / np.linalg.norm(row) for name, row in rows.items()}
    assert 1 - unit["em_alex"] @ unit["pm_alex"] < 0.05 < 1 - unit["bm_george"] @ unit["bm_daniel"]
    reserved = {voice.removeprefix("kokoro:") for voice in manifests.reserved_voices()} & set(unit)
    for name in set(unit) - reserved:
        assert min(1 - unit[name] @ unit[taken] for taken in reserved) > 0.05, name


def test_speakers_of_a_conversation_can_be_told_apart(talks: list[scripts.Script]) -> None:
    for script in talks:
        assert {speaker.gender for speaker in script.speakers} == {"female", "male"}


def test_parallel_text_is_the_same_for_all_readers(demo: list[scripts.Script]) -> None:
    readings = [script for script in demo if "/parallel_" in script.recording_id]
    assert len({tuple(t.text for t in script.turns) for script in readings}) == 1
    assert len({script.speakers[0].voice for script in readings}) == len(readings) >= 6
    assert 11 < readings[0].n_words / WORDS_PER_S < 16
    assert not mentions(readings)


def test_detector_dialogues_share_nothing_with_the_demo(demo: list[scripts.Script]) -> None:
    dialogues = manifests.read_scripts(PROJECT / "tests" / "data" / "phi_dialogues")
    assert Counter((d.language, d.split) for d in dialogues) == {
        ("en", "dev"): 6, ("en", "test"): 6, ("fr", "dev"): 3, ("fr", "test"): 3,
    }  # fmt: skip
    ours = {m.text.lower() for m in mentions(demo) if len(m.text) > 3 and m.category == "NAME"}
    theirs = {m.text.lower() for m in mentions(dialogues)}
    assert not ours & theirs
