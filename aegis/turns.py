"""Turns: which speaker said which words.

Unit: a turn (one speaker, ``[start, end)``, sample-exact at 16 kHz). Words are attributed
to diarized stretches one by one, so that a recogniser's segment across a change of
speaker is split. Speakers are S1, S2, ... by first appearance in a recording.

Functions: :func:`check_stretches`, :func:`attribute`, :func:`snap_changes`,
:func:`build_turns`, :func:`rename_speakers`, :func:`overlap_seconds`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from aegis.audio import SAMPLE_RATE_HZ
from aegis.errors import ItemError
from aegis.tables import content_id
from aegis.words import LATE_S, HeardWord, Interval, covered_seconds

TITLES = ("Dr", "Mr", "Mrs", "Ms", "St", "Prof", "M")
SENTENCE_END = re.compile("".join(rf"(?<!\b{title})" for title in TITLES) + r"[.?!…][\"'»”)]*$")
CLAUSE_END = re.compile(r"[,;:][\"'»”)]*$")


@dataclass(frozen=True)
class Stretch:
    """Speech of one speaker as a diarizer reports it; stretches of two may overlap."""

    start_s: float
    end_s: float
    speaker: str


@dataclass(frozen=True)
class Turn:
    """One speaker's words in a row; ``words`` are indices into the recording's words."""

    speaker: str
    channel: int
    start_s: float
    end_s: float
    words: tuple[int, ...]

    @property
    def samples(self) -> tuple[int, int]:
        return round(self.start_s * SAMPLE_RATE_HZ), round(self.end_s * SAMPLE_RATE_HZ)

    def turn_id(self, recording_sha256: str) -> str:
        """The id of a turn: its recording's content, channel, samples and speaker."""
        return content_id("t", recording_sha256, self.channel, *self.samples, self.speaker)


def check_stretches(stretches: Sequence[Stretch], duration_s: float) -> list[Stretch]:
    """Refuse diarized stretches that cannot be; clamp those that end just after the file.

    Raises
    ------
    ItemError
        A stretch has no positive length, starts before 0 or after the end, or lies
        inside another one of the same speaker; the message has its number.
    """
    checked: list[Stretch] = []
    reach: dict[str, float] = {}
    order = sorted(range(len(stretches)), key=lambda i: (stretches[i].start_s, i))
    for i in order:
        turn = stretches[i]
        shown = f"diarized stretch {i + 1} ({turn.speaker} {turn.start_s:.3f}-{turn.end_s:.3f} s)"
        if not np.isfinite([turn.start_s, turn.end_s]).all() or turn.end_s <= turn.start_s:
            raise ItemError(f"{shown} has no positive length")
        if turn.start_s < 0 or turn.start_s >= duration_s or turn.end_s > duration_s + LATE_S:
            raise ItemError(f"{shown} is outside the recording of {duration_s:.3f} s")
        if turn.end_s <= reach.get(turn.speaker, -1.0):
            raise ItemError(f"{shown} lies inside another stretch of the same speaker")
        reach[turn.speaker] = turn.end_s
        checked.append(replace(turn, end_s=min(turn.end_s, duration_s)))
    return checked


def attribute(
    words: Sequence[HeardWord], stretches: Sequence[Stretch], reach_s: float = 1.0
) -> list[HeardWord]:
    """Give each word the speaker whose stretch covers most of it.

    Where two speakers overlap over the whole word, the speaker of the word before goes
    on. A word in no stretch goes to the nearest one within ``reach_s``; farther away its
    speaker stays unknown (None). Untimed words go with the segment that times none of its
    words, else with the word before them.
    """
    out: list[HeardWord] = []
    previous: str | None = None
    for word in words:
        place = word.place
        speaker = _speaker_of(place, stretches, previous, reach_s) if place else previous
        out.append(replace(word, speaker=speaker))
        previous = speaker or previous
    first = next((word.speaker for word in out if word.place), None)
    lead = next((i for i, word in enumerate(out) if word.place), 0)
    return [replace(w, speaker=first) if i < lead else w for i, w in enumerate(out)]


