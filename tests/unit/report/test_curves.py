"""Pictures of scores against hidden states, and of run times."""

import pytest

from lurking.errors import OptionError, UnknownNameError
from lurking.report.curves import STYLES, StatesPanel, TimeLine, plot_states, plot_times
from lurking.report.study import save

PANEL = StatesPanel("n = 8", 3, {"cs": {2: -50.0, 3: -20.0, 4: -700.0}, "bic": {2: -60.0, 3: -61.0, 4: -62.0}})


def test_a_panel_shows_scores_and_shapes():
    upper, lower = plot_states([PANEL], "heading").axes
    values = {line.get_label(): list(line.get_ydata()) for line in upper.lines}
    assert values["CS"] == [-50.0, -20.0, -700.0]
    shapes = {line.get_label(): list(line.get_ydata()) for line in lower.lines}
    assert shapes["CS"] == [-30.0, 0.0, -680.0]
    assert shapes["BIC/MDL"] == [0.0, -1.0, -2.0]
    rings = [line for line in lower.lines if line.get_markerfacecolor() == "none"]
    assert [list(ring.get_xdata()) for ring in rings] == [[3], [2]]
    low, high = lower.get_ylim()
    assert low < -680.0
    assert high > 0.0
    assert any(list(line.get_xdata()) == [3, 3] for line in upper.lines)  # the true number of states


def test_the_legend_has_every_method_once():
    other = StatesPanel("n = 16", 2, {"sampled": {2: 0.0}, "cs": {2: 1.0}})
    (legend,) = plot_states([PANEL, other], "heading").legends
    assert [text.get_text() for text in legend.get_texts()] == ["CS", "BIC/MDL", "sampled"]


def test_stars_stand_at_the_true_number_of_states():
    panel = StatesPanel("n = 8", 3, PANEL.lines, {"cs": -10.0})
    picture = plot_states([panel], "heading")
    (star,) = [line for line in picture.axes[0].lines if line.get_marker() == "*"]
    assert (list(star.get_xdata()), list(star.get_ydata())) == ([3], [-10.0])
    assert picture.axes[0].get_ylim()[1] > -10.0
    assert picture.legends[0].get_texts()[-1].get_text() == "EM begun at the generating parameters"


def test_times_are_drawn_here_and_as_printed():
    lines = [TimeLine("em", {100: 0.1, 400: 0.4}, {1600: 500.0}), TimeLine("mled", {100: 1e-5, 400: 2e-5}, {})]
    (axes,) = plot_times(lines, "times").axes
    drawn = [(list(line.get_xdata()), list(line.get_ydata())) for line in axes.lines]
    assert ([100, 400], [0.1, 0.4]) in drawn
    assert ([1600], [500.0]) in drawn
    assert axes.get_xscale() == axes.get_yscale() == "log"
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["100", "400", "1600"]


def test_the_same_picture_gives_the_same_bytes(tmp_path):
    files = [save(plot_states([PANEL], "heading"), tmp_path, name) for name in ("one", "two")]
    assert files[0][0].read_bytes() == files[1][0].read_bytes()


def test_styles_tell_methods_apart():
    looks = {(style.color, style.marker, style.is_dashed) for style in STYLES.values()}
    assert len(looks) == len(STYLES)


def test_refusals():
    with pytest.raises(OptionError, match="no panels"):
        plot_states([], "")
    with pytest.raises(OptionError, match="no times"):
        plot_times([], "")
    with pytest.raises(UnknownNameError, match="unknown method 'aic'"):
        plot_states([StatesPanel("", 2, {"aic": {2: 0.0}})], "")
