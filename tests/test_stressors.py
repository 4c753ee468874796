"""Stressors on signals and conversations whose result can be worked out."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import signal as dsp

from aegis import stressors
from aegis.audio import SAMPLE_RATE_HZ, write_wav
from aegis.errors import AudioError
from aegis.stressors import (
    ACOUSTIC,
    ADMINISTRATIVE,
    Clock,
    Insertion,
    Said,
    align,
    check_plan,
    insert_turns,
    places,
    plan_insertions,
    stress,
)
from aegis.tables import Run
from aegis.work import stress as work


def tone(hz: float, seconds: float = 2.0, level: float = 0.2) -> np.ndarray:
    n = np.arange(round(seconds * SAMPLE_RATE_HZ))
    return (level * np.sin(2 * np.pi * hz * n / SAMPLE_RATE_HZ)).astype(np.float32)


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def power_at(samples: np.ndarray, hz: float) -> float:
    spectrum, frequency = (
        np.abs(np.fft.rfft(samples)) ** 2,
        np.fft.rfftfreq(samples.size, 1 / 16000),
    )
    return float(spectrum[np.abs(frequency - hz) < 5].sum())


# --- sound -----------------------------------------------------------------------------


def test_room_noise_is_twelve_decibels_below_the_speech() -> None:
    speech = np.concatenate([tone(440), np.zeros(3 * 16000, np.float32)])  # pauses do not count
    noisy, clock = stress(speech, "room_noise", rng())
    noise = noisy - speech
    ratio = 10 * np.log10(np.mean(tone(440) ** 2) / np.mean(noise**2))
    assert ratio == pytest.approx(12.0, abs=0.1)
    assert clock == Clock()


@pytest.mark.parametrize("name", ["none", *ACOUSTIC])
def test_each_stressor_is_seeded_finite_and_within_full_scale(name: str) -> None:
    stereo = np.stack([tone(300), tone(1200, level=0.9)])
    first, clock = stress(stereo, name, rng())
    again, _ = stress(stereo, name, rng())
    np.testing.assert_array_equal(first, again)
    assert first.shape == (2, round(stereo.shape[1] * clock.scale))
    assert np.isfinite(first).all()
    assert np.abs(first).max() <= 1.0
    assert (name == "none") == np.array_equal(first, stereo)


def test_a_telephone_loses_what_is_outside_its_band() -> None:
    def kept(hz: float) -> float:
        out, _ = stress(tone(hz), "telephone", rng())
        return power_at(out, hz) / power_at(tone(hz), hz)

    assert kept(1000) == pytest.approx(1.0, abs=0.1)
    assert kept(5000) < 1e-3
    assert kept(100) < 0.05


def test_packets_are_lost_in_the_declared_share_and_bursts() -> None:
    lost = stressors.lost_packets(200_000, rng())
    assert lost.mean() == pytest.approx(stressors.PACKET_LOSS, abs=0.01)
    changes = np.flatnonzero(np.diff(np.concatenate([[0], lost.astype(int), [0]])))
    bursts = changes[1::2] - changes[::2]
    assert bursts.mean() == pytest.approx(stressors.PACKET_BURST, abs=0.1)
    out, _ = stress(tone(440), "packet_loss", rng())
    silent = (out.reshape(-1, 320) == 0).all(axis=1)
    assert 0 < silent.mean() < 0.3
    np.testing.assert_array_equal(
        out.reshape(-1, 320)[~silent], tone(440).reshape(-1, 320)[~silent]
    )


def test_clipping_flattens_the_declared_share() -> None:
    speech = rng().laplace(0, 0.05, 32000).astype(np.float32)
    out, _ = stress(speech, "clipping", rng())
    assert (np.abs(out) == np.abs(out).max()).mean() == pytest.approx(0.05, abs=0.01)


def test_a_room_fades_by_sixty_decibels_in_its_time() -> None:
    response = stressors.room_response(rng())
    tail = response[1:] ** 2
    energy = np.cumsum(tail[::-1])[::-1]  # Schroeder's backward integration
    level = 10 * np.log10(energy / energy[0])
    at = [int(np.argmax(level < db)) / SAMPLE_RATE_HZ for db in (-5.0, -25.0)]
    assert 3 * (at[1] - at[0]) == pytest.approx(stressors.REVERB_T60_S, rel=0.1)
    assert 10 * np.log10(1.0 / tail.sum()) == pytest.approx(3.0, abs=0.01)


def test_faster_speech_keeps_its_pitch() -> None:
    out, clock = stress(tone(440), "speaking_rate", rng())
    assert out.size == round(2 * 16000 / 1.25)
    assert clock.forward(10.0) == pytest.approx(8.0)
    frequency, power = dsp.periodogram(out, 16000)
    assert frequency[np.argmax(power)] == pytest.approx(440, abs=5)


def test_silence_has_no_signal_to_noise_ratio() -> None:
    with pytest.raises(AudioError, match="silent recording"):
        stress(np.zeros(16000, np.float32), "room_noise", rng())


# --- turns -----------------------------------------------------------------------------

TURNS = [
    Said("S1", "clinician", "Good morning.", 0.0, 1.0),
    Said("S2", "patient", "Good morning.", 1.2, 2.0),
    Said("S1", "clinician", "Any chest pain?", 2.4, 3.5),
    Said("S2", "patient", "No, none.", 4.0, 5.0),
    Said("S1", "clinician", "I take you through it.", 4.9, 6.0),  # overlaps the turn before
    Said("S2", "patient", "Thank you.", 6.5, 7.0),
    Said("S1", "clinician", "Goodbye.", 7.2, 8.0),
]


def evidence(turns: list[Said], language: str) -> list[tuple[int, str]]:
    """Every turn that speaks of pain is a clinical item."""
    return [(i, turn.text) for i, turn in enumerate(turns) if "pain" in turn.text]


def test_boundaries_end_a_sentence_and_are_no_question_and_no_overlap() -> None:
    assert stressors.boundaries(TURNS) == [1, 4, 5]


@pytest.mark.parametrize("kind", list(ADMINISTRATIVE))
@pytest.mark.parametrize("language", ["en", "fr"])
def test_plans_are_seeded_and_pass_their_own_check(kind: str, language: str) -> None:
    plan = plan_insertions(TURNS, kind, language, rng())
    assert plan == plan_insertions(TURNS, kind, language, rng())
    assert [i.after for i in plan] == sorted({i.after for i in plan})
    assert len(plan) == 2
    assert {said.speaker for said in plan[0].turns} == {"S1", "S2"}
    assert check_plan(TURNS, plan, language, evidence) == []


def test_no_wording_no_side_or_no_boundary_gives_no_plan() -> None:
    assert plan_insertions(TURNS, "paperwork", "de", rng()) == []
    assert (
        plan_insertions([t for t in TURNS if t.role == "patient"], "paperwork", "en", rng()) == []
    )
    assert plan_insertions(TURNS[:2], "paperwork", "en", rng()) == []


@pytest.mark.parametrize(
    ("after", "said", "reason"),
    [
        (1, Said("S1", "clinician", "The pain is new."), "inventory of the conversation changes"),
        (1, Said("S1", "clinician", "Take 2 of them."), "holds a number"),
        (1, Said("S1", "patient", "One moment."), "role: S1 is not there as patient"),
        (1, Said("S9", "nurse", "One moment."), "role: S9 is not there as nurse"),
        (2, Said("S1", "clinician", "One moment."), "coherence: turn 2 is no complete-turn"),
        (1, Said("S1", "clinician", "one moment"), "speaks no complete turn"),
    ],
)
def test_a_plan_that_changes_something_is_rejected(after: int, said: Said, reason: str) -> None:
    assert any(reason in r for r in check_plan(TURNS, [Insertion(after, (said,))], "en", evidence))


def test_a_place_is_used_once() -> None:
    moment = (Said("S1", "clinician", "One moment."),)
    found = check_plan(TURNS, [Insertion(1, moment), Insertion(1, moment)], "en", evidence)
    assert "coherence: two insertions at one place" in found


def test_turns_are_spliced_sample_by_sample() -> None:
    original = np.arange(1, 32001, dtype=np.float32)[None] / 64000
    spoken = [[(0, np.full(1600, 0.5, np.float32)), (0, np.full(800, -0.5, np.float32))]]
    longer, clock, times = insert_turns(original, [0.5], spoken)
    added = 3 * 8000 + 1600 + 800  # half a second before, between and after
    assert longer.shape == (1, 32000 + added)
    np.testing.assert_array_equal(longer[:, :8000], original[:, :8000])
    np.testing.assert_array_equal(longer[:, 8000 + added :], original[:, 8000:])
    assert times == [[(1.0, 1.1), (1.6, 1.65)]]
    for (start, end), value in zip(times[0], (0.5, -0.5), strict=True):
        assert (longer[0, round(start * 16000) : round(end * 16000)] == value).all()
    assert clock.forward(0.4) == 0.4
    assert clock.forward(1.0) == pytest.approx(1.0 + added / 16000)
    assert places(TURNS, [Insertion(1, ())]) == [pytest.approx((2.0 + 2.4) / 2)]


def test_stressed_turns_belong_to_the_turn_that_they_share_most_with() -> None:
    clock = Clock(1.0, ((1.5, 2.0),))
    target = [
        (0.0, 0.6, "one"), (0.6, 1.1, "two"), (1.6, 3.4, "inserted"), (4.1, 5.0, "three"),
    ]  # fmt: skip
    assert align([(0.0, 1.0), (2.0, 3.0), (3.0, 4.0)], target, clock) == ["one two", "three", ""]
    assert align([], target, clock) == []


# --- a variant's inputs ----------------------------------------------------------------


def test_truth_moves_with_the_inserted_turns(tmp_path) -> None:
    inserted = [
        {"after": 0, "speaker": "S1", "role": "nurse", "text": "One moment.", "start_s": 1.5,
         "end_s": 2.0, "voice": "v:a", "language": "en"},
    ]  # fmt: skip
    value = {"clock": {"scale": 1.0, "insertions": [[1.1, 2.0]]}, "inserted": inserted}
    turns = pd.DataFrame({
        "recording_id": "d/a", "turn_index": [0, 1], "speaker": ["S1", "S2"], "role": "nurse",
        "voice": "v:a", "start_s": [0.0, 1.2], "end_s": [1.0, 2.2], "text": ["a b", "c"],
        "language": "en",
    })  # fmt: skip
    words = pd.DataFrame({
        "recording_id": "d/a", "word_index": [0, 1, 2], "turn_index": [0, 0, 1],
        "speaker": ["S1", "S1", "S2"], "text": ["a", "b", "c"], "start_s": [0.0, 0.5, 1.2],
        "end_s": [0.4, 1.0, 2.2],
    })  # fmt: skip
    run = Run(tmp_path)
    run.write("gold_turns", work.moved_truth("gold_turns", turns, {"d/a": value}))
    run.write("gold_words", work.moved_truth("gold_words", words, {"d/a": value}))
    moved = run.read("gold_turns")
    assert moved["text"].tolist() == ["a b", "One moment.", "c"]
    assert moved["start_s"].tolist() == [0.0, 1.5, pytest.approx(3.2)]
    heard = run.read("gold_words")
    assert heard["text"].tolist() == ["a", "b", "One", "moment.", "c"]
    assert heard["start_s"].isna().tolist() == [False, False, True, True, False]


def test_conversations_are_chosen_in_turn_of_their_languages() -> None:
    names = ["a", "b", "c", "solo"]
    recordings = pd.DataFrame(
        {"recording_id": names, "language": ["en", "en", "fr", "en"], "status": "ok"}
    )
    turns = pd.DataFrame(
        [(name, f"{name}/{k}") for name in names for k in range(1 if name == "solo" else 2)],
        columns=["recording_id", "profile_id"],
    )
    assert work.choose_recordings(recordings, turns, 2) == ["a", "c"]
    assert work.choose_recordings(recordings, turns, 0) == ["a", "b", "c"]


def test_a_recording_without_a_script_has_no_voice_for_new_turns(tmp_path) -> None:
    run = Run(tmp_path)
    write_wav(run.original_path("d/a"), tone(300))
    item = {"id": "d/a", "turns": []}
    made = work.stress_recording(item, {"stressor": "paperwork", "seed": 1}, run)
    assert made["status"] == "not_applicable" and "no script" in made["reason"]
    stressed = work.stress_recording({"id": "d/a"}, {"stressor": "room_noise", "seed": 1}, run)
    assert (run.root / stressed["file"]).stat().st_mode & 0o077 == 0
    assert run.secret in (run.root / stressed["file"]).parents


@pytest.mark.parametrize("kind", list(ADMINISTRATIVE))
def test_the_wording_is_free_of_clinical_content(kind: str) -> None:
    """By the rule extractor itself, on a conversation with facts of its own."""
    for language, exchange in ADMINISTRATIVE[kind].items():
        turns = [Said(side, side, text) for side, text in exchange]
        assert work.clinical_items(turns, language) == []
