"""Turns that people bring along: RTTM, TextGrid, SRT, WebVTT and lhotse supervisions.

Unit: one turn of one recording, on the recording's own clock. A file with words replaces
recognition; RTTM has none, so it replaces diarization only. Files are matched to
recordings by the name of the recording's file without its ending, or by the end of its
id; both may be matched case-sensitively only.

Functions: :func:`read_given`, :func:`match_given`.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from aegis.errors import ManifestError
from aegis.readers import read_rttm, read_text, read_textgrid

ENDINGS = (".rttm", ".textgrid", ".srt", ".vtt", ".jsonl")
_TIME = r"(?:(\d+):)?(\d{1,2}):(\d{2})[.,](\d{1,3})"
_CUE = re.compile(rf"^\s*{_TIME}\s*-->\s*{_TIME}")
_VOICE = re.compile(r"^<v(?:\.[\w.]+)?\s+([^>]+)>\s*")
_NAMED = re.compile(r"^([^\W\d_][\w .'-]{0,30}):\s+(?=\S)")
_TAG = re.compile(r"</?[^>]+>")


@dataclass(frozen=True)
class GivenTurn:
    """One speaker from ``start_s`` to ``end_s``; ``text`` is None where a format has no words."""

    start_s: float
    end_s: float
    speaker: str
    text: str | None


def read_given(path: Path, recording: str | None = None) -> list[GivenTurn]:
    """Read a file of turns, in order of start.

    Parameters
    ----------
    path
        Its ending says the format.
    recording
        Where a file holds several recordings (RTTM, lhotse), take this one's.

    Raises
    ------
    ManifestError
        Unknown ending, a broken file (with the line), or no turn at all.
    """
    ending = "".join(path.suffixes[-2:]).lower().removesuffix(".gz")
    ending = "." + ending.rpartition(".")[2]
    readers = {
        ".rttm": _from_rttm, ".textgrid": _from_textgrid, ".srt": _from_cues,
        ".vtt": _from_cues, ".jsonl": _from_lhotse,
    }  # fmt: skip
    if ending not in readers:
        raise ManifestError(f"{path.name}: turns are read from {', '.join(ENDINGS)}")
    turns = sorted(readers[ending](path, recording), key=lambda t: (t.start_s, t.end_s))
    if not turns:
        raise ManifestError(f"{path.name}: holds no turn")
    return turns


def _from_rttm(path: Path, recording: str | None) -> list[GivenTurn]:
    turns = read_rttm(path)
    if len({turn.file_id for turn in turns}) > 1:
        turns = [turn for turn in turns if turn.file_id == recording]
    return [GivenTurn(t.start_s, t.end_s, t.speaker, None) for t in turns]


def _from_textgrid(path: Path, recording: str | None) -> list[GivenTurn]:
    """One interval tier a speaker; an empty interval is silence."""
    return [
        GivenTurn(i.start_s, i.end_s, tier.name or f"tier {number}", " ".join(i.text.split()))
        for number, tier in enumerate(read_textgrid(path), start=1)
        if tier.kind == "IntervalTier"
        for i in tier.intervals
        if i.text.strip()
    ]


def _from_cues(path: Path, recording: str | None) -> list[GivenTurn]:
    """SRT and WebVTT; ``<v Name>`` or ``Name:`` at the start of a cue says who speaks."""
    turns: list[GivenTurn] = []
    times: tuple[float, float] | None = None
    lines: list[str] = []
    speaker = "speaker"
    rows = read_text(path).split("\n")
    for number, row in enumerate([*rows, ""], start=1):
        found = _CUE.match(row)
        if found:
            parts = found.groups()
            times = _seconds(parts[:4]), _seconds(parts[4:])
            if times[1] <= times[0]:
                raise ManifestError(f"{path.name}, line {number}: the cue has no length")
            lines = []
        elif "-->" in row:
            raise ManifestError(f"{path.name}, line {number}: {row.strip()!r} is no pair of times")
        elif not row.strip():
            if times and lines:
                speaker, text = _who(" ".join(lines), speaker)
                if text:
                    turns.append(GivenTurn(*times, speaker, text))
            times, lines = None, []
        elif times:
            lines.append(row.strip())
    return turns


def _seconds(parts: tuple[str | None, ...]) -> float:
    hours, minutes, seconds, fraction = (part or "0" for part in parts)
    whole = int(hours) * 3600 + int(minutes) * 60 + int(seconds)
    return float(whole + int(fraction) / 10 ** len(fraction))


def _who(text: str, before: str) -> tuple[str, str]:
    """(speaker, words); a cue that names nobody is the speaker's before it."""
    for pattern in (_VOICE, _NAMED):
        found = pattern.match(text)
        if found:
            return found[1].strip(), _TAG.sub("", text[found.end() :]).strip()
    return before, _TAG.sub("", text).strip()


def _from_lhotse(path: Path, recording: str | None) -> list[GivenTurn]:
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    turns = []
    for number, line in enumerate(content.decode("utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            if recording and row["recording_id"].rpartition("/")[2] != recording:
                continue
            start = float(row["start"])
            end = start + float(row["duration"])
        except (ValueError, KeyError, TypeError) as error:
            raise ManifestError(f"{path.name}, line {number}: no supervision ({error})") from error
        turns.append(GivenTurn(start, end, str(row.get("speaker") or "speaker"), row.get("text")))
    return turns


def match_given(place: Path, files: Iterable[tuple[str, str]]) -> Mapping[str, tuple[Path, str]]:
    """Recording id -> (file of turns, the name by which it is known there).

    Parameters
    ----------
    place
        A folder, or one file for all recordings.
    files
        (recording_id, name of its input file).

    Raises
    ------
    ManifestError
        There is no such place, or two files of turns are for one recording.
    """
    if not place.exists():
        raise ManifestError(f"{place.name}: no such file or folder of turns")
    matched: dict[str, tuple[Path, str]] = {}
    known = sorted(place.iterdir()) if place.is_dir() else []
    for recording, file in files:
        names = (Path(file).stem, recording.rpartition("/")[2])
        if not place.is_dir():
            matched[recording] = (place, names[0])
            continue
        fits = [(path, name) for name in names for path in known if _is_for(path, name)]
        if len({path for path, _ in fits}) > 1:
            shown = ", ".join(sorted({path.suffix for path, _ in fits}))
            raise ManifestError(f"{recording}: several files of turns ({shown})")
        if fits:
            matched[recording] = fits[0]
    return matched


def _is_for(path: Path, name: str) -> bool:
    base = path.name.removesuffix(".gz")
    return Path(base).suffix.lower() in ENDINGS and Path(base).stem == name
