"""Word lists that tell an identifier from a clinical or an ordinary word.

Unit: one term or one text. Lists are small files under ``aegis/data`` (sources in
``SOURCES.md`` there) and Faker's personal names. Terms are compared without case
and with straight apostrophes; spans are characters ``[start, end)``.

Functions: :func:`first_names`, :func:`last_names`, :func:`words_en`, :func:`places`,
:func:`cities`, :func:`institutions`, :func:`is_drug`, :func:`protected_spans`.
"""

from __future__ import annotations

import gzip
import importlib
import re
from functools import lru_cache
from pathlib import Path

from aegis.spoken_tokens import words

DATA = Path(__file__).parent / "data"
_LOCALES = {
    "en": "en_US en_GB en_IE en_IN en_NZ es_ES de_DE it_IT pl_PL",
    "fr": "fr_FR fr_CA fr_CH fr_BE es_ES it_IT pl_PL en_GB",
}
_STEMS = re.compile(
    r"(?:pril|prilat|sartan|olol|alol|statine?|azoles?|cilline?|mycine?|floxacine?|prazole|tidine"
    r"|gliptine?|gliflozine?|glutide|tinib|ciclib|parib|zumab|ximab|tuximab|lizumab|cept|azepam"
    r"|zolam|triptan|setron|caine|dipine|parine?|xaban|gatran|grel|thiazide|semide|lukast|terol"
    r"|tropium|sonide|olone|asone|cortisone|oxetine|aloprame?|pramine|triptyline|azine|peridone"
    r"|piprazole|tiapine|zapine|gabaline?|gabapentine?|racetam|barbital|profene?|coxib|oxicam"
    r"|fenac|codone|morphone|fentanil|fentanyl|naloxone|formine?|glitazone|bicarbonate|fibrate"
    r"|dronate|vudine|tegravir|navir|ciclovir|cyclovir|mivir|quine|conazole|bendazole|cycline"
    r"|oxacine?|sulfa\w*|ephrine|statine|tropine|vastatine?|spirone|calciferol|cillines)$"
)
_HEADS = words(
    "disease diseases syndrome syndromes sign signs test tests score"
    " scores scale criteria fracture palsy contracture nodes node body"
    " bodies stain gastritis ulcer esophagus oesophagus thyroiditis"
    " lymphoma sarcoma tumor tumour cyst chorea reflex manoeuvre maneuver"
    " position catheter procedure operation incision ataxia dementia"
    " purpura angina spots tube tubes tendon classification stage grade"
    " phenomenon anemia anaemia hernia duct diverticulum symptoms medication"
    " meds nurse clinic diet patients patient tablets hypothesis crisis"
    " esophagitis level levels coma virus fever rash muscular dystrophy"
    " neuroma solution lactate smear monitor"
)
_LEADS_FR = "maladie syndrome signe test score échelle manœuvre corps tendon fracture position"
_HAVING = re.compile(
    r"(?:\b(?:have|has|had|having|with|of|got|for|from|causes?|called"
    r"|possible|early|mild|it's|be|like"
    r"|is|no|or|and|the|a|de|du|d'|un|une|early-onset|against|treat"
    r"|treats|suspected|called)\s+|d')$"
)
_TITLE_BEFORE = re.compile(
    r"\b(?:mr|mrs|ms|miss|mister|missus|dr|doctor|nurse|professor|prof|sister|monsieur|madame|mme"
    r"|mlle|mademoiselle|docteur|professeur)\.?\s+$",
    re.IGNORECASE,
)


def straight(text: str) -> str:
    """Curly apostrophes, special hyphens and spaces made plain, one for one."""
    table = {ord(c): "'" for c in "’‘ʼ´`"} | {ord(c): "-" for c in "‐‑‒–—−"}
    return text.translate(table | {ord(c): " " for c in "\u00a0\u202f\u2009\u2007"})


def _read_lines(name: str) -> list[str]:
    path = DATA / name
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    lines = raw.decode("utf-8").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


@lru_cache(maxsize=1)
def words_en() -> frozenset[str]:
    """Ordinary English words, lower case."""
    return frozenset(_read_lines("words_en.txt.gz"))


@lru_cache(maxsize=4)
def _names(language: str, attributes: tuple[str, ...]) -> frozenset[str]:
    found: set[str] = set()
    for locale in _LOCALES[language].split():
        provider = importlib.import_module(f"faker.providers.person.{locale}").Provider
        for attribute in attributes:
            for name in getattr(provider, attribute, ()):
                found.update(part.casefold() for part in re.split(r"[ -]", name) if len(part) > 2)
    return frozenset(found)


def first_names(language: str) -> frozenset[str]:
    """Given names, case-folded, of the language and its neighbours."""
    extra = _NICKNAMES if language == "en" else frozenset[str]()
    return _names(language, ("first_names", "first_names_male", "first_names_female")) | extra


