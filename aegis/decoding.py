"""Decoding of a sound file block by block, in bounded memory.

Unit: one file. Blocks are float32 of shape (channels, n) at the file's own rate.
libsndfile reads what it can, FFmpeg's libraries (PyAV) the rest. A file that ends
early keeps what is there, and ``Source.notes`` says so once the blocks are read;
notes are public and hold no file name.

Functions: :func:`open_source`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import soundfile as sf

from aegis.audio import Signal, audio_stream
from aegis.errors import AudioError

_BLOCK = 1 << 17
_READ = 1 << 10


@dataclass
class Source:
    """A file being decoded: ``blocks`` yields float32 of shape (channels, n)."""

    rate_hz: int
    n_channels: int
    blocks: Iterator[Signal]
    notes: list[str] = field(default_factory=list)


def open_source(path: Path) -> Source:
    """Open a file for block-wise decoding: libsndfile first, then FFmpeg's libraries.

    MP3 goes to FFmpeg: libsndfile's decoder prints hundreds of lines about sound files.

    Raises
    ------
    AudioError
        0 bytes, or neither can open it.
    """
    if path.stat().st_size == 0:
        raise AudioError("the file has 0 bytes")
    try:
        handle = sf.SoundFile(path)
    except (sf.LibsndfileError, RuntimeError):
        return _open_with_ffmpeg(path)
    if handle.format == "MP3":
        handle.close()
        return _open_with_ffmpeg(path)
    source = Source(handle.samplerate, handle.channels, iter(()))
    source.blocks = _sndfile_blocks(handle, path, source.notes)
    return source


def _sndfile_blocks(handle: sf.SoundFile, path: Path, notes: list[str]) -> Iterator[Signal]:
    with handle:
        expected, rate, n_read = _declared_frames(handle, path), handle.samplerate, 0
        damaged = False
        while not damaged:
            # An error loses the read that met it, so reads are short and blocks are long.
            parts: list[Signal] = []
            try:
                while len(parts) < _BLOCK // _READ:
                    part = handle.read(_READ, dtype="float32", always_2d=True)
                    if not len(part):
                        break
                    parts.append(part)
            except sf.LibsndfileError:
                damaged = True
            if not parts:
                break
            block = np.concatenate(parts).T
            n_read += block.shape[1]
            yield block
        if damaged:
            notes.append(f"damaged: decoded {n_read / rate:.2f} s, then an error")
        elif expected is not None and expected - n_read > 0.05 * rate:
            notes.append(f"truncated: {n_read / rate:.2f} of {expected / rate:.2f} s are there")


def _declared_frames(handle: sf.SoundFile, path: Path) -> int | None:
    """Frames that the header promises, where a header does (libsndfile clamps WAV to the file)."""
    if handle.format == "FLAC":
        return int(handle.frames)
    if handle.format not in ("WAV", "WAVEX"):
        return None
    with open(path, "rb") as raw:
        head = raw.read(12)
        if head[:4] != b"RIFF":
            return None
        block_align = 0
        while len(chunk := raw.read(8)) == 8:
            size = int.from_bytes(chunk[4:], "little")
            if chunk[:4] == b"fmt ":
                block_align = int.from_bytes(raw.read(size + size % 2)[12:14], "little")
            elif chunk[:4] == b"data":
                pcm = handle.subtype.startswith(("PCM", "FLOAT", "DOUBLE", "ULAW", "ALAW"))
                # Writers that stream leave the length at 0 or at the largest number.
                streamed = size == 0 or size >= 0xFFFFFF00
                return size // block_align if pcm and not streamed and block_align else None
            else:
                raw.seek(size + size % 2, os.SEEK_CUR)
    return None


def _open_with_ffmpeg(path: Path) -> Source:
    import av

    try:
        container = av.open(str(path))
    except (av.FFmpegError, ValueError, OSError) as error:
        raise AudioError("cannot be decoded: no decoder knows the format, or it is cut") from error
    try:
        stream = audio_stream(container)
    except AudioError:
        container.close()
        raise
    source = Source(int(stream.rate), int(stream.channels), iter(()))
    known = stream.duration is not None and stream.time_base is not None
    promised = float(stream.duration * stream.time_base) if known else None  # type: ignore[operator]
    source.blocks = _ffmpeg_blocks(container, source, promised)
    return source


def _ffmpeg_blocks(container: Any, source: Source, promised_s: float | None) -> Iterator[Signal]:
    import av

    with container:
        stream = container.streams.audio[0]
        resampler = av.AudioResampler(format="fltp", layout=stream.layout, rate=source.rate_hz)
        n_read = 0
        try:
            for frame in container.decode(stream):
                for out in resampler.resample(frame):
                    block = np.asarray(out.to_ndarray(), dtype=np.float32)
                    if block.shape[0] != source.n_channels:
                        raise ValueError("other channels")
                    n_read += block.shape[1]
                    yield block
        except (av.FFmpegError, ValueError):  # ValueError: another form midway
            source.notes.append(f"damaged: decoded {n_read / source.rate_hz:.2f} s, then an error")
            return
        found_s = n_read / source.rate_hz
        if promised_s is not None and promised_s - found_s > 0.2:
            source.notes.append(f"truncated: {found_s:.2f} of {promised_s:.2f} s are there")
