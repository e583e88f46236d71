"""Draws of what is unobserved, row by row, given potentials: the random twin of the E-step.

A row of weight w stands for w equal rows, whose joint states are one multinomial draw. The random state is a NumPy
Generator handed in, one per chain. Compiled functions write into arrays they are given and return numbers only.

A NumPy Generator is reached through a function pointer, which empties the registers of the loop around it. Within one
loop over the rows numbers come from a stream of SplitMix64 instead, x_k = mix(x_0 + k · γ) (Steele, Lea & Flood 2014),
which the compiler writes into the loop; x_0 is drawn from the Generator, so a chain is still known by the seed of its
Generator.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from lurking.kernels.cpu.enumeration import (
    LOG_TWO,
    TINY,
    cells_of_row,
    group_rows,
    hand_down,
    multiply_out,
    row_in_logs,
    with_row,
)
from lurking.kernels.cpu.vector import (
    WIDTH,
    add_at,
    less_next,
    plus,
    plus_reached,
    put,
    quad_at,
    sums_below,
    times_at,
)
from lurking.kernels.program import Program
from lurking.types import FloatArray, IntArray

MOST_SINGLE = 128
"""Equal rows up to which states are drawn one by one; beyond, binomial draws are faster."""
BELOW_ONE = 1.0 - 2.0**-52
"""Keeps a random number times a total below the total, so that an impossible last state is never drawn."""
_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_30, _27, _31, _11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_TO_UNIT = 2.0**-53
_HALF_WORD = 2.0**32


@njit(cache=True, nogil=True, error_model="numpy")
def new_stream(generator: np.random.Generator) -> np.uint64:
    """Return the start of a stream, all 64 bits of it drawn from the generator."""
    high = np.uint64(generator.random() * _HALF_WORD)
    low = np.uint64(generator.random() * _HALF_WORD)
    return (high << np.uint64(32)) | low


@njit(cache=True, nogil=True, error_model="numpy")
def moved_on(stream: np.uint64) -> np.uint64:
    """Return the stream moved on by one number."""
    return stream + _GAMMA


@njit(cache=True, nogil=True, error_model="numpy")
def uniform_at(stream: np.uint64) -> float:
    """Return the number in [0, 1), a multiple of 2⁻⁵³, at this place of a stream."""
    mixed = (stream ^ (stream >> _30)) * _FIRST
    mixed = (mixed ^ (mixed >> _27)) * _SECOND
    return float(np.int64((mixed ^ (mixed >> _31)) >> _11)) * _TO_UNIT


@njit(cache=True, nogil=True, error_model="numpy")
def _draw_states(
    mass: FloatArray, total: float, weight: int, generator: np.random.Generator, stream: np.uint64, drawn: FloatArray
) -> np.uint64:
    """Write one multinomial draw of `weight` states with probabilities mass / total to `drawn`; `mass` is overwritten.

    Returns the stream of random numbers where it stands then.

    Few draws are made one by one: how many lie above each cumulated mass is counted without a branch, which a processor
    could not foresee. Many draws are binomial ones, state by state.
    """
    last = mass.shape[0] - 1
    if weight <= MOST_SINGLE:
        for s in range(last):
            drawn[s] = 0.0
            mass[s + 1] += mass[s]
        top = mass[last] * BELOW_ONE
        for _ in range(weight):
            stream = moved_on(stream)
            threshold = uniform_at(stream) * top
            for s in range(last):
                drawn[s] += 1.0 if threshold >= mass[s] else 0.0
        above = float(weight)
        for s in range(last):
            following = drawn[s]
            drawn[s] = above - following
            above = following
        drawn[last] = above
        return stream
    left, rest = weight, total
    for s in range(last + 1):
        drawn[s] = 0.0
        if left > 0:
            share = mass[s] / rest if rest > 0.0 else 1.0
            taken = left if s == last or share >= 1.0 else generator.binomial(left, share)
            drawn[s] = taken
            left -= taken
            rest -= mass[s]
    # Rounding may leave some to a last state that is impossible.
    for s in range(last, 0, -1):
        if mass[s] == 0.0 and drawn[s] > 0.0:
            drawn[s - 1] += drawn[s]
            drawn[s] = 0.0
    return stream


@njit(cache=True, nogil=True, error_model="numpy")
def _draw_of_four(
    mass: tuple[float, float, float, float], weight: float, stream: np.uint64
) -> tuple[np.uint64, tuple[float, float, float, float]]:
    """Return (stream, `weight` draws of four states one by one): how many reach each sum of masses, and differences."""
    sums, reached = sums_below(mass), (0.0, 0.0, 0.0, 0.0)
    top = (sums[3] + mass[3]) * BELOW_ONE
    for _ in range(int(weight)):
        stream = moved_on(stream)
        reached = plus_reached(reached, uniform_at(stream) * top, sums)
    return stream, less_next(reached)


@njit(cache=True, nogil=True, error_model="numpy")
def _draw_rows_of_four(
    slots: NDArray[np.uint32],
    weights: FloatArray,
    table: FloatArray,
    accumulated: FloatArray,
    base: FloatArray,
    summed: FloatArray,
    late: IntArray,
    stream: np.uint64,
    wants_log_z: bool,
) -> tuple[np.uint64, float, int]:
    """Add one draw of each row to `accumulated` and `summed`, four joint states in one vector register.

    Rows that underflow or stand for very many are listed in `late` instead. Returns (stream, log_z, number of these).
    """
    factors = np.uint64(slots.shape[1])
    log_z, product, twos, n_late = 0.0, 1.0, 0, 0
    begin, received = quad_at(base, 0), quad_at(summed, 0)
    for row in range(weights.shape[0]):
        quad = begin
        for f in range(factors):
            quad = times_at(quad, table, np.uint64(slots[row, f]))
        total = (quad[0] + quad[1]) + (quad[2] + quad[3])
        if not total > TINY or weights[row] > MOST_SINGLE:
            late[n_late] = row
            n_late += 1
            continue
        if wants_log_z:
            log_z, product, twos = with_row(log_z, product, twos, total, weights[row])
        stream, quad = _draw_of_four(quad, weights[row], stream)
        received = plus(received, quad)
        for f in range(factors):
            add_at(accumulated, np.uint64(slots[row, f]), quad)
    put(summed, 0, received)
    return stream, log_z + math.log(product) + twos * LOG_TWO, n_late


@njit(cache=True, nogil=True, error_model="numpy")
def _draw_group(
    program: Program,
    group: int,
    potentials: FloatArray,
    table: FloatArray,
    accumulated: FloatArray,
    in_logs: bool,
    wants_log_z: bool,
    generator: np.random.Generator,
) -> float:
    """Add one draw of every row of a group to `accumulated`; return the group's share of log_z, if it is wanted."""
    states = program.states[group]
    fixed, slots, weights = group_rows(program, group)
    base, mass, drawn, summed = np.ones(states), np.empty(states), np.empty(states), np.zeros(states)
    cells = np.empty(program.n_factors[group], np.int64)
    rows = np.arange(weights.shape[0])
    for first in fixed:
        for s in range(states):
            base[s] *= table[first + s]
    stream = new_stream(generator)
    log_z, product, twos, left = 0.0, 1.0, 0, weights.shape[0]
    if states == WIDTH and not in_logs:
        stream, log_z, left = _draw_rows_of_four(
            slots, weights, table, accumulated, base, summed, rows, stream, wants_log_z
        )
    for row in rows[:left]:
        total = 0.0
        for s in range(states):
            mass[s] = base[s]
        for f in range(slots.shape[1]):
            cell = np.uint64(slots[row, f])
            for s in range(states):
                mass[s] *= table[cell + s]
        for s in range(states):
            total += mass[s]
        if in_logs or not total > TINY:
            cells_of_row(program, group, slots[row], cells)
            row_log_z = row_in_logs(program.gather, potentials, fixed, cells, mass)
            total = 1.0
            if row_log_z == -np.inf:
                return -np.inf
            log_z += weights[row] * row_log_z
        elif wants_log_z:
            log_z, product, twos = with_row(log_z, product, twos, total, weights[row])
        stream = _draw_states(mass, total, int(weights[row]), generator, stream, drawn)
        for s in range(states):
            summed[s] += drawn[s]
        for f in range(slots.shape[1]):
            cell = np.uint64(slots[row, f])
            for s in range(states):
                accumulated[cell + s] += drawn[s]
    for first in fixed:
        for s in range(states):
            accumulated[first + s] += summed[s]
    return log_z + math.log(product) + twos * LOG_TWO


