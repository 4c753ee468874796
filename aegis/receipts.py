"""Receipts: what a stage did, from what, and whether that still holds.

Unit: one stage of one run.

A receipt is ``runs/<run>/receipts/<stage>.json``, written last and atomically. It
holds hashes, never original words, names or paths outside the run. Of the package's code
it holds what :mod:`aegis.closure` finds the notebook to depend on.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from aegis import stamp
from aegis.audio import write_bytes
from aegis.closure import closure_hashes
from aegis.tables import PROJECT, SCHEMAS, Run

_ENGINE_PACKAGES = (
    "numpy", "scipy", "librosa", "soxr", "pyworld", "torch", "faster-whisper", "ctranslate2",
    "pyannote.audio", "onnxruntime", "kokoro-onnx", "spacy", "presidio-analyzer", "Faker",
    "num2words", "text2num",
)  # fmt: skip
_LARGE_BYTES = 1 << 20
RECEIPT = "receipt:"
"""Before a stage's name: its receipt as an input of a page about the run itself."""


Receipt = dict[str, Any]


def receipt_path(run: Run, stage: str) -> Path:
    return run.root / "receipts" / f"{stage}.json"


def read_receipt(run: Run, stage: str) -> Receipt | None:
    """A stage's receipt, or None when there is none or it is not what was written."""
    return stamp.read_receipt(receipt_path(run, stage))


def write_receipt(run: Run, receipt: Receipt) -> None:
    """Seal a receipt and write it in one step."""
    content: Receipt = json.loads(json.dumps(receipt, ensure_ascii=False, default=plain))
    content[stamp.SEAL] = stamp.seal(content)
    text = json.dumps(content, indent=1, ensure_ascii=False)
    write_bytes(receipt_path(run, receipt["stage"]), text.encode())


