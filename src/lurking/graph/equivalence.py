"""Markov equivalence: which structures say the same about independence, and the graph that stands for all of them.

Two structures are equivalent when they have the same joined pairs and the same v-structures, a → c ← b with a and b not
joined (Verma & Pearl 1990). A class of equivalent structures is drawn as its CPDAG (completed partially directed
acyclic graph, also essential graph or pattern): an arc where all structures of the class agree on the direction, a line
where they do not. Hidden nodes count as nodes like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from lurking.errors import StructureError
from lurking.graph.checks import Edge, checked_edges, checked_names
from lurking.graph.dag import Dag
from lurking.graph.parse import quote_name


@dataclass(frozen=True)
class Cpdag:
    """Nodes with arcs and lines between them; make one with `cpdag`.

    Attributes
    ----------
    nodes : names in order.
    directed : frozenset of (parent, child).
    undirected : frozenset of frozensets of two names.
    """

    nodes: tuple[str, ...]
    directed: frozenset[Edge]
    undirected: frozenset[frozenset[str]]

    @classmethod
    def from_edges(cls, nodes: Iterable[str], directed: Iterable[Edge] = (), undirected: Iterable[Edge] = ()) -> Cpdag:
        """Build from names, (parent, child) pairs and pairs in any order; no pair may be joined twice."""
        names = checked_names(nodes, "node")
        arcs, lines = checked_edges(directed), checked_edges(undirected)
        seen: set[frozenset[str]] = set()
        for pair in (*arcs, *lines):
            for name in pair:
                if name not in names:
                    raise StructureError(f"the edge {pair!r} names {name!r}, which is not in nodes=; add it there")
            if len(set(pair)) < 2 or frozenset(pair) in seen:
                raise StructureError(f"the edge {pair!r} joins a node with itself or a pair that is joined already")
            seen.add(frozenset(pair))
        return cls(names, frozenset(arcs), frozenset(map(frozenset, lines)))

    @property
    def skeleton(self) -> frozenset[frozenset[str]]:
        """The joined pairs, whatever their direction."""
        return self.undirected | frozenset(map(frozenset, self.directed))

    def __str__(self) -> str:
        place = {name: position for position, name in enumerate(self.nodes)}
        arcs = [(*edge, "->") for edge in self.directed]
        lines = [(*sorted(pair, key=place.__getitem__), "--") for pair in self.undirected]
        ordered = sorted([*arcs, *lines], key=lambda edge: (place[edge[0]], place[edge[1]]))
        joined = {name for pair in self.skeleton for name in pair}
        alone = [quote_name(name) for name in self.nodes if name not in joined]
        return "; ".join([*alone, *(f"{quote_name(a)} {mark} {quote_name(b)}" for a, b, mark in ordered)])


def v_structures(dag: Dag) -> frozenset[tuple[frozenset[str], str]]:
    """Return the pairs of unjoined parents with their common child, ({a, b}, c) for a → c ← b."""
    joined = _skeleton(dag)
    return frozenset(
        (frozenset(pair), child)
        for child in dag.nodes
        for pair in combinations(dag.parents(child), 2)
        if frozenset(pair) not in joined
    )


def are_equivalent(first: Dag, second: Dag) -> bool:
    """Return whether two structures over the same nodes are Markov equivalent (Verma & Pearl 1990)."""
    _check_same_nodes(first, second)
    return _skeleton(first) == _skeleton(second) and v_structures(first) == v_structures(second)


def cpdag(dag: Dag, known: Iterable[Edge] = ()) -> Cpdag:
    """Return the completed graph of the class of a structure (Chickering 1995, the algorithms Order- and Label-Edges).

    `known` are arcs of the structure whose direction is beyond doubt: the graph is then that of the structures of the
    class that have them (Meek 1995).

    Edges are labelled in an order in which the edges into earlier nodes come first and, among those into one node, the
    latest parent first. An edge x → y is compelled when a compelled w → x meets no w → y (then all edges into y are),
    or when y has a parent that is not joined to x; what is left when an edge is reached is reversible.
    """
    rank = {name: position for position, name in enumerate(dag.topological_order)}
    parents = {name: set(dag.parents(name)) for name in dag.nodes}
    compelled: dict[str, set[str]] = {name: set() for name in dag.nodes}
    for y in dag.topological_order:
        labelled: set[str] = set()
        for x in sorted(dag.parents(y), key=lambda name: -rank[name]):
            if x in labelled:
                continue
            if any(w not in parents[y] for w in compelled[x]):
                compelled[y] |= parents[y]
                break
            through = {w for w in compelled[x] if w in parents[y]}
            compelled[y] |= through
            labelled |= through
            rest = parents[y] - labelled
            if any(z != x and z not in parents[x] for z in parents[y]):
                compelled[y] |= rest
            labelled |= rest
    directed = frozenset((x, y) for y in dag.nodes for x in compelled[y])
    fixed = frozenset(known)
    if not fixed <= set(dag.edges):
        raise StructureError(
            f"the known arcs {sorted(fixed - set(dag.edges))} are not in the structure; leave them out"
        )
    if not fixed <= directed:
        directed = _oriented(dag, directed | fixed)
    return Cpdag(dag.nodes, directed, _skeleton(dag) - frozenset(map(frozenset, directed)))


def _oriented(dag: Dag, directed: frozenset[Edge]) -> frozenset[Edge]:
    """Return the arcs that follow from some arcs of a structure and its class, by the four rules of Meek (1995).

    A line x — y becomes x → y where y → x would make a v-structure that is not there (1), a cycle (2), or leave no way
    to direct other lines without one of these (3, 4).
    """
    found = set(directed)
    joined = _skeleton(dag)
    near = {name: {other for pair in joined if name in pair for other in pair} - {name} for name in dag.nodes}

    def follows(x: str, y: str) -> bool:
        into_y = {z for z in near[y] if (z, y) in found}
        if any((z, x) in found and z not in near[y] for z in near[x]):
            return True
        if any((x, z) in found for z in into_y):
            return True
        between = into_y & near[x]
        open_ones = sorted(z for z in between if (z, x) not in found)
        if any(frozenset(pair) not in joined for pair in combinations(open_ones, 2)):
            return True
        return any((w, z) in found and w not in near[y] for z in between for w in near[x] & near[z])

    while True:
        more = {edge for edge in dag.edges if edge not in found and follows(*edge)}
        if not more:
            return frozenset(found)
        found |= more


def consistent_extension(graph: Cpdag, order: Sequence[str] | None = None) -> Dag:
    """Return a structure with the arcs and joined pairs of the graph and no other v-structure (Dor & Tarsi 1992).

    A node without an arc out of it, whose lines lead to nodes that are joined to all its neighbours, can be made the
    end of all its lines and taken away; the first such node is taken each time, in the `order` given (all nodes; that
    of the graph by default). Where none is left to be taken there is no such structure: StructureError.
    """
    into: dict[str, set[str]] = {name: set() for name in graph.nodes}
    out_of: dict[str, set[str]] = {name: set() for name in graph.nodes}
    lines: dict[str, set[str]] = {name: set() for name in graph.nodes}
    for parent, child in graph.directed:
        into[child].add(parent)
        out_of[parent].add(child)
    for pair in graph.undirected:
        a, b = pair
        lines[a].add(b)
        lines[b].add(a)
    edges = set(graph.directed)
    left = list(graph.nodes if order is None else order)
    while left:
        node = next((name for name in left if _is_end(name, into, out_of, lines)), None)
        if node is None:
            raise StructureError(
                f"no structure has exactly the arcs, lines and v-structures of the graph {graph}; it is no CPDAG"
            )
        edges |= {(other, node) for other in lines[node]}
        for other in into[node] | lines[node]:
            out_of[other].discard(node)
            lines[other].discard(node)
        left.remove(node)
    place = {name: position for position, name in enumerate(graph.nodes)}
    return Dag(graph.nodes, sorted(edges, key=lambda edge: (place[edge[1]], place[edge[0]])))


def structural_hamming_distance(first: Dag | Cpdag, second: Dag | Cpdag) -> int:
    """Return the number of pairs that are joined differently in the two CPDAGs: not at all, by a line, or by an arc.

    Structures are replaced by the CPDAG of their class, so the distance of equivalent ones is 0 (Tsamardinos, Brown &
    Aliferis 2006).
    """
    _check_same_nodes(first, second)
    marks = [_marks(graph if isinstance(graph, Cpdag) else cpdag(graph)) for graph in (first, second)]
    return sum(marks[0].get(pair) != marks[1].get(pair) for pair in marks[0].keys() | marks[1].keys())


def _marks(graph: Cpdag) -> dict[frozenset[str], Edge | frozenset[str]]:
    """Return {joined pair: its arc, or the pair itself for a line}."""
    return {**{pair: pair for pair in graph.undirected}, **{frozenset(edge): edge for edge in graph.directed}}


def _skeleton(dag: Dag) -> frozenset[frozenset[str]]:
    return frozenset(map(frozenset, dag.edges))


def _is_end(name: str, into: dict[str, set[str]], out_of: dict[str, set[str]], lines: dict[str, set[str]]) -> bool:
    """Whether a node can be the end of all its lines without a new v-structure or a cycle."""
    if out_of[name]:
        return False
    neighbours = into[name] | lines[name]
    return all(
        other == line or other in into[line] or other in out_of[line] or other in lines[line]
        for line in lines[name]
        for other in neighbours
    )


def _check_same_nodes(first: Dag | Cpdag, second: Dag | Cpdag) -> None:
    different = sorted(set(first.nodes) ^ set(second.nodes))
    if different:
        raise StructureError(
            f"the structures differ in the nodes {different}; only structures over the same nodes can be compared"
        )
