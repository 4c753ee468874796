"""What a profile needs, checked before anything runs and without computing anything.

One :class:`Finding` a thing: engines, their weights, licences to accept, worker environments,
keys, data, programs, disk, graphics card. The paper's engines declare what they need and are
not loaded; embedded ones are, which takes seconds. A finding that is not OK says the way out.
No finding holds a key or a token, only the name of its variable.
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
from aegis.corpora import CONVERSATIONS, data_folder, expected_files, records
from aegis.engines import Needs
from aegis.engines.chat import read_models
from aegis.engines.worker import find_python
from aegis.errors import AegisError, ParamError
from aegis.manifests import read_card as read_corpus
from aegis.params import StudyParams
from aegis.pipeline import effective_parameters, find_notebooks, n_cores, runs_folder, stage_order
from aegis.sources import MIXED
from aegis.tables import PROJECT, Run
from aegis.voices import COHORT
from aegis.weights import look, read_card, way_out

ROLES = (
    "transcriber", "diarizer", "encoder", "synthesiser", "converter", "renderer", "detector",
    "sentence_encoder", "acoustic",
)  # fmt: skip
# Other words that notebooks use for a role in a parameter's name.
_WORDS = {
    "asr": "transcriber", "recogniser": "transcriber", "backend": "encoder", "backends": "encoder",
}  # fmt: skip
_PROGRAMS = ("ffmpeg", "flite", "text2wave")
_PACKAGE_OF = {"text2wave": "festival"}
_FREE_GIB = 5.0
_PUBLISHED_GIB = 60.0
"""Room for 390 recordings in five conditions with their turns."""
_PLACES = re.compile(r"(^|_)(folder|path|file|pool)s?$")

Values = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at; ``kind`` groups them in the table."""

    subject: str
    ok: bool
    detail: str
    way_out: str = ""
    kind: str = "engine"


def examine(params: StudyParams) -> list[Finding]:
    """Look at all that the profile's stages need."""
    values = _values(params)
    needs = {pair: _need(*pair) for pair in sorted(engines_named(values))}
    declared = [need for need in needs.values() if need is not None]
    return [
        *_loaded(pair for pair, need in needs.items() if need is None),
        *_declared({pair: need for pair, need in needs.items() if need is not None}),
        *_weights(declared),
        *_environments(declared),
        *_cohorts(values),
        *_data(values),
        *_programs(),
        *_keys(values),
        _disk(values, declared),
        Finding("cores", True, f"{n_cores()} usable", kind="machine"),
        _graphics(any(need.card for need in declared)),
    ]


def _need(role: str, name: str) -> Needs | None:
    """None for embedded engines and for names that nobody knows: loading says which."""
    try:
        return engines.needs_of(role, name)
    except ParamError:
        return None


def _values(params: StudyParams) -> Values:
    run, notebooks = Run(runs_folder() / params.run_name), find_notebooks()
    return {
        name: effective_parameters(params, name, notebooks[name], run)
        for name in stage_order(params, notebooks)
    }


def cards_of(params: StudyParams) -> list[str]:
    """Weights that the profile's engines declare, for fetching them."""
    found: list[str] = []
    for pair in sorted(engines_named(_values(params))):
        need = engines.needs_of(*pair)
        found += need.weights if need is not None else ()
    return list(dict.fromkeys(found))


# --- engines ---------------------------------------------------------------------------------


def _loaded(pairs: Iterator[tuple[str, str]] | Any) -> Iterator[Finding]:
    for role, name in pairs:
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


def _declared(needs: dict[tuple[str, str], Needs]) -> Iterator[Finding]:
    """One row an engine: what it rests on; the rows below say what is missing of it."""
    for (role, name), need in needs.items():
        parts = [*need.weights, f"environment {need.environment}" if need.environment else ""]
        card = "a graphics card" if need.card else ""
        rests = ", ".join(part for part in [*parts, card] if part)
        yield Finding(f"{role} {name}", True, f"the paper's, needs {rests}")


def _weights(needs: list[Needs]) -> Iterator[Finding]:
    names = dict.fromkeys(name for need in needs for name in need.weights)
    for name in names:
        card, seen = read_card(name), look(name)
        missing = ", ".join(seen.missing[:3])
        detail = f"missing: {missing}" if seen.missing else f"there ({card.size / 1e6:.0f} MB)"
        kept = f"{detail}; revision {card.revision_kind}, {card.licence}"
        yield Finding(name, not seen.missing, kept, way_out(card), kind="weights")
        if card.gated:
            accepted = not seen.missing
            said = "its files are here" if accepted else "to be accepted at its source"
            place = f"https://huggingface.co/{card.source['repository']}"
            yield Finding(
                name, accepted, f"gated: {said}", f"accept at {place}, then HF_TOKEN for fetching",
                kind="licence",
            )  # fmt: skip


def _environments(needs: list[Needs]) -> Iterator[Finding]:
    for name in sorted({need.environment for need in needs if need.environment}):
        there = find_python(name) is not None
        detail = "installed" if there else "not installed"
        way = f"`aegis engine install {name}`, then `aegis engine check {name}`"
        yield Finding(name, there, detail, way, kind="environment")


def _cohorts(values: Values) -> Iterator[Finding]:
    """Encoders are centred on a cohort file; one that says "none" leaves them as they are."""
    names = {name for role, name in engines_named(values) if role == "encoder"}
    for name in sorted(names):
        there = (COHORT / f"{name}.json").exists()
        detail = "there" if there else f"no cohort for {name}"
        yield Finding(f"cohort {name}", there, detail, "scripts/build_cohort.py makes it", "data")


