"""Prior probabilities of structures."""

import math

import pytest

import lurking as lk
from lurking.errors import OptionError, UnknownNameError
from lurking.graph.spaces import all_dags
from lurking.graph.structure_priors import StructurePrior

DAG = lk.Dag.parse("h[2] -> a b c; a -> b")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("uniform", 0.0),
        (("edges", 0.1), 4 * math.log(0.1)),
        (("edges", 3), 4 * math.log(3)),
        (("edge-probability", 0.2), 4 * math.log(0.2) + 2 * math.log(0.8)),
        (("parameters", 0.9), 9 * math.log(0.9)),
        (lambda dag: -len(dag.hidden), -1.0),
        (lambda _dag: -math.inf, -math.inf),
    ],
)
def test_log_weights(given, expected):
    assert StructurePrior.from_option(given).log_weight(DAG, 9) == pytest.approx(expected)


@pytest.mark.parametrize("given", [("edges", 0.1), ("edge-probability", 0.2), ("parameters", 0.9), ("hidden", 0.1)])
def test_barren_hidden_variables_do_not_count(given):
    prior = StructurePrior.from_option(given)
    barren = lk.Dag.parse("h[2] -> a b c; a -> b; a h -> g[3] -> k[2]")
    assert prior.log_weight(barren, 9) == prior.log_weight(DAG, 9) != 0.0


def test_a_function_sees_the_structure_as_it_was_given():
    prior = StructurePrior.from_option(lambda dag: -dag.hidden["g"])
    assert prior.log_weight(lk.Dag.parse("a -> b; g[3]"), 2) == -3.0


def test_independent_edges_sum_to_one_over_the_graphs_of_one_order():
    prior = StructurePrior.from_option(("edge-probability", 0.3))
    ordered = [dag for dag in all_dags(list("abcd")) if all(parent < child for parent, child in dag.edges)]
    assert len(ordered) == 64
    assert math.fsum(math.exp(prior.log_weight(dag, 0)) for dag in ordered) == pytest.approx(1.0)


@pytest.mark.parametrize("text", ["uniform", "edges:0.1", "edge-probability:0.25", "parameters:0.5"])
def test_texts_go_there_and_back(text):
    assert str(StructurePrior.parse(text)) == text
    assert StructurePrior.parse(f" {text.upper()} ") == StructurePrior.parse(text)


def test_a_function_is_called_by_its_name():
    def sparse(dag):
        return 0.0

    assert str(StructurePrior.from_option(sparse)) == "sparse"


@pytest.mark.parametrize(
    "given",
    [("edges", 0), ("edges", -1), ("edges", "x"), ("edges", math.nan), ("edge-probability", 1.0), "edges", 3, ()],
)
def test_bad_values_are_refused(given):
    with pytest.raises(OptionError):
        StructurePrior.from_option(given)


@pytest.mark.parametrize("text", ["edges", "edges:", "edges:x", "edges:0", "uniform:2"])
def test_bad_texts_are_refused(text):
    with pytest.raises(OptionError):
        StructurePrior.parse(text)


def test_an_unknown_name_lists_the_choices():
    with pytest.raises(UnknownNameError, match="did you mean 'edges'"):
        StructurePrior.parse("edgse:2")


@pytest.mark.parametrize("value", [math.nan, math.inf, None, "much"])
def test_a_function_must_return_a_log_prior(value):
    with pytest.raises(OptionError, match=r"returned .* for 'h\[2\] -> a b c"):
        StructurePrior.from_option(lambda _dag: value).log_weight(DAG, 9)
