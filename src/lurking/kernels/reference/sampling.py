"""Draws of what is unobserved by brute force: the twin of the compiled sampler, one pattern and one state at a time."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from lurking.types import BoolArray, FloatArray, IntArray


def draw_counts(
    cardinalities: Sequence[int],
    parents: Sequence[Sequence[int]],
    offsets: Sequence[int],
    codes: IntArray,
    kept: BoolArray,
    weights: FloatArray,
    potentials: FloatArray,
    generator: np.random.Generator,
) -> FloatArray:
    """Return the counts of one draw of all unobserved cells, p(s_i) ∝ exp Σ_j φ_j, weights as repeated rows, (P,).

    Arguments as in `lurking.kernels.reference.enumeration.expect`.
    """
    counts = np.zeros_like(potentials)
    for row, keep, weight in zip(codes, kept, weights, strict=True):
        nodes = [j for j in range(len(cardinalities)) if keep[j]]
        free = [j for j in nodes if row[j] < 0]
        entries, scores = [], []
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
            scores.append(float(sum(potentials[i] for i in index)))
        masses = np.exp(np.asarray(scores) - max(scores))
        for index, drawn in zip(entries, generator.multinomial(int(weight), masses / masses.sum()), strict=True):
            counts[index] += drawn
    return counts
