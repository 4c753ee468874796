"""The site: what it shows, and what stops it."""

import json
import runpy
import sys

import pandas as pd
import pytest
from toy_site import add_notebook, toy_run

from aegis import site, site_api, stamp
from aegis.site_checks import SiteError
from aegis.tables import PROJECT, SCHEMAS

CLAIM = {
    "label": "A toy difference",
    "value": 0.0123,
    "unit": "difference",
    "numerator": 1,
    "denominator": 9,
    "unknown": 2,
    "not_applicable": 0,
    "ci_low": -0.1,
    "ci_high": 0.2,
    "reason": None,
}


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("AEGIS_RUNS", str(tmp_path / "runs"))
    monkeypatch.setattr(site, "write_api_pages", short_reference)
    return toy_run(tmp_path / "runs" / "toy")


def short_reference(pages):
    """The reference of the package is long, and the same for every run (see test_browser)."""
    for name in site_api.PAGES:
        (pages / f"api_{name}.md").write_text(f"# {name}\n")


def test_pages_state_run_engines_and_renderer(run, tmp_path):
    built = site.render("toy", tmp_path / "out")
    front = built.index.read_text()
    for text in (
        "toy",
        "2026-01-02T03:04:05",
        "converter world",
        "embedded engines only",
        built.renderer,
    ):
        assert text in front
    page = (tmp_path / "out/runs/toy/notebooks/13_contrasts.html").read_text()
    assert "<td>1</td>" in page
    assert 'href="00_corpora.html"' in page
    assert 'name="aegis-content"' in page
    assert stamp.content_hash(run.root)[:12] in page
    assert built.n_pages >= len(SCHEMAS)


def test_front_page_numbers_come_from_claims(run, tmp_path):
    run.write("claims", pd.DataFrame([CLAIM | {"claim_id": "retained: b - a", "status": "ok"}]))
    add_notebook(run, "13_contrasts", "With claims.")
    text = site.render("toy", tmp_path / "out").index.read_text()
    assert "A toy difference" in text
    assert "1.2 percentage points (-10.0 to 20.0; 9 items, 2 unknown)" in text


def test_a_reference_to_a_page_that_is_not_there_yet_is_its_title(run, tmp_path):
    add_notebook(run, "11_judge_edits", "Intervals are in @sec-contrasts.")
    (run.root / "notebooks" / "13_contrasts.ipynb").unlink()
    index = site.render("toy", tmp_path / "out").index
    page = (index.parent / "runs/toy/notebooks/11_judge_edits.html").read_text()
    assert "Intervals are in Do the two renderers differ?." in page


def test_no_external_scripts_are_left(run, tmp_path):
    cdn = '<script src="https://cdn.example.org/require.js"></script><p>kept</p>'
    add_notebook(run, "00_corpora", "Text.", html=cdn)
    site.render("toy", tmp_path / "out")
    page = (tmp_path / "out/runs/toy/notebooks/00_corpora.html").read_text()
    assert "cdn.example.org" not in page
    assert "kept" in page


def test_a_changed_notebook_stops_the_build(run, tmp_path):
    notebook = run.root / "notebooks" / "00_corpora.ipynb"
    notebook.write_text(notebook.read_text().replace("Six", "Seven"))
    with pytest.raises(SiteError, match="00_corpora: the notebook changed since its receipt"):
        site.render("toy", tmp_path / "out")


def test_changed_tables_stop_the_build_until_the_stage_runs_again(run, tmp_path):
    site.render("toy", tmp_path / "out")
    assert site.site_is_current(tmp_path / "out", run)
    table = run.read("recordings")
    run.write("recordings", table.assign(gain_db=3.0))
    with pytest.raises(SiteError, match=r"stale pages: 00_corpora: tables changed.*recordings"):
        site.render("toy", tmp_path / "out")
    add_notebook(run, "00_corpora", "Run again.")
    assert not site.site_is_current(tmp_path / "out", run)
    site.render("toy", tmp_path / "out")
    assert site.site_is_current(tmp_path / "out", run)


def test_a_site_of_the_same_inputs_stays_and_another_is_built(run, tmp_path):
    index = site.render("toy", tmp_path / "out").index
    made = index.stat().st_mtime_ns
    again = site.render("toy", tmp_path / "out")
    assert index.stat().st_mtime_ns == made
    assert again.n_pages == sum(1 for _ in (tmp_path / "out").rglob("*.html"))
    site.render("toy", tmp_path / "out", originals=True)
    assert index.stat().st_mtime_ns > made
    made = index.stat().st_mtime_ns
    run.write("claims", pd.DataFrame([CLAIM | {"claim_id": "x", "status": "ok"}]))
    add_notebook(run, "13_contrasts", "Other claims.")
    site.render("toy", tmp_path / "out", originals=True)
    assert index.stat().st_mtime_ns > made


