"""Identifiers and speakers' file names are planted; nothing that may be seen holds them.

Scanned: executed notebooks, receipts, public tables, pages, release archives, what commands
print, and error messages; behind every encoding that ``test_privacy`` lists.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import soundfile as sf
from conftest import Toy
from test_release import releasable_run, write_receipts
from typer.testing import CliRunner

from aegis import pipeline, privacy, site
from aegis.cli import app
from aegis.errors import AegisError
from aegis.tables import PROJECT, SCHEMAS, Run, open_run

FIRST = ("Amélie", "Zoë", "Ødegård", "O'Neill", "Jean-Noël", "Søren", "Ana María", "Łukasz")
LAST = ("Quisenbury", "Vanterpoole", "Zimmerwald", "Okonkwo-Hale", "Thistlecroft")
KIND = "planted"


def planted(n: int, what: str) -> list[str]:
    """Names that occur nowhere else."""
    return [f"{FIRST[i % 8]} {LAST[i % 5]} {what}{i:03d}" for i in range(n)]


def texts(run: Run) -> Iterator[tuple[str, str]]:
    """(name, text) of all that a run holds outside of its secret folder and its sound."""
    for path in sorted(run.root.rglob("*")):
        name = path.relative_to(run.root).as_posix()
        yield f"name of {name}", name
        if run.secret in path.parents or path.is_dir() or path.suffix == ".wav":
            continue
        if path.suffix == ".parquet":
            yield name, pd.read_parquet(path).to_csv()
        else:
            yield name, path.read_text("utf-8")


def leaks(finder: privacy.Finder, held: Iterator[tuple[str, str]]) -> list[str]:
    return [name for name, text in held if "secret/" not in name and finder.find(text)]


def fill(folder: Path, names: list[str]) -> None:
    """A folder a speaker with a visit in it; every fifth file is broken in its own way."""
    tone = np.sin(np.arange(4800) * 0.2)
    for i, name in enumerate(names):
        path = folder / name.rsplit(" ", 1)[0] / f"{name}.wav"
        path.parent.mkdir(parents=True, exist_ok=True)
        if i % 5:
            sf.write(path, 0.3 * tone * (1 + i / 1000), 8000)
            continue
        broken = (b"", b"RIFF", name.encode() * 30, b"fLaC" + bytes(90), b"\0" * 99)
        path.write_bytes(broken[i // 5 % 5])


def test_a_folder_of_speakers_leaves_no_name_outside_of_the_secrets(
    scheduler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture
) -> None:
    names = planted(100, "visit")
    folder = tmp_path / "Clinic of Dr Farquharson-Lyle"
    fill(folder, names)
    monkeypatch.setenv("AEGIS_RUNS", str(tmp_path / "runs"))
    monkeypatch.delenv("AEGIS_NOTEBOOKS", raising=False)
    study = pipeline.load_study(PROJECT / "params" / "own.yaml", [f"00_corpora.folder={folder}"])
    pipeline.run_study(study, "own", only="00", scheduler=scheduler)
    run = open_run("own")
    fates = run.read("recordings")["status"].value_counts()
    assert fates["ok"] == 80 and fates.sum() == 100
    needles = {part for name in names for part in (name, f"{name}.wav", name.rsplit(" ", 1)[0])}
    finder = privacy.build_finder(dict.fromkeys({*needles, folder.name, str(folder)}, KIND))
    assert finder.find(run.read("file_map").to_csv()) == {KIND}  # the scan does find them
    assert leaks(finder, texts(run)) == []
    for command in (["status"], ["verify"], ["table", "recordings"], ["table", "file_map"]):
        done = CliRunner().invoke(app, [*command, "--run", "own"])
        assert not finder.find(done.output + str(done.exception))
    said = capfd.readouterr()
    assert not finder.find(said.out + said.err)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A made-up run whose secret tables are full of planted identifiers."""
    monkeypatch.setenv("AEGIS_RUNS", str(tmp_path / "runs"))
    monkeypatch.delenv("AEGIS_NOTEBOOKS", raising=False)
    made = releasable_run(tmp_path / "runs" / "made")
    names = iter(planted(100, "MRN") * 40)
    for table, schema in SCHEMAS.items():
        if schema.visibility != "secret" or not made.has(table):
            continue
        frame = made.read(table)
        free = [c for c in ("text", "original", "canonical", "evidence", "source_text",
                            "original_evidence", "note") if c in schema.columns]  # fmt: skip
        for column in free:
            frame[column] = [next(names) for _ in range(len(frame))]
        made.write(table, frame)
    write_receipts(made)
    return made


def test_pages_and_releases_of_a_run_hold_no_identifier(
    run: Run, scheduler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finder = privacy.build_finder(dict.fromkeys(planted(100, "MRN"), KIND))
    study = pipeline.load_study(PROJECT / "params" / "demo.yaml")
    for stage in ("F_units", "Q_failures"):
        pipeline.run_study(study, "made", only=stage, scheduler=scheduler, quiet=True)
    assert finder.find(run.read("edits").to_csv()) == {KIND}
    assert leaks(finder, texts(run)) == []
    pages = site.render("made", tmp_path / "site").index.parent
    shown = [path for path in pages.rglob("*") if path.suffix in (".html", ".json", ".csv")]
    assert len(shown) > 3
    assert leaks(finder, ((path.name, path.read_text("utf-8")) for path in shown)) == []
    done = CliRunner().invoke(app, ["release", "made", "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert not finder.find(done.output)
    with tarfile.open(tmp_path / "out" / "made.tar") as archive:
        for entry in archive.getmembers():
            content = archive.extractfile(entry).read()
            is_table = entry.name.endswith(".parquet")
            text = pd.read_parquet(io.BytesIO(content)).to_csv() if is_table else content.decode()
            assert not finder.find(text), entry.name


def test_a_fault_that_quotes_a_secret_stays_among_the_secrets(
    toy: Toy, capfd: pytest.CaptureFixture
) -> None:
    finder = privacy.build_finder({"a secret word": KIND, "on purpose": KIND})
    with pytest.raises(AegisError, match="01_transcribe: ValueError in cell") as caught:
        toy.run("00_corpora.odd=toy/r1", "01_transcribe.ending=error")
    run = toy.open()
    secrets = [path for path in (run.secret / "failed").rglob("*") if path.is_file()]
    assert {kind for path in secrets for kind in finder.find(path.read_text())} == {KIND}
    assert leaks(finder, texts(run)) == []
    said = capfd.readouterr()
    assert not finder.find(str(caught.value) + said.out + said.err)
