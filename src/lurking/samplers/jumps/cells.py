"""Completed data of a table, kept as counts over all completions of its different rows.

A row with unobserved variables V has Π_{v ∈ V} r_v completions, one *cell* each. Cells depend on the cardinalities of
hidden variables, but not on arcs, so the counts of every family of every structure can be read off one vector of
counts. A row of weight w is w rows, whose completions are one multinomial draw.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import final

import numpy as np

from lurking.errors import TooLarge
from lurking.expfam.blocks import Blocks
from lurking.inference.problem import Problem
from lurking.models.prior import BDeuPrior, SymmetricPrior, pseudo_count_of
from lurking.runtime.checks import check_whole_weights
from lurking.runtime.memory import count_in_words
from lurking.types import AnyArray, CodeArray, FloatArray, IntArray, read_only

MOST_CELLS = 1 << 22
KEPT_INDICES = 1 << 24
"""Numbers in the indices of families that are kept; beyond, all are forgotten and found again."""


def completable_rows(problem: Problem, *, likelihood: bool) -> tuple[CodeArray, FloatArray]:
    """Return the different rows over all nodes (U, p), −1 where unobserved, and their weights (U,), whole numbers > 0.

    Unlike `problem.codes` they are sorted by the columns in node order, and a hidden variable with one state, which may
    get more, is unobserved. Without the likelihood there are no rows.
    """
    table, nodes = problem.table, problem.layout.nodes
    check_whole_weights(table.weights, "use vb or cs, which take any weights")
    columns = problem.dag.observed
    patterns = table.patterns(columns)
    counted = patterns.weights > 0.0 if likelihood else np.zeros(len(patterns), np.bool_)
    codes = np.full((int(counted.sum()), len(nodes)), -1, np.int32)
    for k, name in enumerate(columns):
        codes[:, nodes.index(name)] = patterns.codes[counted, k]
    return codes, patterns.weights[counted]


@final
class Cells:
    """All completions of the rows for given cardinalities.

    Attributes
    ----------
    cardinalities : number of states of each of the p variables.
    codes : (p, T) completed rows; one column is one cell, and cells of one row are neighbours.
    row_of : (T,) the row of each cell.
    weights : (U,) weight of each row, in the order of the cells.
    """

    def __init__(self, rows: CodeArray, weights: FloatArray, cardinalities: Sequence[int]) -> None:
        self.cardinalities: tuple[int, ...] = tuple(int(r) for r in cardinalities)
        sizes = np.asarray(self.cardinalities, np.int64)
        is_open = rows < 0
        log_states = is_open @ np.log(sizes)
        total = float(np.exp(np.minimum(log_states, 600.0)).sum())
        if total > MOST_CELLS:
            raise TooLarge(
                f"the rows have {count_in_words(int(total))} completions, and sampling structures "
                f"holds at most {MOST_CELLS}; use fewer states, or leave out columns with many empty cells"
            )
        states = np.rint(np.exp(log_states)).astype(np.int64)
        order = np.argsort(states, kind="stable")
        self._rows, self.weights, states = rows[order], weights[order], states[order]
        self.begin: IntArray = np.concatenate([[0], np.cumsum(states)]).astype(np.int64)
        self.row_of: IntArray = np.repeat(np.arange(len(states)), states)
        # A step of one state of each unobserved variable, the last one fastest.
        reach = np.where(is_open[order], sizes, 1)
        after = np.cumprod(reach[:, ::-1], axis=1)[:, ::-1]
        self.strides: IntArray = np.where(is_open[order], after // reach, 0)
        place = np.arange(len(self.row_of)) - self.begin[self.row_of]
        kind: type[np.generic] = np.uint8 if sizes.max() <= 256 else np.int32
        self.codes: AnyArray = np.empty((len(sizes), len(self.row_of)), kind)
        for v, size in enumerate(sizes):
            stride = self.strides[:, v][self.row_of]
            self.codes[v] = np.where(stride > 0, place // np.maximum(stride, 1) % size, self._rows[self.row_of, v])
        changes = np.flatnonzero(np.diff(states)) + 1
        self._runs = [
            (int(first), int(last), int(states[first]))
            for first, last in zip([0, *changes], [*changes, len(states)], strict=True)
            if last > first
        ]
        self._indices: dict[tuple[int, tuple[int, ...]], IntArray] = {}

    def __len__(self) -> int:
        return len(self.row_of)

    def places(self, rows: IntArray, codes: AnyArray) -> IntArray:
        """Return the cells of completed rows: `rows` (m,) with `codes` (p, m)."""
        return np.asarray(self.begin[rows] + (self.strides[rows].T * codes.astype(np.int64)).sum(axis=0))

    def index(self, node: int, parents: tuple[int, ...]) -> IntArray:
        """Return (T,) the place of every cell in a family's table [parent configuration, state], flat."""
        family = (node, parents)
        kept = self._indices.get(family)
        if kept is None:
            if len(self._indices) * len(self) > KEPT_INDICES:
                self._indices.clear()
            kept = self._indices[family] = family_index(self.codes, self.cardinalities, node, parents)
        return kept

    def size(self, node: int, parents: tuple[int, ...]) -> int:
        """Return the number of entries of a family's table."""
        return math.prod(self.cardinalities[v] for v in (*parents, node))

    def log_likelihood(self, log_mass: FloatArray) -> float:
        """Return Σ_i w_i ln Σ_s exp(log_mass), `log_mass` (T,)."""
        result = 0.0
        for first, last, states in self._runs:
            block = log_mass[self.begin[first] : self.begin[last]].reshape(-1, states)
            top = block.max(axis=1)
            result += float(self.weights[first:last] @ (top + np.log(np.exp(block - top[:, None]).sum(axis=1))))
        return result

    def draw(self, log_mass: FloatArray, generator: np.random.Generator) -> FloatArray:
        """Return counts (T,): each row's weight spread by one multinomial draw with probabilities ∝ exp(log_mass)."""
        counts = np.empty(len(self))
        for first, last, states in self._runs:
            here = slice(self.begin[first], self.begin[last])
            block = log_mass[here].reshape(-1, states)
            shares = np.exp(block - block.max(axis=1)[:, None])
            shares /= shares.sum(axis=1)[:, None]
            counts[here] = generator.multinomial(self.weights[first:last].astype(np.int64), shares).ravel()
        return counts


