"""Pictures of structures: layers from parents to children, hidden variables shaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lurking.graph.dag import Dag

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HIDDEN_FILL, HIDDEN_RIM = "#F5D5B8", "#D55E00"
OBSERVED_FILL, OBSERVED_RIM = "#FFFFFF", "#333333"
SWEEPS = 12
CHARACTER = 0.105  # width of a character and height of a layer, in inches
LAYER = 1.05
GAP = 0.3
HALF_BOX = 0.15
MOST_WIDTH = 11.0
LETTER = 0.085
"""Inches that a letter of the title takes: the figure must be as wide as its title."""

Place = tuple[float, float]


def plot_structure(dag: Dag, title: str = "", axes: Axes | None = None) -> Axes:
    """Draw a structure: every node below its parents, hidden ones shaded with their number of states.

    Nodes without any arc stand in the last line. Within a layer nodes are ordered by the mean place of their
    neighbours, which leaves few crossings.
    """
    labels = {name: f"{name} [{dag.hidden[name]}]" if name in dag.hidden else name for name in dag.nodes}
    widths = {name: CHARACTER * len(label) + 0.35 for name, label in labels.items()}
    layers = _ordered(dag, _folded(_layers(dag), widths))
    places = _places(layers, widths)
    if axes is None:
        from matplotlib.figure import Figure

        wide = max(places[name][0] + widths[name] / 2 for name in dag.nodes)
        width = max(wide + 0.4, 3.0, LETTER * len(title))
        axes = Figure(figsize=(width, LAYER * len(layers) + 0.5), layout="constrained").add_subplot()
    for parent, child in dag.edges:
        is_hidden = parent in dag.hidden or child in dag.hidden
        _draw_arc(axes, places[parent], places[child], HIDDEN_RIM if is_hidden else "#777777")
    for name in dag.nodes:
        fill, rim = (HIDDEN_FILL, HIDDEN_RIM) if name in dag.hidden else (OBSERVED_FILL, OBSERVED_RIM)
        x, y = places[name]
        box = {"boxstyle": "round,pad=0.35", "facecolor": fill, "edgecolor": rim, "linewidth": 1.4}
        axes.text(x, y, labels[name], ha="center", va="center", fontsize=10, bbox=box, zorder=3)
    right = max(places[name][0] + widths[name] / 2 for name in dag.nodes)
    axes.set_xlim(-0.15, right + 0.15)
    axes.set_ylim(-LAYER * (len(layers) - 0.5), LAYER * 0.5)
    axes.set_axis_off()
    if title:
        axes.set_title(title, loc="left", fontsize=11)
    return axes


def _draw_arc(axes: Axes, start: Place, end: Place, color: str) -> None:
    """Draw one arrow; bent when it passes layers between or stays in one, so that it does not run through nodes."""
    steps = abs(round((start[1] - end[1]) / LAYER))
    bend = 0.0 if steps == 1 else 0.18 if end[0] >= start[0] else -0.18
    style = {"arrowstyle": "-|>", "color": color, "linewidth": 1.2, "shrinkA": 0, "shrinkB": 0}
    below, above = (start[0], start[1] - HALF_BOX), (end[0], end[1] + HALF_BOX)
    axes.annotate("", xy=above, xytext=below, arrowprops=style | {"connectionstyle": f"arc3,rad={bend}"}, zorder=2)


def _layers(dag: Dag) -> list[list[str]]:
    """Return the nodes by the length of the longest way to them; those without arcs come last."""
    depth: dict[str, int] = {}
    loose = [name for name in dag.nodes if not dag.parents(name) and not dag.children(name)]
    for name in dag.topological_order:
        depth[name] = max((depth[parent] + 1 for parent in dag.parents(name)), default=0)
    for name in reversed(dag.topological_order):
        # A node without parents stands just above its highest child, not at the top.
        if dag.children(name) and not dag.parents(name):
            depth[name] = min(depth[child] for child in dag.children(name)) - 1
    count = max((depth[name] for name in dag.nodes if name not in loose), default=-1) + 1
    layers: list[list[str]] = [[] for _ in range(count)]
    for name in dag.nodes:
        if name not in loose:
            layers[depth[name]].append(name)
    return [layer for layer in layers if layer] + ([loose] if loose else [])


def _folded(layers: list[list[str]], widths: dict[str, float]) -> list[list[str]]:
    """Return the layers, those too wide for a page in two or more lines."""
    result: list[list[str]] = []
    for layer in layers:
        lines: list[list[str]] = [[]]
        used = 0.0
        for name in layer:
            if used + widths[name] > MOST_WIDTH and lines[-1]:
                lines.append([])
                used = 0.0
            lines[-1].append(name)
            used += widths[name] + GAP
        result += lines
    return result


def _ordered(dag: Dag, layers: list[list[str]]) -> list[list[str]]:
    """Return the layers with nodes in the order of the mean relative place of their neighbours, sweep after sweep."""
    place = {name: (k + 0.5) / len(layer) for layer in layers for k, name in enumerate(layer)}
    for sweep in range(SWEEPS):
        for layer in layers if sweep % 2 == 0 else layers[::-1]:
            wanted = {}
            for name in layer:
                near = [place[other] for other in (*dag.parents(name), *dag.children(name))]
                wanted[name] = float(np.mean(near)) if near else place[name]
            layer.sort(key=lambda name: wanted[name])
            place.update({name: (k + 0.5) / len(layer) for k, name in enumerate(layer)})
    return layers


def _places(layers: list[list[str]], widths: dict[str, float]) -> dict[str, Place]:
    """Return the middle of every node in inches, layers centred."""
    totals = [sum(widths[name] + GAP for name in layer) - GAP for layer in layers]
    places: dict[str, Place] = {}
    for depth, (layer, total) in enumerate(zip(layers, totals, strict=True)):
        left = (max(totals) - total) / 2
        for name in layer:
            places[name] = (left + widths[name] / 2, -LAYER * depth)
            left += widths[name] + GAP
    return places
