"""Renderers: splice logic on tones whose pitch names the word, engines on real speech."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aegis import engines
from aegis.audio import SAMPLE_RATE_HZ, Signal, rms_db
from aegis.engines import EditRequest, EngineInfo, Span, Voice, Word, rendering
from aegis.engines.bleeping import Bleep, bleep_intervals
from aegis.engines.masks import (
    Mask,
    fill_times,
    mask_share,
    place_words,
    plan_masks,
    replaced_text,
    words_of_span,
)
from aegis.engines.rendering import splice, split_sentences
from aegis.engines.speech_levels import (
    find_pauses,
    frame_levels,
    match_active_level,
    speaking_rate,
)
from aegis.errors import AudioError, RenderError
from aegis.weights import model_dir

TEXT = "my name is Sarah Miller and it hurts"
HZ = {word: 400.0 + 150.0 * i for i, word in enumerate(TEXT.split())}
SPOKEN_HZ = 3000.0
WORD_S = 0.3
VOICE = Voice("v1", np.ones(8, np.float32), "toy", "en", {})


def tone(hertz: float, seconds: float, level: float = 0.2) -> Signal:
    time = np.arange(round(seconds * SAMPLE_RATE_HZ)) / SAMPLE_RATE_HZ
    return (level * np.sin(2 * np.pi * hertz * time)).astype(np.float32)


def turn(gaps_s: list[float], shift_s: float = 0.0) -> tuple[Signal, tuple[Word, ...]]:
    """One tone a word with ``gaps_s`` silence before each; word times are off by ``shift_s``."""
    parts, words, at = [], [], 0.0
    for text, gap in zip(TEXT.split(), gaps_s, strict=True):
        parts += [np.zeros(round(gap * SAMPLE_RATE_HZ), np.float32), tone(HZ[text], WORD_S)]
        start = at + gap
        words.append(Word(text, max(start + shift_s, 0.0), start + WORD_S + shift_s))
        at = start + WORD_S
    return np.concatenate(parts), tuple(words)


def request(
    gaps_s: list[float], original: str, replacement: str = "Emily Dawson", shift_s: float = 0.0
) -> EditRequest:
    samples, words = turn(gaps_s, shift_s)
    start = TEXT.index(original)
    named = [w for w, (a, b) in zip(words, place_words(TEXT, words)[0], strict=True)
             if a < start + len(original) and b > start]  # fmt: skip
    span = Span(start, start + len(original), replacement, named[0].start_s, named[-1].end_s)
    target = replaced_text(TEXT, 0, len(TEXT), [span])
    return EditRequest(samples, TEXT, target, (span,), words, VOICE, "en", 7)


def energy_db(samples: Signal, hertz: float) -> float:
    """Loudest 20 ms of one pitch, in dB against a full-scale sine."""
    n = 320
    time = np.arange(n) / SAMPLE_RATE_HZ
    probe = np.exp(-2j * np.pi * hertz * time) * np.hanning(n) / np.hanning(n).sum() * 2
    samples = np.pad(samples, (0, n))
    frames = np.lib.stride_tricks.sliding_window_view(samples, n)[::40]
    return float(20 * np.log10(np.abs(frames @ probe).max() + 1e-9))


def true_intervals(gaps_s: list[float], original: str) -> list[tuple[int, int]]:
    """Samples of each word of the original, whatever the recogniser's times say."""
    _, words = turn(gaps_s)
    true = {w.text: (w.start_s or 0.0, w.end_s or 0.0) for w in words}
    return [
        (round(true[w][0] * SAMPLE_RATE_HZ), round(true[w][1] * SAMPLE_RATE_HZ))
        for w in original.split()
    ]


def covered(words: list[tuple[int, int]], masks: list[tuple[int, int]]) -> bool:
    return all(any(a <= start and end <= b for a, b in masks) for start, end in words)


class ToySynthesiser:
    """A steady tone of 60 ms a letter: easy to find in the result."""

    info = EngineInfo("synthesiser", "toy", "1", "CC0-1.0")

    def __init__(self) -> None:
        self.said: list[str] = []

    def speak(self, text: str, base_voice: str, language: str, rate: float = 1.0) -> Signal:
        if base_voice == "mute":
            raise AudioError("toy: no voice 'mute'")
        self.said.append(text)
        return tone(SPOKEN_HZ, 0.06 * sum(c.isalpha() for c in text) / rate)


@pytest.fixture
def synthesiser(monkeypatch: pytest.MonkeyPatch) -> ToySynthesiser:
    made = ToySynthesiser()
    monkeypatch.setattr(rendering, "load", lambda role, name: made)
    monkeypatch.setattr(rendering, "median_f0", lambda samples: 0.0)
    return made


