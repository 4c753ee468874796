"""Parameters: what a notebook declares, and what a profile file changes.

The parameters cell of ``notebooks/<stage>.py`` is the only declaration: annotated
plain literals with a trailing comment. ``params/<profile>.yaml`` has one section a
notebook with the values that differ, and may hold ``title``, ``profile`` and
``notebooks`` (the stages that take part). ``extends: demo.yaml`` takes over a profile of
the same folder, of which only what differs is then written, and its run. Everything is
checked before a kernel starts: papermill runs a misspelt parameter on defaults with exit
code 0.

Functions: :func:`read_declarations`, :func:`read_params`, :func:`find_extensions`,
:func:`check_value`.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from aegis.errors import ParamError

ANNOTATIONS = ("str", "int", "float", "bool", "list[str]", "list[int]", "list[float]")
_TOP_LEVEL = ("title", "profile", "notebooks", "extends")
_CELL = re.compile(r"^# %%(.*)$", re.MULTILINE)

Value = Any
"""A str, int, float, bool, None or a list of one of the first three."""


@dataclass(frozen=True)
class Declaration:
    """One line of a parameters cell."""

    name: str
    annotation: str
    default: Value
    comment: str


@dataclass(frozen=True)
class StudyParams:
    """A profile: ``values[notebook][name]`` holds what differs from the notebook's default."""

    path: Path
    title: str
    profile: str
    notebooks: tuple[str, ...]
    values: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    overrides: tuple[str, ...] = ()
    base: str | None = None

    @property
    def run_name(self) -> str:
        """The file's stem; of a profile that extends another one, that one's."""
        return self.base or self.path.stem


def cells(source: str) -> list[tuple[str, str]]:
    """Split py:percent source into (rest of the ``# %%`` line, text) pairs."""
    marks = list(_CELL.finditer(source))
    ends = [mark.start() for mark in marks[1:]] + [len(source)]
    return [
        (mark[1].strip(), source[mark.end() : end]) for mark, end in zip(marks, ends, strict=True)
    ]


def parameters_cell(path: Path) -> str:
    """The text of the cell tagged ``parameters``.

    Raises
    ------
    ParamError
        The notebook is absent or has not exactly one such cell.
    """
    if not path.exists():
        raise ParamError(f"{path}: no such notebook")
    tagged = [text for head, text in cells(path.read_text("utf-8")) if '"parameters"' in head]
    if len(tagged) != 1:
        raise ParamError(f"{path.name}: {len(tagged)} cells are tagged parameters, expected 1")
    return tagged[0]


def read_declarations(path: Path) -> dict[str, Declaration]:
    """Read a notebook's parameters without running it.

    Raises
    ------
    ParamError
        A line of the cell is not an annotated plain literal, or its default does not
        have its declared type.
    """
    text = parameters_cell(path)
    lines = text.splitlines()
    found: dict[str, Declaration] = {}
    for node in ast.parse(text).body:
        declaration = _declaration(path.name, node, lines)
        found[declaration.name] = declaration
    return found


def _declaration(notebook: str, node: ast.stmt, lines: list[str]) -> Declaration:
    if not (isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)):
        raise ParamError(f"{notebook}: parameters cell: {ast.unparse(node)!r} is not annotated")
    name, annotation = node.target.id, ast.unparse(node.annotation)
    if _base(annotation) not in ANNOTATIONS or node.value is None:
        raise ParamError(f"{notebook}: parameter {name}: unsupported annotation {annotation!r}")
    try:
        default = ast.literal_eval(node.value)
    except ValueError as error:
        raise ParamError(f"{notebook}: parameter {name} is not a plain literal") from error
    check_value(f"{notebook}: parameter {name}", annotation, default)
    last = lines[(node.end_lineno or node.lineno) - 1][node.end_col_offset or 0 :]
    return Declaration(name, annotation, default, last.strip().lstrip("#").strip())


def _base(annotation: str) -> str:
    return annotation.replace(" ", "").removesuffix("|None")


def check_value(where: str, annotation: str, value: Value) -> None:
    """Check a value against an annotation; an int is a float, a bool is never a number.

    Raises
    ------
    ParamError
        The value has another type; the message begins with ``where``.
    """
    base = _base(annotation)
    if value is None and base != annotation.replace(" ", ""):
        return
    if base.startswith("list["):
        fits = isinstance(value, list) and all(_is(base[5:-1], item) for item in value)
    else:
        fits = _is(base, value)
    if not fits:
        hint = "; quote it" if base == "str" and value is not None else ""
        shown = f"{value!r} ({type(value).__name__})"
        raise ParamError(f"{where}: expected {annotation}, got {shown}{hint}")


def _is(kind: str, value: Value) -> bool:
    if isinstance(value, bool):
        return kind == "bool"
    kinds: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "float": (int, float)}
    return isinstance(value, kinds.get(kind, ()))


