"""Speech synthesis: text and a base voice to 16-kHz speech.

Unit: one utterance (a turn, or a phrase for a splice). Every engine is
deterministic, keeps to one CPU thread, and returns speech without silence at its
ends (:func:`trim_silence`), so that a scripted turn's times are true.

========  ==================================  =============
name      voices                              languages
========  ==================================  =============
kokoro    54 (af_heart, bm_george, ...)       en-us en-gb fr
piper     joe                                 en
flite     slt rms awb kal16                   en
festival  kal (kal_diphone)                   en
========  ==================================  =============

Kokoro's voices are points of one space, and the mean of some is a voice of its own:
``a+b``, or ``a+a+b`` nearer to ``a``. One voice alone was trained on French and lends
its pronunciation to a mixture: Whisper base misheard 6 of 66 French words of
``fm_alex`` (see :data:`MIXTURES`), 18 of ``em_alex`` itself.

None of them reports when a word is spoken, so truth has turn times and, from the
clean signal, speech intervals (:func:`speech_intervals`); word times are not made up.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
import unicodedata
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aegis.audio import SAMPLE_RATE_HZ, Signal, read_audio, resample
from aegis.engines import EngineInfo, register
from aegis.engines.phonemes import ascii_text, phonemes, split_phonemes
from aegis.errors import AudioError, EngineUnavailable

SOURCE, TARGET = "<text>", "<speech>"
KOKORO_RATE_HZ = 24_000
KOKORO_MAX_TOKENS = 510
KOKORO_CHUNK_TOKENS = 380
JOIN_PAUSE_S = 0.25
FRAME_S = 0.01
BELOW_PEAK_DB = 45.0
MARGIN_S = 0.02

MIXTURES = {
    "ff_dora": "pf_dora+pf_dora+ff_siwis",
    "ff_sara": "if_sara+if_sara+ff_siwis",
    "fm_alex": "em_alex+em_alex+ff_siwis",
    "fm_daniel": "bm_daniel+bm_daniel+ff_siwis",
    "fm_nicola": "im_nicola+im_nicola+ff_siwis",
}
"""Two parts of a voice that was not made for French and one of the only one that was."""


def _speech_frames(samples: Signal, rate_hz: int) -> NDArray[np.bool_]:
    """For every 10-ms frame: is it within 45 dB of the loudest frame?"""
    frame = round(FRAME_S * rate_hz)
    padded = np.zeros(-(-samples.size // frame) * frame, dtype=np.float64)
    padded[: samples.size] = samples
    power = np.square(padded).reshape(-1, frame).mean(axis=1)
    if power.size == 0 or power.max() < 1e-12:
        raise AudioError("synthesis: the engine returned silence")
    loud: NDArray[np.bool_] = power >= power.max() * 10.0 ** (-BELOW_PEAK_DB / 10.0)
    return loud


def trim_bounds(samples: Signal, rate_hz: int = SAMPLE_RATE_HZ) -> tuple[int, int]:
    """``[first, last)`` sample of an utterance without background.

    Rule: 10-ms frames within 45 dB of the loudest frame are speech; 20 ms are kept on
    both sides, so a turn's times are at most 30 ms too wide.

    Raises
    ------
    AudioError
        The signal is empty or all zero.
    """
    loud = np.flatnonzero(_speech_frames(samples, rate_hz))
    frame, margin = round(FRAME_S * rate_hz), round(MARGIN_S * rate_hz)
    first = max(int(loud[0]) * frame - margin, 0)
    return first, min((int(loud[-1]) + 1) * frame + margin, samples.size)


def speech_intervals(samples: Signal, longest_pause_s: float = 0.2) -> list[tuple[int, int]]:
    """Stretches of speech in a clean 16-kHz utterance, as ``[first, last)`` samples.

    Same frames as :func:`trim_bounds`; pauses of at most ``longest_pause_s`` are bridged,
    longer ones are cut out (the reference of diarization scoring).
    """
    loud = _speech_frames(samples, SAMPLE_RATE_HZ)
    frame = round(FRAME_S * SAMPLE_RATE_HZ)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], loud, [False]]).astype(np.int8)))
    runs = [(int(a) * frame, int(b) * frame) for a, b in edges.reshape(-1, 2)]
    joined = [runs[0]]
    for first, last in runs[1:]:
        if first - joined[-1][1] <= longest_pause_s * SAMPLE_RATE_HZ:
            joined[-1] = (joined[-1][0], last)
        else:
            joined.append((first, last))
    return [(first, min(last, samples.size)) for first, last in joined]


def trim_silence(samples: Signal, rate_hz: int = SAMPLE_RATE_HZ) -> Signal:
    """The utterance without offset and silent ends (see :func:`trim_bounds`)."""
    if samples.size:
        samples = samples - samples.mean(dtype=np.float32)
    first, last = trim_bounds(samples, rate_hz)
    return samples[first:last]


def _session(path: Path) -> Any:
    """A single-thread onnxruntime session; parallelism comes from worker processes."""
    try:
        import onnxruntime
    except ImportError as error:
        raise EngineUnavailable(f"{path.name}: {error}; install onnxruntime") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def _revision(path: Path) -> str:
    digest = sha256()
    with open(path, "rb") as handle:
        while block := handle.read(1 << 20):
            digest.update(block)
    return f"sha256:{digest.hexdigest()[:12]}"


def _check_language(name: str, language: str) -> None:
    if not language.lower().startswith("en"):
        raise AudioError(f"{name}: speaks English only, not {language!r}")


class Kokoro:
    """Kokoro-82M (int8 ONNX). Style rows are indexed by the number of tokens."""

    def __init__(self, model: Path, voices: Path, vocabulary: dict[str, int]) -> None:
        self.info = EngineInfo("synthesiser", "kokoro", _revision(model), "Apache-2.0")
        self._voices, self._vocabulary, self._model = (
            voices,
            vocabulary,
            _session(model),
        )
        self._styles: dict[str, NDArray[np.float32]] = {}

    @property
    def base_voices(self) -> list[str]:
        return sorted(path.stem for path in self._voices.glob("*.bin"))

    def speak(self, text: str, base_voice: str, language: str, rate: float = 1.0) -> Signal:
        """Speak ``text``; ``language`` ``en`` takes the accent from the voice's name."""
        if not 0.5 <= rate <= 2.0:
            raise AudioError(f"kokoro: rate {rate} outside [0.5, 2]")
        style = self._style(base_voice)
        known = self._phonemes(text, _kokoro_language(language, base_voice))
        pieces = [self._speak(p, style, rate) for p in split_phonemes(known, KOKORO_CHUNK_TOKENS)]
        pause = np.zeros(round(JOIN_PAUSE_S / rate * SAMPLE_RATE_HZ), dtype=np.float32)
        joined = [part for piece in pieces for part in (piece, pause)][:-1]
        return np.concatenate(joined)

    def _phonemes(self, text: str, language: str) -> str:
        spoken = phonemes(text, language)
        known = "".join(char for char in spoken if char in self._vocabulary).strip()
        if not any(char.isalpha() for char in known):
            raise AudioError("kokoro: the text has no phonemes that the model knows")
        return known

    def _style(self, base_voice: str) -> NDArray[np.float32]:
        """A voice's or a mixture's style rows, one for each number of tokens."""
        if base_voice not in self._styles:
            names = MIXTURES.get(base_voice, base_voice).split("+")
            parts = [self._read_style(name) for name in names]
            self._styles[base_voice] = np.mean(parts, axis=0, dtype=np.float32)
        return self._styles[base_voice]

    def _read_style(self, name: str) -> NDArray[np.float32]:
        path = self._voices / f"{name}.bin"
        if not path.exists():
            raise AudioError(f"kokoro: no voice {name!r}, known: {self.base_voices[:6]} ...")
        return np.fromfile(path, dtype="<f4").reshape(510, 256)

    def _speak(self, known: str, style: NDArray[np.float32], rate: float) -> Signal:
        tokens = [self._vocabulary[char] for char in known][:KOKORO_MAX_TOKENS]
        inputs = {
            "tokens": np.array([[0, *tokens, 0]], dtype=np.int64),
            "style": style[len(tokens) - 1][None],
            "speed": np.array([rate], dtype=np.float32),
        }
        raw = np.asarray(self._model.run(None, inputs)[0], dtype=np.float32).ravel()
        return resample(trim_silence(raw, KOKORO_RATE_HZ), KOKORO_RATE_HZ)


