"""Models that tag identifiers: the Rampart tagger, and spaCy under presidio.

Unit: neighbouring turns joined by line breaks, so that an answer sees its question; spans are
mapped back to the turns. Rampart: uncased BERT of six layers, ONNX, CC BY 4.0. Nothing here
uses a network.

Classes: :class:`Tagger`, :class:`Models`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from aegis.recognisers import Found, View
from aegis.spoken_tokens import words
from aegis.weights import model_dir

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


class Models:
    """Both models; each loads when it is first needed."""

    def __init__(self) -> None:
        self._tagger: Tagger | None = None
        self._analyzers: dict[str, Any] = {}

    def spans(self, views: Sequence[View], language: str) -> list[Found]:
        """Candidates of both models in all turns; they may overlap."""
        if self._tagger is None:
            self._tagger = Tagger(model_dir("rampart"))
        found = []
        for chunk in _chunks(views):
            text = "\n".join(view.text for view in chunk)
            found += _spread(_tagged_spans(self._tagger.words(text), text), chunk)
            found += _spread(self._analyzed(text, language), chunk)
        return found

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


def _chunks(views: Sequence[View]) -> Iterable[list[View]]:
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
