"""Trimming and splitting by hand-made signals; the engines themselves need weights."""

from __future__ import annotations

import numpy as np
import pytest

from aegis import engines
from aegis.audio import SAMPLE_RATE_HZ as RATE
from aegis.engines import phonemes, synthesis
from aegis.errors import AudioError

ENGLISH = "Good morning, Mrs. Brown. Is that right?"


def bursts(seconds: float, *active: tuple[float, float]) -> np.ndarray:
    """A tone inside the given intervals, digital silence elsewhere."""
    t = np.arange(round(seconds * RATE)) / RATE
    inside = np.zeros(t.size, dtype=bool)
    for start, end in active:
        inside |= (t >= start) & (t < end)
    return np.where(inside, 0.3 * np.sin(2 * np.pi * 300 * t), 0).astype(np.float32)


def test_ends_are_trimmed_to_the_margin() -> None:
    signal = bursts(3.0, (0.5, 2.0)) + np.float32(0.01)
    trimmed = synthesis.trim_silence(signal)
    assert trimmed.size / RATE == pytest.approx(1.5 + 2 * synthesis.MARGIN_S, abs=1e-9)
    assert synthesis.trim_bounds(bursts(3.0, (0.5, 2.0)))[0] == round(0.48 * RATE)


def test_speech_at_the_very_edges_is_kept_whole() -> None:
    signal = bursts(1.003, (0.0, 1.003))
    assert synthesis.trim_bounds(signal) == (0, signal.size)


def test_only_pauses_over_a_fifth_of_a_second_cut_speech() -> None:
    signal = bursts(3.0, (0.1, 0.5), (0.7, 1.0), (1.21, 2.0))
    seconds = [(a / RATE, b / RATE) for a, b in synthesis.speech_intervals(signal)]
    assert seconds == [(0.1, 1.0), (1.21, 2.0)]


@pytest.mark.parametrize("signal", [np.zeros(0), np.zeros(1_000), np.full(1_000, 0.2)])
def test_silence_is_refused(signal: np.ndarray) -> None:
    with pytest.raises(AudioError, match="silence"):
        synthesis.trim_silence(signal.astype(np.float32))


@pytest.mark.parametrize(
    ("text", "limit", "pieces"),
    [
        ("ab cd. ef", 20, ["ab cd. ef"]),
        ("ab cd. ef gh! ij", 10, ["ab cd.", "ef gh! ij"]),
        ("ab, cd ef, gh. ij", 7, ["ab,", "cd ef,", "gh.", "ij"]),
        ("ab cd ef", 5, ["ab cd", "ef"]),
        ("abcdefg", 3, ["abc", "def", "g"]),
    ],
)
def test_phonemes_are_split_at_the_strongest_mark(
    text: str, limit: int, pieces: list[str]
) -> None:
    assert phonemes.split_phonemes(text, limit) == pieces


def test_text_is_made_plain() -> None:
    assert phonemes.plain_text("  It\u2019s\u00a0“fine”\n") == 'It\'s "fine"'
    assert phonemes.ascii_text("Zoë’s café") == "Zoe's cafe"
    for nothing in ("", " ... ", "—"):
        with pytest.raises(AudioError, match="nothing to speak"):
            phonemes.plain_text(nothing)


def test_phonemes_follow_the_language() -> None:
    assert "ɹ" in phonemes.phonemes("four birds", "en-us")
    assert "ɹ" not in phonemes.phonemes("four birds", "en-gb")
    assert "ʁ" in phonemes.phonemes("bonjour docteur", "fr-fr")


def test_foreign_words_and_numbers_are_read_as_such() -> None:
    assert "(" not in phonemes.phonemes("mon adresse Gmail et mon e-mail", "fr-fr")
    digits = phonemes.phonemes("It is 0.9 now.", "en-us")
    words = phonemes.phonemes("It is zero point nine now.", "en-us")
    assert digits.replace("ˈ", "") == words.replace("ˈ", "")
    assert phonemes.phonemes("Ça va ?", "fr-fr").endswith("a?")
    assert phonemes.phonemes("So, yes.", "en-us").count(",") == 1


VOICES = [("kokoro", "af_heart"), ("piper", "joe"), ("flite", "slt"), ("festival", "kal")]


@pytest.mark.engine
@pytest.mark.parametrize(("name", "voice"), VOICES)
def test_an_engine_repeats_itself_and_keeps_its_rate(name: str, voice: str) -> None:
    engine = engines.load("synthesiser", name)
    first = engine.speak(ENGLISH, voice, "en")
    assert first.dtype == np.float32
    assert first.ndim == 1
    assert 1.5 < first.size / RATE < 5.0
    assert np.array_equal(first, engine.speak(ENGLISH, voice, "en"))
    faster = engine.speak(ENGLISH, voice, "en", rate=1.25)
    assert 1.05 < first.size / faster.size < 1.4
    assert synthesis.trim_bounds(first)[0] <= 0.01 * RATE


@pytest.mark.engine
@pytest.mark.parametrize(("name", "voice"), VOICES)
def test_an_engine_refuses_what_it_cannot_speak(name: str, voice: str) -> None:
    engine = engines.load("synthesiser", name)
    with pytest.raises(AudioError, match="no voice 'nobody'"):
        engine.speak("Hello.", "nobody", "en")
    with pytest.raises(AudioError, match="not 'de'"):
        engine.speak("Guten Tag.", voice, "de")
    with pytest.raises(AudioError, match="nothing to speak"):
        engine.speak("...", voice, "en")


@pytest.mark.engine
def test_a_text_beyond_the_limit_is_its_sentences_with_pauses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = engines.load("synthesiser", "kokoro")
    parts = [engine.speak(text, "am_puck", "en") for text in ("Sit down.", "Breathe in.")]
    monkeypatch.setattr(synthesis, "KOKORO_CHUNK_TOKENS", 16)
    joined = engine.speak("Sit down. Breathe in.", "am_puck", "en")
    pause = np.zeros(round(synthesis.JOIN_PAUSE_S * RATE), dtype=np.float32)
    assert np.array_equal(joined, np.concatenate([parts[0], pause, parts[1]]))


@pytest.mark.engine
def test_french_and_accent() -> None:
    engine = engines.load("synthesiser", "kokoro")
    french = engine.speak("Bonjour, madame.", "ff_siwis", "fr")
    assert 0.5 < french.size / RATE < 2.5
    british = engine.speak("Four birds.", "bf_emma", "en")
    assert np.array_equal(british, engine.speak("Four birds.", "bf_emma", "en-gb"))
    assert not np.array_equal(british, engine.speak("Four birds.", "bf_emma", "en-us"))


@pytest.mark.engine
def test_a_mixture_is_a_voice_between_its_parts() -> None:
    engine = engines.load("synthesiser", "kokoro")
    alone = engine.speak("Bonjour.", "ff_siwis", "fr")
    assert np.array_equal(alone, engine.speak("Bonjour.", "ff_siwis+ff_siwis", "fr"))
    mixed = engine.speak("Bonjour.", "em_alex+ff_siwis", "fr")
    assert np.array_equal(mixed, engine.speak("Bonjour.", "ff_siwis+em_alex", "fr"))
    assert mixed.size != alone.size or not np.array_equal(mixed, alone)
    named = engine.speak("Bonjour.", "fm_daniel", "fr")
    parts = "bm_daniel+bm_daniel+ff_siwis"
    assert np.array_equal(named, engine.speak("Bonjour.", parts, "fr"))
    with pytest.raises(AudioError, match="no voice 'nobody'"):
        engine.speak("Bonjour.", "ff_siwis+nobody", "fr")
