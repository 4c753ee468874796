"""Dates with a day or a month, and ages of 90 and over, written or spoken.

Bare years, lone weekdays and durations are not dates under the contract.

Functions: :func:`dates_found`, :func:`ages_found`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from aegis.canonical import canonical
from aegis.recognise_numbers import AFTER_UNIT, BIRTH, NUMBER_WORDS, asked_for
from aegis.recognisers import FLAGS, Found, View
from aegis.spoken_tokens import months

_DAY_WORDS = (
    "first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth"
    "|eleventh|twelfth|thirteenth|fourteenth|fifteenth"
    "|sixteenth|seventeenth|eighteenth|nineteenth|twentieth|thirtieth"
)
UNIT_WORDS = "one|two|three|four|five|six|seven|eight|nine"
_TEEN_WORDS = "ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen"
_TEN_WORDS = "twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"


@lru_cache(maxsize=2)
def _date_parts(language: str) -> dict[str, str]:
    names = sorted(months(language), key=len, reverse=True)
    month = r"(?:" + "|".join(map(re.escape, names)) + r")(?![\w])\.?"
    if language == "en":
        ordinal = (
            rf"(?:(?:twenty|thirty)[\s-]+(?:first|second|third|fourth|fifth|sixth"
            rf"|seventh|eighth|ninth)|{_DAY_WORDS})"
        )
        cardinal = rf"(?:(?:twenty|thirty)(?:[\s-]+(?:{UNIT_WORDS}))?|{_TEEN_WORDS}|{UNIT_WORDS})"
        below = (
            rf"(?:(?:{_TEN_WORDS})(?:[\s-]+(?:{UNIT_WORDS}))?|{_TEEN_WORDS}"
            rf"|(?:oh|o|zero)[\s-]+(?:{UNIT_WORDS}))"
        )
        year = (
            rf"(?:'?(?:1[89]|20)\d\d(?!\d)|'\d\d(?!\d)|(?:nineteen|twenty|eighteen)(?:[\s-]+"
            rf"|,\s+)(?:hundred(?: and)?\s+)?{below}"
            rf"|two thousand(?:\s+(?:and\s+)?(?:{_TEEN_WORDS}"
            rf"|(?:twenty|thirty)(?:[\s-]+(?:{UNIT_WORDS}"
            rf"))?|{UNIT_WORDS}))?|(?:20|19)\s\d\d(?!\d))"
        )
        short = rf"(?:\d\d(?![\d:]|\s*(?:{AFTER_UNIT.pattern}))|{below})"
        day = rf"(?:(?:0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?(?![\d:])|{ordinal}|{cardinal})"
    else:
        ten = (
            "vingt|trente|quarante|cinquante|soixante|septante|quatre[\\s-]vingts?"
            "|nonante|huitante"
        )
        unit = "un|une|deux|trois|quatre|cinq|six|sept|huit|neuf"
        teen = "dix[\\s-](?:sept|huit|neuf)|dix|onze|douze|treize|quatorze|quinze|seize"
        below = rf"(?:(?:{ten})(?:[\s-]+(?:et[\s-]+)?(?:{teen}|{unit}))?|{teen}|{unit})"
        year = (
            rf"(?:(?:1[89]|20)\d\d(?!\d)|(?:mille neuf cent|dix[\s-]neuf cent)s?(?:[\s-]+{below}"
            rf")?|deux mille(?:\s+{below})?)"
        )
        short = rf"(?:\d\d(?![\d:])|{below})"
        day = (
            rf"(?:(?:0?[1-9]|[12]\d|3[01])(?:er)?(?![\d:])|premier|(?:vingt|trente)(?:[\s-]+"
            rf"(?:et[\s-]+)?(?:{unit}))?|{teen}|{unit})"
        )
    return {"month": month, "day": day, "year": year, "short": short}


def ordinal_words() -> str:
    """A pattern of English ordinals from first to thirty-first."""
    units = "first|second|third|fourth|fifth|sixth|seventh|eighth|ninth"
    return rf"(?:(?:twenty|thirty)[\s-]+(?:{units})|{_DAY_WORDS})"


@lru_cache(maxsize=2)
def _date_patterns(language: str) -> list[tuple[re.Pattern[str], float]]:
    p = _date_parts(language)
    month, day, year, short = p["month"], p["day"], p["year"], p["short"]
    comma = r"\s*[,-]?\s*(?:in |of |the year )?"
    tail = rf"(?:{comma}(?:{year}|{short}))?"
    patterns = [rf"(?<![\w-]){day}\s*[-/]?\s*(?:of\s+)?(?:the month of\s+)?{month}{tail}(?!\w)"]
    if language == "en":
        patterns.append(rf"(?<!\w){month}\s*[,-]?\s*(?:the\s+)?{day}(?![\w%]|\.\d){tail}(?!\w)")
        nth = rf"(?:{_DAY_WORDS}|\d{{1,2}}(?:st|nd|rd|th))"
        patterns.append(rf"(?<![\w-]){day}\s+of\s+the\s+{nth}{tail}(?!\w)")
        weekday = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
        patterns.append(
            rf"(?<!\w){weekday},?\s+the\s+(?:\d{{1,2}}(?:st|nd|rd|th)|{ordinal_words()})(?!\w)"
        )
        patterns.append(r"(?<=on the )\d{1,2}(?:st|nd|rd|th)(?=\s*(?:[.,?!]|$))")
    patterns.append(rf"(?<!\w){month}\s*(?:,|of)?\s*{year}(?!\w)")
    numeric = (
        r"(?<![\w./-])(?:\d{4}([-/.])\d{1,2}\1\d{1,2}|(?:0?[1-9]|[12]\d|3[01])([-/.])(?:0?[1-9]"
        r"|[12]\d|3[01])\2(?:\d{4}|\d{2}))(?![\w/-]|\.\d)"
    )
    return [(re.compile(x, FLAGS), 0.97 if x == numeric else 0.96) for x in [*patterns, numeric]]


_LONE_MONTH = {
    "en": (
        r"(?:\b(?:in|since|last|next|until|till|by|from|during|of|early"
        r"|late|mid|this|before|after|around|back in|to|through|between"
        r"|and)[\s-]+)(MONTH)(?![\w'])"
    ),
    "fr": (
        r"(?:\b(?:en|depuis|jusqu'en|fin|début|mi|de|d'|mois de|mois d'"
        r"|avant|après|courant|vers)[\s-]*)(MONTH)(?![\w'])"
    ),
}
_SPOKEN_NUMERIC = {
    "en": r"(?:\d{1,2}|NUM)(?:[\s,/.-]+(?:the\s+)?(?:\d{1,4}|NUM)){2,7}",
    "fr": r"(?:\d{1,2}|NUM)(?:[\s,/.-]+(?:\d{1,4}|NUM)){2,9}",
}


def dates_found(views: Sequence[View], language: str) -> Iterator[Found]:
    """Dates with a day or a month: written, spoken, numeric after a question about a date."""
    for view in views:
        for pattern, score in _date_patterns(language):
            for match in pattern.finditer(view.text):
                if not _month_is_verb(view, match, language):
                    end = match.end()
                    while view.text[end - 1] in " .,":
                        end -= 1
                    yield Found(view.index, match.start(), end, "DATE", "date", score)
        yield from _ranges(view, language)
        yield from _lone_months(view, language)
        yield from _asked_dates(views, view, language)


def _ranges(view: View, language: str) -> Iterator[Found]:
    """``du 5 au 9 octobre``, ``from the fifth to the ninth of October``: both days in one span."""
    p = _date_parts(language)
    day, month = p["day"], p["month"]
    year = rf"(?:\s*,?\s*(?:of |in )?{p['year']})?(?!\w)"
    if language == "fr":
        pattern = (
            rf"\b(?:du|entre le|le)\s+({day})\s+(?:au|et le|ou le|et(?=\s+\d))"
            rf"\s+{day}\s+{month}{year}"
        )
    else:
        nth = rf"(?:{ordinal_words()}|\d{{1,2}}(?:st|nd|rd|th))"
        pattern = (
            rf"\b(?:from|between|on)?\s*the\s+({nth})\s+(?:to|until|till|and|or|through)\s+(?:the\s+)?"
            rf"{day}\s+(?:of\s+)?{month}{year}"
        )
    for match in re.finditer(pattern, view.text, FLAGS):
        yield Found(view.index, match.start(1), match.end(), "DATE", "date", 0.97)


def _month_is_verb(view: View, match: re.Match[str], language: str) -> bool:
    """``you may 3 times``, ``march 2 miles``, ``mars`` the planet: not a date."""
    raw = match.group().casefold()
    if language != "en" or not re.match(r"(?:may|march|second|mar)\b", raw):
        return False
    cased = view.cased and view.text[match.start()].islower()
    unit = AFTER_UNIT.match(view.text[match.end() :])
    subject = re.search(
        r"\b(?:i|you|we|they|he|she|it|that|this|which|who)\s+$", view.text[: match.start()], FLAGS
    )
    return bool(unit or subject or (cased and raw.startswith(("may", "march", "mar"))))


def _lone_months(view: View, language: str) -> Iterator[Found]:
    names = [
        n
        for n in months(language)
        if len(n) > 4 or n in ("june", "july", "juin", "mars", "août", "mai")
    ]
    if language == "en":
        names += ["may"]
    pattern = _LONE_MONTH[language].replace(
        "MONTH", "|".join(sorted(names, key=len, reverse=True))
    )
    for match in re.finditer(pattern, view.text, FLAGS):
        word = match[1]
        ambiguous = word.casefold() in ("may", "march", "august", "mars")
        cue = match.group().casefold().split()[0]
        weak = cue in (
            "to",
            "and",
            "through",
            "between",
            "this",
            "of",
            "by",
            "after",
            "before",
            "de",
            "d'",
        )
        if ambiguous and (weak or (view.cased and word.islower() and language == "en")):
            continue
        if weak and view.cased and language == "en" and word.islower():
            continue
        yield Found(view.index, match.start(1), match.end(1), "DATE", "month", 0.7)


def _asked_dates(views: Sequence[View], view: View, language: str) -> Iterator[Found]:
    """``oh three, oh five, sixty two`` after a question about a date or after "born"."""
    asked = asked_for(views, view.index, language) == "DATE"
    pattern = _SPOKEN_NUMERIC[language].replace("NUM", f"(?:{NUMBER_WORDS[language]})")
    for match in re.finditer(rf"(?<![\w/.]){pattern}(?![\w/])", view.text, FLAGS):
        told = re.search(
            rf"(?:{BIRTH[language]})\W+(?:\w+\W+){{0,3}}$", view.text[: match.start()], FLAGS
        )
        value = re.sub(r"\D", "", canonical(match.group(), language))
        if (
            (asked or told)
            and 4 <= len(value) <= 8
            and not AFTER_UNIT.match(view.text[match.end() :])
        ):
            yield Found(view.index, match.start(), match.end(), "DATE", "asked date", 0.97)


_OLD = {
    "en": (
        r"(?:9\d|1[01]\d)|ninety(?:[\s-]+(?:UNIT))?|(?:a|one)\s+hundred(?:\s+(?:and\s+"
        r")?(?:UNIT|ten|eleven|twelve))?"
    ),
    "fr": r"(?:9\d|1[01]\d)|quatre[\s-]vingts?[\s-](?:dix(?:[\s-](?:sept|huit"
    r"|neuf))?|onze|douze|treize|quatorze|quinze|seize)"
    r"|nonante(?:[\s-](?:et[\s-])?(?:UNIT))?|cent(?:\s+(?:UNIT))?",
}


@lru_cache(maxsize=2)
def _old(language: str) -> str:
    unit = UNIT_WORDS if language == "en" else "un|deux|trois|quatre|cinq|six|sept|huit|neuf"
    return _OLD[language].replace("UNIT", unit)


_AGE_BEFORE = {
    "en": r"(?:\baged?|\bage of|\bi'm|\bi am|\b(?:s?he|who)(?:'s| is| was)"
    r"|\bturn(?:ed|ing|s)?|\bi was|\b(?:i|s?he|they)'ll be|\bwill be"
    r"|\bwould be"
    r"|\bto be|\b(?:died|passed(?: away)?|dead) (?:at|aged?)|\blived"
    r" to(?: be)?|\breach(?:ed|ing)|\bpushing|\b(?:mother|father|mum"
    r"|mom|dad|grandma|grandmother|grandfather|grandpa|husband|wife"
    r"|patient|aunt|uncle)(?:'s| is| was))"
    r"(?:\s+(?:now|about|almost|nearly|already|only|just|still))?\s+",
    "fr": r"(?:\bâgée?s? de|\bà l'âge de|\bâge de)\s+",
}
_AGE_AFTER = {
    "en": r"[\s-]*(?:years?[\s-]+(?:old|of age)|year[\s-]olds?|yrs?\.?(?: old)?|y/?o\b|yo\b)",
    "fr": r"[\s-]*ans\b",
}


def ages_found(views: Sequence[View], language: str) -> Iterator[Found]:
    """Ages of 90 and over, by what stands around the number or by a question."""
    number = rf"(?<![\w./-])({_old(language)})(?![\w%/]|[.,]\d)"
    after = re.compile(number + f"(?={_AGE_AFTER[language]})", FLAGS)
    before = re.compile(_AGE_BEFORE[language] + number, FLAGS)
    for view in views:
        for match in after.finditer(view.text):
            duration = re.search(
                r"\b(?:for|over|past|last|depuis|pendant|il y a|dans)\s+$",
                view.text[: match.start()],
                FLAGS,
            )
            if not duration or "old" in view.text[match.end() : match.end() + 12]:
                yield Found(view.index, match.start(1), match.end(1), "AGE", "age", 0.95)
        for match in before.finditer(view.text):
            if not AFTER_UNIT.match(view.text[match.end() :]):
                yield Found(view.index, match.start(1), match.end(1), "AGE", "age", 0.9)
        if asked_for(views, view.index, language) == "AGE":
            for match in re.finditer(number, view.text, FLAGS):
                if not re.match(
                    r"\s*(?:%|percent|mg|over|kilo|pound)", view.text[match.end() :], FLAGS
                ):
                    yield Found(
                        view.index, match.start(1), match.end(1), "AGE", "age question", 0.9
                    )
