"""Looking into a run by hand: what is shown, and what only a person at the keyboard sees."""

import numpy as np
import pandas as pd
import pytest
from fabricate import fabricate_run
from nbformat import v4

from aegis import explain, listening, looking, report, turn_display
from aegis.errors import TableError
from aegis.tables import PROJECT

ASK = "from aegis.looking import is_interactive; print(is_interactive())"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return fabricate_run(tmp_path_factory.mktemp("run") / "made_up", n_recordings=2, audio=True)


@pytest.fixture
def person(monkeypatch):
    monkeypatch.setattr(looking, "is_interactive", lambda: True)


@pytest.fixture
def edited(run):
    """An edit and its turn."""
    return run.read("edits").iloc[0]


def test_nobody_types_into_a_script_or_an_executed_notebook():
    from nbclient import NotebookClient

    assert not looking.is_interactive()
    notebook = v4.new_notebook(cells=[v4.new_code_cell(ASK)])
    NotebookClient(notebook, resources={"metadata": {"path": str(PROJECT)}}).execute()
    assert notebook.cells[0].outputs[0].text.strip() == "False"


def test_somebody_types_where_the_kernel_may_ask_back():
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3", cwd=str(PROJECT))
    try:
        said = []
        client.execute_interactive(
            ASK, allow_stdin=True, timeout=60,
            output_hook=lambda m: said.append(m["content"].get("text", "")),
        )  # fmt: skip
        assert "True" in "".join(said)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_a_turn_is_heard_whole_by_a_person_only(run, edited, person):
    shown = report.listen(edited["turn_id"], run=run)
    assert shown._repr_html_().count("<audio") == 5
    assert edited["original"] in repr(shown)
    assert edited["original"] in report.compare(edited["turn_id"], run=run)._repr_html_()


def test_without_a_person_originals_are_neither_played_nor_written(run, edited):
    for shown in (
        report.listen(edited["turn_id"], run=run),
        report.compare(edited["turn_id"], run=run),
        report.trace(edited["intention_id"], run=run),
    ):
        for text in (repr(shown), shown._repr_html_()):
            assert edited["original"].lower() not in text.lower()
            assert "five milligrams" not in text
    html = report.listen(edited["turn_id"], run=run)._repr_html_()
    assert 'aria-label="original' not in html
    assert 'aria-label="converted' not in html
    hidden = report.spectrogram(edited["turn_id"], "original", run=run)
    assert "hidden" in repr(hidden)
    assert "base64" not in hidden._repr_html_()


def test_a_condition_with_a_retained_original_is_not_played(run):
    material = listening.load_material(run)
    for turn_id in listening.affected_turns(material):
        view = listening.view_turn(material, turn_id)
        played = set(turn_display.shown_conditions(view, originals=False))
        kept = {
            name
            for edit in view.edits
            for name, (_, original) in edit.outcomes.items()
            if original != "absent"
        }
        assert not played & kept
        assert not played & {"original", "converted"}


def test_the_spectrogram_of_a_tone_is_one_line(run):
    tone = np.sin(2 * np.pi * 1000 * np.arange(16_000) / 16_000).astype(np.float32)
    levels = listening.spectrogram(tone)
    assert levels.shape == (160, 98)  # 31.25 Hz a row; (16,000 - 400) / 160 + 1 frames
    assert set(levels.argmax(axis=0)) == {32}
    assert levels[120:].max() == 0
    assert not listening.spectrogram(np.zeros(800, np.float32)).any()


def test_an_intention_is_traced_through_every_stage(run, edited, person):
    steps = {
        table: rows for _, table, rows in explain.trace_intention(run, edited["intention_id"])
    }
    assert list(steps)[:3] == ["mentions", "substitutions", "edits"]
    assert steps["mentions"]["mention_id"].tolist() == [edited["mention_id"]]
    regions = run.read("regions").set_index("turn_id")["region_id"]
    assert set(steps["rendered"]["item_id"]) <= {
        edited["intention_id"],
        regions[edited["turn_id"]],
    }
    assert edited["original"] in repr(report.trace(edited["intention_id"], run=run))
    with pytest.raises(TableError, match="no intention 'nobody'"):
        report.trace("nobody", run=run)


def test_failures_are_counted_by_reason(run):
    shown = report.failures(run=run)
    found = explain.failure_registry(run)
    assert f"{int(found['rows'].sum())} rows" in repr(shown) or found.empty


