"""From a file of any kind to the study's recording: rules and the bounded-memory path.

Unit: one file. It is decoded once, block by block, resampled to 16 kHz and kept in a
scratch file while its statistics are gathered, which decide what its channels are (``channels``).

What cannot be decoded is an ``AudioError``; what decodes and holds nothing to hear is
``excluded`` with a reason. Reasons are public, so they never hold a file name.

Functions: :func:`list_files`, :func:`plan_ids`, :func:`join_files`, :func:`ingest_file`,
:func:`same_sound`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import soundfile as sf
from numpy.typing import NDArray

from aegis.audio import BLOCK, SAMPLE_RATE_HZ, LongSignal, Signal, write_wav
from aegis.channels import Statistics, choose_layout
from aegis.decoding import Source, open_source
from aegis.errors import AudioError, ManifestError

SUFFIXES = frozenset({
    ".wav", ".wave", ".flac", ".mp3", ".m4a", ".mp4", ".m4b", ".aac", ".ogg", ".oga", ".opus",
    ".aif", ".aiff", ".aifc", ".au", ".snd", ".w64", ".rf64", ".caf", ".wma", ".amr", ".webm",
    ".mkv", ".mka", ".mov", ".3gp", ".ac3", ".mp2",
})  # fmt: skip
MIN_DURATION_S = 0.5
SILENT_DBFS = -60.0
DC_LIMIT = 1e-3

_MAGIC = (b"RIFF", b"RF64", b"fLaC", b"OggS", b"ID3", b"FORM", b".snd", b"\x1aE\xdf\xa3", b"caff")


@dataclass(frozen=True)
class SourceFile:
    """One file of a folder; ``name`` is its path below the folder (secret)."""

    recording_id: str
    name: str
    path: Path
    source_sha256: str
    excluded: str | None


@dataclass(frozen=True)
class Ingested:
    """What became of a file; sizes are those of the written 16-kHz recording."""

    status: str
    reason: str | None
    source_rate_hz: int
    layout: str
    n_channels: int
    n_samples: int
    gain_db: float | None = None
    sha256: str | None = None

    def row(self) -> dict[str, Any]:
        """The columns of ``recordings`` that come from the sound."""
        columns = (
            "status", "reason", "source_rate_hz", "layout", "n_channels", "n_samples", "gain_db",
            "sha256",
        )  # fmt: skip
        values: dict[str, Any] = {name: getattr(self, name) for name in columns}
        return values | {"duration_s": self.n_samples / SAMPLE_RATE_HZ}


def list_files(folder: Path) -> list[Path]:
    """All files below a folder, in order of their names.

    Raises
    ------
    ManifestError
        The folder is absent or holds no file.
    """
    if not folder.is_dir():
        raise ManifestError(
            f"{folder}: no such folder; give the folder of your recordings with"
            " `-p 00_corpora.folder=PATH`"
        )
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    if not files:
        raise ManifestError(
            f"{folder}: the folder is empty; put recordings there (WAV, FLAC, MP3, M4A, OGG) or"
            " give another one with `-p 00_corpora.folder=PATH`"
        )
    return files


def plan_ids(
    folder: Path, dataset: str = "own", stems_are_public: bool = False
) -> list[SourceFile]:
    """Give every file of a folder its id, and say which are out before decoding.

    Ids come from content (``own/<8 hex digits>``), or from the stem where the corpus
    card declares stems public. A second file with the same bytes is excluded, and so is
    what is no audio file by suffix or first bytes.
    """
    planned: list[SourceFile] = []
    first: dict[str, str] = {}
    used: set[str] = set()
    for path in list_files(folder):
        try:
            digest, excluded = file_sha256(path), None
        except OSError as error:
            digest, excluded = "", f"cannot be read ({os.strerror(error.errno or 0)})"
        stem = _ascii_stem(path.stem) if stems_are_public else digest[:8] or "unreadable"
        recording_id = _unused(f"{dataset}/{stem}", used)
        if excluded is None and not is_audio(path):
            excluded = f"not an audio file ({_shown_suffix(path)})"
        elif excluded is None and digest in first:
            excluded = f"the same file as {first[digest]}"
        elif excluded is None:
            first[digest] = recording_id
        name = os.fsencode(path.relative_to(folder)).decode("utf-8", "backslashreplace")
        planned.append(SourceFile(recording_id, name, path, digest, excluded))
    return planned


def _unused(recording_id: str, used: set[str]) -> str:
    """The id itself, or a longer one where another file already has it."""
    candidate, n = recording_id, 2
    while candidate in used:
        candidate, n = f"{recording_id}-{n}", n + 1
    used.add(candidate)
    return candidate


def _ascii_stem(stem: str) -> str:
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in stem)
    return kept.strip(".") or "_"


def _shown_suffix(path: Path) -> str:
    if path.name.startswith("."):
        return "hidden"
    suffix = path.suffix.lower()
    return suffix if suffix.isascii() and 1 < len(suffix) <= 6 else "no known suffix"


def is_audio(path: Path) -> bool:
    """By suffix, or by the first bytes where the suffix says nothing. Hidden files are not."""
    if path.name.startswith("."):
        return False
    if path.suffix.lower() in SUFFIXES:
        return True
    with open(path, "rb") as handle:
        head = handle.read(12)
    return head.startswith(_MAGIC) or head[4:8] == b"ftyp"


def file_sha256(path: Path) -> str:
    digest = sha256()
    with open(path, "rb") as handle:
        while block := handle.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def join_files(paths: Sequence[Path], target: Path, mixed: bool) -> None:
    """Join mono files of one rate, one a speaker, as channels of a float WAV, block by block.

    Shorter files are continued with silence. ``mixed`` adds the channels up instead (a sum
    above full scale is turned down later, when the recording is written).

    Raises
    ------
    AudioError
        A file does not decode, is not mono, or the rates differ.
    """
    opened = [open_source(path) for path in paths]
    rates = {source.rate_hz for source in opened}
    if len(rates) != 1 or any(source.n_channels != 1 for source in opened):
        shapes = [f"{source.n_channels} at {source.rate_hz} Hz" for source in opened]
        raise AudioError(f"files of one recording must be mono and of one rate: {shapes}")
    streams = [_pieces(source.blocks) for source in opened]
    n_channels = 1 if mixed else len(streams)
    # 3 hours of two float channels stay below the 4 GiB of a WAV only at 16 kHz: RF64 has room.
    with sf.SoundFile(target, "w", rates.pop(), n_channels, "FLOAT", format="RF64") as out:
        while True:
            blocks = [next(stream, np.zeros(0, np.float32)) for stream in streams]
            length = max(block.size for block in blocks)
            if length == 0:
                break
            stacked = np.stack([np.pad(block, (0, length - block.size)) for block in blocks])
            out.write(stacked.sum(axis=0) if mixed else stacked.T)


def _pieces(blocks: Iterator[Signal], size: int = BLOCK) -> Iterator[Signal]:
    """Mono blocks of one size, the last one shorter."""
    kept = np.zeros(0, dtype=np.float32)
    for block in blocks:
        kept = np.concatenate([kept, block[0]])
        while kept.size >= size:
            yield kept[:size]
            kept = kept[size:]
    if kept.size:
        yield kept


def ingest_file(path: Path, target: Path) -> Ingested:
    """Bring one file to a 16-kHz PCM16 WAV at ``target``.

    Memory does not grow with the duration. An offset (DC) above 0.001 is removed;
    a signal above full scale is turned down and the gain recorded.

    Raises
    ------
    AudioError
        0 bytes, undecodable, no samples, or NaN or infinity.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=target.parent) as scratch:
        source = open_source(path)
        statistics = _decode(source, scratch)
        levels = statistics.levels_db
        duration_s, notes = statistics.n / SAMPLE_RATE_HZ, list(source.notes)
        refusal = _nothing_to_hear(duration_s, levels)
        if refusal:
            reason = "; ".join([refusal, *notes])
            shape = source.n_channels, statistics.n
            return Ingested("excluded", reason, source.rate_hz, "unknown", *shape)
        layout = choose_layout(levels, statistics.covariance)
        notes += layout.notes
        offset = np.where(np.abs(statistics.mean) > DC_LIMIT, statistics.mean, 0.0)
        if offset.any():
            notes.append(f"offset of {np.abs(offset).max():.3f} removed")
        mixed = _mixed(scratch, source.n_channels, statistics.n, layout.weights, offset)
        written = write_wav(target, mixed, private=True)
    return Ingested(
        "ok", "; ".join(notes) or None, source.rate_hz, layout.name, len(layout.weights),
        statistics.n, written.gain_db, written.sha256,
    )  # fmt: skip


