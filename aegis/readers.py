"""Readers of the annotation formats that published corpora use.

Unit: one utterance, interval or query. Times are seconds on the recording's clock; a
format without times gives None. Nothing is repaired silently: a line that breaks the
format is a ``ManifestError`` with file, line (from 1) and rule.

Functions: :func:`read_text`, :func:`read_rttm`, :func:`read_textgrid`,
:func:`read_simsamu`, :func:`read_fareez`, :func:`read_asq_phi`.
"""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from aegis.errors import ManifestError


@dataclass(frozen=True)
class Term:
    """One transcribed word or punctuation mark; None where the file's times are reversed."""

    text: str
    kind: str
    start_s: float | None
    end_s: float | None


@dataclass(frozen=True)
class Utterance:
    speaker: str
    start_s: float | None
    end_s: float | None
    text: str
    terms: tuple[Term, ...] = ()


@dataclass(frozen=True)
class RttmTurn:
    file_id: str
    channel: str
    start_s: float
    end_s: float
    speaker: str


@dataclass(frozen=True)
class Interval:
    start_s: float
    end_s: float
    text: str


@dataclass(frozen=True)
class Tier:
    """One tier; a point tier has intervals of length zero."""

    name: str
    kind: str
    start_s: float
    end_s: float
    intervals: tuple[Interval, ...]


@dataclass(frozen=True)
class PhiQuery:
    """One ASQ-PHI query with its identifiers as (type, value); no offsets are published."""

    line: int
    text: str
    phi: tuple[tuple[str, str], ...]


def _fail(path: Path, line: int, rule: str) -> NoReturn:
    raise ManifestError(f"{path.name}, line {line}: {rule}")


def read_text(path: Path) -> str:
    """Decode a text file: a byte-order mark decides, else UTF-16 by its zeros, UTF-8, cp1252.

    Line ends become ``\\n``.

    Raises
    ------
    ManifestError
        The bytes fit none of these; the message has the offset.
    """
    raw = path.read_bytes()
    try:
        if raw.startswith(codecs.BOM_UTF8):
            text = raw.decode("utf-8-sig")
        elif raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            text = raw.decode("utf-16")
        elif b"\0" in raw[:200]:
            text = raw.decode("utf-16-le" if raw[1:2] == b"\0" else "utf-16-be")
        else:
            try:
                text = raw.decode("utf-8")
            except UnicodeDecodeError:
                text = raw.decode("cp1252")
    except UnicodeDecodeError as error:
        raise ManifestError(
            f"{path.name}: cannot be decoded as {error.encoding}, byte {error.start}"
        ) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _seconds(path: Path, line: int, text: str, what: str) -> float:
    try:
        value = float(text)
    except ValueError:
        _fail(path, line, f"{what} {text!r} is not a number")
    if not math.isfinite(value):
        _fail(path, line, f"{what} {text!r} is not finite")
    return value


def read_rttm(path: Path) -> list[RttmTurn]:
    """Read the SPEAKER lines of an RTTM file, in file order.

    ``<type> <file> <channel> <onset> <duration> <NA> <NA> <speaker> <NA> [<NA>]``; other
    types, comments (``;``) and blank lines are passed over.

    Raises
    ------
    ManifestError
        Not 9 or 10 fields (a blank in a name does that), onset below 0, duration not above
        0, or a turn nested in another one of the same speaker; with the line.
    """
    turns: list[RttmTurn] = []
    longest: dict[tuple[str, str], list[RttmTurn]] = {}
    for line, row in enumerate(read_text(path).split("\n"), start=1):
        parts = row.split()
        if not parts or parts[0].startswith(";") or parts[0] in _RTTM_OTHER:
            continue
        if parts[0] != "SPEAKER":
            _fail(path, line, f"unknown type {parts[0]!r}")
        if len(parts) not in (9, 10):
            _fail(path, line, f"{len(parts)} fields, must be 9 or 10")
        start_s = _seconds(path, line, parts[3], "onset")
        duration_s = _seconds(path, line, parts[4], "duration")
        if start_s < 0 or duration_s <= 0:
            _fail(path, line, f"onset {start_s} or duration {duration_s} out of range")
        turn = RttmTurn(parts[1], parts[2], start_s, start_s + duration_s, parts[7])
        same = longest.setdefault((turn.file_id, turn.speaker), [])
        for other in same:
            if _nested(turn, other) or _nested(other, turn):
                _fail(path, line, f"nested in another turn of {turn.speaker}")
        same.append(turn)
        turns.append(turn)
    return turns


