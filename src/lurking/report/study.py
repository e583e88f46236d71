"""Pictures of a study of scores: many structures, several methods, nested data sets (Beal & Ghahramani 2006, fig. 2–5).

Every method has one colour, one marker and one name in all pictures.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np

from lurking.errors import OptionError, UnknownNameError
from lurking.report.profiles import PALETTE
from lurking.runtime.files import write_whole
from lurking.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

Line: TypeAlias = tuple[Sequence[int], Sequence[float]]
"""Numbers of rows n, and one value at each of them."""


class Style(NamedTuple):
    """How a method looks wherever it is drawn."""

    name: str
    color: str
    marker: str


STYLES: Final = {
    "map": Style("MAP", PALETTE[5], "v"),
    "bic": Style("BIC", PALETTE[4], "s"),
    "bicp": Style("BICp", PALETTE[1], "D"),
    "cs": Style("CS", PALETTE[2], "^"),
    "vb": Style("VB", PALETTE[0], "o"),
    "ais": Style("AIS as in the paper", PALETTE[3], "X"),
    "sampled": Style("sampled (variational path)", PALETTE[7], "P"),
}
"""{method: how it is drawn}; a name that ends in * (not corrected for aliases) is the same, but hollow and dashed."""
POINT: Final = "#8C8C8C"
GRID: Final = "#E4E4E4"
FAINT: Final = "#777777"
SIZES: Final = tuple(10 * 4**power for power in range(8))
NOT_COMPUTED: Final = "not computed"
PANEL_WIDTH: Final = 3.9


@dataclass(frozen=True)
class Panel:
    """One panel of lines against n.

    title, label : above the panel, and beside its vertical axis.
    lines : {method: (n, values)}; values that are not finite, or not positive where `is_log`, leave gaps.
    is_log : the vertical axis is logarithmic.
    is_reversed : values are ranks, 1 at the top.
    level : where a dotted horizontal line runs.
    """

    title: str
    label: str
    lines: Mapping[str, Line]
    is_log: bool = False
    is_reversed: bool = False
    level: float | None = None


def plot_scores(scores: Mapping[int, Mapping[str, FloatArray]], dimensions: IntArray, true_place: int) -> Figure:
    """Draw the score of every structure against its number of parameters, a row for each n, a column for each method.

    A circle marks the true structure, a cross the one with the highest score (the first of equal ones). The panels of a
    row have one vertical range. Values that are not finite were not computed and are left out.

    scores : {n: {method: (M,) scores}}.
    dimensions : (M,) number of parameters.
    true_place : place of the true structure among the M.
    """
    from matplotlib.figure import Figure as Picture
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    _check_scores(scores, dimensions, true_place)
    methods = list(dict.fromkeys(method for row in scores.values() for method in row))
    width, height = 1.2 + 1.75 * len(methods), 1.2 + 1.4 * len(scores)
    layout = ConstrainedLayoutEngine(h_pad=0.04, w_pad=0.04, hspace=0.02, wspace=0.02)
    picture = Picture(figsize=(max(width, 4.5), height), layout=layout)
    grid = picture.subplots(len(scores), len(methods), sharex=True, sharey="row", squeeze=False)
    for panels, (n, row) in zip(grid, scores.items(), strict=True):
        for axes, method in zip(panels, methods, strict=True):
            _draw_scores(axes, row.get(method), dimensions, true_place)
        _scale_row(panels[0], row)
        panels[0].set_ylabel(f"n = {n}", fontsize=10, fontweight="bold")
    for axes, method in zip(grid[0], methods, strict=True):
        axes.set_title(style_of(method).name.replace(" ", "\n", 1), fontsize=10)
    _scale_parameters(grid[0, 0], dimensions, int(dimensions[true_place]))
    picture.supxlabel("number of parameters", fontsize=10)
    picture.supylabel("score, nats", fontsize=10)
    marks = [_mark("o", PALETTE[1], 7.5, "true structure"), _mark("x", PALETTE[0], 5.5, "highest score")]
    picture.legend(handles=marks, loc="outside upper center", ncols=2, frameon=False, fontsize=9)
    picture.align_ylabels(grid[:, 0])
    return _settle(picture)


def plot_panels(panels: Sequence[Panel], heading: str) -> Figure:
    """Draw panels of lines against n side by side, with one legend for all of them."""
    from matplotlib.figure import Figure as Picture
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    _check_panels(panels)
    width = PANEL_WIDTH * len(panels)
    layout = ConstrainedLayoutEngine(h_pad=0.07, w_pad=0.07, wspace=0.03)
    picture = Picture(figsize=(width, 4.3), layout=layout)
    rows = sorted({int(n) for panel in panels for sizes, _ in panel.lines.values() for n in sizes})
    for axes, panel in zip(picture.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        _draw_panel(axes, panel)
        _scale_rows(axes, rows)
    if heading:
        picture.suptitle(textwrap.fill(heading, int(width * 10)), fontsize=12)
    present = {method for panel in panels for method in panel.lines if _is_visible(panel, method).any()}
    handles = [_line(method) for method in sorted(present, key=_order)]
    if handles:
        lines = math.ceil(len(handles) / max(int(width / 2.1), 2))
        columns = math.ceil(len(handles) / lines)
        picture.legend(handles=handles, loc="outside lower center", ncols=columns, frameon=False, fontsize=9)
    return _settle(picture)


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write the picture as `name`.png and `name`.pdf; the same picture gives the same bytes.

    Each file is written beside its place first, and renamed when it is whole.
    """
    kinds: dict[str, dict[str, Any]] = {"png": {"dpi": 120}, "pdf": {"metadata": {"CreationDate": None}}}
    files = []
    for kind, settings in kinds.items():
        write = partial(figure.savefig, format=kind, **settings)
        files.append(write_whole(folder / f"{name}.{kind}", write))
    return files


