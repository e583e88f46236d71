"""The annealed chain of `lurking.kernels.cpu.annealing` run backwards, from the posterior down to the product start.

The forward chain draws s_0 ~ q₀ and s_k from s_{k−1} by a move T_k at τ_k, k = 1 … K − 1, and weighs with θ integrated
out: w = Π_{k=0}^{K−1} f_{τ_{k+1}}(s_k) / f_{τ_k}(s_k). T_k draws θ | s, then s | θ; as a kernel over s alone it is
reversible with respect to f_{τ_k}(s), like every data augmentation chain. Hence

    f_{τ_K}(s_{K−1}) Π_{k=K−1}^{1} T_k(s_{k−1} | s_k) = w · q₀(s_0) Π_{k=1}^{K−1} T_k(s_k | s_{k−1}),

and the left side, divided by p(y), is the law of the chain that takes s_{K−1} from the posterior itself and then moves
at τ_{K−1}, …, τ_1. Under it the mean of 1/w is 1/p(y), so the mean of ln w lies above ln p(y) (Grosse, Ghahramani &
Adams 2015, bidirectional Monte Carlo).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from lurking.kernels.cpu.annealing import log_density, move
from lurking.kernels.cpu.sampling import draw_into
from lurking.kernels.program import Program
from lurking.types import FloatArray, IntArray


@njit(cache=True, nogil=True, error_model="numpy")
def reverse_into(
    program: Program,
    pseudo: FloatArray,
    start: tuple[FloatArray, FloatArray],
    temperatures: FloatArray,
    log_theta: FloatArray,
    generator: np.random.Generator,
    stop: IntArray,
) -> tuple[bool, float]:
    """Go from a posterior draw ln θ (Q,), which is overwritten, down all temperatures to the start (α₀, φ₀).

    s_{K−1} is drawn given θ and the data. Returns (whether the start was reached before `stop[0]` was set, ln w without
    the normalisers of start and prior).
    """
    row_start, size = program.row_start, pseudo.shape[0]
    counts = np.empty(size)
    scratch = (np.empty(program.joined.n_cells), np.empty(program.joined.n_cells))
    draw_into(program, log_theta, counts, scratch, generator, False)
    log_weight = 0.0
    for k in range(temperatures.shape[0] - 2, -1, -1):
        if stop[0] != 0:
            return False, log_weight
        here, following = temperatures[k], temperatures[k + 1]
        log_weight += log_density(row_start, following, pseudo, start, counts)
        log_weight -= log_density(row_start, here, pseudo, start, counts)
        if k > 0:
            move(program, pseudo, start, here, False, generator, (log_theta, counts), scratch)
    return True, log_weight
