"""A structure, a table and a prior, checked and compiled."""

import math

import numpy as np
import pytest

import lurking as lk
from lurking.errors import DataError, PriorError, StructureError, TooLarge, UnknownNameError

ROWS = [(0, 1, None), (1, 1, 0), (0, 0, 1), (0, 1, None)]
TABLE = lk.Table.from_rows(ROWS, ["a", "b", "c"], levels={key: [0, 1] for key in "abc"})


def one_line(caught):
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_dimensions_and_aliases_follow_pruning():
    dag = lk.Dag.parse("s[3] -> a b; t[2]; a -> u[2]; c")
    kept, pruned = lk.Problem(dag, TABLE, prune=False), lk.Problem(dag, TABLE)
    assert pruned.dag.nodes == ("s", "a", "b", "c")
    assert pruned.dimension == 2 + 3 + 3 + 1
    assert kept.dimension == pruned.dimension + 1 + 2
    assert pruned.log_aliases == pytest.approx(math.log(6), rel=1e-15)
    assert kept.log_aliases == pytest.approx(math.log(6 * 2 * 2), rel=1e-15)
    assert kept.relevant_log_aliases == pruned.relevant_log_aliases == pruned.log_aliases


def test_a_prior_that_tells_states_apart_has_no_aliases():
    tables = {"s": [[1.0, 2.0]], "a": np.ones((2, 2)), "b": np.ones((2, 2)), "c": np.ones((1, 2))}
    dag = lk.Dag.parse("s[2] -> a b; c")
    assert lk.Problem(dag, TABLE, lk.Prior.from_counts(tables)).log_aliases == 0.0
    tables["s"] = [[2.0, 2.0]]
    assert lk.Problem(dag, TABLE, lk.Prior.from_counts(tables)).log_aliases == pytest.approx(math.log(2))


def test_patterns_are_unique_rows_with_weights():
    problem = lk.Problem("s[2] -> *", TABLE)
    assert problem.dag.nodes[0] == "s"
    assert problem.rows.codes.shape == (3, 4)
    assert sorted(problem.rows.weights) == [1.0, 1.0, 2.0]
    assert (problem.rows.codes[:, 0] == -1).all()
    assert problem.n == 4.0


def test_parent_order_is_the_order_of_the_edges():
    forward = lk.Problem("a -> c; b -> c", TABLE).layout
    backward = lk.Problem("b -> c; a -> c", TABLE).layout
    assert [forward.nodes[p] for p in forward.parents[forward.index["c"]]] == ["a", "b"]
    assert [backward.nodes[p] for p in backward.parents[backward.index["c"]]] == ["b", "a"]
    assert forward.strides[forward.index["c"]] == {
        forward.index["c"]: 1,
        forward.index["b"]: 2,
        forward.index["a"]: 4,
    }


def test_pruned_nodes_report_the_filling():
    problem = lk.Problem("s[2] -> a; t[3]; b; c", TABLE, 0.5)
    layout, pseudo = problem.full_pseudo
    full = problem.unpruned(np.zeros(problem.layout.size), pseudo)
    assert layout.table(full, "t").tolist() == [[0.5, 0.5, 0.5]]
    assert layout.table(full, "a").sum() == 0.0
    kept = lk.Problem("s[2] -> a; t[3]; b; c", TABLE, prune=False)
    assert kept.unpruned(kept.pseudo, np.zeros(kept.layout.size)) is kept.pseudo


@pytest.mark.parametrize("engine", ["auto", "enumeration", "reference"])
@pytest.mark.parametrize(
    ("text", "complete"),
    [("a -> b", True), ("s[2] -> a b", False), ("a -> b; s[2]", True), ("a -> c", True), ("c -> a", False)],
)
def test_completeness_is_about_what_matters(text, complete, engine):
    """A barren hidden node and an empty cell without observed descendant do not matter."""
    assert lk.Problem(text, TABLE, engine=engine).is_complete is complete


def test_fits_are_made_once():
    problem = lk.Problem("s[2] -> a b", TABLE)
    made = []
    for _ in range(2):
        assert problem.remember("key", lambda: made.append(1) or 7) == 7
    assert made == [1]


def test_a_hidden_name_must_not_be_a_column():
    with pytest.raises(StructureError, match="'a' is also a column") as caught:
        lk.Problem("a[2] -> b", TABLE)
    one_line(caught)


def test_an_observed_name_must_be_a_column():
    with pytest.raises(StructureError, match=r"'aa' in the model is not a column.*did you mean 'a'") as caught:
        lk.Problem("aa -> b", TABLE)
    one_line(caught)


def test_something_must_be_observed():
    with pytest.raises(StructureError, match="no observed variable"):
        lk.Problem("s[2] -> t[2]", TABLE)


def test_continuous_columns_are_refused():
    table = lk.Table.from_columns({"a": [0, 1, 0], "x": [0.5, 1.5, 2.25]})
    with pytest.raises(DataError, match="'x' is continuous") as caught:
        lk.Problem("a -> x", table)
    one_line(caught)
    assert lk.Problem("s[2] -> a", table).n == 3


def test_unknown_engine_lists_the_choices():
    with pytest.raises(UnknownNameError, match="auto, enumeration, junction, completions, reference"):
        lk.Problem("a -> b", TABLE, engine="junktion")


@pytest.mark.parametrize("prior", [0.0, -1.0, math.inf, math.nan, "1", True])
def test_bad_priors(prior):
    with pytest.raises(PriorError) as caught:
        lk.Problem("a -> b", TABLE, prior)
    one_line(caught)


def test_tables_beyond_memory_are_refused_before_anything_is_allocated():
    names = [f"y{k}" for k in range(60)]
    table = lk.Table.from_rows([[0] * 60], names, levels={name: [0, 1] for name in names})
    dag = lk.Dag(names, [(name, "y59") for name in names[:-1]])
    with pytest.raises(TooLarge, match="'y59'") as caught:
        lk.Problem(dag, table)
    one_line(caught)
