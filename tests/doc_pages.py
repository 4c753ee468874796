"""What the documentation's pages tell people to do: files to write and commands to run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from aegis.tables import PROJECT

_BLOCK = re.compile(r"^```(?P<head>[^\n]*)\n(?P<body>.*?)^```$", re.M | re.S)
_FILE = re.compile(r'filename="([^"]+)"')


def steps(page: str) -> list[tuple[str, str]]:
    """(file name or ``bash``, text) of every block of a page, in order."""
    found = []
    for block in _BLOCK.finditer((PROJECT / page).read_text(encoding="utf-8")):
        name = _FILE.search(block["head"])
        if name or block["head"].strip() == "bash":
            found.append((name[1] if name else "bash", block["body"]))
    return found


def commands(page: str) -> list[list[str]]:
    """The arguments of every ``aegis`` command of a page's shell blocks."""
    lines = [line for name, body in steps(page) if name == "bash" for line in body.splitlines()]
    return [shlex.split(line)[1:] for line in lines if line.startswith("aegis ")]


def write(folder: Path, name: str, body: str) -> None:
    target = folder / name
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(body, encoding="utf-8")