def pool_run(run, receipt_of):
    """Three voices in a plane: v1 nearest in traits, v2 close to v1, v3 far from both."""
    angles = {"p1": 0.0, "p2": 5.0, "v1": 100.0, "v2": 120.0, "v3": 200.0}
    at = {
        k: [float(np.cos(np.deg2rad(a))), float(np.sin(np.deg2rad(a)))] for k, a in angles.items()
    }
    profiles = run.read("profiles").head(2)
    voices = run.read("voices").query("eligible and language == 'en'").head(3)
    ids = {"p1": profiles["profile_id"].iloc[0], "p2": profiles["profile_id"].iloc[1]}
    voices = voices.assign(voice_id=["v1", "v2", "v3"])
    run.write("profiles", profiles)
    run.write("voices", voices)
    vectors = [{"profile_id": ids[p], "backend": "flat", "vector": at[p]} for p in ("p1", "p2")]
    run.write("profile_embeddings", pd.DataFrame(vectors))
    units = [{"voice_id": v, "backend": "flat", "vector": at[v]} for v in ("v1", "v2", "v3")]
    run.write("voice_embeddings", pd.DataFrame(units))
    receipt_of({
        "backend": "flat", "k": 75, "min_source_distance": 0.7, "min_target_distance": 0.65,
        "distance_weight": 1.0, "node_budget": 100,
    })  # fmt: skip
    return ids


def test_why_names_what_decided_on_each_candidate(tmp_path, monkeypatch):
    from aegis import receipts
    from aegis.voices import Rules, assign_profiles

    run = fabricate_run(tmp_path / "made_up", n_recordings=1)
    ids = pool_run(
        run,
        lambda given: receipts.write_receipt(
            run, {"stage": explain.ASSIGNMENT_STAGE, "parameters": given}
        ),
    )
    rules = Rules(75, 0.7, 0.65, 1.0, 100)
    assignments, _ = assign_profiles(explain._pool(run, "flat", rules), rules)
    run.write("assignments", assignments)
    first = explain.explain_assignment(run, ids["p1"]).candidates
    # From 0 degrees: v3 at 200 (1 + cos 20 = 1.94), v2 at 120 (1.5), v1 at 100 (1.17).
    assert first["voice_id"].tolist() == ["v3", "v2", "v1"]
    assert first["decision"].tolist() == [
        "chosen", "after the chosen one", "after the chosen one",
    ]  # fmt: skip
    second = explain.explain_assignment(run, ids["p2"]).candidates.set_index("voice_id")
    speaker = assignments.set_index("profile_id").loc[ids["p1"], "speaker"]
    assert second.loc["v3", "decision"] == f"used by {speaker}"
    assert second.loc["v2", "decision"] == "chosen"  # 80 degrees from v3: 1 - cos 80 = 0.83
    shown = report.why(ids["p2"], run=run)
    assert "v2" not in repr(shown)
    monkeypatch.setattr(looking, "is_interactive", lambda: True)
    assert "v2" in repr(report.why(ids["p2"], run=run))


def test_the_exploratory_notebook_runs_alone_and_keeps_its_secrets(tmp_path, monkeypatch):
    import jupytext
    import papermill

    from aegis import receipts
    from aegis.voices import Rules, assign_profiles

    monkeypatch.setenv("AEGIS_RUNS", str(tmp_path))
    run = fabricate_run(tmp_path / "made_up", n_recordings=1, audio=True)
    pool_run(
        run,
        lambda given: receipts.write_receipt(
            run, {"stage": explain.ASSIGNMENT_STAGE, "parameters": given}
        ),
    )
    rules = Rules(75, 0.7, 0.65, 1.0, 100)
    run.write("assignments", assign_profiles(explain._pool(run, "flat", rules), rules)[0])
    source = tmp_path / "explore.ipynb"
    jupytext.write(jupytext.read(PROJECT / "notebooks" / "explore.py"), source)
    papermill.execute_notebook(
        source, tmp_path / "out.ipynb", {"run_name": "made_up"}, cwd=str(PROJECT),
        kernel_name="python3", progress_bar=False,
    )  # fmt: skip
    shown = (tmp_path / "out.ipynb").read_text()
    assert shown.count("audio/mpeg") >= 1
    for original in run.read("edits")["original"]:
        assert original not in shown
