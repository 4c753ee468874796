"""Hostile input: damaged and crafted files end in this package's own errors, and stay inside.

Valid files are damaged at random (bytes changed, cut out, doubled, the end lost); a reader may
return or raise an :class:`AegisError`, nothing else.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib.util
import io
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import soundfile as sf
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from aegis import corpora, fields, folders, ingest, manifests, params, pool, readers, scripts
from aegis.audio import read_audio
from aegis.engines.chat import parse_reply
from aegis.errors import AegisError, ManifestError, ReplyError, TableError
from aegis.replies import FactAdjudication
from aegis.tables import PROJECT, Run, check_table, open_run

QUICK = settings(
    max_examples=25, deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip

Damage = list[tuple[int, int, bytes]]
DAMAGE = st.lists(
    st.tuples(st.integers(0, 1 << 16), st.integers(0, 40), st.binary(max_size=12)), max_size=6
)


def damaged(content: bytes, damage: Damage) -> bytes:
    """Replace a stretch by other bytes, several times; a long stretch takes the end away."""
    for place, length, new in damage:
        at = place % (len(content) + 1)
        end = len(content) if length == 40 else at + length
        content = content[:at] + new + content[end:]
    return content


def sound(format: str, subtype: str) -> bytes:
    buffer = io.BytesIO()
    tone = 0.3 * np.sin(np.arange(12_000) * 0.1)
    sf.write(buffer, np.stack([tone, tone[::-1]], 1), 8000, format=format, subtype=subtype)
    return buffer.getvalue()


GRID = b'''File type = "ooTextFile"
Object class = "TextGrid"

xmin = 0
xmax = 2
tiers? <exists>
size = 1
item []:
    item [1]:
        class = "IntervalTier"
        name = "D"
        xmin = 0
        xmax = 2
        intervals: size = 1
        intervals [1]:
            xmin = 0
            xmax = 2
            text = "good ""morning"""
