from __future__ import annotations

import os
from pathlib import Path

import pytest

from aegis import closure

FILES = {
    "__init__.py": "",
    "values.py": '''
STEP = 2
OTHER = 3

def used(x):
    """Says something."""
    return x + STEP  # a comment

def unused(x: int) -> int:
    return x + OTHER
''',
    "engines/__init__.py": """
_factories = {}

def register(role, name):
    def keep(factory):
        _factories[role, name] = factory
        return factory
    return keep

def load(role, name):
    return _factories[role, name]()
""",
    "engines/speech.py": """
from aegis.engines import register
from aegis.values import unused

def helper():
    return 1

@register("transcriber", "small")
def small():
    return helper()

@register("detector", "rules")
def rules():
    return unused(1)
""",
    "lists.py": """
from pathlib import Path
DATA = Path(__file__).parent / "data"

def names():
    return (DATA / "names.txt").read_text()
""",
    "work.py": """
from aegis import engines
from aegis.lists import names
from aegis.values import used
import aegis.values as values

def plain(item, settings, run):
    return {"x": used(item["x"])}

def through_module(item, settings, run):
    return {"x": values.unused(item["x"])}

def hears(item, settings, run):
    return engines.load("transcriber", settings["asr"])

def reads(item, settings, run):
    return names()

def serves(item, settings, run):
    from aegis.programs import start
    return start()

def imports_late(item, settings, run):
    from aegis.values import unused as late
    return late(1)
""",
    "data/names.txt": "Ann",
    "programs.py": """
from pathlib import Path
ENVS = Path(__file__).parent / "engines" / "envs"

def start():
    return str(ENVS / "serve.py")
""",
    "engines/envs/serve.py": "print(1)",
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "aegis"
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(closure, "PACKAGE", folder)
    return folder


def replace(path: Path, old: str, new: str) -> None:
    text, stat = path.read_text(), path.stat()
    assert old in text
    path.write_text(text.replace(old, new))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1_000_000))


@pytest.mark.parametrize(
    ("function", "file", "old", "new", "depends"),
    [
        ("plain", "values.py", "x + STEP", "x - STEP", True),
        ("plain", "values.py", "STEP = 2", "STEP = 4", True),
        ("plain", "values.py", "Says something.", "Says nothing.", False),
        ("plain", "values.py", "# a comment", "# another", False),
        ("plain", "values.py", "x + OTHER", "x - OTHER", False),
        ("plain", "values.py", "OTHER = 3", "OTHER = 3\nprint('on import')", True),
        ("plain", "engines/speech.py", "return 1", "return 2", False),
        ("plain", "work.py", "values.unused", "values.used", False),
        ("through_module", "values.py", "x + OTHER", "x - OTHER", True),
        ("through_module", "values.py", "OTHER = 3", "OTHER = 5", True),
        ("through_module", "values.py", "x: int", "x: float", False),
        ("through_module", "values.py", "x + STEP", "x - STEP", False),
        ("hears", "engines/speech.py", "return 1", "return 2", True),
        ("hears", "engines/speech.py", "unused(1)", "unused(2)", False),
        ("hears", "engines/__init__.py", "_factories = {}", "_factories = {1: 2}", True),
        ("reads", "data/names.txt", "Ann", "Bob", True),
        ("plain", "data/names.txt", "Ann", "Bob", False),
        ("serves", "engines/envs/serve.py", "print(1)", "print(2)", True),
        ("reads", "engines/envs/serve.py", "print(1)", "print(2)", False),
        ("imports_late", "values.py", "x + OTHER", "x - OTHER", True),
    ],
)
def test_what_a_function_depends_on(
    package: Path, function: str, file: str, old: str, new: str, depends: bool
) -> None:
    before = closure.closure_hashes(package / "work.py", function)
    replace(package / file, old, new)
    after = closure.closure_hashes(package / "work.py", function)
    assert (before != after) == depends


def test_a_notebook_depends_on_what_it_uses(package: Path, tmp_path: Path) -> None:
    notebook = tmp_path / "00_x.py"
    notebook.write_text(
        "from aegis.work import plain\nfrom aegis.stage import open_stage\nplain\n"
    )
    found = closure.closure_hashes(notebook)
    assert set(found) == {".", "aegis", "aegis.values", "aegis.work"}


def test_an_unknown_name_takes_the_whole_module(package: Path, tmp_path: Path) -> None:
    notebook = tmp_path / "00_x.py"
    notebook.write_text("from aegis import values\nprint(getattr(values, 'used'))\n")
    before = closure.closure_hashes(notebook)
    replace(package / "values.py", "x + OTHER", "x - OTHER")
    assert closure.closure_hashes(notebook) != before


def test_the_real_package_can_be_read() -> None:
    for path in sorted((closure.PACKAGE / "work").glob("*.py")):
        found = closure.closure_hashes(path)
        assert not set(found) & closure.RUN_LAYER
        assert path.stem == "__init__" or "aegis.errors" in found or len(found) > 1
