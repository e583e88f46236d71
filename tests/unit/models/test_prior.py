"""Pseudo-counts: what each rule gives, and what is refused."""

import math

import numpy as np
import pytest

import lurking as lk
from lurking.errors import LurkingError, PriorError, StructureError
from lurking.inference.network import Network
from lurking.models.layout import Layout
from lurking.models.prior import pseudo_count_of

CARDS = {"a": 2, "b": 3, "c": 2}
LEVELS = {"a": (0, 1), "b": ("x", "y", "z"), "c": (0, 1)}


@pytest.fixture
def layout():
    return Layout(lk.Dag.parse("a -> b; a b -> c"), CARDS)


@pytest.fixture
def network():
    dag = lk.Dag.parse("b -> a; c -> a")
    tables = {
        "b": [0.2, 0.5, 0.3],
        "c": [0.6, 0.4],
        "a": np.asarray([[1, 9], [2, 8], [3, 7], [4, 6], [5, 5], [6, 4]]) / 10,
    }
    return Network.from_tables(dag, tables, levels=LEVELS)


def test_symmetric(layout):
    assert np.array_equal(lk.Prior.symmetric(0.3).pseudo_counts(layout, LEVELS), np.full(layout.size, 0.3))
    assert lk.Prior.symmetric(0.3).describe() == {"kind": "symmetric", "pseudo_count": 0.3}


def test_jeffreys_is_one_half(layout):
    assert np.array_equal(lk.Prior.jeffreys().pseudo_counts(layout, LEVELS), np.full(layout.size, 0.5))
    assert lk.Prior.jeffreys().describe()["kind"] == "jeffreys"


def test_bdeu_spreads_the_sample_size_over_each_table(layout):
    tables = layout.split(lk.Prior.bdeu(12.0).pseudo_counts(layout, LEVELS))
    assert np.all(tables["a"] == 6.0)
    assert np.all(tables["b"] == 2.0)
    assert np.all(tables["c"] == 1.0)


@pytest.mark.parametrize("prior", [lk.Prior.symmetric(0.3), lk.Prior.jeffreys(), lk.Prior.bdeu(0.7)])
def test_pseudo_count_of_one_table_matches_the_flat_vector(layout, prior):
    tables = layout.split(prior.pseudo_counts(layout, LEVELS))
    for rows, table in zip(layout.configurations, tables.values(), strict=True):
        assert np.all(table == pseudo_count_of(prior, table.shape[1], rows))


def test_a_number_is_a_symmetric_prior():
    assert lk.Prior.of(2) == lk.Prior.symmetric(2.0)
    prior = lk.Prior.jeffreys()
    assert lk.Prior.of(prior) is prior


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, True, "1", None])
@pytest.mark.parametrize("make", [lk.Prior.symmetric, lk.Prior.bdeu])
def test_rules_need_positive_finite_numbers(make, value):
    with pytest.raises(PriorError, match="positive finite"):
        make(value)


def test_network_prior_is_sample_size_times_probability(layout, network):
    tables = layout.split(lk.Prior.from_network(network, 7.0).pseudo_counts(layout, LEVELS))
    for table in tables.values():
        assert table.sum() == pytest.approx(7.0, abs=1e-12)
    assert tables["a"][0] == pytest.approx(7.0 * network.joint(["a"]), abs=1e-12)
    assert tables["b"] == pytest.approx(7.0 * network.joint(["a", "b"]), abs=1e-12)
    assert tables["c"] == pytest.approx(7.0 * network.joint(["a", "b", "c"]).reshape(6, 2), abs=1e-12)


def test_network_prior_follows_the_order_of_parents(network):
    layout = Layout(lk.Dag.from_edges([("b", "c"), ("a", "c")], nodes=["a", "b", "c"]), CARDS)
    tables = layout.split(lk.Prior.from_network(network, 1.0).pseudo_counts(layout, LEVELS))
    assert tables["c"] == pytest.approx(network.joint(["b", "a", "c"]).reshape(6, 2), abs=1e-14)


def test_a_uniform_network_is_bdeu(layout):
    dag = lk.Dag.parse("a; b; c")
    flat = Network.from_tables(dag, {"a": [0.5] * 2, "b": [1 / 3] * 3, "c": [0.5] * 2}, levels=LEVELS)
    one = lk.Prior.from_network(flat, 5.0).pseudo_counts(layout, LEVELS)
    assert one == pytest.approx(lk.Prior.bdeu(5.0).pseudo_counts(layout, LEVELS), abs=1e-14)


