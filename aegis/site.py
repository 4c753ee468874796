"""The supplement: the executed notebooks of a run as a web site.

``_quarto.yml`` lists the pages; Quarto renders them where its binary is
installed, otherwise smalldocs renders the same file, and every page says
which. Nothing is computed here: a page is a notebook that the run executed, or
what :mod:`aegis.site_pages` writes from its tables. A notebook that does not match its
receipt, or tables that changed since, stop the build. Before a site is put in
place its links are checked and :func:`~aegis.site_checks.check_publishable` looks for
originals, machine paths and keys.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from aegis import site_text, stamp
from aegis.abstract import write_abstract
from aegis.pipeline import find_notebooks
from aegis.site_api import write_api_pages
from aegis.site_checks import SiteError, check_links, check_publishable, parse_site
from aegis.site_listen import write_listening_page
from aegis.site_pages import pipeline_figure, raw, write_data_pages, write_reproduce_page
from aegis.tables import PROJECT, Run, open_run

log = logging.getLogger(__name__)

_RUN_PREFIX = "runs/demo/"
_LICENCE = "Code Apache-2.0, demo scripts CC BY 4.0."


@dataclass(frozen=True)
class Site:
    """Where the pages are, what rendered them, and how many there are."""

    index: Path
    renderer: str
    n_pages: int


MARK = ".made_from"
"""File of a built site: the hash of what it was made from."""


def render(run_name: str, output: Path | None = None, originals: bool = False) -> Site:
    """Build the site of a run into ``_site`` (or ``output``); one of the same inputs stays.

    Parameters
    ----------
    originals
        Show original words and sounds on the listening page, for recordings whose corpus
        card says public or synthetic.

    Raises
    ------
    SiteError
        A listed notebook is absent or stale, a link is broken, or a page holds what must
        not be published.
    """
    run, output = open_run(run_name), output or PROJECT / "_site"
    config = yaml.safe_load((PROJECT / "_quarto.yml").read_text(encoding="utf-8"))
    listed = [p for p in _chapters(config["book"]["chapters"]) if p.startswith(_RUN_PREFIX)]
    notebooks = [p for p in listed if p.endswith(".ipynb")]
    present = [p for p in notebooks if (run.root / p.removeprefix(_RUN_PREFIX)).exists()]
    if not present:
        raise SiteError(f"run {run_name!r} has no executed notebooks; start with `aegis run`")
    stages = [Path(p).stem for p in present]
    check_fresh(run, stages)
    renderer = find_renderer()
    made_from = _made_from(run, renderer, originals)
    mark, index = output / MARK, output / "index.html"
    if index.exists() and mark.exists() and mark.read_text(encoding="utf-8") == made_from:
        return Site(index, renderer, sum(1 for _ in output.rglob("*.html")))
    build = run.root / "site"
    shutil.rmtree(build, ignore_errors=True)
    (build / "docs").mkdir(parents=True)
    shown = write_pages(run, originals)
    for folder in (build, PROJECT) if run.root == PROJECT / "runs" / "demo" else (build,):
        write_generated(folder, run, renderer, stages)
    _stage(run, build, config, set(notebooks) - set(present), renderer)
    _run_renderer(renderer, build)
    pages = build / "_site"
    hook = runpy.run_path(str(PROJECT / "scripts" / "post_render.py"))
    hook["finish"](pages, build)
    parsed = parse_site(pages)
    check_links(parsed)
    check_publishable(pages, parsed, run, frozenset(shown))
    shutil.rmtree(output, ignore_errors=True)
    shutil.move(str(pages), output)
    shutil.rmtree(build)
    mark.write_text(made_from, encoding="utf-8")
    return Site(index, renderer, sum(1 for _ in output.rglob("*.html")))


def _made_from(run: Run, renderer: str, originals: bool) -> str:
    """One hash of all that the pages depend on: the run, the project's texts, the code."""
    texts = ["_quarto.yml", "index.qmd", "pyproject.toml"]
    folders = ["aegis", "docs", "scripts", "data_manifests"]
    paths = [PROJECT / name for name in texts]
    for tables in (run.root / "tables", run.root / "secret" / "tables"):
        paths += tables.glob("*.parquet")
    for name in folders:
        paths += [p for p in (PROJECT / name).rglob("*") if "__pycache__" not in p.parts]
    digest = hashlib.sha256(f"{stamp.content_hash(run.root)} {renderer} {originals}".encode())
    for path in sorted(paths):
        digest.update(f"{path.name} {stamp.file_hash(path)}".encode())
    return digest.hexdigest()