def _speaker_of(
    place: Interval, stretches: Sequence[Stretch], previous: str | None, reach_s: float
) -> str | None:
    start, end = place
    cover: dict[str, float] = {}
    near: tuple[float, str] | None = None
    for turn in stretches:
        shared = min(end, turn.end_s) - max(start, turn.start_s)
        if shared > 0:
            cover[turn.speaker] = cover.get(turn.speaker, 0.0) + shared
        elif near is None or -shared < near[0]:
            near = (-shared, turn.speaker)
    if cover:
        most = max(cover.values())
        tied = [speaker for speaker, shared in cover.items() if shared > 0.9 * most]
        return previous if previous in tied else max(tied, key=lambda speaker: cover[speaker])
    return near[1] if near is not None and near[0] <= reach_s else None


def snap_changes(
    words: Sequence[HeardWord], furthest_s: float = 0.8, most_words: int = 2
) -> list[HeardWord]:
    """Move a change of speaker to the end of a sentence that is one or two words away.

    Both the diarizer's boundary and the recogniser's word times are some 0.2 s off; the
    recogniser's punctuation marks where one person stopped. Only changes inside a
    sentence move, only over words that together last at most ``furthest_s``.
    """
    out = list(words)
    for i in range(1, len(out)):
        before, after = out[i - 1].speaker, out[i].speaker
        if before == after or before is None or after is None:
            continue
        if SENTENCE_END.search(out[i - 1].text):
            continue
        for k in range(1, most_words + 1):
            if _may_move(out, i, i + k, after, furthest_s):
                out[i : i + k] = [replace(word, speaker=before) for word in out[i : i + k]]
                break
            if _may_move(out, i - k, i, before, furthest_s):
                out[i - k : i] = [replace(word, speaker=after) for word in out[i - k : i]]
                break
    return out


def _may_move(
    words: Sequence[HeardWord], first: int, last: int, speaker: str, furthest_s: float
) -> bool:
    """May ``words[first:last]`` of one speaker change sides? A sentence ends at the new change.

    The new change lies before ``first`` (words move forward in the sense that they join
    the later speaker) or after ``last - 1``; either way a sentence must end there.
    """
    if first < 1 or last >= len(words):
        return False
    moved = words[first:last]
    if any(word.speaker != speaker or not word.timed for word in moved):
        return False
    joins_before = words[first - 1].speaker != speaker
    edge = moved[-1] if joins_before else words[first - 1]
    if not SENTENCE_END.search(edge.text):
        return False
    return moved[-1].span()[1] - moved[0].span()[0] <= furthest_s


def build_turns(
    words: Sequence[HeardWord],
    stretches: Sequence[Stretch],
    speech: Sequence[tuple[float, float]],
    duration_s: float,
    longest_s: float = 11.0,
    pause_s: float = 1.5,
    margin_s: float = 0.25,
) -> list[Turn]:
    """Turns of one channel, in order; words of unknown speaker are in none.

    A turn ends where the speaker changes or pauses for ``pause_s``; a longer one than
    ``longest_s`` is divided at the ends of sentences, then clauses, then at the widest
    pause. Its bounds reach into the pause around its words: to the edge of the voice
    activity (``speech``) or the speaker's stretch, or by ``margin_s``, at most halfway to
    the neighbouring word.
    """
    groups: list[list[int]] = []
    reach = 0.0
    for i, word in enumerate(words):
        if word.speaker is None:
            continue
        same = bool(groups) and words[groups[-1][-1]].speaker == word.speaker
        paused = word.timed and word.span()[0] - reach > pause_s
        if same and not paused:
            groups[-1].append(i)
        else:
            groups.append([i])
        reach = word.span()[1] if word.timed else reach
    groups = [part for group in groups for part in _divide(words, group, longest_s)]
    groups = [group for group in groups if any(words[i].timed for i in group)]
    edges = [(stretch.speaker, stretch.start_s, stretch.end_s) for stretch in stretches]
    edges += [("", start, end) for start, end in speech]
    return _bounded_turns(words, groups, edges, duration_s, margin_s)


