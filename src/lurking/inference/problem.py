"""A structure, a table and a prior, checked and compiled: the one argument of every fit, score and sampler."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from lurking.data.files import as_table
from lurking.data.patterns import CONSTANT, UNOBSERVED, rank_rows
from lurking.data.table import Table
from lurking.errors import (
    OptionError,
    TablesOnly,
    TooLarge,
    UnknownNameError,
)
from lurking.graph.dag import Dag
from lurking.graph.symmetry.aliases import log_aliases
from lurking.graph.symmetry.tied_aliases import tied_log_aliases
from lurking.inference.binding import (
    check_columns,
    checked_layout,
    levels_of,
    marked,
    node_codes,
    shared_patterns,
    shared_pseudo_counts,
    warn_of_levels,
)
from lurking.inference.dimension.identifiability import dimension_if_cheap, effective_dimension
from lurking.inference.engines.base import Engine, Make
from lurking.inference.engines.choice import choose_engine
from lurking.inference.engines.completions import CompletionEngine
from lurking.inference.engines.enumeration import EnumerationEngine
from lurking.inference.engines.junction import JunctionEngine
from lurking.inference.engines.reference import ReferenceEngine
from lurking.inference.engines.row_blocks import BLOCK_ROWS, BlockEngine, DiskShelf, MemoryShelf
from lurking.inference.engines.rows import Rows
from lurking.models.families.base import Family
from lurking.models.families.registry import families_of
from lurking.models.layout import Layout
from lurking.models.prior import Prior, natural_hyperparameters
from lurking.models.ties import Ties, checked_ties, restricted
from lurking.runtime.progress import Progress, Silent
from lurking.types import CodeArray, FloatArray, read_only

Result = TypeVar("Result")

ENGINES: dict[str, Make] = {
    "auto": choose_engine,
    "enumeration": EnumerationEngine,
    "junction": JunctionEngine,
    "completions": CompletionEngine,
    "reference": ReferenceEngine,
}
MANY_ROWS = 1 << 21
"""Rows of a table in memory from which it is asked whether merging equal ones is worth while."""
SAMPLE_ROWS = 1 << 16


class Problem:
    """dag + table + prior, compiled.

    Parameters
    ----------
    dag : the structure, or its text form; a star is bound to the columns of the table.
    table : a Table, a frame, an array or the path of a file.
    prior : a Prior, or a number λ for `Prior.symmetric(λ)`.
    hidden : {name: states} of hidden variables that the structure does not mark itself.
    prune : leave out hidden nodes without observed descendant (from d and S too) and, row by row, unobserved cells
        without observed descendant. Exact evidence does not depend on it; every bound is tighter with it.
    engine : "auto" (the cheapest exact method for each independent part), "enumeration", "junction",
        "completions" or "reference".
    tied : groups of nodes whose families share one table, for example [["y1", "y2"]]; states match by their place.
    families : {name: family} of observed nodes that are to have another one than their column's kind gives them.
    """

    def __init__(
        self,
        dag: Dag | str,
        table: Any,
        prior: Prior | float = 1.0,
        *,
        hidden: Mapping[str, int] | None = None,
        prune: bool = True,
        engine: str = "auto",
        tied: Sequence[Sequence[str]] | None = None,
        families: Mapping[str, str | Family] | None = None,
    ) -> None:
        if not isinstance(dag, Dag | str):
            raise OptionError(f"the model is a {type(dag).__name__}; give a Dag or its text, then the data")
        if isinstance(table, str) and ("->" in table or "<-" in table):
            raise OptionError(f"the data are {table!r}, which reads like a model; give the model first, then the data")
        self.table: Table = as_table(table)
        structure = Dag.parse(dag, hidden) if isinstance(dag, str) else marked(dag, hidden or {})
        self.full_dag: Dag = structure.bind(self.table.columns)
        self.prior = Prior.of(prior)
        self.prune = prune
        if engine not in ENGINES:
            raise UnknownNameError("engine", engine, tuple(ENGINES))
        self.engine_name = engine
        check_columns(self.full_dag, self.table, with_values=True)
        self.dag: Dag = self.full_dag.pruned() if prune else self.full_dag
        columns = {name: self.table[name] for name in self.full_dag.observed}
        cardinalities = {name: column.n_states for name, column in columns.items()} | dict(self.full_dag.hidden)
        self.families = families_of(self.full_dag, columns, self.table.weights, families)
        if self.families:
            self._check_families(tied)
        self.tied: Ties = checked_ties(self.full_dag, cardinalities, tied)
        self.layout = checked_layout(self.dag, cardinalities, restricted(self.tied, self.dag.nodes), self.families)
        self.levels = levels_of(self.full_dag, self.table)
        warn_of_levels(self.tied, self.levels)
        self.pseudo: FloatArray = read_only(shared_pseudo_counts(self.prior, self.layout, self.levels))
        self._engine: Engine | None = None
        self._memory: dict[Hashable, Any] = {}
        self._progress: Progress = Silent()
        self._workers: int | None = None

    def _check_families(self, tied: Sequence[Sequence[str]] | None) -> None:
        """Refuse what only models of tables can have."""
        for name in (name for group in tied or () for name in group):
            if name in self.families:
                raise OptionError(f"tied names {name!r}, which is a {self.families[name].name} node; tie tables only")
        if self.engine_name != "auto" and not getattr(ENGINES[self.engine_name], "supports_families", False):
            raise OptionError(
                f"engine is {self.engine_name!r}, which supports tables only, and the model has "
                f"{', '.join(sorted({family.name for family in self.families.values()}))} nodes; use engine='auto'"
            )
        if self.in_blocks:
            raise TooLarge(
                f"a model with nodes other than tables needs its rows in memory, and these {self.table.n_rows} rows "
                "are taken block by block; use fewer rows"
            )

    @cached_property
    def n(self) -> float:
        """Number of rows, counted with their weights."""
        return self.table.n

    @cached_property
    def n_empty(self) -> float:
        """Weight of the rows without a single observed cell of the model; they carry no information but count in n."""
        if self.in_blocks:
            blocks = self.table.blocks(self.dag.observed, BLOCK_ROWS)
            return float(sum(weights[(codes < 0).all(axis=1)].sum() for codes, weights in blocks))
        patterns = shared_patterns(self.dag, self.table)
        return float(patterns.weights[(patterns.codes < 0).all(axis=1)].sum())

    @cached_property
    def in_blocks(self) -> bool:
        """Whether rows are taken from the table block by block and never merged: on disk, or many and mostly different.

        The number of different rows is judged by how often two rows of a sample coincide, as in the birthday problem:
        m of them drawn from P equally likely ones coincide about m² / 2P times.
        """
        if self.table.is_on_disk:
            return True
        if self.table.n_rows < MANY_ROWS:
            return False
        columns = [self.table[name] for name in self.dag.observed]
        sample = [column.codes[:: max(1, self.table.n_rows // SAMPLE_ROWS)] for column in columns]
        size = len(sample[0])
        different = len(rank_rows(sample, [column.cardinality for column in columns], size)[1])
        return different > size // 2 and size * size > (size - different) * self.table.n_rows

    def watch(self, progress: Progress, workers: int | None) -> None:
        """Say who is told how far the work on blocks is, and how many threads do it; results do not depend on it."""
        self._progress, self._workers = progress, workers
        if self._engine is not None:
            self._engine.watch(progress, workers)

    @cached_property
    def rows(self) -> Rows:
        """The unique rows over all nodes with their weights."""
        patterns = shared_patterns(self.dag, self.table)
        place = {name: k for k, name in enumerate(patterns.columns)}
        # A variable with a single state is never in doubt, observed or not; of a value it matters whether it is there.
        codes = patterns.arranged(
            tuple(
                CONSTANT if cardinality == 1 and name not in self.families else place.get(name, UNOBSERVED)
                for name, cardinality in zip(self.layout.nodes, self.layout.cardinalities, strict=True)
            )
        )
        if not self.families:
            return Rows.of_codes(codes, patterns.weights)
        return self._rows_with_values(codes, patterns.weights)

    def _rows_with_values(self, codes: CodeArray, weights: FloatArray) -> Rows:
        """Return rows in which nodes with values have the code 0, or −1 where missing, and their values beside."""
        codes, log_base = codes.copy(), np.zeros(len(codes))
        with_values = [name for name in self.layout.nodes if name in self.families and self.families[name].has_values]
        values = np.empty((len(codes), len(with_values)))
        for k, name in enumerate(with_values):
            own = codes[:, self.layout.index[name]]
            values[:, k] = np.append(np.asarray(self.table[name].levels, np.float64), np.nan)[own]
            log_base += self.families[name].log_base(values[:, k])
            own[:] = np.minimum(own, 0)
        return Rows(codes, values, weights, log_base)

    @property
    def engine(self) -> Engine:
        """The exact inference method, compiled on first use."""
        if self._engine is None:
            self._engine = self._compiled()
        return self._engine

    def _compiled(self) -> Engine:
        make = ENGINES[self.engine_name]
        if self.in_blocks:
            blocks = self.table.blocks(self.dag.observed, BLOCK_ROWS)
            coded = (Rows.of_codes(node_codes(self.layout, codes), weights) for codes, weights in blocks)
            return self._block_engine(coded, self.table.n_rows)
        rows = self.rows
        # An engine for no row at all shows whether this kind of engine compiles its rows.
        if len(rows) > 2 * BLOCK_ROWS and make(self.layout, rows.take(slice(0)), self.prune).pieces is not None:
            begins = range(0, len(rows), BLOCK_ROWS)
            return self._block_engine((rows.take(slice(k, k + BLOCK_ROWS)) for k in begins), len(rows))
        return make(self.layout, rows, self.prune)

    def _block_engine(self, blocks: Iterable[Rows], n_rows: int) -> BlockEngine:
        home = self.table.home
        room = n_rows * (8 + 4 * len(self.dag.observed))
        engine = BlockEngine(
            self.layout,
            blocks,
            -(-n_rows // BLOCK_ROWS),
            self.prune,
            ENGINES[self.engine_name],
            MemoryShelf() if home is None or room < home.memory // 4 else DiskShelf(home.folder),
            self._progress,
        )
        engine.workers = self._workers
        return engine

    @property
    def dimension(self) -> int:
        """d(m), the number of free parameters (beal-ghahramani-2006, eq. 23)."""
        return self.layout.dimension

    @cached_property
    def effective_dimension(self) -> int:
        """Generic rank of the map θ → p(observed variables) (Geiger, Heckerman & Meek 1996)."""
        refuse_families(self, "the effective dimension is defined", "use dimension='standard'")
        return effective_dimension(self.layout)

    @cached_property
    def cheap_effective_dimension(self) -> int | None:
        """The effective dimension if it is known already or costs next to nothing, else None."""
        known = self.__dict__.get("effective_dimension")
        return known if known is not None else dimension_if_cheap(self.layout)

    @property
    def parameters_in_words(self) -> str:
        """Such as "14 parameters, 13 effective": the second number where it is cheap and differs from the first."""
        effective = self.cheap_effective_dimension
        differs = effective is not None and effective < self.dimension
        return f"{self.dimension} parameters" + (f", {effective} effective" if differs else "")

    @cached_property
    def log_aliases(self) -> float:
        """Log number S of relabelings that leave structure and prior unchanged (pruned nodes left out)."""
        return self._log_aliases(self.dag)

    @cached_property
    def relevant_log_aliases(self) -> float:
        """The same over the hidden nodes with an observed descendant only, whatever `prune` says."""
        if self.prune or not self.full_dag.barren:
            return self.log_aliases
        return self._log_aliases(self.full_dag.pruned())

    def _log_aliases(self, dag: Dag) -> float:
        if ties := restricted(self.tied, dag.nodes):
            return tied_log_aliases(dag, self._alias_tables(), ties)
        if self.prior.is_exchangeable:
            return log_aliases(dag)
        cardinalities = {name: r for name, r in self.cardinalities.items() if name not in self.families}
        return log_aliases(dag, self._alias_tables(), cardinalities)

    def _alias_tables(self) -> dict[str, FloatArray]:
        """Return the pseudo-counts by node; of other families their hyperparameters, or ones if rows are shared.

        Hyperparameters of a row stand for those of an observed variable with as many states. A family with one row for
        all states of its parents has a prior that no relabeling changes, unless its hyperparameters are explicit.
        """
        layout, tables = self.layout, self.layout.split(self.pseudo)
        for name, family in layout.families.items():
            j = layout.index[name]
            if len(tables[name]) == layout.configurations[j]:
                continue
            if not np.array_equal(tables[name].ravel(), family.prior(len(tables[name]))):
                raise TablesOnly(
                    f"relabelings are counted only for {family.name} nodes with their default prior, and {name!r} has "
                    "explicit hyperparameters; pass a family with another scale instead"
                )
            tables[name] = np.ones((layout.configurations[j], 1))
        return tables

    @property
    def cardinalities(self) -> dict[str, int]:
        """Number of states of every node of the (pruned) structure."""
        return dict(zip(self.layout.nodes, self.layout.cardinalities, strict=True))

    @cached_property
    def is_complete(self) -> bool:
        """True when no row has anything unobserved that matters."""
        return not self.engine.active.size

    def remember(
        self, key: Hashable, make: Callable[[], Result], keep: Callable[[Result], bool] = lambda _result: True
    ) -> Result:
        """Return the value stored under `key`, making it on first use; fits are shared between scores this way.

        A new value for which `keep` is False is returned but not stored.
        """
        if key in self._memory:
            stored: Result = self._memory[key]
            return stored
        result = make()
        if keep(result):
            self._memory[key] = result
        return result

    def remembers(self, key: Hashable) -> bool:
        """Whether a value is stored under `key`."""
        return key in self._memory

    @cached_property
    def full_pseudo(self) -> tuple[Layout, FloatArray]:
        """Layout and pseudo-counts over all nodes, pruned ones included, tied ones apart."""
        if self.dag is self.full_dag or self.dag == self.full_dag:
            return self.layout.untied, self.layout.apart(self.pseudo)
        cardinalities = {name: len(own) for name, own in self.levels.items()}
        cardinalities |= {name: 1 for name, family in self.families.items() if family.has_values}
        layout = Layout(self.full_dag, cardinalities, families=self.families)
        return layout, natural_hyperparameters(self.prior, layout, self.levels)

    def unpruned(self, flat: FloatArray, fill: FloatArray) -> FloatArray:
        """Return a vector over all nodes: `flat` where the node was kept, `fill` (full layout) where it was pruned.

        A pruned node that is tied to one that was kept has its table.
        """
        layout, _ = self.full_pseudo
        if layout is self.layout:
            return flat
        kept = self.layout.split(flat)
        shared = {name: kept[own] for group in self.tied for own in group if own in kept for name in group}
        return layout.join({**layout.split(fill), **shared, **kept})


def refuse_ties(problem: Problem, what: str, instead: str) -> None:
    """Refuse a computation in which a row must not use an entry of a table twice."""
    if problem.tied:
        raise OptionError(
            f"{what} cannot take tied families ({', '.join(problem.tied[0])}), since one row may use their table more "
            f"than once; use {instead}"
        )


def refuse_families(problem: Problem, what: str, instead: str) -> None:
    """Refuse a computation that supports tables only; `what` ends with the verb, such as "laplace works"."""
    if problem.families:
        names = ", ".join(sorted({family.name for family in problem.families.values()}))
        raise TablesOnly(f"{what} only with tables, and the model has {names} nodes; {instead}")
