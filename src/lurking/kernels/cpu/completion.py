"""Expected counts of a set of variables over rows with unobserved cells.

Given the states of a few *context* variables, none at best, the unobserved cells of a row fall into independent
components; each has a table of posterior probabilities over its joint states. A count needs, for every joint state of
the context, the margin of every component that meets the set, and the product of those margins.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from lurking.types import AnyArray, FloatArray, IntArray


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def margin_into(
    tables: FloatArray,
    digits: AnyArray,
    digits_at: IntArray,
    variables: tuple[IntArray, IntArray, IntArray],
    members: IntArray,
    margin: FloatArray,
    offset: IntArray,
) -> None:
    """Write the margin of a component over some of its variables, and where each joint state of them moves a count.

    `tables` (joint states,) are the probabilities of the component, and `digits_at` (p,) is that of the row.
    `variables` are scope, sizes and strides of `expected_counts_into`; `members` are the places in them that the
    margin is over.
    """
    scope, sizes, strides = variables
    margin[:] = 0.0
    for state in range(len(tables)):
        local, moved = 0, 0
        for a in members:
            digit = digits[digits_at[scope[a]] + state]
            local = local * sizes[a] + digit
            moved += digit * strides[a]
        margin[local] += tables[state]
        offset[local] = moved


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def multiply_into(places: IntArray, values: FloatArray, length: int, margin: FloatArray, offset: IntArray) -> None:
    """Replace `length` entries by their products with every entry of a margin."""
    width = len(margin)
    # From the last to the first, so that no entry is overwritten before it was used.
    for k in range(length - 1, -1, -1):
        place, value = places[k], values[k]
        for local in range(width - 1, -1, -1):
            places[k * width + local] = place + offset[local]
            values[k * width + local] = value * margin[local]


@njit(cache=True, nogil=True, error_model="numpy")
def expected_counts_into(
    codes: AnyArray,
    weights: FloatArray,
    instance_of: AnyArray,
    digits_at: IntArray,
    begin: IntArray,
    n_states: IntArray,
    tables: FloatArray,
    digits: AnyArray,
    context: FloatArray,
    context_states: AnyArray,
    scope: IntArray,
    sizes: IntArray,
    strides: IntArray,
    most: int,
    numbers: IntArray,
    counts: FloatArray,
) -> int:
    """Add Σ_rows w · p(scope | row) to `counts`, and return how many entries were written.

    Parameters
    ----------
    codes : (p, u), −1 where unobserved; `weights` (u,).
    instance_of, digits_at : (p, u), which component a cell belongs to, and where the states of the cell begin in
        `digits`, one for every joint state of the component; anything where the cell is observed.
    begin, n_states : (components,) where the probabilities of a component begin in `tables`, and how many there are for
        each joint state of the context.
    context : (u, contexts) posterior of the joint states of the context; `context_states` (p, contexts) has the state
        of a context variable in each of them, −1 for any other variable.
    scope, sizes, strides : (m,) variables, their numbers of states, and how far a state moves the place of a count.
    most : joint states of the scope that a single row can leave open, at most.
    numbers, counts : with `numbers` empty, `counts` is the dense table; otherwise place and weight of every entry are
        written to `numbers` and `counts` one after the other.
    """
    n_scope, n_rows = len(scope), len(weights)
    is_dense = len(numbers) == 0
    places, values = np.empty(most, np.int64), np.empty(most)
    margin, offset = np.empty(most), np.empty(most, np.int64)
    waiting, members = np.empty(n_scope, np.int64), np.empty(n_scope, np.int64)
    written = 0
    for row in range(n_rows):
        observed, is_open = 0, False
        for a in range(n_scope):
            code = codes[scope[a], row]
            if code >= 0:
                observed += code * strides[a]
            else:
                is_open = True
        for state_of_context in range(context.shape[1] if is_open else 1):
            place, n_waiting = observed, 0
            for a in range(n_scope):
                if codes[scope[a], row] < 0:
                    given = context_states[scope[a], state_of_context]
                    if given >= 0:
                        place += given * strides[a]
                    else:
                        waiting[n_waiting] = a
                        n_waiting += 1
            weight = weights[row] * context[row, state_of_context] if is_open else weights[row]
            places[0], values[0], length = place, weight, 1
            while n_waiting > 0:
                instance = instance_of[scope[waiting[0]], row]
                n_members, left, width = 0, 0, 1
                for k in range(n_waiting):
                    a = waiting[k]
                    if instance_of[scope[a], row] == instance:
                        members[n_members] = a
                        n_members += 1
                        width *= sizes[a]
                    else:
                        waiting[left] = a
                        left += 1
                n_waiting = left
                first = begin[instance] + state_of_context * n_states[instance]
                states = tables[first : first + n_states[instance]]
                variables, some = (scope, sizes, strides), members[:n_members]
                own, moves = margin[:width], offset[:width]
                margin_into(states, digits, digits_at[:, row], variables, some, own, moves)
                multiply_into(places, values, length, own, moves)
                length *= width
            if is_dense:
                for k in range(length):
                    counts[places[k]] += values[k]
            else:
                for k in range(length):
                    numbers[written + k] = places[k]
                    counts[written + k] = values[k]
            written += length
    return written