'''
SIMSAMU = json.dumps({
    "schemaVersion": "2.0",
    "monologues": [{"speaker": {"id": "a"}, "start": 0, "end": 1.5, "terms": [
        {"start": 0, "end": 1, "text": "bonjour", "type": "WORD"}]}],
}).encode()  # fmt: skip
TEXTS: dict[str, tuple[Callable[[Path], Any], bytes]] = {
    "a.TextGrid": (readers.read_textgrid, GRID),
    "a.rttm": (readers.read_rttm, b"SPEAKER f 1 0.00 1.50 <NA> <NA> A <NA> <NA>\n" * 3),
    "a.json": (readers.read_simsamu, SIMSAMU),
    "a.txt": (readers.read_fareez, b"D: Hello there.\nP: I have a cough.\n"),
    "a.yaml": (fields.read_yaml, b"name: x\nlist: [1, {a: 'b'}]\ntext: >-\n  two\n  lines\n"),
    "pool.csv": (pool.read_pool, b"voice_id,path,sha256,language\nv1,a.wav," + b"0" * 64 + b",en"),
    "sums.csv": (
        manifests.read_checksums,
        b"record_id,role,path,sha256,bytes\nr1,audio,r1.wav," + b"a" * 64 + b",12\n",
    ),
    "scores.csv": (folders.read_score_file, b"score,target\n0.5,1\n-1,nontarget\n"),
    "meta.csv": (lambda p: folders.read_meta(p, None), b"path,speaker,sex\na,s1,f\nb,s2,m\n"),
    "study.yaml": (lambda p: params.read_params(p, {}), b"title: t\nnotebooks: []\n"),
    "script.yaml": (
        scripts.read_script,
        next((PROJECT / "data_manifests" / "demo").glob("en_*.yaml")).read_bytes(),
    ),
}


@pytest.mark.parametrize("name", TEXTS)
@QUICK
@given(damage=DAMAGE)
def test_a_damaged_text_is_read_or_refused(name: str, damage: Damage, tmp_path: Path) -> None:
    reader, content = TEXTS[name]
    path = tmp_path / name
    path.write_bytes(damaged(content, damage))
    with contextlib.suppress(AegisError):
        reader(path)


@pytest.mark.parametrize(
    ("format", "subtype"),
    [("WAV", "PCM_16"), ("WAV", "PCM_24"), ("WAV", "ULAW"), ("FLAC", "PCM_16"), ("OGG", "VORBIS"),
     ("MP3", "MPEG_LAYER_III"), ("AIFF", "PCM_16")],
)  # fmt: skip
@QUICK
@example(damage=[(17, 7, b"\x00\x00\x00"), (25, 1, b"\x00" * 5)], at_head=False)  # no decoder
@example(damage=[(0, 0, b"\x00" * 8), (1451, 40, b"\xc0")], at_head=False)  # MP3: other frames
@example(damage=[(0, 0, b"\x00" * 8), (1451, 0, b"\xc0")], at_head=False)  # other channels
@given(damage=DAMAGE, at_head=st.booleans())
def test_a_damaged_sound_is_ingested_or_refused(
    format: str, subtype: str, damage: Damage, at_head: bool, tmp_path: Path
) -> None:
    content = sound(format, subtype)
    if at_head:
        damage = [(place % 64, length % 8, new) for place, length, new in damage]
    path = tmp_path / "sound.wav"
    path.write_bytes(damaged(content, damage))
    for use in (lambda: ingest.ingest_file(path, tmp_path / "out.wav"), lambda: read_audio(path)):
        try:
            found = use()
        except AegisError:
            continue
        if isinstance(found, ingest.Ingested) and found.status == "ok":
            samples, rate = sf.read(tmp_path / "out.wav")
            assert rate == 16_000 and np.isfinite(samples).all()


GOOD = json.dumps(
    {"items": [{"id": "f1", "label": "preserved", "evidence": "e"}], "unsupported": []}
).encode()


@QUICK
@given(damage=DAMAGE)
def test_a_damaged_reply_is_the_contract_or_refused(damage: Damage) -> None:
    text = damaged(GOOD, damage).decode("utf-8", "replace")
    try:
        value = parse_reply(text, FactAdjudication, ["f1"])
    except ReplyError:
        return
    assert [item["id"] for item in value["items"]] == ["f1"]
    assert FactAdjudication.model_validate(value).model_dump() == value


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "9" * 10_000, "\ud800", ""])
def test_a_reply_without_end_is_malformed(text: str) -> None:
    with pytest.raises(ReplyError, match="malformed"):
        parse_reply(text, FactAdjudication)


@QUICK
@given(damage=DAMAGE)
def test_a_damaged_table_is_read_or_refused(damage: Damage, tmp_path: Path) -> None:
    run = Run(tmp_path)
    table = pd.DataFrame([{
        "turn_id": "t1", "recording_id": "r", "turn_index": 0, "profile_id": "r/S1",
        "speaker": "S1", "start_s": 0.0, "end_s": 1.0, "n_words": 2, "flagged": False,
    }])  # fmt: skip
    path = run.write("turn_times", table)
    path.write_bytes(damaged(path.read_bytes(), damage))
    # A stage turns the last two into a TableError.
    with contextlib.suppress(TableError, OSError, ValueError):
        check_table("turn_times", run.read("turn_times"))


OUTSIDE = ["../x.wav", "/etc/passwd", "a/../../x", "a\\..\\x", "..", "", "a\0b"]


@pytest.mark.parametrize("path", OUTSIDE)
def test_no_manifest_names_a_path_outside_of_its_folder(path: str, tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="unsafe path"):
        fields.check_inside(path, "here")
    listed = tmp_path / "sums.csv"
    listed.write_text(f"record_id,role,path,sha256,bytes\nr,audio,{path},,\n")
    with pytest.raises(ManifestError, match=r"unsafe path|line contains NUL"):
        manifests.read_checksums(listed)


@pytest.mark.parametrize("name", ["../demo", "/tmp", "a/b", ".", "..", "", "a\\b", ".hidden"])
def test_no_run_lies_elsewhere(name: str) -> None:
    with pytest.raises(TableError, match="a run's name is one folder's"):
        open_run(name, create=True)


def test_an_archive_cannot_write_outside_of_its_folder(tmp_path: Path) -> None:
    import zipfile

    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w") as opened:
        for member in ("../../evil.wav", "/abs/evil2.wav", "good/r1.wav"):
            opened.writestr(member, b"RIFF1234")
    wanted = [
        manifests.ExpectedFile("r", "audio", f"in/{name}", None, 8)
        for name in ("evil.wav", "r1.wav")
    ]
    problems = {file.path: "absent" for file in wanted}
    corpora._unpack(archive, wanted, tmp_path / "data", problems)
    found = {p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()}
    # Members are looked up by their last part and written where the list says.
    assert found == {"a.zip", "data/in/evil.wav", "data/in/r1.wav"}


def test_yaml_makes_no_objects(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("x: !!python/object/apply:os.system ['touch made']\n")
    with pytest.raises(ManifestError, match="could not determine a constructor"):
        fields.read_yaml(path)
    path.write_text("a: " + "[" * 5000)
    with pytest.raises(ManifestError, match=r"a\.yaml"):
        fields.read_yaml(path)


SOURCES = sorted([
    *(PROJECT / "aegis").rglob("*.py"), *(PROJECT / "notebooks").rglob("*.py"),
    *(PROJECT / "scripts").glob("*.py"),
])  # fmt: skip
LISTED = {"checkpoint.py"}
"""Reads checkpoints through a list of what they may name (the test below)."""


def calls(path: Path) -> list[tuple[str, ast.Call]]:
    tree = ast.parse(path.read_text("utf-8"))
    return [
        (ast.unparse(node.func), node) for node in ast.walk(tree) if isinstance(node, ast.Call)
    ]


def test_no_shell_no_pickle_no_evaluation() -> None:
    """What turns data into code is called nowhere in the package, notebooks and scripts."""
    banned = re.compile(
        r"os\.(system|popen)|subprocess\.getoutput|(c?[pP]ickle|joblib|dill|marshal)\.loads?"
        r"|eval|exec|yaml\.(unsafe_load|full_load|load_all)|pd\.read_pickle|shutil\.unpack_archive"
        r"|.*\.extractall|tempfile\.mktemp"
    )
    found = []
    for path in SOURCES:
        for name, call in calls(path):
            given = {k.arg: ast.unparse(k.value) for k in call.keywords}
            where = f"{path.name}:{call.lineno} {name}"
            found += [where] if banned.fullmatch(name) else []
            found += [where] if given.get("shell", "False") != "False" else []
            if name == "torch.load" and path.name not in LISTED:
                found += [] if given.get("weights_only") == "True" else [where]
            if name == "np.load":
                found += [] if given.get("allow_pickle", "False") == "False" else [where]
            if name == "yaml.load":
                found += [] if given.get("Loader") == "_StrictLoader" else [where]
    assert found == []


class _Order:
    """Unpickled without a list, this makes a folder."""

    def __init__(self, made: Path) -> None:
        self.made = made

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.made),)


@pytest.mark.parametrize("zipped", [True, False])
def test_a_checkpoint_may_name_weights_and_no_function(
    tmp_path: Path, zipped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    monkeypatch.syspath_prepend(PROJECT / "aegis" / "engines" / "envs")
    from checkpoint import load_checkpoint
    from serve import Unavailable

    path, made = tmp_path / "a.pth", tmp_path / "made"
    weights = {"w": torch.arange(6.0).reshape(2, 3), "b": torch.tensor([7], dtype=torch.int64)}
    good = {"config": argparse.Namespace(n=3, names=["a"]), "phn2num": {"AH": 1}, "model": weights}
    torch.save(good, path, _use_new_zipfile_serialization=zipped)
    read = load_checkpoint(path)
    assert read["config"] == good["config"] and read["phn2num"] == good["phn2num"]
    assert all(torch.equal(read["model"][name], own) for name, own in weights.items())
    torch.save(good | {"config": _Order(made)}, path, _use_new_zipfile_serialization=zipped)
    with pytest.raises(Unavailable, match=r"names \w+\.mkdir, which is not weights"):
        load_checkpoint(path)
    assert not made.exists()
    torch.load(path, weights_only=False)
    assert made.exists()


def test_the_audit_tells_what_it_could_not_ask() -> None:
    spec = importlib.util.spec_from_file_location("audit", PROJECT / "scripts" / "audit.py")
    assert spec and spec.loader
    audit = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(audit)
    unasked = {"name": "here", "skip_reason": "not found"}
    clean = {"name": "good", "version": "1", "vulns": []}
    bad = {"name": "bad", "version": "2", "vulns": [{"id": "CVE-1"}]}
    assert audit.describe([unasked]) == (
        "asked about 0 of 1 packages\nnot asked about, so nothing is known: here", 2
    )  # fmt: skip
    assert audit.describe([clean, unasked])[1] == 0
    assert audit.describe([clean, bad]) == ("asked about 2 of 2 packages\nbad 2: CVE-1: open", 1)
    audit.EXPLAINED["CVE-1"] = "no file of others is read by it"
    assert audit.describe([bad]) == (
        "asked about 1 of 1 packages\nbad 2: CVE-1: no file of others is read by it", 0
    )  # fmt: skip


def test_the_strict_loader_is_a_safe_one() -> None:
    import yaml

    for module in (fields, params):
        assert issubclass(module._StrictLoader, yaml.SafeLoader)


def test_a_chat_key_comes_from_the_environment_alone() -> None:
    """No parameter holds a key; a notebook may name the variable that does."""
    for path in (PROJECT / "notebooks").rglob("*.py"):
        for name, declared in params.read_declarations(path).items():
            if "key" in name.split("_"):
                assert re.fullmatch(r"[A-Z_]*", str(declared.default or "")), (path.name, name)
    given = [
        (path.name, ast.unparse(keyword.value))
        for path in SOURCES
        for _, call in calls(path)
        for keyword in call.keywords
        if keyword.arg == "api_key"
    ]
    assert given
    assert not [item for item in given if re.search(r"['\"][^'\"]{12,}['\"]", item[1])]
