"""Starting points: the law they are drawn from, and that they stay away from saddle and vertices."""

import numpy as np
import pytest
from scipy import stats

from lurking.graph.dag import Dag
from lurking.learn.init import draw_start, given_start
from lurking.models.discrete.layout import Layout


@pytest.fixture
def layout():
    return Layout(Dag.parse("h[3] -> a b; a -> b"), {"h": 3, "a": 2, "b": 4})


@pytest.mark.parametrize("pseudo_count", [1e-6, 0.1, 0.5, 1.0, 7.0, 1e6])
def test_starts_are_log_probabilities(layout, pseudo_count):
    for seed in range(50):
        start = draw_start(layout, np.full(layout.size, pseudo_count), np.random.default_rng(seed))
        assert np.all(np.isfinite(start))
        assert layout.row_sums(np.exp(start)) == pytest.approx(1.0, abs=1e-12)


def test_equal_generators_give_equal_starts(layout):
    pseudo = np.ones(layout.size)
    one = draw_start(layout, pseudo, np.random.default_rng(1))
    assert np.array_equal(one, draw_start(layout, pseudo, np.random.default_rng(1)))
    assert not np.array_equal(one, draw_start(layout, pseudo, np.random.default_rng(2)))


@pytest.mark.parametrize("pseudo_count", [0.5, 0.8, 1.0])
def test_moderate_priors_are_drawn_from_as_they_are(pseudo_count):
    layout = Layout(Dag.parse("a"), {"a": 3})
    generator = np.random.default_rng(0)
    draws = [np.exp(draw_start(layout, np.full(3, pseudo_count), generator))[0] for _ in range(3000)]
    assert stats.kstest(draws, stats.beta(pseudo_count, 2 * pseudo_count).cdf).pvalue > 0.001


def test_asymmetric_priors_keep_their_mean():
    layout = Layout(Dag.parse("a"), {"a": 2})
    generator = np.random.default_rng(0)
    draws = [np.exp(draw_start(layout, np.asarray([300.0, 100.0]), generator))[0] for _ in range(4000)]
    # Strength held at r = 2: Beta(1.5, 0.5), mean 3/4, standard deviation 0.25.
    assert np.mean(draws) == pytest.approx(0.75, abs=4 * 0.25 / np.sqrt(4000))
    assert np.std(draws) == pytest.approx(0.25, abs=0.02)


@pytest.mark.parametrize("pseudo_count", [1.0, 100.0, 1e6])
def test_hidden_states_are_never_nearly_identical(layout, pseudo_count):
    for seed in range(200):
        start = draw_start(layout, np.full(layout.size, pseudo_count), np.random.default_rng(seed))
        rows = np.exp(layout.table(start, "b")).reshape(3, 2, 4)
        assert np.ptp(rows, axis=0).max() > 0.05


@pytest.mark.parametrize("pseudo_count", [1e-6, 1e-3])
def test_weak_priors_do_not_start_at_vertices(layout, pseudo_count):
    pseudo = np.full(layout.size, pseudo_count)
    starts = np.exp([draw_start(layout, pseudo, np.random.default_rng(seed)) for seed in range(100)])
    assert np.median(starts.min(axis=1)) > 1e-8
    assert starts.min() > 0.0


def test_a_given_start_is_used_as_it_is(layout):
    generator = np.random.default_rng(3)
    theta = layout.normalise(generator.random(layout.size))
    assert given_start(layout, layout.split(theta)) == pytest.approx(np.log(theta), abs=1e-15)


def test_tables_of_pruned_nodes_are_left_out(layout):
    tables = layout.split(layout.normalise(np.ones(layout.size)))
    start = given_start(layout, {**tables, "gone": [[1.0]]})
    assert start.shape == (layout.size,)


def test_a_zero_becomes_minus_infinity():
    layout = Layout(Dag.parse("a"), {"a": 2})
    assert given_start(layout, {"a": [1.0, 0.0]}).tolist() == [0.0, -np.inf]
