"""Quarto post-render step: make the pages work offline.

Notebook pages carry script tags from content-delivery networks (jquery,
requirejs) that neither the tables nor the players need, and themes import web
fonts. Standard library only, because Quarto runs it with whatever Python it finds.
"""

import os
import re
from pathlib import Path

EXTERNAL = {
    "*.html": re.compile(
        r'<script\b[^>]*\bsrc="(?:https?:)?//[^"]*"[^>]*>\s*</script>'
        r'|<link\b[^>]*\bhref="(?:https?:)?//[^"]*"[^>]*>',
        re.IGNORECASE,
    ),
    "*.css": re.compile(
        r"""@import\s+(?:url\(\s*["']?(?:https?:)?//[^)]*\)|["'](?:https?:)?//[^"']*["'])[^;]*;?""",
        re.IGNORECASE,
    ),
}


def strip_external(folder: Path) -> int:
    """Drop scripts, links and style imports that load from another host; return how many."""
    dropped = 0
    for pattern, external in EXTERNAL.items():
        for page in folder.rglob(pattern):
            text, count = external.subn("", page.read_text(encoding="utf-8"))
            if count:
                page.write_text(text, encoding="utf-8")
                dropped += count
    return dropped


if __name__ == "__main__":
    strip_external(Path(os.environ.get("QUARTO_PROJECT_OUTPUT_DIR", "_site")))
