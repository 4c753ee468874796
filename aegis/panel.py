"""A blinded listening panel that people run in a browser, and what its answers say.

Units: a *stimulus* is one excerpt of one conversation in one condition with one question; a
rating is one reviewer's answer to it. All reviewers hear the same stimuli, each in an order
of their own, so that agreement is per item. Conditions are balanced: their counts differ by
at most one. A page holds sound, questions and opaque item ids; which item is which condition
stands only in the key below ``secret/panel/``.

The clinical question is whether a fact of the original can be heard, in the paper's five
labels; the perceptual one is how natural the speech sounds, 1 to 5. An excerpt of a renderer
holds an affected turn that was really rendered: where rendering failed the original would be
heard. ``converted`` takes turns without any edit.

Functions: :func:`build_panel`, :func:`read_panel`, :func:`merge_answers`,
:func:`describe`, :func:`item_agreement`.
"""

from __future__ import annotations

import base64
import csv
import html
import io
import json
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from aegis.audio import SAMPLE_RATE_HZ, cut, read_wav, write_bytes
from aegis.errors import AegisError
from aegis.tables import Run, content_id

PER_KIND = 25
REVIEWERS = 5
CONDITIONS = {"clinical": ("renderer_a", "renderer_b"),
              "perceptual": ("converted", "renderer_a", "renderer_b")}  # fmt: skip
LABELS = {
    "clinical": ("preserved", "partial", "missing", "contradicted", "uncertain"),
    "perceptual": ("1", "2", "3", "4", "5"),
}
_SHOWN = {
    "clinical": ("Heard as stated", "Partly heard", "Not heard", "Heard otherwise", "Cannot tell"),
    "perceptual": ("1 not natural", "2", "3", "4", "5 fully natural"),
}
_QUESTION = {
    "clinical": "Can you hear this statement in the excerpt?",
    "perceptual": "How natural does the speech in this excerpt sound?",
}
TEMPLATE = Path(__file__).resolve().parent / "data" / "panel.html"
LONGEST_S = 20.0
_ANSWER_COLUMNS = ["panel_id", "reviewer", "item_id", "kind", "position", "answer", "plays",
                   "seconds", "comment"]  # fmt: skip


class PanelError(AegisError):
    """A panel cannot be built, or answers do not fit it."""


@dataclass(frozen=True)
class Panel:
    """Where the pages are, and how many stimuli of each kind and condition they hold."""

    folder: Path
    counts: Mapping[tuple[str, str], int]
    n_reviewers: int


# --- stimuli ---------------------------------------------------------------------------


def candidates(run: Run) -> pd.DataFrame:
    """All stimuli that could be played.

    Columns ``kind condition source_id recording_id start_s end_s statement``; a statement
    that quotes an original identifier of its conversation is left out.
    """
    places = run.read("turn_transcripts")[["turn_id", "condition", "out_start_s", "out_end_s"]]
    spans = {
        (r["turn_id"], r["condition"]): (r["out_start_s"], r["out_end_s"])
        for r in places.to_dict("records")
    }
    rendered = run.read("rendered")
    done = rendered[(rendered["kind"] == "region") & (rendered["status"] == "ok")]
    spoken = set(zip(done["turn_id"], done["renderer"], strict=True))
    affected = set(run.read("regions")["turn_id"])
    originals = run.read("substitutions").groupby("recording_id")["original"].apply(list).to_dict()
    rows: list[dict[str, Any]] = []

    def add(kind: str, condition: str, source_id: str, recording: str, turns: Sequence[str],
            statement: str) -> None:  # fmt: skip
        held = [turn for turn in turns if turn in affected]
        if condition == "converted":
            fits = not held
        else:
            fits = bool(held) and all((turn, condition) in spoken for turn in held)
        own = [spans[turn, condition] for turn in turns if (turn, condition) in spans]
        if not fits or len(own) < len(turns):
            return
        start, end = min(a for a, _ in own), max(b for _, b in own)
        if 0.5 <= end - start <= LONGEST_S:
            rows.append({
                "kind": kind, "condition": condition, "source_id": source_id,
                "recording_id": recording, "start_s": start, "end_s": end, "statement": statement,
            })  # fmt: skip

    turns = run.read("turns").sort_values(["recording_id", "turn_index"])
    after = dict(zip(turns["turn_id"], turns["turn_id"].shift(-1), strict=True))
    before = dict(zip(turns["turn_id"], turns["turn_id"].shift(1), strict=True))
    owner = dict(zip(turns["turn_id"], turns["recording_id"], strict=True))
    for fact in run.read("facts").to_dict("records"):
        recording, turn = fact["recording_id"], fact["turn_id"]
        if quotes(fact["text"], originals.get(recording, [])):
            continue
        around = [before.get(turn), turn, after.get(turn)]
        question = None if pd.isna(fact["question_turn_id"]) else fact["question_turn_id"]
        around = [question, *around] if question not in around else around
        kept = [t for t in around if isinstance(t, str) and owner.get(t) == recording]
        for condition in CONDITIONS["clinical"]:
            add("clinical", condition, fact["fact_id"], recording, kept, fact["text"])
    for turn in turns[turns["n_words"] >= 4].to_dict("records"):
        for condition in CONDITIONS["perceptual"]:
            add("perceptual", condition, turn["turn_id"], turn["recording_id"],
                [turn["turn_id"]], "")  # fmt: skip
    columns = ["kind", "condition", "source_id", "recording_id", "start_s", "end_s", "statement"]
    return pd.DataFrame(rows, columns=columns)


