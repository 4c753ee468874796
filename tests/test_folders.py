"""Folders of other systems: every row and file has a fate; NPZ and score files are checked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from aegis import folders
from aegis.errors import ManifestError


def write_meta(folder: Path, text: str) -> Path:
    path = folder / "META.csv"
    path.write_text(text, encoding="utf-8")
    return path


def touch(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x")
    return folder


def test_meta_is_read_and_groups_are_named(tmp_path):
    path = write_meta(
        tmp_path, "path,speaker,sex,age\na.wav,1,F,24\nb.wav,1,,54\nc.wav,2,m,Senior\n"
    )
    meta = folders.read_meta(path, None)
    assert meta["sex"].tolist() == ["female", None, "male"]
    assert meta["age"].tolist() == ["Young", "Adult", "Senior"]
    assert meta["speaker"].tolist() == ["1", "1", "2"]
    assert meta["accent"].isna().all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("path\na.wav\n", "no column 'speaker'"),
        ("path,speaker\na.wav,\n", r"speaker is empty in lines \[2\]"),
        ("path,speaker\na.wav,1\na.wav,2\n", "'a.wav' repeats"),
    ],
)
def test_wrong_meta_is_refused(tmp_path, text, message):
    with pytest.raises(ManifestError, match=message):
        folders.read_meta(write_meta(tmp_path, text), None)
    with pytest.raises(ManifestError, match="nobody says who speaks"):
        folders.read_meta(None, tmp_path)


def test_each_row_and_each_file_has_a_fate(tmp_path):
    meta = folders.read_meta(
        write_meta(tmp_path, "path,speaker\ns1/a.wav,1\ns1/b.wav,1\ns2/c,2\n"), None
    )
    original = touch(tmp_path / "o", "s1/a.wav", "s1/b.wav", "s2/c.flac")
    anonymised = touch(tmp_path / "a", "s1/a.flac", "s2/c.wav", "s2/extra.wav", "notes.txt")
    fates = folders.match_files(meta, {"original": original, "anonymised": anonymised})
    counts = fates.groupby(["set", "status"]).size().to_dict()
    assert counts == {
        ("original", "ok"): 3, ("anonymised", "ok"): 2, ("anonymised", "missing"): 1,
        ("anonymised", "not_listed"): 1,
    }  # fmt: skip
    lost = fates[fates["status"] == "missing"].iloc[0]
    assert (lost["path"], lost["reason"]) == ("s1/b.wav", "no such file")


def test_two_files_of_one_stem_need_their_whole_name(tmp_path):
    folder = touch(tmp_path / "o", "a.wav", "a.flac")
    index = folders.index_folder(folder)
    assert sorted(index) == ["a.flac", "a.wav"]
    with pytest.raises(ManifestError, match="no audio"):
        folders.index_folder(touch(tmp_path / "n", "x.txt"))
    with pytest.raises(ManifestError, match="no such folder"):
        folders.index_folder(tmp_path / "gone")


def test_kaldi_folders_say_who_speaks(tmp_path):
    kaldi = touch(tmp_path / "data", "wav/u1.wav", "wav/u2.wav")
    lines = {
        "wav.scp": "u1 wav/u1.wav\nu2 wav/u2.wav\nu3 sox u3.wav -t wav - |\nu4 gone.wav\n",
        "utt2spk": "u1 s1\nu2 s2\nu3 s2\nu4 s2\n", "spk2gender": "s1 f\ns2 m\n",
        "text": "u1 GOOD MORNING\n",
    }  # fmt: skip
    for name, text in lines.items():
        (kaldi / name).write_text(text, encoding="utf-8")
    meta = folders.read_meta(None, kaldi)
    assert meta["sex"].tolist() == ["female", "male", "male", "male"]
    assert meta["text"].tolist() == ["GOOD MORNING", None, None, None]
    fates = folders.match_files(meta, {"original": kaldi}).set_index("path")
    assert fates["status"].to_dict() == {"u1": "ok", "u2": "ok", "u3": "missing", "u4": "missing"}
    assert "names a command" in fates.loc["u3", "reason"]
    assert "not there" in fates.loc["u4", "reason"]


def test_given_embeddings(tmp_path):
    meta = folders.read_meta(write_meta(tmp_path, "path,speaker\na,1\nb,2\n"), None)
    path = tmp_path / "e.npz"
    names = {"path": np.array(["a", "b", "z"]), "set": np.array(["original"] * 3)}
    np.savez(path, x=np.ones((3, 4)), **names)
    table, vectors = folders.read_embeddings(path, meta)
    assert table["status"].tolist() == ["ok", "ok", "not_listed"]
    assert list(vectors) == ["x"]
    np.savez(path, x=np.ones((2, 4)), **names)
    with pytest.raises(ManifestError, match=r"3 paths, but not in arrays \['x'\]"):
        folders.read_embeddings(path, meta)
    np.savez(path, x=np.ones((3, 4)), path=names["path"], set=np.array(["a", "b", "c"]))
    with pytest.raises(ManifestError, match="known: original"):
        folders.read_embeddings(path, meta)
    np.savez(path, x=np.ones((3, 4)))
    with pytest.raises(ManifestError, match="no array path, set"):
        folders.read_embeddings(path, meta)


def test_score_files(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text("score,target\n0.5,1\n0.2,nontarget\n")
    table = folders.read_score_file(path)
    assert table["target"].tolist() == [True, False]
    assert set(table["system"]) == {"given"}
    path.write_text("score,target\n0.5,1\nx,0\n")
    with pytest.raises(ManifestError, match=r"1 lines .* line 3"):
        folders.read_score_file(path)
    pd.DataFrame({"score": [1.0]}).to_csv(path)
    with pytest.raises(ManifestError, match="no column target"):
        folders.read_score_file(path)