def _decode(source: Source, scratch: Any) -> Statistics:
    """Decode and resample into the scratch file, samples interleaved as float32."""
    import soxr

    statistics = Statistics(source.n_channels)
    try:
        resampler = soxr.ResampleStream(source.rate_hz, SAMPLE_RATE_HZ, source.n_channels)
    except ValueError as error:
        shape = f"{source.rate_hz} Hz, {source.n_channels} channels"
        raise AudioError(f"a header of {shape} cannot be resampled") from error
    n_decoded = 0

    def keep(block: Signal) -> None:
        if source.rate_hz != SAMPLE_RATE_HZ:
            chunk = resampler.resample_chunk(np.ascontiguousarray(block.T), last=block.size == 0)
            block = chunk.reshape(-1, source.n_channels).T
        if block.size:
            statistics.add(block)
            scratch.write(np.ascontiguousarray(block.T, dtype="<f4").tobytes())

    for block in source.blocks:
        if not np.isfinite(block).all():
            bad = int((~np.isfinite(block)).sum())
            at_s = n_decoded / source.rate_hz
            raise AudioError(
                f"at least {bad} samples are NaN or infinite, first after {at_s:.0f} s"
            )
        n_decoded += block.shape[1]
        keep(block)
    if not n_decoded:
        raise AudioError("a header without samples")
    keep(np.zeros((source.n_channels, 0), dtype=np.float32))
    statistics.close()
    return statistics


