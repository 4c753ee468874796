"""The datasheet of a release: what it holds, how it was made, what is left of the risk.

Unit: one release, described by the content of its ``release.json`` alone, so the sheet says
nothing that the archive does not hold.

Function: :func:`write`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Content = Mapping[str, Any]


def write(content: Content) -> str:
    """The sheet as Markdown."""
    parts = (_head, _composition, _making, _coverage, _risk, _accepted, _use, _files)
    return "\n".join(part(content) for part in parts)


def _table(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    lines = [f"| {' | '.join(columns)} |", f"|{' --- |' * len(columns)}"]
    for row in rows:
        cells = ("not defined" if row[name] is None else str(row[name]) for name in columns)
        lines.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    return "\n".join(lines) + "\n"


def _head(content: Content) -> str:
    kind = "Evidence and de-identified sound" if content["with_audio"] else "Evidence, no sound"
    return (
        f"# Datasheet of the release `{content['run']}`\n\n"
        f"{kind} of a de-identification study. Conditions: {', '.join(content['conditions'])}."
        f" The newest stage started {content['last_started']}.\n\n"
        "**No figure below shows that a recording is anonymous or that a legal standard is met.**"
        "\n"
    )


def _composition(content: Content) -> str:
    rows = [{"data set": name, **entry} for name, entry in content["data_sets"].items()]
    columns = ("data set", "recordings", "licence", "content", "revision", "access")
    return "## What the recordings are\n\n" + _table(columns, rows)


def _making(content: Content) -> str:
    code = content["code"]
    columns = ("role", "name", "revision", "licence", "device")
    return (
        "## How it was made\n\n"
        f"Package {code['package']}, checkout {code['checkout']}; digest of the code that the"
        f" stages ran: `{code['sha256']}`. Parameters and seeds of every stage stand in"
        " `release.json`.\n\n" + _table(columns, content["engines"])
    )


def _coverage(content: Content) -> str:
    return (
        "## Coverage\n\nSpeech without words was not searched for identifiers; in the released"
        " sound it lies in gaps, which are silent, unless a turn covers it. A recording is called"
        f" unscreened above {content['uncovered_limit']:.0%}.\n\n"
        + _table(("quantity", "covered", "of"), content["coverage"])
    )


def _risk(content: Content) -> str:
    return (
        "## Residual risk\n\nOriginals were searched by fresh recognition of the final sound: what"
        " recognition does not hear is not found. An equal error rate of one half means that the"
        " attacker tried here does no better than chance; another attacker may.\n\n"
        + _table(("measure", "condition", "value", "of"), content["residual_risk"])
    )


def _accepted(content: Content) -> str:
    accepted = content["accepted"]
    if not accepted["findings"]:
        return "## Findings against the release\n\nNone.\n"
    rows = _table(("kind", "recording_id", "condition", "detail"), accepted["findings"])
    return (
        "## Findings against the release\n\nReleased all the same, for this reason:\n\n"
        f"> {' '.join(str(accepted['reason']).split())}\n\n{rows}"
    )


def _use(content: Content) -> str:
    licences = sorted({entry["licence"] for entry in content["data_sets"].values()})
    return (
        "## Use\n\nFor research on de-identification. Do not try to re-identify a speaker, or to"
        " link this sound to other recordings. Hashes of ingested originals let whoever holds an"
        f" original recognise it. Licences of the data: {', '.join(licences)}.\n"
    )


def _files(content: Content) -> str:
    total = sum(entry["bytes"] for entry in content["files"].values())
    return (
        f"## Files\n\n{len(content['files'])} files, {total / 2**20:.1f} MiB; their SHA-256 stand"
        " in `release.json`.\n"
    )
