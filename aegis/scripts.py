"""Scripted conversations: spoken text, identifiers, facts, actions, chronology.

A *script* is one conversation (one recording) as YAML. Identifiers are marked inline,
``{CATEGORY:entity|surface}``, or ``{CATEGORY:entity/part|surface}`` where one value is
spoken in several pieces; the loader turns this into spoken text and character spans.
Turn indices count from 0, spans are ``[start, end)`` in characters of the spoken text,
times are seconds. Every rule that a script breaks is a ``ManifestError`` that names the
file, the turn and the rule.

Functions: :func:`read_script`, :func:`read_scripts`, :func:`parse_markup`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aegis.errors import ManifestError
from aegis.fields import check_known, check_needed, check_texts, one_of, read_yaml, repeated
from aegis.gold import (
    ROLES,
    GoldAction,
    GoldFact,
    parse_action,
    parse_fact,
    parse_relation,
)
from aegis.inventory import Relation
from aegis.tables import PROJECT

MANIFESTS = PROJECT / "data_manifests"
CATEGORIES = (
    "NAME", "LOCATION", "DATE", "AGE", "PHONE", "FAX", "EMAIL", "SSN", "MRN", "HEALTH_PLAN",
    "ACCOUNT", "LICENSE", "VEHICLE", "DEVICE", "URL", "IP", "BIOMETRIC", "PHOTO", "UNIQUE_ID",
)  # fmt: skip
LAYOUTS = ("mono", "speaker_per_channel")
FORMATS = ("flac", "mp3", "wav", "wav24", "mulaw")
PAUSE_RANGE_S = (0.25, 0.8)

_MARK = re.compile(r"\{([A-Z_]+):([A-Za-z0-9_]+)(?:/([0-9]+))?\|([^{}|]+)\}")


@dataclass(frozen=True)
class Speaker:
    speaker: str
    role: str
    voice: str
    """``synthesiser:base_voice``; empty where the script is text only."""
    gender: str


@dataclass(frozen=True)
class GoldMention:
    """One identifier as it is spoken: characters ``[char_start, char_end)`` of the turn."""

    char_start: int
    char_end: int
    text: str
    category: str
    entity: str
    part: int | None = None
    """Which piece of a value that is spoken in several pieces; None when whole."""


@dataclass(frozen=True)
class ScriptTurn:
    turn_index: int
    speaker: str
    role: str
    voice: str
    text: str
    mentions: tuple[GoldMention, ...]
    pause_s: float
    """Silence before the turn; 0 where it overlaps the turn before."""
    overlap_s: float
    """How long before the end of the previous turn this one starts."""
    language: str

    @property
    def words(self) -> list[str]:
        """What is spoken, by blanks; a lone punctuation mark is no word."""
        return [word for word in self.text.split() if any(map(str.isalnum, word))]


@dataclass(frozen=True)
class Rendering:
    """How the recording is made from its turns."""

    sample_rate_hz: int = 16000
    layout: str = "mono"
    noise_snr_db: float | None = None
    format: str = "flac"
    """Of the file; unless a script names one, mu-law at 8 kHz and WAV with two channels."""


@dataclass(frozen=True)
class Script:
    recording_id: str
    language: str
    title: str
    speakers: tuple[Speaker, ...]
    turns: tuple[ScriptTurn, ...]
    facts: tuple[GoldFact, ...]
    actions: tuple[GoldAction, ...]
    chronology: tuple[Relation, ...]
    rendering: Rendering
    split: str | None = None

    @property
    def n_words(self) -> int:
        return sum(len(turn.words) for turn in self.turns)


def parse_markup(marked: str) -> tuple[str, tuple[GoldMention, ...]]:
    """Split marked text into what is spoken and its identifier spans.

    Raises
    ------
    ManifestError
        Unknown category, stray brace or bar, a surface with blank edges, or a span that
        lies inside a longer word.
    """
    text, mentions, end = "", [], 0
    for mark in _MARK.finditer(marked):
        category, entity, part, surface = mark.groups()
        text += marked[end : mark.start()]
        end = mark.end()
        if category not in CATEGORIES:
            raise ManifestError(f"unknown category {category!r}; known: {', '.join(CATEGORIES)}")
        if surface != surface.strip():
            raise ManifestError(f"surface {surface!r} begins or ends with a blank")
        start = len(text)
        text += surface
        number = int(part) if part else None
        mentions.append(GoldMention(start, len(text), surface, category, entity, number))
    text += marked[end:]
    if re.search(r"[{}|]", text):
        raise ManifestError(f"stray brace or bar in {marked!r}")
    for mention in mentions:
        before = text[: mention.char_start][-1:]
        after = text[mention.char_end :][:1]
        if before.isalnum() or after.isalnum():
            raise ManifestError(f"{mention.text!r} lies inside a longer word")
    return text, tuple(mentions)


def read_script(path: Path) -> Script:
    """Read and check one scripted conversation.

    Raises
    ------
    ManifestError
        Names the file, the turn (from 0) and the rule that is broken.
    """
    content = read_yaml(path)
    try:
        return _script(content)
    except ManifestError as error:
        raise ManifestError(f"{path.name}: {error}") from error


def read_scripts(folder: Path = MANIFESTS / "demo") -> list[Script]:
    """All scripts of a folder by recording id; parallel texts give one script a reader.

    A file with ``readers:`` holds one passage; each reader speaks it in a recording of
    its own, ``<recording_id>_<voice>``.
    """
    scripts: list[Script] = []
    for path in sorted(folder.glob("*.yaml")):
        content = read_yaml(path)
        try:
            found = _readings(content) if "readers" in content else [_script(content)]
        except ManifestError as error:
            raise ManifestError(f"{path.name}: {error}") from error
        scripts.extend(found)
    if not scripts:
        raise ManifestError(f"{folder.name}: no scripts (*.yaml)")
    ids = [script.recording_id for script in scripts]
    if twice := repeated(ids):
        raise ManifestError(f"{folder.name}: recording_id twice: {', '.join(twice[:3])}")
    return sorted(scripts, key=lambda script: script.recording_id)


def _readings(content: dict[str, Any]) -> list[Script]:
    """One single-speaker script for each reader of a parallel passage."""
    check_known(content, "recording_id language title passage readers", "parallel text")
    scripts = []
    for reader in content["readers"]:
        check_known(reader, "voice gender format", "reader")
        stem = reader["voice"].replace(":", "_")
        speaker = {name: reader[name] for name in ("voice", "gender")}
        scripts.append(
            _script(
                {
                    "recording_id": f"{content['recording_id']}_{stem}",
                    "language": content["language"],
                    "title": content["title"],
                    "speakers": {"S1": {"role": "reader", **speaker}},
                    "rendering": {"format": reader.get("format", "flac")},
                    "turns": [{"S1": sentence} for sentence in content["passage"]],
                }
            )
        )
    return scripts


_SCRIPT_KEYS = (
    "recording_id language title speakers turns actions chronology rendering homographs split"
)


def _script(content: dict[str, Any]) -> Script:
    check_known(content, _SCRIPT_KEYS, "script")
    check_needed(content, "recording_id language title speakers turns", "script")
    check_texts(content, "recording_id language title split", "script")
    recording_id, language = content["recording_id"], content["language"]
    if not re.fullmatch(r"[A-Za-z0-9._-]+/[A-Za-z0-9._-]+", recording_id):
        raise ManifestError(f"recording_id {recording_id!r}: must be ASCII dataset/stem")
    one_of(language, ("en", "fr"), "language")
    speakers = _speakers(content["speakers"])
    turns, facts = [], []
    for index, entry in enumerate(content["turns"]):
        try:
            turn, own = _turn(index, entry, speakers, recording_id, language)
        except ManifestError as error:
            raise ManifestError(f"turn {index}: {error}") from error
        turns.append(turn)
        facts.extend(own)
    _check_speakers(speakers, turns)
    _check_entities(turns, content.get("homographs", []))
    texts = [turn.text for turn in turns]
    actions = [parse_action(entry, texts) for entry in content.get("actions", [])]
    ids = [action.action_id for action in actions]
    if len(set(ids)) < len(ids):
        raise ManifestError(f"an action id occurs twice: {ids}")
    for fact in facts:
        if fact.action is not None and fact.action not in ids:
            raise ManifestError(
                f"turn {fact.turn_index}: fact links unknown action {fact.action!r}"
            )
    relations = [parse_relation(entry, texts) for entry in content.get("chronology", [])]
    return Script(
        recording_id,
        language,
        content["title"],
        tuple(speakers.values()),
        tuple(turns),
        tuple(facts),
        tuple(actions),
        tuple(relations),
        _rendering(content.get("rendering", {})),
        content.get("split"),
    )


def _speakers(entries: Any) -> dict[str, Speaker]:
    speakers = {}
    for name, entry in entries.items():
        check_known(entry, "role voice gender", f"speaker {name}")
        check_needed(entry, "role", f"speaker {name}")
        check_texts(entry, "role voice gender", f"speaker {name}")
        voice, gender = entry.get("voice", ""), entry.get("gender", "")
        one_of(entry["role"], ROLES, f"speaker {name}: role")
        one_of(gender, ("female", "male", ""), f"speaker {name}: gender")
        if voice and not re.fullmatch(r"[a-z]+:[A-Za-z0-9_]+", voice):
            raise ManifestError(f"speaker {name}: voice {voice!r} must be synthesiser:voice")
        speakers[name] = Speaker(name, entry["role"], voice, gender)
    voices = [speaker.voice for speaker in speakers.values() if speaker.voice]
    if len(set(voices)) < len(voices):
        raise ManifestError(f"two speakers share a voice: {voices}")
    return speakers


def _check_speakers(speakers: dict[str, Speaker], turns: list[ScriptTurn]) -> None:
    """Speakers are S1, S2, ... in the order in which they first speak; all of them speak."""
    order = list(dict.fromkeys(turn.speaker for turn in turns))
    expected = [f"S{number + 1}" for number in range(len(speakers))]
    if order != expected:
        raise ManifestError(f"speakers by first turn are {order}; must be {expected}")


def _turn(
    index: int, entry: Any, speakers: dict[str, Speaker], recording_id: str, language: str
) -> tuple[ScriptTurn, list[GoldFact]]:
    names = [key for key in entry if key in speakers] if isinstance(entry, dict) else []
    if len(names) != 1:
        raise ManifestError(f"needs exactly one speaker of {', '.join(speakers)}")
    speaker = speakers[names[0]]
    check_known(entry, f"{speaker.speaker} pause_s overlap_s facts", "turn")
    check_texts(entry, speaker.speaker, "turn")
    text, mentions = parse_markup(" ".join(entry[speaker.speaker].split()))
    if not text:
        raise ManifestError("has no text")
    overlap_s = float(entry.get("overlap_s", 0.0))
    if overlap_s and ("pause_s" in entry or index == 0):
        raise ManifestError("overlap_s excludes pause_s and needs a turn before it")
    pause_s = 0.0 if overlap_s else float(entry.get("pause_s", _pause_s(recording_id, index)))
    if not (0 <= pause_s <= 5 and 0 <= overlap_s <= 2):
        raise ManifestError(f"pause_s {pause_s} or overlap_s {overlap_s} out of range")
    turn = ScriptTurn(
        index, speaker.speaker, speaker.role, speaker.voice, text, mentions, pause_s, overlap_s,
        language,
    )  # fmt: skip
    return turn, [parse_fact(fact, index, text) for fact in entry.get("facts", [])]


def _pause_s(recording_id: str, index: int) -> float:
    """A pause in ``PAUSE_RANGE_S`` drawn from the content: the same on every machine."""
    digest = hashlib.sha256(f"{recording_id}#{index}".encode()).digest()
    low, high = PAUSE_RANGE_S
    return round(low + (high - low) * int.from_bytes(digest[:4], "big") / 2**32, 3)


def _rendering(entry: Any) -> Rendering:
    check_known(entry, "sample_rate_hz layout noise_snr_db format", "rendering")
    layout = one_of(entry.get("layout", "mono"), LAYOUTS, "rendering: layout")
    if entry.get("sample_rate_hz", 16000) not in (8000, 16000, 44100, 48000):
        raise ManifestError(f"rendering: sample_rate_hz {entry['sample_rate_hz']} not supported")
    telephone = entry.get("sample_rate_hz") == 8000
    usual = "mulaw" if telephone else "flac" if layout == "mono" else "wav"
    kind = one_of(entry.get("format", usual), FORMATS, "rendering: format")
    return Rendering(**{**entry, "format": kind})


def _check_entities(turns: list[ScriptTurn], homographs: Sequence[str]) -> None:
    """One category an entity, and no marked surface left unmarked elsewhere.

    ``homographs`` lists surfaces that are also ordinary words of the conversation.
    """
    categories: dict[str, str] = {}
    for turn in turns:
        for mention in turn.mentions:
            if categories.setdefault(mention.entity, mention.category) != mention.category:
                raise ManifestError(
                    f"turn {turn.turn_index}: entity {mention.entity} is {mention.category} here"
                    f" and {categories[mention.entity]} before"
                )
    surfaces = {m.text for turn in turns for m in turn.mentions if m.part is None}
    for turn in turns:
        spans = [(m.char_start, m.char_end) for m in turn.mentions]
        for surface in sorted(surfaces - set(homographs)):
            for hit in re.finditer(rf"(?<!\w){re.escape(surface)}(?!\w)", turn.text):
                if not any(start <= hit.start() and hit.end() <= end for start, end in spans):
                    raise ManifestError(
                        f"turn {turn.turn_index}: {surface!r} stands unmarked; mark it or list"
                        " it under homographs"
                    )
