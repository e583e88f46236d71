"""The rules a structure must keep, each with its one-line error."""

from __future__ import annotations

import heapq
import operator
from collections.abc import Iterable, Mapping, Sequence

from lurking.errors import CycleError, StructureError, nearest_hint
from lurking.graph.parse import STAR, bad_cardinality

Edge = tuple[str, str]


def checked_names(names: Iterable[str], what: str) -> tuple[str, ...]:
    """Return the names of nodes or columns (`what`) as a tuple of distinct, non-empty texts."""
    if isinstance(names, str):
        raise StructureError(f"{what}s= is the text {names!r}; it must be a list of names, e.g. ['y1', 'y2']")
    if not isinstance(names, Iterable):
        raise StructureError(f"{what}s= is {names!r}; it must be a list of names, e.g. ['y1', 'y2']")
    names = tuple(names)
    for name in names:
        if not isinstance(name, str):
            raise StructureError(f"{what} {name!r} is not text; names must be str, e.g. {str(name)!r}")
        if not name:
            raise StructureError(f"a {what} has the empty name ''; every {what} needs at least one character")
    if len(set(names)) != len(names):
        repeated = next(name for position, name in enumerate(names) if name in names[:position])
        raise StructureError(f"{what} {repeated!r} is listed twice; list every {what} once")
    return names


def checked_edges(edges: Iterable[Edge]) -> tuple[Edge, ...]:
    """Return the edges as a tuple of (parent, child) pairs of text."""
    pairs = []
    for edge in edges:
        if isinstance(edge, str) or not isinstance(edge, Sequence) or len(edge) != 2:
            raise StructureError(f"edge {edge!r} is not a pair; give (parent, child), e.g. ('s1', 'y1')")
        parent, child = edge
        if not isinstance(parent, str) or not isinstance(child, str):
            raise StructureError(f"edge {edge!r} joins something that is not text; names of nodes must be str")
        pairs.append((parent, child))
    return tuple(pairs)


def parents_of(nodes: Sequence[str], edges: Iterable[Edge]) -> dict[str, tuple[str, ...]]:
    """Return {node: parents in the order of the edges}; no self loop, no repeated edge, no stranger."""
    lists: dict[str, list[str]] = {name: [] for name in nodes}
    for parent, child in edges:
        if parent not in lists or child not in lists:
            stranger = child if parent in lists else parent
            raise StructureError(
                f"the edge {parent!r} -> {child!r} names {stranger!r}, which is not in nodes="
                f"{nearest_hint(stranger, nodes)}; add it to the nodes or correct the edge"
            )
        if parent == child:
            raise CycleError((parent, child))
        if parent in lists[child]:
            raise StructureError(f"the edge {parent!r} -> {child!r} is given twice; give every edge once")
        lists[child].append(parent)
    return {name: tuple(parents) for name, parents in lists.items()}


def checked_hidden(nodes: Sequence[str], hidden: Mapping[str, int]) -> dict[str, int]:
    """Return {hidden name: cardinality} in node order; every name is a node, every cardinality a whole number ≥ 1."""
    if not isinstance(hidden, Mapping):
        raise StructureError(f"hidden= is {hidden!r}; it must map names to numbers of states, e.g. {{'s1': 2}}")
    known = set(nodes)
    cardinalities: dict[str, int] = {}
    for name, cardinality in hidden.items():
        if name not in known:
            raise StructureError(
                f"hidden variable {name!r} is not a node of the structure{nearest_hint(name, nodes)}; "
                "connect it, list it as a node, or take it out of hidden="
            )
        if name == STAR:
            raise StructureError("'*' cannot be hidden: it stands for the observed columns; name a variable instead")
        cardinalities[name] = _checked_cardinality(name, cardinality)
    return {name: cardinalities[name] for name in nodes if name in cardinalities}


def _checked_cardinality(name: str, cardinality: object) -> int:
    if isinstance(cardinality, bool):
        raise StructureError(bad_cardinality(name, cardinality))
    try:
        number = operator.index(cardinality)  # type: ignore[arg-type]  # whatever has no index raises TypeError here
    except TypeError:
        raise StructureError(bad_cardinality(name, cardinality)) from None
    if number < 1:
        raise StructureError(bad_cardinality(name, number))
    return number


def merged_hidden(inside: Mapping[str, int], given: Mapping[str, int] | None, source: str) -> Mapping[str, int]:
    """Return the cardinalities said by the structure itself and by hidden=; where both speak they must agree."""
    if not given:
        return inside
    if not inside or not isinstance(given, Mapping):
        return given
    for name, cardinality in given.items():
        if inside.get(name, cardinality) != cardinality:
            raise StructureError(
                f"hidden variable {name!r} has cardinality {inside[name]} in the {source} and {cardinality!r} in "
                "hidden=; say it once"
            )
    return {**inside, **given}


def topological_order(parents: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the nodes, parents first; of several ready nodes the one listed first comes first (Kahn 1962).

    Raises CycleError with a closed walk if no such order exists.
    """
    position = {name: index for index, name in enumerate(parents)}
    if all(position[parent] < position[child] for child, group in parents.items() for parent in group):
        return tuple(parents)
    names = list(parents)
    waiting = [len(group) for group in parents.values()]
    children: list[list[int]] = [[] for _ in names]
    for child, group in parents.items():
        for parent in group:
            children[position[parent]].append(position[child])
    ready = [index for index, count in enumerate(waiting) if count == 0]
    order: list[str] = []
    while ready:
        index = heapq.heappop(ready)
        order.append(names[index])
        for child_index in children[index]:
            waiting[child_index] -= 1
            if waiting[child_index] == 0:
                heapq.heappush(ready, child_index)
    if len(order) < len(names):
        raise CycleError(_closed_walk(parents, set(order)))
    return tuple(order)


def _closed_walk(parents: Mapping[str, tuple[str, ...]], placed: set[str]) -> tuple[str, ...]:
    """Return one cycle among the nodes left over: each of them has a left-over parent, so walking up must return."""
    walk: list[str] = []
    name = next(name for name in parents if name not in placed)
    while name not in walk:
        walk.append(name)
        name = next(parent for parent in parents[name] if parent not in placed)
    cycle = walk[walk.index(name) :][::-1]
    listed = list(parents)
    start = min(range(len(cycle)), key=lambda index: listed.index(cycle[index]))
    return (*cycle[start:], *cycle[:start], cycle[start])