def _nothing_to_hear(duration_s: float, levels_db: NDArray[np.float64]) -> str | None:
    if duration_s < MIN_DURATION_S:
        return f"only {duration_s:.2f} s long (at least {MIN_DURATION_S} s are needed)"
    loudest = float(levels_db.max())
    if loudest < -150.0:
        return "a constant signal"
    if loudest < SILENT_DBFS:
        return f"silent (nothing above {SILENT_DBFS:.0f} dBFS)"
    return None


def _mixed(
    scratch: Any,
    n_source: int,
    n_samples: int,
    weights: NDArray[np.float32],
    offset: NDArray[np.float64],
) -> LongSignal:
    """The recording's channels, shape (channels, n), from the scratch file."""

    def read(first: int, last: int) -> Signal:
        scratch.seek(first * n_source * 4)
        raw = scratch.read((last - first) * n_source * 4)
        block = np.frombuffer(raw, dtype="<f4").reshape(-1, n_source)
        return np.asarray(weights @ (block - offset).astype(np.float32).T, dtype=np.float32)

    return LongSignal((len(weights), n_samples), read)


def same_sound(rows: Sequence[tuple[str, str | None]]) -> dict[str, str]:
    """Recordings whose samples equal an earlier one's: id -> the earlier id.

    ``rows`` are (recording_id, sha256 of the ingested file or None), in order.
    """
    first: dict[str, str] = {}
    copies: dict[str, str] = {}
    for recording_id, digest in rows:
        if digest is not None and first.setdefault(digest, recording_id) != recording_id:
            copies[recording_id] = first[digest]
    return copies
