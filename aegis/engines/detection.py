"""Detector ``rules``: a PII tagger and spaCy under presidio, recognisers, a protected lexicon.

Unit: one conversation (all its turns, in order). Candidates come from the
recognisers of :mod:`aegis.recognisers`, from the Rampart tagger (uncased BERT, ONNX,
CC BY 4.0) and from presidio's analyzer over spaCy; they are weighed, freed from
protected clinical terms, then every known name, place and number is looked up again
in all turns. Nothing here uses a network. Spans are characters of the turn as given.
"""

from __future__ import annotations

import importlib
import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from aegis.canonical import canonical, months, words
from aegis.casing import recase
from aegis.engines import EngineInfo, Mention, TurnText, register
from aegis.errors import EngineUnavailable
from aegis.lexicon import (
    cities,
    first_names,
    institutions,
    is_drug,
    last_names,
    places,
    protected_spans,
    straight,
    words_en,
)
from aegis.phi import CONTRACT_REVISION, occurrences
from aegis.recognise_addresses import addresses_found
from aegis.recognise_dates import ages_found, dates_found
from aegis.recognise_names import names_found
from aegis.recognise_numbers import numbers_found
from aegis.recognise_places import places_found
from aegis.recognisers import Found, View
from aegis.weights import model_dir, read_card

_TAG_CATEGORIES = {
    "GIVEN_NAME": "NAME", "SURNAME": "NAME", "EMAIL": "EMAIL", "PHONE": "PHONE", "URL": "URL",
    "TAX_ID": "SSN", "BANK_ACCOUNT": "ACCOUNT", "ROUTING_NUMBER": "ACCOUNT",
    "GOVERNMENT_ID": "SSN",
    "PASSPORT": "LICENSE", "DRIVERS_LICENSE": "LICENSE", "BUILDING_NUMBER": "STREET",
    "STREET_NAME": "STREET", "SECONDARY_ADDRESS": "STREET", "CITY": "LOCATION", "ZIP_CODE": "ZIP",
}  # fmt: skip
_PRESIDIO = {
    "PERSON": "NAME", "LOCATION": "LOCATION", "ORGANIZATION": "ORGANIZATION",
    "CREDIT_CARD": "ACCOUNT",
    "IBAN_CODE": "ACCOUNT", "US_SSN": "SSN", "IP_ADDRESS": "IP",
}  # fmt: skip
_MAX_TOKENS = 180


@dataclass(frozen=True)
class _Tagged:
    start: int
    end: int
    label: str
    score: float


class Tagger:
    """The Rampart model: character spans of whole words with a label and a probability."""

    def __init__(self, folder: Path) -> None:
        import onnxruntime
        from tokenizers import Tokenizer

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(
            str(folder / "onnx" / "model_q4.onnx"), options, providers=["CPUExecutionProvider"]
        )
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        labels = json.loads((folder / "config.json").read_text(encoding="utf-8"))["id2label"]
        self._labels = [labels[str(i)] for i in range(len(labels))]

    def count(self, text: str) -> int:
        return len(self._tokenizer.encode(text).ids)

    def words(self, text: str) -> list[_Tagged]:
        """Every tagged word of a text: its most probable label over its pieces."""
        encoded = self._tokenizer.encode(text)
        out = []
        for first in range(0, max(1, len(encoded.ids)), 500):
            ids = np.array([encoded.ids[first : first + 500]], dtype=np.int64)
            offsets = encoded.offsets[first : first + 500]
            feed = {
                "input_ids": ids,
                "attention_mask": np.ones_like(ids),
                "token_type_ids": np.zeros_like(ids),
            }
            logits = self._session.run(None, feed)[0][0]
            exp = np.exp(logits - logits.max(-1, keepdims=True))
            out += self._whole_words(text, offsets, exp / exp.sum(-1, keepdims=True))
        return out

    def _whole_words(self, text: str, offsets: list[tuple[int, int]], p: Any) -> list[_Tagged]:
        """Average the label probabilities of the pieces of each word."""
        by_word: dict[tuple[int, int], list[Any]] = {}
        bounds = [m.span() for m in re.finditer(r"\w+(?:['-]\w+)*|[^\w\s]", text)]
        k = 0
        for (start, end), row in zip(offsets, p, strict=True):
            if end <= start:
                continue
            while k < len(bounds) and bounds[k][1] <= start:
                k += 1
            if k < len(bounds):
                by_word.setdefault(bounds[k], []).append(row)
        tagged = []
        for (start, end), rows in by_word.items():
            mean = self._by_type(np.mean(rows, axis=0))
            label = max(mean, key=lambda name: mean[name])
            if label != "O":
                tagged.append(_Tagged(start, end, label, float(mean[label])))
        return tagged

    def _by_type(self, p: Any) -> dict[str, float]:
        total: dict[str, float] = {}
        for label, value in zip(self._labels, p, strict=True):
            name = label.removeprefix("B-").removeprefix("I-")
            total[name] = total.get(name, 0.0) + float(value)
        return total


