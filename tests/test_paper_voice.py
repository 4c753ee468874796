"""The paper's speaker encoders with tiny random weights; Seed-VC through a stand-in program."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aegis import engines
from aegis.audio import Signal
from aegis.engines import Voice, worker
from aegis.engines.embedding import batch_by_length
from aegis.engines.paper_voice import (
    SeedVc,
    SpeechBrainEncoder,
    WavlmEncoder,
    fit_length,
    seed_vc_options,
)
from aegis.engines.worker import Worker
from aegis.errors import AudioError, EngineUnavailable, ItemError

SMALL: dict[str, dict[str, Any]] = {
    "ecapa": {
        "channels": [16, 16, 16, 16, 48], "kernel_sizes": [5, 3, 3, 3, 1],
        "dilations": [1, 2, 3, 4, 1], "attention_channels": 8, "lin_neurons": 12,
    },
    "xvector": {
        "tdnn_blocks": 5, "tdnn_channels": [16, 16, 16, 16, 48],
        "tdnn_kernel_sizes": [5, 3, 3, 1, 1], "tdnn_dilations": [1, 2, 3, 1, 1],
        "lin_neurons": 20,
    },
}  # fmt: skip


def sound(seconds: float, seed: int) -> Signal:
    rng = np.random.default_rng(seed)
    return rng.normal(0.0, 0.1, round(seconds * 16000)).astype(np.float32)


def random_model(name: str) -> Any:
    import torch
    from speechbrain.lobes.models.ECAPA_TDNN import ECAPA_TDNN
    from speechbrain.lobes.models.Xvector import Xvector

    torch.manual_seed(7)
    if name == "ecapa":
        model: Any = ECAPA_TDNN(80, **SMALL[name])
    else:
        model = Xvector(in_channels=24, activation=torch.nn.LeakyReLU, **SMALL[name])
    model.train()
    model(torch.randn(4, 200, 80 if name == "ecapa" else 24))  # running means that are not zero
    return model.eval()


@pytest.fixture(params=["ecapa", "xvector"])
def encoder(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[SpeechBrainEncoder, Path]:
    import torch

    path = tmp_path / "embedding_model.ckpt"
    torch.save(random_model(request.param).state_dict(), path)
    return SpeechBrainEncoder(request.param, path, "cpu", SMALL[request.param]), path


@pytest.mark.filterwarnings("ignore:Module .speechbrain:UserWarning")
def test_no_module_imports_on_sight_once_an_encoder_is_made(
    encoder: tuple[SpeechBrainEncoder, Path],
) -> None:
    """Pickle looks for a function in all modules; SpeechBrain's redirects would stop it."""
    import speechbrain

    def ask_all() -> None:
        for module in list(sys.modules.values()):
            getattr(module, "no_such_name", None)

    speechbrain.make_deprecated_redirections()
    with pytest.raises(ImportError, match="Lazy import"):
        ask_all()
    name = encoder[0].info.name
    SpeechBrainEncoder(name, encoder[1], "cpu", SMALL[name])
    ask_all()


def test_it_gives_what_the_librarys_own_interface_gives(
    encoder: tuple[SpeechBrainEncoder, Path],
) -> None:
    """SpeechBrain's EncoderClassifier over the same checkpoint, one window at a time."""
    import torch
    from speechbrain.inference.classifiers import EncoderClassifier
    from speechbrain.lobes.features import Fbank
    from speechbrain.processing.features import InputNormalization

    own, path = encoder
    name = own.info.name
    model = random_model(name)
    model.load_state_dict(torch.load(path, weights_only=True))
    modules = {
        "compute_features": Fbank(n_mels=80 if name == "ecapa" else 24),
        "mean_var_norm": InputNormalization(norm_type="sentence", std_norm=False),
        "embedding_model": model,
        "classifier": torch.nn.Identity(),
    }

    class Encoder:  # the hyperparameters that its constructor asks for
        label_encoder = None

    published = EncoderClassifier(modules, {"label_encoder": None})
    for k, seconds in enumerate((3.0, 1.2)):
        window = sound(seconds, k)
        vector = published.encode_batch(torch.from_numpy(window)[None])[0, 0].numpy()
        expected = vector / np.linalg.norm(vector)
        # Its x-vector pooling adds noise of 1e-5 to 9e-5; ours is the middle of it.
        np.testing.assert_allclose(
            own.embed([window])[0], expected, atol=2e-5 if name == "ecapa" else 5e-4
        )


