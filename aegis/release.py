"""A finished run as an archive that can be handed on: evidence, and sound where allowed.

Unit: one release of one run. Evidence is receipts, public tables, cards, a datasheet and
``release.json`` (engines with revisions, parameters, seeds, coverage, residual risk, hashes of
all members); it holds no sound. De-identified sound is added on request, where the card of
every data set says ``release_audio: true``.

A release is refused while something stands against it (:class:`Blocker`); a reason given by a
person lifts that and is written into the release. What no reason lifts: a run that does not
verify, sound that is not the one of its table, and members in which :mod:`aegis.privacy` finds
an original. The archive is deterministic: the same run gives the same bytes.

Functions: :func:`find_blockers`, :func:`coverage`, :func:`residual_risk`,
:func:`build_release`.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import pandas as pd

from aegis import datasheet, privacy, receipts
from aegis.audio import write_bytes
from aegis.checks import verify_run
from aegis.errors import ReleaseRefused
from aegis.ledger import engines_used
from aegis.manifests import MANIFESTS, CorpusCard, read_card
from aegis.pipeline import STAGES
from aegis.tables import CONDITIONS, PROJECT, SCHEMAS, Run

RELEASABLE = CONDITIONS[2:]
"""``converted`` is none of them by default: it still speaks every identifier."""
_NEEDED = (
    "recordings", "screening", "plan_summary", "edits", "reconstructions", "lexical_matches",
)  # fmt: skip
# Tables whose failed rows mean that something in the sound is not as planned or not checked.
_FATES = ("recordings", "screening", "assignments", "converted", "substitutions", "edits",
          "regions", "rendered", "reconstructions", "lexical_matches")  # fmt: skip


@dataclass(frozen=True)
class Blocker:
    """What stands against a release: ``kind`` is unscreened, unlocated, heard or failed."""

    kind: str
    recording_id: str
    condition: str
    detail: str

    def __str__(self) -> str:
        where = " ".join(part for part in (self.recording_id, self.condition) if part)
        return f"{self.kind}: {where}: {self.detail}"


# --- what stands against it -----------------------------------------------------------------


def find_blockers(run: Run, conditions: Sequence[str] = RELEASABLE) -> list[Blocker]:
    """All that stands against releasing these conditions of a run, in a stable order.

    Raises
    ------
    ReleaseRefused
        A condition is unknown, or the run has not come far enough to be judged.
    """
    unknown = sorted(set(conditions) - set(CONDITIONS[1:]))
    if unknown or not conditions:
        raise ReleaseRefused(f"conditions {unknown}: known are {', '.join(CONDITIONS[1:])}")
    missing = [name for name in _NEEDED if not run.has(name)]
    if missing:
        raise ReleaseRefused(f"run {run.root.name} lacks {', '.join(missing)}; finish it first")
    found = [
        *_unscreened(run), *_unlocated(run), *_heard(run, conditions), *_failed(run, conditions),
        *_unsearched(run, conditions),
    ]  # fmt: skip
    return sorted(found, key=lambda b: (b.kind, b.recording_id, b.condition, b.detail))


def uncovered_limit(run: Run) -> float:
    """The share of speech without words above which the run calls a recording unscreened."""
    receipt = receipts.read_receipt(run, "01_transcribe") or {}
    return float(receipt.get("parameters", {}).get("max_uncovered_share", 0.0))


def _unscreened(run: Run) -> Iterator[Blocker]:
    limit = uncovered_limit(run)
    for row in run.read("screening").to_dict("records"):
        speech, uncovered = (_number(row[name]) for name in ("speech_s", "uncovered_s"))
        if uncovered > limit * speech:
            said = f"{uncovered:.1f} of {speech:.1f} s of speech have no words (limit {limit:.0%})"
            yield Blocker("unscreened", row["recording_id"], "", said)
        if row["n_flagged"]:
            said = f"{row['n_flagged']} words that perhaps nobody spoke"
            yield Blocker("unscreened", row["recording_id"], "", said)
    refused = run.read("plan_summary").query("n_refused > 0")
    for row in refused.to_dict("records"):
        said = f"detection of {row['category']} was refused {row['n_refused']} times"
        yield Blocker("unscreened", row["recording_id"], "", said)


def _number(value: Any) -> float:
    return 0.0 if pd.isna(value) else float(value)


def _unlocated(run: Run) -> Iterator[Blocker]:
    for row in run.read("plan_summary").query("n_unlocated > 0").to_dict("records"):
        said = f"{row['n_unlocated']} mentions of {row['category']} have no place in their turn"
        yield Blocker("unlocated", row["recording_id"], "", said)


def _heard(run: Run, conditions: Sequence[str]) -> Iterator[Blocker]:
    """Planned originals that fresh recognition of the whole sound still finds."""
    found = _searches(run, conditions).query("original_status == 'retained'")
    counted = found.groupby(["recording_id", "condition", "category"]).size()
    for (recording, condition, category), n in counted.items():
        yield Blocker("heard", recording, condition, f"{n} originals of {category} are heard")


def _unsearched(run: Run, conditions: Sequence[str]) -> Iterator[Blocker]:
    """Planned edits that nobody looked for in a condition's sound."""
    edits = run.read("edits").query("status == 'ok'")
    searched = _searches(run, conditions)
    for condition in conditions:
        done = searched.loc[searched["condition"] == condition, "intention_id"]
        left = edits[~edits["intention_id"].isin(done)].groupby("recording_id").size()
        for recording, n in left.items():
            yield Blocker("failed", recording, condition, f"{n} originals were not searched for")


