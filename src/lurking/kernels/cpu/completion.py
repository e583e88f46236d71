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


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def wait_into(
    codes: AnyArray, given: AnyArray, scope: IntArray, strides: IntArray, waiting: IntArray
) -> tuple[int, int]:
    """Write which variables of the scope neither a row nor the context gives; return how far the others move a count.

    `codes` (p,) is the row and `given` (p,) a joint state of the context. The second number is how many wait.
    """
    moved, n_waiting = 0, 0
    for a in range(len(scope)):
        code = codes[scope[a]]
        state = code if code >= 0 else given[scope[a]]
        if state >= 0:
            moved += state * strides[a]
        else:
            waiting[n_waiting] = a
            n_waiting += 1
    return moved, n_waiting


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def take_component(
    instance_of: AnyArray, scope: IntArray, waiting: IntArray, n_waiting: int, members: IntArray
) -> tuple[int, int]:
    """Move all that belong to the component of the first one that waits to `members`; return how many, and are left.

    `instance_of` (p,) is that of the row.
    """
    instance = instance_of[scope[waiting[0]]]
    n_members, left = 0, 0
    for k in range(n_waiting):
        a = waiting[k]
        if instance_of[scope[a]] == instance:
            members[n_members] = a
            n_members += 1
        else:
            waiting[left] = a
            left += 1
    return n_members, left


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
    is_dense = len(numbers) == 0
    places, values = np.empty(most, np.int64), np.empty(most)
    margin, offset = np.empty(most), np.empty(most, np.int64)
    waiting, members = np.empty(len(scope), np.int64), np.empty(len(scope), np.int64)
    written = 0
    for row in range(len(weights)):
        is_open = False
        for a in range(len(scope)):
            is_open = is_open or codes[scope[a], row] < 0
        for given in range(context.shape[1] if is_open else 1):
            place, n_waiting = wait_into(codes[:, row], context_states[:, given], scope, strides, waiting)
            weight = weights[row] * context[row, given] if is_open else weights[row]
            places[0], values[0], length = place, weight, 1
            while n_waiting > 0:
                instance = instance_of[scope[waiting[0]], row]
                n_members, n_waiting = take_component(instance_of[:, row], scope, waiting, n_waiting, members)
                width = 1
                for a in members[:n_members]:
                    width *= sizes[a]
                first = begin[instance] + given * n_states[instance]
                states = tables[first : first + n_states[instance]]
                variables, some = (scope, sizes, strides), members[:n_members]
                own, moves = margin[:width], offset[:width]
                margin_into(states, digits, digits_at[:, row], variables, some, own, moves)
                multiply_into(places, values, length, own, moves)
                length *= width
            for k in range(length):
                if is_dense:
                    counts[places[k]] += values[k]
                else:
                    numbers[written + k] = places[k]
                    counts[written + k] = values[k]
            written += length
    return written
