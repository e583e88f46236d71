"""ln Γ and ψ together: one logarithm and one division serve both."""

from __future__ import annotations

import math

from numba import njit

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
