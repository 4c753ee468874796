"""What is said in pieces becomes one string: codes, telephone numbers, addresses, pressures.

Unit: the tokens of one text, whose numbers, dates and times are read.

Functions: :func:`merge_groups`, :func:`read_addresses`.
"""

from __future__ import annotations

from aegis.spoken_numbers import DOTS
from aegis.spoken_tokens import UNITS, Item, words

_TLDS = set(words("com org net edu gov uk co fr io health be ch ca info eu us nhs ie de ai app"))
_JOINS = {
    "dot": ".",
    "point": ".",
    "underscore": "_",
    "dash": "-",
    "hyphen": "-",
    "tiret": "-",
}


def merge_groups(items: list[Item], language: str) -> list[Item]:
    """Numbers and single letters that stand together become one string, doses excepted."""
    out: list[Item] = []
    i = 0
    while i < len(items):
        if items[i].kind not in ("number", "letter"):
            out.append(items[i])
            i += 1
            continue
        run, j = [i], i + 1
        while j < len(items):
            k = j
            while k < len(items) and items[k].text in (",", "-", ".", "(", ")", "..."):
                k += 1
            if k >= len(items) or items[k].kind not in ("number", "letter"):
                break
            run.append(k)
            j = k + 1
        out.extend(_run(items, run))
        i = run[-1] + 1
    return _pressures(out)


def _run(items: list[Item], run: list[int]) -> list[Item]:
    """Decide what of one run (indices of numbers and letters) is one string."""
    last = run[-1]
    unit = last + 1 < len(items) and items[last + 1].text in UNITS
    tail = [last] if unit and items[last].kind == "number" and len(run) > 1 else []
    head = run[: len(run) - len(tail)]
    if len(head) > 1 and _article(items, head):
        return [items[head[0]], *_run(items, head[1:] + tail)]
    groups = [items[k].text for k in head]
    letters = sum(items[k].kind == "letter" for k in head)
    marks = {x.text for x in items[head[0] : head[-1]] if x.kind == "mark"}
    digits = sum(len(g) for k, g in zip(head, groups, strict=True) if items[k].kind == "number")
    zero = any((len(g) > 1 and g[0] == "0") or g == "0" for g in groups)
    merged = len(head) == 1 or not _separate(len(groups), letters, digits, marks, zero, groups)
    joined = [Item("number", "".join(groups))] if merged else [items[k] for k in head]
    return joined + [items[k] for k in tail]


def _article(items: list[Item], head: list[int]) -> bool:
    """``a 5``, ``I 2``: the word; before three single digits, ``a 4 4 7``, a spelled letter."""
    digits = [items[k].text for k in head[1:4] if items[k].kind == "number"]
    said_singly = len(digits) == 3 and all(len(d) == 1 for d in digits)
    return (
        items[head[0]].text in ("a", "i", "y")
        and items[head[1]].kind == "number"
        and not said_singly
    )


def _separate(
    n: int, letters: int, digits: int, marks: set[str], zero: bool, groups: list[str]
) -> bool:
    if letters == n:
        codes = sum(len(group) > 1 for group in groups)
        return n < 3 and codes < 2 and not (n == 2 and marks)
    if letters:
        return n == 2 and digits < 2 and not marks & {"-"}
    if not marks:
        return False
    if marks == {"-"}:
        return not (digits >= 7 or n >= 3 or zero)
    return not (digits >= 7 or zero or (n >= 3 and all(len(g) == 1 for g in groups)))


def _pressures(items: list[Item]) -> list[Item]:
    """``120 over 80``, ``12 sur 8`` -> ``120/80``."""
    out: list[Item] = []
    i = 0
    while i < len(items):
        three = items[i : i + 3]
        if (
            len(three) == 3
            and three[1].text in ("over", "sur")
            and three[0].kind == three[2].kind == "number"
        ):
            out.append(Item("value", f"{three[0].text}/{three[2].text}"))
            i += 3
        else:
            out.append(items[i])
            i += 1
    return out


def read_addresses(items: list[Item], language: str) -> list[Item]:
    """Spoken addresses: ``j dot doe at mail dot com``, ``w w w dot clinic dot org slash help``."""
    out = [x for x in items if x.kind != "mark" or x.text in ("@", "/")]
    i = 0
    while i < len(out):
        domain, after = _domain(out, i)
        if domain:
            start, local = _local(out, i)
            out[start:after] = [Item("value", local + domain)]
            i = start
        i += 1
    return out


def _domain(items: list[Item], i: int) -> tuple[str, int]:
    """``clinic dot org`` from item ``i`` with its path, or an empty string."""
    if items[i].kind == "mark" or items[i].text in DOTS:
        return "", i
    name, j = items[i].text, i + 1
    if "@" in name:
        return "", i
    while j + 1 < len(items) and items[j].text in _JOINS:
        name += _JOINS[items[j].text] + items[j + 1].text
        j += 2
    written = i > 0 and items[i - 1].text in ("at", "arobase", "@")
    if j < len(items) and len(name.rpartition(".")[2]) == 1:  # "dot f r"
        name, j = name + items[j].text, j + 1
    if "." not in name or name.rpartition(".")[2] not in _TLDS or (j == i + 1 and not written):
        return "", i
    while j + 1 < len(items) and items[j].text == "slash":
        name += "/" + items[j + 1].text
        j += 2
    return name, j


def _local(items: list[Item], i: int) -> tuple[int, str]:
    """The part before ``at``: its first item and ``"name@"``; without one, ``(i, "")``."""
    if i < 2 or items[i - 1].text not in ("at", "arobase", "@"):
        return i, ""
    start, text = i - 2, items[i - 2].text
    if text.isdigit() and start >= 2 and items[start - 2].text in _JOINS:  # "j dot doe 22 at"
        start, text = start - 1, items[start - 1].text + text
    while start >= 2 and items[start - 1].text in _JOINS:
        text = items[start - 2].text + _JOINS[items[start - 1].text] + text
        start -= 2
    return start, text + "@"
