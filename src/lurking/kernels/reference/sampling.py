"""Draws of what is unobserved by brute force: the twin of the compiled sampler, one pattern and one state at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lurking.kernels.reference.enumeration import completions
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
        entries = completions(cardinalities, parents, offsets, row, keep)
        scores = [float(sum(potentials[i] for i in index)) for index in entries]
        masses = np.exp(np.asarray(scores) - max(scores))
        for index, drawn in zip(entries, generator.multinomial(int(weight), masses / masses.sum()), strict=True):
            np.add.at(counts, index, drawn)
    return counts
