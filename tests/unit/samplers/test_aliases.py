"""Relabelings of hidden nodes and states as permutations of the flat vector."""

import math

import numpy as np
import pytest
from scipy.special import logsumexp

import lurking as lk
from lurking.samplers import aliases
from lurking.samplers.aliases import log_share, relabelings

LEVELS = dict.fromkeys("abcd", (0, 1, 2))
TABLE = lk.Table.from_rows([(0, 1, 2, 0), (2, 1, 0, 1), (1, None, 0, 2)], list("abcd"), levels=LEVELS)
MODELS = [
    "s[2] -> a b c d",
    "s[4] -> a b c d",
    "s[2] -> a b c d; t[2] -> a b c d",
    "s[3] -> a b; t[3] -> c d",
    "s[2] -> a b; t[2] -> a b; u[2] -> a b; c; d",
    "s[2] -> t[3]; s -> a b; t -> c d",
    "a -> s[2] -> b; a -> t[2] -> b; c; d",
    "a b c d",
]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("prior", [1.0, lk.Prior.bdeu(2.0)], ids=["symmetric", "bdeu"])
def test_there_are_as_many_as_ln_s_says(model, prior):
    problem = lk.Problem(model, TABLE, prior)
    permutations = relabelings(problem.layout, problem.pseudo)
    assert len(permutations) == round(math.exp(problem.log_aliases))
    assert np.array_equal(permutations[0], np.arange(problem.layout.size))
    assert len({row.tobytes() for row in permutations}) == len(permutations)


@pytest.mark.parametrize("model", MODELS)
def test_the_likelihood_does_not_change(model):
    problem = lk.Problem(model, TABLE)
    theta = problem.layout.normalise(np.random.default_rng(0).random(problem.layout.size))
    log_z = problem.engine.expect(np.log(theta))[1]
    for permutation in relabelings(problem.layout, problem.pseudo)[:60]:
        moved = theta[permutation]
        assert problem.layout.row_sums(moved) == pytest.approx(np.ones(len(problem.layout.row_start) - 1))
        assert problem.engine.expect(np.log(moved))[1] == pytest.approx(log_z, rel=1e-12)


def test_a_prior_that_tells_states_apart_has_no_relabelings():
    counts = {"s": [[1.0, 2.0]], **{name: np.ones((2, 3)) for name in "abcd"}}
    problem = lk.Problem("s[2] -> a b c d", TABLE, lk.Prior.from_counts(counts))
    assert len(relabelings(problem.layout, problem.pseudo)) == 1


def test_shares_of_all_relabelings_of_a_point_sum_to_one():
    problem = lk.Problem("s[2] -> a b c d; t[2] -> a b c d", TABLE)
    permutations = relabelings(problem.layout, problem.pseudo)
    rng = np.random.default_rng(0)
    theta = problem.layout.normalise(rng.random(problem.layout.size))
    alpha = 1.0 + 5.0 * rng.random(problem.layout.size)
    points = np.log(np.stack([theta[permutation] for permutation in permutations]))
    for power in (1.0, 0.25, 0.0):
        shares = log_share(permutations, alpha, points, power) - math.log(len(permutations))
        assert logsumexp(shares) == pytest.approx(0.0, abs=1e-12)
    assert log_share(permutations, alpha, points, 0.0) == pytest.approx(np.zeros(len(points)), abs=1e-12)


def test_too_many_are_not_listed(monkeypatch):
    problem = lk.Problem("s[9] -> a b c d", TABLE)
    assert relabelings(problem.layout, problem.pseudo) is None
    monkeypatch.setattr(aliases, "MOST_RELABELINGS", 5)
    assert relabelings(lk.Problem("s[3] -> a b c d", TABLE).layout, np.ones(39)) is None
