"""Pictures of a study of scores: what is marked where, which ranges are shared, what is left out."""

import math
import os
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex

from lurking.errors import DataError, OptionError, UnknownNameError
from lurking.report.study import STYLES, Panel, plot_panels, plot_scores, save, style_of

mpl.use("Agg")
DIMENSIONS = np.asarray([18, 30, 30, 50, 66])
TRUE = 3
NAN, INF = math.nan, math.inf


def make_scores():
    """Return two rows of panels; the winners are 4, 0, 3 and 1, then 2, 3, none and none."""
    return {
        10: {
            "map": np.asarray([-50.0, -45.0, -44.0, -41.0, -40.0]),
            "bic": np.asarray([-52.0, -55.0, -56.0, -60.0, -70.0]),
            "vb": np.asarray([-50.0, -49.0, -49.5, -47.0, -48.0]),
            "ais": np.asarray([NAN, -42.0, -43.0, -INF, INF]),
        },
        640: {
            "map": np.asarray([-900.0, -910.0, -800.0, -810.0, -805.0]),
            "bic": np.asarray([-980.0, -INF, -950.0, -850.0, -890.0]),
            "vb": np.asarray([NAN, -INF, NAN, INF, NAN]),
        },
    }


def panel_grid(figure, columns):
    return np.asarray(figure.axes).reshape(-1, columns)


def drawn(axes, label):
    """Return the points of the line of this label, or None where there is none."""
    found = [line for line in axes.lines if line.get_label() == label]
    assert len(found) <= 1
    return [tuple(map(float, point)) for point in found[0].get_xydata()] if found else None


def texts(axes):
    return [text.get_text() for text in axes.texts]


def legend_names(figure):
    (legend,) = figure.legends
    return [text.get_text() for text in legend.get_texts()]


@pytest.fixture(scope="module")
def scores_figure():
    return plot_scores(make_scores(), DIMENSIONS, TRUE)


def test_scores_have_a_row_for_each_n_and_a_column_for_each_method(scores_figure):
    grid = panel_grid(scores_figure, 4)
    assert grid.shape == (2, 4)
    assert [axes.get_title() for axes in grid[0]] == ["MAP", "BIC", "VB", "AIS\nas in the paper"]
    assert [axes.get_title() for axes in grid[1]] == [""] * 4
    assert [axes.get_ylabel() for axes in grid[:, 0]] == ["n = 10", "n = 640"]
    assert all(axes.get_ylabel() == "" for axes in grid[:, 1:].flat)


@pytest.mark.parametrize(
    ("row", "column", "true", "winner"),
    [
        (0, 0, (50, -41), (66, -40)),
        (0, 1, (50, -60), (18, -52)),
        (0, 2, (50, -47), (50, -47)),
        (0, 3, None, (30, -42)),
        (1, 0, (50, -810), (30, -800)),
        (1, 1, (50, -850), (50, -850)),
        (1, 2, None, None),
        (1, 3, None, None),
    ],
)
def test_circle_is_the_true_structure_and_cross_the_winner(scores_figure, row, column, true, winner):
    axes = panel_grid(scores_figure, 4)[row, column]
    assert drawn(axes, "true") == (None if true is None else [true])
    assert drawn(axes, "winner") == (None if winner is None else [winner])
    markers = {line.get_label(): line.get_marker() for line in axes.lines}
    assert markers.get("true", "o") == "o"
    assert markers.get("winner", "x") == "x"


def test_values_that_are_not_finite_are_left_out(scores_figure):
    grid = panel_grid(scores_figure, 4)
    assert grid[0, 3].lines[0].get_xydata().tolist() == [[30, -42], [30, -43]]
    assert grid[1, 1].lines[0].get_xydata().tolist() == [[18, -980], [30, -950], [50, -850], [66, -890]]
    assert grid[0, 0].lines[0].get_xydata().tolist() == [
        [d, v] for d, v in zip(DIMENSIONS, make_scores()[10]["map"], strict=True)
    ]


def test_a_panel_without_a_finite_value_says_so_and_no_other_does(scores_figure):
    said = [["not computed" in texts(axes) for axes in row] for row in panel_grid(scores_figure, 4)]
    assert said == [[False] * 4, [False, False, True, True]]
    empty = panel_grid(scores_figure, 4)[1, 2:]
    assert all(not axes.lines for axes in empty)


