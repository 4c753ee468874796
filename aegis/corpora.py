"""The published corpora: fetched or taken from a copy, verified, read as conversations.

Unit: one record (a consultation, an interview, a call, a file of queries). A corpus lies in
``data/<name>/`` (or ``$AEGIS_DATA/<name>/``) with the paths of its checksum list. A copy
elsewhere is linked, not copied, so originals are never changed. Verification gives every
scheduled record exactly one fate: a wrong digest, an LFS pointer instead of the file, a file
that is absent or does not decode are failures with their reason, never a shorter list.

Functions: :func:`data_folder`, :func:`take_copy`, :func:`fetch_corpus`,
:func:`verify_corpus`, :func:`read_conversation`, :func:`plain_text`, :func:`count_corpus`,
:func:`records`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

import pandas as pd

from aegis.decoding import open_source
from aegis.errors import AegisError, ManifestError
from aegis.ingest import file_sha256
from aegis.manifests import MANIFESTS, ExpectedFile, match_records, read_card, read_checksums
from aegis.readers import (
    Utterance,
    read_asq_phi,
    read_fareez,
    read_rttm,
    read_simsamu,
    read_textgrid,
)
from aegis.tables import PROJECT

CONVERSATIONS = ("primock57", "fareez", "simsamu")
"""Corpora of recordings, with a reader; their records are the paper's 390 recordings."""

Opener = Callable[[str], IO[bytes]]
_POINTER = b"version https://git-lfs"
_TAG = re.compile(r"</?([A-Z_]+)\s*/?>")


@dataclass(frozen=True)
class Conversation:
    """One record: its audio files (one a channel, or one) and what was said, in time order."""

    record_id: str
    audio: tuple[Path, ...]
    utterances: tuple[Utterance, ...]

    @property
    def speakers(self) -> tuple[str, ...]:
        return tuple(sorted({utterance.speaker for utterance in self.utterances}))

    @property
    def end_s(self) -> float | None:
        """End of the last utterance; None for transcripts without times."""
        ends = [u.end_s for u in self.utterances if u.end_s is not None]
        return max(ends, default=None)


def data_folder(name: str) -> Path:
    """Where a corpus lies once it is fetched."""
    return Path(os.environ.get("AEGIS_DATA", PROJECT / "data")) / name


def expected_files(name: str) -> list[ExpectedFile]:
    """The checksum list of a corpus; empty where none exists."""
    path = MANIFESTS / f"{name}.csv"
    return read_checksums(path) if path.exists() else []


def records(name: str) -> list[str]:
    """The scheduled records of a corpus, in the order of its list."""
    return list(dict.fromkeys(file.record_id for file in expected_files(name)))


# --- bringing a corpus here ------------------------------------------------------------------


def take_copy(name: str, source: Path, folder: Path | None = None) -> int:
    """Link the files of a copy on this machine under the paths of the checksum list.

    A file is looked for under its listed path, then by its name anywhere below ``source``
    where that name occurs once.

    Returns
    -------
    The number of files linked; verification says what is missing.

    Raises
    ------
    ManifestError
        ``source`` is no folder, or the corpus has no checksum list.
    """
    if not source.is_dir():
        raise ManifestError(f"{source}: no such folder")
    files = expected_files(name)
    if not files:
        raise ManifestError(
            f"{name}: no checksum list; give its pool manifest with `-p 02_profiles.pool=FILE`"
        )
    by_name: dict[str, list[Path]] = {}
    for path in source.rglob("*"):
        if path.is_file():
            by_name.setdefault(path.name, []).append(path)
    folder, n = folder or data_folder(name), 0
    for file in files:
        listed = source / file.path
        named = by_name.get(PurePosixPath(file.path).name, [])
        found = listed if listed.is_file() else named[0] if len(named) == 1 else None
        if found is not None:
            target = folder / file.path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.unlink(missing_ok=True)
            target.symlink_to(found.resolve())
            n += 1
    return n


def _open_url(url: str) -> IO[bytes]:
    if not url.startswith("https://"):
        raise ManifestError(f"{url}: only https is used")
    request = urllib.request.Request(url, headers={"User-Agent": "aegisvox-study"})
    opened: IO[bytes] = urllib.request.urlopen(request, timeout=60)  # nosec B310 # https, see above
    return opened