def _build_analyzer(language: str) -> Any:
    """presidio's analyzer for one language on a local spaCy model, without network look-ups."""
    import spacy
    from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
    from presidio_analyzer.nlp_engine import NerModelConfiguration, SpacyNlpEngine
    from presidio_analyzer.predefined_recognizers import (
        CreditCardRecognizer,
        IbanRecognizer,
        IpRecognizer,
        SpacyRecognizer,
        UsSsnRecognizer,
    )

    folder = model_dir(f"spacy-{language}")
    nlp = spacy.load(
        folder,
        exclude=["parser", "lemmatizer", "tagger", "attribute_ruler", "morphologizer", "senter"],
    )
    engine = SpacyNlpEngine(
        models=[{"lang_code": language, "model_name": str(folder)}],
        ner_model_configuration=NerModelConfiguration(
            model_to_presidio_entity_mapping={
                "PERSON": "PERSON", "PER": "PERSON", "GPE": "LOCATION", "LOC": "LOCATION",
                "FAC": "LOCATION",
                "ORG": "ORGANIZATION",
            },
            labels_to_ignore=words(
"CARDINAL ORDINAL DATE TIME MONEY PERCENT QUANTITY EVENT LANGUAGE"
" LAW NORP PRODUCT WORK_OF_ART MISC"
),
            low_score_entity_names=[],
        ),
    )  # fmt: skip
    setattr(engine, "nlp", {language: nlp})  # noqa: B010 - presidio declares it as None
    registry = RecognizerRegistry(supported_languages=[language])
    for recogniser in (CreditCardRecognizer, IbanRecognizer, IpRecognizer, UsSsnRecognizer):
        registry.add_recognizer(recogniser(supported_language=language))
    registry.add_recognizer(
        SpacyRecognizer(
            supported_language=language, supported_entities=["PERSON", "LOCATION", "ORGANIZATION"]
        )
    )
    return AnalyzerEngine(
        registry=registry,
        nlp_engine=engine,
        supported_languages=[language],
        context_aware_enhancer=cast("Any", _NoContext()),
    )


class _NoContext:
    """presidio's context enhancer needs lemmas; context is the recognisers' business here."""

    def enhance_using_context(self, text: str, raw_results: Any, *rest: Any, **named: Any) -> Any:
        return raw_results


