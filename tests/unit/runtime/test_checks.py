"""Numbers among options."""

import math

import numpy as np
import pytest

from lurking.errors import OptionError
from lurking.runtime.checks import check_time_limit, check_whole, is_number, is_positive


def test_whole_numbers():
    for value in (3, np.int64(3), np.uint8(3)):
        found = check_whole("draws", value, 3)
        assert found == 3
        assert type(found) is int
    for value in (2, True, 3.0, "3", None, np.bool_(True)):
        with pytest.raises(OptionError) as caught:
            check_whole("draws", value, 3)
        assert str(caught.value) == f"draws is {value!r}; it must be a whole number of at least 3"


@pytest.mark.parametrize("value", [0, -2.5, np.float32(0.5), np.int8(-1)])
def test_finite_numbers(value):
    assert is_number(value)
    assert is_positive(value) == (value > 0)


@pytest.mark.parametrize("value", [True, np.bool_(True), math.nan, math.inf, "1", None, [1], 1j])
def test_what_is_no_finite_number(value):
    assert not is_number(value)
    assert not is_positive(value)


def test_time_limits():
    assert check_time_limit(None) is None
    assert check_time_limit(2) == 2.0
    for wrong in (0, -1.0, math.inf, math.nan, True, "3"):
        with pytest.raises(OptionError, match="seconds above 0, or None"):
            check_time_limit(wrong)
