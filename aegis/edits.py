"""From mentions to edits: entities, one replacement each, a strict plan, substitution.

Unit: one mention = a literal span of one turn; one edit (intention) = one mention
with its replacement. Coreferent mentions ("John Smith", "Mr Smith", "Johnny") form
one entity; parts of a name map to parts of its surrogate. A plan is refused where
applying it would change anything outside the spans, spans overlap, or a span lies
inside a longer word. Substitution is single-pass over spans, so replacements are
never replaced again and the text outside the spans stays byte for byte.

Functions: :func:`build_inventory`, :func:`choose_replacements`, :func:`build_edits`,
:func:`refusals`, :func:`apply_edits`, :func:`check_target`, :func:`clinical_tokens`,
:func:`span_times`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from aegis.canonical import canonical
from aegis.errors import ItemError
from aegis.lexicon import NICKNAMES, is_drug, one_apart, protected_spans
from aegis.recognise_numbers import number_runs
from aegis.spoken_tokens import plain
from aegis.surrogates import Surrogates, gender_of, is_given, like_case, starts_with_vowel
from aegis.tables import content_id


class PlanError(ItemError):
    """A plan breaks its contract; nothing of it is applied."""


@dataclass(frozen=True)
class Located:
    """A detected mention: characters ``[start, end)`` of a turn's text."""

    mention_id: str
    turn_id: str
    category: str
    start: int
    end: int
    text: str


@dataclass
class Entity:
    """Coreferent mentions. For a person ``parts`` maps a name's words to ``first`` or ``last``.

    A number said over several turns has ``pieces``, its texts in order; ``piece_of`` gives the
    piece that a mention is.
    """

    entity_id: str
    category: str
    mentions: list[Located] = field(default_factory=list)
    parts: dict[str, str] = field(default_factory=dict)
    gender: str = "unknown"
    original: str = ""
    pieces: tuple[str, ...] = ()
    piece_of: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Edit:
    """One mention to replace."""

    mention_id: str
    entity_id: str
    turn_id: str
    category: str
    start: int
    end: int
    original: str
    replacement: str


# --- inventory -------------------------------------------------------------------------------

_HE = re.compile(
    r"\b(?:mr|mister|sir|monsieur|m|son|husband|father|dad|brother|uncle"
    r"|grandfather|grandpa|nephew|boyfriend|grandson"
    r"|fils|mari|père|frère|oncle|neveu|papa|cousin|petit-fils|époux)\b\.?,?\s+(?:is\s+"
    r"|named\s+|called\s+)?$",
    re.IGNORECASE,
)
_SHE = re.compile(
    r"\b(?:mrs|ms|miss|missus|madam|madame|mme|mademoiselle|mlle|daughter"
    r"|wife|mother|mum|mom|sister|aunt|grandmother|grandma|niece"
    r"|girlfriend|granddaughter|fille|femme|mère|sœur|soeur|tante|nièce"
    r"|maman|cousine|petite-fille|épouse)\b\.?,?\s+(?:is\s+|named\s+"
    r"|called\s+)?$",
    re.IGNORECASE,
)
_TITLE = re.compile(
    (
        r"\b(?:mr|mister|mrs|ms|miss|missus|dr|doctor|professor|prof|nurse"
        r"|monsieur|m|madame|mme|mlle|mademoiselle|docteur|professeur)\b\.?\s+$"
    ),
    re.IGNORECASE,
)
_PARTICLES = {"de", "du", "la", "le", "van", "von", "der", "den", "di", "da", "el", "al", "des"}


def build_inventory(
    mentions: Sequence[Located],
    texts: Mapping[str, str],
    recording_id: str,
    language: str,
    continued: Mapping[str, str] | None = None,
) -> list[Entity]:
    """Group mentions to entities, in order of first appearance.

    People are grouped by shared name parts, nicknames and one-letter spelling
    variants, unless their titles disagree in gender; everything else by category and
    canonical value. ``continued`` maps a mention that goes on with a number to the mention
    before it; such a chain is one entity with the value of all its pieces.
    """
    entities: list[Entity] = []
    for mention in sorted((m for m in mentions if m.category == "NAME"), key=_by_detail):
        _join_person(entities, mention, texts[mention.turn_id], recording_id, language)
    values: dict[tuple[str, str], Entity] = {}
    others = [m for m in mentions if m.category != "NAME"]
    for chain in _chains(others, continued or {}):
        pieces = tuple(mention.text for mention in chain)
        value = "".join(canonical(piece, language).replace(" ", "") for piece in pieces)
        key = (chain[0].category, value)
        if key not in values:
            identity = content_id("e", recording_id, *key)
            values[key] = Entity(identity, key[0], original=" ".join(pieces))
        _add_chain(values[key], chain, language)
    entities += values.values()
    order = {m.mention_id: k for k, m in enumerate(mentions)}
    for entity in entities:
        entity.mentions.sort(key=lambda m: order[m.mention_id])
    return sorted(entities, key=lambda e: order[e.mentions[0].mention_id])


