"""Streets, postcodes, towns and facilities.

Countries, states and regions are outside the contract.

Functions: :func:`places_found`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from aegis.canonical import canonical
from aegis.lexicon import cities, first_names, institutions, last_names, places
from aegis.recognise_dates import UNIT_WORDS
from aegis.recognise_names import NOT_NAMES, TITLES
from aegis.recognise_numbers import NUMBER_WORDS
from aegis.recognisers import FLAGS, Found, IsCommon, View
from aegis.spoken_tokens import words

_STREETS_EN = (
    r"street|st|road|rd|lane|ln|avenue|ave|drive|dr|court|ct|close|way"
    r"|place|pl|crescent|terrace|boulevard|blvd|square|gardens?"
    r"|hill|row|grove|mews|parade|walk|highway|circle|trail|parkway"
    r"|green|rise|view|loop|alley|quay|wharf"
)
_PLAIN_STREETS = (
    r"street|road|lane|avenue|drive|crescent|boulevard|terrace|close"
    r"|court|square|gardens|mews|grove"
)
_FACILITY_EN = (
    r"hospitals?|hosp|clinics?|medical cent(?:er|re)|med(?:ical)?\.?"
    r" c(?:en)?t(?:e)?r\.?|med|medicine|medical group|medical practice"
    r"|health cent(?:er|re)|health care|healthcare"
    r"|health(?: system| services?| partners| network)?|surgery|practice"
    r"|pharmacy|infirmary|hospice|care home|nursing home|retirement"
    r" (?:home|village)|rehab(?:ilitation)?(?: cent(?:er|re))?"
    r"|cent(?:er|re)|institute|university|college|school|academy|church"
    r"|general|memorial|methodist|family (?:practice|medicine|clinic)"
    r"|urgent care|dialysis|labs?|laborator(?:y|ies)|lodge|house|manor"
    r"|hall|ward|va|facility|office|dental|dentistry|opticians?|optical"
    r"|physio(?:therapy)?|orthop(?:a)?edics|associates|walk-in cent(?:er"
    r"|re)|children's home|day cent(?:er|re)|chemist"
)
_STRONG_FACILITY = (
    r"hospitals?|hosp|clinics?|medical cent(?:er|re)|med\.? c(?:en)?te?r\.?"
    r"|health cent(?:er|re)|infirmary|hospice|care home|nursing home"
    r"|surgery|practice|pharmacy"
    r"|healthcare|medical group|medical practice|urgent care|school"
    r"|college|university|academy|rehab(?:ilitation)? cent(?:er|re)"
    r"|cent(?:er|re)|institute"
)
_FACILITY_FR = (
    r"hôpital|clinique|chu|chr|ehpad|pharmacie|cabinet|maternité|centre"
    r" hospitalier|centre médical|centre de santé|maison de retraite"
    r"|maison de santé|polyclinique|institut|résidence|lycée|collège"
    r"|école|université|laboratoire|hospice|foyer|centre de rééducation"
    r"|centre de dialyse|hôpitaux"
)
_NOT_FACILITY = set(
    words(
        "the a an my your his her our their this that at in to from of"
        " for and or another any every each some local same new old general"
        " good best private public university community primary health"
        " care medical day night walk-in urgent family main big small nearest"
        " other teaching regional county district city state mental emergency"
        " outpatient inpatient eye skin chest heart pain sleep memory fracture"
        " breast diabetes asthma foot hearing dental children's women's"
        " cancer surgery surgical nursing high middle primary secondary"
        " elementary law nurse medicine doctor's doctors gp sexual travel"
        " student oncology cardiology neurology dermatology rheumatology"
        " orthopedic orthopaedic pediatric paediatric maternity blood vaccine"
        " covid flu testing weight ms rehab va hiv psychiatric behavioral"
        " physical therapy senior outreach specialist fertility wound stroke"
        " trauma burn transplant infusion allergy ent ob gyn obgyn tb antenatal"
        " prenatal postnatal pre-op preop specialty multidisciplinary tertiary"
        " academic rural urban large acute palliative dialysis imaging"
        " radiology research clinical vascular spine joint bone headache"
        " epilepsy movement thyroid kidney renal liver lung pulmonary respiratory"
        " cardiac gastroenterology gi endocrine hematology call if what"
        " how is are"
    )
)


def places_found(views: Sequence[View], language: str, is_common: IsCommon) -> Iterator[Found]:
    """Streets, postcodes, towns and facilities."""
    for view in views:
        finders = (
            (_streets_en, _facilities_en) if language == "en" else (_streets_fr, _facilities_fr)
        )
        for finder in finders:
            yield from finder(view, is_common)
        yield from _opened(view, language)
        yield from _towns(view, language, is_common)
        if language == "en":
            yield from _postcodes(view)


_DWELLS = (
    r"(?:live[sd]?|living|still|are you|moved|address is|house is|home is|stay(?:s|ing)?|flat is"
    r"|grew up|down|over|office is|based)"
)


def _streets_without_number(view: View) -> Iterator[Found]:
    """``I live on Mill, Pond Lane`` as a pause is heard, and ``we moved to mill pond lane``."""
    word = r"(?-i:[A-Z])[\w']+" if view.cased else r"[a-z][\w']+"
    pattern = (
        rf"\b{_DWELLS}\s+(?:up\s+|now\s+)?(?:on|at|in|to|off)\s+"
        rf"({word}(?:,?\s+{word}){{0,2}},?\s+(?:{_PLAIN_STREETS}))(?!\w)"
    )
    for match in re.finditer(pattern, view.text, FLAGS):
        names = re.findall(r"[\w']+", match[1])[:-1]
        if not any(_ordinary(w) or w.casefold() in _NOT_FACILITY for w in names):
            yield Found(view.index, *match.span(1), "LOCATION", "street", 0.9)


def _streets_en(view: View, is_common: IsCommon) -> Iterator[Found]:
    yield from _streets_without_number(view)
    number = (
        rf"(?:(?:flat|apartment|apt\.?|unit|suite)\s+[\w]+,?\s+)?(?:\d{{1,5}}[a-z]?"
        rf"|(?:(?:{NUMBER_WORDS['en']}|and)[\s-]+)*(?:{NUMBER_WORDS['en']}))(?:\s*[-/]\s*\d+"
        rf")?,?\s+"
    )
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
    words(
        "minutes minute hours hour days day weeks week months month years"
        " year times time or and to of in on the a an per more less other"
        " different long big small good bad little way that this it's was"
        " is are were have had right left mg pills tablets people kids"
        " children brothers sisters miles blocks steps flights stairs more"
        " or beers drinks cigarettes pounds feet very out up down back"
        " off over from at by for with my your his her our their so if"
        " then than but not no yes any some all"
    )
)


def _ordinary(word: str) -> bool:
    return word.casefold().strip(".,'") in _ORDINARY


def _rstrip(text: str, end: int) -> int:
    while end > 0 and text[end - 1] in " ,":
        end -= 1
    return end


def _streets_fr(view: View, is_common: IsCommon) -> Iterator[Found]:
    kinds = rf"(?:{_STREETS_FR})s?"
    number = (
        rf"(?:(?:au\s+)?(?:\d{{1,4}}|(?:(?:{NUMBER_WORDS['fr']}|et)[\s-]+)*(?:{NUMBER_WORDS['fr']}"
        rf"))(?:\s*(?:bis|ter))?,?\s+)"
    )
    link = r"(?:(?:de\s+la|de\s+l'|des|du|de|d'|aux?|la|le|les|l')\s*)*"
    name = (
        (
            r"(?:[A-ZÀ-Ý][\w'’À-ÿ-]+|\d+)(?:\s+(?:(?:de|la|le|les|du|des|et"
            r"|d')\s*)*[A-ZÀ-Ý][\w'’À-ÿ-]+){0,3}"
        )
        if view.cased
        else r"[\w'’À-ÿ-]+"
    )
    if view.cased:
        yield from _numbered_streets_fr(view, number, link)
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


def _numbered_streets_fr(view: View, number: str, link: str) -> Iterator[Found]:
    """``trois impasse du moulin``: a number, a kind and a name without a capital."""
    kinds = r"(?:rue|avenue|boulevard|impasse|allée|quai|chemin)s?"
    pattern = rf"(?<!\w)({number}){kinds}\s+(?:{link})(?<=[\s'])(?-i:[a-zà-ÿ][\w'-]{{3,}})"
    for match in re.finditer(pattern, view.text, FLAGS):
        told = re.search(r"\s(?:d[eu]s?|d'|la|l')\s*\S+$", match.group(), FLAGS)
        one = re.match(r"une?\s", match[1], FLAGS)
        if told and not one:
            yield Found(view.index, *match.span(), "LOCATION", "street", 0.85)


def _facilities_en(view: View, is_common: IsCommon) -> Iterator[Found]:
    text = view.text
    if view.cased:
        word = r"[A-Z][\w'&-]*\.?"
        pattern = (
            rf"(?<![\w'-])((?:{word}\s+)(?:(?:of|and|&|for|the|de)\s+(?={word})"
            rf"|{word}\s+){{0,4}}?)((?i:{_FACILITY_EN})(?![\w'-])(?:\s+(?:{word}\s+)?(?i:{_STRONG_FACILITY}"
            rf")(?!\w))?)"
        )
        for match in re.finditer(pattern, text):
            if _facility_name(match[1], match[2], is_common):
                start = match.start() + _leading(match[1])
                yield Found(view.index, start, match.end(), "LOCATION", "facility", 0.9)
        for match in re.finditer(
            (
                r"(?<!\w)(?:Children's|Women's) Hospital (?:of )?[A-Z]\w+(?: [A-Z]\w+)?"
                r"|(?<!\w)(?:County|City) General(?!\w)"
            ),
            text,
        ):
            yield Found(view.index, match.start(), match.end(), "LOCATION", "facility", 0.9)
        for match in re.finditer(
            r"(?<!\w)(?:[Ss]t|[Ss]aint|Mt|Mount|Our Lady)\.?\s+(?:of\s+)?[A-Z][a-z]+(?:'s)?(?!\w)"
            rf"(?:\s+(?i:(?:maternity|stroke|day|birth|children's|eye|burns|renal)\s+"
            rf"(?:unit|ward|cent(?:er|re))|{_STRONG_FACILITY})(?!\w))?",
            text,
        ):
            if re.search(r"\b(?:at|from|to|in|by|of|via)\s+(?:the\s+)?$", text[: match.start()]):
                yield Found(view.index, match.start(), match.end(), "LOCATION", "facility", 0.8)
    else:
        yield from _small_facilities(view, is_common)
        for match in re.finditer(
            rf"(?<!\w)((?:[a-z][\w'.-]*\s+){{1,3}}?)({_STRONG_FACILITY})(?!\w)", text, FLAGS
        ):
            kept = _name_tail(match[1], is_common)
            if kept:
                yield Found(
                    view.index, match.end(1) - len(kept), match.end(), "LOCATION", "facility", 0.75
                )


def _small_facilities(view: View, is_common: IsCommon) -> Iterator[Found]:
    """``at pine hollow clinic`` without capitals: no article, or two words that name it."""
    kinds = (
        r"hospitals?|clinics?|medical cent(?:er|re)|health cent(?:er|re)|infirmary|hospice"
        r"|care home|nursing home|pharmacy|institute|(?:diagnostic|heart|cancer|eye|spine) "
        r"cent(?:er|re)"
    )
    pattern = (
        r"(?<!\w)(?:at|from|to|in|near|by)\s+(the\s+)?((?:[a-z][\w'-]*\s+){1,3}?)"
        rf"({kinds})(?!\w)"
    )
    for match in re.finditer(pattern, view.text):
        names = match[2].split()
        if any(_ordinary(w) or w in NOT_NAMES or w in _FUNCTION for w in names):
            continue
        telling = [w for w in names if w not in _NOT_FACILITY]
        if names[0] in _NOT_FACILITY or len(telling) < (2 if match[1] else 1):
            continue
        if len(names) == 1 and is_common(names[0]):
            continue
        yield Found(view.index, match.start(2), match.end(), "LOCATION", "facility", 0.8)


_FUNCTION = frozenset(
    words(
        "be been being go going get see take give which who what about into onto only very really"
        " every each different nearest closest specialist special sub day these those such here"
        " there when where while because after before until since own next last first second third"
        " single whole usual actual certain couple several many much work working come coming"
    )
)


def _leading(words: str) -> int:
    """Characters of leading words that do not belong to a name ("The", "At")."""
    match = re.match(
        (
            r"(?:(?:The|At|In|From|To|And|My|Our|For|So|Is|If|When|Has|Did|Since"
            r"|After|Near|Via|Is|Was|With|By|Any)\s+)+"
        ),
        words,
    )
    return match.end() if match else 0


def _facility_name(words: str, head: str, is_common: IsCommon) -> bool:
    """Whether the words before a facility noun name it: one of them is no ordinary qualifier."""
    names = [w.casefold().strip(".,") for w in words[_leading(words) :].split()]
    if re.match(TITLES["en"] + r"\s", words[_leading(words) :], FLAGS):
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
    return strong or head[0].isupper()


def _name_tail(words: str, is_common: IsCommon) -> str:
    """The longest tail of words that are not ordinary, for text without case."""
    parts = re.findall(r"\S+\s+", words)
    kept: list[str] = []
    for part in reversed(parts):
        word = part.strip().casefold()
        if (
            word.endswith("-")
            or word in _NOT_FACILITY
            or (is_common(word) and not kept)
            or (is_common(word) and word not in first_names("en"))
        ):
            break
        kept.insert(0, part)
    return "".join(kept)


_OPENED = {
    "en": rf"^\W*(?:(?:hello|hi|good (?:morning|afternoon|evening)),?\s+)?(?:this is\s+)?"
    rf"((?:[\w'&-]+\s+){{1,3}}(?:{_STRONG_FACILITY}|reception))"
    r"[,.]?\s+(?:good (?:morning|afternoon|evening)|hello|this is|[A-Z]\w+ speaking"
    r"|how can|how may)",
    "fr": rf"^\W*(?:allô,?\s+)?((?:{_FACILITY_FR})s?\s+(?:de la|de l'|des|du|de|d')\s*[\w'-]+)"
    r"\s*,.*?\b(?:bonjour|bonsoir|j'écoute)",
}


def _opened(view: View, language: str) -> Iterator[Found]:
    """The place that answers a call: ``Elm House Surgery, good morning``."""
    for match in re.finditer(_OPENED[language], view.text, FLAGS):
        names = [w.casefold() for w in re.findall(r"[\w'-]+", match[1])]
        named = [w for w in names if w not in _NOT_FACILITY and not _ordinary(w)]
        if len(named) >= 2 and not {"i", "you", "we", "i'm"} & set(names):
            yield Found(view.index, *match.span(1), "LOCATION", "facility", 0.85)


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
            named = word in last_names("fr") and re.match(
                r"(?:clinique|hôpital|chu|lycée)\s", match[0]
            )
            if (
                (len(word) > 2 and not is_common(word))
                or named
                or re.search(r"saint", match.group(), FLAGS)
            ):
                yield Found(view.index, match.start(), match.end(), "LOCATION", "facility", 0.7)


@lru_cache(maxsize=1)
def _town_pattern() -> re.Pattern[str]:
    terms = sorted(cities() | institutions(), key=len, reverse=True)
    return re.compile(
        r"(?<![\w'-])(?:" + "|".join(re.escape(t) for t in terms) + r")(?![\w-])", FLAGS
    )


_TOWN_CUE = {
    "en": (
        r"\b(?:in|from|to|near|at|of|around|outside|live[sd]?|via|through"
        r"|visit(?:ed|ing)?|leaving|and|hospital|clinic)\s+(?:downtown\s+"
        r"|north\s+|south\s+|east\s+|west\s+)?$"
    ),
    "fr": r"(?:\b(?:à|de|vers|près de|sur|depuis|habite|par|pour|et|dans|du|au|en)\s+|d')$",
}


_POSTCODE_SAID = (
    r"(?<![\w'])(?:[A-Z]{1,2}|[A-Z][\s,]+[A-Z])[\s,]+(?:\d{1,2}|NUM)[\s,]+(?:\d|NUM"
    r")[\s,]*(?:[A-Z]{2}|[A-Z][\s,]+[A-Z])(?![\w'])"
)


_SHORT_WORDS = frozenset(
    words(
        "be in to at of on or is it he me my we us so no go do as an am by if up i'm uh um ah oh"
        " er eh mm hm"
    )
)


def _postcodes(view: View) -> Iterator[Found]:
    """British postcodes said with numbers in words: ``SW nineteen, one E Z``."""
    number = (
        rf"(?:(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)[\s-]+(?:{UNIT_WORDS}"
        rf")|{NUMBER_WORDS['en']})"
    )
    for match in re.finditer(_POSTCODE_SAID.replace("NUM", number), view.text, FLAGS):
        value = canonical(match.group(), "en").replace(" ", "")
        ends = re.findall(r"[^\W\d_]+", view.text[match.start() : match.end()].casefold())
        if {ends[0], ends[-1]} & _SHORT_WORDS:
            continue
        if re.fullmatch(r"[a-z]{1,2}\d{1,2}[a-z]?\d[a-z]{2}", value) and value[-2:] not in (
            "mg",
            "am",
            "pm",
            "ml",
            "kg",
        ):
            yield Found(view.index, match.start(), match.end(), "LOCATION", "postcode", 0.92)


def _towns(view: View, language: str, is_common: IsCommon) -> Iterator[Found]:
    text = view.text
    for match in _town_pattern().finditer(text):
        word = match.group().casefold()
        if (
            view.cased
            and not match.group()[0].isupper()
            and match.group()[:3] not in ("the", "la ")
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
            or re.match(
                r"\s+(?:branch|office|area|clinic|facility|campus|site)\b", text[match.end() :]
            )
            or (
                cue
                and re.search(
                    r"\b(?:live[sd]?|moved|habite\w*|born|grew up)\b", text[: match.start()], FLAGS
                )
            )
        ):
            yield Found(view.index, match.start(), match.end(), "LOCATION", "town", 0.85)
    yield from _named_places(view, language, is_common)
    moved = {
        "en": (
            r"\b(?:(?:i'm|we're|they're|he's|she's|that's|it's|it is) in\s+|(?:live[sd]?|living"
            r"|moved|grew up|born|resid(?:es?|ing)|staying|based|travel(?:led"
            r"|ed)?|drove|flew|home)\s+(?:over\s+|back\s+|out\s+)?(?:in|to|from"
            r"|near|at)\s+)"
        ),
        "fr": (
            r"\b(?:habit\w+|vi[st]\w*|née?|résid\w+|déménag\w+|réside\w*|logée?"
            r"|viens|venue?|demeurant)\s+(?:(?:à|près de|vers|de)\s+|d')"
        ),
    }[language]
    name = (
        r"((?-i:[A-ZÀ-Ý])[\w'À-ÿ-]+(?:[\s-]+(?-i:[A-ZÀ-Ý])[\w'À-ÿ-]+){0,2})"
        if view.cased
        else r"([^\W\d][\w'-]{3,})"
    )
    for match in re.finditer(moved + name, text, FLAGS):
        word = match[1].casefold()
        if word not in places() and (view.cased or not is_common(word)):
            yield Found(view.index, match.start(1), match.end(1), "LOCATION", "town", 0.8)


_LANDMARKS = (
    r"Park|Hill|Bridge|Station|Common|Beach|Lake|Forest|Mall|Market|Airport|Stadium|Island|Valley"
    r"|Heights|Village|Estate|Farm|Woods|County|Town|City|Square|Harbour|Harbor|Bay|Castle|Abbey"
    r"|Falls|Springs|Rapids|Creek|Ridge|Mills|Cove|Crossing|Hollow|Meadows|Junction|Point|Fields"
)


def _named_places(view: View, language: str, is_common: IsCommon) -> Iterator[Found]:
    """Places that only their surroundings give away: "at X", "near Y Park", after a street."""
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
        first = re.sub(r"'s$", "", match[1].split()[0].casefold())
        if (
            first not in NOT_NAMES
            and first not in places()
            and match[1].casefold() not in places()
        ):
            yield Found(view.index, match.start(1), match.end(1), "LOCATION", "after street", 0.84)


def _named_places_en(view: View, word: str, is_common: IsCommon) -> Iterator[Found]:
    text = view.text
    near = r"\b(?:near|at|in|by|to|from|around|on|of|outside)\s+(?:the\s+)?"
    for match in re.finditer(rf"{near}({word}(?:\s+{word})?\s+(?:{_LANDMARKS}))(?!\w)", text):
        if match[1].split()[0].casefold() not in _NOT_FACILITY:
            yield Found(view.index, match.start(1), match.end(1), "LOCATION", "landmark", 0.85)
    for match in re.finditer(rf"\b(?:at|to|from|in)\s+the\s+(Royal\s+{word})(?!\w)", text):
        yield Found(view.index, match.start(1), match.end(1), "LOCATION", "facility", 0.85)
    treated = (
        r"(?:put in|seen|treated|admitted|operated|surgery|operation|stayed"
        r"|stay|inpatient|ward|born|work\w*|trained|scan|mri|clinic|referred"
        r"|appointment|transferred|was|were|been)"
    )
    for match in re.finditer(
        rf"\b{treated}\b[^.?!]{{0,25}}?\b(?:at|to|in)\s+the\s+({word}(?:\s+{word}){{0,2}})(?!\w)",
        text,
    ):
        words = match[1].casefold().split()
        if (
            not match[1].isupper()
            and not all(w in _NOT_FACILITY or w in places() for w in words)
            and match[1].casefold() not in places()
            and len(words) > 1
        ):
            yield Found(view.index, match.start(1), match.end(1), "LOCATION", "facility", 0.82)
    for match in re.finditer(rf"\bat\s+({word}(?:\s+{word}){{0,2}})(?!\w)", text):
        if _unknown_place(match[1], is_common):
            yield Found(view.index, match.start(1), match.end(1), "LOCATION", "at", 0.8)


_STREETS_FR = (
    r"rue|avenue|boulevard|place|chemin|impasse|allées?|quai|route|square|cours|passage|résidence"
    r"|lotissement|faubourg|villa"
)


def _named_places_fr(view: View, word: str, is_common: IsCommon) -> Iterator[Found]:
    bodies = (
        "équipe|hôpital|ville|urgences|gare|pompiers|centre|smur|mairie|région|commune|village"
    )
    cue = rf"(?<!\w)(?:à|vers|près de|(?:{bodies}) de|(?:{bodies}) d')\s*"
    name = rf"({word}(?:-(?:\w+-)*{word})?)(?!\w)"
    for match in re.finditer(cue + name, view.text):
        if _unknown_place(match[1], is_common):
            yield Found(view.index, match.start(1), match.end(1), "LOCATION", "at", 0.82)


def _unknown_place(name: str, is_common: IsCommon) -> bool:
    """Whether capitalised words are no ordinary words, no country and no given names."""
    words = [w.casefold() for w in re.findall(r"[^\W\d_][\w'-]*", name)]
    if name.casefold() in places() or words[0] in places() or words[0] in NOT_NAMES:
        return False
    people = all(w in first_names("en") or w in first_names("fr") for w in words)
    if len(words) > 1 and not people and not any(w in NOT_NAMES for w in words):
        return not name.isupper()
    return not people and not is_common(words[0]) and not name.isupper()
