"""Gibbs sweeps over completions and parameters, many in one call; they keep draws, or the counts of completions."""

from __future__ import annotations

import numpy as np
from numba import njit

from lurking.kernels.cpu.sampling import draw_into, draw_log_theta
from lurking.kernels.program import Program
from lurking.types import FloatArray, IntArray


@njit(cache=True, nogil=True, error_model="numpy")
def gibbs_into(
    program: Program,
    pseudo: FloatArray,
    log_theta: FloatArray,
    n_sweeps: int,
    thin: int,
    generator: np.random.Generator,
    points: FloatArray,
    log_likelihoods: FloatArray,
) -> None:
    """Sweep s | θ, y, then θ_jl | s ~ Dir(λ + N(s)), starting and ending with `log_theta` (Q,), which is overwritten.

    Every `thin`-th θ goes to `points` (kept, Q), and ln p(y|θ) of the point that each kept sweep started from, without
    inactive table rows, to `log_likelihoods` (kept,).
    """
    size = pseudo.shape[0]
    counts, shape = np.empty(size), np.empty(size)
    scratch = (np.empty(program.joined.n_cells), np.empty(program.joined.n_cells))
    for sweep in range(n_sweeps):
        log_likelihood = draw_into(program, log_theta, counts, scratch, generator, True)
        for q in range(size):
            shape[q] = pseudo[q] + counts[q]
        draw_log_theta(program.row_start, shape, generator, log_theta)
        if (sweep + 1) % thin == 0:
            kept = sweep // thin
            log_likelihoods[kept] = log_likelihood
            for q in range(size):
                points[kept, q] = log_theta[q]


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
