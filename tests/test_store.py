"""A run on object storage: pushed and pulled by content, whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from typer.testing import CliRunner

from aegis import cli, store
from aegis.errors import ManifestError
from aegis.receipts import file_sha256
from aegis.tables import Run

FILES = {
    "tables/a.parquet": b"aaaa",
    "receipts/00.json": b"{}",
    "notebooks/00.ipynb": b"nb",
    "wav/turns/converted/r/t.wav": b"sound",
    "secret/wav/original/r.wav": b"original",
    "secret/tables/names.parquet": b"aaaa",
}
PUBLIC = [name for name in FILES if name.split("/")[0] not in store.SECRET]


@pytest.fixture(params=["memory", "file"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    MemoryFileSystem.store.clear()
    yield "memory://bucket/run" if request.param == "memory" else f"file://{tmp_path}/shared/run"
    MemoryFileSystem.store.clear()


def make(folder: Path, files: dict[str, bytes] = FILES) -> Run:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    folder.mkdir(exist_ok=True)
    (folder / ".lock").touch()
    return Run(folder)


def held(run: Run) -> dict[str, bytes]:
    found = (path for path in run.root.rglob("*") if path.is_file() and path.name != ".lock")
    return {run.relative(path): path.read_bytes() for path in found}


def stored(url: str) -> list[str]:
    """Every content that a store holds, as hashes."""
    filesystem, root = fsspec.core.url_to_fs(url)
    return [path.rsplit("/", 1)[1] for path in filesystem.find(f"{root}/blobs")]


def test_a_run_comes_back_as_it_was(tmp_path: Path, url: str) -> None:
    run = make(tmp_path / "a")
    # Two files have one content, so five contents are sent.
    assert store.push(run, url, secret=True) == store.Moved(6, 5, 4 + 2 + 2 + 5 + 8, 0)
    assert store.push(run, url, secret=True) == store.Moved(6, 0, 0, 0)
    back = make(tmp_path / "b", {})
    assert store.pull(url, back).n_copied == 6
    assert held(back) == FILES
    assert (back.root / "secret/wav/original/r.wav").stat().st_mode & 0o077 == 0
    assert store.pull(url, back) == store.Moved(6, 0, 0, 0)


def test_secrets_and_sound_stay_unless_asked_for(tmp_path: Path, url: str) -> None:
    run = make(tmp_path / "a")
    store.push(run, url, secret=True)
    # A later push without them takes them out again.
    moved = store.push(run, url)
    assert (moved.n_files, moved.n_removed) == (3, 2)
    assert len(stored(url)) == 3
    back = make(tmp_path / "b", {"secret/own": b"mine", "wav/own": b"mine"})
    store.pull(url, back)
    assert sorted(held(back)) == sorted([*PUBLIC, "secret/own", "wav/own"])


def test_only_what_changed_is_copied(tmp_path: Path, url: str) -> None:
    run, back = make(tmp_path / "a"), make(tmp_path / "b", {})
    store.push(run, url, secret=True)
    store.pull(url, back)
    (run.root / "tables/a.parquet").write_bytes(b"bbbbb")
    (run.root / "notebooks/00.ipynb").unlink()
    assert store.push(run, url, secret=True) == store.Moved(5, 1, 5, 1)
    with pytest.raises(ManifestError, match=r"has 2 files that differ, e\.g\. tables/a"):
        store.pull(url, back)
    assert store.pull(url, back, replace=True) == store.Moved(5, 1, 5, 1)
    assert held(back) == held(run)


def test_an_interrupted_push_shows_the_old_run_and_goes_on(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, back = make(tmp_path / "a"), make(tmp_path / "b", {})
    store.push(run, url, secret=True)
    new = {f"tables/t{k}.parquet": bytes([k]) * k for k in range(1, 9)}
    make(run.root, new)
    filesystem = type(fsspec.core.url_to_fs(url)[0])
    put = filesystem.put
    calls = []

    def failing(self: object, sources: list[str], targets: list[str]) -> None:
        calls.append(len(sources))
        if len(calls) == 3:
            put(self, sources[:1], targets[:1])
            half = fsspec.core.url_to_fs(url)[0]
            half.pipe_file(targets[1], b"")  # a content that was being written
            raise OSError(5, "Input/output error")
        put(self, sources, targets)

    monkeypatch.setattr(store, "BATCH", 2)
    monkeypatch.setattr(filesystem, "put", failing)
    with pytest.raises(ManifestError, match="Input/output error"):
        store.push(run, url, secret=True)
    monkeypatch.setattr(filesystem, "put", put)
    store.pull(url, back)
    assert held(back) == FILES
    # Five of the eight new contents were whole.
    assert store.push(run, url, secret=True).n_copied == 3
    store.pull(url, back, replace=True)
    assert held(back) == FILES | new


def test_an_interrupted_pull_goes_on(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.push(make(tmp_path / "a"), url, secret=True)
    back = make(tmp_path / "b", {})
    filesystem = type(fsspec.core.url_to_fs(url)[0])
    get = filesystem.get
    calls = []

    def failing(self: object, sources: list[str], targets: list[str]) -> None:
        calls.append(len(sources))
        if len(calls) == 3:
            raise ConnectionError("no route")
        get(self, sources, targets)

    monkeypatch.setattr(store, "BATCH", 2)
    monkeypatch.setattr(filesystem, "get", failing)
    with pytest.raises(ManifestError, match="ConnectionError"):
        store.pull(url, back)
    assert len(held(back)) == 4
    assert "receipts/00.json" not in held(back)
    monkeypatch.setattr(filesystem, "get", get)
    assert store.pull(url, back).n_copied == 2
    assert held(back) == FILES


def test_a_damaged_content_is_refused(tmp_path: Path, url: str) -> None:
    run = make(tmp_path / "a")
    store.push(run, url)
    filesystem, root = fsspec.core.url_to_fs(url)
    key = file_sha256(run.root / "tables/a.parquet")
    filesystem.pipe_file(f"{root}/blobs/{key}", b"aaab")
    back = make(tmp_path / "b", {})
    with pytest.raises(ManifestError, match="1 contents are damaged"):
        store.pull(url, back)
    assert "tables/a.parquet" not in held(back)


KEY = "0" * 64


@pytest.mark.parametrize(
    "content",
    [
        {"format": 2, "secret": False, "files": {}},
        {"format": 1, "secret": False},
        {"format": 1, "secret": False, "files": {"../a": {"sha256": KEY, "n_bytes": 1}}},
        {"format": 1, "secret": False, "files": {"/etc/a": {"sha256": KEY, "n_bytes": 1}}},
        {"format": 1, "secret": False, "files": {".lock": {"sha256": KEY, "n_bytes": 1}}},
        {"format": 1, "secret": False, "files": {"a/.b/c": {"sha256": KEY, "n_bytes": 1}}},
        {"format": 1, "secret": False, "files": {"secret/a": {"sha256": KEY, "n_bytes": 1}}},
        {"format": 1, "secret": True, "files": {"a": {"sha256": "../" + KEY, "n_bytes": 1}}},
        {"format": 1, "secret": True, "files": {"a": {"sha256": KEY, "n_bytes": "1"}}},
        {"format": 1, "secret": True, "files": {"a": {"sha256": 7, "n_bytes": 1}}},
        {"format": 1, "secret": True, "files": {"a": [1]}},
        {"format": 1, "secret": True, "files": 5},
        [],
        "text",
    ],
)
def test_a_hostile_manifest_is_refused(tmp_path: Path, content: object) -> None:
    folder = tmp_path / "store"
    (folder / "blobs").mkdir(parents=True)
    (folder / "blobs" / KEY).write_bytes(b"x")
    (folder / "manifest.json").write_text(json.dumps(content))
    for write in (
        lambda: store.pull(f"file://{folder}", make(tmp_path / "b", {}), replace=True),
        lambda: store.push(make(tmp_path / "a"), f"file://{folder}"),
    ):
        with pytest.raises(ManifestError):
            write()
    assert held(Run(tmp_path / "b")) == {}
    assert (folder / "blobs" / KEY).exists()


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("memory://nothing/here", "memory://nothing/here: no run was pushed there"),
        ("memory://", "prefix of its own"),
        ("odd://user:word@host/x", "odd://host/x: .*Protocol not known"),
    ],
)
def test_what_cannot_be_reached_is_said_without_a_password(
    tmp_path: Path, where: str, said: str
) -> None:
    with pytest.raises(ManifestError, match=said) as caught:
        store.pull(where, make(tmp_path / "b", {}))
    assert "word" not in str(caught.value)


def test_push_and_pull_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AEGIS_RUNS", str(tmp_path / "runs"))
    make(tmp_path / "runs" / "a")
    shared = f"file://{tmp_path}/shared"
    pushed = CliRunner().invoke(cli.app, ["push", "a", shared, "--with-secret"])
    assert pushed.output == "pushed 6 files: 5 copied (0.0 MB), 0 removed\n"
    pulled = CliRunner().invoke(cli.app, ["pull", shared, "b"])
    assert pulled.output == "pulled 6 files: 6 copied (0.0 MB), 0 removed\n"
    assert held(Run(tmp_path / "runs" / "b")) == FILES
    assert (tmp_path / "runs" / "b" / "secret").stat().st_mode & 0o077 == 0
    refused = CliRunner().invoke(cli.app, ["pull", f"{shared}/none", "b"])
    assert refused.exit_code == 1
    assert "no run was pushed there" in refused.output
