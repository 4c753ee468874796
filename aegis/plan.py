"""A plan that a model proposes: its contract, and what code makes of it.

Unit: one conversation's reply: an inventory of entities with one replacement each, and
ordered edits (turn, entity, original, replacement). A model proposes; code decides: the
occurrences of every original are enumerated here, never inside a longer word, and the plan
then passes the same validator as any other (:mod:`aegis.edits`). Turns count from 0.

Functions: :func:`contract_text`, :func:`check_plan`, :func:`locate_plan`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aegis.canonical import canonical
from aegis.edits import Edit, Entity, Located, Replacement, fit_elision
from aegis.errors import ReplyError
from aegis.lexicon import is_drug, words_en
from aegis.manifests import Contract
from aegis.phi import CATEGORIES, occurrences
from aegis.spoken_tokens import plain
from aegis.tables import content_id

Reply = Mapping[str, Any]


def contract_text(contract: Contract) -> str:
    """The frozen contract as the planner reads it: rules, then every family with examples."""
    lines = [f"{contract.title} (version {contract.version})", *contract.general]
    for family in contract.families:
        lines.append(f"{family.category}: include {family.include}; exclude {family.exclude}")
        lines += [f"  example: {example}" for example in family.examples]
    return "\n".join(lines)


def check_plan(reply: Reply, texts: Sequence[str], language: str) -> None:
    """What a plan must keep beyond its schema; an original that is nowhere is only unlocated.

    Raises
    ------
    ReplyError
        With the rule, by place and never by what was said: unknown category or turn, an
        entity twice or not in the inventory, edits out of order, an entity without one
        constant replacement of its own, a replacement that is an original of the
        conversation or names a drug.
    """
    entities = {entry["entity"]: entry for entry in reply["entities"]}
    if len(entities) != len(reply["entities"]):
        raise ReplyError("entities: one is listed twice")
    for number, entry in enumerate(reply["entities"]):
        if entry["category"] not in CATEGORIES:
            raise ReplyError(f"category: that of entity {number} is not in the contract")
    turns = [edit["turn"] for edit in reply["edits"]]
    if turns != sorted(turns) or not all(0 <= turn < len(texts) for turn in turns):
        raise ReplyError(f"turn: edits must follow the turns 0 to {len(texts) - 1} in order")
    for number, edit in enumerate(reply["edits"]):
        if edit["entity"] not in entities:
            raise ReplyError(f"entity: that of edit {number} is not in the inventory")
    _check_replacements(reply, entities, language)


def _check_replacements(
    reply: Reply, entities: Mapping[str, Mapping[str, Any]], language: str
) -> None:
    originals = {plain(edit["original"]) for edit in reply["edits"]}
    said: dict[tuple[str, str], str] = {}
    owners: dict[str, str] = {}
    for number, (name, entry) in enumerate(entities.items()):
        if owners.setdefault(plain(entry["replacement"]), name) != name:
            raise ReplyError(f"replacement: entity {number} shares its own with another")
    for number, edit in enumerate(reply["edits"]):
        entity, new = edit["entity"], edit["replacement"]
        where = f"replacement: that of edit {number}"
        if not new.strip() or not edit["original"].strip():
            raise ReplyError(f"{where} is empty, or its original is")
        if plain(new) in originals:
            raise ReplyError(f"{where} is an original of the conversation")
        if any(is_drug(word) for word in new.split()):
            raise ReplyError(f"{where} names a drug")
        if said.setdefault((entity, canonical(edit["original"], language)), new) != new:
            raise ReplyError(f"{where} is not constant")
        if not _part_of(new, entities[entity]["replacement"], language):
            raise ReplyError(f"{where} is no part of its entity's replacement")


def _part_of(new: str, whole: str, language: str) -> bool:
    """All or some words of the entity's replacement, its initials, or one of them spelled."""
    own, others = canonical(new, language).split(), canonical(whole, language).split()
    spelled = "".join(own)
    initials = {word[0] for word in others}
    return all(word in others or word in initials for word in own) or any(
        spelled in (word, "".join(others)) for word in others
    )


