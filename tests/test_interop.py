"""Tables and manifests in other people's tools: pandas, polars, DuckDB and lhotse."""

import duckdb
import pandas as pd
import polars as pl
import pytest
from fabricate import fabricate_run
from lhotse import RecordingSet, SupervisionSet, validate_recordings_and_supervisions

from aegis import exports, given
from aegis.audio import read_wav
from aegis.tables import SCHEMAS, Run, as_table

POLARS = {
    "str": pl.String, "int": pl.Int64, "float": pl.Float64, "bool": pl.Boolean,
    "list": pl.List(pl.Float64),
}  # fmt: skip
DUCKDB = {
    "str": "VARCHAR", "int": "BIGINT", "float": "DOUBLE", "bool": "BOOLEAN", "list": "DOUBLE[]",
}  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return fabricate_run(tmp_path_factory.mktemp("runs") / "made_up", n_recordings=2, audio=True)


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_table_opens_with_the_types_of_its_schema(run, name):
    """Types hold in tables without rows and in columns without values too."""
    path = run.table_path(name)
    kinds = {column: kind.rstrip("?") for column, kind in SCHEMAS[name].columns.items()}
    frame = pl.read_parquet(path)
    assert dict(frame.schema) == {column: POLARS[kind] for column, kind in kinds.items()}
    seen = duckdb.read_parquet(str(path))
    kept = dict(zip(seen.columns, map(str, seen.types), strict=True))
    assert kept == {column: DUCKDB[kind] for column, kind in kinds.items()}
    assert len(frame) == len(seen) == len(run.read(name))
    missing = run.read(name).isna().sum().to_dict()
    assert dict(zip(frame.columns, frame.null_count().row(0), strict=True)) == missing


def test_values_come_back_as_they_were_written(tmp_path):
    """Missing values of each type, accents, quotes, line ends, big and tiny numbers, lists."""
    run = Run(tmp_path)
    shown = ["region_id", "original_status", "n_characters", "covered_s", "found"]
    written = [("a", 'Zoë "Z"\nO\'Neil, 3', 2**53 + 1, -7.5e-300, True), ("b", *[None] * 4)]
    fixed = {"recording_id": "r", "kind": "k", "start": 0, "status": "ok"}
    rows = [{**dict(zip(shown, values, strict=True)), **fixed} for values in written]
    frame = pd.DataFrame(rows, dtype=object)
    path = str(run.write("redactions", as_table("redactions", frame)))
    assert pl.read_parquet(path).select(shown).rows() == written
    assert duckdb.sql(f"SELECT {', '.join(shown)} FROM '{path}'").fetchall() == written
    back = pd.read_parquet(path)[shown].astype(object)
    assert [tuple(r) for r in back.where(back.notna(), None).itertuples(index=False)] == written

    vectors = [[0.1, -2.0, 1e-40], [1.0, 2.0, 3.0]]
    embeddings = [
        {"profile_id": f"p{i}", "backend": "b", "vector": vector}
        for i, vector in enumerate(vectors)
    ]
    listed = str(run.write("profile_embeddings", pd.DataFrame(embeddings)))
    assert pl.read_parquet(listed)["vector"].to_list() == vectors
    assert [r[0] for r in duckdb.sql(f"SELECT vector FROM '{listed}'").fetchall()] == vectors
    assert [list(v) for v in pd.read_parquet(listed)["vector"]] == vectors


def test_tables_join_in_duckdb(run):
    """The query of the data page's kind: turns of each recording, against a pandas count."""
    turns, recordings = run.table_path("turn_times"), run.table_path("recordings")
    found = duckdb.sql(
        f"SELECT recording_id, count(*) FROM '{turns}' JOIN '{recordings}' USING (recording_id)"
        " GROUP BY 1 ORDER BY 1"
    ).fetchall()
    assert found == [("toy/c00", 8), ("toy/c01", 8)]


@pytest.mark.parametrize("condition", ["original", "renderer_b"])
def test_lhotse_reads_the_manifests_and_their_sound(run, tmp_path, condition):
    paths = exports.export_turns(run, "lhotse", tmp_path, condition, secret=True)
    recordings = RecordingSet.from_jsonl(paths[0])
    supervisions = SupervisionSet.from_jsonl(paths[1])
    validate_recordings_and_supervisions(recordings, supervisions, read_data=True)
    sound = read_wav(run.conversation_path(condition, "toy/c01"))
    assert recordings["toy/c01"].load_audio()[0] == pytest.approx(sound, abs=1e-6)
    turns = list(supervisions.filter(lambda s: s.recording_id == "toy/c01"))
    if condition == "original":
        own = run.read("turns").query("recording_id == 'toy/c01'").sort_values("start_s")
        assert [t.text for t in turns] == own["text"].tolist()
        assert [t.end for t in turns] == pytest.approx(own["end_s"].tolist())
    assert {t.speaker for t in turns} == {"toy/c01/S1", "toy/c01/S2"}


@pytest.mark.parametrize("name", ["supervisions.jsonl", "supervisions.jsonl.gz"])
def test_supervisions_that_lhotse_wrote_are_given_turns(run, tmp_path, name):
    _, path = exports.export_turns(run, "lhotse", tmp_path, secret=True)
    SupervisionSet.from_jsonl(path).to_file(tmp_path / f"of_lhotse_{name}")
    turns = given.read_given(tmp_path / f"of_lhotse_{name}", "c01")
    own = run.read("turns").query("recording_id == 'toy/c01'").sort_values("start_s")
    assert [(t.start_s, t.text) for t in turns] == list(
        own[["start_s", "text"]].itertuples(index=False, name=None)
    )
