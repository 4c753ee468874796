"""Reconstruction: which sound fills which interval of a de-identified conversation.

The unit is one recording in one condition. Its *segment table* (the ``timeline``
table) is planned from lengths alone (:func:`plan_segments`), turned into sound
(:func:`assemble`) and replayed against the saved file (:func:`replay_steps`).

Rules (methods, reconstruction): turns follow each other in start order; a gap
keeps its length and holds silence; an overlap belongs to the turn that started
first and the head of the other is clipped; a rendered turn may be longer or
shorter than its source and shifts what follows; primary joins have no fade.
Recordings with a speaker per channel are mixed: each channel is laid out on one
common clock and the channels are added.

All positions are samples at 16 kHz, intervals are half open. ``kind`` says what
a segment is (``turn``, ``gap``, ``clipped``), ``source`` what fills it
(``converted``, ``rendered``, ``retained_converted``, ``silence``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from aegis.audio import PCM16_STEP, AnySignal, LongSignal, Signal, blocks_of
from aegis.errors import ItemError

MIXED = "mixed"


@dataclass(frozen=True)
class TurnSound:
    """One turn, where it lies in the source, and what can stand in its place.

    ``n_samples`` is the length of ``file``; without a file (the conversion failed)
    the turn is silent for its source length.
    """

    turn_id: str
    profile_id: str
    channel: int
    start: int
    end: int
    source: str
    file: str | None
    n_samples: int
    n_edits: int = 0


@dataclass(frozen=True)
class Segment:
    """One row of the timeline; ``file_start`` is the first sample taken from ``file``."""

    kind: str
    source: str
    channel: int
    source_start: int
    source_end: int
    out_start: int
    out_end: int
    turn_id: str | None = None
    profile_id: str | None = None
    file: str | None = None
    file_start: int | None = None


@dataclass(frozen=True)
class Counts:
    """What a reconstruction did; seconds are of source time except ``inserted_s``."""

    n_segments: int
    n_rendered: int
    n_retained: int
    n_failed: int
    n_clipped_turns: int
    n_clipped_edits: int
    clipped_s: float
    inserted_s: float
    n_samples: int


def choose_sound(
    turn: dict[str, object],
    converted: dict[str, object] | None,
    rendered: dict[str, object] | None,
    condition: str,
) -> TurnSound:
    """Decide what stands for one turn in one condition.

    Parameters
    ----------
    turn
        ``turn_id, profile_id, channel, start, end`` in samples, and ``n_edits``.
    converted, rendered
        Rows with ``status, file, n_samples``; None where no row was planned.
    condition
        A failed rendering keeps the converted turn (``retained_converted``), except in
        ``redacted``, which must not fall back to speech: there the turn falls silent.
        A failed conversion is silence in every condition, never the original.
    """
    base = TurnSound(
        turn_id=str(turn["turn_id"]),
        profile_id=str(turn["profile_id"]),
        channel=_whole(turn["channel"]),
        start=_whole(turn["start"]),
        end=_whole(turn["end"]),
        source="silence",
        file=None,
        n_samples=_whole(turn["end"]) - _whole(turn["start"]),
        n_edits=_whole(turn.get("n_edits", 0)),
    )
    if rendered is not None and rendered["status"] == "ok":
        return _filled(base, "rendered", rendered)
    if converted is None or converted["status"] != "ok":
        return base
    if rendered is None:
        return _filled(base, "converted", converted)
    return base if condition == "redacted" else _filled(base, "retained_converted", converted)


def _filled(base: TurnSound, source: str, row: dict[str, object]) -> TurnSound:
    return replace(base, source=source, file=str(row["file"]), n_samples=_whole(row["n_samples"]))


def _whole(value: object) -> int:
    return int(value)  # type: ignore[call-overload, no-any-return]


def plan_segments(turns: Iterable[TurnSound], n_samples: int, layout: str) -> list[Segment]:
    """The segment table of one recording and condition.

    Parameters
    ----------
    turns
        Any order; positions past the recording's end are clamped.
    n_samples
        Length of the source recording (of one channel).
    layout
        ``speaker_per_channel`` mixes; every other layout concatenates.

    Returns
    -------
    list of Segment
        Ordered by output start, channel. On each channel the segments cover
        ``[0, end)`` of the output without gap or overlap, and turns and gaps cover
        the source once.

    Raises
    ------
    ItemError
        A turn ends before it starts, or starts after the recording's end.
    """
    ordered = sorted(
        (_clamped(turn, n_samples) for turn in turns),
        key=lambda turn: (turn.start, turn.end, turn.channel, turn.turn_id),
    )
    if layout != "speaker_per_channel":
        return _concatenate([replace(turn, channel=0) for turn in ordered], n_samples)
    return _mix(ordered, n_samples)


def _clamped(turn: TurnSound, n_samples: int) -> TurnSound:
    if not 0 <= turn.start <= turn.end or turn.start > n_samples:
        raise ItemError(
            f"turn {turn.turn_id}: [{turn.start}, {turn.end}) does not lie in a recording of"
            f" {n_samples} samples"
        )
    if turn.end <= n_samples:
        return turn
    length = turn.n_samples if turn.file else n_samples - turn.start
    return replace(turn, end=n_samples, n_samples=length)


def _concatenate(turns: Sequence[TurnSound], n_samples: int) -> list[Segment]:
    """One channel after another turn: the output clock moves by whole segments."""
    rows: list[Segment] = []
    source_at = out_at = 0
    for turn in turns:
        if turn.start > source_at:
            rows.append(_gap(0, source_at, turn.start, out_at, out_at + turn.start - source_at))
            source_at, out_at = turn.start, rows[-1].out_end
        rows.append(_placed(turn, source_at, out_at))
        source_at, out_at = max(source_at, turn.end), rows[-1].out_end
    if n_samples > source_at:
        rows.append(_gap(0, source_at, n_samples, out_at, out_at + n_samples - source_at))
    return rows


def _gap(channel: int, start: int, end: int, out_start: int, out_end: int) -> Segment:
    return Segment("gap", "silence", channel, start, end, out_start, out_end)


def _placed(turn: TurnSound, taken_until: int, out_at: int) -> Segment:
    """Put a turn at ``out_at``; source samples before ``taken_until`` belong to another turn."""
    start = max(turn.start, taken_until)
    if start >= turn.end:
        return Segment(
            "clipped", turn.source, turn.channel, turn.start, turn.end, out_at, out_at,
            turn.turn_id, turn.profile_id, turn.file, None,
        )  # fmt: skip
    # A rendered turn has its own clock: the clipped head is the same share of it.
    share = (start - turn.start) / (turn.end - turn.start)
    skipped = round(share * turn.n_samples)
    return Segment(
        "turn", turn.source, turn.channel, start, turn.end, out_at,
        out_at + turn.n_samples - skipped, turn.turn_id, turn.profile_id, turn.file,
        skipped if turn.file else None,
    )  # fmt: skip


def _mix(turns: Sequence[TurnSound], n_samples: int) -> list[Segment]:
    """Channels side by side on one output clock.

    What a turn gains or loses moves everything, on every channel, that starts at or
    after its end; speech of the other channel during the turn stays where it is.
    """
    channels = sorted({turn.channel for turn in turns}) or [0]
    source_at = dict.fromkeys(channels, 0)
    out_at = dict.fromkeys(channels, 0)
    changes: list[tuple[int, int]] = []
    rows: list[Segment] = []
    for turn in turns:
        channel = turn.channel
        start = max(turn.start, source_at[channel])
        wanted = start + sum(change for end, change in changes if end <= start)
        out_start = max(wanted, out_at[channel])
        if start < turn.end and (start > source_at[channel] or out_start > out_at[channel]):
            rows.append(_gap(channel, source_at[channel], start, out_at[channel], out_start))
            out_at[channel] = out_start
        rows.append(_placed(turn, source_at[channel], out_at[channel]))
        placed = rows[-1]
        source_at[channel] = max(source_at[channel], turn.end)
        out_at[channel] = placed.out_end
        if placed.kind == "turn":
            gained = (placed.out_end - placed.out_start) - (turn.end - placed.source_start)
            changes.append((turn.end, gained))
    total = max(n_samples + sum(change for _, change in changes), *out_at.values())
    for channel in channels:
        if total > out_at[channel] or n_samples > source_at[channel]:
            rows.append(_gap(channel, source_at[channel], n_samples, out_at[channel], total))
    return sorted(
        rows, key=lambda row: (row.out_start, row.channel, row.out_end, row.source_start)
    )


def count_segments(segments: Sequence[Segment], turns: Sequence[TurnSound]) -> Counts:
    """Counts of one reconstruction; a turn that is silent or fully clipped has failed."""
    spoken = [row for row in segments if row.kind == "turn"]
    lost = [row for row in segments if row.kind == "clipped"]
    length = {turn.turn_id: turn.end - turn.start for turn in turns}
    edits = {turn.turn_id: turn.n_edits for turn in turns}
    kept = sum(row.source_end - row.source_start for row in spoken)
    inserted = sum(
        (row.out_end - row.out_start) - (row.source_end - row.source_start) for row in spoken
    )
    return Counts(
        n_segments=len(segments),
        n_rendered=sum(row.source == "rendered" for row in spoken),
        n_retained=sum(row.source == "retained_converted" for row in spoken),
        n_failed=sum(row.source == "silence" for row in spoken) + len(lost),
        n_clipped_turns=len(lost),
        n_clipped_edits=sum(edits[str(row.turn_id)] for row in lost),
        clipped_s=(sum(length.values()) - kept) / 16_000,
        inserted_s=inserted / 16_000,
        n_samples=max((row.out_end for row in segments), default=0),
    )


def assemble(
    segments: Sequence[Segment], read: Callable[[str], Signal], join_fade_s: float = 0.0
) -> LongSignal:
    """The sound of a segment table, shape (n,); channels are added where it is sliced.

    Parameters
    ----------
    segments
        From :func:`plan_segments`.
    read
        Gives the mono signal of a segment's file.
    join_fade_s
        0 in the primary conditions. Above 0 each turn fades in and out over this time
        (at most half the segment) without moving a sample: the faded variant.

    Slicing raises ``ItemError`` where a file is shorter than its segment.
    """
    spoken = [row for row in segments if row.kind == "turn" and row.file is not None]
    n_fade = round(join_fade_s * 16_000)

    def make(first: int, last: int) -> Signal:
        out = np.zeros(last - first, dtype=np.float32)
        for row in spoken:
            start, end = max(first, row.out_start), min(last, row.out_end)
            if start < end:
                piece = _faded(_piece(row, read), n_fade)
                out[start - first : end - first] += piece[
                    start - row.out_start : end - row.out_start
                ]
        return out

    return LongSignal((max((row.out_end for row in segments), default=0),), make)


def _piece(row: Segment, read: Callable[[str], Signal]) -> Signal:
    """The sound of one segment."""
    length = row.out_end - row.out_start
    piece = read(str(row.file))[row.file_start or 0 :][:length]
    if piece.size != length:
        raise ItemError(f"{row.file}: {piece.size} samples left, the timeline needs {length}")
    return piece


def _faded(piece: Signal, n_fade: int) -> Signal:
    n_fade = min(n_fade, piece.size // 2)
    if n_fade == 0:
        return piece
    ramp = np.sin(np.linspace(0.0, np.pi / 2, n_fade, dtype=np.float32)) ** 2
    faded = piece.copy()
    faded[:n_fade] *= ramp
    faded[-n_fade:] *= ramp[::-1]
    return faded


def replay_steps(
    segments: Sequence[Segment],
    read: Callable[[str], Signal],
    saved: AnySignal,
    gain_db: float = 0.0,
    join_fade_s: float = 0.0,
) -> float:
    """Largest difference, in PCM16 steps, between a saved file and its replayed segments.

    ``inf`` when the lengths differ. ``gain_db`` is what the writer turned the sum down by.
    """
    again = assemble(segments, read, join_fade_s)
    if again.shape != saved.shape:
        return float("inf")
    gain = np.float32(10.0 ** (gain_db / 20.0))
    differences = (
        np.abs((replayed * gain).astype(np.float64) - kept).max()
        for replayed, kept in zip(blocks_of(again), blocks_of(saved), strict=True)
    )
    return float(max(differences, default=0.0) / PCM16_STEP)


def check_segments(segments: Sequence[Segment], n_samples: int) -> None:
    """Refuse a table that leaves, or uses twice, a sample of the source or the output.

    Raises
    ------
    ItemError
        Names the channel and the first position that breaks the rule.
    """
    for channel in sorted({row.channel for row in segments}):
        rows = [row for row in segments if row.channel == channel and row.kind != "clipped"]
        source_at = out_at = 0
        for row in sorted(rows, key=lambda row: (row.out_start, row.source_start)):
            if (row.source_start, row.out_start) != (source_at, out_at):
                raise ItemError(
                    f"timeline, channel {channel}: source {row.source_start} at output"
                    f" {row.out_start}, expected {source_at} at {out_at}"
                )
            source_at, out_at = row.source_end, row.out_end
        if source_at != n_samples:
            raise ItemError(f"timeline, channel {channel}: ends at {source_at} of {n_samples}")
