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


@njit(cache=True, nogil=True, error_model="numpy")
def carry_into(
    square: FloatArray,
    row_start: IntArray,
    free: IntArray,
    own: FloatArray,
    each: FloatArray,
    shared: FloatArray,
    result: FloatArray,
) -> None:
    """Write JᵀXJ of X = `square` (Q, Q) or larger to `result` (d, d), which holds zeros.

    J_km = δ_km own_m + each_k shared_m within a table row, 0 between two of them. Table row l takes the positions
    row_start[l] … row_start[l + 1], and the coordinates of those that are `free` (d,).
    """
    d = free.shape[0]
    rows = row_start.shape[0] - 1
    begin = np.zeros(rows + 1, np.int64)
    for row in range(rows):
        begin[row + 1] = begin[row]
        while begin[row + 1] < d and free[begin[row + 1]] < row_start[row + 1]:
            begin[row + 1] += 1
    line, together = np.empty(d), np.empty(d)
    for row in range(rows):
        first, last = begin[row], begin[row + 1]
        if first == last:
            continue
        is_used = False
        together[:] = 0.0
        m = first
        for k in range(row_start[row], row_start[row + 1]):
            has_line = _carry_line(square[k], row_start, begin, free, own, each, shared, line)
            if has_line:
                is_used = True
                together += each[k] * line
            if m < last and free[m] == k:
                if has_line:
                    result[m] += own[m] * line
                m += 1
        if is_used:
            for m in range(first, last):
                result[m] += shared[m] * together


@njit(cache=True, nogil=True, error_model="numpy")
def _carry_line(
    entries: FloatArray,
    row_start: IntArray,
    begin: IntArray,
    free: IntArray,
    own: FloatArray,
    each: FloatArray,
    shared: FloatArray,
    line: FloatArray,
) -> bool:
    """Write xJ of one line x (Q,) to `line` (d,); False when the line is 0, and nothing is written."""
    top = 0.0
    for k in range(row_start[-1]):
        top = max(top, abs(entries[k]))
    if top == 0.0:
        return False
    for row in range(row_start.shape[0] - 1):
        together = 0.0
        for k in range(row_start[row], row_start[row + 1]):
            together += each[k] * entries[k]
        for m in range(begin[row], begin[row + 1]):
            line[m] = own[m] * entries[free[m]] + shared[m] * together
    return True
