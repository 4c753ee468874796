"""Which words of a turn were planned, realised, retained or otherwise changed.

Unit: one turn in one condition. A heard text (fresh recognition) is aligned word by
word with the text that should be heard: the plan's where identifiers were to be
replaced, else the source's. Comparison is by the bare word: case, accents' form and
punctuation at its edges do not count. This display is for readers; outcomes are counted
from ``lexical_matches`` and the verdicts only.

Functions: :func:`planned_words`, :func:`difference`, :func:`joined`, :func:`as_text`.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

KINDS = ("same", "planned", "realised", "retained", "changed", "missing")
"""``planned``: a replacement in the plan; ``realised``: it was heard; ``retained``: words of
the original identifier were heard; ``changed``: another difference; ``missing``: not heard."""

_WORD = re.compile(r"\S+")
_EDGES = re.compile(r"^\W+|\W+$")


@dataclass(frozen=True)
class Piece:
    """Words in a row of one kind (see :data:`KINDS`)."""

    kind: str
    text: str


@dataclass(frozen=True)
class Span:
    """One edit of a turn: characters ``[start, end)`` of its source text, and both texts."""

    start: int
    end: int
    original: str
    replacement: str


def bare(word: str) -> str:
    """A word without case and the punctuation at its edges."""
    return _EDGES.sub("", unicodedata.normalize("NFC", word)).casefold()


def planned_words(source: str, spans: Iterable[Span]) -> list[Piece]:
    """The source text with its edits applied, each word ``same`` or ``planned``.

    Spans must not overlap; a word that a span touches is ``planned`` as a whole.
    """
    text, marks, at = "", [], 0
    for span in sorted(spans, key=lambda item: item.start):
        text += source[at : span.start]
        marks.append((len(text), len(text) + len(span.replacement)))
        text, at = text + span.replacement, span.end
    text += source[at:]
    words = []
    for match in _WORD.finditer(text):
        touched = any(match.start() < end and start < match.end() for start, end in marks)
        words.append(Piece("planned" if touched else "same", match.group()))
    return words


def difference(
    expected: Sequence[Piece], heard: str, originals: Iterable[str] = ()
) -> list[Piece]:
    """Align a heard text with the expected words; pieces in the order of the heard text.

    Parameters
    ----------
    expected
        From :func:`planned_words`.
    originals
        Identifiers of this turn that should be gone; their words are ``retained`` where
        they are heard in a row and are not expected there.
    """
    words = heard.split()
    keys = [bare(word) for word in words]
    kept = _occurrences(keys, originals)
    matcher = difflib.SequenceMatcher(a=[bare(p.text) for p in expected], b=keys, autojunk=False)
    found: list[Piece] = []
    for tag, a0, a1, b0, b1 in matcher.get_opcodes():
        if tag == "equal":
            kinds = ("realised" if p.kind == "planned" else "same" for p in expected[a0:a1])
            found += [Piece(kind, words[b0 + i]) for i, kind in enumerate(kinds)]
            continue
        found += [Piece("missing", piece.text) for piece in expected[a0:a1]]
        found += [Piece("retained" if i in kept else "changed", words[i]) for i in range(b0, b1)]
    return joined(found)


def _occurrences(keys: Sequence[str], originals: Iterable[str]) -> set[int]:
    """Positions of words that belong to an original identifier heard word for word."""
    kept: set[int] = set()
    for original in originals:
        wanted = [bare(word) for word in original.split()]
        for at in range(len(keys) - len(wanted) + 1):
            if wanted and list(keys[at : at + len(wanted)]) == wanted:
                kept |= set(range(at, at + len(wanted)))
    return kept


def joined(pieces: Sequence[Piece]) -> list[Piece]:
    """Neighbours of one kind as one piece."""
    out: list[Piece] = []
    for piece in pieces:
        if out and out[-1].kind == piece.kind:
            out[-1] = Piece(piece.kind, f"{out[-1].text} {piece.text}")
        else:
            out.append(piece)
    return out


_MARKS = {
    "planned": "<{}>", "realised": "<{}>", "retained": "!{}!", "changed": "~{}~",
    "missing": "-{}-",
}  # fmt: skip


def as_text(pieces: Sequence[Piece]) -> str:
    """For a plain terminal: ``<realised>``, ``!retained!``, ``~changed~``, ``-missing-``."""
    return " ".join(_MARKS.get(piece.kind, "{}").format(piece.text) for piece in joined(pieces))
