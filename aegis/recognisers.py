"""What all recognisers share: the view of one turn, and a candidate span.

Unit: one conversation as a list of :class:`View` (one per turn, text with plain
apostrophes and spaces, same length as the original). Each recogniser yields
:class:`Found` spans: characters ``[start, end)`` of one view's text, a category,
the recogniser's name and a score in [0, 1]. Spans may overlap; the detector
decides. Languages: ``en`` and ``fr``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

FLAGS = re.IGNORECASE
IsCommon = Callable[[str], bool]


@dataclass(frozen=True)
class View:
    """One turn as the recognisers see it.

    ``cased`` says whether capitals carry meaning, ``guessed`` whether they were put in here.
    """

    index: int
    speaker: str
    text: str
    cased: bool = True
    guessed: bool = False


@dataclass(frozen=True)
class Found:
    """A candidate: characters ``[start, end)`` of view ``index``."""

    index: int
    start: int
    end: int
    category: str
    source: str
    score: float = 1.0
