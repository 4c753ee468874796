"""The paper's recognisers and diarizers: output forms, recorded replies, a real small model."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from aegis import engines
from aegis.engines import SpeakerTurn, Word
from aegis.engines.paper_speech import (
    Canary,
    PaperWhisper,
    PyannoteDiarizer,
    Sortformer,
    annotation_turns,
    canary_transcript,
    load_pipeline,
    local_pipeline_31,
    parse_sortformer,
    within,
)
from aegis.errors import EngineUnavailable, ItemError
from aegis.tables import PROJECT

SILENCE = np.zeros(32000, np.float32)
SHARED = PROJECT.parent / "shared" / "data" / "fleurs_en_fr"


# --- pyannote --------------------------------------------------------------------------------


def annotation() -> Any:
    from pyannote.core import Annotation, Segment

    made = Annotation()
    made[Segment(2.0, 3.5), "b"] = "SPEAKER_01"
    made[Segment(0.5, 2.5), "a"] = "SPEAKER_00"
    made[Segment(4.0, 4.0), "c"] = "SPEAKER_00"
    return made


TURNS = [SpeakerTurn(0.5, 2.5, "SPEAKER_00"), SpeakerTurn(2.0, 3.5, "SPEAKER_01")]


@pytest.mark.parametrize("version", [3, 4])
def test_both_output_forms_read_alike(version: int) -> None:
    made = annotation()
    wrapped = SimpleNamespace(speaker_diarization=made, exclusive_speaker_diarization=None)
    assert annotation_turns(made if version == 3 else wrapped) == TURNS


def test_the_pipeline_gets_arrays_and_the_number_of_speakers() -> None:
    asked: list[tuple[tuple[int, ...], int, dict[str, int]]] = []

    def pipeline(sound: dict[str, Any], **limits: int) -> Any:
        asked.append((tuple(sound["waveform"].shape), sound["sample_rate"], limits))
        return annotation()

    diarizer = PyannoteDiarizer(pipeline, "pyannote-3.1", "r", "MIT", "cpu")
    sound = np.zeros(64000, np.float32)
    assert diarizer.diarize(sound, None) == TURNS
    diarizer.diarize(sound, 2)
    assert asked == [((1, 64000), 16000, {}), ((1, 64000), 16000, {"num_speakers": 2})]
    assert diarizer.diarize(SILENCE[:100], None) == []


@pytest.mark.parametrize("keyword", ["token", "use_auth_token"])
def test_a_token_goes_by_the_librarys_own_word_and_only_where_the_hub_is_allowed(
    keyword: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyannote.audio

    given: list[str | None] = []
    namespace: dict[str, Any] = {"given": given}
    exec(  # two versions of one signature
        f"def from_pretrained(checkpoint, {keyword}=None):\n"
        f"    given.append({keyword})\n    return object()",
        namespace,
    )
    stand_in = SimpleNamespace(from_pretrained=namespace["from_pretrained"])
    monkeypatch.setattr(pyannote.audio, "Pipeline", stand_in)
    monkeypatch.setenv("HF_TOKEN", "hf_x")
    monkeypatch.delenv("AEGIS_HUB", raising=False)
    load_pipeline("here")
    monkeypatch.setenv("AEGIS_HUB", "1")
    load_pipeline("here")
    assert given == [None, "hf_x"]


def test_no_pipeline_means_conditions_not_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    import pyannote.audio

    stand_in = SimpleNamespace(from_pretrained=lambda checkpoint, token=None: None)
    monkeypatch.setattr(pyannote.audio, "Pipeline", stand_in)
    with pytest.raises(EngineUnavailable, match="accept the conditions"):
        load_pipeline("here")
    assert os.environ["PYANNOTE_METRICS_ENABLED"] == "0"


def random_networks(folder: Path) -> tuple[Path, Path, Path]:
    """A powerset segmentation, a speaker embedding and a PLDA of the right forms, random."""
    import torch
    from pyannote.audio.core.task import Problem, Resolution, Specifications
    from pyannote.audio.models.embedding import WeSpeakerResNet34
    from pyannote.audio.models.segmentation import PyanNet

    torch.manual_seed(5)
    sincnet, lstm = {"stride": 10}, {"hidden_size": 8, "num_layers": 1, "monolithic": True}
    segmentation = PyanNet(sincnet=sincnet, lstm=lstm, linear={"hidden_size": 8, "num_layers": 1})
    segmentation.specifications = Specifications(
        problem=Problem.MONO_LABEL_CLASSIFICATION, resolution=Resolution.FRAME, duration=10.0,
        classes=["a", "b", "c"], powerset_max_classes=2, permutation_invariant=True,
    )  # fmt: skip
    segmentation.build()
    embedding = WeSpeakerResNet34()
    embedding.specifications = Specifications(
        problem=Problem.REPRESENTATION, resolution=Resolution.CHUNK, duration=5.0
    )
    paths = []
    for name, model in (("segmentation", segmentation), ("pyannote-wespeaker", embedding)):
        kept = {
            "state_dict": model.state_dict(), "hyper_parameters": dict(model.hparams),
            "pytorch-lightning_version": "2.5.0",
        }  # fmt: skip
        model.on_save_checkpoint(kept)
        path = folder / name / "pytorch_model.bin"
        path.parent.mkdir()
        torch.save(kept, path)
        paths.append(path)
    plda = folder / "plda"
    plda.mkdir()
    rng = np.random.default_rng(0)
    lda = rng.normal(size=(256, 128))
    np.savez(plda / "xvec_transform.npz", mean1=np.zeros(256), mean2=np.zeros(128), lda=lda)
    psi = np.linspace(2.0, 1.0, 128)
    np.savez(plda / "plda.npz", mu=np.zeros(128), tr=np.eye(128), psi=psi)
    return paths[0], paths[1], plda


def test_the_3_1_settings_build_a_real_pipeline_from_local_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library itself, random networks, no hub: turns inside the recording, twice the same."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with local_pipeline_31(*random_networks(tmp_path)) as place:
        pipeline = load_pipeline(place)
    diarizer = PyannoteDiarizer(pipeline, "pyannote-3.1", "r", "MIT", "cpu")
    rng = np.random.default_rng(1)
    samples = rng.normal(0, 0.1, 12 * 16000).astype(np.float32)
    first = diarizer.diarize(samples, 2)
    assert first == diarizer.diarize(samples, 2)
    assert all(0.0 <= turn.start_s < turn.end_s <= 12.1 for turn in first)
    assert len({turn.speaker for turn in first}) <= 2


# --- NeMo ------------------------------------------------------------------------------------


def test_sortformer_lines_are_sorted_and_may_overlap() -> None:
    lines = ["0.500 2.500 speaker_0", "4.000 5.000 speaker_0", "2.000 4.500 speaker_1"]
    assert [(t.start_s, t.end_s, t.speaker) for t in parse_sortformer(lines)] == [
        (0.5, 2.5, "speaker_0"), (2.0, 4.5, "speaker_1"), (4.0, 5.0, "speaker_0"),
    ]  # fmt: skip
    assert parse_sortformer(["1.0 1.0 speaker_0"]) == []
    with pytest.raises(ItemError, match="a line of 2 fields"):
        parse_sortformer(["0.5 speaker_0"])


class Recorded:
    def __init__(self, reply: dict[str, Any]) -> None:
        self.reply, self.calls = reply, []  # type: tuple[dict[str, Any], list[Any]]

    def call(self, call: str, values: Any, arrays: Any) -> Any:
        self.calls.append((call, values))
        return self.reply, {}


def test_turns_end_with_the_recording() -> None:
    made = [SpeakerTurn(0.0, 1.0, "a"), SpeakerTurn(2.5, 3.03, "b"), SpeakerTurn(3.0, 3.03, "a")]
    assert within(made, 3.0) == [SpeakerTurn(0.0, 1.0, "a"), SpeakerTurn(2.5, 3.0, "b")]


def test_sortformer_refuses_what_it_cannot_do() -> None:
    worker: Any = Recorded({"lines": ["0.0 1.0 speaker_0"]})
    diarizer = Sortformer(worker)
    assert diarizer.diarize(SILENCE, 4) == [SpeakerTurn(0.0, 1.0, "speaker_0")]
    with pytest.raises(ItemError, match="unsupported: 5 speakers"):
        diarizer.diarize(SILENCE, 5)
    with pytest.raises(ItemError, match="unsupported: 800 s"):
        diarizer.diarize(np.zeros(800 * 16000, np.float32), None)
    assert len(worker.calls) == 1


REPLY = {
    "text": "Hello Doris. How are you?",
    "words": [["Hello", 0.1, 0.4], ["Doris.", 0.5, 0.9], ["How", 1.5, 1.6], ["are", -1, -1],
              ["you?", 1.8, 2.0]],
    "segments": [["Hello Doris.", 0.1, 0.9], ["How are you?", 1.5, 2.0]],
}  # fmt: skip
SPEECH = ((0.0, 2.1),)


def test_canary_words_go_to_their_segments_and_unaligned_ones_have_no_time() -> None:
    found = canary_transcript(REPLY, "en", SPEECH, as_paper=False)
    assert [len(segment.words) for segment in found.segments] == [2, 3]
    assert found.segments[1].words[1] == Word("are", None, None)
    assert found.segments[0].words[1] == Word("Doris.", 0.5, 0.9)


def test_canary_as_the_paper_met_it_has_no_word_times() -> None:
    found = canary_transcript(REPLY, "en", SPEECH, as_paper=True)
    words = [word for segment in found.segments for word in segment.words]
    assert [word.text for word in words] == REPLY["text"].split()
    assert all(word.start_s is None for word in words)


@pytest.mark.parametrize(
    "change",
    [{"segments": []}, {"words": []}, {"segments": [["Hello", 0.1, 0.4]]}],
    ids=["no segments", "no words", "segments that disagree"],
)
def test_canary_keeps_all_words_whatever_is_missing(change: dict[str, Any]) -> None:
    found = canary_transcript(REPLY | change, "en", SPEECH, as_paper=False)
    words = [word.text for segment in found.segments for word in segment.words]
    assert words == REPLY["text"].split()


def test_canary_needs_a_language_and_hears_silence_without_asking() -> None:
    worker: Any = Recorded(REPLY)
    canary = Canary(worker=worker)
    with pytest.raises(ItemError, match="needs the recording's language"):
        canary.transcribe(SILENCE, None)
    assert canary.transcribe(SILENCE, "en").segments == ()
    assert worker.calls == []


# --- Whisper ---------------------------------------------------------------------------------


@pytest.mark.engine
@pytest.mark.parametrize("batched", [False, True])
def test_the_papers_settings_on_a_smaller_real_model(
    batched: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whisper base behind the adapter of large-v3: words with times, in order, twice the same."""
    import soundfile as sf

    from aegis.audio import resample
    from aegis.weights import model_dir

    clips = sorted(SHARED.glob("fleurs-en-*.ogg"))
    if not clips:
        pytest.skip("no clip here")
    samples, rate = sf.read(clips[0], dtype="float32")
    sound = resample(samples, rate)
    engine = PaperWhisper("whisper-base", model_dir("whisper-base"), "cpu", batched)
    assert engine.info.name == ("whisper-base-batched" if batched else "whisper-base")
    first = engine.transcribe(sound, None)
    assert first == engine.transcribe(sound, None)
    assert first.language == "en"
    words = [word for segment in first.segments for word in segment.words]
    text = clips[0].with_suffix(".txt").read_text("utf-8").casefold()
    shared = {word.text.strip(".,").casefold() for word in words} & set(text.split())
    assert len(shared) > len(set(text.split())) / 2
    starts = [word.start_s or 0.0 for word in words]
    assert starts == sorted(starts)
    assert max(word.end_s or 0.0 for word in words) <= sound.size / 16000 + 0.1
    assert engine.transcribe(SILENCE, None).segments == ()


def test_a_missing_tokenizer_is_never_fetched(tmp_path: Path) -> None:
    with pytest.raises(EngineUnavailable, match=r"no tokenizer\.json"):
        PaperWhisper("whisper-large-v3", tmp_path, "cpu")


@pytest.mark.parametrize(
    ("role", "name"),
    [("transcriber", "whisper-large-v3"), ("diarizer", "pyannote-3.1"), ("converter", "seed-vc"),
     ("renderer", "f5-tts"), ("renderer", "voicecraft"), ("diarizer", "sortformer"),
     ("transcriber", "canary")],
)  # fmt: skip
def test_without_a_card_nothing_moves_to_the_cpu_silently(
    role: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    monkeypatch.delenv("AEGIS_DEVICE", raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(EngineUnavailable, match=r"no CUDA device; AEGIS_DEVICE=cpu"):
        engines.load(role, name)
