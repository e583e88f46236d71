"""Weights of annealed chains: their mean is the evidence, on every path, with every power of the alias factor."""

import math

import numpy as np
import pytest
from scipy.stats import genpareto

import lurking as lk
from lurking.errors import DataError, OptionError, TooLarge
from lurking.learn.fit import fit_problem
from lurking.learn.options import FitOptions
from lurking.samplers.aliases import log_share, relabelings
from lurking.samplers.annealing.paths import prior_path, sampled_program, variational_path
from lurking.samplers.annealing.populations import anneal, checked_temperatures, spaced_by_spread
from lurking.samplers.diagnostics import effective_sample_size, log_mean, pareto_k, relative_error

ROWS = [(0, 1, 0), (1, 1, 1), (0, 1, 0), (1, 0, None), (0, 0, 1), (None, 1, 0), (1, 1, 1)]
LEVELS = dict.fromkeys("abc", (0, 1))
TABLE = lk.Table.from_rows(ROWS, list("abc"), levels=LEVELS)
MODELS = [
    "s[2] -> a b c",
    "s[3] -> a b; c",
    "s[2] -> a b; t[2] -> b c",
    "s[2] -> t[2]; s -> a b; t -> b c",
    "a -> b -> c",
]


def path_of(model, flattening, table=TABLE, prior=1.0):
    problem = lk.Problem(model, table, prior)
    if flattening == 0.0:
        return prior_path(problem)
    return variational_path(fit_problem(problem, "vb", FitOptions(restarts=5, seed=0)), flattening)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("flattening", [0.0, 0.5, 1.0])
def test_the_mean_weight_is_the_evidence(model, flattening):
    path = path_of(model, flattening, prior=0.8)
    exact = lk.score(model, TABLE, "exact", prior=0.8).log_z
    chains = anneal(path, np.linspace(0.0, 1.0, 31), np.random.SeedSequence(1).spawn(3000))
    permutations = relabelings(path.problem.layout, path.problem.pseudo)
    alpha, points = np.ones(path.problem.layout.size), np.zeros((3000, path.problem.layout.size))
    alpha[path.problem.engine.active] = path.alpha
    points[:, path.problem.engine.active] = chains.log_theta[:, 0]
    for power in (0.0, 0.25, 1.0):
        weights = chains.estimates(log_share(permutations, alpha, points, power)[:, None])
        assert log_mean(weights) == pytest.approx(exact, abs=4.0 * relative_error(weights))
        assert relative_error(weights) < 0.2
    assert chains.estimates().mean() <= exact + 4.0 * chains.estimates().std() / math.sqrt(3000)


def test_weighted_ends_are_a_posterior_sample():
    """The posterior mean of a root's table, by weighted chains and by summing over all completions."""
    path = path_of("a -> b -> c", 0.5)
    chains = anneal(path, np.linspace(0.0, 1.0, 31), np.random.SeedSequence(2).spawn(4000))
    layout = path.problem.layout
    weights = np.exp(chains.estimates() - log_mean(chains.estimates()))
    place = np.flatnonzero(path.problem.engine.active == layout.offsets[layout.index["a"]])
    mean = float((weights * np.exp(chains.log_theta[:, 0, place[0]])).mean())
    # One cell of `a` is empty: its two completions, weighed by their evidence.
    total, expected = 0.0, 0.0
    for value in (0, 1):
        rows = [(value if a is None else a, b, c) for a, b, c in ROWS]
        evidence = math.exp(
            lk.score("a -> b -> c", lk.Table.from_rows(rows, list("abc"), levels=LEVELS), "exact").log_z
        )
        total += evidence
        expected += evidence * (1 + sum(row[0] == 0 for row in rows)) / (2 + len(rows))
    assert mean == pytest.approx(expected / total, abs=0.015)


def test_results_do_not_depend_on_the_number_of_workers():
    path = path_of("s[2] -> a b c", 0.5)
    seeds = np.random.SeedSequence(3)
    one = anneal(path, np.linspace(0.0, 1.0, 20), seeds.spawn(8), workers=1)
    two = anneal(path, np.linspace(0.0, 1.0, 20), np.random.SeedSequence(3).spawn(8), workers=3)
    assert np.array_equal(one.log_weights, two.log_weights)
    assert np.array_equal(one.log_theta, two.log_theta)
    assert one.means.sum(axis=1) + path.constant == pytest.approx(one.estimates(), rel=1e-12)


def test_schedules():
    for bad in ([0.0], [0.1, 1.0], [0.0, 0.9], [0.0, 0.6, 0.5, 1.0], [[0.0, 1.0]]):
        with pytest.raises(OptionError, match="schedule of temperatures"):
            checked_temperatures(np.asarray(bad))
    path = path_of("s[2] -> a b c", 0.0)
    pilot = anneal(path, np.linspace(0.0, 1.0, 17), np.random.SeedSequence(0).spawn(300))
    schedule = checked_temperatures(spaced_by_spread(pilot, 40))
    assert len(schedule) == 41
    even = anneal(path, schedule, np.random.SeedSequence(1).spawn(300)).means.std(axis=0)
    plain = anneal(path, np.linspace(0.0, 1.0, 41), np.random.SeedSequence(1).spawn(300)).means.std(axis=0)
    assert even.max() / even.mean() < plain.max() / plain.mean()


def test_what_cannot_be_sampled_is_refused():
    fractions = lk.Table.from_rows(ROWS, list("abc"), levels=LEVELS, weights=[0.5] * 7)
    with pytest.raises(DataError, match="whole-number weights"):
        sampled_program(lk.Problem("s[2] -> a b c", fractions))
    chain = "; ".join(f"h{i}[2] -> h{i + 1}[2]; h{i} -> y{i}" for i in range(12))
    signals = lk.Table.from_array(np.arange(48).reshape(4, 12) % 2, [f"y{i}" for i in range(12)])
    with pytest.raises(TooLarge, match="sampling needs hidden variables that can be enumerated"):
        sampled_program(lk.Problem(chain, signals))


@pytest.mark.parametrize("shape", [0.2, 0.5, 0.9])
def test_pareto_k_finds_the_shape(shape):
    sample = genpareto.rvs(shape, size=20_000, random_state=1)
    assert pareto_k(np.log(sample)) == pytest.approx(shape, abs=0.12)


def test_diagnostics_of_equal_weights():
    weights = np.full(100, -3.0)
    assert log_mean(weights) == pytest.approx(-3.0)
    assert relative_error(weights) == pytest.approx(0.0, abs=1e-12)
    assert effective_sample_size(weights) == pytest.approx(100.0)
    assert pareto_k(weights) == -math.inf
    assert math.isnan(pareto_k(weights[:5]))
    assert relative_error(weights[:1]) == math.inf
    one = np.append(np.full(99, -1000.0), 0.0)
    assert effective_sample_size(one) == pytest.approx(1.0)
