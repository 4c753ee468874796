"""The finder of covers, on covers whose place is known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from aegis.audio import read_wav, write_wav
from aegis.engines import EditRequest, Span, Voice, Word
from aegis.engines.bleeping import Bleep, bleep_intervals
from aegis.redaction import Guess, edge_levels, find_covered, leak_summary, match_stretches


def voiced(seconds: float = 2.0) -> np.ndarray:
    """Something like a vowel that moves: harmonics of a gliding pitch with a little breath."""
    rng, n = np.random.default_rng(3), round(seconds * 16000)
    pitch = 120 + 30 * np.sin(np.arange(n) / 16000 * 5)
    phase = 2 * np.pi * np.cumsum(pitch) / 16000
    tones = sum(np.sin(k * phase) / k for k in range(1, 12))
    return (0.1 * tones + 0.002 * rng.standard_normal(n)).astype(np.float32)


def request(samples: np.ndarray, start_s: float, end_s: float) -> EditRequest:
    nobody = Voice("none", np.zeros(1, np.float32), "none", "none")
    words = (Word("Doris", start_s, end_s),)
    return EditRequest(
        samples, "Doris", "Nina", (Span(0, 5, "Nina", start_s, end_s),), words, nobody, "en", 1
    )


def test_speech_alone_looks_uncovered() -> None:
    assert find_covered(voiced()) == []
    assert find_covered(np.zeros(10, np.float32)) == []


@pytest.mark.parametrize("kind", Bleep.KINDS)
def test_every_kind_of_cover_is_found_without_knowing_the_plan(kind: str, tmp_path) -> None:
    asked = request(voiced(), 0.8, 1.2)
    write_wav(tmp_path / "turn.wav", Bleep(kind).render(asked))
    covered = bleep_intervals(asked, 0.1)
    assert covered is not None
    (guess,) = match_stretches(covered, find_covered(read_wav(tmp_path / "turn.wav")))
    assert guess.found
    assert abs(guess.start_error_s) <= 0.03
    assert abs(guess.end_error_s) <= 0.03


def test_a_guess_must_share_half_of_both() -> None:
    covered = [(1000, 3000), (8000, 9000)]
    guesses = [(1400, 3160), (8900, 12000)]
    assert match_stretches(covered, guesses) == [Guess(True, 0.025, 0.01), Guess(False)]
    assert match_stretches(covered, []) == [Guess(False), Guess(False)]


def test_an_edge_in_speech_is_louder_than_one_in_a_pause() -> None:
    speech = voiced()
    assert edge_levels(speech, (12800, 16000)) == pytest.approx(0.0, abs=3)
    paused = speech.copy()
    paused[11200:12800] = paused[16000:17600] = 1e-5
    assert edge_levels(paused, (12800, 16000)) < -60
    assert edge_levels(np.zeros(100, np.float32), (0, 100)) == -np.inf


def test_leaks_are_counted_by_kind() -> None:
    rows = pd.DataFrame({
        "kind": "tone", "status": ["ok"] * 4 + ["failed"],
        "found": [True, True, False, True, None],
        "start_error_s": [0.01, -0.03, None, 0.02, None],
        "end_error_s": [0.01, 0.03, None, 0.02, None],
        "covered_s": [0.3, 0.4, 0.6, 0.9, None], "n_characters": [4, 6, 9, 12, None],
        "original_status": ["absent", "retained", "uncertain", "absent", None],
        "edge_db": [-40.0, -3.0, -20.0, 1.0, None],
    })  # fmt: skip
    (row,) = leak_summary(rows).to_dict("records")
    assert (row["covered"], row["position_found"], row["edges_in_speech"]) == (4, 3, 2)
    assert row["median_edge_error_ms"] == pytest.approx(20)
    assert row["duration_rank_correlation"] == pytest.approx(1.0)
    assert (row["original_heard"], row["original_uncertain"]) == (1, 1)
    assert leak_summary(rows.head(0)).empty
