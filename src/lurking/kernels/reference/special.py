"""Gamma-function differences that keep their digits, and the Dirichlet evidence of counts made of them."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from lurking.types import FloatArray

STABLE_FROM = 30.0
"""From this pseudo-count on, lnΓ(a + x) − lnΓ(a) is taken from the difference of Stirling series."""


def _stirling_tail(x: FloatArray) -> FloatArray:
    """Return lnΓ(x) − [(x − ½) ln x − x + ½ ln 2π] for x ≥ 30, by its asymptotic series."""
    inverse = 1.0 / x
    square = inverse * inverse
    return inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680)))


def stirling_rest(x: FloatArray) -> FloatArray:
    """Return lnΓ(x) − [(x − ½) ln x − x + ½ ln 2π] for any x > 0; 1 / 12x and less for large x."""
    x = np.asarray(x, np.float64)
    large = x >= STABLE_FROM
    small = np.where(large, 1.0, x)
    plain = gammaln(small) - ((small - 0.5) * np.log(small) - small + 0.5 * np.log(2.0 * np.pi))
    return np.where(large, _stirling_tail(np.where(large, x, STABLE_FROM)), plain)


def log_rising(base: FloatArray, increment: FloatArray) -> FloatArray:
    """Return ln Γ(base + increment) − ln Γ(base), elementwise.

    The plain difference loses about ε·base·ln(base) in absolute terms, which is 1e-9 at base = 1e6. For large base
    the leading terms are combined before they are rounded:
    increment·ln(base) + (base + increment − ½)·log1p(increment / base) − increment + tail difference.
    """
    large = np.asarray(base) >= STABLE_FROM
    result = np.asarray(gammaln(base + increment) - gammaln(base))
    if large.any():
        base, increment = np.broadcast_arrays(np.asarray(base, float), np.asarray(increment, float))
        large = base >= STABLE_FROM
        a, x = base[large], increment[large]
        result[large] = (
            x * np.log(a) + (a + x - 0.5) * np.log1p(x / a) - x + (_stirling_tail(a + x) - _stirling_tail(a))
        )
    return np.where(increment == 0.0, 0.0, result)


def dirichlet_evidence(
    pseudo: FloatArray | float, counts: FloatArray, row_pseudo: FloatArray | float, row_counts: FloatArray
) -> FloatArray:
    """Return D(λ, N), the log evidence of (possibly fractional) counts under Dirichlet rows, (…,).

    D(λ, N) = Σ_lk [lnΓ(λ_lk + N_lk) − lnΓ(λ_lk)] − Σ_l [lnΓ(λ_l + N_l) − lnΓ(λ_l)]
    (beal-ghahramani-2006, eq. 5; chickering-heckerman-1996, eq. 5).

    `pseudo` and `counts` (…, P) contain the entries of all rows, `row_pseudo` and `row_counts` (…, R) the row sums.
    Pseudo-counts may have fewer axes than counts, and entries without counts may be omitted.
    """
    entries = log_rising(np.asarray(pseudo), counts).sum(axis=-1)
    return np.asarray(entries - log_rising(np.asarray(row_pseudo), row_counts).sum(axis=-1))


def table_evidence(pseudo: float, counts: FloatArray) -> FloatArray:
    """Return D(λ, N) of tables (…, R, r) with the same λ in every entry, (…,)."""
    *leading, rows, states = counts.shape
    entries = counts.reshape(*leading, rows * states)
    return dirichlet_evidence(pseudo, entries, states * pseudo, counts.sum(axis=-1))