@dataclass(frozen=True)
class LocatedPlan:
    """A model's plan on its texts; ``unlocated`` originals stand nowhere in their turn."""

    mentions: tuple[Located, ...]
    unlocated: tuple[Located, ...]
    entities: tuple[Entity, ...]
    chosen: dict[str, Replacement]
    edits: tuple[Edit, ...]


@dataclass(frozen=True)
class _Surface:
    """One original of one entity with its replacement and the turns that the model named."""

    text: str
    entity: str
    replacement: str
    turns: frozenset[str]


def locate_plan(
    reply: Reply, recording_id: str, texts: Mapping[str, str], language: str
) -> LocatedPlan:
    """Every occurrence of every original; ``texts``: turn_id to text, in order of turns.

    An occurrence in a turn that the model did not name counts too, unless the original is
    also an ordinary word (Rose, May). Longer originals win over those inside them.
    """
    names = list(texts)
    surfaces = _surfaces(reply, names)
    categories = {entry["entity"]: entry["category"] for entry in reply["entities"]}
    ids = {name: content_id("e", recording_id, name, kind) for name, kind in categories.items()}
    entities = {name: Entity(ids[name], kind) for name, kind in categories.items()}
    edits = []
    for turn_id, text in texts.items():
        for start, end, surface in _occurrences(surfaces, turn_id, text):
            kind = categories[surface.entity]
            mention = _located(recording_id, turn_id, kind, start, end, text[start:end])
            entities[surface.entity].mentions.append(mention)
            edits.append(
                Edit(
                    mention.mention_id, ids[surface.entity], turn_id, kind, start, end,
                    mention.text, surface.replacement,
                )
            )  # fmt: skip
    if language == "fr":
        edits = [fit_elision(edit, texts[edit.turn_id]) for edit in edits]
    found = {name: entity for name, entity in entities.items() if entity.mentions}
    for entity in found.values():
        entity.original = max((m.text for m in entity.mentions), key=len)
    missing = {
        (names[edit["turn"]], edit["original"], categories[edit["entity"]])
        for edit in reply["edits"]
        if not _stands(edit["original"], texts[names[edit["turn"]]])
    }
    chosen = {
        ids[entry["entity"]]: Replacement(entry["replacement"])
        for entry in reply["entities"]
        if entry["entity"] in found
    }
    return LocatedPlan(
        tuple(mention for entity in found.values() for mention in entity.mentions),
        tuple(_located(recording_id, t, kind, 0, 0, said) for t, said, kind in sorted(missing)),
        tuple(found.values()), chosen, tuple(edits),
    )  # fmt: skip


def _located(
    recording_id: str, turn_id: str, category: str, start: int, end: int, text: str
) -> Located:
    identity = content_id("m", recording_id, turn_id, start, end, category, text)
    return Located(identity, turn_id, category, start, end, text)


def _surfaces(reply: Reply, names: Sequence[str]) -> list[_Surface]:
    """Originals by entity, longest first."""
    turns: dict[tuple[str, str, str], set[str]] = {}
    for edit in reply["edits"]:
        key = (_nfc(edit["original"]).strip(), edit["entity"], edit["replacement"])
        turns.setdefault(key, set()).add(names[edit["turn"]])
    found = [_Surface(*key, frozenset(own)) for key, own in turns.items()]
    return sorted(found, key=lambda s: (-len(s.text), s.text))


def _occurrences(
    surfaces: Sequence[_Surface], turn_id: str, text: str
) -> list[tuple[int, int, _Surface]]:
    taken: list[tuple[int, int, _Surface]] = []
    for surface in sorted(surfaces, key=lambda s: (-len(s.text), turn_id not in s.turns)):
        if turn_id not in surface.turns and surface.text.casefold() in words_en():
            continue
        for start, end in occurrences(surface.text, text):
            free = all(end <= a or b <= start for a, b, _ in taken)
            if free and _nfc(text[start:end]) == surface.text:
                taken.append((start, end, surface))
    return sorted(taken, key=lambda found: found[:2])


def _stands(original: str, text: str) -> bool:
    own = _nfc(original).strip()
    return any(_nfc(text[a:b]) == own for a, b in occurrences(original, text))


def _nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)