_RTTM_OTHER = (
    "SEGMENT", "NOSCORE", "NO_RT_METADATA", "LEXEME", "NON-LEX", "NON-SPEECH", "FILLER", "EDIT",
    "SU", "IP", "CB", "A/P", "SPKR-INFO",
)  # fmt: skip


def _nested(inner: RttmTurn, outer: RttmTurn) -> bool:
    return outer.start_s <= inner.start_s and inner.end_s <= outer.end_s


_TOKEN = re.compile(r'"((?:[^"]|"")*)"|![^\n]*|([^\s"]+)')
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?%?")


class _Tokens:
    """The free-standing strings, numbers and flags of a Praat text file, with their lines.

    Everything else (``xmin =``, ``item [1]:``) is decoration, so the long and the short
    format read alike; a quote inside a string is doubled, and a string may hold newlines.
    """

    def __init__(self, path: Path, text: str) -> None:
        self.path, self.line = path, 1
        self._found = self._scan(text)

    def _scan(self, text: str) -> Iterator[tuple[str, str, int]]:
        line, end = 1, 0
        for match in _TOKEN.finditer(text):
            line += text.count("\n", end, match.start())
            end = match.start()
            string, bare = match.groups()
            if string is not None:
                yield "string", string.replace('""', '"'), line
            elif bare is not None and _NUMBER.fullmatch(bare):
                yield "number", bare, line
            elif bare is not None and re.fullmatch(r"<\w+>", bare):
                yield "flag", bare, line
        self.line = line + text.count("\n", end)

    def take(self, kind: str, what: str) -> str:
        found = next(self._found, None)
        if found is None:
            _fail(self.path, self.line, f"the file ends before {what}")
        self.line = found[2]
        if found[0] != kind:
            _fail(self.path, self.line, f"expected {what} (a {kind}), found {found[1]!r}")
        return found[1]

    def seconds(self, what: str) -> float:
        text = self.take("number", what)
        return _seconds(self.path, self.line, text, what)

    def count(self, what: str) -> int:
        text = self.take("number", what)
        if not text.isdecimal():
            _fail(self.path, self.line, f"{what} {text!r} is not a count")
        return int(text)


def read_textgrid(path: Path) -> list[Tier]:
    """Read a Praat TextGrid (long or short text format, any encoding of :func:`read_text`).

    Raises
    ------
    ManifestError
        No TextGrid, a count that does not match, an interval that ends before it starts
        or overlaps the one before; with the line.
    """
    text = read_text(path)
    tokens = _Tokens(path, text)
    if tokens.take("string", "the file type") != "ooTextFile":
        _fail(path, tokens.line, 'the file type must be "ooTextFile"')
    if tokens.take("string", "the object class") != "TextGrid":
        _fail(path, tokens.line, 'the object class must be "TextGrid"')
    tokens.seconds("xmin")
    tokens.seconds("xmax")
    if tokens.take("flag", "<exists>") != "<exists>":
        return []
    return [_tier(path, tokens) for _ in range(tokens.count("the number of tiers"))]


def _tier(path: Path, tokens: _Tokens) -> Tier:
    kind = tokens.take("string", "a tier class")
    if kind not in ("IntervalTier", "TextTier"):
        _fail(path, tokens.line, f"unknown tier class {kind!r}")
    name = tokens.take("string", "a tier name")
    start_s, end_s = tokens.seconds("the tier's xmin"), tokens.seconds("the tier's xmax")
    intervals: list[Interval] = []
    for _ in range(tokens.count("the number of intervals")):
        begin = tokens.seconds("a time")
        if intervals and begin < intervals[-1].end_s - 1e-6:
            _fail(path, tokens.line, f"interval at {begin} starts before the one before ends")
        finish = tokens.seconds("an interval's xmax") if kind == "IntervalTier" else begin
        if kind == "IntervalTier" and finish <= begin:
            _fail(path, tokens.line, f"interval [{begin}, {finish}] has no length")
        intervals.append(Interval(begin, finish, tokens.take("string", "a label")))
    return Tier(name, kind, start_s, end_s, tuple(intervals))


def _load_json(path: Path) -> Any:
    text = read_text(path)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        _fail(path, error.lineno, f"no valid JSON ({error.msg})")
    except (ValueError, RecursionError) as error:  # a number or a nesting without end
        _fail(path, 1, f"no valid JSON ({error})")


