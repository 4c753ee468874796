"""Recognisers of identifiers in spoken, heard and written forms, with context over turns.

Unit: one conversation as a list of :class:`View` (one per turn, text with plain
apostrophes and spaces, same length as the original). Each recogniser yields
:class:`Found` spans: characters ``[start, end)`` of one view's text, a category,
the recogniser's name and a score in [0, 1]. Spans may overlap; the detector
decides. Languages: ``en`` and ``fr``.

Functions: :func:`numbers_found`, :func:`dates_found`, :func:`ages_found`,
:func:`addresses_found`, :func:`places_found`, :func:`names_found`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from aegis.canonical import canonical, months
from aegis.lexicon import NICKNAME_FORMS, cities, first_names, institutions, last_names, places

FLAGS = re.IGNORECASE
IsCommon = Callable[[str], bool]


@dataclass(frozen=True)
class View:
    """One turn as the recognisers see it; ``cased`` says whether capitals carry meaning."""

    index: int
    speaker: str
    text: str
    cased: bool = True


@dataclass(frozen=True)
class Found:
    """A candidate: characters ``[start, end)`` of view ``index``."""

    index: int
    start: int
    end: int
    category: str
    source: str
    score: float = 1.0


# --- numbers -------------------------------------------------------------------------------

_NUMBER_WORDS = {
    "en": "zero|oh|o|nought|naught|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
    "|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen|twenty|thirty|forty|fourty"
    "|fifty|sixty|seventy|eighty|ninety|hundred|thousand",
    "fr": "zéro|zero|un|une|deux|trois|quatre|cinq|six|sept|huit|neuf|dix|onze|douze|treize|quatorze"
    "|quinze|seize|vingts?|trente|quarante|cinquante|soixante|septante|huitante|octante|nonante"
    "|cents?|mille",
}
_AFTER_UNIT = re.compile(
    r"\s*(?:-\s?)?(?:%|percent|per cent|pour cent|mg|mcg|milli\w*|micro\w*|kilo\w*|kg|grams?|grammes?|g\b|ml"
    r"|cc\b|cm|mm|litres?|liters?|units?|unités?|days?|weeks?|months?|years?|hours?|minutes?|seconds?"
    r"|times?\b|tablets?|pills?|puffs?|drops?|doses?|degrees?|pounds?|lbs?\b|stone|feet|foot|inches"
    r"|jours?|semaines?|mois|ans?\b|années?|heures?|secondes?|fois|comprimés?|gouttes?|gélules?"
    r"|degrés?|sachets?|bouffées?|beats|bpm|mmhg|over\b|sur\b|mètres?|meters?|metres?|miles?|euros?"
    r"|dollars?|cigarettes?|packs?|paquets?|verres?|people|of them|o'clock|am\b|pm\b|a\.m|p\.m"
    r"|year-old|yo\b|y/o)",
    FLAGS,
)


_NOT_PREFIX = (
    r"(?:MRN|NHS|BP|ID|DOB|SSN|ZIP|VIN|HR|PIN|NPI|DEA|GMC|TSH|LDL|HDL|BMI|NO|PO|AM|PM|OF|IN|AT|IS|TO|OR|AND|THE|ON|US|UK|SAT"
    r"|SATS|SPO|TEL|FAX|EXT|IP|EMR|MR|RR|GCS|INR|PSA|CRP|WBC|HB|EF|FEV|IPP|NIR|RPPS|TA|SAMU|COVID|ABOUT|FOR|HAD|WAS)\b"
)


@lru_cache(maxsize=2)
def _run_pattern(language: str) -> re.Pattern[str]:
    number = rf"(?:{_NUMBER_WORDS[language]})(?![\w'])"
    piece = (
        rf"(?:(?-i:(?!{_NOT_PREFIX})[A-Z]{{2,4}})\s(?=\d)\d[\dA-Za-z]*|(?-i:(?!{_NOT_PREFIX})[A-Z]{{2,4}})(?=\s(?:dash|hyphen|tiret)\s)|(?:[A-Za-z]{{1,6}}[-–]){{1,2}}\d[\dA-Za-z]*|[A-Za-z]{{0,4}}\d[\dA-Za-z]*(?:-[A-Z]{{1,4}}(?![\w'-]))?|{number}|(?:double|triple|treble)\s+(?:{number}|\w(?!\w))"
        r"|[A-Za-z](?![\w'])(?:\s+(?:as in|for|like|comme)\s+[A-Za-z]{3,})?)"
    )
    and_ = "and" if language == "en" else "et"
    link = rf"(?:\s*[-–,./]\s*|\.{{3}}\s*|\s+(?:{and_}|dash|hyphen|tiret|slash|space)\s+|\s*[()]\s*|\s+)"
    return re.compile(rf"(?<![\w@])[+(#]?{piece}(?:{link}{piece})*(?![\w@])", FLAGS)


@dataclass(frozen=True)
class Run:
    """A stretch of numbers and letters: its canonical characters and how it was said."""

    start: int
    end: int
    value: str
    singles: int
    """How many of its parts are one digit or one letter."""

    @property
    def digits(self) -> int:
        return sum(c.isdigit() for c in self.value)


def number_runs(text: str, language: str) -> list[Run]:
    """Runs of digits, number words and spelled letters that hold at least one digit."""
    runs = []
    for match in _run_pattern(language).finditer(text):
        start, end = _trimmed(text, match.start(), match.end(), language)
        if end <= start:
            continue
        raw = text[start:end]
        value = re.sub(r"[^a-z0-9]", "", canonical(raw, language))
        if any(c.isdigit() for c in value):
            parts = re.findall(r"[\w']+", raw)
            singles = sum(_is_single(part, language) for part in parts)
            runs.append(Run(start, end, value, singles))
    return runs


def _is_single(part: str, language: str) -> bool:
    if len(part) == 1:
        return True
    value = canonical(part, language)
    return len(value) == 1 and value.isdigit() or part.casefold() == "oh"


_EDGE_WORDS = {"en": {"a", "i", "o", "and", "s", "t"}, "fr": {"a", "y", "à", "un", "une", "et", "l", "d", "c", "s", "j", "n", "m", "t", "qu"}}  # fmt: skip


def _trimmed(text: str, start: int, end: int, language: str) -> tuple[int, int]:
    """Cut articles and links from the edges of a run."""
    edge = _EDGE_WORDS[language]
    while True:
        first = re.match(r"[\s,.\-/(]*(\w+)?[\s,.\-/()]*", text[start:end])
        word = (first[1] or "") if first else ""
        rest = text[start + (first.end() if first else 0) : end]
        spelled = re.match(r"[A-Za-z\d](?!\w)", rest) is not None or rest[:1].isdigit()
        if word.casefold() in edge and not (spelled and word.isupper() and word != "I"):
            start += first.end() if first else 0
            if start >= end:
                return start, start
            continue
        break
    while end > start and text[end - 1] in " ,.-/(":
        end -= 1
    while start < end and text[start] in " ,.-/":
        start += 1
    last = re.search(r"[\s,.\-]+([A-Za-z])$", text[start:end])
    stray = last is not None and re.search(r"\d{3}\W+[a-z]$", text[start:end]) is not None
    if last and (last[1].casefold() in edge or stray) and not last[1].isupper():
        end = start + last.start()
    last = re.search(r"[\s,.\-]+(?:and|et|o|oh|a|I)$", text[start:end])
    if last and last.group().strip(" ,.-").casefold() not in ("o", "oh"):
        end = start + last.start()
    return start, end


_NUM = r"(?:\s*(?:number|no\.?|num|#|id|code|identifier))?"
_LABELS: dict[str, list[tuple[str, str]]] = {
    "en": [
        ("FAX", r"fax"),
        ("SSN", r"social security|\bssn\b|\bsocial\b(?= is|:)|national insurance"),
        ("VEHICLE", r"licen[cs]e plate|number plate|\bplates?\b|\bvin\b|vehicle|\breg(?:istration)?\b(?: number)?|\bmy car\b"),
        ("DEVICE", r"serial|device|pacemaker\b|implant\w*|\bpump\b|\budi\b|defibrillator|hearing aid|prosthesis|glucose monitor|\bicd\b"),
        ("MRN", r"medical record|\bmrn\b|\bmr ?#|record (?:number|no\b|#|id)|\brecords? is\b|chart (?:number|no\b|#|id)|hospital number"
                r"|\bemr\b|med\.? ?rec\w*\.?|patient (?:number|id|identifier|no\b|#)|\bnhs (?:number|no\b)|\bfile number|case file|\bchart\b|(?:her|his|my|your|the) record\b|\bpatient #"),
        ("HEALTH_PLAN", r"health plan|\bplan (?:number|id|no)|\bmember(?:ship)?\b(?: number| id| no| #)?|polic(?:y|ies)|\binsurance\b|beneficiary|medicare"
                        r"|medicaid|subscriber|group number|\bhp?bn?\b|\bhpn\b|\binsur\w*|\bins\b|\bhic?n?\b(?=[ #:])|\bhealth card|\bcoverage id|\bplan\b(?=:| #| id)"),
        ("ACCOUNT", r"account|\bacct\b|\biban\b|credit card|debit card|\bcard number|invoice|\bbill(?:ing)?\b|routing|sort code|bank"),
        ("LICENSE", r"licen[cs]e|certificate|\bdea\b|\bnpi\b|\bgmc\b|passport|permit"),
        ("BIOMETRIC", r"fingerprint|voice ?print|retina|iris scan|face ?id\b|biometric"),
        ("IP", r"\bip address"),
        ("PHONE", r"phone|mobile|\bcell\b(?! count| blood|s\b)|telephone|\bcall (?:me|us|him|her|them)\b|\bcall back|call(?:ed)? (?:on|at)\b|reach (?:me|us|him|her|you)"
                  r"|ring (?:me|us|him|her)|\btext (?:me|us|him|her)\b|\bcontact\b|landline|pager|extension|\bring\b|\bdial\b|\btel\b|\bcall\b"),
        ("LOCATION", r"\bzip\b|postcode|post code|postal code|(?<!mail )(?<!ip )\baddress\b|where (?:do|are) you liv\w+"),
        ("UNIQUE_ID", r"\bid\b|identifier|identification|reference|study (?:number|id)|trial|participant|subject (?:number|id|no)"
                      r"|accession|case (?:number|no|id|#)|order number|specimen|sample|confirmation|tracking|booking|ticket|badge|employee|student|appointment number|\bref\b|voucher"),
    ],
    "fr": [
        ("FAX", r"\bfax\b|télécopie"),
        ("SSN", r"sécurité sociale|\bsécu\b|\bnir\b|numéro ins\b"),
        ("VEHICLE", r"immatricul\w+|\bplaque\b|\bvin\b"),
        ("DEVICE", r"numéro de série|\bsérie\b|\bpacemaker\b|dispositif|défibrillateur|prothèse|pompe à insuline|appareil auditif"),
        ("MRN", r"dossier|\bipp\b|numéro (?:de )?patient|numéro d'hospitalisation|\bnip\b|\bséjour\b"),
        ("HEALTH_PLAN", r"mutuelle|adhérent|contrat|assurance|assuré|police\b|bénéficiaire"),
        ("ACCOUNT", r"\bcompte\b|\biban\b|\brib\b|carte bancaire|carte bleue|facture|banque"),
        ("LICENSE", r"permis|\brpps\b|\badeli\b|passeport|carte d'identité|certificat|licence"),
        ("BIOMETRIC", r"empreinte"),
        ("IP", r"adresse ip"),
        ("PHONE", r"téléphone|\bportable\b|\bmobile\b|\bfixe\b|joindre|rappele[rz]|appele[rz]|contacter|\btél\b|\bnuméro\b(?! de | d')"
                  r"|\bligne\b"),
        ("LOCATION", r"code postal|(?<!mail )\badresse\b(?! mail| ip| e-mail)|où habitez"),
        ("UNIQUE_ID", r"identifiant|référence|\bréf\b|numéro (?:d'étude|de participant|de l'étude|d'inclusion|de prélèvement)|protocole"
                      r"|inclusion|participant|échantillon|badge|\bticket\b|numéro d'ordre|numéro de rendez-vous"),
    ],
}  # fmt: skip
_MINIMUM = {"PHONE": 5, "FAX": 5, "LOCATION": 3, "SSN": 4, "ACCOUNT": 4, "UNIQUE_ID": 3, "IP": 4}
_WEAK = {"PHONE": 7, "ACCOUNT": 4, "MRN": 3}


@lru_cache(maxsize=2)
def _labels(language: str) -> list[tuple[str, re.Pattern[str]]]:
    return [(category, re.compile(pattern, FLAGS)) for category, pattern in _LABELS[language]]


def _nearest_label(text: str, language: str) -> tuple[str, int] | None:
    """The label that ends last in a text and how many characters follow it."""
    found = [
        (match.end(), match.end() - match.start(), -rank, category)
        for rank, (category, pattern) in enumerate(_labels(language))
        for match in pattern.finditer(text)
    ]
    if not found:
        return None
    end, length, _, category = max(found)
    if category in ("UNIQUE_ID", "PHONE", "LICENSE"):  # "insurance ID", "fax number": the specific word wins
        near = [f for f in found if f[3] != "UNIQUE_ID" and f is not found and end - length - 3 <= f[0] <= end]
        category = max(near)[3] if category == "UNIQUE_ID" and near else category
    overlapping = [f for f in found if f[0] - f[1] < end <= f[0] and f[1] > length]
    if overlapping:
        category = max(overlapping, key=lambda f: f[1])[3]
    return category, len(text) - end


_QUESTION = re.compile(r"\?|\b(?:can|could|may|what|which|confirm|give|tell|have you got|do you have|please|quel(?:le)?|pouvez|donnez|"
                       r"est-ce que|c'est quoi|need|take|read|spell|repeat|say)\b", FLAGS)  # fmt: skip
_ACK = re.compile(
    r"^\W*(?:(?:yes|yeah|yep|okay|ok|right|sure|thank you|thanks|m+|hm+|mhm|uh-?huh|go on|and then|and|then|got it|"
    r"carry on|continue|next|so far|perfect|great|good|alright|fine|i'm listening|slowly|please|sorry|"
    r"oui|d'accord|très bien|bien|je note|et ensuite|ensuite|allez-y|je vous écoute|la suite|continuez|et puis|et|parfait|merci|"
    r"go ahead|the rest|what's next|ready)\W*)+$",
    FLAGS,
)


def _digit_share(text: str, runs: Sequence[Run]) -> float:
    """Share of a turn's letters and digits that belong to its runs."""
    total = len(re.findall(r"\w", text))
    return (
        sum(len(re.findall(r"\w", text[r.start : r.end])) for r in runs) / total if total else 0.0
    )


