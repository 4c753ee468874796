"""Needles are found behind every encoding, and what is no needle is not."""

from __future__ import annotations

import base64
import html
import json
import unicodedata
from pathlib import Path
from urllib.parse import quote, quote_plus

import pandas as pd
import pytest
from fabricate import fabricate_run
from hypothesis import given
from hypothesis import strategies as st

from aegis import privacy

NAME = "Amélie d'Aubrac-7"
KIND = "a detected identifier"
FINDER = privacy.build_finder({NAME: KIND, "visit of Mrs X.wav": "an original file name"})


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


ENCODINGS = {
    "as it is": lambda t: t,
    "upper": str.upper,
    "lower": str.lower,
    "NFD": lambda t: unicodedata.normalize("NFD", t),
    "no accents": lambda t: t.replace("é", "e"),
    "curly": lambda t: t.replace("'", "\N{RIGHT SINGLE QUOTATION MARK}"),
    "spaces": lambda t: t.replace(" ", "\N{NO-BREAK SPACE}\n "),
    "underscores": lambda t: t.replace(" ", "_"),
    "percent": quote,
    "plus": quote_plus,
    "percent twice": lambda t: quote(quote(t)),
    "entities": lambda t: html.escape(t).replace("é", "&eacute;"),
    "numeric entities": lambda t: "".join(f"&#{ord(c)};" for c in t),
    "JSON": lambda t: json.dumps(t)[1:-1],
    "JSON twice": lambda t: json.dumps(json.dumps(t)),
    "bytes": lambda t: repr(t.encode("latin-1")),
    "base64": b64,
    "base64 in a word": lambda t: f"x{b64(t)}",
    "base64 inside": lambda t: b64(f"ab {t} and more"),
    "base64 of base64": lambda t: b64(b64(t)),
    "base64 without padding": lambda t: b64(t).rstrip("="),
    "base64 of UTF-16": lambda t: base64.b64encode(t.encode("utf-16-le")).decode(),
    "base64 of percent": lambda t: b64(quote(t)),
}


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_needle_is_found_behind_its_encoding(encoding: str) -> None:
    written = ENCODINGS[encoding](NAME)
    assert FINDER.find(f"the page says ({written}), once") == {KIND}
    assert FINDER.find(f'<td data-x="{written}">1</td>') == {KIND}


def test_only_whole_words_count() -> None:
    finder = privacy.build_finder({"Ann 7": KIND, "Ann 72": KIND})
    assert finder.find("Ann 72") == {KIND}
    for other in ("Ann 721", "Joann 7", "Ann, 7"):
        assert finder.find(other) == set()
    assert privacy.build_finder({}).find("anything") == set()
    assert privacy.build_finder({"  ": KIND}).find("a b") == set()


WORDS = st.text(st.characters(categories=["L", "Nd"]), min_size=1, max_size=6)


@given(st.sets(WORDS, min_size=1, max_size=8), WORDS, WORDS)
def test_the_pattern_finds_exactly_the_listed_words(
    words: set[str], before: str, after: str
) -> None:
    forms = {form for w in words if (form := privacy.plain_form(w).strip())}
    finder = privacy.build_finder({w: w for w in forms})
    for word in forms:
        assert word in finder.find(f"{before} {word} {after}")


def test_needles_come_from_files_identifiers_and_their_folders(tmp_path: Path) -> None:
    run = fabricate_run(tmp_path / "made", n_recordings=1)
    run.write("file_map", pd.DataFrame({
        "recording_id": ["own/12345678", "own/87654321", "demo/en_visit"],
        "file": ["Doris Webber/2026 May/take1.wav", "a\\b\\Jo Smith 3.mp3", "en_visit.flac"],
        "source_sha256": None, "role": "source",
    }))  # fmt: skip
    one = run.read("mentions").iloc[:1]
    texts = {
        "MRN 4471": True, "Grace Hopper": True, "Quisenberry": True, "Rose": False,
        "nurse": False, "may": False, "Fareez": False, "42": False,
    }  # fmt: skip
    run.write("mentions", pd.concat(
        [one.assign(mention_id=f"m{i}", text=t, category="NAME") for i, t in enumerate(texts)]
    ))  # fmt: skip
    for name in ("substitutions", "edits"):
        run.write(name, run.read(name).iloc[:0])
    needles = privacy.needles_of(run)
    files = {n for n, kind in needles.items() if kind == "an original file name"}
    assert files == {"take1.wav", "Doris Webber", "2026 May", "Jo Smith 3.mp3", "Jo Smith 3"}
    assert set(needles) - files == {text for text, is_needle in texts.items() if is_needle}


def test_media_are_skipped_and_a_large_run_of_base64_is_read() -> None:
    wav = base64.b64encode(b"RIFF" + NAME.encode() * 9).decode()
    assert FINDER.find(f"data:audio/wav;base64,{wav}") == set()
    large = b64("x" * 30_000 + f" {NAME} ")
    assert FINDER.find(f"data:text/plain;base64,{large}") == {KIND}