def _kokoro_language(language: str, base_voice: str) -> str:
    """espeak's name for a language: ``en`` is British for voices ``bf_*`` and ``bm_*``."""
    language = language.lower().replace("_", "-")
    if language in ("en-us", "en-gb"):
        return language
    if language.startswith("en"):
        return "en-gb" if base_voice.startswith("b") else "en-us"
    if language.startswith("fr"):
        return "fr-fr"
    raise AudioError(f"kokoro: speaks en and fr here, not {language!r}")


class Piper:
    """A Piper voice (VITS, ONNX) with its noise set to 0, so that it repeats itself exactly."""

    def __init__(self, model: Path) -> None:
        config = json.loads(model.with_name(model.name + ".json").read_text(encoding="utf-8"))
        self.info = EngineInfo("synthesiser", "piper", _revision(model), "CC0-1.0")
        self._rate_hz = int(config["audio"]["sample_rate"])
        self._language = str(config["espeak"]["voice"])
        self._ids: dict[str, list[int]] = config["phoneme_id_map"]
        self._length = float(config["inference"]["length_scale"])
        self._model = _session(model)

    def speak(self, text: str, base_voice: str, language: str, rate: float = 1.0) -> Signal:
        _check_language("piper", language)
        if base_voice != "joe":
            raise AudioError(f"piper: no voice {base_voice!r}, known: joe")
        spoken = unicodedata.normalize("NFD", phonemes(text, self._language))
        # Each phoneme is followed by a blank; the sentence stands between two marks.
        ids = [*self._ids["^"], *self._ids["_"]]
        for char in spoken:
            ids += [*self._ids[char], *self._ids["_"]] if char in self._ids else []
        ids += self._ids["$"]
        inputs = {
            "input": np.array([ids], dtype=np.int64),
            "input_lengths": np.array([len(ids)], dtype=np.int64),
            "scales": np.array([0.0, self._length / rate, 0.0], dtype=np.float32),
        }
        raw = np.asarray(self._model.run(None, inputs)[0], dtype=np.float32).ravel()
        return resample(trim_silence(raw, self._rate_hz), self._rate_hz)