class Rules:
    """The embedded detector; models load on the first conversation of a language."""

    info: EngineInfo

    def __init__(self) -> None:
        revision = "+".join([read_card("rampart").revision[:12], CONTRACT_REVISION])
        self.info = EngineInfo(
            "detector", "rules", revision, "Apache-2.0 with CC BY 4.0, MIT and LGPL-LR models"
        )
        self._tagger: Tagger | None = None
        self._analyzers: dict[str, Any] = {}
        self._french: frozenset[str] | None = None
        self._english: frozenset[str] | None = None
        self._stops: dict[str, frozenset[str]] = {}

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
            language,
            self,
        )
        kept = self._decided(views, language)
        if not all(view.cased for view in views):
            second = [
                v if v.cased else replace(v, text=self.recased(v.text, language), cased=True)
                for v in views
            ]
            kept = _either(kept, self._decided(second, language))
        kept = _again(kept, views, language, self)
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

    def is_common(self, word: str, language: str) -> bool:
        """Whether a lower-case word is an ordinary word of the language."""
        word = word.casefold()
        if language not in self._stops:
            self._stops[language] = _stop_words(language)
        if word in self._stops[language]:
            return True
        if language == "en":
            return word in words_en() or (word.endswith("'s") and word[:-2] in words_en())
        word = re.sub(r"^(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu)'", "", word)
        return word in self._words_fr() or any(
            word.endswith(end) and word[: -len(end)] in self._words_fr()
            for end in ("s", "e", "es", "x")
        )

    def _words_fr(self) -> frozenset[str]:
        """Ordinary French words: the inflected forms and lemmas of the spaCy model's tables."""
        if self._french is None:
            self._french = _french_words(model_dir("spacy-fr"))
        return self._french

    def _decided(self, views: Sequence[View], language: str) -> list[Found]:
        return _decide(self._candidates(views, language), views, language, self)

    def recased(self, text: str, language: str) -> str:
        """Lower-case text with capitals where a name may stand (:mod:`aegis.casing`)."""
        return recase(
            text,
            language,
            lambda word: self.is_word(word, language),
            lambda word: self.is_common(word, language),
        )

    def is_word(self, word: str, language: str) -> bool:
        """Whether a word is in any dictionary at hand, rare and clinical words included."""
        if self.is_common(word, language) or is_drug(word):
            return True
        if "-" in word:
            return all(self.is_word(part, language) for part in word.split("-") if part)
        if language != "en":
            return False
        if self._english is None:
            self._english = _english_words(model_dir("spacy-en"))
        stems = (
            word,
            word.removesuffix("s"),
            word.removesuffix("es"),
            word.removesuffix("ed"),
            word.removesuffix("ing"),
        )
        return any(stem in self._english for stem in stems)

    def _candidates(self, views: Sequence[View], language: str) -> list[Found]:
        def common(word: str) -> bool:
            return self.is_common(word, language)

        found = [
            *numbers_found(views, language),
            *dates_found(views, language),
            *ages_found(views, language),
            *addresses_found(views, language),
            *places_found(views, language, common),
            *names_found(views, language, common),
        ]
        for chunk in _chunks(views, self.tagger):
            text = "\n".join(view.text for view in chunk)
            found += _spread(_tagged_spans(self.tagger.words(text), text), chunk)
            found += _spread(self._analyzed(text, language), chunk)
        return found

    @property
    def tagger(self) -> Tagger:
        if self._tagger is None:
            self._tagger = Tagger(model_dir("rampart"))
        return self._tagger

    def _analyzed(self, text: str, language: str) -> list[tuple[int, int, str, str, float]]:
        if language not in self._analyzers:
            self._analyzers[language] = _build_analyzer(language)
        results = self._analyzers[language].analyze(text, language, entities=list(_PRESIDIO))
        return [
            (r.start, r.end, _PRESIDIO[r.entity_type], "spacy", 0.5)
            if r.entity_type in ("PERSON", "LOCATION", "ORGANIZATION")
            else (r.start, r.end, _PRESIDIO[r.entity_type], "presidio", r.score)
            for r in results
        ]


def _english_words(folder: Path) -> frozenset[str]:
    """Lemmas of the English lemmatiser's tables (WordNet), without names of people and towns."""
    from spacy.lookups import Lookups

    index = Lookups().from_disk(folder / "lemmatizer" / "lookups").get_table("lemma_index")
    words = {word for part in ("noun", "verb", "adj", "adv") for word in index[part]}
    return frozenset(words - first_names("en") - last_names("en") - cities())


def _french_words(folder: Path) -> frozenset[str]:
    """Lower-case forms and lemmas of the French lemmatiser's tables, without personal names."""
    from spacy.lookups import Lookups
    from spacy.strings import StringStore

    lookups = Lookups().from_disk(folder / "lemmatizer" / "lookups")
    strings = StringStore().from_disk(folder / "vocab" / "strings.json")
    index, exceptions = lookups.get_table("lemma_index"), lookups.get_table("lemma_exc")
    table = lookups.get_table("lemma_lookup")
    words = {word for part in ("noun", "verb", "adj", "adv") for word in index[part]}
    words |= {form for part in exceptions for form in exceptions[part]}
    words |= {strings[key] for key in table if key in strings}
    words |= {lemma for lemmas in table.values() for lemma in lemmas}
    names = first_names("fr") | last_names("fr")
    described = set(index["adj"]) | set(index["adv"]) | set(index["verb"])
    return frozenset(w for w in words if w.islower() and (w not in names or w in described))


