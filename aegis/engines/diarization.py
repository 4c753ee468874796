"""Diarization: who speaks when, with or without a known number of speakers.

Unit: one mono recording at 16 kHz. Both engines cut the recording into short pieces of
one voice, embed each with GE2E, cluster the embeddings (agglomerative, average linkage,
cosine) and refine the cluster means; they differ in where the pieces come from:

- ``pyannote-segmentation``: PyanNet finds up to three local speakers in 5-s windows,
  overlap included (Bredin and Laurent 2021). Local speakers of one window are different
  people, so their assignment to clusters is one to one; the windows' activations are
  then added up on one time line, and as many speakers are active in a frame as the
  windows count on average.
- ``window-clustering``: windows of 1.5 s inside the voice activity; no overlap.

A recording's features are kept until the next recording, so that asking twice (with and
without the number of speakers) costs one analysis. Memory: embeddings of long recordings
are clustered on at most ``MOST_CLUSTERED`` of them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aegis.audio import SAMPLE_RATE_HZ, Signal
from aegis.engines import EngineInfo, SpeakerTurn, load, register
from aegis.engines.activity import find_speech, join_intervals, voice_probabilities
from aegis.errors import EngineUnavailable

Floats = NDArray[np.float32]

MOST_CLUSTERED = 3000
PIECE_THRESHOLD = 0.30
"""Cosine distance below which two clusters of local speakers are one voice (GE2E, raw)."""
WINDOW_THRESHOLD = 0.33
"""The same for 1.5-s windows, whose embeddings scatter more."""
SMALLEST_SHARE = 0.04
"""A cluster with less of the pieces is no speaker of its own."""


@dataclass(frozen=True)
class Pieces:
    """Embedded pieces: unit vectors (n, d), seconds of clean speech (n,), window index (n,)."""

    vectors: Floats
    seconds: Floats
    group: NDArray[np.int64]


def cluster_pieces(
    pieces: Pieces, n_speakers: int | None, threshold: float, reliable_s: float = 1.0
) -> Floats:
    """Mean embedding of each speaker, shape (speakers, d).

    Parameters
    ----------
    n_speakers
        Number of speakers; None lets ``threshold`` decide.
    reliable_s
        Pieces with less clean speech take part in no cluster (unless all are short).
    """
    chosen = np.flatnonzero(pieces.seconds >= reliable_s)
    if chosen.size < max(2, n_speakers or 0):
        chosen = np.arange(len(pieces.seconds))
    if chosen.size > MOST_CLUSTERED:
        chosen = chosen[np.linspace(0, chosen.size - 1, MOST_CLUSTERED).astype(int)]
    vectors = pieces.vectors[chosen]
    labels = _cut_tree(vectors, n_speakers, threshold)
    means = np.stack(
        [vectors[labels == label].mean(axis=0) for label in _large(labels, n_speakers)]
    )
    for _ in range(3):
        nearest = assign_pieces(pieces, _unit(means))[chosen]
        means = np.stack(
            [
                vectors[nearest == k].mean(axis=0) if (nearest == k).any() else means[k]
                for k in range(len(means))
            ]
        )
    return _unit(means)


def _cut_tree(vectors: Floats, n_speakers: int | None, threshold: float) -> NDArray[np.int64]:
    """Labels from one dendrogram, cut at the threshold or where enough clusters are large."""
    from scipy.cluster.hierarchy import fcluster, linkage

    if len(vectors) < 2:
        return np.zeros(len(vectors), dtype=np.int64)
    tree = linkage(vectors, "average", metric="cosine")
    if n_speakers is None:
        return np.asarray(fcluster(tree, threshold, "distance"), dtype=np.int64)
    labels = np.zeros(len(vectors), dtype=np.int64)
    for k in range(n_speakers, len(vectors) + 1):
        labels = np.asarray(fcluster(tree, k, "maxclust"), dtype=np.int64)
        if len(_large(labels, None)) >= n_speakers:
            break
    return labels


def _large(labels: NDArray[np.int64], n_speakers: int | None) -> list[int]:
    """Clusters that are speakers, largest first; always at least one."""
    values, counts = np.unique(labels, return_counts=True)
    order = np.lexsort((values, -counts))
    if n_speakers is not None:
        return [int(values[k]) for k in order[:n_speakers]]
    least = max(2.0, SMALLEST_SHARE * len(labels))
    kept = [int(values[k]) for k in order if counts[k] >= least]
    return kept or [int(values[order[0]])]


def assign_pieces(pieces: Pieces, means: Floats) -> NDArray[np.int64]:
    """The speaker of each piece; pieces of one window get different speakers where they can."""
    from scipy.optimize import linear_sum_assignment

    similarity = pieces.vectors @ means.T
    labels = similarity.argmax(axis=1)
    for group in np.unique(pieces.group):
        rows = np.flatnonzero(pieces.group == group)
        if rows.size > 1:
            found, speakers = linear_sum_assignment(-similarity[rows])
            labels[rows[found]] = speakers
    return np.asarray(labels, dtype=np.int64)


def _unit(vectors: Floats) -> Floats:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True), dtype=np.float32)


class _Memo:
    """Features of the last recording, by content."""

    def __init__(self) -> None:
        self._key, self._value = "", None

    def get(self, samples: Signal, make: Any) -> Any:
        key = hashlib.sha256(np.ascontiguousarray(samples).tobytes()).hexdigest()
        if key != self._key:
            self._key, self._value = key, make(samples)
        return self._value


@dataclass(frozen=True)
class _Local:
    """PyanNet's view: activations (windows, frames, 3), pieces and the slot of each piece."""

    activations: Floats
    pieces: Pieces
    slots: NDArray[np.int64]


