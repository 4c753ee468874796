"""The Safe Harbor contract: categories, every occurrence of a known term, detection scores.

Unit: one mention, a literal span ``[char_start, char_end)`` of one turn's text.
The contract (decisions of ours where Safe Harbor is silent): day and month elements
of dates are identifiers, bare years, lone weekdays and durations are not; ages over
89 are; places below state level are, countries and states are not; titles stay
outside the span; a partly covered mention is a leak.

Functions: :func:`occurrences`, :func:`unlocated`, :func:`score_detection`.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from aegis.canonical import canonical, heard
from aegis.lexicon import protected_spans, straight
from aegis.spoken_tokens import words

CATEGORIES: dict[str, str] = {
    "NAME": "personal names, aliases, initials with a name, spelled names; no titles",
    "LOCATION": "streets, house names, towns, postcodes, facilities; no states, no countries",
    "DATE": "dates with a day or a month; no bare years, lone weekdays or durations",
    "AGE": "ages over 89, the number alone",
    "PHONE": "telephone numbers and parts of them",
    "FAX": "fax numbers",
    "EMAIL": "e-mail addresses, written or spoken",
    "SSN": "social security and national insurance numbers",
    "MRN": "medical record, chart, hospital and patient numbers",
    "HEALTH_PLAN": "insurance member, policy and beneficiary numbers",
    "ACCOUNT": "bank, card, billing and other account numbers",
    "LICENSE": "licence, certificate and passport numbers",
    "VEHICLE": "plates and vehicle numbers",
    "DEVICE": "serial numbers of devices",
    "URL": "web addresses",
    "IP": "network addresses",
    "BIOMETRIC": "identifiers of prints of fingers, voice or face",
    "PHOTO": "identifiers of face images",
    "UNIQUE_ID": "any other unique number or code",
}
CONTRACT_REVISION = hashlib.sha256(
    "\n".join(f"{name}: {rule}" for name, rule in CATEGORIES.items()).encode()
).hexdigest()[:12]


def occurrences(term: str, text: str) -> list[tuple[int, int]]:
    """All spans of a term in a text, without case, never inside a longer word.

    A trailing possessive is not part of the word: ``"Anna"`` is found in ``"Anna's"``.
    """
    term, plain = straight(unicodedata.normalize("NFC", term)).strip(), straight(text)
    if not term:
        return []
    parts = [re.escape(part) for part in term.split()]
    pattern = r"(?<![\w])" + r"\s+".join(parts) + r"(?!\w)(?!'(?!s\b)\w)(?!-\w)"
    return [m.span() for m in re.finditer(pattern, plain, re.IGNORECASE)]


def unlocated(text: str, span_text: str, char_start: int, char_end: int) -> bool:
    """Whether a mention's text does not stand literally (after NFC) at its place in the turn."""
    here = unicodedata.normalize("NFC", text[char_start:char_end])
    return not here or here != unicodedata.normalize("NFC", span_text)


@dataclass(frozen=True)
class Rate:
    """Counts behind one rate; ``value`` is None when nothing was at stake."""

    numerator: int
    denominator: int

    @property
    def value(self) -> float | None:
        return self.numerator / self.denominator if self.denominator else None


def score_detection(
    mentions: pd.DataFrame,
    turns: pd.DataFrame,
    gold_mentions: pd.DataFrame,
    gold_turns: pd.DataFrame,
    tolerance_s: float = 1.0,
) -> pd.DataFrame:
    """One row per gold mention: was it heard exactly, is it wholly covered, is it typed right.

    ``turns`` are recognised turns, ``gold_turns`` scripted ones of the same recordings.
    A gold mention is *heard* when its canonical value occurs in the text of the
    recognised turns that overlap its scripted turn (widened by ``tolerance_s``). It is
    *covered* when an occurrence lies wholly inside detected mentions of such a turn;
    a partly covered mention is a leak, and so is any further occurrence outside them, except
    for as many as the script has there in ordinary use ("I hope" beside the name Hope), and
    as many must be covered as it has mentions. A mention that was not heard exactly counts as
    covered (``covered_any``) when the recognised text holds no token of four letters
    or two digits of it outside detected mentions.

    Returns
    -------
    DataFrame
        recording_id, turn_index, char_start, text, category, language, heard, covered,
        covered_any, typed, found_category.
    """
    rows = []
    scripted = gold_turns.set_index(["recording_id", "turn_index"])
    by_recording = dict(list(turns.groupby("recording_id")))
    by_turn = dict(list(mentions.groupby("turn_id")))
    for gold in gold_mentions.itertuples():
        turn = scripted.loc[(gold.recording_id, gold.turn_index)]
        near = by_recording.get(gold.recording_id, turns.iloc[:0])
        near = near[
            (near["end_s"] > turn["start_s"] - tolerance_s)
            & (near["start_s"] < turn["end_s"] + tolerance_s)
        ]
        language = str(turn["language"])
        found = [
            _cover(str(gold.text), row, by_turn.get(row.turn_id), language)
            for row in near.itertuples()
        ]
        hits = [f for f in found if f.heard]
        marked, ordinary = _scripted_uses(gold, near, gold_turns, gold_mentions)
        opened, closed = sum(f.open for f in hits), sum(f.closed for f in hits)
        covered = bool(hits) and opened <= ordinary and closed >= min(marked, opened + closed)
        best = max(hits, key=lambda f: (f.closed > 0, f.category == gold.category), default=None)
        exposed = any(f.exposed for f in found)
        rows.append(
            {
                "recording_id": gold.recording_id,
                "turn_index": gold.turn_index,
                "char_start": gold.char_start,
                "text": gold.text,
                "category": gold.category,
                "language": language,
                "heard": bool(hits),
                "covered": covered,
                "covered_any": covered if hits else not exposed,
                "typed": best is not None and best.category == gold.category,
                "found_category": best.category if best else None,
            }
        )
    columns = words(
        "recording_id turn_index char_start text category language heard covered covered_any typed"
        " found_category"
    )
    return pd.DataFrame(rows, columns=columns)


