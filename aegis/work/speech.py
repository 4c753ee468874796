"""What a worker does to listen: to one recording at ingest, to one sound made later.

Items are JSON-able and hold no words; results do and stay below ``secret/``.

Functions: :func:`transcription_items`, :func:`transcribe_recording`,
:func:`transcription_tables`, :func:`listen`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aegis import engines
from aegis.audio import (
    SAMPLE_RATE_HZ,
    AnySignal,
    LongSignal,
    Signal,
    cut,
    mono_of,
    open_wav,
    rows_of,
)
from aegis.engines import SpeakerTurn, Transcript
from aegis.engines.activity import find_speech, voice_probabilities
from aegis.errors import ItemError, ManifestError
from aegis.given import GivenTurn, read_given
from aegis.tables import SCHEMAS, Run, empty_table
from aegis.turns import (
    Stretch,
    Turn,
    attribute,
    build_turns,
    check_stretches,
    overlap_seconds,
    rename_speakers,
    snap_changes,
)
from aegis.words import HeardWord, covered_seconds, read_words

Item = dict[str, Any]
Heard = tuple[HeardWord, str | None]
"""A word and its turn."""
NO_SPEECH = "no speech found"
GIVEN = "given"
"""Stands for the recogniser or diarizer where turns were brought along."""
BLEED_DB = 12.0


@dataclass(frozen=True)
class _Channel:
    """One channel's words, its speakers' stretches and its turns."""

    transcript: Transcript
    words: list[HeardWord]
    stretches: list[Stretch]
    turns: list[Turn]


def transcription_items(
    recordings: pd.DataFrame,
    known_speakers: bool,
    given: Mapping[str, tuple[Path, str]] | None = None,
) -> list[Item]:
    """One item a usable recording, long ones first to start.

    ``given`` names the file of turns of each recording that has one
    (:func:`aegis.given.match_given`); where it is not None, the others fail.
    """
    items = []
    for row in recordings[recordings["status"] == "ok"].to_dict("records"):
        declared = row["n_speakers_declared"] if known_speakers else None
        own: Item = {}
        if given is not None:
            path, name = given.get(row["recording_id"], (None, ""))
            digest = "" if path is None else sha256(path.read_bytes()).hexdigest()
            own = {"given": {"path": str(path or ""), "name": name, "sha256": digest}}
        items.append(
            {
                "id": row["recording_id"],
                "sha256": row["sha256"],
                "layout": row["layout"],
                "language": None if pd.isna(row["language"]) else row["language"],
                "n_speakers": int(declared) if declared and not pd.isna(declared) else None,
                "cost": float(row["duration_s"]),
            }
            | own
        )
    return items


def transcribe_recording(item: Item, settings: Item, run: Run) -> Item:
    """Words, turns and screening of one recording.

    Parameters
    ----------
    item
        ``id sha256 layout language n_speakers`` (see :func:`transcription_items`); with
        ``given``, a file of turns: one with words replaces recognition and diarization, one
        without words (RTTM) diarization only.
    settings
        ``asr diarizer longest_turn_s turn_pause_s``.

    Returns
    -------
    dict
        ``words``, ``turns``, ``diarization`` and ``screening`` rows.
    """
    samples = open_wav(run.original_path(item["id"]))
    duration_s = samples.shape[-1] / SAMPLE_RATE_HZ
    automatic: list[Stretch] = []
    given = _read_turns(item)
    if given and given[0].text is not None:
        channels = _take_turns(samples, given, item)
        return _rows(item, channels, automatic, duration_s) | {"asr": GIVEN, "diarizer": GIVEN}
    if samples.ndim == 2 and item["layout"] == "speaker_per_channel":
        if given:
            raise ItemError("each channel is one speaker's, so an RTTM file says nothing more")
        channels = _listen_to_channels(samples, item, settings)
        automatic = [stretch for channel in channels for stretch in channel.stretches]
    else:
        channel, automatic = _listen_to_speakers(mono_of(samples), item, settings, given)
        channels = [channel]
    engine_names = {"diarizer": GIVEN} if given else {}
    return _rows(item, channels, automatic, duration_s) | engine_names


def _read_turns(item: Item) -> list[GivenTurn]:
    """The turns that were brought along for this recording; empty where none are asked for."""
    if "given" not in item:
        return []
    if not item["given"]["path"]:
        raise ItemError("no file of turns has the name of this recording")
    try:
        return read_given(Path(item["given"]["path"]), item["given"]["name"])
    except ManifestError as error:
        # The message would hold the file's name, which may identify somebody.
        raise ItemError(str(error).replace(Path(item["given"]["path"]).name, "turns")) from error


def _take_turns(samples: AnySignal, given: Sequence[GivenTurn], item: Item) -> list[_Channel]:
    """Turns with words as they were given; their words have no times.

    Where each channel is one speaker's, a turn belongs to its loudest channel.
    """
    if not item["language"]:
        raise ItemError("given turns need the parameter language of 00_corpora")
    apart = samples.ndim == 2 and item["layout"] == "speaker_per_channel"
    rows = rows_of(samples) if apart else [mono_of(samples)]
    duration_s = samples.shape[-1] / SAMPLE_RATE_HZ
    placed = check_stretches([Stretch(t.start_s, t.end_s, t.speaker) for t in given], duration_s)
    loudest = [_loudest_channel(rows, stretch) for stretch in placed]
    channels = []
    for number, own in enumerate(rows):
        with engines.engine_time():
            speech = find_speech(voice_probabilities(own), duration_s)
        words: list[HeardWord] = []
        turns: list[Turn] = []
        stretches: list[Stretch] = []
        for turn, stretch, channel in zip(given, placed, loudest, strict=True):
            spoken = (turn.text or "").split()
            if channel != number or not spoken:
                continue
            first, within = len(words), (stretch.start_s, stretch.end_s)
            words += [
                HeardWord(text, None, None, None, number, False, stretch.speaker, within)
                for text in spoken
            ]
            places = tuple(range(first, len(words)))
            turns.append(Turn(stretch.speaker, number, stretch.start_s, stretch.end_s, places))
            stretches.append(stretch)
        transcript = Transcript(item["language"], 1.0, (), tuple(speech))
        channels.append(_Channel(transcript, words, stretches, turns))
    return channels


def _loudest_channel(rows: Sequence[AnySignal], stretch: Stretch) -> int:
    pieces = (cut(row, stretch.start_s, stretch.end_s) for row in rows)
    return int(np.argmax([np.square(piece, dtype=np.float64).sum() for piece in pieces]))


def _listen_to_speakers(
    samples: AnySignal, item: Item, settings: Item, given: Sequence[GivenTurn] = ()
) -> tuple[_Channel, list[Stretch]]:
    """One channel of several speakers; beside it what the diarizer finds by itself."""
    transcript = _transcribe(samples, item["language"], settings)
    duration_s = samples.size / SAMPLE_RATE_HZ
    if given:
        found = [SpeakerTurn(turn.start_s, turn.end_s, turn.speaker) for turn in given]
        free: list[SpeakerTurn] = []
    else:
        diarizer = engines.load("diarizer", settings["diarizer"])
        heard = engines.heard_by(diarizer, samples)
        with engines.engine_time():
            found = diarizer.diarize(heard, item["n_speakers"])
            free = diarizer.diarize(heard, None) if item["n_speakers"] else found
    stretches, automatic = (
        check_stretches([Stretch(t.start_s, t.end_s, t.speaker) for t in turns], duration_s)
        for turns in (found, free)
    )
    if not stretches:  # speech that no diarizer divides is one speaker's
        stretches = [Stretch(a, b, "0") for a, b in transcript.speech if b > a]
    words = snap_changes(attribute(read_words(transcript, duration_s), stretches))
    turns = _turns(words, stretches, transcript, duration_s, settings)
    return _Channel(transcript, words, stretches, turns), automatic


def _listen_to_channels(samples: AnySignal, item: Item, settings: Item) -> list[_Channel]:
    """Each channel is one speaker; the louder channel's bleed is muted in the others."""
    channels, language = [], item["language"]
    duration_s = samples.shape[-1] / SAMPLE_RATE_HZ
    for number, own in enumerate(rows_of(mute_bleed(samples))):
        transcript = _transcribe(own, language, settings)
        language = language or (transcript.language if transcript.segments else None)
        name = str(number)
        stretches = [Stretch(a, b, name) for a, b in transcript.speech if b > a]
        heard = read_words(transcript, duration_s, number)
        words = [replace(word, speaker=name) for word in heard]
        turns = _turns(words, stretches, transcript, duration_s, settings)
        channels.append(_Channel(transcript, words, stretches, turns))
    return channels


