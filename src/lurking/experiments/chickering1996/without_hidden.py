"""The best model without hidden variables: greedy search in the space of directed graphs, from the empty graph.

Heckerman, Geiger & Chickering (1995), as section 5 of chickering-heckerman-1996 uses it: the BD score (eq. 5) with a
uniform prior over parameters, α = 1 in every cell, and the best addition, deletion or reversal of an arc at each step.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from lurking.data.table import Table
from lurking.expfam import dirichlet
from lurking.graph.dag import Dag

LEAST_GAIN: Final = 1e-9
"""Gains below this are rounding."""
Change = dict[str, frozenset[str]]
"""{node: its new parents}"""


def best_complete(table: Table, seed: int) -> tuple[Dag, float]:
    """Return the structure that greedy search ends at and its ln p(D|m); ties are broken by a random order of nodes."""
    nodes = list(table.columns)
    order = [nodes[place] for place in np.random.default_rng(seed).permutation(len(nodes))]
    families = Families(table)
    parents: Change = {node: frozenset() for node in order}
    while True:
        gain, change = max(
            ((families.gain(parents, change), change) for change in _changes(order, parents)),
            key=lambda found: found[0],
            default=(0.0, {}),
        )
        if gain <= LEAST_GAIN:
            break
        parents |= change
    edges = [(parent, node) for node in nodes for parent in nodes if parent in parents[node]]
    return Dag(nodes, edges), sum(families.score(node, parents[node]) for node in nodes)


class Families:
    """ln p of each node given its parents on one complete table, each family counted once."""

    def __init__(self, table: Table) -> None:
        self._columns = {name: (table[name].codes.astype(np.int64), table[name].cardinality) for name in table.columns}
        self._known: dict[tuple[str, frozenset[str]], float] = {}

    def score(self, node: str, parents: frozenset[str]) -> float:
        """Return D(1, N) of one family."""
        key = node, parents
        if key not in self._known:
            codes, states = self._columns[node]
            rows = np.zeros(len(codes), np.int64)
            for parent in sorted(parents):
                own, count = self._columns[parent]
                rows = rows * count + own
            # Parent configurations that do not occur have D = 0.
            used, rows = np.unique(rows, return_inverse=True)
            counts = np.bincount(rows * states + codes, minlength=len(used) * states).astype(np.float64)
            row_start = np.arange(0, counts.size + 1, states)
            self._known[key] = dirichlet.log_evidence(row_start, np.ones(counts.size), counts)
        return self._known[key]

    def gain(self, parents: Change, change: Change) -> float:
        """Return how much a change of some families adds."""
        return sum(self.score(node, new) - self.score(node, parents[node]) for node, new in change.items())


def _changes(nodes: list[str], parents: Change) -> Iterator[Change]:
    """Yield every addition, deletion and reversal of one arc that leaves the graph without a cycle."""
    for child in nodes:
        for parent in nodes:
            if parent in parents[child]:
                without = {child: parents[child] - {parent}}
                yield without
                if not _reaches(parents | without, parent, child):
                    yield without | {parent: parents[parent] | {child}}
            elif parent != child and not _reaches(parents, child, parent):
                yield {child: parents[child] | {parent}}


def _reaches(parents: Change, start: str, end: str) -> bool:
    """Whether a directed way leads from `start` to `end`."""
    left, seen = [end], {end}
    while left:
        node = left.pop()
        if node == start:
            return True
        new = parents[node] - seen
        seen |= new
        left += new
    return False
