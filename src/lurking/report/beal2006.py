"""Figure 6 of Beal & Ghahramani (2006): its numbers beside those of the paper, and its picture."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from lurking.report.profiles import PALETTE
from lurking.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PAPER_ACCEPTANCE: Final = {
    640: 0.585,
    800: 0.563,
    960: 0.541,
    1120: 0.523,
    1280: 0.504,
    2560: 0.408,
    5120: 0.303,
    10240: 0.208,
}
"""{n: 1 − share of rejected proposals} over all structures (table 3); up to n = 560 it is above 0.597."""
PAPER_LEAST_ACCEPTANCE: Final = (560, 0.597)
PAPER_CROSSINGS: Final = {"bic": 1000, "bound": 5000}
"""K at which chains pass BIC and the variational bound (section 5, read off figure 6a by its authors)."""
GREY: Final = "#777777"
TICKS: Final = (-1000, -300, -100, -30, -10, -5, 0, 5, 10, 30)


@dataclass(frozen=True)
class References:
    """Levels of ln p(y) that do not depend on K: VB bound, BIC, ln S, and the variational path's estimate."""

    bound: float
    bic: float
    log_aliases: float
    estimate: float
    std_error: float | None
    """None if the estimate is not trusted."""


@dataclass(frozen=True, eq=False)
class Traces:
    """Panel (a): ln p̂ of single chains with K = `steps` temperatures.

    prior : (K, G) on the paper's path, from draws of the prior.
    true : (K,) on the same path, from the true parameters.
    variational : (K, G) on the variational path.
    """

    steps: tuple[int, ...]
    prior: FloatArray = field(repr=False)
    true: FloatArray = field(repr=False)
    variational: FloatArray = field(repr=False)

    def crossing(self, level: float) -> float:
        """Return the K at which the mean over chains passes `level`, between two K linear in ln K; inf if it does not.

        0 when it is above from the first K on.
        """
        means = self.prior.mean(axis=1) - level
        above = np.flatnonzero(means > 0.0)
        if not above.size:
            return math.inf
        place = int(above[0])
        if place == 0:
            return 0.0
        share = -means[place - 1] / (means[place] - means[place - 1])
        low, high = math.log(self.steps[place - 1]), math.log(self.steps[place])
        return math.exp(low + float(share) * (high - low))


@dataclass(frozen=True, eq=False)
class Acceptance:
    """Panels (b) and (c): share of proposals accepted, one chain with `steps` temperatures for each structure.

    mean, deviation : (N,) over the structures, for each data set of `sizes` rows.
    quarters : (N, 4) mean over the structures, by quarter of the schedule.
    """

    sizes: tuple[int, ...]
    steps: int
    structures: int
    mean: FloatArray = field(repr=False)
    deviation: FloatArray = field(repr=False)
    quarters: FloatArray = field(repr=False)


@dataclass(frozen=True, eq=False)
class Hysteresis:
    """ln p̂ of chains from the prior (`forward`) and back to it (`backward`), (curvatures, steps, G) each."""

    curvatures: tuple[float, ...]
    steps: tuple[int, ...]
    forward: FloatArray = field(repr=False)
    backward: FloatArray = field(repr=False)

    @property
    def width(self) -> FloatArray:
        """(curvatures, steps) mean ln p̂ back less mean ln p̂ forward; its mean is not below 0."""
        return np.asarray(self.backward.mean(axis=2) - self.forward.mean(axis=2))

    @property
    def width_error(self) -> FloatArray:
        """(curvatures, steps) standard error of the width, judged by how far chains differ."""
        both = self.forward.var(axis=2, ddof=1) + self.backward.var(axis=2, ddof=1)
        return np.asarray(np.sqrt(both / self.forward.shape[2]))