def find_renderer() -> str:
    """``quarto`` if its binary is on the path, else ``smalldocs``."""
    return "quarto" if shutil.which("quarto") else "smalldocs"


def check_fresh(run: Run, stages: list[str]) -> None:
    """Refuse notebooks that are not those of their receipts, or whose tables changed since."""
    stale = stamp.stale_pages(run.root, stages)
    if stale:
        shown = "; ".join(f"{stage}: {reason}" for stage, reason in list(stale.items())[:3])
        more = f" and {len(stale) - 3} more" if len(stale) > 3 else ""
        raise SiteError(f"stale pages: {shown}{more}; run `aegis run` again")


def site_is_current(folder: Path, run: Run) -> bool:
    """Whether the pages in ``folder`` were built from what the run holds now."""
    index = folder / "index.html"
    mark = f'name="aegis-content" content="{stamp.content_hash(run.root)}"'
    return index.exists() and mark in index.read_text(encoding="utf-8")


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


def write_pages(run: Run, originals: bool) -> set[str]:
    """Write what :mod:`aegis.site_pages` and its like make below ``runs/<run>/pages``.

    Returns the recordings that are shown with their original words.
    """
    pages = run.root / "pages"
    pages.mkdir(exist_ok=True)
    write_data_pages(run, pages)
    option = " --with-originals" if originals else ""
    command = f"make study\n.venv/bin/aegis render --run {run.root.name}{option}"
    write_reproduce_page(run, pages, stamp.content_hash(run.root), command)
    write_api_pages(pages)
    return write_listening_page(run, pages, originals)


def _stage(run: Run, build: Path, config: dict[str, Any], absent: set[str], renderer: str) -> None:
    """Lay out a folder that holds just the pages of this run."""
    prefix = f"runs/{run.root.name}/"
    chapters = _without(config["book"]["chapters"], absent, prefix)
    config = {**config, "book": {**config["book"], "chapters": chapters}}
    config["project"] = {**config["project"], "output-dir": "_site"}
    for hook in ("pre-render", "post-render"):
        config["project"].pop(hook, None)
    (build / "_quarto.yml").write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    texts = {
        page: (
            run.root / page.removeprefix(prefix) if page.startswith(prefix) else PROJECT / page
        ).read_text(encoding="utf-8")
        for page in _chapters(chapters)
    }
    texts["index.qmd"] = _front_page(texts["index.qmd"], prefix, set(texts))
    if renderer == "smalldocs":
        texts = _resolved(build, texts, absent)
    for page, text in texts.items():
        (build / page).parent.mkdir(parents=True, exist_ok=True)
        (build / page).write_text(text, encoding="utf-8")
    shutil.copytree(PROJECT / "docs" / "assets", build / "docs" / "assets")
    shutil.copyfile(PROJECT / "docs" / "references.json", build / "docs" / "references.json")
    for part in ("files", "fragments"):
        (build / prefix / "pages" / part).symlink_to(run.root / "pages" / part)


def _front_page(text: str, prefix: str, pages: set[str]) -> str:
    """The front page with its links pointing to this run; a link to an absent page is words."""

    def link(found: re.Match[str]) -> str:
        target = found[2].replace(_RUN_PREFIX, prefix)
        return f"[{found[1]}]({target})" if target in pages else found[1]

    return re.sub(rf"\[([^\]]+)\]\(({_RUN_PREFIX}[^)]+)\)", link, text)


