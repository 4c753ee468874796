"""Personal names after titles, introductions, kinship and greetings, in answers, and spelled.

Titles stay outside the span. In text with capitals a name needs one.

Functions: :func:`names_found`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from aegis.canonical import canonical
from aegis.lexicon import NICKNAME_FORMS, cities, first_names, last_names, places
from aegis.recognise_numbers import NUMBER_WORDS
from aegis.recognisers import FLAGS, Found, IsCommon, View
from aegis.spoken_tokens import words

TITLES = {
    "en": (
        r"(?:mr|mrs|ms|miss|mister|missus|mx|dr|doctor|doc|nurse|prof|professor"
        r"|sir|madam|sister|father|reverend|rev|auntie|aunt|uncle|captain"
        r"|sergeant|officer|matron|midwife)\.?"
    ),
    "fr": (
        r"(?:m\.|mr\.?|mme|mlle|monsieur|madame|mademoiselle|docteur|dr\.?"
        r"|professeur|pr\.?|maître|infirmière|infirmier|tante|tonton|oncle)"
    ),
}
_CUES = {
    "en": r"(?:my (?:full |first |last |maiden |family )?name is|my name's"
    r"|name is|(?:he|she|who|son|daughter|doctor|nurse|man|woman|lady"
    r"|guy|friend)(?:'s| is| was)? called|(?:her|his|the|your|its?|patient's"
    r"|patient) (?:full |first |last )?name(?:'s| is| was)|named|called"
    r"|call me|calls me|"
    r"i'm called|this is|it's|i am|i'm|goes by|known as|i'm speaking"
    r" (?:to|with)|speaking (?:to|with)|am i speaking (?:to|with)|name[:,]?"
    r"|"
    r"(?:my|his|her|your|our|the) (?:\w+[- ])?(?:son|daughter|wife|husband"
    r"|mother|father|mum|mom|dad|brother|sister|partner|friend|neighbou?r"
    r"|cousin|nephew|niece|uncle|aunt|"
    r"grandson|granddaughter|carer|boyfriend|girlfriend|boss|grandma"
    r"|grandpa|fiancée?|gp|doctor|nurse|colleague|roommate|caregiver"
    r"|boy|girl|baby|dog|cat),?)",
    "fr": r"(?:je m'appelle|je suis|mon nom(?: de famille)?(?: c'est| est)?"
    r"|mon prénom(?: c'est| est)?|(?:il|elle) s'appelle|s'appelle|nommée?"
    r"|appelez-moi|on m'appelle|m'appelle|c'est|ici|"
    r"au nom de|nom(?: de famille)?[ :,]*(?:c'est|est)?|prénom[ :,]*(?:c'est"
    r"|est)?|(?:mon|ma|son|sa|votre|notre|le|la) (?:\w+ )?(?:fils|fille"
    r"|femme|mari|mère|père|frère|sœur|soeur|compagne|compagnon|amie?"
    r"|voisine?|"
    r"cousine?|neveu|nièce|oncle|tante|conjointe?|épouse|époux|petit-fils"
    r"|petite-fille|grand-mère|grand-père|copine?|collègue|maman|papa"
    r"|médecin traitant|médecin),?)",
}
_STRONG_CUE = {
    "en": (
        r"name(?:'s| is| was|[:,])?$|(?:he|she|who|son|daughter|doctor|nurse"
        r"|man|woman|lady|guy|friend)\b.* called,?$|i'm called$|calls? me$"
        r"|named$|known as$|goes by$|speaking (?:to|with)$"
    ),
    "fr": r"appell\w+(?:-moi)?$|nom\b|prénom|nommée?$",
}
_HOMOGRAPHS = frozenset(
    ["will", "may", "april", "june", "august", "mars", "mark", "juin", "octave"]
)
_APPOSED = {
    "en": r"(?<![\w'])([^\W\d_]{3,}),? (?:my|his|her) (?:\w+ )?(?:brother"
    r"|sister|son|daughter|wife|husband|mother|father|mum|mom|dad"
    r"|partner|neighbou?r|cousin|uncle|aunt|carer)\b",
    "fr": (
        r"(?:(?<![\w'])|(?<=\b[dl]'))([^\W\d_]{3,}),? (?:mon|ma|son|sa|notre) (?:\w+ )?(?:frère"
        r"|sœur|fils|fille|femme|mari|mère|père|compagnon|compagne|voisine?)\b"
    ),
}
_KIN = {"en": r"(?:my|his|her|your|our|the)\b", "fr": r"(?:mon|ma|son|sa|votre|notre)\b"}
_GREET = {
    "en": r"(?:hi|hello|hey|morning|good morning|good afternoon|good evening"
    r"|afternoon|evening|thanks|thank you|thank you very much|bye|goodbye"
    r"|bye-bye|bye bye|okay|ok|alright|all right|well|so|yes|sorry|right"
    r"|now|dear|welcome|care|you|cheers|"
    r"later|soon|day|here|there|please|luck|weeks?|congratulations)",
    "fr": (
        r"(?:bonjour|bonsoir|merci|au revoir|salut|d'accord|alors|voilà"
        r"|bien|oui|non|cher|chère|allô|allo)"
    ),
}
NOT_NAMES = set(
    words(
        "i i'm i'll i've i'd ok okay yes no yeah mm hmm uh um oh ah so"
        " well and but the a an my your his her it it's that this there"
        " they we you he she what when where why how who which is are was"
        " were do does did have has had can could would should will shall"
        " may might must not don't monday tuesday wednesday thursday friday"
        " saturday sunday january february march april june july august"
        " september october november december good morning afternoon evening"
        " hello hi bye thanks thank please sorry right left just like also"
        " maybe actually doctor dr mr mrs ms miss nurse sir madam mum mom"
        " dad mummy daddy mama papa grandma grandpa god jesus christ lord"
        " christmas easter gp er a&e icu mri ct nhs er ed iv im bp hr ecg"
        " ekg uti copd gerd ibs hiv std sti je tu il elle on nous vous"
        " ils elles le la les un une des de du et ou mais donc or ni car"
        " ce cette ça c'est oui non bonjour bonsoir merci lundi mardi mercredi"
        " jeudi vendredi samedi dimanche janvier février mars avril mai"
        " juin juillet août septembre octobre novembre décembre alors voilà"
        " bien très d'accord monsieur madame docteur mademoiselle samu"
        " smur heu euh hein ben bah beh bon hum mhm mhmm mmm hmm yep yup"
        " nope nah uhh umm ouais ok okay wow oops huh allo allô said says"
        " told samu du covid sw nw se ne"
    )
)


def _name_word(view: View, word: str, is_common: IsCommon, trusted: bool) -> bool:
    """Whether a word can be (part of) a personal name here."""
    low = word.casefold().strip(".'")
    homograph = trusted and view.cased and word[0].isupper() and low in _HOMOGRAPHS
    if (low in NOT_NAMES and not homograph) or len(low) < 2 or any(c.isdigit() for c in word):
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
    title = re.compile(rf"(?<![\w'])({TITLES[language]})\s+(?=[^\W\d_])", FLAGS)
    cue = re.compile(rf"(?<!\w)({_CUES[language]})(?:\s+|\s*[:,]\s+)(?=[^\W\d_])", FLAGS)
    greet = re.compile(rf"(?<!\w){_GREET[language]},?\s+(?=[^\W\d_])", FLAGS)
    for view in views:
        for match in title.finditer(view.text):
            kin = re.match(
                (
                    r"(?:father|sister|sir|madam\b|doc\b|nurse|midwife|officer|infirmi"
                    r"|tante|oncle|uncle|aunt)"
                ),
                match[1],
                FLAGS,
            )
            initial = re.match(r"[A-Z]\.\s?(?=[A-Z])", view.text[match.end() :])
            after = match.end() + (initial.end() if initial else 0)
            found = _name_after(view, after, is_common, trusted=not kin)
            if found and (view.cased or not kin):
                yield Found(view.index, match.end(), found[1], "NAME", "title", 0.95)
            elif (
                view.cased and not kin and (small := _small_name(view, match, language, is_common))
            ):
                yield Found(view.index, *small, "NAME", "title", 0.9)
            elif re.match(r"[A-HJ-Z]\.(?=\W|$)", view.text[match.end() :]) and not kin:
                yield Found(view.index, match.end(), match.end() + 2, "NAME", "title", 0.9)
        for match in cue.finditer(view.text):
            strong = re.search(_STRONG_CUE[language], match[1], FLAGS) is not None
            kinship = re.match(_KIN[language], match[1], FLAGS) is not None
            found = _name_after(view, match.end(), is_common, trusted=strong)
            if found:
                word = view.text[found[0] : found[1]].split()[0].casefold()
                told = (
                    kinship
                    and view.cased
                    and (word in first_names(language) or word in NICKNAME_FORMS)
                )
                yield Found(view.index, *found, "NAME", "cue", 0.9 if strong or told else 0.6)
        for match in greet.finditer(view.text):
            found = _name_after(view, match.end(), is_common, trusted=False, most=2)
            if found:
                yield Found(view.index, *found, "NAME", "greeting", 0.55)
        for match in re.finditer(_APPOSED[language], view.text, FLAGS):
            capital = match[1][0].isupper() or not view.cased
            if (
                capital
                and match[1].casefold() in (first_names(language) | NICKNAME_FORMS) - NOT_NAMES
            ):
                yield Found(view.index, match.start(1), match.end(1), "NAME", "cue", 0.9)
        yield from _listed(view, language, is_common)
    yield from _answers(views, language, is_common)


def _small_name(
    view: View, title: re.Match[str], language: str, is_common: IsCommon
) -> tuple[int, int] | None:
    """A listed family name in small letters after a title: ``je suis madame petit,``."""
    word = re.match(r"[^\W\d_]{3,}(?![\w'-])", view.text[title.end() :])
    if not word or re.match(r"d", title[1], FLAGS):
        return None
    low = word.group().casefold()
    if low not in last_names(language) or low in NOT_NAMES:
        return None
    before, after = view.text[: title.start()], view.text[title.end() + word.end() :]
    said = re.search(
        r"\b(?:suis|c'est|appelle|nom|name is|i'm|this is|it's|hello|hi|bonjour)\s+$",
        before,
        FLAGS,
    )
    if is_common(low) and not said and not re.match(r"\s*(?:[,.?!]|$)", after):
        return None
    return title.end(), title.end() + word.end()


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
    pattern = (
        r"(?:(?<![\w'])|(?<=\b[dlDL]'))([A-ZÀ-Ý][a-zà-ÿ]+(?:-[A-ZÀ-Ý][a-zà-ÿ]+)?)((?:\s+[A-Z]\.(?=\W|$))?"
        r"(?:\s+(?:(?:O'|Mc|Mac|De|d')?[A-ZÀ-Ý][a-zà-ÿ]+(?:-[A-ZÀ-Ý][a-zà-ÿ]+)?)"
        r"|\s+[A-Z]\.?(?=[\s,;?!)]|$))?)"
    )
    for match in re.finditer(pattern, view.text):
        word = match[1].casefold()
        if word.split("-")[0] not in first_names(language) or word in NOT_NAMES:
            continue
        follows = match[2].strip()
        common = is_common(word)
        last = follows.split()[-1] if follows else ""
        if last and (last.casefold() in NOT_NAMES or re.fullmatch(r"I", last)):
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
    "en": (
        r"\b(?:your|the|her|his|patient's|full|first|last|sur|middle|maiden)\s*-?(?:full"
        r" |first |last )?name\b|\bwho (?:am i|is|are|was|do|did)\b|what"
        r" (?:do|should|can) (?:i|we) call|what's (?:he|she|it) called|spell"
        r" (?:that|it|your)"
    ),
    "fr": (
        r"\b(?:votre|vos|son|le|ses) (?:nom|prénom|noms)\b|comment (?:vous"
        r" appelez|s'appelle|tu t'appelles)|vous appelez comment|épele[rz]"
        r"|qui est"
    ),
}


_PRESENTS = {"en": r"\b(?:i'm|it's|this is|name is|name's)", "fr": r"\b(?:c'est|je suis)"}


def _answers(views: Sequence[View], language: str, is_common: IsCommon) -> Iterator[Found]:
    """Names in short answers to a question for a name, and names spelled letter by letter."""
    spelled = re.compile(
        r"(?<![\w'])(?:[A-Za-zÀ-ÿ](?:\s+(?:as in|for|comme)\s+\w+)?(?:\s*[-,.]\s*"
        r"|\s+)){2,}[A-Za-zÀ-ÿ](?:\s+(?:as in|for|comme)\s+\w+)?(?![\w'])"
    )
    number = re.compile(rf"\W*(?:\d|(?:{NUMBER_WORDS[language]})(?!\w))", FLAGS)
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
                and not re.search(r"\w-\s", match.group())
                and not number.match(view.text[match.end() :])
                and len(set(letters)) > 1
                and letters not in ("ecg", "ekg", "mri", "uti", "nhs", "irm", "samu")
            ):
                yield Found(view.index, match.start(), match.end(), "NAME", "spelled", 0.85)
        if not asked or len(view.text.split()) > 14:
            continue
        said = re.search(_PRESENTS[language] + r"\s+([^\W\d_]+)", view.text, FLAGS)
        if said and said[1].casefold() in first_names(language) - NOT_NAMES:
            yield Found(view.index, said.start(1), said.end(1), "NAME", "answer", 0.85)
        for match in re.finditer(r"(?<![\w'])[^\W\d_][\w'-]+", view.text):
            found = _name_after(view, match.start(), is_common, trusted=False)
            placed = re.search(
                r"\b(?:à|de|rue|chemin|in|at|from|near|to|on)\s+$", view.text[: match.start()]
            )
            if found and found[0] == match.start() and not placed:
                yield Found(view.index, *found, "NAME", "answer", 0.85)
