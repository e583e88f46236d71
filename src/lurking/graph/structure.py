"""What drawings, conversions, symmetries and the canonical form ask of a structure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from lurking.graph.checks import Edge


class Structure(Protocol):
    """The queries of `lurking.graph.dag.Dag` that its own methods are built on; see there."""

    @property
    def nodes(self) -> tuple[str, ...]:
        """All names, in order."""
        ...

    @property
    def edges(self) -> tuple[Edge, ...]:
        """(parent, child) pairs."""
        ...

    @property
    def hidden(self) -> Mapping[str, int]:
        """{hidden name: cardinality}."""
        ...

    @property
    def observed(self) -> tuple[str, ...]:
        """The nodes which are not hidden."""
        ...

    @property
    def topological_order(self) -> tuple[str, ...]:
        """The nodes, parents before children."""
        ...

    def parents(self, name: str) -> tuple[str, ...]:
        """Return the parents of a node."""
        ...

    def children(self, name: str) -> tuple[str, ...]:
        """Return the children of a node."""
        ...
