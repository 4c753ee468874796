"""``docs/scale.md``: what 100,000 hours would take, from measured costs.

    .venv/bin/python bench/projection.py --run demo   # measures a finished run, writes the page
    .venv/bin/python bench/projection.py              # writes the page from what was measured

``bench/measured/`` holds what the page rests on: ``run.json`` (this file), ``scale.json``
(``bench_scale.py``) and ``memory.json`` (``bench_memory.py``).
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any

import pandas as pd

from aegis import ledger
from aegis.tables import PROJECT, Run, open_run

MEASURED = Path(__file__).resolve().parent / "measured"
PAGE = PROJECT / "docs" / "scale.md"
HOURS = 100_000
STAGES = ("01_transcribe", "04_convert", "05_plan_edits", "06_render_edits", "07_stitch",
          "08_extract_facts", "09_retranscribe", "10_judge_facts", "11_judge_edits",
          "12_linkage")  # fmt: skip
"""Stages whose work grows with the sound. 00 synthesises the demo, and 02 mostly its pool."""
TOKENS_A_WORD, READINGS = 1.35, 12
"""For a chat judge: tokens of a word, and how often a transcript is sent: source and target,
two orders, three questions (facts, endpoints, edits)."""


def measure_run(run: Run) -> dict[str, Any]:
    """Seconds of items a second of sound, bytes a second of sound, words a second."""
    costs = ledger.profile(run).set_index("stage")
    sound_s = float(run.read("recordings").query("status == 'ok'")["duration_s"].sum())
    places = {"originals": run.secret / "wav", "turns": run.wav / "turns",
              "conversations": run.wav / "conversations", "items": run.secret / "items",
              "tables": run.root / "tables", "secret tables": run.secret / "tables"}  # fmt: skip
    return {
        "sound_s": sound_s,
        "recordings": len(run.read("recordings")),
        "core_s_per_s": {name: float(costs.loc[name, "item_s"]) / sound_s for name in STAGES},
        "bytes_per_s": {name: _size(path) / sound_s for name, path in places.items()},
        "words_per_s": float(run.read("turns")["n_words"].sum()) / sound_s,
    }


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def page() -> str:
    run, scale, memory = (
        json.loads((MEASURED / f"{name}.json").read_text("utf-8"))
        for name in ("run", "scale", "memory")
    )
    core = pd.Series(run["core_s_per_s"])
    stored = pd.Series(run["bytes_per_s"])
    words = run["words_per_s"] * 3600 * HOURS
    flat = pd.DataFrame(scale).T.drop(columns="memory_mb")
    ratio = (flat.iloc[-1] / flat.iloc[0]).max()
    largest = core.sort_values(ascending=False)
    return f"""# What 100,000 hours would take {{.unnumbered}}

Written by `bench/projection.py` from measurements in `bench/measured/`: a demo run of
{run["recordings"]} recordings ({run["sound_s"] / 60:.1f} minutes) with the embedded engines on
shared cores of an ordinary server, one thread a worker; no graphics card. The rest of this page is
multiplication.

## Processors

{
        _table(
            ["stage", "core seconds a second of sound", "core years"],
            [[name, f"{value:.3f}", f"{value * HOURS / 8766:.2f}"] for name, value in core.items()]
            + [["all", f"{core.sum():.3f}", f"{core.sum() * HOURS / 8766:.1f}"]],
        )
    }
{math.ceil(core.sum() * HOURS / 24 / 30)} cores finish in 30 days. The bottlenecks are
{largest.index[0]} and {largest.index[1]}, {largest.iloc[:2].sum() / core.sum():.0%} of all: both
grow with the number of conditions, since everything rendered is heard anew. Recognition and
rendering are the work for graphics cards. How much faster a card is was not measured; a card that
does the work of *k* cores takes the place of *k* cores, so for 30 days
{math.ceil(core.sum() * HOURS / 24 / 30 / 50)} cards at *k* = 50.

## Storage

{
        _table(
            ["what", "MB an hour", "TB"],
            [
                [name, f"{value * 3600 / 1e6:.0f}", f"{value * 3600 * HOURS / 1e12:.1f}"]
                for name, value in stored.items()
            ]
            + [
                [
                    "all",
                    f"{stored.sum() * 3600 / 1e6:.0f}",
                    f"{stored.sum() * 3600 * HOURS / 1e12:.1f}",
                ]
            ],
        )
    }
Sound is kept as 16-bit PCM for each turn and each conversation in each condition; turns can be
dropped once a run is verified.

## Tokens and money

The embedded judges use none. A chat judge reads each transcript about {READINGS} times (source and
target, two orders, three questions); with {TOKENS_A_WORD} tokens a word, which is an estimate, the
{words / 1e9:.2f} billion words are {words * TOKENS_A_WORD * READINGS / 1e9:.0f} billion input
tokens a judged condition, or {
        words * TOKENS_A_WORD * READINGS / 1e6:,.0f} US dollars at one dollar
a million tokens. At this size a sample must be judged instead, as the paper does for its second
judge.

## Cost a recording does not grow with their number

Processor milliseconds a recording, at each number of recordings (`bench/bench_scale.py`):

{
        _table(
            ["recordings", *flat.columns],
            [[f"{int(n):,}", *(f"{1000 * v:.2f}" for v in row)] for n, row in flat.iterrows()],
        )
    }
The largest ratio of the last line to the first is {ratio:.2f}. The driver holds
{scale[list(scale)[-1]]["memory_mb"]:.0f} MB at {int(list(scale)[-1]):,} recordings, since tables
are read whole; at a million recordings a study should be run in parts.

## Memory of one long recording

{memory["hours"]:g} hours of repeated demo speech: resident memory above the loaded models at its
highest (`bench/bench_memory.py`).

{
        _table(
            ["step", "MB above the models", "core seconds"],
            [
                [name, f"{entry['above_mb']:.0f}", f"{entry['cpu_s']:.0f}"]
                for name, entry in memory["steps"].items()
            ],
        )
    }
{memory["note"]}
"""


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", help="a finished run to measure")
    options = parser.parse_args(arguments)
    if options.run:
        text = json.dumps(measure_run(open_run(options.run)), indent=1)
        (MEASURED / "run.json").write_text(text + "\n", "utf-8")
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
