"""The study's wiring and how it is run.

:data:`STAGES` is the only place that says which notebook reads and writes which
table. A name with ``?`` may be absent; ``receipts`` stands for the receipts of all stages
above it. :func:`run_study` executes, in that order,
the notebooks whose receipts no longer hold; :func:`status` says why. A stage is
done by its own receipt only: papermill ends well also when a kernel calls
``sys.exit(0)``.
"""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import filelock

from aegis import receipts
from aegis.audio import write_bytes
from aegis.cluster import damaged_records, local_cluster, stop_when_full
from aegis.errors import ParamError, RunLocked, TableError
from aegis.execution import execute_notebook
from aegis.monitor import Monitor
from aegis.params import StudyParams, Value, find_extensions, read_declarations, read_params
from aegis.tables import PROJECT, Run, open_run


@dataclass(frozen=True)
class Wiring:
    """One notebook: the tables that it reads and the tables that it alone writes."""

    name: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    optional: frozenset[str] = frozenset()


def _wiring(name: str, reads: str, writes: str) -> Wiring:
    names = [text.split() for text in (reads, writes)]
    optional = frozenset(n.rstrip("?") for side in names for n in side if n.endswith("?"))
    read, written = (tuple(n.rstrip("?") for n in side) for side in names)
    return Wiring(name, read, written, optional)


def _with_receipts(wirings: Sequence[Wiring]) -> dict[str, Wiring]:
    """Stages by name, where ``receipts`` is replaced by those of all stages before."""
    stages: dict[str, Wiring] = {}
    for wiring in wirings:
        before = tuple(receipts.RECEIPT + name for name in stages)
        reads = [(before if name == "receipts" else (name,)) for name in wiring.reads]
        stages[wiring.name] = replace(wiring, reads=tuple(n for names in reads for n in names))
    return stages


_GOLD = "gold_turns? gold_words? gold_speech? gold_mentions? gold_facts?"
_GOLD_PLANS = "gold_actions? gold_chronology?"

