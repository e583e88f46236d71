"""The plain twin of `lurking.kernels.cpu.families`: a family's counts as one table over all configurations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import xlogy

from lurking.kernels.reference.special import table_evidence
from lurking.types import AnyArray, FloatArray, IntArray


def family_counts(
    codes: AnyArray, cardinalities: IntArray, weights: FloatArray, child: int, parents: Sequence[int]
) -> FloatArray:
    """Return N_lk (q, r) of rows `codes` (p, u): configurations row-major over the parents, first parent slowest."""
    scope = (*parents, child)
    shape = tuple(int(cardinalities[variable]) for variable in scope)
    table = np.zeros(shape)
    np.add.at(table, tuple(codes[variable] for variable in scope), weights)
    return table.reshape(-1, shape[-1])


def family_value(
    codes: AnyArray,
    cardinalities: IntArray,
    weights: FloatArray,
    child: int,
    parents: Sequence[int],
    alpha: float,
) -> float:
    """Return the log evidence of the family with pseudo-count α of every cell; its log-likelihood for α = 0."""
    counts = family_counts(codes, cardinalities, weights, child, parents)
    if alpha == 0.0:
        totals = counts.sum(axis=1)
        return float(xlogy(counts, counts).sum() - xlogy(totals, totals).sum())
    return float(table_evidence(alpha, counts))
