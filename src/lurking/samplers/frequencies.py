"""Means over chains with Monte Carlo errors, by batches of consecutive draws."""

from __future__ import annotations

import math

import numpy as np

from lurking.types import FloatArray, IntArray


def batches(chains: int, draws: int) -> IntArray:
    """Return (chains, draws) the batch of every draw.

    Each chain has about draws^⅓ batches: their length, draws^⅔, grows faster than their number, so that means of
    batches become independent (Flegal & Jones 2010).
    """
    count = max(1, round(draws ** (1.0 / 3.0)))
    within = np.arange(draws) * count // draws
    return np.asarray(np.arange(chains)[:, None] * count + within, np.int64)


def mean_error(values: FloatArray) -> float:
    """Return the standard error of the mean of a quantity, (chains, draws); inf, not known, for a single batch."""
    batch = batches(*values.shape).ravel()
    sizes = np.bincount(batch)
    if len(sizes) < 2:
        return math.inf
    means = np.bincount(batch, weights=values.ravel()) / sizes
    return float(means.std(ddof=1) / math.sqrt(len(sizes)))


def share_errors(visits: IntArray, count: int) -> FloatArray:
    """Return the standard error of the share of draws at each of `count` places, (count,); `visits` (chains, draws).

    It is inf, not known, for a single batch.
    """
    batch = batches(*visits.shape).ravel()
    sizes = np.bincount(batch)
    if len(sizes) < 2:
        return np.full(count, math.inf)
    shares = np.bincount(visits.ravel() * len(sizes) + batch, minlength=count * len(sizes)).reshape(count, -1) / sizes
    return np.asarray(shares.std(axis=1, ddof=1) / math.sqrt(len(sizes)))
