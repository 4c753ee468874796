from __future__ import annotations

import asyncio
import json
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest
from conftest import Toy
from toy_study import assert_same_tables

from aegis import execution, pipeline, receipts
from aegis.errors import ParamError, TableError
from aegis.params import find_extensions
from aegis.receipts import RECEIPT
from aegis.tables import SCHEMAS, Run

STAGES = ["00_corpora", "01_transcribe", "13_contrasts"]


def test_every_table_has_one_owner_and_is_read_after_it_is_written() -> None:
    written: dict[str, str] = {}
    for name, wiring in pipeline.STAGES.items():
        for table in wiring.reads:
            if table.startswith(RECEIPT):
                continue
            assert table in written or table in wiring.optional, f"{name} reads {table} too early"
        for table in wiring.writes:
            assert table not in written, f"{table} has two owners"
            written[table] = name
    assert set(SCHEMAS) <= set(written)


def test_pages_about_the_run_follow_the_receipts_before_them(tmp_path: Path) -> None:
    names = list(pipeline.STAGES)
    for name in ("C_models", "Q_failures", "R_receipts"):
        own = [n.removeprefix(RECEIPT) for n in pipeline.STAGES[name].reads if RECEIPT in n]
        assert own == names[: names.index(name)]
    run = Run(tmp_path)
    first = receipts.hash_inputs(run, [RECEIPT + "12_linkage"])
    assert first == {"receipt:12_linkage": None}
    receipts.write_receipt(run, {"stage": "12_linkage", "wall_s": 1.0})
    second = receipts.hash_inputs(run, [RECEIPT + "12_linkage"])
    receipts.write_receipt(run, {"stage": "12_linkage", "wall_s": 2.0})
    assert len({*first.values(), *second.values()}) == 2
    assert receipts.hash_inputs(run, [RECEIPT + "12_linkage"]) != second


@pytest.mark.parametrize(
    ("text", "expected"),
    [("01", "01_transcribe"), ("01_transcribe", "01_transcribe"), ("13_c", "13_contrasts")],
)
def test_a_stage_may_be_abbreviated(text: str, expected: str) -> None:
    assert pipeline.find_stage(text, STAGES) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [("0", "0: 2 stages have that name"), ("01_trnscribe", "did you mean '01_transcribe'")],
)
def test_an_unclear_stage_is_refused(text: str, message: str) -> None:
    with pytest.raises(ParamError, match=message):
        pipeline.find_stage(text, STAGES)


def test_a_study_runs_once(done: Toy) -> None:
    toy, run = done, done.open()
    assert run.read("claims")["value"].tolist() == [pytest.approx(4 * 800 / 16000)]
    assert toy.run() == []
    assert toy.status() == {name: [] for name in STAGES}
    for name in STAGES:
        receipt = receipts.read_receipt(run, name)
        assert receipt is not None
        executed = nbformat.read(run.root / "notebooks" / f"{name}.ipynb", as_version=4)
        injected = [c for c in executed.cells if "injected-parameters" in c.metadata.tags]
        assert len(injected) <= 1
        assert receipt["executed"]["peak_memory_mb"] > receipt["peak_memory_mb"]["driver"] / 2
        assert str(toy.folder) not in json.dumps(executed.metadata)
    assert not list((run.secret / "failed").glob("*"))


def test_only_what_depends_on_a_change_runs_again(done: Toy) -> None:
    toy = done
    assert toy.status("00_corpora.n_items=3")["00_corpora"] == ["parameter n_items changed"]
    # The tones are the same whatever time they take, so nothing after them is stale.
    assert toy.run("00_corpora.sleep_s=0.001") == ["00_corpora"]
    assert toy.run("00_corpora.sleep_s=0.001", "00_corpora.n_items=3") == STAGES
    items = toy.open().secret / "items" / "00_corpora"
    assert len(list(items.glob("*.json"))) == 4 + 4


def test_what_an_extending_profile_computed_stays(done: Toy) -> None:
    more = done.folder / "more.yaml"
    more.write_text("extends: toy.yaml\n01_transcribe:\n  sleep_s: 0.001\n")
    (done.folder / "other.yaml").write_text("extends: none.yaml\n01_transcribe:\n  sleep_s: 9\n")
    (done.folder / "broken.yaml").write_text("extends: [")
    assert find_extensions(done.params) == [more]
    extended = replace(done, profile="more.yaml")
    assert extended.run() == ["01_transcribe"]
    assert done.run() == [] and not any(done.status().values())
    assert done.run("01_transcribe.sleep_s=0.002") == ["01_transcribe"]
    assert extended.run() == ["01_transcribe"]
    # What else is stale runs as the profile says, without the extension.
    shutil.rmtree(done.open().root / "receipts")
    assert done.run(only="01") == ["01_transcribe"]
    assert extended.status()["01_transcribe"] == ["parameter sleep_s changed"]


