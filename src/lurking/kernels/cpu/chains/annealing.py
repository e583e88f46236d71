"""A population of annealed chains in one call, from a product start to the posterior, with importance weights.

f_τ(θ, s) = [Dir(θ; α₀) q₀(s)]^{1−τ} [p(θ) p(s, y|θ)]^τ with q₀(s_i) ∝ exp Σ_j φ₀_j. Both conditionals stay conjugate:
θ_jl | s ~ Dir((1−τ) α₀ + τ (λ + N(s))), and s | θ has the potentials (1−τ) φ₀ + τ ln θ. The weight is taken with θ
integrated out,

    ln f_τ(s) = (1−τ) ln q₀(s) + Σ_jl [ln B((1−τ) α₀ + τ (λ + N)) − (1−τ) ln B(α₀) − τ ln B(λ)],

so a temperature costs one pass over the rows.

The chain can also be run backwards, from the posterior down to the product start (`reverse_into`). The forward chain
draws s_0 ~ q₀ and s_k from s_{k−1} by a move T_k at τ_k, k = 1 … K − 1, and weighs with θ integrated out:
w = Π_{k=0}^{K−1} f_{τ_{k+1}}(s_k) / f_{τ_k}(s_k). T_k draws θ | s, then s | θ; as a kernel over s alone it is
reversible with respect to f_{τ_k}(s), like every data augmentation chain. Hence

    f_{τ_K}(s_{K−1}) Π_{k=K−1}^{1} T_k(s_{k−1} | s_k) = w · q₀(s_0) Π_{k=1}^{K−1} T_k(s_k | s_{k−1}),

and the left side, divided by p(y), is the law of the chain that takes s_{K−1} from the posterior itself and then moves
at τ_{K−1}, …, τ_1. Under it the mean of 1/w is 1/p(y), so the mean of ln w lies above ln p(y) (Grosse, Ghahramani &
Adams 2015, bidirectional Monte Carlo).
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from lurking.kernels.cpu.sampling import draw_into, draw_log_theta
from lurking.kernels.program import Program
from lurking.types import FloatArray, IntArray


@njit(cache=True, nogil=True, error_model="numpy")
def log_density(
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
def _resample(log_weights: FloatArray, generator: np.random.Generator, ancestors: IntArray) -> float:
    """Write the ancestor of every particle by systematic resampling; return ln of the mean weight."""
    count = log_weights.shape[0]
    top = log_weights.max()
    total = 0.0
    for i in range(count):
        total += math.exp(log_weights[i] - top)
    offset, cumulated, place = float(generator.random()), 0.0, 0
    for i in range(count):
        cumulated += math.exp(log_weights[i] - top) / total * count
        while place < count and offset + place < cumulated:
            ancestors[place] = i
            place += 1
    while place < count:  # rounding
        ancestors[place] = ancestors[place - 1]
        place += 1
    return float(top + math.log(total / count))


@njit(cache=True, nogil=True, error_model="numpy")
def _effective_share(log_weights: FloatArray) -> float:
    """Return (Σ w)² / (N Σ w²), between 1/N and 1."""
    top = log_weights.max()
    total, squares = 0.0, 0.0
    for i in range(log_weights.shape[0]):
        weight = math.exp(log_weights[i] - top)
        total += weight
        squares += weight * weight
    return float(total * total / (squares * log_weights.shape[0]))


@njit(cache=True, nogil=True, error_model="numpy")
def _follow(ancestors: IntArray, counts: FloatArray, lineage: IntArray) -> None:
    """Replace every particle and its first ancestor by those of its ancestor."""
    old_counts, old_lineage = counts.copy(), lineage.copy()
    for i in range(ancestors.shape[0]):
        lineage[i] = old_lineage[ancestors[i]]
        for q in range(counts.shape[1]):
            counts[i, q] = old_counts[ancestors[i], q]


@njit(cache=True, nogil=True, error_model="numpy")
def move(
    program: Program,
    pseudo: FloatArray,
    start: tuple[FloatArray, FloatArray],
    temperature: float,
    is_last: bool,
    generator: np.random.Generator,
    state: tuple[FloatArray, FloatArray],
    scratch: tuple[FloatArray, FloatArray],
) -> None:
    """Draw θ | s and, unless this is the end, s | θ at one temperature; `state` = (ln θ, counts) is overwritten."""
    log_theta, counts = state
    size = pseudo.shape[0]
    shape = np.empty(size)
    for q in range(size):
        shape[q] = (1.0 - temperature) * start[0][q] + temperature * (pseudo[q] + counts[q])
    draw_log_theta(program.row_start, shape, generator, log_theta)
    if is_last:
        return
    for q in range(size):
        shape[q] = temperature * log_theta[q]
        if temperature < 1.0:
            shape[q] += (1.0 - temperature) * start[1][q]
    draw_into(program, shape, counts, scratch, generator, False)


@njit(cache=True, nogil=True, error_model="numpy")
def anneal_into(
    program: Program,
    pseudo: FloatArray,
    start: tuple[FloatArray, FloatArray],
    temperatures: FloatArray,
    threshold: float,
    generator: np.random.Generator,
    stop: IntArray,
    means: FloatArray,
    squares: FloatArray,
    out: tuple[FloatArray, FloatArray, FloatArray, IntArray],
) -> tuple[bool, float, int]:
    """Anneal a population of N particles from τ_0 = 0 to τ_K = 1.

    A particle's weight grows by f_{τ_{k+1}}(s_k) / f_{τ_k}(s_k), normalisers left out. When the effective share of the
    weights falls below `threshold` the particles are resampled and their weights begin anew; 0 never resamples, and
    the particles are independent chains. `start` = (α₀, φ₀) over the active positions.

    `means`, `squares` (K,) receive weighted means of each step's ln increments and of their squares. `out` = (ln
    weights (N,), ln θ (N, Q), counts (N, Q), first ancestors (N,)) of the end: counts of the last completion and θ
    drawn given them. Returns (whether the end was reached before `stop[0]` was set, ln of the product of the mean
    weights at which the population was resampled, number of resamplings).
    """
    log_weights, log_theta, counts, lineage = out
    row_start, particles = program.row_start, log_weights.shape[0]
    scratch = (np.empty(program.joined.n_cells), np.empty(program.joined.n_cells))
    ancestors = np.empty(particles, np.int64)
    for i in range(particles):
        if stop[0] != 0:
            return False, 0.0, 0
        draw_into(program, start[1], counts[i], scratch, generator, False)
        log_weights[i] = 0.0
        lineage[i] = i
    steps = temperatures.shape[0] - 1
    log_resampled, n_resamplings = 0.0, 0
    for k in range(steps):
        if stop[0] != 0:
            return False, log_resampled, n_resamplings
        here, following = temperatures[k], temperatures[k + 1]
        top = log_weights.max()
        total, means[k], squares[k] = 0.0, 0.0, 0.0
        for i in range(particles):
            weight = math.exp(log_weights[i] - top)
            increment = log_density(row_start, following, pseudo, start, counts[i])
            increment -= log_density(row_start, here, pseudo, start, counts[i])
            log_weights[i] += increment
            total += weight
            means[k] += weight * increment
            squares[k] += weight * increment * increment
        means[k] /= total
        squares[k] /= total
        if k < steps - 1 and _effective_share(log_weights) < threshold:
            log_resampled += _resample(log_weights, generator, ancestors)
            _follow(ancestors, counts, lineage)
            log_weights[:] = 0.0
            n_resamplings += 1
        for i in range(particles):
            if stop[0] != 0:
                return False, log_resampled, n_resamplings
            state = (log_theta[i], counts[i])
            move(program, pseudo, start, following, k == steps - 1, generator, state, scratch)
    return True, log_resampled, n_resamplings


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