def last_names(language: str) -> frozenset[str]:
    """Family names, case-folded."""
    return _names(language, ("last_names",))


NICKNAMES: dict[str, tuple[str, ...]] = {
    "william": ("will", "bill", "billy", "willie"),
    "john": ("johnny", "jack", "jonny"),
    "robert": ("bob", "bobby", "rob", "robbie"),
    "richard": ("rick", "ricky", "dick", "rich", "richie"),
    "james": ("jim", "jimmy", "jamie"),
    "thomas": ("tom", "tommy"),
    "michael": ("mike", "mikey", "mick"),
    "elizabeth": ("liz", "lizzie", "beth", "betty", "eliza", "lizzy"),
    "margaret": ("maggie", "peggy", "meg", "margie", "marge"),
    "katherine": ("kate", "katie", "kathy", "kat", "kitty"),
    "catherine": ("cate", "cathy", "kate", "katie"),
    "edward": ("ed", "eddie", "ted", "teddy", "ned"),
    "charles": ("charlie", "chuck", "chas"),
    "joseph": ("joe", "joey"),
    "anthony": ("tony",),
    "andrew": ("andy", "drew"),
    "daniel": ("dan", "danny"),
    "david": ("dave", "davey"),
    "samuel": ("sam", "sammy"),
    "benjamin": ("ben", "benny"),
    "christopher": ("chris", "kit"),
    "matthew": ("matt", "matty"),
    "patrick": ("pat", "paddy"),
    "patricia": ("pat", "patty", "trish", "tricia"),
    "susan": ("sue", "susie", "suzie"),
    "deborah": ("deb", "debbie", "debby"),
    "barbara": ("barb", "babs"),
    "jennifer": ("jen", "jenny", "jenni"),
    "rebecca": ("becky", "becca"),
    "victoria": ("vicky", "tori"),
    "dorothy": ("dot", "dottie", "dolly"),
    "alexander": ("alex", "alec", "sandy", "xander"),
    "nicholas": ("nick", "nicky"),
    "stephen": ("steve", "stevie"),
    "steven": ("steve", "stevie"),
    "gregory": ("greg",),
    "kenneth": ("ken", "kenny"),
    "ronald": ("ron", "ronnie"),
    "donald": ("don", "donnie"),
    "timothy": ("tim", "timmy"),
    "albert": ("al", "bert", "bertie"),
    "frederick": ("fred", "freddie", "freddy"),
    "henry": ("harry", "hank"),
    "harold": ("harry", "hal"),
    "arthur": ("art", "artie"),
    "theodore": ("ted", "teddy", "theo"),
    "isabella": ("bella", "izzy"),
    "amelia": ("amy", "millie"),
    "abigail": ("abby", "gail"),
    "sandra": ("sandy",),
    "cynthia": ("cindy",),
    "pamela": ("pam",),
    "eleanor": ("ellie", "nell", "nora"),
    "josephine": ("jo", "josie"),
    "frances": ("fran", "frankie"),
    "francis": ("frank", "frankie"),
    "franklin": ("frank",),
    "lawrence": ("larry",),
    "gerald": ("gerry", "jerry"),
    "walter": ("walt", "wally"),
    "jacqueline": ("jackie", "jacquie"),
    "valerie": ("val",),
    "dominique": ("dom", "domi"),
    "frédéric": ("fred", "frédo"),
    "philippe": ("phil",),
    "christophe": ("chris", "tophe"),
    "sébastien": ("seb",),
    "alexandre": ("alex",),
    "élisabeth": ("babette", "lisa"),
    "marguerite": ("margot",),
    "madeleine": ("mado",),
    "nicolas": ("nico",),
    "benoît": ("ben",),
    "thierry": ("titi",),
    "gabrielle": ("gaby",),
    "joséphine": ("jo",),
}
NICKNAME_FORMS = frozenset(short for forms in NICKNAMES.values() for short in forms)
_NICKNAMES = NICKNAME_FORMS - {
    "will", "dick", "rich", "art", "pat", "dot", "sue", "kit", "rob", "don", "drew", "al", "ed",
    "jack", "hank", "frank", "chuck", "ned", "val", "barb", "jo", "dan", "dom", "titi",
}  # fmt: skip


def one_apart(a: str, b: str) -> bool:
    """Whether two words differ by at most one letter changed, added or left out."""
    if a == b:
        return True
    if abs(len(a) - len(b)) > 1:
        return False
    short, long = sorted((a, b), key=len)
    for k in range(len(long)):
        if len(short) == len(long) and short[:k] + long[k] + short[k + 1 :] == long:
            return True
        if len(short) < len(long) and long[:k] + long[k + 1 :] == short:
            return True
    return False


@lru_cache(maxsize=1)
def places() -> frozenset[str]:
    """Countries, nationalities, states and regions: outside the contract."""
    return frozenset(straight(line).casefold() for line in _read_lines("places.txt"))