def test_stages_can_be_chosen(done: Toy) -> None:
    toy = done
    assert toy.run(only="13") == []
    assert toy.run(only="13", force=True) == ["13_contrasts"]
    shutil.rmtree(toy.open().root / "receipts")
    assert toy.run(start="13") == ["13_contrasts"]
    (toy.folder / "toy.yaml").write_text("notebooks: [00_corpora]\n")
    assert list(toy.status()) == ["00_corpora"]


def test_status_says_why(done: Toy, tmp_path: Path) -> None:
    toy, run = done, done.open()
    data = tmp_path / "data"
    data.mkdir()
    (data / "a.wav").write_bytes(b"a")
    given = f"00_corpora.folder={data}"
    toy.run(given, only="00")
    assert not any(toy.status(given).values())

    (data / "b.wav").write_bytes(b"b")
    assert toy.status(given)["00_corpora"] == ["files of parameter folder changed"]
    (data / "b.wav").unlink()

    notebook = toy.folder / "notebooks" / "13_contrasts.py"
    notebook.write_text(notebook.read_text() + "\n# more\n")
    assert toy.status(given)["13_contrasts"] == ["the notebook changed"]

    receipt = receipts.read_receipt(run, "01_transcribe")
    assert receipt is not None
    receipt["packages"]["numpy"] = "1.0"
    receipt["cards"]["no-model.yaml"] = "0"
    receipt["code"]["aegis.audio"] = "0"
    receipt["schemas"]["turns"] = "0"
    receipts.write_receipt(run, receipt)
    assert toy.status(given)["01_transcribe"] == [
        "code aegis.audio is gone",
        "schema of turns changed",
        "model card no-model.yaml is gone",
        "package numpy changed",
    ]
    (run.root / "notebooks" / "01_transcribe.ipynb").unlink()
    assert "output notebooks/01_transcribe.ipynb is missing" in toy.status(given)["01_transcribe"]
    path = receipts.receipt_path(run, "01_transcribe")
    text = path.read_text()
    for broken in ("{ broken", "[]", text.replace('"planned": 4', '"planned": 5')):
        path.write_text(broken)
        assert toy.status(given)["01_transcribe"] == ["its receipt is not what was written"]
    path.unlink()
    assert toy.status(given)["01_transcribe"] == ["not run yet"]


def test_workers_do_not_change_results(done: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    from aegis.stage import open_stage

    toy = done
    source = (toy.folder / "notebooks" / "00_corpora.py").read_text()
    monkeypatch.chdir(toy.folder)
    namespace: dict[str, object] = {"__name__": "__main__"}
    exec(source.replace('"toy"', '"alone"', 1), namespace)
    assert namespace["open_stage"] is open_stage
    for name in ("recordings", "file_map"):
        alone, run = toy.open("alone"), toy.open()
        assert alone.table_path(name).read_bytes() == run.table_path(name).read_bytes()


def test_kernels_of_two_runs_share_no_socket() -> None:
    # Sockets by one name in the project's folder let a run wait for another one's kernel.
    sockets = set()
    with execution.kernels() as first, execution.kernels() as second:
        for manager in (first(), second()):
            assert manager.transport == "ipc" and Path(manager.ip).parent.is_dir()
            manager.write_connection_file()
            sockets |= {f"{manager.ip}-{port}" for port in manager.ports}
            manager.cleanup_connection_file()
    assert len(sockets) == 10
    assert all(Path(socket).is_absolute() for socket in sockets)
    assert not any(Path(socket).parent.exists() for socket in sockets)


def test_a_kernel_does_not_outlive_its_notebook() -> None:
    with execution.kernels() as manager_class:
        manager = manager_class(kernel_name="python3")
        asyncio.run(manager.start_kernel())
        process = manager.provisioner.process
        assert process.poll() is None
    assert process.returncode == -signal.SIGKILL


def test_two_runs_of_one_study_are_equal(done: Toy) -> None:
    assert done.run(name="second") == STAGES
    assert_same_tables(done.open(), done.open("second"))


def test_the_newest_run_is_found(toy_folder: Path) -> None:
    with pytest.raises(TableError, match="no run in"):
        pipeline.newest_run()
    with pytest.raises(ParamError, match="run 'old' was not started by `aegis run`"):
        pipeline.study_of(pipeline.open_run("old", create=True))
