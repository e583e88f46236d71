"""One annealed chain in one call, from a product start to the posterior, with its importance weight.

f_τ(θ, s) = [Dir(θ; α₀) q₀(s)]^{1−τ} [p(θ) p(s, y|θ)]^τ with q₀(s_i) ∝ exp Σ_j φ₀_j. Both conditionals stay conjugate:
θ_jl | s ~ Dir((1−τ) α₀ + τ (λ + N(s))), and s | θ has the potentials (1−τ) φ₀ + τ ln θ. The weight is taken with θ
integrated out,

    ln f_τ(s) = (1−τ) ln q₀(s) + Σ_jl [ln B((1−τ) α₀ + τ (λ + N)) − (1−τ) ln B(α₀) − τ ln B(λ)],

so a temperature costs one pass over the rows.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from lurking.kernels.cpu.sampling import draw_into, draw_log_theta
from lurking.kernels.program import Program
from lurking.types import FloatArray, IntArray


@njit(cache=True, nogil=True, error_model="numpy")
def _log_density(
    row_start: IntArray,
    temperature: float,
    pseudo: FloatArray,
    start: tuple[FloatArray, FloatArray],
    counts: FloatArray,
) -> float:
    """Return ln f_τ(s) without the normalisers of start and prior, which do not depend on s."""
    alpha, potentials = start
    result = 0.0
    for row in range(row_start.shape[0] - 1):
        total = 0.0
        for q in range(row_start[row], row_start[row + 1]):
            shape = (1.0 - temperature) * alpha[q] + temperature * (pseudo[q] + counts[q])
            total += shape
            result += math.lgamma(shape) + (1.0 - temperature) * counts[q] * potentials[q]
        result -= math.lgamma(total)
    return result


@njit(cache=True, nogil=True, error_model="numpy")
def anneal_into(
    program: Program,
    pseudo: FloatArray,
    start: tuple[FloatArray, FloatArray],
    temperatures: FloatArray,
    generator: np.random.Generator,
    increments: FloatArray,
    out: tuple[FloatArray, FloatArray],
) -> float:
    """Anneal from τ_0 = 0 to τ_K = 1; return Σ of the increments ln f_{τ_{k+1}}(s_k) − ln f_{τ_k}(s_k), constants out.

    `start` = (α₀, φ₀) over the active positions. `increments` (K,) receives each increment; `out` = (ln θ, counts) of
    the end: counts of the last completion s_{K−1}, and θ drawn from its posterior given them.
    """
    size, row_start = pseudo.shape[0], program.row_start
    log_theta, counts = out
    scratch = (np.empty(program.joined.n_cells), np.empty(program.joined.n_cells))
    shape, potentials = np.empty(size), np.empty(size)
    draw_into(program, start[1], counts, scratch, generator)
    steps = temperatures.shape[0] - 1
    result = 0.0
    for k in range(steps):
        here, following = temperatures[k], temperatures[k + 1]
        increments[k] = _log_density(row_start, following, pseudo, start, counts)
        increments[k] -= _log_density(row_start, here, pseudo, start, counts)
        result += increments[k]
        for q in range(size):
            shape[q] = (1.0 - following) * start[0][q] + following * (pseudo[q] + counts[q])
        draw_log_theta(row_start, shape, generator, log_theta)
        if k < steps - 1:
            for q in range(size):
                potentials[q] = following * log_theta[q]
                if following < 1.0:
                    potentials[q] += (1.0 - following) * start[1][q]
            draw_into(program, potentials, counts, scratch, generator)
    return result
