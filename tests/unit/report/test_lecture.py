"""Pictures of the lecture's illustrations."""

import math

import pytest

from lurking.errors import OptionError
from lurking.report.lecture import (
    ErrorPanel,
    RoutePanel,
    Trace,
    plot_errors,
    plot_gains,
    plot_relabelings,
    plot_searches,
    plot_signature,
)


def test_errors_are_measured_by_the_reference():
    panel = ErrorPanel("title", 2, "ais", {"cs": {1: -10.0, 2: -8.0}, "ais": {1: -10.0, 2: -5.0}})
    upper, lower = plot_errors([panel], "heading").axes
    assert {line.get_label(): list(line.get_ydata()) for line in upper.lines}["CS"] == [-10.0, -8.0]
    drawn = {line.get_label(): list(line.get_ydata()) for line in lower.lines}
    assert drawn["CS"] == [0.0, -3.0]
    assert "AIS" not in drawn
    with pytest.raises(OptionError, match="no panels"):
        plot_errors([], "heading")


def test_relabelings_stand_beside_the_number_of_orders():
    (axes,) = plot_relabelings({2: [0.5, 0.69], 3: [1.7]}, "heading").axes
    line, points = axes.lines
    assert list(line.get_ydata()) == pytest.approx([math.log(2), math.log(6)])
    assert list(zip(points.get_xdata(), points.get_ydata(), strict=True)) == [(2, 0.5), (2, 0.69), (3, 1.7)]


def test_gains_have_one_bar_for_each_number():
    groups = {"ΔLL": {"lecture": [3.0, 10.6], "here": [2.0, 9.0]}, "ΔCS": {"lecture": [-0.4, 7.2], "here": [0.0, 1.0]}}
    left, right = plot_gains(groups, ["one", "two"], "heading").axes
    assert sorted(bar.get_height() for bar in left.patches) == [2.0, 3.0, 9.0, 10.6]
    assert [tick.get_text() for tick in right.get_xticklabels()] == ["one", "two"]


def test_searches_show_every_structure_and_every_end():
    routes = RoutePanel("ends", {"greedy": [0.0, 3.0], "structural EM": [1.0]})
    left, right = plot_searches([-3.0, 0.0], [-1.0, 0.0], routes, "heading").axes
    assert list(left.lines[0].get_ydata()) == [-1.0, 0.0]
    assert [list(line.get_xdata()) for line in right.lines] == [[0.0, 3.0], [1.0]]


def test_traces_are_drawn_with_their_means():
    traces = [
        Trace(100, [1.0, 3.0], [5.0, 5.0], [20, 30], [2, 3]),
        Trace(1000, [9.0, 9.0], [7.0, 7.0], [40, 40], [3, 3]),
    ]
    gains, parameters, _ = plot_signature(traces, {"with H": 17}, "heading").axes
    means = [list(line.get_ydata()) for line in gains.lines if list(line.get_xdata()) == [100, 1000]]
    assert means == [[2.0, 9.0], [5.0, 7.0]]
    assert any(set(line.get_ydata()) == {17} for line in parameters.lines)
    with pytest.raises(OptionError, match="no traces"):
        plot_signature([], {}, "heading")
