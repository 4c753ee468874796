"""The paper's recognisers and diarizers behind the study's Protocols.

Unit: one mono recording at 16 kHz. Recognisers: Whisper small, turbo and large-v3 through
faster-whisper with its own voice-activity filter, beam 1 and temperature 0 (a repeat run then
gives the same words), alone or batched; Canary-1B-v2 in a worker. Diarizers: the pyannote 3.1
and community-1 pipelines, and Sortformer in a worker. Telemetry of pyannote is off.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import yaml

from aegis.audio import SAMPLE_RATE_HZ, Signal
from aegis.engines import (
    EngineInfo,
    Needs,
    Segment,
    SpeakerTurn,
    Transcript,
    Word,
    register,
)
from aegis.engines.activity import find_speech, voice_probabilities
from aegis.engines.devices import choose_device
from aegis.engines.redirects import drop_redirects
from aegis.engines.worker import Worker
from aegis.errors import EngineUnavailable, ItemError
from aegis.weights import model_dir, read_card

BATCH = 16
LONGEST_SORTFORMER_S = 720.0
"""Memory grows with the square of the duration; about twelve minutes fill 48 GB."""


class PaperWhisper:
    """faster-whisper as the paper uses it; ``batched`` sets its batched pipeline before it.

    The batched pipeline takes the first temperature only, drops the previous text, and may
    give other words than the sequential one.
    """

    def __init__(
        self, name: str, folder: Path | None = None, device: str = "", batched: bool = False
    ) -> None:
        from faster_whisper import BatchedInferencePipeline, WhisperModel

        card = read_card(name)
        device = device or choose_device(name, needs_card=True)
        compute = "float16" if device == "cuda" else "int8"
        version = metadata.version("faster-whisper")
        mode = f"batched{BATCH}" if batched else "sequential"
        revision = f"{card.revision} faster-whisper-{version} {compute} beam1 vad {mode}"
        shown = f"{name}-batched" if batched else name
        self.info = EngineInfo("transcriber", shown, revision, card.licence, device, False)
        place = folder or model_dir(name)
        if not (place / "tokenizer.json").exists():
            # The library would fetch another model's.
            raise EngineUnavailable(f"{name}: no tokenizer.json beside the weights")
        self._model = WhisperModel(
            str(place), device=device, compute_type=compute, cpu_threads=1, local_files_only=True
        )
        self._batched = BatchedInferencePipeline(self._model) if batched else None

    def transcribe(self, samples: Signal, language: str | None) -> Transcript:
        """Words of one recording; ``language`` None selects it automatically."""
        probabilities = voice_probabilities(samples)
        speech = find_speech(probabilities, samples.size / SAMPLE_RATE_HZ)
        if not speech:
            return Transcript(language or "und", 1.0 if language else 0.0, (), ())
        options: dict[str, Any] = {
            "language": language, "beam_size": 1, "temperature": 0.0, "word_timestamps": True,
            "vad_filter": True,
        }  # fmt: skip
        if self._batched is not None:
            found, info = self._batched.transcribe(samples, batch_size=BATCH, **options)
        else:
            found, info = self._model.transcribe(samples, **options)
        segments = tuple(_whisper_segment(raw) for raw in found)  # the work happens here
        return Transcript(info.language, float(info.language_probability), segments, tuple(speech))


def _whisper_segment(raw: Any) -> Segment:
    words: list[Word] = []
    for word in raw.words or ():
        text = word.word.strip()
        if words and not word.word.startswith(" "):
            last = words.pop()
            sure = min(last.probability or 0.0, word.probability)
            words.append(Word(last.text + text, last.start_s, round(word.end, 3), sure))
        elif text:
            words.append(Word(text, round(word.start, 3), round(word.end, 3), word.probability))
    return Segment(round(raw.start, 3), round(raw.end, 3), raw.text.strip(), tuple(words))


# --- pyannote --------------------------------------------------------------------------------


def annotation_turns(output: Any) -> list[SpeakerTurn]:
    """Turns of a pyannote pipeline's output, by start.

    Version 3 returns an Annotation, version 4 an object that holds one as
    ``speaker_diarization``. Segments without length are left out.
    """
    annotation = getattr(output, "speaker_diarization", output)
    turns = [
        SpeakerTurn(max(0.0, float(segment.start)), float(segment.end), str(label))
        for segment, _, label in annotation.itertracks(yield_label=True)
        if segment.end > segment.start
    ]
    return sorted(turns, key=lambda turn: (turn.start_s, turn.end_s, turn.speaker))


def load_pipeline(checkpoint: str) -> Any:
    """A pyannote pipeline from a local folder or file, in version 3 or 4 of the library.

    Raises
    ------
    EngineUnavailable
        The library gives none: its conditions are not accepted, or a file is missing.
    """
    os.environ["PYANNOTE_METRICS_ENABLED"] = "0"
    from pyannote.audio import Pipeline

    accepted = inspect.signature(Pipeline.from_pretrained).parameters
    keyword = "token" if "token" in accepted else "use_auth_token"
    token = os.environ.get("HF_TOKEN") if os.environ.get("AEGIS_HUB") == "1" else None
    found = Pipeline.from_pretrained(checkpoint, **{keyword: token})
    drop_redirects()
    if found is None:
        raise EngineUnavailable(
            "pyannote gives no pipeline: accept the conditions of it and of the models that it"
            " names, or put their files into models/"
        )
    return found


@contextlib.contextmanager
def local_pipeline_31(segmentation: Path, embedding: Path, plda: Path | None) -> Iterator[str]:
    """A file with the 3.1 pipeline's settings that names local files only.

    The library chooses its loader by words in the embedding's path: it must hold "pyannote",
    else "wespeaker" in it would ask for an ONNX file.
    """
    params: dict[str, Any] = {
        "clustering": "AgglomerativeClustering",
        "embedding": str(embedding),
        "embedding_batch_size": 32,
        "embedding_exclude_overlap": True,
        "segmentation": str(segmentation),
        "segmentation_batch_size": 32,
    }
    if plda is not None:
        params["plda"] = str(plda)
    content = {
        "version": "3.1.0",
        "pipeline": {"name": "pyannote.audio.pipelines.SpeakerDiarization", "params": params},
        "params": {
            "clustering": {
                "method": "centroid", "min_cluster_size": 12, "threshold": 0.7045654963945799,
            },
            "segmentation": {"min_duration_off": 0.0},
        },
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.yaml"
        path.write_text(yaml.safe_dump(content), "utf-8")
        # A file in version 3; version 4 takes the folder as well as the file.
        yield str(path)


class PyannoteDiarizer:
    """A pyannote pipeline; what it returns in version 3 and 4 is read alike."""

    def __init__(self, pipeline: Any, name: str, revision: str, licence: str, device: str) -> None:
        self._pipeline = pipeline
        version = metadata.version("pyannote.audio")
        self.info = EngineInfo(
            "diarizer", name, f"{revision} pyannote.audio-{version}", licence, device, False
        )

    def diarize(self, samples: Signal, n_speakers: int | None) -> list[SpeakerTurn]:
        """Turns by start; None lets the pipeline find the number of speakers."""
        import torch

        if samples.size < SAMPLE_RATE_HZ // 10:
            return []
        waveform = torch.from_numpy(samples)[None]
        limits = {} if n_speakers is None else {"num_speakers": n_speakers}
        sound = {"waveform": waveform, "sample_rate": SAMPLE_RATE_HZ}
        turns = annotation_turns(self._pipeline(sound, **limits))
        return within(turns, samples.size / SAMPLE_RATE_HZ)


def within(turns: Iterable[SpeakerTurn], seconds: float) -> list[SpeakerTurn]:
    """Turns cut at a recording's end: a model's last frame may reach beyond it."""
    cut = [replace(turn, end_s=min(turn.end_s, seconds)) for turn in turns]
    return [turn for turn in cut if turn.start_s < turn.end_s]


# --- NeMo, in a worker -----------------------------------------------------------------------


def parse_sortformer(lines: Sequence[str]) -> list[SpeakerTurn]:
    """Turns from lines ``start end speaker_k`` (grouped by speaker), by start.

    Raises
    ------
    ItemError
        A line of another form.
    """
    turns = []
    for line in lines:
        parts = line.split()
        try:
            start_s, end_s = float(parts[0]), float(parts[1])
            turns.append(SpeakerTurn(max(0.0, start_s), end_s, parts[2]))
        except (IndexError, ValueError) as error:
            raise ItemError(f"failed: sortformer gave a line of {len(parts)} fields") from error
    kept = [turn for turn in turns if turn.end_s > turn.start_s]
    return sorted(kept, key=lambda turn: (turn.start_s, turn.end_s, turn.speaker))


class Sortformer:
    """NeMo's Sortformer: at most four speakers, twelve minutes at a time."""

    most_speakers = 4

    def __init__(self, worker: Worker | None = None) -> None:
        card = read_card("sortformer")
        device = "cuda" if worker is not None else choose_device("sortformer", needs_card=True)
        self.info = EngineInfo(
            "diarizer", "sortformer", card.revision, card.licence, device, False
        )
        self._worker = worker or _nemo("sortformer", device)

    def diarize(self, samples: Signal, n_speakers: int | None) -> list[SpeakerTurn]:
        """Turns by start; the number of speakers cannot be given, only refused above four."""
        seconds = samples.size / SAMPLE_RATE_HZ
        if n_speakers is not None and n_speakers > self.most_speakers:
            raise ItemError(f"unsupported: {n_speakers} speakers, at most {self.most_speakers}")
        if seconds > LONGEST_SORTFORMER_S:
            raise ItemError(
                f"unsupported: {seconds:.0f} s, at most {LONGEST_SORTFORMER_S:.0f} s at a time"
            )
        value, _ = self._worker.call("diarize", {}, {"samples": samples})
        return within(parse_sortformer(value["lines"]), seconds)