@dataclass(frozen=True)
class _Coverage:
    """Occurrences of a value in one turn: wholly inside mentions (closed) or not (open)."""

    closed: int
    open: int
    category: str | None
    exposed: bool

    @property
    def heard(self) -> bool:
        return self.closed + self.open > 0


def _scripted_uses(
    gold: object, near: pd.DataFrame, gold_turns: pd.DataFrame, gold_mentions: pd.DataFrame
) -> tuple[int, int]:
    """How often the script says a value in the turns that are near: in mentions, and outside."""
    if not len(near):
        return 0, 0
    recording_id, value = gold.recording_id, str(gold.text)  # type: ignore[attr-defined]
    mine = gold_turns[
        (gold_turns["recording_id"] == recording_id)
        & (gold_turns["end_s"] > near["start_s"].min())
        & (gold_turns["start_s"] < near["end_s"].max())
    ]
    marked_uses = ordinary = 0
    for turn in mine.itertuples():
        if value.casefold() not in str(turn.text).casefold():
            continue
        marked = gold_mentions[
            (gold_mentions["recording_id"] == recording_id)
            & (gold_mentions["turn_index"] == turn.turn_index)
        ]
        spans = [
            (int(m.char_start), int(m.char_start) + len(str(m.text))) for m in marked.itertuples()
        ]
        every = len(value_spans(value, str(turn.text), str(turn.language)))
        outside = len(value_spans(value, mask(str(turn.text), spans), str(turn.language)))
        marked_uses, ordinary = marked_uses + every - outside, ordinary + outside
    return max(1, marked_uses), ordinary


def _cover(value: str, turn: object, mentions: pd.DataFrame | None, language: str) -> _Coverage:
    """How one recognised turn treats one gold value."""
    text = str(turn.text)  # type: ignore[attr-defined]
    spans: list[tuple[int, int, str]] = []
    if mentions is not None:
        starts, ends = mentions["char_start"].astype(int), mentions["char_end"].astype(int)
        spans = list(zip(starts, ends, mentions["category"], strict=True))
    windows = value_spans(value, text, language)
    inside = [
        all(any(a <= k < b for a, b, _ in spans) for k in range(start, end) if text[k].isalnum())
        for start, end in windows
    ]
    kinds = [c for a, b, c in spans for start, end in windows if a < end and start < b]
    exposed = not windows and _exposed(value, mask(text, [(a, b) for a, b, _ in spans]), language)
    closed = sum(inside)
    return _Coverage(closed, len(inside) - closed, kinds[0] if kinds else None, exposed)


def value_spans(value: str, text: str, language: str) -> list[tuple[int, int]]:
    """The shortest spans of a text, cut at words, whose canonical form holds a value."""
    if not heard(value, text, language):
        return []
    tokens = [m.span() for m in re.finditer(r"[^\W_]+", text)]
    spans: list[tuple[int, int]] = []
    first = 0
    while first < len(tokens) and heard(value, text[tokens[first][0] :], language):
        last = next(
            k
            for k in range(first, len(tokens))
            if heard(value, text[tokens[first][0] : tokens[k][1]], language)
        )
        while first < last and heard(
            value, text[tokens[first + 1][0] : tokens[last][1]], language
        ):
            first += 1
        spans.append((tokens[first][0], tokens[last][1]))
        first = last + 1
    return spans


def _exposed(value: str, masked: str, language: str) -> bool:
    """Whether a telling token of a value stands outside the detected spans."""
    rest = canonical(masked, language).split()
    tokens = canonical(value, language).split()
    return any(t in rest for t in tokens if len(t) >= 4 or (t.isdigit() and len(t) >= 2))


def mask(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """A text with its spans blanked by a neutral sign (same length)."""
    out = list(text)
    for start, end in spans:
        out[start:end] = "\u25a1" * (end - start)
    return "".join(out)


def rate(scores: pd.DataFrame, of: str, among: str | None = None) -> Rate:
    """Pooled counts: rows with ``of`` true, among the rows with ``among`` true (or all)."""
    base = scores[scores[among]] if among else scores
    return Rate(int(base[of].sum()), len(base))


def protected_touched(mentions: pd.DataFrame, turns: pd.DataFrame) -> Rate:
    """Protected clinical terms of the recognised turns that a mention touches."""
    touched = total = 0
    spans: Mapping[str, pd.DataFrame] = {str(k): f for k, f in mentions.groupby("turn_id")}
    for turn in turns.itertuples():
        found = spans.get(str(turn.turn_id))
        for start, end in protected_spans(str(turn.text), str(turn.language)):
            total += 1
            if found is not None:
                touched += bool(((found["char_start"] < end) & (found["char_end"] > start)).any())
    return Rate(touched, total)
