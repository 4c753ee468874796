"""Literal search: was the replacement heard, and is the original still heard?

Unit: one edit intention in the fresh transcript of what was rendered. Texts meet in
their canonical form, so spoken and written numbers, dates and spellings are equal. A
surface is

- *found* when its canonical tokens stand in the heard text (identifiers also when they
  are grouped in another way);
- found as a *spelling variant* when it has no digits, at least four letters, sounds the
  same (equal :func:`sound_key`) and at least three quarters of its letters agree;
- *near* when a word that the planned text does not explain shares most of its letters
  or its sound, or when more than half of an identifier's digits stand in one run. Near
  is uncertain: neither realised nor not, neither retained nor absent.

Whether the planned text itself still holds the original is reported beside a retained
case; the denominator is never corrected.

Functions: :func:`find_surface`, :func:`match_intention`, :func:`sound_key`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from aegis.canonical import canonical, heard

VARIANT_LETTERS, VARIANT_SIMILARITY = 4, 0.75
NEAR_SIMILARITY = 0.6
NEAR_DIGITS = 0.6


@dataclass(frozen=True)
class Found:
    """How a surface was found: ``exact``, ``variant``, ``near`` or ``none``, and where."""

    how: str
    evidence: str | None = None
    first: int = 0
    last: int = 0


@dataclass(frozen=True)
class Match:
    """Outcome of one intention (see the table ``lexical_matches``)."""

    replacement_status: str
    original_status: str
    planned_text_holds_original: bool
    replacement_evidence: str | None
    original_evidence: str | None


def match_intention(
    original: str,
    replacement: str,
    planned: str,
    place: str,
    everywhere: str,
    language: str,
) -> Match:
    """Search for replacement and original in a fresh transcript.

    Parameters
    ----------
    planned
        The text that should have been said in ``everywhere``.
    place
        Fresh text at the edit, where the replacement is looked for.
    everywhere
        Fresh text in which the original must not be heard (the same turn for a focused
        intention, the whole conversation for a reconstruction).
    """
    wanted = find_surface(replacement, place, "", language)
    kept = find_surface(original, everywhere, planned, language)
    if kept.how == "near" and _nearer_to_replacement(kept, original, replacement, language):
        kept = Found("none")  # a garbled replacement, not a residue
    replaced = {"exact": "realised", "variant": "realised", "near": "uncertain"}
    retained = {"exact": "retained", "variant": "retained", "near": "uncertain"}
    return Match(
        replaced.get(wanted.how, "not_realised"),
        retained.get(kept.how, "absent"),
        heard(original, planned, language),
        wanted.evidence,
        kept.evidence,
    )


def _nearer_to_replacement(found: Found, original: str, replacement: str, language: str) -> bool:
    heard_letters = letters(found.evidence or "")
    own, other = (
        SequenceMatcher(None, letters(canonical(name, language)), heard_letters).ratio()
        for name in (original, replacement)
    )
    return bool(heard_letters) and other > own


def find_surface(surface: str, text: str, planned: str, language: str) -> Found:
    """Look for a surface in a text; words that ``planned`` explains cannot be near misses."""
    # "the 4th of June" is a date whose article is no part of it.
    wanted = re.sub(r"^(the|le|la) (?=\S*\d)", "", canonical(surface, language))
    tokens = canonical(text, language).split()
    if not wanted or not tokens:
        return Found("none")
    place = _token_run(wanted.split(), tokens)
    if place is None and "." in wanted and "@" not in wanted:
        # "uploaded at example.org" reads as an address; the site in it was said.
        place = _token_run([wanted], [token.rpartition("@")[2] for token in tokens])
    if place is not None:
        return Found("exact", wanted, *place)
    if heard(surface, text, language) or _same_date(wanted, tokens):
        return Found("exact", wanted, 0, len(tokens))
    if any(c.isdigit() for c in wanted):
        return _near_digits(wanted, tokens, planned, language)
    return _near_words(wanted, tokens, canonical(planned, language).split(), language)


def _token_run(wanted: Sequence[str], tokens: Sequence[str]) -> tuple[int, int] | None:
    n = len(wanted)
    for i in range(len(tokens) - n + 1):
        if list(tokens[i : i + n]) == list(wanted):
            return i, i + n
    return None


def _same_date(wanted: str, tokens: Sequence[str]) -> bool:
    """A day and month are the same whether or not the year is said."""
    if not re.fullmatch(r"xx-\d\d-\d\d", wanted):
        return False
    return any(re.fullmatch(rf"\d{{4}}{re.escape(wanted[2:])}", token) for token in tokens)


def _near_digits(wanted: str, tokens: Sequence[str], planned: str, language: str) -> Found:
    """More than half of an identifier's digits in a row, and not in the planned text."""
    digits = re.sub(r"\D", "", wanted)
    own = re.sub(r"\D", "", canonical(planned, language))
    for i, token in enumerate(tokens):
        found = re.sub(r"\D", "", token)
        run = SequenceMatcher(None, digits, found, autojunk=False).find_longest_match()
        shared = digits[run.a : run.a + run.size]
        if run.size >= max(2, NEAR_DIGITS * len(digits)) and shared not in own:
            return Found("near", token, i, i + 1)
    return Found("none")


