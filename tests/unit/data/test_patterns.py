"""Unique rows: exact values, and what holds for every table."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lurking.data.patterns import distinct_integers, rank_rows
from lurking.data.table import Table
from lurking.errors import DataError

CELLS = st.one_of(st.none(), st.integers(0, 2))
ROWS = st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=30)
LEVELS = {name: [0, 1, 2] for name in "abc"}


def table_of(rows, weights=None):
    return Table.from_rows(rows, columns=list("abc"), levels=LEVELS, weights=weights)


def test_patterns_exactly():
    table = Table.from_rows(
        [(1, "x"), (0, None), (1, "x"), (None, "y"), (0, "y")], columns=["a", "b"], weights=[1, 2, 3.5, 0, 1]
    )
    patterns = table.patterns(["a", "b"])
    assert patterns.codes.tolist() == [[-1, 1], [0, -1], [0, 1], [1, 0]]
    assert patterns.weights.tolist() == [0.0, 2.0, 1.0, 4.5]
    assert patterns.inverse.tolist() == [3, 1, 3, 0, 2]
    assert (patterns.codes.dtype, patterns.inverse.dtype) == (np.int32, np.int64)
    assert (len(patterns), patterns.columns) == (4, ("a", "b"))


def test_patterns_follow_the_columns_asked_for():
    table = Table.from_rows([(1, 0), (0, 1), (0, 0)], columns=["a", "b"])
    assert table.patterns(["b", "a"]).codes.tolist() == [[0, 0], [0, 1], [1, 0]]
    assert table.patterns("b").codes.tolist() == [[0], [1]]
    assert table.patterns(()).codes.shape == (1, 0)
    assert table.patterns(()).weights.tolist() == [3.0]


def test_patterns_are_computed_once_and_cannot_be_changed():
    table = table_of([(0, 1, 2)])
    patterns = table.patterns(["a", "b"])
    assert table.patterns(("a", "b")) is patterns
    for array in (patterns.codes, patterns.weights, patterns.inverse):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7


def test_continuous_and_unknown_columns_are_refused():
    table = Table.from_columns({"age": [0.5, 1.5], "b": [0, 1]})
    with pytest.raises(DataError, match=r"'age' is continuous.*categorical= or cut it into classes"):
        table.patterns(["b", "age"])
    with pytest.raises(DataError, match="did you mean 'age'"):
        table.patterns(["agee"])


@given(ROWS)
def test_patterns_reproduce_the_rows(rows):
    table = table_of(rows)
    patterns = table.patterns()
    matrix = np.array([[-1 if cell is None else cell for cell in row] for row in rows])
    np.testing.assert_array_equal(patterns.codes[patterns.inverse], matrix)
    np.testing.assert_array_equal(patterns.codes, np.unique(matrix, axis=0))
    assert patterns.weights.sum() == len(rows)


@given(st.lists(st.tuples(st.tuples(CELLS, CELLS, CELLS), st.integers(0, 4)), min_size=1, max_size=20))
def test_weights_and_repetition_are_the_same(weighted_rows):
    weighted = table_of([row for row, _ in weighted_rows], [count for _, count in weighted_rows])
    repeated = table_of([row for row, count in weighted_rows for _ in range(count)])
    counted = weighted.patterns().weights > 0
    np.testing.assert_array_equal(weighted.patterns().codes[counted], repeated.patterns().codes)
    np.testing.assert_array_equal(weighted.patterns().weights[counted], repeated.patterns().weights)
    assert weighted.n == repeated.n
    assert weighted.digest == repeated.digest


@given(
    st.lists(st.tuples(CELLS, st.sampled_from([0.5, 1.25, -3.0, None]), st.floats(0.01, 5)), min_size=1, max_size=20),
    st.randoms(use_true_random=False),
)
def test_digest_does_not_depend_on_row_order(rows, random):
    def digest(some_rows):
        return Table.from_rows(
            some_rows, columns=["a", "x", "w"], levels={"a": [0, 1, 2]}, continuous=["x"], weights="w"
        ).digest

    shuffled = list(rows)
    random.shuffle(shuffled)
    assert digest(shuffled) == digest(rows)


def test_digest_sees_every_part():
    base = Table.from_rows([(0, 1), (1, 1)], columns=["a", "b"])
    others = [
        Table.from_rows([(0, 1), (1, 1)], columns=["a", "c"]),
        Table.from_rows([(0, 1), (1, 2)], columns=["a", "b"]),
        Table.from_rows([(0, 1), (1, None)], columns=["a", "b"]),
        Table.from_rows([(0, 1), (1, 1), (1, 1)], columns=["a", "b"]),
        Table.from_rows([(0, "1"), (1, "1")], columns=["a", "b"]),
        Table.from_rows([(0, 1), (1, 1)], columns=["a", "b"], levels={"b": [1, 2]}),
        Table.from_rows([(0, 1), (1, 1)], columns=["a", "b"], continuous=["b"]),
    ]
    digests = {base.digest, *(table.digest for table in others)}
    assert len(digests) == len(others) + 1
    assert len(base.digest) == 64


def test_digest_of_continuous_columns_sees_the_values():
    one = Table.from_columns({"x": [0.5, 1.5]})
    other = Table.from_columns({"x": [0.5, 2.5]})
    assert one.digest != other.digest
    assert one.digest == Table.from_columns({"x": [1.5, 0.5]}).digest


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_ranks_of_rows_too_wide_for_one_key(seed, n_columns):
    rng = np.random.default_rng(seed)
    cardinality = 2**30
    # Few values at both ends of a wide range: rows repeat, and three columns already exceed 62 bits.
    matrix = rng.choice(np.array([-1, 0, cardinality - 1]), size=(40, n_columns))
    inverse, representative = rank_rows(list(matrix.T), [cardinality] * n_columns, 40)
    expected, expected_inverse = np.unique(matrix, axis=0, return_inverse=True)
    np.testing.assert_array_equal(matrix[representative], expected)
    np.testing.assert_array_equal(inverse, expected_inverse.ravel())


@given(st.lists(st.integers(-(2**62), 2**62) | st.integers(-5, 5), max_size=30))
def test_distinct_integers_counts_and_sorts_alike(values):
    array = np.array(values, dtype=np.int64)
    distinct, inverse = distinct_integers(array)
    expected, expected_inverse = np.unique(array, return_inverse=True)
    np.testing.assert_array_equal(distinct, expected)
    np.testing.assert_array_equal(inverse, expected_inverse)