def _asked(views: Sequence[View], index: int, language: str) -> str | None:
    """The category that the turns just before asked for, if this turn may answer."""
    steps = 0
    for j in range(index - 1, max(-1, index - 5), -1):
        text = views[j].text
        if _ACK.match(text):
            continue
        steps += 1
        if views[j].speaker != views[index].speaker and _QUESTION.search(text):
            tail = text[-160:]
            birth = re.search(_BIRTH[language], tail, FLAGS)
            label = _nearest_label(tail, language)
            if birth and (not label or len(tail) - birth.end() <= label[1]):
                return "DATE"
            if re.search(_AGE_ASK[language], tail, FLAGS):
                return "AGE"
            if not label and re.search(r"\bnumber\b|\bnuméro\b", tail, FLAGS):
                return "PHONE"
            return label[0] if label else None
        if steps >= 2:
            return None
    return None


_BIRTH = {
    "en": r"date of birth|birth ?date|birthday|\bdob\b|d\.o\.b|\bborn\b|(?:what|which) (?:date|day)|when (?:was|were|did|is)\b.*",
    "fr": r"date de naissance|né(?:e)? le|\bnaissance\b|anniversaire|(?:à )?quelle date|vous êtes née? quand|quand êtes-vous née?",
}  # fmt: skip
_AGE_ASK = {"en": r"how old|\b(?:your|her|his) age\b", "fr": r"quel âge|votre âge"}


def numbers_found(views: Sequence[View], language: str) -> Iterator[Found]:
    """Telephone, record, account and other numbers, by label, question, form or continuation."""
    last: dict[str, tuple[int, str]] = {}
    runs_of = [number_runs(view.text, language) for view in views]
    for view, runs in zip(views, runs_of, strict=True):
        asked = _asked(views, view.index, language)
        for run in runs:
            found = _classify(view, run, runs, asked, last, views, language)
            if found:
                last[view.speaker] = (view.index, found[0])
                yield Found(view.index, run.start, run.end, found[0], found[1], found[2])


def _classify(
    view: View,
    run: Run,
    runs: Sequence[Run],
    asked: str | None,
    last: dict[str, tuple[int, str]],
    views: Sequence[View],
    language: str,
) -> tuple[str, str, float] | None:
    text, n = view.text, run.digits
    unit = _AFTER_UNIT.match(text[run.end :])
    if n == 0 or (unit and n < 6):
        return None
    before = text[max(0, run.start - 70) : run.start]
    before = re.split(r"[.?!]\s(?=.*\w)", before)[-1] if n < 6 else before
    label = _nearest_label(before, language)
    if label and _label_holds(label, run, before):
        return label[0], "label", 0.95
    if _zip_code(text, run, language):
        return "LOCATION", "postcode", 0.85
    after = re.match(r"[,\s]*(?:is|was|c'est|est|that's|as|for|comme|-)\s+(?:my|the|her|his|your|our|mon|ma|le|la|votre|son|sa)\s+([^.?!]{0,40})", text[run.end :], FLAGS)  # fmt: skip
    if after and n >= 4:
        label = _nearest_label(after[1], language)
        if label:
            return label[0], "label", 0.9
    formed = _by_form(text[run.start : run.end], run, language)
    share = _digit_share(text, runs)
    if (
        asked
        and asked not in ("DATE", "AGE")
        and n >= min(_MINIMUM.get(asked, 3), 4)
        and (n >= 4 or share > 0.4)
        and (asked != "LOCATION" or n in (5, 9))
        and (share > 0.6 or not re.fullmatch(r"(?:19|20)\d\d", run.value))
    ):
        return asked, "question", 0.9
    previous = last.get(view.speaker)
    if previous and n >= 2 and share > 0.5 and _continues(views, previous[0], view.index):
        return previous[1], "continued", 0.85
    return formed


