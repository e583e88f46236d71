"""Structures that no data can tell apart, hidden variables included.

Two structures give the same set of distributions of the observed variables if they are Markov equivalent over all
variables, hidden ones matched whatever they are called. A hidden variable without an observed descendant (barren), or
with one state, adds nothing: it is dropped first.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import TypeAlias

from lurking.graph.dag import Dag
from lurking.graph.equivalence import Cpdag, consistent_extension, cpdag
from lurking.graph.symmetry.colored import ColoredGraph, LabelledEdge, canonical_labelling

ModelClass: TypeAlias = Hashable
"""A key that is equal for two structures exactly if they are in one class."""
REMEMBERED = 4096


def without_idle_hidden(dag: Dag) -> Dag:
    """Drop hidden variables with one state and then barren ones; a structure without any is returned as it is.

    A variable with one state is the same in every row, so that nothing reaches the columns through it.
    """
    single = {name for name, states in dag.hidden.items() if states == 1}
    if not single:
        return dag.pruned()
    left = Dag(
        [name for name in dag.nodes if name not in single],
        [pair for pair in dag.edges if single.isdisjoint(pair)],
        {name: states for name, states in dag.hidden.items() if name not in single},
    )
    return left.pruned()


@lru_cache(maxsize=REMEMBERED)
def essential(dag: Dag) -> Dag:
    """Return a member of the class of a structure without the hidden variables that are idle in some member.

    `h -> x; x -> y` has the equivalent `x -> h; x -> y`, in which h is barren. The member looked at is the one that has
    as many hidden variables at the end of all edges as possible, and what is left is looked at again.
    """
    kept = without_idle_hidden(dag)
    while kept.hidden:
        member = consistent_extension(cpdag(kept), [*kept.hidden, *kept.observed])
        smaller = Dag(kept.nodes, member.edges, kept.hidden).pruned()
        if smaller.hidden == kept.hidden:
            break
        kept = smaller
    return kept


@lru_cache(maxsize=REMEMBERED)
def model_class(dag: Dag) -> ModelClass:
    """Return the key of the class of a structure.

    The key is the CPDAG without idle hidden variables, whose hidden nodes are numbered in the order of
    `canonical_labelling`, together with their numbers of states. A hidden root that is idle in an equivalent structure
    alone (`essential`) has a class of its own: its table is part of the prior.
    """
    kept = without_idle_hidden(dag)
    graph = cpdag(kept)
    names: dict[str, str | int] = {name: name for name in kept.observed}
    order = _hidden_order(kept, graph)
    names.update((name, number) for number, name in enumerate(order))
    return (
        frozenset(kept.observed),
        tuple(kept.hidden[name] for name in order),
        frozenset((names[parent], names[child]) for parent, child in graph.directed),
        frozenset(frozenset(names[name] for name in pair) for pair in graph.undirected),
    )


def _hidden_order(dag: Dag, graph: Cpdag) -> list[str]:
    """Return the hidden nodes by number of states and then by their place in the graph, whatever they are called."""
    vertex = {name: position for position, name in enumerate(dag.hidden)}
    marks: dict[str, set[tuple[str, str]]] = {name: set() for name in vertex}
    edges: list[LabelledEdge] = []
    for parent, child in graph.directed:
        if parent in vertex and child in vertex:
            edges.append((vertex[parent], vertex[child], "arrow"))
        elif parent in vertex:
            marks[parent].add(("child", child))
        elif child in vertex:
            marks[child].add(("parent", parent))
    for pair in graph.undirected:
        first, second = pair
        if first in vertex and second in vertex:
            edges += [(vertex[first], vertex[second], "line"), (vertex[second], vertex[first], "line")]
        for name, other in ((first, second), (second, first)):
            if name in vertex and other not in vertex:
                marks[name].add(("line", other))
    colors: list[Hashable] = [(states, tuple(sorted(marks[name]))) for name, states in dag.hidden.items()]
    places = canonical_labelling(ColoredGraph(colors, edges))
    return [name for _, _, name in sorted(zip(dag.hidden.values(), places, vertex, strict=True))]
