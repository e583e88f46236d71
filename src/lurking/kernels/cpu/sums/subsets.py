r"""Programmes over all subsets of p variables: the best structure, and sums over orders.

Subsets of all variables are p bits. Parent sets of variable v are subsets of the others, p − 1 bits: bit j stands for
variable j below v and for variable j + 1 from there on. Impossible parent sets have the score −inf.
"""

from __future__ import annotations

import math

from numba import njit

from lurking.types import AnyArray, FloatArray

NEGLIGIBLE = 40.0
ROUNDING = 1e-10
"""Relative: scores of equivalent structures differ by less, and that must not decide between them."""


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def without_bit(members: int, v: int) -> int:
    """Return the bits of `members` with bit v taken out and higher ones moved down."""
    low = (1 << v) - 1
    return (members & low) | ((members >> (v + 1)) << v)


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def log_add(a: float, b: float) -> float:
    """Return ln(e^a + e^b); −inf stands for 0."""
    if a < b:
        a, b = b, a
    if b < a - NEGLIGIBLE:
        return a
    return a + math.log1p(math.exp(b - a)) if a > -math.inf else a


@njit(cache=True, nogil=True, error_model="numpy")
def best_parents_into(best: FloatArray, choice: AnyArray) -> None:
    """Replace the score of every parent set, `best` (2^(p−1),), by the best among its subsets, kept in `choice`.

    Of equal ones, up to rounding, the smaller set is chosen (Silander & Myllymäki 2006).
    """
    for members in range(len(best)):
        value, chosen = best[members], members
        left = members
        while left:
            bit = left & -left
            left ^= bit
            rest = members ^ bit
            if best[rest] >= value - ROUNDING * abs(value):
                value, chosen = best[rest], choice[rest]
        best[members], choice[members] = value, chosen


@njit(cache=True, nogil=True, error_model="numpy")
def best_sinks_into(families: FloatArray, values: FloatArray, sinks: AnyArray) -> None:
    r"""Write the score of the best structure over each subset W to `values` (2^p,), and its last variable to `sinks`.

    values[W] = max_{v ∈ W} values[W \ v] + families[v, W \ v], with `families` (p, 2^(p−1)) from `best_parents_into`
    (Silander & Myllymäki 2006). Of equal ones, up to rounding, the first variable is the last.
    """
    values[0], sinks[0] = 0.0, -1
    for members in range(1, len(values)):
        value, sink = -math.inf, -1
        for v in range(len(families)):
            if members >> v & 1:
                rest = members ^ (1 << v)
                total = values[rest] + families[v, without_bit(rest, v)]
                if value == -math.inf or total > value + ROUNDING * abs(value):
                    value, sink = total, v
        values[members], sinks[members] = value, sink


@njit(cache=True, nogil=True, error_model="numpy")
def sum_subsets_into(sums: FloatArray) -> None:
    """Replace ln g(S) by ln Σ_{T ⊆ S} g(T) for every set, in place, bit by bit."""
    bit = 1
    while bit < len(sums):
        for members in range(len(sums)):
            if members & bit:
                sums[members] = log_add(sums[members], sums[members ^ bit])
        bit <<= 1


@njit(cache=True, nogil=True, error_model="numpy")
def sum_supersets_into(sums: FloatArray) -> None:
    """Replace ln g(S) by ln Σ_{T ⊇ S} g(T) for every set, in place, bit by bit."""
    bit = 1
    while bit < len(sums):
        for members in range(len(sums)):
            if not members & bit:
                sums[members] = log_add(sums[members], sums[members | bit])
        bit <<= 1


@njit(cache=True, nogil=True, error_model="numpy")
def sum_orders_into(families: FloatArray, forward: FloatArray, backward: FloatArray) -> None:
    r"""Write sums over the orders of each subset, `forward`, and of what comes after it, `backward`, both (2^p,).

    forward[W] = ln Σ_{v ∈ W} e^{forward[W \ v] + families[v, W \ v]} and
    backward[W] = ln Σ_{v ∉ W} e^{backward[W ∪ v] + families[v, W]}, with `families` (p, 2^(p−1)) from
    `sum_subsets_into` (Koivisto & Sood 2004).
    """
    forward[0] = 0.0
    for members in range(1, len(forward)):
        total = -math.inf
        for v in range(len(families)):
            if members >> v & 1:
                rest = members ^ (1 << v)
                total = log_add(total, forward[rest] + families[v, without_bit(rest, v)])
        forward[members] = total
    backward[-1] = 0.0
    for members in range(len(backward) - 2, -1, -1):
        total = -math.inf
        for v in range(len(families)):
            if not members >> v & 1:
                total = log_add(total, backward[members | (1 << v)] + families[v, without_bit(members, v)])
        backward[members] = total


@njit(cache=True, nogil=True, error_model="numpy")
def parents_of_into(
    v: int, scores: FloatArray, forward: FloatArray, backward: FloatArray, scratch: FloatArray, found: FloatArray
) -> None:
    """Write the posterior probability of each parent of v to `found` (p,).

    A parent set S goes with every set U ⊇ S of variables before v: p(S) ∝ e^{score(S)} Σ_{U ⊇ S} e^{forward[U] +
    backward[U ∪ v]}. `scores` and `scratch` are (2^(p−1),).
    """
    low = (1 << v) - 1
    for members in range(len(scratch)):
        before = (members & low) | ((members & ~low) << 1)
        scratch[members] = forward[before] + backward[before | (1 << v)]
    sum_supersets_into(scratch)
    found[:] = 0.0
    for members in range(len(scratch)):
        probability = math.exp(scores[members] + scratch[members] - forward[-1])
        if probability > 0.0:
            for j in range(len(found) - 1):
                if members >> j & 1:
                    found[j if j < v else j + 1] += probability