def _zip_code(text: str, run: Run, language: str) -> bool:
    """Five digits beside a town: ``Saint-Herblain, 44800``, ``67200 Strasbourg``, ``Dover, DE 19901``."""
    if run.digits != 5 or not run.value.isdigit():
        return False
    before, after = text[: run.start], text[run.end :]
    if language == "fr":
        town = re.search(r"(?:^|[\s'])[A-ZÀ-Ý][\w'-]+,?\s+(?:dans le\s+)?$", before)
        return town is not None or re.match(r",?\s+(?:à\s+)?[A-ZÀ-Ý][\w'-]+", after) is not None
    return re.search(r",\s+(?:[A-Z]{2}|[A-Z][a-z]+),?\s+$", before) is not None


def _label_holds(label: tuple[str, int], run: Run, before: str) -> bool:
    category, distance = label
    minimum = _MINIMUM.get(category, 3)
    spelled = len(run.value) >= 5 and run.digits >= 2 and category not in ("PHONE", "FAX", "IP")
    if category == "LOCATION" and len(run.value) not in (5, 6, 7, 9):
        return False
    if run.digits < minimum and not spelled:
        return False
    if re.fullmatch(r"(?:19|20)\d\d", run.value) and re.search(r"\b(?:in|since|en|depuis|year|of|de)\s+$", before):
        return False
    if category in ("LOCATION",) and run.digits > 9:
        return False
    gap = before[len(before) - distance :] if distance else ""
    words = len(re.findall(r"\w+", gap))
    return words <= (4 if run.digits < 5 else 9)


def _continues(views: Sequence[View], since: int, index: int) -> bool:
    """Whether only acknowledgements lie between two turns of a speaker."""
    between = views[since + 1 : index]
    return bool(between) and len(between) <= 3 and all(_ACK.match(v.text) for v in between)


def _by_form(raw: str, run: Run, language: str) -> tuple[str, str, float] | None:
    digits = run.value
    if re.search(r"\w[.?!] ", raw):  # numbers over several sentences: counting, not one number
        return None
    if not digits.isdigit():
        if re.fullmatch(r"[a-z]{1,2}\d[a-z\d]?\d[a-z]{2}", digits) and language == "en":
            return "LOCATION", "postcode", 0.9
        if re.fullmatch(r"[a-z]{2}\d{2}[a-z]{3}|[a-z]{2}\d{3}[a-z]{2}", digits):
            return "VEHICLE", "plate", 0.8
        if run.digits >= 5 and len(digits) >= 6:
            return "UNIQUE_ID", "form", 0.6
        return None
    if re.fullmatch(r"\d{3}-\d{2}-\d{4}", raw):
        return "SSN", "form", 0.9
    grouped = re.search(r"\d[\s().-]+\d", raw) is not None
    groups = re.split(r"\s*[,;]\s*|\s+dash\s+", raw)
    sizes = [len(re.sub(r"\D", "", canonical(group, language))) for group in groups]
    if language == "en" and sizes == [3, 2, 4]:
        return "SSN", "form", 0.8
    if language == "fr" and len(digits) in (13, 15) and digits[0] in "12":
        return "SSN", "form", 0.9
    french = language == "fr" and len(digits) == 10 and digits[0] == "0"
    english = language == "en" and (len(digits) == 10 or (len(digits) == 11 and digits[0] in "01"))
    spoken = run.singles >= 4
    if french or (english and (grouped or spoken or digits[0] == "0")):
        return "PHONE", "form", 0.85
    if len(digits) == 7 and (grouped or spoken):
        return "PHONE", "form", 0.75
    if len(digits) >= 15 and len(digits) <= 16 and grouped:
        return "ACCOUNT", "form", 0.7
    if len(digits) >= 7:
        return "UNIQUE_ID", "form", 0.6
    pairs = zip(digits, digits[1:], strict=False)
    counting = all((int(b) - int(a)) % 10 in (1, 9) for a, b in pairs)
    long = len(digits) >= 6 and run.singles >= 5
    return ("UNIQUE_ID", "form", 0.5) if long and not counting else None


# --- dates and ages --------------------------------------------------------------------------

_DAY_WORDS = (
    "first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth|thirteenth|fourteenth|fifteenth"
    "|sixteenth|seventeenth|eighteenth|nineteenth|twentieth|thirtieth"
)
_UNIT_WORDS = "one|two|three|four|five|six|seven|eight|nine"
_TEEN_WORDS = "ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen"
_TEN_WORDS = "twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"


@lru_cache(maxsize=2)
def _date_parts(language: str) -> dict[str, str]:
    names = sorted(months(language), key=len, reverse=True)
    month = r"(?:" + "|".join(map(re.escape, names)) + r")(?![\w])\.?"
    if language == "en":
        ordinal = rf"(?:(?:twenty|thirty)[\s-]+(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth)|{_DAY_WORDS})"
        cardinal = (
            rf"(?:(?:twenty|thirty)(?:[\s-]+(?:{_UNIT_WORDS}))?|{_TEEN_WORDS}|{_UNIT_WORDS})"
        )
        below = rf"(?:(?:{_TEN_WORDS})(?:[\s-]+(?:{_UNIT_WORDS}))?|{_TEEN_WORDS}|(?:oh|o|zero)[\s-]+(?:{_UNIT_WORDS}))"
        year = (
            rf"(?:'?(?:1[89]|20)\d\d(?!\d)|'\d\d(?!\d)|(?:nineteen|twenty|eighteen)(?:[\s-]+|,\s+)(?:hundred(?: and)?\s+)?{below}"
            rf"|two thousand(?:\s+(?:and\s+)?(?:{_TEEN_WORDS}|(?:twenty|thirty)(?:[\s-]+(?:{_UNIT_WORDS}))?|{_UNIT_WORDS}))?|(?:20|19)\s\d\d(?!\d))"
        )
        short = rf"(?:\d\d(?![\d:]|\s*(?:{_AFTER_UNIT.pattern}))|{below})"
        day = rf"(?:(?:0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?(?![\d:])|{ordinal}|{cardinal})"
    else:
        ten = "vingt|trente|quarante|cinquante|soixante|septante|quatre[\\s-]vingts?|nonante|huitante"
        unit = "un|une|deux|trois|quatre|cinq|six|sept|huit|neuf"
        teen = "dix[\\s-](?:sept|huit|neuf)|dix|onze|douze|treize|quatorze|quinze|seize"
        below = rf"(?:(?:{ten})(?:[\s-]+(?:et[\s-]+)?(?:{teen}|{unit}))?|{teen}|{unit})"
        year = rf"(?:(?:1[89]|20)\d\d(?!\d)|(?:mille neuf cent|dix[\s-]neuf cent)s?(?:[\s-]+{below})?|deux mille(?:\s+{below})?)"
        short = rf"(?:\d\d(?![\d:])|{below})"
        day = rf"(?:(?:0?[1-9]|[12]\d|3[01])(?:er)?(?![\d:])|premier|(?:vingt|trente)(?:[\s-]+(?:et[\s-]+)?(?:{unit}))?|{teen}|{unit})"
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
        patterns.append(rf"(?<!\w){weekday},?\s+the\s+(?:\d{{1,2}}(?:st|nd|rd|th)|{ordinal_words()})(?!\w)")
        patterns.append(r"(?<=on the )\d{1,2}(?:st|nd|rd|th)(?=\s*(?:[.,?!]|$))")
    patterns.append(rf"(?<!\w){month}\s*(?:,|of)?\s*{year}(?!\w)")
    numeric = r"(?<![\w./-])(?:\d{4}([-/.])\d{1,2}\1\d{1,2}|(?:0?[1-9]|[12]\d|3[01])([-/.])(?:0?[1-9]|[12]\d|3[01])\2(?:\d{4}|\d{2}))(?![\w/-]|\.\d)"
    return [(re.compile(x, FLAGS), 0.97 if x == numeric else 0.96) for x in [*patterns, numeric]]


