"""First and second moments of the completed counts of rows: what the curvature of the likelihood is made of."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from lurking.kernels.cpu.enumeration import row_in_logs
from lurking.types import FloatArray, IntArray

NEGLIGIBLE = 1e-18
"""Probability below which a joint state is left out of the pairs: sums of such terms are lost in rounding."""


@njit(cache=True, nogil=True, error_model="numpy")
def means_into(
    gather: NDArray[np.int32],
    potentials: FloatArray,
    cells: IntArray,
    column: IntArray,
    masses: FloatArray,
    means: FloatArray,
) -> None:
    """Write the posterior of every row over its joint states, and add the expected counts E[n] of every row.

    `cells` (rows, factors) is the first cell of each factor, `column` (Q + 1,) the column of each potential in `means`
    (rows, columns), neutral factor last; `masses` (rows, S) receives the posteriors.
    """
    none = np.empty(0, np.int64)
    for row in range(cells.shape[0]):
        row_in_logs(gather, potentials, none, cells[row], masses[row])
        for cell in cells[row]:
            for s in range(masses.shape[1]):
                means[row, column[gather[cell + s]]] += masses[row, s]


@njit(cache=True, nogil=True, error_model="numpy")
def pairs_into(
    gather: NDArray[np.int32],
    cells: IntArray,
    column: IntArray,
    masses: FloatArray,
    weights: FloatArray,
    pairs: FloatArray,
) -> None:
    """Add Σ_i w_i Σ_s p_is for every pair of potentials that a completed row uses together, each pair once.

    `pairs` (columns, columns) has a pair (a, b) at [a, b] or at [b, a]; pairs[a, a] stays as it is. States are the
    outer loop: the potentials that one joint state can use are few, and their part of `pairs` stays in the cache.
    """
    rows, factors = cells.shape
    used = np.empty(factors, np.int64)
    for s in range(masses.shape[1]):
        for row in range(rows):
            if masses[row, s] <= NEGLIGIBLE:
                continue
            mass = weights[row] * masses[row, s]
            for f in range(factors):
                used[f] = column[gather[cells[row, f] + s]]
                for other in range(f):
                    pairs[used[f], used[other]] += mass
