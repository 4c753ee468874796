"""Diarization: who speaks when, with or without a known number of speakers.

Unit: one mono recording at 16 kHz. Both engines embed windows of 1.5 s inside the speech
with GE2E, cluster the embeddings (agglomerative, average linkage, cosine), refine the
cluster means, and label the speech in steps of a frame by the windows around it. Without
a given number, clusters whose means lie close together are united and small ones given
up; what remains is the number of speakers.

- ``window-clustering``: the speech is silero's; one speaker at a time.
- ``pyannote-segmentation``: PyanNet (Bredin and Laurent 2021) finds up to three local
  speakers in 5-s windows. It adds stretches that silero misses, and overlap: where it
  hears two speakers at once, the local speakers are assigned to the clusters, one to
  one, and the second one is added.

A recording's features are kept until the next recording, so that asking twice (with and
without the number of speakers) costs one analysis. Memory: a recording is read window by
window, and embeddings of long ones are clustered on at most ``MOST_CLUSTERED`` of them.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aegis.audio import SAMPLE_RATE_HZ, AnySignal, Signal, blocks_of, cut, rms_db
from aegis.engines import EngineInfo, SpeakerEncoder, SpeakerTurn, load, register
from aegis.engines.activity import Interval, find_speech, join_intervals, voice_probabilities
from aegis.errors import EngineUnavailable

Floats = NDArray[np.float32]

MOST_CLUSTERED = 3000
CLUSTER_DISTANCE = 0.28
"""Cosine distance at which the dendrogram of windows is cut (GE2E, raw vectors)."""
SPEAKER_DISTANCE = 0.15
"""Cluster means nearer than this are one voice. On spliced conversations of readers and of
synthetic voices, two speakers were at least 0.17 apart and halves of one at most 0.15."""
SMALLEST_SHARE, ENOUGH_WINDOWS = 0.07, 30
"""A cluster with less of the windows is no speaker, unless it has 15 s of speech."""
DISTANT_SHARE = 0.85
"""Silero hears at least this share of PyanNet's speech in close recordings."""
RELIABLE_S = 1.0
"""Windows with less speech take part in no cluster."""
LONGEST_PAUSE_S = 0.2
SHORTEST_S = 0.1


@dataclass(frozen=True)
class Pieces:
    """Embedded pieces: unit vectors (n, d), seconds of clean speech (n,), window index (n,)."""

    vectors: Floats
    seconds: Floats
    group: NDArray[np.int64]


def cluster_pieces(pieces: Pieces, n_speakers: int | None) -> Floats:
    """Mean embedding of each speaker, shape (speakers, d); ``n_speakers`` None: find out."""
    chosen = np.flatnonzero(pieces.seconds >= RELIABLE_S)
    if chosen.size < max(2, n_speakers or 0):
        chosen = np.arange(len(pieces.seconds))
    if chosen.size > MOST_CLUSTERED:
        chosen = chosen[np.linspace(0, chosen.size - 1, MOST_CLUSTERED).astype(int)]
    vectors = pieces.vectors[chosen]
    labels = _cut_tree(vectors, n_speakers)
    kept = _large(labels, n_speakers)
    means = _unit(np.stack([vectors[labels == label].mean(axis=0) for label in kept]))
    means, counts = _refine(vectors, means)
    while n_speakers is None and len(means) > 1:
        means, changed = _give_up_one(means, counts)
        if not changed:
            break
        means, counts = _refine(vectors, means)
    return means


def _cut_tree(vectors: Floats, n_speakers: int | None) -> NDArray[np.int64]:
    """Labels from one dendrogram, cut at the distance or where enough clusters are large."""
    from scipy.cluster.hierarchy import fcluster, linkage

    if len(vectors) < 2:
        return np.zeros(len(vectors), dtype=np.int64)
    tree = linkage(vectors, "average", metric="cosine")
    if n_speakers is None:
        return np.asarray(fcluster(tree, CLUSTER_DISTANCE, "distance"), dtype=np.int64)
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
    kept = [int(values[k]) for k in order if counts[k] >= _least(len(labels))]
    return kept or [int(values[order[0]])]


def _least(n: int) -> float:
    return max(2.0, min(SMALLEST_SHARE * n, ENOUGH_WINDOWS))


