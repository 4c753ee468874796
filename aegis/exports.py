"""Turns for other tools: RTTM, Praat TextGrid, WebVTT, STM and lhotse manifests.

Unit: one recording in one condition; times are on that condition's own clock. RTTM says
who speaks when and holds no words, so it is public; the other formats hold what fresh
recognition heard, or the turns' own words for the original, and are secret.

Functions: :func:`export_turns`, and one writer a format.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from aegis.audio import SAMPLE_RATE_HZ, write_bytes
from aegis.errors import ParamError, TableError
from aegis.tables import CONDITIONS, Run


@dataclass(frozen=True)
class OutTurn:
    """One turn as it is written; ``text`` is empty where words are not asked for."""

    start_s: float
    end_s: float
    speaker: str
    language: str
    channel: int
    text: str


@dataclass(frozen=True)
class OutRecording:
    """One recording's turns in order, with its length and sound."""

    name: str
    duration_s: float
    sound: str
    turns: tuple[OutTurn, ...]

    @property
    def file_name(self) -> str:
        """The recording's name without its slash, as its own file is called (no ending)."""
        return self.name.replace("/", "_")


def export_turns(
    run: Run, format: str, folder: Path, condition: str = "original", secret: bool = False
) -> list[Path]:
    """Write the turns of every recording in one format; the files written.

    Raises
    ------
    ParamError
        Unknown format or condition.
    TableError
        The format holds words and ``secret`` is not set, or the stage has not run.
    """
    if format not in (*FORMATS, LHOTSE) or condition not in CONDITIONS:
        known = f"{', '.join((*FORMATS, LHOTSE))}; conditions {', '.join(CONDITIONS)}"
        raise ParamError(f"{format}, {condition}: known are {known}")
    if format != "rttm" and not secret:
        raise TableError(f"{format} holds words, which are secret; --secret writes them")
    written = []
    recordings = read_recordings(run, condition, words=format != "rttm")
    if format == LHOTSE:
        return _write_lhotse(recordings, folder)
    for recording in recordings:
        ending, text = FORMATS[format]
        path = folder / f"{recording.file_name}{ending}"
        write_bytes(path, text(recording).encode("utf-8"))
        written.append(path)
    return written


def read_recordings(run: Run, condition: str, words: bool) -> list[OutRecording]:
    """The turns of every usable recording in one condition, by recording and time."""
    turns = run.read("turn_times")
    if words or condition != "original":
        full = run.read("turns")[["turn_id", "channel", "language", "text"]]
        turns = turns.merge(full, on="turn_id")
    else:
        turns = turns.assign(channel=0, language="", text="")
    if condition != "original":
        heard = run.read("turn_transcripts")
        heard = heard[heard["condition"] == condition]
        own = heard[["turn_id", "text", "out_start_s", "out_end_s"]]
        turns = turns.drop(columns=["text", "start_s", "end_s"]).merge(own, on="turn_id")
        turns = turns.rename(columns={"out_start_s": "start_s", "out_end_s": "end_s"})
    lengths = _durations(run, condition)
    found = []
    for recording, group in turns.groupby("recording_id", sort=True):
        rows = group.sort_values(["start_s", "end_s", "turn_id"])
        path = run.conversation_path(condition, str(recording))
        found.append(
            OutRecording(
                str(recording),
                lengths[str(recording)],
                str(path),
                tuple(_turn(row, words) for _, row in rows.iterrows()),
            )
        )
    return found


def _turn(row: pd.Series, words: bool) -> OutTurn:
    text = " ".join(str(row["text"]).split()) if words else ""
    return OutTurn(
        float(row["start_s"]), float(row["end_s"]), str(row["speaker"]),
        str(row["language"]), int(row["channel"]), text,
    )  # fmt: skip


def _durations(run: Run, condition: str) -> dict[str, float]:
    if condition == "original":
        table = run.read("recordings")
    else:
        table = run.read("reconstructions")
        table = table[table["condition"] == condition]
    ok = table[table["status"] == "ok"]
    lengths = ok["duration_s"].astype(float)
    return dict(zip(ok["recording_id"].astype(str), lengths, strict=True))


# --- the formats ------------------------------------------------------------------------


def rttm(recording: OutRecording) -> str:
    """NIST RTTM, one SPEAKER line a turn."""
    return "".join(
        f"SPEAKER {recording.file_name} {turn.channel + 1}"
        f" {turn.start_s:.3f} {turn.end_s - turn.start_s:.3f}"
        f" <NA> <NA> {turn.speaker} <NA> <NA>\n"
        for turn in recording.turns
    )


