"""Corpora: what is taken, what fate each record has, how the published formats read."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest
import soundfile as sf

from aegis import corpora, ingest, manifests, sources
from aegis.errors import AudioError, ManifestError, ParamError
from aegis.tables import PROJECT

SHARED = PROJECT.parent / "shared" / "data"
real = pytest.mark.skipif(not SHARED.exists(), reason="the published transcripts are not here")

TEXTGRID = """File type = "ooTextFile"
Object class = "TextGrid"
0
{end}
<exists>
1
"IntervalTier"
"Speaker"
0
{end}
2
0
{middle}
"{text}"
{middle}
{end}
""
"""
NAMES = ("doctor", "patient")


def wav_bytes(seconds: float, seed: int) -> bytes:
    """Noise that one speaker makes in even and the other in odd half seconds."""
    buffer = io.BytesIO()
    noise = np.random.default_rng(seed).normal(0, 0.1, round(seconds * 16000))
    noise[np.arange(noise.size) // 8000 % 2 == seed // 2 % 2] *= 0.001
    sf.write(buffer, noise, 16000, format="WAV", subtype="PCM_16")
    return buffer.getvalue()


def contents() -> dict[str, bytes]:
    """Two records of a corpus like PriMock57: a WAV and a TextGrid a speaker."""
    files = {}
    for record in ("one", "two"):
        for seed, who in enumerate(NAMES):
            text = "Hello <UNSURE>Doris</UNSURE>. <UNIN/>" if who == "doctor" else "Yes."
            grid = TEXTGRID.format(end=3.0, middle=1.0 + seed, text=text)
            files[f"audio/{record}_{who}.wav"] = wav_bytes(3.0, len(files))
            files[f"transcripts/{record}_{who}.TextGrid"] = grid.encode()
    return files


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A toy PriMock57: card and checksum list; its copy lies in the returned folder."""
    cards = tmp_path / "cards"
    cards.mkdir()
    card = (manifests.MANIFESTS / "primock57.yaml").read_text().split("urls:")[0]
    card += "urls: {file: 'https://example.org/{path}', audio: 'https://lfs.example.org/{path}'}\n"
    (cards / "primock57.yaml").write_text(card)
    rows = ["record_id,role,path,sha256,bytes"]
    for path, content in contents().items():
        record = Path(path).stem.split("_")[0]
        role = "audio" if path.endswith(".wav") else "transcript"
        digest = hashlib.sha256(content).hexdigest()
        rows.append(f"{record},{role},{path},{digest},{len(content)}")
    (cards / "primock57.csv").write_text("\n".join(rows) + "\n")
    monkeypatch.setattr(corpora, "MANIFESTS", cards)
    monkeypatch.setenv("AEGIS_DATA", str(tmp_path / "data"))
    copy = tmp_path / "copy"
    for path, content in contents().items():
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        (copy / path).write_bytes(content)
    return copy


class Web:
    """Stands for the network: serves the corpus, or what a test puts in its place."""

    def __init__(self, changed: dict[str, bytes] | None = None) -> None:
        self.calls: list[str] = []
        self.pages = contents() | (changed or {})

    def __call__(self, url: str) -> IO[bytes]:
        self.calls.append(url)
        path = url.split("example.org/")[1]
        if path not in self.pages:
            raise OSError("HTTP Error 404: Not Found")
        return io.BytesIO(self.pages[path])


def fates(name: str = "primock57") -> dict[str, tuple[str, str | None]]:
    table = corpora.verify_corpus(name)
    assert table["record_id"].is_unique
    columns = (table["record_id"], table["status"], table["reason"])
    return {record: (status, reason) for record, status, reason in zip(*columns, strict=True)}


# --- bringing it here ------------------------------------------------------------------------


def test_a_copy_is_linked_and_verified(corpus: Path) -> None:
    assert corpora.take_copy("primock57", corpus) == 8
    assert fates() == {"one": ("ok", None), "two": ("ok", None)}
    linked = corpora.data_folder("primock57") / "audio" / "one_doctor.wav"
    assert linked.resolve() == (corpus / "audio" / "one_doctor.wav").resolve()