def _chains(mentions: Sequence[Located], continued: Mapping[str, str]) -> list[list[Located]]:
    """Mentions in order, those that continue another one behind it; longer chains first."""
    chains: dict[str, list[Located]] = {}
    start_of: dict[str, str] = {}
    for mention in mentions:
        start = start_of.get(continued.get(mention.mention_id, ""), mention.mention_id)
        start_of[mention.mention_id] = start
        chains.setdefault(start, []).append(mention)
    return sorted(chains.values(), key=len, reverse=True)


def _add_chain(entity: Entity, chain: Sequence[Located], language: str) -> None:
    """Add a chain's mentions; each knows its piece when the number is cut in the same places."""
    values = [canonical(m.text, language) for m in chain]
    if len(chain) > 1 and not entity.pieces:
        entity.pieces = tuple(m.text for m in chain)
    if len(chain) > 1 and values == [canonical(piece, language) for piece in entity.pieces]:
        entity.piece_of |= {m.mention_id: k for k, m in enumerate(chain)}
    entity.mentions += chain


def _by_detail(mention: Located) -> tuple[int, int]:
    """Full names before single parts, spelled names last."""
    words = _name_words(mention.text)
    return (2 if _is_spelled(mention.text) else 0 if len(words) > 1 else 1, -len(words))


def _name_words(text: str) -> list[str]:
    words = re.findall(r"[^\W\d_][\w'-]*", plain(text))
    return [w for w in (re.sub(r"'s$", "", w) for w in words) if w not in _PARTICLES]


def _is_spelled(text: str) -> bool:
    return len(re.findall(r"(?<!\w)\w(?!\w)", text)) >= 3


def _join_person(
    entities: list[Entity], mention: Located, text: str, recording_id: str, language: str
) -> None:
    before = text[: mention.start]
    gender = "male" if _HE.search(before) else "female" if _SHE.search(before) else "unknown"
    words = (
        [canonical(mention.text, language)]
        if _is_spelled(mention.text)
        else _name_words(mention.text)
    )
    parts = _parts(words, _TITLE.search(before) is not None, language)
    if gender == "unknown":
        gender = next(
            (gender_of(w, language) for w, part in parts.items() if part == "first"), "unknown"
        )
    known = [e for e in entities if e.category == "NAME" and _same_person(e, parts, gender)]
    if known:
        entity = known[-1]
        entity.gender = gender if entity.gender == "unknown" else entity.gender
        for word, part in parts.items():
            entity.parts.setdefault(word, _matching_part(entity, word) or part)
    else:
        entity = Entity(
            content_id("e", recording_id, "NAME", *sorted(parts), gender),
            "NAME",
            original=mention.text,
        )
        entity.parts, entity.gender = dict(parts), gender
        entities.append(entity)
    entity.mentions.append(mention)
    if len(_name_words(entity.original)) < len(words):
        entity.original = mention.text


def _parts(words: Sequence[str], titled: bool, language: str) -> dict[str, str]:
    """Which word is a given and which a family name."""
    if not words:
        return {}
    if len(words) == 1:
        return {
            words[0]: "last"
            if titled or (not is_given(words[0], language) and not _short_form(words[0]))
            else "first"
        }
    return {word: "last" if k == len(words) - 1 else "first" for k, word in enumerate(words)}


def _short_form(word: str) -> bool:
    return any(word in short for short in NICKNAMES.values())


def _same_person(entity: Entity, parts: Mapping[str, str], gender: str) -> bool:
    if "unknown" not in (gender, entity.gender) and gender != entity.gender:
        return False
    firsts = [w for w, p in parts.items() if p == "first"]
    lasts = [w for w, p in parts.items() if p == "last"]
    if firsts and lasts:
        known_first = [w for w, p in entity.parts.items() if p == "first"]
        known_last = [w for w, p in entity.parts.items() if p == "last"]
        first = not known_first or any(_alike(a, b) for a in firsts for b in known_first)
        last = not known_last or any(_alike(a, b) for a in lasts for b in known_last)
        shared = any(_alike(a, b) for a in parts for b in entity.parts)
        return first and last and shared
    return any(_alike(a, b) for a in parts for b in entity.parts)


