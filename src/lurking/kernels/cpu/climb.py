"""The whole EM or VBEM climb of one start: no Python between iterations, no GIL; called by the batch of climbs.

The twin of `lurking.learn.python_loop.climb_in_python`, which drives any engine and is the reference for this one.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from lurking.kernels.cpu.enumeration import expect_into
from lurking.kernels.cpu.special import log_gamma_digamma, log_rising
from lurking.kernels.program import (
    FIRST_STEP_LIMIT,
    LEAST_JUMP,
    STEP_LIMIT_FACTOR,
    Program,
)
from lurking.types import FloatArray, IntArray

ML, MAP_PROBABILITY, MAP, VB = 0, 1, 2, 3
GO_ON, CONVERGED, MAX_ITER, INTERRUPTED, IMPOSSIBLE = -1, 0, 1, 2, 3
FIRST, PLAIN, JUMP = 0, 1, 2


@njit(cache=True, nogil=True, error_model="numpy")
def _expected_logs(row_start: IntArray, alpha: FloatArray, potentials: FloatArray) -> None:
    """Write E[ln θ] = ψ(α_k) − ψ(Σ α) under Dir(α) of every row to `potentials`."""
    for row in range(row_start.shape[0] - 1):
        total = 0.0
        for q in range(row_start[row], row_start[row + 1]):
            total += alpha[q]
        digamma_total = log_gamma_digamma(total)[1]
        for q in range(row_start[row], row_start[row + 1]):
            potentials[q] = log_gamma_digamma(alpha[q])[1] - digamma_total


@njit(cache=True, nogil=True, error_model="numpy")
def _variational_step(
    row_start: IntArray,
    pseudo: FloatArray,
    log_gamma_pseudo: FloatArray,
    row_pseudo: FloatArray,
    log_gamma_row: FloatArray,
    counts: FloatArray,
    following: FloatArray,
) -> float:
    """Write the VBM step's potentials to `following`; return D(λ, N), the log evidence of the expected counts."""
    evidence = 0.0
    for row in range(row_start.shape[0] - 1):
        total = 0.0
        for q in range(row_start[row], row_start[row + 1]):
            total += counts[q]
        log_gamma, digamma_total = log_gamma_digamma(row_pseudo[row] + total)
        evidence -= log_rising(row_pseudo[row], log_gamma_row[row], total, log_gamma)
        for q in range(row_start[row], row_start[row + 1]):
            log_gamma, digamma = log_gamma_digamma(pseudo[q] + counts[q])
            evidence += log_rising(pseudo[q], log_gamma_pseudo[q], counts[q], log_gamma)
            following[q] = digamma - digamma_total
    return evidence


@njit(cache=True, nogil=True, error_model="numpy")
def _point_step(
    row_start: IntArray, prior_counts: FloatArray, counts: FloatArray, potentials: FloatArray, following: FloatArray
) -> None:
    """Write ln θ of the M step, θ ∝ N + prior counts, to `following`; a row without any count keeps its value."""
    for row in range(row_start.shape[0] - 1):
        total = 0.0
        for q in range(row_start[row], row_start[row + 1]):
            total += counts[q] + prior_counts[q]
        for q in range(row_start[row], row_start[row + 1]):
            if total > 0.0:
                following[q] = math.log((counts[q] + prior_counts[q]) / total)
            else:
                following[q] = potentials[q]


@njit(cache=True, nogil=True, error_model="numpy")
def _evaluate(
    program: Program,
    rule: int,
    prior: tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray],
    point: tuple[FloatArray, FloatArray, FloatArray],
    scratch: FloatArray,
    stop: IntArray,
) -> tuple[float, float]:
    """One E step and one M step at `point` = (potentials, counts, next potentials), of which the last two are written.

    Returns (objective without its constant, log_z); log_z is nan when `stop` cut the E step short.
    """
    potentials, counts, following = point
    pseudo, log_gamma_pseudo, row_pseudo, log_gamma_row, prior_counts = prior
    log_z = expect_into(program, potentials, counts, (scratch[0], scratch[1]), stop)
    objective = log_z
    if rule == VB:
        objective += _variational_step(
            program.row_start, pseudo, log_gamma_pseudo, row_pseudo, log_gamma_row, counts, following
        )
        for q in range(counts.shape[0]):
            if counts[q] != 0.0:
                objective -= counts[q] * potentials[q]
    else:
        _point_step(program.row_start, prior_counts, counts, potentials, following)
        for q in range(counts.shape[0]):
            if prior_counts[q] != 0.0:
                objective += prior_counts[q] * potentials[q]
    return objective, log_z


