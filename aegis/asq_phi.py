"""Detection on ASQ-PHI: spans against spans, by query, with what went wrong by kind.

Unit: a query, one line of text with its identifiers as (type, value). Values have no published
offsets: the first literal occurrence that no other value of the query covers is taken, longer
values first, straight and curly apostrophes alike. Exact typed F1 is micro-averaged over
(query, type, span), as sets. Two ontologies are scored: *full*, all types of the benchmark and
of the contract; *shared*, the types left when those that mean something else under the contract
are taken out on both sides before scoring. The benchmark's values hold titles, states and
joining words, which the contract leaves outside; what is left of a value when these are set
aside decides whether it is *covered under the contract*. Even queries are the tuning half, odd
ones are untouched by it. The set is templated, so scores prove little beyond it.

Functions: :func:`locate`, :func:`score_query`, :func:`query_table`, :func:`type_table`,
:func:`residue_table`, :func:`score_table`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from aegis import stats
from aegis.lexicon import places, straight
from aegis.readers import PhiQuery

FULL, SHARED = "full", "shared"
SPLITS = ("all", "tuning", "untouched")
KINDS = (
    "missed", "wrong bounds", "wrong type", "partly covered", "only title, state or joint left",
    "spurious", "false alarm",
)  # fmt: skip
OUTSIDE = re.compile(
    r"(?:\b(?:dr|mr|mrs|ms|miss|prof|professor|doctor|nurse)\b\.?|\b(?:in|at|of|the|and|on)\b|[\s,.;:()])+",
    re.IGNORECASE,
)
"""Titles, joining words and marks: outside every span of the contract."""
_STATES = """
al ak az ar ca co ct de fl ga hi id il in ia ks ky la me md ma mi mn ms mo mt ne nv nh nj nm ny nc
nd oh ok or pa ri sc sd tn tx ut vt va wa wv wi wy dc
"""


@dataclass(frozen=True)
class Span:
    """Characters ``[start, end)`` of a query and a type of the benchmark."""

    start: int
    end: int
    type: str


def locate(query: PhiQuery) -> tuple[list[Span], int]:
    """The gold spans of a query, in order, and how many values are not literally in it."""
    text = straight(query.text)
    taken: list[Span] = []
    missing = 0
    for kind, value in sorted(query.phi, key=lambda pair: -len(pair[1])):
        start = _free(text, straight(value), taken)
        if start is None:
            missing += 1
        else:
            taken.append(Span(start, start + len(value), kind))
    return sorted(taken, key=lambda span: (span.start, span.end, span.type)), missing


def _free(text: str, value: str, taken: Sequence[Span]) -> int | None:
    """The first occurrence that is free and no part of a longer word, else the first free one."""
    found, at = [], text.find(value)
    while at >= 0:
        end = at + len(value)
        if all(end <= span.start or at >= span.end for span in taken):
            before, after = text[at - 1 : at], text[end : end + 1]
            inside = (before.isalnum() and value[0].isalnum()) or (
                after.isalnum() and value[-1].isalnum()
            )
            found.append((inside, at))
        at = text.find(value, at + 1)
    return min(found)[1] if found else None


def benchmark_type(category: str, types: Mapping[str, str]) -> str:
    """The benchmark's name of a category of the contract; its own name where there is none."""
    return {ours: theirs for theirs, ours in types.items()}.get(category, category)


@dataclass(frozen=True)
class Scored:
    """What a query's spans come to: counts by type and the residue."""

    counts: dict[str, Counter[str]]
    """type -> tp, fp, fn, covered (gold spans covered wholly by predictions of any type)"""
    gold_chars: int
    covered_chars: int
    n_covered_contract: int
    """Gold spans of which nothing is left that the contract counts."""
    residue: tuple[tuple[str, str, str], ...]
    """kind, gold type or "none", predicted type or "none" """


def left_over(span: Span, covered: set[int], text: str) -> str:
    """What of a gold value is neither covered nor outside the contract; "" when nothing is."""
    bare = "".join(text[at] if at not in covered else "\0" for at in range(span.start, span.end))
    pieces = [OUTSIDE.sub(" ", piece).strip() for piece in bare.split("\0")]
    return " ".join(p for p in pieces if p and p.casefold() not in (*_STATES.split(), *places()))


