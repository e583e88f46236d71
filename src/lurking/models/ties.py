"""Tied families: nodes that share one conditional table, such as the same item at two waves or of several raters.

Tied families have one place in the flat vector. Their counts add up there, and prior, d and D(λ, N) count it once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lurking.errors import OptionError, StructureError, nearest_hint
from lurking.graph.dag import Dag

Ties = tuple[tuple[str, ...], ...]
"""Groups of nodes that share one table, each in node order."""


def checked_ties(dag: Dag, cardinalities: Mapping[str, int], tied: Sequence[Sequence[str]] | None) -> Ties:
    """Return the groups in node order, after checking that the families of each have the same shape.

    The same shape: the same number of states and, in listed order, the same numbers of states of the parents.
    """
    if tied is None:
        return ()
    if isinstance(tied, str) or not isinstance(tied, Sequence) or any(not _is_group(group) for group in tied):
        raise OptionError(
            f"tied is {tied!r}; it must be a list of groups of at least two names each, for example [['y1', 'y2']]"
        )
    seen: set[str] = set()
    position = {name: place for place, name in enumerate(dag.nodes)}
    groups = []
    for group in tied:
        for name in group:
            if name not in position:
                raise StructureError(
                    f"{name!r} in tied is no variable of the model{nearest_hint(name, dag.nodes)}; "
                    f"variables are: {', '.join(dag.nodes)}"
                )
            if name in seen:
                raise StructureError(f"{name!r} is tied twice; put all families that share its table into one group")
            seen.add(name)
        groups.append(tuple(sorted(group, key=position.__getitem__)))
        _check_shapes(dag, cardinalities, groups[-1])
    return tuple(sorted(groups, key=lambda group: position[group[0]]))


def _is_group(group: object) -> bool:
    is_listed = isinstance(group, Sequence) and not isinstance(group, str) and all(isinstance(n, str) for n in group)
    return is_listed and len(group) > 1  # type: ignore[arg-type]


def _check_shapes(dag: Dag, cardinalities: Mapping[str, int], group: tuple[str, ...]) -> None:
    """Refuse families of different shapes."""
    first, *others = group
    shape = [cardinalities[parent] for parent in dag.parents(first)]
    for name in others:
        if cardinalities[name] != cardinalities[first]:
            raise StructureError(
                f"tied {first!r} and {name!r} have {cardinalities[first]} and {cardinalities[name]} states; a shared "
                "table needs as many in both (levels= declares levels that do not occur)"
            )
        if (own := [cardinalities[parent] for parent in dag.parents(name)]) != shape:
            raise StructureError(
                f"tied {first!r} and {name!r} have parents with {shape} and {own} states, in listed order; a shared "
                "table needs the same in both"
            )


def restricted(ties: Ties, nodes: Sequence[str]) -> Ties:
    """Return the ties among some of the nodes; a group of which one is left is none."""
    groups = (tuple(name for name in group if name in nodes) for group in ties)
    return tuple(group for group in groups if len(group) > 1)
