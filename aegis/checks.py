"""Checks of a finished run: population, durations, hashes, failures.

Every scheduled recording, turn and edit must have exactly one fate in every table
that is about it: ok, failed, excluded or not applicable, never nothing and never two.

Function: :func:`verify_run`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from aegis import receipts
from aegis.audio import SAMPLE_RATE_HZ
from aegis.cluster import damaged_records
from aegis.errors import TableError
from aegis.pipeline import STAGES
from aegis.tables import SCHEMAS, Run

# table -> (its key, table and column of the scheduled units); one row a unit or unit and more
_FATES = (
    ("screening", "recording_id", "recordings", "recording_id"),
    ("assignment_summary", "recording_id", "recordings", "recording_id"),
    ("turn_times", "turn_id", "turns", "turn_id"),
    ("converted", "turn_id", "turns", "turn_id"),
    ("plans", "recording_id", "recordings", "recording_id"),
    ("assignments", "profile_id", "profiles", "profile_id"),
    ("reconstructions", "recording_id", "recordings", "recording_id"),
    ("lexical_matches", "intention_id", "edits", "intention_id"),
)


@dataclass(frozen=True)
class _Checked:
    """A run, the receipts that can be trusted, and what these say of its files."""

    run: Run
    stages: tuple[str, ...]
    done: dict[str, receipts.Receipt]
    outputs: dict[str, list[str]]
    """Stage -> outputs that are not what was written."""

    def table(self, name: str) -> pd.DataFrame | None:
        """A table of these stages, or None where none is or it is damaged, a problem apart."""
        if not any(name in STAGES[stage].writes for stage in self.stages):
            return None
        place = self.run.relative(self.run.table_path(name))
        named = (reason for found in self.outputs.values() for reason in found)
        if not self.run.has(name) or any(r.startswith(f"output {place} ") for r in named):
            return None
        try:
            return self.run.read(name)
        except TableError:
            return None


def verify_run(run: Run, before: str | None = None) -> list[str]:
    """What is wrong with a run, one line each; empty when all checks hold.

    Parameters
    ----------
    before
        Only the stages before this one are looked at, and the tables that they own.
    """
    stages = tuple(STAGES)[: list(STAGES).index(before) if before else None]
    found = {name: receipts.read_receipt(run, name) for name in stages}
    done = {name: receipt for name, receipt in found.items() if receipt is not None}
    outputs = {name: receipts.output_reasons(run, receipt) for name, receipt in done.items()}
    checked = _Checked(run, stages, done, outputs)
    checks: tuple[Callable[[_Checked], Iterator[str]], ...] = (
        _receipts,
        _lost,
        _chain,
        _outputs,
        _items,
        _references,
        _fates,
        _durations,
    )
    return [problem for check in checks for problem in check(checked)]


def _receipts(checked: _Checked) -> Iterator[str]:
    if not checked.done:
        yield f"run {checked.run.root.name}: no stage has a receipt"
    for name, receipt in checked.done.items():
        counts = receipt["counts"]
        fates = counts["observed"] + counts["failed"] + counts["not_applicable"]
        if counts["planned"] != fates:
            yield f"{name}: {counts['planned']} planned but {fates} have a fate"


def _lost(checked: _Checked) -> Iterator[str]:
    """Receipts that are damaged, or gone though a table, a page or a later stage tells of them."""
    run = checked.run
    read = {
        name.removeprefix(receipts.RECEIPT)
        for receipt in checked.done.values()
        for name, sha in receipt["inputs"].items()
        if name.startswith(receipts.RECEIPT) and sha is not None
    }
    for name in (stage for stage in checked.stages if stage not in checked.done):
        path = receipts.receipt_path(run, name)
        made = [run.table_path(table) for table in STAGES[name].writes]
        made.append(run.root / "notebooks" / f"{name}.ipynb")
        if path.exists():
            rule = "is not what was written"
        elif name in read or any(file.exists() for file in made):
            rule = "is missing: it did not end, or its receipt is lost"
        else:
            continue
        yield f"{name}: {run.relative(path)} {rule}; `aegis run` makes it anew"


def _chain(checked: _Checked) -> Iterator[str]:
    """Every stage must have read what the owner of the table last wrote."""
    done = checked.done.items()
    written = {table: (name, sha) for name, r in done for table, sha in r["tables"].items()}
    for name, receipt in done:
        for table, sha in receipt["inputs"].items():
            owner, now = written.get(table, ("", None))
            if sha is not None and now is not None and sha != now:
                yield f"{name}: read a {table} that {owner} has since written anew"


def _outputs(checked: _Checked) -> Iterator[str]:
    for name, reasons in checked.outputs.items():
        if reasons:
            more = f" and {len(reasons) - 3} more" if len(reasons) > 3 else ""
            yield f"{name}: {'; '.join(reasons[:3])}{more}; `aegis run` makes them anew"


def _items(checked: _Checked) -> Iterator[str]:
    """Saved items that a later run could not use."""
    for name in checked.stages:
        damaged = damaged_records(checked.run, name)
        if damaged:
            listed = ", ".join(checked.run.relative(path) for path in damaged[:3])
            yield (
                f"{name}: {len(damaged)} saved items are not what was written, e.g. {listed};"
                " `aegis run` drops them"
            )


def _references(checked: _Checked) -> Iterator[str]:
    """No table may speak of a recording that was never scheduled."""
    recordings = checked.table("recordings")
    if recordings is None:
        return
    known = set(recordings["recording_id"])
    for name, schema in SCHEMAS.items():
        table = checked.table(name) if "recording_id" in schema.columns else None
        strange = set() if table is None else set(table["recording_id"]) - known
        if strange:
            yield f"{name}: {len(strange)} unknown recordings, e.g. {sorted(strange)[:3]}"


def _fates(checked: _Checked) -> Iterator[str]:
    for name, key, source, column in _FATES:
        table, units = checked.table(name), checked.table(source)
        if table is None or units is None:
            continue
        # A unit that failed or was excluded has its fate already.
        alive = units[units["status"] == "ok"] if "status" in units.columns else units
        expected = set(alive[column])
        lost = expected - set(table[key])
        if lost:
            yield f"{name}: {len(lost)} of {len(expected)} {source} have no fate" + _some(lost)


def _some(ids: set[str]) -> str:
    return f", e.g. {', '.join(sorted(map(str, ids))[:3])}"


def _frames(path: Path) -> int | None:
    """Samples of a sound file, or None when there is none that can be read."""
    import soundfile as sf

    try:
        return int(sf.info(path).frames)
    except sf.LibsndfileError:
        return None


def _durations(checked: _Checked) -> Iterator[str]:
    """Sample counts in tables must be those of the files."""
    run, recordings = checked.run, checked.table("recordings")
    for row in [] if recordings is None else recordings.itertuples():
        if row.status != "ok":
            continue
        frames = _frames(run.original_path(row.recording_id))
        if frames is None:
            yield f"recordings: {row.recording_id} has no file that can be read"
        elif frames != row.n_samples:
            yield f"recordings: {row.recording_id} has {frames} samples on disk"
        elif abs(row.duration_s - row.n_samples / SAMPLE_RATE_HZ) > 1.5 / SAMPLE_RATE_HZ:
            yield f"recordings: {row.recording_id}: duration_s and n_samples disagree"
    for name in ("converted", "rendered", "reconstructions"):
        table = checked.table(name)
        if table is None:
            continue
        rows = table[(table["status"] == "ok") & table["file"].notna()]
        wrong = {
            file
            for file, n_samples in zip(rows["file"], rows["n_samples"], strict=True)
            if _frames(run.root / file) != n_samples
        }
        if wrong:
            yield f"{name}: {len(wrong)} files are missing or have another length" + _some(wrong)
