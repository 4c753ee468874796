"""The site in a real browser: from a server and from a folder, offline, readable by all."""

import importlib.util
import json
import os
import shutil
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pandas as pd
import pytest
from fabricate import fabricate_run
from toy_site import add_notebook

from aegis import listening, report, site
from aegis.audio import write_wav
from aegis.manifests import read_card

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        not (shutil.which("chromium") and shutil.which("chromedriver")),
        reason="needs Debian's chromium and chromium-driver",
    ),
]
STITCH = "runs/toy/notebooks/07_stitch.html"
LISTEN = "runs/toy/pages/listen.html"
SORTED = (
    "<table><thead><tr><th>name</th><th>share</th></tr></thead><tbody>"
    + "".join(
        f"<tr><td>row {name}</td><td>{share}</td></tr>"
        for name, share in zip(
            "abcdefg", ("9/40 (22.5 %)", "1,000", "–", "12.5", "-3", "10", "2"), strict=True
        )
    )
    + "</tbody></table>"
)

_FRAME = pd.DataFrame({"x": [5, 6], "y": ["a", "b"]})
_NAMED = pd.DataFrame({"kind": ["k1", "k2"], "n": [3, 4]}).set_index("kind")
LONG = pd.DataFrame({"x": range(40), "y": "z"}).to_html(index=False)
FRAMES = _FRAME.to_html() + _NAMED.to_html() + _FRAME.head(0).to_html(index=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A toy site with originals: wide and sortable tables, players, a listening page."""
    place = tmp_path_factory.mktemp("site")
    tone = 0.2 * np.sin(np.arange(32_000) / 9).astype(np.float32)
    write_wav(place / "a.wav", tone)
    wide = "<table><tr>" + "".join(f"<td>column {i}</td>" for i in range(60)) + "</tr></table>"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AEGIS_RUNS", str(place / "runs"))
        patch.setattr(listening, "read_card", lambda _name: read_card("demo"))
        run = fabricate_run(place / "runs" / "toy", n_recordings=2, audio=True)
        add_notebook(run, "00_corpora", "Two made-up conversations.")
        add_notebook(run, "07_stitch", "Players.", wide + report.player(place / "a.wav").data)
        add_notebook(run, "13_contrasts", "Made-up contrasts.", SORTED)
        add_notebook(run, "12_linkage", "A long table.", LONG)
        add_notebook(run, "14_scorecard", "Data frames as they are.", FRAMES)
        site.render("toy", place / "out", originals=True)
    return place / "out"


@pytest.fixture(scope="module", params=["server", "folder"])
def address(request, folder):
    """The site's address, once served on loopback and once as files."""
    if request.param == "folder":
        yield folder.as_uri()
        return
    handler = partial(_Quiet, directory=str(folder))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_arguments):
        pass


@pytest.fixture(scope="module")
def browser():
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    for argument in (
        "--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1200,900",
        "--autoplay-policy=no-user-gesture-required",
    ):  # fmt: skip
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    yield driver
    driver.quit()


def errors(browser):
    return [e["message"] for e in browser.get_log("browser") if e["level"] == "SEVERE"]


