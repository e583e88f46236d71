"""Quads and the two halves of a number, against plain arithmetic."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit
from numba.core.errors import TypingError

from lurking.kernels.cpu.vector import add_at, exponent, mantissa, plus, put, quad_at, scaled, times_at


@njit
def all_at_once(source, target, index, factor):
    quad = scaled(plus(quad_at(source, index), quad_at(source, 0)), factor)
    put(target, 0, quad)
    add_at(target, index, times_at(quad, source, index))
    return quad[0], quad[3]


@njit
def halves(number):
    return mantissa(number), exponent(number)


@pytest.mark.parametrize("index", [4, 5, 7])
def test_quads_are_four_numbers_side_by_side(index):
    generator = np.random.default_rng(index)
    source, target = generator.standard_normal(12), generator.standard_normal(12)
    expected = target.copy()
    quad = (source[index : index + 4] + source[:4]) * 1.7
    expected[:4] = quad
    expected[index : index + 4] += quad * source[index : index + 4]
    first, last = all_at_once(source, target, index, 1.7)
    assert (first, last) == (quad[0], quad[3])
    assert np.array_equal(target, expected)


@pytest.mark.parametrize("array", [np.ones(8, np.float32), np.ones(8, np.int64), np.ones(16)[::2], np.ones((2, 8))])
def test_other_arrays_are_not_compiled(array):
    with pytest.raises(TypingError):
        all_at_once(array, np.ones(8), 4, 1.0)


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_the_halves_of_a_number(number):
    fraction, power = halves(number)
    assert 1.0 <= fraction < 2.0
    assert math.ldexp(fraction, power) == number
