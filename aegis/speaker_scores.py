"""Diarization and speaker attribution against a known truth.

Unit: one recording; the scores are sums (seconds, words) that are pooled over
recordings, never averaged ratios. Speaker names of hypothesis and truth are matched
one to one so that the score is best. No collar, overlap included.

Functions: :func:`read_rttm`, :func:`score_diarization`, :func:`score_attribution`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from aegis.errors import ManifestError

LONGEST_PAUSE_S = 0.2
"""Pauses longer than this are cut out of the reference."""


def read_rttm(path: Path) -> pd.DataFrame:
    """Stretches of an RTTM file: recording_id, speaker, start_s, end_s.

    Raises
    ------
    ManifestError
        A SPEAKER line has too few fields, no number where one should be, or no positive
        length; the message has the line.
    """
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8-sig").splitlines(), start=1):
        fields = line.split()
        if not fields or fields[0] != "SPEAKER":
            continue
        try:
            start, length = float(fields[3]), float(fields[4])
            rows.append((fields[1], fields[7], start, start + length))
        except (IndexError, ValueError) as error:
            raise ManifestError(
                f"{path.name}, line {number}: not an RTTM line ({error})"
            ) from error
        if not (start >= 0 and length > 0):
            raise ManifestError(f"{path.name}, line {number}: start {start}, length {length}")
    return pd.DataFrame(rows, columns=["recording_id", "speaker", "start_s", "end_s"])


def score_diarization(
    stretches: pd.DataFrame,
    gold: pd.DataFrame,
    recordings: Iterable[str] | None = None,
    collar_s: float = 0.0,
    skip_overlap: bool = False,
    pause_s: float = LONGEST_PAUSE_S,
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
    collar_s, skip_overlap
        Seconds around reference edges (both sides together) and overlap left out: not in
        this study, but in published values.
    pause_s
        Pauses of one speaker in ``gold`` up to this are closed; ``-inf`` leaves touching
        stretches apart, each with a collar of its own.

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
        reference = annotation(gold[gold["recording_id"] == recording_id], pause_s)
        found = annotation(stretches[stretches["recording_id"] == recording_id], 0.0)
        metric = DiarizationErrorRate(collar=collar_s, skip_overlap=skip_overlap)
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


def score_attribution(words: pd.DataFrame, gold_words: pd.DataFrame) -> pd.DataFrame:
    """Recognised words that have the right speaker, one row a recording of ``gold_words``.

    Recognised and spoken words are aligned by text (fewest edits); a pair counts where
    the texts agree or one stands for the other. Inserted words have no true speaker.

    Parameters
    ----------
    words
        Columns recording_id, word_index, text, speaker (missing: unknown, never right).
    gold_words
        Columns recording_id, word_index, text, speaker.

    Returns
    -------
    DataFrame
        recording_id, n_words (aligned pairs), n_right.
    """
    rows = []
    for recording_id, truth in gold_words.groupby("recording_id", sort=True):
        own = words[words["recording_id"] == recording_id].sort_values("word_index")
        pairs = align_words(own, truth.sort_values("word_index"))
        n_right = _best_agreement(pairs)
        rows.append({"recording_id": recording_id, "n_words": len(pairs), "n_right": n_right})
    return pd.DataFrame(rows, columns=["recording_id", "n_words", "n_right"])


def align_words(words: pd.DataFrame, truth: pd.DataFrame) -> list[tuple[str | None, str]]:
    """Pairs (speaker given, true speaker) of words that the cheapest alignment puts together."""
    import jiwer

    heard, spoken = (
        [(plain, None if pd.isna(speaker) else str(speaker))
         for text, speaker in zip(table["text"], table["speaker"], strict=True)
         if (plain := re.sub(r"[^\w']", "", text).casefold())]
        for table in (words, truth)
    )  # fmt: skip
    if not heard or not spoken:
        return []
    reference, hypothesis = (" ".join(word for word, _ in side) for side in (spoken, heard))
    pairs: list[tuple[str | None, str]] = []
    for chunk in jiwer.process_words(reference, hypothesis).alignments[0]:
        if chunk.type in ("equal", "substitute"):
            for step in range(chunk.ref_end_idx - chunk.ref_start_idx):
                given = heard[chunk.hyp_start_idx + step][1]
                pairs.append((given, str(spoken[chunk.ref_start_idx + step][1])))
    return pairs


def _best_agreement(pairs: list[tuple[str | None, str]]) -> int:
    """Pairs that agree under the best one-to-one naming of the speakers."""
    from scipy.optimize import linear_sum_assignment

    known = [(given, true) for given, true in pairs if given is not None]
    if not known:
        return 0
    given, true = (sorted({pair[side] for pair in known}) for side in (0, 1))
    counts = np.zeros((len(given), len(true)), dtype=np.int64)
    for one, other in known:
        counts[given.index(one), true.index(other)] += 1
    return int(counts[linear_sum_assignment(-counts)].sum())
