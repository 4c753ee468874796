"""Pages of a run whose speakers have two pseudo-voices, one of them infeasible.

The pages' own cells run in this process on a made-up run, with stand-ins for engines.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from conftest import StandIn
from fabricate import INFEASIBLE, fabricate_run
from test_work_leakage import Bands

from aegis.engines import EngineInfo
from aegis.params import cells
from aegis.pipeline import find_notebooks
from aegis.tables import Run

LACKING = {"toy/c02/S1", "toy/c02/S2"}
OWN = ("scorecard", "claims", "linkage", "trials", "eligibility")


class Octave:
    """Speaks a turn at twice its pitch."""

    info = EngineInfo("converter", "octave", "1", "none")

    def convert(self, source, voice, context, seed):
        return np.resize(source[::2], source.size)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return fabricate_run(tmp_path_factory.mktemp("made") / "toy", n_recordings=3, audio=True)


@pytest.fixture
def run(
    made: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stand_in: StandIn
) -> Iterator[Run]:
    monkeypatch.setenv("AEGIS_RUNS", str(tmp_path))
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setattr(plt, "show", lambda: plt.close("all"))
    for key, engine in {("converter", "octave"): Octave, ("encoder", "bands"): Bands}.items():
        stand_in(*key, engine)
    shutil.copytree(made.root, tmp_path / "toy")
    yield Run(tmp_path / "toy")
    plt.close("all")


def run_page(name: str, run: Run, **values: Any) -> dict[str, Any]:
    """Execute a notebook's cells on the run; what its names then hold."""
    namespace: dict[str, Any] = {"__name__": name}
    for head, text in cells(find_notebooks()[name].read_text("utf-8")):
        if head.startswith("[markdown]"):
            continue
        exec(compile(text, name, "exec"), namespace)
        if '"parameters"' in head:
            namespace |= {"run_name": run.root.name, **values}
    return namespace


def test_an_infeasible_second_voice_is_a_failed_row_of_its_own(run: Run) -> None:
    """Three units for two speakers: the second round has one left for both, so neither gets it."""
    voices = run.read("voices")
    voices["eligible"] = voices["voice_id"] != "v4"
    run.write("voices", voices)
    free = {"min_source_distance": 0.0, "min_target_distance": 0.0}
    page = run_page("03_assign_voices", run, n_pseudo_profiles=2, **free)
    english = page["assignments"].query("recording_id != 'toy/c02'")
    counts = english.groupby(["pseudo_profile", "status"]).size().to_dict()
    assert counts == {(1, "ok"): 4, (2, "failed"): 4}
    assert len(page["done"]) == 4  # none of the French speakers: every unit is English
    summary = page["summary"].query("recording_id == 'toy/c00'").set_index("pseudo_profile")
    assert summary["status"].to_dict() == {1: "ok", 2: "failed"}
    assert summary["n_assigned"].to_dict() == {1: 2, 2: 0}


def test_a_second_release_lacks_the_turns_without_a_voice(run: Run) -> None:
    run_page("04_convert", run, converter="octave", n_pseudo_profiles=2)
    assert set(run.read("converted")["status"]) == {"ok"}
    more = run.read("converted_more")
    assert len(more) == len(run.read("turns")) and set(more["pseudo_profile"]) == {2}
    lost = more[more["status"] != "ok"]
    assert set(lost["profile_id"]) == LACKING and len(lost) == 8
    assert set(lost["reason"]) == {f"no pseudo-voice: {INFEASIBLE}"}
    made = more[more["status"] == "ok"]
    assert made["file"].str.contains("converted_2").all()
    assert all((run.root / file).exists() for file in made["file"])


def test_pages_of_the_first_release_do_not_see_the_second(run: Run) -> None:
    """Linkage, claims and scorecard with both pseudo-profiles are those with the first alone."""
    linkage = {"backends": ["bands"], "centre": False, "n_draws": 50}

    def measure() -> dict[str, pd.DataFrame]:
        run_page("12_linkage", run, **linkage)
        run_page("13_contrasts", run, n_draws=50, n_draws_linkage=50)
        run_page("14_scorecard", run)
        return {name: run.read(name) for name in OWN}

    both = measure()
    for name in ("assignments", "assignment_summary"):
        table = run.read(name)
        run.write(name, table[table["pseudo_profile"] == 1])
    first = measure()
    for name, table in both.items():
        assert len(table)
        pd.testing.assert_frame_equal(table, first[name])
    # Each profile against the voice that it was given: one a profile, not one a pseudo-profile.
    assert (both["trials"]["protocol"] == "target_voice").sum() == 6
