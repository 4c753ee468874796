"""Everything known, once more: the occurrences of known names, places and numbers in all turns.

Unit: one conversation. What was recognised anywhere is looked up in every turn, before and
after; neighbouring parts of a name become one mention; equal numbers get one category.

Functions: :func:`propagate`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from aegis.canonical import canonical, words
from aegis.lexicon import places, protected_spans
from aegis.phi import occurrences
from aegis.recognisers import Found, View
from aegis.vocabulary import Vocabulary


def propagate(
    kept: Sequence[Found], views: Sequence[View], language: str, vocabulary: Vocabulary
) -> list[Found]:
    """Find every occurrence of each known name, place and long number in all turns."""
    out = list(kept)
    terms: dict[str, str] = {}
    for item in kept:
        text = views[item.index].text[item.start : item.end]
        if item.category == "NAME" and "spelled" not in item.source:
            if len(text) > 2:
                terms.setdefault(text.casefold(), "NAME")
            for word in re.findall(r"[^\W\d_][\w'-]{2,}", text):
                low = re.sub(r"'s$", "", word.casefold())
                if low not in places() and low not in ("van", "von", "der", "des", "mac"):
                    terms.setdefault(low, "NAME")
        elif item.category == "LOCATION" and re.search(r"[^\W\d_]{3}", text):
            terms.setdefault(text.casefold(), "LOCATION")
    for view in views:
        guard = protected_spans(view.text, language)
        for term, category in sorted(terms.items(), key=lambda kv: -len(kv[0])):
            for start, end in occurrences(term, view.text):
                item = Found(view.index, start, end, category, "known", 0.8)
                word = view.text[start:end]
                common = vocabulary.is_common(term, language)
                if view.cased and not word[0].isupper() and common:
                    continue
                first = _sentence_start(view.text, start) and term in _MODAL
                if common and (not view.cased or first) and " " not in term:
                    continue
                if any(g[0] < end and start < g[1] for g in guard):
                    continue
                if all(k.index != view.index or end <= k.start or k.end <= start for k in out):
                    out.append(item)
    return _join_names(_same_kind(out, views, language), views)


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


_MODAL = frozenset(
    words("will may mark can art long young so hope chance bill early good best little")
)


def _sentence_start(text: str, start: int) -> bool:
    return re.search(r"(?:^|[.?!]\s+)$", text[:start]) is not None


def _join_names(items: Sequence[Found], views: Sequence[View]) -> list[Found]:
    """A known part directly beside another known part is one mention ("Rose" "Marlow")."""
    out: list[Found] = []
    for item in sorted(items, key=lambda f: (f.index, f.start)):
        last = out[-1] if out else None
        known = last is not None and "known" in (last.source, item.source)
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
