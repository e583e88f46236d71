"""Automorphisms and canonical labellings of small coloured directed graphs with labelled edges.

The method is individualisation and refinement (McKay & Piperno 2014, Practical graph isomorphism II): colours are
refined until vertices of one colour have the same number of neighbours of every colour by every label (one-dimensional
Weisfeiler–Leman); where cells with several vertices remain, one vertex is given a colour of its own and refinement goes
on. Everything is a function of the coloured graph alone, never of vertex numbers, except which of several equivalent
vertices is looked at first.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import final

LabelledEdge = tuple[int, int, Hashable]
"""(source vertex, target vertex, label)."""

Trace = tuple[tuple[int, ...], ...]
"""What a refinement met, as numbers; equal for two vertices which an automorphism exchanges."""


@final
class ColoredGraph:
    """Vertices 0 … n − 1 with colours, and directed edges (source, target, label).

    Colours and labels may be any hashable values; their order, needed for canonical labellings, is that of their
    ``repr``, so two values that differ must not print alike.
    """

    __slots__ = ("edges", "initial", "neighbours", "order")

    def __init__(self, colors: Sequence[Hashable], edges: Iterable[LabelledEdge]) -> None:
        self.order = len(colors)
        rank = _ranked(colors)
        numbered = [rank[color] for color in colors]
        listed = list(edges)
        label_rank = _ranked([label for _, _, label in listed])
        self.edges = [(source, target, label_rank[label]) for source, target, label in listed]
        # One number per (label, direction), spread so that adding a colour 0 … n − 1 keeps pairs distinct.
        self.neighbours: list[list[tuple[int, int]]] = [[] for _ in range(self.order)]
        for source, target, label in self.edges:
            self.neighbours[source].append((target, 2 * label * self.order))
            self.neighbours[target].append((source, (2 * label + 1) * self.order))
        starts = _starts(numbered)
        self.initial = [starts[number] for number in numbered]


def _ranked(values: Iterable[Hashable]) -> dict[Hashable, int]:
    return {value: rank for rank, value in enumerate(sorted(dict.fromkeys(values), key=repr))}


def _starts(numbered: Sequence[int]) -> dict[int, int]:
    """Return {number: how many entries are smaller}: the place where its cell begins in the ordered partition."""
    starts: dict[int, int] = {}
    for place, number in enumerate(sorted(numbered)):
        starts.setdefault(number, place)
    return starts


class _Partition:
    """An ordered partition: the colour of a vertex is the place where its cell begins."""

    __slots__ = ("cells", "colors")

    def __init__(self, colors: list[int], cells: dict[int, list[int]]) -> None:
        self.colors = colors
        self.cells = cells

    @classmethod
    def of(cls, colors: Sequence[int]) -> _Partition:
        cells: dict[int, list[int]] = {}
        for vertex, color in enumerate(colors):
            cells.setdefault(color, []).append(vertex)
        return cls(list(colors), cells)

    def individualised(self, graph: ColoredGraph, vertex: int) -> tuple[_Partition, Trace]:
        """Return the stable partition after giving the vertex a colour of its own, behind the rest of its cell."""
        colors, cells = list(self.colors), dict(self.cells)
        color = colors[vertex]
        rest = [other for other in cells[color] if other != vertex]
        cells[color] = rest
        colors[vertex] = color + len(rest)
        cells[colors[vertex]] = [vertex]
        result = _Partition(colors, cells)
        return result, result.refine(graph, [vertex])

    def refine(self, graph: ColoredGraph, changed: Iterable[int]) -> Trace:
        """Split cells in place until stable, and return the trace.

        Only edges to vertices with a new colour need a look: vertices of one cell agreed on all colours before, and
        what is left of a split cell keeps its colour, so counts of the remainder follow from the others.
        """
        colors, neighbours = self.colors, graph.neighbours
        trace: list[tuple[int, ...]] = []
        while changed:
            signatures: dict[int, list[int]] = {}
            for vertex in changed:
                color = colors[vertex]
                for other, label in neighbours[vertex]:
                    signatures.setdefault(other, []).append(label + color)
            touched: dict[int, dict[tuple[int, ...], list[int]]] = {}
            for vertex, signature in signatures.items():
                signature.sort()
                touched.setdefault(colors[vertex], {}).setdefault(tuple(signature), []).append(vertex)
            changed = []
            for color in sorted(touched):
                groups = touched[color]
                for signature_key in sorted(groups):
                    trace.append((color, len(groups[signature_key]), *signature_key))
                changed.extend(self._split(color, groups))
        return tuple(trace)

    def _split(self, color: int, groups: dict[tuple[int, ...], list[int]]) -> list[int]:
        """Split one cell by signature, untouched vertices first, and return the vertices with a new colour."""
        cell = self.cells[color]
        fragments = [groups[signature] for signature in sorted(groups)]
        n_touched = sum(map(len, fragments))
        if n_touched < len(cell):
            touched = {vertex for fragment in fragments for vertex in fragment}
            fragments.insert(0, [vertex for vertex in cell if vertex not in touched])
        if len(fragments) == 1:
            return []
        moved: list[int] = []
        self.cells[color] = sorted(fragments[0])
        place = color + len(fragments[0])
        for fragment in fragments[1:]:
            self.cells[place] = sorted(fragment)
            for vertex in fragment:
                self.colors[vertex] = place
            place += len(fragment)
            moved.extend(fragment)
        return moved

    def first_smallest_cell(self) -> list[int] | None:
        """Return the smallest cell with several vertices (the first of several), or None if there is none."""
        candidates = [(len(cell), color) for color, cell in self.cells.items() if len(cell) > 1]
        return self.cells[min(candidates)[1]] if candidates else None


def _stable(graph: ColoredGraph) -> _Partition:
    partition = _Partition.of(graph.initial)
    partition.refine(graph, range(graph.order))
    return partition


def refine(graph: ColoredGraph) -> list[int]:
    """Return the colours of the coarsest stable partition that respects the given colours.

    The colour of a vertex is the number of vertices in the cells before its own, so the colours order the cells.
    """
    return _stable(graph).colors


def automorphism_order(graph: ColoredGraph) -> int:
    """Return the number of automorphisms: |Aut| = Π_i |orbit of b_i under the stabiliser of b_1 … b_{i−1}|."""
    return _Group(graph).size


class _Group:
    """The automorphism group as a stabiliser chain: its size and generators.

    The base b_1, b_2, … is chosen once, one vertex of the first smallest cell at a time. Levels are worked from the
    last to the first, so automorphisms found at deeper levels, which fix more, already join vertices into orbits
    higher up: k interchangeable vertices need about k searches, not k!.
    """

    __slots__ = ("_base", "_edges", "_graph", "_levels", "generators", "size")

    def __init__(self, graph: ColoredGraph) -> None:
        self._graph = graph
        self._edges = _edge_counts(graph.edges)
        self._base: list[int] = []
        self._levels: list[tuple[_Partition, Trace]] = [(_stable(graph), ())]
        while cell := self._levels[-1][0].first_smallest_cell():
            self._base.append(cell[0])
            self._levels.append(self._levels[-1][0].individualised(graph, cell[0]))
        self.generators: list[list[int]] = []
        self.size = 1
        for level in range(len(self._base) - 1, -1, -1):
            self.size *= self._orbit_length(level)

    def _orbit_length(self, level: int) -> int:
        partition, vertex = self._levels[level][0], self._base[level]
        orbits = _Orbits(self._graph.order, self.generators)
        refused: list[int] = []
        cell = partition.cells[partition.colors[vertex]]
        for image in cell:
            if orbits.joined(vertex, image) or any(orbits.joined(image, other) for other in refused):
                continue
            found = self._search(level, partition, image)
            if found is None:
                refused.append(image)
            else:
                self.generators.append(found)
                orbits.join_all(found)
        return sum(orbits.joined(vertex, other) for other in cell)

    def _search(self, level: int, partition: _Partition, image: int) -> list[int] | None:
        """Return an automorphism that fixes b_1 … b_{level} and maps the next base vertex to the image, or None.

        Depth first, without recursion since a base may be long; `stack` holds the partitions of the right-hand side and
        the images still to try.
        """
        stack: list[tuple[_Partition, Iterator[int]]] = [(partition, iter((image,)))]
        while stack:
            right, images = stack[-1]
            depth = level + len(stack)
            next_image = next(images, None)
            if next_image is None:
                stack.pop()
                continue
            left, left_trace = self._levels[depth]
            refined, trace = right.individualised(self._graph, next_image)
            if trace != left_trace:
                continue
            if depth == len(self._base):
                mapping = _mapping(left, refined)
                if self._preserves_edges(mapping):
                    return mapping
                continue
            vertex = self._base[depth]
            candidates = refined.cells.get(left.colors[vertex], [])
            # The vertex itself first: automorphisms that move little make the orbits above easy to see.
            stack.append((refined, iter(sorted(candidates, key=lambda other: (other != vertex, other)))))
        return None

    def _preserves_edges(self, mapping: Sequence[int]) -> bool:
        images = [(mapping[source], mapping[target], label) for source, target, label in self._graph.edges]
        return _edge_counts(images) == self._edges


def _edge_counts(edges: Iterable[tuple[int, int, int]]) -> dict[tuple[int, int, int], int]:
    counts: dict[tuple[int, int, int], int] = {}
    for edge in edges:
        counts[edge] = counts.get(edge, 0) + 1
    return counts


def _mapping(left: _Partition, right: _Partition) -> list[int]:
    """Return the vertex map between two partitions into single vertices: same place to same place."""
    return [right.cells[color][0] for color in left.colors]


class _Orbits:
    """The orbits of some permutations, as a union–find forest."""

    __slots__ = ("_parent",)

    def __init__(self, order: int, permutations: Iterable[Sequence[int]]) -> None:
        self._parent = list(range(order))
        for permutation in permutations:
            self.join_all(permutation)

    def root(self, vertex: int) -> int:
        parent = self._parent
        while parent[vertex] != vertex:
            parent[vertex] = parent[parent[vertex]]
            vertex = parent[vertex]
        return vertex

    def join_all(self, permutation: Sequence[int]) -> None:
        for vertex, image in enumerate(permutation):
            if vertex != image:
                self._parent[self.root(vertex)] = self.root(image)

    def joined(self, first: int, second: int) -> bool:
        return self.root(first) == self.root(second)


def canonical_labelling(graph: ColoredGraph) -> list[int]:
    """Return the place of every vertex in an order that isomorphic coloured graphs share.

    Renumbering vertices by these places gives equal colours and equal edge lists exactly for isomorphic graphs.
    Of all ways to make vertices of the first smallest cell distinct one after the other, those with the smallest trace
    are followed, and the one with the smallest renumbered edge list is kept. Vertices which known automorphisms (that
    fix the vertices chosen so far) carry into each other lead to equal lists, so one of them is followed.
    """
    partition = _stable(graph)
    if partition.first_smallest_cell() is None:
        return partition.colors
    generators = _Group(graph).generators
    best: tuple[list[tuple[int, int, int]], list[int]] | None = None
    waiting: list[tuple[_Partition, tuple[int, ...]]] = [(partition, ())]
    while waiting:
        partition, path = waiting.pop()
        cell = partition.first_smallest_cell()
        if cell is None:
            places = partition.colors
            encoded = sorted((places[source], places[target], label) for source, target, label in graph.edges)
            if best is None or encoded < best[0]:
                best = encoded, places
            continue
        fixing = [permutation for permutation in generators if all(permutation[vertex] == vertex for vertex in path)]
        orbits = _Orbits(graph.order, fixing)
        chosen = {orbits.root(vertex): vertex for vertex in reversed(cell)}
        branches = [(partition.individualised(graph, vertex), vertex) for vertex in chosen.values()]
        smallest = min(trace for (_, trace), _ in branches)
        waiting.extend((child, (*path, vertex)) for (child, trace), vertex in branches if trace == smallest)
    assert best is not None  # every path ends in a partition into single vertices
    return best[1]
