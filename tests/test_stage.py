from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import filelock
import pandas as pd
import pytest

from aegis import audio, receipts, stage
from aegis.errors import EngineUnavailable, ParamError, RunLocked, StageFailed, TableError
from aegis.tables import empty_table, open_run

DEFAULTS: dict[str, Any] = {
    "run_name": "toy", "n_items": 4, "silent": None, "odd": None, "deadly": None, "greedy": None,
    "sleep_s": 0.0, "folder": "",
}  # fmt: skip
ITEMS = [{"id": f"toy/r{i}", "pitch": 100 + i} for i in range(3)]


@pytest.fixture
def corpora(toy_folder: Path) -> Any:
    opened = stage.open_stage("00_corpora", DEFAULTS)
    yield opened
    stage._unlock(opened.run)


def write_all(opened: stage.Stage) -> None:
    for name in opened.wiring.writes:
        opened.write(name, empty_table(name))


def work(name: str) -> Any:
    import toy_work

    return getattr(toy_work, name)


def test_results_come_in_the_items_order_and_are_kept(corpora: stage.Stage) -> None:
    items = [item | {"cost": i} for i, item in enumerate(ITEMS)]
    first = corpora.map(work("make_tone"), items, {})
    again = corpora.map(work("make_tone"), ITEMS[::-1], {})
    assert [r.id for r in first] == ["toy/r0", "toy/r1", "toy/r2"]
    assert [r.id for r in again] == ["toy/r2", "toy/r1", "toy/r0"]
    assert [(r.status, r.cached) for r in first] == [("ok", False)] * 3
    assert [(r.status, r.cached) for r in again] == [("ok", True)] * 3
    assert again[0].value == first[2].value
    assert again[0].engine_s == first[2].engine_s > 0


@pytest.mark.parametrize("settings", [{"sleep_s": 0.001}, {"silent": None}])
def test_other_settings_are_other_results(corpora: stage.Stage, settings: dict[str, Any]) -> None:
    corpora.map(work("make_tone"), ITEMS, {})
    assert not any(r.cached for r in corpora.map(work("make_tone"), ITEMS, settings))


@pytest.mark.parametrize("damage", ["gone", "changed"])
def test_an_item_whose_file_is_not_as_written_is_run_again(
    corpora: stage.Stage, damage: str
) -> None:
    corpora.map(work("make_tone"), ITEMS, {})
    path = corpora.run.original_path("toy/r1")
    before = path.read_bytes()
    path.unlink() if damage == "gone" else path.write_bytes(before[:-2] + b"\x01\x02")
    again = corpora.map(work("make_tone"), ITEMS, {})
    assert [r.cached for r in again] == [True, False, True]
    assert path.read_bytes() == before


def test_a_typed_refusal_is_a_kept_row(corpora: stage.Stage) -> None:
    for cached in (False, True):
        result = corpora.map(work("make_tone"), ITEMS, {"silent": "toy/r1"})[1]
        assert (result.status, result.reason) == ("failed", "silent: nothing was heard")
        assert result.value is None
        assert result.cached == cached


def test_a_fault_is_a_row_that_is_tried_again_and_quotes_nothing(corpora: stage.Stage) -> None:
    for _ in range(2):
        results = corpora.map(work("make_tone"), ITEMS, {"odd": "toy/r1"})
        assert [r.status for r in results] == ["ok", "failed", "ok"]
        assert results[1].reason is not None
        assert results[1].reason.startswith("unexpected: ValueError at toy_work.py:")
        assert "secret" not in results[1].reason
        assert not results[1].cached
    (trace,) = (corpora.run.secret / "failed" / "00_corpora").glob("*.txt")
    assert "ValueError: a secret word" in trace.read_text()
    assert stat.S_IMODE(trace.stat().st_mode) == 0o600


def test_a_stage_with_a_fault_is_tried_again(corpora: stage.Stage) -> None:
    corpora.map(work("make_tone"), ITEMS, {"odd": "toy/r1"})
    write_all(corpora)
    corpora.done()
    receipt = receipts.read_receipt(corpora.run, "00_corpora")
    assert receipt is not None
    receipts.write_receipt(corpora.run, receipt | {"executed": {"file": "x", "sha256": None}})
    reasons = receipts.stale_reasons(
        corpora.run, "00_corpora", corpora.notebook, corpora.parameters, ()
    )
    assert reasons == ["1 items met a fault and are tried again"]


