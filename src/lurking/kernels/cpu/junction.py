"""Collect and distribute on a junction tree, row by row, over the joint states that the row leaves open.

A row is first done with products, messages normalised to sum 1. Rows in which that may have lost something (see
`_collect`) are redone in the log domain. Compiled functions write into arrays
they are given and return numbers only (an interrupt pending while an array is wrapped cannot be borne).
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from lurking.kernels.program import TreeProgram
from lurking.types import BoolArray, FloatArray

TINY = 1e-250
LOST, DEEP = 1e-290, 1e-190
SMALL, LARGE = 1e-50, 1e50  # times TINY, or times a total, is still a number: the product of totals stays finite


@njit(cache=True, nogil=True, error_model="numpy")
def _collect(tree: TreeProgram, row: int, table: FloatArray, masses: FloatArray, messages: FloatArray) -> float:
    """Pass messages to the root; return ln z of the row, or NaN when products cannot be trusted with it.

    `masses` receives each clique's product of factors and children's messages, divided by its total; `messages` the
    marginal of that product over what the clique shares with its parent.

    A shared state whose mass falls below `LOST` may have been lost to underflow, or has few digits left. What it could
    still contribute to the row is at most `LOST` divided by the totals of its clique and of those further up, since all
    factors are at most 1; so it matters only when the totals multiply to something as small, `DEEP`. A total at or
    below `TINY` is not trusted in any case.
    """
    pattern = tree.pattern_of[row]
    log_z, product = 0.0, 1.0
    depth, is_lost = 1.0, False
    for clique in range(tree.parent.shape[0] - 1, -1, -1):
        plan = tree.plan_of[pattern, clique]
        if plan < 0:
            continue
        states = tree.plan_states[plan]
        mass = masses[tree.state_begin[clique] : tree.state_begin[clique] + states]
        at = tree.plan_begin[plan]
        for s in range(states):
            mass[s] = 1.0
        for factor in range(tree.factor_begin[clique], tree.factor_begin[clique + 1]):
            base = tree.bases[row, factor]
            if base >= 0:
                for s in range(states):
                    mass[s] *= table[base + tree.maps[at + s]]
            at += states
        to_parent = at
        at += states
        for k in range(tree.child_begin[clique], tree.child_begin[clique + 1]):
            child = tree.children[k]
            below = tree.plan_of[pattern, child]
            if below >= 0 and tree.plan_message[below] > 0:
                message = messages[tree.message_begin[child] :]
                for s in range(states):
                    mass[s] *= message[tree.maps[at + s]]
            at += states
        total = 0.0
        for s in range(states):
            total += mass[s]
        if not total > TINY:
            return np.nan
        depth *= min(total, 1.0)
        product *= total
        if product < SMALL or product > LARGE:
            log_z += math.log(product)
            product = 1.0
        message = messages[tree.message_begin[clique] : tree.message_begin[clique] + tree.plan_message[plan]]
        for t in range(message.shape[0]):
            message[t] = 0.0
        scale = 1.0 / total
        if message.shape[0] > 0:
            for s in range(states):
                mass[s] *= scale
                message[tree.maps[to_parent + s]] += mass[s]
            for t in range(message.shape[0]):
                is_lost = is_lost or message[t] * total < LOST
        else:
            for s in range(states):
                mass[s] *= scale
    return np.nan if is_lost and depth < DEEP else log_z + math.log(product)


@njit(cache=True, nogil=True, error_model="numpy")
def _distribute(
    tree: TreeProgram, row: int, masses: FloatArray, messages: FloatArray, ratios: FloatArray, counts: FloatArray
) -> None:
    """Turn `masses` into the posterior of each clique, times the row's weight, and add it to the counts.

    `ratios` is scratch of the size of `messages`: the parent's marginal divided by the message that went up.
    """
    pattern = tree.pattern_of[row]
    for clique in range(tree.parent.shape[0]):
        plan = tree.plan_of[pattern, clique]
        if plan < 0:
            continue
        states = tree.plan_states[plan]
        mass = masses[tree.state_begin[clique] : tree.state_begin[clique] + states]
        at = tree.plan_begin[plan]
        n_factors = tree.factor_begin[clique + 1] - tree.factor_begin[clique]
        to_parent = at + n_factors * states
        if tree.plan_message[plan] > 0:
            ratio = ratios[tree.message_begin[clique] :]
            for s in range(states):
                mass[s] *= ratio[tree.maps[to_parent + s]]
        else:
            for s in range(states):
                mass[s] *= tree.weights[row]
        for factor in range(tree.factor_begin[clique], tree.factor_begin[clique + 1]):
            base = tree.bases[row, factor]
            if base >= 0:
                for s in range(states):
                    counts[base + tree.maps[at + s]] += mass[s]
            at += states
        at = to_parent + states
        for k in range(tree.child_begin[clique], tree.child_begin[clique + 1]):
            child = tree.children[k]
            below = tree.plan_of[pattern, child]
            if below >= 0 and tree.plan_message[below] > 0:
                start = tree.message_begin[child]
                length = tree.plan_message[below]
                for t in range(start, start + length):
                    ratios[t] = 0.0
                for s in range(states):
                    ratios[start + tree.maps[at + s]] += mass[s]
                for t in range(start, start + length):
                    # A shared state that is impossible below has no mass above either: 0/0 stands for 0.
                    ratios[t] = ratios[t] / messages[t] if messages[t] > 0.0 else 0.0
            at += states


@njit(cache=True, nogil=True, error_model="numpy")
def _collect_in_logs(
    tree: TreeProgram, row: int, potentials: FloatArray, masses: FloatArray, messages: FloatArray
) -> float:
    """Pass log messages to the root; return ln z of the row (−inf allowed). `masses`, `messages` receive logarithms."""
    pattern = tree.pattern_of[row]
    log_z = 0.0
    for clique in range(tree.parent.shape[0] - 1, -1, -1):
        plan = tree.plan_of[pattern, clique]
        if plan < 0:
            continue
        states = tree.plan_states[plan]
        mass = masses[tree.state_begin[clique] : tree.state_begin[clique] + states]
        at = tree.plan_begin[plan]
        n_factors = tree.factor_begin[clique + 1] - tree.factor_begin[clique]
        to_parent = at + n_factors * states
        for s in range(states):
            mass[s] = 0.0
            for f in range(n_factors):
                base = tree.bases[row, tree.factor_begin[clique] + f]
                if base >= 0:
                    mass[s] += potentials[base + tree.maps[at + f * states + s]]
        at = to_parent + states
        for k in range(tree.child_begin[clique], tree.child_begin[clique + 1]):
            child = tree.children[k]
            below = tree.plan_of[pattern, child]
            if below >= 0 and tree.plan_message[below] > 0:
                for s in range(states):
                    mass[s] += messages[tree.message_begin[child] + tree.maps[at + s]]
            at += states
        length = tree.plan_message[plan]
        if length == 0:
            top = -np.inf
            for s in range(states):
                top = max(top, mass[s])
            if top == -np.inf:
                return -np.inf
            total = 0.0
            for s in range(states):
                total += math.exp(mass[s] - top)
            log_z += top + math.log(total)
            for s in range(states):
                mass[s] -= top + math.log(total)
            continue
        _log_marginal(mass, tree.maps[to_parent : to_parent + states], messages[tree.message_begin[clique] :], length)
    return log_z


@njit(cache=True, nogil=True, error_model="numpy")
def _log_marginal(mass: FloatArray, places: NDArray[np.int32], message: FloatArray, length: int) -> None:
    """Write ln Σ exp(mass) over the joint states of each place to `message`."""
    tops = np.full(length, -np.inf)
    sums = np.zeros(length)
    for s in range(mass.shape[0]):
        tops[places[s]] = max(tops[places[s]], mass[s])
    for s in range(mass.shape[0]):
        if mass[s] > -np.inf:
            sums[places[s]] += math.exp(mass[s] - tops[places[s]])
    for t in range(length):
        message[t] = tops[t] + math.log(sums[t]) if sums[t] > 0.0 else -np.inf


@njit(cache=True, nogil=True, error_model="numpy")
def _out_of_logs(tree: TreeProgram, row: int, masses: FloatArray, messages: FloatArray) -> None:
    """Turn log masses and log messages into what `_collect` leaves: each clique's masses relative to its message.

    A message becomes 1 where it is possible and masses are divided by it, so that `_distribute` can go on.
    """
    pattern = tree.pattern_of[row]
    for clique in range(tree.parent.shape[0]):
        plan = tree.plan_of[pattern, clique]
        if plan < 0:
            continue
        states = tree.plan_states[plan]
        begin, start = tree.state_begin[clique], tree.message_begin[clique]
        n_factors = tree.factor_begin[clique + 1] - tree.factor_begin[clique]
        to_parent = tree.plan_begin[plan] + n_factors * states
        length = tree.plan_message[plan]
        for s in range(states):
            above = messages[start + tree.maps[to_parent + s]] if length > 0 else 0.0
            masses[begin + s] = math.exp(masses[begin + s] - above) if above > -np.inf else 0.0
        for t in range(start, start + length):
            messages[t] = 1.0 if messages[t] > -np.inf else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _row(
    tree: TreeProgram,
    row: int,
    potentials: FloatArray,
    table: FloatArray,
    scratch: tuple[FloatArray, FloatArray, FloatArray],
    counts: FloatArray,
) -> float:
    """Add one row's expected counts, times its weight; return its ln z. An empty `table` asks for the log domain."""
    masses, messages, ratios = scratch
    log_z = np.nan
    if table.shape[0] > 0:
        log_z = _collect(tree, row, table, masses, messages)
    if np.isnan(log_z):
        log_z = _collect_in_logs(tree, row, potentials, masses, messages)
        if log_z > -np.inf:
            _out_of_logs(tree, row, masses, messages)
    if log_z > -np.inf:
        _distribute(tree, row, masses, messages, ratios, counts)
    return log_z


