"""Spaces of structures, enumerated in a stated order."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, combinations_with_replacement, product

from lurking.errors import StructureError
from lurking.graph.dag import Dag


def bipartite(hidden: Mapping[str, int] | int, observed: Sequence[str], cardinality: int = 2) -> Iterator[Dag]:
    """Yield every structure with edges from hidden to observed nodes only, each once up to exchanging hidden nodes.

    A structure is a matrix of links (hidden × observed, 0 or 1); rows of hidden nodes of equal cardinality may be
    exchanged, so they run over multisets. This is the class of Beal & Ghahramani (2006, section 4): 136 structures for
    two hidden and four observed nodes.

    Args:
        hidden: {name: cardinality}, or a number of hidden nodes called s1, s2, … of the given cardinality.
        observed: Names of the observed nodes.
        cardinality: Number of states of the hidden nodes when `hidden` is a number.

    Order: rows are compared as 0/1 tuples and do not decrease within nodes of equal cardinality; structures come in
    lexicographic order of their rows, cardinalities in order of first appearance. Nodes: hidden, then observed; the
    parents of an observed node stand in the order of the hidden nodes.
    """
    cardinalities = _named(hidden, cardinality)
    # Built here so that bad names and cardinalities are reported at the call, not at the first structure.
    empty = Dag((*cardinalities, *observed), (), cardinalities)
    groups = _exchangeable(empty.hidden)
    return _links(empty, groups, empty.nodes[len(cardinalities) :])


def all_dags(nodes: Sequence[str]) -> Iterator[Dag]:
    """Yield every structure over the given nodes: 1, 3, 25, 543, 29 281, 3 781 503, … of them (Robinson 1973).

    Every pair of nodes is unjoined, joined forwards or joined backwards, the last pair varying fastest; structures with
    a cycle are left out. Parents stand in the order of the nodes.
    """
    names = Dag(nodes).nodes
    pairs = list(combinations(range(len(names)), 2))
    for choice in product((0, 1, -1), repeat=len(pairs)):
        above = [0] * len(names)
        for (a, b), way in zip(pairs, choice, strict=True):
            if way:
                above[b if way > 0 else a] |= 1 << (a if way > 0 else b)
        if _is_acyclic(above):
            yield Dag(
                names, [(names[a], names[b]) for b in range(len(names)) for a in range(len(names)) if above[b] >> a & 1]
            )


def _is_acyclic(above: Sequence[int]) -> bool:
    """Whether nodes with the given parents, as bits, can be taken away one by one, each after its parents."""
    left = set(range(len(above)))
    gone = 0
    while left:
        ready = [node for node in left if not above[node] & ~gone]
        if not ready:
            return False
        left.difference_update(ready)
        gone |= sum(1 << node for node in ready)
    return True


def bipartite_size(hidden: Mapping[str, int] | int, n_observed: int) -> int:
    """Return how many structures `bipartite` yields: Π over groups of g exchangeable nodes of C(2^p + g − 1, g)."""
    groups = _exchangeable(_named(hidden, 2))
    return math.prod(math.comb(2**n_observed + len(group) - 1, len(group)) for group in groups)


def _named(hidden: Mapping[str, int] | int, cardinality: int) -> dict[str, int]:
    if isinstance(hidden, Mapping):
        return dict(hidden)
    if isinstance(hidden, bool) or not isinstance(hidden, int) or hidden < 0:
        raise StructureError(
            f"hidden={hidden!r} is neither a mapping nor a number of nodes; give e.g. 2 or {{'s1': 2, 's2': 3}}"
        )
    return {f"s{number}": cardinality for number in range(1, hidden + 1)}


def _exchangeable(hidden: Mapping[str, int]) -> list[list[str]]:
    groups: dict[int, list[str]] = {}
    for name, cardinality in hidden.items():
        groups.setdefault(cardinality, []).append(name)
    return list(groups.values())


def _links(empty: Dag, groups: list[list[str]], observed: Sequence[str]) -> Iterator[Dag]:
    rows = list(product((0, 1), repeat=len(observed)))
    for choice in product(*(combinations_with_replacement(rows, len(group)) for group in groups)):
        link = {
            name: row
            for group, chosen in zip(groups, choice, strict=True)
            for name, row in zip(group, chosen, strict=True)
        }
        edges = [(name, child) for column, child in enumerate(observed) for name in empty.hidden if link[name][column]]
        yield Dag(empty.nodes, edges, empty.hidden)
