"""Cross-references and citations, where the renderer has none."""

import json

import pytest

from aegis import site_text
from aegis.site_text import Known, SiteReferenceError, find_labels, resolve_page
from aegis.tables import PROJECT

FRONT = (
    "# Front {#sec-front}\n\nSee @fig-b, @sec-data and `@fig-b`; as in [@aegisvox; @seo2026].\n"
)
DATA = "# Data {#sec-data .unnumbered}\n\nBack to @sec-front.\n"
CODE = '#| label: fig-b\n#| fig-cap: "Lengths: all of them."\nplot()'


def notebook(source):
    cell = {"cell_type": "code", "source": source, "outputs": [], "metadata": {}}
    return json.dumps({"cells": [cell], "nbformat": 4, "metadata": {}})


@pytest.fixture
def pages():
    return {
        "index.qmd": FRONT,
        "runs/r/notebooks/a.ipynb": notebook("#| label: fig-a\nplot()"),
        "runs/r/notebooks/b.ipynb": notebook(CODE),
        "runs/r/pages/data.md": DATA,
    }


@pytest.fixture
def known(pages):
    bibliography = site_text.read_bibliography(PROJECT / "docs" / "references.json")
    return Known(find_labels(pages), bibliography)


def test_figures_are_numbered_in_reading_order_over_all_pages(known):
    assert known.labels["fig-b"].text == "Figure 2"
    assert known.labels["sec-data"].text == "Data"


def test_references_become_links_but_not_inside_code(pages, known):
    text = resolve_page("index.qmd", pages["index.qmd"], known)
    assert "[Figure 2](runs/r/notebooks/b.ipynb#fig-b)" in text
    assert "[Data](runs/r/pages/data.md) and `@fig-b`" in text
    assert "[Seo et al., 2026](docs/references.qmd#ref-seo2026))" in text
    back = resolve_page("runs/r/pages/data.md", DATA, known)
    assert "[Front](../../../index.qmd)" in back  # a renderer drops the anchor of a title


def test_a_section_below_the_title_is_reached_by_its_anchor():
    pages = {
        "a.md": "# A {#sec-a}\n\n## Part {#sec-part}\n",
        "b.md": "See @sec-part and @sec-b.\n",
    }
    pages["b.md"] = "# B {#sec-b}\n\n" + pages["b.md"]
    text = resolve_page("b.md", pages["b.md"], Known(find_labels(pages), {}))
    assert "See [Part](a.md#sec-part) and [B](b.md)." in text


def test_captions_carry_their_number_and_code_is_folded(pages, known):
    made = json.loads(resolve_page("runs/r/notebooks/b.ipynb", notebook(CODE), known))
    lines = made["cells"][0]["source"].splitlines()
    assert lines[0] == "#| code-fold: true"
    assert '#| fig-cap: "Figure 2. Lengths: all of them."' in lines


@pytest.mark.parametrize(
    ("text", "message"),
    [("See @fig-none.", "@fig-none names nothing"), ("By [@nobody].", "not in the bibliography")],
)
def test_a_reference_to_nothing_stops_the_build(known, text, message):
    with pytest.raises(SiteReferenceError, match=message):
        resolve_page("index.qmd", text, known)


def test_a_label_stands_once(pages):
    pages["runs/r/notebooks/c.ipynb"] = notebook(CODE)
    with pytest.raises(SiteReferenceError, match="the label fig-b stands in"):
        find_labels(pages)


def test_every_cited_work_is_listed(known):
    listed = site_text.reference_list(known.bibliography)
    assert all(f'id="ref-{key}"' in listed for key in known.bibliography)
