"""The exact E-step over a compiled `Program`: joint state innermost and contiguous, no logarithm per state.

Potentials are exponentiated once per call and rows are products of them. All factors are at most 1 on this path, so
a state that underflows is negligible against a row total above `TINY`; rows below it, and every row when some
potential is positive, are redone in the log domain.

Compiled functions write into arrays they are given and return numbers only: wrapping an array runs Python code, and an
interrupt pending at that moment would be raised inside the compiled wrapper, which cannot bear it.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from lurking.kernels.cpu.vector import WIDTH, add_at, exponent, mantissa, plus, put, quad_at, scaled, times_at
from lurking.kernels.program import Program
from lurking.types import FloatArray, IntArray

TINY = 1e-250
LARGE = 1e300  # twice as much is still a number: rows of weight 1 share the logarithm of their mantissas' product
LOG_TWO = math.log(2.0)
CHUNK = 1 << 24  # cells (rows × factors × joint states) between two looks at the stop flag, some ten milliseconds


@njit(cache=True, nogil=True, error_model="numpy")
def group_rows(program: Program, group: int) -> tuple[IntArray, NDArray[np.uint32], FloatArray]:
    """Return a group's fixed cells (first of each factor), slots (rows, factors or joint factors), weights (rows,)."""
    begin, end = program.row_begin[group], program.row_begin[group + 1]
    fixed = np.empty(program.n_fixed[group], np.int64)
    for h in range(fixed.shape[0]):
        fixed[h] = program.fixed_start[group] + h * program.states[group]
    width = program.joined.width[group]
    if width == 0:
        width = program.n_factors[group]
    first = program.slot_start[group]
    slots = program.slots[first : first + (end - begin) * width].reshape((end - begin, width))
    return fixed, slots, program.weights[begin:end]


@njit(cache=True, nogil=True, error_model="numpy")
def cells_of_row(program: Program, group: int, slots: NDArray[np.uint32], cells: IntArray) -> None:
    """Write the first plain cell of each factor of one row to `cells` (factors,), taking joint factors apart."""
    joined = program.joined
    if joined.width[group] == 0:
        for f in range(slots.shape[0]):
            cells[f] = slots[f]
        return
    f = 0
    for slot in slots:
        offset = (np.int64(slot) - joined.cell_start[group]) // program.states[group]
        row = joined.row_begin[group] + offset
        for k in range(joined.part_begin[row], joined.part_begin[row + 1]):
            cells[f] = joined.parts[k]
            f += 1


@njit(cache=True, nogil=True, error_model="numpy")
def multiply_out(program: Program, table: FloatArray, accumulated: FloatArray) -> None:
    """Fill the joint cells of `table` with the products of their parts, and those of `accumulated` with 0."""
    joined = program.joined
    for group in range(program.states.shape[0]):
        states = program.states[group]
        for row in range(joined.row_begin[group], joined.row_begin[group + 1]):
            cell = joined.cell_start[group] + (row - joined.row_begin[group]) * states
            for s in range(cell, cell + states):
                table[s] = 1.0
                accumulated[s] = 0.0
            for k in range(joined.part_begin[row], joined.part_begin[row + 1]):
                part = np.int64(joined.parts[k])
                for s in range(states):
                    table[cell + s] *= table[part + s]


@njit(cache=True, nogil=True, error_model="numpy")
def hand_down(program: Program, accumulated: FloatArray) -> None:
    """Add what the joint cells received to each of their parts."""
    joined = program.joined
    for group in range(program.states.shape[0]):
        states = program.states[group]
        for row in range(joined.row_begin[group], joined.row_begin[group + 1]):
            cell = joined.cell_start[group] + (row - joined.row_begin[group]) * states
            received = 0.0
            for s in range(cell, cell + states):
                received += accumulated[s]
            if received == 0.0:
                continue
            for k in range(joined.part_begin[row], joined.part_begin[row + 1]):
                part = np.int64(joined.parts[k])
                for s in range(states):
                    accumulated[part + s] += accumulated[cell + s]


