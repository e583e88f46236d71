"""Splits of a hidden variable's neighbours into parents and children, and a hidden variable turned round."""

import numpy as np
import pytest

import lurking as lk
from lurking.graph.spaces import all_dags
from lurking.search.constraints import Constraints
from lurking.search.exhaustive import Optima
from lurking.search.families import FamilyScores, score_of
from lurking.search.splits import splits
from lurking.search.surgery import with_turned_children, with_turned_parents


def linked(n=300, seed=0):
    """Return four columns, of which the second follows the first and the fourth the third."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 2, (n, 4))
    rows[:, 1] = np.where(rng.random(n) < 0.7, rows[:, 0], rows[:, 1])
    rows[:, 3] = np.where(rng.random(n) < 0.7, rows[:, 2], rows[:, 3])
    return lk.Table.from_array(rows, columns=list("abcd"))


def optima_of(table, **options):
    return Optima(FamilyScores(table, "bd"), Constraints.from_options(table.columns, **options))


@pytest.mark.parametrize("names", ["", "a", "ab", "bd", "acd", "abcd"])
def test_optima_match_the_best_structure_over_each_subset(names):
    table = linked()
    optima = optima_of(table)
    assert optima.value(names) == pytest.approx(
        max((score_of(FamilyScores(table.select(list(names))), dag) for dag in all_dags(list(names))), default=0.0)
        if names
        else 0.0,
        rel=1e-12,
    )
    if names:
        dag = lk.Dag(list(names), optima.edges(names))
        assert score_of(FamilyScores(table.select(list(names))), dag) == pytest.approx(optima.value(names), rel=1e-12)


def test_splits_are_all_choices_of_parents_but_one_alone_and_all():
    table = linked()
    dag = lk.Dag.parse("a b c d; h[2] -> a b c d; a -> b")
    made = list(splits(dag, "h", table.columns, optima_of(table)))
    parents = {each.parents("h") for each in made}
    assert len(made) == len(parents) == 1 + 6 + 4
    assert all(len(names) != 1 for names in parents)
    for each in made:
        above, below = set(each.parents("h")), set(each.children("h"))
        assert above | below == set("abcd")
        assert all(set(edge) <= above | {"h"} or edge[0] == "h" for edge in each.edges)
    (both,) = (each for each in made if each.parents("h") == ("a", "b"))
    assert ("a", "b") in both.edges or ("b", "a") in both.edges, "the data link them"


def test_splits_keep_other_edges_and_omit_cycles():
    table = linked()
    dag = lk.Dag.parse("a b c d e; h[2] -> a b c; a -> e; e -> d")
    made = list(splits(dag, "h", ("a", "b", "d"), optima_of(table)))
    assert {each.parents("h") for each in made} == {(), ("a", "b"), ("a", "d"), ("b", "d")} - {("b", "d")}
    assert all({("a", "e"), ("e", "d"), ("h", "c")} <= set(each.edges) for each in made)


def test_splits_without_closed_form_link_no_parents():
    dag = lk.Dag.parse("a b c d; h[2] -> a b c d; a -> b")
    for each in splits(dag, "h", tuple("abcd"), None):
        assert all("h" in edge for edge in each.edges)


def test_linked_children_become_parents_and_back():
    dag = lk.Dag.parse("a b c d; h[2] -> a b c d; a -> b")
    turned = with_turned_children(dag, "h")
    assert set(turned.edges) == {("a", "h"), ("b", "h"), ("h", "c"), ("h", "d")}
    back = with_turned_parents(turned, "h")
    assert set(back.edges) == {("h", "a"), ("h", "b"), ("h", "c"), ("h", "d")}
    assert with_turned_children(back, "h") is None, "no two children are linked"
    assert with_turned_children(lk.Dag.parse("h[2] -> a b c; a -> b; b -> c"), "h") is None, "no child would be left"
    assert with_turned_children(lk.Dag.parse("h[2] -> a b c; a -> b; c -> e; e -> a"), "h") is None, "a cycle"


def between(seed):
    """Return 1500 rows of x1 x2 x3 -> h[2] -> y1 y2 y3."""
    rng = np.random.default_rng(seed)
    x = rng.random((1500, 3)) < 0.5
    p_hidden = rng.beta(0.5, 0.5, 8)
    h = rng.random(1500) < p_hidden[x @ (1 << np.arange(3))]
    low, high = rng.uniform(0.05, 0.3, 3), rng.uniform(0.7, 0.95, 3)
    y = rng.random((1500, 3)) < np.where(h[:, None], high, low)
    return lk.Table.from_array(np.hstack([x, y]).astype(int), columns=["x1", "x2", "x3", "y1", "y2", "y3"])


@pytest.mark.parametrize("seed", [2, 3])
def test_search_finds_causes_and_effects_of_a_hidden_variable(seed):
    found = lk.search(between(seed), hidden=1, target=0.5)
    assert found.best.same_structure(lk.Dag.parse("x1 x2 x3 -> h[2] -> y1 y2 y3"))