def stm(recording: OutRecording) -> str:
    """NIST STM: file, channel, speaker, start, end, words."""
    return "".join(
        f"{recording.file_name} {turn.channel + 1} {turn.speaker}"
        f" {turn.start_s:.3f} {turn.end_s:.3f}"
        f" <o,{turn.language}> {turn.text}\n"
        for turn in recording.turns
    )


def webvtt(recording: OutRecording) -> str:
    """WebVTT with the speaker as voice; overlapping cues are allowed there."""
    cues = [
        f"{_clock(turn.start_s)} --> {_clock(turn.end_s)}\n"
        f"<v {turn.speaker}>{_escaped(turn.text)}\n"
        for turn in recording.turns
    ]
    return "WEBVTT\n\n" + "\n".join(cues)


def _clock(seconds: float) -> str:
    thousandths = round(seconds * 1000)
    minutes, rest = divmod(thousandths, 60_000)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{rest // 1000:02d}.{rest % 1000:03d}"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def textgrid(recording: OutRecording) -> str:
    """Praat TextGrid (long text format), one tier a speaker, silence as empty intervals.

    A tier cannot hold overlaps: a turn that starts before the speaker's last one ended is
    moved to that end.
    """
    speakers = sorted({turn.speaker for turn in recording.turns})
    lines = [
        'File type = "ooTextFile"', 'Object class = "TextGrid"', "",
        "xmin = 0", f"xmax = {recording.duration_s:.6f}", "tiers? <exists>",
        f"size = {len(speakers)}", "item []:",
    ]  # fmt: skip
    for number, speaker in enumerate(speakers, start=1):
        own = [turn for turn in recording.turns if turn.speaker == speaker]
        intervals = _filled(own, recording.duration_s)
        lines += [
            f"    item [{number}]:", '        class = "IntervalTier"',
            f'        name = "{_quoted(speaker)}"', "        xmin = 0",
            f"        xmax = {recording.duration_s:.6f}",
            f"        intervals: size = {len(intervals)}",
        ]  # fmt: skip
        for i, (start, end, text) in enumerate(intervals, start=1):
            lines += [
                f"        intervals [{i}]:", f"            xmin = {start:.6f}",
                f"            xmax = {end:.6f}", f'            text = "{_quoted(text)}"',
            ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return text.replace('"', '""')


def _filled(turns: Sequence[OutTurn], duration_s: float) -> list[tuple[float, float, str]]:
    """Intervals that cover the whole tier without a gap or an overlap."""
    out: list[tuple[float, float, str]] = []
    at = 0.0
    for turn in turns:
        start, end = max(turn.start_s, at), min(turn.end_s, duration_s)
        if end <= start:
            continue
        if start > at:
            out.append((at, start, ""))
        out.append((start, end, turn.text))
        at = end
    if at < duration_s:
        out.append((at, duration_s, ""))
    return out


def _write_lhotse(recordings: Sequence[OutRecording], folder: Path) -> list[Path]:
    """``recordings.jsonl`` and ``supervisions.jsonl`` as lhotse reads them."""
    sounds, turns = [], []
    for recording in recordings:
        n_samples = round(recording.duration_s * SAMPLE_RATE_HZ)
        channels = sorted({turn.channel for turn in recording.turns}) or [0]
        sounds.append(
            {
                "id": recording.name,
                "sources": [{"type": "file", "channels": channels, "source": recording.sound}],
                "sampling_rate": SAMPLE_RATE_HZ,
                "num_samples": n_samples,
                "duration": recording.duration_s,
                "channel_ids": channels,
            }
        )
        turns += [
            {
                "id": f"{recording.name}-{number:04d}",
                "recording_id": recording.name,
                "start": round(turn.start_s, 6),
                "duration": round(turn.end_s - turn.start_s, 6),
                "channel": turn.channel,
                "text": turn.text,
                "language": turn.language,
                "speaker": f"{recording.name}/{turn.speaker}",
            }
            for number, turn in enumerate(recording.turns)
        ]
    written = []
    for name, rows in (("recordings", sounds), ("supervisions", turns)):
        path = folder / f"{name}.jsonl"
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        write_bytes(path, lines.encode("utf-8"))
        written.append(path)
    return written


FORMATS: dict[str, tuple[str, Callable[[OutRecording], str]]] = {
    "rttm": (".rttm", rttm),
    "textgrid": (".TextGrid", textgrid),
    "webvtt": (".vtt", webvtt),
    "stm": (".stm", stm),
}
"""Format -> ending of its files and what writes one."""
LHOTSE = "lhotse"
"""Two files for all recordings."""
