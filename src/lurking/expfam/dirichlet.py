"""Dirichlet distributions over the rows of conditional tables."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property

import numpy as np
from scipy.special import digamma, gammaln

from lurking.expfam.base import Conjugate
from lurking.kernels.reference.special import dirichlet_evidence, stirling_rest
from lurking.types import AnyArray, BoolArray, FloatArray, IntArray, read_only

LARGE = 1e7
"""Pseudo-counts that are larger than the counts by this factor leave few digits in α ln θ."""


class Dirichlet(Conjugate):
    """Independent Dirichlet distributions, one for each row; rows may differ in length.

    h = α, η = ln θ, and A(α) = Σ_k lnΓ(α_k) − lnΓ(Σ_k α_k). The coordinates of a row are the logits ln θ_k − ln θ_r
    of all states but the last; the base measure 1 / Π θ_k cancels their Jacobian, so j = 0.
    """

    name = "table"

    def __init__(self, row_start: IntArray) -> None:
        self.row_start = row_start

    @cached_property
    def lengths(self) -> IntArray:
        """(R,) number of states of each row."""
        return self.row_start[1:] - self.row_start[:-1]

    @cached_property
    def coordinate_start(self) -> IntArray:  # type: ignore[override]
        """(R + 1,) first coordinate of each row: one less than it has states."""
        return self.row_start - np.arange(len(self.row_start))

    @cached_property
    def _is_last(self) -> BoolArray:
        """(P,) whether a position is the last of its row."""
        result = np.zeros(int(self.row_start[-1]), np.bool_)
        result[self.row_start[1:] - 1] = True
        return result

    def rows(self, which: IntArray) -> Dirichlet:
        """Return the Dirichlet distributions of some of the rows."""
        row_start = np.zeros(len(which) + 1, np.int64)
        np.cumsum(self.lengths[which], out=row_start[1:])
        return Dirichlet(row_start)

    def row_sums(self, flat: FloatArray) -> FloatArray:
        """Return the sum of each row, (R,) or (m, R)."""
        if not len(self.lengths):
            return np.zeros((*flat.shape[:-1], 0))
        return np.asarray(np.add.reduceat(flat, self.row_start[:-1], axis=-1), np.float64)

    def spread(self, rows: AnyArray) -> AnyArray:
        """Return the value of its row for every position."""
        return rows[..., self.row_of]

    @cached_property
    def row_of(self) -> IntArray:
        """(P,) the row of each position."""
        return read_only(np.repeat(np.arange(len(self.row_start) - 1), self.lengths))

    def log_evidence(self, prior: FloatArray, counts: FloatArray) -> float:
        """Return D(λ, N), the log evidence of (possibly fractional) counts; see `dirichlet_evidence`."""
        return float(dirichlet_evidence(prior, counts, self.row_sums(prior), self.row_sums(counts)))

    def expected(self, h: FloatArray) -> FloatArray:
        """Return E[ln θ] = ψ(α_jlk) − ψ(Σ_k α_jlk), (P,) (beal-ghahramani-2006, eq. 60)."""
        return np.asarray(digamma(h) - self.spread(digamma(self.row_sums(h))), np.float64)

    def mode(self, h: FloatArray, otherwise: FloatArray) -> FloatArray:
        """Return ln (h_k / Σ h); a row whose h sums to 0 keeps `otherwise`."""
        totals = self.spread(self.row_sums(h))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(totals > 0.0, np.log(h / totals), otherwise)

    def draw(self, h: FloatArray, generator: np.random.Generator) -> FloatArray:
        """Return ln θ of one draw, exact down to α = 1e-300."""
        log_theta = np.empty(len(h))
        _drawer()(self.row_start, h, generator, log_theta)
        return log_theta

    def log_normaliser(self, h: FloatArray) -> float:
        """Return Σ_jl [Σ_k lnΓ(α_jlk) − lnΓ(Σ_k α_jlk)]."""
        return -float(gammaln(self.row_sums(h)).sum() - gammaln(h).sum())

    def pack(self, h: FloatArray) -> FloatArray:
        """Return ln α."""
        return np.asarray(np.log(h))

    def unpack(self, u: FloatArray) -> FloatArray:
        """Return α."""
        return np.asarray(np.exp(u))

    def coordinates(self, eta: FloatArray) -> FloatArray:
        """Return the logits against the last state of each row."""
        last = self.spread(eta[..., self.row_start[1:] - 1])
        return np.asarray((eta - last)[..., ~self._is_last])

    def natural(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return ln softmax of the logits, the last one of each row 0; j = 0."""
        logits = np.zeros((*x.shape[:-1], len(self._is_last)))
        logits[..., ~self._is_last] = x
        return self.unpack_point(logits), np.zeros(x.shape[:-1])

    def pull_back(self, x: FloatArray, g: FloatArray) -> FloatArray:
        """Return g_k − θ_k Σ g for every state but the last."""
        theta = np.exp(self.natural(x)[0])
        return np.asarray((g - theta * self.spread(self.row_sums(g)))[~self._is_last])

    def pack_point(self, eta: FloatArray) -> FloatArray:
        """Return ln θ, zeros of θ included."""
        return eta

    def unpack_point(self, u: FloatArray) -> FloatArray:
        """Return ln θ, θ ∝ exp(u) in every row."""
        if not len(self.lengths):
            return u
        tops = self.spread(np.maximum.reduceat(u, self.row_start[:-1], axis=-1))
        totals = self.spread(np.add.reduceat(np.exp(u - tops), self.row_start[:-1], axis=-1))
        return np.asarray(u - (tops + np.log(totals)))

    def over_parameters(self, h: FloatArray) -> FloatArray:
        """Return α − 1: the density over probabilities is ∝ Π θ^(α − 1)."""
        return h - 1.0

    def log_density(self, h: FloatArray, eta: FloatArray) -> float:
        """Return Σ_jl ln Dir(θ_jl; α_jl), the density over probabilities; ±inf on the boundary unless α = 1 there."""
        exponent = h - 1.0
        terms = np.where(exponent == 0.0, 0.0, exponent * np.where(exponent == 0.0, 0.0, eta))
        with np.errstate(invalid="ignore"):  # +inf and −inf together: the density has no value there, and NaN says so
            return float(terms.sum()) - self.log_normaliser(h)

    def log_density_after(self, h: FloatArray, eta: FloatArray, added: FloatArray, power: float) -> float:
        """Return Σ_jl ln [Dir(θ_jl; α_jl) Π_k θ_jlk^(1 − power)] at θ ∝ α + `added`, given as ln θ too.

        power = 1 is the density over probabilities, 0 that over logits. With large α the logarithm of θ, rounded, times
        α has no digits left. In rows where α is much larger than `added`, it is taken from the distance to the mean m:
        ln θ_k − ln m_k = log1p(added_k / α_k) − log1p(Σ added / Σ α), and
        ln [Dir(m; α) Π m] = ½ Σ ln α_k − ½ ln A − (r − 1)/2 · ln 2π + (rests of Stirling's formula), A = Σ α.
        """
        totals, shifts = self.row_sums(h), self.row_sums(added)
        is_large = totals > LARGE * np.maximum(1.0, np.maximum(np.abs(shifts), self.lengths))
        large = self.spread(is_large)
        exponent = h - power
        direct = np.where(exponent == 0.0, 0.0, exponent * np.where(exponent == 0.0, 0.0, eta))
        value = float(gammaln(totals[~is_large]).sum() - gammaln(h[~large]).sum() + direct[~large].sum())
        if not is_large.any():
            return value
        a, rows, total = h[large], self.spread(np.arange(len(totals)))[large], totals[is_large]
        peak = (
            0.5 * np.log(a).sum() - 0.5 * np.log(total).sum() - 0.5 * np.log(2.0 * np.pi) * float(len(a) - len(total))
        )
        peak += stirling_rest(total).sum() - stirling_rest(a).sum()
        away = np.log1p(added[large] / a) - np.log1p(shifts / totals)[rows]
        mean = np.log(a) - np.log(totals)[rows]
        used = exponent[large] != 0.0
        return value + float(peak + (exponent[large] * away)[used].sum() - power * mean.sum())


@cache
def _drawer() -> Callable[..., None]:
    """Return the compiled draw, imported once: a sampler draws thousands of times."""
    from lurking.kernels.cpu.sampling import draw_log_theta

    return draw_log_theta
