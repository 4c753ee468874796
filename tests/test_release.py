"""What a release holds, what stops it, and that the same run gives the same bytes."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from fabricate import fabricate_run

from aegis import receipts, release
from aegis.errors import ReleaseRefused
from aegis.pipeline import STAGES
from aegis.tables import SCHEMAS, Run

KINDS = ("unscreened", "unlocated", "heard", "failed")


def write_receipts(run: Run) -> None:
    """Receipts of stages that wrote the run's tables as they are now."""
    for name, wiring in STAGES.items():
        written = [table for table in wiring.writes if run.has(table)]
        receipts.write_receipt(run, {
            "stage": name, "started": "2026-01-02T03:04:05+00:00", "code": {"aegis": "0"},
            "counts": {"planned": 1, "observed": 1, "failed": 0, "not_applicable": 0},
            "tables": receipts.hash_inputs(run, written), "files": {}, "cards": {},
            "inputs": receipts.hash_inputs(run, [t for t in wiring.reads if t in SCHEMAS]),
            "parameters": {"max_uncovered_share": 0.1} if name == "01_transcribe" else {},
            "seeds": {}, "packages": {"numpy": "2"},
            "engines": [{"role": "converter", "name": "toy", "revision": "1", "licence": "MIT",
                         "device": "cpu", "embedded": True}],
        })  # fmt: skip


def change(run: Run, table: str, where: Any, **values: object) -> None:
    """Set columns of the rows that ``where`` selects, and renew the receipts."""
    frame = run.read(table)
    rows = frame.index[where(frame)][:1]
    assert len(rows) == 1
    for column, value in values.items():
        frame.loc[rows, column] = value
    run.write(table, frame)
    write_receipts(run)


@pytest.fixture
def run(clean_run: Run, tmp_path: Path) -> Run:
    """A made-up run with sound against which nothing stands."""
    return Run(Path(shutil.copytree(clean_run.root, tmp_path / "runs" / "made")))


@pytest.fixture(scope="module")
def clean_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return releasable_run(tmp_path_factory.mktemp("runs") / "made")


def releasable_run(root: Path) -> Run:
    made = fabricate_run(root, n_recordings=2, audio=True)
    searched = made.read("lexical_matches")
    searched["original_status"] = "absent"
    whole = searched.query("scope == 'conversation' and condition == 'renderer_a'")
    searched = pd.concat([searched, whole.assign(condition="redacted")])
    made.write("lexical_matches", searched)
    whole = made.read("reconstructions").assign(status="ok", reason=None, n_retained=0)
    whole["sha256"] = [receipts.file_sha256(made.root / file) for file in whole["file"]]
    made.write("reconstructions", whole)
    # The made-up run has no sound of single turns.
    rendered = made.read("rendered").assign(status="ok", reason=None, file=None)
    made.write("rendered", rendered)
    write_receipts(made)
    return made


@pytest.fixture
def card(tmp_path: Path) -> Path:
    path = tmp_path / "toy.yaml"
    path.write_text(
        "name: toy\ntitle: Toys\nlicence: CC0-1.0\nsource: here\nrevision: '1'\naccess: open\n"
        "languages: [en, fr]\ncontent: synthetic\nstems_public: true\nrelease_audio: true\n"
    )
    return path


def members(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive) as opened:
        return {e.name: opened.extractfile(e).read() for e in opened.getmembers()}


def test_evidence_holds_public_tables_and_receipts_and_no_sound(run: Run, tmp_path: Path) -> None:
    archive = release.build_release(run, tmp_path / "out")
    held = members(archive)
    assert not [name for name in held if name.endswith(".wav")]
    tables = {name.split("/")[2].removesuffix(".parquet") for name in held if "/tables/" in name}
    assert tables == {n for n, s in SCHEMAS.items() if s.visibility == "public" and run.has(n)}
    content = json.loads(held["made/release.json"])
    for name, entry in content["files"].items():
        assert hashlib.sha256(held[f"made/{name}"]).hexdigest() == entry["sha256"]
    assert {"made/datasheet.md", "made/release.json"} == set(held) - {
        f"made/{name}" for name in content["files"]
    }
    digest, name = (tmp_path / "out" / "made.tar.sha256").read_text().split()
    assert (digest, name) == (hashlib.sha256(archive.read_bytes()).hexdigest(), "made.tar")


