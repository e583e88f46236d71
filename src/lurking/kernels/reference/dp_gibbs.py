"""The Dirichlet-process mixture by brute force: evidence of whole partitions, and conditionals as their ratios."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import lgamma, log

import numpy as np

from lurking.kernels.reference.special import table_evidence
from lurking.types import CodeArray, FloatArray


def partitions(n: int) -> Iterator[tuple[int, ...]]:
    """Yield all set partitions of n cases as states numbered by first appearance (restricted growth strings)."""
    if n == 0:
        yield ()
        return
    for head in partitions(n - 1):
        for state in range(max(head, default=-1) + 2):
            yield (*head, state)


def log_joint(
    codes: CodeArray, levels: Sequence[int], pseudo: Sequence[float], states: Sequence[int], concentration: float
) -> float:
    """Return ln p(z, y | α); `codes` (n, C) with −1 for empty cells, which are integrated out."""
    z = np.asarray(states)
    result = lgamma(concentration) - lgamma(concentration + len(z))
    for k in np.unique(z):
        result += log(concentration) + lgamma(int((z == k).sum()))
        for c, (count, weight) in enumerate(zip(levels, pseudo, strict=True)):
            column = codes[z == k, c]
            counts = np.bincount(column[column >= 0], minlength=count).astype(np.float64)
            result += float(table_evidence(weight, counts[None, :]))
    return result


def conditional(
    codes: CodeArray,
    levels: Sequence[int],
    pseudo: Sequence[float],
    states: Sequence[int],
    case: int,
    concentration: float,
) -> FloatArray:
    """Return the probabilities of one case's state, (K + 1,): those of the other cases ascending, and a new one."""
    others = [state for k, state in enumerate(states) if k != case]
    choices = [*sorted(set(others)), max(others, default=-1) + 1]
    scores = []
    for choice in choices:
        moved = [*states[:case], choice, *states[case + 1 :]]
        scores.append(log_joint(codes, levels, pseudo, moved, concentration))
    masses = np.exp(np.asarray(scores) - max(scores))
    return np.asarray(masses / masses.sum())