def test_a_copy_in_other_folders_is_found_by_name(corpus: Path, tmp_path: Path) -> None:
    flat = tmp_path / "flat"
    flat.mkdir()
    for path, content in contents().items():
        (flat / Path(path).name).write_bytes(content)
    assert corpora.take_copy("primock57", flat) == 8
    assert {status for status, _ in fates().values()} == {"ok"}


def test_a_download_asks_the_address_of_each_role_once(corpus: Path) -> None:
    web = Web()
    assert corpora.fetch_corpus("primock57", opener=web) == {}
    assert sum("lfs.example.org" in url for url in web.calls) == 4
    assert sum("//example.org" in url for url in web.calls) == 4
    assert {status for status, _ in fates().values()} == {"ok"}
    assert corpora.fetch_corpus("primock57", opener=web) == {}
    assert len(web.calls) == 8


def test_what_arrives_wrong_gets_no_name(corpus: Path) -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    web = Web({"audio/one_doctor.wav": pointer, "transcripts/two_patient.TextGrid": b"else"})
    problems = corpora.fetch_corpus("primock57", opener=web)
    assert "a Git LFS pointer, not the file" in problems["audio/one_doctor.wav"]
    assert "4 bytes, expected" in problems["transcripts/two_patient.TextGrid"]
    assert fates()["one"] == ("failed", "audio: missing")
    assert fates()["two"] == ("failed", "transcript: missing")
    assert not list(corpora.data_folder("primock57").rglob("*.part"))


def test_a_refused_request_is_a_problem_of_its_file(corpus: Path) -> None:
    web = Web()
    del web.pages["audio/two_patient.wav"]
    problems = corpora.fetch_corpus("primock57", opener=web)
    assert problems == {"audio/two_patient.wav": "HTTP Error 404: Not Found"}


def test_archives_are_unpacked_by_name_and_checked(corpus: Path, tmp_path: Path) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as opened:
        for path, content in contents().items():
            opened.writestr(f"Data/{Path(path).name}", content)
        opened.writestr("../../escape.txt", b"x")
    listing = {"files": [{"name": "Data.zip", "download_url": "https://example.org/zip"}]}
    card = tmp_path / "cards" / "primock57.yaml"
    card.write_text(card.read_text().split("urls:")[0] + "urls: {archive: 'https://x/list'}\n")

    def opener(url: str) -> IO[bytes]:
        return io.BytesIO(json.dumps(listing).encode() if "list" in url else archive.getvalue())

    assert corpora.fetch_corpus("primock57", opener=opener) == {}
    assert {status for status, _ in fates().values()} == {"ok"}
    assert not list(tmp_path.rglob("escape.txt"))


@pytest.mark.parametrize("name", ["openswara", "mixer", "paraspeechcaps", "vox_profile_speakers"])
def test_what_nobody_can_fetch_says_so(name: str) -> None:
    with pytest.raises(ManifestError, match=r"cannot be fetched \("):
        corpora.fetch_corpus(name)


def test_only_https_is_opened() -> None:
    with pytest.raises(ManifestError, match="only https"):
        corpora._open_url("http://example.org/x")


# --- verification ----------------------------------------------------------------------------


def test_each_damage_is_one_fate(corpus: Path) -> None:
    corpora.take_copy("primock57", corpus)
    data = corpora.data_folder("primock57")
    (data / "audio" / "one_patient.wav").unlink()
    (data / "transcripts" / "two_doctor.TextGrid").unlink()
    grid = contents()["transcripts/two_doctor.TextGrid"]
    (data / "transcripts" / "two_doctor.TextGrid").write_bytes(grid.replace(b"Hello", b"Hallo"))
    found = fates()
    assert found["one"] == ("failed", "audio: missing")
    assert found["two"][0] == "failed"
    assert str(found["two"][1]).startswith("transcript: sha256 ")


