"""What a word of clinical speech is: its group (drug, symptom, side ...) and its value.

Unit: one canonical word. Values of one group exclude each other. Forms of one word meet in
their stem; what carries nothing has the empty group.

Functions: :func:`classify`, :func:`classify_alone`, :func:`stem`.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from aegis import clinical_terms as terms
from aegis.lexicon import is_drug

_BACK = frozenset(
    [
        "come",
        "came",
        "comes",
        "coming",
        "go",
        "went",
        "going",
        "get",
        "got",
        "call",
        "ring",
        "be",
        "is",
        "are",
        "was",
        "came",
        "bring",
        "get",
    ]
)
_LEFT = frozenset(["has", "have", "had", "he", "she", "i", "they", "you", "we", "ve", "just"])


def classify(word: str, before: str, after: str, language: str) -> tuple[str, str]:
    """The group and value of one word; an empty group says that it carries nothing."""
    if word == "back" and before in _BACK:
        return "", ""
    if word == "left" and before in _LEFT:
        return "word", "leave"
    group, value = classify_alone(word, language)
    if value == "short" and after not in ("of", "breath"):
        return "word", value
    return group, value


@lru_cache(maxsize=100_000)
def classify_alone(word: str, language: str) -> tuple[str, str]:
    if word == "," or word in ("ne", "n'"):
        return "", ""
    for group, values in terms.GROUPS[language].items():
        if word in values:
            return group, values[word]
    for group, table in (
        ("family", terms.FAMILY),
        ("staff", terms.STAFF),
        ("person", terms.PERSONS),
        ("site", terms.SITES),
    ):
        if word in table[language]:
            return group, table[language][word]
    if word in terms.SUSPECTED[language]:
        return "doubt", "suspected"
    spelled = terms.SYNONYMS[language].get(word, word)
    if spelled in terms.SYMPTOMS[language] or _plain_spelling(spelled) in terms.SYMPTOMS[language]:
        return "symptom", stem(spelled, language)
    if spelled in terms.TESTS[language]:
        return "test", stem(spelled, language)
    if word in terms.STOP[language] or word in terms.NEGATIONS[language] or len(word) < 2:
        return "", ""
    if word in terms.DRUGS or (len(word) > 4 and is_drug(word)):
        return "drug", unicodedata.normalize("NFC", word.casefold())
    return "word", stem(spelled, language)


def _plain_spelling(word: str) -> str:
    """American spelling of a British one: diarrhoea, anaemia, tumour."""
    return word.replace("oe", "e").replace("ae", "e").replace("our", "or")


_ENDINGS = {
    "en": ("ingly", "edly", "ings", "ing", "ies", "ied", "ed", "es", "ly", "s", "e", "y"),
    "fr": (
        "ements",
        "ement",
        "ations",
        "ation",
        "issez",
        "aient",
        "ées",
        "ée",
        "és",
        "er",
        "ez",
        "ait",
        "ent",
        "es",
        "é",
        "e",
        "s",
        "x",
        "ir",
        "it",
        "i",
    ),
}


@lru_cache(maxsize=100_000)
def stem(word: str, language: str) -> str:
    """A word without its ending and accents, so that forms of one word meet."""
    word = _plain_spelling(word) if language == "en" else word
    for ending in _ENDINGS[language]:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    if len(word) > 3 and word[-1] == word[-2]:
        word = word[:-1]
    parts = unicodedata.normalize("NFD", word.replace("œ", "oe"))
    return "".join(c for c in parts if not unicodedata.combining(c))
