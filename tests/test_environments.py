"""Engines in their own environments, with tiny random checkpoints (`make test-engines`).

A test runs where its environment is installed and skips where not; nothing is downloaded but
packages, and no published weights are read.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aegis.engines import EditRequest, Span, Voice, Word, paper_speech, worker
from aegis.engines.paper_render import F5
from aegis.engines.paper_speech import Canary, Sortformer
from aegis.engines.worker import Worker
from aegis.errors import ItemError

pytestmark = pytest.mark.environment


def need(name: str) -> None:
    if worker.find_python(name) is None:
        pytest.skip(f"environment {name} is not installed (`aegis engine install {name}`)")


@pytest.mark.parametrize("name", [n for n in worker.environment_names() if n != "toy"])
def test_an_installed_environment_has_the_expected_calls(name: str) -> None:
    need(name)
    assert worker.check(name)


SMALL = {
    "dim": 32, "depth": 1, "heads": 2, "ff_mult": 2, "text_dim": 16, "conv_layers": 1,
    "dim_head": 16,
}  # fmt: skip
MAKE = """
import json, sys
from pathlib import Path
import torch
from f5_tts.infer import utils_infer as u
from f5_tts.model import CFM, DiT
from f5_tts.model.utils import get_tokenizer
from safetensors.torch import save_file
from vocos import Vocos

folder, sizes = Path(sys.argv[1]), json.loads(sys.argv[2])
vocabulary = Path(u.__file__).parent / "examples" / "vocab.txt"
(folder / "vocab.txt").write_text(vocabulary.read_text("utf-8"), "utf-8")
torch.manual_seed(4)
names, size = get_tokenizer(str(vocabulary), "custom")
spectra = dict(n_fft=1024, hop_length=256, win_length=1024, n_mel_channels=100,
               target_sample_rate=24000, mel_spec_type="vocos")
model = CFM(transformer=DiT(**sizes, text_num_embeds=size, mel_dim=100), mel_spec_kwargs=spectra,
            odeint_kwargs={"method": "euler"}, vocab_char_map=names)
for weight in model.transformer.proj_out.parameters():
    torch.nn.init.normal_(weight, std=0.3)
state = {f"ema_model.{k}": v.contiguous() for k, v in model.state_dict().items()}
save_file(state, str(folder / "model.safetensors"))
config = '''
feature_extractor:
  class_path: vocos.feature_extractors.MelSpectrogramFeatures
  init_args: {sample_rate: 24000, n_fft: 1024, hop_length: 256, n_mels: 100, padding: center}
backbone:
  class_path: vocos.models.VocosBackbone
  init_args: {input_channels: 100, dim: 32, intermediate_dim: 32, num_layers: 1}
head:
  class_path: vocos.heads.ISTFTHead
  init_args: {dim: 32, n_fft: 1024, hop_length: 256, padding: center}
'''
(folder / "config.yaml").write_text(config)
torch.save(Vocos.from_hparams(str(folder / "config.yaml")).state_dict(),
           folder / "pytorch_model.bin")
"""


@pytest.fixture(scope="module")
def f5(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Options of the worker over a random model of the published kind, small enough for a CPU."""
    need("f5")
    folder = tmp_path_factory.mktemp("f5")
    python = str(worker.find_python("f5"))
    subprocess.run([python, "-c", MAKE, str(folder), json.dumps(SMALL)], check=True)
    return {
        "device": "cpu", "checkpoint": str(folder / "model.safetensors"), "steps": 2,
        "vocabulary": str(folder / "vocab.txt"), "vocoder": str(folder), "architecture": SMALL,
    }  # fmt: skip


