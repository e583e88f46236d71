"""Programmes over subsets against all orders of the variables, written out."""

import numpy as np
import pytest
from scipy.special import logsumexp

from lurking.kernels.cpu.sums.subsets import (
    best_parents_into,
    best_sinks_into,
    parents_of_into,
    sum_orders_into,
    sum_subsets_into,
    sum_supersets_into,
)
from lurking.kernels.reference.subsets import best_score, edge_probabilities


def random_scores(seed, size, scale, impossible=0.0):
    rng = np.random.default_rng(seed)
    scores = scale * rng.standard_normal((size, 2 ** (size - 1))) - 50.0
    scores[rng.random(scores.shape) < impossible] = -np.inf
    scores[:, 0] = -60.0
    return scores


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("impossible", [0.0, 0.5])
def test_the_best_structure(size, impossible):
    scores = random_scores(size, size, 10.0, impossible)
    families, choices = scores.copy(), np.empty(scores.shape, np.int32)
    for v in range(size):
        best_parents_into(families[v], choices[v])
        assert np.array_equal(families[v], scores[v, choices[v]])
        assert np.all(choices[v] & ~np.arange(len(choices[v])) == 0)
    values, sinks = np.empty(2**size), np.empty(2**size, np.int8)
    best_sinks_into(families, values, sinks)
    assert values[-1] == pytest.approx(best_score(scores), rel=1e-13)


def test_of_equal_parent_sets_the_smallest_is_chosen():
    families, choices = np.zeros(16), np.empty(16, np.int32)
    best_parents_into(families, choices)
    assert np.all(choices == 0)


@pytest.mark.parametrize("scale", [0.0, 1.0, 300.0])
def test_sums_over_subsets_and_supersets(scale):
    rng = np.random.default_rng(0)
    values = scale * rng.standard_normal(32)
    values[5] = -np.inf
    below, above = values.copy(), values.copy()
    sum_subsets_into(below)
    sum_supersets_into(above)
    for members in range(32):
        assert below[members] == pytest.approx(
            logsumexp([values[s] for s in range(32) if s & ~members == 0]), abs=1e-12
        )
        assert above[members] == pytest.approx(
            logsumexp([values[s] for s in range(32) if members & ~s == 0]), abs=1e-12
        )


@pytest.mark.parametrize("size", [1, 2, 4, 5])
@pytest.mark.parametrize(("scale", "impossible"), [(1.0, 0.0), (30.0, 0.0), (2000.0, 0.4)])
def test_probabilities_of_arcs(size, scale, impossible):
    scores = random_scores(10 + size, size, scale, impossible)
    sums = scores.copy()
    for v in range(size):
        sum_subsets_into(sums[v])
    forward, backward = np.empty(2**size), np.empty(2**size)
    sum_orders_into(sums, forward, backward)
    assert forward[-1] == pytest.approx(backward[0], rel=1e-13)
    found = np.empty((size, size))
    for v in range(size):
        parents_of_into(v, scores[v], forward, backward, np.empty(2 ** (size - 1)), found[v])
    assert np.abs(found.T - edge_probabilities(scores)).max() < 1e-10