def _matching_part(entity: Entity, word: str) -> str | None:
    return next((part for known, part in entity.parts.items() if _alike(word, known)), None)


def _alike(a: str, b: str) -> bool:
    """The same name word: equal, an initial, a nickname, or one letter apart when long."""
    if a == b or (len(a) == 1 and b.startswith(a)) or (len(b) == 1 and a.startswith(b)):
        return True
    if any(a in (full, *short) and b in (full, *short) for full, short in NICKNAMES.items()):
        return True
    return min(len(a), len(b)) >= 6 and one_apart(a, b)


# --- replacements ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Replacement:
    """An entity's value, for a person its parts, for a number over several turns its pieces."""

    text: str | None
    first: str = ""
    last: str = ""
    reason: str | None = None
    pieces: tuple[str, ...] = ()


def choose_replacements(
    entities: Sequence[Entity], recording_id: str, language: str, seed: int
) -> dict[str, Replacement]:
    """rho: one replacement per entity; the same input gives the same map."""
    originals = [m.text for e in entities for m in e.mentions]
    draws = Surrogates(seed, recording_id, language, originals)
    chosen: dict[str, Replacement] = {}
    for entity in entities:
        if entity.category == "NAME":
            chosen[entity.entity_id] = _person(entity, draws)
    for entity in entities:
        if entity.pieces:
            chosen[entity.entity_id] = _in_pieces(entity, draws)
        elif entity.category != "NAME":
            text = _value(entity, draws, _owner(entity, entities, chosen))
            reason = None if text else "no free replacement of this form"
            chosen[entity.entity_id] = Replacement(text, reason=reason)
    return chosen


def _in_pieces(entity: Entity, draws: Surrogates) -> Replacement:
    """A replacement for each piece of a number, each in the form of its own piece."""
    pieces = [draws.number(piece) for piece in entity.pieces]
    kept = tuple(piece for piece in pieces if piece)
    if len(kept) < len(pieces):
        return Replacement(None, reason="no free replacement of this form")
    return Replacement(" ".join(kept), pieces=kept)


def _person(entity: Entity, draws: Surrogates) -> Replacement:
    given = [w for w, p in entity.parts.items() if p == "first"]
    family = [w for w, p in entity.parts.items() if p == "last"]
    first = (draws.first_name(entity.gender, given[0]) if given else "") or ""
    last = (draws.last_name(family[0]) if family else "") or ""
    if (given and not first) or (family and not last) or not (given or family):
        return Replacement(None, reason="no free name left")
    text = f"{first} {last}".strip()
    return Replacement(like_case(text, entity.original), first, last)


def _owner(
    entity: Entity, entities: Sequence[Entity], chosen: Mapping[str, Replacement]
) -> tuple[str, str] | None:
    """The surrogate of the person whose name an e-mail address holds."""
    if entity.category != "EMAIL":
        return None
    value = plain(entity.original)
    people = [e for e in entities if e.category == "NAME" and chosen[e.entity_id].text]
    best = max(people, key=lambda e: sum(w in value for w in e.parts if len(w) > 2), default=None)
    if best is None or not any(w in value for w in best.parts if len(w) > 2):
        return None
    return chosen[best.entity_id].first, chosen[best.entity_id].last


def _value(entity: Entity, draws: Surrogates, owner: tuple[str, str] | None) -> str | None:
    original = entity.original
    if entity.category == "EMAIL":
        first = (owner[0] if owner else "") or draws.first_name("unknown") or "robin"
        last = (owner[1] if owner else "") or draws.last_name() or "reed"
        return draws.email(original, first, last)
    if entity.category == "LOCATION":
        return draws.location(original)
    simple = {"DATE": draws.date, "AGE": draws.age, "URL": draws.url, "IP": draws.ip}
    return simple.get(entity.category, draws.number)(original)


def mention_replacement(
    mention: Located, entity: Entity, chosen: Replacement, language: str
) -> str | None:
    """What one mention becomes: the parts of the surrogate that answer its own parts."""
    if chosen.pieces and mention.mention_id in entity.piece_of:
        return chosen.pieces[entity.piece_of[mention.mention_id]]
    if chosen.text is None or entity.category != "NAME":
        return chosen.text
    if _is_spelled(mention.text):
        return _spelled_like(mention.text, chosen, entity, language)
    words = _name_words(mention.text)
    wanted = list(
        dict.fromkeys(entity.parts.get(w, _matching_part(entity, w) or "first") for w in words)
    )
    if not wanted:
        return None
    names = {"first": chosen.first or chosen.last, "last": chosen.last or chosen.first}
    out = [names[part] for part in wanted]
    if len(words) > 1 and len(words[-1]) == 1:
        out[-1] = names["last"][:1] + ("." if mention.text.rstrip().endswith(".") else "")
    if len(words) > 1 and len(words[0]) == 1:
        out[0] = names["first"][:1] + ("." if "." in mention.text else "")
    return like_case(" ".join(dict.fromkeys(out)), mention.text)


