"""F5-TTS and VoiceCraft: what they are asked, checked by hand; replies of a stand-in process."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aegis.engines import EditRequest, Span, Voice, Word, worker
from aegis.engines.paper_render import (
    F5,
    VoiceCraft,
    cut_reference,
    estimate_seconds,
    mask_frames,
    voicecraft_options,
)
from aegis.engines.worker import Worker
from aegis.errors import EngineUnavailable, ItemError, RenderError

VOICE = Voice("v", np.zeros(1, np.float32), "none", "en")


def request(
    words: list[tuple[str, float | None, float | None]],
    edits: dict[str, str],
    seconds: float,
    language: str = "en",
) -> EditRequest:
    """A turn of words; ``edits`` maps a word (or words) of it to a replacement."""
    text = " ".join(word for word, _, _ in words)
    spans = []
    for old, new in edits.items():
        start = text.index(old)
        spans.append(Span(start, start + len(old), new))
    target = text
    for old, new in edits.items():
        target = target.replace(old, new, 1)
    noise = np.random.default_rng(3).normal(0, 0.1, round(seconds * 16000)).astype(np.float32)
    return EditRequest(
        noise, text, target, tuple(spans), tuple(Word(*word) for word in words), VOICE, language, 7
    )


SIX = [("my", 0.5, 0.7), ("name", 0.8, 1.2), ("is", 1.3, 1.4), ("Doris", 1.6, 2.0),
       ("and", 2.4, 2.6), ("I", 2.7, 2.8), ("cough", 2.9, 3.6), ("a", 3.7, 3.8),
       ("lot", 3.9, 4.4)]  # fmt: skip

# --- the reference of F5-TTS -----------------------------------------------------------------


def test_the_reference_is_the_longest_stretch_without_an_edit() -> None:
    """After the edit 2.0 s are free, before it 0.9 s."""
    found = cut_reference(request(SIX, {"Doris": "Nina"}, 5.0))
    assert found.text == "and I cough a lot"
    # From 0.1 s before "and" (halfway to Doris would be 2.2) to 0.1 s after "lot", and 50 ms.
    assert found.seconds == pytest.approx(4.5 - 2.3 + 0.05, abs=1e-3)


def test_the_reference_never_reaches_into_an_edit() -> None:
    close = [(w, s, e) if w != "and" else (w, 2.04, 2.6) for w, s, e in SIX]
    asked = request(close, {"Doris": "Nina"}, 5.0)
    found = cut_reference(asked)
    start = int(np.flatnonzero(asked.converted == found.samples[0])[0])
    assert start / 16000 == pytest.approx((2.0 + 2.04) / 2, abs=1e-3)


def test_a_long_turn_is_cut_at_a_word_within_eleven_seconds() -> None:
    """n words take 0.5 (n - 1) + 0.4 s, so 21 fit in 10.8 s; the last 21 have most room after."""
    words: list[tuple[str, float | None, float | None]] = [
        (f"w{k}", k * 0.5, k * 0.5 + 0.4) for k in range(60)
    ]
    found = cut_reference(request([*words, ("Ann", 30.1, 30.4)], {"Ann": "Eve"}, 31.0))
    assert found.text.split() == [f"w{k}" for k in range(39, 60)]
    assert found.seconds == pytest.approx(10.4 + 0.05 + 0.1 + 0.05, abs=1e-3)


def test_untimed_words_break_a_stretch() -> None:
    words = [(w, None, None) if w == "cough" else (w, s, e) for w, s, e in SIX]
    found = cut_reference(request(words, {"Doris": "Nina"}, 5.0))
    assert found.text == "my name is"


def test_a_turn_that_is_all_edit_has_no_reference() -> None:
    short = [("Doris", 0.1, 0.6), ("yes", 0.7, 1.0)]
    with pytest.raises(RenderError, match=r"unsupported: 0\.\d s of the turn are free of edits"):
        cut_reference(request(short, {"Doris": "Nina"}, 1.2))


def test_durations_follow_the_references_pace() -> None:
    found = cut_reference(request(SIX, {"Doris": "Nina"}, 5.0))
    letters = len("andIcoughalot")
    assert estimate_seconds("x" * 26, found) == pytest.approx(found.seconds * 26 / letters)
    assert estimate_seconds("hi", found) == 0.6


class Recorded:
    """Stands for a worker: keeps what it is asked and gives what a test says."""

    def __init__(self, seconds: float = 4.0, rate_hz: int = 24000, error: str = "") -> None:
        self.calls: list[tuple[str, dict[str, Any], dict[str, np.ndarray]]] = []
        self._seconds, self._rate_hz, self._error = seconds, rate_hz, error

    def call(self, call: str, values: Any, arrays: Any) -> Any:
        self.calls.append((call, values, arrays))
        if self._error:
            raise ItemError(self._error)
        n = round(self._seconds * self._rate_hz)
        noise = np.random.default_rng(0).normal(0, 0.1, n).astype(np.float32)
        return {"rate_hz": self._rate_hz}, {"samples": noise}


def test_f5_is_asked_with_both_texts_a_seed_and_the_whole_length() -> None:
    recorded = Recorded()
    asked = request(SIX, {"Doris": "Nina"}, 5.0)
    samples = F5(recorded).render(asked)  # type: ignore[arg-type]
    assert samples.size == 4 * 16000
    ((call, values, arrays),) = recorded.calls
    assert call == "render"
    assert values["reference_text"] == "and I cough a lot. "
    assert values["text"] == "my name is Nina and I cough a lot. "
    assert values["seed"] == 7
    reference_s = arrays["reference"].size / 16000
    assert values["total_s"] > reference_s + 0.6
    assert "Doris" not in str(values)


@pytest.mark.parametrize(
    ("language", "seconds", "message"),
    [
        ("fr", 5.0, "unsupported: language 'fr', spoken are en, zh"),
        ("en", 60.0, r"unsupported: \d+ s with the reference, at most 30 s"),
    ],
)
def test_f5_refuses_by_type(language: str, seconds: float, message: str) -> None:
    stretched = [(w, (s or 0) * seconds / 5, (e or 0) * seconds / 5) for w, s, e in SIX]
    recorded = Recorded()
    with pytest.raises(RenderError, match=message):
        F5(recorded).render(  # type: ignore[arg-type]
            request(stretched, {"Doris": "Nina " * 30}, seconds, language)
        )
    assert recorded.calls == []


@pytest.mark.parametrize(
    ("recorded", "message"),
    [
        (Recorded(error="failed: f5: RuntimeError at x.py:3"), "failed: f5: RuntimeError"),
        (Recorded(seconds=60.0), "failed: f5-tts: "),
        (Recorded(seconds=0.05), "failed: f5-tts: "),
    ],
)
def test_f5_failures_stay_failures(recorded: Recorded, message: str) -> None:
    with pytest.raises(RenderError, match=message):
        F5(recorded).render(request(SIX, {"Doris": "Nina"}, 5.0))  # type: ignore[arg-type]


# --- VoiceCraft ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("edits", "frames"),
    [
        ({"Doris": "Nina"}, [[76, 104]]),  # 1.6 - 0.08 and 2.0 + 0.08, times 50
        ({"my": "the"}, [[21, 39]]),
        ({"name is": "word was"}, [[36, 74]]),
        ({"is": "was", "Doris": "Nina"}, [[61, 74], [76, 104]]),
        ({"and": "or", "I": "we"}, [[116, 144]]),  # margins meet: one mask
        ({"lot": "bit"}, [[191, 224]]),
    ],
)
def test_masks_by_hand(edits: dict[str, str], frames: list[list[int]]) -> None:
    assert mask_frames(request(SIX, edits, 5.0)).tolist() == frames


def test_masks_stay_inside_the_turn() -> None:
    words = [("Doris", 0.0, 0.5), ("has", 1.0, 1.3), ("a", 1.4, 1.5), ("cough", 1.6, 2.5)]
    assert mask_frames(request(words, {"Doris": "Nina"}, 2.5)).tolist() == [[1, 29]]
    assert mask_frames(request(words, {"cough": "cold"}, 2.5)).tolist() == [[76, 125]]


LONG = [(f"w{k}", 0.5 * k, 0.5 * k + 0.3) for k in range(36)]
MOST = " ".join(f"w{k}" for k in range(2, 30))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (request(SIX, {"Doris": "Nina"}, 5.0, "fr"), "language 'fr', English only"),
        (request(SIX, {"Doris": "Nina"}, 21.0), r"a turn of 21\.0 s"),
        (request(SIX[:2], {"my": "the"}, 1.5), r"a turn of 1\.5 s"),
        (request(SIX, {"Doris": "..."}, 5.0), "a deletion"),
        (request([("Ann", None, None), *SIX], {"Ann": "Eve"}, 5.0), "no word times"),
        (request(LONG, {"w0": "a", "w5": "b", "w10": "c", "w15": "d"}, 18.0), "4 separate edits"),
        (request(LONG, {MOST: "x"}, 18.0), r"a mask of 14\.0 s"),
        (request(SIX, {"my name is Doris and I cough": "x"}, 4.5), "7[0-9]% of the turn masked"),
    ],
)  # fmt: skip
def test_what_voicecraft_does_not_do_is_typed(asked: EditRequest, message: str) -> None:
    with pytest.raises(RenderError, match=f"unsupported: {message}"):
        mask_frames(asked)


STAND_IN = """
import torch
import torchaudio  # as the program does
import soundfile as sf


