"""Sums over orders and random orders against all orders written out."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.special import logsumexp, softmax

from lurking.kernels.cpu.sums.permanent import draw_order_into, log_permanents_into, lower_by_potentials
from lurking.kernels.reference.permanent import log_permanent


def orders_of(size):
    return np.array(list(itertools.permutations(range(size))))


def exponents(gains):
    """Return Σ_a g[a, π(a)] of every order π."""
    return gains[np.arange(len(gains)), orders_of(len(gains))].sum(axis=1)


def compiled(gains):
    log_permanents, best = np.empty(len(gains)), np.empty(len(gains))
    log_permanents_into(np.ascontiguousarray(gains), log_permanents, best)
    return log_permanents, best


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 9])
def test_sums_over_all_orders(size):
    generator = np.random.default_rng(size)
    gains = np.concatenate([scale * generator.standard_normal((3, size, size)) for scale in (0.0, 0.3, 5.0, 300.0)])
    log_permanents, best = compiled(gains)
    for k in range(len(gains)) if size < 9 else (1, 4, 7, 10):
        terms = exponents(gains[k])
        assert log_permanents[k] == pytest.approx(logsumexp(terms), rel=1e-13, abs=1e-12)
        assert best[k] == pytest.approx(terms.max(), rel=1e-13, abs=1e-12)


def test_the_twin():
    generator = np.random.default_rng(1)
    for size, scale in [(1, 1.0), (4, 50.0), (8, 1.0), (11, 3.0), (12, 2000.0)]:
        gains = scale * generator.standard_normal((size, size)) - 1e3
        assert compiled(gains[None])[0][0] == pytest.approx(log_permanent(gains), rel=1e-13)
        if size < 9:
            assert log_permanent(gains) == pytest.approx(logsumexp(exponents(gains)), rel=1e-13)


@pytest.mark.parametrize("size", [12, 16])
def test_equal_gains_count_orders(size):
    assert compiled(np.full((1, size, size), -7.0))[0][0] == pytest.approx(
        math.lgamma(size + 1.0) - 7.0 * size, rel=1e-14
    )


def test_places_that_all_want_one_state_do_not_underflow():
    """Every place prefers state 0 by 5000 nats, and one place only can have it."""
    gains = np.random.default_rng(0).standard_normal((1, 6, 6))
    plain = logsumexp(exponents(gains[0]))
    gains[:, :, 0] += 5000.0
    assert compiled(gains)[0][0] == pytest.approx(5000.0 + plain, rel=1e-14)


def test_lowered_gains_are_at_most_zero_and_zero_along_the_best_order():
    generator = np.random.default_rng(3)
    for size in (1, 2, 6, 17, 40):
        gains, lowered = 100.0 * generator.standard_normal((size, size)), np.empty((size, size))
        total = lower_by_potentials(gains, lowered)
        places, states = linear_sum_assignment(gains, maximize=True)
        assert total == pytest.approx(gains[places, states].sum(), rel=1e-12)
        assert lowered.max() <= 1e-10
        assert lowered[places, states] == pytest.approx(np.zeros(size), abs=1e-10)


def test_orders_are_drawn_by_their_share():
    gains = np.random.default_rng(5).standard_normal((4, 4))
    uniforms = np.random.default_rng(6).random((20_000, 4))
    drawn = np.empty((len(uniforms), 4), np.int64)
    for own, order in zip(uniforms, drawn, strict=True):
        draw_order_into(gains, own, order)
    expected = softmax(exponents(gains))
    found = np.array([(drawn == order).all(axis=1).mean() for order in orders_of(4)])
    assert found.sum() == 1.0
    assert np.all(np.abs(found - expected) < 4.5 * np.sqrt(expected / len(uniforms)))


@pytest.mark.parametrize("uniform", [0.0, 0.5, np.nextafter(1.0, 0.0)])
def test_sharp_gains_leave_the_best_order_only(uniform):
    gains = 1e6 * np.random.default_rng(7).standard_normal((9, 9))
    order = np.empty(9, np.int64)
    draw_order_into(gains, np.full(9, uniform), order)
    assert np.array_equal(order, linear_sum_assignment(gains, maximize=True)[1])


@pytest.mark.parametrize("bad", [np.nan, -np.inf, np.inf])
def test_gains_that_are_not_finite_end_at_once(bad):
    gains = np.zeros((2, 4, 4))
    gains[0, 1, :] = bad
    sums, best = np.empty(2), np.empty(2)
    log_permanents_into(gains, sums, best)
    assert not np.isfinite(sums[0])
    assert sums[1] == pytest.approx(np.log(24.0))


def test_gains_beyond_rounding_count_the_best_order():
    gains = 1e20 * np.random.default_rng(1).random((3, 6, 6))
    sums, best = np.empty(3), np.empty(3)
    log_permanents_into(gains, sums, best)
    for k in range(3):
        top = max(sum(gains[k, a, b] for a, b in enumerate(order)) for order in itertools.permutations(range(6)))
        assert sums[k] == pytest.approx(top, rel=1e-12)
