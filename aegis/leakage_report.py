"""``aegis leakage``: both leakage studies on a folder that another system made.

Unit: a recording of META.csv in its original and anonymised versions. All tables of
:mod:`aegis.leakage_tables` are written as CSV beside ``report.html``, which loads nothing
from elsewhere. Finished embeddings and transcripts lie under ``work/`` and are reused.
Missing and unlisted files stand in ``files.csv`` and are counted on the first lines of the
report.

Functions: :func:`run_report`, :func:`build_conditions`, :func:`given_segments`,
:func:`score_table`, :func:`read_outside_scores`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from aegis import dimensions, engines, folders
from aegis.audio import write_bytes
from aegis.errors import EngineUnavailable, ManifestError, ParamError
from aegis.leakage_page import build_page
from aegis.leakage_tables import (
    Settings,
    component_correlations,
    measure_all,
    summarise_systems,
)
from aegis.nearest import faiss_search
from aegis.pieces import LENGTHS_S, RATES_HZ, SKIP_S, condition_name, join_pieces
from aegis.segments import OPTIONAL, ORIGINAL, Segments
from aegis.stats import Floats
from aegis.tables import PROJECT
from aegis.trials import Trials
from aegis.utility import summarise_utility
from aegis.work.sounds import embed_file, transcribe_file

Result = TypeVar("Result")
Tell = Callable[[str], None]
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Options:
    """What was asked for; see ``aegis leakage --help``."""

    out: Path
    original: Path | None = None
    anonymised: Path | None = None
    anonymised2: Path | None = None
    meta: Path | None = None
    embeddings: Path | None = None
    trials: Path | None = None
    name: str = "anonymised"
    backends: tuple[str, ...] = ("ge2e", "dvector")
    asr: tuple[str, ...] = ("whisper-base", "whisper-tiny.en")
    rates_hz: tuple[int, ...] = RATES_HZ
    lengths_s: tuple[int, ...] = LENGTHS_S
    workers: int = 1
    finetune: str = ""
    settings: Settings = field(default_factory=Settings)


def run_report(options: Options, tell: Tell = lambda _: None) -> Path:
    """Measure, write the tables and the page; returns the page's path.

    Raises
    ------
    ParamError
        Neither folders nor embeddings nor a score file were given.
    ManifestError
        An input cannot be used, or no original has an anonymised version.
    """
    options.out.mkdir(parents=True, exist_ok=True)
    tables: dict[str, pd.DataFrame] = {}
    if options.trials is not None:
        tables["score_file"] = score_table(
            folders.read_score_file(options.trials),
            options.settings.seed,
            options.settings.n_draws,
        )
    elif options.embeddings is None and (options.original is None or options.anonymised is None):
        raise ParamError("give --original and --anonymised, or --embeddings, or --trials")
    if options.embeddings is not None or options.anonymised is not None:
        tables |= _measure(options, tell)
    for name, table in tables.items():
        write_bytes(options.out / f"{name}.csv", table.to_csv(index=False).encode())
    page = options.out / "report.html"
    write_bytes(page, build_page(tables, options.name).encode())
    return page


def _measure(options: Options, tell: Tell) -> dict[str, pd.DataFrame]:
    meta = folders.read_meta(options.meta, options.original)
    if options.embeddings is not None:
        fates, vectors = folders.read_embeddings(options.embeddings, meta)
        conditions = {"given embeddings": given_segments(fates, vectors, meta, options.name)}
        files = _folders(options)
        if files:
            sounds = folders.match_files(meta, files)
            fates = pd.concat(
                [fates.assign(file=None), sounds.assign(set="sound " + sounds["set"])]
            )
    else:
        fates = sounds = folders.match_files(meta, _folders(options))
        fates, conditions = build_conditions(fates, meta, options, tell)
    tables = {"files": fates.drop(columns=["file"], errors="ignore")}
    if not any(segments.systems for segments in conditions.values()):
        write_bytes(options.out / "files.csv", tables["files"].to_csv(index=False).encode())
        raise ManifestError("no anonymised recording could be used; files.csv says why")
    tables |= measure_all(conditions, options.settings, faiss_search, tell=tell)
    if options.finetune:
        tables["attacks"] = _with_adapted(tables["attacks"], conditions, fates, options, tell)
    tables["mean_rates"] = dimensions.mean_rates(tables["rates"], options.settings.seed)
    tables["component_correlations"] = component_correlations(tables["soft"])
    tables["systems"] = summarise_systems(tables).rename_axis("system").reset_index()
    if _folders(options) and meta["text"].notna().any():
        tables["utility"] = _utility(sounds, meta, options, tell)
    return tables


def _with_adapted(
    attacks: pd.DataFrame,
    conditions: Mapping[str, Segments],
    fates: pd.DataFrame,
    options: Options,
    tell: Tell,
) -> pd.DataFrame:
    """The attacks with those of a fine-tuned encoder on whole recordings."""
    from aegis.leakage_adapted import attack_adapted

    whole = condition_name(options.rates_hz[0], 0)
    if whole not in conditions:
        raise ParamError("--finetune needs folders, and 0 (whole files) among --lengths-s")
    numbers = {"original": 0, "anonymised": 1, "anonymised2": 2}
    ok = fates[fates["status"] == "ok"]
    files = {
        (path, ORIGINAL if kind == "original" else options.name, numbers[kind]): Path(file)
        for kind, path, file in zip(ok["set"], ok["path"], ok["file"], strict=True)
    }
    own = conditions[whole]
    known = [key in files for key in zip(
        own.table["recording"], own.table["system"], own.table["pseudo_profile"], strict=True
    )]  # fmt: skip
    adapted = attack_adapted(
        own.where(np.array(known)), files, options.finetune, options.settings, whole, tell=tell
    )
    return pd.concat([attacks, adapted], ignore_index=True)


def _folders(options: Options) -> dict[str, Path]:
    given = zip(
        folders.SETS, (options.original, options.anonymised, options.anonymised2), strict=True
    )
    return {name: folder for name, folder in given if folder is not None}


# --- from files to segments -----------------------------------------------------------------


def build_conditions(
    fates: pd.DataFrame, meta: pd.DataFrame, options: Options, tell: Tell
) -> tuple[pd.DataFrame, dict[str, Segments]]:
    """Segments by condition; files that cannot be embedded become ``failed`` in ``fates``."""
    usable = fates[fates["status"] == "ok"].reset_index()
    jobs = [
        (rate, backend, Path(file))
        for rate in options.rates_hz for backend in options.backends for file in usable["file"]
    ]  # fmt: skip
    for backend in options.backends:
        engines.load("encoder", backend)  # an absent engine ends the run before any work
    work = partial(_embed_job, kept=options.out / "work" / "embeddings", skip_s=SKIP_S)
    results = iter(_each(work, jobs, options.workers, tell, "embedded"))
    found = {
        (rate, backend): [next(results) for _ in range(len(usable))]
        for rate in options.rates_hz for backend in options.backends
    }  # fmt: skip
    fates = fates.copy()
    for row, index in enumerate(usable["index"]):
        reasons = [held[row]["reason"] for held in found.values() if "reason" in held[row]]
        if reasons:
            fates.loc[index, ["status", "reason"]] = ["failed", reasons[0]]
    known = meta.set_index("path")
    conditions = {}
    for rate in options.rates_hz:
        for length in options.lengths_s:
            held = {backend: found[rate, backend] for backend in options.backends}
            made = _segments(usable, held, known, length, options)
            if made is not None:
                conditions[condition_name(rate, length)] = made
    return fates, conditions


def _embed_job(job: tuple[int, str, Path], kept: Path, skip_s: float) -> dict[str, Any]:
    rate, backend, path = job
    return embed_file(path, kept, backend, rate, skip_s)


def _segments(
    usable: pd.DataFrame,
    held: Mapping[str, list[dict[str, Any]]],
    known: pd.DataFrame,
    length_s: int,
    options: Options,
) -> Segments | None:
    rows: Rows = []
    vectors: dict[str, list[Floats]] = {backend: [] for backend in held}
    for index, file in enumerate(usable.to_dict("records")):
        own = {backend: results[index] for backend, results in held.items()}
        if any("reason" in result for result in own.values()):
            continue
        joined = {
            backend: join_pieces(result["vectors"], result["seconds"], length_s)
            for backend, result in own.items()
        }
        number = min(len(part) for part in joined.values())
        described = _describe(file, known, options.name)
        rows += [
            {**described, "source": f"{file['path']}#{i}", "recording": file["path"]}
            for i in range(number)
        ]
        for backend, part in joined.items():
            vectors[backend].append(part[:number])
    if not rows:
        return None
    return Segments.build(
        pd.DataFrame(rows), {name: np.concatenate(parts) for name, parts in vectors.items()}
    )


def _describe(file: Mapping[str, Any], known: pd.DataFrame, name: str) -> dict[str, Any]:
    row = known.loc[file["path"]]
    profile = {"original": 0, "anonymised": _profile(row["pseudo_profile"]), "anonymised2": 2}
    return {
        "system": ORIGINAL if file["set"] == "original" else name,
        "pseudo_profile": profile[file["set"]], "speaker": str(row["speaker"]),
        **{column: row[column] for column in OPTIONAL},
    }  # fmt: skip


def _profile(value: Any) -> int:
    """The pseudo-profile of META, 1 where it says none.

    Raises
    ------
    ManifestError
        It is no whole number from 1.
    """
    if value is None:
        return 1
    try:
        number = int(float(value))
    except ValueError:
        number = 0
    if number < 1:
        raise ManifestError(f"META: pseudo_profile {value!r}; expected 1, 2, ...")
    return number


def given_segments(
    fates: pd.DataFrame, vectors: Mapping[str, Floats], meta: pd.DataFrame, name: str
) -> Segments:
    """Segments of embeddings that somebody else made; rows that META lacks are left out."""
    kept = np.flatnonzero((fates["status"] == "ok").to_numpy())
    known = meta.set_index("path")
    rows = [
        {**_describe(row, known, name), "source": row["path"]}
        for row in fates.iloc[kept].to_dict("records")
    ]
    if not rows:
        raise ManifestError("no embedding belongs to a path of META")
    return Segments.build(pd.DataFrame(rows), {n: v[kept] for n, v in vectors.items()})


def _each(
    work: Callable[[Any], Result], jobs: Sequence[Any], workers: int, tell: Tell, verb: str
) -> Iterable[Result]:
    """Results in order, told about every hundredth part."""
    step = max(1, len(jobs) // 100)
    if workers > 1:
        with ProcessPoolExecutor(workers) as pool:
            yield from _told(pool.map(work, jobs, chunksize=4), len(jobs), step, tell, verb)
    else:
        yield from _told(map(work, jobs), len(jobs), step, tell, verb)


def _told(results: Iterable[Result], n: int, step: int, tell: Tell, verb: str) -> Iterable[Result]:
    reused = 0
    for done, result in enumerate(results, start=1):
        reused += bool(isinstance(result, dict) and result.get("reused"))
        if done % step == 0 or done == n:
            tell(f"{verb} {done} of {n} ({reused} kept from an earlier run)")
        yield result


def _utility(
    fates: pd.DataFrame, meta: pd.DataFrame, options: Options, tell: Tell
) -> pd.DataFrame:
    known = meta.set_index("path")
    usable = fates[(fates["status"] == "ok") & fates["path"].map(known["text"]).notna()]
    heard: Rows = []
    for asr in options.asr:
        try:
            engines.load("transcriber", asr)
        except EngineUnavailable as error:
            tell(f"{asr}: {error}")
            continue
        english = asr.endswith(".en")
        rows = usable.to_dict("records")
        rows = [r for r in rows if not english or known.loc[r["path"], "language"] in (None, "en")]
        jobs = [(Path(r["file"]), asr, known.loc[r["path"], "language"]) for r in rows]
        work = partial(_hear_job, kept=options.out / "work" / "transcripts")
        results = _each(work, jobs, options.workers, tell, f"transcribed by {asr}")
        for row, result in zip(rows, results, strict=True):
            described = _describe(row, known, options.name)
            heard.append({
                **described, "asr": asr, "reference": described["text"],
                "language": described["language"], "text": result.get("text"),
            })  # fmt: skip
    columns = ["system", "pseudo_profile", "asr", "test_set", "language", "reference", "text"]
    table = pd.DataFrame(heard, columns=columns)
    return summarise_utility(table, engines.load("sentence_encoder", "ngrams").encode)


def _hear_job(job: tuple[Path, str, str | None], kept: Path) -> dict[str, Any]:
    path, asr, language = job
    return transcribe_file(path, kept, asr, language or ("en" if asr.endswith(".en") else None))


# --- score files -----------------------------------------------------------------


def score_table(scores: pd.DataFrame, seed: int, n_draws: int) -> pd.DataFrame:
    """Error rates and costs of a score file, one row a system, trial type and backend.

    Intervals resample enrolled speakers; without a column ``enrol`` there are none.
    """
    rows: Rows = []
    for names, own in scores.groupby(["system", "trial_type", "backend"], sort=True):
        enrol = own["enrol"].fillna("unknown").to_numpy(object)
        test = own["test"].fillna("unknown").to_numpy(object)
        trials = Trials(
            enrol, test, enrol, own["target"].to_numpy(bool), own["score"].to_numpy(float),
            tuple(sorted(set(enrol))),
        )  # fmt: skip
        labels = dict(zip(["system", "trial_type", "backend"], names, strict=True))
        measured = dimensions.measure_trials(trials, seed, n_draws, costs=True)
        rows.append({**labels, **measured})
    return pd.DataFrame(rows)


def read_outside_scores(path: str, seed: int, n_draws: int) -> pd.DataFrame:
    """The table of a score file, without rows where no path is given."""
    if not path:
        return pd.DataFrame(columns=["system", "trial_type", "backend", "eer", "status"])
    return score_table(folders.read_score_file(PROJECT / path), seed, n_draws)