def test_a_batch_gives_what_single_windows_give(
    encoder: tuple[SpeechBrainEncoder, Path],
) -> None:
    own, _ = encoder
    windows = [sound(3.0, 1), sound(1.5, 2), sound(3.0, 3), sound(2.0, 4), sound(1.5, 5)]
    together = own.embed(windows)
    assert together.shape == (5, own.dimension)
    alone = np.concatenate([own.embed([window]) for window in windows])
    assert np.sum(together * alone, axis=1).min() > 0.9999
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1.0, atol=1e-5)
    np.testing.assert_array_equal(own.embed(windows), together)


def test_no_windows_give_no_rows(encoder: tuple[SpeechBrainEncoder, Path]) -> None:
    assert encoder[0].embed([]).shape == (0, encoder[0].dimension)


@pytest.mark.parametrize(
    ("window", "message"),
    [
        (np.zeros(16000, np.float32), "silent"),
        (np.full(16000, np.nan, np.float32), "NaN"),
        (np.ones(10, np.float32), "400 mono samples"),
    ],
)
def test_windows_without_an_embedding_are_refused(
    encoder: tuple[SpeechBrainEncoder, Path], window: Signal, message: str
) -> None:
    with pytest.raises(AudioError, match=message):
        encoder[0].embed([sound(1.0, 1), window])


def test_a_checkpoint_of_other_sizes_is_not_loaded_in_part(tmp_path: Path) -> None:
    import torch

    state = random_model("ecapa").state_dict()
    state.pop(next(iter(state)))
    torch.save(state, tmp_path / "c.ckpt")
    with pytest.raises(RuntimeError, match="Missing key"):
        SpeechBrainEncoder("ecapa", tmp_path / "c.ckpt", "cpu", SMALL["ecapa"])


def test_the_published_sizes_are_those_of_the_published_models() -> None:
    """Parameters of the public checkpoints: 20.8 million floats are 83.3 MB for ECAPA."""
    from speechbrain.lobes.models.ECAPA_TDNN import ECAPA_TDNN

    from aegis.engines.paper_voice import ECAPA
    from aegis.weights import read_card

    model: Any = ECAPA_TDNN(80, **ECAPA)
    n_bytes = 4 * sum(value.numel() for value in model.state_dict().values())
    (file,) = read_card("ecapa").files
    assert file.size is not None
    assert abs(n_bytes / file.size - 1) < 0.01


def test_batches_hold_one_length_each_and_every_index_once() -> None:
    lengths = [5, 3, 5, 5, 3, 9]
    batches = batch_by_length(lengths, 2)
    assert batches == [[1, 4], [0, 2], [3], [5]]
    assert batch_by_length([]) == []


def test_wavlm_with_a_tiny_random_model(tmp_path: Path) -> None:
    import torch
    from transformers import WavLMConfig, WavLMForXVector

    torch.manual_seed(3)
    config = WavLMConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        conv_dim=(8, 8), conv_stride=(8, 8), conv_kernel=(16, 8), num_feat_extract_layers=2,
        num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=2, tdnn_dim=(8, 8, 8, 8, 24),
        xvector_output_dim=10, num_ctc_classes=4, vocab_size=4,
    )  # fmt: skip
    WavLMForXVector(config).save_pretrained(tmp_path)
    encoder = WavlmEncoder(tmp_path, "cpu")
    windows = [sound(1.0, 1), sound(0.5, 2), sound(1.0, 3)]
    together = encoder.embed(windows)
    assert together.shape == (3, 10)
    alone = np.concatenate([encoder.embed([window]) for window in windows])
    assert np.sum(together * alone, axis=1).min() > 0.9999