class Canary:
    """NVIDIA's Canary-1B-v2.

    ``as_paper`` keeps the interface that the paper met: text by segments, no word times, so
    edits cannot be placed. Otherwise its word times are used where there are any.
    """

    def __init__(self, as_paper: bool = False, worker: Worker | None = None) -> None:
        card = read_card("canary")
        device = "cuda" if worker is not None else choose_device("canary", needs_card=True)
        name = "canary-as-paper" if as_paper else "canary"
        self.info = EngineInfo("transcriber", name, card.revision, card.licence, device, False)
        self._as_paper = as_paper
        self._worker = worker or _nemo("canary", device)

    def transcribe(self, samples: Signal, language: str | None) -> Transcript:
        """Words of one recording.

        Raises
        ------
        ItemError
            No language: the model cannot find it out.
        """
        if language is None:
            raise ItemError("unsupported: canary needs the recording's language")
        probabilities = voice_probabilities(samples)
        speech = find_speech(probabilities, samples.size / SAMPLE_RATE_HZ)
        if not speech:
            return Transcript(language, 1.0, (), ())
        values = {"language": language[:2].lower()}
        reply, _ = self._worker.call("transcribe", values, {"samples": samples})
        return canary_transcript(reply, language, tuple(speech), self._as_paper)


def canary_transcript(
    reply: dict[str, Any], language: str, speech: tuple[tuple[float, float], ...], as_paper: bool
) -> Transcript:
    """A transcript from Canary's text, word times (-1: not aligned) and segments."""
    words = [] if as_paper else [_canary_word(*word) for word in reply["words"]]
    if not words:
        words = [Word(text, None, None) for text in reply["text"].split()]
    if not reply["segments"] or not words:
        return _one_segment(reply["text"], words, language, speech)
    segments, rest = [], words
    for text, start_s, end_s in reply["segments"]:
        n = len(text.split())
        own, rest = rest[:n], rest[n:]
        segments.append(Segment(max(0.0, start_s), max(0.0, start_s, end_s), text, tuple(own)))
    if rest or any(len(s.words) != len(s.text.split()) for s in segments):
        # Words and segments that disagree: the words are what the study needs.
        return _one_segment(reply["text"], words, language, speech)
    return Transcript(language, 1.0, tuple(segments), speech)


