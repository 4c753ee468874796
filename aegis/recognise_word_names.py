"""Given names that are ordinary words: Hope, Will, May, Daisy, Mark; Rose, Pierre, Aimé.

Unit: one turn. Such a word is a name where only a name can stand: capitalised inside a
sentence, called out, introduced, after one relative or in a list of relatives, or as the
subject of a verb without an article. In text without capitals fewer places tell, and a word
that is surely a name elsewhere in the conversation may be trusted in more of them.

Functions: :func:`word_names_found`, :func:`is_word_name`, :func:`is_given_name`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache

from aegis.lexicon import NICKNAME_FORMS, first_names, last_names, protected_spans
from aegis.recognisers import FLAGS, Found, IsCommon, View
from aegis.spoken_tokens import words

_MORE = {
    "en": words(
        "may april june will mark hope faith grace joy charity constance mercy patience prudence"
        " verity honor honour pearl opal ruby amber jade gem ginger fern ivy holly heather iris"
        " daisy poppy violet rose lily lark wren robin jay sky skye dawn eve noel summer autumn"
        " clay cliff dale glen heath lane reed wade brook brooke brooks forest sandy rusty woody"
        " dusty sunny penny rocky buddy bud chase chance drew grant miles rex max rich rob ray"
        " art bill bob dean duke earl frank gene guy jack pat sue star storm sage basil bay"
        " willow olive hazel rosemary angel melody harmony lance pierce victor wolf"
    ),
    "fr": words(
        "rose pierre marguerite violette capucine olive prune cerise clémence constance victoire"
        " prudence aurore céleste ange aimé aimée désiré désirée juste parfait modeste blanche"
        " marine océane fleur lune soleil jade ambre perle mai avril juin mars octave auguste"
        " florent vivien placide claire franche lucide honoré fortuné sylvestre maxime"
    ),
}
_NEVER = frozenset(
    words(
        "else till dot ed urban forum gala maxim lope sol sole tia cord curt maria mari edit samu"
        " trinity sierra phoenix crystal cooper valentine veer grit harm tanner lee line ken kit"
        " grilles cate babs fab août august don pastor peer pier"
    )
)
"""Listed given names that are too rarely names, or are names and no ordinary words."""
_MONTHS = frozenset(["may", "april", "june", "mars", "avril", "mai", "juin"])
_MODALS = frozenset(["will", "may"])
_MASS = frozenset(
    words("hope faith grace joy charity mercy patience prudence summer autumn dawn angel star")
)
_KIN_ONE = {
    "en": r"(?:son|daughter|wife|husband|mother|father|mum|mom|dad|brother|sister|partner|friend"
    r"|neighbou?r|cousin|nephew|niece|uncle|aunt|grandson|granddaughter|carer|boyfriend"
    r"|girlfriend|grandmother|grandma|gran|grandfather|grandpa|fiancée?|flatmate|roommate|colleague|caregiver|stepson|stepdaughter|twin)",
    "fr": r"(?:fils|fille|femme|mari|mère|père|frère|sœur|soeur|compagne|compagnon|amie?|voisine?"
    r"|cousine?|neveu|nièce|oncle|tante|conjointe?|épouse|époux|petit-fils|petite-fille"
    r"|collègue|grand-mère|grand-père|mamie|papi|maman|papa|belle-mère|beau-père|belle-sœur)",
}
_KIN_MANY = {
    "en": r"(?:sisters|brothers|sons|daughters|boys|girls|kids|children|twins|parents|cousins"
    r"|friends|neighbou?rs|grandchildren|grandsons|granddaughters|nieces|nephews|aunts|uncles"
    r"|siblings|dogs|cats)",
    "fr": r"(?:sœurs|soeurs|frères|fils|filles|enfants|jumeaux|jumelles|parents|cousine?s|amie?s"
    r"|voisine?s|petits-enfants|petits-fils|petites-filles|nièces|neveux|garçons)",
}
_OWNER = {
    "en": r"(?:my|his|her|your|our|their)",
    "fr": r"(?:mon|ma|mes|son|sa|ses|votre|vos|notre|nos|leurs?)",
}
_AND = {"en": "and", "fr": "et"}
_CALLS = {
    "en": r"(?:hi|hello|hey|dear|thanks|thank you|bye|goodbye|bye-bye|good morning"
    r"|good afternoon|good evening|morning|cheers|welcome|congratulations|sorry)",
    "fr": r"(?:bonjour|bonsoir|salut|merci|au revoir|chère?|coucou)",
}
_LEADS = {
    "en": r"(?:so|now|right|well|okay|ok|alright|all right|yes|no|yeah|and|but|oh|look|listen"
    r"|please|sure|great|good|perfect)",
    "fr": r"(?:alors|bon|bien|oui|non|d'accord|et|voilà|écoutez|parfait|très bien)",
}
_PRESENTS = {
    "en": r"(?:this is|i'm|i am|it's|name is|name's|named|called|call me|calls me"
    r"|you're speaking (?:to|with)|speaking (?:to|with))",
    "fr": r"(?:c'est|ici|je suis|je m'appelle|m'appelle|s'appelle|appelez-moi)",
}
_AFTER_NAME = {
    "en": r"(?:\s+(?:from|at|speaking|calling|here|again|by the way|and (?:this|i|that|my|can)"
    r"|your|her|his|the nurse|the doctor)\b|\s*[,.!?;]|\s*$)",
    "fr": r"(?:\s+(?:de la|du|à l'appareil|au téléphone|et (?:je|c'est)|votre)\b|\s*[,.!?;]|\s*$)",
}
_SAYS = {
    "en": r"(?:says|said|told|thinks|thought|knows|knew|wants|wanted|asked|asks|calls|called"
    r"|lives|lived|came|comes|brought|drives|drove|helps|helped|looks after|found|noticed"
    r"|insists|insisted|worries|phoned|rang|picked|takes care|took me|made me|gave me|can visit"
    r"|can come|was there|was with|is with|was born|is (?:my|his|her|our|the|a|an|at|in|on|\d)"
    r"|has (?:a|an|the|been|had|got|to)|had (?:a|an|the|been)|will (?:be|call|come|bring|ring)"
    r"|doesn't|didn't|isn't|wasn't|hasn't|won't)",
    "fr": r"(?:a (?:dit|pris|eu|été|vu|appelé|trouvé)|m'a|m'avait|lui a|nous a|est|était|dit|dort"
    r"|vient|va|veut|pense|habite|vit|travaille|s'occupe|s'inquiète|prend|fait|ne|n'a|n'est)",
}
_BE = {
    "en": r"(?:is|was|has|had|does|did|isn't|wasn't|hasn't|doesn't|didn't|can|could|would|should"
    r"|might|will|and (?:i|my|her|his)\b)",
    "fr": r"(?:est|était|a|avait|va|peut|et (?:moi|lui|elle)\b)",
}
_FOLLOWED = (
    r"(?:me|him|her|us|them|you|it|and|but|so|well|a lot|all|every|the|my|his|to|too"
    r"|now|better|out|here|there|quite|very|really|more|less)"
)
_COMES = (
    r"(?:come|sit|take|have|tell|let|lie|hold|breathe|look|show|give|try|stand|open|can|could|do"
    r"|did|are|how|what|is|was|has|had|where|when|why|would|should|says|said|told|helps|wants"
    r"|thinks|came|comes|and)"
)


@lru_cache(maxsize=2)
def _listed(language: str) -> frozenset[str]:
    return (first_names(language) | NICKNAME_FORMS | frozenset(_MORE[language])) - _NEVER


def is_given_name(word: str, language: str) -> bool:
    """Whether a word is a listed given name or nickname, with or without its accents."""
    low = word.casefold()
    return low in _listed(language) or low in _unaccented(language)


@lru_cache(maxsize=2)
def _unaccented(language: str) -> frozenset[str]:
    pairs = ((n, unicodedata.normalize("NFD", n)) for n in _listed(language))
    return frozenset("".join(c for c in d if not unicodedata.combining(c)) for _, d in pairs)


def is_word_name(word: str, language: str, is_common: IsCommon) -> bool:
    """Whether a word is both a given name and an ordinary word."""
    low = word.casefold()
    return low in _listed(language) and (is_common(low) or low in _MONTHS)


def word_names_found(
    views: Sequence[View],
    language: str,
    is_common: IsCommon,
    certain: Collection[str] = frozenset(),
) -> Iterator[Found]:
    """Given names that are ordinary words, where only a name can stand.

    ``certain`` holds case-folded words that are surely names in this conversation.
    """
    for view in (view for view in views if not view.guessed):
        guard = protected_spans(view.text, language)
        for match in re.finditer(r"(?<![\w-])[^\W\d_]{3,}(?![\w-])", view.text):
            word = match.group()
            low = word.casefold()
            sure = low in certain and is_common(low)
            if not sure and not is_word_name(word, language, is_common):
                continue
            if any(a < match.end() and match.start() < b for a, b in guard):
                continue
            if _stands_as_name(view, match.start(), match.end(), language, sure):
                end = _with_family_name(view, match.end(), language)
                yield Found(view.index, match.start(), end, "NAME", "word name", 0.9)
        yield from _lists(view, language)


def _with_family_name(view: View, end: int, language: str) -> int:
    """Where a name ends with the listed family name that follows its given name, if one does."""
    follows = re.match(r"\s+([^\W\d_]{3,})(?![\w'-])", view.text[end:])
    if not follows or follows[1].casefold() not in last_names(language):
        return end
    alone = re.match(r"\s*(?:[.,?!]|$)", view.text[end + follows.end() :]) is not None
    named = follows[1][0].isupper() if view.cased else alone
    return end + follows.end() if named else end


def _stands_as_name(view: View, start: int, end: int, language: str, sure: bool) -> bool:
    word = view.text[start:end]
    before, after = view.text[:start], view.text[end:]
    if _introduced(view, before, after, word, language, sure):
        return True
    if view.cased and word[0].isupper() and not word.isupper():
        return _capital(before, after, word, language, sure)
    return _plain(before, after, word.casefold(), language, sure)


def _introduced(view: View, before: str, after: str, word: str, language: str, sure: bool) -> bool:
    """After a greeting, "this is", or one relative; the next word must let a name end here."""
    capital = view.cased and word[0].isupper()
    low = word.casefold()
    ends = re.match(_AFTER_NAME[language], after, FLAGS) is not None
    if re.search(rf"(?<!\w){_CALLS[language]},?\s+$", before, FLAGS):
        called = re.match(
            r"\s*(?:[,.!?]|$)|\s+(?:how|it's|this|i'm|are|have|come)\b", after, FLAGS
        )
        hailed = re.search(r"\b(?:hi|hello|hey|bonjour|salut),?\s+$", before, FLAGS)
        stops = hailed is not None and re.match(r"\s*[,.!?]", after) is not None
        free = capital or low not in _MODALS | _MONTHS or sure or stops
        return called is not None and free
    if re.search(rf"(?<![\w']){_PRESENTS[language]}\s+$", before, FLAGS):
        strong = re.search(r"(?:nam|call|appel|this is)\w*(?: is)?\s+$", before, FLAGS)
        return ends and (capital or strong is not None or sure)
    one = rf"(?<!\w){_OWNER[language]}\s+(?:\w+[\s-])?{_KIN_ONE[language]},?\s+$"
    if re.search(one, before, FLAGS):
        whole = _with_family_name(view, len(before) + len(word), language)
        ends = ends or whole > len(before) + len(word)
        adjective = language == "fr" and not capital and not ends
        return capital or (low not in ("will", "may", "can") and not adjective)
    return False


def _capital(before: str, after: str, word: str, language: str, sure: bool) -> bool:
    """A capitalised word: inside a sentence, called out, or the subject of a verb."""
    low = word.casefold()
    starts = re.search(r"(?:^|[.?!:…\"]\s*|\.\.\.\s*|-\s)$", before) is not None
    if re.search(r",\s*$", before) and re.match(r"\s*[.?!]", after):
        return True
    if re.match(r"\s+[A-ZÀ-Ý][\w'-]+", after) and not starts:
        return low not in _MONTHS and not _proper_before(before)
    if not starts:
        return low not in _MONTHS and not _proper_before(before)
    if re.match(r"\s*,\s*(?!and\b|et\b)", after) and (low not in _MONTHS or sure):
        return True
    if low in ("will", "may"):
        return re.match(rf"\s+{_COMES}\b", after, FLAGS) is not None
    if re.match(rf"\s+{_SAYS[language]}(?!\w)", after, FLAGS):
        return low not in _MASS or sure or not re.match(r"\s+(?:is|was|est|ne)\b", after)
    if re.match(rf"\s+{_BE[language]}(?!\w)", after, FLAGS):
        return low not in _MASS or sure
    does = re.match(rf"\s+([a-z]{{2,}}[^s\W]s)\s+{_FOLLOWED}\b", after)
    return language == "en" and does is not None and low not in _MASS


def _proper_before(before: str) -> bool:
    """Whether a capitalised word that is no sentence start stands directly before."""
    last = re.search(r"(?:^|(.)\s+)([A-ZÀ-Ý][\w'-]*)\s+$", before)
    return last is not None and last[1] is not None and last[1] not in ".?!:" and last[2] != "I"


def _plain(before: str, after: str, low: str, language: str, sure: bool) -> bool:
    """A lower-case word: only where the sentence needs a person."""
    if language == "en" and re.search(r"\b(?:who|when|where|if|that|because)\s+$", before, FLAGS):
        visits = re.match(r"\s+can (?:visit|come|ring|call|see|help|bring|drive)\b", after)
        if visits and low not in ("will", "may", "hope"):
            return True
    asked = re.search(r"\w\s+[\w']+,\s*$", before) and re.match(r"\s*\?", after)
    if asked and low not in ("will", "may"):
        return True
    if not sure:
        return False
    asks = r"\b(?:ask|asked|tell|told|call|called|calling|phone|ring|appel\w+|demand\w+ à)\s+$"
    if low not in ("will", "may", "can") and re.search(asks, before, FLAGS):
        return True
    if re.search(r"(?:^|[.?!,]\s*)$", before) and re.match(r"\s*,", after):
        return True
    if re.search(r",\s*$", before) and re.match(r"\s*(?:[.?!]|$)", after):
        return True
    if low in ("will", "may", "can"):
        return False
    if re.search(rf"(?<!\w){_LEADS[language]},?\s+$|^$", before, FLAGS) and re.match(
        rf"\s*,|\s+(?:{_SAYS[language]}|{_BE[language]}|how|what|can|could|do)(?!\w)", after, FLAGS
    ):
        return True
    determined = re.search(
        r"\b(?:a|an|the|my|his|her|your|this|that|some|any|no|un|une|le|la|les|des|du|de)\s+$",
        before,
        FLAGS,
    )
    says = re.match(rf"\s+{_SAYS[language]}(?!\w)", after, FLAGS)
    return says is not None and determined is None


def _lists(view: View, language: str) -> Iterator[Found]:
    """Names after several relatives: ``my sisters hope and iris``."""
    name, link = (
        r"[^\W\d_][\w'-]{2,}",
        rf"(?:\s*,\s*(?:{_AND[language]}\s+)?|\s+{_AND[language]}\s+)",
    )
    called = r"(?:,?\s+(?:called|named|who are called|are called|s'appellent|appelée?s))?"
    pattern = (
        rf"(?<!\w){_OWNER[language]}\s+(?:\w+\s+)?{_KIN_MANY[language]}{called},?\s+"
        rf"({name}(?:{link}{name}){{1,3}})"
    )
    for match in re.finditer(pattern, view.text, FLAGS):
        known = _listed(language)
        parts = list(re.finditer(name, match[1]))
        kept = [p for p in parts if p.group().casefold() in known]
        if len(kept) < 2:
            continue
        for part in kept:
            start = match.start(1) + part.start()
            yield Found(view.index, start, start + len(part.group()), "NAME", "word name", 0.9)