_LONE_MONTH = {
    "en": r"(?:\b(?:in|since|last|next|until|till|by|from|during|of|early|late|mid|this|before|after|around|back in|to|through|between|and)[\s-]+)(MONTH)(?![\w'])",
    "fr": r"(?:\b(?:en|depuis|jusqu'en|fin|début|mi|de|d'|mois de|mois d'|avant|après|courant|vers)[\s-]*)(MONTH)(?![\w'])",
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
        yield from _lone_months(view, language)
        yield from _asked_dates(views, view, language)


def _month_is_verb(view: View, match: re.Match[str], language: str) -> bool:
    """``you may 3 times``, ``march 2 miles``, ``mars`` the planet: not a date."""
    raw = match.group().casefold()
    if language != "en" or not re.match(r"(?:may|march|second|mar)\b", raw):
        return False
    cased = view.cased and view.text[match.start()].islower()
    unit = _AFTER_UNIT.match(view.text[match.end() :])
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
    asked = _asked(views, view.index, language) == "DATE"
    pattern = _SPOKEN_NUMERIC[language].replace("NUM", f"(?:{_NUMBER_WORDS[language]})")
    for match in re.finditer(rf"(?<![\w/.]){pattern}(?![\w/])", view.text, FLAGS):
        told = re.search(
            rf"(?:{_BIRTH[language]})\W+(?:\w+\W+){{0,3}}$", view.text[: match.start()], FLAGS
        )
        value = re.sub(r"\D", "", canonical(match.group(), language))
        if (
            (asked or told)
            and 4 <= len(value) <= 8
            and not _AFTER_UNIT.match(view.text[match.end() :])
        ):
            yield Found(view.index, match.start(), match.end(), "DATE", "asked date", 0.97)


_OLD = {
    "en": r"(?:9\d|1[01]\d)|ninety(?:[\s-]+(?:UNIT))?|(?:a|one)\s+hundred(?:\s+(?:and\s+)?(?:UNIT|ten|eleven|twelve))?",
    "fr": r"(?:9\d|1[01]\d)|quatre[\s-]vingts?[\s-](?:dix(?:[\s-](?:sept|huit|neuf))?|onze|douze|treize|quatorze|quinze|seize)"
    r"|nonante(?:[\s-](?:et[\s-])?(?:UNIT))?|cent(?:\s+(?:UNIT))?",
}


@lru_cache(maxsize=2)
def _old(language: str) -> str:
    unit = _UNIT_WORDS if language == "en" else "un|deux|trois|quatre|cinq|six|sept|huit|neuf"
    return _OLD[language].replace("UNIT", unit)


_AGE_BEFORE = {
    "en": r"(?:\baged?|\bage of|\bi'm|\bi am|\b(?:s?he|who)(?:'s| is| was)|\bturn(?:ed|ing|s)?|\bi was|\b(?:i|s?he|they)'ll be|\bwill be|\bwould be"
    r"|\bto be|\b(?:died|passed(?: away)?|dead) (?:at|aged?)|\blived to(?: be)?|\breach(?:ed|ing)|\bpushing|\b(?:mother|father|mum|mom|dad|grandma|grandmother|grandfather|grandpa|husband|wife|patient|aunt|uncle)(?:'s| is| was))"
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
            if not _AFTER_UNIT.match(view.text[match.end() :]):
                yield Found(view.index, match.start(1), match.end(1), "AGE", "age", 0.9)
        if _asked(views, view.index, language) == "AGE":
            for match in re.finditer(number, view.text, FLAGS):
                if not re.match(
                    r"\s*(?:%|percent|mg|over|kilo|pound)", view.text[match.end() :], FLAGS
                ):
                    yield Found(
                        view.index, match.start(1), match.end(1), "AGE", "age question", 0.9
                    )


# --- addresses on a network -------------------------------------------------------------------

_TLD = r"(?:com|org|net|edu|gov|co\.uk|uk|fr|io|health|be|ch|ca|info|eu|us|nhs\.uk|ie|de|co|ai|app|c\s?o\s?m|f\s?r)"
_WRITTEN_EMAIL = re.compile(r"[\w.+-]+\s?@\s?[\w-]+(?:\s?\.\s?[\w-]+)+", FLAGS)
_WRITTEN_URL = re.compile(
    rf"(?:https?://|www\.)[\w.-]+(?:/[\w/.%?=&~-]*\w)?|(?<![\w@.])(?:[a-z][\w-]*\.)+{_TLD}\b(?!@)(?:/[\w/-]*\w)?",
    FLAGS,
)
_IP = re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])")
_SPOKEN_DOMAIN = {
    "en": rf"(?:[\w-]+(?:\s+(?:dash|hyphen)\s+[\w-]+)*)(?:(?:\s+dot\s+|\.)[\w-]+)*(?:\s+dot\s+|\.){_TLD}\b(?:\s+dot\s+uk\b)?",
    "fr": rf"(?:[\w-]+(?:\s+tiret\s+[\w-]+)*)(?:(?:\s+point\s+|\.)[\w-]+)*(?:\s+point\s+|\.){_TLD}\b",
}
_JOIN = r"(?:dot|point|underscore|dash|hyphen|tiret(?: du bas)?|[._-])"
_NOT_LOCAL = set(
    "is it's its or to at email e-mail mail address my her his the that's use write send on just you can me"
    " est c'est adresse mon ma votre courriel à moi sur écrivez and et so uh um euh".split()
)


def addresses_found(views: Sequence[View], language: str) -> Iterator[Found]:
    """E-mail, web and IP addresses, written or spoken."""
    at = {"en": r"(?:at|@)", "fr": r"(?:arobase|arrobase|at|@)"}[language]
    spoken = re.compile(rf"\s+{at}\s+(?!www|w\s?w)({_SPOKEN_DOMAIN[language]})", FLAGS)
    word = {"en": "dot", "fr": "point"}[language]
    url = re.compile(
        rf"(?<![\w@])(?:(?:w\W*w\W*w|double u\W+double u\W+double u|triple w|www)(?:\s+{word}\s+|\W+)"
        rf"[\w-]+(?:(?:\s+{word}\s+|\.)[\w-]+)+|[\w-]+(?:\s+{word}\s+[\w-]+)*\s+{word}\s+{_TLD}\b)(?:\s+slash\s+[\w-]+)*",
        FLAGS,
    )
    ip = re.compile(
        rf"(?<!\w)(?:[\w ]{{1,40}}?\s+{word}\s+){{3}}(?:(?:{_NUMBER_WORDS[language]}|\d+)\s*){{1,3}}",
        FLAGS,
    )
    for view in views:
        text = view.text
        for pattern, category in ((_WRITTEN_EMAIL, "EMAIL"), (_WRITTEN_URL, "URL"), (_IP, "IP")):
            for match in pattern.finditer(text):
                if category != "IP" or not re.search(r"(?:^|\.)0\d", match.group()):
                    yield Found(view.index, match.start(), match.end(), category, "address", 0.99)
        for match in spoken.finditer(text):
            start = _local_start(text, match.start())
            if start < match.start():
                yield Found(view.index, start, match.end(1), "EMAIL", "spoken address", 0.98)
        for match in url.finditer(text):
            yield Found(view.index, match.start(), match.end(), "URL", "spoken address", 0.9)
        for match in ip.finditer(text):
            found = _spoken_ip(text, match, language)
            if found:
                yield Found(view.index, *found, "IP", "spoken address", 0.95)


def _local_start(text: str, end: int) -> int:
    """Where the part before "at" begins: words joined by "dot", letters, digits, names."""
    tokens = list(re.finditer(r"[\w'+-]+(?:\.[\w+-]+)*", text[:end]))
    if not tokens or tokens[-1].group().casefold() in _NOT_LOCAL:
        return end
    start = tokens[-1].start()
    k, loose = len(tokens) - 2, 0
    while k >= 0:
        token = tokens[k].group()
        gap = text[tokens[k].end() : start]
        if re.search(r"[?!:;]|\.\s", gap) or token.casefold() in _NOT_LOCAL:
            break
        joined = re.fullmatch(_JOIN, token, FLAGS) or re.fullmatch(
            _JOIN, tokens[k + 1].group(), FLAGS
        )
        short = (
            len(token) == 1
            or token.isdigit()
            or re.fullmatch("|".join(_NUMBER_WORDS.values()), token, FLAGS)
        )
        if not joined and not short:
            loose += 1
            if loose > 1 or "," in gap:
                break
        start = tokens[k].start()
        k -= 1
    return start


def _spoken_ip(text: str, match: re.Match[str], language: str) -> tuple[int, int] | None:
    """The longest tail of a match that reads as four numbers."""
    end = match.start() + len(match.group().rstrip())
    for token in re.finditer(r"\S+", match.group()):
        start = match.start() + token.start()
        if re.fullmatch(r"(?:\d{1,3}\.){3}\d{1,3}", canonical(text[start:end], language)):
            return start, end
    return None


# --- places ---------------------------------------------------------------------------------

