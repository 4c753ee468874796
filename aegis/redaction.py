"""What a redacted turn still tells: where something was covered, for how long, and what is left.

Unit: one covered stretch of one redacted turn, in samples at 16 kHz. The finder knows no
plan and not even the kind of cover: it looks for frames that no speech makes (digital
silence, one steady tone, or a flat spectrum), so what it finds any recipient can find.

Functions: :func:`find_covered`, :func:`match_stretches`, :func:`edge_levels`,
:func:`leak_summary`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats as sps

from aegis.audio import SAMPLE_RATE_HZ, Signal

FRAME, HOP = 320, 160
SHORTEST_S = 0.06
SILENT_RMS = 1e-4
TONE_SHARE = 0.9
FLATNESS = 0.35
EDGE_S = 0.05

Stretch = tuple[int, int]


def find_covered(samples: Signal) -> list[Stretch]:
    """Stretches of a turn that look covered, in samples, at least 60 ms long."""
    if samples.size < FRAME:
        return []
    frames = np.lib.stride_tricks.sliding_window_view(samples, FRAME)[::HOP].astype(np.float64)
    rms = np.sqrt(np.mean(frames**2, axis=1))
    power = np.abs(np.fft.rfft(frames * np.hanning(FRAME), axis=1)) ** 2 + 1e-20
    peak = power.argmax(axis=1)
    near = np.clip(peak[:, None] + np.arange(-2, 3), 0, power.shape[1] - 1)
    tonal = np.take_along_axis(power, near, axis=1).sum(axis=1) / power.sum(axis=1)
    inner = power[:, 4:-4]
    flat = np.exp(np.log(inner).mean(axis=1)) / inner.mean(axis=1)
    loud = rms > SILENT_RMS
    steady = np.bincount(peak[loud & (tonal > TONE_SHARE)], minlength=1).argmax()
    kinds = [
        ~loud,
        loud & (tonal > TONE_SHARE) & (np.abs(peak - steady) <= 1),
        loud & (flat > FLATNESS) & (rms > 0.1 * np.sqrt(np.mean(samples.astype(float) ** 2))),
    ]
    found = [run for kind in kinds for run in _runs(kind)]
    return sorted(found)


def _runs(marked: np.ndarray) -> list[Stretch]:
    """Runs of marked frames as samples; a frame stands for the hop around its middle."""
    padded = np.concatenate([[0], marked.astype(int), [0]])
    changes = np.diff(padded)
    out = []
    for first, last in zip(
        np.flatnonzero(changes == 1), np.flatnonzero(changes == -1), strict=True
    ):
        start, end = int(first) * HOP, (int(last) - 1) * HOP + FRAME
        if end - start >= SHORTEST_S * SAMPLE_RATE_HZ + FRAME - HOP:
            out.append((start, end))
    return out


@dataclass(frozen=True)
class Guess:
    """What the finder made of one covered stretch; errors in seconds, None when not found."""

    found: bool
    start_error_s: float | None = None
    end_error_s: float | None = None


def match_stretches(covered: Sequence[Stretch], guesses: Sequence[Stretch]) -> list[Guess]:
    """For each covered stretch the guess that shares most with it, if that is half of both."""
    out = []
    for start, end in covered:
        shared = [min(end, b) - max(start, a) for a, b in guesses]
        best = int(np.argmax(shared)) if shared else -1
        longest = max(end - start, guesses[best][1] - guesses[best][0]) if shared else 1
        if best < 0 or shared[best] < 0.5 * longest:
            out.append(Guess(False))
            continue
        a, b = guesses[best]
        out.append(Guess(True, (a - start) / SAMPLE_RATE_HZ, (b - end) / SAMPLE_RATE_HZ))
    return out


def edge_levels(samples: Signal, stretch: Stretch) -> float:
    """Level in dB of the louder 50 ms beside a covered stretch, over that of the rest.

    Near 0 or above, the cut goes through speech, and a piece of the word may be left.
    """
    start, end = stretch
    width = round(EDGE_S * SAMPLE_RATE_HZ)
    sides = [samples[max(start - width, 0) : start], samples[end : end + width]]
    rest = np.concatenate([samples[:start], samples[end:]]).astype(np.float64)
    power = [float(np.mean(side.astype(np.float64) ** 2)) for side in sides if side.size]
    whole = float(np.mean(rest**2)) if rest.size else 0.0
    if not power or whole <= 0 or max(power) <= 0:
        return -np.inf
    return float(10 * np.log10(max(power) / whole))


def leak_summary(redactions: pd.DataFrame) -> pd.DataFrame:
    """Each kind of cover with what it leaks.

    ``redactions`` has one row a covered stretch: ``kind status found start_error_s
    end_error_s covered_s n_characters original_status edge_db``. The duration leaks as far
    as it follows the length of what was covered (Spearman's rank correlation).
    """
    rows = []
    for kind, own in redactions[redactions["status"] == "ok"].groupby("kind"):
        hit = own[own["found"].astype(bool)]
        errors = pd.concat([hit["start_error_s"], hit["end_error_s"]]).astype(float).abs()
        lengths = own[["covered_s", "n_characters"]].astype(float)
        known = len(lengths) > 2 and bool((lengths.max() > lengths.min()).all())
        rank = float(sps.spearmanr(lengths.iloc[:, 0], lengths.iloc[:, 1])[0]) if known else np.nan
        rows.append({
            "kind": kind, "covered": len(own), "position_found": len(hit),
            "median_edge_error_ms": 1000 * errors.median(), "duration_rank_correlation": rank,
            "original_heard": int((own["original_status"] == "retained").sum()),
            "original_uncertain": int((own["original_status"] == "uncertain").sum()),
            "edges_in_speech": int((own["edge_db"].astype(float) > -10).sum()),
        })  # fmt: skip
    columns = ["kind", "covered", "position_found", "median_edge_error_ms",
               "duration_rank_correlation", "original_heard", "original_uncertain",
               "edges_in_speech"]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)
