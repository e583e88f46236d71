"""Signatures in data."""

import numpy as np
import pytest
from scipy.stats import chi2_contingency, kstest

import lurking as lk
from lurking.runtime.executor import StopFlag
from lurking.search.dependence import Dependence, g_squared, rank_p_value

FOUR = lk.Network.from_tables(
    lk.Dag.parse("h[2] -> a b c d"),
    {"h": [[0.5, 0.5]], **{name: [[0.8, 0.2], [0.25, 0.75]] for name in "abcd"}},
    levels={name: [0, 1] for name in "abcd"},
)


def test_g_squared_is_that_of_scipy():
    counts = np.asarray([[12.0, 5.0, 9.0], [3.0, 8.0, 14.0]])
    expected = chi2_contingency(counts, correction=False, lambda_="log-likelihood")
    statistic, freedom = g_squared(counts[:, :, None])
    assert statistic == pytest.approx(expected.statistic)
    assert freedom == expected.dof


def test_layers_add_up_and_empty_ones_do_not_count():
    rng = np.random.default_rng(1)
    counts = rng.integers(1, 20, (2, 3, 2)).astype(float)
    parts = [g_squared(counts[:, :, k : k + 1]) for k in range(2)]
    with_empty = np.concatenate([counts, np.zeros((2, 3, 1))], axis=2)
    statistic, freedom = g_squared(with_empty)
    assert statistic == pytest.approx(parts[0][0] + parts[1][0])
    assert freedom == 4


def test_p_values_of_the_true_rank_are_uniform():
    rng = np.random.default_rng(0)
    left, right = rng.dirichlet(np.full(4, 3.0), 2), rng.dirichlet(np.full(4, 3.0), 2)
    truth = 0.5 * np.outer(left[0], right[0]) + 0.5 * np.outer(left[1], right[1])
    values = [rank_p_value(rng.multinomial(50_000, truth.ravel()).reshape(4, 4).astype(float), 2) for _ in range(200)]
    assert kstest(values, "uniform").pvalue > 0.001


def test_the_rank_test_of_one_is_the_test_of_independence():
    rng = np.random.default_rng(2)
    counts = rng.multinomial(20_000, np.outer([0.3, 0.7], [0.2, 0.3, 0.5]).ravel()).reshape(2, 3).astype(float)
    assert rank_p_value(counts, 1) == pytest.approx(chi2_contingency(counts).pvalue, rel=0.02)


def test_a_rank_that_cannot_be_exceeded_is_not_tested():
    assert rank_p_value(np.ones((2, 5)), 2) is None
    assert rank_p_value(np.zeros((3, 3)), 1) is None


def test_four_answers_of_one_cause_are_a_signature_of_two_states():
    found = Dependence(FOUR.sample(4000, seed=1)).signatures()
    assert found[0].names == ("a", "b", "c", "d")
    assert found[0].states == 2


def test_two_connected_causes_are_no_single_one_of_two_states():
    dag = lk.Dag.parse("g[2] -> a b h; h[2] -> c d")
    tables = {"g": [[0.5, 0.5]], "h": [[0.7, 0.3], [0.3, 0.7]]}
    tables |= {name: [[0.9, 0.1], [0.1, 0.9]] for name in "abcd"}
    table = lk.Network.from_tables(dag, tables, levels={name: [0, 1] for name in "abcd"}).sample(4000, seed=0)
    assert Dependence(table).states_of_one_cause((0, 1, 2, 3)) != 2


def test_a_chain_is_explained_by_what_is_observed():
    dag = lk.Dag.parse("a -> b -> c -> d")
    tables = {"a": [[0.5, 0.5]], **{name: [[0.8, 0.2], [0.3, 0.7]] for name in "bcd"}}
    table = lk.Network.from_tables(dag, tables, levels={name: [0, 1] for name in "abcd"}).sample(4000, seed=0)
    dependence = Dependence(table)
    joined = dependence.unexplained(dependence.information())
    assert joined.astype(int).tolist() == [[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0]]


def test_rows_with_an_empty_cell_among_those_asked_for_are_left_out():
    table = lk.Table.from_rows([(0, None), (1, 0), (1, 1), (0, 1)], columns=["a", "b"])
    assert Dependence(table).counts((0, 1)).tolist() == [[0.0, 1.0], [1.0, 1.0]]
    assert Dependence(table).counts((0,)).tolist() == [2.0, 2.0]


def test_independent_columns_with_many_levels_have_no_signature():
    rng = np.random.default_rng(0)
    table = lk.Table.from_array(rng.integers(0, 21, (5000, 4)), columns=list("abcd"))
    dependence = Dependence(table)
    assert not dependence.unexplained(dependence.information()).any()
    flag = StopFlag()
    flag.set()
    assert not Dependence(FOUR.sample(4000, seed=1), flag).signatures()