EVEN = [0.1] * 8


@settings(max_examples=30, deadline=None)
@given(
    original=st.sampled_from(["Sarah Miller", "my", "hurts", "Sarah", "is", "name is", TEXT]),
    shift_s=st.floats(-0.08, 0.08),
    gaps_s=st.lists(st.sampled_from([0.0, 0.04, 0.1, 0.25]), min_size=8, max_size=8),
)
def test_nothing_of_the_original_is_left(
    original: str, shift_s: float, gaps_s: list[float]
) -> None:
    """Word times off by up to 80 ms, with and without pauses between the words."""
    asked = request(gaps_s, original, shift_s=shift_s)
    masks = [(mask.start, mask.end) for mask in plan_masks(asked)]
    assert covered(true_intervals(gaps_s, original), masks)


def test_a_mask_ends_in_the_pauses_beside_its_span() -> None:
    asked = request([0.1, 0.0, 0.0, 0.2, 0.0, 0.2, 0.0, 0.0], "Sarah Miller")
    (mask,) = plan_masks(asked)
    assert mask.text == "Emily Dawson"
    # The pauses are [1.0, 1.2) and [1.8, 2.0); at most half of one, or 0.1 s, is kept.
    assert (mask.start / SAMPLE_RATE_HZ, mask.end / SAMPLE_RATE_HZ) == pytest.approx(
        (1.1, 1.9), abs=0.02
    )
    assert mask.lead / SAMPLE_RATE_HZ == pytest.approx(0.1, abs=0.03)


def test_without_a_pause_neighbours_are_spoken_again() -> None:
    asked = request([0.1, 0.1, 0.0, 0.0, 0.0, 0.0, 0.1, 0.0], "Sarah Miller")
    (mask,) = plan_masks(asked)
    assert mask.text == "name is Emily Dawson and"


def test_edits_that_meet_share_one_mask() -> None:
    asked = request([0.1] * 3 + [0.0] * 5, "Sarah")
    both = (
        *asked.spans,
        replace(asked.spans[0], char_start=17, char_end=23, replacement="Dawson"),
    )
    (mask,) = plan_masks(replace(asked, spans=both))
    assert mask.text.startswith("is Emily Dawson Dawson")


def test_first_and_last_word_and_a_turn_that_is_all_identifier() -> None:
    first, last = request(EVEN, "my"), request(EVEN, "hurts")
    assert plan_masks(first)[0].start == 0
    assert plan_masks(last)[0].end == last.converted.size
    (whole,) = plan_masks(request(EVEN, TEXT))
    assert (whole.start, whole.text) == (0, "Emily Dawson")


def test_infill_keeps_the_rest_and_speaks_the_replacement(synthesiser: ToySynthesiser) -> None:
    asked = request(EVEN, "Sarah Miller")
    spliced = rendering.Infill("toy").render(asked)
    assert synthesiser.said == ["Emily Dawson."]
    kept = [word for word in TEXT.split() if word not in ("Sarah", "Miller")]
    assert all(energy_db(spliced, HZ[word]) > -16.0 for word in kept)
    assert energy_db(spliced, SPOKEN_HZ) > -16.0
    assert energy_db(spliced, HZ["Sarah"]) < -30.0


def test_an_edit_that_deletes_leaves_a_pause(synthesiser: ToySynthesiser) -> None:
    asked = request(EVEN, "Sarah Miller", replacement="")
    spliced = rendering.Infill("toy").render(asked)
    assert synthesiser.said == []
    assert spliced.size < asked.converted.size
    assert energy_db(spliced, HZ["Miller"]) < -30.0


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"words": ()}, "no word lies in the span"),
        ({"words": (Word("other", 0.0, 0.1),)}, "no word lies in the span"),
        ({"spans": (Span(11, 23, "Emily Dawson"),)}, "no word times"),
    ],
)
def test_infill_refuses_what_it_cannot_place(
    synthesiser: ToySynthesiser, change: dict[str, object], reason: str
) -> None:
    asked = replace(request(EVEN, "Sarah Miller"), **change)  # type: ignore[arg-type]
    with pytest.raises(RenderError, match=f"unsupported: .*{reason}"):
        rendering.Infill("toy").render(asked)


def test_untimed_words_are_unsupported(synthesiser: ToySynthesiser) -> None:
    asked = request(EVEN, "Sarah Miller")
    words = tuple(replace(w, start_s=None) if w.text == "Sarah" else w for w in asked.words)
    with pytest.raises(RenderError, match="unsupported: no word times"):
        rendering.Infill("toy").render(replace(asked, words=words))


