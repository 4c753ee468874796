"""Stressors: what may happen to a recording before the pipeline hears it.

Unit: one recording, shape ``(channels, n)`` at 16 kHz, and one declared stressor. Acoustic
stressors change the sound; administrative ones insert complete turns that carry no clinical
content, at boundaries between complete turns. Every stressor is seeded and has one fixed
strength, declared in :data:`ACOUSTIC` and :data:`ADMINISTRATIVE` before anything is
measured; the sizes of the two families of tests stand in :data:`aegis.contrasts.FAMILIES`.
The paper names 12 dB of room noise and administrative stressors at complete-turn
boundaries; the other strengths and the wording of the turns are ours.

A :class:`Clock` takes times of the original to times of the stressed recording.

Functions: :func:`stress`, :func:`plan_insertions`, :func:`check_plan`,
:func:`insert_turns`, :func:`places`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import signal

from aegis.audio import SAMPLE_RATE_HZ, Signal, resample
from aegis.errors import AudioError

SNR_DB = 12.0
REVERB_T60_S = 0.6
DIRECT_TO_REVERB_DB = 3.0
TELEPHONE_HZ = 8000
PACKET_S = 0.02
PACKET_LOSS = 0.1
PACKET_BURST = 2.0
CLIPPED_SHARE = 0.05
RATE = 1.25
PAUSE_S = 0.5
_FRAME = 320


Wave = NDArray[np.float64]


# --- the sound -------------------------------------------------------------------------


@dataclass(frozen=True)
class Clock:
    """Times of the original -> times of the stressed recording, in seconds.

    ``scale`` multiplies; ``insertions`` are (time in the original, inserted seconds).
    """

    scale: float = 1.0
    insertions: tuple[tuple[float, float], ...] = ()

    def forward(self, time_s: float) -> float:
        before = sum(length for at, length in self.insertions if at <= time_s)
        return self.scale * time_s + before


@dataclass(frozen=True)
class Acoustic:
    """One declared acoustic stressor."""

    name: str
    strength: str
    apply: Callable[[Wave, np.random.Generator], Wave]
    scale: float = 1.0


def stress(samples: Signal, stressor: str, rng: np.random.Generator) -> tuple[Signal, Clock]:
    """A recording under one acoustic stressor; its level stays below full scale.

    Raises
    ------
    AudioError
        The recording is silent, so that a signal-to-noise ratio has no meaning.
    KeyError
        No such stressor.
    """
    chosen = ACOUSTIC_WITH_NULL[stressor]
    if not np.any(samples):
        raise AudioError("a silent recording cannot be stressed")
    shaped = np.atleast_2d(samples).astype(np.float64)
    out = chosen.apply(shaped, rng)
    peak = float(np.abs(out).max())
    out = out * min(1.0, 0.99 / peak) if chosen.name != "none" else out
    result = out[0] if samples.ndim == 1 else out
    return np.asarray(result, dtype=np.float32), Clock(chosen.scale)


def speech_power(samples: Wave) -> float:
    """Mean power of the 20-ms frames within 30 dB of the loud ones (95th percentile)."""
    n = samples.shape[1] // _FRAME
    whole = samples[:, : n * _FRAME].reshape(len(samples), n, _FRAME)
    power = np.square(whole).mean(axis=2).ravel()
    return float(power[power >= np.percentile(power, 95) * 1e-3].mean())


def _unchanged(samples: Wave, rng: np.random.Generator) -> Wave:
    return samples


def _room_noise(samples: Wave, rng: np.random.Generator) -> Wave:
    """Noise with 3 dB less per octave above 50 Hz, the same in all channels."""
    n = samples.shape[1]
    spectrum = np.fft.rfft(rng.standard_normal(n))
    spectrum /= np.sqrt(np.maximum(np.fft.rfftfreq(n, 1 / SAMPLE_RATE_HZ), 50.0))
    spectrum[0] = 0.0
    noise = np.fft.irfft(spectrum, n)
    level = speech_power(samples) * 10 ** (-SNR_DB / 10)
    return np.asarray(samples + noise * np.sqrt(level / np.mean(noise**2)))


def room_response(rng: np.random.Generator) -> Wave:
    """A room's impulse response: the direct sound, then noise that fades by 60 dB in T60."""
    n = round(REVERB_T60_S * SAMPLE_RATE_HZ)
    fade = 10.0 ** (-3.0 * np.arange(n) / n)
    tail = rng.standard_normal(n) * fade
    tail[: round(0.005 * SAMPLE_RATE_HZ)] = 0.0
    tail *= np.sqrt(10 ** (-DIRECT_TO_REVERB_DB / 10) / np.sum(tail**2))
    tail[0] = 1.0
    return np.asarray(tail)