@njit(cache=True, nogil=True, error_model="numpy")
def draw_into(
    program: Program,
    potentials: FloatArray,
    counts: FloatArray,
    scratch: tuple[FloatArray, FloatArray],
    generator: np.random.Generator,
    wants_log_z: bool,
) -> float:
    """Write the counts N(s) of one draw s ~ Π_i exp Σ_j φ_j / z_i to `counts`; return log_z = Σ_i w_i ln z_i.

    Constant counts of complete families are part of both. `scratch` = (table, accumulated), each of `n_cells`. log_z
    costs a logarithm for every repeated row: unless it is wanted, what is returned means nothing.
    """
    table, accumulated = scratch
    size = potentials.shape[0]
    highest, log_z = -np.inf, 0.0
    factors = np.empty(size + 1)
    factors[size] = 1.0
    for q in range(size):
        highest = max(highest, potentials[q])
        factors[q] = math.exp(potentials[q])
        counts[q] = program.counts[q]
        if counts[q] != 0.0:
            log_z += counts[q] * potentials[q]
    gather = program.gather
    for cell in range(gather.shape[0]):
        table[cell] = factors[gather[cell]]
        accumulated[cell] = 0.0
    multiply_out(program, table, accumulated)
    for group in range(program.states.shape[0]):
        log_z += _draw_group(program, group, potentials, table, accumulated, highest > 0.0, wants_log_z, generator)
    hand_down(program, accumulated)
    for cell in range(gather.shape[0]):
        if gather[cell] < size:
            counts[gather[cell]] += accumulated[cell]
    return log_z


