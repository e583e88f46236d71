"""The plain twin of `lurking.kernels.cpu.sums.permanent`: the programme over subsets in logarithms."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from lurking.types import FloatArray


def log_permanent(gains: FloatArray) -> float:
    """Return ln Σ_π exp Σ_a g[a, π(a)] over all orders π of the columns of `gains` (r, r)."""
    size = len(gains)
    sums = np.zeros(1 << size)
    for members in range(1, 1 << size):
        states = [b for b in range(size) if members >> b & 1]
        rest = [members ^ (1 << b) for b in states]
        sums[members] = logsumexp(sums[rest] + gains[len(states) - 1, states])
    return float(sums[-1])