def _refine(vectors: Floats, means: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Three rounds of nearest mean; means and how many vectors each one has."""
    for _ in range(3):
        labels = (vectors @ means.T).argmax(axis=1)
        fresh = [
            vectors[labels == k].mean(axis=0) if (labels == k).any() else means[k]
            for k in range(len(means))
        ]
        means = _unit(np.stack(fresh))
    return means, np.bincount((vectors @ means.T).argmax(axis=1), minlength=len(means))


def _give_up_one(means: Floats, counts: NDArray[np.int64]) -> tuple[Floats, bool]:
    """Drop the smallest cluster if it is too small, else unite the two nearest if near."""
    smallest = int(counts.argmin())
    if counts[smallest] < _least(int(counts.sum())):
        return np.delete(means, smallest, axis=0), True
    distance = 1.0 - means @ means.T
    np.fill_diagonal(distance, np.inf)
    i, j = np.unravel_index(int(distance.argmin()), distance.shape)
    if distance[i, j] >= SPEAKER_DISTANCE:
        return means, False
    united = _unit(counts[i] * means[i] + counts[j] * means[j])
    return np.vstack([np.delete(means, [i, j], axis=0), united]).astype(np.float32), True


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

    def get(self, samples: AnySignal, make: Any) -> Any:
        digest = hashlib.sha256()
        for block in blocks_of(samples):
            digest.update(block.tobytes())
        if digest.hexdigest() != self._key:
            self._key, self._value = digest.hexdigest(), make(samples)
        return self._value


@dataclass(frozen=True)
class Windows:
    """Windows of 1.5 s inside the speech: the speech, centres (n,) in seconds, embeddings."""

    speech: list[Interval]
    centres_s: NDArray[np.float64]
    pieces: Pieces


def embed_windows(
    encoder: SpeakerEncoder,
    samples: AnySignal,
    speech: list[Interval],
    window_s: float = 1.5,
    step_s: float = 0.5,
) -> Windows:
    """Embed windows inside each stretch of speech; shorter stretches are one window."""
    spans = [
        (at, min(at + window_s, end))
        for start, end in speech
        for at in np.arange(start, max(start + 0.1, end - window_s + 0.1), step_s)
        if min(at + window_s, end) - at >= 0.3
    ]
    # The sound of a window is let go as soon as it is embedded: there are thousands in hours.
    cuts = ((k, cut(samples, start, end)) for k, (start, end) in enumerate(spans))
    found = [(k, encoder.embed([piece])) for k, piece in cuts if rms_db(piece) > -80.0]
    audible = [k for k, _ in found]
    vectors = np.concatenate([encoder.embed([]), *(vector for _, vector in found)])
    seconds = np.array([spans[k][1] - spans[k][0] for k in audible], dtype=np.float32)
    centres = np.array([(spans[k][0] + spans[k][1]) / 2 for k in audible])
    return Windows(speech, centres, Pieces(vectors, seconds, np.arange(len(audible))))


def label_times(windows: Windows, means: Floats, times_s: NDArray[Any]) -> NDArray[np.int64]:
    """The speaker at each time: the windows around it vote by similarity, shape (len(times),)."""
    similarity = windows.pieces.vectors @ means.T
    labels = np.zeros(times_s.size, dtype=np.int64)
    for first in range(0, times_s.size, 1000):
        part = times_s[first : first + 1000]
        near = slice(*np.searchsorted(windows.centres_s, [part[0] - 8.0, part[-1] + 8.0]))
        near = near if near.stop > near.start else slice(0, None)
        away = (part[:, None] - windows.centres_s[near]) / 0.4
        weights = np.exp(-0.5 * away**2) + 1e-12 / (1.0 + away**2)
        labels[first : first + 1000] = (weights @ similarity[near]).argmax(axis=1)
    return labels


def stretches_of(
    active: NDArray[np.bool_], start_s: float, frame_s: float, duration_s: float
) -> list[SpeakerTurn]:
    """Stretches of frames (frames, speakers) as turns, by start; short pauses closed."""
    turns = []
    for speaker in range(active.shape[1]):
        flat = np.concatenate([[0], active[:, speaker].astype(int), [0]])
        edges = np.flatnonzero(np.diff(flat)).reshape(-1, 2) * frame_s + start_s
        runs = join_intervals([(float(a), float(b)) for a, b in edges], LONGEST_PAUSE_S)
        turns += [
            SpeakerTurn(max(0.0, start), min(end, duration_s), str(speaker))
            for start, end in runs
            if end - start >= SHORTEST_S and start < duration_s - SHORTEST_S
        ]
    return sorted(turns, key=lambda turn: (turn.start_s, turn.end_s, turn.speaker))


class WindowDiarizer:
    """Windows of 1.5 s inside the voice activity, clustered by GE2E; no overlap."""

    frame_s, reads_parts = 0.02, True

    def __init__(self) -> None:
        self._encoder = load("encoder", "ge2e")
        self.info = EngineInfo("diarizer", "window-clustering", "silero-v6 ge2e", "Apache-2.0")
        self._memo = _Memo()

    def diarize(self, samples: AnySignal, n_speakers: int | None) -> list[SpeakerTurn]:
        """Stretches of speech with one speaker each, by start."""
        duration_s = samples.size / SAMPLE_RATE_HZ
        windows: Windows = self._memo.get(samples, self._analyse)
        if not windows.centres_s.size:
            return []
        means = cluster_pieces(windows.pieces, n_speakers)
        speech = frames_in(windows.speech, 0.0, self.frame_s, int(duration_s / self.frame_s) + 1)
        active = _one_hot(windows, means, speech, self.frame_s / 2, self.frame_s)
        return stretches_of(active, 0.0, self.frame_s, duration_s)

    def _analyse(self, samples: AnySignal) -> Windows:
        speech = find_speech(voice_probabilities(samples), samples.size / SAMPLE_RATE_HZ)
        return embed_windows(self._encoder, samples, speech)


def frames_in(
    speech: Sequence[Interval], start_s: float, frame_s: float, n_frames: int
) -> NDArray[np.bool_]:
    """Which frames, the first beginning at ``start_s``, lie in the speech."""
    inside = np.zeros(n_frames, dtype=bool)
    for a, b in speech:
        inside[max(0, round((a - start_s) / frame_s)) : max(0, round((b - start_s) / frame_s))] = (
            True
        )
    return inside


def _one_hot(
    windows: Windows, means: Floats, speech: NDArray[np.bool_], centre_s: float, frame_s: float
) -> NDArray[np.bool_]:
    """One speaker in each frame of speech, shape (frames, speakers)."""
    frames = np.flatnonzero(speech)
    active = np.zeros((speech.size, len(means)), dtype=bool)
    active[frames, label_times(windows, means, frames * frame_s + centre_s)] = True
    return active


@dataclass(frozen=True)
class _Local:
    """PyanNet's view beside the windows.

    ``overlapped`` are the frames of the recording with two or more speakers at once;
    ``slots`` and ``activations`` belong to ``pieces``: local speakers near such frames.
    """

    windows: Windows
    overlapped: NDArray[np.bool_]
    pieces: Pieces
    activations: Floats


class SegmentationDiarizer:
    """Window clustering, with PyanNet's overlap and the speech that silero misses."""

    window_s, step_s, onset, reads_parts = 5.0, 1.0, 0.5, True

    def __init__(self) -> None:
        os.environ["PYANNOTE_METRICS_ENABLED"] = "0"
        from aegis.weights import model_dir, read_card

        card = read_card("pyannote-segmentation")
        try:
            import torch
            from pyannote.audio import Model
        except ImportError as error:
            raise EngineUnavailable(f"{card.name}: install pyannote.audio ({error})") from error
        torch.set_num_threads(1)
        # It tells at each load how to rewrite the checkpoint file, which must stay as it is.
        logging.getLogger("lightning.pytorch.utilities.migration.utils").setLevel(logging.ERROR)
        self._torch = torch
        model: Any = Model.from_pretrained(str(model_dir(card.name) / card.files[0].path))
        self._model = model
        self._model.eval()
        self._encoder = load("encoder", "ge2e")
        frames = self._model.receptive_field
        self._frame_s = float(frames.step)
        self._start_s = (float(frames.duration) - self._frame_s) / 2
        self.info = EngineInfo("diarizer", card.name, f"{card.revision} ge2e", card.licence)
        self._memo = _Memo()

    def diarize(self, samples: AnySignal, n_speakers: int | None) -> list[SpeakerTurn]:
        """Stretches of speech with a speaker, by start; stretches of two speakers may overlap."""
        local: _Local = self._memo.get(samples, self._analyse)
        windows = local.windows
        if not windows.centres_s.size:
            return []
        means = cluster_pieces(windows.pieces, n_speakers)
        n_frames = local.overlapped.size
        speech = frames_in(windows.speech, self._start_s, self._frame_s, n_frames)
        centre_s = self._start_s + self._frame_s / 2
        active = _one_hot(windows, means, speech, centre_s, self._frame_s)
        if len(means) > 1 and local.pieces.seconds.size:
            self._add_second(active, local, means)
        return stretches_of(active, self._start_s, self._frame_s, samples.size / SAMPLE_RATE_HZ)

    def _analyse(self, samples: AnySignal) -> _Local:
        size, step = (round(s * SAMPLE_RATE_HZ) for s in (self.window_s, self.step_s))
        n_windows = max(1, -(-(samples.size - size) // step) + 1)

        def window(k: int) -> Signal:
            part = samples[k * step : k * step + size]
            return np.pad(part, (0, size - part.size))

        activations = self._segment(window, n_windows)
        several = (activations > self.onset).sum(axis=2)
        overlapped = self._average(several) >= 1.5
        voiced = self._average((several > 0).astype(np.int64)) >= 0.5
        speech = self._speech(samples, voiced)
        found = [
            (k, slot, clean_s, self._encoder.embed([piece]))
            for k in range(n_windows)
            if (several[k] >= 2).sum() * self._frame_s >= 0.25
            for slot, clean_s, piece in self._local_speakers(window(k), activations[k])
        ]
        pieces = Pieces(
            np.concatenate([self._encoder.embed([]), *(vector for *_, vector in found)]),
            np.array([clean_s for _, _, clean_s, _ in found], dtype=np.float32),
            np.array([k for k, *_ in found], dtype=np.int64),
        )
        own = [activations[k][:, slot] for k, slot, *_ in found]
        frames = np.stack(own) if own else np.zeros((0, activations.shape[1]), np.float32)
        windows = embed_windows(self._encoder, samples, speech)
        return _Local(windows, overlapped, pieces, frames)

    def _segment(self, window: Callable[[int], Signal], n_windows: int) -> Floats:
        """Activations of local speakers, shape (windows, frames, 3)."""
        found = np.zeros((0, 0, 0), dtype=np.float32)
        for first in range(0, n_windows, 16):
            cuts = [window(k) for k in range(first, min(first + 16, n_windows))]
            batch = self._torch.from_numpy(np.stack(cuts))[:, None]
            with self._torch.inference_mode():
                part = self._model(batch).numpy()
            if not first:
                found = np.empty((n_windows, *part.shape[1:]), dtype=np.float32)
            # Copied: a small array kept from each batch would keep the heap from being reused.
            found[first : first + 16] = part
        return found

    def _first_frame(self, window: int) -> int:
        return round(window * self.step_s / self._frame_s)

    def _average(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Mean over the windows that see a frame, on the recording's frames."""
        n_windows, n_frames = counts.shape
        total = np.zeros(self._first_frame(n_windows - 1) + n_frames)
        seen = np.zeros_like(total)
        for window in range(n_windows):
            first = self._first_frame(window)
            total[first : first + n_frames] += counts[window]
            seen[first : first + n_frames] += 1
        return total / np.maximum(seen, 1)

    def _speech(self, samples: AnySignal, voiced: NDArray[np.bool_]) -> list[Interval]:
        """Silero's speech, whose pauses are sharp, and what only PyanNet hears.

        Of PyanNet's stretches those that silero misses almost entirely; all of them where
        silero misses much, as it does with distant microphones.
        """
        duration_s = samples.size / SAMPLE_RATE_HZ
        speech = find_speech(voice_probabilities(samples), duration_s)
        covered = frames_in(speech, self._start_s, self._frame_s, voiced.size)
        distant = voiced.any() and float(covered[voiced].mean()) < DISTANT_SHARE
        missed = [
            (stretch.start_s, stretch.end_s)
            for stretch in stretches_of(voiced[:, None], self._start_s, self._frame_s, duration_s)
            if stretch.end_s - stretch.start_s >= 0.3
            and (distant or self._share(covered, stretch.start_s, stretch.end_s) < 0.3)
        ]
        return join_intervals(sorted([*speech, *missed]), 0.0)

    def _share(self, frames: NDArray[np.bool_], start_s: float, end_s: float) -> float:
        first, last = (round((s - self._start_s) / self._frame_s) for s in (start_s, end_s))
        return float(frames[max(0, first) : max(1, last)].mean())

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
            if rms_db(piece) > -80.0:
                found.append((slot, float(clean.sum() * self._frame_s), piece))
        return found

    def _add_second(self, active: NDArray[np.bool_], local: _Local, means: Floats) -> None:
        """In overlapped frames the likeliest other speaker becomes active too (in place)."""
        labels = assign_pieces(local.pieces, means)
        total = np.zeros(active.shape, dtype=np.float32)
        n_frames = local.activations.shape[1]
        for window, label, own in zip(local.pieces.group, labels, local.activations, strict=True):
            first = self._first_frame(int(window))
            total[first : first + n_frames, label] += own
        total[active] = 0.0
        second = total.argmax(axis=1)
        frames = np.flatnonzero(local.overlapped & active.any(axis=1) & (total.max(axis=1) > 0.5))
        active[frames, second[frames]] = True


@register("diarizer", "pyannote-segmentation")
def _segmentation() -> SegmentationDiarizer:
    return SegmentationDiarizer()


@register("diarizer", "window-clustering")
def _windows() -> WindowDiarizer:
    return WindowDiarizer()
