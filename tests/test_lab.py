"""Views of the notebooks: sources are never written by accident."""

import jupytext
import pytest
from typer.testing import CliRunner

from aegis import lab, pipeline
from aegis.errors import ParamError, TableError

SOURCE = """# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Title {#sec-a}

# %% tags=["parameters"]
run_name: str = "demo"  # the run
n: int = 3  # how many

# %%
#| label: fig-a
print(n)
"""


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.setattr(lab, "find_notebooks", lambda: {"00_a": tmp_path / "00_a.py"})
    monkeypatch.setenv("AEGIS_NOTEBOOKS", str(tmp_path / "none"))
    (tmp_path / "00_a.py").write_text(SOURCE)
    return tmp_path / "00_a.py"


def edit(view, old, new):
    notebook = jupytext.read(view)
    for cell in notebook.cells:
        cell.source = cell.source.replace(old, new)
    jupytext.write(notebook, view)


def test_a_view_that_was_edited_leaves_its_source_alone(source, tmp_path):
    view = tmp_path / "lab" / "00_a.ipynb"
    assert lab.write_views(tmp_path / "lab") == {"00_a": "made"}
    edit(view, "print(n)", "print(n + 1)")
    assert lab.write_views(tmp_path / "lab") == {"00_a": "kept"}
    assert source.read_text() == SOURCE
    assert "n + 1" in view.read_text()


def test_changes_on_both_sides_are_both_kept(source, tmp_path):
    lab.write_views(tmp_path / "lab")
    edit(tmp_path / "lab" / "00_a.ipynb", "print(n)", "print(n + 1)")
    source.write_text(SOURCE.replace("print(n)", "print(2 * n)"))
    with pytest.raises(ParamError, match=r"00_a\.py changed since this view was made"):
        lab.accept_view(tmp_path / "lab", "00_a")
    assert lab.write_views(tmp_path / "lab") == {"00_a": "set aside"}
    (mine,) = (tmp_path / "lab").glob("00_a.mine-*.ipynb")
    assert "n + 1" in mine.read_text()
    assert "2 * n" in (tmp_path / "lab" / "00_a.ipynb").read_text()


def test_an_untouched_view_follows_its_source(source, tmp_path):
    lab.write_views(tmp_path / "lab")
    source.write_text(SOURCE.replace("print(n)", "print(2 * n)"))
    assert lab.write_views(tmp_path / "lab") == {"00_a": "refreshed"}
    assert not list((tmp_path / "lab").glob("*.mine-*"))


def test_accepting_writes_the_cells_and_keeps_the_header(source, tmp_path):
    lab.write_views(tmp_path / "lab", {"00_a": {"run_name": "other", "n": 7}})
    view = tmp_path / "lab" / "00_a.ipynb"
    assert "run_name = 'other'" in view.read_text()
    edit(view, "print(n)", "print(n + 1)")
    lab.accept_view(tmp_path / "lab", "00_a")
    assert source.read_text() == SOURCE.replace("print(n)", "print(n + 1)")
    assert lab.write_views(tmp_path / "lab", {"00_a": {"run_name": "other", "n": 7}}) == {
        "00_a": "kept"
    }


@pytest.mark.parametrize("name", list(lab.lab_sources()))
def test_every_notebook_survives_the_way_there_and_back(name):
    text = lab.lab_sources()[name].read_text(encoding="utf-8")
    back = lab._cells_text(jupytext.reads(text, fmt="py:percent"))
    assert text[text.index("# %%") :] == back


def test_the_command_makes_views_without_opening_them(source, tmp_path, monkeypatch):
    from aegis import cli, tables

    monkeypatch.setattr(tables, "PROJECT", tmp_path)
    done = CliRunner().invoke(cli.app, ["lab", "--no-open"])
    assert done.exit_code == 0
    assert (tmp_path / "lab" / "00_a.ipynb").exists()


def test_a_notebook_says_which_one_must_run_before_it(tmp_path, monkeypatch):
    from aegis.stage import Stage
    from aegis.tables import open_run

    monkeypatch.setenv("AEGIS_RUNS", str(tmp_path))
    stage = Stage(pipeline.STAGES["03_assign_voices"], open_run("new", create=True), {}, tmp_path)
    with pytest.raises(TableError, match=r"03_assign_voices reads profiles, .*02_profiles first"):
        stage.read("profiles")