def _spelled_like(original: str, chosen: Replacement, entity: Entity, language: str) -> str:
    word = canonical(original, language)
    part = entity.parts.get(word) or _matching_part(entity, word) or "last"
    name = (chosen.last if part == "last" else chosen.first) or chosen.first or chosen.last
    mark = re.search(r"\w(\W+)\w", original)
    letters = unicodedata.normalize("NFC", name).upper()
    return like_case((mark[1] if mark else "-").join(letters), original)


# --- edits and their check -------------------------------------------------------------------


def build_edits(
    entities: Sequence[Entity],
    chosen: Mapping[str, Replacement],
    texts: Mapping[str, str],
    language: str,
) -> list[Edit]:
    """One edit per mention whose entity has a replacement; French elision is fitted."""
    edits = []
    for entity in entities:
        for mention in entity.mentions:
            text = mention_replacement(mention, entity, chosen[entity.entity_id], language)
            if text is None:
                continue
            edit = Edit(
                mention.mention_id, entity.entity_id, mention.turn_id, entity.category,
                mention.start, mention.end, mention.text, text,
            )  # fmt: skip
            edits.append(fit_elision(edit, texts[mention.turn_id]) if language == "fr" else edit)
    return sorted(edits, key=lambda e: (e.turn_id, e.start))


_ELIDED = re.compile(r"(?<!\w)([dljnmtscDLJNMTSC])['’]\s?$")


def fit_elision(edit: Edit, text: str) -> Edit:
    """``d'Amélie`` -> ``de Nina``, ``de Nina`` -> ``d'Amélie``: the span takes the particle in."""
    before = text[: edit.start]
    elided = _ELIDED.search(before)
    if elided and elided[1] in "dD" and not starts_with_vowel(edit.replacement):
        full = {"d": "de ", "D": "De "}[elided[1]]
        return _wider(edit, text, elided.start(), full + edit.replacement)
    full_form = re.search(r"(?<!\w)([dD])e\s$", before)
    if (
        full_form
        and starts_with_vowel(edit.replacement)
        and not edit.replacement[:1].isdigit()
        and edit.category == "NAME"
    ):
        return _wider(edit, text, full_form.start(), f"{full_form[1]}'{edit.replacement}")
    return edit


def _wider(edit: Edit, text: str, start: int, replacement: str) -> Edit:
    return replace(edit, start=start, original=text[start : edit.end], replacement=replacement)


def refusals(text: str, edits: Sequence[Edit], language: str) -> dict[str, str]:
    """Edits of one turn that may not be applied: mention_id -> reason."""
    bad: dict[str, str] = {}
    guard = protected_spans(text, language)
    last_end, last_id = -1, ""
    for edit in sorted(edits, key=lambda e: (e.start, e.end)):
        reason = _refusal(text, edit, guard)
        if edit.start < last_end:
            reason = f"overlap: spans of {last_id} and {edit.mention_id} overlap"
        if reason:
            bad[edit.mention_id] = reason
        else:
            last_end, last_id = edit.end, edit.mention_id
    return bad


def _refusal(text: str, edit: Edit, guard: Sequence[tuple[int, int]]) -> str | None:
    if not 0 <= edit.start < edit.end <= len(text):
        return "unlocated: the span lies outside its turn"
    here = unicodedata.normalize("NFC", text[edit.start : edit.end])
    if here != unicodedata.normalize("NFC", edit.original):
        return "unlocated: the turn does not hold the original at the span"
    if _inside_word(text, edit.start, edit.end):
        return "inside_word: the span lies inside a longer word"
    if not edit.replacement.strip():
        return "empty: no replacement"
    if plain(edit.replacement) == plain(edit.original):
        return "unchanged: the replacement equals the original"
    inside = [text[a:b] for a, b in guard if edit.start <= a and b <= edit.end]
    if any(is_drug(word) for term in inside for word in term.split()):
        return "clinical: the span holds a drug name"
    return None


def _inside_word(text: str, start: int, end: int) -> bool:
    def letter(position: int) -> bool:
        if not 0 <= position < len(text):
            return False
        char = text[position]
        return char.isalnum() or unicodedata.combining(char) > 0

    return (letter(start - 1) and letter(start)) or (letter(end - 1) and letter(end))


