"""Every notebook has the same skeleton; what a reader relies on is checked here."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

from aegis import params
from aegis.pipeline import STAGES, find_notebooks, load_study
from aegis.tables import SCHEMAS

PROJECT = Path(__file__).resolve().parent.parent
FOLDER = PROJECT / "notebooks"
EXPLORE = FOLDER / "explore.py"  # for people; no stage
NOTEBOOKS = sorted({*FOLDER.glob("*.py"), *FOLDER.glob("appendix/*.py")} - {EXPLORE})
SECRET = {name for name, schema in SCHEMAS.items() if schema.visibility == "secret"}
NULLABLE = {
    name for schema in SCHEMAS.values() for name, kind in schema.columns.items() if "?" in kind
}
SHOWN = {"head", "tail", "sample"}

pytestmark = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def split(path: Path) -> tuple[list[str], list[str]]:
    """(text cells, code cells) of a notebook."""
    cells = params.cells(path.read_text("utf-8"))
    text = [body for head, body in cells if head.startswith("[markdown]")]
    code = [body.strip() for head, body in cells if not head.startswith("[markdown]")]
    return text, code


def test_it_is_wired(path: Path) -> None:
    assert path.stem in STAGES
    (opened,) = re.findall(r'open_stage\("([^"]+)", globals\(\)\)', path.read_text("utf-8"))
    assert opened == path.stem


def test_it_begins_with_a_title_and_an_anchor(path: Path) -> None:
    text, _ = split(path)
    first = text[0].strip().splitlines()[0]
    assert re.fullmatch(r"# # .+ \{#sec-[a-z0-9-]+\}", first)


def test_its_parameters_are_few_and_explained(path: Path) -> None:
    declared = params.read_declarations(path)
    assert "run_name" in declared
    assert len(declared) <= 8
    assert not [name for name, item in declared.items() if not item.comment]


def test_no_row_is_lost_where_a_column_may_be_empty(path: Path) -> None:
    """``NA != x`` is NA, and a filter drops it: what it means must be said with fillna."""
    lines = path.read_text("utf-8").splitlines()
    unequal = [(re.search(r'\["(\w+)"\](?: != |\.ne\()', line), line) for line in lines]
    lost = [line for hit, line in unequal if hit and hit[1] in NULLABLE and "fillna(" not in line]
    assert not lost


def test_it_ends_with_its_receipt(path: Path) -> None:
    _, code = split(path)
    assert code[-1] == "stage.done()"


def test_it_is_short(path: Path) -> None:
    _, code = split(path)
    assert 6 <= len(code) <= 25
    lines = [line for cell in code for line in cell.splitlines() if line.strip()]
    assert len(lines) <= 190


def test_it_defines_no_class_and_at_most_two_functions(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    nodes = list(ast.walk(tree))
    assert not [node for node in nodes if isinstance(node, ast.ClassDef)]
    assert len([node for node in nodes if isinstance(node, ast.FunctionDef)]) <= 2


def test_it_touches_only_its_tables(path: Path) -> None:
    """Table names written out in ``read`` and ``write`` belong to its line of STAGES."""
    wiring = STAGES[path.stem]
    source = path.read_text("utf-8")
    assert set(re.findall(r'stage\.read\("(\w+)"\)', source)) <= set(wiring.reads)
    assert set(re.findall(r'stage\.write\(\s*"(\w+)"', source)) <= set(wiring.writes)


def test_it_shows_no_secret_table(path: Path) -> None:
    """No cell ends in a secret table, as a whole or its head, and none is printed."""
    _, code = split(path)
    trees = [ast.parse(cell) for cell in code]
    secret = {name for tree in trees for name in _bound_to_secret(tree)}
    for tree in trees:
        if not tree.body:
            continue
        last = tree.body[-1]
        if isinstance(last, ast.Expr):
            assert _shown_name(last.value) not in secret
            assert not _reads_secret(last.value)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("print", "display"):
                assert not [a for a in node.args if _shown_name(a) in secret or _reads_secret(a)]


def test_its_figures_have_label_caption_and_alternative_text(path: Path) -> None:
    """What draws says so at the head of its cell; a text alternative is no copy of the caption."""
    _, code = split(path)
    for cell in code:
        if not re.search(r"plt\.show\(|report\.figure\(|so\.Plot\(", cell):
            continue
        options = dict(re.findall(r"^#\| ([\w-]+): (.+)$", cell, re.MULTILINE))
        assert options.get("label", "").startswith("fig-"), cell[:80]
        assert len(options.get("fig-cap", "")) > 20
        assert len(options.get("fig-alt", "")) > 20
        assert options["fig-alt"] != options["fig-cap"]
        assert cell.startswith("#|")


def _reads_secret(node: ast.AST) -> bool:
    """``stage.read("turns")`` or ``stage.write("turns", ...)`` of a secret table."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("read", "write")
        and bool(node.args)
        and isinstance(node.args[0], ast.Constant)
        and node.args[0].value in SECRET
    )


def _bound_to_secret(tree: ast.Module) -> set[str]:
    return {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and _reads_secret(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _shown_name(node: ast.AST) -> str | None:
    """The variable whose rows an expression shows: ``x``, ``x.head()``, ``x.sample(3)``."""
    called = node.func if isinstance(node, ast.Call) else None
    if isinstance(called, ast.Attribute) and called.attr in SHOWN:
        node = called.value
    return node.id if isinstance(node, ast.Name) else None


def test_its_source_is_the_only_one(path: Path) -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "*.ipynb"], cwd=PROJECT, capture_output=True, text=True, check=False
    )
    assert tracked.stdout == ""
    assert "Untitled" not in path.stem


def test_profiles_are_valid(path: Path) -> None:
    for profile in sorted((PROJECT / "params").glob("*.yaml")):
        study = load_study(profile)
        assert set(study.notebooks) <= set(find_notebooks())
        if path.stem in study.values:
            assert set(study.values[path.stem]) <= set(params.read_declarations(path))
