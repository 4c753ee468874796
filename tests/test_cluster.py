"""What a running scheduler is told, and how what was saved is taken back; no processes."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from aegis import cluster, engines
from aegis.tables import Run


def client(**resources: float) -> Any:
    """A scheduler with a worker without resources and one with these."""
    workers = {"a": {"resources": {}}, "b": {"resources": resources}, "c": {}}
    return SimpleNamespace(scheduler_info=lambda n_workers: {"workers": workers})


@pytest.mark.parametrize(
    ("declared", "engine", "expected"),
    [({"GPU": 1}, "seed-vc", {"GPU": 1}), ({"GPU": 2}, "world", None), ({}, "seed-vc", None),
     ({"memory": 9}, "seed-vc", None)],
)  # fmt: skip
def test_work_for_a_card_goes_where_one_is_declared(
    declared: dict[str, float], engine: str, expected: dict[str, float] | None
) -> None:
    settings = {"converter": engine, "seed": 3, "options": {}}
    assert cluster._resources(client(**declared), settings) == expected


def paid(item: dict[str, Any], settings: dict[str, Any], run: Run) -> dict[str, Any]:
    engines.count_usage(requests=1, input_tokens=10)
    engines.count_usage(requests=1, input_tokens=5, cost_usd=0.25)
    return {"n": 1}


def test_what_an_item_pays_for_is_in_its_record(tmp_path: Path) -> None:
    record = cluster.run_item(paid, {"id": "a"}, {}, tmp_path, tmp_path / "a.json")
    assert record["usage"] == {"requests": 2, "input_tokens": 15, "cost_usd": 0.25}
    engines.count_usage(requests=1)  # outside of an item nothing is counted
    assert cluster.load_record(tmp_path / "a.json") == record


@pytest.mark.parametrize("place", [0, 30, 64, 65, 100, -1])
def test_a_record_of_which_a_bit_changed_is_none(tmp_path: Path, place: int) -> None:
    path = tmp_path / "a.json"
    cluster.run_item(paid, {"id": "a"}, {}, tmp_path, path)
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(bytes(content))
    assert cluster.load_record(path) is None


@pytest.mark.parametrize("content", [b"", b"{}", b"\n", json.dumps({"id": "a"}).encode()])
def test_what_is_no_record_is_none(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.json"
    assert cluster.load_record(path) is None
    path.write_bytes(content)
    assert cluster.load_record(path) is None
