"""Where a hidden variable is tried: at signatures in the structure and in the data, and in canonical places."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import final

import numpy as np

from lurking.data.table import Table
from lurking.errors import StructureError
from lurking.graph.dag import Dag
from lurking.models.layout import Layout
from lurking.runtime.executor import StopFlag
from lurking.search import surgery
from lurking.search.constraints import Constraints
from lurking.search.dependence import Dependence, Signature
from lurking.search.signatures import adjacency, bundles, dense_groups
from lurking.types import FloatArray

MOST_MEMBERS = 12
MOST_SPLITS = 40
MOST_SPLIT_MEMBERS = 6


@dataclass(frozen=True)
class Proposal:
    """A structure with at least one hidden variable more than the current one, and what speaks for it."""

    dag: Dag
    source: str
    invented: tuple[str, ...] = field(default=())


@final
class Proposer:
    """Makes proposals on one table; what the data show is found once."""

    def __init__(self, table: Table, constraints: Constraints, stop: StopFlag | None = None) -> None:
        self.table, self.constraints = table, constraints
        self.cardinalities = {name: table[name].cardinality for name in table.columns}
        self.most_parameters = most_parameters(table)
        dependence = Dependence(table, stop)
        self.information: FloatArray = dependence.information()
        self.signatures: tuple[Signature, ...] = tuple(dependence.signatures(self.information))

    def proposals(self, dag: Dag) -> list[Proposal]:
        """Return different proposals of one hidden variable more that keep the constraints.

        A structure with more parameters than rows, or than the table of all observed variables has free cells, is none.
        """
        return self._different(self._all(dag))

    def pairs(self, dag: Dag, groups: Iterable[tuple[str, ...]]) -> list[Proposal]:
        """Return different proposals of two connected hidden variables, for the two halves of each group."""
        return self._different(made for group in groups for made in self._of_pairs(dag, group))

    def _different(self, made: Iterable[Proposal]) -> list[Proposal]:
        found: dict[Dag, Proposal] = {}
        for proposal in made:
            checked = self._kept(proposal)
            if checked is not None:
                found.setdefault(checked.dag.canonical(), checked)
        return list(found.values())

    def variants(self, dag: Dag) -> list[Dag]:
        """Return the structures with an arc more between two hidden variables, as far as the constraints allow."""
        made = [self._kept(Proposal(each, "joined")) for each in surgery.with_joined_hidden(dag)]
        return [each.dag for each in made if each is not None]

    def _all(self, dag: Dag) -> Iterator[Proposal]:
        name = surgery.new_hidden_name(dag, self.table.columns)
        for group in dense_groups(dag):
            yield self._parent(dag, group, name, 2, "dense part of the structure")
        for signature in self.signatures:
            yield self._parent(dag, signature.names, name, signature.states or 2, "dependence in the data")
        for group in self._neighbourhoods(dag):
            yield self._parent(dag, group, name, 2, "neighbours of one variable")
        for parents, children in bundles(dag):
            yield Proposal(surgery.with_mediator(dag, parents, children, name), "between parents and children", (name,))
        for parent, child in dag.edges:
            if {parent, child}.isdisjoint(dag.hidden) and set(dag.children(parent)) & set(dag.children(child)):
                yield Proposal(surgery.with_confounder(dag, parent, child, name), "instead of an arc", (name,))
        yield from self._splits(dag, name)
        if not dag.hidden:
            mixture = Dag((*dag.nodes, name), [(name, column) for column in dag.nodes], {name: 2})
            yield Proposal(mixture, "parent of everything", (name,))

    def _parent(self, dag: Dag, group: tuple[str, ...], name: str, states: int, source: str) -> Proposal:
        members = group[:MOST_MEMBERS]
        return Proposal(surgery.with_hidden_parent(dag, members, name, states), source, (name,))

    def _neighbourhoods(self, dag: Dag) -> Iterator[tuple[str, ...]]:
        """Yield every variable with its neighbours in the structure, from three members on."""
        names = dag.observed
        joined = adjacency(dag, names)
        for k in range(len(names)):
            members = np.flatnonzero(joined[k] | (np.arange(len(names)) == k))
            if 3 <= len(members) <= MOST_MEMBERS:
                yield tuple(names[member] for member in members)

    def _splits(self, dag: Dag, name: str) -> Iterator[Proposal]:
        """Yield structures in which some children of a hidden variable get a parent of their own."""
        for hidden in dag.hidden:
            children = tuple(child for child in dag.children(hidden) if child not in dag.hidden)
            for _, moved in itertools.islice(self._halves(children), MOST_SPLITS):
                source = f"children of {hidden} in two groups"
                for connected in (True, False):
                    made = surgery.with_split_hidden(dag, hidden, moved, name, connected)
                    yield Proposal(made, source, (name,))
                if dag.hidden[hidden] > 2:
                    # Many states may stand for the joint states of two variables with few.
                    made = surgery.with_split_hidden(dag, hidden, moved, name)
                    yield Proposal(made.with_hidden({hidden: 2}), source, (name,))

    def _of_pairs(self, dag: Dag, group: tuple[str, ...]) -> Iterator[Proposal]:
        """Yield structures with two connected hidden variables for the two halves of a dependent group."""
        name = surgery.new_hidden_name(dag, self.table.columns)
        other = surgery.new_hidden_name(dag, (*self.table.columns, name))
        for first, second in itertools.islice(self._halves(group), MOST_SPLITS):
            made = surgery.with_connected_pair(dag, first, second, (name, other))
            yield Proposal(made, "two connected causes", (name, other))

    def _halves(self, members: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
        """Yield the ways to make two groups of at least two: all of them for few members, else the most dependent."""
        if len(members) < 4:
            return
        if len(members) <= MOST_SPLIT_MEMBERS:
            for size in range(2, len(members) - 1):
                for moved in itertools.combinations(members, size):
                    rest = tuple(name for name in members if name not in moved)
                    if size < len(members) - size or members[0] not in moved:
                        yield rest, moved
            return
        place = {name: position for position, name in enumerate(self.table.columns)}
        near = self.information[np.ix_([place[name] for name in members], [place[name] for name in members])]
        for k in range(len(members)):
            order = np.argsort(-near[k], kind="stable")
            moved = tuple(members[m] for m in sorted({k, *(int(m) for m in order[: len(members) // 2 - 1])}))
            yield tuple(name for name in members if name not in moved), moved

    def _kept(self, proposal: Proposal) -> Proposal | None:
        """Return the proposal with required arcs back in it and without arcs of hidden variables that are not allowed.

        None where it breaks a rule nevertheless.
        """
        dag = proposal.dag
        names, needed = self.constraints.variables, self.constraints.required
        lost = [(names[x], names[y]) for x, y in np.argwhere(needed) if names[x] not in dag.parents(names[y])]
        rules = self.constraints.extended(dag)
        kept = [arc for arc in dag.edges if set(arc).isdisjoint(dag.hidden) or rules.allows(*arc)]
        try:
            whole = Dag(dag.nodes, [*kept, *lost], dag.hidden) if lost or len(kept) < len(dag.edges) else dag
            self.constraints.extended(whole).check(whole)
        except StructureError:
            return None
        if Layout(whole, {**self.cardinalities, **whole.hidden}).dimension > self.most_parameters:
            return None
        return Proposal(whole, proposal.source, proposal.invented)


def most_parameters(table: Table) -> float:
    """Return how many parameters the data can carry: no more than rows, nor than free cells of the observed table."""
    cells = math.prod(float(table[name].cardinality) for name in table.columns)
    return min(cells - 1.0, table.n)


def least_parameters(cardinalities: Mapping[str, int], count: int) -> int:
    """Return d of the smallest structure that needs `count` hidden variables: a tree of them with binary states.

    Every column has one hidden parent, 2 (r − 1) parameters each; the hidden variables have 1 + 2 (count − 1).
    """
    return sum(2 * (size - 1) for size in cardinalities.values()) + 2 * count - 1
