"""Engines: the roles of the study, and how an engine is found.

Each role is a Protocol. Behind it stand an *embedded* engine, which runs on a
CPU with no hub and no key, and the paper's engine. A notebook names an engine
by a string; :func:`load` builds it once a process and keeps it resident.
Nothing falls back silently: an engine that cannot load raises
``EngineUnavailable``. Signals are mono float32 at 16 kHz, times are seconds.

Modules that define engines register a factory with :func:`register`; they
import their heavy libraries inside the factory.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from aegis.audio import AnySignal, Signal
from aegis.errors import ParamError

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class EngineInfo:
    """What a receipt says of an engine."""

    role: str
    name: str
    revision: str
    licence: str
    device: str = "cpu"
    embedded: bool = True


@dataclass(frozen=True)
class Word:
    """One recognised word; ``start_s``/``end_s`` are None when the engine gives no time."""

    text: str
    start_s: float | None
    end_s: float | None
    probability: float | None = None


@dataclass(frozen=True)
class Segment:
    start_s: float
    end_s: float
    text: str
    words: tuple[Word, ...] = ()


@dataclass(frozen=True)
class Transcript:
    language: str
    language_probability: float
    segments: tuple[Segment, ...]
    speech: tuple[tuple[float, float], ...]
    """Intervals in which voice activity was found, in seconds."""


@dataclass(frozen=True)
class SpeakerTurn:
    """One speaker's stretch of speech as a diarizer reports it; turns may overlap."""

    start_s: float
    end_s: float
    speaker: str


@dataclass(frozen=True)
class Voice:
    """A pseudo-voice: its pool unit and its reference signal (at least 4.5 s)."""

    voice_id: str
    reference: Signal
    base_voice: str
    language: str
    variant: dict[str, float] = field(default_factory=dict)
    """How the unit was made from ``base_voice``: f0_ratio, formant_ratio, rate."""


@dataclass(frozen=True)
class Span:
    """One edit in a turn: characters of the source text, and times where known."""

    char_start: int
    char_end: int
    replacement: str
    start_s: float | None = None
    end_s: float | None = None


@dataclass(frozen=True)
class EditRequest:
    """All that a renderer may see: the converted turn, its text, the text to reach."""

    converted: Signal
    text: str
    target_text: str
    spans: tuple[Span, ...]
    words: tuple[Word, ...]
    voice: Voice
    language: str
    seed: int


class Transcriber(Protocol):
    info: EngineInfo

    def transcribe(self, samples: Signal, language: str | None) -> Transcript: ...


class Diarizer(Protocol):
    info: EngineInfo

    def diarize(self, samples: Signal, n_speakers: int | None) -> list[SpeakerTurn]: ...


def heard_by(engine: Any, samples: AnySignal) -> AnySignal:
    """The signal as an engine takes it: an array, except where it ``reads_parts`` of a file."""
    return samples if getattr(engine, "reads_parts", False) else np.asarray(samples)


class SpeakerEncoder(Protocol):
    info: EngineInfo
    dimension: int

    def embed(self, windows: Sequence[Signal]) -> Vectors:
        """Raw embeddings, shape (len(windows), dimension); centring is the study's business."""
        ...


class Converter(Protocol):
    info: EngineInfo

    def convert(self, source: Signal, voice: Voice, context: Signal, seed: int) -> Signal:
        """Convert one turn; ``context`` is other speech of the same speaker (may be unused).

        The result has the length of ``source``.
        """
        ...


class SentenceEncoder(Protocol):
    info: EngineInfo

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Unit rows; the cosine of two is how alike two texts are."""
        ...


class Renderer(Protocol):
    info: EngineInfo

    def render(self, request: EditRequest) -> Signal:
        """The complete edited turn; a typed refusal is a ``RenderError``."""
        ...

    def note(self, request: EditRequest) -> str | None:
        """What a reader should know of this rendering although it succeeded."""
        ...


class Synthesiser(Protocol):
    info: EngineInfo

    def speak(self, text: str, base_voice: str, language: str, rate: float = 1.0) -> Signal: ...


@dataclass(frozen=True)
class TurnText:
    """One turn as a detector sees it."""

    turn_id: str
    speaker: str
    text: str


@dataclass(frozen=True)
class Mention:
    """A detected identifier: characters ``[char_start, char_end)`` of one turn's text."""

    turn_id: str
    char_start: int
    char_end: int
    category: str
    source: str
    score: float = 1.0


class Detector(Protocol):
    info: EngineInfo

    def detect(self, turns: Sequence[TurnText], language: str) -> list[Mention]:
        """Mentions over one whole conversation, in turn order; spans do not overlap."""
        ...


class AcousticEncoder(Protocol):
    info: EngineInfo
    dimension: int

    def embed(self, samples: Signal) -> Vectors:
        """One unit-norm embedding of a signal of any length, shape (dimension,)."""
        ...


