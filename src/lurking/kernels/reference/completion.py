"""The plain twin of `lurking.kernels.cpu.completion`: every joint state of the scope, row by row."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from lurking.types import AnyArray, FloatArray, IntArray


def expected_counts(
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
    scope: Sequence[int],
    sizes: Sequence[int],
) -> FloatArray:
    """Return Σ_rows w · p(scope | row) with one axis per variable of the scope."""
    result = np.zeros(tuple(sizes))
    for row, given in itertools.product(range(len(weights)), range(context.shape[1])):
        for states in itertools.product(*map(range, sizes)):
            value = float(weights[row] * context[row, given])
            wanted: dict[int, list[tuple[int, int]]] = {}
            for variable, state in zip(scope, states, strict=True):
                known = max(codes[variable, row], context_states[variable, given])
                if known >= 0:
                    value *= float(known == state)
                else:
                    at = int(digits_at[variable, row])
                    wanted.setdefault(int(instance_of[variable, row]), []).append((at, state))
            for instance, cells in wanted.items():
                value *= math.fsum(
                    tables[begin[instance] + given * n_states[instance] + joint]
                    for joint in range(n_states[instance])
                    if all(digits[at + joint] == state for at, state in cells)
                )
            result[states] += value
    return result
