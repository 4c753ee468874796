"""Fixtures of the run layer: a toy study, and Dask workers that the whole session shares."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest
from toy_study import write_toy

from aegis.tables import SCHEMAS, Run, open_run


@dataclass(frozen=True)
class Toy:
    """A toy study whose runs lie in a folder of the test's own."""

    folder: Path
    scheduler: str

    @property
    def params(self) -> Path:
        return self.folder / "toy.yaml"

    def run(self, *overrides: str, name: str = "toy", **options: object) -> list[str]:
        """Run what is stale; the stages that were executed."""
        from aegis import pipeline

        study = pipeline.load_study(self.params, overrides)
        outcomes = pipeline.run_study(study, name, scheduler=self.scheduler, **options)
        return [outcome.stage for outcome in outcomes if outcome.executed]

    def open(self, name: str = "toy") -> Run:
        return open_run(name)

    def status(self, *overrides: str, name: str = "toy") -> dict[str, list[str]]:
        from aegis import pipeline

        return pipeline.status(pipeline.load_study(self.params, overrides), self.open(name))


def tables_of(run: Run) -> dict[str, pd.DataFrame]:
    """All tables of a run."""
    return {name: run.read(name) for name in SCHEMAS if run.has(name)}


def assert_same_tables(first: Run, second: Run) -> None:
    a, b = tables_of(first), tables_of(second)
    assert a.keys() == b.keys()
    for name, table in a.items():
        pd.testing.assert_frame_equal(table, b[name])


@pytest.fixture(scope="session")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Two Dask workers that can import the toy study's work functions."""
    from aegis.cluster import local_cluster

    folder = tmp_path_factory.mktemp("work")
    write_toy(folder / "study")
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(folder / "study")
    with local_cluster(2) as address:
        yield address
    if before is None:
        del os.environ["PYTHONPATH"]
    else:
        os.environ["PYTHONPATH"] = before


@pytest.fixture
def toy_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The toy study's files, with the environment pointing to them; no workers."""
    folder = tmp_path / "study"
    write_toy(folder)
    monkeypatch.setenv("AEGIS_NOTEBOOKS", str(folder / "notebooks"))
    monkeypatch.setenv("AEGIS_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.syspath_prepend(folder)
    sys.modules.pop("toy_work", None)
    return folder


@pytest.fixture
def toy(toy_folder: Path, scheduler: str) -> Toy:
    """The toy study and workers to run it on."""
    return Toy(toy_folder, scheduler)