def read_simsamu(path: Path) -> list[Utterance]:
    """Read a SIMSAMU transcript: ``monologues`` of a speaker, each with timed terms.

    The text joins words by blanks; punctuation follows its word. In half of the published
    files some term ends before it starts: such a term is kept without times.

    Raises
    ------
    ManifestError
        Another schema, a missing key, an empty monologue; with monologue and term (from 0).
    """
    content = _load_json(path)
    if not isinstance(content, dict) or content.get("schemaVersion") != "2.0":
        raise ManifestError(f"{path.name}: schemaVersion must be '2.0'")
    utterances = []
    for index, entry in enumerate(content.get("monologues", [])):
        try:
            terms = tuple(_term(term, number) for number, term in enumerate(entry["terms"]))
            start_s, end_s = float(entry["start"]), float(entry["end"])
            speaker = str(entry["speaker"]["id"])
        except (KeyError, TypeError, ValueError) as error:
            raise ManifestError(f"{path.name}: monologue {index}: {error!r}") from error
        if not 0 <= start_s < end_s:
            raise ManifestError(f"{path.name}: monologue {index}: [{start_s}, {end_s}] is empty")
        utterances.append(Utterance(speaker, start_s, end_s, _joined(terms), terms))
    return utterances


def _term(entry: dict[str, Any], number: int) -> Term:
    text, kind = entry["text"], entry["type"]
    start_s, end_s = float(entry["start"]), float(entry["end"])
    if kind not in ("WORD", "PUNCTUATION"):
        raise ValueError(f"term {number}: unknown type {kind!r}")
    if end_s < start_s:
        return Term(text, kind, None, None)
    return Term(text, kind, start_s, end_s)


def _joined(terms: tuple[Term, ...]) -> str:
    text = ""
    for term in terms:
        text += term.text if term.kind == "PUNCTUATION" or not text else f" {term.text}"
    return text


_LABEL = re.compile(r"\s*([DPdp])\s*:\s*")


def read_fareez(path: Path) -> list[Utterance]:
    """Read a ``D:``/``P:`` transcript; a line without label continues the turn before it.

    Raises
    ------
    ManifestError
        Text before the first label, or no turn at all; with the line.
    """
    turns: list[tuple[str, str]] = []
    for line, row in enumerate(read_text(path).split("\n"), start=1):
        label = _LABEL.match(row)
        if label:
            turns.append((label.group(1).upper(), row[label.end() :].strip()))
        elif row.strip():
            if not turns:
                _fail(path, line, "text before the first D: or P:")
            speaker, text = turns[-1]
            turns[-1] = (speaker, f"{text} {row.strip()}".strip())
    if not turns:
        _fail(path, 1, "no D: or P: turn in the file")
    return [Utterance(speaker, None, None, text) for speaker, text in turns]


def read_asq_phi(path: Path) -> list[PhiQuery]:
    """Read ASQ-PHI blocks: a query line, then one JSON object an identifier.

    Raises
    ------
    ManifestError
        A block without query or tag marker, invalid JSON or other keys; with the line.
    """
    queries: list[PhiQuery] = []
    state, line_of, text, phi = "start", 0, "", list[tuple[str, str]]()
    lines = read_text(path).split("\n")
    for line, row in enumerate([*lines, "===QUERY==="], start=1):
        if row.strip() == "===QUERY===":
            if state in ("query", "text"):
                _fail(path, line, "a query block without ===PHI_TAGS===")
            if state == "tags":
                queries.append(PhiQuery(line_of, text, tuple(phi)))
            state, phi = "query", []
        elif row.strip() == "===PHI_TAGS===":
            if state != "text":
                _fail(path, line, "===PHI_TAGS=== without a query before it")
            state = "tags"
        elif row.strip():
            if state == "query":
                state, line_of, text = "text", line, row
            elif state == "tags":
                phi.append(_phi_value(path, line, row))
            else:
                _fail(path, line, "text outside a query block")
    return queries


def _phi_value(path: Path, line: int, row: str) -> tuple[str, str]:
    try:
        entry = json.loads(row)
    except json.JSONDecodeError as error:
        _fail(path, line, f"no valid JSON ({error.msg})")
    if not isinstance(entry, dict) or set(entry) != {"identifier_type", "value"}:
        _fail(path, line, "must be an object with identifier_type and value")
    if not all(isinstance(value, str) and value for value in entry.values()):
        _fail(path, line, "identifier_type and value must be text")
    return entry["identifier_type"], entry["value"]