def _searches(run: Run, conditions: Sequence[str]) -> pd.DataFrame:
    table = run.read("lexical_matches")
    return table[(table["scope"] == "conversation") & table["condition"].isin(conditions)]


def _failed(run: Run, conditions: Sequence[str]) -> Iterator[Blocker]:
    for name in _FATES:
        if not run.has(name):
            continue
        table = _read_fates(run, name)
        side = "renderer" if name == "rendered" else "condition"
        if name == "rendered":
            table = table[table["kind"] == "region"]
        if name == "lexical_matches":
            table = table[table["scope"] == "conversation"]
        if side in table:
            table = table[table[side].isin(conditions)]
        else:
            table, side = table.assign(condition=""), "condition"
        counted = table[table["status"] == "failed"].groupby(["recording_id", side]).size()
        for (recording, condition), n in counted.items():
            yield Blocker("failed", recording, condition, f"{n} rows of {name} failed")
    kept = run.read("reconstructions").query("n_retained > 0")
    for row in kept[kept["condition"].isin(conditions)].to_dict("records"):
        said = f"{row['n_retained']} turns keep their identifiers, their rendering failed"
        yield Blocker("failed", row["recording_id"], row["condition"], said)


def _read_fates(run: Run, name: str) -> pd.DataFrame:
    """A table of fates; what is released speaks with the first pseudo-voices alone."""
    table = run.read(name)
    return table[table["pseudo_profile"] == 1] if name == "assignments" else table


# --- figures --------------------------------------------------------------------------------

Figures = list[dict[str, Any]]


def coverage(run: Run, conditions: Sequence[str] = RELEASABLE) -> Figures:
    """How much of what was scheduled is in the release: quantity, covered, of."""
    recordings, screening = run.read("recordings"), run.read("screening")
    speech, covered = (float(screening[c].fillna(0).sum()) for c in ("speech_s", "covered_s"))
    rows = [
        ("recordings usable", int((recordings["status"] == "ok").sum()), len(recordings)),
        ("seconds of speech with words", round(covered, 3), round(speech, 3)),
    ]
    for name, what in (("converted", "turns converted"), ("edits", "edits planned"),
                       ("assignments", "profiles with a pseudo-voice")):  # fmt: skip
        if run.has(name):
            status = _read_fates(run, name)["status"]
            rows.append((what, int((status == "ok").sum()), len(status)))
    made = run.read("reconstructions")
    for condition in conditions:
        own = made[made["condition"] == condition]
        rows.append((f"recordings in {condition}", int((own["status"] == "ok").sum()), len(own)))
        done, kept = int(own["n_rendered"].sum()), int(own["n_retained"].sum())
        rows.append((f"changed turns spoken anew in {condition}", done, done + kept))
    return [dict(zip(("quantity", "covered", "of"), row, strict=True)) for row in rows]


def residual_risk(run: Run, conditions: Sequence[str] = RELEASABLE) -> Figures:
    """What a listener or attacker still finds, each figure with its denominator.

    Planned originals by outcome of the search in fresh transcripts; equal error rates of
    original enrolment against the released sound beside original against original.
    """
    rows: Figures = []
    searched = _searches(run, conditions)
    for condition in conditions:
        own = searched[searched["condition"] == condition]
        for outcome in ("retained", "uncertain", "failed"):
            n = int((own["original_status"] == outcome).sum())
            measure = f"planned originals {_WORDS[outcome]}"
            rows.append({"measure": measure, "condition": condition, "value": n, "of": len(own)})
    if run.has("linkage"):
        rows += _linkage(run.read("linkage"), conditions)
    return rows


_WORDS = {
    "retained": "still heard", "uncertain": "perhaps heard", "failed": "not searched",
}  # fmt: skip


