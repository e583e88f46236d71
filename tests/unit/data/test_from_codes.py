"""Tables from codes: what is out of range never reaches a kernel, and the caller's arrays stay the caller's."""

import numpy as np
import pytest

from lurking.data.table import Table
from lurking.errors import DataError


def test_codes_and_levels():
    table = Table.from_codes({"a": (np.array([1, -1, 0]), ["no", "yes"])})
    assert table["a"].codes.tolist() == [1, -1, 0]
    assert table["a"].levels == ("no", "yes")
    assert table.n == 3.0


@pytest.mark.parametrize("code", [2, 30_000_000, -2])
def test_codes_out_of_range_are_refused(code):
    with pytest.raises(DataError, match=f"code {code}; codes go from -1 to 1"):
        Table.from_codes({"a": (np.array([0, code]), [0, 1])})


def test_repeated_levels_and_no_columns_are_refused():
    with pytest.raises(DataError):
        Table.from_codes({"a": (np.array([0]), ["x", "x"])})
    with pytest.raises(DataError, match="at least one"):
        Table.from_codes({})


def test_the_callers_array_is_left_alone():
    codes = np.array([0, 1], np.int32)
    table = Table.from_codes({"a": (codes, [0, 1])})
    codes[0] = 1
    assert table["a"].codes.tolist() == [0, 1]


def test_equal_levels_keep_the_table():
    table = Table.from_codes({"a": (np.array([0, 1]), [0, 1])})
    assert table.with_columns_coded({"a": (0, 1)}) is table
