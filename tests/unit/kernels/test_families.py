"""Counts of families: the compiled kernel against one table over all configurations."""

import numpy as np
import pytest

from lurking.kernels.cpu.families import additions_into, refine_into, sort_by_key
from lurking.kernels.reference.families import family_counts, family_value


def problem(seed, n_rows, sizes, kind=np.uint8):
    rng = np.random.default_rng(seed)
    sizes = np.asarray(sizes)
    codes = np.stack([rng.integers(0, size, n_rows) for size in sizes]).astype(kind)
    return codes, sizes, rng.gamma(1.0, 2.0, n_rows)


def keys_of(codes, sizes, parents):
    keys, count = np.zeros(codes.shape[1], np.int64), 1
    for parent in parents:
        finer = np.empty_like(keys)
        count = refine_into(keys, count, codes[parent], sizes[parent], finer)
        keys = finer
    return keys, count


def compiled(codes, sizes, weights, child, parents, candidates, alpha):
    keys, count = keys_of(codes, sizes, parents)
    values = np.empty(len(candidates))
    alphas = np.full(len(candidates), alpha)
    additions_into(codes, sizes, weights, keys, count, child, np.asarray(candidates), alphas, values)
    return values


@pytest.mark.parametrize("n_rows", [0, 1, 3, 50, 1001])
@pytest.mark.parametrize("alpha", [0.0, 1e-6, 1e-3, 1.0, 40.0, 1e6])
def test_dense_counts(n_rows, alpha):
    codes, sizes, weights = problem(n_rows, n_rows, [2, 3, 4, 1, 3])
    values = compiled(codes, sizes, weights, 0, (1, 3), [-1, 2, 4], alpha)
    for candidate, value in zip([(), (2,), (4,)], values, strict=True):
        assert value == pytest.approx(
            family_value(codes, sizes, weights, 0, (1, 3, *candidate), alpha), rel=1e-12, abs=1e-12
        )


@pytest.mark.parametrize("kind", [np.uint8, np.int32])
@pytest.mark.parametrize("alpha", [0.0, 1e-4, 1.0])
def test_more_cells_than_rows(kind, alpha):
    """Keys are numbered anew, and groups of rows are counted one by one, when the full table would be too large."""
    codes, sizes, weights = problem(5, 300, [20, 25, 30, 12, 40], kind)
    codes[1] = codes[2] % 25  # some configurations hold several rows
    values = compiled(codes, sizes, weights, 0, (1, 2, 3), [-1, 4], alpha)
    counts = {}
    for parents in [(1, 2, 3), (1, 2, 3, 4)]:
        rows = [tuple(codes[list(parents), i]) for i in range(300)]
        for i, row in enumerate(rows):
            counts.setdefault((parents, row), np.zeros(20))[codes[0, i]] += weights[i]
    for value, parents in zip(values, [(1, 2, 3), (1, 2, 3, 4)], strict=True):
        tables = np.array([table for (of, _), table in counts.items() if of == parents])
        # The table of the configurations that occur is a family with a single parent: their number.
        q, r = tables.shape
        flat = np.stack([np.repeat(np.arange(q), r), np.tile(np.arange(r), q)])
        assert value == pytest.approx(
            family_value(flat, np.array([q, r]), tables.ravel(), 1, (0,), alpha), rel=1e-12, abs=1e-12
        )


def test_keys_tell_configurations_apart_and_nothing_else():
    codes, sizes, _ = problem(1, 400, [30, 30, 30, 30])
    codes[3] = codes[0]
    keys, count = keys_of(codes, sizes, (0, 1, 2, 3))
    assert keys.min() >= 0
    assert keys.max() < count <= 4096
    pairs = set(zip(keys.tolist(), map(tuple, codes.T.tolist()), strict=True))
    assert len(pairs) == len({key for key, _ in pairs}) == len({row for _, row in pairs})


def test_sorting_by_key_is_stable_and_marks_every_group():
    keys = np.random.default_rng(0).integers(0, 7, 50)
    order, begins = np.empty(50, np.int64), np.empty(9, np.int64)
    sort_by_key(keys, order, begins)
    assert np.array_equal(order, np.argsort(keys, kind="stable"))
    assert np.array_equal(begins, np.searchsorted(keys[order], np.arange(9)))


def test_counts_have_the_first_parent_slowest():
    codes = np.array([[0, 1, 1], [1, 0, 2], [0, 0, 1]])
    counts = family_counts(codes, np.array([2, 3, 2]), np.array([1.0, 2.0, 4.0]), 2, (0, 1))
    expected = np.zeros((6, 2))
    expected[1, 0], expected[3, 0], expected[5, 1] = 1.0, 2.0, 4.0
    assert np.array_equal(counts, expected)
