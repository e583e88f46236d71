"""Signatures of a hidden variable in a structure that was learnt without it.

Marginalising a hidden variable joins all its children with each other, and its parents with all of them. What is left
in a structure over the observed variables is a set in which nearly everything is joined with nearly everything, and
variables with many parents (Elidan, Lotner, Friedman & Koller 2000).
"""

from __future__ import annotations

import itertools

import numpy as np

from lurking.graph.dag import Dag
from lurking.graph.moves import arc_matrix
from lurking.types import BoolArray

MOST_SEEDS = 400
HIGH_FAN_IN = 3


def adjacency(dag: Dag, names: tuple[str, ...]) -> BoolArray:
    """Return (p, p) which of the named variables are joined, in either direction."""
    arcs = arc_matrix(dag, names)
    return np.asarray(arcs | arcs.T)


def is_semi_clique(joined: BoolArray, members: tuple[int, ...]) -> bool:
    """Whether each member is joined with at least half of the others."""
    inside = joined[np.ix_(members, members)].sum(axis=1)
    return bool((2 * inside >= len(members) - 1).all())


def semi_cliques(joined: BoolArray) -> list[tuple[int, ...]]:
    """Return the semi-cliques grown from every triangle, and the triangles themselves, the largest first.

    A set grows by the variable with the most links into it (the first of equals), as long as it stays a semi-clique:
    each member joined with at least half of the others. From a set of two nothing could be told, so three is the least.
    """
    found: dict[tuple[int, ...], None] = {}
    for seed in itertools.islice(triangles(joined), MOST_SEEDS):
        found[seed] = None
        members = seed
        while True:
            links = joined[list(members)].sum(axis=0)
            links[list(members)] = -1
            grown = None
            for other in np.argsort(-links, kind="stable").tolist():
                if 2 * links[other] < len(members):
                    break
                candidate = tuple(sorted((*members, other)))
                if is_semi_clique(joined, candidate):
                    grown = candidate
                    break
            if grown is None:
                break
            members = grown
        found[members] = None
    return sorted(found, key=lambda members: (-len(members), members))


def triangles(joined: BoolArray) -> list[tuple[int, ...]]:
    """Return the sets of three variables joined with each other, ascending."""
    result: list[tuple[int, ...]] = []
    for x, y in np.argwhere(np.triu(joined, 1)).tolist():
        for z in np.flatnonzero(joined[x] & joined[y]).tolist():
            if z > y:
                result.append((x, y, z))
    return result


def dense_groups(dag: Dag) -> list[tuple[str, ...]]:
    """Return sets of observed variables that a hidden parent could explain, by what the structure alone shows.

    Semi-cliques first; then every variable with at least three observed parents together with these.
    """
    names = dag.observed
    groups: dict[tuple[str, ...], None] = {}
    for members in semi_cliques(adjacency(dag, names)):
        groups[tuple(names[k] for k in members)] = None
    for name in names:
        family = {parent for parent in dag.parents(name) if parent not in dag.hidden} | {name}
        if len(family) > HIGH_FAN_IN:
            groups[tuple(node for node in names if node in family)] = None
    return list(groups)


def bundles(dag: Dag) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return (parents, children): at least two variables that share at least two parents, each set once."""
    found: dict[tuple[tuple[str, ...], tuple[str, ...]], None] = {}
    for first, second in itertools.combinations(dag.observed, 2):
        shared = tuple(node for node in dag.parents(first) if node in dag.parents(second))
        if len(shared) >= 2:
            children = tuple(node for node in dag.observed if set(shared) <= set(dag.parents(node)))
            found[(shared, children)] = None
    return list(found)
