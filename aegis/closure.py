"""Which code a function or notebook depends on, found by reading it.

Unit: one top-level name of one module of ``aegis``. Starting from a function, all
names that its body mentions are followed through the package; what a module does on
import (other than defining names) counts as soon as the module is reached. Where it
is not plain what is meant, more is taken than is needed. An engine is found by the
role in ``load("transcriber", ...)``: all factories registered for that role count.

Comments, docstrings and function annotations do not count. Files below
``aegis/data`` count as soon as a reached name mentions ``"data"``, and programs of the engines'
own environments as soon as one mentions ``"envs"``.

Functions: :func:`closure_hashes`, :func:`run_hash`.
"""

from __future__ import annotations

import ast
import functools
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
FOLDERS = {"data": "aegis/data", "envs": "aegis/engines/envs"}
# The run layer moves work about but never changes a result.
RUN_LAYER = frozenset(
    f"aegis.{name}"
    for name in (
        "checks", "cli", "closure", "cluster", "doctor", "execution", "monitor", "pipeline",
        "receipts", "site", "stage", "sweep",
    )
)  # fmt: skip
_PURE_DECORATORS = frozenset(
    (
        "cache", "cached_property", "classmethod", "contextmanager", "dataclass", "lru_cache",
        "overload", "property", "register", "runtime_checkable", "staticmethod",
        "total_ordering", "wraps",
    )
)  # fmt: skip
_EFFECTS, _ALL = "<import>", "<all>"

Symbol = tuple[str, str]
"""(module, top-level name); ``<import>`` is what importing does, ``<all>`` everything."""


@dataclass
class _Module:
    name: str
    definitions: dict[str, list[ast.stmt]] = field(default_factory=dict)
    effects: list[ast.stmt] = field(default_factory=list)
    imports: dict[str, Symbol] = field(default_factory=dict)
    roles: dict[str, list[str]] = field(default_factory=dict)


def closure_hashes(path: Path, name: str | None = None) -> dict[str, str]:
    """Module -> hash of the reached part of it, for a file or one function of it.

    The file itself appears as ``"."``, data files and programs under their folder's name.
    """
    start = _name_of(path)
    reached = sorted(_reach(start, name or _ALL))
    hashed: dict[str, list[str]] = {}
    for module, symbol in reached:
        if module in FOLDERS.values():
            hashed[module] = [_folder_hash(module)]
        else:
            shown = "." if module == start else module
            hashed.setdefault(shown, []).append(f"{symbol} {_symbol_hash(module, symbol)}")
    return {module: _sha("\n".join(parts)) for module, parts in hashed.items()}


def _name_of(path: Path) -> str:
    path = path.resolve()
    if not path.is_relative_to(PACKAGE):
        return str(path)
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)


def _reach(module: str, name: str) -> set[Symbol]:
    todo: list[Symbol] = [(module, name)]
    reached: set[Symbol] = set()
    while todo:
        symbol = todo.pop()
        if symbol in reached or symbol[0] in RUN_LAYER:
            continue
        reached.add(symbol)
        if symbol[0] not in FOLDERS.values():
            todo += [(symbol[0], _EFFECTS), *_uses(*symbol)]
    return reached


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _file(module: str) -> Path | None:
    """A module's file; a module that is not of the package is named by its path."""
    if module != "aegis" and not module.startswith("aegis."):
        return Path(module)
    base = PACKAGE.parent.joinpath(*module.split("."))
    return next((p for p in (base.with_suffix(".py"), base / "__init__.py") if p.exists()), None)


def _is_module(name: str) -> bool:
    return (name == "aegis" or name.startswith("aegis.")) and _file(name) is not None


def _module(name: str) -> _Module:
    path = _file(name)
    if path is None:
        return _Module(name)
    return _read(name, path, path.stat().st_mtime_ns)


@functools.cache
def _read(name: str, path: Path, mtime_ns: int) -> _Module:
    tree = _Strip().visit(ast.parse(path.read_text("utf-8")))
    module = _Module(name)
    for statement in tree.body:
        _sort(module, statement)
    return module


class _Strip(ast.NodeTransformer):
    """Drop docstrings and other lone strings, and annotations of functions."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [child for child in body if not _is_text(child)]  # type: ignore[attr-defined]
        if isinstance(node, ast.arg):
            node.annotation = None
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        return node


def _is_text(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _sort(module: _Module, statement: ast.stmt) -> None:
    if isinstance(statement, ast.Import | ast.ImportFrom):
        module.imports |= dict(_imported(statement))
    elif isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        module.definitions.setdefault(statement.name, []).append(statement)
        for decorator in statement.decorator_list:
            _sort_decorator(module, statement, decorator)
    elif isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        names = [n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)]
        if any(isinstance(target, ast.Attribute | ast.Subscript) for target in targets):
            module.effects.append(statement)
        for name in names:
            module.definitions.setdefault(name, []).append(statement)
    elif not (isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.dump(statement.test)):
        module.effects.append(statement)
        for node in ast.walk(statement):
            if isinstance(node, ast.Import | ast.ImportFrom):
                module.imports |= dict(_imported(node))


def _sort_decorator(
    module: _Module,
    statement: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef,
    decorator: ast.expr,
) -> None:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    name = getattr(called, "id", getattr(called, "attr", ""))
    if name == "register" and isinstance(decorator, ast.Call):
        for role in decorator.args[:1]:
            known = role.value if isinstance(role, ast.Constant) else "*"
            module.roles.setdefault(str(known), []).append(statement.name)
    elif name not in _PURE_DECORATORS:
        module.effects.append(statement)


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, Symbol]]:
    """Local name -> what it stands for, of imports from the package."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            if _is_module(alias.name):
                yield (alias.asname or "aegis", (alias.name, _ALL))
        return
    source = node.module or ""
    if node.level or not _is_module(source):
        return
    for alias in node.names:
        inner = f"{source}.{alias.name}"
        target = (inner, _ALL) if _is_module(inner) else (source, alias.name)
        yield (alias.asname or alias.name, (source, _ALL) if alias.name == "*" else target)