def test_panels_of_a_row_share_the_range_that_covers_their_values(scores_figure):
    for row, (low, high) in zip(panel_grid(scores_figure, 4), [(-70, -40), (-980, -800)], strict=True):
        limits = {axes.get_ylim() for axes in row}
        assert len(limits) == 1
        bottom, top = limits.pop()
        assert low - 0.15 * (high - low) < bottom < low
        assert high < top < high + 0.15 * (high - low)
        assert 2 <= sum(bottom <= tick <= top for tick in row[0].get_yticks()) <= 5
    assert len({axes.get_xlim() for axes in scores_figure.axes}) == 1
    left, right = scores_figure.axes[0].get_xlim()
    assert left < 18
    assert right > 66
    assert scores_figure.axes[0].get_xticks().tolist() == [18, 50, 66]


@pytest.mark.parametrize("step", [0.25, 3e6])
def test_ticks_of_large_scores_are_written_out(step):
    figure = plot_scores({10240: {"vb": -83000.0 - step * np.arange(5.0)}}, DIMENSIONS, TRUE)
    (axes,) = figure.axes
    labels = [label.get_text().replace("\N{MINUS SIGN}", "-") for label in axes.get_yticklabels()]
    assert [float(label) for label in labels] == pytest.approx(axes.get_yticks().tolist())
    assert axes.yaxis.get_offset_text().get_text() == ""


def test_a_true_structure_next_to_an_end_has_no_tick_that_overlaps():
    dimensions = np.asarray([18, 20, 66])
    figure = plot_scores({10: {"vb": np.asarray([-3.0, -2.0, -1.0])}}, dimensions, 1)
    assert figure.axes[0].get_xticks().tolist() == [18, 66]


def test_the_first_of_equal_scores_wins_and_one_value_has_a_range():
    figure = plot_scores({10: {"vb": np.full(5, -7.0)}, 20: {"vb": np.full(5, NAN)}}, DIMENSIONS, TRUE)
    assert drawn(figure.axes[0], "winner") == [(18, -7)]
    assert figure.axes[0].get_ylim() == (-8, -6)
    assert texts(figure.axes[1]) == ["not computed"]


def test_scores_have_a_legend_of_both_marks(scores_figure):
    assert legend_names(scores_figure) == ["true structure", "highest score"]
    assert [handle.get_marker() for handle in scores_figure.legends[0].legend_handles] == ["o", "x"]


N = (10, 40, 160, 640, 2560, 10240)


def make_panels():
    ranks = {
        "sampled": (N, (92.0, 60.0, NAN, 5.0, 1.0, 1.0)),
        "vb*": (N, (120.0, 100.0, 90.0, 20.0, 11.0, 1.0)),
        "vb": (N, (118.0, 100.0, 80.0, 17.0, 11.0, 1.0)),
        "bic": (N, (127.0, 127.0, 119.0, 104.0, 25.0, 2.0)),
    }
    divergences = {"bic": (N[:4], (900.0, 0.0, 40.0, 0.5)), "vb": (N[:4], (7.0, INF, 0.25, 0.5))}
    return [
        Panel("a  Rank", "rank", ranks, is_log=True, is_reversed=True),
        Panel("b  Rank", "rank", ranks, is_reversed=True),
        Panel("c  Divergence", "nats", divergences, is_log=True),
        Panel("d  Success", "share", {"ais": (N, (NAN,) * 6), "map": (N, (0, 0, 0.25, 0.5, 0.75, 1))}, level=1.5),
    ]


@pytest.fixture(scope="module")
def panels_figure():
    return plot_panels(make_panels(), "four panels")


def test_panels_stand_side_by_side_with_their_words(panels_figure):
    assert len(panels_figure.axes) == 4
    places = [axes.get_position() for axes in panels_figure.axes]
    assert all(left.x1 < right.x0 for left, right in pairwise(places))
    assert len({round(place.y0, 6) for place in places}) == 1
    assert [axes.get_title(loc="left") for axes in panels_figure.axes] == [panel.title for panel in make_panels()]
    assert [axes.get_ylabel() for axes in panels_figure.axes] == ["rank", "rank", "nats", "share"]
    assert panels_figure.get_suptitle() == "four panels"


def test_rows_are_logarithmic_with_the_same_range_in_all_panels(panels_figure):
    for axes in panels_figure.axes:
        assert axes.get_xscale() == "log"
        assert axes.get_xticks().tolist() == list(N)
        assert [label.get_text() for label in axes.get_xticklabels()] == [str(n) for n in N]
    (limits,) = {axes.get_xlim() for axes in panels_figure.axes}
    assert limits[0] < 10
    assert limits[1] > 10240


