"""Compared anonymisers: distance from the source, bounds of the noise, the inverse."""

from __future__ import annotations

import numpy as np
import pytest
from test_conversion import f0_median, voice, vowel

from aegis import engines
from aegis.engines import conversion, systems
from aegis.errors import AudioError, EngineUnavailable


@pytest.fixture(scope="module")
def low():
    return vowel(110, (600, 1200, 2500), 3.0)


@pytest.fixture(scope="module")
def high():
    return vowel(200, (800, 1600, 2900), 3.0, seed=1)


def mean_cepstra(samples):
    return conversion.to_cepstra(conversion.analyse(samples).envelope).mean(axis=0)


def test_knn_speaks_with_the_reference_frames(low, high):
    out = engines.load("converter", "knn").convert(low, voice(high), low, 0)
    assert f0_median(out) == pytest.approx(f0_median(high), rel=0.05)
    source, target = mean_cepstra(low), mean_cepstra(high)
    far = np.linalg.norm(mean_cepstra(out) - source)
    assert np.linalg.norm(mean_cepstra(out) - target) < 0.5 * far


def test_noise_is_one_voice_a_seed_and_two_for_two(low, high):
    made = engines.load("converter", "latent-noise")
    one, other = (made.convert(low, voice(high), low, seed) for seed in (1, 2))
    again = made.convert(low, voice(low), low, 1)
    assert (one == again).all()  # no reference is used
    assert abs(12 * np.log2(f0_median(one) / f0_median(other))) > 0.2


def test_noise_is_laplace_between_its_bounds():
    noise = systems.bounded_laplace(np.random.default_rng(0), 1.0, 3.0, (200_000,))
    assert np.abs(noise).max() <= 3.0
    # E|x| of a Laplace cut at b: (1 - (1 + b) e^-b) / (1 - e^-b).
    expected = (1 - 4 * np.exp(-3)) / (1 - np.exp(-3))
    assert np.abs(noise).mean() == pytest.approx(expected, abs=0.01)
    assert noise.mean() == pytest.approx(0.0, abs=0.01)


def test_inverse_of_world_brings_the_voice_back(low, high):
    """Most of the way from converted to original speech is gone again."""
    converted = engines.load("converter", "world").convert(low, voice(high), low, 0)
    back = systems.undo_world(converted, systems.find_world_key(low, voice(high)))
    assert f0_median(back) == pytest.approx(f0_median(low), rel=0.03)
    source = mean_cepstra(low)
    before, after = (np.linalg.norm(mean_cepstra(x) - source) for x in (converted, back))
    assert after < 0.1 * before


def test_length_is_fitted(low):
    assert systems.fit_length(low, 30_000).shape == (30_000,)
    assert systems.fit_length(low, 70_000).shape == (70_000,)
    assert systems.fit_length(low, low.size) == pytest.approx(low)
    slow = systems.fit_length(low[:16_000], 40_000)
    assert np.abs(slow[:30_000]).max() > 0.05  # half as fast at most, then silence
    assert np.abs(slow[34_000:]).max() == 0.0


def test_smoothing_keeps_constants_and_length():
    rows = np.ones((12, 3))
    assert systems.smooth(rows) == pytest.approx(rows)
    assert systems.smooth(rows[:2]).shape == (2, 3)
    spike = np.zeros((11, 1))
    spike[5] = 5.0
    assert systems.smooth(spike)[3:8, 0] == pytest.approx(np.ones(5))


def test_absent_weights_are_said():
    with pytest.raises(EngineUnavailable, match="models/knn-vc"):
        systems.load_knn_vc()


class Mute:
    def transcribe(self, samples, language):
        return type("T", (), {"segments": ()})()


def test_cascade_refuses_a_turn_without_words(low, high):
    cascade = systems.CascadeConverter.__new__(systems.CascadeConverter)
    cascade._asr, cascade._renderer = Mute(), None
    with pytest.raises(AudioError, match="no words"):
        cascade.convert(low, voice(high), low, 0)


@pytest.mark.engine
def test_cascade_says_the_words_in_another_voice():
    speaker = engines.load("synthesiser", "kokoro")
    text = "She buys cheese, a jar of honey, and five ripe apples."
    source = speaker.speak(text, "bm_george", "en")
    target = engines.Voice("v", speaker.speak(text, "af_heart", "en"), "af_heart", "en")
    out = engines.load("converter", "cascade").convert(source, target, source, 0)
    assert out.shape == source.shape
    heard = engines.load("transcriber", "whisper-base").transcribe(out, "en")
    words = " ".join(segment.text for segment in heard.segments).lower()
    assert "honey" in words
    assert "apples" in words