class SegmentationDiarizer:
    """PyanNet's local speakers, clustered by GE2E."""

    window_s, step_s, onset = 5.0, 1.0, 0.5
    shortest_s, longest_pause_s = 0.1, 0.2

    def __init__(self, threshold: float = PIECE_THRESHOLD) -> None:
        os.environ["PYANNOTE_METRICS_ENABLED"] = "0"
        from aegis.weights import model_dir, read_card

        card = read_card("pyannote-segmentation")
        try:
            import torch
            from pyannote.audio import Model
        except ImportError as error:
            raise EngineUnavailable(f"{card.name}: install pyannote.audio ({error})") from error
        torch.set_num_threads(1)
        self._torch = torch
        path = model_dir(card.name) / card.files[0].path
        model: Any = Model.from_pretrained(str(path))
        self._model = model
        self._model.eval()
        self._encoder = load("encoder", "ge2e")
        self._threshold = threshold
        frames = self._model.receptive_field
        self._frame_s, self._offset_s = float(frames.step), float(frames.duration) / 2
        self.info = EngineInfo("diarizer", card.name, f"{card.revision} ge2e", card.licence)
        self._memo = _Memo()

    def diarize(self, samples: Signal, n_speakers: int | None) -> list[SpeakerTurn]:
        """Stretches of speech with a speaker, by start; stretches of two speakers may overlap."""
        local: _Local = self._memo.get(samples, self._analyse)
        if not local.pieces.seconds.size:
            return []
        means = cluster_pieces(local.pieces, n_speakers, self._threshold)
        labels = assign_pieces(local.pieces, means)
        active = self._overlay(local, labels, len(means))
        return self._stretches(active, samples.size / SAMPLE_RATE_HZ)

    def _analyse(self, samples: Signal) -> _Local:
        """Activations of all windows, and an embedding of each local speaker's clean speech."""
        size, step = (round(s * SAMPLE_RATE_HZ) for s in (self.window_s, self.step_s))
        n_windows = max(1, -(-(samples.size - size) // step) + 1)
        padded = np.pad(samples, (0, max(0, (n_windows - 1) * step + size - samples.size)))
        activations, vectors, seconds, group, slots = [], [], [], [], []
        for first in range(0, n_windows, 16):
            rows = range(first, min(first + 16, n_windows))
            batch = np.stack([padded[row * step : row * step + size] for row in rows])
            with self._torch.inference_mode():
                found = self._model(self._torch.from_numpy(batch)[:, None]).numpy()
            activations.append(found)
            for row, window, activation in zip(rows, batch, found, strict=True):
                for slot, clean_s, piece in self._local_speakers(window, activation):
                    vectors.append(self._encoder.embed([piece])[0])
                    seconds.append(clean_s)
                    group.append(row)
                    slots.append(slot)
        pieces = Pieces(
            np.stack(vectors) if vectors else np.zeros((0, self._encoder.dimension), np.float32),
            np.array(seconds, dtype=np.float32),
            np.array(group, dtype=np.int64),
        )
        return _Local(np.concatenate(activations), pieces, np.array(slots, dtype=np.int64))

    def _local_speakers(
        self, window: Signal, activation: Floats
    ) -> list[tuple[int, float, Signal]]:
        """Slot, seconds of clean speech, and speech of each local speaker heard for 0.4 s."""
        active = activation > self.onset
        alone = active.sum(axis=1) == 1
        found = []
        for slot in range(active.shape[1]):
            clean = active[:, slot] & alone
            used = clean if clean.sum() * self._frame_s >= 0.5 else active[:, slot]
            if used.sum() * self._frame_s < 0.4:
                continue
            at = np.minimum(np.arange(window.size) * used.size // window.size, used.size - 1)
            piece = window[used[at]]
            if float(np.mean(np.square(piece))) > 1e-9:
                found.append((slot, float(clean.sum() * self._frame_s), piece))
        return found

    def _overlay(self, local: _Local, labels: NDArray[np.int64], n: int) -> NDArray[np.bool_]:
        """Active speakers in each frame of the recording, shape (frames, speakers)."""
        n_windows, n_frames, _ = local.activations.shape
        firsts = np.round(np.arange(n_windows) * self.step_s / self._frame_s).astype(int)
        total = np.zeros((firsts[-1] + n_frames, n), dtype=np.float32)
        count, seen = np.zeros(len(total)), np.zeros(len(total))
        for window, first in enumerate(firsts):
            place = slice(first, first + n_frames)
            count[place] += (local.activations[window] > self.onset).sum(axis=1)
            seen[place] += 1
        groups = local.pieces.group
        for window, slot, label in zip(groups, local.slots, labels, strict=True):
            first = firsts[window]
            total[first : first + n_frames, label] += local.activations[window][:, slot]
        wanted = np.rint(count / np.maximum(seen, 1))
        rank = np.argsort(np.argsort(-total, axis=1, kind="stable"), axis=1, kind="stable")
        return np.asarray((rank < wanted[:, None]) & (total > 0))

    def _stretches(self, active: NDArray[np.bool_], duration_s: float) -> list[SpeakerTurn]:
        turns = []
        for speaker in range(active.shape[1]):
            flat = np.concatenate([[0], active[:, speaker].astype(int), [0]])
            edges = np.flatnonzero(np.diff(flat)).reshape(-1, 2)
            times = edges * self._frame_s + self._offset_s - self._frame_s / 2
            runs = join_intervals([(float(a), float(b)) for a, b in times], self.longest_pause_s)
            turns += [
                SpeakerTurn(max(0.0, start), min(end, duration_s), str(speaker))
                for start, end in runs
                if end - start >= self.shortest_s and start < duration_s
            ]
        return sorted(turns, key=lambda turn: (turn.start_s, turn.end_s, turn.speaker))


class WindowDiarizer:
    """Windows of 1.5 s inside the voice activity, clustered by GE2E; the plain fallback."""

    window_s, step_s = 1.5, 0.5

    def __init__(self, threshold: float = WINDOW_THRESHOLD) -> None:
        self._encoder = load("encoder", "ge2e")
        self._threshold = threshold
        self.info = EngineInfo("diarizer", "window-clustering", "silero-v6 ge2e", "Apache-2.0")
        self._memo = _Memo()

    def diarize(self, samples: Signal, n_speakers: int | None) -> list[SpeakerTurn]:
        """Stretches of speech with one speaker each; overlap is not found."""
        speech, centres, pieces = self._memo.get(samples, self._analyse)
        if not centres.size:
            return []
        means = cluster_pieces(pieces, n_speakers, self._threshold)
        similarity = pieces.vectors @ means.T
        turns: list[SpeakerTurn] = []
        for start, end in speech:
            turns += self._label(start, end, centres, similarity)
        return turns

    def _analyse(self, samples: Signal) -> tuple[list[tuple[float, float]], Any, Pieces]:
        duration_s = samples.size / SAMPLE_RATE_HZ
        speech = find_speech(voice_probabilities(samples), duration_s)
        windows = [
            (at, min(at + self.window_s, end))
            for start, end in speech
            for at in np.arange(start, max(start + 0.1, end - self.window_s + 0.1), self.step_s)
            if min(at + self.window_s, end) - at >= 0.3
        ]
        rate = SAMPLE_RATE_HZ
        cuts = [samples[round(a * rate) : round(b * rate)] for a, b in windows]
        vectors = self._encoder.embed(cuts)
        seconds = np.array([b - a for a, b in windows], dtype=np.float32)
        centres = np.array([(a + b) / 2 for a, b in windows])
        return speech, centres, Pieces(vectors, seconds, np.arange(len(windows)))

    def _label(
        self, start_s: float, end_s: float, centres: Floats, similarity: Floats
    ) -> list[SpeakerTurn]:
        """Cut one stretch of speech where the speaker changes, in steps of 0.1 s."""
        grid = np.arange(start_s, end_s, 0.1)
        weights = np.exp(-0.5 * ((grid[:, None] + 0.05 - centres) / 0.4) ** 2) + 1e-12
        votes = (weights @ similarity).argmax(axis=1)
        edges = [0, *(np.flatnonzero(np.diff(votes)) + 1).tolist(), len(grid)]
        times = [float(grid[edge]) if edge < len(grid) else end_s for edge in edges]
        return [
            SpeakerTurn(times[k], times[k + 1], str(int(votes[edges[k]])))
            for k in range(len(edges) - 1)
        ]


@register("diarizer", "pyannote-segmentation")
def _segmentation(threshold: float = PIECE_THRESHOLD) -> SegmentationDiarizer:
    return SegmentationDiarizer(threshold)


@register("diarizer", "window-clustering")
def _windows(threshold: float = WINDOW_THRESHOLD) -> WindowDiarizer:
    return WindowDiarizer(threshold)


def speaker_names(turns: Sequence[SpeakerTurn]) -> list[SpeakerTurn]:
    """The same turns with speakers called S1, S2, ... by first appearance."""
    names: dict[str, str] = {}
    for turn in turns:
        names.setdefault(turn.speaker, f"S{len(names) + 1}")
    return [SpeakerTurn(turn.start_s, turn.end_s, names[turn.speaker]) for turn in turns]
