"""Scripted conversations: spoken text, identifiers, facts, actions, chronology.

A *script* is one conversation (one recording) as YAML. Identifiers are marked inline,
``{CATEGORY:entity|surface}``, or ``{CATEGORY:entity/part|surface}`` where one value is
spoken in several pieces; the loader turns this into spoken text and character spans.
Turn indices count from 0, spans are ``[start, end)`` in characters of the spoken text,
times are seconds. Every rule that a script breaks is a ``ManifestError`` that names the
file, the turn and the rule.

Functions: :func:`read_script`, :func:`read_scripts`, :func:`parse_markup`,
:func:`read_yaml`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from aegis.errors import ManifestError
from aegis.tables import PROJECT

MANIFESTS = PROJECT / "data_manifests"
CATEGORIES = (
    "NAME", "LOCATION", "DATE", "AGE", "PHONE", "FAX", "EMAIL", "SSN", "MRN", "HEALTH_PLAN",
    "ACCOUNT", "LICENSE", "VEHICLE", "DEVICE", "URL", "IP", "BIOMETRIC", "PHOTO", "UNIQUE_ID",
)  # fmt: skip
ROLES = ("clinician", "nurse", "patient", "relative", "pharmacist", "receptionist", "reader")
IMPORTANCE = ("critical", "major", "minor")
POLARITY = ("affirmed", "negated")
STATES = ("done", "ongoing", "planned", "advised", "conditional", "stopped", "declined")
RELATIONS = ("before", "after", "during", "revises", "final_state")
LAYOUTS = ("mono", "speaker_per_channel")
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
class GoldFact:
    """One checkable clinical statement with literal evidence in its turn."""

    turn_index: int
    text: str
    evidence: str
    importance: str
    polarity: str
    temporality: str
    certainty: str
    actor: str
    modifiers: dict[str, str] = field(default_factory=dict)
    action: str | None = None
    question_turn: int | None = None
    """The turn that asked, where the evidence is an answer that means nothing alone."""


@dataclass(frozen=True)
class GoldAction:
    action_id: str
    turn_index: int
    actor: str
    action: str
    state: str
    timing: str
    plan: bool
    evidence: str


@dataclass(frozen=True)
class GoldRelation:
    """``first <relation> second``; a final state has its subject first and the state second."""

    turn_index: int
    relation: str
    first: str
    second: str
    evidence: str


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


@dataclass(frozen=True)
class Script:
    recording_id: str
    language: str
    title: str
    speakers: tuple[Speaker, ...]
    turns: tuple[ScriptTurn, ...]
    facts: tuple[GoldFact, ...]
    actions: tuple[GoldAction, ...]
    chronology: tuple[GoldRelation, ...]
    rendering: Rendering
    split: str | None = None

    @property
    def n_words(self) -> int:
        return sum(len(turn.words) for turn in self.turns)


class _StrictLoader(yaml.SafeLoader):  # type: ignore[misc, unused-ignore]
    """SafeLoader that refuses a key given twice."""


def _unique_mapping(loader: _StrictLoader, node: Any) -> dict[Any, Any]:
    keys = [loader.construct_object(key) for key, _ in node.value]
    for key in keys:
        if keys.count(key) > 1:
            raise ManifestError(f"key {key!r} twice, line {node.start_mark.line + 1}")
    return dict(loader.construct_pairs(node, deep=True))


_StrictLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _unique_mapping)


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML mapping; a syntax error or a repeated key is a ManifestError with its line."""
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=_StrictLoader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, ManifestError) as error:
        raise ManifestError(f"{path.name}: {error}") from error
    if not isinstance(content, dict):
        raise ManifestError(f"{path.name}: must be a mapping, is {type(content).__name__}")
    return content


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
    repeated = sorted({name for name in ids if ids.count(name) > 1})
    if repeated:
        raise ManifestError(f"{folder.name}: recording_id twice: {', '.join(repeated[:3])}")
    return sorted(scripts, key=lambda script: script.recording_id)


