"""Tables of hidden variables that have parents: p(state | parents), with the rows behind each configuration."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from lurking.data.frames import pandas_frame
from lurking.graph.dag import Dag
from lurking.inference.posterior import DirichletPosterior, check_level
from lurking.models.layout import Layout
from lurking.types import FloatArray, Frame, IntArray, Level


class Distribution(Protocol):
    """The queries of a `lurking.inference.network.Network` that its tables of hidden variables need; see there."""

    @property
    def dag(self) -> Dag:
        """The structure."""
        ...

    @property
    def levels(self) -> Mapping[str, Sequence[Level]]:
        """The states of every variable."""
        ...

    @property
    def layout(self) -> Layout:
        """Where the parameters live."""
        ...

    @property
    def alpha(self) -> FloatArray | None:
        """The posterior pseudo-counts (P,), if the network comes from a VB fit."""
        ...

    @property
    def tables(self) -> Mapping[str, FloatArray]:
        """The conditional tables [l, k]."""
        ...

    def joint(self, names: Sequence[str]) -> FloatArray:
        """Return p(names) with one axis per name."""
        ...


@dataclass(frozen=True, eq=False)
class HiddenTable:
    """p(hidden variable | its parents), one row per parent configuration.

    Attributes
    ----------
    name : str
        The hidden variable.
    states : tuple
        Its states 0 … r − 1, the columns of the arrays.
    parents : tuple of str
        Its parents, observed or hidden.
    configurations : tuple of tuples
        A level for each parent; see `Network.hidden_tables` for the order.
    probabilities : FloatArray
        Shape (rows, states).
    expected_rows : FloatArray or None
        Expected number of rows of the data in each configuration, shape (rows,); None without data.
    lower, upper : FloatArray or None
        Bounds of the credible intervals, shape (rows, states); None unless the network comes from a VB fit.
    """

    name: str
    states: tuple[Level, ...]
    parents: tuple[str, ...]
    configurations: tuple[tuple[Level, ...], ...]
    probabilities: FloatArray
    expected_rows: FloatArray | None
    lower: FloatArray | None
    upper: FloatArray | None

    def to_frame(self) -> Frame:
        """Return a pandas DataFrame with one row per configuration: parents, expected rows, probabilities, intervals.

        The columns are the parents, `expected_rows`, and for each state k `p(name=k)`, `lower(name=k)` and
        `upper(name=k)`; those that are None are omitted.
        """
        columns: dict[str, Any] = {
            parent: np.asarray([levels[k] for levels in self.configurations], dtype=object)
            for k, parent in enumerate(self.parents)
        }
        if self.expected_rows is not None:
            columns["expected_rows"] = self.expected_rows
        arrays = {"p": self.probabilities, "lower": self.lower, "upper": self.upper}
        for k, state in enumerate(self.states):
            for label, array in arrays.items():
                if array is not None:
                    columns[f"{label}({self.name}={state})"] = array[:, k]
        return pandas_frame(columns)


def order_by_size(network: Distribution, hidden: str) -> list[int]:
    """Return the states of a hidden variable, largest first; states have no order of their own."""
    sizes = network.joint([hidden])
    return [int(k) for k in np.argsort(-sizes, kind="stable")]


def names_with_parents(network: Distribution) -> tuple[str, ...]:
    """Return the hidden variables with at least one parent and an observed descendant."""
    dag = network.dag
    return tuple(name for name in dag.hidden if dag.parents(name) and name not in dag.barren)


def hidden_tables(network: Distribution, counts: FloatArray | None, level: float) -> dict[str, HiddenTable]:
    """Return the tables of all hidden variables with parents.

    Parameters
    ----------
    network : Distribution
        The tables, and the Dirichlet parameters behind them after a VB fit.
    counts : FloatArray or None
        Expected counts N_jlk of some data, shape (P,) over `network.layout`.
    level : float
        Probability of the credible intervals.
    """
    check_level(level)
    posterior = None if network.alpha is None else DirichletPosterior(network.layout, network.alpha)
    result = {}
    for name in names_with_parents(network):
        rows = None if counts is None else network.layout.table(counts, name).sum(axis=1)
        order = _order(network, name, rows)
        parents = network.dag.parents(name)
        sizes = [len(network.levels[parent]) for parent in parents]
        codes = np.stack(np.unravel_index(order, sizes), axis=1)
        interval = None if posterior is None else posterior.interval(name, level)
        result[name] = HiddenTable(
            name=name,
            states=tuple(network.levels[name]),
            parents=parents,
            configurations=tuple(
                tuple(network.levels[parent][k] for parent, k in zip(parents, row, strict=True)) for row in codes
            ),
            probabilities=network.tables[name][order],
            expected_rows=None if rows is None else rows[order],
            lower=None if interval is None else interval[0][order],
            upper=None if interval is None else interval[1][order],
        )
    return result


def hidden_configurations(network: Distribution, name: str) -> int:
    """Return the number of joint states of the hidden parents of a variable, 1 without any."""
    return math.prod(network.dag.hidden.get(parent, 1) for parent in network.dag.parents(name))


def _order(network: Distribution, name: str, rows: FloatArray | None) -> IntArray:
    """Return the parent configurations to report, in order.

    Configurations of the observed parents with more expected rows come first, and those without any are omitted.
    Within each of them the states of hidden parents run from the largest to the smallest, the first parent slowest.
    """
    parents = network.dag.parents(name)
    sizes = [len(network.levels[parent]) for parent in parents]
    codes = np.indices(sizes).reshape(len(sizes), -1)
    observed, ranks = np.zeros(codes.shape[1], np.int64), []
    for parent, size, states in zip(parents, sizes, codes, strict=True):
        if parent in network.dag.hidden:
            ranks.append(np.argsort(order_by_size(network, parent))[states])
        else:
            observed = observed * size + states
    weight = np.zeros(codes.shape[1]) if rows is None else np.bincount(observed, rows)[observed]
    keys: Sequence[IntArray | FloatArray] = [*reversed(ranks), observed, -weight]
    order = np.lexsort(keys)
    return np.asarray(order if rows is None else order[weight[order] > 0.0], np.int64)
