from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import distributed
import pandas as pd
import pytest
from conftest import Toy
from toy_study import assert_same_tables, tables_of

from aegis import receipts
from aegis.cluster import local_cluster, map_items
from aegis.errors import RunLocked, StageFailed
from aegis.stage import open_stage

STAGES = ["00_corpora", "01_transcribe", "13_contrasts"]


@pytest.mark.fault("a kernel that dies, exits or fails", "in a stage")
@pytest.mark.parametrize(
    ("ending", "message"),
    [
        ("dead", "01_transcribe: the kernel died"),
        ("exit", "01_transcribe: it ended without its receipt"),
        ("early", "01_transcribe: it ended without its receipt"),
        ("error", "01_transcribe: ValueError in cell 4, its message is in the executed copy"),
    ],
)
def test_a_notebook_that_does_not_end_well_fails_its_stage(
    done: Toy, ending: str, message: str
) -> None:
    # The receipt of the execution before this one does not stand for this one.
    with pytest.raises(StageFailed, match=rf"{message}.*toy/secret/failed/01_transcribe\.ipynb"):
        done.run(f"01_transcribe.ending={ending}")
    assert (done.open().root / "secret" / "failed" / "01_transcribe.ipynb").exists()
    assert done.status(f"01_transcribe.ending={ending}")["01_transcribe"] == [
        "parameter ending changed"
    ]


def test_a_stage_that_failed_is_finished_by_the_next_run(done: Toy) -> None:
    with pytest.raises(StageFailed, match="ValueError in cell"):
        done.run("00_corpora.n_items=3", "01_transcribe.ending=error")
    assert done.run("00_corpora.n_items=3") == ["01_transcribe", "13_contrasts"]


@pytest.mark.fault("one byte of a table or sound changed, then the file gone", "after a run")
@pytest.mark.parametrize(
    ("damaged", "stage"),
    [
        ("tables/recordings.parquet", "00_corpora"),
        ("secret/tables/turns.parquet", "01_transcribe"),
        ("secret/wav/original/toy/r1.wav", "00_corpora"),
        ("wav/turns/converted/toy/r2/whole.wav", "01_transcribe"),
    ],
)
def test_damage_is_found_and_only_its_stage_runs_again(toy: Toy, damaged: str, stage: str) -> None:
    toy.run()
    path = toy.open().root / damaged
    before = path.read_bytes()
    path.write_bytes(before[:100] + b"\x7f" + before[101:])
    assert path.read_bytes() != before
    assert toy.status()[stage] == [f"output {damaged} is not what was written"]
    assert toy.run() == [stage]
    assert path.read_bytes() == before
    assert not any(toy.status().values())
    path.unlink()
    assert toy.status()[stage] == [f"output {damaged} is missing"]


@pytest.mark.fault("a worker that dies of one item, three times", "in a stage")
def test_a_worker_that_dies_costs_its_item_only(toy: Toy) -> None:
    toy.run("00_corpora.deadly=toy/r1", only="00")
    recordings = toy.open().read("recordings").set_index("recording_id")
    assert recordings["status"].to_dict() == {
        "toy/r0": "ok", "toy/r1": "failed", "toy/r2": "ok", "toy/r3": "ok",
    }  # fmt: skip
    assert recordings.loc["toy/r1", "reason"] == "unexpected: the worker died 3 times"
    # It was not kept: the next execution tries it again.
    toy.run("00_corpora.deadly=null", only="00")
    assert toy.open().read("recordings")["status"].tolist() == ["ok"] * 4


@pytest.mark.fault("a worker that dies as a stage begins", "before a stage")
def test_a_worker_that_dies_as_a_stage_begins_costs_nothing(tmp_path: Path) -> None:
    work = [{"id": f"i{n}"} for n in range(6)]
    paths = [tmp_path / f"{n}.json" for n in range(6)]
    with local_cluster(2, tmp_path / "log") as address:
        with distributed.Client(address, set_as_default=False) as client:
            victim, _ = client.run(os.getpid).values()
        os.kill(victim, signal.SIGKILL)
        done = dict(map_items(address, "00", plain_work, work, {}, tmp_path, paths, range(6)))
    assert [done[n]["value"] for n in range(6)] == [{"name": f"i{n}"} for n in range(6)]


def plain_work(item: dict[str, str], settings: object, run: object) -> dict[str, str]:
    return {"name": item["id"]}


