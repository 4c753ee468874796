"""The pages about extending the study, done as they say, in a copy of the repository."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from doc_pages import commands, steps, write
from fabricate import fabricate_run
from typer.main import get_command

from aegis import cli
from aegis.tables import PROJECT, Run

PAGES = ("docs/own_recordings.md", "docs/extending.md")


@pytest.mark.parametrize("arguments", [c for page in PAGES for c in commands(page)], ids=" ".join)
def test_every_command_of_the_pages_exists(arguments):
    """Names and options are known to the command line; nothing is run."""
    command = get_command(cli.app).commands[arguments[0]]
    command.make_context(arguments[0], arguments[1:])


def test_there_are_commands_on_the_pages():
    assert len(commands("docs/own_recordings.md")) >= 12
    assert len(commands("docs/extending.md")) == 4


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """A copy of the repository with a made-up demo run, after all that the page says."""
    folder = tmp_path_factory.mktemp("copy")
    for part in ("aegis", "notebooks", "params", "data_manifests"):
        shutil.copytree(
            PROJECT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__")
        )
    for file in ("pyproject.toml", "_quarto.yml"):
        shutil.copyfile(PROJECT / file, folder / file)
    run = fabricate_run(folder / "runs" / "demo", n_recordings=1, audio=True)
    spoken = run.read("edits")["turn_id"].unique()
    run.write("rendered", run.read("rendered").iloc[:0])
    assert len(spoken)
    (folder / "my_copy").mkdir()
    shutil.copyfile(next(run.secret.rglob("*.wav")), folder / "my_copy" / "visit1.wav")
    (folder / "my_copy" / "visit1.txt").write_text("D: Good morning.\n\nP: Hello.\n")
    follow(folder, "docs/extending.md")
    return folder


def follow(folder: Path, page: str) -> None:
    (folder / "bin").mkdir()
    script = folder / "bin" / "aegis"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m aegis.cli "$@"\n')
    script.chmod(0o755)
    environment = {
        **os.environ, "PYTHONPATH": str(folder), "PATH": f"{script.parent}:{os.environ['PATH']}",
    }  # fmt: skip
    for name in ("AEGIS_RUNS", "AEGIS_NOTEBOOKS", "AEGIS_DATA"):
        environment.pop(name, None)
    for name, body in steps(page):
        if name != "bash":
            write(folder, name, body)
            continue
        # Embedded renderers want weights; the page's own engine takes their places here.
        body = body.replace(
            "--only 06",
            "--only 06 -p 06_render_edits.renderer_a=hum -p 06_render_edits.renderer_b=hum"
            " -p 06_render_edits.synthesiser=toy",
        )
        done = subprocess.run(
            ["sh", "-e", "-c", body], cwd=folder, env=environment, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{body}\n{done.stdout[-1500:]}{done.stderr[-3000:]}"


def test_the_engine_is_used_and_named(copy):
    run = Run(copy / "runs" / "demo")
    rendered = run.read("rendered")
    made = rendered[rendered["renderer"] == "renderer_a"]
    assert (made["status"] == "ok").all()
    assert len(made) > 0
    receipt = pd.read_json(run.root / "receipts" / "06_render_edits.json", typ="series")
    assert "hum" in {engine["name"] for engine in receipt["engines"]}


def test_the_condition_is_rendered_and_put_together(copy):
    made = Run(copy / "runs" / "demo").read("reconstructions")
    own = made[made["condition"] == "hummed"]
    assert own["status"].tolist() == ["ok"]
    assert (
        own["n_rendered"].tolist()
        == made.loc[made["condition"] == "redacted", "n_rendered"].tolist()
    )


def test_the_corpus_is_linked_and_read(copy):
    assert (copy / "data" / "mine" / "visit1.wav").is_symlink()
    code = "from aegis.corpora import read_conversation as r; print(r('mine', 'visit1').speakers)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=copy, capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(copy)},
    )  # fmt: skip
    assert done.stdout.strip() == "('D', 'P')"


def test_the_appendix_ran_and_is_listed(copy):
    notebook = (copy / "runs" / "demo" / "notebooks" / "X_lengths.ipynb").read_text()
    assert "0/8 (0.0 %) of turns are long" in notebook  # made-up turns last four seconds
    assert "X_lengths.ipynb" in (copy / "_quarto.yml").read_text()
