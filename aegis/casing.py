"""Capitals for text that has none, where a name may stand.

Unit: one turn of lower-case text. The result has the same length; only case differs.
A word gets a capital when no dictionary knows it, when it is a given name and no
ordinary word, after a title or an introduction when it can be a name, after such a
word when it is a family name, and where it ends the name of a street or facility.

Functions: :func:`recase`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from aegis.lexicon import cities, first_names, institutions, last_names, protected_spans
from aegis.spoken_tokens import months, words

_TITLE = frozenset(
    words(
        "mr mrs ms miss dr doctor prof professor mister missus monsieur"
        " madame mme mlle docteur mademoiselle"
    )
)
_INTRODUCES = re.compile(
    r"(?:\b(?:name is|name's|names|called|calls? me|call me|this is"
    r"|named|m'appelle|s'appelle|appelez-moi|nom est|prénom est"
    r"|je suis|i'm|i am|my (?:wife|husband|son|daughter|brother|sister"
    r"|friend|partner|mother|father|mum|dad)"
    r"|m(?:on|a) (?:fils|fille|femme|mari|frère|sœur|mère|père))|^(?:hi"
    r"|hello|hey|bonjour|okay|alright|thanks))\s+$"
)
_KINDS = frozenset(
    words(
        "street road lane avenue drive court close way place crescent terrace"
        " boulevard square gardens grove mews park hill bridge hospital"
        " clinic surgery centre center practice pharmacy infirmary hospice"
        " school college university academy institute house home lodge"
        " memorial general royal medical health family community children's"
    )
)
_DAYS = frozenset(["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"])


Known = Callable[[str], bool]


def recase(text: str, language: str, is_word: Known, is_common: Known) -> str:
    """Give capitals to the words of a lower-case text that may be names.

    ``is_word`` tells whether any dictionary knows a lower-case word, ``is_common``
    whether it is an everyday word.
    """
    guard = protected_spans(text, language)
    capitals: list[tuple[int, int]] = _listed(text)
    previous = False
    for match in re.finditer(r"[^\W\d_][\w'-]*", text):
        start, end = match.span()
        word = re.sub(r"'s$", "", match.group())
        clinical = any(a < end and start < b for a, b in guard)
        given = not clinical and _capital(
            text, start, word, language, is_word, is_common, previous
        )
        previous = (given and word != "i") or any(a <= start < b for a, b in capitals)
        if given:
            capitals.append((start, start + 1))
    out = list(text)
    for start, end in capitals:
        for k in range(start, end):
            if k == start or (not text[k - 1].isalnum() and text[k - 1] != "'"):
                out[k] = text[k].upper() if len(text[k].upper()) == 1 else text[k]
    return "".join(out)


def _listed(text: str) -> list[tuple[int, int]]:
    """Spans of listed towns and hospitals of one or more words that are no given names."""
    terms = [t for t in cities() | institutions() if len(t) > 3]
    pattern = (
        r"(?<!\w)(?:"
        + "|".join(re.escape(t) for t in sorted(terms, key=len, reverse=True))
        + r")(?!\w)"
    )
    ordinary = {
        "reading",
        "nice",
        "gap",
        "mesa",
        "tours",
        "pau",
        "orange",
        "cork",
        "bath",
        "hull",
        "bury",
        "metz",
        "sens",
    }
    return [m.span() for m in re.finditer(pattern, text) if m.group() not in ordinary]


def _capital(
    text: str,
    start: int,
    word: str,
    language: str,
    is_word: Known,
    is_common: Known,
    after_name: bool,
) -> bool:
    before = text[:start]
    if word == "i":
        return True
    if len(word) == 1 and after_name and text[start + 1 : start + 2] == ".":
        return True
    if text[start + len(word) : start + len(word) + 1] == "-" or word.endswith(
        "-"
    ):  # a broken-off word
        return False
    if len(word) < 2 or re.match(r"(?:[cdjlmnst]|qu)'", word):
        return False
    if (
        word in months(language)
        and language == "en"
        and word not in ("may", "march", "mar", "sept", "dec", "jan", "jun")
    ):
        return True
    if word == "royal" and not is_common(re.match(r"\w*", text[start + 6 :])[0]):  # type: ignore[index]
        return True
    if word in _DAYS or (word in _KINDS and after_name and re.search(r"\w\s$", before)):
        return True
    person = word in first_names(language) or word in last_names(language)
    titled = re.search(r"(?:^|\W)(\w+)\.?\s$", before)
    if titled and titled[1] in _TITLE:
        return person or not is_common(word)
    if len(word) < 3:
        return False
    if not is_word(word):
        return True
    if _INTRODUCES.search(before) and word in first_names(language):
        return not _INTRODUCES.search(before + word + " ") and word not in (
            "will",
            "may",
            "in",
            "so",
            "an",
            "long",
            "young",
            "sunny",
            "merry",
        )
    follows = after_name and re.search(r"\w\.?\s$", before) is not None and len(word) > 3
    return follows and (word in last_names(language) or not is_common(word))
