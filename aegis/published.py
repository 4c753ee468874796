"""Numbers that the papers print, and whether they follow from other numbers that they print.

The unit is one printed number. ``data_manifests/published/*.csv`` holds them with the seed
document, place, unit and kind: ``printed`` in the document, ``derived`` from its numbers by us,
or ``corpus`` (known from the corpus itself). A number may have a formula over other ids of its
file. It agrees when unrounded inputs exist that give it: the computed value may be off by half
a unit of the last printed decimal, and by what half a unit of each rounded input changes.
Without a formula a number is a basis of others, or it cannot be derived from the text.
In ``aegisvox``, ``a`` is VoiceCraft and ``b`` is F5-TTS.

Functions: :func:`read_numbers`, :func:`check_numbers`, :func:`evaluate`, :func:`value_of`,
:func:`unresolved_from_bounds`, :func:`pair_range`, :func:`beside`.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from aegis import stats
from aegis.errors import ManifestError
from aegis.tables import PROJECT

PUBLISHED = PROJECT / "data_manifests" / "published"
DOCUMENTS = ("aegisvox", "leakage", "low_fpr")
KINDS = ("printed", "derived", "corpus")


def read_numbers(name: str) -> pd.DataFrame:
    """One document's numbers; ``decimals`` is absent where a number is exact.

    Raises
    ------
    ManifestError
        No such file, an id repeats, or a kind is unknown.
    """
    path = PUBLISHED / f"{name}.csv"
    if not path.exists():
        known = ", ".join(sorted(place.stem for place in PUBLISHED.glob("*.csv")))
        raise ManifestError(f"{name}: no published numbers of that name; known: {known}")
    table = pd.read_csv(path, dtype={"seed": "str", "formula": "str"})
    if table["id"].duplicated().any():
        raise ManifestError(f"{path.name}: an id repeats")
    if not table["kind"].isin(KINDS).all():
        raise ManifestError(f"{path.name}: a kind is none of {KINDS}")
    return table


def check_numbers(numbers: pd.DataFrame) -> pd.DataFrame:
    """Add ``computed`` and ``verdict``: agrees, differs, computed, basis, not derivable.

    ``computed`` is a number of ours that the text does not print; ``basis`` is used by a
    formula and has none itself.
    """
    rows = numbers.set_index("id").to_dict("index")
    used = {name for row in rows.values() for name in _names(row["formula"])}
    values: dict[str, float] = {}
    for name in rows:
        _resolve(name, rows, values)
    out = []
    for name, row in rows.items():
        computed = math.nan
        verdict = "basis" if name in used else "not derivable"
        if row["kind"] == "corpus":
            verdict = "basis"
        if isinstance(row["formula"], str):
            computed = evaluate(row["formula"], values)
            verdict = "computed"
            if not math.isnan(row["value"]):
                verdict = "agrees" if _agrees(row, computed, rows, values) else "differs"
        out.append({"id": name, **row, "computed": computed, "verdict": verdict})
    return pd.DataFrame(out)


def _resolve(name: str, rows: Mapping[str, Mapping[str, Any]], values: dict[str, float]) -> None:
    """Fill in a number and, where it is not printed, what it is computed from."""
    if name in values:
        return
    if name not in rows:
        raise ManifestError(f"a formula uses {name}, which is no id of its file")
    row = rows[name]
    for other in _names(row["formula"]):
        if math.isnan(row["value"]):
            _resolve(other, rows, values)
    values[name] = row["value"]
    if math.isnan(row["value"]):
        values[name] = evaluate(row["formula"], values)


def _agrees(
    row: Mapping[str, Any],
    computed: float,
    rows: Mapping[str, Mapping[str, Any]],
    values: Mapping[str, float],
) -> bool:
    slack = _half(row) + 1e-9
    for name in _names(row["formula"]):
        half = _half(rows[name])
        if half:
            moved = [evaluate(row["formula"], {**values, name: values[name] + s * half})
                     for s in (-1, 1)]  # fmt: skip
            slack += max(abs(value - computed) for value in moved)
    if row.get("relation") == ">=":
        return bool(computed >= row["value"] - slack)
    return bool(abs(computed - row["value"]) <= slack)


def _half(row: Mapping[str, Any]) -> float:
    """Half a unit of the last printed decimal; 0 for an exact number."""
    return 0.0 if math.isnan(row["decimals"]) else 0.5 * 10.0 ** -row["decimals"]


# --- formulas --------------------------------------------------------------------------


def count_of(points: float, n: float, decimals: float) -> float:
    """The only whole number that is ``points`` per cent of ``n`` when rounded.

    Raises
    ------
    ManifestError
        None or several are.
    """
    middle, half = points * n / 100, 0.5 * 10.0**-decimals * n / 100 + 1e-9
    found = range(math.ceil(middle - half), math.floor(middle + half) + 1)
    if len(found) != 1:
        raise ManifestError(f"{len(found)} counts of {n:g} are {points} % when rounded")
    return float(found[0])


def epsilon(tpr: float, fpr: float) -> float:
    """The empirical attack statistic of an operating point (equation 5 of the third document)."""
    return max(math.log(tpr / fpr), math.log((1 - fpr) / (1 - tpr)))


def _wilson(end: str) -> Callable[[float, float], float]:
    return lambda k, n: float(getattr(stats.wilson(int(k), int(n)), f"ci_{end}"))


def _correlation(x: Sequence[float], y: Sequence[float]) -> float:
    return float(np.corrcoef(x, y)[0, 1])


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "count_of": count_of,
    "epsilon": epsilon,
    "holm_least": lambda p, size: stats.holm({"least": p}, int(size))["least"],
    "list": lambda *values: list(values),
    "max": max,
    "pearson": _correlation,
    "rank": lambda own, *others: 1 + sum(other > own for other in others),
    "round": round,
    "spearman": lambda x, y: _correlation(rankdata(x), rankdata(y)),
    "wilson_high": _wilson("high"),
    "wilson_low": _wilson("low"),
}
"""What a formula may call; ``rank`` is 1 for the largest."""
_OPERATORS: dict[type[ast.AST], Callable[..., float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.USub: operator.neg,
}  # fmt: skip


def evaluate(formula: str, values: Mapping[str, float]) -> float:
    """The value of a formula: numbers, ids, ``+ - * /`` and :data:`FUNCTIONS`.

    Raises
    ------
    ManifestError
        Anything else stands in it.
    """
    return float(_value(ast.parse(formula, mode="eval").body, values, formula))


def _value(node: ast.expr, values: Mapping[str, float], formula: str) -> Any:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return number
        case ast.Name(id=name) if name in values:
            return values[name]
        case ast.UnaryOp(op=op, operand=inner) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(inner, values, formula))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            sides = (_value(side, values, formula) for side in (left, right))
            return _OPERATORS[type(op)](*sides)
        case ast.Call(func=ast.Name(id=name), args=given, keywords=[]) if name in FUNCTIONS:
            return FUNCTIONS[name](*(_value(item, values, formula) for item in given))
    raise ManifestError(f"{formula!r}: expected numbers, ids, + - * / and {sorted(FUNCTIONS)}")


def _names(formula: Any) -> list[str]:
    if not isinstance(formula, str):
        return []
    called = {n.func for n in ast.walk(ast.parse(formula)) if isinstance(n, ast.Call)}
    found = [n for n in ast.walk(ast.parse(formula)) if isinstance(n, ast.Name)]
    names = {n.id for n in found} - {f.id for f in called if isinstance(f, ast.Name)}
    return sorted(names)


# --- what bounds and pair counts give away ---------------------------------------------


def unresolved_from_bounds(
    difference: int, n: int, low: float, high: float, decimals: int
) -> tuple[list[int], list[int]]:
    """All counts of unresolved items in ``a`` and in ``b`` that give the printed bounds.

    Every unresolved item of ``a`` positive gives ``low``, every one of ``b`` gives ``high``
    (in points of ``n`` items). One number in each list: the bounds tell it exactly.
    """
    half = 0.5 * 10.0**-decimals + 1e-9
    reach = range(math.ceil(n / 2))
    a = [u for u in reach if abs(100 * (difference - u) / n - low) <= half]
    b = [u for u in reach if abs(100 * (difference + u) / n - high) <= half]
    return a, b


def pair_range(n_conversations: int, n_profiles: int, most: int) -> tuple[int, int]:
    """Fewest and most unordered pairs of profiles that conversations can hold together.

    Each conversation has 1 to ``most`` profiles. The pairs of a conversation are convex in its
    profiles, so the most even distribution has fewest pairs and the most uneven one most.
    """
    each, more = divmod(n_profiles, n_conversations)
    fewest = more * math.comb(each + 1, 2) + (n_conversations - more) * math.comb(each, 2)
    full, rest = divmod(n_profiles - n_conversations, most - 1)
    return fewest, full * math.comb(most, 2) + math.comb(rest + 1, 2)


def beside(numbers: pd.DataFrame, ours: Mapping[str, float | str | None]) -> pd.DataFrame:
    """Printed numbers by id with their intervals, and this run's value of each.

    Raises
    ------
    ManifestError
        An id is not printed.
    """
    known = numbers.set_index("id")
    absent = sorted(set(ours) - set(known.index))
    if absent:
        raise ManifestError(f"no printed numbers {absent[:3]}")
    own = known.loc[list(ours)]
    return pd.DataFrame(
        {
            "quantity": own["label"],
            "paper": [value_of(row) for row in own.to_dict("records")],
            "this run": ["not measured" if v is None else v for v in ours.values()],
        }
    )


def value_of(row: Mapping[str, Any]) -> str:
    """A printed number as it was printed, with interval and unit."""
    digits = 0 if math.isnan(row["decimals"]) else int(row["decimals"])
    exact = math.isnan(row["decimals"])
    shown = [f"{row[end]:,g}" if exact else f"{row[end]:,.{digits}f}"
             for end in ("value", "low", "high")]  # fmt: skip
    interval = "" if math.isnan(row["low"]) else f" ({shown[1]} to {shown[2]})"
    unit = "" if row["unit"] == "count" else f" {row['unit']}"
    return f"{shown[0]}{unit}{interval}"
