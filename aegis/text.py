"""Word errors, and the normal forms in which texts are compared.

Unit: one recording in one condition against one reference text; errors are counts that
are summed over recordings, never averaged ratios. Two normal forms stand side by side:

- ``plain``: the Whisper normaliser (English) or its basic form (other languages);
- ``by value``: numbers, dates, doses and units first take their canonical form, so that
  "five hundred milligrams" equals "500 mg" and "0.25" stays one token. The Whisper rules
  then see only the words; tokens with digits pass them untouched (ours).

An empty reference has no error rate: its row keeps the insertions with
``n_reference = 0`` and pooling leaves it out.

Functions: :func:`normalise`, :func:`count_errors`, :func:`score_transcripts`,
:func:`pooled_error_rate`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pandas as pd

from aegis.canonical import canonical
from aegis.errors import TableError

CANONICAL_LANGUAGES = ("en", "fr")
BY_VALUE = "_by_value"
"""Ending of a reference's name where texts are compared by value."""


@dataclass(frozen=True)
class ErrorCounts:
    """Word errors of one pair of texts."""

    n_reference: int
    substitutions: int
    deletions: int
    insertions: int

    @property
    def errors(self) -> int:
        return self.substitutions + self.deletions + self.insertions


@lru_cache(maxsize=4)
def _normaliser(language: str) -> Any:
    if language == "en":
        from whisper_normalizer.english import EnglishTextNormalizer

        return EnglishTextNormalizer()
    from whisper_normalizer.basic import BasicTextNormalizer

    return BasicTextNormalizer()


@lru_cache(maxsize=16384)
def normalise(text: str, language: str, by_value: bool = False) -> str:
    """A text in the form in which words are counted, tokens parted by one space."""
    if not by_value or language not in CANONICAL_LANGUAGES:
        return " ".join(str(_normaliser(language)(text)).split())
    tokens = _rejoin(canonical(text, language)).split()
    values = [token for token in tokens if any(c.isdigit() for c in token)]
    # Letters stand in for values, because the Whisper rules rewrite anything with digits.
    shielded = [f"qz{_letters(values.index(t))}" if t in values else t for t in tokens]
    plain = str(_normaliser(language)(" ".join(shielded))).split()
    back = {f"qz{_letters(k)}": value for k, value in enumerate(values)}
    return " ".join(back.get(token, token) for token in plain)


def _rejoin(text: str) -> str:
    """Put elided words together again: ``isn' t``, ``webber 's``."""
    return re.sub(r"(?<=\w) ?' ?(?=\w)", "'", text)


def _letters(number: int) -> str:
    """A number in letters a-j, so that it survives a text normaliser: 12 -> ``bc``."""
    return "".join("abcdefghij"[int(digit)] for digit in str(number)) + "qz"


def count_errors(reference: str, hypothesis: str) -> ErrorCounts:
    """Substitutions, deletions and insertions of two normalised texts."""
    import jiwer

    if not reference.split():
        return ErrorCounts(0, 0, 0, len(hypothesis.split()))
    found = jiwer.process_words(reference, hypothesis)
    total = found.hits + found.substitutions + found.deletions
    return ErrorCounts(total, found.substitutions, found.deletions, found.insertions)


def score_transcripts(
    transcripts: pd.DataFrame,
    references: Mapping[str, str],
    languages: Mapping[str, str],
    name: str,
) -> pd.DataFrame:
    """Rows of ``transcript_scores``: one a transcript, in plain form and by value.

    Parameters
    ----------
    transcripts
        Columns recording_id, condition, text, status, reason; one row a pair of
        recording and condition.
    references
        Reference text by recording_id; pairing is by id, recordings without are left out.
    languages
        Language by recording_id.
    name
        Name of the reference (``source``, ``gold``); ``<name>_by_value`` beside it.

    Raises
    ------
    TableError
        A recording occurs twice in one condition.
    """
    twice = transcripts[transcripts.duplicated(["recording_id", "condition"])]
    if len(twice):
        raise TableError(f"transcripts: {len(twice)} recordings twice in one condition")
    rows: list[dict[str, Any]] = []
    for row in transcripts.to_dict("records"):
        recording_id = row["recording_id"]
        if recording_id not in references:
            continue
        for by_value in (False, True):
            language = languages.get(recording_id, "en")
            reference = normalise(references[recording_id], language, by_value)
            heard = "" if pd.isna(row["text"]) else row["text"]
            counts = count_errors(reference, normalise(heard, language, by_value))
            failed = row["status"] != "ok"
            reason = row["reason"] if failed else None
            if not failed and counts.n_reference == 0:
                failed, reason = True, "empty reference: insertions counted apart"
            rows.append(
                {
                    "recording_id": recording_id,
                    "condition": row["condition"],
                    "reference": name + BY_VALUE * by_value,
                    "n_reference": counts.n_reference,
                    "substitutions": counts.substitutions,
                    "deletions": counts.deletions,
                    "insertions": counts.insertions,
                    "status": "not_applicable" if failed else "ok",
                    "reason": reason,
                }
            )
    return pd.DataFrame(rows)


def pooled_error_rate(counts: Sequence[ErrorCounts]) -> float:
    """Corpus word error rate: summed errors over summed reference words; NaN without words."""
    total = sum(c.n_reference for c in counts)
    return sum(c.errors for c in counts if c.n_reference) / total if total else float("nan")
