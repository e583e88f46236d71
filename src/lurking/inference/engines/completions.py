"""Every completion of every row as arrays: an engine for nodes of any family, in NumPy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lurking.errors import TooLarge
from lurking.inference.engines.base import Engine
from lurking.inference.engines.components import kept_nodes
from lurking.inference.engines.rows import Rows
from lurking.models.families.base import Cells, Family
from lurking.models.families.table import TableFamily
from lurking.models.layout import Layout
from lurking.runtime.memory import count_in_words, is_affordable
from lurking.types import BoolArray, CodeArray, FloatArray, IntArray

MOST_COMPLETIONS = 1 << 24


class Factor(NamedTuple):
    """One node: its family, where its parameters are, and the completions in which it has a part."""

    family: Family
    own: slice
    places: IntArray | slice
    cells: Cells


class CompletionEngine(Engine):
    """Exact expectations over the T completions of all rows, each an entry of arrays.

    A row with unobserved variables V has Π_{v ∈ V} r_v completions. Missing values of nodes with values are left out of
    their row: they have no children, so they add nothing. Its twin by brute force is `ReferenceEngine`.

    Attributes
    ----------
    row_of : (T,) row of each completion, ascending.
    codes : (T, nodes) completed rows.
    factors_by_node : {number of the node: its factor} of those that have a part in some row.
    """

    supports_families = True

    def __init__(self, layout: Layout, rows: Rows, prune: bool, wanted: Sequence[int] = ()) -> None:
        super().__init__(layout, rows, prune, wanted)
        self.kept = kept_with_values(layout, rows, prune, wanted)
        is_open = self.kept & (rows.codes < 0)
        self._check(is_open)
        self.row_of, self.codes = completions(rows.codes, is_open, layout.cardinalities)
        self._begin = np.searchsorted(self.row_of, np.arange(len(rows)))
        self.factors_by_node = {j: self._factor(j) for j in range(len(layout.nodes)) if self.kept[:, j].any()}
        self.factors = tuple(self.factors_by_node.values())
        self.active = np.arange(layout.size)
        self.complete_counts = np.zeros(layout.size)
        if self.is_convex and not is_open.any():
            self.complete_counts = self.statistics(np.zeros(layout.size), rows.weights[self.row_of])
            self.active = np.empty(0, np.int64)

    @property
    def cost(self) -> float:
        """Completions times factors."""
        return float(len(self.row_of) * max(len(self.factors), 1))

    def _check(self, is_open: BoolArray) -> None:
        """Refuse rows with more completions than can be held."""
        logs = is_open @ np.log(np.asarray(self.layout.cardinalities, np.float64))
        total = math.fsum(np.exp(np.minimum(logs, 600.0)))
        if total > MOST_COMPLETIONS or not is_affordable(int(total) * self._bytes_per_completion()):
            raise TooLarge(
                f"the rows have {count_in_words(int(total))} completions of their unobserved variables, and a model "
                f"with nodes other than tables holds at most {MOST_COMPLETIONS}; use fewer or smaller hidden variables"
            )

    def _bytes_per_completion(self) -> int:
        """Return what a completion takes while the engine is made: codes three times, and the cells of each node."""
        cells = sum(4 + len(parents) for parents in self.layout.parents)
        return 8 * (3 * len(self.layout.nodes) + cells)

    def _factor(self, j: int) -> Factor:
        """Return the factor of a node."""
        layout = self.layout
        family = layout.families.get(layout.nodes[j]) or TableFamily(layout.cardinalities[j])
        has_part = self.kept[self.row_of, j]
        places = slice(None) if has_part.all() else np.flatnonzero(has_part)
        count, width = layout.shapes[j]
        own = slice(layout.offsets[j], layout.offsets[j] + count * width)
        return Factor(family, own, places, cells_of(layout, j, self.codes[places], self._values(j)[places]))

    def _values(self, j: int) -> FloatArray:
        """Return the value of a node in every completion, (T,); 0 for nodes with states and missing values."""
        column = value_column(self.layout, j)
        if column is None:
            return np.zeros(len(self.row_of))
        return np.asarray(np.nan_to_num(self.rows.values[self.row_of, column]), np.float64)

    def scores(self, potentials: FloatArray) -> FloatArray:
        """Return Σ_j cell_j of every completion, (T,), given all potentials (P,)."""
        result = np.zeros(len(self.row_of))
        for factor in self.factors:
            result[factor.places] += factor.family.cells(potentials[factor.own], factor.cells)
        return result

    def statistics(self, potentials: FloatArray, masses: FloatArray) -> FloatArray:
        """Return Σ masses ∂cells/∂φ, (P,), for masses of every completion (T,)."""
        result = np.zeros(self.layout.size)
        for factor in self.factors:
            result[factor.own] += factor.family.statistics(potentials[factor.own], factor.cells, masses[factor.places])
        return result

    def row_log_z(self, scores: FloatArray) -> FloatArray:
        """Return ln Σ exp(scores) of every row, (u,)."""
        if not len(scores):
            return np.zeros(len(self.rows))
        top = np.maximum.reduceat(scores, self._begin)
        finite = np.where(np.isfinite(top), top, 0.0)
        with np.errstate(divide="ignore"):
            return np.asarray(finite + np.log(np.add.reduceat(np.exp(scores - finite[self.row_of]), self._begin)))

    def _expect_active(self, potentials: FloatArray) -> tuple[FloatArray, float]:
        """Return (N, log_z) over all positions, or over none when nothing is active."""
        if not self.active.size:
            return np.empty(0), 0.0
        scores = self.scores(potentials)
        log_z, weights = self.row_log_z(scores), self.rows.weights
        used = weights != 0.0
        total = float((weights[used] * log_z[used]).sum())
        if total == -math.inf:
            return np.zeros(self.layout.size), total
        masses = np.where(used, weights, 0.0)[self.row_of] * self.posterior(scores, log_z)
        return self.statistics(potentials, masses), total

    def posterior(self, scores: FloatArray, log_z: FloatArray) -> FloatArray:
        """Return the probability of every completion given its row, (T,); 0 in rows of probability 0."""
        finite = np.where(np.isfinite(log_z), log_z, np.inf)
        return np.asarray(np.exp(scores - finite[self.row_of]))

    def _pattern_log_z(self, potentials: FloatArray) -> FloatArray:
        """Return ln z of every pattern."""
        return self.row_log_z(self.scores(potentials))

    def pattern_marginals(self, potentials: FloatArray, node: int) -> FloatArray:
        """Return the posterior of one node's states in every pattern, (u, r)."""
        scores = self.scores(potentials)
        masses, states = self.posterior(scores, self.row_log_z(scores)), self.layout.cardinalities[node]
        places = self.row_of * states + self.codes[:, node]
        sums = np.bincount(places, weights=masses, minlength=len(self.rows) * states)
        result = sums.astype(np.float64).reshape(-1, states)
        result[~self.kept[:, node]] = np.nan
        return result

    def pattern_statistics(self, potentials: FloatArray) -> FloatArray:
        """Return the expected statistics of every pattern on its own, (u, P)."""
        scores = self.scores(potentials)
        masses = self.posterior(scores, self.row_log_z(scores))
        rows = [self.statistics(potentials, masses * (self.row_of == i)) for i in range(len(self.rows))]
        return np.asarray(rows).reshape(len(self.rows), self.layout.size)

    def draw(self, potentials: FloatArray, generator: np.random.Generator) -> FloatArray:
        """Return how often each completion occurs, (T,): one multinomial draw for each row of whole-number weight."""
        scores = self.scores(potentials)
        masses, weights = self.posterior(scores, self.row_log_z(scores)), self.rows.weights
        sums = np.append(0.0, np.cumsum(masses))
        ends = np.append(self._begin[1:], len(self.row_of))
        # Rows of weight 1 take one uniform number each; it is kept below the sum of its row.
        single = np.flatnonzero(weights == 1.0)
        below, above = sums[self._begin[single]], sums[ends[single]]
        places = np.searchsorted(sums, below + generator.random(len(single)) * (above - below), side="right") - 1
        result = np.zeros(len(self.row_of))
        result[np.clip(places, self._begin[single], ends[single] - 1)] = 1.0
        for row in np.flatnonzero(weights > 1.0):
            own = masses[self._begin[row] : ends[row]]
            result[self._begin[row] : ends[row]] = generator.multinomial(int(weights[row]), own / own.sum())
        return result


