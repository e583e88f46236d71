"""Signatures of a hidden variable in the data: dependence that no observed variable explains, and ranks of tables.

Children of one hidden variable depend on each other whatever observed variables are held fixed. And where one hidden
variable with r states separates the disjoint sets A and B, the matrix of p(A, B) = Σ_h p(h) p(A | h) p(B | h) has rank
r at most: for four binary variables this is the tetrad condition.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from lurking.data.table import Table
from lurking.runtime.executor import StopFlag
from lurking.search.signatures import semi_cliques
from lurking.types import BoolArray, FloatArray, IntArray

LEVEL = 1e-3
NEAREST = 4
"""Variables by which the dependence of a pair may be explained, those most dependent on either."""
MOST_STATES = 4
MOST_CELLS = 400
"""Of a table whose layers are tested; a larger one is too thin."""
MOST_FLATTENED = 144
"""Cells of a flattened table; the test of its rank needs a matrix with the square of that."""
MOST_FOURS = 10


@dataclass(frozen=True)
class Signature:
    """Variables that depend on each other given the others, and how many states one hidden cause needs at least."""

    names: tuple[str, ...]
    states: int | None
    """None where no number of states up to four passes, or where nothing can be tested."""


class Dependence:
    """Tables of pairs and triples of the columns; rows with an empty cell among those asked for are left out.

    Once `stop` is set, pairs that were not looked at yet count as explained.
    """

    def __init__(self, table: Table, stop: StopFlag | None = None) -> None:
        self.stop = stop or StopFlag()
        patterns = table.patterns()
        self.names = table.columns
        self.codes: list[IntArray] = [np.ascontiguousarray(column, np.int64) for column in patterns.codes.T]
        self.weights: FloatArray = np.asarray(patterns.weights, np.float64)
        self.is_complete = not any((column < 0).any() for column in self.codes)
        self.sizes = [table[name].cardinality for name in table.columns]

    def counts(self, columns: Sequence[int]) -> FloatArray:
        """Return the contingency table of some columns, one axis for each."""
        shape = tuple(self.sizes[column] for column in columns)
        flat: IntArray = np.zeros(len(self.weights), np.int64)
        for column, size in zip(columns, shape, strict=True):
            flat = flat * size + self.codes[column]
        weights = self.weights
        if not self.is_complete:
            seen = np.all([self.codes[column] >= 0 for column in columns], axis=0)
            flat, weights = flat[seen], weights[seen]
        counts = np.bincount(flat, weights=weights, minlength=math.prod(shape))
        return np.asarray(counts, np.float64).reshape(shape)

    def p_value(self, x: int, y: int, given: Sequence[int] = ()) -> float:
        """Return the p-value of the G² test that x and y are independent given others.

        A table given others that is too thin to test explains nothing: 0.
        """
        if given and math.prod(self.sizes[column] for column in (x, y, *given)) > MOST_CELLS:
            return 0.0
        counts = self.counts((x, y, *given))
        statistic, freedom = g_squared(counts.reshape(*counts.shape[:2], -1))
        return float(chi2.sf(statistic, freedom)) if freedom > 0 else 1.0

    def information(self) -> FloatArray:
        """Return (p, p) the mutual information of every pair in nats, 0 on the diagonal."""
        size = len(self.names)
        result = np.zeros((size, size))
        for x, y in itertools.combinations(range(size), 2):
            counts = self.counts((x, y))
            statistic, _ = g_squared(counts[:, :, None])
            result[x, y] = result[y, x] = statistic / max(2.0 * counts.sum(), 1.0)
        return result

    def unexplained(self, information: FloatArray, level: float = LEVEL) -> BoolArray:
        """Return (p, p) which pairs stay dependent given any one or two of the variables nearest to them."""
        size = len(self.names)
        result = np.zeros((size, size), np.bool_)
        for x, y in itertools.combinations(range(size), 2):
            if self.stop.is_set:
                break
            if self.p_value(x, y) > level:
                continue
            near = [int(z) for z in np.argsort(-np.maximum(information[x], information[y]), kind="stable")]
            near = [z for z in near if z not in (x, y)][:NEAREST]
            sets = [(z,) for z in near] + list(itertools.combinations(near, 2))
            result[x, y] = result[y, x] = not any(self.p_value(x, y, given) > level for given in sets)
        return result

    def states_of_one_cause(self, columns: Sequence[int], level: float = LEVEL) -> int | None:
        """Return the least number of states with which one hidden cause passes all rank tests of fours of variables.

        Every four of the columns are flattened in three ways, {a, b} × {c, d}; the level is shared among the tests.
        """
        fours = list(itertools.combinations(columns, 4))[:MOST_FOURS]
        if not fours:
            return None
        for states in range(2, MOST_STATES + 1):
            p_values = [
                rank_p_value(self._flattened(four, split), states)
                for four in fours
                for split in ((0, 1), (0, 2), (0, 3))
            ]
            tested = [value for value in p_values if value is not None]
            if not tested:
                return None
            if min(tested) * len(tested) > level:
                return states
        return None

    def signatures(self, information: FloatArray | None = None) -> list[Signature]:
        """Return sets of at least three variables whose dependence on each other nothing observed explains."""
        known = self.information() if information is None else information
        result = []
        for members in semi_cliques(self.unexplained(known)):
            names = tuple(self.names[k] for k in members)
            result.append(Signature(names, self.states_of_one_cause(members)))
        return result

    def _flattened(self, four: tuple[int, ...], first: tuple[int, int]) -> FloatArray:
        """Return the counts of four columns as a matrix, two of them along each side."""
        second = tuple(k for k in range(4) if k not in first)
        rows = math.prod(self.sizes[four[k]] for k in first)
        if rows * math.prod(self.sizes[four[k]] for k in second) > MOST_FLATTENED:
            return np.zeros((0, 0))
        return self.counts(four).transpose(*first, *second).reshape(rows, -1)


def g_squared(counts: FloatArray) -> tuple[float, int]:
    """Return G² = 2 Σ N ln(N / E) of tables (r, c, m), independence of rows and columns in each, and its freedom.

    Rows and columns that are empty within a layer have no share in the degrees of freedom.
    """
    rows, columns = counts.sum(axis=1), counts.sum(axis=0)
    total = counts.sum(axis=(0, 1))
    expected = rows[:, None, :] * columns[None, :, :] / np.where(total > 0.0, total, 1.0)
    seen = counts > 0.0
    statistic = 2.0 * float((counts[seen] * np.log(counts[seen] / expected[seen])).sum())
    freedom = np.maximum((rows > 0.0).sum(axis=0) - 1, 0) * np.maximum((columns > 0.0).sum(axis=0) - 1, 0)
    return max(statistic, 0.0), int(freedom.sum())


def rank_p_value(counts: FloatArray, rank: int) -> float | None:
    """Return the p-value of the test that the matrix of probabilities behind (r, c) counts has at most this rank.

    With P = U S Vᵀ and the null spaces U₂ (r, r − k), V₂ (c, c − k) of the best approximation of rank k, the vector
    vec(U₂ᵀ P̂ V₂) is normal around 0 with covariance (U₂ ⊗ V₂)ᵀ (diag p − p pᵀ) (U₂ ⊗ V₂) / n, and its squared length in
    that metric is χ² with (r − k)(c − k) degrees of freedom (Kleibergen & Paap 2006, with the multinomial covariance).
    None where the rank cannot be exceeded or there are no counts.

    The distribution is that of large tables, and on thin ones the size is off, either way: a 2 × 2 table of rank 1 with
    three expected counts in its rarest cell is rejected at level 0.001 in 4 of 100 samples, with less than one in none.
    """
    kept = counts[counts.sum(axis=1) > 0.0][:, counts.sum(axis=0) > 0.0]
    total = kept.sum()
    free = (kept.shape[0] - rank) * (kept.shape[1] - rank)
    if min(kept.shape) <= rank or total <= 0.0:
        return None
    observed = kept / total
    left, _, right = np.linalg.svd(observed)
    across, down = left[:, rank:], right[rank:].T
    # Half a count in every cell keeps the covariance of cells that happen to be empty away from 0.
    smooth = (kept + 0.5) / (total + 0.5 * kept.size)
    residual = (across.T @ observed @ down).ravel()
    weights = np.einsum("ia,jb->ijab", across, down).reshape(kept.size, -1)
    mean = weights.T @ smooth.ravel()
    covariance = (weights.T * smooth.ravel()) @ weights - np.outer(mean, mean)
    statistic = total * float(residual @ np.linalg.pinv(covariance, hermitian=True) @ residual)
    return float(chi2.sf(statistic, free))
