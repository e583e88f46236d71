"""The compiled Gibbs sampler and the one in NumPy draw from the same law."""

import numpy as np
import pytest

import lurking as lk
from lurking.errors import FractionalWeights, OptionError
from lurking.samplers.gibbs import gibbs
from lurking.samplers.reference_gibbs import ReferenceGibbs

ROWS = [(0, 1, 0), (1, 1, 1), (0, None, 0), (1, 0, None), (0, 0, 1), (None, 1, 0), (1, 1, 1), (0, 0, 1)]
TABLE = lk.Table.from_rows(ROWS, list("abc"), levels=dict.fromkeys("abc", (0, 1)), weights=[1, 2, 1, 1, 3, 1, 2, 1])


def reference_draws(problem, chains, draws, burn_in):
    """(chains, draws, P) η of the sampler in NumPy."""
    kept = []
    for seed in range(chains):
        generator, chain = np.random.default_rng(seed), ReferenceGibbs(problem)
        eta, points = chain.first(generator), []
        for sweep in range(burn_in + draws):
            eta = chain.sweep(eta, generator)
            if sweep >= burn_in:
                points.append(eta)
        kept.append(points)
    return np.asarray(kept)


def functions(problem, log_theta):
    """Functions of points (…, P) that no relabeling changes: ln p(y|θ), p(a = 1) and p(c = 0, a = 1)."""
    layout, theta = problem.layout, np.exp(log_theta)
    flat = theta.reshape(-1, layout.size)
    start = {name: layout.offsets[layout.index[name]] for name in layout.nodes}
    classes = flat[:, start["s"] : start["s"] + 2]
    a = np.stack([flat[:, start["a"] + 1], flat[:, start["a"] + 3]], axis=1)
    c = np.stack([flat[:, start["c"]], flat[:, start["c"] + 2]], axis=1)
    values = [problem.engine.log_z(np.log(flat)), (classes * a).sum(axis=1), (classes * a * c).sum(axis=1)]
    return np.stack(values, axis=-1).reshape(*log_theta.shape[:-1], 3)


@pytest.mark.parametrize("model", ["s[2] -> a b c", "s[2] -> a c; a -> b"])
def test_both_samplers_have_the_same_means(model):
    problem = lk.Problem(model, TABLE, 0.9)
    compiled = functions(problem, gibbs(problem, chains=6, draws=2000, burn_in=100, seed=5).log_theta).mean(axis=1)
    slow = functions(problem, reference_draws(problem, 6, 400, 60)).mean(axis=1)
    error = np.hypot(compiled.std(axis=0, ddof=1), slow.std(axis=0, ddof=1)) / np.sqrt(6)
    assert np.all(np.abs(compiled.mean(axis=0) - slow.mean(axis=0)) <= 4.0 * error + 1e-3)


def test_a_sampler_that_forgets_the_prior_is_caught():
    problem = lk.Problem("s[2] -> a b c", TABLE, 0.9)
    wrong = lk.Problem("s[2] -> a b c", TABLE, 4.0)
    compiled = functions(problem, gibbs(problem, chains=6, draws=2000, burn_in=100, seed=5).log_theta).mean(axis=1)
    slow = functions(problem, reference_draws(wrong, 6, 400, 60)).mean(axis=1)
    error = np.hypot(compiled.std(axis=0, ddof=1), slow.std(axis=0, ddof=1)) / np.sqrt(6)
    assert np.any(np.abs(compiled.mean(axis=0) - slow.mean(axis=0)) > 4.0 * error + 1e-3)


def test_fractional_weights_and_ties_raise():
    half = lk.Table.from_rows(ROWS, list("abc"), levels=dict.fromkeys("abc", (0, 1)), weights=[0.5] * 8)
    with pytest.raises(FractionalWeights, match="whole-number weights"):
        ReferenceGibbs(lk.Problem("s[2] -> a b c", half))
    with pytest.raises(OptionError, match="tied"):
        ReferenceGibbs(lk.Problem("s[2] -> a b", TABLE.select(["a", "b"]), tied=[["a", "b"]]))