def test_network_prior_refuses_other_levels(layout, network):
    with pytest.raises(PriorError, match="'b'"):
        lk.Prior.from_network(network, 1.0).pseudo_counts(layout, {**LEVELS, "b": ("x", "z", "y")})


def test_network_prior_refuses_unknown_variables(network):
    layout = Layout(lk.Dag.parse("a -> d"), {"a": 2, "d": 2})
    with pytest.raises(LurkingError, match="'d'"):
        lk.Prior.from_network(network, 1.0).pseudo_counts(layout, {"a": (0, 1), "d": (0, 1)})


def test_network_prior_refuses_impossible_states():
    layout = Layout(lk.Dag.parse("a"), {"a": 2})
    network = Network.from_tables(lk.Dag.parse("a"), {"a": [1.0, 0.0]})
    with pytest.raises(PriorError, match="probability 0"):
        lk.Prior.from_network(network, 1.0).pseudo_counts(layout, {"a": (0, 1)})


@pytest.mark.parametrize("size", [0, -2, math.nan, math.inf])
def test_network_prior_needs_a_sample_size(network, size):
    with pytest.raises(PriorError, match="equivalent sample size"):
        lk.Prior.from_network(network, size)


def counts(layout):
    return layout.split(np.arange(1.0, layout.size + 1))


def test_counts_are_used_as_given(layout):
    prior = lk.Prior.from_counts(counts(layout))
    assert np.array_equal(prior.pseudo_counts(layout, LEVELS), np.arange(1.0, layout.size + 1))


@pytest.mark.parametrize(
    ("name", "table"),
    [("b", [1.0, 2.0, 3.0]), ("b", [[1.0, 2.0], [1.0, 2.0]]), ("c", np.ones((2, 6))), ("a", [[1.0, 1.0, 1.0]])],
)
def test_counts_of_the_wrong_shape(layout, name, table):
    with pytest.raises((PriorError, StructureError), match=f"{name!r} has shape.*expected"):
        lk.Prior.from_counts({**counts(layout), name: table}).pseudo_counts(layout, LEVELS)


def test_counts_of_a_missing_node(layout):
    tables = counts(layout)
    del tables["b"]
    with pytest.raises((PriorError, StructureError), match=r"missing \['b'\]"):
        lk.Prior.from_counts(tables).pseudo_counts(layout, LEVELS)


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_counts_must_be_positive_and_finite(layout, value):
    tables = counts(layout)
    tables["b"][1, 2] = value
    with pytest.raises(PriorError, match=r"'b'.*positive and finite"):
        lk.Prior.from_counts(tables).pseudo_counts(layout, LEVELS)


def random_rows(empty):
    generator = np.random.default_rng(3)
    cells = np.column_stack([generator.integers(0, 2, 9), generator.integers(0, 3, 9)]).astype(float)
    if empty:
        cells[[0, 3], [0, 1]] = np.nan
    return lk.Table.from_array(cells, columns=["a", "b"], levels={"a": [0, 1], "b": [0, 1, 2]})


@pytest.mark.parametrize("empty", [False, True])
def test_bdeu_scores_equivalent_structures_equally(empty):
    table = random_rows(empty)
    forward = lk.score("a -> b", table, "exact", prior=lk.Prior.bdeu(2.5))
    backward = lk.score("b -> a", table, "exact", prior=lk.Prior.bdeu(2.5))
    assert forward.log_z == pytest.approx(backward.log_z, abs=1e-10)
    # The uniform prior does not, so the test can tell.
    forward = lk.score("a -> b", table, "exact", prior=1.0)
    backward = lk.score("b -> a", table, "exact", prior=1.0)
    assert abs(forward.log_z - backward.log_z) > 1e-3


def test_network_prior_scores_equivalent_structures_equally():
    dag = lk.Dag.parse("a -> b")
    network = Network.from_tables(dag, {"a": [0.3, 0.7], "b": [[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]})
    prior = lk.Prior.from_network(network, 4.0)
    table = random_rows(False)
    forward, backward = (lk.score(text, table, "exact", prior=prior).log_z for text in ("a -> b", "b -> a"))
    assert forward == pytest.approx(backward, abs=1e-10)


def test_bdeu_by_hand():
    table = lk.Table.from_rows([(0,), (1,), (1,)], columns=["a"])
    # λ = 1, 1: p = (1/2)(1/3)(2/4).
    assert lk.score("a", table, "exact", prior=lk.Prior.bdeu(2.0)).log_z == pytest.approx(math.log(1 / 12), abs=1e-12)