def test_items_wait_for_the_worker_that_takes_another_ones_place(
    scheduler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distributed.Client, "nthreads", lambda self: {})
    work, paths = [{"id": "a"}, {"id": "b"}], [tmp_path / "a.json", tmp_path / "b.json"]
    done = dict(map_items(scheduler, "00", plain_work, work, {}, tmp_path, paths, [0, 1]))
    assert [done[n]["status"] for n in (0, 1)] == ["ok", "ok"]


@pytest.mark.fault("a scheduler that does not answer", "before a stage")
def test_a_scheduler_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = distributed.Client
    monkeypatch.setattr(
        distributed, "Client", lambda address, **kw: real(address, **(kw | {"timeout": 1}))
    )
    items = map_items("tcp://127.0.0.1:9", "00", print, [{"id": "a"}], {}, tmp_path, [], [0])
    with pytest.raises(StageFailed, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"):
        list(items)


def test_a_function_that_workers_cannot_import_stops_the_stage(
    scheduler: str, tmp_path: Path
) -> None:
    def elsewhere() -> None: ...

    elsewhere.__module__ = "not_there"
    items = map_items(scheduler, "00", elsewhere, [{"id": "a"}], {}, tmp_path, [tmp_path], [0])
    with pytest.raises(StageFailed, match=r"workers cannot import not_there\.elsewhere"):
        list(items)


def aegis(*arguments: str, toy: Toy) -> list[str]:
    return [sys.executable, "-m", "aegis.cli", *arguments, "--cluster", toy.scheduler]


def wait_for(path: Path, count: int, process: subprocess.Popen[bytes]) -> None:
    began = time.monotonic()
    while len(list(path.glob("*.json"))) < count:
        assert process.poll() is None, "it ended too early"
        assert time.monotonic() - began < 240, "nothing happened"
        time.sleep(0.02)


@pytest.mark.fault("kill -9 of the command", "in a stage")
@pytest.mark.parametrize(("stage", "done"), [("00_corpora", 2), ("01_transcribe", 1)])
def test_a_run_killed_in_a_stage_is_finished_by_the_next(toy: Toy, stage: str, done: int) -> None:
    slow = [f"{stage}.sleep_s=0.4", "00_corpora.n_items=6"]
    options = [text for pair in slow for text in ("-p", pair)]
    command = aegis("run", str(toy.params), *options, toy=toy)
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        wait_for(toy.folder.parent / "runs" / "toy" / "secret" / "items" / stage, done, process)
        os.kill(process.pid, signal.SIGKILL)
    run = toy.open()
    assert receipts.read_receipt(run, stage) is None
    executed = toy.run(*slow)
    assert executed == STAGES[STAGES.index(stage) :]
    receipt = receipts.read_receipt(run, stage)
    assert receipt is not None
    assert receipt["reused"] >= done
    toy.run("00_corpora.n_items=6", name="undisturbed")
    assert_same_tables(run, toy.open("undisturbed"))
    assert not list(run.root.rglob("*.part"))


@pytest.mark.fault("two runs at once", "in a stage")
def test_of_two_runs_on_one_folder_the_second_refuses(toy: Toy) -> None:
    command = aegis("run", str(toy.params), "-p", "00_corpora.sleep_s=1", toy=toy)
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        wait_for(
            toy.folder.parent / "runs" / "toy" / "secret" / "items" / "00_corpora", 1, process
        )
        began = time.monotonic()
        with pytest.raises(RunLocked, match="run 'toy': another process is working on it"):
            toy.run()
        assert time.monotonic() - began < 5
        assert process.wait(timeout=120) == 0
    assert toy.run("00_corpora.sleep_s=1") == []


@pytest.mark.fault("more memory asked for than there is", "in an item")
def test_an_item_that_wants_too_much_memory_fails_alone(toy: Toy) -> None:
    toy.run("00_corpora.greedy=toy/r2", only="00")
    recordings = toy.open().read("recordings").set_index("recording_id")
    assert recordings["status"].to_dict() == {
        "toy/r0": "ok", "toy/r1": "ok", "toy/r2": "failed", "toy/r3": "ok",
    }  # fmt: skip
    assert recordings.loc["toy/r2", "reason"].startswith("unexpected: MemoryError at toy_work.py")


@pytest.mark.fault("Ctrl-C", "in a stage")
def test_after_ctrl_c_the_next_run_goes_on(toy: Toy) -> None:
    slow = ["00_corpora.sleep_s=0.4", "00_corpora.n_items=6"]
    options = [text for value in slow for text in ("-p", value)]
    command = aegis("run", str(toy.params), *options, toy=toy)
    items = toy.folder.parent / "runs" / "toy" / "secret" / "items" / "00_corpora"
    with subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True) as process:
        wait_for(items, 2, process)
        os.killpg(process.pid, signal.SIGINT)  # what a terminal does: all processes get it
        _, said = process.communicate(timeout=120)
    assert process.returncode in (1, 130)
    assert b"Traceback" not in said
    assert toy.run(*slow) == STAGES
    receipt = receipts.read_receipt(toy.open(), "00_corpora")
    assert receipt is not None and receipt["reused"] >= 2
    assert toy.open().read("recordings")["status"].tolist() == ["ok"] * 6


