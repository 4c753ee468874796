"""E-mail, web and IP addresses, written or spoken.

A spoken address joins its words by "dot", "underscore" and "at" ("point", "tiret", "arobase").

Functions: :func:`addresses_found`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from aegis.canonical import canonical
from aegis.recognise_numbers import NUMBER_WORDS
from aegis.recognisers import FLAGS, Found, View
from aegis.spoken_tokens import words

_TLD = (
    r"(?:com|org|net|edu|gov|co\.uk|uk|fr|io|health|be|ch|ca|info|eu"
    r"|us|nhs\.uk|ie|de|co|ai|app|c\s?o\s?m|f\s?r)"
)
_WRITTEN_EMAIL = re.compile(r"[\w.+-]+\s?@\s?[\w-]+(?:\s?\.\s?[\w-]+)+", FLAGS)
_WRITTEN_URL = re.compile(
    (
        rf"(?:https?://|www\.)[\w.-]+(?:/[\w/.%?=&~-]*\w)?|(?<![\w@.])(?:[a-z][\w-]*\.)+{_TLD}\b(?!@"
        rf")(?:/[\w/-]*\w)?"
    ),
    FLAGS,
)
_IP = re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?!\d|\.\d)")
_SPOKEN_DOMAIN = {
    "en": (
        rf"(?:[\w-]+(?:\s+(?:dash|hyphen)\s+[\w-]+)*)(?:(?:\s+dot\s+|\.)[\w-]+)*(?:\s+dot\s+"
        rf"|\.){_TLD}\b(?:\s+dot\s+uk\b)?"
    ),
    "fr": (
        rf"(?:[\w-]+(?:\s+tiret\s+[\w-]+)*)(?:(?:\s+point\s+|\.)[\w-]+)*(?:\s+point\s+"
        rf"|\.){_TLD}\b"
    ),
}
_JOIN = r"(?:dot|point|underscore|dash|hyphen|tiret(?: du bas)?|[._-])"
_NOT_LOCAL = set(
    words(
        "is it's its or to at email e-mail mail address my her his the"
        " that's use write send on just you can me est c'est adresse mon"
        " it them this these file files photo photos look upload us"
        " ma votre courriel à moi sur écrivez and et so uh um euh"
    )
)


def addresses_found(views: Sequence[View], language: str) -> Iterator[Found]:
    """E-mail, web and IP addresses, written or spoken."""
    at = {"en": r"(?:at|@)", "fr": r"(?:arobase|arrobase|at|@)"}[language]
    spoken = re.compile(rf"\s+{at}\s+(?!www|w\s?w)({_SPOKEN_DOMAIN[language]})", FLAGS)
    word = {"en": "dot", "fr": "point"}[language]
    url = re.compile(
        rf"(?<![\w@])(?:(?:w\W*w\W*w|double u\W+double u\W+double u|triple"
        rf" w|www)(?:\s+{word}\s+|\W+)"
        rf"[\w-]+(?:(?:\s+{word}\s+|\.)[\w-]+)+|[\w-]+(?:\s+{word}\s+[\w-]+)*\s+{word}\s+{_TLD}\b)"
        rf"(?:\s+slash\s+[\w-]+)*",
        FLAGS,
    )
    ip = re.compile(
        (
            rf"(?<!\w)(?:[\w ]{{1,40}}?\s+{word}\s+){{3}}(?:(?:{NUMBER_WORDS[language]}"
            rf"|\d+)\s*){{1,3}}"
        ),
        FLAGS,
    )
    for view in views:
        text = view.text
        for pattern, category in ((_WRITTEN_EMAIL, "EMAIL"), (_WRITTEN_URL, "URL"), (_IP, "IP")):
            for match in pattern.finditer(text):
                if category != "IP" or not re.search(r"(?:^|\.)0\d", match.group()):
                    yield Found(view.index, match.start(), match.end(), category, "address", 0.99)
        for match in spoken.finditer(text):
            start = _local_start(text, match.start())
            if start < match.start():
                yield Found(view.index, start, match.end(1), "EMAIL", "spoken address", 0.98)
        for match in url.finditer(text):
            yield Found(view.index, match.start(), match.end(), "URL", "spoken address", 0.9)
        for match in ip.finditer(text):
            found = _spoken_ip(text, match, language)
            if found:
                yield Found(view.index, *found, "IP", "spoken address", 0.95)


def _local_start(text: str, end: int) -> int:
    """Where the part before "at" begins: words joined by "dot", letters, digits, names."""
    tokens = list(re.finditer(r"[\w'+-]+(?:\.[\w+-]+)*", text[:end]))
    if not tokens or tokens[-1].group().casefold() in _NOT_LOCAL:
        return end
    start = tokens[-1].start()
    k, loose = len(tokens) - 2, 0
    while k >= 0:
        token = tokens[k].group()
        gap = text[tokens[k].end() : start]
        if re.search(r"[?!:;]|\.\s", gap) or token.casefold() in _NOT_LOCAL:
            break
        joined = re.fullmatch(_JOIN, token, FLAGS) or re.fullmatch(
            _JOIN, tokens[k + 1].group(), FLAGS
        )
        short = (
            len(token) == 1
            or token.isdigit()
            or re.fullmatch("|".join(NUMBER_WORDS.values()), token, FLAGS)
        )
        if not joined and not short:
            loose += 1
            if loose > 1 or "," in gap:
                break
        start = tokens[k].start()
        k -= 1
    return start


def _spoken_ip(text: str, match: re.Match[str], language: str) -> tuple[int, int] | None:
    """The longest tail of a match that reads as four numbers."""
    end = match.start() + len(match.group().rstrip())
    for token in re.finditer(r"\S+", match.group()):
        start = match.start() + token.start()
        if re.fullmatch(r"(?:\d{1,3}\.){3}\d{1,3}", canonical(text[start:end], language)):
            return start, end
    return None
