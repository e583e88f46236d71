"""The exact E-step over a compiled `Program`: joint state innermost and contiguous, no logarithm per state.

Potentials are exponentiated once per call and rows are products of them. All factors are at most 1 on this path, so
a state that underflows is negligible against a row total above `TINY`; rows below it, and every row when some
potential is positive, are redone in the log domain.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from lurking.kernels.program import Program
from lurking.types import FloatArray

TINY = 1e-250


@njit(cache=True, nogil=True, error_model="numpy")
def _row_in_logs(program: Program, potentials: FloatArray, group: int, slot: int, mass: FloatArray) -> float:
    """Fill `mass` with the normalised joint states of one row in the log domain; return its ln z (−inf allowed)."""
    states = program.states[group]
    top = -np.inf
    for s in range(states):
        score = 0.0
        for h in range(program.n_fixed[group]):
            score += potentials[program.gather[program.fixed_start[group] + h * states + s]]
        for f in range(program.n_factors[group]):
            score += potentials[program.gather[program.slots[slot + f] + s]]
        mass[s] = score
        top = max(top, score)
    if top == -np.inf:
        for s in range(states):
            mass[s] = 0.0
        return -np.inf
    total = 0.0
    for s in range(states):
        mass[s] = math.exp(mass[s] - top)
        total += mass[s]
    for s in range(states):
        mass[s] /= total
    return top + math.log(total)


@njit(cache=True, nogil=True, error_model="numpy")
def _group(
    program: Program,
    potentials: FloatArray,
    table: FloatArray,
    accumulated: FloatArray,
    group: int,
    in_logs: bool,
) -> float:
    """Add one group's posterior masses to `accumulated`; return its share of log_z."""
    states = np.uint64(program.states[group])
    n_factors = program.n_factors[group]
    fixed = np.uint64(program.fixed_start[group])
    n_fixed = program.n_fixed[group]
    base = np.ones(program.states[group])
    for h in range(n_fixed):
        first = fixed + np.uint64(h) * states
        for s in range(states):
            base[s] *= table[first + s]
    mass = np.empty(program.states[group])
    base_mass = np.zeros(program.states[group])
    slots = program.slots
    slot = program.slot_start[group]
    log_z = 0.0
    for row in range(program.row_begin[group], program.row_begin[group + 1]):
        weight = program.weights[row]
        total = 0.0
        for s in range(states):
            mass[s] = base[s]
        for f in range(n_factors):
            cell = np.uint64(slots[slot + f])
            for s in range(states):
                mass[s] *= table[cell + s]
        for s in range(states):
            total += mass[s]
        if in_logs or not total > TINY:
            row_log_z = _row_in_logs(program, potentials, group, slot, mass)
            if weight > 0.0:
                log_z += weight * row_log_z
            scale = weight
        else:
            log_z += weight * math.log(total)
            scale = weight / total
        for s in range(states):
            mass[s] *= scale
            base_mass[s] += mass[s]
        for f in range(n_factors):
            cell = np.uint64(slots[slot + f])
            for s in range(states):
                accumulated[cell + s] += mass[s]
        slot += n_factors
    for h in range(n_fixed):
        first = fixed + np.uint64(h) * states
        for s in range(states):
            accumulated[first + s] += base_mass[s]
    return log_z


@njit(cache=True, nogil=True, error_model="numpy")
def expect_into(
    program: Program, potentials: FloatArray, counts: FloatArray, table: FloatArray, accumulated: FloatArray
) -> float:
    """Write N(φ) of the active potentials to `counts`; return log_z(φ). `table`, `accumulated`: (cells,) scratch."""
    size = potentials.shape[0]
    in_logs = False
    log_z = 0.0
    weights = np.empty(size)
    for q in range(size):
        phi = potentials[q]
        in_logs = in_logs or phi > 0.0
        weights[q] = math.exp(phi)
        counts[q] = program.counts[q]
        if counts[q] != 0.0:
            log_z += counts[q] * phi
    gather = program.gather
    for cell in range(gather.shape[0]):
        table[cell] = weights[np.uint64(gather[cell])]
        accumulated[cell] = 0.0
    for group in range(program.states.shape[0]):
        log_z += _group(program, potentials, table, accumulated, group, in_logs)
    for cell in range(gather.shape[0]):
        counts[np.uint64(gather[cell])] += accumulated[cell]
    return log_z


@njit(cache=True, nogil=True, error_model="numpy")
def expect(program: Program, potentials: FloatArray) -> tuple[FloatArray, float]:
    """Return (N, log_z) of the active potentials (science: log_z = Σ_i w_i ln Σ_s exp Σ_j φ_j, N its gradient)."""
    counts = np.empty(potentials.shape[0])
    cells = program.gather.shape[0]
    log_z = expect_into(program, potentials, counts, np.empty(cells), np.empty(cells))
    return counts, log_z


@njit(cache=True, nogil=True, error_model="numpy")
def posterior_of_group(program: Program, potentials: FloatArray, group: int) -> tuple[FloatArray, FloatArray]:
    """Return the posterior over joint states (rows, S) of one group and ln z of each of its rows (log domain)."""
    rows = program.row_begin[group + 1] - program.row_begin[group]
    masses = np.empty((rows, program.states[group]))
    log_z = np.empty(rows)
    slot = program.slot_start[group]
    for row in range(rows):
        log_z[row] = _row_in_logs(program, potentials, group, slot, masses[row])
        slot += program.n_factors[group]
    return masses, log_z