# fmt: off
STAGES: dict[str, Wiring] = _with_receipts([
    _wiring("00_corpora", "", f"recordings file_map {_GOLD} {_GOLD_PLANS}"),
    _wiring("01_transcribe", f"recordings file_map {_GOLD}", "words turns turn_times screening diarization"),
    _wiring("02_profiles", f"recordings turns screening {_GOLD}",
            "profiles profile_embeddings voices voice_embeddings backend_distances"),
    _wiring("03_assign_voices", "recordings profiles profile_embeddings voices voice_embeddings backend_distances",
            "assignments assignment_summary"),
    _wiring("04_convert", "recordings turns profiles profile_embeddings voices voice_embeddings assignments",
            "converted converted_more?"),
    _wiring("05_plan_edits", f"recordings words turns screening {_GOLD}",
            "mentions substitutions edits regions plan_summary plans"),
    _wiring("06_render_edits", "recordings words turns voices assignments converted mentions edits regions",
            "rendered"),
    _wiring("07_stitch", "recordings turns words converted mentions edits regions plans rendered",
            "reconstructions timeline"),
    _wiring("08_extract_facts", f"recordings turns screening {_GOLD} {_GOLD_PLANS}",
            "facts actions chronology inventory_summary"),
    _wiring("09_retranscribe",
            "recordings words turns screening converted mentions substitutions edits regions rendered reconstructions"
            f" timeline {_GOLD}",
            "transcripts turn_transcripts lexical_matches transcript_scores"),
    _wiring("10_judge_facts",
            "recordings turns facts actions chronology inventory_summary transcripts turn_transcripts reconstructions"
            f" {_GOLD}",
            "fact_verdicts endpoint_verdicts verdict_evidence anchors"),
    _wiring("11_judge_edits",
            "recordings turns edits regions rendered reconstructions timeline transcripts turn_transcripts"
            " lexical_matches", "edit_verdicts edit_evidence"),
    _wiring("12_linkage",
            "recordings turns profiles profile_embeddings voices voice_embeddings assignments converted edits regions"
            " rendered reconstructions timeline", "trials eligibility linkage"),
    _wiring("I1_repeat",
            "recordings screening turns edits rendered reconstructions timeline facts actions chronology transcripts"
            f" turn_transcripts fact_verdicts endpoint_verdicts {_GOLD}", "noise_floor"),
    _wiring("13_contrasts",
            "recordings words turns turn_times screening diarization profiles voices backend_distances assignments"
            " assignment_summary converted mentions substitutions edits regions plan_summary rendered reconstructions"
            " timeline transcripts turn_transcripts lexical_matches transcript_scores trials eligibility linkage"
            f" {_GOLD} facts? actions? chronology? inventory_summary? fact_verdicts? endpoint_verdicts? edit_verdicts? noise_floor?",
            "contrasts claims"),
    _wiring("14_scorecard",
            "recordings words turns screening diarization profiles assignments mentions edits lexical_matches"
            f" transcripts transcript_scores eligibility trials linkage claims {_GOLD}",
            "scorecard"),
    _wiring("D_thresholds",
            "recordings profiles profile_embeddings voices voice_embeddings assignments lexical_matches"
            " transcript_scores fact_verdicts endpoint_verdicts linkage noise_floor?",
            "assignment_grid operating_points operating_effects"),
    _wiring("E_conditions",
            "recordings turns words converted assignments voices edits regions reconstructions", "redactions"),
    _wiring("F_units", "recordings profiles voices turns edits regions trials claims", ""),
    _wiring("M_frontends",
            "recordings words turns screening diarization edits rendered lexical_matches transcript_scores"
            f" fact_verdicts endpoint_verdicts {_GOLD}", "frontend_recordings frontend_measures"),
    _wiring("N_stressors",
            f"recordings turns facts actions chronology fact_verdicts endpoint_verdicts {_GOLD}"
            f" {_GOLD_PLANS} noise_floor?", "stressed stressor_measures stressor_effects"),
    _wiring("O_listening_panel", "recordings rendered reconstructions", "panel_ratings"),
    _wiring("G_second_judge",
            "recordings turns facts actions chronology inventory_summary turn_transcripts fact_verdicts edit_verdicts",
            "qualification second_verdicts"),
    _wiring("H_asq_phi", "", "asq_queries asq_scores asq_types asq_residue"),
    _wiring("I_outcomes",
            "recordings turns edits regions rendered reconstructions facts inventory_summary transcripts"
            " turn_transcripts fact_verdicts endpoint_verdicts edit_verdicts contrasts noise_floor?", ""),
    _wiring("J_notes_acoustics",
            "recordings turns facts actions chronology turn_transcripts transcript_scores reconstructions timeline",
            "notes note_verdicts acoustics"),
    _wiring("T_prompts", "inventory_summary", ""),
    _wiring("A_risks", "recordings screening plan_summary reconstructions claims", ""),
    _wiring("B_corpora", "recordings voices", ""),
    _wiring("K_linkage", "eligibility trials linkage contrasts", ""),
    _wiring("L_languages",
            "recordings screening profiles plan_summary lexical_matches transcript_scores inventory_summary"
            " fact_verdicts", ""),
    _wiring("P_pairings", "recordings lexical_matches fact_verdicts contrasts claims noise_floor?", ""),
    _wiring("S_specifications", "qualification contrasts", ""),
    _wiring("U_leakage_dimensions",
            "recordings turns profiles profile_embeddings voices voice_embeddings assignments timeline reconstructions"
            " gold_turns?",
            "leak_people leak_segments leak_conditions leak_rates leak_attacks leak_soft leak_subgroups leak_search"
            " leak_structure leak_utility leak_anonymity"),
    _wiring("V_low_fpr", "recordings leak_people leak_segments", "leak_users leak_values"),
    _wiring("W_published_arithmetic", "claims contrasts", ""),
    _wiring("C_models", "recordings claims receipts", ""),
    _wiring("Q_failures",
            "recordings screening profiles voices assignments converted substitutions edits regions rendered"
            " reconstructions transcripts lexical_matches transcript_scores eligibility linkage contrasts claims receipts", ""),
    _wiring("R_receipts", "recordings screening converted rendered reconstructions transcripts linkage claims receipts", ""),
])
# fmt: on


