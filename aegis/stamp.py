"""What a page was made from: a run's receipts and tables as one hash.

Unit: one run folder. Standard library only, because the site renderer's hooks
(``scripts/``) import it with whatever Python they are given.

A page is *fresh* while its notebook and every table that it read or wrote are the
ones in its receipt. Functions: :func:`stale_pages`, :func:`content_hash`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

RECEIPT = "receipt:"
SEAL = "seal"
"""The key of a receipt under which the hash of the rest of it lies."""


def seal(receipt: dict[str, Any]) -> str:
    """SHA-256 of what a receipt says, its own seal apart."""
    content = {key: value for key, value in receipt.items() if key != SEAL}
    text = json.dumps(content, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def read_receipt(path: Path) -> dict[str, Any] | None:
    """A receipt, or None when there is none or it is not what was written.

    One of an earlier version has no seal; what it says is taken as it is.
    """
    try:
        receipt = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    if not isinstance(receipt, dict) or receipt.get(SEAL, seal(receipt)) != seal(receipt):
        return None
    return receipt


def read_receipts(root: Path) -> dict[str, dict[str, Any]]:
    """Stage -> receipt of the run below ``root``; a damaged file counts as none."""
    paths = sorted((root / "receipts").glob("*.json"))
    found = {path.stem: read_receipt(path) for path in paths}
    return {stage: receipt for stage, receipt in found.items() if receipt is not None}


def file_hash(path: Path) -> str | None:
    """SHA-256 of a file, or None when there is none."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None


def input_hash(root: Path, name: str) -> str | None:
    """SHA-256 of a table's file, public or secret, or of a stage's receipt (``receipt:X``)."""
    if name.startswith(RECEIPT):
        return file_hash(root / "receipts" / f"{name.removeprefix(RECEIPT)}.json")
    places = (root / "tables", root / "secret" / "tables")
    hashes = [file_hash(place / f"{name}.parquet") for place in places]
    return next((value for value in hashes if value), None)


def stale_pages(root: Path, stages: Iterable[str]) -> dict[str, str]:
    """Stage -> why its executed notebook must not be shown; fresh ones are absent."""
    receipts = read_receipts(root)
    tables: dict[str, str | None] = {}
    stale = {}
    for stage in stages:
        receipt = receipts.get(stage)
        if receipt is None:
            stale[stage] = "the executed notebook has no receipt"
            continue
        recorded = receipt.get("notebook_sha256")
        if recorded and recorded != file_hash(root / "notebooks" / f"{stage}.ipynb"):
            stale[stage] = "the notebook changed since its receipt"
            continue
        shown = {**receipt.get("inputs", {}), **receipt.get("tables", {})}
        for name in shown:
            if name not in tables:
                tables[name] = input_hash(root, name)
        changed = sorted(name for name, sha in shown.items() if tables[name] != sha)
        if changed:
            stale[stage] = f"tables changed since it ran ({', '.join(changed[:3])})"
    return stale


def content_hash(root: Path) -> str:
    """One hash of all that a site of this run shows: notebooks and tables, by the receipts."""
    parts = {
        stage: [receipt.get("notebook_sha256"), receipt.get("inputs"), receipt.get("tables")]
        for stage, receipt in read_receipts(root).items()
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
