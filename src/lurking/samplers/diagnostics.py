"""How far a weighted sample can be trusted."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import logsumexp
from scipy.stats import t as student_t

from lurking.types import FloatArray

WIDENED = 1.4
"""Weights are skewed: where estimates happen to miss what is rare they are low and agree too well. ``python
benchmarks/honest.py`` measures how often values lie within two standard errors with this factor."""


def log_mean(log_weights: FloatArray) -> float:
    """Return ln of the mean weight."""
    return float(logsumexp(log_weights) - math.log(len(log_weights)))


def relative_error(log_weights: FloatArray) -> float:
    """Return the standard error of ln(mean weight): the spread of the weights over their mean and √G."""
    count = len(log_weights)
    if count < 2:
        return math.inf
    weights = np.exp(log_weights - log_mean(log_weights))
    return float(weights.std(ddof=1) / math.sqrt(count))


def widening(count: int) -> float:
    """Return the factor on the spread of `count` skewed weights that makes twice the standard error an honest range.

    With few of them the spread itself is uncertain: Student's factor over the normal one.
    """
    return WIDENED * float(student_t.ppf(0.975, max(count - 1, 1)) / 1.96)


def effective_sample_size(log_weights: FloatArray) -> float:
    """Return (Σ w)² / Σ w² (Kong 1992): how many equal weights would say as much."""
    return float(np.exp(2.0 * logsumexp(log_weights) - logsumexp(2.0 * log_weights)))


def pareto_k(log_weights: FloatArray) -> float:
    """Return the shape k of a generalised Pareto law fitted to the largest weights (Vehtari et al. 2024).

    The tail is the largest min(G/5, 3√G) weights, at least 5. The fit is that of Zhang & Stephens (2009), shrunk
    towards ½ with the weight of ten observations. Below 0.7 a mean of weights and its standard error can be trusted;
    nan with fewer than 10 weights, −inf when the tail is flat.
    """
    count = len(log_weights)
    if count < 10:
        return math.nan
    tail = max(5, int(min(count / 5, 3.0 * math.sqrt(count))))
    ordered = np.sort(np.exp(log_weights - log_weights.max()))
    excess = ordered[-tail:] - ordered[-tail - 1]
    if excess[-1] <= 1e-300 or excess[0] == excess[-1]:
        return -math.inf
    return _generalised_pareto_shape(excess)


def _generalised_pareto_shape(excess: FloatArray) -> float:
    """Return the shape of a generalised Pareto law for excesses in ascending order (Zhang & Stephens 2009)."""
    count = len(excess)
    grid = 30 + int(math.sqrt(count))
    quartile = excess[max(int(count / 4 + 0.5) - 1, 0)]
    b = 1.0 - np.sqrt(grid / (np.arange(1, grid + 1) - 0.5))
    b = b / (3.0 * max(quartile, 1e-300)) + 1.0 / excess[-1]
    k = np.log1p(-b[:, None] * excess).mean(axis=1)
    likelihood = count * (np.log(-b / k) - k - 1.0)
    weights = 1.0 / np.exp(likelihood - likelihood[:, None]).sum(axis=1)
    best = float((b * weights).sum() / weights.sum())
    shape = float(np.log1p(-best * excess).mean())
    return (count * shape + 10.0 * 0.5) / (count + 10.0)
