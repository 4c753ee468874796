"""Inventory, replacements and the strict plan."""

import datetime
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aegis.canonical import canonical
from aegis.edits import (
    Edit,
    Located,
    PlanError,
    TimedWord,
    apply_edits,
    build_edits,
    build_inventory,
    check_target,
    choose_replacements,
    clinical_tokens,
    fit_elision,
    refusals,
    span_times,
)
from aegis.surrogates import Surrogates, sound_key


def located(texts: dict[str, str], *found: tuple[str, str, str, int]) -> list[Located]:
    """Mentions by turn, category, text and which occurrence."""
    out = []
    for k, (turn_id, category, text, nth) in enumerate(found):
        start = [m.start() for m in re.finditer(re.escape(text), texts[turn_id])][nth]
        out.append(Located(f"m{k}", turn_id, category, start, start + len(text), text))
    return out


def edit(text: str, original: str, replacement: str, nth: int = 0, name: str = "m") -> Edit:
    start = [m.start() for m in re.finditer(re.escape(original), text)][nth]
    return Edit(
        f"{name}{start}", "e", "t", "NAME", start, start + len(original), original, replacement
    )


def planned(
    texts: dict[str, str], language: str, *found: tuple[str, str, str, int], seed: int = 1
) -> dict[str, str]:
    mentions = located(texts, *found)
    entities = build_inventory(mentions, texts, "d/a", language)
    chosen = choose_replacements(entities, "d/a", language, seed)
    edits = build_edits(entities, chosen, texts, language)
    return {e.mention_id: e.replacement for e in edits}


PEOPLE = {"t": "John Smith. Mr Smith. Johnny. Mrs Smith. Anna."}
FOUND = (
    ("t", "NAME", "John Smith", 0),
    ("t", "NAME", "Smith", 1),
    ("t", "NAME", "Johnny", 0),
    ("t", "NAME", "Smith", 2),
    ("t", "NAME", "Anna", 0),
)


def test_aliases_are_one_entity_and_titles_part_people() -> None:
    entities = build_inventory(located(PEOPLE, *FOUND), PEOPLE, "d/a", "en")
    groups = [[m.mention_id for m in e.mentions] for e in entities]
    assert groups == [["m0", "m1", "m2"], ["m3"], ["m4"]]


def test_parts_of_a_name_map_to_parts_of_its_surrogate() -> None:
    out = planned(PEOPLE, "en", *FOUND)
    first, last = out["m0"].split()
    assert (out["m1"], out["m2"]) == (last, first)
    assert len({out["m0"], out["m3"], out["m4"], last}) == 4


def test_same_input_same_map_and_other_seed_other_map() -> None:
    assert planned(PEOPLE, "en", *FOUND) == planned(PEOPLE, "en", *FOUND)
    assert planned(PEOPLE, "en", *FOUND, seed=2) != planned(PEOPLE, "en", *FOUND)


@pytest.mark.parametrize(
    ("category", "original", "form"),
    [
        ("PHONE", "07700 900123", r"0\d{4} \d{6}"),
        ("SSN", "123-45-6789", r"\d{3}-\d{2}-\d{4}"),
        ("MRN", "A4471-22", r"[A-Z]\d{4}-\d{2}"),
        ("DATE", "3rd of May 1962", r"\d{1,2}(st|nd|rd|th) of [A-Z][a-z]+ 1962"),
        ("DATE", "05/03/1962", r"\d\d/\d\d/1962"),
        ("DATE", "third of May nineteen sixty two", r"[a-z ]+ of [A-Z][a-z]+ nineteen sixty two"),
        ("AGE", "92", r"9\d"),
        ("AGE", "ninety-three", r"ninety(-[a-z]+)?"),
        ("LOCATION", "14 Larch Close", r"\d\d [A-Z][a-z]+ Close"),
        ("LOCATION", "HG1 2AB", r"[A-Z]{2}\d \d[A-Z]{2}"),
        ("LOCATION", "Mercy General Hospital", r"[A-Z][a-z]+ General Hospital"),
        ("EMAIL", "j.doe@mail.com", r"[a-z]+\.[a-z]+\d*@example\.(com|org|net)"),
        ("EMAIL", "j dot doe at mail dot com", r"[a-z]+ [a-z ]+ at example dot (com|org|net)"),
        ("IP", "198.51.100.23", r"192\.0\.2\.\d+"),
    ],
)
def test_replacements_keep_the_form(category: str, original: str, form: str) -> None:
    out = planned({"t": original}, "en", ("t", category, original, 0))["m0"]
    assert re.fullmatch(form, out), out
    assert canonical(out, "en") != canonical(original, "en")


