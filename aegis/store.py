"""A run on shared or object storage: pushed and pulled by content, through fsspec.

Unit: one run at one URL (``file://``, ``s3://``, ``gs://``, ``az://``, ``sftp://``, ...). Below
the URL, ``blobs/`` holds each distinct content under its SHA-256 and ``manifest.json`` names the
files. The manifest is written when all of its contents are there, so a reader sees the old run
or the new one, and what was interrupted goes on where it ended: contents that are there are not
sent again. A push takes out what its manifest no longer names. One command writes to a URL at
a time.

Without ``secret`` neither ``secret/`` nor ``wav/`` leaves the machine: pseudonymised speech may
still say identifiers, and ``aegis release`` judges what may be shown.

Functions: :func:`push`, :func:`pull`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from aegis.errors import ManifestError
from aegis.fields import check_inside
from aegis.receipts import file_sha256, hash_files
from aegis.tables import Run

FORMAT = 1
SECRET = ("secret", "wav")
"""Folders of a run that go along only when asked for."""
BATCH = 64
"""Files that are copied together; object stores take them at the same time."""


@dataclass(frozen=True)
class Entry:
    """One file of a run: its content and size in bytes."""

    sha256: str
    n_bytes: int


@dataclass(frozen=True)
class Moved:
    """What a push or pull did: files of the run, contents copied, their bytes, removed ones."""

    n_files: int
    n_copied: int
    n_bytes: int
    n_removed: int


def push(run: Run, url: str, secret: bool = False) -> Moved:
    """Bring the store at ``url`` to the state of a run, which must be locked meanwhile.

    Raises
    ------
    ManifestError
        The store cannot be reached, or holds something that is no store.
    """
    files = list_files(run, secret)
    with _reporting(url):
        filesystem, root = _open(url)
        _read_manifest(filesystem, root)  # refuses a folder with another kind of manifest
        filesystem.makedirs(f"{root}/blobs", exist_ok=True)
        if secret and "file" in filesystem.protocol:
            os.chmod(root, 0o700)
        present = _sizes(filesystem, root)
        contents = {entry.sha256: (name, entry) for name, entry in files.items()}
        missing = [key for key, (_, e) in contents.items() if present.get(key) != e.n_bytes]
        for part in _batches(missing):
            sources = [str(run.root / contents[key][0]) for key in part]
            filesystem.put(sources, [_blob(root, key) for key in part])
        content = {
            "format": FORMAT,
            "secret": secret,
            "files": {name: asdict(entry) for name, entry in sorted(files.items())},
        }
        filesystem.pipe_file(f"{root}/manifest.json", json.dumps(content, indent=1).encode())
        stale = [key for key in present if key not in contents]
        for key in stale:
            filesystem.rm_file(_blob(root, key))
    n_bytes = sum(contents[key][1].n_bytes for key in missing)
    return Moved(len(files), len(missing), n_bytes, len(stale))


def pull(url: str, run: Run, replace: bool = False) -> Moved:
    """Bring a run, which must be locked meanwhile, to the state of the store at ``url``.

    Files of the run that the store does not know are removed, as far as the store holds their
    folder at all: one without secrets leaves ``secret/`` and ``wav/`` alone. Receipts come
    last, so a half pulled run claims nothing.

    Raises
    ------
    ManifestError
        No store at the URL, a content that is not as its name says, or the run has files of
        its own that differ and ``replace`` is not set.
    """
    with _reporting(url):
        filesystem, root = _open(url)
        found = _read_manifest(filesystem, root)
        if found is None:
            raise ManifestError("no run was pushed there")
        secret, files = found
        here = list_files(run, secret)
        wanted = [name for name, entry in files.items() if here.get(name) != entry]
        stale = [name for name in here if name not in files]
        own = [name for name in [*wanted, *stale] if name in here]
        if own and not replace:
            raise ManifestError(
                f"run {run.root.name!r} has {len(own)} files that differ, e.g. {own[0]};"
                " --replace takes the pushed ones"
            )
        wanted.sort(key=lambda name: (name.startswith("receipts/"), name))
        for part in _batches(wanted):
            _fetch(filesystem, root, {name: files[name] for name in part}, run)
        for name in stale:
            (run.root / name).unlink()
    n_bytes = sum(files[name].n_bytes for name in wanted)
    return Moved(len(files), len(wanted), n_bytes, len(stale))


def list_files(run: Run, secret: bool) -> dict[str, Entry]:
    """The files of a run by path, without locks and half-written files."""
    paths = [
        path
        for path in sorted(run.root.rglob("*"))
        if path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(run.root).parts)
        and (secret or path.relative_to(run.root).parts[0] not in SECRET)
    ]
    return {
        run.relative(path): Entry(digest, path.stat().st_size)
        for path, digest in zip(paths, hash_files(paths), strict=True)
        if digest is not None
    }


def _fetch(filesystem: Any, root: str, files: Mapping[str, Entry], run: Run) -> None:
    """Copy some files, each checked before it takes its place."""
    keys = sorted({entry.sha256 for entry in files.values()})
    with tempfile.TemporaryDirectory(dir=run.root, prefix=".pull-") as scratch:
        filesystem.get([_blob(root, key) for key in keys], [f"{scratch}/{key}" for key in keys])
        wrong = [key for key in keys if file_sha256(Path(scratch, key)) != key]
        if wrong:
            raise ManifestError(f"{len(wrong)} contents are damaged, e.g. {wrong[0][:12]}")
        for name, entry in files.items():
            target = run.root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            copy = Path(scratch, "copy")
            shutil.copyfile(Path(scratch, entry.sha256), copy)
            copy.chmod(0o600 if name.startswith("secret/") else 0o644)
            os.replace(copy, target)


def _read_manifest(filesystem: Any, root: str) -> tuple[bool, dict[str, Entry]] | None:
    """(with secrets, files) of a store; None where there is none."""
    path = f"{root}/manifest.json"
    if not filesystem.exists(path):
        return None
    try:
        content = json.loads(filesystem.cat_file(path))
        if content["format"] != FORMAT:
            raise ManifestError(f"a store of format {content['format']!r}, this is {FORMAT}")
        secret = content["secret"] is True
        files = {name: Entry(**entry) for name, entry in content["files"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ManifestError("manifest.json is not that of a pushed run") from error
    for name, entry in files.items():
        check_inside(name, "manifest.json")
        hidden = any(part.startswith(".") for part in name.split("/"))
        told = isinstance(entry.sha256, str) and isinstance(entry.n_bytes, int)
        if hidden or not told or not re.fullmatch("[0-9a-f]{64}", entry.sha256):
            raise ManifestError(f"manifest.json: {name!r} is no file of a run")
        if not secret and name.split("/")[0] in SECRET:
            raise ManifestError(f"manifest.json: {name!r} in a store without secrets")
    return secret, files


def _open(url: str) -> tuple[Any, str]:
    """The file system of a URL and the path on it."""
    import fsspec

    filesystem, root = fsspec.core.url_to_fs(url, use_listings_cache=False)
    root = str(root).rstrip("/")
    if not root:
        raise ManifestError("give a folder or a prefix of its own for the run")
    return filesystem, root


def _blob(root: str, key: str) -> str:
    return f"{root}/blobs/{key}"


def _sizes(filesystem: Any, root: str) -> dict[str, int]:
    """Contents of a store and their sizes."""
    found = filesystem.find(f"{root}/blobs", detail=True)
    return {path.rsplit("/", 1)[1]: int(entry["size"]) for path, entry in found.items()}


def _batches(names: Sequence[str]) -> Iterator[Sequence[str]]:
    for first in range(0, len(names), BATCH):
        yield names[first : first + BATCH]


@contextmanager
def _reporting(url: str) -> Iterator[None]:
    """Errors of a storage library become this package's: no password, no name of a file."""
    shown = re.sub(r"//[^/@]*@", "//", url)
    try:
        yield
    except ManifestError as error:
        raise ManifestError(f"{shown}: {error}") from error
    except OSError as error:
        raise ManifestError(f"{shown}: {error.strerror or type(error).__name__}") from error
    except (ValueError, ImportError) as error:
        raise ManifestError(f"{shown}: {error}") from error
