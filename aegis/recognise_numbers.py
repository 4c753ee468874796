"""Telephone, record, account and other numbers, with question and answer over turns.

A run is a stretch of digits, number words and spelled letters in one turn. Its category
comes from a label beside it, from the question that it answers, from the number that it
continues after an acknowledgement, or from its form.

Functions: :func:`numbers_found`, :func:`number_runs`, :func:`asked_for`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from aegis.canonical import canonical
from aegis.recognisers import FLAGS, Found, View
from aegis.spoken_tokens import words

NUMBER_WORDS = {
    "en": "zero|oh|o|nought|naught|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
    "|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen|twenty|thirty|forty|fourty"
    "|fifty|sixty|seventy|eighty|ninety|hundred|thousand",
    "fr": "zéro|zero|un|une|deux|trois|quatre|cinq|six|sept|huit|neuf|dix"
    "|onze|douze|treize|quatorze"
    "|quinze|seize|vingts?|trente|quarante|cinquante|soixante|septante|huitante|octante|nonante"
    "|cents?|mille",
}
AFTER_UNIT = re.compile(
    r"\s*(?:-\s?)?(?:%|percent|per cent|pour cent|mg|mcg|milli\w*|micro\w*"
    r"|kilo\w*|kg|grams?|grammes?|g\b|ml"
    r"|cc\b|cm|mm|litres?|liters?|units?|unités?|days?|weeks?|months?"
    r"|years?|hours?|minutes?|seconds?"
    r"|times?\b|tablets?|pills?|puffs?|drops?|doses?|degrees?|pounds?"
    r"|lbs?\b|stone|feet|foot|inches"
    r"|jours?|semaines?|mois|ans?\b|années?|heures?|secondes?|fois|comprimés?|gouttes?|gélules?"
    r"|degrés?|sachets?|bouffées?|beats|bpm|mmhg|over\b|sur\b|mètres?"
    r"|meters?|metres?|miles?|euros?"
    r"|dollars?|cigarettes?|packs?|paquets?|verres?|people|of them|o'clock|am\b|pm\b|a\.m|p\.m"
    r"|year-old|yo\b|y/o)",
    FLAGS,
)


_NOT_PREFIX = (
    r"(?:MRN|NHS|BP|ID|DOB|SSN|ZIP|VIN|HR|PIN|NPI|DEA|GMC|TSH|LDL|HDL"
    r"|BMI|NO|PO|AM|PM|OF|IN|AT|IS|TO|OR|AND|THE|ON|US|UK|SAT"
    r"|SATS|SPO|TEL|FAX|EXT|IP|EMR|MR|RR|GCS|INR|PSA|CRP|WBC|HB|EF|FEV"
    r"|IPP|NIR|RPPS|TA|SAMU|COVID|ABOUT|FOR|HAD|WAS)\b"
)


@lru_cache(maxsize=2)
def _run_pattern(language: str) -> re.Pattern[str]:
    number = rf"(?:{NUMBER_WORDS[language]})(?![\w'])"
    piece = (
        rf"(?:(?-i:(?!{_NOT_PREFIX})[A-Z]{{2,4}})\s(?=\d)\d[\dA-Za-z]*|(?-i:(?!{_NOT_PREFIX}"
        rf")[A-Z]{{2,4}})(?=\s(?:dash|hyphen|tiret)\s)|(?:[A-Za-z]{{1,6}}[-–]){{1,2}}\d[\dA-Za-z]*"
        rf"|[A-Za-z]{{0,4}}\d[\dA-Za-z]*(?:-[A-Z]{{1,4}}(?![\w'-]))?|{number}"
        rf"|(?:double|triple|treble)\s+(?:{number}|\w(?!\w))"
        r"|[A-Za-z](?![\w'])(?:\s+(?:as in|for|like|comme)\s+[A-Za-z]{3,})?)"
    )
    and_ = "and" if language == "en" else "et"
    link = (
        rf"(?:\s*[-–,./]\s*|\.{{3}}\s*|\s+(?:{and_}|dash|hyphen|tiret|slash"
        rf"|space)\s+|\s*[()]\s*|\s*[,.…]*\s+(?:euh|heu|uh|um|er)[\s,.…]+|\s+)"
    )
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
    return (len(value) == 1 and value.isdigit()) or part.casefold() == "oh"


_EDGE_WORDS = {
    "en": frozenset(words("a i o and s t")),
    "fr": frozenset(words("a y à un une et l d c s j n m t qu")),
}


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


_LABELS: dict[str, list[tuple[str, str]]] = {
    "en": [
        ("FAX", r"fax"),
        ("SSN", r"social security|\bssn\b|\bsocial\b(?= is|:)|national insurance"),
        (
            "VEHICLE",
            (
                r"licen[cs]e plate|number plate|\bplates?\b|\bvin\b|vehicle"
                r"|\breg(?:istration)?\b(?:"
                r" number)?|\bmy car\b"
            ),
        ),
        (
            "DEVICE",
            (
                r"serial|device|pacemaker\b|implant\w*|\bpump\b|\budi\b|defibrillator"
                r"|hearing aid|prosthesis|glucose monitor|\bicd\b"
            ),
        ),
        (
            "MRN",
            r"medical record|\bmrn\b|\bmr ?#|record (?:number|no\b|#|id)|\brecords?"
            r" is\b|chart (?:number|no\b|#|id)|hospital number"
            r"|\bemr\b|med\.? ?rec\w*\.?|patient (?:number|id|identifier|no\b|#)"
            r"|\bnhs (?:number|no\b)|\bfile number|case file|\bchart\b|(?:her"
            r"|his|my|your|the) record\b|\bpatient #",
        ),
        (
            "HEALTH_PLAN",
            r"health plan|\bplan (?:number|id|no)|\bmember(?:ship)?\b(?: number"
            r"| id| no| #)?|polic(?:y|ies)|\binsurance\b|beneficiary|medicare"
            r"|medicaid|subscriber|group number|\bhp?bn?\b|\bhpn\b|\binsur\w*"
            r"|\bins\b|\bhic?n?\b(?=[ #:])|\bhealth card|\bcoverage id|\bplan\b(?=:"
            r"| #| id)",
        ),
        (
            "ACCOUNT",
            (
                r"account|\bacct\b|\biban\b|credit card|debit card|\bcard number"
                r"|invoice|\bbill(?:ing)?\b|routing|sort code|bank"
            ),
        ),
        ("LICENSE", r"licen[cs]e|certificate|\bdea\b|\bnpi\b|\bgmc\b|passport|permit"),
        ("BIOMETRIC", r"fingerprint|voice ?print|retina|iris scan|face ?id\b|biometric"),
        ("IP", r"\bip address"),
        (
            "PHONE",
            r"phone|mobile|\bcell\b(?! count| blood|s\b)|telephone|\bcall (?:me"
            r"|us|him|her|them)\b|\bcall back|call(?:ed)? (?:on|at)\b|reach"
            r" (?:me|us|him|her|you)"
            r"|ring (?:me|us|him|her)|\btext (?:me|us|him|her)\b|\bcontact\b|landline"
            r"|pager|extension|\bring\b|\bdial\b|\btel\b|\bcall\b",
        ),
        (
            "LOCATION",
            (
                r"\bzip\b|postcode|post code|postal code|(?<!mail )(?<!ip )\baddress\b|where"
                r" (?:do|are) you liv\w+"
            ),
        ),
        (
            "UNIQUE_ID",
            r"\bid\b|identifier|identification|reference|study (?:number|id)"
            r"|trial|participant|subject (?:number|id|no)"
            r"|accession|case (?:number|no|id|#)|order number|specimen|sample"
            r"|confirmation|tracking|booking|ticket|badge|wristband|bracelet|\btag\b|barcode|employee|student|appointment"
            r" number|\bref\b|voucher",
        ),
    ],
    "fr": [
        ("FAX", r"\bfax\b|télécopie"),
        ("SSN", r"sécurité sociale|\bsécu\b|\bnir\b|numéro ins\b"),
        ("VEHICLE", r"immatricul\w+|\bplaque\b|\bvin\b"),
        (
            "DEVICE",
            (
                r"numéro de série|\bsérie\b|\bpacemaker\b|dispositif|défibrillateur"
                r"|prothèse|pompe à insuline|appareil auditif"
            ),
        ),
        (
            "MRN",
            (
                r"dossier|\bipp\b|numéro (?:de )?patient|numéro d'hospitalisation"
                r"|\bnip\b|\bséjour\b"
            ),
        ),
        ("HEALTH_PLAN", r"mutuelle|adhérent|contrat|assurance|assuré|police\b|bénéficiaire"),
        ("ACCOUNT", r"\bcompte\b|\biban\b|\brib\b|carte bancaire|carte bleue|facture|banque"),
        ("LICENSE", r"permis|\brpps\b|\badeli\b|passeport|carte d'identité|certificat|licence"),
        ("BIOMETRIC", r"empreinte"),
        ("IP", r"adresse ip"),
        (
            "PHONE",
            r"téléphone|\bportable\b|\bmobile\b|\bfixe\b|joindre|rappele[rz]"
            r"|appele[rz]|contacter|\btél\b|\bnuméro\b(?! de | d')"
            r"|\bligne\b",
        ),
        ("LOCATION", r"code postal|(?<!mail )\badresse\b(?! mail| ip| e-mail)|où habitez"),
        (
            "UNIQUE_ID",
            r"identifiant|référence|\bréf\b|numéro (?:d'étude|de participant"
            r"|de l'étude|d'inclusion|de prélèvement)|protocole"
            r"|inclusion|participant|échantillon|bracelet|étiquette|badge|\bticket\b"
            r"|numéro d'ordre|numéro de rendez-vous",
        ),
    ],
}
NUMBERS = frozenset(
    words("PHONE FAX SSN MRN HEALTH_PLAN ACCOUNT LICENSE VEHICLE DEVICE UNIQUE_ID")
)
"""Categories whose values are numbers or codes that can be said over several turns."""
_MINIMUM = {"PHONE": 5, "FAX": 5, "LOCATION": 3, "SSN": 4, "ACCOUNT": 4, "UNIQUE_ID": 3, "IP": 4}


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
    if category in (
        "UNIQUE_ID",
        "PHONE",
        "LICENSE",
    ):  # "insurance ID", "fax number": the specific word wins
        near = [f for f in found if f[3] != "UNIQUE_ID" and end - length - 3 <= f[0] <= end]
        category = max(near)[3] if category == "UNIQUE_ID" and near else category
    overlapping = [f for f in found if f[0] - f[1] < end <= f[0] and f[1] > length]
    if overlapping:
        category = max(overlapping, key=lambda f: f[1])[3]
    return category, len(text) - end


_QUESTION = re.compile(
    r"\?|\b(?:can|could|may|what|which|confirm|give|tell|have you got"
    r"|do you have|please|quel(?:le)?|pouvez|donnez|"
    r"est-ce que|c'est quoi|need|take|read|spell|repeat|say)\b",
    FLAGS,
)
_ACK = re.compile(
    r"^\W*(?:(?:yes|yeah|yep|okay|ok|right|sure|thank you|thanks|m+"
    r"|hm+|mhm|uh-?huh|go on|and then|and|then|got it|"
    r"carry on|continue|next|so far|perfect|great|good|alright|fine"
    r"|i'm listening|slowly|please|sorry|"
    r"oui|d'accord|très bien|bien|je note|et ensuite|ensuite|allez-y"
    r"|je vous écoute|la suite|continuez|et puis|et|parfait|merci|"
    r"go ahead|the rest|what's next|ready)\W*)+$",
    FLAGS,
)


_OPENERS = re.compile(
    r"\b(?:then|and then|and|so|it's|that's|uh|um|er|okay|yes|puis|et puis|ensuite|et|alors|donc"
    r"|euh|heu|c'est|oui)\b",
    FLAGS,
)


def _digit_share(text: str, runs: Sequence[Run]) -> float:
    """Share of a turn's letters and digits that belong to its runs."""
    total = len(re.findall(r"\w", text))
    return (
        sum(len(re.findall(r"\w", text[r.start : r.end])) for r in runs) / total if total else 0.0
    )


