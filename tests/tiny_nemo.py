"""Makes a tiny random NeMo model: ``python tiny_nemo.py sortformer|canary FILE.nemo``.

Runs in the engine's own environment; the architectures are those of the published models.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from nemo.collections.asr.models import EncDecMultiTaskModel, SortformerEncLabelModel
from nemo.collections.common.tokenizers.canary_tokenizer import CanaryTokenizer
from nemo.collections.common.tokenizers.sentencepiece_tokenizer import create_spt_model
from omegaconf import OmegaConf

MODULES = "nemo.collections.asr.modules"
TOKENS = "nemo.collections.common.tokenizers.canary_tokenizer.CanaryTokenizer"
PREPROCESSOR = {
    "_target_": f"{MODULES}.AudioToMelSpectrogramPreprocessor", "sample_rate": 16000,
    "window_size": 0.025, "window_stride": 0.01, "features": 80, "n_fft": 512, "dither": 0.0,
}  # fmt: skip
ENCODER = {
    "_target_": f"{MODULES}.ConformerEncoder", "feat_in": 80, "n_layers": 1, "d_model": 32,
    "subsampling": "dw_striding", "subsampling_factor": 8, "subsampling_conv_channels": 16,
    "n_heads": 2, "conv_kernel_size": 9,
    **dict.fromkeys(["dropout", "dropout_pre_encoder", "dropout_emb", "dropout_att"], 0.0),
}  # fmt: skip


def transformer(width: int, n_layers: int) -> dict[str, Any]:
    return {
        "_target_": f"{MODULES}.transformer.transformer_encoders.TransformerEncoder",
        "num_layers": n_layers, "hidden_size": width, "inner_size": 2 * width,
        "num_attention_heads": 2,
    }  # fmt: skip


def sortformer(folder: Path) -> Any:
    return SortformerEncLabelModel(OmegaConf.create({
        "sample_rate": 16000, "pil_weight": 0.5, "ats_weight": 0.5, "max_num_of_spks": 4,
        "model_defaults": {"fc_d_model": 32, "tf_d_model": 16}, "streaming_mode": False,
        "preprocessor": PREPROCESSOR, "encoder": ENCODER,
        "sortformer_modules": {
            "_target_": f"{MODULES}.sortformer_modules.SortformerModules", "num_spks": 4,
            "fc_d_model": 32, "tf_d_model": 16,
        },
        "transformer_encoder": transformer(16, 1),
        "loss": {"_target_": "nemo.collections.asr.losses.bce_loss.BCELoss"},
    }))  # fmt: skip


def canary(folder: Path) -> Any:
    names = [
        "startofcontext",
        "unklang",
        "itn",
        "noitn",
        "timestamp",
        "notimestamp",
        "diarize",
        "nodiarize",
        "en",
        "fr",
    ]
    moods = ("undefined", "neutral", "angry", "happy", "sad")
    names += [*(f"emo:{mood}" for mood in moods), *(str(k) for k in range(8))]
    CanaryTokenizer.build_special_tokenizer(names, folder / "spl")
    text = folder / "text.txt"
    lines = [f"the quick brown fox jumps over lazy dogs {chr(97 + k)}" for k in range(26)]
    text.write_text("\n".join(lines), "utf-8")
    create_spt_model(
        str(text), vocab_size=40, sample_size=-1, do_lower_case=False, output_dir=str(folder / "w")
    )
    tokenizers = {
        name: {"dir": str(folder / place), "type": "bpe"}
        for name, place in (("spl_tokens", "spl"), ("en", "w"))
    }
    decoder = {
        "max_sequence_length": 512, "num_token_types": 0, "embedding_dropout": 0.0,
        "hidden_size": 32, "inner_size": 64, "num_layers": 1, "num_attention_heads": 2,
        "hidden_act": "relu", "pre_ln": True, "vocab_size": None,
    }  # fmt: skip
    return EncDecMultiTaskModel(OmegaConf.create({
        "sample_rate": 16000, "prompt_format": "canary2",
        "model_defaults": {"asr_enc_hidden": 32, "lm_enc_hidden": 32, "lm_dec_hidden": 32},
        "tokenizer": {
            "type": "agg", "dir": None, "langs": tokenizers,
            "custom_tokenizer": {"_target_": TOKENS},
        },
        "preprocessor": PREPROCESSOR | {"normalize": "per_feature"}, "encoder": ENCODER,
        "transf_encoder": transformer(32, 0),
        "transf_decoder": {
            "_target_": f"{MODULES}.transformer.get_nemo_transformer", "model_name": None,
            "pretrained": False, "encoder": None, "pre_ln_final_layer_norm": True,
            "config_dict": decoder,
        },
        "head": {
            "_target_": "nemo.collections.asr.parts.submodules.token_classifier.TokenClassifier",
            "num_layers": 1, "activation": "relu", "log_softmax": True, "hidden_size": 32,
            "num_classes": None,
        },
        "decoding": {
            "strategy": "beam", "return_best_hypothesis": True,
            "beam": {"beam_size": 1, "max_generation_delta": 20},
        },
        "loss": {
            "_target_": "nemo.collections.common.losses.smoothed_cross_entropy"
            ".SmoothedCrossEntropyLoss",
            "label_smoothing": 0.0, "pad_id": None,
        },
        "optim": {"name": "adamw", "lr": 1e-3},
    }))  # fmt: skip


if __name__ == "__main__":
    torch.manual_seed(4)
    target = Path(sys.argv[2])
    {"sortformer": sortformer, "canary": canary}[sys.argv[1]](target.parent).save_to(str(target))
