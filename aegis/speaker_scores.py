"""Diarization and speaker attribution against a known truth.

Unit: one recording; the scores are sums (seconds, words) that are pooled over
recordings, never averaged ratios. Speaker names of hypothesis and truth are matched
one to one so that the score is best. No collar, overlap included.

Functions: :func:`score_diarization`, :func:`score_attribution`, :func:`score_counts`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

LONGEST_PAUSE_S = 0.2
"""Pauses longer than this are cut out of the reference."""


def score_diarization(
    stretches: pd.DataFrame, gold: pd.DataFrame, recordings: Iterable[str] | None = None
) -> pd.DataFrame:
    """Diarization errors in seconds, one row a recording of ``gold``.

    Parameters
    ----------
    stretches
        Columns recording_id, speaker, start_s, end_s (``diarization`` or ``turn_times``).
    gold
        The same columns: ``gold_speech``, or ``gold_words``, whose words are joined over
        pauses of up to 0.2 s; rows without times are left out.
    recordings
        Ids to score; all of ``gold`` when omitted.

    Returns
    -------
    DataFrame
        recording_id, scored_s, missed_s, false_alarm_s, confusion_s.
    """
    from pyannote.metrics.diarization import DiarizationErrorRate

    gold = gold.dropna(subset=["start_s", "end_s"])
    wanted = sorted(set(gold["recording_id"])) if recordings is None else list(recordings)
    rows = []
    for recording_id in wanted:
        reference = annotation(gold[gold["recording_id"] == recording_id], LONGEST_PAUSE_S)
        found = annotation(stretches[stretches["recording_id"] == recording_id], 0.0)
        metric = DiarizationErrorRate(collar=0.0, skip_overlap=False)
        extent = reference.get_timeline().union(found.get_timeline()).extent()
        parts = metric(reference, found, uem=extent, detailed=True)
        rows.append(
            {
                "recording_id": recording_id,
                "scored_s": parts["total"],
                "missed_s": parts["missed detection"],
                "false_alarm_s": parts["false alarm"],
                "confusion_s": parts["confusion"],
            }
        )
    return pd.DataFrame(
        rows, columns=["recording_id", "scored_s", "missed_s", "false_alarm_s", "confusion_s"]
    )


def annotation(table: pd.DataFrame, join_s: float) -> Any:
    """A pyannote annotation of stretches; each speaker's gaps up to ``join_s`` are closed."""
    from pyannote.core import Annotation, Segment

    made = Annotation()
    for speaker, own in table.groupby("speaker", sort=True):
        end = -np.inf
        start = 0.0
        rows = own.sort_values("start_s")[["start_s", "end_s"]].astype(float).to_numpy()
        for begin, until in [*rows, (np.inf, np.inf)]:
            if begin - end <= join_s:
                end = max(end, until)
                continue
            if end > start:
                made[Segment(start, end), f"{speaker}-{start}"] = str(speaker)
            start, end = begin, until
    return made