def test_a_mask_above_the_limit_is_unsupported(synthesiser: ToySynthesiser) -> None:
    asked = request(EVEN, "Sarah Miller")
    assert mask_share(asked) == pytest.approx(2 / 8)
    with pytest.raises(RenderError, match="unsupported: mask of 25% of the words, limit 20%"):
        rendering.Infill("toy", max_mask_share=0.2).render(asked)


def test_whole_turn_speaks_the_target_at_the_level_of_the_turn(
    synthesiser: ToySynthesiser,
) -> None:
    asked = request(EVEN, "Sarah Miller")
    spoken = rendering.WholeTurn("toy").render(asked)
    assert synthesiser.said == ["my name is Emily Dawson and it hurts."]
    assert rms_db(spoken) == pytest.approx(rms_db(tone(1.0 / WORD_S * 100, 1.0)), abs=1.0)
    assert all(energy_db(spoken, hertz) < -30.0 for hertz in HZ.values())


def test_words_without_times_share_the_time_between_their_neighbours() -> None:
    words = (Word("a", 0.0, 1.0), Word("b", None, None), Word("c", 4.0, 5.0))
    (_, middle, _) = fill_times(words, 80_000)
    assert (middle.start_s, middle.end_s) == (2.0, 3.0)
    assert fill_times((), 80_000) == ()


def test_a_voice_that_cannot_speak_is_a_typed_failure(synthesiser: ToySynthesiser) -> None:
    asked = replace(request(EVEN, "Sarah"), voice=replace(VOICE, base_voice="mute"))
    with pytest.raises(RenderError, match="failed: toy: no voice"):
        rendering.WholeTurn("toy").render(asked)
    with pytest.raises(RenderError, match="unsupported: language 'sv', spoken are en, fr"):
        rendering.WholeTurn("toy").render(replace(asked, text="", language="sv"))
    with pytest.raises(RenderError, match=r"unsupported: .* nothing to speak"):
        rendering.WholeTurn("toy").render(replace(asked, target_text=" ... "))


def test_splice_accounts_for_every_sample() -> None:
    samples = np.arange(1, 1001, dtype=np.float32) / 1000
    piece = np.full(50, 0.5, np.float32)
    spliced = splice(samples, [(Mask(100, 300, "x", 10, 20), piece)], fade_s=0.0)
    assert spliced.size == 1000 - 200 + 50 + 30
    np.testing.assert_array_equal(spliced[:100], samples[:100])
    np.testing.assert_array_equal(spliced[110:160], piece)
    np.testing.assert_array_equal(spliced[180:], samples[300:])
    faded = splice(samples, [(Mask(100, 300, "x"), piece)], fade_s=0.001)
    assert faded[99] == 0.0
    assert faded[0] == samples[0]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("It hurts a lot. Since Monday. Yes.", ["It hurts a lot.", "Since Monday. Yes."]),
        ("Miller.", ["Miller."]),
        ("one, two", ["one, two"]),
    ],
)  # fmt: skip
def test_sentences(text: str, pieces: list[str]) -> None:
    assert split_sentences(text) == pieces


@given(st.text(alphabet="ab .,;!?", min_size=1, max_size=900))
def test_no_text_is_lost_between_sentences(text: str) -> None:
    pieces = split_sentences(text, longest=100)
    assert "".join(pieces).replace(" ", "") == text.replace(" ", "")
    assert max(map(len, pieces)) <= 112


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("j 'ai mal", "j'ai mal"),
        ("Ask for Nora J.. Thanks...", "Ask for Nora J. Thanks..."),
        ("a low -dose pill", "a low-dose pill"),
    ],
)
def test_word_pieces_and_stops_are_joined(text: str, spoken: str) -> None:
    assert rendering.spoken_text(text, "en") == spoken


def test_words_and_spans_meet_on_characters() -> None:
    words = [Word(w, 0.0, 1.0) for w in ("Mr.", "unheard", "O'Neil's", "dog")]
    places, kept = place_words("Mr. O'Neil's dog", words)
    assert places == [(0, 3), (4, 12), (13, 16)]
    assert [word.text for word in kept] == ["Mr.", "O'Neil's", "dog"]
    assert words_of_span(places, Span(4, 10, "Hall")) == (1, 1)
    assert replaced_text("Mr. O'Neil's dog", 4, 16, [Span(4, 10, "Hall")]) == "Hall's dog"


def test_replacements_are_made_in_one_pass() -> None:
    spans = [Span(6, 7, "a"), Span(0, 1, "b")]
    assert replaced_text("a and b", 0, 7, spans) == "b and a"


