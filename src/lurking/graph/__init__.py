"""Structures: directed acyclic graphs with hidden nodes, their text, symmetries, canonical form and spaces.

- `Dag`: the immutable structure; `STAR`, the node that stands for every column of a table.
- `canonical_form`: one representative up to hidden names and order.
- `log_aliases`, `alias_count`, `hidden_automorphisms`: how many relabelings leave structure and prior unchanged.
- `bipartite`, `bipartite_size`: spaces of structures.

Nothing here knows of data; networkx is imported only when a structure is turned into or from one of its graphs.
"""

from __future__ import annotations

from lurking.graph.canonical import canonical_form
from lurking.graph.dag import Dag
from lurking.graph.parse import STAR
from lurking.graph.spaces import bipartite, bipartite_size
from lurking.graph.symmetry import alias_count, hidden_automorphisms, log_aliases

__all__ = [
    "STAR",
    "Dag",
    "alias_count",
    "bipartite",
    "bipartite_size",
    "canonical_form",
    "hidden_automorphisms",
    "log_aliases",
]
