"""Fine-tuning an attacker's encoder: a small random network learns to tell speakers apart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import soundfile
from conftest import StandIn
from test_paper_voice import SMALL, random_model

from aegis.engines import EngineInfo
from aegis.engines.finetune import Recipe, adapt_encoder
from aegis.engines.paper_voice import SpeechBrainEncoder
from aegis.errors import ParamError
from aegis.leakage_adapted import attack_adapted
from aegis.leakage_tables import Settings
from aegis.segments import ORIGINAL, Segments

QUICK = Recipe(n_steps=25, batch=8, crop_s=0.5, learning_rate=5e-3)


@pytest.fixture
def encoder(tmp_path: Path) -> SpeechBrainEncoder:
    import torch

    path = tmp_path / "embedding_model.ckpt"
    torch.save(random_model("ecapa").state_dict(), path)
    return SpeechBrainEncoder("ecapa", path, "cpu", SMALL["ecapa"])


def coloured(speaker: int, seed: int, seconds: float = 0.8) -> np.ndarray:
    """Noise that changes between two filters of the speaker every tenth of a second (a constant
    colour would be lost: the features' mean is taken off)."""
    taps = np.random.default_rng(speaker).standard_normal((2, 32))
    noise = np.random.default_rng(1000 * speaker + seed).standard_normal(round(seconds * 16_000))
    first, second = (np.convolve(noise, row, "same") for row in taps)
    sound = np.where(np.arange(noise.size) // 1_600 % 2 == 0, first, second)
    return (0.1 * sound / np.abs(sound).max()).astype(np.float32)


def test_the_loss_falls_and_speakers_part(encoder: SpeechBrainEncoder) -> None:
    speakers = [f"s{i % 4}" for i in range(16)]
    sounds = [coloured(i % 4, i) for i in range(16)]
    longer = replace(QUICK, n_steps=60)
    losses = adapt_encoder(encoder, sounds, speakers, longer)
    assert len(losses) == 60
    assert np.mean(losses[-5:]) < 0.7 * np.mean(losses[:3])
    fresh = encoder.embed([coloured(i % 4, 100 + i) for i in range(8)])
    cosine = fresh @ fresh.T
    same = np.equal.outer(np.arange(8) % 4, np.arange(8) % 4) & ~np.eye(8, dtype=bool)
    assert cosine[same].mean() > cosine[~same & ~np.eye(8, dtype=bool)].mean() + 0.2


def test_one_speaker_teaches_nothing(encoder: SpeechBrainEncoder) -> None:
    with pytest.raises(ParamError, match="1 training speakers"):
        adapt_encoder(encoder, [coloured(0, 0)], ["a"], QUICK)


def test_the_attack_is_on_speakers_that_the_encoder_never_heard(
    encoder: SpeechBrainEncoder, tmp_path: Path, stand_in: StandIn
) -> None:
    rows, files = [], {}
    for speaker in range(8):
        for number in range(2):
            for system, profile in ((ORIGINAL, 0), ("sim", 1)):
                path = tmp_path / f"{speaker}-{number}-{system}.wav"
                soundfile.write(path, coloured(speaker, number + 10 * profile), 16_000)
                name = f"r{speaker}-{number}"
                rows.append({
                    "source": name, "system": system, "pseudo_profile": profile,
                    "speaker": f"s{speaker}",
                })  # fmt: skip
                files[name, system, profile] = path
    segments = Segments.build(pd.DataFrame(rows), {"none": np.ones((len(rows), 2))})
    stand_in("encoder", "tiny", lambda: encoder)
    found = attack_adapted(segments, files, "tiny", Settings(n_draws=20), "whole", QUICK)
    assert found["enrolment"].tolist() == ["original", "anonymised"]
    direct = found.iloc[0]
    assert (direct["n_train_speakers"], direct["n_speakers"]) == (4, 4)
    assert direct["n_target"] == 8
    assert found.iloc[1]["status"] == "not_applicable"
    assert direct["gap_to_original"] == pytest.approx(direct["eer"] - direct["eer_original"])


def test_what_cannot_be_trained_is_said(stand_in: StandIn) -> None:
    table = pd.DataFrame({
        "source": [f"r{i}" for i in range(8)], "system": ORIGINAL, "pseudo_profile": 0,
        "speaker": [f"s{i}" for i in range(8)],
    })  # fmt: skip
    segments = Segments.build(table, {"none": np.ones((8, 2))})
    plain = SimpleNamespace(info=EngineInfo("encoder", "plain", "1", "none"))
    stand_in("encoder", "plain", lambda: plain)
    with pytest.raises(ParamError, match="ecapa and xvector"):
        attack_adapted(segments, {}, "plain", Settings(), "whole", QUICK)
    with pytest.raises(ParamError, match="a learned attack needs 8"):
        attack_adapted(segments.where(np.arange(8) < 4), {}, "plain", Settings(), "whole", QUICK)
