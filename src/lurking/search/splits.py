"""Every split of a hidden variable's neighbours into its parents and its children."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from lurking.errors import CycleError
from lurking.graph.dag import Dag
from lurking.search.exhaustive import Optima


def splits(dag: Dag, name: str, near: Sequence[str], optima: Optima | None) -> Iterator[Dag]:
    """Yield the structures in which some columns are the parents of a hidden variable and the others its children.

    The hidden variable takes the place of all edges among the children and between parents and children. Edges among
    the parents are the best ones for these columns alone: what is above a hidden variable depends on its table only
    through its own, so complete columns have them in closed form. A single parent is omitted, since the same structure
    with that edge reversed is in the same equivalence class. Structures with a cycle through other nodes are omitted.

    Parameters
    ----------
    dag : Dag
        The structure; its edges that do not join two of these nodes are kept.
    name : str
        The hidden variable.
    near : sequence of str
        The columns to split.
    optima : Optima or None
        The best structures over all subsets of these columns; None if values are missing, and parents have no edges.
    """
    inner = {name, *near}
    kept = [edge for edge in dag.edges if not inner.issuperset(edge)]
    for count in (0, *range(2, len(near))):
        for parents in itertools.combinations(near, count):
            above = [] if optima is None else optima.edges(parents)
            edges = [*kept, *above, *((parent, name) for parent in parents)]
            edges += [(name, child) for child in near if child not in parents]
            try:
                yield Dag(dag.nodes, edges, dag.hidden)
            except CycleError:
                continue
