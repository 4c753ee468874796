"""No code path writes original sound into a condition's folder."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis import engines
from aegis.audio import check_not_source, read_wav, write_wav
from aegis.errors import AudioError
from aegis.stitch import choose_sound
from aegis.tables import CONDITIONS, PROJECT, Run
from aegis.work import render, voice

RATE = 16_000
SPEECH = np.random.default_rng(5).standard_normal(2 * RATE).astype(np.float32) * 0.1
STATUS = st.sampled_from(["ok", "failed", "not_applicable", "unknown"])
ROW = st.none() | st.builds(dict, status=STATUS, n_samples=st.integers(1, 99), file=st.just("?"))


@pytest.mark.parametrize(
    "copy",
    [SPEECH, 0.3 * SPEECH, -SPEECH, np.r_[np.zeros(700, np.float32), SPEECH], SPEECH[900:],
     SPEECH + 0.005 * np.random.default_rng(1).standard_normal(SPEECH.size).astype(np.float32)],
    ids=["same", "quieter", "inverted", "later", "cut", "with noise"],
)  # fmt: skip
def test_a_copy_of_the_source_is_refused(copy: np.ndarray) -> None:
    with pytest.raises(AudioError, match="toy: returned the original sound"):
        check_not_source(copy, SPEECH, "toy")


def test_other_sound_is_not() -> None:
    other = np.random.default_rng(6).standard_normal(SPEECH.size).astype(np.float32)
    check_not_source(other, SPEECH, "toy")
    check_not_source(np.interp(np.arange(SPEECH.size) * 1.1, np.arange(SPEECH.size), SPEECH)
                     .astype(np.float32), SPEECH, "toy")  # fmt: skip
    check_not_source(np.zeros(9, np.float32), SPEECH, "toy")


@given(converted=ROW, rendered=ROW, condition=st.sampled_from(CONDITIONS[1:]))
def test_a_turn_is_converted_rendered_or_silent(
    converted: dict | None, rendered: dict | None, condition: str
) -> None:
    known = {None}
    for name, row in (("c.wav", converted), ("r.wav", rendered)):
        if row is not None:
            row["file"] = name
            known |= {name} if row["status"] == "ok" else set()
    turn = {"turn_id": "t", "profile_id": "p", "channel": 0, "start": 0, "end": 10}
    chosen = choose_sound(turn, converted, rendered, condition)
    assert chosen.file in known
    assert (chosen.file is None) == (chosen.source == "silence")


class _Echo:
    """A converter that gives back what it got."""

    info = engines.EngineInfo("converter", "echo", "1", "MIT")

    def convert(self, source, voice, context, seed):
        return 0.5 * source


def test_a_converter_that_returns_its_source_leaves_no_sound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(tmp_path)
    write_wav(run.original_path("toy/a"), SPEECH)
    monkeypatch.setattr(voice.engines, "load", lambda *args, **options: _Echo())
    monkeypatch.setattr(voice, "load_voice", lambda row, run: None)
    item = {
        "id": "toy/a/S1", "recording_id": "toy/a", "channel": 0, "pseudo_profile": 1, "voice": {},
        "context": [[0, RATE]], "turns": [["t1", 0, RATE], ["t2", RATE, 2 * RATE]],
    }  # fmt: skip
    found = voice.convert_profile(item, {"converter": "echo", "seed": 0}, run)
    assert [row["reason"] for row in found["turns"]] == ["echo: returned the original sound"] * 2
    assert not list(run.wav.rglob("*.wav"))


def test_a_conversation_without_any_converted_turn_is_silent(tmp_path: Path) -> None:
    run = Run(tmp_path)
    write_wav(run.original_path("toy/a"), SPEECH)
    for condition in CONDITIONS[1:]:
        turn = {"turn_id": "t", "profile_id": "p", "channel": 0, "start": 0, "end": RATE,
                "n_edits": 1, "converted": {"status": "failed", "file": None, "n_samples": None},
                "rendered": None}  # fmt: skip
        item = {"id": "x", "recording_id": "toy/a", "condition": condition, "layout": "mono",
                "n_samples": SPEECH.size, "planned": True, "turns": [turn]}  # fmt: skip
        made = render.reconstruct(item, {"join_fade_s": 0.0}, run)
        assert not read_wav(run.root / made["file"]).any()


def test_what_reads_originals_and_writes_sound_is_known() -> None:
    """Conversion, which checks what it made, and stressors, which write among the secrets."""
    both = set()
    for path in (PROJECT / "aegis").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef):
                names = {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}
                names |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
                if "original_path" in names and names & {"write_wav", "turn_path"}:
                    both.add(node.name)
    assert both == {"convert_profile", "stress_recording"}
