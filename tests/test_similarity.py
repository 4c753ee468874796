"""Sentence and acoustic embeddings: windows by hand, tiny random models, MiniLM's real weights."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from aegis import engines
from aegis.engines import worker
from aegis.engines.sentences import TransformerSentences
from aegis.engines.similarity import Clap, Hear, fixed_windows
from aegis.engines.worker import Worker
from aegis.errors import AudioError, EngineUnavailable, ItemError


def sound(seconds: float, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(0.0, 0.1, round(seconds * 16000)).astype(np.float32)


@pytest.mark.parametrize(
    ("n", "windows"), [(1, 1), (100, 1), (101, 1), (124, 1), (126, 2), (200, 2), (260, 3)]
)
def test_windows_follow_each_other_without_chance(n: int, windows: int) -> None:
    cut = fixed_windows(np.arange(1, n + 1, dtype=np.float32), 100)
    assert cut.shape == (windows, 100)
    np.testing.assert_array_equal(cut.reshape(-1)[: min(n, 100)], np.arange(1, min(n, 100) + 1))
    assert (cut.reshape(-1)[n:] == 0).all()


def test_an_empty_signal_is_refused() -> None:
    with pytest.raises(AudioError, match="empty"):
        fixed_windows(np.zeros(0, np.float32), 100)


# --- sentences -------------------------------------------------------------------------------


def tiny_sentences(folder: Path) -> TransformerSentences:
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import BertConfig, BertModel

    words = ["[UNK]", "a", "dose", "of", "ten", "milligrams", "no", "fever"]
    tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, "[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    torch.manual_seed(1)
    config = BertConfig(
        vocab_size=8, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=512,
    )  # fmt: skip
    BertModel(config).save_pretrained(folder)
    return TransformerSentences("minilm", folder, "cpu")


def test_texts_together_give_what_they_give_alone(tmp_path: Path) -> None:
    encoder = tiny_sentences(tmp_path)
    texts = ["a dose of ten milligrams", "no fever", "ten", "no dose", "fever " * 400]
    together = encoder.encode(texts)
    assert together.shape == (5, 16)
    alone = np.concatenate([encoder.encode([text]) for text in texts])
    assert np.sum(together * alone, axis=1).min() > 0.9999
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1.0, atol=1e-5)
    # 256 word pieces are read, the rest is not.
    np.testing.assert_array_equal(encoder.encode(["fever " * 256])[0], together[4])


@pytest.mark.engine
def test_minilm_hears_meaning() -> None:
    """Two ways of saying one thing lie near, another subject far."""
    try:
        encoder = engines.load("sentence_encoder", "minilm")
    except EngineUnavailable as error:
        pytest.skip(str(error))
    texts = [
        "The patient is allergic to penicillin.", "She has a penicillin allergy.",
        "The weather is nice today.",
    ]  # fmt: skip
    vectors = encoder.encode(texts)
    assert encoder.dimension == 384
    assert vectors[0] @ vectors[1] > 0.8
    assert vectors[0] @ vectors[2] < 0.2


# --- CLAP ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def clap(tmp_path_factory: pytest.TempPathFactory) -> Clap:
    """A random CLAP of small sizes with the published front end."""
    import torch
    from transformers import ClapConfig, ClapFeatureExtractor, ClapModel

    folder = tmp_path_factory.mktemp("clap")
    torch.manual_seed(2)
    audio = {
        "depths": [1, 1], "num_attention_heads": [1, 2], "patch_embeds_hidden_size": 8,
        "hidden_size": 16, "num_hidden_layers": 2, "num_mel_bins": 64, "spec_size": 256,
        "projection_dim": 12,
    }  # fmt: skip
    text = {
        "vocab_size": 10, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 16, "projection_dim": 12,
    }  # fmt: skip
    config = ClapConfig(text_config=text, audio_config=audio, projection_dim=12)
    ClapModel(config).save_pretrained(folder)
    ClapFeatureExtractor(
        feature_size=64, truncation="rand_trunc", padding="repeatpad"
    ).save_pretrained(folder)
    return Clap(folder, "cpu")


def test_clap_gives_the_same_vector_for_the_same_long_sound(clap: Clap) -> None:
    """Its own loader would cut 10 s out of 25 at random."""
    samples = sound(25.0)
    np.random.seed(1)  # noqa: NPY002 - the generator that the loader draws from
    first = clap.embed(samples)
    np.random.seed(2)  # noqa: NPY002
    np.testing.assert_array_equal(first, clap.embed(samples))
    assert first.shape == (12,)
    assert np.linalg.norm(first) == pytest.approx(1.0, abs=1e-5)
    assert not np.allclose(first, clap.embed(sound(25.0, 2)))


# --- HeAR ------------------------------------------------------------------------------------

FRONT_END = """
import torch


