"""Determinants of curvatures that may have flat or falling directions.

Everything is measured against the curvature A₀ that complete data would have: the eigenvalues μ of A₀⁻¹A are the
shares of information that is observed, do not depend on the choice of reference states, and are 1 where nothing is
unobserved. Directions with μ ≤ `FLAT` are flat, or the point is no maximum along them; they are left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, cholesky, eigh

from lurking.inference.curvature.hessian import Block
from lurking.types import FloatArray

FLAT = 1e-10
"""Shares of observed information up to this are rounding, about, and not told from 0."""


class Determinant(NamedTuple):
    """ln |A|; with only `rank` directions that are not flat, ln |A₀| + Σ ln μ over those."""

    log_determinant: float
    rank: int


class Factor:
    """The Cholesky factor of A + `shift` · diag A₀, A (d, d), scaled by the diagonal of A₀ (d,).

    `is_definite` says whether it exists.
    """

    def __init__(self, curvature: FloatArray, diagonal: FloatArray, shift: float = 0.0) -> None:
        self.scale: FloatArray = 1.0 / np.sqrt(diagonal)
        scaled = curvature * self.scale
        scaled *= self.scale[:, None]
        scaled[np.diag_indices_from(scaled)] += shift
        try:
            # The transpose is the same matrix, in the order in which it can be overwritten.
            self.lower = cholesky(scaled.T, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            self.lower = np.zeros((0, 0))
        pivots = np.diagonal(self.lower)
        # The squared pivots lie above the smallest eigenvalue of the scaled matrix, and seldom far.
        self.is_definite = len(pivots) == len(diagonal) and bool(np.all(pivots**2 > FLAT))

    @property
    def log_determinant(self) -> float:
        """Ln |A|, of a definite curvature."""
        return 2.0 * float(np.log(np.diagonal(self.lower) / self.scale).sum())

    def solve(self, right: FloatArray) -> FloatArray:
        """Return A⁻¹ x, of a definite curvature."""
        return np.asarray(self.scale * cho_solve((self.lower, True), self.scale * right, check_finite=False))


def of_matrix(factor: Factor, curvature: FloatArray, complete: FloatArray, log_complete: float) -> Determinant:
    """Return the determinant of a whole curvature A (d, d); A₀ is `complete`, ln |A₀| `log_complete`."""
    if factor.is_definite:
        return Determinant(factor.log_determinant, len(curvature))
    return _of_shares(log_complete, eigh(curvature, complete, eigvals_only=True))


def of_blocks(blocks: Iterable[Block]) -> Determinant:
    """Return the determinant of a curvature that consists of blocks."""
    total, rank = 0.0, 0
    for _, curvature, complete in blocks:
        lower = np.linalg.cholesky(complete)
        log_complete = 2.0 * float(np.log(np.diagonal(lower, axis1=1, axis2=2)).sum())
        half = np.linalg.solve(lower, curvature)
        shares = np.linalg.eigvalsh(np.linalg.solve(lower, half.transpose(0, 2, 1)))
        found = _of_shares(log_complete, shares.ravel())
        total, rank = total + found.log_determinant, rank + found.rank
    return Determinant(total, rank)


def _of_shares(log_complete: float, shares: FloatArray) -> Determinant:
    kept = shares[shares > FLAT]
    return Determinant(log_complete + float(np.log(kept).sum()), len(kept))
