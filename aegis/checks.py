"""Checks of a finished run: population, durations, hashes, failures.

Every scheduled recording, turn and edit must have exactly one fate in every table
that is about it: ok, failed, excluded or not applicable, never nothing and never two.

Function: :func:`verify_run`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pandas as pd

from aegis import receipts
from aegis.audio import SAMPLE_RATE_HZ
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


def verify_run(run: Run) -> list[str]:
    """What is wrong with a run, one line each; empty when all checks hold."""
    checks: tuple[Callable[[Run], Iterator[str]], ...] = (
        _receipts,
        _chain,
        _outputs,
        _references,
        _fates,
        _durations,
    )
    return [problem for check in checks for problem in check(run)]


def _done(run: Run) -> Iterator[tuple[str, receipts.Receipt]]:
    for name in STAGES:
        receipt = receipts.read_receipt(run, name)
        if receipt is not None:
            yield name, receipt


def _receipts(run: Run) -> Iterator[str]:
    done = dict(_done(run))
    if not done:
        yield f"run {run.root.name}: no stage has a receipt"
    for name, receipt in done.items():
        counts = receipt["counts"]
        fates = counts["observed"] + counts["failed"] + counts["not_applicable"]
        if counts["planned"] != fates:
            yield f"{name}: {counts['planned']} planned but {fates} have a fate"


def _chain(run: Run) -> Iterator[str]:
    """Every stage must have read what the owner of the table last wrote."""
    done = dict(_done(run))
    written = {
        table: (name, sha) for name, r in done.items() for table, sha in r["tables"].items()
    }
    for name, receipt in done.items():
        for table, sha in receipt["inputs"].items():
            owner, now = written.get(table, ("", None))
            if sha is not None and now is not None and sha != now:
                yield f"{name}: read a {table} that {owner} has since written anew"


def _outputs(run: Run) -> Iterator[str]:
    for name, receipt in _done(run):
        reasons = receipts.output_reasons(run, receipt)
        if reasons:
            more = f" and {len(reasons) - 3} more" if len(reasons) > 3 else ""
            yield f"{name}: {'; '.join(reasons[:3])}{more}"


def _table(run: Run, name: str) -> pd.DataFrame | None:
    return run.read(name) if run.has(name) else None


def _references(run: Run) -> Iterator[str]:
    """No table may speak of a recording that was never scheduled."""
    recordings = _table(run, "recordings")
    if recordings is None:
        return
    known = set(recordings["recording_id"])
    for name, schema in SCHEMAS.items():
        table = _table(run, name) if "recording_id" in schema.columns else None
        strange = set() if table is None else set(table["recording_id"]) - known
        if strange:
            yield f"{name}: {len(strange)} unknown recordings, e.g. {sorted(strange)[:3]}"


def _fates(run: Run) -> Iterator[str]:
    for name, key, source, column in _FATES:
        table, units = _table(run, name), _table(run, source)
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


def _durations(run: Run) -> Iterator[str]:
    """Sample counts in tables must be those of the files."""
    import soundfile as sf

    recordings = _table(run, "recordings")
    for row in [] if recordings is None else recordings.itertuples():
        if row.status != "ok":
            continue
        path = run.original_path(row.recording_id)
        if not path.exists():
            yield f"recordings: {row.recording_id} has no file"
        elif sf.info(path).frames != row.n_samples:
            yield f"recordings: {row.recording_id} has {sf.info(path).frames} samples on disk"
        elif abs(row.duration_s - row.n_samples / SAMPLE_RATE_HZ) > 1.5 / SAMPLE_RATE_HZ:
            yield f"recordings: {row.recording_id}: duration_s and n_samples disagree"
    for name in ("converted", "rendered", "reconstructions"):
        table = _table(run, name)
        if table is None:
            continue
        rows = table[(table["status"] == "ok") & table["file"].notna()]
        wrong = {
            file
            for file, n_samples in zip(rows["file"], rows["n_samples"], strict=True)
            if not (run.root / file).exists() or sf.info(run.root / file).frames != n_samples
        }
        if wrong:
            yield f"{name}: {len(wrong)} files are missing or have another length" + _some(wrong)