@njit(cache=True, nogil=True, error_model="numpy")
def _copy(source: FloatArray, target: FloatArray) -> None:
    """Copy element by element: a slice assignment costs far more to compile."""
    for q in range(source.shape[0]):
        target[q] = source[q]


@njit(cache=True, nogil=True, error_model="numpy")
def _coordinates(rule: int, pseudo: FloatArray, counts: FloatArray, following: FloatArray, out: FloatArray) -> None:
    """Write the coordinates in which the next point is extrapolated: ln α for VB, ln θ for EM."""
    for q in range(out.shape[0]):
        out[q] = math.log(pseudo[q] + counts[q]) if rule == VB else following[q]


@njit(cache=True, nogil=True, error_model="numpy")
def _step_length(x0: FloatArray, x1: FloatArray, x2: FloatArray) -> float:
    """Return ‖r‖ / ‖v‖, r = x1 − x0, v = (x2 − x1) − r (scheme S3 of Varadhan & Roland 2008); 1 when degenerate."""
    r_square = 0.0
    v_square = 0.0
    for q in range(x0.shape[0]):
        if x0[q] > -np.inf and x1[q] > -np.inf and x2[q] > -np.inf:
            r = x1[q] - x0[q]
            v = (x2[q] - x1[q]) - r
            r_square += r * r
            v_square += v * v
    if v_square <= 1e-300 or r_square <= 1e-300:
        return 1.0
    return math.sqrt(r_square / v_square)


@njit(cache=True, nogil=True, error_model="numpy")
def _extrapolate(
    rule: int,
    row_start: IntArray,
    step: float,
    points: tuple[FloatArray, FloatArray, FloatArray],
    potentials: FloatArray,
    out: FloatArray,
) -> None:
    """Write x0 + 2·step·r + step²·v to `out` and its potentials; EM points are renormalised row by row."""
    x0, x1, x2 = points
    for q in range(out.shape[0]):
        if x0[q] > -np.inf and x1[q] > -np.inf and x2[q] > -np.inf:
            r = x1[q] - x0[q]
            out[q] = x0[q] + 2.0 * step * r + step * step * ((x2[q] - x1[q]) - r)
        else:
            out[q] = x2[q]
    if rule == VB:
        for q in range(out.shape[0]):
            # An overshoot beyond e^±46 around the plain point is never accepted; the clip keeps α finite.
            out[q] = min(max(out[q], x2[q] - 46.0), x2[q] + 46.0)
            potentials[q] = math.exp(out[q])
        _expected_logs(row_start, potentials, potentials)
        return
    for row in range(row_start.shape[0] - 1):
        top = -np.inf
        for q in range(row_start[row], row_start[row + 1]):
            top = max(top, out[q])
        total = 0.0
        for q in range(row_start[row], row_start[row + 1]):
            total += math.exp(out[q] - top)
        shift = top + math.log(total)
        for q in range(row_start[row], row_start[row + 1]):
            out[q] -= shift
            potentials[q] = out[q]


@njit(cache=True, nogil=True, error_model="numpy")
def _next_limit(limit: float, accepted: bool) -> float:
    """Widen the limit of extrapolation after a success at the limit, narrow it after a failure."""
    return max(limit * STEP_LIMIT_FACTOR if accepted else limit / STEP_LIMIT_FACTOR, FIRST_STEP_LIMIT)


@njit(cache=True, nogil=True, error_model="numpy")
def _verdict(log_z: float, is_flat: bool, is_spent: bool, is_stopped: bool) -> int:
    """Return why the climb ends here, or GO_ON."""
    # A prior density of 0 at the start is left behind by the first M step; a likelihood of 0 never is.
    if not log_z > -np.inf:
        return IMPOSSIBLE
    if is_flat:
        return CONVERGED
    if is_spent:
        return MAX_ITER
    return INTERRUPTED if is_stopped else GO_ON


