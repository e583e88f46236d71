"""Aliases of structures with tied families: relabelings under which families that share a table still share it.

A relabeling renames hidden nodes and their states, and so moves the axes of every table and the states along each. The
families of a group share one table, so all of them must move it in the same way: if y1 is a child of s1, y2 one of s2,
and they are tied, exchanging the states of s1 exchanges rows of the shared table and must exchange those of s2 too.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence

from lurking.graph.dag import Dag
from lurking.graph.symmetry.actions import count_actions
from lurking.graph.symmetry.aliases import checked_tables, relational_graph
from lurking.graph.symmetry.colored import LabelledEdge
from lurking.types import FloatArray


def tied_log_aliases(dag: Dag, tables: Mapping[str, FloatArray], tied: Sequence[Sequence[str]]) -> float:
    """Return ln S; arguments as for `tied_alias_count`."""
    return math.log(tied_alias_count(dag, tables, tied))


def tied_alias_count(dag: Dag, tables: Mapping[str, FloatArray], tied: Sequence[Sequence[str]]) -> int:
    """Return S, the number of relabelings that leave structure, prior and ties unchanged.

    `tables` has the pseudo-counts of every node, array[l, k]; the groups in `tied` have families of equal shape.
    Relabelings that act alike on all free parameters are counted once.
    """
    arrays = checked_tables(dag, tables, {})
    colors, edges, _ = relational_graph(dag, arrays)
    graph = _Shared(dag, {name: array.shape[1] for name, array in arrays.items()}, colors, edges)
    alone = set(dag.nodes) - {name for group in tied for name in group}
    for group in [*tied, *([name] for name in dag.nodes if name in alone)]:
        graph.add(group)
    return count_actions(graph.colors, graph.edges, graph.kept)


class _Shared:
    """A coloured graph of nodes and states, to which tables are added as objects of their own.

    A table has axes, and these have places, one per state. Each family of a group *uses* the table: a use says which
    variable lies along an axis, and which of its states at which place. An automorphism that keeps all uses moves the
    table in one way for all its families; what it does to the places is what it does to the parameters.
    """

    def __init__(
        self, dag: Dag, cardinalities: Mapping[str, int], colors: list[Hashable], edges: list[LabelledEdge]
    ) -> None:
        self.dag, self.cardinalities, self.colors, self.edges = dag, cardinalities, colors, edges
        self.kept: list[int] = []
        # `relational_graph` has the hidden nodes first, and then their states.
        self.node = {name: vertex for vertex, name in enumerate(dag.hidden)}
        self.state: dict[str, range] = {}
        begin = len(self.node)
        for name, states in dag.hidden.items():
            self.state[name] = range(begin, begin + states)
            begin += states

    def add(self, group: Sequence[str]) -> None:
        """Add the table of some families."""
        scopes = [(*self.dag.parents(name), name) for name in group]
        table = self._vertex("table")
        families = []
        for name in group:
            families.append(self._vertex(("family", None if name in self.node else name)))
            self._link(families[-1], table, "table")
            self._link_if_hidden(families[-1], self.node.get(name), "node")
        has_parameters = self.cardinalities[group[0]] > 1
        for axis in range(len(scopes[0])):
            along = self._vertex(("axis", axis == len(scopes[0]) - 1))
            self._link(along, table, "axis")
            states = self.cardinalities[scopes[0][axis]]
            places = [self._vertex("place") for _ in range(states)]
            for place in places:
                self._link(place, along, "place")
            if has_parameters and states > 1:
                self.kept.extend(places)
            for family, scope in zip(families, scopes, strict=True):
                self._use(family, along, places, scope[axis])

    def _use(self, family: int, along: int, places: Sequence[int], variable: str) -> None:
        """Say that a variable lies along an axis of its family's table."""
        is_hidden = variable in self.node
        use = self._vertex(("use", None if is_hidden else variable))
        self._link(use, family, "family")
        self._link(use, along, "axis")
        self._link_if_hidden(use, self.node.get(variable), "variable")
        for state, place in enumerate(places):
            of_state = self._vertex(("state at", None if is_hidden else state))
            self._link(of_state, use, "use")
            self._link(of_state, place, "place")
            self._link_if_hidden(of_state, self.state[variable][state] if is_hidden else None, "state")

    def _vertex(self, color: Hashable) -> int:
        self.colors.append(color)
        return len(self.colors) - 1

    def _link(self, source: int, target: int, label: str) -> None:
        self.edges.append((source, target, label))

    def _link_if_hidden(self, source: int, target: int | None, label: str) -> None:
        if target is not None:
            self._link(source, target, label)
