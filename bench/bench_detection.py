"""Detector speed: wall and CPU seconds per 1,000 words on real consultations, as JSON.

Run as ``python bench/bench_detection.py``; one conversation warms the models up. Without the
real transcripts the committed dialogues of the tests are used.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import yaml

from aegis import engines
from aegis.engines import TurnText
from aegis.readers import read_fareez
from aegis.tables import PROJECT

REAL = PROJECT.parent / "shared" / "data" / "fareez_transcripts" / "MedData" / "Clean Transcripts"
DIALOGUES = PROJECT / "tests" / "data" / "phi_dialogues"


def conversations(limit: int = 8) -> list[list[TurnText]]:
    if REAL.exists():
        files = sorted(REAL.glob("*.txt"))[:limit]
        return [
            [TurnText(str(k), u.speaker, u.text) for k, u in enumerate(read_fareez(file))]
            for file in files
        ]
    return [_dialogue(file) for file in sorted(DIALOGUES.glob("en_*.yaml"))[:limit]]


def _dialogue(path: Path) -> list[TurnText]:
    turns = yaml.safe_load(path.read_text(encoding="utf-8"))["turns"]
    return [TurnText(str(k), *next(iter(turn.items()))) for k, turn in enumerate(turns)]


def main() -> None:
    detector = engines.load("detector", "rules")
    given = conversations()
    detector.detect(given[0], "en")
    words = sum(len(turn.text.split()) for turns in given for turn in turns)
    wall, cpu = time.perf_counter(), time.process_time()
    for turns in given:
        detector.detect(turns, "en")
    result = {
        "words": words,
        "wall_s_per_1000_words": round((time.perf_counter() - wall) / words * 1000, 3),
        "cpu_s_per_1000_words": round((time.process_time() - cpu) / words * 1000, 3),
        "aim_s_per_1000_words": 1.0,
    }
    print(json.dumps({"detection": result}))


if __name__ == "__main__":
    main()
