"""Exact nearest-neighbour search for large galleries, with FAISS.

Functions: :func:`faiss_search`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from aegis.stats import Floats


def faiss_search(gallery: Floats, probes: Floats, k: int, block: int = 1024) -> NDArray[np.int64]:
    """The ``k`` nearest gallery rows by inner product, probes in blocks (flat memory)."""
    import faiss

    index = faiss.IndexFlatIP(gallery.shape[1])
    for start in range(0, len(gallery), 65_536):
        index.add(np.ascontiguousarray(gallery[start : start + 65_536], dtype=np.float32))
    out = np.empty((len(probes), k), dtype=np.int64)
    for start in range(0, len(probes), block):
        part = np.ascontiguousarray(probes[start : start + block], dtype=np.float32)
        out[start : start + block] = index.search(part, k)[1]
    return out
