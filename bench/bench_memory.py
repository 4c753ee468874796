"""Memory of one long recording, step by step.

    .venv/bin/python bench/bench_memory.py --run demo --hours 3

Speech of a finished run is repeated to the length asked for, then ingested, read, searched for
speech and diarized in one process; resident memory is looked at fifty times a second. Writes
``bench/measured/memory.json``.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import soundfile as sf

from aegis import engines, ingest
from aegis.audio import SAMPLE_RATE_HZ, read_wav
from aegis.engines.activity import voice_probabilities
from aegis.tables import Run, open_run

TARGET = Path(__file__).resolve().parent / "measured" / "memory.json"


class Watch:
    """The largest resident memory since the last :meth:`measure` began."""

    def __init__(self) -> None:
        self.peak = 0
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        while True:
            self.peak = max(self.peak, psutil.Process().memory_info().rss)
            time.sleep(0.02)

    def measure(self, function: Callable[[], Any]) -> tuple[dict[str, float], Any]:
        before, began = psutil.Process().memory_info().rss, time.process_time()
        self.peak = before
        made = function()
        time.sleep(0.1)
        grew = (self.peak - before) / 2**20
        used = time.process_time() - began
        return {"base_mb": before / 2**20, "grew_mb": grew, "cpu_s": used}, made


def repeat(run: Run, hours: float, path: Path) -> None:
    """Originals of a run one after the other, again and again."""
    files = sorted((run.secret / "wav" / "original").rglob("*.wav"))
    left = round(hours * 3600 * SAMPLE_RATE_HZ)
    with sf.SoundFile(path, "w", SAMPLE_RATE_HZ, 1, "PCM_16") as out:
        while left > 0:
            for file in files:
                samples = sf.read(file, dtype="int16", always_2d=True)[0][:left, 0]
                out.write(samples)
                left -= len(samples)


def describe(steps: dict[str, dict[str, float]], n_turns: int) -> str:
    """What the steps mean, held against the aim of one GiB."""
    total = steps["read"]["grew_mb"] + steps["diarize"]["grew_mb"]
    verdict = "within" if total <= 1024 else "over"
    return (
        f"{n_turns} stretches of speech were found. Diarization has the samples of the read step"
        f" in memory: above the loaded models a recording takes {total:.0f} MB at most, {verdict}"
        " the aim of 1,024 MB. Recognition works in blocks of ten minutes."
    )


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", default="demo")
    parser.add_argument("--hours", type=float, default=3.0)
    options = parser.parse_args(arguments)
    watch, steps = Watch(), {}
    with tempfile.TemporaryDirectory() as place:
        source, target = Path(place) / "in.wav", Path(place) / "out.wav"
        repeat(open_run(options.run), options.hours, source)
        steps["ingest"], _ = watch.measure(lambda: ingest.ingest_file(source, target))
        steps["read"], samples = watch.measure(lambda: read_wav(target))
        steps["find speech"], _ = watch.measure(lambda: voice_probabilities(samples))
        diarizer = engines.load("diarizer", "pyannote-segmentation")
        diarizer.diarize(samples[: 20 * SAMPLE_RATE_HZ], 2)
        steps["diarize"], turns = watch.measure(lambda: diarizer.diarize(samples, 2))
    note = describe(steps, len(turns))
    content = {"hours": options.hours, "steps": steps, "note": note}
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(json.dumps(content, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