def _divide(words: Sequence[HeardWord], group: list[int], longest_s: float) -> list[list[int]]:
    """Cut a group of words at the best places until no part is longer than ``longest_s``."""
    timed = [i for i in group if words[i].timed]
    if len(timed) < 2 or words[timed[-1]].span()[1] - words[timed[0]].span()[0] <= longest_s:
        return [group]
    start, end = words[timed[0]].span()[0], words[timed[-1]].span()[1]

    def merit(k: int) -> float:
        before, after = words[group[k - 1]], words[group[k]]
        if not (before.timed and after.timed):
            return -1.0
        pause = max(0.0, after.span()[0] - before.span()[1])
        text = 1.0 if SENTENCE_END.search(before.text) else 0.0
        text += 0.4 if CLAUSE_END.search(before.text) else 0.0
        place = (before.span()[1] - start) / (end - start)
        return text + min(pause, 1.0) + 1.2 * min(place, 1 - place)

    at = max(range(1, len(group)), key=merit)
    if merit(at) < 0:
        return [group]
    left, right = _divide(words, group[:at], longest_s), _divide(words, group[at:], longest_s)
    return left + right


def _bounded_turns(
    words: Sequence[HeardWord],
    groups: Sequence[list[int]],
    edges: Sequence[tuple[str, float, float]],
    duration_s: float,
    margin_s: float,
) -> list[Turn]:
    spans = []
    for group in groups:
        timed = [words[i].span() for i in group if words[i].timed]
        spans.append((min(a for a, _ in timed), max(b for _, b in timed)))
    turns: list[Turn] = []
    for k, (group, (start, end)) in enumerate(zip(groups, spans, strict=True)):
        speaker = str(words[group[0]].speaker)
        low = (spans[k - 1][1] + start) / 2 if k else 0.0
        high = (end + spans[k + 1][0]) / 2 if k + 1 < len(spans) else duration_s
        own = [(a, b) for name, a, b in edges if name in ("", speaker)]
        early = [a for a, b in own if start - 0.5 <= a <= start <= b]
        late = [b for a, b in own if a <= end <= b <= end + 0.5]
        first = min([start - margin_s, *early])
        last = max([end + margin_s, *late])
        first = min(max(first, low, 0.0), start)
        last = max(min(last, high, duration_s), end)
        if turns:  # words that overlap in time must not make turns that do
            first = max(first, turns[-1].end_s)
        if last - first > 1.0 / SAMPLE_RATE_HZ:
            turns.append(Turn(speaker, words[group[0]].channel, first, last, tuple(group)))
        else:
            turns[-1] = replace(turns[-1], words=(*turns[-1].words, *group))
    return turns


def rename_speakers(turns: Sequence[Turn], stretches: Sequence[Stretch]) -> dict[str, str]:
    """New names S1, S2, ... by first appearance in the turns, then in the stretches."""
    names: dict[str, str] = {}
    by_start = [t.speaker for t in sorted(turns, key=lambda t: (t.start_s, t.channel))]
    for speaker in [*by_start, *(stretch.speaker for stretch in stretches)]:
        names.setdefault(speaker, f"S{len(names) + 1}")
    return names


def overlap_seconds(stretches: Sequence[Stretch]) -> float:
    """Seconds in which two or more speakers are active."""
    speakers = {stretch.speaker for stretch in stretches}
    own = sum(
        covered_seconds(spans, spans)
        for spans in (
            [(s.start_s, s.end_s) for s in stretches if s.speaker == n] for n in speakers
        )
    )
    everybody = [(s.start_s, s.end_s) for s in stretches]
    # Right for two speakers; with three at once the third counts again.
    return own - covered_seconds(everybody, everybody)
