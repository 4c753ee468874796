"""The pool's declaration and its quality rules."""

from __future__ import annotations

import numpy as np
import pytest

from aegis.errors import ManifestError
from aegis.manifests import reserved_voices
from aegis.pool import judge_unit, measure_quality, read_pool, trim
from aegis.tables import PROJECT

SHA = "a" * 64
SYNTHESISED = """
name: toy
synthesiser: kokoro
licence: Apache-2.0
texts: {en: one two three}
variants: {plain: {}, deep: {f0_ratio: 0.9, rate: 1.1}}
bases:
  - {voice: af_x, language: en, accent: us, native: true, gender_presentation: female}
"""


def write(folder, text, name="pool.yaml"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_base_voices_times_variants(tmp_path):
    pool = read_pool(write(tmp_path, SYNTHESISED))
    assert [unit.voice_id for unit in pool.units] == ["en.af_x.deep", "en.af_x.plain"]
    deep = pool.units[0]
    assert dict(deep.variant) == {"f0_ratio": 0.9, "rate": 1.1}
    assert deep.traits == "native=yes;variant=deep;f0_ratio=0.9;rate=1.1"
    assert (deep.native_english, deep.licence) == (True, "Apache-2.0")


def test_embedded_pool_has_what_it_promises():
    reserved = reserved_voices("demo")
    pool = read_pool(PROJECT / "data_manifests" / "pool.yaml", reserved)
    assert len(pool.units) >= 120
    assert sum(unit.language == "en" for unit in pool.units) >= 75
    assert {unit.language for unit in pool.units} == {"en", "fr"}
    assert not {f"{pool.synthesiser}:{unit.base_voice}" for unit in pool.units} & reserved


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("f0_ratio: 0.9", "f0_ratio: 3", "f0_ratio outside"),
        ("f0_ratio: 0.9", "pitch: 0.9", "unknown keys"),
        ("language: en", "language: fr", "no text in language 'fr'"),
        ("voice: af_x", "voice: 'a/x'", "may hold"),
        ("licence: Apache-2.0", "# none", "missing keys"),
    ],
)
def test_wrong_declarations(tmp_path, old, new, message):
    with pytest.raises(ManifestError, match=message):
        read_pool(write(tmp_path, SYNTHESISED.replace(old, new)))


def test_a_voice_of_the_corpus_is_refused(tmp_path):
    with pytest.raises(ManifestError, match="af_x"):
        read_pool(write(tmp_path, SYNTHESISED), frozenset({"kokoro:af_x"}))


def test_provenance_is_said_or_said_to_be_unknown(tmp_path):
    """A column where the snapshot has it; where it has none, each voice says so."""
    made = read_pool(write(tmp_path, SYNTHESISED)).units[0]
    assert made.provenance == "synthesised here by kokoro"
    text = f"voice_id,path,sha256,language,provenance\na,a.wav,{SHA},en,CV 17\nb,b.wav,{SHA},en,\n"
    first, second = read_pool(write(tmp_path, text, "swara.csv")).units
    assert (first.provenance, second.provenance) == ("CV 17", "not stated")


def test_recorded_units_from_csv(tmp_path):
    text = (
        "voice_id,path,sha256,language,accent,native_english,gender_presentation,child_like\n"
        f"b,x/b.wav,{SHA},en,scottish,true,male,no\na,x/a.wav,{SHA},fr,,,,\n"
    )
    pool = read_pool(write(tmp_path, text, "swara.csv"))
    first, second = pool.units
    assert (first.voice_id, first.native_english, first.accent) == ("a", None, "unknown")
    assert (second.native_english, second.child_like, second.path) == (True, False, "x/b.wav")
    assert pool.synthesiser is None
    assert pool.folder == tmp_path


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (f"a,x.wav,{SHA},en,maybe\n", "neither true nor false"),
        ("a,x.wav,123,en,true\n", "64 hexadecimal"),
        (f"a b,x.wav,{SHA},en,true\n", "may hold"),
        (f"a,x.wav,{SHA},en,true\na,y.wav,{SHA},en,true\n", "given twice"),
    ],
)
def test_wrong_recorded_units(tmp_path, row, message):
    text = "voice_id,path,sha256,language,native_english\n" + row
    with pytest.raises(ManifestError, match=message):
        read_pool(write(tmp_path, text, "swara.csv"))


def test_quality_is_measured():
    n = 16_000
    tone = 0.1 * np.sin(2 * np.pi * 200 * np.arange(n) / 16_000)
    tone[n // 2 :] *= 0.01  # 40 dB below
    out = measure_quality(tone.astype(np.float32))
    assert out["duration_s"] == 1.0
    assert out["snr_db"] == pytest.approx(40.0, abs=0.5)
    # half of the samples carry 0.005, so the mean power is 0.0025
    assert out["level_db"] == pytest.approx(10 * np.log10(0.0025), abs=0.01)
    assert out["clipped_share"] == 0.0
    assert measure_quality(np.ones(16_000, np.float32))["clipped_share"] == 1.0
    assert measure_quality(np.zeros(0, np.float32))["duration_s"] == 0.0


GOOD = {"duration_s": 6.0, "level_db": -20.0, "clipped_share": 0.0, "snr_db": 40.0}


@pytest.mark.parametrize(
    ("change", "f0", "child", "reason"),
    [
        ({}, 180.0, False, None),
        ({"duration_s": 4.4}, 180.0, False, "shorter than 4.5 s"),
        ({"level_db": -60.0}, 180.0, False, "too quiet"),
        ({"clipped_share": 0.01}, 180.0, False, "clipped"),
        ({"snr_db": 5.0}, 180.0, False, "noisy"),
        ({}, None, False, "no voiced"),
        ({}, 300.0, True, "child-like"),
    ],
)
def test_a_unit_is_judged(change, f0, child, reason):
    got = judge_unit(GOOD | change, f0, child)
    assert got is None if reason is None else reason in got


def test_trim_takes_silence_off_both_ends():
    tone = 0.1 * np.sin(np.arange(3200) / 5)
    padded = np.concatenate([np.zeros(1600), tone, np.zeros(960)]).astype(np.float32)
    assert trim(padded).size == 3200
    assert trim(np.zeros(100, np.float32)).size == 100


def test_a_failed_unit_keeps_its_row_with_its_provenance(tmp_path):
    from aegis.tables import check_table
    from aegis.work import ItemResult
    from aegis.work.voice import base_items, voice_tables

    pool = read_pool(write(tmp_path, SYNTHESISED))
    failed = [
        ItemResult(item["id"], "failed", "no voice", None, 0.0, 0.0, False)
        for item in base_items(pool)
    ]
    voices, vectors = voice_tables(pool, failed, {})
    checked = check_table("voices", voices)
    assert set(checked["provenance"]) == {"synthesised here by kokoro"}
    assert set(checked["reason"]) == {"no voice"}
    assert not len(vectors)