def apply_edits(text: str, edits: Sequence[Edit]) -> str:
    """The text with all spans replaced in one pass.

    Raises
    ------
    PlanError
        Spans overlap, lie outside the text, or do not hold their original.
    """
    out, position = [], 0
    for edit in sorted(edits, key=lambda e: e.start):
        if edit.start < position or edit.end > len(text) or edit.end <= edit.start:
            raise PlanError(
                f"edit {edit.mention_id}: span {edit.start}-{edit.end} overlaps or leaves the turn"
            )
        if unicodedata.normalize("NFC", text[edit.start : edit.end]) != unicodedata.normalize(
            "NFC", edit.original
        ):
            raise PlanError(
                f"edit {edit.mention_id}: the turn does not hold the original at its span"
            )
        out += [text[position : edit.start], edit.replacement]
        position = edit.end
    return "".join([*out, text[position:]])


_CLINICAL = re.compile(
    r"\b(?:no|not|never|without|denies|denied|none|nor|neither|don't"
    r"|doesn't|didn't|isn't|wasn't|can't|pas|jamais|aucun|aucune"
    r"|sans|ni|ne|before|after|since|until|then|now|today|yesterday"
    r"|tomorrow|ago|avant|après|depuis|hier|demain|puis"
    r"|mother|father|sister|brother|mère|père|sœur|frère|left|right|gauche|droite)\b",
    re.IGNORECASE,
)


def clinical_tokens(text: str, spans: Iterable[tuple[int, int]] = ()) -> list[str]:
    """Drugs, numbers, negations, chronology and roles outside the spans, in order."""
    parts, position = [], 0
    for start, end in sorted(spans):
        parts.append(text[position:start])
        position = end
    parts.append(text[position:])
    tokens: list[str] = []
    for part in parts:
        found = [(m.start(), m.group().casefold()) for m in _CLINICAL.finditer(part)]
        found += [
            (m.start(), m.group().casefold())
            for m in re.finditer(r"[^\W\d_]{5,}", part)
            if is_drug(m.group())
        ]
        found += [(m.start(), m.group()) for m in re.finditer(r"\d+(?:[.,/]\d+)*", part)]
        found += [
            (r.start, r.value)
            for r in number_runs(part, "en")
            if not re.search(r"\d", part[r.start : r.end])
        ]
        tokens += [token for _, token in sorted(found)]
    return tokens


def check_target(text: str, target: str, edits: Sequence[Edit]) -> None:
    """Check a complete edited turn, whoever wrote it.

    Raises
    ------
    PlanError
        The target differs from the source anywhere outside the spans, or its clinical
        tokens outside the spans differ.
    """
    if apply_edits(text, edits) != target:
        raise PlanError(
            f"turn {edits[0].turn_id if edits else '?'}: the target changes"
            f" text outside its {len(edits)} spans"
        )
    shift, spans = 0, []
    for edit in sorted(edits, key=lambda e: e.start):
        spans.append((edit.start + shift, edit.start + shift + len(edit.replacement)))
        shift += len(edit.replacement) - (edit.end - edit.start)
    if clinical_tokens(text, [(e.start, e.end) for e in edits]) != clinical_tokens(target, spans):
        raise PlanError("the target's clinical tokens differ outside the spans")


# --- times -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class TimedWord:
    """One recognised word; times are None where the recogniser gave none."""

    text: str
    start_s: float | None
    end_s: float | None


def place_words(text: str, words: Sequence[TimedWord]) -> list[tuple[int, int, TimedWord]]:
    """Where each word stands in its turn's text; a word that is not found is left out."""
    placed, position = [], 0
    for word in words:
        wanted = word.text.strip()
        at = text.find(wanted, position) if wanted else -1
        if at >= 0:
            placed.append((at, at + len(wanted), word))
            position = at + len(wanted)
    return placed


def span_times(
    text: str, start: int, end: int, words: Sequence[TimedWord]
) -> tuple[float | None, float | None]:
    """Start and end in seconds of the words that a span touches, or (None, None).

    A span whose characters are not all covered by timed words in order is untimed.
    """
    touched = [(a, b, w) for a, b, w in place_words(text, words) if a < end and start < b]
    covered = "".join(text[max(a, start) : min(b, end)] for a, b, _ in touched)
    if len(re.sub(r"\W", "", covered)) < len(re.sub(r"\W", "", text[start:end])) or not touched:
        return None, None
    if any(w.start_s is None or w.end_s is None for _, _, w in touched):
        return None, None
    first, last = touched[0][2].start_s, touched[-1][2].end_s
    if first is None or last is None or last <= first:
        return None, None
    return first, last
