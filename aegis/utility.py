"""What a listener's ASR still understands: word errors and likeness of the texts.

Unit: one transcript of one version of an utterance by one ASR system. Word errors are
summed over utterances, never averaged; a failed transcription is counted and takes no
part. Texts are compared in the form of the Whisper normaliser.

Functions: :func:`summarise_utility`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aegis.stats import NAN
from aegis.text import count_errors, normalise, pooled_error_rate

COLUMNS = [
    "system", "pseudo_profile", "asr", "test_set", "n_utterances", "n_failed", "n_reference",
    "errors", "wer", "similarity",
]  # fmt: skip


def summarise_utility(
    heard: pd.DataFrame, encode: Callable[[Sequence[str]], NDArray[np.float32]]
) -> pd.DataFrame:
    """Corpus WER and mean cosine by system, pseudo-profile, ASR and test set (and all).

    Parameters
    ----------
    heard
        Columns system, pseudo_profile, asr, test_set, language, reference, text (NA: failed).
    encode
        Unit rows of texts (a sentence encoder).
    """
    both = [heard.assign(test_set="all")]
    if len(set(heard["test_set"].dropna())) > 1:
        both.append(heard[heard["test_set"].notna()])
    rows: list[dict[str, Any]] = []
    keys = ["system", "pseudo_profile", "asr", "test_set"]
    for names, own in pd.concat(both).groupby(keys, sort=True):
        done = own[own["text"].notna()]
        pairs = [
            (normalise(str(r), str(lang or "en")), normalise(str(t), str(lang or "en")))
            for r, t, lang in zip(done["reference"], done["text"], done["language"], strict=True)
        ]
        counts = [count_errors(*pair) for pair in pairs]
        rows.append({
            **dict(zip(keys, names, strict=True)), "n_utterances": len(own),
            "n_failed": len(own) - len(done), "n_reference": sum(c.n_reference for c in counts),
            "errors": sum(c.errors for c in counts if c.n_reference),
            "wer": pooled_error_rate(counts), "similarity": _similarity(pairs, encode),
        })  # fmt: skip
    return pd.DataFrame(rows, columns=COLUMNS)


def _similarity(
    pairs: list[tuple[str, str]], encode: Callable[[Sequence[str]], NDArray[np.float32]]
) -> float:
    if not pairs:
        return NAN
    left, right = (encode([pair[side] for pair in pairs]) for side in (0, 1))
    return float((left * right).sum(axis=1).mean())
