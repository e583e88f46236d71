"""The covariance of completed counts by brute force: the definition written down, one row and one state at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from lurking.kernels.reference.enumeration import completions
from lurking.types import BoolArray, FloatArray, IntArray


def covariance(
    cardinalities: Sequence[int],
    parents: Sequence[Sequence[int]],
    offsets: Sequence[int],
    codes: IntArray,
    kept: BoolArray,
    weights: FloatArray,
    potentials: FloatArray,
) -> FloatArray:
    """Return Σ_i w_i Cov_i[n], (P, P), the second derivative of log_z with respect to φ.

    n_is are the counts of row i completed by joint state s, and s has its posterior p_is ∝ exp(n_is · φ). The
    arguments are those of `kernels.reference.enumeration.expect`.
    """
    total = np.zeros((len(potentials), len(potentials)))
    for row, keep, weight in zip(codes, kept, weights, strict=True):
        entries = completions(cardinalities, parents, offsets, row, keep)
        scores = [float(sum(potentials[i] for i in index)) for index in entries]
        top = max(scores)
        if weight == 0.0 or top == -math.inf:
            continue
        masses = np.exp(np.asarray(scores) - top)
        masses /= masses.sum()
        counts = np.zeros((len(entries), len(potentials)))
        for s, index in enumerate(entries):
            np.add.at(counts[s], index, 1.0)
        mean = masses @ counts
        total += weight * (counts.T @ (masses[:, None] * counts) - np.outer(mean, mean))
    return total
