"""Real consultations as input: facts, notes, and the same talk as a recogniser heard it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from aegis.comparison import compare
from aegis.conversations import read_conversation, read_statement
from aegis.engines.judging import Claim, Said
from aegis.engines.notes import NoteCase, RulesNoteWriter, judge_notes_by_rules
from aegis.facts import extract_inventory
from aegis.inventory import Inventory, SourceTurn
from aegis.lexicon import drugs
from aegis.tables import PROJECT

DATA = PROJECT.parent / "shared" / "data"
PRIMOCK, ACI = DATA / "primock57", DATA / "aci_bench" / "data"
needs_primock = pytest.mark.skipif(not PRIMOCK.exists(), reason="PriMock57 is not at hand")
needs_aci = pytest.mark.skipif(not ACI.exists(), reason="ACI-Bench is not at hand")


def textgrid(path: Path) -> list[tuple[float, str]]:
    text = path.read_text(encoding="utf-8", errors="replace")
    found = re.findall(r'xmin = ([\d.]+)\s+xmax = [\d.]+\s+text = "(.*?)"\s*\n', text)
    plain = [(float(at), re.sub(r"<[^>]*>", "", said).strip()) for at, said in found]
    return [(at, said) for at, said in plain if said]


def consultation(stem: str) -> list[SourceTurn]:
    said = []
    for speaker in ("doctor", "patient"):
        path = PRIMOCK / "transcripts" / f"{stem}_{speaker}.TextGrid"
        said += [(at, speaker, text) for at, text in textgrid(path)]
    return [SourceTurn(str(i), who, text) for i, (_, who, text) in enumerate(sorted(said))]


def dialogue(text: str) -> list[SourceTurn]:
    lines = re.findall(r"\[(\w+)\] (.*?)(?=\n\[|$)", text, re.S)
    return [SourceTurn(str(i), who, " ".join(said.split())) for i, (who, said) in enumerate(lines)]


def labels(source: list[SourceTurn], target: list[SourceTurn], found: Inventory) -> list[str]:
    """The label of each fact of the source in the target."""
    one, other = (
        read_conversation(tuple(t.text for t in side), "en") for side in (source, target)
    )
    statements = (
        read_statement(one, fact.turn_index, fact.evidence, fact.question is not None)
        for fact in found.facts
    )
    return [compare(statement, other).label for statement in statements]


@needs_primock
def test_real_consultations_keep_their_own_facts() -> None:
    found: list[str] = []
    for path in sorted((PRIMOCK / "transcripts").glob("*_doctor.TextGrid"))[:5]:
        said = consultation(path.name.removesuffix("_doctor.TextGrid"))
        found += labels(said, said, extract_inventory(said, "en"))
    assert len(found) > 100 and found.count("preserved") / len(found) >= 0.98


@needs_primock
def test_drugs_that_the_clinicians_wrote_down_are_in_the_facts() -> None:
    """A drug of the human note that somebody said must stand in an extracted fact."""
    held = total = 0
    for path in sorted((PRIMOCK / "notes").glob("*.json"))[:8]:
        said = consultation(path.stem)
        words = set(re.findall(r"[a-z]{5,}", json.loads(path.read_text())["note"].casefold()))
        spoken = set(re.findall(r"[a-z]+", " ".join(turn.text for turn in said).casefold()))
        facts = " ".join(fact.text for fact in extract_inventory(said, "en").facts).casefold()
        named = words & spoken & drugs()
        total += len(named)
        held += len(named & set(re.findall(r"[a-z]+", facts)))
    assert total >= 5 and held / total >= 0.9


@needs_aci
def test_recognised_speech_keeps_the_facts_of_its_corrected_text() -> None:
    """The same visits as a recogniser wrote them and as people corrected them."""
    folder = ACI / "src_experiment_data"
    heard = pd.read_csv(folder / "test1_aci_asr.csv").set_index("id")["dialogue"]
    corrected = pd.read_csv(folder / "test1_aci_asrcorr.csv").set_index("id")["dialogue"]
    found: list[str] = []
    for name in sorted(heard.index)[:5]:
        source = dialogue(corrected[name])
        found += labels(source, dialogue(heard[name]), extract_inventory(source, "en"))
    assert len(found) > 60
    assert found.count("preserved") / len(found) >= 0.9
    assert found.count("contradicted") / len(found) <= 0.02


@needs_aci
def test_notes_of_real_dialogues_hold_their_facts() -> None:
    kept = total = 0
    for text in pd.read_csv(ACI / "challenge_data" / "valid.csv")["dialogue"].head(3):
        source = dialogue(text)
        said = tuple(Said(turn.speaker, turn.text) for turn in source)
        note = RulesNoteWriter().write("aci/x", said, "en").lines
        assert note
        claims = tuple(
            Claim(str(i), f.text, f.evidence, f.turn_index, f.question is not None)
            for i, f in enumerate(extract_inventory(source, "en").facts)
        )
        found = judge_notes_by_rules(NoteCase("c", "en", said, note, note, claims))
        kept += sum(verdict.label == "preserved" for verdict in found.verdicts)
        total += len(claims)
        assert found.unsupported == ()
    assert total > 50 and kept / total >= 0.85
