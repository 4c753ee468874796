"""Replacements (rho): one synthetic value per entity, of the same kind and form.

Unit: one entity of one conversation. Names come from Faker in the source language,
kept to names with one usual spelling, so that a synthesiser says and a recogniser
hears them; numbers keep their grouping, dates their form and their distances (one
shift per conversation), ages over 89 stay over 89, addresses follow the person's
surrogate. No replacement equals or sounds like an original of the conversation or
another replacement. Draws are seeded by content, so the same input gives the same map.

Functions: :class:`Surrogates` and its methods, :func:`sound_key`, :func:`like_case`.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from aegis.canonical import canonical
from aegis.lexicon import NICKNAMES, cities, first_names, institutions
from aegis.moved_dates import hyphen_like, moved_date
from aegis.numbers import speakable
from aegis.recognise_numbers import number_runs
from aegis.spoken_tokens import MONTH_NAMES, plain, words

_VOWELS = "aeiouyàâäéèêëîïôöùûüœæh"
_EASY: dict[tuple[str, str], str] = {
    ("en", "male"): "James Robert David Richard Thomas Daniel Matthew Anthony Andrew"
    " Kevin George Edward Timothy"
    " Jason Jacob Benjamin Samuel Patrick Peter Adam Henry Nathan Tyler"
    " Victor Oscar Martin Roger Albert Arthur"
    " Joshua Justin Dennis Keith Raymond Christopher William Michael Charles Vincent Leonard",
    ("en", "female"): "Jessica Jennifer Amanda Emily Laura Melissa Rebecca Michelle Kimberly"
    " Angela Linda Barbara Susan"
    " Nancy Lisa Margaret Sandra Sharon Cynthia Dorothy Helen Diana"
    " Julia Victoria Martha Andrea Olivia"
    " Monica Pamela Virginia Samantha Christine Patricia Elizabeth"
    " Jacqueline Nicole Heather Vanessa",
    ("en", "last"): "Johnson Williams Miller Wilson Anderson Taylor Jackson Thompson"
    " Harris Robinson Walker Baker Adams"
    " Nelson Campbell Mitchell Roberts Carter Evans Turner Parker Collins"
    " Edwards Morris Rogers Morgan Cooper"
    " Richardson Watson Brooks Bennett Barnes Henderson Coleman Jenkins"
    " Patterson Hughes Butler Simmons"
    " Foster Griffin Sullivan Wallace Peterson Hamilton Graham Ford"
    " Harrison Gibson Dixon Spencer Palmer",
    ("fr", "male"): "Philippe Nicolas Laurent Christophe Thierry Pascal Sébastien Vincent"
    " Antoine Julien Thomas Olivier"
    " Guillaume Alexandre Patrick Bernard Daniel François Jacques Robert"
    " Benjamin Arthur Lucas Alain Édouard"
    " Étienne Henri Hugues Éric André Maurice Gilbert Victor Martin",
    ("fr", "female"): "Nathalie Isabelle Sylvie Catherine Martine Christine Sandrine"
    " Valérie Céline Sophie Julie Aurélie"
    " Camille Charlotte Juliette Pauline Caroline Véronique Monique"
    " Hélène Alice Agnès Élise Élisabeth Inès"
    " Adèle Édith Odette Brigitte Suzanne Margot Mathilde Virginie",
    ("fr", "last"): "Bernard Dubois Durand Moreau Fournier Girard Bonnet Lambert Martinez"
    " Fontaine Rousseau Muller"
    " Chevalier Gauthier Perrin Morin Dumont Mercier Blanchard Boyer"
    " Garnier Marchand Renaud Picard Arnaud"
    " Aubert Humbert Antoine Hamon Oliveira Etienne Albert Imbert Olivier Adam",
}
_TOWNS = {
    "en": "Boston Chicago Dallas Denver Houston Seattle Atlanta Bristol Oxford"
    " Cambridge Manchester Liverpool"
    " Nottingham Cleveland Portland Madison Richmond Sheffield Plymouth"
    " Lancaster Baltimore Memphis Nashville",
    "fr": "Nantes Bordeaux Toulouse Grenoble Lille Marseille Strasbourg Montpellier"
    " Dijon Rennes Clermont Perpignan"
    " Angers Orléans Avignon Annecy Amiens Antibes Arles Albi",
}
_STREET_NAMES = {
    "en": (
        "Maple Cedar Victoria Church Station Chestnut Garden Meadow Orchard"
        " Walnut Lincoln Franklin Windsor Jackson"
    ),
    "fr": (
        "Tilleuls Marronniers Cerisiers Peupliers Fontaines Roses Violettes"
        " Platanes Moulins Bouleaux"
    ),
}
_FACILITIES = {
    "en": (
        "Riverside Lakeview Hillcrest Oakwood Fairview Greenfield Westbrook"
        " Northgate Parkside Woodland Brookside"
    ),
    "fr": "Bellevue Beaulieu Beauregard Grandval Clairval Beauséjour Monplaisir",
}
_SHIFTS = [d for d in range(-45, 46) if abs(d) > 5]


def sound_key(word: str) -> str:
    """A coarse key of how a name sounds: first sound and consonants, vowels dropped."""
    word = re.sub(r"[^a-z]", "", _unaccented(word))
    for pair in words("ph:f ck:k sch:s sh:s ch:k th:t wh:w qu:k x:ks c:k z:s v:f d:t g:j b:p"):
        old, new = pair.split(":")
        word = word.replace(old, new)
    first = word[:1] if word[:1] not in "aeiouyh" else "a"
    rest = re.sub(r"[aeiouyhw]", "", word[1:])
    return first + re.sub(r"(.)\1+", r"\1", rest)


def _unaccented(word: str) -> str:
    import unicodedata

    decomposed = unicodedata.normalize("NFD", word.casefold())
    return "".join(c for c in decomposed if not unicodedata.combining(c))


def _is_written(address: str) -> bool:
    """An address with its signs, not spoken as words."""
    return re.search(r"@|\w\.\w", address) is not None


def like_case(replacement: str, original: str) -> str:
    """A replacement in the case of the original, where that is all lower or all upper."""
    letters = [c for c in original if c.isalpha()]
    if letters and all(c.islower() for c in letters):
        return replacement.lower()
    if len(letters) > 2 and all(c.isupper() for c in letters) and not re.search(r"\d", original):
        return replacement.upper()
    return replacement


def starts_with_vowel(word: str) -> bool:
    return word[:1].casefold() in _VOWELS and word[:1] != ""


class Surrogates:
    """Draws replacements for one conversation; ``originals`` are all its identifier texts."""

    def __init__(
        self, seed: int, recording_id: str, language: str, originals: Iterable[str]
    ) -> None:
        from faker import Faker

        digest = hashlib.sha256(f"{seed}\x1f{recording_id}".encode()).digest()
        self.language = language
        self._seed = int.from_bytes(digest[:6], "big")
        self._faker: Any = Faker({"en": "en_US", "fr": "fr_FR"}[language])
        self._faker.seed_instance(self._seed)
        self._random = self._faker.random
        self._originals = list(originals)
        self._taken = {canonical(text, language) for text in self._originals}
        self.shift_days = self._shift()
        tokens = {t for text in self._originals for t in re.findall(r"[^\W\d_]{3,}", plain(text))}
        self._tokens = set(tokens)
        self._sounds = {sound_key(t) for t in tokens}

    def _shift(self) -> int:
        """A shift in days under which no full date of the conversation falls on another."""
        values = {t for text in self._taken for t in re.findall(r"\b\d{4}-\d{2}-\d{2}\b", text)}
        dates = set()
        for value in values:
            with contextlib.suppress(ValueError):
                dates.add(datetime.date.fromisoformat(value))
        order = list(_SHIFTS)
        self._random.shuffle(order)
        free = (
            d for d in order if not any(day + datetime.timedelta(days=d) in dates for day in dates)
        )
        return int(next(free, order[0]))

    # --- bookkeeping ---

    def _free(self, text: str) -> bool:
        """Whether a value is new: no original, no other replacement, no homophone of one."""
        words = re.findall(r"[^\W\d_]{3,}", plain(text))
        return canonical(text, self.language) not in self._taken and not any(
            w in self._tokens or sound_key(w) in self._sounds for w in words
        )

    def _take(self, text: str, sounds: bool = True) -> str:
        self._taken.add(canonical(text, self.language))
        if sounds:
            words = re.findall(r"[^\W\d_]{3,}", plain(text))
            self._tokens.update(words)
            self._sounds.update(sound_key(w) for w in words)
        return text

    def _pick(self, options: Sequence[str], original: str = "") -> str | None:
        """A free option; in French one that begins with a vowel if the original does."""
        order = list(options)
        self._random.shuffle(order)
        alike = [o for o in order if starts_with_vowel(o) == starts_with_vowel(original)]
        ranked = (
            [*alike, *[o for o in order if o not in alike]]
            if self.language == "fr" and original
            else order
        )
        return next((self._take(o) for o in ranked if self._free(o)), None)

    def _until_new(self, draw: Callable[[], str], original: str, tries: int = 200) -> str | None:
        for _ in range(tries):
            value = draw()
            if canonical(value, self.language) not in self._taken and value != original:
                return self._take(value, sounds=False)
        return None

    # --- names ---

    def first_name(self, gender: str, original: str = "") -> str | None:
        """A given name of a gender presentation (``male``, ``female`` or ``unknown``)."""
        if gender not in ("male", "female"):
            gender = "female" if self._random.random() < 0.5 else "male"
        return self._person(f"first_name_{gender}", (self.language, gender), original)

    def last_name(self, original: str = "") -> str | None:
        return self._person("last_name", (self.language, "last"), original)

    def _person(self, method: str, easy: tuple[str, str], original: str) -> str | None:
        """Faker's names, as often as Faker gives them, restricted to the easily heard ones."""
        heard = set(_EASY[easy].split())
        alike = self.language == "fr" and original != ""
        for _ in range(300):
            name = str(getattr(self._faker, method)())
            fits = not alike or starts_with_vowel(name) == starts_with_vowel(original)
            if name in heard and fits and self._free(name):
                return self._take(name)
        return self._pick(sorted(heard), original)

    # --- numbers ---

    def number(self, original: str) -> str | None:
        """Digits and letters exchanged one for one; grouping, marks and spoken style kept."""
        written = re.search(r"\d", original) is not None
        if written:
            return self._until_new(lambda: self._other_written(original), original)
        return self._until_new(lambda: self._other_words(original), original)

    def _other_written(self, original: str) -> str:
        """Digits, and number words among them (``Un 58``, ``Y-O-Eleven, 9``), exchanged."""
        parts = re.split(r"(?<!\w)([^\W\d_]{2,})(?!\w)", original)
        return "".join(
            self._other_word(part) if k % 2 else self._other_characters(part)
            for k, part in enumerate(parts)
        )

    def _other_word(self, word: str) -> str:
        value = canonical(word, self.language)
        if word.isupper() or not value.isdigit() or value == "0":
            return self._other_characters(word)
        other = self._random.randint(max(2, 10 ** (len(value) - 1)), 10 ** len(value) - 1)
        return like_case(speakable(str(other), None, self.language), word)

    def _other_characters(self, original: str) -> str:
        out = []
        for k, char in enumerate(original):
            first = k == 0 or not original[k - 1].isalnum()
            if char.isdigit():
                keep_zero = char == "0" and first
                out.append("0" if keep_zero else str(self._random.randint(1 if first else 0, 9)))
            elif (
                char.isalpha()
                and (k == 0 or not original[k - 1].isalpha())
                and not original[k + 1 : k + 2].isalpha()
            ):
                letter = self._random.choice("BDFHJKLMRTX")
                out.append(letter if char.isupper() else letter.lower())
            elif char.isupper():
                out.append(self._random.choice("BDFHJKLMRTX"))
            else:
                out.append(char)
        return "".join(out)

    def _other_words(self, original: str) -> str:
        """Each spoken group becomes other digits, said in the same way."""
        groups = re.split(r"(\s*[,;.]\s*)", original)
        said = [
            self._other_group(g) if k % 2 == 0 and g.strip() else g for k, g in enumerate(groups)
        ]
        return like_case("".join(said), original)

    def _other_group(self, group: str) -> str:
        runs = number_runs(group, self.language)
        value = re.sub(r"[^a-z0-9]", "", canonical(group, self.language))
        least = 2 if len(value) == 1 else 1  # a lone "un" would be an article
        new = "".join(
            c
            if c == "0" and k == 0
            else str(self._random.randint(least if k == 0 else 0, 9))
            if c.isdigit()
            else self._random.choice("BDFHJKLMRTX")
            for k, c in enumerate(value)
        )
        words = len(re.findall(r"[\w']+", group))
        by_pairs = (
            self.language == "fr"
            and len(value) % 2 == 0
            and words < len(value) + 1
            and not (runs and runs[0].singles >= len(value) - 1)
        )
        if by_pairs or (len(value) == 2 and words <= 2 and not (runs and runs[0].singles == 2)):
            pairs = [new[i : i + 2] for i in range(0, len(new), 2)]
            pairs = [
                p if p[0] != "0" or k == 0 else f"{self._random.randint(2, 9)}{p[1]}"
                for k, p in enumerate(pairs)
            ]
            return " ".join(
                speakable(p, "PHONE" if self.language == "fr" else None, self.language)
                for p in pairs
            )
        return speakable(new, "PHONE", self.language).replace(",", "")

    def age(self, original: str) -> str | None:
        """Another age between 90 and 99, in digits or words as it was."""
        written = re.search(r"\d", original) is not None

        def draw() -> str:
            value = str(self._random.randint(90, 99))
            return (
                value
                if written
                else like_case(
                    hyphen_like(speakable(value, "AGE", self.language), original), original
                )
            )

        return self._until_new(draw, original)

    # --- addresses ---

    def email(self, original: str, first: str, last: str) -> str | None:
        """The surrogate person's address at a reserved domain, spoken if the original is.

        A spoken one has no dot before the ``at``: recognisers often write that one out.
        """
        written = _is_written(original)

        def draw() -> str:
            number = str(self._random.randint(10, 99))
            local = _unaccented(f"{first}.{last}" if written else first) + number
            return f"{local}@example.{self._random.choice(['com', 'org', 'net'])}"

        return self._until_new(lambda: self._spoken_like(draw(), original, "EMAIL"), original)

    def url(self, original: str) -> str | None:
        def draw() -> str:
            word = self._random.choice(
                ["garden", "river", "mountain", "window", "orange", "planet", "silver", "winter"]
            )
            lead = "www." if re.match(r"\W*(?:https?|www|w\W)", original, re.I) else ""
            return self._spoken_like(
                f"{lead}{word}.example.{self._random.choice(['com', 'org'])}", original, "URL"
            )

        return self._until_new(draw, original)

    def ip(self, original: str) -> str | None:
        return self._until_new(
            lambda: self._spoken_like(f"192.0.2.{self._random.randint(1, 254)}", original, "IP"),
            original,
        )

    def _spoken_like(self, value: str, original: str, category: str) -> str:
        return value if _is_written(original) else speakable(value, category, self.language)

    # --- places ---

    def location(self, original: str) -> str | None:
        """A street, postcode, facility or town of the same form."""
        text = original
        if re.fullmatch(r"[A-Za-z]{1,2}\d[A-Za-z\d]?\s?\d[A-Za-z]{2}|\d{5}(?:-\d{4})?", text):
            return self._until_new(lambda: self._other_characters(text), text)
        value = canonical(text, self.language).replace(" ", "")
        if re.fullmatch(r"[a-z]{1,2}\d[a-z\d]?\d[a-z]{2}|\d{5}", value):
            return self.number(text)
        return self._street(text) or self._facility(text) or self._town(text)

    def _street(self, text: str) -> str | None:
        name = self._pick(_STREET_NAMES[self.language].split())
        if name is None:
            return None
        if self.language == "fr":
            match = re.fullmatch(rf"(.*?\b(?:{_STREET_FR})s?\b)\s+.*", text, re.I | re.S)
            return (
                like_case(f"{self._other_numbers(match[1])} des {name}", text) if match else None
            )
        match = re.fullmatch(
            rf"(.*?)((?:\b[^\W\d_][\w'.]*\s+){{1,3}}?)({_STREET_EN})\b(.*)", text, re.I | re.S
        )
        if not match:
            return None
        number = re.match(r"(?:.*?\d[\w-]*,?\s+|" + _spoken_number_en() + r")", text, re.I)
        lead = self._other_numbers(number.group()) if number else ""
        return like_case(
            f"{lead}{name} {match[3]}{self._other_numbers(match[4].split(',')[0])}", text
        )

    def _other_numbers(self, text: str) -> str:
        """All numbers in a text exchanged for others of the same length."""
        out, position = "", 0
        for run in number_runs(text, self.language):
            raw = text[run.start : run.end]
            new = (
                self._other_characters(raw)
                if re.search(r"\d", raw)
                else hyphen_like(self._other_words(raw), raw)
            )
            out += text[position : run.start] + new
            position = run.end
        return out + text[position:]

    def _facility(self, text: str) -> str | None:
        name = self._pick(_FACILITIES[self.language].split())
        if name is None:
            return None
        if self.language == "fr":
            match = re.match(rf"((?:{_FACILITY_FR})s?)\b", text, re.I)
            return like_case(f"{match[1]} {name}", text) if match else None
        match = re.search(
            rf"\b(?:\w+\s+)?((?:{_FACILITY_EN})(?:\s+(?:{_FACILITY_EN}))?)\W*$", text, re.I
        )
        if not match or match.start(1) == 0:
            return None
        kind = re.search(rf"\b({_KIND_EN})\s+{re.escape(match[1])}", text, re.I)
        return like_case(f"{name} {kind[1] + ' ' if kind else ''}{match[1]}", text)

    def _town(self, text: str) -> str | None:
        if text.casefold() in institutions():
            name = self._pick(_FACILITIES[self.language].split())
            return like_case(name, text) if name and len(text) > 5 else name
        name = self._pick(
            [t for t in _TOWNS[self.language].split() if t.casefold() in cities()]
            or _TOWNS[self.language].split(),
            text,
        )
        kind = re.search(r"(?<=\w)\s+(?:county|parish|borough|township|village)$", text, re.I)
        return like_case(name + (kind.group() if kind else ""), text) if name else None

    # --- dates ---

    def date(self, original: str) -> str | None:
        """The date shifted by the conversation's shift, written or said in the same form."""
        moved = moved_date(original, self.language, self.shift_days)
        for extra in range(40):
            if moved is None:
                break
            if canonical(moved, self.language) not in self._taken:
                return self._take(like_case(moved, original), sounds=False)
            moved = moved_date(original, self.language, self.shift_days + extra + 1)
        return self._until_new(lambda: self._any_date(original), original)

    def _any_date(self, original: str) -> str:
        year, month, day = (self._random.randint(*r) for r in ((1940, 1999), (1, 12), (1, 28)))
        written = re.search(r"\d", original) is not None
        if not written:
            value = f"{year}-{month:02d}-{day:02d}"
            return like_case(speakable(value, "DATE", self.language), original)
        name = MONTH_NAMES[self.language].split()[month - 1]
        return f"{day} {name.capitalize() if self.language == 'en' else name} {year}"