def _names_a_label(text: str, language: str) -> bool:
    """Whether a turn ends by naming a number, as a question heard without its mark does."""
    last = re.split(r"[.!]\s+", text.rstrip(" .!"))[-1]
    label = _nearest_label(last, language)
    short = len(last.split()) <= 9 and not re.search(r"\d", last)
    return short and label is not None and label[1] <= 16


def asked_for(views: Sequence[View], index: int, language: str) -> str | None:
    """The category that the turns just before asked for, if this turn may answer."""
    steps = 0
    for j in range(index - 1, max(-1, index - 5), -1):
        text = views[j].text
        if _ACK.match(text):
            continue
        steps += 1
        if views[j].speaker != views[index].speaker and (
            _QUESTION.search(text) or _names_a_label(text, language)
        ):
            tail = text[-160:]
            birth = re.search(BIRTH[language], tail, FLAGS)
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


BIRTH = {
    "en": (
        r"date of birth|birth ?date|birthday|\bdob\b|d\.o\.b|\bborn\b|(?:what"
        r"|which) (?:date|day)|when (?:was|were|did|is)\b.*"
    ),
    "fr": (
        r"date de naissance|né(?:e)? le|\bnaissance\b|anniversaire|(?:à"
        r" )?quelle date|vous êtes née? quand|quand êtes-vous née?"
    ),
}
_AGE_ASK = {"en": r"how old|\b(?:your|her|his) age\b", "fr": r"quel âge|votre âge"}


