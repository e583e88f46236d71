"""Gamma distributions of Poisson rates."""

from __future__ import annotations

import numpy as np
from scipy.special import digamma, gammaln

from lurking.expfam.base import Conjugate
from lurking.kernels.reference.special import log_rising
from lurking.types import FloatArray, IntArray


class PoissonRate(Conjugate):
    """Independent rates r of counts, one for each row.

    The statistics of a count y are (1, y), with base measure 1/y!. So η = (−r, ln r), h = (b, a) is Gamma(a) with rate
    b, and A(h) = lnΓ(a) − a ln b. The coordinate is ln r; the base measure 1/r cancels its Jacobian, so j = 0.
    """

    name = "count"

    def __init__(self, n_rows: int) -> None:
        self.row_start: IntArray = 2 * np.arange(n_rows + 1)
        self.coordinate_start: IntArray = np.arange(n_rows + 1)

    def rows(self, which: IntArray) -> PoissonRate:
        """Return the rates of some of the rows."""
        return PoissonRate(len(which))

    def log_normaliser(self, h: FloatArray) -> float:
        """Return Σ [lnΓ(a) − a ln b]."""
        b, a = h[0::2], h[1::2]
        return float((gammaln(a) - a * np.log(b)).sum())

    def log_evidence(self, prior: FloatArray, counts: FloatArray) -> float:
        """Return Σ [lnΓ(a + Σy) − lnΓ(a) − (a + Σy) ln(b + n) + a ln b], digits kept for large a and b."""
        (b, a), (n, total) = (prior[0::2], prior[1::2]), (counts[0::2], counts[1::2])
        return float((log_rising(a, total) - a * np.log1p(n / b) - total * np.log(b + n)).sum())

    def expected(self, h: FloatArray) -> FloatArray:
        """Return (−a/b, ψ(a) − ln b) of every row."""
        b, a = h[0::2], h[1::2]
        return _side_by_side(-a / b, digamma(a) - np.log(b))

    def mode(self, h: FloatArray, otherwise: FloatArray) -> FloatArray:
        """Return η at r = a/b; a row with b = 0 keeps `otherwise`."""
        b, a = h[0::2], h[1::2]
        with np.errstate(divide="ignore", invalid="ignore"):
            found = _side_by_side(-a / b, np.log(a) - np.log(b))
        return np.where(np.repeat(b > 0.0, 2), found, otherwise)

    def draw(self, h: FloatArray, generator: np.random.Generator) -> FloatArray:
        """Return η of one draw of every rate; small shapes are drawn in logarithms."""
        b, a = h[0::2], h[1::2]
        # A gamma variable of shape a is one of shape a + 1 times U^(1/a).
        log_rate = np.log(generator.standard_gamma(a + 1.0)) + np.log1p(-generator.random(len(a))) / a - np.log(b)
        return _side_by_side(-np.exp(log_rate), log_rate)

    def pack(self, h: FloatArray) -> FloatArray:
        """Return (ln b, ln a) of every row."""
        return np.asarray(np.log(h))

    def unpack(self, u: FloatArray) -> FloatArray:
        """Return (b, a) of every row."""
        return np.asarray(np.exp(u))

    def coordinates(self, eta: FloatArray) -> FloatArray:
        """Return ln r."""
        return np.asarray(eta[..., 1::2], np.float64)

    def natural(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return (−r, ln r) of every row; j = 0."""
        return _side_by_side(-np.exp(x), x), np.zeros(x.shape[:-1])

    def pull_back(self, x: FloatArray, g: FloatArray) -> FloatArray:
        """Return g₂ − r g₁."""
        return np.asarray(g[1::2] - np.exp(x) * g[0::2])

    def log_density(self, h: FloatArray, eta: FloatArray) -> float:
        """Return the log density of the rates."""
        return float(h @ eta) - float(eta[1::2].sum()) - self.log_normaliser(h)


def _side_by_side(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return first and second alternating along the last axis."""
    return np.asarray(np.stack([first, second], axis=-1).reshape(*first.shape[:-1], -1), np.float64)
