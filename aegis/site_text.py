"""Cross-references and citations for the renderer that has none.

Unit: one page source (Markdown or an executed notebook). Quarto numbers figures and
resolves ``@fig-x``, ``@tbl-x``, ``@sec-x`` and ``[@key]`` itself. For smalldocs this module
writes the numbers and links into copies of the sources: figures and tables are numbered
over the whole site in reading order. Code is folded there by the cell's own option.

Functions: :func:`find_labels`, :func:`resolve_page`, :func:`read_bibliography`,
:func:`reference_list`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path, PurePosixPath
from typing import Any

from aegis.errors import AegisError

REFERENCES = "docs/references.qmd"
_KINDS = {"fig": "Figure", "tbl": "Table"}
_HEADING = re.compile(r"^#{1,4}\s+(?P<title>.+?)\s*\{#(?P<label>sec-[\w-]+)[^}]*\}\s*$", re.M)
_OPTION = re.compile(r"^#\|\s*label:\s*[\"']?(?P<label>(?:fig|tbl)-[\w-]+)", re.M)
_CAPTION = re.compile(r"^(#\|\s*(?:fig|tbl)-cap:\s*)(.+)$", re.M)
_MARKDOWN_LABEL = re.compile(r"\{#(?P<label>(?:fig|tbl)-[\w-]+)")
_DIV = re.compile(
    r"^::: *\{#(?P<label>(?:fig|tbl)-[\w-]+)[^}]*\}\n(?P<body>.*?)^:::[ \t]*$", re.M | re.S
)
_CITED = re.compile(r"\[(?P<keys>@[\w-]+(?:\s*;\s*@[\w-]+)*)\]")
_REFERENCE = re.compile(r"(?<![\w@\[`/.])@(?P<label>(?:fig|tbl|sec)-[\w-]*\w)")
_CODE = re.compile(r"(^```.*?^```[ \t]*$|`[^`\n]+`)", re.M | re.S)


class SiteReferenceError(AegisError):
    """A cross-reference or citation names what does not exist."""


@dataclass(frozen=True)
class Label:
    """Where a label stands and what a reference to it says.

    ``title`` marks the page's own; an empty ``page`` is one that is not on the site.
    """

    page: str
    text: str
    title: bool = False


def cells_of(source: str, text: str) -> list[dict[str, Any]]:
    """A page as notebook cells; a Markdown page is one cell."""
    if source.endswith(".ipynb"):
        cells: list[dict[str, Any]] = json.loads(text)["cells"]
        return [{**cell, "source": "".join(cell["source"])} for cell in cells]
    return [{"cell_type": "markdown", "source": text}]


def find_labels(pages: Mapping[str, str]) -> dict[str, Label]:
    """All labels of a site, figures and tables numbered in reading order.

    Parameters
    ----------
    pages
        Source path -> text, in reading order.

    Raises
    ------
    SiteReferenceError
        A label stands twice.
    """
    found: dict[str, Label] = {}
    counts, titles = dict.fromkeys(_KINDS, 0), set[str]()
    for page, text in pages.items():
        for cell in cells_of(page, text):
            source = cell["source"]
            labels: list[tuple[str, str]] = []
            if cell["cell_type"] == "markdown":
                prose = _CODE.sub("", source)
                headings = list(_HEADING.finditer(prose))
                labels += [(m["label"], m["title"]) for m in headings]
                titles |= {m["label"] for m in headings if m[0].startswith("# ")}
                labels += [(m["label"], "") for m in _MARKDOWN_LABEL.finditer(prose)]
            elif cell["cell_type"] == "code":
                labels += [(m["label"], "") for m in _OPTION.finditer(source)]
            for label, title in labels:
                if label in found:
                    raise SiteReferenceError(
                        f"{page}: the label {label} stands in {found[label].page} too"
                    )
                kind = label.partition("-")[0]
                if kind in _KINDS:
                    counts[kind] += 1
                    title = f"{_KINDS[kind]} {counts[kind]}"
                found[label] = Label(page, title, label in titles)
    return found


def read_bibliography(path: Path) -> dict[str, dict[str, Any]]:
    """Key -> entry of a CSL JSON file."""
    entries: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return {str(entry["id"]): entry for entry in entries}


def short_citation(entry: Mapping[str, Any]) -> str:
    """``Desplanques et al., 2020``."""
    names = [a.get("family") or a.get("literal", "") for a in entry.get("author", [])]
    who = names[0] if names else str(entry["title"])
    if len(names) == 2:
        who = f"{names[0]} and {names[1]}"
    elif len(names) > 2:
        who = f"{names[0]} et al."
    return f"{who}, {_year(entry)}"


def _year(entry: Mapping[str, Any]) -> str:
    parts = entry.get("issued", {}).get("date-parts", [["n.d."]])
    return str(parts[0][0])


def reference_list(bibliography: Mapping[str, Mapping[str, Any]]) -> str:
    """The bibliography as HTML, in order of author and year."""
    lines = []
    for key, entry in sorted(
        bibliography.items(), key=lambda item: short_citation(item[1]).lower()
    ):
        authors = "; ".join(_author(a) for a in entry.get("author", []))
        where = entry.get("container-title") or entry.get("publisher") or ""
        link = entry.get("URL") or (f"https://doi.org/{entry['DOI']}" if entry.get("DOI") else "")
        text = f"{escape(authors)} ({_year(entry)}). {escape(str(entry['title']))}."
        text += f" <em>{escape(where)}</em>." if where else ""
        text += f' <a href="{escape(link)}">{escape(link)}</a>' if link else ""
        lines.append(f'<p id="ref-{escape(key)}">{text}</p>')
    return "```{=html}\n" + "\n".join(lines) + "\n```\n"


def _author(author: Mapping[str, str]) -> str:
    if "literal" in author:
        return author["literal"]
    return f"{author['family']}, {author['given']}" if author.get("given") else author["family"]


@dataclass(frozen=True)
class Known:
    """What references on any page may name."""

    labels: Mapping[str, Label]
    bibliography: Mapping[str, Mapping[str, Any]]


def resolve_page(page: str, text: str, known: Known) -> str:
    """A copy of a page with numbers, links and folded code written out.

    Raises
    ------
    SiteReferenceError
        A reference or citation names nothing.
    """
    if not page.endswith(".ipynb"):
        if page == REFERENCES:
            text = text.replace("::: {#refs}\n:::", reference_list(known.bibliography))
        return _prose(page, text, known)
    notebook = json.loads(text)
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        cell["source"] = _prose(page, source, known) if cell["cell_type"] == "markdown" else source
        if cell["cell_type"] == "code":
            cell["source"] = _options(source, known)
            for output in cell.get("outputs", []):
                said = output.get("data", {}).get("text/markdown")
                if said is not None:
                    output["data"]["text/markdown"] = _prose(page, "".join(said), known)
    return json.dumps(notebook, ensure_ascii=False)


def _options(source: str, known: Known) -> str:
    """Number the cell's caption and fold its code."""
    label = _OPTION.search(source)
    if label and label["label"] in known.labels:
        number = known.labels[label["label"]].text
        source = _CAPTION.sub(lambda m: m[1] + json.dumps(f"{number}. {_plain(m[2])}"), source)
    return f"#| code-fold: true\n#| code-summary: code\n{source}"


