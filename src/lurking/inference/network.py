"""A fitted discrete network and what one can ask of it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from lurking.data.column import Column
from lurking.data.files import as_table
from lurking.data.frames import pandas_frame
from lurking.data.table import Table
from lurking.errors import DataError, LurkingWarning, OptionError, StructureError, nearest_hint
from lurking.graph.dag import Dag
from lurking.inference.binding import node_codes
from lurking.inference.covariates import covariates_of
from lurking.inference.elimination import Factor, eliminate
from lurking.inference.engines.base import Engine
from lurking.inference.engines.choice import choose_engine
from lurking.inference.engines.rows import Rows
from lurking.inference.hidden_tables import HiddenTable, hidden_tables, names_with_parents
from lurking.models.document import Document, read_document, versions, write_document
from lurking.models.layout import Layout
from lurking.models.ties import Ties, checked_ties, restricted
from lurking.runtime.checks import check_whole
from lurking.runtime.rng import Seed, seed_sequence
from lurking.types import BoolArray, FloatArray, Frame, IntArray, Level, read_only


@dataclass(frozen=True, eq=False)
class Prediction:
    """p(target | the other cells of the row) for every row."""

    target: str
    levels: tuple[Level, ...]
    probabilities: FloatArray
    """(rows, states)."""

    def to_frame(self) -> Frame:
        """Return a pandas DataFrame: the most probable state, then the probability of each state."""
        columns: dict[str, Any] = {self.target: np.asarray(self.labels, dtype=object)}
        for k, level in enumerate(self.levels):
            columns[f"p({self.target}={level})"] = self.probabilities[:, k]
        return pandas_frame(columns)

    @cached_property
    def labels(self) -> list[Level]:
        """The most probable state of each row; the first of equals."""
        return [self.levels[k] for k in self.probabilities.argmax(axis=1)]


@dataclass(frozen=True, eq=False)
class Imputation:
    """Empty cells filled with their most probable state, with the probabilities behind each."""

    table: Table
    cells: dict[str, tuple[IntArray, FloatArray]]
    """{column: (rows that were empty, their probabilities (m, states))}."""

    @classmethod
    def of(
        cls, coded: Table, observed: Sequence[str], probabilities_of: Callable[[Table, str], FloatArray]
    ) -> Imputation:
        """Fill the empty cells of the observed columns; `probabilities_of` gives (rows, states) of a column."""
        columns, cells = {}, {}
        for name in coded.columns:
            column = coded[name]
            empty = np.flatnonzero(column.codes < 0) if name in observed else np.empty(0, np.int64)
            if empty.size:
                probabilities = probabilities_of(coded.take(empty), name)
                codes = column.codes.copy()
                codes[empty] = probabilities.argmax(axis=1)
                column = Column.categorical(name, codes, column.levels, declared=True)
                cells[name] = (empty, probabilities)
            columns[name] = column
        return cls(coded.with_columns(columns), cells)


@dataclass(frozen=True, eq=False)
class Network:
    """Dag + levels + tables.

    Attributes
    ----------
    dag : the structure.
    levels : states of every node; hidden nodes have 0 … r − 1.
    theta : flat vector of conditional probabilities (see `Layout`); for a VB fit the posterior means.
    alpha : flat vector of Dirichlet parameters behind them (VB only), or None.
    about : where it came from: method, objective, seed, options, data digest, versions.
    tied : groups of nodes that share one table; `theta` has it once for each of them.
    """

    dag: Dag
    levels: Mapping[str, tuple[Level, ...]]
    theta: FloatArray = field(repr=False)
    alpha: FloatArray | None = field(default=None, repr=False)
    about: Mapping[str, Any] = field(default_factory=dict, repr=False)
    tied: Ties = ()

    def __post_init__(self) -> None:
        for name in ("theta", "alpha"):
            array = getattr(self, name)
            if array is not None:
                if np.shape(array) != (self.layout.size,):
                    raise StructureError(f"{name} has shape {np.shape(array)}; it must be ({self.layout.size},)")
                object.__setattr__(self, name, read_only(np.array(array, np.float64)))
        if self.tied:
            ties = checked_ties(self.dag, {name: len(levels) for name, levels in self.levels.items()}, self.tied)
            object.__setattr__(self, "tied", ties)

    @classmethod
    def from_tables(
        cls, dag: Dag, tables: Mapping[str, Any], levels: Mapping[str, Sequence[Level]] | None = None
    ) -> Network:
        """Make a network from {node: table[l, k]}; rows are probabilities, levels default to 0 … r − 1."""
        given = levels or {}
        states: dict[str, tuple[Level, ...]] = {}
        for name in dag.nodes:
            if name not in tables or np.ndim(tables[name]) == 0:
                raise StructureError(f"no table for {name!r}; every node of the structure needs one")
            width = np.shape(tables[name])[-1]
            states[name] = tuple(given.get(name, range(width)))
            if name in dag.hidden and dag.hidden[name] != width:
                raise StructureError(
                    f"{name!r} has {dag.hidden[name]} states in the structure and {width} in its table"
                )
            if len(set(states[name])) != len(states[name]):
                raise StructureError(
                    f"the levels of {name!r} repeat themselves: {list(states[name])}; they must differ"
                )
        layout = Layout(dag, {name: len(states[name]) for name in dag.nodes})
        theta = layout.join(tables)
        if not (np.all(theta >= 0.0) and np.allclose(layout.row_sums(theta), 1.0, rtol=0.0, atol=1e-6)):
            raise StructureError("a table has a negative entry or a row that does not sum to 1; normalise it first")
        return cls(dag, states, layout.normalise(theta))

    @cached_property
    def layout(self) -> Layout:
        """Where each probability lives in `theta`."""
        return Layout(self.dag, {name: len(levels) for name, levels in self.levels.items()})

    @cached_property
    def tables(self) -> dict[str, FloatArray]:
        """{node: table[l, k]} of conditional probabilities."""
        return {name: read_only(table) for name, table in self.layout.split(self.theta).items()}

    def levels_of(self, name: str) -> tuple[Level, ...]:
        """Return the states of one variable."""
        self._check_name(name)
        return self.levels[name]

    def _check_name(self, name: str) -> None:
        if name not in self.levels:
            raise StructureError(
                f"{name!r} is no variable of the network{nearest_hint(name, self.dag.nodes)}; "
                f"variables are: {', '.join(self.dag.nodes)}"
            )

    @cached_property
    def _log_theta(self) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.theta))

    @property
    def relevant_layout(self) -> Layout:
        """The tables without those of barren nodes, which no data can tell anything about."""
        dag = self.dag.pruned()
        cardinalities = {name: len(levels) for name, levels in self.levels.items()}
        return Layout(dag, cardinalities, restricted(self.tied, dag.nodes))

    @property
    def relevant_dimension(self) -> int:
        """Number of free parameters without the barren nodes."""
        return self.relevant_layout.dimension

    def _coded(self, data: Any, without: str | None = None) -> Table:
        """Return the table with the model's columns (but `without`) recoded to the model's levels."""
        with warnings.catch_warnings():
            # A column that is empty here has levels all the same: those of the model.
            warnings.simplefilter("ignore", LurkingWarning)
            table = as_table(data)
        names = [name for name in self.dag.observed if name in table and name != without]
        return table.with_columns_coded({name: self.levels[name] for name in names})

    def _compile(
        self, coded: Table, wanted: Sequence[str] = (), without: str | None = None, *, weighted: bool = False
    ) -> tuple[Engine, IntArray]:
        """Return an engine over the unique rows and the pattern of each row; each pattern has weight 1 by default.

        Probabilities are normalised, so what has no observed descendant and is not wanted sums to 1 and is left out.
        """
        present = [name for name in self.dag.observed if name in coded and name != without]
        patterns = coded.patterns(tuple(present))
        observed = np.full((len(patterns.codes), len(self.dag.observed)), -1, np.int32)
        observed[:, [self.dag.observed.index(name) for name in present]] = patterns.codes
        codes = node_codes(self.layout, observed)
        kept = [self.layout.index[name] for name in wanted]
        weights = patterns.weights if weighted else np.ones(len(codes))
        return choose_engine(self.layout, Rows.of_codes(codes, weights), True, kept), patterns.inverse

    def _marginals(self, coded: Table, name: str, without: str | None = None) -> FloatArray:
        """Return p(name | row) for every row, (rows, states)."""
        engine, inverse = self._compile(coded, [name], without)
        marginals = engine.pattern_marginals(self._log_theta, self.layout.index[name])[inverse]
        _refuse_impossible(~(marginals.sum(axis=1) > 0.5))
        return marginals

    def loglik(self, data: Any) -> FloatArray:
        """Return ln p(row) for every row, empty cells and hidden variables summed out, (rows,)."""
        engine, inverse = self._compile(self._coded(data))
        result = engine.pattern_log_z(self._log_theta)[inverse]
        _refuse_impossible(np.isneginf(result))
        return result

    @property
    def covariates(self) -> tuple[str, ...]:
        """Observed variables before all hidden ones in the structure; empty if nothing else depends on them."""
        return covariates_of(self.dag)

    def conditional_loglik(self, data: Any, given: Sequence[str] | None = None) -> FloatArray:
        """Return the conditional log-likelihood of every row.

        ln p(y | x) = ln p(x, y) − ln p(x), x the cells of `given` and y the other cells of the row. Missing values and
        hidden variables are summed out of both terms.

        Parameters
        ----------
        data : Table, frame, mapping, array or path
            The rows; a column that is absent counts as missing.
        given : sequence of str, optional
            Observed variables x to condition on; default `covariates`. Without any the result is `loglik`.

        Returns
        -------
        FloatArray
            Shape (rows,), in nats.
        """
        names = self.covariates if given is None else [given] if isinstance(given, str) else given
        for name in names:
            self._check_name(name)
            if name in self.dag.hidden:
                raise OptionError(f"given must name observed variables, got the hidden variable {name!r}; leave it out")
        coded = self._coded(data)
        present = [name for name in self.dag.observed if name in coded and name in names]
        loglik = self.loglik(coded)
        return loglik - self.loglik(coded.select(present)) if present else loglik

    def hidden_probabilities(self, data: Any) -> dict[str, FloatArray]:
        """Return {hidden variable: p(state | row)}, each (rows, states)."""
        engine, inverse = self._compile(self._coded(data), list(self.dag.hidden))
        result = {}
        for name in self.dag.hidden:
            result[name] = engine.pattern_marginals(self._log_theta, self.layout.index[name])[inverse]
            _refuse_impossible(~(result[name].sum(axis=1) > 0.5))
        return result

    def predict(self, data: Any, target: str) -> Prediction:
        """Return p(target | the other cells of each row); the target's own column, if any, is not looked at."""
        self._check_name(target)
        known = self._coded(data, without=target)
        return Prediction(target, self.levels[target], self._marginals(known, target, without=target))

    def impute(self, data: Any) -> Imputation:
        """Fill every empty cell of the model's columns with its most probable state given the rest of the row."""
        return Imputation.of(self._coded(data), self.dag.observed, self._marginals)

    def joint(self, names: Sequence[str]) -> FloatArray:
        """Return p(names) with one axis per name, in the order given, by elimination over their ancestors."""
        names = [names] if isinstance(names, str) else names
        for name in names:
            self._check_name(name)
        if len(set(names)) != len(names):
            raise OptionError(f"joint() got the same variable twice: {list(names)}")
        factors = []
        needed = {*names, *self.dag.ancestors(names)}
        for name in self.dag.nodes:
            if name in needed:
                scope = (*self.dag.parents(name), name)
                factors.append(Factor(self.tables[name].reshape([len(self.levels[v]) for v in scope]), scope))
        return eliminate(factors, tuple(names))

    def sample(self, n: int, *, seed: Seed, hidden: bool = False) -> Table:
        """Draw n rows; `hidden=True` keeps the hidden variables as columns."""
        check_whole("n", n, 0)
        generator = np.random.Generator(np.random.PCG64(seed_sequence(seed)))
        codes: dict[str, IntArray] = {}
        for name in self.dag.topological_order:
            configuration = np.zeros(n, np.int64)
            for parent in self.dag.parents(name):
                configuration = configuration * len(self.levels[parent]) + codes[parent]
            edges = np.cumsum(self.tables[name], axis=1)
            # The last edge is 1 up to rounding; leaving it out makes every draw fall in a state.
            draws = generator.random(n)[:, None] >= edges[configuration][:, :-1]
            codes[name] = draws.sum(axis=1)
        kept = self.dag.nodes if hidden else self.dag.observed
        return Table.from_codes({name: (codes[name].astype(np.int32), self.levels[name]) for name in kept})

    def hidden_tables(self, data: Any = None, *, level: float = 0.95) -> dict[str, HiddenTable]:
        """Return p(state | parents) for every hidden variable with parents: covariates, or other hidden variables.

        With data, configurations of the observed parents are ordered by their expected number of rows, and those
        without any are omitted. Rows with missing parents count in all configurations that they may have, with the
        posterior probability of each. States of hidden parents run from the largest to the smallest.

        Parameters
        ----------
        data : Table, frame, mapping, array or path, optional
            Rows to count; without them all configurations are listed, in the order of the levels.
        level : float, default 0.95
            Probability of the central credible intervals, which a network from a VB fit has.

        Returns
        -------
        dict of str to HiddenTable
            Hidden variables without observed descendants are omitted.
        """
        names = names_with_parents(self)
        if data is None or not names:
            return hidden_tables(self, None, level)
        wanted = dict.fromkeys(node for name in names for node in (*self.dag.parents(name), name))
        engine, inverse = self._compile(self._coded(data), list(wanted), weighted=True)
        _refuse_impossible(np.isneginf(engine.pattern_log_z(self._log_theta))[inverse])
        counts, _ = engine.expect(self._log_theta)
        return hidden_tables(self, counts, level)

    def class_sizes(self) -> dict[str, FloatArray]:
        """Return the marginal distribution of every hidden variable."""
        return {name: self.joint([name]) for name in self.dag.hidden}

    def save(self, path: str | Path) -> None:
        """Write the network as versioned JSON; `Network.load` reads it back exactly."""
        about = {**self.about, "versions": versions()}
        write_document(path, Document(self.dag, dict(self.levels), self.theta, self.alpha, about, self.tied))

    @classmethod
    def load(cls, path: str | Path) -> Network:
        """Read a network written by `save`."""
        document = read_document(path)
        return cls(document.dag, document.levels, document.theta, document.alpha, document.about, document.tied)

    def __str__(self) -> str:
        lines = [f"Network: {self.dag}"]
        for name, sizes in self.class_sizes().items():
            lines.append(f"p({name}) = {', '.join(f'{size:.4f}' for size in sizes)}")
        return "\n".join(lines)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Network):
            return NotImplemented
        if self.dag != other.dag or dict(self.levels) != dict(other.levels) or self.tied != other.tied:
            return False
        if self.alpha is None or other.alpha is None:
            return self.alpha is other.alpha and np.array_equal(self.theta, other.theta)
        return np.array_equal(self.theta, other.theta) and np.array_equal(self.alpha, other.alpha)

    def __hash__(self) -> int:
        return hash((self.dag, self.theta.tobytes()))


def _refuse_impossible(rows: BoolArray) -> None:
    """Refuse rows that the network gives probability 0: nothing can be said about them."""
    if rows.any():
        raise DataError(
            f"row {int(np.argmax(rows)) + 1} has probability 0 under the network; "
            "fit with method 'vb' or 'map', whose probabilities are positive"
        )
