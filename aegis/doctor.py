"""What a profile needs, checked before anything runs.

One :class:`Finding` a thing: engines with their weights, programs, data, disk,
graphics card. A finding that is not OK says the way out.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aegis import engines
from aegis.errors import AegisError
from aegis.params import StudyParams
from aegis.pipeline import effective_parameters, find_notebooks, n_cores, runs_folder, stage_order
from aegis.tables import PROJECT, Run

ROLES = (
    "transcriber", "diarizer", "encoder", "synthesiser", "converter", "renderer", "detector",
)  # fmt: skip
# Other words that notebooks use for a role in a parameter's name.
_WORDS = {"asr": "transcriber", "backend": "encoder", "backends": "encoder"}
_PROGRAMS = ("ffmpeg", "flite", "text2wave")
_PACKAGE_OF = {"text2wave": "festival"}
_FREE_GIB = 5.0
_PLACES = re.compile(r"(^|_)(folder|path|file|pool)s?$")


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    subject: str
    ok: bool
    detail: str
    way_out: str = ""


def examine(params: StudyParams) -> list[Finding]:
    """Look at all that the profile's stages need."""
    run = Run(runs_folder() / params.run_name)
    notebooks = find_notebooks()
    values = {
        name: effective_parameters(params, name, notebooks[name], run)
        for name in stage_order(params, notebooks)
    }
    return [
        *_engines(values),
        *_data(values),
        *_programs(),
        *_keys(values),
        _disk(),
        Finding("cores", True, f"{n_cores()} usable"),
        _graphics(),
    ]


def _engines(values: dict[str, dict[str, Any]]) -> Iterator[Finding]:
    for role, name in sorted(engines_named(values)):
        subject = f"{role} {name}"
        try:
            info = engines.load(role, name).info
        except AegisError as error:
            yield Finding(subject, False, str(error), "`aegis fetch` brings embedded weights")
        except Exception as error:  # noqa: BLE001 - a broken library is a finding, too
            said = f"{type(error).__name__}: {error}"
            yield Finding(subject, False, said, "scripts/setup_venv.sh installs libraries")
        else:
            kind = "embedded" if info.embedded else "the paper's"
            yield Finding(subject, True, f"{kind}, revision {info.revision}, {info.device}")
        finally:
            engines.release()


def engines_named(values: dict[str, dict[str, Any]]) -> set[tuple[str, str]]:
    """(role, engine) pairs that parameters name, by role words in a parameter's name.

    ``asr``, ``renderer_a`` or ``encoders`` name a role; an empty string or None names none.
    """
    found = set()
    for parameters in values.values():
        for key, value in parameters.items():
            role = _role_of(key)
            named = value if isinstance(value, list) else [value]
            if role is not None:
                found |= {(role, name) for name in named if isinstance(name, str) and name}
    return found


def _role_of(parameter: str) -> str | None:
    for word in (parameter.split("_")[0], parameter):
        singular = word.removesuffix("s")
        for candidate in (word, singular):
            if candidate in ROLES or candidate in _WORDS:
                return _WORDS.get(candidate, candidate)
    return None


def _data(values: dict[str, dict[str, Any]]) -> Iterator[Finding]:
    for stage, parameters in values.items():
        for key, value in parameters.items():
            if not _PLACES.search(key):
                continue
            named = value if isinstance(value, list) else [value]
            for path in (v for v in named if isinstance(v, str) and v):
                place = PROJECT / Path(path).expanduser()
                there = place.exists()
                detail = "there" if there else f"{path} does not exist"
                yield Finding(f"data {stage}.{key}", there, detail, f"set -p {stage}.{key}=PATH")


def _programs() -> Iterator[Finding]:
    for name in _PROGRAMS:
        there = shutil.which(name) is not None
        package = _PACKAGE_OF.get(name, name)
        yield Finding(
            f"program {name}",
            there,
            "there" if there else "not found",
            f"apt-get install {package}",
        )


def _keys(values: dict[str, dict[str, Any]]) -> Iterator[Finding]:
    """Parameters that end in ``_key`` name the environment variable that holds a key."""
    for stage, parameters in values.items():
        for key, value in parameters.items():
            if re.search(r"_key(_variable)?$", key) and isinstance(value, str) and value:
                there = bool(os.environ.get(value))
                detail = "set" if there else f"{value} is not set"
                yield Finding(f"key {stage}.{key}", there, detail, f"export {value}=...")


def _disk() -> Finding:
    place = runs_folder()
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free / 2**30
    return Finding("disk", free >= _FREE_GIB, f"{free:.1f} GiB free", f"free {_FREE_GIB:g} GiB")


def _graphics() -> Finding:
    import torch

    if torch.cuda.is_available():
        return Finding("graphics card", True, torch.cuda.get_device_name(0))
    return Finding("graphics card", True, "none; the embedded engines need none")