_STREETS_EN = (
    r"street|st|road|rd|lane|ln|avenue|ave|drive|dr|court|ct|close|way|place|pl|crescent|terrace|boulevard|blvd|square|gardens?"
    r"|hill|row|grove|mews|parade|walk|highway|circle|trail|parkway|green|rise|view|loop|alley|quay|wharf"
)
_PLAIN_STREETS = r"street|road|lane|avenue|drive|crescent|boulevard|terrace|close|court|square|gardens|mews|grove"
_FACILITY_EN = (
    r"hospitals?|hosp|clinics?|medical cent(?:er|re)|med(?:ical)?\.? c(?:en)?t(?:e)?r\.?|med|medicine|medical group|medical practice|health cent(?:er|re)|health care|healthcare"
    r"|health(?: system| services?| partners| network)?|surgery|practice|pharmacy|infirmary|hospice|care home|nursing home|retirement (?:home|village)|rehab(?:ilitation)?(?: cent(?:er|re))?"
    r"|cent(?:er|re)|institute|university|college|school|academy|church|general|memorial|methodist|family (?:practice|medicine|clinic)|urgent care|dialysis|labs?|laborator(?:y|ies)|lodge|house|manor|hall|ward|va|facility|office|dental|dentistry|opticians?|optical|physio(?:therapy)?|orthop(?:a)?edics|associates|walk-in cent(?:er|re)|children's home|day cent(?:er|re)|chemist"
)
_STRONG_FACILITY = (
    r"hospitals?|hosp|clinics?|medical cent(?:er|re)|med\.? c(?:en)?te?r\.?|health cent(?:er|re)|infirmary|hospice|care home|nursing home|surgery|practice|pharmacy"
    r"|healthcare|medical group|medical practice|urgent care|school|college|university|academy|rehab(?:ilitation)? cent(?:er|re)|cent(?:er|re)|institute"
)
_FACILITY_FR = (
    r"hôpital|clinique|chu|chr|ehpad|pharmacie|cabinet|maternité|centre hospitalier|centre médical|centre de santé|maison de retraite"
    r"|maison de santé|polyclinique|institut|résidence|lycée|collège|école|université|laboratoire|hospice|foyer|centre de rééducation|centre de dialyse|hôpitaux"
)
_NOT_FACILITY = set(
    "the a an my your his her our their this that at in to from of for and or another any every each some local same new old"
    " general good best private public university community primary health care medical day night walk-in urgent family"
    " main big small nearest other teaching regional county district city state mental emergency outpatient inpatient"
    " eye skin chest heart pain sleep memory fracture breast diabetes asthma foot hearing dental children's women's"
    " cancer surgery surgical nursing high middle primary secondary elementary law nurse medicine doctor's doctors gp"
    " sexual travel student oncology cardiology neurology dermatology rheumatology orthopedic orthopaedic pediatric"
    " paediatric maternity blood vaccine covid flu testing weight ms rehab va hiv psychiatric behavioral physical therapy "
    " senior outreach specialist fertility wound stroke trauma burn transplant infusion allergy ent ob gyn obgyn tb"
    " antenatal prenatal postnatal pre-op preop specialty multidisciplinary tertiary academic rural urban large acute"
    " palliative dialysis imaging radiology research clinical vascular spine joint bone headache epilepsy movement"
    " thyroid kidney renal liver lung pulmonary respiratory cardiac gastroenterology gi endocrine hematology call if what how is are".split()
)


def _cap(view: View, many: str = "{0,3}") -> str:
    """One or more capitalised words (any words where the text has no case)."""
    word = r"[A-ZÀ-Ý][\w'.&À-ÿ-]*" if view.cased else r"[^\W\d][\w'.&-]*"
    return rf"{word}(?:\s+(?:of|and|de|la|le|&|du|des)?\s*{word}){many}" if many else word


def places_found(views: Sequence[View], language: str, is_common: IsCommon) -> Iterator[Found]:
    """Streets, postcodes, towns and facilities."""
    for view in views:
        finders = (
            (_streets_en, _facilities_en) if language == "en" else (_streets_fr, _facilities_fr)
        )
        for finder in finders:
            yield from finder(view, is_common)
        yield from _towns(view, language, is_common)
        if language == "en":
            yield from _postcodes(view)


def _streets_en(view: View, is_common: IsCommon) -> Iterator[Found]:
    number = rf"(?:(?:flat|apartment|apt\.?|unit|suite)\s+[\w]+,?\s+)?(?:\d{{1,5}}[a-z]?|(?:(?:{_NUMBER_WORDS['en']}|and)[\s-]+)*(?:{_NUMBER_WORDS['en']}))(?:\s*[-/]\s*\d+)?,?\s+"
    word = r"(?-i:[A-Z])[\w'.]+" if view.cased else r"[a-z][\w']+"
    suffix = rf"(?:{_STREETS_EN})(?![\w'])\.?"
    tail = r"(?:,?\s+(?:flat|apartment|apt\.?|unit|suite)\s+#?\w+)?"
    pattern = rf"(?<![\w/]){number}((?:{word}\s+){{1,3}})({suffix}){tail}"
    for match in re.finditer(pattern, view.text, FLAGS):
        names = match[1].split()
        if not view.cased and any(_ordinary(w) for w in names):
            continue
        if view.cased and not re.match(_PLAIN_STREETS + r"|[A-Z]", match[2]):
            continue
        yield Found(
            view.index, match.start(), _rstrip(view.text, match.end()), "LOCATION", "street", 0.95
        )
    if view.cased:
        for match in re.finditer(
            rf"(?<!\w)(?:[A-Z][\w'.]+\s+){{1,2}}(?i:{_PLAIN_STREETS}|st\.(?=\s*(?:,|$)))(?!\w)",
            view.text,
        ):
            first = match.group().split()[0]
            if first.casefold() not in _NOT_FACILITY and re.search(
                r"[A-Z]\w*\.?$", match.group().rstrip()
            ):
                yield Found(
                    view.index,
                    match.start(),
                    _rstrip(view.text, match.end()),
                    "LOCATION",
                    "street",
                    0.7,
                )


_ORDINARY = set(
    "minutes minute hours hour days day weeks week months month years year times time or and to of in on the a an per more less"
    " other different long big small good bad little way that this it's was is are were have had right left mg pills tablets"
    " people kids children brothers sisters miles blocks steps flights stairs more or beers drinks cigarettes pounds feet very"
    " out up down back off over from at by for with my your his her our their so if then than but not no yes any some all".split()
)


def _ordinary(word: str) -> bool:
    return word.casefold().strip(".,'") in _ORDINARY


def _rstrip(text: str, end: int) -> int:
    while end > 0 and text[end - 1] in " ,":
        end -= 1
    return end


def _streets_fr(view: View, is_common: IsCommon) -> Iterator[Found]:
    kinds = _STREETS_FR
    number = rf"(?:(?:au\s+)?(?:\d{{1,4}}|(?:(?:{_NUMBER_WORDS['fr']}|et)[\s-]+)*(?:{_NUMBER_WORDS['fr']}))(?:\s*(?:bis|ter))?,?\s+)"
    link = r"(?:(?:de\s+la|de\s+l'|des|du|de|d'|aux?|la|le|les|l')\s*)*"
    name = (
        r"(?:[A-ZÀ-Ý][\w'’À-ÿ-]+|\d+)(?:\s+(?:(?:de|la|le|les|du|des|et|d')\s*)*[A-ZÀ-Ý][\w'’À-ÿ-]+){0,3}"
        if view.cased
        else r"[\w'’À-ÿ-]+"
    )
    for match in re.finditer(
        rf"(?<!\w)({number})?(?:{kinds})\s+{link}(?-i:{name})", view.text, FLAGS
    ):
        start = match.start() + (len("au ") if match.group().casefold().startswith("au ") else 0)
        if not match[1] and not view.cased:
            continue
        if (match[1] and not re.match(r"une?\s", match[1], FLAGS)) or not re.match(
            r"place|cours|route|passage|square|villa", match.group(), FLAGS
        ):
            yield Found(view.index, start, match.end(), "LOCATION", "street", 0.9)


def _facilities_en(view: View, is_common: IsCommon) -> Iterator[Found]:
    text = view.text
    if view.cased:
        word = r"[A-Z][\w'&-]*\.?"
        pattern = rf"(?<![\w'-])((?:{word}\s+)(?:(?:of|and|&|for|the|de)\s+(?={word})|{word}\s+){{0,4}}?)((?i:{_FACILITY_EN})(?![\w'-])(?:\s+(?:{word}\s+)?(?i:{_STRONG_FACILITY})(?!\w))?)"
        for match in re.finditer(pattern, text):
            if _facility_name(match[1], match[2], is_common):
                start = match.start() + _leading(match[1])
                yield Found(view.index, start, match.end(), "LOCATION", "facility", 0.9)
        for match in re.finditer(r"(?<!\w)(?:Children's|Women's) Hospital (?:of )?[A-Z]\w+(?: [A-Z]\w+)?|(?<!\w)(?:County|City) General(?!\w)", text):
            yield Found(view.index, match.start(), match.end(), "LOCATION", "facility", 0.9)
        for match in re.finditer(
            r"(?<!\w)(?:[Ss]t|[Ss]aint|Mt|Mount|Our Lady)\.?\s+(?:of\s+)?[A-Z][a-z]+(?:'s)?(?!\w)",
            text,
        ):
            if re.search(r"\b(?:at|from|to|in|by|of|via)\s+(?:the\s+)?$", text[: match.start()]):
                yield Found(view.index, match.start(), match.end(), "LOCATION", "facility", 0.8)
    else:
        for match in re.finditer(
            rf"(?<!\w)((?:[a-z][\w'.-]*\s+){{1,3}}?)({_STRONG_FACILITY})(?!\w)", text, FLAGS
        ):
            kept = _name_tail(match[1], is_common)
            if kept:
                yield Found(
                    view.index, match.end(1) - len(kept), match.end(), "LOCATION", "facility", 0.75
                )