_FILLERS = (
    "heu euh hein ben bah beh bon hum mhm mhmm mmm hmm uh um yep yup"
    " nope nah yeah okay ok ouais quoi moi toi"
    " voilà oui non en que qui vous nous mon ton son hello hi bonjour"
    " bonsoir merci allô allo monsieur madame docteur mari côté sol"
    " bord haut bas fond"
    " samu mm-hmm mm alright gonna wanna kinda afib htn copd chf cad"
    " ckd ra ms dm hx tx dx rx pt pts mg er ed icu"
    " nyha gerd uti ecg ekg mri hiv std ibs tia dvt pe mi bp hr ent gp a&e covid ibuprofen hba1c"
)


def _stop_words(language: str) -> frozenset[str]:
    """Function words and fillers."""
    words = importlib.import_module(f"spacy.lang.{language}.stop_words").STOP_WORDS
    return frozenset(words) | frozenset(_FILLERS.split())


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


def _views(turns: Sequence[tuple[str, str]], language: str, engine: Rules) -> list[View]:
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


def _chunks(views: Sequence[View], tagger: Tagger) -> Iterable[list[View]]:
    """Neighbouring turns together, up to about 180 tokens, so that answers see their questions."""
    chunk: list[View] = []
    size = 0
    for view in views:
        n = len(view.text) // 4 + 2
        if chunk and size + n > _MAX_TOKENS:
            yield chunk
            chunk, size = [], 0
        chunk.append(view)
        size += n
    if chunk:
        yield chunk


def _spread(
    spans: Iterable[tuple[int, int, str, str, float]], chunk: Sequence[View]
) -> list[Found]:
    """Map spans of a chunk's joined text to its turns; a span over two turns is cut."""
    out, first = [], 0
    spans = list(spans)
    for view in chunk:
        last = first + len(view.text)
        for start, end, category, source, score in spans:
            a, b = max(start, first), min(end, last)
            if a < b:
                out.append(Found(view.index, a - first, b - first, category, source, score))
        first = last + 1
    return out


def _tagged_spans(words: Sequence[_Tagged], text: str) -> list[tuple[int, int, str, str, float]]:
    """Join tagged words to spans; a given name after a family name begins a new person."""
    spans: list[tuple[int, int, str, str, float]] = []
    previous: _Tagged | None = None
    for word in words:
        category = _TAG_CATEGORIES.get(word.label)
        if category is None or not re.search(r"\w", text[word.start : word.end]):
            continue
        joins = (
            previous is not None
            and spans
            and spans[-1][2] == category
            and re.fullmatch(
                r"\s*[-']?\s*|\.\s|\s*,\s*" if category in ("STREET",) else r"[ ]*-?[ ]*|\.[ ]",
                text[previous.end : word.start],
            )
            and not (word.label == "GIVEN_NAME" and previous.label == "SURNAME")
        )
        if joins:
            start, _, _, _, score = spans[-1]
            spans[-1] = (start, word.end, category, "tagger", min(score, word.score))
        else:
            spans.append((word.start, word.end, category, "tagger", word.score))
        previous = word
    return spans


# --- weighing --------------------------------------------------------------------------------

_SURE = ("title", "answer", "spelled")
_ALONE = {"NAME": 0.8, "LOCATION": 0.8}


def _decide(
    found: Sequence[Found], views: Sequence[View], language: str, engine: Rules
) -> list[Found]:
    """Keep candidates with enough evidence, free of protected terms, without overlaps."""
    kept: list[Found] = []
    by_turn: dict[int, list[Found]] = {}
    for item in found:
        by_turn.setdefault(item.index, []).append(item)
    for index, items in sorted(by_turn.items()):
        view = views[index]
        guard = protected_spans(view.text, language)
        items = [trimmed for item in items if (trimmed := _trim(item, view, language, engine))]
        items = [item for item in items if not _guarded(item, guard, view)]
        names = _people(view, [i for i in items if i.category == "NAME"], language, engine)
        others = [i for i in items if i.category not in ("NAME", "STREET", "ZIP", "ORGANIZATION")]
        towns = _towns(view, others, items, language, engine)
        rest = [i for i in others if i.category != "LOCATION" and _holds(i, view)]
        kept += _resolve([*names, *towns, *rest])
    return kept


