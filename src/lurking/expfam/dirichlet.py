"""Independent Dirichlet distributions over the rows of a flat vector.

Rows are given by `row_start` (R + 1,), the first position of each row and a closing entry.
"""

from __future__ import annotations

import numpy as np
from scipy.special import digamma, gammaln, xlogy

from lurking.kernels.reference.special import log_rising, stirling_rest
from lurking.types import FloatArray, IntArray

LARGE = 1e7
"""Pseudo-counts that are larger than the counts by this factor leave few digits in α ln θ."""


def _row_sums(row_start: IntArray, flat: FloatArray) -> FloatArray:
    return np.asarray(np.add.reduceat(flat, row_start[:-1]), np.float64)


def log_evidence(row_start: IntArray, pseudo: FloatArray, counts: FloatArray) -> float:
    """Return D(λ, N), the log evidence of (possibly fractional) counts.

    Σ_jl [lnΓ(λ_jl) − lnΓ(λ_jl + N_jl) + Σ_k lnΓ(λ_jlk + N_jlk) − lnΓ(λ_jlk)]
    (beal-ghahramani-2006, eq. 5; chickering-heckerman-1996, eq. 5).
    """
    entries = log_rising(pseudo, counts)
    rows = log_rising(_row_sums(row_start, pseudo), _row_sums(row_start, counts))
    return float(entries.sum() - rows.sum())


def expected_logs(row_start: IntArray, alpha: FloatArray) -> FloatArray:
    """Return E[ln θ] = ψ(α_jlk) − ψ(Σ_k α_jlk), (P,) (beal-ghahramani-2006, eq. 60)."""
    totals = digamma(_row_sums(row_start, alpha))
    return np.asarray(digamma(alpha) - np.repeat(totals, np.diff(row_start)), np.float64)


def log_normaliser(row_start: IntArray, alpha: FloatArray) -> float:
    """Return Σ_jl [lnΓ(Σ_k α_jlk) − Σ_k lnΓ(α_jlk)], the log constant of the densities."""
    return float(gammaln(_row_sums(row_start, alpha)).sum() - gammaln(alpha).sum())


def log_density(row_start: IntArray, alpha: FloatArray, log_theta: FloatArray) -> float:
    """Return Σ_jl ln Dir(θ_jl; α_jl), the density over probabilities; ±inf on the boundary unless α = 1 there."""
    exponent = alpha - 1.0
    terms = np.where(exponent == 0.0, 0.0, exponent * np.where(exponent == 0.0, 0.0, log_theta))
    with np.errstate(invalid="ignore"):  # +inf and −inf together: the density has no value there, and NaN says so
        return log_normaliser(row_start, alpha) + float(terms.sum())


def log_density_after(
    row_start: IntArray, alpha: FloatArray, log_theta: FloatArray, added: FloatArray, power: float = 1.0
) -> float:
    """Return Σ_jl ln [Dir(θ_jl; α_jl) Π_k θ_jlk^(1 − power)] at θ ∝ α + `added`, given as `log_theta` too.

    power = 1 is the density over probabilities, 0 that over logits. With large α the logarithm of θ, rounded, times α
    has no digits left. In rows where α is much larger than what is added, it is taken from the distance to the mean m:
    ln θ_k − ln m_k = log1p(added_k / α_k) − log1p(Σ added / Σ α), and
    ln [Dir(m; α) Π m] = ½ Σ ln α_k − ½ ln A − (r − 1)/2 · ln 2π + (rests of Stirling's formula), A = Σ α.
    """
    totals, lengths = _row_sums(row_start, alpha), np.diff(row_start)
    shifts = _row_sums(row_start, added)
    is_large = totals > LARGE * np.maximum(1.0, np.maximum(np.abs(shifts), lengths))
    large = np.repeat(is_large, lengths)
    exponent = alpha - power
    direct = np.where(exponent == 0.0, 0.0, exponent * np.where(exponent == 0.0, 0.0, log_theta))
    value = float(gammaln(totals[~is_large]).sum() - gammaln(alpha[~large]).sum() + direct[~large].sum())
    if not is_large.any():
        return value
    a, rows, total = alpha[large], np.repeat(np.arange(len(totals)), lengths)[large], totals[is_large]
    peak = 0.5 * np.log(a).sum() - 0.5 * np.log(total).sum() - 0.5 * np.log(2.0 * np.pi) * float(len(a) - len(total))
    peak += stirling_rest(total).sum() - stirling_rest(a).sum()
    away = np.log1p(added[large] / a) - np.log1p(shifts / totals)[rows]
    mean = np.log(a) - np.log(totals)[rows]
    used = exponent[large] != 0.0
    return value + float(peak + (exponent[large] * away)[used].sum() - power * mean.sum())


def kl_divergence(row_start: IntArray, alpha: FloatArray, reference: FloatArray) -> float:
    """Return Σ_jl KL[Dir(α_jl) ‖ Dir(reference_jl)]."""
    gain = float(((alpha - reference) * expected_logs(row_start, alpha)).sum())
    return log_normaliser(row_start, alpha) - log_normaliser(row_start, reference) + gain


def complete_loglik(counts: FloatArray, theta: FloatArray) -> float:
    """Return Σ N ln θ with 0·ln 0 = 0."""
    return float(xlogy(counts, theta).sum())
