"""Sums over a group of relabelings, kept as a few listed ones that are each followed by all orders of some states.

Let x = cθ be θ under a listed relabeling c, and let h be hidden variables of which no two are in one family. Every flat
position then belongs to a state of at most one of them, and an order π_h of the states of each changes

    Σ_q (α_q − 1) ln x_q    to    rest(x) + Σ_h Σ_a G_h[a, π_h(a)],    G_h[a, b] = Σ_i (α_{h,a,i} − 1) ln x_{h,b,i},

where (h, a, i) is the i-th position of state a of h. (The root table of h is one Dirichlet over its states; its density
is a product over states but for the normaliser, which no order changes.) So the sum of g(θ)^γ over all relabelings is

    Σ_c exp γ rest(cθ) · Π_h per exp γ G_h(cθ),

with one permanent (`lurking.kernels.cpu.sums.permanent`) for each h and c. Without such h it is the plain sum over a
list.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.special import logsumexp, softmax

from lurking.types import BoolArray, FloatArray, IntArray

BLOCK = 1 << 21
"""Numbers in one work array at most, 16 MiB: relabelings and points are taken in blocks of that size."""


@dataclass(frozen=True, eq=False)
class Orders:
    """Relabelings π = (orders of states) after (a listed relabeling).

    Attributes
    ----------
    listed : (C, P) where each position of the relabelled vector comes from, (cθ) = θ[c]; the first is the identity.
    states : for every hidden variable all of whose orders follow, (r, w) the flat positions of each of its r states,
        in matching order. No position occurs twice.
    """

    listed: IntArray = field(repr=False)
    states: tuple[IntArray, ...] = field(default=(), repr=False)

    @property
    def log_count(self) -> float:
        """Ln of the number of relabelings, C · Π r!."""
        return math.log(len(self.listed)) + sum(math.lgamma(len(own) + 1.0) for own in self.states)

    @cached_property
    def is_rest(self) -> BoolArray:
        """(P,) the positions that belong to no state that is ordered."""
        result = np.ones(self.listed.shape[1], np.bool_)
        for own in self.states:
            result[own] = False
        return result

    def sums(self, alpha: FloatArray, log_theta: FloatArray, power: float) -> tuple[FloatArray, FloatArray]:
        """Return ln Σ_π exp γ Σ (α − 1) ln πθ of each point ln θ (points, P), and the largest exponent, (points,) each.

        γ = `power`.
        """
        totals, best = np.full(len(log_theta), -np.inf), np.full(len(log_theta), -np.inf)
        step = max(1, BLOCK // log_theta.shape[1])
        for begin in range(0, len(log_theta), step):
            here = slice(begin, begin + step)
            for terms, largest in self._terms(power * (alpha - 1.0), log_theta[here]):
                totals[here] = np.logaddexp(totals[here], logsumexp(terms, axis=0))
                best[here] = np.maximum(best[here], largest.max(axis=0))
        return totals, best

    def draw(self, alpha: FloatArray, log_theta: FloatArray, power: float, generator: np.random.Generator) -> IntArray:
        """Return a relabeling π of one point ln θ (P,), drawn with probability ∝ exp γ Σ (α − 1) ln πθ, as (P,)."""
        from lurking.kernels.cpu.sums.permanent import draw_order_into

        weights = power * (alpha - 1.0)
        terms = np.concatenate([own[:, 0] for own, _ in self._terms(weights, log_theta[None, :])])
        chosen: IntArray = self.listed[generator.choice(len(terms), p=softmax(terms))]
        result = chosen.copy()
        for own in self.states:
            order = np.empty(len(own), np.int64)
            gains = np.ascontiguousarray(weights[own] @ log_theta[chosen[own]].T)
            draw_order_into(gains, generator.random(len(own)), order)
            result[own] = chosen[own[order]]
        return result

    def _terms(self, weights: FloatArray, log_theta: FloatArray) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield ln of the terms of listed relabelings in turn, and the largest exponent in each, (block, points)."""
        n_points, size = log_theta.shape
        rest = np.where(self.is_rest, weights, 0.0)
        # Positions of ordered states are looked up for every point; the rest is one product of matrices for all.
        step = max(1, BLOCK // (size * n_points if self.states else max(size, n_points)))
        for begin in range(0, len(self.listed), step):
            listed = self.listed[begin : begin + step]
            # (cθ)[q] = θ[c[q]]: the sum over q of weight[q] ln θ[c[q]] has the inverse-permuted weights on ln θ.
            moved = np.empty((len(listed), size))
            np.put_along_axis(moved, listed, np.broadcast_to(rest, moved.shape), axis=1)
            terms = moved @ log_theta.T
            largest = terms.copy() if self.states else terms
            for own in self.states:
                log_sums, best = _over_orders(weights[own], log_theta[:, listed[:, own]])
                terms += log_sums.T
                largest += best.T
            yield terms, largest


def _over_orders(weights: FloatArray, log_theta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return ln per exp G and max_π Σ_a G[a, π(a)], G = `weights` (r, w) times ln x (points, listed, r, w)ᵀ.

    Both have the shape (points, listed).
    """
    from lurking.kernels.cpu.sums.permanent import log_permanents_into

    shape, size = log_theta.shape[:2], len(weights)
    # [b, a] instead of [a, b]: a permanent is that of the transpose.
    gains = np.ascontiguousarray((log_theta @ weights.T).reshape(-1, size, size))
    log_permanents, best = np.empty(len(gains)), np.empty(len(gains))
    log_permanents_into(gains, log_permanents, best)
    return log_permanents.reshape(shape), best.reshape(shape)
