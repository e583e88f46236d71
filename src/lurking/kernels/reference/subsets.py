"""The plain twins of `lurking.kernels.cpu.sums.subsets`: every order of the variables written out."""

from __future__ import annotations

import itertools

import numpy as np
from scipy.special import logsumexp

from lurking.types import FloatArray


def _position(members: int, v: int) -> int:
    """Return the place of a parent set of v, as bits over all variables, in the table of v."""
    return (members & ((1 << v) - 1)) | ((members >> (v + 1)) << v)


def _subsets(members: int) -> list[int]:
    """Return all subsets, as bits."""
    return [chosen for chosen in range(members + 1) if chosen & ~members == 0]


def best_score(scores: FloatArray) -> float:
    """Return the score of the best structure from scores of parent sets (p, 2^(p−1))."""
    size = len(scores)
    best = -np.inf
    for order in itertools.permutations(range(size)):
        total, before = 0.0, 0
        for v in order:
            total += max(scores[v, _position(parents, v)] for parents in _subsets(before))
            before |= 1 << v
        best = max(best, total)
    return float(best)


def edge_probabilities(scores: FloatArray) -> FloatArray:
    """Return p(x → y), (p, p), when every order and all parent sets that agree with it are equally likely at first."""
    size = len(scores)
    logs, shares = [], []
    for order in itertools.permutations(range(size)):
        total, before = 0.0, 0
        share = np.zeros((size, size))
        for v in order:
            parents = _subsets(before)
            values = np.asarray([scores[v, _position(chosen, v)] for chosen in parents])
            total += float(logsumexp(values))
            weights = np.exp(values - logsumexp(values)) if np.isfinite(values).any() else np.zeros(len(values))
            for chosen, weight in zip(parents, weights, strict=True):
                share[[x for x in range(size) if chosen >> x & 1], v] += weight
            before |= 1 << v
        logs.append(total)
        shares.append(share)
    posterior = np.exp(np.asarray(logs) - logsumexp(logs))
    return np.asarray(np.tensordot(posterior, np.asarray(shares), 1), np.float64)