def _trim(item: Found, view: View, language: str, engine: Rules) -> Found | None:
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


def _people(view: View, items: Sequence[Found], language: str, engine: Rules) -> list[Found]:
    """Weigh the evidence for each group of overlapping name candidates."""
    out = []
    for group in _groups(items):
        start, end = min(i.start for i in group), max(i.end for i in group)
        best = max(group, key=lambda i: (i.score, i.end - i.start))
        evidence = {i.source: i.score for i in sorted(group, key=lambda i: i.score)}
        span = _name_span(view, group, best, language, engine)
        text = view.text[span[0] : span[1]]
        words = [w for w in re.findall(r"[^\W\d_][\w'-]*", text) if len(w) > 1]
        words = [text] if best.source == "spelled" or "title" in evidence else words
        if text.casefold() in institutions() and "title" not in evidence:
            continue
        if any(c.isdigit() for c in text) or (set(evidence) == {"spacy"} and text.isupper()):
            continue
        if (
            not words
            or all(w.casefold() in places() for w in words)
            or text.casefold() in places()
        ):
            continue
        common = all(engine.is_common(w.casefold(), language) for w in words)
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
        del start, end
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


def _either(first: Sequence[Found], second: Sequence[Found]) -> list[Found]:
    """The mentions of two readings of the same turns, without overlaps."""
    by_turn: dict[int, list[Found]] = {}
    for item in [*first, *second]:
        by_turn.setdefault(item.index, []).append(item)
    return [item for _, items in sorted(by_turn.items()) for item in _resolve(items)]


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
    view: View, group: Sequence[Found], best: Found, language: str, engine: Rules
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
        if all(_name_like(w, view, language, engine) for w in words):
            start, end = min(start, item.start), max(end, item.end)
    return start, end


def _name_like(word: str, view: View, language: str, engine: Rules) -> bool:
    low = word.casefold().strip(".")
    if low in ("le", "la", "de", "du", "van", "von", "der", "di", "da", "el", "al", "st", "mac"):
        return True
    if len(low) == 1:
        return word[0].isupper() and low != "i"
    if view.cased and not word[0].isupper():
        return low in ("de", "du", "la", "le", "van", "von", "der", "di", "da")
    return not engine.is_common(low, language) or (view.cased and _known(low, language))


_BEFORE_NAME = (
    r"\b(?:mr|mrs|ms|miss|dr|doctor|prof|professor|nurse|monsieur|madame|mme|docteur)\.?\s+$"
)
_BAD_TOWN = set(
    words("covid ecg mri ct gp nhs icu er uti ok hiv copd god english french christmas internet")
)


def _towns(
    view: View, others: Sequence[Found], items: Sequence[Found], language: str, engine: Rules
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
            or all(engine.is_common(w, language) for w in words)
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
        return item.score > 0.85 and digits >= 7  # weighed below labels in _resolve
    if item.source == "presidio":
        return item.category != "IP" or re.search(r"(?:^|\.)0\d", text) is None
    return item.score >= 0.5


def _resolve(items: Sequence[Found]) -> list[Found]:
    """Drop overlaps: sure before unsure, long before short, high before low score."""

    def rank(item: Found) -> tuple[int, int, float]:
        tier = 2 if item.score >= 0.8 and item.source != "tagger" else 1
        return (-tier, -(item.end - item.start), -item.score)

    kept: list[Found] = []
    for item in sorted(items, key=rank):
        if all(item.end <= k.start or k.end <= item.start for k in kept):
            kept.append(item)
    return kept


# --- everything known, once more ---------------------------------------------------------------


def _again(
    kept: Sequence[Found], views: Sequence[View], language: str, engine: Rules
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
                common = engine.is_common(term, language)
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


@register("detector", "rules")
def _rules() -> Rules:
    return Rules()