@njit(cache=True, nogil=True, error_model="numpy")
def row_in_logs(
    gather: NDArray[np.int32],
    potentials: FloatArray,
    fixed: IntArray,
    cells: IntArray,
    mass: FloatArray,
) -> float:
    """Fill `mass` with the normalised joint states of one row in the log domain; return its ln z (−inf allowed)."""
    top = -np.inf
    for s in range(mass.shape[0]):
        score = 0.0
        for first in fixed:
            score += potentials[gather[first + s]]
        for cell in cells:
            q = gather[cell + s]
            if q < potentials.shape[0]:
                score += potentials[q]
        mass[s] = score
        top = max(top, score)
    if top == -np.inf:
        for s in range(mass.shape[0]):
            mass[s] = 0.0
        return -np.inf
    total = 0.0
    for s in range(mass.shape[0]):
        mass[s] = math.exp(mass[s] - top)
        total += mass[s]
    for s in range(mass.shape[0]):
        mass[s] /= total
    return top + math.log(total)


@njit(cache=True, nogil=True, error_model="numpy")
def with_row(log_z: float, product: float, twos: int, total: float, weight: float) -> tuple[float, float, int]:
    """Add `weight` · ln `total` to what log_z, a product of mantissas and a sum of exponents stand for together."""
    if weight == 1.0:
        product *= mantissa(total)
        twos += exponent(total)
        if product > LARGE:
            log_z += math.log(product)
            product = 1.0
    else:
        log_z += weight * math.log(total)
    return log_z, product, twos


@njit(cache=True, nogil=True, error_model="numpy")
def _rows_of_two(
    slots: NDArray[np.uint32],
    weights: FloatArray,
    table: FloatArray,
    accumulated: FloatArray,
    base: FloatArray,
    base_mass: FloatArray,
    late: IntArray,
) -> tuple[float, int]:
    """Two joint states, held in registers; see `_rows_of_many`."""
    factors = np.uint64(slots.shape[1])
    one = np.uint64(1)
    log_z, product, twos = 0.0, 1.0, 0
    n_late = 0
    for row in range(weights.shape[0]):
        a, b = base[0], base[1]
        for f in range(factors):
            cell = np.uint64(slots[row, f])
            a *= table[cell]
            b *= table[cell + one]
        total = a + b
        if not total > TINY:
            late[n_late] = row
            n_late += 1
            continue
        log_z, product, twos = with_row(log_z, product, twos, total, weights[row])
        scale = weights[row] / total
        a *= scale
        b *= scale
        base_mass[0] += a
        base_mass[1] += b
        for f in range(factors):
            cell = np.uint64(slots[row, f])
            accumulated[cell] += a
            accumulated[cell + one] += b
    return log_z + math.log(product) + twos * LOG_TWO, n_late


@njit(cache=True, nogil=True, error_model="numpy")
def _rows_of_four(
    slots: NDArray[np.uint32],
    weights: FloatArray,
    table: FloatArray,
    accumulated: FloatArray,
    base: FloatArray,
    base_mass: FloatArray,
    late: IntArray,
) -> tuple[float, int]:
    """Four joint states, held in one vector register; see `_rows_of_many`."""
    factors = np.uint64(slots.shape[1])
    log_z, product, twos = 0.0, 1.0, 0
    n_late = 0
    begin, received = quad_at(base, 0), quad_at(base_mass, 0)
    for row in range(weights.shape[0]):
        mass = begin
        for f in range(factors):
            mass = times_at(mass, table, np.uint64(slots[row, f]))
        total = (mass[0] + mass[1]) + (mass[2] + mass[3])
        if not total > TINY:
            late[n_late] = row
            n_late += 1
            continue
        log_z, product, twos = with_row(log_z, product, twos, total, weights[row])
        mass = scaled(mass, weights[row] / total)
        received = plus(received, mass)
        for f in range(factors):
            add_at(accumulated, np.uint64(slots[row, f]), mass)
    put(base_mass, 0, received)
    return log_z + math.log(product) + twos * LOG_TWO, n_late