def _readings(content: dict[str, Any]) -> list[Script]:
    """One single-speaker script for each reader of a parallel passage."""
    _known(content, "recording_id language title passage readers", "parallel text")
    scripts = []
    for reader in content["readers"]:
        _known(reader, "voice gender", "reader")
        stem = reader["voice"].replace(":", "_")
        scripts.append(
            _script(
                {
                    "recording_id": f"{content['recording_id']}_{stem}",
                    "language": content["language"],
                    "title": content["title"],
                    "speakers": {"S1": {"role": "reader", **reader}},
                    "turns": [{"S1": sentence} for sentence in content["passage"]],
                }
            )
        )
    return scripts


_SCRIPT_KEYS = (
    "recording_id language title speakers turns actions chronology rendering homographs split"
)


def _script(content: dict[str, Any]) -> Script:
    _known(content, _SCRIPT_KEYS, "script")
    _needed(content, "recording_id language title speakers turns", "script")
    _texts(content, "recording_id language title split", "script")
    recording_id, language = content["recording_id"], content["language"]
    if not re.fullmatch(r"[A-Za-z0-9._-]+/[A-Za-z0-9._-]+", recording_id):
        raise ManifestError(f"recording_id {recording_id!r}: must be ASCII dataset/stem")
    _one_of(language, ("en", "fr"), "language")
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
    actions = [_action(entry, turns) for entry in content.get("actions", [])]
    ids = [action.action_id for action in actions]
    if len(set(ids)) < len(ids):
        raise ManifestError(f"an action id occurs twice: {ids}")
    for fact in facts:
        if fact.action is not None and fact.action not in ids:
            raise ManifestError(
                f"turn {fact.turn_index}: fact links unknown action {fact.action!r}"
            )
    relations = [_relation(entry, turns) for entry in content.get("chronology", [])]
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


def _known(entry: Any, keys: str, what: str) -> None:
    if not isinstance(entry, dict):
        raise ManifestError(f"{what} must be a mapping, is {entry!r}")
    unknown = sorted(str(key) for key in entry if key not in keys.split())
    if unknown:
        raise ManifestError(f"{what}: unknown keys {unknown}; known: {keys}")


def _needed(entry: dict[str, Any], keys: str, what: str) -> None:
    missing = [key for key in keys.split() if key not in entry]
    if missing:
        raise ManifestError(f"{what}: missing keys {missing}")


def _texts(entry: dict[str, Any], keys: str, what: str) -> None:
    """YAML turns a bare ``No`` or ``12`` into another type; such values must be quoted."""
    for key in keys.split():
        if key in entry and not isinstance(entry[key], str):
            raise ManifestError(f"{what}: {key} must be text, is {entry[key]!r}; quote it")


def _one_of(value: Any, allowed: Sequence[str], what: str) -> str:
    if value not in allowed:
        raise ManifestError(f"{what} {value!r}: must be one of {', '.join(allowed)}")
    return str(value)


def _speakers(entries: Any) -> dict[str, Speaker]:
    speakers = {}
    for name, entry in entries.items():
        _known(entry, "role voice gender", f"speaker {name}")
        _needed(entry, "role", f"speaker {name}")
        _texts(entry, "role voice gender", f"speaker {name}")
        voice, gender = entry.get("voice", ""), entry.get("gender", "")
        _one_of(entry["role"], ROLES, f"speaker {name}: role")
        _one_of(gender, ("female", "male", ""), f"speaker {name}: gender")
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
    _known(entry, f"{speaker.speaker} pause_s overlap_s facts", "turn")
    _texts(entry, speaker.speaker, "turn")
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
    return turn, [_fact(fact, turn) for fact in entry.get("facts", [])]