def test_quarto_itself_refuses_a_run_that_changed(run, tmp_path, monkeypatch):
    """The pre-render hook, in a folder as `quarto render` would see it."""
    (tmp_path / "aegis").symlink_to(PROJECT / "aegis")
    site.write_generated(tmp_path, run, "quarto", ["00_corpora"])
    monkeypatch.setenv("QUARTO_PROJECT_DIR", str(tmp_path))
    hook = runpy.run_path(str(PROJECT / "scripts" / "pre_render.py"))
    assert hook["problems"](tmp_path) == []
    run.write("recordings", run.read("recordings").assign(gain_db=3.0))
    assert "00_corpora: tables changed" in hook["problems"](tmp_path)[0]
    add_notebook(run, "00_corpora", "Run again.")
    assert "run `aegis render` again" in hook["problems"](tmp_path)[0]
    sys.path.remove(str(tmp_path))


def test_public_tables_can_be_downloaded_and_secret_ones_are_schemas(run, tmp_path):
    site.render("toy", tmp_path / "out")
    pages = tmp_path / "out/runs/toy/pages"
    public = (pages / "table_recordings.html").read_text()
    assert "files/tables/recordings.parquet" in public
    assert "toy/c00" in public
    same = pd.read_parquet(pages / "files/tables/recordings.parquet")
    assert same.equals(run.read("recordings"))
    assert len(pd.read_csv(pages / "files/tables/recordings.csv")) == len(same)
    secret = (pages / "table_substitutions.html").read_text()
    assert "its rows stay with the run" in secret
    assert "Colin" not in secret
    assert not (pages / "files/tables/substitutions.csv").exists()
    assert {p.stem.removeprefix("table_") for p in pages.glob("table_*.html")} == set(SCHEMAS)


def test_a_run_without_notebooks_says_what_to_do(run, tmp_path):
    for notebook in (run.root / "notebooks").iterdir():
        notebook.unlink()
    with pytest.raises(SiteError, match="no executed notebooks; start with `aegis run`"):
        site.render("toy", tmp_path / "out")


def test_broken_links_stop_the_build(run, tmp_path):
    add_notebook(run, "00_corpora", "See [nothing](nowhere.html).")
    with pytest.raises(SiteError, match=r"1 broken links, e\.g\. 00_corpora\.html -> nowhere"):
        site.render("toy", tmp_path / "out")


@pytest.mark.parametrize("kind", ["identifier", "turn", "file", "path", "key"])
def test_what_must_not_be_published_stops_the_build(run, tmp_path, kind):
    run.write("mentions", run.read("mentions").assign(text="Doris Webber"))
    run.write("file_map", run.read("file_map").assign(file="visit of Doris.wav"))
    leaks = {
        "identifier": "Doris Webber",
        "turn": " ".join(run.read("turns")["text"].iloc[0].split()[:8]),
        "file": "visit of Doris.wav",
        "path": str(PROJECT),
        "key": "sk-" + "a1" * 15,
    }
    add_notebook(run, "00_corpora", "Text.", html=f"<p>{leaks[kind]}</p>")
    with pytest.raises(SiteError, match=r"not publishable.*00_corpora\.html"):
        site.render("toy", tmp_path / "out")


def test_a_leak_in_a_download_or_the_search_index_stops_the_build(run, tmp_path):
    leak = " ".join(run.read("turns")["text"].iloc[0].split()[:8])
    run.write("claims", pd.DataFrame([CLAIM | {"claim_id": "x", "status": "ok", "reason": leak}]))
    add_notebook(run, "13_contrasts", "With claims.")
    with pytest.raises(SiteError, match=r"not publishable.*claims"):
        site.render("toy", tmp_path / "out")


def test_every_listed_notebook_exists_as_source():
    import yaml

    config = yaml.safe_load((PROJECT / "_quarto.yml").read_text())
    listed = [p for p in site._chapters(config["book"]["chapters"]) if p.endswith(".ipynb")]
    sources = {p.stem for p in (PROJECT / "notebooks").rglob("*.py")} - {"explore"}
    assert {p.rsplit("/", 1)[1].removesuffix(".ipynb") for p in listed} == sources
    assert config["execute"]["enabled"] is False


def test_receipts_are_json_with_a_hash(run):
    receipt = json.loads((run.root / "receipts" / "00_corpora.json").read_text())
    assert len(receipt["notebook_sha256"]) == 64


def test_the_page_of_scale_is_what_was_measured(monkeypatch):
    import importlib

    monkeypatch.syspath_prepend(site.PROJECT / "bench")
    projection = importlib.import_module("projection")
    assert projection.PAGE.read_text(encoding="utf-8") == projection.page()


def test_the_page_of_faults_is_what_the_suite_wrote():
    import fault_page

    assert fault_page.PAGE.read_text(encoding="utf-8") == fault_page.page()
