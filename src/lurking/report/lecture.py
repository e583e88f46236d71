"""Pictures of the lecture: errors of evidence, gains of arcs, where searches end, what a hidden variable leaves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from lurking.errors import OptionError
from lurking.report.curves import GRID, STYLES
from lurking.report.profiles import PALETTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINEAR: Final = 5.0
"""Nats around 0 within which an axis of errors is linear."""


@dataclass(frozen=True)
class ErrorPanel:
    """Evidence of one data set: {method: {classes: value}}, with the method that all are measured by."""

    title: str
    true_states: int
    reference: str
    lines: Mapping[str, Mapping[int, float]]


@dataclass(frozen=True)
class RoutePanel:
    """How far searches end below the best: {"method, start": nats of each search}."""

    title: str
    below: Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Trace:
    """One number of rows: gains of the hidden variable over two networks, and parameters learnt without it."""

    rows: int
    over_best: Sequence[float]
    over_full: Sequence[float]
    parameters: Sequence[float]
    linked_children: Sequence[float]


def plot_errors(panels: Sequence[ErrorPanel], heading: str) -> Figure:
    """Draw values above, and below them how far each method is from the reference."""
    if not panels:
        raise OptionError("there are no panels to draw; give at least one")
    picture, grid = _grid(2, len(panels), (max(4.2 * len(panels), 6.4), 7.6))
    for column, panel in enumerate(panels):
        upper, lower = grid[0][column], grid[1][column]
        reference = panel.lines[panel.reference]
        for method, points in panel.lines.items():
            _draw(upper, method, points)
            if method != panel.reference:
                _draw(lower, method, {k: value - reference[k] for k, value in points.items()})
        upper.set_title(panel.title, loc="left", fontsize=11)
        lower.set_yscale("symlog", linthresh=LINEAR, linscale=1.5)
        _plain_ticks(lower)
        lower.axhline(0.0, color="black", linewidth=1.0, zorder=1)
        for axes in (upper, lower):
            axes.axvline(panel.true_states, color="black", linestyle=":", linewidth=1.0, zorder=1)
            axes.set_xticks(sorted(reference))
        lower.set_xlabel("classes K of the test model")
    grid[0][0].set_ylabel("ln p(D | K), nats")
    grid[1][0].set_ylabel(f"less {STYLES[panels[0].reference].name}, nats")
    picture.suptitle(heading, fontsize=12)
    handles, labels = grid[0][0].get_legend_handles_labels()
    picture.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=2 * len(panels) if len(panels) > 1 else 3,
        frameon=False,
        fontsize=9,
    )
    return _settled(picture)


def plot_relabelings(points: Mapping[int, Sequence[float]], heading: str) -> Figure:
    """Draw how far the candidate method falls without relabelings, {classes: nats of each data set}, and ln K!."""
    picture, grid = _grid(1, 1, (6.4, 4.4))
    axes = grid[0][0]
    states = sorted(points)
    axes.plot(states, [math.lgamma(k + 1) for k in states], color=PALETTE[1], label="ln K!", linewidth=1.5)
    x = [k for k in states for _ in points[k]]
    y = [value for k in states for value in points[k]]
    axes.plot(x, y, "o", color=PALETTE[0], markersize=5, alpha=0.6, label="one data set", clip_on=False)
    axes.set_xticks(states)
    axes.set_xlabel("classes K of the test model")
    if min(y) < -LINEAR:
        axes.set_yscale("symlog", linthresh=2 * LINEAR, linscale=2.0)
        axes.set_ylim(1.6 * min(y), 1.6 * max(*y, LINEAR))
        _plain_ticks(axes)
    axes.set_ylabel("averaged less not averaged, nats")
    axes.set_title(heading, loc="left", fontsize=11)
    axes.legend(frameon=False, fontsize=9)
    return _settled(picture)


def plot_gains(groups: Mapping[str, Mapping[str, Sequence[float]]], bars: Sequence[str], heading: str) -> Figure:
    """Draw one panel for each measure: {measure: {who: gains in the order of `bars`}}."""
    picture, grid = _grid(1, len(groups), (4.6 * len(groups), 4.4))
    for axes, (measure, sides) in zip(grid[0], groups.items(), strict=True):
        width = 0.8 / len(sides)
        for place, (who, values) in enumerate(sides.items()):
            x = np.arange(len(bars)) + (place - (len(sides) - 1) / 2) * width
            drawn = axes.bar(x, values, width, color=PALETTE[place], label=who)
            axes.bar_label(drawn, fmt="%.1f", fontsize=8, padding=2)
        axes.axhline(0.0, color="black", linewidth=0.8)
        axes.set_xticks(range(len(bars)), bars)
        axes.margins(y=0.12)
        axes.set_title(measure, loc="left", fontsize=11)
    grid[0][0].set_ylabel("gain over the first network, nats")
    picture.suptitle(heading, fontsize=12)
    handles, labels = grid[0][0].get_legend_handles_labels()
    picture.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=9)
    return _settled(picture)


def plot_searches(predicted: Sequence[float], actual: Sequence[float], routes: RoutePanel, heading: str) -> Figure:
    """Draw gains predicted from expected data against true ones, and how far searches end below the best."""
    picture, grid = _grid(1, 2, (11.5, 5.2))
    left, right = grid[0]
    left.plot(predicted, actual, "o", color=PALETTE[0], markersize=4, alpha=0.5)
    low, high = min(predicted), max(*predicted, *actual)
    left.plot([low, high], [low, high], color="black", linewidth=1.0, linestyle=":", label="equal")
    left.set_xlabel("gain in BIC on expected data, nats")
    left.set_ylabel("gain in BIC, nats")
    left.set_title("Theorem 19.4.3: never below the line", loc="left", fontsize=11)
    left.legend(frameon=False, fontsize=9)
    names = list(routes.below)
    for place, name in enumerate(names):
        values = np.asarray(routes.below[name])
        spread = np.linspace(-0.25, 0.25, len(values)) if len(values) > 1 else np.zeros(1)
        right.plot(values, place + spread, "o", color=PALETTE[place % 3], markersize=4, alpha=0.7, clip_on=False)
    right.set_yticks(range(len(names)), names)
    right.invert_yaxis()
    right.set_xlabel("nats below the best of all subsets at the end")
    right.set_title(routes.title, loc="left", fontsize=11)
    picture.suptitle(heading, fontsize=12)
    return _settled(picture)


def plot_signature(traces: Sequence[Trace], lines: Mapping[str, int], heading: str) -> Figure:
    """Draw against n: gains of the hidden variable, parameters learnt without it, links of children."""
    if not traces:
        raise OptionError("there are no traces to draw; give at least one")
    picture, grid = _grid(1, 3, (13.0, 4.7))
    gains, parameters, links = grid[0]
    rows = [trace.rows for trace in traces]
    series = (
        (gains, [trace.over_best for trace in traces], PALETTE[0], "over the best without", "o"),
        (gains, [trace.over_full for trace in traces], PALETTE[1], "over the 59-parameter network", "s"),
        (parameters, [trace.parameters for trace in traces], PALETTE[0], "best without", "o"),
        (links, [trace.linked_children for trace in traces], PALETTE[0], "best without", "o"),
    )
    for axes, values, color, label, marker in series:
        for count, own in zip(rows, values, strict=True):
            axes.plot([count] * len(own), own, marker, color=color, markersize=4, alpha=0.5)
        axes.plot(rows, [float(np.mean(own)) for own in values], color=color, label=label, linewidth=1.4)
    for place, (name, value) in enumerate(lines.items()):
        parameters.axhline(value, color=PALETTE[2 + place], linestyle="--", linewidth=1.2, label=name)
    gains.axhline(0.0, color="black", linewidth=0.8)
    gains.set_yscale("symlog", linthresh=LINEAR)
    _plain_ticks(gains)
    links.set_yticks([0, 1, 2, 3])
    titles = ("ln p(D | with H) less ln p(D | without)", "parameters", "linked pairs of children, of 3")
    for axes, title in zip(grid[0], titles, strict=True):
        axes.set_xscale("log")
        axes.set_xticks(rows, [str(count) for count in rows])
        axes.minorticks_off()
        axes.set_xlabel("rows n")
        axes.set_title(title, loc="left", fontsize=11)
    gains.legend(frameon=False, fontsize=9)
    handles, labels = parameters.get_legend_handles_labels()
    labels = [label if place else "best structure without H" for place, label in enumerate(labels)]
    picture.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    picture.suptitle(heading, fontsize=12)
    return _settled(picture)


def _grid(rows: int, columns: int, size: tuple[float, float]) -> tuple[Figure, list[list[Axes]]]:
    """Return an empty picture and its axes, row by row."""
    from matplotlib.figure import Figure as Picture
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    picture = Picture(figsize=size, layout=ConstrainedLayoutEngine(h_pad=0.06, w_pad=0.06))
    grid = picture.subplots(rows, columns, squeeze=False)
    for axes in grid.ravel():
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color=GRID, linewidth=0.7)
        axes.set_axisbelow(True)
        axes.tick_params(labelsize=9)
    return picture, grid.tolist()


def _draw(axes: Axes, method: str, points: Mapping[int, float]) -> None:
    style = STYLES[method]
    axes.plot(
        list(points),
        list(points.values()),
        color=style.color,
        marker=style.marker,
        markersize=4.5,
        markerfacecolor="white" if style.is_dashed else style.color,
        linestyle=(0, (4, 2)) if style.is_dashed else "-",
        linewidth=1.2,
        label=style.name,
    )


def _plain_ticks(axes: Axes) -> None:
    """Label a symmetric logarithmic axis with plain numbers."""
    low, high = axes.get_ylim()
    ticks = [sign * size for sign in (-1, 1) for size in (2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)]
    shown = sorted(tick for tick in (0.0, *ticks) if low <= tick <= high)
    axes.set_yticks(shown, [f"{tick:g}" for tick in shown])
    axes.set_yticks([], minor=True)


def _settled(picture: Figure) -> Figure:
    """Lay the picture out once, so that the same one gives the same bytes."""
    picture.draw_without_rendering()
    picture.set_layout_engine("none")
    return picture
