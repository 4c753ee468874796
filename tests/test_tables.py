"""Schemas: what is refused, and with which words."""

import stat

import pandas as pd
import pytest

from aegis import tables
from aegis.errors import TableError


def turn_times(**changes):
    row = {
        "turn_id": "t1", "recording_id": "d/a", "turn_index": 0, "profile_id": "d/a/S1",
        "speaker": "S1", "start_s": 0.0, "end_s": 1.0, "n_words": 2, "flagged": False,
    }  # fmt: skip
    return pd.DataFrame([{**row, **changes}])


def test_a_good_table_is_typed_and_sorted():
    both = pd.concat([turn_times(turn_id="t2"), turn_times(turn_id="t1")])
    out = tables.check_table("turn_times", both)
    assert out["turn_id"].tolist() == ["t1", "t2"]
    assert str(out["n_words"].dtype) == "Int64"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"start_s": 2.0}, r"turn_times: 1 rows have start_s after end_s, e\.g\. t1"),
        ({"speaker": None}, "1 rows have no speaker"),
        ({"speaker": 7}, "column speaker must hold text"),
        ({"n_words": "many"}, "column n_words must be int"),
        ({"n_words": 1.5}, "column n_words must be int"),
    ],
)
def test_broken_rows_are_named(changes, message):
    with pytest.raises(TableError, match=message):
        tables.check_table("turn_times", turn_times(**changes))


def test_repeated_keys_and_columns_are_named():
    twice = pd.concat([turn_times(), turn_times()])
    with pytest.raises(TableError, match=r"2 rows repeat the key \('turn_id',\), e\.g\. t1"):
        tables.check_table("turn_times", twice)
    with pytest.raises(
        TableError, match=r"missing columns \['end_s'\], unknown columns \['end'\]"
    ):
        tables.check_table("turn_times", turn_times().rename(columns={"end_s": "end"}))
    with pytest.raises(TableError, match="turn_tims: no such table"):
        tables.check_table("turn_tims", turn_times())


def test_a_failure_needs_its_reason():
    row = {
        "turn_id": "t1", "recording_id": "d/a", "profile_id": "d/a/S1", "converter": "world",
        "file": None, "sha256": None, "n_samples": None, "gain_db": None,
        "status": "failed", "reason": None,
    }  # fmt: skip
    with pytest.raises(TableError, match="1 rows are not ok and give no reason"):
        tables.check_table("converted", pd.DataFrame([row]))
    with pytest.raises(TableError, match="status outside"):
        tables.check_table("converted", pd.DataFrame([row | {"status": "lost"}]))


def test_every_schema_makes_an_empty_table_and_has_a_key_of_its_columns():
    for name, schema in tables.SCHEMAS.items():
        assert tables.empty_table(name).empty
        assert set(schema.key) <= set(schema.columns)
        assert schema.visibility in ("public", "secret")


def test_secret_tables_lie_in_a_private_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("AEGIS_RUNS", str(tmp_path))
    run = tables.open_run("r", create=True)
    assert stat.S_IMODE(run.secret.stat().st_mode) == 0o700
    for name, schema in tables.SCHEMAS.items():
        assert (run.secret in run.table_path(name).parents) == (schema.visibility == "secret")


def test_a_refusal_quotes_no_secret():
    row = {"recording_id": "own/1", "file": "Jo Smith.wav", "source_sha256": None, "role": "x"}
    with pytest.raises(TableError, match=r"2 rows repeat the key.*own/1; own/1$") as caught:
        tables.check_table("file_map", pd.DataFrame([row, row]))
    assert "Smith" not in str(caught.value)
    turn = dict.fromkeys(tables.SCHEMAS["gold_turns"].columns, "Jo Smith")
    with pytest.raises(TableError, match=r"column turn_index must be int$"):
        tables.check_table("gold_turns", pd.DataFrame([turn]))
    with pytest.raises(TableError, match=r"column duration_s must be float \(.*Jo Smith"):
        tables.check_table(
            "recordings",
            pd.DataFrame([dict.fromkeys(tables.SCHEMAS["recordings"].columns, "Jo Smith")]).assign(
                n_channels=1, source_rate_hz=1
            ),
        )


def test_write_then_read(tmp_path, monkeypatch):
    monkeypatch.setenv("AEGIS_RUNS", str(tmp_path))
    run = tables.open_run("r", create=True)
    run.write("turn_times", turn_times())
    assert run.read("turn_times")["turn_id"].tolist() == ["t1"]
    with pytest.raises(TableError, match="words: not in run r; run the stage"):
        run.read("words")
    with pytest.raises(TableError, match="run 'absent': no folder"):
        tables.open_run("absent")


def test_content_ids_follow_content():
    assert tables.content_id("t", "a", 1) == tables.content_id("t", "a", 1)
    assert tables.content_id("t", "a", 1) != tables.content_id("t", "a1", "")
    assert tables.content_id("t", "a", 1).startswith("t")
