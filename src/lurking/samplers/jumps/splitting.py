"""Splitting one state of a hidden variable in two, and merging two into one, with the Jacobian of the change.

Let h have r states and tables θ_h[l, k], and let each child c of h have rows θ_c[…, k, …, ·]. Splitting state a into
a and b takes auxiliary variables u_l in (0, 1), one for every row of θ_h, and v in ℝ^{K−1}, one for every row of a
child's table in which h = a (K states of the child):

    θ_h[l, a] → u_l θ_h[l, a],  θ_h[l, b] = (1 − u_l) θ_h[l, a]          |J| = Π_l θ_h[l, a]
    η_a = η + v,  η_b = η − v,  η = logits of the child's row            |J| = 2^{K−1} Π_k θ_ak θ_bk / θ_k

with η_k = ln θ_k − ln θ_K, k < K, for which |∂θ/∂η| = Π_k θ_k. Merging is the inverse: probabilities of the two states
add up, and a child's row is the normalised geometric mean of the two. The probability of accepting a split is
(Green 1995; Richardson & Green 1997)

    min(1, [p(y|θ', m') p(θ'|m') p(m')] / [p(y|θ, m) p(θ|m) p(m)] · 1/q(u, v) · |J|),

where both directions choose their states with the same probability. Tables are logarithms throughout; a child's table
has shape (B, r, A, K): configurations of the parents before h, states of h, those of the parents after h, own states.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from lurking.types import FloatArray

SPREAD = 1.25
"""Standard deviation of v: half the difference of two logits that are uniform as probabilities has about this one."""


class HiddenTables(NamedTuple):
    """The tables that a hidden variable has a part in, as logarithms."""

    own: FloatArray
    """(L, r) its own probabilities, one row for each configuration of its parents."""
    children: tuple[FloatArray, ...]
    """(B, r, A, K) of each child."""


class Auxiliary(NamedTuple):
    """The random numbers of a split."""

    shares: FloatArray
    """(L,) u, the share of the first of the two states."""
    shifts: tuple[FloatArray, ...]
    """(B, A, K − 1) v of each child."""

    @property
    def log_density(self) -> float:
        """The log density ln q(u, v): u uniform, v normal with standard deviation `SPREAD`."""
        constant = -math.log(SPREAD) - 0.5 * math.log(2.0 * math.pi)
        return sum(own.size * constant - 0.5 * float(np.square(own / SPREAD).sum()) for own in self.shifts)


def draw_auxiliary(tables: HiddenTables, generator: np.random.Generator) -> Auxiliary:
    """Return auxiliary variables for a split of one state."""
    # 1 − random() lies in (0, 1]; a share of exactly 1 would leave the other state impossible.
    shares = np.minimum(1.0 - generator.random(len(tables.own)), 1.0 - 2.0**-53)
    shapes = [(table.shape[0], table.shape[2], table.shape[3] - 1) for table in tables.children]
    return Auxiliary(shares, tuple(SPREAD * generator.standard_normal(shape) for shape in shapes))


def split(tables: HiddenTables, a: int, b: int, auxiliary: Auxiliary) -> tuple[HiddenTables, float]:
    """Split state `a`; its second half becomes state `b` of the new tables, others move up. Returns also ln |J|."""
    whole = tables.own[:, a]
    own = tables.own.copy()
    own[:, a] = whole + np.log(auxiliary.shares)
    own = np.insert(own, b, whole + np.log1p(-auxiliary.shares), axis=1)
    log_jacobian = float(whole.sum())
    children = []
    for table, shift in zip(tables.children, auxiliary.shifts, strict=True):
        row = table[:, a]
        logits = row[..., :-1] - row[..., -1:]
        first, second = _log_softmax(logits + shift), _log_softmax(logits - shift)
        log_jacobian += shift.size * math.log(2.0) + float(first.sum() + second.sum() - row.sum())
        changed = table.copy()
        changed[:, a] = first
        children.append(np.insert(changed, b, second, axis=1))
    return HiddenTables(own, tuple(children)), log_jacobian


def merge(tables: HiddenTables, a: int, b: int) -> tuple[HiddenTables, Auxiliary, float]:
    """Merge state `b` into state `a` (a ≠ b): the inverse of the split that gave them.

    Returns the tables, the auxiliary variables of that split, and its ln |J|. In the tables returned the merged state
    is a − (a > b).
    """
    whole = np.logaddexp(tables.own[:, a], tables.own[:, b])
    shares = np.exp(tables.own[:, a] - whole)
    own = tables.own.copy()
    own[:, a] = whole
    log_jacobian = float(whole.sum())
    children, shifts = [], []
    for table in tables.children:
        first, second = table[:, a], table[:, b]
        first_logits, second_logits = first[..., :-1] - first[..., -1:], second[..., :-1] - second[..., -1:]
        row = _log_softmax(0.5 * (first_logits + second_logits))
        shift = 0.5 * (first_logits - second_logits)
        log_jacobian += shift.size * math.log(2.0) + float(first.sum() + second.sum() - row.sum())
        changed = table.copy()
        changed[:, a] = row
        children.append(np.delete(changed, b, axis=1))
        shifts.append(shift)
    return HiddenTables(np.delete(own, b, axis=1), tuple(children)), Auxiliary(shares, tuple(shifts)), log_jacobian


def _log_softmax(logits: FloatArray) -> FloatArray:
    """Return ln θ (…, K) of logits (…, K − 1), the last state's being 0."""
    whole = np.concatenate([logits, np.zeros((*logits.shape[:-1], 1))], axis=-1)
    top = whole.max(axis=-1, keepdims=True)
    return np.asarray(whole - top - np.log(np.exp(whole - top).sum(axis=-1, keepdims=True)))