def _linkage(table: pd.DataFrame, conditions: Sequence[str]) -> Figures:
    chosen = table[
        table["condition"].isin(["original", *conditions])
        & (table["region_kind"] == "all_turns")
        & (table["orientation"] == "attacker")
    ]
    return [
        {
            "measure": f"equal error rate, {row['protocol']}, {row['backend']}",
            "condition": row["condition"],
            "value": None if pd.isna(row["eer"]) else round(float(row["eer"]), 4),
            "of": f"{row['n_target']} target, {row['n_nontarget']} other trials",
        }
        for row in chosen.to_dict("records")
    ]


# --- the archive ----------------------------------------------------------------------------

Member = bytes | Path
"""Content, or the file that holds it: sound is never in memory as a whole."""


def build_release(
    run: Run,
    out: Path,
    conditions: Sequence[str] = RELEASABLE,
    with_audio: bool = False,
    accept: str | None = None,
    card: Path | None = None,
) -> Path:
    """Write ``<run>.tar``, its SHA-256 and the datasheet into a folder; returns the archive.

    Parameters
    ----------
    accept
        Why the release is right in spite of its blockers; recorded with them.
    card
        The card of recordings of one's own; other data sets have theirs in the project.

    Raises
    ------
    ReleaseRefused
        There are blockers and no reason, the run does not verify, a card forbids sound, or
        an original is found in what would be released.
    """
    blockers = find_blockers(run, conditions)
    if blockers and not (accept and accept.strip()):
        kinds = pd.Series([b.kind for b in blockers]).value_counts().sort_index()
        listed = ", ".join(f"{n} {kind}" for kind, n in kinds.items())
        raise ReleaseRefused(
            f"run {run.root.name}: {len(blockers)} findings ({listed}), first {blockers[0]};"
            " --accept REASON releases it all the same and records the reason"
        )
    problems = verify_run(run)
    if problems:
        raise ReleaseRefused(f"run {run.root.name} does not verify: {problems[0]}")
    cards = _cards(run, card)
    members = _evidence(run, cards, card)
    if with_audio:
        members |= _audio(run, cards, conditions)
    content = _description(run, conditions, with_audio, cards)
    content["accepted"] = {"reason": accept, "findings": [asdict(b) for b in blockers]}
    content["files"] = {name: _size_and_hash(member) for name, member in sorted(members.items())}
    sheet = datasheet.write(content)
    members |= {"release.json": _json(content), "datasheet.md": sheet.encode()}
    _refuse_originals(run, members)
    return _write(out, run.root.name, members, sheet)


def _cards(run: Run, card: Path | None) -> dict[str, CorpusCard | None]:
    """Data set -> its card, None where there is none."""
    found: dict[str, CorpusCard | None] = {}
    for name in sorted(run.read("recordings")["dataset"].unique()):
        folder = card.parent if card is not None and card.stem == name else MANIFESTS
        there = (folder / f"{name}.yaml").exists()
        found[name] = read_card(name, folder) if there else None
    return found


def _evidence(
    run: Run, cards: Mapping[str, CorpusCard | None], card: Path | None
) -> dict[str, Member]:
    """Receipts, public tables, and the cards of data and models that receipts name."""
    members: dict[str, Member] = {}
    names: set[str] = set()
    for stage in STAGES:
        receipt = receipts.read_receipt(run, stage)
        if receipt is not None:
            members[f"receipts/{stage}.json"] = receipts.receipt_path(run, stage).read_bytes()
            names |= set(receipt["cards"])
    for name, schema in SCHEMAS.items():
        if schema.visibility == "public" and run.has(name):
            members[f"tables/{name}.parquet"] = run.table_path(name).read_bytes()
    files = [MANIFESTS / f"{name}{end}" for name in cards for end in (".yaml", ".csv")]
    files += [card] if card is not None else []
    members |= {f"cards/{path.name}": path.read_bytes() for path in files if path.exists()}
    models = [MANIFESTS / "models" / name for name in sorted(names)]
    return members | {f"cards/models/{p.name}": p.read_bytes() for p in models if p.exists()}


def _audio(
    run: Run, cards: Mapping[str, CorpusCard | None], conditions: Sequence[str]
) -> dict[str, Member]:
    silent = [name for name, card in cards.items() if card is None or not card.release_audio]
    if silent:
        raise ReleaseRefused(
            f"sound of {', '.join(silent)} may not be released: its card does not say"
            " `release_audio: true` (--card FILE gives the card of your own recordings)"
        )
    made = run.read("reconstructions").query("status == 'ok'")
    members: dict[str, Member] = {}
    for row in made[made["condition"].isin(conditions)].to_dict("records"):
        path = run.root / row["file"]
        if receipts.file_sha256(path) != row["sha256"]:
            raise ReleaseRefused(f"{row['file']} is not the sound that its table names")
        members[f"audio/{row['condition']}/{row['recording_id']}.wav"] = path
    return members


