"""The member of an equivalence class that a search shows, and fits carried over to it."""

import itertools

import numpy as np
import pytest

import lurking as lk
from lurking.graph.equivalence import are_equivalent
from lurking.search.constraints import Constraints
from lurking.search.representatives import representative, turned_tables


def shown(text, **options):
    dag = lk.Dag.parse(text)
    return representative(dag, Constraints.from_options(dag.observed, **options))


def random_tables(dag, seed=0, sizes=None):
    generator = np.random.default_rng(seed)
    sizes = {name: dag.hidden.get(name, 2 + k % 2) for k, name in enumerate(dag.nodes)} if sizes is None else sizes
    return {
        name: generator.dirichlet(np.ones(sizes[name]), int(np.prod([sizes[p] for p in dag.parents(name)], dtype=int)))
        for name in dag.nodes
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("q2 -> h1[3] -> q1 q7", "h1[3] -> q1 q2 q7"),
        ("q7 -> h1[3] -> q1 q2", "h1[3] -> q1 q2 q7"),
        ("a -> b -> h[2] -> c d", "h[2] -> b c d; b -> a"),
        ("a1 -> h1[2] -> a2 a3 h2[2]; h2 -> b1 b2", "h1[2] -> a1 a2 a3 h2[2]; h2 -> b1 b2"),
        # Of two hidden variables the one with more neighbours is the root.
        ("h1[2] -> a b h2[2]; h2 -> c d e", "h2[2] -> c d e h1[2]; h1 -> a b"),
        # A v-structure settles the direction.
        ("a b -> h[2] -> c d", "a b -> h[2] -> c d"),
        ("a -> b -> c", "a -> b -> c"),
    ],
)
def test_hidden_variables_are_roots_where_that_is_possible(text, expected):
    assert set(shown(text).edges) == set(lk.Dag.parse(expected).edges)
    assert are_equivalent(shown(text), lk.Dag.parse(text))


def test_constraints_keep_a_hidden_variable_where_it_is():
    text = "a -> b -> h[2] -> c d"
    assert shown(text, required="a -> b") == lk.Dag.parse(text)
    assert shown(text, tiers=[["a"], ["b", "c", "d"]]) == lk.Dag.parse(text)
    assert shown("b -> h[2] -> c d", tiers=[["b"], ["c", "d"]]).parents("h") == ()
    # As a root, c would have the parents a, b and h.
    assert shown("c -> h[2] -> d e; a b -> c", max_parents=2) == lk.Dag.parse("c -> h[2] -> d e; a b -> c")


def test_a_later_hidden_variable_does_not_become_the_root():
    tiers = [["a1", "a2"], ["b1", "b2", "b3"]]
    early = shown("g[2] -> b1 b2 b3 h[2]; h -> a1 a2", tiers=tiers)
    assert ("h", "g") in early.edges
    assert early.parents("h") == ()


def test_a_structure_that_is_its_own_representative_is_returned_as_it_is():
    dag = lk.Dag.parse("h[2] -> a b c; a -> b")
    assert representative(dag, Constraints.from_options(dag.observed)) is dag


@pytest.mark.parametrize(
    "text", ["q2 -> h1[3] -> q1 q7", "a -> b -> h[2] -> c d", "a -> h[2]; a h -> b; b h -> c; h -> d"]
)
def test_turned_tables_give_the_same_joint_distribution(text):
    dag = lk.Dag.parse(text)
    target = representative(dag, Constraints.from_options(dag.observed))
    assert target != dag
    tables = random_tables(dag)
    levels = {name: list(range(tables[name].shape[1])) for name in dag.observed}
    turned = turned_tables(dag, tables, target)
    first = lk.Network.from_tables(dag, tables, levels=levels)
    second = lk.Network.from_tables(target, turned, levels=levels)
    rows = list(itertools.product(*levels.values()))
    table = lk.Table.from_rows(rows, columns=list(levels), levels=levels)
    assert first.loglik(table) == pytest.approx(second.loglik(table), abs=1e-12)
    # The states of the hidden variable keep their numbers.
    (name,) = dag.hidden
    states = [each.hidden_probabilities(table)[name] for each in (first, second)]
    assert states[0] == pytest.approx(states[1], abs=1e-12)
