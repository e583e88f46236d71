"""Permutations of hidden nodes that map a structure onto itself, as automorphisms of a coloured graph.

A node of cardinality 1 has no parameters to exchange. Two relabelings that differ only in what they do to such nodes
act alike on every parameter and are counted once.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping

from lurking.graph.structure import Structure
from lurking.graph.symmetry.colored import ColoredGraph, LabelledEdge, automorphism_order, canonical_labelling, refine

__all__ = [
    "ColoredGraph",
    "automorphism_order",
    "canonical_labelling",
    "hidden_automorphisms",
    "hidden_graph",
    "refine",
]


def hidden_graph(dag: Structure, keys: Mapping[str, Hashable] | None = None) -> ColoredGraph:
    """Return the graph on the hidden nodes (vertex i = the i-th) whose automorphisms are those of the structure.

    Observed nodes stay where they are, so the observed parents and children of a hidden node, with its cardinality and
    its key, are a colour; the edges between hidden nodes remain.
    """
    return ColoredGraph(node_colors(dag, keys or {}), hidden_edges(dag))


def hidden_automorphisms(dag: Structure, prior_key: Mapping[str, Hashable] | None = None) -> int:
    """Return the number of permutations of hidden nodes that map the structure onto itself.

    They fix every observed node and keep cardinality and, where given, the prior key of each hidden node.
    """
    return automorphism_order(hidden_graph(dag, prior_key))


def symmetric_count(dag: Structure, keys: Mapping[str, Hashable]) -> int:
    """Return S for a prior which is symmetric in every family; nodes with different keys are not exchanged."""
    relabelings = math.prod(math.factorial(cardinality) for cardinality in dag.hidden.values())
    if len(dag.hidden) < 2:
        return relabelings
    with_parameters = [vertex for vertex, cardinality in enumerate(dag.hidden.values()) if cardinality > 1]
    return relabelings * count_actions(node_colors(dag, keys), hidden_edges(dag), with_parameters)


def count_actions(colors: list[Hashable], edges: list[LabelledEdge], kept: list[int]) -> int:
    """Return how many different actions the automorphisms of a coloured graph have on the kept vertices.

    By Lagrange: |Aut| / |{automorphisms that fix every kept vertex}|.
    """
    if len(set(colors)) == len(colors):
        return 1
    order = automorphism_order(ColoredGraph(colors, edges))
    if len(colors) - len(kept) < 2:
        return order
    fixed: list[Hashable] = list(colors)
    for vertex in kept:
        fixed[vertex] = ("fixed", vertex)
    return order // automorphism_order(ColoredGraph(fixed, edges))


def node_colors(dag: Structure, keys: Mapping[str, Hashable]) -> list[Hashable]:
    """Return, for every hidden node, its cardinality, sorted observed parents, sorted observed children and key."""
    colors: list[Hashable] = []
    for name, cardinality in dag.hidden.items():
        above = tuple(sorted(parent for parent in dag.parents(name) if parent not in dag.hidden))
        below = tuple(sorted(child for child in dag.children(name) if child not in dag.hidden))
        colors.append((cardinality, above, below, keys.get(name)))
    return colors


def hidden_edges(dag: Structure) -> list[LabelledEdge]:
    """Return the edges between hidden nodes, numbered by their place in `Dag.hidden`."""
    vertex = {name: position for position, name in enumerate(dag.hidden)}
    return [
        (vertex[parent], vertex[child], "parent")
        for child in vertex
        for parent in dag.parents(child)
        if parent in vertex
    ]