def _size_and_hash(member: Member) -> dict[str, Any]:
    if isinstance(member, Path):
        return {"sha256": receipts.file_sha256(member), "bytes": member.stat().st_size}
    return {"sha256": hashlib.sha256(member).hexdigest(), "bytes": len(member)}


def _description(
    run: Run,
    conditions: Sequence[str],
    with_audio: bool,
    cards: Mapping[str, CorpusCard | None],
) -> dict[str, Any]:
    """What ``release.json`` says."""
    found = (receipts.read_receipt(run, stage) for stage in STAGES)
    done = {receipt["stage"]: receipt for receipt in found if receipt}
    recordings = run.read("recordings")
    return {
        "format": 1,
        "run": run.root.name,
        "last_started": max(receipt["started"] for receipt in done.values()),
        "conditions": list(conditions),
        "with_audio": with_audio,
        "code": {
            "package": metadata.version("aegisvox-study"),
            "checkout": _checkout(),
            "sha256": receipts.digest({name: r["code"] for name, r in done.items()}),
        },
        "data_sets": {
            name: {
                "recordings": int((recordings["dataset"] == name).sum()),
                "licence": card.licence if card else "no card",
                "content": card.content if card else "private",
                "revision": card.revision if card else "unknown",
                "access": card.access if card else "not stated",
            }
            for name, card in cards.items()
        },
        "engines": engines_used(run).to_dict("records"),
        "parameters": {name: receipt["parameters"] for name, receipt in done.items()},
        "seeds": {name: receipt["seeds"] for name, receipt in done.items() if receipt["seeds"]},
        "packages": next(iter(done.values()))["packages"],
        "uncovered_limit": uncovered_limit(run),
        "coverage": coverage(run, conditions),
        "residual_risk": residual_risk(run, conditions),
    }


def _checkout() -> str:
    """The commit that is checked out, with ``-dirty`` where files differ from it."""
    command = ["git", "-C", str(PROJECT), "describe", "--always", "--dirty", "--abbrev=40"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)  # nosec B603 # fixed words
    except (OSError, subprocess.SubprocessError):
        return "not a checkout"
    return done.stdout.strip()


def _json(content: Any) -> bytes:
    text = json.dumps(content, indent=1, ensure_ascii=False, default=receipts.plain)
    return f"{text}\n".encode()


def _refuse_originals(run: Run, members: Mapping[str, Member]) -> None:
    """No member may hold an original word or name, whatever its encoding."""
    finder, source = privacy.build_finder(privacy.needles_of(run)), privacy.source_shingles(run)
    for name, member in members.items():
        text = _readable(name, member)
        kinds = finder.find(text) | finder.find(name)
        kinds |= {"words of a source turn"} if source & privacy.shingles(text) else set()
        kinds |= {"a key"} if privacy.KEY.search(text) else set()
        if kinds:
            raise ReleaseRefused(f"{name} holds {', '.join(sorted(kinds))}")


def _readable(name: str, member: Member) -> str:
    """The text of a member; sound has none."""
    if isinstance(member, Path):
        return ""
    if not name.endswith(".parquet"):
        return member.decode("utf-8")
    table = pd.read_parquet(io.BytesIO(member))
    texts = table.select_dtypes(include=["string", "object"])
    return "\n".join(str(value) for column in texts for value in texts[column].dropna().unique())


def _write(out: Path, run_name: str, members: Mapping[str, Member], sheet: str) -> Path:
    """A tar without owners, times or order of its own, and what a reader needs beside it."""
    out.mkdir(parents=True, exist_ok=True)
    target, scratch = out / f"{run_name}.tar", out / f".{run_name}.{os.getpid()}.part"
    try:
        with tarfile.open(scratch, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for name, member in sorted(members.items()):
                _add(archive, f"{run_name}/{name}", member)
        os.replace(scratch, target)
    finally:
        scratch.unlink(missing_ok=True)
    line = f"{receipts.file_sha256(target)}  {target.name}\n"
    write_bytes(out / f"{target.name}.sha256", line.encode())
    write_bytes(out / "datasheet.md", sheet.encode())
    return target


def _add(archive: tarfile.TarFile, name: str, member: Member) -> None:
    entry = tarfile.TarInfo(name)
    entry.mode = 0o644
    if isinstance(member, bytes):
        entry.size = len(member)
        archive.addfile(entry, io.BytesIO(member))
        return
    entry.size = member.stat().st_size
    with open(member, "rb") as stream:
        archive.addfile(entry, stream)