def style_of(method: str) -> Style:
    """Return how a method is drawn; a trailing * stays in its name."""
    base = method.removesuffix("*")
    if base not in STYLES:
        raise UnknownNameError("method", method, STYLES)
    style = STYLES[base]
    return style._replace(name=style.name + method[len(base) :])


def _order(method: str) -> tuple[int, bool]:
    """Return the place of a method in a legend: that of STYLES, with * after the same without."""
    return list(STYLES).index(method.removesuffix("*")), method.endswith("*")


def _settle(picture: Figure) -> Figure:
    """Lay the picture out once and for all; done anew at each writing, the layout would creep by fractions of a dot."""
    picture.draw_without_rendering()
    picture.set_layout_engine("none")
    return picture


def _check_scores(scores: Mapping[int, Mapping[str, FloatArray]], dimensions: IntArray, true_place: int) -> None:
    if not any(scores.values()):
        raise OptionError("scores hold no method at any n; give at least one")
    if not 0 <= true_place < len(dimensions):
        raise OptionError(f"true_place is {true_place}, but must be from 0 to {len(dimensions) - 1}")
    for n, row in scores.items():
        for method, values in row.items():
            style_of(method)
            if np.shape(values) != (len(dimensions),):
                raise OptionError(
                    f"scores of {method!r} at n = {n} have shape {np.shape(values)}, but there are {len(dimensions)} "
                    "structures; give one score for each, NaN where none was computed"
                )


def _check_panels(panels: Sequence[Panel]) -> None:
    if not panels:
        raise OptionError("there are no panels to draw; give at least one")
    for panel in panels:
        level = panel.level
        if level is not None and not (math.isfinite(level) and (level > 0.0 or not panel.is_log)):
            raise OptionError(f"level {level} of panel {panel.title!r} has no place on its axis; give another, or None")
        for method, (sizes, values) in panel.lines.items():
            style_of(method)
            if len(sizes) != len(values):
                raise OptionError(
                    f"line {method!r} of panel {panel.title!r} has {len(sizes)} sizes and {len(values)} values; "
                    "give one value for each size, NaN where there is none"
                )
            if any(n < 1 for n in sizes):
                raise OptionError(f"line {method!r} of panel {panel.title!r} has an n below 1: {min(sizes)}")


def _draw_scores(axes: Axes, values: FloatArray | None, dimensions: IntArray, true_place: int) -> None:
    axes.tick_params(labelsize=8, length=2.5, color=FAINT)
    for spine in axes.spines.values():
        spine.set(color="#AAAAAA", linewidth=0.7)
    finite = np.isfinite(values) if values is not None else np.zeros(len(dimensions), dtype=np.bool_)
    if values is None or not finite.any():
        _say_not_computed(axes)
        return
    style = {"color": POINT, "linestyle": "none", "marker": ".", "markersize": 4.0, "markeredgewidth": 0.0}
    axes.plot(dimensions[finite], values[finite], **style)  # type: ignore[arg-type]
    winner = int(np.argmax(np.where(finite, values, -np.inf)))
    if finite[true_place]:
        axes.add_line(_mark("o", PALETTE[1], 7.5, "true", (dimensions[true_place], values[true_place])))
    axes.add_line(_mark("x", PALETTE[0], 5.5, "winner", (dimensions[winner], values[winner])))


def _mark(marker: str, color: str, size: float, label: str, point: tuple[float, float] | None = None) -> Line2D:
    """Return a hollow mark at a point, or for a legend."""
    from matplotlib.lines import Line2D

    abscissa, ordinate = ([], []) if point is None else ([point[0]], [point[1]])
    return Line2D(
        abscissa,
        ordinate,
        linestyle="none",
        marker=marker,
        markersize=size,
        markerfacecolor="none",
        markeredgecolor=color,
        markeredgewidth=1.4,
        label=label,
        zorder=5,
    )


def _say_not_computed(axes: Axes) -> None:
    axes.text(0.5, 0.5, NOT_COMPUTED, transform=axes.transAxes, ha="center", va="center", color=FAINT, fontsize=9)


