"""The supplement: the executed notebooks of a run as a web site.

``_quarto.yml`` lists the pages; Quarto renders them where its binary is
installed, otherwise smalldocs renders the same file, and the front page says
which. Nothing is computed here: a page is a notebook that the run executed,
and a notebook that does not match its receipt stops the build. Before a site
is put in place its links are checked and :func:`check_publishable` looks for
originals, machine paths and keys.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import yaml

from aegis.errors import AegisError
from aegis.tables import PROJECT, Run, open_run

log = logging.getLogger(__name__)

_RUN_PREFIX = "runs/demo/"
_SHINGLE_WORDS = 6


class SiteError(AegisError):
    """The site cannot be built, or must not be published as it is."""


@dataclass(frozen=True)
class Site:
    """Where the pages are, what rendered them, and how many there are."""

    index: Path
    renderer: str
    n_pages: int


def render(run_name: str, output: Path | None = None) -> Site:
    """Build the site of a run into ``_site`` (or ``output``).

    Raises
    ------
    SiteError
        A listed notebook is absent or does not match its receipt, a link is broken, or
        a page holds what must not be published.
    """
    run, output = open_run(run_name), output or PROJECT / "_site"
    config = yaml.safe_load((PROJECT / "_quarto.yml").read_text(encoding="utf-8"))
    notebooks = [p for p in _chapters(config["book"]["chapters"]) if p.startswith(_RUN_PREFIX)]
    present = [p for p in notebooks if (run.root / p.removeprefix(_RUN_PREFIX)).exists()]
    if not present:
        raise SiteError(f"run {run_name!r} has no executed notebooks; start with `aegis run`")
    check_receipts(run, [Path(p).stem for p in present])
    renderer = find_renderer()
    build = run.root / "site"
    _stage(run, build, config, set(notebooks) - set(present), renderer)
    _run_renderer(renderer, build)
    pages = build / "_site"
    os.environ["QUARTO_PROJECT_OUTPUT_DIR"] = str(pages)
    runpy.run_path(str(PROJECT / "scripts" / "post_render.py"), run_name="__main__")
    check_links(pages)
    check_publishable(pages, run)
    shutil.rmtree(output, ignore_errors=True)
    shutil.move(str(pages), output)
    shutil.rmtree(build)
    return Site(output / "index.html", renderer, sum(1 for _ in output.rglob("*.html")))


def find_renderer() -> str:
    """``quarto`` if its binary is on the path, else ``smalldocs``."""
    return "quarto" if shutil.which("quarto") else "smalldocs"


def check_receipts(run: Run, stages: Iterable[str]) -> None:
    """Refuse a notebook that is not the one its receipt recorded."""
    for stage in stages:
        receipt = run.root / "receipts" / f"{stage}.json"
        notebook = run.root / "notebooks" / f"{stage}.ipynb"
        if not receipt.exists():
            raise SiteError(
                f"{stage}: the executed notebook has no receipt; run `aegis run` again"
            )
        recorded = json.loads(receipt.read_text(encoding="utf-8")).get("notebook_sha256")
        actual = hashlib.sha256(notebook.read_bytes()).hexdigest()
        if recorded and recorded != actual:
            raise SiteError(
                f"{stage}: the notebook changed since its receipt; run `aegis run` again"
            )


def _chapters(items: list[Any]) -> Iterator[str]:
    for item in items:
        if isinstance(item, str):
            yield item
        elif "chapters" in item:
            yield from _chapters(item["chapters"])
        elif "href" in item:
            yield str(item["href"])


def _without(items: list[Any], absent: set[str], prefix: str) -> list[Any]:
    """The chapter list less absent pages, with another run's prefix."""
    kept: list[Any] = []
    for item in items:
        if isinstance(item, str):
            if item not in absent:
                kept.append(item.replace(_RUN_PREFIX, prefix))
        elif chapters := _without(item.get("chapters", []), absent, prefix):
            kept.append({**item, "chapters": chapters})
    return kept