DAMAGED = {
    "receipts/00_corpora.json": "00_corpora",
    "notebooks/01_transcribe.ipynb": "01_transcribe",
    "secret/tables/words.parquet": "01_transcribe",
    "tables/claims.parquet": "13_contrasts",
}


@pytest.mark.fault("the second half of a file lost", "after a run")
def test_truncated_files_are_made_anew(done: Toy) -> None:
    run = done.open()
    before = {name: (run.root / name).read_bytes() for name in DAMAGED}
    for name, content in before.items():
        (run.root / name).write_bytes(content[: len(content) // 2])
    assert done.run() == STAGES
    for name in ("secret/tables/words.parquet", "tables/claims.parquet"):
        assert (run.root / name).read_bytes() == before[name]
    assert not any(done.status().values())


@pytest.mark.fault("one bit of every saved item changed", "after a run")
def test_items_with_a_changed_bit_are_computed_anew(done: Toy) -> None:
    run = done.open()
    items = sorted((run.secret / "items").rglob("*.json"))
    for n, path in enumerate(items):
        content = bytearray(path.read_bytes())
        content[(n * 37) % len(content)] ^= 4
        path.write_bytes(bytes(content))
    shutil.rmtree(run.root / "receipts")
    before = tables_of(run)
    assert done.run() == STAGES
    for name, table in tables_of(run).items():
        pd.testing.assert_frame_equal(table, before[name])
    receipt = receipts.read_receipt(run, "00_corpora")
    assert receipt is not None and receipt["reused"] == 0


@pytest.mark.fault("a package changed in mid-study", "after a run")
def test_an_upgraded_package_makes_every_stage_stale(
    done: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = receipts.packages() | {"numpy": "99.0"}
    monkeypatch.setattr(receipts, "packages", lambda: changed)
    assert done.status() == {name: ["package numpy changed"] for name in STAGES}


@pytest.mark.fault("the clock set back and forth", "in a stage")
def test_a_jump_of_the_clock_changes_no_duration(
    done: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AEGIS_NOTEBOOKS", str(done.folder / "notebooks"))
    monkeypatch.delenv("AEGIS_SCHEDULER", raising=False)
    real = time.time
    opened = open_stage("13_contrasts", {"run_name": "toy"})
    for jump in (-86_400.0, 86_400.0):
        monkeypatch.setattr(time, "time", lambda jump=jump: real() + jump)
        for name in opened.wiring.writes:
            opened.write(name, opened.run.read(name))
    opened.done()
    receipt = receipts.read_receipt(done.open(), "13_contrasts")
    assert receipt is not None and 0 <= receipt["wall_s"] < 600


@pytest.fixture
def small_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A runs folder on a disk of 64 KiB; needs the right to mount."""
    disk = tmp_path / "runs"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small disk is not allowed here")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


@pytest.mark.fault("a disk that turns read-only", "between two stages")
def test_a_read_only_disk_is_said_plainly(small_disk: Path, toy: Toy) -> None:
    subprocess.run(["mount", "-o", "remount,size=16m", str(small_disk)], check=True)
    toy.run(only="00")
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    done = subprocess.run(
        aegis("run", str(toy.params), toy=toy), capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "ead-only file system" in done.stderr
    assert "Traceback" not in done.stderr
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    assert toy.run() == STAGES[1:]


@pytest.mark.fault("a full disk", "in a stage")
def test_a_full_disk_is_said_plainly(small_disk: Path, toy: Toy) -> None:
    with pytest.raises(StageFailed, match=r"[Nn]o space left"):
        toy.run("00_corpora.n_items=40")
    subprocess.run(["mount", "-o", "remount,size=16m", str(small_disk)], check=True)
    assert toy.run("00_corpora.n_items=40") == STAGES
    assert len(toy.open().read("recordings")) == 40