@pytest.mark.parametrize("name", ["ecapa", "xvector", "wavlm-sv"])
def test_missing_weights_say_where_they_belong(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("aegis.weights.MODELS", tmp_path)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    engines.release()
    with pytest.raises(EngineUnavailable, match=f"model {name}: no weights in"):
        engines.load("encoder", name)


# --- Seed-VC -------------------------------------------------------------------------------

STAND_IN = """
import os
import random

import numpy as np
import soundfile as sf
import torch

n_loads = 0


def load_models(args):
    global n_loads
    n_loads += 1
    assert os.path.exists(args.checkpoint) and os.path.exists(args.config) and args.fp16
    return ("model", n_loads)


def main(args):
    model, n = load_models(args)
    assert n == 1, "the models were loaded again"
    print("source said: my name is Doris")
    samples, rate = sf.read(args.source)
    reference, _ = sf.read(args.target)
    assert len(reference) <= 25 * rate
    assert (args.length_adjust, args.f0_condition, args.diffusion_steps) == (1.0, False, 30)
    noise = torch.randn(len(samples)).numpy() * 0.01 + np.random.rand() * 0 + random.random() * 0
    higher = np.repeat(samples + noise, 2)[: int(len(samples) * 22050 / 16000)]
    os.makedirs(args.output, exist_ok=True)
    stems = [os.path.basename(p).split(".")[0] for p in (args.source, args.target)]
    sf.write(os.path.join(args.output, f"vc_{stems[0]}_{stems[1]}_1.0_30_0.7.wav"), higher, 22050)
"""
STAND_IN_2 = """
def load_v2_models(args):
    return args.ar_checkpoint_path, args.cfm_checkpoint_path, args.compile


def convert_voice_v2(source_audio_path, target_audio_path, args):
    return args.diffusion_steps, args.top_p


def main(args):
    convert_voice_v2(args.source, args.target, args)
"""


@pytest.fixture
def seed_vc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment whose program has the signatures of Seed-VC, and stand-in weights."""
    source = tmp_path / "seedvc" / "src"
    source.mkdir(parents=True)
    (source / "inference.py").write_text(STAND_IN)
    (source / "inference_v2.py").write_text(STAND_IN_2)
    monkeypatch.setenv("AEGIS_ENVS", str(tmp_path))
    monkeypatch.setenv("AEGIS_PYTHON_SEEDVC", sys.executable)
    weights = tmp_path / "weights"
    weights.mkdir()
    for name in ("checkpoint", "config"):
        Path(seed_vc_options(1, weights)[name]).write_text("x")
    return weights


def voice(seconds: float) -> Voice:
    return Voice("v", sound(seconds, 9), "none", "en")


def test_seed_vc_loads_once_and_a_seed_fixes_the_result(
    seed_vc: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    options = seed_vc_options(1, seed_vc) | {"device": "cpu"}
    with Worker("seedvc", options) as started:
        converter = SeedVc(1, started)
        source = sound(2.0, 1)
        first = converter.convert(source, voice(30.0), source, 5)
        assert first.shape == source.shape
        np.testing.assert_array_equal(first, converter.convert(source, voice(30.0), source, 5))
        assert not np.array_equal(first, converter.convert(source, voice(30.0), source, 6))
        assert started.n_starts == 1
        with pytest.raises(ItemError, match="unsupported: an empty source"):
            converter.convert(source[:0], voice(5.0), source, 5)
    assert "Doris" not in "".join(capfd.readouterr())


def test_seed_vc_signatures_are_checked_without_running_it(seed_vc: Path) -> None:
    assert "as expected" in worker.check("seedvc")["signatures"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("args.fp16", "args.half", r"load_models reads args\.half"),
        ("def main(args)", "def main(args, seed)", r"main\('args', 'seed'\), expected"),
        ("def load_models", "def get_models", "no function load_models"),
    ],
)
def test_a_changed_seed_vc_is_unavailable(seed_vc: Path, old: str, new: str, message: str) -> None:
    path = seed_vc.parent / "seedvc" / "src" / "inference.py"
    path.write_text(STAND_IN.replace(old, new))
    with pytest.raises(EngineUnavailable, match=message):
        worker.check("seedvc")


def test_seed_vc_without_a_clone_says_so(seed_vc: Path) -> None:
    (seed_vc.parent / "seedvc" / "src" / "inference.py").unlink()
    with pytest.raises(EngineUnavailable, match=r"no file inference\.py"):
        worker.check("seedvc")


def test_lengths_are_fitted_within_a_bound_only() -> None:
    assert fit_length(np.ones(15990, np.float32), 16000, "x").size == 16000
    assert fit_length(np.ones(16500, np.float32), 16000, "x").size == 16000
    with pytest.raises(AudioError, match=r"x: 1\.50 times the length"):
        fit_length(np.ones(24000, np.float32), 16000, "x")
