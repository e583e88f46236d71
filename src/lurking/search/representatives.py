"""The member that stands for an equivalence class in a search, and how a fit is carried over to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from lurking.graph.checks import Edge
from lurking.graph.dag import Dag
from lurking.graph.equivalence import consistent_extension, cpdag
from lurking.search.constraints import Constraints
from lurking.types import FloatArray


def representative(dag: Dag, constraints: Constraints) -> Dag:
    """Return the equivalent structure whose hidden variables are roots, as far as the constraints and the class allow.

    Ends are taken from the CPDAG one after the other (`consistent_extension`), columns first, the last of `dag` first,
    so that no edge between columns is turned without need. Of two hidden variables of which only one can be a root it
    is the earlier one by tiers, then the one with more neighbours. A structure without hidden variables, or one whose
    representative breaks a constraint, is returned as it is.
    """
    if not dag.hidden:
        return dag
    graph = cpdag(dag, constraints.settled(dag))
    if all(frozenset((parent, name)) not in graph.undirected for name in dag.hidden for parent in dag.parents(name)):
        return dag
    tiers = dict(zip(constraints.variables, constraints.tiers, strict=True))

    def rank(name: str) -> tuple[object, ...]:
        near = [other for pair in graph.skeleton if name in pair for other in pair if other != name]
        columns = sorted(other for other in near if other not in dag.hidden)
        latest = max((tiers.get(other, -1) for other in columns), default=-1)
        return -latest, len(near), dag.hidden[name], columns

    columns = [name for name in reversed(dag.topological_order) if name not in dag.hidden]
    turned = consistent_extension(graph, [*columns, *sorted(dag.hidden, key=rank)])
    if set(turned.edges) == set(dag.edges):
        return dag
    member = Dag(dag.nodes, turned.edges, dag.hidden)
    return member if constraints.extended(member).holds(member) else dag


def turned_tables(dag: Dag, tables: Mapping[str, FloatArray], target: Dag) -> dict[str, FloatArray]:
    """Return the tables of an equivalent structure with the same joint distribution.

    Covered edges x → y, where pa(y) = pa(x) ∪ {x}, are turned one after the other (Chickering 1995):
    p(y | pa) = Σ_x p(x | pa) p(y | pa, x) and p(x | pa, y) = p(x | pa) p(y | pa, x) / p(y | pa).
    """
    sizes = {name: tables[name].shape[1] for name in dag.nodes}
    parents = {name: list(dag.parents(name)) for name in dag.nodes}
    arrays = {
        name: np.asarray(tables[name]).reshape([*(sizes[parent] for parent in parents[name]), sizes[name]])
        for name in dag.nodes
    }
    for x, y in _turns(dag, target):
        shared = parents[x]
        # The axes of p(y | pa(y)) in the order of pa(x), x, y.
        order = [parents[y].index(parent) for parent in (*shared, x)]
        joint = arrays[x][..., None] * arrays[y].transpose([*order, len(order)])
        margin = joint.sum(axis=-2)
        arrays[y], parents[y] = margin, list(shared)
        conditional = np.moveaxis(joint, -2, -1)
        arrays[x], parents[x] = conditional / conditional.sum(axis=-1, keepdims=True), [*shared, y]
    result = {}
    for name in target.nodes:
        order = [parents[name].index(parent) for parent in target.parents(name)]
        result[name] = arrays[name].transpose([*order, len(order)]).reshape(-1, sizes[name])
    return result


def _turns(dag: Dag, target: Dag) -> Iterator[Edge]:
    """Yield the covered edges to turn, one after the other, until the structure is the target.

    As long as two equivalent structures differ, one of the edges in which they do is covered (Chickering 1995).
    """
    parents = {name: set(dag.parents(name)) for name in dag.nodes}
    left = [(x, y) for x, y in dag.edges if x in target.children(y)]
    while left:
        x, y = next(edge for edge in left if parents[edge[1]] - {edge[0]} == parents[edge[0]])
        yield x, y
        parents[y].discard(x)
        parents[x].add(y)
        left.remove((x, y))