def test_dates_of_a_conversation_keep_their_distance() -> None:
    texts = {"t": "3 May 1962 and 13 May 1962"}
    mentions = [
        Located("m0", "t", "DATE", 0, 10, "3 May 1962"),
        Located("m1", "t", "DATE", 15, 26, "13 May 1962"),
    ]
    entities = build_inventory(mentions, texts, "d/a", "en")
    chosen = choose_replacements(entities, "d/a", "en", 3)
    days = [canonical(str(chosen[e.entity_id].text), "en") for e in entities]
    first, second = (datetime.date.fromisoformat(day) for day in days)
    assert (second - first).days == 10


def test_replacements_do_not_sound_like_originals() -> None:
    draws = Surrogates(1, "d/a", "en", ["Jon Smith", "Sara Miller"])
    keys = {sound_key(word) for word in ("jon", "smith", "sara", "miller")}
    names = [
        draws.first_name("male"),
        draws.first_name("female"),
        draws.last_name(),
        draws.last_name(),
    ]
    assert len(set(names)) == 4
    assert not keys & {sound_key(str(name)) for name in names}


@pytest.mark.parametrize(
    ("text", "original", "replacement", "expected"),
    [
        ("le dossier d'Amélie", "Amélie", "Nina", "le dossier de Nina"),
        ("le dossier de Nina", "Nina", "Amélie", "le dossier d'Amélie"),
        ("madame Petit", "Petit", "Roux", "madame Roux"),
    ],
)
def test_french_elision(text: str, original: str, replacement: str, expected: str) -> None:
    fitted = fit_elision(edit(text, original, replacement), text)
    assert apply_edits(text, [fitted]) == expected
    check_target(text, expected, [fitted])


def test_no_chaining_and_both_occurrences() -> None:
    text = "Ann met Bob, and Bob met Ann."
    edits = [
        edit(text, "Ann", "Bob"),
        edit(text, "Ann", "Bob", 1),
        edit(text, "Bob", "Ann"),
        edit(text, "Bob", "Ann", 1),
    ]
    assert apply_edits(text, edits) == "Bob met Ann, and Ann met Bob."
    text = "Doris. So Doris, what"
    assert (
        apply_edits(text, [edit(text, "Doris", "Nina", k) for k in (0, 1)])
        == "Nina. So Nina, what"
    )


def test_refusals_name_the_rule() -> None:
    text = "Anna takes lisinopril."
    inside = edit(text, "Ann", "Eve")
    assert refusals(text, [inside], "en")[inside.mention_id].startswith("inside_word")
    whole, part = edit(text, "Anna takes", "Eve"), edit(text, "takes", "x")
    assert refusals(text, [whole, part], "en")[part.mention_id].startswith("overlap")
    drug = edit(text, "lisinopril", "Boston")
    assert refusals(text, [drug], "en")[drug.mention_id].startswith("clinical")
    moved = Edit("m", "e", "t", "NAME", 1, 5, "Anna", "Eve")
    assert refusals(text, [moved], "en")["m"].startswith("unlocated")
    same = edit(text, "Anna", "anna")
    assert refusals(text, [same], "en")[same.mention_id].startswith("unchanged")


def test_decomposed_letters_are_inside_a_word() -> None:
    text = "Ame\u0301lie"
    cut = Edit("m", "e", "t", "NAME", 0, 3, "Ame", "Eve")
    assert refusals(text, [cut], "fr")["m"].startswith("inside_word")


def test_a_target_that_changes_a_dose_is_refused() -> None:
    text = "Anna takes 5 mg, no pain."
    one = edit(text, "Anna", "Nina")
    check_target(text, "Nina takes 5 mg, no pain.", [one])
    with pytest.raises(PlanError, match="outside"):
        check_target(text, "Nina takes 50 mg, no pain.", [one])
    with pytest.raises(PlanError, match="outside"):
        check_target(text, "Nina takes 5 mg, pain.", [one])


def test_clinical_tokens_outside_spans() -> None:
    assert clinical_tokens("No pain since Anna took 0.25 mg of lisinopril", [(14, 18)]) == [
        "no",
        "since",
        "0.25",
        "lisinopril",
    ]