class Flite:
    """Debian's ``flite``, its compiled-in voices."""

    VOICES = ("awb", "kal16", "rms", "slt")

    def __init__(self) -> None:
        self._program = _program("flite")
        version = _output([self._program, "--version"], ok=(0, 1))
        found = re.search(r"version:\s*(\S+)", version)
        self.info = EngineInfo(
            "synthesiser", "flite", found[1] if found else "unknown", "BSD-4-Clause"
        )

    def speak(self, text: str, base_voice: str, language: str, rate: float = 1.0) -> Signal:
        _check_language("flite", language)
        _check_voice("flite", base_voice, self.VOICES)
        setting = f"duration_stretch={1.0 / rate:.4f}"
        options = ["-voice", base_voice, "--setf", setting]
        return _speak_file(text, [self._program, *options, "-f", SOURCE, "-o", TARGET])


class Festival:
    """Debian's ``text2wave`` with the diphone voice of festival."""

    VOICES = ("kal", "kal_diphone")

    def __init__(self) -> None:
        self._program = _program("text2wave", "festival")
        self.info = EngineInfo("synthesiser", "festival", "kal_diphone", "MIT-like (festival)")

    def speak(self, text: str, base_voice: str, language: str, rate: float = 1.0) -> Signal:
        _check_language("festival", language)
        _check_voice("festival", base_voice, self.VOICES)
        setting = f"(Parameter.set 'Duration_Stretch {1.0 / rate:.4f})"
        options = ["-eval", "(voice_kal_diphone)", "-eval", setting]
        return _speak_file(text, [self._program, *options, "-o", TARGET, SOURCE])


def _check_voice(name: str, base_voice: str, known: Sequence[str]) -> None:
    if base_voice not in known:
        raise AudioError(f"{name}: no voice {base_voice!r}, known: {', '.join(known)}")


def _speak_file(text: str, command: Sequence[str]) -> Signal:
    """What a program says of a text: ``SOURCE`` and ``TARGET`` in its command are two files."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "text.txt"), Path(folder, "speech.wav")
        source.write_text(ascii_text(text) + "\n", encoding="ascii")
        places = {SOURCE: str(source), TARGET: str(target)}
        _output([places.get(word, word) for word in command])
        return trim_silence(_mono_16k(target))


def _mono_16k(path: Path) -> Signal:
    recording = read_audio(path)
    return resample(recording.samples[0], recording.sample_rate_hz)


def _program(name: str, package: str | None = None) -> str:
    path = shutil.which(name)
    if path is None:
        raise EngineUnavailable(f"{name}: not installed; `apt-get install {package or name}`")
    return path


def _output(command: list[str], ok: tuple[int, ...] = (0,)) -> str:
    """Run a program without a shell; its failure is the item's failure."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)  # nosec B603 # no shell
    if done.returncode not in ok:
        raise AudioError(f"{Path(command[0]).name}: exit code {done.returncode}")
    return done.stdout + done.stderr


@register("synthesiser", "kokoro")
def _kokoro() -> Kokoro:
    from aegis.weights import model_dir

    try:
        from kokoro_onnx.config import DEFAULT_VOCAB
    except ImportError as error:
        raise EngineUnavailable(f"kokoro: {error}; install kokoro-onnx") from error
    return Kokoro(
        model_dir("kokoro") / "model.onnx",
        model_dir("kokoro-voices") / "voices",
        DEFAULT_VOCAB,
    )


@register("synthesiser", "piper")
def _piper() -> Piper:
    from aegis.weights import model_dir

    return Piper(model_dir("piper-joe") / "en_US-joe-medium.onnx")


@register("synthesiser", "flite")
def _flite() -> Flite:
    return Flite()


@register("synthesiser", "festival")
def _festival() -> Festival:
    return Festival()
