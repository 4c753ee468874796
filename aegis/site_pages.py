"""Pages that are written from the run and the package: data, tables, reproduce, API.

Unit: one run. All of it lands below ``runs/<run>/pages/``: Markdown pages that
``_quarto.yml`` lists, ``fragments/`` (one a table, framed after rendering) and
``files/`` (downloads). Secret tables appear by their schema only.

Functions: :func:`write_data_pages`, :func:`write_reproduce_page`, :func:`pipeline_figure`.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd

from aegis.pipeline import STAGES
from aegis.stamp import read_receipts
from aegis.tables import SCHEMAS, Run, Schema

SHOWN_ROWS = 200
NO_NOTEBOOK = "a command of its own"
_UNITS = {
    "_s": "seconds", "_hz": "Hz", "_db": "dB", "_samples": "samples at 16 kHz",
    "_mb": "MB", "sha256": "SHA-256", "_index": "from 0", "_distance": "cosine distance, 0 to 2",
    "eer": "share, 0 to 1", "fpr": "share, 0 to 1", "probability": "share, 0 to 1",
}  # fmt: skip
_UNIT_OF = {
    **dict.fromkeys(("tpr", "wer", "precision", "recall", "f1", "accuracy", "auc", "p", "p_holm"),
                    "share, 0 to 1"),
    **dict.fromkeys(("file_start", "source_start", "source_end", "out_start", "out_end"),
                    "samples at 16 kHz"),
    **dict.fromkeys(("ci_low", "ci_high", "detectable", "equal_conversation"), "as the estimate"),
    **dict.fromkeys(("char_start", "char_end"), "characters"),
    **dict.fromkeys(("cllr", "min_cllr", "zebra_bits"), "bits"),
    "distance": "cosine distance, 0 to 2",
}  # fmt: skip


def raw(html: str) -> str:
    """HTML that both renderers pass through Markdown untouched."""
    return f"```{{=html}}\n{html}\n```\n"


def owner_of(table: str) -> str:
    """The notebook that writes a table; empty for what a command of its own writes."""
    return next((name for name, wiring in STAGES.items() if table in wiring.writes), "")


def readers_of(table: str) -> list[str]:
    """The notebooks that read a table."""
    return [name for name, wiring in STAGES.items() if table in wiring.reads]


def html_table(frame: pd.DataFrame, name: str = "") -> str:
    """A frame as HTML; numbers short, missing values as a dash."""
    head = "".join(f'<th scope="col">{escape(str(c))}</th>' for c in frame.columns)
    rows = (
        "<tr>" + "".join(f"<td>{_cell(value)}</td>" for value in row) + "</tr>"
        for row in frame.itertuples(index=False)
    )
    own = f' class="{escape(name)}"' if name else ""
    return f"<table{own}><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _cell(value: Any) -> str:
    if isinstance(value, Html):
        return value.text
    if value is None or (pd.api.types.is_scalar(value) and pd.isna(value)):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    return escape(str(value))


class Html:
    """A cell that is HTML already."""

    def __init__(self, text: str) -> None:
        self.text = text


# --- tables ---------------------------------------------------------------------------


def write_data_pages(run: Run, pages: Path) -> None:
    """``data.md``, one fragment a table, and the downloads of the public ones."""
    shutil.rmtree(pages / "fragments", ignore_errors=True)
    shutil.rmtree(pages / "files" / "tables", ignore_errors=True)
    (pages / "fragments").mkdir(parents=True)
    (pages / "files" / "tables").mkdir(parents=True)
    rows = []
    for name, schema in SCHEMAS.items():
        frame = run.read(name) if run.has(name) else None
        public = schema.visibility == "public"
        if public and frame is not None:
            frame.to_csv(pages / "files" / "tables" / f"{name}.csv", index=False)
            shutil.copyfile(run.table_path(name), pages / "files" / "tables" / f"{name}.parquet")
        fragment = table_fragment(run, schema, frame)
        (pages / "fragments" / f"{name}.html").write_text(fragment, encoding="utf-8")
        rows.append(
            {
                "table": Html(f'<a href="table_{name}.html">{name}</a>'),
                "rows": "not in this run" if frame is None else len(frame),
                "visibility": schema.visibility,
                "one row is": schema.unit,
                "written by": owner_of(name) or NO_NOTEBOOK,
            }
        )
    index = html_table(pd.DataFrame(rows))
    text = f"""# Data {{#sec-data .unnumbered}}

Every number of this site stands in a table. A public table can be downloaded as CSV or as
Parquet, which pandas, polars and DuckDB open directly. Secret tables hold original words, names of
files or the two mappings; only their schema is shown.