def test_rows_between_the_usual_ticks_name_their_ends():
    (axes,) = plot_panels([Panel("a", "b", {"vb": ((400, 480, 560), (1, 2, 3))})], "").axes
    assert axes.get_xticks().tolist() == [400, 560]


def test_ranks_have_one_at_the_top_and_other_values_do_not(panels_figure):
    first, second, third, fourth = panels_figure.axes
    assert [axes.get_yscale() for axes in panels_figure.axes] == ["log", "linear", "log", "linear"]
    for axes in (first, second):
        bottom, top = axes.get_ylim()
        assert bottom > 127
        assert -6 < top < 1
        ticks = [tick for tick in axes.get_yticks() if top <= tick <= bottom]
        assert min(ticks) == 1
        assert len(ticks) >= 4
    for axes in (third, fourth):
        bottom, top = axes.get_ylim()
        assert bottom < top


def test_values_without_a_place_leave_gaps(panels_figure):
    first, _, third, fourth = panels_figure.axes
    assert drawn(first, "sampled (variational path)")[1::2] == [(40, 60), (640, 5), (10240, 1)]
    assert np.isnan(drawn(first, "sampled (variational path)")[2][1])
    assert [math.isnan(value) for _, value in drawn(third, "BIC")] == [False, True, False, False]
    assert [math.isnan(value) for _, value in drawn(third, "VB")] == [False, True, False, False]
    assert drawn(fourth, "MAP")[0] == (10, 0)
    bottom, top = third.get_ylim()
    assert 0.1 < bottom < 0.25
    assert 900 < top < 2000


def test_a_level_is_a_dotted_line_within_sight(panels_figure):
    dotted = [[line for line in axes.lines if line.get_linestyle() == ":"] for axes in panels_figure.axes]
    assert [len(lines) for lines in dotted] == [0, 0, 0, 1]
    assert list(dotted[3][0].get_ydata()) == [1.5, 1.5]
    assert panels_figure.axes[3].get_ylim()[1] > 1.5


def test_one_legend_names_what_is_drawn_in_a_fixed_order(panels_figure):
    assert all(axes.get_legend() is None for axes in panels_figure.axes)
    assert legend_names(panels_figure) == ["MAP", "BIC", "VB", "VB*", "sampled (variational path)"]


@pytest.mark.parametrize("count", [1, 2, 4])
def test_the_legend_is_neither_clipped_nor_over_a_panel(count):
    lines = {method + star: (N, range(1, 7)) for method in STYLES for star in ("", "*")}
    figure = plot_panels([Panel("a", "b", lines)] * count, "heading")
    box = figure.legends[0].get_window_extent()
    assert box.x0 >= 0
    assert box.y0 >= 0
    assert box.x1 <= figure.bbox.x1
    assert all(box.y1 < axes.get_tightbbox().y0 for axes in figure.axes)


def test_the_legend_of_scores_is_over_no_panel(scores_figure):
    box = scores_figure.legends[0].get_window_extent()
    assert box.y1 <= scores_figure.bbox.y1
    assert all(box.y0 > axes.get_tightbbox().y1 for axes in scores_figure.axes)


def test_a_method_looks_the_same_everywhere_and_like_no_other():
    one = plot_panels([Panel("a", "b", {"vb": (N, range(6))})], "").axes[0].lines[0]
    lines = {method: (N, range(6)) for method in STYLES}
    every = {line.get_label(): line for line in plot_panels([Panel("a", "b", lines)], "").axes[0].lines}
    assert (every["VB"].get_color(), every["VB"].get_marker()) == (one.get_color(), one.get_marker())
    assert len({to_hex(line.get_color()) for line in every.values()}) == len(STYLES) == 7
    assert len({line.get_marker() for line in every.values()}) == 7


def test_an_uncorrected_score_keeps_its_star_and_its_colour(panels_figure):
    lines = {line.get_label(): line for line in panels_figure.axes[0].lines}
    assert lines["VB*"].get_color() == lines["VB"].get_color()
    assert lines["VB*"].get_markerfacecolor() != lines["VB"].get_markerfacecolor()
    assert lines["VB*"].is_dashed()
    assert not lines["VB"].is_dashed()


@pytest.mark.parametrize(
    ("method", "name"), [("bicp", "BICp"), ("cs*", "CS*"), ("ais", "AIS as in the paper"), ("map", "MAP")]
)
def test_names_of_methods(method, name):
    assert style_of(method).name == name


