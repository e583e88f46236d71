"""One chain in parameter space in one call, from the prior to the posterior, with its importance weight.

f_τ(θ) = p(θ) p(y|θ)^τ over the active positions (beal-ghahramani-2006, eq. 63), moved by Metropolis-Hastings steps.
The proposal is a Dirichlet around the current point, θ'_jl ~ Dir(a θ_jl + ε) in each table row. ε keeps the shapes away
from 0, and forward and reverse density have it alike, so detailed balance is exact. A *block* of table rows is proposed
and accepted or rejected together: all of them (one joint step, algorithm 3.1), or one family after the other.

Points are held as ln θ, which stays finite where θ underflows.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from lurking.kernels.cpu.enumeration import expect_into
from lurking.kernels.cpu.sampling import draw_log_theta
from lurking.kernels.program import Program
from lurking.types import FloatArray, IntArray


@njit(cache=True, nogil=True, error_model="numpy")
def log_balance(
    pseudo: FloatArray, positions: tuple[int, int], width: tuple[float, float], here: FloatArray, there: FloatArray
) -> float:
    """Return ln [p(θ') q(θ|θ') / (p(θ) q(θ'|θ))], prior and Hastings correction of a move of some positions.

    `positions` = (first, end) of whole table rows, `width` = (a, ε), `here` = ln θ, `there` = ln θ'. With shapes
    α = a θ + ε and α' = a θ' + ε it is

        Σ_q [ln Γ(α_q) − ln Γ(α'_q) + (λ_q − α_q) ln θ'_q − (λ_q − α'_q) ln θ_q] :

    ln Γ(Σ_k α) is the same on both sides, as rows sum to 1, and the −1 of the exponents cancel, which keeps digits
    where ln θ is very negative.
    """
    strength, floor = width
    result = 0.0
    for q in range(positions[0], positions[1]):
        forward = strength * math.exp(here[q]) + floor
        reverse = strength * math.exp(there[q]) + floor
        result += math.lgamma(forward) - math.lgamma(reverse)
        result += (pseudo[q] - forward) * there[q] - (pseudo[q] - reverse) * here[q]
    return result


@njit(cache=True, nogil=True, error_model="numpy")
def _sweep(
    program: Program,
    pseudo: FloatArray,
    blocks: IntArray,
    setting: tuple[float, float, float],
    generator: np.random.Generator,
    stop: IntArray,
    point: tuple[FloatArray, float],
    spare: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
) -> tuple[float, int]:
    """Propose every block once at `setting` = (τ, a, ε); return ln p(y|θ) of the new point and the number accepted.

    `point` = (ln θ, which is overwritten, its ln p(y|θ)). `spare` = two arrays of Q entries and two of `n_cells`: the
    proposal; first its shapes, then the counts that come with the likelihood; scratch of the likelihood. Once
    `stop[0]` is set the rest is left out, and what is returned means nothing.
    """
    temperature, strength, floor = setting
    log_theta, current = point
    proposal, shape, table, accumulated = spare
    accepted = 0
    for block in range(blocks.shape[0] - 1):
        rows = program.row_start[blocks[block] : blocks[block + 1] + 1]
        first, end = rows[0], rows[-1]
        for q in range(log_theta.shape[0]):
            proposal[q] = log_theta[q]
        for q in range(first, end):
            shape[q] = strength * math.exp(log_theta[q]) + floor
        draw_log_theta(rows, shape, generator, proposal)
        proposed = expect_into(program, proposal, shape, (table, accumulated), stop)
        if stop[0] != 0:
            break
        ratio = log_balance(pseudo, (first, end), (strength, floor), log_theta, proposal)
        if temperature > 0.0:  # 0 · (−∞) would refuse what the prior allows
            ratio += temperature * (proposed - current)
        if math.log(1.0 - generator.random()) < ratio:
            for q in range(first, end):
                log_theta[q] = proposal[q]
            current = proposed
            accepted += 1
    return current, accepted


@njit(cache=True, nogil=True, error_model="numpy")
def anneal_parameters_into(
    program: Program,
    pseudo: FloatArray,
    blocks: IntArray,
    schedule: tuple[FloatArray, FloatArray, float],
    n_sweeps: int,
    generator: np.random.Generator,
    stop: IntArray,
    log_theta: FloatArray,
    out: tuple[FloatArray, FloatArray, IntArray],
) -> tuple[bool, float]:
    """Anneal ln θ in place from τ_0 to τ_K.

    Returns (whether the end was reached before `stop[0]` was set, Σ_k (τ_k − τ_{k−1}) ln p(y|θ_{k−1}) over the active
    positions). What is left of a chain that was stopped means nothing.

    θ_0 is `log_theta` (Q,) as given, and θ_k comes from θ_{k−1} by `n_sweeps` sweeps that leave f at τ_k as it is. That
    is algorithm 3.1 of beal-ghahramani-2006 without its steps at τ_0, which a draw of the prior does not need, and with
    as many at τ_K instead. (67) is mended: a point that is weighed by f_{k+1} / f_k was moved by steps that leave f_k
    as it is, not f_{k+1}.

    `blocks` (B + 1,) are ranges of table rows; `schedule` = (τ (K + 1,), strength a at each of τ_1 … τ_K (K,), ε).
    `out` = (increments (K,), ln p(y|θ_k) for k = 1 … K, proposals and acceptances by quarter of the steps (2, 4)).
    """
    temperatures, strengths, floor = schedule
    increments, log_likelihoods, tally = out
    steps, size, cells = strengths.shape[0], log_theta.shape[0], program.joined.n_cells
    spare = (np.empty(size), np.empty(size), np.empty(cells), np.empty(cells))
    for quarter in range(4):
        tally[0, quarter] = 0
        tally[1, quarter] = 0
    current = expect_into(program, log_theta, spare[1], (spare[2], spare[3]), stop)
    result = 0.0
    for k in range(steps):
        increments[k] = (temperatures[k + 1] - temperatures[k]) * current
        result += increments[k]
        setting = (temperatures[k + 1], strengths[k], floor)
        for _ in range(n_sweeps):
            current, accepted = _sweep(program, pseudo, blocks, setting, generator, stop, (log_theta, current), spare)
            if stop[0] != 0:
                return False, result
            tally[0, 4 * k // steps] += blocks.shape[0] - 1
            tally[1, 4 * k // steps] += accepted
        log_likelihoods[k] = current
    return True, result
