"""Readers of published annotation formats, by hand-made files and by the real ones."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from aegis import readers
from aegis.errors import ManifestError
from aegis.tables import PROJECT

DATA = PROJECT.parent / "shared" / "data"
needs_data = pytest.mark.skipif(not DATA.exists(), reason="the real excerpts are not here")

GRID = '''File type = "ooTextFile"
Object class = "TextGrid"

xmin = 0
xmax = 3
tiers? <exists>
size = 2
item []:
    item [1]:
        class = "IntervalTier"
        name = "Say ""ah"""
        xmin = 0
        xmax = 3
        intervals: size = 2
        intervals [1]:
            xmin = 0
            xmax = 1.5
            text = "one
two é"
        intervals [2]:
            xmin = 1.5
            xmax = 3
            text = "he said ""no"" 5"
    item [2]:
        class = "TextTier"
        name = "marks"
        xmin = 0
        xmax = 3
        points: size = 1
        points [1]:
            number = 2
            mark = "!"
'''
SHORT = (
    '"ooTextFile"\n"TextGrid"\n0 3 <exists> 1\n"IntervalTier" "a" 0 3 2\n'
    '0 1.5 "x" ! a remark\n1.5 3 ""\n'
)


def write(folder: Path, content: bytes | str, name: str = "f.txt") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_textgrid_in_every_encoding(tmp_path: Path, encoding: str) -> None:
    crlf = GRID.replace("\n", "\r\n")
    words, marks = readers.read_textgrid(write(tmp_path, crlf.encode(encoding)))
    assert (words.name, words.kind) == ('Say "ah"', "IntervalTier")
    assert words.intervals == (
        readers.Interval(0.0, 1.5, "one\ntwo é"),
        readers.Interval(1.5, 3.0, 'he said "no" 5'),
    )
    assert marks.intervals == (readers.Interval(2.0, 2.0, "!"),)


def test_short_textgrid_and_remarks(tmp_path: Path) -> None:
    (tier,) = readers.read_textgrid(write(tmp_path, SHORT))
    assert [i.text for i in tier.intervals] == ["x", ""]


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("xmax = 1.5", "xmax = 0", r"line 17: interval \[0.0, 0.0\] has no length"),
        ("xmin = 1.5", "xmin = 1.2", "line 21: interval at 1.2 starts before"),
        ("intervals: size = 2", "intervals: size = 3", "line 25: expected a time"),
        ("IntervalTier", "Tier", "line 10: unknown tier class 'Tier'"),
        ("xmax = 1.5", "xmax = inf", "expected an interval's xmax"),
        ('"ooTextFile"', '"x"', "line 1: the file type"),
    ],
)
def test_broken_textgrid_names_the_line(tmp_path: Path, old: str, new: str, rule: str) -> None:
    with pytest.raises(ManifestError, match=rule):
        readers.read_textgrid(write(tmp_path, GRID.replace(old, new, 1)))


def test_truncated_textgrid_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="the file ends before"):
        readers.read_textgrid(write(tmp_path, SHORT[: SHORT.index("1.5 3")]))


def test_rttm(tmp_path: Path) -> None:
    turns = readers.read_rttm(
        write(
            tmp_path,
            ";; made by hand\nSPKR-INFO rec 1 <NA> <NA> <NA> adult A <NA>\n\n"
            "SPEAKER rec 1 0.5 2.0 <NA> <NA> A <NA> <NA>\n"
            "SPEAKER rec 1 1.0 3.0 <NA> <NA> B <NA>\n",
        )
    )
    assert [(t.speaker, t.start_s, t.end_s) for t in turns] == [("A", 0.5, 2.5), ("B", 1.0, 4.0)]


@pytest.mark.parametrize(
    ("row", "rule"),
    [
        ("SPEAKER my rec 1 0 1 <NA> <NA> A <NA> <NA>", "line 2: 11 fields"),
        ("SPEAKER rec 1 0 0 <NA> <NA> A <NA> <NA>", "line 2: onset 0.0 or duration 0.0"),
        ("SPEAKER rec 1 -1 2 <NA> <NA> A <NA> <NA>", "line 2: onset -1.0"),
        ("SPEAKER rec 1 x 2 <NA> <NA> A <NA> <NA>", "line 2: onset 'x' is not a number"),
        ("SPEAKER rec 1 nan 2 <NA> <NA> A <NA> <NA>", "line 2: onset 'nan' is not finite"),
        ("SPEAKER rec 1 1 2 <NA> <NA> A <NA> <NA>", "line 2: nested in another turn of A"),
        ("SPAEKER rec 1 1 2 <NA> <NA> A <NA> <NA>", "line 2: unknown type"),
    ],
)
def test_broken_rttm_names_the_line(tmp_path: Path, row: str, rule: str) -> None:
    first = "SPEAKER rec 1 0.5 4 <NA> <NA> A <NA> <NA>"
    with pytest.raises(ManifestError, match=rule):
        readers.read_rttm(write(tmp_path, f"{first}\n{row}\n"))


def term(text: str, start: float, end: float, kind: str = "WORD") -> dict[str, object]:
    return {"text": text, "start": start, "end": end, "type": kind}


def simsamu(terms: list[dict[str, object]], end: float = 2.0) -> str:
    speaker = {"id": "medecin", "name": ""}
    entry = {"speaker": speaker, "start": 0.0, "end": end, "terms": terms}
    return json.dumps({"schemaVersion": "2.0", "monologues": [entry]})


def test_simsamu_joins_terms(tmp_path: Path) -> None:
    terms = [term("bonjour", 0, 1), term(",", 1, 1, "PUNCTUATION"), term("docteur", 1.5, 1.2)]
    (found,) = readers.read_simsamu(write(tmp_path, simsamu(terms)))
    assert (found.speaker, found.text) == ("medecin", "bonjour, docteur")
    assert (found.terms[2].start_s, found.terms[2].end_s) == (None, None)


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        ('{"schemaVersion": "2.0",\n "monologues": [}', "line 2: no valid JSON"),
        ('{"schemaVersion": "1.0"}', "schemaVersion must be"),
        (simsamu([term("x", 0, 1, "NOISE")]), "monologue 0: .*term 0: unknown type"),
        (simsamu([{"text": "x"}]), "monologue 0: KeyError"),
        (simsamu([term("x", 0, 1)], end=0.0), "monologue 0: .* is empty"),
    ],
)
def test_broken_simsamu_names_the_place(tmp_path: Path, content: str, rule: str) -> None:
    with pytest.raises(ManifestError, match=rule):
        readers.read_simsamu(write(tmp_path, content))


def test_fareez_labels_and_continuations(tmp_path: Path) -> None:
    text = "D: Hello.\r\n\r\nP : Hi.\r\nstill me\r\np: So?\r\n"
    found = readers.read_fareez(write(tmp_path, text.encode("utf-16")))
    assert [(u.speaker, u.text) for u in found] == [
        ("D", "Hello."), ("P", "Hi. still me"), ("P", "So?"),
    ]  # fmt: skip


def test_fareez_in_cp1252(tmp_path: Path) -> None:
    (found,) = readers.read_fareez(write(tmp_path, b"D: it\x92s fine"))
    assert found.text == "it\u2019s fine"


@pytest.mark.parametrize(
    ("text", "rule"), [("\nhello\nD: x", "line 2: text before"), ("", "no D: or P: turn")]
)
def test_broken_fareez_names_the_line(tmp_path: Path, text: str, rule: str) -> None:
    with pytest.raises(ManifestError, match=rule):
        readers.read_fareez(write(tmp_path, text))


def test_undecodable_bytes_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="byte 1"):
        readers.read_text(write(tmp_path, b"a\x81"))


def test_asq_phi_blocks(tmp_path: Path) -> None:
    text = (
        "===QUERY===\nIs Ann well?\n===PHI_TAGS===\n"
        '{"identifier_type": "NAME", "value": "Ann"}\n\n===QUERY===\nWhat now?\n===PHI_TAGS===\n'
    )
    assert readers.read_asq_phi(write(tmp_path, text)) == [
        readers.PhiQuery(2, "Is Ann well?", (("NAME", "Ann"),)),
        readers.PhiQuery(7, "What now?", ()),
    ]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("===QUERY===\nx\n===QUERY===\n", "line 3: a query block without"),
        ("===QUERY===\n===PHI_TAGS===\n", "line 2: ===PHI_TAGS=== without a query"),
        ("x\n", "line 1: text outside"),
        ("===QUERY===\nx\n===PHI_TAGS===\n{", "line 4: no valid JSON"),
        ('===QUERY===\nx\n===PHI_TAGS===\n{"type": "a"}', "line 4: must be an object"),
        (
            '===QUERY===\nx\n===PHI_TAGS===\n{"identifier_type": "NAME", "value": 3}',
            "line 4: identifier_type and value must be text",
        ),
    ],
)
def test_broken_asq_phi_names_the_line(tmp_path: Path, text: str, rule: str) -> None:
    with pytest.raises(ManifestError, match=rule):
        readers.read_asq_phi(write(tmp_path, text))


@needs_data
def test_real_primock57() -> None:
    names: Counter[str] = Counter()
    for path in sorted((DATA / "primock57" / "transcripts").glob("*.TextGrid"))[:20]:
        tiers = readers.read_textgrid(path)
        names.update(tier.name for tier in tiers)
        assert all(i.start_s < i.end_s for tier in tiers for i in tier.intervals)
    assert sum(names.values()) == 20


@needs_data
def test_real_simsamu_has_the_published_number_of_words() -> None:
    files = sorted((DATA / "simsamu").rglob("*.json"))
    terms = [t for path in files for u in readers.read_simsamu(path) for t in u.terms]
    assert (len(files), sum(t.kind == "WORD" for t in terms)) == (61, 35377)
    rttm = [readers.read_rttm(path) for path in sorted((DATA / "simsamu").rglob("*.rttm"))]
    assert sum(map(len, rttm)) == 3089


@needs_data
def test_real_fareez_files_all_read() -> None:
    files = sorted((DATA / "fareez_transcripts").rglob("*[0-9].txt"))
    turns = [readers.read_fareez(path) for path in files]
    assert len(files) == 272
    assert {u.speaker for found in turns for u in found} == {"D", "P"}


@needs_data
def test_real_asq_phi_has_the_published_counts() -> None:
    path = DATA / "asq_phi" / "data" / "synthetic_clinical_queries.txt"
    queries = readers.read_asq_phi(path)
    assert len(queries) == 1051
    assert sum(not query.phi for query in queries) == 219
    assert sum(len(query.phi) for query in queries) == 2973