@dataclass(frozen=True, eq=False)
class Figure6:
    """Everything that figure 6 shows, and the settings that its labels name."""

    rows: int
    strength: float
    curvature: float
    references: References
    traces: Traces
    acceptance: Acceptance
    hysteresis: Hysteresis

    def content(self) -> dict[str, Any]:
        """Return the numbers as nested plain values and arrays, for a JSON document."""
        return asdict(self)

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Figure6:
        """Return what `content` was made from, also after a way through JSON."""
        return cls(
            content["rows"],
            content["strength"],
            content["curvature"],
            References(**content["references"]),
            _restored(Traces, content["traces"]),
            _restored(Acceptance, content["acceptance"]),
            _restored(Hysteresis, content["hysteresis"]),
        )


Part = TypeVar("Part")


def _restored(kind: Callable[..., Part], content: Mapping[str, Any]) -> Part:
    """Return a part of the figure: flat lists are the tuples of its settings, the others its arrays of numbers."""
    settings = {"steps", "sizes", "curvatures"}
    return kind(
        **{
            name: value
            if not isinstance(value, (list, tuple, np.ndarray))
            else tuple(value)
            if name in settings
            else np.asarray(value)
            for name, value in content.items()
        }
    )


def table_text(figure: Figure6) -> str:
    """Return the numbers as plain-text tables, beside those that the text of the paper gives."""
    return "\n\n".join(
        "\n".join(part)
        for part in (
            _reference_lines(figure),
            _trace_lines(figure),
            _acceptance_lines(figure),
            _hysteresis_lines(figure),
        )
    )


def _reference_lines(figure: Figure6) -> list[str]:
    references, traces = figure.references, figure.traces
    error = "not trusted" if references.std_error is None else f"{references.std_error:.2f}"
    rows = [
        ["VB bound", f"{references.bound:.2f}", ""],
        ["BIC", f"{references.bic:.2f}", ""],
        ["ais, standard error", f"{references.estimate:.2f}, {error}", ""],
    ]
    for name, label in (("bic", "BIC"), ("bound", "the VB bound")):
        level = getattr(references, name)
        rows.append([f"K where chains pass {label}", _steps_text(traces, level), f"about {PAPER_CROSSINGS[name]}"])
    title = f"true structure, n = {figure.rows}: ln p(y); VB and BIC without ln S = {references.log_aliases:.2f}"
    return _table(title, ["", "here", "paper, section 5"], rows)


def _steps_text(traces: Traces, level: float) -> str:
    place = traces.crossing(level)
    if math.isinf(place):
        return f"above {traces.steps[-1]}"
    return f"{place:.0f}" if place else f"below {traces.steps[0]}"


def _trace_lines(figure: Figure6) -> list[str]:
    traces = figure.traces
    rows = []
    for place, steps in enumerate(traces.steps):
        # A chain on the variational path that ends under other names of hidden states has no weight, by construction.
        middles = (traces.prior[place].mean(), np.median(traces.variational[place]))
        both = zip(middles, (traces.prior[place], traces.variational[place]), strict=True)
        spread = [(middle, own.min(), own.max()) for middle, own in both]
        values = [*spread[0], traces.true[place], *spread[1]]
        rows.append([str(steps), *(f"{value:.1f}" for value in values)])
    title = f"panel a: ln p̂ of {traces.prior.shape[1]} single chains"
    header = ["K", "from prior", "lowest", "highest", "from true θ", "variational", "lowest", "highest"]
    return _table(title, header, rows)


def _acceptance_lines(figure: Figure6) -> list[str]:
    acceptance = figure.acceptance
    least, value = PAPER_LEAST_ACCEPTANCE
    rows = []
    for place, n in enumerate(acceptance.sizes):
        paper = f"{PAPER_ACCEPTANCE[n]:.3f}" if n in PAPER_ACCEPTANCE else f"> {value}" if n <= least else ""
        numbers = [acceptance.mean[place], acceptance.deviation[place], *acceptance.quarters[place]]
        rows.append([str(n), *(f"{number:.3f}" for number in numbers), paper])
    title = (
        f"panel b: share of proposals accepted, strength {figure.strength:g}, K = {acceptance.steps}, mean over "
        f"{acceptance.structures} structures"
    )
    header = ["n", "all", "deviation", "quarter 1", "quarter 2", "quarter 3", "quarter 4", "paper, table 3"]
    return _table(title, header, rows)