@njit(cache=True, nogil=True, error_model="numpy")
def _rows_of_many(
    slots: NDArray[np.uint32],
    weights: FloatArray,
    table: FloatArray,
    accumulated: FloatArray,
    base: FloatArray,
    base_mass: FloatArray,
    late: IntArray,
) -> tuple[float, int]:
    """Add the posterior masses of a group's rows to their cells; any number of joint states, four at a time.

    `slots` (rows, factors); `base` (S,) the product of the fixed factors; `base_mass` (S,) receives the summed masses.
    Rows whose total underflows are listed in `late` instead. Returns (share of log_z, number of late rows).
    """
    states, factors = np.uint64(base.shape[0]), np.uint64(slots.shape[1])
    one, four = np.uint64(1), np.uint64(WIDTH)
    in_quads = states - states % four
    mass = np.empty(base.shape[0])
    log_z, product, twos = 0.0, 1.0, 0
    n_late = 0
    for row in range(weights.shape[0]):
        sums = (0.0, 0.0, 0.0, 0.0)
        for s in range(np.uint64(0), in_quads, four):
            quad = quad_at(base, s)
            for f in range(factors):
                quad = times_at(quad, table, np.uint64(slots[row, f]) + s)
            put(mass, s, quad)
            sums = plus(sums, quad)
        total = (sums[0] + sums[1]) + (sums[2] + sums[3])
        for s in range(in_quads, states, one):
            mass[s] = base[s]
            for f in range(factors):
                mass[s] *= table[np.uint64(slots[row, f]) + s]
            total += mass[s]
        if not total > TINY:
            late[n_late] = row
            n_late += 1
            continue
        log_z, product, twos = with_row(log_z, product, twos, total, weights[row])
        scale = weights[row] / total
        for s in range(np.uint64(0), in_quads, four):
            quad = scaled(quad_at(mass, s), scale)
            add_at(base_mass, s, quad)
            for f in range(factors):
                add_at(accumulated, np.uint64(slots[row, f]) + s, quad)
        for s in range(in_quads, states, one):
            mass[s] *= scale
            base_mass[s] += mass[s]
            for f in range(factors):
                accumulated[np.uint64(slots[row, f]) + s] += mass[s]
    return log_z + math.log(product) + twos * LOG_TWO, n_late


@njit(cache=True, nogil=True, error_model="numpy")
def _late_rows(
    program: Program, group: int, potentials: FloatArray, late: IntArray, accumulated: FloatArray, base_mass: FloatArray
) -> float:
    """Do the listed rows of a group in the log domain; return their share of log_z."""
    fixed, slots, weights = group_rows(program, group)
    cells = np.empty(program.n_factors[group], np.int64)
    mass = np.empty(base_mass.shape[0])
    log_z = 0.0
    for row in late:
        cells_of_row(program, group, slots[row], cells)
        row_log_z = row_in_logs(program.gather, potentials, fixed, cells, mass)
        if weights[row] > 0.0:
            log_z += weights[row] * row_log_z
        for s in range(mass.shape[0]):
            mass[s] *= weights[row]
            base_mass[s] += mass[s]
        for cell in cells:
            for s in range(mass.shape[0]):
                accumulated[cell + s] += mass[s]
    return log_z