_STREET_FR = (
    r"rue|avenue|boulevard|place|chemin|impasse|allées?|quai|route|square"
    r"|cours|passage|résidence|lotissement|faubourg|villa"
)
_STREET_EN = (
    r"street|st|road|rd|lane|ln|avenue|ave|drive|court|ct|close|way"
    r"|place|crescent|terrace|boulevard|blvd|square|gardens?"
    r"|hill|row|grove|mews|parade|walk|highway|circle|trail|parkway"
    r"|green|rise|view|loop|alley|quay|wharf"
)
_FACILITY_EN = (
    r"hospitals?|clinics?|cent(?:er|re)|practice|surgery|pharmacy|infirmary"
    r"|hospice|home|institute|university|college"
    r"|school|academy|church|healthcare|health|lodge|house|manor|group"
    r"|office|facility|general|memorial|care|unit|ward|department|wing"
)
_KIND_EN = (
    r"medical|health|heart|cancer|eye|children's|family|community|care"
    r"|nursing|general|memorial|primary|high|rehabilitation|maternity|stroke|surgical"
)
_FACILITY_FR = (
    r"hôpital|clinique|chu|chr|ehpad|pharmacie|cabinet|maternité|centre"
    r" hospitalier|centre médical|centre de santé|maison de retraite"
    r"|maison de santé|polyclinique|institut|résidence|lycée|collège"
    r"|école|université|laboratoire|foyer|centre"
)


def _spoken_number_en() -> str:
    words = (
        "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
        "|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen"
        "|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred"
        "|and"
    )
    return rf"(?:(?:{words})[\s-]+)+"


def gender_of(name: str, language: str) -> str:
    """``male``, ``female`` or ``unknown`` by Faker's lists (and the full form of a nickname)."""
    import importlib

    low = name.casefold().split("-")[0]
    forms = {low} | {full for full, short in NICKNAMES.items() if low in short}
    found = set()
    for locale in ("en_US", "en_GB", "fr_FR", "es_ES", "it_IT"):
        provider = importlib.import_module(f"faker.providers.person.{locale}").Provider
        for gender in ("male", "female"):
            names = {str(n).casefold() for n in getattr(provider, f"first_names_{gender}", ())}
            if forms & names:
                found.add(gender)
        if found:
            break
    return found.pop() if len(found) == 1 else "unknown"


def is_given(word: str, language: str) -> bool:
    """Whether a word is in the lists of given names."""
    return word.casefold() in first_names(language)
