"""ln Γ and ψ together, with one logarithm and one division for both, and the Dirichlet evidence of one table row."""

from __future__ import annotations

import math

from numba import njit

from lurking.types import FloatArray

STABLE_FROM = 30.0
HALF_LOG_TWO_PI = 0.9189385332046727418


@njit(cache=True, nogil=True, error_model="numpy")
def log_gamma_digamma(x: float) -> tuple[float, float]:
    """Return (ln Γ(x), ψ(x)) for x > 0.

    Recurrence up to x ≥ 10 (product and its derivative, so one division), then the Stirling series; the first
    neglected terms are below 1e-16 there.
    """
    product = 1.0
    derivative = 0.0
    while x < 10.0:
        derivative = derivative * x + product
        product *= x
        x += 1.0
    log_x = math.log(x)
    inverse = 1.0 / x
    square = inverse * inverse
    log_gamma = (
        (x - 0.5) * log_x
        - x
        + HALF_LOG_TWO_PI
        + inverse
        * (
            1.0 / 12.0
            - square
            * (
                1.0 / 360.0
                - square
                * (1.0 / 1260.0 - square * (1.0 / 1680.0 - square * (1.0 / 1188.0 - square * (691.0 / 360360.0))))
            )
        )
    )
    digamma = (
        log_x
        - 0.5 * inverse
        - square
        * (
            1.0 / 12.0
            - square
            * (
                1.0 / 120.0
                - square
                * (
                    1.0 / 252.0
                    - square * (1.0 / 240.0 - square * (1.0 / 132.0 - square * (691.0 / 32760.0 - square / 12.0)))
                )
            )
        )
    )
    if product != 1.0:
        log_gamma -= math.log(product)
        digamma -= derivative / product
    return log_gamma, digamma


@njit(cache=True, nogil=True, error_model="numpy")
def _stirling_tail(x: float) -> float:
    inverse = 1.0 / x
    square = inverse * inverse
    return inverse * (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square / 1680.0)))


@njit(cache=True, nogil=True, error_model="numpy")
def log_rising(base: float, log_gamma_base: float, increment: float, log_gamma_sum: float) -> float:
    """Return ln Γ(base + increment) − ln Γ(base), given both values, without their cancellation for large base.

    The twin of `lurking.kernels.reference.special.log_rising`.
    """
    if increment == 0.0:
        return 0.0
    if base < STABLE_FROM:
        return log_gamma_sum - log_gamma_base
    total = base + increment
    return (
        increment * math.log(base)
        + (total - 0.5) * math.log1p(increment / base)
        - increment
        + (_stirling_tail(total) - _stirling_tail(base))
    )


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def row_evidence(
    pseudo: FloatArray,
    log_gamma_pseudo: FloatArray,
    first: int,
    row_pseudo: float,
    log_gamma_row: float,
    counts: FloatArray,
    begin: int,
    end: int,
) -> float:
    """Return D(λ, N) of one table row with counts N = counts[begin:end], all ≥ 0.

    D(λ, N) = Σ_k [lnΓ(λ_k + N_k) − lnΓ(λ_k)] − [lnΓ(λ + Σ N) − lnΓ(λ)], λ = Σ λ_k = `row_pseudo`,

    where λ_k are the entries of `pseudo` from `first` on, and `log_gamma_pseudo` and `log_gamma_row` are the lnΓ of λ_k
    and λ. The twin of `lurking.kernels.reference.special.dirichlet_evidence`.
    """
    value, total = 0.0, 0.0
    for q in range(begin, end):
        count = counts[q]
        if count > 0.0:
            k = first + q - begin
            total += count
            value += log_rising(pseudo[k], log_gamma_pseudo[k], count, math.lgamma(pseudo[k] + count))
    if total > 0.0:
        value -= log_rising(row_pseudo, log_gamma_row, total, math.lgamma(row_pseudo + total))
    return value
