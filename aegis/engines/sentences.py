"""Sentence encoders: how alike two transcripts are beyond word errors.

Unit: one transcript. ``ngrams`` counts words and character trigrams, so it hears wording
and not meaning; it stands in where no sentence model is at hand. ``mpnet`` is the paper's
(Song et al. 2020), mean-pooled, from weights in ``models/mpnet``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from aegis.engines import EngineInfo, Vectors, register
from aegis.errors import EngineUnavailable


class NgramEncoder:
    """Hashed counts of words and character trigrams, damped by the square root."""

    info = EngineInfo("sentence_encoder", "ngrams", "1", "Apache-2.0")

    def __init__(self) -> None:
        from sklearn.feature_extraction.text import HashingVectorizer

        self._parts = [
            HashingVectorizer(n_features=2**12, alternate_sign=False, norm=None, **options)
            for options in (
                {"ngram_range": (1, 1)},
                {"analyzer": "char_wb", "ngram_range": (3, 3)},
            )
        ]

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Unit rows, shape (len(texts), 8192); a text without words is zero."""
        rows = np.hstack([np.sqrt(part.transform(texts).toarray()) for part in self._parts])
        length = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray(rows / np.where(length > 0, length, 1.0), dtype=np.float32)


class MpnetEncoder:
    """Mean of the last layer over the tokens of a text, normalised."""

    info = EngineInfo(
        "sentence_encoder", "mpnet", "all-mpnet-base-v2", "Apache-2.0", embedded=False
    )

    def __init__(self, folder: str) -> None:
        import torch
        from transformers import AutoModel, AutoTokenizer

        self._torch = torch
        self._tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        self._model: Any = AutoModel.from_pretrained(folder, local_files_only=True).eval()

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Unit rows, shape (len(texts), 768)."""
        tokens = self._tokenizer(list(texts), padding=True, truncation=True, return_tensors="pt")
        with self._torch.inference_mode():
            hidden = self._model(**tokens).last_hidden_state
        mask = tokens["attention_mask"][..., None].float()
        mean = (hidden * mask).sum(1) / mask.sum(1)
        return np.asarray(self._torch.nn.functional.normalize(mean, dim=1).numpy())


@register("sentence_encoder", "ngrams")
def load_ngrams() -> NgramEncoder:
    """Needs no weights."""
    return NgramEncoder()


@register("sentence_encoder", "mpnet")
def load_mpnet() -> MpnetEncoder:
    """Weights in the layout of transformers."""
    from aegis.weights import MODELS

    folder = MODELS / "mpnet"
    if not (folder / "config.json").exists():
        raise EngineUnavailable(
            "mpnet: put sentence-transformers/all-mpnet-base-v2 in models/mpnet"
        )
    return MpnetEncoder(str(folder))
