"""Log-likelihoods of many points in one call, and points drawn from a product of Dirichlet distributions."""

from __future__ import annotations

import numpy as np
from numba import njit

from lurking.kernels.cpu.enumeration import expect_into
from lurking.kernels.cpu.sampling import draw_log_theta
from lurking.kernels.program import Program
from lurking.types import FloatArray, IntArray


@njit(cache=True, nogil=True, error_model="numpy")
def log_z_into(program: Program, points: FloatArray, stop: IntArray, log_z: FloatArray) -> int:
    """Write log_z(φ) of each of the points (m, Q) to `log_z` (m,); return how many are done before `stop[0]` is set."""
    counts = np.empty(points.shape[1])
    scratch = (np.empty(program.joined.n_cells), np.empty(program.joined.n_cells))
    for k in range(len(points)):
        log_z[k] = expect_into(program, points[k], counts, scratch, stop)
        if stop[0] != 0:  # the last one may have been cut short
            return k
    return len(points)


def log_z_of_points(program: Program, points: FloatArray) -> FloatArray:
    """Return log_z of the active potentials at each of the points (m, Q), (m,)."""
    log_z = np.empty(len(points))
    log_z_into(program, np.ascontiguousarray(points), np.zeros(1, np.int64), log_z)
    return log_z


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
    for k in range(len(points)):
        draw_log_theta(program.row_start, alpha, generator, points[k])
    return log_z_into(program, points, stop, log_likelihoods)
