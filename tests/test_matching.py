"""Literal search for replacement and original in a fresh transcript."""

from __future__ import annotations

import pytest

from aegis.matching import find_surface, match_intention, sound_key


@pytest.mark.parametrize(
    ("surface", "text", "language", "how"),
    [
        ("Webber", "I saw Dr. Webber today.", "en", "exact"),
        ("Webber", "I saw Dr. WEBBER'S nurse", "en", "exact"),
        ("Webber", "I saw Dr. Weber today.", "en", "variant"),
        ("Mensah", "I'm Dr. Ben Mensa", "en", "variant"),
        ("Bramley General Hospital", "in bromley general hospital", "en", "variant"),
        ("McAllister", "this is Mac Allister", "en", "variant"),
        ("Petit", "bonjour madame Petyk", "fr", "near"),
        ("Amélie", "je suis Amelie", "fr", "variant"),
        ("Webber", "I saw Dr. Jones today.", "en", "none"),
        ("Ann", "Anna came and sat down", "en", "near"),
        ("0161 496 0000", "call 016 149 60000", "en", "exact"),
        ("oh one six one, four nine six", "it is 0161 496", "en", "exact"),
        ("4 June 1971", "born on the fourth of June, 1971.", "en", "exact"),
        ("the 4th of June", "born June 4th 1971", "en", "exact"),
        ("4 June 1971", "born on the 5th of June 1971", "en", "near"),
        ("448123", "the number is 448 1", "en", "near"),
        ("448123", "the number is 99 17 02", "en", "none"),
        ("Webber", "", "en", "none"),
        ("Sophie Dumont", "je suis la docteur sophidumon", "fr", "variant"),
        ("Bonnet", "le docteur Robert Bonne, bonjour", "fr", "variant"),
        ("Gauthier", "Madame Gauthienne", "fr", "near"),
        ("Dumont", "docteur Dumas", "fr", "none"),
        ("orange.example.com", "Uploaded at orange.example.com if that fails", "en", "exact"),
        ("orange.example.com", "write to sam@orange.example.com", "en", "exact"),
        ("sam@orange.example.com", "see orange.example.com", "en", "near"),
    ],
)
def test_how_a_surface_is_found(surface: str, text: str, language: str, how: str) -> None:
    assert find_surface(surface, text, "", language).how == how


def test_the_same_sound_is_not_enough_for_short_or_different_names() -> None:
    assert sound_key("Webber") == sound_key("Weber") == "vbr"
    assert sound_key("Rose") == sound_key("Russo")
    assert find_surface("Rose", "Mr Russo left", "", "en").how == "near"
    assert find_surface("Lee", "Leo left", "", "en").how == "near"


def test_realised_and_absent() -> None:
    match = match_intention(
        "Smith", "Webber", "hi doctor Webber", "Hi Dr. Weber.", "Hi Dr. Weber.", "en"
    )
    assert (match.replacement_status, match.original_status) == ("realised", "absent")
    assert match.replacement_evidence == "weber"


def test_the_first_of_two_is_replaced_and_the_second_stays() -> None:
    planned = "Marjorie is here, I said Doris."
    match = match_intention("Doris", "Marjorie", planned, planned, planned, "en")
    assert match.replacement_status == "realised"
    assert match.original_status == "retained"
    assert match.planned_text_holds_original


def test_a_residue_is_uncertain_and_not_planned() -> None:
    heard = "bonjour madame Petyk"
    match = match_intention("Petit", "Lambert", "bonjour madame Lambert", heard, heard, "fr")
    assert (match.replacement_status, match.original_status) == ("not_realised", "uncertain")
    assert not match.planned_text_holds_original


def test_words_that_the_planned_text_explains_are_no_near_misses() -> None:
    planned = "Anna and Beth went to the mart"
    match = match_intention("Martha", "Beth", planned, planned, planned, "en")
    assert match.original_status == "absent"


def test_a_garbled_replacement_is_not_taken_for_the_original() -> None:
    # "Holly" resembles both; it is nearer to the replacement than to the original.
    match = match_intention("Kelly", "Hollis", "see Hollis", "see Holly", "see Holly", "en")
    assert match.original_status == "absent"


def test_the_original_counts_anywhere_and_the_replacement_only_in_its_place() -> None:
    match = match_intention(
        "Smith", "Webber", "hello Webber. bye now", "hello Weaver", "hello Weaver. bye Smith", "en"
    )
    assert match.original_status == "retained"
    assert match.replacement_status != "realised"