def test_a_transcript_that_outlasts_its_audio_fails(corpus: Path, tmp_path: Path) -> None:
    corpora.take_copy("primock57", corpus)
    cards = tmp_path / "cards" / "primock57.csv"
    short, path = wav_bytes(0.3, 9), corpus / "audio" / "one_doctor.wav"
    old = contents()["audio/one_doctor.wav"]
    path.write_bytes(short)
    text = cards.read_text().replace(hashlib.sha256(old).hexdigest(), "")
    cards.write_text(text.replace(f"one_doctor.wav,,{len(old)}", "one_doctor.wav,,"))
    status, reason = fates()["one"]
    assert status == "failed"
    assert "s after the audio" in str(reason)


# --- reading ---------------------------------------------------------------------------------


def test_channels_are_merged_in_time_order(corpus: Path) -> None:
    corpora.take_copy("primock57", corpus)
    found = corpora.read_conversation("primock57", "one")
    assert [path.name for path in found.audio] == ["one_doctor.wav", "one_patient.wav"]
    assert [(u.speaker, u.text) for u in found.utterances] == [
        ("doctor", "Hello Doris ."), ("patient", "Yes."),
    ]  # fmt: skip
    assert found.speakers == NAMES
    assert found.end_s == 2.0
    with pytest.raises(ManifestError, match="no record 'three'"):
        corpora.read_conversation("primock57", "three")


@pytest.mark.parametrize(
    ("text", "plain", "tags"),
    [
        ("a <UNSURE>b c</UNSURE> d", "a b c d", ("UNSURE",)),
        ("<UNIN/>", "", ("UNIN",)),
        ("so <INAUDIBLE_SPEECH/> it", "so it", ("INAUDIBLE_SPEECH",)),
        ("p < 5 and q > 3", "p < 5 and q > 3", ()),
    ],
)
def test_tags_leave_the_text(text: str, plain: str, tags: tuple[str, ...]) -> None:
    assert corpora.plain_text(text) == (plain, tags)


# --- the published transcripts ---------------------------------------------------------------


@real
@pytest.mark.parametrize(
    ("name", "folder"),
    [("primock57", "primock57"), ("fareez", "fareez_transcripts"), ("simsamu", "simsamu"),
     ("asq_phi", "asq_phi")],
)  # fmt: skip
def test_real_copies_have_the_counts_of_their_cards(
    name: str, folder: str, tmp_path: Path
) -> None:
    assert corpora.take_copy(name, SHARED / folder, tmp_path) > 0
    assert corpora.count_corpus(name, tmp_path) == manifests.read_card(name).counts


@real
def test_real_transcripts_match_their_digests_and_lack_audio(tmp_path: Path) -> None:
    corpora.take_copy("primock57", SHARED / "primock57", tmp_path)
    table = corpora.verify_corpus("primock57", tmp_path)
    assert len(table) == 57
    assert set(table["reason"]) == {"audio: missing"}


@real
def test_real_asq_phi_is_complete(tmp_path: Path) -> None:
    corpora.take_copy("asq_phi", SHARED / "asq_phi", tmp_path)
    assert corpora.verify_corpus("asq_phi", tmp_path)["status"].tolist() == ["ok"]


@real
def test_real_tags_are_those_of_the_published_set() -> None:
    from collections import Counter

    from aegis.readers import read_textgrid

    tags: Counter[str] = Counter()
    for path in sorted((SHARED / "primock57" / "transcripts").glob("*.TextGrid")):
        for tier in read_textgrid(path):
            for interval in tier.intervals:
                tags.update(corpora.plain_text(interval.text)[1])
    assert tags == {"UNIN": 1359, "UNSURE": 1132, "INAUDIBLE_SPEECH": 814}


# --- as sources of ingest --------------------------------------------------------------------


def ingested(source: sources.Source, tmp_path: Path) -> dict[str, Any]:
    from aegis.tables import Run
    from aegis.work.corpus import ingest_recording

    (item,) = sources.ingest_items([source])
    return ingest_recording(item, {}, Run(tmp_path / "run"))


