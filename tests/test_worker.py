"""Resident workers: the protocol, what a lost process costs, what reaches which channel."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest

from aegis.engines import worker
from aegis.engines.worker import Worker
from aegis.errors import EngineUnavailable, ItemError


@pytest.fixture(autouse=True)
def own_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AEGIS_PYTHON_TOY", sys.executable)


@pytest.fixture
def toy() -> Iterator[Worker]:
    with Worker("toy", {}, silence_s=20.0) as started:
        yield started


def children() -> list[int]:
    return [child.pid for child in psutil.Process().children() if child.status() != "zombie"]


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((0, 3), np.float32),
        np.arange(6, dtype=np.int16).reshape(2, 3),
        np.random.default_rng(1).normal(size=(3, 400_000)).astype(np.float32),
        np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    ],
    ids=["empty", "int16", "large", "column-major"],
)
def test_arrays_come_back_as_they_went(toy: Worker, array: np.ndarray) -> None:
    value, out = toy.call("echo", {"word": "été"}, {"a": array, "b": array[:1]})
    assert value == {"calls": 1, "word": "été"}
    np.testing.assert_array_equal(out["a"], array)
    assert out["a"].dtype == array.dtype
    assert list(out) == ["a", "b"]


def test_the_process_stays_between_requests(toy: Worker) -> None:
    assert [toy.call("echo", {}, {})[0]["calls"] for _ in range(3)] == [1, 2, 3]
    assert toy.n_starts == 1


def test_what_libraries_print_reaches_no_channel(
    toy: Worker, capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    monkeypatch.setenv("AEGIS_WORKER_LOG", str(log))
    toy.call("say", {"text": "my name is Doris"}, {})
    assert toy.call("echo", {}, {})[0]["calls"] == 2
    printed = capfd.readouterr()
    assert "Doris" not in printed.out + printed.err
    assert log.read_text().count("Doris") == 1  # stderr only, in the worker's own log


def test_a_refusal_is_one_items_failure(toy: Worker) -> None:
    with pytest.raises(ItemError, match="unsupported: the toy does not like it"):
        toy.call("refuse", {}, {})
    assert toy.call("echo", {}, {})[0]["calls"] == 2


def test_an_error_says_its_place_and_quotes_nothing(toy: Worker) -> None:
    with pytest.raises(ItemError, match=r"failed: toy: ValueError at serve_toy\.py:\d+") as caught:
        toy.call("fail", {"text": "my name is Doris"}, {})
    assert "Doris" not in str(caught.value)
    assert toy.n_starts == 1


def test_a_crash_is_tried_once_more_in_a_fresh_process(toy: Worker, tmp_path: Path) -> None:
    value, _ = toy.call("die", {"once": str(tmp_path / "flag")}, {})
    assert value == {"calls": 1}
    assert toy.n_starts == 2


def test_a_crash_fails_its_item_and_the_next_one_works(toy: Worker) -> None:
    with pytest.raises(ItemError, match=r"lost 2 times \(it ended with code 9\)"):
        toy.call("die", {}, {})
    assert toy.call("echo", {}, {})[0]["calls"] == 1
    assert toy.n_starts == 3


def test_three_lost_items_in_a_row_give_the_engine_up(toy: Worker) -> None:
    for _ in range(2):
        with pytest.raises(ItemError, match="was lost"):
            toy.call("die", {}, {})
    with pytest.raises(EngineUnavailable, match="toy: lost on 3 items in a row"):
        toy.call("die", {}, {})


def test_slow_is_not_dead_but_silent_is(monkeypatch: pytest.MonkeyPatch) -> None:
    with Worker("toy", {}, silence_s=3.0) as toy:
        toy.call("sleep", {"seconds": 5.0}, {})  # beats arrive every two seconds
        assert toy.n_starts == 1
        monkeypatch.setattr(worker, "ATTEMPTS", 1)
        began = time.monotonic()
        with pytest.raises(ItemError, match="no sign of life for 3 s"):
            toy.call("freeze", {}, {})
        assert time.monotonic() - began < 12.0


def test_missing_weights_are_unavailable() -> None:
    with (
        Worker("toy", {"unavailable": True}) as toy,
        pytest.raises(EngineUnavailable, match="toy: no weights for the toy"),
    ):
        toy.call("echo", {}, {})


def test_an_environment_that_is_not_installed_says_how(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AEGIS_ENVS", str(tmp_path))
    with pytest.raises(EngineUnavailable, match="run `aegis engine install f5`"):
        Worker("f5", {}).call("echo", {}, {})


def test_a_forgotten_worker_leaves_no_process() -> None:
    before = set(children())
    forgotten = Worker("toy", {})
    forgotten.call("echo", {}, {})
    (started,) = set(children()) - before
    del forgotten
    gc.collect()
    assert started not in children()


def test_the_environments_own_packages_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    assert worker.check("toy") == {"numpy": np.__version__}


def test_an_item_costs_little_beside_its_model(toy: Worker) -> None:
    """The aim is 5 ms; the median of a busy machine gets some room."""
    ten_seconds = np.zeros(160_000, np.float32)
    toy.call("echo", {}, {"a": ten_seconds})
    times = []
    for _ in range(30):
        began = time.perf_counter()
        toy.call("echo", {}, {"a": ten_seconds})
        times.append(time.perf_counter() - began)
    assert float(np.median(times)) < 0.02


# --- environments ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", worker.environment_names())
def test_recipes_are_complete(name: str) -> None:
    recipe = worker.read_recipe(name)
    assert recipe.licence
    assert recipe.python in ("3.9", "3.10", "3.11")
    assert (worker.ENVS / f"serve_{name}.py").exists()
    assert all("==" in package or " @ git+" in package for package in recipe.packages)
    if recipe.clone:
        assert recipe.clone.startswith("https://github.com/")
        assert len(recipe.commit) == 40


@pytest.mark.parametrize("path", sorted(worker.ENVS.glob("serve*.py")), ids=lambda p: p.stem)
def test_servers_need_nothing_of_this_package(path: Path) -> None:
    assert "aegis" not in path.read_text("utf-8")


def test_an_installation_runs_its_steps_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AEGIS_ENVS", str(tmp_path))
    steps: list[list[str]] = []

    def run(step: list[str], **_options: Any) -> SimpleNamespace:
        steps.append(step)
        return SimpleNamespace(returncode=0, stderr="", stdout="")

    folder = worker.install("toy", run)
    assert folder == tmp_path / "toy"
    assert steps[0][1:] == ["-m", "venv", str(folder)]
    assert steps[1][-1] == "numpy==2.4.6"


def test_a_failing_step_gives_its_last_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AEGIS_ENVS", str(tmp_path))

    def run(step: list[str], **_options: Any) -> SimpleNamespace:
        return SimpleNamespace(returncode=1, stderr="first\nno such package\n", stdout="")

    with pytest.raises(EngineUnavailable, match="failed: no such package"):
        worker.install("toy", run)


def test_a_missing_python_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AEGIS_ENVS", str(tmp_path))
    monkeypatch.setattr(worker.shutil, "which", lambda name: None)
    monkeypatch.setattr(worker.sys, "version_info", SimpleNamespace(major=3, minor=1))
    with pytest.raises(EngineUnavailable, match=r"needs python3\.11"):
        worker.install("toy", subprocess.run)


def test_descriptors_are_closed() -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with Worker("toy", {}) as toy:
            toy.call("echo", {}, {})
    assert len(os.listdir("/proc/self/fd")) <= before + 1
