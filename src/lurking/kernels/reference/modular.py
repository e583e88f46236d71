"""The plain twin of `lurking.kernels.cpu.sums.modular`: Gaussian elimination with Python's integers."""

from __future__ import annotations

from collections.abc import Sequence


def rank_modulo(rows: Sequence[Sequence[int]], prime: int) -> int:
    """Return the rank of a matrix of whole numbers over the field of a prime number of elements."""
    left = [[int(value) % prime for value in row] for row in rows]
    rank = 0
    for column in range(len(left[0]) if left else 0):
        pivot = next((row for row in left if row[column]), None)
        if pivot is None:
            continue
        left.remove(pivot)
        inverse = pow(pivot[column], -1, prime)
        left = [[(a - row[column] * inverse * b) % prime for a, b in zip(row, pivot, strict=True)] for row in left]
        rank += 1
    return rank
