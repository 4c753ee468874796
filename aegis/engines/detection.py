"""Detector ``rules``: recognisers, tagging models and a protected lexicon.

Unit: one conversation (all its turns, in order). Candidates come from the recognisers of
:mod:`aegis.recognisers` and from the models of :mod:`aegis.engines.tagging`; they are weighed
(:mod:`aegis.weighing`), then everything known is looked up again in all turns
(:mod:`aegis.propagation`). Nothing here uses a network. Spans are characters of the turn as
given.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace

from aegis.casing import recase
from aegis.engines import EngineInfo, Mention, TurnText, register
from aegis.engines.tagging import Models
from aegis.errors import EngineUnavailable
from aegis.lexicon import straight
from aegis.phi import CONTRACT_REVISION
from aegis.propagation import propagate
from aegis.recognise_addresses import addresses_found
from aegis.recognise_dates import ages_found, dates_found
from aegis.recognise_names import names_found
from aegis.recognise_numbers import numbers_found
from aegis.recognise_places import places_found
from aegis.recognise_word_names import word_names_found
from aegis.recognisers import Found, View
from aegis.vocabulary import Vocabulary
from aegis.weighing import decide, resolve
from aegis.weights import read_card


class Rules:
    """The embedded detector; models load on the first conversation of a language."""

    info: EngineInfo

    def __init__(self) -> None:
        revision = "+".join([read_card("rampart").revision[:12], CONTRACT_REVISION])
        self.info = EngineInfo(
            "detector", "rules", revision, "Apache-2.0 with CC BY 4.0, MIT and LGPL-LR models"
        )
        self._models = Models()
        self._vocabulary = Vocabulary()

    def detect(self, turns: Sequence[TurnText], language: str) -> list[Mention]:
        """Mentions of one conversation in turn order; spans do not overlap.

        Raises
        ------
        EngineUnavailable
            The weights of the tagger or of spaCy are not at hand, or the language is
            neither ``en`` nor ``fr``.
        """
        if language not in ("en", "fr"):
            raise EngineUnavailable(f"detector rules knows en and fr, not {language!r}")
        normal = [_compose(turn.text) for turn in turns]
        views = _views(
            [(turn.speaker, text) for turn, (text, _) in zip(turns, normal, strict=True)],
        )
        kept = self._decided(views, language)
        if not all(view.cased for view in views):
            second = [
                v
                if v.cased
                else replace(v, text=self._recased(v.text, language), cased=True, guessed=True)
                for v in views
            ]
            kept = _either(kept, self._decided(second, language))
        kept = propagate(kept, views, language, self._vocabulary)
        mentions = []
        for item in sorted(kept, key=lambda f: (f.index, f.start)):
            offsets = normal[item.index][1]
            start, end = offsets[item.start], offsets[item.end]
            mentions.append(
                Mention(
                    turns[item.index].turn_id, start, end, item.category, item.source, item.score
                )
            )
        return mentions

    def _decided(self, views: Sequence[View], language: str) -> list[Found]:
        return decide(self._candidates(views, language), views, language, self._vocabulary)

    def _recased(self, text: str, language: str) -> str:
        """Lower-case text with capitals where a name may stand (:mod:`aegis.casing`)."""
        return recase(
            text,
            language,
            lambda word: self._vocabulary.is_word(word, language),
            lambda word: self._vocabulary.is_common(word, language),
        )

    def _candidates(self, views: Sequence[View], language: str) -> list[Found]:
        def common(word: str) -> bool:
            return self._vocabulary.is_common(word, language)

        return [
            *numbers_found(views, language),
            *dates_found(views, language),
            *ages_found(views, language),
            *addresses_found(views, language),
            *places_found(views, language, common),
            *names_found(views, language, common),
            *word_names_found(views, language, common),
            *self._models.spans(views, language),
        ]


def _compose(text: str) -> tuple[str, list[int]]:
    """NFC text with plain apostrophes, and for each of its positions the original position."""
    if unicodedata.is_normalized("NFC", text):
        return straight(text), list(range(len(text) + 1))
    out, offsets, i = "", [], 0
    while i < len(text):
        j = i + 1
        while j < len(text) and unicodedata.combining(text[j]):
            j += 1
        piece = unicodedata.normalize("NFC", text[i:j])
        out += piece
        offsets += [i] * len(piece)
        i = j
    return straight(out), [*offsets, len(text)]


def _views(turns: Sequence[tuple[str, str]]) -> list[View]:
    """Views of all turns; text without meaningful capitals gets them back where it can."""
    everything = " ".join(text for _, text in turns)
    whole = _has_case(everything)
    long = [text for _, text in turns if len(text.split()) > 3]
    proper = whole and sum(_has_case(text) for text in long) >= 0.5 * len(long)
    views = []
    for index, (speaker, text) in enumerate(turns):
        cased = _has_case(text) or (proper and not (text.isupper() and len(text.split()) > 2))
        plain = text if cased or len(text.lower()) != len(text) else text.lower()
        views.append(View(index, speaker, plain, cased))
    return views


def _has_case(text: str) -> bool:
    """Whether capitals carry meaning: some, but not most, letters are upper case."""
    text = re.sub(r"\bI\b", "", text)
    letters = [c for c in text if c.isalpha()]
    upper = sum(c.isupper() for c in letters)
    words = re.findall(r"[^\W\d_]{2,}", text)
    titled = sum(w[0].isupper() for w in words)
    return (
        bool(letters)
        and 0 < upper / len(letters) < 0.6
        and not (len(words) > 8 and titled > 0.8 * len(words))
    )


def _either(first: Sequence[Found], second: Sequence[Found]) -> list[Found]:
    """The mentions of two readings of the same turns, without overlaps."""
    by_turn: dict[int, list[Found]] = {}
    for item in [*first, *second]:
        by_turn.setdefault(item.index, []).append(item)
    return [item for _, items in sorted(by_turn.items()) for item in resolve(items)]


@register("detector", "rules")
def _rules() -> Rules:
    return Rules()
