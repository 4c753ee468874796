"""Variants of the toy study: what they share, what they run, and that the parent stays."""

from __future__ import annotations

import shutil
from pathlib import Path

import pandas as pd
import pytest
from conftest import Toy
from toy_study import tables_of
from typer.testing import CliRunner

from aegis import pipeline
from aegis.cli import app
from aegis.errors import ParamError, StageFailed
from aegis.sweep import (
    Axis,
    computed_s,
    grid,
    make_setting,
    parse_axes,
    run_cost_s,
    run_grid,
    run_variant,
    share,
)
from aegis.sweep import variant_run as variant_place
from aegis.tables import Run


def variant_of(toy: Toy, *overrides: str, until: str = "13", start: str | None = None):
    values = dict(text.split("=") for text in overrides)
    study = pipeline.load_study(toy.params)
    setting = make_setting(values)
    return run_variant(toy.open(), "trial", setting, until, start, study, toy.scheduler)


def contents(run: Run) -> dict[str, bytes]:
    folders = [run.root / name for name in ("tables", "secret", "wav", "receipts")]
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return {run.relative(path): path.read_bytes() for path in files}


def test_axes_are_read_in_the_declared_types(toy_folder: Path) -> None:
    axes = parse_axes(["00.n_items=2,3", "01_transcribe.ending=well;dead, or so"])
    assert axes == [
        Axis("00_corpora", "n_items", (2, 3)),
        Axis("01_transcribe", "ending", ("well", "dead, or so")),
    ]
    names = [tuple(values.values()) for _, values in grid(axes)]
    assert names == [(2, "well"), (2, "dead, or so"), (3, "well"), (3, "dead, or so")]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["00_corpora.n_items"], "expected NOTEBOOK.NAME=VALUE,VALUE"),
        (["00_corpora.n_item=1"], "did you mean 'n_items'"),
        (["00_corpora.n_items=1,x"], "expected int"),
        (["00_corpora.n_items=1,1"], "given twice"),
        (["00_corpora.n_items=1", "00.n_items=2"], "named once"),
        (["77_none.x=1"], "0 stages have that name"),
    ],
)
def test_a_wrong_axis_is_named(toy_folder: Path, texts: list[str], message: str) -> None:
    with pytest.raises(ParamError, match=message):
        parse_axes(texts)


def test_settings_that_differ_have_different_folders() -> None:
    close = [make_setting({"03.x": value}) for value in ("a/b", "a-b", "a b")]
    assert len({setting.name for setting in close}) == 3
    assert all("/" not in setting.name for setting in close)


def test_only_affected_stages_and_new_items_run(done: Toy) -> None:
    parent = done.open()
    before = contents(parent)
    made = variant_of(done, "00_corpora.n_items=6")
    assert made.executed == ("00_corpora", "01_transcribe", "13_contrasts")
    reused = pd.read_json(made.run.root / "receipts" / "00_corpora.json", typ="series")["reused"]
    assert reused == 4  # of 6 tones four are the parent's
    new_s = run_cost_s(made.run) - run_cost_s(parent)  # two tones and their halves
    assert computed_s(parent, made.run) == pytest.approx(new_s)
    assert computed_s(parent, parent) == 0
    whole = run_cost_s(made.run)
    items = made.run.secret / "items"
    shutil.copytree(items / "00_corpora", items / "M_frontends")  # an appendix is no cost of a run
    assert run_cost_s(made.run) == whole > 0
    assert computed_s(parent, made.run) > new_s
    claim = made.run.read("claims").set_index("claim_id")["value"]["total_s"]
    assert claim == pytest.approx(6 * 800 / 16000)  # a tone has 1600 samples, its half 800
    assert contents(parent) == before
    assert not any(done.status().values())


def test_stages_before_the_parameter_are_taken_as_they_are(done: Toy) -> None:
    made = variant_of(done, "01_transcribe.sleep_s=0.001")
    assert made.executed == ("01_transcribe",)  # its tables are the same, so 13 still holds
    assert variant_of(done, "01_transcribe.sleep_s=0.001").executed == ()
    again = variant_of(done, "01_transcribe.sleep_s=0.002", until="01")
    assert not again.run.has("claims")  # nothing would keep a later stage's table true


