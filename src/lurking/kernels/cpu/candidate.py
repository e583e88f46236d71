"""Gibbs sweeps that keep the counts of their completions, for densities averaged over sweeps."""

from __future__ import annotations

import numpy as np
from numba import njit

from lurking.kernels.cpu.sampling import draw_into, draw_log_theta
from lurking.kernels.program import Program
from lurking.types import FloatArray, IntArray


@njit(cache=True, nogil=True, error_model="numpy")
def counts_into(
    program: Program,
    pseudo: FloatArray,
    log_theta: FloatArray,
    burn_in: int,
    generator: np.random.Generator,
    stop: IntArray,
    counts: FloatArray,
) -> int:
    """Sweep s | θ, y, then θ_jl | s ~ Dir(λ + N(s)), from `log_theta` (Q,), which is overwritten.

    After `burn_in` sweeps every sweep writes N(s) to the next row of `counts` (kept, Q). Returns how many rows were
    written before `stop[0]` was set.
    """
    kept, size = len(counts), counts.shape[1]
    first = np.empty(size)
    shape = np.empty(size)
    scratch = (np.empty(program.joined.n_cells), np.empty(program.joined.n_cells))
    for sweep in range(burn_in + kept):
        if stop[0] != 0:
            return max(sweep - burn_in, 0)
        drawn = counts[sweep - burn_in] if sweep >= burn_in else first
        draw_into(program, log_theta, drawn, scratch, generator, False)
        for q in range(size):
            shape[q] = pseudo[q] + drawn[q]
        draw_log_theta(program.row_start, shape, generator, log_theta)
    return kept