def score_query(gold: Sequence[Span], predicted: Sequence[Span], text: str) -> Scored:
    """Exact typed matches, characters covered, and each error's kind."""
    wanted, found = set(gold), set(predicted)
    covered = {at for span in found for at in range(span.start, span.end)}
    counts: dict[str, Counter[str]] = {}
    for span in wanted | found:
        own = counts.setdefault(span.type, Counter())
        inside = span in wanted
        name = "tp" if inside and span in found else "fn" if inside else "fp"
        own[name] += 1
        own["covered"] += inside and covered >= set(range(span.start, span.end))
    chars = {at for span in wanted for at in range(span.start, span.end)}
    n_contract = sum(not left_over(span, covered, text) for span in wanted)
    residue = tuple(_residue(wanted, found, text))
    return Scored(counts, len(chars), len(chars & covered), n_contract, residue)


def _residue(wanted: set[Span], found: set[Span], text: str) -> Iterable[tuple[str, str, str]]:
    """One entry a gold span that is not matched exactly, and one a prediction that meets none."""
    covered = {at for span in found for at in range(span.start, span.end)}
    for span in sorted(wanted - found, key=lambda s: (s.start, s.end, s.type)):
        meeting = [p for p in found if p.start < span.end and p.end > span.start]
        exact = [p for p in meeting if (p.start, p.end) == (span.start, span.end)]
        whole = covered >= set(range(span.start, span.end))
        nearest = exact or sorted(meeting, key=lambda p: (p.start, p.end, p.type))
        kind = "missed" if not meeting else "wrong type" if exact else "partly covered"
        if meeting and not exact and whole:
            kind = "wrong bounds"
        elif kind == "partly covered" and not left_over(span, covered, text):
            kind = KINDS[4]
        yield kind, span.type, nearest[0].type if nearest else "none"
    for span in sorted(found - wanted, key=lambda s: (s.start, s.end, s.type)):
        if not any(g.start < span.end and g.end > span.start for g in wanted):
            yield ("spurious" if wanted else "false alarm"), "none", span.type


def _kept(spans: Sequence[Span], left_out: Iterable[str]) -> list[Span]:
    return [span for span in spans if span.type not in set(left_out)]


Found = Sequence[Span] | None
"""Predicted spans of a query; None where the detector gave no valid answer."""


def query_table(
    queries: Sequence[PhiQuery], found: Sequence[Found], left_out: Sequence[str]
) -> pd.DataFrame:
    """Table ``asq_queries``: one row a query, in the benchmark's order; no text.

    A query without a valid answer is ``failed``; in the scores all its identifiers count as
    missed, so that a refusal never looks like a clean query.
    """
    rows = []
    for index, (query, spans) in enumerate(zip(queries, found, strict=True)):
        gold, missing = locate(query)
        whole = score_query(gold, spans or [], query.text)
        shared = score_query(_kept(gold, left_out), _kept(spans or [], left_out), query.text)
        row: dict[str, Any] = {
            "query_id": f"q{index:04d}",
            "split": "tuning" if index % 2 == 0 else "untouched",
            "hard_negative": not query.phi,
            "n_gold": len(gold), "n_unlocated": missing, "n_predicted": len(spans or []),
            "gold_chars": whole.gold_chars, "covered_chars": whole.covered_chars,
            "n_covered": sum(own["covered"] for own in whole.counts.values()),
            "n_covered_contract": whole.n_covered_contract,
            "status": "ok" if spans is not None else "failed",
            "reason": None if spans is not None else "no valid reply",
        }  # fmt: skip
        for name, scored in ((FULL, whole), (SHARED, shared)):
            for kind in ("tp", "fp", "fn"):
                row[f"{kind}_{name}"] = sum(own[kind] for own in scored.counts.values())
        rows.append(row)
    return pd.DataFrame(rows)