def quotes(text: str, originals: Iterable[str]) -> bool:
    """Does a text hold an original surface as a word of its own, whatever its case?"""
    return any(
        re.search(rf"(?<!\w){re.escape(original)}(?!\w)", text, re.IGNORECASE)
        for original in originals
        if original
    )


def choose_balanced(found: pd.DataFrame, n: int, rng: np.random.Generator) -> pd.DataFrame:
    """``n`` stimuli: conditions in turn, each source once, recordings as even as can be.

    Fewer where a condition has no stimulus left; the others do not take its place, so that
    counts of conditions differ by at most one.
    """
    shuffled = found.iloc[rng.permutation(len(found))]
    queues = dict(list(shuffled.groupby("condition", sort=True)))
    used: dict[str, int] = {}
    sources: set[str] = set()
    chosen: list[Any] = []
    while len(chosen) < n and queues:
        for condition in list(queues):
            left = queues[condition]
            left = left[~left["source_id"].isin(sources)]
            if left.empty:
                return found.loc[chosen]
            load = left["recording_id"].map(lambda name: used.get(name, 0))
            pick = load.idxmin()
            chosen.append(pick)
            sources.add(str(left.loc[pick, "source_id"]))
            recording = str(left.loc[pick, "recording_id"])
            used[recording] = used.get(recording, 0) + 1
            queues[condition] = left.drop(index=pick)
            if len(chosen) == n:
                break
    return found.loc[chosen]


# --- building --------------------------------------------------------------------------


def key_path(run: Run) -> Path:
    return run.secret / "panel" / "key.json"


def build_panel(
    run: Run, reviewers: int = REVIEWERS, per_kind: int = PER_KIND, seed: int = 20261005,
    embed: bool = True, force: bool = False,
) -> Panel:  # fmt: skip
    """Write one page a reviewer below ``runs/<run>/panel/`` and the key below ``secret/``.

    Parameters
    ----------
    embed
        Sound inside the page; else MP3 files beside it.
    force
        Replace a panel that exists; answers to it can then no longer be read.

    Raises
    ------
    PanelError
        There is a panel already, or nothing can be played.
    """
    if key_path(run).exists() and not force:
        raise PanelError(f"run {run.root.name!r} has a panel; --force replaces it")
    rng, found = np.random.default_rng(seed), candidates(run)
    kinds = [choose_balanced(found[found["kind"] == kind], per_kind, rng) for kind in CONDITIONS]
    chosen = pd.concat(kinds)
    if chosen.empty:
        raise PanelError("no excerpt can be played: nothing was rendered or transcribed")
    salt = secrets.token_hex(16)
    ids = [content_id("p", salt, *row) for row in chosen.itertuples(index=False, name=None)]
    chosen = chosen.assign(item_id=ids)
    panel_id = content_id("panel", salt)
    folder = run.root / "panel"
    for old in [*folder.glob("*.html"), *folder.glob("sound/*.mp3")]:
        old.unlink()
    sounds = {row["item_id"]: _sound(run, row, folder, embed) for row in chosen.to_dict("records")}
    names = [f"reviewer-{number}" for number in range(1, reviewers + 1)]
    orders = {}
    for name in names:
        blocks = [own["item_id"].to_numpy() for _, own in chosen.groupby("kind", sort=True)]
        orders[name] = [str(item) for block in blocks for item in rng.permutation(block)]
        page = _page(panel_id, name, orders[name], chosen, sounds)
        check_blind(page)
        write_bytes(folder / f"{name}.html", page.encode())
    columns = ["item_id", "kind", "condition", "recording_id", "source_id"]
    key = {"panel_id": panel_id, "seed": seed, "orders": orders,
           "items": chosen[columns].to_dict("records")}  # fmt: skip
    write_bytes(key_path(run), json.dumps(key, indent=1).encode())
    key_path(run).chmod(0o600)
    counts = chosen.groupby(["kind", "condition"]).size().to_dict()
    return Panel(folder, {(str(a), str(b)): int(n) for (a, b), n in counts.items()}, reviewers)