@njit(cache=True, nogil=True, error_model="numpy")
def tree_into(
    tree: TreeProgram,
    potentials: FloatArray,
    table: FloatArray,
    scratch: tuple[FloatArray, FloatArray, FloatArray],
    begin: int,
    end: int,
    counts: FloatArray,
    row_log_z: FloatArray,
) -> float:
    """Add the expected counts of rows begin … end to `counts`; return Σ w ln z of them (−inf when one is impossible).

    `table` is exp(potentials), empty to stay in the log domain; `scratch` = (masses, messages, ratios). `row_log_z`
    receives ln z of each row, or is empty.
    """
    result = 0.0
    for row in range(begin, end):
        log_z = _row(tree, row, potentials, table, scratch, counts)
        if row_log_z.shape[0] > 0:
            row_log_z[row - begin] = log_z
        if tree.weights[row] > 0.0:
            result += tree.weights[row] * log_z
    return result


@njit(cache=True, nogil=True, error_model="numpy")
def log_z_into(
    tree: TreeProgram,
    points: FloatArray,
    tables: FloatArray,
    in_logs: BoolArray,
    scratch: tuple[FloatArray, FloatArray, FloatArray],
    log_z: FloatArray,
) -> None:
    """Write Σ w ln z of all rows at each of the points (m, Q) to `log_z` (m,).

    `tables` (m, Q) are exp(points), not read where `in_logs` (m,) asks for the log domain.
    """
    counts, nowhere = np.zeros(points.shape[1]), np.empty(0)
    for k in range(points.shape[0]):
        table = tables[k, :0] if in_logs[k] else tables[k]
        log_z[k] = tree_into(tree, points[k], table, scratch, 0, tree.weights.shape[0], counts, nowhere)