def engines_named(values: Values) -> set[tuple[str, str]]:
    """(role, engine) pairs that parameters name, by role words in a parameter's name.

    ``asr``, ``renderer_a`` or ``encoders`` name a role; an empty string or None names none, and
    ``chat`` is no engine of its own: its model has a key (see the keys).
    """
    found = set()
    for parameters in values.values():
        for key, value in parameters.items():
            role = _role_of(key)
            named = value if isinstance(value, list) else [value]
            if role is not None:
                found |= {
                    (role, name)
                    for name in named
                    if isinstance(name, str) and name and name != "chat"
                }
    return found


def _role_of(parameter: str) -> str | None:
    for word in (parameter.split("_")[0], parameter):
        singular = word.removesuffix("s")
        for candidate in (word, singular):
            if candidate in ROLES or candidate in _WORDS:
                return _WORDS.get(candidate, candidate)
    return None


# --- data, programs, keys --------------------------------------------------------------------


def _data(values: Values) -> Iterator[Finding]:
    for stage, parameters in values.items():
        # Only the stage that has a folder reads records; others name a card.
        published = _published(parameters.get("corpus")) if "folder" in parameters else []
        place = PROJECT / Path(str(parameters.get("folder") or "")).expanduser()
        for name in published:
            yield _corpus(name, place / name if parameters.get("folder") else data_folder(name))
        for key, value in parameters.items():
            if not _PLACES.search(key) or (published and key == "folder"):
                continue
            named = value if isinstance(value, list) else [value]
            for path in (v for v in named if isinstance(v, str) and v):
                there = (PROJECT / Path(path).expanduser()).exists()
                detail = "there" if there else f"{path} does not exist"
                way = f"set -p {stage}.{key}=PATH"
                yield Finding(f"data {stage}.{key}", there, detail, way, kind="data")


def _published(corpus: Any) -> list[str]:
    names = [part.removesuffix(MIXED) for part in str(corpus).split("+")]
    return [name for name in names if name in CONVERSATIONS or name == "asq_phi"]


def _corpus(name: str, place: Path) -> Finding:
    """Records of which every listed file exists (digests are checked when they are read)."""
    absent = {f.record_id for f in expected_files(name) if not (place / f.path).is_file()}
    n, card = len(records(name)), read_corpus(name)
    detail = f"{n - len(absent)} of {n} records' files; revision {card.revision}, {card.licence}"
    asked = name.replace("_", "-")
    way = f"`aegis fetch {asked}`, or `aegis fetch {asked} --from DIR` for a copy"
    return Finding(name, not absent, detail, way, kind="corpus")


def _programs() -> Iterator[Finding]:
    for name in _PROGRAMS:
        there = shutil.which(name) is not None
        package = _PACKAGE_OF.get(name, name)
        detail = "there" if there else "not found"
        yield Finding(
            f"program {name}", there, detail, f"apt-get install {package}", kind="machine"
        )


def _keys(values: Values) -> Iterator[Finding]:
    """Keys of the chat models that stages ask, and parameters that name a key's variable."""
    models, seen = read_models(), set()
    for stage, parameters in values.items():
        if "chat" in parameters.values() and parameters.get("model"):
            name = str(parameters["model"])
            if name in models and name not in seen:
                seen.add(name)
                yield _key_of(name, models[name].key_variable, models[name].base_url)
            elif name not in models:
                known = f"known: {', '.join(models)}"
                yield Finding(f"chat {name}", False, f"{stage} asks it; {known}", kind="key")
        for key, value in parameters.items():
            if re.search(r"_key(_variable)?$", key) and isinstance(value, str) and value:
                there = bool(os.environ.get(value))
                detail = "set" if there else f"{value} is not set"
                way = f"export {value}=..."
                yield Finding(f"key {stage}.{key}", there, detail, way, kind="key")


def _key_of(name: str, variable: str, base_url: str | None) -> Finding:
    if base_url is not None:
        detail = f"local server at {base_url}, not asked here"
        return Finding(f"chat {name}", True, detail, kind="key")
    there = bool(os.environ.get(variable))
    detail = f"{variable} is {'set' if there else 'not set'}"
    return Finding(f"chat {name}", there, detail, f"export {variable}=...", kind="key")


# --- the machine -----------------------------------------------------------------------------


def _disk(values: Values, needs: list[Needs]) -> Finding:
    place = runs_folder()
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free / 2**30
    published = any(_published(parameters.get("corpus")) for parameters in values.values())
    names = {name for need in needs for name in need.weights}
    to_come = sum(read_card(name).size for name in names if look(name).missing) / 2**30
    wanted = max(_PUBLISHED_GIB if published else 0.0, _FREE_GIB) + to_come
    detail = f"{free:.1f} GiB free, {wanted:.0f} wanted"
    return Finding("disk", free >= wanted, detail, f"free {wanted:.0f} GiB", kind="machine")


def _graphics(needed: bool) -> Finding:
    import torch

    if torch.cuda.is_available():
        return Finding("graphics card", True, torch.cuda.get_device_name(0), kind="machine")
    if needed and os.environ.get("AEGIS_DEVICE") != "cpu":
        way = "run where there is one, or AEGIS_DEVICE=cpu (slow, not Seed-VC or VoiceCraft)"
        return Finding("graphics card", False, "none", way, kind="machine")
    return Finding("graphics card", True, "none; what is asked needs none", kind="machine")