def numbers_found(views: Sequence[View], language: str) -> Iterator[Found]:
    """Telephone, record, account and other numbers, by label, question, form or continuation."""
    last: dict[str, tuple[int, str]] = {}
    runs_of = [number_runs(view.text, language) for view in views]
    for view, runs in zip(views, runs_of, strict=True):
        asked = asked_for(views, view.index, language)
        for run in runs:
            found = _classify(view, run, runs, asked, last, views, language)
            if found:
                last[view.speaker] = (view.index, found[0])
                start = run.start
                if found[0] == "SSN" and language == "fr":
                    first = re.search(r"\b(?:une?)[\s,.]+$", view.text[:start], FLAGS)
                    start = first.start() if first else start  # the sex digit, not an article
                yield Found(view.index, start, run.end, found[0], found[1], found[2])


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
    unit = AFTER_UNIT.match(text[run.end :])
    listed = re.search(r"\d\s*,\s+\d", text[run.start : run.end]) is not None
    if n == 0 or (unit and (n < 6 or listed)):
        return None
    before = text[max(0, run.start - 70) : run.start]
    before = re.split(r"[.?!]\s(?=.*\w)", before)[-1] if n < 6 else before
    label = _nearest_label(before, language)
    if label and _label_holds(label, run, before):
        return label[0], "label", 0.95
    if _zip_code(text, run, language):
        return "LOCATION", "postcode", 0.85
    after = re.match(
        (
            r"[,\s]*(?:is|was|c'est|est|that's|as|for|comme|-)\s+(?:my|the|her"
            r"|his|your|our|mon|ma|le|la|votre|son|sa)\s+([^.?!]{0,40})"
        ),
        text[run.end :],
        FLAGS,
    )
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
    opens = n >= 3 and not re.search(r"\w", _OPENERS.sub("", text[: run.start]))
    if (
        previous
        and n >= 2
        and (share > 0.5 or opens)
        and _continues(views, previous[0], view.index)
    ):
        return previous[1], "continued", 0.85
    return formed