class voicecraft:
    class VoiceCraft(torch.nn.Module):
        def __init__(self, config):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(3))


class TextTokenizer:
    def __init__(self, backend):
        assert backend == "espeak"


class AudioTokenizer:
    def __init__(self, device=None, signature=None):
        assert open(signature).read() == "codec"


def inference_one_sample(model, model_args, phn2num, text_tokenizer, audio_tokenizer, audio_fn,
                         target_text, mask_interval, device, decode_config):
    assert mask_interval.dtype == torch.int64 and mask_interval.shape[1] == 2
    assert (decode_config["top_k"], decode_config["codec_sr"]) == (40, 50)
    assert phn2num == {"a": 1} and target_text == "my name is Nina and I cough a lot"
    print(target_text)
    samples = torch.from_numpy(sf.read(audio_fn, dtype="float32")[0])
    for start, end in mask_interval.tolist():
        samples[start * 320 : end * 320] = 0.1 * torch.randn(len(samples[start * 320 : end * 320]))
    return samples[None, None], samples[None, None]
"""


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A program with VoiceCraft's function, and weights in its form."""
    import torch

    source = tmp_path / "voicecraft" / "src"
    source.mkdir(parents=True)
    (source / "inference_speech_editing_scale.py").write_text(STAND_IN)
    monkeypatch.setenv("AEGIS_ENVS", str(tmp_path))
    monkeypatch.setenv("AEGIS_PYTHON_VOICECRAFT", sys.executable)
    options = voicecraft_options(tmp_path, "cpu")
    model = {"config": None, "model": {"weight": torch.ones(3)}, "phn2num": {"a": 1}}
    torch.save(model, options["checkpoint"])
    Path(options["codec"]).write_text("codec")
    return options


def test_voicecraft_speaks_the_masks_and_nothing_else(
    environment: dict[str, Any], capfd: pytest.CaptureFixture[str]
) -> None:
    asked = request(SIX, {"Doris": "Nina"}, 5.0)
    with Worker("voicecraft", environment) as started:
        renderer = VoiceCraft(started)
        edited = renderer.render(asked)
        np.testing.assert_array_equal(edited, renderer.render(asked))
    changed = np.flatnonzero(np.abs(edited - asked.converted) > 1e-3)
    assert changed.min() >= 76 * 320
    assert changed.max() < 104 * 320
    assert "Nina" not in "".join(capfd.readouterr())


def test_voicecraft_with_another_signature_is_unavailable(environment: dict[str, Any]) -> None:
    assert "as expected" in worker.check("voicecraft")["signatures"]
    path = Path(environment["codec"]).parent / "voicecraft" / "src"
    script = path / "inference_speech_editing_scale.py"
    script.write_text(STAND_IN.replace("mask_interval, device,", "mask_interval, seed, device,"))
    with pytest.raises(EngineUnavailable, match="inference_one_sample"):
        worker.check("voicecraft")
