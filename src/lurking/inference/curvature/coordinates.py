"""Free coordinates of probability tables, and how log-likelihoods curve in them.

A table row of r probabilities has r − 1 free coordinates. In both kinds the most probable state of a row is the
*reference* that has none. Which state it is does not change a determinant, since a change of reference is a linear map
of determinant ±1; the most probable one keeps divisions by small numbers away.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np

from lurking.kernels.program import starts
from lurking.types import BoolArray, FloatArray, IntArray

BLOCK_NUMBERS = 1 << 22
"""Numbers in the matrices of several table rows that are held at once, about."""


def row_starts(row_of: IntArray) -> IntArray:
    """Return where each row begins, (R + 1,), given the row of each of some positions that make up whole rows."""
    return starts(np.unique(row_of, return_counts=True)[1].tolist())


class Coordinates(ABC):
    """Coordinates of some rows of tables, laid out one after the other.

    Parameters
    ----------
    row_start : (R + 1,) first position of each row.
    theta : (Q,) probabilities.
    left_out : (Q,) entries without a coordinate of their own: they are held where they are.

    Attributes
    ----------
    free : (d,) positions with a coordinate, ascending.
    row_of_free : (d,) their rows.
    reference : (R,) position of the reference state of each row.
    own (d,), each (Q,), shared (d,) : J = ∂ ln θ / ∂ coordinates, J_km = δ_km own_m + each_k shared_m within a row.
    """

    own: FloatArray
    each: FloatArray
    shared: FloatArray

    def __init__(self, row_start: IntArray, theta: FloatArray, left_out: BoolArray) -> None:
        self.row_start, self.theta, self.left_out = row_start, theta, left_out
        lengths = np.diff(row_start)
        row_of = np.repeat(np.arange(len(lengths)), lengths)
        order = np.lexsort((-theta, row_of))
        self.reference: IntArray = order[row_start[:-1]]
        is_free = ~left_out
        is_free[self.reference] = False
        self.free: IntArray = np.flatnonzero(is_free)
        self.row_of_free: IntArray = row_of[self.free]

    def __len__(self) -> int:
        return len(self.free)

    def within(self, rows: IntArray) -> tuple[Coordinates, IntArray]:
        """Return the coordinates of some of the rows, and which of all coordinates they are."""
        chosen = np.zeros(len(self.row_start) - 1, bool)
        chosen[rows] = True
        lengths = np.diff(self.row_start)
        positions = np.flatnonzero(np.repeat(chosen, lengths))
        part = type(self)(starts(lengths[chosen].tolist()), self.theta[positions], self.left_out[positions])
        return part, np.flatnonzero(chosen[self.row_of_free])

    def row_sums(self, flat: FloatArray) -> FloatArray:
        """Return the sums over each row along the last axis, (…, R)."""
        if not len(self.reference):
            return np.zeros((*flat.shape[:-1], 0))
        return np.asarray(np.add.reduceat(flat, self.row_start[:-1], axis=-1))

    def log_diagonal(self, counts: FloatArray) -> float:
        """Return ln of the product of the diagonal of `complete` over all rows."""
        parts = (np.diagonal(self.complete(counts, *block), axis1=1, axis2=2) for block in self.blocks())
        return float(sum(np.log(part).sum() for part in parts))

    def blocks(self) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield (rows (B,), coordinates (B, f)) of rows with f > 0 coordinates each; B · f² stays bounded."""
        size = np.bincount(self.row_of_free, minlength=len(self.reference))
        begin = starts(size.tolist())
        for f in np.unique(size[size > 0]):
            rows = np.flatnonzero(size == f)
            at_once = max(1, BLOCK_NUMBERS // int(f) ** 2)
            for first in range(0, len(rows), at_once):
                some = rows[first : first + at_once]
                yield some, begin[some][:, None] + np.arange(f)

    def along(self, statistics: FloatArray) -> FloatArray:
        """Return g = Jᵀn of statistics n along the last axis, (…, Q) to (…, d)."""
        together = self.row_sums(statistics * self.each)[..., self.row_of_free]
        return np.asarray(statistics[..., self.free] * self.own + together * self.shared)

    @abstractmethod
    def complete(self, counts: FloatArray, rows: IntArray, index: IntArray) -> FloatArray:
        """Return −∂² Σ_k N_k ln θ_k, the curvature of complete counts (Q,), in rows with f coordinates, (B, f, f)."""

    @abstractmethod
    def log_determinant(self, counts: FloatArray) -> float:
        """Return ln of the determinant of `complete` over all rows."""

    @abstractmethod
    def squares(self, counts: FloatArray, rows: IntArray, index: IntArray) -> FloatArray:
        """Return Jᵀ diag(N) J in rows with f coordinates, (B, f, f)."""


class Logits(Coordinates):
    """η_k, the logit of state k against the reference: θ = softmax(η), ∂ ln θ_k / ∂η_m = δ_km − θ_m."""

    def __init__(self, row_start: IntArray, theta: FloatArray, left_out: BoolArray) -> None:
        super().__init__(row_start, theta, left_out)
        self.own, self.each = np.ones(len(self.free)), np.full(len(theta), -1.0)
        self.shared = theta[self.free]

    def complete(self, counts: FloatArray, rows: IntArray, index: IntArray) -> FloatArray:
        """Return N_l (diag θ − θθᵀ): how N_l is divided over the states does not matter."""
        theta = self.theta[self.free[index]]
        return self.row_sums(counts)[rows, None, None] * (_diagonal(theta) - theta[:, :, None] * theta[:, None, :])

    def log_determinant(self, counts: FloatArray) -> float:
        """Return Σ_l [f ln N_l + Σ_k ln θ_k], k over the states that are not left out, where f > 0."""
        totals = self.row_sums(counts)[self.row_of_free]
        references = self.theta[self.reference[np.unique(self.row_of_free)]]
        return float(np.log(totals * self.theta[self.free]).sum() + np.log(references).sum())

    def squares(self, counts: FloatArray, rows: IntArray, index: IntArray) -> FloatArray:
        """Return diag(N) − Nθᵀ − θNᵀ + N_l θθᵀ."""
        theta, own = self.theta[self.free[index]], counts[self.free[index]]
        mixed = own[:, :, None] * theta[:, None, :]
        totals = self.row_sums(counts)[rows, None, None]
        return _diagonal(own) - mixed - mixed.transpose(0, 2, 1) + totals * theta[:, :, None] * theta[:, None, :]


class Probabilities(Coordinates):
    """θ_k themselves; the reference is 1 − Σ θ_k, ∂ ln θ_k / ∂θ_m = δ_km / θ_m − [k is the reference] / θ_k."""

    def __init__(self, row_start: IntArray, theta: FloatArray, left_out: BoolArray) -> None:
        super().__init__(row_start, theta, left_out)
        self.own, self.each = 1.0 / theta[self.free], np.zeros(len(theta))
        self.each[self.reference] = -1.0 / theta[self.reference]
        self.shared = np.ones(len(self.free))

    def complete(self, counts: FloatArray, rows: IntArray, index: IntArray) -> FloatArray:
        """Return diag(N_m / θ_m²) + N_k / θ_k², k the reference."""
        return self.squares(counts, rows, index)

    def log_determinant(self, counts: FloatArray) -> float:
        """Return Σ_l [Σ_m ln v_m + ln(1 + Σ_m v_k / v_m)], v = N / θ², m over the coordinates, k the reference."""
        free = counts[self.free] / self.theta[self.free] ** 2
        reference = counts[self.reference] / self.theta[self.reference] ** 2
        ratios = np.bincount(self.row_of_free, reference[self.row_of_free] / free, len(self.reference))
        return float(np.log(free).sum() + np.log1p(ratios).sum())

    def squares(self, counts: FloatArray, rows: IntArray, index: IntArray) -> FloatArray:
        """Return diag(N_m / θ_m²) + N_k / θ_k², k the reference: every count has one coordinate, or all of them."""
        own, last = self.free[index], self.reference[rows]
        shared = counts[last] / self.theta[last] ** 2
        return _diagonal(counts[own] / self.theta[own] ** 2) + shared[:, None, None]


def _diagonal(values: FloatArray) -> FloatArray:
    """Return matrices (B, f, f) with the given diagonals (B, f)."""
    result = np.zeros((*values.shape, values.shape[-1]))
    places = np.arange(values.shape[-1])
    result[:, places, places] = values
    return result
