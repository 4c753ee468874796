# ruff: noqa: E501
"""Seeded changes of clinical speech whose effect on a fact is known.

Unit: one fact of a transcript and one kind of change. The text is changed where the fact's
evidence stands; the expected label follows from the kind: another dose, drug, side, time,
person, order or polarity contradicts the fact, an omission makes it missing, a change of
format (fillers, case and marks, numbers in digits) leaves it preserved. A kind that does not
apply to a fact gives None. :func:`template_cases` draws whole cases from sentence templates.

All draws come from a ``numpy.random.Generator``: the same seed gives the same changes.

Functions: :func:`perturb`, :func:`perturb_fact`, :func:`template_cases`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from aegis.canonical import canonical
from aegis.lexicon import is_drug

HARMFUL = (
    "dose", "frequency", "duration", "negation", "laterality", "drug", "omission", "actor", "chronology",
)  # fmt: skip
BENIGN = ("fillers", "format", "digits")
KINDS = (*HARMFUL, *BENIGN)
EXPECTED = {"omission": "missing"} | dict.fromkeys(BENIGN, "preserved")


@dataclass(frozen=True)
class Changed:
    """A changed transcript: what was done to which turn, and the label that this warrants."""

    kind: str
    turn: int
    texts: tuple[str, ...]
    expected: str


Rng = np.random.Generator
Change = Callable[[str, str, Rng], str | None]

_NUMBERS = {
    "en": "one two three four five six seven eight nine ten twelve fifteen twenty thirty forty fifty sixty"
    " seventy eighty ninety hundred thousand zero point and eighty-eight",
    "fr": "un une deux trois quatre cinq six sept huit neuf dix douze quinze vingt trente quarante cinquante soixante"
    " cent mille zéro virgule quatre-vingt",
}
_SPOKEN = {
    language: re.compile(
        r"\b(?:(?:" + "|".join(sorted(words.split(), key=len, reverse=True)) + r")[ -]?)+\b", re.I
    )
    for language, words in _NUMBERS.items()
}
_DOSE_UNIT = re.compile(
    r"^\W*(?:milli|micro|gram|mg|mcg|unit|puff|tablet|drop|kilo|comprim|unité|bouff|goutte)", re.I
)
_TIME_UNIT = re.compile(
    r"^\W*(?:more )?(?:minute|hour|day|week|month|year|cycle|heure|jour|semaine|mois|ans?\b|année)",
    re.I,
)
_DOSES = {
    "en": ("three", "thirty-five", "ninety", "two hundred and fifty", "seven hundred"),
    "fr": ("trois", "trente-cinq", "quatre-vingt-dix", "deux cent cinquante", "sept cents"),
}
_SPANS = {"en": ("three", "nine", "eleven"), "fr": ("trois", "neuf", "onze")}
_RATES = {
    "en": (
        (r"\bonce\b", "three times"), (r"\btwice\b", "five times"), (r"\btimes a day\b", "times a week"),
        (r"\bevery morning\b", "every evening"), (r"\bin the morning\b", "at night"), (r"\bat night\b", "in the morning"),
        (r"\bat bedtime\b", "at noon"), (r"\bin the evening\b", "in the morning"), (r"\ba day\b", "a week"),
        (r"\bevery two\b", "every six"), (r"\bevery three\b", "every eight"), (r"\ban hour\b", "a day"),
    ),
    "fr": (
        (r"\ble matin\b", "le soir"), (r"\ble soir\b", "le matin"), (r"\bchaque matin\b", "chaque soir"),
        (r"\bpar jour\b", "par semaine"), (r"\bune fois\b", "trois fois"), (r"\bdeux fois\b", "cinq fois"),
    ),
}  # fmt: skip
_SIDES = {"en": ("left", "right"), "fr": ("gauche", "droite", "droit")}
_POLARITY = {
    "en": (
        (r"^No\b(?=[.,]|$)", "Yes"), (r"^None\b", "Yes, some"), (r"^Never\.", "Yes, sometimes."),
        (r"^(?:Yes|Yeah)\b", "No"), (r"\bNot yet\b", "Yes, already"), (r"\b(?:do|does|did)n't\b", "did"),
        (r"\bdo not\b", "do"), (r"\bis not\b", "is"), (r"\bthere's no\b", "there's some"), (r"\bno (?=\w)", "some "),
        (r"\bNo (?=\w)", "Some "), (r"\bnever\b", "often"), (r"\bNever\b", "Often"), (r"\bI have\b", "I do not have"),
        (r"\bI had\b", "I did not have"), (r"\bI take\b", "I do not take"), (r"\bI've had\b", "I have not had"),
        (r"\b(He|She) takes\b", r"\1 does not take"), (r"\b(is|are|was|were)\b(?! only)", r"\1 not"), (r"\bhas\b", "has not"),
        (r"\b(shows|sounds|shakes|had|goes|began|gave)\b", r"never \1"), (r"^(Give|Keep|Take|Start|Call|Use)\b", r"Do not \1"),
    ),
    "fr": (
        (r"^Non\b(?=[.,]|$)", "Oui"), (r"^Oui\b", "Non"), (r"\bne (.{2,20}?) pas\b", r"\1"), (r"\bn'(.{2,14}?) pas de\b", r"\1 de la"),
        (r"^[Pp]as d'", "De l'"), (r"\bpas de\b", "de la"), (r"\b[Jj]'ai\b", "je n'ai pas"), (r"\b([Ee]lle|[Ii]l) a\b", r"\1 n'a pas"),
        (r"\b([Ee]lle|[Ii]l) est\b", r"\1 n'est pas"), (r"\b[Jj]e prends\b", "je ne prends pas"), (r"\bJ'envoie\b", "Je n'envoie pas"),
    ),
}  # fmt: skip
_ACTORS = {
    "en": (
        (r"^My (?:father|mother|brother|sister)\b", "I"), (r"^(?:His|Her) (?:father|mother|brother|sister)\b", "He"),
        (r"^I (?:have|had)\b", "My sister had"), (r"^I've had\b", "My sister has had"), (r"^I take\b", "My sister takes"),
        (r"^I stopped\b", "My sister stopped"), (r"^(?:He|She) takes\b", "I take"), (r"^My (?=left|right)", "My sister's "),
    ),
    "fr": (
        (r"^[Jj]'ai\b", "ma sœur a"), (r"^[Jj]e prends\b", "ma sœur prend"), (r"^[Ee]lle a\b", "j'ai"), (r"^[Mm]on père\b", "je"),
    ),
}  # fmt: skip
_ORDER = {
    "en": ((r"\bbefore\b", "after"), (r"\b([Aa])fter\b", "before")),
    "fr": ((r"\bavant\b", "après"), (r"\baprès\b", "avant")),
}
_FILLERS = {"en": ("um, ", "uh, ", "well, "), "fr": ("euh, ", "ben, ", "alors, ")}
_NOTHING = {"en": "Okay, thank you.", "fr": "D'accord, merci."}
_DRUGS = (
    "warfarin", "furosemide", "citalopram", "omeprazole", "naproxen", "doxycycline", "gabapentin",
    "simvastatin", "codeine", "diazepam",
)  # fmt: skip


def _pick(rng: Rng, options: Sequence[str]) -> str:
    return options[int(rng.integers(len(options)))]


def _number(
    evidence: str, language: str, unit: re.Pattern[str], pool: Sequence[str], rng: Rng
) -> str | None:
    """Replace the first spoken number that such a unit follows."""
    for match in _SPOKEN[language].finditer(evidence):
        said = match.group().strip(" -")
        if unit.match(evidence[match.start() + len(said) :]):
            own = canonical(said, language)
            new = _pick(rng, [p for p in pool if canonical(p, language) != own])
            return evidence[: match.start()] + new + evidence[match.start() + len(said) :]
    return None


def _first(evidence: str, rules: Sequence[tuple[str, str]]) -> str | None:
    """The first rule that changes the text."""
    for pattern, new in rules:
        changed, n = re.subn(pattern, new, evidence, count=1)
        if n and changed != evidence:
            return changed
    return None


def _dose(evidence: str, language: str, rng: Rng) -> str | None:
    return _number(evidence, language, _DOSE_UNIT, _DOSES[language], rng)


def _duration(evidence: str, language: str, rng: Rng) -> str | None:
    return _number(evidence, language, _TIME_UNIT, _SPANS[language], rng)


def _frequency(evidence: str, language: str, rng: Rng) -> str | None:
    return _first(evidence, _RATES[language])


def _negation(evidence: str, language: str, rng: Rng) -> str | None:
    return _first(evidence, _POLARITY[language])


def _laterality(evidence: str, language: str, rng: Rng) -> str | None:
    other = {
        "left": "right",
        "right": "left",
        "gauche": "droit",
        "droite": "gauche",
        "droit": "gauche",
    }
    pattern = re.compile(r"\b(" + "|".join(_SIDES[language]) + r")\b", re.I)
    match = pattern.search(evidence)
    if match is None:
        return None
    new = other[match[1].casefold()]
    return (
        evidence[: match.start()]
        + (new.capitalize() if match[1][0].isupper() else new)
        + evidence[match.end() :]
    )


def _drug(evidence: str, language: str, rng: Rng) -> str | None:
    for match in re.finditer(r"[^\W\d_]{5,}", evidence):
        if is_drug(match.group()):
            new = _pick(rng, [d for d in _DRUGS if d != match.group().casefold()])
            return evidence[: match.start()] + new + evidence[match.end() :]
    return None


def _actor(evidence: str, language: str, rng: Rng) -> str | None:
    return _first(evidence, _ACTORS[language])


def _chronology(evidence: str, language: str, rng: Rng) -> str | None:
    return _first(evidence, _ORDER[language])


def _fillers(evidence: str, language: str, rng: Rng) -> str | None:
    words = evidence.split()
    place = int(rng.integers(len(words)))
    return " ".join([*words[:place], _pick(rng, _FILLERS[language]).strip(), *words[place:]])


def _format(evidence: str, language: str, rng: Rng) -> str | None:
    return re.sub(r"(?<=\w),(?= )", "", evidence).casefold()


def _digits(evidence: str, language: str, rng: Rng) -> str | None:
    """Spoken numbers as a recogniser writes them."""

    def write(match: re.Match[str]) -> str:
        said = match.group().rstrip(" -")
        return canonical(said, language) + match.group()[len(said) :]

    if not re.search(r"\b(?:milli|micro|gram)", evidence):
        return None
    changed = _SPOKEN[language].sub(write, evidence)
    return changed if changed != evidence else None


_CHANGES: dict[str, Change] = {
    "dose": _dose, "frequency": _frequency, "duration": _duration, "negation": _negation,
    "laterality": _laterality, "drug": _drug, "actor": _actor, "chronology": _chronology,
    "fillers": _fillers, "format": _format, "digits": _digits,
}  # fmt: skip


def perturb(evidence: str, kind: str, language: str, rng: Rng) -> str | None:
    """The changed wording of a fact, or None where the kind does not apply."""
    return None if kind == "omission" else _CHANGES[kind](evidence, language, rng)


def perturb_fact(
    texts: Sequence[str], turn: int, evidence: str, kind: str, language: str, rng: Rng
) -> Changed | None:
    """Change one fact in a transcript."""
    if kind == "omission":
        rest = texts[turn].replace(evidence, "", 1)
        rest = re.sub(r"^[\s,.;]+", "", re.sub(r"\s+([,.])[,.\s]*", r"\1 ", rest)).strip()
        new = rest if re.search(r"\w{3,}", rest) else _NOTHING[language]
    else:
        changed = perturb(evidence, kind, language, rng)
        if changed is None or changed == evidence:
            return None
        new = texts[turn].replace(evidence, changed, 1)
    return Changed(
        kind, turn, (*texts[:turn], new, *texts[turn + 1 :]), EXPECTED.get(kind, "contradicted")
    )


# --- cases from templates --------------------------------------------------------------


@dataclass(frozen=True)
class TemplateCase:
    """One case as in the qualification suite."""

    id: str
    language: str
    kind: str
    expected: str
    source: tuple[str, ...]
    target: tuple[str, ...]
    evidence: str
    turn: int

    @property
    def harmful(self) -> bool:
        return self.kind in HARMFUL


_SLOTS = {
    "en": {
        "drug": ("bisoprolol", "metformin", "sertraline", "ramipril", "clopidogrel", "lansoprazole"),
        "dose": ("five milligrams", "ten milligrams", "twenty-five milligrams", "fifty micrograms", "two tablets"),
        "rate": ("once a day", "twice a day", "every morning", "at bedtime", "three times a day"),
        "side": ("left", "right"),
        "site": ("knee", "shoulder", "ear", "foot", "elbow", "hip"),
        "finding": ("pain", "swelling", "numbness", "a rash", "stiffness"),
        "thing": ("fever", "vomiting", "headaches", "dizziness", "palpitations", "a cough"),
        "span": ("two weeks", "five days", "three months", "six hours"),
        "kin": ("mother", "brother", "father", "aunt"),
        "illness": ("diabetes", "asthma", "a stroke", "glaucoma", "epilepsy"),
    },
    "fr": {
        "drug": ("bisoprolol", "metformine", "ramipril", "amlodipine", "oméprazole"),
        "dose": ("cinq milligrammes", "dix milligrammes", "vingt-cinq milligrammes", "deux comprimés"),
        "rate": ("une fois par jour", "deux fois par jour", "le matin", "le soir"),
        "side": ("gauche", "droit"),
        "site": ("genou", "bras", "pied", "coude", "poignet"),
        "finding": ("mal", "une plaie", "un engourdissement"),
        "thing": ("fièvre", "diarrhée", "toux", "migraines"),
        "span": ("deux semaines", "cinq jours", "trois mois"),
        "kin": ("mère", "frère", "tante"),
        "illness": ("diabète", "asthme", "épilepsie"),
    },
}  # fmt: skip
# language, kinds that apply, turns, index of the fact's turn, evidence
_TEMPLATES: tuple[tuple[str, str, tuple[str, ...], int, str], ...] = (
    ("en", "dose drug frequency omission fillers digits", ("Which medicines are you on?", "At the moment {drug}, {dose}, {rate}."), 1, "{drug}, {dose}, {rate}"),
    ("en", "laterality duration omission format", ("What brings you in?", "There's been {finding} in my {side} {site} for {span}."), 1, "{finding} in my {side} {site} for {span}"),
    ("en", "negation fillers format", ("Anything else?", "I have {thing} most days."), 1, "I have {thing} most days"),
    ("en", "negation omission", ("Any {thing} at all?", "No."), 1, "No."),
    ("en", "actor omission format", ("Is there anything in the family?", "My {kin} has {illness}."), 1, "My {kin} has {illness}"),
    ("en", "chronology fillers", ("When did that begin?", "It came on before I started {drug}."), 1, "It came on before I started {drug}"),
    ("en", "dose frequency drug", ("We should go over the plan.", "Right. You'll take {dose} of {drug} {rate} for now."), 1, "You'll take {dose} of {drug} {rate} for now"),
    ("en", "negation", ("Are you allergic to anything?", "Yes, {drug}."), 1, "Yes, {drug}"),
    ("fr", "dose drug frequency omission", ("Que prenez-vous ?", "Du {drug}, {dose}, {rate}."), 1, "Du {drug}, {dose}, {rate}"),
    ("fr", "negation omission", ("Avez-vous de la {thing} ?", "Non."), 1, "Non."),
    ("fr", "laterality duration format", ("Racontez-moi.", "J'ai {finding} au {site} {side} depuis {span}."), 1, "J'ai {finding} au {site} {side} depuis {span}"),
    ("fr", "actor fillers", ("Et dans la famille ?", "J'ai un {illness} depuis longtemps."), 1, "J'ai un {illness} depuis longtemps"),
    ("fr", "negation fillers", ("Autre chose ?", "Je prends du {drug} tous les jours."), 1, "Je prends du {drug} tous les jours"),
    ("fr", "chronology", ("Quand ?", "C'est venu avant le {drug}."), 1, "C'est venu avant le {drug}"),
)  # fmt: skip


def template_cases(rng: Rng, n: int = 40) -> list[TemplateCase]:
    """``n`` cases, each a template, a filling and a kind that applies, no two alike."""
    cases: list[TemplateCase] = []
    pairs = [(t, kind) for t in _TEMPLATES for kind in t[1].split()]
    order = [pairs[i] for i in rng.permutation(len(pairs))]
    seen: set[tuple[str, ...]] = set()
    while len(cases) < n:
        (language, _, turns, turn, pattern), kind = order[len(seen) % len(order)]
        values = {name: _pick(rng, options) for name, options in _SLOTS[language].items()}
        source = tuple(text.format(**values) for text in turns)
        evidence = pattern.format(**values)
        seen.add((*source, kind, str(len(seen))))
        changed = perturb_fact(source, turn, evidence, kind, language, rng)
        if changed is None:
            continue
        cases.append(
            TemplateCase(
                f"s{len(cases) + 1:02d}",
                language,
                kind,
                changed.expected,
                source,
                changed.texts,
                evidence,
                turn,
            )
        )
    return cases
