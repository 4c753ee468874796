"""Weighing candidates: which spans of the recognisers and models are kept.

Unit: one turn. A candidate is kept when its evidence suffices, it is free of protected
clinical terms, and no surer or longer one overlaps it. Scores lie in [0, 1].

Functions: :func:`decide`, :func:`resolve`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from aegis.lexicon import (
    cities,
    first_names,
    institutions,
    is_drug,
    last_names,
    places,
    protected_spans,
)
from aegis.recognisers import Found, View
from aegis.spoken_tokens import months, words
from aegis.vocabulary import Vocabulary

_SURE = ("title", "answer", "spelled", "word name")


def decide(
    found: Sequence[Found], views: Sequence[View], language: str, vocabulary: Vocabulary
) -> list[Found]:
    """Keep candidates with enough evidence, free of protected terms, without overlaps."""
    kept: list[Found] = []
    by_turn: dict[int, list[Found]] = {}
    for item in found:
        by_turn.setdefault(item.index, []).append(item)
    for index, items in sorted(by_turn.items()):
        view = views[index]
        guard = protected_spans(view.text, language)
        items = [trimmed for item in items if (trimmed := _trim(item, view, language, vocabulary))]
        items = [item for item in items if not _guarded(item, guard, view)]
        names = _people(view, [i for i in items if i.category == "NAME"], language, vocabulary)
        others = [i for i in items if i.category not in ("NAME", "STREET", "ZIP", "ORGANIZATION")]
        towns = _towns(view, others, items, language, vocabulary)
        rest = [i for i in others if i.category != "LOCATION" and _holds(i, view)]
        kept += resolve([*names, *towns, *rest])
    return kept


def _trim(item: Found, view: View, language: str, vocabulary: Vocabulary) -> Found | None:
    """Cut white space, punctuation, possessives and titles from the edges of a span."""
    text = view.text
    start, end = item.start, item.end
    while start < end and not (text[start].isalnum() or text[start] in "+(#"):
        start += 1
    initial = re.search(r"(?:^|\s)[A-Z]\.$", text[start:end])
    while (
        end > start
        and not text[end - 1].isalnum()
        and not (initial and text[end - 1] == "." and item.category == "NAME")
    ):
        if text[end - 1] == ")" and "(" in text[start:end]:
            break
        end -= 1
    if (
        item.source in ("spacy", "tagger")
        and item.category in ("NAME", "LOCATION", "ORGANIZATION")
        and view.cased
    ):
        tail = re.search(r"(?:\s+(?:[a-zà-ÿ]\S*|[\d/]+))+$", text[start:end])
        lower = re.match(r"(?:[a-zà-ÿ][\w'-]*\s+)+(?=[A-ZÀ-Ý])", text[start:end])
        end = start + tail.start() if tail and tail.start() > 0 else end
        inner = re.search(r"\s+(?:on|for|with|from|last|at|in|w/|since|and)\s", text[start:end])
        if inner and inner.start() > 0 and item.source == "spacy":
            end = start + inner.start()
        month = re.search(
            rf"\s+(?:{'|'.join(m for m in months(language) if len(m) > 2)})$",
            text[start:end],
            re.I,
        )
        end = start + month.start() if month and item.category != "NAME" else end
        start += lower.end() if lower else 0
    if item.category == "NAME":
        service = re.search(r"\s+(?:du|de la|au|of the|from)\s+\S+$", text[start:end], re.I)
        end = start + service.start() if service and language == "fr" else end
    if item.category in ("NAME", "LOCATION") and item.source in ("spacy", "tagger"):
        if text[start:end].endswith("'s") and item.category == "NAME":
            end -= 2
        if item.category == "NAME":
            title = re.match(
                (
                    r"(?:mr|mrs|ms|miss|dr|doctor|prof|professor|nurse|madame|monsieur"
                    r"|mme|mlle|docteur|m|pt|patient|hi|hello|hey|bonjour|merci|ok|okay"
                    r"|yeah|yes|so|thanks|dear)\b\.?\s*"
                ),
                text[start:end],
                re.I,
            )
            start += title.end() if title else 0
    return replace(item, start=start, end=end) if end > start else None


def _guarded(item: Found, guard: Sequence[tuple[int, int]], view: View) -> bool:
    """Whether a candidate touches a protected clinical term and has no strong reason."""
    if item.source in ("title",) or item.category not in (
        "NAME",
        "LOCATION",
        "STREET",
        "ORGANIZATION",
    ):
        return False
    touched = [g for g in guard if g[0] < item.end and item.start < g[1]]
    if not touched:
        return False
    if item.source in ("facility", "street"):
        return all(g[0] <= item.start and item.end <= g[1] for g in touched)
    return True


def _known(word: str, language: str) -> bool:
    return word in first_names(language) or word in last_names(language)


def _people(
    view: View, items: Sequence[Found], language: str, vocabulary: Vocabulary
) -> list[Found]:
    """Weigh the evidence for each group of overlapping name candidates."""
    out = []
    for group in _groups(items):
        best = max(group, key=lambda i: (i.score, i.end - i.start))
        evidence = {i.source: i.score for i in sorted(group, key=lambda i: i.score)}
        span = _name_span(view, group, best, language, vocabulary)
        text = view.text[span[0] : span[1]]
        words = [w for w in re.findall(r"[^\W\d_][\w'-]*", text) if len(w) > 1]
        words = [text] if best.source == "spelled" or "title" in evidence else words
        if text.casefold() in institutions() and "title" not in evidence:
            continue
        if (
            "_" in text
            or any(c.isdigit() for c in text)
            or (set(evidence) == {"spacy"} and text.isupper())
        ):
            continue
        if (
            not words
            or all(w.casefold() in places() for w in words)
            or text.casefold() in places()
        ):
            continue
        common = all(vocabulary.is_common(w.casefold(), language) for w in words)
        known = any(_known(w.casefold(), language) for w in words)
        score = _name_score(evidence, common, known, view, text)
        if score >= 0.8:
            out.append(
                Found(
                    view.index,
                    *span,
                    "NAME",
                    "+".join(sorted(evidence)),
                    round(min(score, 1.0), 3),
                )
            )
    return out


def _name_score(
    evidence: dict[str, float], common: bool, known: bool, view: View, text: str
) -> float:
    if any(source in evidence for source in _SURE) or evidence.get("cue", 0) >= 0.9:
        return 0.95
    score = sum(evidence.values())
    if evidence.get("list", 0) >= 0.8:
        score += 0.3
    tagger = evidence.get("tagger", 0.0)
    if len(evidence) == 1:
        alone = tagger if tagger > 0.75 and (known or tagger > 0.9) else 0.0
        score = alone if "tagger" in evidence else score
        if "spacy" in evidence:
            score = 0.85 if known and view.cased and len(text.split()) > 1 else 0.5
    if common:
        score -= 0.5 if known and view.cased else 0.9
    elif not known and not view.cased and len(evidence) == 1:
        score -= 0.15
    return score


def _groups(items: Sequence[Found]) -> list[list[Found]]:
    """Group overlapping candidates."""
    groups: list[list[Found]] = []
    end = -1
    for item in sorted(items, key=lambda i: (i.start, -i.end)):
        if groups and item.start < end:
            groups[-1].append(item)
        else:
            groups.append([item])
            end = item.end
        end = max(end, item.end)
    return groups


def _name_span(
    view: View, group: Sequence[Found], best: Found, language: str, vocabulary: Vocabulary
) -> tuple[int, int]:
    """The best candidate, widened to neighbours in the group that look like names."""
    start, end = best.start, best.end
    for item in sorted(group, key=lambda i: -i.score):
        if (
            item.source == "spelled"
            or best.source == "spelled"
            or not (item.start < end and start < item.end)
        ):
            continue
        extra = view.text[item.start : start] + " " + view.text[end : item.end]
        words = re.findall(r"[^\W\d_][\w'.-]*", extra)
        if re.search(r"[,;:?!\n]", extra.strip()):
            continue
        if all(_name_like(w, view, language, vocabulary) for w in words):
            start, end = min(start, item.start), max(end, item.end)
    return start, end


def _name_like(word: str, view: View, language: str, vocabulary: Vocabulary) -> bool:
    low = word.casefold().strip(".")
    if low in ("le", "la", "de", "du", "van", "von", "der", "di", "da", "el", "al", "st", "mac"):
        return True
    if len(low) == 1:
        return word[0].isupper() and low != "i"
    if view.cased and not word[0].isupper():
        return low in ("de", "du", "la", "le", "van", "von", "der", "di", "da")
    return not vocabulary.is_common(low, language) or (view.cased and _known(low, language))


_BEFORE_NAME = (
    r"\b(?:mr|mrs|ms|miss|dr|doctor|prof|professor|nurse|monsieur|madame|mme|docteur)\.?\s+$"
)
_BAD_TOWN = set(
    words("covid ecg mri ct gp nhs icu er uti ok hiv copd god english french christmas internet")
)


def _towns(
    view: View,
    others: Sequence[Found],
    items: Sequence[Found],
    language: str,
    vocabulary: Vocabulary,
) -> list[Found]:
    """Places: the recognisers' as they are; the models' where two agree or a cue stands."""
    own = [
        i
        for i in others
        if i.category == "LOCATION" and i.source not in ("tagger", "spacy", "presidio")
    ]
    own += _tagged_streets(view, items)
    model = [i for i in others if i.category == "LOCATION" and i.source in ("tagger", "spacy")]
    model += [replace(i, category="LOCATION") for i in items if i.category == "ORGANIZATION"]
    out = list(own)
    for group in _groups(model):
        sources = {i.source for i in group}
        best = max(group, key=lambda i: (i.score, i.end - i.start))
        text = view.text[best.start : best.end]
        low = text.casefold()
        words = re.findall(r"[^\W\d_][\w'-]*", low)
        titled = re.search(_BEFORE_NAME, view.text[: best.start], re.I) is not None
        if (
            titled
            or low in places()
            or low in _BAD_TOWN
            or not words
            or all(vocabulary.is_common(w, language) for w in words)
        ):
            continue
        if any(is_drug(w) for w in words) or (view.cased and not text[0].isupper()):
            continue
        before = view.text[: best.start]
        at = re.search(r"\b(?:at|from)\s+(?:the\s+)?$", before, re.I) is not None
        inside = re.search(r"\b(?:in|near|to|around|à|de|vers|sur)\s+$", before, re.I) is not None
        known = low in cities() or low in institutions()
        score = (
            (0.5 if "spacy" in sources else 0)
            + (0.45 if "tagger" in sources else 0)
            + 0.3 * at
            + 0.2 * inside
            + 0.3 * known
        )
        tagger = max((i.score for i in group if i.source == "tagger"), default=0.0)
        if tagger > 0.9 and (inside or at or not view.cased):
            score += 0.2
        named = any(
            i.source == "spacy" and i.category == "LOCATION" and i in others for i in group
        )
        if named and (inside or at) and len(words) <= 3:
            score += 0.15
        if score >= 0.8:
            out.append(replace(best, source="+".join(sorted(sources)), score=min(0.84, score)))
    return out


def _tagged_streets(view: View, items: Sequence[Found]) -> list[Found]:
    """A house number beside a street name, and postcodes, as the tagger sees them."""
    out = []
    for item in items:
        text = view.text[item.start : item.end]
        if (
            item.category == "STREET"
            and re.search(r"\d|[A-Za-z]{3}", text)
            and len(text.split()) >= 2
        ):
            street = re.search(
                (
                    r"\b(?:street|st|road|rd|lane|avenue|ave|drive|court|close|way|crescent"
                    r"|terrace|boulevard|rue|avenue|chemin|impasse|allée|quai|place)\b"
                ),
                text,
                re.I,
            )
            if (
                street
                and re.search(r"^\d+|^[A-Z]", text)
                and item.score > 0.5
                and re.search(r"\d", text)
            ):
                out.append(replace(item, category="LOCATION", score=0.85))
        if (
            item.category == "ZIP"
            and re.fullmatch(r"\d{5}(?:-\d{4})?|[A-Z]{1,2}\d[A-Z\d]? ?\d[A-Z]{2}", text, re.I)
            and item.score > 0.8
        ):
            out.append(replace(item, category="LOCATION", score=0.8))
    return out


def _holds(item: Found, view: View) -> bool:
    """Whether a number, date or address stands on its own evidence."""
    text = view.text[item.start : item.end]
    digits = sum(c.isdigit() for c in text)
    if item.source == "tagger":
        if item.category in ("EMAIL", "URL"):
            return item.score > 0.8 and "." in text and len(text) > 6
        return item.score > 0.85 and digits >= 7  # weighed below labels in resolve
    if item.source == "presidio":
        return item.category != "IP" or re.search(r"(?:^|\.)0\d", text) is None
    return item.score >= 0.5


def resolve(items: Sequence[Found]) -> list[Found]:
    """Drop overlaps: sure before unsure, long before short, high before low score."""

    def rank(item: Found) -> tuple[int, int, float]:
        tier = 2 if item.score >= 0.8 and item.source != "tagger" else 1
        return (-tier, -(item.end - item.start), -item.score)

    kept: list[Found] = []
    for item in sorted(items, key=rank):
        if all(item.end <= k.start or k.end <= item.start for k in kept):
            kept.append(item)
    return kept
