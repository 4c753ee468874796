"""The reference of the package, written from its docstrings without importing it.

Unit: one module. Modules are grouped by the layers that import-linter enforces; public
functions, classes and constants with a docstring appear in source order.

Function: :func:`write_api_pages`.
"""

from __future__ import annotations

import ast
import functools
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from aegis.tables import PROJECT

PAGES = {
    "values": "Values: audio, tables, statistics, parameters",
    "rules": "Study rules",
    "engines": "Engines and work",
    "run": "Run, display and site",
}
"""Page name -> title; the page is ``api_<name>.md``."""

_SECTION = re.compile(r"^(?P<name>[A-Z][a-z]+)\n-{3,}\n", re.M)
_ROLE = re.compile(r":(?:func|class|mod|data|meth|attr):`~?([^`]+)`")


def write_api_pages(pages: Path) -> None:
    """Write ``api_<layer>.md`` below ``pages``."""
    groups: dict[str, list[Path]] = {name: [] for name in PAGES}
    for path in sorted((PROJECT / "aegis").rglob("*.py")):
        groups[layer_of(module_name(path))].append(path)
    for name, title in PAGES.items():
        body = "\n".join(module_text(path) for path in groups[name])
        text = f"# {title} {{#sec-api-{name} .unnumbered}}\n\n{body}"
        (pages / f"api_{name}.md").write_text(text, encoding="utf-8")


def module_name(path: Path) -> str:
    """``aegis.engines.chat`` for its file."""
    parts = path.relative_to(PROJECT).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


@functools.cache
def _layers() -> list[list[str]]:
    content = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    contract = content["tool"]["importlinter"]["contracts"][0]
    return [re.findall(r"[\w.]+", line) for line in contract["layers"]]


def layer_of(module: str) -> str:
    """The page on which a module stands, by the layers of ``pyproject.toml``."""
    layers = _layers()
    names = module.split(".")
    name = names[1] if len(names) > 1 else "errors"
    rank = next((i for i, layer in enumerate(layers) if name in layer), None)
    marks = {mark: next(i for i, layer in enumerate(layers) if mark in layer)
             for mark in ("closure", "engines", "params")}  # fmt: skip
    if rank is None:
        return "run" if name.startswith("site") else "rules"
    if rank <= marks["closure"]:
        return "run"
    if rank <= marks["engines"]:
        return "engines"
    return "rules" if rank < marks["params"] else "values"


def module_text(path: Path) -> str:
    """One module: its docstring and what it offers."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    name = module_name(path)
    parts = [f"## {name} {{#{name.replace('.', '-')} .unnumbered}}\n"]
    parts.append(docstring_text(ast.get_docstring(tree) or ""))
    parts += list(_entries(tree, name))
    return "\n".join(parts)


def _entries(tree: ast.Module, module: str) -> Iterator[str]:
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef | ast.ClassDef) or node.name.startswith("_"):
            continue
        said = ast.get_docstring(node)
        anchor = f"{module.replace('.', '-')}-{node.name}"
        yield f"### {node.name} {{#{anchor} .unnumbered}}\n"
        yield f"```python\n{signature(node)}\n```\n"
        yield docstring_text(said or "")
        if isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef) and not inner.name.startswith("_"):
                    yield f"```python\n{signature(inner)}\n```\n"
                    yield docstring_text(ast.get_docstring(inner) or "")


def signature(node: ast.FunctionDef | ast.ClassDef) -> str:
    """The head of a function, or a class with its fields."""
    if isinstance(node, ast.ClassDef):
        bases = ", ".join(ast.unparse(base) for base in node.bases)
        lines = [f"class {node.name}({bases}):" if bases else f"class {node.name}:"]
        lines += [
            f"    {ast.unparse(item)}"
            for item in node.body
            if isinstance(item, ast.AnnAssign) and not ast.unparse(item.target).startswith("_")
        ]
        return "\n".join(lines)
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    one = f"def {node.name}({ast.unparse(node.args)}){returns}"
    if len(one) <= 88:
        return one
    inside = ast.unparse(node.args)
    parts = re.split(r", (?=[*\w]+(?::|=|,|$))", inside)
    return f"def {node.name}(\n    " + ",\n    ".join(parts) + f"\n){returns}"


def docstring_text(text: str) -> str:
    """A NumPy docstring as Markdown: sections in bold, one list entry a parameter."""
    text = _ROLE.sub(r"`\1`", text).replace("``", "`")
    parts = _SECTION.split(text)
    out = [parts[0].strip()]
    for name, body in zip(parts[1::2], parts[2::2], strict=True):
        out.append(f"**{name}**\n\n{_fields(body)}")
    return "\n\n".join(part for part in out if part) + "\n"


def _fields(body: str) -> str:
    """``name`` at the margin, its description indented below."""
    items: list[list[str]] = []
    for line in body.strip("\n").splitlines():
        if line and not line.startswith(" "):
            items.append([line.strip()])
        elif line.strip() and items:
            items[-1].append(line.strip())
    return "\n".join(
        f"- `{head.replace('`', '')}`: {' '.join(rest)}" if rest else f"- {head}"
        for head, *rest in items
    )
