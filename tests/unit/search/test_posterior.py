"""The posterior over a list of structures, from evidence given by hand."""

import math

import pytest

import lurking as lk
from lurking.search.posterior import StructurePosterior


def evidence(log_z, log_aliases=0.0):
    return lk.Evidence(log_z, log_aliases, None, lk.Kind.LOWER_BOUND, "vb")


@pytest.fixture
def posterior():
    dags = [lk.Dag.parse(text) for text in ("a -> b", "h[2] -> a b", "h[2] -> a; g[2] -> b; a -> b")]
    values = [evidence(-1000.0), evidence(-1000.0 + math.log(2), math.log(2)), evidence(-1000.0 + math.log(5))]
    return StructurePosterior.from_evidence("vb", ["x", "y", "z"], dags, values)


def test_probabilities_far_below_the_smallest_float(posterior):
    assert [c.probability for c in posterior] == pytest.approx([1 / 8, 2 / 8, 5 / 8], abs=1e-12)
    assert [c.corrected_probability for c in posterior] == pytest.approx([1 / 10, 4 / 10, 5 / 10], abs=1e-12)
    assert [c.prior for c in posterior] == pytest.approx([1 / 3] * 3)


def test_best_and_ranking(posterior):
    assert posterior.best.name == "z"
    assert [c.name for c in posterior.ranked()] == ["z", "y", "x"]
    assert posterior["y"].evidence.corrected == pytest.approx(-1000.0 + math.log(4))


def test_ties_keep_the_order_given():
    dags = [lk.Dag.parse("a -> b"), lk.Dag.parse("b -> a")]
    posterior = StructurePosterior.from_evidence("vb", ["x", "y"], dags, [evidence(-3.0), evidence(-3.0)])
    assert posterior.best.name == "x"
    assert [c.name for c in posterior.ranked()] == ["x", "y"]


def test_edges_and_hidden_variables(posterior):
    assert posterior.edge_probability("a", "b") == pytest.approx(6 / 8)
    assert posterior.edge_probability("h", "a") == pytest.approx(7 / 8)
    assert posterior.edge_probability("b", "a") == 0.0
    assert posterior.hidden_probabilities() == pytest.approx({0: 1 / 8, 1: 2 / 8, 2: 5 / 8})


def test_a_single_model_is_certain():
    posterior = StructurePosterior.from_evidence("vb", ["x"], [lk.Dag.parse("a")], [evidence(-9e8)])
    assert posterior.best.probability == 1.0
    assert len(posterior) == 1
