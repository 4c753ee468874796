"""Reading, writing and refusing sound."""

import numpy as np
import pytest
import soundfile as sf

from aegis import audio
from aegis.errors import AudioError


def tone(seconds=0.5, hz=440.0, rate=16_000, amplitude=0.5):
    t = np.arange(int(seconds * rate)) / rate
    return (amplitude * np.sin(2 * np.pi * hz * t)).astype(np.float32)


def test_write_then_read_is_exact_on_the_pcm16_grid(tmp_path):
    grid = np.array([-32768, -1, 0, 1, 32766], dtype=np.float32) / 32768
    written = audio.write_wav(tmp_path / "a.wav", grid)
    assert written.gain_db == 0.0
    np.testing.assert_array_equal(audio.read_wav(tmp_path / "a.wav"), grid)


def test_over_range_is_turned_down_and_said(tmp_path):
    loud = np.array([0.0, 2.0, -2.0], dtype=np.float32)
    written = audio.write_wav(tmp_path / "loud.wav", loud)
    assert written.gain_db == pytest.approx(-6.0206, abs=0.001)
    np.testing.assert_allclose(audio.read_wav(tmp_path / "loud.wav") * 2, loud, atol=1e-3)


@pytest.mark.parametrize("bad", [np.array([0, np.nan]), np.array([np.inf, 0.0]), np.array([])])
def test_unwritable_signals_are_refused_and_leave_no_file(tmp_path, bad):
    with pytest.raises(AudioError, match="refused to write"):
        audio.write_wav(tmp_path / "x.wav", bad.astype(np.float32))
    assert list(tmp_path.iterdir()) == []


def test_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    target = tmp_path / "x.bin"
    audio.write_bytes(target, b"old")

    def full(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(audio.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        audio.write_bytes(target, b"new")
    assert target.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["x.bin"]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("a.wav", {"subtype": "PCM_U8"}),
        ("b.wav", {"subtype": "PCM_24"}),
        ("c.wav", {"subtype": "ULAW"}),
        ("d.wav", {"subtype": "FLOAT"}),
        ("e.flac", {}),
        ("f.ogg", {}),
        ("g.mp3", {}),
    ],
)
def test_formats_decode_to_the_same_tone(tmp_path, name, options):
    signal = tone(rate=8_000)
    sf.write(tmp_path / name, signal, 8_000, **options)
    recording = audio.read_audio(tmp_path / name)
    assert recording.sample_rate_hz == 8_000
    assert recording.samples.shape[0] == 1
    assert audio.rms_db(recording.samples) == pytest.approx(
        20 * np.log10(0.5 / np.sqrt(2)), abs=0.7
    )


def test_m4a_is_decoded_by_ffmpeg(tmp_path):
    import av

    path = tmp_path / "call.m4a"
    with av.open(str(path), "w", format="mp4") as container:
        stream = container.add_stream("aac", rate=16_000, layout="mono")
        frame = av.AudioFrame.from_ndarray(tone(1.0)[None], format="fltp", layout="mono")
        frame.sample_rate = 16_000
        for packet in [*stream.encode(frame), *stream.encode(None)]:
            container.mux(packet)
    recording = audio.read_audio(path)
    assert recording.sample_rate_hz == 16_000
    assert recording.duration_s == pytest.approx(1.0, abs=0.15)


def test_unusable_files_are_named(tmp_path):
    (tmp_path / "empty.wav").write_bytes(b"")
    with pytest.raises(AudioError, match=r"^the file has 0 bytes"):
        audio.read_audio(tmp_path / "empty.wav")
    sf.write(tmp_path / "header.wav", np.zeros(0, dtype=np.float32), 16_000)
    with pytest.raises(AudioError, match=r"^a header without samples"):
        audio.read_audio(tmp_path / "header.wav")
    sf.write(tmp_path / "nan.wav", np.array([0.1, np.nan], np.float32), 16_000, subtype="FLOAT")
    with pytest.raises(AudioError, match=r"^1 samples are NaN"):
        audio.read_audio(tmp_path / "nan.wav")
    (tmp_path / "text.wav").write_text("not sound at all, whatever the name says")
    with pytest.raises(AudioError, match=r"^cannot be decoded"):
        audio.read_audio(tmp_path / "text.wav")


def test_resample_keeps_duration_and_pitch():
    out = audio.resample(tone(1.0, hz=1000, rate=44_100), 44_100)
    assert out.shape == (16_000,)
    assert np.argmax(np.abs(np.fft.rfft(out))) == 1000


def test_cut_clamps():
    signal = np.arange(16_000, dtype=np.float32)
    assert audio.cut(signal, 0.5, 0.5 + 1 / 16_000).tolist() == [8000.0]
    assert audio.cut(signal, -1.0, 2.0).size == 16_000
    assert audio.cut(signal, 3.0, 4.0).size == 0


def test_rms_db_of_known_signals():
    assert audio.rms_db(np.ones(10, np.float32)) == 0.0
    assert audio.rms_db(np.full(10, 0.1, np.float32)) == pytest.approx(-20.0, abs=1e-5)
    assert audio.rms_db(np.zeros(10, np.float32)) == float("-inf")


@pytest.mark.parametrize(
    ("signal", "message"),
    [
        (np.zeros(16_000, np.float32), "returned silence"),
        (np.full(16_000, np.nan, np.float32), "NaN or infinity"),
        (tone(0.5), "length ratio 0.50"),
        (np.ones((2, 16_000), np.float32), "expected \\(n,\\)"),
    ],
)
def test_generated_signals_are_checked(signal, message):
    with pytest.raises(AudioError, match=message):
        audio.check_generated(signal, 1.0, "engine")
    audio.check_generated(tone(1.0), 1.0, "engine")