def _zip_code(text: str, run: Run, language: str) -> bool:
    """Five digits beside a town: ``Brest, 29200``, ``67200 Colmar``, ``Dover, DE 19901``."""
    if run.digits != 5 or not run.value.isdigit():
        return False
    before, after = text[: run.start], text[run.end :]
    if language == "fr":
        town = re.search(r"(?:^|[\s'])[A-ZÀ-Ý][\w'-]+,?\s+(?:dans le\s+)?$", before)
        return town is not None or re.match(r",?\s+(?:à\s+)?[A-ZÀ-Ý][\w'-]+", after) is not None
    told = re.match(r",?\s+(?:that's|it's|which is|that is)\s+(?:in\s+|near\s+)?[A-Z]", after)
    return told is not None or re.search(r",\s+(?:[A-Z]{2}|[A-Z][a-z]+),?\s+$", before) is not None


def _label_holds(label: tuple[str, int], run: Run, before: str) -> bool:
    category, distance = label
    minimum = _MINIMUM.get(category, 3)
    spelled = len(run.value) >= 5 and run.digits >= 2 and category not in ("PHONE", "FAX", "IP")
    if category == "LOCATION" and len(run.value) not in (5, 6, 7, 9):
        return False
    if run.digits < minimum and not spelled:
        return False
    if re.fullmatch(r"(?:19|20)\d\d", run.value) and re.search(
        r"\b(?:in|since|en|depuis|year|of|de)\s+$", before
    ):
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


def is_continued(views: Sequence[View], first: Found, second: Found) -> bool:
    """Whether a number goes on in a later turn: "oh seven double one" - "yes?" - "two two".

    Both have one category and one speaker; the first ends its turn, the second opens its own,
    and nothing but acknowledgements lies between.
    """
    one, two = views[first.index], views[second.index]
    ends = not re.search(r"\w", one.text[first.end :])
    opens = not re.search(r"\w", _OPENERS.sub("", two.text[: second.start]))
    return (
        first.category == second.category
        and one.speaker == two.speaker
        and ends
        and opens
        and _continues(views, first.index, second.index)
    )


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
        coded = run.digits >= 4 and re.search(r"\d[\s-]+\d|[A-Za-z]-\d", raw) is not None
        if coded and re.fullmatch(r"[a-z]{1,4}\d{4,}[a-z]?", digits):
            return "UNIQUE_ID", "code", 0.6
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
    if language == "fr" and re.fullmatch(r"0[1-79](?:\d\d){2,3}", digits) and grouped:
        return "PHONE", "form", 0.7
    if french or (english and (grouped or spoken or digits[0] == "0")):
        return "PHONE", "form", 0.85
    if len(digits) == 7 and (grouped or spoken):
        return "PHONE", "form", 0.75
    if len(digits) >= 15 and len(digits) <= 16 and grouped:
        return "ACCOUNT", "form", 0.7
    if len(digits) >= 7:
        return "UNIQUE_ID", "form", 0.6
    pairs = itertools.pairwise(digits)
    counting = all((int(b) - int(a)) % 10 in (1, 9) for a, b in pairs)
    long = len(digits) >= 6 and run.singles >= 5
    return ("UNIQUE_ID", "form", 0.5) if long and not counting else None
