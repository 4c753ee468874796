"""Everything known, once more: the occurrences of known names, places and numbers in all turns.

Unit: one conversation. What was recognised anywhere is looked up in every turn, before and
after: whole names, their parts, their short forms, spelled names as words, and long names one
letter apart. Neighbouring parts of a name become one mention; equal numbers get one category.

Functions: :func:`propagate`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from aegis.canonical import canonical
from aegis.lexicon import NICKNAMES, one_apart, places, protected_spans
from aegis.phi import occurrences
from aegis.recognise_word_names import is_given_name, word_names_found
from aegis.recognisers import Found, View
from aegis.spoken_tokens import words
from aegis.vocabulary import Vocabulary

_PARTICLES = frozenset(words("van von der des mac"))
_CERTAIN = 0.9
_MODAL = frozenset(
    words("will may mark can art long young so hope chance bill early good best little")
)


def propagate(
    kept: Sequence[Found], views: Sequence[View], language: str, vocabulary: Vocabulary
) -> list[Found]:
    """Find every occurrence of each known name and place in all turns.

    Parameters
    ----------
    kept
        Mentions found so far, without overlaps.

    Returns
    -------
    list of Found
        ``kept`` and what was added, without overlaps; not in order.
    """
    out = list(kept)
    terms = _terms(kept, views, language, vocabulary)
    certain = _certain(kept, views)

    def common(word: str) -> bool:
        return vocabulary.is_common(word, language)

    found = [*_known(terms, views, language, vocabulary)]
    found += word_names_found(views, language, common, certain)
    found += _near(certain, views, language, vocabulary)
    for item in found:
        if all(k.index != item.index or item.end <= k.start or k.end <= item.start for k in out):
            out.append(item)
    widened = [_widened(item, views[item.index], out, language) for item in out]
    return _join_names(_same_kind(widened, views, language), views)


def _parts(text: str) -> list[str]:
    """The words of a name, case-folded, without particles, countries and possessives."""
    parts = [re.sub(r"'s$", "", w.casefold()) for w in re.findall(r"[^\W\d_][\w'-]{2,}", text)]
    return [part for part in parts if part not in places() and part not in _PARTICLES]


def _certain(kept: Sequence[Found], views: Sequence[View]) -> frozenset[str]:
    """Words that are surely names here: introduced, titled, answered or of strong evidence."""
    texts = (
        views[k.index].text[k.start : k.end]
        for k in kept
        if k.category == "NAME" and k.score >= _CERTAIN and "spelled" not in k.source
    )
    return frozenset(part for text in texts for part in _parts(text))


def _terms(
    kept: Sequence[Found], views: Sequence[View], language: str, vocabulary: Vocabulary
) -> dict[str, str]:
    """What to look for: case-folded term and category."""
    terms: dict[str, str] = {}
    for item in kept:
        text = views[item.index].text[item.start : item.end]
        if item.category == "NAME" and "spelled" in item.source:
            word = re.sub(r"[^a-zà-ÿ]", "", canonical(text, language))
            if len(word) >= 4 and not vocabulary.is_word(word, language):
                terms.setdefault(word, "NAME")
        elif item.category == "NAME":
            if len(text) > 2:
                terms.setdefault(text.casefold(), "NAME")
            for part in _parts(text):
                terms.setdefault(part, "NAME")
                for short in _short_forms(part):
                    if not vocabulary.is_common(short, language):
                        terms.setdefault(short, "NAME")
        elif item.category == "LOCATION" and re.search(r"[^\W\d_]{3}", text):
            terms.setdefault(text.casefold(), "LOCATION")
    return terms


def _short_forms(name: str) -> set[str]:
    """The nicknames of a given name, and the given names of a nickname."""
    forms = set(NICKNAMES.get(name, ()))
    return forms | {full for full, short in NICKNAMES.items() if name in short}


def _known(
    terms: Mapping[str, str], views: Sequence[View], language: str, vocabulary: Vocabulary
) -> Iterator[Found]:
    for view in views:
        guard = protected_spans(view.text, language)
        for term, category in sorted(terms.items(), key=lambda kv: -len(kv[0])):
            for start, end in occurrences(term, view.text):
                common = vocabulary.is_common(term, language)
                given = re.search(r"(?<![\w'-])([^\W\d_]{3,})\s$", view.text[:start])
                family = common and category == "NAME" and given is not None
                if family and view.text[start].islower() and is_given_name(given[1], language):  # type: ignore[index]
                    yield Found(view.index, start, end, category, "known", 0.8)
                    continue
                if view.cased and not view.text[start].isupper() and common:
                    continue
                first = _sentence_start(view.text, start) and term in _MODAL
                if common and (not view.cased or first) and " " not in term:
                    continue
                if any(g[0] < end and start < g[1] for g in guard):
                    continue
                yield Found(view.index, start, end, category, "known", 0.8)


def _near(
    certain: frozenset[str], views: Sequence[View], language: str, vocabulary: Vocabulary
) -> Iterator[Found]:
    """Words that no dictionary knows, one letter from a long name that is certain."""
    names = [n for n in certain if len(n) >= 6 and not vocabulary.is_common(n, language)]
    for view in views:
        guard = protected_spans(view.text, language)
        for match in re.finditer(r"(?<![\w'-])[^\W\d_]{6,}(?![\w-])", view.text):
            word = match.group().casefold()
            free = all(g[1] <= match.start() or match.end() <= g[0] for g in guard)
            near = free and any(one_apart(word, name) for name in names)
            if near and not vocabulary.is_word(word, language):
                yield Found(view.index, *match.span(), "NAME", "near", 0.8)


def _widened(item: Found, view: View, items: Sequence[Found], language: str) -> Found:
    """A given name in small letters directly before a family name belongs to it."""
    before = re.search(r"(?<![\w'-])([^\W\d_]{3,})\s$", view.text[: item.start])
    if item.category != "NAME" or not before or "spelled" in item.source:
        return item
    word = before[1]
    capital = view.cased and word[0].isupper()
    modal = word.casefold() in ("will", "may", "can")
    sole = len(_parts(view.text[item.start : item.end])) == 1
    if capital or modal or not sole or not is_given_name(word, language):
        return item
    start = before.start(1)
    taken = any(
        k.index == item.index and k is not item and k.start < item.start and start < k.end
        for k in items
    )
    return item if taken else replace(item, start=start)


def _same_kind(items: Sequence[Found], views: Sequence[View], language: str) -> list[Found]:
    """Numbers with one canonical value have one category: that of the surest mention."""
    best: dict[str, Found] = {}
    values = [_number_value(item, views, language) for item in items]
    for item, value in zip(items, values, strict=True):
        if value and (value not in best or item.score > best[value].score):
            best[value] = item
    return [
        replace(item, category=best[value].category) if value else item
        for item, value in zip(items, values, strict=True)
    ]


def _number_value(item: Found, views: Sequence[View], language: str) -> str:
    if item.category in ("NAME", "LOCATION", "DATE", "AGE", "EMAIL", "URL", "IP"):
        return ""
    value = re.sub(r"\W", "", canonical(views[item.index].text[item.start : item.end], language))
    return value if len(value) >= 5 else ""


def _sentence_start(text: str, start: int) -> bool:
    return re.search(r"(?:^|[.?!]\s+)$", text[:start]) is not None


def _join_names(items: Sequence[Found], views: Sequence[View]) -> list[Found]:
    """A known part directly beside another known part is one mention ("Rose" "Marlow")."""
    out: list[Found] = []
    for item in sorted(items, key=lambda f: (f.index, f.start)):
        last = out[-1] if out else None
        known = last is not None and {"known", "word name", "near"} & {last.source, item.source}
        if (
            last is not None
            and known
            and last.index == item.index
            and last.category == item.category == "NAME"
            and views[item.index].text[last.end : item.start] == " "
        ):
            out[-1] = replace(last, end=item.end, score=max(last.score, item.score))
        else:
            out.append(item)
    return out