@lru_cache(maxsize=1)
def cities() -> frozenset[str]:
    """Large towns."""
    return frozenset(straight(line).casefold() for line in _read_lines("cities.txt"))


@lru_cache(maxsize=1)
def institutions() -> frozenset[str]:
    """Hospitals known by a short name."""
    return frozenset(straight(line).casefold() for line in _read_lines("institutions.txt"))


@lru_cache(maxsize=1)
def drugs() -> frozenset[str]:
    """Drug and brand names of one word."""
    return frozenset(_read_lines("drugs.txt.gz"))


@lru_cache(maxsize=65536)
def is_drug(word: str) -> bool:
    """Whether a word is a known drug, has a drug's stem, or is one letter off a long drug name."""
    word = word.casefold()
    if word in drugs():
        return True
    if word in words_en() or word in _people():
        return False
    if len(word) >= 7 and _STEMS.search(word) is not None:
        return True
    return len(word) >= 8 and any(form in drugs() for form in _one_off(word))


@lru_cache(maxsize=1)
def _people() -> frozenset[str]:
    return first_names("en") | last_names("en") | first_names("fr") | last_names("fr")


def _one_off(word: str) -> set[str]:
    """Spellings one deletion, swap or vowel change away (ASR garbles)."""
    cut = {word[:i] + word[i + 1 :] for i in range(len(word))}
    swap = {word[:i] + word[i + 1] + word[i] + word[i + 2 :] for i in range(len(word) - 1)}
    letters = "aeiouyslntrcm"
    change = {word[:i] + c + word[i + 1 :] for i in range(1, len(word)) for c in letters}
    add = {word[:i] + c + word[i:] for i in range(1, len(word) + 1) for c in letters}
    return cut | swap | change | add


@lru_cache(maxsize=1)
def _eponyms() -> re.Pattern[str]:
    terms = sorted((straight(t) for t in _read_lines("eponyms.txt")), key=len, reverse=True)
    parts = [re.escape(t[:-1]) + r"\w*" if t.endswith("*") else re.escape(t) for t in terms]
    return re.compile(r"(?<!\w)(?:" + "|".join(parts) + r")(?!\w)", re.IGNORECASE)


_HEAD_AFTER = re.compile(r"^'?s?\s+(?:\w+\s+)?(?:" + "|".join(_HEADS) + r")\b", re.IGNORECASE)
_HEAD_BEFORE = re.compile(
    r"\b(?:"
    + "|".join(_LEADS_FR.split())
    + r")s?\s+(?:de\s+la\s+|de\s+l'|du\s+|des\s+|de\s+|d')$",
    re.IGNORECASE,
)


def protected_spans(text: str, language: str) -> list[tuple[int, int]]:
    """Spans of clinical terms that must not be taken for identifiers, in order.

    Drugs by list, stem or near spelling; eponyms by list. An eponym after a title
    ("Dr Parkinson") or a given name is a person. An eponym that is also a common
    name ("Murphy", "Bishop") needs a clinical noun or a possessive beside it.
    """
    text = straight(text)
    spans = []
    for match in _eponyms().finditer(text):
        if _is_clinical(text, match.start(), match.end(), language):
            spans.append(match.span())
    for match in re.finditer(r"[^\W\d_]{5,}", text):
        if is_drug(match.group()) and not _TITLE_BEFORE.search(text[: match.start()]):
            spans.append(match.span())
    return sorted(set(spans))


def _is_clinical(text: str, start: int, end: int, language: str) -> bool:
    before, after, term = text[:start], text[end:], text[start:end].casefold()
    if _TITLE_BEFORE.search(before):
        return False
    if _HEAD_AFTER.match(after) or _HEAD_BEFORE.search(before) or " " in term:
        return True
    previous = re.search(r"(\w+)\s+$", before)
    if previous and previous[1].casefold() in first_names(language) - words_en():
        return False
    ambiguous = term.removesuffix("'s") in _ambiguous_names()
    possessive = term.endswith(("'s", "s'")) or after[:2] == "'s"
    if not ambiguous:
        return True
    rest = after.removeprefix("'s")
    if possessive and re.match(_NOTHING_OWNED, rest, re.IGNORECASE):
        return True
    return possessive and _HAVING.search(before.casefold()) is not None


_NOTHING_OWNED = (
    r"\s*(?:[.,;:?!]|$|(?:and|or|is|was|for|with|in|at|but|since|which"
    r"|that|has|had|can|medication|meds|symptoms)\b)"
)


@lru_cache(maxsize=1)
def _ambiguous_names() -> frozenset[str]:
    towns = cities() | frozenset(
        ["glasgow", "edinburgh", "hamilton", "denver", "bristol", "vancouver"]
    )
    return (
        _people()
        | towns
        | frozenset(["wells", "bishop", "murphy", "lynch", "douglas", "tanner", "best"])
    )