@njit(cache=True, nogil=True, error_model="numpy")
def _group(
    program: Program,
    potentials: FloatArray,
    scratch: tuple[FloatArray, FloatArray],
    group: int,
    in_logs: bool,
    visited: int,
    stop: IntArray,
) -> tuple[float, int]:
    """Add one group's posterior masses to `scratch` = (table, accumulated).

    Returns (its share of log_z, cells visited in this pass, `visited` of them before this group). Rows are taken in
    chunks of about `CHUNK` cells; between two of them `stop[0]` ends the pass, and the share is nan.
    """
    table, accumulated = scratch
    states = program.states[group]
    fixed, slots, weights = group_rows(program, group)
    base = np.ones(states)
    for first in fixed:
        for s in range(states):
            base[s] *= table[first + s]
    base_mass = np.zeros(states)
    cells_each = states * (slots.shape[1] + 1)
    at_once = max(1, min(CHUNK // cells_each, weights.shape[0]))
    late = np.empty(at_once, np.int64)
    log_z, share, n_late = 0.0, 0.0, 0
    for begin in range(0, weights.shape[0], at_once):
        # The first chunk is always done: a pass over few rows is never cut short.
        if visited > CHUNK and stop[0] != 0:
            return np.nan, visited
        some, weight = slots[begin : begin + at_once], weights[begin : begin + at_once]
        if in_logs:
            n_late = weight.shape[0]
            for row in range(n_late):
                late[row] = row
        elif states == 2:
            share, n_late = _rows_of_two(some, weight, table, accumulated, base, base_mass, late)
        elif states == 4:
            share, n_late = _rows_of_four(some, weight, table, accumulated, base, base_mass, late)
        else:
            share, n_late = _rows_of_many(some, weight, table, accumulated, base, base_mass, late)
        log_z += share
        if n_late > 0:
            log_z += _late_rows(program, group, potentials, late[:n_late] + begin, accumulated, base_mass)
        visited += weight.shape[0] * cells_each
    for first in fixed:
        for s in range(states):
            accumulated[first + s] += base_mass[s]
    return log_z, visited


@njit(cache=True, nogil=True, error_model="numpy")
def expect_into(
    program: Program,
    potentials: FloatArray,
    counts: FloatArray,
    scratch: tuple[FloatArray, FloatArray],
    stop: IntArray,
) -> float:
    """Write N(φ) of the active potentials to `counts`; return log_z(φ).

    `scratch` are two arrays for all cells, joint ones included. A long pass over the rows ends early once `stop[0]` is
    set: log_z is nan then, and `counts` mean nothing.
    """
    table, accumulated = scratch
    size = potentials.shape[0]
    highest = -np.inf
    log_z = 0.0
    weights = np.empty(size + 1)
    weights[size] = 1.0
    for q in range(size):
        phi = potentials[q]
        highest = max(highest, phi)
        weights[q] = math.exp(phi)
        counts[q] = program.counts[q]
        if counts[q] != 0.0:
            log_z += counts[q] * phi
    gather = program.gather
    for cell in range(gather.shape[0]):
        table[cell] = weights[np.uint64(gather[cell])]
        accumulated[cell] = 0.0
    multiply_out(program, table, accumulated)
    visited = 0
    for group in range(program.states.shape[0]):
        share, visited = _group(program, potentials, scratch, group, highest > 0.0, visited, stop)
        log_z += share
        if math.isnan(share):
            return np.nan
    hand_down(program, accumulated)
    for cell in range(gather.shape[0]):
        if gather[cell] < size:
            counts[np.uint64(gather[cell])] += accumulated[cell]
    return log_z


def expect(program: Program, potentials: FloatArray) -> tuple[FloatArray, float]:
    """Return (N, log_z) of the active potentials: log_z = Σ_i w_i ln Σ_s exp Σ_j φ_j, N its gradient, (Q,)."""
    counts, cells = np.empty(potentials.shape[0]), program.joined.n_cells
    scratch, never = (np.empty(cells), np.empty(cells)), np.zeros(1, np.int64)
    log_z = expect_into(program, np.ascontiguousarray(potentials), counts, scratch, never)
    return counts, float(log_z)


@njit(cache=True, nogil=True, error_model="numpy")
def posterior_into(program: Program, potentials: FloatArray, group: int, masses: FloatArray, log_z: FloatArray) -> None:
    """Write the posterior over joint states (rows, S) of one group and ln z of each of its rows (log domain)."""
    fixed, slots, _ = group_rows(program, group)
    cells = np.empty(program.n_factors[group], np.int64)
    for row in range(log_z.shape[0]):
        cells_of_row(program, group, slots[row], cells)
        log_z[row] = row_in_logs(program.gather, potentials, fixed, cells, masses[row])


def posterior_of_group(program: Program, potentials: FloatArray, group: int) -> tuple[FloatArray, FloatArray]:
    """Return the posterior over joint states (rows, S) of one group and ln z of each of its rows."""
    rows = int(program.row_begin[group + 1] - program.row_begin[group])
    masses, log_z = np.empty((rows, int(program.states[group]))), np.empty(rows)
    posterior_into(program, np.ascontiguousarray(potentials), group, masses, log_z)
    return masses, log_z