@njit(cache=True, nogil=True, error_model="numpy")
def _workspace(start: FloatArray, cells: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return potentials, counts and next potentials of three points, coordinates of four, and (2, cells) scratch.

    The places are the accepted point (filled with `start`), the plain step from it, and the extrapolated point.
    """
    size = start.shape[0]
    potentials, coordinates = np.empty((3, size)), np.empty((4, size))
    _copy(start, potentials[0])
    _copy(start, coordinates[0])
    return potentials, np.empty((3, size)), np.empty((3, size)), coordinates, np.empty((2, cells))


@njit(cache=True, nogil=True, error_model="numpy")
def climb_into(
    program: Program,
    rule: int,
    prior: tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray],
    start: FloatArray,
    constant: float,
    threshold: float,
    max_iter: int,
    accelerate: bool,
    stop: IntArray,
    out: tuple[FloatArray, FloatArray, FloatArray],
) -> tuple[int, int, int, float]:
    """Climb from the potentials `start` until a plain step gains less than `threshold`.

    `prior` = (λ, ln Γ(λ), row sums λ_jl, ln Γ(λ_jl), counts that the M step and the point objective add). The trace
    holds `constant` + objective: for VB at every accepted point, for EM from the first M step on. `stop[0] != 0`
    ends the climb at the next iteration, or within a long one; one that has not come to its first point has
    log_z = −∞ and a trace of −∞.

    `out` = (potentials (Q,), counts (Q,), trace (max_iter + 1,)) receives the last accepted point; returned are
    (outcome, n_iter, entries of the trace, log_z). Only numbers are returned: wrapping an array runs Python code, and
    an interrupt pending at that moment would be raised inside the compiled wrapper, which cannot bear it.
    """
    potentials, counts, following, coordinates, scratch = _workspace(start, program.joined.n_cells)
    current, trial, extra = 0, 1, 2
    allowed, trace = max_iter if rule == VB else max_iter + 1, out[2]
    trace[0] = -np.inf
    evaluations, n_trace, objective, log_z = 0, 0, -np.inf, -np.inf
    jump, jump_limit, phase, place = 1.0, FIRST_STEP_LIMIT, FIRST, current
    # One place evaluates for all phases: the kernel is compiled into the loop once.
    while True:
        here = (potentials[place], counts[place], following[place])
        value, value_log_z = _evaluate(program, rule, prior, here, scratch, stop)
        if math.isnan(value_log_z) and stop[0] != 0:
            outcome = INTERRUPTED
            break
        evaluations += 1
        accepted = phase != JUMP or value >= objective
        gain = max(value - objective, 0.0)
        jump_limit = _next_limit(jump_limit, accepted) if phase == JUMP and jump == jump_limit else jump_limit
        if accepted:
            objective, log_z = value, value_log_z
            if phase == PLAIN:
                current, trial = trial, current
            elif phase == JUMP:
                current, extra = extra, current
            # EM's trace begins after the first M step; its start is kept only if nothing follows.
            trace[n_trace] = constant + objective
            n_trace += 1 if phase != FIRST or rule == VB else 0
        outcome = _verdict(log_z, phase == PLAIN and gain < threshold, evaluations >= allowed, stop[0] != 0)
        if outcome != GO_ON:
            break
        jump = 1.0
        if accelerate:
            _coordinates(rule, prior[0], counts[current], following[current], coordinates[3])
            # The first point of a VB climb has no α, so it cannot be extrapolated from.
            if phase == PLAIN and (evaluations > 2 or rule != VB):
                jump = min(_step_length(coordinates[trial], coordinates[current], coordinates[3]), jump_limit)
        if jump > LEAST_JUMP:
            phase, place = JUMP, extra
            triple = (coordinates[trial], coordinates[current], coordinates[3])
            _extrapolate(rule, program.row_start, jump, triple, potentials[extra], coordinates[extra])
        else:
            phase, place = PLAIN, trial
            _copy(following[current], potentials[trial])
            _copy(coordinates[3], coordinates[trial])
    n_iter = evaluations if rule == VB else max(evaluations - 1, 0)
    _copy(potentials[current], out[0])
    _copy(counts[current], out[1])
    return outcome, n_iter, max(n_trace, 1), log_z
