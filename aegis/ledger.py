"""What a run did and what it cost, from its receipts and public tables.

The unit is a stage (or an engine in a stage). Receipts are written last by each
stage; this module only reads them. A stage without a receipt has no row.

Functions: :func:`stage_costs`, :func:`profile`, :func:`engines_used`, :func:`item_fates`,
:func:`units`.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from aegis import receipts
from aegis.pipeline import STAGES
from aegis.tables import SCHEMAS, Run

USAGE = ("requests", "input_tokens", "output_tokens", "cost_usd")
"""What chat engines count, over all items of a stage; replies from the cache count nothing."""


def _receipts(run: Run) -> list[receipts.Receipt]:
    found = (receipts.read_receipt(run, name) for name in STAGES)
    return [receipt for receipt in found if receipt]


def stage_costs(run: Run) -> pd.DataFrame:
    """Time and memory of each stage's last execution.

    ``engine_s`` is bare engine time over all items, reused ones included; ``wall_s`` is
    the wall time of the last execution, in which ``reused`` items cost nothing.
    """
    rows: list[dict[str, Any]] = []
    for receipt in _receipts(run):
        memory = receipt["peak_memory_mb"]
        rows.append(
            {
                "stage": receipt["stage"],
                **receipt["counts"],
                "reused": receipt["reused"],
                "engine_s": receipt["engine_s"],
                "wall_s": receipt["wall_s"],
                "cpu_s": receipt["cpu_s"],
                "peak_memory_mb": memory["driver"] + memory["workers"],
                **{name: receipt.get("usage", {}).get(name, 0) for name in USAGE},
            }
        )
    return pd.DataFrame(rows)


def profile(run: Run) -> pd.DataFrame:
    """:func:`stage_costs` with shares: of all wall time, and of items' time spent in engines.

    ``item_s`` is the wall time of all items together, reused ones included.
    """
    costs = stage_costs(run)
    items = {r["stage"]: float(r.get("item_s", 0.0)) for r in _receipts(run)}
    if costs.empty:
        return costs
    costs["item_s"] = [items[stage] for stage in costs["stage"]]
    costs["share_of_wall"] = costs["wall_s"] / costs["wall_s"].sum()
    costs["share_in_engines"] = (costs["engine_s"] / costs["item_s"]).where(costs["item_s"] > 0)
    return costs[[
        "stage", "planned", "failed", "reused", "wall_s", "share_of_wall", "cpu_s", "item_s",
        "engine_s", "share_in_engines", "peak_memory_mb", *USAGE,
    ]]  # fmt: skip


def engines_used(run: Run) -> pd.DataFrame:
    """Each engine of the run once, with the stages that used it."""
    seen: dict[tuple[Any, ...], list[str]] = {}
    for receipt in _receipts(run):
        for info in receipt["engines"]:
            names = ("role", "name", "revision", "licence", "device", "embedded")
            seen.setdefault(tuple(info[name] for name in names), []).append(receipt["stage"])
    columns = ["role", "name", "revision", "licence", "device", "embedded", "stages"]
    rows = [(*key, ", ".join(stages)) for key, stages in sorted(seen.items(), key=str)]
    return pd.DataFrame(rows, columns=columns)


def item_fates(run: Run) -> pd.DataFrame:
    """Rows of each table by status: every scheduled item has exactly one fate."""
    rows: list[dict[str, Any]] = []
    for name, schema in SCHEMAS.items():
        if "status" in schema.columns and run.has(name):
            counts = run.read(name)["status"].value_counts()
            rows.append({"table": name, "unit": schema.unit, "scheduled": int(counts.sum())})
            rows[-1] |= {str(status): int(count) for status, count in counts.items()}
    frame = pd.DataFrame(rows).fillna(0)
    return frame.astype({c: int for c in frame.columns if c not in ("table", "unit")})


def units(run: Run) -> pd.DataFrame:
    """How many there are of each unit that the study counts in (paper, appendix F)."""
    rows: list[dict[str, Any]] = []

    def count(unit: str, table: str, where: str | None = None) -> None:
        if table not in SCHEMAS or not run.has(table):
            rows.append({"unit": unit, "this run": None})
            return
        frame = run.read(table)
        rows.append({"unit": unit, "this run": len(frame.query(where) if where else frame)})

    count("recordings (conversations, clusters)", "recordings", "status == 'ok'")
    count("conversation-speaker profiles", "profiles")
    count("pool units", "voices", "status == 'ok'")
    count("turns", "turns")
    count("edit intentions (focused)", "edits", "status == 'ok'")
    count("composed regions (affected turns)", "regions", "status == 'ok'")
    count("clinical facts", "facts")
    final = "protocol == 'final' and condition == 'converted' and region_kind == 'all_turns'"
    for label, side in (("same-profile trials", "target"), ("other-speaker trials", "not target")):
        backend = run.read("trials")["backend"].min() if run.has("trials") else ""
        where = f"{final} and {side} and backend == '{backend}'"
        count(f"{label} of the final waveform", "trials", where)
    return pd.DataFrame(rows)