def _stage(run: Run, build: Path, config: dict[str, Any], absent: set[str], renderer: str) -> None:
    """Lay out a folder that holds just the pages of this run, then write what is generated."""
    shutil.rmtree(build, ignore_errors=True)
    build.mkdir()
    prefix = f"runs/{run.root.name}/"
    chapters = _without(config["book"]["chapters"], absent, prefix)
    config = {**config, "book": {**config["book"], "chapters": chapters}}
    config["project"] = {**config["project"], "output-dir": "_site"}
    config["project"].pop("post-render", None)
    (build / "_quarto.yml").write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    for page in _chapters(chapters):
        source = (
            run.root / page.removeprefix(prefix) if page.startswith(prefix) else PROJECT / page
        )
        target = build / page
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    (build / "docs").mkdir(exist_ok=True)
    shutil.copyfile(PROJECT / "docs" / "styles.css", build / "docs" / "styles.css")
    for folder in (build, PROJECT):
        write_generated(folder, run, renderer)


def write_generated(folder: Path, run: Run, renderer: str) -> None:
    """Write ``_variables.yml`` and ``_generated/abstract.md`` from the run's tables."""
    receipts = [json.loads(p.read_text()) for p in sorted((run.root / "receipts").glob("*.json"))]
    engines = sorted({f"{e['role']} {e['name']}" for r in receipts for e in r.get("engines", [])})
    paper = any(not e.get("embedded", True) for r in receipts for e in r.get("engines", []))
    variables = {
        "run": {
            "name": run.root.name,
            "last_started": max((r.get("started", "") for r in receipts), default=""),
            "engines": "; ".join(engines),
            "kind": "the paper's engines" if paper else "embedded engines only",
            "renderer": renderer,
        }
    }
    (folder / "_variables.yml").write_text(yaml.safe_dump(variables), encoding="utf-8")
    (folder / "_generated").mkdir(exist_ok=True)
    (folder / "_generated" / "abstract.md").write_text(abstract(run), encoding="utf-8")


# What the front page says, by claim: a heading and the ids (or their beginnings) under it. All
# claims stand on the page of contrasts.
FRONT_PAGE = {
    "The population": ("n_recordings", "minutes", "n_profiles", "n_turns", "n_intentions"),
    "Identifiers spoken anew": (
        "realised_renderer_",
        "retained_renderer_",
        "realised: ",
        "retained: ",
    ),
    "Words": ("wer_original_source", "wer against source: "),
    "Clinical facts, judged": ("fact preserved: ", "fact contradicted: "),
    "Linkage, original enrolment against transformed test": (
        "eer_final_original_converted_all_turns_",
        "eer_final_converted_all_turns_",
        "eer_final_renderer_a_all_turns_",
        "eer_final_renderer_b_all_turns_",
        "eer edited_region ",
    ),
}


_SHOWN_UNITS = {"share": (100, "%"), "difference": (100, "percentage points")}


def abstract(run: Run) -> str:
    """The front page's numbers: one list entry a claim, each with what it rests on."""
    if not run.has("claims"):
        return "This run has not reached its contrasts yet, so there is nothing to claim.\n"
    claims = run.read("claims").to_dict("records")
    parts = []
    for heading, beginnings in FRONT_PAGE.items():
        own = [c for b in beginnings for c in claims if str(c["claim_id"]).startswith(b)]
        own = [c for c in own if not str(c["claim_id"]).endswith("_by_value")]
        if own:
            parts.append(f"### {heading}\n\n" + "\n".join(f"- {sentence(c)}" for c in own) + "\n")
    return "\n".join(parts) or "This run makes no claims.\n"


