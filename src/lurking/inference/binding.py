"""How a structure fits a table: checks of columns, levels of all nodes, unique rows, and the layout of parameters."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

import numpy as np

from lurking.data.patterns import Patterns
from lurking.data.table import Table
from lurking.errors import (
    DataError,
    LurkingWarning,
    StructureError,
    TooLarge,
    nearest_hint,
)
from lurking.graph.dag import Dag
from lurking.models.families.base import Family
from lurking.models.layout import Layout
from lurking.models.prior import Prior, natural_hyperparameters
from lurking.models.ties import Ties
from lurking.runtime.memory import available_bytes, in_words, is_affordable
from lurking.types import CodeArray, FloatArray, Level

VECTORS_PER_FIT = 24  # flat vectors held at once by a fit: potentials, counts, prior, coordinates, copies


def shared_patterns(dag: Dag, table: Table) -> Patterns:
    """Return the unique rows of the model's columns in the order of the table, so that all models share them."""
    wanted = set(dag.observed)
    return table.patterns(tuple(name for name in table.columns if name in wanted))


def marked(dag: Dag, hidden: Mapping[str, int]) -> Dag:
    """Return the structure with more nodes marked hidden; a node that is marked already must agree."""
    for name, states in hidden.items():
        if dag.hidden.get(name, states) != states:
            raise StructureError(
                f"hidden variable {name!r} has {dag.hidden[name]} states in the structure and {states} in hidden=; "
                "say it once"
            )
    return dag.with_hidden(hidden) if hidden else dag


def check_columns(dag: Dag, table: Table, *, with_values: bool = False) -> None:
    """Refuse a structure that does not fit the columns of the table; columns of values only where they are allowed."""
    for name in dag.hidden:
        if name in table.columns:
            raise StructureError(
                f"hidden variable {name!r} is also a column of the data; "
                "give the hidden variable another name, or leave the column out (drop)"
            )
    for name in dag.observed:
        if name not in table.columns:
            raise StructureError(
                f"{name!r} in the model is not a column of the data{nearest_hint(name, table.columns)}; "
                f"columns are: {', '.join(table.columns)}; "
                f"a hidden variable needs its number of states, as in {name}[2]"
            )
    if not dag.observed:
        raise StructureError("the model has no observed variable; name at least one column of the data")
    rows = max(table.n, table.n_rows)
    for name in dag.observed:
        column = table[name]
        if column.kind == "continuous":
            raise DataError(
                f"column {name!r} is continuous and the model is discrete; cut it into classes "
                f"(lk.discretise(table, {{{name!r}: 4}}), or --discretise {name}:4), "
                f"declare it categorical (categorical={name!r}), or leave it out (drop)"
            )
        if column.kind == "count" and not with_values:
            raise DataError(
                f"column {name!r} is declared as a count, and this supports categorical columns only; read it without "
                f"count={name!r}, or leave it out (drop)"
            )
        if column.is_categorical and column.looks_like_identifier(rows):
            raise DataError(
                f"column {name!r} has {column.cardinality} levels in {rows:g} rows and looks like an "
                f"identifier; leave it out (drop), group its levels, or declare it categorical to insist"
            )


def levels_of(dag: Dag, table: Table) -> dict[str, tuple[Level, ...]]:
    """Return the states of every node: those of the column, or 0 … r − 1 for a hidden node."""
    hidden = dag.hidden
    return {name: tuple(range(hidden[name])) if name in hidden else table[name].levels for name in dag.nodes}


def warn_of_levels(ties: Ties, levels: Mapping[str, Sequence[Level]]) -> None:
    """Tell of tied variables whose states have different names: they are matched by their place."""
    for first, *others in ties:
        for name in others:
            if tuple(levels[name]) != tuple(levels[first]):
                warnings.warn(
                    f"tied {first!r} and {name!r} have the levels {list(levels[first])} and {list(levels[name])}; they "
                    "are matched by their place",
                    LurkingWarning,
                    stacklevel=3,
                )


def shared_pseudo_counts(prior: Prior, layout: Layout, levels: Mapping[str, Sequence[Level]]) -> FloatArray:
    """Return λ (P,) of the prior, which must be the same for tied families."""
    apart = natural_hyperparameters(prior, layout.untied, levels)
    return layout.join(layout.untied.split(apart), "pseudo-counts") if layout.tied else apart


def checked_layout(
    dag: Dag, cardinalities: dict[str, int], tied: Ties = (), families: Mapping[str, Family] | None = None
) -> Layout:
    """Return the layout, refusing tables that do not fit in memory (sizes are exact integers, nothing is allocated)."""
    layout = Layout(dag, cardinalities, tied, families)
    need = layout.size * 8 * VECTORS_PER_FIT
    if not is_affordable(need):
        j = max(range(len(layout.nodes)), key=lambda i: layout.cardinalities[i] * layout.configurations[i])
        raise TooLarge(
            f"the tables of this model have {layout.size} entries, {layout.configurations[j]} rows for "
            f"{layout.nodes[j]!r} alone, and need {in_words(need)} to fit; available are "
            f"{in_words(available_bytes())}; use fewer parents or fewer states"
        )
    return layout


def node_codes(layout: Layout, observed: CodeArray) -> CodeArray:
    """Return codes over all nodes (u, nodes) from codes over the observed nodes in node order.

    Hidden nodes are −1, but a variable with a single state is never in doubt: its code is 0 everywhere.
    """
    hidden = layout.dag.hidden
    # One column after the other in memory: that is how they are read.
    codes = np.full((len(observed), len(layout.nodes)), -1, np.int32, order="F")
    for column, j in enumerate(j for j, name in enumerate(layout.nodes) if name not in hidden):
        codes[:, j] = observed[:, column]
    for j, cardinality in enumerate(layout.cardinalities):
        if cardinality == 1:
            codes[:, j] = 0
    return codes