def value_column(layout: Layout, j: int) -> int | None:
    """Return which column of `Rows.values` a node has; None for a node with states."""
    names = [name for name in layout.nodes if name in layout.families and layout.families[name].has_values]
    return names.index(layout.nodes[j]) if layout.nodes[j] in names else None


def kept_with_values(layout: Layout, rows: Rows, prune: bool, wanted: Sequence[int]) -> BoolArray:
    """Return which nodes have a part in each row, (u, nodes): missing values have none."""
    kept = kept_nodes(layout, rows.codes, prune, wanted)
    for j in range(len(layout.nodes)):
        if value_column(layout, j) is not None:
            kept[:, j] &= rows.codes[:, j] >= 0
    return kept


def completions(codes: CodeArray, is_open: BoolArray, cardinalities: Sequence[int]) -> tuple[IntArray, IntArray]:
    """Return the row of each completion (T,), ascending, and completed codes (T, nodes), the last open node fastest.

    Nodes that are neither observed nor open are at state 0.
    """
    rows, made = [np.empty(0, np.int64)], [np.empty((0, codes.shape[1]), np.int64)]
    masks, group = np.unique(is_open, axis=0, return_inverse=True)
    for k, mask in enumerate(masks):
        own, free = np.flatnonzero(group.reshape(-1) == k), np.flatnonzero(mask)
        count = math.prod(cardinalities[int(v)] for v in free)
        whole = np.repeat(np.maximum(codes[own], 0).astype(np.int64), count, axis=0)
        if len(free):
            states = np.indices([cardinalities[int(v)] for v in free]).reshape(len(free), -1)
            whole[:, free] = np.tile(states.T, (len(own), 1))
        rows.append(np.repeat(own, count))
        made.append(whole)
    row_of = np.concatenate(rows)
    order = np.argsort(row_of, kind="stable")
    return row_of[order], np.concatenate(made)[order]


def cells_of(layout: Layout, j: int, codes: IntArray, values: FloatArray) -> Cells:
    """Return where the factor of a node is evaluated, given completed codes (k, nodes) and its values (k,)."""
    parents = layout.parents[j]
    configuration = np.zeros(len(codes), np.int64)
    for parent in parents:
        configuration = configuration * layout.cardinalities[parent] + codes[:, parent]
    return Cells(configuration, codes[:, list(parents)], codes[:, j], values)
