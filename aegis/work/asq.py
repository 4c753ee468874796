"""What a worker does to a portion of ASQ-PHI's queries: detect, as in a conversation of one turn.

Items hold the queries' text; results hold spans and types only. A chat model is asked for the
portion's queries together; what gets no valid reply is None, which counts as all missed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aegis import engines
from aegis.asq_phi import Found, Span, benchmark_type
from aegis.engines import Mention, TurnText
from aegis.errors import ReplyError
from aegis.manifests import read_contract
from aegis.readers import PhiQuery
from aegis.tables import Run
from aegis.work.plan import load_detector

PORTION = 50


def query_items(queries: Sequence[PhiQuery]) -> list[dict[str, Any]]:
    """Portions of queries, in order."""
    return [
        {
            "id": f"queries-{first // PORTION:03d}",
            "texts": [query.text for query in queries[first : first + PORTION]],
        }
        for first in range(0, len(queries), PORTION)
    ]


def detect_queries(item: dict[str, Any], settings: dict[str, Any], run: Run) -> dict[str, Any]:
    """Spans of each query of a portion, in the contract's categories.

    ``settings``: ``detector``; ``model`` and ``max_cost`` for the detector ``chat``.
    """
    detector = load_detector(settings, run)
    conversations = [[TurnText("t", "user", text)] for text in item["texts"]]
    with engines.engine_time():
        if hasattr(detector, "ask"):
            found = detector.ask(conversations, ["en"] * len(conversations))
        else:
            found = [_one(detector, turns) for turns in conversations]
    spans = [
        None if mentions is None else [[m.char_start, m.char_end, m.category] for m in mentions]
        for mentions in found
    ]
    return {"spans": spans}


def _one(detector: engines.Detector, turns: list[TurnText]) -> list[Mention] | None:
    try:
        return detector.detect(turns, "en")
    except ReplyError:
        return None


def read_spans(items: Sequence[Mapping[str, Any]], results: Sequence[Any]) -> list[Found]:
    """Predicted spans of every query, in the benchmark's types; a failed portion is all None."""
    types = read_contract().benchmark_types
    found: list[Found] = []
    for item, result in zip(items, results, strict=True):
        spans = (result.value or {}).get("spans") or [None] * len(item["texts"])
        found += [
            None if own is None else [Span(a, b, benchmark_type(c, types)) for a, b, c in own]
            for own in spans
        ]
    return found