def test_a_panel_without_values_says_so_and_adds_nothing_to_the_legend():
    figure = plot_panels([Panel("a", "b", {"ais": (N, (NAN,) * 6)}), Panel("c", "d", {})], "")
    assert [texts(axes) for axes in figure.axes] == [["not computed"], ["not computed"]]
    assert figure.legends == []


def test_long_titles_do_not_reach_the_next_panel():
    title = "a  Score of the true structure less the highest score of all structures"
    figure = plot_panels([Panel(title, "b", {"vb": (N, range(6))})] * 4, "")
    boxes = [axes._left_title.get_window_extent() for axes in figure.axes]
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))
    assert figure.axes[0].get_title(loc="left").replace("\n", " ") == title


def test_pictures_leave_no_pyplot_state():
    before = plt.get_fignums()
    plot_panels(make_panels(), "")
    plot_scores(make_scores(), DIMENSIONS, TRUE)
    assert plt.get_fignums() == before


def make_figures():
    return [plot_scores(make_scores(), DIMENSIONS, TRUE), plot_panels(make_panels(), "again")]


def test_the_same_picture_gives_the_same_bytes(tmp_path, monkeypatch):
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    for place, (first, second) in enumerate(zip(make_figures(), make_figures(), strict=True)):
        written = [
            save(figure, tmp_path / f"{turn}", f"p{place}") for turn, figure in enumerate((first, first, second))
        ]
        assert written[0] == [tmp_path / "0" / f"p{place}.png", tmp_path / "0" / f"p{place}.pdf"]
        png, pdf = (path.read_bytes() for path in written[0])
        assert png.startswith(b"\x89PNG")
        assert pdf.startswith(b"%PDF")
        assert b"CreationDate" not in pdf
        assert all([path.read_bytes() for path in paths] == [png, pdf] for paths in written[1:])
        width, height = (int.from_bytes(png[start : start + 4], "big") for start in (16, 20))
        assert (width, height) == pytest.approx(first.get_size_inches() * 120, abs=1)


def test_a_writing_that_fails_leaves_what_was_there(tmp_path, monkeypatch):
    figure = plot_panels(make_panels()[:2], "")
    (tmp_path / "p.png").write_bytes(b"old")

    def fail(path, **_):
        path.write_bytes(b"half")
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(figure, "savefig", fail)
    with pytest.raises(DataError, match=r"cannot write .*p\.png': No space left"):
        save(figure, tmp_path, "p")
    assert (tmp_path / "p.png").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["p.png"]


def test_saving_makes_the_folder_and_leaves_only_the_two_files(tmp_path):
    save(plot_panels(make_panels()[:1], ""), tmp_path / "deep" / "er", "p.1")
    assert sorted(os.listdir(tmp_path / "deep" / "er")) == ["p.1.pdf", "p.1.png"]
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="choose another folder"):
        save(plot_panels(make_panels()[:1], ""), tmp_path / "file", "p")


@pytest.mark.parametrize(
    ("scores", "true_place", "error", "match"),
    [
        ({}, 0, OptionError, "no method"),
        ({10: {}}, 0, OptionError, "no method"),
        ({10: {"vb": np.zeros(4)}}, 0, OptionError, r"'vb' at n = 10 have shape \(4,\), but there are 5"),
        ({10: {"vb": np.zeros(5)}}, 5, OptionError, "from 0 to 4"),
        ({10: {"vb": np.zeros(5)}}, -1, OptionError, "from 0 to 4"),
        ({10: {"vbb": np.zeros(5)}}, 0, UnknownNameError, "did you mean 'vb'"),
    ],
)
def test_bad_scores_are_refused(scores, true_place, error, match):
    with pytest.raises(error, match=match):
        plot_scores(scores, DIMENSIONS, true_place)


@pytest.mark.parametrize(
    ("panels", "error", "match"),
    [
        ([], OptionError, "no panels"),
        ([Panel("a", "b", {"vb": ((10, 20), (1.0,))})], OptionError, "2 sizes and 1 values"),
        ([Panel("a", "b", {"vb": ((0, 20), (1.0, 2.0))})], OptionError, "n below 1: 0"),
        ([Panel("a", "b", {"vb**": ((10,), (1.0,))})], UnknownNameError, r"'vb\*\*'"),
        ([Panel("a", "b", {"vb": ((10,), (1.0,))}, is_log=True, level=0.0)], OptionError, "level 0.0"),
    ],
)
def test_bad_panels_are_refused(panels, error, match):
    with pytest.raises(error, match=match):
        plot_panels(panels, "")
