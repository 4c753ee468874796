"""Speed of the embedded judge at the paper's size: 25,778 facts in four arms, two workers.

Run as ``python bench/bench_judge.py [share]`` (1.0 by default; a smaller share of the
conversations for a quick look). Consultations (PriMock57 where it is at hand, else the
scripts) are varied word by word from a seed, so that no two transcripts are equal and
nothing is answered from memory. The judging runs through the stage as in a study; then it
runs again and everything must come from the kept results. Prints one JSON line.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from aegis.cluster import local_cluster
from aegis.facts import extract_inventory
from aegis.inventory import SourceTurn
from aegis.manifests import read_scripts
from aegis.stage import open_stage
from aegis.tables import PROJECT
from aegis.work.judge import judge_recording

REAL = PROJECT.parent / "shared" / "data" / "primock57" / "transcripts"
N_CONVERSATIONS, N_FACTS = 390, 25_778
ARMS = ("original", "converted", "renderer_a", "renderer_b")
Turns = list[tuple[str, str]]


def conversations() -> list[Turns]:
    """Base talks as (speaker, text)."""
    if not REAL.exists():
        return [
            [(t.speaker, t.text) for t in s.turns] for s in read_scripts() if s.language == "en"
        ]
    talks = []
    for doctor in sorted(REAL.glob("*_doctor.TextGrid")):
        said = [(at, "S1", text) for at, text in _grid(doctor)]
        patient = doctor.with_name(doctor.name.replace("_doctor", "_patient"))
        said += [(at, "S2", text) for at, text in _grid(patient)]
        talks.append([(who, text) for _, who, text in sorted(said)])
    return talks


def _grid(path: Path) -> list[tuple[float, str]]:
    text = path.read_text(encoding="utf-8", errors="replace")
    found = re.findall(r'xmin = ([\d.]+)\s+xmax = [\d.]+\s+text = "(.*?)"\s*\n', text)
    return [
        (float(at), re.sub(r"<[^>]*>", "", said).strip()) for at, said in found if said.strip()
    ]


def vary(talk: Turns, rng: np.random.Generator, rate: float, vocabulary: list[str]) -> Turns:
    """Each word is replaced by another with probability ``rate``."""
    out = []
    for who, text in talk:
        words = text.split()
        change = rng.random(len(words)) < rate
        other = rng.integers(len(vocabulary), size=len(words))
        said = [vocabulary[o] if c else w for w, c, o in zip(words, change, other, strict=True)]
        out.append((who, " ".join(said)))
    return out


def build_items(share: float, seed: int = 20261005) -> tuple[list[dict[str, Any]], int]:
    """Items of judging and the number of transcript words in them."""
    rng, base = np.random.default_rng(seed), conversations()
    vocabulary = sorted({w for talk in base for _, t in talk for w in t.split() if w.isalpha()})
    items, words = [], 0
    count = round(N_CONVERSATIONS * share)
    for i in range(count):
        other = base[(i * 7 + 3) % len(base)]
        talk = base[i % len(base)] + other[: len(other) // 2]
        source = vary(talk, rng, 0.02, vocabulary)
        said = [SourceTurn(str(k), who, text) for k, (who, text) in enumerate(source)]
        facts = extract_inventory(said, "en", {"S1": "clinician", "S2": "patient"}).facts
        wanted = N_FACTS // N_CONVERSATIONS + (i < N_FACTS % N_CONVERSATIONS)
        claims = [
            [f"{i}-{k}", f.text, f.evidence, f.turn_index, f.question is not None]
            for k, f in enumerate(facts[:wanted])
        ]
        words += sum(len(text.split()) for _, text in source)
        for arm in ARMS:
            target = vary(source, rng, 0.08, vocabulary)
            words += sum(len(text.split()) for _, text in target)
            items.append(
                {"id": f"{i}:{arm}", "language": "en", "source": source, "target": target,
                 "claims": {"facts": claims}}
            )  # fmt: skip
    return items, words


def main() -> None:
    share = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    items, words = build_items(share)
    n_facts = sum(len(item["claims"]["facts"]) for item in items)
    parameters = {
        "run_name": "bench-judge", "judge": "rules", "model": "", "two_orders": False,
        "max_cost": 0.0, "seed": 1,
    }  # fmt: skip
    settings = {"judge": "rules", "model": "", "orders": ["source_first"]}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["AEGIS_RUNS"] = folder
        with local_cluster(2, Path(folder) / "workers.log") as address:
            os.environ["AEGIS_SCHEDULER"] = address
            seconds = []
            for _ in range(2):
                stage = open_stage("10_judge_facts", parameters)
                began = time.perf_counter()
                results = stage.map(judge_recording, items, settings)
                seconds.append(time.perf_counter() - began)
        failed = sum(result.status != "ok" for result in results)
        cached = all(result.cached for result in results)
    print(
        json.dumps(
            {
                "bench": "judge", "share": share, "seconds": round(seconds[0], 1),
                "cached_s": round(seconds[1], 1),
                "verdicts": n_facts, "words": words, "failed": failed, "all_cached": cached,
            }
        )
    )  # fmt: skip


if __name__ == "__main__":
    main()