{raw(index)}
## Reading them {{.unnumbered}}

```python
import pandas as pd, polars as pl, duckdb

pd.read_parquet("linkage.parquet")
pl.read_parquet("linkage.parquet")
duckdb.sql("SELECT system, avg(eer) FROM 'linkage.parquet' GROUP BY system")
```

In a checkout, `aegis table linkage --format csv` prints the same, and
`aegis.tables.open_run("{run.root.name}").read("linkage")` returns it with its types checked.
"""
    (pages / "data.md").write_text(text, encoding="utf-8")


def table_fragment(run: Run, schema: Schema, frame: pd.DataFrame | None) -> str:
    """What the page of one table shows."""
    name, owner = schema.name, owner_of(schema.name)
    public = schema.visibility == "public"
    facts = {
        "one row is": escape(schema.unit),
        "key": escape(", ".join(schema.key)),
        "written by": _page_link(run, owner) if owner else NO_NOTEBOOK,
        "read by": ", ".join(_page_link(run, reader) for reader in readers_of(name)) or "none",
        "rows": "not in this run" if frame is None else f"{len(frame):,}",
        "visibility": schema.visibility,
    }
    listed = "".join(f"<dt>{key}</dt><dd>{value}</dd>" for key, value in facts.items())
    parts = [f"<h1>Table {escape(name)}</h1>", f"<dl>{listed}</dl>"]
    if public and frame is not None:
        base = f"files/tables/{name}"
        parts.append(
            f'<p>Download: <a href="{base}.csv" download>CSV</a>,'
            f' <a href="{base}.parquet" download>Parquet</a></p>'
        )
    parts += ["<h2>Columns</h2>", html_table(_columns(schema), "schema")]
    if not public:
        parts.append("<p>This table can re-identify people, so its rows stay with the run.</p>")
    elif frame is not None and len(frame):
        shown = frame.head(SHOWN_ROWS)
        said = f"the first {SHOWN_ROWS} of {len(frame):,}" if len(frame) > SHOWN_ROWS else "all"
        parts += [f"<h2>Rows ({said})</h2>", html_table(shown)]
    return "\n".join(parts)


def _page_link(run: Run, stage: str) -> str:
    executed = (run.root / "notebooks" / f"{stage}.ipynb").exists()
    return f'<a href="../notebooks/{stage}.html">{stage}</a>' if executed else stage


def _columns(schema: Schema) -> pd.DataFrame:
    rows = []
    for column, kind in schema.columns.items():
        ending = next((unit for end, unit in _UNITS.items() if column.endswith(end)), None)
        unit = _UNIT_OF.get(column, ending)
        rows.append(
            {
                "column": column,
                "type": kind.rstrip("?"),
                "may be missing": kind.endswith("?"),
                "unit": "count" if unit is None and column.startswith("n_") else unit,
            }
        )
    return pd.DataFrame(rows)


# --- reproduce ------------------------------------------------------------------------


def write_reproduce_page(run: Run, pages: Path, content: str, command: str) -> None:
    """``reproduce.md``: commands, cost of each stage, machine, packages."""
    receipts = read_receipts(run.root)
    costs = html_table(pd.DataFrame([_cost(name, r) for name, r in receipts.items()]))
    packages: dict[str, str] = {}
    for receipt in receipts.values():
        packages |= receipt.get("packages", {})
    versions = pd.DataFrame({"package": packages.keys(), "version": packages.values()})
    engines = _engines(receipts)
    text = f"""# Reproduce {{#sec-reproduce .unnumbered}}

The commands that made this site, on Debian 12 with Python 3.11, from a checkout of the repository:

```bash
{command}
```

A second call re-runs nothing. `aegis status --run {run.root.name}` says for each stage whether it
is up to date; `aegis verify --run {run.root.name}` checks population, durations and hashes. The
content of this run is `{content}`: two runs with one hash have the same tables and notebooks.

## Cost {{.unnumbered}}

Wall and processor seconds of each stage as its receipt holds them; `reused` items were finished
by an earlier execution and cost nothing.

{raw(costs)}
{_machine(receipts)}
## Engines {{.unnumbered}}

{raw(html_table(engines)) if len(engines) else "No engine ran."}

## Packages {{.unnumbered}}

