"""Text as a synthesiser takes it: plain characters, phonemes, pieces of bounded length.

Unit: one utterance. Phonemes are IPA with stress marks and the text's punctuation, by
espeak-ng, whose library comes in a wheel (``espeakng-loader``).

Functions: :func:`plain_text`, :func:`ascii_text`, :func:`phonemes`,
:func:`split_phonemes`.
"""

from __future__ import annotations

import logging
import re
import threading
import unicodedata
from functools import lru_cache
from typing import Any

from aegis.errors import AudioError, EngineUnavailable

# A mark between two digits belongs to the number.
_MARKS = re.compile(r"""(?:(?<!\d)[;:,.!?¡¿…"«»()\[\]{}]|[;:,.!?¡¿…"«»()\[\]{}](?!\d))+""")
_espeak_lock = threading.Lock()


def plain_text(text: str) -> str:
    """Text as the synthesisers accept it: NFC, straight quotes, simple spaces and dashes."""
    text = unicodedata.normalize("NFC", text).translate(
        {
            0x2018: "'",
            0x2019: "'",
            0x201C: '"',
            0x201D: '"',
            0x2013: "-",
            0x2014: ", ",
            0x2026: "...",
        }
    )
    text = re.sub(r"\s+", " ", text).strip()
    if not any(char.isalnum() for char in text):
        raise AudioError("synthesis: the text holds nothing to speak")
    return text


def ascii_text(text: str) -> str:
    """:func:`plain_text` without accents, for the engines that read ASCII only."""
    decomposed = unicodedata.normalize("NFKD", plain_text(text))
    return decomposed.encode("ascii", "ignore").decode()


@lru_cache(maxsize=8)
def _espeak(language: str) -> Any:
    """One resident espeak-ng phonemiser a language (the library is part of a wheel)."""
    try:
        import espeakng_loader
        from phonemizer.backend import EspeakBackend
        from phonemizer.backend.espeak.wrapper import EspeakWrapper
    except ImportError as error:
        raise EngineUnavailable(f"espeak-ng: {error}; install kokoro-onnx") from error
    EspeakWrapper.set_library(espeakng_loader.get_library_path())
    EspeakWrapper.set_data_path(espeakng_loader.get_data_path())
    quiet = logging.getLogger("aegis.phonemizer")
    quiet.setLevel(logging.ERROR)
    return EspeakBackend(
        language,
        preserve_punctuation=True,
        punctuation_marks=_MARKS,
        with_stress=True,
        # A foreign word is read in its language; the flag around it must not be spoken.
        language_switch="remove-flags",
        logger=quiet,
    )


def phonemes(text: str, language: str) -> str:
    """IPA with stress marks and punctuation, by espeak-ng (``en-us``, ``en-gb``, ``fr-fr``)."""
    with _espeak_lock:
        spoken = str(_espeak(language).phonemize([plain_text(text)], strip=True)[0])
    # French puts a space before some marks; the models were trained without.
    return re.sub(r"\s+([,;:.!?])", r"\1", spoken).strip()


def split_phonemes(text: str, limit: int) -> list[str]:
    """Cut phonemes into pieces of at most ``limit`` characters.

    Cuts after sentence marks where that suffices, else after commas and the like, else at
    spaces; a run without any of these is cut at the limit. Joined by spaces the pieces
    give the text back.
    """
    for pattern in (r"(?<=[.!?])\s+", r"(?<=[,;:])\s+", r"\s+"):
        if len(text) <= limit:
            return [text]
        parts = re.split(pattern, text)
        if len(parts) > 1:
            return [piece for part in _pack(parts, limit) for piece in split_phonemes(part, limit)]
    return [text[i : i + limit] for i in range(0, len(text), limit)]


def _pack(parts: list[str], limit: int) -> list[str]:
    """Join neighbours while they fit (at least the halves of a split stay apart)."""
    packed = [parts[0]]
    for part in parts[1:]:
        joined = f"{packed[-1]} {part}"
        if len(joined) <= limit:
            packed[-1] = joined
        else:
            packed.append(part)
    return packed
