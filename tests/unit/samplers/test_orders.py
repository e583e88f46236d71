"""Sums over a group of relabelings, kept as a list and orders of states."""

import itertools
import math
import tracemalloc

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

from lurking.samplers import orders as orders_module
from lurking.samplers.orders import Orders

SIZE = 14
STATES = (np.array([[0, 5], [1, 6], [2, 7]]), np.array([[3, 8, 10], [4, 9, 11]]))
"""Three states of two positions and two states of three; positions 12 and 13 belong to no state."""
LISTED = np.stack([np.arange(SIZE), np.r_[:12, 13, 12], np.r_[np.arange(12)[::-1], 12, 13]])
"""The identity, one that moves the rest, and one that moves everything else."""
GROUP = Orders(LISTED, STATES)


def written_out(group):
    """Return every relabeling of a group, orders of states after a listed one, (count, P)."""
    result = []
    for listed in group.listed:
        for own in itertools.product(*(itertools.permutations(range(len(states))) for states in group.states)):
            moved = listed.copy()
            for states, order in zip(group.states, own, strict=True):
                moved[states] = listed[states[list(order)]]
            result.append(moved)
    return np.array(result)


def points_of(count, seed=0):
    generator = np.random.default_rng(seed)
    return 1.0 + 4.0 * generator.random(SIZE), np.log(generator.random((count, SIZE)))


@pytest.mark.parametrize("power", [1.0, 0.25, 0.0])
def test_sums_are_those_of_all_relabelings(power):
    alpha, points = points_of(5)
    everything = written_out(GROUP)
    assert len(everything) == 36
    assert GROUP.log_count == pytest.approx(math.log(36.0))
    exponents = power * np.einsum("q,pcq->pc", alpha - 1.0, points[:, everything])
    for group in (GROUP, Orders(everything)):
        sums, best = group.sums(alpha, points, power)
        assert sums == pytest.approx(logsumexp(exponents, axis=1), rel=1e-13)
        assert best == pytest.approx(exponents.max(axis=1), rel=1e-13, abs=1e-14)


def test_blocks_do_not_matter(monkeypatch):
    alpha, points = points_of(7)
    listing = Orders(written_out(GROUP))
    whole = [group.sums(alpha, points, 1.0) for group in (GROUP, listing)]
    draws = [group.draw(alpha, points[0], 1.0, np.random.default_rng(3)) for group in (GROUP, listing)]
    for block in (1, 30, 100):
        monkeypatch.setattr(orders_module, "BLOCK", block)
        for group, expected, drawn in zip((GROUP, listing), whole, draws, strict=True):
            assert np.array(group.sums(alpha, points, 1.0)) == pytest.approx(np.array(expected), rel=1e-13)
            assert np.array_equal(group.draw(alpha, points[0], 1.0, np.random.default_rng(3)), drawn)


@pytest.mark.parametrize("is_listing", [False, True])
def test_relabelings_are_drawn_by_their_share(is_listing):
    alpha, points = points_of(1, seed=4)
    everything = written_out(GROUP)
    group = Orders(everything) if is_listing else GROUP
    generator = np.random.default_rng(1)
    drawn = np.array([group.draw(alpha, points[0], 0.5, generator) for _ in range(4000)])
    expected = softmax(0.5 * points[0][everything] @ (alpha - 1.0))
    found = np.array([(drawn == own).all(axis=1).mean() for own in everything])
    assert found.sum() == pytest.approx(1.0)
    assert np.all(np.abs(found - expected) < 4.5 * np.sqrt((expected + 1e-4) / len(drawn)))


@pytest.mark.parametrize("has_states", [False, True])
def test_memory_is_that_of_a_few_blocks(has_states):
    """Eight blocks of 16 MB. At once, 20 000 relabelings of 1000 points would be 160 MB in each of several arrays."""
    listed = np.tile(np.arange(100), (20_000 if not has_states else 200, 1))
    group = Orders(listed, (np.arange(100).reshape(5, 20),) if has_states else ())
    points = np.log(np.random.default_rng(0).random((1000, 100)))
    group.sums(np.full(100, 2.0), points[:1], 1.0)
    tracemalloc.start()
    sums, _ = group.sums(np.full(100, 2.0), points, 1.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 8 * orders_module.BLOCK
    if not has_states:
        assert sums == pytest.approx(math.log(20_000) + points.sum(axis=1), rel=1e-12)
