"""Sentence encoders: how alike two transcripts are beyond word errors.

Unit: one transcript. ``ngrams`` counts words and character trigrams, so it hears wording
and not meaning. ``minilm`` (Wang et al. 2020) is embedded, ``mpnet`` (Song et al. 2020) the
paper's; both pool the mean over tokens, texts of one length together and never padded.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from aegis.engines import EngineInfo, Needs, Vectors, register
from aegis.engines.devices import choose_device
from aegis.engines.embedding import batch_by_length
from aegis.weights import model_dir, read_card

BATCH = 64
MOST_PIECES = {"minilm": 256, "mpnet": 384}


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


class TransformerSentences:
    """Mean of a transformer's token vectors, unit-norm; texts of one length go together."""

    def __init__(self, name: str, folder: Path, device: str) -> None:
        import torch
        from tokenizers import Tokenizer
        from transformers import AutoModel

        torch.set_num_threads(1)
        self._torch, self._device = torch, device
        card = read_card(name)
        embedded = card.embedded
        self.info = EngineInfo(
            "sentence_encoder", name, card.revision, card.licence, device, embedded
        )
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MOST_PIECES[name])
        model: Any = AutoModel.from_pretrained(folder, local_files_only=True)  # nosec B615 # a local folder
        self._model = model.eval().to(device)
        self.dimension = int(model.config.hidden_size)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Unit-norm rows, shape (len(texts), dimension); an empty text has a vector, too."""
        ids = [self._tokenizer.encode(text).ids for text in texts]
        out = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for rows in batch_by_length([len(one) for one in ids], BATCH):
            tokens = self._torch.tensor([ids[row] for row in rows], device=self._device)
            with self._torch.inference_mode():
                states = self._model(tokens, self._torch.ones_like(tokens)).last_hidden_state
            out[rows] = states.mean(dim=1).float().cpu().numpy()
        return np.asarray(out / np.linalg.norm(out, axis=1, keepdims=True), dtype=np.float32)


@register("sentence_encoder", "ngrams")
def load_ngrams() -> NgramEncoder:
    """Needs no weights."""
    return NgramEncoder()


@register("sentence_encoder", "minilm", Needs(weights=("minilm",)))
def load_minilm() -> TransformerSentences:
    """Carried by a package, so it needs no hub."""
    return _transformer("minilm")


@register("sentence_encoder", "mpnet", Needs(weights=("mpnet",)))
def load_mpnet() -> TransformerSentences:
    """The paper's."""
    return _transformer("mpnet")


def _transformer(name: str) -> TransformerSentences:
    return TransformerSentences(name, model_dir(name), choose_device(name, needs_card=False))
