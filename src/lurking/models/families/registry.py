"""Which family each node of a model has."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lurking.data.column import Column
from lurking.errors import DataError, OptionError, StructureError, UnknownNameError, clipped
from lurking.graph.dag import Dag
from lurking.models.families.base import Family, Scope
from lurking.models.families.checks import check_family
from lurking.models.families.count import count_of
from lurking.models.families.logistic import logistic_of
from lurking.models.families.table import TableFamily
from lurking.types import FloatArray

TABLE = "table"
FAMILIES: dict[str, Callable[[Scope], Family]] = {"count": count_of, "logistic": logistic_of}
"""Families other than the table by name, and how they are made for a node."""
OF_KIND: dict[str, str] = {"categorical": TABLE, "count": "count"}
"""The family that columns of a kind have unless another one is asked for."""


def families_of(
    dag: Dag, columns: Mapping[str, Column], weights: FloatArray, given: Mapping[str, str | Family] | None
) -> dict[str, Family]:
    """Return the families of nodes that have no table, by name.

    `given` names the family of some observed nodes, or holds it; the others have the one of their column's kind.
    """
    if given is None and all(column.kind == "categorical" for column in columns.values()):
        return {}
    asked = {} if given is None else given
    if not isinstance(asked, Mapping):
        raise OptionError(f"families is {clipped(asked)}; it must map names of nodes to names of families")
    for name in asked:
        if name not in columns:
            raise StructureError(
                f"families names {name!r}, which is not an observed variable of the model; hidden variables have tables"
            )
    result = {}
    for name in dag.observed:
        choice = asked.get(name, OF_KIND.get(columns[name].kind, TABLE))
        if isinstance(choice, TableFamily) or (isinstance(choice, str) and choice == TABLE):
            if not columns[name].is_categorical:
                raise DataError(
                    f"column {name!r} is {columns[name].kind}, and a table needs states; declare it categorical "
                    f"(categorical={name!r}) when the table of data is made"
                )
            continue
        states = [dag.hidden.get(parent, 0) or columns[parent].n_states for parent in dag.parents(name)]
        scope = Scope(name, columns[name], weights, tuple(states))
        if not isinstance(choice, Family):
            if not isinstance(choice, str):
                raise OptionError(
                    f"the family of {name!r} is {clipped(choice)}; it must be a name or an instance of a family"
                )
            if choice not in FAMILIES:
                raise UnknownNameError("family", choice, (TABLE, *FAMILIES))
            choice = FAMILIES[choice](scope)
        choice.check(scope)
        check_family(choice, scope)
        if choice.has_values and dag.children(name):
            raise StructureError(
                f"{name!r} is a {choice.name} node and has the child {dag.children(name)[0]!r}; a {choice.name} node "
                "cannot have children, so reverse the edge"
            )
        result[name] = choice
    return result
