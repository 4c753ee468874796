"""Fixtures: a toy study on Dask workers that the session shares; chat servers and clients."""

from __future__ import annotations

import csv
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from chat_server import Server
from toy_study import write_toy

from aegis import engines
from aegis.engines import chat
from aegis.tables import PROJECT, Run, open_run


@dataclass(frozen=True)
class Toy:
    """A toy study whose runs lie in a folder of the test's own."""

    folder: Path
    scheduler: str
    profile: str = "toy.yaml"

    @property
    def params(self) -> Path:
        return self.folder / self.profile

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


@pytest.fixture(scope="session")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Two Dask workers that can import the toy study's work functions."""
    from aegis.cluster import local_cluster

    folder = tmp_path_factory.mktemp("work") / "study"
    write_toy(folder)
    sys.path.insert(0, str(folder))  # workers take over the path of their parent
    with local_cluster(2, folder / "workers.log") as address:
        sys.path.remove(str(folder))
        yield address


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory, scheduler: str) -> Path:
    """The runs folder of a toy study that is up to date; copied, never changed."""
    folder = tmp_path_factory.mktemp("finished")
    write_toy(folder / "study")
    with pytest.MonkeyPatch.context() as patch:
        point_to(folder / "study", folder / "runs", patch)
        Toy(folder / "study", scheduler).run()
    return folder / "runs"


def point_to(study: Path, runs: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("AEGIS_NOTEBOOKS", str(study / "notebooks"))
    patch.setenv("AEGIS_RUNS", str(runs))
    patch.setenv("PYTHONPATH", str(study))
    patch.syspath_prepend(study)
    sys.modules.pop("toy_work", None)


@pytest.fixture
def toy_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The toy study's files, with the environment pointing to them; no workers."""
    folder = tmp_path / "study"
    write_toy(folder)
    point_to(folder, tmp_path / "runs", monkeypatch)
    return folder


@pytest.fixture
def toy(toy_folder: Path, scheduler: str) -> Toy:
    """The toy study and workers to run it on; nothing has run."""
    return Toy(toy_folder, scheduler)


@pytest.fixture
def done(toy: Toy, finished: Path) -> Toy:
    """The toy study, run and up to date."""
    shutil.copytree(finished, toy.folder.parent / "runs", dirs_exist_ok=True)
    return toy


@pytest.fixture(scope="session")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """The finished smoke run (in ``$AEGIS_SMOKE_RUNS`` when set, so that a trial is short)."""
    from aegis import pipeline

    kept = os.environ.get("AEGIS_SMOKE_RUNS")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AEGIS_RUNS", kept or str(tmp_path_factory.mktemp("smoke")))
        patch.delenv("AEGIS_NOTEBOOKS", raising=False)
        pipeline.run_study(pipeline.load_study(PROJECT / "params" / "smoke.yaml"), "smoke")
        yield open_run("smoke")


StandIn = Callable[[str, str, Callable[[], object]], None]


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """Engines of a test: ``stand_in(role, name, factory)``; none stays resident after it."""

    def register(role: str, name: str, factory: Callable[[], object]) -> None:
        monkeypatch.setitem(engines._factories, (role, name), factory)

    yield register
    engines.release()


@pytest.fixture
def serve():
    servers = []

    def start(*script, delay_s=0.0):
        servers.append(Server(script, delay_s))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def client(tmp_path, monkeypatch):
    monkeypatch.setattr(chat, "_backoff", lambda attempt, key: 0.01)
    monkeypatch.setenv("AEGIS_LOCAL_KEY", "secret-of-the-test")

    def make(server, **options):
        model = chat.ChatModel(
            "toy", "r1", "none", base_url=server.url, key_variable="AEGIS_LOCAL_KEY",
            seed=7, length_parameter="max_tokens", input_price=1.0, output_price=2.0,
            extra_body={"chat_template_kwargs": {"t": False}},
        )  # fmt: skip
        return chat.ChatClient(model, tmp_path / "cache", **{"timeout_s": 0.6, **options})

    return make


_faults: dict[tuple[str, str], list[bool]] = {}


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Note whether what a fault-injecting test asserts held; a skipped one was not tried."""
    outcome = yield
    report = outcome.get_result()
    marker = item.get_closest_marker("fault")
    if marker is not None and report.when == "call" and not report.skipped:
        kind = (str(marker.args[0]), str(marker.args[1]))
        _faults.setdefault(kind, []).append(bool(report.passed))


def pytest_sessionfinish() -> None:
    """Write the outcomes where ``$AEGIS_FAULTS`` says."""
    target = os.environ.get("AEGIS_FAULTS")
    if target and _faults:
        with open(target, "w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(["fault", "where", "tried", "survived"])
            for (kind, where), held in sorted(_faults.items()):
                writer.writerow([kind, where, len(held), sum(held)])