def _plain(value: str) -> str:
    value = value.strip()
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if quoted else value


def _prose(page: str, text: str, known: Known) -> str:
    parts = _CODE.split(_DIV.sub(lambda m: _figure(m, known), text))
    return "".join(part if i % 2 else _linked(page, part, known) for i, part in enumerate(parts))


def _figure(found: re.Match[str], known: Known) -> str:
    """A labelled division: its last paragraph is the caption."""
    body, _, caption = found["body"].strip().rpartition("\n\n")
    number = known.labels[found["label"]].text
    return f"::: {{#{found['label']}}}\n{body}\n\n*{number}.* {caption}\n:::"


def _linked(page: str, text: str, known: Known) -> str:
    def reference(found: re.Match[str]) -> str:
        label = known.labels.get(found["label"])
        if label is None:
            raise SiteReferenceError(f"{page}: @{found['label']} names nothing")
        if not label.page:
            return label.text
        anchor = "" if label.title else f"#{found['label']}"  # a title keeps no anchor
        return f"[{label.text}]({_path(page, label.page) or Path(page).name}{anchor})"

    def citation(found: re.Match[str]) -> str:
        links = []
        for key in (part.strip().lstrip("@") for part in found["keys"].split(";")):
            if key not in known.bibliography:
                raise SiteReferenceError(f"{page}: [@{key}] is not in the bibliography")
            shown = short_citation(known.bibliography[key])
            links.append(f"[{shown}]({_path(page, REFERENCES)}#ref-{key})")
        return f"({'; '.join(links)})"

    return _REFERENCE.sub(reference, _CITED.sub(citation, text))


def _path(page: str, target: str) -> str:
    return "" if page == target else os.path.relpath(target, str(PurePosixPath(page).parent))
