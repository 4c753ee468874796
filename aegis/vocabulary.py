"""Which words are ordinary in a language: what a word must not be to look like a name.

Unit: one word. Ordinary words come from the list of English words, from the lemmatiser's
tables of the spaCy models and from stop words; they load when they are first needed.

Classes: :class:`Vocabulary`.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path

from aegis.lexicon import cities, first_names, is_drug, last_names, words_en
from aegis.weights import model_dir


class Vocabulary:
    """Ordinary words of English and French."""

    def __init__(self) -> None:
        self._french: frozenset[str] | None = None
        self._english: frozenset[str] | None = None
        self._stops: dict[str, frozenset[str]] = {}

    def is_common(self, word: str, language: str) -> bool:
        """Whether a lower-case word is an ordinary word of the language."""
        word = word.casefold()
        if language not in self._stops:
            self._stops[language] = _stop_words(language)
        if word in self._stops[language]:
            return True
        if language == "en":
            return word in words_en() or (word.endswith("'s") and word[:-2] in words_en())
        word = re.sub(r"^(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu)'", "", word)
        return word in self._words_fr() or any(
            word.endswith(end) and word[: -len(end)] in self._words_fr()
            for end in ("s", "e", "es", "x")
        )

    def is_word(self, word: str, language: str) -> bool:
        """Whether a word is in any dictionary at hand, rare and clinical words included."""
        if self.is_common(word, language) or is_drug(word):
            return True
        if "-" in word:
            return all(self.is_word(part, language) for part in word.split("-") if part)
        if language != "en":
            return False
        if self._english is None:
            self._english = _english_words(model_dir("spacy-en"))
        stems = (
            word,
            word.removesuffix("s"),
            word.removesuffix("es"),
            word.removesuffix("ed"),
            word.removesuffix("ing"),
        )
        return any(stem in self._english for stem in stems)

    def _words_fr(self) -> frozenset[str]:
        """Ordinary French words: the inflected forms and lemmas of the spaCy model's tables."""
        if self._french is None:
            self._french = _french_words(model_dir("spacy-fr"))
        return self._french


def _english_words(folder: Path) -> frozenset[str]:
    """Lemmas of the English lemmatiser's tables (WordNet), without names of people and towns."""
    from spacy.lookups import Lookups

    index = Lookups().from_disk(folder / "lemmatizer" / "lookups").get_table("lemma_index")
    words = {word for part in ("noun", "verb", "adj", "adv") for word in index[part]}
    return frozenset(words - first_names("en") - last_names("en") - cities())


def _french_words(folder: Path) -> frozenset[str]:
    """Lower-case forms and lemmas of the French lemmatiser's tables, without personal names."""
    from spacy.lookups import Lookups
    from spacy.strings import StringStore

    lookups = Lookups().from_disk(folder / "lemmatizer" / "lookups")
    strings = StringStore().from_disk(folder / "vocab" / "strings.json")
    index, exceptions = lookups.get_table("lemma_index"), lookups.get_table("lemma_exc")
    table = lookups.get_table("lemma_lookup")
    words = {word for part in ("noun", "verb", "adj", "adv") for word in index[part]}
    words |= {form for part in exceptions for form in exceptions[part]}
    words |= {strings[key] for key in table if key in strings}
    words |= {lemma for lemmas in table.values() for lemma in lemmas}
    names = first_names("fr") | last_names("fr")
    described = set(index["adj"]) | set(index["adv"]) | set(index["verb"])
    return frozenset(w for w in words if w.islower() and (w not in names or w in described))


_FILLERS = (
    "heu euh hein ben bah beh bon hum mhm mhmm mmm hmm uh um yep yup"
    " nope nah yeah okay ok ouais quoi moi toi"
    " voilà oui non en que qui vous nous mon ton son hello hi bonjour"
    " bonsoir merci allô allo monsieur madame docteur mari côté sol"
    " bord haut bas fond"
    " samu mm-hmm mm alright gonna wanna kinda afib htn copd chf cad"
    " ckd ra ms dm hx tx dx rx pt pts mg er ed icu"
    " nyha gerd uti ecg ekg mri hiv std ibs tia dvt pe mi bp hr ent gp a&e covid ibuprofen hba1c"
)


def _stop_words(language: str) -> frozenset[str]:
    """Function words and fillers."""
    words = importlib.import_module(f"spacy.lang.{language}.stop_words").STOP_WORDS
    return frozenset(words) | frozenset(_FILLERS.split())
