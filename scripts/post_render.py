"""Quarto post-render step: what both renderers' pages get.

Pages work offline and from a folder: nothing loads from another host, scripts that
browsers refuse to load from a folder (modules) become plain ones, and the search index
also exists as a script. Every page carries the run and the hash of its content. The
pages of single tables take the frame of the data page. Standard library only, because
Quarto runs it with whatever Python it finds.
"""

from __future__ import annotations

import html
import json
import os
import re
import shutil
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
ASSETS = Path("site_libs") / "aegis"


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


# --- modules ------------------------------------------------------------------------------

_MODULE = re.compile(r'<script\b(?=[^>]*\btype="module")[^>]*?\bsrc="([^"]+)"[^>]*>\s*</script>')
_IMPORT = re.compile(
    r"""^[ \t]*import\s+(?:\*\s*as\s+(?P<all>\w+)|\{(?P<some>[^}]*)\}|(?P<default>\w+))"""
    r"""\s+from\s+["'](?P<path>[^"']+)["'];?[ \t]*$"""
    r"""|^[ \t]*import\s+["'](?P<bare>[^"']+)["'];?[ \t]*$""",
    re.MULTILINE,
)
_EXPORT = re.compile(
    r"^[ \t]*export\s+(?P<default>default\s+)?"
    r"(?P<kind>async\s+function\*?|function\*?|class|const|let|var)\s+(?P<name>\w+)",
    re.MULTILINE,
)
_EXPORT_LIST = re.compile(r"^[ \t]*export\s*\{(?P<names>[^}]*)\}[ \t]*;?[ \t]*$", re.MULTILINE)
_LEFT = re.compile(r"^[ \t]*(?:import\s*[\w{*\"']|export\s)|\bimport\.meta\b", re.MULTILINE)


def plain_script(path: Path) -> str | None:
    """A module and all that it imports as one plain script; None where it cannot be done."""
    made: dict[Path, str] = {}
    try:
        _add_module(path.resolve(), made, ())
    except (OSError, ValueError):
        return None
    return "(() => {\n" + "\n".join(made.values()) + "\n})();\n"


def _add_module(path: Path, made: dict[Path, str], above: tuple[Path, ...]) -> str:
    """Write a module as a constant after those that it imports; the constant's name."""
    if path in above:
        raise ValueError(f"{path.name} imports itself")
    if path not in made:
        text = path.read_text(encoding="utf-8")
        imports = []
        for found in _IMPORT.finditer(text):
            source = (path.parent / (found["path"] or found["bare"])).resolve()
            name = _add_module(source, made, (*above, path))
            if found["all"]:
                imports.append(f"const {found['all']} = {name};")
            elif found["some"]:
                names = re.sub(r"(\w+)\s+as\s+(\w+)", r"\1: \2", found["some"])
                imports.append(f"const {{{names}}} = {name};")
            elif found["default"]:
                imports.append(f"const {found['default']} = {name}.default;")
        body, exports = _without_exports(_IMPORT.sub("", text))
        made[path] = (
            f"const $module{len(made)} = (() => {{\n" + "\n".join(imports) + body + f"\n"
            f"return {{ {exports} }};\n}})();"
        )
    return f"$module{list(made).index(path)}"


def _without_exports(body: str) -> tuple[str, str]:
    """A module's text without ``export``, and what it exported as an object's members."""
    names = {m["name"]: m["name"] for m in _EXPORT.finditer(body)}
    for found in _EXPORT.finditer(body):
        if found["default"]:
            names["default"] = found["name"]
    body = _EXPORT.sub(lambda m: f"{m['kind']} {m['name']}", body)
    for found in _EXPORT_LIST.finditer(body):
        for item in filter(None, (part.strip() for part in found["names"].split(","))):
            own, _, outer = item.partition(" as ")
            names[(outer or own).strip()] = own.strip()
    body = _EXPORT_LIST.sub("", body)
    if _LEFT.search(body):
        raise ValueError("an import or export of a kind that is not known here")
    return body, ", ".join(f"{outer}: {own}" for outer, own in names.items())


def flatten_modules(folder: Path) -> int:
    """Replace local module scripts by plain deferred ones; return how many pages changed."""
    changed = 0
    made: dict[Path, str | None] = {}
    for page in folder.rglob("*.html"):
        text = page.read_text(encoding="utf-8")

        def replace(found: re.Match[str], page: Path = page) -> str:
            address = found[1]
            source = (page.parent / address.split("?")[0]).resolve()
            if re.match(r"[a-z]+:", address) or folder.resolve() not in source.parents:
                return found[0]
            if source not in made:
                made[source] = plain_script(source)
                if made[source] is not None:
                    target = source.with_name(f"{source.stem}.plain.js")
                    target.write_text(made[source], encoding="utf-8")
            if made[source] is None:
                return found[0]
            place = address.split("?")[0].rpartition("/")
            plain = f"{place[0]}{place[1]}{source.stem}.plain.js"
            return f'<script src="{plain}" defer></script>'

        new = _MODULE.sub(replace, text)
        if new != text:
            page.write_text(new, encoding="utf-8")
            changed += 1
    return changed


# --- what the pages carry -------------------------------------------------------------------

