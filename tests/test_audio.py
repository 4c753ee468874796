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


@pytest.mark.parametrize("shape", [(700_000,), (2, 300_000)])
def test_a_long_signal_is_the_file_read_in_parts(tmp_path, shape):
    """Slices, rows, mean and copy of a file equal those of the array that was written."""
    grid = np.random.default_rng(5).integers(-32768, 32767, shape).astype(np.float32) / 32768
    written = audio.write_wav(tmp_path / "a.wav", grid)
    sound = audio.open_wav(tmp_path / "a.wav")
    assert (sound.shape, sound.ndim, sound.size) == (grid.shape, grid.ndim, grid.size)
    np.testing.assert_array_equal(np.asarray(sound), grid)
    for place in (slice(5, 9), slice(-7, None), slice(9, 5), slice(0, 10**9)):
        np.testing.assert_array_equal(sound[..., place], grid[..., place])
    np.testing.assert_array_equal(audio.cut(sound, 1.5, 2.0), grid[..., 24_000:32_000])
    rows = audio.rows_of(sound)
    np.testing.assert_array_equal(np.stack(rows), np.atleast_2d(grid))
    np.testing.assert_array_equal(
        np.concatenate(list(audio.blocks_of(audio.mono_of(sound)))),
        grid if grid.ndim == 1 else (grid[0] + grid[1]) / 2,
    )
    last = audio.open_channel(tmp_path / "a.wav", 7)
    np.testing.assert_array_equal(last[100:200], np.atleast_2d(grid)[-1, 100:200])
    assert audio.write_wav(tmp_path / "b.wav", sound) == written
    assert (tmp_path / "b.wav").read_bytes() == (tmp_path / "a.wav").read_bytes()


def test_joined_signals_are_sliced_across_their_ends():
    parts = [np.arange(n, dtype=np.float32) + 100 * n for n in (3, 0, 5, 2)]
    joined, whole = audio.join_signals(parts), np.concatenate(parts)
    for first in range(11):
        for last in range(first, 12):
            np.testing.assert_array_equal(joined[first:last], whole[first:last])
    assert audio.join_signals([]).size == 0


@pytest.mark.parametrize("key", [(0, slice(3)), 1, [1, 2]])
def test_a_long_signal_is_sliced_on_its_last_axis_only(key):
    sound = audio.LongSignal((9,), lambda first, last: np.zeros(last - first, np.float32))
    with pytest.raises(TypeError, match="sliced on its last axis"):
        sound[key]


def test_an_open_file_of_another_kind_is_refused(tmp_path):
    sf.write(tmp_path / "a.wav", np.zeros(100), 8_000)
    (tmp_path / "b.wav").write_bytes(b"")
    (tmp_path / "c.wav").write_bytes(b"no sound at all")
    for name, reason in (("a", "8000 Hz"), ("b", "0 bytes"), ("c", "cannot be decoded")):
        with pytest.raises(AudioError, match=reason):
            audio.open_wav(tmp_path / f"{name}.wav")
