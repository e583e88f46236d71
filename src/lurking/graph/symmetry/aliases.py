"""Aliases: the relabelings of hidden nodes and of their states that leave structure and prior unchanged.

S = Π_{hidden h} r_h! × |{permutations of the hidden nodes that map the structure onto itself, fix every observed node,
and keep cardinality and prior}|, when the prior is symmetric in the states of every hidden node. Beal & Ghahramani
(2006, eq. 24) add ln S to a score that covers one of S equal modes. Their printed example "1728 (= 2! × 3! × 4!)"
has the right number and lacks a factor: 2!·3!·3!·4!.

With any other prior a relabeling is an alias if it maps the structure and every pseudo-count onto itself. Where every
family's table is constant all state permutations qualify and `symmetric_count` applies; otherwise the aliases are the
automorphisms of one coloured graph of structure and tables together.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping

import numpy as np

from lurking.errors import PriorError
from lurking.graph.dag import Dag
from lurking.graph.symmetry.actions import count_actions, hidden_edges, node_colors, symmetric_count
from lurking.graph.symmetry.colored import LabelledEdge
from lurking.types import FloatArray


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
    return _count_with_tables(dag, tables, cardinalities or {})


def _count_with_tables(dag: Dag, tables: Mapping[str, FloatArray], cardinalities: Mapping[str, int]) -> int:
    """Return S for the pseudo-counts of every node."""
    arrays = checked_tables(dag, tables, cardinalities)
    if all((array == array[0, 0]).all() for array in arrays.values()):
        return symmetric_count(dag, {name: float(arrays[name][0, 0]) for name in dag.hidden})
    return count_actions(*relational_graph(dag, arrays))


def checked_tables(
    dag: Dag, tables: Mapping[str, FloatArray], cardinalities: Mapping[str, int]
) -> dict[str, FloatArray]:
    """Return the tables rounded to 12 significant digits, after checking that their shapes fit the structure."""
    arrays: dict[str, FloatArray] = {}
    for name in dag.nodes:
        if name not in tables:
            raise PriorError(f"the prior has no table for node {name!r}; give pseudo-counts of every node")
        array = np.asarray(tables[name], dtype=np.float64)
        if array.ndim != 2 or array.size == 0:
            raise PriorError(
                f"the table of {name!r} has shape {array.shape}; give one row per parent configuration and one "
                "column per state"
            )
        expected = dag.hidden.get(name, cardinalities.get(name, array.shape[1]))
        if array.shape[1] != expected:
            raise PriorError(
                f"the table of {name!r} has {array.shape[1]} columns, but the node has {expected} states; give one "
                "column per state"
            )
        arrays[name] = array
    for name, array in arrays.items():
        configurations = math.prod(arrays[parent].shape[1] for parent in dag.parents(name))
        if len(array) != configurations:
            raise PriorError(
                f"the table of {name!r} has {len(array)} rows, but its parents have {configurations} configurations; "
                "give one row per configuration"
            )
    return {name: _rounded(array) for name, array in arrays.items()}


def _rounded(array: FloatArray) -> FloatArray:
    # Pseudo-counts such as 0.1 · 3 and 0.3 differ in the last bit and are still meant to be equal.
    if (array == array[0, 0]).all():
        return np.full(array.shape, float(f"{array[0, 0]:.12g}"))
    values, places = np.unique(array, return_inverse=True)
    rounded = np.array([float(f"{value:.12g}") for value in values])
    return rounded[places].reshape(array.shape)


def relational_graph(dag: Dag, tables: dict[str, FloatArray]) -> tuple[list[Hashable], list[LabelledEdge], list[int]]:
    """Return structure and prior as one coloured graph: colours, edges, and which vertices carry parameters.

    Vertices are the hidden nodes (each also stands for its family), their states, and the table entries that differ
    from the usual value of their family (its most frequent one, the smallest of several). The usual entries need no
    vertices: they are the combinations of states without one. The colour of an entry is its value, its family if that
    is observed, and the observed states in it; edges lead to its family if that is hidden and to the hidden states in
    it, by role. An automorphism that fixes every node and state fixes every entry, so automorphisms and relabelings
    correspond one to one.
    """
    usual = {name: _usual_value(array) for name, array in tables.items()}
    colors = node_colors(dag, {name: usual[name] for name in dag.hidden})
    edges = hidden_edges(dag)
    node_vertex = {name: position for position, name in enumerate(dag.hidden)}
    state_vertex: dict[str, range] = {}
    for name, cardinality in dag.hidden.items():
        state_vertex[name] = range(len(colors), len(colors) + cardinality)
        edges.extend((vertex, node_vertex[name], "state") for vertex in state_vertex[name])
        colors.extend(["state"] * cardinality)
    for name, array in tables.items():
        axes = (*dag.parents(name), name)
        cube = array.reshape([tables[axis].shape[1] for axis in axes])
        for place in np.argwhere(cube != usual[name]).tolist():
            entry = len(colors)
            visible = []
            for axis, state in zip(axes, place, strict=True):
                if axis in state_vertex:
                    edges.append((entry, state_vertex[axis][state], "own" if axis == name else "parent"))
                else:
                    visible.append((axis, state))
            if name in node_vertex:
                edges.append((entry, node_vertex[name], "family"))
            family = None if name in node_vertex else name
            colors.append(("entry", family, tuple(sorted(visible)), float(cube[tuple(place)])))
    # States carry the parameters; what they do decides what nodes of more than one state and entries do.
    kept = [vertex for name in dag.hidden if dag.hidden[name] > 1 for vertex in state_vertex[name]]
    return colors, edges, kept


def _usual_value(array: FloatArray) -> float:
    values, counts = np.unique(array, return_counts=True)
    return float(values[np.argmax(counts)])
