"""Collapsed Gibbs sweeps over completions, row by row, with θ integrated out, and annealing along them.

With N the counts of a completion s, ln p(s, y|m) = D(λ, N(s)). The families that touch one component of a row have
a table each, so a row's share of p(s, y|m) given all others is a product of predictive probabilities,

    p(s_i, y_i | s_−i, y_−i) = Π_j (λ_jlk + N_jlk) / (λ_jl + N_jl),  N without row i,

the ratio of chickering-heckerman-1996, eq. 5, with the row and without it. Under f_τ(s) ∝ p(s, y|m)^τ the conditional
of s_i is that product to the power τ. Rows are dependent: one of weight w is w rows, each with its own joint state.

Joint states lie in one array, groups in turn, in them rows, in them copies; −1 is a copy that has not entered the
counts, and a sweep lets it enter. So one sweep over an empty array is sequential imputation (Kong, Liu & Wong 1994),
and at τ = 0 a uniform completion. Compiled functions write into arrays they are given and return numbers only.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.special import gammaln

from lurking.kernels.cpu.enumeration import TINY, cells_of_row, group_rows
from lurking.kernels.cpu.special import row_evidence
from lurking.kernels.program import Program
from lurking.types import FloatArray, IntArray

StateArray = NDArray[np.int32]


class Tally(NamedTuple):
    """Pseudo-counts and the counts of one completion, over the active potentials and their R table rows.

    Counts are kept apart from λ: they are whole numbers, and taking a row out and putting it back leaves no rounding.
    """

    row_start: IntArray
    """(R + 1,) first potential of each table row, with a closing entry."""
    row_of: IntArray
    """(Q,) table row of each potential."""
    pseudo: FloatArray
    """(Q,) λ_jlk."""
    row_pseudo: FloatArray
    """(R,) λ_jl."""
    log_gamma_pseudo: FloatArray
    """(Q,) lnΓ(λ_jlk)."""
    log_gamma_row: FloatArray
    """(R,) lnΓ(λ_jl)."""
    counts: FloatArray
    """(Q,) N_jlk."""
    row_counts: FloatArray
    """(R,) N_jl."""


def empty_completion(program: Program, pseudo: FloatArray) -> tuple[Tally, StateArray]:
    """Return the tally of complete families alone and joint states (copies,), none of which has entered it."""
    begin = program.row_start[:-1]
    row_pseudo = np.add.reduceat(pseudo, begin)
    tally = Tally(
        row_start=program.row_start,
        row_of=np.repeat(np.arange(len(begin)), np.diff(program.row_start)),
        pseudo=np.ascontiguousarray(pseudo),
        row_pseudo=row_pseudo,
        log_gamma_pseudo=gammaln(pseudo),
        log_gamma_row=gammaln(row_pseudo),
        counts=program.counts.copy(),
        row_counts=np.add.reduceat(program.counts, begin),
    )
    return tally, np.full(int(program.weights.sum()), -1, np.int32)


@njit(cache=True, nogil=True, error_model="numpy")
def _enter(gather: NDArray[np.int32], tally: Tally, cells: IntArray, state: int, by: float) -> None:
    """Add `by` (1 or −1) times one row in a joint state to the counts; the neutral factor counts nothing."""
    for cell in cells:
        q = gather[cell + state]
        if q < tally.counts.shape[0]:
            tally.counts[q] += by
            tally.row_counts[tally.row_of[q]] += by


@njit(cache=True, nogil=True, error_model="numpy")
def _conditional_in_logs(
    gather: NDArray[np.int32], tally: Tally, cells: IntArray, temperature: float, mass: FloatArray
) -> float:
    """Write the predictive products to the power τ, divided by the largest, to `mass` (S,); return their sum."""
    top, total = -np.inf, 0.0
    for s in range(mass.shape[0]):
        mass[s] = 0.0
        for cell in cells:
            q = gather[cell + s]
            if q < tally.counts.shape[0]:
                row = tally.row_of[q]
                mass[s] += math.log(tally.pseudo[q] + tally.counts[q])
                mass[s] -= math.log(tally.row_pseudo[row] + tally.row_counts[row])
        top = max(top, mass[s])
    for s in range(mass.shape[0]):
        mass[s] = math.exp(temperature * (mass[s] - top))
        total += mass[s]
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def conditional_into(
    gather: NDArray[np.int32], tally: Tally, cells: IntArray, temperature: float, mass: FloatArray
) -> float:
    """Write [Π_j (λ_jlk + N_jlk) / (λ_jl + N_jl)]^τ of every joint state to `mass` (S,), up to a factor; return Σ mass.

    The row is not in the tally. `cells` (factors,) is the first cell of each of its factors.
    """
    lowest, total = np.inf, 0.0
    for s in range(mass.shape[0]):
        product = 1.0
        for cell in cells:
            q = gather[cell + s]
            if q < tally.counts.shape[0]:
                row = tally.row_of[q]
                product *= (tally.pseudo[q] + tally.counts[q]) / (tally.row_pseudo[row] + tally.row_counts[row])
        mass[s] = product
        lowest = min(lowest, product)
        total += product
    # A small power makes even the least likely state count: none of them may be lost to underflow.
    if not lowest > TINY:
        return float(_conditional_in_logs(gather, tally, cells, temperature, mass))
    if temperature == 1.0:
        return total
    total = 0.0
    for s in range(mass.shape[0]):
        mass[s] = mass[s] ** temperature
        total += mass[s]
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _draw_state(mass: FloatArray, total: float, generator: np.random.Generator) -> int:
    """Return one state drawn with probabilities mass / total."""
    threshold = generator.random() * total
    s = 0
    while s < mass.shape[0] - 1 and threshold >= mass[s]:
        threshold -= mass[s]
        s += 1
    # Rounding may step past the last possible state.
    while mass[s] == 0.0 and s > 0:
        s -= 1
    return s


@njit(cache=True, nogil=True, error_model="numpy")
def sweep(
    program: Program, tally: Tally, states: StateArray, temperature: float, generator: np.random.Generator
) -> None:
    """Draw the joint state of every copy of every row anew given all others; `states` and `tally` are overwritten."""
    gather, place = program.gather, 0
    for group in range(program.states.shape[0]):
        fixed, slots, weights = group_rows(program, group)
        mass = np.empty(program.states[group])
        cells = np.empty(fixed.shape[0] + program.n_factors[group], np.int64)
        cells[: fixed.shape[0]] = fixed
        for row in range(weights.shape[0]):
            cells_of_row(program, group, slots[row], cells[fixed.shape[0] :])
            for copy in range(place, place + int(weights[row])):
                if states[copy] >= 0:
                    _enter(gather, tally, cells, states[copy], -1.0)
                total = conditional_into(gather, tally, cells, temperature, mass)
                states[copy] = _draw_state(mass, total, generator)
                _enter(gather, tally, cells, states[copy], 1.0)
            place += int(weights[row])


@njit(cache=True, nogil=True, error_model="numpy")
def log_joint(tally: Tally) -> float:
    """Return D(λ, N), ln p(s, y|m) without inactive table rows."""
    result = 0.0
    for row in range(tally.row_pseudo.shape[0]):
        begin, end = tally.row_start[row], tally.row_start[row + 1]
        row_pseudo, log_gamma_row = tally.row_pseudo[row], tally.log_gamma_row[row]
        result += row_evidence(
            tally.pseudo, tally.log_gamma_pseudo, begin, row_pseudo, log_gamma_row, tally.counts, begin, end
        )
    return result


@njit(cache=True, nogil=True, error_model="numpy")
def sweeps_into(
    program: Program,
    tally: Tally,
    states: StateArray,
    n_sweeps: int,
    thin: int,
    generator: np.random.Generator,
    stop: IntArray,
    kept: tuple[FloatArray, FloatArray],
) -> bool:
    """Sweep p(s | y, m) from `states` on, which are overwritten with `tally`.

    `kept` = (counts (draws, Q), ln p(s, y|m) without inactive table rows (draws,)) receives every `thin`-th sweep.
    Returns whether all sweeps were made before `stop[0]` was set.
    """
    counts, log_joints = kept
    for k in range(n_sweeps):
        if stop[0] != 0:
            return False
        sweep(program, tally, states, 1.0, generator)
        if (k + 1) % thin == 0:
            counts[k // thin, :] = tally.counts
            log_joints[k // thin] = log_joint(tally)
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def anneal_completions_into(
    program: Program,
    tally: Tally,
    states: StateArray,
    temperatures: FloatArray,
    generator: np.random.Generator,
    stop: IntArray,
    increments: FloatArray,
) -> tuple[bool, float]:
    """Anneal f_τ(s) = p(s, y|m)^τ from uniform completions at τ_0 = 0 to τ_K = 1.

    Returns (whether the end was reached before `stop[0]` was set, Σ_k (τ_{k+1} − τ_k) D(λ, N(s_k))).
    `tally` and `states` come from `empty_completion` and end at the last completion s_{K−1}; `increments` (K,)
    receives each term.
    """
    result = 0.0
    for k in range(increments.shape[0]):
        if stop[0] != 0:
            return False, result
        sweep(program, tally, states, temperatures[k], generator)
        increments[k] = (temperatures[k + 1] - temperatures[k]) * log_joint(tally)
        result += increments[k]
    return True, result
