"""The site in a real browser: pages load offline, tables fit, players play, search finds."""

import shutil
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import numpy as np
import pytest
from toy_site import add_notebook, toy_run

from aegis import report, site
from aegis.audio import write_wav

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        not (shutil.which("chromium") and shutil.which("chromedriver")),
        reason="needs Debian's chromium and chromium-driver",
    ),
]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Serve a toy site on loopback: a wide table, a player, two pages."""
    folder = tmp_path_factory.mktemp("site")
    tone = 0.2 * np.sin(np.arange(32_000) / 9).astype(np.float32)
    write_wav(folder / "a.wav", tone)
    wide = "<table><tr>" + "".join(f"<td>column {i}</td>" for i in range(60)) + "</tr></table>"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AEGIS_RUNS", str(folder / "runs"))
        run = toy_run(folder / "runs" / "toy")
        add_notebook(run, "07_stitch", "Players.", wide + report.player(folder / "a.wav").data)
        site.render("toy", folder / "out")
    handler = partial(_Quiet, directory=str(folder / "out"))
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
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1200,900"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    yield driver
    driver.quit()


def errors(browser):
    entries = browser.get_log("browser")
    return [
        e["message"] for e in entries if e["level"] == "SEVERE" and "favicon" not in e["message"]
    ]


def test_front_page_says_what_the_run_is(browser, address):
    browser.get(address + "/index.html")
    text = browser.find_element("css selector", "main").text
    assert "embedded engines only" in text
    assert "not the paper's results" in text.replace("’", "'")
    assert errors(browser) == []


def test_every_page_of_the_sidebar_opens(browser, address):
    browser.get(address + "/index.html")
    links = [
        a.get_attribute("href")
        for a in browser.find_elements("css selector", "#quarto-sidebar a[href]")
    ]
    pages = sorted({link for link in links if link.endswith(".html")})
    assert len(pages) >= 4
    for page in pages:
        browser.get(page)
        assert browser.find_element("css selector", "h1").text
        assert errors(browser) == []


def test_a_wide_table_scrolls_inside_its_frame(browser, address):
    browser.get(address + "/runs/toy/notebooks/07_stitch.html")
    script = "return [document.documentElement.scrollWidth, window.innerWidth]"
    scroll_width, inner_width = browser.execute_script(script)
    assert scroll_width <= inner_width


def test_the_player_holds_two_seconds_of_sound(browser, address):
    browser.get(address + "/runs/toy/notebooks/07_stitch.html")
    script = """
        const done = arguments[arguments.length - 1];
        const player = document.querySelector('main audio');
        player.preload = 'auto';
        player.onloadedmetadata = () => done(player.duration);
        player.onerror = () => done(-1);
        player.load();
    """
    assert browser.execute_async_script(script) == pytest.approx(2.0, abs=0.15)


def test_search_finds_a_page(browser, address):
    import time

    browser.get(address + "/index.html")
    box = browser.find_element("css selector", "#quarto-search input")
    box.send_keys("made-up contrasts")
    for _ in range(50):
        found = browser.find_elements("css selector", ".smalldocs-search-results a, .aa-Item a")
        if found:
            break
        time.sleep(0.1)
    assert any("13_contrasts" in (a.get_attribute("href") or "") for a in found)
