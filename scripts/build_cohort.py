"""Build data_manifests/cohort/<backend>.json: the mean on which embeddings are centred.

Every voice of cohort.yaml speaks one text; its unit-norm window embeddings are averaged,
and so are the voices. Run after a change of the encoders or the list: it prints how far
the new mean lies from the stored one, and the shares of cohort pairs over 0.70 and 0.65
before and after centring.
"""

from __future__ import annotations

import json
import sys

import numpy as np

from aegis import engines
from aegis.audio import write_bytes
from aegis.fields import read_yaml
from aegis.manifests import reserved_voices
from aegis.voices import COHORT, centre, unit_norm
from aegis.windows import place_windows, usable_intervals, window_signal


def main(backends: list[str]) -> None:
    """Synthesise the cohort once and write one file a backend."""
    declared = read_yaml(COHORT / "cohort.yaml")
    speaker = engines.load("synthesiser", declared["synthesiser"])
    clash = {f"{declared['synthesiser']}:{v}" for v in declared["voices"]} & reserved_voices()
    if clash:
        raise SystemExit(f"voices of the corpus are in the cohort: {sorted(clash)}")
    speech = [
        speaker.speak(declared["text"], voice, declared["language"])
        for voice in declared["voices"]
    ]
    for backend in backends:
        encoder = engines.load("encoder", backend)
        means = []
        for samples in speech:
            places = place_windows(usable_intervals([(0, samples.size)]))
            windows = [window_signal(samples, place) for place in places]
            means.append(unit_norm(encoder.embed(windows)).mean(axis=0))
        write(backend, np.array(means), declared, encoder.info)


def write(backend: str, means: np.ndarray, declared: dict, info: engines.EngineInfo) -> None:
    """Write and describe one backend's mean."""
    mean = means.mean(axis=0).round(7)
    path = COHORT / f"{backend}.json"
    if path.exists():
        before = np.array(json.loads(path.read_text("utf-8"))["mean"])
        print(f"{backend}: largest change of a value {np.abs(before - mean).max():.2e}")
    raw, centred = unit_norm(means), centre(means, mean)
    pairs = np.triu_indices(len(means), 1)
    for name, rows in (("raw", raw), ("centred", centred)):
        distances = 1 - (rows @ rows.T)[pairs]
        shares = [float((distances >= limit).mean()) for limit in (0.70, 0.65)]
        over = f"{shares[0]:.3f} of cohort pairs over 0.70, {shares[1]:.3f} over 0.65"
        print(f"{backend}, {name}: {over}")
    content = {
        "backend": backend, "encoder_revision": info.revision, "cohort": declared["name"],
        "n_voices": len(means), "voices": declared["voices"], "licence": declared["licence"],
        "made_by": "scripts/build_cohort.py", "mean": mean.tolist(),
    }  # fmt: skip
    write_bytes(path, (json.dumps(content, indent=1) + "\n").encode())


if __name__ == "__main__":
    main(sys.argv[1:] or ["ge2e", "dvector"])
