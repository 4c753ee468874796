"""Converters: what they must move, what they must keep, what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

from aegis.engines import Voice, conversion
from aegis.errors import AudioError

RATE = 16_000


def vowel(f0_hz: float, formants_hz: tuple[float, ...], seconds: float, seed: int = 0):
    """Pulses of a slowly moving pitch through resonances, with a little noise."""
    rng = np.random.default_rng(seed)
    n = round(seconds * RATE)
    pitch = f0_hz * 2 ** (0.1 * np.sin(2 * np.pi * 1.3 * np.arange(n) / RATE))
    phase = np.cumsum(pitch / RATE)
    signal = np.diff(np.floor(phase), prepend=0.0)
    for formant in formants_hz:
        radius = np.exp(-np.pi * 90 / RATE)
        angle = 2 * np.pi * formant / RATE
        from scipy.signal import lfilter

        signal = lfilter([1.0], [1.0, -2 * radius * np.cos(angle), radius**2], signal)
    signal = signal / np.abs(signal).max() * 0.3
    return (signal + 0.001 * rng.normal(size=n)).astype(np.float32)


def f0_median(samples) -> float:
    f0, _ = conversion.estimate_f0(samples)
    return float(np.median(f0[f0 > 0]))


@pytest.fixture(scope="module")
def low():
    return vowel(110, (600, 1200, 2500), 3.0)


@pytest.fixture(scope="module")
def high():
    return vowel(200, (800, 1600, 2900), 3.0, seed=1)


def voice(reference) -> Voice:
    return Voice("v", reference, "b", "en")


def world():
    from aegis import engines

    return engines.load("converter", "world")


@pytest.mark.parametrize("name", ["world", "mcadams", "knn", "latent-noise"])
@pytest.mark.parametrize("n", [1, 400, 1_599, 1_600, 16_001, 30_000])
def test_length_is_kept(name, n, low, high):
    from aegis import engines

    out = engines.load("converter", name).convert(low[:n], voice(high), low, 7)
    assert out.shape == (n,)
    assert out.dtype == np.float32
    assert np.isfinite(out).all()


def test_pitch_moves_to_the_reference(low, high):
    out = world().convert(low, voice(high), low, 0)
    assert f0_median(out) == pytest.approx(f0_median(high), rel=0.04)
    back = world().convert(high, voice(low), high, 0)
    assert f0_median(back) == pytest.approx(f0_median(low), rel=0.04)


def test_envelope_moves_to_the_reference(low, high):
    def mean(samples):
        return conversion.to_cepstra(conversion.analyse(samples).envelope).mean(axis=0)

    out = mean(world().convert(low, voice(high), low, 0))
    source, target = mean(low), mean(high)
    way = target - source
    # The mean goes the whole way to the reference and OVERSHOOT of it further.
    travelled = (out - source) @ way / (way @ way)
    assert travelled == pytest.approx(1 + conversion.OVERSHOOT, abs=0.25)


def test_level_is_kept(low, high):
    out = world().convert(low, voice(high), low, 0)
    assert np.sqrt(np.mean(out**2)) == pytest.approx(np.sqrt(np.mean(low**2)), rel=1e-3)


def test_conversion_repeats_itself(low, high):
    first = world().convert(low, voice(high), low, 0)
    np.testing.assert_array_equal(first, world().convert(low, voice(high), low, 0))


@pytest.mark.parametrize("name", ["world", "mcadams"])
def test_broken_sources_are_refused(name, low):
    from aegis import engines

    converter = engines.load("converter", name)
    for bad in (np.zeros(0, np.float32), np.full(4_000, np.nan, np.float32)):
        with pytest.raises(AudioError, match="empty or not finite"):
            converter.convert(bad, voice(low), low, 0)


def test_a_context_without_speech_is_refused(low):
    with pytest.raises(AudioError, match="too little voiced speech"):
        world().convert(low, voice(low), np.zeros(RATE, np.float32), 0)


def test_silence_stays_silent(low, high):
    out = world().convert(np.zeros(RATE, np.float32), voice(high), low, 0)
    assert np.abs(out).max() < 1e-3


def test_transport_maps_one_covariance_to_the_other():
    rng = np.random.default_rng(0)
    source, target = (np.cov(rng.normal(size=(5, 50)) * (i + 1)) for i in range(2))
    matrix = conversion.transport(source, target)
    np.testing.assert_allclose(matrix @ source @ matrix, target, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-9)
    # One dimension: the ratio of the standard deviations.
    assert conversion.transport(np.array([[4.0]]), np.array([[9.0]]))[0, 0] == pytest.approx(1.5)


def test_add_cepstra_keeps_frame_energy(low):
    envelope = conversion.analyse(low).envelope
    change = np.random.default_rng(0).normal(size=(len(envelope), conversion.N_CEPSTRA - 1))
    changed = conversion.add_cepstra(envelope, change)
    np.testing.assert_allclose(changed.sum(axis=1), envelope.sum(axis=1), rtol=1e-9)
    same = conversion.add_cepstra(envelope, np.zeros_like(change))
    np.testing.assert_allclose(same, envelope, rtol=1e-9)


# --- variants -------------------------------------------------------------------------------


def test_a_variant_without_change_is_the_same_array(low):
    assert conversion.apply_variant(low, {}) is low
    assert conversion.apply_variant(low, {"f0_ratio": 1.0, "rate": 1.0}) is low


def test_variant_ratios(low):
    out = conversion.apply_variant(low, {"f0_ratio": 1.2, "rate": 1.25})
    assert out.size == pytest.approx(low.size / 1.25, abs=1)
    assert f0_median(out) == pytest.approx(1.2 * f0_median(low), rel=0.03)


def test_formants_move(low):
    def peak_hz(samples):
        mean = np.log(conversion.analyse(samples).envelope).mean(axis=0)
        hz = np.linspace(0, RATE / 2, mean.size)
        inside = (hz > 2000) & (hz < 3200)
        return hz[inside][mean[inside].argmax()]

    out = conversion.apply_variant(low, {"formant_ratio": 1.1})
    assert peak_hz(out) == pytest.approx(1.1 * peak_hz(low), rel=0.03)


def test_unknown_variants_are_refused(low):
    with pytest.raises(AudioError, match="unknown keys"):
        conversion.apply_variant(low, {"f0": 1.2})


# --- McAdams --------------------------------------------------------------------------------


def test_coefficient_one_changes_nothing(low):
    out = conversion.mcadams(low, 1.0)
    np.testing.assert_allclose(out[400:-400], low[400:-400], atol=2e-3)


def test_bent_poles_by_hand():
    # 1 - 2 r cos(w) z^-1 + r^2 z^-2 with r = .9, w = .5 rad, and 18 poles at zero
    polynomial = np.zeros((1, conversion.LPC_ORDER + 1))
    polynomial[0, :3] = [1.0, -2 * 0.9 * np.cos(0.5), 0.81]
    _, bent = conversion._bend_poles(polynomial, 0.8)
    expected = [1.0, -2 * 0.9 * np.cos(0.5**0.8), 0.81]
    np.testing.assert_allclose(bent[0, :3], expected, atol=1e-6)
    np.testing.assert_allclose(bent[0, 3:], 0.0, atol=1e-6)


def test_seeds_give_different_voices(low):
    from aegis import engines

    converter = engines.load("converter", "mcadams")
    one, two = (converter.convert(low, voice(low), low, seed) for seed in (1, 2))
    assert not np.allclose(one, two, atol=1e-3)
    np.testing.assert_array_equal(one, converter.convert(low, voice(low), low, 1))