def _canary_word(text: str, start_s: float, end_s: float) -> Word:
    timed = 0.0 <= start_s < end_s
    return Word(text, start_s if timed else None, end_s if timed else None)


def _one_segment(
    text: str, words: Sequence[Word], language: str, speech: tuple[tuple[float, float], ...]
) -> Transcript:
    if not text.strip():
        return Transcript(language, 1.0, (), speech)
    whole = Segment(speech[0][0], speech[-1][1], text.strip(), tuple(words))
    return Transcript(language, 1.0, (whole,), speech)


def _nemo(name: str, device: str) -> Worker:
    file = model_dir(name) / read_card(name).files[0].path
    return Worker("nemo", {"model": name, "device": device, "checkpoint": str(file)})


# --- registration ----------------------------------------------------------------------------


def _register_whisper(name: str) -> None:
    needs = Needs(weights=(name,), card=True)
    register("transcriber", name, needs)(lambda: PaperWhisper(name))
    register("transcriber", f"{name}-batched", needs)(lambda: PaperWhisper(name, batched=True))


for _name in ("whisper-small", "whisper-turbo", "whisper-large-v3"):
    _register_whisper(_name)

_PYANNOTE_31 = ("pyannote-segmentation-3.0", "pyannote-wespeaker", "pyannote-community-1")


@register("diarizer", "pyannote-3.1", Needs(weights=_PYANNOTE_31, card=True))
def _pyannote_31() -> PyannoteDiarizer:
    device = choose_device("pyannote-3.1", needs_card=True)
    files = [model_dir(name) for name in _PYANNOTE_31]
    segmentation, embedding = files[0] / "pytorch_model.bin", files[1] / "pytorch_model.bin"
    # Version 4 reads the PLDA of community-1 whatever the clustering.
    four = int(metadata.version("pyannote.audio").split(".")[0]) >= 4
    with local_pipeline_31(segmentation, embedding, files[2] / "plda" if four else None) as place:
        pipeline = load_pipeline(place)
    return _on_device(pipeline, "pyannote-3.1", device)


@register("diarizer", "pyannote-community-1", Needs(weights=("pyannote-community-1",), card=True))
def _community_1() -> PyannoteDiarizer:
    device = choose_device("pyannote-community-1", needs_card=True)
    pipeline = load_pipeline(str(model_dir("pyannote-community-1")))
    return _on_device(pipeline, "pyannote-community-1", device)


def _on_device(pipeline: Any, name: str, device: str) -> PyannoteDiarizer:
    import torch

    pipeline.to(torch.device(device))
    card = read_card(name)
    return PyannoteDiarizer(pipeline, name, card.revision, card.licence, device)


@register("diarizer", "sortformer", Needs(("sortformer",), "nemo", card=True))
def _sortformer() -> Sortformer:
    return Sortformer()


@register("transcriber", "canary", Needs(("canary",), "nemo", card=True))
def _canary() -> Canary:
    return Canary()


@register("transcriber", "canary-as-paper", Needs(("canary",), "nemo", card=True))
def _canary_as_paper() -> Canary:
    return Canary(as_paper=True)