def notebooks_folder() -> Path:
    """``notebooks/`` of the project, or ``$AEGIS_NOTEBOOKS``."""
    return Path(os.environ.get("AEGIS_NOTEBOOKS", PROJECT / "notebooks"))


def find_notebooks(folder: Path | None = None) -> dict[str, Path]:
    """The wired notebooks that exist, in stage order."""
    folder = folder or notebooks_folder()
    places = {path.stem: path for path in [*folder.glob("appendix/*.py"), *folder.glob("*.py")]}
    return {name: places[name] for name in STAGES if name in places}


def load_study(path: Path, overrides: Sequence[str] = ()) -> StudyParams:
    """Read a profile and check it against the notebooks that exist."""
    return read_params(path, find_notebooks(), overrides)


def _study_file(run: Run) -> Path:
    return run.secret / "study.json"


def study_of(run: Run) -> StudyParams:
    """The profile and overrides with which a run was last started.

    Raises
    ------
    ParamError
        It was never started by `aegis run`, or its profile file is gone or wrong.
    """
    try:
        saved = json.loads(_study_file(run).read_text("utf-8"))
        path, overrides = Path(saved["params"]), list(saved["overrides"])
    except (FileNotFoundError, ValueError, KeyError, TypeError) as error:
        raise ParamError(f"run {run.root.name!r} was not started by `aegis run`") from error
    return load_study(path, overrides)


def newest_run() -> str:
    """The run in which a stage ended last.

    Raises
    ------
    TableError
        There is no run.
    """
    base = runs_folder()
    ended = {
        path.parent.parent.name: path.stat().st_mtime for path in base.glob("*/receipts/*.json")
    }
    if not ended:
        raise TableError(f"no run in {base}; start one with `aegis run params/demo.yaml`")
    return max(ended, key=lambda name: ended[name])


def runs_folder() -> Path:
    """``runs/`` of the project, or ``$AEGIS_RUNS``."""
    return Path(os.environ.get("AEGIS_RUNS", PROJECT / "runs"))


def stage_order(params: StudyParams, notebooks: Mapping[str, Path]) -> list[str]:
    """The profile's stages that exist, in the order of :data:`STAGES`."""
    return [name for name in notebooks if name in params.notebooks]


def find_stage(text: str, names: Sequence[str]) -> str:
    """A stage by its name or by an unambiguous beginning of it (``03``).

    Raises
    ------
    ParamError
        None or several fit.
    """
    fits = [name for name in names if name == text] or [n for n in names if n.startswith(text)]
    if len(fits) != 1:
        near = difflib.get_close_matches(text, names)
        hint = f", did you mean {near[0]!r}?" if near else f"; known: {', '.join(names)}"
        raise ParamError(f"{text}: {len(fits)} stages have that name{hint}")
    return fits[0]


def effective_parameters(
    params: StudyParams, stage: str, notebook: Path, run: Run
) -> dict[str, Value]:
    """What the notebook will see: its defaults, the profile's values, the run's name."""
    values = {name: item.default for name, item in read_declarations(notebook).items()}
    values |= dict(params.values.get(stage, {}))
    if "run_name" in values:
        values["run_name"] = run.root.name
    return values


def status(params: StudyParams, run: Run) -> dict[str, list[str]]:
    """Stage -> why it must run (empty: up to date).

    A stage that is up to date under a profile that extends this one stays: what
    experiments computed on top of a study is not undone by the study itself. An override
    holds under both.
    """
    notebooks = find_notebooks()
    return {
        name: _stale_reasons(params, name, notebooks[name], run)
        for name in stage_order(params, notebooks)
    }


def _stale_reasons(params: StudyParams, name: str, notebook: Path, run: Run) -> list[str]:
    def reasons(values: Mapping[str, Value]) -> list[str]:
        return receipts.stale_reasons(run, name, notebook, values, STAGES[name].reads)

    values = effective_parameters(params, name, notebook, run)
    found = reasons(values)
    if not any(reason.startswith("parameter ") for reason in found):
        return found
    for path in find_extensions(params.path):
        extended = effective_parameters(load_study(path, params.overrides), name, notebook, run)
        if extended != values and not reasons(extended):
            return []
    return found