def _sound(run: Run, row: Mapping[str, Any], folder: Path, embed: bool) -> str:
    """A data address of the excerpt, or the address of its file beside the page."""
    import soundfile as sf

    whole = read_wav(run.conversation_path(row["condition"], row["recording_id"]))
    part = cut(whole, row["start_s"], row["end_s"])
    mono = part if part.ndim == 1 else part.mean(axis=0)
    buffer = io.BytesIO()
    sf.write(buffer, mono, SAMPLE_RATE_HZ, format="MP3", subtype="MPEG_LAYER_III")
    if embed:
        return f"data:audio/mpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"
    write_bytes(folder / "sound" / f"{row['item_id']}.mp3", buffer.getvalue())
    return f"sound/{row['item_id']}.mp3"


def _page(
    panel_id: str, reviewer: str, order: Sequence[str], chosen: pd.DataFrame,
    sounds: Mapping[str, str],
) -> str:  # fmt: skip
    rows = chosen.set_index("item_id")
    items = [
        {
            "id": item, "kind": rows.loc[item, "kind"], "sound": sounds[item],
            "question": _QUESTION[rows.loc[item, "kind"]],
            "statement": rows.loc[item, "statement"],
        }
        for item in order
    ]  # fmt: skip
    scales = {
        kind: [{"value": v, "text": text} for v, text in zip(values, _SHOWN[kind], strict=True)]
        for kind, values in LABELS.items()
    }  # fmt: skip
    data = json.dumps(
        {"panel": panel_id, "reviewer": reviewer, "items": items, "scales": scales},
        ensure_ascii=False,
    ).replace("</", "<\\/")
    page = TEMPLATE.read_text("utf-8").replace("{{title}}", html.escape(f"Panel, {reviewer}"))
    return page.replace("{{data}}", data)


def check_blind(page: str) -> None:
    """Refuse a page that names a condition or an engine.

    Raises
    ------
    PanelError
    """
    plain = re.sub(r"base64,[A-Za-z0-9+/=]+", "", page)
    words = {name for names in CONDITIONS.values() for name in names} | {"redacted", "infill"}
    told = sorted(word for word in words if word in plain)
    if told:
        raise PanelError(f"the page would tell the conditions: {', '.join(told)}")


# --- reading ---------------------------------------------------------------------------


def read_key(run: Run) -> dict[str, Any]:
    """The key of a run's panel.

    Raises
    ------
    PanelError
        The run has no panel.
    """
    if not key_path(run).exists():
        raise PanelError(f"run {run.root.name!r} has no panel; `aegis panel build` makes one")
    key: dict[str, Any] = json.loads(key_path(run).read_text("utf-8"))
    return key