def family_index(codes: AnyArray, cardinalities: Sequence[int], node: int, parents: tuple[int, ...]) -> IntArray:
    """Return the place of completed rows `codes` (p, m) in a family's table, (m,); first parent slowest, state last."""
    result = np.zeros(codes.shape[1], np.int64)
    for v in (*parents, node):
        result *= cardinalities[v]
        result += codes[v]
    return result


@lru_cache(maxsize=128)
def side_by_side(prior: SymmetricPrior | BDeuPrior, shapes: tuple[tuple[int, int], ...]) -> tuple[Blocks, FloatArray]:
    """Return the rows of tables with `shapes` (rows, states), one table after the other, and their λ, (P,).

    Chains ask for the same tables in every sweep; the last ones are kept.
    """
    counts, states = np.asarray(shapes, np.int64).reshape(-1, 2).T
    lengths = np.repeat(states, counts)
    pseudo = np.repeat([pseudo_count_of(prior, width, count) for count, width in shapes], counts * states)
    return Blocks.of_tables(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)), read_only(pseudo)


def sums_at(places: IntArray, values: FloatArray, size: int) -> FloatArray:
    """Return the sums of the values at each of `size` places, (size,)."""
    return np.asarray(np.bincount(places, weights=values, minlength=size), np.float64)


@final
class Completed:
    """The scores of families on one completion of the data; a family is counted once and its score kept.

    score(j, pa) = Σ_l [lnΓ(λ_jl) − lnΓ(λ_jl + N_jl) + Σ_k lnΓ(λ_jlk + N_jlk) − lnΓ(λ_jlk)], so that their sum over a
    structure is ln p(s, y | m) (chickering-heckerman-1996, eq. 5).
    """

    def __init__(self, cells: Cells, counts: FloatArray, prior: SymmetricPrior | BDeuPrior) -> None:
        self.cells = cells
        self.counts = counts
        self._prior = prior
        self._scores: dict[tuple[int, tuple[int, ...]], float] = {}
        occupied = np.flatnonzero(counts)
        self._codes: AnyArray = np.ascontiguousarray(cells.codes[:, occupied])
        self._weights: FloatArray = counts[occupied]
        self._sizes: IntArray = np.asarray(cells.cardinalities, np.int64)

    def score(self, node: int, parents: tuple[int, ...]) -> float:
        """Return the log evidence of one family; parents are ascending positions."""
        family = (node, parents)
        if family not in self._scores:
            self._scores[family] = self._evaluate(node, parents)
        return self._scores[family]

    def table(self, node: int, parents: tuple[int, ...]) -> FloatArray:
        """Return the counts N of one family, flat."""
        return sums_at(self.cells.index(node, parents), self.counts, self.cells.size(node, parents))

    def _evaluate(self, node: int, parents: tuple[int, ...]) -> float:
        from lurking.kernels.cpu.families import additions_into, refine_into

        keys, n_keys = np.zeros(len(self._weights), np.int64), 1
        for parent in parents:
            finer = np.empty_like(keys)
            n_keys = refine_into(keys, n_keys, self._codes[parent], self.cells.cardinalities[parent], finer)
            keys = finer
        states = self.cells.cardinalities[node]
        alpha = np.asarray([pseudo_count_of(self._prior, states, self.cells.size(node, parents) // states)])
        value, nobody = np.empty(1), np.asarray([-1], np.int64)
        additions_into(self._codes, self._sizes, self._weights, keys, n_keys, node, nobody, alpha, value)
        return float(value[0])
