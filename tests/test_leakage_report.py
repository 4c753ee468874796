"""The folder command end to end on simulated embeddings, score files and real sounds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import soundfile
from typer.testing import CliRunner

from aegis import leakage_report, pieces, simulator
from aegis.cli import app
from aegis.engines import EngineInfo
from aegis.errors import AudioError, ManifestError, ParamError
from aegis.leakage import exact_search
from aegis.leakage_tables import Settings, component_correlations
from aegis.nearest import faiss_search
from aegis.segments import ORIGINAL
from aegis.simulator import Anonymiser, World

QUICK = Settings(n_draws=50, n_draws_soft=50, n_trials=400, n_splits=10, lengths=(1, 3))


def given(folder: Path) -> tuple[Path, Path]:
    """META.csv and embeddings of a simulated system with two pseudo-profiles."""
    made = simulator.simulate(
        World(24, 2, 3, 16, 0.6), [Anonymiser("sim", 0.5)], np.random.default_rng(0)
    )
    originals = made.of(ORIGINAL).table
    columns = ["speaker", "session", "sex", "age", "accent", "text"]
    meta = originals[["source", *columns]].rename(columns={"source": "path"})
    meta.to_csv(folder / "META.csv", index=False)
    sets = np.array(["original", "anonymised", "anonymised2"])[made.table["pseudo_profile"]]
    np.savez(
        folder / "e.npz", path=made.table["source"].to_numpy(str), set=sets,
        simulated=made.vectors["simulated"],
    )  # fmt: skip
    return folder / "META.csv", folder / "e.npz"


def test_given_embeddings_give_all_tables_and_one_page(tmp_path):
    meta, npz = given(tmp_path)
    options = leakage_report.Options(
        tmp_path / "out", meta=meta, embeddings=npz, name="sim", settings=QUICK
    )
    page = leakage_report.run_report(options).read_text()
    tables = {path.stem: pd.read_csv(path) for path in (tmp_path / "out").glob("*.csv")}
    assert {"files", "rates", "attacks", "soft", "search", "structure", "users", "values"} <= set(
        tables
    )
    rates = tables["rates"].set_index(["trial_type", "pseudo_profile"])
    assert set(rates["status"]) == {"ok"}
    assert rates.loc[("oaoa", 1), "eer"] > rates.loc[("oo", 0), "eer"]
    attacks = tables["attacks"]
    assert set(attacks["level"]) == {"ignorant", "lazy_informed", "semi_informed"}
    assert set(attacks["n_train_speakers"]) == {0, 12}
    assert (
        len(tables["users"]) == 2 * 2 * 2 * 2 * 2 * 3
    )  # systems, regimes, L, PT/FT, scoring, FPR
    assert "src='data:image/png" in page
    assert "http" not in page
    assert "original against anonymised 2" in page
    assert tables["files"]["status"].value_counts().to_dict() == {"ok": 3 * 144}


def test_score_file_alone(tmp_path):
    rng = np.random.default_rng(0)
    target = np.arange(400) < 200
    path = tmp_path / "scores.csv"
    pd.DataFrame({
        "score": rng.standard_normal(400) + 2 * target, "target": target.astype(int),
        "enrol": [f"s{i % 20}" for i in range(400)],
    }).to_csv(path, index=False)  # fmt: skip
    result = CliRunner().invoke(app, ["leakage", "--trials", str(path), "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    (row,) = pd.read_csv(tmp_path / "score_file.csv").to_dict("records")
    # Two normals two apart: EER is Phi(-1) = 0.159.
    assert row["eer"] == pytest.approx(0.159, abs=0.05)
    assert row["ci_low"] < row["eer"] < row["ci_high"]
    assert 0 < row["min_cllr"] <= row["cllr"] < 1


def test_nothing_to_measure_is_said(tmp_path):
    with pytest.raises(ParamError, match="give --original"):
        leakage_report.run_report(leakage_report.Options(tmp_path))


class LoudnessEncoder:
    """A stand-in encoder: levels in bands; the same sound has the same vector."""

    info = EngineInfo("encoder", "bands", "1", "none")
    dimension = 8

    def embed(self, windows):
        rows = []
        for window in windows:
            power = np.abs(np.fft.rfft(window, 16_000)) ** 2
            rows.append([np.log(part.mean() + 1e-9) for part in np.array_split(power, 8)])
        return np.asarray(rows, dtype=np.float32)


@pytest.fixture
def sounds(tmp_path, monkeypatch, stand_in):
    """Eight speakers, two files each; one anonymised file is missing, one is too short."""
    stand_in("encoder", "bands", LoudnessEncoder)
    monkeypatch.setattr("aegis.work.sounds.cohort_centre", lambda name: np.zeros(8))
    rng, lines = np.random.default_rng(0), ["path,speaker,sex"]
    for speaker in range(8):
        colour = rng.standard_normal(64)
        for number in range(2):
            name = f"s{speaker}/u{number}.wav"
            lines.append(f"{name},s{speaker},{'fm'[speaker % 2]}")
            for folder in ("original", "anonymised"):
                path = tmp_path / folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                noise = np.convolve(rng.standard_normal(12 * 16_000), colour, "same")
                soundfile.write(path, noise / np.abs(noise).max(), 16_000)
    (tmp_path / "anonymised/s0/u0.wav").unlink()
    soundfile.write(tmp_path / "anonymised/s1/u0.wav", np.ones(800) / 2, 16_000)
    (tmp_path / "META.csv").write_text("\n".join(lines))
    return tmp_path


def test_folder_run_counts_losses_and_resumes(sounds):
    arguments = [
        "leakage", "--original", str(sounds / "original"), "--anonymised",
        str(sounds / "anonymised"), "--meta", str(sounds / "META.csv"), "--out",
        str(sounds / "out"), "--backends", "bands", "--n-draws", "20", "--n-trials", "100",
        "--rates-hz", "16000", "--lengths-s", "0,10",
    ]  # fmt: skip
    first = CliRunner().invoke(app, arguments)
    assert first.exit_code == 0, first.output
    assert "embedded 31 of 31 (0 kept" in first.output
    files = pd.read_csv(sounds / "out" / "files.csv")
    assert files.groupby(["set", "status"]).size().to_dict() == {
        ("original", "ok"): 16, ("anonymised", "ok"): 14, ("anonymised", "missing"): 1,
        ("anonymised", "failed"): 1,
    }  # fmt: skip
    rates = pd.read_csv(sounds / "out" / "rates.csv")
    assert set(rates["condition"]) == {"16 kHz, whole", "16 kHz, 10 s"}
    oaoa = rates[(rates["trial_type"] == "oaoa") & (rates["condition"] == "16 kHz, whole")]
    # Anonymised files of 14 recordings; each is paired with the speaker's other original.
    assert oaoa["n_target"].tolist() == [14]
    kept = (sounds / "out" / "rates.csv").read_text()
    second = CliRunner().invoke(app, arguments)
    assert "(30 kept" in second.output
    assert (sounds / "out" / "rates.csv").read_text() == kept


def test_no_usable_pair_is_an_error(sounds):
    for path in (sounds / "anonymised").rglob("*.wav"):
        path.unlink()
    soundfile.write(sounds / "anonymised" / "other.wav", np.ones(16_000) / 2, 16_000)
    options = leakage_report.Options(
        sounds / "out", sounds / "original", sounds / "anonymised", meta=sounds / "META.csv",
        backends=("bands",), rates_hz=(16_000,), settings=QUICK,
    )  # fmt: skip
    with pytest.raises(ManifestError, match="no anonymised recording"):
        leakage_report.run_report(options)
    assert (sounds / "out" / "files.csv").exists()


def test_pieces_and_their_means():
    assert [p.size for p in pieces.cut_pieces(np.ones(12 * 16_000))] == [80_000, 80_000, 32_000]
    assert len(pieces.cut_pieces(np.ones(130 * 16_000), skip_s=60)) == 14
    assert len(pieces.cut_pieces(np.ones(100 * 16_000), skip_s=60)) == 20
    with pytest.raises(AudioError, match=r"0\.50 s of sound"):
        pieces.cut_pieces(np.ones(8_000))
    vectors = np.array([[1.0, 0], [0, 1.0], [1.0, 0]])
    seconds = np.array([5.0, 5.0, 2.5])
    assert pieces.join_pieces(vectors, seconds, 5).tolist() == [[1, 0], [0, 1]]
    assert pieces.join_pieces(vectors, seconds, 10) == pytest.approx(np.array([[0.5**0.5] * 2]))
    whole = pieces.join_pieces(vectors, seconds, 0)
    assert whole == pytest.approx(np.array([[7.5, 5]]) / np.hypot(7.5, 5))
    assert pieces.join_pieces(vectors, seconds, 30).shape == (0, 2)
    assert pieces.condition_name(8000, 30) == "8 kHz, 30 s"


def test_narrow_band_keeps_low_tones_and_loses_high_ones():
    time = np.arange(16_000) / 16_000
    for hertz, kept in ((1_000, True), (6_000, False)):
        tone = np.sin(2 * np.pi * hertz * time).astype(np.float32)
        out = pieces.narrow(tone, 8_000)
        assert out.size == tone.size
        assert (np.abs(out[4000:12000]).max() > 0.9) == kept


def test_faiss_equals_the_exact_search():
    rng = np.random.default_rng(0)
    gallery, probes = rng.standard_normal((50, 8)), rng.standard_normal((30, 8))
    assert (faiss_search(gallery, probes, 5, block=7) == exact_search(gallery, probes, 5)).all()


def test_correlations_of_components_say_when_ranks_are_tied():
    """NIST's Spearman of 1.0 rests on a tie: two systems share P_assoc 0.997."""
    values = {"p_attr": [0.921, 0.645, 1.0], "p_assoc": [0.997, 0.903, 0.997],
              "p_subgroup": [0.552, 0.542, 0.606]}  # fmt: skip
    soft = pd.DataFrame([
        {"system": name, "test_set": "all", "set": "base", "quantity": quantity, "value": v[i]}
        for quantity, v in values.items() for i, name in enumerate("abc")
    ])  # fmt: skip
    table = component_correlations(soft).set_index(["component", "other"])
    assert not table.loc[("p_attr", "p_assoc"), "decidable"]
    assert table.loc[("p_attr", "p_subgroup"), "spearman"] == pytest.approx(1.0)
    assert table.loc[("p_attr", "p_subgroup"), "decidable"]
