"""Strict reading of YAML mappings: what is unknown, missing or mistyped is named.

Functions: :func:`read_yaml`, :func:`read_csv`, :func:`check_known`,
:func:`check_needed`, :func:`check_texts`, :func:`check_inside`, :func:`repeated`,
:func:`one_of`.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from aegis.errors import ManifestError


class _StrictLoader(yaml.SafeLoader):  # type: ignore[misc, unused-ignore]
    """SafeLoader that refuses a key given twice."""


def _unique_mapping(loader: _StrictLoader, node: Any) -> dict[Any, Any]:
    keys = [loader.construct_object(key) for key, _ in node.value]
    for key in keys:
        if keys.count(key) > 1:
            raise ManifestError(f"key {key!r} twice, line {node.start_mark.line + 1}")
    return dict(loader.construct_pairs(node, deep=True))


_StrictLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _unique_mapping)


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML mapping; a syntax error or a repeated key is a ManifestError with its line."""
    try:
        text = path.read_text(encoding="utf-8")
        content = yaml.load(text, Loader=_StrictLoader)  # nosec B506 # a SafeLoader
    except (OSError, ValueError, RecursionError, yaml.YAMLError, ManifestError) as error:
        raise ManifestError(f"{path.name}: {error}") from error
    if not isinstance(content, dict):
        raise ManifestError(f"{path.name}: must be a mapping, is {type(content).__name__}")
    return content


def read_csv(path: Path, encoding: str = "utf-8-sig") -> list[list[str]]:
    """All rows of a CSV file; what is no text or no CSV is a ManifestError."""
    try:
        with path.open(encoding=encoding, newline="") as stream:
            return list(csv.reader(stream))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ManifestError(f"{path.name}: cannot be read ({error})") from error


def check_known(entry: Any, keys: str, what: str) -> None:
    if not isinstance(entry, dict):
        raise ManifestError(f"{what} must be a mapping, is {entry!r}")
    unknown = sorted(str(key) for key in entry if key not in keys.split())
    if unknown:
        raise ManifestError(f"{what}: unknown keys {unknown}; known: {keys}")


def check_needed(entry: dict[str, Any], keys: str, what: str) -> None:
    missing = [key for key in keys.split() if key not in entry]
    if missing:
        raise ManifestError(f"{what}: missing keys {missing}")


def check_texts(entry: dict[str, Any], keys: str, what: str) -> None:
    """YAML turns a bare ``No`` or ``12`` into another type; such values must be quoted."""
    for key in keys.split():
        if key in entry and not isinstance(entry[key], str):
            raise ManifestError(f"{what}: {key} must be text, is {entry[key]!r}; quote it")


def check_inside(path: str, what: str) -> str:
    """Refuse a path that is absolute or climbs out of its folder; returns it."""
    parts = PurePosixPath(path)
    if parts.is_absolute() or ".." in parts.parts or set(path) & set("\\\0") or not parts.parts:
        raise ManifestError(f"{what}: unsafe path {path!r}")
    return path


def repeated(names: Iterable[str]) -> list[str]:
    """Names given more than once, in order of their letters."""
    return sorted(name for name, n in Counter(names).items() if n > 1)


def one_of(value: Any, allowed: Sequence[str], what: str) -> str:
    if value not in allowed:
        raise ManifestError(f"{what} {value!r}: must be one of {', '.join(allowed)}")
    return str(value)