@njit(cache=True, nogil=True, error_model="numpy")
def _log_gamma_draws(shape: FloatArray, generator: np.random.Generator, out: FloatArray) -> float:
    """Write logarithms of gamma draws, exact down to shapes of 1e-300; return the logarithm of their sum.

    A gamma variable of shape a < 1 is one of shape a + 1 times U^(1/a), taken in logarithms: small shapes underflow.
    """
    top = -np.inf
    for q in range(shape.shape[0]):
        if shape[q] < 1.0:
            out[q] = math.log(generator.standard_gamma(shape[q] + 1.0))
            out[q] += math.log(1.0 - generator.random()) / shape[q]
        else:
            out[q] = math.log(generator.standard_gamma(shape[q]))
        top = max(top, out[q])
    total = 0.0
    for q in range(shape.shape[0]):
        total += math.exp(out[q] - top)
    return top + math.log(total)


@njit(cache=True, nogil=True, error_model="numpy")
def draw_log_theta(row_start: IntArray, shape: FloatArray, generator: np.random.Generator, out: FloatArray) -> None:
    """Write ln θ with every row drawn from Dir(shape) to `out`: gamma draws by their sum."""
    for row in range(row_start.shape[0] - 1):
        first, last = row_start[row], row_start[row + 1]
        least = np.inf
        for q in range(first, last):
            least = min(least, shape[q])
        if least < 1.0:
            log_total = _log_gamma_draws(shape[first:last], generator, out[first:last])
        else:
            total = 0.0
            for q in range(first, last):
                draw = generator.standard_gamma(shape[q])
                total += draw
                out[q] = math.log(draw)
            log_total = math.log(total)
        for q in range(first, last):
            out[q] -= log_total
