"""Corpus cards, scheduled records and their fates, and the truth tables of scripts.

A *card* ``data_manifests/<corpus>.yaml`` says what a reader must know of a corpus before
using it: licence, revision, access, languages, whether its content is public or synthetic
and its file stems public, counts. Its checksum list ``<corpus>.csv`` has one row a file
(``record_id``, ``role``, ``path``, ``sha256``, ``bytes``; an empty sha256 is not known).
Scripts are read by ``aegis.scripts``, whose names are offered here too.

Functions: :func:`read_card`, :func:`reserved_voices`, :func:`read_contract`,
:func:`read_checksums`, :func:`match_records`, :func:`gold_tables`, :func:`read_script`,
:func:`read_scripts`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import pandas as pd

from aegis.errors import ManifestError
from aegis.fields import check_inside, read_csv, read_yaml, repeated
from aegis.gold import GoldAction, GoldFact
from aegis.inventory import Relation
from aegis.scripts import (
    CATEGORIES,
    MANIFESTS,
    Script,
    ScriptTurn,
    read_script,
    read_scripts,
)
from aegis.tables import check_table, empty_table

__all__ = [
    "CATEGORIES",
    "MANIFESTS",
    "Contract",
    "CorpusCard",
    "ExpectedFile",
    "GoldFact",
    "Script",
    "ScriptTurn",
    "gold_tables",
    "match_records",
    "read_card",
    "read_checksums",
    "read_contract",
    "read_script",
    "read_scripts",
    "reserved_voices",
]  # fmt: skip

CONTENT = ("synthetic", "public", "private")
TOLERANCE_S = 0.5


@dataclass(frozen=True)
class CorpusCard:
    """One corpus. ``revision_full`` is False where only a shortened revision is known.

    ``urls`` maps a role of the checksum list (or ``file``, or ``archive``: a JSON record that
    lists zip archives) to an address with ``{path}``; without it nothing can be fetched.
    ``release_audio`` says that its de-identified sound may be handed on.
    """

    name: str
    title: str
    licence: str
    source: str
    revision: str
    access: str
    languages: tuple[str, ...]
    content: str
    stems_public: bool
    revision_full: bool = True
    release_audio: bool = False
    licence_url: str = ""
    citation: str = ""
    notes: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    voices: tuple[str, ...] = ()
    urls: dict[str, str] = field(default_factory=dict)

    @property
    def may_show_originals(self) -> bool:
        """Whether originals may be shown on request."""
        return self.content in ("synthetic", "public")


@dataclass(frozen=True)
class ExpectedFile:
    """One file that a corpus should have; ``sha256`` and ``bytes`` are None when not known."""

    record_id: str
    role: str
    path: str
    sha256: str | None
    bytes: int | None


def read_card(name: str, folder: Path = MANIFESTS) -> CorpusCard:
    """The card of a corpus.

    Raises
    ------
    ManifestError
        No such card; an unknown, missing or mistyped field; the name is not the file's.
    """
    path = folder / f"{name}.yaml"
    if not path.exists():
        raise ManifestError(f"{path.name}: no such card in {folder.name}/")
    content = read_yaml(path)
    known = fields(CorpusCard)
    unknown = sorted(set(content) - {f.name for f in known})
    needed = [f.name for f in known if f.default is MISSING and f.default_factory is MISSING]
    missing = [n for n in needed if n not in content]
    if unknown or missing:
        raise ManifestError(f"{path.name}: unknown fields {unknown}, missing fields {missing}")
    for key, value in content.items():
        _check_field(path.name, key, value)
    if content["name"] != name:
        raise ManifestError(f"{path.name}: name {content['name']!r} must be {name!r}")
    for key in ("languages", "voices"):
        content[key] = tuple(content.get(key, ()))
    return CorpusCard(**content)


_KINDS: dict[str, type] = {
    "languages": list, "voices": list, "counts": dict, "stems_public": bool, "revision_full": bool,
    "urls": dict,
    "release_audio": bool,
}  # fmt: skip


def _check_field(file: str, key: str, value: Any) -> None:
    kind = _KINDS.get(key, str)
    if not isinstance(value, kind):
        raise ManifestError(f"{file}: {key} must be {kind.__name__}, is {value!r}")
    if isinstance(value, list) and not all(isinstance(item, str) for item in value):
        raise ManifestError(f"{file}: {key} must be a list of text")
    if isinstance(value, dict):
        inner, what = (str, "addresses") if key == "urls" else (int, "whole numbers")
        if not all(isinstance(item, inner) for item in value.values()):
            raise ManifestError(f"{file}: {key} must map names to {what}")
    if key == "content" and value not in CONTENT:
        raise ManifestError(f"{file}: content {value!r} must be one of {', '.join(CONTENT)}")


@dataclass(frozen=True)
class Family:
    """One family of identifiers in the contract; examples carry the markup of scripts."""

    category: str
    letter: str
    include: str
    exclude: str
    examples: tuple[str, ...]


@dataclass(frozen=True)
class Contract:
    """The frozen identifier contract; ``sha256`` is that of its file."""

    version: int
    title: str
    general: tuple[str, ...]
    families: tuple[Family, ...]
    benchmark_types: dict[str, str]
    sha256: str


def read_contract(path: Path = MANIFESTS / "phi_contract.yaml") -> Contract:
    """The identifier contract, checked against its frozen digest.

    Raises
    ------
    ManifestError
        The file is not the frozen one, or does not list each category once.
    """
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    frozen = path.with_suffix(".sha256").read_text(encoding="utf-8").split()[0]
    if digest != frozen:
        raise ManifestError(f"{path.name}: sha256 {digest[:12]} is not the frozen {frozen[:12]}")
    content = read_yaml(path)
    families = tuple(
        Family(**{**entry, "examples": tuple(entry["examples"])}) for entry in content["families"]
    )
    if tuple(family.category for family in families) != CATEGORIES:
        raise ManifestError(f"{path.name}: families must be {', '.join(CATEGORIES)}, in order")
    return Contract(
        content["version"], content["title"], tuple(content["general"]), families,
        content["benchmark_types"], digest,
    )  # fmt: skip


def reserved_voices(name: str = "demo", folder: Path = MANIFESTS) -> frozenset[str]:
    """Voices that a corpus speaks with (``synthesiser:voice``); the pool leaves them out."""
    return frozenset(read_card(name, folder).voices)


def read_checksums(path: Path) -> list[ExpectedFile]:
    """The files that a corpus should have, in the order of its list.

    Raises
    ------
    ManifestError
        Wrong columns, a malformed digest or size, or a path twice; with the line.
    """
    columns = ["record_id", "role", "path", "sha256", "bytes"]
    header, *rows = read_csv(path, "utf-8") or [[]]
    if header != columns:
        raise ManifestError(f"{path.name}, line 1: columns {header} must be {columns}")
    files, seen = [], set()
    for line, row in enumerate(rows, start=2):
        where = f"{path.name}, line {line}"
        if len(row) != len(columns):
            raise ManifestError(f"{where}: {len(row)} fields, must be {len(columns)}")
        record_id, role, name, digest, size = row
        if digest and not re.fullmatch(r"[0-9a-f]{64}", digest):
            raise ManifestError(f"{where}: sha256 {digest!r} must be 64 hex digits")
        if size and not size.isdecimal():
            raise ManifestError(f"{where}: bytes {size!r} must be a whole number")
        check_inside(name, where)
        if name in seen:
            raise ManifestError(f"{where}: {name} is listed twice")
        seen.add(name)
        files.append(
            ExpectedFile(record_id, role, name, digest or None, int(size) if size else None)
        )
    return files


def match_records(
    scheduled: Sequence[str],
    audio_s: Mapping[str, float | None],
    transcript_s: Mapping[str, float | None],
    excluded: Mapping[str, str] | None = None,
    tolerance_s: float = TOLERANCE_S,
) -> pd.DataFrame:
    """Give each scheduled record, and each record found beside them, exactly one fate.

    Parameters
    ----------
    scheduled : record ids that the study plans for; each once.
    audio_s : duration of the audio found, by record; None when it cannot be read.
    transcript_s : end of the last annotation found, by record; None without times.
    excluded : record -> reason, decided before looking at the data.
    tolerance_s : by how much annotation may outlast the audio (rounding, padding).

    Returns
    -------
    One row a record, ``record_id``, ``status`` (ok, excluded, failed), ``reason``;
    scheduled records first, in their order.

    Raises
    ------
    ManifestError
        A record is scheduled twice, or excluded without being scheduled.
    """
    excluded = excluded or {}
    twice = repeated(scheduled)
    if twice:
        raise ManifestError(f"{len(twice)} records scheduled twice, e.g. {', '.join(twice[:3])}")
    stray = sorted(set(excluded) - set(scheduled))
    if stray:
        raise ManifestError(f"excluded but not scheduled: {', '.join(stray[:3])}")
    rows = [
        (record, *_fate(record, audio_s, transcript_s, excluded, tolerance_s))
        for record in scheduled
    ]
    for record in sorted((set(audio_s) | set(transcript_s)) - set(scheduled)):
        kinds = [k for k, f in (("audio", audio_s), ("transcript", transcript_s)) if record in f]
        rows.append((record, "excluded", f"not scheduled: extra {' and '.join(kinds)}"))
    return pd.DataFrame(rows, columns=["record_id", "status", "reason"])


def _fate(
    record: str,
    audio_s: Mapping[str, float | None],
    transcript_s: Mapping[str, float | None],
    excluded: Mapping[str, str],
    tolerance_s: float,
) -> tuple[str, str | None]:
    if record in excluded:
        return "excluded", excluded[record]
    if record not in audio_s:
        return "failed", "audio missing"
    duration_s = audio_s[record]
    if duration_s is None:
        return "failed", "audio unreadable"
    if record not in transcript_s:
        return "failed", "transcript missing"
    end_s = transcript_s[record]
    if end_s is not None and end_s > duration_s + tolerance_s:
        return "failed", f"transcript ends {end_s - duration_s:.2f} s after the audio"
    return "ok", None


Times = tuple[float, float]


def gold_tables(
    script: Script,
    turn_times: Sequence[Times],
    word_times: Sequence[Sequence[Times | None] | None] | None = None,
) -> dict[str, pd.DataFrame]:
    """The tables of truth of one synthesised script.

    Parameters
    ----------
    turn_times : one ``(start_s, end_s)`` a turn.
    word_times : one entry a turn: a list with one ``(start_s, end_s)`` or None for each of
        ``turn.words``, or None where the synthesiser gives no word times.

    Returns
    -------
    ``gold_turns gold_words gold_mentions gold_facts gold_actions gold_chronology``, checked.

    Raises
    ------
    ManifestError
        The number of times differs from that of the turns or of a turn's words.
    """
    word_times = [None] * len(script.turns) if word_times is None else word_times
    if not len(turn_times) == len(word_times) == len(script.turns):
        raise ManifestError(
            f"{script.recording_id}: {len(script.turns)} turns, {len(turn_times)} turn times,"
            f" {len(word_times)} lists of word times"
        )
    rows: dict[str, list[dict[str, Any]]] = {
        "gold_turns": [], "gold_words": [], "gold_mentions": [],
    }  # fmt: skip
    for turn, (start_s, end_s), times in zip(script.turns, turn_times, word_times, strict=True):
        here = {"recording_id": script.recording_id, "turn_index": turn.turn_index}
        who = {"speaker": turn.speaker, "text": turn.text}
        rows["gold_turns"].append(
            {**here, **who, "role": turn.role, "voice": turn.voice, "start_s": start_s,
             "end_s": end_s, "language": turn.language}
        )  # fmt: skip
        for word, time in zip(turn.words, _word_times(script, turn, times), strict=True):
            begin, finish = time if time is not None else (pd.NA, pd.NA)
            number = len(rows["gold_words"])
            rows["gold_words"].append(
                {**here, "word_index": number, "speaker": turn.speaker, "text": word,
                 "start_s": begin, "end_s": finish}
            )  # fmt: skip
        for mention in turn.mentions:
            columns = ("char_start", "char_end", "text", "category", "entity")
            rows["gold_mentions"].append({**here, **{c: getattr(mention, c) for c in columns}})
    rows["gold_facts"] = [_fact_row(script, i, fact) for i, fact in enumerate(script.facts)]
    rows["gold_actions"] = _numbered(script, "action_index", script.actions)
    rows["gold_chronology"] = _numbered(script, "relation_index", script.chronology)
    return {name: _checked(name, found) for name, found in rows.items()}


def _word_times(
    script: Script, turn: ScriptTurn, times: Sequence[Times | None] | None
) -> Sequence[Times | None]:
    if times is None:
        return [None] * len(turn.words)
    if len(times) != len(turn.words):
        raise ManifestError(
            f"{script.recording_id}: turn {turn.turn_index} has {len(turn.words)} words,"
            f" {len(times)} word times"
        )
    return times


def _numbered(
    script: Script, index: str, entries: Sequence[GoldAction | Relation]
) -> list[dict[str, Any]]:
    """Actions or relations as rows, in the order of the script."""
    return [
        {"recording_id": script.recording_id, index: i, **asdict(entry)}
        for i, entry in enumerate(entries)
    ]


def _fact_row(script: Script, index: int, fact: GoldFact) -> dict[str, Any]:
    """A fact as a row; what has no column of its own is JSON in ``modifiers``."""
    more: dict[str, Any] = {**fact.modifiers, "actor": fact.actor, "certainty": fact.certainty}
    if fact.action is not None:
        more["linked_action"] = fact.action
    if fact.question_turn is not None:
        more["question_turn"] = fact.question_turn
    return {
        "recording_id": script.recording_id,
        "fact_index": index,
        "turn_index": fact.turn_index,
        "text": fact.text,
        "evidence": fact.evidence,
        "importance": fact.importance,
        "polarity": fact.polarity,
        "temporality": fact.temporality,
        "modifiers": json.dumps(more, sort_keys=True, ensure_ascii=False),
    }


def _checked(name: str, rows: list[dict[str, Any]]) -> pd.DataFrame:
    return check_table(name, pd.DataFrame(rows)) if rows else empty_table(name)