def fetch_corpus(
    name: str, folder: Path | None = None, opener: Opener = _open_url
) -> dict[str, str]:
    """Download what is absent or wrong, file by file, each digest checked on arrival.

    Returns
    -------
    path -> what went wrong, for files that did not arrive; empty when all did.

    Raises
    ------
    ManifestError
        The card has no address to fetch from.
    """
    card, files = read_card(name, MANIFESTS), expected_files(name)
    if not card.urls or not files:
        raise ManifestError(
            f"{name}: cannot be fetched ({card.access}); `aegis fetch {name.replace('_', '-')}"
            " --from DIR` takes a copy"
        )
    folder = folder or data_folder(name)
    wanted = [file for file in files if _file_problem(folder, file) is not None]
    if "archive" in card.urls:
        return _fetch_archive(card.urls["archive"], wanted, folder, opener)
    problems = {}
    for file in wanted:
        template = card.urls.get(file.role, card.urls.get("file", ""))
        url = template.format(path=urllib.parse.quote(file.path))
        try:
            with opener(url) as stream:
                _keep(stream, folder, file)
        except (OSError, AegisError) as error:
            problems[file.path] = " ".join(str(error).split())
    return problems


def _fetch_archive(
    listing: str, wanted: list[ExpectedFile], folder: Path, opener: Opener
) -> dict[str, str]:
    """Take wanted files out of the zip archives that a repository's JSON record lists."""
    problems = {file.path: "not in the archives" for file in wanted}
    if not wanted:
        return problems
    try:
        with opener(listing) as stream:
            entries = json.load(stream)["files"]
        for entry in entries:
            if str(entry["name"]).lower().endswith(".zip"):
                with opener(entry["download_url"]) as stream, tempfile.TemporaryFile() as local:
                    shutil.copyfileobj(stream, local)
                    _unpack(local, wanted, folder, problems)
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())
        problems = dict.fromkeys(problems, said)
    return problems


def _unpack(
    archive: Any, wanted: Iterable[ExpectedFile], folder: Path, problems: dict[str, str]
) -> None:
    with zipfile.ZipFile(archive) as opened:
        members = {PurePosixPath(member).name: member for member in opened.namelist()}
        for file in wanted:
            member = members.get(PurePosixPath(file.path).name)
            if member is not None:
                try:
                    with opened.open(member) as stream:
                        _keep(stream, folder, file)
                    problems.pop(file.path, None)
                except ManifestError as error:
                    problems[file.path] = str(error)


def _keep(stream: IO[bytes], folder: Path, file: ExpectedFile) -> None:
    """Write beside the target, check, then put in place: a wrong file never gets its name."""
    target = folder / file.path
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = target.with_name(f".{target.name}.part")
    try:
        with open(scratch, "wb") as handle:
            shutil.copyfileobj(stream, handle)
        if problem := _content_problem(scratch, file):
            raise ManifestError(f"{file.path}: {problem}")
        target.unlink(missing_ok=True)
        os.replace(scratch, target)
    finally:
        scratch.unlink(missing_ok=True)


# --- verification ----------------------------------------------------------------------------


def _content_problem(path: Path, file: ExpectedFile) -> str | None:
    with open(path, "rb") as handle:
        if handle.read(len(_POINTER)) == _POINTER:
            return "a Git LFS pointer, not the file"
    size = path.stat().st_size
    if size == 0:
        return "0 bytes"
    if file.bytes is not None and size != file.bytes:
        return f"{size} bytes, expected {file.bytes}"
    if file.sha256 is not None and (found := file_sha256(path)) != file.sha256:
        return f"sha256 {found[:12]}, expected {file.sha256[:12]}"
    return None


def _file_problem(folder: Path, file: ExpectedFile) -> str | None:
    path = folder / file.path
    return _content_problem(path, file) if path.is_file() else "missing"


def verify_corpus(name: str, folder: Path | None = None) -> pd.DataFrame:
    """Give every record of a corpus exactly one fate.

    Returns
    -------
    ``record_id``, ``status`` (ok, failed, excluded), ``reason``, ``n_files``; every record of
    the checksum list once, in its order, then audio that is not on the list.

    Raises
    ------
    ManifestError
        The corpus has no checksum list.
    """
    folder, files = folder or data_folder(name), expected_files(name)
    if not files:
        raise ManifestError(f"{name}: no checksum list in data_manifests/")
    files_of: dict[str, list[ExpectedFile]] = {}
    for file in files:
        files_of.setdefault(file.record_id, []).append(file)
    broken, audio_s, said_s = _measure(name, folder, files_of)
    table = match_records(list(files_of), audio_s, said_s)
    for row, record in enumerate(table["record_id"]):
        if record in broken:
            table.loc[row, ["status", "reason"]] = ["failed", broken[record]]
    table["n_files"] = [len(files_of.get(record, [])) for record in table["record_id"]]
    return table


