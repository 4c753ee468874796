"""Clustering of windows on made-up voices, and both diarizers on two readers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from test_speech import librispeech, needs_data, needs_weights

from aegis import engines
from aegis.audio import SAMPLE_RATE_HZ, LongSignal
from aegis.engines.diarization import (
    Pieces,
    assign_pieces,
    cluster_pieces,
    frames_in,
    stretches_of,
)
from aegis.speaker_scores import score_diarization


def voices(*counts: int, angle: float = 0.9, spread: float = 0.02, seed: int = 1) -> Pieces:
    """Unit vectors around directions ``angle`` radians from a common one."""
    rng, vectors = np.random.default_rng(seed), []
    for k, n in enumerate(counts):
        centre = np.zeros(32)
        centre[0], centre[k + 1] = np.cos(angle), np.sin(angle)
        vectors.append(centre + rng.normal(0, spread, (n, 32)))
    stacked = np.concatenate(vectors)
    unit = (stacked / np.linalg.norm(stacked, axis=1, keepdims=True)).astype(np.float32)
    n = sum(counts)
    return Pieces(unit, np.full(n, 1.5, dtype=np.float32), np.arange(n))


@pytest.mark.parametrize("counts", [(40,), (40, 30), (30, 30, 30), (60, 10)])
def test_the_number_of_voices_is_found(counts: tuple[int, ...]) -> None:
    assert len(cluster_pieces(voices(*counts), None)) == len(counts)


def test_near_means_are_one_voice_and_a_few_odd_windows_are_none() -> None:
    # Two directions 0.25 rad from a common one are 0.06 apart in cosine distance.
    assert len(cluster_pieces(voices(40, 40, angle=0.25), None)) == 1
    assert len(cluster_pieces(voices(60, 2), None)) == 1


def test_a_given_number_is_kept_and_every_voice_gets_its_own_windows() -> None:
    pieces = voices(40, 30, 20)
    means = cluster_pieces(pieces, 3)
    labels = assign_pieces(pieces, means)
    assert len(means) == 3
    assert [len(set(part)) for part in (labels[:40], labels[40:70], labels[70:])] == [1, 1, 1]
    assert len({labels[0], labels[40], labels[70]}) == 3


def test_local_speakers_of_one_window_get_different_names() -> None:
    pieces = voices(2, 2)
    means = cluster_pieces(pieces, 2)
    together = Pieces(pieces.vectors[[0, 1]], pieces.seconds[:2], np.array([5, 5]))
    assert sorted(assign_pieces(together, means).tolist()) == [0, 1]


def test_a_single_window_is_one_speaker() -> None:
    assert len(cluster_pieces(voices(1), None)) == 1
    assert len(cluster_pieces(voices(1), 2)) == 1


def test_frames_become_stretches_with_short_pauses_closed() -> None:
    active = np.zeros((100, 2), dtype=bool)
    active[10:30, 0] = active[35:50, 0] = True  # a pause of 5 frames = 0.1 s
    active[45:60, 1] = True
    active[90:92, 1] = True  # too short
    found = stretches_of(active, 0.0, 0.02, 2.0)
    assert [(t.speaker, round(t.start_s, 3), round(t.end_s, 3)) for t in found] == [
        ("0", 0.2, 1.0),
        ("1", 0.9, 1.2),
    ]
    assert frames_in([(0.2, 0.6)], 0.0, 0.02, 100).nonzero()[0].tolist() == list(range(10, 30))


@pytest.mark.engine
@needs_weights
@needs_data
@pytest.mark.parametrize("name", ["pyannote-segmentation", "window-clustering"])
def test_two_readers_are_told_apart(name: str) -> None:
    parts, rows, clock = [], [], 0.0
    for reader, n in (("1998", 2), ("3005", 2)) * 2:
        samples, _ = librispeech(reader, n)
        rows.append(("a/b", reader, clock, clock + samples.size / SAMPLE_RATE_HZ - 0.5))
        clock += samples.size / SAMPLE_RATE_HZ
        parts.append(samples)
    gold = pd.DataFrame(rows, columns=["recording_id", "speaker", "start_s", "end_s"])
    diarizer, both = engines.load("diarizer", name), np.concatenate(parts)
    for given_number in (2, None):
        turns = diarizer.diarize(both, given_number)
        assert len({turn.speaker for turn in turns}) == 2
        found = pd.DataFrame(
            [("a/b", turn.speaker, turn.start_s, turn.end_s) for turn in turns],
            columns=gold.columns,
        )
        scores = score_diarization(found, gold).iloc[0]
        # The reference holds whole utterances, pauses included, so only confusion is judged.
        assert scores["confusion_s"] / scores["scored_s"] <= 0.02
    # Read in parts, by an engine that has not heard it, the recording has the same turns.
    in_parts = LongSignal(both.shape, lambda first, last: both[first:last].copy())
    assert type(diarizer)().diarize(in_parts, None) == turns


@pytest.mark.engine
@needs_weights
@pytest.mark.parametrize("name", ["pyannote-segmentation", "window-clustering"])
def test_no_speech_is_no_turn(name: str) -> None:
    diarizer = engines.load("diarizer", name)
    assert diarizer.diarize(np.zeros(8_000, dtype=np.float32), None) == []
    assert diarizer.diarize(np.zeros(100_000, dtype=np.float32), 2) == []