def _scale_row(axes: Axes, row: Mapping[str, FloatArray]) -> None:
    """Set the vertical range of a row of panels, which share it: all finite values with a small margin."""
    from matplotlib.ticker import MaxNLocator, ScalarFormatter

    every = np.concatenate([np.asarray(values, dtype=np.float64) for values in row.values()] or [np.empty(0)])
    finite = every[np.isfinite(every)]
    if not finite.size:
        axes.set_yticks([])
        return
    low, high = float(finite.min()), float(finite.max())
    margin = 0.08 * (high - low) or 1.0
    axes.set_ylim(low - margin, high + margin)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=4, steps=[1, 2, 4, 5, 10]))
    axes.yaxis.set_major_formatter(_plain(ScalarFormatter(useOffset=False)))


def _plain(formatter: Any) -> Any:
    """Return the formatter, which writes numbers out instead of taking powers of ten apart."""
    formatter.set_scientific(False)
    return formatter


def _scale_parameters(axes: Axes, dimensions: IntArray, true_dimension: int) -> None:
    """Set the horizontal range of all panels, with ticks at the fewest, the true and the most parameters."""
    low, high = int(dimensions.min()), int(dimensions.max())
    margin = 0.07 * (high - low) or 1.0
    axes.set_xlim(low - margin, high + margin)
    room = 0.16 * (high - low)
    middle = {true_dimension} if low + room < true_dimension < high - room else set()
    axes.set_xticks(sorted({low, high} | middle))


def _is_visible(panel: Panel, method: str) -> BoolArray:
    """Return which values of a line can be drawn."""
    values = np.asarray(panel.lines[method][1], dtype=np.float64)
    return np.asarray(np.isfinite(values) & ((values > 0.0) | (not panel.is_log)))


def _line(method: str, sizes: Iterable[int] = (), values: Iterable[float] = ()) -> Line2D:
    from matplotlib.lines import Line2D

    name, color, marker = style_of(method)
    place, is_uncorrected = _order(method)
    size = 6.6 - 0.3 * place  # what is drawn later is smaller, and does not hide what lies at the same point
    return Line2D(
        list(sizes),
        list(values),
        color=color,
        marker=marker,
        markersize=size + 1.5 * is_uncorrected,
        markerfacecolor="white" if is_uncorrected else color,
        markeredgewidth=1.0 if is_uncorrected else 0.0,
        linestyle=(0, (4, 2)) if is_uncorrected else "-",
        linewidth=1.3,
        label=name,
        zorder=2.5 if is_uncorrected else 3.0,
    )


def _draw_panel(axes: Axes, panel: Panel) -> None:
    every: list[float] = []
    for method in sorted(panel.lines, key=_order):
        sizes, values = panel.lines[method]
        visible = _is_visible(panel, method)
        shown = np.where(visible, np.asarray(values, dtype=np.float64), np.nan)
        axes.add_line(_line(method, sizes, shown))
        every += shown[visible].tolist()
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=9)
    axes.set_title(textwrap.fill(panel.title, 38), loc="left", fontsize=11)
    axes.set_ylabel(textwrap.fill(panel.label, 40))
    if panel.level is not None:
        axes.axhline(panel.level, color="black", linestyle=":", linewidth=1.2, zorder=2)
        every.append(panel.level)
    if not any(_is_visible(panel, method).any() for method in panel.lines):
        _say_not_computed(axes)
        axes.set_yticks([])
        return
    axes.grid(color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    _scale_values(axes, panel, min(every), max(every))


def _scale_values(axes: Axes, panel: Panel, low: float, high: float) -> None:
    """Set range and ticks of the vertical axis for values from `low` to `high`; ranks begin at 1."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

    low = min(low, 1.0) if panel.is_reversed else low
    if panel.is_log:
        axes.set_yscale("log")
        factor = (high / low) ** 0.05 if high > low else 1.5
        limits = low / factor, high * factor
        axes.yaxis.set_major_locator(LogLocator(subs=_multiples(high / low), numticks=12))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        margin = 0.05 * (high - low) or 0.5
        limits = low - margin, high + margin
        if panel.is_reversed:
            ticks = MaxNLocator(nbins=7, integer=True).tick_values(low, high)
            step = ticks[1] - ticks[0]
            axes.yaxis.set_major_locator(FixedLocator([low, *(tick for tick in ticks if tick >= low + 0.5 * step)]))
    axes.set_ylim(limits[::-1] if panel.is_reversed else limits)


def _multiples(ratio: float) -> tuple[float, ...]:
    """Return which multiples of powers of ten have a tick, on an axis whose ends have this ratio."""
    if ratio > 2000.0:
        return (1.0,)
    return (1.0, 2.0, 5.0) if ratio > 12.0 else (1.0, 2.0, 3.0, 4.0, 5.0, 7.0)


def _scale_rows(axes: Axes, rows: Sequence[int]) -> None:
    """Make n logarithmic, with ticks at 10, 40, 160 … or, where those are too few, at numbers of rows that occur."""
    axes.set_xlabel("rows n")
    if not rows:
        axes.set_xticks([])
        return
    axes.set_xscale("log")
    axes.set_xlim(rows[0] / 1.3, rows[-1] * 1.3)
    ticks = [n for n in SIZES if rows[0] <= n <= rows[-1]]
    if len(ticks) < 3:
        ticks = sorted({rows[0], rows[-1]})
    axes.set_xticks(ticks, [str(n) for n in ticks])
    axes.set_xticks([], minor=True)
