"""What notebooks show."""

import numpy as np
import pandas as pd
import pytest
import seaborn.objects as so

from aegis import report
from aegis.audio import write_wav


def test_percent_says_its_denominator():
    assert report.percent(12, 40) == "12/40 (30.0 %)"
    assert report.percent(0, 0) == "0/0 (not defined)"
    table = pd.DataFrame({"status": ["heard", "lost", "heard", None]})
    assert report.share(table, "status", "heard") == "2/4 (50.0 %)"


def test_rates_show_counts_unknown_and_interval():
    frame = pd.DataFrame(
        {"condition": ["a", "b"], "numerator": [3, 0], "denominator": [4, 0],
         "unknown": [1, 0], "ci_low": [0.5, np.nan], "ci_high": [0.9, np.nan]}
    )  # fmt: skip
    html = report.rates(frame).to_html()
    for text in ("75", "50.0 to 90.0", "not estimable", "not_applicable", "unknown", "–"):
        assert text in html


def test_table_formats_whole_numbers_without_decimals():
    html = report.table(pd.DataFrame({"n": [1000], "x": [0.123]})).to_html()
    assert "1,000" in html
    assert "0.12" in html


def test_a_table_without_rows_says_so():
    assert report.table(pd.DataFrame(columns=["status", "n_turns"])).data == (
        "*No rows.* (The table would list: status, n turns.)"
    )


def test_both_ways_to_draw_have_one_style():
    import matplotlib.pyplot as plt
    from matplotlib.colors import to_hex
    from seaborn.objects import Plot

    with plt.rc_context():
        report.style()
        for settings in (plt.rcParams, Plot.config.theme):
            assert settings["axes.facecolor"] == "white"
            colours = settings["axes.prop_cycle"].by_key()["color"]
            assert [to_hex(colour) for colour in colours] == report.PALETTE


def test_player_holds_sound_and_refuses_originals(tmp_path):
    signal = 0.1 * np.sin(np.arange(16_000) / 20).astype(np.float32)
    write_wav(tmp_path / "converted" / "a.wav", signal)
    assert "data:audio/mpeg;base64," in report.player(tmp_path / "converted" / "a.wav").data
    write_wav(tmp_path / "secret" / "a.wav", signal)
    with pytest.raises(ValueError, match="originals are never shown"):
        report.player(tmp_path / "secret" / "a.wav")


def test_a_seaborn_object_is_shown_and_axes_are_no_text():
    rows = pd.DataFrame({"a": [1, 2], "b": [3, 4]})
    shown = report.figure(rows, lambda: so.Plot(rows, x="a", y="b").add(so.Dot()))
    image, _ = shown._repr_png_()
    assert image.startswith(b"\x89PNG")
    assert report.figure(rows, lambda: rows.plot(x="a", y="b")) is None


def test_an_empty_figure_is_said_and_not_drawn():
    rows = pd.DataFrame({"a": [1]})
    drawn: list[int] = []
    assert report.figure(rows, lambda: drawn.append(1)) is None
    assert drawn == [1]
    empty = report.figure(rows.iloc[:0], lambda: pytest.fail("drawn without rows"))
    assert "no rows" in empty.data