def test_a_variant_follows_its_parent_but_keeps_what_it_wrote(done: Toy) -> None:
    made = variant_of(done, "01_transcribe.sleep_s=0.001")
    assert done.run("00_corpora.n_items=5") == ["00_corpora", "01_transcribe", "13_contrasts"]
    own = made.run.root / "receipts" / "01_transcribe.json"
    kept = own.read_bytes()
    order = pipeline.stage_order(pipeline.load_study(done.params), pipeline.find_notebooks())
    assert share(done.open(), made.run, order) > 0
    assert len(made.run.read("recordings")) == 5
    assert own.read_bytes() == kept
    assert variant_of(done, "01_transcribe.sleep_s=0.001").executed[0] == "01_transcribe"
    assert len(tables_of(made.run)["turn_times"]) == 5


def test_inputs_may_be_changed_before_the_first_stage(done: Toy) -> None:
    def halve(run: Run) -> None:
        run.write("recordings", run.read("recordings").head(2))

    setting = make_setting({}, "half")
    made = run_variant(
        done.open(), "trial", setting, "13", "01", None, done.scheduler, prepare=halve
    )
    assert made.executed == ("01_transcribe", "13_contrasts")
    assert len(made.run.read("turn_times")) == 2
    assert len(done.open().read("recordings")) == 4


def test_an_unfinished_parent_is_refused(toy: Toy) -> None:
    toy.run("00_corpora.n_items=1")
    (toy.open().root / "receipts" / "00_corpora.json").unlink()
    with pytest.raises(StageFailed, match="lacks 00_corpora"):
        variant_of(toy, "01_transcribe.sleep_s=0.1")
    with pytest.raises(ParamError, match="comes after the last stage"):
        variant_of(toy, "01_transcribe.sleep_s=0.1", until="00")


def test_a_grid_gives_one_tidy_table_and_a_plot(done: Toy) -> None:
    axes = parse_axes(["00_corpora.n_items=3,4"])
    study, said = pipeline.load_study(done.params), []
    table, folder = run_grid(done.open(), study, axes, "13", done.scheduler, say=said.append)
    measured = table.groupby("00_corpora.n_items")["measure"].apply(list)
    assert measured[3] == measured[4] != []
    assert set(table["00_corpora.n_items"]) == {3, 4}
    saved = pd.read_csv(folder / "results.csv")
    assert saved["measure"].tolist() == table["measure"].tolist()
    assert (folder / "results.svg").read_text().startswith("<?xml")
    assert len(said) == 2 and said[1].endswith("nothing run in 0.0 s")
    settings = {setting.name for setting, _ in grid(axes)}
    assert set(table["setting"]) == settings
    place = variant_place(done.open(), folder.name, grid(axes)[0][0])
    assert place.secret.stat().st_mode & 0o777 == 0o700


def test_the_command_says_what_it_ran_and_what_is_wrong(done: Toy) -> None:
    def aegis(*arguments: str) -> tuple[int, str]:
        found = CliRunner().invoke(app, ["sweep", str(done.params), *arguments])
        return found.exit_code, found.stdout + found.stderr

    code, shown = aegis("00_corpora.n_items=4", "--until", "01", "--cluster", done.scheduler)
    assert code == 0
    assert "1/1 n-items-4" in shown and "nothing run" in shown
    assert "results.csv" in shown
    code, shown = aegis("00_corpora.n_items=4", "--run", "none")
    assert code == 1 and "no folder" in shown
    code, shown = aegis("00_corpora.n_item=4")
    assert code == 1 and "did you mean 'n_items'" in shown


def test_a_damaged_list_of_shared_files_stops_the_sweep(done: Toy, tmp_path: Path) -> None:
    variant = Run(tmp_path / "variant")
    order = ["00_corpora", "01_transcribe", "13_contrasts"]
    share(done.open(), variant, order)
    (variant.root / "shared.json").write_text('{"tables/claims')
    with pytest.raises(StageFailed, match=r"shared\.json of variant cannot be read: delete"):
        share(done.open(), variant, order)