def _reverberation(samples: Wave, rng: np.random.Generator) -> Wave:
    response = room_response(rng)
    return np.stack([signal.fftconvolve(row, response)[: row.size] for row in samples])


def _telephone(samples: Wave, rng: np.random.Generator) -> Wave:
    """300 to 3400 Hz, 8 kHz, eight bits of mu-law."""
    narrow = resample(samples.astype(np.float32), SAMPLE_RATE_HZ, TELEPHONE_HZ)
    band = signal.butter(4, (300, 3400), "bandpass", fs=TELEPHONE_HZ, output="sos")
    filtered = signal.sosfiltfilt(band, narrow, axis=-1)
    peak = float(np.abs(filtered).max()) or 1.0
    coded = np.sign(filtered) * np.log1p(255 * np.abs(filtered) / peak) / np.log(256)
    coded = np.rint(coded * 127) / 127
    decoded = np.sign(coded) * (256 ** np.abs(coded) - 1) / 255 * peak
    wide = resample(decoded.astype(np.float32), TELEPHONE_HZ, SAMPLE_RATE_HZ)
    out = np.zeros_like(samples)
    n = min(wide.shape[-1], out.shape[-1])
    out[:, :n] = wide[:, :n]
    return out


def lost_packets(n: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Which of ``n`` packets are lost: two states, mean share and mean burst as declared."""
    leave = 1.0 / PACKET_BURST
    enter = leave * PACKET_LOSS / (1.0 - PACKET_LOSS)
    draws, lost, state = rng.random(n), np.zeros(n, dtype=bool), False
    for i, draw in enumerate(draws):
        state = draw >= leave if state else draw < enter
        lost[i] = state
    return lost


def _packet_loss(samples: Wave, rng: np.random.Generator) -> Wave:
    """Lost packets are silent; nothing conceals them."""
    length = round(PACKET_S * SAMPLE_RATE_HZ)
    lost = lost_packets(-(-samples.shape[1] // length), rng)
    return np.asarray(samples * ~np.repeat(lost, length)[: samples.shape[1]])


def _clipping(samples: Wave, rng: np.random.Generator) -> Wave:
    """The loudest 5 % of the samples of speech are cut off."""
    magnitude = np.abs(samples)
    speech = magnitude[magnitude > np.sqrt(speech_power(samples)) / 10]
    limit = float(np.quantile(speech, 1.0 - CLIPPED_SHARE))
    return np.asarray(np.clip(samples, -limit, limit))


def _faster(samples: Wave, rng: np.random.Generator) -> Wave:
    """A quarter faster at the same pitch (phase vocoder)."""
    import librosa

    n = round(samples.shape[1] / RATE)
    rows = [librosa.effects.time_stretch(row.astype(np.float32), rate=RATE) for row in samples]
    return np.stack([librosa.util.fix_length(row, size=n) for row in rows]).astype(np.float64)


NULL = Acoustic("none", "the recording as it is: a null control", _unchanged)
ACOUSTIC: dict[str, Acoustic] = {
    stressor.name: stressor
    for stressor in [
        Acoustic("room_noise", f"pink noise, {SNR_DB:g} dB below the speech", _room_noise),
        Acoustic(
            "reverberation",
            f"T60 {REVERB_T60_S:g} s, direct sound {DIRECT_TO_REVERB_DB:g} dB over the room",
            _reverberation,
        ),
        Acoustic("telephone", "300-3400 Hz, 8 kHz, mu-law", _telephone),
        Acoustic(
            "packet_loss",
            f"{PACKET_LOSS:.0%} of 20-ms packets, bursts of {PACKET_BURST:g} on average, silent",
            _packet_loss,
        ),
        Acoustic("clipping", f"the loudest {CLIPPED_SHARE:.0%} of speech samples", _clipping),
        Acoustic("speaking_rate", f"{RATE:g} times as fast, same pitch", _faster, 1 / RATE),
    ]
}
ACOUSTIC_WITH_NULL = {NULL.name: NULL} | ACOUSTIC


# --- administrative turns --------------------------------------------------------------


@dataclass(frozen=True)
class Said:
    """One turn of a conversation as a plan sees it; ``role`` is clinician, patient, ..."""

    speaker: str
    role: str
    text: str
    start_s: float = 0.0
    end_s: float = 0.0


@dataclass(frozen=True)
class Insertion:
    """Turns spoken between turn ``after`` and the next one."""

    after: int
    turns: tuple[Said, ...]


CARER, OTHER = "carer", "other"
"""Who speaks an administrative turn: the professional, or somebody else who is there."""
PROFESSIONALS = ("clinician", "nurse", "pharmacist", "doctor")

ADMINISTRATIVE: dict[str, dict[str, tuple[tuple[str, str], ...]]] = {
    "interruption": {
        "en": (
            (CARER, "Sorry, somebody is knocking. Just a moment, please."),
            (OTHER, "No problem, go ahead."),
        ),
        "fr": (
            (CARER, "Excusez-moi, on frappe. Un instant, s'il vous plaît."),
            (OTHER, "Pas de problème, allez-y."),
        ),
    },
    "paperwork": {
        "en": (
            (CARER, "Let me just open the form on the screen. The computer is slow."),
            (OTHER, "That's all right."),
        ),
        "fr": (
            (CARER, "J'ouvre juste le formulaire à l'écran. L'ordinateur est lent."),
            (OTHER, "D'accord, très bien."),
        ),
    },
    "connection": {
        "en": (
            (OTHER, "Sorry, the sound was gone. Can you hear me?"),
            (CARER, "Yes, I can hear you. Let's go on."),
        ),
        "fr": (
            (OTHER, "Pardon, le son a coupé. Vous m'entendez ?"),
            (CARER, "Oui, je vous entends. Continuons."),
        ),
    },
}
"""Kind -> language -> who says what; the replies follow one another without a gap."""

Inventory = Callable[[Sequence[Said], str], Sequence[tuple[int, str]]]
"""(turns, language) -> clinical items as (turn index, what it says), in a fixed order."""


def boundaries(turns: Sequence[Said]) -> list[int]:
    """Turns after which something may be inserted.

    The turn ends a sentence, asks nothing, and neither it nor any turn before reaches into
    the next one; the first and last turn of a conversation stay together with it.
    """
    found, latest = [], 0.0
    for i, turn in enumerate(turns[:-1]):
        latest = max(latest, turn.end_s)
        ends = re.search(r"[.!]['’\")\]]*$", turn.text.strip()) is not None
        apart = latest <= turns[i + 1].start_s
        if i and ends and apart and turns[i + 1].speaker != turn.speaker:
            found.append(i)
    return found


def plan_insertions(
    turns: Sequence[Said], kind: str, language: str, rng: np.random.Generator, n: int = 2
) -> list[Insertion]:
    """Where the turns of one kind go: ``n`` boundaries, or as many as there are.

    Speakers are the professional who speaks most and the other person who speaks most.
    An empty plan means that the language has no wording, a side is missing, or there is no
    boundary.
    """
    wording = ADMINISTRATIVE[kind].get(language)
    sides = {side: _speaker_of(turns, side) for side in (CARER, OTHER)}
    places = boundaries(turns)
    if wording is None or None in sides.values() or not places:
        return []
    chosen = sorted(rng.choice(places, size=min(n, len(places)), replace=False).tolist())
    said = tuple(
        Said(speaker.speaker, speaker.role, text)
        for side, text in wording
        if (speaker := sides[side]) is not None
    )
    return [Insertion(int(after), said) for after in chosen]


def _speaker_of(turns: Sequence[Said], side: str) -> Said | None:
    own = [turn for turn in turns if (turn.role in PROFESSIONALS) == (side == CARER)]
    counts = {turn.speaker: sum(t.speaker == turn.speaker for t in own) for turn in own}
    if not counts:
        return None
    most = max(sorted(counts), key=lambda name: counts[name])
    return next(turn for turn in own if turn.speaker == most)


def apply_plan(turns: Sequence[Said], plan: Sequence[Insertion]) -> list[Said]:
    """The conversation with the plan's turns in their places."""
    added = {insertion.after: insertion.turns for insertion in plan}
    return [said for i, turn in enumerate(turns) for said in (turn, *added.get(i, ()))]


def check_plan(
    turns: Sequence[Said], plan: Sequence[Insertion], language: str, inventory: Inventory
) -> list[str]:
    """Why a plan is rejected; empty when it may be spoken.

    It must leave clinical content alone (the inventory of the whole conversation is the
    same with and without it, and no inserted turn holds a number), keep roles (only people
    who are there speak, in their own role), and keep the conversation coherent (complete
    turns only, never between a question and its answer, each place once).
    """
    reasons = []
    roles = {turn.speaker: turn.role for turn in turns}
    allowed = set(boundaries(turns))
    places = [insertion.after for insertion in plan]
    if len(set(places)) < len(places):
        reasons.append("coherence: two insertions at one place")
    for insertion in plan:
        if insertion.after not in allowed:
            reasons.append(f"coherence: turn {insertion.after} is no complete-turn boundary")
        for said in insertion.turns:
            if roles.get(said.speaker) != said.role:
                reasons.append(f"role: {said.speaker} is not there as {said.role}")
            if not re.search(r"[.!?]$", said.text.strip()):
                reasons.append(f"coherence: {said.speaker} speaks no complete turn")
            if re.search(r"\d", said.text):
                reasons.append("clinical content: an inserted turn holds a number")
    after = dict.fromkeys(range(len(turns)), 0)
    for insertion in plan:
        for i in after:
            after[i] += len(insertion.turns) if i > insertion.after else 0
    before = [(i + after[i], what) for i, what in inventory(turns, language)]
    if sorted(before) != sorted(inventory(apply_plan(turns, plan), language)):
        reasons.append("clinical content: the inventory of the conversation changes")
    return list(dict.fromkeys(reasons))


def insert_turns(
    samples: Signal,
    places_s: Sequence[float],
    spoken: Sequence[Sequence[tuple[int, Signal]]],
) -> tuple[Signal, Clock, list[list[tuple[float, float]]]]:
    """Splice spoken turns into a recording.

    Parameters
    ----------
    samples
        Shape ``(channels, n)``.
    places_s
        Where the recording is opened, ascending, in its own seconds.
    spoken
        For each place the turns as (channel, signal).

    Returns
    -------
    (samples, clock, times)
        The longer recording, its clock, and for each place the (start, end) in seconds of
        each inserted turn. Half a second of silence stands before and after each of them.
    """
    pause = round(PAUSE_S * SAMPLE_RATE_HZ)
    parts, insertions, times, last = [], [], [], 0
    written = 0
    for place_s, turns in zip(places_s, spoken, strict=True):
        at = round(place_s * SAMPLE_RATE_HZ)
        parts.append(samples[:, last:at])
        written += at - last
        begun, own = written, []
        for channel, sound in turns:
            block = np.zeros((len(samples), sound.size + pause), dtype=np.float32)
            block[channel, pause:] = sound
            own.append(
                (
                    (written + pause) / SAMPLE_RATE_HZ,
                    (written + pause + sound.size) / SAMPLE_RATE_HZ,
                )
            )
            parts.append(block)
            written += block.shape[1]
        parts.append(np.zeros((len(samples), pause), dtype=np.float32))
        written += pause
        insertions.append((at / SAMPLE_RATE_HZ, (written - begun) / SAMPLE_RATE_HZ))
        times.append(own)
        last = at
    parts.append(samples[:, last:])
    return np.concatenate(parts, axis=1), Clock(1.0, tuple(insertions)), times


def places(turns: Sequence[Said], plan: Sequence[Insertion]) -> list[float]:
    """Where a plan opens the recording: the middle between the two turns, in seconds."""
    ends = np.maximum.accumulate([turn.end_s for turn in turns])
    return [(float(ends[i.after]) + turns[i.after + 1].start_s) / 2 for i in plan]


def align(
    source: Sequence[tuple[float, float]], target: Sequence[tuple[float, float, str]], clock: Clock
) -> list[str]:
    """Text of each turn of the original, from the turns of a stressed recording.

    A turn of the stressed recording belongs to the turn of the original with which it
    shares most time; one that shares none (an inserted turn) belongs to nobody.
    """
    spans = [(clock.forward(start), clock.forward(end)) for start, end in source]
    texts: dict[int, list[str]] = {}
    for start, end, text in target:
        shared = [min(end, b) - max(start, a) for a, b in spans]
        best = int(np.argmax(shared)) if shared else -1
        if best >= 0 and shared[best] > 0:
            texts.setdefault(best, []).append(text)
    return [" ".join(texts.get(i, [])) for i in range(len(spans))]


INSERTED = "two exchanges inserted at complete-turn boundaries"
STRENGTHS: Mapping[str, str] = {
    **{name: stressor.strength for name, stressor in ACOUSTIC.items()},
    **dict.fromkeys(ADMINISTRATIVE, INSERTED),
}
"""What each stressor does, for a page."""
