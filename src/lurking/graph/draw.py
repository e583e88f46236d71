"""Drawings of a structure without any dependency: Graphviz source and a small inline SVG."""

from __future__ import annotations

from html import escape

from lurking.graph.structure import Structure

_CHARACTER_WIDTH = 8
_NODE_HEIGHT = 28
_LAYER_GAP = 44
_NODE_GAP = 18
_MARGIN = 8


def dot_source(dag: Structure) -> str:
    """Return Graphviz source: hidden nodes dashed, with their cardinality below the name."""
    lines = ["digraph {"]
    for name in dag.nodes:
        if name in dag.hidden:
            # The line break is Graphviz's own escape \n, so it is added after the name was quoted.
            lines.append(f'  "{_dot_escape(name)}" [label="{_dot_escape(name)}\\n{dag.hidden[name]}", style=dashed];')
        else:
            lines.append(f'  "{_dot_escape(name)}";')
    lines.extend(f'  "{_dot_escape(parent)}" -> "{_dot_escape(child)}";' for parent, child in dag.edges)
    lines.append("}")
    return "\n".join(lines) + "\n"


def _dot_escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def svg_drawing(dag: Structure) -> str:
    """Return an inline SVG: every node below its lowest parent, hidden nodes dashed with their cardinality."""
    labels = {name: f"{name} [{dag.hidden[name]}]" if name in dag.hidden else name for name in dag.nodes}
    widths = {name: max(_CHARACTER_WIDTH * len(label) + 16, 36) for name, label in labels.items()}
    layers = _layers(dag)
    total = max(sum(widths[name] + _NODE_GAP for name in layer) for layer in layers) - _NODE_GAP
    places: dict[str, tuple[float, float]] = {}
    for depth, layer in enumerate(layers):
        left = _MARGIN + (total - sum(widths[name] + _NODE_GAP for name in layer) + _NODE_GAP) / 2
        for name in layer:
            vertical = _MARGIN + _NODE_HEIGHT / 2 + depth * (_NODE_HEIGHT + _LAYER_GAP)
            places[name] = (left + widths[name] / 2, vertical)
            left += widths[name] + _NODE_GAP
    width = total + 2 * _MARGIN
    height = 2 * _MARGIN + len(layers) * (_NODE_HEIGHT + _LAYER_GAP) - _LAYER_GAP
    parts = [_edge_line(places[parent], places[child]) for parent, child in dag.edges]
    parts.extend(_node_shape(places[name], widths[name], labels[name], name in dag.hidden) for name in dag.nodes)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" role="img" '
        f'aria-label="{escape(str(dag))}" font-family="sans-serif" font-size="13">{"".join(parts)}</svg>'
    )


def _layers(dag: Structure) -> list[list[str]]:
    depth: dict[str, int] = {}
    for name in dag.topological_order:
        depth[name] = max((depth[parent] + 1 for parent in dag.parents(name)), default=0)
    layers: list[list[str]] = [[] for _ in range(max(depth.values()) + 1)]
    for name in dag.nodes:
        layers[depth[name]].append(name)
    return layers


def _edge_line(start: tuple[float, float], end: tuple[float, float]) -> str:
    """Return a line from the lower rim of the parent to the upper rim of the child, with a small triangle as head."""
    from_x, from_y = start[0], start[1] + _NODE_HEIGHT / 2
    to_x, to_y = end[0], end[1] - _NODE_HEIGHT / 2
    length = ((to_x - from_x) ** 2 + (to_y - from_y) ** 2) ** 0.5
    along_x, along_y = 6 * (to_x - from_x) / length, 6 * (to_y - from_y) / length
    base_x, base_y = to_x - along_x, to_y - along_y
    head = (
        f"{to_x:.1f},{to_y:.1f} {base_x - along_y / 2:.1f},{base_y + along_x / 2:.1f} "
        f"{base_x + along_y / 2:.1f},{base_y - along_x / 2:.1f}"
    )
    return (
        f'<line x1="{from_x:.1f}" y1="{from_y:.1f}" x2="{base_x:.1f}" y2="{base_y:.1f}" stroke="#666"/>'
        f'<polygon points="{head}" fill="#666"/>'
    )


def _node_shape(place: tuple[float, float], width: float, label: str, is_hidden: bool) -> str:
    dash = ' stroke-dasharray="4 3"' if is_hidden else ""
    return (
        f'<rect x="{place[0] - width / 2:.1f}" y="{place[1] - _NODE_HEIGHT / 2:.1f}" width="{width}" '
        f'height="{_NODE_HEIGHT}" rx="{_NODE_HEIGHT / 2:g}" fill="#fff" stroke="#333"{dash}/>'
        f'<text x="{place[0]:.1f}" y="{place[1] + 4.5:.1f}" text-anchor="middle" fill="#000">{escape(label)}</text>'
    )
