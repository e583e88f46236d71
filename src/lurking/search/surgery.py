"""Structures with one hidden variable more: what a proposal does to the arcs that are there."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from contextlib import suppress

from lurking.errors import CycleError
from lurking.graph.dag import Dag

LEAST_SHARE = 0.5
"""Share of the children that must have an outside parent before it is taken for a parent of the hidden variable."""


def new_hidden_name(dag: Dag, columns: Iterable[str] = ()) -> str:
    """Return h1, h2, …: the first that is no node of the structure and no column of the data."""
    taken = {*dag.nodes, *columns}
    return next(name for number in itertools.count(1) if (name := f"h{number}") not in taken)


def with_hidden_parent(dag: Dag, children: Sequence[str], name: str, states: int = 2) -> Dag:
    """Return the structure in which a hidden common parent replaces the arcs among `children`.

    An outside parent that at least two and at least half of the children share becomes a parent of the hidden variable
    instead of theirs, unless one of the children is its ancestor (Elidan, Lotner, Friedman & Koller 2000, section 3).
    Of three binary children that are joined with each other and share three binary parents, 59 parameters become 17.
    """
    members = set(children)
    kept = [(parent, child) for parent, child in dag.edges if not (parent in members and child in members)]
    hidden = {**dag.hidden, name: states}
    bare = Dag((*dag.nodes, name), [*kept, *((name, child) for child in children)], hidden)
    below = set(bare.descendants(children))
    shared = []
    for parent in dag.nodes:
        theirs = sum(child in members for child in dag.children(parent))
        is_outside = parent not in members and parent not in below
        if is_outside and theirs >= 2 and theirs >= LEAST_SHARE * len(members):
            shared.append(parent)
    edges = [(parent, child) for parent, child in bare.edges if not (parent in shared and child in members)]
    return Dag(bare.nodes, [*edges, *((parent, name) for parent in shared)], hidden)


def with_confounder(dag: Dag, parent: str, child: str, name: str, states: int = 2) -> Dag:
    """Return the structure in which a hidden cause of both ends, and of what both point to, replaces an arc."""
    common = [node for node in dag.children(child) if node in dag.children(parent)]
    return with_hidden_parent(dag, [parent, child, *common], name, states)


def with_mediator(dag: Dag, parents: Sequence[str], children: Sequence[str], name: str, states: int = 2) -> Dag:
    """Return the structure in which all arcs from `parents` to `children` go through a hidden variable.

    The arcs among the children go too: what the parents do not say of them, the hidden variable does.
    """
    above, below = set(parents), set(children)
    edges = [pair for pair in dag.edges if not (pair[1] in below and (pair[0] in above or pair[0] in below))]
    edges += [(parent, name) for parent in parents] + [(name, child) for child in children]
    return Dag((*dag.nodes, name), edges, {**dag.hidden, name: states})


def with_connected_pair(dag: Dag, first: Sequence[str], second: Sequence[str], names: tuple[str, str]) -> Dag:
    """Return the structure with two binary hidden variables, one for each group of children, the first → the second.

    Arcs within and between the groups go.
    """
    members = {*first, *second}
    edges = [pair for pair in dag.edges if not (pair[0] in members and pair[1] in members)]
    edges += [(names[0], child) for child in first] + [(names[1], child) for child in second]
    return Dag((*dag.nodes, *names), [*edges, names], {**dag.hidden, names[0]: 2, names[1]: 2})


def with_split_hidden(dag: Dag, hidden: str, moved: Sequence[str], name: str, connected: bool = True) -> Dag:
    """Return the structure in which some children of a hidden variable get a hidden parent of their own instead.

    The new variable has two states, and is a child of the old one when `connected`.
    """
    edges = [pair for pair in dag.edges if not (pair[0] == hidden and pair[1] in set(moved))]
    edges += [(name, child) for child in moved] + ([(hidden, name)] if connected else [])
    return Dag((*dag.nodes, name), edges, {**dag.hidden, name: 2})


def with_turned_parents(dag: Dag, name: str) -> Dag | None:
    """Return the structure in which the observed parents of a hidden variable are its children.

    The same pairs are joined, but other arcs are open to a climb from there. None where there are no such parents or a
    cycle would be closed.
    """
    above = [parent for parent in dag.parents(name) if parent not in dag.hidden]
    edges = [(name, pair[0]) if pair[1] == name and pair[0] in above else pair for pair in dag.edges]
    try:
        return Dag(dag.nodes, edges, dag.hidden) if above else None
    except CycleError:
        return None


def with_turned_children(dag: Dag, name: str) -> Dag | None:
    """Return the structure in which children of a hidden variable that are linked become its parents, all together.

    Edges among them are dropped: true parents of a hidden variable that are taken for its children depend on each
    other given its state, and need edges for no other reason. None if no two children are linked, if no child is left,
    or if a cycle would be closed.
    """
    children = {child for child in dag.children(name) if child not in dag.hidden}
    linked = {node for edge in dag.edges if children.issuperset(edge) for node in edge}
    if not linked or linked == set(dag.children(name)):
        return None
    kept = [edge for edge in dag.edges if not linked.issuperset(edge) and not (edge[0] == name and edge[1] in linked)]
    turned = [(node, name) for node in dag.nodes if node in linked]
    try:
        return Dag(dag.nodes, [*kept, *turned], dag.hidden)
    except CycleError:
        return None


def with_hidden_instead(dag: Dag, name: str, other: str) -> list[Dag]:
    """Return the structures in which a hidden variable replaces its neighbours as parents, or as children, of another.

    Neighbours that point to a variable, or that it points to, may stand in for the hidden one that they tell of. In the
    first structure their arcs to `other` are one arc from the hidden variable, in the second those from `other` to them
    are one arc to it. A structure without any such arc, or with a cycle, is not among them.
    """
    near = {*dag.parents(name), *dag.children(name)}
    if other in near or other == name:
        return []
    result = []
    for end, arc in ((1, (name, other)), (0, (other, name))):
        left = [pair for pair in dag.edges if not (pair[end] == other and pair[1 - end] in near)]
        if len(left) < len(dag.edges):
            with suppress(CycleError):
                result.append(Dag(dag.nodes, [*left, arc], dag.hidden))
    return result


def with_joined_hidden(dag: Dag) -> list[Dag]:
    """Return the structures with one arc more, between two hidden variables that are not joined yet."""
    result = []
    for first, second in itertools.permutations(dag.hidden, 2):
        if first in dag.parents(second) or second in dag.parents(first) or second in dag.ancestors(first):
            continue
        result.append(Dag(dag.nodes, [*dag.edges, (first, second)], dag.hidden))
    return result


def with_merged_hidden(dag: Dag, first: str, second: str) -> Dag | None:
    """Return the structure in which one hidden variable has the arcs of two; None where that closes a cycle."""
    edges = {
        (first if parent == second else parent, first if child == second else child) for parent, child in dag.edges
    }
    kept = sorted((pair for pair in edges if pair[0] != pair[1]), key=lambda pair: tuple(map(dag.nodes.index, pair)))
    hidden = {name: states for name, states in dag.hidden.items() if name != second}
    hidden[first] = max(dag.hidden[first], dag.hidden[second])
    try:
        return Dag([name for name in dag.nodes if name != second], kept, hidden)
    except CycleError:
        return None


def without_hidden(dag: Dag, name: str) -> Dag:
    """Return the structure without a hidden variable and its arcs."""
    edges = [pair for pair in dag.edges if name not in pair]
    hidden = {other: states for other, states in dag.hidden.items() if other != name}
    return Dag([node for node in dag.nodes if node != name], edges, hidden)
