"""What every exact engine keeps: one set of cases for all of them."""

import math

import numpy as np
import pytest

import lurking as lk
from lurking.inference.problem import ENGINES

ENGINE = pytest.mark.parametrize("engine", list(ENGINES))

CASES = {
    "hidden root": ("s[2] -> a b c", [(0, 1, 0), (1, 1, 1), (0, 1, 0)]),
    "empty cells": ("a -> b -> c", [(0, None, 1), (None, 1, 0), (None, None, None), (1, 0, 1)]),
    "hidden and empty": ("s[3] -> a b; a -> c", [(0, None, 1), (1, 1, None), (None, 0, 0)]),
    "hidden chain": ("s[2] -> t[2] -> u[2]; s -> a; t -> b; u -> c", [(0, 1, 1), (1, None, 0)]),
    "hidden leaf": ("a -> b; b -> s[2]; c", [(0, 1, 1), (1, 0, 0)]),
    "two causes": ("s[2] -> a b; t[3] -> b c", [(0, 1, 1), (1, 0, 0), (1, 1, 1)]),
    "one state": ("s[1] -> a b c", [(0, 1, 1), (1, 0, 0)]),
    "complete": ("a -> b; a -> c; b -> c", [(0, 1, 1), (1, 0, 0), (1, 0, 1)]),
    "no rows": ("s[2] -> a b c", []),
}


def problem_of(name, engine, prune=False):
    model, rows = CASES[name]
    table = lk.Table.from_rows(
        rows, list("abc"), levels={key: [0, 1] for key in "abc"}, weights=np.arange(1, len(rows) + 1) / 2
    )
    return lk.Problem(model, table, 0.7, prune=prune, engine=engine)


def by_definition(problem, potentials):
    """Return log_z from the joint table of all nodes: a sum over everything that is not observed."""
    layout = problem.layout
    joint = np.zeros(layout.cardinalities)
    for j, strides in enumerate(layout.strides):
        for states in np.ndindex(*layout.cardinalities):
            joint[states] += potentials[layout.offsets[j] + sum(s * states[v] for v, s in strides.items())]
    values = []
    for row in problem.rows.codes:
        chosen = joint[tuple(slice(None) if code < 0 else int(code) for code in row)]
        values.append(math.log(np.exp(chosen).sum()))
    return np.asarray(values)


@ENGINE
@pytest.mark.parametrize("name", CASES)
def test_log_z_is_the_sum_over_what_is_unobserved(name, engine):
    problem = problem_of(name, engine)
    potentials = np.random.default_rng(0).normal(-1.0, 1.0, problem.layout.size)
    expected = by_definition(problem, potentials)
    assert problem.engine.pattern_log_z(potentials) == pytest.approx(expected, rel=1e-12, abs=1e-12)
    log_z = problem.engine.expect(potentials)[1]
    assert log_z == pytest.approx(float(problem.rows.weights @ expected), rel=1e-12, abs=1e-12)


@ENGINE
@pytest.mark.parametrize("name", CASES)
def test_counts_are_the_gradient(name, engine):
    problem = problem_of(name, engine)
    potentials = np.random.default_rng(1).normal(-1.0, 1.0, problem.layout.size)
    counts = problem.engine.expect(potentials)[0]
    for position in range(problem.layout.size):
        shift = np.zeros_like(potentials)
        shift[position] = 1e-5
        slope = (problem.engine.expect(potentials + shift)[1] - problem.engine.expect(potentials - shift)[1]) / 2e-5
        assert slope == pytest.approx(counts[position], rel=1e-6, abs=1e-7)


@ENGINE
@pytest.mark.parametrize("prune", [False, True], ids=["keep", "prune"])
@pytest.mark.parametrize("name", CASES)
def test_active_and_complete_positions_make_up_the_whole(name, engine, prune):
    problem = problem_of(name, engine, prune)
    it = problem.engine
    assert sorted([*it.active, *it.inactive]) == list(range(problem.layout.size))
    rows = problem.layout.row_of
    assert not set(rows[it.active]) & set(rows[it.inactive])
    potentials = np.random.default_rng(2).normal(-1.0, 1.0, problem.layout.size)
    counts, log_z = it.expect_active(potentials[it.active])
    whole, whole_log_z = it.expect(potentials)
    assert whole[it.active] == pytest.approx(counts, rel=1e-14)
    assert whole[it.inactive] == pytest.approx(it.complete_counts[it.inactive], rel=1e-14)
    rest = it.complete_counts[it.inactive] @ potentials[it.inactive]
    assert whole_log_z == pytest.approx(log_z + rest, rel=1e-12, abs=1e-12)


@ENGINE
@pytest.mark.parametrize("prune", [False, True], ids=["keep", "prune"])
@pytest.mark.parametrize("name", CASES)
def test_scores_do_not_depend_on_the_engine(name, engine, prune):
    model, rows = CASES[name]
    table = lk.Table.from_rows(rows, list("abc"), levels={key: [0, 1] for key in "abc"})
    names = ["map-likelihood", "mled", "cs", "vb"] + (["bic", "bicp", "draper"] if rows else [])
    options = {"restarts": 1, "seed": 0, "tol": 0.0, "max_iter": 8, "accelerate": False, "prune": prune}
    expected = lk.score(model, table, names, **options)
    scores = lk.score(model, table, names, engine=engine, **options)
    for score in names:
        assert scores[score].log_z == pytest.approx(expected[score].log_z, rel=1e-10, abs=1e-10)
        assert scores[score].kind is expected[score].kind
        assert scores[score].log_aliases == expected[score].log_aliases


@ENGINE
@pytest.mark.parametrize("name", CASES)
def test_potentials_are_left_alone(name, engine):
    problem = problem_of(name, engine)
    potentials = np.random.default_rng(3).normal(-1.0, 1.0, problem.layout.size)
    before = potentials.copy()
    problem.engine.expect(potentials)
    problem.engine.pattern_log_z(potentials)
    problem.engine.pattern_statistics(potentials)
    assert np.array_equal(potentials, before)
