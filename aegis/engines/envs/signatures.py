"""Signatures of code that is in no registry, read from its source without running it."""

from __future__ import annotations

import ast
from pathlib import Path

from serve import Unavailable


def function_of(path: Path, name: str) -> ast.FunctionDef:
    """A top-level function of a file.

    Raises ``Unavailable`` when the file or the function is absent.
    """
    if not path.exists():
        raise Unavailable(f"no file {path.name}; clone the code as the recipe says")
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return node
    raise Unavailable(f"{path.name} has no function {name}")


def check_arguments(path: Path, name: str, expected: list[str]) -> None:
    """The function takes exactly these arguments by name."""
    arguments = function_of(path, name).args
    found = [argument.arg for argument in [*arguments.args, *arguments.kwonlyargs]]
    if found != expected:
        raise Unavailable(f"{path.name}: {name}{tuple(found)}, expected {tuple(expected)}")


def check_fields(path: Path, names: list[str], given: set[str]) -> None:
    """Functions read no attribute of ``args`` beyond those that are given."""
    for name in names:
        read = {
            node.attr
            for node in ast.walk(function_of(path, name))
            if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "args"
        }
        if missing := sorted(read - given):
            raise Unavailable(f"{path.name}: {name} reads args.{', args.'.join(missing)}")