def requests(browser):
    """Addresses asked for since the last call."""
    messages = [json.loads(e["message"])["message"] for e in browser.get_log("performance")]
    sent = [m["params"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    return [one["request"]["url"] for one in sent]


def every_page(folder):
    return [page.relative_to(folder).as_posix() for page in sorted(folder.rglob("*.html"))]


def test_front_page_says_what_the_run_is(browser, address):
    browser.get(address + "/index.html")
    text = browser.find_element("css selector", "main").text
    assert "embedded engines only" in text
    assert "not the paper's results" in text.replace("’", "'")
    assert "Run toy, content" in text
    assert errors(browser) == []


def test_every_page_opens_without_an_error_and_asks_no_other_host(browser, address, folder):
    requests(browser)
    for page in every_page(folder):
        browser.get(f"{address}/{page}")
        assert browser.find_element("css selector", "h1").text
        assert errors(browser) == [], page
    asked = requests(browser)
    assert len(asked) > len(every_page(folder))
    assert [u for u in asked if not u.startswith((address, "data:", "chrome", "about:"))] == []


def test_the_sidebar_leads_to_pages(browser, address):
    browser.get(address + "/index.html")
    link = browser.find_element("css selector", "#quarto-sidebar a[href$='13_contrasts.html']")
    link.click()
    assert browser.find_element("css selector", "h1").text == "Page 13_contrasts"
    links = browser.find_elements("css selector", "#quarto-sidebar a[href]")
    pages = {link.get_attribute("href") for link in links}
    assert len([page for page in pages if page.endswith(".html")]) >= 12


@pytest.mark.parametrize("width", [1200, 420])
def test_a_wide_table_scrolls_inside_its_frame(browser, address, width):
    browser.set_window_size(width, 900)
    browser.get(f"{address}/{STITCH}")
    script = "return [document.documentElement.scrollWidth, window.innerWidth]"
    scroll_width, inner_width = browser.execute_script(script)
    browser.set_window_size(1200, 900)
    assert scroll_width <= inner_width


def test_a_table_sorts_by_its_numbers_and_back(browser, address):
    browser.get(f"{address}/runs/toy/notebooks/13_contrasts.html")
    order = (
        "return [...document.querySelectorAll('main tbody tr')].map(r => r.cells[0].textContent)"
    )
    header = browser.find_elements("css selector", "main th button.sort")[1]
    header.click()
    # -3, 2, 9 (of 40), 10, 12.5, 1,000, then what is no number
    expected = ["row e", "row g", "row a", "row f", "row d", "row b", "row c"]
    assert browser.execute_script(order) == expected
    header.click()
    assert browser.execute_script(order) == expected[::-1]
    marked = browser.find_element("css selector", "main th[aria-sort]")
    assert marked.get_attribute("aria-sort") == "descending"


def test_data_frames_lose_what_only_counts_and_doubles(browser, address):
    """A column that counts the rows goes; names of an index share the row of the columns."""
    browser.get(f"{address}/runs/toy/notebooks/14_scorecard.html")
    script = """
        return [...document.querySelectorAll('main table')].map((table) =>
            [...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent.trim())));
    """
    counted, named, empty = browser.execute_script(script)
    assert counted == [["x", "y"], ["5", "a"], ["6", "b"]]
    assert named == [["kind", "n"], ["k1", "3"], ["k2", "4"]]
    assert empty == [["x", "y"], ["no rows"]]
    # Headers sort: 6 before 5 after a second click.
    header = browser.find_elements("css selector", "main th button.sort")[0]
    header.click()
    header.click()
    assert browser.execute_script(script)[0][1:] == [["6", "b"], ["5", "a"]]


def test_a_long_table_scrolls_below_its_header_and_says_how_long_it_is(browser, address):
    browser.get(f"{address}/runs/toy/notebooks/12_linkage.html")
    said = browser.find_element("css selector", ".table-tools [role=status]").text
    assert said == "40 rows, scroll for more"
    script = """
        const frame = document.querySelector('.table-frame');
        const top = (element) => element.getBoundingClientRect().top;
        frame.scrollTop = 300;
        return [frame.clientHeight < frame.scrollHeight, frame.scrollTop,
            top(frame.querySelector('th')) - top(frame)];
    """
    cut, scrolled, header = browser.execute_script(script)
    assert (cut, scrolled) == (True, 300)
    assert abs(header) < 2


def test_a_table_filters_and_copies_what_is_shown(browser, address):
    browser.get(f"{address}/runs/toy/notebooks/13_contrasts.html")
    browser.find_element("css selector", ".table-tools input").send_keys("1 row")
    shown = browser.find_elements("css selector", "main tbody tr:not([hidden])")
    assert sorted(row.text.split()[1] for row in shown) == ["b", "d", "f"]
    assert browser.find_element("css selector", ".table-tools [role=status]").text == "3 of 7 rows"
    browser.execute_script(
        "window.copied = null; Object.defineProperty(navigator, 'clipboard',"
        " {value: {writeText: async (text) => { window.copied = text; }}, configurable: true})"
    )
    browser.find_element("css selector", ".table-tools button").click()
    lines = browser.execute_script("return window.copied").split("\n")
    assert lines[0].split("\t") == ["name", "share"]
    assert len(lines) == 4


def test_the_player_holds_two_seconds_of_sound(browser, address):
    browser.get(f"{address}/{STITCH}")
    script = """
        const done = arguments[arguments.length - 1];
        const player = document.querySelector('main audio');
        player.preload = 'auto';
        player.onloadedmetadata = () => done(player.duration);
        player.onerror = () => done(-1);
        player.load();
    """
    assert browser.execute_async_script(script) == pytest.approx(2.0, abs=0.15)


def test_listening_plays_every_condition_one_at_a_time(browser, address):
    browser.get(f"{address}/{LISTEN}")
    turn = browser.find_element("css selector", ".turn")
    labels = [c.text for c in turn.find_elements("css selector", "figcaption")]
    assert labels == list(report.CONDITION_LABELS.values())
    script = """
        const done = arguments[arguments.length - 1];
        const [first, second] = document.querySelectorAll('.turn audio');
        first.volume = second.volume = 0;
        first.play().then(() => second.play()).then(() => setTimeout(() =>
            done([first.paused, second.paused, second.currentTime > 0]), 400)
        ).catch((error) => done(String(error)));
    """
    assert browser.execute_async_script(script) == [True, False, True]
    images = "return [...document.querySelectorAll('.turn img')].map(i => i.alt.length > 20)"
    assert all(browser.execute_script(images))


def test_search_finds_a_page_and_a_table(browser, address):
    for words, target in (("made-up contrasts", "13_contrasts"), ("pool unit backend", "table_")):
        browser.get(address + "/index.html")
        box = browser.find_element("css selector", "#quarto-search input")
        box.send_keys(words)
        found = []
        for _ in range(50):
            found = browser.find_elements(
                "css selector", ".smalldocs-search-results a, .aa-Item a"
            )
            if found:
                break
            time.sleep(0.1)
        assert any(target in (a.get_attribute("href") or "") for a in found)
    assert errors(browser) == []


def test_the_theme_toggles_and_is_kept(browser, address):
    background = "return getComputedStyle(document.body).backgroundColor"
    browser.get(address + "/index.html")
    light = browser.execute_script(background)
    browser.find_element("css selector", ".quarto-color-scheme-toggle").click()
    time.sleep(0.3)
    dark = browser.execute_script(background)
    assert dark != light
    browser.get(f"{address}/{STITCH}")
    assert browser.execute_script(background) == dark
    browser.find_element("css selector", ".quarto-color-scheme-toggle").click()
    time.sleep(0.3)
    assert browser.execute_script(background) == light


def test_on_paper_a_page_is_its_content(browser, address):
    """Printing leaves out what is for the screen, and cuts no table off."""
    browser.get(f"{address}/runs/toy/notebooks/13_contrasts.html")
    hidden = """
        return ['#quarto-sidebar', '.table-tools', 'main audio'].flatMap((name) =>
            [...document.querySelectorAll(name)]).filter((e) => e.getClientRects().length).length;
    """
    assert browser.execute_script(hidden) >= 2
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert browser.execute_script(hidden) == 0
    frames = (
        "return [...document.querySelectorAll('.table-frame')]"
        ".map((f) => [getComputedStyle(f).overflowY, getComputedStyle(f).maxHeight])"
    )
    found = browser.execute_script(frames)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert found == [["visible", "none"]] * len(found) != []


def axe_source():
    """axe-core from an installed package or ``$AEGIS_AXE``, else None."""
    places = [Path(os.environ.get("AEGIS_AXE", "/nonexistent"))]
    spec = importlib.util.find_spec("axe_playwright_python")
    if spec is not None and spec.origin:
        places.append(Path(spec.origin).with_name("axe.min.js"))
    return next((place.read_text() for place in places if place.is_file()), None)


needs_axe = pytest.mark.skipif(
    axe_source() is None, reason="needs axe-playwright-python or $AEGIS_AXE"
)
AXE = """
    const done = arguments[arguments.length - 1];
    axe.run(document, {resultTypes: ['violations'], preload: false}).then((result) => done(
        result.violations.filter((v) => ['serious', 'critical'].includes(v.impact))
            .map((v) => `${v.id}: ${v.nodes[0].html.slice(0, 160)}`)));
"""


VIEWS = (("light", 1200), ("light", 420), ("dark", 1200))


def barriers(browser, root, pages, views=VIEWS):
    """Serious and critical findings of axe-core by (theme, width, page): light, dark, a phone."""
    found = {}
    for theme, width in views:
        browser.set_window_size(1200, 900)
        browser.get(root + "/index.html")
        if theme == "dark":
            browser.find_element("css selector", ".quarto-color-scheme-toggle").click()
        browser.set_window_size(width, 900)
        for page in pages:
            browser.get(f"{root}/{page}")
            time.sleep(0.2)
            browser.execute_script(axe_source())
            found[theme, width, page] = browser.execute_async_script(AXE)
    browser.set_window_size(1200, 900)
    browser.execute_script("localStorage.clear()")
    return {place: findings for place, findings in found.items() if findings}


@needs_axe
def test_no_serious_accessibility_finding(browser, folder):
    """One page of each kind."""
    api = "runs/toy/pages/api_run.html"
    tables = ["runs/toy/pages/data.html", "runs/toy/pages/table_claims.html"]
    pages = ["index.html", STITCH, LISTEN, api, *tables, "docs/glossary.html"]
    assert barriers(browser, folder.as_uri(), pages) == {}


@needs_axe
@pytest.mark.smoke
@pytest.mark.engine
def test_the_site_of_a_real_run_has_no_barrier(browser, smoke, tmp_path_factory):
    """Every notebook and the listening page with originals; some of them in the other views."""
    out = tmp_path_factory.mktemp("smoke_site") / "out"
    site.render(smoke.root.name, out, originals=True)
    pages = [page for page in every_page(out) if "/table_" not in page and "/api_" not in page]
    assert sum("/notebooks/" in page for page in pages) >= 12
    errors(browser)
    assert barriers(browser, out.as_uri(), pages, VIEWS[:1]) == {}
    assert barriers(browser, out.as_uri(), pages[::12], VIEWS[1:]) == {}
    assert errors(browser) == []


def test_modules_become_plain_scripts(tmp_path, browser):
    """A page with an imported module runs from a folder, where browsers refuse modules."""
    import runpy

    hook = runpy.run_path(str(site.PROJECT / "scripts" / "post_render.py"))
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/parts.js").write_text(
        "const scale = 2;\nexport function twice(x) { return scale * x; }\n"
        "const secret = 5;\nexport { secret as five };\n"
        "export default function one() { return 1; }\n"
    )
    (tmp_path / "lib/main.js").write_text(
        'import * as parts from "./parts.js";\nimport { twice, five as V } from "./parts.js";\n'
        'import one from "./parts.js";\n'
        'document.title = [parts.twice(1), twice(2), V, one()].join(" ");\n'
    )
    page = tmp_path / "index.html"
    script = '<script src="lib/main.js" type="module"></script>'
    page.write_text(f"<html><head>{script}</head><body></body></html>")
    browser.get(page.as_uri())
    assert browser.title != "2 4 5 1"
    browser.get_log("browser")
    assert hook["flatten_modules"](tmp_path) == 1
    browser.get(page.as_uri())
    assert browser.title == "2 4 5 1"
    assert errors(browser) == []


# --- the listening panel -----------------------------------------------------------------


@pytest.fixture
def panel_page(tmp_path, browser):
    """A page of three items, opened; files that it saves go to ``tmp_path``."""
    from aegis import panel

    tone = 0.2 * np.sin(np.arange(16_000) / 9).astype(np.float32)
    write_wav(tmp_path / "a.wav", tone)
    items = pd.DataFrame({
        "item_id": ["p1", "p2", "p3"], "kind": ["clinical", "clinical", "perceptual"],
        "statement": ["Takes <b>5 mg</b>.", "No fever.", ""],
    })  # fmt: skip
    sounds = dict.fromkeys(items["item_id"], (tmp_path / "a.wav").as_uri())
    page = panel._page("panel7", "reviewer-1", ["p1", "p2", "p3"], items, sounds)
    path = tmp_path / "reviewer-1.html"
    path.write_text(page)
    folder = {"behavior": "allow", "downloadPath": str(tmp_path)}
    browser.execute_cdp_cmd("Page.setDownloadBehavior", folder)
    browser.get(path.as_uri())
    browser.execute_script("localStorage.clear()")
    browser.refresh()
    return path


def press(browser, *keys):
    from selenium.webdriver.common.action_chains import ActionChains

    for key in keys:
        ActionChains(browser).send_keys(key).perform()


def place(browser):
    return browser.find_element("id", "place").text


def test_a_panel_is_answered_by_keyboard_and_saved(browser, panel_page):
    from selenium.webdriver.support.ui import WebDriverWait

    from aegis import panel

    assert "Item 1 of 3, 0 answered" in place(browser)
    statement = browser.find_element("id", "statement")
    assert statement.text == "Takes <b>5 mg</b>."  # shown as it is, never as markup
    press(browser, " ")
    WebDriverWait(browser, 10).until(
        lambda b: b.execute_script("return document.getElementById('sound').currentTime > 0")
    )
    press(browser, "1", "4", "5")
    assert "Item 3 of 3, 3 answered. Please save" in place(browser)
    assert not statement.is_displayed()  # a perceptual item has none
    press(browser, "\ue012", "2")  # the left arrow: back to the second item, answered anew
    assert "Item 3 of 3" in place(browser)
    for ending in ("json", "csv"):
        browser.find_element("id", ending).click()
        saved = panel_page.parent / f"panel7-reviewer-1.{ending}"
        WebDriverWait(browser, 10).until(lambda _, saved=saved: saved.exists())
        table = panel.read_panel(saved)
        assert table["answer"].tolist() == ["preserved", "partial", "5"]
        assert table["item_id"].tolist() == ["p1", "p2", "p3"]
        assert [int(n) for n in table["plays"]] == [1, 0, 0]
    assert errors(browser) == []


def test_a_panel_keeps_its_progress_in_the_browser(browser, panel_page):
    press(browser, "3")
    browser.find_element("id", "comment").send_keys("12 s")  # digits there are no answers
    assert "1 answered" in place(browser)
    browser.refresh()
    assert "Item 2 of 3, 1 answered" in place(browser)
    assert browser.find_element("id", "comment").get_attribute("value") == "12 s"
    browser.find_element("id", "back").click()
    chosen = browser.find_element("css selector", "#answers [aria-pressed=true]")
    assert chosen.get_attribute("data-value") == "missing"
    browser.find_element("tag name", "body").click()
    press(browser, "u")
    assert "Item 2 of 3" in place(browser)