def test_the_same_run_gives_the_same_bytes(run: Run, tmp_path: Path, card: Path) -> None:
    first, second = (
        release.build_release(run, tmp_path / out, with_audio=True, card=card) for out in "ab"
    )
    assert first.read_bytes() == second.read_bytes()
    with tarfile.open(first) as opened:
        entries = opened.getmembers()
    assert [e.name for e in entries] == sorted(e.name for e in entries)
    assert {(e.mtime, e.uid, e.gid, e.uname, e.mode) for e in entries} == {(0, 0, 0, "", 0o644)}


def test_sound_is_that_of_the_released_conditions(run: Run, tmp_path: Path, card: Path) -> None:
    held = members(
        release.build_release(run, tmp_path / "out", ("renderer_b",), with_audio=True, card=card)
    )
    sounds = {name for name in held if name.endswith(".wav")}
    assert sounds == {f"made/audio/renderer_b/toy/c0{i}.wav" for i in (0, 1)}
    made = run.read("reconstructions").query("condition == 'renderer_b'")
    assert {hashlib.sha256(held[name]).hexdigest() for name in sounds} == set(made["sha256"])


@pytest.mark.parametrize("allowed", ["no card", "a card that does not allow it"])
def test_sound_needs_a_card_that_allows_it(
    run: Run, tmp_path: Path, card: Path, allowed: str
) -> None:
    card.write_text(card.read_text().replace("release_audio: true\n", ""))
    given = None if allowed == "no card" else card
    with pytest.raises(ReleaseRefused, match="sound of toy may not be released"):
        release.build_release(run, tmp_path / "out", with_audio=True, card=given)
    assert not (tmp_path / "out").exists()


def test_sound_that_is_not_its_tables_is_refused(run: Run, tmp_path: Path, card: Path) -> None:
    path = run.conversation_path("renderer_a", "toy/c00")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(ReleaseRefused, match="is not the sound that its table names"):
        release.build_release(run, tmp_path / "out", with_audio=True, card=card)


BLOCKED = {
    "unscreened": ("screening", lambda t: t["speech_s"] == 32.0, {"uncovered_s": 3.3}),
    "flagged": ("screening", lambda t: t["n_flagged"] == 0, {"n_flagged": 2}),
    "refused": ("plan_summary", lambda t: t["n_refused"] == 0, {"n_refused": 1}),
    "unlocated": ("plan_summary", lambda t: t["n_unlocated"] == 0, {"n_unlocated": 1}),
    "heard": (
        "lexical_matches",
        lambda t: (t["condition"] == "renderer_b") & (t["scope"] == "conversation"),
        {"original_status": "retained"},
    ),
    "kept": ("reconstructions", lambda t: t["condition"] == "redacted", {"n_retained": 1}),
    "failed": ("recordings", lambda t: t["status"] == "ok", {"status": "failed", "reason": "x"}),
    "converted": ("converted", lambda t: t["status"] == "ok", {"status": "failed", "reason": "x"}),
}


@pytest.mark.parametrize("case", BLOCKED)
def test_what_stands_against_a_release_refuses_it(run: Run, tmp_path: Path, case: str) -> None:
    assert release.find_blockers(run) == []
    table, where, values = BLOCKED[case]
    change(run, table, where, **values)
    (found,) = release.find_blockers(run)
    kind = {"flagged": "unscreened", "refused": "unscreened", "kept": "failed"}.get(case, case)
    assert found.kind == (kind if kind in KINDS else "failed")
    with pytest.raises(ReleaseRefused, match=rf"1 findings \(1 {found.kind}\)"):
        release.build_release(run, tmp_path / "out")
    with pytest.raises(ReleaseRefused, match="1 findings"):
        release.build_release(run, tmp_path / "out", accept="   ")
    assert not (tmp_path / "out").exists()


def test_an_accepted_finding_is_recorded_with_its_reason(run: Run, tmp_path: Path) -> None:
    change(run, *BLOCKED["heard"][:2], **BLOCKED["heard"][2])
    held = members(release.build_release(run, tmp_path / "out", accept="heard by two listeners"))
    accepted = json.loads(held["made/release.json"])["accepted"]
    assert accepted["reason"] == "heard by two listeners"
    (found,) = accepted["findings"]
    assert (found["kind"], found["condition"]) == ("heard", "renderer_b")
    sheet = held["made/datasheet.md"].decode()
    assert "> heard by two listeners" in sheet
    assert "| planned originals still heard | renderer_b | 1 |" in sheet


