"""Pictures of scores against the number of hidden states, and of run times (Chickering & Heckerman 1996).

Every method has one colour, one marker and one name in all pictures; those that `study` draws too look the same there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from lurking.errors import OptionError, UnknownNameError
from lurking.report.profiles import PALETTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D


class Style(NamedTuple):
    """How a method looks wherever it is drawn."""

    name: str
    color: str
    marker: str
    is_dashed: bool = False


STYLES: Final = {
    "laplace-probability": Style("Laplace over probabilities", PALETTE[1], "d"),
    "laplace": Style("Laplace over logits", PALETTE[1], "d", is_dashed=True),
    "cs": Style("CS", PALETTE[2], "^"),
    "mled": Style("MLED", PALETTE[3], "X", is_dashed=True),
    "draper": Style("Draper", PALETTE[5], "v"),
    "bic": Style("BIC/MDL", PALETTE[4], "s"),
    "vb": Style("VB", PALETTE[0], "o"),
    "sampled": Style("sampled", PALETTE[7], "P"),
    "em": Style("EM", PALETTE[7], "o"),
    "bicp": Style("BICp", PALETTE[4], "D", is_dashed=True),
    "importance": Style("importance sampling", PALETTE[5], "<", is_dashed=True),
    "ais": Style("AIS", PALETTE[7], "P", is_dashed=True),
    "chib": Style("candidate method", PALETTE[7], "X"),
    "chib-one": Style("candidate, no relabelings", PALETTE[7], "X", is_dashed=True),
}
GRID: Final = "#E4E4E4"
NEAR: Final = 10.0
"""Nats below the highest score up to which the axis of shapes is linear."""
MOST_TICKS: Final = 9


@dataclass(frozen=True)
class StatesPanel:
    """Curves of one data set.

    title : above the panel; true_states : where a dotted line stands.
    lines : {method: {states: score}}.
    from_truth : {method: score at `true_states` with EM begun at the generating parameters}, drawn as stars.
    """

    title: str
    true_states: int
    lines: Mapping[str, Mapping[int, float]]
    from_truth: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class TimeLine:
    """Seconds of one method against the number of parameters d, here and as printed."""

    method: str
    here: Mapping[int, float]
    printed: Mapping[int, float]


def plot_states(panels: Sequence[StatesPanel], heading: str) -> Figure:
    """Draw every panel twice: the scores, and below each curve less its own highest value, where shapes compare.

    A ring marks the number of states that a method selects.
    """
    from matplotlib.figure import Figure as Picture
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    if not panels:
        raise OptionError("there are no panels to draw; give at least one")
    width = max(3.5 * len(panels), 6.4)
    layout = ConstrainedLayoutEngine(h_pad=0.05, w_pad=0.06, hspace=0.03, wspace=0.03)
    picture = Picture(figsize=(width, 7.0), layout=layout)
    grid = picture.subplots(2, len(panels), sharex="col", squeeze=False)
    for column, panel in enumerate(panels):
        _draw_values(grid[0, column], panel)
        _draw_shapes(grid[1, column], panel)
    grid[0, 0].set_ylabel("log marginal likelihood, nats")
    grid[1, 0].set_ylabel("less the highest value of each curve")
    picture.suptitle(heading, fontsize=12)
    present = {method for panel in panels for method in panel.lines}
    handles = [_line(method, {}) for method in STYLES if method in present]
    if any(panel.from_truth for panel in panels):
        handles.append(_star("white"))
    columns = min(len(handles), max(int(width / 1.9), 2))
    picture.legend(handles=handles, loc="outside lower center", ncols=columns, frameon=False, fontsize=9)
    picture.draw_without_rendering()
    picture.set_layout_engine("none")
    return picture


def plot_times(lines: Sequence[TimeLine], heading: str) -> Figure:
    """Draw seconds against the number of parameters, both logarithmic: here whole lines, as printed dotted ones."""
    from matplotlib.figure import Figure as Picture
    from matplotlib.layout_engine import ConstrainedLayoutEngine
    from matplotlib.lines import Line2D
    from matplotlib.ticker import FuncFormatter, NullLocator

    if not any(line.here for line in lines):
        raise OptionError("there are no times to draw; give at least one")
    picture = Picture(figsize=(7.2, 5.4), layout=ConstrainedLayoutEngine(h_pad=0.06, w_pad=0.06))
    axes = picture.subplots()
    for line in lines:
        axes.add_line(_line(line.method, line.here))
        printed = _line(line.method, line.printed)
        printed.set(linestyle=":", markerfacecolor="white", markeredgewidth=1.0)
        axes.add_line(printed)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.margins(x=0.04)
    axes.autoscale_view()
    every = sorted({d for line in lines for d in (*line.here, *line.printed)})
    ticks = _apart(every)
    axes.set_xticks(ticks, [str(d) for d in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlabel("parameters d of the test model")
    axes.set_ylabel("processor seconds")
    axes.set_title(heading, loc="left", fontsize=11)
    _tidy(axes)
    kinds = [
        Line2D([], [], color="#555555", linestyle="-", label="here"),
        Line2D([], [], color="#555555", linestyle=":", label="paper, 100 MHz"),
    ]
    handles = [*(_line(line.method, {}) for line in lines), *kinds]
    picture.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    picture.draw_without_rendering()
    picture.set_layout_engine("none")
    return picture


def _style(method: str) -> Style:
    if method not in STYLES:
        raise UnknownNameError("method", method, STYLES)
    return STYLES[method]


def _line(method: str, points: Mapping[int, float]) -> Line2D:
    from matplotlib.lines import Line2D

    style = _style(method)
    return Line2D(
        list(points),
        list(points.values()),
        color=style.color,
        marker=style.marker,
        markersize=4.5,
        markerfacecolor="white" if style.is_dashed else style.color,
        markeredgewidth=0.9,
        linestyle=(0, (4, 2)) if style.is_dashed else "-",
        linewidth=1.3,
        label=style.name,
    )


def _star(color: str, states: int | None = None, value: float | None = None) -> Line2D:
    from matplotlib.lines import Line2D

    return Line2D(
        [] if states is None else [states],
        [] if value is None else [value],
        linestyle="none",
        marker="*",
        markersize=10.0,
        markerfacecolor=color,
        markeredgecolor="black",
        markeredgewidth=0.5,
        label="EM begun at the generating parameters",
        zorder=4.0,
    )


def _draw_values(axes: Axes, panel: StatesPanel) -> None:
    for method, points in panel.lines.items():
        axes.add_line(_line(method, points))
    for method, value in panel.from_truth.items():
        axes.add_line(_star(_style(method).color, panel.true_states, value))
    axes.autoscale_view()
    axes.set_title(panel.title, loc="left", fontsize=11)
    _finish(axes, panel)


def _draw_shapes(axes: Axes, panel: StatesPanel) -> None:
    lowest = 0.0
    for order, (method, points) in enumerate(panel.lines.items()):
        states = list(points)
        values = np.asarray(list(points.values()))
        values = values - values.max()
        axes.add_line(_line(method, dict(zip(states, values.tolist(), strict=True))))
        best, lowest = int(np.argmax(values)), min(lowest, float(values.min()))
        # Wider from method to method, so that all those around one point are seen.
        ring = {"markersize": 7.0 + 2.2 * order, "markerfacecolor": "none", "markeredgecolor": _style(method).color}
        axes.plot([states[best]], [0.0], linestyle="none", marker="o", clip_on=False, **ring)  # type: ignore[arg-type]
    axes.set_yscale("symlog", linthresh=NEAR, linscale=1.6)
    axes.set_ylim(1.6 * min(lowest, -NEAR), 0.3 * NEAR)
    ticks = [-float(power) for power in (1000, 100, 10, 5, 0) if power <= 1.6 * max(-lowest, NEAR)]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in np.asarray(ticks) + 0.0])
    axes.set_yticks([], minor=True)
    axes.set_xlabel("hidden states of the test model")
    _finish(axes, panel)


def _finish(axes: Axes, panel: StatesPanel) -> None:
    axes.axvline(panel.true_states, color="black", linestyle=":", linewidth=1.0, zorder=1)
    states = sorted({count for points in panel.lines.values() for count in points})
    axes.set_xticks(_some(states))
    margin = 0.04 * (states[-1] - states[0]) or 0.5
    axes.set_xlim(states[0] - margin, states[-1] + margin)
    _tidy(axes)


def _some(values: Sequence[int]) -> list[int]:
    """Return at most `MOST_TICKS` of the values, evenly spaced from the first."""
    return list(values[:: -(-len(values) // MOST_TICKS)])


def _apart(values: Sequence[int]) -> list[int]:
    """Return those of the rising values that are far enough apart for a label on a logarithmic axis."""
    least = (values[-1] / values[0]) ** (1.0 / MOST_TICKS)
    chosen = [values[0]]
    for value in values[1:]:
        if value >= chosen[-1] * least:
            chosen.append(value)
    return chosen


def _tidy(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=9)