def _leading(words: str) -> int:
    """Characters of leading words that do not belong to a name ("The", "At")."""
    match = re.match(
        r"(?:(?:The|At|In|From|To|And|My|Our|For|So|Is|If|When|Has|Did|Since|After|Near|Via|Is|Was|With|By|Any)\s+)+",
        words,
    )
    return match.end() if match else 0


def _facility_name(words: str, head: str, is_common: IsCommon) -> bool:
    """Whether the words before a facility noun name it: one of them is no ordinary qualifier."""
    names = [w.casefold().strip(".,") for w in words[_leading(words) :].split()]
    if re.match(_TITLES["en"] + r"\s", words[_leading(words) :], FLAGS):
        return False
    strong = re.fullmatch(_STRONG_FACILITY, head, FLAGS) is not None
    telling = [w for w in names if w not in _NOT_FACILITY and w not in ("of", "&", "for", "de")]
    if names and names[0].removesuffix("'s") in ("children", "women", "county") and len(names) > 1:
        return True
    if not telling:
        return (
            bool(names)
            and strong
            and head[0].isupper()
            and names[-1] in ("general", "county", "city", "central", "university", "memorial")
        )
    if strong or head[0].isupper():
        return True
    return False


def _name_tail(words: str, is_common: IsCommon) -> str:
    """The longest tail of words that are not ordinary, for text without case."""
    parts = re.findall(r"\S+\s+", words)
    kept: list[str] = []
    for part in reversed(parts):
        word = part.strip().casefold()
        if (
            word in _NOT_FACILITY
            or (is_common(word) and not kept)
            or (is_common(word) and word not in first_names("en"))
        ):
            break
        kept.insert(0, part)
    return "".join(kept)


def _facilities_fr(view: View, is_common: IsCommon) -> Iterator[Found]:
    link = r"(?:\s+(?:de\s+la|de\s+l'|des|du|de|d'|la|le|les|saint|sainte))*\s*"
    name = r"[A-ZÀ-Ý][\w'À-ÿ-]+(?:\s+(?:(?:de|la|le|les|du|des|d')\s*)*[A-ZÀ-Ý][\w'À-ÿ-]+){0,3}"
    if view.cased:
        for match in re.finditer(
            rf"(?<!\w)(?i:{_FACILITY_FR})(?i:{link})(?<![^\s'])(?:{name})", view.text
        ):
            yield Found(view.index, match.start(), match.end(), "LOCATION", "facility", 0.9)
    else:
        for match in re.finditer(
            rf"(?<!\w)(?:{_FACILITY_FR}){link}([\w'À-ÿ-]+)", view.text, FLAGS
        ):
            word = match[1].casefold()
            if len(word) > 2 and not is_common(word) or re.search(r"saint", match.group(), FLAGS):
                yield Found(view.index, match.start(), match.end(), "LOCATION", "facility", 0.7)


@lru_cache(maxsize=1)
def _town_pattern() -> re.Pattern[str]:
    terms = sorted(cities() | institutions(), key=len, reverse=True)
    return re.compile(
        r"(?<![\w'-])(?:" + "|".join(re.escape(t) for t in terms) + r")(?![\w-])", FLAGS
    )


_TOWN_CUE = {
    "en": r"\b(?:in|from|to|near|at|of|around|outside|live[sd]?|via|through|visit(?:ed|ing)?|leaving|and|hospital|clinic)\s+(?:downtown\s+|north\s+|south\s+|east\s+|west\s+)?$",
    "fr": r"(?:\b(?:à|de|vers|près de|sur|depuis|habite|par|pour|et|dans|du|au|en)\s+|d')$",
}


_POSTCODE_SAID = (
    r"(?<![\w'])(?:[A-Z]{1,2}|[A-Z][\s,]+[A-Z])[\s,]+(?:\d{1,2}|NUM)[\s,]+(?:\d|NUM)[\s,]*(?:[A-Z]{2}|[A-Z][\s,]+[A-Z])(?![\w'])"
)


_SHORT_WORDS = frozenset("be in to at of on or is it he me my we us so no go do as an am by if up i'm".split())


def _postcodes(view: View) -> Iterator[Found]:
    """British postcodes said with numbers in words: ``SW nineteen, one E Z``."""
    number = rf"(?:(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)[\s-]+(?:{_UNIT_WORDS})|{_NUMBER_WORDS['en']})"
    for match in re.finditer(_POSTCODE_SAID.replace("NUM", number), view.text, FLAGS):
        value = canonical(match.group(), "en").replace(" ", "")
        ends = re.findall(r"[^\W\d_]+", view.text[match.start() : match.end()].casefold())
        if {ends[0], ends[-1]} & _SHORT_WORDS:
            continue
        if re.fullmatch(r"[a-z]{1,2}\d{1,2}[a-z]?\d[a-z]{2}", value) and value[-2:] not in ("mg", "am", "pm", "ml", "kg"):
            yield Found(view.index, match.start(), match.end(), "LOCATION", "postcode", 0.92)


def _towns(view: View, language: str, is_common: IsCommon) -> Iterator[Found]:
    text = view.text
    for match in _town_pattern().finditer(text):
        word = match.group().casefold()
        if (
            view.cased
            and not match.group()[0].isupper()
            and not match.group()[:3] in ("the", "la ")
        ):
            continue
        cue = re.search(_TOWN_CUE[language], text[: match.start()], FLAGS)
        risky = (
            is_common(word)
            or word in first_names(language)
            or word in last_names(language)
            or word in ("reading", "nice", "gap", "mesa", "chester", "lincoln")
        )
        if (
            not risky
            or (cue and view.cased)
            or re.match(r"\s+(?:branch|office|area|clinic|facility|campus|site)\b", text[match.end() :])
            or (
                cue
                and re.search(
                    r"\b(?:live[sd]?|moved|habite\w*|born|grew up)\b", text[: match.start()], FLAGS
                )
            )
        ):
            yield Found(view.index, match.start(), match.end(), "LOCATION", "town", 0.85)
    yield from _named_places(view, language, is_common)
    cue = {
        "en": r"\b(?:(?:i'm|we're|they're|he's|she's) in\s+|(?:live[sd]?|living|moved|grew up|born|resid(?:es?|ing)|staying|based|travel(?:led|ed)?|drove|flew|home)\s+(?:over\s+|back\s+|out\s+)?(?:in|to|from|near|at)\s+)",
        "fr": r"\b(?:habit\w+|vi[st]\w*|née?|résid\w+|déménag\w+|réside\w*|logée?|viens|venue?|demeurant)\s+(?:(?:à|près de|vers|de)\s+|d')",
    }[language]
    name = (
        r"((?-i:[A-ZÀ-Ý])[\w'À-ÿ-]+(?:[\s-]+(?-i:[A-ZÀ-Ý])[\w'À-ÿ-]+){0,2})"
        if view.cased
        else r"([^\W\d][\w'-]{3,})"
    )
    for match in re.finditer(cue + name, text, FLAGS):
        word = match[1].casefold()
        if word not in places() and (view.cased or not is_common(word)):
            yield Found(view.index, match.start(1), match.end(1), "LOCATION", "town", 0.8)


_LANDMARKS = (
    r"Park|Hill|Bridge|Station|Common|Beach|Lake|Forest|Mall|Market|Airport|Stadium|Island|Valley"
    r"|Heights|Village|Estate|Farm|Woods|County|Town|City|Square|Harbour|Harbor|Bay|Castle|Abbey"
)


def _named_places(view: View, language: str, is_common: IsCommon) -> Iterator[Found]:
    """Places that only their surroundings give away: "at X", "near Y Park", "à X", after a street."""
    if not view.cased:
        return
    word = r"[A-ZÀ-Ý][\w'À-ÿ-]+"
    finder = _named_places_en if language == "en" else _named_places_fr
    yield from finder(view, word, is_common)
    kinds = _STREETS_EN if language == "en" else _STREETS_FR
    after = (
        rf"\b(?i:{kinds})\b\.?,?\s+(?:in\s+|near\s+)?({word}(?:\s+{word})?)(?!\w)"
        if language == "en"
        else rf"\b(?:{kinds})\b[^.?!]{{3,30}}?,?\s+(?:à\s+)({word})(?!\w)"
    )
    for match in re.finditer(after, view.text):
        first = match[1].split()[0].casefold()
        if first not in _NOT_NAMES and first not in places() and match[1].casefold() not in places():
            yield Found(view.index, match.start(1), match.end(1), "LOCATION", "after street", 0.84)


