"""Numbers that hang together, in groups that only grow."""

from __future__ import annotations

from typing import final


@final
class Groups:
    """Numbers 0 … count − 1, each a group of its own at first.

    SciPy's DisjointSet does the same, but importing it takes a third of a second, more than a small fit.
    """

    def __init__(self, count: int) -> None:
        self._above = list(range(count))

    def leader(self, member: int) -> int:
        """Return the number that stands for the group of a member."""
        above = self._above
        while above[member] != member:
            above[member] = member = above[above[member]]
        return member

    def join(self, first: int, second: int) -> bool:
        """Make one group of two; return whether they were two."""
        one, other = self.leader(first), self.leader(second)
        self._above[other] = one
        return one != other
