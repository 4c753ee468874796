"""How good extraction and judging are where the truth is known: scripts and seeded changes.

Unit: a scripted fact (with its turn's time in the recording), or a scripted fact under one
seeded change. Extracted facts stand in recognised turns, scripted ones in spoken turns; a
recognised turn is compared with the spoken turns that it overlaps in time.

Functions: :func:`extraction_table`, :func:`plan_table`, :func:`perturbed_cases`,
:func:`agreement_table`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from aegis.engines.judging import Claim, JudgeCase, Judgement, Said
from aegis.perturb import KINDS, perturb_fact

Span = tuple[int, str, str]
"""Turn index, literal evidence, and a label: polarity, relation, or empty."""


def match_spans(found: Sequence[Span], gold: Sequence[Span]) -> list[tuple[int, int]]:
    """Pairs (found, truth) of spans that tell the same; one to one, greedily by overlap.

    Two spans match when they lie in one turn, agree in their label, and one's words are at
    least half the other's shorter list of words.
    """
    pairs = []
    for i, (turn, evidence, label) in enumerate(found):
        own = _words(evidence)
        for j, (gold_turn, gold_evidence, gold_label) in enumerate(gold):
            if turn != gold_turn or label != gold_label:
                continue
            other = _words(gold_evidence)
            shared = len(own & other) / max(1, min(len(own), len(other)))
            if shared >= 0.5:
                pairs.append((-shared, -len(own & other), i, j))
    used: list[tuple[int, int]] = []
    for _, _, i, j in sorted(pairs):
        if all(i != a and j != b for a, b in used):
            used.append((i, j))
    return used


def score_extraction(found: Sequence[Span], gold: Sequence[Span]) -> tuple[int, int, int]:
    """Matched pairs, number found, number in truth."""
    return len(match_spans(found, gold)), len(found), len(gold)


@dataclass
class Counts:
    """Numerators and denominators of rates by language, group and measure."""

    held: dict[tuple[str, str, str], list[int]] = field(default_factory=dict)

    def add(self, language: str, group: str, measure: str, hit: int, total: int) -> None:
        entry = self.held.setdefault((language, group, measure), [0, 0])
        entry[0] += hit
        entry[1] += total

    def table(self) -> pd.DataFrame:
        """Columns language, group, measure, numerator, denominator."""
        rows = [[*key, *value] for key, value in sorted(self.held.items())]
        columns = ["language", "group", "measure", "numerator", "denominator"]
        return pd.DataFrame(rows, columns=columns)


def extraction_table(
    facts: pd.DataFrame, turns: pd.DataFrame, gold_facts: pd.DataFrame, gold_turns: pd.DataFrame
) -> pd.DataFrame:
    """Precision and recall of facts: a row a language, and recall a row an importance.

    Recordings without scripted facts are left out: there nothing is known to be wrong.
    """
    counts = Counts()
    for name, language in _spoken(gold_turns).items():
        gold = gold_facts[gold_facts["recording_id"] == name]
        if not len(gold):
            continue
        own = facts[facts["recording_id"] == name]
        found = _placed(own, "polarity", turns, gold_turns, name)
        hit, n_found, n_gold = score_extraction(found, _spans(gold, "polarity"))
        counts.add(language, "all", "precision", hit, n_found)
        counts.add(language, "all", "recall", hit, n_gold)
        for importance, part in gold.groupby("importance"):
            hit, _, total = score_extraction(found, _spans(part, "polarity"))
            counts.add(language, str(importance), "recall", hit, total)
    return counts.table()


def plan_table(
    actions: pd.DataFrame,
    relations: pd.DataFrame,
    turns: pd.DataFrame,
    gold: Mapping[str, pd.DataFrame],
) -> pd.DataFrame:
    """Precision and recall of actions and of each kind of relation, by language.

    ``gold``: ``gold_turns gold_actions gold_chronology``. An action is right where a scripted
    one lies in its turn; the share of those with the right state stands apart. A relation
    has to be of the same kind.
    """
    counts = Counts()
    for name, language in _spoken(gold["gold_turns"]).items():
        done, known, said, ordered = (
            table[table["recording_id"] == name]
            for table in (actions, gold["gold_actions"], relations, gold["gold_chronology"])
        )
        if not len(known) + len(ordered):
            continue
        found = _placed(done, None, turns, gold["gold_turns"], name)
        pairs = match_spans(found, _spans(known, None))
        states = [(done["state"].iloc[i], known["state"].iloc[j]) for i, j in pairs]
        counts.add(language, "action", "precision", len(pairs), len(found))
        counts.add(language, "action", "recall", len(pairs), len(known))
        counts.add(language, "action", "state", sum(a == b for a, b in states), len(pairs))
        spans = _placed(said, "relation", turns, gold["gold_turns"], name)
        truth = _spans(ordered, "relation")
        for group, kinds in _RELATION_GROUPS.items():
            own, other = ([s for s in side if s[2] in kinds] for side in (spans, truth))
            hit, n_found, n_gold = score_extraction(own, other)
            counts.add(language, group, "precision", hit, n_found)
            counts.add(language, group, "recall", hit, n_gold)
    return counts.table()


_RELATION_GROUPS = {
    "order": ("before", "after", "during"),
    "revision": ("revises",),
    "final state": ("final_state",),
}


def _spoken(gold_turns: pd.DataFrame) -> dict[str, str]:
    """Recording -> language of its script."""
    languages = gold_turns.groupby("recording_id")["language"].first()
    return {str(name): str(language) for name, language in languages.items()}


def _spans(gold: pd.DataFrame, label: str | None) -> list[Span]:
    labels = gold[label] if label else [""] * len(gold)
    rows = zip(gold["turn_index"], gold["evidence"], labels, strict=True)
    return [(int(turn), str(evidence), str(own)) for turn, evidence, own in rows]


def _placed(
    found: pd.DataFrame,
    label: str | None,
    turns: pd.DataFrame,
    gold_turns: pd.DataFrame,
    recording_id: str,
) -> list[Span]:
    """What was found, at the spoken turn that overlaps its own in time and shares most words."""
    spoken = gold_turns[gold_turns["recording_id"] == recording_id].to_dict("records")
    heard = turns.set_index("turn_id")
    spans = []
    for row in found.to_dict("records"):
        turn = heard.loc[row["turn_id"]]
        words = _words(row["evidence"])
        near = [
            (len(words & _words(g["text"])), -int(g["turn_index"]))
            for g in spoken
            if g["start_s"] < turn["end_s"] and g["end_s"] > turn["start_s"]
        ]
        place = -max(near)[1] if near else -1
        spans.append((place, str(row["evidence"]), str(row[label]) if label else ""))
    return spans


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))


@dataclass(frozen=True)
class PerturbedCase:
    """One scripted fact under one seeded change, as a judge sees it, with its true label."""

    case: JudgeCase
    language: str
    importance: str
    kind: str
    expected: str


def perturbed_cases(
    gold_turns: pd.DataFrame,
    gold_facts: pd.DataFrame,
    seed: int,
    kinds: Sequence[str] = (*KINDS, "unchanged"),
) -> list[PerturbedCase]:
    """Every scripted fact under every kind of change that applies to it."""
    rng = np.random.default_rng(seed)
    cases = []
    for name, said in gold_turns.sort_values(["recording_id", "turn_index"]).groupby(
        "recording_id"
    ):
        texts = tuple(str(text) for text in said["text"])
        speakers = [str(speaker) for speaker in said["speaker"]]
        language = str(said["language"].iloc[0])
        source = tuple(Said(s, t) for s, t in zip(speakers, texts, strict=True))
        for fact in gold_facts[gold_facts["recording_id"] == name].to_dict("records"):
            turn, evidence = int(fact["turn_index"]), str(fact["evidence"])
            asks = "question_turn" in json.loads(fact["modifiers"] or "{}") or None
            claim = Claim(f"{name}#{fact['fact_index']}", str(fact["text"]), evidence, turn, asks)
            for kind in kinds:
                changed_texts, expected = texts, "preserved"
                if kind != "unchanged":
                    changed = perturb_fact(texts, turn, evidence, kind, language, rng)
                    if changed is None:
                        continue
                    changed_texts, expected = changed.texts, changed.expected
                target = tuple(Said(s, t) for s, t in zip(speakers, changed_texts, strict=True))
                case = JudgeCase(f"{claim.id}:{kind}", language, source, target, (claim,))
                importance = str(fact["importance"])
                cases.append(PerturbedCase(case, language, importance, kind, expected))
    return cases


def agreement_table(
    cases: Sequence[PerturbedCase], judged: Iterable[Judgement], by: Sequence[str]
) -> pd.DataFrame:
    """Labels equal to the truth by ``language``, ``importance``, ``kind``, or over all."""
    rows: list[dict[str, Any]] = []
    for entry, found in zip(cases, judged, strict=True):
        label = found.verdicts[0].label
        rows.append(
            {
                "language": entry.language, "importance": entry.importance, "kind": entry.kind,
                "expected": entry.expected, "label": label, "right": label == entry.expected,
                "unknown": label is None,
            }
        )  # fmt: skip
    frame = pd.DataFrame(rows)
    grouped = frame.groupby(list(by)) if by else frame.groupby(lambda _: "all")
    return grouped.agg(
        numerator=("right", "sum"), denominator=("right", "size"), unknown=("unknown", "sum")
    ).reset_index()
