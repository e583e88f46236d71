"""The exact E-step by brute force: every row, every joint state of all its unobserved cells, one at a time.

No components, no unique rows, no shared tables: it is the definition written down, and the compiled kernel is
tested against it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from lurking.types import BoolArray, FloatArray, IntArray


def completions(
    cardinalities: Sequence[int],
    parents: Sequence[Sequence[int]],
    offsets: Sequence[int],
    row: IntArray,
    keep: BoolArray,
) -> list[list[int]]:
    """Return, for every joint state of a row's unobserved cells, the flat positions of the families that are kept."""
    nodes = [j for j in range(len(cardinalities)) if keep[j]]
    free = [j for j in nodes if row[j] < 0]
    entries: list[list[int]] = []
    for states in itertools.product(*(range(cardinalities[j]) for j in free)):
        values = row.copy()
        values[free] = states
        index = []
        for j in nodes:
            configuration = 0
            for parent in parents[j]:
                configuration = configuration * cardinalities[parent] + int(values[parent])
            index.append(offsets[j] + configuration * cardinalities[j] + int(values[j]))
        entries.append(index)
    return entries


def expect(
    cardinalities: Sequence[int],
    parents: Sequence[Sequence[int]],
    offsets: Sequence[int],
    codes: IntArray,
    kept: BoolArray,
    weights: FloatArray,
    potentials: FloatArray,
) -> tuple[FloatArray, float]:
    """Return (N, log_z), log_z = Σ_i w_i ln Σ_{s_i} exp Σ_j φ_j and N = ∂ log_z / ∂φ.

    Parameters
    ----------
    cardinalities, parents, offsets : one entry per node; `offsets` is where the family begins in the flat vector.
    codes : (rows, nodes), −1 where unobserved.
    kept : (rows, nodes), False where an unobserved cell is left out of its row together with its family.
    weights : (rows,).
    potentials : flat vector φ; −inf allowed, with 0·(−inf) = 0.
    """
    counts = np.zeros_like(potentials)
    log_z = 0.0
    for row, keep, weight in zip(codes, kept, weights, strict=True):
        entries = completions(cardinalities, parents, offsets, row, keep)
        scores = [float(sum(potentials[i] for i in index)) for index in entries]
        top = max(scores)
        if weight == 0.0:
            continue
        if top == -math.inf:
            return np.zeros_like(potentials), -math.inf
        masses = [math.exp(score - top) for score in scores]
        total = sum(masses)
        log_z += weight * (top + math.log(total))
        for index, mass in zip(entries, masses, strict=True):
            for i in index:
                counts[i] += weight * mass / total
    return counts, log_z
