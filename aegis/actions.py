"""Actions of a conversation by rules: who does what, how far it is, when, planned or not.

Unit: one action, read from the clause of one fact. Clinicians' drugs, doses, orders and plans
are actions; of others only that they stopped something.

Functions: :func:`read_action`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from aegis import clinical_terms as terms
from aegis.clauses import Clause
from aegis.inventory import Action, Fact

TIMES = frozenset(("duration", "frequency", "daytime", "day", "date", "rank"))

_IF = {
    "en": re.compile(r"\b(?:if|when|unless)\b", re.I),
    "fr": re.compile(r"\b(?:si|quand)\b|\ben cas\b", re.I),
}
_ONGOING = ("keep", "continuer")
_STOPS = ("stop", "arrêter")
_CLINICIAN_DOES = {
    "en": re.compile(
        r"\b(?:I'll|we'll|I'd like|I will|we will|I'm going|I am|let's wait|we)\b", re.I
    ),
    "fr": re.compile(r"\b(?:j'|je |nous |on va|il faudra)", re.I),
}


def read_action(index: int, clause: Clause, fact: Fact, role: str, language: str) -> Action | None:
    """An action: something is started, stopped, taken, ordered or advised."""
    acts = [t.value for t in clause.tokens if t.group == "act"]
    treats = any(t.group in ("drug", "dose") for t in clause.tokens)
    words = set(re.findall(r"[^\W\d_]+", fact.evidence.casefold()))
    plans = role == "clinician" and (
        fact.temporality == "future" or bool(words & terms.PLANS[language])
    )
    if not (acts or (role == "clinician" and treats) or plans):
        return None
    if role != "clinician" and not any(a in _STOPS for a in acts):
        return None
    state = _state(fact, acts, role, language)
    clinician = role == "clinician" and _CLINICIAN_DOES[language].search(fact.evidence) is not None
    timing = ", ".join(t.value for t in clause.tokens if t.group in TIMES)
    return Action(
        index,
        "clinician" if clinician else "patient",
        fact.evidence,
        state,
        timing,
        role == "clinician",
        fact.evidence,
    )


def _state(fact: Fact, acts: Sequence[str], role: str, language: str) -> str:
    if any(a in _STOPS for a in acts):
        return "stopped"
    if _IF[language].search(fact.evidence):
        return "conditional"
    if any(a in _ONGOING for a in acts):
        return "ongoing"
    if fact.temporality == "past":
        return "done"
    return "advised" if fact.polarity == "negated" else "planned"
