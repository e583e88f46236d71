"""The log posterior against quadrature, the engine and finite differences."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

import lurking as lk
from lurking.errors import OptionError
from lurking.inference.log_posterior import LogPosterior

TIED = lk.Problem(
    "s[2] -> a b; c -> b; t[2]",
    lk.Table.from_rows(
        [(0, 1, 0), (1, None, 1), (None, 0, 1), (1, 1, None), (0, 0, 0)],
        ["a", "b", "c"],
        weights=[1.0, 2.0, 1.5, 1.0, 3.0],
    ),
    0.7,
)


def random_points(posterior, seed, count):
    return np.random.default_rng(seed).normal(size=(count, posterior.size))


def check_gradient(posterior, point):
    """The gradient is that of the log density, by central differences."""
    steps = 1e-5 * np.eye(posterior.size)
    numeric = (posterior.log_density(point + steps) - posterior.log_density(point - steps)) / 2e-5
    np.testing.assert_allclose(posterior.gradient(point), numeric, rtol=1e-6, atol=1e-6)


def check_batch(posterior, points):
    """Many points give what each gives alone."""
    alone = [posterior.log_density(point) for point in points]
    np.testing.assert_allclose(posterior.log_density(points), alone, rtol=1e-12, atol=1e-12)


@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_gradient_and_batches_for_random_problems(small_problems, data, seed):
    small = data.draw(small_problems(max_nodes=4, max_rows=4, max_states=40))
    for prune in (False, True):
        posterior = LogPosterior(small.problem(prune))
        points = random_points(posterior, seed, 3)
        check_batch(posterior, points)
        if posterior.size:
            check_gradient(posterior, points[0])


@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_parts_are_those_of_their_definitions(small_problems, data, seed):
    small = data.draw(small_problems(max_nodes=4, max_rows=4, max_states=40, least_lambda=0.1))
    posterior = LogPosterior(small.problem(False, "reference"))
    point = random_points(posterior, seed, 1)[0]
    log_theta = posterior.potentials(point)
    layout, pseudo = small.layout, small.pseudo
    np.testing.assert_allclose(layout.row_sums(np.exp(log_theta)), 1.0, rtol=1e-12)
    np.testing.assert_allclose(posterior.coordinates(log_theta), point, rtol=1e-9, atol=1e-9)
    assert posterior.log_likelihood(point) == pytest.approx(small.engine().expect(log_theta)[1], rel=1e-12, abs=1e-12)
    # The density over logits is the Dirichlet density times the product of all probabilities of the row.
    expected = log_theta.sum()
    for begin, end in zip(layout.row_start[:-1], layout.row_start[1:], strict=True):
        theta = np.exp(log_theta[begin:end])
        expected += stats.dirichlet.logpdf(theta / theta.sum(), pseudo[begin:end]) if end - begin > 1 else 0.0
    assert posterior.log_prior(point) == pytest.approx(expected, rel=1e-8, abs=1e-6)


def test_the_density_integrates_to_the_evidence():
    table = lk.Table.from_rows([(0,), (0,), (1,)], ["a"], levels={"a": [0, 1]})
    posterior = LogPosterior(lk.Problem("s[2] -> a", table, 1.0))
    assert posterior.size == 3

    def density(*x):
        return float(np.exp(posterior.log_density(np.asarray(x))))

    grid = np.linspace(-14.0, 14.0, 71)
    points = np.stack(np.meshgrid(grid, grid, grid, indexing="ij"), -1).reshape(-1, 3)
    values = np.exp(posterior.log_density(points)).reshape(71, 71, 71)
    total = values
    for _ in range(3):
        total = integrate.simpson(total, x=grid, axis=0)
    assert np.log(total) == pytest.approx(lk.score("s[2] -> a", table, "exact").log_z, abs=1e-4)


def test_ties_share_coordinates_and_gaps_keep_the_gradient():
    rows = [(0, 1), (1, None), (None, 0), (1, 1)]
    table = lk.Table.from_rows(rows, ["a", "b"], levels={"a": [0, 1], "b": [0, 1]})
    tied = LogPosterior(lk.Problem("s[2] -> a b", table, 0.6, tied=[["a", "b"]]))
    apart = LogPosterior(lk.Problem("s[2] -> a b", table, 0.6))
    assert (tied.size, apart.size) == (3, 5)
    check_gradient(tied, np.asarray([0.3, -0.5, 0.8]))
    same = np.asarray([0.3, -0.5, 0.8, -0.5, 0.8])
    assert tied.log_likelihood(same[:3]) == pytest.approx(apart.log_likelihood(same), rel=1e-12)


@pytest.mark.parametrize("engine", ["enumeration", "junction", "reference"])
def test_every_engine_gives_the_same_posterior(engine):
    problem = lk.Problem(TIED.full_dag, TIED.table, 0.7, engine=engine)
    posterior, reference = LogPosterior(problem), LogPosterior(TIED)
    points = random_points(reference, 3, 4)
    np.testing.assert_allclose(posterior.log_density(points), reference.log_density(points), rtol=1e-12)
    np.testing.assert_allclose(posterior.gradient(points[0]), reference.gradient(points[0]), rtol=1e-9, atol=1e-12)


def test_pruned_nodes_have_no_coordinates():
    names = LogPosterior(TIED).names
    assert not any(name.startswith("t") for name in names)
    kept = LogPosterior(lk.Problem(TIED.full_dag, TIED.table, 0.7, prune=False))
    assert len(kept.names) == kept.size == len(names) + 1
    assert names[0] == "s[0]"
    assert "b(s=1, c=0)[0]" in names


@pytest.mark.parametrize("points", [np.zeros(3), np.zeros((2, 3)), np.zeros((1, 1, 7))])
def test_points_of_another_size_raise(points):
    with pytest.raises(OptionError, match="coordinates"):
        LogPosterior(TIED).log_density(points)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_points_that_are_not_finite_raise(value):
    posterior = LogPosterior(TIED)
    point = np.zeros(posterior.size)
    point[1] = value
    with pytest.raises(OptionError, match="finite"):
        posterior.log_density(point)
    with pytest.raises(OptionError, match="finite"):
        posterior.gradient(point)


class TestBroken:
    """What the checks above are for: each broken log posterior fails one of them."""

    def test_a_wrong_gradient_is_found(self, monkeypatch):
        posterior = LogPosterior(TIED)
        monkeypatch.setattr(LogPosterior, "gradient", LogPosterior.prior_gradient)
        with pytest.raises(AssertionError):
            check_gradient(posterior, random_points(posterior, 1, 1)[0])

    def test_a_batch_that_mixes_points_is_found(self, monkeypatch):
        posterior = LogPosterior(TIED)
        whole = LogPosterior.log_likelihood
        monkeypatch.setattr(
            LogPosterior, "log_likelihood", lambda self, x: whole(self, x)[::-1] if x.ndim > 1 else whole(self, x)
        )
        with pytest.raises(AssertionError):
            check_batch(posterior, random_points(posterior, 1, 3))
