"""Starting points: the law they are drawn from, and that they stay away from saddle and vertices."""

import numpy as np
import pytest
from scipy import stats

from lurking.graph.dag import Dag
from lurking.learn.init import draw_starts, given_start
from lurking.models.layout import Layout
from lurking.runtime.rng import generators


@pytest.fixture
def layout():
    return Layout(Dag.parse("h[3] -> a b; a -> b"), {"h": 3, "a": 2, "b": 4})


@pytest.mark.parametrize("pseudo_count", [1e-6, 0.1, 0.5, 1.0, 7.0, 1e6])
def test_starts_are_log_probabilities(layout, pseudo_count):
    for seed in range(50):
        start = draw_starts(layout, np.full(layout.size, pseudo_count), seed, 1)[0]
        assert np.all(np.isfinite(start))
        assert layout.row_sums(np.exp(start)) == pytest.approx(1.0, abs=1e-12)


def test_equal_generators_give_equal_starts(layout):
    pseudo = np.ones(layout.size)
    one = draw_starts(layout, pseudo, 1, 1)[0]
    assert np.array_equal(one, draw_starts(layout, pseudo, 1, 1)[0])
    assert not np.array_equal(one, draw_starts(layout, pseudo, 2, 1)[0])


@pytest.mark.parametrize("pseudo_count", [0.5, 0.8, 1.0])
def test_moderate_priors_are_drawn_from_as_they_are(pseudo_count):
    layout = Layout(Dag.parse("a"), {"a": 3})
    draws = np.exp(draw_starts(layout, np.full(3, pseudo_count), 0, 3000))[:, 0]
    assert stats.kstest(draws, stats.beta(pseudo_count, 2 * pseudo_count).cdf).pvalue > 0.001


def test_asymmetric_priors_keep_their_mean():
    layout = Layout(Dag.parse("a"), {"a": 2})
    draws = np.exp(draw_starts(layout, np.asarray([300.0, 100.0]), 0, 4000))[:, 0]
    # Strength held at r = 2: Beta(1.5, 0.5), mean 3/4, standard deviation 0.25.
    assert np.mean(draws) == pytest.approx(0.75, abs=4 * 0.25 / np.sqrt(4000))
    assert np.std(draws) == pytest.approx(0.25, abs=0.02)


@pytest.mark.parametrize("pseudo_count", [1.0, 100.0, 1e6])
def test_hidden_states_are_never_nearly_identical(layout, pseudo_count):
    for seed in range(200):
        start = draw_starts(layout, np.full(layout.size, pseudo_count), seed, 1)[0]
        rows = np.exp(layout.table(start, "b")).reshape(3, 2, 4)
        assert np.ptp(rows, axis=0).max() > 0.05


@pytest.mark.parametrize("pseudo_count", [1e-6, 1e-3])
def test_weak_priors_do_not_start_at_vertices(layout, pseudo_count):
    pseudo = np.full(layout.size, pseudo_count)
    starts = np.exp([draw_starts(layout, pseudo, seed, 1)[0] for seed in range(100)])
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


@pytest.mark.parametrize("names", ["ab", "a", "abc", "ca"])
def test_starts_do_not_depend_on_what_was_drawn_before(names):
    cards = {"a": 2, "b": 3, "c": 2}
    full = Layout(Dag.parse("; ".join("abc")), cards)
    draw_starts(full, np.ones(full.size), 7, 2)
    layout = Layout(Dag.parse("; ".join(names)), cards)
    starts = draw_starts(layout, np.ones(layout.size), 7, 2)
    for k, generator in enumerate(generators(7, 2)):
        expected = layout.normalise(generator.standard_gamma(np.ones(layout.size)))
        assert np.exp(starts[k]) == pytest.approx(expected, rel=1e-12)
