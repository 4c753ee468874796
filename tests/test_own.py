"""A user's own folder, end to end: real speech in several formats beside broken files."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import soundfile as sf
from doc_pages import commands

from aegis import checks, pipeline, receipts
from aegis.tables import PROJECT, Run, open_run

DATA = PROJECT.parent / "shared" / "data"
MEETING = DATA / "ami_pyannote" / "trn00.flac"
READERS = DATA / "audio_librispeech" / "test-clean"
NAME = "Zoé Lindqvist #7.mp3"

pytestmark = [
    pytest.mark.smoke,
    pytest.mark.engine,
    pytest.mark.skipif(not READERS.exists(), reason="shared data are not here"),
]


def fill(folder: Path) -> None:
    """Two readers in turn as MP3 at 44.1 kHz, a meeting of unknown size, and what goes wrong."""
    first, second = sorted(path for path in READERS.iterdir() if path.is_dir())[:2]
    pieces = []
    for one, other in zip(_speech(first), _speech(second), strict=False):
        pieces += [one, np.zeros(8000, np.float32), other, np.zeros(8000, np.float32)]
    sf.write(folder / "two.wav", np.concatenate(pieces), 16000)
    convert = ["ffmpeg", "-loglevel", "error", "-i", folder / "two.wav", "-ar", "44100"]
    subprocess.run([*convert, folder / NAME], check=True)
    (folder / "two.wav").unlink()
    shutil.copy(MEETING, folder / "meeting.flac")
    sf.write(folder / "silence.wav", np.zeros(16000 * 3), 16000)
    (folder / "empty.wav").touch()
    (folder / "header.wav").write_bytes((folder / "silence.wav").read_bytes()[:44])


def _speech(reader: Path) -> list[np.ndarray]:
    files = sorted(reader.rglob("*.flac"))[:3]
    return [sf.read(file, dtype="float32")[0] for file in files]


@pytest.fixture(scope="module")
def own(smoke: Run, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    folder = tmp_path_factory.mktemp("my own recordings")
    fill(folder)
    runs = smoke.root.parent
    # The pool is the smoke run's: what is kept of its voices is taken over, not spoken again.
    for part in ("secret/items/02_profiles", "wav/pool"):
        shutil.copytree(smoke.root / part, runs / "own" / part, dirs_exist_ok=True)
    page = next(c for c in commands("docs/own_recordings.md") if c[0] == "run")
    assert page[:2] == ["run", "params/own.yaml"]
    told = [part.replace("PATH", str(folder)) for part in page if "=" in part]
    given = [*told, "02_profiles.pool=data_manifests/pool_smoke.yaml"]
    draws = [
        "12_linkage.n_draws=100",
        "13_contrasts.n_draws=100",
        "13_contrasts.n_draws_linkage=50",
    ]
    study = pipeline.load_study(PROJECT / "params" / "own.yaml", [*given, *draws])
    pipeline.run_study(study, "own")
    yield open_run("own")
    shutil.rmtree(runs / "own")


def test_every_file_has_one_fate(own: Run) -> None:
    recordings = own.read("recordings")
    assert len(recordings) == 5
    assert recordings["status"].value_counts().to_dict().get("ok") == 2
    bad = recordings[recordings["status"] != "ok"]
    assert bad["reason"].notna().all()
    assert not bad["reason"].str.startswith("unexpected").any()
    assert checks.verify_run(own) == []


def test_two_readers_are_two_profiles_with_two_voices(own: Run) -> None:
    names = own.read("file_map").set_index("file")["recording_id"]
    profiles = own.read("profiles").query("status == 'ok'")
    profiles = profiles[profiles["recording_id"] == names[NAME]]
    assert len(profiles) == 2
    assert set(profiles["language"]) == {"en"}
    assigned = own.read("assignments")
    assigned = assigned[assigned["recording_id"] == names[NAME]]
    assert assigned["status"].tolist() == ["ok", "ok"]
    assert assigned["voice_id"].is_unique


def test_both_recordings_are_put_together_in_every_condition(own: Run) -> None:
    made = own.read("reconstructions")
    alive = own.read("recordings").query("status == 'ok'")["recording_id"]
    ok = made[made["status"] == "ok"]
    assert set(zip(ok["recording_id"], ok["condition"], strict=True)) == {
        (recording, condition)
        for recording in alive
        for condition in ("converted", "renderer_a", "renderer_b", "redacted")
    }


def test_the_names_of_files_stay_secret(own: Run) -> None:
    public = [
        *own.root.glob("tables/*"),
        *own.root.glob("receipts/*"),
        *own.root.glob("notebooks/*"),
    ]
    for path in public:
        content = path.read_bytes().decode("utf-8", "replace")
        assert "Lindqvist" not in content, path.name
        assert "my own recordings" not in content, path.name
    assert not [p for p in own.root.rglob("*Lindqvist*") if not p.is_relative_to(own.secret)]


def test_stages_without_items_to_judge_are_done_too(own: Run) -> None:
    study = pipeline.study_of(own)
    assert not any(pipeline.status(study, own).values())
    for name in study.notebooks:
        receipt = receipts.read_receipt(own, name)
        assert receipt is not None
        assert receipt["unexpected"] == 0
