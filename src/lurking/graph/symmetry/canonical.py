"""One representative for all structures that differ only in the names of hidden nodes and in order."""

from __future__ import annotations

from collections.abc import Iterator

from lurking.graph.checks import Edge
from lurking.graph.structure import Structure
from lurking.graph.symmetry.actions import hidden_graph
from lurking.graph.symmetry.colored import canonical_labelling


def canonical_parts(dag: Structure) -> tuple[list[str], list[Edge], dict[str, int]]:
    """Return nodes, edges and hidden cardinalities of the canonical form.

    They are equal for two structures exactly if these are the same up to hidden names and order.

    Hidden nodes come first, by cardinality and then in the order of `canonical_labelling`, and are called h1, h2, …
    (numbers whose name an observed node has are skipped); observed nodes follow sorted by name; the parents of every
    node stand in this node order.
    """
    observed = sorted(dag.observed)
    names = _hidden_names(set(observed))
    new = {name: next(names) for name in hidden_order(dag)}
    new.update((name, name) for name in observed)
    position = {name: index for index, name in enumerate(new.values())}
    edges = sorted(
        ((new[parent], new[child]) for parent, child in dag.edges),
        key=lambda pair: (position[pair[1]], position[pair[0]]),
    )
    return list(new.values()), edges, {new[name]: cardinality for name, cardinality in dag.hidden.items()}


def hidden_order(dag: Structure) -> list[str]:
    """Return the hidden nodes in the order in which the canonical form has them."""
    places = canonical_labelling(hidden_graph(dag))
    return [name for _, _, name in sorted(zip(dag.hidden.values(), places, dag.hidden, strict=True))]


def _hidden_names(taken: set[str]) -> Iterator[str]:
    number = 0
    while True:
        number += 1
        if f"h{number}" not in taken:
            yield f"h{number}"
