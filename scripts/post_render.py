"""Quarto post-render step: make the pages work offline.

Notebook pages carry script tags from content-delivery networks (jquery,
requirejs) that neither the tables nor the players need. Standard library only,
because Quarto runs it with whatever Python it finds.
"""

import os
import re
from pathlib import Path

EXTERNAL_SCRIPT = re.compile(r'<script\b[^>]*\bsrc="(?:https?:)?//[^"]*"[^>]*>\s*</script>', re.IGNORECASE)


def strip_external_scripts(folder: Path) -> int:
    """Drop script tags that load from another host; return how many."""
    dropped = 0
    for page in folder.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        text, count = EXTERNAL_SCRIPT.subn("", text)
        if count:
            page.write_text(text, encoding="utf-8")
            dropped += count
    return dropped


if __name__ == "__main__":
    strip_external_scripts(Path(os.environ.get("QUARTO_PROJECT_OUTPUT_DIR", "_site")))
