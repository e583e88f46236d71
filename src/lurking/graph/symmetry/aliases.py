"""Aliases: the relabelings of hidden nodes and of their states that leave structure and prior unchanged.

S = Π_{hidden h} r_h! × |{permutations of the hidden nodes that map the structure onto itself, fix every observed node,
and keep cardinality and prior}|, when the prior is symmetric in the states of every hidden node. Beal & Ghahramani
(2006, eq. 24) add ln S to a score that covers one of S equal modes. Their printed example "1728 (= 2! × 3! × 4!)"
has the right number and lacks a factor: 2!·3!·3!·4!. For any other prior see `lurking.graph.symmetry.prior_aliases`.

A node of cardinality 1 has no parameters to exchange. Two relabelings that differ only in what they do to such nodes
act alike on every parameter and are counted once.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING

from lurking.graph.dag import Dag
from lurking.graph.symmetry.colored import ColoredGraph, LabelledEdge, automorphism_order, canonical_labelling, refine

if TYPE_CHECKING:
    from lurking.types import FloatArray

__all__ = [
    "ColoredGraph",
    "alias_count",
    "automorphism_order",
    "canonical_labelling",
    "hidden_automorphisms",
    "hidden_graph",
    "log_aliases",
    "refine",
]


def hidden_graph(dag: Dag, keys: Mapping[str, Hashable] | None = None) -> ColoredGraph:
    """Return the graph on the hidden nodes (vertex i = the i-th) whose automorphisms are those of the structure.

    Observed nodes stay where they are, so the observed parents and children of a hidden node, with its cardinality and
    its key, are a colour; the edges between hidden nodes remain.
    """
    return ColoredGraph(node_colors(dag, keys or {}), hidden_edges(dag))


def hidden_automorphisms(dag: Dag, prior_key: Mapping[str, Hashable] | None = None) -> int:
    """Return the number of permutations of hidden nodes that map the structure onto itself.

    They fix every observed node and keep cardinality and, where given, the prior key of each hidden node.
    """
    return automorphism_order(hidden_graph(dag, prior_key))


def log_aliases(
    dag: Dag, tables: Mapping[str, FloatArray] | None = None, cardinalities: Mapping[str, int] | None = None
) -> float:
    """Return ln S; arguments as for `alias_count`."""
    return math.log(alias_count(dag, tables, cardinalities))


def alias_count(
    dag: Dag, tables: Mapping[str, FloatArray] | None = None, cardinalities: Mapping[str, int] | None = None
) -> int:
    """Return S, the number of relabelings that leave structure and prior unchanged.

    Args:
        dag: The structure; pass ``dag.pruned()`` to leave out hidden nodes without an observed descendant.
        tables: Dirichlet pseudo-counts of every node, array[l, k] with parent configuration l row-major over the
            parents in listed order, first parent slowest; tables of other nodes are ignored. Equal means equal to 12
            significant digits. Without tables the prior is taken as symmetric in every family and equal for
            exchangeable nodes.
        cardinalities: Numbers of states of observed nodes; the tables imply them, given ones must agree.
    """
    if tables is None:
        return symmetric_count(dag, {})
    from lurking.graph.symmetry.prior_aliases import alias_count_with_tables

    return alias_count_with_tables(dag, tables, cardinalities or {})


def symmetric_count(dag: Dag, keys: Mapping[str, Hashable]) -> int:
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


def node_colors(dag: Dag, keys: Mapping[str, Hashable]) -> list[Hashable]:
    """Return, for every hidden node, its cardinality, sorted observed parents, sorted observed children and key."""
    colors: list[Hashable] = []
    for name, cardinality in dag.hidden.items():
        above = tuple(sorted(parent for parent in dag.parents(name) if parent not in dag.hidden))
        below = tuple(sorted(child for child in dag.children(name) if child not in dag.hidden))
        colors.append((cardinality, above, below, keys.get(name)))
    return colors


def hidden_edges(dag: Dag) -> list[LabelledEdge]:
    """Return the edges between hidden nodes, numbered by their place in `Dag.hidden`."""
    vertex = {name: position for position, name in enumerate(dag.hidden)}
    return [
        (vertex[parent], vertex[child], "parent")
        for child in vertex
        for parent in dag.parents(child)
        if parent in vertex
    ]
