"""Quarto pre-render step: stop when the run changed since its pages were written.

``aegis render`` writes ``_generated/site.json``; without it, or when tables or notebooks are
no longer those it names, the pages would show something else than the run holds.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

PROJECT = Path(os.environ.get("QUARTO_PROJECT_DIR", ".")).resolve()
sys.path.insert(0, str(PROJECT))

from aegis import stamp  # noqa: E402  (standard library only)


def problems(project: Path) -> list[str]:
    """Why the site must not be built; empty when it may."""
    written = project / "_generated" / "site.json"
    if not written.exists():
        return ["the pages of the run are not written; run `aegis render` first"]
    site = json.loads(written.read_text(encoding="utf-8"))
    root = (project / site["pages"]).resolve().parent
    stale = stamp.stale_pages(root, site["notebooks"])
    found = [f"{stage}: {reason}" for stage, reason in stale.items()]
    if not found and stamp.content_hash(root) != site["content"]:
        found = ["the run changed since its pages were written; run `aegis render` again"]
    return found


if __name__ == "__main__":
    found = problems(PROJECT)
    if found:
        sys.exit("stale pages: " + "; ".join(found[:5]))
