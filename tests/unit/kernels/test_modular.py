"""The rank over a prime field against elimination with Python's integers."""

import numpy as np
import pytest

from lurking.inference.dimension.projections import PRIME
from lurking.kernels.cpu.sums.modular import rank_in_place
from lurking.kernels.reference.modular import rank_modulo


@pytest.mark.parametrize(
    ("rows", "columns", "rank"), [(1, 1, 1), (7, 4, 4), (4, 7, 3), (12, 12, 12), (13, 11, 5), (3, 3, 0)]
)
def test_a_product_of_random_factors_has_the_rank_of_the_factors(rows, columns, rank):
    generator = np.random.default_rng(rows * columns + rank)
    left = generator.integers(0, PRIME, (rows, rank)).astype(object)
    right = generator.integers(0, PRIME, (rank, columns)).astype(object)
    matrix = (left @ right % PRIME if rank else np.zeros((rows, columns))).astype(np.uint32)
    assert rank_modulo(matrix.tolist(), PRIME) == rank
    assert rank_in_place(matrix.copy()) == rank


def test_entries_that_vanish_modulo_the_prime_are_no_pivots():
    # The second row is −1 times the first: their sum is the prime itself in every entry.
    first = np.asarray([1, 5, PRIME - 1], np.uint32)
    matrix = np.stack([first, (PRIME - first.astype(np.int64)).astype(np.uint32), [0, 0, 1]]).astype(np.uint32)
    assert rank_modulo(matrix.tolist(), PRIME) == rank_in_place(matrix) == 2


def test_small_entries_with_many_ties():
    generator = np.random.default_rng(0)
    for _ in range(40):
        matrix = generator.choice([0, 1, 2, PRIME - 1, PRIME - 2], size=(6, 6)).astype(np.uint32)
        assert rank_in_place(matrix.copy()) == rank_modulo(matrix.tolist(), PRIME)