def test_published_records_become_sources_with_their_fates(corpus: Path) -> None:
    corpora.take_copy("primock57", corpus)
    (corpora.data_folder("primock57") / "audio" / "two_doctor.wav").unlink()
    one, two = sources.published_sources("primock57")
    assert (one.recording_id, one.status, one.n_speakers, one.language) == (
        "primock57/one", "ok", 2, None,
    )  # fmt: skip
    assert len(one.parts) == 2
    assert (two.status, two.reason) == ("failed", "audio: missing")
    assert [
        s.recording_id for s in sources.published_sources("primock57", None, [one.recording_id])
    ]
    frame = sources.recordings_frame([one, two], [])
    assert frame["status"].tolist() == ["ok", "failed"]


@pytest.mark.parametrize(
    ("suffix", "layout", "n_channels"), [("", "speaker", 2), ("-mixed", "", 1)]
)
def test_two_files_become_channels_or_one_mixed_channel(
    corpus: Path, tmp_path: Path, suffix: str, layout: str, n_channels: int
) -> None:
    corpora.take_copy("primock57", corpus)
    source = sources.published_sources(f"primock57{suffix}")[0]
    row = ingested(source, tmp_path)
    assert row["status"] == "ok"
    assert row["n_channels"] == n_channels
    assert str(row["layout"]).startswith(layout)
    assert row["n_samples"] == 48000


@pytest.mark.parametrize(
    ("corpus_name", "message"),
    [("primock58", "corpus 'primock58': known are"), ("asq_phi", "corpus 'asq_phi'")],
)
def test_what_has_no_recordings_is_no_corpus(corpus_name: str, message: str) -> None:
    with pytest.raises(ParamError, match=message):
        sources.published_sources(corpus_name)


def test_a_corpus_that_is_not_here_says_how(corpus: Path) -> None:
    with pytest.raises(ManifestError, match="run `aegis fetch primock57`"):
        sources.published_sources("primock57-mixed")


def test_channels_of_unequal_length_are_continued_with_silence(tmp_path: Path) -> None:
    long, short = (np.full(n, level, np.float32) for n, level in ((300_000, 0.25), (1000, 0.5)))
    for name, samples in (("a", long), ("b", short)):
        sf.write(tmp_path / f"{name}.wav", samples, 16000, subtype="FLOAT")
    paths = [tmp_path / "a.wav", tmp_path / "b.wav"]
    ingest.join_files(paths, tmp_path / "two.wav", mixed=False)
    joined, rate = sf.read(tmp_path / "two.wav", dtype="float32")
    assert (joined.shape, rate) == ((300_000, 2), 16000)
    np.testing.assert_array_equal(joined[:, 0], long)
    np.testing.assert_array_equal(joined[:1000, 1], short)
    assert (joined[1000:, 1] == 0).all()
    ingest.join_files(paths, tmp_path / "one.wav", mixed=True)
    mixed, _ = sf.read(tmp_path / "one.wav", dtype="float32")
    np.testing.assert_array_equal(mixed, joined.sum(axis=1))


@pytest.mark.parametrize(("rate", "channels"), [(8000, 1), (16000, 2)])
def test_files_that_do_not_belong_together_are_refused(
    tmp_path: Path, rate: int, channels: int
) -> None:
    sf.write(tmp_path / "a.wav", np.zeros(1000), 16000)
    sf.write(tmp_path / "b.wav", np.zeros((1000, channels)), rate)
    with pytest.raises(AudioError, match="must be mono and of one rate"):
        ingest.join_files([tmp_path / "a.wav", tmp_path / "b.wav"], tmp_path / "c.wav", True)


def test_the_command_takes_a_copy_and_says_what_is_wrong(corpus: Path) -> None:
    from typer.testing import CliRunner

    from aegis.cli import app

    done = CliRunner().invoke(app, ["fetch", "primock57", "--from", str(corpus)])
    assert "8 files linked" in done.stdout
    assert "2 records ok" in done.stdout
    assert "utterances: 4" in done.stdout
    (corpus / "audio" / "one_doctor.wav").unlink()
    done = CliRunner().invoke(app, ["fetch", "primock57", "--from", str(corpus)])
    assert done.exit_code == 1
    assert "1 records failed audio: missing" in done.stdout
