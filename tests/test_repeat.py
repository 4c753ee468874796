"""The noise of measuring the same original twice, on transcripts whose difference is known."""

from __future__ import annotations

from types import SimpleNamespace

import pandas as pd
import pytest

from aegis.contrasts import noise_floors
from aegis.tables import SCHEMAS, Run, check_table
from aegis.work import repeat

FATE = {"status": "ok", "reason": None}


def frame(name: str, rows: list[dict]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(SCHEMAS[name].columns))


def tables() -> dict[str, pd.DataFrame]:
    recordings = [
        {"recording_id": name, "dataset": "d", "n_samples": 16000, "sha256": name * 4} | FATE
        for name in ("d/a", "d/b")
    ]
    turns = [
        {"turn_id": f"t{k}", "recording_id": "d/a", "turn_index": k, "profile_id": f"d/a/S{k}",
         "speaker": f"S{k}", "channel": 0, "start_s": 2.0 * k, "end_s": 2.0 * k + 2,
         "text": text, "language": "en", "n_words": 2, "flagged": False} | FATE
        for k, text in enumerate(["hello Doris", "no fever"])
    ]  # fmt: skip
    edits = [
        {"intention_id": "i0", "recording_id": "d/a", "turn_id": "t0", "mention_id": "m",
         "entity_id": "e", "category": "NAME", "char_start": 6, "char_end": 11,
         "original": "Doris", "replacement": "Nina", "start_s": 1.0, "end_s": 1.5} | FATE
    ]  # fmt: skip
    first = [
        {"item_id": "d/a", "kind": "conversation", "recording_id": "d/a", "condition": "original",
         "text": "hello Doris no fever", "language": "en", "n_words": 4, "flagged": False} | FATE
    ]  # fmt: skip
    places = [
        {"turn_id": f"t{k}", "condition": "original", "recording_id": "d/a",
         "profile_id": f"d/a/S{k}", "text": text, "out_start_s": 0.0, "out_end_s": 1.0}
        for k, text in enumerate(["hello Doris", "no fever"])
    ]  # fmt: skip
    labels = [("f0", "preserved"), ("f1", "preserved"), ("f2", "contradicted")]
    verdicts = [verdict(fact, label, "original") for fact, label in labels]
    ends = [ending(name, "met", "original") for name in ("d/a", "d/b", "d/c")]
    rows = {"recordings": recordings, "turns": turns, "edits": edits, "transcripts": first,
            "turn_transcripts": places, "fact_verdicts": verdicts,
            "endpoint_verdicts": ends}  # fmt: skip
    made = {name: frame(name, own) for name, own in rows.items()}
    empty = ("screening", "reconstructions", "rendered", "timeline")
    return made | {name: frame(name, []) for name in empty}


def verdict(fact: str, label: str | None, condition: str) -> dict:
    return {"fact_id": fact, "condition": condition, "judge": "rules", "order": "source_first",
            "recording_id": "d/a", "importance": "major", "polarity": "affirmed", "label": label,
            "attempts": 1} | FATE  # fmt: skip


def ending(recording: str, label: str | None, condition: str) -> dict:
    return {"item_id": recording, "kind": "conversation chronology", "condition": condition,
            "judge": "rules", "order": "source_first", "recording_id": recording, "label": label,
            "n_items": 1} | FATE  # fmt: skip


def second(words: list[list]) -> tuple[pd.DataFrame, pd.DataFrame]:
    made = tables()
    items = [{"members": [["conversation", "d/a", "d/a", "original"]]}]
    value = {"words": words, "text": " ".join(w[0] for w in words), "language": "en",
             "flagged": False}  # fmt: skip
    result = SimpleNamespace(value=value, status="ok", reason=None)
    return repeat.repeat_transcripts(made, items, [result])


SAME = [["hello", 0.0, 0.5], ["Doris", 1.0, 1.5], ["no", 2.1, 2.3], ["fever", 2.4, 3.0]]
OTHER = [["hello", 0.0, 0.5], ["Boris", 1.0, 1.5], ["a", 1.6, 1.7], ["fever", 2.4, 3.0]]


def noise(words: list[list], labels: list[str | None]) -> pd.DataFrame:
    made = tables()
    whole, turns = second(words)
    facts = [verdict(f"f{k}", label, repeat.ARM) for k, label in enumerate(labels)]
    ends = [("d/a", "met"), ("d/b", "not met"), ("d/c", None)]
    verdicts = {
        "fact_verdicts": frame("fact_verdicts", facts),
        "endpoint_verdicts": frame("endpoint_verdicts", [ending(*e, repeat.ARM) for e in ends]),
    }
    matches = repeat.repeat_matches(made, turns)
    references = {"source": {"d/a": "hello Doris no fever"}, "gold": {}}
    out = repeat.noise_table(made, whole, matches, verdicts, references, True)
    return check_table("noise_floor", out).set_index("endpoint")


def test_a_repeat_that_is_the_same_has_no_floor() -> None:
    table = noise(SAME, ["preserved", "preserved", "contradicted"])
    table = table.drop("conversation chronology met")
    facts = ["fact contradicted", "fact preserved"]
    assert list(table.index) == [*facts, "retained", "wer against source"]
    assert (table["n_differing"] == 0).all()
    assert (table["estimate"] == 0).all()
    assert table["n_items"].tolist() == [3, 3, 1, 4]


def test_a_conversation_endpoint_counts_conversations_labelled_twice() -> None:
    row = noise(SAME, ["preserved", "missing", "missing"]).loc["conversation chronology met"]
    assert (row["n_items"], row["n_differing"], row["estimate"]) == (2, 1, -0.5)


def test_changes_are_counted_both_ways() -> None:
    table = noise(OTHER, ["missing", "preserved", "preserved"])
    preserved = table.loc["fact preserved"]
    assert (preserved["n_differing"], preserved["estimate"]) == (2, 0.0)  # one lost, one won
    assert table.loc["fact contradicted", "estimate"] == pytest.approx(-1 / 3)
    words = table.loc["wer against source"]  # Boris for Doris, "a" for "no"
    assert (words["n_differing"], words["estimate"]) == (2, 0.5)
    assert table.loc["retained", "n_items"] == 1


def test_an_unobserved_label_leaves_its_fact_out() -> None:
    table = noise(SAME, ["preserved", None, "contradicted"])
    assert table.loc["fact preserved", "n_items"] == 2


def test_only_originals_are_heard_again_and_as_items_of_their_own(tmp_path) -> None:
    items = repeat.repeat_items(tables(), Run(tmp_path))
    assert [item["members"][0][2] for item in items] == ["d/a", "d/b"]
    assert all(item["time"] == 2 for item in items)
    assert len(repeat.repeat_items(tables(), Run(tmp_path), 1)) == 1


def test_each_effect_has_the_floor_of_its_endpoint() -> None:
    floors = {"retained": 0.1, "fact preserved": 0.2, "wer against gold": 0.3,
              "conversation actions met": 0.4}  # fmt: skip
    table = pd.DataFrame(floors.items(), columns=["endpoint", "estimate"])
    asked = {
        "realised": 0.1, "retained (judge)": 0.1, "fact preserved": 0.2,
        "wer against gold_by_value": 0.3, "facts preserved, renderer_a": 0.2,
        "realised, renderer_b": 0.1, "word errors against gold, converted": 0.3,
        "conversation actions met, converted": 0.4,
    }  # fmt: skip
    assert noise_floors(asked, table) == list(asked.values())
    assert pd.isna(noise_floors(["eer x"], table)[0])
    assert pd.isna(noise_floors(["retained"], None)[0])