def _measure(
    name: str, folder: Path, files_of: dict[str, list[ExpectedFile]]
) -> tuple[dict[str, str], dict[str, float | None], dict[str, float | None]]:
    """Problems of records, seconds of their audio, end of their transcripts."""
    broken: dict[str, str] = {}
    audio_s: dict[str, float | None] = {}
    said_s: dict[str, float | None] = {}
    for record, files in files_of.items():
        problems = [(file.role, _file_problem(folder, file)) for file in files]
        if wrong := [f"{role}: {problem}" for role, problem in problems if problem]:
            broken[record] = "; ".join(sorted(set(wrong)))
            continue
        try:
            if name in CONVERSATIONS:
                found = read_conversation(name, record, folder)
                audio_s[record] = min(_seconds(path) for path in found.audio)
                said_s[record] = found.end_s
            else:
                audio_s[record], said_s[record] = 0.0, None
                read_asq_phi(folder / files[0].path)
        except AegisError as error:
            broken[record] = f"unreadable: {error}"
    return broken, audio_s, said_s


def _seconds(path: Path) -> float:
    """Seconds of a recording, by decoding it (headers of compressed files may lie)."""
    source = open_source(path)
    n_samples = sum(int(block.shape[1]) for block in source.blocks)
    return n_samples / source.rate_hz


# --- reading ---------------------------------------------------------------------------------


def plain_text(text: str) -> tuple[str, tuple[str, ...]]:
    """PriMock57 text without its tags, and the tags met.

    ``<UNSURE>words</UNSURE>`` keeps its words; ``<UNIN/>`` and ``<INAUDIBLE_SPEECH/>`` stand
    for speech that nobody wrote down and leave nothing.
    """
    tags = tuple(m[1] for m in _TAG.finditer(text) if not m[0].startswith("</"))
    return " ".join(_TAG.sub(" ", text).split()), tags


def read_conversation(name: str, record_id: str, folder: Path | None = None) -> Conversation:
    """One record of :data:`CONVERSATIONS` with its audio paths and utterances.

    PriMock57 has a WAV and a TextGrid for each speaker (empty intervals are silence, an
    interval of tags alone stays as an utterance without words); Fareez has labels without
    times; SIMSAMU's speakers must be those of its RTTM.

    Raises
    ------
    ManifestError
        Not a record of this corpus, or a transcript breaks its format.
    """
    folder = folder or data_folder(name)
    files = [file for file in expected_files(name) if file.record_id == record_id]
    if name not in CONVERSATIONS or not files:
        raise ManifestError(f"{name}: no record {record_id!r}")
    audio = tuple(folder / file.path for file in files if file.role == "audio")
    texts = [folder / file.path for file in files if file.role == "transcript"]
    if name == "primock57":
        said = [u for path in texts for u in _channel(path)]
    elif name == "fareez":
        said = read_fareez(texts[0])
    else:
        said = read_simsamu(texts[0])
        _check_speakers(said, folder / next(f.path for f in files if f.role == "turns"))
    timed = all(utterance.start_s is not None for utterance in said)
    ordered = sorted(said, key=lambda u: (u.start_s, u.end_s)) if timed else said
    return Conversation(record_id, audio, tuple(ordered))


def _channel(path: Path) -> list[Utterance]:
    """Utterances of one speaker's TextGrid; the speaker is the end of the file's stem."""
    speaker = path.stem.rsplit("_", 1)[-1]
    return [
        Utterance(speaker, interval.start_s, interval.end_s, plain_text(interval.text)[0])
        for tier in read_textgrid(path)
        for interval in tier.intervals
        if interval.text.strip()
    ]


def _check_speakers(said: Iterable[Utterance], rttm: Path) -> None:
    spoken, drawn = {u.speaker for u in said}, {turn.speaker for turn in read_rttm(rttm)}
    if not drawn <= spoken:
        raise ManifestError(f"{rttm.name}: speakers {sorted(drawn - spoken)} are not in the JSON")


def count_corpus(name: str, folder: Path | None = None) -> dict[str, int]:
    """What a corpus holds, under the names of its card's ``counts``."""
    folder, files = folder or data_folder(name), expected_files(name)
    if name == "asq_phi":
        queries = read_asq_phi(folder / files[0].path)
        return {
            "queries": len(queries),
            "hard_negatives": sum(not query.phi for query in queries),
            "identifiers": sum(len(query.phi) for query in queries),
        }
    ids = records(name)
    said = [u for record in ids for u in read_conversation(name, record, folder).utterances]
    counts = {"recordings": len(ids)}
    if name == "primock57":
        n_channels = sum(file.role == "audio" for file in files)
        return counts | {"channels": n_channels, "utterances": len(said)}
    if name == "fareez":
        return counts | {"turns": len(said)}
    words = sum(term.kind == "WORD" for u in said for term in u.terms)
    return counts | {"monologues": len(said), "words": words}