@dataclass(frozen=True)
class StageOutcome:
    """One line of the summary; ``executed`` is False where the receipt still held."""

    stage: str
    executed: bool
    wall_s: float
    counts: dict[str, int]
    reasons: tuple[str, ...]


def run_study(
    params: StudyParams,
    run_name: str | None = None,
    only: str | None = None,
    start: str | None = None,
    force: bool = False,
    scheduler: str | None = None,
    workers: int | None = None,
    until: str | None = None,
    quiet: bool = False,
) -> list[StageOutcome]:
    """Execute the stages of a profile that are not up to date, in order.

    Parameters
    ----------
    only, start, until
        One stage; the first and the last stage to look at. Stages before the first are
        taken as they are.
    force
        Execute even what is up to date (finished items are still reused).
    scheduler
        Address of a running Dask scheduler; default: a local cluster of ``workers``.
    quiet
        Nothing is said on the terminal.

    Raises
    ------
    StageFailed
        A notebook failed, its kernel died, or it ended without its receipt.
    RunLocked
        Another process works on this run.
    """
    notebooks = find_notebooks()
    order = _selection(stage_order(params, notebooks), only, start, until)
    run = open_run(run_name or params.run_name, create=True)
    outcomes = []
    saved = json.dumps({"params": str(params.path.resolve()), "overrides": list(params.overrides)})
    with _full_disk_said(run), locked(run), Monitor(run, quiet) as monitor, ExitStack() as stack:
        write_bytes(_study_file(run), saved.encode())
        _drop_damaged(run, monitor)
        address = scheduler
        for name in order:
            values = effective_parameters(params, name, notebooks[name], run)
            reasons = _stale_reasons(params, name, notebooks[name], run)
            if not reasons and not force:
                monitor.say(f"{name}: up to date")
                outcomes.append(_outcome(run, name, False, ()))
                continue
            if address is None:
                cluster = local_cluster(workers or n_cores(), run.secret / "workers.log")
                address = stack.enter_context(cluster)
            monitor.begin(name, reasons)
            execute_notebook(run, name, notebooks[name], values, address, monitor)
            outcomes.append(_outcome(run, name, True, tuple(reasons)))
            monitor.end(outcomes[-1].wall_s, outcomes[-1].counts)
    return outcomes


def _drop_damaged(run: Run, monitor: Monitor) -> None:
    """Remove saved items that no stage could use."""
    for name in STAGES:
        damaged = damaged_records(run, name)
        for path in damaged:
            path.unlink()
        if damaged:
            monitor.say(f"{name}: {len(damaged)} saved items are not what was written: dropped")


def _selection(
    order: list[str], only: str | None, start: str | None, until: str | None
) -> list[str]:
    if only is not None:
        return [find_stage(only, order)]
    first = 0 if start is None else order.index(find_stage(start, order))
    last = len(order) if until is None else order.index(find_stage(until, order)) + 1
    return order[first:last]


def n_cores() -> int:
    """Cores that this process may use."""
    return (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )


def _outcome(run: Run, name: str, executed: bool, reasons: tuple[str, ...]) -> StageOutcome:
    receipt = receipts.read_receipt(run, name) or {}
    wall_s = float(receipt.get("executed", {}).get("wall_s", 0.0)) if executed else 0.0
    return StageOutcome(name, executed, wall_s, dict(receipt.get("counts", {})), reasons)


@contextmanager
def locked(run: Run) -> Iterator[None]:
    """Hold the run folder; kernels started below know that it is held for them."""
    path = run.root / ".lock"
    lock = filelock.FileLock(path)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout as error:
        raise RunLocked(f"run {run.root.name!r}: another process is working on it") from error
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _full_disk_said(run: Run) -> Iterator[None]:
    """Say what to do about a disk that is full or read-only, whatever met it."""
    try:
        yield
    except OSError as error:
        stop_when_full(error, run.root)
        raise
