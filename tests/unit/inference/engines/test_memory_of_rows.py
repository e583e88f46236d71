"""What is remembered of the last rows is about those rows."""

import numpy as np

from lurking.inference.engines import memory_of_rows
from lurking.inference.engines.memory_of_rows import MOST_KEYS, MOST_ROWS, remembered, where_unobserved


def fixed(codes):
    codes = np.asarray(codes, np.int32)
    codes.flags.writeable = False
    return codes


def test_made_once_for_each_key_of_the_last_rows():
    made = []
    first, second = fixed([[0, 1]]), fixed([[0, 1]])

    def make():
        made.append(None)
        return len(made)

    assert [remembered(first, "k", make), remembered(first, "k", make), remembered(first, "other", make)] == [1, 1, 2]
    assert remembered(second, "k", make) == 3, "equal rows in another array are other rows"
    assert remembered(first, "k", make) == 4, "only the last array is remembered"


def test_rows_that_can_change_or_are_many_are_not_remembered():
    changing = np.zeros((2, 2), np.int32)
    assert [remembered(changing, "k", lambda: 1), remembered(changing, "k", lambda: 2)] == [1, 2]
    many = fixed(np.zeros((MOST_ROWS + 1, 1)))
    assert [remembered(many, "k", lambda: 1), remembered(many, "k", lambda: 2)] == [1, 2]


def test_where_unobserved():
    in_some, in_all = where_unobserved(fixed([[0, -1, -1], [1, -1, 0]]))
    assert in_some.tolist() == [False, True, True]
    assert in_all.tolist() == [False, True, False]


def test_memory_is_bounded_and_goes_with_the_rows():
    codes = fixed([[0, 1]])
    for key in range(3 * MOST_KEYS):
        assert remembered(codes, key, lambda: np.zeros(8)).shape == (8,)
    ((_, known),) = memory_of_rows._last
    assert 0 < len(known) <= MOST_KEYS
    del codes
    assert not known
