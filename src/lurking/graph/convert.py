"""Structures in the forms of other software: networkx graphs and bnlearn's model strings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from lurking.errors import StructureError, nearest_hint
from lurking.graph.checks import Edge
from lurking.graph.structure import Structure

if TYPE_CHECKING:
    import networkx as nx


_BRACKET = re.compile(r"\s*\[([^\[\]|]*)(?:\|([^\[\]|]*))?\]\s*")
_RESERVED = re.compile(r"[\[\]|:]|^\s|\s$")


def write_networkx(dag: Structure) -> nx.DiGraph[str]:
    """Return a DiGraph whose nodes, and whose predecessors of each node, keep the order of the structure."""
    import networkx as nx

    graph: nx.DiGraph[str] = nx.DiGraph()
    for name in dag.nodes:
        if name in dag.hidden:
            graph.add_node(name, hidden=True, cardinality=dag.hidden[name])
        else:
            graph.add_node(name, hidden=False)
    graph.add_edges_from(dag.edges)
    return graph


def read_networkx(graph: nx.DiGraph[Any]) -> tuple[tuple[str, ...], tuple[Edge, ...], dict[str, int]]:
    """Return nodes, edges (parents in the order of the graph's predecessors) and the hidden nodes by attribute."""
    import networkx as nx

    if not isinstance(graph, nx.DiGraph) or graph.is_multigraph():
        kind = type(graph).__name__
        raise StructureError(f"a structure needs a networkx DiGraph, not a {kind}; build one with nx.DiGraph(...)")
    for name in graph.nodes:
        if not isinstance(name, str):
            raise StructureError(
                f"node {name!r} is not text; names of nodes must be str, e.g. nx.relabel_nodes(graph, str)"
            )
    edges = tuple((parent, child) for child in graph.nodes for parent in graph.predecessors(child))
    hidden = {}
    for name, attributes in graph.nodes(data=True):
        if attributes.get("hidden"):
            if "cardinality" not in attributes:
                raise StructureError(
                    f"node {name!r} is marked hidden without a cardinality; set its attribute 'cardinality', e.g. 2"
                )
            hidden[name] = attributes["cardinality"]
    return tuple(graph.nodes), edges, hidden


def write_modelstring(dag: Structure) -> str:
    """Return ``[node|parent:parent]`` for every node in node order."""
    for name in dag.nodes:
        if _RESERVED.search(name):
            raise StructureError(
                f"node {name!r} cannot stand in a model string, where '[', ']', '|', ':' and outer blanks have a "
                "meaning; rename() it first"
            )
    return "".join(
        f"[{name}|{':'.join(dag.parents(name))}]" if dag.parents(name) else f"[{name}]" for name in dag.nodes
    )


def read_modelstring(text: str) -> tuple[tuple[str, ...], tuple[Edge, ...]]:
    """Return nodes in the order of the brackets, and the edges; every parent must have its own bracket."""
    if not isinstance(text, str):
        raise StructureError(f"a model string must be text, not {text!r}; write e.g. '[A][B|A]'")
    nodes: list[str] = []
    edges: list[Edge] = []
    position = 0
    while position < len(text):
        match = _BRACKET.match(text, position)
        if match is None:
            raise StructureError(
                f"cannot read the model string at position {position + 1}, near {text[position : position + 20]!r}; "
                "every node is written [name] or [name|parent:parent]"
            )
        child = match[1].strip()
        nodes.append(child)
        if match[2] is not None:
            edges.extend((parent.strip(), child) for parent in match[2].split(":"))
        position = match.end()
    for parent, child in edges:
        if parent not in nodes:
            raise StructureError(
                f"[{child}|...] names the parent {parent!r}, which has no bracket of its own"
                f"{nearest_hint(parent, nodes)}; add [{parent}] or correct the name"
            )
    return tuple(nodes), tuple(edges)