def _hysteresis_lines(figure: Figure6) -> list[str]:
    hysteresis = figure.hysteresis
    rows = []
    for place, curvature in enumerate(hysteresis.curvatures):
        row = [f"{curvature:g}"]
        for steps in range(len(hysteresis.steps)):
            forward, backward = hysteresis.forward[place, steps].mean(), hysteresis.backward[place, steps].mean()
            width, error = hysteresis.width[place, steps], hysteresis.width_error[place, steps]
            row += [f"{forward:.1f}", f"{backward:.1f}", f"{width:.1f}", f"{error:.1f}"]
        rows.append(row)
    header = ["e"]
    for count in hysteresis.steps:
        header += [f"K = {count}: forward", "backward", "width", "error"]
    return _table("panel d: mean ln p̂ from the prior and back to it, by curvature e of the schedule", header, rows)


def _table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return lines of a table; the first column is to the left, the others to the right."""
    widths = [max(len(row[place]) for row in (header, *rows)) for place in range(len(header))]
    lines = [title]
    for row in (header, *rows):
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        lines.append("  ".join(cells).rstrip())
    return lines


def plot_figure6(figure: Figure6) -> Figure:
    """Draw four panels: ln p̂ against K, acceptance against n, schedules, hysteresis against curvature."""
    from matplotlib.figure import Figure as Picture
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    picture = Picture(figsize=(11.0, 9.0), layout=ConstrainedLayoutEngine(hspace=0.06, wspace=0.05))
    panels = picture.subplots(2, 2)
    _draw_traces(panels[0, 0], figure)
    _draw_acceptance(panels[0, 1], figure)
    _draw_schedules(panels[1, 0], figure)
    _draw_hysteresis(panels[1, 1], figure)
    for axes in panels.flat:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color="#E4E4E4", linewidth=0.7)
        axes.set_axisbelow(True)
    return picture


def _legend_below(axes: Axes, columns: int) -> None:
    """Put the legend under the panel, where no line runs."""
    axes.legend(frameon=False, fontsize=8.5, ncols=columns, loc="upper center", bbox_to_anchor=(0.5, -0.14))


def _scale_around_estimate(axes: Axes, references: References) -> None:
    """Measure ln p̂ from the estimate, as it is near by and in logarithms far away: short chains are hundreds below."""
    if references.std_error is not None:
        axes.axhspan(-references.std_error, references.std_error, color=PALETTE[3], alpha=0.35, linewidth=0.0)
    axes.axhline(0.0, color=PALETTE[3], linewidth=1.6, zorder=4, label="ais, standard error")
    axes.set_yscale("symlog", linthresh=10.0, linscale=1.0)
    limits = axes.get_ylim()
    axes.set_yticks(TICKS, [f"{tick:+g}" if tick else "0" for tick in TICKS])
    axes.set_yticks([], minor=True)
    axes.set_ylim(limits)  # ticks out of sight must not widen the panel
    axes.set_ylabel("ln p̂(y) − ais estimate, nats")


def _draw_traces(axes: Axes, figure: Figure6) -> None:
    traces, references = figure.traces, figure.references
    level = references.estimate
    for values, color, marker, name in (
        (traces.prior, PALETTE[0], "o", "prior path"),
        (traces.variational, PALETTE[2], "^", "variational path"),
    ):
        style = {"color": color, "marker": marker, "linewidth": 0.9, "markersize": 2.5}
        lines = axes.plot(traces.steps, values - level, **style)  # type: ignore[arg-type]
        lines[0].set_label(f"{name}, {len(lines)} seeds")
    axes.plot(traces.steps, traces.true - level, color=PALETTE[1], marker="s", markersize=4, label="from the true θ")
    axes.axhline(references.bound - level, color="black", linewidth=1.3, label="VB bound")
    axes.axhline(references.bic - level, color="black", linewidth=1.3, linestyle="--", label="BIC")
    _scale_around_estimate(axes, references)
    axes.set_xscale("log", base=2)
    axes.set_xlabel("temperatures K = passes over the rows")
    axes.set_title(f"a  Single chains, true structure, n = {figure.rows}", loc="left")
    _legend_below(axes, 3)


def _draw_acceptance(axes: Axes, figure: Figure6) -> None:
    acceptance = figure.acceptance
    low, high = acceptance.mean - acceptance.deviation, acceptance.mean + acceptance.deviation
    axes.fill_between(acceptance.sizes, low, high, color=GREY, alpha=0.2, linewidth=0.0, label="± deviation")
    axes.plot(acceptance.sizes, acceptance.mean, color="black", linewidth=2.2, label="whole schedule")
    for quarter in range(4):
        label = f"quarter {quarter + 1}"
        axes.plot(acceptance.sizes, acceptance.quarters[:, quarter], color=PALETTE[quarter], linewidth=1.2, label=label)
    paper = {n: rate for n, rate in PAPER_ACCEPTANCE.items() if n <= max(acceptance.sizes)}
    if paper:
        points = (list(paper), list(paper.values()))
        axes.plot(*points, "x", color="black", markersize=7, markeredgewidth=1.8, label="paper, table 3")
    axes.set_xscale("log")
    axes.set_ylim(0.0, 1.0)
    axes.set_xlabel("rows n")
    axes.set_ylabel("share of proposals accepted")
    axes.set_title(f"b  Acceptance, {acceptance.structures} structures, K = {acceptance.steps}", loc="left")
    _legend_below(axes, 4)


def _draw_schedules(axes: Axes, figure: Figure6) -> None:
    share = np.linspace(0.0, 1.0, 201)
    for place, curvature in enumerate(figure.hysteresis.curvatures):
        width = 2.4 if curvature == figure.curvature else 1.3
        taus = curvature * share / (1.0 - share + curvature)
        axes.plot(share, taus, color=PALETTE[place % len(PALETTE)], linewidth=width, label=f"e = {curvature:g}")
    axes.set_xlabel("k / K")
    axes.set_ylabel("inverse temperature τ")
    axes.set_title("c  Annealing schedules (eq. 69)", loc="left")
    _legend_below(axes, 3)


def _draw_hysteresis(axes: Axes, figure: Figure6) -> None:
    hysteresis, references = figure.hysteresis, figure.references
    places = np.arange(len(hysteresis.curvatures))
    for number, steps in enumerate(hysteresis.steps):
        color, shift = PALETTE[number % len(PALETTE)], 0.2 * (number - 0.5 * (len(hysteresis.steps) - 1))
        for own, marker, word, aside in (
            (hysteresis.forward, "^", "forward", -0.05),
            (hysteresis.backward, "v", "backward", 0.05),
        ):
            values = own[:, number] - references.estimate
            mean = values.mean(axis=1)
            reach = np.stack([mean - values.min(axis=1), values.max(axis=1) - mean])
            axes.errorbar(
                places + shift + aside,
                mean,
                reach,
                color=color,
                marker=marker,
                capsize=3,
                elinewidth=1,
                linewidth=1.4,
                linestyle="-" if word == "forward" else "--",
                label=f"{word}, K = {steps}",
            )
    _scale_around_estimate(axes, references)
    axes.set_xticks(places, [f"{curvature:g}" for curvature in hysteresis.curvatures])
    axes.set_xlabel("curvature e of the schedule")
    axes.set_title("d  Hysteresis: mean and range of chains, both ways", loc="left")
    _legend_below(axes, 3)
