"""A sampler that uses nothing but `Density` agrees with Gibbs on functions that no relabeling changes."""

import math

import numpy as np
import pytest

import lurking as lk
from lurking.inference.log_posterior import Density
from lurking.samplers.convergence import summary
from lurking.samplers.gibbs import Draws

LONG = pytest.mark.long


def table(empty, rows=60, seed=0):
    """Return three binary columns and one of three levels that depend on a hidden state, some cells missing."""
    generator = np.random.default_rng(seed)
    state = generator.integers(0, 2, rows)
    columns = [(generator.random(rows) < np.where(state, 0.8, 0.25)).astype(int) for _ in "abc"]
    columns.append((generator.random(rows) * 2.0).astype(int) + state * (generator.random(rows) < 0.7))
    is_empty = generator.random((rows, 4)) < empty
    cells = [
        [None if gone else int(cell) for cell, gone in zip(row, blank, strict=True)]
        for row, blank in zip(np.transpose(columns), is_empty, strict=True)
    ]
    return lk.Table.from_rows(cells, list("abcd"), levels={**dict.fromkeys("abc", (0, 1)), "d": (0, 1, 2)})


PROBLEMS = {
    "complete": lambda: lk.Problem("a -> b -> c; a -> d", table(0.0), 1.5),
    "gappy": lambda: lk.Problem("a -> b -> c; a -> d", table(0.3), 1.5),
    "hidden": lambda: lk.Problem("s[2] -> a b c d", table(0.0), 1.5),
    "hidden, gappy": lambda: lk.Problem("s[2] -> a b c; b -> d", table(0.2), 1.5),
    "tied": lambda: lk.Problem("s[2] -> a b c d", table(0.1), 1.5, tied=[["a", "b", "c"]]),
    "pruned": lambda: lk.Problem("s[2] -> a b c t[2]", table(0.2), 1.5, prune=True),
    "not pruned": lambda: lk.Problem("s[2] -> a b c t[2]", table(0.2), 1.5, prune=False),
}


def langevin(density: Density, start, draws, step, generator):
    """Return points (draws, C) of the Metropolis-adjusted Langevin algorithm (Roberts & Tweedie 1996).

    Proposals are N(x + ε²/2 ∇, ε² I) with the gradient ∇ at x.
    """
    point, value, slope = start, density.log_density(start), density.gradient(start)
    kept = np.empty((draws, len(start)))
    for k in range(draws):
        new = point + 0.5 * step**2 * slope + step * generator.normal(size=len(point))
        new_value, new_slope = density.log_density(new), density.gradient(new)
        there = np.sum((new - point - 0.5 * step**2 * slope) ** 2)
        back = np.sum((point - new - 0.5 * step**2 * new_slope) ** 2)
        if math.log(1.0 - generator.random()) < new_value - value + (there - back) / (2.0 * step**2):
            point, value, slope = new, new_value, new_slope
        kept[k] = point
    return kept


def draws_of(problem):
    """Return draws by Gibbs, or independent ones from the Dirichlet posterior if nothing is unobserved."""
    if not problem.is_complete:
        return lk.gibbs(problem, chains=4, draws=4000, burn_in=500, seed=1)
    generator, posterior = np.random.default_rng(1), problem.pseudo + problem.engine.complete_counts
    log_theta = np.asarray([problem.layout.blocks.draw(posterior, generator) for _ in range(8000)])
    return Draws(problem, log_theta.reshape(4, 2000, -1), (log_theta @ problem.engine.complete_counts).reshape(4, 2000))


def agree(density, problem, draws, step):
    """Compare posterior means of ln p(y|θ) and predictive probabilities by Langevin steps with those of `draws_of`."""
    reference, posterior = draws_of(problem), lk.LogPosterior(problem)
    starts = posterior.coordinates(reference.log_theta[:, -1])
    children = np.random.SeedSequence(2).spawn(len(starts))
    chains = [
        langevin(density, start, draws, step, np.random.default_rng(child))
        for start, child in zip(starts, children, strict=True)
    ]
    points = np.concatenate(chains)
    shape = len(starts), draws
    expected = summary(reference)
    found = summary(
        Draws(
            problem, posterior.potentials(points).reshape(*shape, -1), posterior.log_likelihood(points).reshape(shape)
        )
    )
    assert len(found) > 3
    for quantity, own in found.items():
        other = expected[quantity]
        assert own["ess_bulk"] > 100, (quantity, own["ess_bulk"])
        error = math.hypot(*(of["sd"] / math.sqrt(of["ess_bulk"]) for of in (own, other)))
        assert own["mean"] == pytest.approx(other["mean"], abs=4.0 * error), quantity


@pytest.mark.parametrize("name", ["hidden, gappy", *(pytest.param(name, marks=LONG) for name in PROBLEMS)])
def test_langevin_steps_agree_with_gibbs(name, request):
    problem = PROBLEMS[name]()
    is_long = request.node.get_closest_marker("long") is not None
    agree(lk.LogPosterior(problem), problem, 20_000 if is_long else 2500, 0.3)


class Tempered:
    """A density that is not the posterior: the likelihood has power 0.8."""

    def __init__(self, problem):
        self.posterior = lk.LogPosterior(problem)

    def log_density(self, points):
        return self.posterior.log_prior(points) + 0.8 * self.posterior.log_likelihood(points)

    def gradient(self, point):
        prior = self.posterior.prior_gradient(point)
        return prior + 0.8 * (self.posterior.gradient(point) - prior)


def test_another_density_does_not_agree_with_gibbs():
    problem = PROBLEMS["hidden, gappy"]()
    with pytest.raises(AssertionError, match="log_likelihood"):
        agree(Tempered(problem), problem, 2500, 0.3)
