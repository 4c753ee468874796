"""Memory of one long recording, step by step.

    .venv/bin/python bench/bench_memory.py --run demo --hours 3

Speech of a finished run is repeated to the length asked for and goes through the steps that see
a whole recording: ingest, diarization with its voice activity, recognition of a block of ten
minutes, the windows of a profile, reconstruction from turns of 30 s with its replay. One process
with a worker's environment does it all, its models loaded before. Resident memory is looked at
fifty times a second; what counts is how far it rises above the models. Writes
``bench/measured/memory.json``.
"""

from __future__ import annotations

import argparse
import json
import os
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
from aegis.audio import SAMPLE_RATE_HZ, LongSignal, Signal, open_wav, read_wav, write_wav
from aegis.cluster import WORKER_ENVIRONMENT
from aegis.engines.conversion import estimate_f0
from aegis.stitch import TurnSound, assemble, plan_segments, replay_steps
from aegis.tables import Run, open_run
from aegis.windows import cut_intervals, place_windows, window_signal

TARGET = Path(__file__).resolve().parent / "measured" / "memory.json"
AIM_MB = 1024.0
TURN = 30 * SAMPLE_RATE_HZ


class Watch:
    """The largest resident memory since the last :meth:`measure` began."""

    def __init__(self) -> None:
        self.base = self.peak = psutil.Process().memory_info().rss
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        while True:
            self.peak = max(self.peak, psutil.Process().memory_info().rss)
            time.sleep(0.02)

    def measure(self, function: Callable[[], Any]) -> tuple[dict[str, float], Any]:
        self.peak, began = psutil.Process().memory_info().rss, time.process_time()
        made = function()
        used = time.process_time() - began
        time.sleep(0.1)
        return {"above_mb": (self.peak - self.base) / 2**20, "cpu_s": used}, made


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


def describe_profile(samples: LongSignal) -> None:
    """Windows and pitch of a speaker who is heard all the time, as 02 takes them."""
    intervals = [(0, samples.size)]
    windows = [window_signal(samples, window) for window in place_windows(intervals)]
    engines.load("encoder", "ge2e").embed(windows)
    estimate_f0(window_signal(samples, cut_intervals(intervals, 0, TURN)))


def stitch(samples: LongSignal, folder: Path) -> float:
    """Put the recording together from its turns as 07 does; the replay's largest difference."""
    starts = range(0, samples.size, TURN)
    turns = []
    for start in starts:
        end = min(start + TURN, samples.size)
        write_wav(folder / f"{start}.wav", samples[start:end])
        turns.append(
            TurnSound(str(start), "p", 0, start, end, "converted", f"{start}.wav", end - start)
        )
    segments = plan_segments(turns, samples.size, "mono")

    def read(file: str) -> Signal:
        return read_wav(folder / file)

    written = write_wav(folder / "whole.wav", assemble(segments, read))
    return replay_steps(segments, read, open_wav(folder / "whole.wav"), written.gain_db)


def describe(steps: dict[str, dict[str, float]], n_turns: int) -> str:
    """What the steps mean, held against the aim of one GiB."""
    largest = max(steps, key=lambda name: steps[name]["above_mb"])
    most = steps[largest]["above_mb"]
    verdict = "within" if most <= AIM_MB else "over"
    return (
        f"Diarization gave {n_turns:,} stretches. Above the loaded models the recording takes"
        f" {most:.0f} MB at most ({largest}), {verdict} the aim of {AIM_MB:,.0f} MB. Sound is read"
        " where it is needed; recognition works in blocks of ten minutes, of which one was tried."
    )


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", default="demo")
    parser.add_argument("--hours", type=float, default=3.0)
    options = parser.parse_args(arguments)
    if not os.environ.keys() >= WORKER_ENVIRONMENT.keys():  # the C library reads it at the start
        command = [sys.executable, __file__, *arguments]
        os.execve(sys.executable, command, os.environ | WORKER_ENVIRONMENT)  # nosec B606 # itself
    steps: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as place:
        source, target = Path(place) / "in.wav", Path(place) / "out.wav"
        repeat(open_run(options.run), options.hours, source)
        diarizer = engines.load("diarizer", "pyannote-segmentation")
        transcriber = engines.load("transcriber", "whisper-base")
        first = sf.read(source, 20 * SAMPLE_RATE_HZ, dtype="float32")[0]
        diarizer.diarize(first, 2), transcriber.transcribe(first, "en")
        watch = Watch()
        steps["ingest"], _ = watch.measure(lambda: ingest.ingest_file(source, target))
        samples = open_wav(target)
        steps["diarize"], turns = watch.measure(lambda: diarizer.diarize(samples, 2))
        part = LongSignal((min(samples.size, 20 * TURN),), lambda a, b: samples[a:b])
        steps["recognise"], _ = watch.measure(lambda: transcriber.transcribe(part, "en"))
        steps["describe a profile"], _ = watch.measure(lambda: describe_profile(samples))
        steps["reconstruct"], worst = watch.measure(lambda: stitch(samples, Path(place)))
    assert worst <= 1.0
    content = {"hours": options.hours, "steps": steps, "note": describe(steps, len(turns))}
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(json.dumps(content, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
