"""Profiles of hidden states: what each state says about every observed variable."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lurking.errors import DataError, StructureError
from lurking.inference.hidden_tables import order_by_size
from lurking.inference.network import Network
from lurking.report.fonts import choose_fonts
from lurking.types import FloatArray, Level

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#000000")


def profiles(network: Network, hidden: str) -> dict[str, FloatArray]:
    """Return {observed variable: p(its state | state of `hidden`)}, each (states of hidden, states of variable)."""
    if hidden not in network.dag.hidden:
        raise StructureError(
            f"{hidden!r} is no hidden variable of the network; hidden are: {', '.join(network.dag.hidden) or 'none'}"
        )
    result = {}
    for name in network.dag.observed:
        joint = network.joint([hidden, name])
        sizes = joint.sum(axis=1, keepdims=True)
        result[name] = np.divide(joint, sizes, out=np.zeros_like(joint), where=sizes > 0.0)
    return result


def plot_profiles(network: Network, hidden: str | None = None, axes: Axes | None = None) -> Axes:
    """Draw one line per hidden state across the observed variables.

    For two-valued variables a point is the probability of the second level; for others it is the expected position of
    the level on a scale from the first (0) to the last (1).
    """
    if axes is None:
        from matplotlib.figure import Figure

        columns = len(network.dag.observed)
        axes = Figure(figsize=(max(6.0, 0.8 * columns + 2.5), 4.2), layout="constrained").add_subplot()
    name = hidden if hidden is not None else next(iter(network.dag.hidden), "")
    shapes = profiles(network, name)
    sizes = network.joint([name])
    observed = list(shapes)
    positions = np.arange(len(observed))
    for rank, state in enumerate(order_by_size(network, name)):
        heights = [_height(shapes[variable][state]) for variable in observed]
        axes.plot(
            positions,
            heights,
            marker="os^Dv<>P"[rank % 8],
            color=PALETTE[rank % len(PALETTE)],
            linewidth=2,
            markersize=7,
            label=f"{name} {state}: {sizes[state]:.0%} of rows",
        )
    axes.set_xticks(positions, observed)
    axes.set_ylim(-0.03, 1.03)
    axes.set_ylabel(_scale_label(network, observed))
    axes.set_title(f"What each state of {name} says about the data", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#DDDDDD", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.01, 1.0))
    choose_fonts(axes)
    return axes


def _height(distribution: FloatArray) -> float:
    """Return the mean position of the state on the scale 0 … 1."""
    steps = max(len(distribution) - 1, 1)
    return float(distribution @ np.arange(len(distribution)) / steps)


def _scale_label(network: Network, observed: list[str]) -> str:
    levels: set[tuple[Level, ...]] = {tuple(network.levels[variable]) for variable in observed}
    if len(levels) == 1 and len(next(iter(levels))) == 2:
        return f"probability of the answer {next(iter(levels))[1]!r}"
    return "mean position, first level = 0, last = 1"


def check_picture(path: Path) -> None:
    """Refuse a place where no picture can be written, before the work that it would show is done."""
    from matplotlib.backend_bases import FigureCanvasBase

    if path.suffix.lower().removeprefix(".") not in FigureCanvasBase.get_supported_filetypes():
        raise DataError(f"cannot write {str(path)!r}: unknown kind of picture; use .png, .pdf or .svg")
    reason = None
    if not path.parent.is_dir():
        reason = f"there is no folder {str(path.parent)!r}"
    elif path.is_dir():
        reason = "it is a directory"
    elif not os.access(path if path.exists() else path.parent, os.W_OK):
        reason = "permission denied"
    if reason is not None:
        raise DataError(f"cannot write {str(path)!r}: {reason}; choose another place")


def save_figure(axes: Any, path: str) -> None:
    """Write the picture that `axes` belongs to; the suffix of `path` decides the format."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph", UserWarning)  # `choose_fonts` has told of missing letters
            axes.figure.savefig(path, dpi=150)
    except OSError as error:
        raise DataError(f"cannot write {path!r}: {error.strerror}; choose another place") from None
    except ValueError:
        raise DataError(f"cannot write {path!r}: unknown kind of picture; use .png, .pdf or .svg") from None
