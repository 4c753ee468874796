"""What of a run must not be published, and how it is found in any text.

Unit: one needle, a text that can re-identify somebody: an original file name, a folder that
it lay in, a detected identifier. A needle is found whatever case, accents, spaces or Unicode
form it has, and behind percent encoding, HTML entities, backslash escapes and base64, twice
over. Six words in a row of a source turn are found as well. What is found is named by its
kind, never by its text.

Limits: text inside pictures and sounds is not read. A single word is a needle when it was
taken for a name, is no ordinary word ("May", "Rose") and stands in no page's own source.

Functions: :func:`needles_of`, :func:`build_finder`, :func:`views`, :func:`source_shingles`,
:func:`shingles`.
"""

from __future__ import annotations

import base64
import binascii
import functools
import html
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote

import pandas as pd

from aegis.lexicon import words_en
from aegis.tables import PROJECT, Run, empty_table

SHINGLE_WORDS = 6
KEY = re.compile(r"\b(?:sk-[A-Za-z0-9_-]{20,}|hf_[A-Za-z0-9]{20,})\b")

_DEPTH = 2
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{8,}={0,2}")
_SHORT_RUN = 1 << 12
_MEDIA = (b"RIFF", b"\x89PNG", b"ID3", b"OggS", b"fLaC", b"\xff\xfb", b"GIF8", b"\xff\xd8")
_ESCAPE = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2}))")


