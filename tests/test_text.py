"""Word errors: hand counts, values written in two ways, published rates."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from aegis.errors import TableError
from aegis.tables import PROJECT
from aegis.text import ErrorCounts, count_errors, normalise, pooled_error_rate, score_transcripts

DATA = PROJECT.parent / "shared" / "data"


@pytest.mark.parametrize(
    ("one", "other", "language"),
    [
        ("Take five hundred milligrams.", "take 500 mg", "en"),
        ("She is twenty-five years old", "she is 25 years old", "en"),
        ("a pressure of one hundred and twenty over eighty", "a pressure of 120/80", "en"),
        ("on the third of May, 1962", "on the 3rd of May 1962", "en"),
        ("J'ai pris cinq cents milligrammes", "j'ai pris 500 mg", "fr"),
        ("il a vingt-cinq ans", "Il a 25 ans.", "fr"),
    ],
)
def test_values_written_in_two_ways_are_equal_by_value(
    one: str, other: str, language: str
) -> None:
    assert normalise(one, language, by_value=True) == normalise(other, language, by_value=True)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("take 0.25 mg", "take 25 mg"),
        ("take 36 mg", "take 3.6 mg"),
        ("take 50 mg", "take 50 mcg"),
        ("he does take it", "he does not take it"),
    ],
)
def test_different_doses_stay_different(one: str, other: str) -> None:
    for by_value in (False, True):
        assert normalise(one, "en", by_value) != normalise(other, "en", by_value)


def test_words_around_values_pass_the_whisper_rules() -> None:
    text = "It isn't Dr. Webber's colour, um, 0.5 mg"
    assert normalise(text, "en", by_value=True) == "it is not doctor webber is color 0.5 mg"


def test_counts_by_hand() -> None:
    # the -> so, cat -> hat, and "then" is inserted
    assert count_errors("the cat sat down", "so hat sat down then") == ErrorCounts(4, 2, 0, 1)
    assert count_errors("a b c d", "a x c") == ErrorCounts(4, 1, 1, 0)
    assert count_errors("a b", "a b") == ErrorCounts(2, 0, 0, 0)


def test_an_empty_reference_keeps_its_insertions_and_stays_out_of_the_pool() -> None:
    counts = [count_errors("", "not spoken"), count_errors("one two", "one")]
    assert counts[0] == ErrorCounts(0, 0, 0, 2)
    assert pooled_error_rate(counts) == pytest.approx(0.5)
    assert pooled_error_rate(counts[:1]) != pooled_error_rate(counts[:1])  # NaN: undefined


def transcripts(*rows: tuple[str, str, str | None]) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=["recording_id", "condition", "text"])
    failed = table["text"].isna()
    status = failed.map({True: "failed", False: "ok"})
    return table.assign(status=status, reason=failed.map({True: "no audio", False: None}))


def test_pairs_are_made_by_id_not_by_position() -> None:
    table = transcripts(("d/b", "original", "three four"), ("d/a", "original", "one too"))
    scores = score_transcripts(
        table, {"d/a": "one two", "d/b": "three four"}, {"d/a": "fr", "d/b": "fr"}, "gold"
    )
    plain = scores[scores["reference"] == "gold"].set_index("recording_id")
    assert plain.loc["d/a", "substitutions"] == 1
    assert plain.loc["d/b", ["substitutions", "deletions", "insertions"]].sum() == 0
    assert set(scores["reference"]) == {"gold", "gold_by_value"}


def test_a_recording_twice_in_a_condition_is_refused() -> None:
    table = transcripts(("d/a", "original", "x"), ("d/a", "original", "y"))
    with pytest.raises(TableError, match="1 recordings twice"):
        score_transcripts(table, {"d/a": "x"}, {}, "gold")


def test_a_failed_transcript_is_a_row_that_does_not_count() -> None:
    table = transcripts(("d/a", "converted", None))
    scores = score_transcripts(table, {"d/a": "one two"}, {"d/a": "en"}, "source")
    assert scores["status"].tolist() == ["not_applicable"] * 2
    assert scores["reason"].tolist() == ["no audio"] * 2


@pytest.mark.skipif(not (DATA / "refs_librispeech").exists(), reason="no shared data")
@pytest.mark.parametrize(
    ("system", "published"),
    [("b1.rnnt_baseline", 9.6078), ("s5.s3+db-nnlm.biasing_100", 5.8556)],
)
def test_published_error_rates(system: str, published: float) -> None:
    folder = DATA / "refs_librispeech"
    spoken = read_texts(folder / "test-other.transcripts.tsv")
    heard = read_texts(folder / f"asr_hyp.test-other.{system}.tsv")
    counts = [count_errors(text, heard.get(name, "")) for name, text in spoken.items()]
    assert 100 * pooled_error_rate(counts) == pytest.approx(published, abs=0.0001)


def read_texts(path: Path) -> dict[str, str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    pairs = (line.split("\t", 1) for line in lines if line)
    return {pair[0]: pair[1] if len(pair) > 1 else "" for pair in pairs}
