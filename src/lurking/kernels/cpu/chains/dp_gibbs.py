"""Collapsed Gibbs sweeps over the partition of a Dirichlet-process mixture (Neal 2000, algorithm 3).

Case i joins an occupied state k, or a new one, with probabilities

    p(z_i = k | z_−i, y) ∝ n_k Π_c (λ_c[y_ic] + N_kc[y_ic]) / (Σ λ_c + N_kc),     p(new) ∝ α Π_c λ_c[y_ic] / Σ λ_c,

all counts without case i; c runs over the columns that are observed in case i, since an empty cell is integrated out.
States live in *slots*, of which those with no case are free. Compiled functions write into arrays they are given and
return numbers only.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from scipy.special import gammaln

from lurking.kernels.cpu.special import row_evidence
from lurking.types import CodeArray, FloatArray, IntArray

SMALL = 1e-250


class Mixture(NamedTuple):
    """Cases and the counts of their partition; K slots, L levels of all columns together."""

    codes: CodeArray
    """(n, C) levels, −1 for an empty cell."""
    offsets: IntArray
    """(C + 1,) where the levels of each column begin among all levels."""
    pseudo: FloatArray
    """(L,) λ of each level."""
    row_pseudo: FloatArray
    """(C,) Σ λ over the levels of each column."""
    log_gamma_pseudo: FloatArray
    """(L,) lnΓ of the λ of each level."""
    log_gamma_row: FloatArray
    """(C,) lnΓ of their sums."""
    slots: IntArray
    """(n,) the slot of each case, −1 for one that has not entered."""
    sizes: IntArray
    """(K,) cases in each slot."""
    counts: FloatArray
    """(K, L) N_kc[y]."""
    totals: FloatArray
    """(K, C) N_kc, cases of the slot with the column observed."""


def empty_mixture(codes: CodeArray, offsets: IntArray, pseudo: FloatArray, n_slots: int) -> Mixture:
    """Return a mixture of `n_slots` slots in which no case has entered."""
    # Kernels are compiled once more for arrays that are read-only.
    offsets, pseudo = offsets.copy(), pseudo.copy()
    row_pseudo = np.add.reduceat(pseudo, offsets[:-1])
    return Mixture(
        codes=codes,
        offsets=offsets,
        pseudo=pseudo,
        row_pseudo=row_pseudo,
        log_gamma_pseudo=gammaln(pseudo),
        log_gamma_row=gammaln(row_pseudo),
        slots=np.full(len(codes), -1, np.int64),
        sizes=np.zeros(n_slots, np.int64),
        counts=np.zeros((n_slots, len(pseudo))),
        totals=np.zeros((n_slots, len(row_pseudo))),
    )


@njit(cache=True, nogil=True, error_model="numpy")
def _enter(mixture: Mixture, case: int, slot: int, by: int) -> None:
    """Add a case to a slot (by = 1) or take it out (by = −1)."""
    mixture.sizes[slot] += by
    for c in range(mixture.row_pseudo.shape[0]):
        code = mixture.codes[case, c]
        if code >= 0:
            mixture.counts[slot, mixture.offsets[c] + code] += by
            mixture.totals[slot, c] += by


@njit(cache=True, nogil=True, error_model="numpy")
def log_predictive(mixture: Mixture, case: int, slot: int) -> float:
    """Return ln Π_c (λ_c[y] + N_kc[y]) / (Σ λ_c + N_kc), the case being in no slot."""
    result, product = 0.0, 1.0
    for c in range(mixture.row_pseudo.shape[0]):
        code = mixture.codes[case, c]
        if code >= 0:
            level = mixture.offsets[c] + code
            product *= (mixture.pseudo[level] + mixture.counts[slot, level]) / (
                mixture.row_pseudo[c] + mixture.totals[slot, c]
            )
            if product < SMALL:  # many columns: the logarithm is taken before the product is lost
                result += math.log(product)
                product = 1.0
    return result + math.log(product)


@njit(cache=True, nogil=True, error_model="numpy")
def sweep(mixture: Mixture, concentration: float, first: int, generator: np.random.Generator, mass: FloatArray) -> int:
    """Draw the state of every case from `first` on given all others; `mass` (K,) is scratch.

    Returns n, or the case at which no slot was free: that case is in no slot, and the sweep goes on there once there
    are more slots.
    """
    n_slots = mixture.sizes.shape[0]
    for case in range(first, mixture.slots.shape[0]):
        if mixture.slots[case] >= 0:
            _enter(mixture, case, mixture.slots[case], -1)
            mixture.slots[case] = -1
        free, top = -1, -np.inf
        for k in range(n_slots):
            mass[k] = -np.inf
            if mixture.sizes[k] > 0:
                mass[k] = math.log(mixture.sizes[k]) + log_predictive(mixture, case, k)
            elif free < 0:
                free = k
                mass[k] = math.log(concentration) + log_predictive(mixture, case, k)
            top = max(top, mass[k])
        if free < 0:
            return case
        total = 0.0
        for k in range(n_slots):
            mass[k] = math.exp(mass[k] - top)
            total += mass[k]
        threshold = generator.random() * total
        slot = 0
        while slot < n_slots - 1 and threshold >= mass[slot]:
            threshold -= mass[slot]
            slot += 1
        while mass[slot] == 0.0:  # rounding may step past the last possible slot
            slot -= 1
        mixture.slots[case] = slot
        _enter(mixture, case, slot, 1)
    return int(mixture.slots.shape[0])


@njit(cache=True, nogil=True, error_model="numpy")
def log_joint(mixture: Mixture, concentration: float) -> float:
    """Return ln p(z, y | α): the partition's probability times the evidence of every occupied state.

    p(z | α) = α^K Γ(α) / Γ(α + n) Π_k Γ(n_k) (Antoniak 1974).
    """
    n = mixture.slots.shape[0]
    result = math.lgamma(concentration) - math.lgamma(concentration + n)
    for k in range(mixture.sizes.shape[0]):
        if mixture.sizes[k] == 0:
            continue
        result += math.log(concentration) + math.lgamma(mixture.sizes[k])
        for c in range(mixture.row_pseudo.shape[0]):
            begin, end = mixture.offsets[c], mixture.offsets[c + 1]
            row_pseudo, log_gamma_row = mixture.row_pseudo[c], mixture.log_gamma_row[c]
            result += row_evidence(
                mixture.pseudo,
                mixture.log_gamma_pseudo,
                begin,
                row_pseudo,
                log_gamma_row,
                mixture.counts[k],
                begin,
                end,
            )
    return result
