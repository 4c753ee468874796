"""Which words a negation reaches.

Unit: one sentence as canonical words. A negation reaches ahead up to a break, and where it
stands by a verb, or nothing follows, back to what is denied.

Functions: :func:`denied_words`, :func:`is_particle`.
"""

from __future__ import annotations

from collections.abc import Sequence

from aegis import clinical_terms as terms
from aegis.word_groups import classify_alone

SCOPE = 9
"""A negation reaches at most this many words ahead."""


def denied_words(words: Sequence[str], language: str) -> list[bool]:
    """Which words a negation reaches: ahead up to a break, and its subject in the same segment.

    ``no fever`` denies what follows; ``the pulse is not 88`` denies the whole predicate.
    """
    denied = [False] * len(words)
    for i, word in enumerate(words):
        if not _denies(words, i, language):
            continue
        reach = _ahead(words, i, language)
        verbal = (
            word in _VERBAL
            and i > 0
            and words[i - 1] not in (",", "or", "and", "but", "et", "mais")
        )
        if verbal or not any(_carries(words[j], language) for j in reach):
            reach = [*reach, *_behind(words, i, language)]
        for j in reach:
            denied[j] = True
    return denied


_VERBAL = frozenset(("not", "never", "pas", "jamais", "plus", "deny", "denies"))


def _denies(words: Sequence[str], i: int, language: str) -> bool:
    word = words[i]
    if word in ("no", "non"):
        segment = []
        for other in words[i:]:
            if other == ",":
                break
            segment.append(other)
        first = i == 0 or words[i - 1] == ","
        return not (first and is_particle(segment, language)) and word == "no"
    if word in ("out", "écarter", "écarte") and (
        word != "out" or word_at(words, i - 1)[:4] in ("rule", "ruli")
    ):
        return True
    if word in ("plus", "que"):
        earlier = words[max(0, i - 4) : i]
        return word == "plus" and any(w in ("ne", "n'") for w in earlier)
    if word == "pas" and word_at(words, i - 1) == "n'est-ce":
        return False
    if word == "not" and word_at(words, i + 1) == "only":
        return False
    return word in terms.NEGATIONS[language]


def _ahead(words: Sequence[str], i: int, language: str) -> list[int]:
    reach = []
    start = i + 1
    if language == "fr":  # "ne saigne pas", "n'ai pas": the verb stands inside
        inside = [j for j in range(max(0, i - 4), i) if words[j] in ("ne", "n'")]
        start = inside[-1] + 1 if inside else start
    for j in range(start, min(len(words), i + 1 + SCOPE)):
        if j > i and (words[j] in terms.BREAKS[language] or words[j] in _SUBJECTS):
            break
        if j > i and words[i] == "no" and _other_person(words[j], language):
            break
        if words[j] in (",", "and", "et") and _new_start(words, j + 1, language):
            break
        reach.append(j)
    return reach


_SUBJECTS = frozenset(
    ["i", "he", "she", "we", "they", "it", "je", "j'", "il", "elle", "on", "ils", "elles"]
)


def _new_start(words: Sequence[str], i: int, language: str) -> bool:
    """Does another statement begin here: a person, an article, a yes or no, a break?"""
    word = word_at(words, i)
    edge = terms.BREAKS[language] | terms.YES[language] | terms.NO[language] | _ARTICLES
    return not word or word in edge or _other_person(word, language)


_ARTICLES = frozenset(
    (
        "some",
        "a",
        "an",
        "the",
        "this",
        "mild",
        "slight",
        "un",
        "une",
        "des",
        "du",
        "le",
        "la",
        "les",
    )
)


def _other_person(word: str, language: str) -> bool:
    return word in terms.PERSONS[language] or word in terms.FAMILY[language]


def _behind(words: Sequence[str], i: int, language: str) -> list[int]:
    reach: list[int] = []
    for j in range(i - 1, -1, -1):
        full = any(_carries(words[k], language) for k in reach)
        if words[j] in _TURNS or (words[j] == "," and full):
            break
        reach.append(j)
    return reach


_TURNS = frozenset(
    [
        "but",
        "although",
        "because",
        "when",
        "if",
        "so",
        "and",
        "mais",
        "parce",
        "quand",
        "si",
        "car",
        "et",
    ]
)


def _carries(word: str, language: str) -> bool:
    return classify_alone(word, language)[0] not in ("", "person", "family", "staff")


def is_particle(segment: Sequence[str], language: str) -> bool:
    """``no i have not``: the first word answers; ``no chest pain``: it denies what follows."""
    after = segment[1] if len(segment) > 1 else ""
    return (
        not after or after in terms.BREAKS[language] or after in ("it", "not", "that", "ça", "c'")
    )


def word_at(words: Sequence[str], index: int) -> str:
    return words[index] if 0 <= index < len(words) else ""