def asked(seed: int = 7) -> EditRequest:
    words = [("my", 0.5, 0.7), ("name", 0.8, 1.2), ("is", 1.3, 1.4), ("Doris", 1.6, 2.0),
             ("and", 2.4, 2.6), ("I", 2.7, 2.8), ("cough", 2.9, 3.6)]  # fmt: skip
    text = " ".join(word for word, _, _ in words)
    span = Span(text.index("Doris"), text.index("Doris") + 5, "Nina")
    noise = np.random.default_rng(3).normal(0, 0.1, 4 * 16000).astype(np.float32)
    made = tuple(Word(*word) for word in words)
    voice = Voice("v", noise[:1], "none", "en")
    target = text.replace("Doris", "Nina")
    return EditRequest(noise, text, target, (span,), made, voice, "en", seed)


def test_f5_tts_renders_a_turn_with_random_weights(
    f5: dict[str, Any], capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The real package end to end: rate, length, seed, one load, and a silent channel."""
    with Worker("f5", f5) as started:
        renderer = F5(started)
        first = renderer.render(asked())
        assert first.dtype == np.float32
        assert np.isfinite(first).all()
        # The reference is "and I cough" from 2.3 to 3.7 s with 50 ms after it; its pace holds.
        expected_s = 1.45 * len("mynameisNinaandIcough") / len("andIcough")
        assert first.size / 16000 == pytest.approx(expected_s, abs=0.03)
        np.testing.assert_array_equal(first, renderer.render(asked()))
        assert not np.array_equal(first, renderer.render(asked(seed=8)))
        assert started.n_starts == 1
    said = "".join(capfd.readouterr())
    assert "Nina" not in said
    assert "cough" not in said


TINY_NEMO = str(Path(__file__).with_name("tiny_nemo.py"))


def nemo(kind: str, folder: Path) -> dict[str, Any]:
    """Options of the worker over a random model that :mod:`tiny_nemo` makes."""
    need("nemo")
    file = folder / f"{kind}.nemo"
    command = [str(worker.find_python("nemo")), TINY_NEMO, kind, str(file)]
    subprocess.run(command, check=True, capture_output=True)
    return {"device": "cpu", "model": kind, "checkpoint": str(file)}


def test_sortformer_diarizes_with_random_weights(tmp_path: Path) -> None:
    """NeMo end to end: a .nemo file restored once, turns inside the recording, the same twice."""
    options = nemo("sortformer", tmp_path)
    noise = np.random.default_rng(1).normal(0, 0.1, 3 * 16000).astype(np.float32)
    with Worker("nemo", options) as started:
        diarizer = Sortformer(started)
        turns = diarizer.diarize(noise, None)
        assert turns
        assert all(0.0 <= turn.start_s < turn.end_s <= 3.0 for turn in turns)
        assert {turn.speaker for turn in turns} <= {f"speaker_{k}" for k in range(4)}
        assert turns == diarizer.diarize(noise, 2)
        with pytest.raises(ItemError, match="less than 0"):
            diarizer.diarize(noise[:100], None)
        assert started.n_starts == 1


def test_canary_transcribes_with_random_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NeMo end to end: the prompt's language, word times that hold, the same text twice."""
    options = nemo("canary", tmp_path)
    monkeypatch.setattr(paper_speech, "find_speech", lambda *_: [(0.0, 4.0)])  # noise has none
    spoken = np.random.default_rng(1).normal(0, 0.1, 4 * 16000).astype(np.float32)
    with Worker("nemo", options) as started:
        heard = Canary(worker=started).transcribe(spoken, "en")
        words = [word for segment in heard.segments for word in segment.words]
        assert words
        timed = [word for word in words if word.start_s is not None and word.end_s is not None]
        assert all(word.start_s < word.end_s for word in timed)
        assert Canary(worker=started).transcribe(spoken, "en") == heard
        untimed = Canary(as_paper=True, worker=started).transcribe(spoken, "en")
        assert {w.start_s for s in untimed.segments for w in s.words} == {None}
        with pytest.raises(ItemError, match="needs the recording's language"):
            Canary(worker=started).transcribe(spoken, None)
        assert started.n_starts == 1