@dataclass(frozen=True)
class Needs:
    """What the paper's engines need beyond installed packages, to be said before a run.

    ``environment`` is a worker's (``aegis engine install``); ``card`` means a graphics card.
    """

    weights: tuple[str, ...] = ()
    environment: str = ""
    card: bool = False


Factory = Callable[..., Any]
_MODULES = (
    "speech",
    "embedding",
    "synthesis",
    "conversion",
    "rendering",
    "bleeping",
    "detection",
    "judging",
    "judging_chat",
    "notes",
    "planning",
    "extraction",
    "sentences",
    "paper_speech",
    "paper_voice",
    "paper_render",
    "similarity",
    "systems",
)
_factories: dict[tuple[str, str], Factory] = {}
_needs: dict[tuple[str, str], Needs] = {}
_resident: dict[tuple[str, str, tuple[tuple[str, Any], ...]], Any] = {}
_parts: dict[tuple[str, str, tuple[tuple[str, Any], ...]], tuple[EngineInfo, ...]] = {}
_used: ContextVar[list[EngineInfo] | None] = ContextVar("engines_used", default=None)
_engine_s: ContextVar[list[float] | None] = ContextVar("engine_s", default=None)
_usage: ContextVar[dict[str, float] | None] = ContextVar("usage", default=None)


def register(role: str, name: str, needs: Needs | None = None) -> Callable[[Factory], Factory]:
    """Decorate a factory: ``@register("transcriber", "whisper-base")``.

    With ``needs`` it can be said what is missing without loading anything.
    """

    def keep(factory: Factory) -> Factory:
        _factories[role, name] = factory
        if needs is not None:
            _needs[role, name] = needs
        return factory

    return keep


def needs_of(role: str, name: str) -> Needs | None:
    """What an engine declares to need; None where it has to be loaded to know.

    Raises
    ------
    ParamError
        No engine of that name for the role.
    """
    if name not in names(role):
        raise ParamError(f"no {role} called {name!r}; known: {', '.join(names(role))}")
    return _needs.get((role, name))


def wants_card(engines_named: Iterable[str]) -> bool:
    """Does an engine of one of these names, in any role, need a graphics card?"""
    wanted = set(engines_named)
    names("converter")  # makes all engines known
    return any(name in wanted and need.card for (_, name), need in _needs.items())


def names(role: str) -> list[str]:
    """The engines known for a role."""
    for module in _MODULES:
        importlib.import_module(f"aegis.engines.{module}")
    return sorted(name for known, name in _factories if known == role)


def load(role: str, name: str, **options: Any) -> Any:
    """The resident engine of this process for a role and name, built on first use.

    Raises
    ------
    ParamError
        No engine of that name for the role.
    EngineUnavailable
        Its library or weights are not at hand.
    """
    key = (role, name, tuple(sorted(options.items())))
    if key not in _resident:
        if name not in names(role):
            raise ParamError(f"no {role} called {name!r}; known: {', '.join(names(role))}")
        with collect_engines() as parts:
            engine = _factories[role, name](**options)
        _resident[key], _parts[key] = engine, (engine.info, *parts)
    used = _used.get()
    if used is not None:
        used.extend(info for info in _parts[key] if info not in used)
    return _resident[key]


def resident() -> list[EngineInfo]:
    """What is loaded in this process."""
    return [info for infos in _parts.values() for info in infos]


@contextmanager
def collect_engines() -> Iterator[list[EngineInfo]]:
    """Collect the engines that :func:`load` hands out inside this block, parts included."""
    infos: list[EngineInfo] = []
    token = _used.set(infos)
    try:
        yield infos
    finally:
        _used.reset(token)


def release() -> None:
    """Forget all resident engines of this process."""
    _resident.clear()
    _parts.clear()


@contextmanager
def engine_time() -> Iterator[None]:
    """Count the enclosed wall time as bare engine time of the current item."""
    began, total = time.perf_counter(), _engine_s.get()
    try:
        yield
    finally:
        if total is not None:
            total.append(time.perf_counter() - began)


@contextmanager
def collect_engine_time() -> Iterator[list[float]]:
    """Collect what :func:`engine_time` counts inside this block (used by the item runner)."""
    times: list[float] = []
    token = _engine_s.set(times)
    try:
        yield times
    finally:
        _engine_s.reset(token)


def count_usage(**amounts: float) -> None:
    """Add what an engine paid for to the current item: requests, tokens, money."""
    total = _usage.get()
    if total is not None:
        for name, amount in amounts.items():
            total[name] = total.get(name, 0.0) + amount


@contextmanager
def collect_usage() -> Iterator[dict[str, float]]:
    """Collect what :func:`count_usage` counts inside this block (used by the item runner)."""
    total: dict[str, float] = {}
    token = _usage.set(total)
    try:
        yield total
    finally:
        _usage.reset(token)