@njit(cache=True, nogil=True, error_model="numpy")
def marginals_into(
    tree: TreeProgram,
    potentials: FloatArray,
    table: FloatArray,
    scratch: tuple[FloatArray, FloatArray, FloatArray],
    factor: int,
    first: int,
    counts: FloatArray,
    out: FloatArray,
) -> None:
    """Write the posterior of the child of one factor, whose table begins at `first`, for every row; weights are 1."""
    clique = 0
    while tree.factor_begin[clique + 1] <= factor:
        clique += 1
    masses = scratch[0]
    for row in range(out.shape[0]):
        base = tree.bases[row, factor]
        plan = tree.plan_of[tree.pattern_of[row], clique]
        for k in range(out.shape[1]):
            out[row, k] = 0.0
        if base < 0 or plan < 0 or not _row(tree, row, potentials, table, scratch, counts) > -np.inf:
            continue
        states = tree.plan_states[plan]
        at = tree.plan_begin[plan] + (factor - tree.factor_begin[clique]) * states
        for s in range(states):
            # The child's state is the fastest digit of the place in its own table.
            out[row, (base + tree.maps[at + s] - first) % out.shape[1]] += masses[tree.state_begin[clique] + s]


def _prepared(
    tree: TreeProgram, potentials: FloatArray
) -> tuple[FloatArray, FloatArray, tuple[FloatArray, FloatArray, FloatArray]]:
    """Return potentials, their exponentials (empty when one is positive: products could overflow) and scratch."""
    table = np.empty(0) if potentials.max(initial=-np.inf) > 0.0 else np.exp(potentials)
    return np.ascontiguousarray(potentials), table, _scratch(tree)


def _scratch(tree: TreeProgram) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return (masses, messages, ratios), unfilled."""
    messages = np.empty(int(tree.message_begin[-1]))
    return np.empty(int(tree.state_begin[-1])), messages, messages.copy()


def expect_rows(
    tree: TreeProgram, potentials: FloatArray, begin: int, end: int, row_log_z: FloatArray
) -> tuple[FloatArray, float]:
    """Return (N, log_z) of the rows begin … end over the active potentials (Q,); `row_log_z` as in `tree_into`."""
    counts = np.zeros(potentials.shape[0])
    return counts, float(tree_into(tree, *_prepared(tree, potentials), begin, end, counts, row_log_z))


def log_z_on_tree(tree: TreeProgram, points: FloatArray) -> FloatArray:
    """Return Σ w ln z of all rows at each of the points (m, Q) of active potentials, (m,)."""
    result = np.empty(len(points))
    in_logs: BoolArray = points.max(axis=1, initial=-np.inf) > 0.0
    tables = np.exp(points, out=np.zeros(points.shape), where=~in_logs[:, None])
    log_z_into(tree, np.ascontiguousarray(points), tables, in_logs, _scratch(tree), result)
    return result


def marginals(tree: TreeProgram, potentials: FloatArray, factor: int, first: int, states: int) -> FloatArray:
    """Return the posterior of the child of one factor in every row, (rows, states); zeros where it is impossible."""
    out = np.empty((len(tree.weights), states))
    single = tree._replace(weights=np.ones(len(tree.weights)))
    marginals_into(single, *_prepared(tree, potentials), factor, first, np.zeros(potentials.shape[0]), out)
    return out
