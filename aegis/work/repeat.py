"""The original transcribed and judged a second time: the noise under every effect.

Unit: one recording. The second transcription is computed anew (its item has an id of its
own, so that no saved result can stand for it) from the same file with the same settings; its
words are cut at the same turns and judged against the same frozen facts. Differences are
the repeat minus the first time.

Functions: :func:`repeat_items`, :func:`repeat_transcripts`, :func:`repeat_matches`,
:func:`noise_table`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from aegis.matching import match_intention
from aegis.tables import SCHEMAS, Run
from aegis.text import count_errors, normalise
from aegis.work.relisten import listening_items, turn_places, words_between

Item = dict[str, Any]
Tables = Mapping[str, pd.DataFrame]
ARM = "original_repeat"


def repeat_items(tables: Tables, run: Run, n_recordings: int = 0) -> list[Item]:
    """The listening items of the originals, marked as the second time (0: all of them)."""
    none = {name: tables[name].iloc[:0] for name in ("reconstructions", "rendered")}
    items = listening_items({**tables, **none}, run)
    for item in items:
        item["members"] = [m for m in item["members"] if m[3] == "original"]
        item["time"] = 2
    kept = sorted(items, key=lambda item: str(item["members"][0][2]))
    return kept[: n_recordings or None]


def repeat_transcripts(
    tables: Tables, items: Sequence[Item], results: Iterable[Any]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """``transcripts`` and ``turn_transcripts`` of the second time, their arm as condition."""
    whole, words = [], {}
    for item, result in zip(items, results, strict=True):
        for _, item_id, recording_id, _ in item["members"]:
            value = result.value or {}
            words[recording_id] = value.get("words", [])
            whole.append({
                "item_id": item_id, "kind": "conversation", "recording_id": recording_id,
                "condition": ARM, "text": value.get("text"), "language": value.get("language"),
                "n_words": len(words[recording_id]) if value else None,
                "flagged": value.get("flagged"), "status": result.status, "reason": result.reason,
            })  # fmt: skip
    places = turn_places(tables["turns"], tables["timeline"].iloc[:0])
    turns = [
        place | {
            "condition": ARM,
            "text": words_between(
                words[place["recording_id"]], place["out_start_s"], place["out_end_s"]
            ),
        }
        for place in places
        if words.get(place["recording_id"])
    ]  # fmt: skip
    return _frame("transcripts", whole), _frame("turn_transcripts", turns)


def _frame(name: str, rows: list[Item]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(SCHEMAS[name].columns))


def repeat_matches(tables: Tables, turns: pd.DataFrame) -> pd.DataFrame:
    """Is each planned original heard in its turn, the first and the second time?

    Columns ``intention_id first second`` (statuses of the literal search).
    """
    first = tables["turn_transcripts"]
    first = first[first["condition"] == "original"].set_index("turn_id")["text"].to_dict()
    second = turns.set_index("turn_id")["text"].to_dict()
    language = tables["turns"].set_index("turn_id")["language"].to_dict()
    rows = []
    for edit in tables["edits"].to_dict("records"):
        turn = edit["turn_id"]
        if edit["status"] != "ok" or turn not in first or turn not in second:
            continue
        found = [
            match_intention(
                edit["original"], edit["replacement"], "", text, text, language[turn]
            ).original_status
            for text in (first[turn], second[turn])
        ]
        rows.append({"intention_id": edit["intention_id"], "first": found[0], "second": found[1]})
    return pd.DataFrame(rows, columns=["intention_id", "first", "second"])


def noise_table(
    tables: Tables,
    whole: pd.DataFrame,
    matches: pd.DataFrame,
    verdicts: Tables,
    references: Mapping[str, Mapping[str, str]],
    by_construction: bool,
) -> pd.DataFrame:
    """Table ``noise_floor``: for each endpoint how many items differ, and by how much in all.

    Parameters
    ----------
    tables
        ``transcripts turns fact_verdicts endpoint_verdicts`` of the first time.
    whole, matches, verdicts
        Of the second time: :func:`repeat_transcripts`, :func:`repeat_matches`, and
        ``fact_verdicts endpoint_verdicts`` in the arm :data:`ARM`.
    references
        Name (``source``, ``gold``) -> recording -> text.
    by_construction
        Both recogniser and judge are deterministic, so that every floor must be zero.
    """
    rows = [_word_row(tables, whole, name, texts) for name, texts in references.items() if texts]
    both = _judged_twice(tables["fact_verdicts"], verdicts["fact_verdicts"], ["fact_id"])
    rows += [_label_row(f"fact {label}", both, label) for label in ("preserved", "contradicted")]
    sides = [source["endpoint_verdicts"] for source in (tables, verdicts)]
    ends = _judged_twice(sides[0], sides[1], ["item_id", "kind"])
    ends = ends[ends["kind"].str.startswith("conversation ")]
    rows += [_label_row(f"{kind} met", own, "met") for kind, own in ends.groupby("kind")]
    kept = [matches[side].eq("retained") for side in ("first", "second")]
    rows.append(_row("retained", *kept))
    out = pd.DataFrame(rows, columns=["endpoint", "n_items", "n_differing", "estimate"])
    reasons = [None if n else "no item was heard twice" for n in out["n_items"]]
    return out.assign(
        by_construction=by_construction,
        status=["not_applicable" if reason else "ok" for reason in reasons],
        reason=pd.Series(reasons, dtype=object),
    )


def _judged_twice(first: pd.DataFrame, second: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """The keys with ``label_first label_second`` of what has a label both times."""
    own = first[(first["condition"] == "original") & (first["order"] == first["order"].min())]
    labels = [side[[*keys, "label"]].dropna() for side in (own, second)]
    return labels[0].merge(labels[1], on=list(keys), suffixes=("_first", "_second"))


def _label_row(endpoint: str, both: pd.DataFrame, label: str) -> Item:
    return _row(endpoint, *(both[f"label_{side}"].eq(label) for side in ("first", "second")))


def _row(endpoint: str, first: pd.Series, second: pd.Series) -> Item:
    n = len(first)
    a, b = (side.to_numpy(dtype=bool) for side in (first, second))
    difference = float(b.mean() - a.mean()) if n else math.nan
    return {"endpoint": endpoint, "n_items": n, "n_differing": int((a != b).sum()),
            "estimate": difference}  # fmt: skip


def _word_row(
    tables: Tables, whole: pd.DataFrame, name: str, references: Mapping[str, str]
) -> Item:
    """Word errors; an item is a reference word, one that differs a word of the transcript."""
    first = tables["transcripts"]
    first = first[(first["kind"] == "conversation") & (first["condition"] == "original")]
    texts = first.set_index("recording_id")["text"].to_dict()
    language = tables["turns"].groupby("recording_id")["language"].first().to_dict()
    total = words = differing = 0
    for row in whole[whole["status"] == "ok"].to_dict("records"):
        recording = row["recording_id"]
        if recording not in references or pd.isna(texts.get(recording)):
            continue
        spoken = language.get(recording, "en")
        plain = [normalise(text, spoken) for text in
                 (references[recording], texts[recording], row["text"])]  # fmt: skip
        before, after = (count_errors(plain[0], text) for text in plain[1:])
        changes = count_errors(plain[1], plain[2])
        words += before.n_reference
        total += _sum(after) - _sum(before)
        differing += _sum(changes)
    return {"endpoint": f"wer against {name}", "n_items": words, "n_differing": differing,
            "estimate": total / words if words else math.nan}  # fmt: skip


def _sum(counts: Any) -> int:
    return int(counts.substitutions + counts.deletions + counts.insertions)