def _pause_s(recording_id: str, index: int) -> float:
    """A pause in ``PAUSE_RANGE_S`` drawn from the content: the same on every machine."""
    digest = hashlib.sha256(f"{recording_id}#{index}".encode()).digest()
    low, high = PAUSE_RANGE_S
    return round(low + (high - low) * int.from_bytes(digest[:4], "big") / 2**32, 3)


_FACT_KEYS = (
    "fact evidence importance polarity temporality certainty actor modifiers action"
    " answers_previous"
)


def _fact(entry: Any, turn: ScriptTurn) -> GoldFact:
    _known(entry, _FACT_KEYS, "fact")
    _needed(entry, "fact evidence importance", "fact")
    _texts(entry, "fact evidence action", "fact")
    if entry["evidence"] not in turn.text:
        raise ManifestError(f"evidence {entry['evidence']!r} is not in the spoken text")
    answers = entry.get("answers_previous", False)
    if answers is not False and (answers is not True or turn.turn_index == 0):
        raise ManifestError("answers_previous must be true or absent, and needs a turn before")
    modifiers = entry.get("modifiers", {})
    if not all(isinstance(v, str) for pair in modifiers.items() for v in pair):
        raise ManifestError(f"modifiers must map text to text: {modifiers}")
    return GoldFact(
        turn.turn_index,
        entry["fact"],
        entry["evidence"],
        _one_of(entry["importance"], IMPORTANCE, "importance"),
        _one_of(entry.get("polarity", "affirmed"), POLARITY, "polarity"),
        _one_of(entry.get("temporality", "current"), ("past", "current", "future"), "temporality"),
        _one_of(
            entry.get("certainty", "stated"), ("stated", "suspected", "confirmed"), "certainty"
        ),
        _one_of(entry.get("actor", "patient"), (*ROLES, "family"), "actor"),
        modifiers,
        entry.get("action"),
        turn.turn_index - 1 if answers else None,
    )


def _evidence_turn(entry: dict[str, Any], turns: list[ScriptTurn], what: str) -> int:
    """The turn that holds the evidence: as declared, or the only one that has it."""
    holding = [turn.turn_index for turn in turns if entry["evidence"] in turn.text]
    declared = entry.get("turn")
    if declared is not None and declared in holding:
        return int(declared)
    if declared is None and len(holding) == 1:
        return holding[0]
    raise ManifestError(
        f"{what}: evidence {entry['evidence']!r} is in turns {holding}; declared turn {declared}"
    )


def _action(entry: Any, turns: list[ScriptTurn]) -> GoldAction:
    _known(entry, "id turn actor action state timing plan evidence", "action")
    _needed(entry, "id actor action state evidence", "action")
    _texts(entry, "id action timing evidence", "action")
    what = f"action {entry['id']}"
    return GoldAction(
        entry["id"],
        _evidence_turn(entry, turns, what),
        _one_of(entry["actor"], (*ROLES, "family"), f"{what}: actor"),
        entry["action"],
        _one_of(entry["state"], STATES, f"{what}: state"),
        entry.get("timing", ""),
        bool(entry.get("plan", False)),
        entry["evidence"],
    )


def _relation(entry: Any, turns: list[ScriptTurn]) -> GoldRelation:
    _known(entry, "turn relation first second evidence", "chronology")
    _needed(entry, "relation first second evidence", "chronology")
    _texts(entry, "first second evidence", "chronology")
    return GoldRelation(
        _evidence_turn(entry, turns, "chronology"),
        _one_of(entry["relation"], RELATIONS, "relation"),
        entry["first"],
        entry["second"],
        entry["evidence"],
    )


def _rendering(entry: Any) -> Rendering:
    _known(entry, "sample_rate_hz layout noise_snr_db", "rendering")
    _one_of(entry.get("layout", "mono"), LAYOUTS, "rendering: layout")
    if entry.get("sample_rate_hz", 16000) not in (8000, 16000, 44100, 48000):
        raise ManifestError(f"rendering: sample_rate_hz {entry['sample_rate_hz']} not supported")
    return Rendering(**entry)


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
