"""Numbers that the papers print, and whether they follow from the counts that they print.

A printed value agrees when the value computed from counts rounds to it at the decimals
printed. The files lie in ``data_manifests/published``; ``SOURCE.md`` there says where each
comes from. ``a`` is VoiceCraft, ``b`` is F5-TTS.

Functions: :func:`read_published`, :func:`check_rates`, :func:`check_differences`,
:func:`check_sums`, :func:`check_tests`, :func:`unresolved_from_bounds`.
"""

from __future__ import annotations

import ast
import math

import pandas as pd

from aegis import stats
from aegis.errors import ManifestError
from aegis.tables import PROJECT

PUBLISHED = PROJECT / "data_manifests" / "published"


def read_published(name: str) -> pd.DataFrame:
    """One file of printed numbers, by its stem.

    Raises
    ------
    ManifestError
        No such file, or an id repeats.
    """
    path = PUBLISHED / f"{name}.csv"
    if not path.exists():
        known = ", ".join(sorted(place.stem for place in PUBLISHED.glob("*.csv")))
        raise ManifestError(f"{name}: no published numbers of that name; known: {known}")
    table = pd.read_csv(path)
    if "id" in table and table["id"].duplicated().any():
        raise ManifestError(f"{path.name}: an id repeats")
    return table


def agrees(computed: float, printed: float, decimals: int) -> bool:
    """Whether a computed value rounds to the printed one (half a unit of its last decimal)."""
    return abs(computed - printed) <= 0.5 * 10.0**-decimals + 1e-9


def check_rates(rates: pd.DataFrame) -> pd.DataFrame:
    """Add ``computed`` and ``agrees``; Wilson intervals are computed and checked as well."""
    rows = []
    for row in rates.to_dict("records"):
        computed = 100 * row["numerator"] / row["denominator"]
        fine = agrees(computed, row["percent"], row["decimals"])
        if row["interval"] == "wilson":
            wilson = stats.wilson(row["numerator"], row["denominator"])
            row["computed_low"], row["computed_high"] = 100 * wilson.ci_low, 100 * wilson.ci_high
            fine &= agrees(row["computed_low"], row["low"], row["decimals"])
            fine &= agrees(row["computed_high"], row["high"], row["decimals"])
        rows.append({**row, "computed": computed, "agrees": fine})
    return pd.DataFrame(rows)


def check_differences(differences: pd.DataFrame) -> pd.DataFrame:
    """Add the difference ``b - a`` in points as ``computed``, and ``agrees``."""
    computed = 100 * (differences["b"] - differences["a"]) / differences["denominator"]
    checked = zip(computed, differences["points"], differences["decimals"], strict=True)
    return differences.assign(computed=computed, agrees=[agrees(*row) for row in checked])


def check_sums(sums: pd.DataFrame) -> pd.DataFrame:
    """Add the value of ``parts`` (whole numbers joined by + and *) and whether it is the total."""
    computed = [evaluate(parts) for parts in sums["parts"]]
    return sums.assign(
        computed=computed, agrees=[c == t for c, t in zip(computed, sums["total"], strict=True)]
    )


def evaluate(parts: str) -> int:
    """The value of an expression of whole numbers, ``+`` and ``*``.

    Raises
    ------
    ManifestError
        Anything else stands in it.
    """
    return _value(ast.parse(parts, mode="eval").body, parts)


def _value(node: ast.expr, parts: str) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mult):
        left, right = _value(node.left, parts), _value(node.right, parts)
        return left + right if isinstance(node.op, ast.Add) else left * right
    raise ManifestError(f"{parts!r}: expected whole numbers joined by + and *")


def check_tests(tests: pd.DataFrame) -> pd.DataFrame:
    """Add Holm-adjusted values by family, and the draws at least as extreme behind each p."""
    adjusted: dict[str, float] = {}
    for _, own in tests.groupby("family"):
        known = dict(zip(own["id"], own["p"], strict=True))
        adjusted |= stats.holm(known, int(own["family_size"].iloc[0]))
    computed = tests["id"].map(adjusted)
    extreme = (tests["p"] * (1 + tests["draws"]) - 1).round().astype(int)
    fine = (computed - tests["p_adjusted"]).abs() < 5e-7
    return tests.assign(computed=computed, extreme_draws=extreme, agrees=fine)


def unresolved_from_bounds(
    difference: int, n: int, low: float, high: float, decimals: int
) -> tuple[list[int], list[int]]:
    """All counts of unresolved items in ``a`` and in ``b`` that give the printed bounds.

    Every unresolved item of ``a`` positive gives ``low``, every one of ``b`` gives ``high``
    (in points of ``n`` items). One number in each list: the bounds tell it exactly.
    """
    reach = range(math.ceil(n / 2))
    a = [u for u in reach if agrees(100 * (difference - u) / n, low, decimals)]
    b = [u for u in reach if agrees(100 * (difference + u) / n, high, decimals)]
    return a, b