def test_overlapping_edits_raise() -> None:
    text = "Anna Smith"
    with pytest.raises(PlanError, match="overlaps"):
        apply_edits(text, [edit(text, "Anna Smith", "x"), edit(text, "Smith", "y")])


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.text(max_size=6), st.text(min_size=1, max_size=5), st.text(min_size=1, max_size=5)
        ),
        max_size=5,
    ),
    st.text(max_size=6),
)
def test_outside_the_spans_nothing_changes(pieces: list[tuple[str, str, str]], tail: str) -> None:
    text, target, edits = "", "", []
    for k, (gap, original, replacement) in enumerate(pieces):
        start = len(text) + len(gap)
        edits.append(
            Edit(f"m{k}", "e", "t", "NAME", start, start + len(original), original, replacement)
        )
        text += gap + original
        target += gap + replacement
    assert apply_edits(text + tail, edits) == target + tail


def test_span_times() -> None:
    words = [
        TimedWord("Hello,", 0.0, 0.4),
        TimedWord("Anna", 0.5, 0.9),
        TimedWord("Smith.", 0.9, 1.3),
        TimedWord("5", None, None),
    ]
    text = "Hello, Anna Smith. 5"
    assert span_times(text, 7, 17, words) == (0.5, 1.3)
    assert span_times(text, 19, 20, words) == (None, None)
    assert span_times(text, 7, 17, words[:2]) == (None, None)


PIECES = {"a": "It's 0712-45.", "b": "88-03, that's all.", "c": "So 0712-45.", "d": "88-03."}


def test_a_number_over_two_turns_is_one_entity_and_each_mention_gets_its_piece() -> None:
    found = [(turn, "PHONE", text, 0) for turn, text in zip("abcd", ["0712-45", "88-03"] * 2)]  # noqa: B905
    mentions = located(PIECES, *found)
    continued = {"m1": "m0", "m3": "m2"}
    entities = build_inventory(mentions, PIECES, "d/a", "en", continued)
    assert [len(e.mentions) for e in entities] == [4]
    assert entities[0].original == "0712-45 88-03"
    chosen = choose_replacements(entities, "d/a", "en", 1)
    edits = {e.mention_id: e.replacement for e in build_edits(entities, chosen, PIECES, "en")}
    assert re.fullmatch(r"0\d{3}-\d{2}", edits["m0"]) and re.fullmatch(r"\d\d-\d\d", edits["m1"])
    assert (edits["m2"], edits["m3"]) == (edits["m0"], edits["m1"])
    assert edits["m0"] != "0712-45" and edits["m1"] != "88-03"


def test_without_a_continuation_two_numbers_are_two_entities() -> None:
    mentions = located(PIECES, ("a", "PHONE", "0712-45", 0), ("b", "PHONE", "88-03", 0))
    assert len(build_inventory(mentions, PIECES, "d/a", "en")) == 2


@pytest.mark.parametrize(
    ("original", "language", "form"),
    [
        ("Un 58 03 69 0 0 817", "fr", r"[a-zé]+ \d\d \d\d \d\d 0 0 \d{3}"),
        ("Two 45 six 12", "en", r"[a-z]+ \d\d [a-z]+ \d\d"),
        ("oh 161 496", "en", r"oh \d{3} \d{3}"),
        ("Y-O-Eleven, 9-Z-Z", "en", r"[A-Z]-[A-Z]-[a-z]+( [a-z]+)?, \d-[A-Z]-[A-Z]"),
        ("4 dash 7 dash AB", "en", r"\d dash \d dash [A-Z]{2}"),
    ],
)
def test_a_number_word_among_digits_becomes_another(
    original: str, language: str, form: str
) -> None:
    for seed in range(5):
        new = Surrogates(seed, "r", language, [original]).number(original)
        assert new is not None and re.fullmatch(form, new, re.I), new
        assert canonical(new, language) != canonical(original, language)


@pytest.mark.parametrize(
    ("original", "language", "form"),
    [
        ("Trois impasses du moulin", "fr", r"[a-z ]+ impasses des \w+"),
        ("3 impasse du Moulin", "fr", r"\d impasse des \w+"),
        ("St. Martin maternity unit", "en", r"\w+ maternity unit"),
        ("Barrett County", "en", r"\w+ County"),
        ("hôpital Saint-Clair", "fr", r"hôpital \w+"),
        ("972-01", "en", r"\d{3}-\d\d"),
        ("13 000", "fr", r"\d\d \d{3}"),
        ("nine seven two oh one", "en", r"[a-z -]+"),
    ],
)
def test_a_place_is_replaced_by_one_of_its_form(original: str, language: str, form: str) -> None:
    for seed in range(5):
        new = Surrogates(seed, "r", language, [original]).location(original)
        assert new is not None and re.fullmatch(form, new, re.I), new
