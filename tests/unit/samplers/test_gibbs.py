"""Gibbs chains leave the posterior as it is: exact posteriors of small problems, and Geweke's joint test."""

import itertools
import math

import numpy as np
import pytest

import lurking as lk
from lurking.errors import OptionError
from lurking.kernels.cpu.chains.gibbs import gibbs_into
from lurking.samplers.gibbs import gibbs

LEVELS = dict.fromkeys("abc", (0, 1))
ROWS = [(0, 1, 0), (1, None, 1), (0, 1, 0), (None, 0, 1), (0, 0, None)]


def completed_posterior(model, prior):
    """Return E[θ | y] by summing over all completions of the empty cells, weighed by their evidence."""
    empty = [(i, j) for i, row in enumerate(ROWS) for j, cell in enumerate(row) if cell is None]
    total, mean = 0.0, 0.0
    for values in itertools.product((0, 1), repeat=len(empty)):
        rows = [list(row) for row in ROWS]
        for (i, j), value in zip(empty, values, strict=True):
            rows[i][j] = value
        problem = lk.Problem(model, lk.Table.from_rows(rows, list("abc"), levels=LEVELS), prior)
        weight = math.exp(lk.score(model, problem.table, "exact", prior=prior).log_z)
        total += weight
        mean = mean + weight * problem.layout.normalise(problem.pseudo + problem.engine.complete_counts)
    return mean / total


@pytest.mark.parametrize("model", ["a -> b -> c", "a b; a -> c; b -> c", "a; b; c"])
@pytest.mark.parametrize("prior", [0.5, 2.0])
def test_posterior_means_with_empty_cells(model, prior):
    table = lk.Table.from_rows(ROWS, list("abc"), levels=LEVELS)
    draws = gibbs(lk.Problem(model, table, prior, prune=False), chains=4, draws=6000, burn_in=100, seed=1)
    by_chain = np.exp(draws.log_theta).mean(axis=1)
    error = by_chain.std(axis=0, ddof=1) / 2.0
    assert np.all(np.abs(draws.mean - completed_posterior(model, prior)) <= 5.0 * error + 2e-3)


def test_hidden_states_are_exchangeable_in_the_long_run():
    """With two rows the chain changes labels freely, so the posterior mean of a hidden root is a half."""
    table = lk.Table.from_rows([(0, 1, 0), (1, 1, 1)], list("abc"), levels=LEVELS)
    draws = gibbs(lk.Problem("s[2] -> a b c", table), chains=4, draws=8000, seed=0)
    assert draws.mean[:2] == pytest.approx([0.5, 0.5], abs=0.02)
    assert draws.log_likelihood.shape == (4, 8000)
    assert np.isfinite(draws.log_theta).all()


@pytest.mark.parametrize("model", ["s[2] -> a b; t[2] -> b c", pytest.param("s[2] -> a b c", marks=pytest.mark.long)])
def test_geweke(model):
    """Drawing θ | y by a sweep and y | θ anew in turn leaves the prior of θ as it is (Geweke 2004)."""
    rng = np.random.default_rng(0)
    n, rounds = 6, 3000
    rows = rng.integers(0, 2, (n, 3))
    layout = lk.Problem(model, lk.Table.from_rows(rows.tolist(), list("abc"), levels=LEVELS)).layout
    theta = layout.normalise(rng.standard_gamma(np.full(layout.size, 1.5)))
    seen = np.empty((rounds, layout.size))
    for k in range(rounds):
        network = lk.Network.from_tables(
            layout.dag, layout.split(theta), {name: LEVELS.get(name, (0, 1)) for name in layout.nodes}
        )
        table = network.sample(n, seed=int(rng.integers(2**31)))
        problem = lk.Problem(model, lk.Table.from_codes({c: (table[c].codes, (0, 1)) for c in "abc"}), 1.5)
        assert len(problem.engine.active) == layout.size
        point = np.log(theta)
        gibbs_into(
            problem.engine.program, problem.pseudo.copy(), point, 1, 1, rng, np.empty((1, layout.size)), np.empty(1)
        )
        theta = np.exp(point)
        seen[k] = theta
    # Every table row has two states: a priori Beta(1.5, 1.5), mean 1/2 and variance 1/16.
    batches = seen.reshape(50, -1, layout.size)
    for statistic, expected in ((batches, 0.5), (batches**2, 0.25 + 1.0 / 16.0)):
        means = statistic.mean(axis=1)
        error = means.std(axis=0, ddof=1) / math.sqrt(50)
        assert np.all(np.abs(means.mean(axis=0) - expected) < 4.5 * error)


def test_equal_seeds_give_equal_draws_for_any_number_of_workers():
    problem = lk.Problem("s[2] -> a b c", lk.Table.from_rows(ROWS, list("abc"), levels=LEVELS))
    one = gibbs(problem, chains=3, draws=20, thin=3, seed=4, workers=1)
    two = gibbs(problem, chains=3, draws=20, thin=3, seed=4, workers=3)
    assert np.array_equal(one.log_theta, two.log_theta)
    assert not np.array_equal(one.log_theta[0], one.log_theta[1])


@pytest.mark.parametrize("option", ["chains", "draws", "thin"])
def test_counts_must_be_whole_and_positive(option):
    problem = lk.Problem("s[2] -> a b c", lk.Table.from_rows(ROWS, list("abc"), levels=LEVELS))
    for value in (0, -1, 1.5, True):
        with pytest.raises(OptionError, match=f"{option} is"):
            gibbs(problem, **{option: value})
