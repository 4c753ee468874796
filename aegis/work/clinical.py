"""Shared by the clinical stages: a stage's engine, turns by recording, rows as a table.

Unit: one recording's turns in order. Functions: :func:`load_engine`, :func:`rows_by`,
:func:`by_recording`, :func:`heard_turns`, :func:`language_of`, :func:`frame`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from aegis import engines
from aegis.tables import SCHEMAS, Run, empty_table

Item = dict[str, Any]
Tables = Mapping[str, pd.DataFrame]

LANGUAGES = ("en", "fr")


def load_engine(role: str, settings: Mapping[str, Any], run: Run) -> Any:
    """The engine that the settings name; chat engines keep their replies below ``secret/``.

    ``settings``: the engine's name under the role's last word (``judge``, ``extractor``,
    ``writer``), and for ``chat`` also ``model`` and, if wanted, ``max_cost`` and another
    folder for its ``replies``: a saved reply to the same request is not asked for again.
    """
    name = str(settings[role.rsplit("_", 1)[-1]])
    if name != "chat":
        return engines.load(role, name)
    options = {"max_cost": float(settings["max_cost"])} if "max_cost" in settings else {}
    cache = str(run.secret / str(settings.get("replies", "replies")))
    return engines.load(role, name, model=str(settings.get("model", "")), cache=cache, **options)


def language_of(value: Any) -> str:
    """The language of the rules to apply: English unless it is another that has rules."""
    return str(value) if value in LANGUAGES else "en"


def rows_by(table: pd.DataFrame, column: str = "recording_id") -> dict[str, list[Item]]:
    """Rows of a table by the value of one column, in the table's order."""
    found: dict[str, list[Item]] = {}
    for row in table.to_dict("records"):
        found.setdefault(row[column], []).append(row)
    return found


def by_recording(turns: pd.DataFrame) -> dict[str, list[Item]]:
    """Rows of ``turns`` by recording, in order."""
    return rows_by(turns.sort_values(["recording_id", "turn_index"]))


def heard_turns(turn_transcripts: pd.DataFrame) -> dict[tuple[str, str], dict[str, str]]:
    """(recording, condition) -> turn -> its fresh words."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for row in turn_transcripts.to_dict("records"):
        found.setdefault((row["recording_id"], row["condition"]), {})[row["turn_id"]] = row["text"]
    return found


def frame(name: str, rows: Sequence[Item]) -> pd.DataFrame:
    """Rows as the table of that name, which keeps its columns without any."""
    columns = list(SCHEMAS[name].columns)
    return pd.DataFrame(rows, columns=columns) if len(rows) else empty_table(name)
