"""The Dirichlet posterior as a mapping, its mean and its credible intervals."""

import math

import numpy as np
import pytest
from scipy import stats

import lurking as lk
from lurking.errors import OptionError
from lurking.inference.posterior import DirichletPosterior
from lurking.models.layout import Layout


@pytest.fixture
def posterior():
    layout = Layout(lk.Dag.parse("a -> b; one"), {"a": 2, "b": 3, "one": 1})
    alpha = layout.join({"a": [2.5, 4.0], "b": [[1.0, 2.0, 3.0], [0.01, 30.0, 200.0]], "one": [7.0]})
    return DirichletPosterior(layout, alpha)


def test_a_mapping_from_node_to_table(posterior):
    assert list(posterior) == ["a", "b", "one"]
    assert len(posterior) == 3
    assert posterior["b"].tolist() == [[1.0, 2.0, 3.0], [0.01, 30.0, 200.0]]
    posterior["b"][0, 0] = 99.0
    assert posterior["b"][0, 0] == 1.0  # a copy was given


def test_mean(posterior):
    mean = posterior.layout.split(posterior.mean())
    assert mean["a"][0] == pytest.approx([2.5 / 6.5, 4.0 / 6.5], abs=1e-15)
    assert mean["b"][1] == pytest.approx(np.asarray([0.01, 30.0, 200.0]) / 230.01, abs=1e-15)


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_interval_is_that_of_the_marginal_beta(posterior, level):
    tail = (1 - level) / 2
    for name in ("a", "b"):
        alpha = posterior[name]
        rest = alpha.sum(axis=1, keepdims=True) - alpha
        lower, upper = posterior.interval(name, level)
        assert lower.shape == upper.shape == alpha.shape
        assert lower == pytest.approx(stats.beta.ppf(tail, alpha, rest), rel=1e-8, abs=1e-300)
        assert upper == pytest.approx(stats.beta.ppf(1 - tail, alpha, rest), rel=1e-8)
        assert np.all(lower < upper)


def test_interval_covers_draws_as_often_as_it_says(posterior):
    draws = np.random.default_rng(0).dirichlet(posterior["b"][0], size=20_000)
    lower, upper = posterior.interval("b", 0.9)
    inside = ((draws >= lower[0]) & (draws <= upper[0])).mean(axis=0)
    assert np.abs(inside - 0.9).max() < 4 * math.sqrt(0.09 / 20_000)
    below = (draws < lower[0]).mean(axis=0)
    assert np.abs(below - 0.05).max() < 4 * math.sqrt(0.05 * 0.95 / 20_000)


def test_a_single_state_is_certain(posterior):
    lower, upper = posterior.interval("one")
    assert lower.tolist() == upper.tolist() == [[1.0]]


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5, 95, math.nan])
def test_level_must_lie_between_zero_and_one(posterior, level):
    with pytest.raises(OptionError, match="strictly between 0 and 1"):
        posterior.interval("a", level)


def test_complete_data_give_the_conjugate_posterior():
    table = lk.Table.from_rows([(0, 1), (0, 1), (1, 0), (1, 1), (1, 1)], columns=["a", "b"], weights=[2, 1, 1, 4, 1])
    fit = lk.fit("a -> b", table, prior=0.5)
    assert fit.posterior["a"].tolist() == [[3.5, 6.5]]
    assert fit.posterior["b"].tolist() == [[0.5, 3.5], [1.5, 5.5]]
    lower, upper = fit.posterior.interval("a", 0.8)
    assert lower[0, 1] == pytest.approx(stats.beta.ppf(0.1, 6.5, 3.5), rel=1e-9)
    assert upper[0, 1] == pytest.approx(stats.beta.ppf(0.9, 6.5, 3.5), rel=1e-9)
