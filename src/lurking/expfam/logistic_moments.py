"""Expectations of the logistic function under Gaussians, by quadrature."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.special import expit, log_expit, log_ndtr, ndtr, roots_hermitenorm, roots_legendre

from lurking.types import FloatArray

WIDE = 2.0
"""Standard deviation from which the integrand is split at 0, where Hermite nodes would be too far apart."""
HERMITE_NODES = 80
REACH = 40.0
"""Distance from 0 beyond which ln g is linear in float64."""
PIECES, LEGENDRE_NODES = 10, 20
CHUNK = 1 << 14


class LogisticMoments(NamedTuple):
    """E ln g(a), E g(−a) and −½ E g(a) g(−a): the value and its derivatives in mean and variance."""

    value: FloatArray
    of_mean: FloatArray
    of_variance: FloatArray


def logistic_moments(mean: FloatArray, variance: FloatArray) -> LogisticMoments:
    """Return the expectations for a ~ N(mean, variance), (k,) each; g(a) = 1 / (1 + e^−a).

    Narrow Gaussians take Gauss-Hermite nodes. For wide ones ln g(a) = min(a, 0) − ln(1 + e^−|a|): the first part has a
    closed form, and the second is near 0 only, where the density of a wide Gaussian is smooth.
    """
    parts = [_moments(mean[k : k + CHUNK], np.sqrt(variance[k : k + CHUNK])) for k in range(0, len(mean), CHUNK)]
    return LogisticMoments(*(np.concatenate(own) for own in zip(*parts, strict=True))) if parts else _nothing()


def _nothing() -> LogisticMoments:
    return LogisticMoments(np.empty(0), np.empty(0), np.empty(0))


def _moments(mean: FloatArray, deviation: FloatArray) -> LogisticMoments:
    """Return the moments of some Gaussians, narrow and wide ones apart."""
    result = LogisticMoments(np.empty(len(mean)), np.empty(len(mean)), np.empty(len(mean)))
    is_wide = deviation > WIDE
    for which, rule in ((~is_wide, _narrow), (is_wide, _wide)):
        if which.any():
            for whole, own in zip(result, rule(mean[which], deviation[which]), strict=True):
                whole[which] = own
    return result


def _narrow(mean: FloatArray, deviation: FloatArray) -> LogisticMoments:
    """Return Gauss-Hermite sums."""
    nodes, weights = _hermite()
    a = mean[:, None] + deviation[:, None] * nodes
    below = expit(-a)
    return LogisticMoments(log_expit(a) @ weights, below @ weights, -0.5 * (below * expit(a)) @ weights)


def _wide(mean: FloatArray, deviation: FloatArray) -> LogisticMoments:
    """Return closed forms of the linear parts, and Gauss-Legendre sums of the rest over both sides of 0."""
    nodes, weights = _legendre()
    scaled = mean / deviation
    right = _density(nodes - mean[:, None], deviation)
    left = _density(-nodes - mean[:, None], deviation)
    both = (right + left) * weights
    peak = np.exp(-0.5 * scaled**2) / np.sqrt(2.0 * np.pi)
    value = mean * ndtr(-scaled) - deviation * peak - both @ np.log1p(np.exp(-nodes))
    below = expit(-nodes)
    of_mean = np.exp(log_ndtr(-scaled)) + ((right - left) * weights) @ below
    return LogisticMoments(value, of_mean, -0.5 * both @ (below * expit(nodes)))


def _density(distance: FloatArray, deviation: FloatArray) -> FloatArray:
    """Return the density of N(0, deviation²) at distances (k, nodes)."""
    scale = deviation[:, None]
    return np.asarray(np.exp(-0.5 * (distance / scale) ** 2) / (scale * np.sqrt(2.0 * np.pi)))


@cache
def _hermite() -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights of the standard normal."""
    nodes, weights = roots_hermitenorm(HERMITE_NODES)
    return nodes, weights / weights.sum()


@cache
def _legendre() -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights of [0, REACH], in pieces of equal length."""
    nodes, weights = roots_legendre(LEGENDRE_NODES)
    half = 0.5 * REACH / PIECES
    middles = half * (2.0 * np.arange(PIECES) + 1.0)
    return (middles[:, None] + half * nodes).ravel(), np.tile(half * weights, PIECES)