def file_sha256(path: Path) -> str | None:
    """A file's SHA-256, or None when it is not there."""
    try:
        with open(path, "rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None


def hash_files(paths: Iterable[Path]) -> list[str | None]:
    """:func:`file_sha256` of many files; hashing leaves Python, so threads help."""
    with ThreadPoolExecutor(max_workers=min(8, (os.cpu_count() or 1) + 2)) as pool:
        return list(pool.map(file_sha256, paths))


def hash_inputs(run: Run, names: Iterable[str]) -> dict[str, str | None]:
    """Input -> SHA-256 of its file; None when there is none, or no schema of it yet.

    An input is a table, or ``receipt:`` and a stage.
    """
    known = list(names)
    places = {name: run.table_path(name) for name in known if name in SCHEMAS}
    places |= {
        name: receipt_path(run, name.removeprefix(RECEIPT))
        for name in known
        if name.startswith(RECEIPT)
    }
    hashed = dict(zip(places, hash_files(places.values()), strict=True))
    return {name: hashed.get(name) for name in known}


def digest(value: object) -> str:
    """SHA-256 of a JSON-able value, independent of key order."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, default=plain)
    return hashlib.sha256(text.encode()).hexdigest()


def plain(value: Any) -> Any:
    """Turn NumPy and pandas scalars and arrays into what JSON holds."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, Path):
        return value.as_posix()
    raise TypeError(f"not JSON-able: {type(value).__name__}")


# --- surroundings ---------------------------------------------------------------------


@functools.cache
def packages() -> dict[str, str]:
    """Versions of the packages that compute results."""
    versions = {}
    for name in _ENGINE_PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "absent"
    return versions


@functools.cache
def machine() -> dict[str, str | int]:
    """What the stage ran on, without names: processor, cores, memory, system, Python."""
    import platform

    import psutil

    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        lines = []
    model = next((line.partition(":")[2].strip() for line in lines if "model name" in line), "")
    return {
        "processor": model or platform.machine(),
        "cores": os.cpu_count() or 1,
        "memory_gb": round(psutil.virtual_memory().total / 2**30),
        "system": platform.system(),
        "python": platform.python_version(),
    }


def cards(code: Iterable[str]) -> dict[str, str]:
    """Model card -> SHA-256, for code that reaches the weights; else none.

    ``code`` are the modules that a function or notebook depends on.
    """
    if "aegis.weights" not in code:
        return {}
    folder = PROJECT / "data_manifests" / "models"
    files = sorted(p for p in folder.glob("*") if p.suffix in (".yaml", ".csv"))
    return {
        file.name: value
        for file, value in zip(files, hash_files(files), strict=True)
        if value is not None
    }


def schemas(names: Iterable[str]) -> dict[str, str]:
    """Table -> hash of its schema; a name without a schema is left out."""
    return {name: digest(asdict(SCHEMAS[name])) for name in names if name in SCHEMAS}


def fingerprint(path: Path) -> str | None:
    """A hash of a file or folder outside the run: names, sizes and content.

    Of files over 1 MiB the time of change stands for the content.
    """
    if not path.exists():
        return None
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    rows = []
    for file in files:
        stat = file.stat()
        content: object = stat.st_mtime_ns if stat.st_size > _LARGE_BYTES else file_sha256(file)
        rows.append([file.relative_to(path).as_posix(), stat.st_size, content])
    return digest(rows)


def outside_inputs(parameters: Mapping[str, Any]) -> dict[str, str]:
    """Fingerprints of the files and folders that parameters name, by parameter."""
    found = {}
    for name, value in parameters.items():
        values = value if isinstance(value, list) else [value]
        named = [Path(v).expanduser() for v in values if isinstance(v, str) and "/" in v]
        marks = [fingerprint(PROJECT / path) for path in named]
        if any(mark is not None for mark in marks):
            found[name] = digest(marks)
    return found


def recorded(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as a receipt holds them: paths outside the project only as hashes."""
    return {name: _withheld(value) for name, value in parameters.items()}


_PUBLIC_PLACES = ("data_manifests", "params", "notebooks", "tests", "docs")


def is_private_path(value: str) -> bool:
    """Does a parameter name a place that is no part of the project, e.g. a user's folder?"""
    if os.path.isabs(value) or value.startswith(("~", "..")):
        return True
    inside = Path(value).parts[:1]
    public = not inside or inside[0] in _PUBLIC_PLACES
    try:
        return not public and (PROJECT / value).exists()
    except (OSError, ValueError):  # too long, or a NUL: no path
        return False


def _withheld(value: Any) -> Any:
    if isinstance(value, list):
        return [_withheld(item) for item in value]
    if isinstance(value, str) and is_private_path(value):
        return f"path:{digest(value)[:16]}"
    return value


# --- staleness ------------------------------------------------------------------------


def stale_reasons(
    run: Run, stage: str, notebook: Path, parameters: Mapping[str, Any], reads: Iterable[str]
) -> list[str]:
    """Why a stage must run, in words; empty when its receipt still holds.

    Parameters
    ----------
    parameters
        The effective values, as the notebook would see them.
    reads
        The tables that it is wired to read.
    """
    receipt = read_receipt(run, stage)
    if receipt is None:
        there = receipt_path(run, stage).exists()
        return ["its receipt is not what was written" if there else "not run yet"]
    if "executed" not in receipt:
        return ["the executed notebook was not recorded"]
    reasons = []
    if receipt.get("unexpected"):
        reasons.append(f"{receipt['unexpected']} items met a fault and are tried again")
    if receipt["notebook"] != file_sha256(notebook):
        reasons.append("the notebook changed")
    code = closure_hashes(notebook)
    reasons += _differences("code", receipt["code"], code, skip={"."})
    old = receipt.get("schemas", {})
    reasons += _differences("schema of", old, schemas(old))
    reasons += _differences("parameter", receipt["parameters"], recorded(parameters))
    reasons += _differences("files of parameter", receipt["outside"], outside_inputs(parameters))
    reasons += _differences("outside file", receipt["used"], _used_now(receipt["used"]))
    reasons += _differences("model card", receipt["cards"], cards(code))
    reasons += _differences("package", receipt["packages"], packages())
    reasons += _differences("input", receipt["inputs"], hash_inputs(run, reads))
    return reasons + output_reasons(run, receipt)


def _used_now(used: Mapping[str, str | None]) -> dict[str, str | None]:
    """Fingerprints now; a path that the receipt withholds cannot be looked at again."""
    return {
        path: old if path.startswith("path:") else fingerprint(PROJECT / path)
        for path, old in used.items()
    }


def _differences(
    kind: str, old: Mapping[str, Any], new: Mapping[str, Any], skip: Iterable[str] = ()
) -> list[str]:
    skipped = set(skip)
    found = []
    for name in sorted({*old, *new} - skipped):
        if old.get(name) == new.get(name):
            continue
        if old.get(name) is None:
            word = "is new"
        elif new.get(name) is None:
            word = "is gone"
        else:
            word = "changed"
        found.append(f"{kind} {name} {word}")
    return found


def output_reasons(run: Run, receipt: Receipt) -> list[str]:
    """Which outputs that a receipt lists are gone or have other content.

    A notebook run by hand leaves a receipt without an executed copy; its tables are checked.
    """
    outputs = {run.table_path(name): sha for name, sha in receipt["tables"].items()}
    outputs |= {run.root / name: sha for name, sha in receipt["files"].items()}
    if "executed" in receipt:
        outputs[run.root / receipt["executed"]["file"]] = receipt["executed"]["sha256"]
    found = []
    for (path, sha), now in zip(outputs.items(), hash_files(outputs), strict=True):
        if now != sha:
            what = "is missing" if now is None else "is not what was written"
            found.append(f"output {path.relative_to(run.root).as_posix()} {what}")
    return found