def _near_words(
    wanted: str, tokens: Sequence[str], planned: Sequence[str], language: str
) -> Found:
    """The closest run of words of about the same length, judged by sound and letters."""
    explained = _explained(tokens, planned)
    target, key = letters(wanted), sound_key(wanted, language)
    n = len(wanted.split())
    best, found = 0.0, Found("none")
    for size in range(max(1, n - 1), n + 2):
        for i in range(len(tokens) - size + 1):
            if explained[i] or explained[i + size - 1]:
                continue
            window = " ".join(tokens[i : i + size])
            spelled = letters(window)
            matcher = SequenceMatcher(None, target, spelled, autojunk=False)
            same_sound = sound_key(window, language) == key and len(target) >= VARIANT_LETTERS
            if not spelled or (matcher.quick_ratio() < NEAR_SIMILARITY and not same_sound):
                continue
            similarity = matcher.ratio()
            if target == spelled or (same_sound and similarity >= VARIANT_SIMILARITY):
                return Found("variant", window, i, i + size)
            if similarity > best and (similarity >= NEAR_SIMILARITY or same_sound):
                best, found = similarity, Found("near", window, i, i + size)
    return found


def _explained(tokens: Sequence[str], planned: Sequence[str]) -> list[bool]:
    """Which heard tokens stand, in order, in the planned text."""
    explained = [False] * len(tokens)
    if planned:
        matcher = SequenceMatcher(None, list(planned), list(tokens), autojunk=False)
        for block in matcher.get_matching_blocks():
            explained[block.b : block.b + block.size] = [True] * block.size
    return explained


def letters(text: str) -> str:
    """Letters only, case-folded, without accents or spaces."""
    parts = unicodedata.normalize("NFD", text.casefold())
    return "".join(c for c in parts if c.isalpha() and not unicodedata.combining(c))


_SOUNDS = (
    (r"sch|sh|ch", "S"),
    (r"ph", "f"),
    (r"wr", "r"),
    (r"\bkn|gn", "n"),
    (r"gh", ""),
    (r"th", "t"),
    (r"ck|cq|qu|q", "k"),
    (r"c(?=[eiy])", "s"),
    (r"c", "k"),
    (r"x", "ks"),
    (r"z", "s"),
    (r"y", "i"),
    (r"w", "v"),
    (r"j", "g"),
    (r"h", ""),
)  # fmt: skip


_SILENT_ENDS_FR = re.compile(r"(?<=\w\w)[dpstxz]+(?!\w)", re.I)


def sound_key(text: str, language: str = "en") -> str:
    """Consonants of a name as they sound, roughly: ``Webber`` and ``Weber`` give ``vbr``.

    A first vowel counts as ``a``; other vowels and doubled consonants do not count, nor, in
    French, do consonants that are silent at the end of a word: ``Dumont`` is ``Dumon``.
    """
    if language == "fr":
        text = _SILENT_ENDS_FR.sub("", text)
    spelled = letters(text)
    for pattern, sound in _SOUNDS:
        spelled = re.sub(pattern, sound, spelled)
    spelled = re.sub(r"(.)\1+", r"\1", spelled)
    head = "a" if spelled[:1] in set("aeiou") else ""
    return head + re.sub(r"(.)\1+", r"\1", re.sub(r"[aeiou]", "", spelled))