def type_table(queries: Sequence[PhiQuery], found: Sequence[Found]) -> pd.DataFrame:
    """Table ``asq_types``: one row a half of the set and type, with precision and recall."""
    total: dict[tuple[str, str], Counter[str]] = {}
    for index, (query, spans) in enumerate(zip(queries, found, strict=True)):
        split = "tuning" if index % 2 == 0 else "untouched"
        scored = score_query(locate(query)[0], spans or [], query.text)
        for kind, own in scored.counts.items():
            total.setdefault((split, kind), Counter()).update(own)
    rows = [
        {
            "split": split, "type": kind, "n_gold": own["tp"] + own["fn"],
            "tp": own["tp"], "fp": own["fp"], "fn": own["fn"], "n_covered": own["covered"],
            "precision": _ratio(own["tp"], own["tp"] + own["fp"]),
            "recall": _ratio(own["tp"], own["tp"] + own["fn"]),
            "f1": _ratio(2 * own["tp"], 2 * own["tp"] + own["fp"] + own["fn"]),
        }
        for (split, kind), own in sorted(total.items())
    ]  # fmt: skip
    return pd.DataFrame(rows)


def _ratio(numerator: int, denominator: int) -> float | None:
    return numerator / denominator if denominator else None


def residue_table(queries: Sequence[PhiQuery], found: Sequence[Found]) -> pd.DataFrame:
    """Table ``asq_residue``: errors counted by half, kind, gold type and predicted type."""
    total: Counter[tuple[str, str, str, str]] = Counter()
    for index, (query, spans) in enumerate(zip(queries, found, strict=True)):
        split = "tuning" if index % 2 == 0 else "untouched"
        residue = score_query(locate(query)[0], spans or [], query.text).residue
        total.update((split, *entry) for entry in residue)
    columns = ["split", "kind", "gold_type", "predicted_type"]
    rows = [dict(zip(columns, key, strict=True)) | {"n": n} for key, n in sorted(total.items())]
    return pd.DataFrame(rows, columns=[*columns, "n"])


def score_table(table: pd.DataFrame, n_draws: int, seed: int) -> pd.DataFrame:
    """Table ``asq_scores``: each measure in each part of the set, queries drawn anew.

    ``f1_full``, ``f1_shared`` (exact, typed), ``fully_covered`` (identifiers of which no
    character is left), ``covered_under_contract`` (of which nothing is left but titles, states and
    joining words), ``leaked_characters`` (share of identifier characters left) and
    ``hard_negatives`` (queries without identifiers in which something is predicted).
    """
    rows = []
    for split in SPLITS:
        part = table if split == "all" else table[table["split"] == split]
        rows += [
            {
                "split": split, "measure": name, "value": found.value if n_items else None,
                "ci_low": found.ci_low, "ci_high": found.ci_high, "numerator": top,
                "denominator": bottom, "n_queries": n_items, "status": found.status,
                "reason": found.reason,
            }
            for name, found, top, bottom, n_items in _measures(part, n_draws, seed)
        ]  # fmt: skip
    return pd.DataFrame(rows)


def _measures(
    part: pd.DataFrame, n_draws: int, seed: int
) -> Iterable[tuple[str, stats.Estimate, int, int, int]]:
    for ontology in (FULL, SHARED):
        tp, fp, fn = (part[f"{kind}_{ontology}"].to_numpy() for kind in ("tp", "fp", "fn"))
        estimate = stats.f1_rate(
            tp, fp, fn, part["query_id"], np.random.default_rng(seed), n_draws
        )
        top, bottom = int(2 * tp.sum()), int(2 * tp.sum() + fp.sum() + fn.sum())
        yield f"f1_{ontology}", estimate, top, bottom, len(part)
    ratios = {
        "fully_covered": (part["n_covered"], part["n_gold"]),
        "covered_under_contract": (part["n_covered_contract"], part["n_gold"]),
        "leaked_characters": (part["gold_chars"] - part["covered_chars"], part["gold_chars"]),
    }
    negatives = part[part["hard_negative"]]
    hit = (negatives["n_predicted"] > 0).astype(int)
    ratios["hard_negatives"] = (hit, pd.Series(1, index=negatives.index))
    for name, (top, bottom) in ratios.items():
        ids = part.loc[top.index, "query_id"]
        rng = np.random.default_rng(seed)
        estimate = stats.ratio_rate(top.to_numpy(), bottom.to_numpy(), ids, rng, n_draws)
        yield name, estimate, int(top.sum()), int(bottom.sum()), len(top)
