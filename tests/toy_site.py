"""A run with two executed notebooks and their receipts, enough to build a site from."""

import hashlib
import json
from pathlib import Path

import nbformat
from fabricate import fabricate_run
from nbformat import v4

from aegis.pipeline import STAGES
from aegis.stamp import input_hash
from aegis.tables import Run


def add_notebook(
    run: Run, stage: str, body: str, html: str = "<table><tr><td>1</td></tr></table>"
):
    """Write an executed notebook with one HTML output, and the receipt that names it."""
    output = v4.new_output("execute_result", {"text/html": html}, execution_count=1)
    cells = [
        v4.new_markdown_cell(f"# Page {stage} {{#sec-{stage[:2]}}}\n\n{body}"),
        v4.new_code_cell("table", outputs=[output], execution_count=1),
    ]
    path = run.root / "notebooks" / f"{stage}.ipynb"
    path.parent.mkdir(exist_ok=True)
    nbformat.write(v4.new_notebook(cells=cells), path)
    receipt = {
        "stage": stage,
        "started": "2026-01-02T03:04:05+00:00",
        "notebook_sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "tables": {name: input_hash(run.root, name) for name in STAGES[stage].writes},
        "engines": [{"role": "converter", "name": "world", "embedded": True}],
    }
    target = run.root / "receipts" / f"{stage}.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(receipt))


def toy_run(root: Path) -> Run:
    run = fabricate_run(root)
    add_notebook(run, "00_corpora", "Six made-up conversations.")
    add_notebook(run, "13_contrasts", "Made-up contrasts, see [the corpora](00_corpora.ipynb).")
    return run