def test_a_missing_engine_stops_the_stage(corpora: stage.Stage) -> None:
    with pytest.raises(EngineUnavailable, match="no such engine; put it somewhere"):
        corpora.map(work("make_tone"), ITEMS, {"engine_missing": True})


@pytest.mark.parametrize("place", ["sound", "record"])
def test_a_full_disk_stops_the_stage_and_keeps_what_is_done(
    corpora: stage.Stage, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    real = os.replace
    kind = {"sound": ".wav", "record": ".json"}[place]

    def full(source: Any, target: Any) -> None:
        if str(target).endswith(kind) and "r2" in Path(source).read_text("latin-1") + str(target):
            raise OSError(errno.ENOSPC, "No space left on device")
        real(source, target)

    monkeypatch.setattr(audio.os, "replace", full)
    with pytest.raises(StageFailed, match="no space left on the disk that holds run toy"):
        corpora.map(work("make_tone"), ITEMS, {})
    monkeypatch.setattr(audio.os, "replace", real)
    assert not list(corpora.run.root.rglob("*.part"))
    again = corpora.map(work("make_tone"), ITEMS, {})
    assert [r.cached for r in again] == [True, True, False]


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([{"id": "a", "pitch": 1}, {"id": "a", "pitch": 2}], r"missing or repeated: \['a'\]"),
        ([{"pitch": 1}], "every item needs its own id"),
    ],
)
def test_items_have_ids(corpora: stage.Stage, items: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(ParamError, match=message):
        corpora.map(work("make_tone"), items, {})


def test_only_module_level_functions_are_mapped(corpora: stage.Stage) -> None:
    with pytest.raises(ParamError, match="is no module-level function"):
        corpora.map(lambda item, settings, run: {}, ITEMS, {})


def test_no_items_are_no_results(corpora: stage.Stage) -> None:
    assert corpora.map(work("make_tone"), [], {}) == []


def test_a_notebook_touches_only_the_tables_of_its_line(corpora: stage.Stage) -> None:
    with pytest.raises(TableError, match="00_corpora does not read turns"):
        corpora.read("turns")
    with pytest.raises(TableError, match="00_corpora does not own turns"):
        corpora.write("turns", empty_table("turns"))
    with pytest.raises(TableError, match="00_corpora does not read turns"):
        corpora.has("turns")


def test_an_empty_table_counts_as_absent(corpora: stage.Stage) -> None:
    write_all(corpora)
    corpora.done()
    reader = stage.open_stage("01_transcribe", {"run_name": "toy", "ending": "", "sleep_s": 0.0})
    assert len(reader.read("gold_turns")) == 0
    assert not reader.has("gold_turns")
    stage._unlock(reader.run)


def test_an_owned_table_that_was_not_written_again_goes(corpora: stage.Stage) -> None:
    write_all(corpora)
    corpora.done()
    assert corpora.run.has("gold_turns")
    opened = stage.open_stage("00_corpora", DEFAULTS)
    for name in ("recordings", "file_map"):
        opened.write(name, empty_table(name))
    opened.done()
    assert not opened.run.has("gold_turns")


def test_an_unreadable_table_says_so(toy_folder: Path) -> None:
    run = open_run("toy", create=True)
    run.table_path("recordings").parent.mkdir()
    run.table_path("recordings").write_bytes(b"PAR1 nonsense")
    opened = stage.open_stage("01_transcribe", {"run_name": "toy", "ending": "", "sleep_s": 0.0})
    with pytest.raises(TableError, match=r"tables/recordings\.parquet of run toy cannot be read"):
        opened.read("recordings")
    stage._unlock(run)


def test_the_receipt_says_what_was_done(corpora: stage.Stage) -> None:
    corpora.map(work("make_tone"), ITEMS, {"silent": "toy/r1"})
    write_all(corpora)
    shown = corpora.done()
    receipt = receipts.read_receipt(corpora.run, "00_corpora")
    assert receipt is not None
    assert receipt["counts"] == {"planned": 3, "observed": 2, "failed": 1, "not_applicable": 0}
    assert shown.loc[0, ["planned", "observed", "failed"]].tolist() == [3, 2, 1]
    assert set(receipt["tables"]) == set(corpora.wiring.writes)
    assert set(receipt["files"]) == {
        "secret/wav/original/toy/r0.wav",
        "secret/wav/original/toy/r2.wav",
    }
    path = corpora.run.table_path("recordings")
    assert receipt["tables"]["recordings"] == receipts.file_sha256(path)
    assert 0 < receipt["engine_s"] <= receipt["item_s"] <= receipt["wall_s"]
    assert receipt["peak_memory_mb"]["driver"] > 10


def test_a_stage_without_items_counts_rows(toy_folder: Path) -> None:
    opened = stage.open_stage("13_contrasts", {"run_name": "toy"})
    rows = [
        {
            "claim_id": str(i), "label": "x", "value": 1.0, "unit": "s", "numerator": None,
            "denominator": None, "unknown": 0, "not_applicable": 0, "ci_low": None,
            "ci_high": None, "status": status, "reason": None if status == "ok" else "why",
        }
        for i, status in enumerate(["ok", "failed", "unknown", "not_applicable", "ok"])
    ]  # fmt: skip
    opened.write("claims", pd.DataFrame(rows))
    write_rest = set(opened.wiring.writes) - {"claims"}
    for name in write_rest:
        opened.write(name, empty_table(name))
    opened.done()
    receipt = receipts.read_receipt(opened.run, "13_contrasts")
    assert receipt is not None
    assert receipt["counts"] == {"planned": 5, "observed": 2, "failed": 1, "not_applicable": 2}


def test_no_receipt_without_all_owned_tables(corpora: stage.Stage) -> None:
    corpora.write("recordings", empty_table("recordings"))
    with pytest.raises(StageFailed, match=r"owned tables not written: \['file_map'\]"):
        corpora.done()
    assert receipts.read_receipt(corpora.run, "00_corpora") is None


def test_secrets_are_for_their_owner_only(corpora: stage.Stage) -> None:
    corpora.map(work("make_tone"), ITEMS, {})
    write_all(corpora)
    corpora.done()
    run = corpora.run
    assert stat.S_IMODE(run.secret.stat().st_mode) == 0o700
    secret = [run.table_path("file_map"), *(run.secret / "items").rglob("*.json")]
    assert [stat.S_IMODE(path.stat().st_mode) for path in secret] == [0o600] * 4


def test_a_receipt_holds_no_place_on_this_machine(toy_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    namespace = DEFAULTS | {"folder": str(tmp_path / "mine")}
    opened = stage.open_stage("00_corpora", namespace)
    opened.uses(tmp_path / "mine")
    write_all(opened)
    opened.done()
    text = receipts.receipt_path(opened.run, "00_corpora").read_text()
    assert str(tmp_path) not in text
    assert "mine" not in text
    assert json.loads(text)["parameters"]["folder"].startswith("path:")


def test_files_of_the_last_execution_go(corpora: stage.Stage) -> None:
    corpora.map(work("make_tone"), ITEMS, {})
    write_all(corpora)
    corpora.done()
    opened = stage.open_stage("00_corpora", DEFAULTS)
    opened.map(work("make_tone"), ITEMS[:1], {})
    write_all(opened)
    opened.done()
    assert [p.name for p in opened.run.secret.rglob("*.wav")] == ["r0.wav"]


@pytest.mark.parametrize(
    ("namespace", "message"),
    [
        ({}, "parameter run_name is not set; run the parameters cell first"),
        (DEFAULTS | {"n_items": "4"}, r"00_corpora.n_items: expected int, got '4' \(str\)"),
        (
            DEFAULTS | {"In": ["", "# Parameters\nn_itms = 3\n"]},
            r"unknown parameters \['n_itms'\]",
        ),
    ],
)
def test_parameters_are_checked(toy_folder: Path, namespace: dict[str, Any], message: str) -> None:
    with pytest.raises(ParamError, match=message):
        stage.open_stage("00_corpora", namespace)


def test_an_unknown_notebook_is_refused(toy_folder: Path) -> None:
    with pytest.raises(ParamError, match="00_corpus: no such notebook; known: 00_corpora"):
        stage.open_stage("00_corpus", DEFAULTS)


def test_a_run_that_another_process_holds_is_refused(toy_folder: Path) -> None:
    run = open_run("toy", create=True)
    code = (
        f"import filelock, sys; l = filelock.FileLock({str(run.root / '.lock')!r}); l.acquire();"
        " print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        began = time.monotonic()
        with pytest.raises(RunLocked, match="run 'toy': another process is working on it"):
            stage.open_stage("00_corpora", DEFAULTS)
        assert time.monotonic() - began < 5
        other.communicate()
    opened = stage.open_stage("00_corpora", DEFAULTS)
    write_all(opened)
    opened.done()
    filelock.FileLock(run.root / ".lock").acquire(timeout=0)