_MAIN = re.compile(r"(<main\b[^>]*>)(.*)(</main>)", re.DOTALL)
_TOC = re.compile(r'<nav\b[^>]*\bid="TOC".*?</nav>', re.DOTALL)
_TITLE = re.compile(r"<title>.*?</title>", re.DOTALL)


def add_table_pages(output: Path, folder: str) -> list[dict[str, str]]:
    """Make ``table_<name>.html`` beside the data page from its fragments; their search entries."""
    shell = output / folder / "data.html"
    entries: list[dict[str, str]] = []
    if not shell.exists():
        return entries
    frame = shell.read_text(encoding="utf-8")
    for fragment in sorted((output / folder / "fragments").glob("*.html")):
        text = fragment.read_text(encoding="utf-8")
        name = fragment.stem
        page = _MAIN.sub(lambda m, text=text: f"{m[1]}{text}{m[3]}", frame)
        page = _TITLE.sub(f"<title>Table {html.escape(name)}</title>", _TOC.sub("", page))
        target = shell.with_name(f"table_{name}.html")
        target.write_text(page, encoding="utf-8")
        plain = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())
        href = target.relative_to(output).as_posix()
        entries.append(
            {"objectID": href, "href": href, "title": f"Table {name}", "section": "",
             "text": plain[:1500]}
        )  # fmt: skip
    shutil.rmtree(output / folder / "fragments", ignore_errors=True)
    return entries


def write_search(output: Path, entries: list[dict[str, str]]) -> None:
    """Add entries to the search index and write it as a script too."""
    path = output / "search.json"
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    known = {entry.get("href") for entry in entries}
    found = [entry for entry in found if entry.get("href") not in known] + entries
    path.write_text(json.dumps(found, ensure_ascii=False), encoding="utf-8")
    script = f"window.AEGIS_SEARCH = {json.dumps(found)};\n"
    (output / ASSETS / "search_index.js").write_text(script, encoding="utf-8")


def stamp(output: Path, site: dict[str, str], notebooks: dict[str, str]) -> None:
    """Write run and content hash on every page, and link style and script."""
    for page in sorted(output.rglob("*.html")):
        text = page.read_text(encoding="utf-8")
        if 'name="aegis-content"' in text or "</head>" not in text:
            continue
        up = "../" * len(page.relative_to(output).parts[:-1])
        base = f"{up}{ASSETS.as_posix()}"
        head = (
            f'<meta name="aegis-run" content="{html.escape(site["run"])}">'
            f'<meta name="aegis-content" content="{site["content"]}">'
            f'<link rel="icon" href="data:,">'
            f'<link rel="stylesheet" href="{base}/site.css"><script src="{base}/site.js"></script>'
        )
        said = f"Run {site['run']}, content {site['content'][:12]}"
        own = notebooks.get(page.stem)
        said += f", notebook {own[:12]}" if own else ""
        said += f". Rendered with {site['renderer']}. {site['licence']}"
        foot = f'<p class="page-stamp">{html.escape(said)}</p>'
        text = text.replace("</head>", head + "</head>", 1)
        place = text.rfind("</main>")
        text = text[:place] + foot + text[place:] if place >= 0 else text
        page.write_text(mend(text), encoding="utf-8")


def mend(text: str) -> str:
    """Repair what screen readers stumble over in the renderers' frames."""
    # A link without a target that opens a section is a button; role "navigation" is not.
    text = re.sub(
        r'(<a\b[^>]*data-bs-toggle="collapse"[^>]*)role="navigation"', r'\1role="button"', text
    )
    text = re.sub(
        r'(<a\b(?=[^>]*data-bs-toggle="collapse")(?![^>]*\bhref=)(?![^>]*\btabindex=))',
        r'\1 tabindex="0"',
        text,
    )
    text = text.replace(
        '<nav id="quarto-sidebar"', '<nav aria-label="Pages" id="quarto-sidebar"', 1
    )
    text = re.sub(
        r"(<a\b(?=[^>]*quarto-color-scheme-toggle)(?![^>]*aria-label))",
        r'\1 aria-label="Toggle dark mode"',
        text,
    )
    # Notebooks describe their figures; one that does not is at least named.
    text = re.sub(r"<img(?![^>]*\balt=)", '<img alt="Figure of this page, not described"', text)
    return text.replace("<style scoped>", "<style>")


def finish(output: Path, project: Path) -> None:
    """Everything, on the rendered pages of ``project`` in ``output``."""
    site = json.loads((project / "_generated" / "site.json").read_text(encoding="utf-8"))
    (output / ASSETS).mkdir(parents=True, exist_ok=True)
    for asset in (project / "docs" / "assets").iterdir():
        shutil.copyfile(asset, output / ASSETS / asset.name)
    for part in ("files", "fragments"):
        source = project / site["pages"] / part
        if source.exists():
            shutil.copytree(source, output / site["pages"] / part, dirs_exist_ok=True)
    strip_external(output)
    flatten_modules(output)
    write_search(output, add_table_pages(output, site["pages"]))
    stamp(output, site, site["notebooks"])


if __name__ == "__main__":
    finish(
        Path(os.environ.get("QUARTO_PROJECT_OUTPUT_DIR", "_site")),
        Path(os.environ.get("QUARTO_PROJECT_DIR", ".")),
    )