def _transcribe(samples: AnySignal, language: str | None, settings: Item) -> Transcript:
    transcriber = engines.load("transcriber", settings["asr"])
    heard = engines.heard_by(transcriber, samples)
    with engines.engine_time():
        transcript: Transcript = transcriber.transcribe(heard, language)
    return transcript


def _turns(
    words: Sequence[HeardWord],
    stretches: Sequence[Stretch],
    transcript: Transcript,
    duration_s: float,
    settings: Item,
) -> list[Turn]:
    longest_s, pause_s = settings["longest_turn_s"], settings["turn_pause_s"]
    return build_turns(words, stretches, transcript.speech, duration_s, longest_s, pause_s)


def mute_bleed(
    samples: AnySignal, louder_db: float = BLEED_DB, frame_s: float = 0.05
) -> LongSignal:
    """Silence each channel, shape (channels, n), where another one is louder by ``louder_db``."""
    frame = round(frame_s * SAMPLE_RATE_HZ)
    power = _frame_power(samples, frame)
    # Three frames around decide, so that the quiet start of a word is not cut off.
    wide = np.stack([np.convolve(row, np.ones(3) / 3, mode="same") for row in power])
    keep = wide * 10 ** (louder_db / 10) >= wide.max(axis=0, keepdims=True)

    def read(first: int, last: int) -> Signal:
        mask = np.repeat(keep[:, first // frame : -(-last // frame)], frame, axis=1)
        at = first % frame
        return np.asarray(samples[..., first:last] * mask[:, at : at + last - first], np.float32)

    return LongSignal(samples.shape, read)


def _frame_power(samples: AnySignal, frame: int) -> NDArray[np.float64]:
    """Mean power of each frame, shape (channels, frames); the last one continued with silence."""
    found, step = [], 1000 * frame
    for first in range(0, samples.shape[1], step):
        part = samples[..., first : first + step]
        padded = np.pad(part, ((0, 0), (0, -part.shape[1] % frame)))
        squares = np.square(padded.reshape(len(padded), -1, frame), dtype=np.float64)
        found.append(squares.mean(axis=2))
    return np.concatenate(found, axis=1)


def _rows(
    item: Item, channels: Sequence[_Channel], automatic: Sequence[Stretch], duration_s: float
) -> Item:
    """The four tables' rows of one recording."""
    turns = [turn for channel in channels for turn in channel.turns]
    stretches = sorted(
        (stretch for channel in channels for stretch in channel.stretches),
        key=lambda stretch: (stretch.start_s, stretch.end_s),
    )
    names = rename_speakers(turns, stretches)
    order = sorted(range(len(turns)), key=lambda i: (turns[i].start_s, turns[i].channel))
    language = max(channels, key=lambda c: len(c.words)).transcript.language
    turn_rows, turn_of = [], {}
    for index, i in enumerate(order):
        turn = turns[i]
        own = channels[turn.channel if len(channels) > 1 else 0].words
        spoken = [own[k] for k in turn.words]
        turn_id = turn.turn_id(item["sha256"])
        turn_of.update({(turn.channel, k): turn_id for k in turn.words})
        turn_rows.append(
            {
                "turn_id": turn_id,
                "turn_index": index,
                "profile_id": f"{item['id']}/{names[turn.speaker]}",
                "speaker": names[turn.speaker],
                "channel": turn.channel,
                "start_s": turn.samples[0] / SAMPLE_RATE_HZ,
                "end_s": turn.samples[1] / SAMPLE_RATE_HZ,
                "text": " ".join(word.text for word in spoken),
                "language": language,
                "n_words": len(spoken),
                "flagged": any(word.flagged for word in spoken),
            }
        )
    heard = [(w, turn_of.get((w.channel, k))) for own in channels for k, w in enumerate(own.words)]
    words = [_word_row(word, turn_id, names) for word, turn_id in _in_order(heard)]
    screening = _screening(channels, turns, stretches, automatic, words, duration_s)
    found = rename_speakers([], automatic)
    return {
        "language": language,
        "words": words,
        "turns": turn_rows,
        "diarization": _stretch_rows("used", stretches, names)
        + _stretch_rows("automatic", automatic, found),
        "screening": screening,
    }


def _word_row(word: HeardWord, turn_id: str | None, names: Mapping[str, str]) -> Item:
    return {
        "turn_id": turn_id,
        "speaker": None if word.speaker is None else names.get(word.speaker),
        "channel": word.channel,
        "start_s": word.start_s,
        "end_s": word.end_s,
        "text": word.text,
        "probability": None if word.probability is None else round(word.probability, 4),
        "timed": word.timed,
        "flagged": word.flagged,
    }


def _in_order(words: Sequence[Heard]) -> list[Heard]:
    """Words of all channels by time; one without a place stays behind the one before."""
    keyed, latest = [], 0.0
    for number, (word, _) in enumerate(words):
        if number and word.channel != words[number - 1][0].channel:
            latest = 0.0
        latest = word.place[0] if word.place else latest
        keyed.append((latest, word.channel, number))
    return [words[number] for *_, number in sorted(keyed)]


def _stretch_rows(mode: str, stretches: Iterable[Stretch], names: Mapping[str, str]) -> list[Item]:
    return [
        {
            "mode": mode,
            "segment_index": index,
            "speaker": names[stretch.speaker],
            "start_s": round(stretch.start_s, 4),
            "end_s": round(stretch.end_s, 4),
        }
        for index, stretch in enumerate(stretches)
    ]


def _screening(
    channels: Sequence[_Channel],
    turns: Sequence[Turn],
    stretches: Sequence[Stretch],
    automatic: Sequence[Stretch],
    words: Sequence[Item],
    duration_s: float,
) -> Item:
    speech_s = covered_s = 0.0
    for number, channel in enumerate(channels):
        spans = [(t.start_s, t.end_s) for t in turns if len(channels) == 1 or t.channel == number]
        speech = channel.transcript.speech
        speech_s += covered_seconds([(0.0, duration_s)], speech)
        covered_s += covered_seconds(spans, speech)
    longest = max(channels, key=lambda c: len(c.words)).transcript
    silent = not any(channel.words for channel in channels)
    return {
        "language": None if silent else longest.language,
        "language_probability": None if silent else longest.language_probability,
        "n_speakers": len({turn.speaker for turn in turns}),
        "n_speakers_found": len({stretch.speaker for stretch in automatic}),
        "n_words": len(words),
        "n_turns": len(turns),
        "n_flagged": sum(word["flagged"] for word in words),
        "n_untimed": sum(not word["timed"] for word in words),
        "speech_s": speech_s,
        "covered_s": covered_s,
        "uncovered_s": max(0.0, speech_s - covered_s),
        "overlap_s": overlap_seconds(stretches),
        "status": "not_applicable" if silent else "ok",
        "reason": NO_SPEECH if silent else None,
    }


def transcription_tables(
    results: Sequence[Any], settings: Mapping[str, Any]
) -> dict[str, pd.DataFrame]:
    """``words turns turn_times screening diarization`` from the items' results."""
    rows: dict[str, list[Item]] = {
        name: [] for name in ("words", "turns", "screening", "diarization")
    }
    for result in results:
        shared = {"recording_id": result.id}
        engine_names = {"asr": settings["asr"], "diarizer": settings["diarizer"]}
        if result.status != "ok":
            counts = dict.fromkeys(("n_words", "n_turns", "n_flagged", "n_untimed"), 0)
            fate = {"status": result.status, "reason": result.reason}
            rows["screening"].append(shared | counts | engine_names | fate)
            continue
        value = result.value
        engine_names |= {name: value[name] for name in engine_names if name in value}
        screened = shared | engine_names | value["screening"]
        if engine_names["diarizer"] == GIVEN:
            screened["n_speakers_found"] = None  # nobody looked for speakers
        rows["screening"].append(screened)
        rows["turns"] += [
            shared | row | {"status": "ok", "reason": None} for row in value["turns"]
        ]
        rows["diarization"] += [shared | row for row in value["diarization"]]
        rows["words"] += [shared | {"word_index": k} | row for k, row in enumerate(value["words"])]
    tables = {name: _frame(name, found) for name, found in rows.items()}
    tables["turn_times"] = tables["turns"][list(SCHEMAS["turn_times"].columns)]
    return tables


def _frame(name: str, rows: list[Item]) -> pd.DataFrame:
    columns = list(SCHEMAS[name].columns)
    return pd.DataFrame(rows, columns=columns) if rows else empty_table(name)
