"""Pictures of structures: layers from parents to children, hidden variables shaded."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from lurking.graph.dag import Dag
from lurking.report.fonts import choose_fonts, width_in_letters

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HIDDEN_FILL, HIDDEN_RIM = "#F5D5B8", "#D55E00"
OBSERVED_FILL, OBSERVED_RIM = "#FFFFFF", "#333333"
SWEEPS = 12
CHARACTER = 0.105  # width of a character and height of a layer, in inches
LAYER = 1.05
GAP = 0.3
WAY = 0.1
"""Inches that an arc takes where it passes a layer."""
HALF_BOX = 0.135
PORTS = 0.6
"""Share of the width of a box along which arcs leave and arrive."""
BEND = 0.4
MOST_WIDTH = 11.0
LETTER = 0.085
"""Inches that a letter of the title takes: the figure must be as wide as its title."""

Place = tuple[float, float]
Edge = tuple[str, str]
Stop = str | tuple[str, str, int]
"""A node, or the place (parent, child, layer) where an arc passes a layer between its ends."""


def plot_structure(
    dag: Dag, title: str = "", axes: Axes | None = None, *, lines: Collection[frozenset[str]] = ()
) -> Axes:
    """Draw a structure: every node below its parents, hidden ones shaded with their number of states.

    The pairs in `lines`, such as `Cpdag.undirected`, are joined by a line without a head.

    Nodes without any arc stand in the last line. An arc that passes a layer has a place of its own among the nodes
    there, so that it never runs behind a box. Within a layer everything is ordered by the mean place of its neighbours,
    which leaves few crossings (Sugiyama, Tagawa & Toda 1981).
    """
    labels = {name: f"{name} [{dag.hidden[name]}]" if name in dag.hidden else name for name in dag.nodes}
    widths: dict[Stop, float] = {name: CHARACTER * width_in_letters(label) + 0.35 for name, label in labels.items()}
    nodes = _folded(_layers(dag), {name: widths[name] for name in dag.nodes})
    ways = _ways(dag, nodes)
    widths |= {stop: WAY for way in ways.values() for stop in way[1:-1]}
    layers = _ordered(_with_ways(nodes, ways), _neighbours(ways))
    places = _places(layers, widths, _neighbours(ways))
    right = max(places[stop][0] + widths[stop] / 2 for stop in places)
    spare = 0.0
    if axes is None:
        from matplotlib.figure import Figure

        heading = title.split("\n")
        width = max(right + 0.4, 3.0, LETTER * max(map(width_in_letters, heading)))
        # Places are in inches: what the title takes beyond them is left free on both sides.
        spare = (width - right - 0.4) / 2
        axes = Figure(
            figsize=(width, LAYER * len(layers) + 0.3 + 0.2 * len(heading)), layout="constrained"
        ).add_subplot()
    for (parent, child), points in _lines(ways, places, widths).items():
        is_hidden = parent in dag.hidden or child in dag.hidden
        style = "-" if frozenset((parent, child)) in lines else "-|>"
        _draw_arc(axes, points, HIDDEN_RIM if is_hidden else "#777777", style)
    for name in dag.nodes:
        fill, rim = (HIDDEN_FILL, HIDDEN_RIM) if name in dag.hidden else (OBSERVED_FILL, OBSERVED_RIM)
        x, y = places[name]
        box = {"boxstyle": "round,pad=0.35", "facecolor": fill, "edgecolor": rim, "linewidth": 1.4}
        axes.text(x, y, labels[name], ha="center", va="center", fontsize=10, bbox=box, zorder=3)
    axes.set_xlim(-0.15 - spare, right + 0.15 + spare)
    axes.set_ylim(-LAYER * (len(layers) - 0.5), LAYER * 0.5)
    axes.set_axis_off()
    if title:
        axes.set_title(title, loc="left", fontsize=11)
    choose_fonts(axes)
    return axes


def _draw_arc(axes: Axes, points: list[Place], color: str, style: str) -> None:
    """Draw one arrow: upright through the layers that it passes, and bent in the space between layers only.

    `points` are where it leaves a layer and where it reaches the next one, in turn; `style` has a head or none.
    """
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    vertices, codes = [points[0]], [Path.MOVETO]
    for place, (start, end) in enumerate(itertools.pairwise(points)):
        if place % 2 == 1:
            vertices.append(end)
            codes.append(Path.LINETO)
            continue
        fall = BEND * (start[1] - end[1])
        vertices += [(start[0], start[1] - fall), (end[0], end[1] + fall), end]
        codes += [Path.CURVE4] * 3
    line = Path(vertices, codes)
    axes.add_patch(
        FancyArrowPatch(path=line, arrowstyle=style, mutation_scale=10, color=color, linewidth=1.2, zorder=2)
    )


def _ways(dag: Dag, layers: list[list[str]]) -> dict[Edge, list[Stop]]:
    """Return the stops of every arc, from its parent through each layer between to its child."""
    depth = {name: place for place, layer in enumerate(layers) for name in layer}
    return {
        (parent, child): [
            parent,
            *((parent, child, place) for place in range(depth[parent] + 1, depth[child])),
            child,
        ]
        for parent, child in dag.edges
    }


def _with_ways(layers: list[list[str]], ways: dict[Edge, list[Stop]]) -> list[list[Stop]]:
    """Return the layers with the places where arcs pass them."""
    result: list[list[Stop]] = [list(layer) for layer in layers]
    for way in ways.values():
        for stop in way[1:-1]:
            result[int(stop[2])].append(stop)
    return result


def _neighbours(ways: dict[Edge, list[Stop]]) -> dict[Stop, list[Stop]]:
    """Return the stops before and after each stop."""
    near: dict[Stop, list[Stop]] = {}
    for way in ways.values():
        for above, below in itertools.pairwise(way):
            near.setdefault(above, []).append(below)
            near.setdefault(below, []).append(above)
    return near


def _lines(
    ways: dict[Edge, list[Stop]], places: dict[Stop, Place], widths: dict[Stop, float]
) -> dict[Edge, list[Place]]:
    """Return for every arc the points where it leaves a layer and reaches the next one, in turn.

    Arcs of one box leave it, and reach it, side by side in the order of where they lead.
    """
    offsets: dict[tuple[Edge, str], float] = {}
    for name in {end for edge in ways for end in edge}:
        for side in (0, 1):
            own = [edge for edge in ways if edge[side] == name]
            own.sort(key=lambda edge, side=side: places[ways[edge][1 if side == 0 else -2]][0])  # type: ignore[misc]
            for rank, edge in enumerate(own):
                share = (rank + 0.5) / len(own) - 0.5
                offsets[edge, name] = share * PORTS * widths[name]
    lines: dict[Edge, list[Place]] = {}
    for edge, way in ways.items():
        points: list[Place] = []
        for stop in way:
            x, y = places[stop]
            x += offsets[edge, stop] if isinstance(stop, str) else 0.0
            points += [(x, y + HALF_BOX), (x, y - HALF_BOX)]
        lines[edge] = points[1:-1]
    return lines


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


def _ordered(layers: list[list[Stop]], near: dict[Stop, list[Stop]]) -> list[list[Stop]]:
    """Return the layers in the order of the mean relative place of the neighbours, sweep after sweep."""
    place = {stop: (k + 0.5) / len(layer) for layer in layers for k, stop in enumerate(layer)}
    for sweep in range(SWEEPS):
        for layer in layers if sweep % 2 == 0 else layers[::-1]:
            wanted = {}
            for stop in layer:
                around = [place[other] for other in near.get(stop, ())]
                wanted[stop] = float(np.mean(around)) if around else place[stop]
            layer.sort(key=lambda stop: wanted[stop])
            place.update({stop: (k + 0.5) / len(layer) for k, stop in enumerate(layer)})
    return layers


def _places(layers: list[list[Stop]], widths: dict[Stop, float], near: dict[Stop, list[Stop]]) -> dict[Stop, Place]:
    """Return the middle of every stop in inches, as near to the mean of its neighbours as the others leave room for."""
    steps = {id(layer): [(widths[a] + widths[b]) / 2 + GAP for a, b in itertools.pairwise(layer)] for layer in layers}
    middle: dict[Stop, float] = {}
    for layer in layers:
        reach = np.concatenate([[0.0], np.cumsum(steps[id(layer)])])
        middle |= dict(zip(layer, (reach - reach[-1] / 2).tolist(), strict=True))
    for sweep in range(SWEEPS):
        for layer in layers if sweep % 2 == 0 else layers[::-1]:
            wanted = [
                float(np.mean([middle[other] for other in near[stop]])) if stop in near else middle[stop]
                for stop in layer
            ]
            middle |= dict(zip(layer, _apart(wanted, steps[id(layer)]), strict=True))
    left = min(middle[stop] - widths[stop] / 2 for stop in middle)
    return {stop: (middle[stop] - left, -LAYER * depth) for depth, layer in enumerate(layers) for stop in layer}


def _apart(wanted: list[float], steps: list[float]) -> list[float]:
    """Return the places x nearest to the wanted ones, Σ (x − wanted)² least, with x[k + 1] − x[k] ≥ steps[k].

    Less the sum of the steps before it, x must not fall: an isotonic regression by pooling neighbours.
    """
    reach = np.concatenate([[0.0], np.cumsum(steps)])
    blocks: list[tuple[float, int]] = []
    for value in np.asarray(wanted) - reach:
        mean, size = float(value), 1
        while blocks and blocks[-1][0] > mean:
            other, count = blocks.pop()
            mean, size = (mean * size + other * count) / (size + count), size + count
        blocks.append((mean, size))
    level = np.concatenate([np.full(size, mean) for mean, size in blocks])
    return [float(x) for x in level + reach]
