"""The listening panel: who hears what, what the page tells, and what answers say."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from aegis import panel
from aegis.audio import write_wav
from aegis.cli import app
from aegis.panel import PanelError
from aegis.tables import SCHEMAS, Run, empty_table

N_TURNS = 24
FATE = {"status": "ok", "reason": None}


def frame(name: str, rows: list[dict]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(SCHEMAS[name].columns))


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Run:
    """Two conversations of 24 turns; every second turn holds an edit, one was not rendered."""
    made = Run(tmp_path_factory.mktemp("runs") / "toy")
    turns, places, regions, rendered, facts = [], [], [], [], []
    for recording in ("d/a", "d/b"):
        for i in range(N_TURNS):
            turn = f"t{recording[-1]}{i:02d}"
            turns.append({
                "turn_id": turn, "recording_id": recording, "turn_index": i,
                "speaker": f"S{i % 2}", "profile_id": f"{recording}/S{i % 2}", "channel": 0,
                "start_s": float(i),
                "end_s": i + 1.0, "text": "a b c d", "language": "en", "n_words": 4,
                "flagged": False,
            } | FATE)  # fmt: skip
            for condition in ("original", "converted", "renderer_a", "renderer_b"):
                places.append({
                    "turn_id": turn, "condition": condition, "recording_id": recording,
                    "profile_id": f"{recording}/S{i % 2}", "text": "", "out_start_s": float(i),
                    "out_end_s": i + 1.0,
                })  # fmt: skip
            if i % 2:
                facts.append(_fact(recording, turn, i, f"Patient takes drug {i}."))
                continue
            regions.append({
                "region_id": f"r{turn}", "recording_id": recording, "turn_id": turn, "n_edits": 1,
                "source_text": "a", "target_text": "b",
            } | FATE)  # fmt: skip
            for renderer in ("renderer_a", "renderer_b"):
                bad = turn == "ta04" and renderer == "renderer_a"
                fate = {"status": "failed", "reason": "on purpose"} if bad else FATE
                rendered.append({
                    "item_id": f"r{turn}", "kind": "region", "renderer": renderer,
                    "recording_id": recording, "turn_id": turn, "n_edits": 1,
                } | fate)  # fmt: skip
    facts.append(_fact("d/a", "ta02", 99, "DORIS has a cough."))
    substitutions = [{
        "entity_id": "e1", "recording_id": "d/a", "category": "NAME", "language": "en",
        "original": "Doris", "replacement": "Nina", "n_mentions": 1,
    } | FATE]  # fmt: skip
    rows = {"turns": turns, "turn_transcripts": places, "regions": regions, "rendered": rendered,
            "facts": facts, "substitutions": substitutions}  # fmt: skip
    for name, own in rows.items():
        made.write(name, frame(name, own))
    hum = 0.1 * np.sin(np.arange(N_TURNS * 16000) / 20).astype(np.float32)
    for recording in ("d/a", "d/b"):
        for condition in ("converted", "renderer_a", "renderer_b"):
            write_wav(made.conversation_path(condition, recording), hum)
    return made


def _fact(recording: str, turn: str, index: int, text: str) -> dict:
    return {
        "fact_id": f"f{turn}{index}", "recording_id": recording, "fact_index": index,
        "turn_id": turn, "turn_index": index % N_TURNS, "question_turn_id": None, "language": "en",
        "role": "patient", "text": text, "evidence": "a", "importance": "major",
        "polarity": "affirmed", "temporality": "now", "certainty": "sure", "actor": "patient",
        "modifiers": "", "action_id": None,
    }  # fmt: skip


@pytest.fixture
def built(run: Run) -> Run:
    shutil.rmtree(run.root / "panel", ignore_errors=True)
    panel.build_panel(run, reviewers=3, per_kind=10, force=True)
    return run


def page_data(page: Path) -> dict:
    text = re.search(r'type="application/json">(.*?)</script>', page.read_text("utf-8"), re.S)
    assert text is not None
    return json.loads(text[1])


def answers(run: Run, reviewer: str, choose) -> dict:
    data = page_data(run.root / "panel" / f"{reviewer}.html")
    rows = [
        {"item_id": item["id"], "kind": item["kind"], "position": i, "answer": choose(item),
         "plays": 1, "seconds": 3.5, "comment": ""}
        for i, item in enumerate(data["items"])
    ]  # fmt: skip
    return {"panel_id": data["panel"], "reviewer": reviewer, "answers": rows}


def saved(folder: Path, name: str, content: dict) -> Path:
    path = folder / name
    path.write_text(json.dumps(content))
    return path


def best(item: dict) -> str:
    return "preserved" if item["kind"] == "clinical" else "5"


# --- building --------------------------------------------------------------------------


def test_what_would_speak_an_original_is_never_played(run: Run) -> None:
    found = panel.candidates(run)
    clinical = found[found["kind"] == "clinical"]
    assert not found["statement"].str.contains("DORIS").any()
    # The rendering of ta04 failed in renderer_a: it and its neighbours are left out there.
    assert not (
        {"fta033", "fta055"} & set(clinical.query("condition == 'renderer_a'")["source_id"])
    )
    assert {"fta033", "fta055"} <= set(clinical.query("condition == 'renderer_b'")["source_id"])
    unedited = found[(found["kind"] == "perceptual") & (found["condition"] == "converted")]
    assert all(int(turn[2:]) % 2 for turn in unedited["source_id"])
    edited = found[(found["kind"] == "perceptual") & (found["condition"] == "renderer_b")]
    assert not any(int(turn[2:]) % 2 for turn in edited["source_id"])
    inside = clinical.query("source_id == 'fta077'").iloc[0]
    assert (inside["start_s"], inside["end_s"]) == (6.0, 9.0)  # the turn and its neighbours


def test_conditions_and_recordings_are_balanced_and_sources_single(run: Run) -> None:
    found = panel.candidates(run)
    for kind in ("clinical", "perceptual"):
        chosen = panel.choose_balanced(found[found["kind"] == kind], 13, np.random.default_rng(1))
        assert len(chosen) == 13
        for column in ("condition", "recording_id"):
            counts = chosen[column].value_counts()
            assert counts.max() - counts.min() <= 1, column
        assert chosen["source_id"].is_unique


def test_a_condition_that_runs_out_ends_the_choice(run: Run) -> None:
    found = panel.candidates(run)
    scarce = found[(found["kind"] == "clinical") & (found["condition"] == "renderer_a")].head(2)
    rest = found[(found["kind"] == "clinical") & (found["condition"] == "renderer_b")]
    chosen = panel.choose_balanced(pd.concat([scarce, rest]), 20, np.random.default_rng(1))
    counts = chosen["condition"].value_counts()
    assert len(chosen) < 20
    assert counts.max() - counts.min() <= 1


def test_pages_are_blind_and_orders_differ(built: Run) -> None:
    key = panel.read_key(built)
    pages = sorted((built.root / "panel").glob("*.html"))
    assert len(pages) == 3
    conditions = {item["condition"] for item in key["items"]}
    assert conditions == {"converted", "renderer_a", "renderer_b"}
    for page in pages:
        text = re.sub(r"base64,[^\"]+", "", page.read_text("utf-8"))
        assert not [word for word in [*conditions, "d/a", "d/b", "Doris"] if word in text]
        assert "http" not in text  # nothing is loaded from anywhere
    orders = [tuple(order) for order in key["orders"].values()]
    assert len(set(orders)) == 3
    assert {frozenset(order) for order in orders} == {
        frozenset(i["item_id"] for i in key["items"])
    }
    assert panel.key_path(built).stat().st_mode & 0o077 == 0


def test_a_page_that_names_a_condition_is_refused() -> None:
    panel.check_blind("data:audio/mpeg;base64,redacted0renderer/a+")
    with pytest.raises(PanelError, match="renderer_a"):
        panel.check_blind("<p>renderer_a</p>")


def test_a_panel_is_not_replaced_by_accident(built: Run) -> None:
    with pytest.raises(PanelError, match="--force"):
        panel.build_panel(built)
    before = panel.read_key(built)["panel_id"]
    made = panel.build_panel(built, 1, 3, embed=False, force=True)
    assert panel.read_key(built)["panel_id"] != before
    assert len(list((made.folder / "sound").glob("*.mp3"))) == 6
    assert sum(made.counts.values()) == 6
    assert len(list(made.folder.glob("*.html"))) == 1


def test_nothing_to_play_is_said(tmp_path: Path) -> None:
    bare = Run(tmp_path / "bare")
    for name in ("turns", "turn_transcripts", "regions", "rendered", "facts", "substitutions"):
        bare.write(name, empty_table(name))
    with pytest.raises(PanelError, match="no excerpt can be played"):
        panel.build_panel(bare)
    with pytest.raises(PanelError, match="has no panel"):
        panel.read_key(bare)
    assert panel.accepted(bare) is None


# --- reading ---------------------------------------------------------------------------


def test_answers_are_merged_kept_and_described(built: Run, tmp_path: Path) -> None:
    half = answers(
        built, "reviewer-2", lambda item: "uncertain" if item["kind"] == "clinical" else "3"
    )
    half["answers"] = half["answers"][:10]  # the clinical block comes first
    files = [
        saved(tmp_path, "one.json", answers(built, "reviewer-1", best)),
        saved(tmp_path, "two.json", half),
    ]
    ratings = panel.accept(built, files)
    assert len(ratings) == 3 * 20
    assert ratings["status"].value_counts().to_dict() == {"ok": 30, "unknown": 30}
    built.write("panel_ratings", ratings)
    table = panel.describe(ratings).set_index(["kind", "condition"])
    row = table.loc[("clinical", "renderer_a")]
    # Five items by three reviewers: five preserved, five uncertain, five not answered.
    assert (row["items"], row["numerator"], row["denominator"], row["unknown"]) == (5, 5, 15, 5)
    assert table.loc[("perceptual", "renderer_b"), "mean_mark"] == 5.0
    pd.testing.assert_frame_equal(panel.accepted(built), ratings)
    again = panel.accept(built, [files[0]])  # the same file a second time counts once
    assert again["status"].value_counts()["ok"] == 30
    shutil.rmtree(panel.answers_folder(built))


def test_csv_and_json_hold_the_same_answers(built: Run, tmp_path: Path) -> None:
    content = answers(built, "reviewer-1", best)
    shared = {key: content[key] for key in ("panel_id", "reviewer")}
    table = pd.DataFrame([shared | row for row in content["answers"]])
    table.to_csv(tmp_path / "one.csv", index=False)
    saved(tmp_path, "one.json", content)
    key = panel.read_key(built)
    first, second = (
        panel.merge_answers(key, [panel.read_panel(tmp_path / name)])
        for name in ("one.csv", "one.json")
    )
    pd.testing.assert_frame_equal(first, second)


def spoil(content: dict, **changes: object) -> dict:
    top = {k: v for k, v in changes.items() if k in content}
    inner = {k: v for k, v in changes.items() if k not in content}
    first, *others = content["answers"]
    return content | top | {"answers": [first | inner, *others]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"panel_id": "panel0"}, "answers of another panel"),
        ({"reviewer": "reviewer-9"}, "unknown reviewer or item"),
        ({"item_id": "p0"}, "unknown reviewer or item"),
        ({"position": 3}, "not heard in the planned order"),
        ({"answer": "5"}, "'5' is none of preserved"),
    ],
)
def test_answers_that_do_not_fit_are_refused(
    built: Run, tmp_path: Path, changes: dict, message: str
) -> None:
    content = spoil(answers(built, "reviewer-1", best), **changes)
    with pytest.raises(PanelError, match=message):
        panel.accept(built, [saved(tmp_path, "one.json", content)])
    assert panel.accepted(built) is None  # nothing was kept


def test_two_different_answers_to_one_item_are_refused(built: Run, tmp_path: Path) -> None:
    content = answers(built, "reviewer-1", best)
    other = spoil(content, answer="missing")
    paths = [saved(tmp_path, "one.json", content), saved(tmp_path, "two.json", other)]
    with pytest.raises(PanelError, match="in two ways"):
        panel.accept(built, paths)


@pytest.mark.parametrize("text", ["", "[]", '{"answers": []}', "{}"])
def test_other_files_are_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "odd.json"
    path.write_text(text)
    with pytest.raises(PanelError, match=r"odd\.json: no answers"):
        panel.read_panel(path)


def test_agreement_is_the_share_of_agreeing_pairs() -> None:
    ratings = pd.DataFrame({
        "kind": "clinical", "item_id": ["a"] * 4 + ["b"] * 4,
        "answer": ["preserved", "preserved", "preserved", "missing", "partial", None, None, None],
    })  # fmt: skip
    table = panel.item_agreement(ratings).set_index("item_id")
    assert table.loc["a", "agreement"] == pytest.approx(3 / 6)  # 3 of the 6 pairs agree
    assert pd.isna(table.loc["b", "agreement"])


def test_the_commands_build_and_read(run: Run, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("AEGIS_RUNS", str(run.root.parent))
    shutil.rmtree(run.secret / "panel", ignore_errors=True)

    def aegis(*arguments: str) -> tuple[int, str]:
        found = CliRunner().invoke(app, ["panel", *arguments, "--run", "toy"])
        return found.exit_code, found.stdout + found.stderr

    assert aegis("read", str(tmp_path / "none.json")) == (
        1, "aegis: run 'toy' has no panel; `aegis panel build` makes one\n"
    )  # fmt: skip
    code, shown = aegis("build", "--reviewers", "2", "--items", "4")
    assert code == 0
    assert "clinical, renderer_a: 2 items" in shown and "2 pages in" in shown
    path = saved(tmp_path, "one.json", answers(run, "reviewer-1", best))
    code, shown = aegis("read", str(path))
    assert code == 0 and "8 of 16 planned ratings are there" in shown
    assert "| clinical | renderer_b |" in shown
