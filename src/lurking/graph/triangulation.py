"""Triangulation of an undirected graph and the tree of its cliques."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import NamedTuple

from lurking.graph.symmetry.groups import Groups


class CliqueTree(NamedTuple):
    """A forest of cliques with the running intersection property.

    cliques : the variables of each clique, ascending; parents come before their children.
    parent : index of each clique's parent, −1 for the root of a connected part.
    """

    cliques: tuple[tuple[int, ...], ...]
    parent: tuple[int, ...]

    def separator(self, clique: int) -> tuple[int, ...]:
        """Return the variables that a clique shares with its parent, ascending; none for a root."""
        if self.parent[clique] < 0:
            return ()
        above = set(self.cliques[self.parent[clique]])
        return tuple(v for v in self.cliques[clique] if v in above)

    def parts(self) -> list[list[int]]:
        """Return the cliques of each connected part, in order."""
        part_of: list[int] = []
        result: list[list[int]] = []
        for clique, above in enumerate(self.parent):
            if above < 0:
                part_of.append(len(result))
                result.append([clique])
            else:
                part_of.append(part_of[above])
                result[part_of[above]].append(clique)
        return result


def clique_tree(scopes: Iterable[Iterable[int]], sizes: Mapping[int, int]) -> CliqueTree:
    """Return a clique tree of the graph in which every scope is complete; `sizes` are the numbers of states.

    Elimination by least weighted fill: the next variable is the one whose neighbours need the cheapest new edges, an
    edge u–v costing ln r_u · ln r_v plus a little for being an edge; the smallest clique decides among equals. Cliques
    that lie within another are merged, and the tree is a spanning forest of greatest separators.
    """
    neighbours: dict[int, set[int]] = {}
    for scope in scopes:
        members = set(scope)
        for v in members:
            neighbours.setdefault(v, set()).update(members - {v})
    return _tree_of(_eliminated(neighbours, sizes), sizes)


def _eliminated(neighbours: dict[int, set[int]], sizes: Mapping[int, int]) -> list[frozenset[int]]:
    """Return the maximal cliques met while eliminating all variables; `neighbours` is used up."""
    weight = {v: math.log(max(sizes[v], 2)) for v in neighbours}

    def cost(v: int) -> tuple[float, float, int]:
        near = neighbours[v]
        fill = sum(weight[a] * weight[b] + 1e-3 for a, b in combinations(near, 2) if b not in neighbours[a])
        return fill, weight[v] + sum(weight[u] for u in near), v

    costs = {v: cost(v) for v in neighbours}
    cliques: list[frozenset[int]] = []
    within: dict[int, list[frozenset[int]]] = {v: [] for v in neighbours}
    while costs:
        v = min(costs, key=costs.__getitem__)
        near = neighbours.pop(v)
        del costs[v]
        clique = frozenset(near | {v})
        # A clique met later holds no variable eliminated before, so it can only lie within an earlier one.
        if not any(clique <= other for other in within[v]):
            cliques.append(clique)
            for u in clique:
                within[u].append(clique)
        for a, b in combinations(near, 2):
            neighbours[a].add(b)
            neighbours[b].add(a)
        stale = set(near)
        for u in near:
            neighbours[u].discard(v)
            stale |= neighbours[u]
        for u in stale:
            costs[u] = cost(u)
    return cliques


def _tree_of(cliques: list[frozenset[int]], sizes: Mapping[int, int]) -> CliqueTree:
    """Return the spanning forest of greatest separators, each part rooted at its largest clique."""
    holding: dict[int, list[int]] = {}
    for i, clique in enumerate(cliques):
        for v in clique:
            holding.setdefault(v, []).append(i)
    pairs = {pair for members in holding.values() for pair in combinations(members, 2)}
    # Among separators of equal length the one with fewer states makes the smaller messages.
    order = sorted(
        pairs,
        key=lambda pair: (
            -len(cliques[pair[0]] & cliques[pair[1]]),
            math.prod(sizes[v] for v in cliques[pair[0]] & cliques[pair[1]]),
            pair,
        ),
    )
    parts = Groups(len(cliques))
    linked: list[list[int]] = [[] for _ in cliques]
    for i, j in order:
        if parts.join(i, j):
            linked[i].append(j)
            linked[j].append(i)
    sequence: list[int] = []
    above: dict[int, int] = {}
    for root in sorted(range(len(cliques)), key=lambda i: (-math.prod(sizes[v] for v in cliques[i]), i)):
        if root in above:
            continue
        above[root] = -1
        waiting = [root]
        while waiting:
            i = waiting.pop()
            sequence.append(i)
            for j in linked[i]:
                if j not in above:
                    above[j] = i
                    waiting.append(j)
    place = {i: k for k, i in enumerate(sequence)}
    return CliqueTree(
        tuple(tuple(sorted(cliques[i])) for i in sequence),
        tuple(place[above[i]] if above[i] >= 0 else -1 for i in sequence),
    )
