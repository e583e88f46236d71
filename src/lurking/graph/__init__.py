"""Structures: directed acyclic graphs with hidden nodes, their text, symmetries, canonical form and spaces.

- `Dag`: the immutable structure; `STAR`, the node that stands for every column of a table.
- `canonical_form`: one representative up to hidden names and order.
- `log_aliases`, `alias_count`, `hidden_automorphisms`: how many relabelings leave structure and prior unchanged.
- `bipartite`, `bipartite_size`, `all_dags`: spaces of structures.
- `Cpdag`, `cpdag`, `are_equivalent`, `consistent_extension`, `structural_hamming_distance`: equivalence classes.

Nothing here knows of data; networkx is imported only when a structure is turned into or from one of its graphs.
"""

from __future__ import annotations

from lurking.graph.dag import Dag
from lurking.graph.equivalence import (
    Cpdag,
    are_equivalent,
    consistent_extension,
    cpdag,
    structural_hamming_distance,
)
from lurking.graph.parse import STAR
from lurking.graph.spaces import all_dags, bipartite, bipartite_size
from lurking.graph.symmetry.aliases import alias_count, hidden_automorphisms, log_aliases
from lurking.graph.symmetry.canonical import canonical_form

__all__ = [
    "STAR",
    "Cpdag",
    "Dag",
    "alias_count",
    "all_dags",
    "are_equivalent",
    "bipartite",
    "bipartite_size",
    "canonical_form",
    "consistent_extension",
    "cpdag",
    "hidden_automorphisms",
    "log_aliases",
    "structural_hamming_distance",
]
