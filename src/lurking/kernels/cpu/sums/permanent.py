r"""Sums over all orders of a few things, and random orders: permanents by a programme over subsets.

For gains g[a, b] of putting state b in place a, Σ_π Π_a exp g[a, π(a)] is the permanent of exp g. With f(∅) = 1,

    f(B) = Σ_{b ∈ B} f(B \ b) · exp g[|B| − 1, b]

is the sum over all ways to fill the first |B| places with the states B, and f(all) is the permanent: r·2^(r−1) products
of positive numbers instead of r! orders, and no cancellation as in Ryser's formula.

Before they are exponentiated, gains are lowered by potentials u[a] + v[b] ≥ g[a, b] that are equal to g along the best
order (the dual of the assignment problem). Then every entry is at most 1 and the best order contributes 1, up to
rounding, so f(all) lies between 1 and r!, and whatever underflows is below 1e-300 of it. Where gains are so large that
rounding is not small, the best order alone is counted. Gains that are not finite have no sum: it is nan.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from lurking.types import FloatArray, IntArray


@njit(cache=True, nogil=True, error_model="numpy")
def lower_by_potentials(gains: FloatArray, lowered: FloatArray) -> float:
    """Write g[a, b] − u[a] − v[b] ≤ 0 to `lowered` (r, r), with 0 along the best order; return its gain Σ u + Σ v.

    The Hungarian method by shortest augmenting paths, O(r³): places are added one by one, and potentials are raised
    along the path that seats each. Place 0 of every array stands for "not seated yet". Gains that are not finite give
    nan: no path would ever end there.
    """
    size = len(gains)
    of_place, of_state = np.zeros(size + 1), np.zeros(size + 1)
    seated, came_from = np.zeros(size + 1, np.int64), np.zeros(size + 1, np.int64)
    for place in range(1, size + 1):
        seated[0] = place
        state = 0
        slack = np.full(size + 1, np.inf)
        is_reached = np.zeros(size + 1, np.bool_)
        while True:
            is_reached[state] = True
            here, least, nearest = seated[state], np.inf, 0
            for other in range(1, size + 1):
                if not is_reached[other]:
                    short = of_place[here] + of_state[other] - gains[here - 1, other - 1]
                    if short < slack[other]:
                        slack[other], came_from[other] = short, state
                    if slack[other] < least:
                        least, nearest = slack[other], other
            if least == np.inf:
                return np.nan
            for other in range(size + 1):
                if is_reached[other]:
                    of_place[seated[other]] -= least
                    of_state[other] += least
                else:
                    slack[other] -= least
            state = nearest
            if seated[state] == 0:
                break
        while state != 0:
            seated[state] = seated[came_from[state]]
            state = came_from[state]
    total = 0.0
    for a in range(size):
        total += of_place[a + 1] + of_state[a + 1]
        for b in range(size):
            lowered[a, b] = min(gains[a, b] - of_place[a + 1] - of_state[b + 1], 0.0)
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def fill_subsets(entries: FloatArray, n_members: IntArray, sums: FloatArray) -> None:
    """Write f(B) of every subset B of states, as bits, to `sums` (2^r,); `n_members` (2^r,) has |B| of each."""
    size = len(entries)
    sums[0] = 1.0
    for members in range(1, len(sums)):
        place, total = n_members[members] - 1, 0.0
        for b in range(size):
            if members >> b & 1:
                total += sums[members ^ (1 << b)] * entries[place, b]
        sums[members] = total


@njit(cache=True, nogil=True, error_model="numpy")
def count_members(n_members: IntArray) -> None:
    """Write the number of bits of every index to `n_members`."""
    n_members[0] = 0
    for members in range(1, len(n_members)):
        n_members[members] = n_members[members >> 1] + (members & 1)


@njit(cache=True, nogil=True, error_model="numpy")
def log_permanents_into(gains: FloatArray, log_permanents: FloatArray, best: FloatArray) -> None:
    """Write ln Σ_π exp Σ_a g[a, π(a)] of each matrix of gains (n, r, r) to `log_permanents`, max_π to `best`, (n,)."""
    size = gains.shape[1]
    lowered, sums, n_members = np.empty((size, size)), np.empty(1 << size), np.empty(1 << size, np.int64)
    count_members(n_members)
    for k in range(len(gains)):
        best[k] = lower_by_potentials(gains[k], lowered)
        if not math.isfinite(best[k]):
            log_permanents[k] = np.nan
            continue
        fill_subsets(np.exp(lowered), n_members, sums)
        log_permanents[k] = best[k] + math.log(max(sums[-1], 1.0))


@njit(cache=True, nogil=True, error_model="numpy")
def draw_order_into(gains: FloatArray, uniforms: FloatArray, order: IntArray) -> None:
    r"""Write a random order to `order` (r,): state π(a) in place a with probability ∝ Π_a exp g[a, π(a)].

    `uniforms` (r,) are numbers of [0, 1). Places are filled from the last to the first: with the states B left,
    state b takes place |B| − 1 with probability f(B \ b) exp g[|B| − 1, b] / f(B).
    """
    size = len(gains)
    entries, sums, n_members = np.empty((size, size)), np.empty(1 << size), np.empty(1 << size, np.int64)
    count_members(n_members)
    lower_by_potentials(gains, entries)
    entries = np.exp(entries)
    fill_subsets(entries, n_members, sums)
    members = len(sums) - 1
    for place in range(size - 1, -1, -1):
        left = uniforms[place] * sums[members]
        chosen = -1
        for b in range(size):
            if members >> b & 1:
                share = sums[members ^ (1 << b)] * entries[place, b]
                # Rounding may leave a little after the last state that is possible at all: that one is taken.
                if share > 0.0 and left >= 0.0:
                    chosen = b
                    left -= share
        order[place] = chosen
        members ^= 1 << chosen
