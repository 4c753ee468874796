"""How good extraction and judging are where the truth is known: scripts and seeded changes.

Unit: a scripted fact (with its turn's time in the recording), or a scripted fact under one
seeded change. Extracted facts stand in recognised turns, scripted ones in spoken turns; a
recognised turn is compared with the spoken turns that it overlaps in time.

Functions: :func:`extraction_table`, :func:`perturbed_cases`, :func:`agreement_table`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from aegis.engines.judging import Claim, JudgeCase, Judgement, Said
from aegis.facts import Span, score_extraction
from aegis.perturb import KINDS, perturb_fact


def extraction_table(
    facts: pd.DataFrame, turns: pd.DataFrame, gold_facts: pd.DataFrame, gold_turns: pd.DataFrame
) -> pd.DataFrame:
    """Precision and recall of extraction: a row a language, and recall a row an importance.

    Columns language, group (all or importance), measure, numerator, denominator.
    """
    language = gold_turns.groupby("recording_id")["language"].first().to_dict()
    counts: dict[tuple[str, str, str], list[int]] = {}

    def add(spoken: str, group: str, measure: str, hit: int, total: int) -> None:
        entry = counts.setdefault((spoken, group, measure), [0, 0])
        entry[0] += hit
        entry[1] += total

    for name, gold in gold_facts.groupby("recording_id"):
        found = _placed(facts[facts["recording_id"] == name], turns, gold_turns, str(name))
        truth = _spans(gold)
        hit, n_found, n_gold = score_extraction(found, truth)
        spoken = str(language[name])
        add(spoken, "all", "precision", hit, n_found)
        add(spoken, "all", "recall", hit, n_gold)
        for importance, own in gold.groupby("importance"):
            part, _, total = score_extraction(found, _spans(own))
            add(spoken, str(importance), "recall", part, total)
    columns = ["language", "group", "measure", "numerator", "denominator"]
    return pd.DataFrame([[*key, *value] for key, value in sorted(counts.items())], columns=columns)


def _spans(gold: pd.DataFrame) -> list[Span]:
    columns = ["turn_index", "evidence", "polarity"]
    return [(int(t), str(e), str(p)) for t, e, p in gold[columns].itertuples(index=False)]


def _placed(
    facts: pd.DataFrame, turns: pd.DataFrame, gold_turns: pd.DataFrame, recording_id: str
) -> list[Span]:
    """Facts at the spoken turn that overlaps theirs in time and shares most words."""
    spoken = gold_turns[gold_turns["recording_id"] == recording_id].to_dict("records")
    heard = turns.set_index("turn_id")
    spans = []
    for fact in facts.to_dict("records"):
        turn = heard.loc[fact["turn_id"]]
        words = _words(fact["evidence"])
        near = [
            (len(words & _words(g["text"])), -int(g["turn_index"]))
            for g in spoken
            if g["start_s"] < turn["end_s"] and g["end_s"] > turn["start_s"]
        ]
        place = -max(near)[1] if near else -1
        spans.append((place, str(fact["evidence"]), str(fact["polarity"])))
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