def preprocess_audio(audio):
    assert audio.dtype == torch.float32 and audio.shape[1] == 32000
    return audio.reshape(len(audio), 1, 160, 200)
"""
MODEL = '''
import json
import os

import torch


class AutoModel(torch.nn.Module):
    """Stands for the hub's class: 512 sums of the front end's values."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))

    @classmethod
    def from_pretrained(cls, folder, local_files_only):
        assert local_files_only and os.path.isdir(folder)
        return cls()

    def forward(self, spectra):
        flat = spectra.reshape(len(spectra), -1)[:, :512]

        class Output:
            pooler_output = flat

        return Output()
'''


@pytest.fixture
def hear(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    source = tmp_path / "hear" / "src"
    front = source / "python" / "data_processing" / "audio_utils.py"
    front.parent.mkdir(parents=True)
    front.write_text(FRONT_END)
    # The stand-in for transformers lies beside the interpreter's own packages.
    site = tmp_path / "site"
    site.mkdir()
    (site / "transformers.py").write_text(MODEL)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{site}" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    monkeypatch.setenv("AEGIS_ENVS", str(tmp_path))
    monkeypatch.setenv("AEGIS_PYTHON_HEAR", str(python))
    return tmp_path


def test_hear_gets_two_second_windows(hear: Path) -> None:
    with Worker("hear", {"device": "cpu", "folder": str(hear)}) as started:
        encoder = Hear(started)
        vector = encoder.embed(sound(5.0))
        assert vector.shape == (512,)
        np.testing.assert_array_equal(vector, encoder.embed(sound(5.0)))
        with pytest.raises(ItemError, match=r"windows of shape \(1, 100\)"):
            started.call("embed", {}, {"windows": np.zeros((1, 100), np.float32)})


def test_hear_without_its_front_end_is_unavailable(hear: Path) -> None:
    assert "as expected" in worker.check("hear")["signatures"]
    front = hear / "hear" / "src" / "python" / "data_processing" / "audio_utils.py"
    front.write_text(FRONT_END.replace("(audio)", "(audio, rate)"))
    with pytest.raises(EngineUnavailable, match="needs 2 arguments"):
        worker.check("hear")
    front.unlink()
    with pytest.raises(EngineUnavailable, match=r"no file audio_utils\.py"):
        worker.check("hear")


# --- in appendix J ---------------------------------------------------------------------------


def test_recordings_are_compared_by_the_encoders_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An encoder of (1, 0) for the louder and (0.6, 0.8) for the other sound: cosine 0.6."""
    import pandas as pd

    from aegis.audio import write_wav
    from aegis.tables import Run, check_table
    from aegis.work import ItemResult, notes

    class Encoder:
        def embed(self, samples: np.ndarray) -> np.ndarray:
            loud = float(np.abs(samples).max()) > 0.5
            return np.array([1.0, 0.0] if loud else [0.6, 0.8], np.float32)

    monkeypatch.setattr(notes.engines, "load", lambda role, name: Encoder())
    write_wav(tmp_path / "a.wav", np.clip(sound(2.0) * 9, -0.9, 0.9))
    write_wav(tmp_path / "b.wav", sound(2.0) * 0.5)
    item = {"recording_id": "r", "condition": "converted", "original": "a.wav", "file": "b.wav"}
    plain = notes.compare_spectra(item, {}, Run(tmp_path))
    assert set(plain) == {"correlation"}
    value = notes.compare_spectra(item, {"acoustic": ["clap"]}, Run(tmp_path))
    assert value["clap"] == pytest.approx(0.6, abs=1e-6)

    made = pd.DataFrame([
        {"recording_id": "r", "condition": c, "status": "ok", "reason": None, "duration_s": 2.0,
         "inserted_s": 0.0} for c in ("converted", "redacted")
    ])  # fmt: skip
    tables = {
        "recordings": pd.DataFrame([{"recording_id": "r", "duration_s": 2.0}]),
        "turns": pd.DataFrame(columns=["recording_id", "turn_id", "text", "language"]),
        "turn_transcripts": pd.DataFrame(columns=["recording_id", "condition", "turn_id", "text"]),
        "reconstructions": made,
        "timeline": pd.DataFrame(
            columns=["recording_id", "condition", "kind", "out_start", "source_start"]
        ),
    }
    result = ItemResult("r:converted", "ok", None, value, 0.0, 0.0, False)
    found = check_table("acoustics", notes.acoustic_table(tables, [item], [result]))
    rows = found.set_index(["condition", "measure"])
    assert rows.loc[("converted", "CLAP similarity"), "value"] == pytest.approx(0.6, abs=1e-6)
    assert rows.loc[("converted", "HeAR similarity"), "status"] == "not_applicable"
    assert rows.loc[("redacted", "CLAP similarity"), "status"] == "not_applicable"
