"""From scripts, a folder or published corpora to the corpus tables: what is taken, its fate.

Unit: one source file, which becomes one row of ``recordings`` with status ``ok``,
``excluded`` or ``failed``, and one row of the secret ``file_map``.

Functions: :func:`select`, :func:`shorten_script`, :func:`scripted_sources`,
:func:`folder_sources`, :func:`published_sources`, :func:`ingest_items`,
:func:`recordings_frame`, :func:`file_map_frame`, :func:`gold_frames`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

import pandas as pd

from aegis import corpora, ingest
from aegis.errors import ManifestError, ParamError
from aegis.manifests import gold_tables
from aegis.scripts import Script
from aegis.tables import SCHEMAS, empty_table

GOLD = (
    "gold_turns", "gold_words", "gold_speech", "gold_mentions", "gold_facts", "gold_actions",
    "gold_chronology",
)  # fmt: skip


class Result(Protocol):
    """What became of one item of a stage."""

    @property
    def id(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def reason(self) -> str | None: ...
    @property
    def value(self) -> dict[str, Any] | None: ...


@dataclass(frozen=True)
class Source:
    """One file to ingest; ``file`` is its name (secret), ``path`` where it lies.

    ``status`` is ``ok`` until something speaks against it. ``parts`` are the files of a
    recording that has one a speaker: joined as channels, or mixed where ``mixed``.
    """

    recording_id: str
    file: str
    path: str
    sha256: str
    status: str
    reason: str | None
    language: str | None
    n_speakers: int | None
    parts: tuple[str, ...] = ()
    mixed: bool = False


def shorten_script(script: Script, max_turns: int) -> Script:
    """The first ``max_turns`` turns of a script with the truth that lies in them; 0: all."""
    if not max_turns:
        return script

    def kept(parts: Iterable[Any]) -> tuple[Any, ...]:
        return tuple(part for part in parts if part.turn_index < max_turns)

    facts = (fact for fact in script.facts if (fact.question_turn or 0) < max_turns)
    return replace(
        script, turns=kept(script.turns), facts=kept(facts), actions=kept(script.actions),
        chronology=kept(script.chronology),
    )  # fmt: skip


def select(names: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """The recordings asked for, or all.

    Raises
    ------
    ParamError
        One of them does not exist.
    """
    unknown = sorted(set(wanted) - set(names))
    if unknown:
        raise ParamError(
            f"recordings: no {', '.join(unknown[:3])}; known: {', '.join(names[:30])}"
        )
    return [name for name in names if not wanted or name in wanted]


def scripted_sources(scripts: Sequence[Script], made: Sequence[Result]) -> list[Source]:
    """The synthesised files as sources of ingest; a failed synthesis keeps its reason."""
    return [
        Source(
            result.id,
            value.get("file", ""),
            value.get("file", ""),
            value.get("sha256", ""),
            result.status,
            result.reason,
            script.language,
            len({t.speaker for t in script.turns}),
        )
        for script, result in zip(scripts, made, strict=True)
        for value in [result.value or {}]
    ]


def folder_sources(
    folder: Path, wanted: Sequence[str] = (), language: str = "", n_speakers: int = 0
) -> list[Source]:
    """The files of a folder as sources of ingest (``wanted``: only these ids)."""
    planned = ingest.plan_ids(folder)
    taken = set(select([file.recording_id for file in planned], wanted))
    return [
        Source(
            file.recording_id,
            file.name,
            str(file.path.resolve()),
            file.source_sha256,
            "excluded" if file.excluded else "ok",
            file.excluded,
            language or None,
            n_speakers or None,
        )
        for file in planned
        if file.recording_id in taken
    ]


MIXED = "-mixed"


def published_sources(
    corpus: str, folder: Path | None = None, wanted: Sequence[str] = ()
) -> list[Source]:
    """The records of published corpora as sources of ingest, after verification.

    Parameters
    ----------
    corpus
        Names joined by ``+``. ``-mixed`` after a name mixes the speakers' files into one
        channel, as the paper's diarization of PriMock57 implies.
    folder
        Where ``<name>/`` lie; default: where ``aegis fetch`` puts them.

    Raises
    ------
    ParamError
        A corpus without recordings, or an unknown record.
    ManifestError
        A corpus is not here at all.
    """
    found: list[Source] = []
    for part in corpus.split("+"):
        name, mixed = part.removesuffix(MIXED), part.endswith(MIXED)
        if name not in corpora.CONVERSATIONS:
            known = ", ".join(corpora.CONVERSATIONS)
            raise ParamError(f"corpus {name!r}: known are demo, folder, and with + {known}")
        place = corpora.data_folder(name) if folder is None else folder / name
        if not place.is_dir():
            raise ManifestError(f"{name}: not in {place.parent.name}/; run `aegis fetch {name}`")
        fates = corpora.verify_corpus(name, place)
        found += [
            _published(name, row["record_id"], row["status"], row["reason"], place, mixed)
            for row in fates.to_dict("records")
        ]
    taken = set(select([source.recording_id for source in found], wanted))
    return [source for source in found if source.recording_id in taken]


def _published(
    name: str, record: str, status: str, reason: str | None, place: Path, mixed: bool
) -> Source:
    recording_id = f"{name}/{record}"
    if status != "ok":
        return Source(recording_id, record, "", "", status, reason, None, None)
    conversation = corpora.read_conversation(name, record, place)
    paths = [str(path.resolve()) for path in conversation.audio]
    digests = [ingest.file_sha256(path) for path in conversation.audio]
    file = " ".join(path.name for path in conversation.audio)
    one = digests[0] if len(digests) == 1 else sha256("".join(digests).encode()).hexdigest()
    parts = tuple(paths) if len(paths) > 1 else ()
    # The language is left to the recogniser, as in the paper.
    return Source(
        recording_id, file, paths[0], one, "ok", None, None, len(conversation.speakers), parts,
        mixed,
    )  # fmt: skip


def ingest_items(sources: Sequence[Source]) -> list[dict[str, Any]]:
    """Items of :func:`ingest_recording` for all sources that are not out already."""
    items: list[dict[str, Any]] = []
    for source in sources:
        if source.status == "ok":
            item = {"id": source.recording_id, "path": source.path, "source_sha256": source.sha256}
            joined = {"parts": list(source.parts), "mixed": source.mixed} if source.parts else {}
            items.append(item | joined)
    return items


def recordings_frame(sources: Sequence[Source], results: Sequence[Result]) -> pd.DataFrame:
    """The table ``recordings``: every source once, with its fate.

    Of recordings with the same samples the first stays; the others are excluded.
    """
    sound = {result.id: result for result in results}
    rows: list[dict[str, Any]] = []
    for source in sources:
        row: dict[str, Any] = {
            "recording_id": source.recording_id,
            "dataset": source.recording_id.split("/")[0],
            "language": source.language,
            "layout": "unknown",
            "n_speakers_declared": source.n_speakers,
            "status": source.status,
            "reason": source.reason,
        }
        result = sound.get(source.recording_id)
        if result is not None:
            row |= result.value or {"status": result.status, "reason": result.reason}
        rows.append(row)
    frame = pd.DataFrame(rows).reindex(columns=list(SCHEMAS["recordings"].columns))
    pairs = [(row["recording_id"], row.get("sha256")) for row in rows if row["status"] == "ok"]
    for copy, first in ingest.same_sound(pairs).items():
        frame.loc[frame["recording_id"] == copy, ["status", "reason"]] = [
            "excluded", f"the same sound as {first}",
        ]  # fmt: skip
    return frame


def file_map_frame(sources: Sequence[Source]) -> pd.DataFrame:
    """The secret table of original names."""
    return pd.DataFrame(
        [
            {"recording_id": s.recording_id, "file": s.file, "source_sha256": s.sha256 or None,
             "role": "source"}
            for s in sources
        ]
    )  # fmt: skip


def gold_frames(
    scripts: Sequence[Script], made: Sequence[Result], usable: Collection[str]
) -> dict[str, pd.DataFrame]:
    """The tables of truth of the recordings in ``usable``; all empty where there is no script."""
    frames: dict[str, list[pd.DataFrame]] = {name: [empty_table(name)] for name in GOLD}
    for script, result in zip(scripts, made, strict=True):
        if result.value is None or script.recording_id not in usable:
            continue
        times = [(start, end) for start, end in result.value["turn_times"]]
        speech = pd.DataFrame(
            result.value["speech"], columns=["turn_index", "start_s", "end_s"]
        ).astype({"turn_index": int})
        speakers = [script.turns[index].speaker for index in speech["turn_index"]]
        own = gold_tables(script, times)
        own["gold_speech"] = speech.assign(recording_id=script.recording_id, speaker=speakers)
        for name in GOLD:
            frames[name].append(own[name])
    return {
        name: pd.concat([f for f in found if len(f)] or found) for name, found in frames.items()
    }
