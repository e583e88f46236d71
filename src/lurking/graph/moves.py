"""Single-arc moves between structures, kept acyclic by a matrix of who reaches whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import final

import numpy as np

from lurking.graph.dag import Dag
from lurking.types import BoolArray, IntArray


class MoveKind(StrEnum):
    """What a move does with an arc."""

    ADD = "add"
    DELETE = "delete"
    REVERSE = "reverse"


@dataclass(frozen=True, slots=True)
class Move:
    """One arc added, deleted or reversed; `parent` and `child` are the ends of the arc before a reversal."""

    kind: MoveKind
    parent: str
    child: str

    def __str__(self) -> str:
        return f"{self.kind.value} {self.parent} -> {self.child}"


def arc_matrix(dag: Dag, names: Sequence[str]) -> BoolArray:
    """Return (p, p) the arcs of a structure among the named variables, [x, y] for x → y; other arcs are left out."""
    place = {name: position for position, name in enumerate(names)}
    arcs = np.zeros((len(names), len(names)), np.bool_)
    for parent, child in dag.edges:
        if parent in place and child in place:
            arcs[place[parent], place[child]] = True
    return arcs


@final
class ArcSet:
    """A structure over p positions that is changed arc by arc and never has a cycle.

    Attributes
    ----------
    arcs : bool array, shape (p, p)
        arcs[x, y] for x → y.
    reaches : bool array, shape (p, p)
        reaches[x, y] when a path of any length, 0 included, leads from x to y.
    """

    def __init__(self, size: int) -> None:
        self.arcs: BoolArray = np.zeros((size, size), np.bool_)
        self.reaches: BoolArray = np.eye(size, dtype=np.bool_)

    @classmethod
    def from_matrix(cls, arcs: BoolArray) -> ArcSet:
        """Return the structure with the given arcs, which must have no cycle."""
        made = cls(len(arcs))
        for x, y in np.argwhere(arcs):
            made.add(int(x), int(y))
        return made

    def copy(self) -> ArcSet:
        """Return another structure with the same arcs."""
        other = ArcSet(0)
        other.arcs, other.reaches = self.arcs.copy(), self.reaches.copy()
        return other

    def parents(self, y: int) -> tuple[int, ...]:
        """Return the parents of a position, ascending."""
        return tuple(np.flatnonzero(self.arcs[:, y]).tolist())

    def can_add(self) -> BoolArray:
        """Return (p, p) where x → y may be added: y does not reach x, and there is no arc yet."""
        return ~self.reaches.T & ~self.arcs

    def can_reverse(self, xs: IntArray, ys: IntArray) -> BoolArray:
        """Return for each arc xs[k] → ys[k] whether no other path leads from its parent to its child."""
        through_children = (self.arcs[xs] & self.reaches[:, ys].T).sum(axis=1)
        return np.asarray(through_children == 1)

    def add(self, x: int, y: int) -> None:
        """Add x → y: whatever reaches x now reaches whatever y reaches."""
        assert not self.reaches[y, x], "the arc would close a cycle"
        self.arcs[x, y] = True
        self.reaches[self.reaches[:, x]] |= self.reaches[y]

    def delete(self, x: int, y: int) -> None:
        """Delete x → y, and find again what the positions that reach x can reach."""
        self.arcs[x, y] = False
        if (self.arcs[x] & self.reaches[:, y]).any():
            return  # another path leads there, so nothing changes for anybody
        above = np.flatnonzero(self.reaches[:, x])
        # A position reaches more than any position below it, so fewest first is children first.
        for position in above[np.argsort(self.reaches[above].sum(axis=1), kind="stable")]:
            row = self.reaches[self.arcs[position]].any(axis=0)
            row[position] = True
            self.reaches[position] = row

    def reverse(self, x: int, y: int) -> None:
        """Turn x → y round."""
        self.delete(x, y)
        self.add(y, x)

    def is_covered(self, x: int, y: int) -> bool:
        """Whether x → y is covered: y has the parents of x and x. Its reversal gives an equivalent structure."""
        difference = self.arcs[:, x] != self.arcs[:, y]
        return bool(difference[x] and difference.sum() == 1)
