"""``bleep``, the renderer of the deletion boundary: each edit under a tone, noise or silence.

Unit: one turn with one edit or all its edits. Times in a request are seconds from the
start of the converted turn. An edit without times covers the turn as a whole.

Functions: :func:`bleep_intervals`; :class:`Bleep` is the renderer.
"""

from __future__ import annotations

import numpy as np

from aegis.audio import SAMPLE_RATE_HZ, Signal
from aegis.engines import EditRequest, EngineInfo, register
from aegis.engines.speech_levels import FADE_S, FRAME, active_rms, fade_edges, frame_levels
from aegis.errors import RenderError


def bleep_intervals(request: EditRequest, margin_s: float) -> list[tuple[int, int]] | None:
    """Samples to cover: each span's words, ``margin_s`` wider, then on to a quieter place.

    The margin covers what a recogniser's word times are off by; within another margin
    the edge moves out to the lowest level, so that it cuts no neighbour in two where that
    can be helped. None when a span has no word times.
    """
    size, levels = request.converted.size, frame_levels(request.converted)
    reach = max(round(margin_s * 100), 1)
    spans: list[tuple[int, int]] = []
    for span in request.spans:
        if span.start_s is None or span.end_s is None:
            return None
        first = max(round((span.start_s - margin_s) * 100), 0)
        last = min(round((span.end_s + margin_s) * 100), levels.size - 1)
        before = levels[max(first - reach, 0) : first + 1]
        after = levels[last : last + reach + 1]
        start = first - (before.size - 1) + int(np.argmin(before)) if before.size else 0
        end = last + int(np.argmin(after)) if after.size else last
        spans.append((start * FRAME, min((end + 1) * FRAME, size)))
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


class Bleep:
    """Covers every edit in the converted turn; the turn keeps its length.

    ``kind`` is ``tone`` (1 kHz), ``noise`` or ``silence``. Without word times the whole
    turn is covered and :meth:`note` says so.
    """

    KINDS = ("tone", "noise", "silence")
    TONE_HZ = 1000.0

    def __init__(self, kind: str = "tone", margin_s: float = 0.1) -> None:
        if kind not in self.KINDS:
            raise RenderError(f"unsupported: redaction kind {kind!r}, known: {self.KINDS}")
        self._kind, self._margin_s = kind, margin_s
        self.info = EngineInfo("renderer", "bleep", f"1 {kind}", "Apache-2.0")

    def note(self, request: EditRequest) -> str | None:
        untimed = bleep_intervals(request, self._margin_s) is None
        return "no word times: the whole turn is covered" if untimed else None

    def render(self, request: EditRequest) -> Signal:
        intervals = bleep_intervals(request, self._margin_s)
        out = request.converted.copy()
        level = min(active_rms(request.converted), 0.3)
        for start, end in [(0, out.size)] if intervals is None else intervals:
            out[start:end] = self._cover(end - start, level, request.seed + start)
        return out

    def _cover(self, n_samples: int, level: float, seed: int) -> Signal:
        if self._kind == "silence":
            return np.zeros(n_samples, dtype=np.float32)
        if self._kind == "noise":
            noise = np.random.default_rng(seed).normal(0.0, level / 2.0, n_samples)
            return np.clip(noise, -0.9, 0.9).astype(np.float32)
        time = np.arange(n_samples) / SAMPLE_RATE_HZ
        tone = level * np.sin(2.0 * np.pi * self.TONE_HZ * time)
        return fade_edges(tone.astype(np.float32), True, True, FADE_S)


@register("renderer", "bleep")
def _bleep(kind: str = "tone", margin_s: float = 0.1) -> Bleep:
    return Bleep(kind, margin_s)