def test_pauses_and_levels() -> None:
    samples = np.concatenate([tone(300, 0.5), np.zeros(3200, np.float32), tone(300, 0.5)])
    ((start, end),) = find_pauses(samples)
    assert (start, end) == pytest.approx((8000, 11200), abs=320)
    assert frame_levels(samples)[10] == pytest.approx(20 * np.log10(0.2 / np.sqrt(2)), abs=0.1)
    noise = np.random.default_rng(0).normal(0, 0.05, 16_000).astype(np.float32)
    assert find_pauses(noise) == []


def test_level_and_rate_follow_the_turn() -> None:
    loud, quiet = tone(300, 1.0, 0.4), tone(300, 1.0, 0.05)
    assert rms_db(match_active_level(loud, quiet)) == pytest.approx(rms_db(quiet), abs=0.1)
    text = "thirty letters are spoken here now"
    letters = sum(c.isalpha() for c in text)
    assert speaking_rate(text, tone(300, letters / 15.0), "en") == pytest.approx(1.0, abs=0.01)
    assert speaking_rate(text, tone(300, letters / 60.0), "en") == 1.15
    assert speaking_rate("Miller", tone(300, 3.0), "en") == 1.0
    assert speaking_rate(text, tone(300, letters / 60.0), "fr-FR") == 0.95


@pytest.mark.parametrize("shift_s", [-0.08, 0.0, 0.08])
def test_a_bleep_covers_the_span(shift_s: float) -> None:
    asked = request(EVEN, "Sarah Miller", shift_s=shift_s)
    intervals = bleep_intervals(asked, 0.1)
    assert intervals is not None
    assert covered(true_intervals(EVEN, "Sarah Miller"), intervals)
    assert not covered(true_intervals(EVEN, "hurts"), intervals)


@pytest.mark.parametrize(("kind", "hertz"), [("tone", 1000.0), ("noise", None), ("silence", None)])
def test_what_a_bleep_sounds_like(kind: str, hertz: float | None) -> None:
    asked = request(EVEN, "Sarah Miller")
    ((start, end),) = bleep_intervals(asked, 0.1) or []
    out = Bleep(kind).render(asked)
    np.testing.assert_array_equal(out[:start], asked.converted[:start])
    np.testing.assert_array_equal(out[end:], asked.converted[end:])
    inside = out[start:end]
    assert inside.any() == (kind != "silence")
    if hertz is not None:
        assert energy_db(inside, hertz) == pytest.approx(-14.0, abs=4.0)
    np.testing.assert_array_equal(out, Bleep(kind).render(asked))


def test_without_word_times_the_whole_turn_is_covered() -> None:
    asked = request(EVEN, "Sarah Miller")
    untimed = replace(asked, spans=(replace(asked.spans[0], start_s=None),))
    assert bleep_intervals(untimed, 0.1) is None
    bleep = Bleep("silence")
    assert not bleep.render(untimed).any()
    assert "whole turn" in str(bleep.note(untimed))
    assert bleep.note(asked) is None


def test_an_unknown_cover_is_refused() -> None:
    with pytest.raises(RenderError, match="unsupported: redaction kind 'cough'"):
        Bleep("cough")


@pytest.mark.engine
def test_the_replacement_is_spoken_and_the_original_is_gone() -> None:
    """Kokoro speaks, Kokoro edits, Whisper base listens: both renderers, timed by Whisper."""
    from faster_whisper import WhisperModel

    model = WhisperModel(str(model_dir("whisper-base")), compute_type="int8", cpu_threads=1)
    speech = engines.load("synthesiser", "kokoro").speak(
        "Good morning, my name is Sarah Miller and my chest hurts.", "am_michael", "en"
    )

    def listen(samples: Signal) -> tuple[str, tuple[Word, ...]]:
        segments, _ = model.transcribe(samples, language="en", word_timestamps=True)
        words = tuple(
            Word(w.word.strip(), w.start, w.end) for s in segments for w in s.words or []
        )
        return " ".join(word.text for word in words), words

    text, words = listen(speech)
    start = text.index("Sarah Miller")
    hit = [w for w, (a, b) in zip(words, place_words(text, words)[0], strict=True)
           if a < start + 12 and b > start]  # fmt: skip
    span = Span(start, start + 12, "Emily Dawson", hit[0].start_s, hit[-1].end_s)
    voice = Voice("v", speech[:100], "bf_emma", "en", {"f0_ratio": 0.9, "formant_ratio": 0.95})
    target = replaced_text(text, 0, len(text), [span])
    asked = EditRequest(speech, text, target, (span,), words, voice, "en", 1)
    for name in ("whole-turn", "infill"):
        heard, _ = listen(engines.load("renderer", name).render(asked))
        assert "Emily Dawson" in heard, name
        assert "Sarah" not in heard, name
        assert "chest" in heard, name