def _named_places_en(view: View, word: str, is_common: IsCommon) -> Iterator[Found]:
    text = view.text
    near = r"\b(?:near|at|in|by|to|from|around|on|of|outside)\s+(?:the\s+)?"
    for match in re.finditer(rf"{near}({word}(?:\s+{word})?\s+(?:{_LANDMARKS}))(?!\w)", text):
        if match[1].split()[0].casefold() not in _NOT_FACILITY:
            yield Found(view.index, match.start(1), match.end(1), "LOCATION", "landmark", 0.85)
    for match in re.finditer(rf"\b(?:at|to|from|in)\s+the\s+(Royal\s+{word})(?!\w)", text):
        yield Found(view.index, match.start(1), match.end(1), "LOCATION", "facility", 0.85)
    treated = r"(?:put in|seen|treated|admitted|operated|surgery|operation|stayed|stay|inpatient|ward|born|work\w*|trained|scan|mri|clinic|referred|appointment|transferred|was|were|been)"
    for match in re.finditer(rf"\b{treated}\b[^.?!]{{0,25}}?\b(?:at|to|in)\s+the\s+({word}(?:\s+{word}){{0,2}})(?!\w)", text):
        words = match[1].casefold().split()
        if not match[1].isupper() and not all(w in _NOT_FACILITY or w in places() for w in words) and match[1].casefold() not in places() and len(words) > 1:
            yield Found(view.index, match.start(1), match.end(1), "LOCATION", "facility", 0.82)
    for match in re.finditer(rf"\bat\s+({word}(?:\s+{word}){{0,2}})(?!\w)", text):
        if _unknown_place(match[1], is_common):
            yield Found(view.index, match.start(1), match.end(1), "LOCATION", "at", 0.8)


_STREETS_FR = (
    r"rue|avenue|boulevard|place|chemin|impasse|allées?|quai|route|square|cours|passage|résidence"
    r"|lotissement|faubourg|villa"
)


def _named_places_fr(view: View, word: str, is_common: IsCommon) -> Iterator[Found]:
    bodies = "équipe|hôpital|ville|urgences|gare|pompiers|centre|smur|mairie|région|commune|village"
    cue = rf"(?<!\w)(?:à|vers|près de|(?:{bodies}) de|(?:{bodies}) d')\s*"
    name = rf"({word}(?:-(?:\w+-)*{word})?)(?!\w)"
    for match in re.finditer(cue + name, view.text):
        if _unknown_place(match[1], is_common):
            yield Found(view.index, match.start(1), match.end(1), "LOCATION", "at", 0.82)


def _unknown_place(name: str, is_common: IsCommon) -> bool:
    """Whether capitalised words are no ordinary words, no country and no given names."""
    words = [w.casefold() for w in re.findall(r"[^\W\d_][\w'-]*", name)]
    if name.casefold() in places() or words[0] in places() or words[0] in _NOT_NAMES:
        return False
    people = all(w in first_names("en") or w in first_names("fr") for w in words)
    if len(words) > 1 and not people and not any(w in _NOT_NAMES for w in words):
        return not name.isupper()
    return not people and not is_common(words[0]) and not name.isupper()


# --- names ----------------------------------------------------------------------------------

_TITLES = {
    "en": r"(?:mr|mrs|ms|miss|mister|missus|mx|dr|doctor|doc|nurse|prof|professor|sir|madam|sister|father|reverend|rev|auntie|aunt|uncle|captain|sergeant|officer|matron|midwife)\.?",
    "fr": r"(?:m\.|mr\.?|mme|mlle|monsieur|madame|mademoiselle|docteur|dr\.?|professeur|pr\.?|maître|infirmière|infirmier|tante|tonton|oncle)",
}
_CUES = {
    "en": r"(?:my (?:full |first |last |maiden |family )?name is|my name's|name is|(?:he|she|who|son|daughter|doctor|nurse|man|woman|lady|guy|friend)(?:'s| is| was)? called|(?:her|his|the|your|its?|patient's|patient) (?:full |first |last )?name(?:'s| is| was)|named|called|call me|calls me|"
    r"i'm called|this is|it's|i am|i'm|goes by|known as|i'm speaking (?:to|with)|speaking (?:to|with)|am i speaking (?:to|with)|name[:,]?|"
    r"(?:my|his|her|your|our|the) (?:\w+[- ])?(?:son|daughter|wife|husband|mother|father|mum|mom|dad|brother|sister|partner|friend|neighbou?r|cousin|nephew|niece|uncle|aunt|"
    r"grandson|granddaughter|carer|boyfriend|girlfriend|boss|grandma|grandpa|fiancée?|gp|doctor|nurse|colleague|roommate|caregiver|boy|girl|baby|dog|cat),?)",
    "fr": r"(?:je m'appelle|je suis|mon nom(?: de famille)?(?: c'est| est)?|mon prénom(?: c'est| est)?|(?:il|elle) s'appelle|s'appelle|nommée?|appelez-moi|on m'appelle|m'appelle|c'est|ici|"
    r"au nom de|nom(?: de famille)?[ :,]*(?:c'est|est)?|prénom[ :,]*(?:c'est|est)?|(?:mon|ma|son|sa|votre|notre|le|la) (?:\w+ )?(?:fils|fille|femme|mari|mère|père|frère|sœur|soeur|compagne|compagnon|amie?|voisine?|"
    r"cousine?|neveu|nièce|oncle|tante|conjointe?|épouse|époux|petit-fils|petite-fille|grand-mère|grand-père|copine?|collègue|maman|papa|médecin traitant|médecin),?)",
}
_STRONG_CUE = {
    "en": r"name(?:'s| is| was|[:,])?$|(?:he|she|who|son|daughter|doctor|nurse|man|woman|lady|guy|friend)\b.* called,?$|i'm called$|calls? me$|named$|known as$|goes by$|speaking (?:to|with)$",
    "fr": r"appell\w+(?:-moi)?$|nom\b|prénom|nommée?$",
}
_HOMOGRAPHS = frozenset("will may april june august mars mark juin octave".split())
_APPOSED = {
    "en": r"(?<![\w'])([^\W\d_]{3,}),? (?:my|his|her) (?:\w+ )?(?:brother|sister|son|daughter|wife|husband|mother|father|mum|mom|dad"
    r"|partner|neighbou?r|cousin|uncle|aunt|carer)\b",
    "fr": r"(?<![\w'])([^\W\d_]{3,}),? (?:mon|ma|son|sa) (?:\w+ )?(?:frère|sœur|fils|fille|femme|mari|mère|père|compagnon|compagne|voisine?)\b",
}
_KIN = {"en": r"(?:my|his|her|your|our|the)\b", "fr": r"(?:mon|ma|son|sa|votre|notre)\b"}
_GREET = {
    "en": r"(?:hi|hello|hey|morning|good morning|good afternoon|good evening|afternoon|evening|thanks|thank you|thank you very much|bye|goodbye|bye-bye|bye bye|okay|ok|alright|all right|well|so|yes|sorry|right|now|dear|welcome|care|you|cheers|"
    r"later|soon|day|here|there|please|luck|weeks?|congratulations)",
    "fr": r"(?:bonjour|bonsoir|merci|au revoir|salut|d'accord|alors|voilà|bien|oui|non|cher|chère|allô|allo)",
}
_NOT_NAMES = set(
    "i i'm i'll i've i'd ok okay yes no yeah mm hmm uh um oh ah so well and but the a an my your his her it it's that this there they we you he she"
    " what when where why how who which is are was were do does did have has had can could would should will shall may might must not don't"
    " monday tuesday wednesday thursday friday saturday sunday january february march april june july august september october november december"
    " good morning afternoon evening hello hi bye thanks thank please sorry right left just like also maybe actually"
    " doctor dr mr mrs ms miss nurse sir madam mum mom dad mummy daddy mama papa grandma grandpa"
    " god jesus christ lord christmas easter gp er a&e icu mri ct nhs er ed iv im bp hr ecg ekg uti copd gerd ibs hiv std sti"
    " je tu il elle on nous vous ils elles le la les un une des de du et ou mais donc or ni car ce cette ça c'est oui non bonjour bonsoir merci"
    " lundi mardi mercredi jeudi vendredi samedi dimanche janvier février mars avril mai juin juillet août septembre octobre novembre décembre"
    " alors voilà bien très d'accord monsieur madame docteur mademoiselle samu smur"
    " heu euh hein ben bah beh bon hum mhm mhmm mmm hmm yep yup nope nah uhh umm ouais ok okay wow oops huh allo allô said says told samu du"
    " covid sw nw se ne".split()
)


def _name_word(view: View, word: str, is_common: IsCommon, trusted: bool) -> bool:
    """Whether a word can be (part of) a personal name here."""
    low = word.casefold().strip(".'")
    homograph = trusted and view.cased and word[0].isupper() and low in _HOMOGRAPHS
    if (low in _NOT_NAMES and not homograph) or len(low) < 2 or any(c.isdigit() for c in word):
        return False
    if trusted and re.match(r"[dD]'[A-ZÀ-Ý]", word):
        return True
    if re.match(r"(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu)'", low) and not word[2:3].isupper():
        return False
    if view.cased and word.isupper() and len(word) <= 4 and not trusted:
        return False
    if view.cased and not word[0].isupper():
        return False
    known = low in NICKNAME_FORMS or any(
        low in names(tongue) for names in (first_names, last_names) for tongue in ("en", "fr")
    )
    if trusted:
        return view.cased or known or not is_common(low)
    return not is_common(low) or (view.cased and known)


