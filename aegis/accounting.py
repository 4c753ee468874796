"""Where every scheduled judgement went: valid, or one class of failure.

Unit: one row of a table with ``status`` and ``reason``. A row is valid while its status is
``ok``; any other falls into exactly one class of :data:`CLASSES`, read from its reason, so that
scheduled = valid + each class. What is not valid is unobserved: it is no zero anywhere.

Functions: :func:`failure_class`, :func:`account`.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from aegis.errors import TableError

_SIGNS = {
    "no transcript": ("no transcript", "transcript is empty", "not heard", "no turns"),
    "not rendered": ("no audio", "not rendered", "not planned"),
    "request failed": ("invalid: failed",),
    "truncated": ("invalid: truncated",),
    "refused": ("invalid: refused",),
    "filtered": ("invalid: filtered",),
    "malformed": ("invalid: malformed",),
    "wrong ids": ("invalid: wrong_ids",),
    "quarantined": ("quarantined",),
    "contract broken": ("invalid: ",),
    "not applicable": (),
    "excluded": (),
    "other failure": (),
}
CLASSES = tuple(_SIGNS)


def failure_class(status: str, reason: object) -> str:
    """The class of one row that is not valid."""
    if status in ("not_applicable", "excluded"):
        return status.replace("_", " ")
    text = "" if pd.isna(reason) else str(reason)  # type: ignore[call-overload]
    for name, signs in _SIGNS.items():
        if any(sign in text for sign in signs):
            return name
    return "other failure"


def account(table: pd.DataFrame, by: Sequence[str], what: str = "scheduled") -> pd.DataFrame:
    """Scheduled, valid and each class of failure that occurs, one row a group of ``by``.

    Raises
    ------
    TableError
        A group does not add up.
    """
    fates = [
        "valid" if status == "ok" else failure_class(str(status), reason)
        for status, reason in zip(table["status"], table["reason"], strict=True)
    ]
    kinds = ["valid", *(name for name in CLASSES if name in set(fates))]
    rows = []
    for key, own in table.assign(fate=fates).groupby(list(by), dropna=False, sort=False):
        counts = own["fate"].value_counts().to_dict()
        row = {**dict(zip(by, key, strict=True)), what: len(own)}
        row |= {name: int(counts.get(name, 0)) for name in kinds}
        if sum(row[name] for name in kinds) != len(own):
            raise TableError(f"accounting: {key} does not add up to {len(own)} scheduled")
        rows.append(row)
    return pd.DataFrame(rows, columns=[*by, what, *kinds])