def read_panel(path: Path) -> pd.DataFrame:
    """The answers of one file that a page saved, JSON or CSV.

    Raises
    ------
    PanelError
        It is no file of answers; the message has the file's name.
    """
    try:
        if path.suffix.lower() == ".csv":
            rows = list(csv.DictReader(io.StringIO(path.read_text("utf-8-sig"))))
        else:
            content = json.loads(path.read_text("utf-8"))
            shared = {key: content[key] for key in ("panel_id", "reviewer")}
            rows = [row | shared for row in content["answers"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PanelError(f"{path.name}: no answers of a panel ({error})") from error
    missing = set(_ANSWER_COLUMNS) - set(rows[0] if rows else _ANSWER_COLUMNS)
    if missing:
        raise PanelError(f"{path.name}: columns {sorted(missing)} are missing")
    table = pd.DataFrame(rows, columns=_ANSWER_COLUMNS)
    return table.assign(answer=table["answer"].astype(str), file=path.name)


def merge_answers(key: Mapping[str, Any], tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """All reviewers' answers with each item's condition, in the plan's order.

    A rating that a reviewer left out is a row with ``status`` ``unknown``, also for reviewers
    from whom there is no file. An answer saved in two files counts once.

    Raises
    ------
    PanelError
        Another panel's answers, an unknown reviewer, item or label, another order than the
        page's, or two different answers of one reviewer to one item.
    """
    given: dict[tuple[str, str], dict[str, Any]] = {}
    items = {item["item_id"]: item for item in key["items"]}
    for table in tables:
        for row in table.to_dict("records"):
            _check_answer(key, items, row)
            place = (row["reviewer"], row["item_id"])
            if place in given and given[place]["answer"] != row["answer"]:
                raise PanelError(
                    f"{row['file']}: {row['reviewer']} answered {row['item_id']} in two ways"
                )
            given[place] = row
    rows = []
    for reviewer, order in key["orders"].items():
        for position, item_id in enumerate(order):
            row = given.get((reviewer, item_id))
            answer = row["answer"] if row else None
            rows.append({
                **{k: items[item_id][k] for k in ("item_id", "kind", "condition", "recording_id")},
                "reviewer": reviewer, "position": position, "answer": answer,
                "plays": int(float(row["plays"] or 0)) if row else None,
                "status": "ok" if answer else "unknown",
                "reason": None if answer else "not answered",
            })  # fmt: skip
    return pd.DataFrame(rows)


def _check_answer(
    key: Mapping[str, Any], items: Mapping[str, Any], row: Mapping[str, Any]
) -> None:
    where, order = row["file"], key["orders"].get(row["reviewer"])
    if row["panel_id"] != key["panel_id"]:
        raise PanelError(f"{where}: answers of another panel ({row['panel_id']})")
    if order is None or row["item_id"] not in items:
        raise PanelError(f"{where}: unknown reviewer or item {row['reviewer']}, {row['item_id']}")
    if order.index(row["item_id"]) != int(row["position"]):
        raise PanelError(f"{where}: {row['item_id']} was not heard in the planned order")
    labels = LABELS[items[row["item_id"]]["kind"]]
    if row["answer"] not in labels:
        raise PanelError(f"{where}: {row['answer']!r} is none of {', '.join(labels)}")


def describe(ratings: pd.DataFrame) -> pd.DataFrame:
    """Ratings of each kind and condition: a description, no test.

    The share is of strictly preserved facts, or of naturalness 4 and 5; unanswered ratings
    stay in the denominator as unknown.
    """
    good = {"clinical": {"preserved"}, "perceptual": {"4", "5"}}
    rows = []
    for (kind, condition), own in ratings.groupby(["kind", "condition"], sort=True):
        marks = pd.to_numeric(own["answer"], errors="coerce")
        rows.append({
            "kind": kind, "condition": condition, "items": own["item_id"].nunique(),
            "numerator": int(own["answer"].isin(good[str(kind)]).sum()), "denominator": len(own),
            "unknown": int(own["answer"].isna().sum()),
            "mean_mark": float(marks.mean()) if marks.notna().any() else np.nan,
        })  # fmt: skip
    columns = ["kind", "condition", "items", "numerator", "denominator", "unknown", "mean_mark"]
    return pd.DataFrame(rows, columns=columns)


def item_agreement(ratings: pd.DataFrame) -> pd.DataFrame:
    """For each item the share of pairs of reviewers that gave the same answer.

    NA where fewer than two reviewers answered.
    """
    rows = []
    for (kind, item_id), own in ratings.groupby(["kind", "item_id"], sort=True):
        counts = own["answer"].dropna().value_counts().to_numpy()
        n = int(counts.sum())
        pairs = n * (n - 1)
        share = float((counts * (counts - 1)).sum()) / pairs if pairs else np.nan
        rows.append({"kind": kind, "item_id": item_id, "n_ratings": n, "agreement": share})
    return pd.DataFrame(rows, columns=["kind", "item_id", "n_ratings", "agreement"])


def answers_folder(run: Run) -> Path:
    """Where ``aegis panel read`` keeps the files that it accepted."""
    return run.secret / "panel" / "answers"


def accept(run: Run, paths: Sequence[Path]) -> pd.DataFrame:
    """Check files of answers together with those accepted before, and keep them.

    Raises
    ------
    PanelError
        A file does not fit; then none is kept.
    """
    key = read_key(run)
    new = {path.name for path in paths}
    known = [p for p in sorted(answers_folder(run).glob("*")) if p.name not in new]
    merged = merge_answers(key, [read_panel(path) for path in [*known, *paths]])
    for path in paths:
        target = answers_folder(run) / path.name
        write_bytes(target, path.read_bytes())
        target.chmod(0o600)
    return merged


def accepted(run: Run) -> pd.DataFrame | None:
    """The merged ratings of a run, None when it has no panel or no answers."""
    files = sorted(answers_folder(run).glob("*"))
    if not key_path(run).exists() or not files:
        return None
    return merge_answers(read_key(run), [read_panel(path) for path in files])