def _name_after(
    view: View, position: int, is_common: IsCommon, trusted: bool, most: int = 3
) -> tuple[int, int] | None:
    """The name that begins at a position: up to ``most`` words, particles allowed inside."""
    token = re.compile(r"[^\W\d_][\w'’-]*")
    start = end = None
    text, count = view.text, 0
    while count < most:
        match = token.match(text, position)
        if not match:
            break
        word = re.sub(r"'s$", "", match.group())
        particle = (
            word.casefold()
            in (
                "de",
                "du",
                "van",
                "von",
                "der",
                "den",
                "la",
                "le",
                "el",
                "al",
                "bin",
                "da",
                "di",
                "mac",
                "st",
                "des",
            )
            and count > 0
        )
        if not particle and not _name_word(view, word, is_common, trusted and count < 2):
            break
        start = match.start() if start is None else start
        if not particle:
            end = match.start() + len(word)
        count += 1
        if word != match.group():
            break
        gap = re.match(r"\.?\s+(?=[^\W\d_])", text[match.end() :])
        if not gap or (gap.group()[0] == "." and len(word) > 2):
            break
        position = match.end() + gap.end()
    return (start, end) if start is not None and end is not None and end > start else None


def names_found(views: Sequence[View], language: str, is_common: IsCommon) -> Iterator[Found]:
    """Personal names after titles, introductions, kinship and greetings."""
    title = re.compile(rf"(?<![\w'])({_TITLES[language]})\s+(?=[^\W\d_])", FLAGS)
    cue = re.compile(rf"(?<!\w)({_CUES[language]})(?:\s+|\s*[:,]\s+)(?=[^\W\d_])", FLAGS)
    greet = re.compile(rf"(?<!\w){_GREET[language]},?\s+(?=[^\W\d_])", FLAGS)
    for view in views:
        for match in title.finditer(view.text):
            kin = re.match(
                r"(?:father|sister|sir|madam|doc\b|nurse|midwife|officer|infirmi|tante|oncle|uncle|aunt)",
                match[1],
                FLAGS,
            )
            initial = re.match(r"[A-Z]\.\s?(?=[A-Z])", view.text[match.end() :])
            after = match.end() + (initial.end() if initial else 0)
            found = _name_after(view, after, is_common, trusted=not kin)
            if found and (view.cased or not kin):
                yield Found(view.index, match.end(), found[1], "NAME", "title", 0.95)
            elif re.match(r"[A-HJ-Z]\.(?=\W|$)", view.text[match.end() :]) and not kin:
                yield Found(view.index, match.end(), match.end() + 2, "NAME", "title", 0.9)
        for match in cue.finditer(view.text):
            strong = re.search(_STRONG_CUE[language], match[1], FLAGS) is not None
            kin = re.match(_KIN[language], match[1], FLAGS) is not None
            found = _name_after(view, match.end(), is_common, trusted=strong)
            if found:
                word = view.text[found[0] : found[1]].split()[0].casefold()
                told = kin and view.cased and (word in first_names(language) or word in NICKNAME_FORMS)
                yield Found(view.index, *found, "NAME", "cue", 0.9 if strong or told else 0.6)
        for match in greet.finditer(view.text):
            found = _name_after(view, match.end(), is_common, trusted=False, most=2)
            if found:
                yield Found(view.index, *found, "NAME", "greeting", 0.55)
        for match in re.finditer(_APPOSED[language], view.text, FLAGS):
            capital = match[1][0].isupper() or not view.cased
            if capital and match[1].casefold() in (first_names(language) | NICKNAME_FORMS) - _NOT_NAMES:
                yield Found(view.index, match.start(1), match.end(1), "NAME", "cue", 0.9)
        yield from _listed(view, language, is_common)
    yield from _answers(views, language, is_common)


def _listed(view: View, language: str, is_common: IsCommon) -> Iterator[Found]:
    """A listed given name and the capitalised word or initial after it ("Doris", "Maria S.")."""
    if not view.cased:
        for match in re.finditer(r"[^\W\d_][\w'-]{2,}", view.text):
            word = re.sub(r"'s$", "", match.group().casefold())
            if word in first_names(language) and not is_common(word) and word not in cities():
                yield Found(
                    view.index, match.start(), match.start() + len(word), "NAME", "list", 0.5
                )
        return
    pattern = r"(?<![\w'])([A-ZÀ-Ý][a-zà-ÿ]+(?:-[A-ZÀ-Ý][a-zà-ÿ]+)?)((?:\s+[A-Z]\.(?=\W|$))?(?:\s+(?:(?:O'|Mc|Mac|De|d')?[A-ZÀ-Ý][a-zà-ÿ]+(?:-[A-ZÀ-Ý][a-zà-ÿ]+)?)|\s+[A-Z]\.?(?=[\s,;?!)]|$))?)"
    for match in re.finditer(pattern, view.text):
        word = match[1].casefold()
        if word.split("-")[0] not in first_names(language) or word in _NOT_NAMES:
            continue
        follows = match[2].strip()
        common = is_common(word)
        last = follows.split()[-1] if follows else ""
        if last and (last.casefold() in _NOT_NAMES or re.fullmatch(r"I", last)):
            follows = ""
        lists = last.casefold() in last_names("en") or last.casefold() in last_names("fr")
        if follows and len(last.strip(".")) > 1 and is_common(last.casefold()) and not lists:
            follows = ""
        if common and not follows:
            continue
        if not follows and (word in cities() or word in places()):
            continue
        end = match.start() + len(match[1]) + (len(match[2]) if follows else 0)
        yield Found(view.index, match.start(), end, "NAME", "list", 0.8 if follows else 0.6)


_NAME_ASK = {
    "en": r"\b(?:your|the|her|his|patient's|full|first|last|sur|middle|maiden)\s*-?(?:full |first |last )?name\b|\bwho (?:am i|is|are|was|do|did)\b|what (?:do|should|can) (?:i|we) call|what's (?:he|she|it) called|spell (?:that|it|your)",
    "fr": r"\b(?:votre|vos|son|le|ses) (?:nom|prénom|noms)\b|comment (?:vous appelez|s'appelle|tu t'appelles)|vous appelez comment|épele[rz]|qui est",
}


_PRESENTS = {"en": r"\b(?:i'm|it's|this is|name is|name's)", "fr": r"\b(?:c'est|je suis)"}


def _answers(views: Sequence[View], language: str, is_common: IsCommon) -> Iterator[Found]:
    """Names in short answers to a question for a name, and names spelled letter by letter."""
    spelled = re.compile(
        r"(?<![\w'])(?:[A-Za-zÀ-ÿ](?:\s+(?:as in|for|comme)\s+\w+)?(?:\s*[-,.]\s*|\s+)){2,}[A-Za-zÀ-ÿ](?:\s+(?:as in|for|comme)\s+\w+)?(?![\w'])"
    )
    number = re.compile(rf"\W*(?:\d|(?:{_NUMBER_WORDS[language]})(?!\w))", FLAGS)
    for view in views:
        previous = views[view.index - 1] if view.index else None
        asked = (
            previous is not None
            and previous.speaker != view.speaker
            and re.search(_NAME_ASK[language], previous.text, FLAGS)
        )
        told = re.search(
            r"\bspel\w*\b|\bépel\w*\b|\bname\b|\bnom\b|that's|with an?\b|c'est", view.text, FLAGS
        )
        for match in spelled.finditer(view.text):
            letters = re.sub(r"[^a-zà-ÿ]", "", canonical(match.group(), language))
            plain = re.search(r"[A-ZÀ-Ý]|-", match.group()) or not view.cased
            if (
                (asked or told)
                and len(letters) >= 3
                and plain
                and not number.match(view.text[match.end() :])
                and len(set(letters)) > 1
                and letters not in ("ecg", "ekg", "mri", "uti", "nhs", "irm", "samu")
            ):
                yield Found(view.index, match.start(), match.end(), "NAME", "spelled", 0.85)
        if not asked or len(view.text.split()) > 14:
            continue
        said = re.search(_PRESENTS[language] + r"\s+([^\W\d_]+)", view.text, FLAGS)
        if said and said[1].casefold() in first_names(language) - _NOT_NAMES:
            yield Found(view.index, said.start(1), said.end(1), "NAME", "answer", 0.85)
        for match in re.finditer(r"(?<![\w'])[^\W\d_][\w'-]+", view.text):
            found = _name_after(view, match.start(), is_common, trusted=False)
            placed = re.search(r"\b(?:à|de|rue|chemin|in|at|from|near|to|on)\s+$", view.text[: match.start()])
            if found and found[0] == match.start() and not placed:
                yield Found(view.index, *found, "NAME", "answer", 0.85)
