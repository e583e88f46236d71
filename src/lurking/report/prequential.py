"""Picture of which rows speak for which of two structures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lurking.errors import OptionError
from lurking.evidence.base import Kind
from lurking.report.fonts import choose_fonts
from lurking.report.profiles import PALETTE
from lurking.search.prequential import Prequential

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LONGEST_NAME = 40


def plot_prequential(
    result: Prequential, first: str | None = None, second: str | None = None, axes: Axes | None = None
) -> Axes:
    """Draw the cumulative ln p(rows | first) − ln p(rows | second) against the number of rows.

    By default the best structure stands against the next best. A steady climb says that all rows speak for the first;
    a single step says that a few rows do. Bars are one standard error of sampled values; a point without
    one among them has an error that is not known.
    """
    if len(result.names) < 2:
        raise OptionError("the picture compares two structures, and there is only one")
    ranked = result.ranked()
    one = ranked[0] if first is None else first
    other = next(name for name in ranked if name != one) if second is None else second
    values = result.difference(one, other)
    error = np.hypot(result.std_errors[result.index(one)], result.std_errors[result.index(other)])
    if axes is None:
        from matplotlib.figure import Figure

        axes = Figure(figsize=(7.2, 4.2), layout="constrained").add_subplot()
    axes.axhline(0.0, color="#777777", linewidth=1.0)
    axes.fill_between(result.rows, values, 0.0, where=values >= 0.0, interpolate=True, color=PALETTE[0], alpha=0.15)
    axes.fill_between(result.rows, values, 0.0, where=values <= 0.0, interpolate=True, color=PALETTE[1], alpha=0.15)
    bars = np.where(np.isfinite(error), error, np.nan) if error.any() else None
    axes.errorbar(result.rows, values, yerr=bars, color="#222222", linewidth=1.8, marker="o", markersize=4, capsize=2)
    axes.annotate(f"{values[-1]:+.2f}", (result.rows[-1], values[-1]), (6, 0), textcoords="offset points", va="center")
    _mark_sides(axes, _short(one), _short(other), float(values.min()), float(values.max()))
    bound = any(kind is Kind.LOWER_BOUND for kind in result.kinds)
    axes.set_title("Which rows decide between two structures", loc="left")
    axes.set_xlabel("rows so far" + (", in a random order" if result.is_shuffled else ", in the order of the table"))
    axes.set_ylabel(f"difference of ln p by {result.score}" + (" (of bounds), nats" if bound else ", nats"))
    axes.set_xlim(0.0, float(result.rows[-1]) * 1.12 or 1.0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#DDDDDD", linewidth=0.8)
    axes.set_axisbelow(True)
    choose_fonts(axes)
    return axes


def _mark_sides(axes: Axes, one: str, other: str, low: float, high: float) -> None:
    """Write on each side of zero which structure it speaks for."""
    reach = max(high - low, 1e-9)
    axes.set_ylim(min(low, 0.0) - 0.18 * reach, max(high, 0.0) + 0.18 * reach)
    axes.text(0.01, 0.985, f"above 0: for {one}", transform=axes.transAxes, va="top", color=PALETTE[0])
    axes.text(0.01, 0.015, f"below 0: for {other}", transform=axes.transAxes, va="bottom", color=PALETTE[1])


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
