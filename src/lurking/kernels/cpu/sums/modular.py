"""Rank over the field of 2³¹ − 1 elements: no rounding, so no threshold between small and zero."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

_PRIME = np.uint64((1 << 31) - 1)
_BITS = np.uint64(31)


@njit(cache=True, nogil=True, error_model="numpy")
def _reduced(value: np.uint64) -> np.uint64:
    """Return a number below 2⁶² modulo 2³¹ − 1: since 2³¹ ≡ 1, its high bits are added to its low ones."""
    value = (value & _PRIME) + (value >> _BITS)
    value = (value & _PRIME) + (value >> _BITS)
    return value - _PRIME if value >= _PRIME else value


@njit(cache=True, nogil=True, error_model="numpy")
def _inverse(value: np.uint64) -> np.uint64:
    """Return 1/value = value^(P − 2) (Fermat)."""
    result, base, power = np.uint64(1), value, _PRIME - np.uint64(2)
    while power:
        if power & np.uint64(1):
            result = _reduced(result * base)
        base = _reduced(base * base)
        power >>= np.uint64(1)
    return result


@njit(cache=True, nogil=True, error_model="numpy")
def _add_multiple(factor: np.uint32, above: NDArray[np.uint32], here: NDArray[np.uint32]) -> None:
    """Add factor · above to a row, leaving entries of at most 2³¹.

    Two foldings without the last comparison: an entry may stay at 2³¹ − 1 or 2³¹ instead of 0 or 1, which does no
    harm in a product and lets the compiler take several entries at once.
    """
    for k in range(len(here)):
        value = np.uint64(here[k]) + np.uint64(factor) * np.uint64(above[k])
        value = (value & _PRIME) + (value >> _BITS)
        here[k] = np.uint32((value & _PRIME) + (value >> _BITS))


@njit(cache=True, nogil=True, error_model="numpy")
def rank_in_place(matrix: NDArray[np.uint32]) -> int:
    """Return the rank of a matrix (m, d) with entries below 2³¹ − 1, which is used up by the elimination."""
    rows, columns = matrix.shape
    rank = 0
    for column in range(columns):
        pivot = rank
        while pivot < rows and _reduced(np.uint64(matrix[pivot, column])) == 0:
            pivot += 1
        if pivot == rows:
            continue
        if pivot != rank:
            for k in range(column, columns):
                matrix[pivot, k], matrix[rank, k] = matrix[rank, k], matrix[pivot, k]
        inverse = _inverse(_reduced(np.uint64(matrix[rank, column])))
        for row in range(rank + 1, rows):
            share = _reduced(_reduced(np.uint64(matrix[row, column])) * inverse)
            if share:
                # Subtracting a multiple of the pivot's row is adding P minus it.
                _add_multiple(np.uint32(_PRIME - share), matrix[rank, column:], matrix[row, column:])
        rank += 1
        if rank == rows:
            break
    return rank