def test_an_original_that_was_not_searched_for_stops_it(run: Run) -> None:
    table = run.read("lexical_matches")
    one = table.query("condition == 'redacted'")["intention_id"].iloc[0]
    run.write("lexical_matches", table[table["intention_id"] != one])
    found = release.find_blockers(run)
    assert {b.condition for b in found} == {"renderer_a", "renderer_b", "redacted"}
    assert {b.detail for b in found} == {"1 originals were not searched for"}


def test_a_condition_that_is_not_released_does_not_stop_the_others(run: Run) -> None:
    change(run, *BLOCKED["heard"][:2], **BLOCKED["heard"][2])
    assert release.find_blockers(run, ("redacted",)) == []
    assert len(release.find_blockers(run, ("renderer_b",))) == 1
    with pytest.raises(ReleaseRefused, match="conditions \\['original'\\]"):
        release.find_blockers(run, ("original",))


def test_no_reason_lifts_a_run_that_does_not_verify(run: Run, tmp_path: Path) -> None:
    run.write("screening", run.read("screening").assign(n_words=1))
    with pytest.raises(ReleaseRefused, match=r"does not verify: .*screening"):
        release.build_release(run, tmp_path / "out", accept="hurry")


def test_no_reason_lifts_an_original_in_the_archive(run: Run, tmp_path: Path) -> None:
    name = run.read("file_map")["file"].iloc[0]
    voices = run.read("voices")
    run.write("voices", voices.assign(traits=f"like in {name}"))
    write_receipts(run)
    with pytest.raises(
        ReleaseRefused, match=r"tables/voices\.parquet holds an original file name"
    ):
        release.build_release(run, tmp_path / "out", accept="hurry")
    assert not (tmp_path / "out").exists()


def test_an_unfinished_run_is_not_judged(tmp_path: Path) -> None:
    run = fabricate_run(tmp_path / "made", n_recordings=1)
    run.table_path("lexical_matches").unlink()
    with pytest.raises(ReleaseRefused, match="lacks lexical_matches"):
        release.find_blockers(run)


def test_figures_are_counted_from_the_tables(run: Run) -> None:
    figures = {row["quantity"]: (row["covered"], row["of"]) for row in release.coverage(run)}
    # Two conversations of eight turns of four seconds, two speakers each.
    assert figures["recordings usable"] == (2, 2)
    assert figures["seconds of speech with words"] == (64.0, 64.0)
    assert figures["turns converted"] == (16, 16)
    assert figures["profiles with a pseudo-voice"] == (4, 4)
    risk = pd.DataFrame(release.residual_risk(run))
    searched = risk[risk["measure"].str.startswith("planned originals")]
    assert len(searched) == 9 and (searched["value"] == 0).all()
    assert set(searched["of"]) == {len(run.read("edits"))}


def test_only_first_pseudo_voices_stand_against_a_release(tmp_path: Path) -> None:
    run = fabricate_run(tmp_path / "made", n_recordings=3)
    assigned = run.read("assignments")
    assert set(assigned.loc[assigned["status"] == "failed", "pseudo_profile"]) == {2}
    found = {row["quantity"]: (row["covered"], row["of"]) for row in release.coverage(run)}
    assert found["profiles with a pseudo-voice"] == (6, 6)
    details = [blocker.detail for blocker in release.find_blockers(run)]
    assert not [detail for detail in details if "assignments" in detail]
    assigned.loc[0, ["status", "reason"]] = "failed", "no unit"
    run.write("assignments", assigned)
    details = [blocker.detail for blocker in release.find_blockers(run)]
    assert "1 rows of assignments failed" in details


def test_tables_are_released_as_the_receipts_know_them(run: Run, tmp_path: Path) -> None:
    held = members(release.build_release(run, tmp_path / "out"))
    receipt = json.loads(held["made/receipts/07_stitch.json"])
    content = held["made/tables/reconstructions.parquet"]
    assert hashlib.sha256(content).hexdigest() == receipt["tables"]["reconstructions"]
    pd.testing.assert_frame_equal(
        pd.read_parquet(io.BytesIO(content)), run.read("reconstructions")
    )
