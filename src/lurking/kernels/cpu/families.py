"""Counts of families and what they score: many candidate parents of one variable in one call.

Rows are unique rows with positive weights. The parents that a family has already are one number per row, its *key*;
`refine_into` adds a parent to it. A candidate parent then needs one pass over the rows. Where the table of counts is
not much larger than the number of rows it is dense, and a row adds its weight to the cell of its key, its state and the
candidate's. Where it is larger, the rows are sorted by key once, and one small table serves each group of equal keys in
turn, so that neither memory nor work ever exceeds a few times the number of rows.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from lurking.kernels.cpu.special import row_evidence
from lurking.types import AnyArray, FloatArray, IntArray

DENSE_CELLS_PER_ROW = 4
DENSE_CELLS = 4096


@njit(cache=True, nogil=True, error_model="numpy")
def refine_into(keys: IntArray, n_keys: int, column: AnyArray, cardinality: int, new: IntArray) -> int:
    """Write keys that also tell the states of `column` apart to `new` (u,), and return how many there may be.

    `keys` (u,) lie below `n_keys`. Keys are mixed-radix numbers, key · cardinality + state, as long as there are at
    most a few times as many as rows; beyond, those that occur are numbered anew.
    """
    size = n_keys * cardinality
    n_rows = len(keys)
    if size <= max(DENSE_CELLS_PER_ROW * n_rows, DENSE_CELLS):
        for row in range(n_rows):
            new[row] = keys[row] * cardinality + column[row]
        return size
    # Rows of equal key are brought together, so that the memory for numbering one group is its number of states.
    order, begins = np.empty(n_rows, np.int64), np.empty(n_keys + 1, np.int64)
    sort_by_key(keys, order, begins)
    number = np.full(cardinality, -1, np.int64)
    count = 0
    for key in range(n_keys):
        for place in range(begins[key], begins[key + 1]):
            row = order[place]
            state = column[row]
            if number[state] < 0:
                number[state] = count
                count += 1
            new[row] = number[state]
        for place in range(begins[key], begins[key + 1]):
            number[column[order[place]]] = -1
    return count


@njit(cache=True, nogil=True, error_model="numpy")
def sort_by_key(keys: IntArray, order: IntArray, begins: IntArray) -> None:
    """Write the rows by ascending key to `order` (u,), and where each key begins, with a closing entry, to `begins`."""
    begins[:] = 0
    for row in range(len(keys)):
        begins[keys[row] + 1] += 1
    for key in range(len(begins) - 1):
        begins[key + 1] += begins[key]
    for row in range(len(keys)):
        order[begins[keys[row]]] = row
        begins[keys[row]] += 1
    for key in range(len(begins) - 1, 0, -1):
        begins[key] = begins[key - 1]
    begins[0] = 0


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _value_of_row(counts: FloatArray, begin: int, of_alpha: tuple[FloatArray, FloatArray, float, float]) -> float:
    """Return the score of one table row counts[begin : begin + r]: its log evidence, or for α = 0 its log-likelihood.

    `of_alpha` = (α of each of the r entries, their lnΓ(α), r α, lnΓ(r α)).
    """
    pseudo, log_gamma_pseudo, row_pseudo, log_gamma_row = of_alpha
    end = begin + pseudo.shape[0]
    if row_pseudo > 0.0:
        return row_evidence(pseudo, log_gamma_pseudo, 0, row_pseudo, log_gamma_row, counts, begin, end)
    total, value = 0.0, 0.0
    for cell in range(begin, end):
        count = counts[cell]
        if count > 0.0:
            total += count
            value += count * math.log(count)
    if total > 0.0:
        value -= total * math.log(total)
    return value


@njit(cache=True, nogil=True, error_model="numpy")
def _of_alpha(alpha: float, cardinality: int) -> tuple[FloatArray, FloatArray, float, float]:
    """Return what `_value_of_row` needs to know of α, zeros for α = 0."""
    if alpha > 0.0:
        entries = np.full(cardinality, math.lgamma(alpha))
        return np.full(cardinality, alpha), entries, alpha * cardinality, math.lgamma(alpha * cardinality)
    return np.zeros(cardinality), np.zeros(cardinality), 0.0, 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _count_into(keys: IntArray, states: AnyArray, n_cells: int, weights: FloatArray, counts: FloatArray) -> None:
    """Count the rows into counts[key + n_cells · state of the candidate]; `counts` is (4 · size,), the first quarter.

    Rows that follow each other often meet in one cell, and an addition would wait for the one before it to reach
    memory: four tables take the rows in turn and are added in the end.
    """
    size, n_rows = len(counts) // 4, len(keys)
    counts[:] = 0.0
    second, third, fourth = size, 2 * size, 3 * size
    whole = n_rows - n_rows % 4
    for row in range(0, whole, 4):
        counts[keys[row] + n_cells * states[row]] += weights[row]
        counts[second + keys[row + 1] + n_cells * states[row + 1]] += weights[row + 1]
        counts[third + keys[row + 2] + n_cells * states[row + 2]] += weights[row + 2]
        counts[fourth + keys[row + 3] + n_cells * states[row + 3]] += weights[row + 3]
    for row in range(whole, n_rows):
        counts[keys[row] + n_cells * states[row]] += weights[row]
    for cell in range(size):
        counts[cell] += counts[second + cell] + (counts[third + cell] + counts[fourth + cell])


@njit(cache=True, nogil=True, error_model="numpy")
def _grouped_value(
    order: IntArray,
    begins: IntArray,
    child: AnyArray,
    cardinality: int,
    states: AnyArray,
    n_states: int,
    weights: FloatArray,
    of_alpha: tuple[FloatArray, FloatArray, float, float],
) -> float:
    """Return the score of one candidate from rows sorted by key: one table (n_states, cardinality) for each group."""
    counts = np.zeros(n_states * cardinality)
    is_touched = np.zeros(n_states, np.bool_)
    value = 0.0
    for group in range(len(begins) - 1):
        for place in range(begins[group], begins[group + 1]):
            row = order[place]
            state = int(states[row]) if n_states > 1 else 0
            counts[state * cardinality + child[row]] += weights[row]
            is_touched[state] = True
        for place in range(begins[group], begins[group + 1]):
            row = order[place]
            state = int(states[row]) if n_states > 1 else 0
            if is_touched[state]:
                value += _value_of_row(counts, state * cardinality, of_alpha)
                counts[state * cardinality : (state + 1) * cardinality] = 0.0
                is_touched[state] = False
    return value


@njit(cache=True, nogil=True, error_model="numpy")
def additions_into(
    codes: AnyArray,
    cardinalities: IntArray,
    weights: FloatArray,
    keys: IntArray,
    n_keys: int,
    child: int,
    candidates: IntArray,
    alphas: FloatArray,
    values: FloatArray,
) -> None:
    """Write the score of `child` with its parents and each candidate to `values` (m,).

    `codes` (p, u) are the rows, `keys` (u,) below `n_keys` tell the configurations of the parents apart, `candidates`
    (m,) are variables, −1 for none at all. With pseudo-count α = alphas[c] > 0 of every cell the score is
    Σ_l [lnΓ(rα) − lnΓ(rα + N_l) + Σ_k lnΓ(α + N_lk) − lnΓ(α)]; with α = 0 it is Σ_lk N_lk ln (N_lk / N_l).
    """
    cardinality = cardinalities[child]
    n_rows, n_cells = len(keys), n_keys * cardinality
    of_child = codes[child]
    cells = np.empty(n_rows, np.int64)
    for row in range(n_rows):
        cells[row] = keys[row] * cardinality + of_child[row]
    order, begins = np.empty(0, np.int64), np.empty(0, np.int64)
    for c in range(len(candidates)):
        candidate = candidates[c]
        n_states = 1 if candidate < 0 else cardinalities[candidate]
        states = codes[max(candidate, 0)]
        of_alpha = _of_alpha(alphas[c], cardinality)
        size = n_cells * n_states
        if size <= max(DENSE_CELLS_PER_ROW * n_rows, DENSE_CELLS):
            # A candidate that is none has one state: whatever column stands in for it is multiplied by 0.
            counts = np.empty(4 * size)
            _count_into(cells, states, n_cells if n_states > 1 else 0, weights, counts)
            value = 0.0
            for begin in range(0, size, cardinality):
                value += _value_of_row(counts, begin, of_alpha)
            values[c] = value
        else:
            if len(begins) == 0:
                order, begins = np.empty(n_rows, np.int64), np.empty(n_keys + 1, np.int64)
                sort_by_key(keys, order, begins)
            values[c] = _grouped_value(order, begins, of_child, cardinality, states, n_states, weights, of_alpha)
