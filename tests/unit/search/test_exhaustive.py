"""Exact answers over structures against all structures, one by one."""

import itertools
import math

import networkx as nx
import numpy as np
import pytest

import lurking as lk
from lurking.errors import OptionError, TooLarge, UnknownNameError
from lurking.graph.spaces import all_dags
from lurking.learn.loop import Status
from lurking.runtime.executor import StopFlag
from lurking.search.constraints import Constraints
from lurking.search.exhaustive import edge_probabilities, optimum
from lurking.search.families import FamilyScores, score_of
from lurking.search.greedy import ClimbRules, climb


def data(size, n_rows=60, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 2, (n_rows, size))
    for column in range(1, size):
        copied = rng.random(n_rows) < 0.6
        rows[copied, column] = rows[copied, column - 1]
    return lk.Table.from_array(rows, columns=[f"x{k}" for k in range(size)])


def rules(table, **options):
    return Constraints.from_options(table.columns, **options)


def keeps(dag, constraints):
    try:
        constraints.check(dag)
    except lk.LurkingError:
        return False
    return True


OPTIONS = [{}, {"max_parents": 1}, {"required": "x3 -> x0", "forbidden": "x0 -> x1", "tiers": [["x2"], ["x1"]]}]


@pytest.mark.parametrize("score", ["bd", "bic"])
@pytest.mark.parametrize("options", OPTIONS, ids=["free", "max_parents", "constraints"])
def test_the_optimum_is_the_best_of_all_structures(score, options):
    table = data(4)
    scorer, constraints = FamilyScores(table, score), rules(table, **options)
    found = optimum(scorer, constraints)
    best = max(score_of(scorer, dag) for dag in all_dags(table.columns) if keeps(dag, constraints))
    assert found.score == pytest.approx(best, rel=1e-12)
    assert score_of(scorer, found.best) == pytest.approx(best, rel=1e-12)
    assert keeps(found.best, constraints)
    assert found.status is Status.OPTIMUM


def test_every_allowed_family_is_scored_once():
    table = data(7)
    found = optimum(FamilyScores(table, "bdeu"), rules(table, max_parents=3))
    assert found.n_evaluated == 7 * sum(math.comb(6, k) for k in range(4))


def test_greedy_never_beats_the_optimum():
    table = data(9, 200, 3)
    scorer, constraints = FamilyScores(table, "bd"), rules(table)
    best = optimum(scorer, constraints)
    found = climb(scorer, lk.Dag(table.columns), constraints, ClimbRules(patience=20, restarts=20))
    assert found.score <= best.score + 1e-9
    assert found.score == pytest.approx(best.score, abs=1e-6)


def linear_extensions(dag):
    return sum(1 for _ in nx.all_topological_sorts(dag.to_networkx()))


@pytest.mark.parametrize("options", OPTIONS, ids=["free", "max_parents", "constraints"])
@pytest.mark.parametrize("over", ["orders", "structures"])
def test_probabilities_of_arcs_are_sums_over_structures(options, over):
    table = data(4, 25)
    scorer, constraints = FamilyScores(table, "bd"), rules(table, **options)
    dags = [dag for dag in all_dags(table.columns) if keeps(dag, constraints)]
    logs = np.array([score_of(scorer, dag) for dag in dags])
    weights = np.exp(logs - logs.max())
    if over == "orders":
        weights *= [linear_extensions(dag) for dag in dags]
    found = edge_probabilities(scorer, constraints, over)
    for (x, a), (y, b) in itertools.product(enumerate(table.columns), repeat=2):
        has = np.array([(a, b) in dag.edges for dag in dags])
        assert found[x, y] == pytest.approx(float(weights[has].sum() / weights.sum()), abs=1e-10)


def test_threads_change_nothing():
    table = data(8)
    values = [edge_probabilities(FamilyScores(table), rules(table, max_parents=3), workers=k) for k in (1, 3)]
    assert np.array_equal(*values)
    assert values[0].min() >= 0.0
    assert values[0].max() <= 1.0


def test_one_variable_and_no_rows():
    single = lk.Table.from_rows([(0,), (1,)], ["a"])
    assert optimum(FamilyScores(single), rules(single)).best == lk.Dag(["a"])
    assert edge_probabilities(FamilyScores(single), rules(single)).tolist() == [[0.0]]
    nothing = lk.Table.from_rows([], ["a", "b"], levels={"a": [0, 1], "b": [0, 1]})
    found = optimum(FamilyScores(nothing), rules(nothing))
    assert (found.best, found.score) == (lk.Dag(["a", "b"]), 0.0)
    assert edge_probabilities(FamilyScores(nothing), rules(nothing), "structures")[0, 1] == pytest.approx(1 / 3)


def test_refusals():
    table = data(40, 5)
    scorer, constraints = FamilyScores(table), rules(table, max_parents=2)
    with pytest.raises(TooLarge, match=r"an exact search over 40 variables holds .* in memory"):
        optimum(scorer, constraints)
    with pytest.raises(TooLarge, match="an exact posterior over 40"):
        edge_probabilities(scorer, constraints)
    six = data(6)
    with pytest.raises(OptionError, match="at most 5 variables; there are 6"):
        edge_probabilities(FamilyScores(six), rules(six), "structures")
    with pytest.raises(UnknownNameError, match="orders"):
        edge_probabilities(FamilyScores(six), rules(six), "dags")
    stop = StopFlag()
    stop.set()
    with pytest.raises(KeyboardInterrupt):
        optimum(FamilyScores(six), rules(six), stop)