class _StrictLoader(yaml.SafeLoader):  # type: ignore[misc, unused-ignore]
    """``SafeLoader`` that refuses a key given twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = {key for key in keys if keys.count(key) > 1}
        if twice:
            line = node.start_mark.line + 1
            raise yaml.YAMLError(f"line {line}: the key {min(map(str, twice))!r} is repeated")
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        return mapping


def read_params(
    path: Path, notebooks: Mapping[str, Path], overrides: Sequence[str] = ()
) -> StudyParams:
    """Read and check a profile file.

    Parameters
    ----------
    path
        ``params/<profile>.yaml``.
    notebooks
        Stage name -> notebook source, for the notebooks that exist.
    overrides
        ``NOTEBOOK.NAME=VALUE`` strings, the value in the declared type.

    Raises
    ------
    ParamError
        The file is absent or broken, or a section, key or value is wrong.
    """
    content, base = _extended(path)
    declared = {name: read_declarations(source) for name, source in notebooks.items()}
    chosen = content.get("notebooks", sorted(notebooks))
    if not isinstance(chosen, list):
        raise ParamError(f"{path.name}: notebooks must be a list of notebook names")
    for name in chosen:
        _check_known(f"{path.name}: notebooks", "notebook", name, notebooks)
    values: dict[str, dict[str, Value]] = {}
    for section, given in content.items():
        if section in _TOP_LEVEL:
            continue
        _check_known(path.name, "notebook", section, [*notebooks, *_TOP_LEVEL])
        if given is not None and not isinstance(given, dict):
            raise ParamError(f"{path.name}: {section} must hold NAME: VALUE lines")
        for name, value in (given or {}).items():
            where = f"{path.name}: {section}"
            _check_known(where, "parameter", name, declared[section])
            check_value(f"{where}.{name}", declared[section][name].annotation, value)
            values.setdefault(section, {})[name] = value
    for text in overrides:
        section, name, value = parse_override(text, declared)
        values.setdefault(section, {})[name] = value
    title, profile = content.get("title", path.stem), content.get("profile", path.stem)
    return StudyParams(
        path, str(title), str(profile), tuple(chosen), values, tuple(overrides), base
    )


def _extended(path: Path) -> tuple[dict[str, Any], str | None]:
    """A profile's content over that of the profile that it extends, and that one's stem.

    Raises
    ------
    ParamError
        The extended profile extends another one, or is no file name.
    """
    content = _load(path)
    if "extends" not in content:
        return content, None
    named = content["extends"]
    if not isinstance(named, str) or "/" in named:
        raise ParamError(f"{path.name}: extends must name a file beside it, is {named!r}")
    below = _load(path.parent / named)
    if "extends" in below:
        raise ParamError(f"{path.name}: {named} extends another profile itself")
    merged = below | content
    for section in set(below) & set(content) - set(_TOP_LEVEL):
        if isinstance(below[section], dict) and isinstance(content[section], dict):
            merged[section] = below[section] | content[section]
    return merged, Path(named).stem


def find_extensions(path: Path) -> list[Path]:
    """Profiles beside a profile that extend it, by name; broken files are none."""
    found = []
    for other in sorted(path.parent.glob("*.yaml")):
        try:
            content = _load(other)
        except ParamError:
            continue
        if content.get("extends") == path.name:
            found.append(other)
    return found


def _load(path: Path) -> dict[str, Any]:
    if not path.exists():
        near = difflib.get_close_matches(path.name, [p.name for p in path.parent.glob("*.yaml")])
        raise ParamError(f"{path}: no such parameter file{_did_you_mean(near)}")
    try:
        text = path.read_text("utf-8")
        content = yaml.load(text, Loader=_StrictLoader)  # nosec B506 # a SafeLoader
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ParamError(
            f"{path.name}: not valid YAML ({' '.join(str(error).split())})"
        ) from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ParamError(f"{path.name}: expected sections by notebook name")
    return {str(key): value for key, value in content.items()}


def parse_override(
    text: str, declared: Mapping[str, Mapping[str, Declaration]]
) -> tuple[str, str, Value]:
    """Parse ``NOTEBOOK.NAME=VALUE`` with the declared type (a str is taken as it is)."""
    target, equals, raw = text.partition("=")
    section, dot, name = target.strip().rpartition(".")
    if not equals or not dot:
        raise ParamError(f"-p {text}: expected NOTEBOOK.NAME=VALUE")
    _check_known(f"-p {text}", "notebook", section, declared)
    _check_known(f"-p {text}", "parameter", name, declared[section])
    annotation = declared[section][name].annotation
    value = _typed(annotation, raw)
    check_value(f"-p {text}", annotation, value)
    return section, name, value


def _typed(annotation: str, raw: str) -> Value:
    base, optional = _base(annotation), annotation.replace(" ", "").endswith("|None")
    if optional and raw.strip().lower() in ("none", "null", ""):
        return None
    if base == "str":
        return raw
    if base.startswith("list[") and not raw.strip().startswith("["):
        parts = [part.strip() for part in raw.split(",") if part.strip()]
        return [_typed(base[5:-1], part) for part in parts]
    try:
        # YAML reads 1e-3 as text; Python's literals and YAML's booleans together cover all kinds.
        return float(raw) if base == "float" else yaml.safe_load(raw)
    except (ValueError, yaml.YAMLError):
        return raw


def _check_known(where: str, kind: str, name: object, known: Iterable[str]) -> None:
    names = list(known)
    if name not in names:
        near = difflib.get_close_matches(str(name), names)
        listed = "" if near else f"; known: {', '.join(names)}"
        raise ParamError(f"{where}: unknown {kind} {str(name)!r}{_did_you_mean(near)}{listed}")


def _did_you_mean(near: Sequence[str]) -> str:
    return f", did you mean {near[0]!r}?" if near else ""
