"""Rows of the scorecard by hand and on a made-up run."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from fabricate import fabricate_run

from aegis import scorecard
from aegis.scripts import read_scripts
from aegis.tables import Run, check_table


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return fabricate_run(tmp_path_factory.mktemp("runs") / "toy")


def test_an_aim_is_met_at_its_limit_in_spite_of_rounding() -> None:
    assert scorecard.card_row("covered_heard_en", 49, 50)["met"]
    assert scorecard.card_row("asr_wer_en_clean", 7, 100)["met"]
    assert not scorecard.card_row("asr_wer_en_clean", 71, 1000)["met"]
    assert not scorecard.card_row("covered_heard_en", 979, 1000)["met"]


def test_an_empty_denominator_is_neither_met_nor_missed() -> None:
    row = scorecard.card_row("typed_right", 0, 0)
    assert math.isnan(row["value"])
    assert row["met"] is None
    assert scorecard.card_row("a_metric_without_aim", 1, 2)["met"] is None


def test_aims_without_a_row_stay_with_their_reason() -> None:
    rows = scorecard.complete([scorecard.card_row("typed_right", 19, 20)])
    assert {row["metric"] for row in rows} == set(scorecard.AIMS)
    absent = next(row for row in rows if row["metric"] == "asr_wer_fr")
    assert absent["note"] == "no truth, or its stage has not run"
    assert (absent["met"], absent["aim"]) == (None, 0.15)
    check_table("scorecard", pd.DataFrame(rows))


def test_word_errors_are_pooled_by_language_and_condition_of_the_recording() -> None:
    scores = pd.DataFrame([
        {"recording_id": name, "condition": "original", "reference": "gold", "n_reference": words,
         "substitutions": errors, "deletions": 1, "insertions": 0, "status": "ok"}
        for name, words, errors in [("a", 100, 4), ("b", 100, 0), ("c", 50, 9), ("d", 10, 0)]
    ])  # fmt: skip
    language = {"a": "en", "b": "en", "c": "fr", "d": "en"}
    rows = scorecard.word_error_rows(scores, language, clean={"a", "b", "c"})
    values = {row["metric"]: row for row in rows}
    assert values["asr_wer_en_clean"]["value"] == pytest.approx(6 / 200)
    assert values["asr_wer_fr"]["value"] == pytest.approx(10 / 50)
    assert not values["asr_wer_fr"]["met"]
    assert values["asr_wer_en_hard"]["denominator"] == 10
    other = scores.assign(condition="converted")
    assert scorecard.word_error_rows(other, language, {"a"}) == []


def test_speaker_counts_leave_readings_out() -> None:
    found = pd.array([2, 3, 1, None], "Int64")
    screening = pd.DataFrame({"recording_id": ["a", "b", "c", "d"], "n_speakers_found": found})
    rows = scorecard.speaker_count_rows(screening, {"a": 2, "b": 2, "c": 1, "d": 2})
    assert (rows[0]["numerator"], rows[0]["denominator"]) == (1, 2)
    assert scorecard.speaker_count_rows(screening, {}) == []


def test_diarization_errors_are_pooled_seconds() -> None:
    scores = pd.DataFrame({
        "recording_id": ["a", "b", "c"], "scored_s": [60.0, 40.0, 50.0],
        "missed_s": [1.0, 1.0, 5.0], "false_alarm_s": [2.0, 0.0, 0.0],
        "confusion_s": [0.0, 1.0, 5.0],
    })  # fmt: skip
    rows = {
        row["metric"]: row
        for row in scorecard.diarization_rows({"given": scores, "automatic": scores}, {"a", "b"})
    }
    assert rows["diarization_error_given"]["value"] == pytest.approx(5 / 100)
    assert rows["diarization_error_given"]["met"]
    assert rows["diarization_error_given_hard"]["value"] == pytest.approx(0.2)
    assert rows["diarization_error_automatic"]["met"] is None


def test_detection_by_hand() -> None:
    """Three English mentions, two heard, one of these covered; one French, garbled, masked."""
    scores = pd.DataFrame({
        "language": ["en", "en", "en", "fr"], "heard": [True, True, False, False],
        "covered": [True, False, False, False], "covered_any": [True, False, True, True],
        "typed": [True, False, False, False],
    })  # fmt: skip
    rows = {row["metric"]: row for row in scorecard.detection_rows(scores, 1, 200)}
    assert rows["covered_heard_en"]["value"] == pytest.approx(1 / 2)
    assert "covered_heard_fr" not in rows
    assert rows["covered_spoken_en"]["value"] == pytest.approx(2 / 3)
    assert (rows["covered_spoken_fr"]["value"], rows["covered_spoken_fr"]["met"]) == (1.0, True)
    assert (rows["typed_right"]["numerator"], rows["typed_right"]["denominator"]) == (1, 1)
    assert rows["clinical_terms_touched"]["met"]
    assert scorecard.detection_rows(scores.iloc[:0], 0, 0) == []


def test_the_better_renderer_carries_all_three_lexical_aims(run: Run) -> None:
    matches = run.read("lexical_matches")
    rows = {row["metric"]: row for row in scorecard.lexical_rows(matches)}
    share = {name: rows[f"realised_{name}"]["value"] for name in scorecard.RENDERERS}
    best = max(share, key=lambda name: share[name])
    for endpoint in ("realised", "retained", "uncertain"):
        chosen = rows[f"{endpoint}_better_renderer"]
        assert chosen["value"] == rows[f"{endpoint}_{best}"]["value"]
        assert chosen["note"] == best
    own = scorecard.focused(matches)
    kept = own[(own["condition"] == "renderer_a") & (own["original_status"] == "retained")]
    unplanned = [not held for held in kept["planned_text_holds_original"]]
    assert rows["retained_beyond_plan_renderer_a"]["numerator"] == sum(unplanned)
    one = matches[matches["condition"] == "renderer_a"]
    only = {row["metric"]: row for row in scorecard.lexical_rows(one)}
    assert only["realised_better_renderer"]["note"] == "renderer_a"
    assert scorecard.lexical_rows(matches.iloc[:0]) == []


def test_every_profile_counts_for_the_assignment(run: Run) -> None:
    assignments = run.read("assignments")
    full = scorecard.assignment_rows(assignments, run.read("profiles"))[0]
    assert (full["value"], full["met"]) == (1.0, True)
    part = scorecard.assignment_rows(assignments.iloc[1:], run.read("profiles"))[0]
    assert (part["numerator"], part["denominator"], part["met"]) == (11, 12, False)


def test_nearer_to_the_voice_than_to_the_source_by_hand() -> None:
    rows = [("shared", "a", "a", True, 0.2), ("shared", "b", "b", True, 0.6),
            ("shared", "a", "b", False, 0.9), ("target_voice", "a", "a", True, 0.5),
            ("target_voice", "b", "b", True, 0.5)]  # fmt: skip
    trials = pd.DataFrame(rows, columns=["protocol", "enrol", "test", "target", "score"])
    found = scorecard.nearer_rows(trials.assign(backend="ge2e"))
    assert [row["metric"] for row in found] == ["nearer_to_target_ge2e", "nearer_to_target"]
    assert (found[1]["numerator"], found[1]["denominator"], found[1]["met"]) == (1, 2, False)


def test_the_linkage_aim_is_judged_where_it_is_worst(run: Run) -> None:
    rows = scorecard.linkage_rows(run.read("linkage"))
    gaps = [row["value"] for row in rows[:-1]]
    assert rows[-1]["metric"] == "eer_above_original"
    assert rows[-1]["value"] == min(gaps)
    assert not any("redacted" in row["metric"] for row in rows)
    assert scorecard.linkage_rows(run.read("linkage").iloc[:0]) == []


def test_rows_pass_the_schema(run: Run) -> None:
    rows = scorecard.lexical_rows(run.read("lexical_matches"))
    rows += scorecard.nearer_rows(run.read("trials"))
    rows += scorecard.linkage_rows(run.read("linkage"))
    table = check_table("scorecard", pd.DataFrame(scorecard.complete(rows)))
    assert table["met"].notna().sum() == 5


def test_hard_recordings_of_the_demo() -> None:
    """One with noise, one with overlap, one with a channel a speaker, one at telephone rate."""
    scripts = {script.recording_id: script for script in read_scripts()}
    hard = scorecard.hard_recordings(scripts.values())
    kinds = [scripts[name].rendering for name in hard]
    assert any(kind.noise_snr_db is not None for kind in kinds)
    assert any(kind.layout != "mono" for kind in kinds)
    assert any(kind.sample_rate_hz < 16_000 for kind in kinds)
    assert any(turn.overlap_s > 0 for name in hard for turn in scripts[name].turns)
    assert len(hard) < len(scripts) / 2