def plain_form(text: str) -> str:
    """Lower case without accents, every run of spaces or underscores as one space."""
    # A no-break space becomes a space under NFKD, a ligature its letters.
    letters = unicodedata.normalize("NFKD", text).casefold()
    letters = "".join(c for c in letters if not unicodedata.combining(c))
    return " ".join(re.split(r"[\s_+]+", letters.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")))


def tells(text: str) -> bool:
    """Is a text rare enough to look for: six letters or more, with a digit or two words?"""
    return len(text) >= 6 and (any(c.isdigit() for c in text) or len(text.split()) >= 2)


def needles_of(run: Run, shown: frozenset[str] = frozenset()) -> dict[str, str]:
    """Texts that may not be published, each with its kind.

    File names of the corpus whose stems are its public recording ids are none, nor are the
    identifiers of the recordings in ``shown``.
    """
    needles: dict[str, str] = {}
    if run.has("file_map"):
        files = run.read("file_map")
        public = set(files["recording_id"].str.split("/").str[-1])
        for name in files["file"]:
            needles |= dict.fromkeys(_names_in(str(name), public), "an original file name")
    columns = {"mentions": "text", "substitutions": "original", "edits": "original"}
    for table, column in columns.items():
        rows = _rows(run, table, shown).dropna(subset=[column])
        pairs = zip(rows["category"], rows[column], strict=True)
        found = {str(text) for category, text in pairs if tells(text) or _is_name(category, text)}
        needles |= dict.fromkeys(sorted(found), "a detected identifier")
    return needles


def _rows(run: Run, table: str, shown: frozenset[str]) -> pd.DataFrame:
    """A table's rows about recordings that may not be shown; empty when there is none."""
    rows = run.read(table) if run.has(table) else empty_table(table)
    return rows[~rows["recording_id"].isin(shown)]


def _is_name(category: str, text: str) -> bool:
    """Is a single word a person's name, and none that a page could hold anyway?"""
    word = plain_form(text).removesuffix("'s")
    ordinary = len(word) < 5 or word in words_en() or word in _words_of_the_project()
    return category == "NAME" and not ordinary


@functools.cache
def _words_of_the_project() -> frozenset[str]:
    """Words of the pages' own sources: documents, notebooks, cards."""
    patterns = ("*.md", "*.qmd", "docs/*.md", "notebooks/**/*.py", "data_manifests/**/*.yaml")
    files = (path for pattern in patterns for path in PROJECT.glob(pattern))
    texts = (plain_form(path.read_text("utf-8")) for path in files if "demo" not in path.parts)
    return frozenset(word for text in texts for word in re.findall(r"\w+", text))


def _names_in(name: str, public: set[str]) -> Iterator[str]:
    """The file's own name, and its stem and folders where they tell something."""
    path = PurePosixPath(name.replace("\\", "/"))
    if path.stem in public or len(path.stem) < 4:
        return
    yield path.name
    yield from (part for part in (path.stem, *path.parts[:-1]) if tells(part.replace("_", " ")))


@dataclass(frozen=True)
class Finder:
    """Looks for needles in texts; see :func:`build_finder`."""

    pattern: re.Pattern[str] | None
    kinds: Mapping[str, str]

    def find(self, text: str) -> set[str]:
        """Kinds of the needles that the text holds, in any encoding."""
        if self.pattern is None:
            return set()
        return {
            self.kinds[match.group(0)]
            for view in views(text)
            for match in self.pattern.finditer(plain_form(view))
        }


def build_finder(needles: Mapping[str, str]) -> Finder:
    """A finder of texts (with their kinds) as whole words."""
    kinds = {form: kind for text, kind in needles.items() if (form := plain_form(text).strip())}
    if not kinds:
        return Finder(None, {})
    return Finder(re.compile(rf"(?<!\w){_trie_pattern(kinds)}(?!\w)"), kinds)


def _trie_pattern(words: Iterable[str]) -> str:
    """One pattern for all words that never tries a letter twice: ``(?:a(?:b|c))``."""
    root: dict[str, Any] = {}
    for word in words:
        node = root
        for letter in word:
            node = node.setdefault(letter, {})
        node[""] = {}

    def written(node: dict[str, Any]) -> str:
        parts = []
        for letter, below in sorted(node.items()):
            while letter and len(below) == 1 and "" not in below:
                ((following, below),) = below.items()
                letter += following
            if letter:
                parts.append(re.escape(letter) + written(below))
        if not parts:
            return ""
        inner = f"(?:{'|'.join(parts)})"
        return f"{inner}?" if "" in node else inner

    return written(root)


def views(text: str) -> set[str]:
    """A text and what it says once its encodings are taken off, two layers deep."""
    seen, fresh = {text}, {text}
    for _ in range(_DEPTH):
        fresh = {view for known in fresh for view in _decoded(known)} - seen
        seen |= fresh
    return seen


def _decoded(text: str) -> Iterator[str]:
    decoders: tuple[Callable[[str], str], ...] = (unquote, html.unescape, _unescape)
    for decode in decoders:
        yield decode(text)
    found = [said for run in _BASE64.findall(text) for said in _from_base64(run)]
    if found:
        yield "\n".join(found)


def _unescape(text: str) -> str:
    return _ESCAPE.sub(lambda m: chr(int(m.group(1) or m.group(2), 16)), text)


def _from_base64(run: str) -> Iterator[str]:
    """Texts in a run of base64; a short run may begin with letters that belong to a word."""
    letters = run.rstrip("=").translate(str.maketrans("-_", "+/"))
    for skip in range(4 if len(run) <= _SHORT_RUN else 1):
        body = letters[skip:]
        body = body[:-1] if len(body) % 4 == 1 else body
        try:
            content = base64.b64decode(body + "=" * (-len(body) % 4))
        except binascii.Error:
            continue
        if not content.startswith(_MEDIA):
            yield content.decode("utf-8", "ignore")
            if b"\0" in content:
                yield content.decode("utf-16-le", "ignore")


def source_shingles(run: Run, shown: frozenset[str] = frozenset()) -> set[str]:
    """Every six words in a row of the source turns, less those of the recordings shown."""
    return set().union(*(shingles(text) for text in _rows(run, "turns", shown)["text"].dropna()))


def shingles(text: str) -> set[str]:
    """Every six words in a row of a text, in lower case."""
    words = re.findall(r"\w+", text.lower())
    return {" ".join(words[i : i + SHINGLE_WORDS]) for i in range(len(words) - SHINGLE_WORDS + 1)}