def _resolved(build: Path, texts: dict[str, str], absent: set[str]) -> dict[str, str]:
    """The pages with cross-references and citations written out.

    A reference to a section of a notebook that has not run yet is its title without a link.
    """
    front = texts["index.qmd"]
    for name in ("abstract", "pipeline"):  # parts that hold labels of their own
        part = (build / "_generated" / f"{name}.md").read_text(encoding="utf-8")
        front = front.replace(f"{{{{< include _generated/{name}.md >}}}}", part)
    texts = {**texts, "index.qmd": front}
    bibliography = site_text.read_bibliography(PROJECT / "docs" / "references.json")
    sources = {Path(page).stem: page for page in absent}
    unlinked = {
        label: replace(found, page="")
        for name, path in find_notebooks().items()
        if name in sources
        for label, found in site_text.find_labels({name: _prose_of(path)}).items()
    }
    known = site_text.Known(unlinked | site_text.find_labels(texts), bibliography)
    return {page: site_text.resolve_page(page, text, known) for page, text in texts.items()}


def _prose_of(notebook: Path) -> str:
    """The Markdown of a notebook's source, its comment signs taken off."""
    lines = notebook.read_text(encoding="utf-8").splitlines()
    return "\n".join(line.removeprefix("# ") for line in lines if line.startswith("# "))


def write_generated(folder: Path, run: Run, renderer: str, stages: list[str]) -> None:
    """Write ``_variables.yml`` and ``_generated/``: what the pages say of the run."""
    receipts = stamp.read_receipts(run.root)
    used = [engine for receipt in receipts.values() for engine in receipt.get("engines", [])]
    engines = sorted({f"{e['role']} {e['name']}" for e in used})
    paper = any(not e.get("embedded", True) for e in used)
    content = stamp.content_hash(run.root)
    variables = {
        "run": {
            "name": run.root.name,
            "last_started": max((r.get("started", "") for r in receipts.values()), default=""),
            "engines": "; ".join(engines),
            "kind": "the paper's engines" if paper else "embedded engines only",
            "renderer": renderer,
            "content": content[:12],
        }
    }
    (folder / "_variables.yml").write_text(yaml.safe_dump(variables), encoding="utf-8")
    generated = folder / "_generated"
    generated.mkdir(exist_ok=True)
    claims = run.read("claims") if run.has("claims") else None
    pages = f"runs/{run.root.name}/pages"
    abstract = write_abstract(claims, f"{pages}/table_claims.html")
    (generated / "abstract.md").write_text(abstract, encoding="utf-8")
    (generated / "pipeline.md").write_text(pipeline_text(run), encoding="utf-8")
    site = {
        "run": run.root.name,
        "content": content,
        "renderer": renderer,
        "licence": _LICENCE,
        "pages": pages,
        "notebooks": {stage: receipts[stage].get("notebook_sha256") or "" for stage in stages},
    }
    (generated / "site.json").write_text(json.dumps(site, indent=1), encoding="utf-8")


def pipeline_text(run: Run) -> str:
    """The pipeline figure with its label and caption."""
    alternative = "The stages as boxes in reading order, with the tables that each writes."
    return f"""::: {{#fig-pipeline fig-alt="{alternative}"}}
{raw(pipeline_figure(run))}
The stages in reading order and the tables that each one writes; a box leads to its page.
:::
"""


def _run_renderer(renderer: str, build: Path) -> None:
    if renderer == "quarto":
        command = ["quarto", "render", str(build)]
    else:
        command = [sys.executable, "-m", "smalldocs.cli", "render", "--quiet", str(build)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # nosec B603 # no shell
    if done.returncode:
        raise SiteError(f"{renderer} failed: {(done.stderr or done.stdout).strip()[-800:]}")
