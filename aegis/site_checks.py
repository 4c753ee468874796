"""What a built site must pass: links resolve, and nothing secret is on it.

Unit: one folder of pages.

Functions: :func:`parse_site`, :func:`check_links`, :func:`check_publishable`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from aegis import privacy
from aegis.errors import AegisError
from aegis.tables import PROJECT, Run


class SiteError(AegisError):
    """The site cannot be built, or must not be published as it is."""


class _References(HTMLParser):
    """Collects what a page links to, its anchors, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.references: list[str] = []
        self.anchors: set[str] = set()
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value is not None:
                self.references.append(value)
            elif name == "id" and value:
                self.anchors.add(value)

    def handle_data(self, data: str) -> None:
        self.text.append(data)


Pages = dict[Path, _References]


def _parse(page: Path) -> _References:
    parser = _References()
    parser.feed(page.read_text(encoding="utf-8"))
    return parser


def parse_site(folder: Path) -> Pages:
    """Every page of a site, read once for all checks."""
    return {page.resolve(): _parse(page) for page in sorted(folder.rglob("*.html"))}


def check_links(pages: Pages) -> None:
    """Refuse a page whose relative link or anchor does not resolve inside the site."""
    broken = []
    for page, parsed in pages.items():
        for reference in parsed.references:
            parts = urlsplit(reference)
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            if target.is_dir():
                target = target / "index.html"
            if not target.exists():
                broken.append(f"{page.name} -> {reference}")
            elif target in pages and parts.fragment:
                known = unquote(parts.fragment) in pages[target].anchors
                broken += [] if known else [f"{page.name} -> {reference}"]
    if broken:
        raise SiteError(f"site: {len(broken)} broken links, e.g. {'; '.join(broken[:3])}")


def check_publishable(
    folder: Path, pages: Pages, run: Run, shown: frozenset[str] = frozenset()
) -> None:
    """Refuse a site that holds originals, file names, machine paths or keys.

    Pages, their source, the search index and the CSV downloads are read. Looks for: the
    project's and the home folder, API keys, and what :mod:`aegis.privacy` finds, whatever its
    encoding: original file names, detected identifiers, six words in a row of a source turn.

    Parameters
    ----------
    shown
        Recordings whose original words the listening page may hold; nothing else may.
    """
    everything, others = _Secrets.of(run, frozenset()), _Secrets.of(run, shown)
    # What comes from the repository alone cannot hold a run's words, only look like them.
    places = _Secrets(privacy.build_finder(_places(run)), set())
    repository = {page.name for page in folder.glob("docs/*.html")}
    found = []
    for name, text in _texts(folder, pages):
        secrets = others if name == "listen.html" else everything
        if name in repository or name.startswith("api_"):
            secrets = places
        found += [f"{name}: {kind}" for kind in secrets.found_in(text)]
    if found:
        raise SiteError(f"site: not publishable, {len(found)} finds, e.g. {'; '.join(found[:3])}")


def _texts(folder: Path, pages: Pages) -> Iterator[tuple[str, str]]:
    """(file name, text) of all that a reader or a crawler sees."""
    for page, parsed in pages.items():
        yield page.name, " ".join("".join(parsed.text).split())
        yield page.name, page.read_text(encoding="utf-8")
    for table in sorted(folder.rglob("*.csv")):
        yield table.name, table.read_text(encoding="utf-8")
    index = folder / "search.json"
    for entry in json.loads(index.read_text(encoding="utf-8")) if index.exists() else ():
        page = urlsplit(entry["href"]).path.rsplit("/", 1)[-1]
        yield page, f"{entry.get('title', '')} {entry.get('section', '')} {entry.get('text', '')}"


@dataclass(frozen=True)
class _Secrets:
    """What must not be found, less what belongs to recordings that may be shown."""

    finder: privacy.Finder
    shingles: set[str]

    @classmethod
    def of(cls, run: Run, shown: frozenset[str]) -> _Secrets:
        needles = _places(run) | privacy.needles_of(run, shown)
        return cls(privacy.build_finder(needles), privacy.source_shingles(run, shown))

    def found_in(self, text: str) -> list[str]:
        found = self.finder.find(text)
        found |= {"a key"} if privacy.KEY.search(text) else set()
        found |= {"words of a source turn"} if self.shingles & privacy.shingles(text) else set()
        return sorted(found)


def _places(run: Run) -> dict[str, str]:
    paths = [str(PROJECT), str(run.root)]
    paths += [str(Path.home())] if str(Path.home()) not in ("/", "/root") else []
    return dict.fromkeys(paths, "a machine path")
