"""Independent points of a product of Dirichlet distributions with their likelihoods, many in one call."""

from __future__ import annotations

import numpy as np
from numba import njit

from lurking.kernels.cpu.enumeration import expect_into
from lurking.kernels.cpu.sampling import draw_log_theta
from lurking.kernels.program import Program
from lurking.types import FloatArray, IntArray


@njit(cache=True, nogil=True, error_model="numpy")
def weigh_points_into(
    program: Program,
    alpha: FloatArray,
    generator: np.random.Generator,
    stop: IntArray,
    points: FloatArray,
    log_likelihoods: FloatArray,
) -> int:
    """Draw ln θ with every row from Dir(α) to `points` (count, Q), and ln p(y|θ) of each to `log_likelihoods` (count,).

    Inactive table rows take no part. Returns how many points were made before `stop[0]` was set.
    """
    count, size = len(points), points.shape[1]
    expected = np.empty(size)
    scratch = (np.empty(program.joined.n_cells), np.empty(program.joined.n_cells))
    for k in range(count):
        draw_log_theta(program.row_start, alpha, generator, points[k])
        log_likelihoods[k] = expect_into(program, points[k], expected, scratch, stop)
        if stop[0] != 0:  # the last likelihood may have been cut short
            return k
    return count