def sentence(claim: dict[str, Any]) -> str:
    """A claim in words; an interval that crosses zero is never called an equality."""
    import pandas as pd

    label = f"**{claim['label']}**"
    if pd.isna(claim["value"]):
        return f"{label}: n/a ({claim['reason']})."
    scale, unit = _SHOWN_UNITS.get(claim["unit"], (1, claim["unit"]))
    text = f"{label}: {scale * claim['value']:.3g} {unit}"
    counts = []
    if not pd.isna(claim["denominator"]):
        of = "" if pd.isna(claim["numerator"]) else f"{claim['numerator']:g} "
        counts = [f"{of}of {claim['denominator']:g}" if of else f"{claim['denominator']:g} items"]
        unknown, outside = int(claim["unknown"]), int(claim["not_applicable"])
        counts.append(f"{unknown} unknown, {outside} not applicable")
    if counts:
        text += f" ({'; '.join(counts)})"
    if not pd.isna(claim["ci_low"]):
        low, high = scale * claim["ci_low"], scale * claim["ci_high"]
        text += f", 95 % interval {low:.3g} to {high:.3g}"
        if claim["ci_low"] < 0 < claim["ci_high"]:
            text += " (crosses zero: neither a difference nor equivalence is shown)"
    return text + "."


def _run_renderer(renderer: str, build: Path) -> None:
    if renderer == "quarto":
        command = ["quarto", "render", str(build)]
    else:
        command = [sys.executable, "-m", "smalldocs.cli", "render", "--quiet", str(build)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SiteError(f"{renderer} failed: {(done.stderr or done.stdout).strip()[-800:]}")


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


def _parse(page: Path) -> _References:
    parser = _References()
    parser.feed(page.read_text(encoding="utf-8"))
    return parser


def check_links(folder: Path) -> None:
    """Refuse a page whose relative link or anchor does not resolve inside the site."""
    pages = {page.resolve(): _parse(page) for page in folder.rglob("*.html")}
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


_KEY = re.compile(r"\b(?:sk-[A-Za-z0-9_-]{20,}|hf_[A-Za-z0-9]{20,})\b")


def check_publishable(folder: Path, run: Run) -> None:
    """Refuse pages that hold originals, file names, machine paths or keys.

    Looks for: the project's and the home folder, API keys, original file names, detected
    identifiers that hold a digit or two words, and any six words in a row of a source turn.
    """
    needles = {str(PROJECT): "a machine path", str(run.root): "a machine path"}
    if str(Path.home()) not in ("/", "/root"):
        needles[str(Path.home())] = "a machine path"
    needles |= _secret_texts(run)
    shingles = _source_shingles(run)
    found = []
    for page in folder.rglob("*.html"):
        text = " ".join("".join(_parse(page).text).split())
        found += [f"{page.name}: {kind}" for needle, kind in needles.items() if needle in text]
        found += [f"{page.name}: a key"] if _KEY.search(text) else []
        if shingles and shingles & _shingles(text):
            found.append(f"{page.name}: words of a source turn")
    if found:
        raise SiteError(f"site: not publishable, {len(found)} finds, e.g. {'; '.join(found[:3])}")


def _secret_texts(run: Run) -> dict[str, str]:
    needles: dict[str, str] = {}
    if run.has("file_map"):
        recordings = set(run.read("file_map")["recording_id"].str.split("/").str[-1])
        for name in run.read("file_map")["file"]:
            if len(Path(name).stem) >= 4 and Path(name).stem not in recordings:
                needles[Path(name).name] = "an original file name"
    if run.has("mentions"):
        for text in run.read("mentions")["text"].dropna().unique():
            if len(text) >= 6 and (any(c.isdigit() for c in text) or len(text.split()) >= 2):
                needles[" ".join(text.split())] = "a detected identifier"
    return needles


def _source_shingles(run: Run) -> set[str]:
    if not run.has("turns"):
        return set()
    return set().union(*(_shingles(text) for text in run.read("turns")["text"].dropna()), set())


def _shingles(text: str) -> set[str]:
    words = re.findall(r"\w+", text.lower())
    return {
        " ".join(words[i : i + _SHINGLE_WORDS]) for i in range(len(words) - _SHINGLE_WORDS + 1)
    }