def _statements(module: _Module, symbol: str) -> list[ast.stmt]:
    if symbol == _EFFECTS:
        return module.effects
    if symbol == _ALL:
        defined = [s for statements in module.definitions.values() for s in statements]
        return [*defined, *module.effects]
    return module.definitions.get(symbol, [])


def run_hash() -> str:
    """Hash of the class that tells work functions where files lie; they get it as an argument."""
    return _symbol_hash("aegis.tables", "Run")


@functools.cache
def _symbol_hash_of(name: str, symbol: str, mtime_ns: int) -> str:
    dumped = [ast.dump(s, annotate_fields=False) for s in _statements(_module(name), symbol)]
    return _sha("\n".join(dumped))


def _symbol_hash(name: str, symbol: str) -> str:
    return _symbol_hash_of(name, symbol, _mtime(name))


def _mtime(name: str) -> int:
    path = _file(name)
    return path.stat().st_mtime_ns if path else 0


def _uses(name: str, symbol: str) -> Iterable[Symbol]:
    return _uses_of(name, symbol, _mtime(name))


@functools.cache
def _uses_of(name: str, symbol: str, mtime_ns: int) -> frozenset[Symbol]:
    module, found = _module(name), set[Symbol]()
    parent = name.rpartition(".")[0]
    if name.startswith("aegis.") and parent:
        found.add((parent, _EFFECTS))
    if symbol not in (_EFFECTS, _ALL) and symbol not in module.definitions:
        # A name that is passed on, a submodule, or something unseen: then all of the module.
        found.add(module.imports.get(symbol, (name, _ALL)))
        return frozenset(found)
    for statement in _statements(module, symbol):
        visitor = _Uses(module, statement)
        visitor.visit(statement)
        found |= visitor.found
    return frozenset(found)


class _Uses(ast.NodeVisitor):
    """Collect what one top-level statement mentions."""

    def __init__(self, module: _Module, statement: ast.stmt) -> None:
        self.module, self.found = module, set[Symbol]()
        self.names = dict(module.imports)
        for node in ast.walk(statement):
            if isinstance(node, ast.Import | ast.ImportFrom):
                self.names |= dict(_imported(node))

    def visit_Name(self, node: ast.Name) -> None:
        if node.id in self.module.definitions:
            self.found.add((self.module.name, node.id))
        if node.id in self.names:
            self.found.add(self.names[node.id])

    def visit_Attribute(self, node: ast.Attribute) -> None:
        target = self.names.get(node.value.id) if isinstance(node.value, ast.Name) else None
        if target is None or target[1] != _ALL:
            self.generic_visit(node)
        elif _is_module(f"{target[0]}.{node.attr}"):
            self.found.add((f"{target[0]}.{node.attr}", _ALL))
        else:
            self.found.add((target[0], node.attr))

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        called = node.func
        direct = isinstance(called, ast.Name) and called.id == "load"
        through = isinstance(called, ast.Attribute) and called.attr == "load"
        ours = (
            isinstance(called, ast.Attribute)
            and isinstance(called.value, ast.Name)
            and self.names.get(called.value.id) == ("aegis.engines", _ALL)
        )
        from_engines = self.names.get("load", ("", ""))[0] == "aegis.engines"
        if node.args and ((direct and from_engines) or (through and ours)):
            role = node.args[0]
            known = role.value if isinstance(role, ast.Constant) else "*"
            self.found |= _factories(str(known))

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str) and node.value in FOLDERS:
            self.found.add((FOLDERS[node.value], _ALL))


def _factories(role: str) -> set[Symbol]:
    """All that is registered for a role (``*``: for any role)."""
    found = set()
    for path in sorted((PACKAGE / "engines").glob("*.py")):
        module = _module(f"aegis.engines.{path.stem}")
        for registered, names in module.roles.items():
            if role in ("*", registered) or registered == "*":
                found |= {(module.name, name) for name in names}
    return found


def _folder_hash(folder: str) -> str:
    files = sorted(p for p in (PACKAGE.parent / folder).rglob("*") if p.is_file())
    files = [path for path in files if path.parent.name != "__pycache__"]
    return _sha("\n".join(f"{p.name} {_bytes_hash(p, p.stat().st_mtime_ns)}" for p in files))


@functools.cache
def _bytes_hash(path: Path, mtime_ns: int) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