{raw(html_table(versions)) if len(versions) else "None recorded."}
"""
    (pages / "reproduce.md").write_text(text, encoding="utf-8")


def _cost(name: str, receipt: Mapping[str, Any]) -> dict[str, Any]:
    counts, memory = receipt.get("counts", {}), receipt.get("peak_memory_mb", {})
    return {
        "stage": name,
        "items": counts.get("planned"),
        "reused": receipt.get("reused"),
        "wall_s": receipt.get("wall_s"),
        "cpu_s": receipt.get("cpu_s"),
        "engine_s": receipt.get("engine_s"),
        "memory_mb": sum(memory.values()) if memory else None,
    }


def _machine(receipts: Mapping[str, Mapping[str, Any]]) -> str:
    """The machines that the receipts name, each once."""
    found = {tuple(r["machine"].items()) for r in receipts.values() if r.get("machine")}
    if not found:
        return "The receipts of this run do not name the machine.\n"
    shown = [dict(one) for one in sorted(found, key=str)]
    for one in shown:
        one["memory"] = f"{one.pop('memory_gb')} GiB" if "memory_gb" in one else "not recorded"
    lines = [", ".join(f"{key} {value}" for key, value in one.items()) for one in shown]
    return "".join(f"Machine: {line}.\n\n" for line in lines)


def _engines(receipts: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    keys = ("role", "name", "revision", "licence", "device", "embedded")
    found = {
        tuple(str(engine.get(key, "")) for key in keys)
        for receipt in receipts.values()
        for engine in receipt.get("engines", [])
    }
    return pd.DataFrame(sorted(found), columns=list(keys))


# --- the pipeline -----------------------------------------------------------------------

_PER_ROW, _WIDTH, _HEIGHT, _GAP = 3, 210, 74, 34


def pipeline_figure(run: Run) -> str:
    """The stages and which tables pass between them, as SVG drawn from ``STAGES``.

    One box a main stage in reading order; an arrow for each pair of neighbours of which
    the second reads what the first writes; boxes link to their pages.
    """
    stages = [name for name in STAGES if name[:2].isdigit()]
    rows = -(-len(stages) // _PER_ROW)
    width = _PER_ROW * (_WIDTH + _GAP) - _GAP
    height = rows * (_HEIGHT + _GAP) - _GAP
    parts = []
    for number, name in enumerate(stages):
        x, y = _place(number)
        parts.append(_box(run, name, x, y))
        if number + 1 < len(stages):
            parts.append(_arrow(number))
    labels = escape(", ".join(stages))
    return (
        f'<svg class="pipeline" viewBox="-2 -2 {width + 4} {height + 4}" role="group"'
        f' aria-label="Stages in order: {labels}">'
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7"'
        ' markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" fill="currentColor"/></marker>'
        "</defs>"
        f"{''.join(parts)}</svg>"
    )


def _place(number: int) -> tuple[int, int]:
    """Rows run in turn to the right and to the left, so that neighbours touch."""
    row, column = divmod(number, _PER_ROW)
    column = _PER_ROW - 1 - column if row % 2 else column
    return column * (_WIDTH + _GAP), row * (_HEIGHT + _GAP)


def _box(run: Run, name: str, x: int, y: int) -> str:
    writes = list(STAGES[name].writes)
    shown = [w for w in writes if not w.startswith("gold_")]
    lines = [", ".join(shown[:2]), ", ".join(shown[2:4]) + (" …" if len(shown) > 4 else "")]
    text = f'<text x="{x + 10}" y="{y + 22}" font-size="15" font-weight="600">{name}</text>'
    for i, line in enumerate(filter(None, lines)):
        text += f'<text x="{x + 10}" y="{y + 42 + 17 * i}" font-size="12.5">{escape(line)}</text>'
    box = (
        f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="6" fill="none"'
        ' stroke="currentColor" stroke-opacity="0.5"/>'
    )
    body = f'<g fill="currentColor">{box}{text}</g>'
    if not (run.root / "notebooks" / f"{name}.ipynb").exists():
        return body
    address = f"runs/{run.root.name}/notebooks/{name}.html"
    return f'<a href="{address}" style="color:inherit">{body}</a>'


def _arrow(number: int) -> str:
    (x0, y0), (x1, y1) = _place(number), _place(number + 1)
    if y0 == y1:
        sign = 1 if x1 > x0 else -1
        start, end = (x0 + (_WIDTH if sign > 0 else 0)), (x1 + (0 if sign > 0 else _WIDTH))
        line = f"M{start} {y0 + _HEIGHT // 2}H{end}"
    else:
        line = f"M{x0 + _WIDTH // 2} {y0 + _HEIGHT}V{y1}"
    return f'<path d="{line}" stroke="currentColor" stroke-width="1.3" marker-end="url(#tip)"/>'
